"""Which responses count as results, and the rates of turns, without a target."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from mcp_trio.oracle.bench import _tally
from mcp_trio.oracle.bench._process import NoMeter
from mcp_trio.oracle.bench._schedule import OpenLoop
from mcp_trio.oracle.bench._tally import CallerCounts, KnownResponses, Tally
from mcp_trio.oracle.bench._turn import BenchTurn, Pace
from mcp_trio.oracle.bench._verdicts import find_response
from tests.trio_.oracle.bench.stand_ins import ECHO, PING

FORMS = [
    b'{"jsonrpc":"2.0","id":%b,"result":{"content":[],"isError":false}}',
    b'{"result": {"content": [], "error": null}, "jsonrpc": "2.0", "id": %b}\r',
]


def body_of(form: bytes, number: int) -> bytes:
    return form % digits_of(number)


def digits_of(number: int) -> bytes:
    return b"%d" % (1_000_000_000 + number)


def tally_of(seconds: float = 1.0, known: KnownResponses | None = None) -> Tally:
    return Tally(seconds, known or KnownResponses(), NoMeter())


def count_decoded(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return a list that each decoded response is added to."""
    found: list[bytes] = []

    def note(body: Any, digits: bytes, *, is_stream: bool) -> Any:
        found.append(bytes(body))
        return find_response(body, digits, is_stream=is_stream)

    monkeypatch.setattr(_tally, "find_response", note)
    return found


