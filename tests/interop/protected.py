"""Our server with authorization, for clients of others, and a user who agrees to every login.

The authorization server is the fake one, or the one that `make` builds. A browser is an HTTP
request to it.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx2
import trio

from mcp_core.auth import ClientProfile, JwtVerifier, OAuthResourceServer
from mcp_trio import Context, LoginConfig, MemoryStorage, Server, serve_http
from tests.fakes import authorization_server
from tests.interop.http_servers import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp_core.auth import TokenVerifier
    from mcp_trio import TokenStorage
    from tests.fakes.authorization_server import Answering

__all__ = ["BACK", "READ", "WRITE", "browse", "login", "notes", "protected"]

BACK: Final = "http://127.0.0.1:1/callback"
READ: Final = "notes:read"
WRITE: Final = "notes:write"


def notes() -> Server:
    server = Server("notes")

    @server.tool
    def whoami(context: Context) -> str:
        """Return the principal."""
        return context.principal

    @server.tool
    def erase(context: Context) -> str:
        """A tool that needs another scope."""
        assert context.grant is not None
        return " ".join(sorted(context.grant.scopes))

    return server


@asynccontextmanager
async def protected(
    make: Callable[..., Answering] = authorization_server.AuthorizationServer,
    verifier: Callable[[Any, str], TokenVerifier] = lambda issuer, url: JwtVerifier(
        issuer.issuer, url
    ),
    **options: Any,
) -> AsyncIterator[tuple[Any, str]]:
    """Yield the authorization server and the URL of the protected one.

    `options` are more of the resource server's.
    """
    async with trio.open_nursery() as nursery:
        issuer = await nursery.start(partial(authorization_server.serve, make=make))
        port = free_port()
        url = f"http://127.0.0.1:{port}/mcp"
        guard = OAuthResourceServer(
            url,
            [issuer.issuer],
            verifier(issuer, url),
            scopes=[READ],
            tool_scopes={"erase": [WRITE]},
            **options,
        )
        serve: Any = partial(serve_http, notes(), port=port, auth=guard)
        await nursery.start(serve)
        yield issuer, url
        nursery.cancel_scope.cancel()


async def browse(url: str) -> str:
    """Log in with a browser whose user agrees, and return the redirect URL."""
    async with httpx2.AsyncClient() as http:
        return str((await http.get(url)).headers["location"])


def login(storage: TokenStorage | None = None, **profile: Any) -> LoginConfig:
    """Return a login configuration of our client with this browser."""
    return LoginConfig(
        profile=ClientProfile(redirect_uri=BACK, **profile),
        storage=storage or MemoryStorage(),
        browse=browse,
    )
