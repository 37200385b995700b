"""The trio host: which of the configured servers it uses, and the trace of their messages."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from mcp_core.registry import Server
from mcp_trio.host import Host, MemoryApprovals

if TYPE_CHECKING:
    from pathlib import Path

    import trio


async def test_trace_gets_each_message_with_the_name_of_its_server(
    autojump_clock: trio.abc.Clock,
) -> None:
    traced: list[tuple[str, str, str]] = []

    def trace(server: str, direction: str, line: bytes) -> None:
        traced.append((server, direction, json.loads(line).get("method", "")))

    async with Host({"a": Server("a"), "b": Server("b")}, trace=trace) as host:
        await host.client("b").ping()
    assert {server for server, _, _ in traced} == {"a", "b"}
    assert ("b", "sent", "server/discover") in traced
    assert ("b", "received", "") in traced


async def test_servers_names_those_of_the_files_that_are_used(tmp_path: Path) -> None:
    file = tmp_path / ".mcp.json"
    entry = {"command": sys.executable}
    file.write_text(json.dumps({"mcpServers": {"a": entry, "b": entry, "c": entry}}))
    async with Host(file, servers=["a", "c", "x"], approvals=MemoryApprovals()) as host:
        assert {name: status.state for name, status in host.status().items()} == {
            "a": "unapproved",
            "c": "unapproved",
        }
        assert host.configuration is not None
        assert list(host.configuration.servers) == ["a", "b", "c"]
        await host.reload()
        assert list(host.status()) == ["a", "c"]
