"""Calls that are coroutines: which cause a failed one is counted by, and what a worker reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import (
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    LocalProtocolError,
    McpTrioError,
    PeerError,
    RemoteProtocolError,
)
from mcp_trio.oracle.bench._process import NoMeter
from mcp_trio.oracle.bench._requests import Mix
from mcp_trio.oracle.bench._turn import Pace, TargetGone
from mcp_trio.oracle.bench.client._callers import CallFailed, CoroutineLoad, cause_of
from tests.trio_.oracle.bench.stand_ins import PING, AnswerReader

if TYPE_CHECKING:
    from mcp_trio.oracle.bench._requests import PreparedCall


def lost(data: Any) -> RemoteProtocolError:
    return RemoteProtocolError("no", data=data)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (CallFailed("isError"), "isError"),
        (PeerError(-32602, "wrong"), "-32602"),
        (AuthRequired("log in"), "HTTP 401"),
        (lost({"status": 503}), "HTTP 503"),
        (lost({"status": "503"}), "no response"),
        (lost({}), "no response"),
        (lost(503), "no response"),
        (CallTimeout("late"), "timeout"),
        (ConnectionLost("reset"), "closed"),
        (ConnectFailed("refused"), "no connection"),
        (LocalProtocolError("no such"), "not sent"),
        (McpTrioError("other"), "McpTrioError"),
    ],
)
def test_failed_call_has_a_short_cause(error: McpTrioError, cause: str) -> None:
    assert cause_of(error) == cause


class Scripted(CoroutineLoad):
    """A load whose calls each take a tenth of a second, and then have the next outcome.

    An outcome is a result, or an exception that is raised. The last one comes again and again.
    """

    def __init__(self, *outcomes: Any, timeout: float = 5.0) -> None:
        super().__init__(NoMeter(), timeout)
        self._outcomes = list(outcomes)
        self.wanted: list[bool] = []
        self.opened: list[int] = []

    async def open_callers(self, count: int) -> None:
        self.opened.append(count)
        await trio.lowlevel.checkpoint()

    async def call(self, number: int, call: PreparedCall, *, wants_result: bool) -> Any:
        self.wanted.append(wants_result)
        await trio.sleep(0.1)
        found = self._outcomes.pop(0) if len(self._outcomes) > 1 else self._outcomes[0]
        if isinstance(found, Exception):
            raise found
        return found


async def test_worker_reads_results_and_errors_and_nothing_of_a_lost_call(
    autojump_clock: Any,
) -> None:
    work = AnswerReader()
    load = Scripted({"a": 1}, PeerError(-5, "no"), ConnectionLost("reset"), {"a": 2})
    turn = await load.turn(work, Pace(None, 1), 2.2)  # the worker thinks for half a second
    assert work.seen == [
        None,
        {"result": {"a": 1}},
        {"error": {"code": -5, "message": "no"}},
        None,
    ]
    assert set(load.wanted) == {True}
    assert (turn.sent, turn.answered, turn.errors) == (4, 2, {"-5": 1, "closed": 1})


async def test_results_that_no_worker_reads_are_not_wanted(autojump_clock: Any) -> None:
    load = Scripted({"a": 1})
    turn = await load.turn(Mix([PING]), Pace(None, 2), 0.95)
    assert set(load.wanted) == {False}
    assert (turn.sent, turn.answered, load.opened) == (20, 20, [2])


async def test_call_that_says_it_timed_out_is_a_timeout_and_no_error(autojump_clock: Any) -> None:
    turn = await Scripted(CallTimeout("late")).turn(Mix([PING]), Pace(None, 1), 0.95)
    assert (turn.timeouts, turn.errors, turn.answered) == (10, {}, 0)
    assert turn.seconds == pytest.approx(1.0)  # up to the end of the last call
    turn = await Scripted({}, timeout=0.05).turn(Mix([PING]), Pace(None, 1), 0.95)
    assert (turn.timeouts, turn.errors, turn.answered) == (19, {}, 0)


async def test_target_that_is_gone_ends_the_turn_with_what_was_measured(
    autojump_clock: Any,
) -> None:
    gone = TargetGone("it has ended", status=3, stderr=("boom",))
    load = Scripted(*[{}] * 4, gone)
    with pytest.raises(TargetGone) as caught:
        await load.turn(Mix([PING]), Pace(None, 2), 10.0)
    found = caught.value
    assert (str(found), found.status, found.stderr) == ("it has ended", 3, ("boom",))
    assert found.turn is not None
    assert (found.turn.answered, found.turn.failed) == (4, 0)
    assert not load.cut()
