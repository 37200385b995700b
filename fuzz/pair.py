"""Plays a script to two `Connection`s back to back, with a user on each side and a list of what each still has to see.

The list is made when something is sent. A thing may fall out of it only for a race that the protocol knows: an answer or
progress for a request that its sender has given up, and a cancellation of a request that was answered before.

Steps, each a tuple with its name and who does it first:

    ask by method params result place progress      ask, on behalf of the running request at that place or of none; the
                                                    other side will answer with that result
    tell by method params place                     notify
    answer by place how                             answer a running request, as planned or otherwise
    progress by place value                         tell how far a running request is
    cancel by place                                 give up a request
    move by most                                    the wire brings at most so many bytes to the other side, all of them for 0
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mcp_core import (
    ALL,
    DIALECTS,
    NEED_DATA,
    ConnectFailed,
    Connection,
    ConnectionClosed,
    Dialect,
    ErrorReceived,
    Event,
    InputRequested,
    LocalProtocolError,
    Method,
    NotificationReceived,
    PeerError,
    PeerReady,
    ProgressReceived,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    Role,
    State,
)
from mcp_core import types as t

from .books import ENDED
from .talk import Step, config_of
from .values import encoded, example

__all__ = ["Case", "Pair", "common"]

# revisions of the client and of the server; what both do; who ends it
Case: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], list[Step], str]

CLIENT, SERVER = Role.CLIENT, Role.SERVER
SIDES: Final = {"client": CLIENT, "server": SERVER}


def common(client: Sequence[str], server: Sequence[str]) -> str | None:
    """The revision in which two sides meet, by the specification: a stateless one if there is one; else the client names
    its newest, and the server agrees or names its own newest (basic/lifecycle, basic/versioning)."""
    newest_first = [version for version in ALL if version in client]
    modern = [version for version in newest_first if not DIALECTS[version].stateful and version in server]
    if modern:
        return modern[0]
    mine = [version for version in newest_first if DIALECTS[version].stateful]
    theirs = [version for version in ALL if version in server and DIALECTS[version].stateful]
    if not mine or not theirs:
        return None
    answered = mine[0] if mine[0] in theirs else theirs[0]
    return answered if answered in mine else None


class Ask(NamedTuple):
    """A request that waits for its answer: whose it is, and what the other side has been told to answer."""

    token: int
    related: int | str | None
    row: Method
    result: Mapping[str, Any]


class Side:
    """One connection, what its user holds, and what it still has to see."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn
        self.asked: dict[int | str, Ask] = {}
        self.running: dict[int | str, bool] = {}  # the peer's requests; True means cancelled
        self.awaits: deque[tuple[Any, ...]] = deque()
        self.wire = b""  # what it said and the other side has not got yet

    def is_moot(self, fact: tuple[Any, ...]) -> bool:
        """Whether a fact of the list may pass unseen."""
        kind, id = fact[:2]
        if kind == "cancel":
            return self.running.get(id) is not False
        return kind in ("result", "error", "input", "progress") and id not in self.asked


