"""More correct peers that the judge has accused once, in legal but unusual conversations."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from msgspec.structs import replace

from mcp_core.trace import HttpHead, Judge, TraceHeader, TraceLine
from mcp_core.trace.judge.conversation import _requests
from tests.core.trace.judge.conversations import (
    META,
    C,
    S,
    Sent,
    Start,
    ask,
    at,
    error,
    judge,
    notify,
    raw_client,
    raw_server,
    result,
)
from tests.core.trace.judge.rules import headers
from tests.core.trace.judge.rules.http import IN, MIRRORED, OPENED, SSE, START, event, got, sent
from tests.core.trace.judge.rules.messages import META_E, SERVED, SERVER_META
from tests.core.trace.judge.rules.utilities import AS_TASK_E, TASK_D, TASK_E, TASK_ID, progress

LARGE: Final = {"a": "x" * 5_000}


def certain(
    said: list[Sent], revision: str = "2025-11-25", start: Start | None = None
) -> list[str]:
    """Return the rows of the certain findings."""
    found, _ = judge(start, said, revision)
    return [each.row for each in found if each.is_certain]


# -- A server that is upgraded while its client goes on --------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "ttl", "rows"),
    [(50, 0, ["HDR-10"]), (70, 0, []), (100, 120_000, ["HDR-10"]), (130, 120_000, [])],
)
def test_list_of_a_server_without_sessions_holds_for_some_time(
    seconds: float, ttl: int, rows: list[str]
) -> None:
    """Another instance, which handles the call, can have another definition of the tool."""
    asked, answer = headers.TOOLS
    found = json.loads(answer.message.raw)
    found["result"]["ttlMs"] = ttl
    listed = [asked, got(1, 200, found)]
    call = [at(seconds, headers.called(region="west")), at(seconds, headers.OK)]
    assert [row for row in certain([*listed, *call], "2026-07-28") if row == "HDR-10"] == rows


@pytest.mark.parametrize(
    ("seconds", "exchange", "rows"), [(50, 1, ["TOOL-1"]), (70, 1, []), (70, 0, ["TOOL-1"])]
)
def test_capabilities_of_a_server_without_sessions_hold_for_some_time(
    seconds: float, exchange: int, rows: list[str]
) -> None:
    """A process, which has no number of an exchange, stays the same."""
    members = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": SERVER_META}
    discover = ask(8, "server/discover", _meta=META_E)
    discovered = result(8, supportedVersions=["2026-07-28"], capabilities={}, **members)
    call = ask(9, "tools/call", name="t", arguments={}, _meta=META_E)
    called = result(9, content=[], **members)
    said: list[Sent] = []
    for t, request, response in ((0.0, discover, discovered), (seconds, call, called)):
        if exchange:
            number = request["id"]
            posted = {**MIRRORED, "mcp-method": request["method"]}
            said += [at(t, sent(number, request, posted)), at(t, got(number, 200, response))]
        else:
            said += [at(t, raw_client(request)), at(t, raw_server(response))]
    assert [row for row in certain(said, "2026-07-28") if row == "TOOL-1"] == rows


def test_server_that_rejects_a_request_before_its_handshake_is_not_accused() -> None:
    """The client has listed prompts in 2026-07-28, and left `_meta` out of the next request."""
    said = [
        C(ask(1, "prompts/list")),
        S(result(1, prompts=[])),
        raw_client(ask(2, "prompts/get", name="x")),
        raw_server(error(2, -32600)),
    ]
    assert certain(said, "2026-07-28") == []
    said[2] = C(ask(2, "prompts/get", name="x"))
    assert certain(said, "2026-07-28") == ["PRM-4"]


# -- What is too large to remember, or for the other side ------------------------------------------


def test_server_that_reports_what_a_large_filter_has_asked_for_is_not_accused() -> None:
    wanted = {"resourceSubscriptions": [f"file:///{number}" for number in range(1_000)]}
    subscription = {META + "subscriptionId": 1}
    said = [
        C(ask(1, "subscriptions/listen", notifications=wanted)),
        S(notify("notifications/subscriptions/acknowledged", notifications={}, _meta=subscription)),
        S(notify("notifications/resources/updated", uri="file:///1", _meta=subscription)),
    ]
    assert certain(said, "2026-07-28") == []
    said[0] = C(ask(1, "subscriptions/listen", notifications={}))
    assert certain(said, "2026-07-28") == ["SUB-2"]


@pytest.mark.parametrize("arguments", [{}, LARGE])
def test_client_that_repeats_a_request_after_a_login_is_not_accused(arguments: Any) -> None:
    call = ask(7, "tools/call", name="t", arguments=arguments)
    again = [sent(3, call, IN), got(3, 401), sent(4, call, IN)]
    assert "RPC-4" not in certain([*START, *again])
    other = {**call, "params": {**call["params"], "name": "u"}}
    assert "RPC-4" in certain([*START, *again[:2], sent(4, other, IN)])


@pytest.mark.parametrize("message", [ask(1, "ping", **LARGE), notify("x", **LARGE)])
def test_server_that_has_not_read_the_id_of_a_large_message_is_not_accused(message: Any) -> None:
    refused = S({"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Too large."}})
    assert certain([C(message), refused], start=Start("2025-11-25")) == []
    assert certain([C({**message, "params": {}}), refused], start=Start("2025-11-25"))


def test_server_is_not_accused_for_a_token_that_the_judge_forgot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_requests, "MAX_ENTRIES", 3)
    calls = [C(ask(id, "tools/list", _meta={"progressToken": id})) for id in range(1, 6)]
    assert certain([*calls, S(progress(1, 1))], start=Start("2025-11-25")) == []
    assert certain([*calls[:2], S(progress(1.5, 1)), S(progress(9, 1))], start=Start("2025-11-25"))


# -- What one parser reads and another one does not ------------------------------------------------

NOT_JSON: Final = (
    '{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"a":NaN,"_meta":{"progressToken":7}}}'
)


def test_side_that_can_read_more_than_the_judge_is_not_accused() -> None:
    said = [C(NOT_JSON), S(progress(7, 1)), C(notify("notifications/cancelled", requestId=7))]
    assert certain(said, start=Start("2025-11-25")) == ["STDIO-3"]
    assert certain(said[1:], start=Start("2025-11-25")) == ["PROG-3", "CXL-2"]


# -- Servers that ignore what they do not know -----------------------------------------------------


def test_server_of_an_older_revision_that_serves_a_request_of_the_newest_is_not_accused() -> None:
    call = ask(1, "tools/call", name="t", _meta={**META_E, "progressToken": 5})
    stream = [sent(1, call, MIRRORED), got(1, 200, None, kind=SSE)]
    asks = ask(1, "sampling/createMessage", maxTokens=1, messages=[])
    log = notify("notifications/message", level="info", data=1)
    changed = notify("notifications/tools/list_changed")
    for message in (asks, log, changed, progress(5, 1)):
        judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True)
        found = [each for said in stream for each in judged.receive(said.message)]
        found += judged.receive(event(1, message).message)
        assert [each for each in found if each.side == "server"] == []


@pytest.mark.parametrize(("status", "body"), [(200, None), (204, None), (202, "Accepted")])
def test_server_of_the_transport_http_sse_has_its_own_statuses(status: int, body: Any) -> None:
    begin, begun = (said.message for said in Start("2025-11-25").messages()[:2])
    opened = [sent(1, None, {"accept": SSE}, "GET"), got(1, 200, kind=SSE)]
    endpoint = event(1, "/messages?id=1", kind="endpoint")
    head = HttpHead(status=status, headers=(("content-type", "text/plain"),))
    accepted = TraceLine(t=0.0, exchange=3, sender="server", http=head, raw=body)
    said = [*opened, endpoint, sent(2, begin, {}), got(2, 202), event(1, begun)]
    said += [sent(3, notify("notifications/initialized"), {}), Sent("server", accepted)]
    paths = [replace(each.message, http=_to(each.message.http, "/messages")) for each in said]
    judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True)
    assert [each for line in paths for each in judged.receive(line) if each.is_certain] == []


def _to(head: HttpHead | None, target: str) -> HttpHead | None:
    return head if head is None or head.status else replace(head, target=target)


def test_client_that_goes_on_with_a_version_from_before_the_first_is_not_accused() -> None:
    begin, begun, initialized = Start("2025-11-25").messages()
    begun = S({**begun.message, "result": {**begun.message["result"]}})
    begun.message["result"]["protocolVersion"] = "2024-10-07"
    assert "LIFE-5" not in certain([begin, begun, initialized])
    begun.message["result"]["protocolVersion"] = "2024-01-01"
    assert "LIFE-5" in certain([begin, begun, initialized])


# -- States, tasks and lists -----------------------------------------------------------------------


def test_client_is_not_accused_for_a_state_that_two_requests_have() -> None:
    """A `requestState` is any text: a server can give the same one to all requests."""

    def round_of(id: int, name: str) -> list[Sent]:
        asked = {name: {"method": "roots/list"}}
        given = result(id, resultType="input_required", requestState="s", inputRequests=asked)
        return [C(ask(id, "tools/call", name=name)), S(given)]

    def retry(id: int, name: str) -> Sent:
        responses: dict[str, Any] = {name: {"roots": []}}
        return C(ask(id, "tools/call", name=name, requestState="s", inputResponses=responses))

    both = [*round_of(1, "a"), *round_of(2, "b")]
    assert certain([*both, retry(3, "a"), retry(4, "b")], "2026-07-28") == []
    assert certain([*round_of(1, "a"), retry(3, "b")], "2026-07-28") == ["MRTR-6", "MRTR-7"]


def test_client_is_judged_by_the_last_round_of_a_state_that_goes_on() -> None:
    def asked(id: int, key: str) -> Sent:
        requests = {key: {"method": "roots/list"}}
        return S(result(id, resultType="input_required", requestState="s", inputRequests=requests))

    def retry(id: int, key: str) -> Sent:
        responses: dict[str, Any] = {key: {"roots": []}}
        return C(ask(id, "tools/call", name="t", requestState="s", inputResponses=responses))

    begun = [C(ask(1, "tools/call", name="t")), asked(1, "a"), retry(2, "a"), asked(2, "b")]
    assert certain([*begun, retry(3, "b")], "2026-07-28") == []
    assert certain([*begun, retry(3, "a")], "2026-07-28") == ["MRTR-6"]


def test_list_that_changes_while_it_is_read_was_notified() -> None:
    """The response has the names from before the change, and comes after its notification."""
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in "ab"]
    changed = S(notify("notifications/tools/list_changed"))
    first, second = C(ask(1, "tools/list")), C(ask(2, "tools/list"))
    old, new = S(result(1, tools=tools[:1])), S(result(2, tools=tools))
    later = Sent("client", TraceLine(t=9.0, sender="client", raw=json.dumps(ask(3, "ping"))))
    start = Start("2025-11-25", server={"tools": {"listChanged": True}})
    assert certain([first, changed, old, second, new, later], start=start) == []
    assert certain([first, old, second, new, later], start=start) == ["TOOL-23"]


@pytest.mark.parametrize("wrong", [{"_meta": {**META_E, META + "clientCapabilities": 5}}])
def test_server_that_rejects_a_wrong_request_for_a_task_is_not_accused(wrong: Any) -> None:
    asked = raw_client(ask(2, "tasks/get", taskId=TASK_ID, **wrong))
    assert certain([*AS_TASK_E, asked, S(error(2))], "2026-07-28") == ["META-6"]
    right = C(ask(2, "tasks/get", taskId=TASK_ID))
    assert certain([*AS_TASK_E, right, S(error(2))], "2026-07-28") == ["TX-7"]


def test_server_that_hides_a_task_from_another_user_is_not_accused() -> None:
    """The task may belong to another user: only the same token's error breaks TX-7."""
    meta = {**META_E, META + "clientCapabilities": {"extensions": {META + "tasks": {}}}}
    call = ask(1, "tools/call", name="t", _meta=meta)
    get = ask(2, "tasks/get", taskId=TASK_ID, _meta=meta)
    created = result(1, resultType="task", **TASK_E)

    def accused(token: str) -> list[str]:
        polled = {**MIRRORED, "mcp-method": "tasks/get", "mcp-name": TASK_ID}
        said = [
            sent(1, call, {**MIRRORED, "authorization": "a"}),
            got(1, 200, created),
            sent(2, get, {**polled, "authorization": token}),
            got(2, 200, error(2)),
        ]
        return [row for row in certain(said, "2026-07-28") if row == "TX-7"]

    assert accused("b") == []
    assert accused("a") == ["TX-7"]


