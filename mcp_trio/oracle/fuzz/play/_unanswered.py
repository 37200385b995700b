"""Requests that get no response: which of them are faults.

1. A missing response is a fault only if the server's author has no code that runs for the request,
   such as a tool, and if the machine isn't slow at that moment.
2. What runs the author's code may take the time of `CallTimes`, and is cancelled then. It is
   reported only if another session, or the other client, gets a response that this one doesn't. It
   is advice, since a tool may wait, unless a play is made to prove it: see `_is_same_each_time`.
3. A server may be busy: with a cancelled call, or with one of the other client. If it answers
   nothing since a call that only another text tells apart from a quick one, that is advice too,
   unless a play is made to prove it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import trio
from msgspec.structs import replace

from mcp_core import ConnectFailed
from mcp_trio.oracle.fuzz._answers import name_of
from mcp_trio.oracle.fuzz._fault import BATCHED, UNANSWERED, UNANSWERED_MALFORMED, row_fault
from mcp_trio.oracle.fuzz._interoperable_json import is_interoperable, shown_value
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._opening import EARLY_TIMEOUT, open_conversation
from ._play import Play, ToolNotAllowed
from ._waiting import (
    BUSY_TIMEOUT,
    PROBE_METHODS,
    answers_probe,
    begin_of,
    exchange_probe,
    is_blocked,
    may_be_starting,
    note_blocked,
    open_requests,
    slow_start,
    wait_as_long,
    wait_for_responses,
    wait_for_start,
    wait_until,
)

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._fault import TargetFault
    from mcp_trio.oracle.fuzz._sent_request import SentRequest

__all__ = [
    "HUNG",
    "NEVER",
    "STOPPED",
    "excused_by_call",
    "report_missing",
    "serves_calls_again",
    "settle",
    "wait_for_all",
]

LATE_TIMEOUT: Final = 0.5  # seconds for what a cancelled call still sends
STOPPED: Final = "stopped"  # the detail of a tool that doesn't answer any more
NEVER: Final = "never"  # the detail of a call that gets no response, while others of its tool do
# The detail of a request that is lost with a cancelled one.
LOST_TOO: Final = "with the cancelled"
HUNG: Final = "hung"  # the detail of a call since which the server answers nothing
MAX_AMONG: Final = 20  # requests that are sent again to see whether one of them is lost
_SAME_TIME: Final = 0.25  # the part of a call's time within which requests are sent together
# The parts of a call's longest time within which a tool is quick: for advice, and for a proof.
_QUICK: Final = 0.1
_PROVEN_QUICK: Final = 0.03
_MAX_DEPTH: Final = 6  # of the arguments that are compared
_SHOWN: Final = 80  # characters of a value in a sentence


async def wait_for_all(play: Play) -> None:
    """Wait for the responses to all open requests, and report calls that don't get theirs."""
    await wait_for_responses(play)
    await _examine_unanswered(play)


async def settle(play: Play) -> None:
    """Wait until no request is open: each has a response, or is cancelled or reported without one.

    The server's requests are answered meanwhile.
    """
    session = play.session
    early = [each for each in open_requests(play) if not (each.was_open and each.is_owed)]
    if early:  # a server may ignore what comes before its handshake, or an id again
        await wait_until(play, lambda: all(each.answer for each in early), EARLY_TIMEOUT)
        for request in early:
            session.open.pop(request.id, None)
    await wait_for_all(play)
    await _wait_for_rest(play)
    missing = [] if play.is_over() else open_requests(play)
    running = [each for each in missing if not each.is_bounded]
    if running and not play.clients.may_be_busy():
        # A call that came later isn't in the way of these.
        await _examine_bounded(play, [each for each in missing if each.overdue == "alone"])
        missing = [each for each in missing if each.overdue != "alone"]
    is_silent = await _examine_owed(play, running)
    await _examine_hung(play, running)
    for request in running:
        if request.answer is None and request.id in session.open:
            await _cancel_slow(play, request)
    is_stateless = not dialect_of(session.revision).stateful
    if running and is_stateless and session.transport == "stdio":
        await _watch_cancelled(play)
    # Responses to a batch can wait for each other.
    late = {each.batch for each in running if each.batch}
    missing = [each for each in missing if each.is_bounded and each.batch not in late]
    # A server that answers nothing for so long isn't busy with one of them.
    is_busy = play.clients.may_be_busy() or (bool(running) and not is_silent)
    await _examine_bounded(play, missing, is_busy=is_busy)


