"""JSON values and objects of the core's types, as hypothesis strategies.

Rules of this file:

1. A type's members are read from the type. Written here are only the rules that its fields don't
   express.
2. Most optional members are absent, and nothing is long: small cases are fast to check, and few
   members are enough for most bugs.

The functions cache their strategies, because building one while drawing costs more than drawing
from it.
"""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec import UNSET, Raw, Struct, UnsetType

from mcp_core import types as t

__all__ = [
    "encoded",
    "example",
    "ids",
    "json_objects",
    "json_values",
    "scripts",
    "structs",
    "texts",
    "weighted",
]

S = TypeVar("S", bound=Struct)
T = TypeVar("T")


def weighted(*choices: tuple[int, SearchStrategy[Any]]) -> SearchStrategy[Any]:
    """Choose one of several strategies by weight. `st.one_of` takes each alternative only once."""
    table = st.sampled_from(
        [index for index, (weight, _) in enumerate(choices) for _ in range(weight)]
    )
    strategies = [strategy for _, strategy in choices]

    @st.composite
    def choose(draw: DrawFn) -> Any:
        return draw(strategies[draw(table)])

    return choose()


def scripts(step: SearchStrategy[T]) -> SearchStrategy[list[T]]:
    """Return lists of up to 24 steps.

    hypothesis prefers lists of about five. Two lists joined are longer and, unlike one with a
    minimum size, can still shrink.
    """
    part = st.lists(step, max_size=12)
    return st.tuples(part, part).map(lambda parts: [*parts[0], *parts[1]])


# -- JSON ------------------------------------------------------------------------------------------

# Texts that are special in some format, or that look like another type.
_SPECIAL_TEXTS: Final = (
    *(
        "",
        "a",
        "1",
        "1.0",
        "-0",
        "null",
        "true",
        "[]",
        "{}",
        "..",
        "/",
        "%41",
        "\0",
        "\n",
        '"',
        "\\",
        "é",
    ),
    *("\u2028", "\ufeff", "\U0001f600", "http://x/y", "file:///a", "jsonrpc", "_meta", "__class__"),
    "a" * 300,
)
_INTEGERS: Final = (0, 1, -1, 2, 255, -(2**31), 2**31, 2**53 - 1, -(2**53) + 1, 2**53, 2**63, 2**64)


@functools.cache
def texts(max_size: int = 8) -> SearchStrategy[str]:
    """Text that UTF-8 can encode.

    Args:
        max_size: the most characters of random text; some fixed texts are longer.
    """
    return st.one_of(st.sampled_from(_SPECIAL_TEXTS), st.text(max_size=max_size))


def names() -> SearchStrategy[str]:
    """Names that a program could declare."""
    return st.sampled_from(("a", "b", "tool", "cursor", "x-y.z", "naïve"))


@functools.cache
def ids() -> SearchStrategy[int | str]:
    """Request ids: few, so that they repeat, and in pairs that only a loose comparison confuses."""
    return st.sampled_from((1, "1", 2, "2", 0, "", -1, "a", 2**53 - 1, 3, "é"))


@functools.cache
def numbers() -> SearchStrategy[int | float]:
    return st.one_of(
        st.integers(-3, 300),
        st.sampled_from(_INTEGERS),
        st.floats(allow_nan=False, allow_infinity=False, width=32),
    )


@functools.cache
def scalars() -> SearchStrategy[Any]:
    return st.one_of(st.none(), st.booleans(), numbers(), texts())


@functools.cache
def json_values(depth: int = 2) -> SearchStrategy[Any]:
    """Any JSON value, nested at most `depth` deep."""
    if not depth:
        return scalars()
    inner = json_values(depth - 1)
    return st.one_of(
        scalars(), st.lists(inner, max_size=3), st.dictionaries(texts(), inner, max_size=3)
    )


@functools.cache
def json_objects() -> SearchStrategy[dict[str, Any]]:
    """Any JSON object."""
    return st.dictionaries(texts(), json_values(1), max_size=3)


