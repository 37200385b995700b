"""A complete stdio server without trio, asyncio or threads.

`mcp_core` does no I/O and has no clock: it is given bytes and the time, and returns events and the
bytes to send. A loop with two blocking calls is therefore enough. It does one thing at a time. For
`async def` tools, for cancelling a running tool, and to keep `print` out of the protocol, use
`mcp_trio.run`.
"""

import sys
import traceback
from time import monotonic

from mcp_core import NEED_DATA, PAUSED, Connection, RequestReceived, Role, State
from mcp_core.registry import Server
from mcp_core.runtime import Runtime, Service

server = Server("greeter")


@server.tool
def greet(name: str) -> str:
    """Say hello to someone by name."""
    return f"Hello, {name}!"


class Log(Runtime):
    """A runtime that only logs errors of handlers."""

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        print(f"{request.method.name} failed (reference {reference})", file=sys.stderr)
        traceback.print_exception(exc)


def serve() -> None:
    conn = Connection(Role.SERVER, server.config())
    service = Service(server, conn, Log())
    while conn.state is not State.CLOSED:
        event = conn.next_event()
        if event is NEED_DATA or event is PAUSED:
            sys.stdout.buffer.write(conn.data_to_send())
            sys.stdout.buffer.flush()
            if event is NEED_DATA:
                conn.receive_data(sys.stdin.buffer.readline(), monotonic())
        else:
            service.handle_event(event)


if __name__ == "__main__":
    serve()
