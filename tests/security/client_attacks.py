"""Attacks on a client that logs in: by servers, name servers and the browser.

Each row is a change to an honest world, and words of the resulting error. `test_attacks_client.py`
runs them.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mcp_core.auth import Secret
from mcp_trio import Client, ClientProfile
from tests.security.internet import (
    AS,
    EVIL,
    MCP,
    PRM,
    REDIRECT_URI,
    Answer,
    Internet,
    ReceivedRequest,
    callback_url,
)

URL = f"https://{MCP}/mcp"
PROFILE = ClientProfile(redirect_uri=REDIRECT_URI)
AS_META = f"{AS}/.well-known/oauth-authorization-server"
AS_OIDC = f"{AS}/.well-known/openid-configuration"

SetUp = Callable[[Internet], object]
Later = Callable[[Client, Internet], Awaitable[object]]


@dataclass
class Attack:
    """An attack on a client.

    `set_up` makes the world hostile. `text` is in the error and in the log. `later` runs with a
    client that has logged in. `patience` is the client's timeout in seconds. `long` is True if the
    default run has it at another place only: of a product of places and attacks it has each place
    and each attack once.
    """

    set_up: SetUp
    text: str
    profile: ClientProfile = PROFILE
    later: Later | None = None
    patience: float = 20.0
    long: bool = False


ATTACKS: dict[str, Attack] = {}


def attack(name: str, set_up: SetUp, text: str, **more: Any) -> None:
    assert name not in ATTACKS, name
    ATTACKS[name] = Attack(set_up, text, **more)


# -- Hostile servers -------------------------------------------------------------------------------


def serve_at(*places: str, answer: Answer) -> SetUp:
    """Respond with `answer` at these URLs."""

    def set_up(world: Internet) -> None:
        for place in places:
            world.pages[place] = lambda request: answer

    return set_up


def resource(**lies: Any) -> SetUp:
    """Change the metadata of the MCP server."""
    return lambda world: world.prm.update(lies)


def server(**lies: Any) -> SetUp:
    """Change the metadata of the authorization server. A member that is None is removed."""

    def set_up(world: Internet) -> None:
        changed = world.metadata[AS] | lies
        world.metadata[AS] = {name: value for name, value in changed.items() if value is not None}

    return set_up


def challenge(*values: str) -> SetUp:
    """Challenge every request with these values."""
    return lambda world: setattr(world, "challenge", list(values))


def callback(make: Callable[[str, dict[str, str]], str]) -> SetUp:
    """Redirect the browser to the URL that `make` returns for the code and the request."""
    return lambda world: setattr(world, "callback", make)


def redirect(location: str, status: int = 302) -> Answer:
    return Answer(None, status, {"location": location})


HUGE = Answer(b" " * 70_000 + b"{}")
ENDLESS = Answer(
    raw=b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    + b"1000\r\n%b\r\n" % (b" " * 4096) * 20
)
HTML = Answer(b"<!doctype html><script>alert(1)</script>", headers={"content-type": "text/html"})
DRIP = Answer({"resource": URL}, drip=True)
HANGS = Answer(hang=True)
TWO_LENGTHS = Answer(raw=b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 40\r\n\r\n{}")
GARBAGE = Answer(raw=b"\x00\xff\x00\xff not HTTP at all\r\n\r\n")
GZIPPED = Answer(b"\x1f\x8b" + b"\0" * 50, headers={"content-encoding": "gzip"})
NESTED = Answer(b"[" * 60_000)
BROKEN_OFF = Answer(raw=b'HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n{"resource":')
ONE_HEADER_TOO_LONG = Answer(raw=b"HTTP/1.1 200 OK\r\nx: " + b"x" * 400_000 + b"\r\n\r\n{}")

BAD_DOCUMENTS: dict[str, tuple[Answer, str]] = {
    "is no JSON": (HTML, "has no JSON"),
    "is JSON too deep to read": (NESTED, "cannot be read"),
    "is no object": (Answer([1]), "cannot be read"),
    "has no sensible types": (
        Answer({"resource": 1, "issuer": ["x"], "scopes_supported": "a b"}),
        "cannot be read",
    ),
    "is too long": (HUGE, "longer than 65536 bytes"),
    "never ends": (ENDLESS, "longer than 65536 bytes"),
    "hangs": (HANGS, "did not answer within"),
    "comes in drops": (DRIP, "did not answer within"),
    "is compressed": (GZIPPED, "encoded"),
    "has two lengths": (TWO_LENGTHS, "cannot be fetched from"),
    "is no HTTP": (GARBAGE, "cannot be fetched from"),
    "breaks off": (BROKEN_OFF, "cannot be fetched from"),
    "has a head without end": (ONE_HEADER_TOO_LONG, "cannot be fetched from"),
    "fails": (Answer(None, 500), "answered 500. Try again later"),
    "is asked to wait for": (Answer(None, 429), "answered 429"),
    "leads to a stranger": (redirect(f"https://{EVIL}/prm"), "answered 302"),
    "leads to a stranger for ever": (redirect(f"https://{EVIL}/prm", 308), "answered 308"),
    "leads to the metadata service": (redirect("http://169.254.169.254/latest"), "answered 302"),
    "leads to the metadata service by TLS": (
        redirect("https://169.254.169.254/latest"),
        "answered 302",
    ),
    "leads to a script": (redirect("javascript:alert(1)"), "answered 302"),
    "leads to a file": (redirect("file:///etc/passwd"), "answered 302"),
    "leads down to http": (redirect(f"http://{MCP}/prm"), "answered 302"),
    "leads to another port": (redirect(f"https://{MCP}:8443/prm"), "answered 302"),
    "leads to a user": (redirect(f"https://{MCP}@{EVIL}/prm"), "answered 302"),
    "leads to an invalid URL": (redirect("https://[::1"), "answered 302"),
}
for _number, (_name, (_answer, _text)) in enumerate(BAD_DOCUMENTS.items()):
    _patience = 0.4 if "within" in _text else 20.0
    # The challenge names the URL, so change_nothing else suggests a server without metadata.
    attack(
        f"the MCP server's metadata {_name}",
        serve_at(PRM, answer=_answer),
        _text,
        patience=_patience,
        long=_number % 2 == 1,
    )
    attack(
        f"the authorization server's metadata {_name}",
        serve_at(AS_META, AS_OIDC, answer=_answer),
        _text,
        patience=_patience,
        long=_number % 2 == 0,
    )
attack(
    "the metadata leads round in a circle",
    serve_at(PRM, answer=redirect("/.well-known/oauth-protected-resource/mcp")),
    "answered 302",
)

# -- Impersonation ---------------------------------------------------------------------------------

for _resource in (
    f"https://{EVIL}/mcp",
    f"https://{MCP}/mc",
    f"https://{MCP}/mcp/deeper",
    f"https://{MCP}.{EVIL}/mcp",
    f"https://{MCP}:8443/mcp",
    f"http://{MCP}/mcp",
    f"https://{MCP}@{EVIL}/mcp",
    f"https://{MCP}/mcp#x",
    f"https://{MCP}/mcp?tenant=other",
    "javascript:alert(1)",
    "",
):
    attack(
        f"the metadata is of the resource {_resource!r}",
        resource(resource=_resource),
        "of another resource",
    )

for _issuer in (
    f"https://{EVIL}",
    f"https://{AS}//",
    f"https://{AS}/tenant",
    f"https://{AS.upper()}",
    f"https://{AS}:443",
    f"http://{AS}",
    f"https://{AS}.",
    f"https://{AS}%2f",
    "",
):
    attack(f"the issuer is {_issuer!r}", server(issuer=_issuer), "of another authorization server")
# A bare origin may have a slash. From then on it is a part of the issuer.
attack(
    "the issuer has a slash, and iss has none",
    server(issuer=f"https://{AS}/"),
    "iss does not match",
)

attack(
    "no authorization server is named",
    resource(authorization_servers=[]),
    "names no authorization server",
)
attack(
    "a foreign resource_metadata is of a foreign resource",
    lambda world: (
        challenge(f'Bearer resource_metadata="https://{EVIL}/prm"')(world),
        serve_at(
            f"{EVIL}/prm",
            answer=Answer(
                {"resource": f"https://{EVIL}/mcp", "authorization_servers": [f"https://{EVIL}"]}
            ),
        )(world),
    ),
    "of another resource",
)

# -- Unusable URLs ---------------------------------------------------------------------------------

BAD_URLS: dict[str, str] = {
    "javascript:alert(document.domain)": "neither https nor http",
    "JaVaScRiPt://mcp.example/%0aalert(1)": "neither https nor http",
    "file:///etc/passwd": "neither https nor http",
    "data:text/html,<script>alert(1)</script>": "do not belong",
    "data:application/json,x": "neither https nor http",
    "vbscript:x": "neither https nor http",
    "ftp://as.example/x": "neither https nor http",
    "ms-settings:x": "neither https nor http",
    "//as.example/x": "neither https nor http",
    "--new-window": "neither https nor http",
    "http://as.example/x": "is not https",
    "http://127.0.0.1:8080/x": "is not https",
    "http://localhost/x": "is not https",
    "https://as.example@evil.example/x": "contains a user name",
    "https://as.example/x#fragment": "has a fragment",
    "https://as.example/$(reboot)": "do not belong",
    "https://as.example/`reboot`": "do not belong",
    "https://as.example/a b": "do not belong",
    'https://as.example/"x': "do not belong",
    "https://as.example\\@evil.example/x": "do not belong",
    "https://as.example/x\r\nhost: evil.example": "do not belong",
    "https://as.example/\x00": "do not belong",
    "https:///x": "has no valid host",
    "https://as.example:0/x": "has no valid host",
    "https://as.example:99999/x": "is not a URL",
    "https://[::1/x": "is not a URL",
    "https://[fe80::1%25eth0]/x": "has no valid host",
    "https://ａｓ.example/x": "do not belong",
    "https://127。0。0。1/x": "do not belong",
    "https://as.example/" + "x" * 9000: "longer than",
}
for _number, (_url, _text) in enumerate(BAD_URLS.items()):
    _shown = _url if len(_url) < 60 else f"{_url[:40]}..."
    for _place, (_name, _set_up) in enumerate(
        {
            "the browser is sent to": server(authorization_endpoint=_url),
            "the code is wanted at": server(token_endpoint=_url),
            "the client is registered at": server(registration_endpoint=_url),
            "the authorization server is": resource(authorization_servers=[_url]),
        }.items()
    ):
        attack(f"{_name} {_shown!r}", _set_up, _text, long=_place != _number % 4)
for _url in ("javascript:x", "file:///etc/passwd", f"http://{MCP}/x", f"https://{MCP}@{EVIL}/"):
    attack(
        f"the challenge names {_url!r}",
        challenge(f'Bearer resource_metadata="{_url}"'),
        BAD_URLS.get(_url, r"not https|neither|user name"),
    )

# -- Private addresses -----------------------------------------------------------------------------

FORBIDDEN = (
    "10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.254 192.168.1.1 169.254.169.254 169.254.170.2 "
    "100.64.0.1 100.100.100.200 192.0.0.192 168.63.129.16 198.18.0.1 "
    "224.0.0.1 240.0.0.1 255.255.255.255 "
    "127.0.0.1 127.255.255.254 127.1 127.0.1 0.0.0.0 0 2130706433 0x7f000001 0x7f.1 017700000001 "
    "0177.0.0.1 "
    "2852039166 0xa9fea9fe 0xA9.0xFE.0xA9.0xFE 0251.0376.0251.0376 169.16689662 3232235777 "
    "localhost LocalHost localhost. "
    "[::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:169.254.169.254] "
    "[::ffff:a9fe:a9fe] "
    "[0:0:0:0:0:ffff:a9fe:a9fe] [::127.0.0.1] [::a9fe:a9fe] [fe80::1] [fe80::a9fe:a9fe] [fec0::1] "
    "[fc00::1] "
    "[::ffff:168.63.129.16] [64:ff9b::a83f:8110] [fd20:ce::254] "
    "[fd00:ec2::254] [64:ff9b::a9fe:a9fe] [64:ff9b::169.254.169.254] [64:ff9b:1::a00:1] "
    "[2002:a9fe:a9fe::1] "
    "[2002:7f00:1::] [2001::1] [2001:db8::1] [ff02::1] [100::1] "
    "metadata.google.internal intranet.evil.example router.evil.example six.evil.example"
).split()
NAMES = {
    "metadata.google.internal": ["169.254.169.254"],
    "intranet.evil.example": ["10.1.2.3", "192.168.0.7"],
    "router.evil.example": ["::ffff:10.0.0.1"],
    "six.evil.example": ["fd00:ec2::254", "::1"],
}
PRIVATE = "private network"
# Other spellings of IPv4 addresses are refused before any lookup.
NOT_A_NAME = re.compile(r"(\d+|0x[0-9a-f]+)(\.(\d+|0x[0-9a-f]+)){0,3}", re.IGNORECASE)
PLAIN_ADDRESS = re.compile(r"[1-9]\d*\.\d+\.\d+\.\d+|0\.0\.0\.0")


def reason_against(host: str) -> str:
    number = NOT_A_NAME.fullmatch(host) and not PLAIN_ADDRESS.fullmatch(host)
    return "it is a number, but no plain IP address" if number else PRIVATE


def leads_to(host: str, set_up: SetUp) -> SetUp:
    def both(world: Internet) -> None:
        world.names.update({name: [addresses] for name, addresses in NAMES.items()})
        set_up(world)

    return both


for _number, _host in enumerate(FORBIDDEN):
    _at = f"https://{_host}"
    attack(
        f"the challenge leads to {_host}",
        leads_to(_host, challenge(f'Bearer resource_metadata="{_at}/x"')),
        reason_against(_host),
        long=_number % 2 == 1,
    )
    attack(
        f"the authorization server is at {_host}",
        leads_to(_host, resource(authorization_servers=[_at])),
        reason_against(_host),
        long=_number % 2 == 0,
    )
for _host in (
    "169.254.169.254",
    "2130706433",
    "[::ffff:a9fe:a9fe]",
    "metadata.google.internal",
    "localhost",
):
    _at = f"https://{_host}"
    attack(
        f"the client is registered at {_host}",
        leads_to(_host, server(registration_endpoint=f"{_at}/r")),
        reason_against(_host),
    )
    attack(
        f"the code is wanted at {_host}",
        leads_to(_host, server(token_endpoint=f"{_at}/t")),
        reason_against(_host),
    )


def rebind_name(world: Internet) -> None:
    """Resolve the name to a public address for the metadata, and to a local one for the code."""
    good = world.names[AS][0]
    # The lookups are for metadata, registration, and the token endpoint.
    world.names[AS] = [good, good, ["127.0.0.1"]]


attack("the name leads elsewhere the third time", rebind_name, PRIVATE)


def rebind_name_on_redirect(world: Internet) -> None:
    """Resolve the MCP server's name to a local address behind a redirect to itself."""
    good = world.names[MCP][0]
    world.names[MCP] = [good, good, ["169.254.169.254"]]
    serve_at(PRM, answer=redirect("/.well-known/other"))(world)


