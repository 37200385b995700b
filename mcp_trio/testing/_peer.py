"""The far end of a stream, in a test: messages are said and expected one by one, by hand.

Rules of this file:

1. It shares no code with the machine that it talks to, or a mistake of that would be made on both sides. Messages are plain
   dicts and `json`; of the core it knows only which revisions there are and whether they begin with a handshake.
2. What is expected has to be the very next message. Whoever does not care about the order takes messages as they come, by
   `receive` or `async for`.
3. What goes wrong is an `AssertionError` that tells what was expected, what came instead, and what was said until then.
   No wait is longer than a test may hang.

It refuses to judge: what is sent need not be legal, nor what is received.
"""

from __future__ import annotations

import itertools
import json
from typing import Any, Final, Literal, Self

import trio
import trio.testing

from mcp_core import DIALECTS, LATEST

__all__ = ["Message", "ScriptedPeer"]

Message = dict[str, Any]

_META: Final = "io.modelcontextprotocol/"
_CLIENT_OFFERS: Final[Message] = {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}
_SERVER_OFFERS: Final[Message] = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
    "logging": {},
}
_CLIENT_INFO: Final[Message] = {"name": "scripted client", "version": "1"}
_SERVER_INFO: Final[Message] = {"name": "scripted server", "version": "1"}
_METHOD_NOT_FOUND: Final = -32601

_PATIENCE: Final = 30.0  # seconds; a busy machine needs some, and a test that hangs should not need more
_VIRTUAL_PATIENCE: Final = 3600.0  # under a mock clock: longer than any time limit that is waited for
_TOLD: Final = 20  # messages of the transcript in the text of a failure, ...
_TOLD_OF_EACH: Final = 300  # ... and characters of each


