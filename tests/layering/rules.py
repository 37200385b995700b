"""The layering of the project as tables, and the reader that holds a source file against them.

A rule lives here if breaking it would not break a test of behaviour today but would cost the design tomorrow:
a clock in the core, a driver that reaches for a private name, a comparison of revisions outside their table.
Each rule is a small function from a parsed file to complaints, `RULES` names them all, and `test_imports.py`
proves of every one that it can fail.

The reader knows syntax trees only. It imports nothing of what it reads, so that a file need not even be
importable. Imports for the type checker count like any other: who names a type of another layer depends on
that layer.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import PurePosixPath
from typing import Final

PACKAGES: Final = ("mcp_core", "mcp_trio", "mcp_asyncio_shim")

# The part of the standard library that neither acts nor asks: no IO, no clock, no chance, no threads. A
# module that is missing here was not needed yet; add it if it is of this kind.
PURE: Final = frozenset(
    """
    __future__ abc base64 binascii bisect codecs collections contextlib copy dataclasses datetime decimal enum
    fractions functools hashlib heapq hmac inspect ipaddress itertools keyword math operator re string struct
    textwrap types typing unicodedata urllib.parse warnings weakref zlib
    """.split()
)

# What each package may import beside itself. The core's whole surface is `mcp_core` without the private
# modules.
MAY_IMPORT: Final = {
    "mcp_core": PURE | {"msgspec"},
    "mcp_trio": sys.stdlib_module_names - {"asyncio"}
    | {"h11", "h2", "hpack", "mcp_core", "msgspec", "rich", "trio", "wsproto"},
    "mcp_asyncio_shim": sys.stdlib_module_names | {"h11", "mcp_core", "msgspec", "wsproto"},
    "examples": sys.stdlib_module_names
    | {"mcp_asyncio_shim", "mcp_core", "mcp_trio", "msgspec", "trio"},
}

# Too slow to import, or themselves impure: each belongs to one file, which imports it on first use.
ON_FIRST_USE: Final = {
    "joserfc": "mcp_core/auth/_jose.py",
    "jsonschema": "mcp_core/schema/_json_schema.py",
    "referencing": "mcp_core/schema/_json_schema.py",
    "truststore": "mcp_trio/http_client/_connector.py",
    "typing_extensions": "mcp_core/registry/_context.py",  # type checkers know it without its being installed
}

# For tests, and in one file only, so that nobody needs it who does not ask for that file.
BY_ONE_FILE: Final = {"pytest": "mcp_trio/testing/pytest_plugin.py"}

# The core from the bottom up; a module imports its own layer and those below. Modules that are not named may
# be imported by all and themselves stay below `http`, whose layer has members that do not know each other.
LAYERS: Final = (
    ("types",),
    ("urls",),
    ("_methods",),
    ("_dialects",),
    ("_state", "_capabilities", "_subscriptions", "_questions", "_mrtr", "_tasks"),
    ("_connection",),
    ("http", "auth", "registry"),
    ("runtime",),
)
LAYER_OF: Final = {name: level for level, names in enumerate(LAYERS) for name in names}
# Folders that stand alone, and the modules of the core that they may import all the same.
IMPORTS_OF_CORE: Final = {"urls": frozenset({"_errors", "_limits"})}

# Modules that fulfil a protocol for these files, which therefore do not import them, not even for types.
HIDDEN_BEHIND_PROTOCOL: Final = {
    "mcp_core.http.client._http_client": (
        "mcp_core/http/client/_transport.py",
        "mcp_core/http/client/_streamable.py",
        "mcp_core/http/client/_requests.py",
        "mcp_core/http/client/_sse_transport.py",
    ),
    "mcp_core.http.client._streamable": (
        "mcp_core/http/client/_transport.py",
        "mcp_core/http/client/_requests.py",
    ),
}

APART: Final = LAYER_OF["http"]  # the layer whose members do not import each other

# The one folder of the core that may have coroutines. It awaits what a driver hands in.
HAS_COROUTINES: Final = "mcp_core/runtime/*"
RUNTIME_IMPORTS: Final = PURE | {"msgspec", "mcp_core"}
# Methods that make an object awaitable, or an async context manager or iterator.
NO_COROUTINES: Final = frozenset({"__await__", "__aenter__", "__aexit__", "__aiter__", "__anext__"})

COMPARES_VERSIONS: Final = ("mcp_core/revisions/_dialects.py",)
CATCHES_MSGSPEC: Final = (
    "mcp_core/jsonrpc/_codec.py",
    "mcp_core/registry/functions/_signature.py",
    "mcp_core/auth/_metadata.py",
)
CALLS_SEND_ALL: Final = (
    "mcp_trio/streams/_link.py",
    "mcp_trio/streams/_trace.py",  # is itself a stream: it hands on what a writer sends through it
    "mcp_trio/_websocket.py",
    "mcp_trio/_h11_*.py",
    "mcp_trio/http_server/_connection.py",
    "mcp_trio/_h2_*.py",
    "mcp_trio/testing/_peer.py",  # the far end, played by a task of a test
)

ACTING_BUILTINS: Final = frozenset({"__import__", "eval", "exec", "input", "open", "print"})
MSGSPEC_ERRORS: Final = frozenset({"DecodeError", "EncodeError", "MsgspecError", "ValidationError"})
REVISION: Final = re.compile(r"20\d\d-\d\d-\d\d")
VERSION_NAMES: Final = re.compile(
    r"R_20\w*|LATEST|version|(protocol|requested|negotiated)_version|since|until"
)
EMPTY_WORDS: Final = frozenset(
    {"Base", "Handler", "Helper", "Helpers", "Manager", "Util", "Utils", "Wrapper"}
)
# Handler: what a server's function that responds to a request is called, here and in the official SDK.
EXCEPTED_NAMES: Final = frozenset({"HandlerCall"})
MAX_LINES: Final = 850
NAMED_BY_THE_SPECIFICATION: Final = ("mcp_core/types/*",)


@dataclass(frozen=True)
class Import:
    """One imported name in full (`a.b.c` for `from a.b import c`); `at_once`: when its file is imported."""

    line: int
    target: str
    at_once: bool

    def within(self, *names: str) -> bool:
        return any(self.target == name or self.target.startswith(name + ".") for name in names)


@dataclass(frozen=True)
class SourceFile:
    """A parsed file; `path` is relative to the root of the project, with forward slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def package(self) -> str:
        return self.path.split("/")[0]

    @property
    def module(self) -> str:
        """The dotted name; a package's `__init__.py` is the package."""
        return ".".join(PurePosixPath(self.path).with_suffix("").parts).removesuffix(".__init__")

    @cached_property
    def imports(self) -> list[Import]:
        return list(self._imports(self.tree, at_once=True))

    def _imports(self, parent: ast.AST, *, at_once: bool) -> Iterator[Import]:
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.Import):
                yield from (Import(node.lineno, alias.name, at_once) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                yield from (
                    Import(node.lineno, f"{origin}.{alias.name}", at_once) for alias in node.names
                )
            else:
                later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
                    isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
                )
                yield from self._imports(node, at_once=at_once and not later)

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        here = self.module.split(".")
        if not self.path.endswith("/__init__.py"):
            here.pop()
        here = here[: len(here) - node.level + 1]
        return ".".join([*here, node.module] if node.module else here)

    def is_one_of(self, patterns: tuple[str, ...]) -> bool:
        return any(fnmatchcase(self.path, pattern) for pattern in patterns)


