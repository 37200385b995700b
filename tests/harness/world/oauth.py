"""An MCP server that requires a token, and its authorization server, on one port of this machine.

Both are played as simply as possible. `requests` has what arrived, and tests change the responses.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import h11
import trio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["OAuthWorld", "oauth_world", "redirect_uri_in", "state_in"]


@dataclass
class OAuthWorld:
    """An MCP server with authorization. `good` has the tokens that the MCP server accepts,
    `requests` each request to the authorization server, as path and fields.
    """

    port: int = 0
    good: set[str] = field(default_factory=set)
    wants: str | None = None  # the scope that a tool call requires
    supported: list[str] = field(default_factory=list)  # the scopes in the MCP server's metadata
    scopes: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    posted: list[tuple[str, str]] = field(default_factory=list)  # method and token of each message
    refresh: bool = True
    methods: list[str] = field(default_factory=lambda: ["none"])
    life: int = 3600
    tokens: int = 0
    token_error: str | None = None
    deviations: dict[str, Any] = field(default_factory=dict)  # of the metadata. None: no member
    token_status: int = 200
    refuses_resource: bool = False
    paused: trio.Event | None = None  # what the token endpoint waits for,
    waits: trio.Event = field(default_factory=trio.Event)  # and whether it does

    @property
    def url(self) -> str:
        return f"{self.root}/mcp"

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def deviate(self) -> None:
        """Let the authorization server be like some that the specification doesn't foresee.

        Its metadata has another issuer and no list for PKCE, it refuses `resource`, and answers
        201.
        """
        self.deviations = {
            "issuer": "https://as.example/{tenant}",
            "code_challenge_methods_supported": None,
        }
        self.token_status = 201
        self.refuses_resource = True

    def count(self, path: str) -> int:
        return sum(each == path for each, _ in self.requests)

    async def answer(self, request: h11.Request, body: bytes) -> tuple[int, dict[str, str], Any]:
        target = urlsplit(bytes(request.target).decode())
        if target.path == "/mcp":
            return self._mcp(dict(request.headers), request.method, body)
        fields = dict(parse_qsl(target.query or body.decode()))
        self.requests.append((target.path, fields))
        if target.path == "/.well-known/oauth-protected-resource/mcp":
            found = {"resource": self.url, "authorization_servers": [self.root]}
            return 200, {}, found | ({"scopes_supported": self.supported} if self.supported else {})
        if target.path == "/.well-known/oauth-authorization-server":
            members = {
                "issuer": self.root,
                "authorization_endpoint": f"{self.root}/authorize",
                "token_endpoint": f"{self.root}/token",
                "registration_endpoint": f"{self.root}/register",
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": self.methods,
            } | self.deviations
            return 200, {}, {name: value for name, value in members.items() if value is not None}
        if target.path == "/register":
            return 201, {}, {**json.loads(body), "client_id": "us"}
        if target.path == "/authorize":
            back = urlencode({"code": f"code {fields.get('scope', '')}", "state": fields["state"]})
            return 302, {"location": f"{fields['redirect_uri']}?{back}"}, None
        if target.path == "/token":
            return await self._token(fields)
        return 404, {}, None

    async def _token(self, fields: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        if self.paused is not None:
            self.waits.set()
            await self.paused.wait()
        if self.token_error is not None:
            return 400, {}, {"error": self.token_error}
        if self.refuses_resource and "resource" in fields:
            return 400, {}, {"error": "invalid_target"}
        self.tokens += 1
        token = f"CANARY-token-{self.tokens}"
        self.good.add(token)
        self.scopes[token] = fields.get("code", "").removeprefix("code ")
        reply: dict[str, Any] = {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": self.life,
        }
        if self.refresh:
            reply["refresh_token"] = f"CANARY-refresh-{self.tokens}"
        return self.token_status, {}, reply

    def _mcp(
        self, headers: dict[bytes, bytes], verb: bytes, body: bytes
    ) -> tuple[int, dict[str, str], Any]:
        token = headers.get(b"authorization", b"").decode().removeprefix("Bearer ")
        known = f'resource_metadata="{self.root}/.well-known/oauth-protected-resource/mcp"'
        message = json.loads(body) if body else {}
        method = message.get("method", verb.decode())
        self.posted.append((method, token))
        if token not in self.good:
            return 401, {"www-authenticate": f"Bearer {known}"}, {"no": "token"}
        if (
            method == "tools/call"
            and self.wants is not None
            and self.wants not in self.scopes[token].split()
        ):
            challenge = f'Bearer error="insufficient_scope", scope="{self.wants}", {known}'
            return 403, {"www-authenticate": challenge}, None
        if verb != b"POST":
            return 405, {}, None
        if "id" not in message:
            return 202, {}, None
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "protected", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": []},
        }
        return 200, {}, {"jsonrpc": "2.0", "id": message["id"], "result": results.get(method, {})}


@asynccontextmanager
async def oauth_world() -> AsyncIterator[OAuthWorld]:
    world = OAuthWorld()

    async def serve(stream: trio.SocketStream) -> None:
        http = h11.Connection(h11.SERVER)
        body, request = bytearray(), None
        async with stream:
            try:
                while True:
                    event = http.next_event()
                    if event is h11.NEED_DATA:
                        http.receive_data(await stream.receive_some(65536))
                    elif isinstance(event, h11.Request):
                        request, body = event, bytearray()
                    elif isinstance(event, h11.Data):
                        body += event.data
                    elif isinstance(event, h11.EndOfMessage):
                        assert request is not None
                        status, headers, document = await world.answer(request, bytes(body))
                        data = b"" if document is None else document
                        if not isinstance(data, bytes):
                            data = json.dumps(document).encode()
                        more = {**headers, "content-length": str(len(data))}
                        if document is not None:
                            more["content-type"] = "application/json"
                        for each in (
                            h11.Response(status_code=status, headers=list(more.items())),
                            h11.Data(data=data),
                            h11.EndOfMessage(),
                        ):
                            await stream.send_all(http.send(each) or b"")
                        if http.our_state is h11.MUST_CLOSE:
                            return
                        http.start_next_cycle()
                    else:
                        return
            except (trio.BrokenResourceError, h11.RemoteProtocolError):
                return

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        world.port = listener.socket.getsockname()[1]
        yield world
        nursery.cancel_scope.cancel()


def state_in(url: str) -> str:
    return parse_qs(urlsplit(url).query)["state"][0]


def redirect_uri_in(url: str) -> str:
    return parse_qs(urlsplit(url).query)["redirect_uri"][0]