attack("the name leads elsewhere behind a redirect", rebind_name_on_redirect, PRIVATE)

# -- Challenges ------------------------------------------------------------------------------------

_NOWHERE = serve_at(f"{MCP}/.well-known/oauth-protected-resource", PRM, answer=Answer(None, 404))


def unreadable_challenge(*values: str) -> SetUp:
    """Send an unreadable challenge, from a server without metadata."""

    def set_up(world: Internet) -> None:
        _NOWHERE(world)
        challenge(*values)(world)

    return set_up


for _name, _values in {
    "is empty": [""],
    "is missing": [],
    "is of another scheme": [f'Basic realm="x", resource_metadata="https://{EVIL}/prm"'],
    "is quoted and does not end": [f'Bearer resource_metadata="https://{EVIL}/prm'],
    "has the place in a realm with commas": [
        f'Bearer realm="a, Bearer resource_metadata=https://{EVIL}/prm, b"'
    ],
    "has the place in a realm with quotes": [
        f'Bearer realm="a\\", resource_metadata=\\"https://{EVIL}/prm\\""'
    ],
    "is made of commas": [", ,, ,=,", f',=resource_metadata="https://{EVIL}"'],
    "is far too long": ["Bearer " + "x" * 20_000 + f', resource_metadata="https://{EVIL}/prm"'],
    "is no ASCII": ['Bearer \xff\xfe="x"'],
}.items():
    attack(
        f"the challenge {_name}",
        unreadable_challenge(*_values),
        r"does not say where to get a token|the registration with",
    )
