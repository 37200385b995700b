"""Each annotation of a table with each value, in `conversions.txt`.

    python -m tests.core.registry.functions.conversions

writes the file again. A change of the conversion shows in it which schemas, values and error texts
it changes, also of annotations that the change isn't about: read that difference before you commit
it.

Below each annotation are the schema of an argument, of a text, and of a result in three revisions,
and then for each value the argument that a function gets, or the error. Values that are wrong for
the same reason share a line. Where the argument isn't what was sent, the result of a function that
returns it follows, in the oldest, a middle and the newest revision. Some texts of errors are those
of msgspec and pydantic, whose releases come first.
"""

# No postponed annotations here: the annotations of the table are evaluated.

import dataclasses
import enum
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, NotRequired, TypedDict
from uuid import UUID

import msgspec
import pydantic
from msgspec import Meta, Raw
from typing_extensions import TypeAliasType

from mcp_core.registry import DeclarationError
from mcp_core.registry.functions._function import MISSING, Function, inspect_function
from mcp_core.registry.functions._output import Output
from mcp_core.registry.functions._signature import ArgumentReader, InvalidArguments, TextReader
from tests.core.registry.lookup_helpers import A, C, E
from tests.kept import read_kept, write_kept

__all__ = ["ANNOTATIONS", "VERSIONS", "conversions_of", "kept_conversions", "versions"]

VERSIONS: Final = "versions"  # the name of the section with the libraries' releases

_FILE: Final = Path(__file__).with_name("conversions.txt")


class _Size(enum.Enum):
    BIG = "big"
    SMALL = 1


@dataclasses.dataclass
class _Circle:
    radius: float
    name: str = "c"


@dataclasses.dataclass
class _Box:
    width: float
    at: date | None = None


class _Depths(TypedDict):
    deep: bool
    depth: NotRequired[int]


class _Pair(NamedTuple):
    left: int
    right: str = "r"


class _Tree(msgspec.Struct):
    value: int
    children: list["_Tree"] = []


class _Strict(msgspec.Struct, forbid_unknown_fields=True, tag="strict"):
    folder: Path
    places: Sequence[_Circle] = ()


class _Model(pydantic.BaseModel):
    count: Annotated[int, pydantic.Field(ge=1, description="How many.")]
    size: _Size | None = None


class _Opaque:
    pass


_Json = TypeAliasType("_Json", "dict[str, _Json] | list[_Json] | int | None")
_Name = TypeAliasType("_Name", str)

ANNOTATIONS: Final[dict[str, Any]] = {
    "nothing": MISSING,
    "Any": Any,
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "bytes": bytes,
    "None": None,
    "int | None": int | None,
    "int | str": int | str,
    "float | bool | None": float | bool | None,
    "positive": Annotated[int, Meta(ge=1, description="Above zero.")],
    "short": Annotated[str, Meta(max_length=3, pattern="^[a-z1]")],
    "literal": Literal["a", 3] | None,
    "enum": _Size,
    "date": date,
    "datetime | date": datetime | int,
    "time": time,
    "timedelta": timedelta,
    "UUID": UUID,
    "Decimal": Decimal,
    "Path": Path,
    "Path | None": Path | None,
    "list[int]": list[int],
    "set[int]": set[int],
    "list[Path]": list[Path],
    "Iterable[str]": Iterable[str],
    "tuple[int, str]": tuple[int, str],
    "dict[str, int]": dict[str, int],
    "Mapping[int, Path]": Mapping[int, Path],
    "dataclass": _Circle,
    "two dataclasses": _Circle | _Box,
    "list of two dataclasses": list[_Circle | _Box | None],
    "TypedDict": _Depths,
    "NamedTuple": _Pair,
    "tree": _Tree,
    "Struct": _Strict,
    "Struct | dict": _Tree | dict[str, str],
    "model": _Model,
    "list of models": list[_Model],
    "model | str": _Model | str,
    "alias": _Json,
    "alias of str": _Name,
    "list of aliases": list[_Json | str],
    "class": _Opaque,
    "list of a class": list[_Opaque],
    "function": Callable[[], None],
    "list[str] | str": list[str] | str,
}
_VALUES: Final = [
    *("null", "true", "0", "1", "3.0", "-2", "2.5", "1e3", "1e400", '""', '"a"', '"1"', '"big"'),
    *('"long text"', '"2026-01-31"', '"2026-01-31T12:30:00Z"', '"12:30:00"', '"PT1H"', '"aGk="'),
    *('"12345678-1234-5678-1234-567812345678"', "[]", "[1]", "[1.0,2]", '["a","b"]', '[1,"a"]'),
    *('[{"radius":1},null]', '[{"radius":"x"}]', '[{"count":2},{"count":0}]', "[[1.0],{}]", "{}"),
    *('{"a":1.0}', '{"1":"x"}', '{"radius":1}', '{"radius":1,"width":2}', '{"width":2}'),
    *('{"width":2,"at":"x"}', '{"deep":true,"depth":1.0}', '{"deep":1}', '{"left":1}'),
    *('{"value":1,"children":[{"value":2.0}]}', '{"value":1,"children":[{"value":"x"}]}'),
    *('{"type":"strict","folder":"/x","places":[{"radius":2}]}', '{"folder":5}'),
    *('{"type":"strict","folder":"x","more":1}', '{"count":3,"size":"big"}', '{"count":0}'),
    *('{"count":1,"size":"none"}', '{"a":{"b":[null,"x"]}}', "[", '"\\ud800"'),
]


