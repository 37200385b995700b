"""Streamable HTTP at the client: order and headers of messages, sessions and their loss."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import (
    ConnectionClosed,
    ConnectionLost,
    ErrorReceived,
    InputProblem,
    LocalProtocolError,
    MessageRejected,
    PeerReady,
    RequestReceived,
    ResultReceived,
    State,
)
from mcp_core import types as t
from mcp_core.http import Head, RequestHead
from mcp_core.http.client._options import HttpCall, HttpClientOptions
from tests.core.http.client_net import (
    JSON,
    SESSION,
    Net,
    discover_result,
    event,
    header,
    initialize_result,
    open_client,
    posted_message,
    send_call,
    type_names,
)
from tests.harness.jsonrpc import (
    A,
    B,
    C,
    D,
    E,
    Message,
    encoded,
    error,
    notification,
    request,
    result,
)

STATEFUL = [A, B, C, D]
CONTENT: Message = {"content": [], "resultType": "complete"}
LIST: Message = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


# -- Opening ---------------------------------------------------------------------------------------


@pytest.mark.requirement("HTTP-5", "HTTP-6", "SHL-2", "SHL-22", "SHL-28", "SHL-31", "SHL-10")
@pytest.mark.parametrize("version", STATEFUL)
@pytest.mark.parametrize("session", [SESSION, None])
def test_handshake_orders_messages_and_sets_headers(version: str, session: str | None) -> None:
    """Order is vital: nothing may overtake `initialized`, nor precede the standalone stream."""
    net = Net(version)
    net.open()
    first = net.call()
    assert (first.head.method, first.head.target) == (b"POST", b"/mcp")
    assert posted_message(first)["method"] == "initialize"
    assert header(first, "accept") == "application/json, text/event-stream"
    assert header(first, "content-type") == "application/json"
    assert header(first, "host") == "server.example"
    assert header(first, "mcp-protocol-version") is header(first, "mcp-session-id") is None
    headers: dict[str, Any] = {} if session is None else {"mcp_session_id": session}
    net.answer(first, result(1, initialize_result(version)), **headers)
    assert isinstance(net.event(), PeerReady)
    second = net.call()
    assert posted_message(second)["method"] == "notifications/initialized"
    id = net.conn.send_request("tools/list")
    assert net.new_calls() == []  # it could arrive before `initialized`
    assert net.http.queued() > 0
    net.answer(second)
    get = net.call()  # what the server sends before this stream is open may be lost
    assert net.http.queued() > 0
    net.answer(get, status=405)
    third = net.call()
    assert net.http.queued() == 0
    assert posted_message(third)["id"] == id
    assert (get.head.method, get.body, get.long_lived) == (b"GET", b"", True)
    assert (header(get, "accept"), header(get, "last-event-id")) == ("text/event-stream", None)
    for call in (second, get, third):
        assert header(call, "mcp-session-id") == session
        assert header(call, "mcp-protocol-version") == (version if version in (C, D) else None)
        assert header(call, "mcp-method") is None
    net.answer(third, result(id, LIST))
    assert isinstance(net.event(), ResultReceived)
    assert net.http.idle


@pytest.mark.requirement("SHM-1", "SHM-2", "HDR-1")
def test_stateless_calls_carry_mcp_headers() -> None:
    """There is no session: an id that the server sends is ignored, and no DELETE follows."""
    net = Net(E)
    net.open()
    first = net.call()
    assert posted_message(first)["method"] == "server/discover"
    net.answer(first, result(1, discover_result()), mcp_session_id="ignored")
    assert isinstance(net.event(), PeerReady)
    id, call = send_call(net)
    for each in (first, call):
        assert (
            header(each, "mcp-protocol-version")
            == E
            == posted_message(each)["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
        )
        assert header(each, "mcp-method") == posted_message(each)["method"]
        assert header(each, "mcp-session-id") is None
    assert header(call, "mcp-name") == "t"
    net.answer(call, result(id, CONTENT))
    assert isinstance(net.event(), ResultReceived)
    net.conn.close()
    assert net.new_calls() == []
    assert net.http.idle


@pytest.mark.requirement("HDR-2", "HDR-5")
@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "my-tool"}, "my-tool"),
        ("tools/call", t.CallToolParams(name="größe"), "=?base64?Z3LDtsOfZQ==?="),
        (
            "resources/read",
            {"uri": "file:///path/to/file%20name.txt"},
            "file:///path/to/file%20name.txt",
        ),
        ("prompts/get", {"name": " p"}, "=?base64?IHA=?="),
        ("tools/list", None, None),
        ("x/custom", {"name": "n"}, None),
    ],
)
def test_stateless_call_mirrors_name_into_header(
    method: str, params: Any, name: str | None
) -> None:
    net = open_client(E, offers={"tools": {}, "resources": {}, "prompts": {}})
    _, call = send_call(net, method, params)
    assert (header(call, "mcp-method"), header(call, "mcp-name")) == (method, name)


def test_stateless_notification_carries_method_header() -> None:
    net = open_client(E)
    net.conn.send_notification("x/posted", {"a": 1})
    call = net.call()
    assert (header(call, "mcp-method"), header(call, "mcp-protocol-version")) == ("x/posted", E)
    net.answer(call)
    assert net.events() == []


@pytest.mark.requirement("HDR-7", "HDR-8", "HDR-9", "HDR-13")
def test_tool_arguments_are_mirrored_into_headers() -> None:
    """A tool with an invalid schema is left out of the list; text that isn't ASCII uses base64."""
    net = open_client(E)
    schema = {
        "type": "object",
        "properties": {
            "s": {"type": "string", "x-mcp-header": "Region"},
            "i": {"type": "integer", "x-mcp-header": "Count"},
            "b": {"type": "boolean", "x-mcp-header": "Method"},
            "o": {
                "type": "object",
                "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}},
            },
            "q": {"type": "string"},
        },
    }
    bad = {"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}}
    tools = [
        {"name": "t", "inputSchema": schema},
        {"name": "bad", "inputSchema": bad},
        {"name": "bad2", "inputSchema": bad},
    ]
    id, call = send_call(net, "tools/list")
    net.answer(call, result(id, LIST | {"tools": tools}))
    first, second, listed = net.events()
    assert isinstance(first, MessageRejected)
    assert isinstance(second, MessageRejected)
    assert str(first.error).startswith("tool 'bad' is left out")
    assert str(second.error).startswith("tool 'bad2' is left out")
    assert isinstance(listed, ResultReceived)
    assert [tool.name for tool in listed.result.tools] == ["t"]

    def mirrored(name: str, arguments: Any) -> dict[str, str]:
        _, call = send_call(net, "tools/call", {"name": name, "arguments": arguments})
        return {
            key.decode(): value.decode()
            for key, value in call.head.headers
            if key.startswith(b"mcp-param-")
        }

    assert mirrored("t", {"s": "a b", "i": 42, "b": True, "o": {"deep": "ü"}, "q": "x"}) == {
        "mcp-param-region": "a b",
        "mcp-param-count": "42",
        "mcp-param-method": "true",
        "mcp-param-deep": "=?base64?w7w=?=",
    }
    assert mirrored("t", {"s": "", "i": None}) == {"mcp-param-region": ""}
    assert mirrored("t", {}) == mirrored("other", {"s": "x"}) == {}
    # A call with an argument that no header can carry fails.
    net.conn.send_request("tools/call", {"name": "t", "arguments": {"i": 2**60}}, token="T")
    assert net.new_calls() == []
    failed = net.event()
    assert isinstance(failed, ErrorReceived)
    assert isinstance(failed.error, LocalProtocolError)
    assert "tools/call cannot be sent over HTTP" in str(failed.error)


def test_invalid_mirroring_in_stateful_revision_keeps_tool() -> None:
    net = open_client(D)
    bad = {"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}}
    id, call = send_call(net, "tools/list")
    net.answer(call, result(id, {"tools": [{"name": "bad", "inputSchema": bad}]}))
    assert [tool.name for tool in net.event().result.tools] == ["bad"]


@pytest.mark.parametrize("end", ["refused", "broken", "slow"])
def test_initialized_not_accepted_releases_held_messages(end: str) -> None:
    """A failed or slow `initialized` costs at most 10 s, after which the call is sent anyway."""
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)), mcp_session_id=SESSION)
    posted = net.call()
    net.conn.send_request("tools/list")
    assert net.new_calls() == []
    if end == "refused":
        net.answer(posted, "no", 500, "text/plain")
    elif end == "broken":
        net.end_response(posted, "the connection was reset")
    else:
        net.at(9.9)
        assert net.new_calls() == []
        assert net.http.next_deadline() == 10.0
        net.at(10.0)
    assert posted_message(net.call())["method"] == "tools/list"
    assert type_names(net.events()) == ["PeerReady"] + ["MessageRejected"] * (end != "slow")
    if end == "slow":
        net.answer(posted)
        assert net.new_calls() == []  # no standalone stream: the wait for it is over


