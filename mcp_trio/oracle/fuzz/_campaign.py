"""A run of the fuzzer: draw cases, play them, confirm faults and shrink their cases.

1. Cases are drawn in batches in a worker thread, one batch ahead. A batch avoids only what earlier
   batches have found, so that a seed gives the same cases on every machine.
2. Cases share a process, because a start takes longer than a case. A fault is confirmed on fresh
   processes: three plays of the step that shows it, else three plays of the whole case, else the
   case after the cases before it.
3. `run` can be cancelled at any time: `findings` has the faults that were confirmed.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict, deque
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import trio
from msgspec import Struct, field

from mcp_core import ConnectFailed
from mcp_trio._nursery import open_quiet_nursery

from ._call_guard import CallGuard
from ._case import AFTER_CANCEL, Outcome, avoided_name
from ._play import CALL_TIMEOUT, PROBE_METHODS, Player, play_case
from ._session import UNANSWERED, UNANSWERED_MALFORMED, dialect_of
from ._shrink import ShrinkBudget, shrink

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp_core.trace import TraceHeader, TraceLine

    from ._case import Case, Step
    from ._echo import Echo
    from ._play import TargetLike
    from ._session import TargetFault, TargetSession
    from ._steps import CaseChoices

__all__ = ["Campaign", "CampaignOptions", "FuzzFinding"]

BATCH: Final = 32  # cases
CONFIRMATIONS: Final = 3
AWAY_TIMEOUT: Final = 30.0  # seconds for a server at a URL to come back
AWAY_INTERVAL: Final = 1.0
TRIES: Final = 2  # plays of a smaller case
MAX_SHRINKS: Final = 3  # plays of a finding whose smallest case doesn't show it again
MAX_SESSIONS: Final = 6  # faults that wait for another case
# How many cases of a session are played again with the last one.
HISTORIES: Final = (8, 64)
MAX_HISTORY: Final = HISTORIES[-1]
MAX_FAILED_STARTS: Final = 5
MAX_PER_ROW: Final = 3  # findings of a row that are confirmed; more methods are only named
MAX_FINDINGS: Final = 50
MAX_SEEN: Final = 10  # flaky cases of a finding that are confirmed, in search of a solid one
MAX_SLOW: Final = 100  # calls that took too long: then the tool isn't called any more
SHRINK_TIMEOUT: Final = 0.5  # seconds for a response; the smallest case is confirmed with all of it
# Rows that a server at a URL breaks if it is away.
_SILENT: Final = (UNANSWERED, UNANSWERED_MALFORMED, "crash")
_CANCELLATION: Final = "CXL-"  # the first letters of its rows' ids
_CANCEL_FIRST: Final[Case] = [("cancel", 0), AFTER_CANCEL]
_MAX_CANCELLED: Final = 8  # requests that are tried with a cancellation alone
_MANY_STEPS: Final = 4  # steps of a case whose single steps are tried first
_MAX_ALONE: Final = 3  # such steps
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
        known: the row and method of each finding that is left out.
    """

    seconds: float | None = 60.0
    cases: int | None = None
    response_timeout: float = 2.0
    shrinks: bool = True
    keep_going: bool = True
    known: frozenset[tuple[str, str]] = frozenset()


class SourceLike(Protocol):
    """A source of cases."""

    def draw(self, count: int) -> list[Case]:
        """Return `count` cases. It is called in a thread."""


class FuzzFinding(Struct, kw_only=True):
    """A fault that was confirmed on a fresh target.

    Attributes:
        fault: what is wrong.
        case: the smallest case that shows it.
        number: its number among the findings, from 1.
        hits, plays: how often the fault was seen when the case was played again.
        steps_before: the steps of the case that found it.
        shrink_plays: how many plays the shrinking took.
        methods: other methods that show a fault of the same row.
        seen: how many cases have shown it.
        header, lines: the trace of one play.
    """

    fault: TargetFault
    case: Case
    number: int = 0
    hits: int = 0
    plays: int = 0
    steps_before: int = 0
    shrink_plays: int = 0
    methods: list[str] = field(default_factory=list)
    seen: int = 1
    header: TraceHeader | None = None
    lines: list[TraceLine] = field(default_factory=list)

    @property
    def is_solid(self) -> bool:
        """True if every play has shown it."""
        return self.hits == self.plays > 0

    @property
    def is_failure(self) -> bool:
        """True if it is more than advice, and every play has shown it."""
        return self.is_solid and not self.fault.is_advice

    @property
    def messages(self) -> int:
        """The trace's messages."""
        return sum(
            line.sender is not None and (line.raw is not None or line.data is not None)
            for line in self.lines
        )


