"""The player of a case: send what its steps say, wait, and collect the faults.

1. A step that makes no sense when its turn comes, or calls a denied tool, does nothing. So any part
   of a case is a case.
2. A missing response is a fault only if the server's author has no code that runs for the request,
   such as a tool, and if the machine isn't slow at that moment.
3. After each case the target must answer a request, and its process must run.
4. A case can have a second client. Its steps begin with `on`, and its session is in the same trace.
   It lives as long as the case. While one of the two runs a call, the other one may have to wait.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio
from msgspec.structs import replace

from mcp_core import ALL, DIALECTS, ConnectFailed, Role
from mcp_core.processes import find_error_line
from mcp_core.trace import ROWS, Redactor

from ._answers import altered_state, client_result, input_responses, name_of, result_of_input
from ._call_guard import calls_in, completes_call, folded_tail
from ._call_times import CallTimes
from ._case import ON, UNSUPPORTED_TASK, Outcome, client_of, own_step
from ._http_steps import HTTP_STEPS
from ._known_crashes import find_known_crash
from ._session import (
    LOST,
    UNANSWERED,
    UNANSWERED_MALFORMED,
    UNKNOWN_REVISION,
    SentRequest,
    TargetFault,
    dialect_of,
    early_result,
    is_interoperable,
    level_of,
    link_of,
    row_fault,
    shown_value,
    was_served_early,
    wrong_version,
)
from ._stress import MAX_CONNECTIONS, PROBE_TIMEOUT_FACTOR, STRESS_STEPS, StressBudget
from ._unknown import INVENTED_CURSOR, served_cursor, served_unknown, unasked_updates

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from mcp_core.trace import TraceHeader

    from ._call_guard import CallGuard
    from ._case import Case, Step
    from ._echo import Echo
    from ._session import TargetSession
    from .invariants._checks import CaseChecks

__all__ = ["STEP_NAMES", "Player", "TargetLike", "play_case"]

# Requests that every server answers at once.
PROBE_METHODS: Final = frozenset(dialect.ping for dialect in DIALECTS.values())
OPEN_TIMEOUT: Final = 30.0  # seconds for the first response of a process
SLOW_START: Final = 2.0  # seconds of a start, from which further first responses may be slow too
START_FACTOR: Final = 3  # how much longer than the longest start so far another one may take
EARLY_TIMEOUT: Final = 0.3  # seconds for a response that a server needn't send
ASK_TIMEOUT: Final = 0.3  # seconds for a request of the server
LINGER: Final = 0.1  # seconds at the end of a replay
LATE_TIMEOUT: Final = 0.5  # seconds for what a cancelled call still sends
FOLLOW_TIMEOUT: Final = 0.8  # seconds that a task is followed
FOLLOW_INTERVAL: Final = 0.04
BUSY_TIMEOUT: Final = 10.0  # seconds for a server that may be running its author's code
MAX_PAGES: Final = 50  # twice as many if they go round in a circle
MAX_BURST: Final = 500
BATCH_MEMBER: Final = 3  # words of a member of the step `batch`
STOPPED: Final = "stopped"  # the detail of a tool that doesn't answer any more
NEVER: Final = "never"  # the detail of a call that gets no response, while others of its tool do
# The detail of a request that is lost with a cancelled one.
LOST_TOO: Final = "with the cancelled"
MAX_AMONG: Final = 20  # requests that are sent again to see whether one of them is lost
STDERR_LINE: Final = "its stderr: "  # before each line of `ChildProcess.describe`
ONE_CLIENT: Final = "steps of a second client do nothing: over stdio each client has a process"
_SHOWN: Final = 80  # characters of a value in a sentence


class TargetLike(Protocol):
    """A target: what `CommandTarget` and `UrlTarget` have in common."""

    name: str
    kind: str

    async def open(self, *, keep: bool = False) -> TargetSession:
        """Return a fresh session. With `keep` its lines are kept."""

    def header(self) -> TraceHeader:
        """Return the header of a trace of this target."""

    def learn_tools(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Learn how the listed tools are called."""


class ToolNotAllowed(Exception):
    """A step calls a tool that may not be called."""


