"""A scripted peer for tests: it sends and expects messages one by one.

1. It shares no code with the implementation under test, so that a bug cannot cancel itself out.
   Messages are plain dicts and `json`. Of the core it uses only the list of revisions, and whether
   each has a handshake.
2. An expected message must be the very next one. If the order doesn't matter, take messages as
   they come, with `receive` or `async for`.
3. A failure is an `AssertionError` that names what was expected, what came instead, and the
   messages so far. Every wait has a timeout.

Nothing is validated: it can send and receive invalid messages.
"""

from __future__ import annotations

import itertools
import json
from typing import Any, Final, Literal, Self

import trio
import trio.testing

from mcp_core import DIALECTS, LATEST, escape_text
from mcp_trio._nursery import open_quiet_nursery

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

# Seconds: enough for a busy machine, and less than the 30 s that a test often may take, so that a
# test which hangs says what is missing.
_TIMEOUT: Final = 20.0
_MOCK_CLOCK_TIMEOUT: Final = 3600.0  # with a mock clock: longer than any timeout under test
_SHOWN_MESSAGES: Final = 20  # the last messages of the transcript in the text of a failure, ...
_SHOWN_CHARACTERS: Final = 300  # ... and characters of each


class ScriptedPeer:
    """A peer that sends and receives what the test says, in one revision, one message a line.

    Messages are dicts as in JSON-RPC: `{"jsonrpc": "2.0", "id": 1, "method": "ping"}`. Nothing is
    validated.

    An expected message may take 20 seconds, or an hour of a `trio.testing.MockClock`; so may the
    sending of one. Every method that waits for a message raises `AssertionError` if none comes in
    that time, if another one comes, or if a line isn't a message. If the stream breaks, sending
    and receiving raise `trio.BrokenResourceError`. One task at a time may send, and one receive.

    Args:
        stream: an open stream to the implementation under test.
        version: the revision; default `mcp_core.LATEST`.

    Attributes:
        transcript: every line sent or received, in order, as `("sent", line)` or
            `("received", line)`. It may be changed.
        meta: what `request` adds as `_meta`: nothing in a revision with a handshake, otherwise
            protocol version, client info and client capabilities. It may be changed.

    *Resource handling*: only `aclose` closes the stream.

    Raises:
        ValueError: `version` isn't a revision of MCP.
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

    # -- Sending ---------------------------------------------------------------------------------

    async def send(self, *messages: Message | list[Any] | str | bytes) -> None:
        """Send `messages`, each as a line, in one write.

        Text and bytes are sent as they are, and a newline after them; dicts and lists as JSON.

        Raises:
            AssertionError: they could not be sent in time, because the other end doesn't read.
        """
        lines = [_line(message) for message in messages]
        self.transcript += [("sent", line) for line in lines]
        with trio.move_on_after(self._timeout()) as timeout:
            await self.stream.send_all(b"".join(line + b"\n" for line in lines))
        if timeout.cancelled_caught:
            raise self._failure("this could not be sent, for the other end does not read")

    async def request(
        self, method: str, params: Message | None = None, *, id: str | int | None = None
    ) -> Message:
        """Send a request and return it. Pass it to `expect_result` or `expect_error`.

        Args:
            method: its method, such as `"tools/list"`.
            params: its params. The members of `meta` are added to their `_meta`, except those that
                it has.
            id: its id; by default the next number, from 1.

        Raises:
            AssertionError: as `send`.
        """
        request: Message = {
            "jsonrpc": "2.0",
            "id": next(self._ids) if id is None else id,
            "method": method,
        }
        all_params = dict(params or {})
        if self.meta:
            all_params["_meta"] = self.meta | all_params.get("_meta", {})
        if all_params:
            request["params"] = all_params
        await self.send(request)
        return request

    async def notify(self, method: str, params: Message | None = None) -> None:
        """Send a notification of `method` with `params`; without `params` it has none.

        Raises:
            AssertionError: as `send`.
        """
        notification: Message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            notification["params"] = params
        await self.send(notification)

    async def answer(self, request: Message, result: Message | None = None) -> None:
        """Send the result of a received request.

        Args:
            request: the request, as `expect` or `receive` returned it.
            result: the members of the result; default none. An ordinary `resultType` is added if
                the revision requires one.

        Raises:
            AssertionError: as `send`.
        """
        result_type = {"resultType": self._dialect.result_type} if self._dialect.result_type else {}
        await self.send(
            {"jsonrpc": "2.0", "id": request["id"], "result": {**result_type, **(result or {})}}
        )

    async def send_error(
        self, request: Message, code: int = -32603, message: str = "refused", **more: Any
    ) -> None:
        """Send an error response to a received request.

        Args:
            request: the request, as `expect` or `receive` returned it.
            code: the error code; default "Internal error".
            message: the text of the error.
            more: further members of the error, such as `data=...`.

        Raises:
            AssertionError: as `send`.
        """
        error = {"code": code, "message": message, **more}
        await self.send({"jsonrpc": "2.0", "id": request["id"], "error": error})

    async def aclose(self) -> None:
        """Close the stream."""
        await self.stream.aclose()

    # -- Expecting -------------------------------------------------------------------------------

    async def expect(self, method: str, params: Message | None = None) -> Message:
        """Return the next message, which must be a request or notification of `method`.

        Its params must contain all members of `params` with equal values, and may contain more.

        Raises:
            AssertionError: another message, or none, has come.
        """
        message = await self._message(method)
        if message.get("method") != method:
            raise self._failure(f"expected {method}, got {_describe(message)}")
        received = message.get("params", {})
        if params is not None and not (
            isinstance(received, dict) and received | params == received
        ):
            raise self._failure(
                f"expected {method} with {_text(params)}, got it with {_text(received)}"
            )
        return message

    async def expect_result(self, request: Message) -> Any:
        """Return the result of `request`. The next message must be its response.

        Raises:
            AssertionError: another message, an error response, or nothing has come.
        """
        message = await self._response(request, "the result")
        if "result" not in message:
            raise self._failure(
                f"expected the result of {_describe(request)}, got {_describe(message)}"
            )
        return message["result"]

    async def expect_error(self, request: Message, code: int | None = None) -> Message:
        """Return the error of `request`: `code`, `message` and perhaps `data`.

        The next message must be its error response, with this `code` if one is given.

        Raises:
            AssertionError: another message, or none, has come.
        """
        wanted = "an error" if code is None else f"error {code}"
        message = await self._response(request, wanted)
        error = message.get("error")
        if not isinstance(error, dict) or code not in (None, error.get("code")):
            raise self._failure(
                f"expected {wanted} for {_describe(request)}, got {_describe(message)}"
            )
        return error

    async def result_of(self, method: str, params: Message | None = None) -> Any:
        """Send a request of `method` with `params`, as `request`, and return its result.

        The next message must be its response.

        Raises:
            AssertionError: as `expect_result`.
        """
        return await self.expect_result(await self.request(method, params))

    async def expect_silence(self) -> None:
        """Check that nothing has arrived by the time at which every task of this run waits.

        This is conclusive if both ends are tasks of this run. For a process at the other end it
        proves little.

        Raises:
            AssertionError: something has arrived, or the stream has ended.
        """
        ended = False

        async def listen() -> None:
            nonlocal ended
            data = await self.stream.receive_some()
            ended = not data
            self._buffer.extend(data)

        if not self._buffer:
            async with open_quiet_nursery() as nursery:
                nursery.start_soon(listen)
                await trio.testing.wait_all_tasks_blocked()
        if self._buffer:
            raise self._failure(
                f"expected silence, got {_cut(bytes(self._buffer).decode(errors='replace'))}"
            )
        if ended:
            raise self._failure("expected silence, but the stream has ended")

    async def expect_end(self) -> None:
        """Check that the stream ends before another message.

        Raises:
            AssertionError: a message has come, or there is no end in time.
        """
        line = await self.receive_line()
        if line is not None:
            raise self._failure("expected the end of the stream, got the last line of these")

    async def receive(self) -> Message:
        """Return the next message, of any kind.

        Raises:
            AssertionError: none has come, or the line isn't a JSON object.
        """
        return await self._message("a message")

    async def receive_line(self) -> bytes | None:
        """Return the next line without its newline, or None at the end of the stream.

        Raises:
            AssertionError: none has come, or the stream has ended within a line.
        """
        return await self._next_line("a line")

    def __aiter__(self) -> Self:
        """Iterate over all messages until the end of the stream."""
        return self

    async def __anext__(self) -> Message:
        line = await self._next_line("a message or the end of the stream")
        if line is None:
            raise StopAsyncIteration
        return self._decode(line, "a message")

    # -- Handshake -------------------------------------------------------------------------------

    async def open_as_client(
        self, capabilities: Message = _CLIENT_OFFERS, info: Message = _CLIENT_INFO
    ) -> Message:
        """Perform the client's part of the handshake, and return the result of `initialize`.

        In a revision without a handshake nothing is sent, and the result is empty: `info` and
        `capabilities` go into the `_meta` of each `request`.

        Args:
            capabilities: those to declare; default roots, sampling and elicitation.
            info: name and version of the client.

        Raises:
            AssertionError: the server did not respond as expected, or chose another revision.

        Source: basic/lifecycle.
        """
        if not self._dialect.stateful:
            self.meta |= {_META + "clientInfo": info, _META + "clientCapabilities": capabilities}
            return {}
        params = {"protocolVersion": self.version, "capabilities": capabilities, "clientInfo": info}
        result: Message = await self.result_of("initialize", params)
        negotiated = str(result.get("protocolVersion"))
        if DIALECTS.get(negotiated) is not self._dialect:
            raise self._failure(f"expected {self.version} to be accepted, got {negotiated}")
        await self.notify("notifications/initialized")
        return result

    async def open_as_server(
        self, capabilities: Message = _SERVER_OFFERS, info: Message = _SERVER_INFO
    ) -> Message:
        """Perform the server's part of the handshake, and return the client's opening request.

        In a revision without a handshake that is `server/discover`. In the others a client of
        several revisions may send that first, and gets the error "Method not found". A client that
        was given a `known_peer` sends neither: don't call this method then.

        Args:
            capabilities: those to declare; default tools, resources, prompts, completions and
                logging.
            info: name and version of the server.

        Raises:
            AssertionError: the client sent another message.

        Source: basic/lifecycle; 2026-07-28, server/discover.
        """
        if not self._dialect.stateful:
            request = await self.expect("server/discover")
            result = {
                "supportedVersions": [self.version],
                "capabilities": capabilities,
                "ttlMs": 0,
                "cacheScope": "private",
                "_meta": {_META + "serverInfo": info},
            }
            await self.answer(request, result)
            return request
        request = await self._message("initialize")
        if request.get("method") == "server/discover":
            await self.send_error(request, _METHOD_NOT_FOUND, "Method not found")
            request = await self._message("initialize")
        if request.get("method") != "initialize":
            raise self._failure(f"expected initialize, got {_describe(request)}")
        result = {"protocolVersion": self.version, "capabilities": capabilities, "serverInfo": info}
        await self.answer(request, result)
        await self.expect("notifications/initialized")
        return request

    # -- Reading ---------------------------------------------------------------------------------

    async def _next_line(self, wanted: str) -> bytes | None:
        with trio.move_on_after(self._timeout()) as timeout:
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
        if timeout.cancelled_caught:
            raise self._failure(f"expected {wanted}, but nothing came within {self._timeout():g} s")
        line, _, remainder = bytes(self._buffer).partition(b"\n")
        self._buffer[:] = remainder
        self.transcript.append(("received", line))
        return line

    async def _message(self, wanted: str) -> Message:
        line = await self._next_line(wanted)
        if line is None:
            raise self._failure(f"expected {wanted}, but the stream has ended")
        return self._decode(line, wanted)

    async def _response(self, request: Message, wanted: str) -> Message:
        message = await self._message(f"{wanted} for {_describe(request)}")
        id = message.get("id")
        # An id of another type is another id: 1 is neither "1" nor true, which equals 1 in Python.
        if "method" in message or id != request["id"] or type(id) is not type(request["id"]):
            raise self._failure(
                f"expected {wanted} for {_describe(request)}, got {_describe(message)}"
            )
        return message

    def _decode(self, line: bytes, wanted: str) -> Message:
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            raise self._failure(
                f"expected {wanted}, got a line that is not a JSON object: {_cut(repr(line))}"
            )
        return message

    def _timeout(self) -> float:
        mock = isinstance(trio.lowlevel.current_clock(), trio.testing.MockClock)
        return _MOCK_CLOCK_TIMEOUT if mock else _TIMEOUT

    def _failure(self, what: str) -> AssertionError:
        """Return the error of rule 3."""
        lines = [
            f"  {'->' if direction == 'sent' else '<-'} {_show(line)}"
            for direction, line in self.transcript[-_SHOWN_MESSAGES:]
        ]
        if len(self.transcript) > _SHOWN_MESSAGES:
            lines.insert(0, f"  ... {len(self.transcript) - _SHOWN_MESSAGES} more before")
        return AssertionError(
            "\n".join(
                [
                    escape_text(what, "\n"),
                    "so far (-> sent, <- received):",
                    *(lines or ["  nothing"]),
                ]
            )
        )


def _line(message: Message | list[Any] | str | bytes) -> bytes:
    if isinstance(message, bytes):
        return message
    return message.encode() if isinstance(message, str) else _text(message).encode()


def _text(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _show(line: bytes) -> str:
    # Escaped: the message of an exception is often printed to a terminal.
    return escape_text(_cut(line.decode(errors="replace")))


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "..."


def _describe(message: Message) -> str:
    """Return a short description of a message."""
    id = message.get("id")
    if "method" in message and "id" in message:
        return f"the request {message['method']} ({id!r})"
    if "method" in message:
        return f"the notification {message['method']}"
    if "error" in message:
        return f"for {id!r} the error {_cut(_text(message['error']))}"
    return f"the result of {id!r}" if "result" in message else _cut(_text(message))
