"""Servers that come with the package, to try things out. `mcp-trio demo` talks to `teahouse`."""
