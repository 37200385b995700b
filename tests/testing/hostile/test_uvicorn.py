"""Hostile HTTP clients against the asyncio server, which uvicorn carries.

What a request may be is judged by uvicorn; what a message may be, by us.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

import pytest
import trio

import mcp_asyncio_shim
from mcp_core.registry import Server
from mcp_trio.testing import hostile
from tests.testing.hostile.memory import MIB, BoundedMemory

if TYPE_CHECKING:
    from collections.abc import Iterator

uvicorn = pytest.importorskip("uvicorn")
# All tests in this file share the server, with its sessions.
pytestmark = pytest.mark.may_leave("connection")

# uvicorn serves what RFC 9112 leaves to a server, or is not about the message.
SERVED: Final = ("get-flood", "initialize-flood", "expects-continue", "body-bom")


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    app = mcp_asyncio_shim.asgi(Server("attacked"))
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="on", http="h11")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    deadline = time.monotonic() + 10
    while not server.started and time.monotonic() < deadline:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}/mcp"
    server.should_exit = True
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("attack", [attack.name for attack in hostile.CLIENT_ATTACKS])
def test_asgi_server_under_uvicorn_survives_attack(url: str, attack: str) -> None:
    async def main() -> hostile.AttackOutcome:
        with trio.fail_after(8):
            return await hostile.attack_server(url, attack, seconds=0.4)

    with BoundedMemory(32 * MIB):
        outcome = trio.run(main)
    assert outcome.still_serves
    assert all(status >= 400 for status in outcome.statuses) or attack in SERVED
