"""Calls of functions that block: a client starts them and cancels them, and the threads go on."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import pytest
import trio

from mcp_asyncio_shim import _runtime
from mcp_core.registry import Server
from mcp_core.registry.entries._invocation import Invocation
from tests.harness import either
from tests.harness.jsonrpc import D, text_of
from tests.harness.wire.lines import served
from tests.harness.world.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("each_driver", "waits_for_threads")

CALLS = 200
MOST = 40  # threads of handlers, on both drivers


class Blocking:
    """A server whose tool blocks its thread until `go` is set."""

    def __init__(self) -> None:
        self.server = Server("blocking")
        self.go = threading.Event()
        self.started: list[str] = []

        @self.server.tool(thread=True)
        def block(text: str) -> str:
            """Block."""
            self.started.append(text)
            self.go.wait(PATIENCE)
            return text


async def test_cancelled_call_counts_until_its_thread_returns() -> None:
    """As many calls run as there are threads, and the others keep no memory."""
    blocking = Blocking()
    try:
        async with served(blocking.server, D) as wire:
            for id in range(1, CALLS + 1):
                await wire.send(wire.calling(id, "block", {"text": "cancelled"}))
                await wire.ping()  # the call has a thread by now, or waits for one
                await wire.send(cancelled(id))
            await wire.ping()
            gc.collect()
            kept = [each for each in gc.get_objects() if isinstance(each, Invocation)]
            assert len(kept) <= MOST
            del kept
            blocking.go.set()
            assert text_of(await wire.call(-1, "block", {"text": "last"})) == "last"
            assert len(blocking.started) <= MOST + 1
    finally:
        blocking.go.set()


async def test_call_that_is_cancelled_before_it_has_a_thread_does_not_run() -> None:
    """All threads block and ten calls queue; the queue must be empty once they are cancelled."""
    blocking = Blocking()
    try:
        async with served(blocking.server, D) as wire:
            for id in range(1, MOST + 1):
                assert not all_threads_are_taken()
                await wire.send(wire.calling(id, "block", {"text": str(id)}))
                await wire.ping()
            while not all_threads_are_taken():
                await wire.ping()
            for id in range(MOST + 1, MOST + 11):
                await wire.send(wire.calling(id, "block", {"text": "never"}))
            await wire.ping()
            for id in range(MOST + 1, MOST + 11):
                await wire.send(cancelled(id))
            await wire.ping()
            blocking.go.set()
            answered = {(await wire.receive())["id"] for _ in range(MOST)}
            assert answered == set(range(1, MOST + 1))
            assert text_of(await wire.call(-2, "block", {"text": "last"})) == "last"
            assert "never" not in blocking.started
    finally:
        blocking.go.set()


def all_threads_are_taken() -> bool:
    if either.on_trio():
        return trio.to_thread.current_default_thread_limiter().available_tokens == 0
    return _runtime._limiter_of(asyncio.get_running_loop()).locked()


def cancelled(id: int) -> dict[str, Any]:
    method = "notifications/cancelled"
    return {"jsonrpc": "2.0", "method": method, "params": {"requestId": id}}