def conversions_of(name: str) -> str:
    """Return the schemas of an annotation, and what it makes of each value, in lines."""
    annotation = ANNOTATIONS[name]
    text = _made(lambda: TextReader(_function(annotation)))
    lines = [f"  text: {text}" if isinstance(text, str) else "  text"]
    promise = _made(lambda: Output(annotation, None, "function 'f'"))
    if isinstance(promise, str):
        lines.append(f"  output: {promise}")
    else:
        lines += [f"  output: {_json(promise.schema(each))}" for each in (A, C, E)]
    argument = _made(lambda: ArgumentReader(_function(annotation)))
    if isinstance(argument, str):
        return _ascii([*lines, f"  argument: {argument}"])
    lines.append(f"  argument: {_json(argument.schema)}")
    by_error: dict[str, list[str]] = {}
    for value in _VALUES:
        try:
            found = argument.read(Raw(b'{"x":%b}' % value.encode()))["x"]
        except InvalidArguments as exc:
            by_error.setdefault(str(exc), []).append(value)
            continue
        lines.append(f"  {value} -> {_shown(found)}")
        if not isinstance(promise, str) and found != _parsed(value):
            lines += [f"    {_result(promise, found, each)}" for each in (A, C, E)]
    lines += [f"  {' '.join(values)}\n    {error}" for error, values in by_error.items()]
    if not isinstance(text, str):
        for value in _VALUES:
            if value.startswith('"') or value in ("true", "1", "2.5", "[1]", "null"):
                lines.append(f"  text {value} -> {_of_text(text, value)}")
    return _ascii(lines)


def _function(annotation: Any) -> Function:
    def f(x, y=5): ...  # type: ignore[no-untyped-def]

    f.__annotations__ = {} if annotation is MISSING else {"x": annotation}
    return inspect_function(f)


def _made(make: Callable[[], Any]) -> Any:
    """Return what is made, or the error."""
    try:
        return make()
    except DeclarationError as exc:
        return str(exc)


def _of_text(reader: TextReader, value: str) -> str:
    parsed = _parsed(value)
    try:
        return _shown(reader.read({"x": parsed if isinstance(parsed, str) else value})["x"])
    except InvalidArguments as exc:
        return str(exc)


def _result(promise: Output, value: Any, dialect: Any) -> str:
    try:
        return bytes(dialect.encode(promise.result(value, dialect))).decode()
    except Exception as exc:  # noqa: BLE001 - the error is what is kept
        return f"{type(exc).__name__}: {exc}"


def _parsed(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return None


def _json(schema: Any) -> str:
    return json.dumps(schema, sort_keys=True)


def _shown(value: Any) -> str:
    if isinstance(value, set):
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    return repr(value)


def _ascii(lines: list[str]) -> str:
    return "\n".join(lines).encode("ascii", "backslashreplace").decode()


def versions() -> str:
    """Return the releases of the libraries whose texts errors have, without the last number."""
    found = [(each.__name__, each.__version__) for each in (msgspec, pydantic)]
    return "\n".join(f"  {name} {version.rpartition('.')[0]}" for name, version in found)


def kept_conversions() -> dict[str, str]:
    """Return the conversions that are kept, by the annotation's name, and the `VERSIONS`."""
    return read_kept(_FILE)


if __name__ == "__main__":
    conversions = {name: conversions_of(name) for name in ANNOTATIONS}
    write_kept(_FILE, {VERSIONS: versions(), **conversions})