attack(
    "the challenge stands twice, and the second leads to a stranger",
    challenge(
        f'Bearer resource_metadata="http://{MCP}/x"',
        f'Bearer resource_metadata="https://{EVIL}/prm"',
    ),
    "is not https",
)
attack(
    "the challenge names two places",
    challenge(f'Bearer resource_metadata="http://{MCP}/x", resource_metadata="https://{EVIL}/prm"'),
    "is not https",
)

# -- PKCE ------------------------------------------------------------------------------------------

for _methods in (None, [], ["plain"], ["s256"], ["S512", "plain"]):
    attack(
        f"PKCE is offered as {_methods}",
        server(code_challenge_methods_supported=_methods),
        "PKCE with S256",
    )
attack(
    "no authorization endpoint",
    server(authorization_endpoint=None),
    "has no authorization endpoint, so a browser cannot log in",
)
attack("no tokens are given", server(token_endpoint=None), "has no token endpoint")

for _query in (
    "redirect_uri=https://evil.example/callback",
    "client_id=evil&redirect_uri=https://evil.example/callback",
    "state=known",
    "code_challenge=x&code_challenge_method=plain",
    "response_type=token",
    "request_uri=https://evil.example/request",
    "request=eyJhbGciOiJub25lIn0.e30.",
    "response_mode=fragment",
    "scope=admin",
):
    attack(
        f"the browser is sent with {_query!r}",
        server(authorization_endpoint=f"https://{AS}/authorize?{_query}"),
        "already sets parameters of a login",
    )

