# Invariant: a signature is served, or rejected with DeclarationError when it is declared. Arguments
# are read, or raise InvalidArguments with a text. The values read are those in the JSON, with
# defaults filled in. The inputSchema shown to peers agrees: what it rejects is rejected, and what
# it accepts is read.
"""Signatures of arbitrary types, as `ArgumentReader` of `mcp_core.registry` serves them.

The oracle for arguments is `jsonschema`, with the schema that the reader generated: a model that
keeps to the schema must never get an error for its arguments.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypeAlias, TypedDict, Union

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from jsonschema import Draft202012Validator
from msgspec import Meta, Raw, Struct

from fuzz.targets import Target
from mcp_core.registry import DeclarationError
from mcp_core.registry.functions._function import inspect_function
from mcp_core.registry.functions._signature import ArgumentReader, InvalidArguments
from mcp_trio.oracle.strategies._mutations import damage
from mcp_trio.oracle.strategies._values import encoded, json_values, weighted

# A type: its name in `NAMED`, or a constructor and what it is made of.
Spec: TypeAlias = Any
# name, type, default as a tuple of one, () for none
Parameter: TypeAlias = tuple[str, Spec, tuple[Any, ...]]
Case: TypeAlias = tuple[list[Parameter], bytes]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Number(enum.IntEnum):
    ONE = 1
    TWO = 2


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Node(Struct):
    name: str
    children: "list[Node]" = []  # noqa: UP037 - msgspec resolves it when the class is there


class Cat(Struct, tag="cat"):
    lives: int


class Dog(Struct, tag="dog", forbid_unknown_fields=True):
    name: str = ""


class Options(TypedDict, total=False):
    deep: bool
    limit: int


NAMED: Final[Mapping[str, Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "None": None,
    "Any": Any,
    "dict": dict,
    "list": list,
    "Colour": Colour,
    "Number": Number,
    "Point": Point,
    "Node": Node,
    "Pet": Cat | Dog,
    "Options": Options,
    "Literal": Literal["a", 1, None],  # noqa: PYI061 - people write it
    "natural": Annotated[int, Meta(ge=0, le=5)],
    "half": Annotated[float, Meta(multiple_of=0.5, gt=-1)],
    "word": Annotated[str, Meta(min_length=1, max_length=3, pattern="^[a-z]*$")],
    "few": Annotated[list[int], Meta(max_length=2)],
    # Types that no JSON value decodes to.
    "type": type,
    "object": object,
    "complex": complex,
}
# Generic types, and the fixed type arguments before and after the drawn ones.
COMPOSED: Final[Mapping[str, tuple[Any, tuple[Any, ...], tuple[Any, ...]]]] = {
    "list": (list, (), ()),
    "set": (set, (), ()),
    "dict": (dict, (str,), ()),
    "pair": (tuple, (), ()),
    "optional": (Union, (), (None,)),
    "union": (Union, (), ()),
    "described": (Annotated, (), ("what it is",)),
}


def check(case: Case) -> Iterable[str]:
    parameters, arguments = case
    if any(_is_excluded(spec) for _, spec, _ in parameters):
        yield "excluded"
        return
    if arguments.strip(b" \t\r\n") == b"null":
        # null is read like absence, as far as the specification does not distinguish them.
        arguments = b"{}"
    try:
        reader, validator = _reader_of(encoded(parameters))
    except DeclarationError as exc:
        yield "rejected: " + " ".join(filter(str.isalpha, str(exc).split()))[-30:]
        return
    accepted = _is_accepted(validator, arguments)
    try:
        values = reader.read(Raw(arguments))
    except InvalidArguments as misfit:
        text = str(misfit)
        text.encode()
        assert text
        # No schema can express that Python sets hold no lists and dicts.
        # msgspec says so in other words since 0.23.
        excused = accepted is not True or "unhashable" in text or "a hashable value" in text
        assert excused, f"the schema accepts {arguments!r}, but the reader raises: {text}"
        yield "misfit: " + " ".join(text.split()[:2])
        return
    assert accepted is not False, f"the reader accepts {arguments!r}, which the schema rejects"
    assert values.keys() == {name for name, _, _ in parameters}
    try:
        given = json.loads(arguments.decode())
    except ValueError:
        # Skipped members are not checked here; the whole message is checked earlier.
        yield "read, not JSON"
        return
    for name, _, default in parameters:
        if name in given:
            again = json.loads(msgspec.json.encode(values[name]))
            assert _is_equal(again, given[name]), f"{name!r} was {given[name]!r} and is {again!r}"
        else:
            assert default
            assert values[name] == default[0]
    yield "read"
    yield from (f"read {spec if isinstance(spec, str) else spec[0]}" for _, spec, _ in parameters)


def _is_excluded(spec: Spec) -> bool:
    """True if msgspec 0.22 is unreliable for a type.

    A text, number or list with a constraint, in a union with a tuple or, if it has a pattern, with
    any container: when the decoder is freed, msgspec releases memory that it does not own, and the
    process crashes in a later, unrelated case (msgspec issue 717 is one of these). And a numeric
    enumeration or literal takes all integers of a union, which no schema can express.
    """
    written = str(spec)
    troubled = ("word", "natural", "half", "few", "Number", "Literal")
    return "union" in written and any(name in written for name in troubled)


@functools.lru_cache(maxsize=2_000)
def _reader_of(written: bytes) -> tuple[ArgumentReader, Draft202012Validator]:
    """Return the reader of a function with these parameters, and a validator for its schema.

    Raises:
        DeclarationError: the parameters cannot be served.
    """
    parameters: list[Any] = json.loads(written)
    reader = ArgumentReader(inspect_function(_function(parameters)))
    schema = json.loads(msgspec.json.encode(reader.schema))
    Draft202012Validator.check_schema(schema)
    _remove_keyword(schema, "uniqueItems")  # a repeated item is accepted and read into a set
    return reader, Draft202012Validator(schema)


def _remove_keyword(schema: Any, keyword: str) -> None:
    for node in (
        schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    ):
        _remove_keyword(node, keyword)
    if isinstance(schema, dict):
        schema.pop(keyword, None)


def _function(parameters: Iterable[Parameter]) -> Callable[..., Any]:
    def made(**arguments: Any) -> None:
        """Made."""

    made.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # functions may have one
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=_type(spec),
                default=default[0] if default else inspect.Parameter.empty,
            )
            for name, spec, default in parameters
        ]
    )
    return made


def _type(spec: Spec) -> Any:
    if isinstance(spec, str):
        return NAMED[spec]
    name, *parts = spec
    composed, before, after = COMPOSED[name]
    return composed[(*before, *map(_type, parts), *after)]


def _is_accepted(validator: Draft202012Validator, arguments: bytes) -> bool | None:
    """True if the schema accepts the arguments. None if they are no JSON, or JSON on which parsers
    differ.
    """
    try:
        value = json.loads(
            arguments.decode(),
            object_pairs_hook=_pairs,
            parse_constant=_reject_constant,
            parse_int=_integer,
        )
        encoded(value).decode()
        return bool(validator.is_valid(value))
    except (ValueError, RecursionError, OverflowError):
        return None


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a member stands twice")
    return dict(pairs)


def _reject_constant(text: str) -> Any:
    raise ValueError(text)


def _integer(text: str) -> int:
    # Where msgspec checks a range, integers have 64 bits, which no schema can express.
    number = int(text)
    if not -(2**63) <= number < 2**63:
        raise ValueError(text)
    return number


def _is_equal(value: Any, given: Any) -> bool:
    """True if a value that was read equals the given one.

    Unknown members of objects are dropped, defaults are filled in, a set has no order, 3.0 equals
    3, a large integer may be rounded, and Python's 0 equals False.
    """
    if isinstance(given, dict) and isinstance(value, dict):
        return all(_is_equal(value[key], item) for key, item in given.items() if key in value)
    if isinstance(given, list) and isinstance(value, list):
        if len(value) == len(given) and all(map(_is_equal, value, given)):
            return True
        return all(any(_is_equal(one, other) for one in value) for other in given) and len(
            value
        ) <= len(given)
    rounded = isinstance(value, float) and isinstance(given, int) and value == float(given)
    return rounded or bool(value == given)


# -- Cases -----------------------------------------------------------------------------------------

_JSON_TYPES: Final = tuple(name for name in NAMED if name not in ("type", "object", "complex"))


def _specs(depth: int = 2) -> SearchStrategy[Spec]:
    named = weighted(
        (30, st.sampled_from(_JSON_TYPES)), (1, st.sampled_from(("type", "object", "complex")))
    )
    if not depth:
        return named
    inner = _specs(depth - 1)
    one = st.tuples(st.sampled_from(("list", "set", "dict", "optional", "described")), inner)
    two = st.tuples(st.sampled_from(("pair", "union")), inner, inner)
    made = weighted((5, named), (3, one), (1, two))
    return made.map(lambda spec: spec if isinstance(spec, str) else list(spec))


def _values_for(spec: Spec) -> SearchStrategy[Any]:
    """Values that are likely to fit the type."""
    if isinstance(spec, str):
        return _VALUES.get(spec, json_values(1))
    name, *parts = spec
    inner = [_values_for(part) for part in parts]
    match name:
        case "list" | "set":
            return st.lists(inner[0], max_size=3)
        case "dict":
            return st.dictionaries(st.sampled_from(("k", "", "é")), inner[0], max_size=2)
        case "pair":
            return st.tuples(*inner).map(list)
        case "optional":
            return st.none() | inner[0]
        case _:
            return st.one_of(inner)


_NUMBERS: Final = st.sampled_from((0, 1, -1, 3, 2.5, 3.0, 0.0, -0.0, 1e22, 2**53, 1e300))
_VALUES: Final[Mapping[str, SearchStrategy[Any]]] = {
    "str": st.sampled_from(("", "a", "é", "1")),
    "int": _NUMBERS,
    "float": _NUMBERS,
    "bool": st.booleans(),
    "None": st.none(),
    "dict": st.just({"k": 1}),
    "list": st.just([1, "a"]),
    "Colour": st.sampled_from(("red", "blue", "green")),
    "Number": st.sampled_from((1, 2, 3, 1.0)),
    "Point": st.sampled_from(({"x": 1}, {"x": 1.0, "y": 2}, {"x": 1, "z": 1}, {})),
    "Node": st.sampled_from(
        ({"name": "a"}, {"name": "a", "children": [{"name": "b"}]}, {"name": 1})
    ),
    "Pet": st.sampled_from(
        ({"type": "cat", "lives": 9}, {"type": "dog"}, {"type": "dog", "x": 1}, {})
    ),
    "Options": st.sampled_from(({}, {"deep": True}, {"limit": 2.0}, {"deep": 1})),
    "Literal": st.sampled_from(("a", 1, None, 1.0, True, "b")),
    "natural": st.sampled_from((0, 5, 6, -1, 5.0, 5.5)),
    "half": st.sampled_from((0.5, 1, 1.25, -1, -0.5)),
    "word": st.sampled_from(("", "a", "abc", "abcd", "A", "a\n")),
    "few": st.sampled_from(([], [1, 2], [1, 2, 3], [1.0])),
}


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    names = ("a", "b", "c", "d")

    @st.composite
    def made(draw: DrawFn) -> Case:
        count = draw(st.integers(0, 3))
        parameters: list[Parameter] = []
        for name in names[:count]:
            spec = draw(_SPECS)
            default = (
                (draw(st.sampled_from((None, 0, "x", True))),)
                if draw(st.integers(0, 3)) == 3
                else ()
            )
            parameters.append((name, spec, default))
        given: dict[str, Any] = {}
        for name, spec, _ in parameters:
            match draw(st.integers(0, 9)):
                case 9:
                    given[name] = draw(json_values(1))
                case 8:
                    pass
                case _:
                    given[name] = draw(_values_for(spec))
        if draw(st.integers(0, 19)) == 19:
            given["zz"] = 1
        arguments = encoded(given)
        if draw(st.integers(0, 9)) == 9:
            arguments = damage(draw, arguments)
        return parameters, arguments

    if not seeds:
        return made()

    @st.composite
    def recorded(draw: DrawFn) -> Case:
        parameters, arguments = draw(st.sampled_from(seeds))
        return parameters, damage(draw, arguments)

    return weighted((4, made()), (1, recorded()))


_SPECS: Final = _specs()

TARGET: Final = Target("signature", cases, check)
