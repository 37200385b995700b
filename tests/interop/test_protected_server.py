"""A protected server of ours, and clients that log in by themselves: the official Python client (`mcp` 2.3), and our own.

The authorization server is the fake one; a browser is a request to it.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
import trio
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from mcp_types import TextContent

from mcp_core.auth import ClientProfile, Guard, JwtVerifier
from mcp_trio import Context, Login, MemoryStorage, Server, connect, serve_http
from tests.fakes import authorization_server
from tests.interop.http_servers import _free_port
from tests.interop.official import unfinished_streams

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.fakes.authorization_server import AuthorizationServer

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    unfinished_streams,
]
BACK = "http://127.0.0.1:1/callback"
READ, WRITE = "notes:read", "notes:write"


def notes() -> Server:
    server = Server("notes")

    @server.tool
    def whoami(context: Context) -> str:
        """Who asks."""
        return context.principal

    @server.tool
    def erase(context: Context) -> str:
        """What takes more."""
        assert context.grant is not None
        return " ".join(sorted(context.grant.scopes))

    return server


@asynccontextmanager
async def protected() -> AsyncIterator[tuple[AuthorizationServer, str]]:
    """The authorization server, and the URL of what it protects."""
    async with trio.open_nursery() as nursery:
        issuer: AuthorizationServer = await nursery.start(authorization_server.serve)
        port = _free_port()
        url = f"http://127.0.0.1:{port}/mcp"
        guard = Guard(
            url,
            [issuer.issuer],
            JwtVerifier(issuer.issuer, url),
            scopes=[READ],
            tool_scopes={"erase": [WRITE]},
        )
        serve: Any = partial(serve_http, notes(), port=port, auth=guard)
        await nursery.start(serve)
        yield issuer, url
        nursery.cancel_scope.cancel()


async def browse(url: str) -> str:
    """A browser whose user agrees to everything: where it is sent back."""
    async with httpx2.AsyncClient() as http:
        return str((await http.get(url)).headers["location"])


class Kept:
    """The storage of an official client."""

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


def official(url: str, storage: Kept) -> OAuthClientProvider:
    sent_back: list[str] = []

    async def redirect(page: str) -> None:
        sent_back.append(await browse(page))

    async def callback() -> AuthorizationCodeResult:
        told = {name: values[0] for name, values in parse_qs(urlsplit(sent_back[-1]).query).items()}
        return AuthorizationCodeResult(code=told["code"], state=told.get("state"), iss=told.get("iss"))

    metadata = OAuthClientMetadata.model_validate({"redirect_uris": [BACK], "client_name": "official"})
    return OAuthClientProvider(url, metadata, storage, redirect, callback)


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_official_client_logs_in(mode: Any) -> None:
    async with protected() as (issuer, url):
        storage = Kept()
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
        # The document that it found by our challenge.
        async with httpx2.AsyncClient() as http:
            found = await http.get(url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))
            assert json.loads(found.content)["authorization_servers"] == [issuer.issuer]


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_our_client_logs_in_and_asks_for_more_when_it_is_needed(version: str) -> None:
    async with protected() as (issuer, url):
        login = Login(profile=ClientProfile(redirect_uri=BACK), storage=MemoryStorage(), browse=browse)
        async with connect(url, auth=login, versions=[version]) as client:
            told = await client.call_tool("whoami")
            assert told.content[0].text == f"{issuer.issuer}#sub:alice"  # type: ignore[union-attr]
            assert issuer.log.count("GET /authorize") == 1
            told = await client.call_tool("erase")
            assert told.content[0].text == f"{READ} {WRITE}"  # type: ignore[union-attr]
            assert issuer.log.count("GET /authorize") == 2
