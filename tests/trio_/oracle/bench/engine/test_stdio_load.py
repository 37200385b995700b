"""The lean engine over pipes, with stand-ins that answer well and badly."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.oracle.bench._requests import Mix, Work
from mcp_trio.oracle.bench._turn import Pace, TargetGone
from mcp_trio.oracle.bench.engine import _stdio_load
from tests.harness.jsonrpc import D, E
from tests.trio_.oracle.bench.stand_ins import (
    ECHO,
    PING,
    AnswerReader,
    StdioStandIn,
    result,
    stdio_load,
)

ONE = Pace(None, 1)
Message = dict[str, Any]


async def answer(server: StdioStandIn, message: Message) -> None:
    await trio.sleep(0.01)
    await server.send(result(message))


async def never_answer(server: StdioStandIn, message: Message) -> None:
    pass


@pytest.mark.parametrize("era", [D, E, None])
async def test_closed_loop_keeps_its_callers_calling(autojump_clock: Any, era: str | None) -> None:
    async with stdio_load(answer, era=era) as (load, server):
        turn = await load.turn(Mix([ECHO]), Pace(None, 4), 0.195)
    assert turn.sent == turn.answered == 80
    assert turn.rate == pytest.approx(400, rel=0.02)
    assert turn.histogram.percentile(50) == pytest.approx(0.01, rel=0.03)
    assert (turn.failed, turn.late) == (0, 0)
    assert load.revision == (era or E)
    assert (load.server, load.protocol, load.capabilities) == ("stand-in 1", "", {"tools": {}})
    methods = [message["method"] for message in server.received]
    assert ("notifications/initialized" in methods) == (era == D)
    meta = server.received[-1]["params"].get("_meta", {})
    assert ("io.modelcontextprotocol/protocolVersion" in meta) == (era != D)


@pytest.mark.parametrize("pace", [Pace(None, 4), Pace(200, 4, even=True)])
async def test_turn_that_is_cut_has_what_was_answered(pace: Pace, autojump_clock: Any) -> None:
    """Calls without a response aren't counted, nor are those that no caller has taken."""
    async with stdio_load(answer) as (load, server), trio.open_nursery() as nursery:
        assert not load.cut()
        turns = []

        async def play() -> None:
            turns.append(await load.turn(Mix([ECHO]), pace, 60.0))

        nursery.start_soon(play)
        await trio.sleep(0.105)
        server.handle = never_answer
        await trio.sleep(0.2)
        assert load.cut()
        await trio.testing.wait_all_tasks_blocked()
        [turn] = turns
        assert turn.is_cut
        assert turn.sent == turn.answered > 20
        assert turn.seconds == pytest.approx(0.305, rel=0.02)
        assert turn.unfinished == (4 if pace.rate is None else pytest.approx(61 - turn.sent, abs=2))
        server.handle = answer
        assert (await load.turn(Mix([ECHO]), ONE, 0.1)).answered >= 9
        assert not load.cut()


async def test_open_loop_overload_counts_latency_from_intended_start(autojump_clock: Any) -> None:
    async with stdio_load(answer, timeout=30.0) as (load, _):
        turn = await load.turn(Mix([ECHO]), Pace(200, 1, even=True), 0.25)
    assert turn.answered == 50
    assert turn.late == pytest.approx(48, abs=2)
    assert turn.histogram.longest == pytest.approx(0.25, rel=0.05)
    assert turn.rate == pytest.approx(100, rel=0.02)


async def test_open_loop_overload_beyond_timeout_counts_timeouts(autojump_clock: Any) -> None:
    async with stdio_load(answer, timeout=0.05) as (load, _):
        turn = await load.turn(Mix([ECHO]), Pace(200, 1, even=True), 0.25)
    assert turn.sent == 50 == turn.answered + turn.timeouts
    assert turn.timeouts > 15


async def test_stalls_are_in_p99_of_open_loop_and_not_of_closed_loop(autojump_clock: Any) -> None:
    """A closed loop makes no calls while the target stalls, so it hides the stall."""
    busy = trio.Lock()

    async def stall(server: StdioStandIn, message: Message) -> None:
        async with busy:
            if trio.current_time() % 1.0 < 0.1:
                await trio.sleep(0.1 - trio.current_time() % 1.0)
            await trio.sleep(0.01)
        await server.send(result(message))

    async with stdio_load(stall) as (load, _):
        closed = await load.turn(Mix([ECHO]), ONE, 2.0)
        opened = await load.turn(Mix([ECHO]), Pace(25, 16, even=True), 2.0)
    assert closed.histogram.percentile(98) < 0.011
    assert opened.histogram.percentile(99) > 0.08


