"""Conversations that tell a rule's conditions apart, beside the three that each row has."""

from __future__ import annotations

from typing import Any, Final, Literal

import pytest
from msgspec.structs import replace

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
    result,
)
from tests.core.trace.judge.rules import errors, headers, lists, rounds, streams, tasks
from tests.core.trace.judge.rules.features import BY_URL, OUTPUT
from tests.core.trace.judge.rules.http import (
    CALL,
    CALL_E,
    CALLED,
    CALLED_E,
    DELETED,
    GET,
    IN,
    INITIALIZE,
    MIRRORED,
    OPENED,
    SERVED_BEFORE,
    SSE,
    START,
    STREAMED,
    ended,
    got,
    sent,
)
from tests.core.trace.judge.rules.http import event as streamed
from tests.core.trace.judge.rules.messages import (
    META_E,
    SAMPLE,
    SAMPLED,
    SERVED,
    TEXT,
    discovered,
)
from tests.core.trace.judge.rules.utilities import AS_TASK_D, TASK_D, TASK_ID, TOOL, call, cancel

Verdict = Literal["fails", "perhaps", "passes", "not judged"]

D, E = "2025-11-25", "2026-07-28"
BEGIN: Final = Start(D).messages()
UNUSABLE: Final = {"type": "object", "$ref": "https://a.example/schema"}


def task_request(method: str, name: str | None) -> list[Sent]:
    request = ask(1, method, taskId="t", _meta=META_E)
    return [sent(1, request, {**MIRRORED, "mcp-method": method, "mcp-name": name})]


def argument(
    schema: dict[str, Any], value: Any, header: str | None, *, name: str = "Region"
) -> list[Sent]:
    """Return a call with one argument, and the header that repeats it."""
    tool = headers.tool({"region": {**schema, "x-mcp-header": name}})
    found = {} if header is None else {f"mcp-param-{name.lower()}": header}
    return [*headers.listed(tool), headers.called(headers={**found}, region=value)]


INTEGER: Final = {"type": "integer"}
OTHER_VERSION: Final = sent(1, CALL_E, {**MIRRORED, "mcp-protocol-version": D})
BOOLEAN: Final = {"type": "boolean"}
STRING: Final = {"type": "string"}

# -- Headers ---------------------------------------------------------------------------------------

