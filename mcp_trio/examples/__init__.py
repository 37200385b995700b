"""Example servers that come with the package. `mcp-trio demo` runs `teahouse`."""
