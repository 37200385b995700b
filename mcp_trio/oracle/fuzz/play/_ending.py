"""The end of a case and of its conversations, wanted or not.

After each case the target must answer a request, and its process must run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core.processes import find_error_line
from mcp_core.trace import ROWS, Redactor
from mcp_trio.oracle.fuzz._fault import (
    UNANSWERED,
    UNANSWERED_MALFORMED,
    TargetFault,
    link_of,
    row_fault,
)
from mcp_trio.oracle.fuzz._known_crashes import find_known_crash
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._unanswered import (
    excused_by_call,
    report_missing,
    serves_calls_again,
    settle,
    wait_for_all,
)
from ._unknown import served_unknown, unasked_updates
from ._waiting import exchange_probe, wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._play import Play

__all__ = ["ENDING_STEPS", "finish"]

LINGER: Final = 0.1  # seconds at the end of a replay
STDERR_LINE: Final = "its stderr: "  # before each line of `ChildProcess.describe`


async def finish(play: Play, *, probes: bool) -> None:
    """End a case for each of its clients.

    Args:
        play: the case's play.
        probes: whether to send a request at last that every server answers.
    """
    await play.clients.for_each(_finish_requests, play)
    if play.wanted is not None and not play.is_over():
        # For what no request brings, such as the response to a cancelled one.
        requests = [request for each in play.clients for request in each.requests]
        cancelled = any(each.cancelled and each.answer is None for each in requests)
        await wait_until(play, lambda: False, play.timeout if cancelled else LINGER)
    await play.clients.for_each(_finish_session, play, probes)


async def _finish_requests(play: Play) -> None:
    """Wait for the responses to a client's requests, and report what is wrong with them."""
    if not play.is_over():
        await settle(play)
    await play.check_results()
    for request in play.session.requests:
        if request.loss in ("missing", "cut"):
            report_missing(play, request)
        elif request.is_plain and request.was_open:
            play.report(served_unknown(request, play.session.revision))


async def _finish_session(play: Play, probes: bool) -> None:
    """Find out whether the server still serves a client, and end the case for it."""
    session = play.session
    is_served = probes and not play.is_over() and session.is_open and await _probe(play)
    if is_served:
        for request in session.requests:
            if request.is_dropped and request.answer is None and not request.cancelled:
                report_missing(play, request)
    if session.is_busy and not (is_served and await serves_calls_again(play)):
        session.spent = True
    # Changes are reported later than the calls that made them have ended.
    play.report(unasked_updates(session.updates, session.requests, session.revision))
    if session.ended and _is_unexpected_end(play):
        _report_end(play)
    await session.end_case()
    for request in session.requests:
        session.open.pop(request.id, None)
    if session.ended or session is not play.clients.first:
        session.spent = True


async def _probe(play: Play) -> bool:
    """Send a request that every server answers at once. Return False without a response."""
    session = play.session
    method = dialect_of(session.revision).ping
    faults = session.take_faults()  # the probe isn't a part of the case
    request = await exchange_probe(play, method)
    if request.loss in ("broken", "cut") and not session.ended:
        # A server may close a connection that was idle, or one too many for it.
        await session.end_case()
        request = await exchange_probe(play, method)
    session.put_faults(faults)
    if request.loss == "missing":
        report_missing(play, request)
    if session.ended:
        return False
    if request.answer is not None and request.loss not in ("broken", "cut"):
        return True
    session.spent = True
    if any(each.is_busy for each in play.clients):
        play.outcome.is_blocked = True
        play.outcome.notes.append("the server answers nothing while a call runs")
        return False
    session.take_faults()
    for fault in faults:
        # The hang is what requests without a response have in common.
        if fault.row not in (UNANSWERED, UNANSWERED_MALFORMED):
            session.put_faults([fault])
    fault = TargetFault(
        kind="hang",
        row=UNANSWERED,
        detail="hang",
        method=method,
        sentence=f"the server does not respond any more, not even to {method}",
        link=link_of(UNANSWERED, session.revision),
    )
    session.add_fault(excused_by_call(play, fault))
    return False


def _is_unexpected_end(play: Play) -> bool:
    """Return True if the end of the conversation is a fault.

    After an unusual beginning, or once a response is missing or late, a server may end the
    conversation. A process must not crash even then. Before the handshake only a signal says that
    it has crashed: with an exit status, a server can refuse the conversation.
    """
    session = play.session
    if not session.spent and not session.is_busy:
        return True
    status = session.exit_status
    if status is None or play.has_disconnected:
        return False
    return bool(status < 0 or (status > 0 and session.is_open))


def _report_end(play: Play) -> None:
    """Report a process that has ended, or a server that has ended the conversation."""
    session = play.session
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
    play.report(
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


# -- Steps -----------------------------------------------------------------------------------------


async def _disconnect(play: Play) -> None:
    await wait_for_all(play)
    await _end_session(play)


async def _reconnect(play: Play) -> None:
    """End the conversation in order, and begin another one with the same target."""
    if not play.session.ended:
        await settle(play)
        await _end_session(play)
    await play.clients.succeed()
    play.has_disconnected = False
    play.outcome.reconnects += 1


async def _end_session(play: Play) -> None:
    """End the conversation in order, and report a process that goes on without its input."""
    session = play.session
    is_idle = not session.may_be_busy and not session.waits()
    play.has_disconnected = True
    await session.disconnect()
    if not is_idle or not session.is_open:
        return
    if session.transport == "stdio" and session.revision in ROWS["STDIO-11"].revisions:
        session.judge.opportunities["STDIO-11"] += 1
    if not session.outlives_input or await play.is_slow():
        return
    if not set(ROWS["STDIO-11"].revisions).issuperset((session.revision,)):
        play.outcome.notes.append("the process goes on after the end of its input")
    else:
        sentence = "the process goes on after the end of its input, and has to be killed"
        play.report(row_fault("STDIO-11", "", sentence, session.revision))


ENDING_STEPS: Final[Mapping[str, Any]] = {
    "disconnect": _disconnect,
    "reconnect": _reconnect,
}
