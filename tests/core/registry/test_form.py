"""Forms: from a type to the schema of an elicitation, and from content to an object."""

# No postponed annotations: types are made inside of the rows.

import dataclasses
import enum
import uuid
from datetime import date, datetime
from typing import Annotated, Any, Literal, NamedTuple, Optional, Required, TypedDict, assert_type

import msgspec
import pydantic
import pytest
from msgspec import Meta, Struct

from mcp_core.registry import (
    AcceptedElicitation,
    CancelledElicitation,
    DeclarationError,
    DeclinedElicitation,
    Form,
)
from mcp_core.registry._form import as_form
from mcp_core.types import ElicitResult


class Colour(enum.Enum):
    RED = "#f00"
    GREEN = "#0f0"


class Number(enum.IntEnum):
    ONE = 1


TITLED = Annotated[
    Literal["b", "a"],
    Meta(
        extra_json_schema={"oneOf": [{"const": "b", "title": "B!"}, {"const": "a", "title": "A!"}]}
    ),
]


def accepted(**content: Any) -> ElicitResult:
    return ElicitResult(action="accept", content=content)


def with_field(annotation: Any, default: Any = ...) -> Any:
    """A Struct with the field `f`."""
    field = ("f", annotation) if default is ... else ("f", annotation, default)
    return msgspec.defstruct("Fields", [field])


# annotation, its default, the JSON Schema, some content, and the value that it is read as
FIELDS: list[tuple[Any, Any, dict[str, Any], Any, Any]] = [
    (str, ..., {"type": "string"}, "x", "x"),
    (str, "d", {"type": "string", "default": "d"}, "x", "x"),
    (Annotated[str, "words"], ..., {"type": "string", "description": "words"}, "x", "x"),
    (
        Annotated[str, Meta(title="T", description="D", min_length=1, max_length=2)],
        ...,
        {"type": "string", "title": "T", "description": "D", "minLength": 1, "maxLength": 2},
        "x",
        "x",
    ),
    (
        Annotated[str, Meta(extra_json_schema={"format": "email"})],
        ...,
        {"type": "string", "format": "email"},
        "a@b",
        "a@b",
    ),
    (date, ..., {"type": "string", "format": "date"}, "2026-07-28", date(2026, 7, 28)),
    (
        datetime,
        datetime(2026, 7, 28),  # noqa: DTZ001 - what an author may write
        {"type": "string", "format": "date-time", "default": "2026-07-28T00:00:00"},
        "2026-07-28T01:00:00",
        datetime(2026, 7, 28, 1),  # noqa: DTZ001
    ),
    (bool, ..., {"type": "boolean"}, True, True),
    (bool, False, {"type": "boolean", "default": False}, True, True),
    (int, ..., {"type": "integer"}, 3, 3),
    (int, 7, {"type": "integer", "default": 7}, 3.0, 3),
    (Annotated[int, Meta(ge=1, le=3)], ..., {"type": "integer", "minimum": 1, "maximum": 3}, 3, 3),
    (Annotated[int, Meta(gt=1, lt=4)], ..., {"type": "integer", "minimum": 2, "maximum": 3}, 3, 3),
    (float, ..., {"type": "number"}, 3, 3.0),
    (
        Annotated[float, Meta(ge=0.5, le=2)],
        ...,
        {"type": "number", "minimum": 0.5, "maximum": 2},
        1.5,
        1.5,
    ),
    (Literal["b", "a"], ..., {"type": "string", "enum": ["b", "a"]}, "a", "a"),
    (Literal["one"], ..., {"type": "string", "enum": ["one"]}, "one", "one"),
    (
        Annotated[Literal["b", "a"], Meta(description="D")],
        "a",
        {"type": "string", "enum": ["b", "a"], "description": "D", "default": "a"},
        "a",
        "a",
    ),
    (
        TITLED,
        ...,
        {"type": "string", "oneOf": [{"const": "b", "title": "B!"}, {"const": "a", "title": "A!"}]},
        "a",
        "a",
    ),
    (
        Colour,
        Colour.RED,
        {"type": "string", "enum": ["#f00", "#0f0"], "default": "#f00"},
        "#0f0",
        Colour.GREEN,
    ),
    (
        Annotated[list[Literal["b", "a"]], Meta(min_length=1, max_length=2)],
        ...,
        {
            "type": "array",
            "items": {"type": "string", "enum": ["b", "a"]},
            "minItems": 1,
            "maxItems": 2,
        },
        ["a"],
        ["a"],
    ),
    (
        set[Colour],
        ...,
        {"type": "array", "items": {"type": "string", "enum": ["#f00", "#0f0"]}},
        ["#0f0", "#0f0"],
        {Colour.GREEN},
    ),
    (
        tuple[TITLED, ...],
        ("a",),
        {
            "type": "array",
            "items": {"anyOf": [{"const": "b", "title": "B!"}, {"const": "a", "title": "A!"}]},
            "default": ["a"],
        },
        ["b"],
        ("b",),
    ),
    (
        frozenset[Literal["a"]],
        ...,
        {"type": "array", "items": {"type": "string", "enum": ["a"]}},
        [],
        frozenset(),
    ),
    (int | None, None, {"type": "integer"}, 3, 3),
    (Optional[Colour], None, {"type": "string", "enum": ["#f00", "#0f0"]}, "#f00", Colour.RED),  # noqa: UP045
    (
        Annotated[Annotated[int, Meta(ge=1)] | None, Meta(description="D")],
        None,
        {"type": "integer", "minimum": 1, "description": "D"},
        3,
        3,
    ),
]