# -- Callbacks -------------------------------------------------------------------------------------

NO_ANSWER = "not the redirect of this login"
for _name, _make, _text in (
    ("no state", lambda code, query: callback_url(code, query, state=None), NO_ANSWER),
    ("another state", lambda code, query: callback_url(code, query, state="x" * 43), NO_ANSWER),
    ("half of the state", lambda code, query: callback_url(code, query, state=query["state"][:20]),
        NO_ANSWER),
    ("an empty state", lambda code, query: callback_url(code, query, state=""), NO_ANSWER),
    ("the state twice", lambda code, query: f"{callback_url(code, query)}&state={query['state']}",
        NO_ANSWER),
    ("a state of others before ours", lambda code,
        query: f"{REDIRECT_URI}?state=x&state={query['state']}", NO_ANSWER),
    ("an error and no state", lambda code, query: f"{REDIRECT_URI}?error=access_denied", NO_ANSWER),
    ("change_nothing", lambda code, query: REDIRECT_URI, NO_ANSWER),
    ("no URL", lambda code, query: "http://[", NO_ANSWER),
    ("not even text of a URL", lambda code, query: "\x00\xff\ud800", NO_ANSWER),
    ("far too much", lambda code, query: callback_url(code, query) + "&x" * 20_000, NO_ANSWER),
    ("a thousand fields", lambda code, query: callback_url(code, query) + "&x=y" * 1000, NO_ANSWER),
    ("the state in a fragment", lambda code, query: callback_url(code, query).replace("?", "#"),
        NO_ANSWER),
    ("no code", lambda code, query: callback_url(code, query, code=None), "without a code"),
    ("an empty code", lambda code, query: callback_url(code, query, code=""), "without a code"),
    ("the code twice", lambda code, query: f"{callback_url(code, query)}&code=injected",
        "code twice"),
    ("a refusal", lambda code, query: callback_url(code, query, code=None, error="access_denied"),
        "login was refused"),
    ("a refusal and a code", lambda code, query: callback_url(code, query, error="access_denied"),
        "login was refused"),
    ("a refusal that rings", lambda code, query: callback_url(code, query, error="\x1b[2J\x07"),
        "cannot be read"),
    ("no issuer where it was promised", lambda code, query: callback_url(code, query, iss=None),
        "iss is missing"),
    ("another issuer", lambda code, query: callback_url(code, query, iss=f"https://{EVIL}"),
        "iss does not match"),
    ("the issuer with a slash", lambda code, query: callback_url(code, query, iss=f"https://{AS}/"),
        "iss does not match"),
    ("the issuer in capitals", lambda code,
        query: callback_url(code, query, iss=f"https://{AS.upper()}"), "iss does not match"),
    ("an empty issuer", lambda code, query: callback_url(code, query, iss=""),
        "iss does not match"),
    ("the issuer twice", lambda code, query: f"{callback_url(code, query)}&iss=https://{EVIL}",
        "iss twice"),
    ("another issuer's refusal", lambda code,
        query: callback_url(code, query, iss="https://x", error="server_error"),
        "iss does not match"),
):  # fmt: skip
    attack(f"the browser brings {_name}", callback(_make), _text)

