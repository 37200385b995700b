"""Recorded conversations with all that is made of each, in `replays.txt` and `differences.txt`.

    python -m tests.core.trace.replay.replays

writes the files again. Of each conversation it has the turns; what is sent of it as load; what the
trace offers; how its server answers its messages and others; what its client sends to a server
that answers in several ways; and in what the conversation differs from itself with a change.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from mcp_core.trace import (
    CallCopy,
    HttpHead,
    RecordedTrace,
    ReplayClient,
    ReplayServer,
    SseFields,
    TraceHeader,
    TraceLine,
    TruncatedMessage,
    diff_traces,
    load_trace,
    recorded_load,
    recorded_offers,
)
from mcp_core.trace._format import DamagedLine
from mcp_core.trace.replay._turns import turns_of
from tests.core.trace.judge.conversations import META, C, S, Sent, ask, error, notify, result
from tests.core.trace.replay.traces import AT, HANDSHAKE, call, lines_of, text
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcp_core.trace.replay._recorded import RecordedMessage

__all__ = ["kept_replays", "replay_of", "replays"]

_FILE: Final = Path(__file__).with_name("replays.txt")
_DIFFERENCES: Final = Path(__file__).with_name("differences.txt")
_LIST_CHANGED: Final = "notifications/tools/list_changed"
_LISTEN: Final = "subscriptions/listen"
_ELICIT: Final = "elicitation/create"
_UUID: Final = "0f5e2c1a-3b7d-4c1e-9a55-0123456789ab"


def _modern(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return ask(id, method, **params, _meta={f"{META}protocolVersion": "2026-07-28"})


def _with_token(message: dict[str, Any], token: Any) -> dict[str, Any]:
    message["params"]["_meta"] = {"progressToken": token}
    return message


def _progress(token: Any, progress: float) -> dict[str, Any]:
    return notify("notifications/progress", progressToken=token, progress=progress)


def _of_subscription(id: Any, method: str, **params: Any) -> dict[str, Any]:
    return notify(method, **params, _meta={f"{META}subscriptionId": id})


def _line(sent: Sent, **members: Any) -> Sent:
    raw = sent.message if isinstance(sent.message, str) else json.dumps(sent.message)
    return Sent(sent.sender, TraceLine(t=0, sender=sent.sender, raw=raw, **members))


def _over_http(exchange: int, request: Any, *answers: Any, **members: Any) -> list[Sent]:
    """Return the lines of a POST and its answer, a stream if there are several."""
    post = HttpHead(method="POST", target="/mcp")
    lines = [_line(C(request), exchange=exchange, http=post, **members)]
    head = HttpHead(status=200, headers=(("mcp-session-id", "s"),))
    if len(answers) == 1:
        return [*lines, _line(S(answers[0]), exchange=exchange, http=head, end="complete")]
    lines.append(Sent("server", TraceLine(t=0, sender="server", exchange=exchange, http=head)))
    lines += [_line(S(each), exchange=exchange, sse=SseFields()) for each in answers]
    return lines


_ASKED: Final = ask(5, _ELICIT, message="how many?", requestedSchema={"type": "object"})
_TASK: Final = {"taskId": "task-0001", "status": "working", "pollIntervalMs": 1000}
_INPUT: Final = {"a": {"method": _ELICIT, "params": {"message": "m"}}}
_CONVERSATIONS: Final[dict[str, list[Sent]]] = {
    "handshake and calls": [
        *HANDSHAKE,
        C(ask(1, "tools/list")),
        S(result(1, tools=[{"name": "a"}, {"name": "b"}], nextCursor="page-2")),
        C(ask(2, "tools/list", cursor="page-2")),
        S(result(2, tools=[{"name": "c"}])),
        C(call(3, "a", x=1)),
        S(text(3, "A")),
        C(call(4, "b", x=[1, {"y": None}])),
        S(error(4, -32602, "no b")),
        C(call(5, "a", x=1)),
        S(text(5, "B")),
        C(ask(6, "resources/read", uri="file:///a")),
        S(result(6, contents=[{"uri": "file:///a", "text": "t"}])),
    ],
    "calls at once": [
        C(call(1, x="a")),
        C(call("1", x="b")),
        S(text("1", "B")),
        S(notify("notifications/message", level="info", data="x")),
        S(text(1, "A")),
        C(call(2, x="c")),
    ],
    "progress and cancellation": [
        *HANDSHAKE,
        C(_with_token(call(1, x="a"), "t")),
        C(_with_token(call(2, x="b"), 7)),
        S(_progress("t", 1)),
        S(_progress(7, 0.5)),
        S(_progress("other", 2)),
        C(notify("notifications/cancelled", requestId=2, reason="r")),
        S(_progress("t", 3)),
        S(text(1, "A")),
        S(_progress("t", 4)),
    ],
    "questions during a call": [
        *HANDSHAKE,
        C(call(1)),
        S(_ASKED),
        S(ask(6, "roots/list")),
        C(result(6, roots=[{"uri": "file:///a"}])),
        C(result(5, action="accept", content={"n": 1})),
        S(notify("notifications/message", level="info", data="x")),
        S(text(1, "A")),
        S(ask(5, "ping")),
        C(result(5)),
        S(ask("u", "sampling/createMessage")),
        C(error("u", -1, "user says no")),
        S(ask("v", "roots/list")),
        S(notify("notifications/cancelled", requestId="v")),
    ],
    "server that begins": [
        S(notify("notifications/message", level="info", data="up")),
        S(ask(1, "ping")),
        C(result(1)),
        *HANDSHAKE,
        C(notify("notifications/roots/list_changed")),
        S(ask(2, "roots/list")),
        C(result(2, roots=[])),
    ],
    "tasks": [
        *HANDSHAKE,
        C(ask(1, "tools/call", name="a", arguments={}, task={"ttl": 1000})),
        S(result(1, task=_TASK)),
        C(ask(2, "tasks/get", taskId="task-0001")),
        S(result(2, **_TASK)),
        S(notify("notifications/tasks/status", taskId="task-0001", status="working")),
        C(ask(3, "tasks/get", taskId="task-0001")),
        S(result(3, taskId="task-0001", status="completed")),
        C(ask(4, "tasks/result", taskId="task-0001")),
        S(text(4, "A")),
        C(ask(5, "tasks/cancel", taskId="task-0002")),
        S(error(5, -32602, "no task-0002")),
    ],
    "task in this revision": [
        C(_modern(1, "tools/call", name="a", arguments={"id": _UUID})),
        S(result(1, resultType="task", **_TASK)),
        C(_modern(2, "tasks/get", taskId="task-0001")),
        S(result(2, taskId="task-0001", status="input_required", inputRequests=_INPUT)),
        C(_modern(3, "tasks/update", taskId="task-0001", inputResponses={"a": {"action": "x"}})),
        S(result(3)),
        C(_modern(4, "tasks/get", taskId="task-0001")),
        S(result(4, taskId="task-0001", status="completed", result={"content": []})),
    ],
    "rounds": [
        C(_modern(1, "tools/call", name="a", arguments={"x": 1})),
        S(result(1, resultType="input_required", inputRequests=_INPUT, requestState="state-1")),
        C(
            _modern(
                2,
                "tools/call",
                name="a",
                arguments={"x": 1},
                requestState="state-1",
                inputResponses={"a": {"action": "accept", "content": {"n": 1}}},
            )
        ),
        S(text(2, "A")),
        C(_modern(3, "prompts/get", name="p")),
        S(result(3, resultType="input_required", inputRequests={}, requestState="state-2")),
        C(_modern(4, "prompts/get", name="p", requestState="state-2")),
        S(result(4, messages=[])),
    ],
    "subscription": [
        C(_modern("s", _LISTEN, notifications={"toolsListChanged": True})),
        S(_of_subscription("s", "notifications/subscriptions/acknowledged", notifications={})),
        C(_modern(1, "tools/call", name="a", arguments={})),
        S(_of_subscription("s", _LIST_CHANGED)),
        S(text(1, "A")),
        C(_modern(2, "tools/list")),
        S(result(2, tools=[])),
        S(_of_subscription("s", "notifications/resources/updated", uri="file:///a")),
        S(_of_subscription("other", _LIST_CHANGED)),
        C(notify("notifications/cancelled", requestId="s")),
        S({**result("s"), "result": {"_meta": {f"{META}subscriptionId": "s"}}}),
    ],
    "changes": [
        *HANDSHAKE,
        C(ask(1, "resources/subscribe", uri="file:///a")),
        S(result(1)),
        S(notify("notifications/resources/updated", uri="file:///a")),
        S(notify("notifications/resources/updated", uri="file:///a")),
        S(notify("notifications/resources/updated", uri="file:///b")),
        S(notify(_LIST_CHANGED)),
        C(ask(2, "resources/read", uri="file:///a")),
        S(result(2, contents=[])),
    ],
    "discovery": [
        C(_modern("d", "server/discover")),
        S(
            result(
                "d",
                supportedVersions=["2026-07-28"],
                capabilities={"tools": {}},
                serverInfo={"name": "s", "version": "1"},
                instructions="be brief",
            )
        ),
        C(_modern(1, "prompts/list")),
        S(result(1, prompts=[{"name": "p"}], nextCursor="c")),
        C(_modern(2, "resources/templates/list")),
        S(result(2, resourceTemplates=[{"uriTemplate": "x://{a}", "name": "t"}])),
        C(_modern(3, "resources/list", cursor="c")),
        S(result(3, resources=[])),
        C(_modern(4, "tools/list")),
        S(error(4, -32603, "down")),
    ],
    "probe without an answer": [
        C(_modern("d", "server/discover")),
        *HANDSHAKE,
        C(call(1)),
        S(text(1, "A")),
    ],
    "batches and junk": [
        *HANDSHAKE,
        C(json.dumps([call(1, x="a"), notify("notifications/x"), call(2, x="b")])),
        S(json.dumps([text(1, "A"), text(2, "B")])),
        C("{]"),
        S(error(None, -32700, "no JSON")),
        C("[7]"),
        C("[]"),
        S("hello"),
        C(ask(None, "tools/list")),
        S(error(None, -32600)),
        C(ask(1.0, "ping")),
        S(result(1)),
        C(result("x")),
        S(result("y")),
    ],
    "parts": [
        *HANDSHAKE,
        C(call(1, key="‹redacted 6›", x=1)),
        S(text(1, "a ‹redacted 3› b")),
        _line(C(call(2, key=0)), redacted=("/params/arguments/key",)),
        _line(S(text(2, "A")), redacted=("/result/content",)),
        _line(
            C('{"id":3,"method":"tools/call","params":{"name":"'),
            truncated=TruncatedMessage(size=1000, sha256="0f"),
        ),
        _line(S('{"id":3,"result":{"x":"'), truncated=TruncatedMessage(size=1000, sha256="0f")),
        C(call(4)),
        _line(S('{"id":4,"result":{"x":"'), truncated=TruncatedMessage(size=1000, sha256="0f")),
        Sent("client", TraceLine(t=0, sender="client", data=b"\xff")),
        Sent("client", TraceLine(t=0, kind="lost", count=3)),
        Sent("client", TraceLine(t=0, kind="note", text="x")),
    ],
    "HTTP": [
        *_over_http(1, HANDSHAKE[0].message, HANDSHAKE[1].message),
        _line(C(HANDSHAKE[2].message), exchange=2, http=HttpHead(method="POST", target="/mcp")),
        Sent("client", TraceLine(t=0, sender="client", exchange=3, http=HttpHead(method="GET"))),
        *_over_http(
            4,
            _with_token(call(1), "t"),
            _progress("t", 1),
            notify("notifications/message", level="info", data="x"),
            _ASKED,
        ),
        _line(C(result(5, action="decline")), exchange=5, http=HttpHead(method="POST")),
        _line(S(text(1, "A")), exchange=4, sse=SseFields()),
        _line(S(notify(_LIST_CHANGED)), exchange=3, sse=SseFields()),
        *_over_http(6, call(2, "b"), error(None, -32600, "no b")),
        *_over_http(7, HANDSHAKE[0].message, HANDSHAKE[1].message, conversation=1),
        *_over_http(8, call(1, "c"), text(1, "C"), text(1, "C")),
    ],
    "two sessions": [
        *HANDSHAKE,
        C(call(1)),
        S(text(1, "A")),
        *HANDSHAKE,
        C(call(1)),
        S(text(1, "B")),
        C(_modern(9, "tools/list")),
    ],
    "made-up values": [
        C(call(1, "new")),
        S(text(1, f"order-{17} {_UUID} at 2026-11-22T14:26:20Z, 14:26:21, 2020-01-01")),
        C(call(2, "order", order=_UUID, at=1795357580)),
        S(
            result(
                2, order="order-0017", createdAt="x", time=1795357580, structuredContent={"a": 1}
            )
        ),
        C(call(3, "order", order="order-0017")),
        S(result(3, content=[{"type": "text", "text": "MCP_TRIO_PROCESS=0123456789abcdef\nA=b"}])),
    ],
    "nothing": [],
}
# What any client may send to any server.
_OTHER: Final[list[Any]] = [
    ask("o1", "ping"),
    ask("o2", "server/discover"),
    ask("o3", "initialize", protocolVersion="2030-01-01"),
    ask("o4", "tools/call", name="a", arguments={"x": 2, "z": [1, 2, 3, 4, 5, 6]}),
    ask("o5", "tools/calls", name="a"),
    ask("o6", "odd"),
    ask(None, "tools/list"),
    notify("notifications/odd"),
    notify("notifications/cancelled", requestId=1),
    result("o7"),
    {"jsonrpc": "2.0"},
    [],
    [ask("o8", "ping"), 5],
    "text",
]


def _trace(sent: list[Sent], *redacted: str, at: str = AT) -> RecordedTrace:
    header = TraceHeader(format_version=1, at=at, transport="stdio", redacted=redacted)
    lines: list[tuple[int, TraceLine | DamagedLine]] = [
        (number, replace(line, t=float(number))) for number, line in lines_of(sent)
    ]
    return load_trace(header, lines)


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _turns(sent: list[Sent]) -> Iterator[str]:
    trace = _trace(sent, "message:taskId")
    yield from trace.warnings
    yield f"requests {trace.has_requests}, pseudonyms {trace.hides_pseudonyms}"
    for number, session in enumerate(trace.sessions, 1):
        marks = ("has_handshake", "is_initialized", "has_id", "has_stream")
        yield f"session {number}: {', '.join(mark for mark in marks if getattr(session, mark))}"
        for turn in turns_of(session):
            yield f"  {_shown(turn.message)}{' cancelled' * turn.was_cancelled}"
            for item in turn.items:
                stream = item.stream.message if item.stream is not None else None
                waits = item.waits_for.message if item.waits_for is not None else None
                places = tuple(
                    f"{name} {each.line}"
                    for name, each in (("on", stream), ("after", waits), ("answer", item.answer))
                    if each is not None
                )
                yield f"    {_shown(item.message)}: {', '.join(places)}"
            if turn.response is not None:
                yield f"    response {turn.response.line}"


def _shown(message: RecordedMessage | None) -> str:
    if message is None:
        return "before all"
    marks = [
        *(["truncated"] * message.is_truncated),
        *([f"batch {message.batch}"] if message.batch else []),
        *([f"exchange {message.exchange}"] if message.exchange else []),
        *([f"status {message.status}"] if message.status else []),
        *(message.redacted),
    ]
    what = f"{message.line} {message.sender} {message.kind} {message.method} {message.id!r}"
    return " ".join((what, *marks))


def _load(sent: list[Sent]) -> Iterator[str]:
    for revision, answers_itself in (
        *((None, False), (None, True)),
        *(("2025-06-18", False), ("2026-07-28", True)),
    ):
        load = recorded_load(
            _trace(sent, "message:taskId"), revision=revision, answers_itself=answers_itself
        )
        yield f"{revision}, {answers_itself}: {dict(load.revisions)} hidden {load.hidden}"
        for each in load.left_out:
            yield f"  without {each.count} {each.what}: {each.lines}"
        for calls in load.conversations:
            copy = CallCopy()
            for made in calls:
                marks = [
                    each for each in ("is_fixed", "is_source", "failed") if getattr(made, each)
                ]
                params = copy.params(made)
                answer = made.turn.response.decode() if made.turn.response else {}
                again = copy.receive(made, _renamed(answer))
                yield (
                    f"  {made.line} {made.name} {made.revision}: {' '.join(marks)}"
                    f" {'' if params == made.params and revision else _json(params)}"
                    f" {again or ''}".rstrip()
                )


def _renamed(value: Any) -> Any:
    """Return a message with other texts that a server makes up."""
    if isinstance(value, dict):
        return {key: _renamed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    if isinstance(value, str) and any(map(str.isdigit, value)) and len(value) > 5:
        return f"{value[:-1]}N"
    return value


def _offers(sent: list[Sent]) -> Iterator[str]:
    for each in recorded_offers(_trace(sent)):
        yield (
            f"{each.revision} {each.server!r} {each.instructions!r} {_json(each.capabilities)}"
            f" {_json(each.lists)}"
        )


def _server(sent: list[Sent]) -> Iterator[str]:
    """Play each of the client's messages at its time, all once more, and then others."""
    trace = _trace(sent, "message:requestState")
    server = ReplayServer(trace, pace=0.5, ignore=["/params/arguments/x"])
    yield f"handshake {server.has_handshake}, without {server.has_modern}"
    session = server.open()
    session.begin(0.0)
    yield from _outputs(session)
    recorded = [each.message for each in sent if each.sender == "client"]
    messages = [
        each if isinstance(each, str) else each.raw if isinstance(each, TraceLine) else _json(each)
        for each in recorded
    ]
    now = 0.0
    for turn, live in enumerate((*messages, *messages, *map(_json, _OTHER))):
        if live is None:
            continue
        yield f"{_cut(live, 60)}" if turn < len(messages) else f"message {turn}"
        session.receive(live.encode(), now, f"stream {turn}")
        yield from _outputs(session)
        for _ in range(9):
            if math.isinf(session.next_deadline):
                break
            now = max(now, session.next_deadline)
            session.advance(now)
            yield f"  at {now}:"
            yield from _outputs(session)
    yield f"{server.found_count} found, {server.missing_count} missing"
    yield from (f"missing: {each}" for each in server.missing)
    yield from (f"note: {each}" for each in server.notes)


