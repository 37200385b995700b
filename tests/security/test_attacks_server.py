"""Attacks on a protected server: invalid tokens, no token, and ways around authorization.

Each row is a request over a socket to a real server, the status of the response, and words of the
line in the log. Of each attack the same is tested: nothing was executed, nothing was fetched but
from the configured authorization server, and no secret is in a response, in the log, or in a text
of the library.
"""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import pytest
import trio
from joserfc.jwk import OctKey
from joserfc.jws import JWSRegistry

from mcp_core import AuthRequired, ConnectFailed
from mcp_core.auth import Grant, InvalidToken, JwtVerifier, OAuthResourceServer, VerifierUnavailable
from mcp_core.registry import Context, Server
from mcp_trio import connect, serve_http
from tests.core.auth.minting import HOLDER, JKT, STRANGER, as_bytes, b64, forge, proof
from tests.fakes import authorization_server
from tests.fakes.authorization_server import AuthorizationServer
from tests.harness.wire.http1_client import Answer, HttpWire, get
from tests.harness.world.waiting import PATIENCE
from tests.security.internet import texts_of_objects

RESOURCE = "https://mcp.example.com/mcp"
SECRET = "memo://secret"
B, C, D, E = "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"
NONCE_KEY = b"a key for nonces, of 32 bytes or more"

_open = trio.open_tcp_stream
_number = count(1)


@dataclass
class AttackedSite:
    """A server under attack, and its authorization server.

    - `done` records what was executed, `dialled` the ports to which the server connected.
    - `trap` is a port to which nothing has a reason to connect.
    - `seen` is the text of all responses.
    """

    issuer: AuthorizationServer
    port: int
    done: list[str]
    dialled: list[int]
    trap: int
    upstream: str
    seen: bytes = b""
    tokens: tuple[str, ...] = ()

    @property
    def key(self) -> Any:
        return self.issuer._key

    def token(self, scope: str = "read", **claims: Any) -> str:
        """Return a token, valid and alice's but for the given claims."""
        return self.keep(self.issuer.token(RESOURCE, scope, **claims))

    def keep(self, token: str) -> str:
        self.tokens = (*self.tokens, token)
        return token

    def claims(self, **claims: Any) -> dict[str, Any]:
        now = int(time.time())
        default = {
            "iss": self.issuer.issuer,
            "aud": RESOURCE,
            "sub": "alice",
            "client_id": "x",
            "iat": now,
        }
        return default | {"exp": now + 600, "scope": "read write"} | claims

    def forged(self, header: dict[str, Any], key: Any = None, **claims: Any) -> str:
        """Return a token with this header, signed by a stranger's key or by `key`."""
        head = {"alg": "ES256", "kid": "1", "typ": "at+jwt"} | header
        return self.keep(forge(head, self.claims(**claims), key or STRANGER))

    async def wire(self) -> HttpWire:
        return HttpWire(await _open("127.0.0.1", self.port))

    async def ask(self, request: bytes) -> Answer:
        """Send one request on a connection of its own. Return the response."""
        wire = await self.wire()
        async with wire.stream:
            answer = await wire.ask(request)
            self.seen += repr(answer).encode()
            return answer


# -- Requests --------------------------------------------------------------------------------------


def call(
    tool: str = "whoami",
    *headers: str,
    token: str = "",
    target: str = "/mcp",
    body: str = "",
    method: str = "tools/call",
    mirrored: str | None = None,
    **params: Any,
) -> bytes:
    """Build a request of 2026-07-28.

    `token` is the value of `ClientAuthorization`, with or without its scheme.
    """
    meta = {
        "io.modelcontextprotocol/protocolVersion": E,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    given = params or {"name": tool, "arguments": {}}
    data = body or json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": given | {"_meta": meta}}
    )
    lines = [
        f"POST {target} HTTP/1.1",
        "host: localhost",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        f"mcp-protocol-version: {E}",
        f"mcp-method: {method}",
        f"mcp-name: {mirrored or params.get('uri', tool)}",
        f"content-length: {len(data.encode())}",
        *headers,
    ]
    if token:
        lines.append(f"authorization: {token if ' ' in token else f'Bearer {token}'}")
    return ("\r\n".join([*lines, "", ""]) + data).encode()


def posted(message: Any, token: str, *headers: str, target: str = "/mcp") -> bytes:
    """Build the POST of a message, for a revision with sessions."""
    data = message if isinstance(message, str) else json.dumps(message)
    lines = [
        f"POST {target} HTTP/1.1",
        "host: localhost",
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        f"content-length: {len(data.encode())}",
        *headers,
    ]
    if token:
        lines.append(f"authorization: Bearer {token}")
    return ("\r\n".join([*lines, "", ""]) + data).encode()


def initialize(version: str = D) -> dict[str, Any]:
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    return {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}


def tool_call(tool: str = "erase", id: int = 1) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {}},
    }


