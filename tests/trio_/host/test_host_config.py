"""`Host` with configuration files: their problems are logged, and they are read again."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_trio
from mcp_trio.host import MemoryApprovals, _config_files

if TYPE_CHECKING:
    from pathlib import Path


async def warnings_of(file: Path, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Open a host with a file, and return what is logged."""
    async with mcp_trio.Host(file, approvals=MemoryApprovals()) as host:
        assert host.status() == {}
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    return [record.getMessage() for record in caplog.records]


async def test_host_config_file_that_is_missing_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "typo.json"
    assert await warnings_of(file, caplog) == [f"{file}:1:1: there is no such file"]


async def test_host_config_problems_are_logged_up_to_a_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / ".mcp.json"
    servers = {f"server-{number}": {"command": number} for number in range(12)}
    file.write_text(json.dumps({"mcpServers": servers}))
    *first, last = await warnings_of(file, caplog)
    assert len(first) == 10
    assert all("must be a string, not a number" in text for text in first)
    assert last == "2 more problems of configuration files"


async def states_after(host: mcp_trio.Host, config: str, file: Path) -> dict[str, str]:
    """Write a file, read it again, and return the states of the servers."""
    await trio.Path(file).write_text(config)
    await host.reload()
    await host.wait_settled()
    return {name: status.state for name, status in host.status().items()}


async def test_host_that_is_reloaded_keeps_servers_whose_file_cannot_be_read(
    tmp_path: Path,
) -> None:
    """The file may be half written by an editor."""
    file = tmp_path / ".mcp.json"
    whole = json.dumps({"mcpServers": {"a": {"command": "no"}, "b": {"command": "no"}}})
    file.write_text(whole)
    async with mcp_trio.Host(file, approvals=MemoryApprovals()) as host:
        both = {"a": "failed", "b": "failed"}
        assert await states_after(host, whole[:30], file) == both
        assert await states_after(host, whole.replace('"no"', "5", 1), file) == both
        assert await states_after(
            host, json.dumps({"mcpServers": {"b": {"command": "no"}}}), file
        ) == {"b": "failed"}
        await trio.Path(file).unlink()
        await host.reload()
        assert list(host.status()) == ["b"]
        assert await states_after(host, "{}", file) == {}


@pytest.mark.parametrize("is_broken", [False, True])
@pytest.mark.parametrize(
    ("managed", "left"),
    [
        ({"mcpServers": {}}, []),
        ({"deniedMcpServers": [{"serverName": "a"}]}, ["b"]),
        ({"allowedMcpServers": []}, []),
        ({"deniedMcpServers": [{"serverName": "other"}]}, ["a", "b"]),
    ],
)
async def test_host_that_is_reloaded_obeys_the_administrator_of_now(
    managed: dict[str, Any],
    left: list[str],
    is_broken: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The managed file appears while the host runs; a broken user file can't keep it out."""
    managed_file = tmp_path / "managed.json"
    monkeypatch.setattr(_config_files, "_MANAGED_FILE", managed_file)
    monkeypatch.setattr(_config_files, "find_unsafe_path", lambda *_, **__: None)
    file = tmp_path / ".mcp.json"
    whole = json.dumps({"mcpServers": {"a": {"command": "no"}, "b": {"command": "no"}}})
    file.write_text(whole)
    async with mcp_trio.Host(file, approvals=MemoryApprovals()) as host:
        managed_file.write_text(json.dumps(managed))
        assert list(await states_after(host, whole[:30] if is_broken else whole, file)) == left


async def test_host_that_is_reloaded_keeps_no_server_of_files_it_does_not_use_any_more(
    tmp_path: Path,
) -> None:
    file = tmp_path / ".mcp.json"
    file.write_text('{"mcpServers": {"a": {"command": "no"}, "b": {"command": 5}}}')
    async with mcp_trio.Host(file, approvals=MemoryApprovals()) as host:
        assert list(host.status()) == ["a"]
        await host.reload({})
        assert (host.status(), host.configuration) == ({}, None)
