"""MCP servers as namespaces below `df.tool`, over stdio and streamable HTTP."""
