"""What may be called: operations, schemas, stubs, discovery."""
