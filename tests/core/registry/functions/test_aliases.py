"""Aliases of types: what they stand for, those that contain themselves, and those in circles."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
from typing import (
    Annotated,
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
    Union,
    get_type_hints,
)

import jsonschema
import msgspec
import pydantic
import pytest
from typing_extensions import TypeAliasType
from typing_extensions import TypedDict as TypedDictForPydantic

from mcp_core.registry import DeclarationError, Form
from mcp_core.registry.functions._function import inspect_function
from mcp_core.registry.functions._output import Output
from mcp_core.registry.functions._signature import ArgumentReader, InvalidArguments

T = TypeVar("T")


class Point(msgspec.Struct):
    x: int


Rows = TypeAliasType("Rows", "list[list[int]]")
Maybe = TypeAliasType("Maybe", T | None, type_params=(T,))
Points = TypeAliasType("Points", list[Point])
Forest = TypeAliasType("Forest", "dict[str, Forest] | list[Leaf] | int")
Outer = TypeAliasType("Outer", "list[Outer] | Second")
Inner = TypeAliasType("Inner", "list[Inner] | First | int")
Mixed = TypeAliasType("Mixed", "list[Mixed] | Third | Point")
Json = TypeAliasType("Json", "None | bool | int | float | str | list[Json] | dict[str, Json]")
Tree = TypeAliasType("Tree", "dict[str, Tree[T]] | T", type_params=(T,))
Even = TypeAliasType("Even", "list[Odd]")
Odd = TypeAliasType("Odd", "dict[str, Even]")
Same = TypeAliasType("Same", "Same")  # type: ignore[misc]
Left = TypeAliasType("Left", "Right | int")
Right = TypeAliasType("Right", "Annotated[Left, 'noted'] | str")  # type: ignore[misc]
# What it contains is met a second time, where it mustn't contain it.
Once = TypeAliasType("Once", "list[Again] | Again")
Again = TypeAliasType("Again", "Once | int")  # type: ignore[misc]
Lost = TypeAliasType("Lost", "list[Nothing]")  # type: ignore[name-defined]  # noqa: F821
# Without a name of its own, as before Python 3.12.
Nested = Union[int, "list[Nested]"]
_ = Annotated  # the text of `Right` has it


def reader_of(annotation: Any) -> ArgumentReader:
    def f(x: Any) -> None: ...

    f.__annotations__["x"] = annotation
    return ArgumentReader(inspect_function(f))


@pytest.mark.parametrize(
    ("annotation", "data", "value"),
    [
        (Rows, "[[1],[]]", [[1], []]),
        ("Rows", "[[1],[]]", [[1], []]),
        (Maybe[int], "null", None),
        (Maybe[int], "3", 3),
        (dict[str, Points], '{"a":[{"x":1}]}', {"a": [Point(1)]}),
        (Annotated[Points, "where"], '[{"x":1}]', [Point(1)]),
        (Points | None, "null", None),
        (Json, '{"a":[1,null,{"b":2.5}]}', {"a": [1, None, {"b": 2.5}]}),
        (dict[str, Json], '{"a":[true]}', {"a": [True]}),
        (list[Json] | None, '["a",[]]', ["a", []]),
        (Tree[int], '{"a":{"b":3}}', {"a": {"b": 3}}),
        (Even, '[{"a":[{"b":[]}]}]', [{"a": [{"b": []}]}]),
        (Nested, "[1,[2,[3]]]", [1, [2, [3]]]),
        ("Nested", "[1,[2,[3]]]", [1, [2, [3]]]),
        (pydantic.JsonValue, '{"a":[null]}', {"a": [None]}),
        (dict[str, pydantic.JsonValue], '{"a":[null]}', {"a": [None]}),
    ],
)
def test_alias_is_read_as_what_it_stands_for(annotation: Any, data: str, value: Any) -> None:
    reader = reader_of(annotation)
    assert reader.read(f'{{"x":{data}}}'.encode()) == {"x": value}
    # What a client does with the schema: all of its references lead somewhere.
    schema = msgspec.json.decode(msgspec.json.encode(reader.schema))
    for part in str(schema).split("'$ref': '")[1:]:
        name = part.partition("'")[0].removeprefix("#/$defs/")
        assert name in schema["$defs"]


@pytest.mark.parametrize(
    ("annotation", "data", "text"),
    [
        (Tree[int], '{"a":{"b":"c"}}', "`x`: expected `int | object`, got `str`"),
        (Even, '[{"a":[{"b":1}]}]', "expected `array`, got `int`"),
        (Nested, '[1,[2,["a"]]]', 'not "a" (int: Expected `int`, got `str`;'),
        (Json, "[" * 600 + "]" * 600, "nested too deeply"),
    ],
)
def test_alias_that_contains_itself_is_checked_at_each_depth(
    annotation: Any, data: str, text: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        reader_of(annotation).read(f'{{"x":{data}}}'.encode())
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Same, "parameter 'x', Same: the alias Same stands for itself"),
        (list[Same], "the alias Same stands for itself"),
        (Left, "the alias Left stands for itself"),
        (Once, "the alias Once stands for itself"),
        (Lost, "parameter 'x', Lost: name 'Nothing' is not defined"),
    ],
)
def test_alias_that_describes_no_value_is_refused(annotation: Any, text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        reader_of(annotation)
    assert text in str(caught.value)


def test_alias_of_a_result_is_what_it_stands_for() -> None:
    def f() -> Any: ...

    for alias, has_schema in ((TypeAliasType("Text", str), False), (Json, True), (Rows, True)):
        f.__annotations__["return"] = alias
        returns = inspect_function(f).returns
        assert (Output(returns, None, "f")._schema is not None) is has_schema


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is new in Python 3.12")
def test_type_statement_is_an_alias() -> None:
    names: dict[str, Any] = {"__name__": __name__}
    exec("type Deep[T] = list[Deep[T]] | T\ntype Short = Deep[int]", names)
    assert reader_of(names["Short"]).read(b'{"x":[[1],2]}') == {"x": [[1], 2]}


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the statement is new in Python 3.12")
def test_type_statement_in_a_field_is_replaced_only_where_msgspec_cannot_read_it() -> None:
    """It reads an alias that doesn't contain itself."""
    names: dict[str, Any] = {"__name__": __name__, "Struct": msgspec.Struct}
    text = (
        "type Words = list[str]\n"
        "type Loose = None | int | list[Loose]\n"
        "class Plain(Struct): words: Words\n"
        "class Free(Struct):\n  loose: Loose\n  plain: Plain\n"
    )
    exec(compile(text, "free.py", "exec", dont_inherit=True), names)
    read = reader_of(names["Free"]).read(b'{"x":{"loose":[[1]],"plain":{"words":["a"]}}}')
    assert msgspec.to_builtins(read["x"]) == {"loose": [[1]], "plain": {"words": ["a"]}}
    assert names["Plain"].__annotations__ == {"words": names["Words"]}
    assert names["Free"].__annotations__["loose"] is not names["Loose"]


