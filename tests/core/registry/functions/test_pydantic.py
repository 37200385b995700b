"""Parameters and results that are declared with pydantic."""

# No postponed annotations here: types are made inside of test functions.

import dataclasses
import json
import sys
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import jsonschema
import msgspec
import pydantic
import pytest
from msgspec import Raw
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PositiveInt

from mcp_core import LATEST, UnencodableValue
from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.registry import DeclarationError
from mcp_core.registry.functions import _types
from mcp_core.registry.functions._function import inspect_function
from mcp_core.registry.functions._output import Output
from mcp_core.registry.functions._pydantic import (
    InvalidValue,
    PydanticType,
    _has_writers,
    _lost,
    fields_of,
    runs_functions,
    text_without_value,
    uses_pydantic,
)
from mcp_core.registry.functions._signature import ArgumentReader, InvalidArguments, TextReader

T = TypeVar("T")


class Item(BaseModel):
    """One thing to buy."""

    name: str
    price: Decimal = Field(gt=0)


class Order(BaseModel):
    items: list[Item] = Field(max_length=2)
    note: str | None = None


class Renamed(BaseModel):
    user_id: int = Field(alias="userId")


class Exact(BaseModel):
    model_config = ConfigDict(strict=True)

    count: int
    at: pydantic.AwareDatetime | None = None


class Node(BaseModel):
    children: list["Node"] = []


@dataclasses.dataclass
class Bounded:
    count: Annotated[int, Field(ge=1)]


@pydantic.dataclasses.dataclass
class Checked:
    count: int = Field(ge=1)


class Pair(BaseModel):
    a: str
    b: list[int] | Item


class Keys(BaseModel):
    one: pydantic.SecretStr
    day: pydantic.Secret[date]


class Vault(BaseModel):
    key: pydantic.Secret[int] | pydantic.Secret[date]


class Locks(BaseModel):
    kind: Literal["lock"]
    one: pydantic.SecretStr | pydantic.SecretBytes


class Doors(BaseModel):
    kind: Literal["door"]


class Nullable(BaseModel):
    a: int
    b: int


class Plain(msgspec.Struct):
    x: int


@dataclasses.dataclass
class Circle:
    radius: float


class Holder(msgspec.Struct):
    item: Item
    place: Path


def even(value: int) -> int:
    if value % 2:
        raise ValueError("it is odd")
    return value


def reader_of(annotation: Any, *default: Any) -> ArgumentReader:
    """Return a reader for `def f(x: annotation = default)`."""

    def f(x): ...  # type: ignore[no-untyped-def]

    f.__annotations__ = {"x": annotation}
    f.__defaults__ = default
    return ArgumentReader(inspect_function(f))


def read(annotation: Any, value: str) -> Any:
    return reader_of(annotation).read(Raw(b'{"x":%b}' % value.encode()))["x"]


ITEM = '{"name":"tea","price":"1.5"}'
TEA = Item(name="tea", price=Decimal("1.5"))


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Item, ITEM, TEA),
        (Item | None, "null", None),
        (list[Item], f"[{ITEM}]", [TEA]),
        (dict[str, Item], f'{{"a":{ITEM}}}', {"a": TEA}),
        (Item | Bounded, '{"count":1}', Bounded(1)),
        (Order, f'{{"items":[{ITEM}]}}', Order(items=[TEA])),
        (Node, '{"children":[{}]}', Node(children=[Node()])),
        (Renamed, '{"userId":3}', Renamed(userId=3)),
        (Bounded, '{"count":1.0}', Bounded(1)),
        (Checked, '{"count":1}', Checked(1)),
        (Holder, f'{{"item":{ITEM},"place":"a"}}', Holder(TEA, Path("a"))),
        (Annotated[int, Field(ge=1, le=3)], "3", 3),
        (Annotated[int, Field(ge=1)] | None, "null", None),
        (list[Annotated[int, Field(ge=1)]], "[1]", [1]),
        (PositiveInt, "1", 1),
        (Annotated[int, AfterValidator(even)], "2", 2),
        (Annotated[int, Field()], "123456789012345678901234567890", 123456789012345678901234567890),
    ],
)
def test_argument_reader_pydantic_value_is_converted(
    annotation: Any, value: str, expected: Any
) -> None:
    found = read(annotation, value)
    assert found == expected
    assert type(found) is type(expected)
    schema = reader_of(annotation).schema
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate({"x": json.loads(value)})


