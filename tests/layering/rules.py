"""The layering of the project as tables, and the functions that check source files against them.

A rule lives here if breaking it breaks no test of behaviour but costs the design later: a clock in
the core, a driver that imports a private name, a comparison of revisions outside their table. Each
rule is a small function that yields complaints: `RULES` reads one parsed file, `PROJECT_RULES` all
files together. `test_imports.py` proves of every rule that it can fail.

The functions read syntax trees only and import nothing of what they read, so a file need not even
be importable. Imports for the type checker count like all others: a type of another layer is a
dependency on that layer.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import chain
from pathlib import PurePosixPath
from typing import Final, TypeVar

Node = TypeVar("Node", bound=ast.AST)
# The fields of a statement with the statements inside of it.
STATEMENTS: Final = ("body", "orelse", "handlers", "finalbody", "cases")

PACKAGES: Final = ("mcp_core", "mcp_trio", "mcp_asyncio_shim")

# The part of the standard library without I/O, clock, randomness or threads. A module that is
# missing here was not needed yet; add it if it is of this kind.
PURE: Final = frozenset(
    """
    __future__ abc ast base64 binascii bisect codecs collections contextlib contextvars copy
    dataclasses
    datetime decimal difflib enum errno fractions functools hashlib heapq hmac html inspect
    ipaddress itertools json keyword math operator re shlex string struct textwrap tomllib types
    typing unicodedata urllib.parse warnings weakref zlib
    """.split()
)

# What each package may import beside itself.
MAY_IMPORT: Final = {
    "mcp_core": PURE | {"msgspec"},
    "mcp_trio": sys.stdlib_module_names - {"asyncio"}
    | {"h11", "h2", "hpack", "mcp_core", "msgspec", "rich", "trio", "wsproto"},
    "mcp_asyncio_shim": sys.stdlib_module_names | {"h11", "mcp_core", "msgspec", "wsproto"},
    "examples": sys.stdlib_module_names
    | {"mcp_asyncio_shim", "mcp_core", "mcp_trio", "msgspec", "trio"},
}

# The packages of the core that others may import. The rest of it is internal.
PUBLIC: Final = frozenset(
    {
        "mcp_core",
        "mcp_core.adapters",
        "mcp_core.auth",
        "mcp_core.contract",
        "mcp_core.drivers",
        "mcp_core.host",
        "mcp_core.http",
        "mcp_core.processes",
        "mcp_core.registry",
        "mcp_core.runtime",
        "mcp_core.runtime.host",
        "mcp_core.runtime.sharing",
        "mcp_core.runtime.tasks",
        "mcp_core.sharing",
        "mcp_core.tasks",
        "mcp_core.trace",
        "mcp_core.types",
        "mcp_core.urls",
    }
)

# Too slow to import, or themselves impure: each belongs to one file, which imports it on first use.
# Other packages may import what `MAY_IMPORT` says.
ON_FIRST_USE: Final = {
    "anyio": "mcp_core/adapters/_redis_client.py",
    "coredis": "mcp_core/adapters/_redis_client.py",
    "joserfc": "mcp_core/auth/_jose.py",
    "jsonschema": "mcp_core/protocol/schema/_json_schema.py",
    "keyring": "mcp_trio/auth/_keyring.py",
    "pydantic": "mcp_core/registry/functions/_pydantic.py",
    "referencing": "mcp_core/protocol/schema/_json_schema.py",
    "ssl": "mcp_core/adapters/_redis_client.py",
    "shtab": "mcp_trio/cli/_completion.py",
    "sqlite3": "mcp_core/adapters/_sqlite_file.py",
    "tomlkit": "mcp_core/host/edit/_toml_edit.py",
    "truststore": "mcp_trio/http_client/_connector.py",
    "yaml": "mcp_core/host/config/_yaml.py",
    # Type checkers know it without its being installed.
    "typing_extensions": "mcp_core/registry/_context.py",
}

# In these files only, so that a user without tests, or without a web framework, does not need it.
# The core's names that are imported on first use come from one place, the subcommands from another.
# What serves a file for either driver has options, imports the file, and shows its traceback.
# Drivers may import h11 anywhere, the core only where it is extended for both.
BY_FILES: Final = {
    "argparse": ("mcp_core/adapters/_recording_options.py", "mcp_core/adapters/_run_options.py"),
    "authlib": ("examples/login_proxy.py",),
    "fastapi": ("examples/fastapi_guard.py",),
    "h11": ("mcp_core/adapters/_http1_reader.py",),
    "httpx2": ("examples/login_proxy.py",),
    "importlib": (
        "mcp_core/_on_first_use.py",
        "mcp_core/adapters/_served_source.py",
        "mcp_trio/cli/_subcommands.py",
    ),
    "joserfc": ("examples/login_proxy.py",),
    "logging": ("mcp_core/adapters/_served_source.py",),
    "pkgutil": ("mcp_core/adapters/_served_source.py",),
    "pytest": ("mcp_trio/testing/oracle.py", "mcp_trio/testing/pytest_plugin.py"),
    "socket": ("mcp_core/adapters/_listening_sockets.py",),
    "starlette": ("examples/fastapi_guard.py", "examples/login_proxy.py"),
    "traceback": ("mcp_core/adapters/_served_source.py",),
    "uvicorn": ("mcp_asyncio_shim/_uvicorn.py",),
}
# An extra: the strategies, who hands them on, and the folder that draws cases of them.
HYPOTHESIS: Final = (
    "mcp_trio/oracle/strategies/*.py",
    "mcp_trio/testing/strategies/__init__.py",
    "mcp_trio/oracle/fuzz/draw/*.py",
)

# The core from the bottom up. A unit is a folder or module of the root, or a folder of `protocol`.
# It imports itself and lower layers. Units of one layer do not import each other, except as
# `SAME_LAYER` notes. So the engine, which is `protocol`, knows none of the wings above it, and no
# wing knows another: the host doesn't know the trace, and neither of them HTTP.
LAYERS: Final = (
    (
        "_errors",
        "_inherited_variables",
        "_keywords",
        "_version",
        "_limits",
        "_nesting",
        "_other_names",
        "_on_first_use",
        "_patterns",
        "_redis_calls",
        "_secret_patterns",
        "_text",
        "protocol",  # its `__init__.py`, which imports nothing
        "types",
    ),
    ("_known_secrets", "_launch_secrets", "urls", "protocol.jsonrpc"),
    ("protocol.revisions",),
    ("protocol.messages",),
    ("protocol.schema", "protocol.subscriptions", "protocol.input_requests"),
    ("sharing", "tasks"),
    ("protocol.connection",),
    ("client", "processes", "http", "auth", "registry", "host", "trace", "contract"),
    ("runtime", "drivers"),
    ("adapters",),
)
LAYER_OF: Final = {name: level for level, names in enumerate(LAYERS) for name in names}
# `mcp_core/__init__.py` exports what an embedder of a `Connection` needs: nothing above that layer.
LAYER_OF_ROOT: Final = LAYER_OF["protocol.connection"]
# `ToolError` is raised by a decoded result. An unknown option may have another name here.
SAME_LAYER: Final = frozenset(
    {("types", "_errors"), ("_text", "_patterns"), ("_keywords", "_other_names")}
)
# A file that imports a higher layer on first use: `Server.add_directory` is the one declaration
# that reads files itself.
UPWARDS_ON_FIRST_USE: Final = {"mcp_core/registry/_server.py": "mcp_core.adapters._directory"}
# A folder that may import a part of another folder of its layer.
PART_OF_SAME_LAYER: Final = {"trace": "mcp_core.http.wire"}  # a trace has what HTTP has on the wire

# The modules of `mcp_trio` from the bottom up, in the same way.
# "" is its `__init__.py`, which hands out the public names on first use.
TRIO_LAYERS: Final = (
    (
        "_deadlines",
        "_files",
        "_h2_protocol",
        "_listeners",
        "_logging",
        "_nursery",
        "_runtime",
        "_simple_http",
        "types",
    ),
    ("_client", "recording", "streams"),
    ("http_client",),
    ("auth",),
    ("_tasks",),
    ("_server",),
    ("_websocket",),
    ("http_server",),
    ("_connect",),
    ("host",),
    ("oracle",),
    ("testing",),
    ("",),
    ("cli",),
    ("__main__", "examples"),
)
TRIO_LAYER_OF: Final = {name: level for level, names in enumerate(TRIO_LAYERS) for name in names}

# Inside these folders: what each part may import of the others. "" is a module of the folder
# itself. `__init__.py` of the folder exports from all parts.
PARTS: Final = {
    "mcp_core.http": {"wire": {"wire"}, "server": {"server", "wire"}, "client": {"client", "wire"}},
    "mcp_core.auth": {"": {""}, "server": {"server", ""}, "client": {"client", ""}},
    "mcp_core.host": {
        "": {"", "config", "edit"},
        "config": {"", "config", "edit"},
        "edit": {"", "edit"},
    },
}

# Modules that call these files, or fulfil a protocol for them. The files do not import them, not
# even for types: they return what they have to say.
HIDDEN_BEHIND_PROTOCOL: Final = {
    "mcp_core.http.client._http_client": (
        "mcp_core/http/client/_operation.py",
        "mcp_core/http/client/_response_queue.py",
        "mcp_core/http/client/_transport.py",
        "mcp_core/http/client/_streamable.py",
        "mcp_core/http/client/_requests.py",
        "mcp_core/http/client/_sse_transport.py",
    ),
    "mcp_core.http.client._streamable": (
        "mcp_core/http/client/_operation.py",
        "mcp_core/http/client/_transport.py",
        "mcp_core/http/client/_requests.py",
        "mcp_core/http/client/_sse_transport.py",
    ),
    "mcp_core.http.client._transport": (
        "mcp_core/http/client/_operation.py",
        "mcp_core/http/client/_requests.py",
    ),
}

# The one folder of the core that does I/O: for what must serve both drivers, such as a database. It
# imports no runtime either, each library on first use, and beside them what is needed for files,
# for locks between threads and between processes, to wait in a thread, to find what runs, and to
# see whether a descriptor takes bytes.
ADAPTERS: Final = "mcp_core/adapters/*"
ADAPTERS_IMPORT: Final = frozenset(
    {
        *("_thread", "errno", "fcntl", "gc", "mimetypes", "os", "pathlib", "select", "shlex"),
        *("stat", "sys", "threading", "time"),
    }
)

# The folders of the core that may have coroutines. They await what a driver hands in.
RUNTIME: Final = "mcp_core/runtime/*"
HAS_COROUTINES: Final = (RUNTIME, ADAPTERS)
RUNTIME_IMPORTS: Final = PURE | {"msgspec", "mcp_core"}
# Methods that make an object awaitable, or an async context manager or iterator.
NO_COROUTINES: Final = frozenset({"__await__", "__aenter__", "__aexit__", "__aiter__", "__anext__"})
# Passes `async with` on, and raises where a user forgot it and wrote `await`.
IS_CONTEXT_MANAGER: Final = ("mcp_core/runtime/_client_context.py",)

COMPARES_VERSIONS: Final = (
    "mcp_core/protocol/revisions/_dialects.py",
    "mcp_core/trace/judge/_revisions.py",  # the judge's own facts
)
# The judge and the fuzzer name a revision by its date, not by a letter of their own.
NAMES_REVISIONS: Final = (
    "mcp_core/trace/*",
    "mcp_trio/oracle/fuzz/*",
    "mcp_trio/oracle/proxy/*",
    "mcp_trio/recording/*",
    "mcp_trio/oracle/replay/*",
)
OTHER_LETTERS: Final = ("mcp_trio/oracle/fuzz/_answers.py",)  # exchanges a character of a text
CATCHES_MSGSPEC: Final = (
    "mcp_core/protocol/jsonrpc/_codec.py",
    "mcp_core/registry/functions/_signature.py",
    "mcp_core/registry/functions/_types.py",
    "mcp_core/auth/_metadata.py",
)
CALLS_SEND_ALL: Final = (
    "mcp_trio/streams/_link.py",
    "mcp_trio/streams/_child_pipes.py",  # to our stderr, which no connection uses
    "mcp_trio/streams/_trace.py",  # is itself a stream: it passes on what a writer sends through it
    "mcp_trio/recording/_stream.py",  # the same
    "mcp_trio/oracle/proxy/_stdio.py",  # passes on what it reads
    "mcp_trio/oracle/proxy/_http_connection.py",  # the same, and one connection at a time
    "mcp_trio/oracle/proxy/_http_exchange.py",
    "mcp_trio/_websocket.py",
    "mcp_trio/_simple_http.py",
    "mcp_trio/cli/run/_reload.py",  # relays whole lines between two pipes
    "mcp_trio/http_server/_connection.py",
    "mcp_trio/http_server/_h11_connection.py",
    "mcp_trio/http_server/_h2_connection.py",
    "mcp_trio/http_client/_h11_connection.py",
    "mcp_trio/http_client/_h2_connection.py",
    "mcp_trio/oracle/fuzz/_http.py",  # writes what no client would
    "mcp_trio/oracle/fuzz/_stdio.py",  # writes what no connection would
    "mcp_trio/oracle/fuzz/client/_lines.py",  # the same
    "mcp_trio/oracle/bench/engine/_direct_stream.py",  # is itself a stream
    "mcp_trio/oracle/bench/engine/_http_load.py",  # prepared bytes, one call at a time
    "mcp_trio/oracle/bench/engine/_stdio_load.py",  # prepared bytes, from one task
    # The peers of a replay, which have no connection: each stream has one task that writes.
    "mcp_trio/oracle/replay/_stream.py",
    "mcp_trio/streams/_replayed.py",
    "mcp_trio/testing/_peer.py",  # the peer, played by a task of a test
    "mcp_trio/testing/hostile/_client_attacks.py",  # the same
    "mcp_trio/testing/hostile/_server.py",  # the same
    "mcp_trio/oracle/bench/engine/_processes.py",  # to a process of the load
)

ACTING_BUILTINS: Final = frozenset({"__import__", "eval", "exec", "input", "open", "print"})
CALENDAR_METHODS: Final = frozenset({"now", "today", "utcnow"})
MSGSPEC_ERRORS: Final = frozenset({"DecodeError", "EncodeError", "MsgspecError", "ValidationError"})
REVISION: Final = re.compile(r"20\d\d-\d\d-\d\d")
VERSION_NAMES: Final = re.compile(
    r"R_20\w*|LATEST|version|(protocol|requested|negotiated)_version|since|until"
)
REVISION_NAMES: Final = re.compile(r"(\w+_)?revisions?|negotiated")
REVISION_LETTERS: Final = re.compile(r"[A-F]{1,6}")
EMPTY_WORDS: Final = frozenset(
    {"Base", "Handler", "Helper", "Helpers", "Manager", "Util", "Utils", "Wrapper"}
)
# Handler: the function of a server that responds to a request, here and in the official SDK.
EXCEPTED_NAMES: Final = frozenset({"HandlerCall"})
# One in each driver, with the same meaning. Every other class name exists once.
DRIVERS: Final = ("mcp_trio", "mcp_asyncio_shim")
CLASS_NAMES: Final = frozenset({"AsgiApp", "Client", "Host", "Link", "_Call"})
NAMED_BY_THE_SPECIFICATION: Final = ("mcp_core/types/*",)


@dataclass(frozen=True)
class Import:
    """One imported name in full (`a.b.c` for `from a.b import c`).

    `at_once` is True if it is imported together with its file.
    """

    line: int
    target: str
    at_once: bool

    def within(self, *names: str) -> bool:
        return any(self.target == name or self.target.startswith(name + ".") for name in names)


@dataclass(frozen=True)
class ProjectFile:
    """A parsed file; `path` is relative to the root of the project, with forward slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def nodes(self, *types: type[Node]) -> Iterator[Node]:
        """Return the nodes of some types. The tree is walked once for all rules."""
        for type in types:
            yield from self._nodes.get(type, ())  # type: ignore[misc]

    @cached_property
    def _nodes(self) -> dict[type[ast.AST], list[ast.AST]]:
        found: dict[type[ast.AST], list[ast.AST]] = defaultdict(list)
        for node in ast.walk(self.tree):
            found[type(node)].append(node)
        return found

    @cached_property
    def classes(self) -> list[tuple[int, str]]:
        """The classes, each as line and name."""
        return [(node.lineno, node.name) for node in self.nodes(ast.ClassDef)]

    def forget_tree(self) -> None:
        """Free the memory for the tree, when the rules about one file have seen it."""
        vars(self).pop("tree", None)
        vars(self).pop("_nodes", None)

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
        # Only statements have statements inside: to look into expressions too takes longer.
        inside = (getattr(parent, name, ()) for name in STATEMENTS)
        for node in chain.from_iterable(inside):
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
ProjectComplaints = Iterator[tuple[str, int, str]]  # path, line and what is wrong there


