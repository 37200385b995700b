"""The signatures of everything public, as text: `signatures.txt` holds them as they were reviewed.

`python -m tests.layering.signatures` writes the file anew. Its difference shows what a change does
to callers, above all to a default: a default is what most callers get, and it may protect them.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, ForwardRef, get_args

import msgspec

from tests.layering.docstrings import WIRE, by_name, public

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN: Final = Path(__file__).with_suffix(".txt")
_EMPTY: Final = inspect.Parameter.empty
_STARS: Final[Mapping[object, str]] = {
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")


def render() -> str:
    """Return all public signatures, sorted by name: a callable a paragraph, a parameter a line."""
    entries = [
        f"{package}.{label}\n{''.join(f'    {line}{chr(10)}' for line in lines)}"
        for package, name, value in public()
        for label, lines in _entries(name, value, is_wire=package == WIRE)
    ]
    return "".join(sorted(entries))


def _entries(name: str, value: object, *, is_wire: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield a function, or a class with its public members, as a name and its lines."""
    if isinstance(value, FunctionType):
        yield name, _lines_of_function(value)
    elif isinstance(value, type):
        # Wire types have the members in the specification's schema, which has tests of its own.
        yield name, [] if is_wire else list(_lines_of_class(value))
        for member, found in members(value).items():
            if isinstance(found, FunctionType):
                yield f"{name}.{member}", _lines_of_function(found)
            elif isinstance(found, property | functools.cached_property):
                getter = found.fget if isinstance(found, property) else found.func
                assert getter is not None
                yield f"{name}.{member}", [f"-> {getter.__annotations__.get('return')}"]


def members(cls: type) -> dict[str, object]:
    """Return the public methods and properties that no other public class defines."""
    members: dict[str, object] = {}
    for base in reversed(cls.__mro__):
        is_ours = base.__module__.startswith("mcp_")
        if base is cls or (is_ours and by_name().get(base.__name__) is not base):
            members |= vars(base)
    return {
        name: value.__func__ if isinstance(value, classmethod | staticmethod) else value
        for name, value in sorted(members.items())
        if not name.startswith("_") or name == "__call__"
    }


def _lines_of_class(cls: type) -> Iterator[str]:
    """Yield the fields that a class declares, or else the parameters of its `__init__`."""
    if hasattr(cls, "__total__"):  # a TypedDict
        yield from (_line(key, hint, _EMPTY) for key, hint in sorted(cls.__annotations__.items()))
    elif issubclass(cls, Enum):
        yield from (f"{each.name} = {each.value!r}" for each in cls)
    elif issubclass(cls, msgspec.Struct):
        given = cls.__struct_defaults__
        names = cls.__struct_fields__
        absent = [msgspec.NODEFAULT] * (len(names) - len(given))
        for name, default in zip(names, [*absent, *given], strict=True):
            yield _line(name, _hint(cls, name), default, msgspec.NODEFAULT)
    elif dataclasses.is_dataclass(cls):
        for each in dataclasses.fields(cls):
            is_made = each.default_factory is not dataclasses.MISSING
            default = each.default_factory if is_made else each.default
            yield _line(each.name, _hint(cls, each.name), default, dataclasses.MISSING)
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        defaults = cls._field_defaults  # type: ignore[attr-defined]  # a NamedTuple
        for name in cls._fields:
            yield _line(name, _hint(cls, name), defaults.get(name, _EMPTY))
    elif isinstance(init := vars(cls).get("__init__"), FunctionType):
        yield from _lines_of_function(init)
    elif base := next((b for b in cls.__mro__[1:] if b.__module__.startswith("mcp_")), None):
        yield f"as {base.__name__}"


def _hint(cls: type, name: str) -> object:
    return next(
        (hints[name] for base in cls.__mro__ if name in (hints := inspect.get_annotations(base))),
        "?",
    )


def _lines_of_function(function: FunctionType) -> list[str]:
    signature = inspect.signature(inspect.unwrap(function), follow_wrapped=False)
    lines = []
    parameters = list(signature.parameters.values())
    kinds = {each.kind for each in parameters}
    for at, each in enumerate(parameters):
        if at == 0 and each.name in {"self", "cls"}:
            continue
        if each.kind is each.KEYWORD_ONLY and "*" not in lines and each.VAR_POSITIONAL not in kinds:
            lines.append("*")
        lines.append(_line(_STARS.get(each.kind, "") + each.name, each.annotation, each.default))
        is_last = at + 1 == len(parameters) or parameters[at + 1].kind is not each.kind
        if each.kind is each.POSITIONAL_ONLY and is_last:
            lines.append("/")
    return [*lines, f"-> {_text(signature.return_annotation)}"]


def _line(name: str, hint: object, default: object, absent: object = _EMPTY) -> str:
    shown = f"{name}: {_text(hint)}"
    return shown if default is absent else f"{shown} = {_shown(default)}"


def _text(hint: object) -> str:
    if isinstance(hint, ForwardRef):  # of a TypedDict
        return hint.__forward_arg__
    if isinstance(hint, str) or get_args(hint):
        return str(hint)
    return getattr(hint, "__name__", str(hint))


def _shown(value: Any) -> str:
    """Return a default as text that is the same in every process and every Python."""
    if value is os.environ:
        return "os.environ"
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, frozenset | set):
        return f"{{{', '.join(sorted(map(_shown, value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_shown(key)}: {_shown(each)}' for key, each in value.items())}}}"
    if isinstance(value, type | FunctionType):
        return value.__qualname__
    return _ADDRESS.sub("", repr(value))


if __name__ == "__main__":
    GOLDEN.write_text(render(), "utf-8")
