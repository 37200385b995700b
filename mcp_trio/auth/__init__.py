"""Run the client flows of `mcp_core.auth`."""