def test_server_that_rejects_a_wrong_request_for_a_result_is_not_accused() -> None:
    begun = [C(ask(1, "tools/call", name="t", task={})), S(result(1, task=TASK_D))]
    refused = [C(ask(2, "tasks/result", taskId=TASK_ID, _meta=5)), S(error(2))]
    polled = [C(ask(3, "tasks/get", taskId=TASK_ID)), S(result(3, **TASK_D))]
    assert "TSK-15" not in certain([*begun, *refused, *polled], start=Start("2025-11-25"))


def test_server_is_not_accused_for_arguments_that_the_recorder_replaced() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tools = [C(ask(1, "tools/list")), S(result(1, tools=[{"name": "t", "inputSchema": schema}]))]
    call = json.dumps(ask(2, "tools/call", name="t", arguments={"a": "x"}))
    line = TraceLine(t=0.0, sender="client", raw=call)
    hidden = replace(line, redacted=("/params/arguments/a",))
    assert certain([*tools, Sent("client", hidden), S(error(2))], start=Start("2025-11-25")) == []
    assert certain([*tools, Sent("client", line), S(error(2))], start=Start("2025-11-25")) == [
        "TOOL-16"
    ]


def test_both_sides_can_give_out_one_task_id() -> None:
    def view(status: str) -> dict[str, Any]:
        return {**TASK_D, "status": status}

    sample = ask(1, "sampling/createMessage", maxTokens=1, messages=[], task={})
    said = [
        *(C(ask(1, "tools/call", name="t", task={})), S(result(1, task=TASK_D))),
        *(S(sample), C(result(1, task=TASK_D))),
        *(S(ask(2, "tasks/get", taskId=TASK_ID)), C(result(2, **view("completed")))),
        *(C(ask(2, "tasks/cancel", taskId=TASK_ID)), S(result(2, **view("cancelled")))),
    ]
    assert certain(said, start=Start("2025-11-25")) == []
    again = [C(ask(3, "tasks/cancel", taskId=TASK_ID)), S(result(3, **view("cancelled")))]
    assert certain([*said, *again], start=Start("2025-11-25")) == ["TSK-21"]