async def test_calls_after_one_read_are_one_write(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write for each call would cost as much as everything else."""
    waiting: list[Message] = []
    writes: list[int] = []

    async def answer_all(server: StdioStandIn, message: Message) -> None:
        waiting.append(message)
        if len(waiting) == 16:
            lines = b"".join(json.dumps(result(each)).encode() + b"\n" for each in waiting)
            waiting.clear()
            await trio.sleep(0.01)
            await server.send(lines)

    async with stdio_load(answer_all, era=E) as (load, _):
        stream: Any = load._stream
        send_all = stream.send_all

        async def counted(data: bytes) -> None:
            writes.append(data.count(b"\n"))
            await send_all(data)

        monkeypatch.setattr(stream, "send_all", counted)
        turn = await load.turn(Mix([ECHO]), Pace(None, 16), 0.095)
    assert turn.answered == 160
    assert writes == [16] * 10


async def test_work_that_reads_answers_gets_the_decoded_response(autojump_clock: Any) -> None:
    work = AnswerReader()

    async with stdio_load(answer) as (load, _):
        turn = await load.turn(work, ONE, 1.2)
    empty: dict[str, Any] = {"content": []}
    assert [each and each["result"] for each in work.seen] == [None, empty, empty]
    assert turn.answered == 3
    assert turn.seconds == pytest.approx(1.2, rel=0.02)


# -- Lines ---------------------------------------------------------------------------------------


def _reordered(message: Message) -> bytes:
    return b'{"result": {"content": []}, "jsonrpc": "2.0", "id": %d}\n' % message["id"]


def _in_the_middle(message: Message) -> bytes:
    text = "x" * 200
    return f'{{"result":{{"a":"{text}"}},"id": {message["id"]} ,"b":"{text}"}}\n'.encode()


def _after_id_in_text(message: Message) -> bytes:
    form = {"result": {"id": 1000000000, "text": '"id":1'}, "id": message["id"]}
    return json.dumps(form).encode() + b"\r\n"


def _after_others(message: Message) -> bytes:
    id = message["id"]
    others = [
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": {"id": id}}},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}},
    ]
    lines = [json.dumps(each).encode() for each in others]
    return b"\n".join([*lines, b"", json.dumps(result(message)).encode(), b""])


@pytest.mark.parametrize("line", [_reordered, _in_the_middle, _after_id_in_text, _after_others])
async def test_response_is_found_at_any_place_of_its_id(autojump_clock: Any, line: Any) -> None:
    async def handle(server: StdioStandIn, message: Message) -> None:
        await trio.sleep(0.01)
        await server.send(line(message))

    async with stdio_load(handle) as (load, _):
        turn = await load.turn(Mix([ECHO]), Pace(None, 3), 0.095)
    assert (turn.failed, turn.answered) == (0, 30)


def _compact(message: Message) -> bytes:
    return _compact_result(message, None)


def _compact_result(message: Message, value: Any) -> bytes:
    return json.dumps(result(message, value), separators=(",", ":")).encode() + b"\n"


def _spaced(message: Message) -> bytes:
    return json.dumps(result(message)).encode() + b"\n"


@pytest.mark.parametrize("loop", ["closed", "open"])
@pytest.mark.parametrize("line", [_compact, _spaced, _reordered, _in_the_middle, _after_id_in_text])
async def test_equal_responses_are_read_all_at_once(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch, line: Any, loop: str
) -> None:
    """After the first one none is looked at alone, at any place of its id."""
    alone: list[bytes] = []

    async def handle(server: StdioStandIn, message: Message) -> None:
        await trio.sleep(0.01)
        await server.send(line(message))

    async with stdio_load(handle) as (load, _):
        receive = load._receive

        def note(data: bytes, now: float) -> None:
            alone.append(data)
            receive(data, now)

        monkeypatch.setattr(load, "_receive", note)
        work = Mix([ECHO, PING._replace(think=0.001)])
        pace = Pace(None if loop == "closed" else 200, 3, even=True)
        turns = [await load.turn(work, pace, 0.195) for _ in range(2)]
    for turn in turns:
        assert turn.failed == 0
        assert turn.sent == turn.answered == turn.histogram.count > 35
        assert turn.histogram.percentile(50) == pytest.approx(0.01, rel=0.03)
    assert len(alone) <= 6


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (lambda m: result(m, {"content": [], "isError": True}), "isError"),
        (lambda m: result({"id": m["id"] + 100_000}, {"content": []}), "wrong id"),
        (lambda m: result({"id": str(m["id"])}, {"content": []}), "wrong id"),
        (lambda m: {**result(m, {"content": []}), "error": {"code": -7}}, "-7"),
        (lambda m: _spaced(m)[:-2] + b"\n", "no JSON"),
    ],
)
async def test_bad_response_among_equal_ones_of_a_read_is_seen(
    autojump_clock: Any, response: Any, cause: str
) -> None:
    """16 responses come at once, and the seventh is bad."""
    waiting: list[Message] = []

    async def answer_all(server: StdioStandIn, message: Message) -> None:
        waiting.append(message)
        if len(waiting) < 16:
            return
        waiting.sort(key=lambda each: int(each["id"]))
        lines = [_spaced(each) for each in waiting]
        bad = response(waiting[6])
        lines[6] = bad if isinstance(bad, bytes) else json.dumps(bad).encode() + b"\n"
        waiting.clear()
        await trio.sleep(0.01)
        await server.send(b"".join(lines))

    async with stdio_load(answer_all, timeout=0.5) as (load, _):
        turn = await load.turn(Mix([ECHO]), Pace(None, 16), 0.095)
    assert turn.answered == turn.histogram.count == 150
    assert turn.sent == 160
    assert turn.errors == {cause: 10}


@pytest.mark.parametrize("more", ["late", "twice", "unknown"])
async def test_equal_line_that_answers_no_open_call_is_no_result(
    autojump_clock: Any, more: str
) -> None:
    """It is read together with the response of an open call, whose bytes it has but for the id.

    One answers a call that has timed out. One that answers no call, or an answered one, is a
    response with a wrong id.
    """
    number = 0
    late: list[Message] = []

    async def handle(server: StdioStandIn, message: Message) -> None:
        nonlocal number
        number += 1
        if more == "late" and number == 5:
            late.append(message)
            return
        await trio.sleep(0.01)
        lines = [_compact(message)]
        if late:
            lines.insert(0, _compact(late.pop()))
        elif more == "twice" and number == 5:
            lines *= 2
        elif more == "unknown" and number == 5:
            lines.append(_compact({**message, "id": message["id"] + 10**9}))
        await server.send(b"".join(lines))

    async with stdio_load(handle, timeout=0.1) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.295)
    assert turn.sent == turn.answered + 1
    assert turn.answered == turn.histogram.count == (20 if more == "late" else 30)
    assert turn.timeouts == (1 if more == "late" else 0)
    assert turn.errors == ({} if more == "late" else {"wrong id": 1})


async def test_equal_responses_to_different_calls_are_judged_by_the_call(
    autojump_clock: Any,
) -> None:
    """One call may continue, and the other may not."""

    async def handle(server: StdioStandIn, message: Message) -> None:
        await trio.sleep(0.01)
        await server.send(_compact_result(message, {"resultType": "input_required"}))

    work = Mix([ECHO._replace(may_continue=True, weight=9), PING])
    async with stdio_load(handle) as (load, server):
        turn = await load.turn(work, Pace(None, 2), 0.395)
    methods = [message["method"] for message in server.received]
    assert turn.answered == methods.count("tools/call") > 20
    assert turn.errors == {"input_required": methods.count("ping")}


async def test_response_in_pieces_is_one(autojump_clock: Any) -> None:
    async def handle(server: StdioStandIn, message: Message) -> None:
        data = json.dumps(result(message)).encode() + b"\n"
        for at in range(0, len(data), 7):
            await server.send(data[at : at + 7])
            await trio.sleep(0.001)

    async with stdio_load(handle) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.1)
    assert turn.failed == 0
    assert turn.answered > 5


async def test_end_of_a_piece_and_further_responses_come_in_one_read(autojump_clock: Any) -> None:
    """Only the first line of the read has a beginning that came before."""
    waiting: list[bytes] = []

    async def handle(server: StdioStandIn, message: Message) -> None:
        waiting.append(json.dumps(result(message)).encode() + b"\n")
        if len(waiting) == 3:
            first, *others = waiting
            waiting.clear()
            await server.send(first[:9])
            await trio.sleep(0.01)
            await server.send(first[9:] + b"".join(others))

    async with stdio_load(handle) as (load, _):
        turn = await load.turn(Mix([ECHO]), Pace(None, 3), 0.095)
    assert (turn.answered, turn.failed, turn.stray_lines) == (30, 0, 0)


@pytest.mark.parametrize(
    ("reads", "is_too_large"),
    [
        ([b"x" * 6000, b"x" * 4000, b"\n"], False),
        ([b"x" * 6000, b"x" * 4001, b"\n"], True),
        ([b"x" * 6000, b"\n" + b"x" * 6000, b"x" * 4000, b"\n"], False),
        ([b"x\n" + b"x" * 6000, b"x" * 4001, b"\n"], True),
    ],
)
async def test_line_above_its_limit_is_an_error_of_the_oldest_call(
    reads: list[bytes], is_too_large: bool, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the line that isn't complete counts. Below the limit it is a stray one."""
    monkeypatch.setattr(_stdio_load, "MAX_LINE", 10_000)
    rest = list(reads)

    async def handle(server: StdioStandIn, message: Message) -> None:
        while rest:
            await server.send(rest.pop(0))
            await trio.sleep(0.001)
        await answer(server, message)

    async with stdio_load(handle) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.2)
    assert turn.errors == ({"too large": 1} if is_too_large else {})
    assert turn.timeouts == 0
    assert turn.answered == turn.sent - is_too_large > 10


