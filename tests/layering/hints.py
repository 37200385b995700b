"""Find public annotations that `typing.get_type_hints` cannot evaluate, and say what to change.

Tools that read annotations, such as frameworks for injection or validation, evaluate them in the
module of the class or function. A name that this module imports under `if TYPE_CHECKING` raises
`NameError` there.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ForwardRef, Literal, get_args, get_origin, get_overloads
from typing import get_type_hints as evaluate

from tests.layering.docstrings import public
from tests.layering.signatures import members

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


def violations(package: str) -> Iterator[str]:
    """Yield each annotation of a package that cannot be evaluated, with the cure."""
    for home, name, value in public():
        if home == package:
            yield from problems(f"{package}.{name}", value)


def problems(label: str, value: object) -> Iterator[str]:
    """Yield what cannot be evaluated of a class with its members, of a function or of an alias."""
    if isinstance(value, type):
        yield from _problems(label, value)
        for name, member in [*members(value).items(), ("__init__", vars(value).get("__init__"))]:
            if isinstance(member, property):
                member = member.fget
            elif isinstance(member, functools.cached_property):
                member = member.func
            if isinstance(member, FunctionType):
                yield from _problems(f"{label}.{name}", member)
    elif isinstance(value, FunctionType) or hasattr(value, "__wrapped__"):
        yield from _problems(label, value)
    elif get_origin(value) is not None:
        # As the annotation of someone's function, in whose module our names mean nothing.
        yield from _problems(label, SimpleNamespace(__annotations__={"alias": value}))


def _problems(label: str, value: Any) -> Iterator[str]:
    for each in (value, *(get_overloads(value) if isinstance(value, FunctionType) else ())):
        try:
            hints = evaluate(each)
        except Exception as exc:  # noqa: BLE001 (a finding, of any class)
            yield f"{label}: {_cure(each, exc)}"
        else:
            left = [name for name, hint in hints.items() if _is_left(hint)]
            yield from (f"{label}: the annotation of {name} stays a text" for name in left)


def _is_left(hint: object) -> bool:
    if isinstance(hint, str | ForwardRef):
        return True
    return get_origin(hint) is not Literal and any(map(_is_left, get_args(hint)))


def _cure(value: Any, exc: Exception) -> str:
    """Return an error's text, with the import to move if the error is about one."""
    if isinstance(exc, NameError):
        for module in _modules(value):
            for statement in _imports_for_types(module):
                if exc.name in {each.asname or each.name for each in statement.names}:
                    return (
                        f"{module.__name__} has `{ast.unparse(statement)}` for type checkers only: "
                        f"move {exc.name} out of `if TYPE_CHECKING`, or, if that would load "
                        "another module, write `type_on_first_use` in its `else`"
                    )
    return f"{type(exc).__name__}: {exc}"


def _modules(value: Any) -> list[ModuleType]:
    """Return the modules in which the annotations of a class or function are evaluated."""
    found = value.__mro__ if isinstance(value, type) else [inspect.unwrap(value)]
    return [sys.modules[each.__module__] for each in found if hasattr(each, "__module__")]


def _imports_for_types(module: ModuleType) -> Iterator[ast.Import | ast.ImportFrom]:
    if module.__file__ is None:
        return
    for block in ast.parse(Path(module.__file__).read_text("utf-8")).body:
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING":
            yield from (s for s in block.body if isinstance(s, ast.Import | ast.ImportFrom))