def test_version_probe_timed_out_is_dropped_after_handshake() -> None:
    net = Net()
    net.open()
    probe = net.call()
    net.at(15.0)
    net.answer(net.call(), result(2, initialize_result(D)))
    net.answer(net.call())
    net.answer(net.call(), status=405)
    assert net.dropped == [probe.key]


@pytest.mark.requirement("SHL-33")
@pytest.mark.parametrize("name", ["", "a b", "ü", "a\tb", "x" * 1025])
def test_session_id_not_visible_ascii_closes_connection(name: str) -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)), mcp_session_id=name)
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    assert "visible ASCII" in str(closed.error)
    assert net.new_calls() == []


def test_handshake_that_is_wrong_twice_fails_once() -> None:
    net = Net(D)
    net.open()
    net.start_response(net.call(), type="text/html", mcp_session_id="a b")
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    assert "visible ASCII" in str(closed.error)
    assert len(net.dropped) == 1


def test_session_id_is_taken_from_handshake_only() -> None:
    net = open_client(D)
    id, call = send_call(net)
    net.answer(call, result(id, CONTENT), mcp_session_id="other")
    _, call = send_call(net)
    assert header(call, "mcp-session-id") == SESSION


@pytest.mark.requirement("AG-1")
def test_call_headers_replace_configured_headers() -> None:
    """Names compare without case, and a call's own header replaces just that one."""
    net = Net(
        E,
        url="https://server.example/mcp",
        options=HttpClientOptions(
            headers={"Authorization": "Bearer x", "X-A": "1", "User-Agent": "me"}
        ),
    )
    net.open()
    first = net.call()
    assert (header(first, "authorization"), header(first, "x-a"), header(first, "user-agent")) == (
        "Bearer x",
        "1",
        "me",
    )
    net.answer(first, result(1, discover_result()))
    _, call = send_call(net, headers={"X-a": "2", "X-B": "ü"})
    assert (header(call, "x-a"), header(call, "x-b"), header(call, "authorization")) == (
        "2",
        "ü",
        "Bearer x",
    )


# -- Which calls may be repeated -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "method", "repeatable", "long"),
    [
        (E, "tools/call", False, False),
        (D, "tools/call", False, False),
        (E, "tools/list", True, False),
        (E, "x/custom", False, False),
        (E, "subscriptions/listen", True, True),
        (D, "logging/setLevel", True, False),
    ],
)
def test_call_flags_follow_method_row(
    version: str, method: str, repeatable: bool, long: bool
) -> None:
    net = open_client(version)
    params: dict[str, Any] = {
        "subscriptions/listen": t.ListenParams(
            notifications=t.SubscriptionFilter(tools_list_changed=True)
        ),
        "logging/setLevel": t.SetLevelParams(level="info"),
    }
    _, call = send_call(net, method, params.get(method))
    assert (call.idempotent, call.long_lived, call.brief) == (repeatable, long, False)


