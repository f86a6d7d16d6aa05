"""The shapes that cross HTTP and MCP."""
