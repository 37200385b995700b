"""The consistency of the manifest: its rows and the marks of the tests must agree, in both
directions.

The marks are read from the source files, not from a running session, so that a single test file can
run alone, and so that a skipped test (no node on this machine) still counts. An id is a literal
string, so that `grep RPC-1 tests` finds the tests of a row.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import pytest

from mcp_core.trace.judge._revisions import REVISIONS, span
from mcp_core.trace.judge.rows import ROWS
from tests.conftest import STARTS_PROGRAMS
from tests.spec.requirements import (
    NOT_OURS,
    PLANNED,
    REQUIREMENTS,
    TESTED,
    VERDICTS,
    Requirement,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.spec.requirements import Verdict

TESTS = Path(__file__).parents[1]
# A mark with its ids, as nearly all are written. Searching for it is much faster than parsing.
WRITTEN_OUT = re.compile(r'\bmark\.requirement\(\s*((?:"[A-Z]+-\d+",?\s*)+)\)')


@cache
def marked_files() -> list[tuple[Path, str]]:
    """Return the test files that name a requirement, with their sources."""
    found = [(path, path.read_text("utf-8")) for path in sorted(TESTS.rglob("test_*.py"))]
    return [(path, source) for path, source in found if "mark.requirement" in source]


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


@cache
def ids_in(source: str) -> set[str] | None:
    """Return the ids in the requirement marks of a file, or None if its text alone can't tell."""
    found = WRITTEN_OUT.findall(source)
    if len(found) != source.count("mark.requirement"):
        return None
    return set(re.findall(r'"([^"]+)"', " ".join(found)))


@cache
def marks_in(source: str) -> tuple[set[str], list[str]]:
    """Return the ids in the requirement marks of a file, and the errors in the marks."""
    ids: set[str] = set()
    errors: list[str] = []
    for node in ast.walk(parsed(source)):
        if not _is_requirement(node):
            continue
        if not node.args or node.keywords:
            errors.append(
                f"line {node.lineno}: a requirement mark takes one id or more, and nothing else"
            )
        for arg in node.args:
            if isinstance(arg, ast.Constant) and isinstance(arg.value, str):
                ids.add(arg.value)
            else:
                errors.append(f"line {node.lineno}: write the id out instead of {ast.unparse(arg)}")
    return ids, errors


# Marks of tests that the default run leaves out, besides all below tests/interop.
LEFT_OUT = ("long", "slow", "process", "interop", "conformance", "node")
NAMES_LEFT_OUT = re.compile(rf"\.(?:{'|'.join(LEFT_OUT)})\b")


def _is_requirement(node: ast.AST) -> TypeGuard[ast.Call]:
    if not (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "requirement"
    ):
        return False
    mark = node.func.value  # `pytest.mark`, or `mark`
    return (mark.attr if isinstance(mark, ast.Attribute) else getattr(mark, "id", None)) == "mark"


def _is_parametrize(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "parametrize"
    )