# -- Several clients, and what is in between -------------------------------------------------------


def test_clients_with_two_sessions_in_one_conversation_are_not_accused() -> None:
    """A tool that records need not tell them apart."""
    begin, begun = OPENED
    other = got(2, 200, json.loads(begun.message.raw), {"mcp-session-id": "t"})
    second = [sent(2, json.loads(begin.message.raw), {}), other]
    for session in ("s", "t"):
        called = sent(3, ask(7, "tools/list"), {**IN, "mcp-session-id": session})
        assert "SHL-22" not in certain([*OPENED, *second, called])
    called = sent(3, ask(7, "tools/list"), {**IN, "mcp-session-id": "u"})
    assert "SHL-22" in certain([*OPENED, *second, called])


def test_server_that_rejects_the_version_of_the_header_is_not_accused() -> None:
    data = {"supported": ["2026-07-28"], "requested": "2030-01-01"}
    refused = error(1, -32022)
    refused["error"]["data"] = data
    call = ask(1, "tools/list", _meta=META_E)
    headers = {**MIRRORED, "mcp-method": "tools/list", "mcp-name": None}
    wrong = sent(1, call, {**headers, "mcp-protocol-version": "2030-01-01"})
    assert {"VER-1", "ERR-7"}.isdisjoint(certain([wrong, got(1, 400, refused)], "2026-07-28"))
    right = sent(1, call, headers)
    assert {"VER-1", "ERR-7"} <= set(certain([right, got(1, 400, refused)], "2026-07-28"))


