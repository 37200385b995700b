"""The table of mutations: it matches the code, and covers all groups of the manifest."""

from __future__ import annotations

import secrets
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.spec import mutations
from tests.spec.mutation_runner import (
    Mutation,
    chosen,
    files_of,
    find_broken,
    find_stale,
    run_mutations,
)
from tests.spec.mutations import MUTATIONS
from tests.spec.requirements import REQUIREMENTS, TESTED

ROOT = Path(__file__).parents[2]
TESTED_ROWS = {row.id for row in REQUIREMENTS if row.verdict == TESTED}
FEWEST_ROWS = 150
PACKAGES = ("mcp_core/", "mcp_trio/", "mcp_asyncio_shim/", "docs/")


def group(row: str) -> str:
    return row.rpartition("-")[0]


@pytest.mark.parametrize("file", sorted({each.file for each in MUTATIONS}))
def test_mutations_match_the_code(file: str) -> None:
    """A stale entry is a line in the summary, so that a change can be tried before the table is
    mended. `.ci/run` fails then.
    """
    assert file.startswith(PACKAGES)
    stale = find_stale(each for each in MUTATIONS if each.file == file)
    if stale:
        pytest.xfail(
            f"{len(stale)} written mutants no longer match, see CONTRIBUTING.md: {'; '.join(stale)}"
        )


def test_mutations_are_for_tested_rows_of_every_group() -> None:
    rows = {row for each in MUTATIONS for row in each.rows}
    assert rows - TESTED_ROWS == set()
    assert {group(row) for row in TESTED_ROWS} - {group(row) for row in rows} == set()
    assert len(rows) >= FEWEST_ROWS


def test_mutations_are_different_changes() -> None:
    counts = Counter((each.where, each.old, each.new) for each in MUTATIONS)
    assert [change for change, count in counts.items() if count > 1] == []
    assert [str(each) for each in MUTATIONS if each.old == each.new] == []


@pytest.mark.parametrize("where", ["a.py", "a.py::f", "a.md"])
def test_mutation_of_absent_code_raises(where: str, tmp_path: Path) -> None:
    text = "def f(): \n    x = 1\n    x = 1\n"
    path = tmp_path / where.partition("::")[0]
    path.write_text(text)
    for old, count in (("x = 1", 2), ("y = 1", 0)):
        stale = Mutation(("RPC-1",), where, old, "x = 2")
        with pytest.raises(ValueError, match=rf"RPC-1 {where} .*`old` occurs {count} times"):
            stale.apply(tmp_path)
        assert len(find_stale([stale], tmp_path)) == 1
        assert find_broken([stale], tmp_path) == find_stale([stale], tmp_path)
    assert path.read_text() == text


def test_mutation_of_absent_file_is_stale(tmp_path: Path) -> None:
    assert len(find_stale([Mutation(("RPC-1",), "a.py", "x", "y")], tmp_path)) == 1


def test_mutation_that_does_not_compile_is_broken(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def f() -> int:\n    return 1\n")
    fits = Mutation(("RPC-1",), "a.py::f", "return 1", "return 2")
    broken = Mutation(("RPC-1",), "a.py", "def f() -> int:\n    return 1", "return 2")
    assert find_stale([fits, broken], tmp_path) == []
    assert find_broken([fits, broken], tmp_path) == [
        f"{broken}: `new` does not fit there: 'return' outside function (a.py, line 1)"
    ]


def test_check_of_the_table_fails_if_an_entry_is_stale(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`.ci/run` has this step."""
    good = Mutation(
        ("RPC-25",), "mcp_core/protocol/messages/_incoming.py", "self.batches = False", "pass"
    )
    assert not find_broken([good])
    stale = replace(good, old="self.batches = 'often'")
    for table, status in (((good,), 0), ((good, stale), 1)):
        monkeypatch.setattr(mutations, "MUTATIONS", table)
        monkeypatch.setattr(mutations, "EQUIVALENTS", ())
        assert mutations.main(["--check"]) == status
        output = capsys.readouterr().out
        assert (str(stale) in output) == bool(status)
        assert f"{status} of {len(table)} no longer match the code" in output


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
