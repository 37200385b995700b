"""Completion: what a half-typed argument of a prompt, or variable of a resource template, may become.

Rules of this file:

1. A completer belongs to its prompt or template: it is declared after it, checked against it, and goes with it.
2. What has been typed is text and stays text, whatever the argument is annotated with: half a number is none.
3. Values are sent in the order in which the function gives them, 100 at most, and the answer tells whether there are more.
   Which values those are, best first, and for whose eyes, is the function's to decide.

It does not know prompts, templates or methods. Page: server/utilities/completion.
"""

from __future__ import annotations

import collections.abc
import typing
from collections.abc import Callable, Iterable, Sized
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from mcp_core._errors import Fault, McpError
from mcp_core.types import CompleteResult, Completion

from ._errors import DeclarationError
from ._function import MISSING, inspect_function, union_members
from ._invocation import Invocation, refuse_coroutine

if TYPE_CHECKING:
    from mcp_core._dialects import Dialect
    from mcp_core.types import CompleteParams, Result

    from ._function import Function

__all__ = ["Completer", "Completers"]

_MOST: Final = 100  # the schema's own limit
_SHOWN: Final = 128  # of a name that a peer made up
_TEXT: Final = (str, object, Any, MISSING)
_MAPPINGS: Final = (dict, collections.abc.Mapping, collections.abc.MutableMapping, object, Any, MISSING)


class Completer:
    """A function that completes. Raises `DeclarationError` when it cannot be served."""

    __slots__ = ("_parameters", "function", "thread")

    def __init__(self, function: Callable[..., Any], thread: bool) -> None:
        self.function = found = inspect_function(function, returns=False)
        self.thread = thread
        if thread and found.is_async:
            raise DeclarationError(f"{found.label} is async; thread=True is for a plain def that blocks")
        if not 1 <= len(found.parameters) <= 2:
            raise DeclarationError(
                f"{found.label}: a completion takes the text so far and, if it wants them, the arguments chosen before"
            )
        for parameter, kinds, what in zip(
            found.parameters, (_TEXT, _MAPPINGS), ("text", "a dict of text"), strict=False
        ):
            members = union_members(parameter.annotation)
            if all((typing.get_origin(member) or member) not in kinds for member in members):
                raise DeclarationError(f"{found.label}: {parameter.name!r} is filled with {what}")
        self._parameters = [parameter.name for parameter in found.parameters]

    def __repr__(self) -> str:
        return f"<completer: {self.function.label}>"

    def prepare(self, value: str, chosen: dict[str, str], dialect: Dialect) -> Invocation:
        """The call to make."""
        arguments = dict(zip(self._parameters, (value, chosen), strict=False))
        return CompletionInvocation(self.function, self.thread, arguments, dialect)


class Completers:
    """The completers of what `function` is declared as, by argument. False while there are none."""

    __slots__ = ("_by_argument", "_names")

    def __init__(self, function: Function) -> None:
        self._names = [parameter.wire_name for parameter in function.parameters]
        self._by_argument: dict[str, Completer] = {}

    def __repr__(self) -> str:
        return f"<Completers of {', '.join(self._by_argument) or 'nothing'}>"

    def __bool__(self) -> bool:
        return bool(self._by_argument)

    def add(self, argument: str, completer: Completer, owner: str) -> None:
        """Raises `DeclarationError` if `owner` has no such argument, or a completer for it."""
        label = completer.function.label
        if argument not in self._names:
            raise DeclarationError(f"{label}: {owner} has no {argument!r}; it has {self._known}")
        if argument in self._by_argument:
            other = self._by_argument[argument].function.label
            raise DeclarationError(f"{label}: {argument!r} of {owner} is completed by {other} already")
        self._by_argument[argument] = completer

    def prepare(self, params: CompleteParams, dialect: Dialect) -> Invocation | Result:
        """The call to make, or the answer for an argument that nobody completes.

        Raises:
            McpError: there is no such argument.
        """
        argument = params.argument
        if argument.name not in self._names:
            raise McpError(
                dialect.codes[Fault.INVALID_PARAMS],
                f"Unknown argument `{argument.name[:_SHOWN]}`; the arguments are: {self._known}",
            )
        completer = self._by_argument.get(argument.name)
        if completer is None:
            return _result(())
        chosen = params.context.arguments if params.context is not None else None
        return completer.prepare(argument.value, chosen or {}, dialect)

    @property
    def _known(self) -> str:
        return ", ".join(self._names) or "none"


class CompletionInvocation(Invocation):
    """One completion."""

    __slots__ = ()

    def result(self, value: Any) -> Result:
        refuse_coroutine(value, self.function.label)
        return _result(value)


def _result(value: Any) -> CompleteResult:
    found = value if isinstance(value, Completion) else _found(value)
    sent = list(found.values[:_MOST])
    for text in sent:
        if not isinstance(text, str):
            raise TypeError(f"a completion gives texts, not {type(text).__name__}")
    total = None if found.total is None else max(found.total, len(found.values))
    # What the function said, unless it is not so: more is known to be there, or to be nowhere.
    more = found.has_more
    if len(sent) < len(found.values):
        more = True
    elif total is not None:
        more = total > len(sent)
    return CompleteResult(completion=Completion(sent, total, more))


def _found(value: Iterable[str] | None) -> Completion:
    """What a function gave, with one value more than can be sent, if there are so many."""
    if value is None:
        value = ()
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"a completion gives texts, as in a list, not {type(value).__name__}")
    values = list(islice(value, _MOST + 1))
    if isinstance(value, Sized):
        return Completion(values, len(value))
    # It may go on for ever, and is not asked how long it is.
    return Completion(values, len(values) if len(values) <= _MOST else None)