# -- Mix-up and downgrade --------------------------------------------------------------------------


def mix_up(*, admits: bool) -> SetUp:
    """Name a hostile authorization server, which sends the user to the honest one to get the code.

    `admits` is True if its metadata promises `iss`.
    """

    def set_up(world: Internet) -> None:
        resource(authorization_servers=[f"https://{EVIL}"])(world)
        world.metadata[EVIL]["authorization_endpoint"] = f"https://{AS}/authorize"
        world.metadata[EVIL]["authorization_response_iss_parameter_supported"] = admits

    return set_up


attack("a mix-up", mix_up(admits=True), "iss does not match")
attack("a mix-up by one that promises no iss", mix_up(admits=False), "iss does not match")
attack(
    "a mix-up with the good one's name",
    lambda world: (mix_up(admits=True)(world), world.metadata[EVIL].update(issuer=f"https://{AS}")),
    "of another authorization server",
)
attack(
    "a server of old times whose metadata is a stranger's",
    lambda world: (
        unreadable_challenge()(world),
        serve_at(
            f"{MCP}/.well-known/oauth-authorization-server",
            answer=Answer(dict(world.metadata[EVIL]))
        )(world),
    ),
    "of another authorization server",
)  # fmt: skip
attack(
    "credentials made for one are wanted by another",
    resource(authorization_servers=[f"https://{EVIL}"]),
    "was made for",
    profile=ClientProfile(
        redirect_uri=REDIRECT_URI,
        client_id="us",
        client_secret=Secret("CANARY-profile"),
        issuer=f"https://{AS}",
    ),
)