# -- Cancelling ------------------------------------------------------------------------------------


@pytest.mark.requirement("CXL-15")
def test_cancel_stateless_only_drops_call() -> None:
    net = open_client(E)
    id, call = send_call(net)
    net.conn.send_cancel(id)
    assert net.new_calls() == []
    assert net.dropped == [call.key]
    net.answer(call, result(id, CONTENT))  # the driver may not have seen the drop yet
    assert net.events() == []
    net.conn.send_cancel(id)
    assert net.http.idle


@pytest.mark.requirement("CXL-16", "CXL-18")
@pytest.mark.parametrize("version", STATEFUL)
def test_cancel_stateful_sends_notification_and_reads_on(version: str) -> None:
    """The server then cancels its own requests for that call, on the same stream."""
    net = open_client(version)
    id, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event(request("q", "roots/list")))
    assert isinstance(net.event(), RequestReceived)
    net.conn.send_cancel(id, "enough")
    posted = net.call()
    assert posted_message(posted) == notification(
        "notifications/cancelled", {"requestId": id, "reason": "enough"}
    )
    assert header(posted, "mcp-session-id") == SESSION
    assert header(posted, "mcp-protocol-version") == header(call, "mcp-protocol-version")
    assert posted.brief
    assert net.dropped == []
    net.answer(posted)
    net.send_body(call, event(notification("notifications/cancelled", {"requestId": "q"})))
    assert type_names(net.events()) == ["RequestCancelled"]
    net.end_response(call)
    assert net.http.idle
    assert net.http.next_deadline() is None


@pytest.mark.parametrize("said_before", ["nothing", "a head", "an event"])
def test_cancelled_call_not_ended_is_dropped_after_linger(said_before: str) -> None:
    """The server should end the stream of a cancelled call; after 5 s the client does."""
    net = open_client(D)
    id, call = send_call(net, progress=True)
    if said_before != "nothing":
        net.start_response(call)
    if said_before == "an event":
        net.send_body(
            call,
            event(notification("notifications/progress", {"progressToken": id, "progress": 1})),
        )
        net.events()
    net.conn.send_cancel(id)
    net.answer(net.call())
    net.at(3.0)
    if said_before != "nothing":
        net.send_body(
            call,
            event(notification("notifications/progress", {"progressToken": id, "progress": 2})),
        )
    net.at(4.9)
    assert net.dropped == []
    net.at(5.0)
    assert net.dropped == [call.key]
    assert net.events() == []
    assert net.http.idle


def test_cancel_of_answered_call_sends_nothing() -> None:
    net = open_client(D)
    id, call = send_call(net)
    net.conn.send_cancel(id)
    body = encoded(result(id, CONTENT))
    net.http.response_started(call.key, Head(200, [(b"content-type", b"application/json")]), 0.0)
    net.http.response_data(call.key, body, 0.0)
    net.http.response_ended(call.key, 0.0)
    assert net.new_calls() == []
    assert net.events() == []


@pytest.mark.parametrize("answer", ["result", "refusal", "reset"])
def test_response_to_cancelled_call_is_ignored(answer: str) -> None:
    net = open_client(D)
    id, call = send_call(net)
    net.conn.send_cancel(id)
    net.answer(net.call())
    if answer == "reset":
        net.end_response(call, "reset")
    elif answer == "refusal":
        net.answer(call, "no", 500, "text/plain")
    else:
        net.answer(call, result(id, CONTENT))
    assert net.events() == []
    net.at(10.0)
    assert net.http.idle
    assert net.dropped == []


def test_close_drops_cancelled_call() -> None:
    net = open_client(D, session=None)
    id, call = send_call(net)
    net.conn.send_cancel(id)
    posted = net.call()
    net.conn.close()
    assert net.new_calls() == []
    assert net.dropped == [call.key]
    net.answer(posted)
    assert net.http.idle


@pytest.mark.parametrize("version", [D, E])
def test_cancel_before_sending_sends_nothing(version: str) -> None:
    net = open_client(version)
    net.conn.send_cancel(net.conn.send_request("tools/list"))
    assert net.new_calls() == []
    assert net.dropped == []
    assert net.http.idle


@pytest.mark.requirement("CXL-2", "CXL-3")
@pytest.mark.parametrize("version", [*STATEFUL, E])
def test_cancel_of_call_that_waits_for_a_connection_only_drops_it(version: str) -> None:
    net = open_client(version)
    net.delays_calls = True
    id, call = send_call(net)
    net.conn.send_cancel(id)
    assert net.new_calls() == []
    assert net.dropped == [call.key]
    net.http.request_started(call.key)  # too late
    assert net.http.idle
    assert net.events() == []


def test_cancel_of_resume_that_waits_for_a_connection_sends_notification() -> None:
    """The request was sent: only the request for the rest of its stream was not."""
    net = open_client(D)
    id, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event(None, "1"))
    net.end_response(call)
    net.delays_calls = True
    net.at(10.0)
    assert net.call().head.method == b"GET"
    net.conn.send_cancel(id)
    assert posted_message(net.call())["params"]["requestId"] == id


def test_cancel_of_held_message_removes_it() -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)))
    posted = net.call()
    kept, cancelled = net.conn.send_request("tools/list"), net.conn.send_request("tools/list")
    assert net.new_calls() == []
    net.conn.send_cancel(cancelled)
    assert net.new_calls() == []
    net.answer(posted)
    net.start_response(net.call())
    assert posted_message(net.call())["id"] == kept