def _outputs(session: Any) -> Iterator[str]:
    for each in session.outputs_to_send():
        status = f" {each.status}" if each.status else ""
        stream = "" if each.stream is None else f" on {each.stream}"
        data = _cut(each.data.decode(), 230)
        yield f"  {'response' * each.is_response}{status}{stream}: {data}"


def _cut(text: str, size: int) -> str:
    text = text.replace('"jsonrpc":"2.0",', "").encode("ascii", "backslashreplace").decode()
    return text if len(text) <= size else f"{text[:size]}..."


def _client(sent: list[Sent]) -> Iterator[str]:
    """Let each session's client speak to the recorded server, in several moods."""

    def same(message: Any) -> Any:
        return message

    def refused(message: Any) -> Any:
        is_answer = isinstance(message, dict) and "result" in message
        return error(message["id"], -32603) if is_answer else message

    def silent(message: Any) -> Any:
        return None

    moods: dict[str, Callable[[Any], Any]] = {
        "same": same,
        "renamed": _renamed,
        "refused": refused,
        "silent": silent,
    }
    for mood, change in moods.items():
        for number in range(len(_trace(sent).sessions)):
            yield f"{mood}, session {number + 1}"
            yield from _conversation(_trace(sent), number, change, 2.0 if mood == "same" else None)