async def session(site: AttackedSite, token: str, version: str = D) -> str:
    """Begin a session with `token`. Return the header that names it."""
    begun = await site.ask(posted(initialize(version), token))
    assert begun.status == 200, begun
    name = f"mcp-session-id: {begun.headers[b'mcp-session-id'].decode()}"
    accepted = await site.ask(
        posted({"jsonrpc": "2.0", "method": "notifications/initialized"}, token, name,
            f"mcp-protocol-version: {version}")
    )  # fmt: skip
    assert accepted.status == 202, accepted
    return name


# -- The server ------------------------------------------------------------------------------------


def attacked_server(done: list[str], upstream: str) -> Server:
    server = Server("attacked_server")

    @server.tool
    def whoami(context: Context) -> str:
        """Return the principal, and all that can be printed of it."""
        grant = context.grant
        return (
            f"{context.principal} {context!r} {grant!r} {getattr(grant, 'claims', None)} "
            f"{vars(type(grant))}"
        )

    @server.tool
    def erase() -> str:
        """Do something that needs the scope `write`."""
        done.append("erased")
        return "erased"

    @server.tool
    async def again(context: Context) -> str:
        """Ask the user during the call."""
        answer = await context.elicit("sure?", {"type": "object", "properties": {}})
        done.append(f"asked {context.principal}")
        return f"{answer}"

    @server.tool
    async def ask_upstream() -> str:
        """Ask another server."""
        try:
            async with connect(upstream, versions=[D]):
                done.append("connected upstream")
        except ConnectFailed as exc:
            return f"{type(exc.__cause__).__name__}"
        raise AssertionError

    @server.resource(SECRET)
    def secret() -> str:
        """Return text that needs the scope `secrets`."""
        done.append("read")
        return "text"

    @server.resource("memo://{user}/{note}")
    def memo(user: str, note: str) -> str:
        """Return text that needs the scope `secrets`."""
        done.append("read")
        return "text"

    @server.completion("memo://{user}/{note}", "note")
    def notes(typed: str) -> list[str]:
        done.append("completed")
        return ["text"]

    @server.prompt
    def letter(to: str) -> str:
        """Return text that needs the scope `secrets`."""
        done.append("got")
        return "text"

    @server.completion("letter", "to")
    def people(typed: str) -> list[str]:
        done.append("completed")
        return ["text"]

    @server.method("acme/reindex")
    def reindex() -> None:
        done.append("indexed")

    return server


@asynccontextmanager
async def attacked(monkeypatch: pytest.MonkeyPatch, **options: Any) -> AsyncIterator[AttackedSite]:
    done: list[str] = []
    dialled: list[int] = []

    async def dial(host: str, port: int, **more: Any) -> trio.SocketStream:
        dialled.append(port)
        return await _open(host, port, **more)

    async def trapped(stream: trio.SocketStream) -> None:
        raise AssertionError("a connection to the trap")

    async with trio.open_nursery() as nursery:
        issuer: AuthorizationServer = await nursery.start(authorization_server.serve)
        [trap] = await nursery.start(partial(trio.serve_tcp, trapped, 0, host="127.0.0.1"))
        verifier = JwtVerifier(issuer.issuer, RESOURCE)
        guard = OAuthResourceServer(
            RESOURCE,
            [issuer.issuer],
            verifier,
            scopes=["read"],
            tool_scopes={"erase": ["write"]},
            resource_scopes={SECRET: ["secrets"], "memo://{user}/{note}": ["secrets"]},
            prompt_scopes={"letter": ["secrets"]},
            method_scopes={"acme/reindex": ["write"]},
            **options,
        )
        upstream = OAuthResourceServer(RESOURCE, [issuer.issuer], verifier, scopes=["read"])
        other = await nursery.start(partial(serve_http, Server("upstream"), auth=upstream))
        server = attacked_server(done, other.url)
        address = await nursery.start(partial(serve_http, server, auth=guard))
        monkeypatch.setattr(trio, "open_tcp_stream", dial)
        port = trap.socket.getsockname()[1]
        yield AttackedSite(issuer, address.port, done, dialled, port, other.url)
        monkeypatch.setattr(trio, "open_tcp_stream", _open)
        nursery.cancel_scope.cancel()


# -- Attacks ---------------------------------------------------------------------------------------


@dataclass
class Attack:
    """An attack on a server.

    `make` runs it. The response has `status`, and the log a line that matches `line`.
    """

    make: Callable[[AttackedSite], Awaitable[Answer]]
    status: int
    line: str
    options: dict[str, Any]


ATTACKS: dict[str, Attack] = {}
DPOP = {"dpop": True}


def attack(
    name: str,
    make: Callable[[AttackedSite], Awaitable[Answer]],
    status: int,
    line: str,
    **options: Any,
) -> None:
    assert name not in ATTACKS, name
    ATTACKS[name] = Attack(make, status, line, options)


