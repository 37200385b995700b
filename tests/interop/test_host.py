"""Our host with servers of other authors, all from one `.mcp.json`, and with the consent of a user.

Three are npm packages, two are reference servers from PyPI, two are written with the official SDK
and with FastMCP, and one is ours, over HTTP with a login. `MCP_TRIO_SERVERS_PYTHON` names the
Python of an environment with `mcp-server-git`, and `MCP_TRIO_FASTMCP_PYTHON` the Python of one
with `fastmcp[tasks]`.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import trio

from mcp_core import types as t
from mcp_core.auth import ClientProfile
from mcp_trio import LoginConfig, MemoryStorage, connect_http
from mcp_trio.host import (
    ApprovalFile,
    ApprovalRequired,
    CallAnswer,
    CallQuestion,
    Host,
    ServerQuestion,
    ServerUnavailable,
)
from mcp_trio.testing._leaks import children
from tests.interop.official import unfinished_streams
from tests.interop.protected import BACK, login, protected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from mcp_core.runtime.host import DefinitionsQuestion
    from mcp_trio import TokenStorage

pytestmark = [pytest.mark.node, unfinished_streams]

HERE = Path(__file__).parent
SERVERS_PYTHON = "MCP_TRIO_SERVERS_PYTHON"
FASTMCP_PYTHON = "MCP_TRIO_FASTMCP_PYTHON"
LOCAL = ("filesystem", "memory", "everything", "git", "time", "sdk", "fastmcp")
HTTP = "notes"
CONVERSION = {"source_timezone": "Asia/Kolkata", "time": "12:00", "target_timezone": "Asia/Tokyo"}
OWLS = {"name": "owls", "entityType": "birds", "observations": ["hunt at night"]}


class Peers(NamedTuple):
    """The places of the servers' programs, and of the files that they work on."""

    npm: Path
    directory: Path

    @property
    def config(self) -> Path:
        return self.directory / ".mcp.json"

    @property
    def files(self) -> Path:
        return self.directory / "files"

    @property
    def repository(self) -> Path:
        return self.directory / "repository"

    def package(self, name: str) -> str:
        return str(self.npm / "@modelcontextprotocol" / name / "dist" / "index.js")

    def entries(self) -> dict[str, Any]:
        """Return the entries of the local servers in a configuration file."""
        git, fastmcp = os.environ[SERVERS_PYTHON], os.environ[FASTMCP_PYTHON]
        memory = {"MEMORY_FILE_PATH": str(self.directory / "memory.jsonl")}
        return {
            "filesystem": _node(self.package("server-filesystem"), str(self.files)),
            "memory": {**_node(self.package("server-memory")), "env": memory},
            "everything": _node(self.package("server-everything"), "stdio"),
            "git": _program(git, "-m", "mcp_server_git", "--repository", str(self.repository)),
            "time": _program(sys.executable, "-m", "mcp_server_time"),
            "sdk": _program(sys.executable, str(HERE / "sdk_server.py")),
            "fastmcp": _program(fastmcp, str(HERE / "fastmcp_tasks_server.py")),
        }

    def write(self, *names: str, **more: Any) -> None:
        """Write the configuration file with some of the local servers, and `more`."""
        entries = self.entries()
        servers = {name: entries[name] for name in names} | more
        self.config.write_text(json.dumps({"mcpServers": servers}))

    def calls(self) -> dict[str, tuple[dict[str, Any], Callable[[t.CallToolResult], bool]]]:
        """Return a call to each server by its merged name: the arguments, and what must be true."""
        return {
            "mcp__filesystem__read_text_file": (
                {"path": str(self.files / "owls.txt")},
                lambda result: result.text == "Owls hunt at night.",
            ),
            "mcp__memory__create_entities": (
                {"entities": [OWLS]},
                lambda result: result.structured_content == {"entities": [OWLS]},
            ),
            "mcp__everything__get-sum": (
                {"a": 2, "b": 3},
                lambda result: result.text == "The sum of 2 and 3 is 5.",
            ),
            "mcp__git__git_log": (
                {"repo_path": str(self.repository)},
                lambda result: "Add owls" in result.text,
            ),
            "mcp__time__convert_time": (
                CONVERSION,
                lambda result: json.loads(result.text)["time_difference"] == "+3.5h",
            ),
            "mcp__sdk__weather": (
                {"city": "Lund"},
                lambda result: result.structured_content == {"city": "Lund", "celsius": 21.5},
            ),
            # A task: the host follows it.
            "mcp__fastmcp__research": (
                {"topic": "owls"},
                lambda result: result.text == "All about owls",
            ),
        }