@pytest.mark.requirement("ELIC-6", "ELIC-7", "ELIC-8", "ELIC-10")
@pytest.mark.parametrize(
    ("annotation", "default", "schema", "text", "value"), FIELDS, ids=lambda row: str(row)[:40]
)
def test_form_field_has_schema_and_reads_value(
    annotation: Any, default: Any, schema: dict[str, Any], text: Any, value: Any
) -> None:
    form: Form[Any] = Form(with_field(annotation, default))
    required = {"required": ["f"]} if default is ... else {}
    decoded = msgspec.json.decode(msgspec.json.encode(form.schema))
    assert decoded == {"type": "object", "properties": {"f": schema}, **required}
    answer = form.read(accepted(f=text))
    assert isinstance(answer, AcceptedElicitation)
    assert (answer.action, answer.data.f, type(answer.data.f)) == ("accept", value, type(value))


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Annotated[str, Meta(pattern="^a")], "field 'f' uses pattern, which forms do not support"),
        (Annotated[int, Meta(multiple_of=2)], "field 'f' uses multipleOf"),
        (Annotated[float, Meta(gt=0)], "field 'f' uses exclusiveMinimum"),
        (Annotated[float, Meta(lt=0, multiple_of=1)], "field 'f' uses exclusiveMaximum"),
        (Annotated[str, Meta(extra_json_schema={"x-own": 1})], "field 'f' uses x-own"),
        (
            Annotated[str, Meta(extra_json_schema={"format": "ipv4"})],
            "not a flat object of simple fields: Invalid enum",
        ),
        (bytes, "field 'f' has a type that forms do not support"),
        (uuid.UUID, "field 'f' has a type that forms do not support"),
        (None, "that forms do not support"),
        (Any, "that forms do not support"),
        (dict[str, str], "that forms do not support"),
        (list[str], "that forms do not support"),
        (list[list[Literal["a"]]], "that forms do not support"),
        (int | str, "that forms do not support"),
        (Number, "that forms do not support"),
        (Literal[1, 2], "that forms do not support"),
        (msgspec.defstruct("Inner", [("a", int)]), "that forms do not support"),
    ],
)
def test_form_unsupported_field_raises(annotation: Any, words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        Form(with_field(annotation))


class Record(Struct, rename="camel"):
    first_name: str


@dataclasses.dataclass
class Data:
    """With a docstring."""

    size: int
    colours: list[Colour] = dataclasses.field(default_factory=lambda: [Colour.RED])


class Typed(TypedDict, total=False):
    size: Required[int]
    colour: Literal["red", "green"]


class Array(Struct, array_like=True):
    a: int


class Pair(NamedTuple):
    a: int


def test_form_is_made_of_each_object_type() -> None:
    """Structs, dataclasses and typed dicts come back as instances, without unknown fields."""
    record = Form(Record)
    assert record.schema["properties"].keys() == {"firstName"}
    assert record.read(accepted(firstName="Ada")) == AcceptedElicitation(Record("Ada"))
    data = Form(Data)
    assert data.schema == {
        "type": "object",
        "properties": {
            "size": {"type": "integer"},
            "colours": {
                "type": "array",
                "items": {"type": "string", "enum": ["#f00", "#0f0"]},
                "default": ["#f00"],
            },
        },
        "required": ["size"],
    }
    assert data.read(accepted(size=1)) == AcceptedElicitation(Data(1, [Colour.RED]))
    typed = Form(Typed)
    assert typed.schema["required"] == ["size"]
    assert typed.schema["properties"]["colour"]["enum"] == ["red", "green"]
    assert typed.read(accepted(size=1.0, more="x")) == AcceptedElicitation({"size": 1})
    assert repr(typed) == "<Form colour, size>"
    assert Form(Annotated[Record, "a description"]).schema == record.schema  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (int, "a form of int: a form is a Struct, a dataclass, a TypedDict or a JSON Schema"),
        (Array, "a form of Array: a form is a Struct"),
        (Pair, "a form of Pair: a form is a Struct"),
        (list[Record], "a form of list: a form is a Struct"),
        ("Record", "a form of Record: "),
        ({"type": "array"}, "a form's schema: not a flat object of simple fields"),
        (
            {"type": "object", "properties": {"a": {"type": "object"}}},
            "a form's schema: not a flat object",
        ),
        ({}, "a form's schema: not a flat object"),
    ],
)
def test_form_of_an_unsuitable_type_or_schema_raises(fields: Any, words: str) -> None:
    with pytest.raises(DeclarationError, match=words):
        Form(fields)


