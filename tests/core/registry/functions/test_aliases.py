"""Aliases of types: what they stand for, those that contain themselves, and those in circles."""

from __future__ import annotations

import sys
from typing import Annotated, Any, TypeVar, Union

import msgspec
import pydantic
import pytest
from typing_extensions import TypeAliasType

from mcp_core.registry import DeclarationError
from mcp_core.registry.functions._function import inspect_function
from mcp_core.registry.functions._output import Output
from mcp_core.registry.functions._signature import ArgumentReader, InvalidArguments

T = TypeVar("T")


class Point(msgspec.Struct):
    x: int


Rows = TypeAliasType("Rows", "list[list[int]]")
Maybe = TypeAliasType("Maybe", T | None, type_params=(T,))
Points = TypeAliasType("Points", list[Point])
Json = TypeAliasType("Json", "None | bool | int | float | str | list[Json] | dict[str, Json]")
Tree = TypeAliasType("Tree", "dict[str, Tree[T]] | T", type_params=(T,))
Even = TypeAliasType("Even", "list[Odd]")
Odd = TypeAliasType("Odd", "dict[str, Even]")
Same = TypeAliasType("Same", "Same")  # type: ignore[misc]
Left = TypeAliasType("Left", "Right | int")
Right = TypeAliasType("Right", "Annotated[Left, 'noted'] | str")  # type: ignore[misc]
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
