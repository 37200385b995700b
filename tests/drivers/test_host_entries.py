"""Hosts of entries as configuration files have them, and what a server gets of the environment."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import TYPE_CHECKING, Any, Literal

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core import ConnectFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

Driver = Literal["trio", "asyncio"]

# A server of 2025-11-25 that says what it was started with.
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
        schema = {"type": "object"}
        answer["result"] = {"tools": [{"name": name, "inputSchema": schema} for name in "ab"]}
    elif message["method"] == "tools/call":
        text = json.dumps({"env": dict(os.environ), "cwd": os.getcwd(), "args": sys.argv[1:]})
        answer["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"""
FAILS = [sys.executable, "-c", "raise SystemExit(3)"]


@pytest.fixture(params=["trio", "asyncio"])
def driver(request: pytest.FixtureRequest) -> Driver:
    found: Driver = request.param
    return found


def run(driver: Driver, function: Callable[[], Awaitable[Any]]) -> Any:
    """Run an async function without arguments on one driver, with real clocks."""
    if driver == "trio":
        return trio.run(function)

    async def main() -> Any:
        return await function()

    return asyncio.run(main())


def make_host(driver: Driver, servers: Any, **options: Any) -> Any:
    package: Any = mcp_trio if driver == "trio" else mcp_asyncio_shim
    return package.Host(servers, approve="all", restart=False, **options)


def call(driver: Driver, entry: Any, **options: Any) -> dict[str, Any]:
    """Return what the server of an entry was started with."""

    async def main() -> dict[str, Any]:
        async with make_host(driver, {"x": entry}, **options) as host:
            assert host.status()["x"].state == "ready", host.status()["x"].reason
            found: dict[str, Any] = json.loads((await host.call_tool("x", "a")).text)
            return found

    found: dict[str, Any] = run(driver, main)
    return found


def reason(driver: Driver, target: Any, **options: Any) -> str:
    """Return why the server of a target has failed."""

    async def main() -> str:
        async with make_host(driver, {"x": target}, **options) as host:
            status = host.status()["x"]
            assert status.state == "failed"
            return str(status.reason)

    found: str = run(driver, main)
    return found


class System:
    """The module `os` of another system."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(os, attribute)


@pytest.mark.parametrize(("system", "home"), [("nt", "/users/ada"), ("posix", "/home/ada")])
def test_home_of_an_entry_is_the_system_s(
    system: str, home: str, driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("USERPROFILE", "/users/ada")
    for module in ("mcp_trio.host._sources", "mcp_asyncio_shim._host"):
        monkeypatch.setattr(f"{module}.os", System(system))
    assert f"cannot start {home}/server: " in reason(driver, {"command": "~/server"})


@pytest.mark.process
def test_entry_of_host_is_started_as_in_a_file(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry's own variables count before the host's."""
    monkeypatch.setenv("OURS", "1")
    entry = {
        "type": "local",
        "command": sys.executable,
        "args": ["-c", PROGRAM, 80],
        "env": {"A": "entry", "FROM": "${OURS}", "PORT": 8080},
        "cwd": tmp_path,
    }
    found = call(driver, entry, env={"A": "host", "B": "host"})
    assert found["args"] == ["80"]
    assert found["cwd"] == str(tmp_path.resolve())
    env = found["env"]
    assert {name: env.get(name) for name in ("A", "B", "FROM", "PORT", "OURS")} == {
        "A": "entry",
        "B": "host",
        "FROM": "1",
        "PORT": "8080",
        "OURS": None,
    }


