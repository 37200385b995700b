"""Our protected server with clients that log in themselves: the official Python client (`mcp` 2.3)
and ours.

`protected.py` has both servers. `test_protected_server_node.py` has the TypeScript client.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import TextContent

from mcp_trio import connect
from tests.interop.official import unfinished_streams
from tests.interop.protected import BACK, READ, WRITE, browse, login, protected

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    unfinished_streams,
]


class KeptTokens:
    """The token storage of an official client."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def official(url: str, storage: KeptTokens) -> OAuthClientProvider:
    sent_back: list[str] = []

    async def redirect(page: str) -> None:
        sent_back.append(await browse(page))

    async def callback() -> AuthorizationCodeResult:
        fields = {
            name: values[0] for name, values in parse_qs(urlsplit(sent_back[-1]).query).items()
        }
        return AuthorizationCodeResult(
            code=fields["code"], state=fields.get("state"), iss=fields.get("iss")
        )

    metadata = OAuthClientMetadata.model_validate(
        {"redirect_uris": [BACK], "client_name": "official"}
    )
    return OAuthClientProvider(url, metadata, storage, redirect, callback)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_protected_server_sdk_client_logs_in(mode: Any) -> None:
    """The client knows only the URL: our challenge and metadata lead it to the login."""
    async with protected() as (issuer, url):
        storage = KeptTokens()
        async with httpx2.AsyncClient(auth=official(url, storage), timeout=10) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=mode) as client:
                result = await client.call_tool("whoami", {})
                (block,) = result.content
                assert isinstance(block, TextContent)
                assert block.text == f"{issuer.issuer}#sub:alice"
        assert storage.tokens is not None
        assert storage.tokens.scope == READ
        assert issuer.log.count("GET /authorize") == 1
        # The metadata document, found by our challenge.
        async with httpx2.AsyncClient() as http:
            found = await http.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))
            assert json.loads(found.content)["authorization_servers"] == [issuer.issuer]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_protected_server_own_client_logs_in_and_steps_up(version: str) -> None:
    async with (
        protected() as (issuer, url),
        connect(url, auth=login(), versions=[version]) as client,
    ):
        result = await client.call_tool("whoami")
        assert result.content[0].text == f"{issuer.issuer}#sub:alice"  # type: ignore[union-attr]
        assert issuer.log.count("GET /authorize") == 1
        result = await client.call_tool("erase")
        assert result.content[0].text == f"{READ} {WRITE}"  # type: ignore[union-attr]
        assert issuer.log.count("GET /authorize") == 2
