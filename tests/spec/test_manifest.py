"""The consistency of the manifest: its rows and the marks of the tests must agree, in both
directions.

The marks are read from the source files, not from a running session, so that a single test file can
run alone, and so that a skipped test (no node on this machine) still counts. An id is a literal
string, so that `grep RPC-1 tests` finds the tests of a row.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spec.requirements import NOT_OURS, PLANNED, REQUIREMENTS, REVISIONS, TESTED, Requirement, letters

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.spec.requirements import Verdict

TESTS = Path(__file__).parents[1]


def marks_in(source: str) -> tuple[set[str], list[str]]:
    """Return the ids in the requirement marks of a file, and the errors in the marks."""
    ids: set[str] = set()
    errors: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func).endswith("mark.requirement")):
            continue
        if not node.args or node.keywords:
            errors.append(f"line {node.lineno}: a requirement mark takes one id or more, and nothing else")
        for arg in node.args:
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                ids.add(arg.value)
            else:
                errors.append(f"line {node.lineno}: write the id out instead of {ast.unparse(arg)}")
    return ids, errors


def disagreements(rows: Iterable[Requirement], marked: Mapping[str, list[str]]) -> list[str]:
    """Return what to change so that verdicts and marks (id -> files) agree."""
    known = {row.id: row for row in rows}
    errors = [
        f"{id} in {', '.join(files)}: the manifest has no such row; correct the mark or write the row"
        for id, files in marked.items()
        if id not in known
    ]
    for id, row in known.items():
        if row.verdict == TESTED and id not in marked:
            errors.append(
                f"{id} is called TESTED but no test carries it: mark the test, or plan the row again"
            )
        if row.verdict != TESTED and id in marked:
            files = ", ".join(marked[id])
            errors.append(f"{id} is tested in {files}: change its verdict from {row.verdict} to TESTED")
    return errors


def test_manifest_rows_and_marks_agree() -> None:
    marked: dict[str, list[str]] = {}
    errors = []
    for path in sorted(TESTS.rglob("test_*.py")):
        name = path.relative_to(TESTS.parent).as_posix()
        ids, errors_in_file = marks_in(path.read_text("utf-8"))
        errors += [f"{name}: {error}" for error in errors_in_file]
        for id in sorted(ids):
            marked.setdefault(id, []).append(name)
    errors += disagreements(REQUIREMENTS, marked)
    assert not errors, "\n".join(errors)


def test_requirement_ids_are_unique_and_sorted() -> None:
    ids = [row.id for row in REQUIREMENTS]
    assert len(ids) == len(set(ids))
    groups: dict[str, list[int]] = {}
    for id in ids:
        group, number = id.split("-")
        groups.setdefault(group, []).append(int(number))
    assert all(numbers == sorted(numbers) for numbers in groups.values())


def test_requirement_rows_have_a_sentence_and_links() -> None:
    assert [row.id for row in REQUIREMENTS if not row.sentence.endswith((".", ".)", "`"))] == []
    for row in REQUIREMENTS:
        pages = 0 if row.level == "decision" else len(letters(row.revisions))
        assert len(row.links()) == pages, row.id


@pytest.mark.parametrize(
    ("span", "spelled_out"), [("A-E", "ABCDE"), ("A,C-E", "ACDE"), ("B", "B"), ("C-D", "CD"), ("A, B", "AB")]
)
def test_revision_span_expands_to_letters(span: str, spelled_out: str) -> None:
    assert letters(span) == spelled_out
    assert set(spelled_out) <= set(REVISIONS)


def test_requirement_links_follow_the_page_of_each_revision() -> None:
    row = Requirement("X-1", "C:a/b D-E:/guide/*/c", "A sentence.", "MUST", "C-D", "both", TESTED)
    assert row.links() == [
        "https://modelcontextprotocol.io/specification/2025-06-18/a/b",
        "https://modelcontextprotocol.io/guide/2025-11-25/c",
    ]


MARKED = """
import pytest
from pytest import mark

pytestmark = [pytest.mark.requirement("A-1"), pytest.mark.node]

@pytest.mark.requirement("A-2", "A-3")
class TestIt:
    @mark.requirement("A-4")
    async def test_it(self): ...

@pytest.mark.parametrize("x", [
    pytest.param(1, marks=pytest.mark.requirement("A-5")),
    pytest.param(2, marks=[pytest.mark.node, pytest.mark.requirement("A-6")]),
])
def test_row(x): "A-7"
"""


def test_requirement_marks_are_found_at_every_level() -> None:
    assert marks_in(MARKED) == ({"A-1", "A-2", "A-3", "A-4", "A-5", "A-6"}, [])


@pytest.mark.parametrize(
    ("source", "expected_error"),
    [
        ("pytest.mark.requirement()", "one id or more"),
        ("pytest.mark.requirement('A-1', reason='x')", "nothing else"),
        ("pytest.mark.requirement(*IDS)", "write the id out instead of *IDS"),
        ("pytest.mark.requirement(f'A-{n}')", "write the id out"),
        ("pytest.mark.requirement(1)", "write the id out"),
    ],
)
def test_requirement_mark_without_literal_id_is_an_error(source: str, expected_error: str) -> None:
    ids, errors = marks_in(source)
    assert expected_error in errors[0]
    assert ids <= {"A-1"}


@pytest.mark.parametrize(
    ("verdict", "marked", "expected_error"),
    [
        (TESTED, {"A-1": ["tests/x.py"]}, None),
        (PLANNED("http"), {}, None),
        (NOT_OURS("a duty of the host"), {}, None),
        (TESTED, {}, "A-1 is called TESTED but no test carries it"),
        (
            PLANNED("http"),
            {"A-1": ["tests/x.py", "tests/y.py"]},
            'A-1 is tested in tests/x.py, tests/y.py: change its verdict from PLANNED("http") to TESTED',
        ),
        (NOT_OURS("a host"), {"A-1": ["tests/x.py"]}, 'change its verdict from NOT_OURS("a host") to TESTED'),
        (PLANNED("http"), {"A-2": ["tests/x.py"]}, "A-2 in tests/x.py: the manifest has no such row"),
    ],
)
def test_manifest_disagreement_message_names_the_change(
    verdict: Verdict, marked: dict[str, list[str]], expected_error: str | None
) -> None:
    row = Requirement("A-1", "", "A sentence.", "MUST", "A-E", "both", verdict)
    errors = disagreements([row], marked)
    if expected_error is None:
        assert errors == []
    else:
        assert len(errors) == 1
        assert expected_error in errors[0]