def _program(command: str, *args: str) -> dict[str, Any]:
    return {"command": command, "args": list(args)}


def _node(*args: str) -> dict[str, Any]:
    return _program("node", *args)


@pytest.fixture
def peers(node_modules: Path, tmp_path: Path) -> Peers:
    for variable, package in (SERVERS_PYTHON, "mcp-server-git"), (FASTMCP_PYTHON, "fastmcp[tasks]"):
        if not os.environ.get(variable):
            pytest.skip(f"needs {variable}, naming the Python of an environment with {package}")
    git = shutil.which("git")
    if git is None:
        pytest.skip("needs git")
    found = Peers(node_modules, tmp_path)
    found.files.mkdir()
    (found.files / "owls.txt").write_text("Owls hunt at night.")
    found.repository.mkdir()
    author = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for words in ("init", "--quiet"), ("commit", "--quiet", "--allow-empty", "-m", "Add owls"):
        subprocess.run([git, *author, *words], cwd=found.repository, check=True)
    return found


class AgreeingUser:
    """A user who agrees to everything, and for good. `asked` has what they were asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def approve_server(self, question: ServerQuestion) -> bool:
        assert question.state == "new"
        assert list(question.lines())
        self.asked.append(("server", question.server))
        return True

    def approve_definitions(self, question: DefinitionsQuestion) -> bool:
        self.asked.append(("definitions", question.server))
        return True

    def approve_call(self, question: CallQuestion) -> CallAnswer:
        self.asked.append(("call", f"mcp__{question.server}__{question.tool.name}"))
        return CallAnswer(is_allowed=True, lifetime="always")


@asynccontextmanager
async def opened(
    peers: Peers, user: AgreeingUser, storage: TokenStorage | None = None, **options: Any
) -> AsyncIterator[Host]:
    """Open a host of the file, and check at the end that no process of a server is left."""
    auth = LoginConfig(
        profile=ClientProfile(redirect_uri=BACK), storage=storage or MemoryStorage(), browse=None
    )
    before = children()
    started: set[int] = set()
    with trio.fail_after(90):
        given: dict[str, Any] = {
            "stderr": "discard",
            "approvals": ApprovalFile(peers.directory / "state" / "approvals.json"),
            "on_approve_server": user.approve_server,
            "on_approve_definitions": user.approve_definitions,
            "on_approve_call": user.approve_call,
        }
        async with Host(peers.config, auth=auth, **given | options) as host:
            started.update(children().keys() - before.keys())
            yield host
            started.update(children().keys() - before.keys())
    assert not started & children().keys()


def states(host: Host) -> dict[str, str]:
    return {name: status.state for name, status in host.status().items()}


async def test_host_real_servers_work_together(peers: Peers) -> None:
    """Eight servers and one user: a second run asks nothing, and the login happens once."""
    user, storage = AgreeingUser(), MemoryStorage()
    calls = peers.calls()
    async with AsyncExitStack() as world:
        issuer, url = await world.enter_async_context(protected())
        peers.write(*LOCAL, **{HTTP: {"type": "http", "url": url}})
        calls["mcp__notes__whoami"] = (
            {},
            lambda result: result.text == f"{issuer.issuer}#sub:alice",
        )
        async with opened(peers, user, storage) as host:
            # All at once are ready, but for the one that needs a login.
            assert states(host) == {**dict.fromkeys(LOCAL, "ready"), HTTP: "needs login"}
            assert sorted(user.asked) == sorted(("server", name) for name in (*LOCAL, HTTP))
            assert len(children()) >= len(LOCAL)
            with pytest.raises(ServerUnavailable, match="needs login"):
                await host.call_tool(HTTP, "whoami")
            assert issuer.log.count("GET /authorize") == 0

            # The login comes from another program, such as `mcp-trio login`.
            async with connect_http(url, auth=login(storage)) as client:
                await client.ping()
            host.logged_in(HTTP)
            assert await host.wait_settled(20)
            assert states(host) == dict.fromkeys((*LOCAL, HTTP), "ready")
            assert not await host.pending()

            check_lists(host)
            for name, (arguments, is_right) in calls.items():
                result = await host.call(name, arguments)
                assert not result.is_error, (name, result)
                assert is_right(result), (name, result)
            # Each call was asked about: no annotation of a project's server is believed.
            assert user.asked[len(LOCAL) + 1 :] == [("call", name) for name in calls]
            (graph,) = (await host.read("memory://knowledge-graph")).contents
            assert "hunt at night" in (graph.text or "")

        again = AgreeingUser()
        async with opened(peers, again, storage) as host:
            assert states(host) == dict.fromkeys((*LOCAL, HTTP), "ready")
            for name, (arguments, is_right) in calls.items():
                if name != "mcp__memory__create_entities":  # it creates them only once
                    assert is_right(await host.call(name, arguments)), name
            assert not await host.pending()
        assert not again.asked
        assert issuer.log.count("GET /authorize") == 1


def check_lists(host: Host) -> None:
    """Check that the merged lists are the servers'."""
    tools = {tool.name: tool for tool in host.tools()}
    assert len(tools) == len(host.tools())
    expected = {
        f"mcp__{name}__{tool.name}" for name in host.status() for tool in host.catalog(name).tools
    }
    assert tools.keys() == expected
    assert {tools[name].server for name in tools} == {*LOCAL, HTTP}
    echo = [name for name in tools if name.endswith("__echo")]
    assert sorted(echo) == ["mcp__everything__echo", "mcp__sdk__echo"]
    assert not host.collisions()
    assert "mcp__sdk__review" in {prompt.name for prompt in host.prompts()}
    assert {"everything", "sdk"} <= host.instructions().keys()
    resources = {resource.uri: resource.label for resource in host.resources()}
    assert resources["memory://knowledge-graph"] == "@memory:memory://knowledge-graph"
    for name in host.status():
        assert not host.catalog(name).problems