@pytest.mark.process
def test_host_with_inherit_env_passes_all_variables_on(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OURS", "1")
    command = [sys.executable, "-c", PROGRAM]
    assert call(driver, command, inherit_env=True)["env"]["OURS"] == "1"
    found = call(driver, command, env={"B": "2"})["env"]
    assert (found.get("OURS"), found["B"]) == (None, "2")


@pytest.mark.process
def test_tools_that_an_entry_denies_are_left_out(driver: Driver) -> None:
    entry = {"command": [sys.executable, "-c", PROGRAM], "deniedTools": ["b"]}

    async def main() -> list[str]:
        async with make_host(driver, {"x": entry}) as host:
            return [tool.name for tool in host.tools()]

    assert run(driver, main) == ["mcp__x__a"]


def test_entry_with_command_and_url_is_refused_at_once(driver: Driver) -> None:
    entry = {"command": "npx", "url": "https://h/mcp", "headers": {"Authorization": "CANARY"}}
    with pytest.raises(ValueError, match=r"^x\.url: has both command and url: remove one$"):
        make_host(driver, {"x": entry})
    with pytest.raises(ValueError, match="give the mapping of servers that is inside"):
        make_host(driver, {"mcpServers": {"x": {"command": "npx"}}})


def test_disabled_entry_is_not_started(driver: Driver) -> None:
    async def main() -> str:
        async with make_host(driver, {"x": {"command": "none", "disabled": True}}) as host:
            return str(host.status()["x"].state)

    assert run(driver, main) == "disabled"


def test_entry_with_a_variable_that_is_not_set_fails_with_its_name(driver: Driver) -> None:
    entry = {"url": "https://h/mcp", "headers": {"X": "${NOT_SET_ANYWHERE}"}}
    assert reason(driver, entry) == (
        "x.headers.X: the variable NOT_SET_ANYWHERE is not set, and has no default"
    )


@pytest.mark.parametrize(
    "target",
    [["none-such -y --api-key CANARY server"], {"command": "none-such -y --api-key CANARY server"}],
)
def test_command_in_one_word_fails_with_the_list_of_its_words(driver: Driver, target: Any) -> None:
    words = 'a list of its words: ["none-such", "-y", "--api-key", "...", "server"]'
    assert words in reason(driver, target)


@pytest.mark.parametrize(
    "target", [["none-such --api-key CANARY x"], ["API_KEY=CANARY none-such"], ["API_KEY=CANARY"]]
)
def test_command_in_one_word_shows_no_secret(driver: Driver, target: list[str]) -> None:
    """Both drivers say the same, in the reason and in the error of a connection."""

    async def main() -> None:
        package: Any = mcp_trio if driver == "trio" else mcp_asyncio_shim
        async with package.connect(target):
            pass

    with pytest.raises(ConnectFailed) as failed:
        run(driver, main)
    for text in str(failed.value), reason(driver, target):
        assert "no program of that name on PATH; " in text
        assert "CANARY" not in text


def test_command_in_one_string_is_refused_with_the_list_of_its_words(driver: Driver) -> None:
    with pytest.raises(TypeError, match=r'write \["npx", "-y", "server"\]$'):
        make_host(driver, {"x": "npx -y server"})

    async def main() -> None:
        package: Any = mcp_trio if driver == "trio" else mcp_asyncio_shim
        async with package.connect("npx -y server"):
            pass

    with pytest.raises(TypeError, match=r'not to one string: write \["npx", "-y", "server"\]$'):
        run(driver, main)


@pytest.mark.process
def test_failed_start_names_the_usual_variables_that_were_not_given(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names only: the address of a proxy may have a password."""
    monkeypatch.setenv("HTTPS_PROXY", "http://user:CANARY@proxy")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent")
    monkeypatch.setenv("KUBECONFIG", "/k")
    text = reason(driver, {"command": FAILS, "env": {"KUBECONFIG": "/k"}})
    assert "set here, and not passed on to it: HTTPS_PROXY, SSH_AUTH_SOCK (name what" in text
    assert "CANARY" not in text
    assert "set here" not in reason(driver, FAILS, inherit_env=True)

    async def main() -> None:
        package: Any = mcp_trio if driver == "trio" else mcp_asyncio_shim
        async with package.connect(FAILS, env={"HTTPS_PROXY": ""}):
            pass

    with pytest.raises(ConnectFailed, match="not passed on to it: SSH_AUTH_SOCK, KUBECONFIG"):
        run(driver, main)
