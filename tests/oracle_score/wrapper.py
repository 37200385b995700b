"""Mutants as targets of the fuzzer: right servers in memory, with an operator before them.

A mutant's process is a task. Its clock is the run's, which jumps, so that a response that never
comes costs no time and no verdict depends on the machine.
"""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import trio
from trio.testing import memory_stream_pair

from mcp_trio.oracle.fuzz._stdio import CommandTarget

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from tests.oracle_score.operators import MutantPlace

    # Serves one conversation on a stream, until its client closes it.
    ServeStream = Callable[[trio.abc.Stream], Awaitable[None]]

__all__ = ["Crashed", "Hung", "LineReader", "MessageOperator", "MutantTarget", "Wrapper"]

Json = dict[str, Any]


class Crashed(Exception):
    """The process ends, with this exit status."""

    def __init__(self, status: int = 1) -> None:
        super().__init__(status)
        self.status = status


class Hung(Exception):
    """The process does nothing any more."""


class MessageOperator:
    """Changes the messages between a server and its client. One is made for each process.

    Messages that it changes it copies, and what it yields as it came passes byte by byte.

    Attributes:
        place: the name of the place in the operator's table.
        wrapper: the conversation.
        kept: what all processes of the mutant keep.
    """

    def __init__(self, place: str, wrapper: Wrapper, kept: Json) -> None:
        self.place = place
        self.wrapper = wrapper
        self.kept = kept

    def to_server(self, message: Json) -> Iterator[Json | bytes]:
        """Yield what the server gets for a message of its client."""
        yield message

    def to_client(self, message: Json) -> Iterator[Json | bytes]:
        """Yield what the client gets for a message of the server."""
        yield message

    def see(self, line: bytes) -> None:
        """See a line of the client before it is decoded."""

    def request_of(self, response: Json) -> Json:
        """Return the request to which a message is the response, or an empty one."""
        if "method" in response:
            return {}
        return self.wrapper.requests.get(_key(response.get("id")), {})

    def method_of(self, response: Json) -> str:
        """Return the method of the request to which a message is the response, or ""."""
        return str(self.request_of(response).get("method", ""))

    def result_of(self, response: Json, method: str) -> Json | None:
        """Return the result of a response to a request of `method`, or None."""
        result = response.get("result")
        is_wanted = isinstance(result, dict) and self.method_of(response) == method
        return result if is_wanted else None


def _key(id: Any) -> Any:
    return (type(id), id) if isinstance(id, int | str) else None


class Wrapper:
    """One process: the operator, between the two ends.

    Attributes:
        requests: the client's requests, by the type and value of their ids.
        asked: the server's requests, in the same way.
        version: the revision of the conversation, as far as the client's messages show it.
        offered: the client's capabilities.
        answered: the ids of the requests that the server has answered.
        counts: numbers that operators count.
        circles: the cursors at which circles of pages begin again, by method.
    """

    def __init__(
        self, stream: trio.abc.Stream, serve: ServeStream, place: MutantPlace | None, kept: Json
    ):
        self.requests: dict[Any, Json] = {}
        self.asked: dict[Any, Json] = {}
        self.version = ""
        self.offered: Json = {}
        self.answered: set[Any] = set()
        self.counts: dict[str, int] = {}
        self.circles: dict[str, str] = {}
        self._stream = stream
        self._serve_stream = serve
        self._nursery: trio.Nursery | None = None
        self._status = 0
        self._is_hung = False
        self._operator = (
            MessageOperator("", self, kept)
            if place is None
            else place.operator.make(place.name, self, kept)
        )
        self._inner, self._server_end = memory_stream_pair()
        self._sending, self._telling = trio.Lock(), trio.Lock()

    async def run(self) -> int:
        """Run until the server has ended. Return the exit status."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            nursery.start_soon(self._guarded, self._from_client)
            nursery.start_soon(self._serve)
            await self._guarded(self._from_server)
            nursery.cancel_scope.cancel()
        if self._is_hung:
            await trio.sleep_forever()
        await self._stream.aclose()
        return self._status

    async def _guarded(self, pump: Callable[[], Awaitable[None]]) -> None:
        """Run one direction. Both end with a crash, or if the process hangs."""
        assert self._nursery is not None
        try:
            await pump()
        except Crashed as exc:
            self._status = exc.status
            self._nursery.cancel_scope.cancel()
        except Hung:
            self._is_hung = True
            self._nursery.cancel_scope.cancel()

    async def _serve(self) -> None:
        await self._serve_stream(self._server_end)
        await self._server_end.aclose()

    async def _from_client(self) -> None:
        reader = LineReader(self._stream)
        while (line := await reader.next()) is not None:
            self._operator.see(line)
            message = _decoded(line)
            if message is None:
                await self._tell(line + b"\n")
                continue
            self._note(message)
            for each in self._operator.to_server(message):
                await self._tell(_encoded(each, message, line))
        await self._inner.send_eof()

    async def _from_server(self) -> None:
        reader = LineReader(self._inner)
        while (line := await reader.next()) is not None:
            message = _decoded(line)
            if message is None:
                await self._send(line + b"\n")
                continue
            if "method" in message and "id" in message:
                self.asked[_key(message["id"])] = message
            elif isinstance(message.get("id"), int | str):
                self.answered.add(message["id"])
            for each in self._operator.to_client(message):
                await self._send(_encoded(each, message, line))

    async def _send(self, data: bytes) -> None:
        async with self._sending:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._stream.send_all(data)

    async def _tell(self, data: bytes) -> None:
        async with self._telling:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._inner.send_all(data)

    def _note(self, message: Json) -> None:
        if "method" in message and _key(message.get("id")) is not None:
            self.requests[_key(message["id"])] = message
        params = message.get("params")
        if not isinstance(params, dict):
            return
        meta = params.get("_meta")
        if message.get("method") == "initialize":
            self.version, found = params.get("protocolVersion", ""), params.get("capabilities")
        elif isinstance(meta, dict) and META + "protocolVersion" in meta:
            self.version, found = (
                meta[META + "protocolVersion"],
                meta.get(META + "clientCapabilities"),
            )
        else:
            return
        self.offered = found if isinstance(found, dict) else {}

    def say(self, message: Json | bytes) -> None:
        """Send the client something of the operator's own, after what is being sent."""
        self.say_later(0, message)

    def say_later(self, seconds: float, *messages: Json | bytes) -> None:
        """Send the client something after some seconds."""
        assert self._nursery is not None
        self._nursery.start_soon(self._say_later, seconds, messages)

    async def _say_later(self, seconds: float, messages: Iterable[Json | bytes]) -> None:
        await trio.sleep(seconds)
        for each in messages:
            await self._send(_encoded(each, None, b""))

    def flush_later(self, seconds: float, flush: Callable[[], Iterable[Json]]) -> None:
        """Send the client after some seconds what `flush` returns then."""
        assert self._nursery is not None
        self._nursery.start_soon(self._flush_later, seconds, flush)

    async def _flush_later(self, seconds: float, flush: Callable[[], Iterable[Json]]) -> None:
        await trio.sleep(seconds)
        for each in flush():
            await self._send(_encoded(each, None, b""))

    def tell_later(self, seconds: float, message: Json) -> None:
        """Send the server something after some seconds."""
        assert self._nursery is not None
        self._nursery.start_soon(self._tell_later, seconds, message)

    async def _tell_later(self, seconds: float, message: Json) -> None:
        await trio.sleep(seconds)
        await self._tell(_encoded(message, None, b""))