async def test_host_without_approval_starts_no_real_server(peers: Peers) -> None:
    peers.write(*LOCAL)
    before = children()
    async with Host(peers.config) as host:
        assert states(host) == dict.fromkeys(LOCAL, "unapproved")
        assert children() == before
        assert not host.tools()


async def test_host_real_servers_ask_the_user_with_their_names(peers: Peers) -> None:
    """Two servers read the roots, and one adds tools when the client can answer its questions."""
    peers.write("filesystem", "everything")
    asked: list[tuple[str, str]] = []

    def on_roots(server: str) -> list[Path]:
        asked.append((server, "roots"))
        return [peers.repository]

    def on_elicit(server: str, params: t.ElicitParams) -> dict[str, t.ElicitValue]:
        asked.append((server, "elicit"))
        return {"name": "Ada"}

    def on_sample(server: str, params: t.CreateMessageParams) -> t.CreateMessageResult:
        asked.append((server, "sample"))
        return t.CreateMessageResult(
            role="assistant", content=t.TextContent("a haiku"), model="scripted"
        )

    logs: list[str] = []
    user = AgreeingUser()
    async with opened(
        peers,
        user,
        on_roots=on_roots,
        on_elicit=on_elicit,
        on_sample=on_sample,
        on_log=lambda server, _: logs.append(server),
        log_level="debug",
    ) as host:
        # These appear a moment after the handshake, and belong to the first sight.
        tools = {tool.name for tool in host.tools()}
        sampling = "mcp__everything__trigger-sampling-request"
        elicitation = "mcp__everything__trigger-elicitation-request"
        assert {sampling, elicitation, "mcp__everything__get-roots-list"} <= tools
        assert not await host.pending()

        result = await host.call(sampling, {"prompt": "Owls", "maxTokens": 10})
        assert "a haiku" in result.text
        result = await host.call(elicitation)
        assert "Ada" in "".join(str(block) for block in result.content)
        result = await host.call("mcp__filesystem__list_allowed_directories")
        assert str(peers.repository) in result.text
        assert str(peers.files) not in result.text
        assert set(asked) == {
            ("filesystem", "roots"),
            *(("everything", what) for what in ("roots", "elicit", "sample")),
        }

        async with host.changes() as changes:
            text = "data:text/plain;base64,aGVsbG8="
            await host.call("mcp__everything__gzip-file-as-resource", {"name": "z", "data": text})
            async for change in changes:
                if (change.server, change.kind) == ("everything", "resources"):
                    break
        assert "demo://resource/session/z" in {resource.uri for resource in host.resources()}
        await host.call("mcp__everything__toggle-simulated-logging")
        assert set(logs) == {"everything"}
    # No definition of a tool has changed in all this.
    assert {kind for kind, _ in user.asked} == {"server", "call"}


