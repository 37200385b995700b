"""`mcp-trio servers`: show and change the servers in a host's configuration files."""
