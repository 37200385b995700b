"""Tokens bound to a key (DPoP), over real connections: our client at our server.

Proofs are checked on both sides: by our resource server, and by the fake authorization server with
joserfc and none of our code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2
import pytest

from mcp_core.auth import AuthAttempt
from mcp_trio import FileStorage, connect
from tests.fakes.authorization_server import AuthorizationServer
from tests.interop.protected import READ, WRITE, login, protected

if TYPE_CHECKING:
    from pathlib import Path

D, E = "2025-11-25", "2026-07-28"
NONCE_KEY = b"k" * 32
every_era = pytest.mark.parametrize("version", [D, E])


class Shown:
    """The credentials that our client sends to the MCP server, request by request."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.headers: list[dict[str, str]] = []
        headers = AuthAttempt.headers

        def spied(attempt: AuthAttempt, method: str, url: str) -> list[tuple[str, str]]:
            found = headers(attempt, method, url)
            self.headers.append(dict(found))
            return found

        monkeypatch.setattr(AuthAttempt, "headers", spied)

    @property
    def schemes(self) -> list[str]:
        return [each["authorization"].partition(" ")[0] for each in self.headers if each]

    @property
    def proofs(self) -> list[str]:
        return [each["dpop"] for each in self.headers if "dpop" in each]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    return Shown(monkeypatch)


@pytest.mark.requirement("AX-3")
@pytest.mark.parametrize("nonce_key", [None, NONCE_KEY], ids=["", "nonces"])
@every_era
async def test_dpop_login_binds_token_and_every_request_has_proof(
    version: str, nonce_key: bytes | None, shown: Shown
) -> None:
    async with protected(dpop=True, nonce_key=nonce_key) as (issuer, url):
        issuer.nonce = None if nonce_key is None else "of the authorization server"
        async with connect(url, auth=login(), versions=[version]) as client:
            assert (await client.call_tool("whoami")).text == f"{issuer.issuer}#sub:alice"
            assert (
                await client.call_tool("erase")
            ).text == f"{READ} {WRITE}"  # step-up with the same key
            assert (await client.call_tool("erase")).text == f"{READ} {WRITE}"
    assert len(shown.schemes) > 4
    assert set(shown.schemes) == {"DPoP"}
    assert len(set(shown.proofs)) == len(shown.proofs) == len(shown.schemes)
    assert issuer.log.count("GET /authorize") == 2


@every_era
async def test_dpop_token_is_refreshed_with_its_key(version: str, shown: Shown) -> None:
    async with protected(dpop=True) as (issuer, url):
        issuer.lifetime = (
            0  # expired at once for the client; the resource server allows a minute of leeway
        )
        async with connect(url, auth=login(), versions=[version]) as client:
            issuer.lifetime = 600
            await client.call_tool("whoami")
        assert issuer.log.count("GET /authorize") == 1
        assert issuer.log.count("POST /token") > 1
    assert set(shown.schemes) == {"DPoP"}


async def test_dpop_key_is_stored_for_the_next_process(tmp_path: Path, shown: Shown) -> None:
    async with protected(dpop=True) as (issuer, url):
        async with connect(url, auth=login(FileStorage(tmp_path))) as client:
            await client.call_tool("whoami")
        async with connect(url, auth=login(FileStorage(tmp_path))) as client:
            await client.call_tool("whoami")
        assert issuer.log.count("POST /token") == 1
    assert set(shown.schemes) == {"DPoP"}


async def test_dpop_stolen_token_is_denied(shown: Shown) -> None:
    async with protected(dpop=True) as (_, url):
        async with connect(url, auth=login(), versions=[E]) as client:
            await client.call_tool("whoami")
        sent = shown.headers[-1]
        token = sent["authorization"].removeprefix("DPoP ")
        async with httpx2.AsyncClient() as http:
            for headers in (
                {"authorization": f"Bearer {token}"},
                {"authorization": f"DPoP {token}"},
                sent,
            ):
                answer = await http.post(url, headers=headers, json={})
                assert answer.status_code == 401
                assert token not in answer.text + str(answer.headers)


@every_era
async def test_dpop_unsupported_falls_back_to_bearer(
    version: str, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with protected(dpop=True) as (issuer, url):
        metadata = {
            name: value for name, value in issuer.metadata.items() if not name.startswith("dpop")
        }
        monkeypatch.setattr(AuthorizationServer, "metadata", metadata)
        async with connect(url, auth=login(), versions=[version]) as client:
            await client.call_tool("whoami")
    assert set(shown.schemes) == {"Bearer"}
