"""The tasks of one conversation. What handlers and their requests do is in `tests/drivers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core import Connection, Role
from mcp_core.registry import Server
from mcp_core.runtime import ServedServer
from mcp_trio import memory_pair
from mcp_trio.streams._dispatch import Dispatch
from mcp_trio.streams._link import Link

if TYPE_CHECKING:
    import trio


@pytest.mark.may_leave("connection")
async def test_dispatch_repr_shows_counts(nursery: trio.Nursery) -> None:
    server = Server("s")
    dispatch = Dispatch(ServedServer(server), nursery)
    dispatch.serve(
        Link(Connection(Role.SERVER, server.config()), memory_pair()[0], dispatch.handle_event)
    )
    assert repr(dispatch) == f"<Dispatch of <Service of {server!r}, 0 jobs>>"