Complaints = Iterator[tuple[int, str]]  # line and what is wrong there


def imports_are_allowed(file: SourceFile) -> Complaints:
    """A package imports what its table says (a private name of another package of ours is another rule)."""
    allowed = (*MAY_IMPORT[file.package], file.package)
    for item in file.imports:
        owner = next((path for name, path in ON_FIRST_USE.items() if item.within(name)), None)
        if owner == file.path and not item.at_once:
            continue
        if any(item.within(name) and path == file.path for name, path in BY_ONE_FILE.items()):
            continue
        if owner == file.path:
            yield item.line, f"imports {item.target} at import time instead of on first use"
        elif owner or not item.within(*allowed):
            yield item.line, f"imports {item.target}, which {file.package} does not know"


def private_names_stay_at_home(file: SourceFile) -> Complaints:
    """What begins with an underscore in one of our packages is imported only inside that package."""
    for item in file.imports:
        package, *rest = item.target.split(".")
        private = any(part.startswith("_") and not part.endswith("__") for part in rest)
        if package in PACKAGES and package != file.package and private:
            yield item.line, f"imports the private {item.target}"


def layers_point_downwards(file: SourceFile) -> Complaints:
    """Inside the core a module imports its own layer and lower ones; http, auth and registry stay apart."""
    if file.package != "mcp_core":
        return
    unit = (*file.module.split("."), "")[1]
    level = LAYER_OF.get(unit, APART - 1)
    for item in file.imports:
        if not item.within("mcp_core"):
            continue
        other = (*item.target.split("."), "")[1]
        if unit in IMPORTS_OF_CORE and other not in (unit, *IMPORTS_OF_CORE[unit]):
            yield item.line, f"imports {item.target}, which mcp_core.{unit} does not need"
        elif LAYER_OF.get(other, -1) > level:
            yield item.line, f"imports {item.target} from a higher layer"
        elif level == APART == LAYER_OF.get(other) and unit != other:
            yield (
                item.line,
                f"imports {item.target}: http, auth and registry do not know each other",
            )