HEADERS: Final[list[tuple[str, str, list[Sent], Verdict]]] = [
    ("TX-21", E, task_request("tasks/get", None), "fails"),
    ("TX-21", E, task_request("tasks/update", None), "fails"),
    ("TX-21", E, task_request("tasks/cancel", None), "fails"),
    ("TX-21", E, task_request("tasks/cancel", "t"), "passes"),
    ("HDR-8", E, argument(BOOLEAN, True, "true"), "passes"),
    ("HDR-8", E, argument(BOOLEAN, False, "false"), "passes"),
    ("HDR-8", E, argument(BOOLEAN, True, "True"), "fails"),
    ("HDR-8", E, argument(BOOLEAN, True, "1"), "fails"),
    ("HDR-8", E, argument(BOOLEAN, False, "true"), "fails"),
    ("HDR-8", E, argument(INTEGER, 5, "5"), "passes"),
    ("HDR-8", E, argument(INTEGER, 5, "5.0"), "passes"),
    ("HDR-8", E, argument(INTEGER, 5, "6"), "fails"),
    ("HDR-8", E, argument(INTEGER, 5, "five"), "fails"),
    ("HDR-8", E, argument(INTEGER, 5, "=?base64?*?="), "fails"),
    ("HDR-8", E, argument(STRING, "5", "5.0"), "fails"),
    ("HDR-7", E, argument(INTEGER, 5, None), "fails"),
    ("HDR-7", E, argument(BOOLEAN, False, None), "fails"),
    ("HDR-7", E, argument(STRING, 1.5, None), "not judged"),
    ("HDR-7", E, argument(STRING, [], None), "not judged"),
    ("HDR-7", E, argument(STRING, "x", None, name="a b"), "not judged"),
    (
        "HDR-10",
        E,
        [*headers.TOOLS, headers.called(region="west"), got(2, 307, headers={"location": "/x"})],
        "not judged",
    ),
    (
        "HDR-10",
        E,
        [*headers.TOOLS, headers.called(region="west"), got(2, 400, error(2, -32602))],
        "not judged",
    ),
    ("SHL-29", D, [*START, sent(3, CALL, {**IN, "mcp-protocol-version": "1999-01-01"}),
                   got(3, 307, headers={"location": "/x"})], "not judged"),
    ("SHM-4", E, [headers.BAD_E, got(1, 400, error(1, -32020))], "perhaps"),
    ("SHM-4", E, [headers.BAD_E, got(1, 400)], "not judged"),
    ("SHM-4", E, [headers.BAD_E, got(1, 404, error(1, -32022, data=headers.VERSIONS))],
     "not judged"),
    ("SHM-3", E, [OTHER_VERSION, got(1, 307, headers={"location": "/x"})], "not judged"),
    ("SHM-3", E, [OTHER_VERSION, got(1, 400, error(1, -32020))], "passes"),
    ("SHM-3", E, [OTHER_VERSION, got(1, 200, CALLED_E)], "fails"),
    ("SHL-11", D, [*GET, got(4, 405)], "passes"),
    ("SHL-11", D, [*GET, got(4, 404)], "not judged"),
    ("SHL-11", D, [*GET, got(4, 300)], "not judged"),
    ("SHL-11", D, [*GET, got(4, 200, kind=SSE)], "passes"),
    ("SHL-11", D, [*GET, got(4, 200, kind="text/html")], "fails"),
    ("SHL-24", D, [*DELETED, got(5, 404)], "passes"),
    ("SHL-24", D, [*DELETED, got(5, 400)], "not judged"),
    ("SHL-24", D, [*DELETED, got(5, 300)], "not judged"),
    ("SHL-24", D, [*DELETED, got(5, 200, CALLED)], "fails"),
]  # fmt: skip

# -- Streams ---------------------------------------------------------------------------------------

TWO_CALLS: Final = [CALL, ask(3, "tools/call", name="t")]
DENIED_WITH: Final = [*SERVED_BEFORE, *streams.DENIED]
QUERY: Final = {**MIRRORED, "authorization": "Bearer x"}


def endpoint(url: str, path: str) -> list[Sent]:
    """Return the stream of HTTP+SSE with an endpoint, and a message to a path."""
    head = sent(2, streams.OLD_INITIALIZE, {})
    line = head.message
    return [
        *streams.STREAM,
        streamed(1, url, kind="endpoint"),
        Sent("client", replace(line, http=replace(line.http, target=path))),
    ]


STREAMS: Final[list[tuple[str, str, list[Sent], Verdict]]] = [
    ("SSE-3", "2024-11-05", endpoint("http://a.test/messages?s=1", "/messages?s=1"), "passes"),
    ("SSE-3", "2024-11-05", endpoint("http://a.test/messages", "/other"), "fails"),
    ("SSE-3", "2024-11-05", endpoint("./messages", "/messages"), "passes"),
    ("SSE-3", "2024-11-05", endpoint("/messages", "/behind/messages"), "passes"),
    ("SSE-4", "2024-11-05", [*endpoint("/m", "/m"), got(2, 400, error(1))], "not judged"),
    ("SSE-4", "2024-11-05", [*endpoint("/m", "/m"), got(2, 199, error(1))], "not judged"),
    ("SSE-4", "2024-11-05", [*endpoint("/m", "/m"), got(2, 299)], "passes"),
    ("SSE-4", "2024-11-05", [*endpoint("/m", "/m"), got(2, 300, error(1))], "not judged"),
    (
        "AR-13",
        E,
        [*DENIED_WITH, sent(2, streams.CALL_2, QUERY), got(2, 200, {**CALLED_E, "id": 2})],
        "not judged",
    ),
    (
        "AR-13",
        E,
        [*streams.DENIED, sent(2, streams.CALL_2, MIRRORED),
         got(2, 307, headers={"location": "/x"})],
        "not judged",
    ),
]  # fmt: skip

