"""The events that responses to our requests become."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw
from msgspec.structs import replace

from mcp_core import (
    DIALECTS,
    ErrorReceived,
    InputRequested,
    PeerError,
    RemoteProtocolError,
    ResultReceived,
    Role,
    TaskCreated,
)
from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import decode
from mcp_core.protocol.messages import _responses
from mcp_core.protocol.messages._events import NO_PROBLEMS
from mcp_core.protocol.messages._responses import OutgoingRequest, decode_error, response_event
from tests.harness.jsonrpc import (
    STATEFUL,
    VERSIONS,
    D,
    E,
)


def event_for(version: str, method: str, **members: Any) -> Any:
    dialect = DIALECTS[version]
    row = dialect.receives[Role.SERVER].get(method) or dialect.receives[Role.CLIENT].get(method)
    message = {"jsonrpc": "2.0", "id": 7, **members}
    return response_event(
        7, OutgoingRequest(method, row, dialect, "token"), decode(json.dumps(message).encode())
    )


def test_response_that_is_valid_is_decoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_responses, "read_leniently", None)
    event = event_for(E, "tools/list", result={"tools": []})
    assert event == ResultReceived(7, t.ListToolsResult(tools=[]), "token")
    assert event.problems is NO_PROBLEMS


@pytest.mark.parametrize("version", [D, E])
def test_response_with_a_part_that_cannot_be_read_names_it(version: str) -> None:
    event = event_for(version, "prompts/list", result={"prompts": [{"name": "p"}, 5]})
    assert event.result == t.ListPromptsResult(prompts=[t.Prompt(name="p")])
    text = "prompts[1] was left out: Expected `object`, got `int` (at prompts[1])"
    assert event.problems == {"prompts[]": text}


def test_response_of_a_client_keeps_no_block_that_its_server_could_not_send() -> None:
    """A server encodes the answer of its client again, to give it to the next run of a handler."""
    video = {"type": "video"}
    answer: Any = {"role": "assistant", "model": "m"}
    for content in video, [{"type": "text", "text": "hi"}, video]:
        event = event_for(D, "sampling/createMessage", result=answer | {"content": content})
        assert type(event) is ErrorReceived
    roots = [{"uri": "file:///a"}, {"path": "b"}]
    event = event_for(D, "roots/list", result={"roots": roots})
    assert event.result.roots == [t.Root("file:///a")]
    assert event.problems.keys() == {"roots[]"}


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


# -- Tasks -----------------------------------------------------------------------------------------

STATE: Any = {
    "taskId": "786512e2",
    "status": "working",
    "createdAt": "2025-11-25T10:30:00Z",
    "lastUpdatedAt": "2025-11-25T10:40:00Z",
}
TASK = t.Task(
    task_id="786512e2",
    status="working",
    created_at="2025-11-25T10:30:00Z",
    last_updated_at="2025-11-25T10:40:00Z",
)
META = {t.META_IMMEDIATE_RESPONSE: "It is running.", "more": 1}
FLAT: Any = {"resultType": "task", **STATE}
AUGMENTED = ["tools/call", "sampling/createMessage", "elicitation/create"]


def task_event_for(version: str, method: str, result: Any) -> Any:
    """Return the event of a request that may become a task."""
    dialect = DIALECTS[version]
    row = dialect.receives[Role.SERVER].get(method) or dialect.receives[Role.CLIENT][method]
    call = OutgoingRequest(method, row, dialect, "token", may_become_task=True)
    message = {"jsonrpc": "2.0", "id": 7, "result": result}
    return response_event(7, call, decode(json.dumps(message).encode()))


@pytest.mark.requirement("RPC-33")
@pytest.mark.parametrize(
    ("version", "method", "own", "ttl", "interval"),
    [(E, "tools/call", FLAT, "ttlMs", "pollIntervalMs")]
    + [(D, method, STATE, "ttl", "pollInterval") for method in AUGMENTED],
)
@pytest.mark.parametrize("meta", [None, META])
@pytest.mark.parametrize("value", [None, 0, 60_000, 60_000.0, 1.5, UNSET])
def test_response_create_task_result_becomes_task_created(
    version: str, method: str, own: Any, ttl: str, interval: str, meta: Any, value: Any
) -> None:
    state = own | {"statusMessage": "begun", interval: 500, "more": []}
    if value is not UNSET:
        state |= {ttl: value}
    result = state if version == E else {"task": state}
    event = task_event_for(version, method, result | ({} if meta is None else {"_meta": meta}))
    numbers = {"ttl" if version == D else "ttl_ms": value}
    numbers["poll_interval" if version == D else "poll_interval_ms"] = 500
    task = replace(TASK, status_message="begun", **numbers)
    assert event == TaskCreated(7, task, meta, "token")


@pytest.mark.parametrize("version", [D, E])
def test_response_ordinary_result_of_request_that_may_become_task(version: str) -> None:
    event = task_event_for(version, "tools/call", CALLED)
    assert event == ResultReceived(7, t.CallToolResult(content=[]), "token")


@pytest.mark.parametrize(("result", "status"), [(FLAT, "working"), (STATE, "working")])
def test_response_state_of_task_has_either_result_type(result: Any, status: str) -> None:
    """Examples of the extension have "task" on it; its text demands "complete"."""
    event = event_for(E, "tasks/get", result=result)
    assert isinstance(event, ResultReceived)
    assert event.result.status == status


def without(name: str) -> Any:
    return {key: value for key, value in STATE.items() if key != name}


@pytest.mark.requirement("TX-4")
@pytest.mark.parametrize(
    ("version", "method", "result", "words"),
    [
        # The form of the other revision
        (D, "tools/call", FLAT, "missing required field `content`"),
        (D, "elicitation/create", FLAT, "missing required field `action`"),
        (E, "tools/call", {"task": STATE}, "missing required field `content`"),
        (E, "tools/call", {"resultType": "task", "task": STATE}, "missing required field `taskId`"),
        (E, "tools/call", STATE, "missing required field `content`"),
        # Malformed
        (D, "tools/call", {"task": None}, "got `null` - at `$.task`"),
        (D, "tools/call", {"task": {}}, "taskId"),
        (D, "tools/call", {"task": without("createdAt")} | CALLED, "createdAt"),
        (D, "tools/call", {"task": STATE | {"status": "odd"}}, "'odd' - at `$.task.status`"),
        (D, "tools/call", {"task": STATE, "_meta": 1}, "_meta"),
        (E, "tools/call", FLAT | {"taskId": 1}, "taskId"),
        (E, "tools/call", FLAT | {"ttlMs": "1"}, "ttlMs"),
        (E, "tools/call", {"resultType": "task"} | without("lastUpdatedAt"), "lastUpdatedAt"),
    ],
)
def test_response_invalid_create_task_result_fails_request(
    version: str, method: str, result: Any, words: str
) -> None:
    event = task_event_for(version, method, result)
    assert type(event) is ErrorReceived
    assert type(event.error) is RemoteProtocolError
    assert words in str(event.error)


@pytest.mark.requirement("TX-4")
@pytest.mark.parametrize(
    ("version", "method", "result", "words"),
    [
        *((E, method, FLAT | LISTED, "this request cannot become a task")
          for method in ("tools/call", "tools/list", "resources/read", "prompts/get", "acme/add",
                         "completion/complete", "server/discover", "tasks/cancel")),
        (D, "tools/call", {"task": STATE}, "missing required field `content`"),
        (D, "tools/list", {"task": STATE}, "missing required field `tools`"),
    ],
)  # fmt: skip
def test_response_task_to_request_that_cannot_become_one_is_invalid(
    version: str, method: str, result: Any, words: str
) -> None:
    event = event_for(version, method, result=result)
    assert type(event) is ErrorReceived
    assert words in str(event.error)


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
    (E, "tools/call", {"resultType": "task"}, "cannot become a task"),
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
