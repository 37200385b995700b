"""Texts about invalid values: which values are allowed, and which values are repeated."""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_core.registry.functions._explanation import add_allowed, add_scalar, describe_errors

ENUM: Final = "Invalid enum value 'x'"
STR: Final = "Expected `str`, got `int`"


def schema_of(part: Any, **definitions: Any) -> dict[str, Any]:
    return {"properties": {"a": part}, "$defs": definitions}


def enum_of(count: int) -> dict[str, Any]:
    return {"enum": [*range(count)]}


@pytest.mark.parametrize(
    ("reason", "value", "part", "text"),
    [
        (ENUM, "z", {"enum": ["p", "q"]}, '"z" is not one of "p", "q"'),
        (ENUM, None, {"enum": ["p", "q"]}, 'null is not one of "p", "q"'),
        (ENUM, {"secret": 1}, {"enum": ["p", "q"]}, 'the value is not one of "p", "q"'),
        (ENUM, "z", {"const": "p"}, '"z" is not "p"'),
        (ENUM, "z", {"enum": []}, ENUM),
        (STR, 5, {"enum": ["p", "q"]}, '5 is not one of "p", "q"'),
        (STR, 5, {"anyOf": [{"enum": ["p"]}, {"type": "null"}]}, '5 is not one of "p", null'),
        (STR, 5, {"anyOf": [{"enum": ["p"]}, {"type": "array"}]}, STR),
        (ENUM, 5, {"anyOf": [{"enum": ["p"]}, {"type": "array"}]}, '5 is not one of "p", `array`'),
        (ENUM, 5, {"anyOf": [{"enum": ["p"]}, {"type": ["array"]}]}, ENUM),
        (ENUM, 5, {"anyOf": [{"enum": ["p"]}, {"const": "p"}]}, '5 is not "p"'),
        (STR, 5, {"type": "null"}, STR),  # a null alone is what the reason says
        (STR, 5, {"anyOf": [{"type": "null"}, {"type": "null"}]}, STR),
        (STR, 5, True, STR),
        (ENUM, 99, enum_of(30), f"99 is not one of {', '.join(map(str, range(30)))}"),
        (ENUM, 99, enum_of(31), f"99 is not one of {', '.join(map(str, range(30)))}, ..."),
        (ENUM, "z", {"enum": ["p" * 98]}, f'"z" is not "{"p" * 98}"'),
        (ENUM, "\ud800", {"const": 1}, "'\\ud800' is not 1"),  # it has no JSON
        ("Not valid", 5, {"enum": ["p"]}, "Not valid"),
    ],
)
def test_allowed_values_of_an_enum_are_listed(
    reason: str, value: Any, part: Any, text: str
) -> None:
    assert add_allowed(reason, ".a", {"a": value}, schema_of(part)) == text


def test_long_values_are_shortened() -> None:
    long = "z" * 200
    text = add_allowed(ENUM, ".a", {"a": long}, schema_of({"const": long}))
    given, _, allowed = text.partition(" is not ")
    assert given == allowed
    assert given == f'"{"z" * 99}… (202 characters)'
    assert add_scalar("Wrong", "z" * 98) == f'Wrong, not "{"z" * 98}"'
    assert add_scalar("Wrong", long) == f"Wrong, not {given}"


