"""`mcp-trio servers`: the servers in the configuration files of a host, and changes of them."""
