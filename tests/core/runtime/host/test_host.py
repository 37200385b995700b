"""A host: tools that are started as tasks, servers that stay failed, and the causes of errors."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from mcp_core import ConnectFailed, LocalProtocolError
from mcp_core.host import ApprovalRequired, AuditRecord, ServerUnavailable
from mcp_core.registry import Server
from tests.core.runtime.host.world import FakeSource, opened


def notes() -> Server:
    server = Server("notes")

    @server.tool
    def add(text: str) -> str:
        """Add a note."""
        return f"added {text}"

    return server


async def test_start_tool_is_approved_and_recorded(autojump_clock: trio.abc.Clock) -> None:
    """A task must not bypass the consent and the audit log of a call."""
    records: list[AuditRecord] = []
    asked: list[Any] = []

    def on_call(*call: Any) -> str:
        asked.append(call)
        return "allow"

    async with opened([FakeSource("a", notes())], on_call=on_call, audit=records.append) as (
        host,
        _,
    ):
        task = await host.start_tool("a", "add", {"text": "x"})
        result = await task.result()
    assert result.content[0].text == "added x"  # type: ignore[union-attr]
    assert asked == [("a", "add", {"text": "x"})]
    assert [(each.tool, each.outcome, each.approved_by) for each in records] == [
        ("add", "ok", "on_call")
    ]


async def test_start_tool_without_approval_is_not_called(autojump_clock: trio.abc.Clock) -> None:
    records: list[AuditRecord] = []
    async with opened([FakeSource("a", notes())], audit=records.append) as (host, _):
        with pytest.raises(ApprovalRequired):
            await host.start_tool("a", "add", {"text": "x"})
    assert [each.outcome for each in records] == ["denied"]


async def test_start_tool_in_a_revision_without_tasks_raises(
    autojump_clock: trio.abc.Clock,
) -> None:
    source = FakeSource("a", notes())
    async with opened([source], approve="all", versions=["2025-06-18"]) as (host, _):
        assert host.client("a").peer.dialect.version == "2025-06-18"
        with pytest.raises(LocalProtocolError):
            await host.start_tool("a", "add", {"text": "x"})


async def test_server_without_restart_is_tried_once(autojump_clock: trio.abc.Clock) -> None:
    source = FakeSource("a", error=ConnectFailed("no route"))
    async with opened([source], restart=False) as (host, _):
        status = host.status()["a"]
        assert (status.state, status.reason, status.retry_at) == ("failed", "no route", None)
        await trio.sleep(100)
        with pytest.raises(ServerUnavailable) as raised:
            host.client("a")
    assert raised.value.__cause__ is source.error
    assert len(source.options) == 1


async def test_server_that_failed_for_good_is_tried_once_more_when_the_host_is_reloaded(
    autojump_clock: trio.abc.Clock,
) -> None:
    """A program that was missing may have been installed."""
    source = FakeSource("a", notes(), error=ConnectFailed("no program"))
    async with opened([source], restart=False) as (host, _):
        assert host.status()["a"].state == "failed"
        source.error = None
        await host.replace_sources([source])
        await host.wait_settled()
        assert host.status()["a"].state == "ready"