def send_request(
    make: Callable[[AttackedSite], bytes],
) -> Callable[[AttackedSite], Awaitable[Answer]]:
    """Send one request."""

    async def send(site: AttackedSite) -> Answer:
        return await site.ask(make(site))

    return send


NEEDED = "refused with 401: an access token is needed"

# Without a token, or with one in another place.
for _name, _make, _status, _line in (
    ("no token", lambda s: call(), 401, NEEDED),
    ("a token in the query", lambda s: call(target=f"/mcp?access_token={s.token()}"), 401, NEEDED),
    ("a token in the query, called token", lambda s: call(target=f"/mcp?token={s.token()}"), 401,
        NEEDED),
    ("a token in a cookie", lambda s: call("whoami", f"cookie: access_token={s.token()}"), 401,
        NEEDED),
    ("a token in a header of its own", lambda s: call("whoami", f"x-access-token: {s.token()}"),
        401, NEEDED),
    ("a token for the proxy", lambda s: call("whoami", f"proxy-authorization: Bearer {s.token()}"),
        401, NEEDED),
    ("a token in the body", lambda s: call(name="whoami", access_token=s.token()), 401, NEEDED),
    ("a token forwarded",
        lambda s: call("whoami", f"x-forwarded-authorization: Bearer {s.token()}"), 401, NEEDED),
    ("a principal by its name",
        lambda s: call("whoami", "x-forwarded-user: alice", "x-remote-user: alice"), 401, NEEDED),
    ("a password", lambda s: call(token=f"Basic {b64encode(b'alice:x').decode()}"), 401, NEEDED),
    ("a scheme without a token", lambda s: call("whoami", "authorization: Bearer"), 400,
        "must have one token after its scheme"),
    ("nothing after the scheme", lambda s: call("whoami", "authorization: Bearer  "), 400,
        "must have one token after its scheme"),
    ("a token without a scheme", lambda s: call("whoami", f"authorization: {s.token()}"), 401,
        NEEDED),
    ("two headers", lambda s: call("whoami", f"authorization: Bearer {s.token()}", token=s.token()),
        400, "is repeated"),
    ("two headers, the second bad",
        lambda s: call("whoami", "authorization: Bearer x", token=s.token()), 400, "is repeated"),
    ("two tokens in one header", lambda s: call(token=f"Bearer {s.token()}, Bearer {s.token()}"),
        400, "and nothing else"),
    ("a token and something", lambda s: call(token=f"Bearer {s.token()} x"), 400,
        "and nothing else"),
    ("a token in quotes", lambda s: call(token=f'Bearer "{s.token()}"'), 400, "and nothing else"),
    ("a token with a parameter", lambda s: call(token=f"Bearer {s.token()};x=y"), 400,
        "and nothing else"),
    ("a token that is no ASCII", lambda s: call(token="Bearer t\xf6ken").decode().encode("latin-1"),
        400, "and nothing else"),
    ("a huge token", lambda s: call(token="Bearer " + "x" * 20_000), 431,
        "has more than 8192 bytes"),
    ("GET without a token", lambda s: get("/mcp", b"accept: text/event-stream"), 401,
        f"GET {NEEDED}"),
    ("DELETE without a token", lambda s: get("/mcp", method=b"DELETE"), 401, f"DELETE {NEEDED}"),
    ("the session of old times without a token",
        lambda s: posted(tool_call(), "", target="/mcp?session_id=x"), 401, NEEDED),
    ("with a slash behind", lambda s: call("erase", target="/mcp/"), 401, NEEDED),
    ("another verb in a header", lambda s: call("erase", "x-http-method-override: OPTIONS"), 401,
        NEEDED),
    ("a page of another origin",
        lambda s: call("erase", "origin: https://evil.example", token=s.token("read write")), 403,
        "POST refused with 403: the Origin is not allowed"),
    ("a page that is sandboxed",
        lambda s: call("erase", "origin: null", token=s.token("read write")), 403,
        "POST refused with 403: the Origin is not allowed"),
    ("a name that leads here",
        lambda s: call("erase", token=s.token("read write")).replace(b"host: localhost",
        b"host: evil.example"), 421, "POST refused with 421: the name in Host is not allowed"),
    ("from this machine, it says",
        lambda s: call("erase", "x-forwarded-for: 127.0.0.1", "forwarded: for=127.0.0.1"), 401,
        NEEDED),
):  # fmt: skip
    attack(_name, send_request(_make), _status, _line)


# Invalid tokens.
def signed_with_public_key(site: AttackedSite, alg: str, secret: bytes) -> str:
    header = {"alg": alg, "kid": "1", "typ": "at+jwt"}
    signed = f"{b64(as_bytes(header))}.{b64(as_bytes(site.claims()))}"
    signature = JWSRegistry.algorithms[alg].sign(signed.encode(), OctKey(secret, secret))
    return site.keep(f"{signed}.{b64(signature)}")


