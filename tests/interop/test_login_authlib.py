"""Our client at an authlib authorization server, and our resource server with its tokens: JWTs (RFC
9068) and introspected ones (RFC 7662).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from mcp_core.auth import IntrospectionVerifier, JwtVerifier, Secret
from mcp_trio import ConnectFailed, FileStorage, LoginConfig, connect
from tests.interop.protected import BACK, READ, WRITE, login, protected

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_core.auth import TokenVerifier

pytest.importorskip("authlib", reason="the authorization server is built with authlib")
from tests.interop.authlib_server import AuthlibServer, Client

D, E = "2025-11-25", "2026-07-28"
SECRET = "s3: cr+3t/%20"
every_era = pytest.mark.parametrize("version", [D, E])


def signed(issuer: Any, url: str) -> TokenVerifier:
    return JwtVerifier(issuer.issuer, url)


def introspected(issuer: Any, url: str) -> TokenVerifier:
    return IntrospectionVerifier(
        issuer.issuer,
        url,
        endpoint=f"{issuer.issuer}/introspect",
        client_id="guard",
        client_secret="s3cr3t: of +the guard",
        cache_seconds=0,
    )


def world(verifier: Any = introspected) -> Any:
    return protected(AuthlibServer, verifier)


@pytest.mark.parametrize("verifier", [signed, introspected])
@every_era
async def test_authlib_server_logs_client_in_and_steps_up(version: str, verifier: Any) -> None:
    async with world(verifier) as (issuer, url):
        async with connect(url, auth=login(), versions=[version]) as client:
            assert (await client.call_tool("whoami")).text == f"{issuer.issuer}#sub:alice"
            assert (await client.call_tool("erase")).text == f"{READ} {WRITE}"
        assert issuer.log.count("GET /authorize") == issuer.log.count("POST /token") == 2
        assert {token.user.resource for token in issuer.issued} == {url}


@pytest.mark.parametrize("method", ["none", "client_secret_basic", "client_secret_post"])
async def test_authlib_each_client_auth_method_registers(method: str) -> None:
    async with world() as (issuer, url):
        issuer.methods = [method]
        async with connect(url, auth=login(), versions=[E]) as client:
            issuer.issued[0].expires_at = 0
            await client.call_tool("whoami")
        [_, client] = issuer.clients.values()
        assert client.metadata["token_endpoint_auth_method"] == method
        assert issuer.log.count("POST /token") == 2


async def test_authlib_preregistered_client_logs_in() -> None:
    """Its secret has what goes wrong where it is not encoded, or where the two do not agree how."""
    async with world() as (issuer, url):
        grants = ["authorization_code", "refresh_token"]
        issuer.clients["us"] = Client(
            "us",
            SECRET,
            {
                "redirect_uris": [BACK],
                "scope": READ,
                "grant_types": grants,
                "response_types": ["code"],
                "token_endpoint_auth_method": "client_secret_basic",
            },
        )
        auth = login(client_id="us", client_secret=Secret(SECRET), issuer=issuer.issuer)
        async with connect(url, auth=auth, versions=[E]) as client:
            await client.call_tool("whoami")
        assert "POST /register" not in issuer.log
        wrong = login(client_id="us", client_secret=Secret("wr0ng!"), issuer=issuer.issuer)
        with pytest.raises(
            ConnectFailed, match=r"gave no token: invalid_client.*check client_id and client_secret"
        ):
            await connect(url, auth=wrong, versions=[E]).__aenter__()


@every_era
async def test_authlib_refresh_tokens_are_used_once(version: str) -> None:
    async with world() as (issuer, url):
        issuer.lifetime = 1
        async with connect(url, auth=login(), versions=[version]) as client:
            for _ in range(3):
                issuer.issued[-1].expires_at = 0
                await client.call_tool("whoami")
        assert issuer.log.count("GET /authorize") == 1
        assert [token.revoked for token in issuer.issued[:-1]] == [True] * 3
        assert not issuer.issued[-1].revoked


async def test_authlib_stolen_refresh_token_leads_to_login(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The thief used our refresh token first: both lose access, and only the user logs in again."""
    async with world() as (issuer, url):
        storage = FileStorage(tmp_path)
        async with connect(url, auth=login(storage), versions=[E]) as client:
            await client.call_tool("whoami")
            [token] = issuer.issued
            async with httpx2.AsyncClient() as http:
                form = {
                    "grant_type": "refresh_token",
                    "refresh_token": token.refresh_token,
                    "client_id": token.client_id,
                }
                assert (await http.post(f"{issuer.issuer}/token", data=form)).status_code == 200
            # Our token is rejected now, and the thief's tokens are revoked with it.
            await client.call_tool("whoami")
        assert [each.revoked for each in issuer.issued] == [True, True, False]
        assert issuer.log.count("GET /authorize") == 2
        assert "the refresh token is no longer accepted: " in caplog.text
        # The stored token is the new one.
        async with connect(
            url, auth=LoginConfig(storage=storage, browse=None), versions=[E]
        ) as client:
            await client.call_tool("whoami")
        assert issuer.log.count("GET /authorize") == 2


@every_era
async def test_authlib_revoked_tokens_lead_to_login(version: str) -> None:
    async with world() as (issuer, url), connect(url, auth=login(), versions=[version]) as client:
        [token] = issuer.issued
        async with httpx2.AsyncClient() as http:
            form = {"token": token.refresh_token, "client_id": token.client_id}
            assert (await http.post(f"{issuer.issuer}/revoke", data=form)).status_code == 200
        await client.call_tool("whoami")
        assert issuer.log.count("GET /authorize") == 2