class Table(msgspec.Struct):
    rows: Rows
    best: Maybe[int] = None


class Book(Table):
    tables: dict[str, Table] = {}
    books: list[Book] = []


class Note(msgspec.Struct, rename="camel", kw_only=True):
    any_json: Json
    any_value: pydantic.JsonValue = None
    nested: Nested = 0


class Box(msgspec.Struct, Generic[T]):
    content: T
    rows: Rows


class Leaf(msgspec.Struct):
    forest: Forest


class Second(msgspec.Struct):
    inner: Inner


class First(msgspec.Struct):
    outer: Outer


class Third(msgspec.Struct, tag=True):
    mixed: Mixed
    both: Mixed | Third | int = 0


class Loose(TypedDict):
    rows: NotRequired[Rows]
    best: Required[Maybe[int]]


@dataclasses.dataclass
class Constants:
    rows: Rows
    known: ClassVar[Rows] = []
    nested: ClassVar[Nested] = 0


@dataclasses.dataclass
class Sheet:
    rows: Rows
    cells: dict[str, pydantic.JsonValue]


class Row(TypedDict):
    points: Points


class Line(NamedTuple):
    points: Points


@pytest.mark.parametrize(
    ("annotation", "data", "value"),
    [
        (Table, '{"rows":[[1]],"best":3}', Table([[1]], 3)),
        (Book | None, '{"rows":[],"tables":{"a":{"rows":[[2]]}},"books":[{"rows":[]}]}', None),
        (Note, '{"anyJson":[{"a":null}],"anyValue":[1],"nested":[1,[2]]}', None),
        (Box[int], '{"content":1,"rows":[[1]]}', Box(1, [[1]])),
        (Box[Points], '{"content":[{"x":1}],"rows":[[1]]}', Box([Point(1)], [[1]])),
        (list[Sheet], '[{"rows":[[1]],"cells":{"a":[null]}}]', [Sheet([[1]], {"a": [None]})]),
        (Row, '{"points":[{"x":1}]}', {"points": [Point(1)]}),
        (Line, '[[{"x":1}]]', Line([Point(1)])),
        (Loose, '{"best":1}', {"best": 1}),
        (Loose, '{"best":null,"rows":[[1]]}', {"best": None, "rows": [[1]]}),
        (Constants, '{"rows":[[1]]}', Constants([[1]])),
        (dict[str, Points | Table], '{"a":{"rows":[]}}', {"a": Table([])}),
    ],
)
def test_alias_in_a_field_is_read_as_what_it_stands_for(
    annotation: Any, data: str, value: Any
) -> None:
    """Values are compared as JSON if the row has none."""
    reader = reader_of(annotation)
    read = reader.read(f'{{"x":{data}}}'.encode())["x"]
    if value is not None:
        assert read == value
        assert type(read) is type(value)
    else:
        sent, again = (msgspec.json.decode(each) for each in (data, msgspec.json.encode(read)))
        assert sent.items() <= again.items() or isinstance(read, Book)
    with pytest.raises(InvalidArguments, match=r"`x|Missing"):
        reader.read(f'{{"x":{data.replace("1", "{}").replace("[]", "7")}}}'.encode())


