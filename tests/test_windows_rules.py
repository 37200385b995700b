"""The rules of Windows for environments and programs, forced where each driver starts a program.

No program is started. `tests/core/client/` has the rules themselves.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_asyncio_shim import _stdio
from mcp_core import ConnectFailed
from mcp_trio.streams import _child
from tests.harness.world import loop

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., dict[str, str]]


@pytest.fixture(params=["trio", "asyncio", "asyncio, threads"])
def start(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Return a function that begins to start a program, and returns the environment for it."""
    found: list[dict[str, str]] = []

    def refuse(*words: Any, env: dict[str, str], **options: Any) -> Any:
        found.append(env)
        raise FileNotFoundError(2, "No such file")

    async def refuse_later(*words: Any, **options: Any) -> Any:
        refuse(*words, **options)

    monkeypatch.setattr(trio.lowlevel, "open_process", refuse_later)
    monkeypatch.setattr(asyncio, "create_subprocess_exec", refuse_later)
    monkeypatch.setattr("subprocess.Popen", refuse)
    for module in (_child, _stdio):
        monkeypatch.setattr(module, "_WINDOWS", True)
    monkeypatch.setattr(_stdio, "_HAS_POLLABLE_PIPES", request.param == "asyncio")

    async def with_trio(command: list[str], options: Any) -> None:
        async with mcp_trio.connect_stdio(command, **options):
            raise AssertionError

    async def with_asyncio(command: list[str], options: Any) -> None:
        async with mcp_asyncio_shim.connect(command, **options):
            raise AssertionError

    def run(command: list[str], options: Any) -> None:
        if request.param == "trio":
            trio.run(with_trio, command, options)
        else:
            loop.run(with_asyncio(command, options))

    def play(command: list[str], **options: Any) -> dict[str, str]:
        with pytest.raises(ConnectFailed):
            run(command, options)
        return found.pop()

    return play


@pytest.mark.parametrize("inherit_env", [False, True])
def test_program_on_windows_gets_its_variables_in_capitals(
    start: Start, inherit_env: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name in other letters replaces the variable rather than stand beside it."""
    (tmp_path / "it.exe").touch()
    monkeypatch.setenv("SystemRoot", "C:\\Windows")
    monkeypatch.setenv("Canary", "secret")
    environ = start(
        [f"{tmp_path}/it.exe"], env={"Path": "C:\\bin", "ours": "a"}, inherit_env=inherit_env
    )
    assert environ["PATH"] == "C:\\bin"
    assert environ["OURS"] == "a"
    assert environ["SYSTEMROOT"] == "C:\\Windows"
    assert not {"Path", "ours", "SystemRoot"} & environ.keys()
    assert environ.get("CANARY") == ("secret" if inherit_env else None)
