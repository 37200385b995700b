"""Endpoints without long streams: `listen=False` and `get_stream=False`."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.http import HttpOptions
from tests.harness.wire.router import (
    GET,
    D,
    RouterHarness,
    SessionClient,
    initialize,
    meta,
    request,
)
from tests.harness.wire.websocket_router import WebSocketHarness

LISTEN = request(
    1,
    "subscriptions/listen",
    {"notifications": {"toolsListChanged": True}, "_meta": meta()},
)
ALL = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "logging": {},
}
NONE: dict[str, Any] = {"tools": {}, "resources": {}, "logging": {}}


def capabilities_of(harness: RouterHarness) -> tuple[Any, Any]:
    """The capabilities in a session, and in a request without one."""
    opened = harness.post(initialize(D)).message["result"]
    found = harness.modern(request(1, "server/discover", {"_meta": meta()})).message["result"]
    return opened["capabilities"], found["capabilities"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (ALL, ALL)),
        ({"get_stream": False}, (NONE, ALL)),
        ({"listen": False}, (ALL, NONE)),
        ({"listen": False, "get_stream": False}, (NONE, NONE)),
    ],
)
def test_endpoint_without_long_streams_declares_no_changes(
    options: dict[str, Any], expected: tuple[Any, Any]
) -> None:
    """Each option is about the revisions whose changes need that stream."""
    assert capabilities_of(RouterHarness(**options)) == expected


def test_session_without_a_get_stream_refuses_to_open_one() -> None:
    """Also HTTP+SSE, which begins with one. All else of the session goes on."""
    harness = RouterHarness(get_stream=False)
    client = harness.session(elicitation={})
    refused = client.get()
    assert (refused.status, refused.headers[b"allow"]) == (405, b"POST, DELETE, OPTIONS")
    assert "get_stream=False" in refused.message["error"]["message"]
    assert harness.send(b"GET", GET).status == 405
    subscribe = client.post(request(1, "resources/subscribe", {"uri": "memo://a"}))
    assert subscribe.message["error"]["code"] == -32601
    counted = client.call(2, "count", progress=True, to=2)
    harness.step(3)
    assert [message["id"] for message in counted.messages if "id" in message] == [2]
    asked = client.call(3, "ask")
    harness.step()
    assert asked.messages[0]["method"] == "elicitation/create"
    answer = {"action": "accept", "content": {"name": "Ada"}}
    client.post({"jsonrpc": "2.0", "id": asked.messages[0]["id"], "result": answer})
    harness.step(2)
    assert asked.messages[-1]["id"] == 3
    assert client.delete().status == 204


def test_session_without_a_get_stream_resumes_a_broken_response() -> None:
    """The platform counts such a stream only as long as the call takes."""
    harness = RouterHarness(get_stream=False)
    client: SessionClient = harness.session()
    reply = client.call(1, "count", progress=True, to=3)
    harness.step()
    assert reply.is_stream
    harness.close_after(reply)
    resumed = client.get(reply.last_id)
    assert resumed.status == 200
    harness.step(4)
    assert resumed.messages[-1]["id"] == 1
    assert resumed.ended


def test_listen_request_that_is_refused_is_an_unknown_method() -> None:
    """Nothing stays open, and a change is sent to no client."""
    harness = RouterHarness(listen=False)
    reply = harness.modern(LISTEN)
    assert (reply.status, reply.message["error"]["code"], reply.ended) == (404, -32601, True)
    assert harness.endpoint.one_shots == {}
    harness.server.changed(tools=True)
    assert harness.call(1, text="x").message_text == "x"


def test_listen_request_over_a_websocket_is_accepted_all_the_same() -> None:
    """The WebSocket is open in any case."""
    played = WebSocketHarness(listen=False, get_stream=False).connect()
    [answer] = played.send(LISTEN)
    assert answer["method"] == "notifications/subscriptions/acknowledged"
    assert answer["params"]["notifications"] == {"toolsListChanged": True}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"sse_path": "/sse", "get_stream": False}, "sse_path needs get_stream"),
        ({"reply": "json", "get_stream": False}, "no stream for questions to a client: write"),
    ],
)
def test_options_that_leave_no_stream_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        HttpOptions.of(**options)
    HttpOptions.of(reply="json", get_stream=False, sessions=False)
