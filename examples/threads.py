"""How to write a transport: a whole server on threads and sockets, without trio and asyncio.

`mcp_core` does no I/O. A transport gives a `Connection` the received bytes and the time, handles
its events, and sends what it has queued. A `Service` handles the events for a `Server`, and a
`Runtime` provides what handlers need besides. Three rules hold for every transport:

1. One thread at a time uses a connection. Here it is the owner of `turn`: a handler owns it while
   it runs, and every thread releases it while it waits.
2. Call `pump` after each call into the connection. It processes the events and wakes the waiting
   threads.
3. One thread reads and one writes. A client that does not read blocks only its own handlers, and
   then its messages are not read either.

Parts of `Runtime` are left out: a handler that asks its client, or that uses its context from a
worker thread, fails here. A thread cannot be stopped: a handler that was cancelled runs to its end,
and its result is dropped.
"""

import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread
from typing import Any

from mcp_core import Connection, Event, Pump, RequestReceived, Role, State
from mcp_core.registry import Context, Server
from mcp_core.runtime import Job, Runtime, Service
from mcp_core.types import RequestId

server = Server("threads")


@server.tool
async def count(to: int, context: Context) -> str:
    """Count, and report progress."""
    for number in range(to):
        await context.progress(number + 1, to)
    return f"counted to {to}"


@server.tool(thread=True)
def nap(seconds: float) -> str:
    """Sleep. Other calls are served meanwhile."""
    time.sleep(seconds)
    return "slept well"


class Conversation(Runtime):
    """One client on one socket.

    One thread reads, one writes, and each handler that may have to wait has a thread of its own.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.turn = Condition()
        self.conn = Connection(Role.SERVER, server.config())
        self.service = Service(server, self.conn, self)
        self.events = Pump(self.conn, self.take)

    def read(self) -> None:
        data = b"not the end"
        while data:
            data = b""
            with suppress(OSError):
                data = self.sock.recv(65536)
            with self.turn:
                self.conn.receive_data(data, time.monotonic())
                self.pump()
                self.turn.wait_for(lambda: not self.events.paused)
        with self.turn:
            self.turn.wait_for(
                lambda: self.service.idle, timeout=5
            )  # running requests still get a response
            self.conn.close()
            self.pump()

    def write(self) -> None:
        while self.conn.state is not State.CLOSED or self.conn.queued():
            with self.turn:
                self.conn.handle_timeout(time.monotonic())  # early calls do nothing
                self.pump()
                if not self.conn.queued():
                    due = self.conn.next_deadline()
                    self.turn.wait(due and max(0.0, due - time.monotonic()))
                data = self.conn.data_to_send()
            with suppress(OSError):  # the client is gone: `read` gets the same error
                self.sock.sendall(data)
        self.sock.close()

    def take(self, event: Event) -> None:
        job = self.service.handle_event(event)
        if job is not None:
            Thread(target=self.work, args=[job]).start()

    def work(self, job: Job) -> None:
        with self.turn:
            try:
                job.done(result_of(job))
            except BaseException as exc:  # noqa: BLE001 - any error ends this call only
                job.failed(exc)
            self.pump()

    # The runtime for handlers. Its coroutines block their own thread, so none of them is ever
    # suspended.

    def pump(self) -> None:
        self.events.run()
        self.turn.notify_all()

    def call_soon(self, function: Callable[[], object]) -> None:
        def run() -> None:
            with self.turn:
                function()

        Thread(target=run).start()

    def write_blocked(self, id: RequestId | None) -> bool:
        return self.events.write_blocked

    async def drain(self, id: RequestId) -> None:
        self.turn.wait_for(lambda: not self.events.write_blocked or self.conn.state is State.CLOSED)

    async def in_thread(self, function: Callable[[], Any]) -> Any:
        self.turn.release()
        try:
            return function()
        finally:
            self.turn.acquire()

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        print(f"{request.method.name} failed (reference {reference})", file=sys.stderr)
        traceback.print_exception(exc)


def result_of(job: Job) -> Any:
    try:
        job.run().send(None)
    except StopIteration as end:
        return end.value
    raise RuntimeError("only what the context offers can be awaited here")


def serve(listener: socket.socket) -> None:
    while True:
        sock, _ = listener.accept()
        conversation = Conversation(sock)
        for run in conversation.read, conversation.write:
            Thread(target=run).start()


if __name__ == "__main__":
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        serve(listener)