@pytest.mark.parametrize("form", FORMS)
async def test_responses_that_differ_only_in_the_id_are_decoded_once(
    form: bytes, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = count_decoded(monkeypatch)
    known = KnownResponses()
    for _ in range(2):
        tally = tally_of(known=known)
        caller = tally.caller()
        for number in range(500):
            body = bytearray(body_of(form, number))
            tally.answer(caller, ECHO, digits_of(number), tally.began, tally.began + 0.5, body)
        turn = tally.finish(trio.current_time())
        assert (turn.answered, caller.answered, turn.failed) == (500, 500, 0)
    assert len(decoded) == 1


GOOD = body_of(FORMS[0], 1)


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        (body_of(FORMS[0], 2), "wrong id"),
        (GOOD.replace(b"1000000001", b'"00000001"'), "wrong id"),
        (GOOD.replace(b":false", b":true "), "isError"),
        (GOOD.replace(b":false", b":true"), "isError"),
        (GOOD[:-1], "no JSON"),
        (GOOD + b"}", "no JSON"),
        (b"", "no JSON"),
        (b"1000000001", "no response"),
        (b'{"jsonrpc":"2.0","id":1000000001,"error":{"code":-5,"message":"' + b"x" * 50, "no JSON"),
        (b'{"jsonrpc":"2.0","id":1000000001,"error":{"code":-5}}', "-5"),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
async def test_bad_response_is_seen_after_equal_good_ones(
    body: bytes, cause: str, is_known: bool, autojump_clock: Any
) -> None:
    """Some have the length of the good ones, or their bytes but for one."""
    tally = tally_of()
    caller = tally.caller()
    if is_known:
        for number in range(5, 10):
            data = body_of(FORMS[0], number)
            tally.answer(caller, ECHO, digits_of(number), tally.began, tally.began, data)
    tally.answer(caller, ECHO, digits_of(1), tally.began, tally.began, body)
    turn = tally.finish(trio.current_time())
    assert turn.errors == {cause: 1}
    assert turn.answered == (5 if is_known else 0)


async def test_result_of_one_call_is_unknown_to_another_call(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = count_decoded(monkeypatch)
    tally = tally_of()
    for number, call in enumerate([ECHO, PING, ECHO, PING]):
        body = body_of(FORMS[0], number)
        tally.answer(tally.caller(), call, digits_of(number), tally.began, tally.began, body)
    assert len(decoded) == 2


@pytest.mark.parametrize(
    "form", [b'{"id":%b,"result":{"text":"%b"}}', b'{"result":{"id":%b},"id":%b}']
)
async def test_result_that_repeats_its_id_is_not_known(form: bytes, autojump_clock: Any) -> None:
    """It isn't clear which of the two is the id, so one with another id would look good."""
    known = KnownResponses()
    tally = tally_of(known=known)
    body = form % (digits_of(1), digits_of(1))
    tally.answer(tally.caller(), ECHO, digits_of(1), tally.began, tally.began, body)
    assert not known.around_id
    assert tally.finish(trio.current_time()).answered == 1


async def test_known_results_have_a_limit(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of many calls are forgotten, and one that is longer than all isn't kept."""
    monkeypatch.setattr(_tally, "_MAX_KNOWN_BYTES", 1000)
    known = KnownResponses()
    tally = tally_of(known=known)
    for number in range(100):
        call = ECHO._replace(name=str(number))
        body = body_of(FORMS[number % 2], number)
        tally.answer(tally.caller(), call, digits_of(number), tally.began, tally.began, body)
        assert sum(len(a) + len(b) for a, b in known.around_id.values()) <= 1000
    assert known.around_id
    kept = dict(known.around_id)
    body = b'{"id":%b,"result":{"text":"%b"}}' % (digits_of(1), b"x" * 1000)
    tally.answer(tally.caller(), PING, digits_of(1), tally.began, tally.began, body)
    assert known.around_id == kept
    assert tally.finish(trio.current_time()).answered == 101


@pytest.mark.parametrize("noted", [3, 1000])
async def test_results_are_counted_at_any_time(
    noted: int, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a latency and a tenth of the turn, though most are counted while it goes on."""
    monkeypatch.setattr(_tally, "_MAX_NOTED", noted)
    tally = tally_of(1.0)
    caller = tally.caller()
    for n in range(20):
        now = tally.began + n / 16
        caller.answered += 2
        caller.last = now
        tally.answer_known([ECHO, PING], [now - 0.01 * n - 0.01, now - 0.001], now)
        tally.succeed(caller, ECHO, now - 0.002, now)
    turn = tally.finish(tally.began + 20 / 16)
    assert turn.answered == turn.histogram.count == caller.answered == 60
    assert turn.tenths == [6, 6, 3, 6, 3, 6, 6, 3, 6, 15]
    assert [round(1e3 * latency) for latency, _ in turn.slowest] == [200, 190, 180, 170, 160]
    assert {name for _, name in turn.slowest} == {ECHO.name}
    assert turn.histogram.shortest == pytest.approx(0.001)
    assert turn.histogram.total == pytest.approx(sum(0.01 * n + 0.013 for n in range(20)), rel=0.01)


async def test_results_of_several_callers_are_counted_in_their_tenth(autojump_clock: Any) -> None:
    """One caller's responses come in their order, but those to several callers may not."""
    tally = tally_of(1.0)
    for place in (9, 0, 5, 3, 12, 3):
        caller = tally.caller()
        end = tally.began + place / 10 + 0.05
        tally.succeed(caller, ECHO, end - 0.01, end)
    turn = tally.finish(tally.began + 1.3)
    assert turn.tenths == [1, 0, 0, 2, 0, 1, 0, 0, 0, 2]
    assert turn.answered == 6


# -- Rates -----------------------------------------------------------------------------------------


def turn_of(ends: list[tuple[float, float]], callers: int, rate: float | None) -> BenchTurn:
    """Return a turn of 1 s with calls from a start to an end, which free callers make."""
    tally = tally_of(1.0)
    pace = Pace(rate, callers)
    if rate is not None:
        OpenLoop(pace, tally, 1.0, 30.0)
    counts = [tally.caller() for _ in range(callers)]

    def is_free(caller: CallerCounts, start: float) -> bool:
        return caller.last <= tally.began + start + 1e-9

    for start, end in ends:
        caller = next(each for each in counts if is_free(each, start))
        tally.succeed(caller, ECHO, tally.began + start, tally.began + end)
    return tally.finish(tally.began + max(end for _, end in ends))


@pytest.mark.parametrize(
    ("ends", "rate"),
    [
        # As fast as they start, for less than a turn, and for as long as half a turn.
        ([(n / 100, n / 100 + 0.004) for n in range(100)], 100.0),
        ([(n / 100, n / 100 + 0.5) for n in range(100)], 100.0),
        # One after the other, half and a tenth as fast as they start.
        ([(n / 100, n / 50 + 0.02) for n in range(100)], 50.0),
        ([(n / 100, n / 10 + 0.1) for n in range(100)], 10.0),
        # One straggler, and a stall for the last ones.
        ([(n / 100, 9.0 if n == 7 else n / 100 + 0.004) for n in range(100)], 100.0),
        ([(n / 100, 4.0 if n > 95 else n / 100 + 0.004) for n in range(100)], 100.0),
    ],
)
async def test_rate_of_open_loop_is_the_rate_of_most_responses(
    ends: list[tuple[float, float]], rate: float, autojump_clock: Any
) -> None:
    """Callers that are idle, since no call is due, don't make it higher."""
    turn = turn_of(ends, 100, 100.0)
    assert turn.rate == pytest.approx(rate, rel=0.03)


async def test_rate_of_closed_loop_is_not_lowered_by_one_straggler(autojump_clock: Any) -> None:
    calls = [(n / 10, n / 10 + 0.1) for n in range(10)]
    ends = sorted([*calls, *calls, (0.0, 9.0)])
    assert turn_of(ends, 3, None).rate == pytest.approx(20, rel=0.01)
