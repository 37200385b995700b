"""Several processes as one load: shares, merged turns, the documents between them."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import ConnectFailed
from mcp_trio.oracle.bench._turn import Pace, TargetGone
from mcp_trio.oracle.bench.calls._calls import BenchCalls
from mcp_trio.oracle.bench.engine import _load_process, _processes
from mcp_trio.oracle.bench.engine._load import Address
from mcp_trio.oracle.bench.engine._processes import ManyLoads, open_loads, share_pace
from tests.trio_.oracle.bench.fake_load import FakeLoad

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from trio.testing import MockClock

SETTINGS = {
    "target": {"url": "http://127.0.0.1:1/mcp", "headers": {}},
    "calls": BenchCalls(kind="tool", name="echo", arguments={"text": "x"}).to_json(),
    "era": None,
    "timeout": 1.0,
}
ASKED = {"ask": "tools/list", "params": {"cursor": "c"}}
ABOUT = {"revision": "2026-07-28", "server": "fake 1", "capabilities": {}}


class LoadProgram:
    """A load process that is a task. `answers` has what it wrote."""

    def __init__(self, load: FakeLoad | None, monkeypatch: pytest.MonkeyPatch) -> None:
        self._load = load
        self._lines, self._waiting = trio.open_memory_channel[bytes](10)
        self.answers: list[dict[str, Any]] = []
        self.is_closed = False
        self._wanted = 0
        monkeypatch.setattr(_load_process, "open_load", self._open)

    @asynccontextmanager
    async def _open(self, *_: object, **__: object) -> AsyncIterator[FakeLoad]:
        if self._load is None:
            raise ConnectFailed("refused")
        yield self._load
        self.is_closed = True

    async def _read(self) -> bytes:
        async for line in self._waiting:
            return line
        return b""

    def _write(self, data: bytes) -> None:
        self.answers.append(json.loads(data))
        if len(self.answers) == self._wanted:
            self._lines.close()

    def send(self, line: bytes) -> None:
        self._lines.send_nowait(line)

    async def play(self, *requests: Mapping[str, Any], ends: bool = True) -> None:
        """Run the program on documents. `ends`: stdin ends before the answers."""
        for request in requests:
            self._lines.send_nowait(json.dumps(request).encode())
        self._wanted = len(requests)
        if ends:
            self._lines.close()
        await _load_process.main(self._read, self._write)


@given(st.integers(1, 64), st.integers(1, 1024), st.sampled_from([None, 1000.0]))
def test_shares_are_the_pace_together(count: int, concurrency: int, rate: float | None) -> None:
    shares = share_pace(Pace(rate, concurrency, seed=3), count)
    assert sum(share.concurrency for share in shares) == concurrency
    assert len(shares) == min(count, concurrency)
    assert rate is None or sum(share.rate or 0 for share in shares) == pytest.approx(rate)
    assert len({share.seed for share in shares}) == len(shares)


async def test_program_connects_and_measures(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    program = LoadProgram(FakeLoad(0.05), monkeypatch)
    turn = {"pace": {"rate": None, "concurrency": 2, "even": False, "seed": 1}, "seconds": 1.0}
    await program.play(SETTINGS, turn, turn, ends=False)
    assert program.answers[0] == {"ready": ABOUT}
    assert [each["turn"]["sent"] for each in program.answers[1:]] == [40, 40]
    assert program.is_closed


async def test_program_whose_stdin_ends_cancels_its_turn(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """The process that has started it was interrupted."""
    program = LoadProgram(FakeLoad(), monkeypatch)
    turn = {"pace": {"rate": 1.0, "concurrency": 1}, "seconds": 1000.0}
    began = trio.current_time()
    await program.play(SETTINGS, turn)
    assert trio.current_time() - began < 10


async def test_program_whose_turn_is_cut_answers_with_what_it_has(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    program = LoadProgram(FakeLoad(0.05), monkeypatch)
    turn = {"pace": {"rate": None, "concurrency": 1}, "seconds": 10.0}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(program.play, SETTINGS, turn, ends=False))
        await trio.sleep(1.0)
        program.send(_load_process.CUT)
    [_, cut] = program.answers
    assert (cut["turn"]["sent"], cut["turn"]["is_cut"]) == (20, True)


async def test_program_without_connection_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    program = LoadProgram(None, monkeypatch)
    await program.play(SETTINGS)
    assert program.answers == [{"failed": "refused"}]


async def test_program_whose_target_ends_passes_on_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    program = LoadProgram(FakeLoad(0.05, ends_after=0), monkeypatch)
    turn = {"pace": {"rate": None, "concurrency": 1}, "seconds": 1.0}
    await program.play(SETTINGS, turn, ends=False)
    [_, gone] = program.answers
    assert gone["gone"] == {"reason": "the server has ended", "status": 1, "stderr": ["boom"]}
    assert gone["turn"]["sent"] == 20


class AskedLoad(FakeLoad):
    """A load whose target answers a request with the request itself, or is gone."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self._error = error

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        if self._error is not None:
            raise self._error
        return {"method": method, "params": params}


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (None, {"answer": {"method": "tools/list", "params": {"cursor": "c"}}}),
        (
            TargetGone("it ended", status=2, stderr=("x",)),
            {"gone": {"reason": "it ended", "status": 2, "stderr": ["x"]}, "turn": None},
        ),
        (ConnectFailed("refused"), {"failed": "refused"}),
    ],
    ids=["answered", "gone", "failed"],
)
async def test_program_passes_on_how_a_single_request_ended(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None, answer: dict[str, Any]
) -> None:
    program = LoadProgram(AskedLoad(error), monkeypatch)
    await program.play(SETTINGS, ASKED, ASKED, ends=False)
    assert program.answers == [{"ready": ABOUT}, answer, answer]


