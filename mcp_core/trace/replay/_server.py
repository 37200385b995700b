"""A trace's server: it answers live requests with the recorded server's messages.

1. It takes messages and returns messages. A driver carries them, and calls `advance` at
   `next_deadline`.
2. Request ids, progress tokens and subscription ids are the live client's. Everything else is as
   recorded, even pseudonyms: the live client sends them back.
3. A request that isn't in the trace gets an error that names the most similar one, and is counted.
   The exceptions are requests that every server must answer: ping, and a probe of a server with a
   handshake.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.trace._ids import id_key
from mcp_core.trace._members import META, lookup

from ._differences import find_differences
from ._keys import format_pointer, matches_any, parse_pointer
from ._matching import TurnIndex
from ._recorded import (
    RecordedMessage,
    RecordedTrace,
    decode_message,
    describe_request,
    encode_message,
)
from ._turns import SUBSCRIPTION_ID, Turn, turns_of

if TYPE_CHECKING:
    from ._keys import Pointer
    from ._turns import ServerMessage

__all__ = ["ReplayOutput", "ReplayServer", "ReplaySession"]

_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_METHOD_NOT_FOUND: Final = -32601
_INTERNAL_ERROR: Final = -32603
_UNSUPPORTED_VERSION: Final = -32022
_VERSION: Final = f'"{META}protocolVersion"'.encode()
_MAX_MISSING: Final = 1_000  # requests that were not found and whose texts are kept
_MAX_NOTES: Final = 1_000
_MAX_POINTERS: Final = 5  # pointers in one text
_MAX_PLAYING: Final = 10_000  # requests of one session that wait for something


class ReplayOutput(Struct, frozen=True):
    """A message to send to the live client.

    Attributes:
        stream: the `stream` that `receive` got with the message's request; None for the stream that
            belongs to no request.
        data: the message, without a line feed.
        is_response: it is the response to a request that came with `stream`.
        status: the recorded response's HTTP status, 0 if it wasn't recorded over HTTP.
    """

    stream: Hashable
    data: bytes
    is_response: bool = False
    status: int = 0


class ReplayServer:
    """A trace's server, for any number of live sessions.

    Args:
        trace: the trace.
        pace: the recorded gaps between messages are multiplied by it; 0 for no gaps.
        ignore: JSON pointers to values in the client's messages that don't count, such as
            `/params/arguments/now`. `*` stands for any member.

    Raises:
        ValueError: one of `ignore` isn't a JSON pointer.

    Attributes:
        missing: texts about the live requests that aren't in the trace, the first 1,000.
        missing_count: how many such requests there were.
        found_count: how many live requests were answered from the trace.
        notes: texts about other differences, such as another answer to an elicitation.
        has_handshake: a session of the trace began with `initialize`.
        has_modern: the trace has requests without a handshake.
    """

    def __init__(
        self, trace: RecordedTrace, *, pace: float = 0.0, ignore: Iterable[str] = ()
    ) -> None:
        self.trace = trace
        self.ignore = [parse_pointer(each) for each in ignore]
        self.pace = pace
        self.missing: list[str] = []
        self.missing_count = 0
        self.found_count = 0
        self.notes: list[str] = []
        self.has_handshake = any(each.has_handshake for each in trace.sessions)
        self.has_modern = False
        self._requests: list[TurnIndex] = []
        self._notifications: list[TurnIndex] = []
        self._all_requests = self._index()
        self._prologues: list[Turn] = []
        self._numbers = {session: number for number, session in enumerate(trace.sessions)}
        for session in trace.sessions:
            self._add_session(turns_of(session), has_handshake=session.has_handshake)

    def __repr__(self) -> str:
        return f"<ReplayServer of {len(self._requests)} sessions, {self.missing_count} not found>"

    def _index(self) -> TurnIndex:
        return TurnIndex(
            hides_pseudonyms=self.trace.hides_pseudonyms,
            ignore=[each[1:] for each in self.ignore if each[:1] in (("params",), ("*",))],
        )

    def _add_session(self, turns: list[Turn], *, has_handshake: bool) -> None:
        requests, notifications = self._index(), self._index()
        self._requests.append(requests)
        self._notifications.append(notifications)
        self._prologues.append(turns[0])
        for turn in turns:
            message = turn.message
            if message is None or message.is_truncated:
                continue
            if message.kind == "request":
                requests.add(turn)
                self._all_requests.add(turn)
                # Servers with a handshake may leave the probe unanswered.
                is_probe = message.method == "server/discover" and turn.response is None
                is_modern = not has_handshake and _VERSION in message.data
                self.has_modern |= is_modern and not is_probe
            else:
                notifications.add(turn)

    def open(self) -> ReplaySession:
        """Begin a session with a live client."""
        return ReplaySession(self)

    # -- Used by sessions --------------------------------------------------------------------------

    def find(self, session: int, method: str, params: Any) -> Turn | None:
        """Return the turn that a live request of `session` repeats, or None.

        `method` and `params` are the request's.
        """
        found = self._requests[session].find(method, params) if self._requests else None
        if found is None or found.is_used:
            found = self._all_requests.find(method, params) or found
        return found

    def find_notification(self, session: int, method: str, params: Any) -> Turn | None:
        """Return the turn of a notification in `session` that wasn't repeated yet, or None.

        `method` and `params` are the notification's.
        """
        if not self._notifications:
            return None
        found = self._notifications[session].find(method, params)
        return None if found is None or found.is_used else found

    def prologue(self, session: int) -> Turn | None:
        """Return the turn of `session` that precedes all client messages."""
        return self._prologues[session] if self._prologues else None

    def note_missing(self, text: str) -> None:
        """Count a request that cannot be answered from the trace, and keep `text` about it."""
        self.missing_count += 1
        if len(self.missing) < _MAX_MISSING:
            self.missing.append(text)

    def note(self, text: str) -> None:
        """Keep `text` about another difference."""
        if len(self.notes) < _MAX_NOTES:
            self.notes.append(text)

    def describe_nearest(self, method: str, params: Any) -> tuple[str, dict[str, Any]]:
        """Return a text about the most similar recorded request, and the same as data.

        `method` and `params` are the live request's.
        """
        turn, differences = self._all_requests.nearest(method, params)
        if turn is None or turn.message is None:
            return "", {}
        message = turn.message
        recorded = describe_request(message.method, message.decode().get("params"))
        pointers = ["/params" + format_pointer(each.pointer) for each in differences]
        data = {"line": message.line, "request": recorded, "differences": pointers[:_MAX_POINTERS]}
        where = ", ".join(pointers[:_MAX_POINTERS])
        more = f" and {len(pointers) - _MAX_POINTERS} more" if len(pointers) > _MAX_POINTERS else ""
        text = f"; the nearest is {recorded} in line {message.line}"
        return text + (f", which differs at {where}{more}" if pointers else ""), data


class _PlayedTurn:
    """A turn that answers a live message, and how far it has come."""

    __slots__ = ("answered", "began", "index", "live_id", "live_token", "stream", "turn")

    def __init__(self, turn: Turn, stream: Hashable, live: Any, began: float) -> None:
        self.turn = turn
        self.stream = stream
        self.live_id = lookup(live, "id")
        self.live_token = lookup(live, "params", "_meta", "progressToken")
        self.began = began
        self.index = 0
        self.answered: set[int] = set()  # indices into `turn.items` of answered requests

    def due(self, item: ServerMessage, pace: float) -> float:
        """Return the time at which to send an item."""
        if not pace or self.turn.message is None:
            return -math.inf
        return self.began + (item.message.t - self.turn.message.t) * pace


class ReplaySession:
    """A session of `server` with one live client. `ReplayServer.open` makes it.

    Call `receive` with each message, and `advance` at `next_deadline`; then take
    `outputs_to_send`. The `now` of its methods is a monotonic time in seconds.
    """

    def __init__(self, server: ReplayServer) -> None:
        self._server = server
        self._session = 0
        self._playing: list[_PlayedTurn] = []
        self._by_turn: dict[Turn, _PlayedTurn] = {}
        self._asked: dict[int | str, tuple[_PlayedTurn, int]] = {}
        self._used_ids: set[int | str] = set()
        self._fresh_ids = count(1)
        self._live_ids: dict[int | str, int | str] = {}  # our requests' ids, by recorded id
        self._outputs: deque[ReplayOutput] = deque()

    def __repr__(self) -> str:
        return f"<ReplaySession {self._session}, {len(self._playing)} turns under way>"

    def begin(self, now: float) -> None:
        """Send what the server sent before any client message."""
        prologue = self._server.prologue(self._session)
        if prologue is not None and not prologue.is_used:
            self._play(prologue, None, None, now)
            self._run(now)

    def receive(self, data: bytes, now: float, stream: Hashable = None) -> None:
        """Take a message from the live client, or a batch.

        Args:
            data: its bytes.
            now: the time.
            stream: any object that stands for the responses' stream, such as an HTTP exchange. Each
                output has it.
        """
        decoded = decode_message(data)
        if decoded is None or decoded == []:
            code, text = (
                (_INVALID_REQUEST, "the batch is empty")
                if decoded == []
                else (
                    _PARSE_ERROR,
                    "the message is not JSON",
                )
            )
            self._respond_error(stream, None, code, text)
            return
        for each in decoded if isinstance(decoded, list) else [decoded]:
            self._receive_one(each, now, stream)
        self._run(now)

    def advance(self, now: float) -> None:
        """Send what is due at `now`."""
        self._run(now)

    def disconnected(self, stream: Hashable) -> None:
        """Drop the messages for `stream`: the client has closed it."""
        self._playing = [each for each in self._playing if each.stream != stream]

    @property
    def next_deadline(self) -> float:
        """The next output's time, or infinity."""
        pace = self._server.pace
        return min(
            (
                each.due(each.turn.items[each.index], pace)
                for each in self._playing
                if self._is_free(each)
            ),
            default=math.inf,
        )

    def outputs_to_send(self) -> list[ReplayOutput]:
        """Return the messages to send, in their order."""
        found = list(self._outputs)
        self._outputs.clear()
        return found

    # -- What arrives ------------------------------------------------------------------------------

    def _receive_one(self, message: Any, now: float, stream: Hashable) -> None:
        if not isinstance(message, dict):
            self._respond_error(stream, None, _INVALID_REQUEST, "the message is not an object")
            return
        method = message.get("method")
        if isinstance(method, str) and "id" in message:
            self._receive_request(message, method, now, stream)
        elif isinstance(method, str):
            self._receive_notification(message, method, now)
        elif "id" in message and ("result" in message or "error" in message):
            self._receive_response(message)
        else:
            self._respond_error(stream, None, _INVALID_REQUEST, "the message has no method")

    def _receive_request(
        self, message: dict[str, Any], method: str, now: float, stream: Hashable
    ) -> None:
        id = message["id"]
        params = message.get("params")
        if id_key(id) is None:
            self._respond_error(stream, None, _INVALID_REQUEST, "the id is neither text nor number")
            return
        turn = self._server.find(self._session, method, params)
        is_answered = turn is not None and turn.response is not None
        if method == "server/discover" and not is_answered and not self._server.has_modern:
            turn = None  # the recorded server ended at the probe, or was silent
        if turn is not None and len(self._playing) < _MAX_PLAYING:
            self._answer(turn, message, now, stream)
        elif method == "ping":
            self._respond(stream, {"jsonrpc": "2.0", "id": id, "result": {}})
        elif method == "server/discover" and not self._server.has_modern:
            self._respond_error(stream, id, _METHOD_NOT_FOUND, "Method not found")
        elif method == "initialize" and not self._server.has_handshake:
            modern = [name for name, each in DIALECTS.items() if not each.stateful]
            requested = lookup(params, "protocolVersion")
            data = {"supported": modern, "requested": requested}
            text = "the trace has no handshake"
            self._respond_error(stream, id, _UNSUPPORTED_VERSION, text, data)
            self._server.note_missing(f"initialize: {text}")
        else:
            request = describe_request(method, params)
            nearest, data = self._server.describe_nearest(method, params)
            self._server.note_missing(f"{request}{nearest}")
            text = f"not in the trace: {request}{nearest}"
            self._respond_error(stream, id, _INTERNAL_ERROR, text, {"nearest": data or None})

    def _answer(self, turn: Turn, message: dict[str, Any], now: float, stream: Hashable) -> None:
        if message["method"] == "initialize":
            self._session = self._server._numbers[turn.session]
        self._server.found_count += 1
        recorded = turn.message
        assert recorded is not None
        self._compare_inputs(recorded, message)
        response = turn.response
        problem = ""
        if response is not None and response.is_truncated:
            problem = (
                f"the trace has only the beginning of the response to {recorded.method} (line"
                f" {response.line}): record it with a higher limit of messages"
            )
        elif response is None and not turn.was_cancelled and not turn.is_long_lived:
            problem = (
                f"the trace has no response to {recorded.method} (line {recorded.line}): it ended"
                " before that"
            )
        self._play(turn, message, stream, now)
        if problem:
            self._server.note_missing(problem)
            self._respond_error(stream, message["id"], _INTERNAL_ERROR, problem)

    def _receive_notification(self, message: dict[str, Any], method: str, now: float) -> None:
        if method == "notifications/cancelled":
            id = lookup(message, "params", "requestId")
            self._playing = [each for each in self._playing if not _has_id(each, id)]
        turn = self._server.find_notification(self._session, method, message.get("params"))
        if turn is not None:
            self._play(turn, message, None, now)

    def _receive_response(self, message: dict[str, Any]) -> None:
        key = id_key(message["id"])
        found = None if key is None else self._asked.pop(key, None)
        if found is None:
            return
        played, index = found
        played.answered.add(index)
        answer = played.turn.items[index].answer
        if answer is not None:
            self._compare_answers(answer, message, played.turn.items[index].message)

    def _compare_answers(
        self, recorded: RecordedMessage, live: dict[str, Any], request: RecordedMessage
    ) -> None:
        members = recorded.decode()
        old = {key: members[key] for key in ("result", "error") if key in members}
        new = {key: live[key] for key in ("result", "error") if key in live}
        self._note_differences(recorded, old, new, request=request.method)

    def _compare_inputs(self, recorded: RecordedMessage, live: dict[str, Any]) -> None:
        """Compare the input that a call has in a later round, instead of responses."""
        old, new = (lookup(each, "params", "inputResponses") for each in (recorded.decode(), live))
        if old is not None and new is not None:  # otherwise it is another round
            found = ({"params": {"inputResponses": each}} for each in (old, new))
            self._note_differences(recorded, *found, request="input_required")

    def _note_differences(
        self, recorded: RecordedMessage, old: Any, new: Any, *, request: str
    ) -> None:
        """Note where the live client's response to `request` differs from the recorded one."""
        pointers = [
            format_pointer(each.pointer)
            for each in find_differences(old, new, (), self._is_ignored)
            if "_meta" not in each.pointer
        ]
        differences = [
            each for each in pointers if not any(map(each.startswith, recorded.redacted))
        ]
        if differences:
            where = ", ".join(differences[:_MAX_POINTERS])
            self._server.note(
                f"the client responds to {request} otherwise than in line {recorded.line}: {where}"
            )

    def _is_ignored(self, pointer: Pointer, old: Any, new: Any) -> bool:
        return matches_any(pointer, self._server.ignore)

    # -- What is sent ------------------------------------------------------------------------------

    def _play(self, turn: Turn, live: Any, stream: Hashable, now: float) -> None:
        turn.is_used = True
        played = _PlayedTurn(turn, stream, live, now)
        self._by_turn[turn] = played
        self._playing.append(played)

    def _is_free(self, played: _PlayedTurn) -> bool:
        """Return True if a turn's next item doesn't wait for a client response."""
        if played.index >= len(played.turn.items):
            return False
        gate = played.turn.items[played.index].waits_for
        if gate is None:
            return True
        return any(played.turn.items[each] is gate for each in played.answered)

    def _run(self, now: float) -> None:
        pace = self._server.pace
        for played in self._playing:
            items = played.turn.items
            while self._is_free(played) and played.due(items[played.index], pace) <= now:
                index = played.index
                played.index += 1
                self._send(played, index)
        self._playing = [each for each in self._playing if each.index < len(each.turn.items)]

    def _send(self, played: _PlayedTurn, index: int) -> None:
        item = played.turn.items[index]
        message = item.message
        if message.is_truncated:
            if message.kind != "response":
                self._server.note(f"line {message.line} was recorded in part: it is left out")
            return
        owner: _PlayedTurn | None = None
        if item.stream is not None:
            owner = played if item.stream is played.turn else self._by_turn.get(item.stream)
            if owner is None:
                return  # its subscription wasn't repeated
        stream = None if owner is None else owner.stream
        if message.kind == "junk":
            self._outputs.append(ReplayOutput(stream, message.data))
            return
        members = message.decode()
        if message.kind == "response":
            if owner is None or message is not owner.turn.response:
                return  # a response to no request, or a second response
            members["id"] = owner.live_id
        elif message.kind == "request":
            members["id"] = self._live_id(message.id)
            self._asked[members["id"]] = (played, index)
        if not self._adapt(members, message, owner):
            return
        self._outputs.append(
            ReplayOutput(
                stream, encode_message(members), message.kind == "response", message.status
            )
        )

    def _adapt(
        self, members: dict[str, Any], message: RecordedMessage, owner: _PlayedTurn | None
    ) -> bool:
        """Replace recorded ids and tokens by live ones. Return False without a live token."""
        params = members.get("params")
        if message.method == "notifications/progress" and isinstance(params, dict):
            if owner is None or owner.live_token is None:
                return False
            params["progressToken"] = owner.live_token
        elif message.method == "notifications/cancelled" and isinstance(params, dict):
            key = id_key(params.get("requestId"))
            if key is not None and key in self._live_ids:
                params["requestId"] = self._live_ids[key]
        meta = lookup(members, "params", "_meta") or lookup(members, "result", "_meta")
        if isinstance(meta, dict) and SUBSCRIPTION_ID in meta and owner is not None:
            meta[SUBSCRIPTION_ID] = owner.live_id
        return True

    def _live_id(self, recorded: int | str | None) -> int | str:
        """Return an id for a server request: the recorded one if it is free."""
        id: int | str = next(self._fresh_ids) if recorded is None else recorded
        while id in self._used_ids:
            id = f"replay-{next(self._fresh_ids)}"
        self._used_ids.add(id)
        if recorded is not None:
            self._live_ids[recorded] = id
        return id

    def _respond(self, stream: Hashable, members: dict[str, Any]) -> None:
        self._outputs.append(ReplayOutput(stream, encode_message(members), is_response=True))

    def _respond_error(
        self, stream: Hashable, id: Any, code: int, text: str, data: Any = None
    ) -> None:
        error = {"code": code, "message": text}
        if data is not None:
            error["data"] = data
        self._respond(stream, {"jsonrpc": "2.0", "id": id, "error": error})


def _has_id(played: _PlayedTurn, id: Any) -> bool:
    key = id_key(played.live_id)
    return key is not None and key == id_key(id) and type(played.live_id) is type(id)