@pytest.mark.parametrize(
    ("path", "values", "part", "text"),
    [
        (".a.b", {"a": {"b": 1}}, {"properties": {"b": enum_of(2)}}, "1 is not one of 0, 1"),
        (".a[0]", {"a": [7]}, {"items": enum_of(2)}, "7 is not one of 0, 1"),
        (".a[1]", {"a": [7, 8]}, {"items": enum_of(2)}, "8 is not one of 0, 1"),
        (".a[12]", {"a": [*range(13)]}, {"items": enum_of(2)}, "12 is not one of 0, 1"),
        (
            ".a[0]",
            {"a": [7]},
            {"prefixItems": [enum_of(2)], "items": enum_of(3)},
            "7 is not one of 0, 1",
        ),
        (
            ".a[1]",
            {"a": [7, 8]},
            {"prefixItems": [enum_of(2)], "items": enum_of(3)},
            "8 is not one of 0, 1, 2",
        ),
        (".a[1]", {"a": [7, 8]}, {"prefixItems": [enum_of(2)]}, ENUM),
        (".a.0", {"a": {"0": 7}}, {"properties": {"0": enum_of(2)}}, "7 is not one of 0, 1"),
        # A member of a dictionary, and one whose value isn't there: the reason has it.
        (".a[...]", {"a": {"b": 7}}, {"additionalProperties": enum_of(2)},
         "'x' is not one of 0, 1"),
        (".a[3]", {"a": [7, 8, 9]}, {"items": enum_of(2)}, "'x' is not one of 0, 1"),
        (".a.c", {"a": {"b": 7}}, {"properties": {"c": enum_of(2)}}, "'x' is not one of 0, 1"),
        (".a.b", {"a": [7]}, {"properties": {"b": enum_of(2)}}, "'x' is not one of 0, 1"),
        (".a.c", {"a": {"c": 7}}, {"properties": {"b": enum_of(2)}}, ENUM),
        (".a[...]", {"a": {"b": 7}}, {"additionalProperties": True}, ENUM),
        (".a", {"a": 7}, {"$ref": "#/$defs/D"}, "7 is not one of 0, 1, 2, 3"),
        (".a", {"a": 7}, {"$ref": "#/$defs/E"}, ENUM),  # it isn't defined
        (".a", {"a": 7}, {"anyOf": [{"$ref": "#/$defs/D"}, enum_of(6)]},
         "7 is not one of 0, 1, 2, 3, 4, 5"),
        (".a[0].b", {"a": [{"b": 7}]}, {"items": {"$ref": "#/$defs/B"}}, "7 is not one of 0, 1"),
        (".a.b", {"a": {"b": 7}}, {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/B"}]},
         "7 is not one of 0, 1"),
        (".a", {"a": 7}, {"$ref": "#/$defs/Same"}, ENUM),
    ],
)  # fmt: skip
def test_allowed_values_are_those_at_the_path(path: str, values: Any, part: Any, text: str) -> None:
    definitions = {
        "B": {"properties": {"b": enum_of(2)}},
        "D": enum_of(4),
        "Same": {"anyOf": [{"$ref": "#/$defs/Same"}, enum_of(1)]},
    }
    assert add_allowed(ENUM, path, values, schema_of(part, **definitions)) == text


@pytest.mark.parametrize(
    ("reason", "value", "text"),
    [
        (
            "Invalid RFC3339 encoded datetime",
            "now",
            '"now" is not a date and time such as 2026-01-31T12:30:00Z',
        ),
        ("Invalid RFC3339 encoded date", "now", '"now" is not a date such as 2026-01-31'),
        ("Invalid RFC3339 encoded time", "now", '"now" is not a time such as 12:30:00'),
        ("Invalid ISO8601 duration", "now", '"now" is not a duration such as PT1H30M'),
        (
            "Invalid UUID",
            [],
            "the value is not a UUID such as 123e4567-e89b-12d3-a456-426614174000",
        ),
        ("Invalid decimal string", "now", '"now" is not a decimal number such as 12.50'),
        ("Invalid base64 encoded string", "now", '"now" is not base64 such as aGVsbG8='),
        ("Expected `date`, got `int`", 5, "5 is not a date such as 2026-01-31"),
        ("Expected `date | null`, got `int`", 5, "5 is not a date such as 2026-01-31 or `null`"),
        ("Expected `duration`, got `int`", 5, "5 is not a duration such as PT1H30M"),
        ("Expected `int | str`, got `float`", 0.5, "Expected `int | str`, got `float`: 0.5"),
        ("Expected `int | str`, got `null`", None, "Expected `int | str`, got `null`: null"),
        ("Expected `int | str`, got `object`", {"b": 1}, "Expected `int | str`, got `object`"),
        ("Expected `int`, got `str`", "five", "Expected `int`, got `str`"),
        ("Expected `int` >= 1", 0, "Expected `int` >= 1"),
    ],
)
def test_notation_of_a_type_is_shown(reason: str, value: Any, text: str) -> None:
    assert add_allowed(reason, ".a", {"a": value}, schema_of({"type": "string"})) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((value, f"Wrong, not {text}") for value, text in ((None, "null"), (True, "true"))),
        *((value, f"Wrong, not {text}") for value, text in ((1, "1"), (0.5, "0.5"), ("a", '"a"'))),
        *((value, "Wrong") for value in ({"a": 1}, [1], b"a")),
    ],
)
def test_only_a_scalar_is_repeated(value: Any, text: str) -> None:
    assert add_scalar("Wrong", value) == text


class ListedErrors(ValueError):
    """An error with a list of errors, as pydantic's."""

    def __init__(self, *errors: dict[str, Any]) -> None:
        self._errors = errors

    def errors(self, *, include_url: bool) -> list[dict[str, Any]]:
        assert not include_url
        return [*self._errors]


def error(*loc: Any, kind: str = "int_type", msg: str = "No", given: Any = 5) -> dict[str, Any]:
    return {"loc": loc, "type": kind, "msg": msg, "input": given}


