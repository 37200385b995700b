"""A world that sends any response to any request, and the invariants that hold in it.

There are two authorization servers, an honest one and one that may lie, and an MCP server that may
name either. Every value that a server issues contains its name, so that a leak shows where the
value came from.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import McpTrioError
from mcp_core.auth import (
    Browse,
    Fetch,
    FetchFailed,
    HttpResponse,
    ListenForRedirect,
    Load,
    Save,
    find_url_error,
)
from tests.core.auth.play import Clock, McpRequest, authorizer, server_metadata, session
from tests.levels import fewer_examples

SERVER = "https://mcp.example.com"
URL = f"{SERVER}/mcp"
HONEST = "https://honest.example.com"
EVIL = "https://evil.example.com"
ISSUERS = [HONEST, EVIL]
GARBAGE = [
    HttpResponse(200, [], b"<html>"),
    HttpResponse(200, [], b"\xff\x00" * 50),
    HttpResponse(200, [], b"[" * 3000),
    HttpResponse(200, [], b"x" * 70_000),
    HttpResponse(200, [], b"null"),
    *(HttpResponse(code, [], b"") for code in (204, 400, 401, 403, 404, 405, 429, 500, 503)),
    HttpResponse(302, [("location", f"{EVIL}/anything")], b""),
    HttpResponse(302, [("location", "http://169.254.169.254/latest")], b""),
    HttpResponse(302, [("location", "/again")], b""),
    FetchFailed("no such host"),
]
BAD_URLS = [
    "javascript:alert(1)",
    "file:///etc/passwd",
    "http://127.0.0.1/x",
    "https://u@e.com/",
    "--flag",
    "",
    "https://e.com/\r\nx",
]
CHALLENGES = [
    "Bearer", 'Basic realm="x"', 'Bearer error="insufficient_scope", scope="s1"',
    'Bearer error="insufficient_scope"',
    f'Bearer resource_metadata="{SERVER}/prm", scope="s2"',
    f'Bearer resource_metadata="{EVIL}/prm"',
    'Bearer resource_metadata="http://169.254.169.254/"', 'Bearer resource_metadata="javascript:x"',
    'Bearer scope="', "Bearer resource_metadata=/prm, scope=s1",
    f"Bearer resource_metadata={EVIL}/prm", 'Bearer resource_metadata="prm"',
    'DPoP error="use_dpop_nonce"', f'DPoP resource_metadata="{SERVER}/prm"', "\x00\xff", "",
]  # fmt: skip


class HostileReplies:
    """A source of replies that hypothesis draws."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.steps = 0

    def one_of(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def honest(self) -> bool:
        return bool(self.draw(st.integers(0, 9)) < 8)

    def reply(self, step: Any) -> Any:
        self.steps += 1
        assert self.steps < 400, "a loop"
        if isinstance(step, McpRequest):
            return self.at_server()
        if isinstance(step, Browse):
            assert find_url_error(step.url, allow_loopback=False) is None
            return self.in_browser(step)
        assert isinstance(step, Fetch)
        assert find_url_error(step.request.url, allow_loopback=False) is None
        if not self.honest():
            return self.one_of(*GARBAGE)
        return self.document(step)

    def at_server(self) -> HttpResponse:
        code = self.one_of(200, 200, 401, 401, 401, 403, 500)
        headers = [
            ("www-authenticate", self.one_of(*CHALLENGES))
            for _ in range(self.draw(st.integers(0, 2)))
        ]
        return HttpResponse(code, [*headers, ("dpop-nonce", self.one_of("n1", "n2"))], b"")

    def in_browser(self, step: Browse) -> Any:
        """The honest server always says who it is; the other what it likes."""
        parts = urlsplit(step.url)
        host = f"{parts.scheme}://{parts.netloc}"
        state = parse_qs(parts.query)["state"][0]
        fields = {"state": state, "iss": host, "code": f"code-of-{host}"}
        if host != HONEST and not self.honest():
            fields |= {"iss": self.one_of(HONEST, f"{host}/", "")}
            fields |= self.one_of(
                {}, {"state": "x"}, {"code": ""}, {"error": "access_denied"}, {"error": "\x1b"}
            )
        if not self.honest():
            return self.one_of("", "http://[", f"{step.redirect_uri}?state=x&code=code-of-{EVIL}")
        return f"{step.redirect_uri}?{urlencode(fields)}"

    def document(self, step: Fetch) -> Any:
        url = step.request.url
        parts = urlsplit(url)
        host = f"{parts.scheme}://{parts.netloc}"
        if step.request.method == "GET" and (host == SERVER or "prm" in url):
            resource = (
                URL if self.honest() else self.one_of(EVIL, SERVER, f"{SERVER}/mc", "", *BAD_URLS)
            )
            issuers = (
                [self.one_of(*ISSUERS, f"{HONEST}/")]
                if self.honest()
                else self.one_of([], BAD_URLS, ISSUERS)
            )
            return found(resource=resource, authorization_servers=issuers, scopes_supported=["p"])
        if step.request.method == "GET":
            return found(**self.metadata(host))
        if parts.path == "/register":
            method = self.one_of("none", "client_secret_post", "client_secret_basic")
            return found(
                client_id=f"client-of-{host}",
                client_secret=f"secret-of-{host}",
                token_endpoint_auth_method=method,
            )
        if not self.honest():
            error = self.one_of(
                "invalid_grant", "invalid_client", "use_dpop_nonce", "server_error", "x" * 99
            )
            body = {"error": error, "error_description": step.request.body.decode()}
            return HttpResponse(
                400, [("dpop-nonce", self.one_of("a", "b"))], json.dumps(body).encode()
            )
        return found(
            access_token=f"access-of-{host}" if self.honest() else self.one_of("", "a b", "a\r\nb"),
            token_type=self.one_of("Bearer", "DPoP") if not self.honest() else "Bearer",
            refresh_token=f"refresh-of-{host}",
            expires_in=self.one_of(0, 3600, None, "x", -5),
            scope=self.one_of("s1", "", "p", ["s1"], 7),
            status=self.one_of(200, 201),
        )

    def metadata(self, host: str) -> dict[str, Any]:
        metadata = server_metadata(
            host, token_endpoint_auth_methods_supported=["none", "client_secret_post"]
        )
        if host == HONEST:
            return metadata
        # the mix-up attack: log in at the honest server, send the code to the other
        lies: list[dict[str, Any]] = [
            {},
            {"authorization_endpoint": f"{HONEST}/authorize"},
            {
                "authorization_endpoint": f"{HONEST}/authorize",
                "authorization_response_iss_parameter_supported": False,
            },
            {"issuer": HONEST},
            {"issuer": f"{HONEST}/"},
            {"issuer": f"{EVIL}/", "authorization_endpoint": f"{HONEST}/authorize"},
            {
                "authorization_endpoint": f"{HONEST}/authorize",
                "authorization_response_iss_parameter_supported": self.one_of("false", 0, "no", {}),
            },
            {"token_endpoint": self.one_of(*BAD_URLS)},
            {"authorization_endpoint": self.one_of(*BAD_URLS)},
            {"code_challenge_methods_supported": self.one_of(None, [], ["plain"])},
            {"registration_endpoint": None, "client_id_metadata_document_supported": True},
        ]
        lie: dict[str, Any] = self.one_of(*lies)
        return metadata | lie


def found(*, status: int = 200, **members: Any) -> HttpResponse:
    return HttpResponse(status, [], json.dumps(members).encode())


def leaks(step: Any) -> list[str]:
    """Return the values of the honest server that `step` sends to another host."""
    given_out = [f"{what}-of-{HONEST}" for what in ("code", "secret", "refresh", "access")]
    if isinstance(step, McpRequest):
        given_out.remove(f"access-of-{HONEST}")
        text = repr(step.headers)
    elif isinstance(step, Fetch):
        if step.request.url.startswith(f"{HONEST}/"):
            given_out = [f"{what}-of-{EVIL}" for what in ("secret", "refresh", "access")]
        text = json.dumps(
            [step.request.url, step.request.headers, parse_qs(step.request.body.decode())]
        )
    else:
        text = step.url
    return [secret for secret in given_out if secret in text]


@pytest.mark.requirement("AC-13", "AF-9", "AT-2", "AT-4", "AU-1", "AU-4")
@fewer_examples(5)
@given(st.data())
def test_client_any_server_responses_leak_nothing(data: st.DataObject) -> None:
    """Steps to any URL are checked for values of the other server, and messages for secrets."""
    world = HostileReplies(data.draw)
    store: dict[str, bytes] = {}
    clock = Clock()
    auth = authorizer(URL, clock)
    shown: list[str] = []
    for flow in (
        session(auth, "a", "b", "a", url=URL),
        auth.renew(),
        session(auth, "a", "c", url=URL),
    ):
        reply: Any = None
        while True:
            try:
                step = flow.throw(reply) if isinstance(reply, Exception) else flow.send(reply)
            except StopIteration:
                break
            except McpTrioError as exc:
                shown.append(f"{exc} {exc!r}")
                break
            reply = None
            if isinstance(step, Load):
                reply = store.get(step.key) if world.honest() else b"\x00"
            elif isinstance(step, ListenForRedirect):
                reply = step.redirect_uri
            elif isinstance(step, Save):
                if step.value is not None:
                    store[step.key] = step.value
            else:
                assert leaks(step) == []
                reply = world.reply(step)
        clock.now += 4000
    shown += [repr(auth), *auth.take_warnings()]
    assert not [text for text in shown if "-of-https" in text and "client-of" not in text]
    assert not [text for text in shown if not text.isprintable()]
