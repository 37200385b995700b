"""A fake internet for attacks: names, addresses and hostile servers, over real sockets.

Every connection of the client under test goes to one listener on this machine, by TLS with a
certificate of a test authority. The page of the requested host responds. The dialled addresses are
recorded: no attack may lead to an address that is not public.

1. Without an attack every server is honest and a login succeeds; `test_attacks_client.py` tests
   that first. An attack changes what one of the servers responds, and nothing else.
2. Every secret is recorded with the hosts that may see it (`plant`), and searched for in every
   request, in every line of the log and in every text that the library makes.
"""

from __future__ import annotations

import gc
import json
import re
import ssl
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import h11
import pytest
import trio
import trustme

from mcp_core.auth import is_public_address

__all__ = [
    "AS",
    "EVIL",
    "MCP",
    "PRM",
    "Answer",
    "Internet",
    "ReceivedRequest",
    "certificates",
    "internet",
    "texts_of_objects",
]

MCP, AS, EVIL = "mcp.example", "as.example", "evil.example"
PRM = f"{MCP}/.well-known/oauth-protected-resource/mcp"
REDIRECT_URI = "http://127.0.0.1:1/callback"
PUBLIC = {MCP: "93.184.215.14", AS: "93.184.215.15", EVIL: "93.184.215.66"}
# No honest conversation here needs more requests; a loop does.
MOST_REQUESTS = 40

_open = trio.open_tcp_stream


@dataclass
class ReceivedRequest:
    """A request as it arrived."""

    host: str
    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes

    @property
    def fields(self) -> dict[str, str]:
        return dict(parse_qsl(self.body.decode()))

    @property
    def text(self) -> str:
        return (
            f"{self.path}?{self.query} {self.headers} {parse_qs(self.body.decode('latin-1'))} "
            f"{self.body!r}"
        )


