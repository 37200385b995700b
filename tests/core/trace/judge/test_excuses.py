"""Correct peers that the judge has accused once. Each trace is of such a false accusation."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from mcp_core.http import Body, End, Head, RequestHead
from mcp_core.trace import (
    ConversationNumbers,
    HttpChannel,
    HttpHead,
    Judge,
    TraceHeader,
    TraceLine,
)
from tests.core.trace.judge.conversations import (
    C,
    S,
    Sent,
    Start,
    ask,
    error,
    judge,
    notify,
    raw_client,
    raw_server,
    result,
)
from tests.core.trace.judge.rules.messages import META_E

if TYPE_CHECKING:
    from mcp_core.trace import Finding

PING = ask(1, "ping")
NO_METHOD = {"jsonrpc": "2.0", "id": 1}
# The id of this request is 7 for parsers that know NaN.
NOT_JSON = '{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}'


@pytest.mark.parametrize(
    ("revision", "said"),
    [
        # An invalid message can repeat an id, and its error has that id.
        ("2025-11-25", [C(PING), S(result(1)), C(NO_METHOD), S(error(1, -32600))]),
        # What one parser cannot read, another one can.
        ("2025-11-25", [C(NOT_JSON), S(result(7))]),
        ("2025-11-25", [C(NOT_JSON), S(error(7, -32602))]),
        # A server of all revisions can answer a ping without `_meta` as of an older one.
        ("2026-07-28", [C(ask(2, "tools/list")), S(result(2, tools=[])), raw_client(PING),
               raw_server(result(1))]),
    ],
)  # fmt: skip
def test_server_that_has_a_reason_is_not_accused(revision: str, said: list[Sent]) -> None:
    found, _ = judge(Start(revision), said, revision)
    assert [each for each in found if each.side == "server"] == []


def test_client_that_rejects_an_invalid_request_for_roots_is_not_accused() -> None:
    odd = ask(1, "roots/list") | {"error": 1}
    found, judged = judge(Start("2025-11-25", {}, {}), [S(odd), C(error(1, -32600))])
    assert [each for each in found if each.side == "client"] == []
    assert judged.opportunities["RPC-7"] >= 1


@pytest.mark.parametrize(
    ("opening", "is_accused"),
    [
        (notify("notifications/cancelled", requestId=9), False),
        (ask(9, "tools/list"), False),
        (ask(9, "initialize", protocolVersion="2025-11-25", capabilities={}), False),
        (
            b'{"jsonrpc":"2.0","id":9,"method":"server/discover","params":{"_meta":{"\xff":1}}}',
            False,
        ),
        (b"junk", False),
        ({**ask(9, "server/discover", _meta=META_E), "jsonrpc": "1.0"}, False),
        (ask(9, "server/discover", _meta=META_E), True),
    ],
)
def test_server_of_both_eras_can_choose_by_how_the_client_opens(
    opening: dict[str, Any] | bytes, is_accused: bool
) -> None:
    """The TypeScript SDK 2 serves all of a stdio process as its first message wants it."""
    judged = Judge(TraceHeader(format_version=1, transport="stdio", observer="client"))
    judged.add_server_version("2026-07-28")
    found: list[Finding] = []
    first = opening if isinstance(opening, bytes) else json.dumps(opening).encode()
    for line in (
        TraceLine(t=0.0, sender="client", data=first)
        if b"\xff" in first
        else TraceLine(t=0.0, sender="client", raw=first.decode()),
        TraceLine(t=0.0, sender="client", raw=json.dumps(ask(1, "tools/list", _meta=META_E))),
        TraceLine(t=0.0, sender="server", raw=json.dumps(result(1, tools=[]))),
    ):
        found += judged.receive(line)
    accused = {each.row for each in found if each.side == "server" and each.is_certain}
    assert ("RPC-30" in accused) is is_accused
    assert is_accused or not accused


# -- HTTP ------------------------------------------------------------------------------------------

SESSION = ("mcp-session-id", "s")
HANDSHAKE = Start("2025-11-25").messages()


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


def found_over_http(*lines: TraceLine, side: str = "server", certain: bool = False) -> list[str]:
    """Return the rows that the judge finds a side to break, after a handshake.

    If `certain` is true, leave out those that are inconclusive.
    """
    judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True)
    found: list[Finding] = []
    begin, begun, initialized = (said.message for said in HANDSHAKE)
    handshake = [post(1, begin), answer(1, 200, begun), post(2, initialized), answer(2, 202)]
    for line in (*handshake, *lines):
        found += judged.receive(line)
    found += judged.close()
    return [each.row for each in found if each.side == side and (each.is_certain or not certain)]


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


# -- Messages that were cut off --------------------------------------------------------------------

PART = '{"jsonrpc":"2.0","id":1,"resu'


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(
    "body", [{"raw": PART}, {"raw": "[" + PART}, {"data": PART.encode() + b"\xc3"}]
)
def test_side_whose_stream_ends_within_a_message_is_not_accused(side: Any, body: Any) -> None:
    end = TraceLine(t=0.0, sender=side, end="closed", **body)
    found, _ = judge(Start("2025-11-25"), [Sent(side, end)])
    assert found == []


@pytest.mark.parametrize(
    ("raw", "row"), [("done", "STDIO-2"), ('{"jsonrpc":"2.0","id":9,"result":{}}', "RPC-7")]
)
def test_server_whose_last_line_is_whole_is_judged(raw: str, row: str) -> None:
    end = TraceLine(t=0.0, sender="server", end="closed", raw=raw)
    found, _ = judge(Start("2025-11-25"), [Sent("server", end)])
    assert [each.row for each in found] == [row]


@pytest.mark.parametrize("end", [("client", "closed"), ("server", "reset"), ("server", "complete")])
def test_peer_is_judged_by_a_complete_body_only(end: tuple[Any, str]) -> None:
    channel = HttpChannel(1, ConversationNumbers(single=True), 1_000)
    head = RequestHead(b"POST", b"/mcp", [])
    lines = channel.request(0.0, (head, json.dumps(PING).encode(), "1.1"))
    lines += channel.response(0.1, [Head(200, [(b"content-type", b"application/json")])])
    lines += channel.response(0.2, [Body(PART.encode())])
    lines += channel.ended(0.3, end)
    judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True)
    rows = [each.row for line in lines for each in judged.receive(line) if each.side == "server"]
    assert rows == (["RPC-1"] if end[1] == "complete" else [])


def test_client_that_is_answered_within_its_body_is_not_accused() -> None:
    channel = HttpChannel(1, ConversationNumbers(single=True), 1_000)
    lines = channel.request(0.0, (RequestHead(b"POST", b"/mcp", []), None, "1.1"))
    lines += channel.request_data(0.1, (PART.encode(), False))
    lines += channel.response(0.2, [Head(413, []), End()])
    judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True)
    assert [each for line in lines for each in judged.receive(line)] == []


# -- Races -----------------------------------------------------------------------------------------


def test_server_that_serves_a_call_by_the_list_before_it_is_not_accused() -> None:
    plain = {"name": "t", "inputSchema": {"type": "object"}}
    strict = {
        "name": "t",
        "inputSchema": {"type": "object", "properties": {"a": {}}, "required": ["a"]},
        "outputSchema": {"type": "object"},
    }
    call, done = C(ask(2, "tools/call", name="t")), S(result(2, content=[]))
    changed = S(notify("notifications/tools/list_changed"))
    first = [C(ask(1, "tools/list")), S(result(1, tools=[plain]))]
    second = [C(ask(3, "tools/list")), S(result(3, tools=[strict]))]
    start = Start("2025-11-25", server={"tools": {"listChanged": True}})
    assert judge(start, [*first, call, changed, *second, done])[0] == []
    found, _ = judge(start, [*first, changed, *second, call, done])
    assert {each.row for each in found} == {"TOOL-10", "TOOL-24"}


def test_server_whose_views_of_a_task_cross_is_not_accused() -> None:
    """A slower response may be older than the notification; one polled for later may not."""

    def view(status: str) -> dict[str, Any]:
        times = dict.fromkeys(("createdAt", "lastUpdatedAt"), "2025-11-25T10:30:00Z")
        return {"taskId": "786512e2-9e0d-44bd", "status": status, "ttl": 60_000, **times}

    def poll(id: int) -> Sent:
        return C(ask(id, "tasks/get", taskId="786512e2-9e0d-44bd"))

    declared: dict[str, Any] = {"tasks": {"requests": {"tools": {"call": {}}}}, "tools": {}}
    start = Start("2025-11-25", server=declared)
    begun = [
        C(ask(1, "tools/call", name="t", task={})),
        S(result(1, task=view("working"))),
    ]
    told = S(notify("notifications/tasks/status", **view("completed")))
    late = S(result(2, **view("working")))
    assert judge(start, [*begun, poll(2), told, late])[0] == []
    crossed = [poll(2), poll(3), S(result(3, **view("completed"))), late]
    assert judge(start, [*begun, *crossed])[0] == []
    found, _ = judge(start, [*begun, told, poll(2), late])
    assert [each.row for each in found] == ["TSK-11"]


@pytest.mark.parametrize(("seconds", "rows"), [(0.1, []), (2.0, ["SHL-25"])])
def test_client_has_time_to_learn_that_its_session_is_lost(seconds: float, rows: Any) -> None:
    """The time counts from a response that took three seconds."""
    lines = [post(3, ask(2, "tools/list")), answer(4, 404), post(5, ask(3, "tools/list"))]
    lines = [
        replace(lines[0], exchange=4),
        replace(lines[1], t=3.0),
        replace(lines[2], t=3 + seconds),
    ]
    found = found_over_http(*lines, side="client")
    assert [each for each in found if each == "SHL-25"] == rows


def test_client_that_answers_a_request_of_its_former_session_is_not_accused() -> None:
    head = HttpHead(method="POST", target="/mcp", headers=(("mcp-session-id", "former"),))
    old = TraceLine(t=0.0, exchange=9, sender="client", http=head, raw=json.dumps(result("s-1")))
    assert "SHL-22" not in found_over_http(old, side="client")
    asks = replace(old, raw=json.dumps(ask(9, "tools/list")))
    assert "SHL-22" in found_over_http(asks, side="client")


@pytest.mark.parametrize(
    "body", [None, {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Busy."}}]
)
def test_client_that_repeats_what_a_gateway_has_refused_is_not_accused(body: Any) -> None:
    sent = post(3, ask(2, "tools/list"))
    again = replace(sent, exchange=4)
    assert "RPC-4" not in found_over_http(sent, answer(3, 503, body), again, side="client")
    served = answer(3, 200, result(2, tools=[]))
    assert "RPC-4" in found_over_http(sent, served, again, side="client")


# -- Who sent it -----------------------------------------------------------------------------------


def test_client_of_a_server_without_sessions_is_not_accused_in_between() -> None:
    """Each of its requests is a conversation of its own."""
    head = HttpHead(method="POST", target="/mcp", headers=())
    for message in (result("s-1"), notify("notifications/progress", progressToken=1, progress=1)):
        for observer in ("between", "server"):
            header = TraceHeader(format_version=1, transport="http", observer=observer)
            line = TraceLine(
                t=0.0, conversation=8, exchange=8, sender="client", http=head,
                raw=json.dumps(message),
            )  # fmt: skip
            found = Judge(header, from_start=True).receive(line)
            assert not any(each.is_certain for each in found), (observer, found)


@pytest.mark.parametrize(
    ("origin", "host", "rows"),
    [
        ("https://mcp.invalid", "mcp.invalid:443", []),
        ("http://MCP.invalid:80", "mcp.invalid", []),
        ("http://mcp.invalid:8000", "mcp.invalid:8000", []),
        ("http://[::1]:80", "[::1]", []),
        ("http://mcp.invalid:8001", "mcp.invalid:8000", ["HTTP-1"]),
        ("http://app.invalid", "mcp.invalid:8000", ["HTTP-1"]),
        ("http://app.test", "mcp.test:8000", []),  # a server can be configured to allow it
    ],
)
def test_server_that_serves_its_own_origin_is_not_accused(
    origin: str, host: str, rows: list[str]
) -> None:
    head = HttpHead(
        method="POST", target="/mcp", headers=(SESSION, ("origin", origin), ("host", host))
    )
    asked = TraceLine(t=0.0, exchange=3, sender="client", http=head, raw=json.dumps(ask(2, "ping")))
    assert found_over_http(asked, answer(3, 200, result(2)), certain=True) == rows


@pytest.mark.parametrize(
    ("url", "rows"),
    [
        ("https://login.org?user=a@b.com", []),
        ("https://login.org/a@b", []),
        ("https://login.org#a@b", []),
        ("https://ada:secret@login.org/?q", ["ELIC-19"]),
        ("https://ada@login.org:80/?q", []),
    ],
)
def test_elicitation_of_a_url_with_an_at_sign_has_no_user_info(url: str, rows: list[str]) -> None:
    params = {"mode": "url", "message": "Log in.", "elicitationId": "x", "url": url}
    said = [S(ask(9, "elicitation/create", **params))]
    found, _ = judge(Start("2025-11-25", {"elicitation": {"url": {}}}), said)
    assert [each.row for each in found if each.side == "server" and each.is_certain] == rows


# -- After a login ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 403])
def test_server_is_judged_after_a_login_with_the_same_id(status: int) -> None:
    """The request that was sent without a token is over."""
    begin, begun, initialized = (said.message for said in HANDSHAKE)
    wrong = [post(4, ask(7, "tools/list")), answer(4, 200, result(7, tools=17))]
    judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True)
    lines = [post(1, begin), answer(1, status), post(2, begin), answer(2, 200, begun)]
    lines += [post(3, initialized), answer(3, 202), *wrong]
    found = [each for line in lines for each in judged.receive(line)]
    assert "TOOL-2" in [each.row for each in found if each.side == "server"]


# -- Servers of both eras --------------------------------------------------------------------------

DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28"],
    "capabilities": {},
    "ttlMs": 0,
    "cacheScope": "private",
}


@pytest.mark.parametrize(
    ("version", "is_certain"), [("2025-11-25", True), ("1999-12-31", False), (None, False)]
)
def test_server_that_rejects_an_odd_handshake_need_not_name_versions(
    version: str | None, is_certain: bool
) -> None:
    """It can list only the versions without a handshake, and serve others all the same."""
    asked = ask(2, "initialize", **({} if version is None else {"protocolVersion": version}))
    said = [C(ask(1, "server/discover")), S(result(1, **DISCOVERED))]
    found, _ = judge(None, [*said, raw_client(asked), raw_server(error(2, -32602))], "2026-07-28")
    assert [each.is_certain for each in found if each.row == "VER-15"] == [is_certain]


def test_server_that_opens_a_session_for_a_handshake_with_meta_is_not_accused() -> None:
    """`initialize` selects a handshake, and `_meta` selects none: a server can follow either."""
    asked = ask(1, "initialize", protocolVersion="2025-11-25", _meta=META_E)
    version = ("mcp-protocol-version", "1999-12-31")
    head = HttpHead(method="POST", target="/mcp", headers=(version, ("mcp-method", "initialize")))
    line = TraceLine(t=0.0, exchange=1, sender="client", http=head, raw=json.dumps(asked))
    judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True)
    judged.add_server_version("2026-07-28")
    found = [*judged.receive(line), *judged.receive(answer(1, 200, result(1)))]
    rows = [each.row for each in found if each.side == "server" and each.is_certain]
    assert not {"SHM-3", "SHM-14"} & set(rows)
