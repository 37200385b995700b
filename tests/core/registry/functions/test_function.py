"""Inspection of functions, and functions that cannot be declared."""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any

import pytest

from mcp_core.registry import Context, DeclarationError
from mcp_core.registry.functions._function import (
    MISSING,
    Function,
    inspect_function,
    runs_in_thread,
    strip_annotated,
    union_members,
)

if TYPE_CHECKING:
    from decimal import Decimal  # only for type checkers, so its name does not resolve at run time


class Special(Context):
    """A subclass of `Context`."""


def names(function: Function) -> list[str]:
    return [p.name for p in function.parameters]


class Box:
    """Holds callables of every kind."""

    def method(self, x: int) -> int:
        """A method."""
        return x

    @classmethod
    def of_class(cls, x: int) -> int:
        return x

    @staticmethod
    def static(x: int) -> int:
        return x

    async def slow(self, x: int) -> int:
        return x

    def __call__(self, x: int, context: Context) -> int:
        return x


class Slow:
    async def __call__(self, x: int) -> int:
        """Speak slowly."""
        return x


def example(a: int, b: str = "x", *, c: Annotated[float, "the c"] = 1.0) -> list[int]:
    """Do it.

    Args:
        a: the a
        c: overruled by the annotation
    """
    return [a]


async def slow(a: int) -> int:
    return a


def test_inspect_function_attributes() -> None:
    found = inspect_function(example)
    assert (found.name, found.is_async, found.context) == ("example", False, "")
    assert found.label == "function 'example'"
    assert found.description == "Do it."
    assert found.returns == list[int]
    assert [(p.name, p.annotation, p.default, p.description) for p in found.parameters] == [
        ("a", int, MISSING, "the a"),
        ("b", str, "x", ""),
        ("c", Annotated[float, "the c"], 1.0, "the c"),
    ]
    assert [p.required for p in found.parameters] == [True, False, False]


def test_inspect_function_return_annotation_is_optional() -> None:
    def odd() -> NotThere: ...  # type: ignore[name-defined]  # noqa: F821

    assert inspect_function(odd, returns=False).returns is MISSING
    with pytest.raises(DeclarationError, match="return value, NotThere"):
        inspect_function(odd)


@pytest.mark.parametrize(
    ("function", "name", "parameters", "is_async"),
    [
        (example, "example", ["a", "b", "c"], False),
        (slow, "slow", ["a"], True),
        (Box().method, "method", ["x"], False),
        (Box().slow, "slow", ["x"], True),
        (Box.of_class, "of_class", ["x"], False),
        (Box.static, "static", ["x"], False),
        (Box.__dict__["static"], "static", ["x"], False),
        (Box(), "", ["x"], False),
        (Slow(), "", ["x"], True),
        (functools.partial(example, b="y"), "example", ["a", "c"], False),
        (functools.partial(example, 1), "example", ["b", "c"], False),
        (functools.partial(functools.partial(slow)), "slow", ["a"], True),
        (functools.partial(Box().slow), "slow", ["x"], True),
        (functools.partial(Slow()), "", ["x"], True),
        (lambda x: x, "<lambda>", ["x"], False),
    ],
)
def test_inspect_function_accepts_each_kind_of_callable(
    function: Callable[..., Any], name: str, parameters: list[str], is_async: bool
) -> None:
    found = inspect_function(function)
    assert (found.name, names(found), found.is_async) == (name, parameters, is_async)


def test_inspect_function_description_of_objects_and_partials() -> None:
    assert inspect_function(Slow()).description == "Speak slowly."
    assert inspect_function(Box()).description == "Holds callables of every kind."
    assert inspect_function(functools.partial(example, 1)).description == "Do it."
    assert inspect_function(Box().method).description == "A method."


def test_inspect_function_wrapped_function_keeps_its_annotations() -> None:
    @functools.wraps(example)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return example(*args, **kwargs)

    assert names(inspect_function(outer)) == ["a", "b", "c"]
    assert inspect_function(outer).returns == list[int]


@pytest.mark.parametrize(
    "annotation", [Context, Special, Special | None, Context | None, Annotated[Context, "c"]]
)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_inspect_function_finds_context_at_any_position(annotation: Any, position: int) -> None:
    parameters = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=int)
        for name in ("x", "y")
    ]
    context = inspect.Parameter(
        "where", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation
    )
    parameters.insert(position, context)

    def function() -> None: ...

    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    found = inspect_function(function)
    assert (found.context, names(found)) == ("where", ["x", "y"])


def test_inspect_function_two_contexts_raise() -> None:
    def two(a: Context, b: Special) -> None: ...

    with pytest.raises(DeclarationError, match="two parameters for the context: 'a', 'b'"):
        inspect_function(two)


def test_inspect_function_union_with_context_is_an_argument() -> None:
    def odd(a: Context | int) -> None: ...

    assert inspect_function(odd).context == ""


def test_inspect_function_wire_name_drops_a_trailing_underscore() -> None:
    def f(from_: int, id: int, id_: int, dunder__: int, _: int) -> None: ...

    assert [p.wire_name for p in inspect_function(f).parameters] == [
        "from",
        "id",
        "id_",
        "dunder__",
        "_",
    ]