def imports_are_allowed(file: ProjectFile) -> Complaints:
    """A package imports what its table says. Private names of our packages are another rule."""
    allowed = (*MAY_IMPORT[file.package], file.package)
    for item in file.imports:
        owner = next((path for name, path in ON_FIRST_USE.items() if item.within(name)), None)
        if owner == file.path and not item.at_once:
            continue
        if any(item.within(name) and file.path in paths for name, paths in BY_FILES.items()):
            continue
        if item.within("hypothesis") and file.is_one_of(HYPOTHESIS):
            continue
        if file.is_one_of((ADAPTERS,)) and item.within(*ADAPTERS_IMPORT):
            continue
        if owner == file.path:
            yield item.line, f"imports {item.target} at import time instead of on first use"
        elif not item.within(*allowed):
            yield item.line, f"imports {item.target}, which {file.package} does not know"


def private_names_stay_at_home(file: ProjectFile) -> Complaints:
    """Only a package itself imports its private names; drivers import the public packages."""
    for item in file.imports:
        package, *rest = item.target.split(".")
        if package not in PACKAGES or package == file.package:
            continue
        if any(part.startswith("_") and not part.endswith("__") for part in rest):
            yield item.line, f"imports the private {item.target}"
        elif package == "mcp_core" and not _is_public(item.target):
            yield item.line, f"imports {item.target}, which is in no public package"


