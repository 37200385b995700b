"""A server and twenty clients on sockets in one loop of `selectors`: no trio, asyncio or threads.

Both roles are a `Connection`, which does no I/O, and are driven in the same way. `Link` is all that
a transport has to do: feed what arrives, handle the events, send what is queued, and stop reading
while the connection is paused. Sockets never block, so a slow peer delays only itself. Try
`python selectors_loop.py`, or `python selectors_loop.py 9000` for a server without the clients.

What waits is left out: handlers are plain functions, and calls have no timeouts. `threads.py` shows
how handlers wait; `mcp_core.runtime.AbstractClient` has the timeouts.
"""

import sys
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from socket import create_server, socket
from time import monotonic
from typing import Literal

from mcp_core import (
    Config,
    Connection,
    ConnectionClosed,
    ConnectionLost,
    ErrorReceived,
    Event,
    PeerReady,
    Pump,
    RequestReceived,
    ResultReceived,
    Role,
    State,
)
from mcp_core.registry import Server
from mcp_core.runtime import Runtime, Service
from mcp_core.types import ClientCapabilities, Implementation, RequestId

VOTERS = 20
CLIENT = Config(Implementation(name="voter", version="1"), ClientCapabilities())

server = Server("poll")
votes: Counter[str] = Counter()


@server.tool
def vote(tea: Literal["oolong", "sencha"]) -> int:
    """Vote for a tea. Return how many votes it has."""
    votes[tea] += 1
    return votes[tea]


class Loop:
    """All links, and one selector that waits for their sockets and deadlines."""

    def __init__(self) -> None:
        self.selector = DefaultSelector()
        self.links: set[Link] = set()

    def listen(self, listener: socket) -> None:
        def accept(_: int) -> None:
            try:
                sock, _address = listener.accept()
            except OSError:  # the client is gone, or this process has too many open files
                return
            ServerLink(self, sock)

        listener.setblocking(False)
        self.selector.register(listener, EVENT_READ, accept)

    def step(self) -> None:
        """Wait until something can be done, and do it."""
        deadlines = [link.conn.next_deadline() for link in self.links]
        due = min((each for each in deadlines if each is not None), default=None)
        for key, mask in self.selector.select(due and max(0.0, due - monotonic())):
            key.data(mask)
        now = monotonic()
        for link in list(self.links):
            deadline = link.conn.next_deadline()
            if deadline is not None and deadline <= now:
                link.conn.handle_timeout(now)
                link.pump()


class Link(ABC):
    """A connection on a socket. It closes the socket when both are done."""

    def __init__(self, loop: Loop, sock: socket, conn: Connection) -> None:
        self.loop = loop
        self.sock = sock
        self.conn = conn
        self.events = Pump(conn, self.handle_event)
        self.unsent = memoryview(b"")
        sock.setblocking(False)
        loop.links.add(self)
        loop.selector.register(sock, EVENT_WRITE, self.ready)

    @abstractmethod
    def handle_event(self, event: Event) -> None:
        """Handle one event of the connection, without waiting."""

    def ready(self, mask: int) -> None:
        if mask & EVENT_READ:
            try:
                data = self.sock.recv(65536)
            except BlockingIOError:
                return
            except OSError:  # a reset is an end as well
                data = b""
            self.conn.receive_data(data, monotonic())
        self.pump()

    def pump(self) -> None:
        """Handle all events and send what the socket takes. Call this after each change."""
        self.events.run()
        try:
            while self.unsent or self.conn.queued():
                self.unsent = self.unsent or memoryview(self.conn.data_to_send())
                self.unsent = self.unsent[self.sock.send(self.unsent) :]
                self.events.run()  # a connection is paused until its responses are sent
        except BlockingIOError:
            pass
        except OSError as exc:
            self.unsent = memoryview(b"")
            self.conn.close(ConnectionLost(f"sending failed: {exc}"))
            self.conn.data_to_send()
            self.events.run()
        self.wait()

    def wait(self) -> None:
        """Choose what to wait for."""
        if self not in self.loop.links:
            return
        closed = self.conn.state is State.CLOSED
        if closed and not self.unsent:
            self.loop.selector.unregister(self.sock)
            self.loop.links.remove(self)
            self.sock.close()
        else:
            reads = 0 if closed or self.events.paused else EVENT_READ
            self.loop.selector.modify(
                self.sock, reads | (EVENT_WRITE if self.unsent else 0), self.ready
            )


class ServerLink(Link, Runtime):
    """A client of `server`. Plain functions need no more of a runtime than this."""

    def __init__(self, loop: Loop, sock: socket) -> None:
        super().__init__(loop, sock, Connection(Role.SERVER, server.config()))
        self.service = Service(server, self.conn, self)

    def handle_event(self, event: Event) -> None:
        job = self.service.handle_event(event)
        if job is not None:
            job.failed(TypeError("this loop runs no `async def` and no thread"))
            job.dropped()

    def write_blocked(self, id: RequestId | None) -> bool:
        return self.events.write_blocked

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        print(f"{request.method.name} failed (reference {reference})", file=sys.stderr)
        traceback.print_exception(exc)


class Voter(Link):
    """A client that calls one tool. `outcome` is its text, or why the call has failed."""

    def __init__(self, loop: Loop, address: tuple[str, int], tea: str) -> None:
        super().__init__(loop, socket(), Connection(Role.CLIENT, CLIENT))
        self.tea = tea
        self.outcome = ""
        self.sock.connect_ex(address)  # a failure is reported when the socket is ready
        self.conn.open(monotonic())

    def handle_event(self, event: Event) -> None:
        match event:
            case PeerReady():
                params = {"name": "vote", "arguments": {"tea": self.tea}}
                self.conn.send_request("tools/call", params)
            case ResultReceived():
                self.outcome = event.result.text
                self.conn.close()
            case ErrorReceived():
                self.outcome = str(event.error)
                self.conn.close()
            case ConnectionClosed():
                self.outcome = self.outcome or str(event.error)


def main() -> None:
    loop = Loop()
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    with create_server(("127.0.0.1", port)) as listener, loop.selector:
        loop.listen(listener)
        address = listener.getsockname()
        if len(sys.argv) > 1:
            print(f"listening on {address[0]}:{address[1]}", flush=True)
            while True:
                loop.step()
        voters = [
            Voter(loop, address, "sencha" if number % 3 else "oolong") for number in range(VOTERS)
        ]
        while loop.links:
            loop.step()
        for voter in voters:
            print(f"{voter.tea}: {voter.outcome}")


if __name__ == "__main__":
    main()
