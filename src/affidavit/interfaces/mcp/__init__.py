"""The MCP door: a few tools over one session of a workspace. Nothing here loads the SDK but `server`."""
