"""The examination of a fault that a drawn case has shown: confirm it, and shrink its case.

A fault is confirmed on fresh targets: three plays of the step that shows it, else three plays of
the whole case, else the case after the cases before it.
"""

from __future__ import annotations

import json
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import trio
from msgspec.structs import replace

from mcp_trio.oracle.fuzz._call_times import CallTimes
from mcp_trio.oracle.fuzz._case import AFTER_CANCEL, client_of, on_client, own_step
from mcp_trio.oracle.fuzz._revisions import dialect_of
from mcp_trio.oracle.fuzz.causes._cause import (
    case_without,
    cases_elsewhere,
    cases_of_other_types,
    has_several_messages,
    plain_cases,
    smallest_cause,
)
from mcp_trio.oracle.fuzz.play._unanswered import HUNG, NEVER, STOPPED
from mcp_trio.oracle.fuzz.play._waiting import PROBE_METHODS

from ._findings import FuzzFinding
from ._shrink import ShrinkBudget, shrink

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from mcp_trio.oracle.fuzz._case import Case, Outcome, Step
    from mcp_trio.oracle.fuzz._fault import TargetFault
    from mcp_trio.oracle.fuzz.causes._cause import Cause
    from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
    from mcp_trio.oracle.fuzz.play._player import FreshPlays

__all__ = ["MAX_HISTORY", "Examiner", "joined"]

CONFIRMATIONS: Final = 3
TRIES: Final = 2  # plays of a smaller case
MAX_SHRINKS: Final = 3  # plays of a finding whose smallest case doesn't show it again
# How many cases of a session are played again with the last one.
HISTORIES: Final = (8, 64)
MAX_HISTORY: Final = HISTORIES[-1]
SHRINK_TIMEOUT: Final = 0.5  # seconds for a response; the smallest case is confirmed with all of it
_CANCELLATION: Final = "CXL-"  # the first letters of its rows' ids
_CANCEL_FIRST: Final[Case] = [("cancel", 0), AFTER_CANCEL]
_MAX_CANCELLED: Final = 8  # requests that are tried with a cancellation alone
_MANY_STEPS: Final = 4  # steps of a case whose single steps are tried first
_MAX_ALONE: Final = 3  # such steps
_MANY_CALLS: Final = 32  # equal calls, after which a tool that stops has probably stopped
# How many times a call's longest time its last one gets in a proof: more than a minute by default.
_PATIENCE: Final = 6.5
_PROOF_PART: Final = 1.3  # the time of a proof, compared with its last call's