def test_inspect_function_class_in_the_closure_resolves() -> None:
    """Annotations are strings here; a closure variable without a value yet must not matter."""

    class Local:
        pass

    def f(x: Local) -> Local:
        return Local()

    assert inspect_function(f).returns is Local

    def g() -> None:
        unassigned()

    def unassigned() -> None: ...

    def h(x: int) -> Any:
        return later

    assert names(inspect_function(h)) == ["x"]
    later = 1

    def k(x: Local) -> Any:
        return Early, Local

    assert inspect_function(k).parameters[0].annotation is Local
    Early = 1  # noqa: N806 - it comes before `Local` in the closure


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


def starred(*args: int) -> None: ...


def double_starred(**kwargs: int) -> None: ...


def positional(x: int, /) -> None: ...


def unresolved(x: int, y: Decimal) -> None: ...


def broken(x: "list[") -> None: ...  # type: ignore[valid-type]  # noqa: F722


def underscored(*, __x: int) -> None: ...


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (starred, r"'starred': \*args: 'int' takes any number"),
        (double_starred, r"\*\*kwargs: 'int' takes any number"),
        (positional, "'x' is positional-only"),
        (
            unresolved,
            (
                r"'unresolved': the annotation of parameter 'y', Decimal, cannot be resolved"
                r" .*TYPE_CHECKING"
            ),
        ),
        (broken, "'broken': the annotation of parameter 'x'"),
        (generator, "'generator' is a generator"),
        (async_generator, "'async_generator' is a generator"),
        (Box, "'Box' is a class"),
        (Box.method, "'Box.method' lacks its instance"),
        (underscored, "two underscores"),
        (Box.__dict__["of_class"], "not callable"),
        (3, "function '3' is not callable"),
        (min, "no signature"),
        (len, "positional-only"),
    ],
)
def test_inspect_function_unusable_function_raises(function: Any, why: str) -> None:
    with pytest.raises(DeclarationError, match=why):
        inspect_function(function)


def test_plain_and_union_members_split_annotations() -> None:
    assert strip_annotated(Annotated[int, "x"]) is int
    assert strip_annotated(int) is int
    assert union_members(int) == (int,)
    assert union_members(Annotated[int | None, "x"]) == (int, type(None))
    assert union_members((Annotated[int, "x"] | str) | None) == (int, str, type(None))


def _outer(a: int, /, b: int, *, c: int, **arguments: Any) -> None: ...


class _Called:
    def __call__(self, a: int, *, b: int, **arguments: Any) -> None: ...


@functools.wraps(_outer)
def _wrapper(x: int, *, y: int, **arguments: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "reserved"),
    [
        (_outer, {"b", "c"}),
        (functools.partial(_outer, 1, b=2), {"b", "c"}),
        (functools.partial(functools.partial(_outer, 1), c=2), {"b", "c"}),
        (_Called(), {"self", "a", "b"}),
        (_Called().__call__, {"self", "a", "b"}),
        (_wrapper, {"x", "y", "b", "c"}),
    ],
)
def test_names_that_any_arguments_may_not_have_are_those_of_parameters(
    function: Any, reserved: set[str]
) -> None:
    """Also of wrapped functions; a parameter that is positional only has no name for a caller."""
    inner = functools.partial(function, 1) if function in (_outer, _wrapper) else function
    assert inspect_function(inner, has_schema=True).reserved == frozenset(reserved)
    assert inspect_function(lambda a: a, has_schema=True).reserved is None


@pytest.mark.parametrize(
    ("thread", "default", "is_async", "runs"),
    [
        (None, True, False, True),
        (None, False, False, False),
        (None, True, True, False),
        (True, False, False, True),
        (False, True, False, False),
        (False, True, True, False),
    ],
)
def test_plain_function_runs_in_a_thread_by_option_or_default(
    thread: bool | None, default: bool, is_async: bool, runs: bool
) -> None:
    async def waiting() -> None: ...

    def plain() -> None: ...

    function = inspect_function(waiting if is_async else plain)
    assert runs_in_thread(function, thread, default) is runs


def test_async_function_in_a_thread_is_refused() -> None:
    async def waiting() -> None: ...

    with pytest.raises(DeclarationError) as refused:
        runs_in_thread(inspect_function(waiting), True, True)
    assert str(refused.value) == (
        "function 'waiting' is async; thread=True is for a plain def that blocks"
    )


@pytest.mark.parametrize(("has_schema", "cure"), [(None, ""), (False, ", or describe them: add_")])
@pytest.mark.parametrize("is_keyword", [False, True])
def test_any_number_of_arguments_is_refused_with_the_cure(
    has_schema: bool | None, cure: str, is_keyword: bool
) -> None:
    def named(**values: int) -> None: ...

    def placed(*values: int) -> None: ...

    with pytest.raises(DeclarationError) as refused:
        inspect_function(named if is_keyword else placed, has_schema=has_schema)
    mark = "**" if is_keyword else "*"
    label = f"function '{'named' if is_keyword else 'placed'}'"
    assert str(refused.value).startswith(f"{label}: {mark}values: ")
    assert ("describe them" in str(refused.value)) == (bool(cure) and is_keyword)
