"""Replay of recorded conversations over stdio and HTTP. `mcp_core.trace` decides on messages."""