@pytest.mark.parametrize("start", [None, Start("2025-11-25")])
def test_server_that_requires_a_handshake_for_a_revision_is_not_accused(
    start: Start | None,
) -> None:
    """It supports the revision, but not in the `_meta` of a request."""
    named = {**META_E, META + "protocolVersion": "2025-11-25"}
    data = {"supported": ["2026-07-28", "2025-11-25"], "requested": "2025-11-25"}
    said = [C(ask(7, "tools/list", _meta=named)), S(error(7, -32022, data=data))]
    assert certain(said, start=start) == []


def test_official_extension_of_the_prefix_is_not_accused() -> None:
    meta: dict[str, Any] = {"io.modelcontextprotocol.registry/official": {}}
    assert certain([C(ask(1, "ping", _meta=meta))], start=Start("2025-11-25")) == []
    taken: dict[str, Any] = {"com.mcp.registry/official": {}}
    assert certain([C(ask(1, "ping", _meta=taken))], start=Start("2025-11-25")) == ["META-3"]


def test_late_log_message_of_a_request_with_a_level_is_not_accused() -> None:
    meta = {META + "logLevel": "info"}
    log = S(notify("notifications/message", level="info", data=1))
    listed = [C(ask(1, "tools/list", _meta=meta)), S(result(1, tools=[]))]
    assert certain([*SERVED, *listed, log], "2026-07-28") == []
    assert certain([*SERVED, log], "2026-07-28") == ["LOG-7"]