# -- Registration ----------------------------------------------------------------------------------

REGISTER = f"{AS}/register"
for _name, _answer, _text in (
    ("refuses", Answer({"error": "invalid_redirect_uri"}, 400), "does not accept the redirect URI"),
    ("refuses in HTML", Answer(b"<html>", 403), "status 403"),
    ("refuses with bells", Answer({"error": "\x07\x1b]0;x\x07"}, 400), "status 400"),
    ("answers HTML", HTML, "cannot be read"),
    ("answers with change_nothing", Answer(b"", 201), "cannot be read"),
    ("answers without an id", Answer({"client_id": ""}, 201), "usable client_id"),
    ("answers with an id of two lines", Answer({"client_id": "a\r\nx: y"}, 201),
        "usable client_id"),
    ("wants a method of its own",
        Answer({"client_id": "us", "token_endpoint_auth_method": "tls"}, 201), "is not supported"),
    ("wants a secret and gives none", Answer({"client_id": "us"}, 201), "needs a secret"),
    ("answers without end", ENDLESS, "longer than 65536 bytes"),
    ("sends on to a stranger", redirect(f"https://{EVIL}/register", 307), "status 307"),
    ("sends on to the metadata service", redirect("http://169.254.169.254/", 307), "status 307"),
    ("fails", Answer(None, 503), "status 503"),
    ("is no HTTP", GARBAGE, "the registration with"),
):  # fmt: skip
    attack(f"the registration {_name}", serve_at(REGISTER, answer=_answer), _text)