@pytest.mark.parametrize("how", ["breaks", "waits", "refused", "nonsense"])
def test_calls_wait_for_standalone_stream_at_most_one_second(how: str) -> None:
    """Whether the GET fails or hangs, the first call goes out, and a late stream still counts."""
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)))
    posted = net.call()
    id = net.conn.send_request("tools/list")
    net.answer(posted)
    get = net.call()
    if how == "breaks":
        net.end_response(get, "connection reset")
    elif how == "refused":
        net.answer(get, "", 503)
    elif how == "nonsense":
        net.start_response(get, type="text/html")
    else:
        assert net.http.next_deadline() == 1.0
        net.at(0.9)
        assert net.new_calls() == []
        net.at(1.0)
    call = net.call()
    assert posted_message(call)["id"] == id
    net.answer(call, result(id, LIST))
    assert isinstance(net.events()[-1], ResultReceived)
    if how == "waits":
        assert net.dropped == []
        net.start_response(get)
        net.send_body(get, event(notification("notifications/tools/list_changed")))
        assert type_names(net.events()) == ["NotificationReceived"]


def send_set_level(net: Net) -> int:
    id = net.conn.send_request("logging/setLevel", t.SetLevelParams(level="info"), token="L")
    assert isinstance(id, int)
    return id


@pytest.mark.parametrize("how", ["json", "stream", "error", "refused", "lost", "slow", "cancelled"])
def test_requests_wait_for_set_level_to_end(how: str) -> None:
    """The level must hold for the next request; notifications pass, and 10 s is the limit."""
    net = open_client(D)
    id = send_set_level(net)
    setting = net.call()
    later = [net.conn.send_request("tools/list") for _ in range(2)]
    net.conn.send_notification("notifications/roots/list_changed")
    posted = net.call()
    assert posted_message(posted)["method"] == "notifications/roots/list_changed"
    net.answer(posted)
    if how in ("stream", "slow"):
        net.start_response(setting)
        assert net.new_calls() == []
    match how:
        case "json":
            net.answer(setting, result(id, {}))
        case "stream":
            net.send_body(setting, event(result(id, {})))
        case "error":
            net.answer(
                setting, {"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}}
            )
        case "refused":
            net.answer(setting, "no", 500, "text/plain")
        case "lost":
            net.end_response(setting, "reset")
        case "cancelled":
            net.conn.send_cancel(id)
            posted, *calls = net.new_calls()
            assert posted_message(posted)["params"]["requestId"] == id
            assert [posted_message(call)["id"] for call in calls] == later
            return
        case "slow":
            assert net.http.next_deadline() == 10.0
            net.at(10.0)
    assert [posted_message(call)["id"] for call in net.new_calls()] == later
    if how == "slow":
        assert net.dropped == []
        net.send_body(setting, event(result(id, {})))
    if how in ("stream", "slow"):
        assert isinstance(net.event(), ResultReceived)
        net.end_response(setting)
    assert net.http.next_deadline() is None


def test_set_level_before_initialized_precedes_first_call() -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)))
    posted = net.call()
    id = send_set_level(net)
    first = net.conn.send_request("tools/list")
    net.answer(posted)
    net.answer(net.call(), status=405)
    setting = net.call()
    assert posted_message(setting)["id"] == id
    net.answer(setting, result(id, {}))
    assert posted_message(net.call())["id"] == first


def test_response_is_sent_while_set_level_is_pending() -> None:
    net = open_client(D)
    send_set_level(net)
    setting = net.call()
    net.start_response(setting)
    net.send_body(setting, event(request("q", "ping")))
    assert posted_message(net.call()) == result("q", {})


@pytest.mark.requirement("SHL-26")
def test_close_with_session_sends_delete() -> None:
    """DELETE is only a courtesy: the connection is closed at once, and a 405 changes nothing."""
    net = open_client(D, stream=True)
    id, call = send_call(net)
    net.conn.close()
    cancel, delete = net.new_calls()
    assert posted_message(cancel)["params"]["requestId"] == id
    assert (delete.head.method, delete.head.target) == (b"DELETE", b"/mcp")
    assert (header(delete, "mcp-session-id"), header(delete, "mcp-protocol-version")) == (
        SESSION,
        D,
    )
    assert net.dropped == [call.key, 3]
    assert len(net.http._state.operations) == 2
    net.answer(cancel)
    net.answer(delete, "x", status=405, type="text/plain")
    assert net.http.idle
    assert type_names(net.events()) == ["ConnectionClosed"]


def test_close_without_session_sends_nothing() -> None:
    net = open_client(D, session=None)
    net.conn.close()
    assert net.new_calls() == []
    assert net.http.idle


def test_close_discards_held_messages() -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)))
    posted = net.call()
    net.conn.send_request("tools/list")
    net.new_calls()
    net.conn.close()
    assert net.new_calls() == []
    net.answer(posted)
    assert net.new_calls() == []


# -- Loss of the session ---------------------------------------------------------------------------


def answer_handshake_again(
    net: Net, version: str = D, session: str | None = "two", *, stream: bool = False
) -> list[Any]:
    """Answer the handshake of a new session, and return the calls after it.

    With `stream` the GET is the first of them, and its stream has begun; else it got 405.
    """
    again = net.call()
    assert posted_message(again)["method"] == "initialize"
    assert header(again, "mcp-session-id") is header(again, "mcp-protocol-version") is None
    headers: dict[str, Any] = {} if session is None else {"mcp_session_id": session}
    net.answer(again, result(posted_message(again)["id"], initialize_result(version)), **headers)
    posted = net.call()
    assert posted_message(posted)["method"] == "notifications/initialized"
    assert header(posted, "mcp-session-id") == session
    net.answer(posted)
    get = net.call()
    assert get.head.method == b"GET"
    if stream:
        net.start_response(get)
        return [get, *net.new_calls()]
    net.answer(get, status=405)
    return net.new_calls()