def unsigned(site: AttackedSite, alg: str, signature: str = "") -> str:
    return site.keep(f"{b64(as_bytes({'alg': alg}))}.{b64(as_bytes(site.claims()))}.{signature}")


def with_key_in_header(site: AttackedSite, **header: Any) -> str:
    return site.forged(header)


def with_replaced_claims(site: AttackedSite) -> str:
    """Return a valid token whose claims were replaced."""
    head, _, signature = site.token().split(".")
    return site.keep(f"{head}.{b64(as_bytes(site.claims(sub='root')))}.{signature}")


SIGNATURE = "refused with 401: the signature of the token is wrong"
ALGORITHM = "refused with 401: .*algorithm that is not allowed"
for _name, _token, _line in (
    ("for another audience", lambda s: s.token(aud="https://other.example/mcp"),
        "for another audience"),
    ("for no audience", lambda s: s.token(aud=[]), "for another audience"),
    ("for an audience like ours", lambda s: s.token(aud=f"{RESOURCE}/deeper"),
        "for another audience"),
    ("for our origin only", lambda s: s.token(aud="https://mcp.example.com"),
        "for another audience"),
    ("for us in capitals", lambda s: s.token(aud=RESOURCE.upper()), "for another audience"),
    ("expired", lambda s: s.token(exp=1), "has expired"),
    ("not valid yet", lambda s: s.token(nbf=int(time.time()) + 10_000), "not valid yet"),
    ("of tomorrow", lambda s: s.token(iat=int(time.time()) + 10_000), "in the future"),
    ("for ever", lambda s: s.forged({}, s.key, exp=None), "when it expires"),
    ("of nobody", lambda s: s.token(sub=None, client_id=None), "whose it is"),
    ("of somebody with two lines", lambda s: s.token(sub="a\nroot"), "cannot be read"),
    ("of another issuer", lambda s: s.token(iss="https://evil.example"), "refused with 401"),
    ("of an issuer like ours", lambda s: s.token(iss=f"{s.issuer.issuer}/"), "refused with 401"),
    ("of a stranger", lambda s: s.forged({}), SIGNATURE),
    ("of a stranger with his name", lambda s: s.forged({"kid": "evil"}), "does not publish"),
    ("with a path for a kid", lambda s: s.forged({"kid": "../../../../dev/null"}),
        "does not publish"),
    ("with a command for a kid", lambda s: s.forged({"kid": "1' or '1'='1"}), "does not publish"),
    ("by alg none", lambda s: unsigned(s, "none"), ALGORITHM),
    ("by alg NoNe", lambda s: unsigned(s, "NoNe"), ALGORITHM),
    ("by alg none, signed", lambda s: unsigned(s, "none", s.token().split(".")[2]), ALGORITHM),
    ("by HS256 with the public key",
        lambda s: signed_with_public_key(s, "HS256", s.key.as_pem(private=False)), ALGORITHM),
    ("by HS512 with the public key",
        lambda s: signed_with_public_key(s, "HS512", s.key.as_der(private=False)), ALGORITHM),
    ("by HS256 with its name", lambda s: signed_with_public_key(s, "HS256", b"1"), ALGORITHM),
    ("with crit", lambda s: s.forged({"crit": ["exp"], "exp": 1}, s.key), "extension"),
    ("with b64 false", lambda s: s.forged({"crit": ["b64"], "b64": False}, s.key), "extension"),
    ("with its own key", lambda s: with_key_in_header(s, jwk=STRANGER.as_dict(private=False)),
        SIGNATURE),
    ("with a place for the key",
        lambda s: with_key_in_header(s, jku=f"http://127.0.0.1:{s.trap}/keys"), SIGNATURE),
    ("with a place inside for the key",
        lambda s: with_key_in_header(s, jku="http://169.254.169.254/latest"), SIGNATURE),
    ("with a certificate's place",
        lambda s: with_key_in_header(s, x5u=f"http://127.0.0.1:{s.trap}/cert"), SIGNATURE),
    ("with a certificate", lambda s: with_key_in_header(s, x5c=[b64encode(b"x").decode()]),
        SIGNATURE),
    ("with all of it",
        lambda s: with_key_in_header(s, jwk=STRANGER.as_dict(private=False),
        jku=f"http://127.0.0.1:{s.trap}/", kid="evil"), "does not publish"),
    ("with exchanged claims", with_replaced_claims, SIGNATURE),
    ("that is an ID token", lambda s: s.forged({"typ": "id+jwt"}, s.key), "not an access token"),
    ("that is a proof", lambda s: s.forged({"typ": "dpop+jwt"}, s.key), "not an access token"),
    ("that is encrypted", lambda s: s.keep(".".join([*s.token().split("."), "x", "y"])),
        "encrypted"),
    ("that is half", lambda s: s.keep(s.token().rpartition(".")[0]), "not have the form"),
    ("that is words", lambda s: s.keep("correct-horse-battery-staple"), "not have the form"),
    ("that is a refresh token", lambda s: s.keep(b64(b"refresh" * 5)), "not have the form"),
    ("bound to a key we do not ask for", lambda s: s.token(cnf={"jkt": JKT}), "bound to a key"),
    ("bound to a certificate", lambda s: s.token(cnf={"x5t#S256": "x"}),
        "in a way that is not supported"),
):  # fmt: skip
    attack(
        f"a token {_name}",
        send_request(lambda s, _token=_token: call(token=_token(s))),  # type: ignore[misc]
        401,
        _line,
    )


