"""A server that changes 500 tools all the time doesn't hold up other tasks of its host."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from mcp_asyncio_shim import Host as AsyncioHost
from mcp_core.host import define, find_warnings
from mcp_core.host.catalog import _server as catalog_server
from mcp_core.runtime.host import ServerSource, _questions
from mcp_trio.host import Host as TrioHost
from tests.harness import either
from tests.harness.jsonrpc import D
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp_core.runtime import AbstractClient
    from mcp_core.runtime.host import DefinitionsQuestion

pytestmark = pytest.mark.usefixtures("each_driver")

TOOLS: Final = 500
# What is done in two steps: trio runs the tasks of a turn in random order, so that two steps of the
# host may come between two of the task that counts.
MOST: Final = {"define": 2 * 50, "find_warnings": 2 * 20}


class Changing(ServerSource):
    """A server in this process with 500 tools, which `change` replaces by others of their names."""

    name = "changing"

    def __init__(self) -> None:
        self.generation = 0
        self._changed = either.Event()

    def change(self) -> None:
        self.generation += 1
        self._changed.set()

    def connect(self, options: Any, inputs: Any, launch: Any) -> Any:
        return self._connect(options)

    @asynccontextmanager
    async def _connect(self, options: Any) -> AsyncIterator[AbstractClient]:
        ours, theirs = either.memory_pair()
        options["versions"] = [D]
        async with either.open_nursery() as nursery:
            nursery.start_soon(self._serve, Wire(theirs, D))
            async with either.connect_stream(ours, **options) as client:
                yield client
            nursery.cancel_scope.cancel()

    async def _serve(self, peer: Wire) -> None:
        await peer.open_as_server({"tools": {"listChanged": True}})
        async with either.open_nursery() as nursery:
            nursery.start_soon(self._announce, peer)
            async for message in peer:
                if message.get("method") == "tools/list":
                    await peer.answer(message, {"tools": self._tools()})

    async def _announce(self, peer: Wire) -> None:
        while True:
            await self._changed.wait()
            self._changed = either.Event()
            await peer.notify("notifications/tools/list_changed", {})

    def _tools(self) -> list[dict[str, Any]]:
        text = f"Does it in generation {self.generation}."
        schema = {"type": "object"}
        return [
            {"name": f"tool{number}", "description": text, "inputSchema": schema}
            for number in range(TOOLS)
        ]

    def same_as(self, other: Any) -> bool:
        return self is other


class Work:
    """How often functions were called, in all and between two turns of a task that only yields."""

    def __init__(self) -> None:
        self.most: Counter[str] = Counter()
        self.total: Counter[str] = Counter()
        self._step: Counter[str] = Counter()

    def counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any) -> Any:
            self.total[name] += 1
            self._step[name] += 1
            self.most[name] = max(self.most[name], self._step[name])
            return function(*args)

        return counting

    async def run_until(self, is_done: Callable[[], bool]) -> None:
        for _ in range(10_000):  # turns; a few hundred are enough
            await either.sleep(0)
            self._step.clear()
            if is_done():
                return
        raise AssertionError("this takes too many turns")


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    work = Work()
    monkeypatch.setattr(catalog_server, "define", work.counted("define", define))
    monkeypatch.setattr(_questions, "find_warnings", work.counted("find_warnings", find_warnings))
    return work


async def test_long_list_that_changes_takes_bounded_steps(work: Work) -> None:
    """500 definitions change at once: the host's work is cut into slices between checkpoints."""
    source = Changing()
    asked: list[DefinitionsQuestion] = []

    async def ask(question: DefinitionsQuestion) -> bool:
        asked.append(question)
        return False

    host_type: Any = TrioHost if either.on_trio() else AsyncioHost
    async with host_type({}, on_approve_definitions=ask) as host:
        host.add_source(source)
        await host.wait_settled()
        work.total.clear()
        for count in range(1, 4):
            await either.sleep(2)  # the list was read long ago
            work.most.clear()
            source.change()
            await work.run_until(lambda count=count: len(asked) == count)  # type: ignore[misc]
            assert len(asked[-1].definitions) == TOOLS
            assert work.total == {"define": count * TOOLS, "find_warnings": count * TOOLS}
            assert all(work.most[name] <= most for name, most in MOST.items())


async def test_change_without_a_callback_finds_no_warnings(work: Work) -> None:
    source = Changing()
    host_type: Any = TrioHost if either.on_trio() else AsyncioHost
    async with host_type({}) as host:
        host.add_source(source)
        await host.wait_settled()
        for _ in range(3):
            await either.sleep(2)
            source.change()
            await either.sleep(2)
        assert work.total == {"define": 4 * TOOLS}
        assert host.tools() == ()


async def test_pending_definitions_take_bounded_steps(work: Work) -> None:
    """500 tools at once: others run after each 20 of them."""
    source = Changing()
    questions: list[DefinitionsQuestion] = []
    host_type: Any = TrioHost if either.on_trio() else AsyncioHost

    async def look(host: Any) -> None:
        questions.append((await host.pending())["changing"])

    async with host_type({}) as host:
        host.add_source(source)
        await host.wait_settled()
        await either.sleep(2)
        source.change()
        await either.sleep(2)
        assert "find_warnings" not in work.total
        async with either.open_nursery() as nursery:
            nursery.start_soon(look, host)
            await work.run_until(lambda: bool(questions))
        assert work.total["find_warnings"] == TOOLS
        assert work.most["find_warnings"] <= MOST["find_warnings"]
        assert len(questions[0].definitions) == TOOLS


async def test_one_tool_that_changes_costs_one_digest(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The digests of the 499 others are reused."""
    source = Changing()
    host_type: Any = TrioHost if either.on_trio() else AsyncioHost
    async with host_type({}) as host:
        host.add_source(source)
        await host.wait_settled()
        await either.sleep(2)
        tools = source._tools()
        tools[7]["description"] = "Does something else."
        monkeypatch.setattr(source, "_tools", lambda: tools)
        work.total.clear()
        source.change()
        await either.sleep(2)
        assert work.total == {"define": 1}
        assert len((await host.pending())["changing"].definitions) == 1