META: Final = "io.modelcontextprotocol/"


class LineReader:
    """The lines of a stream, without their ends. The rest after the last one is a line, too."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._buffered = bytearray()
        self._has_ended = False

    async def next(self) -> bytes | None:
        """Return the next line, or None at the end."""
        while True:
            end = self._buffered.find(b"\n")
            if end < 0 and self._has_ended:
                end = len(self._buffered)
                if not end:
                    return None
            if end >= 0:
                line = bytes(self._buffered[:end])
                del self._buffered[: end + 1]
                return line
            data = b""
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                data = bytes(await self._stream.receive_some())
            self._buffered += data
            self._has_ended = not data


def _decoded(line: bytes) -> Json | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _encoded(message: Json | bytes, original: Json | None, line: bytes) -> bytes:
    if message is original:
        return line + b"\n"
    if isinstance(message, bytes):
        return message
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class MutantProcess:
    """A mutant's process, as the fuzzer sees it."""

    pid = 0
    stderr_tail = b""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.returncode: int | None = None

    def describe(self, more: str = "") -> str:
        """Return the exit status, as of a process without stderr."""
        return "" if self.returncode is None else f" (exit status {self.returncode})"


class MutantTarget(CommandTarget):
    """A server, broken at a place, as a command.

    Attributes:
        starts: how many processes were started.
    """

    def __init__(
        self, serve: ServeStream, place: MutantPlace | None, nursery: trio.Nursery
    ) -> None:
        super().__init__(("mutant",), nursery, ahead=0)
        self.starts = 0
        self._serve_stream = serve
        self._mutant_place = place
        self._kept: Json = {}

    async def _hold(self, task_status: trio.TaskStatus[object]) -> None:
        self.starts += 1
        release = trio.Event()
        ours, theirs = memory_stream_pair()
        child = MutantProcess(ours)
        wrapper = Wrapper(theirs, self._serve_stream, self._mutant_place, self._kept)

        async def run() -> None:
            child.returncode = await wrapper.run()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            task_status.started((child, release))
            await release.wait()
            nursery.cancel_scope.cancel()


def changed(message: Json, pointer: str, value: Any = ...) -> Json:
    """Return a copy with another value at a place, or without it. Places are as `a/b/0`.

    A message that doesn't have the place is returned itself.
    """
    found = copy.deepcopy(message)
    *parents, last = pointer.split("/")
    at: Any = found
    for name in parents:
        at = _item(at, name)
    last = last.replace("~1", "/")
    if isinstance(at, list) and last.isdigit() and int(last) < len(at):
        if value is ...:
            del at[int(last)]
        else:
            at[int(last)] = value
    elif isinstance(at, dict) and (value is not ... or last in at):
        if value is ...:
            del at[last]
        else:
            at[last] = value
    else:
        return message
    return found


def _item(value: Any, name: str) -> Any:
    if isinstance(value, list) and name.isdigit() and int(name) < len(value):
        return value[int(name)]
    return value.get(name) if isinstance(value, dict) else None
