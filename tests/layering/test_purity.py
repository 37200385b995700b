"""The core, imported alone by a fresh interpreter, must not have loaded anything that acts.

The import rules look at our own files; this looks at the outcome, so that it also sees what a
dependency drags in. `site` is kept out (`-S` with the path handed over), because a .pth file may
load anything before we are asked.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Its processes load nearly all packages that we have: 3 s of CPU, and a minute beside much else.
pytestmark = pytest.mark.timeout(120)
ROOT = Path(__file__).parents[2]
ACTING = """
    anyio asyncio concurrent.futures ctypes h11 h2 http http.client jsonschema joserfc logging
    mcp_trio multiprocessing random referencing rich secrets selectors signal socket ssl subprocess
    tempfile threading tomlkit trio wsproto yaml
""".split()
PUBLIC = [
    "mcp_core",
    "mcp_core.types",
    "mcp_core.http",
    "mcp_core.auth",
    "mcp_core.registry",
    "mcp_core.drivers",
    "mcp_core.processes",
    "mcp_core.runtime",
    "mcp_core.host",
    "mcp_core.trace",
]


# A fresh interpreter forks for each statement, and prints the modules after it on a line. All our
# packages import `mcp_core` first, so that is done once.
PROGRAM = """
import os, sys

def answer(statements):
    for statement in statements:
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            exec(statement, {})
            print(*sys.modules)
            sys.stdout.flush()
            os._exit(0)
        if os.waitpid(pid, 0)[1]:
            sys.exit(f"failed: {statement}")

answer(LIBRARIES)
import mcp_core
answer(PACKAGES)
"""
LIBRARIES = ["import jsonschema", "import trio"]
RUNTIME = "from mcp_core.runtime import AsgiApplication, HttpRequestRunner"
ON_FIRST_USE = ["mcp_core", "mcp_core.runtime.tasks", "mcp_trio", "mcp_asyncio_shim"]
SQLITE = {
    driver: f"from {driver} import SqliteTaskStore\nSqliteTaskStore('x')"
    for driver in ("mcp_trio", "mcp_asyncio_shim")
}
REDIS = {
    driver: f"from {driver} import RedisStore\nRedisStore('redis://:secret@there', name='x')"
    for driver in ("mcp_trio", "mcp_asyncio_shim")
}
SERVE_HTTP = "from mcp_trio import serve_http"
RECORDED = """
import tempfile, {runtime}
from {driver} import connect
from mcp_core.registry import Server

async def main():
    with tempfile.TemporaryDirectory() as directory:
        async with connect(Server("x"), record=directory + "/x.mcp.jsonl") as client:
            await client.ping()

{runtime}.run(main{call})
"""
RECORD = {
    "mcp_trio": RECORDED.format(driver="mcp_trio", runtime="trio", call=""),
    "mcp_asyncio_shim": RECORDED.format(driver="mcp_asyncio_shim", runtime="asyncio", call="()"),
}
CORE = """
    drivers protocol protocol.connection protocol.input_requests protocol.jsonrpc protocol.messages
    protocol.revisions protocol.schema protocol.subscriptions runtime types
