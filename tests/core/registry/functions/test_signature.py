"""Arguments: their conversion, and the errors of invalid ones."""

# No postponed annotations here: types are made inside of test functions.

import dataclasses
import decimal
import enum
import json
import math
import typing
import uuid
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict

import jsonschema
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Raw

from mcp_core.registry import Context, DeclarationError
from mcp_core.registry.functions._function import MISSING, inspect_function
from mcp_core.registry.functions._signature import (
    ArgumentReader,
    ArgumentsNotAnObject,
    InvalidArguments,
    TextReader,
    check_encoded,
    read_object,
)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Place:
    lat: float
    lon: float = 0.0


class Options(TypedDict):
    deep: bool
    depth: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Tree(msgspec.Struct):
    name: str
    children: list["Tree"] = []


class Tagged(msgspec.Struct, tag=True):
    y: int


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    x: int

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


def reader_of(annotation: Any, *default: Any) -> ArgumentReader:
    """Return a reader for `def f(x: annotation = default)`."""

    def f(x): ...  # type: ignore[no-untyped-def]

    f.__annotations__ = {"x": annotation}
    f.__defaults__ = default
    return ArgumentReader(inspect_function(f))


def read(annotation: Any, value: str) -> Any:
    return reader_of(annotation).read(Raw(b'{"x":%b}' % value.encode()))["x"]


ACCEPTED: list[tuple[Any, str, Any]] = [
    (int, "3", 3),
    (int, "3.0", 3),
    (int, "3e2", 300),
    (int, "-0.0", 0),
    (int, "123456789012345678901234567890", 123456789012345678901234567890),
    (float, "3", 3.0),
    (float, "3.5", 3.5),
    (bool, "true", True),
    (str, '"é"', "é"),
    (None, "null", None),
    (Optional[int], "null", None),  # noqa: UP045 - the old spelling is what is tested
    (int | str, '"3"', "3"),
    (int | str, "3.0", 3),
    (Any, '{"a":[1]}', {"a": [1]}),
    (Literal["a", 3], "3.0", 3),
    (Color, '"red"', Color.RED),
    (datetime, '"2026-07-28T12:00:00Z"', datetime(2026, 7, 28, 12, tzinfo=UTC)),
    (date, '"2026-07-28"', date(2026, 7, 28)),
    (time, '"12:00:00"', time(12)),
    (timedelta, '"PT1H"', timedelta(hours=1)),
    (
        uuid.UUID,
        '"12345678-1234-5678-1234-567812345678"',
        uuid.UUID("12345678-1234-5678-1234-567812345678"),
    ),
    (decimal.Decimal, '"1.10"', decimal.Decimal("1.10")),
    (bytes, '"aGk="', b"hi"),
    (list[int], "[1,2.0]", [1, 2]),
    (set[str], '["a","a"]', {"a"}),
    (tuple[int, str], '[1.0,"a"]', (1, "a")),
    (dict[str, list[int]], '{"a":[1.0]}', {"a": [1]}),
    (dict[int, int], '{"1":2.0}', {1: 2}),
    (Place, '{"lat":1}', Place(1.0)),
    (Options, '{"deep":true,"depth":2.0}', {"deep": True, "depth": 2}),
    (Pair, "[1.0]", Pair(1)),
    (Tree, '{"name":"a","children":[{"name":"b"}]}', Tree("a", [Tree("b")])),
    (Annotated[int, Meta(ge=1)], "1.0", 1),
    (Annotated[list[Annotated[int, Meta(le=3)]], "numbers"], "[3]", [3]),
    (Strict, '{"x":1.0}', Strict(1)),
]


