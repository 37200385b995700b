"""The values that rules ask about, and the opportunities that they need."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace.judge.rules._eras import is_revision
from mcp_core.trace.judge.rules._lifecycle import declares
from mcp_core.trace.judge.rules._opportunity import opportunity_of
from mcp_core.trace.judge.rules._values import show


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null or missing"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (1.5, "1.5"),
        (10**70, "1" + "0" * 59),
        ("", '""'),
        ("a\x1b", '"a\\u001b"'),
        ("a" * 60, '"' + "a" * 60 + '"'),
        ("a" * 61, '"' + "a" * 60 + '"...'),
        ([1], "an array"),
        ({}, "an object"),
    ],
)
def test_value_is_shown_as_short_json(value: Any, text: str) -> None:
    assert show(value) == text


@pytest.mark.parametrize(
    ("capabilities", "path", "is_declared"),
    [
        ({"tools": {}}, ("tools",), True),
        ({"tools": None}, ("tools",), False),
        ({"tools": False}, ("tools",), False),
        ({"tools": 0}, ("tools",), True),
        ({}, ("tools",), False),
        ({"sampling": {"tools": {}}}, ("sampling", "tools"), True),
        ({"sampling": {"tools": False}}, ("sampling", "tools"), False),
        ({"sampling": {}}, ("sampling", "tools"), False),
        ({"sampling": True}, ("sampling", "tools"), False),
    ],
)
def test_capability_is_declared_unless_it_is_false_or_null(
    capabilities: Any, path: tuple[str, ...], is_declared: bool
) -> None:
    assert declares(capabilities, path) is is_declared


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-11-05", True),
        ("2026-07-28", True),
        ("2024-10-07", None),  # published before the first revision
        ("2999-01-01", None),  # a later one
        ("DRAFT-2026-v1", None),
        ("1999-01-01", False),
        ("2025-01-01", False),
        ("1.0", False),
        ("", False),
        (None, False),
        (20241105, False),
    ],
)
def test_revision_is_known_or_possible_or_neither(text: Any, expected: bool | None) -> None:
    assert is_revision(text) is expected


BOTH = ["client", "server"]
LISTS = ["prompts/list", "resources/list", "resources/templates/list", "tools/list"]


@pytest.mark.parametrize(
    ("row", "sides", "on", "methods", "only_broken"),
    [
        ("STDIO-2", ["server"], ["line"], [], False),
        ("TX-21", ["client"], ["http_request"], [], False),
        ("SHL-3", ["server"], ["close"], [], False),
        ("SAMP-6", ["server"], ["request"], ["sampling/createMessage"], False),
        ("ROOT-2", ["client"], ["result"], ["roots/list"], False),
        ("MRTR-5", ["server"], ["result"], [], False),
        ("CXL-4", ["client"], ["notification"], ["notifications/cancelled"], False),
        ("LOG-3", BOTH, ["notification", "request"], ["logging/setLevel", "notifications/message"],
            False),
        # Parts of shapes are counted only where they are broken.
        ("TOOL-7", ["server"], ["result"], ["tools/list"], True),
        ("CAP-1", BOTH, ["request", "result"], ["initialize", "server/discover"], True),
        ("META-19", BOTH, ["request", "result"], ["initialize", *LISTS], True),
        ("META-1", BOTH, ["message"], [], True),
    ],
)  # fmt: skip
def test_row_is_judged_on_its_opportunities(
    row: str, sides: list[str], on: list[str], methods: list[str], only_broken: bool
) -> None:
    found = opportunity_of(row)
    assert found is not None
    assert (sorted(found.sides), sorted(found.on)) == (sides, on)
    assert (sorted(found.methods), found.only_broken) == (methods, only_broken)


def test_row_that_has_no_rule_has_no_opportunity() -> None:
    assert opportunity_of("DEC-9") is None