# -- Messages --------------------------------------------------------------------------------------

TWO_TOOLS: Final = lists.tools(1, "a", "b")
CHANGED: Final = S(notify("notifications/tools/list_changed"))


def listed_call(schema: dict[str, Any], **members: Any) -> list[Sent]:
    tool = {**TOOL, "outputSchema": schema}
    return [
        *BEGIN,
        C(ask(1, "tools/list")),
        S(result(1, tools=[tool])),
        C(call(2)),
        S(result(2, content=TEXT, **members)),
    ]


def elicited(*entries: Any) -> list[Sent]:
    data = {"elicitations": list(entries)}
    return [*BEGIN, C(call(1)), S(error(1, -32042, data=data))]


MESSAGES: Final[list[tuple[str, str, list[Sent], Verdict]]] = [
    # An error of another kind says nothing about batches.
    ("RPC-20", "2025-03-26", [*Start("2025-03-26").messages(), C([ask(1, "ping")]),
                              S(error(None, -32603))], "not judged"),
    ("COMP-4", D, [*BEGIN, *errors.PROMPTS, errors.complete(1, "q"), errors.code(-32601)],
     "not judged"),
    ("TOOL-3", E, [*discovered(tools={}), C(ask(1, "tools/list")), S(error(1, -32603))],
     "not judged"),
    ("TOOL-3", E, [*discovered(tools={}), C(ask(1, "tools/list")), S(error(1, -32601))],
     "fails"),
    # Without a handshake the capabilities aren't known.
    ("TOOL-26", D, [C(call(1)), errors.EMBEDDED], "not judged"),
    ("SAMP-6", D, [S(ask(1, "sampling/createMessage", **SAMPLE["params"],
                         includeContext="allServers"))], "not judged"),
    ("TSK-2", D, [rounds.SAMPLE_TASK], "not judged"),
    ("TSK-3", D, [C(rounds.AS_TASK)], "not judged"),
    ("CXL-4", D, [C(cancel(1))], "not judged"),
    # A schema that can't be used
    ("TOOL-10", D, listed_call(UNUSABLE, structuredContent={}), "not judged"),
    ("TOOL-10", D, listed_call(OUTPUT, structuredContent={"a": 1}), "passes"),
    ("TOOL-10", D, listed_call(OUTPUT, structuredContent={}), "fails"),
    ("TOOL-10", D, listed_call(OUTPUT), "fails"),
    ("TOOL-10", D, listed_call(OUTPUT, isError=True), "not judged"),
    ("TOOL-5", E, [*TWO_TOOLS, CHANGED, *lists.tools(2, "b", "a")], "not judged"),
    ("TOOL-5", E, [*TWO_TOOLS, *lists.tools(2, "b", "a")], "fails"),
    ("TOOL-5", E, [*TWO_TOOLS, *lists.tools(2, "a", "b")], "passes"),
    ("ELIC-16", D, elicited(BY_URL["params"]), "passes"),
    ("ELIC-16", D, elicited(BY_URL["params"], {"mode": "form", "elicitationId": "e"}), "fails"),
    ("ELIC-16", D, elicited({"mode": "url", "elicitationId": 1}), "fails"),
    ("ELIC-16", D, elicited(1), "fails"),
    ("TSK-21", D, [*BEGIN, *AS_TASK_D, C(ask(3, "tasks/cancel", taskId=TASK_ID)), S(error(3))],
     "not judged"),
    ("PROG-4", D, [*BEGIN, C(call(1, 5)), S(notify("notifications/progress", progressToken=5,
                                                  progress=2)),
                   S(notify("notifications/progress", progressToken=5, progress=True))],
     "not judged"),
    ("PROG-4", D, [*BEGIN, C(call(1, 5)), S(notify("notifications/progress", progressToken=5,
                                                  progress=2)),
                   S(notify("notifications/progress", progressToken=5, progress=2))], "fails"),
    ("PING-5", E, [raw_client(ask(1, "ping")), S(result(1))], "not judged"),
    # Rounds and subscriptions
    ("MRTR-5", E, rounds.asked_once({"method": "elicitation/create",
                                     "params": {"mode": "url", "url": "https://x"}},
                                    {"elicitation": {"form": {}}}), "fails"),
    ("MRTR-5", E, rounds.asked_once({"method": "elicitation/create",
                                     "params": {"mode": "url", "url": "https://x"}},
                                    {"elicitation": {"url": {}}}), "passes"),
    ("MRTR-7", E, [*rounds.ROUND, C(ask(2, "prompts/get", name="t", requestState="s",
                                        **rounds.GIVEN))], "fails"),
    ("MRTR-7", E, [*rounds.ROUND, rounds.retry(2, **rounds.GIVEN)], "passes"),
    ("MRTR-7", E, [*rounds.ROUND, rounds.retry(2, name="u", **rounds.GIVEN)], "fails"),
    ("SUB-2", E, [rounds.listen(resourceSubscriptions=["a:b"]),
                  S(notify("notifications/resources/updated", uri="a:b/c",
                           _meta=rounds.SUBSCRIPTION))], "passes"),
    ("SUB-2", E, [rounds.listen(resourceSubscriptions=[]),
                  S(notify("notifications/resources/updated", uri="a:b",
                           _meta=rounds.SUBSCRIPTION))], "fails"),
    ("SUB-2", E, [rounds.listen(toolsListChanged=True),
                  S(notify("notifications/prompts/list_changed", _meta=rounds.SUBSCRIPTION))],
     "fails"),
    ("TSK-15", D, [*BEGIN, *AS_TASK_D, tasks.FETCH, C(ask(2, "tasks/get", taskId=TASK_ID)),
                   tasks.FETCHED[1], S(result(2, **TASK_D))], "not judged"),
]  # fmt: skip