@pytest.mark.requirement("DEC-4")
@pytest.mark.parametrize(("annotation", "value", "expected"), ACCEPTED)
def test_argument_reader_valid_argument_is_converted(
    annotation: Any, value: str, expected: Any
) -> None:
    found = read(annotation, value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(("annotation", "value", "expected"), ACCEPTED)
@pytest.mark.requirement("JSCH-3")
def test_argument_reader_schema_accepts_the_same_values(
    annotation: Any, value: str, expected: Any
) -> None:
    schema = reader_of(annotation).schema
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    if annotation != set[str]:  # a set accepts duplicates, its schema does not
        jsonschema.Draft202012Validator(schema).validate({"x": json.loads(value)})


@pytest.mark.parametrize(
    ("annotation", "value", "why"),
    [
        (int, '"3"', "Invalid argument `x`: expected `int`, got `str`"),
        (int, "3.5", "Invalid argument `x`: expected `int`, got `float`"),
        (int, "true", "Invalid argument `x`: expected `int`, got `bool`"),
        (int, "null", "Invalid argument `x`: expected `int`, got `null`"),
        (int, "1e400", "Invalid argument `x`: number out of range"),
        (float, '"1"', "Invalid argument `x`: expected `float`, got `str`"),
        (str, "3", "Invalid argument `x`: expected `str`, got `int`"),
        (list[int], '[1,"b"]', "Invalid argument `x[1]`: expected `int`, got `str`"),
        (Literal["a"], '"b"', 'Invalid argument `x`: "b" is not "a"'),
        (Color, '"green"', 'Invalid argument `x`: "green" is not one of "blue", "red"'),
        (
            Literal["a", "b"] | int | None,
            '"z"',
            'Invalid argument `x`: "z" is not one of "a", "b", null, `integer`',
        ),
        (Place, '{"lon":1}', "Invalid argument `x`: object missing required field `lat`"),
        (Strict, '{"x":-1}', "Invalid argument `x`: x is negative"),
        (Strict, '{"x":1,"y":2}', "Invalid argument `x`: object contains unknown field `y`"),
        (Annotated[int, Meta(ge=5)], "3", "Invalid argument `x`: expected `int` >= 5"),
        (
            datetime,
            '"soon"',
            'Invalid argument `x`: "soon" is not a date and time such as 2026-01-31T12:30:00Z',
        ),
        (date, "20260131", "Invalid argument `x`: 20260131 is not a date such as 2026-01-31"),
        (list[time], "[5]", "Invalid argument `x[0]`: 5 is not a time such as 12:30:00"),
        (date | None, "5", "Invalid argument `x`: 5 is not a date such as 2026-01-31 or `null`"),
        (
            date | int,
            "true",
            "Invalid argument `x`: true is not `int` or a date such as 2026-01-31",
        ),
        (bytes, "{}", "Invalid argument `x`: the value is not base64 such as aGVsbG8="),
    ],
)
def test_argument_reader_invalid_argument_has_a_reason(
    annotation: Any, value: str, why: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        read(annotation, value)
    assert str(caught.value) == why


def two(city: str, days: int = 1) -> None: ...


def nothing() -> None: ...


TWO = ArgumentReader(inspect_function(two))
NOTHING = ArgumentReader(inspect_function(nothing))


def test_argument_reader_absent_arguments_are_empty() -> None:
    assert NOTHING.read(UNSET) == {}
    assert NOTHING.schema == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    with pytest.raises(InvalidArguments, match="Missing argument `city`"):
        TWO.read(UNSET)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("{}", "Missing argument `city`"),
        ('{"city":"Oslo","day":3}', "Unknown argument `day`; the arguments are: city, days"),
        ('{"city":', "Invalid arguments: input data was truncated"),
        ('{"city":"\\ud800"}', "Invalid arguments: input data was truncated"),
    ],
)
def test_argument_reader_invalid_arguments_have_a_reason(arguments: str, why: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        TWO.read(arguments.encode())
    assert str(caught.value) == why
    with pytest.raises(InvalidArguments, match="the arguments are: none"):
        NOTHING.read(b'{"x":1}')


@pytest.mark.parametrize("arguments", [b"[]", b"3", b'"x"', b"true", b"1.0"])
def test_arguments_other_than_an_object_raise(arguments: bytes) -> None:
    with pytest.raises(ArgumentsNotAnObject):
        TWO.read(arguments)
    with pytest.raises(ArgumentsNotAnObject):
        read_object(arguments)


def test_arguments_of_invalid_utf8_or_deep_nesting_raise() -> None:
    with pytest.raises(InvalidArguments):
        TWO.read(b'{"city":"\xff"}')
    with pytest.raises(InvalidArguments):
        reader_of(Any).read(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}")
    with pytest.raises(InvalidArguments):
        read_object(b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


def test_read_object_returns_the_arguments_unchanged() -> None:
    assert read_object(UNSET) == {}
    assert read_object(b'{"a":1.0}') == {"a": 1.0}
    with pytest.raises(InvalidArguments):
        read_object(b"{")


def test_argument_reader_defaults_are_the_same_objects() -> None:
    """The function sees what Python would pass; the schema shows a default where JSON can."""
    mine = ["a"]
    tree = Tree("t")
    marker = object()

    def f(
        a: int = 1, b: list[str] = mine, c: Tree = tree, d: Any = marker, e: tuple[int, ...] = (1,),
        g: Color = Color.RED,
        h: int = None, i: str | None = None,  # type: ignore[assignment] # noqa: RUF013
    ) -> None: ...  # fmt: skip

    reader = ArgumentReader(inspect_function(f))
    found = reader.read(UNSET)
    assert found["b"] is mine
    assert found["c"] is tree
    assert found["d"] is marker
    assert found["h"] is None
    defaults = {name: p.get("default", "-") for name, p in reader.schema["properties"].items()}
    tree_json = {"name": "t", "children": []}
    assert defaults == {
        "a": 1,
        "b": ["a"],
        "c": tree_json,
        "d": "-",
        "e": [1],
        "g": "red",
        "h": None,
        "i": None,
    }
    assert reader.schema["required"] == []
    assert reader.read(b'{"h":null}')["h"] is None


def test_argument_reader_schema_matches_signature() -> None:
    """Annotations win over the docstring, the context is hidden and `from_` is sent as `from`."""

    def f(  # type: ignore[no-untyped-def]
        city: Annotated[str, "Where"],
        context: Context,
        trees: list[Tree],
        at: datetime | None = None,
        *,
        from_: Annotated[int, Meta(ge=0, description="first")] = 0,
        when: dict[str, Annotated[time, "x"]] = {},  # noqa: B006
        kind: Literal[1, 2] = 1,
        anything=None,
    ) -> None:
        """Do.

        Args:
            trees: Some trees.
            from_: Not this text.
        """

    schema = ArgumentReader(inspect_function(f)).schema
    assert schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where"},
            "trees": {
                "type": "array",
                "items": {"$ref": "#/$defs/Tree"},
                "description": "Some trees.",
            },
            "at": {
                "anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}],
                "default": None,
            },
            "from": {"type": "integer", "minimum": 0, "description": "first", "default": 0},
            "when": {
                "type": "object",
                "additionalProperties": {"type": "string", "format": "time"},
                "default": {},
            },
            "kind": {"type": "integer", "enum": [1, 2], "default": 1},
            "anything": {"default": None},
        },
        "required": ["city", "trees"],
        "additionalProperties": False,
        "$defs": {
            "Tree": {
                "title": "Tree",
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []},
                },
                "required": ["name"],
            }
        },
    }