@pytest.mark.parametrize(
    ("errors", "value", "with_values", "without"),
    [
        ([error("a")], {"a": 5}, "a: No", "a: No"),
        ([error()], 5, "No", "No"),
        ([error("a"), error("b", 0)], {"a": 5, "b": [5]}, "a: No; b.0: No", "a: No; b.0: No"),
        *(
            ([error("a", kind=kind)], {"a": 5}, "a: No, not 5", "a: No")
            for kind in ("enum", "literal_error", "date_parsing", "time_parsing", "uuid_parsing",
                         "url_parsing", "decimal_parsing")
        ),
        ([error("a", kind="enum", given={"b": 1})], {"a": {"b": 1}}, "a: No", "a: No"),
        (
            [error("a", kind="date_type")],
            {"a": 5},
            "a: Input should be a date such as 2026-01-31, not 5",
            "a: Input should be a date such as 2026-01-31",
        ),
        (
            [error("a", kind="datetime_type")],
            {"a": []},
            "a: Input should be a date and time such as 2026-01-31T12:30:00Z, not 5",
            "a: Input should be a date and time such as 2026-01-31T12:30:00Z",
        ),
        (
            [error("a", kind="time_type", given=[])],
            {"a": []},
            "a: Input should be a time such as 12:30:00",
            "a: Input should be a time such as 12:30:00",
        ),
        (
            [{**error("a", kind="union_tag_invalid", msg="Tag 5", given={"t": 5}),
              "ctx": {"expected_tags": "'x', 'y'"}}],
            {"a": {"t": 5}},
            "a: Tag 5",
            "a: Input tag should be one of 'x', 'y'",
        ),
        # A union: the members' names are in the places, but not in the value.
        (
            [error("a", "int", given="z"), error("a", "bool", given="z", msg="Not")],
            {"a": "z"},
            'a: Expected one of int, bool, not "z" (int: No; bool: Not)',
            "a: Expected one of int, bool (int: No; bool: Not)",
        ),
        (
            [error("int", given="z"), error("enum", kind="enum", given="z", msg="Not")],
            "z",
            'Expected one of int, enum, not "z" (int: No; enum: Not, not "z")',
            "Expected one of int, enum (int: No; enum: Not)",
        ),
        (
            [error("a", "X", "x", given="z"), error("a", "Y", "y", kind="missing",
                                                    given={"x": "z"})],
            {"a": {"x": "z"}},
            "a: Expected one of X, Y (X.x: No; Y.y: No)",
            "a: Expected one of X, Y (X.x: No; Y.y: No)",
        ),
        (
            [error("a", "X", "x", given="z"), error("a", "Y", "x", given="z")],
            {"a": {"a": "q", "x": "z"}},
            "a: Expected one of X, Y (X.x: No; Y.x: No)",
            "a: Expected one of X, Y (X.x: No; Y.x: No)",
        ),
        ([error("a", "int", given="z")], {"a": "z"}, "a.int: No", "a.int: No"),
        # These aren't unions.
        (
            [error("a", "b", kind="missing", given={}), error("a", "c", kind="missing", given={})],
            {"a": {}},
            "a.b: No; a.c: No",
            "a.b: No; a.c: No",
        ),
        (
            [error("a", 0), error("a", 1)],
            {"a": "1,2"},
            "a.0: No; a.1: No",
            "a.0: No; a.1: No",
        ),
        (
            [error("a", "int", given=1), error("a", "str", given=1)],
            {"a": True},
            "a.int: No; a.str: No",
            "a.int: No; a.str: No",
        ),
        (
            [error("a", "int", given=1), error("a", "str", given=1)],
            {"a": 2},
            "a.int: No; a.str: No",
            "a.int: No; a.str: No",
        ),
        ([error(str(n)) for n in range(10)], {}, "; ".join(f"{n}: No" for n in range(10)), None),
        (
            [error(str(n)) for n in range(11)],
            {},
            "; ".join(f"{n}: No" for n in range(10)) + "; and 1 more errors",
            None,
        ),
    ],
)  # fmt: skip
def test_errors_of_pydantic_are_described(
    errors: Any, value: Any, with_values: str, without: str | None
) -> None:
    exc = ListedErrors(*errors)
    other = with_values if without is None else without
    assert describe_errors(exc, value) == (with_values, other)
    assert describe_errors(exc, value, has_secrets=True) == (other, other)


def test_errors_without_the_value_do_not_tell_unions() -> None:
    exc = ListedErrors(error("a", "int", given="z"), error("a", "bool", given="z"))
    assert describe_errors(exc) == ("a.int: No; a.bool: No",) * 2
    assert describe_errors(ValueError("own text"), 5) == ("own text", "own text")
