"""Reports in the format of JUnit, which continuous integration shows."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import quoteattr

from mcp_core import escape_text
from mcp_core.trace import ROWS

__all__ = ["attribute", "junit_case", "junit_suite", "row_name"]

# What the fuzzer finds beside the rows, as a requirement.
_OTHER_ROWS: Final = {
    "crash": "The process keeps running",
    "hang": "The process ends when its connection has ended",
    "endless": "The client bounds what it follows",
}


def row_name(row: str) -> str:
    """Return a row's requirement in words, with its id at the end.

    A row that is a name of Python is an invariant, a check by the server's author.
    """
    known = ROWS.get(row)
    other = _OTHER_ROWS.get(row, "An invariant holds" if row.isidentifier() else "")
    words = known.title if known is not None else other
    return f"{words} [{row}]".lstrip()


def attribute(text: str) -> str:
    """Return `text` as the value of an XML attribute, with its quotes."""
    return quoteattr(escape_text(text))


def junit_case(name: str, content: str = "") -> str:
    """Return a test case. `content` is XML; without it the case has passed."""
    return f'<testcase classname="mcp" name={attribute(name)}>{content}</testcase>\n'


def junit_suite(
    name: str, cases: str, total: int, failed: int, error: str = "", *, wanted: str
) -> str:
    """Return a report.

    Args:
        name: the suite's name.
        cases: its test cases.
        total: how many there are.
        failed: how many of them have failed.
        error: why not everything was judged. It becomes a test case of its own.
        wanted: the name of that test case.
    """
    if error:
        cases += junit_case(wanted, f"<error message={attribute(error)}/>")
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n'
        f'<testsuites><testsuite name={attribute(name)} tests="{total + bool(error)}" '
        f'failures="{failed}" errors="{int(bool(error))}">\n{cases}</testsuite></testsuites>\n'
    )