def encoded(value: Any) -> bytes:
    """Encode `value` as compact JSON, by the standard library."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


# -- Shapes of the core ----------------------------------------------------------------------------


@functools.cache
def structs(type: type[S]) -> SearchStrategy[S]:
    """Valid objects of a Struct type of `mcp_core.types`."""
    special = _SPECIAL.get(type)
    if special is not None:
        return special()
    fields = msgspec.structs.fields(type)
    required = {field.name: values_of(field.type) for field in fields if field.required}
    optional = [
        (field.name, values_of(field.type, present=True)) for field in fields if not field.required
    ]

    @st.composite
    def build(draw: DrawFn) -> S:
        members = {name: draw(strategy) for name, strategy in required.items()}
        # One drawn number selects the members, which is cheaper than one draw for each.
        present = draw(_subsets(len(optional)))
        for index, (name, strategy) in enumerate(optional):
            if present >> index & 1:
                members[name] = draw(strategy)
        return type(**members)

    return build()


@functools.cache
def _subsets(size: int) -> SearchStrategy[int]:
    if not size:
        return st.just(0)
    return st.one_of(
        st.just(0), st.sampled_from([1 << i for i in range(size)]), st.integers(0, 2**size - 1)
    )


def values_of(annotation: Any, *, present: bool = False) -> SearchStrategy[Any]:
    """Values of an annotation. With `present`, without the values that mean "absent"."""
    if annotation is Any:
        return json_values(1)
    if annotation is Raw:
        return json_values(1).map(lambda value: Raw(encoded(value)))
    simple = _SIMPLE.get(annotation)
    if simple is not None:
        return simple()
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        # The only constraint of the types is that a number isn't negative.
        return values_of(parts[0]).map(abs)
    if origin is Literal:
        return st.sampled_from(parts)
    if origin in (typing.Union, types.UnionType):
        chosen = [part for part in parts if not (present and part in (types.NoneType, UnsetType))]
        return st.one_of([values_of(part) for part in chosen])
    if origin is list:
        return st.lists(values_of(parts[0]), max_size=2)
    if origin is dict:
        return st.dictionaries(texts(), values_of(parts[1]), max_size=2)
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        return st.deferred(lambda: structs(annotation))
    raise TypeError(f"no strategy for {annotation}")


_SIMPLE: Final[Mapping[Any, Callable[[], SearchStrategy[Any]]]] = {
    bool: st.booleans,
    str: texts,
    int: lambda: st.one_of(st.integers(-2, 100), st.sampled_from(_INTEGERS[:8])),
    float: lambda: st.floats(allow_nan=False, allow_infinity=False, width=32),
    types.NoneType: st.none,
    UnsetType: lambda: st.just(UNSET),
}


def _contents() -> SearchStrategy[t.ResourceContents]:
    return st.one_of(
        st.builds(t.ResourceContents, uri=texts(), text=texts(), mime_type=st.none() | texts()),
        st.builds(
            t.ResourceContents, uri=texts(), blob=st.just("aGk="), meta=st.none() | json_objects()
        ),
    )


def _elicitation() -> SearchStrategy[t.ElicitParams]:
    form = st.builds(t.ElicitParams, message=texts(), requested_schema=json_objects())
    page = st.builds(
        t.ElicitParams,
        message=texts(),
        mode=st.just("url"),
        url=texts(),
        elicitation_id=st.none() | texts(),
    )
    return form | page


def _call() -> SearchStrategy[t.CallToolParams]:
    arguments = st.one_of(st.just(UNSET), json_objects().map(lambda value: Raw(encoded(value))))
    return st.builds(
        t.CallToolParams,
        name=names(),
        arguments=arguments,
        task=st.none() | structs(t.TaskMetadata),
        request_state=st.none() | texts(),
    )


def _progress() -> SearchStrategy[t.ProgressParams]:
    return st.builds(
        t.ProgressParams,
        progress_token=ids(),
        progress=numbers(),
        total=st.none() | numbers(),
        message=st.none() | texts(),
    )


# Types with rules that their fields don't express. `_messages` adds the `_meta` of requests.
_SPECIAL: Final[Mapping[type[Struct], Callable[[], SearchStrategy[Any]]]] = {
    t.ResourceContents: _contents,
    t.ElicitParams: _elicitation,
    t.CallToolParams: _call,
    t.ProgressParams: _progress,
    t.RequestMeta: lambda: st.builds(t.RequestMeta, traceparent=st.none() | texts()),
}


@functools.cache
def example(type: type[S], *, full: bool = False) -> S:
    """Return one fixed valid object of a Struct type: required members only, or all with `full`."""
    fields = msgspec.structs.fields(type)
    chosen = [
        field for field in fields if field.required or full or (type, field.name) in _REQUIRED
    ]
    excluded = _EXCLUDED.get(type, ())
    return type(
        **{
            field.name: _example_of(field.type, full)
            for field in chosen
            if field.name not in excluded
        }
    )


# Members that are required although their field is optional, and members that exclude the others.
_REQUIRED: Final = {(t.ResourceContents, "text"), (t.ElicitParams, "requested_schema")}
_EXCLUDED: Final[Mapping[type[Struct], tuple[str, ...]]] = {t.ResourceContents: ("blob",)}


def _example_of(annotation: Any, full: bool) -> Any:
    if annotation in _EXAMPLES:
        return _EXAMPLES[annotation]
    origin, parts = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _example_of(parts[0], full=full)
    if origin is Literal:
        return parts[0]
    if origin in (typing.Union, types.UnionType):
        return _example_of(
            next(part for part in parts if part not in (types.NoneType, UnsetType)), full
        )
    if origin is list:
        return [_example_of(parts[0], full)] if full else []
    if origin is dict:
        return {"key": _example_of(parts[1], full)} if full else {}
    return example(annotation, full=full)


_EXAMPLES: Final[Mapping[Any, Any]] = {
    Any: {"a": 1},
    Raw: Raw(b"{}"),
    str: "text",
    int: 1,
    float: 0.5,
    bool: True,
}
