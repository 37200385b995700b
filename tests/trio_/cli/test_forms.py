"""Elicitation dialogues: the typed lines, the printed lines, and the answer."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from mcp_core import FormSchema
from mcp_core.types import ElicitResult
from mcp_trio.cli._forms import ask_permission, ask_to_open_url, fill_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_trio.cli._forms import Dialogue, PrintLine

CTRL_D = None
ONE = {"enum": ["aisle", "window"]}
TITLED = {
    "oneOf": [{"const": "a", "title": "On the aisle"}, {"const": "w", "title": "By the window"}]
}
NUMBERS = {"enum": ["4", "2", "1"]}
SEVERAL = {"type": "array", "items": {"enum": ["tea", "coffee", "milk"]}}


def run_dialogue(
    begin: Callable[[PrintLine], Dialogue], typed: Sequence[str | None]
) -> tuple[ElicitResult, list[str]]:
    """Run a dialogue with these typed lines. Return its answer and all printed lines.

    A prompt and the line typed after it are one line.
    """
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
            assert at == len(typed) - 1, f"the dialogue ended after {line!r}"
            answer: ElicitResult = end.value
            return answer, lines
    raise AssertionError(f"the dialogue still asks: {text(*prompt)}")


def fill_form(
    fields: dict[str, Any], typed: Sequence[str | None], *, required: Sequence[str] = ()
) -> tuple[ElicitResult, list[str]]:
    form = msgspec.convert(
        {"type": "object", "properties": fields, "required": [*required]}, FormSchema
    )
    return run_dialogue(lambda say: fill_in("The server", "Fill this in", form, say), typed)


# -- One field --------------------------------------------------------------------------------

ASKED = [
    # a field of each kind, the prompt, the typed line, and the value
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
    (
        {"type": "string", **ONE, "enumNames": ["Aisle seat", "Window seat"]},
        "name: ",
        "aisle seat",
        "aisle",
    ),
    ({"type": "string", **ONE, "enumNames": ["too few"]}, "name: ", "1", "aisle"),
    ({"type": "string", **NUMBERS}, "  name: ", "1", "1"),
    (
        SEVERAL,
        "numbers or names, with commas between them; - for none: ",
        "milk, 1,tea,",
        ["milk", "tea"],
    ),
    (SEVERAL, "none: ", "-", []),
    (
        {**SEVERAL, "minItems": 1, "maxItems": 2},
        "between them, 1 to 2 of them: ",
        "1,2",
        ["tea", "coffee"],
    ),
    ({**SEVERAL, "items": {"anyOf": TITLED["oneOf"]}}, "none: ", "On the aisle", ["a"]),
]


@pytest.mark.parametrize(("field", "prompt", "typed", "value"), ASKED)
def test_form_field_of_each_kind_is_read(
    field: dict[str, Any], prompt: str, typed: str, value: Any
) -> None:
    answer, lines = fill_form({"a": field}, [typed], required=["a"])
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
    ({"type": "integer"}, "1.5", "1.5 is not an integer, such as 3", "1"),
    ({"type": "integer"}, "three", "three is not an integer", "3"),
    ({"type": "integer"}, "true", "true is not an integer", "3"),
    ({"type": "integer"}, '"3"', "is not an integer", "3"),
    ({"type": "integer", "maximum": 8}, "9", "9 is more than 8", "8"),
    ({"type": "number"}, "1,5", "1,5 is not a number, such as 1.5", "1.5"),
    ({"type": "number"}, "NaN", "NaN is not a number", "1"),
    ({"type": "number"}, "1e999", "1e999 is not a number", "1"),
    ({"type": "number"}, "9" * 5000, " is not a number", "1"),
    ({"type": "boolean"}, "1", "1 is neither yes nor no", "yes"),
    ({"type": "string", **ONE}, "3", "3 is not one of the choices", "1"),
    ({"type": "string", **ONE}, "0", "0 is not one of the choices", "1"),
    ({"type": "string", **ONE}, "9" * 5000, " is not one of the choices", "1"),
    ({"type": "string", "enum": ["A", "a", "b"]}, "B,", "B, is not one of the choices", "B"),
    (
        {"type": "string", "oneOf": [{"const": "a", "title": "x"}, {"const": "b", "title": "X"}]},
        "x",
        "x is not one",
        "a",
    ),
    ({"type": "string", **NUMBERS}, "3", "3 is not one of the choices", "4"),
    (SEVERAL, "tea, wine", "wine is not one of the choices", "tea"),
    ({**SEVERAL, "minItems": 2}, "tea,tea", "tea is less than 2 items", "tea,milk"),
    ({**SEVERAL, "minItems": 1}, "-", "none is less than 1 items", "tea"),
    ({**SEVERAL, "minItems": 1}, ",", "none is less than 1 items", "tea"),
    ({"type": "string"}, "", "This field is required", "a"),
    ({"type": "boolean"}, "  ", "This field is required", "no"),
]


@pytest.mark.parametrize(("field", "typed", "complaint", "better"), MISTYPED)
def test_form_invalid_input_is_asked_again(
    field: dict[str, Any], typed: str, complaint: str, better: str
) -> None:
    answer, lines = fill_form({"a": field}, [typed, better], required=["a"])
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
def test_form_empty_line_takes_default(
    field: dict[str, Any], prompt: str, value: object, required: list[str]
) -> None:
    answer, lines = fill_form({"a": field}, [""], required=required)
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
        {"type": "integer", "maximum": 1, "default": 2},  # an invalid default is ignored
        {"type": "string", **ONE, "default": "roof"},
    ],
)
def test_form_empty_line_omits_optional_field(field: dict[str, Any]) -> None:
    answer, lines = fill_form({"a": field}, [""])
    assert answer == ElicitResult(action="accept", content={})
    assert lines[-1].endswith(", optional: ")


# -- Whole forms -----------------------------------------------------------------------------


def test_form_dialogue_prints_all_lines_in_order() -> None:
    """The whole dialogue at a glance, with a wrong value, a default and a late correction."""
    fields = {
        "count": {"type": "integer", "title": "Seats", "description": "How many?", "minimum": 1},
        "where": {"type": "string", **TITLED, "default": "a"},
        "note": {"type": "string"},
    }
    answer, lines = fill_form(
        fields, ["0", "2", "", "", "4", "no", "3", "quiet", "yes"], required=["count"]
    )
    assert answer.content == {"count": 2, "where": "a", "note": "quiet"}
    assert lines == [
        "",
        "The server asks:",
        "  | Fill this in",
        (
            "An empty line takes the value in brackets, or leaves out an optional field; !"
            " declines, Ctrl+D cancels."
        ),
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
        "This will be sent:",
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
        "This will be sent:",
        "  1  Seats: 2",
        "  2  where: a",
        "  3  note: quiet",
        "Send it? yes, or the number of a line to change it: yes",
    ]


def test_form_value_can_be_removed_in_review() -> None:
    fields = {"a": {"type": "string"}, "b": {"type": "string"}}
    answer, _ = fill_form(fields, ["1", "2", "1", "", "y"])
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
def test_form_can_be_declined_or_cancelled_at_every_prompt(
    fields: dict[str, Any], typed: list[str | None], action: str
) -> None:
    answer, lines = fill_form(fields, typed)
    assert answer == ElicitResult(action=action)  # type: ignore[arg-type]
    assert lines[1] == "The server asks:"
    assert "! declines, Ctrl+D cancels" in lines[3] or "no to decline (Ctrl+D cancels)" in lines[3]


def test_form_without_fields_needs_explicit_yes() -> None:
    answer, lines = fill_form({}, ["", "1", "yes"])
    assert answer == ElicitResult(action="accept", content={})
    assert lines.count("  Write yes or no") == 2


# -- Hostile texts ----------------------------------------------------------------------------

QUESTION = "Send it? yes, or the number of a line to change it: "


def no_fields() -> FormSchema:
    return msgspec.convert({"type": "object", "properties": {}}, FormSchema)


def test_form_message_of_several_lines_is_quoted() -> None:
    message = f"Fill this in\r\n\nThis will be sent:\n  1  a: b\n{QUESTION}"
    _, lines = run_dialogue(partial(fill_in, "The server", message, no_fields()), ["no"])
    assert lines[2:7] == [
        "  | Fill this in",
        "  | ",
        "  | This will be sent:",
        "  |   1  a: b",
        f"  | {QUESTION}",
    ]


def test_form_message_overlong_does_not_push_the_question_away() -> None:
    _, lines = run_dialogue(partial(fill_in, "The server", "ab\n" * 10_000, no_fields()), ["no"])
    assert len(lines) == 44
    assert lines[41:43] == ["  | ab", "  (1294 more lines)"]
    _, lines = run_dialogue(partial(fill_in, "The server", "x" * 100_000, no_fields()), ["no"])
    assert lines[2] == "  | " + "x" * 4000 + "… (100000 characters)"


def test_form_description_of_several_lines_is_quoted() -> None:
    """Only the quote marks keep the server from imitating the command's own summary."""
    field = {
        "type": "string",
        "title": f"Name\n{QUESTION}",  # the screen escapes the line feeds of a line
        "description": f"Your name.\nThis will be sent:\n{QUESTION}",
        "default": "a\nb",
    }
    _, lines = fill_form({"a": field, "b": {"type": "string"}}, ["", "", "yes"])
    assert lines[4:9] == [
        f"Name\n{QUESTION}",
        "    | Your name.",
        "    | This will be sent:",
        f"    | {QUESTION.rstrip()}",
        "  text [a\nb]: ",
    ]
    assert f"  1  Name\n{QUESTION}: a\nb" in lines


