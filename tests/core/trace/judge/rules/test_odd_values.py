"""The conversations of the tables, with one value in them replaced: the judge takes them all."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace import Finding
from tests.core.trace.judge.conversations import Sent, judge
from tests.core.trace.judge.rules import features, messages, rounds, utilities
from tests.core.trace.judge.rules.case import Case

CASES: list[Case] = [*messages.CASES, *utilities.CASES, *features.CASES, *rounds.CASES]
# What `repr` writes and JSON does not. No message of the tables has any of it.
PYTHON: Final = re.compile(r"\b(None|True|False|nan|inf)\b|'|\([\"{\[]|,\)")
ODD: list[Any] = [None, True, -1, 1.5, "x", [], [1], [{}], {}, {"a": 1}, {"type": []}]


def paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every member in decoded JSON."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from paths(item, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], odd: Any) -> Any:
    result = holder = copy.deepcopy(value)
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = odd
    return result


def variants(each: Case) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the place of every value in the messages of a case."""
    return [
        (index, path)
        for index, said in enumerate(each.fails)
        if isinstance(said.message, dict | list)
        for path in paths(said.message)
    ]


def assert_no_python_in_sentences(found: Iterable[Finding]) -> None:
    """Sentences show a peer's values as JSON, for readers who have never seen Python."""
    for each in found:
        assert not PYTHON.search(each.sentence), each.sentence


def play(each: Case, index: int, path: tuple[Any, ...], odd: Any) -> None:
    said = list(each.fails)
    line = said[index]
    said[index] = Sent(line.sender, replaced(line.message, path, odd), line.is_raw)
    found, _ = judge(None, said, each.revision)
    assert_no_python_in_sentences(found)


@given(st.data())
def test_judge_takes_conversations_with_an_odd_value(data: st.DataObject) -> None:
    each = data.draw(st.sampled_from(CASES))
    places = variants(each)
    if places:
        index, path = data.draw(st.sampled_from(places))
        play(each, index, path, data.draw(st.sampled_from(ODD)))


def test_odd_values_reach_every_message() -> None:
    assert sum(len(variants(each)) for each in CASES) > 5_000
