"""The trio host: the trace of the messages of its servers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from mcp_core.registry import Server
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
