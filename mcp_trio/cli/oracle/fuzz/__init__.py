"""The command `mcp-trio fuzz`, for servers (`_fuzz`) and for clients (`_fuzz_client`)."""