# -- Errors, cursors and input ---------------------------------------------------------------------

REFUSED: Final = {"action": "cancel"}


def needing(needed: dict[str, Any], declared: dict[str, Any]) -> list[Sent]:
    """Return a call that fails because of what its client has not declared, or has."""
    meta = {META + "clientCapabilities": declared}
    data = {"requiredCapabilities": needed}
    return [C(ask(1, "tools/call", name="t", _meta=meta)), S(error(1, -32021, data=data))]


def coded(code: int, **data: Any) -> list[Sent]:
    return [*SERVED, C(ask(1, "x")), S(error(1, code, data=data))]


def paged(cursor: str, code: int) -> list[Sent]:
    page = result("p", tools=[], nextCursor="a")
    first = [*BEGIN, C(ask("p", "tools/list")), S(page)]
    return [*first, C(ask(1, "tools/list", cursor=cursor)), S(error(1, code))]


def acknowledged(asked: dict[str, Any], given: dict[str, Any]) -> list[Sent]:
    return [rounds.listen(**asked), rounds.acknowledge(**given)]


def responded(status: int, message: Any = None) -> list[Sent]:
    """Return a client's response to a request on a stream, and what it gets for it."""
    asked = [*STREAMED, streamed(3, ask(9, "roots/list"))]
    return [*asked, sent(6, result(9, roots=[]), IN), got(6, status, message)]


