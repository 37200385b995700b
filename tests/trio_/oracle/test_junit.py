"""Reports in the format of JUnit: counts, names, and texts that a server has chosen."""

from __future__ import annotations

import pytest

from mcp_core.trace import ROWS
from mcp_trio.oracle._junit import attribute, junit_case, junit_suite, row_name


def test_report_has_its_cases_and_counts() -> None:
    cases = junit_case("a") + junit_case("b", "<failure/>")
    assert junit_suite("all", cases, 2, 1, wanted="it ended") == (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<testsuites><testsuite name="all" tests="2" failures="1" errors="0">\n'
        '<testcase classname="mcp" name="a"></testcase>\n'
        '<testcase classname="mcp" name="b"><failure/></testcase>\n'
        "</testsuite></testsuites>\n"
    )


def test_error_of_a_run_is_a_case_of_its_own() -> None:
    assert junit_suite("all", "", 0, 0, 'a "b"', wanted="it ended") == (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        '<testsuites><testsuite name="all" tests="1" failures="0" errors="1">\n'
        '<testcase classname="mcp" name="it ended"><error message=\'a "b"\'/></testcase>\n'
        "</testsuite></testsuites>\n"
    )


def test_text_is_escaped_for_a_terminal_and_for_xml() -> None:
    assert attribute("a\x1b<&") == '"a\\u001b&lt;&amp;"'


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ("RPC-7", f"{ROWS['RPC-7'].title} [RPC-7]"),
        ("crash", "The process keeps running [crash]"),
        ("hang", "The process ends when its connection has ended [hang]"),
        ("endless", "The client bounds what it follows [endless]"),
        ("my_check", "An invariant holds [my_check]"),
        ("no row", "[no row]"),
    ],
)
def test_row_is_named_by_its_requirement(row: str, name: str) -> None:
    assert row_name(row) == name
