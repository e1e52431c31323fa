"""HTTP APIs that an OpenAPI description describes, as namespaces below `df.tool`."""