# DPoP proofs.
def bound(site: AttackedSite) -> str:
    return site.token(cnf={"jkt": JKT})


def proven(make: Callable[[str], str]) -> Callable[[AttackedSite], Awaitable[Answer]]:
    def request(site: AttackedSite) -> bytes:
        token = bound(site)
        return call("whoami", f"dpop: {site.keep(make(token))}", token=f"DPoP {token}")

    return send_request(request)


def fresh(token: str, **more: Any) -> str:
    return proof(token, **{"iat": int(time.time()), "jti": f"j{next(_number)}", **more})


async def replayed(site: AttackedSite) -> Answer:
    token = bound(site)
    request = call("whoami", f"dpop: {site.keep(fresh(token))}", token=f"DPoP {token}")
    assert (await site.ask(request)).status == 200
    return await site.ask(request)


_PRIVATE = HOLDER.as_dict(private=True)
for _name, _proof, _line in (
    ("for GET", lambda t: fresh(t, htm="GET"), "for another method"),
    ("for another server", lambda t: fresh(t, htu="https://other.example/mcp"), "for another URL"),
    ("for a server like ours", lambda t: fresh(t, htu=f"{RESOURCE}.evil.example"),
        "for another URL"),
    ("for another token", lambda t: fresh(t + "x"), "for another token"),
    ("for no token", lambda t: fresh(t, without="ath"), "needs the claims"),
    ("of yesterday", lambda t: fresh(t, iat=int(time.time()) - 86_400), "too old"),
    ("of tomorrow", lambda t: fresh(t, iat=int(time.time()) + 86_400), "from the future"),
    ("of no time", lambda t: fresh(t, without="iat"), "needs the claims"),
    ("without a name", lambda t: fresh(t, without="jti"), "needs the claims"),
    ("by a stranger", lambda t: fresh(t, key=STRANGER), "another key than that of the proof"),
    ("with the private key in it", lambda t: fresh(t, header={"jwk": _PRIVATE}), "private key"),
    ("that is an access token", lambda t: fresh(t, header={"typ": "at+jwt"}), "needs the type"),
    ("by alg none", lambda t: fresh(t, header={"alg": "none"}), "algorithm that is not allowed"),
    ("by HS256", lambda t: fresh(t, header={"alg": "HS256"}), "algorithm that is not allowed"),
    ("with crit", lambda t: fresh(t, header={"crit": ["x"], "x": 1}), "extension"),
    ("that is none", lambda t: "x.y.z", "the proof is not valid"),
    ("that is empty", lambda t: "", "the proof is not valid"),
):  # fmt: skip
    attack(f"a proof {_name}", proven(_proof), 401, f"refused with 401: .*{_line}", **DPOP)
attack(
    "a proof tool_named_twice", replayed, 401, "refused with 401: .*(used|before|replay)", **DPOP
)
attack(
    "two proofs",
    send_request(
        lambda s: call(
            "whoami", f"dpop: {fresh('x')}", f"dpop: {fresh('x')}", token=f"DPoP {bound(s)}"
        )
    ),
    401,
    "exactly one DPoP header",
    **DPOP,
)
attack(
    "a bound token without a proof",
    send_request(lambda s: call(token=f"DPoP {bound(s)}")),
    401,
    "exactly one DPoP header",
    **DPOP,
)
attack(
    "a bound token as a free one",
    send_request(lambda s: call(token=bound(s))),
    401,
    "send it as DPoP",
    **DPOP,
)
attack(
    "a bound token as a free one, with a proof",
    send_request(lambda s: call("whoami", f"dpop: {fresh('x')}", token=bound(s))),
    401,
    "send it as DPoP",
    **DPOP,
)
attack("a proof without a nonce", proven(fresh), 401, "nonce", dpop=True, nonce_key=NONCE_KEY)
attack(
    "a proof with a nonce of its own",
    proven(lambda t: fresh(t, nonce="1234567890")),
    401,
    "nonce",
    dpop=True,
    nonce_key=NONCE_KEY,
)


# Sessions and states of another user.
def in_session(use: Callable[[str, str], bytes]) -> Callable[[AttackedSite], Awaitable[Answer]]:
    """Send a request of bob's in a session of alice's."""

    async def make(site: AttackedSite) -> Answer:
        name = await session(site, site.token())
        return await site.ask(use(site.token(sub="bob", scope="read write"), name))

    return make