attack(
    "the registration hangs",
    serve_at(REGISTER, answer=HANGS),
    "did not answer within",
    patience=0.4,
)

# -- Token endpoints -------------------------------------------------------------------------------

TOKEN = f"{AS}/token"
_GOOD = {"access_token": "x" * 20, "token_type": "Bearer"}
for _name, _answer, _text in (
    ("HTML", HTML, "cannot be read"),
    ("change_nothing", Answer(b""), "cannot be read"),
    ("no token", Answer({"token_type": "Bearer"}), "cannot be read"),
    ("an empty token", Answer(_GOOD | {"access_token": ""}), "does not fit into a header"),
    ("a token of two lines", Answer(_GOOD | {"access_token": "a\r\nx-admin: 1"}),
        "does not fit into a header"),
    ("a token of two words", Answer(_GOOD | {"access_token": "a b"}), "does not fit into a header"),
    ("a token that is no ASCII", Answer(_GOOD | {"access_token": "tökén"}),
        "does not fit into a header"),
    ("a list of tokens", Answer(_GOOD | {"access_token": ["x"]}), "cannot be read"),
    ("a token of type mac", Answer(_GOOD | {"token_type": "mac"}), "unknown type"),
    ("a token of type N_A", Answer(_GOOD | {"token_type": "N_A"}), "unknown type"),
    ("a bound token that nobody asked for", Answer(_GOOD | {"token_type": "DPoP"}), "unknown type"),
    ("a huge token", Answer(_GOOD | {"access_token": "x" * 70_000}), "longer than 65536 bytes"),
    ("without end", ENDLESS, "longer than 65536 bytes"),
    ("a refusal", Answer({"error": "invalid_grant"}, 400), "gave no token: invalid_grant"),
    ("a refusal with status 200", Answer({"error": "invalid_client"}),
        "gave no token: invalid_client"),
    ("a refusal with bells", Answer({"error": "\x1b[31m"}, 400), "answered 400"),
    ("a fault", Answer(None, 500), "answered 500"),
    ("a redirect to a stranger", redirect(f"https://{EVIL}/token", 307), "answered 307"),
    ("a redirect into the house", redirect("http://127.0.0.1/token", 308), "answered 308"),
    ("no HTTP", GARBAGE, "no answer from the token endpoint"),
):  # fmt: skip
    attack(f"the token endpoint gives {_name}", serve_at(TOKEN, answer=_answer), _text)
attack(
    "the token endpoint hangs", serve_at(TOKEN, answer=HANGS), "did not answer within", patience=0.4
)


def echo_secrets(world: Internet) -> None:
    def page(request: ReceivedRequest) -> Answer:
        world.planted.setdefault(request.fields["code_verifier"], frozenset((AS,)))
        echo = " ".join((*request.fields.values(), *world.planted))
        return Answer({"error": "invalid_grant", "error_description": echo}, 400)

    world.pages[TOKEN] = page


attack(
    "the token endpoint serve_at all our secrets aloud",
    echo_secrets,
    "gave no token: invalid_grant",
)
attack(
    "the token endpoint wants ever another nonce",
    lambda world: (
        challenge(f'DPoP resource_metadata="https://{PRM}"')(world),
        world.pages.update(
            {TOKEN: lambda query: Answer({"error": "use_dpop_nonce"}, 400,
                {"dpop-nonce": f"n{len(world.requests)}"})}
        ),
    ),
    "gave no token: use_dpop_nonce",
)  # fmt: skip

# -- Loops -----------------------------------------------------------------------------------------


def accept_no_token(world: Internet) -> None:
    class Never(set[str]):
        def add(self, token: str) -> None:
            pass

    world.good = Never()


