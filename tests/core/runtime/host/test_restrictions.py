"""Tools that the configuration of a server does not let be used: in no list, and never called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.host import AuditRecord, CallDenied, ToolRule, UnknownName, plain_name
from mcp_core.registry import Server
from mcp_core.types import ToolAnnotations
from tests.core.runtime.host.world import FakeSource, opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.runtime.host import AbstractHost

DENIAL = "its file denies it (f:1:1: deniedTools)"


class RestrictedSource(FakeSource):
    """A server whose file denies the tool `write`, and those that it adds with this beginning."""

    def find_tool_denial(self, tool: str) -> str | None:
        return DENIAL if tool.startswith("write") else None


def make_server(called: list[str]) -> Server:
    server = Server("notes")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def read() -> str:
        """Read it."""
        called.append("read")
        return "read"

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def write() -> str:
        """Write it."""
        called.append("write")
        return "wrote"

    return server


CALLS: list[tuple[str, Callable[[AbstractHost], Any]]] = [
    ("by its server", lambda host: host.call_tool("notes", "write")),
    ("by its merged name", lambda host: host.call("mcp__notes__write")),
    ("as a task", lambda host: host.start_tool("notes", "write")),
]


@pytest.mark.parametrize("needs_pins", [True, False])
@pytest.mark.parametrize(("way", "call"), CALLS, ids=[way for way, _ in CALLS])
async def test_denied_tool_is_in_no_list_and_cannot_be_called(
    way: str, call: Callable[[AbstractHost], Any], needs_pins: bool, autojump_clock: Any
) -> None:
    """A host that approves everything, with a rule for `*`, still obeys the configuration."""
    called: list[str] = []
    records: list[AuditRecord] = []
    source = RestrictedSource("notes", make_server(called), needs_pins=needs_pins)
    allow_all = {"approve": "all", "on_call": lambda *_: "allow", "audit": records.append}
    async with opened([source], **allow_all) as (host, _):
        await host.add_rule("notes", ToolRule(tool="*", is_pattern=True))
        assert [tool.name for tool in host.tools()] == ["mcp__notes__read"]
        catalog = host.catalog("notes")
        assert [tool.name for tool in catalog.tools] == ["read"]
        assert catalog.tool("write") is None
        assert catalog.state("tool", "write") == "absent"
        assert await host.pending() == {}
        assert all(pin.name != "write" for pin in catalog.pins or ())
        with pytest.raises(CallDenied) as caught:
            await call(host)
        assert caught.value.reason == DENIAL
        assert str(caught.value) == f"write of notes was denied: {DENIAL}"
        assert [record.outcome for record in records] == ["denied"]
        assert (await host.call("mcp__notes__read")).text == "read"
    assert called == ["read"]


async def test_denied_tool_is_refused_before_its_server_is_waited_for() -> None:
    source = RestrictedSource("notes", make_server([]), is_disabled=True)
    async with opened([source]) as (host, _):
        with pytest.raises(CallDenied):
            await host.call_tool("notes", "write")
        with pytest.raises(UnknownName):
            await host.call("mcp__notes__write")  # its name is known once it was listed


async def test_denied_tool_takes_no_name_from_another() -> None:
    """Without prefixes both servers offer `write`; the denied one must not cause a collision."""
    called: list[str] = []
    other = Server("other")

    @other.tool
    def write() -> str:
        """Write it."""
        called.append("other")
        return "wrote"

    sources = [
        RestrictedSource("notes", make_server(called), needs_pins=False),
        FakeSource("other", other, needs_pins=False),
    ]
    async with opened(sources, names=plain_name, approve="all") as (host, _):
        assert sorted(tool.name for tool in host.tools()) == ["read", "write"]
        assert host.collisions() == []
        await host.call("write")
    assert called == ["other"]


async def test_tool_that_is_added_later_is_denied_too(autojump_clock: Any) -> None:
    """The restriction is a pattern that also holds for names the server invents later."""
    called: list[str] = []
    server = make_server(called)
    source = RestrictedSource("notes", server, needs_pins=False)
    async with opened([source], approve="all") as (host, _), host.changes() as changes:

        def write_more() -> str:
            """Write More it."""
            called.append("write_more")
            return "wrote"

        def read_more() -> str:
            """Read More it."""
            return "read"

        server.tool(write_more)
        server.tool(read_more)
        async for change in changes:
            if change.kind == "tools" and host.catalog("notes").tool("read_more"):
                break
        names = [tool.name for tool in host.tools()]
        assert names == ["mcp__notes__read", "mcp__notes__read_more"]
        with pytest.raises(CallDenied):
            await host.call("mcp__notes__write_more")
    assert called == []