FOREIGN = "refused with 404: the session belongs to another principal"
VERSION = f"mcp-protocol-version: {D}"


def event_of(id: str) -> Callable[[str, str], bytes]:
    return lambda token, name: get(
        "/mcp", b"accept: text/event-stream", name.encode(), VERSION.encode(),
        b"authorization: Bearer " + token.encode(), f"last-event-id: {id}".encode(),
    )  # fmt: skip


attack(
    "somebody else's session",
    in_session(lambda token, name: posted(tool_call(), token, name, VERSION)),
    404,
    FOREIGN,
)
attack(
    "the end of somebody else's session",
    in_session(
        lambda token, name: get(
            "/mcp",
            name.encode(),
            VERSION.encode(),
            b"authorization: Bearer " + token.encode(),
            method=b"DELETE",
        )
    ),
    404,
    FOREIGN,
)
attack("somebody else's stream", in_session(event_of("0-0")), 404, FOREIGN)
attack("an event of somebody else's", in_session(event_of("1-1")), 404, FOREIGN)
attack(
    "an answer for somebody else",
    in_session(
        lambda token, name: posted(
            {"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}, token, name, VERSION
        )
    ),
    404,
    FOREIGN,
)
attack(
    "a session without a token",
    in_session(lambda token, name: posted(tool_call(), "", name, VERSION)),
    401,
    NEEDED,
)


async def sse_session(site: AttackedSite) -> Answer:
    """Post to the session URL of 2024-11-05, which others may learn."""
    wire = await site.wire()
    async with wire.stream:
        await wire.send(
            get(
                "/mcp",
                b"accept: text/event-stream",
                b"authorization: Bearer " + site.token().encode(),
            )
        )
        line = (await wire.until(b"data: ") + await wire.until(b"\n")).splitlines()[-1]
        target = line.rpartition(b"data: ")[2].decode()
        return await site.ask(posted(initialize(), site.token(sub="bob"), target=target))


attack("somebody else's session of 2024-11-05", sse_session, 404, FOREIGN)


async def foreign_state(site: AttackedSite) -> Answer:
    capable: dict[str, Any] = {
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}}
    }
    meta = {"io.modelcontextprotocol/protocolVersion": E} | capable

    def again(**more: Any) -> str:
        params = {"name": "again", "arguments": {}, "_meta": meta, **more}
        return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})

    first = json.loads((await site.ask(call("again", token=site.token(), body=again()))).body)[
        "result"
    ]
    answers = {key: {"action": "accept", "content": {}} for key in first["inputRequests"]}
    body = again(requestState=first["requestState"], inputResponses=answers)
    return await site.ask(call("again", token=site.token(sub="bob"), body=body))


attack("somebody else's requestState", foreign_state, 400, "requestState refused")


# Operations that need more scopes than the token has.
MISSING = "refused with 403: the token lacks scopes.*missing"


def with_token(make: Callable[[str], bytes]) -> Callable[[AttackedSite], Awaitable[Answer]]:
    return send_request(lambda site: make(site.token()))


def tool_named_twice(first: str, second: str) -> str:
    """Return a call that names two tools."""
    whole = json.loads(call(first).partition(b"\r\n\r\n")[2])
    text = json.dumps(whole)
    return text.replace('"arguments"', f'"name": {json.dumps(second)}, "arguments"', 1)


def escaped() -> str:
    return call("erase").partition(b"\r\n\r\n")[2].decode().replace('"erase"', '"\\u0065rase"')


def batched(*messages: Any) -> Callable[[AttackedSite], Awaitable[Answer]]:
    async def make(site: AttackedSite) -> Answer:
        token = site.token()
        name = await session(site, token, B)
        return await site.ask(posted(list(messages), token, name, f"mcp-protocol-version: {B}"))

    return make


def batched_text(make: Callable[[str], str]) -> Callable[[AttackedSite], Awaitable[Answer]]:
    async def send(site: AttackedSite) -> Answer:
        token = site.token()
        name = await session(site, token, B)
        text = make(json.dumps([PING, tool_call()]))
        return await site.ask(posted(text, token, name, f"mcp-protocol-version: {B}"))

    return send


def method_named_twice() -> str:
    """Return a message with two methods."""
    return (
        call("erase")
        .partition(b"\r\n\r\n")[2]
        .decode()
        .replace('"method"', '"method": "ping", "method"', 1)
    )


def params_twice() -> str:
    """Return a message with the params of two tools."""
    first, second = (call(tool).partition(b"\r\n\r\n")[2].decode() for tool in ("whoami", "erase"))
    params = second[second.index('"params"') : -1]
    return f"{first[:-1]}, {params}}}"


