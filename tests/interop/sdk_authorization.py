"""A server of the official Python SDK (`mcp` 2.3) with the SDK's authorization, and the SDK as an
authorization server.

Everything is in memory. hypercorn serves it on trio in the test, so that a test can read and change
its state.
"""

from __future__ import annotations

import secrets
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio
from hypercorn.config import Config
from hypercorn.trio import serve
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

from tests.interop.http_servers import free_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

__all__ = ["Provider", "protected_by_sdk"]

USER: Final = "alice"


class Provider(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """A provider that lets every user log in.

    `grants` are the scopes that the user agrees to, one login after the other, and after them all
    requested ones. Access tokens are valid for `lifetime` seconds. `log` has what was done.
    """

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.grants: list[list[str]] = []
        self.lifetime = 600
        self.log: list[str] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.log.append("register")
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        self.log.append("authorize")
        assert client.client_id is not None
        code = secrets.token_urlsafe()
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=self.grants.pop(0) if self.grants else params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
            subject=USER,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        self.log.append("token")
        del self.codes[authorization_code.code]
        return self._tokens(
            authorization_code.client_id, authorization_code.scopes, authorization_code.resource
        )

    async def load_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: str
    ) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.log.append("refresh")
        del self.refresh[refresh_token.token]
        return self._tokens(refresh_token.client_id, scopes, refresh_token.resource)

    def _tokens(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        common: dict[str, Any] = {
            "client_id": client_id,
            "scopes": scopes,
            "resource": resource,
            "subject": USER,
        }
        expires_at = int(time.time()) + max(self.lifetime, 60)
        self.access[access] = AccessToken(token=access, expires_at=expires_at, **common)
        self.refresh[refresh] = RefreshToken(token=refresh, **common)
        return OAuthToken(
            access_token=access,
            expires_in=self.lifetime,
            refresh_token=refresh,
            scope=" ".join(scopes),
        )

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        raise AssertionError("no client knows a revocation endpoint")


def notes(url: str, issuer: str, scopes: list[str], **protection: Any) -> Any:
    registration = ClientRegistrationOptions(
        enabled=True, valid_scopes=[*scopes, "more"], default_scopes=scopes
    )
    settings = AuthSettings.model_validate(
        {
            "issuer_url": issuer,
            "resource_server_url": url,
            "required_scopes": scopes,
            "client_registration_options": registration,
            "validate_token_resource": True,
        }
    )
    server = MCPServer("notes", auth=settings, **protection)

    @server.tool()
    def whoami() -> str:
        """Return the principal."""
        token = get_access_token()
        assert token is not None
        return f"{token.subject} by {token.client_id}"

    return server


@asynccontextmanager
async def protected_by_sdk(
    how: str,
    *,
    scopes: list[str],
    issuer: str | None = None,
    protection: Callable[[str], dict[str, Any]],
) -> AsyncIterator[str]:
    """Yield the URL of the server, served in a mode of `sdk_http_server.py`.

    `protection` gets the URL and returns options of `MCPServer`. Without an `issuer` the server is
    its own authorization server.
    """
    port = free_port()
    root = f"http://127.0.0.1:{port}"
    url = f"{root}/sse" if how == "sse" else f"{root}/mcp"
    server = notes(url, issuer or root, scopes, **protection(url))
    app = (
        server.sse_app()
        if how == "sse"
        else server.streamable_http_app(
            stateless_http=how == "stateless", json_response=how == "json"
        )
    )
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.graceful_timeout = 1
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve, app, config, shutdown_trigger=stop.wait, mode="asgi"))
        yield url
        stop.set()
