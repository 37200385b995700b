"""Imports, and what else keeps the layers apart: every file of the project against every rule.

The second half proves that the rules can fail. For each there is a source that it must refuse and
one, as similar as possible, that it must let pass.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.layering.rules import (
    LAYER_OF,
    MAY_IMPORT,
    PACKAGES,
    PROJECT_RULES,
    PUBLIC,
    RULES,
    TRIO_LAYER_OF,
    ProjectFile,
    class_names_are_unique,
    complaints,
    project_complaints,
)

if TYPE_CHECKING:
    from tests.layering.sources import Findings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_files_keep_the_rules(package: str, sources: list[Findings]) -> None:
    files = [each for each in sources if each.folder == package]
    assert files, f"{package} has no files"
    found = [complaint for each in files for complaint in each.complaints]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("folder", ["mcp_core/trace", "mcp_trio/oracle"])
def test_judge_and_fuzzer_use_no_generous_reader(folder: str) -> None:
    """They would miss the faults that a client reads in spite of: they read JSON themselves."""
    generous = ("protocol.messages", "_mending", "read_leniently", "AbstractClient")
    files = list((ROOT / folder).rglob("*.py"))
    assert files
    found = [(path, name) for path in files for name in generous if name in path.read_text()]
    assert found == []


def test_project_keeps_the_rules(sources: list[Findings]) -> None:
    files = [each.file for each in sources if each.folder in MAY_IMPORT]
    assert any(file.classes for file in files)
    found = project_complaints(files)
    assert not found, "\n" + "\n".join(found)


def test_every_folder_of_the_core_has_a_layer() -> None:
    names = {path.stem for path in (ROOT / "mcp_core").glob("*.py")} - {"__init__"}
    names |= {path.parent.name for path in (ROOT / "mcp_core").glob("*/__init__.py")}
    engine = (ROOT / "mcp_core" / "protocol").glob("*/__init__.py")
    assert names | {f"protocol.{path.parent.name}" for path in engine} == set(LAYER_OF)


def test_every_module_of_mcp_trio_has_a_layer() -> None:
    names = {path.stem for path in (ROOT / "mcp_trio").glob("*.py")} - {"__init__"}
    names |= {path.parent.name for path in (ROOT / "mcp_trio").glob("*/__init__.py")}
    assert names | {""} == set(TRIO_LAYER_OF)


def test_public_packages_exist() -> None:
    for name in PUBLIC:
        assert (ROOT / name.replace(".", "/") / "__init__.py").is_file(), name


def test_every_package_is_read() -> None:
    assert set(MAY_IMPORT) >= set(PACKAGES)


# rule, path, source, what the complaint says
REFUSED = [
    ("imports_are_allowed", "mcp_core/_x.py", "import socket", "imports socket"),
    ("imports_are_allowed", "mcp_core/_x.py", "import os.path", "imports os.path"),
    (
        "imports_are_allowed",
        "mcp_core/_x.py",
        "from time import monotonic",
        "imports time.monotonic",
    ),
    (
        "imports_are_allowed",
        "mcp_core/_x.py",
        "from urllib.request import urlopen",
        "urllib.request.urlopen",
    ),
    ("imports_are_allowed", "mcp_core/_x.py", "def f():\n    import random", ":2: imports random"),
    ("imports_are_allowed", "mcp_core/_x.py", "if TYPE_CHECKING:\n    import trio", "imports trio"),
    (
        "imports_are_allowed",
        "mcp_core/_x.py",
        "from mcp_trio import Client",
        "imports mcp_trio.Client",
    ),
    ("imports_are_allowed", "mcp_core/http/_x.py", "import h11", "imports h11"),
    (
        "imports_are_allowed",
        "mcp_core/registry/_x.py",
        "def f(): import jsonschema",
        "imports jsonschema",
    ),
    (
        "imports_are_allowed",
        "mcp_core/protocol/schema/_json_schema.py",
        "import jsonschema",
        "instead of on first use",
    ),
    (
        "imports_are_allowed",
        "mcp_core/protocol/schema/_json_schema.py",
        "class A:\n    import referencing",
        "on first use",
    ),
    ("imports_are_allowed", "mcp_trio/_x.py", "import asyncio", "imports asyncio"),
    ("imports_are_allowed", "mcp_trio/testing/_x.py", "import pytest", "imports pytest"),
    (
        "imports_are_allowed",
        "mcp_trio/oracle/fuzz/_x.py",
        "import hypothesis",
        "imports hypothesis",
    ),
    (
        "imports_are_allowed",
        "mcp_trio/_x.py",
        "import mcp_asyncio_shim",
        "imports mcp_asyncio_shim",
    ),
    ("imports_are_allowed", "mcp_trio/_x.py", "import jsonschema", "imports jsonschema"),
    ("imports_are_allowed", "mcp_asyncio_shim/_x.py", "import trio", "imports trio"),
    (
        "imports_are_allowed",
        "mcp_asyncio_shim/_x.py",
        "from mcp_trio import Client",
        "imports mcp_trio.Client",
    ),
    (
        "imports_are_allowed",
        "mcp_core/_x.py",
        "from mcp_coreutils import x",
        "imports mcp_coreutils.x",
    ),
    ("imports_are_allowed", "mcp_core/adapters/_x.py", "import trio", "imports trio"),
    ("imports_are_allowed", "mcp_core/adapters/_x.py", "import asyncio", "imports asyncio"),
    ("imports_are_allowed", "mcp_core/adapters/_x.py", "import socket", "imports socket"),
    ("imports_are_allowed", "mcp_core/runtime/_x.py", "import threading", "imports threading"),
    (
        "imports_are_allowed",
        "mcp_core/adapters/_sqlite_file.py",
        "import sqlite3",
        "instead of on first use",
    ),
    (
        "imports_are_allowed",
        "mcp_core/adapters/_x.py",
        "def f(): import sqlite3",
        "imports sqlite3",
    ),
    (
        "private_names_stay_at_home",
        "mcp_trio/_x.py",
        "import mcp_core.protocol.jsonrpc._codec",
        "private mcp_core.protocol.jsonrpc._codec",
    ),
    (
        "private_names_stay_at_home",
        "mcp_trio/_x.py",
        "from mcp_core.protocol.jsonrpc._codec import decode",
        "_codec.decode",
    ),
    (
        "private_names_stay_at_home",
        "mcp_trio/_x.py",
        "from mcp_core.protocol.jsonrpc import _codec",
        "jsonrpc._codec",
    ),
    (
        "private_names_stay_at_home",
        "mcp_trio/_x.py",
        "from mcp_core.http.wire._sse import SseDecoder",
        "wire._sse",
    ),
    (
        "private_names_stay_at_home",
        "mcp_asyncio_shim/_x.py",
        "from mcp_core import protocol",
        "imports mcp_core.protocol, which is in no public package",
    ),
    (
        "private_names_stay_at_home",
        "mcp_trio/_x.py",
        "from mcp_core.http.client import HttpClient",
        "no public package",
    ),
    (
        "private_names_stay_at_home",
        "mcp_trio/_x.py",
        "from mcp_core.adapters._sqlite import SqliteTaskStore",
        "private mcp_core.adapters._sqlite",
    ),
    (
        "private_names_stay_at_home",
        "examples/x.py",
        "from mcp_trio.streams._link import Link",
        "mcp_trio.streams._link",
    ),
    (
        "layers_point_downwards",
        "mcp_core/types/_x.py",
        "from mcp_core.protocol.revisions._methods import METHODS",
        "imports mcp_core.protocol.revisions._methods.METHODS from a higher",
    ),
    (
        "layers_point_downwards",
        "mcp_core/types/_x.py",
        "from .._limits import Limits",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/types/_x.py",
        "from mcp_core.urls import Url",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/trace/_x.py",
        "from ..http.client import _pool",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/_errors.py",
        "from .types import ErrorData",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/_limits.py",
        "if TYPE_CHECKING:\n    from mcp_core.protocol.jsonrpc._body import ParsedBody",
        ":2: imports",
    ),
    ("layers_point_downwards", "mcp_core/urls/_x.py", "from ..auth import Grant", "a higher layer"),
    (
        "layers_point_downwards",
        "mcp_core/urls/_x.py",
        "from mcp_core.protocol.jsonrpc._codec import decode",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/jsonrpc/_x.py",
        "from mcp_core.urls import Url",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/jsonrpc/_x.py",
        "from mcp_core.protocol.revisions._config import Config",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/revisions/_config.py",
        "import mcp_core.registry",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/revisions/_x.py",
        "from mcp_core.protocol.messages._outbox import Outbox",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/messages/_x.py",
        "from mcp_core.protocol.schema._json_schema import JsonSchema",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/schema/_x.py",
        "from mcp_core.protocol.subscriptions import _server",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/subscriptions/_x.py",
        "from mcp_core.protocol.connection import _connection",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/connection/_connection.py",
        "from mcp_core.http import Endpoint",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/connection/_x.py",
        "from mcp_core.client._calls import PendingCall",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/client/_x.py",
        "from ..http.wire._messages import Head",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/http/_x.py",
        "from ..registry import Server",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/http/__init__.py",
        "from ..auth import Grant",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/auth/_x.py",
        "from mcp_core.http import Head",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/registry/entries/_x.py",
        "from ...client import _calls",
        "do not know each other",
    ),
    (
        "layers_point_downwards",
        "mcp_core/http/_x.py",
        "from mcp_core.runtime import Job",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/registry/_x.py",
        "from mcp_core.runtime import Job",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/__init__.py",
        "from .registry import Server",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/__init__.py",
        "from .runtime import Job",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/__init__.py",
        "from .adapters import SqliteTaskStore",
        "a higher layer",
    ),
    (
        "layers_point_downwards",
        "mcp_core/runtime/_x.py",
        "def f():\n    from mcp_core.adapters import SqliteTaskStore",
        "a higher layer",
    ),
    *[
        (
            "layers_point_downwards",
            f"mcp_core/{folder}/_x.py",
            f"from mcp_core.{wing} import X",
            text,
        )
        for folder, wing, text in [
            ("protocol/connection", "host", "a higher layer"),
            ("protocol/messages", "trace", "a higher layer"),
            ("protocol/jsonrpc", "http", "a higher layer"),
            ("host", "trace", "host and trace do not know each other"),
            ("trace", "host", "trace and host do not know each other"),
            ("registry", "trace", "registry and trace do not know each other"),
            ("client", "processes", "client and processes do not know each other"),
            ("processes", "drivers", "a higher layer"),
            ("drivers", "runtime", "drivers and runtime do not know each other"),
        ]
    ],
    *[
        ("layers_point_downwards", f"mcp_trio/{path}", f"from mcp_trio.{module} import X", text)
        for path, module, text in [
            ("_files.py", "auth._storage", "a higher layer"),
            ("_client.py", "streams._link", "_client and streams do not know each other"),
            ("streams/_x.py", "recording._open", "streams and recording do not know each other"),
            ("http_client/_x.py", "auth._authorization", "a higher layer"),
            ("auth/_x.py", "http_server._serve", "a higher layer"),
            ("_server.py", "http_server._serve", "a higher layer"),
            ("_websocket.py", "http_server._driver", "a higher layer"),
            ("http_server/_x.py", "host", "a higher layer"),
            ("host/_x.py", "oracle.proxy._http", "a higher layer"),
            ("oracle/fuzz/_x.py", "testing.strategies", "a higher layer"),
            ("testing/_x.py", "cli._parser", "a higher layer"),
            ("host/_x.py", "x", "a higher layer"),
            ("_x.py", "_client", "is in _x, which has no layer"),
        ]
    ],
    ("layers_point_downwards", "mcp_core/_x.py", "x = 1", "is in _x, which has no layer"),
    (
        "layers_point_downwards",
        "mcp_core/http/_x.py",
        "from mcp_core.later import x",
        "which has no layer",
    ),
    (
        "parts_stay_apart",
        "mcp_core/http/wire/_x.py",
        "from ..server._endpoint import Endpoint",
        "imports mcp_core.http.server._endpoint.Endpoint",
    ),
    (
        "parts_stay_apart",
        "mcp_core/http/wire/_x.py",
        "from ..client._pool import Pool",
        "may not know",
    ),
    (
        "parts_stay_apart",
        "mcp_core/http/wire/_x.py",
        "from mcp_core.http import Head",
        "may not know",
    ),
    (
        "parts_stay_apart",
        "mcp_core/http/server/_x.py",
        "from ..client import _pool",
        "may not know",
    ),
    (
        "parts_stay_apart",
        "mcp_core/http/client/_x.py",
        "if TYPE_CHECKING:\n    from ..server._stream import EventStream",
        ":2: imports",
    ),
    (
        "parts_stay_apart",
        "mcp_core/auth/_steps.py",
        "from .client._tokens import Tokens",
        "may not know",
    ),
    (
        "parts_stay_apart",
        "mcp_core/auth/_steps.py",
        "from .server._jwt import JwtVerifier",
        "may not know",
    ),
    (
        "parts_stay_apart",
        "mcp_core/auth/client/_x.py",
        "from ..server._jwt import JwtVerifier",
        "may not know",
    ),
    (
        "parts_stay_apart",
        "mcp_core/auth/server/_x.py",
        "from mcp_core.auth.client import _tokens",
        "may not know",
    ),
    (
        "protocols_replace_back_edges",
        "mcp_core/http/client/_transport.py",
        "if TYPE_CHECKING:\n    from ._http_client import HttpClient",
        ":2: imports mcp_core.http.client._http_client.HttpClient",
    ),
    (
        "protocols_replace_back_edges",
        "mcp_core/http/client/_requests.py",
        "from ._streamable import StreamableHttpTransport",
        "instead of using its protocol",
    ),
    (
        "protocols_replace_back_edges",
        "mcp_core/http/client/_requests.py",
        "if TYPE_CHECKING:\n    from ._transport import ClientState",
        "instead of using its protocol",
    ),
    ("the_protocol_has_no_coroutines", "mcp_core/_x.py", "async def f(): ...", "async def f"),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/http/_x.py",
        "async def f():\n    await g()",
        ":2: waits: await g()",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/_x.py",
        "async def f():\n    async with g(): ...",
        ":2: waits",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/_x.py",
        "async def f():\n    async for x in g(): ...",
        ":2: waits",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/_x.py",
        "async def f():\n    [x async for x in g]",
        ":2: waits",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/_x.py",
        "class A:\n    def __await__(self): ...",
        "__await__",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/_x.py",
        "class A:\n    def __aenter__(self): ...",
        "__aenter__",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/_x.py",
        "class A:\n    def __anext__(self): ...",
        "__anext__",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/_x.py",
        "class A:\n    def __aiter__(self): ...",
        "__aiter__",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/_x.py",
        "@types.coroutine\ndef f(): yield",
        "types.coroutine",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/_x.py",
        "from types import coroutine",
        "types.coroutine",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/runtime/_x.py",
        "def f():\n    yield from g().__await__()",
        "uses g().__await__",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/runtime/_x.py",
        "async def f():\n    await g().__aenter__()",
        "uses g().__aenter__",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/runtime/_x.py",
        "class A:\n    def __await__(self): yield",
        "defines __await__",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/adapters/_x.py",
        "class A:\n    def __await__(self): yield",
        "defines __await__",
    ),
    ("the_core_only_computes", "mcp_core/adapters/_x.py", "open('x')", "calls open()"),
    (
        "the_runtime_awaits_what_it_is_handed",
        "mcp_core/runtime/_x.py",
        "import asyncio",
        "imports asyncio",
    ),
    (
        "the_runtime_awaits_what_it_is_handed",
        "mcp_core/runtime/_x.py",
        "def f(): import trio",
        "imports trio",
    ),
    (
        "the_runtime_awaits_what_it_is_handed",
        "mcp_core/runtime/_x.py",
        "from time import time",
        "time.time",
    ),
    (
        "the_runtime_awaits_what_it_is_handed",
        "mcp_core/runtime/_x.py",
        "def f(): import jsonschema",
        "imports jsonschema",
    ),
    ("the_core_only_computes", "mcp_core/_x.py", "text = open('x').read()", "calls open()"),
    (
        "the_core_only_computes",
        "mcp_core/_x.py",
        "random = __import__('random')",
        "calls __import__()",
    ),
    ("the_core_only_computes", "mcp_core/_x.py", "datetime.now(UTC)", "reads the clock"),
    ("the_core_only_computes", "mcp_core/_x.py", "datetime.date.today()", "reads the clock"),
    (
        "versions_are_compared_in_one_place",
        "mcp_core/_x.py",
        "v == '2025-06-18'",
        "compares versions",
    ),
    (
        "versions_are_compared_in_one_place",
        "mcp_core/_x.py",
        "v in ('x', '2025-06-18')",
        "compares versions",
    ),
    (
        "versions_are_compared_in_one_place",
        "mcp_core/_x.py",
        "R_2025_06_18 <= v",
        "compares versions",
    ),
    (
        "versions_are_compared_in_one_place",
        "mcp_core/_x.py",
        "peer.dialect.version == x",
        "compares versions",
    ),
    (
        "versions_are_compared_in_one_place",
        "mcp_core/_x.py",
        "a < row.since <= b",
        "compares versions",
    ),
    (
        "versions_are_compared_in_one_place",
        "mcp_trio/_x.py",
        "if protocol_version != LATEST: f()",
        "compares",
    ),
    (
        "versions_are_compared_in_one_place",
        "mcp_core/_x.py",
        "match v:\n    case '2025-06-18': f()",
        "compares versions",
    ),
    *(
        ("versions_are_compared_in_one_place", path, source, "compares versions")
        for path in ("mcp_core/trace/judge/rules/_x.py", "mcp_trio/oracle/fuzz/client/_x.py")
        for source in (
            "revision >= STATEFUL[2]",
            "if message.revision != STATEFUL[0]: f()",
            "session.revision == ALL[-1]",
            "state.negotiated == 'D'",
            "a < target_revision",
            "'E' in message.revisions",
        )
    ),
    ("revisions_have_no_letters", "mcp_core/trace/_x.py", "MODERN = 'E'", ":1: has letters"),
    (
        "revisions_have_no_letters",
        "mcp_core/trace/judge/rows/_x.py",
        "rows('p', ('A', 'x'))",
        "'A'",
    ),
    ("revisions_have_no_letters", "mcp_trio/oracle/fuzz/_x.py", "'ABCDE'[n]", "'ABCDE'"),
    ("revisions_have_no_letters", "mcp_core/trace/replay/_x.py", "f(letter='F')", "'F'"),
    ("revisions_have_no_letters", "mcp_trio/oracle/proxy/_x.py", "x in {'D': 1}", "'D'"),
    (
        "msgspec_errors_are_caught_in_one_place",
        "mcp_core/_x.py",
        "from msgspec import DecodeError",
        "DecodeError",
    ),
    (
        "msgspec_errors_are_caught_in_one_place",
        "mcp_core/registry/_x.py",
        "try: f()\nexcept (ValueError, msgspec.ValidationError): g()",
        ":2: names msgspec.ValidationError",
    ),
    (
        "msgspec_errors_are_caught_in_one_place",
        "mcp_trio/_x.py",
        "suppress(msgspec.MsgspecError)",
        "MsgspecError",
    ),
    (
        "writers_are_few",
        "mcp_trio/_client.py",
        "await self.stream.send_all(b'')",
        "uses self.stream.send_all",
    ),
    (
        "writers_are_few",
        "mcp_trio/http_server/_serve.py",
        "write = stream.send_all",
        "uses stream.send_all",
    ),
    (
        "class_names_say_something",
        "mcp_core/_x.py",
        "class SessionManager: ...",
        "Manager says nothing",
    ),
    (
        "class_names_say_something",
        "mcp_trio/_x.py",
        "def f():\n    class _HandlerOfX: ...",
        "Handler says nothing",
    ),
    ("class_names_say_something", "mcp_core/_x.py", "class Utils: ...", "Utils says nothing"),
    (
        "class_names_say_something",
        "mcp_core/_x.py",
        "class StreamWrapper(Stream): ...",
        "Wrapper says nothing",
    ),
]

PASSED = [
    (
        "imports_are_allowed",
        "mcp_core/_x.py",
        "import hmac\nfrom urllib.parse import urlsplit\nimport msgspec",
    ),
    (
        "imports_are_allowed",
        "mcp_core/_x.py",
        "from . import types as t\nfrom .registry import Server",
    ),
    (
        "imports_are_allowed",
        "mcp_core/protocol/schema/_json_schema.py",
        "def f():\n    from jsonschema.exceptions import E",
    ),
    (
        "imports_are_allowed",
        "mcp_core/protocol/schema/_json_schema.py",
        "if TYPE_CHECKING:\n    from referencing import X",
    ),
    (
        "imports_are_allowed",
        "mcp_trio/_x.py",
        "import os, subprocess, trio, h11\nfrom mcp_core.http import Head",
    ),
    ("imports_are_allowed", "mcp_trio/testing/pytest_plugin.py", "import pytest"),
    (
        "imports_are_allowed",
        "mcp_asyncio_shim/_x.py",
        "import asyncio\nfrom mcp_core import Connection",
    ),
    (
        "private_names_stay_at_home",
        "mcp_trio/_x.py",
        "from ._link import Link\nfrom mcp_core import Role",
    ),
    (
        "private_names_stay_at_home",
        "mcp_trio/_x.py",
        "from mcp_core import __version__, http\nimport _thread",
    ),
    (
        "private_names_stay_at_home",
        "mcp_trio/_x.py",
        "import mcp_core.http\nfrom mcp_core.urls import Url",
    ),
    (
        "private_names_stay_at_home",
        "mcp_core/http/_x.py",
        "from mcp_core.protocol.connection._connection import Connection",
    ),
    (
        "imports_are_allowed",
        "mcp_core/adapters/_sqlite_file.py",
        "import os, threading\ndef f():\n    import sqlite3",
    ),
    ("imports_are_allowed", "examples/x.py", "import sqlite3"),
    (
        "private_names_stay_at_home",
        "mcp_trio/_x.py",
        "from mcp_core.adapters import SqliteTaskStore",
    ),
    (
        "layers_point_downwards",
        "mcp_core/adapters/_x.py",
        "from mcp_core.runtime.tasks._watch import W\nfrom ..tasks import TaskKey",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/adapters/_x.py",
        "async def f():\n    async with g(): await h()",
    ),
    ("layers_point_downwards", "mcp_core/types/_tools.py", "from .._errors import ToolError"),
    (
        "layers_point_downwards",
        "mcp_core/urls/_x.py",
        "from .._errors import McpTrioError\nfrom .._limits import Limits",
    ),
    ("layers_point_downwards", "mcp_core/urls/_x.py", "from ._url import Url"),
    (
        "layers_point_downwards",
        "mcp_core/protocol/revisions/_methods.py",
        "from mcp_core.protocol.jsonrpc._codec import reader\nfrom . import _dialects",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/subscriptions/_x.py",
        "from mcp_core.protocol.messages._pending import PendingRequest",
    ),
    (
        "layers_point_downwards",
        "mcp_core/protocol/connection/_connection.py",
        "from mcp_core import types as t\nfrom mcp_core.protocol.schema import _json_schema",
    ),
    (
        "layers_point_downwards",
        "mcp_core/http/_x.py",
        "from mcp_core.protocol.connection._connection import C\nfrom .wire._sse import D",
    ),
    (
        "layers_point_downwards",
        "mcp_core/registry/entries/_x.py",
        "from .._server import Server\nfrom ..functions import _schema",
    ),
    (
        "layers_point_downwards",
        "mcp_core/__init__.py",
        "from mcp_core.protocol.connection._pump import Pump",
    ),
    ("layers_point_downwards", "mcp_core/runtime/_x.py", "from mcp_core import http, registry"),
    ("layers_point_downwards", "mcp_trio/host/_x.py", "from mcp_core.registry import Server"),
    (
        "layers_point_downwards",
        "mcp_trio/testing/_x.py",
        "from mcp_trio.oracle.fuzz._probe import probe\nfrom ._leaks import children",
    ),
    ("layers_point_downwards", "mcp_trio/cli/_x.py", "from mcp_trio import Server"),
    ("layers_point_downwards", "mcp_asyncio_shim/_x.py", "from ._link import Link"),
    (
        "parts_stay_apart",
        "mcp_core/http/wire/_x.py",
        "from ._sse import D\nfrom ...urls import Url",
    ),
    (
        "parts_stay_apart",
        "mcp_core/http/server/_x.py",
        "from ..wire._sse import D\nfrom ._stream import E",
    ),
    ("parts_stay_apart", "mcp_core/http/client/_x.py", "from mcp_core.http.wire._sse import D"),
    (
        "parts_stay_apart",
        "mcp_core/http/__init__.py",
        "from .client._pool import P\nfrom .server._stream import E",
    ),
    (
        "parts_stay_apart",
        "mcp_core/auth/client/_x.py",
        "from .._steps import Step\nfrom ._tokens import Tokens",
    ),
    ("parts_stay_apart", "mcp_core/auth/_x.py", "from ._secret import Secret"),
    (
        "parts_stay_apart",
        "mcp_core/runtime/_x.py",
        "from mcp_core.http.client import _pool\nfrom mcp_core.http.server import _auth",
    ),
    (
        "protocols_replace_back_edges",
        "mcp_core/http/client/_pool.py",
        "from ._http_client import HttpClient",
    ),
    (
        "protocols_replace_back_edges",
        "mcp_core/http/client/_requests.py",
        "from ._operation import MessagePost",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/_x.py",
        "def f(runtime: Runtime) -> Awaitable[int]:\n    return runtime.drain()",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_core/runtime/_x.py",
        "class A:\n    async def __aenter__(self): await f()\n    def __aiter__(self): return self",
    ),
    (
        "the_protocol_has_no_coroutines",
        "mcp_trio/_x.py",
        "async def f():\n    await g().__aenter__()",
    ),
    (
        "the_runtime_awaits_what_it_is_handed",
        "mcp_core/runtime/_x.py",
        "import abc\nfrom msgspec import Raw\nfrom mcp_core.http import End\nfrom ._job import Job",
    ),
    ("the_runtime_awaits_what_it_is_handed", "mcp_trio/_x.py", "import trio"),
    (
        "the_core_only_computes",
        "mcp_core/_x.py",
        "self.open()\nconn.open(known_peer=v)\nconfig.now()",
    ),
    ("the_core_only_computes", "mcp_trio/_x.py", "print(open('x').read())"),
    (
        "versions_are_compared_in_one_place",
        "mcp_core/protocol/revisions/_dialects.py",
        "row.since <= version < row.until",
    ),
    ("versions_are_compared_in_one_place", "mcp_core/_x.py", "meta.protocol_version is None"),
    (
        "versions_are_compared_in_one_place",
        "mcp_trio/oracle/fuzz/_x.py",
        "selected != revision\nrevision in ALL\nrevision == ''\nx.revision == row[0]",
    ),
    (
        "revisions_have_no_letters",
        "mcp_core/trace/_x.py",
        "F = TypeVar('F', bound=str)\nf('2025-11-25', 'a', 'AC-1', 'META')",
    ),
    ("revisions_have_no_letters", "mcp_trio/cli/_x.py", "add('old', metavar='A')"),
    (
        "versions_are_compared_in_one_place",
        "mcp_core/_x.py",
        "D = {'2025-06-18': 1}\nD['2025-06-18']",
    ),
    (
        "versions_are_compared_in_one_place",
        "mcp_core/_x.py",
        "schema == 'draft 2020-12'\nx.http_version == b'1'",
    ),
    (
        "msgspec_errors_are_caught_in_one_place",
        "mcp_core/protocol/jsonrpc/_codec.py",
        "from msgspec import DecodeError",
    ),
    (
        "msgspec_errors_are_caught_in_one_place",
        "mcp_core/protocol/schema/_json_schema.py",
        "jsonschema.ValidationError",
    ),
    (
        "msgspec_errors_are_caught_in_one_place",
        "mcp_core/_x.py",
        "from msgspec import Raw\nmsgspec.UNSET",
    ),
    ("writers_are_few", "mcp_trio/streams/_link.py", "await stream.send_all(b'')"),
    ("writers_are_few", "mcp_trio/http_server/_h11_connection.py", "await stream.send_all(b'')"),
    ("writers_are_few", "mcp_trio/testing/_leaks.py", "async def send_all(self, data): ..."),
    (
        "class_names_say_something",
        "mcp_core/_x.py",
        "class Handle: ...\nclass Database: ...\nmanager = 1",
    ),
    ("class_names_say_something", "mcp_core/_x.py", "class HandlerCall: ..."),
    ("class_names_say_something", "mcp_core/types/_base.py", "class BaseMetadata: ..."),
]

BY_NAME = {rule.__name__: rule for rule in RULES}


@pytest.mark.parametrize(("rule", "path", "source", "complaint"), REFUSED)
def test_layering_rule_finds_its_violation(
    rule: str, path: str, source: str, complaint: str
) -> None:
    file = ProjectFile(path, source)
    found = [f"{path}:{line}: {text}" for line, text in BY_NAME[rule](file)]
    assert any(complaint in line for line in found), found
    assert set(found) <= set(complaints(file))


@pytest.mark.parametrize(("rule", "path", "source"), PASSED)
def test_rule_lets_pass(rule: str, path: str, source: str) -> None:
    assert list(BY_NAME[rule](ProjectFile(path, source))) == []


def test_every_rule_is_shown_from_both_sides() -> None:
    assert {row[0] for row in REFUSED} == {row[0] for row in PASSED} == set(BY_NAME)


def classes(*places: str) -> list[ProjectFile]:
    """Return a file with one class for each of the places, which are `path:ClassName`."""
    rows = [place.split(":") for place in places]
    return [ProjectFile(path, f"x = 1\n\n\nclass {name}: ...\n") for path, name in rows]


@pytest.mark.parametrize(
    ("places", "line"),
    [
        (("mcp_core/_x.py:A", "mcp_trio/_y.py:A"), "mcp_trio/_y.py:4: class A is also in"),
        (("mcp_core/_x.py:_A", "mcp_core/_y.py:_A"), "class _A is also in mcp_core/_x.py"),
        (("mcp_core/_x.py:A", "mcp_core/_x.py:A"), "class A is also in mcp_core/_x.py"),
        (("mcp_trio/_x.py:_A", "mcp_asyncio_shim/_x.py:_A"), "is also in mcp_trio/_x.py"),
        (("mcp_trio/_x.py:Link", "mcp_trio/_y.py:Link"), "class Link is also in mcp_trio/_x.py"),
        (("mcp_core/_x.py:Link",), "class Link is a name of the drivers"),
    ],
)
def test_class_name_of_two_classes_is_refused(places: tuple[str, ...], line: str) -> None:
    files = classes(*places)
    [found] = project_complaints(files)
    assert line in found
    assert len(list(class_names_are_unique(files))) == 1


def test_class_name_of_one_class_passes() -> None:
    files = classes(
        "mcp_core/_x.py:A",
        "mcp_core/_y.py:_A",
        "mcp_trio/_x.py:Client",
        "mcp_asyncio_shim/_x.py:Client",
        "examples/a.py:A",
    )
    assert list(class_names_are_unique(files)) == []


def test_every_project_rule_is_shown() -> None:
    assert set(PROJECT_RULES) == {class_names_are_unique}
