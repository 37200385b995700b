"""The events that responses to our requests become."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw

from mcp_core import (
    DIALECTS,
    ErrorReceived,
    InputRequested,
    PeerError,
    RemoteProtocolError,
    ResultReceived,
    Role,
)
from mcp_core import types as t
from mcp_core.jsonrpc._codec import decode
from mcp_core.messages._responses import OutgoingRequest, decode_error, response_event
from tests.core.helpers import STATEFUL, VERSIONS, D, E


def event_for(version: str, method: str, **members: Any) -> Any:
    dialect = DIALECTS[version]
    row = dialect.receives[Role.SERVER].get(method)
    message = {"jsonrpc": "2.0", "id": 7, **members}
    return response_event(
        7, OutgoingRequest(method, row, dialect, "token"), decode(json.dumps(message).encode())
    )


LISTED: Any = {"tools": []}
CALLED: Any = {"content": []}

# version, method, result as JSON, the decoded object
RESULTS = [
    *((version, "tools/list", LISTED, t.ListToolsResult(tools=[])) for version in VERSIONS),
    (D, "ping", {}, t.EmptyResult()),
    (D, "ping", {"_meta": {"a": 1}, "more": 1}, t.EmptyResult(meta={"a": 1})),
    (
        D,
        "tools/call",
        CALLED | {"structuredContent": None},
        t.CallToolResult(content=[], structured_content=None),
    ),
    # `resultType` has no meaning before 2026-07-28.
    (
        D,
        "tools/list",
        LISTED | {"resultType": "odd"},
        t.ListToolsResult(tools=[], result_type="odd"),
    ),
    (
        E,
        "tools/list",
        LISTED | {"resultType": "complete"},
        t.ListToolsResult(tools=[], result_type="complete"),
    ),
    (E, "acme/add", {"sum": 3}, {"sum": 3}),
    (E, "acme/add", {"sum": 3, "resultType": "complete"}, {"sum": 3, "resultType": "complete"}),
    (D, "acme/add", {"sum": 3, "resultType": "odd"}, {"sum": 3, "resultType": "odd"}),
]


@pytest.mark.requirement("RPC-16", "RPC-19", "RPC-31")
@pytest.mark.parametrize(("version", "method", "result", "expected"), RESULTS)
def test_response_result_is_decoded_to_its_type(
    version: str, method: str, result: Any, expected: Any
) -> None:
    assert event_for(version, method, result=result) == ResultReceived(7, expected, "token")


ASKING: Any = {"resultType": "input_required"}
ROOTS = {"r": {"method": "roots/list"}}


@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get"])
@pytest.mark.parametrize(
    ("result", "requests", "state"),
    [
        ({"requestState": "s"}, None, "s"),
        ({"requestState": ""}, None, ""),
        ({"inputRequests": ROOTS}, {"r": t.ListRootsRequest()}, None),
        ({"inputRequests": ROOTS, "requestState": "s"}, {"r": t.ListRootsRequest()}, "s"),
        ({"inputRequests": {}}, {}, None),
    ],
)
def test_response_input_required_becomes_input_requested(
    method: str, result: Any, requests: Any, state: str | None
) -> None:
    assert event_for(E, method, result=ASKING | result) == InputRequested(
        7, requests, state, "token"
    )


def test_response_result_type_decides_over_members() -> None:
    """It has the members of a tool result, but the type `input_required`."""
    found = event_for(E, "tools/call", result=CALLED | ASKING | {"requestState": "s"})
    assert found == InputRequested(7, None, "s", "token")


# version, method, result, part of the message
NO_RESULTS = [
    *((version, "tools/list", {}, "missing required field `tools`") for version in VERSIONS),
    *((version, "ping", 1, "Expected `object`, got `int`") for version in STATEFUL),
    (D, "ping", None, "Expected `object`, got `null`"),
    (D, "ping", [], "got `array`"),
    (E, "tools/list", [], "got `array`"),
    (E, "tools/list", {"resultType": 1}, "resultType"),
    (E, "tools/list", LISTED | {"resultType": "odd"}, "unknown resultType 'odd'"),
    (E, "tools/list", {"resultType": "odd"}, "unknown resultType 'odd'"),
    (E, "tools/list", {"resultType": "complete"}, "tools"),
    (E, "tools/call", {"resultType": "task"}, "unknown resultType 'task'"),
    (E, "tools/call", ASKING, "neither inputRequests nor requestState"),
    (E, "tools/call", ASKING | {"inputRequests": {"r": {"method": "odd"}}}, "odd"),
    (E, "tools/list", LISTED | ASKING | {"requestState": "s"}, "cannot ask for input"),
    (E, "acme/add", ASKING | {"requestState": "s"}, "cannot ask for input"),
    (D, "acme/add", [], "got `array`"),  # a custom method, whose result has no other type
    (E, "acme/add", 3, "Expected `object`"),
]


@pytest.mark.requirement("RPC-16", "RPC-32", "ERR-10")
@pytest.mark.parametrize(("version", "method", "result", "words"), NO_RESULTS)
def test_response_invalid_result_fails_request(
    version: str, method: str, result: Any, words: str
) -> None:
    event = event_for(version, method, result=result)
    assert type(event) is ErrorReceived
    assert (event.id, event.token) == (7, "token")
    assert type(event.error) is RemoteProtocolError
    assert str(event.error).startswith(f"the result of {method} is invalid: ")
    assert words in str(event.error)


@pytest.mark.requirement("RPC-11", "ERR-8", "ERR-11")
@pytest.mark.parametrize(
    ("error", "code", "message", "data"),
    [
        ({"code": -32602, "message": "no such tool"}, -32602, "no such tool", UNSET),
        ({"code": -32602, "message": "", "data": None}, -32602, "", None),
        ({"code": 1, "message": "x", "data": {"a": [1]}, "more": 1}, 1, "x", {"a": [1]}),
        ({"code": -32003, "message": "an old draft's"}, -32003, "an old draft's", UNSET),
    ],
)
@pytest.mark.parametrize("version", VERSIONS)
def test_response_error_becomes_peer_error(
    version: str, error: Any, code: int, message: str, data: Any
) -> None:
    event = event_for(version, "tools/list", error=error)
    assert type(event) is ErrorReceived
    assert (event.id, event.token) == (7, "token")
    assert isinstance(event.error, PeerError)
    assert (event.error.code, event.error.message, event.error.data) == (code, message, data)


@pytest.mark.requirement("RPC-11")
@pytest.mark.parametrize(
    "error",
    [
        "null",
        "{}",
        '{"code":1}',
        '{"code":"1","message":"x"}',
        '{"code":1.5,"message":"x"}',
        '"no"',
    ],
)
def test_response_malformed_error_is_remote_protocol_error(error: str) -> None:
    found = decode_error(Raw(error.encode()))
    assert type(found) is RemoteProtocolError
    assert "a malformed error object" in str(found)
