"""The header of a response by its name."""

from __future__ import annotations

from mcp_core.http import Head
from mcp_core.http.client._options import HttpClientOptions
from mcp_core.http.wire._messages import header


def test_header_repeated_name_returns_first() -> None:
    head = Head(200, [(b"a", b"1"), (b"b", b"2"), (b"b", b"3")])
    assert (header(head, b"b"), header(head, b"c")) == (b"2", None)


def test_client_options_repr_hides_header_values() -> None:
    """A header may carry a token, and a repr ends in logs."""
    options = HttpClientOptions(headers={"Authorization": "Bearer secret"})
    assert repr(options) == "<HttpClientOptions, headers Authorization, access by None>"
    assert repr(HttpClientOptions()) == "<HttpClientOptions, headers none, access by None>"
