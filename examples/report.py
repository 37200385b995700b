"""A tool that takes long. Its clients may leave it, and fetch the result later.

Try `mcp-trio call report topic=owls report.py`.
"""

import trio

import mcp_trio

server = mcp_trio.Server("report")


@server.tool(task="optional")
async def report(topic: str, context: mcp_trio.Context, archives: int = 2) -> str:
    """Write a report on a topic, from some archives.

    Args:
        topic: what to read about
        archives: how many archives to read
    """
    for number in range(archives):
        await context.progress(number, archives, f"Reading about {topic}")
        await trio.sleep(1)
    return f"{archives} archives have something about {topic}."


if __name__ == "__main__":
    mcp_trio.run(server)