def _is_public(name: str) -> bool:
    parent, _, last = name.rpartition(".")
    folders = {unit.split(".")[0] for unit in LAYER_OF}
    return name in PUBLIC or (parent in PUBLIC and (parent != "mcp_core" or last not in folders))


def layers_point_downwards(file: ProjectFile) -> Complaints:
    """In the core and in `mcp_trio`, a unit imports itself and units of lower layers."""
    layers = {"mcp_core": LAYER_OF, "mcp_trio": TRIO_LAYER_OF}.get(file.package)
    if layers is None:
        return
    unit = _unit_of(file.module)
    if unit not in layers and unit:
        yield 1, f"is in {unit}, which has no layer"
    level = layers.get(unit, LAYER_OF_ROOT)
    for item in file.imports:
        if not item.within(file.package):
            continue
        other = _unit_of(item.target)
        if other == unit or (unit, other) in SAME_LAYER:
            continue
        if file.package == "mcp_trio" and other not in layers:
            other = ""  # a public name of the package
        if other not in layers:
            yield item.line, f"imports {item.target}, which has no layer"
        elif layers[other] > level:
            upwards = UPWARDS_ON_FIRST_USE.get(file.path)
            if upwards is None or item.at_once or not item.within(upwards):
                yield item.line, f"imports {item.target} from a higher layer"
        elif unit in PART_OF_SAME_LAYER and item.within(PART_OF_SAME_LAYER[unit]):
            continue
        elif layers[other] == level and (unit or file.package == "mcp_trio"):
            yield item.line, f"imports {item.target}: {unit} and {other} do not know each other"