@pytest.mark.requirement("SHL-25")
def test_session_lost_is_renegotiated_and_calls_repeated() -> None:
    """Only a call whose response had begun fails; the rest moves to session "two"."""
    net = open_client(D, stream=True)
    lost, streaming = send_call(net)
    net.start_response(streaming)
    requests, call = send_call(net, "tools/list")
    waiting, third = send_call(net)
    net.answer(
        call,
        '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}',
        404,
    )
    failed = net.event()
    assert isinstance(failed, ErrorReceived)
    assert (failed.id, type(failed.error)) == (lost, ConnectionLost)
    assert "lost the session" in str(failed.error)
    assert net.dropped == [3, streaming.key]
    later = net.conn.send_request("tools/list")
    again = answer_handshake_again(net)
    assert [posted_message(each)["id"] for each in again] == [requests, later]
    assert {header(each, "mcp-session-id") for each in again} == {"two"}
    assert isinstance(net.event(), PeerReady)
    # A call in flight in the old session gets its own 404, and is then sent again.
    net.answer(third, "", 404)
    repeated = net.call()
    assert (posted_message(repeated)["id"], header(repeated, "mcp-session-id")) == (waiting, "two")
    for each in (*again, repeated):
        net.answer(
            each,
            result(
                posted_message(each)["id"],
                LIST if posted_message(each)["method"] == "tools/list" else CONTENT,
            ),
        )
    assert [seen.id for seen in net.events()] == [requests, later, waiting]
    assert net.http.idle


def test_session_lost_cancels_requests_of_server() -> None:
    net = open_client(D)
    _, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event(request("q", "roots/list")))
    assert isinstance(net.event(), RequestReceived)
    _, other = send_call(net, "tools/list")
    net.answer(other, "", 404)
    assert type_names(net.events()) == ["ErrorReceived", "RequestCancelled"]
    assert not net.conn.send_result("q", t.ListRootsResult(roots=[]))
    assert [posted_message(each)["method"] for each in answer_handshake_again(net)] == [
        "tools/list"
    ]


def test_session_lost_does_not_repeat_response() -> None:
    net = open_client(D)
    _, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event(request("q", "roots/list")))
    assert isinstance(net.event(), RequestReceived)
    net.conn.send_result("q", t.ListRootsResult(roots=[]))
    answer = net.call()
    net.answer(answer, "", 404)
    assert type_names(net.events()) == ["ErrorReceived"]
    assert answer_handshake_again(net) == []


def test_session_lost_repeats_notification() -> None:
    net = open_client(D)
    net.conn.send_notification("notifications/roots/list_changed")
    net.answer(net.call(), "", 404)
    assert [posted_message(each)["method"] for each in answer_handshake_again(net)] == [
        "notifications/roots/list_changed"
    ]


def test_session_lost_does_not_repeat_cancelled_call() -> None:
    net = open_client(D)
    id, call = send_call(net)
    other, second = send_call(net)
    net.answer(call, "", 404)
    initialize = net.call()
    net.conn.send_cancel(id)
    net.conn.send_cancel(other)
    assert net.new_calls() == []  # the session of the cancelled calls has ended
    assert net.dropped == [second.key]
    net.answer(initialize, result(posted_message(initialize)["id"], initialize_result(D)))
    net.answer(net.call())
    assert [each.head.method for each in net.new_calls()] == [b"GET"]


def test_session_lost_on_standalone_stream_is_renegotiated() -> None:
    net = open_client(D, stream=True)
    net.end_response(HttpCall(3, RequestHead(b"GET", b"/mcp", [])), "reset")
    net.at(1.0)
    get = net.call()
    assert get.head.method == b"GET"
    net.answer(get, "", 404)
    assert answer_handshake_again(net) == []
    assert type_names(net.events()) == ["PeerReady"]


def test_session_lost_twice_without_use_closes_connection() -> None:
    net = open_client(D)
    _, call = send_call(net)
    net.answer(call, "", 404)
    (again,) = answer_handshake_again(net)
    net.answer(again, "", 404)
    assert type_names(net.events()) == ["PeerReady", "ConnectionClosed"]
    assert net.conn.state is State.CLOSED
    assert [each.head.method for each in net.new_calls()] == [b"DELETE"]


def test_session_lost_repeatedly_after_use_is_renegotiated() -> None:
    net = open_client(D)
    for session in ("two", "three", "four"):
        id, call = send_call(net)
        net.answer(call, "", 404)
        (again,) = answer_handshake_again(net, session=session)
        net.answer(again, result(id, CONTENT))
        assert type_names(net.events()) == ["PeerReady", "ResultReceived"]


def test_old_session_response_does_not_prove_new_session() -> None:
    net = open_client(D)
    id, old = send_call(net)
    _, call = send_call(net, "tools/list")
    net.answer(call, "", 404)
    (again,) = answer_handshake_again(net)
    net.answer(old, result(id, CONTENT))
    assert type_names(net.events()) == ["PeerReady", "ResultReceived"]
    net.answer(again, "", 404)
    assert type_names(net.events()) == ["ConnectionClosed"]


@pytest.mark.parametrize("problem", ["refused", "broken", "404"])
def test_session_renegotiation_failed_closes_connection(problem: str) -> None:
    net = open_client(D)
    _id, call = send_call(net)
    net.answer(call, "", 404)
    initialize = net.call()
    if problem == "broken":
        net.end_response(initialize, "connection refused")
    else:
        net.answer(initialize, "no", 404 if problem == "404" else 503, "text/plain")
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    assert (closed.lost, type(closed.error)) == (["T"], ConnectionLost)
    assert "no new session" in str(closed.error)
    assert net.new_calls() == []
    assert net.http.idle


def test_new_session_rejecting_initialized_closes_connection() -> None:
    net = open_client(D)
    _, call = send_call(net)
    net.answer(call, "", 404)
    initialize = net.call()
    net.answer(
        initialize,
        result(posted_message(initialize)["id"], initialize_result(D)),
        mcp_session_id="two",
    )
    net.answer(net.call(), "", 404)
    assert type_names(net.events()) == ["PeerReady", "ConnectionClosed"]


