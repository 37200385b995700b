"""Which transport the URL of a server uses."""

from __future__ import annotations

import pytest

from mcp_core.urls import http_url, url_transport


@pytest.mark.parametrize(
    ("target", "name", "as_http"),
    [
        ("http://a/mcp", "http", "http://a/mcp"),
        ("HTTPS://a", "http", "HTTPS://a"),
        ("ws://a/mcp?b=://c", "websocket", "http://a/mcp?b=://c"),
        ("WSS://a", "websocket", "https://a"),
        ("wsx://a", None, "wsx://a"),
        ("ws:a", None, "ws:a"),
        ("ws", None, "ws"),
        (" ws://a", None, " ws://a"),
        ("file:///a", None, "file:///a"),
        ("://a", None, "://a"),
        ("", None, ""),
    ],
)
def test_target_has_transport_of_its_scheme(target: str, name: str | None, as_http: str) -> None:
    row = url_transport(target)
    assert (row and row.name) == name
    assert (row and row.has_login) == (name and name == "http")
    assert (row and row.is_websocket) == (name and name == "websocket")
    assert http_url(target) == as_http
