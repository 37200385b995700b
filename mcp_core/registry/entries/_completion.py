"""Completion of prompt arguments and of resource template variables (server/utilities/completion).

1. A completer belongs to its prompt or template: it is declared after it, checked against it, and
   removed with it.
2. The typed value is passed on as text, even if the argument has another type: it is unfinished.
3. The function chooses and orders the values. At most 100 are sent, and the result tells if there
   are more.
"""

from __future__ import annotations

import collections.abc
import typing
from collections.abc import Callable, Iterable, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mcp_core._errors import Fault, McpError
from mcp_core.registry._errors import DeclarationError
from mcp_core.registry._validation import MAX_SHOWN
from mcp_core.registry.functions._function import (
    MISSING,
    inspect_function,
    runs_in_thread,
    union_members,
)
from mcp_core.types import CompleteResult, Completion

from ._invocation import Invocation

if TYPE_CHECKING:
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.registry.functions._function import Function
    from mcp_core.types import CompleteParams, Result

__all__ = ["Completer", "Completers"]

_MAX_VALUES: Final = 100  # the limit in the specification's schema
# Annotations that the two parameters may have.
_TEXT: Final = (str, object, Any, MISSING)
_MAPPINGS: Final = (
    dict,
    collections.abc.Mapping,
    collections.abc.MutableMapping,
    object,
    Any,
    MISSING,
)


class Completer:
    """A declared completion function.

    Raises:
        DeclarationError: the function cannot be served.
    """

    __slots__ = ("_parameters", "function", "thread")

    def __init__(self, function: Callable[..., Any], thread: bool | None, threads: bool) -> None:
        self.function = found = inspect_function(function, returns=False)
        self.thread = runs_in_thread(found, thread, threads)
        if not 1 <= len(found.parameters) <= 2:
            raise DeclarationError(
                f"{found.label}: a completion takes the typed text and, optionally, "
                "the arguments already chosen"
            )
        for parameter, allowed, value in zip(
            found.parameters, (_TEXT, _MAPPINGS), ("text", "a dict of text"), strict=False
        ):
            members = union_members(parameter.annotation)
            if all((typing.get_origin(member) or member) not in allowed for member in members):
                raise DeclarationError(
                    f"{found.label}: {parameter.name!r} is passed {value}; annotate it accordingly"
                )
        self._parameters = [parameter.name for parameter in found.parameters]

    def __repr__(self) -> str:
        return f"<completer: {self.function.label}>"

    def prepare(self, value: str, chosen: dict[str, str], dialect: Dialect) -> Invocation:
        """Return the call to make for a typed `value` and the arguments already `chosen`."""
        # Not strict: the function may have one parameter only.
        arguments = dict(zip(self._parameters, (value, chosen), strict=False))
        return CompletionInvocation(self.function, self.thread, arguments, dialect)


class Completers:
    """The completers of one prompt or resource template, by argument. False while it has none."""

    __slots__ = ("_by_argument", "_names")

    def __init__(self, function: Function) -> None:
        self._names = [parameter.wire_name for parameter in function.parameters]
        self._by_argument: dict[str, Completer] = {}

    def __repr__(self) -> str:
        return f"<Completers of {', '.join(self._by_argument) or 'nothing'}>"

    def __bool__(self) -> bool:
        return bool(self._by_argument)

    def add(self, argument: str, completer: Completer, owner: str) -> None:
        """Add a completer. `owner` names the prompt or template in error texts.

        Raises:
            DeclarationError: there is no such argument, or it has a completer.
        """
        label = completer.function.label
        if argument not in self._names:
            raise DeclarationError(
                f"{label}: {owner} has no {argument!r}; it has {self._listed_names}"
            )
        if argument in self._by_argument:
            other = self._by_argument[argument].function.label
            raise DeclarationError(
                f"{label}: {argument!r} of {owner} is completed by {other} already"
            )
        self._by_argument[argument] = completer

    def prepare(self, params: CompleteParams, dialect: Dialect) -> Invocation | Result:
        """Return the call to make, or an empty result for an argument without a completer.

        Raises:
            McpError: there is no such argument.
        """
        argument = params.argument
        if argument.name not in self._names:
            raise McpError(
                dialect.codes[Fault.INVALID_PARAMS],
                f"Unknown argument `{argument.name[:MAX_SHOWN]}`; "
                f"the arguments are: {self._listed_names}",
            )
        completer = self._by_argument.get(argument.name)
        if completer is None:
            return _make_result(())
        chosen = params.context.arguments if params.context is not None else None
        return completer.prepare(argument.value, chosen or {}, dialect)

    @property
    def _listed_names(self) -> str:
        return ", ".join(self._names) or "none"


class CompletionInvocation(Invocation):
    """One call of a completion function."""

    __slots__ = ()

    def result(self, value: Any) -> Result:
        return _make_result(value)


def _make_result(value: Any) -> CompleteResult:
    completion = value if isinstance(value, Completion) else _as_completion(value)
    sent = list(completion.values[:_MAX_VALUES])
    for text in sent:
        if not isinstance(text, str):
            raise TypeError(f"a completion returns strings, not {type(text).__name__}")
    total = completion.total
    if total is not None:
        total = max(total, len(completion.values))
    # The `has_more` of the function counts only as long as the values don't contradict it.
    more = completion.has_more
    if len(sent) < len(completion.values):
        more = True
    elif total is not None:
        more = total > len(sent)
    return CompleteResult(completion=Completion(sent, total, more))


def _as_completion(value: Iterable[str] | None) -> Completion:
    """Return the values of an iterable: at most one more than can be sent, to know `has_more`."""
    if value is None:
        value = ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"a completion returns an iterable of strings, not {type(value).__name__}")
    values = list(islice(value, _MAX_VALUES + 1))
    if isinstance(value, Sized):
        return Completion(values, len(value))
    # A generator may be endless, so the total is known only if it ended.
    return Completion(values, len(values) if len(values) <= _MAX_VALUES else None)