def _unit_of(name: str) -> str:
    """Return the unit that has a module or name: `protocol.messages`, `http` or `_client`."""
    _, first, second = (*name.split("."), "", "")[:3]
    return f"{first}.{second}" if first == "protocol" and second else first


def parts_stay_apart(file: ProjectFile) -> Complaints:
    """Inside http, auth and host, parts import what they share, and never each other."""
    for folder, allowed in PARTS.items():
        if not file.module.startswith(folder + "."):
            continue
        part = _part_of(file.module, folder)
        for item in file.imports:
            if item.within(folder) and _part_of(item.target, folder) not in allowed[part]:
                yield item.line, f"imports {item.target}, which {file.module} may not know"


def _part_of(name: str, folder: str) -> str:
    first = name.removeprefix(folder).removeprefix(".").split(".")[0]
    return first if first in PARTS[folder] else ""


def protocols_replace_back_edges(file: ProjectFile) -> Complaints:
    """A module knows its owner by a protocol, so that there is no circle of imports or of types."""
    for owner, paths in HIDDEN_BEHIND_PROTOCOL.items():
        if file.path in paths:
            for item in file.imports:
                if item.within(owner):
                    yield item.line, f"imports {item.target} instead of using its protocol"


def the_protocol_has_no_coroutines(file: ProjectFile) -> Complaints:
    """The protocol may return an awaitable that it was handed, and nothing more.

    `HAS_COROUTINES` have them, spelled `async def`: no `types.coroutine`, no `__await__`, and no
    call of a method that `async with` and `async for` call, but for `IS_CONTEXT_MANAGER`.
    """
    if file.package != "mcp_core" or file.is_one_of(IS_CONTEXT_MANAGER):
        return
    has_coroutines = file.is_one_of(HAS_COROUTINES)
    for attribute in file.nodes(ast.Attribute):
        if attribute.attr in NO_COROUTINES or (
            attribute.attr == "coroutine" and ast.unparse(attribute) == "types.coroutine"
        ):
            yield attribute.lineno, f"uses {ast.unparse(attribute)}"
    refused = NO_COROUTINES - {"__aiter__"} if has_coroutines else NO_COROUTINES
    for function in file.nodes(ast.FunctionDef):
        if function.name in refused:
            yield function.lineno, f"defines {function.name}"
    if not has_coroutines:
        for coroutine in file.nodes(ast.AsyncFunctionDef):
            yield coroutine.lineno, f"is a coroutine: async def {coroutine.name}"
        for each in file.nodes(ast.Await):
            yield each.lineno, f"waits: {ast.unparse(each)}"
        for statement in file.nodes(ast.AsyncWith, ast.AsyncFor):
            yield statement.lineno, f"waits: {ast.unparse(statement).splitlines()[0]}"
        for loop in file.nodes(ast.comprehension):
            if loop.is_async:
                yield loop.iter.lineno, "waits: async for"
    for item in file.imports:
        if item.target == "types.coroutine":
            yield item.line, "imports types.coroutine"