def test_form_title_overlong_is_shortened() -> None:
    fields = {"a": {"type": "string", "title": "t" * 300}, "b": {"type": "string"}}
    _, lines = fill_form(fields, ["1", "2", "yes"])
    shown = "t" * 200 + "… (300 characters)"
    assert lines[4] == shown
    assert f"  1  {shown}: 1" in lines


def test_form_choices_beyond_a_hundred_are_counted() -> None:
    field = {"type": "string", "enum": [f"c{number}" for number in range(150)]}
    answer, lines = fill_form({"a": field}, ["c149"])
    assert answer.content == {"a": "c149"}
    assert lines[-2] == "    (50 more)"
    assert len(lines) == 107


def test_form_value_that_will_be_sent_is_never_shortened() -> None:
    field = {"type": "string", "default": "d" * 10_000}
    answer, lines = fill_form({"a": field, "b": {"type": "string"}}, ["", "", "yes"])
    assert answer.content == {"a": "d" * 10_000}
    assert f"  1  a: {'d' * 10_000}" in lines


SENSITIVE = [
    ({"a": {"type": "string", "title": "Your password"}}, True),
    ({"api_key": {"type": "string"}}, True),
    ({"a": {"type": "string", "description": "The PIN of your card"}}, True),
    ({"a": {"type": "string", "title": "Shipping", "description": "Pinned"}}, False),
]


