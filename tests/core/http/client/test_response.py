"""One response at the client: its body, and the error that its status becomes."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import AuthRequired, Fault, RemoteProtocolError
from mcp_core.http import Head
from mcp_core.http.client._response import Response, error_for_status, names_session


def response(
    status: int = 200,
    type: str = "application/json",
    body: bytes = b"",
    most: int = 100,
    **headers: str,
) -> Response:
    every = [
        (name.replace("_", "-").encode(), value.encode("latin-1"))
        for name, value in headers.items()
    ]
    found = Response(Head(status, [(b"content-type", type.encode()), *every]), most)
    assert list(found.feed(body)) == []
    return found


@pytest.mark.parametrize("status", [200, 404])
@pytest.mark.parametrize("size", [99, 100])
def test_response_body_within_limit_is_kept(status: int, size: int) -> None:
    assert len(response(status, body=b"x" * size).body) == size


def test_response_body_over_limit_raises_or_is_discarded() -> None:
    """A caller may need the text of a success, while an error is known by its status."""
    for head in b"", b'{"jsonrpc":':
        with pytest.raises(RemoteProtocolError) as caught:
            list(response(body=head).feed(b"x" * 101))
        shown = repr((head or b"x" * 80)[:80])
        assert str(caught.value).startswith(
            f"the body of the response is longer than 100 bytes; it begins with {shown}"
        )
        assert str(caught.value).endswith(
            "(the option limits=Limits(message=...) allows longer ones)"
        )
    # An error body has a limit of its own, above which it is discarded.
    refused = response(500, "text/plain", body=b"x" * 65536)
    assert len(refused.body) == 65536
    assert list(refused.feed(b"x")) == list(refused.feed(b"x")) == []
    assert refused.body == b""


@pytest.mark.parametrize("coding", ["gzip", "br", "GZIP", "identity, gzip"])
def test_response_encoded_body_is_rejected(coding: str) -> None:
    with pytest.raises(RemoteProtocolError, match="encoded"):
        response(content_encoding=coding)
    refused = response(500, "text/plain", b"\x1f\x8b", content_encoding=coding)
    assert (
        str(error_for_status("x: ", refused))
        == "x: HTTP status 500 Internal Server Error: its log may say why"
    )


def test_response_long_encoding_is_cut_in_the_error() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        response(content_encoding="z" * 41)
    assert f"({'z' * 40})" in str(caught.value)


@pytest.mark.parametrize("status", [200, 500])
def test_response_first_of_two_headers_counts(status: int) -> None:
    twice = [(b"content-type", b"application/json"), (b"content-type", b"text/event-stream")]
    coded = [(b"content-encoding", b"identity"), (b"content-encoding", b"gzip")]
    found = Response(Head(status, twice + coded), 100)
    assert list(found.feed(b"{}")) == []
    assert (found.content_type, found.events, found.body) == (b"application/json", None, b"{}")


@pytest.mark.parametrize("coding", ["identity", "Identity ", ""])
def test_response_identity_encoding_is_accepted(coding: str) -> None:
    assert response(body=b"x", content_encoding=coding).body == b"x"


@pytest.mark.parametrize(
    ("status", "type", "events", "json"),
    [
        (200, "text/event-stream", True, False),
        (200, "Text/Event-Stream; charset=utf-8", True, False),
        (201, "text/event-stream", True, False),
        (299, "text/event-stream", True, False),
        (199, "text/event-stream", False, False),
        (300, "text/event-stream", False, False),
        (400, "text/event-stream", False, False),
        (200, "application/json", False, True),
        (200, "application/json;charset=utf-8", False, True),
        (200, "text/html", False, False),
    ],
)
def test_response_body_kind_follows_status_and_content_type(
    status: int, type: str, events: bool, json: bool
) -> None:
    found = response(status, type)
    assert (found.events is not None, found.is_json) == (events, json)


def test_response_events_are_decoded_up_to_limit() -> None:
    found = Response(Head(200, [(b"content-type", b"text/event-stream")]), 10, "7")
    assert found.events is not None
    assert found.events.last_id == "7"
    assert [event.data for event in found.feed(b"data: a\n\ndata: b\n\n")] == [b"a", b"b"]
    seen = found.feed(b"data: c\n\ndata: 0123456789x\n\n")
    assert next(seen).data == b"c"
    with pytest.raises(RemoteProtocolError, match="more than 10 bytes"):
        next(seen)


BUSY, REFUSED = Fault.BUSY, Fault.INVALID_REQUEST
PLAIN, JSON = "text/plain", "application/json"


@pytest.mark.parametrize(
    ("status", "type", "body", "headers", "text", "fault"),
    [
        (400, PLAIN, b"no\x00session\n", {}, "400 Bad Request (no session)", REFUSED),
        (400, JSON, b'{"error":1}', {}, '400 Bad Request ({"error":1})', REFUSED),
        (400, JSON, b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"a\\nb"}}', {},
            "400 Bad Request (a b)", REFUSED),
        (400, JSON, b'{"jsonrpc":"2.0","id":1,"result":{}}', {},
            '400 Bad Request ({"jsonrpc":"2.0","id":1,"result":{}})', REFUSED),
        (400, JSON, b'{"jsonrpc":"2.0","id":1,"error":3}', {},
            '400 Bad Request ({"jsonrpc":"2.0","id":1,"error":3})', REFUSED),
        (400, PLAIN, b'{"jsonrpc":"2.0","error":{"code":-1,"message":"a"}}', {},
            '400 Bad Request ({"jsonrpc":"2.0","error":{"code":-1,"message":"a"}})', REFUSED),
        (404, "text/html", b"<html>", {}, "404 Not Found: is this the URL of an MCP server?",
            REFUSED),
        (418, PLAIN, b"y" * 200, {}, f"418 ({'y' * 200})", REFUSED),
        (418, PLAIN, b"y" * 201, {}, f"418 ({'y' * 200}...)", REFUSED),
        (429, "", b"", {"retry_after": "7"}, "429 Too Many Requests; try again after 7 s", BUSY),
        (
            503, JSON, b'{"detail":1}', {"retry_after": "Fri, 31 Dec 1999 23:59:59 GMT"},
            '503 Service Unavailable; try again after Fri, 31 Dec 1999 23:59:59 GMT ({"detail":1})',
            BUSY,
        ),
        (501, "", b"", {}, "501 Not Implemented", REFUSED),
        (504, "", b"", {},
            "504 Gateway Timeout: the server behind it does not answer; try again later", BUSY),
        (403, "", b"", {},
            "403 Forbidden: the server denies access, or does not accept this host name or origin",
            REFUSED),
        (500, "", b"", {"retry_after": "7"}, "500 Internal Server Error: its log may say why",
            REFUSED),
        # The body of a redirect is for people, and its target is in a header.
        (300, PLAIN, b"choose", {}, "300", REFUSED),
        (304, "", b"", {}, "304", REFUSED),
        (399, PLAIN, b"elsewhere", {}, "399", REFUSED),
    ],
)  # fmt: skip
def test_response_error_status_becomes_error_with_cure(
    status: int, type: str, body: bytes, headers: Any, text: str, fault: Fault
) -> None:
    error = error_for_status("x: ", response(status, type, body, most=1000, **headers))
    assert isinstance(error, RemoteProtocolError)
    assert (str(error), error.fault, error.data["status"]) == (
        f"x: HTTP status {text}",
        fault,
        status,
    )
    assert error.data.get("retryAfter") == (
        headers.get("retry_after") if fault is Fault.BUSY else None
    )


@pytest.mark.parametrize(
    ("status", "challenge", "scopes"),
    [
        (401, None, ()),
        (401, 'Bearer resource_metadata="https://a/b", scope="read write"', ("read", "write")),
        (403, 'Bearer error="insufficient_scope", scope="write"', ("write",)),
        (401, "Bearer", ()),
    ],
)
def test_response_auth_challenge_becomes_auth_required(
    status: int, challenge: str | None, scopes: tuple[str, ...]
) -> None:
    headers: dict[str, Any] = {} if challenge is None else {"www_authenticate": challenge}
    error = error_for_status("x: ", response(status, **headers))
    assert isinstance(error, AuthRequired)
    assert (error.challenge, error.scopes) == (challenge or "", scopes)
    assert f"HTTP status {status}" in str(error)
    assert "does not accept the access token" not in str(error)


def test_response_refused_token_is_not_called_missing() -> None:
    challenge = 'Bearer error="invalid_token", error_description="the token has expired"'
    error = error_for_status("x: ", response(401, www_authenticate=challenge))
    assert isinstance(error, AuthRequired)
    assert "Unauthorized: the server does not accept the access token" in str(error)
    assert "wants an access token" not in str(error)
    body = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"it has expired"}}'
    explained = response(401, body=body, content_type="application/json")
    assert str(error_for_status("x: ", explained, sent_token=True)).endswith(" (it has expired)")


def test_response_token_is_refused_by_a_challenge_only() -> None:
    elsewhere = response(401, www_authenticate="Bearer", x_debug="invalid_token")
    assert "wants an access token" in str(error_for_status("", elsewhere))
    forbidden = response(403, www_authenticate='Bearer error="invalid_token"')
    assert "Forbidden" in str(error_for_status("", forbidden))
    assert "Forbidden" in str(error_for_status("", forbidden, sent_token=True))


@pytest.mark.parametrize("challenge", ["Bearer", 'Bearer error="invalid_token"'])
def test_response_token_that_was_sent_decides_whether_it_is_missing(challenge: str) -> None:
    """Some servers write `invalid_token` without a token, and others no error with one."""
    head = response(401, www_authenticate=challenge)
    assert "does not accept the access token" in str(error_for_status("", head, sent_token=True))
    assert "wants an access token" in str(error_for_status("", head, sent_token=False))


@pytest.mark.parametrize(
    ("body", "is_so"),
    [
        (b"", False),
        (b"Bad Request: no valid session ID", True),
        (b"Bad Request", False),
        (b'{"jsonrpc":"2.0","error":{"code":-1,"message":"unknown session"}}', True),
        (b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"unknown session"}}', True),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"unknown session"}}', False),
        (b'{"jsonrpc":"2.0","id":"1","error":{"code":-1,"message":"unknown session"}}', False),
        (b'{"jsonrpc":"2.0","method":"m","params":{"a":"unknown session"}}', False),
        (b'{"jsonrpc":"2.0","id":null,"result":{"a":"unknown session"}}', False),
        (b'{"session id":1', True),
        (b'{"id": null, "session id":1', True),
        (b'{"id": 7, "session id":1', False),
        (b'{"result": null, "session id":1', False),
        (b"session id" + b"x" * 65_536, False),  # it isn't kept
    ],
)
def test_response_names_its_session_in_an_error_without_id(body: bytes, is_so: bool) -> None:
    assert names_session(response(400, body=body)) is is_so


def test_response_repr_shows_status_and_kind() -> None:
    assert repr(response(body=b"abc")) == "<Response 200, 3 bytes>"
    assert repr(response(type="text/event-stream")) == "<Response 200, events>"
