"""How slow the machine is: compared with the beginning, or slow in any case."""

from __future__ import annotations

import subprocess

import pytest

from mcp_trio.oracle.fuzz._echo import Echo


class TimedEcho(Echo):
    """An echo whose times the test says."""

    def __init__(self, *times: float) -> None:
        super().__init__()
        self.times = list(times)

    async def _measure(self) -> float:
        return self.times.pop(0)


@pytest.mark.parametrize(
    ("usual", "now", "is_slow"),
    [
        ((0.1, 0.2), 0.35, False),  # three times the shorter one, and 0.05 s
        ((0.1, 0.2), 0.36, True),
        ((0.2, 0.1), 0.36, True),
        ((0.3, 0.3), 0.5, False),  # slow from the beginning
        ((0.3, 0.3), 0.51, True),
    ],
)
async def test_machine_is_slow_if_an_echo_takes_longer_than_at_the_beginning(
    usual: tuple[float, float], now: float, is_slow: bool
) -> None:
    echo = TimedEcho(*usual, now, now)
    await echo.begin()
    assert await echo.is_slow() is is_slow
    assert await echo.is_slow() is is_slow
    assert echo.slow_times == 2 * is_slow
    assert echo.times == []


async def test_no_machine_is_slow_before_the_beginning() -> None:
    echo = TimedEcho()
    assert not await echo.is_slow()
    assert echo.slow_times == 0


@pytest.mark.parametrize("error", [OSError(), subprocess.TimeoutExpired("x", 20)])
async def test_program_that_does_not_run_counts_as_slow(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """It's waited for 20 s, which is the time that counts then."""
    times: list[float] = []

    def run(command: list[str], *, input: bytes, timeout: float, **options: object) -> None:
        assert (command[-1], input) == ("print(input())", b"x\n")
        assert options == {"capture_output": True, "check": False}
        times.append(timeout)
        if len(times) > 2:
            raise error

    monkeypatch.setattr(subprocess, "run", run)
    echo = Echo()
    await echo.begin()
    assert await echo.is_slow()
    assert await echo._measure() == 20
    assert times == [20, 20, 20, 20]