def require_endless_nonces(world: Internet) -> None:
    """Issue bound tokens, and require another nonce for each request."""

    def token(request: ReceivedRequest) -> Answer:
        return Answer({"access_token": world.plant("access", MCP), "token_type": "DPoP"})

    def mcp(request: ReceivedRequest) -> Answer:
        header = f'DPoP error="use_dpop_nonce", resource_metadata="https://{PRM}"'
        return Answer(
            None, 401, {"www-authenticate": header, "dpop-nonce": f"nonce-{len(world.requests)}"}
        )

    world.pages |= {TOKEN: token, f"{MCP}/mcp": mcp}


attack("no token is ever taken", accept_no_token, "has just given")
attack("the MCP server wants ever another nonce", require_endless_nonces, "keeps refusing")


async def call(client: Client, world: Internet) -> None:
    await client.call_tool("add", {})


async def demand_new_scopes(client: Client, world: Internet) -> None:
    """Require another scope each time."""
    honest = world.pages[f"{MCP}/mcp"]

    def page(request: ReceivedRequest) -> Answer:
        world.forbids = f'Bearer error="insufficient_scope", scope="s{len(world.requests)}"'
        return honest(request)

    world.pages[f"{MCP}/mcp"] = page
    await call(client, world)


async def demand_same_scope(client: Client, world: Internet) -> None:
    world.forbids = 'Bearer error="insufficient_scope", scope="admin"'
    await call(client, world)


async def demand_invalid_scope(client: Client, world: Internet) -> None:
    world.forbids = 'Bearer error="insufficient_scope", scope="\\"\\\\"'
    await call(client, world)


async def move_authorization_server(client: Client, world: Internet) -> None:
    """Let a hostile MCP server name an authorization server that wants the existing tokens."""
    world.good.clear()
    world.prm["authorization_servers"] = [f"https://{EVIL}"]
    world.metadata[EVIL]["authorization_endpoint"] = f"https://{AS}/authorize"
    await call(client, world)


async def move_resource(client: Client, world: Internet) -> None:
    world.good.clear()
    world.prm["resource"] = f"https://{EVIL}/mcp"
    await call(client, world)


async def move_token_endpoint(client: Client, world: Internet) -> None:
    """Let the name of the authorization server resolve to a private address."""
    world.good.clear()
    world.names[AS] = [["10.0.0.1"]]
    await call(client, world)


async def move_to_server_without_pkce(client: Client, world: Internet) -> None:
    world.good.clear()
    world.prm["authorization_servers"] = [f"https://{EVIL}"]
    del world.metadata[EVIL]["code_challenge_methods_supported"]
    await call(client, world)


async def refresh_with_html(client: Client, world: Internet) -> None:
    world.good.clear()
    world.pages[TOKEN] = lambda request: HTML
    await call(client, world)


async def refresh_with_redirect(client: Client, world: Internet) -> None:
    world.good.clear()
    world.pages[TOKEN] = lambda request: redirect(f"https://{EVIL}/token", 307)
    await call(client, world)


def change_nothing(world: Internet) -> None:
    pass


attack(
    "every scope is not enough",
    change_nothing,
    "still refuses tools/call add",
    later=demand_new_scopes,
)
attack(
    "a scope is wanted that is never given",
    change_nothing,
    "still refuses tools/call add",
    later=demand_same_scope,
)
attack(
    "a scope is wanted that has no name",
    change_nothing,
    "still refuses tools/call add",
    later=demand_invalid_scope,
)
attack(
    "another authorization server wants what the first gave",
    change_nothing,
    "iss does not match",
    later=move_authorization_server,
)
attack(
    "the MCP server becomes another resource",
    change_nothing,
    "of another resource",
    later=move_resource,
)
attack(
    "the authorization server move_authorization_server into our house",
    change_nothing,
    PRIVATE,
    later=move_token_endpoint,
)
attack(
    "another authorization server knows no PKCE",
    change_nothing,
    "PKCE with S256",
    later=move_to_server_without_pkce,
)
attack("the refreshing ends in HTML", change_nothing, "cannot be read", later=refresh_with_html)
attack(
    "the refreshing leads to a stranger",
    change_nothing,
    "answered 307",
    later=refresh_with_redirect,
)
