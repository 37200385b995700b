"""Attacks on a guard in front of an ASGI application, under real servers, by its paths.

A guard is middleware that protects a prefix of paths, as many applications have it. Servers pass
targets on that have no slash at their start, and a guard lets those through.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import anyio
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

import mcp_asyncio_shim
import mcp_trio
from mcp_core.registry import Server
from tests.core.http.frames import upgrade
from tests.harness.world.asgi_servers import under_hypercorn, under_uvicorn
from tests.harness.world.waiting import PATIENCE
from tests.security.test_attacks_web_pages import ask, request, status_of

if TYPE_CHECKING:
    from tests.harness.wire.asgi import App

SERVERS: Final[dict[str, tuple[Any, Any, str]]] = {
    "hypercorn": (under_hypercorn, mcp_trio.asgi, "trio"),
    "uvicorn": (lambda app: under_uvicorn(app, ws="wsproto"), mcp_asyncio_shim.asgi, "asyncio"),
}
TARGETS: Final = [
    "(mount%20point)",
    "(mount%20point)?x=y",
    "%28mount%20point%29",
    "(nowhere)",
    "mcp",
    "tools/mcp",
    "tools/",
    "%2Fmcp",
    "?session_id=x",
    "x/../mcp",
    "http://localhost/(mount%20point)",
    "http://localhost",
    "//mcp",
    "/./mcp",
    "/x/../mcp",
    "/%2e/mcp",
    "/MCP",
    "/;/mcp",
    "\\mcp",
    "*",
]


class Guard:
    """Middleware that answers 401 for all paths of an application that are known to lead to it."""

    def __init__(self, app: App, *prefixes: str) -> None:
        self._app = app
        self._prefixes = prefixes
        self.passed: list[str] = []  # paths of requests that were let through

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            if scope["path"].startswith(self._prefixes):
                if scope["type"] == "websocket":
                    await send({"type": "websocket.close"})
                else:
                    await send({"type": "http.response.start", "status": 401, "headers": []})
                    await send({"type": "http.response.body"})
                return
            self.passed.append(scope["path"])
        await self._app(scope, receive, send)


@pytest.mark.parametrize("is_mounted", [False, True], ids=["alone", "mounted"])
@pytest.mark.parametrize("server", SERVERS)
def test_guarded_endpoint_is_not_reached_by_another_path(server: str, is_mounted: bool) -> None:
    """The guard lets such targets pass, so the endpoint itself must not answer them."""
    serving, make, runtime = SERVERS[server]

    async def main() -> None:
        app = make(Server("s"))
        outer = Starlette(routes=[Mount("/tools", app)], lifespan=app.lifespan)
        guard = Guard(outer if is_mounted else app, "/tools" if is_mounted else "/mcp")
        with anyio.fail_after(PATIENCE):
            async with serving(guard) as url:
                port = urlsplit(url).port or 0
                for target in TARGETS:
                    for sent in (
                        request("accept: text/event-stream", target=target),
                        request(target=target, method="OPTIONS"),
                        upgrade(target=target.encode()),
                    ):
                        # 400 is the server's, 401 the guard's, and 403 for a WebSocket.
                        found = status_of(await ask(port, sent))
                        assert found in (307, 400, 401, 403, 404), (target, sent)
                # The guard does what it is for.
                path = "/tools/mcp" if is_mounted else "/mcp"
                assert status_of(await ask(port, request(target=path))) == 401
        assert [path for path in guard.passed if not path.startswith("/")]

    anyio.run(main, backend=runtime)


@pytest.mark.parametrize("server", SERVERS)
def test_path_without_a_slash_is_not_the_endpoint_of_the_root(server: str) -> None:
    """An application at "/", behind a guard of everything: that begins with a slash, it thinks."""
    serving, make, runtime = SERVERS[server]

    async def main() -> None:
        guard = Guard(make(Server("s"), path="/"), "/")
        with anyio.fail_after(PATIENCE):
            async with serving(guard) as url:
                port = urlsplit(url).port or 0
                for target in TARGETS:
                    found = status_of(await ask(port, request(target=target, method="OPTIONS")))
                    assert found in (400, 401, 404), target
        assert guard.passed

    anyio.run(main, backend=runtime)