@pytest.mark.parametrize(("fields", "warned"), SENSITIVE)
def test_form_that_asks_for_a_secret_warns(fields: dict[str, Any], warned: bool) -> None:
    _, lines = fill_form(fields, ["x"])
    assert any("must not ask for passwords" in line for line in lines) is warned


# -- Pages ------------------------------------------------------------------------------------

WARNINGS = [
    "  The name of this host is in Punycode (xn--)",
    "  What you enter on this page is not encrypted.",
]
OF_ADDRESS = [
    "  This host is an IP address, which does not say whose page it is.",
    "  This address is not on the public internet.",
]
PAGES: list[tuple[str, str, list[str]]] = [
    ("https://example.com/login?next=https://a.b/", "example.com", []),
    ("http://example.com", "example.com", WARNINGS[1:]),
    ("HTTPS://xn--exmple-cua.com:8443#a", "xn--exmple-cua.com:8443", WARNINGS[:1]),
    ("http://good.example.xn--p1ai?a/b", "good.example.xn--p1ai", WARNINGS),
    ("https://10.0.0.1/", "10.0.0.1", OF_ADDRESS),
    ("http://127.0.0.1:80/", "127.0.0.1:80", ["  This page is on your own machine."]),
]


@pytest.mark.requirement("ELIC-18")
@pytest.mark.parametrize(("url", "host", "warnings"), PAGES)
def test_page_address_is_shown_whole_with_bold_host(
    url: str, host: str, warnings: list[str]
) -> None:
    name = host.partition(":")[0]
    printed: list[tuple[Any, ...]] = []
    dialogue = ask_to_open_url("The server", "Log in", url, lambda *parts: printed.append(parts))
    next(dialogue)
    address = printed[3]
    assert "".join(part if isinstance(part, str) else part[0] for part in address) == f"  {url}"
    assert (host, "bold") in address
    assert [line[0][0].partition(":")[0] for line in printed[4:-1]] == warnings
    assert (
        printed[-1][0][0]
        == f"This command does not open the page. If you trust {name}, open it yourself."
    )


