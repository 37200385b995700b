"""The judge: what it does with lines that are not what they should be, and with gaps."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core._nesting import MAX_NESTING
from mcp_core.trace import (
    DamagedLine,
    Finding,
    HttpHead,
    Judge,
    SseFields,
    TraceHeader,
    TraceLine,
    TruncatedMessage,
)
from mcp_core.trace.judge import _conversation_table
from mcp_core.trace.judge._methods import KNOWN_METHODS
from mcp_core.trace.judge._revisions import REVISIONS, STATEFUL
from tests.core.trace.judge.conversations import (
    C,
    S,
    Sent,
    Start,
    ask,
    error,
    judge,
    notify,
    raw_server,
    result,
)
from tests.core.trace.judge.rules.features import STRICT, called, content, listed
from tests.core.trace.judge.rules.http import IN, START, ended, got, sent
from tests.core.trace.judge.rules.messages import HANDSHAKE, META_E
from tests.core.trace.judge.rules.utilities import TOOL
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

KEYS = st.sampled_from(
    [
        *("jsonrpc", "id", "method", "params", "result", "error", "_meta", "name", "arguments"),
        *("progressToken", "requestId", "progress", "cursor", "nextCursor", "tools", "content"),
        *(
            "taskId",
            "status",
            "task",
            "inputRequests",
            "requestState",
            "resultType",
            "capabilities",
        ),
        *("inputResponses", "prompts", "resources", "roots", "resourceTemplates", "taskIds"),
        *("supportedVersions", "supported", "requiredCapabilities", "toolChoice", "mode", "url"),
        *("inputSchema", "properties", "x-mcp-header", "requestedSchema", "elicitation", "action"),
        *("protocolVersion", "messages", "code", "data", "notifications", "uri", "level"),
        "io.modelcontextprotocol/protocolVersion",
        "io.modelcontextprotocol/clientCapabilities",
        "io.modelcontextprotocol/subscriptionId",
    ]
)
WORDS = st.sampled_from(
    [
        *("2.0", "task", "input_required", "complete", "working", "completed", "k", "info", "x"),
        *REVISIONS,
        *KNOWN_METHODS,
    ]
)
LEAVES = st.none() | st.booleans() | st.integers(-2, 3) | st.just(1.5) | WORDS
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)
MEMBERS = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": LEAVES,
        "method": WORDS,
        "params": VALUES,
        "result": VALUES,
        "error": VALUES,
    },
)
TEXTS = st.lists(st.tuples(st.sampled_from(["client", "server"]), MEMBERS | VALUES), max_size=12)


@fewer_examples(5)
@given(st.sampled_from([None, *STATEFUL]), TEXTS)
def test_judge_takes_any_json(revision: str | None, lines: list[Any]) -> None:
    start = None if revision is None else Start(revision)
    found, _ = judge(start, [Sent(sender, value, True) for sender, value in lines])
    assert all(isinstance(each, Finding) for each in found)


@given(st.lists(st.text(max_size=20) | st.binary(max_size=20), max_size=5))
def test_judge_takes_any_line(lines: list[str | bytes]) -> None:
    judge(None, [Sent("client", line, True) for line in lines])


@pytest.mark.parametrize(
    "text", ["[" * 10, '{"a":' * 10, '{"jsonrpc":"2.0","id":NaN,"method":"x"}', "1" * 10]
)
def test_judge_line_that_is_not_json_is_a_finding(text: str) -> None:
    found, _ = judge(None, [S(text)])
    assert {each.row for each in found} <= {"STDIO-2", "RPC-1"}
    assert found


@pytest.mark.parametrize(
    "value",
    [
        *("[" * levels + "1" + "]" * levels for levels in (MAX_NESTING - 1, 900, 100_000)),
        *('{"a":' * levels + "1" + "}" * levels for levels in (MAX_NESTING - 1, 900, 100_000)),
        "1" * 10_000,
    ],
)
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_judge_message_that_its_own_parser_cannot_hold_is_a_gap(value: str, transport: str) -> None:
    text = f'{{"jsonrpc":"2.0","id":1,"result":{{"a":{value}}}}}'
    judged = Judge(TraceHeader(format_version=1, transport=transport), from_start=True)
    assert judged.receive(TraceLine(t=0.0, sender="server", raw=text)) == []
    later = TraceLine(t=0.0, sender="server", raw=json.dumps(result(7)))
    assert [each for each in judged.receive(later) if each.is_certain] == []


@pytest.mark.parametrize(
    ("gap", "reason"),
    [
        (DamagedLine(reason="x", beginning=""), "damaged"),
        (TraceLine(t=0.0, kind="lost", count=3), "lost"),
        (
            TraceLine(t=0.0, sender="client", raw="{", truncated=TruncatedMessage(size=9)),
            "truncated",
        ),
    ],
    ids=["damaged", "lost", "truncated"],
)
def test_judge_after_a_gap_is_inconclusive(gap: Any, reason: str) -> None:
    judged = Judge(from_start=True)
    for said in Start("2025-11-25").messages():
        judged.receive(TraceLine(t=0.0, sender=said.sender, raw=json.dumps(said.message)))
    assert judged.receive(gap) == []
    line = TraceLine(t=0.0, sender="server", raw=json.dumps(result(7)))
    (finding,) = judged.receive(line)
    assert finding.row == "RPC-7"
    assert not finding.is_certain
    assert reason in finding.sentence
    assert judged.receive(line) == []  # once is enough


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ('{"jsonrpc":"2.0","id":7,"method":"ping"}', 0),
        ('{"jsonrpc":"2.0","method":"notifications/acme"}', 0),
        ('{"jsonrpc":"2.0","id":7,"method":"ping","params":82}', 1),
        ('{"jsonrpc":"2.0","id":7,"result":{}}', 1),  # to no request
        ("[]", 1),
        ("{", 1),
        ("1", 1),
        ("", 0),
    ],
)
def test_judge_counts_the_messages_of_each_side_that_it_could_not_read(
    text: str, unread: int
) -> None:
    judged = Judge(from_start=True)
    for number in (1, 1, 2):
        judged.receive(TraceLine(t=0.0, conversation=number, sender="client", raw=text))
    assert (judged.unread("client"), judged.unread("server")) == (3 * unread, 0)


def test_judge_attached_in_the_middle_is_inconclusive() -> None:
    judged = Judge()
    line = TraceLine(t=0.0, sender="client", raw=json.dumps(ask(5, "tools/list")))
    (finding,) = judged.receive(line)
    assert (finding.row, finding.is_certain) == ("LIFE-1", False)


def test_judge_from_the_start_of_a_process_is_certain() -> None:
    judged = Judge()
    judged.receive(TraceLine(t=0.0, kind="spawn", text="server"))
    line = TraceLine(t=0.0, sender="client", raw=json.dumps(ask(5, "tools/list")))
    (finding,) = judged.receive(line)
    assert finding.is_certain


def test_judge_redacted_message_is_inconclusive() -> None:
    judged = Judge(from_start=True)
    for said in Start("2025-11-25").messages():
        judged.receive(TraceLine(t=0.0, sender=said.sender, raw=json.dumps(said.message)))
    text = json.dumps(ask(1, "tools/call", name="t", arguments="‹hidden 12›"))
    line = TraceLine(t=0.0, sender="client", raw=text, redacted=("/params/arguments",))
    assert [each.is_certain for each in judged.receive(line)] == [False]


def test_judge_shape_that_fails_above_a_redacted_value_is_inconclusive() -> None:
    """None of the possible shapes fits, because a member inside that tells them apart is hidden."""
    judged = Judge()
    text = {"type": "‹redacted 4›", "text": "‹redacted 31›"}
    answer = {"role": "assistant", "content": text, "model": "m"}
    for pointer, is_certain in (("/params/inputResponses/k/content", False), ("/params/x", True)):
        call = ask(1, "tools/call", name="t", inputResponses={"k": answer}, _meta=META_E)
        line = TraceLine(t=0.0, sender="client", raw=json.dumps(call), redacted=(pointer,))
        found = [each for each in judged.receive(line) if each.row == "TOOL-14"]
        assert [each.is_certain for each in found] == [is_certain]


def test_judge_conversations_are_apart() -> None:
    judged = Judge(from_start=True)
    for number in (1, 2):
        for said in Start("2025-11-25").messages():
            text = json.dumps(said.message)
            line = TraceLine(t=0.0, conversation=number, sender=said.sender, raw=text)
            assert judged.receive(line) == []
    assert judged.close() == []


def test_judge_forgets_conversations_over_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_conversation_table, "MAX_CONVERSATIONS", 1)
    judged = Judge(from_start=True)
    for number in (1, 2, 1):
        text = json.dumps(ask(number, "ping"))
        judged.receive(TraceLine(t=0.0, conversation=number, sender="client", raw=text))
    text = json.dumps(result(7))
    (finding,) = judged.receive(TraceLine(t=0.0, conversation=1, sender="server", raw=text))
    assert not finding.is_certain


def test_finding_names_lines_page_and_level() -> None:
    found, _ = judge(Start("2025-11-25"), [C(ask(1, "ping")), S(result(1)), S(result(1))])
    (finding,) = found
    assert finding.lines == (7, 5, 6)
    assert finding.level == "MUST"
    assert finding.link == "https://modelcontextprotocol.io/specification/2025-11-25/basic"
    assert finding.sentence == "the request with the id 1 was answered before"


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    ("said", "rows"),
    [
        (listed(TOOL, {"name": "bad"}), {"TOOL-2", "TOOL-6"}),
        (listed(TOOL | {"annotations": {"destructiveHint": "no"}}), {"TOOL-2"}),
        (content({"type": "widget"}), {"CONT-2"}),
        (content({"type": "image"}), {"CONT-2"}),
        (called(), {"TOOL-13"}),
        (called(content="hi"), {"TOOL-13"}),
        (called(content=[], isError="false"), {"TOOL-13"}),
        ([*listed(STRICT), *called(content=[], structuredContent={"a": "x"})], {"TOOL-10"}),
    ],
)
def test_result_that_a_client_reads_generously_is_judged_exactly(
    version: str, said: list[Sent], rows: set[str]
) -> None:
    found, _ = judge(Start(version), said)
    assert rows <= {each.row for each in found}


def test_responses_to_one_id_twice_in_use_are_not_judged_as_one() -> None:
    said = [
        C(ask(1, "ping")),
        C(ask(1, "tools/list")),
        S(error(1, -32600)),
        S(result(1)),
    ]
    found, _ = judge(Start("2025-11-25"), said)
    assert [each.row for each in found] == ["RPC-4"]


def test_error_for_message_that_a_receiver_cannot_read_has_no_id() -> None:
    """A legal id can be too long for a receiver, which then cannot repeat it."""
    found, _ = judge(Start("2025-11-25"), [C(ask("x" * 300, "ping")), S(error(None, -32600))])
    assert found == []


def test_error_for_text_that_only_one_parser_reads_has_no_id() -> None:
    """Half a surrogate pair is JSON to some parsers."""
    odd = '{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\ud800"}}'
    said = [C(odd), S(error(None, -32700)), C("1"), S(error(None, -32600))]
    found, _ = judge(Start("2025-11-25"), said)
    assert [each.row for each in found] == ["RPC-1"]


def test_result_of_a_server_that_rejected_the_probe_needs_no_members_of_its_revision() -> None:
    probe = [C(ask(1, "server/discover")), S(error(1, -32601))]
    served = [C(ask(2, "tools/list")), raw_server(result(2, tools=[]))]
    found, _ = judge(Start("2026-07-28"), [*probe, *served])
    assert [each.row for each in found if each.is_certain] == []
    found, _ = judge(Start("2026-07-28"), served)
    assert found == []


@pytest.mark.parametrize("from_header", [True, False])
def test_result_of_a_server_that_is_known_to_speak_its_revision_is_judged(
    from_header: bool,
) -> None:
    version = "2026-07-28"
    if from_header:
        judged = Judge(TraceHeader(format_version=1, server_versions=(version, "x")))
    else:
        judged = Judge()
        judged.add_server_version(version)
    asked = json.dumps(ask(1, "x", _meta=META_E))
    judged.receive(TraceLine(t=0.0, sender="client", raw=asked))
    found = judged.receive(TraceLine(t=0.0, sender="server", raw=json.dumps(result(1))))
    assert [each.row for each in found if each.is_certain] == ["RPC-30"]


def test_request_of_a_server_whose_era_is_unknown_is_not_a_fault() -> None:
    said = [C(ask(1, "server/discover")), S(ask(1, "ping")), C(error(1, -32600))]
    found, _ = judge(None, said, "2026-07-28")
    assert found == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_judge_of_a_clean_conversation_finds_nothing(revision: str) -> None:
    said = [
        C(ask(1, "tools/list")),
        S(result(1, tools=[])),
        C(ask(2, "x")),
        S(error(2, -32601)),
        C(notify("notifications/unknown")),
    ]
    found, judged = judge(Start(revision), said, revision)
    assert found == []
    assert judged.opportunities["RPC-7"] >= 2


def http_line(number: int, sender: Any, head: HttpHead, raw: str | None) -> TraceLine:
    return TraceLine(t=0.0, exchange=number, sender=sender, http=head, raw=raw)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", "<html>"),
        ("text/plain", "Not Found"),
        ("application/json", '{"issuer": "https://x"}'),
        ("application/json", "[1"),
    ],
)
def test_judge_http_body_that_is_no_message_is_not_a_fault(kind: str, body: str) -> None:
    """A body can be of a server in between, or of a page that is no endpoint."""
    judged = Judge(TraceHeader(format_version=1, transport="http"))
    head = HttpHead(method="GET", target="/.well-known/x")
    response = HttpHead(status=404, headers=(("content-type", kind),))
    assert judged.receive(http_line(1, "client", head, None)) == []
    assert judged.receive(http_line(1, "server", response, body)) == []
    assert judged.close() == []


@pytest.mark.parametrize(
    "message",
    [{**result(3), "method": [1]}, ask(None, "x"), {**ask(3, "x"), "result": {}}],
    ids=["response with a method", "null as the id", "both kinds"],
)
def test_judge_message_of_doubtful_kind_may_be_accepted_over_http(message: Any) -> None:
    found, _ = judge(None, [*START, sent(3, message, IN), got(3, 202), ended(3)])
    assert [each for each in found if each.side == "server"] == []


def test_judge_response_repeated_by_a_resumed_stream_is_inconclusive() -> None:
    """The second copy has the same event id: it may be a replay and not a second response."""
    judged = Judge(from_start=True)
    post = HttpHead(method="POST", headers=(("accept", "application/json, text/event-stream"),))
    stream = HttpHead(status=200, headers=(("content-type", "text/event-stream"),))
    judged.receive(http_line(1, "client", post, json.dumps(ask(1, "ping"))))
    found = judged.receive(http_line(1, "server", stream, None))
    for exchange in (1, 2):
        line = TraceLine(
            t=0.0,
            exchange=exchange,
            sender="server",
            sse=SseFields(id="1"),
            raw=json.dumps(result(1)),
        )
        found += judged.receive(line)
    assert [(each.row, each.is_certain) for each in found] == [("RPC-7", False)]


@pytest.mark.parametrize("session", ["s", "", "other"])
def test_judge_request_open_during_another_initialize_keeps_its_id(session: str) -> None:
    """A ping waits for its response while a second `initialize` arrives and is refused."""

    def post(number: int, message: Any, *, session: str = "s") -> TraceLine:
        headers = (("mcp-session-id", session),) if session else ()
        head = HttpHead(method="POST", target="/mcp", headers=headers)
        return http_line(number, "client", head, json.dumps(message))

    def response(number: int, message: Any, status: int = 200) -> TraceLine:
        headers = (("content-type", "application/json"), ("mcp-session-id", "s"))
        head = HttpHead(status=status, headers=headers)
        return http_line(number, "server", head, json.dumps(message))

    begin = ask(
        1, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "x"}
    )
    served = result(
        1,
        protocolVersion="2025-11-25",
        capabilities={},
        serverInfo={"name": "x", "version": "1"},
    )
    judged = Judge(TraceHeader(format_version=1, transport="http"), from_start=True)
    found = [
        each
        for line in (
            post(1, begin, session=""),
            response(1, served),
            post(2, ask("2", "ping")),
            post(3, {**begin, "id": 3}, session=session),
            response(2, result("2")),
            response(3, error(3, -32600), 400),
        )
        for each in judged.receive(line)
        if each.side == "server"
    ]
    assert found == []
    assert judged.opportunities["RPC-7"] == 3


def test_judge_event_of_another_type_is_no_message() -> None:
    judged = Judge()
    line = TraceLine(
        t=0.0, exchange=1, sender="server", sse=SseFields(event="endpoint"), raw="/messages?s=1"
    )
    assert judged.receive(line) == []


def test_client_that_only_answers_after_initialize_did_not_go_on() -> None:
    asked = [S(ask(1, "roots/list")), C(error(1, -32601))]
    found, judged = judge(None, [*HANDSHAKE[:2], *asked])
    assert [each.row for each in found if each.side == "client"] == []
    assert judged.opportunities["LIFE-7"] == 0


def test_error_for_message_of_two_kinds_may_have_any_code() -> None:
    """A message with a method as well as an error is an invalid request first of all."""
    both = ask(2, "prompts/list", cursor="c") | {"error": 1}
    start = Start("2025-11-25", {}, {"prompts": {}})
    listed = [C(ask(1, "prompts/list")), S(result(1, prompts=[]))]
    found, judged = judge(start, [*listed, C(both), S(error(2, -32600))], "2025-11-25")
    assert {finding.side for finding in found} == {"client"}
    assert judged.opportunities["PAGE-6"] == 0


def test_versions_of_a_server_are_known_in_all_conversations() -> None:
    """It answers the old revision in the first, so it must accept that one in the second."""
    info = {"name": "x", "version": "1"}
    judged = Judge(TraceHeader(format_version=1), from_start=True)
    found: list[Finding] = []
    new, old = "2025-11-25", "2025-03-26"
    for number, (wanted, selected) in enumerate(((new, old), (old, new)), 1):
        messages = [
            ("client", ask(1, "initialize", capabilities={}, clientInfo=info)),
            ("server", result(1, capabilities={}, serverInfo=info)),
        ]
        for (sender, message), revision in zip(messages, (wanted, selected), strict=True):
            part = message["params" if sender == "client" else "result"]
            part["protocolVersion"] = revision
            line = TraceLine(t=0.0, conversation=number, sender=sender, raw=json.dumps(message))  # type: ignore[arg-type]
            found += judged.receive(line)
    assert [(each.row, each.conversation) for each in found] == [("LIFE-4", 2)]


@pytest.mark.parametrize("depth", [500, *range(950, 1000)])
def test_judge_takes_schema_of_any_depth(depth: int) -> None:
    schema = '{"items":' * depth + "{}" + "}" * depth
    tools = f'{{"tools":[{{"name":"x","inputSchema":{schema}}}]}}'
    said = [C(ask(1, "tools/list")), S(f'{{"jsonrpc":"2.0","id":1,"result":{tools}}}')]
    found, _ = judge(Start("2025-11-25"), said)
    assert "JSCH-3" not in {each.row for each in found}


# -- Memory ----------------------------------------------------------------------------------------


def traced_growth(lines: Callable[[int], Iterable[TraceLine]], first: int, last: int) -> int:
    """Return by how many bytes a judge grows between the rounds `first` and `last`."""
    judged = Judge(from_start=True)
    sizes: list[int] = []
    tracemalloc.start()
    try:
        for number in range(last):
            for line in lines(number):
                judged.receive(line)
            sizes.append(tracemalloc.get_traced_memory()[0])
        return sizes[-1] - sizes[first]
    finally:
        tracemalloc.stop()


def said(sender: Any, message: Any) -> TraceLine:
    return TraceLine(t=0.0, sender=sender, raw=json.dumps(message))


@pytest.mark.perf
def test_judge_of_requests_with_one_id_does_not_grow() -> None:
    request = ask(1, "tools/call", name="t", arguments={"text": "x" * 400})
    assert traced_growth(lambda number: [said("client", request)], 300, 1_500) < 200_000


@pytest.mark.perf
def test_judge_of_large_rounds_does_not_grow() -> None:
    def large_round(number: int) -> Iterator[TraceLine]:
        asked = {"method": "roots/list", "params": {"text": "x" * 100_000}}
        answered = result(
            number,
            resultType="input_required",
            inputRequests={"a": asked},
            requestState=f"state-{number}",
        )
        yield said("client", ask(number, "tools/call", name="t", _meta=META_E))
        yield said("server", answered)

    assert traced_growth(large_round, 20, 120) < 1_000_000


def posted(number: int, message: Any, answered: Any, conversation: int = 1) -> Iterator[TraceLine]:
    """Yield the two lines of an HTTP exchange."""
    number += 1
    place: dict[str, Any] = {"t": 0.0, "conversation": conversation, "exchange": number}
    head = HttpHead(method="POST", target="/mcp")
    yield TraceLine(**place, sender="client", http=head, raw=json.dumps(message))
    head = HttpHead(status=200, headers=(("content-type", "application/json"),))
    yield TraceLine(**place, sender="server", http=head, raw=json.dumps(answered), end="complete")


@pytest.mark.perf
def test_judge_of_large_exchanges_does_not_grow() -> None:
    def large_exchange(number: int) -> Iterator[TraceLine]:
        call = ask(
            number, "tools/call", name="t", arguments={"a": ["x" * 50] * 1_000}, _meta=META_E
        )
        text = [{"type": "text", "text": "x" * 50_000}]
        yield from posted(number, call, result(number, resultType="complete", content=text))

    assert traced_growth(large_exchange, 20, 120) < 1_000_000


@pytest.mark.perf
def test_judge_of_large_requests_without_a_response_does_not_grow() -> None:
    def large_request(number: int) -> Iterator[TraceLine]:
        call = ask(number, "tools/call", name="t", arguments={"a": "x" * 100_000}, _meta=META_E)
        yield next(posted(number, call, {}))

    assert traced_growth(large_request, 100, 200) < 1_000_000


@pytest.mark.perf
def test_judge_of_conversations_with_large_lists_does_not_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_conversation_table, "MAX_KEPT_BYTES", 1_000_000)

    def large_list(number: int) -> Iterator[TraceLine]:
        tools = [{"name": f"t{each}", "inputSchema": {"type": "object"}} for each in range(1_000)]
        listed = result(number, resultType="complete", tools=tools, ttlMs=0, cacheScope="public")
        asked = ask(number, "tools/list", _meta=META_E)
        yield from posted(number, asked, listed, conversation=number + 1)

    assert traced_growth(large_list, 15, 45) < 1_000_000


@pytest.mark.perf
@pytest.mark.parametrize(
    "params",
    [
        {"name": "n" * 50_000},
        {"_meta": {**META_E, "progressToken": "t" * 50_000}},
        {"_meta": {**META_E, "x": {"y": "z" * 50_000}}},
        {"requestState": "s" * 50_000},
        {"cursor": "c" * 50_000},
    ],
)
def test_judge_of_requests_with_large_members_does_not_grow(params: dict[str, Any]) -> None:
    def large_request(number: int) -> Iterator[TraceLine]:
        unique = {key: f"{number}{value}" for key, value in params.items() if key != "_meta"}
        meta = params.get("_meta")
        token = {**meta, "progressToken": f"{number}" + "t" * 50_000} if meta else META_E
        yield said("client", ask(f"{number}" + "i" * 50_000, "tools/call", **unique, _meta=token))
        page = {"nextCursor": f"{number}" + "c" * 50_000, "tools": []}
        yield said("client", ask(-number, "tools/list", _meta=META_E))
        yield said("server", result(-number, resultType="complete", **page))

    assert traced_growth(large_request, 20, 120) < 1_500_000
