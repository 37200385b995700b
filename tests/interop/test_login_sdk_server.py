"""Our client logs in at a server of the official Python SDK (`mcp` 2.3), with the SDK's
authorization server and with a separate one.

The SDK's responses differ from ours: a 401 has an error code even without credentials, a 403 does
not name the scope, and the token endpoint has its own error format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio
from mcp.server.auth.provider import AccessToken

from mcp_core import AuthRequired
from mcp_trio import ConnectFailed, FileStorage, connect
from tests.fakes import authorization_server
from tests.interop.protected import READ, login
from tests.interop.sdk_authorization import Provider, protected_by_sdk

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fakes.authorization_server import AuthorizationServer

A, D, E = "2024-11-05", "2025-11-25", "2026-07-28"
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


def at(provider: Provider, how: str = "sessions") -> Any:
    return protected_by_sdk(
        how, scopes=[READ], protection=lambda url: {"auth_server_provider": provider}
    )


@pytest.mark.parametrize(
    ("how", "version"),
    [
        *((how, version) for how in ("sessions", "stateless", "json") for version in (D, E)),
        ("sse", A),
        ("sse", D),
    ],
)
async def test_sdk_server_login_succeeds(how: str, version: str) -> None:
    provider = Provider()
    async with at(provider, how) as url, connect(url, auth=login(), versions=[version]) as client:
        assert client.peer.dialect.version == version
        [client_id] = provider.clients
        assert (await client.call_tool("whoami")).text == f"alice by {client_id}"
        assert provider.log == ["register", "authorize", "token"]
        [token] = provider.access.values()
        assert (token.resource, token.scopes) == (url, [READ])


@pytest.mark.parametrize("version", [D, E])
async def test_sdk_server_token_is_refreshed_before_expiry(version: str) -> None:
    provider = Provider()
    provider.lifetime = 0
    async with at(provider) as url, connect(url, auth=login(), versions=[version]) as client:
        provider.lifetime = 600
        await client.call_tool("whoami")
    assert provider.log.count("refresh") > 0
    assert provider.log.count("authorize") == 1
    assert len(provider.refresh) == 1  # each refresh token was used once


@pytest.mark.parametrize("version", [D, E])
async def test_sdk_server_rejected_token_is_refreshed(version: str) -> None:
    provider = Provider()
    async with at(provider) as url, connect(url, auth=login(), versions=[version]) as client:
        principal = (await client.call_tool("whoami")).text
        provider.access.clear()
        assert (await client.call_tool("whoami")).text == principal
        assert provider.log == ["register", "authorize", "token", "refresh"]
        provider.access.clear()
        provider.refresh.clear()
        assert (await client.call_tool("whoami")).text == principal
        assert provider.log[4:] == ["authorize", "token"]


async def test_sdk_server_many_denied_calls_refresh_once() -> None:
    provider = Provider()
    async with at(provider) as url, connect(url, auth=login(), versions=[E]) as client:
        provider.access.clear()
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(client.call_tool, "whoami")
    assert provider.log == ["register", "authorize", "token", "refresh"]


async def test_sdk_server_login_is_stored_for_the_next_process(tmp_path: Path) -> None:
    provider = Provider()
    async with at(provider) as url:
        for _ in range(2):
            async with connect(url, auth=login(FileStorage(tmp_path))) as client:
                await client.call_tool("whoami")
            provider.access.clear()
    assert provider.log == ["register", "authorize", "token", "refresh"]


@pytest.mark.parametrize("version", [D, E])
async def test_sdk_server_insufficient_scope_steps_up(version: str) -> None:
    provider = Provider()
    provider.grants = [["more"]]
    async with at(provider) as url, connect(url, auth=login(), versions=[version]) as client:
        await client.call_tool("whoami")
    assert provider.log == ["register", "authorize", "token", "authorize", "token"]


@pytest.mark.parametrize("version", [D, E])
async def test_sdk_server_never_granted_scope_is_requested_twice(version: str) -> None:
    provider = Provider()
    provider.grants = [["more"]] * 9
    async with at(provider) as url:
        with pytest.raises(
            ConnectFailed, match=r"still refuses (initialize|server/discover)"
        ) as caught:
            await connect(url, auth=login(), versions=[version]).__aenter__()
        assert isinstance(caught.value.__cause__, AuthRequired)
    assert provider.log == ["register", "authorize", "token", "authorize", "token"]


# -- A separate authorization server ---------------------------------------------------------------


class Introspecting:
    """A `TokenVerifier` of the SDK that uses introspection."""

    def __init__(self, issuer: AuthorizationServer) -> None:
        self._issuer = issuer

    async def verify_token(self, token: str) -> AccessToken | None:
        async with httpx2.AsyncClient() as http:
            answer = await http.post(f"{self._issuer.issuer}/introspect", data={"token": token})
        claims = answer.json()
        if not claims["active"]:
            return None
        return AccessToken(
            token=token,
            client_id=claims["client_id"],
            scopes=claims["scope"].split(),
            expires_at=claims["exp"],
            resource=claims["aud"],
            subject=claims["sub"],
        )


@pytest.mark.parametrize("version", [D, E])
async def test_sdk_server_with_separate_authorization_server_accepts_token(version: str) -> None:
    async with trio.open_nursery() as nursery:
        issuer: AuthorizationServer = await nursery.start(authorization_server.serve)
        server = protected_by_sdk(
            "sessions",
            scopes=[READ],
            issuer=issuer.issuer,
            protection=lambda url: {"token_verifier": Introspecting(issuer)},
        )
        async with server as url, connect(url, auth=login(), versions=[version]) as client:
            assert (await client.call_tool("whoami")).text == "alice by client-1"
        assert issuer.log.count("GET /authorize") == 1
        nursery.cancel_scope.cancel()
