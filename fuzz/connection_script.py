"""Play a script to one `Connection`, as the peer and as our own side, and check it by
`fuzz.connection_model`.

Rule of this file: a step that is impossible at its time, such as a response without a request, does
nothing. Any list of steps is therefore a script, and stays one when steps are removed.

Steps, each a tuple that begins with its name. A place is an index, modulo the number of requests:

    receive data                                the peer sends these bytes
    receive_long over                           the peer sends a request over the limit
    receive_response place how                  the peer answers our request or reports progress
    receive_eof                                 the peer closes its side
    request method params place wants_progress  send a request, for a running one or None
    notify method params place                  send a notification
    log level place                             send a log message
    change what                                 report a change: a method, or the URI of a resource
    respond place how                           end a running request
    respond_id id                               end a request that may not exist
    progress place value                        report progress of a running request
    cancel place                                cancel a request of our side
    wait seconds                                advance the clock
    stop_reading, resume_reading                whether the peer reads our output
    open, shutdown, close
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Raw, Struct
from msgspec.structs import asdict, replace

from fuzz.connection_model import ConnectionModel, Id, SentRequest
from mcp_core import (
    DIALECTS,
    NEED_DATA,
    PAUSED,
    Config,
    Connection,
    ConnectionClosed,
    ConnectionLost,
    Event,
    Limits,
    LocalProtocolError,
    MessageRejected,
    Method,
    Rate,
    RemoteProtocolError,
    Role,
    State,
)
from mcp_core import types as t
from mcp_core.protocol.subscriptions._server import LISTS, Change
from mcp_trio.oracle.strategies._messages import (
    CLIENT_CAPABILITIES,
    SERVER_CAPABILITIES,
    meta_of,
    result_of,
)
from mcp_trio.oracle.strategies._values import encoded, example

__all__ = ["CUSTOM", "OPTIONS", "Case", "ConnectionScript", "Step", "config_of"]

T = TypeVar("T")

Step: TypeAlias = tuple[Any, ...]
# role; supported revisions; the revision of the opening before the script, "" for no opening;
# limits of requests in flight, requests waiting and bytes queued; some of `OPTIONS`; the script
Case: TypeAlias = tuple[
    str, tuple[str, ...], str, tuple[int, int, int], tuple[str, ...], list[Step]
]

# Messages arrive one by one instead of in a stream; tool calls are rate limited; keep-alive pings
# are on.
OPTIONS: Final = ("by_message", "rate_limit", "keep_alive")
CUSTOM: Final = "acme/x"
MAX_EVENTS: Final = 10_000
MESSAGE_LIMIT: Final = 3_000
BATCH_LIMIT: Final = 10
RATE: Final = Rate(per_second=0.5, burst=1)
KEEP_ALIVE: Final = 5.0


def config_of(
    role: Role,
    versions: Iterable[str],
    limits: Limits | None = None,
    keep_alive: float | None = None,
) -> Config:
    """Return the configuration of one side, with all capabilities and one custom method."""
    return Config(
        t.Implementation("fuzz", "0"),
        CLIENT_CAPABILITIES if role is Role.CLIENT else SERVER_CAPABILITIES,
        versions=versions,
        limits=limits,
        keep_alive=keep_alive,
        methods=[Method(CUSTOM, None, t.RequestParams, t.Result)],
    )


class ConnectionScript:
    """One run of a script. With `chunk`, bytes arrive in chunks of that size.

    `transcript` is everything visible from outside, `outcomes` names the kinds of it, and
    `received_bytes` counts the bytes of the peer.
    """

    def __init__(self, case: Case, chunk: int = 0) -> None:
        role, versions, self._start, (in_flight, waiting, queued), options, self._steps = case
        limits = Limits(
            message=MESSAGE_LIMIT,
            batch=BATCH_LIMIT,
            in_flight=in_flight,
            waiting=waiting,
            queued=queued,
            tool_calls=RATE if "rate_limit" in options else None,
        )
        config = config_of(
            Role(role), versions, limits, KEEP_ALIVE if "keep_alive" in options else None
        )
        self.conn = Connection(Role(role), config)
        self.model = ConnectionModel(self.conn)
        self._by_message = "by_message" in options
        self._chunk = chunk
        self.transcript: list[Any] = []
        self.outcomes: set[str] = set()
        self.received_bytes = 0
        self._last_received_at = 0.0
        self._now = 0.0
        self._partial = b""
        self._sent_bytes = 0
        self._tokens = 0
        self._previous_event = ""
        self._reading_output = True
        self._paused = False
        self._received_eof = False
        # The connection ended before it had read everything, so requests may stay unanswered.
        self._ended_early = False
        self._peer_abandoned = False  # closed because the peer does not read

    def run(self) -> None:
        """Run the script.

        Raises:
            AssertionError: the model and the connection disagree.
            Exception: the connection raised an undocumented exception.
        """
        self._open_conversation()
        for step in self._steps:
            _STEPS[step[0]](self, *step[1:])
            self._after_step()
        self._finish()

    # -- The peer ----------------------------------------------------------------------------------

    def _open_conversation(self) -> None:
        """Open the conversation as a well-behaved peer does."""
        version = self._start
        if not version:
            return
        if self.conn.role is Role.CLIENT:
            self.conn.open(self._now)
            self._process_events()
            for _ in range(2):
                if self.conn.peer is None:
                    self._respond_to_opening(version)
            assert self.conn.peer is not None
            assert self.conn.peer.dialect.version == version
        elif DIALECTS[version].stateful:
            params = {
                "protocolVersion": version,
                "capabilities": json.loads(DIALECTS[version].encode(CLIENT_CAPABILITIES)),
                "clientInfo": {"name": "peer", "version": "0"},
            }
            self._receive(
                _line({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params})
            )
            self._after_step()
            self._receive(_line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            assert self.conn.state is State.READY
        self._after_step()

    def _respond_to_opening(self, version: str) -> None:
        (request,) = (json.loads(line) for line in self._take_output())
        capabilities = json.loads(DIALECTS[version].encode(SERVER_CAPABILITIES))
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        if request["method"] == "initialize":
            info = {"name": "peer", "version": "0"}
            answer["result"] = {
                "protocolVersion": version,
                "capabilities": capabilities,
                "serverInfo": info,
            }
        elif DIALECTS[version].stateful:
            answer["error"] = {"code": -32601, "message": "no"}
        else:
            answer["result"] = result_of(
                version, {"supportedVersions": [version], "capabilities": capabilities}
            )
        self._receive(_line(answer))

    def _receive(self, data: bytes) -> None:
        if self._received_eof or not data:  # b"" would be the end of file
            return
        self.received_bytes += len(data)
        self._last_received_at = self._now
        # The request that must be cancelled, if the bytes are one message that is read at once.
        single = self._reads_at_once() and data.find(b"\n") == len(data) - 1
        cancelled = self.model.running_cancelled_by(data[:-1]) if single else None
        self._feed(data)
        if cancelled is not None and not self._paused:
            assert self.model.running[cancelled], f"no event for the cancellation of {cancelled!r}"

    def _reads_at_once(self) -> bool:
        """True if the connection reads the next bytes at once."""
        return not (self._received_eof or self._partial or self._paused or self.model.closed)

    def _feed(self, data: bytes) -> None:
        if self._by_message:
            data = data.removesuffix(b"\n")
            self.model.receive(data)
            self.conn.receive_message(data, self._now)
            self._process_events()
            return
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > MESSAGE_LIMIT:
            self.model.line_too_long(self._partial)
        for line in lines:
            self.model.receive(line.removesuffix(b"\r"))
        size = self._chunk or len(data) or 1
        for start in range(0, len(data), size):
            self.conn.receive_data(data[start : start + size], self._now)
            self._process_events()

    def _receive_long(self, over: int) -> None:
        line = encoded({"jsonrpc": "2.0", "id": "long", "method": "ping", "params": {"a": ""}})
        self._receive(
            line.replace(b'""', b'"%b"' % (b"x" * (MESSAGE_LIMIT + over - len(line)))) + b"\n"
        )

    def _receive_response(self, place: int, how: str) -> None:
        pending = self.model.pending
        id = _id_at(pending, place)
        if id is None:
            return
        request, read = pending[id], self._reads_at_once()
        if how.startswith("progress"):
            value = float(how.removeprefix("progress"))
            params = {"progressToken": id, "progress": value}
            self._receive(
                _line({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            )
            assert not (read and request.wants_progress) or self.model.last_progress[id] >= value, (
                "no event for progress"
            )
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": id}
        if how == "error":
            answer["error"] = {"code": -32001, "message": "no"}
        elif how == "input":
            answer["result"] = {"resultType": "input_required", "requestState": "s"}
        else:
            row, peer = _method_row(request.method), self.conn.peer
            assert peer is not None
            result = example(
                (row.result if row is not None else None) or t.Result, full=how == "full"
            )
            answer["result"] = json.loads(peer.dialect.encode(replace(result, result_type=None)))
        self._receive(_line(answer))
        assert not read or id not in pending, f"no event for the response to {id}"

    def _receive_eof(self) -> None:
        if not self._received_eof:
            self._received_eof = True
            self.conn.receive_data(b"", self._now)
            self._process_events()

    # -- Our own side ------------------------------------------------------------------------------

    def _try_send(self, send: Callable[[], T]) -> T | None:
        """Return what `send` returns, or None if it raised LocalProtocolError and queued
        nothing.
        """
        queued = self.conn.queued()
        try:
            return send()
        except LocalProtocolError as exc:
            assert self.conn.queued() == queued, "it raised, but queued output"
            self.outcomes.add(f"refused: {type(exc).__name__}")
            return None

    def _open(self) -> None:
        self._try_send(lambda: self.conn.open(self._now))
        self._process_events()

    def _request(
        self, method: str, params: Mapping[str, Any], place: int | None, progress: bool
    ) -> None:
        related = self._running_at(place)
        token = self._tokens = self._tokens + 1
        value, meta = _read_params(method, params), {"acme/a": 1}
        id = self._try_send(
            lambda: self.conn.send_request(
                method, value, token=token, related=related, meta=meta, progress=progress
            )
        )
        if id is not None:
            self.model.request_sent(id, SentRequest(token, related, progress, method))

    def _notify(self, method: str, params: Mapping[str, Any], place: int | None) -> None:
        value, related = _read_params(method, params), self._running_at(place)
        self._try_send(lambda: self.conn.send_notification(method, value, related=related))

    def _log(self, level: t.LoggingLevel, place: int | None) -> None:
        related, queued = self._running_at(place), self.conn.queued()
        sent = self._try_send(lambda: self.conn.send_log(level, {"é": "\n"}, related=related))
        assert bool(sent) is (self.conn.queued() > queued)
        assert not (sent and related is not None and self.model.running[related]), (
            "a cancelled request logs"
        )

    def _change(self, what: str) -> None:
        queued = self.conn.queued()
        sent = self.conn.send_change(LISTS.get(what) or Change(uri=what))
        assert sent or self.conn.queued() == queued, "a change without a subscriber was sent"
        assert not (sent and self.conn.role is Role.CLIENT)

    def _running_at(self, place: int | None) -> Id | None:
        return None if place is None else _id_at(self.model.running, place)

    def _respond(self, place: int, how: str) -> None:
        id = self._running_at(place)
        if id is not None:
            self._respond_to(id, how)

    def _respond_to(self, id: Id, how: str) -> None:
        cancelled, queued = self.model.running[id], self.conn.queued()
        kind = self.model.requests[id].method.result
        assert kind is not None
        try:
            if how == "error":
                error = t.ErrorData(code=-32000, message="é\n", data={"a": [1]})
                sent = self.conn.send_error(id, error)
            else:
                sent = self.conn.send_result(id, _RESULTS[how](kind))
        except TypeError:
            assert how == "unencodable"
            assert not cancelled
            assert self.conn.queued() == queued
            return
        assert sent is not cancelled, f"answering {id!r} gave {sent}, and it was {cancelled=}"
        assert sent or self.conn.queued() == queued, "a cancelled request was answered"
        assert how != "unencodable" or not sent
        self.model.response_sent(id, sent)

    def _respond_to_id(self, id: Id) -> None:
        known = self.model.was_delivered(id)
        if known:
            self._respond_to(id, "error")
        elif known is False:
            error = t.ErrorData(code=-32000, message="no")
            assert self._try_send(lambda: self.conn.send_error(id, error)) is None, (
                f"{id!r} was not handed out"
            )
            assert not self.conn.send_progress(id, 1.0), f"{id!r} was not handed out"

    def _progress(self, place: int, value: float) -> None:
        id = self._running_at(place)
        if id is not None:
            queued = self.conn.queued()
            sent = self.conn.send_progress(id, value, 10, "é")
            assert sent is (self.conn.queued() > queued)
            assert not (sent and self.model.running[id]), "progress of a cancelled request"

    def _cancel(self, place: int) -> None:
        known = _id_at(self.model.pending, place)
        id = 10**6 if known is None else known  # or an id that was never used
        queued = self.conn.queued()
        self.conn.send_cancel(id, "no")
        assert (self.conn.queued() > queued) is (known is not None)
        if known is not None:
            self.model.cancel(known)
        self.conn.send_cancel(id)

    def _wait(self, seconds: float) -> None:
        self._now += seconds
        self.conn.handle_timeout(self._now)
        self._process_events()
        deadline = self.conn.next_deadline()
        assert deadline is None or deadline > self._now, (
            f"at {self._now} its next deadline is {deadline}"
        )
        if self.conn.config.keep_alive is not None and self.conn.state is State.READY:
            assert deadline is not None, "no keep-alive deadline"
            assert deadline <= self._now + KEEP_ALIVE, (
                f"at {self._now} its next deadline is only at {deadline}"
            )
            if self._now - self._last_received_at >= KEEP_ALIVE:
                assert self.conn.stats().calls > len(self.model.pending), (
                    "no keep-alive ping to a silent peer"
                )

    def _shutdown(self) -> None:
        self.conn.shutdown()
        if self.conn.role is Role.SERVER:
            self.model.limit_new_requests(self.conn.stats().waiting)

    def _close(self) -> None:
        self._ended_early |= not self.model.closed
        lost = [] if self.model.closed else self.model.close()
        self.conn.close()
        self._process_events()
        assert self.conn.state is State.CLOSED
        assert self.model.closed
        assert self.conn.next_deadline() is None
        assert not lost or self.conn.queued(), "no cancellation was sent for lost requests"
        self.conn.close()

    def _stop_reading(self) -> None:
        self._reading_output = False

    def _resume_reading(self) -> None:
        self._reading_output = True

    # -- Output and checks -------------------------------------------------------------------------

    def _after_step(self) -> None:
        """Read events and output, then check the state."""
        self._process_events()
        if self._reading_output:
            self._take_output()
            self._process_events()
        self.model.check()
        assert self._peer_abandoned or self.conn.stats().sent == self._sent_bytes

    def _process_events(self) -> None:
        conn = self.conn
        for _ in range(MAX_EVENTS):
            event = conn.next_event()
            if event is NEED_DATA:
                self._paused = False
                return
            if event is PAUSED:
                self._paused = True
                self.outcomes.add("PAUSED")
                assert conn.role is Role.SERVER, "a client does not pause"
                limits = conn.config.limits
                full = conn.in_flight >= limits.in_flight
                assert full or conn.queued() > limits.queued, "it pauses below its limits"
                return
            self._handle_event(event)
        raise AssertionError(f"more than {MAX_EVENTS} events")

    def _handle_event(self, event: Event) -> None:
        self.model.handle_event(event, self._now)
        name = type(event).__name__
        fields = {key: value for key, value in asdict(event).items() if key not in _NOT_COMPARED}
        self.transcript.append((name, fields, str(getattr(event, "error", None))))
        self.outcomes |= {
            f"{self.conn.role.value} {self.conn.state.name} {name}",
            f"{self._previous_event} > {name}",
        }
        self._previous_event = name
        if isinstance(event, MessageRejected):
            self.outcomes.add(f"rejected: {event.error.fault.value}")
        elif isinstance(event, ConnectionClosed):
            self._check_closed_event(event.error)

    def _check_closed_event(self, error: Exception | None) -> None:
        self._ended_early |= not self._received_eof
        if isinstance(error, RemoteProtocolError):
            assert self.conn.role is Role.CLIENT, "a server closes on a peer that does not read"
            discarded = self.conn.stats().sent - self._sent_bytes  # `sent` counts it
            assert discarded > self.conn.config.limits.queued, (
                "a client closed on a peer that reads"
            )
            self._ended_early = self._peer_abandoned = True
        elif isinstance(error, ConnectionLost) and not self._received_eof:
            assert self.conn.config.keep_alive == KEEP_ALIVE, (
                "the connection is lost without keep-alive"
            )
            assert self._now - self._last_received_at >= 2 * KEEP_ALIVE, (
                "keep-alive closed on a peer that sends"
            )

    def _take_output(self) -> list[bytes]:
        """Take the queued output and check it against the model."""
        queued = self.conn.queued()
        if self._by_message:
            lines = [message.data for message in self.conn.messages_to_send()]
        else:
            data = self.conn.data_to_send()
            assert data[-1:] in (b"", b"\n")
            lines = data.split(b"\n")[:-1]
        assert sum(map(len, lines)) == queued, "queued() is wrong"
        assert self.conn.queued() == 0
        self._sent_bytes += queued
        for line in lines:
            self.transcript.append(line)
            self.model.check_sent(line)
        return lines

    # -- The end -----------------------------------------------------------------------------------

    def _finish(self) -> None:
        self._reading_output = True
        self._respond_to_all()
        if self._partial and not self._received_eof:
            self._receive(b"\n")
            self._after_step()
            self._respond_to_all()
        if not self.model.closed:
            self._check_alive()
        ended_early = self._ended_early
        self.outcomes.add(f"ends {self.conn.role.value} {'early' if ended_early else 'complete'}")
        self._close()
        self._take_output()
        self.model.check_closed(ended_early=ended_early)
        assert repr(self.conn).endswith(" 0 in flight, 0 calls, 0 bytes queued>"), repr(self.conn)
        assert self._try_send(lambda: self.conn.send_request(CUSTOM)) is None
        self.conn.receive_data(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', self._now)
        self.conn.handle_timeout(self._now + 1e6)
        assert self.conn.next_event() is NEED_DATA
        assert self.conn.queued() == 0

    def _respond_to_all(self) -> None:
        """Answer all running requests, until none runs and none waits."""
        for _ in range(MAX_EVENTS):
            self._after_step()
            for id in list(self.model.running):
                self._respond_to(id, "minimal")
            self._after_step()
            if not self.model.running and not self._paused:
                return
        raise AssertionError(
            f"{self.conn!r} is stuck, although all requests are answered and all output taken"
        )

    def _check_alive(self) -> None:
        """Check that a connection which has not ended still responds."""
        conn, stateless = self.conn, self.conn.config.stateless
        requests: list[dict[str, Any]] = []
        if conn.config.stateful and (conn.peer is None or conn.peer.dialect.stateful):
            requests.append({"jsonrpc": "2.0", "id": "alive", "method": "ping"})
        if stateless and conn.role is Role.SERVER and conn.state is not State.CLOSING:
            params = {"_meta": meta_of(stateless[0].version)}
            requests.append(
                {"jsonrpc": "2.0", "id": "discover", "method": "server/discover", "params": params}
            )
        for message in requests:
            before = self.model.response_count(message["id"])
            self._receive(_line(message))
            *_, answer = self._take_output()
            assert "result" in json.loads(answer), f"{message['method']} got {answer!r}"
            assert self.model.response_count(message["id"]) == before + 1, (
                f"{message['method']} was not answered"
            )


def _line(message: Any) -> bytes:
    return encoded(message) + b"\n"


def _id_at(table: Mapping[Id, Any], place: int) -> Id | None:
    """Return the id at a place of a table, or None if it is empty."""
    return list(table)[place % len(table)] if table else None


def _method_row(method: str) -> Method | None:
    """Return the method of that name, in any revision and for either role."""
    tables = (rows for dialect in DIALECTS.values() for rows in dialect.receives.values())
    return next((rows[method] for rows in tables if method in rows), None)


def _read_params(method: str, params: Mapping[str, Any]) -> Struct | Mapping[str, Any]:
    row = _method_row(method)
    params_of_row: Struct | Mapping[str, Any] = (
        row.read_params(encoded(params)) if row is not None else params
    )
    return params_of_row


# Fields of events that cannot be compared, or that the transcript has as text.
_NOT_COMPARED: Final = frozenset({"peer", "raw", "method", "error"})

_RESULTS: Final[Mapping[str, Callable[[type[Struct]], Any]]] = {
    "minimal": lambda kind: replace(example(kind)),
    "full": lambda kind: replace(example(kind, full=True), result_type=None),
    "raw": lambda kind: Raw(b'{ "content": [],\n "x": {}}'),
    "dict": lambda kind: {"content": [], "resultType": "complete"},
    "unencodable": lambda kind: {"x": object()},
    "with_meta": lambda kind: replace(example(kind), meta={"acme/a": [1, {}]}),
}

_STEPS: Final[Mapping[str, Callable[..., None]]] = {
    "receive": ConnectionScript._receive,
    "receive_long": ConnectionScript._receive_long,
    "receive_response": ConnectionScript._receive_response,
    "receive_eof": ConnectionScript._receive_eof,
    "request": ConnectionScript._request,
    "notify": ConnectionScript._notify,
    "log": ConnectionScript._log,
    "change": ConnectionScript._change,
    "respond": ConnectionScript._respond,
    "respond_id": ConnectionScript._respond_to_id,
    "progress": ConnectionScript._progress,
    "cancel": ConnectionScript._cancel,
    "wait": ConnectionScript._wait,
    "stop_reading": ConnectionScript._stop_reading,
    "resume_reading": ConnectionScript._resume_reading,
    "open": ConnectionScript._open,
    "shutdown": ConnectionScript._shutdown,
    "close": ConnectionScript._close,
}