class Campaign:
    """A run against one target.

    Attributes:
        side: the target's side, "server" or "client".
        find_faults: the function of `mcp_trio.testing` that written tests call.
        findings: the confirmed faults.
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
        activity: what the run does at the moment.
        is_away: the run ended because the server at the URL stopped answering.
        is_lost: the run ended because the target could no longer be started.
        failure: an error of the fuzzer itself that has ended the run, or None.
    """

    side: Literal["client", "server"] = "server"
    find_faults = "find_faults"

    def __init__(
        self,
        target: TargetLike,
        source: SourceLike | None,
        choices: CaseChoices,
        options: CampaignOptions,
        *,
        echo: Echo | None = None,
        on_finding: Callable[[FuzzFinding], object] = lambda finding: None,
    ) -> None:
        self.target = target
        self.findings: list[FuzzFinding] = []
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
        self.activity = ""
        self.is_lost = False
        self.is_away = False
        self.seconds = 0.0
        self._source = source
        self._choices = choices
        self._options = options
        self._on_finding = on_finding
        self._allowed = set(choices.names)
        self._guard = CallGuard(self._allowed, self._known_tools, getattr(choices, "uris", ()))
        self._echo = echo
        self._player = self._new_player(options.response_timeout)
        self._sessions: OrderedDict[tuple[str, str], TargetSession] = OrderedDict()
        self._histories: dict[int, deque[Case]] = {}
        self._memory: dict[int, int] = {}
        self._budget = ShrinkBudget()
        self._avoid: set[tuple[str, str]] = set()
        self._failed_starts = 0
        self._began = time.monotonic()

    def _new_player(
        self, timeout: float, *, probes: bool = True, wanted: tuple[str, str] | None = None
    ) -> Any:
        """Return a player; see `Player`. The fuzzer of clients has another one."""
        return Player(timeout, echo=self._echo, guard=self._guard, probes=probes, wanted=wanted)

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
            self._choices.avoided |= self._avoid
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
        self.activity = ""
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
                is_found = any(each.fault.row == fault.row for each in self.findings)
                if not is_found and case not in self.unplayed:
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
        if (fault.row, fault.method) in self._options.known:
            return
        same = [each for each in self.findings if each.fault.row == fault.row]
        if any(fault.method in each.methods for each in same):
            return
        known = next((each for each in same if each.fault.key == fault.key), None)
        if known is not None:
            known.seen += 1
            if known.is_solid or known.seen > MAX_SEEN:
                return
        elif len(same) >= MAX_PER_ROW and fault.kind == "row":
            same[0].methods.append(fault.method)
            return
        may_be_away = self.target.kind == "http" and fault.row in _SILENT
        if may_be_away and not await self._recovers():
            self.is_away = True
            joined = _joined(before, case)
            self._add_finding(
                FuzzFinding(fault=fault, case=joined, hits=1, plays=1, steps_before=len(joined)),
                None,
            )
            self._add_note("the server does not answer any more: its finding could not be repeated")
            return
        self.activity = f"confirming {fault.row} {fault.method[:_SHOWN]}"
        shown, hits, last = await self._confirm_drawn(fault, case, before)
        if last is None:
            if known is None:
                self._add_unconfirmed(fault, earlier)
            return
        if known is not None and hits <= known.hits:
            return
        finding = FuzzFinding(
            fault=fault,
            case=list(shown[: last.steps]),
            hits=hits,
            plays=CONFIRMATIONS,
            steps_before=max(len(case), len(shown)),
        )
        try:
            last = await self._make_small(finding, last)
        finally:  # it was confirmed, even if the run is cancelled now
            self._add_finding(finding, last, known)

    def _add_unconfirmed(self, fault: TargetFault, earlier: int) -> None:
        name = f"{fault.row} {fault.method[:_SHOWN]}".strip()
        self.unconfirmed[name] += 1
        self.missing.setdefault(
            name,
            f"only the last {MAX_HISTORY} of the {earlier} cases before it were played again"
            if earlier > MAX_HISTORY
            else "it may need its time, or what is outside of the process, such as a file",
        )

    async def _confirm_drawn(
        self, fault: TargetFault, case: Case, before: list[Case]
    ) -> tuple[Case, int, Outcome | None]:
        """Confirm a fault on fresh targets: by `case`, by a part of it, or with earlier cases.

        Return the case, how often it showed the fault, and the last such play if there was one.
        """
        last: Outcome | None
        if 0 < fault.cases_back <= HISTORIES[0]:
            # It is about a request of an earlier case, without which no play would show it.
            case = _joined(before[-fault.cases_back :], case)
            before = before[: -fault.cases_back]
        for few in self._few_steps(fault, case) if self._options.shrinks else ():
            hits, _ = await self._confirm(few, fault, plays=1)
            if hits:
                hits, last = await self._confirm(few, fault)
            if hits == CONFIRMATIONS:
                return few, hits, last
        hits, last = await self._confirm(case, fault)
        if not hits and fault.kind == "row" and fault.method in PROBE_METHODS:
            # The response to the probe can be the fault: then the case itself sends that request.
            case = [*case, ("request", fault.method, {}, "int", "whole")]
            hits, last = await self._confirm(case, fault)
        if hits < CONFIRMATIONS:
            case, hits, last = await self._confirm_slower(case, fault, hits, last)
        for count in HISTORIES if not hits else ():
            joined = _joined(before[-count:], case)
            hits, last = await self._confirm(joined, fault)
            if hits or count >= len(before):
                case = joined
                break
        return case, hits, last

    def _few_steps(self, fault: TargetFault, case: Case) -> list[Case]:
        """Return smaller cases that are likely to show the fault of `case`.

        If one does, most of the shrinking is done. For a fault of cancelling it is one request with
        its cancellation: in a whole case the timing decides which request a `cancel` meets, so
        another play of that case seldom does the same.
        """
        if fault.row.startswith(_CANCELLATION):
            # Without capabilities no call becomes a task, whose first response comes at once.
            newest = ("open", self._newest(), "whole", "none")
            openings = [newest] if case[0] == newest else [newest, case[0]]
            requests = product(openings, _cancellable(case))
            return [[opening, step, *_CANCEL_FIRST] for opening, step in requests]
        if fault.kind != "row" or len(case) < _MANY_STEPS:
            return []
        steps = [step for step in case if _method_of(step) == fault.method]
        return [[case[0], step] for step in steps[-_MAX_ALONE:]]

    async def _make_small(self, finding: FuzzFinding, last: Outcome) -> Outcome:
        """Shrink a finding's case. Return the last play of the case that has shown the fault."""
        fault = finding.fault
        if self._may_shrink(finding):
            opening = await self._play_fresh(
                finding.case[:1], fault, self._options.response_timeout
            )
            if any(each.cause == fault.cause for each in opening.faults):
                finding.case, last = finding.case[:1], opening
        for _ in range(MAX_SHRINKS):
            if not self._may_shrink(finding):
                break
            self.activity = f"shrinking {fault.row} {fault.method[:_SHOWN]}"
            smaller, plays = await shrink(
                finding.case,
                lambda case: self._shows(case, finding),
                self._budget,
                newest=self._newest(),
                # Without its `cancel`, the player would cancel the call itself, later.
                cuts=finding.case[2:] != _CANCEL_FIRST,
            )
            finding.shrink_plays += plays
            confirmed = await self._confirm_smaller(smaller, finding)
            if confirmed is not None:
                _, finding.case, finding.hits, last = confirmed
            if not smaller or (confirmed is not None and confirmed[0] == 1):
                break
        return last

    async def _confirm_smaller(
        self, smaller: list[Case], finding: FuzzFinding
    ) -> tuple[int, Case, int, Outcome] | None:
        """Return the smallest case that shows a fault as often as its finding's case, or None.

        It comes in a tuple: its place from the end of `smaller`, the case, how often it showed the
        fault, and the last such play. A fault that depends on timing can get lost by shrinking.
        """
        for place in (1, 2, 4, 8, 16, 32):
            if place > len(smaller):
                break
            case = smaller[-place]
            hits, last = await self._confirm(case, finding.fault)
            if hits < finding.hits:
                case, hits, last = await self._confirm_slower(case, finding.fault, hits, last)
            if last is not None and hits >= finding.hits:
                return place, case, hits, last
        return None

    def _add_finding(
        self, finding: FuzzFinding, last: Outcome | None, known: FuzzFinding | None = None
    ) -> None:
        """Add a finding, in place of a flaky one that is `known`."""
        if last is not None:
            found = [each for each in last.faults if each.cause == finding.fault.cause]
            finding.fault = found[0] if found else finding.fault
            finding.header, finding.lines = last.header, last.lines
        if known is not None:
            finding.number, finding.seen, finding.methods = known.number, known.seen, known.methods
            self.findings[known.number - 1] = finding
        else:
            for each in self.findings:
                if each.fault.key == finding.fault.key:  # it became the same when it was shrunk
                    each.seen += 1
                    return
            self.findings.append(finding)
            finding.number = len(self.findings)
        if len(finding.case) <= MAX_PER_ROW:
            self._avoid |= {name for step in finding.case[1:] if (name := avoided_name(step))}
        self._on_finding(finding)

    async def _recovers(self) -> bool:
        """Wait until the server answers again. Return False if it doesn't."""
        self.activity = "waiting for the server"
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

    async def _confirm(
        self, case: Case, fault: TargetFault, plays: int = CONFIRMATIONS
    ) -> tuple[int, Outcome | None]:
        """Play a case on fresh targets. Return how often it showed the fault, and the last time."""
        hits, last = 0, None
        for _ in range(plays):
            outcome = await self._play_fresh(case, fault, self._options.response_timeout)
            if any(each.cause == fault.cause for each in outcome.faults):
                hits, last = hits + 1, outcome
        return hits, last

    async def _confirm_slower(
        self, case: Case, fault: TargetFault, hits: int, last: Outcome | None
    ) -> tuple[Case, int, Outcome | None]:
        """Play a case with waits between its steps. Return it if it shows the fault more often.

        Without waits it did so `hits` times. A response that overtakes another can hide a fault.
        """
        slower = self._with_waits(case)
        if slower != case:
            slower_hits, slower_last = await self._confirm(slower, fault)
            if slower_hits > hits:
                return slower, slower_hits, slower_last
        return case, hits, last

    def _newest(self) -> str:
        """Return the newest revision of the target, or "" if cases don't choose it."""
        return max(self._choices.revisions)

    def _with_waits(self, case: Case) -> Case:
        """Return a case that waits for the responses to each step before the next one."""
        return [each for step in case for each in (step, ("wait",))]

    def _may_shrink(self, finding: FuzzFinding) -> bool:
        return 2 * finding.hits > finding.plays and self._options.shrinks and len(finding.case) > 1

    async def _shows(self, case: Case, finding: FuzzFinding) -> Case | None:
        """Return the part of a case after which it has shown a finding's fault, or None.

        Two of two plays must show a solid fault, since a slow machine can show it once by chance.
        One of two must show a flaky fault.
        """
        timeout = min(SHRINK_TIMEOUT, self._options.response_timeout)
        found: Case | None = None
        for _ in range(TRIES):
            outcome = await self._play_fresh(case, finding.fault, timeout)
            is_shown = any(each.cause == finding.fault.cause for each in outcome.faults)
            if is_shown:
                found = max(found or [], case[: outcome.steps], key=len)
            if is_shown != finding.is_solid:
                return found if is_shown else None
        return found

    def _is_spoken(self, case: Case) -> bool:
        """Return False if a case opens a revision without a handshake that the target lacks."""
        return all(
            step[0] != "open" or dialect_of(step[1]).stateful or step[1] in self._choices.revisions
            for step in case
        )

    async def _play_fresh(self, case: Case, fault: TargetFault, timeout: float) -> Outcome:
        player = self._new_player(timeout, probes=fault.kind != "row", wanted=fault.cause)
        return await play_case(self.target, case, player)

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
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.seconds or time.monotonic() - self._began

    def rows_seen(self) -> int:
        """Return how many rows were judged at least once."""
        seen: set[str] = {row for row, count in self.opportunities.items() if count}
        for session in self._sessions.values():
            seen |= session.judge.opportunities.keys()
        return len(seen)


def _joined(before: Iterable[Case], case: Case) -> Case:
    """Return the steps of all cases as one case."""
    return [step for each in (*before, case) for step in each]


def _method_of(step: Step) -> Any:
    """Return the method that a step sends; for other steps their second word, or None."""
    return "tools/call" if step[0] == "call" else step[1] if len(step) > 1 else None


def _cancellable(case: Case) -> list[Step]:
    """Return a case's requests, calls first; each call also without its arguments."""
    calls = [step for step in case if step[0] == "call"]
    requests = [step for step in case if step[0] == "request" and step != AFTER_CANCEL]
    simple: list[Step] = [("call", step[1], {}, ()) for step in calls]
    found: list[Step] = []
    for step in (*simple, *calls, *requests):
        if step not in found:
            found.append(step)
    return found[:_MAX_CANCELLED]