def test_argument_reader_returns_python_names() -> None:
    def f(from_: int, self_: int, *, class_: int = 2) -> None: ...

    reader = ArgumentReader(inspect_function(f))
    assert reader.read(b'{"from":1,"self":3}') == {"from_": 1, "self_": 3, "class_": 2}
    assert repr(reader) == "<ArgumentReader from, self, class>"


class NoJson:
    pass


class Unfinished(msgspec.Struct):
    x: "NotDefinedAnywhere"  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    "annotation",
    [
        *(NoJson, list[NoJson], Place | NoJson, complex, Unfinished),
        # With a description they have a schema, but still cannot be decoded.
        *(Annotated[NoJson, "what it is"], list[Annotated[NoJson, Meta(description="what it is")]]),
        *(int | Annotated[NoJson, "what it is"], tuple[int, Annotated[NoJson, "what it is"]]),
        Tree | Tagged | Any,  # its schema cannot be encoded
    ],
)
def test_readers_type_without_json_raises_at_declaration(annotation: Any) -> None:
    with pytest.raises(
        DeclarationError, match="parameter 'x' cannot be described by a JSON Schema: "
    ):
        reader_of(annotation)
    with pytest.raises(
        DeclarationError, match="parameter 'x' cannot be described by a JSON Schema: "
    ):
        text_reader_of(annotation)


def test_argument_reader_impossible_constraint_raises() -> None:
    def f(x: Annotated[int, Meta(min_length=3)]) -> None: ...

    with pytest.raises(DeclarationError):
        ArgumentReader(inspect_function(f))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text("ab/é", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abx"), inner, max_size=3)
    ),
    max_leaves=6,
)

TYPES = (
    int,
    float,
    str,
    bool,
    list[int],
    dict[str, int],
    Place,
    Options,
    int | None,
    Literal["a", 1],
    Any,
)
READERS = [reader_of(annotation) for annotation in TYPES]
VALIDATORS = [jsonschema.Draft202012Validator(reader.schema) for reader in READERS]