async def _wait_for_rest(play: Play) -> None:
    """Wait for the responses for which a step hasn't waited all the time."""
    requests = [each for each in open_requests(play) if each.is_bounded and each.overdue]
    if requests and play.session.drops_some:
        # Each response gives the others the same time again: they may be handled in turn.
        await wait_until(play, lambda: all(each.answer is not None for each in requests))


async def _examine_bounded(
    play: Play, missing: list[SentRequest], *, is_busy: bool = False
) -> None:
    """Report requests that run no author's code, unless the server has a reason.

    With `is_busy` a call may be one, for a server that handles one request after the other.
    """
    session = play.session
    if missing and may_be_starting(play):
        await wait_for_start(play)
        missing = [] if play.is_over() else [each for each in missing if each.answer is None]
    if missing and (seconds := slow_start(play)):
        await wait_until(play, lambda: all(each.answer for each in missing), seconds)
        missing = [] if play.is_over() else [each for each in missing if each.answer is None]
    if missing and (is_busy or await play.is_slow()):
        if not is_blocked(play):
            await wait_until(play, lambda: all(each.answer for each in missing), BUSY_TIMEOUT)
        missing = [each for each in missing if each.answer is None and not session.ended]
        note_blocked(play, missing)
        if missing and any(each.is_busy for each in play.clients):
            session.spent = True
            return
    for request in missing:
        report_missing(play, request)


async def _cancel_slow(play: Play, request: SentRequest) -> None:
    """Cancel a request that runs the author's code and takes too long."""
    session = play.session
    session.running.add(request.name)
    if not request.batch:  # otherwise it may be the batch that is lost
        play.call_times.add_late(request.name, begin_of(play, request), trio.current_time())
        play.outcome.slow.append(request.name)
    await play.cancel_request(request)
    session.open.pop(request.id, None)


async def serves_calls_again(play: Play) -> bool:
    """Return True if no call that took too long and was cancelled is in the way of others.

    A call of the same name that was quick in this session must be quick again. Otherwise nothing
    more is certain in the session, and everything that waits for such a call costs seconds.
    """
    session = play.session
    for name in sorted(session.running):
        quickest = session.quickest.get(name)
        again = None if quickest is None else await _call_again(play, quickest.request)
        if again is None or session.ended:
            return False
        if again.answer is None:
            await play.cancel_request(again)
        if again.answer is None or "result" not in again.answer:
            return False
    session.running.clear()
    return True


async def _watch_cancelled(play: Play) -> None:
    """Wait for messages about cancelled requests: there must be none any more (CXL-7).

    The response to a later request shows that the server has read the cancellations.
    """
    later = await exchange_probe(play, "server/discover")
    if later.answer is not None:
        end = trio.current_time() + LATE_TIMEOUT
        await wait_until(play, lambda: trio.current_time() >= end, LATE_TIMEOUT)


def report_missing(play: Play, request: SentRequest, seconds: float = 0.0) -> None:
    """Report that a request got no response in `seconds`; 0 for the usual ones."""
    session = play.session
    if not request.is_plain and session.unread_errors > request.unread:
        return  # an error without an id is the response to it
    session.spent = session.spent or not request.is_dropped
    defect = request.defect
    row = UNANSWERED_MALFORMED if defect else UNANSWERED
    lacks = f"was not answered within {seconds or play.timeout:g} s"
    if request.loss == "missing":
        lacks = "got no response: its HTTP exchange is complete"
    elif request.loss:
        lacks = "got no response: the server has cut off the HTTP response"
    sentence = f"the request {request.method[:_SHOWN]} {lacks}"
    if defect:
        sentence += f"; the message was malformed: {defect}"
    fault = row_fault(row, request.method, sentence, session.revision)
    fault = replace(fault, sent=json.dumps(request.message))
    if request.batch:  # SDKs have given up batches also for the revision that has them
        sentence = f"{fault.sentence}; it was in a batch"
        fault = replace(fault, detail=BATCHED, sentence=sentence, is_certain=False)
    if not is_interoperable(request.message):
        # As the TypeScript SDK does, which reads no id that isn't the same as a double.
        reason = "not every reader has numbers that large, or values nested so deeply"
        sentence = f"{fault.sentence}: {reason}"
        detail = f"{fault.detail} large".strip()
        fault = replace(fault, detail=detail, sentence=sentence, is_certain=False)
    play.report(fault if request.loss else excused_by_call(play, fault))