@cache
def ids_of_the_default_run(source: str) -> set[str]:
    """Return the ids on tests without a mark of `LEFT_OUT`.

    The mark can be on the module, the class, the function or the row itself.
    """
    ids: set[str] = set()

    def visit(node: ast.AST, left_out: bool) -> None:
        marks: list[ast.expr] = []
        if isinstance(node, ast.Module):
            marks = [
                each.value
                for each in node.body
                if isinstance(each, ast.Assign)
                and isinstance(each.targets[0], ast.Name)
                and each.targets[0].id == "pytestmark"
            ]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            # Not the marks of single rows: they do not hold for the other rows.
            marks = [each for each in node.decorator_list if not _is_parametrize(each)]
        elif _is_requirement(node) and not left_out:
            ids.update(
                each.value
                for each in node.args
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            )
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "param"
        ):
            marks = [each.value for each in node.keywords if each.arg == "marks"]
        names = {
            part.attr
            for mark in marks
            for part in ast.walk(mark)
            if isinstance(part, ast.Attribute)
        }
        # Marks of tests stand above them, not inside of them.
        children: Iterable[ast.AST] = ast.iter_child_nodes(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            children = node.decorator_list
        for child in children:
            visit(child, left_out or not names.isdisjoint(LEFT_OUT))

    visit(parsed(source), False)
    return ids


def disagreements(rows: Iterable[Requirement], marked: Mapping[str, list[str]]) -> list[str]:
    """Return what to change so that verdicts and marks (id -> files) agree."""
    known = {row.id: row for row in rows}
    errors = [
        (
            f"{id} in {', '.join(files)}: the manifest has no such row; correct the mark or write"
            " the row"
        )
        for id, files in marked.items()
        if id not in known
    ]
    for id, row in known.items():
        if row.verdict == TESTED and id not in marked:
            errors.append(
                f"{id} is called TESTED but no test carries it: mark the test, or plan the row"
                " again"
            )
        if row.verdict != TESTED and id in marked:
            files = ", ".join(marked[id])
            errors.append(
                f"{id} is tested in {files}: change its verdict from {row.verdict} to TESTED"
            )
    return errors


def test_manifest_rows_and_marks_agree() -> None:
    marked: dict[str, list[str]] = {}
    errors = []
    for path, source in marked_files():
        name = path.relative_to(TESTS.parent).as_posix()
        ids = ids_in(source)
        if ids is None:
            ids, errors_in_file = marks_in(source)
            errors += [f"{name}: {error}" for error in errors_in_file]
        for id in sorted(ids):
            marked.setdefault(id, []).append(name)
    errors += disagreements(REQUIREMENTS, marked)
    assert not errors, "\n".join(errors)


def test_default_run_proves_every_tested_row() -> None:
    """A row that only slow tests or interoperability tests carry is unproven on most runs."""
    unproven = {row.id for row in REQUIREMENTS if row.verdict == TESTED}
    mixed = []
    for path, source in marked_files():
        if path.is_relative_to(TESTS / "interop") or path in STARTS_PROGRAMS:
            continue
        ids = ids_in(source)
        if ids is None or NAMES_LEFT_OUT.search(source):
            mixed.append(source)
        else:
            unproven -= ids
    # What the text of a file can't tell is read last, and only if it may have what is left.
    for source in sorted(mixed, key=lambda source: (ids_in(source) is None, len(source))):
        if not unproven.isdisjoint(ids_in(source) or unproven):
            unproven -= ids_of_the_default_run(source)
    assert sorted(unproven) == [], (
        "give each a smaller test without a mark that leaves it out of the default run"
    )


@pytest.mark.long
def test_ids_in_the_text_of_files_are_those_of_their_marks() -> None:
    """The tests above read no syntax tree of most files, and must see what it has."""
    for path, source in marked_files():
        ids = ids_in(source)
        assert ids is None or marks_in(source) == (ids, []), path
        if ids is not None and not NAMES_LEFT_OUT.search(source):
            assert ids_of_the_default_run(source) == ids, path


@pytest.mark.parametrize(
    ("source", "ids"),
    [
        (
            '@pytest.mark.requirement("A-1", "B-20")\n@mark.requirement("C-3")',
            {"A-1", "B-20", "C-3"},
        ),
        ('pytest.mark.requirement(\n    "A-1",\n    "A-2",\n)', {"A-1", "A-2"}),
        ("", set()),
        ("pytest.mark.requirement(*IDS)", None),
        ('pytest.mark.requirement("A-1", reason="x")', None),
        ('pytest.mark.requirement("A-1")\nmark = pytest.mark.requirement', None),
    ],
)
def test_ids_of_text_are_those_that_are_written_out(source: str, ids: set[str] | None) -> None:
    assert ids_in(source) == ids


def test_requirement_ids_are_unique_and_sorted() -> None:
    ids = [row.id for row in REQUIREMENTS]
    assert len(ids) == len(set(ids))
    groups: dict[str, list[int]] = {}
    for id in ids:
        group, number = id.split("-")
        groups.setdefault(group, []).append(int(number))
    assert all(numbers == sorted(numbers) for numbers in groups.values())


def test_requirement_verdicts_name_rows() -> None:
    assert VERDICTS.keys() <= ROWS.keys()


def test_requirement_rows_have_a_sentence_and_links() -> None:
    assert [row.id for row in REQUIREMENTS if not row.sentence.endswith((".", ".)", "`"))] == []
    for row in REQUIREMENTS:
        pages = 0 if row.level == "decision" else len(row.revisions)
        assert len(row.links()) == pages, row.id


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (("2024-11-05", None), REVISIONS),
        (("2024-11-05", None, ("2025-03-26",)), (REVISIONS[0], *REVISIONS[2:])),
        (("2025-03-26", "2025-06-18"), ("2025-03-26",)),
        (("2025-06-18", "2026-07-28"), ("2025-06-18", "2025-11-25")),
        (("2026-07-28", None), ("2026-07-28",)),
    ],
)
def test_revision_span_has_since_and_not_until(
    limits: tuple[str, str | None], expected: tuple[str, ...]
) -> None:
    assert span(*limits) == expected