def protocols_replace_back_edges(file: SourceFile) -> Complaints:
    """A module knows its owner by a protocol, so that there is no circle of imports or of types."""
    for owner, paths in HIDDEN_BEHIND_PROTOCOL.items():
        if file.path in paths:
            for item in file.imports:
                if item.within(owner):
                    yield item.line, f"imports {item.target} instead of using its protocol"


def the_protocol_has_no_coroutines(file: SourceFile) -> Complaints:
    """The protocol may return an awaitable that it was handed, and nothing more.

    `mcp_core/runtime` has coroutines, spelled `async def`: no `types.coroutine`, no `__await__`, and no
    call of a method that `async with` and `async for` call.
    """
    if file.package != "mcp_core":
        return
    in_runtime = file.is_one_of((HAS_COROUTINES,))
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute) and (
            node.attr in NO_COROUTINES or ast.unparse(node) == "types.coroutine"
        ):
            yield node.lineno, f"uses {ast.unparse(node)}"
        elif isinstance(node, ast.FunctionDef) and node.name in NO_COROUTINES - {"__aiter__"}:
            yield node.lineno, f"defines {node.name}"
        elif in_runtime:
            continue
        elif isinstance(node, ast.AsyncFunctionDef):
            yield node.lineno, f"is a coroutine: async def {node.name}"
        elif isinstance(node, ast.Await | ast.AsyncWith | ast.AsyncFor):
            yield node.lineno, f"waits: {ast.unparse(node).splitlines()[0]}"
        elif isinstance(node, ast.comprehension) and node.is_async:
            yield node.iter.lineno, "waits: async for"
        elif isinstance(node, ast.FunctionDef) and node.name == "__aiter__":
            yield node.lineno, f"defines {node.name}"
    for item in file.imports:
        if item.target == "types.coroutine":
            yield item.line, "imports types.coroutine"


def the_runtime_awaits_what_it_is_handed(file: SourceFile) -> Complaints:
    """The runtime tier imports no runtime, no socket, no clock and no thread, not even on first use."""
    if not file.is_one_of((HAS_COROUTINES,)):
        return
    for item in file.imports:
        if not item.within(*RUNTIME_IMPORTS):
            yield item.line, f"imports {item.target}"