class ScriptedPeer:
    """Somebody at the other end of `stream`, who does what the test says. `version` is the revision that it speaks.

    `transcript` has every line that crossed, in order, as `("sent", line)` or `("received", line)`. `meta` is what `request`
    puts into `_meta`: nothing in a revision with a handshake, else who asks, in which revision and able to do what. Both may
    be changed.

    What is expected may take 30 seconds to come, or an hour of a `trio.testing.MockClock`. Every method that waits for a message
    raises `AssertionError` if there is none in that time, if it is another, or if it is none at all.

    *Resource handling*: the stream is closed by `aclose` and otherwise left alone.
    """

    def __init__(self, stream: trio.abc.Stream, version: str = LATEST) -> None:
        dialect = DIALECTS.get(version)
        if dialect is None:
            raise ValueError(f"not a revision of MCP: {version}")
        self.stream = stream
        self.version = version
        self.transcript: list[tuple[Literal["sent", "received"], bytes]] = []
        self.meta: Message = {}
        self._dialect = dialect
        if not dialect.stateful:
            self.meta = {
                _META + "protocolVersion": version,
                _META + "clientInfo": _CLIENT_INFO,
                _META + "clientCapabilities": _CLIENT_OFFERS,
            }
        self._ids = itertools.count(1)
        self._buffer = bytearray()

    def __repr__(self) -> str:
        return f"<ScriptedPeer {self.version}, {len(self.transcript)} messages crossed>"

    # -- Saying something ---------------------------------------------------------------------------------------------------

    async def send(self, *messages: Message | list[Any] | str | bytes) -> None:
        """Send messages, one a line, in one write. Text and bytes are sent as they are; all else as JSON."""
        lines = [_line(message) for message in messages]
        self.transcript += [("sent", line) for line in lines]
        with trio.move_on_after(self._patience()) as patience:
            await self.stream.send_all(b"".join(line + b"\n" for line in lines))
        if patience.cancelled_caught:
            raise self._failure("this could not be sent, for the other end does not read")

    async def request(
        self, method: str, params: Message | None = None, *, id: str | int | None = None
    ) -> Message:
        """Ask, with the next number as id unless one is given; returns the request, to be given to `expect_result`."""
        request: Message = {"jsonrpc": "2.0", "id": next(self._ids) if id is None else id, "method": method}
        said = dict(params or {})
        if self.meta:
            said["_meta"] = self.meta | said.get("_meta", {})
        if said:
            request["params"] = said
        await self.send(request)
        return request

    async def notify(self, method: str, params: Message | None = None) -> None:
        """Tell something that has no answer."""
        told: Message = {"jsonrpc": "2.0", "method": method}
        await self.send(told if params is None else told | {"params": params})

    async def answer(self, request: Message, result: Message | None = None) -> None:
        """Answer a request that was received. If the revision wants a `resultType`, an ordinary one is added."""
        kind = {"resultType": self._dialect.result_type} if self._dialect.result_type else {}
        await self.send({"jsonrpc": "2.0", "id": request["id"], "result": {**kind, **(result or {})}})

    async def refuse(
        self, request: Message, code: int = -32603, message: str = "refused", **more: Any
    ) -> None:
        """Answer a request that was received by an error; `more` is `data=...`, if there is any."""
        error = {"code": code, "message": message, **more}
        await self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})

    async def aclose(self) -> None:
        """Hang up."""
        await self.stream.aclose()

    # -- Expecting something ------------------------------------------------------------------------------------------------

    async def expect(self, method: str, params: Message | None = None) -> Message:
        """The next message, which has to be this request or notification. Of `params` each has to be among its own."""
        message = await self._message(method)
        if message.get("method") != method:
            raise self._failure(f"expected {method}, got {_named(message)}")
        told = message.get("params", {})
        if params is not None and not (isinstance(told, dict) and told | params == told):
            raise self._failure(f"expected {method} with {_text(params)}, got it with {_text(told)}")
        return message

    async def expect_result(self, request: Message) -> Any:
        """The result of `request`, which has to be the next message."""
        message = await self._response(request, "the result")
        if "result" not in message:
            raise self._failure(f"expected the result of {_named(request)}, got {_named(message)}")
        return message["result"]

    async def expect_error(self, request: Message, code: int | None = None) -> Message:
        """The error that answers `request`, which has to be the next message, with this code if one is given."""
        wanted = "an error" if code is None else f"error {code}"
        message = await self._response(request, wanted)
        error = message.get("error")
        if not isinstance(error, dict) or code not in (None, error.get("code")):
            raise self._failure(f"expected {wanted} for {_named(request)}, got {_named(message)}")
        return error

    async def result_of(self, method: str, params: Message | None = None) -> Any:
        """Ask, and expect the result as the next message."""
        return await self.expect_result(await self.request(method, params))

    async def expect_silence(self) -> None:
        """Nothing has come, and nothing comes before every task of this run waits for something.

        That is all one can wait for if everybody is a task of this run. About a process at the other end it says little.
        """
        ended = False

        async def listen() -> None:
            nonlocal ended
            data = await self.stream.receive_some()
            ended = not data
            self._buffer.extend(data)

        if not self._buffer:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(listen)
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        if self._buffer:
            raise self._failure(f"expected silence, got {_cut(bytes(self._buffer).decode(errors='replace'))}")
        if ended:
            raise self._failure("expected silence, but the stream has ended")

    async def expect_end(self) -> None:
        """The end of the stream, before another message."""
        line = await self.receive_line()
        if line is not None:
            raise self._failure("expected the end of the stream, got the last line of these")

    async def receive(self) -> Message:
        """The next message, whatever it is."""
        return await self._message("a message")

    async def receive_line(self) -> bytes | None:
        """The next line without its newline, whatever it is; None at the end of the stream."""
        return await self._next_line("a line")

    def __aiter__(self) -> Self:
        """Every message until the end of the stream."""
        return self

    async def __anext__(self) -> Message:
        line = await self._next_line("a message or the end of the stream")
        if line is None:
            raise StopAsyncIteration
        return self._decoded(line, "a message")

    # -- Opening a conversation -----------------------------------------------------------------------------------------------

    async def open_as_client(
        self, capabilities: Message = _CLIENT_OFFERS, info: Message = _CLIENT_INFO
    ) -> Message:
        """Play the client's part of the handshake; returns the result of `initialize`.

        In a revision without a handshake nothing is said: each `request` says who asks. Then the result is empty.
        """
        if not self._dialect.stateful:
            self.meta |= {_META + "clientInfo": info, _META + "clientCapabilities": capabilities}
            return {}
        said = {"protocolVersion": self.version, "capabilities": capabilities, "clientInfo": info}
        result: Message = await self.result_of("initialize", said)
        agreed = str(result.get("protocolVersion"))
        if DIALECTS.get(agreed) is not self._dialect:
            raise self._failure(f"expected {self.version} to be accepted, got {agreed}")
        await self.notify("notifications/initialized")
        return result

    async def open_as_server(
        self, capabilities: Message = _SERVER_OFFERS, info: Message = _SERVER_INFO
    ) -> Message:
        """Play the server's part of the opening; returns the request with which the client began.

        In a revision without a handshake that is `server/discover`. In the others a client that knows both may ask for
        that first; it is told that there is no such method. A client that was given a verdict asks nothing.
        """
        if not self._dialect.stateful:
            asked = await self.expect("server/discover")
            found = {
                "supportedVersions": [self.version],
                "capabilities": capabilities,
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {_META + "serverInfo": info},
            }
            await self.answer(asked, found)
            return asked
        asked = await self._message("initialize")
        if asked.get("method") == "server/discover":
            await self.refuse(asked, _METHOD_NOT_FOUND, "Method not found")
            asked = await self._message("initialize")
        if asked.get("method") != "initialize":
            raise self._failure(f"expected initialize, got {_named(asked)}")
        opened = {"protocolVersion": self.version, "capabilities": capabilities, "serverInfo": info}
        await self.answer(asked, opened)
        await self.expect("notifications/initialized")
        return asked

    # -- Reading --------------------------------------------------------------------------------------------------------------

    async def _next_line(self, wanted: str) -> bytes | None:
        with trio.move_on_after(self._patience()) as patience:
            while b"\n" not in self._buffer:
                data = await self.stream.receive_some()
                if not data:
                    if self._buffer:
                        rest = _cut(bytes(self._buffer).decode(errors="replace"))
                        raise self._failure(
                            f"expected {wanted}, but the stream has ended in the middle of {rest}"
                        )
                    return None
                self._buffer += data
        if patience.cancelled_caught:
            raise self._failure(f"expected {wanted}, but nothing came within {self._patience():g} s")
        line, _, rest_of_it = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = rest_of_it
        self.transcript.append(("received", line))
        return line

    async def _message(self, wanted: str) -> Message:
        line = await self._next_line(wanted)
        if line is None:
            raise self._failure(f"expected {wanted}, but the stream has ended")
        return self._decoded(line, wanted)

    async def _response(self, request: Message, wanted: str) -> Message:
        message = await self._message(f"{wanted} for {_named(request)}")
        id = message.get("id")
        # An id of another type is another id: 1 is not "1", nor is true 1.
        if "method" in message or id != request["id"] or type(id) is not type(request["id"]):
            raise self._failure(f"expected {wanted} for {_named(request)}, got {_named(message)}")
        return message

    def _decoded(self, line: bytes, wanted: str) -> Message:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise self._failure(f"expected {wanted}, got what is no JSON object: {_cut(repr(line))}")
        return message

    def _patience(self) -> float:
        virtual = isinstance(trio.lowlevel.current_clock(), trio.testing.MockClock)
        return _VIRTUAL_PATIENCE if virtual else _PATIENCE

    def _failure(self, what: str) -> AssertionError:
        lines = [
            f"  {'->' if direction == 'sent' else '<-'} {_cut(line.decode(errors='replace'))}"
            for direction, line in self.transcript[-_TOLD:]
        ]
        if len(self.transcript) > _TOLD:
            lines.insert(0, f"  ... {len(self.transcript) - _TOLD} more before")
        return AssertionError("\n".join([what, "so far (-> sent, <- received):", *(lines or ["  nothing"])]))


def _line(message: Message | list[Any] | str | bytes) -> bytes:
    if isinstance(message, bytes):
        return message
    return message.encode() if isinstance(message, str) else _text(message).encode()


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _cut(text: str) -> str:
    return text if len(text) <= _TOLD_OF_EACH else text[:_TOLD_OF_EACH] + "..."


def _named(message: Message) -> str:
    """A message in a few words."""
    id = message.get("id")
    if "method" in message:
        return f"the {'request' if 'id' in message else 'notification'} {message['method']}" + (
            f" ({id!r})" if "id" in message else ""
        )
    if "error" in message:
        return f"for {id!r} the error {_cut(_text(message['error']))}"
    return f"the result of {id!r}" if "result" in message else _cut(_text(message))
