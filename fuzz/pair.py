"""Play a script to two joined `Connection`s, and check that each receives what the other sends.

Each side has a list of expected facts, appended when something is sent. A fact may be skipped only
for a race that the protocol allows: a response or progress for a request that its sender cancelled,
and a cancellation of a request that was already answered.

Steps, each a tuple with its name and the side that acts:

    request by method params result place progresssend a request, for a running one or None;
                                                the other side responds with that result
    notify by method params place               send a notification
    respond by place how                        answer a running request, as planned or otherwise
    progress by place value                     report progress of a running request
    cancel by place                             cancel a request
    transfer by maximum                         move at most so many bytes; 0: all of them
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from fuzz.connection_model import CLOSED_REASON
from fuzz.connection_script import Step, config_of
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
    TaskCreated,
)
from mcp_core import types as t
from mcp_trio.oracle.strategies._values import encoded, example

__all__ = ["Case", "PairScript", "negotiated_version"]

# revisions of the client and of the server; the steps; the side that closes, "" for neither
Case: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], list[Step], str]

CLIENT, SERVER = Role.CLIENT, Role.SERVER
SIDES: Final = {"client": CLIENT, "server": SERVER}


def negotiated_version(client: Sequence[str], server: Sequence[str]) -> str | None:
    """Return the revision that two sides negotiate, or None.

    A common stateless revision wins. Otherwise the client proposes its newest, and the server
    accepts it or proposes its own newest (basic/lifecycle, basic/versioning).
    """
    newest_first = [version for version in ALL if version in client]
    modern = [
        version for version in newest_first if not DIALECTS[version].stateful and version in server
    ]
    if modern:
        return modern[0]
    stateful = [version for version in newest_first if DIALECTS[version].stateful]
    offered = [version for version in ALL if version in server and DIALECTS[version].stateful]
    if not stateful or not offered:
        return None
    answer = stateful[0] if stateful[0] in offered else offered[0]
    return answer if answer in stateful else None


class AwaitedRequest(NamedTuple):
    """A request without a response, and the result with which the other side will respond."""

    token: int
    related: int | str | None
    row: Method
    result: Mapping[str, Any]


class Side:
    """One connection, the requests of its user, and the facts that it has yet to receive."""

    def __init__(self, conn: Connection) -> None:
        self.conn = conn
        self.pending: dict[int | str, AwaitedRequest] = {}
        self.running: dict[int | str, bool] = {}  # the peer's requests; True means cancelled
        self.expected: deque[tuple[Any, ...]] = deque()
        self.wire = b""  # bytes sent that the other side has not received yet

    def is_moot(self, fact: tuple[Any, ...]) -> bool:
        """True if the side may never see an expected fact."""
        kind, id = fact[:2]
        if kind == "cancel":
            return self.running.get(id) is not False
        return kind in ("result", "error", "input", "progress") and id not in self.pending


class PairScript:
    """One run of a script."""

    def __init__(self, case: Case) -> None:
        client, server, self._steps, self._end = case
        self._version = negotiated_version(client, server)
        self.sides = {
            CLIENT: Side(Connection(CLIENT, config_of(CLIENT, client))),
            SERVER: Side(Connection(SERVER, config_of(SERVER, server))),
        }
        self.outcomes: set[str] = set()
        self._token = 0

    def run(self) -> None:
        """Run the script.

        Raises:
            AssertionError: a side received something else than the other sent.
            Exception: a connection raised an undocumented exception.
        """
        if not self._open():
            return
        for step in self._steps:
            _STEPS[step[0]](self, SIDES[step[1]], *step[2:])
        if self._end:
            self._close(SIDES[self._end])
        else:
            self._respond_to_all()
            self._close(CLIENT)
        for side in self.sides.values():
            assert repr(side.conn).endswith(" 0 in flight, 0 calls, 0 bytes queued>"), repr(
                side.conn
            )

    @property
    def _dialect(self) -> Dialect:
        assert self._version is not None
        return DIALECTS[self._version]

    def _open(self) -> bool:
        client, server = self.sides[CLIENT], self.sides[SERVER]
        client.conn.open(0.0)
        seen: dict[Role, list[Event]] = {CLIENT: [], SERVER: []}
        while client.conn.queued() or server.conn.queued():
            for role in Role:
                data = self.sides[role].conn.data_to_send()
                if data:  # b"" would be the end of file
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

    # -- Steps -------------------------------------------------------------------------------------

    def _request(
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
            id = side.conn.send_request(
                method, value, token=self._token, related=related, progress=progress
            )
        except LocalProtocolError:
            # A stateless server sends no requests of its own.
            assert by is SERVER or related is not None
            return
        side.pending[id] = AwaitedRequest(self._token, related, row, result)
        self.sides[by.other].expected.append(("request", id, method, self._encoded_members(value)))

    def _notify(self, by: Role, method: str, params: Mapping[str, Any], place: int | None) -> None:
        side, row = self.sides[by], self._dialect.receives[by.other].get(method)
        if row is None:
            return
        value = row.read_params(encoded(params))
        try:
            side.conn.send_notification(method, value, related=self._running_at(side, place))
        except LocalProtocolError:
            return
        self.sides[by.other].expected.append(("notification", method, self._encoded_members(value)))

    def _respond(self, by: Role, place: int, how: str) -> None:
        side = self.sides[by]
        id = self._running_at(side, place)
        if id is not None:
            self._respond_to(by, id, how)

    def _respond_to(self, by: Role, id: int | str, how: str) -> None:
        side, other = self.sides[by], self.sides[by.other]
        cancelled = side.running.pop(id)
        request = other.pending.get(id)
        fact: tuple[Any, ...]
        if how == "error" or request is None:
            fact = ("error", id, -32000, "no\né")
            sent = side.conn.send_error(id, t.ErrorData(code=-32000, message="no\né", data=[1]))
        elif how == "input" and request.row.input_ok and self._dialect.result_type:
            fact = ("input", id, "state")
            asking = t.InputRequiredResult(request_state="state", result_type="input_required")
            sent = side.conn.send_result(id, asking)
        else:
            kind = request.row.result
            assert kind is not None
            value = (
                example(kind)
                if how == "minimal"
                else request.row.read_result(encoded(request.result))
            )
            fact = ("result", id, self._encoded_members(value))
            sent = side.conn.send_result(id, value)
        assert sent is not cancelled
        if sent:
            self._cancel_related(by, id)
            other.expected.append(fact)

    def _progress(self, by: Role, place: int, value: float) -> None:
        side = self.sides[by]
        id = self._running_at(side, place)
        if id is not None and side.conn.send_progress(id, value, 10, "m"):
            message = None if self._dialect.lacks(t.ProgressParams, "message") else "m"
            self.sides[by.other].expected.append(("progress", id, value, message))

    def _cancel(self, by: Role, place: int) -> None:
        side = self.sides[by]
        if side.pending:
            id = list(side.pending)[place % len(side.pending)]
            side.conn.send_cancel(id, "no more")
            del side.pending[id]
            self.sides[by.other].expected.append(("cancel", id))

    def _cancel_related(self, by: Role, parent: int | str) -> None:
        """Expect that the connection cancels what `by` sent on behalf of an ended request."""
        side = self.sides[by]
        for id, request in list(side.pending.items()):
            if request.related == parent and type(request.related) is type(parent):
                del side.pending[id]
                self.sides[by.other].expected.append(("cancel", id))

    def _running_at(self, side: Side, place: int | None) -> int | str | None:
        if place is None or not side.running:
            return None
        return list(side.running)[place % len(side.running)]

    def _encoded_members(self, value: Struct) -> Any:
        """Return the members of a value that reach the other side, as JSON.

        `_meta` and the type of a result are added on the way.
        """
        changes = {name: None for name in ("meta", "result_type") if hasattr(value, name)}
        return json.loads(self._dialect.encode(replace(value, **changes)))

    # -- The wire ----------------------------------------------------------------------------------

    def _transfer(self, by: Role, maximum: int) -> None:
        """Move at most `maximum` bytes to the other side; 0 means all of them."""
        side, other = self.sides[by], self.sides[by.other]
        side.wire += side.conn.data_to_send()
        data, side.wire = (
            (side.wire[:maximum], side.wire[maximum:]) if maximum else (side.wire, b"")
        )
        if data:
            other.conn.receive_data(data, 0.0)
            for event in self._events(by.other):
                self._check_event(by.other, event)
        if not side.wire:
            for fact in other.expected:
                assert other.is_moot(fact), f"the {by.other.value} has not received {fact}"
            other.expected.clear()

    def _events(self, role: Role) -> list[Event]:
        conn = self.sides[role].conn
        events: list[Event] = []
        while (event := conn.next_event()) is not NEED_DATA:
            assert len(events) < 1_000
            events.append(event)  # type: ignore[arg-type]  # the limits are too high for PAUSED
        return events

    def _check_event(self, role: Role, event: Event) -> None:
        side = self.sides[role]
        self.outcomes.add(f"{role.value} {type(event).__name__}")
        fact = self._fact(event)
        while True:
            assert side.expected, f"the {role.value} receives {fact}, which was not sent"
            expected = side.expected.popleft()
            if expected == fact:
                break
            assert side.is_moot(expected), f"the {role.value} receives {fact} instead of {expected}"
        if isinstance(event, RequestReceived):
            side.running[event.id] = False
        elif isinstance(event, RequestCancelled):
            side.running[event.id] = True
            self._cancel_related(role, event.id)
        elif isinstance(event, ResultReceived | ErrorReceived | InputRequested | TaskCreated):
            assert side.pending.pop(event.id).token == event.token
        elif isinstance(event, ProgressReceived):
            assert side.pending[event.id].token == event.token

    def _fact(self, event: Event) -> tuple[Any, ...]:
        match event:
            case RequestReceived():
                assert event.peer.dialect is self._dialect
                return "request", event.id, event.method.name, self._encoded_members(event.params)
            case NotificationReceived():
                return "notification", event.method.name, self._encoded_members(event.params)
            case RequestCancelled():
                return "cancel", event.id
            case ResultReceived():
                return "result", event.id, self._encoded_members(event.result)
            case InputRequested():
                return "input", event.id, event.state
            case ProgressReceived():
                return "progress", event.id, event.progress, event.message
            case ErrorReceived(error=PeerError() as error):
                return "error", event.id, error.code, error.message
            case _:
                raise AssertionError(f"no step leads to {event}")

    # -- The end -----------------------------------------------------------------------------------

    def _respond_to_all(self) -> None:
        """Answer and transfer everything, then check that nothing is left."""
        for _ in range(3):
            for role in Role:
                self._transfer(role, 0)
            for role, side in self.sides.items():
                for id in list(side.running):
                    self._respond_to(role, id, "minimal")
        for role in Role:
            self._transfer(role, 0)
        for role, side in self.sides.items():
            assert not side.pending, f"the {role.value} still waits for {side.pending}"
            assert not side.running
            assert side.conn.in_flight == 0

    def _close(self, by: Role) -> None:
        side, other = self.sides[by], self.sides[by.other]
        # The closing side cancels its pending requests.
        other.expected += [("cancel", id) for id in side.pending]
        side.conn.close()
        self._check_closed_events(side, self._events(by))
        self._transfer(by, 0)
        other.conn.receive_data(b"", 0.0)
        self._check_closed_events(other, self._events(by.other))
        # The other side may still respond, and the return value says whether the response was
        # queued.
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

    def _check_closed_events(self, side: Side, events: list[Event]) -> None:
        *cancelled, closed = events
        for event in cancelled:
            assert isinstance(event, RequestCancelled)
            assert event.reason == CLOSED_REASON
            assert side.running[event.id] is False
            side.running[event.id] = True
        assert isinstance(closed, ConnectionClosed)
        assert closed.lost == [request.token for request in side.pending.values()]
        assert side.conn.state in (State.CLOSED, State.CLOSING)
        assert side.conn.state is State.CLOSING or all(side.running.values())


_STEPS: Final[Mapping[str, Callable[..., None]]] = {
    "request": PairScript._request,
    "notify": PairScript._notify,
    "respond": PairScript._respond,
    "progress": PairScript._progress,
    "cancel": PairScript._cancel,
    "transfer": PairScript._transfer,
}
