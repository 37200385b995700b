"""Pins of a host beside other hosts, a store that fails, and servers that offer too much.

In each test a change of a definition must not come past its user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import CallTimeout
from mcp_core.host import (
    ApprovalRequired,
    ServerApproval,
    ServerLaunch,
    ToolRule,
    define,
    digest_launch,
)
from mcp_core.runtime.host import MemoryApprovals
from mcp_core.types import Tool
from tests.core.runtime.host.world import FailingApprovals
from tests.drivers.played_host import Host, PlayedServer, PlayedSource, reached, tool, usable
from tests.harness import either

if TYPE_CHECKING:
    from mcp_core.host import Approvals

pytestmark = pytest.mark.usefixtures("each_driver", "hosts_without_threads")

FILE = "/project/.mcp.json"
GOOD, POISON = tool("look", "Good."), tool("look", "Poison.")
LAUNCH = ServerLaunch(transport="stdio", command="/usr/bin/server", directory="/project")


class StoredSource(PlayedSource):
    """A source of a file, which is approved with `LAUNCH` if that is needed."""

    file = FILE

    def prepare(self) -> ServerLaunch:
        return LAUNCH


def pinned(definition: dict[str, Any]) -> Any:
    return define(
        Tool(
            name=definition["name"],
            description=definition["description"],
            input_schema=definition["inputSchema"],
        )
    )


def stored(approvals: Approvals) -> list[str]:
    """Return the descriptions of the stored pins."""
    found = approvals.find(FILE, "played")
    assert found is not None
    return [each.members["description"] for each in found.pins or ()]


async def test_pins_that_were_approved_elsewhere_count_when_the_server_starts() -> None:
    """A first sight must not replace what the user has reviewed in another program meanwhile."""
    source, store = StoredSource(server=PlayedServer(POISON)), MemoryApprovals()
    source.needs_approval = True
    async with Host([source], approvals=store) as host:
        assert host.status()["played"].state == "unapproved"
        [good] = [pinned(GOOD)]
        approval = ServerApproval(launch=digest_launch(LAUNCH), pins=(good,))
        store.change(lambda old: old.with_server(FILE, "played", approval))
        await host.replace_sources([source])
        await reached(host, "ready")
        await either.sleep(5)
        assert host.tools() == ()
        assert len((await host.pending())["played"].comparison.changed) == 1
        assert stored(store.load()) == ["Good."]


async def test_pins_of_two_hosts_are_stored_beside_each_other() -> None:
    """The first host stores its new tool and must not restore its old pin for the other."""
    store = MemoryApprovals()
    first, second = PlayedServer(GOOD), PlayedServer(GOOD)
    async with (
        Host([StoredSource(server=first)], approvals=store) as one,
        Host([StoredSource(server=second)], approvals=store) as two,
    ):
        newer = tool("look", "Newer.")
        await second.change(newer)
        await either.sleep(2)
        await two.approve_definitions((await two.pending())["played"])
        assert stored(store.load()) == ["Newer."]
        await first.change(GOOD, tool("more", "More."))
        await either.sleep(2)
        await one.approve_definitions((await one.pending())["played"])
        assert sorted(stored(store.load())) == ["More.", "Newer."]


async def test_first_pins_that_cannot_be_stored_fail_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Else each run would be a first sight, and no change would ever be found."""
    async with Host([StoredSource()], approvals=FailingApprovals()) as host:
        status = host.status()["played"]
        assert (status.state, status.retry_at) == ("failed", None)
        assert "cannot be stored: the disk is full" in status.reason
        assert host.tools() == ()
    assert "the pins of played are not stored" in caplog.text


