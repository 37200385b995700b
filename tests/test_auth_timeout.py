"""A check of a token that never ends, with both drivers in jumping time."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
import trio
from trio.testing import MockClock

import mcp_asyncio_shim
import mcp_trio
from mcp_core.auth import Grant, OAuthResourceServer
from tests.harness.wire import asgi
from tests.harness.wire.router import POST
from tests.harness.world import loop


async def main(driver: Any) -> None:
    async def verify(token: str) -> Grant | None:
        await anyio.sleep_forever()
        raise AssertionError

    auth = OAuthResourceServer(asgi.RESOURCE, ["https://as.example.com"], verify)
    async with asgi.serve_app(driver.asgi(asgi.Neutral().server, auth=auth)) as host:
        began = anyio.current_time()
        call = await asgi._authorized_call(host, "ann").end()
        assert call.status == 503
        assert anyio.current_time() - began == pytest.approx(20)


async def play_slow_body(driver: Any) -> None:
    async def verify(token: str) -> Grant | None:
        await anyio.sleep(3)
        return Grant("ann")

    auth = OAuthResourceServer(asgi.RESOURCE, ["https://as.example.com"], verify)
    async with asgi.serve_app(driver.asgi(asgi.Neutral().server, auth=auth)) as host:
        began = anyio.current_time()
        call = host.begin("POST", [*POST, (b"authorization", b"Bearer ann")], None)
        await call.end()
        assert call.status == 408
        assert anyio.current_time() - began == pytest.approx(3 + 5 * 60)


def test_body_that_does_not_come_after_the_token_check_is_given_up_on_trio() -> None:
    trio.run(play_slow_body, mcp_trio, clock=MockClock(autojump_threshold=0))


def test_body_that_does_not_come_after_the_token_check_is_given_up_on_asyncio() -> None:
    loop.run(play_slow_body(mcp_asyncio_shim))


def test_token_check_that_hangs_is_given_up_on_trio() -> None:
    trio.run(main, mcp_trio, clock=MockClock(autojump_threshold=0))


def test_token_check_that_hangs_is_given_up_on_asyncio() -> None:
    loop.run(main(mcp_asyncio_shim))