@pytest.mark.parametrize(
    "limits",
    [("2024-11-06", None), ("2024-11-05", "x"), ("2024-11-05", None, ("A",)), ("E", None)],
)
def test_revision_span_of_no_revision_raises(limits: tuple[str, str | None]) -> None:
    with pytest.raises(ValueError, match="not in tuple"):
        span(*limits)


ROW_OF_TWO_PAGES = Requirement(
    "X-1",
    {"2025-06-18": "a/b", "2025-11-25": "/guide/*/c"},
    "A sentence.",
    "MUST",
    "2025-06-18",
    "2026-07-28",
    "both",
    verdict=TESTED,
)


def test_requirement_links_follow_the_page_of_each_revision() -> None:
    assert ROW_OF_TWO_PAGES.links() == [
        "https://modelcontextprotocol.io/specification/2025-06-18/a/b",
        "https://modelcontextprotocol.io/guide/2025-11-25/c",
    ]


def test_requirement_links_lead_to_pages_that_exist() -> None:
    """The list comes from the public site map. It is committed, so that no test needs the network.

    To renew it, list the `.mdx` files below `docs` of the repository of the specification.
    """
    pages = set((TESTS / "spec" / "pages.txt").read_text("utf-8").split())
    linked = {link for row in REQUIREMENTS for link in row.links()}
    assert sorted(linked - pages) == []


@pytest.mark.parametrize(
    ("revision", "link"),
    [
        ("2025-06-18", "https://modelcontextprotocol.io/specification/2025-06-18/a/b"),
        ("2025-11-25", "https://modelcontextprotocol.io/guide/2025-11-25/c"),
        ("2024-11-05", "https://modelcontextprotocol.io/guide/2025-11-25/c"),
    ],
)
def test_requirement_link_is_of_its_revision_or_the_last(revision: str, link: str) -> None:
    assert ROW_OF_TWO_PAGES.link(revision) == link


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
    ("source", "ids"),
    [
        (MARKED, set()),
        (MARKED.replace(", pytest.mark.node]", "]", 1), {"A-1", "A-2", "A-3", "A-4", "A-5"}),
        ("@pytest.mark.slow\n@pytest.mark.requirement('A-1')\ndef test_it(): ...", set()),
        (
            (
                "@pytest.mark.slow\nclass TestIt:\n  @pytest.mark.requirement('A-1')\n  def"
                " test_it(self): ..."
            ),
            set(),
        ),
        (
            (
                "@pytest.mark.slow\nclass TestIt: ...\n@pytest.mark.requirement('A-1')\ndef"
                " test_it(): ..."
            ),
            {"A-1"},
        ),
    ],
)
def test_requirement_marks_of_slow_tests_do_not_count(source: str, ids: set[str]) -> None:
    assert ids_of_the_default_run(source) == ids


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
            (
                'A-1 is tested in tests/x.py, tests/y.py: change its verdict from PLANNED("http")'
                " to TESTED"
            ),
        ),
        (
            NOT_OURS("a host"),
            {"A-1": ["tests/x.py"]},
            'change its verdict from NOT_OURS("a host") to TESTED',
        ),
        (
            PLANNED("http"),
            {"A-2": ["tests/x.py"]},
            "A-2 in tests/x.py: the manifest has no such row",
        ),
    ],
)
def test_manifest_disagreement_message_names_the_change(
    verdict: Verdict, marked: dict[str, list[str]], expected_error: str | None
) -> None:
    row = Requirement("A-1", {}, "A sentence.", "MUST", "2024-11-05", None, "both", verdict=verdict)
    errors = disagreements([row], marked)
    if expected_error is None:
        assert errors == []
    else:
        assert len(errors) == 1
        assert expected_error in errors[0]
