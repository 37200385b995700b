"""A server on a Unix socket, and two clients of it at once.

Each connection is a session of its own; the server's data is shared by all. A TCP port or another
listener of trio would do as well. There is no authorization: every process that can open the
socket can call the tools. The socket is therefore in a directory that only its owner can enter.
"""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import trio

import mcp_trio

server = mcp_trio.Server("counter")
names: list[str] = []


@server.tool
def sign(name: str) -> str:
    """Sign the guest book."""
    names.append(name)
    return f"{name} is guest number {len(names)}"


async def listen(path: Path) -> trio.SocketListener:
    sock = trio.socket.socket(trio.socket.AF_UNIX)
    await sock.bind(str(path))
    sock.listen()
    return trio.SocketListener(sock)


async def main() -> None:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "guests.sock"
        stop = trio.Event()
        async with trio.open_nursery() as nursery:
            await nursery.start(
                partial(mcp_trio.serve_listeners, server, [await listen(path)], stop=stop)
            )
            async with (
                mcp_trio.connect_stream(await trio.open_unix_socket(path)) as ada,
                mcp_trio.connect_stream(await trio.open_unix_socket(path)) as bob,
            ):
                print((await ada.call_tool("sign", {"name": "Ada"})).text)
                print((await bob.call_tool("sign", {"name": "Bob"})).text)
            stop.set()


if __name__ == "__main__":
    trio.run(main)