def test_new_session_in_other_revision_fails_held_calls() -> None:
    """The caller's params were made for the old revision, so only new calls use the new one."""
    net = Net(C, D)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)), mcp_session_id=SESSION)
    net.answer(net.call())
    net.answer(net.call(), status=405)
    net.events()
    _id, call = send_call(net)
    net.answer(call, "", 404)
    assert answer_handshake_again(net, C) == []
    ready, failed = net.events()
    assert isinstance(ready, PeerReady)
    assert isinstance(failed, ErrorReceived)
    assert "another revision" in str(failed.error)
    _, call = send_call(net)
    assert header(call, "mcp-protocol-version") == C


@pytest.mark.requirement("VER-16")
def test_new_session_is_negotiated_without_probe() -> None:
    net = Net()
    net.open()
    net.answer(net.call(), error(1, -32601), 400)
    net.answer(net.call(), result(2, initialize_result(D)), mcp_session_id=SESSION)
    net.answer(net.call())
    net.answer(net.call(), status=405)
    _, call = send_call(net)
    net.answer(call, "", 404)
    assert len(answer_handshake_again(net)) == 1


@pytest.mark.parametrize("held", [False, True])
def test_new_session_at_upgraded_server_needs_no_handshake(held: bool) -> None:
    """The server was replaced by a stateless one: the old call fails, and the next one works."""
    net = Net()
    net.open()
    net.answer(net.call(), error(1, -32601), 400)
    net.answer(net.call(), result(2, initialize_result(D)), mcp_session_id=SESSION)
    net.answer(net.call())
    net.answer(net.call(), status=405)
    net.events()
    _, call = send_call(net)
    net.answer(call, "", 404)
    initialize = net.call()
    if held:
        net.conn.send_request("tools/list")
    missing = "the header MCP-Protocol-Version is missing"
    net.answer(initialize, error(None, -32020, missing), 400)
    probe = net.call()
    assert posted_message(probe)["method"] == "server/discover"
    net.answer(probe, result(posted_message(probe)["id"], discover_result()))
    ready, *failed = net.events()
    assert isinstance(ready, PeerReady)
    assert ready.peer.dialect.version == E
    assert ["another revision" in str(each.error) for each in failed] == [True] * (1 + held)
    id, call = send_call(net)
    assert (header(call, "mcp-protocol-version"), header(call, "mcp-session-id")) == (E, None)
    net.answer(call, result(id, CONTENT))
    assert type_names(net.events()) == ["ResultReceived"]
    assert net.http.idle


def test_stateless_404_is_an_error_of_the_call() -> None:
    """A session id came from a handshake that lost, so 404 must not start a new session."""
    net = Net()
    net.open()
    net.at(15.0)
    _, initialize = net.new_calls()
    # The session is not used: the server turns out to be stateless.
    refused = {
        "jsonrpc": "2.0",
        "id": 2,
        "error": {"code": -32022, "message": "no", "data": {"supported": [E]}},
    }
    net.answer(initialize, refused, mcp_session_id=SESSION)
    again = net.call()
    net.answer(again, result(posted_message(again)["id"], discover_result()))
    net.events()
    _, call = send_call(net)
    assert header(call, "mcp-session-id") is None
    net.answer(call, "", 404)
    assert "HTTP status 404" in str(net.event().error)
    assert net.new_calls() == []


def test_stateful_404_without_session_is_an_error_of_the_call() -> None:
    net = open_client(D, session=None)
    _, call = send_call(net)
    net.answer(call, "", 404, "text/html")
    assert "HTTP status 404" in str(net.event().error)
    assert net.new_calls() == []


def test_session_lost_after_close_is_ignored() -> None:
    net = open_client(D)
    net.conn.send_notification("notifications/roots/list_changed")
    call = net.call()
    net.conn.close()
    net.new_calls()
    net.answer(call, "", 404)
    assert net.new_calls() == []
    assert type_names(net.events()) == ["ConnectionClosed"]


# -- A lost session that is answered with 400 ------------------------------------------------------

# What servers answer to a session id that they don't know.
EXPRESS = '{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}'  # fmt: skip  # noqa: E501
PYTHON_SDK = "Bad Request: No valid session ID provided"  # up to 1.25, and without a content type


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (EXPRESS, JSON),
        (PYTHON_SDK, None),
        (PYTHON_SDK, "text/plain"),
        ('{"jsonrpc":"2.0","error":{"code":-32600,"message":"no session"}}', JSON),
        ('{"error": {"code": -32000, "message": "Invalid session"}, "id" : null}', JSON),
        ('[{"jsonrpc":"2.0","error":{"code":-1,"message":"session expired"},"id":null}]', JSON),
        (
            '{"jsonrpc":"2.0","error":{"code":-1,"message":"Server not initialized"},"id":null}',
            JSON,
        ),
        ('{"detail":"No transport found for sessionId"}', JSON),
        ("<h1>Unknown session</h1>", "text/html"),
    ],
)
def test_400_without_id_about_the_session_is_a_lost_session(
    body: str, content_type: str | None
) -> None:
    """The rejected call is sent again once, in the new session, and others are as before."""
    net = open_client(D)
    waiting, other = send_call(net, "tools/list")
    id, call = send_call(net)
    net.answer(call, body, 400, content_type)
    (again,) = answer_handshake_again(net)
    assert (posted_message(again)["id"], header(again, "mcp-session-id")) == (id, "two")
    assert again.body == call.body
    # A call in flight in the old session gets its own 400, and is then sent again.
    net.answer(other, body, 400, content_type)
    repeated = net.call()
    assert (posted_message(repeated)["id"], header(repeated, "mcp-session-id")) == (waiting, "two")
    net.answer(again, result(id, CONTENT))
    net.answer(repeated, result(waiting, LIST))
    problem, *others = net.events()
    assert isinstance(problem, InputProblem)
    assert "400 to its session id" in problem.problem
    assert type_names(others) == ["PeerReady", "ResultReceived", "ResultReceived"]
    assert net.http.idle
    # The next loss is reported no more, and is treated in the same way.
    id, call = send_call(net)
    net.answer(call, body, 400, content_type)
    (again,) = answer_handshake_again(net, session="three")
    net.answer(again, result(id, CONTENT))
    assert type_names(net.events()) == ["PeerReady", "ResultReceived"]


