"""`tests.in_parts`: each default test runs once, and a failure in any part fails the run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import in_parts
from tests.conftest import marks_of_file
from tests.in_parts import exit_status, main, run_part, split
from tests.levels import TESTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PRINTS = "import os, sys; print(os.environ.get('COVERAGE_FILE'), *sys.argv[1:]); sys.exit(3)"


@given(st.lists(st.integers(0, 1000)), st.integers(1, 8))
def test_each_file_is_in_one_part(sizes: list[int], processes: int) -> None:
    counts = split(sizes, processes)
    assert sum(counts) == len(sizes)
    assert all(counts)


def test_parts_become_shorter() -> None:
    counts = split([10] * 1000, 2)
    assert counts[:4] == [250, 188, 141, 106]
    assert min(counts[:-1]) == 40


@pytest.mark.parametrize(
    ("statuses", "status"),
    [([0, 0], 0), ([0, 1, 0], 1), ([1, 2], 2), ([0, 5], 0), ([5, 1], 1), ([5, 5], 5), ([0, -9], 9)],
)
def test_run_fails_if_a_part_fails(statuses: list[int], status: int) -> None:
    assert exit_status(statuses) == status


def test_all_files_with_default_tests_are_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each file is in one part, unless all its tests are left out by default."""
    parts: dict[int, Sequence[Path]] = {}

    def note(words: Sequence[str], number: int, files: Sequence[Path]) -> tuple[int, str]:
        assert words == ["pytest", "-q"]
        parts[number] = files
        return (number == 1), f"part {number}"

    monkeypatch.setattr(in_parts, "run_part", note)
    assert main(["pytest", "-q"]) == 1
    assert capsys.readouterr().out.splitlines() == [f"part {number}" for number in sorted(parts)]
    found = [file for number in sorted(parts) for file in parts[number]]
    assert found == sorted(set(found))
    left_out = {*TESTS.rglob("test_*.py")} - {*found}
    assert all({"process", "interop"} & {*marks_of_file(file)} for file in left_out)
    assert TESTS / "test_levels.py" in found


@pytest.mark.process
@pytest.mark.parametrize(("coverage", "of_part"), [("a/coverage", "a/coverage.7"), ("", "None")])
def test_part_is_another_process_with_a_coverage_file_of_its_own(
    coverage: str, of_part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prints.py").write_text(PRINTS)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    if coverage:
        monkeypatch.setenv("COVERAGE_FILE", coverage)
    else:
        monkeypatch.delenv("COVERAGE_FILE", raising=False)
    files = [TESTS / "core" / "test_text.py"]
    assert run_part(["prints", "-q"], 7, files) == (3, f"{of_part} -q tests/core/test_text.py\n")