async def test_log_that_has_an_id_where_most_responses_have_it_answers_no_call(
    autojump_clock: Any,
) -> None:
    async def handle(server: StdioStandIn, message: Message) -> None:
        log = b"the call with the id: %d\n" % message["id"]
        assert log.index(b"1") == len(b'{"jsonrpc":"2.0","id":')
        await server.send(log)
        await answer(server, message)

    async with stdio_load(handle) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.095)
    assert (turn.answered, turn.failed, turn.stray_lines) == (10, 0, 10)


async def test_error_without_an_id_while_no_call_is_open_belongs_to_none(
    autojump_clock: Any,
) -> None:
    """Between turns, and while the only caller thinks."""
    lost = {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": ""}}

    async def handle(server: StdioStandIn, message: Message) -> None:
        await answer(server, message)
        await trio.sleep(0.01)
        await server.send(lost)

    async with stdio_load(handle) as (load, server):
        await server.send(lost)
        await trio.sleep(0.1)
        turn = await load.turn(Mix([ECHO._replace(think=0.04)]), ONE, 0.195)
    assert (turn.answered, turn.failed) == (4, 0)


async def test_worker_gets_no_answer_after_a_call_that_timed_out(autojump_clock: Any) -> None:
    work = AnswerReader()

    async def handle(server: StdioStandIn, message: Message) -> None:
        if message["params"]["after"] != 2:
            await answer(server, message)

    async with stdio_load(handle, timeout=0.5) as (load, _):
        turn = await load.turn(work, ONE, 1.1)
    assert [each is not None for each in work.seen] == [False, True, False]
    assert (turn.answered, turn.timeouts) == (2, 1)


@pytest.mark.parametrize(("ends", "status", "seconds"), [(0.5, 3, 0.5), (None, None, 1.0)])
async def test_program_that_closes_its_stdout_has_a_second_to_exit(
    ends: float | None, status: int | None, seconds: float, autojump_clock: Any
) -> None:
    """Then its exit status is shown; one that goes on without stdout is given up all the same."""
    child = SimpleNamespace(pid=os.getpid(), returncode=None, stderr_tail=b"")
    async with open_quiet_nursery() as nursery:
        ours, theirs = trio.testing.memory_stream_pair()
        await theirs.aclose()
        load = _stdio_load.StdioLoad(cast("Any", ours), 10.0, nursery, cast("Any", child))
        began = trio.current_time()

        async def end() -> None:
            await trio.sleep(ends or 0)
            child.returncode = status

        nursery.start_soon(end)
        with pytest.raises(ConnectFailed) as failed:
            await load.open(None)
        nursery.cancel_scope.cancel()
    gone = failed.value.__cause__
    assert isinstance(gone, TargetGone)
    assert (gone.status, gone.stderr) == (status, ())
    assert trio.current_time() - began == pytest.approx(seconds, abs=0.006)


@pytest.mark.parametrize(
    ("response", "cause"),
    [
        (lambda m: {"id": m["id"], "error": {"code": -32601}}, "-32601"),
        (lambda m: {"id": None, "error": {"code": -32700}}, "-32700"),
        (lambda m: result(m, {"isError": True}), "isError"),
        (lambda m: result(m, {"resultType": "input_required"}), "input_required"),
        (lambda m: {"id": 5, "result": {}}, "wrong id"),
        (lambda _: {"jsonrpc": "2.0", "result": {}}, "wrong id"),
        (lambda m: {"id": str(m["id"]), "result": {}}, "wrong id"),
        (lambda m: b'{"jsonrpc":"2.0","id":%d,"result"\n' % m["id"], "no JSON"),
    ],
)
async def test_bad_response_counts_as_an_error_and_never_as_a_latency(
    autojump_clock: Any, response: Any, cause: str
) -> None:
    """Good and bad responses alternate: a bad one is no response to the next call."""
    number = 0

    async def alternate(server: StdioStandIn, message: Message) -> None:
        nonlocal number
        number += 1
        await trio.sleep(0.01)
        await server.send(response(message) if number % 2 else result(message))

    async with stdio_load(alternate) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.2)
    assert turn.errors.keys() == {cause}
    assert turn.errors[cause] == pytest.approx(turn.answered, abs=1)
    assert turn.answered == turn.histogram.count > 5
    assert turn.sent == turn.answered + turn.failed


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
async def test_every_error_of_the_length_of_a_result_is_counted(
    autojump_clock: Any, separators: tuple[str, str]
) -> None:
    """Samples alone would find one in a hundred."""
    number = 0

    async def handle(server: StdioStandIn, message: Message) -> None:
        nonlocal number
        number += 1
        await trio.sleep(0.01)
        is_bad = number > 4 and number % 2 == 1
        value = {"text": "broken" if is_bad else "fine?", "isError": is_bad}
        line = json.dumps(result(message, value), separators=separators)
        await server.send(line.encode() + b"\n")

    async with stdio_load(handle) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.395)
    assert turn.errors == {"isError": 18}
    assert turn.answered == turn.histogram.count == 22


