"""Which responses count as results, and the rates of turns, without a target."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.bench import _tally
from mcp_trio.oracle.bench._histogram import Histogram
from mcp_trio.oracle.bench._process import NoMeter
from mcp_trio.oracle.bench._schedule import OpenLoop
from mcp_trio.oracle.bench._tally import CallerCounts, KnownResponses, Tally
from mcp_trio.oracle.bench._turn import BenchTurn, Pace
from mcp_trio.oracle.bench._verdicts import find_response
from tests.trio_.oracle.bench.stand_ins import ECHO, PING

if TYPE_CHECKING:
    from collections.abc import Sequence

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


# -- What is decoded -------------------------------------------------------------------------------


def wordy(number: int, word: str = "word") -> bytes:
    """Return a result whose length is the same for each number, and whose bytes aren't."""
    return b'{"id":%b,"result":{"text":"%04d %b"}}' % (digits_of(number), number, word.encode())


def answer_each(tally: Tally, bodies: Sequence[bytes], first: int = 0) -> None:
    """Answer a call of one caller for each body, at once."""
    caller = tally.caller()
    for number, body in enumerate(bodies, first):
        tally.answer(caller, ECHO, digits_of(number), tally.began, tally.began, body)


@pytest.mark.parametrize(("count", "sampled"), [(1, 0), (100, 0), (101, 1), (200, 1), (201, 2)])
async def test_one_in_a_hundred_responses_of_a_known_length_is_decoded(
    count: int, sampled: int, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That one is decoded once the clock has stopped, and counts then."""
    decoded = count_decoded(monkeypatch)
    tally = tally_of()
    answer_each(tally, [wordy(number) for number in range(count)])
    assert len(decoded) == 1
    turn = tally.finish(trio.current_time())
    assert len(decoded) == 1 + sampled
    assert turn.answered == count


@pytest.mark.parametrize(("count", "length", "at_once"), [(3, 1000, 2), (1000, 3, 3), (2, 3, 3)])
async def test_responses_that_are_decoded_later_have_limits(
    count: int, length: int, at_once: int, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits are a number of responses, and less than a number of bytes."""
    monkeypatch.setattr(_tally, "_SAMPLED", 1)
    monkeypatch.setattr(_tally, "_MAX_KEPT", count)
    monkeypatch.setattr(_tally, "_MAX_KEPT_BYTES", length * len(wordy(0)))
    decoded = count_decoded(monkeypatch)
    tally = tally_of()
    answer_each(tally, [wordy(number) for number in range(5)])
    assert len(decoded) == at_once
    assert tally.finish(trio.current_time()).answered == 5
    assert len(decoded) == 5


async def test_wrong_response_that_is_decoded_later_is_an_error(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_tally, "_SAMPLED", 1)
    tally = tally_of()
    answer_each(tally, [wordy(0), wordy(1)[:-1] + b"]"])
    turn = tally.finish(trio.current_time())
    assert (turn.answered, turn.errors) == (1, {"no JSON": 1})


async def test_all_responses_of_a_length_that_an_error_has_had_are_decoded(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result of the same length doesn't change that, in this turn or in the next one."""
    decoded = count_decoded(monkeypatch)
    known = KnownResponses()
    wrong = wordy(0)[:-1] + b"]"
    for before in range(2):
        tally = tally_of(known=known)
        answer_each(tally, [wrong, *(wordy(number) for number in range(1, 5))])
        assert len(decoded) == 5 * (before + 1)
        turn = tally.finish(trio.current_time())
        assert (turn.answered, turn.errors) == (4, {"no JSON": 1})


async def test_event_stream_is_known_by_its_length_alone(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The id stands in one of its events, of which others may have changed."""
    decoded = count_decoded(monkeypatch)
    known = KnownResponses()
    tally = tally_of(known=known)
    at = tally.began
    for number in range(2):
        body = b"data: %b\n\n" % body_of(FORMS[0], number)
        tally.answer(tally.caller(), ECHO, digits_of(number), at, at, body, is_stream=True)
    assert (known.around_id, len(decoded)) == ({}, 1)
    assert tally.finish(at).answered == 2


async def test_known_lengths_have_a_limit(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then all is forgotten, so what is known and the calls are no longer kept alive."""
    monkeypatch.setattr(_tally, "_MAX_LENGTHS", 3)
    known = KnownResponses()
    for length in (5, 6, 7):
        known.note(ECHO, length, is_result=length > 5)
    known.keep(ECHO, b"1", b"a1b")
    assert known.are_results == {(id(ECHO), 5): False, (id(ECHO), 6): True, (id(ECHO), 7): True}
    known.note(PING, 5, is_result=True)
    assert (known.are_results, known.around_id) == ({(id(PING), 5): True}, {})


@pytest.mark.parametrize(
    ("limit", "kept"),
    [(5, [1, 1, 1, 1]), (6, [1, 2, 1, 2]), (8, [1, 2, 1, 2]), (9, [1, 2, 3, 1])],
)
def test_known_bytes_are_all_forgotten_above_their_limit(
    limit: int, kept: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result that goes beyond the limit is the first one that is kept again."""
    monkeypatch.setattr(_tally, "_MAX_KNOWN_BYTES", limit)
    known = KnownResponses()
    found = []
    calls = [ECHO._replace(name=str(number)) for number in range(4)]
    for call in calls:
        known.keep(call, b"1", b"a1bc")
        assert known.around_id[id(call)] == (b"a", b"bc")
        found.append(len(known.around_id))
    assert found == kept


def test_result_in_place_of_another_one_takes_only_its_own_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_tally, "_MAX_KNOWN_BYTES", 12)
    known = KnownResponses()
    known.keep(PING, b"1", b"a1bc")
    for _ in range(9):
        known.keep(ECHO, b"1", b"a1bcd")
    assert len(known.around_id) == 2
    known.keep(ECHO, b"1", b"12345678901")  # with its id twice
    known.keep(ECHO, b"1", b"1" + b"x" * 13)  # longer than the limit
    assert known.around_id[id(ECHO)] == (b"a", b"bcd")
    known.keep(ECHO, b"1", b"1" + b"x" * 12)  # as long as the limit, so the others are forgotten
    assert known.around_id == {id(ECHO): (b"", b"x" * 12)}


# -- The turn --------------------------------------------------------------------------------------


class SteppedMeter:
    """A meter whose processes have used these processor times when they are asked for them."""

    def __init__(self, *times: float | None) -> None:
        self._times = iter(times)

    def cpu(self) -> float | None:
        return next(self._times)

    def memory(self) -> int | None:
        return 77


async def test_turn_has_all_that_was_counted(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lag and the time that callers waited for streams are means of all calls."""
    await trio.sleep(8.0)
    times = iter([5.0, 5.75])
    monkeypatch.setattr(_tally, "time", SimpleNamespace(process_time=lambda: next(times)))
    tally = Tally(1.0, KnownResponses(), SteppedMeter(2.0, 3.5))
    began = tally.began
    assert (tally.deadline, tally.is_open) == (began + 1.0, False)
    tally.sent += 8
    tally.late += 3
    tally.lag += 0.5
    tally.drain += 0.25
    tally.stray_lines += 2
    tally.is_cut = True
    tally.leave_out(3)
    tally.leave_out(1, due=2)
    caller = tally.caller()
    tally.succeed(caller, PING, began, began + 0.5)
    answer = {"id": 1_000_000_001, "result": {}}
    tally.decoded(caller, ECHO, digits_of(1), began + 0.5, began + 0.75, answer)
    tally.decoded(caller, ECHO, digits_of(2), began + 0.75, began + 1.25, answer)
    tally.error("closed")
    tally.timeout()
    assert (caller.answered, caller.last) == (2, began + 1.25)
    assert tally.finish(began + 2.0) == BenchTurn(
        seconds=1.25,
        histogram=Histogram([0.5, 0.25]),
        sent=4,
        answered=2,
        rate=2 / 1.25,
        late=1,
        timeouts=1,
        errors=Counter({"wrong id": 1, "closed": 1}),
        slowest=[(0.5, "ping"), (0.25, ECHO.name)],
        tenths=[0, 0, 0, 0, 0, 1, 0, 1, 0, 0],
        load_cpu=0.75,
        target_cpu=1.5,
        memory=77,
        lag=0.125,
        stray_lines=2,
        drain=0.0625,
        is_cut=True,
        unfinished=6,
    )


@pytest.mark.parametrize(("end", "seconds"), [(0.25, 0.25), (1.0, 1.0), (9.0, 1.0)])
async def test_turn_without_calls_counts_nothing(
    end: float, seconds: float, autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as long as it should be, or until it was cut."""
    monkeypatch.setattr(_tally, "time", SimpleNamespace(process_time=lambda: 5.0))
    tally = tally_of()
    tally.caller()
    assert tally.finish(tally.began + end) == BenchTurn(seconds=seconds)


@pytest.mark.parametrize(
    ("before", "after", "cpu"), [(None, 3.0, None), (3.0, None, None), (3.0, 2.0, 0.0)]
)
async def test_processor_time_of_a_target_is_unknown_or_not_below_0(
    before: float | None, after: float | None, cpu: float | None, autojump_clock: Any
) -> None:
    tally = Tally(1.0, KnownResponses(), SteppedMeter(before, after))
    assert tally.finish(tally.began).target_cpu == cpu


async def test_turn_of_no_length_has_a_rate(autojump_clock: Any) -> None:
    tally = tally_of(0.0)
    tally.succeed(tally.caller(), ECHO, tally.began, tally.began)
    turn = tally.finish(tally.began)
    assert (turn.answered, turn.seconds, turn.tenths[-1]) == (1, 0.0, 0)
    assert turn.rate == pytest.approx(1e6)


async def test_response_that_is_an_error_ends_the_turn_later(autojump_clock: Any) -> None:
    tally = tally_of()
    tally.answer(tally.caller(), ECHO, digits_of(1), tally.began, tally.began + 3.0, b"{")
    assert tally.finish(tally.began + 4.0).seconds == pytest.approx(3.0)


async def test_causes_beyond_a_hundred_are_counted_as_other(autojump_clock: Any) -> None:
    """Those that are known count on."""
    tally = tally_of()
    for number in (*range(102), 0, 99):
        tally.error(f"cause{number}")
    errors = tally.finish(tally.began).errors
    assert errors.pop("other") == 2
    assert errors == {f"cause{each}": 1 + (each in (0, 99)) for each in range(100)}


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


@pytest.mark.parametrize(
    ("ends", "rate"),
    [
        # Nine of ten responses have come 9 s after the begin, and the first one after 1 s.
        ([(n / 10, n + 1.0) for n in range(10)], 8 / 8),
        # All at once, after the deadline: not faster than the calls start.
        ([(0.0, 1.5)] * 10, 10.0),
        ([(0.0, 2.0)], 0.5),  # a single one
        ([(0.0, 0.5), (0.5, 2.0)], 1 / 1.5),  # of two both must have come
    ],
)
async def test_rate_of_an_open_loop_of_a_few_calls(
    ends: list[tuple[float, float]], rate: float, autojump_clock: Any
) -> None:
    await trio.sleep(8.0)
    assert turn_of(ends, 10, 10.0).rate == pytest.approx(rate)


async def test_rate_of_a_closed_loop_is_the_sum_of_its_callers_rates(autojump_clock: Any) -> None:
    """A caller calls until its last response, and one that is done early for the whole turn."""
    await trio.sleep(8.0)
    tally = tally_of(1.0)
    for count, last in ((5, 0.5), (3, 1.5), (0, 9.0)):
        caller = tally.caller()
        for _ in range(count):
            tally.succeed(caller, ECHO, tally.began, tally.began + last)
        caller.last = tally.began + last
    assert tally.finish(tally.began + 9.0).rate == pytest.approx(5 / 1.0 + 3 / 1.5)


@pytest.mark.parametrize("rate", [None, 10.0])
async def test_rate_of_a_turn_that_is_cut_is_the_rate_until_then(
    rate: float | None, autojump_clock: Any
) -> None:
    await trio.sleep(8.0)
    assert turn_of([(0.0, 0.125), (0.125, 0.25)], 1, rate).rate == pytest.approx(8.0)
