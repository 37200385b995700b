"""Waiting in a play: how long for a response, for a call, and for a process that starts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import DIALECTS
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._stress_budget import PROBE_TIMEOUT_FACTOR

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_trio.oracle.fuzz._sent_request import SentRequest

    from ._play import Play

__all__ = [
    "BUSY_TIMEOUT",
    "PROBE_METHODS",
    "answers_probe",
    "begin_of",
    "ends_early",
    "exchange",
    "exchange_probe",
    "is_blocked",
    "is_waiting",
    "may_be_starting",
    "note_blocked",
    "open_requests",
    "slow_start",
    "wait_as_long",
    "wait_for",
    "wait_for_responses",
    "wait_for_start",
    "wait_until",
]

MAX_VAIN_WAITS: Final = 2  # waits in a row without a response, after which a server is examined
SHORT_WAIT: Final = 0.25  # the part of a timeout that is waited once a server drops requests

# Requests that every server answers at once.
PROBE_METHODS: Final = frozenset(dialect.ping for dialect in DIALECTS.values())
OPEN_TIMEOUT: Final = 30.0  # seconds for the first response of a process
SLOW_START: Final = 2.0  # seconds of a start, from which further first responses may be slow too
START_FACTOR: Final = 3  # how much longer than the longest start so far another one may take
_MOST: Final = 4  # how many times its length a timeout lasts while messages arrive
BUSY_TIMEOUT: Final = 10.0  # seconds for a server that may be running its author's code


async def wait_until(play: Play, is_done: Callable[[], bool], timeout: float = 0.0) -> None:
    """Wait until something is true, the session has ended, or a timeout without any message.

    Messages prolong a short timeout only, and four times at most: a server can send them for ever.
    Its requests are answered meanwhile: it may be waiting for the responses.
    """
    session = play.session
    timeout = timeout or play.timeout
    most = min(_MOST * timeout, max(timeout, _MOST * play.timeout))
    last = trio.current_time() + most
    deadline = trio.current_time() + timeout
    answered = session.answered
    while not is_done() and not play.is_over():
        if session.asked:
            await play.respond_to(session.asked.pop(0), "right")
            continue
        if not await session.wait_changed(min(deadline, last)):
            return
        deadline = trio.current_time() + timeout
        if session.answered > answered:  # a server that handles one request after the other
            answered, last = session.answered, trio.current_time() + most


async def wait_for_responses(play: Play) -> None:
    """Wait for the responses to requests; not as long for those that run the author's code."""
    await _wait_for_responses(play)
    now = trio.current_time()
    for each in open_requests(play):
        if not each.is_bounded and now >= _call_deadline(play, each):
            each.overdue = each.overdue or "behind"
            if not each.batch:  # otherwise it may be the batch that is lost
                play.call_times.add_late(each.name, begin_of(play, each), now)


async def _wait_for_responses(play: Play) -> None:
    session = play.session
    while is_waiting(play) and not play.is_over():
        running = [each for each in open_requests(play) if not each.is_bounded]
        drops_batches = _drops_batches(play)
        if drops_batches:
            running = [each for each in running if not each.batch]
        if not running:
            answered = session.answered
            await wait_until(play, lambda: not is_waiting(play), _bounded_timeout(play))
            if drops_batches and not _drops_batches(play):
                continue  # it answers them, but slowly
            _set_overdue(play)
            if session.answered == answered:
                _count_vain_wait(play)
            return
        remaining = min(_call_deadline(play, each) for each in running) - trio.current_time()
        before = len(session.open)

        def is_answered(before: int = before) -> bool:
            return len(session.open) < before

        await wait_until(play, is_answered, max(remaining, 0.001))
        if remaining <= 0 and not is_answered():
            bounded = [each for each in open_requests(play) if each.is_bounded]
            if any(not each.overdue for each in bounded):
                await wait_until(play, is_answered)
            if not is_answered():
                _set_overdue(play)
                _count_vain_wait(play)
                return


