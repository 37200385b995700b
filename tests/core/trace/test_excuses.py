"""Correct peers that the judge has accused once. Each trace is of such a false accusation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace import HttpHead, Judge, TraceHeader, TraceLine
from tests.core.trace.conversations import (
    C,
    S,
    Said,
    Start,
    ask,
    error,
    judge,
    notify,
    raw_client,
    raw_server,
    result,
)

if TYPE_CHECKING:
    from mcp_core.trace import Finding

PING = ask(1, "ping")
NO_METHOD = {"jsonrpc": "2.0", "id": 1}
# The id of this request is 7 for parsers that know NaN.
NOT_JSON = '{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}'


@pytest.mark.parametrize(
    ("letter", "said"),
    [
        # An invalid message can repeat an id, and its error has that id.
        ("D", [C(PING), S(result(1)), C(NO_METHOD), S(error(1, -32600))]),
        # What one parser cannot read, another one can.
        ("D", [C(NOT_JSON), S(result(7))]),
        ("D", [C(NOT_JSON), S(error(7, -32602))]),
        # A server of all revisions can answer a ping without `_meta` as of an older one.
        ("E", [C(ask(2, "tools/list")), S(result(2, tools=[])), raw_client(PING),
               raw_server(result(1))]),
    ],
)  # fmt: skip
def test_server_that_has_a_reason_is_not_accused(letter: str, said: list[Said]) -> None:
    found, _ = judge(Start(letter), said, letter)
    assert [each for each in found if each.side == "server"] == []


def test_client_that_rejects_an_invalid_request_for_roots_is_not_accused() -> None:
    odd = ask(1, "roots/list") | {"error": 1}
    found, judged = judge(Start("D", {}, {}), [S(odd), C(error(1, -32600))])
    assert [each for each in found if each.side == "client"] == []
    assert judged.opportunities["RPC-7"] >= 1


# -- HTTP ------------------------------------------------------------------------------------------

SESSION = ("mcp-session-id", "s")
HANDSHAKE = Start("D").messages()


def post(exchange: int, body: Any) -> TraceLine:
    """Return the line of a POST. `body` is a message, or the text of the body."""
    head = HttpHead(method="POST", target="/mcp", headers=(SESSION,))
    raw = body if isinstance(body, str) else json.dumps(body)
    return TraceLine(t=0.0, exchange=exchange, sender="client", http=head, raw=raw)


def answer(exchange: int, status: int, message: Any = None) -> TraceLine:
    """Return the line of a response, without a body for no message."""
    headers = (SESSION,) if message is None else (SESSION, ("content-type", "application/json"))
    head = HttpHead(status=status, headers=headers)
    raw = None if message is None else json.dumps(message)
    return TraceLine(t=0.0, exchange=exchange, sender="server", http=head, raw=raw)


def found_over_http(*lines: TraceLine) -> list[str]:
    """Return the rows of the server that the judge finds broken, after a handshake."""
    judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True)
    found: list[Finding] = []
    begin, begun, initialized = (said.message for said in HANDSHAKE)
    handshake = [post(1, begin), answer(1, 200, begun), post(2, initialized), answer(2, 202)]
    for line in (*handshake, *lines):
        found += judged.receive(line)
    return [each.row for each in (*found, *judged.close()) if each.side == "server"]


@pytest.mark.parametrize("answered", [error(7, -32600), result(7)])
def test_server_that_repeats_the_id_of_a_body_that_is_no_message_is_not_accused(
    answered: Any,
) -> None:
    body = post(3, '{"id": 7, "method": "ping"}')
    assert found_over_http(body, answer(3, 400, answered)) == []
    assert found_over_http(post(3, PING), answer(3, 200, answered)), "no request has this id"


@pytest.mark.parametrize("status", [202, 204])
def test_server_that_sends_no_response_to_a_cancelled_request_is_not_accused(status: int) -> None:
    call = ask(3, "tools/list")
    cancel = notify("notifications/cancelled", requestId=3)
    sent, cancelled = post(3, call), [post(4, cancel), answer(4, 202)]
    assert found_over_http(sent, *cancelled, answer(3, status)) == []
    assert found_over_http(sent, answer(3, status), *cancelled) == ["HTTP-8"]