async def test_open_loop_latency_has_the_lag_of_the_load_but_for_rounding(
    autojump_clock: Any,
) -> None:
    """The load is busy for 90 ms when the third call is due."""

    async def be_busy() -> None:
        await trio.sleep(0.19)
        autojump_clock.jump(0.1)

    async with stdio_load(answer) as (load, _), trio.open_nursery() as nursery:
        quiet = await load.turn(Mix([ECHO]), Pace(10, 4, even=True), 1.0)
        nursery.start_soon(be_busy)
        busy = await load.turn(Mix([ECHO]), Pace(10, 4, even=True), 1.0)
    assert quiet.histogram.longest == pytest.approx(0.01)
    assert quiet.lag == pytest.approx(0)
    assert busy.histogram.longest == pytest.approx(0.098)
    assert busy.histogram.percentile(90) == pytest.approx(0.01, rel=0.03)
    assert busy.lag == pytest.approx(0.009)


@pytest.mark.parametrize("stray", [b"INFO: ready\n", b"5\n", b'{"level": "info", "error": null}\n'])
async def test_log_on_stdout_counts_stray_lines_and_fails_no_call(
    autojump_clock: Any, stray: bytes
) -> None:
    async def handle(server: StdioStandIn, message: Message) -> None:
        await server.send(stray, b"\n")
        await answer(server, message)

    async with stdio_load(handle) as (load, server):
        await server.send(stray)
        await trio.sleep(0.1)
        turn = await load.turn(Mix([ECHO]), Pace(None, 2), 0.095)
    assert (turn.sent, turn.answered, turn.failed, turn.stray_lines) == (20, 20, 0, 20)


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b" \r\n",
        b"[]\n",
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}\n',
    ],
)
async def test_line_that_no_one_asked_for_may_be_no_log(line: bytes, autojump_clock: Any) -> None:
    async def handle(server: StdioStandIn, message: Message) -> None:
        await server.send(line)
        await answer(server, message)

    async with stdio_load(handle) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.095)
    assert (turn.answered, turn.failed, turn.stray_lines) == (10, 0, 0)


