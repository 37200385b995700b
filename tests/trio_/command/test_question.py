"""Questions as dialogues: what is typed, what is said to it, and the answer that it comes to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcp_core import FormSchema
from mcp_core.types import ElicitResult
from mcp_trio._command._question import fill_in, visit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_trio._command._question import Dialogue, Say

CTRL_D = None
ONE = {"enum": ["aisle", "window"]}
TITLED = {"oneOf": [{"const": "a", "title": "On the aisle"}, {"const": "w", "title": "By the window"}]}
NUMBERS = {"enum": ["4", "2", "1"]}
SEVERAL = {"type": "array", "items": {"enum": ["tea", "coffee", "milk"]}}


def held(begin: Callable[[Say], Dialogue], typed: Sequence[str | None]) -> tuple[ElicitResult, list[str]]:
    """The answer when just this is typed, and all lines that were shown; prompts with what was typed behind them."""
    lines: list[str] = []

    def text(*parts: Any) -> str:
        return "".join(part if isinstance(part, str) else part[0] for part in parts)

    dialogue = begin(lambda *parts: lines.append(text(*parts)))
    prompt = next(dialogue)
    for at, line in enumerate(typed):
        lines.append(text(*prompt) + ("^D" if line is None else line))
        try:
            prompt = dialogue.send(line)
        except StopIteration as end:
            assert at == len(typed) - 1, f"over after {line!r}"
            answer: ElicitResult = end.value
            return answer, lines
    raise AssertionError(f"still asks: {text(*prompt)}")


def filled(
    fields: dict[str, Any], typed: Sequence[str | None], *, required: Sequence[str] = ()
) -> tuple[ElicitResult, list[str]]:
    form = msgspec.convert({"type": "object", "properties": fields, "required": [*required]}, FormSchema)
    return held(lambda say: fill_in("The server", "Fill this in", form, say), typed)


# -- One field ----------------------------------------------------------------------------------------------------------------

ASKED = [
    # of each kind: the prompt, what is typed, and the value
    ({"type": "string"}, "text: ", "  as it is ", "  as it is "),
    ({"type": "string", "minLength": 2, "maxLength": 4}, "text, 2 to 4 characters: ", "Zoë", "Zoë"),
    ({"type": "string", "minLength": 2}, "text, 2 or more characters: ", "Zoë", "Zoë"),
    ({"type": "string", "maxLength": 2}, "text, 2 or less characters: ", "Zo", "Zo"),
    ({"type": "string", "format": "email"}, "an e-mail address: ", " a@b.c ", "a@b.c"),
    ({"type": "string", "format": "uri"}, "a URI with its scheme: ", "urn:a", "urn:a"),
    ({"type": "string", "format": "date"}, "a date like 2026-07-28: ", "2024-02-29", "2024-02-29"),
    (
        {"type": "string", "format": "date-time"},
        "28T09:30:00Z: ",
        "2024-02-29T01:02:03z",
        "2024-02-29T01:02:03z",
    ),
    ({"type": "integer"}, "integer: ", " -3 ", -3),
    ({"type": "integer"}, "integer: ", "3.0", 3),
    ({"type": "integer", "minimum": 1, "maximum": 8}, "integer, 1 to 8: ", "8", 8),
    ({"type": "number", "minimum": 0.5}, "number, 0.5 or more: ", "5e-1", 0.5),
    ({"type": "number"}, "number: ", "2", 2),
    ({"type": "boolean"}, "yes or no: ", "Y", True),
    ({"type": "boolean"}, "yes or no: ", "no", False),
    ({"type": "string", **ONE}, "number or name: ", "window", "window"),
    ({"type": "string", **ONE}, "number or name: ", "2", "window"),
    ({"type": "string", **ONE}, "number or name: ", " WINDOW ", "window"),
    ({"type": "string", **TITLED}, "number or name: ", "by the window", "w"),
    ({"type": "string", **ONE, "enumNames": ["Aisle seat", "Window seat"]}, "name: ", "aisle seat", "aisle"),
    ({"type": "string", **ONE, "enumNames": ["too few"]}, "name: ", "1", "aisle"),
    ({"type": "string", **NUMBERS}, "  name: ", "1", "1"),
    (SEVERAL, "numbers or names, with commas between them; - for none: ", "milk, 1,tea,", ["milk", "tea"]),
    (SEVERAL, "none: ", "-", []),
    ({**SEVERAL, "minItems": 1, "maxItems": 2}, "between them, 1 to 2 of them: ", "1,2", ["tea", "coffee"]),
    ({**SEVERAL, "items": {"anyOf": TITLED["oneOf"]}}, "none: ", "On the aisle", ["a"]),
]


@pytest.mark.parametrize(("field", "prompt", "typed", "value"), ASKED)
def test_a_field_of_each_kind(field: dict[str, Any], prompt: str, typed: str, value: Any) -> None:
    answer, lines = filled({"a": field}, [typed], required=["a"])
    assert answer == ElicitResult(action="accept", content={"a": value})
    assert lines[-1].endswith(prompt + typed)
    assert type((answer.content or {})["a"]) is type(value)


MISTYPED = [
    ({"type": "string", "minLength": 3}, "ab", "ab is less than 3 characters", "abc"),
    ({"type": "string", "format": "email"}, "a", "a is not an e-mail address", "a@b"),
    ({"type": "string", "format": "uri"}, "a", "a is not a URI with its scheme", "a:b"),
    ({"type": "string", "format": "date"}, "2023-02-29", "2023-02-29 is not a date", "2023-02-28"),
    ({"type": "string", "format": "date"}, "20230228", "is not a date", "2023-02-28"),
    (
        {"type": "string", "format": "date-time"},
        "2023-02-28T09:00:00",
        "is not a time with its zone",
        "2023-02-28T09:00:00Z",
    ),
    (
        {"type": "string", "format": "date-time"},
        "2023-02-28T25:00:00Z",
        "is not a time",
        "2023-02-28T09:00:00Z",
    ),
    ({"type": "integer"}, "1.5", "1.5 is no integer; one is 3", "1"),
    ({"type": "integer"}, "three", "three is no integer", "3"),
    ({"type": "integer"}, "true", "true is no integer", "3"),
    ({"type": "integer"}, '"3"', "is no integer", "3"),
    ({"type": "integer", "maximum": 8}, "9", "9 is more than 8", "8"),
    ({"type": "number"}, "1,5", "1,5 is no number; one is 1.5", "1.5"),
    ({"type": "number"}, "NaN", "NaN is no number", "1"),
    ({"type": "number"}, "1e999", "1e999 is no number", "1"),
    ({"type": "number"}, "9" * 5000, " is no number", "1"),
    ({"type": "boolean"}, "1", "1 is neither yes nor no", "yes"),
    ({"type": "string", **ONE}, "3", "3 is none of the choices", "1"),
    ({"type": "string", **ONE}, "0", "0 is none of the choices", "1"),
    ({"type": "string", **ONE}, "9" * 5000, " is none of the choices", "1"),
    ({"type": "string", "enum": ["A", "a", "b"]}, "B,", "B, is none of the choices", "B"),
    (
        {"type": "string", "oneOf": [{"const": "a", "title": "x"}, {"const": "b", "title": "X"}]},
        "x",
        "x is none",
        "a",
    ),
    ({"type": "string", **NUMBERS}, "3", "3 is none of the choices", "4"),
    (SEVERAL, "tea, wine", "wine is none of the choices", "tea"),
    ({**SEVERAL, "minItems": 2}, "tea,tea", "tea is less than 2 items", "tea,milk"),
    ({**SEVERAL, "minItems": 1}, "-", "none is less than 1 items", "tea"),
    ({**SEVERAL, "minItems": 1}, ",", "none is less than 1 items", "tea"),
    ({"type": "string"}, "", "This cannot be left out", "a"),
    ({"type": "boolean"}, "  ", "This cannot be left out", "no"),
]


@pytest.mark.parametrize(("field", "typed", "complaint", "better"), MISTYPED)
def test_what_does_not_fit_is_asked_for_again(
    field: dict[str, Any], typed: str, complaint: str, better: str
) -> None:
    answer, lines = filled({"a": field}, [typed, better], required=["a"])
    assert answer.action == "accept"
    assert complaint in lines[-2]
    assert lines[-3].removesuffix(typed) == lines[-1].removesuffix(better)


DEFAULTS = [
    ({"type": "string", "default": "Oslo"}, "text [Oslo]: ", "Oslo"),
    ({"type": "integer", "default": 2}, "integer [2]: ", 2),
    ({"type": "number", "default": 0.5}, "number [0.5]: ", 0.5),
    ({"type": "boolean", "default": True}, "yes or no [yes]: ", True),
    ({"type": "boolean", "default": False}, "yes or no [no]: ", False),
    ({"type": "string", **ONE, "default": "window"}, "number or name [window]: ", "window"),
    ({**SEVERAL, "default": ["tea", "milk"]}, "none [tea, milk]: ", ["tea", "milk"]),
    ({**SEVERAL, "default": []}, "none [none]: ", []),
]


@pytest.mark.parametrize("required", [["a"], []])
@pytest.mark.parametrize(("field", "prompt", "value"), DEFAULTS)
def test_an_empty_line_takes_the_default(
    field: dict[str, Any], prompt: str, value: object, required: list[str]
) -> None:
    answer, lines = filled({"a": field}, [""], required=required)
    assert answer.content == {"a": value}
    assert lines[-1].endswith(prompt)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "string"},
        {"type": "integer", "minimum": 1},
        {"type": "boolean"},
        {"type": "string", **ONE},
        {**SEVERAL, "minItems": 1},
        {"type": "integer", "maximum": 1, "default": 2},  # a default that cannot stand there is none
        {"type": "string", **ONE, "default": "roof"},
    ],
)
def test_an_empty_line_leaves_out_what_is_optional(field: dict[str, Any]) -> None:
    answer, lines = filled({"a": field}, [""])
    assert answer == ElicitResult(action="accept", content={})
    assert lines[-1].endswith(", optional: ")


# -- The form -----------------------------------------------------------------------------------------------------------------


def test_a_dialogue_from_its_beginning_to_its_end() -> None:
    fields = {
        "count": {"type": "integer", "title": "Seats", "description": "How many?", "minimum": 1},
        "where": {"type": "string", **TITLED, "default": "a"},
        "note": {"type": "string"},
    }
    answer, lines = filled(fields, ["0", "2", "", "", "4", "no", "3", "quiet", "yes"], required=["count"])
    assert answer.content == {"count": 2, "where": "a", "note": "quiet"}
    assert lines == [
        "",
        "The server asks:",
        "  Fill this in",
        "An empty line takes what is in brackets, or leaves out what is optional; ! declines, Ctrl+D cancels.",
        "Seats: How many?",
        "  integer, 1 or more: 0",
        "  0 is less than 1",
        "  integer, 1 or more: 2",
        "where",
        "    1  a: On the aisle",
        "    2  w: By the window",
        "  number or name [a]: ",
        "note",
        "  text, optional: ",
        "This is what goes out:",
        "  1  Seats: 2",
        "  2  where: a",
        "  3  note: left out",
        "Send it? yes, or the number of a line to change it: 4",
        "  Write yes, ! to decline, or a number from 1 to 3",
        "Send it? yes, or the number of a line to change it: no",
        "  Write yes, ! to decline, or a number from 1 to 3",
        "Send it? yes, or the number of a line to change it: 3",
        "note",
        "  text, optional: quiet",
        "This is what goes out:",
        "  1  Seats: 2",
        "  2  where: a",
        "  3  note: quiet",
        "Send it? yes, or the number of a line to change it: yes",
    ]


def test_what_was_typed_can_be_taken_back() -> None:
    fields = {"a": {"type": "string"}, "b": {"type": "string"}}
    answer, _ = filled(fields, ["1", "2", "1", "", "y"])
    assert answer.content == {"b": "2"}


TWO = {"a": {"type": "string"}, "b": {"type": "integer"}}
REFUSED: list[tuple[dict[str, Any], list[str | None], str]] = [
    (TWO, [CTRL_D], "cancel"),
    (TWO, ["!"], "decline"),
    (TWO, ["a", " ! "], "decline"),
    (TWO, ["a", "x", CTRL_D], "cancel"),
    (TWO, ["a", "1", "!"], "decline"),
    (TWO, ["a", "1", CTRL_D], "cancel"),
    (TWO, ["a", "1", "1", CTRL_D], "cancel"),
    ({}, [CTRL_D], "cancel"),
    ({}, ["!"], "decline"),
    ({}, ["no"], "decline"),
    ({}, ["", "N"], "decline"),
]


@pytest.mark.requirement("ELIC-22")
@pytest.mark.parametrize(("fields", "typed", "action"), REFUSED)
def test_a_form_can_be_refused_anywhere(fields: dict[str, Any], typed: list[str | None], action: str) -> None:
    answer, lines = filled(fields, typed)
    assert answer == ElicitResult(action=action)  # type: ignore[arg-type]
    assert lines[1] == "The server asks:"
    assert "! declines, Ctrl+D cancels" in lines[3] or "no to decline (Ctrl+D cancels)" in lines[3]


def test_a_form_without_fields_wants_a_word() -> None:
    answer, lines = filled({}, ["", "1", "yes"])
    assert answer == ElicitResult(action="accept", content={})
    assert lines.count("  Write yes or no") == 2


# -- Pages --------------------------------------------------------------------------------------------------------------------

WARNINGS = ["  The name of this host is in Punycode", "  What you enter there is not encrypted"]
PAGES: list[tuple[str, str, list[str]]] = [
    ("https://example.com/login?next=https://a.b/", "example.com", []),
    ("http://example.com", "example.com", WARNINGS[1:]),
    ("HTTPS://xn--exmple-cua.com:8443#a", "xn--exmple-cua.com:8443", WARNINGS[:1]),
    ("http://good.example.xn--p1ai?a/b", "good.example.xn--p1ai", WARNINGS),
]


@pytest.mark.requirement("ELIC-18")
@pytest.mark.parametrize(("url", "host", "warnings"), PAGES)
def test_a_page_is_shown_whole_and_its_host_stands_out(url: str, host: str, warnings: list[str]) -> None:
    said: list[tuple[Any, ...]] = []
    dialogue = visit("The server", "Log in", url, lambda *parts: said.append(parts))
    next(dialogue)
    address = said[3]
    assert "".join(part if isinstance(part, str) else part[0] for part in address) == f"  {url}"
    assert (host, "bold") in address
    assert [line[0][0].partition(":")[0].partition(" on its way")[0] for line in said[4:-1]] == warnings
    assert said[-1][0][0] == f"It is not opened from here. If you trust {host}, open it yourself."


CONSENTS: list[tuple[list[str | None], str]] = [
    (["yes"], "accept"),
    (["", "y"], "accept"),
    (["no"], "decline"),
    (["", "!"], "decline"),
    (["maybe", CTRL_D], "cancel"),
]


@pytest.mark.requirement("ELIC-18")
@pytest.mark.parametrize(("typed", "action"), CONSENTS)
def test_nobody_goes_to_a_page_without_a_word(typed: list[str | None], action: str) -> None:
    answer, _ = held(lambda say: visit("The server", "Log in", "https://a.b/", say), typed)
    assert answer == ElicitResult(action=action)  # type: ignore[arg-type]
