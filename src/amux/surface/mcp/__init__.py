"""The face for agents: an MCP server on standard input and output."""
