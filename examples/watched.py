"""A resource that changes, and a client that subscribes to it.

`server.changed(resource=...)` notifies the subscribed clients, and may be called from any
task or thread. A notification carries no value: the client reads the resource again. Several
changes before that read cause one notification. Until a notification the client may cache the value
for as long as the server allows. `python watched.py 2025-11-25` does the same with
`resources/subscribe`.
"""

import sys

import trio

import mcp_trio
from mcp_core import ALL

KETTLE = "kettle://temperature"

server = mcp_trio.Server("kettle")
temperature = 20


@server.resource(KETTLE, cache=mcp_trio.CacheHint(ttl=60))
def now() -> int:
    """Return the temperature of the water in degrees Celsius."""
    return temperature


@server.tool
async def boil() -> str:
    """Bring the water to the boil."""
    global temperature  # noqa: PLW0603 - there is one kettle
    while temperature < 100:
        await trio.sleep(0.1)
        temperature += 20
        server.changed(resource=KETTLE)
    return "The water boils."


async def main() -> None:
    async with (
        mcp_trio.connect(server, versions=sys.argv[1:] or ALL) as client,
        client.listen(uris=[KETTLE]) as changes,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(client.call_tool, "boil")
        async for _ in changes:
            degrees = (await client.read_resource(KETTLE)).contents[0].text
            print(f"{degrees} °C")
            if degrees == "100":
                break


if __name__ == "__main__":
    trio.run(main)
