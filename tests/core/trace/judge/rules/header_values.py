"""The verdicts on each header of each argument, and on annotations, in `header_values.txt`.

    python -m tests.core.trace.judge.rules.header_values

writes the file again. It has what `answers.txt` has.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.core.trace.judge.conversations import Sent, error
from tests.core.trace.judge.rules import headers
from tests.core.trace.judge.rules.http import Headers, got
from tests.core.trace.judge.rules.verdicts import verdicts_by_answer
from tests.kept import read_kept, write_kept

__all__ = ["HEADER_CASES", "HeaderCase", "header_verdicts", "kept_header_verdicts"]

_FILE: Final = Path(__file__).with_name("header_values.txt")
_REVISION: Final = "2026-07-28"
_ABSENT: Final = object()
_VALUES: Final[dict[str, Any]] = {
    **{repr(each): each for each in ("x", "é", " x", "", "5", 5, -1, 5.5, True, False, None)},
    "[]": [],
    "an encoded text": "=?base64?eA==?=",
    "no argument": _ABSENT,
}
_TEXTS: Final = (
    *(None, "x", "X", "", "5", "5.0", "05", "6", "-1", "5.5", "1e999", "true", "True", "1"),
    *("=?base64?eA==?=", "=?base64?w6k=?=", "=?base64?IHg=?=", "=?base64?NQ==?=", "=?base64?*?="),
)
_RESPONSES: Final = {
    "200": headers.OK,
    "307": got(2, 307, headers={"location": "/x"}),
    "399": got(2, 399),
    "400": got(2, 400),
    "400 for the headers": headers.MISMATCH,
    "400 for the params": got(2, 400, error(2, -32602)),
}
_AT: Final[dict[str, Any]] = {"type": "string", "x-mcp-header": "A"}
_SCHEMAS: Final[dict[str, Any]] = {
    **{f"of type {kind}": {"a": {**_AT, "type": kind}} for kind in ("integer", "number", "null")},
    "of two types": {"a": {**_AT, "type": ["string", "null"]}},
    "without a type": {"a": {"x-mcp-header": "A"}},
    **{f"named {name!r}": {"a": {**_AT, "x-mcp-header": name}} for name in ("", "a b", "é")},
    **{f"named {name!r}": {"a": {**_AT, "x-mcp-header": name}} for name in (5, "!")},
    "twice": {"a": _AT, "b": {**_AT, "x-mcp-header": "a"}},
    "of two headers": {"a": _AT, "b": {**_AT, "x-mcp-header": "B"}},
    "below": {"b": {"type": "object", "properties": {"a": _AT}}},
    "of items": {"b": {"type": "array", "items": _AT}},
    "of an alternative": {"b": {"anyOf": [{"type": "object", "properties": {"a": _AT}}]}},
    "of a definition": {"b": {"$defs": {"a": _AT}}},
    **{f"in {key}": {"b": {key: _AT}} for key in ("const", "default", "examples", "enum", "not")},
    "in a list of examples": {"b": {"examples": [_AT]}},
    "of a property that is named so": {"x-mcp-header": {"type": "string"}},
    "of none": {"b": {"type": "string"}},
}


class HeaderCase(NamedTuple):
    """The lines before, and those that are judged after them, by name."""

    said: list[Sent]
    answers: dict[str, list[Sent]]


def _cases() -> dict[str, HeaderCase]:
    """Return the cases by what is annotated and by the argument."""
    found = {}
    tools = headers.listed(headers.tool(headers.REGION))
    for name, value in _VALUES.items():
        given: dict[str, Any] = {} if value is _ABSENT else {"region": value}
        calls = {str(text): [headers.called(headers=_header(text), **given)] for text in _TEXTS}
        found[f"argument {name}"] = HeaderCase(tools, calls)
    for text in ("x", "y", None):
        call = headers.called(headers=_header(text), region="x")
        responses = {name: [each] for name, each in _RESPONSES.items()}
        found[f"response to the header {text}"] = HeaderCase([*tools, call], responses)
    for name, properties in _SCHEMAS.items():
        request, listed = headers.listed(headers.tool(properties))
        answers = {
            "listed": [listed],
            "called": [listed, headers.called()],
            "called with a header": [listed, headers.called(headers={"mcp-param-a": "x"})],
        }
        found[f"annotation {name}"] = HeaderCase([request], answers)
    return found


def header_verdicts(name: str) -> str:
    """Return the verdicts in a case."""
    each = HEADER_CASES[name]
    return verdicts_by_answer(None, each.said, each.answers, _REVISION)


def _header(text: str | None) -> Headers:
    return {} if text is None else {"mcp-param-region": text}


HEADER_CASES: Final = _cases()


def kept_header_verdicts() -> dict[str, str]:
    """Return the verdicts in the file by the names of the cases."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: header_verdicts(name) for name in HEADER_CASES})
