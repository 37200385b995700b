"""The smallest server: one tool.

Try `mcp-trio call greet name=World greeter.py`.
"""

import mcp_trio

server = mcp_trio.Server("greeter")


@server.tool
def greet(name: str) -> str:
    """Say hello to someone by name."""
    return f"Hello, {name}!"


if __name__ == "__main__":
    mcp_trio.run(server)
