"""A run of the fuzzer: draw cases, play them, confirm faults and shrink their cases.

1. Lanes play cases side by side, each one conversation at a time, and take the cases by number
   (`_feed`). Cases share a process, because a start takes longer than a case (`_sessions`).
2. The faults that they show wait for an examination (`_agenda`), which plays a case alone on fresh
   processes (`_examination`). It runs beside the lanes. If there is one lane, or one server for all
   of them, the lanes wait meanwhile, and their time stands still.
3. After the time for drawing there is some time more for the faults that still wait. What has not
   been examined then is said, and played first in the next run.
4. `run` can be cancelled at any time: `findings` has the faults that were confirmed.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import trio
from msgspec import Struct
from msgspec.structs import replace

from mcp_core import ConnectFailed
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.oracle.fuzz._call_guard import CallGuard
from mcp_trio.oracle.fuzz._call_times import DEFAULT_CALL_TIMEOUT, CallTimes
from mcp_trio.oracle.fuzz._case import own_step, without_orphans
from mcp_trio.oracle.fuzz._fault import UNANSWERED, UNANSWERED_MALFORMED, TargetFault, link_of
from mcp_trio.oracle.fuzz._revisions import dialect_of
from mcp_trio.oracle.fuzz.causes._baseline import NO_BASELINE
from mcp_trio.oracle.fuzz.habits._table import HABITS
from mcp_trio.oracle.fuzz.habits._watch import HabitWatch
from mcp_trio.oracle.fuzz.play._player import FreshPlays, Player, play_case

from ._agenda import MAX_TRIES, Agenda, Sighting
from ._examination import MAX_HISTORY, Examiner, joined
from ._feed import CaseFeed
from ._findings import MAX_FINDINGS, Findings, FuzzFinding, HeldFinding
from ._memory import MemoryWatch
from ._sessions import SessionPool
from ._shrink import MAX_SECONDS, ShrinkBudget

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
        Iterator,
        Sequence,
    )

    from mcp_trio.oracle.fuzz._case import Case, Outcome
    from mcp_trio.oracle.fuzz._echo import Echo
    from mcp_trio.oracle.fuzz._session import TargetSession
    from mcp_trio.oracle.fuzz.causes._baseline import Baseline, IgnoredRow
    from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
    from mcp_trio.oracle.fuzz.habits._table import Habit
    from mcp_trio.oracle.fuzz.habits._watch import ShownHabit
    from mcp_trio.oracle.fuzz.invariants._checks import Checks
    from mcp_trio.oracle.fuzz.play._player import TargetLike

    from ._feed import SourceLike

__all__ = ["DEFAULT_LANES", "Campaign", "CampaignOptions"]

DEFAULT_LANES: Final = 4  # with a command; a URL is one server for all lanes

# Seconds for examinations after the drawing, and how many for each second of drawing.
MIN_EXAMINATION, MAX_EXAMINATION = 10.0, 60.0
EXAMINED_PART: Final = 0.4
# Of these seconds, the last part isn't used for shrinking: what got smaller must be confirmed.
CONFIRMED_PART: Final = 0.3
AWAY_TIMEOUT: Final = 30.0  # seconds for a server at a URL to come back
AWAY_INTERVAL: Final = 1.0
MAX_FAILED_STARTS: Final = 5
SERVER_ERROR, BUSY = 500, 503  # HTTP statuses
MAX_SLOW: Final = 100  # calls that took too long: then the tool isn't called any more
# Rows that a server at a URL breaks if it is away.
_SILENT: Final = (UNANSWERED, UNANSWERED_MALFORMED, "crash")
_SHOWN: Final = 80  # characters of a method, which the peer can choose


class CampaignOptions(Struct, kw_only=True, frozen=True):
    """The options of a run.

    Attributes:
        seconds: how long cases are drawn; None for no limit.
        cases: how many at most; None for no limit.
        response_timeout: seconds for a response.
        call_timeout: seconds for a tool's first call, and at most for later ones.
        shrinks: whether findings are shrunk.
        keep_going: whether the run goes on after the first finding.
        baseline: an earlier report, whose findings are left out.
        ignored: the rows that are left out.
        lanes: how many cases are played side by side.
        examination: seconds after the drawing for the faults that wait for an examination, also
            those of the pauses with one lane. None for a part of `seconds`.
    """

    seconds: float | None = 60.0
    cases: int | None = None
    response_timeout: float = 2.0
    call_timeout: float = DEFAULT_CALL_TIMEOUT
    shrinks: bool = True
    keep_going: bool = True
    baseline: Baseline = NO_BASELINE
    ignored: tuple[IgnoredRow, ...] = ()
    lanes: int = 1
    examination: float | None = None

    def after(self, spent: float) -> CampaignOptions:
        """Return the options of a run that took `spent` seconds to begin.

        They come off the time for examinations, of which half is left at least. So a run ends in
        time although the target answers slowly.
        """
        whole = self.examination_time
        return replace(self, examination=max(whole / 2, whole - spent))

    @property
    def examination_time(self) -> float:
        """Seconds for examinations: infinite if the drawing has no limit of time."""
        if self.examination is not None:
            return self.examination
        if self.seconds is None:
            return math.inf
        return min(MAX_EXAMINATION, max(MIN_EXAMINATION, EXAMINED_PART * self.seconds))


class Campaign:
    """A run against one target.

    Attributes:
        side: the target's side, "server" or "client".
        find_faults: the function of `mcp_trio.testing` that written tests call.
        known_habits: the habits of SDKs that are told apart.
        unplayed: stored cases that `run` hasn't played, and a case of each fault that it hasn't
            examined.
        unconfirmed: how often each row and method was seen that no further play has confirmed.
        unexamined: how many of them, apart from advice, no further play was tried for, because the
            run has ended.
        missing: what a further play may lack for each of them, as a clause.
        opportunities: how often each row was judged.
        cases: how many cases were played.
        reconnects: how many further conversations cases have begun.
        messages: how many messages of the target were judged.
        calls: how many calls of tools that may be called were answered.
        notes: strange things that aren't faults.
        slow: how often each tool didn't answer in time.
        is_away: the run ended because the server at the URL stopped answering.
        is_lost: the run ended because the target could no longer be started.
        failure: an error of the fuzzer itself that has ended the run, or None.
        interrupted: how a signal has ended the run, as a clause, or "".
        checks: the author's own functions; None without any.
        kept: findings of an earlier report that this run cannot play, as the next report has them.
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
        checks: Checks | None = None,
    ) -> None:
        self.target = target
        self.checks = checks
        if checks is not None:
            checks.schemas.learn(choices.offers.tools)
        self.kept: list[Any] = []
        self.unplayed: list[Case] = []
        self.repaired = 0
        self.unconfirmed: Counter[str] = Counter()
        self.unexamined = 0
        self.missing: dict[str, str] = {}
        self.opportunities: Counter[str] = Counter()
        self.cases = 0
        self.reconnects = 0
        self.messages = 0
        self.calls = 0
        self.failure: Exception | None = None
        self.interrupted = ""
        self.notes: list[str] = []
        self.slow: Counter[str] = Counter()
        self.is_lost = False
        self.is_away = False
        self._source = source
        self._choices = choices
        self._options = options
        self._on_finding = on_finding
        self._on_habit = on_habit
        self._allowed = set(choices.names)
        self._guard = CallGuard(self._allowed, self._known_tools, getattr(choices, "uris", ()))
        self._echo = echo
        self._call_times = CallTimes(options.call_timeout)
        self._plays = FreshPlays(target, self._new_player, options.response_timeout)
        self._habits = HabitWatch(self._plays, choices, table=self.known_habits)
        main = getattr(choices, "main_revisions", ())
        self._sessions = SessionPool(target, options.lanes, main, self._end_session)
        self._memory = MemoryWatch()
        self._found = Findings(options.baseline, options.ignored, self._known_tools())
        self._agenda = Agenda(self._found)
        self._is_beside = options.lanes > 1 and target.kind != "http"
        workers = options.lanes if target.kind != "http" else 1
        self._workers = workers
        self._budget = ShrinkBudget(MAX_SECONDS * workers) if options.shrinks else None
        self._examiner = self._new_examiner()
        self._activities: list[str] = []
        self._turns = Turns()
        self._habit_lock = trio.Lock()
        self._scope = trio.CancelScope()
        self._lanes = trio.CancelScope()
        self._changed = trio.Event()
        self._failed_starts = 0
        self._broken = 0  # cases in a row in which a URL had only errors
        self._recent: deque[Case] = deque(maxlen=MAX_HISTORY)  # of all sessions
        self._began: float | None = None
        self._drawn: float | None = None
        self._ended: float | None = None
        self._paused = 0.0  # seconds that lanes have waited for examinations
        self._examination = options.examination_time

    def _new_player(
        self,
        timeout: float,
        *,
        probes: bool = True,
        wanted: tuple[str, str] | None = None,
        call_times: CallTimes | None = None,
    ) -> Any:
        """Return a player; see `Player`. The fuzzer of clients has another one."""
        return Player(
            timeout,
            echo=self._echo,
            guard=self._guard,
            probes=probes,
            wanted=wanted,
            drops=self._habits.drops,
            call_times=call_times or self._call_times,
            checks=None if self.checks is None else self.checks.begin(),
        )

    def _new_examiner(self) -> Examiner:
        return Examiner(self._plays, self._choices, budget=self._budget, tools=self._known_tools())

    def _known_tools(self) -> set[str]:
        return {str(each.get("name")) for each in self._choices.offers.tools}

    # -- The run -----------------------------------------------------------------------------------

    async def run(self, stored: Iterable[Case] = ()) -> None:
        """Play `stored` cases, and then drawn ones until the limits are reached."""
        self._began = trio.current_time()
        self._scope.deadline = self._end_of_drawing() + self._examination
        if self._budget is not None:
            self._budget.deadline = self._scope.deadline - CONFIRMED_PART * self._examination
        parts = [(case, self._allowed_part(case)) for case in stored if self._is_spoken(case)]
        self.unplayed = [part for case, part in parts if len(part) == len(case)]
        cut = [part for case, part in parts if len(part) < len(case)]
        try:
            with self._scope:
                await self._play_and_examine(cut)
        finally:
            self._end_examinations()
            self._ended = trio.current_time()
            with trio.CancelScope(shield=True):
                await self._sessions.aclose()
            if note := self._memory.note():
                self._add_note(note)
            for note in () if self.checks is None else self.checks.notes(self.seconds):
                self._add_note(note)

    async def _play_and_examine(self, cut: list[Case]) -> None:
        async with open_quiet_nursery(wait=True) as nursery:
            if self._is_beside:
                self._start_workers(nursery)
            with self._lanes:
                await self._play_cases(cut)
            self._drawn = trio.current_time()
            self._wake()
            if not self._is_beside:
                self._start_workers(nursery)

    def _start_workers(self, nursery: trio.Nursery) -> None:
        for _ in range(self._workers):
            nursery.start_soon(self._watch, self._examine_beside)

    async def _watch(self, act: Callable[[], Awaitable[None]]) -> None:
        """Run a part of the run. If the target doesn't start any more, end the whole run."""
        try:
            await act()
        except ConnectFailed as exc:
            if not self.is_lost:
                self.notes.append(str(exc))  # the last one: it says why the run has ended
            self.is_lost = True
            self._scope.cancel()

    async def _play_cases(self, cut: list[Case]) -> None:
        """Play the stored cases, then what is left of those that were cut, then drawn ones."""
        await self._run_lanes(partial(self._play_stored, iter(list(self.unplayed))))
        if cut:
            await self._run_lanes(partial(self._play_stored, iter(cut), is_whole=False))
        if self._source is None or self._is_over():
            return
        cases = self._options.cases
        count = None if cases is None else cases - self.cases
        feed = CaseFeed(self._source, self._choices, count)
        async with open_quiet_nursery() as nursery:
            nursery.start_soon(feed.run)
            await self._run_lanes(partial(self._play_drawn, feed))

    async def _run_lanes(self, lane: Callable[[], Awaitable[None]]) -> None:
        async with open_quiet_nursery(wait=True) as nursery:
            for _ in range(self._options.lanes):
                nursery.start_soon(self._watch, lane)

    async def _play_stored(self, stored: Iterator[Case], *, is_whole: bool = True) -> None:
        for case in stored:
            if self.is_lost or self.is_away or self._is_time_over():
                return
            outcome = await self._play_one(case)
            self.repaired += is_whole and not outcome.faults
            self.unplayed = [each for each in self.unplayed if each is not case]
            await self._pause()

    async def _play_drawn(self, feed: CaseFeed) -> None:
        while not self._is_over():
            fed = await feed.next()
            if fed is None or self._is_over():
                break
            outcome = await self._play_one(fed.case)
            feed.finish(fed, outcome.faults, outcome.changers)
            await self._pause()
        feed.stop()  # other lanes may wait for cases that would not be played

    def _allowed_part(self, case: Case) -> Case:
        """Return a stored case without steps that do more than a drawn case may.

        Those steps aren't played, so they must not be in the tests that are written either.
        """
        return without_orphans([step for step in case if self._guard.allows_step(step)])

    def lacks(self, case: Case) -> str:
        """Return why this run can't play a whole stored case, as a clause; empty if it can.

        Without a whole play it isn't known whether its fault is repaired.
        """
        for step in map(own_step, case):
            if step[0] == "open" and not self._speaks(step[1]):
                return f"the {self.side} does not speak {step[1]}, or --era leaves it out"
        if len(self._allowed_part(case)) < len(case):
            return (
                "its steps may call tools that are not allowed, or read resources that are not"
                " listed; allow them with --allow-tool NAME, or remove the finding from the report"
            )
        return ""

    def _is_over(self) -> bool:
        options = self._options
        if self.is_lost or self.is_away or self._found.count >= MAX_FINDINGS:
            return True
        if self._has_enough():
            return True
        if options.cases is not None and self.cases >= options.cases:
            return True
        return self._is_time_over()

    def _has_enough(self) -> bool:
        """Return True if no further fault is wanted, because there is one."""
        return self._found.count > 0 and not self._options.keep_going

    def _is_time_over(self) -> bool:
        return trio.current_time() >= self._end_of_drawing()

    def _end_of_drawing(self) -> float:
        """Return the time at which no case is begun any more."""
        if self._options.seconds is None or self._began is None:
            return math.inf
        return self._began + self._options.seconds + self._paused

    async def _play_one(self, case: Case) -> Outcome:
        """Play a case, and return its outcome. Its faults wait for an examination."""
        async with self._turns.beside():
            shared = await self._sessions.take(case)
            session = shared.session
            player = self._new_player(self._options.response_timeout)
            try:
                outcome: Outcome = await player.play(case, session)
            except BaseException:
                with trio.CancelScope(shield=True):
                    await session.aclose()
                raise
            before = list(shared.history)
            shared.history.append(case)
            self._recent.append(case)
            self._count(outcome)
            self._watch_memory(session)
            self._watch_starts(session, case, outcome)
            session.spent = session.spent or self._habits.spoils(case)
            await self._sessions.give_back(shared)
        for fault in outcome.faults:
            # Accepted faults come first: with --strict, a habit of the SDK fails the run.
            if self._found.leaves_out(fault, case, before):
                continue
            if self._habits.explains(fault, case, before):
                continue
            self._agenda.add(
                Sighting(fault=fault, case=case, before=before, earlier=session.played - 1)
            )
        self._wake()
        if self._has_only_errors(session, outcome) and not await self._recovers():
            before = [each for each in self._recent if each is not case]
            fault = _broken_down(session)
            self._lose(Sighting(fault=fault, case=case, before=before, earlier=len(before)))
            self.is_lost = False  # this says more than a start that fails
        # A call that still runs at the URL would look like a hang to the next session.
        if outcome.is_blocked and self.target.kind == "http" and not await self._recovers():
            self.is_away = True
            self._add_note("the server does not answer any more since a call takes long")
        return outcome

    def _has_only_errors(self, session: TargetSession, outcome: Outcome) -> bool:
        """Return True once a server at a URL that has served before has only errors left."""
        if self.target.kind != "http":
            return False
        status = session.last_status
        # A server that is busy says 503: it may serve again.
        is_broken = status >= SERVER_ERROR and status != BUSY and not outcome.messages
        self._broken = self._broken + 1 if is_broken else 0
        return self._broken == MAX_FAILED_STARTS and self.messages > 0 and not self.is_away

    def _count(self, outcome: Outcome) -> None:
        self.cases += 1
        self.reconnects += outcome.reconnects
        self.messages += outcome.messages
        self.calls += outcome.calls
        for name in outcome.slow:
            self._add_slow(name)
        for note in outcome.notes:
            self._add_note(note)

    async def _end_session(self, session: TargetSession) -> None:
        self._memory.end(id(session))
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
        if self._memory.is_due(session.played):
            self._memory.add(id(session), session.played, session.memory())

    def _add_note(self, note: str) -> None:
        if note not in self.notes and len(self.notes) < MAX_FINDINGS:
            self.notes.append(note)

    def _add_slow(self, name: str) -> None:
        self.slow[name] += 1
        method, _, tool = name.partition(" ")
        if method == "tools/call" and self.slow[name] == MAX_SLOW and tool in self._allowed:
            self._allowed.discard(tool)
            self._add_note(
                f"the tool {tool} was too slow {MAX_SLOW} times, and is not called any more;"
                " allow more time with --call-timeout"
            )

    # -- Findings ----------------------------------------------------------------------------------

    async def _pause(self) -> None:
        """Examine what waits while no case is played, unless it is examined beside the cases.

        With a limited time, what the time for it doesn't allow waits until the drawing is over.
        """
        if self._is_beside or not len(self._agenda):
            return
        async with self._turns.alone():
            began, spent = trio.current_time(), self._paused
            while not self.is_away and self._paused < self._examination / 2:
                is_examined = await self._examine_next(self._examination / 2 - self._paused)
                self._paused = spent + trio.current_time() - began
                if not is_examined:
                    break

    async def _examine_beside(self) -> None:
        """Examine what waits, until the drawing is over and nothing waits."""
        while not self.is_away:
            if await self._examine_next():
                continue
            if self._drawn is not None:
                break
            await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def _examine_next(self, shrink_seconds: float = math.inf) -> bool:
        """Examine what is worth it most. Return False if nothing waits."""
        job = self._agenda.take(is_enough=self._has_enough())
        if isinstance(job, Sighting):
            await self._confirm(job)
        elif job is not None:
            await self._shrink(job, shrink_seconds)
        return job is not None

    async def _confirm(self, sighting: Sighting) -> None:
        fault, finding, is_done = sighting.fault, None, False
        try:
            with self._doing(f"confirming {fault.row} {fault.method[:_SHOWN]}"):
                may_be_away = self.target.kind == "http" and fault.row in _SILENT
                if may_be_away and not await self._recovers():
                    self._lose(sighting)
                    is_done = True
                    return
                if await self._is_habit(fault, sighting.case, sighting.before):
                    is_done = True
                    return
                finding = await self._examiner.confirm(fault, sighting.case, sighting.before)
            is_done = True
        finally:
            self._agenda.release(sighting, is_done=is_done)
            self._wake()
        former = self._found.find_flaky(fault, sighting.case)
        if finding is not None:
            if former is None or finding.hits > former.hits:
                self._agenda.hold(HeldFinding(finding, former))
                if self._is_beside and self._has_enough():
                    self._lanes.cancel()  # their cases may take long
        elif former is None:
            self._add_unconfirmed(
                sighting,
                f"only the last {MAX_HISTORY} of the {sighting.earlier} cases before it were played"
                " again"
                if sighting.earlier > MAX_HISTORY
                else "it may need its time, or what is outside of the process, such as a file",
            )

    async def _is_habit(self, fault: TargetFault, case: Case, before: Sequence[Case] = ()) -> bool:
        """Return True if a fault is a habit of the server's SDK."""
        async with self._habit_lock:
            if self._habits.explains(fault, case, before):
                return True
            if self._found.find_flaky(fault, case) is not None:
                return False
            shown = await self._habits.examine(fault, case, before)
        if shown is not None and shown.seen == 1:  # else it is named already
            self._on_habit(shown)
        return shown is not None

    def _lose(self, sighting: Sighting) -> None:
        """Report a fault after which the server doesn't answer any more."""
        self.is_away = True
        steps = joined(sighting.before, sighting.case)
        finding = FuzzFinding(
            fault=sighting.fault, case=steps, hits=1, plays=1, steps_before=len(steps)
        )
        self._add_finding(HeldFinding(finding))
        self._add_note("the server does not answer any more: its finding could not be repeated")

    async def _shrink(self, held: HeldFinding, seconds: float) -> None:
        finding, fault = held.finding, held.finding.fault
        is_habit = False
        try:
            with (
                self._doing(f"shrinking {fault.row} {fault.method[:_SHOWN]}"),
                trio.move_on_after(seconds),
            ):
                left = min(seconds, self._scope.deadline - trio.current_time())
                await self._examiner.prove(finding, self._options.call_timeout, left)
                await self._examiner.shrink(finding)
                # A long case can hide that one message is enough.
                is_habit = await self._is_habit(finding.fault, finding.case)
                if not is_habit:
                    finding.cause = await self._examiner.find_cause(finding)
        finally:  # it was confirmed, even if the run is cancelled now
            if is_habit:
                self._found.drop(held)
            else:
                self._add_finding(held)
            self._wake()

    def _end_examinations(self) -> None:
        """Add the findings that weren't made small, and name the faults that weren't examined."""
        for held in list(self._found.held):
            if self._habits.explains(held.finding.fault, held.finding.case):
                self._found.drop(held)
            else:
                self._add_finding(held)
        for sighting in self._agenda.take_untried():
            if self._habits.explains(sighting.fault, sighting.case, sighting.before):
                continue
            self.unexamined += not sighting.fault.is_advice
            self._add_unconfirmed(sighting, "the run has ended before it was played again")
            if not self._found.has_row(sighting.fault.row) and sighting.case not in self.unplayed:
                self.unplayed.append(sighting.case)  # the next run confirms it

        for sighting in self._agenda.take_uncounted():
            if self._found.find_flaky(sighting.fault, sighting.case) is None:
                missing = f"{MAX_TRIES} cases of it were played again in vain"
                self._add_unconfirmed(sighting, missing)

    def _add_unconfirmed(self, sighting: Sighting, missing: str) -> None:
        name = f"{sighting.fault.row} {sighting.fault.method[:_SHOWN]}".strip()
        self.unconfirmed[name] += sighting.times
        self.missing.setdefault(name, missing)

    def _add_finding(self, held: HeldFinding) -> None:
        self._found.drop(held)
        if self._found.add(held.finding, held.former):
            self._on_finding(held.finding)

    @contextmanager
    def _doing(self, activity: str) -> Iterator[None]:
        self._activities.append(activity)
        try:
            yield
        finally:
            self._activities.remove(activity)

    async def _recovers(self) -> bool:
        """Wait until the server answers again. Return False if it doesn't."""
        revision = self._choices.revisions[0]
        end = min(trio.current_time() + AWAY_TIMEOUT, self._scope.deadline - AWAY_INTERVAL)
        with self._doing("waiting for the server"), trio.move_on_at(end):
            while True:
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
        return all(step[0] != "open" or self._speaks(step[1]) for step in map(own_step, case))

    def _speaks(self, revision: str) -> bool:
        return dialect_of(revision).stateful or revision in self._choices.revisions

    @property
    def calls_tools(self) -> bool:
        """True if at least one tool of the server may be called."""
        return bool(self._choices.names)

    @property
    def unjudged(self) -> str:
        """Why this run says nothing about the target, empty if it does."""
        if any(each.is_failure for each in self.findings):
            return ""
        if self.unexamined:
            faults = "a fault was" if self.unexamined == 1 else f"{self.unexamined} faults were"
            return (
                f"{faults} seen, and the run has ended before a further play; allow more time with"
                " --seconds"
            )
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
        return "" if self.checks is None else self.checks.unjudged

    @property
    def incomplete(self) -> str:
        """Why this run is incomplete, empty if it isn't."""
        if self.failure is not None:
            return f"an internal error of the fuzzer: {type(self.failure).__name__}"
        if self.interrupted:
            return self.interrupted
        if self.is_lost or self.is_away:
            return self.notes[-1] if self.notes else f"the {self.side} does not answer any more"
        return self.broken or self.unjudged

    @property
    def broken(self) -> str:
        """Which of the author's functions are broken, and why; empty if none is."""
        return "" if self.checks is None else self.checks.failure

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
    def starts(self) -> int:
        """How many processes were started for cases, or at a URL how many conversations were begun.

        Those for examinations aren't counted.
        """
        return self._sessions.starts + self.reconnects

    @property
    def activity(self) -> str:
        """The examinations that are under way, and how many more wait."""
        found = ", ".join(self._activities[:1])
        waiting = len(self._agenda) + len(self._activities[1:])
        return f"{found} (+{waiting})" if found and waiting else found

    @property
    def seconds(self) -> float:
        """Seconds from the run's beginning until now, or until its end."""
        if self._began is None:
            return 0.0
        return (trio.current_time() if self._ended is None else self._ended) - self._began

    @property
    def drawing_seconds(self) -> float:
        """How many of them cases were drawn and played, without the pauses for examinations."""
        if self._began is None or self._drawn is None:
            return self.seconds - self._paused
        return self._drawn - self._began - self._paused

    @property
    def is_drawn(self) -> bool:
        """True once no further case is drawn, and only examinations go on."""
        return self._drawn is not None

    @property
    def left(self) -> float | None:
        """Seconds that are left for drawing or, after it, for examining; None without limit."""
        if self._options.seconds is None or self._began is None:
            return None
        end = self._scope.deadline if self._drawn is not None else self._end_of_drawing()
        return max(0.0, end - trio.current_time())

    def rows_seen(self) -> int:
        """Return how many rows were judged at least once."""
        seen: set[str] = {row for row, count in self.opportunities.items() if count}
        for session in self._sessions:
            seen |= session.judge.opportunities.keys()
        return len(seen)


def _broken_down(session: TargetSession) -> TargetFault:
    """Return the fault of a server at a URL that has only errors left."""
    status = session.last_status
    return TargetFault(
        kind="hang",
        row=UNANSWERED,
        detail=f"status {status}",
        method=session.last_sent,
        sentence=f"the server served before, and each request gets the HTTP status {status} now",
        link=link_of(UNANSWERED, session.revision),
    )


class Turns:
    """The turns of cases, which are played beside each other, and of an examination, which is not.

    An examination waits for the cases that are being played, and the next cases wait for it.
    """

    def __init__(self) -> None:
        self._lock = trio.Lock()
        self._playing = 0
        self._idle = trio.Event()

    @asynccontextmanager
    async def beside(self) -> AsyncIterator[None]:
        """Play a case in the block."""
        async with self._lock:
            self._playing += 1
        try:
            yield
        finally:
            self._playing -= 1
            self._idle.set()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Wait for the cases. No other one begins until the end of the block."""
        async with self._lock:
            while self._playing:
                self._idle = trio.Event()
                await self._idle.wait()
            yield