async def test_host_tools_that_appear_after_approval_are_asked_about(peers: Peers) -> None:
    """The same server offers more to a client with more capabilities: these tools are new."""
    peers.write("everything")
    async with opened(peers, AgreeingUser()):
        pass
    elicitation = "mcp__everything__trigger-elicitation-request"
    async with opened(
        peers, AgreeingUser(), on_elicit=lambda *_: None, on_approve_definitions=None
    ) as host:
        await wait_until_pending(host)
        (question,) = (await host.pending()).values()
        new = {definition.name for definition in question.definitions}
        assert "trigger-elicitation-request" in new
        assert elicitation not in {tool.name for tool in host.tools()}
        with pytest.raises(ApprovalRequired):
            await host.call(elicitation)
        await host.approve_definitions(question)
        assert elicitation in {tool.name for tool in host.tools()}


async def wait_until(is_true: Callable[[], bool], host: Host) -> None:
    """Wait until a change makes something true."""
    async with host.changes() as changes:
        while not is_true():
            await anext(changes)


async def wait_until_pending(host: Host) -> None:
    """Wait until a change has to be approved."""
    async with host.changes() as changes:
        while not await host.pending():
            await anext(changes)


async def test_host_killed_real_servers_are_started_again(peers: Peers) -> None:
    """SIGKILL ends a node and a Python process; the same calls work afterwards."""
    names = ("memory", "sdk")  # in node and in Python
    peers.write(*names)
    calls = {name: call for name, call in peers.calls().items() if name.split("__")[1] in names}
    async with opened(peers, AgreeingUser()) as host:
        async with host.changes() as changes:
            killed = set(_kill_children())
            assert len(killed) >= len(names)
            died: set[str] = set()
            async for change in changes:
                if change.status.state != "ready":
                    died.add(change.server)
                if died == set(names):
                    break
        assert await host.wait_settled(30)
        assert states(host) == dict.fromkeys(names, "ready")
        for name, (arguments, is_right) in calls.items():
            assert is_right(await host.call(name, arguments)), name


def _kill_children() -> Iterator[int]:
    for pid in children():
        os.kill(pid, signal.SIGKILL)
        yield pid


async def test_host_server_whose_package_is_missing_harms_no_other(peers: Peers) -> None:
    """Node and Python end with an error on stderr: its last line is a part of the reason."""
    broken = {
        "absent": _node(str(peers.directory / "absent.js")),
        "module": _program(sys.executable, "-m", "mcp_server_absent"),
    }
    peers.write("time", **broken)
    async with opened(peers, AgreeingUser(), wait=20) as host:
        assert states(host)["time"] == "ready"
        for name in broken:
            status = host.status()[name]
            assert status.state in ("failed", "connecting")
        async with host.changes() as changes:
            async for change in changes:
                if change.server == "module" and change.status.state == "failed":
                    assert "mcp_server_absent" in change.status.reason
                    break
        result = await host.call("mcp__time__convert_time", CONVERSION)
        assert json.loads(result.text)["time_difference"] == "+3.5h"