def _conversation(
    trace: RecordedTrace, number: int, change: Callable[[Any], Any], timeout: float | None
) -> Iterator[str]:
    client = ReplayClient(trace.sessions[number], response_timeout=timeout)
    session = ReplayServer(trace).open()
    session.begin(0.0)
    client.begin(0.0)
    now = 0.0
    for _ in range(60):
        if client.is_over:
            break
        sent = client.messages_to_send()
        for data in sent:
            yield f"  {now}: {_cut(data.decode('utf-8', 'replace'), 130)}"
            session.receive(data, now, "stream")
        outputs = session.outputs_to_send()
        answers = [change(_decoded(each.data)) for each in outputs]
        for answer in answers:
            if answer is not None:
                client.receive(_json(answer).encode(), now)
        if not sent and not any(each is not None for each in answers):
            now = max(now, client.next_deadline)
            client.advance(now)
    left = [each.decode("utf-8", "replace")[:80] for each in client.messages_to_send()]
    yield (
        f"  sent {client.sent}, answered {client.answered}, unanswered {client.unanswered}, hidden"
        f" {client.hidden}, over {client.is_over} at {now}, left {len(left)}"
    )
    yield from (f"  problem: {each}" for each in client.problems)


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return data.decode()


def _diff(sent: list[Sent]) -> Iterator[str]:
    """Compare the conversation with itself without one line, with two exchanged, or changed."""
    old = _trace(sent, "message:taskId")
    later = "2026-11-23T09:00:00Z"
    changed: dict[str, list[Sent]] = {"same": sent}
    for place in range(len(sent)):
        changed[f"without {place + 2}"] = [*sent[:place], *sent[place + 1 :]]
    for place in range(len(sent) - 1):
        pair = [sent[place + 1], sent[place]]
        changed[f"exchanged {place + 2}"] = [*sent[:place], *pair, *sent[place + 2 :]]
    for place, each in enumerate(sent):
        other = Sent(each.sender, _changed(each.message))
        if other != each:
            changed[f"changed {place + 2}"] = [*sent[:place], other, *sent[place + 1 :]]
    changed["renamed"] = [Sent(each.sender, _renamed(each.message)) for each in sent]
    for name, new in changed.items():
        found = diff_traces(
            old,
            _trace(new, "message:taskId", at=later),
            ignore=["/result/content/*/ignored"],
            with_meta=name.startswith("changed"),
        )
        counts = (found.count, found.compared, found.responses, found.not_compared)
        yield f"{name}: {' '.join(map(str, counts))}"
        for one in found.differences:
            codes = [] if one.old_code is one.new_code is None else [one.old_code, one.new_code]
            yield (
                f"  {one.kind}: {one.what}, {one.part} of {one.sender}, session {one.session}"
                f" {one.old_line} {one.new_line} {' '.join(map(str, codes))}".rstrip()
            )
            for value in one.values:
                marks = "missing " * value.is_missing + "removed " * value.is_removed
                yield f"    {marks}{value.pointer}: {_json(value.old)} {_json(value.new)}"
            assert one.value_count == len(one.values)