@dataclass
class Answer:
    """A response of a server.

    `body` is JSON data, or bytes to send unchanged. `raw` replaces the whole response. `drip` sends
    one byte at a time, and never the last one; `hang` sends nothing.
    """

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    drip: bool = False
    hang: bool = False

    def data(self) -> bytes:
        if self.raw is not None:
            return self.raw
        http = h11.Connection(h11.SERVER)
        body = self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()
        headers = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "connection": "close",
            "set-cookie": "session=CANARY-cookie; Domain=example; Path=/",
            **self.headers,
        }
        http.receive_data(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        while not isinstance(http.next_event(), h11.EndOfMessage):
            pass
        events = (
            h11.Response(status_code=self.status, headers=list(headers.items())),
            h11.Data(data=body),
        )
        return b"".join(http.send(event) or b"" for event in events)


Page = Callable[[ReceivedRequest], Answer]


class Internet:
    """Names, servers and records of one fake internet.

    - `names` are the answers of the name server, used one after the other; the last one stays.
    - `pages` are the servers, by host and path.
    - `good` are the tokens that the MCP server accepts, `challenge` its challenge for others, and
      `forbids` the challenge of a tool call.
    - `requests`, `dialled` and `browsed` record requests, addresses, and pages that the user was
      shown.
    """

    def __init__(self) -> None:
        self.names = {name: [[address]] for name, address in PUBLIC.items()}
        self.names["localhost"] = self.names["localhost."] = [["127.0.0.1", "::1"]]
        self.requests: list[ReceivedRequest] = []
        self.dialled: list[str] = []
        self.browsed: list[str] = []
        self.planted: dict[str, frozenset[str]] = {}
        self.good: set[str] = set()
        self.prm: dict[str, Any] = {
            "resource": f"https://{MCP}/mcp",
            "authorization_servers": [f"https://{AS}"],
        }
        self.metadata = {host: honest_metadata(host) for host in (AS, EVIL)}
        self.challenge: list[str] | None = None
        self.forbids: str | None = None
        self.callback: Callable[[str, dict[str, str]], str] = callback_url
        self.pages: dict[str, Page] = {
            f"{MCP}/mcp": self.mcp,
            PRM: lambda request: Answer(self.prm),
        }
        for host in (AS, EVIL):
            for path in ("oauth-authorization-server", "openid-configuration"):
                self.pages[f"{host}/.well-known/{path}"] = lambda request: Answer(
                    self.metadata[request.host]
                )
            self.pages[f"{host}/register"] = self.register
            self.pages[f"{host}/token"] = self.token
        self.port = 0
        self.local = False  # the MCP server is on this machine
        self.tls: ssl.SSLContext
        self._count = 0

    # -- Secrets -----------------------------------------------------------------------------------

    def plant(self, what: str, *hosts: str) -> str:
        """Create a secret that `hosts` may see."""
        self._count += 1
        text = f"CANARY-{what}-{self._count}"
        self.planted[text] = frozenset(hosts)
        return text

    def leaks(self) -> list[str]:
        """Return the secrets that were sent to hosts that may not see them."""
        return [
            f"{secret} to {request.host}{request.path}"
            for request in self.requests
            for secret, hosts in self.planted.items()
            if request.host not in hosts and secret in request.text
        ]

    def seen_in(self, text: str) -> list[str]:
        """Return the secrets that `text` contains."""
        return [secret for secret in (*self.planted, "CANARY") if secret in text]

    def forbidden(self) -> list[str]:
        """Return the dialled addresses that are not public."""
        return [address for address in self.dialled if not is_public_address(address)]

    # -- The servers -------------------------------------------------------------------------------

    def answer(self, request: ReceivedRequest) -> Answer:
        self.requests.append(request)
        if "cookie" in request.headers:
            self.planted["CANARY-cookie"] = frozenset()
        page = self.pages.get(f"{request.host}{request.path}")
        return page(request) if page is not None else Answer(None, 404)

    def mcp(self, request: ReceivedRequest) -> Answer:
        _scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if token not in self.good:
            challenges = self.challenge
            if challenges is None:
                challenges = [f'Bearer resource_metadata="https://{PRM}"']
            # h11 would refuse to write some of these values.
            lines = "".join(f"www-authenticate: {line}\r\n" for line in challenges)
            head = f"HTTP/1.1 401 No\r\n{lines}content-length: 0\r\nconnection: close\r\n\r\n"
            return Answer(raw=head.encode("latin-1"))
        message = json.loads(request.body) if request.body else {}
        if message.get("method") == "tools/call" and self.forbids is not None:
            return Answer(None, 403, {"www-authenticate": self.forbids})
        if request.method != "POST":
            return Answer(None, 405)
        if "id" not in message:
            return Answer(b"", 202)
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "attacked", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "add", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": []},
        }
        return Answer(
            {"jsonrpc": "2.0", "id": message["id"], "result": results.get(message["method"], {})}
        )

    def register(self, request: ReceivedRequest) -> Answer:
        secret = self.plant("client-secret", request.host)
        return Answer({**json.loads(request.body), "client_id": "us", "client_secret": secret}, 201)

    def token(self, request: ReceivedRequest) -> Answer:
        for name in ("code_verifier", "client_secret"):
            if name in request.fields:
                self.planted.setdefault(request.fields[name], frozenset((request.host,)))
        token = self.plant("access", MCP)
        self.good.add(token)
        refresh = self.plant("refresh", request.host)
        return Answer(
            {
                "access_token": token,
                "token_type": "Bearer",
                "expires_in": 3600,
                "refresh_token": refresh,
            }
        )

    # -- The user ----------------------------------------------------------------------------------

    async def browse(self, url: str) -> str:
        self.browsed.append(url)
        assert not self.seen_in(url), url
        return self.callback(
            self.plant("code", urlsplit(url).netloc),
            {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()},
        )

    # -- The wires ---------------------------------------------------------------------------------

    async def getaddrinfo(
        self,
        host: bytes | str | None,
        port: Any,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[Any]:
        name = host.decode() if isinstance(host, bytes) else str(host)
        answers = self.names.get(name.lower())
        if answers is None:
            raise trio.socket.gaierror(trio.socket.EAI_NONAME, "no such name here")
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [
            (
                trio.socket.AF_INET6 if ":" in address else trio.socket.AF_INET,
                trio.socket.SOCK_STREAM,
                6,
                "",
                (address, int(port)),
            )
            for address in found
        ]

    async def getnameinfo(self, sockaddr: Any, flags: int) -> tuple[str, str]:
        raise AssertionError("unexpected reverse lookup")

    async def dial(self, host: str, port: int, **options: Any) -> trio.SocketStream:
        [where, *_] = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
        address = str(where[4][0])
        self.dialled.append(address)
        served = address in PUBLIC.values() or (self.local and address == "127.0.0.1")
        if not served or port != 443:
            raise ConnectionRefusedError(111, "no host has this address")
        return await _open("127.0.0.1", self.port)

    async def serve(self, stream: trio.SSLStream[trio.SocketStream]) -> None:
        try:
            request = await _request(stream)
            if request is None:
                return
            answer = self.answer(request)
            if answer.hang:
                await trio.sleep_forever()
            data = answer.data()
            for at in range(len(data) - 1) if answer.drip else ():
                await stream.send_all(data[at : at + 1])
                await trio.sleep(0.02)
            await stream.send_all(data)
            await stream.aclose()
        except (trio.BrokenResourceError, h11.RemoteProtocolError):
            pass
        finally:
            await trio.aclose_forcefully(stream)


async def _request(stream: trio.abc.Stream) -> ReceivedRequest | None:
    http = h11.Connection(h11.SERVER)
    head: h11.Request | None = None
    body = b""
    while True:
        event = http.next_event()
        if event is h11.NEED_DATA:
            http.receive_data(bytes(await stream.receive_some(65_536)))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += bytes(event.data)
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            headers = {
                bytes(name).decode(): bytes(value).decode("latin-1") for name, value in head.headers
            }
            path, _, query = bytes(head.target).decode().partition("?")
            return ReceivedRequest(
                headers.get("host", ""), bytes(head.method).decode(), path, query, headers, body
            )
        else:
            return None


def honest_metadata(host: str) -> dict[str, Any]:
    return {
        "issuer": f"https://{host}",
        "authorization_endpoint": f"https://{host}/authorize",
        "token_endpoint": f"https://{host}/token",
        "registration_endpoint": f"https://{host}/register",
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["client_secret_post"],
        "authorization_response_iss_parameter_supported": True,
    }


def callback_url(code: str, authorization: dict[str, str], /, **fields: str | None) -> str:
    """Return the URL to which the honest server redirects the browser.

    A field that is None is left out.
    """
    answered = {"code": code, "state": authorization["state"], "iss": f"https://{AS}"} | fields
    query = urlencode({name: value for name, value in answered.items() if value is not None})
    return f"{REDIRECT_URI}?{query}"


def certificates() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Create the TLS contexts of all servers here, and of the client that trusts them."""
    authority = trustme.CA()
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*PUBLIC, "localhost").configure_cert(server_context)
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(client_context)
    return server_context, client_context


@asynccontextmanager
async def internet(
    tls: tuple[ssl.SSLContext, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Internet]:
    """Run a fake internet for the time of a block."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    world = Internet()
    server_context, world.tls = tls
    trio.socket.set_custom_hostname_resolver(world)  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_ssl_over_tcp_listeners(
            0, server_context, host="127.0.0.1", https_compatible=True
        )
        transport: Any = listeners[0].transport_listener
        world.port = transport.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, world.serve, listeners)
        monkeypatch.setattr(trio, "open_tcp_stream", world.dial)
        try:
            yield world
        finally:
            monkeypatch.setattr(trio, "open_tcp_stream", _open)
            nursery.cancel_scope.cancel()


def texts_of_objects() -> str:
    """Return the reprs of all live objects of the library.

    Exceptions are shown with their tracebacks and causes.
    """
    texts = []
    for each in gc.get_objects():
        kind = type(each)
        if (
            re.match(r"mcp_(core|trio)\b", kind.__module__ or "")
            and kind.__module__ != "mcp_core.types"
        ):
            texts.append(
                "".join(traceback.format_exception(each))
                if isinstance(each, BaseException)
                else repr(each)
            )
    return "\n".join(texts)
