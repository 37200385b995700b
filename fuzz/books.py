"""The books on one `Connection`: who asked what, what was answered, and what is still owed.

Rules of this file:

1. The books are kept by ids and counts, from what `fuzz.verdicts` makes of the bytes. They do not know how the connection
   decides, only what must be true whatever it decides.
2. A bound is exact where the bytes leave no doubt. Where they do (a reader of JSON may differ, a revision is not settled)
   an answer is allowed but not demanded.

They do not know the script. `fuzz.talk` plays that, and enters here what is heard, done, seen and said.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final, NamedTuple, TypeAlias

from mcp_core import (
    Connection,
    ConnectionClosed,
    ErrorReceived,
    Event,
    InputRequested,
    MessageRejected,
    ProgressReceived,
    RemoteProtocolError,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    Role,
)
from mcp_core import types as t

from .verdicts import Verdict, judge, judge_batch

__all__ = ["ACKNOWLEDGED", "CANCELLED", "ENDED", "Ask", "Books", "Id"]

Id: TypeAlias = int | str

CANCELLED: Final = "notifications/cancelled"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"
ENDED: Final = "the connection ended"  # the reason of what the end cancels
# What a connection asks by itself: to open, and whether a silent peer lives.
_ITS_OWN: Final = frozenset({"initialize", "server/discover", "ping"})
# What the limit on tool calls counts.
_METERED: Final = frozenset({"tools/call", "completion/complete"})


class Ask(NamedTuple):
    """A request of ours without an answer; `related` is the peer's request that it was sent for."""

    token: int
    related: Id | None
    wants_progress: bool
    method: str