def test_argument_reader_strict_model_reads_json_text_as_date() -> None:
    at = read(Exact, '{"count":1,"at":"2026-07-28T12:00:00Z"}').at
    assert at.year == 2026
    with pytest.raises(InvalidArguments, match="count: Input should be a valid integer"):
        read(Exact, '{"count":"1"}')


@pytest.mark.parametrize(
    ("annotation", "value", "why"),
    [
        (
            Annotated[int, Field(ge=1, le=3)],
            "4",
            "Invalid argument `x`: input should be less than or equal to 3",
        ),
        (
            Item,
            '{"name":1,"price":0}',
            (
                "Invalid argument `x`: name: Input should be a valid string; "
                "price: Input should be greater than 0"
            ),
        ),
        (
            Order,
            '{"items":[{"price":1}]}',
            "Invalid argument `x`: items.0.name: Field required",
        ),
        (
            Bounded,
            '{"count":0}',
            "Invalid argument `x`: count: Input should be greater than or equal to 1",
        ),
        (
            Checked,
            '{"count":0}',
            "Invalid argument `x`: count: Input should be greater than or equal to 1",
        ),
        (
            Holder,
            '{"item":{"name":"a","price":0},"place":"a"}',
            "Invalid argument `x.item`: price: Input should be greater than 0",
        ),
        (
            Annotated[int, AfterValidator(even)],
            "3",
            "Invalid argument `x`: value error, it is odd",
        ),
        (
            Item | Exact,
            "3",
            (
                "Invalid argument `x`: expected one of Item, Exact, not 3 "
                "(Item: Input should be an object; Exact: Input should be an object)"
            ),
        ),
        (
            list[Item | Node],
            '[{"name":"a","price":0,"children":1}]',
            (
                "Invalid argument `x`: 0: Expected one of Item, Node "
                "(Item.price: Input should be greater than 0; "
                "Node.children: Input should be a valid array)"
            ),
        ),
        (
            Pair,
            '{"a":5,"b":5}',
            (
                "Invalid argument `x`: a: Input should be a valid string; "
                "b: Expected one of list[int], Item, not 5 "
                "(list[int]: Input should be a valid array; Item: Input should be an object)"
            ),
        ),
        (
            pydantic.AnyUrl,
            '"tea"',
            (
                "Invalid argument `x`: input should be a valid URL, relative URL without a base, "
                'not "tea"'
            ),
        ),
        (Pair, "{}", "Invalid argument `x`: a: Field required; b: Field required"),
        (
            Exact,
            '{"count":1,"at":5}',
            (
                "Invalid argument `x`: at: "
                "Input should be a date and time such as 2026-01-31T12:30:00Z, not 5"
            ),
        ),
        (
            Annotated[list[int], BeforeValidator(lambda v: [v, v])],
            '"tea"',
            (
                "Invalid argument `x`: 0: Input should be a valid integer, unable to parse string "
                "as an integer; 1: Input should be a valid integer, unable to parse string "
                "as an integer"
            ),
        ),
        (
            list[Annotated[int, Field(ge=1)]],
            json.dumps([0] * 12),
            "Invalid argument `x`: "
            + "; ".join(f"{n}: Input should be greater than or equal to 1" for n in range(10))
            + "; and 2 more errors",
        ),
    ],
)
def test_argument_reader_invalid_pydantic_value_has_a_reason(
    annotation: Any, value: str, why: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        read(annotation, value)
    assert str(caught.value) == why


@pytest.mark.parametrize(
    ("annotation", "value", "why"),
    [
        (
            Keys | Doors,
            '{"one":"hunter2"}',
            "expected one of Keys, Doors (Keys.day: Field required;",
        ),
        (Keys, '{"one":"a","day":"hunter2"}', "`x`: day: Input should be a valid date"),
        (pydantic.SecretStr | pydantic.SecretBytes, '["hunter2"]', "expected one of"),
        (Vault, '{"key":"hunter2"}', "key: Expected one of"),
        (
            Annotated[Locks | Doors, Field(discriminator="kind")],
            '{"kind":"lack","one":"hunter2"}',
            "`x`: input tag should be one of 'lock', 'door'",
        ),
        (
            Annotated[Locks | Doors, Field(discriminator="kind")],
            '{"one":"hunter2"}',
            "unable to extract tag",
        ),
        (Circle | Plain, '{"radius":"hunter2"}', "expected one of Circle, Plain (Circle"),
    ],
)
def test_argument_reader_invalid_value_with_a_secret_is_not_repeated(
    annotation: Any, value: str, why: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        read(annotation, value)
    assert why in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_pydantic_type_invalid_value_is_in_no_text_for_logs() -> None:
    """Neither is pydantic's own error, which repeats values, in the chain that a log shows."""

    def double(value: Any) -> Any:
        return [value, value]

    for annotation, value in (
        (Annotated[list[int], BeforeValidator(double)], "hunter2"),
        (Item | Nullable, {"name": "hunter2"}),
        (Annotated[Locks | Doors, Field(discriminator="kind")], {"kind": "hunter2"}),
        (date, "hunter2"),
    ):
        pydantic_type = PydanticType(annotation, "x")
        for act in pydantic_type.read, pydantic_type.write:
            with pytest.raises(InvalidValue) as caught:
                act(value)
            assert "hunter2" not in caught.value.without_value
            assert caught.value.__context__ is None


def test_argument_reader_field_as_default_gives_default_bounds_and_name() -> None:
    """pydantic's own style works, with a new list for each call from `default_factory`."""

    def f(
        count: int = Field(3, ge=1, description="how many"),
        names: list[str] = Field(default_factory=list),  # noqa: B008
        wanted: int = Field(ge=1),
        user: str = Field("me", alias="userName"),
        also: Annotated[int, Field(7, le=9)] = 8,
        last: Annotated[int, Field(7, le=9)] = None,  # type: ignore[assignment] # noqa: RUF013
    ) -> None: ...

    reader = ArgumentReader(inspect_function(f))
    properties = reader.schema["properties"]
    assert properties["count"] == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "how many",
    }
    assert reader.schema["required"] == ["wanted"]
    first, second = reader.read(b'{"wanted":1}'), reader.read(b'{"wanted":1,"userName":"you"}')
    assert first == {
        "count": 3,
        "names": [],
        "wanted": 1,
        "user": "me",
        "also": 8,
        "last": None,
    }
    assert second["user"] == "you"
    assert first["names"] is not second["names"]
    with pytest.raises(InvalidArguments, match="`count`: input should be greater"):
        reader.read(b'{"wanted":1,"count":0}')


def test_model_within_a_struct_is_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pydantic takes a thousand times as long for that as to read a value."""

    class Tea(BaseModel):
        name: str

    class Cup(msgspec.Struct):
        tea: Tea

    def make(*args: Any) -> PydanticType:
        made.append(args)
        return PydanticType(*args)

    made: list[Any] = []
    reader = reader_of(Cup)
    monkeypatch.setattr(_types, "PydanticType", make)
    for _ in range(3):
        reader.read(Raw(b'{"x":{"tea":{"name":"oolong"}}}'))
    assert len(made) <= 1


def test_argument_reader_definitions_of_equal_names_stay_apart() -> None:
    """Two models named `Part` differ: neither may validate the other's data."""

    def make(kind: Any) -> type[BaseModel]:
        class Part(BaseModel):
            value: kind

        class Whole(BaseModel):
            parts: list[Part]

        return Whole

    def f(a, b, c): ...  # type: ignore[no-untyped-def]

    number, text = make(int), make(str)
    f.__annotations__ = {"a": number, "b": text, "c": number}
    schema = ArgumentReader(inspect_function(f)).schema
    assert set(schema["$defs"]) == {"Part", "Part2"}
    validator = jsonschema.Draft202012Validator(schema)
    good = {"a": {"parts": [{"value": 1}]}, "b": {"parts": [{"value": "x"}]}, "c": {"parts": []}}
    validator.validate(good)
    assert not validator.is_valid({**good, "b": {"parts": [{"value": 1}]}})
    assert not validator.is_valid({**good, "c": {"parts": [{"value": "x"}]}})


def test_text_reader_reads_text_with_pydantic_and_fills_defaults() -> None:
    def f(
        count: int = Field(3, ge=1),
        names: list[str] = Field(default_factory=list),  # noqa: B008
        item: Item | None = None,
    ) -> None: ...

    reader = TextReader(inspect_function(f))
    assert reader.read({}) == {"count": 3, "names": []}
    assert reader.read({"count": "", "item": ITEM}) == {"count": 3, "names": [], "item": TEA}
    assert reader.read({"count": "5", "names": '["a"]'}) == {"count": 5, "names": ["a"]}
    with pytest.raises(InvalidArguments, match="Invalid argument `count`: input should be greater"):
        reader.read({"count": "0"})


class Crate(msgspec.Struct, Generic[T]):
    content: T


def test_model_that_is_the_argument_of_a_struct_is_left_to_msgspec() -> None:
    """Pydantic cannot read the Struct."""
    assert uses_pydantic(Item)
    assert uses_pydantic(list[Item])
    assert not uses_pydantic(Crate[Item])
    assert read(Crate[Item], f'{{"content":{ITEM}}}') == Crate(TEA)


class InStruct(msgspec.Struct):
    count: Annotated[int, Field(ge=1)]


@pytest.mark.parametrize(
    ("annotation", "why"),
    [
        (InStruct, "field 'count' of InStruct is annotated for pydantic; use msgspec.Meta"),
        (Item | Plain, "cannot be read by pydantic: .*; use types of pydantic only"),
    ],
)
def test_argument_reader_mixture_of_both_libraries_raises_with_cure(
    annotation: Any, why: str
) -> None:
    with pytest.raises(DeclarationError, match=why):
        reader_of(annotation)


def test_argument_reader_without_pydantic_names_the_package(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "pydantic", None)
    with pytest.raises(DeclarationError, match="pip install pydantic"):
        reader_of(Annotated[int, Field(ge=1)])


# -- Results ---------------------------------------------------------------------------------------


def test_output_model_is_structured_by_alias() -> None:
    output = Output(Renamed, None, "function 'f'")
    assert output.schema(DIALECTS[LATEST])["properties"]["userId"]["type"] == "integer"  # type: ignore[index]
    result = output.result(Renamed(userId=3), DIALECTS[LATEST])
    assert msgspec.json.encode(result.structured_content) == b'{"userId":3}'  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("returns", "value", "expected"),
    [
        (list[Item], [TEA], b'[{"name":"tea","price":"1.5"}]'),
        (Item | None, None, b"null"),
        (Bounded, Bounded(1), b'{"count":1}'),
        (Annotated[int, Field(ge=1)], 3, b"3"),
        # Without an annotation the value decides.
        (Any, TEA, b'{"name":"tea","price":"1.5"}'),
        (Any, {"a": [TEA]}, b'{"a":[{"name":"tea","price":"1.5"}]}'),
        (dict[str, Path], {"a": Path("b")}, b'{"a":"b"}'),
    ],
)
def test_output_value_of_pydantic_is_encoded(returns: Any, value: Any, expected: bytes) -> None:
    result = Output(returns, None, "function 'f'").result(value, DIALECTS[LATEST])
    assert bytes(result.structured_content) == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("returns", "value", "why"),
    [
        (Item, {"name": "a", "price": 0}, "price: Input should be greater than 0"),
        (Item, "tea", "Input should be a valid dictionary or instance of Item"),
        (Annotated[int, Field(ge=1)], 0, "Input should be greater than or equal to 1"),
        (Nullable, {"a": None, "b": None}, r"^a: Input should be a valid integer; b: Input"),
    ],
)
def test_output_invalid_value_of_pydantic_raises(returns: Any, value: Any, why: str) -> None:
    with pytest.raises(InvalidArguments, match=why):
        Output(returns, None, "function 'f'").result(value, DIALECTS[LATEST])


