"""A leak of memory: from which readings of a server's processes on it is noted."""

from __future__ import annotations

from typing import Final

import pytest

from mcp_trio.oracle.fuzz.campaign._memory import MemoryWatch

KIB, MIB = 1024, 1024 * 1024
# Cases and bytes. The later half, from the fourth reading on, has 100 cases and grows by 5 MiB.
LEAK: Final = [(played, played * MIB // 20) for played in (0, 50, 100, 150, 200, 250)]


def note_of(readings: list[tuple[int, int]]) -> str:
    watch = MemoryWatch()
    for played, size in readings:
        watch.add(1, played, {7: size})
    assert watch.note() == "", "it hasn't ended"
    watch.end(1)
    return watch.note()


@pytest.mark.parametrize(
    ("played", "is_due"),
    [(0, False), (10, False), (19, False), (20, True), (21, False), (25, False), (30, True)],
)
def test_process_is_read_every_ten_cases_after_the_first_twenty(played: int, is_due: bool) -> None:
    assert MemoryWatch().is_due(played) is is_due


@pytest.mark.parametrize(
    ("readings", "is_noted"),
    [
        (LEAK, True),
        (LEAK[1:], False),  # too few readings
        ([*LEAK[:-1], (249, 250 * MIB // 20)], False),  # 99 cases
        ([(played, 0) for played, _ in LEAK[:-1]] + [(250, 4 * MIB)], True),
        ([(played, 0) for played, _ in LEAK[:-1]] + [(250, 4 * MIB - 1)], False),
        ([(10 * played, 100 * KIB * played) for played, _ in LEAK], True),
        ([*((10 * played, 100 * KIB * played) for played, _ in LEAK[:-1]), (2500, 25600000)], True),
        (
            [*((10 * played, 100 * KIB * played) for played, _ in LEAK[:-1]), (2500, 25599999)],
            False,
        ),
        # The earlier half grows by 100 KiB a case, and the later one by half as much, or by less.
        ([(0, 0), (10, 0), (20, 0), (150, 15000 * KIB), (200, 0), (250, 20000 * KIB)], True),
        ([(0, 0), (10, 0), (20, 0), (150, 15000 * KIB), (200, 0), (250, 19999 * KIB)], False),
        # The later half begins where the earlier one has ended, although no case was played then.
        ([(150, 0), (150, 0), (150, 0), *LEAK[3:]], True),
    ],
)
def test_leak_is_noted_from_its_least_readings_on(
    readings: list[tuple[int, int]], is_noted: bool
) -> None:
    """Each row is at a limit, or just below it."""
    assert bool(note_of(readings)) is is_noted


def test_note_has_the_growth_of_the_later_halves_by_case() -> None:
    """A process that ends twice, or was never read, adds nothing."""
    watch = MemoryWatch()
    for server in (1, 2):
        for played, size in LEAK:
            watch.add(server, played, {7: server * size, 8: 5 * MIB})
        watch.end(server)
        watch.end(server)
    watch.end(3)
    assert watch.note() == (
        "memory of the server grows by 77 KiB a case, without end (measured in 2 processes)"
    )


def test_readings_of_a_long_process_are_thinned_out() -> None:
    """The first and the last one stay, and the growth is the same."""
    watch = MemoryWatch()
    for played in range(0, 4_010, 10):
        watch.add(1, played, {7: played * 100 * KIB})
        assert len(watch._readings[1]) <= 400
    kept = [played for played, _ in watch._readings[1]]
    assert kept == list(range(0, 4_010, 20))
    watch.add(1, 4_010, {})
    watch.end(1)
    assert "grows by 100 KiB a case" in watch.note()
