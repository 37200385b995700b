"""Paths and unions, which msgspec alone does not read."""

# No postponed annotations here: types are made inside of test functions.

import dataclasses
import enum
import json
from collections import abc, deque
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import UUID

import jsonschema
import msgspec
import pytest
from msgspec import Raw

from mcp_core.registry import DeclarationError
from mcp_core.registry.functions._function import inspect_function
from mcp_core.registry.functions._signature import ArgumentReader, InvalidArguments
from mcp_core.registry.functions._types import encode_value
from tests.core.registry.functions.test_aliases import Even


@dataclasses.dataclass
class Circle:
    radius: float


@dataclasses.dataclass
class Box:
    width: float
    height: float


class Color(enum.Enum):
    RED = "red"


class Job(msgspec.Struct):
    folder: Path
    files: list[Path] = []


class Opaque:
    pass


def reader_of(annotation: Any) -> ArgumentReader:
    def f(x): ...  # type: ignore[no-untyped-def]

    f.__annotations__ = {"x": annotation}
    return ArgumentReader(inspect_function(f))


def read(annotation: Any, value: str) -> Any:
    return reader_of(annotation).read(Raw(b'{"x":%b}' % value.encode()))["x"]


ONE = "12345678-1234-5678-1234-567812345678"


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Path, '"/etc/hosts"', Path("/etc/hosts")),
        (PurePosixPath, '"a"', PurePosixPath("a")),
        (Path | None, "null", None),
        (list[Path], '["a"]', [Path("a")]),
        (Job, '{"folder":"a","files":["b"]}', Job(Path("a"), [Path("b")])),
        (Circle | Box, '{"radius":1}', Circle(1)),
        (Circle | Box, '{"width":1,"height":2}', Box(1, 2)),
        (Circle | Box | None, "null", None),
        (list[Circle | Box], '[{"radius":1},{"width":1,"height":2}]', [Circle(1), Box(1, 2)]),
        (dict[str, Circle | Box], '{"a":{"radius":1}}', {"a": Circle(1)}),
        (tuple[Circle | Box, int], '[{"radius":1},2]', (Circle(1), 2)),
        (str | UUID, f'"{ONE}"', UUID(ONE)),
        (str | UUID, '"other"', "other"),
        (Color | str, '"red"', Color.RED),
        (Color | str, '"blue"', "blue"),
        (Path | int, "3", 3),
        (Decimal, '"1.10"', Decimal("1.10")),
        (object, '{"a":[1]}', {"a": [1]}),
        (list[object], '[1,"a"]', [1, "a"]),
    ],
)
def test_argument_reader_path_or_union_is_converted(
    annotation: Any, value: str, expected: Any
) -> None:
    found = read(annotation, value)
    assert found == expected
    assert type(found) is type(expected)
    schema = reader_of(annotation).schema
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate({"x": json.loads(value)})


@pytest.mark.parametrize(
    ("annotation", "value", "why"),
    [
        (Path, "3", "Invalid argument `x`: expected a path"),
        (Path, r'"a\u0000b"', "Invalid argument `x`: expected a path"),
        (Job, '{"folder":"a","files":[1]}', "Invalid argument `x.files[0]`: expected a path"),
        (
            Circle | Box,
            '{"width":1}',
            (
                "Invalid argument `x`: expected one of Circle, Box "
                "(Circle: Object missing required field `radius`; "
                "Box: Object missing required field `height`)"
            ),
        ),
    ],
)
def test_argument_reader_invalid_path_or_union_has_a_reason(
    annotation: Any, value: str, why: str
) -> None:
    with pytest.raises(InvalidArguments) as caught:
        read(annotation, value)
    assert str(caught.value) == why


@pytest.mark.parametrize("annotation", [Opaque, list[Opaque], Circle | Opaque])
def test_argument_reader_unknown_class_raises_with_cure(annotation: Any) -> None:
    with pytest.raises(DeclarationError, match=r"Opaque.*use a dataclass, a msgspec\.Struct or a"):
        reader_of(annotation)


@pytest.mark.parametrize(
    ("annotation", "cure"),
    [
        (abc.Iterator[int], "use list"),
        (abc.Reversible[int], "use list"),
        (deque[int], "use list"),
        (deque, "use list"),
        (abc.Hashable, "use a dataclass"),
        (abc.Container[int], "use a dataclass"),
        (abc.ItemsView[str, int], "use a dataclass"),
        (abc.Awaitable[int], "use a dataclass"),
        (abc.Generator[int, None, None], "use a dataclass"),
    ],
)
def test_argument_reader_list_is_the_cure_for_what_a_list_replaces(
    annotation: Any, cure: str
) -> None:
    with pytest.raises(DeclarationError, match=cure):
        reader_of(annotation)


def test_encode_value_path_is_text_and_unknown_class_raises() -> None:
    assert encode_value({"a": Path("b")}) == b'{"a":"b"}'
    with pytest.raises(TypeError, match="type Opaque is unsupported"):
        encode_value([Opaque()])


def test_schema_of_a_union_or_an_alias_of_one_type_has_no_alternatives() -> None:
    """An `anyOf` of one would only take place in the model's context."""
    circle = {"type": "object", "additionalProperties": {"$ref": "#/$defs/Even"}}
    assert reader_of(Even).schema["$defs"] == {"Even": {"type": "array", "items": circle}}
    assert reader_of(list[object]).schema["properties"] == {"x": {"type": "array", "items": {}}}
    assert reader_of(Circle | Box).schema["properties"] == {
        "x": {"anyOf": [{"$ref": "#/$defs/Circle"}, {"$ref": "#/$defs/Box"}]}
    }
