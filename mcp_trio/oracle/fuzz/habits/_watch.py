"""Tell the habits of a server's SDK from the faults of its author.

A fault is pardoned as a habit only if, on fresh processes of this run,

1. the server shows two further marks of an SDK that has the habit, and no mark that it hasn't; for
   a habit of FastMCP, or of the SDK's class of that kind, its lists show that too,
2. the habit's own probe shows it,
3. the one message of the case for which the habit's predicate holds brings exactly its reaction,
   and the server answers the next request.

Once a habit was shown, further faults by it are only counted, and the player doesn't wait for the
responses that it takes away.

A habit that lasts changes what the process answers to all later requests, in later cases too. It
pardons a row's faults only if the case shows one after such a message, and not without it. Once it
was shown, no further case shares a process with such a message.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import trio
from msgspec import Struct, field

from mcp_core.trace import ROWS
from mcp_trio.oracle.fuzz._case import own_step
from mcp_trio.oracle.fuzz._fault import BATCHED
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._sdk_marks import find_marks, has_framework_mark, list_method, mark_steps
from ._table import HABITS, ListedNames, MessageExchange, decoded, read_exchange, sent_by

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_trio.oracle.fuzz._case import Case, Step
    from mcp_trio.oracle.fuzz._fault import TargetFault
    from mcp_trio.oracle.fuzz.draw._choices import CaseChoices, OffersLike
    from mcp_trio.oracle.fuzz.play._player import FreshPlays

    from ._table import Habit

__all__ = ["HabitWatch", "ShownHabit"]

MARKS: Final = 2  # further marks of an SDK that has the habit
TRIES: Final = 3  # conversations in which a server may show its marks
MAX_METHODS: Final = 20  # that a habit names
_SHOWN: Final = 80  # characters of a method
_DISCOVER: Final = "server/discover"
_DISCOVERED: Final = ("page", _DISCOVER, "first")
# Seconds for a response. The marks and the next response say more than a longer wait.
PROBE_TIMEOUT: Final = 0.5


class ShownHabit(Struct, kw_only=True):
    """A habit that the server has shown in this run.

    Attributes:
        habit: the row of the table.
        sdk: the SDK whose marks the server has.
        marks: these marks.
        case: the case with the one message.
        level: the level of the row that it breaks.
        methods: some methods of the messages that have shown it.
        seen: how many cases have.
    """

    habit: Habit
    sdk: str
    marks: list[str]
    case: Case
    level: str
    methods: list[str] = field(default_factory=list)
    seen: int = 0

    def count(self, fault: TargetFault) -> None:
        """Count one more fault by it."""
        self.seen += 1
        method = fault.method[:_SHOWN]  # a drawn one can be any text
        if method not in self.methods and len(self.methods) < MAX_METHODS:
            self.methods.append(method)

    @property
    def sentence(self) -> str:
        """The habit, its SDK, and where it was seen."""
        versions, link = self.habit.sdks[self.sdk]
        told = f": {link}" if link else ""
        return f"{self.habit.sentence}; a habit of {self.sdk} ({versions}){told}"


class HabitWatch:
    """A watch over one run: which habits its server has.

    Args:
        plays: play a case on a fresh target.
        choices: what the cases are drawn from.
        table: the habits that are known.

    Attributes:
        shown: the habits that the server has shown.
    """

    def __init__(
        self,
        plays: FreshPlays,
        choices: CaseChoices,
        *,
        table: Sequence[Habit] = HABITS,
    ) -> None:
        self.shown: list[ShownHabit] = []
        self._plays = plays
        self._choices = choices
        self._table = list(table)  # without those that were shown, or that the server hasn't
        self._listed = ListedNames()
        if table:  # for a client it is empty
            self._take_offers(choices.offers)
        self._lock = trio.Lock()
        self._explained: set[tuple[str, str]] = set()  # habits that last, and rows of their faults
        self._marks: dict[str, dict[str, frozenset[str]]] = {}  # by revision
        self._tries: Counter[str] = Counter()  # to find them, by revision

    def _take_offers(self, offers: OffersLike) -> None:
        self._listed = ListedNames.of(offers)
        others = (*offers.prompts, *offers.resources, *offers.templates)
        if not has_framework_mark(offers.tools, others):
            self._table = [each for each in self._table if not each.is_of_framework]

    def drops(self, message: Any) -> bool:
        """Return True if a habit that was shown takes away the response to a request.

        For a list, the responses to a batch.
        """
        exchange = MessageExchange(message, listed=self._listed)
        return any(each.habit.is_silence and each.habit.holds(exchange) for each in self.shown)

    def explains(self, fault: TargetFault, case: Case, before: Sequence[Case] = ()) -> bool:
        """Return True if a habit that was shown explains a fault of `case`. It is counted.

        `before` are the cases that its session has played before it.
        """
        found = self._find_shown(fault, case, before)
        if found is not None:
            found.count(fault)
        return found is not None

    def _find_shown(
        self, fault: TargetFault, case: Case, before: Sequence[Case]
    ) -> ShownHabit | None:
        for each in self.shown:
            if self._step_of(each.habit, fault, case) is not None:
                return each
            is_known = (each.habit.name, fault.row) in self._explained
            if is_known and self._is_changed(each.habit, fault, [*before, case]):
                return each
        return None

    def spoils(self, case: Case) -> bool:
        """Return True if `case` has a message after which its process answers otherwise."""
        return any(
            each.habit.lasts and _is_modern(case) and self._changes(each.habit, step)
            for each in self.shown
            for step in map(own_step, case)
        )

    async def examine(
        self, fault: TargetFault, case: Case, before: Sequence[Case] = ()
    ) -> ShownHabit | None:
        """Return the habit that explains a fault of `case`, counted, or None.

        Raises:
            ConnectFailed: the target doesn't start.
        """
        async with self._lock:  # another task may find the same habit
            shown = self._find_shown(fault, case, before)
            shown = shown or await self._examine(fault, case)
            shown = shown or await self._examine_lasting(fault, case, before)
            if shown is not None:
                shown.count(fault)
            return shown

    async def _examine(self, fault: TargetFault, case: Case) -> ShownHabit | None:
        for habit in tuple(self._table):
            step = self._step_of(habit, fault, case)
            if step is None:
                continue
            revision = str(case[0][1])
            sdk, marks = await self._find_sdk(habit, revision)
            if not sdk or await self._play(habit, habit.probe, revision) is None:
                self._table.remove(habit)
                continue
            found = await self._play(habit, step, revision)
            if found is not None:
                self._table.remove(habit)
                return self._show(habit, sdk, marks, found, fault.level)
        return None

    def _show(self, habit: Habit, sdk: str, marks: list[str], case: Case, level: str) -> ShownHabit:
        shown = ShownHabit(habit=habit, sdk=sdk, marks=marks, case=case, level=level)
        self.shown.append(shown)
        return shown

    async def _examine_lasting(
        self, fault: TargetFault, case: Case, before: Sequence[Case]
    ) -> ShownHabit | None:
        """Return the habit that lasts and explains a fault, by plays with and without its message.

        Raises:
            ConnectFailed: the target doesn't start.
        """
        cases = [*before, case]
        for each in self.shown:
            is_possible = each.habit.lasts and self._is_changed(each.habit, fault, cases)
            if is_possible and await self._needs_message(each.habit, fault, case):
                self._explained.add((each.habit.name, fault.row))
                return each
        for habit in [each for each in self._table if each.lasts]:
            if not self._is_changed(habit, fault, cases):
                continue
            revision = str(case[0][1])
            sdk, marks = await self._find_sdk(habit, revision)
            probed = [*_opening(revision), habit.probe, _DISCOVERED]
            if not sdk or not await self._answers_otherwise(habit, probed):
                self._table.remove(habit)
            elif await self._needs_message(habit, fault, case):
                self._table.remove(habit)
                self._explained.add((habit.name, fault.row))
                return self._show(habit, sdk, marks, probed, ROWS[habit.row].level)
        return None

    def _changes(self, habit: Habit, step: Step) -> bool:
        """Return True if a step sends the message of a habit that lasts.

        The player's requests have the `_meta` of their revision, unless a step leaves it out.
        """
        if step[0] in ("cancel", "progress"):
            return True  # the player's notifications have none
        if step[0] == "request" and step[4:5] != ("absent",):
            return False
        if step[0] not in ("request", "notify", "mutate", "damage"):
            return False
        exchange = sent_by(step)
        return exchange is not None and habit.holds(exchange)

    def _is_changed(self, habit: Habit, fault: TargetFault, cases: Sequence[Case]) -> bool:
        """Return True if a fault of the last case can come from a message of a habit that lasts."""
        if fault.kind != "row" or not _is_modern(cases[-1]):
            return False
        return any(self._changes(habit, own_step(step)) for case in cases for step in case)

    async def _answers_otherwise(self, habit: Habit, probed: Case) -> bool:
        """Return True if `server/discover` is answered otherwise after a habit's probe."""
        outcome = await self._plays.play(probed, probes=False)
        asked: list[Any] = []
        received: list[Any] = []
        for line in outcome.lines:
            message = decoded(line.raw or "")
            if not isinstance(message, dict):
                continue
            if line.sender == "client" and message.get("method") == _DISCOVER:
                asked.append(message.get("id"))
            elif line.sender == "server" and message.get("id") in asked:
                received.append(message)
        sent = sent_by(habit.probe)
        if len(received) != 2 or "result" not in received[0] or sent is None:
            return False
        return habit.reacts(sent._replace(received=received[1:]))

    async def _needs_message(self, habit: Habit, fault: TargetFault, case: Case) -> bool:
        """Return True if a case shows a fault after the message of a habit, and not without it."""
        opening: Case = [case[0], _DISCOVERED]
        rest = [step for step in case[1:] if not self._changes(habit, own_step(step))]
        if await self._shows([*opening, *rest], fault):
            return False
        for steps in ([habit.probe, *rest], case[1:]):
            if await self._shows([*opening, *steps], fault):
                return True
        return False

    async def _shows(self, case: Case, fault: TargetFault) -> bool:
        outcome = await self._plays.play(case)
        return any(each.cause == fault.cause for each in outcome.faults)

    async def _find_sdk(self, habit: Habit, revision: str) -> tuple[str, list[str]]:
        """Return the SDK of the habit whose marks the server has, and the marks; "" if none."""
        seen = self._marks.setdefault(revision, {})
        while True:
            marks = {name: sdks for name, sdks in seen.items() if name != habit.mark}
            for sdk in habit.sdks:
                if len(marks) >= MARKS and all(sdk in sdks for sdks in marks.values()):
                    return sdk, list(marks)
            # A busy machine can be too slow for a mark, so a server has some more tries.
            if self._tries[revision] == TRIES:
                return "", []
            self._tries[revision] += 1
            case = [*_opening(revision), *mark_steps(self._capabilities(revision))]
            outcome = await self._plays.play(case, probes=False)
            seen.update(find_marks(outcome.lines))

    async def _play(self, habit: Habit, step: Step, revision: str) -> Case | None:
        """Play one step on a fresh process. Return the case if it shows the habit, or None.

        A server that doesn't answer the next request in a short time gets all of it, once.
        """
        if step[0] == "open":
            case: Case = [(step[0], revision, *step[2:])]
        else:
            case = [*_opening(revision), self._offered(step, revision)]
        whole = self._plays.response_timeout
        for timeout in dict.fromkeys((min(PROBE_TIMEOUT, whole), whole)):
            outcome = await self._plays.play(case, timeout)
            if any(each.kind == "crash" for each in outcome.faults):
                return None
            exchange = self._listed_exchange(read_exchange(outcome.lines))
            is_alive = all(each.kind == "row" for each in outcome.faults)
            if exchange is not None and is_alive and habit.holds(exchange):
                return case if habit.reacts(exchange) else None
        return None

    def _step_of(self, habit: Habit, fault: TargetFault, case: Case) -> Step | None:
        """Return the step of a case by which a habit explains its fault, or None."""
        if fault.kind != "row" or fault.row != habit.row or fault.cases_back or habit.lasts:
            return None
        if not case or case[0][0] != "open" or len(case[0]) < 2:
            return None
        request = decoded(fault.sent) if fault.sent else None
        is_batched = BATCHED in fault.detail.split()
        received = [decoded(fault.received)] if fault.received else None
        for step in map(_single, map(own_step, case)):
            exchange = self._listed_exchange(sent_by(step))
            if exchange is None or not habit.holds(exchange):
                continue
            if request is not None:
                # The request itself counts, and the step is one that has sent such a request. What
                # was sent alone isn't pardoned because of a batch.
                sent = exchange.sent
                is_batch = isinstance(sent, list)
                messages = sent if is_batch else [sent]
                methods = [each.get("method") for each in messages if isinstance(each, dict)]
                if request.get("method") not in methods or is_batch is not is_batched:
                    continue
                exchange = exchange if is_batch else exchange._replace(sent=request)
            if not habit.holds(exchange):
                continue
            if received is None or habit.reacts(exchange._replace(received=received)):
                return step
        return None

    def _listed_exchange(self, exchange: MessageExchange | None) -> MessageExchange | None:
        return None if exchange is None else exchange._replace(listed=self._listed)

    def _offered(self, step: Step, revision: str) -> Step:
        """Return a probe for a list that the server has."""
        method = list_method(self._capabilities(revision))
        if step[:2] == ("request", "tools/list") and method:
            return (step[0], method, *step[2:])
        return step

    def _capabilities(self, revision: str) -> Mapping[str, Any]:
        return self._choices.offers.capabilities.get(revision, {})


def _is_modern(case: Case) -> bool:
    """Return True for a case of a revision without a handshake."""
    if not case or case[0][0] != "open" or len(case[0]) < 2:
        return False
    return not dialect_of(str(case[0][1])).stateful


def _opening(revision: str) -> list[Step]:
    """Return the steps after which the process has started, and the conversation is open."""
    # A server that is offered nothing asks less, and so says less that is no reaction.
    steps: list[Step] = [("open", revision, "whole", "none")]
    if not dialect_of(revision).stateful:
        steps.append(_DISCOVERED)
    return steps


def _single(step: Step) -> Step:
    """Return a step that sends one message: for a burst of a request that request."""
    if step[0] == "burst" and len(step) > 2:
        return ("request", *step[2:4], "int") if len(step) > 3 else ("request", step[2])
    return step