@given(value=json_values, index=st.integers(min_value=0, max_value=len(TYPES) - 1))
def test_argument_reader_agrees_with_its_schema(value: Any, index: int) -> None:
    """A value that the schema accepts is read; any other raises `InvalidArguments`."""
    admitted = VALIDATORS[index].is_valid({"x": value})
    try:
        READERS[index].read(json.dumps({"x": value}).encode())
    except InvalidArguments:
        assert not admitted
    else:
        assert admitted


# --- Text arguments ---


def text_reader_of(annotation: Any, *default: Any) -> TextReader:
    def f(x): ...  # type: ignore[no-untyped-def]

    f.__annotations__ = {"x": annotation}
    f.__defaults__ = default
    return TextReader(inspect_function(f))


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (str, "3", "3"),
        (str, "", ""),
        (Annotated[str, Meta(max_length=2)], "", ""),
        (Any, "3", "3"),
        (Annotated[str, "x"], "3", "3"),
        (int, "3", 3),
        (int, "-3", -3),
        (float, "3", 3.0),
        (float, "1e3", 1000.0),
        (bool, "true", True),
        (bool, "false", False),
        (bool, "0", False),
        (Color, "red", Color.RED),
        (Literal["a", "b"], "a", "a"),
        (Literal[1, 2], "2", 2),
        (int | None, "3", 3),
        (int | None, "null", None),
        (int | str, "3", "3"),
        (list[int], "[1,2]", [1, 2]),
        (list[int], ["1", "2"], [1, 2]),
        (list[str], ["1", "2"], ["1", "2"]),
        (Place, '{"lat":1}', Place(1.0)),
        (dict[str, int], '{"a":1}', {"a": 1}),
        (date, "2026-07-28", date(2026, 7, 28)),
        (decimal.Decimal, "1.50", decimal.Decimal("1.50")),
    ],
)
def test_text_reader_converts_text_leniently(annotation: Any, text: Any, value: Any) -> None:
    found = text_reader_of(annotation).read({"x": text})
    assert found == {"x": value}
    assert type(found["x"]) is type(value)


@pytest.mark.parametrize(
    ("annotation", "text", "why"),
    [
        (int, "three", "Invalid argument `x`: expected `int`, got `str`"),
        (list, "[" * 100_000, "Invalid argument `x`: nested too deeply"),
        (int, "", "Invalid argument `x`: expected `int`, got `str`"),
        (list[int], "[1", "Invalid argument `x`: expected `array`, got `str`"),
        (
            Annotated[str, Meta(max_length=2)],
            "abc",
            "Invalid argument `x`: expected `str` of length <= 2",
        ),
        (
            Annotated[str, Meta(pattern="^a+$")],
            '"a"',
            "Invalid argument `x`: expected `str` matching regex '^a+$'",
        ),
        (list[int], '[1,"b"]', "Invalid argument `x[1]`: expected `int`, got `str`"),
        (list[int], '["b" and more', "Invalid argument `x[0]`: expected `int`, got `str`"),
        (list[Color], '["green"]', 'Invalid argument `x[0]`: "green" is not one of "blue", "red"'),
        (Strict, '{"x":-1}', "Invalid argument `x`: x is negative"),
        (date, "5", 'Invalid argument `x`: "5" is not a date such as 2026-01-31'),
        (list[int], ["1", "b"], "Invalid argument `x[1]`: expected `int`, got `str`"),
        (Annotated[int, Meta(ge=5)], "3", "Invalid argument `x`: expected `int` >= 5"),
    ],
)
def test_text_reader_invalid_text_has_a_reason(annotation: Any, text: Any, why: str) -> None:
    with pytest.raises(InvalidArguments) as caught:
        text_reader_of(annotation).read({"x": text})
    assert str(caught.value) == why


def test_text_reader_missing_unknown_and_empty_arguments() -> None:
    reader = TextReader(inspect_function(two))
    assert reader.read({"city": "Oslo"}) == {"city": "Oslo"}
    assert reader.read({"city": "Oslo", "days": "2"}) == {"city": "Oslo", "days": 2}
    assert reader.read({"city": "", "days": ""}) == {"city": ""}  # an empty form field
    with pytest.raises(InvalidArguments, match="Missing argument `city`"):
        reader.read({"days": "2"})
    with pytest.raises(
        InvalidArguments, match="Unknown argument `day`; the arguments are: city, days"
    ):
        reader.read({"city": "x", "day": "2"})
    with pytest.raises(InvalidArguments, match="the arguments are: none"):
        TextReader(inspect_function(nothing)).read({"x": "y"})
    assert repr(reader) == "<TextReader city, days>"


