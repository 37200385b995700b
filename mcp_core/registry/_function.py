"""What a Python function says about itself: parameters, resolved annotations, descriptions, colour, context.

Rules of this file:

1. Everything is found out when the function is declared; a call never inspects anything.
2. What cannot be offered to a peer is an error here, with the name of the function and the parameter in it:
   `*args`, `**kwargs`, positional-only parameters, annotations that do not resolve, classes, generators.
3. The parameter annotated with `Context` (or `Context[Value]`, a subclass, or `Context | None`) is filled in by the runtime at
   whatever position it stands, and is no argument.
4. A trailing underscore is Python's way around its keywords and not part of a name: `from_` is the argument
   `from`, unless the function has a `from` of its own.

It does not know JSON, schemas, or what the function is declared as.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Final

from msgspec import Struct

from ._context import Context
from ._docstring import read_docstring
from ._errors import DeclarationError

__all__ = ["MISSING", "Function", "Parameter", "inspect_function", "plain", "union_members"]

MISSING: Final = inspect.Parameter.empty


class Parameter(Struct, frozen=True):
    """One argument: `name` in Python, `wire_name` for peers; `annotation` and `default` may be `MISSING`."""

    name: str
    wire_name: str
    annotation: Any
    default: Any
    description: str

    @property
    def required(self) -> bool:
        return self.default is MISSING


class Function(Struct, frozen=True):
    """A callable and what is worth knowing about it; `context` names the context parameter, "" if none."""

    call: Callable[..., Any]
    name: str  # as Python has it, "" for a callable without a name
    label: str  # for error texts
    is_async: bool
    context: str
    parameters: tuple[Parameter, ...]
    returns: Any  # `MISSING` without an annotation
    description: str


def plain(annotation: Any) -> Any:
    """The annotation without `Annotated[...]` around it."""
    return annotation.__origin__ if typing.get_origin(annotation) is Annotated else annotation


def union_members(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, without `Annotated`; the annotation alone if it is none."""
    bare = plain(annotation)
    if typing.get_origin(bare) in (typing.Union, types.UnionType):
        return tuple(member for part in typing.get_args(bare) for member in union_members(part))
    return (bare,)


def inspect_function(function: Callable[..., Any], *, returns: bool = True) -> Function:
    """Find everything out. Without `returns` the return annotation is left alone and reads as `MISSING`.

    Raises:
        DeclarationError: the function cannot be offered (rule 2).
    """
    label = _label(function)
    inner = _bare(function)
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
        raise DeclarationError(f"{label} has no signature that Python can tell") from None
    description, texts = read_docstring(inspect.getdoc(inner) or inspect.getdoc(entry))
    resolve = _resolver(inner, label)
    bound = _bound_by_partial(function)
    context = ""
    parameters = []
    for parameter in signature.parameters.values():
        if parameter.name in bound:
            continue
        _refuse_unusable(parameter, label)
        annotation = resolve(parameter.annotation, f"parameter {parameter.name!r}")
        if _is_context(annotation):
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
            Parameter(
                parameter.name,
                _wire_name(parameter.name, names),
                annotation,
                parameter.default,
                _described(annotation) or texts.get(parameter.name, ""),
            )
            for parameter, annotation in parameters
        ),
        returns=resolve(signature.return_annotation, "return value") if returns else MISSING,
        description=description,
    )


def _bare(function: Any) -> Any:
    """What is called in the end, without partials and `staticmethod`."""
    while isinstance(function, functools.partial | staticmethod):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    return function


def _label(function: Any) -> str:
    inner = _bare(function)
    name = getattr(inner, "__qualname__", None) or repr(inner)
    return f"function {name.rpartition('<locals>.')[2]!r}"


def _bound_by_partial(function: Any) -> set[str]:
    """Keywords that a partial has filled in: settled by the author, so no peer may set them."""
    return set(function.keywords) if isinstance(function, functools.partial) else set()


def _refuse_unusable(parameter: inspect.Parameter, label: str) -> None:
    match parameter.kind:
        case inspect.Parameter.VAR_POSITIONAL | inspect.Parameter.VAR_KEYWORD:
            raise DeclarationError(f"{label}: {parameter} takes any number of arguments; name each of them")
        case inspect.Parameter.POSITIONAL_ONLY:
            raise DeclarationError(
                f"{label}: {parameter.name!r} is positional-only; arguments are given by name"
            )
    if parameter.name == "self" and parameter.annotation is MISSING:
        raise DeclarationError(
            f"{label} lacks its instance; declare the method of an instance, as in add_tool(x.method)"
        )
    if parameter.name.startswith("__"):
        raise DeclarationError(
            f"{label}: {parameter.name!r} begins with two underscores, which Python keeps for itself"
        )


def _resolver(inner: Any, label: str) -> Callable[[Any, str], Any]:
    """A function that evaluates one annotation in the namespaces of the function it belongs to."""
    written = inspect.unwrap(inner if inspect.isroutine(inner) else type(inner).__call__)
    code = getattr(written, "__func__", written)
    module = getattr(code, "__globals__", {})
    # Names that the function's body uses too are in its closure: so some classes inside functions are found.
    free = getattr(getattr(code, "__code__", None), "co_freevars", ())
    local = {}
    for name, cell in zip(free, getattr(code, "__closure__", None) or (), strict=True):
        try:
            local[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet

    def resolve(annotation: Any, place: str) -> Any:
        if annotation is MISSING:
            return MISSING
        holder = types.SimpleNamespace(__annotations__={"it": annotation})
        try:
            return typing.get_type_hints(holder, globalns=module, localns=local, include_extras=True)["it"]
        except Exception as exc:  # an annotation is code, so whatever code can raise
            text = annotation if isinstance(annotation, str) else repr(annotation)
            raise DeclarationError(
                f"{label}: the annotation of {place}, {text}, cannot be resolved ({exc}); "
                f"its names must exist at run time at the top of the module, so not only under TYPE_CHECKING"
            ) from exc

    return resolve


def _is_context(annotation: Any) -> bool:
    members = [member for member in union_members(annotation) if member is not types.NoneType]
    if len(members) != 1:
        return False
    bare = typing.get_origin(members[0]) or members[0]
    return isinstance(bare, type) and issubclass(bare, Context)


def _wire_name(name: str, names: set[str]) -> str:
    short = name.removesuffix("_")
    return short if short and short not in names and not short.endswith("_") else name


def _described(annotation: Any) -> str:
    """The text of `Annotated[T, "text"]`."""
    extras = typing.get_args(annotation)[1:] if typing.get_origin(annotation) is Annotated else ()
    return next((extra for extra in extras if isinstance(extra, str)), "")