def test_alias_that_contains_itself_through_structs_is_described() -> None:
    """The schema allows exactly what is read, and each reference leads somewhere."""
    third = {"type": "Third", "mixed": []}
    for annotation, good, bad, value in (
        (Forest, {"a": [{"forest": {"b": 1}}]}, {"a": ["c"]}, {"a": [Leaf({"b": 1})]}),
        (Leaf, {"forest": [{"forest": 1}]}, {"forest": [{"forest": "a"}]}, Leaf([Leaf(1)])),
        (
            First,
            {"outer": [{"inner": [{"outer": []}]}]},
            {"outer": [{"inner": [{"outer": [1]}]}]},
            First([Second([First([])])]),
        ),
        (Second, {"inner": {"outer": []}}, {"inner": {"outer": 1}}, Second(First([]))),
        (Third, {**third, "both": [third]}, {**third, "both": [{"x": "a"}]}, None),
    ):
        reader = reader_of(annotation)
        schema = jsonschema.Draft202012Validator(
            msgspec.json.decode(msgspec.json.encode(reader.schema))
        )
        schema.validate({"x": good})
        read = reader.read(msgspec.json.encode({"x": good}))["x"]
        assert read == (value or Third([], [Third([])]))
        assert not schema.is_valid({"x": bad})
        with pytest.raises(InvalidArguments):
            reader.read(msgspec.json.encode({"x": bad}))


def test_class_that_cannot_be_declared_keeps_its_annotations() -> None:
    """An incomplete reader in them would let another function be declared."""

    class Never(msgspec.Struct):
        json: Json
        rows: Rows
        bad: Bad

    before = dict(Never.__annotations__)
    for _ in range(2):
        with pytest.raises(DeclarationError, match="Opaque"):
            reader_of(Never)
        assert Never.__annotations__ == before


def test_alias_in_a_field_is_replaced_by_an_equal_type_in_annotations() -> None:
    """Other code that looks at the class finds a type that it knows. What msgspec reads stays."""

    class Kept(msgspec.Struct):
        point: Point
        words: "list[str]"  # noqa: UP037 - as it is written

    reader_of(Table)
    assert get_type_hints(Table) == {"rows": list[list[int]], "best": int | None}
    before = dict(Kept.__annotations__)
    reader_of(Kept)
    assert Kept.__annotations__ == before


class Opaque:
    pass


Bad = TypeAliasType("Bad", "list[Bad] | Opaque")
Size = TypeAliasType("Size", Annotated[int, msgspec.Meta(ge=1)])


class Order(msgspec.Struct):
    size: Size


@pytest.mark.parametrize(
    "value_of",
    [
        lambda n: f"dict[str, A{(n + 1) % 12}] | list[A{(n + 2) % 12}] | int",
        lambda n: " | ".join(f"list[dict[str, A{each}]]" for each in range(12)) + " | int",
    ],
)
def test_many_aliases_in_circles_make_one_definition_each(value_of: Any) -> None:
    """So their schema stays small, and so does the time that it takes."""
    module = types.ModuleType("circles_of_another")
    sys.modules[module.__name__] = module
    try:
        for n in range(12):
            text = f"A{n} = TypeAliasType('A{n}', '{value_of(n)}')"
            exec(f"from typing_extensions import TypeAliasType\n{text}", vars(module))
        reader = reader_of(module.A0)
    finally:
        del sys.modules[module.__name__]
    schema = reader.schema
    assert set(schema["$defs"]) <= {f"A{n}" for n in range(12)}
    assert len(json.dumps(schema)) < 20_000
    assert reader.read(b'{"x":[{"y":1}]}') == {"x": [{"y": 1}]}