def _set_overdue(play: Play) -> None:
    """Note that requests had their time: those for which no code of the author's runs.

    So had the calls in a batch, if the server drops batches.
    """
    missing = open_requests(play)
    is_busy = play.clients.may_be_busy() or any(not each.is_bounded for each in missing)
    drops_batches = _drops_batches(play)
    for each in missing:
        if each.is_bounded or (each.batch and drops_batches):
            each.overdue = each.overdue or ("behind" if is_busy else "alone")


def _drops_batches(play: Play) -> bool:
    """Return True if a request of an earlier batch, which runs no tool, has got no response."""
    return any(
        each.batch and each.overdue and each.is_bounded and each.answer is None
        for each in play.session.requests
    )


def _bounded_timeout(play: Play) -> float:
    """Return the seconds for requests that every server answers at once.

    A server that drops some of them may drop more. `settle` waits for the rest of the time.
    """
    return play.timeout * (SHORT_WAIT if play.session.drops_some else 1)


def _count_vain_wait(play: Play) -> None:
    """Note that a wait has brought no response, if the server owes one and has started."""
    session = play.session
    if may_be_starting(play) and trio.current_time() < session.opened_at + _start_timeout(play):
        return
    if not slow_start(play) and any(
        each.is_bounded and each.is_plain and each.was_open and each.is_owed
        for each in open_requests(play)
    ):
        session.vain_waits += 1


async def ends_early(play: Play) -> bool:
    """Return True if the current client's server answers nothing any more.

    Further steps would cost a timeout each, and show nothing. While a call runs, the server isn't
    asked: it may answer nothing else meanwhile.
    """
    session = play.session
    if session.vain_waits < MAX_VAIN_WAITS or play.is_over():
        return False
    session.vain_waits = 0
    is_running = any(not each.is_bounded for each in open_requests(play))
    if is_running or play.clients.may_be_busy():
        return True
    faults = session.take_faults()  # the probe isn't a part of the case
    probe = await exchange_probe(play, dialect_of(session.revision).ping)
    session.open.pop(probe.id, None)
    session.put_faults(faults)
    # A slow server may have answered the earlier requests meanwhile: then it drops none.
    session.drops_some = probe.answer is not None and any(
        each.is_bounded and each.overdue for each in open_requests(play)
    )
    return probe.answer is None


async def wait_as_long(play: Play, requests: list[SentRequest], end: float) -> None:
    """Wait for the responses to requests until a time, also if the server sends more."""
    while not play.is_over() and trio.current_time() < end:
        if all(each.answer is not None for each in requests):
            return
        remaining = end - trio.current_time()
        await wait_until(play, lambda: all(each.answer is not None for each in requests), remaining)


def open_requests(play: Play) -> list[SentRequest]:
    """Return the requests whose responses are awaited."""
    return [
        each
        for each in play.session.open.values()
        if not (each.cancelled or each.is_dropped or each.method == "subscriptions/listen")
    ]


def is_waiting(play: Play) -> bool:
    """Return True if a response is still to come."""
    session = play.session
    now = trio.current_time()
    for each in session.open.values():
        if each.cancelled or each.overdue or each.is_dropped:
            continue
        if each.method == "subscriptions/listen":
            continue
        if not each.is_bounded:
            if now < _call_deadline(play, each):
                return True
        elif each.is_plain or session.unread_errors == each.unread:
            return True
    return False


def _call_deadline(play: Play, request: SentRequest) -> float:
    """Return the deadline of a call, counted from when its process reads."""
    return begin_of(play, request) + play.call_times.timeout(request.name)


def begin_of(play: Play, request: SentRequest) -> float:
    """Return when a request was sent, or later when its process begins to read."""
    session = play.session
    begin = request.sent_at
    if may_be_starting(play):
        begin = max(begin, session.opened_at + (session.longest_start or 0.0))
    return float(begin)


# -- Requests and their responses ------------------------------------------------------------------