PING = {"jsonrpc": "2.0", "id": 7, "method": "ping"}
NOTE = {"jsonrpc": "2.0", "method": "notifications/x"}
attack("a tool that takes more", with_token(lambda t: call("erase", token=t)), 403, MISSING)
attack(
    "a tool under another header",
    with_token(lambda t: call("erase", token=t, mirrored="whoami")),
    403,
    MISSING,
)
attack(
    "a tool under an escaped name",
    with_token(lambda t: call("erase", token=t, body=escaped())),
    403,
    MISSING,
)
attack(
    "a tool named second",
    with_token(lambda t: call("erase", token=t, body=tool_named_twice("whoami", "erase"))),
    403,
    MISSING,
)
attack(
    "a resource that takes more",
    with_token(lambda t: call(token=t, method="resources/read", uri=SECRET)),
    403,
    MISSING,
)
attack(
    "a resource in another spelling",
    with_token(lambda t: call(token=t, method="resources/read", uri="memo://%73ecret")),
    403,
    MISSING,
)
TEMPLATE = {"type": "ref/resource", "uri": "memo://{user}/{note}"}
PROMPT = {"type": "ref/prompt", "name": "letter"}
GUARDED: dict[str, tuple[str, dict[str, Any]]] = {
    "a prompt that takes more": ("prompts/get", {"name": "letter", "arguments": {"to": "x"}}),
    "a completion of a prompt": (
        "completion/complete", {"ref": PROMPT, "argument": {"name": "to", "value": ""}}
    ),
    "a completion of a template": (
        "completion/complete", {"ref": TEMPLATE, "argument": {"name": "note", "value": ""}}
    ),
    "a resource of a template": ("resources/read", {"uri": "memo://alice/1"}),
    "a resource of a template in another spelling": (
        "resources/read", {"uri": "memo://%61lice/%31"}
    ),
    "a method of the application": ("acme/reindex", {}),
}  # fmt: skip


def guarded_request(method: str, params: dict[str, Any], token: str) -> bytes:
    name = params.get("name") or params.get("uri") or ""
    return call(token=token, method=method, mirrored=name or None, **params or {"x": 1})


for _name, (_method, _params) in GUARDED.items():
    attack(
        _name,
        with_token(
            lambda t, m=_method, p=_params: guarded_request(m, p, t)  # type: ignore[misc]
        ),
        403,
        MISSING,
    )
    attack(
        f"{_name}, in a batch",
        batched(PING, {"jsonrpc": "2.0", "id": 1, "method": _method, "params": _params}),
        403,
        MISSING,
    )
attack(
    "a token without any scope", send_request(lambda s: call(token=s.token(scope=""))), 403, MISSING
)
attack(
    "a token with scopes like ours",
    send_request(lambda s: call(token=s.token(scope="READ read: readx re ad"))),
    403,
    MISSING,
)
attack("a tool hidden in a batch", batched(PING, NOTE, tool_call()), 403, MISSING)
attack("a tool at the head of a batch", batched(tool_call(), PING), 403, MISSING)
attack(
    "a tool tool_named_twice in a batch",
    batched(tool_call("whoami", 1), tool_call("erase", 1)),
    403,
    MISSING,
)
attack(
    "a tool in a batch behind white space",
    batched_text(lambda text: f" \r\n\t {text}"),
    403,
    MISSING,
)
attack(
    "a tool in a batch of batches", batched_text(lambda text: f"[{text}]"), 200, "message rejected"
)
attack(
    "a tool in a batch behind a mark",
    batched_text(lambda text: f"\ufeff{text}"),
    400,
    "message rejected",
)
attack(
    "a tool in a batch in which something cannot be read",
    batched_text(lambda text: text[:-1] + ", {]"),
    400,
    "message rejected",
)
attack(
    "a method named second",
    with_token(lambda t: call("erase", token=t, body=method_named_twice())),
    400,
    "message rejected",
)
attack(
    "params named second",
    with_token(lambda t: call("whoami", token=t, body=params_twice())),
    400,
    "message rejected",
)
attack(
    "a stream without the scope for it",
    send_request(
        lambda s: get(
            "/mcp",
            b"accept: text/event-stream",
            b"authorization: Bearer " + s.token(scope="").encode(),
        )
    ),
    403,
    MISSING,
)


async def send_after_another(site: AttackedSite) -> Answer:
    """Send a request without a token right after one with a token, on the same connection."""
    wire = await site.wire()
    async with wire.stream:
        await wire.send(call(token=site.token()) + call("erase"))
        assert (await wire.answer()).status == 200
        return await wire.answer()


async def send_with_request_as_body(site: AttackedSite) -> Answer:
    """Send a rejected request whose body looks like another request, with a token."""
    hidden = call("erase", token=site.token(scope="read write")).decode()
    return await site.ask(call("whoami", body=hidden))


attack("a request behind another one", send_after_another, 401, NEEDED)
attack("a request in the body of another one", send_with_request_as_body, 401, NEEDED)


