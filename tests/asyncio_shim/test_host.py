"""The host on asyncio: the same core, with its tasks, clocks and threads."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim import Host, _host
from mcp_core.host import ApprovalRequired, UnknownName
from mcp_core.registry import Server
from mcp_core.runtime.host import HostLimits
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

# A server of 2025-11-25 that says its process id.
PROGRAM = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "program", "version": "1"}}
    elif message["method"] == "tools/list":
        answer["result"] = {"tools": [{"name": "pid", "inputSchema": {"type": "object"}}]}
    elif message["method"] == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": str(os.getpid())}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"""
COMMAND = [sys.executable, "-c", PROGRAM]


def make_server() -> Server:
    server = Server("notes")

    @server.tool
    def write(text: str) -> str:
        """Write something."""
        return f"wrote {text}"

    return server


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_host_calls_servers_and_harms_none_by_one_that_fails() -> None:
    """A program that doesn't exist is reported by its status while the others go on working."""

    async def main() -> None:
        servers: dict[str, Any] = {"notes": make_server(), "bad": ["/nonexistent/program"]}
        async with Host(servers, approve="all") as host:
            states = {name: status.state for name, status in host.status().items()}
            assert states == {"notes": "ready", "bad": "failed"}
            result = await host.call("mcp__notes__write", {"text": "x"})
            assert result.text == "wrote x"
            with pytest.raises(UnknownName, match="servers that are not ready: bad"):
                await host.call("mcp__bad__x")
            host.add("more", make_server())
            await host.wait_settled()
            assert [tool.name for tool in host.tools()] == ["mcp__notes__write", "mcp__more__write"]
            await host.remove("more")
            assert len(host.tools()) == 1

    asyncio.run(main())


def test_host_asks_about_calls_and_records_them() -> None:
    """Denied calls are in the audit too; without a callback the call raises `ApprovalRequired`."""
    records: list[Any] = []

    async def approve(question: Any) -> bool:
        await asyncio.sleep(0)
        return bool(question.arguments["text"] == "good")

    async def main() -> None:
        servers = {"notes": make_server()}
        async with Host(servers, on_approve_call=approve, audit=records.append) as host:
            assert (await host.call("mcp__notes__write", {"text": "good"})).text == "wrote good"
            with pytest.raises(Exception, match="was denied: user"):
                await host.call("mcp__notes__write", {"text": "bad"})
        async with Host(servers) as host:
            with pytest.raises(ApprovalRequired):
                await host.call("mcp__notes__write", {"text": "good"})

    asyncio.run(main())
    assert [record.outcome for record in records] == ["ok", "denied"]