MORE: Final[list[tuple[str, str, list[Sent], Verdict]]] = [
    ("ELIC-23", E, [*errors.FORM_ROUND, errors.retry(a=REFUSED), errors.code(-32603, 2)],
     "perhaps"),
    ("ELIC-23", E, [*errors.FORM_ROUND, errors.retry(a=REFUSED), errors.code(-32602, 2)],
     "passes"),
    ("ELIC-23", E, [*errors.FORM_ROUND, errors.retry(a={"action": "accept", "content": {}}),
                    errors.code(-32603, 2)], "not judged"),
    ("ERR-7", E, needing({"sampling": {}}, {"sampling": {}}), "fails"),
    ("ERR-7", E, needing({"sampling": {}}, {}), "passes"),
    ("ERR-7", E, needing({"sampling": {"tools": {}}}, {"sampling": {}}), "passes"),
    ("ERR-7", E, needing({"sampling": {"tools": {}}}, {"sampling": True}), "passes"),
    ("ERR-7", E, needing({"sampling": {"tools": {}}}, {"sampling": {"tools": {}}}), "fails"),
    ("ERR-7", E, needing({"sampling": {}, "roots": {}}, {"sampling": {}}), "passes"),
    ("ERR-7", E, needing({}, {"sampling": {}}), "passes"),
    ("ERR-7", E, coded(-32020), "fails"),
    ("ERR-7", E, coded(-32019), "not judged"),
    ("ERR-7", E, coded(-32023), "fails"),
    ("ERR-7", E, coded(-32099), "fails"),
    ("ERR-7", E, coded(-32100), "not judged"),
    ("ERR-7", E, coded(-32042), "not judged"),
    ("ERR-7", E, coded(-32022, requiredCapabilities={"sampling": {}}), "passes"),
    ("PAGE-6", D, paged("a", -32603), "not judged"),
    ("PAGE-6", D, paged("b", -32602), "passes"),
    ("PAGE-6", D, paged("b", -32600), "fails"),
    ("PAGE-6", D, paged("b", -32603), "perhaps"),
    ("PAGE-6", D, [*BEGIN, C(ask(1, "tools/list", cursor="b")), S(error(1, -32603))],
     "not judged"),
    ("HTTP-9", D, responded(202), "passes"),
    ("HTTP-9", D, responded(200), "fails"),
    ("HTTP-9", D, responded(202, {"a": 1}), "fails"),
    ("HTTP-9", D, responded(300), "passes"),
    ("SUB-3", E, acknowledged({"toolsListChanged": True}, {"toolsListChanged": True}), "passes"),
    ("SUB-3", E, acknowledged({"toolsListChanged": True}, {}), "passes"),
    ("SUB-3", E, acknowledged({}, {"toolsListChanged": True}), "fails"),
    ("SUB-3", E, acknowledged({}, {"toolsListChanged": False}), "passes"),
    ("SUB-3", E, acknowledged({"resourceSubscriptions": ["a:b", "a:c"]},
                              {"resourceSubscriptions": ["a:c"]}), "passes"),
    ("SUB-3", E, acknowledged({"resourceSubscriptions": ["a:b"]},
                              {"resourceSubscriptions": ["a:b", "a:d"]}), "fails"),
    ("SUB-3", E, acknowledged({"toolsListChanged": True},
                              {"resourceSubscriptions": ["a:b"]}), "fails"),
    ("LIFE-14", D, [*BEGIN, C(ask(1, "tools/list"))], "passes"),
]  # fmt: skip

# -- Batches, sessions, forms and lists ------------------------------------------------------------

B: Final = "2025-03-26"
BEGIN_B: Final = Start(B).messages()
A_FORM: Final = {**rounds.FORM_INPUT["params"], "mode": "form"}
NO_FORM: Final = {"method": "sampling/createMessage", "params": A_FORM}
BY_LINK: Final = {"method": "elicitation/create", "params": BY_URL["params"]}
RIGHT: Final = {"action": "accept", "content": {"a": "x"}}
WRONG: Final = {"action": "accept", "content": {"a": 5}}
OTHER_SESSION: Final[dict[str, str | None]] = {**IN, "mcp-session-id": "other"}
NO_SESSION: Final[dict[str, str | None]] = {"mcp-protocol-version": D}


def filled_in(*forms: tuple[dict[str, Any], dict[str, Any]]) -> list[Sent]:
    """Return a round with several requests for input, and the responses to them."""
    asked = {str(each): form for each, (form, _) in enumerate(forms)}
    given = {str(each): found for each, (_, found) in enumerate(forms)}
    return [
        C(call(1)),
        rounds.required(inputRequests=asked, requestState="s"),
        rounds.retry(2, inputResponses=given),
    ]