def excused_by_call(play: Play, fault: TargetFault) -> TargetFault:
    """Return a fault; as advice if a call that the case has cancelled can still run."""
    if not play.clients.may_be_busy():
        return fault
    return replace(
        fault,
        detail=f"{fault.detail} cancelled".strip(),
        sentence=f"{fault.sentence}, after the cancellation of a call that may still run",
        is_certain=False,
    )


# -- Calls, and other requests that run the author's code ------------------------------------------


async def _examine_unanswered(play: Play) -> None:
    """Report requests without responses that get them in another session."""
    missing = [] if play.is_over() else open_requests(play)
    await _examine_lost(play, missing)
    if len(missing) == 1 and not missing[0].is_bounded:
        await _examine_stopped(play, missing[0])


async def _examine_owed(play: Play, running: list[SentRequest]) -> bool:
    """Report requests that get no response in the longest time of a call, and run no tool.

    A later request must get its response meanwhile: the server can be busy with one of them. If
    that gets none either, the end of the case reports it. Return True then.
    """
    session, times = play.session, play.call_times
    is_wanted = play.wanted is not None and play.wanted[0] == UNANSWERED
    owed = [
        each
        for each in running
        if each.is_owed_soon and each.is_plain and each.was_open and each.id in session.open
        if times.may_have_stopped(each.name, is_wanted=is_wanted)
    ]
    if not owed or len(owed) < len(running) or play.clients.may_be_busy() or session.is_misled:
        return False  # another call can be in their way
    missing: list[SentRequest] = []
    while owed and not missing:
        # If the first ones get no response, the later ones aren't waited for as long again.
        last = min(begin_of(play, each) for each in owed) + times.longest * _SAME_TIME
        missing = [each for each in owed if begin_of(play, each) <= last]
        end = max(begin_of(play, each) for each in missing) + times.longest
        await wait_as_long(play, missing, end)
        missing = [each for each in missing if each.answer is None]
        owed = [each for each in owed if each.answer is None]
    if not missing or play.is_over() or await play.is_slow():
        return False
    is_alive = await answers_probe(play)
    for request in owed:
        if request.answer is None and not session.ended:
            if request in missing:
                times.add_stopped(request.name)
                if is_alive:
                    report_missing(play, request, times.longest)
            session.open.pop(request.id, None)
    return not is_alive


async def _examine_hung(play: Play, running: list[SentRequest]) -> None:
    """Report a call since which the server answers nothing, though a similar one was quick.

    Such a call differs only in its texts. A number can say how long the tool shall take, a text
    seldom does. But a long text can need its time, and a text can name a slow host. So it isn't
    certain, unless the play was made to prove it: see `Examiner.prove`.
    """
    session, times = play.session, play.call_times
    hung = [each for each in running if each.id in session.open and _should_be_quick(play, each)]
    if not hung or len(hung) < len(running) or play.clients.may_be_busy() or session.is_misled:
        return  # another call can be in their way
    name = f"{hung[0].name} {HUNG}"
    if not times.may_have_stopped(name, is_wanted=play.wanted == (UNANSWERED, HUNG)):
        return
    await wait_as_long(play, hung, begin_of(play, hung[0]) + times.longest)
    if any(each.answer is not None for each in hung) or play.is_over() or await play.is_slow():
        return
    times.add_stopped(name)
    if await answers_probe(play) or session.ended or await play.is_slow():
        return
    if any(each.answer is not None for each in hung):
        return
    tool = shown_value(name_of(hung[0].message))
    method = dialect_of(session.revision).ping
    sentence = (
        f"the server answers nothing within {times.longest:g} s, not even {method}, since a call of"
        f" {tool} that differs only in its text from a quick one"
    )
    is_certain = times.proves and times.timeout(hung[0].name) <= _PROVEN_QUICK * times.longest
    sentence += "" if is_certain else ": to look at, unless the tool may take so long"
    sent = json.dumps(hung[0].message)
    # That the call gets no response is the same fault.
    others = [each for each in session.take_faults() if (each.detail, each.sent) != (NEVER, sent)]
    session.put_faults(others)
    fault = row_fault(UNANSWERED, "tools/call", sentence, session.revision)
    play.report(replace(fault, kind="hang", detail=HUNG, sent=sent, is_certain=is_certain))


