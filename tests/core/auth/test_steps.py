"""The reprs of steps show no secret."""

from __future__ import annotations

from typing import Any

import pytest
from rich.pretty import pretty_repr

from mcp_core.auth import Browse, HttpRequest, HttpResponse, Save

CANARY = "canary-4711"


SHOWN = [
    (
        HttpRequest(
            "POST", f"https://e.com/token?x={CANARY}", [("authorization", CANARY)], CANARY.encode()
        ),
        "<HttpRequest POST https://e.com/token headers=[authorization] body=11 bytes>",
    ),
    (
        HttpRequest("GET", "https://e.com/"),
        "<HttpRequest GET https://e.com/ headers=[] body=0 bytes>",
    ),
    (
        HttpResponse(200, [("set-cookie", CANARY)], CANARY.encode()),
        "<HttpResponse 200 headers=[set-cookie] body=11 bytes>",
    ),
    (
        Browse(f"https://e.com/authorize?state={CANARY}", "http://localhost:1/cb"),
        "<Browse https://e.com/authorize redirect_uri='http://localhost:1/cb'>",
    ),
    (Save("k", CANARY.encode()), "<Save 'k' 11 bytes>"),
    (Save("k", None), "<Save 'k' nothing>"),
]


@pytest.mark.parametrize(("value", "text"), SHOWN, ids=[text for _, text in SHOWN])
def test_steps_repr_hides_secrets(value: Any, text: str) -> None:
    assert repr(value) == str(value) == f"{value}" == pretty_repr(value, max_width=200) == text
    assert CANARY not in repr([value])


def test_http_response_header_returns_first_value() -> None:
    reply = HttpResponse(200, [("a", "1"), ("a", "2")])
    assert (reply.header("a"), reply.header("b")) == ("1", None)
