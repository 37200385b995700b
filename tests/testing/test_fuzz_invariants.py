"""Invariants in tests: `fuzz_server(invariants=)`, and the fixture's file beside the test."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("hypothesis")

from mcp_trio.oracle.fuzz._echo import Echo
from mcp_trio.oracle.fuzz.draw._cases import CaseSource
from mcp_trio.testing import _fuzzing, oracle
from mcp_trio.testing._fuzzing import FuzzFindings, fuzz_server
from mcp_trio.testing.invariants import InvariantError
from tests.trio_.oracle.fuzz.memory_target import OLD, MemoryTarget
from tests.trio_.oracle.fuzz.notes_server import (
    CAN_BE_READ,
    CREATED,
    NotesServer,
    write_invariants,
)

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._case import Case

mcp_fuzz = oracle.mcp_fuzz  # the fixture
# The first campaign loads them, which would count as its test's time.
for each in ("jsonschema", "urllib.request", "mcp_trio.oracle.fuzz.classics"):
    import_module(each)
CASE: Case = [
    ("open", OLD, "whole", "all"),
    ("call", "create_note", {"text": "bad"}, ()),
    ("wait",),
    ("hand", "read_note", "id", "note_id", 0),
    ("call", "read_note", {"id": "none"}, ()),
]


@pytest.fixture
def mcp_target() -> list[str]:
    return ["server"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, autojump_clock: Any) -> NotesServer:
    """A server that forgets a note, for which `CASE` is drawn."""
    found = NotesServer(forgets=("bad",))

    async def measure(echo: Echo) -> float:
        return 0.0

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(CaseSource, "draw", lambda self, count: [CASE] * count)
    monkeypatch.setattr(_fuzzing, "_target", lambda *_: MemoryTarget(found))
    monkeypatch.setattr(Echo, "_measure", measure)
    return found


async def test_failed_invariant_is_a_finding_of_the_test(
    server: NotesServer, tmp_path: Path
) -> None:
    path = write_invariants(tmp_path, CREATED, CAN_BE_READ)
    with pytest.raises(FuzzFindings, match=r"invariant created_note_can_be_read: read_note \{"):
        await fuzz_server(["server"], tmp_path / "a", seconds=None, cases=1, invariants=path)


async def test_broken_invariant_fails_the_test_with_its_line(
    server: NotesServer, tmp_path: Path
) -> None:
    path = write_invariants(tmp_path, "@invariant()\ndef f(call, result):\n    1 / 0\n", CREATED)
    with pytest.raises(InvariantError, match=r"f is broken: Zero.*\(checks\.py, line 4"):
        await fuzz_server(["server"], tmp_path / "a", seconds=None, cases=1, invariants=path)


async def test_invariant_of_a_tool_that_the_server_lacks_fails_the_test(
    server: NotesServer, tmp_path: Path
) -> None:
    path = write_invariants(tmp_path, "@invariant('find')\ndef f(call, result): pass\n")
    with pytest.raises(InvariantError, match="line 2: the server has no tool find"):
        await fuzz_server(["server"], tmp_path / "a", seconds=None, cases=1, invariants=path)


async def test_invariant_can_be_ignored_by_its_name(server: NotesServer, tmp_path: Path) -> None:
    path = write_invariants(tmp_path, CREATED, CAN_BE_READ)
    await fuzz_server(
        ["server"],
        tmp_path / "a",
        seconds=None,
        cases=1,
        invariants=path,
        ignore=["created_note_can_be_read"],
    )


async def test_file_of_the_fixture_is_relative_to_the_test(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    given: dict[str, Any] = {}

    async def keep(target: Any, directory: Path, **options: Any) -> None:
        given.update(options)

    monkeypatch.setattr(oracle, "_place_of_traces", lambda request: (tmp_path, "a"))
    monkeypatch.setattr(oracle, "fuzz_server", keep)
    await request.getfixturevalue("mcp_fuzz")(invariants="checks.py", seconds=1)
    assert given == {"invariants": Path(__file__).parent / "checks.py", "seconds": 1}
