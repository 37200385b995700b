"""HTTP messages: their `repr` shows no values of headers, which may be tokens."""

from __future__ import annotations

import pytest
from rich.pretty import pretty_repr

from mcp_core.http import Head, HttpCall, HttpClientOptions, RequestHead
from mcp_core.http.wire._messages import header

TOKEN = (b"authorization", b"Bearer CANARY-1")
ASKED = RequestHead(b"POST", b"/mcp?access_token=CANARY-2", [(b"host", b"x"), TOKEN])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (ASKED, "<RequestHead POST /mcp headers=[host, authorization]>"),
        (RequestHead(b"GET", b"/", []), "<RequestHead GET / headers=[]>"),
        (
            RequestHead(b"G\n", b"/\x1b\xff", [(b"\x00", b"")]),
            r"<RequestHead G\n /\x1b\xff headers=[\x00]>",
        ),
        (Head(401, [(b"set-cookie", b"CANARY-3")]), "<Head 401 headers=[set-cookie]>"),
        (HttpClientOptions(), "<HttpClientOptions, headers none, access by None>"),
        (
            HttpClientOptions(headers={"authorization": "Bearer CANARY-4"}),
            "<HttpClientOptions, headers authorization, access by None>",
        ),
    ],
)
def test_http_messages_repr_hides_values(value: object, text: str) -> None:
    assert repr(value) == text
    assert pretty_repr(value) == text


def test_http_call_repr_hides_values() -> None:
    assert "CANARY" not in repr(HttpCall(1, ASKED))
    assert "CANARY" not in pretty_repr([HttpCall(1, ASKED)], expand_all=True)


def test_header_repeated_name_returns_first() -> None:
    head = Head(200, [(b"a", b"1"), (b"b", b"2"), (b"b", b"3")])
    assert (header(head, b"b"), header(head, b"c")) == (b"2", None)