""".split()
SERVER_PACKAGES = "registry registry.entries registry.functions registry.tasks tasks".split()
STREAMS = "streams streams._link streams._stdio streams._threads".split()
SERVER_MODULES = [
    *STREAMS,
    *"_nursery _runtime _server _tasks streams._dispatch".split(),
]
CLIENT_MODULES = [
    *STREAMS,
    *"_client _connect _nursery _runtime".split(),
    *"streams._child streams._child_pipes streams._memory streams._trace".split(),
]
# What each half of `mcp_trio` loads beside `import mcp_trio`: packages of the core, modules of
# `mcp_trio`. To load more costs every program of this kind, so it needs a reason.
HALVES = {
    "import mcp_trio": ([], []),
    "from mcp_trio import Server": (SERVER_PACKAGES, []),
    "from mcp_trio import Server, run, serve_stdio": (
        [*SERVER_PACKAGES, "runtime.tasks"],
        SERVER_MODULES,
    ),
    "from mcp_trio import Client, connect, connect_stdio": (
        ["client", "processes", "runtime.client_tasks", "tasks"],
        CLIENT_MODULES,
    ),
}
STATEMENTS = [
    *dict.fromkeys(f"import {name}" for name in [*PUBLIC, *ON_FIRST_USE]),
    *(RUNTIME, *SQLITE.values(), *REDIS.values(), SERVE_HTTP, *RECORD.values()),
    *list(HALVES)[1:],
]


Loaded = dict[str, set[str]]


@pytest.fixture(scope="module")
def loaded_by() -> Loaded:
    """The names of all modules that a fresh interpreter holds after each statement."""
    result = subprocess.run(
        [sys.executable, "-S", "-E", "-W", "error", "-"],
        input=f"LIBRARIES = {LIBRARIES!r}\nPACKAGES = {STATEMENTS!r}\n"
        f"import sys\nsys.path[:] = {[str(ROOT), *sys.path]!r}\n{PROGRAM}",
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    lines = [set(line.split()) for line in result.stdout.splitlines()]
    return dict(zip([*LIBRARIES, *STATEMENTS], lines, strict=True))


@pytest.mark.parametrize("name", PUBLIC)
def test_importing_the_core_loads_nothing_that_acts(name: str, loaded_by: Loaded) -> None:
    modules = loaded_by[f"import {name}"]
    assert name in modules
    assert sorted(modules.intersection(ACTING)) == []


@pytest.mark.parametrize(("name", "loaded"), [("jsonschema", "threading"), ("trio", "socket")])
def test_the_check_sees_what_a_dependency_loads(name: str, loaded: str, loaded_by: Loaded) -> None:
    assert {name, loaded} <= loaded_by[f"import {name}"]


def test_runtime_loads_http_on_first_use(loaded_by: Loaded) -> None:
    assert "mcp_core.http" not in loaded_by["import mcp_core.runtime"]
    modules = loaded_by[RUNTIME]
    assert "mcp_core.http" in modules
    assert sorted(modules.intersection(ACTING)) == []


@pytest.mark.parametrize("name", ON_FIRST_USE)
def test_adapters_and_their_libraries_are_loaded_on_first_use(name: str, loaded_by: Loaded) -> None:
    assert not loaded_by[f"import {name}"] & {"mcp_core.adapters", "sqlite3", "coredis"}


@pytest.mark.parametrize("driver", SQLITE)
def test_sqlite_is_loaded_with_the_first_file(driver: str, loaded_by: Loaded) -> None:
    modules = loaded_by[SQLITE[driver]]
    assert modules & {"mcp_core.adapters", "sqlite3"} == {"mcp_core.adapters"}


@pytest.mark.parametrize("driver", REDIS)
def test_redis_is_loaded_when_its_store_is_opened(driver: str, loaded_by: Loaded) -> None:
    modules = loaded_by[REDIS[driver]]
    assert "mcp_core.adapters._redis_client" in modules
    assert not [name for name in modules if name.partition(".")[0] in ("anyio", "coredis", "ssl")]


@pytest.mark.parametrize("driver", RECORD)
def test_recorder_loads_no_judge_and_no_replay(driver: str, loaded_by: Loaded) -> None:
    traces = {each for each in loaded_by[RECORD[driver]] if each.startswith("mcp_core.trace.")}
    assert "mcp_core.trace._encoder" in traces
    assert not [each for each in traces if ".judge" in each or ".replay" in each]


def test_stdio_server_loads_no_http(loaded_by: Loaded) -> None:
    http = {"h11", "mcp_core.http", "truststore"}
    assert not loaded_by["import mcp_trio"] & http
    assert loaded_by[SERVE_HTTP] & http == {"h11", "mcp_core.http"}


def test_server_without_a_store_loads_nothing_that_shares(loaded_by: Loaded) -> None:
    for statement in (SERVE_HTTP, RUNTIME, *HALVES, *(f"import {name}" for name in ON_FIRST_USE)):
        assert not [each for each in loaded_by[statement] if "sharing" in each]


def halves(modules: set[str]) -> tuple[set[str], set[str]]:
    """Return what of `modules` `HALVES` lists: packages of the core, and modules of `mcp_trio`."""
    names = {name.removeprefix("mcp_core.") for name in modules if name.startswith("mcp_core.")}
    packages = {name for name in names if not name.rpartition(".")[2].startswith("_")}
    ours = {name.removeprefix("mcp_trio.") for name in modules if name.startswith("mcp_trio.")}
    return packages - set(CORE), ours - {"_logging", "types"}


@pytest.mark.parametrize("statement", HALVES)
def test_each_half_of_mcp_trio_loads_only_its_own(statement: str, loaded_by: Loaded) -> None:
    packages, modules = HALVES[statement]
    assert halves(loaded_by[statement]) == (set(packages), set(modules))


def test_mcp_trio_without_its_names_does_not_load_trio(loaded_by: Loaded) -> None:
    assert "trio" not in loaded_by["import mcp_trio"] | loaded_by["from mcp_trio import Server"]
    assert not loaded_by["import mcp_trio"] & {"mcp_core.runtime._service", "dataclasses"}


CALLED = """
import sys, trio
from mcp_trio import connect

async def main():
    async with connect([sys.executable, "-c", {server!r}], inherit_env=True) as client:
        assert (await client.call_tool("add", {{"a": 1, "b": 2}})).structured_content == 3
    print(*sys.modules)

trio.run(main)
"""
SERVER = """
import sys
from mcp_trio import Server, run

server = Server("adder")

@server.tool
def add(a: int, b: int) -> int:
    "Add."
    return a + b

run(server)
print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.process
def test_one_call_over_stdio_loads_only_both_halves() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CALLED.format(server=SERVER)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
    )
    packages, modules = HALVES["from mcp_trio import Client, connect, connect_stdio"]
    # It copies the stderr of the program that it starts.
    assert halves(set(done.stdout.split())) == ({*packages, "adapters"}, set(modules))
    packages, modules = HALVES["from mcp_trio import Server, run, serve_stdio"]
    # At the end of stdin it sets a deadline for what a handler may have left in threads.
    assert halves(set(done.stderr.split())) == ({*packages, "adapters"}, set(modules))