async def wait_for(play: Play, request: SentRequest, timeout: float = 0.0) -> None:
    """Wait for the response to a request, by default as long as for one that runs no tool."""
    timeout = timeout or _bounded_timeout(play)
    await wait_until(play, lambda: request.answer is not None, timeout)
    if request.answer is None:
        _count_vain_wait(play)


async def exchange(play: Play, method: str, params: Any) -> Mapping[str, Any] | None:
    """Send a request, wait for its response, and return its result, or None."""
    request = await play.send(method, params)
    is_first = method == "initialize" or may_be_starting(play)
    timeout = _start_timeout(play) if is_first else _bounded_timeout(play)
    await wait_for(play, request, timeout)
    result = None if request.answer is None else request.answer.get("result")
    return result if isinstance(result, dict) else None


async def exchange_probe(play: Play, method: str) -> SentRequest:
    """Send the probe and wait for its response, longer if the server may be slow."""
    session = play.session
    last_sent = session.last_sent
    request = await play.send(method, {})
    session.last_sent = last_sent
    timeout = _start_timeout(play) if may_be_starting(play) else play.timeout
    await wait_until(play, lambda: request.answer is not None, timeout)
    if request.answer is None and not session.ended:
        if play.clients.may_be_busy():
            if not is_blocked(play):
                await wait_until(play, lambda: request.answer is not None, BUSY_TIMEOUT)
                note_blocked(play, [request])
        elif play.stress.is_used or slow_start(play) or await play.is_slow():
            rest = max((PROBE_TIMEOUT_FACTOR - 1) * play.timeout, slow_start(play))
            await wait_until(play, lambda: request.answer is not None, rest)
    return request


def note_blocked(play: Play, requests: list[SentRequest]) -> None:
    """Note that a long wait has brought no response while a call may run that took too long."""
    is_busy = any(each.is_busy for each in play.clients)
    play.was_blocked |= is_busy and any(each.answer is None for each in requests)


def is_blocked(play: Play) -> bool:
    """Return True if a long wait was in vain, and the call that may be the reason still runs.

    After a `reconnect` it doesn't.
    """
    return play.was_blocked and any(each.is_busy for each in play.clients)


async def answers_probe(play: Play) -> bool:
    """Return True if a request that every server answers at once gets its response."""
    probe = await exchange_probe(play, dialect_of(play.session.revision).ping)
    await wait_until(play, lambda: probe.answer is not None, BUSY_TIMEOUT)
    play.session.open.pop(probe.id, None)
    return probe.answer is not None and probe.loss not in ("broken", "cut")


# -- Processes that start --------------------------------------------------------------------------


def may_be_starting(play: Play) -> bool:
    """Return True if the process may still be starting, in a revision without a handshake."""
    session = play.session
    return session.transport == "stdio" and not session.has_spoken


def _start_timeout(play: Play) -> float:
    """Return the seconds after which a process that hasn't started hangs."""
    known = play.session.longest_start
    if known is None:
        return OPEN_TIMEOUT
    return float(min(OPEN_TIMEOUT, play.timeout + START_FACTOR * known))


def slow_start(play: Play) -> float:
    """Return the further seconds for the first responses of a process that starts slowly.

    What it loads with the first request of a kind can take as long as its start.
    """
    known = play.session.longest_start or 0.0
    if known < SLOW_START or play.session.played > 1:
        return 0.0
    return float(min(OPEN_TIMEOUT, 2 * known))


async def wait_for_start(play: Play) -> None:
    """Wait until the process responds to anything, and then for its other responses.

    A process that starts slowly reads all requests late. If it would never answer the case's
    requests, it still answers the one that is sent here.
    """
    session = play.session
    last_sent = session.last_sent
    request = await play.send("server/discover", {})
    session.last_sent = last_sent
    await wait_until(play, lambda: session.has_spoken, _start_timeout(play))
    await wait_until(play, lambda: not is_waiting(play))
    session.open.pop(request.id, None)
