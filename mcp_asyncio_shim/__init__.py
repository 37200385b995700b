"""The asyncio drivers of mcp_core. They arrive in the next release; this package keeps their name until then.

What it will decide: nothing. It will read, feed the core, act on its events and write, as `mcp_trio` does,
for programs whose event loop is asyncio. A server declared with `mcp_core.registry` will run on either.

What it refuses to know: trio, and every rule of the protocol. If it ever needs one, the core lacks something.
"""