def _should_be_quick(play: Play, request: SentRequest) -> bool:
    """Return True if the session's last result of the tool came soon, for other texts only."""
    times = play.call_times
    if request.method != "tools/call" or not request.is_plain or request.batch:
        return False
    if times.timeout(request.name) > times.longest * _QUICK:
        return False
    answered = [
        each
        for each in play.session.requests
        if each.name == request.name and each.answer is not None
    ]
    result = (answered[-1].answer or {}).get("result") if answered else None
    if not isinstance(result, dict) or result.get("isError") is True:
        return False
    former, params = (each.message.get("params") for each in (answered[-1], request))
    return bool(_without_texts(_without_meta(former)) == _without_texts(_without_meta(params)))


def _without_texts(value: Any, depth: int = 0) -> Any:
    """Return a value with an empty text in place of each text in it."""
    if isinstance(value, dict) and depth < _MAX_DEPTH:
        return {key: _without_texts(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list) and depth < _MAX_DEPTH:
        return [_without_texts(each, depth + 1) for each in value]
    return "" if isinstance(value, str) else value


async def _examine_lost(play: Play, missing: list[SentRequest]) -> None:
    """Report requests that get no response since a step has cancelled another one.

    It is certain: other sessions get results for them, alone and among the same requests without
    the cancellation. They get as much time more as that takes.
    """
    session, times = play.session, play.call_times
    sent = [each for each in session.requests[: play.before_cancel] if each.was_open]
    # The cancellation has nothing to do with those that had their time before it.
    lost = [each for each in missing if each in sent and each not in play.overdue_before_cancel]
    is_known = session is play.clients.first and all(each.is_plain for each in sent)
    if not lost or not is_known or len(sent) > MAX_AMONG or session.is_misled:
        return
    name = f"{lost[0].name} {LOST_TOO}"
    is_wanted = play.wanted == (UNANSWERED, LOST_TOO)
    if play.has_slow_twin or not times.may_have_stopped(name, is_wanted=is_wanted):
        return
    if await play.is_slow():
        return
    began = trio.current_time()
    others = [each for each in sent if not each.cancelled]
    if not (
        await _are_answered_elsewhere(play, others, lost)
        and await _are_answered_elsewhere(play, sent, lost)
    ):
        times.add_slow_elsewhere(name)
        play.has_slow_twin = True
        return
    elapsed = trio.current_time() - began
    await wait_as_long(play, lost, trio.current_time() + elapsed + times.longest)
    lost = [each for each in lost if each.answer is None]
    if not lost or play.is_over() or not await answers_probe(play):
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
        play.report(replace(fault, detail=LOST_TOO, sent=json.dumps(request.message)))
        session.open.pop(request.id, None)


async def _examine_stopped(play: Play, request: SentRequest) -> None:
    """Report a tool that has answered a client of the case, and doesn't answer this call.

    The other client, or another session, tells whether it has stopped, or never answers such a
    call. This call gets all the time that any call may take. Still it isn't certain: a tool may
    wait for its turn, or for an event.
    """
    session, times = play.session, play.call_times
    has_answered = any(request.name in each.quickest for each in play.clients)
    if request.method != "tools/call" or not has_answered:
        return
    if play.clients.may_be_busy() or play.before_cancel or not request.is_plain:
        return  # a call that was cancelled before can be in its way
    is_wanted = play.wanted is not None and play.wanted[0] == UNANSWERED
    if session.is_misled or not times.may_have_stopped(request.name, is_wanted=is_wanted):
        return
    if play.is_over() or await play.is_slow():
        return
    began = trio.current_time()
    other = await _find_answered(play, request)
    elapsed = trio.current_time() - began
    end = max(trio.current_time() + elapsed, begin_of(play, request) + times.longest)
    await wait_as_long(play, [request], end)
    if request.answer is not None or play.is_over():
        return
    name = shown_value(name_of(request.message))
    times.add_stopped(request.name)
    before = "" if request.name in session.quickest else " the other client"
    is_certain = False
    if other:
        is_certain = times.proves and times.is_steady(request.name)
        is_certain = is_certain and _is_same_each_time(play, request) and await answers_probe(play)
        sentence = (
            f"{name} has answered{before} before, and does not answer a call within"
            f" {times.longest:g} s, while {other} gets a result for the same call"
        )
        sentence += "" if is_certain else ": to look at, unless the tool may wait"
    else:
        sentence = (
            f"{name} has answered other calls, and never answers this one within"
            f" {times.longest:g} s: to look at, unless the tool may take so long"
        )
    if session.ended or request.answer is not None:
        return
    fault = row_fault(UNANSWERED, request.method, sentence, session.revision)
    detail = STOPPED if other else NEVER
    sent = json.dumps(request.message)
    play.report(replace(fault, detail=detail, sent=sent, is_certain=is_certain))


def _is_same_each_time(play: Play, request: SentRequest) -> bool:
    """Return True if the clients have sent nothing but this call, and it gave one result, twice.

    Then nothing that a client has done can be what the tool waits for.
    """
    calls = [
        each
        for session in play.clients
        for each in session.requests
        if each.method != "initialize" and each.method not in PROBE_METHODS
    ]
    wanted = _without_meta(request.message.get("params"))
    results = [_without_meta(each.answer.get("result")) for each in calls if each.answer]
    return (
        all(_without_meta(each.message.get("params")) == wanted for each in calls)
        and len(results) > 1
        and all(isinstance(each, dict) and each == results[0] for each in results)
    )


def _without_meta(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: each for key, each in value.items() if key != "_meta"}


async def _find_answered(play: Play, request: SentRequest) -> str:
    """Return who gets a result for the same call in time, "" for no one."""
    other = play.clients.other
    has_answered = other is not None and request.name in other.quickest
    if has_answered and await play.clients.as_other(_is_answered_again, play, request):
        return "the other client"
    if await _are_answered_elsewhere(play, [request], [request]):
        return "a fresh process" if play.session.transport == "stdio" else "another session"
    return ""


async def _is_answered_again(play: Play, request: SentRequest) -> bool:
    """Return True if the client whose turn it is gets a result for a call of the other one."""
    session = play.session
    if not session.is_open or session.ended:
        return False
    again = await _call_again(play, request)
    if again is None:
        return False
    if again.answer is None:
        await _cancel_slow(play, again)
        return False
    return "result" in again.answer


async def _call_again(play: Play, request: SentRequest) -> SentRequest | None:
    """Send a request again, and wait as long as for any of its name.

    None is returned if it may not be sent any more: its tool was too slow for another lane.
    """
    token = {} if request.token is None else {"progressToken": play.session.new_token()}
    params = _without_meta(request.message.get("params", {}))
    try:
        again = await play.send(request.method, params, extra_meta=token)
    except ToolNotAllowed:
        return None
    end = trio.current_time() + play.call_times.timeout(request.name)
    await wait_as_long(play, [again], end)
    return again


async def _are_answered_elsewhere(
    play: Play, sent: list[SentRequest], wanted: list[SentRequest]
) -> bool:
    """Return True if another session gets results for some of the same requests in time."""
    former, times = play.session, play.call_times
    try:
        session = await former.fresh()
    except ConnectFailed:
        return False
    try:
        other = Play(session, play.timeout, guard=play.guard, call_times=times)
        session.call_times = times
        await open_conversation(other, former.revision, "whole", former.offers)
        if not session.is_open:
            return False
        if may_be_starting(other):
            await wait_for_start(other)
        timeout = max(times.timeout(each.name) for each in wanted)
        again: list[SentRequest] = []
        for each in sent:
            found = await other.send(each.method, each.message.get("params", {}))
            if each in wanted:
                again.append(found)
        end = trio.current_time() + (timeout if len(sent) == 1 else times.longest)
        await wait_as_long(other, again, end)
        return all(each.answer is not None and "result" in each.answer for each in again)
    except ToolNotAllowed:
        return False  # it was too slow for another lane meanwhile
    finally:
        with trio.CancelScope(shield=True):
            await session.aclose()
