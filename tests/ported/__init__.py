"""Five servers that others have published, written again for this package, and tests of them.

Tools, names, parameters, types and defaults are those of the published servers. The code and the
texts are ours. Each module begins with the lines that have to change, and why.

| module | server | made with |
|---|---|---|
| `sample_server` | fastmcp-sample-server 0.4.1, from PyPI | FastMCP |
| `fetch_server` | mcp-server-fetch, of modelcontextprotocol/servers | the official SDK |
| `time_server` | mcp-server-time 2026.10, likewise | the official SDK |
| `git_server` | mcp-server-git 2026.10, likewise | the official SDK |
| `map_server` | osm-mcp-server, of jagan-shanmugam | the official SDK, with aiohttp |
"""
