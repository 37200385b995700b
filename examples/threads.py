"""How to write a transport: a whole server on plain threads and sockets, with neither trio nor asyncio.

`mcp_core` does no IO. Whoever carries a conversation gives its `Connection` the bytes that arrive and the time, acts on its events,
and sends what it has queued. A `Service` knows what the events mean for a `Server`, and a `Runtime` is what handlers need beside.
So a transport is what stands below. Three things are worth knowing before you write another one:

- A connection is for one thread at a time. Here it belongs to who has the `turn`: handlers have it while they run, and everybody
  gives it up while he waits.
- After each call into the connection comes `pump`: it takes the events out, and wakes who has something to do now.
- One reads and one writes. So a client who does not read holds up nobody but himself, and then is not read from either.

What a `Runtime` has beside is left out: handlers that ask their client, or that say something from a worker thread, fail here. And no
thread can be stopped: a handler whose client has cancelled it goes on, and its answer is dropped.
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
    """Count, and tell how far it has come."""
    for number in range(to):
        await context.progress(number + 1, to)
    return f"counted to {to}"


@server.tool(thread=True)
def nap(seconds: float) -> str:
    """Sleep. Others are served meanwhile."""
    time.sleep(seconds)
    return "slept well"


class Conversation(Runtime):
    """One client, on one socket: a thread that reads, one that writes, and one for each handler that may have to wait."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock, self.turn = sock, Condition()
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
            self.turn.wait_for(lambda: self.service.idle, timeout=5)  # what was asked is still answered
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
            with suppress(OSError):  # nobody is there: `read` hears of it, too
                self.sock.sendall(data)
        self.sock.close()

    def take(self, event: Event) -> None:
        job = self.service.take(event)
        if job is not None:
            Thread(target=self.work, args=[job]).start()

    def work(self, job: Job) -> None:
        with self.turn:
            try:
                job.done(result_of(job))
            except BaseException as exc:  # noqa: BLE001 - whatever it was, it ends this call only
                job.failed(exc)
            self.pump()

    # What handlers need of a runtime. Whoever awaits it waits in his own thread, and so none of it is ever suspended.

    def pump(self) -> None:
        self.events.run()
        self.turn.notify_all()

    def soon(self, function: Callable[[], object]) -> None:
        def run() -> None:
            with self.turn:
                function()

        Thread(target=run).start()

    def full(self, id: RequestId) -> bool:
        return self.events.full

    async def drain(self, id: RequestId) -> None:
        self.turn.wait_for(lambda: not self.events.full or self.conn.state is State.CLOSED)

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
