"""Configuration of servers: what their files mean, as values. Internal; see `mcp_core.host`."""