def the_runtime_awaits_what_it_is_handed(file: ProjectFile) -> Complaints:
    """The runtime tier imports no runtime, socket, clock or thread, not even on first use."""
    if not file.is_one_of((RUNTIME,)):
        return
    for item in file.imports:
        if not item.within(*RUNTIME_IMPORTS):
            yield item.line, f"imports {item.target}"


def the_core_only_computes(file: ProjectFile) -> Complaints:
    """No builtin that reads, prints or runs, and no reading of the calendar."""
    if file.package != "mcp_core":
        return
    for node in file.nodes(ast.Call):
        function = node.func
        if isinstance(function, ast.Name) and function.id in ACTING_BUILTINS:
            yield node.lineno, f"calls {function.id}()"
        elif isinstance(function, ast.Attribute) and function.attr in CALENDAR_METHODS:
            called = ast.unparse(function)
            if re.search(r"\bdate(time)?\.\w+$", called):
                yield node.lineno, f"reads the clock by {called}()"


def versions_are_compared_in_one_place(file: ProjectFile) -> Complaints:
    """Elsewhere a difference between revisions is a field of the dialect, or a missing row."""
    if file.is_one_of(COMPARES_VERSIONS):
        return
    for node in file.nodes(ast.Compare):
        # `is None` asks whether a version was given, which says nothing about which.
        if not isinstance(node.ops[0], ast.Is | ast.IsNot) and any(
            map(_is_version, [node.left, *node.comparators])
        ):
            yield node.lineno, f"compares versions: {ast.unparse(node)}"
        if any(map(_is_revision_name, [node.left, *node.comparators])) and (
            isinstance(node.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
            or any(map(_is_fixed, [node.left, *node.comparators]))
        ):
            yield node.lineno, f"compares versions: {ast.unparse(node)}"
    for pattern in file.nodes(ast.MatchValue):
        if _is_version(pattern.value):
            yield pattern.lineno, f"compares versions: {ast.unparse(pattern)}"


def _is_revision_name(node: ast.expr) -> bool:
    return REVISION_NAMES.fullmatch(_last_name(node)) is not None


def _is_fixed(node: ast.expr) -> bool:
    """True for a text, or a place in a table, such as `STATEFUL[0]`."""
    if isinstance(node, ast.Subscript):
        return _last_name(node.value).isupper() and isinstance(
            node.slice, ast.Constant | ast.UnaryOp
        )
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value != ""


def revisions_have_no_letters(file: ProjectFile) -> Complaints:
    """A revision is named by its date: letters are a second language, which ends with the last."""
    if not file.is_one_of(NAMES_REVISIONS) or file.is_one_of(OTHER_LETTERS):
        return
    types = {id(each.args[0]) for each in file.nodes(ast.Call) if _is_type_variable(each)}
    for node in file.nodes(ast.Constant):
        is_letters = isinstance(node.value, str) and REVISION_LETTERS.fullmatch(node.value)
        if is_letters and id(node) not in types:
            yield node.lineno, f"has letters for revisions: {node.value!r}"


def _is_type_variable(node: ast.Call) -> bool:
    return _last_name(node.func) == "TypeVar"


def _is_version(node: ast.expr) -> bool:
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(_is_version(element) for element in node.elts)
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and REVISION.fullmatch(node.value) is not None
    return VERSION_NAMES.fullmatch(_last_name(node)) is not None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def msgspec_errors_are_caught_in_one_place(file: ProjectFile) -> Complaints:
    """Bad input raises four types, which only the few files that decode need to know."""
    if file.is_one_of(CATCHES_MSGSPEC):
        return
    for item in file.imports:
        if item.within("msgspec") and item.target.split(".")[-1] in MSGSPEC_ERRORS:
            yield item.line, f"imports {item.target}"
    for node in file.nodes(ast.Attribute):
        if node.attr in MSGSPEC_ERRORS:
            named = ast.unparse(node)
            if named.startswith("msgspec."):
                yield node.lineno, f"names {named}"


def writers_are_few(file: ProjectFile) -> Complaints:
    """A stream has one writer; all other code hands bytes to it."""
    if file.package != "mcp_trio" or file.is_one_of(CALLS_SEND_ALL):
        return
    for node in file.nodes(ast.Attribute):
        if node.attr == "send_all":
            yield node.lineno, f"uses {ast.unparse(node)}"


def class_names_say_something(file: ProjectFile) -> Complaints:
    """A name has no word such as Manager in place of one that explains."""
    if file.is_one_of(NAMED_BY_THE_SPECIFICATION):
        return
    for line, name in file.classes:
        if name not in EXCEPTED_NAMES:
            words = set(re.findall(r"[A-Z][a-z0-9]*", name)) & EMPTY_WORDS
            yield from ((line, f"class {name}: {word} says nothing") for word in words)


def class_names_are_unique(files: Sequence[ProjectFile]) -> ProjectComplaints:
    """A class name has one meaning, private names too; only the listed pairs exist twice."""
    seen: dict[tuple[str, str], str] = {}
    for file in files:
        if file.package not in PACKAGES:
            continue
        for line, name in file.classes:
            in_pair = name in CLASS_NAMES and file.package in DRIVERS
            key = (name, file.package if in_pair else "")
            if key in seen:
                yield file.path, line, f"class {name} is also in {seen[key]}"
            elif name in CLASS_NAMES and not in_pair:
                yield file.path, line, f"class {name} is a name of the drivers"
            seen.setdefault(key, file.path)


RULES: Final[tuple[Callable[[ProjectFile], Complaints], ...]] = (
    imports_are_allowed,
    private_names_stay_at_home,
    layers_point_downwards,
    parts_stay_apart,
    protocols_replace_back_edges,
    the_protocol_has_no_coroutines,
    the_runtime_awaits_what_it_is_handed,
    the_core_only_computes,
    versions_are_compared_in_one_place,
    revisions_have_no_letters,
    msgspec_errors_are_caught_in_one_place,
    writers_are_few,
    class_names_say_something,
)

PROJECT_RULES: Final[tuple[Callable[[Sequence[ProjectFile]], ProjectComplaints], ...]] = (
    class_names_are_unique,
)


def complaints(file: ProjectFile) -> list[str]:
    """Return all complaints about a file, as `path:line: complaint`."""
    return [f"{file.path}:{line}: {text}" for rule in RULES for line, text in rule(file)]


def project_complaints(files: Sequence[ProjectFile]) -> list[str]:
    """Return all complaints about the files together, as `path:line: complaint`."""
    return [f"{path}:{line}: {text}" for rule in PROJECT_RULES for path, line, text in rule(files)]
