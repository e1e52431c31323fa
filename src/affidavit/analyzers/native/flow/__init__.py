"""Control flow: recursive descent, jump tables, calls that do not return."""
