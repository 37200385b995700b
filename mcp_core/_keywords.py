"""Keyword options that are declared as a `TypedDict`: unknown ones, and signatures for `help()`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final, TypedDict, TypeVar

__all__ = [
    "NoOptions",
    "check_keywords",
    "check_keywords_of",
    "refuse_keywords",
    "shows_keywords",
]

F = TypeVar("F", bound=Callable[..., Any])


class NoOptions(TypedDict):
    """The options of a function beside its parameters: none, except in calls that raise.

    ::

        @shows_keywords(NoOptions)
        def run(server: Server, *, grace: float = 5.0, **_other: Unpack[NoOptions]) -> None:
            refuse_keywords(_other, run, "run()")
    """


def check_keywords(options: Mapping[str, object], kind: type, function: str) -> None:
    """Check that `kind`, a `TypedDict`, has all of `options`.

    `function` is what the options were given to, for the error text.

    Raises:
        TypeError: an option is unknown. The text names a similar one, if there is one.
    """
    check_names(options, kind.__annotations__, function)  # the base classes' options too


def check_keywords_of(options: Mapping[str, object], called: Callable[..., Any], name: str) -> None:
    """Check that `called`, which is decorated with `shows_keywords`, has all of `options`.

    `name` is the function that they were given to, for the error text.

    Raises:
        TypeError: as by `check_keywords`.
    """
    known = {
        parameter.name: parameter
        for parameter in inspect.signature(called).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    check_names(options, known, name)


def refuse_keywords(options: Mapping[str, object], called: Callable[..., Any], name: str) -> None:
    """Refuse all of `options`, which `called` got in `**_other: Unpack[NoOptions]`.

    `name` is the function that they were given to, for the error text.

    Raises:
        TypeError: as by `check_keywords`.
    """
    if options:
        check_names(options, inspect.signature(called).parameters, name)


def check_names(options: Mapping[str, object], known: Mapping[str, object], function: str) -> None:
    """Raise `TypeError` for the first of `options` that isn't `known`, with a similar name."""
    if options.keys() <= known.keys():
        return
    # On first use: only for the error.
    from difflib import get_close_matches

    from mcp_core._other_names import other_option

    name = next(name for name in options if name not in known)
    similar = get_close_matches(name, known, 1)
    hint = other_option(function, name)
    if hint in known:
        hint = f"here it is {hint!r}"
    elif " " not in hint:
        hint = f"did you mean {similar[0]!r}?" if similar else f"there are {', '.join(known)}"
    raise TypeError(f"{function} has no option {name!r}; {hint}")


class _Default:
    """Stands for a default that the function knows."""

    def __repr__(self) -> str:
        return "..."


_DEFAULT: Final = _Default()


def shows_keywords(kind: type) -> Callable[[F], F]:
    """Return a decorator by which `help()` lists the keys of `kind` in place of `**options`."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        names = {parameter.name for parameter in parameters}
        parameters += [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_DEFAULT,
                annotation=getattr(annotation, "__forward_arg__", annotation),
            )
            for name, annotation in kind.__annotations__.items()
            if name not in names
        ]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return decorate