class Pair:
    """One play of a script."""

    def __init__(self, case: Case) -> None:
        client, server, self._steps, self._end = case
        self._version = common(client, server)
        self.sides = {
            CLIENT: Side(Connection(CLIENT, config_of(CLIENT, client))),
            SERVER: Side(Connection(SERVER, config_of(SERVER, server))),
        }
        self.outcomes: set[str] = set()
        self._token = 0

    def play(self) -> None:
        """Play it all.

        Raises:
            AssertionError: a side saw something else than the other sent.
            Exception: a connection raised what it does not declare.
        """
        if not self._opened():
            return
        for step in self._steps:
            _STEPS[step[0]](self, SIDES[step[1]], *step[2:])
        if self._end:
            self._close(SIDES[self._end])
        else:
            self._work_off()
            self._close(CLIENT)
        for side in self.sides.values():
            assert repr(side.conn).endswith(" 0 in flight, 0 calls, 0 bytes queued>"), repr(side.conn)

    @property
    def _dialect(self) -> Dialect:
        assert self._version is not None
        return DIALECTS[self._version]

    def _opened(self) -> bool:
        client, server = self.sides[CLIENT], self.sides[SERVER]
        client.conn.open(0.0)
        seen: dict[Role, list[Event]] = {CLIENT: [], SERVER: []}
        while client.conn.queued() or server.conn.queued():
            for role in Role:
                data = self.sides[role].conn.data_to_send()
                if data:  # nothing at all would be the end
                    self.sides[role.other].conn.receive_data(data, 0.0)
                    seen[role.other] += self._events(role.other)
        self.outcomes.add(f"opens in {self._version}")
        if self._version is None:
            (closed,) = seen[CLIENT]
            assert isinstance(closed, ConnectionClosed)
            assert isinstance(closed.error, ConnectFailed)
            assert client.conn.state is State.CLOSED
            return False
        ready = [event for event in seen[CLIENT] if isinstance(event, PeerReady)]
        assert ready == seen[CLIENT]
        assert [event.peer.dialect for event in ready] == [self._dialect]
        met = [event.peer.dialect for event in seen[SERVER] if isinstance(event, PeerReady)]
        assert met == ([self._dialect] if self._dialect.stateful else [])
        return True

    # -- What the sides do ---------------------------------------------------------------------------------------------

    def _ask(
        self,
        by: Role,
        method: str,
        params: Mapping[str, Any],
        result: Mapping[str, Any],
        place: int | None,
        progress: bool,
    ) -> None:
        side, row = self.sides[by], self._dialect.receives[by.other].get(method)
        if row is None:
            return
        self._token += 1
        related = self._running_at(side, place)
        value = row.read_params(encoded(params))
        try:
            id = side.conn.send_request(method, value, token=self._token, related=related, progress=progress)
        except LocalProtocolError:
            # A server of the stateless era asks nothing.
            assert by is SERVER or related is not None
            return
        side.asked[id] = Ask(self._token, related, row, result)
        self.sides[by.other].awaits.append(("request", id, method, self._told(value)))

    def _tell(self, by: Role, method: str, params: Mapping[str, Any], place: int | None) -> None:
        side, row = self.sides[by], self._dialect.receives[by.other].get(method)
        if row is None:
            return
        value = row.read_params(encoded(params))
        try:
            side.conn.send_notification(method, value, related=self._running_at(side, place))
        except LocalProtocolError:
            return
        self.sides[by.other].awaits.append(("notification", method, self._told(value)))

    def _answer(self, by: Role, place: int, how: str) -> None:
        side = self.sides[by]
        id = self._running_at(side, place)
        if id is not None:
            self._answer_running(by, id, how)

    def _answer_running(self, by: Role, id: int | str, how: str) -> None:
        side, other = self.sides[by], self.sides[by.other]
        cancelled = side.running.pop(id)
        ask = other.asked.get(id)
        fact: tuple[Any, ...]
        if how == "error" or ask is None:
            fact = ("error", id, -32000, "no\né")
            sent = side.conn.send_error(id, t.ErrorData(code=-32000, message="no\né", data=[1]))
        elif how == "input" and ask.row.input_ok and self._dialect.result_type:
            fact = ("input", id, "state")
            asking = t.InputRequiredResult(request_state="state", result_type="input_required")
            sent = side.conn.send_result(id, asking)
        else:
            kind = ask.row.result
            assert kind is not None
            value = example(kind) if how == "least" else ask.row.read_result(encoded(ask.result))
            fact = ("result", id, self._told(value))
            sent = side.conn.send_result(id, value)
        assert sent is not cancelled
        if sent:
            self._drop_nested(by, id)
            other.awaits.append(fact)

    def _progress(self, by: Role, place: int, value: float) -> None:
        side = self.sides[by]
        id = self._running_at(side, place)
        if id is not None and side.conn.send_progress(id, value, 10, "m"):
            message = None if self._dialect.lacks(t.ProgressParams, "message") else "m"
            self.sides[by.other].awaits.append(("progress", id, value, message))

    def _cancel(self, by: Role, place: int) -> None:
        side = self.sides[by]
        if side.asked:
            id = list(side.asked)[place % len(side.asked)]
            side.conn.send_cancel(id, "no more")
            del side.asked[id]
            self.sides[by.other].awaits.append(("cancel", id))

    def _drop_nested(self, by: Role, parent: int | str) -> None:
        """What `by` asked on behalf of a request that is over is cancelled by the connection itself."""
        side = self.sides[by]
        for id, ask in list(side.asked.items()):
            if ask.related == parent and type(ask.related) is type(parent):
                del side.asked[id]
                self.sides[by.other].awaits.append(("cancel", id))

    def _running_at(self, side: Side, place: int | None) -> int | str | None:
        if place is None or not side.running:
            return None
        return list(side.running)[place % len(side.running)]

    def _told(self, value: Struct) -> Any:
        """What of a value reaches the other side, as JSON: `_meta` and the kind of a result are added on the way."""
        changes = {name: None for name in ("meta", "result_type") if hasattr(value, name)}
        return json.loads(self._dialect.encode(replace(value, **changes)))

    # -- The wire ------------------------------------------------------------------------------------------------------

    def _move(self, by: Role, most: int) -> None:
        """Bring at most so many bytes to the other side; all of them for 0."""
        side, other = self.sides[by], self.sides[by.other]
        side.wire += side.conn.data_to_send()
        data, side.wire = (side.wire[:most], side.wire[most:]) if most else (side.wire, b"")
        if data:
            other.conn.receive_data(data, 0.0)
            for event in self._events(by.other):
                self._see(by.other, event)
        if not side.wire:
            for fact in other.awaits:
                assert other.is_moot(fact), f"the {by.other.value} has not seen {fact}"
            other.awaits.clear()

    def _events(self, role: Role) -> list[Event]:
        conn = self.sides[role].conn
        events: list[Event] = []
        while (event := conn.next_event()) is not NEED_DATA:
            assert len(events) < 1_000
            events.append(event)  # type: ignore[arg-type]  # PAUSED is not reached with so little
        return events

    def _see(self, role: Role, event: Event) -> None:
        side = self.sides[role]
        self.outcomes.add(f"{role.value} {type(event).__name__}")
        fact = self._fact(event)
        while True:
            assert side.awaits, f"the {role.value} sees {fact}, which nobody sent"
            awaited = side.awaits.popleft()
            if awaited == fact:
                break
            assert side.is_moot(awaited), f"the {role.value} sees {fact} instead of {awaited}"
        if isinstance(event, RequestReceived):
            side.running[event.id] = False
        elif isinstance(event, RequestCancelled):
            side.running[event.id] = True
            self._drop_nested(role, event.id)
        elif isinstance(event, ResultReceived | ErrorReceived | InputRequested):
            assert side.asked.pop(event.id).token == event.token
        elif isinstance(event, ProgressReceived):
            assert side.asked[event.id].token == event.token

    def _fact(self, event: Event) -> tuple[Any, ...]:
        match event:
            case RequestReceived():
                assert event.peer.dialect is self._dialect
                return "request", event.id, event.method.name, self._told(event.params)
            case NotificationReceived():
                return "notification", event.method.name, self._told(event.params)
            case RequestCancelled():
                return "cancel", event.id
            case ResultReceived():
                return "result", event.id, self._told(event.result)
            case InputRequested():
                return "input", event.id, event.state
            case ProgressReceived():
                return "progress", event.id, event.progress, event.message
            case ErrorReceived(error=PeerError() as error):
                return "error", event.id, error.code, error.message
            case _:
                raise AssertionError(f"nobody did anything that leads to {event}")

    # -- The end -------------------------------------------------------------------------------------------------------

    def _work_off(self) -> None:
        """Answer everything and bring it over, until nobody has more to say; then nothing is left of it."""
        for _ in range(3):
            for role in Role:
                self._move(role, 0)
            for role, side in self.sides.items():
                for id in list(side.running):
                    self._answer_running(role, id, "least")
        for role in Role:
            self._move(role, 0)
        for role, side in self.sides.items():
            assert not side.asked, f"the {role.value} still waits for {side.asked}"
            assert not side.running
            assert side.conn.in_flight == 0

    def _close(self, by: Role) -> None:
        side, other = self.sides[by], self.sides[by.other]
        # Who closes tells the other side what need not be worked on any more.
        other.awaits += [("cancel", id) for id in side.asked]
        side.conn.close()
        self._see_end(side, self._events(by))
        self._move(by, 0)
        other.conn.receive_data(b"", 0.0)
        self._see_end(other, self._events(by.other))
        # Who was asked may still answer, and knows by the result whether that was said.
        for id, cancelled in list(other.running.items()):
            assert other.conn.send_error(id, t.ErrorData(code=1, message="late")) is not cancelled
        other.running.clear()
        other.conn.close()
        assert self._events(by.other) == []
        assert other.conn.state is State.CLOSED
        for each in (side, other):
            for id in list(each.running):
                assert not each.conn.send_error(id, t.ErrorData(code=1, message="late"))
            each.conn.data_to_send()

    def _see_end(self, side: Side, events: list[Event]) -> None:
        *cancelled, closed = events
        for event in cancelled:
            assert isinstance(event, RequestCancelled)
            assert event.reason == ENDED
            assert side.running[event.id] is False
            side.running[event.id] = True
        assert isinstance(closed, ConnectionClosed)
        assert closed.lost == [ask.token for ask in side.asked.values()]
        assert side.conn.state in (State.CLOSED, State.CLOSING)
        assert side.conn.state is State.CLOSING or all(side.running.values())


_STEPS: Final[Mapping[str, Callable[..., None]]] = {
    "ask": Pair._ask,
    "tell": Pair._tell,
    "answer": Pair._answer,
    "progress": Pair._progress,
    "cancel": Pair._cancel,
    "move": Pair._move,
}