def the_core_only_computes(file: SourceFile) -> Complaints:
    """No builtin that reads, prints or runs, and no reading of the calendar."""
    if file.package != "mcp_core":
        return
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        if called in ACTING_BUILTINS:
            yield node.lineno, f"calls {called}()"
        elif re.fullmatch(r"(.*\.)?(datetime|date)\.(now|utcnow|today)", called):
            yield node.lineno, f"reads the clock by {called}()"


def versions_are_compared_in_one_place(file: SourceFile) -> Complaints:
    """Everywhere else a difference between revisions is a field of the dialect, or a missing row."""
    if file.is_one_of(COMPARES_VERSIONS):
        return
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Compare):
            # `is None` asks whether a version was given, which says nothing about which.
            sides = (
                [node.left, *node.comparators]
                if not isinstance(node.ops[0], ast.Is | ast.IsNot)
                else []
            )
        elif isinstance(node, ast.MatchValue):
            sides = [node.value]
        else:
            continue
        if any(_is_version(side) for side in sides):
            yield node.lineno, f"compares versions: {ast.unparse(node)}"


def _is_version(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_is_version(element) for element in node.elts)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and REVISION.fullmatch(node.value) is not None
    name = (
        node.attr
        if isinstance(node, ast.Attribute)
        else node.id
        if isinstance(node, ast.Name)
        else ""
    )
    return VERSION_NAMES.fullmatch(name) is not None


def msgspec_errors_are_caught_in_one_place(file: SourceFile) -> Complaints:
    """Bad input raises four types; whoever needs to know them asks the few files that decode."""
    if file.is_one_of(CATCHES_MSGSPEC):
        return
    for item in file.imports:
        if item.within("msgspec") and item.target.split(".")[-1] in MSGSPEC_ERRORS:
            yield item.line, f"imports {item.target}"
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute) and node.attr in MSGSPEC_ERRORS:
            named = ast.unparse(node)
            if named.startswith("msgspec."):
                yield node.lineno, f"names {named}"


def writers_are_few(file: SourceFile) -> Complaints:
    """A stream has one writer; whoever else wants to send hands bytes to it."""
    if file.package != "mcp_trio" or file.is_one_of(CALLS_SEND_ALL):
        return
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Attribute) and node.attr == "send_all":
            yield node.lineno, f"uses {ast.unparse(node)}"


def class_names_say_something(file: SourceFile) -> Complaints:
    """A Manager manages, a Handler handles: the word takes the place of the one that would explain."""
    if file.is_one_of(NAMED_BY_THE_SPECIFICATION):
        return
    for node in ast.walk(file.tree):
        if isinstance(node, ast.ClassDef) and node.name not in EXCEPTED_NAMES:
            words = set(re.findall(r"[A-Z][a-z0-9]*", node.name)) & EMPTY_WORDS
            yield from ((node.lineno, f"class {node.name}: {word} says nothing") for word in words)


def files_are_short(file: SourceFile) -> Complaints:
    """More than one subject hides in a long file. Types are a list, as long as the specification's."""
    lines = file.text.count("\n")
    if lines > MAX_LINES and not file.is_one_of(NAMED_BY_THE_SPECIFICATION):
        yield lines, f"has {lines} lines, more than {MAX_LINES}"


RULES: Final[tuple[Callable[[SourceFile], Complaints], ...]] = (
    imports_are_allowed,
    private_names_stay_at_home,
    layers_point_downwards,
    protocols_replace_back_edges,
    the_protocol_has_no_coroutines,
    the_runtime_awaits_what_it_is_handed,
    the_core_only_computes,
    versions_are_compared_in_one_place,
    msgspec_errors_are_caught_in_one_place,
    writers_are_few,
    class_names_say_something,
    files_are_short,
)


def complaints(file: SourceFile) -> list[str]:
    """Everything the rules have against a file, as `path:line: complaint`."""
    return [f"{file.path}:{line}: {text}" for rule in RULES for line, text in rule(file)]
