"""Replay of recorded conversations: carry the messages of `mcp_core.trace` over stdio and HTTP."""
