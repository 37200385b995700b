"""Plays a script to one `Connection`, as the peer and as our own side, and holds it against `fuzz.books`.

Rule of this file: a step that makes no sense at its time, such as answering when nothing is asked, does nothing. So any list
of steps is a script, and stays one when steps are taken out of it.

Steps, each a tuple with its name first:

    hear data                                       the peer says these bytes
    long over                                       the peer says a request that is so many bytes over the limit
    reply place how                                 the peer answers our request at that place, or tells its progress
    end                                             the peer says no more
    ask method params place wants_progress          we ask, on behalf of the running request at that place or of none
    tell method params place                        we notify
    log level place                                 we log
    change what                                     something has changed: what that method tells of, or the resource of that URI
    answer place how                                we end a running request
    answer id id                                    we end a request that may not exist
    progress place value                            we tell how far a running request is
    cancel place                                    we give up a request of ours
    wait seconds                                    time goes by
    deaf, listen                                    whether what the connection says is taken off its hands
    open, wind down, close
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from msgspec import Raw, Struct
from msgspec.structs import asdict, replace

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
from mcp_core._subscriptions import LISTS, Change

from .books import Ask, Books, Id
from .messages import CLIENT_OFFERS, SERVER_OFFERS, meta_of, result_of
from .values import encoded, example

__all__ = ["CUSTOM", "MANNERS", "Case", "Step", "Talk", "config_of"]

T = TypeVar("T")

Step: TypeAlias = tuple[Any, ...]
# role; revisions spoken; the one it is opened in before the script begins, "" for none; limits of requests in flight,
# requests waiting and bytes queued; what else is set (`MANNERS`); the script
Case: TypeAlias = tuple[str, tuple[str, ...], str, tuple[int, int, int], tuple[str, ...], list[Step]]

# Messages come one by one instead of in a stream; tool calls are limited; a silent peer is asked whether it lives.
MANNERS: Final = ("apart", "metered", "watchful")
CUSTOM: Final = "acme/x"
MOST_EVENTS: Final = 10_000
MESSAGE_LIMIT: Final = 3_000
BATCH_LIMIT: Final = 10
RATE: Final = Rate(per_second=0.5, burst=1)
SILENCE: Final = 5.0


def config_of(
    role: Role, versions: Iterable[str], limits: Limits | None = None, keep_alive: float | None = None
) -> Config:
    """One side that offers everything and knows a method of its own."""
    return Config(
        t.Implementation("fuzz", "0"),
        CLIENT_OFFERS if role is Role.CLIENT else SERVER_OFFERS,
        versions=versions,
        limits=limits,
        keep_alive=keep_alive,
        methods=[Method(CUSTOM, None, t.RequestParams, t.Result)],
    )


class Talk:
    """One play of a script. With `chunk`, bytes come in pieces of that size.

    `transcript` is all that the connection let be seen, `outcomes` names the kinds of it, `heard` counts bytes.
    """

    def __init__(self, case: Case, chunk: int = 0) -> None:
        role, versions, self._start, (in_flight, waiting, queued), manners, self._steps = case
        limits = Limits(
            message=MESSAGE_LIMIT,
            batch=BATCH_LIMIT,
            in_flight=in_flight,
            waiting=waiting,
            queued=queued,
            tool_calls=RATE if "metered" in manners else None,
        )
        config = config_of(Role(role), versions, limits, SILENCE if "watchful" in manners else None)
        self.conn = Connection(Role(role), config)
        self.books = Books(self.conn)
        self._apart = "apart" in manners
        self._chunk = chunk
        self.transcript: list[Any] = []
        self.outcomes: set[str] = set()
        self.heard = 0
        self._heard_at = 0.0
        self._now = 0.0
        self._partial = b""
        self._taken = 0
        self._tokens = 0
        self._before = ""
        self._listening = True
        self._paused = False
        self._said_all = False
        self._cut_short = (
            False  # it ended before all that the peer said was read: what is unanswered stays so
        )
        self._gave_up = False  # on a peer that does not read

    def play(self) -> None:
        """Play it all.

        Raises:
            AssertionError: the books and the connection disagree.
            Exception: the connection raised what it does not declare.
        """
        self._begin()
        for step in self._steps:
            _STEPS[step[0]](self, *step[1:])
            self._settle()
        self._finish()

    # -- The peer ------------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Open the conversation as a well-behaved peer would."""
        version = self._start
        if not version:
            return
        if self.conn.role is Role.CLIENT:
            self.conn.open(self._now)
            self._drain()
            for _ in range(2):
                if self.conn.peer is None:
                    self._answer_opening(version)
            assert self.conn.peer is not None
            assert self.conn.peer.dialect.version == version
        elif DIALECTS[version].stateful:
            params = {
                "protocolVersion": version,
                "capabilities": json.loads(DIALECTS[version].encode(CLIENT_OFFERS)),
                "clientInfo": {"name": "peer", "version": "0"},
            }
            self._hear(_line({"jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params}))
            self._settle()
            self._hear(_line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            assert self.conn.state is State.READY
        self._settle()

    def _answer_opening(self, version: str) -> None:
        (asked,) = (json.loads(line) for line in self._take())
        offers = json.loads(DIALECTS[version].encode(SERVER_OFFERS))
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] == "initialize":
            info = {"name": "peer", "version": "0"}
            answer["result"] = {"protocolVersion": version, "capabilities": offers, "serverInfo": info}
        elif DIALECTS[version].stateful:
            answer["error"] = {"code": -32601, "message": "no"}
        else:
            answer["result"] = result_of(version, {"supportedVersions": [version], "capabilities": offers})
        self._hear(_line(answer))

    def _hear(self, data: bytes) -> None:
        if self._said_all or not data:  # nothing at all would be the end
            return
        self.heard += len(data)
        self._heard_at = self._now
        # What must come of it, if it is read by itself and at once.
        alone = self._reads_on() and data.find(b"\n") == len(data) - 1
        ends = self.books.cancelled_by(data[:-1]) if alone else None
        self._say(data)
        if ends is not None and not self._paused:
            assert self.books.running[ends], f"the cancellation of {ends!r} was not told"

    def _reads_on(self) -> bool:
        """Whether what the peer says now is read at once."""
        return not (self._said_all or self._partial or self._paused or self.books.over)

    def _say(self, data: bytes) -> None:
        if self._apart:
            data = data.removesuffix(b"\n")
            self.books.hear(data)
            self.conn.receive_message(data, self._now)
            self._drain()
            return
        *lines, self._partial = (self._partial + data).split(b"\n")
        if len(self._partial) > MESSAGE_LIMIT:
            self.books.hear_too_long()
        for line in lines:
            self.books.hear(line.removesuffix(b"\r"))
        size = self._chunk or len(data) or 1
        for start in range(0, len(data), size):
            self.conn.receive_data(data[start : start + size], self._now)
            self._drain()

    def _long(self, over: int) -> None:
        line = encoded({"jsonrpc": "2.0", "id": "long", "method": "ping", "params": {"a": ""}})
        self._hear(line.replace(b'""', b'"%b"' % (b"x" * (MESSAGE_LIMIT + over - len(line)))) + b"\n")

    def _reply(self, place: int, how: str) -> None:
        pending = self.books.pending
        id = _at(pending, place)
        if id is None:
            return
        ask, heeded = pending[id], self._reads_on()
        if how.startswith("progress"):
            value = float(how.removeprefix("progress"))
            params = {"progressToken": id, "progress": value}
            self._hear(_line({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}))
            assert not (heeded and ask.wants_progress) or self.books.told[id] >= value, (
                "progress was not told"
            )
            return
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": id}
        if how == "error":
            answer["error"] = {"code": -32001, "message": "no"}
        elif how == "input":
            answer["result"] = {"resultType": "input_required", "requestState": "s"}
        else:
            row, peer = _row(ask.method), self.conn.peer
            assert peer is not None
            result = example((row.result if row is not None else None) or t.Result, full=how == "most")
            answer["result"] = json.loads(peer.dialect.encode(replace(result, result_type=None)))
        self._hear(_line(answer))
        assert not heeded or id not in pending, f"the answer to {id} was not told"

    def _end(self) -> None:
        if not self._said_all:
            self._said_all = True
            self.conn.receive_data(b"", self._now)
            self._drain()

    # -- Our own side --------------------------------------------------------------------------------------------------

    def _refused(self, say: Callable[[], T]) -> T | None:
        """What `say` gives, or None if it raised what it may raise; then nothing was said."""
        queued = self.conn.queued()
        try:
            return say()
        except LocalProtocolError as exc:
            assert self.conn.queued() == queued, "it raised, and said something all the same"
            self.outcomes.add(f"refused: {type(exc).__name__}")
            return None

    def _open(self) -> None:
        self._refused(lambda: self.conn.open(self._now))
        self._drain()

    def _ask(self, method: str, params: Mapping[str, Any], place: int | None, progress: bool) -> None:
        related = self._running_at(place)
        token = self._tokens = self._tokens + 1
        value, meta = _read(method, params), {"acme/a": 1}
        id = self._refused(
            lambda: self.conn.send_request(
                method, value, token=token, related=related, meta=meta, progress=progress
            )
        )
        if id is not None:
            self.books.ask(id, Ask(token, related, progress, method))

    def _tell(self, method: str, params: Mapping[str, Any], place: int | None) -> None:
        value, related = _read(method, params), self._running_at(place)
        self._refused(lambda: self.conn.send_notification(method, value, related=related))

    def _log(self, level: t.LoggingLevel, place: int | None) -> None:
        related, queued = self._running_at(place), self.conn.queued()
        sent = self._refused(lambda: self.conn.send_log(level, {"é": "\n"}, related=related))
        assert bool(sent) is (self.conn.queued() > queued)
        assert not (sent and related is not None and self.books.running[related]), "a cancelled request logs"

    def _change(self, what: str) -> None:
        queued = self.conn.queued()
        wanted = self.conn.send_change(LISTS.get(what) or Change(uri=what))
        assert wanted or self.conn.queued() == queued, "nobody wants to know, and it is told"
        assert not (wanted and self.conn.role is Role.CLIENT)

    def _running_at(self, place: int | None) -> Id | None:
        return None if place is None else _at(self.books.running, place)

    def _answer(self, place: int, how: str) -> None:
        id = self._running_at(place)
        if id is not None:
            self._answer_running(id, how)

    def _answer_running(self, id: Id, how: str) -> None:
        cancelled, queued = self.books.running[id], self.conn.queued()
        kind = self.books.requests[id].method.result
        assert kind is not None
        try:
            if how == "error":
                error = t.ErrorData(code=-32000, message="é\n", data={"a": [1]})
                sent = self.conn.send_error(id, error)
            else:
                sent = self.conn.send_result(id, _RESULTS[how](kind))
        except TypeError:
            assert how == "unsayable"
            assert not cancelled
            assert self.conn.queued() == queued
            return
        assert sent is not cancelled, f"answering {id!r} gave {sent}, and it was {cancelled=}"
        assert sent or self.conn.queued() == queued, "a cancelled request was answered"
        assert how != "unsayable" or not sent
        self.books.end(id, sent)

    def _answer_id(self, id: Id) -> None:
        known = self.books.was_handed_out(id)
        if known:
            self._answer_running(id, "error")
        elif known is False:
            error = t.ErrorData(code=-32000, message="no")
            assert self._refused(lambda: self.conn.send_error(id, error)) is None, (
                f"{id!r} was not handed out"
            )
            assert not self.conn.send_progress(id, 1.0), f"{id!r} was not handed out"

    def _tell_progress(self, place: int, value: float) -> None:
        id = self._running_at(place)
        if id is not None:
            queued = self.conn.queued()
            sent = self.conn.send_progress(id, value, 10, "é")
            assert sent is (self.conn.queued() > queued)
            assert not (sent and self.books.running[id]), "progress of a cancelled request"

    def _cancel(self, place: int) -> None:
        known = _at(self.books.pending, place)
        id = 10**6 if known is None else known  # an id that was never given, too
        queued = self.conn.queued()
        self.conn.send_cancel(id, "no")
        assert (self.conn.queued() > queued) is (known is not None)
        if known is not None:
            self.books.give_up(known)
        self.conn.send_cancel(id)

    def _wait(self, seconds: float) -> None:
        self._now += seconds
        self.conn.handle_timeout(self._now)
        self._drain()
        deadline = self.conn.next_deadline()
        assert deadline is None or deadline > self._now, f"at {self._now} it wants to be woken at {deadline}"
        if self.conn.config.keep_alive is not None and self.conn.state is State.READY:
            assert deadline is not None, "it would wait for ever"
            assert deadline <= self._now + SILENCE, f"at {self._now} it would wait until {deadline}"
            if self._now - self._heard_at >= SILENCE:
                assert self.conn.stats().calls > len(self.books.pending), "nobody asks a silent peer"

    def _wind_down(self) -> None:
        self.conn.wind_down()
        if self.conn.role is Role.SERVER:
            self.books.let_in(self.conn.stats().waiting)

    def _close(self) -> None:
        self._cut_short |= not self.books.over
        lost = [] if self.books.over else self.books.close()
        self.conn.close()
        self._drain()
        assert self.conn.state is State.CLOSED
        assert self.books.over
        assert self.conn.next_deadline() is None
        assert not lost or self.conn.queued(), "nobody is told what is not wanted any more"
        self.conn.close()

    def _deaf(self) -> None:
        self._listening = False

    def _listen(self) -> None:
        self._listening = True

    # -- What the connection does --------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """What has to be true after every step."""
        self._drain()
        if self._listening:
            self._take()
            self._drain()
        self.books.check()
        assert self._gave_up or self.conn.stats().sent == self._taken

    def _drain(self) -> None:
        conn = self.conn
        for _ in range(MOST_EVENTS):
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
                assert full or conn.queued() > limits.queued, "it pauses for no reason"
                return
            self._see(event)
        raise AssertionError(f"more than {MOST_EVENTS} events")

    def _see(self, event: Event) -> None:
        self.books.see(event, self._now)
        name = type(event).__name__
        fields = {key: value for key, value in asdict(event).items() if key not in _UNTOLD}
        self.transcript.append((name, fields, str(getattr(event, "error", None))))
        self.outcomes |= {
            f"{self.conn.role.value} {self.conn.state.name} {name}",
            f"{self._before} > {name}",
        }
        self._before = name
        if isinstance(event, MessageRejected):
            self.outcomes.add(f"rejected: {event.error.fault.value}")
        elif isinstance(event, ConnectionClosed):
            self._see_end(event.error)

    def _see_end(self, error: Exception | None) -> None:
        self._cut_short |= not self._said_all
        if isinstance(error, RemoteProtocolError):
            assert self.conn.role is Role.CLIENT, "a server gives nobody up for not reading"
            thrown_away = self.conn.stats().sent - self._taken  # which counts as taken
            assert thrown_away > self.conn.config.limits.queued, "it gave up who reads"
            self._cut_short = self._gave_up = True
        elif isinstance(error, ConnectionLost) and not self._said_all:
            assert self.conn.config.keep_alive == SILENCE, "it is lost, and nobody knows why"
            assert self._now - self._heard_at >= 2 * SILENCE, "it gave up who speaks"

    def _take(self) -> list[bytes]:
        """Take what there is to send off its hands, and enter it in the books."""
        queued = self.conn.queued()
        if self._apart:
            lines = [message.data for message in self.conn.messages_to_send()]
        else:
            data = self.conn.data_to_send()
            assert data[-1:] in (b"", b"\n")
            lines = data.split(b"\n")[:-1]
        assert sum(map(len, lines)) == queued, "it does not know how much it has to say"
        assert self.conn.queued() == 0
        self._taken += queued
        for line in lines:
            self.transcript.append(line)
            self.books.say(line)
        return lines

    # -- The end -------------------------------------------------------------------------------------------------------

    def _finish(self) -> None:
        self._listening = True
        self._work_off()
        if self._partial and not self._said_all:
            self._hear(b"\n")
            self._settle()
            self._work_off()
        if not self.books.over:
            self._probe()
        cut_short = self._cut_short
        self.outcomes.add(f"ends {self.conn.role.value} {'cut short' if cut_short else 'in peace'}")
        self._close()
        self._take()
        self.books.check_end(cut_short=cut_short)
        assert repr(self.conn).endswith(" 0 in flight, 0 calls, 0 bytes queued>"), repr(self.conn)
        assert self._refused(lambda: self.conn.send_request(CUSTOM)) is None
        self.conn.receive_data(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', self._now)
        self.conn.handle_timeout(self._now + 1e6)
        assert self.conn.next_event() is NEED_DATA
        assert self.conn.queued() == 0

    def _work_off(self) -> None:
        """Answer all that runs, until nothing runs and nothing waits."""
        for _ in range(MOST_EVENTS):
            self._settle()
            for id in list(self.books.running):
                self._answer_running(id, "least")
            self._settle()
            if not self.books.running and not self._paused:
                return
        raise AssertionError(f"{self.conn!r} does not go on, although all was answered and taken")

    def _probe(self) -> None:
        """A connection that has not ended answers, whatever went before."""
        conn, stateless = self.conn, self.conn.config.stateless
        asked: list[dict[str, Any]] = []
        if conn.config.stateful and (conn.peer is None or conn.peer.dialect.stateful):
            asked.append({"jsonrpc": "2.0", "id": "still there?", "method": "ping"})
        if stateless and conn.role is Role.SERVER and conn.state is not State.CLOSING:
            params = {"_meta": meta_of(stateless[0].version)}
            asked.append({"jsonrpc": "2.0", "id": "and now?", "method": "server/discover", "params": params})
        for message in asked:
            before = self.books.answers(message["id"])
            self._hear(_line(message))
            *_, answer = self._take()
            assert "result" in json.loads(answer), f"{message['method']} got {answer!r}"
            assert self.books.answers(message["id"]) == before + 1, f"{message['method']} was not answered"


def _line(message: Any) -> bytes:
    return encoded(message) + b"\n"


def _at(table: Mapping[Id, Any], place: int) -> Id | None:
    """The id at a place of a table, None if it is empty."""
    return list(table)[place % len(table)] if table else None


def _row(method: str) -> Method | None:
    """The method of that name in any revision and for either role."""
    tables = (rows for dialect in DIALECTS.values() for rows in dialect.receives.values())
    return next((rows[method] for rows in tables if method in rows), None)


def _read(method: str, params: Mapping[str, Any]) -> Struct | Mapping[str, Any]:
    row = _row(method)
    params_of_row: Struct | Mapping[str, Any] = (
        row.read_params(encoded(params)) if row is not None else params
    )
    return params_of_row


# Of an event, what cannot be compared, or is told by `str`.
_UNTOLD: Final = frozenset({"peer", "raw", "method", "error"})

_RESULTS: Final[Mapping[str, Callable[[type[Struct]], Any]]] = {
    "least": lambda kind: replace(example(kind)),
    "most": lambda kind: replace(example(kind, full=True), result_type=None),
    "raw": lambda kind: Raw(b'{ "content": [],\n "x": {}}'),
    "dict": lambda kind: {"content": [], "resultType": "complete"},
    "unsayable": lambda kind: {"x": object()},
    "own meta": lambda kind: replace(example(kind), meta={"acme/a": [1, {}]}),
}

_STEPS: Final[Mapping[str, Callable[..., None]]] = {
    "hear": Talk._hear,
    "long": Talk._long,
    "reply": Talk._reply,
    "end": Talk._end,
    "ask": Talk._ask,
    "tell": Talk._tell,
    "log": Talk._log,
    "change": Talk._change,
    "answer": Talk._answer,
    "answer id": Talk._answer_id,
    "progress": Talk._tell_progress,
    "cancel": Talk._cancel,
    "wait": Talk._wait,
    "deaf": Talk._deaf,
    "listen": Talk._listen,
    "open": Talk._open,
    "wind down": Talk._wind_down,
    "close": Talk._close,
}