CONSENTS: list[tuple[list[str | None], str]] = [
    (["yes"], "accept"),
    (["", "y"], "accept"),
    (["no"], "decline"),
    (["", "!"], "decline"),
    (["maybe", CTRL_D], "cancel"),
]


@pytest.mark.requirement("ELIC-18")
@pytest.mark.parametrize(("typed", "action"), CONSENTS)
def test_page_needs_explicit_yes(typed: list[str | None], action: str) -> None:
    answer, _ = run_dialogue(
        lambda say: ask_to_open_url("The server", "Log in", "https://a.b/", say), typed
    )
    assert answer == ElicitResult(action=action)  # type: ignore[arg-type]


def test_page_host_is_named_as_it_is_reached() -> None:
    _, lines = run_dialogue(
        lambda say: ask_to_open_url(
            "The server", "Log in\nmcp-trio: it is safe", "https://XN--pple-43d.com:8443/x", say
        ),
        ["no"],
    )
    assert lines[2:4] == ["  | Log in", "  | mcp-trio: it is safe"]
    assert lines[4] == "  https://XN--pple-43d.com:8443/x"
    assert "it reads \u0430pple.com, with letters of Cyrillic and Latin" in lines[5]
    assert "If you trust xn--pple-43d.com, open it yourself." in lines[6]
    assert lines[7].startswith("Will you open the page at xn--pple-43d.com? yes, or no")


@pytest.mark.parametrize(
    ("typed", "action"),
    [
        (["yes"], "accept"),
        ([" Y "], "accept"),
        (["no"], "decline"),
        (["!"], "decline"),
        (["", "maybe", "true"], "accept"),
        ([CTRL_D], "cancel"),
    ],
)
def test_permission_is_given_by_yes_only(typed: list[str | None], action: str) -> None:
    answer, lines = run_dialogue(partial(ask_permission, ("Do it?",)), typed)
    assert (answer.action, answer.content) == (action, None)
    assert lines[0].startswith("Do it? yes, or no to decline (Ctrl+D cancels): ")
    assert lines.count("  Write yes or no") == len(typed) - 1


@pytest.mark.parametrize(("count", "more"), [(40, []), (41, ["  (1 more lines)"])])
def test_message_of_a_form_has_forty_lines_at_most(count: int, more: list[str]) -> None:
    message = "\n".join(map(str, range(count)))
    form = FormSchema(type="object", properties={})
    _, lines = run_dialogue(lambda say: fill_in("It", message, form, say), ["yes"])
    assert lines[2:-1] == [f"  | {number}" for number in range(40)] + more


@pytest.mark.parametrize(("length", "is_beside"), [(200, True), (201, False)])
def test_long_description_stands_below_its_field(length: int, is_beside: bool) -> None:
    description = "d" * length
    _, lines = fill_form({"a": {"type": "string", "description": description}}, ["x"])
    assert (f"a: {description}" in lines) is is_beside
    assert (f"    | {description}" in lines) is not is_beside


@pytest.mark.parametrize(
    ("typed", "value"),
    [("01", "a"), ("000000002", "w"), ("On The Aisle", "a"), ("w", "w"), (" W ", "w")],
)
def test_choice_is_typed_as_number_or_name(typed: str, value: str) -> None:
    answer, _ = fill_form({"seat": {"type": "string", **TITLED}}, [typed])
    assert answer.content == {"seat": value}


@pytest.mark.parametrize("typed", ["0", "3", "0000000001", "x", "-1", "1.0"])
def test_text_without_a_choice_is_refused(typed: str) -> None:
    answer, lines = fill_form({"seat": {"type": "string", **TITLED}}, [typed, "1"])
    assert answer.content == {"seat": "a"}
    assert f"  {typed} is not one of the choices" in lines


def test_choices_that_are_numbers_have_no_line_numbers() -> None:
    _, lines = fill_form({"seat": {"type": "string", **NUMBERS}}, ["4"])
    assert lines[-4:-1] == ["    4", "    2", "    1"]
    _, lines = fill_form({"seat": {"type": "string", **ONE}}, ["1"])
    assert lines[-3:-1] == ["    1  aisle", "    2  window"]


def test_name_of_two_choices_is_refused_and_an_exact_one_is_taken() -> None:
    same = {"oneOf": [{"const": "a", "title": "x"}, {"const": "A", "title": "X"}]}
    answer, lines = fill_form({"seat": {"type": "string", **same}}, ["x", "A"])
    assert answer.content == {"seat": "A"}
    assert "  x is not one of the choices" in lines
