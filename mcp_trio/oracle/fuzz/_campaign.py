"""A run of the fuzzer: draw cases, play them, confirm faults and shrink their cases.

1. Cases are drawn in batches in a worker thread, one batch ahead. A batch avoids only what earlier
   batches have found, so that a seed gives the same cases on every machine.
2. Cases share a process, because a start takes longer than a case. A fault is confirmed on fresh
   ones (`_examination`).
3. `run` can be cancelled at any time: `findings` has the faults that were confirmed.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import trio
from msgspec import Struct

from mcp_core import ConnectFailed
from mcp_trio._nursery import open_quiet_nursery

from ._baseline import NO_BASELINE
from ._call_guard import CallGuard
from ._examination import MAX_HISTORY, Examiner, joined
from ._findings import MAX_FINDINGS, Findings, FuzzFinding
from ._habit_watch import HabitWatch
from ._habits import HABITS
from ._play import CALL_TIMEOUT, Player, play_case
from ._session import UNANSWERED, UNANSWERED_MALFORMED, dialect_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ._baseline import Baseline, IgnoredRow
    from ._case import Case, Outcome
    from ._echo import Echo
    from ._habit_watch import ShownHabit
    from ._habits import Habit
    from ._play import TargetLike
    from ._session import TargetFault, TargetSession
    from ._steps import CaseChoices

__all__ = ["Campaign", "CampaignOptions"]

BATCH: Final = 32  # cases
AWAY_TIMEOUT: Final = 30.0  # seconds for a server at a URL to come back
AWAY_INTERVAL: Final = 1.0
MAX_SESSIONS: Final = 6  # faults that wait for another case
MAX_FAILED_STARTS: Final = 5
MAX_SLOW: Final = 100  # calls that took too long: then the tool isn't called any more
# Rows that a server at a URL breaks if it is away.
_SILENT: Final = (UNANSWERED, UNANSWERED_MALFORMED, "crash")
_GROWTH_FROM, _GROWTH_TO = 100, 1_000  # cases between which a process's memory is compared
_GROWTH: Final = 2.0
_SHOWN: Final = 80  # characters of a method, which the peer can choose


class CampaignOptions(Struct, kw_only=True, frozen=True):
    """The options of a run.

    Attributes:
        seconds: how long cases are drawn; None for no limit.
        cases: how many at most; None for no limit.
        response_timeout: seconds for a response.
        shrinks: whether findings are shrunk.
        keep_going: whether the run goes on after the first finding.
        baseline: an earlier report, whose findings are left out.
        ignored: the rows that are left out.
    """

    seconds: float | None = 60.0
    cases: int | None = None
    response_timeout: float = 2.0
    shrinks: bool = True
    keep_going: bool = True
    baseline: Baseline = NO_BASELINE
    ignored: tuple[IgnoredRow, ...] = ()


class SourceLike(Protocol):
    """A source of cases."""

    def draw(self, count: int) -> list[Case]:
        """Return `count` cases. It is called in a thread."""


class Campaign:
    """A run against one target.

    Attributes:
        side: the target's side, "server" or "client".
        find_faults: the function of `mcp_trio.testing` that written tests call.
        known_habits: the habits of SDKs that are told apart.
        unplayed: stored cases that `run` hasn't finished, and the case whose fault it was
            confirming when it was cancelled.
        unconfirmed: how often each row and method was seen that no further play has confirmed.
        missing: what a further play may lack for each of them, as a clause.
        opportunities: how often each row was judged.
        cases: how many cases were played.
        messages: how many messages of the target were judged.
        calls: how many calls of tools were answered.
        notes: strange things that aren't faults.
        slow: how often each tool didn't answer in time.
        is_away: the run ended because the server at the URL stopped answering.
        is_lost: the run ended because the target could no longer be started.
        failure: an error of the fuzzer itself that has ended the run, or None.
    """

    side: Literal["client", "server"] = "server"
    find_faults = "find_faults"
    known_habits: Sequence[Habit] = HABITS

    def __init__(
        self,
        target: TargetLike,
        source: SourceLike | None,
        choices: CaseChoices,
        options: CampaignOptions,
        *,
        echo: Echo | None = None,
        on_finding: Callable[[FuzzFinding], object] = lambda finding: None,
        on_habit: Callable[[ShownHabit], object] = lambda shown: None,
    ) -> None:
        self.target = target
        self.unplayed: list[Case] = []
        self.repaired = 0
        self.unconfirmed: Counter[str] = Counter()
        self.missing: dict[str, str] = {}
        self.opportunities: Counter[str] = Counter()
        self.cases = 0
        self.messages = 0
        self.calls = 0
        self.failure: Exception | None = None
        self.notes: list[str] = []
        self.slow: Counter[str] = Counter()
        self._activity = ""
        self.is_lost = False
        self.is_away = False
        self.seconds = 0.0
        self._source = source
        self._choices = choices
        self._options = options
        self._on_finding = on_finding
        self._on_habit = on_habit
        self._allowed = set(choices.names)
        self._guard = CallGuard(self._allowed, self._known_tools, getattr(choices, "uris", ()))
        self._echo = echo
        self._habits = HabitWatch(
            target,
            choices,
            self._new_player,
            response_timeout=options.response_timeout,
            table=self.known_habits,
        )
        self._player = self._new_player(options.response_timeout)
        self._sessions: OrderedDict[tuple[str, str], TargetSession] = OrderedDict()
        self._histories: dict[int, deque[Case]] = {}
        self._memory: dict[int, int] = {}
        self._found = Findings(options.baseline, options.ignored, self._known_tools())
        self._examiner = self._new_examiner()
        self._failed_starts = 0
        self._began = time.monotonic()

    def _new_player(
        self, timeout: float, *, probes: bool = True, wanted: tuple[str, str] | None = None
    ) -> Any:
        """Return a player; see `Player`. The fuzzer of clients has another one."""
        return Player(
            timeout,
            echo=self._echo,
            guard=self._guard,
            probes=probes,
            wanted=wanted,
            drops=self._habits.drops,
        )

    def _new_examiner(self) -> Examiner:
        return Examiner(
            self.target,
            self._choices,
            self._new_player,
            response_timeout=self._options.response_timeout,
            shrinks=self._options.shrinks,
            tools=self._known_tools(),
        )

    def _known_tools(self) -> set[str]:
        return {str(each.get("name")) for each in self._choices.offers.tools}

    # -- The run -----------------------------------------------------------------------------------

    async def run(self, stored: Iterable[Case] = ()) -> None:
        """Play `stored` cases, and then drawn ones until the limits are reached."""
        self._began = time.monotonic()
        self.unplayed = [self._allowed_part(case) for case in stored if self._is_spoken(case)]
        try:
            while self.unplayed:
                self.repaired += not await self._play_one(self.unplayed[0])
                del self.unplayed[0]
            if self._source is not None:
                await self._run_drawn(self._source)
        except ConnectFailed as exc:
            self.is_lost = True
            self.notes.append(str(exc))
        finally:
            self.seconds = time.monotonic() - self._began
            with trio.CancelScope(shield=True):
                async with trio.open_nursery() as nursery:  # each can take seconds
                    while self._sessions:
                        nursery.start_soon(self._end_session, self._sessions.popitem()[1])

    def _allowed_part(self, case: Case) -> Case:
        """Return a stored case without steps that do more than a drawn case may.

        Those steps aren't played, so they must not be in the tests that are written either.
        """
        found = [step for step in case if self._guard.allows_step(step)]
        if len(found) < len(case):
            self._add_note(
                "steps of the last report are left out: they may call tools that are not"
                " allowed, or read resources that are not listed"
            )
        return found

    async def _run_drawn(self, source: SourceLike) -> None:
        drawn: list[Case] = []

        async def draw() -> None:
            drawn[:] = await trio.to_thread.run_sync(source.draw, BATCH, abandon_on_cancel=True)

        await draw()
        while drawn:
            batch = list(drawn)
            self._choices.avoided |= self._found.avoided
            async with open_quiet_nursery(wait=True) as nursery:
                nursery.start_soon(draw)
                for case in batch:
                    if self._is_over():
                        nursery.cancel_scope.cancel()
                        return
                    await self._play_one(case)

    def _is_over(self) -> bool:
        options = self._options
        if self.is_lost or self.is_away or len(self.findings) >= MAX_FINDINGS:
            return True
        if self.findings and not options.keep_going:
            return True
        if options.cases is not None and self.cases >= options.cases:
            return True
        return options.seconds is not None and time.monotonic() - self._began > options.seconds

    async def _play_one(self, case: Case) -> bool:
        """Play a case, and examine its faults. Return False if it has shown none."""
        self._activity = self._examiner.activity = ""
        session, key = await self._session_for(case)
        history = self._histories[id(session)]
        try:
            outcome = await self._player.play(case, session)
        except BaseException:
            with trio.CancelScope(shield=True):
                await session.aclose()
            raise
        history.append(case)
        self.cases += 1
        self.messages += outcome.messages
        self.calls += outcome.calls
        for name in outcome.slow:
            self._add_slow(name)
        for note in outcome.notes:
            self._add_note(note)
        self._watch_memory(session)
        self._watch_starts(session, case, outcome)
        if session.spent or key is None:
            await self._end_session(session)
        else:
            self._sessions[key] = session
            if len(self._sessions) > MAX_SESSIONS:
                await self._end_session(self._sessions.popitem(last=False)[1])
        for fault in outcome.faults:
            if self.is_away:
                break
            try:
                await self._examine(fault, case, list(history)[:-1], session.played - 1)
            except BaseException:
                if not self._found.has_row(fault.row) and case not in self.unplayed:
                    self.unplayed.append(case)  # the next run confirms it
                raise
        # A call that still runs at the URL would look like a hang to the next session.
        is_blocked = outcome.is_blocked and self.target.kind == "http" and not self.is_away
        if is_blocked and not await self._recovers():
            self.is_away = True
            self._add_note("the server does not answer any more since a call takes long")
        return bool(outcome.faults)

    async def _session_for(self, case: Case) -> tuple[TargetSession, tuple[str, str] | None]:
        first = case[0] if case else ()
        key = None
        if len(first) == 4 and first[0] == "open" and first[2] == "whole":
            key = (str(first[1]), str(first[3]))
        session = self._sessions.pop(key, None) if key is not None else None
        if session is not None and session.ended:  # it has ended between two cases
            await self._end_session(session)
            session = None
        if session is None:
            session = await self.target.open()
            self._histories[id(session)] = deque(maxlen=MAX_HISTORY + 1)
        return session, key

    async def _end_session(self, session: TargetSession) -> None:
        self._histories.pop(id(session), None)
        self._memory.pop(id(session), None)
        self.opportunities.update(session.judge.opportunities)
        trouble = session.trouble()
        if trouble:
            self._add_note(f"stderr of the server has: {trouble[:200]}")
        await session.aclose()

    def _watch_starts(self, session: TargetSession, case: Case, outcome: Outcome) -> None:
        if session.played > 1:
            return
        if session.is_open:
            self._failed_starts = 0
            return
        is_dead = bool(session.ended) and not outcome.messages
        is_refused = bool(session.revision) and (not case or case[0][2:3] == ("whole",))
        if not is_dead and not is_refused:
            return
        self._add_failed_start()

    def _add_failed_start(self) -> None:
        self._failed_starts += 1
        if self._failed_starts >= MAX_FAILED_STARTS:
            self.is_lost = True
            self._add_note(
                f"the target failed {MAX_FAILED_STARTS} times in a row to begin a conversation"
            )

    def _watch_memory(self, session: TargetSession) -> None:
        if session.played not in (_GROWTH_FROM, _GROWTH_TO):
            return
        size = session.memory()
        earlier = self._memory.setdefault(id(session), size)
        if session.played == _GROWTH_TO and earlier and size > _GROWTH * earlier:
            self._add_note(
                f"memory of the server has grown from {earlier >> 20} to {size >> 20} MiB in"
                f" {_GROWTH_TO - _GROWTH_FROM} cases"
            )

    def _add_note(self, note: str) -> None:
        if note not in self.notes and len(self.notes) < MAX_FINDINGS:
            self.notes.append(note)

    def _add_slow(self, name: str) -> None:
        self.slow[name] += 1
        method, _, tool = name.partition(" ")
        if method == "tools/call" and self.slow[name] == MAX_SLOW and tool in self._allowed:
            self._allowed.discard(tool)
            self._add_note(
                f"the tool {tool} takes longer than {CALL_TIMEOUT:g} s, and is not called any more"
            )

    # -- Findings ----------------------------------------------------------------------------------

    async def _examine(
        self, fault: TargetFault, case: Case, before: list[Case], earlier: int
    ) -> None:
        """Confirm a fault on fresh targets, and shrink its case.

        Its session has played `earlier` cases, of which `before` are remembered.
        """
        # Accepted faults come first: with --strict, a habit of the SDK fails the run.
        if self._found.leaves_out(fault, case) or self._habits.explains(fault, case):
            return
        if not self._found.wants(fault, case):
            return
        may_be_away = self.target.kind == "http" and fault.row in _SILENT
        if may_be_away and not await self._recovers():
            self.is_away = True
            steps = joined(before, case)
            self._add_finding(
                FuzzFinding(fault=fault, case=steps, hits=1, plays=1, steps_before=len(steps))
            )
            self._add_note("the server does not answer any more: its finding could not be repeated")
            return
        former = self._found.find_flaky(fault)
        if former is None:
            shown = await self._habits.examine(fault, case)
            if shown is not None:
                self._add_habit(shown)
                return
        finding = await self._examiner.confirm(fault, case, before)
        if finding is None:
            if former is None:
                self._add_unconfirmed(fault, earlier)
            return
        if former is not None and finding.hits <= former.hits:
            return
        try:
            await self._examiner.shrink(finding)
            finding.cause = await self._examiner.find_cause(finding)
        finally:  # it was confirmed, even if the run is cancelled now
            self._add_finding(finding, former)

    def _add_unconfirmed(self, fault: TargetFault, earlier: int) -> None:
        name = f"{fault.row} {fault.method[:_SHOWN]}".strip()
        self.unconfirmed[name] += 1
        self.missing.setdefault(
            name,
            f"only the last {MAX_HISTORY} of the {earlier} cases before it were played again"
            if earlier > MAX_HISTORY
            else "it may need its time, or what is outside of the process, such as a file",
        )

    def _add_finding(self, finding: FuzzFinding, former: FuzzFinding | None = None) -> None:
        """Add a finding, in place of a flaky one that is `former`."""
        if self._found.add(finding, former):
            self._on_finding(finding)

    def _add_habit(self, shown: ShownHabit) -> None:
        """Report a habit when it is found, and let later cases have such steps less often."""
        if shown.seen > 1:
            return
        if shown.habit.is_silence:
            self._found.avoid([shown.case[0], shown.case[-1]])
        self._on_habit(shown)

    async def _recovers(self) -> bool:
        """Wait until the server answers again. Return False if it doesn't."""
        self._activity = "waiting for the server"
        revision = self._choices.revisions[0]
        end = trio.current_time() + AWAY_TIMEOUT
        while trio.current_time() < end:
            try:
                outcome = await play_case(
                    self.target, [("open", revision, "whole", "all")], Player(AWAY_INTERVAL)
                )
            except ConnectFailed:
                outcome = None
            if outcome is not None and outcome.messages and not outcome.faults:
                return True
            await trio.sleep(AWAY_INTERVAL)
        return False

    def _is_spoken(self, case: Case) -> bool:
        """Return False if a case opens a revision without a handshake that the target lacks."""
        return all(
            step[0] != "open" or dialect_of(step[1]).stateful or step[1] in self._choices.revisions
            for step in case
        )

    @property
    def unjudged(self) -> str:
        """Why this run says nothing about the target, empty if it does."""
        if any(each.is_failure for each in self.findings):
            return ""
        if not self.cases and not self.rows_seen():
            return "no case was played; allow more time with --seconds, or give --cases"
        if self.cases and not self.messages:
            return f"the {self.side} has sent no message in any case"
        count = len(self._choices.names)
        if count and not self.calls:
            tools = "1 tool was" if count == 1 else f"{count} tools were"
            return (
                f"{tools} allowed, and no call was answered; allow more time with --seconds, or"
                " more cases with --cases"
            )
        return ""

    @property
    def incomplete(self) -> str:
        """Why this run is incomplete, empty if it isn't."""
        if self.failure is not None:
            return f"an internal error of the fuzzer: {type(self.failure).__name__}"
        if self.is_lost or self.is_away:
            return self.notes[-1] if self.notes else f"the {self.side} does not answer any more"
        return self.unjudged

    # -- For displays ------------------------------------------------------------------------------

    @property
    def findings(self) -> list[FuzzFinding]:
        """The confirmed faults, in the order of their numbers."""
        return self._found.items

    @property
    def found(self) -> Findings:
        """The findings, and how often what the user has accepted was seen."""
        return self._found

    @property
    def habits(self) -> list[ShownHabit]:
        """The habits of its SDK that the target has shown. They aren't findings."""
        return self._habits.shown

    @property
    def activity(self) -> str:
        """The run's activity, empty while it plays drawn cases."""
        return self._activity or self._examiner.activity

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.seconds or time.monotonic() - self._began

    def rows_seen(self) -> int:
        """Return how many rows were judged at least once."""
        seen: set[str] = {row for row, count in self.opportunities.items() if count}
        for session in self._sessions.values():
            seen |= session.judge.opportunities.keys()
        return len(seen)