async def test_call_with_a_stray_line_for_a_response_times_out(autojump_clock: Any) -> None:
    async def handle(server: StdioStandIn, message: Message) -> None:
        await server.send(b"Traceback (most recent call last):\n")

    async with stdio_load(handle, timeout=0.5) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.9)
    assert (turn.timeouts, turn.errors, turn.stray_lines) == (2, {}, 2)


async def test_all_calls_of_a_crowd_time_out_in_time(autojump_clock: Any) -> None:
    async with stdio_load(never_answer, timeout=0.5) as (load, _):
        began = trio.current_time()
        turn = await load.turn(Mix([PING]), Pace(None, 1024), 0.4)
    assert (turn.sent, turn.timeouts) == (1024, 1024)
    assert trio.current_time() - began == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (None, "it closed its stdout"),
        (3, "it ended with exit status 3"),
        (-9, "it was killed by signal 9 (SIGKILL)"),
        (-250, "it was killed by signal 250"),
    ],
)
def test_end_of_a_program_is_described(status: int | None, text: str) -> None:
    assert _stdio_load._describe_end(status) == text


async def test_flood_without_a_line_end_counts_once_and_ends_in_timeouts(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_stdio_load, "MAX_LINE", 10_000)

    async def handle(server: StdioStandIn, message: Message) -> None:
        while True:
            await server.send(b"x" * 1000)
            await trio.sleep(0.01)

    async with stdio_load(handle, timeout=0.5) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 1.0)
    assert turn.errors == {"too large": 1}
    assert (turn.answered, turn.timeouts) == (0, 2)