def _changed(message: Any) -> Any:
    """Return a message with a member more, another text and number, and one less of a list."""
    if not isinstance(message, dict):
        return message
    for key in ("result", "params", "error"):
        if isinstance(message.get(key), dict):
            members = {name: _changed_value(each) for name, each in message[key].items()}
            return {**message, key: {**members, "more": 1, "_meta": {"m": 1}}}
    return message


def _changed_value(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(_changed_value, value[:-1]), {"ignored": 1}]
    if isinstance(value, int) and not isinstance(value, bool):
        return value + 1
    return value


_KINDS: Final[dict[str, Callable[[list[Sent]], Iterator[str]]]] = {
    "turns": _turns,
    "load": _load,
    "offers": _offers,
    "server": _server,
    "client": _client,
    "differences": _diff,
}


def replays() -> list[str]:
    """Return the names of what is made of each conversation."""
    return [f"{kind}: {name}" for kind in _KINDS for name in _CONVERSATIONS]


def replay_of(name: str) -> str:
    """Return the lines of one of `replays`."""
    kind, _, conversation = name.partition(": ")
    lines = [f"  {line}" for line in _KINDS[kind](_CONVERSATIONS[conversation])]
    return "\n".join(lines or ["  -"])


def kept_replays() -> dict[str, str]:
    """Return the texts in the files, by their names."""
    return {**read_kept(_FILE), **read_kept(_DIFFERENCES)}


if __name__ == "__main__":
    made = {name: replay_of(name) for name in replays()}
    of_pairs = {name: each for name, each in made.items() if name.startswith("differences")}
    write_kept(_DIFFERENCES, of_pairs)
    write_kept(_FILE, {name: each for name, each in made.items() if name not in of_pairs})
