"""How many of our functions one `tools/call` goes through: a longer path is longer to read too."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from benchmarks import bench_path

if TYPE_CHECKING:
    from benchmarks.bench_path import CallPath

PAGE = Path(__file__).parents[2] / "docs/explanation/architecture.md"

# By path: the maximum of calls, and of the files that they are in.
LONGEST = {"http": (134, 30), "asgi": (156, 30), "stdio": (56, 22), "client": (130, 31)}


@functools.cache
def measured(path: str) -> CallPath:
    return trio.run(bench_path.MEASURES[path])


def test_each_path_has_a_bound() -> None:
    assert LONGEST.keys() == bench_path.MEASURES.keys()


@pytest.mark.parametrize(("path", "calls", "files"), [(p, *most) for p, most in LONGEST.items()])
def test_path_of_one_call_is_within_its_bound(path: str, calls: int, files: int) -> None:
    found = measured(path)
    assert 40 < len(found.calls) <= calls
    assert found.files <= files


def test_paths_in_architecture_are_those_of_a_call() -> None:
    # After a change: python benchmarks/bench_path.py --update docs/explanation/architecture.md
    page = PAGE.read_text("utf-8")
    paths = {path: measured(path) for path in LONGEST}
    assert bench_path.with_paths(page, paths) == page
