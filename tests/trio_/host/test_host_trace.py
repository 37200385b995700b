"""The trio host: the trace of the messages of its servers, as calls or as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from mcp_core.registry import Server
from mcp_core.trace import read_trace
from mcp_trio.host import Host

if TYPE_CHECKING:
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


async def test_record_writes_a_trace_for_each_server(tmp_path: Path) -> None:
    directory = tmp_path / "traces"
    async with Host({"a": Server("a"), "b/c": Server("b")}, record=directory) as host:
        await host.client("a").ping()
    traces = {path.name: read_trace([path.read_bytes()]) for path in directory.iterdir()}
    assert sorted(traces) == ["a.mcp.jsonl", "b%2Fc.mcp.jsonl"]
    for header, lines in traces.values():
        assert (header.observer, header.transport) == ("client", "memory")
        assert any("server/discover" in str(line) for _, line in lines)


async def test_record_in_a_directory_that_cannot_be_made_is_the_reason_of_the_failure(
    tmp_path: Path,
) -> None:
    async with Host({"a": Server("a")}, record=tmp_path / "no" / "dir") as host:
        status = host.status()["a"]
    assert status.state == "failed"
    assert "cannot record in" in str(status)
