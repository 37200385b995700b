"""Inspection of a Python function: its parameters, annotations and descriptions.

1. A function is inspected once, when it is declared. A call inspects nothing.
2. A function that cannot be offered to a peer raises `DeclarationError`: `*args`, positional-only
   parameters, annotations that cannot be resolved, classes, generators; and `**kwargs`, unless the
   declaration has a schema of the arguments.
3. The parameter annotated with `Context` (or `Context[Value]`, a subclass, or `Context | None`)
   may stand at any position. The runtime fills it in, and it isn't an argument.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final

from msgspec import Struct

from mcp_core.registry._errors import DeclarationError

from ._aliases import evaluate, expand_aliases
from ._docstring import read_docstring
from ._pydantic import field_of, is_field

__all__ = [
    "MISSING",
    "DefaultFactory",
    "Function",
    "Injected",
    "Parameter",
    "inspect_function",
    "runs_in_thread",
    "strip_annotated",
    "union_members",
]

MISSING: Final = inspect.Parameter.empty


class Injected:
    """The base of `Context`: an object that the runtime passes to a function.

    A parameter annotated with such a class isn't an argument of the peer.

    `in_plain_def` is True while a plain `def` runs with it in the event loop, which cannot await.
    """

    __slots__ = ("in_plain_def",)

    in_plain_def: bool


class DefaultFactory(Struct, frozen=True):
    """A default that is made for each call: pydantic's `Field(default_factory=...)`."""

    make: Callable[[], Any]


class Parameter(Struct, frozen=True):
    """One argument: `name` in Python, `wire_name` for peers.

    `annotation` and `default` may be `MISSING`.
    """

    name: str
    wire_name: str
    annotation: Any
    default: Any  # a `DefaultFactory` if it is made for each call
    description: str
    has_field: bool  # True if the function's own default is pydantic's `Field(...)`

    @property
    def required(self) -> bool:
        return self.default is MISSING


class Function(Struct, frozen=True):
    """A callable with what `inspect_function` found out about it."""

    call: Callable[..., Any]
    name: str  # the function's `__name__`, "" for a callable without one
    label: str  # for error texts
    is_async: bool
    context: str  # the name of the context parameter, "" without one
    parameters: tuple[Parameter, ...]
    returns: Any  # the return annotation, `MISSING` without one
    description: str
    # With `**arguments`: names that a peer may not use there, because they are parameters. None
    # without `**arguments`.
    reserved: frozenset[str] | None = None


def strip_annotated(annotation: Any) -> Any:
    """Return the annotation without `Annotated[...]` around it."""
    return annotation.__origin__ if typing.get_origin(annotation) is Annotated else annotation


def union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation alone, all without `Annotated`."""
    bare = strip_annotated(annotation)
    if typing.get_origin(bare) in (typing.Union, types.UnionType):
        return tuple(member for part in typing.get_args(bare) for member in union_members(part))
    return (bare,)


def inspect_function(
    function: Callable[..., Any], *, returns: bool = True, has_schema: bool | None = None
) -> Function:
    """Inspect a function that is declared.

    Args:
        function: the function.
        returns: False leaves the return annotation unresolved; `Function.returns` is `MISSING`.
        has_schema: whether the declaration has a schema of the arguments, so that `**arguments` can
            take them. None if it cannot have one.

    Raises:
        DeclarationError: the function cannot be offered to a peer (rule 2).
    """
    label = _label(function)
    inner = _unwrap(function)
    if not callable(inner):
        raise DeclarationError(f"{label} is not callable")
    if inspect.isclass(inner):
        raise DeclarationError(
            f"{label} is a class; declare one of its methods, or a function that makes instances"
        )
    entry = inner if inspect.isroutine(inner) else type(inner).__call__
    if inspect.isgeneratorfunction(entry) or inspect.isasyncgenfunction(entry):
        raise DeclarationError(f"{label} is a generator; return a list instead")
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        raise DeclarationError(f"{label} has no signature that inspect can read") from None
    description, texts = read_docstring(inspect.getdoc(inner) or inspect.getdoc(entry))
    resolve = _resolver(inner, label)
    bound = _keywords_of_partial(function)
    context = ""
    parameters = []
    reserved = None
    for parameter in signature.parameters.values():
        if parameter.name in bound:
            continue
        if has_schema and parameter.kind is inspect.Parameter.VAR_KEYWORD:
            reserved = _named_parameters(function)
            continue
        _check_parameter(parameter, label, may_have_schema=has_schema is not None)
        annotation = resolve(parameter.annotation, f"parameter {parameter.name!r}")
        if _is_injected(annotation):
            if context:
                raise DeclarationError(
                    f"{label} has two parameters for the context: {context!r}, {parameter.name!r}"
                )
            context = parameter.name
            continue
        parameters.append((parameter, annotation))
    names = {parameter.name for parameter, _ in parameters}
    return Function(
        call=function,
        name=getattr(entry, "__name__", "") if entry is inner else "",
        label=label,
        is_async=inspect.iscoroutinefunction(entry),
        context=context,
        parameters=tuple(
            _parameter(parameter, annotation, names, texts.get(parameter.name, ""))
            for parameter, annotation in parameters
        ),
        returns=resolve(signature.return_annotation, "return value") if returns else MISSING,
        description=description,
        reserved=reserved,
    )


def runs_in_thread(function: Function, thread: bool | None, default: bool) -> bool:
    """Return True if a function is to run in a worker thread.

    `thread` is the declaration's option; if it is None, `default` applies to a plain `def`.

    Raises:
        DeclarationError: the option is True for an `async def`.
    """
    if thread and function.is_async:
        raise DeclarationError(
            f"{function.label} is async; thread=True is for a plain def that blocks"
        )
    return (default and not function.is_async) if thread is None else thread


def _parameter(
    parameter: inspect.Parameter, annotation: Any, names: set[str], description: str
) -> Parameter:
    """Return an argument of the peer. `names` has all parameters' names."""
    default = parameter.default
    has_field = is_field(default)
    if has_field:
        annotation = Annotated[Any if annotation is MISSING else annotation, default]
    field = field_of(annotation)
    if field is not None and (has_field or default is MISSING):
        default = _field_default(field)
    return Parameter(
        parameter.name,
        getattr(field, "alias", None) or _wire_name(parameter.name, names),
        annotation,
        default,
        _annotated_text(annotation) or getattr(field, "description", None) or description,
        has_field or (field is not None and parameter.default is MISSING),
    )