def prompt_got(**params: Any) -> list[Sent]:
    return [*BEGIN, *errors.PROMPTS, C(ask(1, "prompts/get", **params)), S(result(1, messages=[]))]


def silently_changed(seconds: float, **capability: Any) -> list[Sent]:
    """Return a list of tools that has changed, and a message that is sent some seconds later."""
    begin = Start(D, server={"tools": capability}).messages()
    return [*begin, *lists.tools(1, "a"), *lists.tools(2, "b"), at(seconds, C(notify("x")))]


def tokens(status: int, second: int | None = None) -> list[Sent]:
    """Return requests with a token, and then one without."""
    with_token = {**MIRRORED, **streams.TOKENS}
    found = [sent(1, CALL_E, with_token), got(1, status)]
    if second is not None:
        found += [sent(2, {**CALL_E, "id": 2}, with_token), got(2, second)]
    return [*found, sent(3, {**CALL_E, "id": 3}, MIRRORED)]


def unanswered(status: int) -> list[Sent]:
    """Return a request whose HTTP response is complete and has no message."""
    return [*SERVED_BEFORE, sent(1, CALL_E, MIRRORED), got(1, status), ended(1)]


def progress_elsewhere(**params: Any) -> list[Sent]:
    """Return progress of a call on the stream of another one."""
    asked = ask(2, "tools/call", name="t", **params)
    running = [*START, sent(3, asked, IN), got(3, 200, kind=SSE)]
    return [*running, *streams.SECOND, streamed(4, streams.PROGRESS)]