@pytest.mark.process
@pytest.mark.parametrize("is_entry", [False, True])
def test_variables_of_the_host_are_hidden_in_the_reason(
    is_entry: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program that isn't found has them in its name, as a child writes to our stderr itself."""
    monkeypatch.setenv("MY_TOKEN", "CANARY-2-0123456789")
    program = "nothing-CANARY-hunter2-CANARY-2-0123456789"
    target: Any = {"command": program} if is_entry else [program]

    async def main() -> str:
        env = {"PASSWORD": "CANARY-hunter2"}
        async with Host({"a": target}, env=env, inherit_env=True) as host:
            await host.wait_settled()
            return host.status()["a"].reason

    reason = asyncio.run(main())
    assert "nothing-" in reason
    assert "CANARY" not in reason


@pytest.mark.parametrize(
    ("entry", "target", "options", "hides"),
    [
        (
            {"command": "tea", "args": ["--green"], "env": {"B": "entry"}, "cwd": "/tmp"},
            ("tea", "--green"),
            {"env": {"A_TOKEN": "host-secret-1", "B": "entry"}, "cwd": "/tmp"},
            True,
        ),
        (
            # Names of variables have case here.
            {"url": "https://tea.example/mcp", "headers": {"x-leaf": "${our_token:-green}"}},
            "https://tea.example/mcp",
            {"headers": {"x-leaf": "green"}, "cwd": None},
            False,
        ),
    ],
)
def test_entry_is_connected_to_with_its_options_and_the_host_s(
    entry: dict[str, Any],
    target: object,
    options: dict[str, Any],
    hides: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only what is started gets the host's variables, so only its record hides their values."""
    calls: list[Any] = []
    monkeypatch.setattr(_host, "connect", lambda target, **found: calls.append((target, found)))
    monkeypatch.setenv("OUR_TOKEN", "our-secret-2")
    env = {"A_TOKEN": "host-secret-1", "B": "host"}
    for inherit_env in (False, True):
        host = Host({"a": entry}, env=env, inherit_env=inherit_env, record=tmp_path)
        given_by_the_host: Any = {"timeout": 7.0}
        host._given[0].connect(given_by_the_host, {}, None)
        [(found, given)] = calls
        calls.clear()
        assert found == target
        assert {name: given[name] for name in options} == options
        assert (given["inherit_env"], given["timeout"]) == (inherit_env, 7.0)
        assert given["record"].path == tmp_path / "a.mcp.jsonl"
        assert ("host-secret-1" in given["record"].secrets) is hides
        assert ("our-secret-2" in given["record"].secrets) is (hides and inherit_env)


def test_entry_on_windows_has_the_home_directory_of_windows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An entry whose host has no options inherits nothing and isn't recorded."""
    calls: list[Any] = []
    monkeypatch.setattr(_host, "connect", lambda target, **found: calls.append(found))
    host = Host({"a": {"command": "tea", "cwd": "~/tea"}})
    environ = {"USERPROFILE": "/of/windows", "HOME": "/of/posix"}
    for name in ("nt", "posix"):
        monkeypatch.setattr(_host, "os", SimpleNamespace(name=name, environ=environ))
        host._given[0].connect({}, {}, None)
    assert [each["cwd"] for each in calls] == ["/of/windows/tea", "/of/posix/tea"]
    assert (calls[0]["inherit_env"], calls[0]["record"]) == (False, None)


def test_host_that_cannot_be_opened_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers that have begun end with it."""
    ended: list[bool] = []

    @asynccontextmanager
    async def lifespan(server: Server) -> AsyncIterator[None]:
        try:
            yield
        finally:
            ended.append(True)

    opening = Host._open

    async def fail(host: Host, *args: Any) -> None:
        await opening(host, *args)
        raise KeyError("ours")

    monkeypatch.setattr(Host, "_open", fail)

    async def main() -> None:
        with pytest.raises(KeyError, match="ours"):
            async with Host({"a": Server("a", lifespan=lifespan)}):
                raise AssertionError
        assert ended == [True]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


@pytest.mark.process
def test_host_starts_a_killed_server_again_and_leaves_no_process() -> None:
    """Two kills with SIGKILL give three process ids, and none is alive at the end."""

    async def main() -> list[int]:
        pids = []
        async with Host({"program": COMMAND}, approve="all") as host:
            for _ in range(2):
                pid = int((await host.call("mcp__program__pid")).text)
                pids.append(pid)
                async with host.changes() as changes:
                    os.kill(pid, signal.SIGKILL)
                    async for change in changes:
                        if change.kind == "status" and change.status.state == "ready":
                            break
                await host.wait_settled()
            pids.append(int((await host.call("mcp__program__pid")).text))
        return pids

    pids = asyncio.run(main())
    assert len(set(pids)) == 3
    assert not any(map(is_alive, pids))


def test_cancelled_host_closes_its_servers() -> None:
    pids: list[int] = []

    async def main() -> None:
        async with asyncio.timeout(PATIENCE), Host({"program": COMMAND}, approve="all") as host:
            pids.append(int((await host.call("mcp__program__pid")).text))
            raise TimeoutError

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert not is_alive(pids[0])


def test_host_refuses_wrong_use() -> None:
    """Each mistake raises at once and names its cause; a URL is the one text that is a server."""
    with pytest.raises(TypeError, match="give a command as a list of words"):
        Host({"a": "echo hello"})
    Host({"a": "http://127.0.0.1:1/mcp"})  # a URL is one word
    with pytest.raises(TypeError, match="aprove"):
        Host({}, aprove="all")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="more than 1 servers"):
        Host({"a": make_server(), "b": make_server()}, limits=HostLimits(servers=1))

    async def main() -> None:
        host = Host({"a": make_server()})
        with pytest.raises(RuntimeError, match="not open"):
            host.tools()
        async with host:
            with pytest.raises(RuntimeError, match="for one block"):
                await host.__aenter__()
        with pytest.raises(RuntimeError, match="closed"):
            host.tools()

    asyncio.run(main())
