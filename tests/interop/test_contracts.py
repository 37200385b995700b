"""Contracts, the doctor and the bench with six published servers, over stdio and HTTP.

`server-postgres` is used without its database, so its list of resources fails.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from mcp_core import ALL
from tests.interop.http_servers import Servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Five commands a test, each with a program that takes long to start on a busy machine.
pytestmark = pytest.mark.timeout(300)
_LONGEST = 200  # seconds
SERVERS_PYTHON = "MCP_TRIO_SERVERS_PYTHON"
# The program on stdin and stdout is started for the negotiation, and has neither TLS nor a login.
STDIO = {
    "name": "ok",
    "connection": "skipped",
    "TLS": "skipped",
    "authorization": "skipped",
    "negotiation": "ok",
    "lists": "ok",
}
HTTP = STDIO | {"connection": "ok", "authorization": "ok"}


class Published(NamedTuple):
    """A published server: its program, what is saved, and what the doctor finds in its lists."""

    words: Callable[[Path], list[str]]
    saved: str
    listed: str
    tool: str


def node(name: str, *arguments: str) -> Callable[[Path], list[str]]:
    def words(folder: Path) -> list[str]:
        place = Path(os.environ["MCP_TRIO_NODE_MODULES"]) / "@modelcontextprotocol"
        script = place / f"server-{name}" / "dist" / "index.js"
        return ["node", str(script), *(each.format(folder) for each in arguments)]

    return words


def python(name: str, *arguments: str) -> Callable[[Path], list[str]]:
    def words(folder: Path) -> list[str]:
        own = Path(sys.executable).parent
        others = Path(os.environ.get(SERVERS_PYTHON, own)).parent
        places = os.pathsep.join([str(own), str(others), os.environ["PATH"]])
        program = shutil.which(name, path=places)
        if program is None:
            pytest.skip(f"needs the program {name}, such as beside {SERVERS_PYTHON}")
        return [program, *(each.format(folder) for each in arguments)]

    return words


ON_NODE = {
    "everything": Published(
        node("everything"),
        "13 tools, 4 prompts, 2 resource templates, revision 2025-11-25",
        "13 tools, 7 resources, 2 resource templates, 4 prompts",
        "get-sum",
    ),
    "filesystem": Published(
        node("filesystem", "{}"),
        "14 tools, 0 prompts, 0 resource templates, revision 2025-11-25",
        "14 tools",
        "write_file",
    ),
    "memory": Published(
        node("memory"),
        "9 tools, 0 prompts, 0 resource templates, revision 2025-11-25",
        "9 tools, 1 resource, 0 resource templates",
        "read_graph",
    ),
}
ON_PYTHON = {
    "git": Published(
        python("mcp-server-git"),
        "12 tools, 0 prompts, 0 resource templates, revision 2026-07-28",
        "12 tools, 0 resources, 0 resource templates, 0 prompts",
        "git_status",
    ),
    "time": Published(
        python("mcp-server-time", "--local-timezone", "Etc/UTC"),
        "2 tools, 0 prompts, 0 resource templates, revision 2026-07-28",
        "2 tools, 0 resources, 0 resource templates, 0 prompts",
        "convert_time",
    ),
}


def command(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "mcp_trio", *words]
    result = subprocess.run(line, capture_output=True, text=True, timeout=_LONGEST, check=False)
    assert result.returncode == status, result.stdout + result.stderr
    return result


def examined(*target: str, status: int = 0) -> tuple[dict[str, str], dict[str, str]]:
    """Return what the doctor finds: the state and the text of each step."""
    steps = json.loads(command("doctor", "--json", *target, status=status).stdout)["steps"]
    states, texts = ({each["step"]: each[key] for each in steps} for key in ("state", "text"))
    return states, texts


def check_commands(server: Published, folder: Path) -> None:
    """Save, compare, compare with an older file, examine, and measure."""
    file, target = folder / "a.contract.json", ("--", *server.words(folder))
    assert command("inspect", "--save", str(file), *target).stdout == (
        f"saved {file}: {server.saved}\n"
    )
    assert command("inspect", "--against", str(file), *target).stdout == "no changes\n"
    document = json.loads(file.read_bytes())
    kept = [each for each in document["tools"] if each["name"] != server.tool]
    document["tools"] = [*kept, {"name": "earlier", "inputSchema": {"type": "object"}}]
    file.write_text(json.dumps(document))
    assert command("inspect", "--against", str(file), *target, status=1).stdout == (
        f"breaking    tool earlier: is gone\ncompatible  tool {server.tool}: is new\n"
        "changes: 1 breaking, 1 compatible\n"
    )
    states, texts = examined(*target)
    assert (states, texts["lists"]) == (STDIO, server.listed)
    options = ("--list", "tools", "--seconds", "0.3", "--json")
    [row] = json.loads(command("bench", *options, *target).stdout)["rows"]
    measured = row["measured"]
    assert (measured["errors"], measured["timeouts"], measured["stray_lines"]) == ({}, 0, 0)
    assert measured["answered"] > 0


@pytest.mark.node
@pytest.mark.usefixtures("node_modules")
@pytest.mark.parametrize("name", ON_NODE)
def test_commands_with_published_node_server_work(name: str, tmp_path: Path) -> None:
    check_commands(ON_NODE[name], tmp_path)


@pytest.mark.parametrize("name", ON_PYTHON)
def test_commands_with_published_python_server_work(name: str, tmp_path: Path) -> None:
    check_commands(ON_PYTHON[name], tmp_path)


def test_every_revision_of_a_published_server_is_saved_and_compared(tmp_path: Path) -> None:
    file, target = tmp_path / "a.contract.json", ("--", *ON_PYTHON["time"].words(tmp_path))
    saved = command("inspect", "--every-revision", "--save", str(file), *target).stdout
    assert saved.endswith(f", revisions {', '.join(ALL)}\n")
    assert command("inspect", "--against", str(file), *target).stdout == "no changes\n"


@pytest.mark.node
@pytest.mark.usefixtures("node_modules")
def test_server_whose_list_fails_has_no_contract_and_says_why(tmp_path: Path) -> None:
    file, words = tmp_path / "a.contract.json", node("postgres", "postgresql://127.0.0.1:1/none")
    target = ("--", *words(tmp_path))
    command("inspect", "--save", str(file), *target)  # resources aren't part of it
    refused = "connect ECONNREFUSED 127.0.0.1:1 (-32603)"
    failed = command("inspect", "--resources", "--against", str(file), *target, status=1)
    assert refused in failed.stderr
    states, texts = examined(*target, status=1)
    assert states == STDIO | {"lists": "failed"}
    assert texts["lists"].startswith("resources: ")
    assert refused in texts["lists"]


# -- At URLs ---------------------------------------------------------------------------------------


@pytest.fixture
def everywhere(node_modules: Path) -> Iterator[dict[str, str]]:
    """The URLs of server-everything, by its transport."""
    script = node_modules / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    how = "streamableHttp", "sse"
    servers = Servers(*((str(script), each) for each in how))
    try:
        yield {each: servers.url(str(script), each) for each in how}
    finally:
        servers.close()


@pytest.mark.node
def test_published_server_at_urls_has_one_contract(
    everywhere: dict[str, str], tmp_path: Path
) -> None:
    """Both transports offer the same, and all servers of a file are compared in one run."""
    entries: dict[str, Any] = {
        "new": {"type": "http", "url": everywhere["streamableHttp"]},
        "old": {"type": "sse", "url": everywhere["sse"]},
    }
    config, folder = tmp_path / "a.json", tmp_path / "kept"
    config.write_text(json.dumps({"mcpServers": entries}))
    approve = ("--approve-server", "new", "--approve-server", "old")
    words = ("inspect", "--config", str(config), "--all", *approve)
    command(*words, "--save", str(folder))
    files = [(folder / f"{name}.contract.json").read_bytes() for name in entries]
    assert files[0] == files[1]
    assert command(*words, "--against", str(folder)).stdout == "new\nno changes\nold\nno changes\n"


@pytest.mark.node
def test_doctor_finds_published_server_at_its_url_only(everywhere: dict[str, str]) -> None:
    """Without its path, Streamable HTTP is found, and the URL of HTTP+SSE is named."""
    new, old = everywhere["streamableHttp"], everywhere["sse"]
    for url in new, old, new.removesuffix("/mcp"):
        assert examined(url)[0] == HTTP
    states, texts = examined(old.removesuffix("/sse"), status=3)
    assert states["negotiation"] == "failed"
    assert texts["negotiation"].endswith(f"An MCP server answers at {old}: use that URL")
