"""`mcp-trio run`, which serves a file, and `mcp-trio install`, which registers it."""
