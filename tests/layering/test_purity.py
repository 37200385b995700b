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


def loaded_by(statement: str) -> set[str]:
    """The names of all modules that a fresh interpreter holds after the statement."""
    program = (
        f"import sys\nsys.path[:] = {[str(ROOT), *sys.path]!r}\n{statement}\nprint(*sys.modules)"
    )
    result = subprocess.run(
        [sys.executable, "-S", "-E", "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return set(result.stdout.split())


@pytest.mark.parametrize(
    "name", [name for name in PUBLIC if (ROOT / name.replace(".", "/")).is_dir()]
)
def test_importing_the_core_loads_nothing_that_acts(name: str) -> None:
    modules = loaded_by(f"import {name}")
    assert name in modules
    assert sorted(modules.intersection(ACTING)) == []


@pytest.mark.parametrize(("name", "loaded"), [("jsonschema", "threading"), ("trio", "socket")])
def test_the_check_sees_what_a_dependency_loads(name: str, loaded: str) -> None:
    assert {name, loaded} <= loaded_by(f"import {name}")


def test_runtime_loads_http_on_first_use() -> None:
    assert "mcp_core.http" not in loaded_by("import mcp_core.runtime")
    modules = loaded_by("from mcp_core.runtime import AsgiApplication, HttpRequestRunner")
    assert "mcp_core.http" in modules
    assert sorted(modules.intersection(ACTING)) == []


@pytest.mark.parametrize(
    "name", ["mcp_core", "mcp_core.runtime.tasks", "mcp_trio", "mcp_asyncio_shim"]
)
def test_adapters_and_their_libraries_are_loaded_on_first_use(name: str) -> None:
    assert not loaded_by(f"import {name}") & {"mcp_core.adapters", "sqlite3"}


@pytest.mark.parametrize("driver", ["mcp_trio", "mcp_asyncio_shim"])
def test_sqlite_is_loaded_with_the_first_file(driver: str) -> None:
    modules = loaded_by(f"from {driver} import SqliteTaskStore\nSqliteTaskStore('x')")
    assert modules & {"mcp_core.adapters", "sqlite3"} == {"mcp_core.adapters"}


def test_stdio_server_loads_no_http() -> None:
    http = {"h11", "mcp_core.http", "truststore"}
    assert not loaded_by("import mcp_trio") & http
    assert loaded_by("from mcp_trio import serve_http") & http == {"h11", "mcp_core.http"}
