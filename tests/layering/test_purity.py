"""The core, imported alone by a fresh interpreter, must not have loaded anything that acts.

The import rules look at our own files; this looks at the outcome, so that it also sees what a
dependency drags in. `site` is kept out (`-S` with the path handed over), because a .pth file may
load anything before we are asked.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ACTING = """
    anyio asyncio concurrent.futures ctypes h11 h2 http http.client jsonschema joserfc logging
    mcp_trio multiprocessing random referencing rich secrets selectors signal socket ssl subprocess
    tempfile threading tomlkit trio wsproto
""".split()
PUBLIC = [
    "mcp_core",
    "mcp_core.types",
    "mcp_core.http",
    "mcp_core.auth",
    "mcp_core.registry",
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
            exec(statement)
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
SERVE_HTTP = "from mcp_trio import serve_http"
STATEMENTS = [
    *dict.fromkeys(f"import {name}" for name in [*PUBLIC, *ON_FIRST_USE]),
    *(RUNTIME, *SQLITE.values(), SERVE_HTTP),
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
    assert not loaded_by[f"import {name}"] & {"mcp_core.adapters", "sqlite3"}


@pytest.mark.parametrize("driver", SQLITE)
def test_sqlite_is_loaded_with_the_first_file(driver: str, loaded_by: Loaded) -> None:
    modules = loaded_by[SQLITE[driver]]
    assert modules & {"mcp_core.adapters", "sqlite3"} == {"mcp_core.adapters"}


def test_stdio_server_loads_no_http(loaded_by: Loaded) -> None:
    http = {"h11", "mcp_core.http", "truststore"}
    assert not loaded_by["import mcp_trio"] & http
    assert loaded_by[SERVE_HTTP] & http == {"h11", "mcp_core.http"}
