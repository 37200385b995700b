"""A client of each driver with a scripted server, in jumping time.

`PLAYS` has one function for each driver. It connects a client to a `ScriptedServer`, awaits
`main(play)` and returns its result. When every task waits, the clock jumps to the next deadline, so
that each message has an exact time.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import trio
import trio.testing

import mcp_asyncio_shim
from mcp_asyncio_shim._link import Link
from mcp_core.drivers import client_config
from mcp_core.runtime import AbstractClient
from mcp_trio import connect_stream, memory_pair
from tests.harness.jsonrpc import D, E, Message
from tests.harness.world import virtual_time
from tests.harness.world.waiting import patience

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

__all__ = [
    "CONTENT",
    "FORM",
    "PLAYS",
    "Callback",
    "ClientPlay",
    "Failure",
    "ScriptedServer",
    "created",
    "ended",
    "result_of",
    "state",
]

T = TypeVar("T")

EXTENSION: Final = "io.modelcontextprotocol/tasks"
# In each revision, what a server declares that has tools and tasks.
OFFERS: Final[Mapping[str, Message]] = {
    D: {
        "tools": {},
        "logging": {},
        "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
    },
    E: {"tools": {}, "extensions": {EXTENSION: {}}},
}
CONTENT: Final[Message] = {"content": [{"type": "text", "text": "owls"}]}
FORM: Final[Message] = {
    "message": "Which?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
}
CREATED: Final = "2026-11-23T00:00:00Z"


def state(version: str, status: Any = "working", id: Any = "T", **members: Any) -> Message:
    """Return the state of a task, which is polled each second and has no time to live.

    A member whose value is `...` is left out.
    """
    found: Message = {
        "taskId": id,
        "status": status,
        "createdAt": CREATED,
        "lastUpdatedAt": CREATED,
        "ttl" if version == D else "ttlMs": None,
        "pollInterval" if version == D else "pollIntervalMs": 1000,
    }
    return {name: each for name, each in (found | members).items() if each is not ...}


def created(version: str, status: Any = "working", **members: Any) -> Message:
    """Return a `CreateTaskResult`."""
    task = state(version, status, **members)
    return {"task": task} if version == D else {"resultType": "task", **task}


def ended(version: str, result: Message = CONTENT, **members: Any) -> Message:
    """Return the state of a task that is completed, in the extension with its result."""
    more = {} if version == D else {"result": result}
    return state(version, "completed", **more, **members)


@dataclass
class Failure:
    """An error response."""

    code: int
    message: str = "broken"
    data: Any = None


class Callback:
    """A callback of a client whose function the test sets once it has the `ClientPlay`."""

    function: Callable[[Any], Any]

    def __call__(self, params: Any) -> Any:
        return self.function(params)


LISTEN: Final = "subscriptions/listen"
NO_LISTENING: Final = [Failure(-32601, "nothing to listen to")]


class ScriptedServer:
    """A server that answers each method with the next of its `answers`, and again with the last.

    An answer is a result; a `Failure`; None for no response; or a function that gets the request
    and returns one of these. `log` has the messages of the client after the opening, each with its
    time.
    """

    def __init__(self, version: str, answers: Mapping[str, Any], offers: Message | None) -> None:
        self.version = version
        self.answers = {
            method: list(each) if isinstance(each, list) else [each]
            for method, each in answers.items()
        }
        self.offers = OFFERS[version] if offers is None else offers
        self.log: list[tuple[float, Message]] = []
        self.send: Callable[[Message], object]
        self.hang_up: Callable[[], object]
        self._asked: dict[str, Callable[[Message], object]] = {}

    def receive(self, message: Message, now: float) -> None:
        method = message.get("method")
        if method == "initialize":
            result = {"protocolVersion": self.version, "capabilities": self.offers}
            self.respond(message, result | {"serverInfo": {"name": "s", "version": "1"}})
        elif method == "server/discover":
            versions = {"supportedVersions": [self.version], "ttlMs": 0, "cacheScope": "private"}
            self.respond(message, versions | {"capabilities": self.offers})
        elif method != "notifications/initialized":
            self.log.append((round(now, 3), message))
            if method is None:
                self._asked.pop(message["id"])(message)
            elif "id" in message:
                default = {LISTEN: NO_LISTENING}
                answers = (default | self.answers)[method]
                self.respond(message, answers.pop(0) if len(answers) > 1 else answers[0])

    def respond(self, request: Message, answer: Any) -> None:
        """Send an answer to a request of the client."""
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Failure):
            error = {"code": answer.code, "message": answer.message}
            error |= {} if answer.data is None else {"data": answer.data}
            self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})
        elif answer is not None:
            kind = {"resultType": "complete"} if self.version == E else {}
            self.send({"jsonrpc": "2.0", "id": request["id"], "result": kind | answer})

    def notify(self, method: str, params: Message) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def notify_state(self, status: str = "working", **members: Any) -> None:
        """Send the state of a task."""
        method = "notifications/tasks/status" if self.version == D else "notifications/tasks"
        self.notify(method, state(self.version, status, **members))

    def ask(
        self, params: Message, on_response: Callable[[Message], object], task: str = "T"
    ) -> None:
        """Send a form on behalf of a task (2025-11-25)."""
        id = f"s{len(self.log)}"
        self._asked[id] = on_response
        related = {"io.modelcontextprotocol/related-task": {"taskId": task}}
        params = params | {"_meta": related}
        self.send({"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params})

    @property
    def wire(self) -> list[tuple[float, str, Any]]:
        """The messages of the client but `subscriptions/listen`: time, method, params, no `_meta`.

        A response has the method "", and its result or error. Of params with nothing but a task id,
        only that is shown.
        """
        found = []
        for now, message in self.log:
            if message.get("method") == LISTEN:
                continue
            if "method" not in message:
                found.append((now, "", message.get("result", message.get("error"))))
                continue
            params = {**message.get("params", {})}
            params.pop("_meta", None)
            only_id = params.keys() == {"taskId"}
            found.append((now, message["method"], params["taskId"] if only_id else params))
        return found

    def sent(self, method: str) -> list[Message]:
        """Return the messages of this method."""
        return [message for _, message in self.log if message.get("method") == method]

    def count(self, method: str) -> int:
        return len(self.sent(method))


class ClientPlay:
    """A connected client, its server, and what a test needs of the runtime."""

    def __init__(
        self,
        client: AbstractClient,
        server: ScriptedServer,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[object]],
    ) -> None:
        self.client = client
        self.server = server
        self.clock = clock
        self.sleep = sleep

    async def together(self, *functions: Callable[[], Awaitable[Any]]) -> list[Any]:
        """Run the functions side by side; return their results, or the exceptions they raised."""
        raise NotImplementedError

    async def give_up_after(
        self, seconds: float, function: Callable[[], Awaitable[object]]
    ) -> None:
        """Cancel the function after some seconds."""
        raise NotImplementedError


async def result_of(function: Callable[[], Awaitable[Any]]) -> Any:
    """Return the result of the function, or the exception that it raises."""
    try:
        return await function()
    except Exception as exc:  # noqa: BLE001 - the test looks at it
        return exc


class TrioPlay(ClientPlay):
    async def together(self, *functions: Callable[[], Awaitable[Any]]) -> list[Any]:
        results: dict[int, Any] = {}

        async def run(index: int, function: Callable[[], Awaitable[Any]]) -> None:
            results[index] = await result_of(function)

        async with trio.open_nursery() as nursery:
            for index, function in enumerate(functions):
                nursery.start_soon(run, index, function)
        return [results[index] for index in range(len(functions))]

    async def give_up_after(
        self, seconds: float, function: Callable[[], Awaitable[object]]
    ) -> None:
        with trio.move_on_after(seconds) as scope:
            await function()
        assert scope.cancelled_caught


class AsyncioPlay(ClientPlay):
    async def together(self, *functions: Callable[[], Awaitable[Any]]) -> list[Any]:
        return await asyncio.gather(*map(result_of, functions))

    async def give_up_after(
        self, seconds: float, function: Callable[[], Awaitable[object]]
    ) -> None:
        task = asyncio.ensure_future(function())
        await asyncio.sleep(seconds)
        assert task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError)


def play_trio(
    main: Callable[[ClientPlay], Awaitable[T]],
    version: str,
    *,
    offers: Message | None = None,
    answers: Mapping[str, Any],
    **options: Any,
) -> T:
    """Run `main` with a client of `mcp_trio`."""
    server = ScriptedServer(version, answers, offers)
    start = 0.0

    async def serve(stream: trio.abc.Stream) -> None:
        outgoing, queue = trio.open_memory_channel[Message | None](1000)
        server.send = outgoing.send_nowait
        server.hang_up = lambda: outgoing.send_nowait(None)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(write, stream, queue)
            buffer = b""
            with suppress(trio.ClosedResourceError):  # by `hang_up`
                while data := await stream.receive_some():
                    *lines, buffer = (buffer + data).split(b"\n")
                    for line in lines:
                        server.receive(json.loads(line), trio.current_time() - start)
            nursery.cancel_scope.cancel()

    async def write(
        stream: trio.abc.Stream, queue: trio.MemoryReceiveChannel[Message | None]
    ) -> None:
        async for message in queue:
            if message is None:
                await stream.aclose()
                return
            with suppress(trio.BrokenResourceError):  # the client has closed
                await stream.send_all(json.dumps(message).encode() + b"\n")

    async def run() -> T:
        nonlocal start
        start = trio.current_time()
        client_end, server_end = memory_pair()
        with trio.fail_after(patience()):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(serve, server_end)
                try:
                    async with connect_stream(client_end, versions=[version], **options) as client:
                        play = TrioPlay(
                            client, server, lambda: trio.current_time() - start, trio.sleep
                        )
                        result = await main(play)
                finally:
                    await server_end.aclose()
                    nursery.cancel_scope.cancel()
        return result

    try:
        return trio.run(run, clock=trio.testing.MockClock(autojump_threshold=0))
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        raise group.exceptions[0] from None


def play_asyncio(
    main: Callable[[ClientPlay], Awaitable[T]],
    version: str,
    *,
    offers: Message | None = None,
    answers: Mapping[str, Any],
    **options: Any,
) -> T:
    """Run `main` with a client of `mcp_asyncio_shim`."""
    server = ScriptedServer(version, answers, offers)

    async def serve(reader: asyncio.StreamReader) -> None:
        loop = asyncio.get_running_loop()
        while line := await reader.readline():
            server.receive(json.loads(line), loop.time())

    async def run() -> T:
        client_end, server_end = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=server_end)
        server.send = lambda message: writer.write(json.dumps(message).encode() + b"\n")
        server.hang_up = writer.close
        serving = asyncio.create_task(serve(reader))
        config: Any = {"versions": [version], **options}
        streams = await asyncio.open_connection(sock=client_end)
        client = mcp_asyncio_shim.Client(client_config(config), config, partial(Link, streams))
        try:
            async with aclosing(client):
                await client.open()
                loop = asyncio.get_running_loop()
                return await main(AsyncioPlay(client, server, loop.time, asyncio.sleep))
        finally:
            writer.close()
            await asyncio.gather(serving, writer.wait_closed(), return_exceptions=True)

    return virtual_time.run(run())


PLAYS = [play_trio, play_asyncio]