def test_form_unresolvable_annotation_raises() -> None:
    class Broken(Struct):
        f: "Nowhere"  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(DeclarationError, match="a form of Broken: name 'Nowhere' is not defined"):
        Form(Broken)


GIVEN: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"n": {"type": "integer", "minimum": 1}, "s": {"type": "string"}},
    "required": ["n"],
}


def test_form_of_a_json_schema_is_sent_as_it_is() -> None:
    form = Form(GIVEN)
    assert form.schema == GIVEN
    assert form.question("Well?").params.requested_schema == GIVEN
    assert form.read(accepted(n=3.0, more="x")) == AcceptedElicitation({"n": 3, "more": "x"})
    with pytest.raises(ValueError, match=r"content\.n is less than 1"):
        form.read(accepted(n=0))


def test_form_invalid_content_has_a_reason() -> None:
    form = Form(with_field(date))
    question = form.question("When?")
    for content, words in (
        ({}, r"content\.f is missing"),
        ({"f": 3}, r"content\.f is no text"),
        ({"f": "yesterday"}, "Invalid RFC3339 encoded date"),
    ):
        assert words.replace("\\", "") in (form.find_error(question, accepted(**content)) or "")
        with pytest.raises(ValueError, match=words):
            form.read(accepted(**content))
    assert form.find_error(question, accepted(f="2026-07-28")) is None
    assert form.find_error(question, ElicitResult(action="accept")) == "content.f is missing"


@pytest.mark.requirement("ELIC-23")
@pytest.mark.parametrize(
    ("action", "expected"), [("decline", DeclinedElicitation()), ("cancel", CancelledElicitation())]
)
def test_form_declined_or_cancelled_content_is_ignored(action: Any, expected: object) -> None:
    form = Form(Record)
    refused = ElicitResult(action=action, content={"first_name": 1})
    assert form.find_error(form.question(""), refused) is None
    assert form.read(refused) == expected


def test_as_form_accepts_forms_types_and_schemas() -> None:
    form = Form(Record)
    assert as_form(form) is form
    assert as_form(Record) is as_form(Record)
    assert as_form(GIVEN).schema == GIVEN


def test_form_result_types_are_known_to_the_type_checker() -> None:
    answer = Form(Record).read(accepted(firstName="Ada"))
    assert_type(answer, AcceptedElicitation[Record] | DeclinedElicitation | CancelledElicitation)
    if answer.action != "accept":
        raise AssertionError(answer.action)
    assert_type(answer.data, Record)
    assert_type(Form(GIVEN), Form[dict[str, Any]])


# -- Pydantic --------------------------------------------------------------------------------------


class Booking(pydantic.BaseModel):
    seats: int = pydantic.Field(gt=0, lt=9, description="How many?")
    side: Literal["window", "aisle"] = "aisle"
    colour: Colour = Colour.RED
    colours: list[Colour] = []
    note: str | None = None
    day: date | None = None
    mail: str = pydantic.Field(default="", json_schema_extra={"format": "email"})
    only: Literal["x"] = "x"


class Nested(pydantic.BaseModel):
    booking: Booking


def test_form_of_pydantic_model_is_flat() -> None:
    """A client's form can't follow a `$ref`, so pydantic's enum definitions are inlined."""
    form = Form(Booking)
    assert form.schema == {
        "type": "object",
        "properties": {
            "seats": {
                "type": "integer",
                "minimum": 1,
                "maximum": 8,
                "title": "Seats",
                "description": "How many?",
            },
            "side": {
                "type": "string",
                "enum": ["window", "aisle"],
                "default": "aisle",
                "title": "Side",
            },
            "colour": {"type": "string", "enum": ["#f00", "#0f0"], "default": "#f00"},
            "colours": {
                "type": "array",
                "items": {"type": "string", "enum": ["#f00", "#0f0"]},
                "default": [],
                "title": "Colours",
            },
            "note": {"type": "string", "title": "Note"},
            "day": {"type": "string", "format": "date", "title": "Day"},
            "mail": {"type": "string", "format": "email", "default": "", "title": "Mail"},
            "only": {"type": "string", "enum": ["x"], "default": "x", "title": "Only"},
        },
        "required": ["seats"],
    }


def test_form_of_pydantic_model_reads_content_as_model() -> None:
    content = {"seats": 3.0, "colours": ["#0f0"], "day": "2026-07-28"}
    assert Form(Booking).read(accepted(**content)) == AcceptedElicitation(
        Booking(seats=3, colours=[Colour.GREEN], day=date(2026, 7, 28))
    )
    assert Form(Booking).read(ElicitResult(action="decline")) == DeclinedElicitation()


class Even(pydantic.BaseModel):
    number: int

    @pydantic.field_validator("number")
    @classmethod
    def _is_even(cls, number: int) -> int:
        if number % 2:
            raise ValueError("it is odd")
        return number


def test_form_of_pydantic_model_validator_rejects_content() -> None:
    with pytest.raises(ValueError, match="number: Value error, it is odd"):
        Form(Even).read(accepted(number=3))


def test_form_of_nested_pydantic_model_raises() -> None:
    with pytest.raises(DeclarationError, match="not a flat object of simple fields"):
        Form(Nested)
