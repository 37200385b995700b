"""A right client that is broken by script, and its mutants as targets of the fuzzer of clients."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import trio
from trio.testing import memory_stream_pair

import mcp_trio
from mcp_core import McpTrioError
from mcp_core import types as t
from mcp_trio.oracle.fuzz.client._client_target import ClientTarget
from mcp_trio.oracle.fuzz.client._lines import LineConversation
from tests.oracle_score.wrapper import MutantProcess, Wrapper

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_trio.oracle.fuzz.client._client_session import ClientSession
    from tests.oracle_score.operators import MutantPlace
    from tests.oracle_score.wrapper import ServeStream

__all__ = ["ClientMutantTarget", "visit_server"]

TIMEOUT: Final = 3.0  # seconds for each of the client's requests


def _sample(params: t.CreateMessageParams) -> t.CreateMessageResult:
    return t.CreateMessageResult(role="assistant", content=t.TextContent("yes"), model="none")


async def visit_server(stream: trio.abc.Stream) -> None:
    """Have a short conversation with the server on a stream, and end."""
    handlers: dict[str, Any] = {
        "on_elicit": lambda question: t.ElicitResult(action="decline"),
        "on_roots": ["file:///srv/score"],
        "on_sample": _sample,
    }
    limit: dict[str, Any] = {"timeout": TIMEOUT}
    with suppress(McpTrioError):
        async with mcp_trio.connect_stream(stream, **handlers) as client:
            requests: list[Callable[[], Awaitable[object]]] = [
                lambda: client.list_tools(**limit),
                lambda: client.call_tool("sum", {"a": 1, "b": 2}, **limit),
                lambda: client.list_resources(**limit),
                lambda: client.read_resource("note:///one", **limit),
                lambda: client.list_prompts(**limit),
                lambda: client.call_tool(
                    "sum", {"a": 3, "b": 4}, progress=lambda *report: None, **limit
                ),
            ]
            for each in requests:
                with suppress(McpTrioError):
                    await each()


class ClientMutantTarget(ClientTarget):
    """A client, broken at a place, as a command.

    Args:
        visit: has the client's conversation with the server on a stream.
        place: where it is broken; None for nowhere.

    Attributes:
        starts: how many processes were started.
    """

    def __init__(self, visit: ServeStream, place: MutantPlace | None) -> None:
        super().__init__(("mutant",))
        self.starts = 0
        self._visit = visit
        self._mutant_place = place
        self._kept: dict[str, Any] = {}

    @asynccontextmanager
    async def start(self, session: ClientSession, timeout: float) -> AsyncIterator[Any]:
        """Start a mutant for a session, and stop it after the block."""
        self.starts += 1
        ours, theirs = memory_stream_pair()
        child = MutantProcess(ours)
        wrapper = Wrapper(theirs, self._visit, self._mutant_place, self._kept)

        async def run() -> None:
            child.returncode = await wrapper.run()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(run)
            nursery.start_soon(LineConversation(session, ours, timeout).run)
            yield child
            nursery.cancel_scope.cancel()