class Row(BaseModel, extra="allow"):
    size: int = 2**70
    share: float = 0.5
    page: pydantic.HttpUrl = pydantic.HttpUrl("http://a/b")
    note: str | None = None


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (Row, Row()),
        (list[Row], [Row.model_validate({"more": [None]})]),
        (dict[str, Any], {"rows": [Row()], "n": 2**70}),
    ],
)
def test_value_with_null_is_dumped_once(
    annotation: Any, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its fields show that no number is missing: a URL and a large integer are none."""

    def check(*_: Any) -> None:
        raise AssertionError("a second dump")

    for module in "_pydantic", "_types":
        monkeypatch.setattr(f"mcp_core.registry.functions.{module}.check_numbers", check)
    result = Output(annotation, None, "f").result(value, DIALECTS[LATEST])
    assert b"null" in bytes(result.structured_content)  # type: ignore[attr-defined]


# -- Numbers that JSON lacks -----------------------------------------------------------------------

NAN = float("nan")


@pytest.mark.parametrize(
    ("value", "written", "lost"),
    [
        (0.5, None, 0.5),
        (0.5, 0.5, None),
        ({"a": 0.5, "b": 1.5}, {"a": None, "c": 2}, {"a": 0.5, "b": None}),
        ({"a": 0.5}, {"a": None, "b": None}, None),
        ({"a": 0.5}, [None], None),
        ([0.5, [1.5]], [1, [None]], [None, [1.5]]),
        ((0.5,), [None], [0.5]),
        ([0.5], [None, None], None),
        ([0.5], {"a": None}, None),
        ({0.5, "a"}, [None, "a"], [0.5]),
        ({0.5}, [1], None),
        ({0.5, None}, [None, None], None),
        ("a", None, None),
    ],
)
def test_numbers_that_are_null_in_the_json_are_found(value: Any, written: Any, lost: Any) -> None:
    assert _lost(value, written) == lost


class _WithSerializer(BaseModel):
    a: float = 0.5

    @pydantic.field_serializer("a")
    def write_a(self, value: float) -> str:
        return str(value)


class _WithModelSerializer(BaseModel):
    @pydantic.model_serializer
    def write(self) -> str:
        return "a"


class _WithComputed(BaseModel):
    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def b(self) -> float:
        return 0.5


class _Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    a: int = 1


@pytest.mark.parametrize("cls", [_WithSerializer, _WithModelSerializer, _WithComputed, object])
def test_fields_of_what_is_written_as_something_else_are_unknown(cls: Any) -> None:
    with pytest.raises(TypeError):
        fields_of(cls())


def test_fields_of_a_model_are_those_with_extra_ones() -> None:
    assert fields_of(_Open()) == {"a": 1}
    assert fields_of(_Open.model_validate({"a": 2, "b": 3})) == {"a": 2, "b": 3}
    assert fields_of(Item(name="x", price=Decimal(1))) == {"name": "x", "price": Decimal(1)}
    assert fields_of(Path("/")) is None
    assert fields_of(pydantic.SecretStr("a")) is None


@pytest.mark.parametrize(
    ("value", "has_writers"),
    [
        (_WithSerializer(), True),
        ({"a": [{"b": (_WithSerializer(),)}]}, True),
        ([frozenset(), {1}], False),
        (_Open(), False),
        (_Open.model_validate({"b": _WithSerializer()}), True),
        (_Open.model_validate({"a": 1, "b": [1]}), False),
        (0.5, False),
    ],
)
def test_functions_that_write_a_part_of_a_value_are_found(value: Any, has_writers: bool) -> None:
    assert _has_writers(value) is has_writers


def test_functions_that_write_a_part_of_a_circle_are_found() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert not _has_writers(circle)
    circle.append(_WithSerializer())
    assert _has_writers(circle)


class _Unwritten(BaseModel):
    a: Any = pydantic.Field(default=None, alias="A")


@pytest.mark.parametrize("value", [NAN, float("inf"), -float("inf")])
@pytest.mark.parametrize("nested", [False, True])
def test_number_without_json_in_what_has_no_type_is_named_by_its_alias(
    value: float, nested: bool
) -> None:
    kind = PydanticType(_Unwritten, "the result")
    assert kind.write(_Unwritten.model_validate({"A": None})) == b'{"A":null}'
    with pytest.raises(UnencodableValue) as refused:
        kind.write(_Unwritten.model_validate({"A": [value] if nested else value}))
    assert "A" in str(refused.value)


class _Failing(BaseModel):
    a: str

    @pydantic.field_serializer("a")
    def write_a(self, value: str) -> str:
        raise LookupError


def test_exception_of_an_authors_serializer_is_raised_as_it_is() -> None:
    with pytest.raises(ValueError, match="write_a`: LookupError"):
        PydanticType(_Failing, "the result").write(_Failing(a="x"))


class _Unreadable:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise ValueError("no schema. Nothing else")


def test_type_that_pydantic_cannot_read_is_refused_with_the_reason() -> None:
    with pytest.raises(DeclarationError) as refused:
        PydanticType(_Unreadable, "the result")
    assert str(refused.value) == (
        "the result cannot be read by pydantic: no schema; "
        "use types of pydantic only, or none, in one annotation"
    )


def test_type_without_a_schema_of_json_is_refused_at_once() -> None:
    with pytest.raises(DeclarationError, match="cannot be read by pydantic"):
        PydanticType(Callable[[], int], "x")


@dataclasses.dataclass
class Branch:
    """A type that contains itself."""

    branches: list["Branch"]


@pytest.mark.parametrize(
    ("annotation", "runs"),
    [
        (int, False),
        (Item, False),
        (Branch, False),
        (Annotated[int, AfterValidator(abs)], True),
        (list[Annotated[int, BeforeValidator(abs)]], True),
        (pydantic.Json, True),
    ],
)
def test_annotation_whose_reading_runs_functions_is_found(annotation: Any, runs: bool) -> None:
    assert runs_functions(annotation) is runs


def test_text_without_json_is_named_by_its_place() -> None:
    kind = PydanticType(_Unwritten, "the result")
    with pytest.raises(UnencodableValue, match="surrogate"):
        kind.write(_Unwritten.model_validate({"A": "\ud800"}))


class _WithConstants(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")

    a: float


class _WithStrings(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="strings")

    a: float


@pytest.mark.parametrize("value", [NAN, float("inf"), -float("inf")])
def test_number_without_json_is_refused_unless_it_is_written_as_text(value: float) -> None:
    with pytest.raises(UnencodableValue):
        PydanticType(_WithConstants, "x").write(_WithConstants(a=value))
    with pytest.raises(UnencodableValue):
        PydanticType(Bounded | float, "x").write(value)
    name = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    written = PydanticType(_WithStrings, "x").write(_WithStrings(a=value))
    assert written == f'{{"a":"{name}"}}'.encode()
    assert PydanticType(_WithConstants, "x").write(_WithConstants(a=0.5)) == b'{"a":0.5}'


def test_exception_of_an_authors_validator_is_raised_as_it_is() -> None:
    def fail(value: int) -> int:
        raise LookupError

    kind = PydanticType(Annotated[int, AfterValidator(fail)], "x")
    with pytest.raises(LookupError):
        kind.read(1)
    with pytest.raises(LookupError):
        kind.write(1)


def test_text_without_value_is_that_of_the_innermost_error() -> None:
    inner = InvalidValue("3 is wrong", "it is wrong")
    outer = ValueError("3 is wrong - at `$.a`, 3 is wrong")
    outer.__cause__ = inner
    assert text_without_value(inner) == "it is wrong"
    assert text_without_value(outer) == "it is wrong - at `$.a`, 3 is wrong"
    assert text_without_value(ValueError("other")) == "other"