@pytest.mark.parametrize(
    ("tools", "problem"),
    [
        ([tool("look", "x" * 300_000)], "and the limit is 262144"),
        (
            [tool(f"look{number}", "x" * 200_000) for number in range(11)],
            "in all, and the limit is 2097152",
        ),
    ],
)
async def test_definitions_that_are_too_large_are_a_problem(
    tools: list[dict[str, Any]], problem: str
) -> None:
    server = PlayedServer(GOOD)
    async with Host([StoredSource(server=server)]) as host:
        await server.change(*tools)
        await either.sleep(2)
        assert problem in host.catalog("played").problems["tools"]
        assert [each.description for each in host.tools()] == ["Good."]
        await server.change(GOOD, tool("more"))
        await either.sleep(2)
        assert host.catalog("played").problems == {}


async def test_instructions_that_are_too_large_count_as_none() -> None:
    server = PlayedServer(GOOD)
    server.instructions = "x" * 300_000
    async with Host([StoredSource(server=server)]) as host:
        assert host.instructions() == {}
        assert len(host.tools()) == 1


async def test_call_of_a_server_that_lists_without_end_times_out() -> None:
    """Each page has a next cursor: the call's timeout still counts, and so does the list's."""
    server = PlayedServer(GOOD)

    async def answer(request: dict[str, Any]) -> None:
        await either.sleep(0.5)
        cursor = f"page {server.received['tools/list']}"
        await server.peer.answer(request, {"tools": [], "nextCursor": cursor})

    server.answers["tools/list"] = answer
    async with Host([StoredSource(server=server)], wait=0, connect_timeout=20) as host:
        await reached(host, "ready")
        before = either.current_time()
        with pytest.raises(CallTimeout, match="played was not ready within 1 s"):
            await host.call_tool("played", "look", timeout=1)
        assert either.current_time() - before == pytest.approx(1)
        await host.wait_settled()
        assert either.current_time() - before < 25
        assert "max_timeout" in host.catalog("played").problems["tools"]


async def test_call_is_not_made_with_another_definition_than_was_approved() -> None:
    """While the user reads the question, the server restarts with another tool of this name."""
    server = PlayedServer(GOOD)

    async def approve(_: object) -> bool:
        server.lists["tools"] = [tool("look", "Another one.")]
        await server.die()
        await usable(host)
        await either.sleep(5)
        assert [each.description for each in host.tools()] == ["Another one."]
        return True

    source = StoredSource(server=server)
    source.is_trusted = False
    async with Host(
        [source], on_approve_call=approve, on_approve_definitions=lambda _: True
    ) as host:
        with pytest.raises(ApprovalRequired, match="changed"):
            await host.call("mcp__played__look")
    assert server.received["tools/call"] == 0


async def test_server_whose_approval_was_removed_is_ended_when_approvals_are_read_again() -> None:
    """Revoking must work on a running host, and not only at its next start."""
    source, store = StoredSource(), MemoryApprovals()
    source.needs_approval = True
    async with Host([source], approvals=store, on_approve_server=lambda _: True) as host:
        assert host.status()["played"].state == "ready"
        host._options["on_approve_server"] = None
        await host.replace_sources([source])
        assert host.status()["played"].state == "ready"
        store.change(lambda old: old.with_server(FILE, "played", None))
        await host.replace_sources([source])
        await host.wait_settled()
        assert host.status()["played"].state == "unapproved"
        await either.sleep(1)
        assert (len(source.closed), host.tools()) == (1, ())


async def test_rules_for_any_definition_end_when_another_launch_is_approved() -> None:
    """Broad permissions were given to the old program; denials and rules with a digest stay."""
    source, store = StoredSource(), MemoryApprovals()
    source.needs_approval = True
    rules = (
        ToolRule(tool="l*", is_pattern=True),
        ToolRule(tool="d*", is_pattern=True, is_allowed=False),
        ToolRule(tool="look", digest="sha256:1"),
    )
    before = ServerApproval(launch="sha256:of another one", rules=rules)
    store.change(lambda old: old.with_server(FILE, "played", before))
    async with Host([source], approvals=store, on_approve_server=lambda _: True) as host:
        assert host.status()["played"].state == "ready"
    found = store.load().find(FILE, "played")
    assert found is not None
    assert found.rules == rules[1:]
