"""A server that needs an approval is not started by a word that approves something else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_asyncio_shim
import mcp_trio
from mcp_core.host import (
    ApprovalRequired,
    Approvals,
    ServerApproval,
    ServerLaunch,
    ToolRule,
    digest_launch,
)
from mcp_core.registry import Server
from mcp_core.runtime.host import MemoryApprovals, ServerSource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core.drivers import ClientConfigOptions
    from mcp_core.runtime.host import ClientConnection

FILE, USERS = "/checkout/.mcp.json", "/home/me/mcp.json (user)"
LAUNCH = ServerLaunch(transport="stdio", command="/checkout/evil", directory="/checkout")
OTHER = ServerLaunch(transport="stdio", command="/checkout/good", directory="/checkout")
# `Host` and `connect` of each driver, and what runs a coroutine function.
DRIVERS = [
    pytest.param(mcp_trio.Host, mcp_trio.connect, trio.run, id="trio"),
    pytest.param(
        mcp_asyncio_shim.Host,
        mcp_asyncio_shim.connect,
        lambda main: asyncio.run(main()),
        id="asyncio",
    ),
]


class CheckoutsServer(ServerSource):
    """A server of a checkout with the name of the user's own, which notes its starts."""

    name = "notes"
    file = FILE
    needs_approval = True
    is_trusted = False
    replaces = (USERS,)

    def __init__(self, connect: Callable[..., ClientConnection]) -> None:
        self.starts = 0
        self._connect = connect

    def prepare(self) -> ServerLaunch:
        return LAUNCH

    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        assert launch == LAUNCH
        self.starts += 1
        server = Server("notes")

        @server.tool
        def write(text: str) -> str:
            """Write something."""
            return text

        return self._connect(server, **options)

    def same_as(self, other: Any) -> bool:
        return self is other


def stored(approval: ServerApproval) -> dict[str, Any]:
    return {"approvals": MemoryApprovals(Approvals().with_server(FILE, "notes", approval))}


EVERYTHING = (ToolRule(tool="*", is_pattern=True),)


@pytest.mark.parametrize(("host", "connect", "run"), DRIVERS)
@pytest.mark.parametrize(
    "options",
    [
        {"approve": "all"},
        {"on_call": lambda *_: "allow"},
        {"on_approve_call": lambda _: True},
        {"on_approve_definitions": lambda _: True},
        {"on_approve_server": lambda question: not question.replaces},
        stored(ServerApproval(rules=EVERYTHING)),
        stored(ServerApproval(launch=digest_launch(OTHER), replaces=(USERS,))),
        stored(ServerApproval(launch=digest_launch(LAUNCH))),
        stored(ServerApproval(launch=digest_launch(LAUNCH), replaces=("/other (user)",))),
    ],
    ids=["all", "on_call", "call", "definitions", "asks", "rule", "launch", "place", "file"],
)
def test_server_in_place_of_users_is_started_by_no_other_approval(
    host: Any, connect: Any, run: Any, options: dict[str, Any]
) -> None:
    source = CheckoutsServer(connect)

    async def main() -> None:
        async with host([source], **{"approve": "all", **options}) as opened:
            assert opened.status()["notes"].state == "unapproved"
            with pytest.raises(ApprovalRequired):
                await opened.call_tool("notes", "write", {"text": "secret"})

    run(main)
    assert source.starts == 0


@pytest.mark.parametrize(("host", "connect", "run"), DRIVERS)
def test_server_in_place_of_users_is_started_after_what_was_shown_is_approved(
    host: Any, connect: Any, run: Any
) -> None:
    """The question names the server that is replaced, and the stored approval names it too."""
    source = CheckoutsServer(connect)
    store = MemoryApprovals()

    async def main() -> None:
        async with host([source], approvals=store) as opened:
            question = await opened.server_question("notes")
            assert any(USERS in line.text for line in question.lines())
            await opened.approve_server(question)
            await opened.wait_settled()
            assert opened.status()["notes"].state == "ready"

    run(main)
    assert source.starts == 1
    found = store.load().find(FILE, "notes")
    assert found is not None
    assert found.replaces == (USERS,)