class Circle(msgspec.Struct):
    same: Same


class Circles(msgspec.Struct):
    same: Same
    shape: Table | Sheet


@dataclasses.dataclass
class Document:
    content: Json


class Branch(msgspec.Struct, Generic[T]):
    tree: Tree[T]


@dataclasses.dataclass
class Sides:
    shape: Table | Sheet


def test_form_and_typed_result_with_aliases() -> None:
    """Both have types of fields and aliases of their own."""
    from mcp_core.runtime._typed_results import result_reader
    from mcp_core.types import CallToolResult

    assert Form(Order).schema["properties"] == {"size": {"type": "integer", "minimum": 1}}
    result = CallToolResult(content=[], structured_content={"result": [[1]]})
    assert result_reader(Rows).read("t", result).data == [[1]]
    with pytest.raises(DeclarationError, match=r"^returns, Same: the alias Same stands for itself"):
        result_reader(Same)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Circle, "Schema: field 'same' of Circle: the alias Same stands for itself"),
        (Circles, "Schema: field 'same' of Circles: the alias Same stands for itself"),
        (Document, "field 'content' of Document: an alias that contains itself is read only in a"),
        (
            Branch[int],
            "field 'tree' of Branch: an alias that contains itself is read only in a Str",
        ),
        (Sides, "field 'shape' of Sides: Type unions may not contain more than one dict-like"),
        (Sides, "; a field can be one of several Structs with tag=True, or pydantic models"),
    ],
)
def test_field_that_cannot_be_read_is_named_with_the_cure(annotation: Any, text: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        reader_of(annotation)
    assert text in str(caught.value)


def test_quoted_name_in_an_alias_is_one_of_its_module() -> None:
    """An alias may be imported alone, without the names in it."""
    module = types.ModuleType("rows_of_another")
    module.__dict__.update(TypeAliasType=TypeAliasType)
    sys.modules[module.__name__] = module
    try:
        exec(
            "class Cell: ...\nCell = int\nCells = TypeAliasType('Cells', 'list[Cell]')",
            vars(module),
        )
        assert reader_of(module.Cells).read(b'{"x":[1]}') == {"x": [1]}
    finally:
        del sys.modules[module.__name__]


class Item(pydantic.BaseModel):
    count: int


@dataclasses.dataclass
class Query:
    limit: Annotated[int, pydantic.Field(gt=0)]
    filter: Json


@dataclasses.dataclass
class Stock:
    item: Item
    rows: Rows
    known: ClassVar[Rows] = []


class Page(NamedTuple):
    limit: Annotated[int, pydantic.Field(gt=0)]
    filter: Json


class Wish(TypedDictForPydantic):
    limit: Annotated[int, pydantic.Field(gt=0)]
    filter: Json


QUERY = '{"limit":1,"filter":{"a":[null]}}'


@pytest.mark.parametrize(
    ("annotation", "data", "value"),
    [
        (Query, QUERY, Query(1, {"a": [None]})),
        (list[Query] | None, f"[{QUERY}]", [Query(1, {"a": [None]})]),
        (Stock, '{"item":{"count":1},"rows":[[1]]}', Stock(Item(count=1), [[1]])),
        (Page, '[1,{"a":[null]}]', Page(1, {"a": [None]})),
        (Wish, QUERY, Wish(limit=1, filter={"a": [None]})),
    ],
)
def test_alias_in_a_field_that_pydantic_reads_is_left_to_pydantic(
    annotation: Any, data: str, value: Any
) -> None:
    classes = (Query, Stock, Page, Wish)
    before = [dict(cls.__annotations__) for cls in classes]
    assert reader_of(annotation).read(f'{{"x":{data}}}'.encode()) == {"x": value}
    assert [dict(cls.__annotations__) for cls in classes] == before
    with pytest.raises(InvalidArguments, match=r"greater than 0|valid integer"):
        reader_of(annotation).read(f'{{"x":{data.replace("1", "0.5")}}}'.encode())