@pytest.mark.parametrize(
    "body",
    [
        error("ours", -32602, "no such tool"),
        error("ours", -32000, "Bad Request: No valid session ID provided"),
        error("server-error", -32600, "Bad Request: Unsupported protocol version"),
        {"jsonrpc": "2.0", "id": "ours", "error": "no session"},
        {"id": "ours", "error": "no session"},
        [error("ours", -32602, "no session")],
        # A handler of the TypeScript SDK that has failed, and others that may have run.
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}},
        {"detail": "the receipt failed after the payment"},
        {"detail": "the session of the database has ended"},
        "<h1>Bad Request</h1>",
        "",
        {"jsonrpc": "2.0", "id": None, "result": {}},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {}},
        '{"jsonrpc":"2.0","id":null,"id":2,"error":{"code":-32602,"message":"no session"}}',
        '{"jsonrpc":"2.0","id":2.0,"error":{"code":-32602,"message":"no session"}}',
        '{"jsonrpc":"2.0","id":"2","error":{"code":-32602,"message":"no session"}}',
        "no session " * 10_000,
    ],
    ids=str,
)
def test_400_that_may_be_the_response_is_never_sent_again(body: Any) -> None:
    net = open_client(D)
    id, call = send_call(net)
    text = body if isinstance(body, str) else encoded(body).replace(b'"ours"', b"%d" % id).decode()
    net.answer(call, text, 400)
    failed = net.events()[-1]
    assert isinstance(failed, ErrorReceived)
    assert failed.id == id
    assert net.new_calls() == []
    assert net.http.idle


def test_400_whose_body_breaks_off_is_never_sent_again() -> None:
    net = open_client(D)
    _, call = send_call(net)
    net.start_response(call, status=400)
    net.send_body(call, b'{"jsonrpc":"2.0","error":{"code":-32000,"message":"no session"},')
    net.end_response(call, "connection reset")
    assert type_names(net.events()) == ["ErrorReceived"]
    assert net.new_calls() == []


@pytest.mark.parametrize("status", [401, 403, 405, 409, 410, 422, 500])
def test_other_status_is_no_lost_session(status: int) -> None:
    net = open_client(D)
    _, call = send_call(net)
    net.answer(call, EXPRESS, status)
    assert type_names(net.events()) == ["ErrorReceived"]
    assert net.new_calls() == []


def test_400_twice_in_a_row_is_the_answer() -> None:
    """It was about the call: the new session stays, and this method starts no further one."""
    net = open_client(D)
    id, call = send_call(net)
    net.answer(call, EXPRESS, 400)
    (again,) = answer_handshake_again(net)
    net.answer(again, EXPRESS, 400)
    *_, failed = net.events()
    assert isinstance(failed, ErrorReceived)
    assert (failed.id, str(failed.error)) == (
        id,
        "Bad Request: No valid session ID provided (-32000)",
    )
    assert net.new_calls() == []
    listing, call = send_call(net, "tools/list")
    assert header(call, "mcp-session-id") == "two"
    net.answer(call, result(listing, LIST))
    _, call = send_call(net)
    net.answer(call, EXPRESS, 400)
    assert type_names(net.events()) == ["ResultReceived", "ErrorReceived"]
    # The loss of the session still shows by another method.
    _, call = send_call(net, "tools/list")
    net.answer(call, EXPRESS, 400)
    assert len(answer_handshake_again(net, session="three")) == 1


def test_400_in_new_session_to_another_call_is_the_answer() -> None:
    net = open_client(D)
    _, call = send_call(net)
    net.answer(call, EXPRESS, 400)
    (again,) = answer_handshake_again(net)
    other, second = send_call(net, "tools/list")
    net.answer(second, EXPRESS, 400)
    assert [each.id for each in net.events() if isinstance(each, ErrorReceived)] == [other]
    net.answer(again, result(posted_message(again)["id"], CONTENT))
    assert type_names(net.events()) == ["ResultReceived"]
    assert net.new_calls() == []


@pytest.mark.parametrize("status", [400, 404])
def test_call_rejected_in_two_sessions_is_not_sent_a_third_time(status: int) -> None:
    """Another call was accepted in the new session, which therefore worked."""
    net = open_client(D)
    id, call = send_call(net)
    other, second = send_call(net, "tools/list")
    net.answer(call, EXPRESS, status)
    (again,) = answer_handshake_again(net)
    net.answer(second, EXPRESS, status)
    net.answer(net.call(), result(other, LIST))
    net.events()
    net.answer(again, EXPRESS, status)
    failed = net.event()
    assert isinstance(failed, ErrorReceived)
    assert failed.id == id
    if status == 404:
        assert answer_handshake_again(net, session="three") == []
    assert net.new_calls() == []


def test_400_while_a_call_streams_fails_nothing_else() -> None:
    """An open stream shows that the server has the session: the 400 is about the other call."""
    net = open_client(D)
    running, streaming = send_call(net)
    net.start_response(streaming)
    other, call = send_call(net, "tools/list")
    net.answer(call, EXPRESS, 400)
    failed = net.event()
    assert isinstance(failed, ErrorReceived)
    assert failed.id == other
    assert net.new_calls() == []
    net.send_body(streaming, event(result(running, CONTENT)))
    assert [each.id for each in net.events()] == [running]


