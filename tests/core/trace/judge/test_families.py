"""Families of rows: one requirement in several revisions."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING

import pytest

from mcp_core.trace import JUDGED_ROWS, ROWS, row_family
from mcp_core.trace.judge._revisions import REVISIONS
from mcp_core.trace.judge.rows import FAMILIES
from mcp_core.trace.judge.rules import RULES
from mcp_core.trace.judge.rules._shapes import META_ROWS, SHAPE_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_core.trace import Requirement

# The parties that a row of a stateful revision and its successor can name.
PARTIES = {
    "requestor": "client", "sender": "client", "receiver": "server", "responder": "server",
    "reporter": "server",
}  # fmt: skip
# Pairs of rows that one rule judges, or that sound alike, and that are two requirements.
DIFFERENT = {
    frozenset(pair)
    for pair in (
        ("TSK-10", "TX-9"),  # the type of an id, and the whole task
        ("TSK-10", "TX-17"),
        ("TSK-12", "TX-10"),  # a task, and the result of one method
        ("TSK-12", "TX-17"),
        ("TSK-7", "TX-9"),  # which response, and the task in it
        ("TSK-10", "TX-23"),  # an unguessable id is more than a unique one
        ("TSK-24", "TX-23"),  # TX-23 is about the id, too
        ("PROG-9", "SHL-4"),  # progress, and all messages: SHM-8 is the same as SHL-4
        ("TSK-23", "TX-11"),  # the opposite
        ("SHL-4", "PROG-8"),  # who sends, and on which stream
        ("SHL-3", "SHM-8"),
        ("AR-3", "AR-6"),  # 401 and 403
    )
}
WORD = re.compile(r"[A-Za-z_/]{3,}")
FILLERS = set("the and with not for its all any only has are that this since json schema".split())


def spans_meet(first: Requirement, second: Requirement) -> bool:
    return bool(set(first.revisions) & set(second.revisions))


def is_successor(old: Requirement, new: Requirement) -> bool:
    """Return True if `new` begins when `old` ends, or later."""
    if old.until is None:
        return False
    return REVISIONS.index(new.since) >= REVISIONS.index(old.until)


def judged_as_one() -> Iterator[tuple[str, str]]:
    """Yield the pairs of rows that one rule or one entry of the shapes chooses by revision."""
    groups = [each.rows for each in RULES]
    groups += [rows for patterns in SHAPE_ROWS.values() for _, rows in patterns]
    groups += [rows for _, rows in META_ROWS]
    for rows in groups:
        for pair in itertools.combinations([row for row in rows if row in ROWS], 2):
            if not spans_meet(ROWS[pair[0]], ROWS[pair[1]]):
                yield pair


def words(row: Requirement) -> set[str]:
    return set(WORD.findall(row.sentence.lower())) - FILLERS


def sound_alike() -> Iterator[tuple[str, str]]:
    """Yield the judged rows that follow each other and share most of their words."""
    judged = [(ROWS[row], words(ROWS[row])) for row in ROWS if row in JUDGED_ROWS]
    ended = [each for each in judged if each[0].until is not None]
    for (old, mine), (new, other) in itertools.product(ended, judged):
        few = min(len(mine), len(other))
        if is_successor(old, new) and few > 3 and len(mine & other) >= 0.6 * few:
            yield old.id, new.id


@pytest.mark.parametrize("pairs", [judged_as_one, sound_alike])
def test_rows_of_one_requirement_are_in_one_family(pairs: object) -> None:
    assert callable(pairs)
    found = {frozenset(each) for each in pairs()}
    split = {each for each in found if len({row_family(row) for row in each}) > 1}
    assert len(found) > 5
    assert split <= DIFFERENT, split - DIFFERENT


@pytest.mark.parametrize("family", FAMILIES)
def test_family_joins_no_two_requirements(family: str) -> None:
    """Two rows in force together are two requirements; so are those of different parties."""
    rows = [ROWS[row] for row in FAMILIES[family]]
    assert len(rows) > 1
    for first, second in itertools.combinations(rows, 2):
        assert not spans_meet(first, second), (first.id, second.id)
    assert len({PARTIES.get(each.role, each.role) for each in rows} - {"both"}) <= 1, family
    assert rows == sorted(rows, key=lambda each: REVISIONS.index(each.since))


def test_every_row_has_one_family_with_a_name_of_its_own() -> None:
    joined = [row for rows in FAMILIES.values() for row in rows]
    assert len(joined) == len(set(joined))
    assert not FAMILIES.keys() & ROWS.keys()
    assert {row_family(row) for row in joined} == FAMILIES.keys()
    others = ROWS.keys() - set(joined)
    assert all(row_family(row) == row for row in others)


def test_rows_that_are_called_different_are_candidates_and_not_in_one_family() -> None:
    """So no pair stays in the table when a rule or a sentence changes."""
    found = {frozenset(each) for each in (*judged_as_one(), *sound_alike())}
    assert found >= DIFFERENT, DIFFERENT - found
    assert all(len({row_family(row) for row in each}) == 2 for each in DIFFERENT)