# -- Tests -----------------------------------------------------------------------------------------


def check_no_harm(site: AttackedSite, caplog: pytest.LogCaptureFixture) -> None:
    issuer = int(site.issuer.issuer.rpartition(":")[2])
    assert set(site.dialled) <= {issuer, int(site.upstream.split(":")[2].split("/")[0])}
    assert site.done == []
    texts = {"log": caplog.text, "answers": site.seen.decode(), "objects": texts_of_objects()}
    for token in site.tokens:
        # A malformed token is searched for as a whole, a signed one by its signature.
        needle = token.rpartition(".")[2] or token
        assert [where for where, text in texts.items() if len(needle) > 8 and needle in text] == []


@pytest.mark.requirement("AR-1", "AR-10", "AR-11", "AR-13", "AR-14", "AU-6", "AU-7")
@pytest.mark.parametrize("name", ATTACKS)
async def test_server_attack_is_rejected(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Each row of `ATTACKS` is one request; an honest token must be served right after it."""
    bad = ATTACKS[name]
    async with attacked(monkeypatch, **bad.options) as site:
        with trio.fail_after(PATIENCE):
            answer = await bad.make(site)
        assert answer.status == bad.status, answer
        if answer.status == 401:
            assert b"resource_metadata=" in answer.headers[b"www-authenticate"]
        lines = [
            (record.getMessage(), record.exc_info)
            for record in caplog.records
            if record.name == "mcp_trio"
        ]
        assert [line for line, exc in lines if re.search(bad.line, f"{line} {exc}")], lines
        assert all(line.isprintable() for line, _ in lines)
        check_no_harm(site, caplog)
        # A valid token is accepted as before.
        if not bad.options.get("nonce_key"):
            assert (await site.ask(call(token=site.token()))).status == 200
        monkeypatch.undo()


@pytest.mark.requirement("AR-5", "AR-7")
@pytest.mark.parametrize("name", GUARDED)
async def test_request_with_its_scopes_is_executed(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The requests of the attacks are valid. The challenge of each names the missing scope."""
    method, params = GUARDED[name]
    async with attacked(monkeypatch) as site:
        denied = await site.ask(guarded_request(method, params, site.token()))
        challenge = denied.headers[b"www-authenticate"].decode()
        assert 'error="insufficient_scope"' in challenge
        (scope,) = re.findall('scope="(.*?)"', challenge)
        answer = await site.ask(guarded_request(method, params, site.token(scope)))
        assert answer.status == 200
        assert b"result" in answer.body
        assert len(site.done) == 1
        monkeypatch.undo()


async def test_token_is_not_passed_to_upstream_server(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with attacked(monkeypatch) as site:
        seen = await site.ask(call("whoami", token=site.token()))
        assert seen.status == 200
        response = await site.ask(call("ask_upstream", token=site.token()))
        assert json.loads(response.body)["result"]["content"][0]["text"] == AuthRequired.__name__
        assert "POST refused with 401: an access token is needed" in caplog.text
        check_no_harm(site, caplog)


@pytest.mark.parametrize(
    "kind", [KeyError, LookupError, InvalidToken, VerifierUnavailable, SystemExit, OSError]
)
async def test_verifier_exception_with_token_leaks_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, kind: type[BaseException]
) -> None:
    """A verifier such as `TOKENS[token]` raises an exception that contains the token."""

    async def verify(token: str) -> Grant | None:
        try:
            raise kind(token)
        except kind as exc:
            raise kind(f"no {token}") from exc

    guard = OAuthResourceServer(RESOURCE, ["https://as.example.com"], verify)
    async with trio.open_nursery() as nursery:
        address = await nursery.start(partial(serve_http, attacked_server([], ""), auth=guard))
        wire = HttpWire(await _open("127.0.0.1", address.port))
        async with wire.stream:
            answer = await wire.ask(call("erase", token="CANARY-token-of-a-user"))
        nursery.cancel_scope.cancel()
    statuses: dict[type[BaseException], int] = {InvalidToken: 401, VerifierUnavailable: 503}
    assert answer.status == statuses.get(kind, 500)
    assert f"refused with {answer.status}" in caplog.text
    assert "CANARY" not in f"{caplog.text} {answer!r}"


@pytest.mark.requirement("AR-10")
async def test_jwks_unknown_kid_fetches_seldom(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown key causes a fetch, which anyone can trigger: it must be rare."""
    async with attacked(monkeypatch) as site:
        statuses = [
            (await site.ask(call(token=site.forged({"kid": f"k{number}"})))).status
            for number in range(50)
        ]
        assert statuses == [401] * 4 + [503] * 46
        assert (await site.ask(call(token=site.token()))).status == 200
        assert site.issuer.log.count("GET /jwks") == 4
        check_no_harm(site, caplog)


def test_server_attacks_are_at_least_sixty() -> None:
    assert len(ATTACKS) >= 60
