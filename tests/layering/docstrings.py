"""Find public parameters, fields and exceptions that no docstring describes.

The rules read live objects, as Sphinx does. A parameter or field counts as described if its name is
in a code span or begins an entry of a section (`Args:`, `Keys:`, `Attributes:`):

1. A parameter of a function in the function's docstring, or in the docstring of a base class's
   method with the same name. One of a constructor in the docstring of the class or of a base class.
2. A field of a struct, dataclass or named tuple also in a comment above or beside it, which the
   documentation shows. Types of the wire are exempt (`WIRE`).
3. The options of `**options: Unpack[X]` by the name of `X`, whose own docstring has each key.
4. An exception that a function itself raises, also by the name of one of its base classes.

A docstring may point elsewhere in place of describing. "As `Other.method`" stands for that
docstring, and a class that names a protocol has the protocol's docstrings for its methods. Every
public function, method, property and class has a docstring.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import dis
import functools
import importlib
import inspect
import re
import sys
from enum import Enum
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    _Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

# In the order in which a name that several export is assigned to one of them.
PACKAGES: Final = (
    "mcp_core",
    "mcp_core.types",
    "mcp_core.urls",
    "mcp_core.http",
    "mcp_core.auth",
    "mcp_core.contract",
    "mcp_core.registry",
    "mcp_core.sharing",
    "mcp_core.tasks",
    "mcp_core.drivers",
    "mcp_core.processes",
    "mcp_core.runtime",
    "mcp_core.runtime.host",
    "mcp_core.runtime.sharing",
    "mcp_core.runtime.tasks",
    "mcp_core.adapters",
    "mcp_core.host",
    "mcp_core.trace",
    "mcp_trio",
    "mcp_trio.host",
    "mcp_trio.testing",
    "mcp_trio.testing.strategies",
    "mcp_trio.testing.invariants",
    "mcp_trio.testing.hostile",
    "mcp_asyncio_shim",
)
# Fields here are members of the specification's schema, under its names. The docstrings explain
# those that the schema leaves open, and the specification explains the others.
WIRE: Final = "mcp_core.types"
# Parameters of so many methods of a class that its docstring may describe them once for all.
SHARED: Final = frozenset({"now"})

_RAISE: Final = dis.opmap["RAISE_VARARGS"]
_SPAN: Final = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_ENTRY: Final = re.compile(r"^ +(\*{0,2}\w+(?:, \*{0,2}\w+)*):", re.MULTILINE)
_REFERENCE: Final = re.compile(r"\b(?:as|like|see)\b[^.`]*`([\w.]+)(?:\(\))?`", re.IGNORECASE)


def violations(package: str) -> Iterator[str]:
    """Yield what the docstrings of a package do not describe, as `package.name: what`."""
    for home, name, value in public():
        if home == package:
            yield from (f"{package}.{problem}" for problem in problems(name, value))


def problems(name: str, value: object) -> Iterator[str]:
    """Yield what the docstring of a public value, or of a member of it, does not describe."""
    if isinstance(value, type):
        yield from _problems_of_class(name, value)
    elif isinstance(value, FunctionType):
        yield from _problems_of_function(name, value, [inspect.getdoc(value) or ""])


@functools.cache
def public() -> list[tuple[str, str, object]]:
    """Return the package, the name and the value of all that is public, each value once."""
    found: dict[int, tuple[str, str, object]] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            if getattr(value, "__module__", "builtins") != "builtins":  # an alias such as `Cursor`
                found.setdefault(id(value), (package, name, value))
    return list(found.values())


@functools.cache
def by_name() -> dict[str, object]:
    """Return public values by name. The first is taken of those that share one, as of drivers."""
    return {name: value for _, name, value in reversed(public())}


# -- Classes ---------------------------------------------------------------------------------------


def _problems_of_class(name: str, cls: type) -> Iterator[str]:
    docs = _docs_of_class(cls)
    if not docs:
        yield f"{name}: no docstring"
    keys = _keys(cls)
    if keys is not None:
        yield from _missing(name, keys, docs)
        return
    fields = _fields(cls)
    if fields is not None:
        lacking = set(fields) - _described("\n".join(docs))
        if lacking:  # or the files needn't be parsed
            lacking = lacking.difference(*map(_commented_fields, _own_bases(cls)))
        yield from _missing(name, [each for each in fields if each in lacking], docs)
        for base in _own_bases(cls, "__post_init__"):
            yield from _unnamed_errors(name, vars(base)["__post_init__"], docs)
    elif not _is_protocol(cls) and not issubclass(cls, Enum):
        constructor = next((vars(base)["__init__"] for base in _own_bases(cls, "__init__")), None)
        if isinstance(constructor, FunctionType):
            yield from _problems_of_function(name, constructor, docs, cls)
    members: dict[str, object] = {}
    for base in reversed(_own_bases(cls)):
        if base is cls or by_name().get(base.__name__) is not base:
            members |= vars(base)
    for member, value in members.items():
        if not member.startswith("_") or member == "__call__":
            yield from _problems_of_member(cls, f"{name}.{member}", member, value)


def _problems_of_member(cls: type, label: str, member: str, value: object) -> Iterator[str]:
    if isinstance(value, classmethod | staticmethod):
        value = value.__func__
    if not isinstance(value, FunctionType | property | functools.cached_property):
        return
    docs = [
        doc
        for base in [*_own_bases(cls, member), *_named_protocols(cls)]
        if member in vars(base) and (doc := inspect.getdoc(vars(base)[member]))
    ]
    if member == "__call__":
        docs += _docs_of_class(cls)  # an object that is called is described as a whole
    if isinstance(value, FunctionType):
        yield from _problems_of_function(label, value, docs, cls)
    elif not docs:
        yield f"{label}: no docstring"


def _own_bases(cls: type, member: str | None = None) -> list[type]:
    """Return the class and its bases that the project defines and that define `member`."""
    return [
        base
        for base in cls.__mro__
        if base.__module__.startswith(("mcp_", "tests.")) and (not member or member in vars(base))
    ]


def _docs_of_class(cls: type) -> list[str]:
    """Return the docstrings of a class and its bases, and of their constructors."""
    found: list[str | None] = []
    for base in _own_bases(cls):
        # Not of None: since Python 3.13 it has a docstring.
        found += [each.__doc__ for each in (base, vars(base).get("__init__")) if each is not None]
    generated = rf"{re.escape(cls.__name__)}\("  # a dataclass without a docstring gets one
    docs = [inspect.cleandoc(doc) for doc in found if doc and not re.match(generated, doc)]
    return docs + [text for base in _typed_dict_bases(cls, docs) for text in _docs_of_class(base)]


def _named_protocols(cls: type) -> list[type]:
    """Return the public protocols that the docstrings of a class name in code spans."""
    return [
        value
        for doc in _docs_of_class(cls)
        for span in _SPAN.findall(doc)
        if _is_protocol(value := _public(span))
    ]


def _is_protocol(value: object) -> bool:
    return isinstance(value, type) and bool(vars(value).get("_is_protocol"))


def _typed_dict_bases(cls: type, docs: list[str]) -> list[type]:
    """Return the base classes of a `TypedDict` that its docstring names.

    At run time its only base class is `dict`.
    """
    keys = _keys(cls)
    named = [_public(span) for doc in docs for span in _SPAN.findall(doc)] if keys else []
    return [each for each in named if set(_keys(each) or keys or ()) < set(keys or ())]


def _keys(cls: object) -> list[str] | None:
    return list(cls.__annotations__) if hasattr(cls, "__total__") else None


def _fields(cls: type) -> list[str] | None:
    """Return the public fields of a class that declares fields, else None."""
    names: Iterable[str]
    if issubclass(cls, Struct):
        names = cls.__struct_fields__
    elif dataclasses.is_dataclass(cls):
        names = [field.name for field in dataclasses.fields(cls)]
    elif issubclass(cls, tuple) and hasattr(cls, "_fields"):
        names = cls._fields
    else:
        return None
    return [name for name in names if not name.startswith("_")]


def _commented_fields(cls: type) -> set[str]:
    """Return the fields of a class that have a comment above or beside them; all of `WIRE`."""
    if cls.__module__.startswith(WIRE):
        return set(cls.__annotations__)
    file = _parsed(getattr(sys.modules[cls.__module__], "__file__", None) or "")
    definition = file.classes.get(cls.__qualname__)
    found = set()
    for node in definition.body if definition is not None else ():
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            above = file.lines[node.lineno - 2].strip()
            beside = file.lines[(node.end_lineno or node.lineno) - 1][node.end_col_offset or 0 :]
            if above.startswith("# ") or "# " in beside:
                found.add(node.target.id)
    return found


# -- Functions -------------------------------------------------------------------------------------


def _problems_of_function(
    label: str, function: FunctionType, docs: list[str], cls: type | None = None
) -> Iterator[str]:
    """Yield what `docs` do not describe of a function, a method of `cls`."""
    function = inspect.unwrap(function)
    docs = [doc for doc in docs if doc]
    if not docs:
        yield f"{label}: no docstring"
        return
    docs += [doc for text in docs for doc in _referenced(text, cls)]
    wanted = []
    for name, annotation in _parameters(function):
        options = re.search(r"Unpack\[(?:\w+\.)*(\w+)\]", str(annotation))
        if options is None:
            wanted.append(name)
        elif not re.search(rf"\b{options[1]}\b", "\n".join(docs)):
            keys = _keys(_typed_dict(function, options[1]))
            yield from _missing(f"{label}: {options[1]}", keys or [name], docs)
    shared = _described("\n".join(_docs_of_class(cls))) & SHARED if cls else set()
    yield from _missing(label, [name for name in wanted if name not in shared], docs)
    yield from _unnamed_errors(label, function, docs)


def _parameters(function: FunctionType) -> Iterator[tuple[str, object]]:
    """Yield the public parameters with their annotations, as they are written.

    `inspect.signature` may show others: `shows_keywords` replaces it.
    """
    code = function.__code__
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    for at, name in enumerate(code.co_varnames[:count]):
        if not name.startswith("_") and not (at == 0 and name in {"self", "cls"}):
            yield name, function.__annotations__.get(name)


def _unnamed_errors(label: str, function: FunctionType, docs: list[str]) -> Iterator[str]:
    for name in _raised(function):
        found = getattr(builtins, name, None) or function.__globals__.get(name)
        bases = getattr(found, "__mro__", ())
        names = {name, *(base.__name__ for base in bases if base is not object)}
        if not any(re.search(rf"\b{each}\b", "\n".join(docs)) for each in names):
            yield f"{label}: raises {name}"


def _raised(function: FunctionType) -> list[str]:
    """Return the names of the exceptions that a function raises, without those inside of it."""
    if _RAISE not in function.__code__.co_code[::2]:
        return []  # most don't, and their files needn't be parsed
    file = _parsed(function.__code__.co_filename)
    node = file.functions.get(function.__code__.co_firstlineno)
    names = []
    pending = list(getattr(node, "body", ()))
    while pending:
        each = pending.pop()
        if isinstance(each, ast.Raise) and each.exc is not None:
            error = each.exc.func if isinstance(each.exc, ast.Call) else each.exc
            names.append(ast.unparse(error).rpartition(".")[2])
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            pending += ast.iter_child_nodes(each)
    # A name in lower case is a variable: an exception that was caught, or given.
    return sorted({name for name in names if name[:1].isupper()})


class _ParsedFile(NamedTuple):
    """A file's lines, and its definitions and imports.

    Functions go by their first line, a decorator's included, classes by name, and the modules that
    names are imported from by those names.
    """

    lines: list[str]
    functions: dict[int, ast.AST]
    classes: dict[str, ast.ClassDef]
    imports: dict[str, str]


@functools.cache
def _parsed(path: str) -> _ParsedFile:
    """Return a file as it is parsed; nothing for one that a decorator of hypothesis has made."""
    text = Path(path).read_text("utf-8") if Path(path).is_file() else ""
    functions: dict[int, ast.AST] = {}
    classes: dict[str, ast.ClassDef] = {}
    tree = ast.parse(text)
    for name, node in _definitions(tree.body):
        if isinstance(node, ast.ClassDef):
            classes[name] = node
        else:
            functions[min(each.lineno for each in [node, *node.decorator_list])] = node
    imports = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level
        for alias in node.names
    }
    return _ParsedFile(text.splitlines(), functions, classes, imports)


def _definitions(statements: list[Any], prefix: str = "") -> Iterator[tuple[str, _Definition]]:
    """Yield all functions and classes by their `__qualname__`."""
    for each in statements:
        inner = prefix
        if isinstance(each, ast.ClassDef):
            yield prefix + each.name, each
            inner = f"{prefix}{each.name}."
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            yield prefix + each.name, each
            inner = f"{prefix}{each.name}.<locals>."
        for part in "body", "orelse", "finalbody", "handlers", "cases":
            yield from _definitions(getattr(each, part, []), inner)


def _typed_dict(function: FunctionType, name: str) -> object:
    """Return the `TypedDict` that a function's module defines or imports, also for types only."""
    if name in function.__globals__:
        return function.__globals__[name]
    module = _parsed(function.__code__.co_filename).imports[name]
    return getattr(importlib.import_module(module), name)


def _referenced(doc: str, cls: type | None) -> Iterator[str]:
    """Yield the docstrings that a docstring points at: "As `Other.method`", "See `method`"."""
    for name in _REFERENCE.findall(doc):
        value = getattr(cls, name, None) or _public(name)
        if inspect.isroutine(value):
            yield inspect.getdoc(value) or ""


def _public(name: str) -> Any:
    """Return what a code span names, without or with its package: `Server.tool`, else None."""
    for package in PACKAGES:
        name = name.removeprefix(f"{package}.")
    first, *rest = name.split(".")
    value = by_name().get(first)
    for part in rest:
        value = getattr(value, part, None)
    return value


def _missing(label: str, names: Iterable[str], docs: Iterable[str]) -> Iterator[str]:
    described = _described("\n".join(docs))
    lacking = [name for name in names if name not in described]
    if lacking:
        yield f"{label}: {', '.join(lacking)}"


def _described(text: str) -> set[str]:
    """Return the names in code spans and at the beginning of entries."""
    spans = " ".join(_SPAN.findall(text))
    found = set(re.findall(r"(?<![\w.])\w+", spans))
    for entry in _ENTRY.findall(text):
        found.update(name.lstrip("*") for name in entry.split(", "))
    return found