async def test_end_of_a_flood_is_no_response(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the bytes of the response that the open call waits for."""
    monkeypatch.setattr(_stdio_load, "MAX_LINE", 10_000)
    number = 0

    async def handle(server: StdioStandIn, message: Message) -> None:
        nonlocal number
        number += 1
        if number == 5:
            await server.send(b"x" * 20_000)
            return
        await trio.sleep(0.01)
        await server.send(_compact(message))

    async with stdio_load(handle, timeout=0.1) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.295)
    assert (turn.errors, turn.timeouts) == ({"too large": 1}, 1)
    assert turn.answered == turn.histogram.count == turn.sent - 2 > 15


async def test_target_without_response_counts_timeouts_and_gets_cancellations(
    autojump_clock: Any,
) -> None:
    async with stdio_load(never_answer, timeout=0.3) as (load, server):
        turn = await load.turn(Mix([ECHO]), Pace(None, 2), 1.0)
        await trio.sleep(0.1)
    assert (turn.sent, turn.timeouts, turn.answered, turn.histogram.count) == (8, 8, 0, 0)
    methods = [message["method"] for message in server.received]
    assert methods.count("notifications/cancelled") == 8


async def test_response_that_comes_late_counts_into_no_call(autojump_clock: Any) -> None:
    """Every other response comes 0.2 s after its timeout, while the next call is open."""
    number = 0

    async def handle(server: StdioStandIn, message: Message) -> None:
        nonlocal number
        number += 1
        await trio.sleep(0.5 if number % 2 else 0.25)
        await server.send(result(message))

    async with stdio_load(handle, timeout=0.3) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 2.0)
    assert turn.timeouts == turn.answered == 4
    assert not turn.errors
    assert turn.histogram.shortest == pytest.approx(0.25)


async def test_ten_thousand_late_responses_are_recognized(autojump_clock: Any) -> None:
    """An earlier one is like any other response with an unknown id: an error of the open call."""

    received: list[Message] = []

    async def handle(server: StdioStandIn, message: Message) -> None:
        received.append(message)
        for late in (1, 0) if len(received) == 1 else ():
            await server.send(result({**message, "id": 9_000_000_000 + late}))

    async with stdio_load(handle, timeout=0.3) as (load, _):
        for number in range(10_001):
            load._expire(b"%d" % (9_000_000_000 + number))
        turn = await load.turn(Mix([PING]), ONE, 0.1)
    assert (turn.sent, turn.errors, turn.timeouts) == (2, {"wrong id": 1}, 1)


async def test_requests_beyond_ten_thousand_are_not_kept_for_a_target_that_does_not_read(
    autojump_clock: Any,
) -> None:
    """The load would otherwise need more memory all the time. It sends the first ones."""
    written: list[bytes] = []
    reads = trio.Event()

    class Stream:
        send_stream = None

        async def receive_some(self, size: int) -> bytes:
            await trio.sleep_forever()
            raise AssertionError

        async def send_all(self, data: bytes) -> None:
            await reads.wait()
            written.append(data)

    async with open_quiet_nursery() as nursery:
        load = _stdio_load.StdioLoad(cast("Any", Stream()), 0.3, nursery)
        with pytest.raises(ConnectFailed, match="did not respond"):
            await load.open(D)
        for number in range(10_100):
            load._cancel(b"%d" % number)
        reads.set()
        await trio.sleep(0.1)
        nursery.cancel_scope.cancel()
    _, unsent = written
    assert unsent.count(b"\n") == 10_000
    assert b'"requestId":1,' in unsent  # the first ones are kept


@pytest.mark.parametrize("where", ["in a turn", "between turns"])
async def test_requests_of_the_server_are_answered(autojump_clock: Any, where: str) -> None:
    async with stdio_load(never_answer, timeout=0.5) as (load, server):
        await server.send({"id": 1, "method": "ping"}, {"id": "a", "method": "roots/list"})
        if where == "in a turn":
            await load.turn(Mix([PING]), ONE, 0.1)
        await trio.sleep(0.1)
    answers = {each["id"]: each for each in server.received if "method" not in each}
    assert answers[1]["result"] == {}
    assert answers["a"]["error"]["code"] == -32601


async def test_target_that_ends_in_the_middle_is_gone(autojump_clock: Any) -> None:
    """The turn ends, and what it has measured isn't lost."""

    async def handle(server: StdioStandIn, message: Message) -> None:
        await trio.sleep(0.01)
        if len(server.received) > 20:
            await server.stream.send_stream.aclose()
        else:
            await server.send(result(message))

    async with stdio_load(handle) as (load, _):
        with pytest.raises(TargetGone, match="closed its stdout") as gone:
            await load.turn(Mix([PING]), Pace(None, 2), 10.0)
        assert gone.value.turn is not None
        assert gone.value.turn.answered > 10
        assert gone.value.turn.errors == {"closed": 2}
        assert gone.value.turn.seconds < 1
        began = trio.current_time()
        with pytest.raises(TargetGone) as gone:
            await load.turn(Mix([PING]), ONE, 1.0)
        assert (gone.value.turn, trio.current_time()) == (None, began)
        with pytest.raises(TargetGone):
            await load.ask("ping")


async def test_program_that_ends_during_the_handshake_is_described(autojump_clock: Any) -> None:
    """The last five lines of stderr that have any text are shown, and 300 characters of each."""
    printed = ["no", "more", "", "1", "2", "  ", "3", "4", "", "x" * 500, ""]
    child = SimpleNamespace(pid=os.getpid(), returncode=3, stderr_tail="\n".join(printed).encode())
    async with open_quiet_nursery() as nursery:
        ours, theirs = trio.testing.memory_stream_pair()
        await theirs.aclose()
        load = _stdio_load.StdioLoad(cast("Any", ours), 10.0, nursery, cast("Any", child))
        with pytest.raises(ConnectFailed, match="the program ended during the handshake") as failed:
            await load.open(None)
        nursery.cancel_scope.cancel()
    gone = failed.value.__cause__
    assert isinstance(gone, TargetGone)
    assert str(gone) == "it ended with exit status 3"
    assert gone.stderr == ("1", "2", "3", "4", "x" * 300)


async def test_handshake_with_a_silent_target_fails_in_time(autojump_clock: Any) -> None:
    began = trio.current_time()
    async with open_quiet_nursery() as nursery:
        ours, _ = trio.testing.memory_stream_pair()
        load = _stdio_load.StdioLoad(cast("Any", ours), 10.0, nursery)
        with pytest.raises(ConnectFailed, match="did not respond to initialize within 10 s"):
            await load.open(None)
    assert trio.current_time() - began == pytest.approx(15)


async def test_cancelled_turn_leaves_the_load_usable(autojump_clock: Any) -> None:
    async with stdio_load(answer, timeout=100) as (load, _):
        with trio.move_on_after(0.5) as scope:
            await load.turn(Mix([PING]), Pace(None, 2), 10.0)
        assert scope.cancelled_caught
        turn = await load.turn(Mix([PING]), ONE, 0.095)
    assert (turn.answered, turn.failed) == (10, 0)


async def test_request_without_response_outside_a_turn_fails(autojump_clock: Any) -> None:
    async with stdio_load(never_answer, timeout=2.0) as (load, _):
        with pytest.raises(ConnectFailed, match="no response to ping within 2 s"):
            await load.ask("ping")


def test_mix_is_work() -> None:
    work: Work = Mix([PING])
    assert not work.reads_answers