def test_400_while_the_server_asks_something_cancels_nothing() -> None:
    net = open_client(D, stream=True)
    get = HttpCall(3, RequestHead(b"GET", b"/mcp", []))
    net.send_body(get, event(request("q", "roots/list")))
    assert isinstance(net.event(), RequestReceived)
    _, call = send_call(net, "tools/list")
    net.answer(call, EXPRESS, 400)
    assert type_names(net.events()) == ["ErrorReceived"]
    assert net.conn.send_result("q", t.ListRootsResult(roots=[]))
    answer = net.call()
    net.answer(answer, PYTHON_SDK, 400, None)  # the body names no request, nor does the message
    assert type_names(net.events()) == ["MessageRejected"]
    assert net.new_calls() == []


@pytest.mark.parametrize("asks", [False, True])
def test_call_of_the_old_session_may_still_be_answered(asks: bool) -> None:
    """The 400 was about something else: a call that only just begins to stream is read on.

    What the server asks there has no answer in the new session, so the call fails.
    """
    net = open_client(D)
    id, old = send_call(net)
    _, call = send_call(net, "tools/list")
    net.answer(call, EXPRESS, 400)
    assert len(answer_handshake_again(net)) == 1
    net.events()
    net.start_response(old)
    net.send_body(old, event(notification("notifications/tools/list_changed")))
    assert type_names(net.events()) == ["NotificationReceived"]
    if asks:
        net.send_body(old, event(request("q", "roots/list")))
    net.send_body(old, event(result(id, CONTENT)))
    ended = net.event()
    assert ended.id == id
    if asks:
        assert isinstance(ended, ErrorReceived)
        assert isinstance(ended.error, ConnectionLost)
    else:
        assert isinstance(ended, ResultReceived)
    assert net.new_calls() == []


@pytest.mark.parametrize("last_id", ["", "7"])
def test_400_to_a_reconnected_standalone_stream_is_a_lost_session(last_id: str) -> None:
    """An event id that the server doesn't know gets 400 too, so it is left out first."""
    net = open_client(D, stream=True)
    get = HttpCall(3, RequestHead(b"GET", b"/mcp", []))
    if last_id:
        net.send_body(get, event(notification("notifications/tools/list_changed"), id=last_id))
    net.end_response(get, "reset")
    net.at(1.0)
    for known in dict.fromkeys([last_id, ""]):
        get = net.call()
        assert header(get, "last-event-id") == (known or None)
        net.answer(get, "Invalid or missing session ID", 400, "text/html")
        net.at(10.0)
    net.events()
    assert answer_handshake_again(net) == []
    assert type_names(net.events()) == ["PeerReady"]


def test_400_to_the_standalone_stream_renews_the_session_once() -> None:
    """The stream has no message that shows whether the new session is any better."""
    net = open_client(D, stream=True)
    get = HttpCall(3, RequestHead(b"GET", b"/mcp", []))
    for is_first in (True, False):
        net.end_response(get, "reset")
        net.at(net.now + 10.0)
        net.answer(net.call(), "Invalid or missing session ID", 400, "text/html")
        net.at(net.now + 10.0)
        if is_first:
            (get,) = answer_handshake_again(net, stream=True)
            id, call = send_call(net)
            net.answer(call, result(id, CONTENT))
    assert net.new_calls() == []
    # A request still shows that the session is lost.
    _, call = send_call(net)
    net.answer(call, EXPRESS, 400)
    assert len(answer_handshake_again(net, session="three")) == 1


def test_call_of_a_lost_session_is_not_resumed_in_the_new_one() -> None:
    """Event ids are unique in one session only."""
    net = open_client(D)
    id, old = send_call(net)
    _, call = send_call(net, "tools/list")
    net.answer(call, EXPRESS, 400)
    answer_handshake_again(net)
    net.events()
    net.start_response(old)
    net.send_body(old, event("", id="9"))
    net.end_response(old)
    failed = net.event()
    assert isinstance(failed, ErrorReceived)
    assert (failed.id, type(failed.error)) == (id, ConnectionLost)
    net.at(net.now + 10.0)
    assert net.new_calls() == []


def test_400_to_a_resumed_call_fails_it_and_sends_nothing_again() -> None:
    net = open_client(D)
    _, call = send_call(net)
    net.start_response(call)
    net.send_body(call, event("", id="1"))
    net.end_response(call)
    net.at(5.0)
    net.answer(net.call(), EXPRESS, 400)
    failed = net.event()
    assert isinstance(failed, ErrorReceived)
    assert isinstance(failed.error, ConnectionLost)
    assert net.new_calls() == []


def test_400_after_close_is_ignored() -> None:
    net = open_client(D)
    _, call = send_call(net)
    net.conn.close()
    net.new_calls()
    net.answer(call, EXPRESS, 400)
    assert net.new_calls() == []
    assert type_names(net.events()) == ["ConnectionClosed"]


def test_streamable_repr_counts_calls_and_held_messages() -> None:
    net = open_client(D)
    send_call(net)
    assert (
        repr(net.http._state.transport)
        == "<StreamableHttpTransport, a session, 1 calls, 0 messages held>"
    )
    assert (
        repr(Net(E).http._state.transport)
        == "<StreamableHttpTransport, no session, 0 calls, 0 messages held>"
    )
    assert repr(net.http).startswith(
        "<HttpClient of http://server.example/mcp: <Connection client READY"
    )
    assert repr(net.http).endswith(", 1 calls, 0 waiting>")


def test_result_of_a_request_that_is_still_held_is_taken() -> None:
    """A server cannot know its id yet, but may guess it: the request has ended all the same."""
    net = open_client(D, stream=True)
    _, gate = send_call(net, "logging/setLevel", {"level": "info"})
    held = net.conn.send_request("tools/list")
    assert net.new_calls() == []
    net.http.response_data(3, event(result(held, LIST)), net.now)
    found = net.event()
    assert isinstance(found, ResultReceived)
    assert (found.id, net.dropped) == (held, [])
    net.answer(gate, result(posted_message(gate)["id"], {}))
    assert isinstance(net.event(), ResultReceived)
