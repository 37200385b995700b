"""Streamable HTTP from the client's end: what goes out, in which order and with which headers; sessions, and their loss."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import (
    ConnectionClosed,
    ConnectionLost,
    ErrorReceived,
    LocalProtocolError,
    MessageRejected,
    PeerReady,
    RequestReceived,
    ResultReceived,
    State,
)
from mcp_core import types as t
from mcp_core.http import Head, RequestHead
from mcp_core.http._call import HttpCall, HttpClientOptions
from tests.core.helpers import A, B, C, D, E, Message, encoded, notification, request, result
from tests.core.http.client_net import (
    SESSION,
    Net,
    asks,
    discovered,
    event,
    header,
    initialized_by,
    kinds,
    opened,
    said,
)

STATEFUL = [A, B, C, D]
CONTENT: Message = {"content": [], "resultType": "complete"}
LIST: Message = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


# -- Opening -----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("HTTP-5", "HTTP-6", "SHL-2", "SHL-22", "SHL-28", "SHL-31", "SHL-10")
@pytest.mark.parametrize("version", STATEFUL)
@pytest.mark.parametrize("session", [SESSION, None])
def test_a_handshake(version: str, session: str | None) -> None:
    net = Net(version)
    net.open()
    first = net.call()
    assert (first.head.method, first.head.target) == (b"POST", b"/mcp")
    assert said(first)["method"] == "initialize"
    assert header(first, "accept") == "application/json, text/event-stream"
    assert header(first, "content-type") == "application/json"
    assert header(first, "host") == "server.example"
    assert header(first, "mcp-protocol-version") is header(first, "mcp-session-id") is None
    headers: dict[str, Any] = {} if session is None else {"mcp_session_id": session}
    net.answer(first, result(1, initialized_by(version)), **headers)
    assert isinstance(net.event(), PeerReady)
    second = net.call()
    assert said(second)["method"] == "notifications/initialized"
    id = net.conn.send_request("tools/list")
    assert net.asked() == []  # it might be there before `initialized`
    assert net.http.queued() > 0
    net.answer(second)
    get = net.call()  # what the server says on that stream before it is there may be lost
    assert net.http.queued() > 0
    net.answer(get, status=405)
    third = net.call()
    assert net.http.queued() == 0
    assert said(third)["id"] == id
    assert (get.head.method, get.body, get.long) == (b"GET", b"", True)
    assert (header(get, "accept"), header(get, "last-event-id")) == ("text/event-stream", None)
    for call in (second, get, third):
        assert header(call, "mcp-session-id") == session
        assert header(call, "mcp-protocol-version") == (version if version in (C, D) else None)
        assert header(call, "mcp-method") is None
    net.answer(third, result(id, LIST))
    assert isinstance(net.event(), ResultReceived)
    assert net.http.idle


@pytest.mark.requirement("SHM-1", "SHM-2", "HDR-1")
def test_the_stateless_era() -> None:
    net = Net(E)
    net.open()
    first = net.call()
    assert said(first)["method"] == "server/discover"
    net.answer(first, result(1, discovered()), mcp_session_id="ignored")
    assert isinstance(net.event(), PeerReady)
    id, call = asks(net)
    for each in (first, call):
        assert (
            header(each, "mcp-protocol-version")
            == E
            == said(each)["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
        )
        assert header(each, "mcp-method") == said(each)["method"]
        assert header(each, "mcp-session-id") is None
    assert header(call, "mcp-name") == "t"
    net.answer(call, result(id, CONTENT))
    assert isinstance(net.event(), ResultReceived)
    net.conn.close()
    assert net.asked() == []
    assert net.http.idle


@pytest.mark.requirement("HDR-2", "HDR-5")
@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "my-tool"}, "my-tool"),
        ("tools/call", t.CallToolParams(name="größe"), "=?base64?Z3LDtsOfZQ==?="),
        ("resources/read", {"uri": "file:///path/to/file%20name.txt"}, "file:///path/to/file%20name.txt"),
        ("prompts/get", {"name": " p"}, "=?base64?IHA=?="),
        ("tools/list", None, None),
        ("x/custom", {"name": "n"}, None),
    ],
)
def test_the_name_in_a_header(method: str, params: Any, name: str | None) -> None:
    net = opened(E, offers={"tools": {}, "resources": {}, "prompts": {}})
    _, call = asks(net, method, params)
    assert (header(call, "mcp-method"), header(call, "mcp-name")) == (method, name)


def test_a_notification_of_the_stateless_era_names_its_method() -> None:
    net = opened(E)
    net.conn.send_notification("x/told", {"a": 1})
    call = net.call()
    assert (header(call, "mcp-method"), header(call, "mcp-protocol-version")) == ("x/told", E)
    net.answer(call)
    assert net.events() == []


@pytest.mark.requirement("HDR-7", "HDR-8", "HDR-9", "HDR-13")
def test_arguments_in_headers() -> None:
    net = opened(E)
    schema = {
        "type": "object",
        "properties": {
            "s": {"type": "string", "x-mcp-header": "Region"},
            "i": {"type": "integer", "x-mcp-header": "Count"},
            "b": {"type": "boolean", "x-mcp-header": "Method"},
            "o": {"type": "object", "properties": {"deep": {"type": "string", "x-mcp-header": "Deep"}}},
            "q": {"type": "string"},
        },
    }
    bad = {"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}}
    tools = [
        {"name": "t", "inputSchema": schema},
        {"name": "bad", "inputSchema": bad},
        {"name": "bad2", "inputSchema": bad},
    ]
    id, call = asks(net, "tools/list")
    net.answer(call, result(id, LIST | {"tools": tools}))
    first, second, listed = net.events()
    assert isinstance(first, MessageRejected)
    assert isinstance(second, MessageRejected)
    assert str(first.error).startswith("tool 'bad' is left out")
    assert str(second.error).startswith("tool 'bad2' is left out")
    assert isinstance(listed, ResultReceived)
    assert [tool.name for tool in listed.result.tools] == ["t"]

    def mirrored(name: str, arguments: Any) -> dict[str, str]:
        _, call = asks(net, "tools/call", {"name": name, "arguments": arguments})
        return {
            key.decode(): value.decode() for key, value in call.head.headers if key.startswith(b"mcp-param-")
        }

    assert mirrored("t", {"s": "a b", "i": 42, "b": True, "o": {"deep": "ü"}, "q": "x"}) == {
        "mcp-param-region": "a b",
        "mcp-param-count": "42",
        "mcp-param-method": "true",
        "mcp-param-deep": "=?base64?w7w=?=",
    }
    assert mirrored("t", {"s": "", "i": None}) == {"mcp-param-region": ""}
    assert mirrored("t", {}) == mirrored("other", {"s": "x"}) == {}
    # What cannot be said in a header cannot be asked for.
    net.conn.send_request("tools/call", {"name": "t", "arguments": {"i": 2**60}}, token="T")
    assert net.asked() == []
    failed = net.event()
    assert isinstance(failed, ErrorReceived)
    assert isinstance(failed.error, LocalProtocolError)
    assert "tools/call cannot be sent over HTTP" in str(failed.error)


def test_tools_of_an_older_revision_are_left_alone() -> None:
    net = opened(D)
    bad = {"type": "object", "properties": {"n": {"type": "number", "x-mcp-header": "N"}}}
    id, call = asks(net, "tools/list")
    net.answer(call, result(id, {"tools": [{"name": "bad", "inputSchema": bad}]}))
    assert [tool.name for tool in net.event().result.tools] == ["bad"]


@pytest.mark.parametrize("end", ["refused", "broken", "slow"])
def test_initialized_that_is_not_accepted_holds_up_nothing(end: str) -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialized_by(D)), mcp_session_id=SESSION)
    told = net.call()
    net.conn.send_request("tools/list")
    assert net.asked() == []
    if end == "refused":
        net.answer(told, "no", 500, "text/plain")
    elif end == "broken":
        net.ends(told, "the connection was reset")
    else:
        net.at(9.9)
        assert net.asked() == []
        assert net.http.next_deadline() == 10.0
        net.at(10.0)
    assert said(net.call())["method"] == "tools/list"
    assert kinds(net.events()) == ["PeerReady"] + ["MessageRejected"] * (end != "slow")
    if end == "slow":
        net.answer(told)
        assert net.asked() == []  # the stream of the session, which nobody waits for any more


def test_a_probe_that_was_given_up_is_let_go() -> None:
    net = Net()
    net.open()
    probe = net.call()
    net.at(5.0)
    net.answer(net.call(), result(2, initialized_by(D)))
    net.answer(net.call())
    net.answer(net.call(), status=405)
    assert net.dropped == [probe.key]


@pytest.mark.requirement("SHL-33")
@pytest.mark.parametrize("name", ["", "a b", "ü", "a\tb", "x" * 1025])
def test_a_session_with_a_name_that_no_header_can_say(name: str) -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialized_by(D)), mcp_session_id=name)
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    assert "visible ASCII" in str(closed.error)
    assert net.asked() == []


def test_only_the_handshake_names_the_session() -> None:
    net = opened(D)
    id, call = asks(net)
    net.answer(call, result(id, CONTENT), mcp_session_id="other")
    _, call = asks(net)
    assert header(call, "mcp-session-id") == SESSION


def test_headers_of_a_call_and_of_all() -> None:
    net = Net(
        E, options=HttpClientOptions(headers={"Authorization": "Bearer x", "X-A": "1", "User-Agent": "me"})
    )
    net.open()
    first = net.call()
    assert (header(first, "authorization"), header(first, "x-a"), header(first, "user-agent")) == (
        "Bearer x",
        "1",
        "me",
    )
    net.answer(first, result(1, discovered()))
    _, call = asks(net, headers={"X-a": "2", "X-B": "ü"})
    assert (header(call, "x-a"), header(call, "x-b"), header(call, "authorization")) == ("2", "ü", "Bearer x")


# -- What may be repeated ------------------------------------------------------------------------------------------------


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
def test_what_may_be_sent_twice(version: str, method: str, repeatable: bool, long: bool) -> None:
    net = opened(version)
    params: dict[str, Any] = {
        "subscriptions/listen": t.ListenParams(notifications=t.SubscriptionFilter(tools_list_changed=True)),
        "logging/setLevel": t.SetLevelParams(level="info"),
    }
    _, call = asks(net, method, params.get(method))
    assert (call.idempotent, call.long, call.brief) == (repeatable, long, False)


# -- Giving up ------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("CXL-15")
def test_who_hangs_up_on_a_stateless_server_says_no_more() -> None:
    net = opened(E)
    id, call = asks(net)
    net.conn.send_cancel(id)
    assert net.asked() == []
    assert net.dropped == [call.key]
    net.answer(call, result(id, CONTENT))  # the driver may not know yet
    assert net.events() == []
    net.conn.send_cancel(id)
    assert net.http.idle


@pytest.mark.requirement("CXL-16", "CXL-18")
@pytest.mark.parametrize("version", STATEFUL)
def test_a_stateful_server_is_told(version: str) -> None:
    """And then it takes back on the same stream what it has asked for that call."""
    net = opened(version)
    id, call = asks(net)
    net.starts(call)
    net.gives(call, event(request("q", "roots/list")))
    assert isinstance(net.event(), RequestReceived)
    net.conn.send_cancel(id, "enough")
    told = net.call()
    assert said(told) == notification("notifications/cancelled", {"requestId": id, "reason": "enough"})
    assert header(told, "mcp-session-id") == SESSION
    assert header(told, "mcp-protocol-version") == header(call, "mcp-protocol-version")
    assert told.brief
    assert net.dropped == []
    net.answer(told)
    net.gives(call, event(notification("notifications/cancelled", {"requestId": "q"})))
    assert kinds(net.events()) == ["RequestCancelled"]
    net.ends(call)
    assert net.http.idle
    assert net.http.next_deadline() is None


@pytest.mark.parametrize("said_before", ["nothing", "a head", "an event"])
def test_a_server_that_does_not_end_what_was_cancelled_is_not_listened_to_for_ever(said_before: str) -> None:
    net = opened(D)
    id, call = asks(net, progress=True)
    if said_before != "nothing":
        net.starts(call)
    if said_before == "an event":
        net.gives(call, event(notification("notifications/progress", {"progressToken": id, "progress": 1})))
        net.events()
    net.conn.send_cancel(id)
    net.answer(net.call())
    net.at(3.0)
    if said_before != "nothing":
        net.gives(call, event(notification("notifications/progress", {"progressToken": id, "progress": 2})))
    net.at(4.9)
    assert net.dropped == []
    net.at(5.0)
    assert net.dropped == [call.key]
    assert net.events() == []
    assert net.http.idle


def test_what_was_answered_before_the_cancellation_was_sent_is_not_cancelled() -> None:
    net = opened(D)
    id, call = asks(net)
    net.conn.send_cancel(id)
    body = encoded(result(id, CONTENT))
    net.http.response_started(call.key, Head(200, [(b"content-type", b"application/json")]), 0.0)
    net.http.response_data(call.key, body, 0.0)
    net.http.response_ended(call.key, 0.0)
    assert net.asked() == []
    assert net.events() == []


@pytest.mark.parametrize("answer", ["result", "refusal", "reset"])
def test_what_is_still_said_to_a_call_that_was_cancelled_means_nothing(answer: str) -> None:
    net = opened(D)
    id, call = asks(net)
    net.conn.send_cancel(id)
    net.answer(net.call())
    if answer == "reset":
        net.ends(call, "reset")
    elif answer == "refusal":
        net.answer(call, "no", 500, "text/plain")
    else:
        net.answer(call, result(id, CONTENT))
    assert net.events() == []
    net.at(10.0)
    assert net.http.idle
    assert net.dropped == []


def test_closing_ends_what_was_cancelled() -> None:
    net = opened(D, session=None)
    id, call = asks(net)
    net.conn.send_cancel(id)
    told = net.call()
    net.conn.close()
    assert net.asked() == []
    assert net.dropped == [call.key]
    net.answer(told)
    assert net.http.idle


@pytest.mark.parametrize("version", [D, E])
def test_what_was_not_sent_yet_is_not_sent(version: str) -> None:
    net = opened(version)
    net.conn.send_cancel(net.conn.send_request("tools/list"))
    assert net.asked() == []
    assert net.dropped == []
    assert net.http.idle


def test_what_is_held_is_not_sent() -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialized_by(D)))
    told = net.call()
    kept, given_up = net.conn.send_request("tools/list"), net.conn.send_request("tools/list")
    assert net.asked() == []
    net.conn.send_cancel(given_up)
    assert net.asked() == []
    net.answer(told)
    net.starts(net.call())
    assert said(net.call())["id"] == kept


@pytest.mark.parametrize("how", ["breaks", "waits", "refused", "nonsense"])
def test_the_stream_of_the_session_is_waited_for_and_not_for_long(how: str) -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialized_by(D)))
    told = net.call()
    id = net.conn.send_request("tools/list")
    net.answer(told)
    get = net.call()
    if how == "breaks":
        net.ends(get, "connection reset")
    elif how == "refused":
        net.answer(get, "", 503)
    elif how == "nonsense":
        net.starts(get, type="text/html")
    else:
        assert net.http.next_deadline() == 1.0
        net.at(0.9)
        assert net.asked() == []
        net.at(1.0)
    call = net.call()
    assert said(call)["id"] == id
    net.answer(call, result(id, LIST))
    assert isinstance(net.events()[-1], ResultReceived)
    if how == "waits":
        assert net.dropped == []
        net.starts(get)
        net.gives(get, event(notification("notifications/tools/list_changed")))
        assert kinds(net.events()) == ["NotificationReceived"]


def level(net: Net) -> int:
    id = net.conn.send_request("logging/setLevel", t.SetLevelParams(level="info"), token="L")
    assert isinstance(id, int)
    return id


@pytest.mark.parametrize("how", ["json", "stream", "error", "refused", "lost", "slow", "cancelled"])
def test_requests_wait_for_the_level_that_was_set_before(how: str) -> None:
    net = opened(D)
    id = level(net)
    setting = net.call()
    later = [net.conn.send_request("tools/list") for _ in range(2)]
    net.conn.send_notification("notifications/roots/list_changed")
    told = net.call()
    assert said(told)["method"] == "notifications/roots/list_changed"
    net.answer(told)
    if how in ("stream", "slow"):
        net.starts(setting)
        assert net.asked() == []
    match how:
        case "json":
            net.answer(setting, result(id, {}))
        case "stream":
            net.gives(setting, event(result(id, {})))
        case "error":
            net.answer(setting, {"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}})
        case "refused":
            net.answer(setting, "no", 500, "text/plain")
        case "lost":
            net.ends(setting, "reset")
        case "cancelled":
            net.conn.send_cancel(id)
            told, *calls = net.asked()
            assert said(told)["params"]["requestId"] == id
            assert [said(call)["id"] for call in calls] == later
            return
        case "slow":
            assert net.http.next_deadline() == 10.0
            net.at(10.0)
    assert [said(call)["id"] for call in net.asked()] == later
    if how == "slow":
        assert net.dropped == []
        net.gives(setting, event(result(id, {})))
    if how in ("stream", "slow"):
        assert isinstance(net.event(), ResultReceived)
        net.ends(setting)
    assert net.http.next_deadline() is None


def test_the_level_of_the_opening_comes_before_the_first_call() -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialized_by(D)))
    told = net.call()
    id = level(net)
    first = net.conn.send_request("tools/list")
    net.answer(told)
    net.answer(net.call(), status=405)
    setting = net.call()
    assert said(setting)["id"] == id
    net.answer(setting, result(id, {}))
    assert said(net.call())["id"] == first


def test_what_the_server_asks_before_it_sets_the_level_is_answered() -> None:
    net = opened(D)
    level(net)
    setting = net.call()
    net.starts(setting)
    net.gives(setting, event(request("q", "ping")))
    assert said(net.call()) == result("q", {})


@pytest.mark.requirement("SHL-26")
def test_closing_ends_the_session() -> None:
    net = opened(D, stream=True)
    id, call = asks(net)
    net.conn.close()
    cancel, delete = net.asked()
    assert said(cancel)["params"]["requestId"] == id
    assert (delete.head.method, delete.head.target) == (b"DELETE", b"/mcp")
    assert (header(delete, "mcp-session-id"), header(delete, "mcp-protocol-version")) == (SESSION, D)
    assert net.dropped == [call.key, 3]
    assert len(net.http._operations) == 2
    net.answer(cancel)
    net.answer(delete, "x", status=405, type="text/plain")
    assert net.http.idle
    assert kinds(net.events()) == ["ConnectionClosed"]


def test_closing_without_a_session() -> None:
    net = opened(D, session=None)
    net.conn.close()
    assert net.asked() == []
    assert net.http.idle


def test_closing_while_messages_are_held() -> None:
    net = Net(D)
    net.open()
    net.answer(net.call(), result(1, initialized_by(D)))
    told = net.call()
    net.conn.send_request("tools/list")
    net.asked()
    net.conn.close()
    assert net.asked() == []
    net.answer(told)
    assert net.asked() == []


# -- Losing the session ---------------------------------------------------------------------------------------------------


def renewed(net: Net, version: str = D, session: str | None = "two") -> list[Any]:
    """The handshake of the new session; gives the calls that come after it but for the GET."""
    again = net.call()
    assert said(again)["method"] == "initialize"
    assert header(again, "mcp-session-id") is header(again, "mcp-protocol-version") is None
    headers: dict[str, Any] = {} if session is None else {"mcp_session_id": session}
    net.answer(again, result(said(again)["id"], initialized_by(version)), **headers)
    told = net.call()
    assert said(told)["method"] == "notifications/initialized"
    assert header(told, "mcp-session-id") == session
    net.answer(told)
    get = net.call()
    assert get.head.method == b"GET"
    net.answer(get, status=405)
    return net.asked()


@pytest.mark.requirement("SHL-25")
def test_a_lost_session_is_begun_anew() -> None:
    net = opened(D, stream=True)
    lost, streaming = asks(net)
    net.starts(streaming)
    asked, call = asks(net, "tools/list")
    waiting, third = asks(net)
    net.answer(call, '{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}', 404)
    failed = net.event()
    assert isinstance(failed, ErrorReceived)
    assert (failed.id, type(failed.error)) == (lost, ConnectionLost)
    assert "lost the session" in str(failed.error)
    assert net.dropped == [3, streaming.key]
    later = net.conn.send_request("tools/list")
    again = renewed(net)
    assert [said(each)["id"] for each in again] == [asked, later]
    assert {header(each, "mcp-session-id") for each in again} == {"two"}
    assert isinstance(net.event(), PeerReady)
    # What was on the way in the old session is refused for itself, and then sent again.
    net.answer(third, "", 404)
    repeated = net.call()
    assert (said(repeated)["id"], header(repeated, "mcp-session-id")) == (waiting, "two")
    for each in (*again, repeated):
        net.answer(each, result(said(each)["id"], LIST if said(each)["method"] == "tools/list" else CONTENT))
    assert [seen.id for seen in net.events()] == [asked, later, waiting]
    assert net.http.idle


def test_what_the_server_asked_in_a_lost_session_is_over() -> None:
    net = opened(D)
    _, call = asks(net)
    net.starts(call)
    net.gives(call, event(request("q", "roots/list")))
    assert isinstance(net.event(), RequestReceived)
    _, other = asks(net, "tools/list")
    net.answer(other, "", 404)
    assert kinds(net.events()) == ["ErrorReceived", "RequestCancelled"]
    assert not net.conn.send_result("q", t.ListRootsResult(roots=[]))
    assert [said(each)["method"] for each in renewed(net)] == ["tools/list"]


def test_an_answer_of_ours_is_not_for_the_new_session() -> None:
    net = opened(D)
    _, call = asks(net)
    net.starts(call)
    net.gives(call, event(request("q", "roots/list")))
    assert isinstance(net.event(), RequestReceived)
    net.conn.send_result("q", t.ListRootsResult(roots=[]))
    answer = net.call()
    net.answer(answer, "", 404)
    assert kinds(net.events()) == ["ErrorReceived"]
    assert renewed(net) == []


def test_a_notification_is_sent_again() -> None:
    net = opened(D)
    net.conn.send_notification("notifications/roots/list_changed")
    net.answer(net.call(), "", 404)
    assert [said(each)["method"] for each in renewed(net)] == ["notifications/roots/list_changed"]


def test_who_gave_up_meanwhile_is_not_heard_again() -> None:
    net = opened(D)
    id, call = asks(net)
    other, second = asks(net)
    net.answer(call, "", 404)
    initialize = net.call()
    net.conn.send_cancel(id)
    net.conn.send_cancel(other)
    assert net.asked() == []  # the session in which it was asked is no more
    assert net.dropped == [second.key]
    net.answer(initialize, result(said(initialize)["id"], initialized_by(D)))
    net.answer(net.call())
    assert [each.head.method for each in net.asked()] == [b"GET"]


def test_the_stream_of_the_session_tells_of_its_loss() -> None:
    net = opened(D, stream=True)
    net.ends(HttpCall(3, RequestHead(b"GET", b"/mcp", [])), "reset")
    net.at(1.0)
    get = net.call()
    assert get.head.method == b"GET"
    net.answer(get, "", 404)
    assert renewed(net) == []
    assert kinds(net.events()) == ["PeerReady"]


def test_a_server_that_loses_each_session_is_given_up() -> None:
    net = opened(D)
    _, call = asks(net)
    net.answer(call, "", 404)
    (again,) = renewed(net)
    net.answer(again, "", 404)
    assert kinds(net.events()) == ["PeerReady", "ConnectionClosed"]
    assert net.conn.state is State.CLOSED
    assert [each.head.method for each in net.asked()] == [b"DELETE"]


def test_a_server_may_lose_a_session_that_was_used() -> None:
    net = opened(D)
    for session in ("two", "three", "four"):
        id, call = asks(net)
        net.answer(call, "", 404)
        (again,) = renewed(net, session=session)
        net.answer(again, result(id, CONTENT))
        assert kinds(net.events()) == ["PeerReady", "ResultReceived"]


def test_what_the_old_session_still_answers_proves_nothing_of_the_new() -> None:
    net = opened(D)
    id, old = asks(net)
    _, call = asks(net, "tools/list")
    net.answer(call, "", 404)
    (again,) = renewed(net)
    net.answer(old, result(id, CONTENT))
    assert kinds(net.events()) == ["PeerReady", "ResultReceived"]
    net.answer(again, "", 404)
    assert kinds(net.events()) == ["ConnectionClosed"]


@pytest.mark.parametrize("problem", ["refused", "broken", "404"])
def test_when_no_new_session_comes_about(problem: str) -> None:
    net = opened(D)
    _id, call = asks(net)
    net.answer(call, "", 404)
    initialize = net.call()
    if problem == "broken":
        net.ends(initialize, "connection refused")
    else:
        net.answer(initialize, "no", 404 if problem == "404" else 503, "text/plain")
    closed = net.event()
    assert isinstance(closed, ConnectionClosed)
    assert (closed.lost, type(closed.error)) == (["T"], ConnectionLost)
    assert "no new session" in str(closed.error)
    assert net.asked() == []
    assert net.http.idle


def test_a_new_session_that_loses_initialized() -> None:
    net = opened(D)
    _, call = asks(net)
    net.answer(call, "", 404)
    initialize = net.call()
    net.answer(initialize, result(said(initialize)["id"], initialized_by(D)), mcp_session_id="two")
    net.answer(net.call(), "", 404)
    assert kinds(net.events()) == ["PeerReady", "ConnectionClosed"]


def test_a_new_session_in_another_revision() -> None:
    net = Net(C, D)
    net.open()
    net.answer(net.call(), result(1, initialized_by(D)), mcp_session_id=SESSION)
    net.answer(net.call())
    net.answer(net.call(), status=405)
    net.events()
    _id, call = asks(net)
    net.answer(call, "", 404)
    assert renewed(net, C) == []
    ready, failed = net.events()
    assert isinstance(ready, PeerReady)
    assert isinstance(failed, ErrorReceived)
    assert "another revision" in str(failed.error)
    _, call = asks(net)
    assert header(call, "mcp-protocol-version") == C


def test_where_there_are_no_sessions_none_is_lost() -> None:
    net = Net()
    net.open()
    net.at(5.0)
    _, initialize = net.asked()
    # A session that came to nothing: the server turns out to be a stateless one.
    refused = {
        "jsonrpc": "2.0",
        "id": 2,
        "error": {"code": -32022, "message": "no", "data": {"supported": [E]}},
    }
    net.answer(initialize, refused, mcp_session_id=SESSION)
    again = net.call()
    net.answer(again, result(said(again)["id"], discovered()))
    net.events()
    _, call = asks(net)
    assert header(call, "mcp-session-id") is None
    net.answer(call, "", 404)
    assert "HTTP status 404" in str(net.event().error)
    assert net.asked() == []


def test_without_a_session_404_is_an_error_like_others() -> None:
    net = opened(D, session=None)
    _, call = asks(net)
    net.answer(call, "", 404, "text/html")
    assert "HTTP status 404" in str(net.event().error)
    assert net.asked() == []


def test_a_lost_session_after_the_end_is_nothing() -> None:
    net = opened(D)
    net.conn.send_notification("notifications/roots/list_changed")
    call = net.call()
    net.conn.close()
    net.asked()
    net.answer(call, "", 404)
    assert net.asked() == []
    assert kinds(net.events()) == ["ConnectionClosed"]


def test_repr() -> None:
    net = opened(D)
    asks(net)
    assert repr(net.http._transport) == "<Streamable, a session, 1 calls, 0 messages held>"
    assert repr(Net(E).http._transport) == "<Streamable, no session, 0 calls, 0 messages held>"
    assert repr(net.http).startswith("<HttpClient of http://server.example/mcp: <Connection client READY")
    assert repr(net.http).endswith(", 1 calls, 0 waiting>")
