"""The challenge for no token, a wrong one, and one with too few scopes, over sockets.

Sources: RFC 6750, section 3.1; RFC 9449, section 7.1; RFC 9728, section 5.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcp_core import AuthRequired, ConnectFailed
from mcp_core.auth.client._challenge import parse_challenges
from mcp_trio import connect_http, connect_websocket
from tests.core.auth.minting import JKT
from tests.security.test_attacks_server import AttackedSite, attacked

METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"


def request(verb: str, authorization: str | None, *headers: str) -> bytes:
    lines = [f"{verb} /mcp HTTP/1.1", "host: localhost", *headers]
    if authorization is not None:
        lines.append(f"authorization: {authorization}")
    return "\r\n".join([*lines, "", ""]).encode()


REQUESTS: dict[str, tuple[str, list[str]]] = {
    "POST": ("POST", ["content-type: application/json", "content-length: 2"]),
    "GET": ("GET", ["accept: text/event-stream"]),
    "DELETE": ("DELETE", ["mcp-session-id: x"]),
    "WebSocket": (
        "GET",
        [
            "upgrade: websocket",
            "connection: upgrade",
            "sec-websocket-version: 13",
            "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
            "sec-websocket-protocol: mcp",
        ],
    ),
}
# What is sent in `Authorization`; the status, the error code, and words of the description.
CASES: dict[str, tuple[Callable[[AttackedSite], str | None], int, str | None, str]] = {
    "missing": (lambda site: None, 401, None, ""),
    "empty": (lambda site: "", 401, None, ""),
    "of another scheme": (lambda site: "Basic YTpi", 401, None, ""),
    "without a scheme": (lambda site: site.token(), 401, None, ""),
    "malformed header": (lambda site: f"Bearer {site.token()}, x", 400, "invalid_request", "else"),
    "no token": (lambda site: "Bearer", 400, "invalid_request", "must have one token"),
    "malformed token": (lambda site: "Bearer x", 401, "invalid_token", "form of a signed token"),
    "wrong signature": (lambda site: f"Bearer {site.forged({})}", 401, "invalid_token", "wrong"),
    "unknown key": (
        lambda site: f"Bearer {site.forged({'kid': 'x'})}", 401, "invalid_token", "not publish"
    ),
    "another audience": (
        lambda site: f"Bearer {site.token(aud='https://x')}", 401, "invalid_token", "audience"
    ),
    "expired": (lambda site: f"Bearer {site.token(exp=1)}", 401, "invalid_token", "has expired"),
    "bound to a key": (
        lambda site: f"Bearer {site.token(cnf={'jkt': JKT})}", 401, "invalid_token", "bound"
    ),
    "insufficient scope": (
        lambda site: f"Bearer {site.token(scope='other')}", 403, "insufficient_scope", "lacks"
    ),
}  # fmt: skip


@pytest.mark.requirement("AR-1", "AR-3", "AR-4", "AR-5", "AR-6", "AR-13")
@pytest.mark.parametrize("kind", REQUESTS)
async def test_challenge_tells_missing_wrong_and_insufficient_tokens_apart(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client decides by the `error` whether to log in, get a new token or widen its scopes."""
    verb, headers = REQUESTS[kind]
    async with attacked(monkeypatch) as site:
        for name, (make, status, error, words) in CASES.items():
            data = request(verb, make(site), *headers)
            answer = await site.ask(data + b"{}" * (verb == "POST"))
            assert answer.status == status, name
            (challenge,) = parse_challenges([answer.headers[b"www-authenticate"].decode()])
            found = challenge.parameters
            assert challenge.scheme == "bearer"
            assert found.pop("resource_metadata") == METADATA
            assert found.pop("scope") == "read"
            assert words in found.pop("error_description", ""), name
            assert found == ({} if error is None else {"error": error}), name
        monkeypatch.undo()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda site: {}, "wants an access token|requires an access token"),
        (
            lambda site: {"authorization": f"Bearer {site.token(exp=1)}"},
            "does not accept the access token",
        ),
    ],
)
@pytest.mark.parametrize("over_websocket", [False, True])
async def test_client_tells_missing_and_refused_tokens_apart(
    make: Callable[[AttackedSite], dict[str, str]],
    words: str,
    over_websocket: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with attacked(monkeypatch) as site:
        connect: Any = connect_websocket if over_websocket else connect_http
        url = f"{'ws' if over_websocket else 'http'}://127.0.0.1:{site.port}/mcp"
        with pytest.raises(ConnectFailed, match=words) as caught:
            async with connect(url, headers=make(site)):
                raise AssertionError
        assert isinstance(caught.value.__cause__, AuthRequired)
        monkeypatch.undo()