# -- Messages that cross a cancellation ------------------------------------------------------------


def test_server_whose_late_progress_has_a_token_that_is_used_again_is_not_accused() -> None:
    """For its sender a cancelled request is over."""
    first, again = (C(ask(id, "tools/list", _meta={"progressToken": 1})) for id in (1, 2))
    cancel = C(notify("notifications/cancelled", requestId=1))
    late, early = S(progress(1, 3)), S(progress(1, 1))
    assert certain([first, cancel, again, late, early], start=Start("2025-11-25")) == []
    assert certain([first, late, early, cancel, again], start=Start("2025-11-25")) == ["PROG-4"]


def test_server_whose_late_change_has_the_id_of_another_subscription_is_not_accused() -> None:
    subscription = {META + "subscriptionId": 1}
    wanted = {"toolsListChanged": True}
    listen = C(ask(1, "subscriptions/listen", notifications=wanted))
    acknowledged = notify(
        "notifications/subscriptions/acknowledged", notifications=wanted, _meta=subscription
    )
    cancel = C(notify("notifications/cancelled", requestId=1))
    again = C(ask(1, "subscriptions/listen", notifications={}))
    change = S(notify("notifications/tools/list_changed", _meta=subscription))
    assert certain([listen, S(acknowledged), cancel, again, change], "2026-07-28") == []
    assert certain([again, change], "2026-07-28") == ["SUB-2", "SUB-3"]


@pytest.mark.parametrize(
    ("schema", "rows"),
    [
        ({"$ref": "#"}, []),
        ({"$ref": "#/$defs/x"}, []),
        ({"$schema": "https://example.org/mine"}, []),
        ({"pattern": "\\p{L}"}, []),
        ({"minLength": "x"}, ["JSCH-3"]),
    ],
)
def test_server_with_a_schema_that_we_cannot_use_is_not_accused(
    schema: dict[str, Any], rows: list[str]
) -> None:
    tool = {"name": "t", "inputSchema": {"type": "object", **schema}}
    said = [C(ask(1, "tools/list")), S(result(1, tools=[tool]))]
    assert certain(said, start=Start("2025-11-25")) == rows


def test_client_whose_token_was_rejected_may_ask_without_one() -> None:
    call = ask(1, "tools/call", name="t", _meta=META_E)
    served = got(1, 200, result(1, resultType="complete", content=[]))
    token = {**MIRRORED, "authorization": "a"}
    bare = sent(3, {**call, "id": 3}, MIRRORED)
    refused = [sent(2, {**call, "id": 2}, token), got(2, 401)]
    assert "AT-1" not in certain([sent(1, call, token), served, *refused, bare], "2026-07-28")
    assert "AT-1" in certain([sent(1, call, token), served, bare], "2026-07-28")