class Player:
    """A player of cases on one session after the other.

    Args:
        response_timeout: seconds for a response.
        echo: measures how slow the machine is; None to trust it.
        guard: says which messages may be sent; None for all.
        probes: whether each case ends with a request that every server answers.
        wanted: the cause of a fault. A play ends when it is found.
        drops: True for a request that the server is known to drop; None if it drops none. It isn't
            waited for: the response to the probe shows that the server has read it.
        call_times: how long calls of tools may take, which the players of a run share. By default
            nothing is known about any tool.
        checks: the author's own functions, for one play; None without any.
    """

    def __init__(
        self,
        response_timeout: float = 2.0,
        *,
        echo: Echo | None = None,
        guard: CallGuard | None = None,
        probes: bool = True,
        wanted: tuple[str, str] | None = None,
        drops: Callable[[Mapping[str, Any]], bool] | None = None,
        call_times: CallTimes | None = None,
        checks: CaseChecks | None = None,
    ) -> None:
        self._timeout = response_timeout
        self._checks = checks
        self._call_times = call_times or CallTimes()
        self._drops = drops
        self._echo = echo
        self._guard = guard
        self._probes = probes
        self._wanted = wanted
        self.session: Any = None
        self._beside: Any = None  # the other client's session
        self.stress = StressBudget()
        self._outcome = Outcome()
        self._has_disconnected = False

    def attach(self, session: TargetSession) -> None:
        """Use `session` for what is sent next."""
        self.session = session

    async def play(self, case: Case, session: TargetSession) -> Outcome:
        """Play `case` on `session`, and return its outcome."""
        self.session = self._first = session
        self._outcome = Outcome()
        self.stress = StressBudget()
        self._beside = None
        self._named: set[str] = set()
        self._tail = ""  # the last letters of the bytes that were sent
        self._has_disconnected = False
        self._before_cancel = 0  # how many requests a step of the case sent before it cancelled one
        session.begin_case()
        session.call_times = self._call_times
        if self._drops is not None:
            session.drops = self._drops
        try:
            for place, step in enumerate(case):
                await self._check_results()
                if self._wanted is not None and session.has_fault(self._wanted):
                    self._outcome.steps = place
                    break
                await self._play_step(step)
            await self._finish()
        finally:
            if self.session is not session:
                session.spent = True
                with trio.CancelScope(shield=True):
                    await self.session.aclose()
            if self._beside is not None:
                with trio.CancelScope(shield=True):
                    await self._beside.aclose()
        self._count_requests()
        self._outcome.faults = self.session.take_faults()
        return self._outcome

    async def _play_step(self, step: Step) -> None:
        if client_of(step):
            await self._play_on_second(own_step(step))
            return
        act = _STEPS.get(step[0]) or self.session.steps.get(step[0])
        if act is None or (self.session.ended and step[0] != "reconnect"):
            return
        with suppress(ToolNotAllowed):
            await act(self, *step[1:])

    async def _play_on_second(self, step: Step) -> None:
        """Play a step of the second client, which its first `open` begins."""
        if self._beside is None:
            if step[0] != "open":
                return
            self._beside = await self.session.beside()
            if self._beside is None:
                self._add_note(ONE_CLIENT)
                return
        await self._as_other(self._play_step, step)

    async def _as_other(self, act: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Call `act` while the other client's session is the player's."""
        self.session, self._beside = self._beside, self.session
        try:
            await act(*args)
        finally:
            self.session, self._beside = self._beside, self.session

    async def _for_clients(self, act: Callable[[], Awaitable[None]]) -> None:
        """Call `act` for each client's session."""
        await act()
        if self._beside is not None:
            await self._as_other(act)

    def _add_note(self, note: str) -> None:
        if note not in self._outcome.notes:
            self._outcome.notes.append(note)

    def _sessions(self) -> list[Any]:
        """Return the sessions of the case's clients."""
        return [self.session] if self._beside is None else [self.session, self._beside]

    def other_session(self) -> Any:
        """Return the other client's session, or None if the case has one client."""
        return self._beside

    def _may_be_busy(self) -> bool:
        """Return True if a cancelled call, or another client's, may still run and be in the way."""
        if any(each.may_be_busy for each in self._sessions()):
            return True
        other = self._beside
        return other is not None and any(
            each.answer is None and not each.is_bounded for each in other.open.values()
        )

    def _count_requests(self) -> None:
        outcome = self._outcome
        for session in self._sessions():
            answers = [each.answer for each in session.requests if each.answer is not None]
            outcome.answered += sum(each is not LOST for each in answers)
            outcome.results += sum("result" in each for each in answers)
            outcome.calls += sum(
                each.method == "tools/call" and each.answer not in (None, LOST)
                for each in session.requests
            )
            outcome.is_owed |= any(each.was_open for each in session.requests)
            outcome.changers += [each for each in session.changers if each not in outcome.changers]
            outcome.notes += session.notes
            outcome.messages += session.take_messages()

    # -- The end of a case -------------------------------------------------------------------------

    async def _finish(self) -> None:
        await self._for_clients(self._finish_requests)
        if self._wanted is not None and not self._is_over():
            # For what no request brings, such as the response to a cancelled one.
            requests = [request for each in self._sessions() for request in each.requests]
            cancelled = any(each.cancelled and each.answer is None for each in requests)
            await self.wait_until(lambda: False, self._timeout if cancelled else LINGER)
        await self._for_clients(self._finish_session)

    async def _finish_requests(self) -> None:
        """Wait for the responses to a client's requests, and report what is wrong with them."""
        if not self._is_over():
            await self._settle()
        await self._check_results()
        for request in self.session.requests:
            if request.loss in ("missing", "cut"):
                self._report_missing(request)
            elif request.is_plain and request.was_open:
                self._report(served_unknown(request, self.session.revision))

    async def _finish_session(self) -> None:
        """Find out whether the server still serves a client, and end the case for it."""
        session = self.session
        if self._probes and not self._is_over() and session.is_open and await self._probe():
            for request in session.requests:
                if request.is_dropped and request.answer is None and not request.cancelled:
                    self._report_missing(request)
        # Changes are reported later than the calls that made them have ended.
        self._report(unasked_updates(session.updates, session.requests, session.revision))
        if session.ended and self._is_unexpected_end():
            self._report_end()
        await session.end_case()
        for request in session.requests:
            session.open.pop(request.id, None)
        if session.ended or session is not self._first:
            session.spent = True

    def _is_unexpected_end(self) -> bool:
        """Return True if the end of the conversation is a fault.

        After an unusual beginning, or once a response is missing, a server may end the
        conversation. A process must not crash even then. Before the handshake only a signal says
        that it has crashed: with an exit status, a server can refuse the conversation.
        """
        session = self.session
        if not session.spent:
            return True
        status = session.exit_status
        if status is None or self._has_disconnected:
            return False
        return bool(status < 0 or (status > 0 and session.is_open))

    async def _check_results(self) -> None:
        """Run the author's functions for the results that have come."""
        if self._checks is not None:
            for session in self._sessions():
                await self._checks.check(session)

    def _is_over(self) -> bool:
        """Return True if the play can end: the wanted fault was found, or the session has ended."""
        session = self.session
        if self._wanted is not None and session.has_fault(self._wanted):
            return True
        return bool(session.ended)

    async def _settle(self) -> None:
        """Wait for the responses to all open requests, and answer the server's requests."""
        session = self.session
        early = [each for each in self._open_requests() if not (each.was_open and each.is_owed)]
        if early:  # a server may ignore what comes before its handshake, or an id again
            await self.wait_until(lambda: all(each.answer for each in early), EARLY_TIMEOUT)
            for request in early:
                session.open.pop(request.id, None)
        await self._wait_for_responses()
        await self._examine_unanswered()
        missing = [] if self._is_over() else self._open_requests()
        running = [each for each in missing if not each.is_bounded]
        await self._examine_owed(running)
        for request in running:
            if request.answer is None and request.id in session.open:
                await self._cancel_slow(request)
        is_stateless = not dialect_of(session.revision).stateful
        if running and is_stateless and session.transport == "stdio":
            await self._watch_cancelled()
        missing = [each for each in missing if each.is_bounded]
        if missing and self._may_be_starting():
            await self._wait_for_start()
            missing = [] if self._is_over() else [each for each in missing if each.answer is None]
        if missing and (seconds := self._slow_start()):
            await self.wait_until(lambda: all(each.answer for each in missing), seconds)
            missing = [] if self._is_over() else [each for each in missing if each.answer is None]
        if missing and (running or self._may_be_busy() or await self._is_slow()):
            # A server that handles one request after the other has a reason.
            await self.wait_until(lambda: all(each.answer for each in missing), BUSY_TIMEOUT)
            missing = [each for each in missing if each.answer is None and not session.ended]
            if missing and any(each.is_busy for each in self._sessions()):
                session.spent = True
                return
        for request in missing:
            self._report_missing(request)

    def _may_be_starting(self) -> bool:
        """Return True if the process may still be starting, in a revision without a handshake."""
        session = self.session
        return session.transport == "stdio" and not session.has_spoken

    def _start_timeout(self) -> float:
        """Return the seconds after which a process that hasn't started hangs."""
        known = self.session.longest_start
        if known is None:
            return OPEN_TIMEOUT
        return float(min(OPEN_TIMEOUT, self._timeout + START_FACTOR * known))

    def _slow_start(self) -> float:
        """Return the further seconds for the first responses of a process that starts slowly.

        What it loads with the first request of a kind can take as long as its start.
        """
        known = self.session.longest_start or 0.0
        if known < SLOW_START or self.session.played > 1:
            return 0.0
        return float(min(OPEN_TIMEOUT, 2 * known))

    async def _wait_for_start(self) -> None:
        """Wait until the process responds to anything, and then for its other responses.

        A process that starts slowly reads all requests late. If it would never answer the case's
        requests, it still answers the one that is sent here.
        """
        session = self.session
        last_sent = session.last_sent
        request = await self._send("server/discover", {})
        session.last_sent = last_sent
        await self.wait_until(lambda: session.has_spoken, self._start_timeout())
        await self.wait_until(lambda: not self._is_waiting())
        session.open.pop(request.id, None)

    async def _cancel_slow(self, request: SentRequest) -> None:
        """Cancel a request that runs the author's code and takes too long."""
        session = self.session
        session.is_busy = True
        # Nothing more is certain in this session: the call can be in the way of all others.
        session.spent = session.spent or request.name in session.succeeded
        self._call_times.add_late(request.name)
        self._outcome.slow.append(request.name)
        await self._cancel_request(request)
        session.open.pop(request.id, None)

    async def _examine_unanswered(self) -> None:
        """Report requests without responses that get them in another session."""
        missing = [] if self._is_over() else self._open_requests()
        await self._examine_lost(missing)
        if len(missing) == 1 and not missing[0].is_bounded:
            await self._examine_stopped(missing[0])

    async def _examine_owed(self, running: list[SentRequest]) -> None:
        """Report requests that get no response in the longest time of a call, and run no tool.

        A later request must get its response meanwhile: the server can be busy with one of them. If
        that gets none either, the end of the case reports it.
        """
        session, times = self.session, self._call_times
        is_wanted = self._wanted is not None and self._wanted[0] == UNANSWERED
        owed = [
            each
            for each in running
            if each.is_owed_soon and each.is_plain and each.was_open and each.id in session.open
            if times.may_have_stopped(each.name, is_wanted=is_wanted)
        ]
        if not owed or len(owed) < len(running) or self._may_be_busy() or session.is_misled:
            return  # another call can be in their way
        await self._wait_as_long(owed, max(map(self._begin_of, owed)) + times.longest)
        owed = [each for each in owed if each.answer is None]
        if not owed or self._is_over() or await self._is_slow():
            return
        is_alive = await self._answers_probe()
        for request in owed:
            if request.answer is None and not session.ended:
                times.add_stopped(request.name)
                if is_alive:
                    self._report_missing(request, times.longest)
                session.open.pop(request.id, None)

    async def _answers_probe(self) -> bool:
        """Return True if a request that every server answers at once gets its response."""
        probe = await self._exchange_probe(dialect_of(self.session.revision).ping)
        await self.wait_until(lambda: probe.answer is not None, BUSY_TIMEOUT)
        self.session.open.pop(probe.id, None)
        return probe.answer is not None and probe.loss not in ("broken", "cut")

    async def _wait_as_long(self, requests: list[SentRequest], end: float) -> None:
        """Wait for the responses to requests until a time, also if the server sends more."""
        while not self._is_over() and trio.current_time() < end:
            if all(each.answer is not None for each in requests):
                return
            remaining = end - trio.current_time()
            await self.wait_until(
                lambda: all(each.answer is not None for each in requests), remaining
            )

    async def _examine_lost(self, missing: list[SentRequest]) -> None:
        """Report requests that get no response since a step has cancelled another one.

        It is certain: other sessions get results for them, alone and among the same requests
        without the cancellation. They get as much time more as that takes.
        """
        session, times = self.session, self._call_times
        sent = [each for each in session.requests[: self._before_cancel] if each.was_open]
        lost = [each for each in missing if each in sent]
        is_known = session is self._first and all(each.is_plain for each in sent)
        if not lost or not is_known or len(sent) > MAX_AMONG or session.is_misled:
            return
        name = f"{lost[0].name} {LOST_TOO}"
        if not times.may_have_stopped(name, is_wanted=self._wanted == (UNANSWERED, LOST_TOO)):
            return
        if await self._is_slow():
            return
        began = trio.current_time()
        others = [each for each in sent if not each.cancelled]
        if not (
            await self._are_answered_elsewhere(others, lost)
            and await self._are_answered_elsewhere(sent, lost)
        ):
            times.add_slow_elsewhere(name)
            return
        elapsed = trio.current_time() - began
        await self._wait_as_long(lost, trio.current_time() + elapsed + times.longest)
        lost = [each for each in lost if each.answer is None]
        if not lost or self._is_over() or not await self._answers_probe():
            return
        times.add_stopped(name)
        session.spent = True
        for request in lost:
            other = "a fresh process" if session.transport == "stdio" else "another session"
            fault = row_fault(
                UNANSWERED,
                request.method,
                f"the request {request.method} gets no response within {times.longest:g} s, after"
                f" the cancellation of another one; {other} gets it, among the same requests"
                " without the cancellation",
                session.revision,
            )
            self._add_fault(replace(fault, detail=LOST_TOO, sent=json.dumps(request.message)))
            session.open.pop(request.id, None)

    async def _examine_stopped(self, request: SentRequest) -> None:
        """Report a tool that has answered in this session and doesn't answer this call.

        Another session tells whether it has stopped, or never answers such a call. This call gets
        all the time that any call may take. Still it isn't certain: a tool may wait for its turn,
        or for an event.
        """
        session, times = self.session, self._call_times
        if request.method != "tools/call" or request.name not in session.succeeded:
            return
        if self._may_be_busy() or self._before_cancel or not request.is_plain:
            return  # a call that was cancelled before can be in its way
        is_wanted = self._wanted is not None and self._wanted[0] == UNANSWERED
        if session.is_misled or not times.may_have_stopped(request.name, is_wanted=is_wanted):
            return
        if self._is_over() or await self._is_slow():
            return
        began = trio.current_time()
        is_answered = await self._are_answered_elsewhere([request], [request])
        elapsed = trio.current_time() - began
        end = max(trio.current_time() + elapsed, self._begin_of(request) + times.longest)
        await self._wait_as_long([request], end)
        if request.answer is not None or self._is_over():
            return
        name = shown_value(name_of(request.message))
        times.add_stopped(request.name)
        if is_answered:
            other = "a fresh process" if session.transport == "stdio" else "another session"
            sentence = (
                f"{name} has answered before, and does not answer a call within"
                f" {times.longest:g} s, while {other} gets a result for the same call: to look at,"
                " unless the tool may wait"
            )
        else:
            sentence = (
                f"{name} has answered other calls, and never answers this one within"
                f" {times.longest:g} s: to look at, unless the tool may take so long"
            )
        fault = row_fault(UNANSWERED, request.method, sentence, session.revision)
        detail = STOPPED if is_answered else NEVER
        sent = json.dumps(request.message)
        self._add_fault(replace(fault, detail=detail, sent=sent, is_certain=False))

    async def _are_answered_elsewhere(
        self, sent: list[SentRequest], wanted: list[SentRequest]
    ) -> bool:
        """Return True if another session gets results for some of the same requests in time."""
        former = self.session
        player = Player(self._timeout, guard=self._guard, call_times=self._call_times)
        try:
            session = await former.fresh()
        except ConnectFailed:
            return False
        try:
            player.attach(session)
            player._named = set()
            session.call_times = self._call_times
            await player._open(former.revision, "whole", former.offers)
            if not session.is_open:
                return False
            if player._may_be_starting():
                await player._wait_for_start()
            timeout = max(self._call_times.timeout(each.name) for each in wanted)
            again: list[SentRequest] = []
            for each in sent:
                found = await player._send(each.method, each.message.get("params", {}))
                if each in wanted:
                    again.append(found)
            end = trio.current_time() + (timeout if len(sent) == 1 else self._call_times.longest)
            await player._wait_as_long(again, end)
            return all(each.answer is not None and "result" in each.answer for each in again)
        finally:
            with trio.CancelScope(shield=True):
                await session.aclose()

    async def _watch_cancelled(self) -> None:
        """Wait for messages about cancelled requests: there must be none any more (CXL-7).

        The response to a later request shows that the server has read the cancellations.
        """
        later = await self._exchange_probe("server/discover")
        if later.answer is not None:
            end = trio.current_time() + LATE_TIMEOUT
            await self.wait_until(lambda: trio.current_time() >= end, LATE_TIMEOUT)

    async def _cancel_request(self, request: SentRequest) -> None:
        request.cancelled = True
        if not request.is_bounded:
            self.session.cancelled_at = trio.current_time()
        if not await self.session.cancel_exchange(request):
            await self._notify(
                "notifications/cancelled", {"requestId": request.id, "reason": "not needed"}
            )

    def _report_missing(self, request: SentRequest, seconds: float = 0.0) -> None:
        """Report that a request got no response in `seconds`; 0 for the usual ones."""
        session = self.session
        if not request.is_plain and session.unread_errors > request.unread:
            return  # an error without an id is the response to it
        session.spent = session.spent or not request.is_dropped
        defect = request.defect
        row = UNANSWERED_MALFORMED if defect else UNANSWERED
        lacks = f"was not answered within {seconds or self._timeout:g} s"
        if request.loss == "missing":
            lacks = "got no response: its HTTP exchange is complete"
        elif request.loss:
            lacks = "got no response: the server has cut off the HTTP response"
        sentence = f"the request {request.method[:_SHOWN]} {lacks}"
        if defect:
            sentence += f"; the message was malformed: {defect}"
        fault = row_fault(row, request.method, sentence, session.revision)
        fault = replace(fault, sent=json.dumps(request.message))
        if request.in_batch:  # SDKs have given up batches also for the revision that has them
            fault = replace(
                fault, sentence=f"{fault.sentence}; it was in a batch", is_certain=False
            )
        if not is_interoperable(request.message):
            # As the TypeScript SDK does, which reads no id that isn't the same as a double.
            reason = "not every reader has numbers that large, or values nested so deeply"
            sentence = f"{fault.sentence}: {reason}"
            fault = replace(fault, detail="large", sentence=sentence, is_certain=False)
        self._add_fault(fault if request.loss else self._excused_by_call(fault))

    def _report(self, fault: TargetFault | None) -> None:
        """Add a fault, if there is one."""
        if fault is not None:
            self._add_fault(fault)

    def _excused_by_call(self, fault: TargetFault) -> TargetFault:
        """Return a fault; as advice if a call that the case has cancelled can still run."""
        if not self._may_be_busy():
            return fault
        return replace(
            fault,
            detail=f"{fault.detail} cancelled".strip(),
            sentence=f"{fault.sentence}, after the cancellation of a call that may still run",
            is_certain=False,
        )

    async def _probe(self) -> bool:
        """Send a request that every server answers at once. Return False without a response."""
        session = self.session
        method = dialect_of(session.revision).ping
        faults = session.take_faults()  # the probe isn't a part of the case
        request = await self._exchange_probe(method)
        if request.loss in ("broken", "cut") and not session.ended:
            # A server may close a connection that was idle, or one too many for it.
            await session.end_case()
            request = await self._exchange_probe(method)
        session.put_faults(faults)
        if request.loss == "missing":
            self._report_missing(request)
        if session.ended:
            return False
        if request.answer is not None and request.loss not in ("broken", "cut"):
            return True
        session.spent = True
        if any(each.is_busy for each in self._sessions()):
            self._outcome.is_blocked = True
            self._outcome.notes.append("the server answers nothing while a call runs")
            return False
        session.take_faults()
        for fault in faults:
            if fault.row not in (
                UNANSWERED,
                UNANSWERED_MALFORMED,
            ):  # the hang is what they have in common
                session.put_faults([fault])
        fault = TargetFault(
            kind="hang",
            row=UNANSWERED,
            detail="hang",
            method=method,
            sentence=f"the server does not respond any more, not even to {method}",
            link=link_of(UNANSWERED, session.revision),
        )
        session.add_fault(self._excused_by_call(fault))
        return False

    async def _exchange_probe(self, method: str) -> SentRequest:
        """Send the probe and wait for its response, longer if the server may be slow."""
        session = self.session
        last_sent = session.last_sent
        request = await self._send(method, {})
        session.last_sent = last_sent
        timeout = self._start_timeout() if self._may_be_starting() else self._timeout
        await self.wait_until(lambda: request.answer is not None, timeout)
        if request.answer is None and not session.ended:
            if self._may_be_busy():
                await self.wait_until(lambda: request.answer is not None, BUSY_TIMEOUT)
            elif self.stress.is_used or self._slow_start() or await self._is_slow():
                rest = max((PROBE_TIMEOUT_FACTOR - 1) * self._timeout, self._slow_start())
                await self.wait_until(lambda: request.answer is not None, rest)
        return request

    def _report_end(self) -> None:
        session = self.session
        status = session.exit_status
        after = f" after {session.last_sent}" if session.last_sent else ""
        if status is None:
            detail, shown = "closed", f"the server has ended the conversation: {session.ended}"
        else:
            detail = str(status)
            shown = "the process has ended with " + (
                f"signal {-status}" if status < 0 else f"exit status {status}"
            )
        lines = session.describe().strip().splitlines()
        # It is written to files that users may publish.
        told = [line.strip().removeprefix(STDERR_LINE) for line in lines[1:]]
        error = find_error_line(told) or (told[-1] if told else "")
        last = f"; {STDERR_LINE}{Redactor(b'').redact_text(error)[:200]}" if error else ""
        known = find_known_crash(
            session.stderr(), has_cancelled=any(each.cancelled for each in session.requests)
        )
        last += f"; {known}" if known else ""
        # A server may end the conversation with a client that doesn't even send JSON.
        unread = session.last_sent == "bytes" and not session.is_last_json
        unread = unread and not known  # a known one has a cure
        self._add_fault(
            TargetFault(
                kind="crash",
                row="STDIO-6" if unread and session.transport == "stdio" else "crash",
                # A known crash is another fault than one of the author's with this status.
                detail=f"{detail} {known.rpartition(': ')[2]}".strip(),
                method=session.last_sent,
                level="reading" if unread else "MUST",
                sentence=f"{shown}{after}{last}",
            )
        )

    def _add_fault(self, fault: TargetFault) -> None:
        self.session.add_fault(fault)

    # -- Waiting -----------------------------------------------------------------------------------

    def _open_requests(self) -> list[SentRequest]:
        return [
            each
            for each in self.session.open.values()
            if not (each.cancelled or each.is_dropped or each.method == "subscriptions/listen")
        ]

    def _is_waiting(self) -> bool:
        """Return True if a response is still to come."""
        session = self.session
        now = trio.current_time()
        for each in session.open.values():
            if each.cancelled or each.is_overdue or each.is_dropped:
                continue
            if each.method == "subscriptions/listen":
                continue
            if not each.is_bounded:
                if now < self._call_deadline(each):
                    return True
            elif each.is_plain or session.unread_errors == each.unread:
                return True
        return False

    def _call_deadline(self, request: SentRequest) -> float:
        """Return the deadline of a call, counted from when its process reads."""
        return self._begin_of(request) + self._call_times.timeout(request.name)

    def _begin_of(self, request: SentRequest) -> float:
        """Return when a request was sent, or later when its process begins to read."""
        session = self.session
        begin = request.sent_at
        if self._may_be_starting():
            begin = max(begin, session.opened_at + (session.longest_start or 0.0))
        return float(begin)

    async def _wait_for_responses(self) -> None:
        """Wait for the responses to requests; not as long for those that run the author's code."""
        session = self.session
        while self._is_waiting() and not self._is_over():
            running = [each for each in self._open_requests() if not each.is_bounded]
            if not running:
                await self.wait_until(lambda: not self._is_waiting())
                for each in self._open_requests():
                    each.is_overdue = True
                return
            remaining = min(map(self._call_deadline, running)) - trio.current_time()
            before = len(session.open)

            def is_answered(before: int = before) -> bool:
                return len(session.open) < before

            await self.wait_until(is_answered, max(remaining, 0.001))
            if remaining <= 0 and not is_answered():
                if any(each.is_bounded for each in self._open_requests()):
                    await self.wait_until(is_answered)
                if not is_answered():
                    return

    async def wait_until(self, is_done: Callable[[], bool], timeout: float = 0.0) -> None:
        """Wait until something is true, the session has ended, or a timeout without any message.

        The server's requests are answered meanwhile: it may be waiting for the responses.
        """
        session = self.session
        timeout = timeout or self._timeout
        last = trio.current_time() + 4 * timeout  # a server can send messages for ever
        deadline = trio.current_time() + timeout
        answered = session.answered
        while not is_done() and not self._is_over():
            if session.asked:
                await self._respond_to(session.asked.pop(0), "right")
                continue
            if not await session.wait_changed(min(deadline, last)):
                return
            deadline = trio.current_time() + timeout
            if session.answered > answered:  # a server that handles one request after the other
                answered, last = session.answered, trio.current_time() + 4 * timeout

    async def _is_slow(self) -> bool:
        return self._echo is not None and await self._echo.is_slow()

    # -- Sending -----------------------------------------------------------------------------------

    def make_request(
        self,
        method: str,
        params: Any,
        id: str | list[int | str] = "int",
        meta: str = "whole",
        **more: Any,
    ) -> dict[str, Any]:
        """Return a request with a new id and the `_meta` of its revision.

        Raises:
            ToolNotAllowed: it calls a tool that may not be called.
        """
        self._check_message(method, params)
        session = self.session
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": session.new_id(id), "method": method}
        if params == "absent":
            params = {}
        if isinstance(params, dict):
            given = params.get("_meta", {})
            if isinstance(given, dict):
                found = {**given, **session.meta(meta), **more.get("extra_meta", {})}
                params = {**params, "_meta": found} if found else params
        if params != {}:
            message["params"] = params
        return message

    def _check_message(self, method: Any, params: Any) -> None:
        """Raise `ToolNotAllowed` if a message calls a tool that may not be called."""
        message = {"method": method, "params": params}
        if self._guard is not None and not self._guard.allows_message(message):
            raise ToolNotAllowed(str(method))

    async def _send_bytes(self, data: bytes) -> None:
        if self._guard is not None:
            # A server may skip the line feed between the bytes of two steps.
            if completes_call(self._tail, data) or not self._guard.allows_data(data):
                raise ToolNotAllowed("bytes")
            self._tail = "" if calls_in(data) else folded_tail(self._tail, data)
        await self.session.send_bytes(data)

    async def _send(
        self,
        method: str,
        params: Any,
        id: str | list[int | str] = "int",
        meta: str = "whole",
        **more: Any,
    ) -> SentRequest:
        session = self.session
        message = self.make_request(method, params, id, meta, **more)
        is_again = isinstance(id, list) and any(each.id == id[0] for each in session.requests)
        await session.send(message, is_plain=is_interoperable(message))
        request: SentRequest = session.requests[-1]
        # Until 2025-11-25, an id must not come again in a session.
        request.is_owed = not is_again or not dialect_of(session.revision).stateful
        return request

    async def exchange(self, method: str, params: Any) -> Mapping[str, Any] | None:
        """Send a request, wait for its response, and return its result, or None."""
        request = await self._send(method, params)
        is_first = method == "initialize" or self._may_be_starting()
        timeout = self._start_timeout() if is_first else self._timeout
        await self.wait_until(lambda: request.answer is not None, timeout)
        result = None if request.answer is None else request.answer.get("result")
        return result if isinstance(result, dict) else None

    # -- Steps -------------------------------------------------------------------------------------

    async def _open(self, revision: str, how: str = "whole", offers: str = "all") -> None:
        session = self.session
        if revision not in ALL:
            return
        if session.revision:
            if session.revision == revision:
                await self._open_again(how, offers)
            return
        session.revision, session.offers = revision, offers
        if not dialect_of(revision).stateful:
            session.judge.add_server_version(revision)  # the case is for a server that speaks it
            session.is_open = True
            return
        if how == "none":
            session.spent = True
            return
        early = None
        if how == "late":
            session.spent = True
            early = await self._send_early()
        asked = UNKNOWN_REVISION if how == "unknown" else revision
        result = await self.exchange("initialize", session.initialize_params(asked))
        if early is not None and was_served_early(early, session):
            self._add_fault(early_result(early, revision))
        if result is None:
            session.spent = True
            return
        selected = result.get("protocolVersion")
        if isinstance(selected, str):
            self._report(wrong_version(asked, selected, self._named, revision))
            self._named.add(selected)
        if how == "half":
            session.spent = True
            return
        if selected != revision:
            session.spent = True
            if selected not in ALL:
                return  # a client disconnects
            session.revision = str(selected)
        await session.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        session.is_open = True
        if how == "twice":
            session.spent = True
            await self._send("initialize", session.initialize_params(revision))

    async def _open_again(self, how: str, offers: str) -> None:
        """Go on with a conversation that an earlier case has opened, or this one."""
        session = self.session
        if not dialect_of(session.revision).stateful:
            session.offers = offers  # each request has its own
        elif how == "twice":
            await self._send("initialize", session.initialize_params(session.revision))

    async def _send_early(self) -> SentRequest:
        request = await self._send("tools/list", {})
        await self.wait_until(lambda: request.answer is not None, EARLY_TIMEOUT)
        return request

    async def _request(
        self,
        method: str,
        params: Any = "absent",
        id: str | list[int | str] = "int",
        meta: str = "whole",
    ) -> None:
        await self._send(method, params, id, meta)

    async def _call(self, tool: str, arguments: Any, extra: tuple[str, ...] = ()) -> None:
        session = self.session
        handed: dict[str, Any] = {}
        if self._checks is not None:
            arguments, handed = await self._checks.prepare(tool, arguments, session.revision)
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        is_task = "task" in extra or UNSUPPORTED_TASK in extra
        if is_task and dialect_of(session.revision).stateful:
            params["task"] = {"ttl": 60_000}
        more = {"progressToken": session.new_token()} if "progress" in extra else {}
        request = await self._send(
            "tools/call", params, "text" if "text" in extra else "int", extra_meta=more
        )
        if self._checks is not None:
            self._checks.note_handed(request, handed)

    async def _hand(self, tool: str, argument: str, value: str, place: int) -> None:
        if self._checks is not None:
            self._checks.hand(tool, argument, value, place)

    async def _notify(self, method: str, params: Any = "absent") -> None:
        self._check_message(method, params)
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params not in ({}, "absent"):
            message["params"] = params
        self.session.last_sent = method
        await self.session.send(message)

    async def _burst(self, count: int, method: str, params: Any = "absent") -> None:
        # Over HTTP each request has a connection.
        limit = MAX_BURST if self.session.transport == "stdio" else MAX_CONNECTIONS
        for index in range(min(count, limit)):
            await self._send(method, params, "digits" if index % 3 == 0 else "int")

    async def _batch(self, members: list[Any]) -> None:
        """Send a batch. A server that rejects it gives one error, and no responses."""
        session = self.session
        messages: list[dict[str, Any]] = []
        requests: list[SentRequest] = []
        has_batches = dialect_of(session.revision).batches
        for member in members:
            if not isinstance(member, list) or len(member) != BATCH_MEMBER:
                continue
            method, params, id = member
            if id is None:
                self._check_message(method, params)
                messages.append({"jsonrpc": "2.0", "method": method})
            else:
                messages.append(self.make_request(method, params, id))
                if has_batches:
                    requests.append(session.add_request(messages[-1], is_plain=False))
                    requests[-1].in_batch = True
        session.last_sent = "batch"
        await session.send_text(json.dumps(messages, separators=(",", ":")), {})
        if session.transport == "http" and session.last_status >= 300:
            for request in requests:
                session.open.pop(request.id, None)

    async def _parts(self, how: str, place: int) -> None:
        """Send a `tools/list` in two parts, with characters and escapes to be cut."""
        session = self.session
        message = self.make_request(
            "tools/list", {"_meta": {"com.example/cut": "\xe9\u8336\U0001f375"}}
        )
        body = json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()
        body = body.replace(b"list", b"l\\u0069st")
        cuts = (
            body.index(b"\xc3") + 1,
            body.index(b"\xf0") + 2,
            body.index(b"\\u0069") + 3,
            1,
            len(body) - 1,
            len(body) // 2,
        )
        session.add_request(message, is_plain=True)
        session.last_sent = "tools/list"
        await session.send_parts(body, message, how, cuts[place % len(cuts)])

    async def _wait(self) -> None:
        await self._wait_for_responses()
        await self._examine_unanswered()

    async def _cancel(self, place: int) -> None:
        session = self.session
        requests = [each for each in session.open.values() if not each.cancelled]
        if place < 0:
            await self._notify("notifications/cancelled", {"requestId": session.new_id("int")})
            return
        if not requests:
            return
        request = requests[place % len(requests)]
        if request.method == "initialize":
            return  # the one request that a client must not cancel
        self._before_cancel = len(session.requests)
        await self._cancel_request(request)

    async def _progress(self, place: int) -> None:
        asked = self.session.asked
        if not asked:
            return
        params = asked[place % len(asked)].get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        if token is not None:
            await self._notify("notifications/progress", {"progressToken": token, "progress": 1})

    async def _respond(self, place: int, how: str) -> None:
        session = self.session
        if not session.asked:
            await self.wait_until(
                lambda: bool(session.asked) or not self._is_waiting(), ASK_TIMEOUT
            )
        if session.asked:
            await self._respond_to(session.asked.pop(place % len(session.asked)), how)

    async def _respond_to(self, request: Mapping[str, Any], how: str) -> None:
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        result = client_result(str(request["method"]), request.get("params"))
        if how == "error" or result is None:
            code = -32601 if result is None else -32603
            response["error"] = {"code": code, "message": "not available"}
        elif how == "wrong":
            response["result"] = {"content": 7, "roots": "x", "action": None}
        else:
            response["result"] = result
        if how == "id":
            response["id"] = f"{request['id']}-other"
        if how in ("id", "wrong"):
            self.session.is_misled = True
        await self.session.send(response)
        if how == "twice":
            await self.session.send(response)

    async def _reply(self, id: int | str, members: dict[str, Any]) -> None:
        """Send a response to no request, in a revision in which clients respond."""
        session = self.session
        if dialect_of(session.revision).stateful:
            session.last_sent = "a response"
            await session.send({**members, "jsonrpc": "2.0", "id": id})

    async def _page(self, method: str, how: str) -> None:
        session = self.session
        known = session.cursors.get(method, [])
        if how == "other":
            known = [] if self._beside is None else self._beside.cursors.get(method, [])
            if known:
                await self._send(method, {"cursor": known[-1]})
            return
        if how == "stale" and known:
            await self._send(method, {"cursor": known[0]})
            return
        if how in ("stale", "invented"):
            await self.exchange(method, {})  # which shows whether the list has pages
            sent = await self._send(method, {"cursor": INVENTED_CURSOR})
            await self.wait_until(lambda: sent.answer is not None)
            given = session.cursors.get(method, ())
            self._report(served_cursor(sent, given, session.revision))
            return
        result = await self.exchange(method, {})
        seen: Counter[str] = Counter()
        while len(seen) < (MAX_PAGES if how == "all" else 1):
            cursor = None if result is None else result.get("nextCursor")
            # The second round shows that the pages go round for ever.
            if not isinstance(cursor, str) or seen[cursor] == 2:
                return
            seen[cursor] += 1
            result = await self.exchange(method, {"cursor": cursor})

    async def _retry(self, place: int, how: str) -> None:
        session = self.session
        if not session.rounds:
            await self._wait()
        if not session.rounds:
            return
        request = session.rounds.pop(place % len(session.rounds))
        result = request.answer.get("result") if request.answer is not None else None
        params = request.message.get("params")
        if not isinstance(result, dict) or not isinstance(params, dict):
            return
        params = {key: value for key, value in params.items() if key != "inputResponses"}
        asked = result.get("inputRequests")
        responses = input_responses(asked, how) if isinstance(asked, dict) else {}
        if how != "empty" and responses:
            params["inputResponses"] = responses
        state = result.get("requestState")
        if isinstance(state, str):
            if how == "altered":
                state = altered_state(state)
            elif how == "foreign":
                state = "Zm9yZWlnbg"
            elif how == "other":
                state = self._other_state() or state
            params["requestState"] = state
        sent = await self._send(request.method, params)
        if how not in ("altered", "foreign") or not isinstance(state, str):
            return
        timeout = self._call_times.timeout(sent.name)
        await self.wait_until(lambda: sent.answer is not None, timeout)
        if sent.answer is not None and "result" in sent.answer:
            self._add_fault(
                TargetFault(
                    kind="row",
                    row="MRTR-13",
                    method=request.method,
                    level=level_of("MRTR-13"),
                    is_certain=False,  # a call that changes nothing needs no protection
                    sentence="a requestState that the server did not give is accepted",
                    link=link_of("MRTR-13", session.revision),
                )
            )

    def _other_state(self) -> str | None:
        """Return the last `requestState` that the other client got, or None."""
        rounds = [] if self._beside is None else self._beside.rounds
        found = rounds[-1].answer["result"].get("requestState") if rounds else None
        return found if isinstance(found, str) else None

    async def _listen(self, wanted: Any) -> None:
        if "subscriptions/listen" in dialect_of(self.session.revision).receives[Role.SERVER]:
            await self._send("subscriptions/listen", {"notifications": wanted})
            await trio.lowlevel.checkpoint()
        elif isinstance(wanted, dict):
            for uri in wanted.get("resourceSubscriptions", ()):
                await self._send("resources/subscribe", {"uri": uri})

    async def _task(self, place: int, act: str) -> None:
        session = self._beside if act == "other" else self.session
        if session is None:
            return
        if not session.tasks and act not in ("unknown", "other"):
            await self._wait()
        id = "00000000-no-such-task"
        if act != "unknown":
            if not session.tasks:
                return
            id = session.tasks[-1 - place % len(session.tasks)]
        method = {"unknown": "get", "other": "get"}.get(act, act)
        if act == "follow":
            await self._follow(id)
            return
        params: dict[str, Any] = {"taskId": id}
        if act == "update":
            params["inputResponses"] = {"mcp-trio-fuzz-none": {"action": "cancel"}}
        await self._send(f"tasks/{method}", params if act != "list" else {})

    async def _follow(self, id: str) -> None:
        """Poll a task until it has ended, and give the input that it requires."""
        end = trio.current_time() + FOLLOW_TIMEOUT
        while trio.current_time() < end and not self._is_over():
            task = await self.exchange("tasks/get", {"taskId": id})
            status = None if task is None else task.get("status")
            if task is None or status in ("completed", "failed", "cancelled"):
                if task is not None and dialect_of(self.session.revision).stateful:
                    await self.exchange("tasks/result", {"taskId": id})
                return
            asked = task.get("inputRequests")
            if isinstance(asked, dict) and asked:
                responses = {key: result_of_input(each) for key, each in asked.items()}
                await self.exchange("tasks/update", {"taskId": id, "inputResponses": responses})
            await trio.sleep(FOLLOW_INTERVAL)

    async def _mutate(self, text: str) -> None:
        await self._send_bytes(text.encode("utf-8", "surrogatepass"))

    async def _damage(self, data: bytes) -> None:
        await self._send_bytes(data)

    async def _reconnect(self) -> None:
        """End the conversation in order, and begin another one with the same target."""
        former = self.session
        if not former.ended:
            await self._settle()
            await self._end_session()
        self.session = await former.successor()
        self._has_disconnected = False
        self._outcome.reconnects += 1
        if former is not self._first:
            await former.aclose()

    async def _disconnect(self) -> None:
        await self._wait()
        await self._end_session()

    async def _end_session(self) -> None:
        """End the conversation in order, and report a process that goes on without its input."""
        session = self.session
        is_idle = not session.may_be_busy and not session.waits()
        self._has_disconnected = True
        await session.disconnect()
        if not is_idle or not session.is_open:
            return
        if session.transport == "stdio" and session.revision in ROWS["STDIO-11"].revisions:
            session.judge.opportunities["STDIO-11"] += 1
        if not session.outlives_input:
            return
        if not set(ROWS["STDIO-11"].revisions).issuperset((session.revision,)):
            self._outcome.notes.append("the process goes on after the end of its input")
        elif not await self._is_slow():
            sentence = "the process goes on after the end of its input, and has to be killed"
            self._add_fault(row_fault("STDIO-11", "", sentence, session.revision))


_STEPS: Final[dict[str, Any]] = {
    "open": Player._open,
    "request": Player._request,
    "call": Player._call,
    "hand": Player._hand,
    "notify": Player._notify,
    "burst": Player._burst,
    "batch": Player._batch,
    "parts": Player._parts,
    "wait": Player._wait,
    "cancel": Player._cancel,
    "progress": Player._progress,
    "respond": Player._respond,
    "reply": Player._reply,
    "page": Player._page,
    "retry": Player._retry,
    "listen": Player._listen,
    "task": Player._task,
    "mutate": Player._mutate,
    "damage": Player._damage,
    "disconnect": Player._disconnect,
    "reconnect": Player._reconnect,
    **STRESS_STEPS,
}
STEP_NAMES: Final = frozenset((*_STEPS, *HTTP_STEPS, ON))


class PlayerFactory(Protocol):
    """A maker of players. See `Player`."""

    def __call__(
        self, timeout: float, /, *, probes: bool = ..., wanted: tuple[str, str] | None = ...
    ) -> Any:
        """Return a player."""


class FreshPlays:
    """Plays of cases, each alone on a fresh session of a target.

    Args:
        target: opens the sessions.
        new_player: makes a player for each play.
        response_timeout: seconds for a response.
    """

    def __init__(
        self, target: TargetLike, new_player: PlayerFactory, response_timeout: float
    ) -> None:
        self.response_timeout = response_timeout
        self._target = target
        self._new_player = new_player

    async def play(
        self,
        case: Case,
        timeout: float | None = None,
        *,
        probes: bool = True,
        wanted: tuple[str, str] | None = None,
    ) -> Outcome:
        """Play a case. `timeout` takes the place of the usual seconds for a response.

        Raises:
            ConnectFailed: the target doesn't start.
        """
        seconds = self.response_timeout if timeout is None else timeout
        return await play_case(
            self._target, case, self._new_player(seconds, probes=probes, wanted=wanted)
        )


async def play_case(
    target: TargetLike, case: Case, player: Player | None = None, *, keep: bool = True
) -> Outcome:
    """Play a case on a fresh session of a target, and return its outcome.

    Raises:
        ConnectFailed: the target doesn't start.
    """
    session = await target.open(keep=keep)
    try:
        outcome = await (player or Player()).play(case, session)
    finally:
        with trio.CancelScope(shield=True):
            await session.aclose()
    outcome.header = session.header
    if not dialect_of(session.revision).stateful:  # no handshake shows it
        outcome.header = replace(session.header, server_versions=(session.revision,))
    outcome.lines = list(session.lines or ())
    return outcome