async def test_program_with_an_internal_error_ends_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no answer of the target: the traceback on its stderr says what was wrong."""
    program = LoadProgram(AskedLoad(ZeroDivisionError()), monkeypatch)
    with pytest.raises(ZeroDivisionError):
        await program.play(SETTINGS, ASKED, ends=False)
    assert program.answers == [{"ready": ABOUT}]


async def test_program_whose_stdin_has_nothing_connects_to_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = LoadProgram(FakeLoad(), monkeypatch)
    await program.play()
    assert program.answers == []


class AnsweringProcess:
    """A process of `ManyLoads` that gives one answer to each request."""

    def __init__(self, load: FakeLoad, **answer: Any) -> None:
        self._load = load
        self._answer = answer

    async def ask(self, request: Mapping[str, Any], limit: float) -> Mapping[str, Any]:
        work = BenchCalls().work("2026-07-28")
        turn = await self._load.turn(work, Pace(**request["pace"]), request["seconds"])
        return {"turn": turn.to_json(), **self._answer}

    async def cut(self) -> None:
        self._load.cut()


def many(*processes: Any) -> ManyLoads:
    return ManyLoads(list(processes), ABOUT, timeout=1.0)


async def test_turns_of_processes_are_merged(autojump_clock: MockClock) -> None:
    """They have called at the same time, so their rates add up and their seconds don't."""
    load = many(*(AnsweringProcess(FakeLoad(0.05)) for _ in range(2)))
    turn = await load.turn(BenchCalls().work("2026-07-28"), Pace(None, 4), 1.0)
    assert (turn.sent, turn.histogram.count, turn.seconds) == (80, 80, 1.0)
    assert turn.rate == pytest.approx(80)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"gone": {"reason": "it ended", "status": 3, "stderr": ["x"]}}, TargetGone),
        ({"failed": "refused", "turn": None}, TargetGone),
    ],
)
async def test_error_of_one_process_is_that_of_all(
    answer: dict[str, Any], error: type[Exception], autojump_clock: MockClock
) -> None:
    load = many(AnsweringProcess(FakeLoad(0.05)), AnsweringProcess(FakeLoad(0.05), **answer))
    with pytest.raises(error) as caught:
        await load.turn(BenchCalls().work("2026-07-28"), Pace(None, 4), 1.0)
    if isinstance(caught.value, TargetGone):
        assert caught.value.turn is not None
        assert caught.value.turn.sent == (80 if "gone" in answer else 40)


async def test_turn_is_cut_in_all_processes(autojump_clock: MockClock) -> None:
    load = many(*(AnsweringProcess(FakeLoad(0.05)) for _ in range(2)))
    assert not load.cut()
    turns = []

    async def play() -> None:
        turns.append(await load.turn(BenchCalls().work("2026-07-28"), Pace(None, 2), 10.0))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(play)
        await trio.sleep(1.0)
        assert load.cut()
    assert [(turn.sent, turn.is_cut) for turn in turns] == [(40, True)]


class ByteProcess:
    """The child of a `_LoadProcess` that answers each request with the same bytes."""

    returncode = 7

    def __init__(self, *chunks: bytes, waits: bool = False) -> None:
        self.stream = self
        self._chunks = list(chunks)
        self._waits = waits

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()

    async def receive_some(self, _: int) -> bytes:
        await trio.lowlevel.checkpoint()
        if self._waits and not self._chunks:
            await trio.sleep_forever()
        return self._chunks.pop(0) if self._chunks else b""