class Examiner:
    """An examiner of the faults of one run.

    Args:
        plays: play a case on a fresh target.
        choices: what the cases were drawn from.
        budget: seconds for making cases smaller; None if they aren't made smaller.
        tools: the names of the tools that the server lists.
    """

    def __init__(
        self,
        plays: FreshPlays,
        choices: CaseChoices,
        *,
        budget: ShrinkBudget | None,
        tools: Collection[str] = (),
    ) -> None:
        self._plays = plays
        self._choices = choices
        self._budget = budget
        self._tools = tools

    async def confirm(
        self, fault: TargetFault, case: Case, before: list[Case]
    ) -> FuzzFinding | None:
        """Play a case again, on fresh targets. Return the finding, or None if no play shows it.

        Args:
            fault: what the case has shown.
            case: the case that was drawn.
            before: the cases that its session has played before it.

        Raises:
            ConnectFailed: the target doesn't start.
        """
        shown, hits, last = await self._confirm_drawn(fault, case, before)
        if last is None:
            return None
        finding = FuzzFinding(
            fault=fault,
            case=list(shown[: last.steps]),
            hits=hits,
            plays=CONFIRMATIONS,
            steps_before=max(len(case), len(shown)),
        )
        finding.take_play(last)
        return finding

    async def _confirm_drawn(
        self, fault: TargetFault, case: Case, before: list[Case]
    ) -> tuple[Case, int, Outcome | None]:
        """Confirm a fault by `case`, by a part of it, or with earlier cases.

        Return the case, how often it showed the fault, and the last such play if there was one.
        """
        last: Outcome | None
        if 0 < fault.cases_back <= HISTORIES[0]:
            # It is about a request of an earlier case, without which no play would show it.
            case = joined(before[-fault.cases_back :], case)
            before = before[: -fault.cases_back]
        for few in self._few_steps(fault, case) if self._budget is not None else ():
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
            longer = joined(before[-count:], case)
            if fault.detail in (STOPPED, NEVER):  # each call must have ended before the next one
                longer = self._with_waits(longer)
            hits, last = await self._confirm(longer, fault)
            if not hits:
                longer = joined(_with_probes(before[-count:]), case)
                if (await self._confirm(longer, fault, plays=1))[0]:
                    hits, last = await self._confirm(longer, fault)
            if hits or count >= len(before):
                case = longer
                break
        return case, hits, last

    def _few_steps(self, fault: TargetFault, case: Case) -> list[Case]:
        """Return smaller cases that are likely to show the fault of `case`.

        If one does, most of the shrinking is done. For a fault of cancelling it is one request with
        its cancellation: in a whole case the timing decides which request a `cancel` meets, so
        another play of that case seldom does the same. For a tool that stops it is its call, often.
        """
        if fault.detail == STOPPED:
            return _equal_calls(fault, case)
        if fault.row.startswith(_CANCELLATION):
            # Without capabilities no call becomes a task, whose first response comes at once.
            newest = ("open", self._newest(), "whole", "none")
            openings = [newest] if case[0] == newest else [newest, case[0]]
            requests = product(openings, _cancellable(case))
            return [[opening, step, *_CANCEL_FIRST] for opening, step in requests]
        if fault.kind not in ("row", "invariant") or len(case) < _MANY_STEPS:
            return []
        steps = [step for step in case if fault.method in _methods_of(own_step(step))]
        return [[*_openings(case, step), step] for step in steps[-_MAX_ALONE:]]

    async def shrink(self, finding: FuzzFinding) -> None:
        """Make a finding's case smaller. The finding is sound at any time, if this is cancelled.

        Raises:
            ConnectFailed: the target doesn't start.
        """
        if self._budget is None:
            return
        fault = finding.fault
        if self._may_shrink(finding):
            opening = await self._play(finding.case[:1], fault)
            if any(each.cause == fault.cause for each in opening.faults):
                finding.case = finding.case[:1]
                finding.take_play(opening)
        for _ in range(MAX_SHRINKS):
            if not self._may_shrink(finding):
                break
            smaller, plays, finding.is_cut = await shrink(
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
                finding.take_play(last)
            if not smaller or (confirmed is not None and confirmed[0] == 1):
                break
            finding.is_cut = False

    async def find_cause(self, finding: FuzzFinding) -> Cause | None:
        """Return a finding's cause, None if its case is too long or too rare to show it.

        A play shows whether it is about what is wrong in the message: if it isn't, the finding
        takes the case with a valid one. Two more show whether it is about the method, and two
        whether it is about the type of params that aren't an object. They say something only if
        the case has no other message, and doesn't show the fault without this one.

        Raises:
            ConnectFailed: the target doesn't start.
        """
        tools = self._tools
        may_play = self._budget is not None and finding.is_solid
        if has_several_messages(finding.fault, finding.case, tools):
            is_small = may_play and finding.is_cut
            return smallest_cause(finding.fault, finding.case, tools) if is_small else None
        further = may_play and await self._depends_on_step(finding)
        for simple in plain_cases(finding.fault, finding.case, tools) if further else ():
            if await self._shows_once(simple, finding.fault):
                hits, last = await self._confirm(simple, finding.fault)
                if hits == CONFIRMATIONS and last is not None:
                    finding.case = simple
                    finding.take_play(last)
                    break
        fault, case = finding.fault, finding.case
        cause = smallest_cause(fault, case, tools)
        if not further or cause is None:
            return cause
        types = cases_of_other_types(fault, case, tools)
        if types and all([await self._shows_once(each, fault) for each in types]):
            cause = cause.of_any_params
        for other in cases_elsewhere(fault, case, tools):
            if await self._shows_once(other, fault):
                return cause.anywhere
        return cause

    async def prove(self, finding: FuzzFinding, longest: float, left: float) -> None:
        """Make a finding certain, if a play proves that a tool stops, or hangs its process.

        Such a tool doesn't wait for what another call or the world outside does, since its hints
        say that nothing of it changes or matters. Nor does it wait for its turn: the last call gets
        more than a minute, for servers that count calls by the minute. See `_equal_calls` and
        `_growing_texts`.

        Args:
            finding: what was confirmed, of any kind.
            longest: the seconds that a call may take.
            left: the seconds that there are for it.

        Raises:
            ConnectFailed: the target doesn't start.
        """
        fault = finding.fault
        needed = _PATIENCE * longest
        last_start = trio.current_time() + left - _PROOF_PART * needed
        if fault.detail not in (STOPPED, HUNG) or not finding.is_solid:
            return
        if fault.detail == HUNG and not self._plays.has_processes:
            return  # no one could start the server again
        if not self._is_closed(json.loads(fault.sent)["params"]["name"]):
            return
        cases = _equal_calls if fault.detail == STOPPED else _growing_texts
        for case in cases(fault, finding.case):
            if trio.current_time() > last_start:
                return
            outcome = await self._plays.play(
                case, wanted=fault.cause, call_times=CallTimes(needed, proves=True)
            )
            for each in outcome.faults:
                if each.cause == fault.cause and each.is_certain:
                    finding.proof = each.sentence
                    if fault.detail == STOPPED:
                        finding.case = list(case[: outcome.steps])
                        finding.take_play(outcome)
                    else:  # its own case is much shorter
                        finding.fault = replace(fault, is_certain=True, sentence=each.sentence)
                    return

    def _is_closed(self, tool: str) -> bool:
        """Return True if a tool's calls change nothing, and meet nothing outside of the server."""
        hints = next(
            (each.get("annotations") for each in self._choices.tools if each.get("name") == tool),
            None,
        )
        if not isinstance(hints, dict) or hints.get("openWorldHint") is not False:
            return False
        return hints.get("readOnlyHint") is True or hints.get("idempotentHint") is True

    async def _depends_on_step(self, finding: FuzzFinding) -> bool:
        """Return True if a case doesn't show its fault without the step that seems to show it."""
        fault, case, tools = finding.fault, finding.case, self._tools
        cases = (plain_cases, cases_elsewhere, cases_of_other_types)
        if not any(each(fault, case, tools) for each in cases):
            return False  # nothing can be played further
        return not await self._shows_once(case_without(fault, case, tools), fault)

    async def _shows_once(self, case: Case, fault: TargetFault) -> bool:
        """Return True if a play of a case shows a fault."""
        return (await self._confirm(case, fault, plays=1))[0] > 0

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

    async def _confirm(
        self, case: Case, fault: TargetFault, plays: int = CONFIRMATIONS
    ) -> tuple[int, Outcome | None]:
        """Play a case on fresh targets. Return how often it showed the fault, and the last time."""
        hits, last = 0, None
        for _ in range(plays):
            outcome = await self._play(case, fault)
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
        return [each for step in case for each in (step, on_client(client_of(step), ("wait",)))]

    def _may_shrink(self, finding: FuzzFinding) -> bool:
        return 2 * finding.hits > finding.plays and len(finding.case) > 1

    async def _shows(self, case: Case, finding: FuzzFinding) -> Case | None:
        """Return the part of a case after which it has shown a finding's fault, or None.

        Two of two plays must show a solid fault, since a slow machine can show it once by chance.
        One of two must show a flaky fault.
        """
        timeout = min(SHRINK_TIMEOUT, self._plays.response_timeout)
        found: Case | None = None
        for _ in range(TRIES):
            outcome = await self._play(case, finding.fault, timeout)
            is_shown = any(each.cause == finding.fault.cause for each in outcome.faults)
            if is_shown:
                found = max(found or [], case[: outcome.steps], key=len)
            if is_shown != finding.is_solid:
                return found if is_shown else None
        return found

    async def _play(self, case: Case, fault: TargetFault, timeout: float | None = None) -> Outcome:
        probes = fault.kind in ("crash", "hang")
        return await self._plays.play(case, timeout, probes=probes, wanted=fault.cause)


def _with_probes(cases: Iterable[Case]) -> list[Case]:
    """Return cases with the request that the player sends after each of them."""
    return [
        [*case, ("wait",), ("request", dialect_of(str(case[0][1])).ping, {}, "int"), ("wait",)]
        for case in cases
        if case and len(case[0]) > 1
    ]


def joined(before: Iterable[Case], case: Case) -> Case:
    """Return the steps of all cases as one case. Each has a second client of its own."""
    steps: Case = []
    for each in before:
        steps += each
        if any(map(client_of, each)):
            steps.append(on_client(1, ("reconnect",)))
    return [*steps, *case]


def _equal_calls(fault: TargetFault, case: Case) -> list[Case]:
    """Return cases with a call that a tool doesn't answer, again and again, and nothing else.

    Other calls of the tool in `case` follow: the one that isn't answered can have wrong arguments,
    for which a tool has no success. If `case` has a second client, the first case returned has
    calls of both, the second one's last.
    """
    params = json.loads(fault.sent)["params"]
    name = params["name"]
    calls: list[Step] = [("call", name, params.get("arguments", {}), ())]
    for step in map(own_step, case):
        call = (*step[:3], ()) if step[:2] == ("call", name) else calls[0]
        if call not in calls and len(calls) < _MAX_ALONE:
            calls.append(call)
    found: list[Case] = [[case[0], *(call, ("wait",)) * _MANY_CALLS] for call in calls]
    if any(map(client_of, case)):
        turn: Case = [calls[0], ("wait",)]
        opening = on_client(1, case[0])
        found.insert(0, [case[0], opening, *turn * 2, *(on_client(1, each) for each in turn)])
    return found


def _growing_texts(fault: TargetFault, case: Case) -> list[Case]:
    """Return cases with calls like one that hangs the process, each with a longer text.

    The texts mean nothing, so they name neither a time nor a place. First comes the letter x, up to
    the text's length, and then what is neither ASCII nor a number in the text. Each is longer by a
    letter or a tenth. If a call hangs though the one before was quick, it isn't its length that
    takes time: no usual algorithm is a hundred times as slow for so little more.
    """
    params = json.loads(fault.sent)["params"]
    arguments = params.get("arguments", {})
    found: list[Case] = []
    for name, text in arguments.items():
        if not isinstance(text, str) or not text:
            continue
        lengths = [1]
        while lengths[-1] < len(text):
            lengths.append(min(len(text), max(lengths[-1] + 1, lengths[-1] * 11 // 10)))
        texts = ["x" * length for length in lengths]
        other = "".join(letter for letter in text if not (letter.isascii() or letter.isnumeric()))
        texts += [other[:length] for length in lengths if length <= len(other)]
        calls: Case = [("call", params["name"], {**arguments, name: each}, ()) for each in texts]
        found.append([case[0], *(step for call in calls for step in (call, ("wait",)))])
    return found


def _openings(case: Case, step: Step) -> Case:
    """Return the steps that open a case's conversations, as far as `step` needs them."""
    second = [each for each in case if client_of(each) and own_step(each)[0] == "open"]
    return [case[0], *(second[:1] if client_of(step) else ())]


def _methods_of(step: Step) -> list[Any]:
    """Return the methods that a step sends; for other steps their second word, if they have one."""
    if step[0] == "call":
        return ["tools/call"]
    if step[0] == "batch" and len(step) > 1:
        return [each[0] for each in step[1] if isinstance(each, list) and each]
    return list(step[1:2])


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