LAST: Final[list[tuple[str, str, list[Sent], Verdict]]] = [
    ("RES-11", D, [*BEGIN, *lists.resources(1, "HTTPS://a b")], "not judged"),
    ("RPC-8", D, [*BEGIN, C("junk"), S(error(None, -32600))], "passes"),
    ("RPC-8", D, [*BEGIN, C("junk"), C(ask(1, "x")), *[S(error(None, -32600))] * 2], "fails"),
    ("RPC-20", B, [*BEGIN_B, S([ask(1, "ping")]), C(error(None, -32600))], "fails"),
    ("RPC-20", B, [*BEGIN_B, S([ask(1, "ping")]), S(error(None, -32600))], "not judged"),
    ("RPC-20", B, [*BEGIN_B, C([ask(1, "ping")]), C(error(None, -32600))], "not judged"),
    ("RPC-20", B, [*BEGIN_B, C([ask(1, "ping")]), C(ask(2, "x")), S(error(2, -32600))],
     "not judged"),
    ("ELIC-10", E, filled_in((rounds.FORM_INPUT, RIGHT)), "passes"),
    ("ELIC-10", E, filled_in((rounds.FORM_INPUT, RIGHT), (rounds.FORM_INPUT, WRONG)), "fails"),
    ("ELIC-10", E, filled_in((rounds.FORM_INPUT, WRONG), (rounds.FORM_INPUT, RIGHT)), "fails"),
    ("ELIC-10", E, filled_in((rounds.FORM_INPUT, RIGHT), (rounds.FORM_INPUT, REFUSED)), "passes"),
    ("ELIC-10", E, filled_in((NO_FORM, WRONG)), "not judged"),
    ("ELIC-10", E, filled_in((NO_FORM, WRONG), (rounds.FORM_INPUT, WRONG)), "fails"),
    ("ELIC-10", E, filled_in((BY_LINK, WRONG)), "not judged"),
    ("ELIC-10", E, filled_in((BY_LINK, WRONG), (rounds.FORM_INPUT, WRONG)), "fails"),
    ("SHL-22", D, [*START, sent(3, CALL, IN)], "passes"),
    ("SHL-22", D, [*START, sent(3, CALL, OTHER_SESSION)], "fails"),
    ("SHL-22", D, [*OPENED, sent(3, CALL, NO_SESSION)], "fails"),
    ("SHL-22", D, [*OPENED, sent(3, INITIALIZE, {})], "not judged"),
    ("SHL-22", D, [*OPENED, sent(3, None, NO_SESSION, "GET")], "not judged"),
    ("SHL-22", D, [*OPENED, sent(3, result(9, roots=[]), NO_SESSION)], "not judged"),
    ("RPC-35", E, unanswered(200), "fails"),
    ("RPC-35", E, unanswered(299), "fails"),
    ("RPC-35", E, unanswered(300), "passes"),
    ("RPC-35", E, unanswered(199), "passes"),
    ("SHL-4", D, progress_elsewhere(_meta=streams.TOKEN), "fails"),
    ("SHL-4", D, progress_elsewhere(_meta=streams.TOKEN, task={}), "not judged"),
    ("AT-1", E, tokens(200), "fails"),
    ("AT-1", E, tokens(299), "fails"),
    ("AT-1", E, tokens(300), "passes"),
    ("AT-1", E, tokens(199), "passes"),
    ("AT-1", E, tokens(200, 401), "passes"),
    ("AT-1", E, tokens(200, 403), "passes"),
    ("AT-1", E, tokens(200, 404), "fails"),
    ("PRM-4", D, prompt_got(name="p", arguments={"a": "1"}), "not judged"),
    ("PRM-4", D, prompt_got(name="p", arguments=5), "fails"),
    ("PRM-4", D, prompt_got(name="p", arguments=["a"]), "fails"),
    ("PRM-4", D, prompt_got(name="p", arguments={"b": "1"}), "fails"),
    ("PRM-4", D, prompt_got(name=["p"]), "not judged"),
    ("PRM-4", D, prompt_got(name="q"), "not judged"),
    ("TOOL-23", D, silently_changed(1.0, listChanged=True), "fails"),
    ("TOOL-23", D, silently_changed(0.9, listChanged=True), "perhaps"),
    ("TOOL-23", D, silently_changed(1.0, listChanged=False), "not judged"),
    ("TOOL-23", D, silently_changed(1.0), "not judged"),
    ("TOOL-23", D, [*lists.tools(1, "a"), *lists.tools(2, "b")], "not judged"),
    ("TOOL-23", D, [*BEGIN, *lists.tools(1, "a"), CHANGED], "passes"),
    ("PRM-5", D, [*BEGIN, *lists.tools(1, "a"), CHANGED], "not judged"),
    ("MRTR-6", E, [C(call(1)), rounds.required(requestState="s"), rounds.retry(2)], "not judged"),
    ("PING-1", D, [*BEGIN, C(ask(9, "ping")), S(result(9, resultType="complete"))], "passes"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "revision", "said", "verdict"), [*HEADERS, *STREAMS, *MESSAGES, *MORE, *LAST]
)
def test_rule_judges_by_its_conditions(
    row: str, revision: str, said: list[Sent], verdict: Verdict
) -> None:
    found, judged = judge(None, said, revision)
    mine = [each for each in found if each.row == row]
    if mine:
        assert verdict == ("fails" if any(each.is_certain for each in mine) else "perhaps"), mine
    else:
        assert verdict == ("passes" if judged.opportunities[row] else "not judged")


@pytest.mark.parametrize(
    ("params", "sides"),
    [
        ({}, set()),
        ({"tools": []}, {"server", "client"}),
        ({"toolChoice": {}}, {"server", "client"}),
    ],
)
def test_sampling_with_undeclared_tools_fails_its_request_and_its_result(
    params: dict[str, Any], sides: set[str]
) -> None:
    asked = S(ask(1, "sampling/createMessage", **SAMPLE["params"], **params))
    begin = Start(D, {"sampling": {}}).messages()
    found, _ = judge(None, [*begin, asked, C(SAMPLED)], D)
    assert {each.side for each in found if each.row == "SAMP-5"} == sides