@pytest.mark.parametrize(
    ("process", "problem"),
    [
        (ByteProcess(b'{"turn"', waits=True), "has not answered within 3[0-9] s"),
        (ByteProcess(b"x" * 600, b"x" * 600, b"x" * 600), "has answered with over"),
        (ByteProcess(b"Traceback\n"), "isn't JSON"),
        (ByteProcess(b"[]\n"), "isn't JSON"),
        (ByteProcess(b'{"turn"'), "has ended with status 7"),
    ],
)
async def test_process_that_fails_leaves_what_the_others_measure(
    process: Any, problem: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    monkeypatch.setattr(_processes, "_MAX_LINE", 1000)
    load = many(AnsweringProcess(FakeLoad(0.05)), _processes._LoadProcess(process))
    with pytest.raises(TargetGone, match=problem) as caught:
        await load.turn(BenchCalls().work("2026-07-28"), Pace(None, 4), 1.0)
    assert caught.value.turn is not None
    assert caught.value.turn.sent == 40


async def test_processes_that_all_fail_raise_the_cause(autojump_clock: MockClock) -> None:
    load = many(_processes._LoadProcess(cast("Any", ByteProcess())))
    with pytest.raises(ConnectFailed, match="status 7"):
        await load.turn(BenchCalls().work("2026-07-28"), Pace(None, 4), 1.0)


# -- Opening ---------------------------------------------------------------------------------------


class TalkingProcess:
    """The child of a `_LoadProcess` that answers each line with the next of its documents."""

    returncode = None

    def __init__(self, *answers: Any) -> None:
        self.stream = self
        self._answers = list(answers)
        self.received: list[Any] = []

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.received.append(json.loads(data))

    async def receive_some(self, _: int) -> bytes:
        await trio.lowlevel.checkpoint()
        if not self._answers:
            await trio.sleep_forever()
        return json.dumps(self._answers.pop(0)).encode() + b"\n"


def spawned(monkeypatch: pytest.MonkeyPatch, *processes: Any) -> list[Any]:
    """Let `open_loads` start these processes. Return a list of how each one is started."""
    found: list[Any] = []
    rest = iter(processes)

    @asynccontextmanager
    async def spawn(argv: Any, **options: Any) -> AsyncIterator[Any]:
        await trio.lowlevel.checkpoint()
        found.append((argv[-2:], options["inherit_env"], options["grace"].stdin))
        yield next(rest)

    monkeypatch.setattr(_processes, "spawn", spawn)
    return found


async def test_processes_get_the_target_and_what_to_call(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """They inherit the environment, as this process would use it; the first one answers `ask`."""
    first = TalkingProcess({"ready": ABOUT}, {"answer": {"result": {}}})
    second = TalkingProcess({"ready": {**ABOUT, "server": "other 2"}})
    found = spawned(monkeypatch, first, second)
    calls = BenchCalls(kind="tool", name="echo", arguments={"text": "x"})
    target = Address("http://127.0.0.1:1/mcp")
    async with open_loads(target, 2, calls, era=None, timeout=1.0) as load:
        assert (load.revision, load.server) == (ABOUT["revision"], ABOUT["server"])
        assert (load.protocol, load.capabilities) == ("HTTP/1.1", {})
        assert await load.ask("tools/list", {"cursor": "c"}) == {"result": {}}
    assert first.received == [SETTINGS, ASKED]
    assert second.received == [SETTINGS]
    program = ("-m", "mcp_trio.oracle.bench.engine._load_process")
    assert found == [(program, True, 5.0)] * 2


async def test_process_without_a_connection_is_no_load(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    spawned(monkeypatch, TalkingProcess({"ready": ABOUT}), TalkingProcess({"failed": "refused"}))
    target = Address("http://127.0.0.1:1/mcp")
    with pytest.raises(ConnectFailed, match="refused"):
        async with open_loads(target, 2, BenchCalls(), era=None, timeout=1.0):
            pass


async def test_process_that_does_not_answer_has_thirty_seconds_beside_the_timeout(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """In a turn it also has the turn's seconds, and the timeout for each connection to open."""
    spawned(monkeypatch, TalkingProcess())
    target = Address("http://127.0.0.1:1/mcp")
    with pytest.raises(ConnectFailed, match="within 32 s; fewer --processes may help"):
        async with open_loads(target, 1, BenchCalls(), era=None, timeout=2.0):
            pass
    spawned(monkeypatch, TalkingProcess({"ready": ABOUT}), TalkingProcess({"ready": ABOUT}))
    async with open_loads(target, 1, BenchCalls(), era=None, timeout=2.0) as load:
        began = trio.current_time()
        with pytest.raises(ConnectFailed, match="within 48 s"):
            await load.turn(BenchCalls().work("2026-07-28"), Pace(None, 5), 6.0)
        assert trio.current_time() - began == pytest.approx(48)