class Books:
    """`running` are the peer's requests that our side has, True for cancelled ones, and `requests` how they came;
    `pending` are our own that wait for an answer, and `told` the progress of these. `over`: the end was told."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn
        self.over = False
        # Requests of the peer: those that must have an answer, those that may, and what became of them.
        self._must: Counter[Any] = Counter()
        self._may: Counter[Any] = Counter()
        self._cancels: Counter[Any] = Counter()
        self._answers: Counter[Any] = Counter()
        self._doubtful = 0  # messages that may carry an id, or cancel one, which we cannot read
        self._nameless = 0  # messages that may be answered without an id
        self.running: dict[Id, bool] = {}
        self.requests: dict[Id, RequestReceived] = {}
        self._listens: set[Id] = set()  # requests to listen, acknowledged and not ended
        self._metered = 0
        self._let_in: int | None = None  # how many more may be handed out, None for any number
        self._rejected = 0
        # Our own.
        self.pending: dict[Id, Ask] = {}
        self.told: dict[Id, float] = {}
        self._asked: set[Id] = set()
        self._its_own: set[Id] = set()
        self._given_up: set[Id] = set()  # which the peer is still to be told
        self._last_id = 0

    def __repr__(self) -> str:
        return f"<Books: {len(self.running)} running, {len(self.pending)} pending>"

    # -- What the peer says --------------------------------------------------------------------------------------------

    def hear(self, line: bytes) -> None:
        """Enter a message of the peer, before the connection gets it."""
        if len(line) > self._conn.config.limits.message:
            self._nameless += 1
        elif line.lstrip(b" \t\r\n").startswith(b"["):
            self._nameless += 1
            self._hear_batch(line)
        else:
            self._hear_one(judge(line), sure=self._answers_requests())

    def hear_too_long(self) -> None:
        """A message became too long before it ended, and is complained of now."""
        self._nameless += 1

    def _hear_batch(self, line: bytes) -> None:
        members = judge_batch(line)
        if members is None:
            self._doubtful += 1
            return
        peer, most = self._conn.peer, self._conn.config.limits.batch
        sure = peer is not None and peer.dialect.batches and 0 < len(members) <= most
        for verdict in members:
            self._hear_one(verdict, sure=sure and self._answers_requests())

    def _hear_one(self, verdict: Verdict, *, sure: bool) -> None:
        self._nameless += 1
        if verdict.kind == "request" and sure:
            self._must[verdict.id] += 1
        elif verdict.id is not None:
            self._may[verdict.id] += 1
        elif verdict.kind == "unsure" or "id" in verdict.members:
            self._doubtful += 1
        cancelled = _params(verdict).get("requestId") if _is_cancellation(verdict) else None
        if type(cancelled) in (int, str):
            self._cancels[cancelled] += 1

    def _answers_requests(self) -> bool:
        """Whether every request of the peer has to be answered. A client of the stateless era answers none."""
        if self.over:
            return False
        if self._conn.role is Role.SERVER:
            return True
        peer = self._conn.peer
        return peer.dialect.stateful if peer is not None else not self._conn.config.stateless

    def cancelled_by(self, line: bytes) -> Id | None:
        """The running request that a message of the peer cancels, if there is no doubt about it."""
        verdict = judge(line)
        params = _params(verdict)
        id: Any = params.get("requestId")
        sound = params.keys() <= {"requestId", "reason"} and isinstance(params.get("reason", ""), str)
        if not (_is_cancellation(verdict) and sound and type(id) in (int, str)):
            return None
        return id if self.running.get(id) is False else None

    # -- What our side does --------------------------------------------------------------------------------------------

    def ask(self, id: Id, ask: Ask) -> None:
        assert not self.over, "it asked when there was nobody to answer"
        assert id not in self._asked, "an id is given twice"
        self._asked.add(id)
        self.pending[id] = ask

    def give_up(self, id: Id) -> None:
        """A request of ours is cancelled, by us or by the end that we made."""
        del self.pending[id]
        self._given_up.add(id)

    def close(self) -> list[int]:
        """We end it; gives the tokens that are lost."""
        lost = [ask.token for ask in self.pending.values()]
        self._given_up |= self.pending.keys()
        return lost

    def end(self, id: Id, sent: bool) -> None:
        """Our side is done with a request of the peer."""
        del self.running[id]
        if sent:
            self._drop_nested(id)

    def let_in(self, most: int) -> None:
        """No more requests of the peer are taken than so many."""
        self._let_in = most if self._let_in is None else min(self._let_in, most)

    def was_handed_out(self, id: Id) -> bool | None:
        """Whether our side may answer a request; None if nobody can tell, for one that is not running may be on its way."""
        if id in self.running:
            return True
        # A request that waits has not been handed out, so that nobody knows its id.
        return None if self._doubtful or self._must[id] + self._may[id] > self._answers[id] else False

    def answers(self, id: Id) -> int:
        """How many answers this request has got."""
        return self._answers[id]

    # -- What the connection does --------------------------------------------------------------------------------------

    def see(self, event: Event, now: float) -> None:
        """Enter an event."""
        if isinstance(event, MessageRejected):
            self._rejected += 1
        elif isinstance(event, RequestReceived):
            self._see_request(event, now)
        elif isinstance(event, RequestCancelled):
            assert self.running[event.id] is False, f"{event.id!r} was cancelled twice"
            self.running[event.id] = True
            self._cancels[event.id] += 1
            if event.reason != ENDED:
                self._drop_nested(event.id)
        elif isinstance(event, ResultReceived | ErrorReceived | InputRequested):
            assert self.pending.pop(event.id).token == event.token
            self.told.pop(event.id, None)
        elif isinstance(event, ProgressReceived):
            ask, before = self.pending[event.id], self.told.get(event.id)
            assert ask.wants_progress, "nobody asked for progress"
            assert event.token == ask.token
            assert before is None or event.progress > before, "progress went back"
            self.told[event.id] = event.progress
        elif isinstance(event, ConnectionClosed):
            assert not self.over, "it ended twice"
            self.over = True
            assert event.lost == [ask.token for ask in self.pending.values()], f"lost {event.lost}"
            self.pending.clear()
            if isinstance(event.error, RemoteProtocolError):  # who does not read is not told anything either
                self._given_up.clear()

    def _see_request(self, event: RequestReceived, now: float) -> None:
        assert not self.over, "a request after the end"
        assert event.id not in self.running, f"{event.id!r} runs already"
        assert self._must[event.id] or self._may[event.id] or self._doubtful, f"nobody asked {event.id!r}"
        self.running[event.id] = False
        self.requests[event.id] = event
        if self._let_in is not None:
            self._let_in -= 1
            assert self._let_in >= 0, "it takes requests although it is to take no more"
        rate = self._conn.config.limits.tool_calls
        if rate is not None and event.method.name in _METERED:
            self._metered += 1
            assert self._metered <= rate.burst + rate.per_second * now, "more calls than the rate allows"

    def _drop_nested(self, parent: Id) -> None:
        """What was asked for the sake of a request that is over is given up by the connection itself."""
        for id, ask in list(self.pending.items()):
            if ask.related == parent and type(ask.related) is type(parent):
                self.give_up(id)

    def say(self, line: bytes) -> None:
        """Enter a message that the connection wants to have sent."""
        verdict = judge(line)
        assert verdict.kind in ("request", "notification", "response"), f"it says {line!r}: {verdict.why}"
        assert b"\n" not in line
        if verdict.kind == "request":
            self._say_request(verdict)
        elif verdict.kind == "response" and verdict.id is not None:
            self._answers[verdict.id] += 1
            if "result" in verdict.members:  # an error may be for a request that takes an id in use
                self._listens.discard(verdict.id)
        elif verdict.kind == "response":
            self._nameless -= 1
            assert self._nameless >= 0, "it complains of what nobody said"
        elif _is_cancellation(verdict):
            id = _params(verdict)["requestId"]
            assert id in self._given_up | self._its_own, f"it cancels {id!r}, which nobody gave up"
            self._given_up.discard(id)
            self._its_own.discard(id)
        else:
            self._say_notification(verdict)

    def _say_request(self, verdict: Verdict) -> None:
        id, method = verdict.id, verdict.members["method"]
        assert isinstance(id, int)
        assert id > self._last_id, "an id is used again"
        self._last_id = id
        if id not in self._asked:
            assert method in _ITS_OWN, f"it asks {method} by itself"
            self._its_own.add(id)

    def _say_notification(self, verdict: Verdict) -> None:
        meta: Any = _params(verdict).get("_meta", ())
        id: Any = dict(meta).get(t.META_SUBSCRIPTION_ID)
        if verdict.members["method"] == ACKNOWLEDGED:
            # It is over with an answer, or with the end of the conversation.
            self._must[id] -= 1
            self._may[id] += 1
            self._listens.add(id)
        elif id is not None:
            # What was queued before a cancellation is still sent.
            assert id in self._listens or self._cancels[id], (
                f"{id!r} is told of something, and listens no more"
            )

    # -- What must be true ---------------------------------------------------------------------------------------------

    def check(self) -> None:
        """After every step, when all events are seen."""
        conn, limits = self._conn, self._conn.config.limits
        stats = conn.stats()
        assert conn.in_flight == stats.in_flight == len(self.running), f"{conn!r}: {list(self.running)} run"
        assert conn.in_flight <= limits.in_flight
        assert stats.waiting <= limits.waiting
        assert len(self.pending) <= stats.calls
        assert stats.events == 0
        assert stats.rejected == self._rejected
        assert all(conn.queued(id) <= conn.queued() == stats.queued for id in self.running)
        gives_up = conn.role is Role.CLIENT and not self.over
        assert not gives_up or conn._outbox.answers <= limits.queued, (
            "it keeps answers for who does not read them"
        )
        too_many = self._answers - self._must - self._may
        assert sum(too_many.values()) <= self._doubtful, f"answered too much: {too_many}"

    def check_end(self, *, cut_short: bool) -> None:
        """When all was worked off, the end was told and everything was taken."""
        silence = self._must - self._cancels - self._answers
        assert cut_short or sum(silence.values()) <= self._doubtful, f"never answered: {silence}"
        assert not self._given_up, f"given up and never cancelled: {self._given_up}"
        assert all(self.running.values()), "the end did not cancel what runs"


def _is_cancellation(verdict: Verdict) -> bool:
    return verdict.kind == "notification" and verdict.members["method"] == CANCELLED


def _params(verdict: Verdict) -> dict[str, Any]:
    """The params if they are an object: the second opinion gives objects as pairs."""
    params: Any = verdict.members.get("params")
    is_object = isinstance(params, list) and all(isinstance(pair, tuple) for pair in params)
    return dict(params) if is_object else {}