def test_text_reader_argument_without_annotation_is_text() -> None:
    def f(x, y=3): ...  # type: ignore[no-untyped-def]

    reader = TextReader(inspect_function(f))
    assert reader.read({"x": "3", "y": ""}) == {"x": "3", "y": ""}


def test_read_back_value_of_another_type_raises() -> None:
    assert check_encoded(b"3", msgspec.json.Decoder(int).decode) == 3
    with pytest.raises(InvalidArguments, match="Expected `int`"):
        check_encoded(b'"3"', msgspec.json.Decoder(int).decode)


def test_read_back_value_that_breaks_its_type_raises_what_the_type_does() -> None:
    """It isn't the value that is wrong, and the author needs the traceback."""

    def decode(data: bytes) -> None:
        raise KeyError(data)

    with pytest.raises(KeyError, match="1"):
        check_encoded(b"1", decode)


@pytest.mark.parametrize("arguments", [UNSET, b"{}", b"null", b" null "])
def test_arguments_absent_or_null_are_empty(arguments: Any) -> None:
    def tool(x: int = 1) -> None: ...

    assert ArgumentReader(inspect_function(tool)).read(arguments) == {"x": 1}
    assert read_object(arguments) == {}


class Level(enum.Enum):
    LOW = "low"


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (int, "3"),
        (int, 3.5),
        (str, 5),
        (bool, 0),
        (list[int], ["a"]),
        (list[list[int]], [["a"]]),
        (dict[str, int], {"a": "b"}),
        (dict[str, int], {"a": [1]}),
        (Literal["a"], "b"),
        (Level, "high"),
        (datetime, "now"),
        (Annotated[int, Meta(ge=1)], 0),
        (Annotated[int, pydantic.Field(ge=1)], 0),
        (int | None, "none"),
    ],
)
def test_default_that_does_not_fit_its_type_is_refused(annotation: Any, default: Any) -> None:
    """The schema would advertise a value that it forbids, and the function get one of no type."""

    def f(x: Any = default) -> None: ...

    f.__annotations__["x"] = annotation
    for reader in ArgumentReader, TextReader:
        with pytest.raises(DeclarationError) as caught:
            reader(inspect_function(f))
        assert f"the default {default!r} of parameter 'x' does not fit its type: " in str(
            caught.value
        )


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (int, None),
        (float, 1),
        (float, math.inf),
        (list[int], ()),
        (set[int], frozenset()),
        (Level, Level.LOW),
        (Level, "low"),
        (Path, "."),
        (bytes, b"a"),
        (int, NoJson()),
        (datetime, datetime(2026, 1, 1, tzinfo=UTC)),
        (Any, object()),
        (dict[int, int], {1: 1}),
        (dict[str, datetime], {"a": datetime(2026, 1, 1, tzinfo=UTC)}),
        (dict[str, int], {"a": {"b": object()}}),
        (dict[str, int], {None: "a"}),
        (str, "\ud800"),
        (Annotated[int, pydantic.Field(ge=1)], 1),
    ],
)
def test_default_that_fits_its_type_is_kept(annotation: Any, default: Any) -> None:
    """One that JSON cannot represent isn't in the schema, and may stand for anything."""

    def f(x: Any = default) -> None: ...

    f.__annotations__["x"] = annotation
    assert ArgumentReader(inspect_function(f)).read(b"{}") == {"x": default}
    assert TextReader(inspect_function(f)).read({}) == {}


class Doubled(pydantic.BaseModel, extra="forbid"):
    x: int = 1

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def double(self) -> int:
        return 2 * self.x


class Renamed(pydantic.BaseModel):
    x: int = pydantic.Field(validation_alias="theX")


class Hidden(pydantic.BaseModel):
    x: int = pydantic.Field(exclude=True)


class GermanDate(pydantic.BaseModel):
    when: datetime

    @pydantic.field_serializer("when")
    def _write(self, when: datetime) -> str:
        return when.strftime("%d.%m.%Y")


Short = Annotated[pydantic.SecretStr, pydantic.Field(max_length=5)]


@dataclasses.dataclass
class Even:
    x: int

    def __post_init__(self) -> None:
        if self.x % 2:
            raise SystemExit(self.x)


def leave(value: Any) -> Any:
    raise SystemExit(value)


