"""The decorators of a file with invariants.

Each notes its declaration in the globals of the file that uses it. So two functions of one name are
both known, and no state is shared by two files.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, TypeVar

from mcp_core import McpTrioError

__all__ = [
    "DECLARED",
    "Declared",
    "InvariantError",
    "ToolCall",
    "Use",
    "after_call",
    "before_call",
    "invariant",
    "uses",
]

DECLARED: Final = "__mcp_invariants__"  # the file's global with its declarations
MAX_NAME: Final = 80  # characters: it is a part of files' names
_TAKEN: Final = ("crash", "hang", "endless")  # findings of the fuzzer's own

Kind: TypeAlias = Literal["invariant", "before_call", "after_call"]
_PARAMETERS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "invariant": ("call", "result"),
    "before_call": ("call",),
    "after_call": ("call", "result"),
}

F = TypeVar("F", bound=Callable[..., Any])


class InvariantError(McpTrioError):
    """A file with invariants is wrong, or one of its functions is broken.

    The text names the file, the line and the cure.
    """


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """A call of a tool by the fuzzer.

    Attributes:
        name: the tool's name.
        arguments: the arguments that are sent. They can be wrong on purpose: about one call in
            seven misses the tool's schema by a detail.
        handed: those of the arguments that earlier calls of the conversation have returned, by
            name. The others fit the tool's schema then, as they were drawn. See `uses`.
        revision: the conversation's protocol revision, such as `2025-11-25`.
    """

    name: str
    arguments: dict[str, Any]
    handed: dict[str, Any] = field(default_factory=dict)
    revision: str


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A function of the file.

    Attributes:
        kind: which decorator has declared it.
        function: the function.
        name: its name.
        place: its file and line.
        tool: the only tool whose calls it gets; None for all tools.
        errors: whether an invariant gets the errors of calls with right arguments, too.
        provides: the name for the values that an `after_call` returns; "" if it returns none.
    """

    kind: Kind
    function: Callable[..., Any]
    name: str
    place: str
    tool: str | None
    errors: bool = False
    provides: str = ""

    def takes(self, tool: str) -> bool:
        """Return True if the function gets the calls of a tool."""
        return self.tool in (None, tool)


@dataclass(frozen=True, kw_only=True)
class Use:
    """An argument that gets values from earlier calls. `place` is its file and line."""

    value: str
    tool: str
    argument: str
    place: str


def invariant(tool: str | None = None, *, errors: bool = False) -> Callable[[F], F]:
    """Declare a check of each result of a tool: `def f(call: ToolCall, result: CallToolResult)`.

    The function raises an `AssertionError` if the result is wrong. That is a finding with the
    function's name. Any other exception means that the function itself is broken. It gets copies:
    what it changes in them is lost. It runs in a worker thread, never beside another function of
    the file, and may take 5 seconds.

    Args:
        tool: the tool's name; None for all tools.
        errors: whether it also gets results with `is_error`, if the arguments fit the tool's input
            schema: a server is right to refuse others. A response that is an error of JSON-RPC has
            no result, and isn't checked.

    Raises:
        InvariantError: it isn't a plain function of a call and a result.
    """
    return _declaring("invariant", tool, errors=errors)


def before_call(tool: str | None = None) -> Callable[[F], F]:
    """Declare a function that may replace a call's arguments: `def f(call: ToolCall)`.

    It returns the arguments to send, or None for those that were drawn. It gets a copy, and runs
    like an invariant.

    Args:
        tool: the tool's name; None for all tools.

    Raises:
        InvariantError: it isn't a plain function of a call.
    """
    return _declaring("before_call", tool)


def after_call(tool: str | None = None, *, provides: str = "") -> Callable[[F], F]:
    """Declare a function that gets each successful result: `def f(call, result)`.

    With `provides` it returns a value for later calls of the conversation: a JSON value, a list of
    several values, or None for no value. It gets copies, and runs like an invariant, before the
    invariants.

    Args:
        tool: the tool's name; None for all tools.
        provides: the values' name, for `uses`.

    Raises:
        InvariantError: it isn't a plain function of a call and a result.
    """
    return _declaring("after_call", tool, provides=provides)


def uses(value: str, *, tool: str, argument: str) -> None:
    """Declare that a tool's argument is one of the values that earlier calls have returned.

    Most calls of the tool then get such a value in place of a drawn one, and there are
    conversations that call a providing tool first. Values belong to one conversation.

    Args:
        value: the name that an `after_call` has in `provides`.
        tool: the tool's name.
        argument: the argument's name.

    Raises:
        InvariantError: one of the names isn't a text.
    """
    frame = sys._getframe(1)
    place = _place(frame.f_code.co_filename, frame.f_lineno)
    names: dict[str, Any] = {"value": value, "tool": tool, "argument": argument}
    for name, given in names.items():
        if not isinstance(given, str) or not given:
            raise InvariantError(f"{place}: uses({name}=...) is a name, not {given!r:.40}")
    declared = Use(value=value, tool=tool, argument=argument, place=place)
    frame.f_globals.setdefault(DECLARED, []).append(declared)


def _place(file: str, line: int) -> str:
    return f"{Path(file).name}, line {line}"


def _declaring(kind: Kind, tool: Any, **more: Any) -> Callable[[F], F]:
    if callable(tool):
        code = getattr(tool, "__code__", None)
        place = f"{_place(code.co_filename, code.co_firstlineno)}: " if code else ""
        raise InvariantError(f"{place}write @{kind}() with parentheses")

    def declare(function: F) -> F:
        problem = _problem_of(kind, function)
        code = getattr(function, "__code__", None)
        place = _place(code.co_filename, code.co_firstlineno) if code else "a declaration"
        name = str(getattr(function, "__name__", ""))
        if tool is not None and (not isinstance(tool, str) or not tool):
            problem = f"tool= is a tool's name, not {tool!r:.40}"
        if problem:
            raise InvariantError(f"{place}: @{kind}: {problem}")
        declared = Declared(kind=kind, function=function, name=name, place=place, tool=tool, **more)
        function.__globals__.setdefault(DECLARED, []).append(declared)
        return function

    return declare


def _problem_of(kind: Kind, function: Any) -> str:
    """Return what is wrong with a function, with its cure; "" if it is one of this kind."""
    parameters = _PARAMETERS[kind]
    form = f"`def NAME({', '.join(parameters)}):`"
    if not inspect.isfunction(function):
        return f"write a function: {form}"
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        return f"write a plain function, {form}: it runs in a thread, so it may wait"
    if inspect.isasyncgenfunction(function):
        return f"write a plain function, {form}"
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError:
        given = inspect.signature(function)
        return f"{function.__name__}{given} does not take ({', '.join(parameters)}): write {form}"
    name = function.__name__
    if not name.isidentifier() or name in _TAKEN:
        return f"the name {name} is taken: give the function another one"
    if len(name) > MAX_NAME:
        return f"its name has {len(name)} characters: give it one of at most {MAX_NAME}"
    return ""
