"""The table of mutations: it matches the code, and covers all groups of the manifest."""

from __future__ import annotations

import secrets
from collections import Counter
from pathlib import Path

import pytest

from tests.spec.mutation_runner import Mutation, chosen, files_of, run_mutations
from tests.spec.mutations import MUTATIONS
from tests.spec.requirements import REQUIREMENTS, TESTED

ROOT = Path(__file__).parents[2]
TESTED_ROWS = {row.id for row in REQUIREMENTS if row.verdict == TESTED}
FEWEST_ROWS = 150
PACKAGES = ("mcp_core", "mcp_trio", "mcp_asyncio_shim", "docs")


def group(row: str) -> str:
    return row.rpartition("-")[0]


def test_mutations_apply_to_code_that_occurs_once() -> None:
    sources = {each.file: (ROOT / each.file).read_text("utf-8") for each in MUTATIONS}
    assert [str(each) for each in MUTATIONS if sources[each.file].count(each.old) != 1] == []
    assert [str(each) for each in MUTATIONS if each.old == each.new] == []
    assert {file.partition("/")[0] for file in sources} <= set(PACKAGES)


def test_mutations_leave_python_that_compiles() -> None:
    for each in MUTATIONS:
        if each.file.endswith(".py"):
            source = (ROOT / each.file).read_text("utf-8")
            compile(source.replace(each.old, each.new), each.file, "exec")


def test_mutations_are_for_tested_rows_of_every_group() -> None:
    rows = {row for each in MUTATIONS for row in each.rows}
    assert rows - TESTED_ROWS == set()
    assert {group(row) for row in TESTED_ROWS} - {group(row) for row in rows} == set()
    assert len(rows) >= FEWEST_ROWS


def test_mutations_are_different_changes() -> None:
    counts = Counter((each.file, each.old, each.new) for each in MUTATIONS)
    assert [change for change, count in counts.items() if count > 1] == []


def test_mutation_of_absent_code_raises(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n")
    for old in ("x = 1", "y = 1"):
        with pytest.raises(ValueError, match=r"`old` occurs [02] times"):
            Mutation(("RPC-1",), "a.py", old, "x = 2").apply(tmp_path)
    assert (tmp_path / "a.py").read_text() == "x = 1\nx = 1\n"


def test_sample_of_mutations_depends_on_the_seed_only() -> None:
    assert chosen(MUTATIONS, (), 8, 1) == chosen(MUTATIONS, (), 8, 1)
    assert chosen(MUTATIONS, (), 8, 1) != chosen(MUTATIONS, (), 8, 2)
    assert chosen(MUTATIONS, (), None, 1) == list(MUTATIONS)
    assert all("RPC-7" in each.rows for each in chosen(MUTATIONS, ("RPC-7",), None, 1))
    assert {group(each.rows[0]) for each in chosen(MUTATIONS, ("PING",), None, 1)} == {"PING"}


def test_files_of_a_row_begin_with_a_small_core_test() -> None:
    first, rest = files_of(["RPC-7"])
    assert len(first) == 1
    assert first[0].startswith("tests/core/")
    assert not set(first) & set(rest)
    assert all("RPC-7" in (ROOT / name).read_text("utf-8") for name in (*first, *rest))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_sample_of_mutations_is_noticed() -> None:
    """Without this, a test could carry a row that it does not prove."""
    seed = secrets.randbits(32)
    outcomes = list(run_mutations(chosen(MUTATIONS, (), 8, seed)))
    survived = [f"{each.mutation} {each.error}" for each in outcomes if not each.killed]
    assert survived == [], f"seed {seed}: these changes break no test of their rows"
    assert len(outcomes) == 8