def split(text: str) -> list[str]:
    return text.split(",")


@pytest.mark.parametrize(
    ("annotation", "default"),
    [
        (Doubled, Doubled()),
        (Doubled | None, Doubled()),
        (list[Doubled], [Doubled()]),
        (Renamed, Renamed.model_validate({"theX": 1})),
        (Hidden, Hidden(x=1)),
        (GermanDate, GermanDate(when=datetime(2026, 1, 1, tzinfo=UTC))),
        (Short, pydantic.SecretStr("abc")),
        (int, 1e6),
        (int, 1.0),
        (list[int], [1.0]),
        (dict[str, int], {"a": 1.0}),
        (Annotated[int, pydantic.Field(ge=1)], 1.0),
        (int, True),
        (Even, {"x": 1}),
        (Annotated[str, pydantic.AfterValidator(leave)], "a"),
        (Annotated[list[str], pydantic.BeforeValidator(split)], ["a", "b"]),
        (Annotated[list[int], pydantic.BeforeValidator(lambda text: [text])], [1]),
        (pydantic.Json, [1]),
    ],
)
def test_default_that_is_written_otherwise_than_read_is_kept(annotation: Any, default: Any) -> None:
    """An object's JSON need not be what a peer sends, and a validator is the author's own code."""

    def f(x: Any = default) -> None: ...

    f.__annotations__["x"] = annotation
    assert ArgumentReader(inspect_function(f)).read(b"{}") == {"x": default}
    assert TextReader(inspect_function(f)).read({}) == {}


@pytest.mark.parametrize("text", ["a - at `$.b`", "a - at `$", " - at `$"])
def test_value_that_looks_like_a_path_is_no_path(text: str) -> None:
    """msgspec repeats an unknown value, and writes the path after it."""
    arguments = json.dumps({"x": [text]}).encode()
    with pytest.raises(InvalidArguments) as caught:
        reader_of(list[Literal["one"]]).read(arguments)
    assert str(caught.value) == f'Invalid argument `x[0]`: {json.dumps(text)} is not "one"'
    with pytest.raises(InvalidArguments) as caught:
        text_reader_of(list[Literal["one"]]).read({"x": [text]})
    assert str(caught.value) == f'Invalid argument `x[0]`: {json.dumps(text)} is not "one"'


class Bounded(msgspec.Struct):
    low: float = -math.inf
    high: float = math.nan
    step: float = 1.0


class BoundedModel(pydantic.BaseModel):
    low: float = -math.inf
    high: Annotated[float, pydantic.Field(lt=math.inf)] = math.nan
    step: float = 1.0


@pytest.mark.parametrize("annotation", [Bounded, BoundedModel])
def test_schema_leaves_out_what_json_cannot_hold(annotation: Any) -> None:
    def f(x: Any, y: float = math.nan) -> None: ...

    f.__annotations__["x"] = annotation
    schema = ArgumentReader(inspect_function(f)).schema
    assert "default" not in schema["properties"]["y"]
    properties = next(iter(schema["$defs"].values()))["properties"] if "$defs" in schema else None
    if properties is None:
        properties = schema["properties"]["x"]["properties"]
    assert [part.get("default") for part in properties.values()] == [None, None, 1.0]
    assert not any("exclusiveMaximum" in part for part in properties.values())


@pytest.mark.parametrize(
    ("annotation", "default", "schema"),
    [
        (typing.Dict, None, {"anyOf": [{"type": "object"}, {"type": "null"}]}),  # noqa: UP006
        (typing.List, MISSING, {"type": "array"}),  # noqa: UP006
        (
            list[typing.List],  # type: ignore[type-arg]  # noqa: UP006
            MISSING,
            {"type": "array", "items": {"type": "array"}},
        ),
        (Annotated[Any, pydantic.Field(default=None)], MISSING, {}),
        (dict[str, object], MISSING, {"type": "object", "additionalProperties": {}}),
        (typing.Iterable, MISSING, {"type": "array"}),
    ],
)
def test_schema_of_what_published_servers_declare(
    annotation: Any, default: Any, schema: dict[str, Any]
) -> None:
    def f(x: Any) -> None: ...

    f.__annotations__["x"] = annotation
    if default is not MISSING:
        f.__defaults__ = (default,)
    found = ArgumentReader(inspect_function(f)).schema["properties"]["x"]
    assert {key: value for key, value in found.items() if key != "default"} == schema
