"""Files of clients: where they are, and changes of their text. Internal; see `mcp_core.host`."""