def _field_default(field: Any) -> Any:
    """Return the default in pydantic's `Field(...)`, `MISSING` if it is required."""
    if field.is_required():
        return MISSING
    return field.default if field.default_factory is None else DefaultFactory(field.default_factory)


def _unwrap(function: Any) -> Any:
    """Return the callable inside of partials and `staticmethod`."""
    while isinstance(function, functools.partial | staticmethod):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    return function


def _label(function: Any) -> str:
    inner = _unwrap(function)
    name = getattr(inner, "__qualname__", None) or repr(inner)
    return f"function {name.rpartition('<locals>.')[2]!r}"


def _keywords_of_partial(function: Any) -> set[str]:
    """Return the keywords that a partial fills in. The author set them, so a peer may not."""
    return set(function.keywords) if isinstance(function, functools.partial) else set()


def _named_parameters(function: Any) -> frozenset[str]:
    """Return the parameters of a function that a keyword can fill in, inside of partials too.

    A peer's argument of such a name would replace what the author has bound, or be given twice.
    """
    inner = _unwrap(function)
    names: set[str] = set()
    entry: Any = inner if inspect.isroutine(inner) else type(inner).__call__
    while entry is not None:
        code = getattr(getattr(entry, "__func__", entry), "__code__", None)
        if code is not None:
            count = code.co_argcount + code.co_kwonlyargcount
            names.update(code.co_varnames[code.co_posonlyargcount : count])
        entry = getattr(entry, "__wrapped__", None)
    return frozenset(names)


def _check_parameter(
    parameter: inspect.Parameter, label: str, *, may_have_schema: bool = False
) -> None:
    """Raise `DeclarationError` for a parameter that no peer can fill in."""
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.VAR_KEYWORD:
            is_keyword = parameter.kind is inspect.Parameter.VAR_KEYWORD
            schema = ", or describe them: add_tool(function, input_schema={...})"
            raise DeclarationError(
                f"{label}: {parameter} takes any number of arguments; name each of"
                f" them{schema if may_have_schema and is_keyword else ''}"
            )
        case inspect.Parameter.POSITIONAL_ONLY:
            raise DeclarationError(
                f"{label}: {parameter.name!r} is positional-only; arguments are given by name"
            )
    if parameter.name == "self" and parameter.annotation is MISSING:
        raise DeclarationError(
            f"{label} lacks its instance; "
            "declare the method of an instance, as in add_tool(x.method)"
        )
    if parameter.name.startswith("__"):
        raise DeclarationError(
            f"{label}: {parameter.name!r} begins with two underscores, which Python reserves"
        )


def _resolver(inner: Any, label: str) -> Callable[[Any, str], Any]:
    """Return a function that evaluates an annotation in the namespaces of its own function."""
    written = inspect.unwrap(inner if inspect.isroutine(inner) else type(inner).__call__)
    code = getattr(written, "__func__", written)
    module = getattr(code, "__globals__", {})
    # A class that is defined inside a function is found only if the body of the declared function
    # uses it too: only then does the closure hold it.
    free = getattr(getattr(code, "__code__", None), "co_freevars", ())
    local = {}
    for name, cell in zip(free, getattr(code, "__closure__", None) or (), strict=True):
        try:
            local[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet

    def resolve(annotation: Any, location: str) -> Any:
        if annotation is MISSING:
            return MISSING
        try:
            found = evaluate(annotation, module, local)
        except Exception as exc:  # an annotation is code, which may raise anything
            text = annotation if isinstance(annotation, str) else repr(annotation)
            raise DeclarationError(
                f"{label}: the annotation of {location}, {text}, cannot be resolved ({exc}); "
                "its names must exist at run time at the top of the module, "
                "so not only under TYPE_CHECKING"
            ) from exc
        try:
            return expand_aliases(found, module, local)
        except Exception as exc:  # so is what an alias stands for
            raise DeclarationError(f"{label}: {location}, {found!r}: {exc}") from exc

    return resolve


def _is_injected(annotation: Any) -> bool:
    members = [member for member in union_members(annotation) if member is not types.NoneType]
    if len(members) != 1:
        return False
    bare = typing.get_origin(members[0]) or members[0]
    return isinstance(bare, type) and issubclass(bare, Injected)


def _wire_name(name: str, names: set[str]) -> str:
    """Return `from` for `from_`: the underscore only avoids a keyword of Python.

    It stays if the function has a parameter of the shorter name too.
    """
    short = name.removesuffix("_")
    return short if short and short not in names and not short.endswith("_") else name


def _annotated_text(annotation: Any) -> str:
    """Return the text of `Annotated[T, "text"]`, "" without one."""
    extras = typing.get_args(annotation)[1:] if typing.get_origin(annotation) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, str)), "")
