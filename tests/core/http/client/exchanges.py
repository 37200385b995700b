"""All that a client over HTTP makes of each of a table of responses.

    python -m tests.core.http.client.exchanges

writes the files again: `exchanges.txt` and `outcomes.txt`. A change of the client
shows in them which calls, events and deadlines it changes, also of responses that the change isn't
about: read that difference before you commit it.

Each text is a stage of a connection, and below it what follows each response to the call that is
made there: the next calls (`>`), the calls that are aborted (`drop`), the events, and in brackets
the times at which the client acts by itself. It ends with the connection's close. `outcomes.txt`
has what the operation of the call returns for the response's head, each piece of its body, and its
end; and before, without a response, for a failed authorization and for a deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core import AuthRequired, ErrorReceived, Limits, MessageRejected, Peer
from mcp_core import types as t
from mcp_core.http.client._operation import (
    Accepted,
    EndpointEvent,
    Failed,
    HttpOperation,
    LegacyServer,
    Messages,
    ResponseBody,
    SessionRejected,
    Wait,
)
from mcp_core.http.client._options import HttpClientOptions
from tests.core.http.client_net import (
    EVENTS,
    JSON,
    SESSION,
    A,
    B,
    D,
    E,
    Net,
    discover_result,
    event,
    initialize_result,
    open_client,
    posted_message,
    send_call,
)
from tests.harness.jsonrpc import encoded, error, notification, request, result
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from mcp_core.http.client._operation import Outcomes
    from mcp_core.http.client._options import HttpCall

__all__ = [
    "FOLLOWED",
    "STAGES",
    "follow_responses",
    "kept_outcomes",
    "kept_responses",
    "outcomes_of",
]

_FILE: Final = Path(__file__).with_name("exchanges.txt")
_OUTCOMES: Final = Path(__file__).with_name("outcomes.txt")
_CONTENT: Final = {"content": [], "resultType": "complete"}
_LIST: Final = {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_POSTED: Final = "accept: application/json, text/event-stream; content-type: application/json"
_USUAL: Final = ("host", "accept-encoding", "user-agent")
_LAST_TIME: Final = 100.0  # seconds, after which the connection is closed
_HTML: Final = "text/html; charset=utf-8"
_LIMITS: Final = Limits(message=2_000)
_CHALLENGE: Final = 'Bearer scope="a b", error="invalid_token"'

# A response: what a server does with a call, which carries the request with an id.
_Reply = Callable[[Net, "HttpCall", Any], None]
# A stage: how a connection is made, with a call, and the id of the request in it.
_Stage = Callable[[], "tuple[Net, HttpCall, Any]"]


# -- Responses -------------------------------------------------------------------------------------


def _status(code: int, body: Any = None, type: str | None = None, **headers: str) -> _Reply:
    def reply(net: Net, call: HttpCall, id: Any) -> None:
        net.start_response(call, code, type, **headers)
        if body is not None:
            net.send_body(call, encoded(body))
        net.end_response(call)

    return reply


def _as_json(make: Callable[[Any], Any], code: int = 200, type: str = JSON) -> _Reply:
    def reply(net: Net, call: HttpCall, id: Any) -> None:
        _status(code, make(id), type)(net, call, id)

    return reply


def _as_events(
    *make: Callable[[Any], bytes], end: str | None = None, ends: bool = True, **headers: str
) -> _Reply:
    def reply(net: Net, call: HttpCall, id: Any) -> None:
        net.start_response(call, 200, EVENTS, **headers)
        net.send_body(call, *(each(id) for each in make))
        if ends:
            net.end_response(call, end)

    return reply


def _breaks(started: str | None = None) -> _Reply:
    def reply(net: Net, call: HttpCall, id: Any) -> None:
        if started is not None:
            net.start_response(call, 200, started)
            net.send_body(call, b"{")
        net.end_response(call, "reset by peer")

    return reply


def _with(message: Callable[[Any], Any], event_id: str | None = None) -> Callable[[Any], bytes]:
    return lambda id: event(message(id), event_id)


def _answer_to(call: HttpCall, id: Any) -> Any:
    """Return the right result for the request in a call."""
    method = posted_message(call).get("method") if call.body else ""
    if method == "initialize":
        return result(id, initialize_result(D))
    if method == "server/discover":
        return result(id, discover_result())
    return result(id, _LIST if method == "tools/list" else _CONTENT)


def _right(kind: str) -> _Reply:
    def reply(net: Net, call: HttpCall, id: Any) -> None:
        message = _answer_to(call, id)
        net.start_response(call, 200, kind, mcp_session_id="two")
        net.send_body(call, event(message, "e1") if kind == EVENTS else encoded(message))
        net.end_response(call)

    return reply


_LOG: Final = notification("notifications/message", {"level": "info", "data": "x"})
_PING: Final = request("s1", "ping")
_UNKNOWN: Final = {"jsonrpc": "2.0", "error": {"code": -32000, "message": "No valid session ID"}}

REPLIES: Final[dict[str, _Reply]] = {
    "the result": _right(JSON),
    "the result as an event": _right(EVENTS),
    "202": _status(202),
    "200 without a body": _status(200, None, JSON),
    "206 JSON": _as_json(lambda id: result(id, _CONTENT), 206),
    "200 HTML": _status(200, "<p>", _HTML),
    "200 without a type": _status(200, "{}"),
    "200 encoded": _status(200, "{}", JSON, content_encoding="gzip"),
    "an error": _as_json(lambda id: error(id, -32603, "broken")),
    "an error in 400": _as_json(lambda id: error(id, -32602, "params"), 400),
    "an error of another id in 400": _as_json(lambda id: error(99, -32602, "params"), 400),
    "an unknown session in 400": _status(400, _UNKNOWN, JSON),
    "an unknown session in 400 text": _status(400, "Invalid session", "text/plain"),
    "another text in 400": _status(400, "No\x01 way", "text/plain"),
    "an error in 401": _as_json(lambda id: error(id, -32001, "who"), 401),
    "401": _status(401, www_authenticate=_CHALLENGE),
    "403": _status(403, "Go away", "text/plain"),
    "403 with a challenge": _status(403, www_authenticate='Bearer scope="c"'),
    "404": _status(404),
    "404 with an error": _as_json(lambda id: error(id, -32601, "what"), 404),
    "405": _status(405, "<p>", _HTML),
    "408": _status(408),
    "429": _status(429, retry_after="7"),
    "500": _status(500, {"jsonrpc": "2.0", "error": {"code": -32603, "message": "m"}}, JSON),
    "503": _status(503, retry_after="Fri, 31 Dec 1999 23:59:59 GMT"),
    "301 elsewhere": _status(301, location="https://other.example/mcp"),
    "308": _status(308, location="/other"),
    "another id": _as_json(lambda id: result(77, _CONTENT)),
    "the id as text": _as_json(lambda id: result(str(id), _CONTENT)),
    "no id": _as_json(lambda id: {"jsonrpc": "2.0", "result": {}}),
    "a notification as the body": _as_json(lambda id: _LOG),
    "an array": _as_json(lambda id: [result(id, _CONTENT)]),
    "an array of others": _as_json(lambda id: [_LOG, result(77, {})]),
    "an empty array": _as_json(lambda id: []),
    "no JSON": _status(200, "nothing", JSON),
    "two messages": _status(200, "{} {}", JSON),
    "the wrong shape": _as_json(lambda id: result(id, {"content": 5, "protocolVersion": 5})),
    "2000 bytes": _status(200, "x" * 2000, JSON),
    "2001 bytes": _status(200, "x" * 2001, JSON),
    "2000 bytes of an event": _as_events(lambda id: event("x" * 2000)),
    "2001 bytes of an event": _as_events(_with(lambda id: _LOG), lambda id: event("x" * 2001)),
    "64 KiB in 500": _status(500, "x" * 65_536, "text/plain"),
    "more in 500": _status(500, "x" * 65_537, "text/plain"),
    "a bad session id": _status(200, "{}", JSON, mcp_session_id="a b"),
    "events: none": _as_events(),
    "events: broken": _as_events(end="reset by peer"),
    "events: a notification": _as_events(_with(lambda id: _LOG)),
    "events: an id, then the end": _as_events(_with(lambda id: _LOG, "e1")),
    "events: an id, then a break": _as_events(_with(lambda id: _LOG, "e1"), end="reset by peer"),
    "events: a request": _as_events(_with(lambda id: _PING, "e1"), ends=False),
    "events: a delay": _as_events(lambda id: event(None, "e1", retry="2500")),
    "events: another event": _as_events(lambda id: event("x", event="other")),
    "events: an endpoint": _as_events(lambda id: event("/post", event="endpoint"), ends=False),
    "events: an endpoint elsewhere": _as_events(
        _with(lambda id: _LOG), lambda id: event("http://other.example/post", event="endpoint")
    ),
    "events: no JSON": _as_events(lambda id: event("nothing")),
    "events: the result, open": _as_events(_with(lambda id: result(id, _CONTENT)), ends=False),
    "events: the result twice": _as_events(*[_with(lambda id: result(id, _CONTENT))] * 2),
    "no response": _breaks(),
    "a break in JSON": _breaks(JSON),
    "a break in events": _breaks(EVENTS),
    "closed": lambda net, call, id: net.end_response(call),
}


# -- Stages ----------------------------------------------------------------------------------------


def _opening(*versions: str) -> _Stage:
    def stage() -> tuple[Net, HttpCall, Any]:
        net = Net(*versions, limits=_LIMITS)
        net.open()
        return net, net.call(), 1

    return stage


def _initialized() -> tuple[Net, HttpCall, Any]:
    net = Net(D, limits=_LIMITS)
    net.open()
    net.answer(net.call(), result(1, initialize_result(D)), mcp_session_id=SESSION)
    call = net.call()
    net.conn.send_request("tools/list")  # waits for it
    net.events()
    return net, call, None


def _standalone(*, was_open: bool, last_id: bool = False) -> _Stage:
    def stage() -> tuple[Net, HttpCall, Any]:
        net = open_client(D, stream=was_open, limits=_LIMITS)
        if not was_open:
            net = Net(D, limits=_LIMITS)
            net.open()
            net.answer(net.call(), result(1, initialize_result(D)), mcp_session_id=SESSION)
            net.answer(net.call())
            call = net.call()
        else:
            # Keys are given in order: the stream is the third call.
            if last_id:
                net.http.response_data(3, event(None, "e0"), net.now)
            net.http.response_ended(3, net.now)
            net.at(1)
            call = net.call()
        net.events()
        return net, call, None

    return stage


def _ending() -> tuple[Net, HttpCall, Any]:
    net = open_client(D, limits=_LIMITS)
    net.conn.close()
    call = net.call()
    net.events()
    return net, call, None


def _opening_sse() -> tuple[Net, HttpCall, Any]:
    """The server of 2024-11-05 has rejected the handshake."""
    net = Net(A, limits=_LIMITS)
    net.open()
    net.answer(net.call(), status=405)
    return net, net.call(), 1


def _calling_sse() -> tuple[Net, HttpCall, Any]:
    net, get, id = _opening_sse()
    net.start_response(get)
    net.send_body(get, event("/post?a=b", event="endpoint"))
    return net, net.call(), id


def _responding_over_sse() -> tuple[Net, HttpCall, Any]:
    net, post, _ = _calling_sse()
    net.answer(post)
    stream = 2  # the stream is the second call
    for message in (result(1, initialize_result(A)), request("s1", "roots/list")):
        net.http.response_data(stream, event(message), net.now)
    net.answer(net.call())
    net.events()
    net.conn.send_result("s1", {"roots": []})
    return net, net.call(), None


def _calling(
    version: str = D,
    method: str = "tools/call",
    params: Any = None,
    *,
    session: str | None = SESSION,
) -> _Stage:
    def stage() -> tuple[Net, HttpCall, Any]:
        net = open_client(version, session=session, limits=_LIMITS)
        id, call = send_call(net, method, params)
        return net, call, id

    return stage


def _resuming() -> tuple[Net, HttpCall, Any]:
    net, call, id = _calling()()
    net.start_response(call)
    net.send_body(call, event(None, "e0", retry="0"))
    net.end_response(call)
    net.at(0.1)
    return net, net.call(), id


def _notifying(version: str) -> _Stage:
    def stage() -> tuple[Net, HttpCall, Any]:
        net = open_client(version, limits=_LIMITS)
        net.conn.send_notification("notifications/roots/list_changed")
        return net, net.call(), None

    return stage


def _responding() -> tuple[Net, HttpCall, Any]:
    net = open_client(D, stream=True, limits=_LIMITS)
    net.http.response_data(3, event(request("s1", "roots/list")), net.now)
    net.events()
    net.conn.send_result("s1", {"roots": []})
    return net, net.call(), None


def _renewing() -> tuple[Net, HttpCall, Any]:
    """The session was lost, and its call is sent again in a new one."""
    net, call, id = _calling()()
    net.answer(call, status=404)
    first = net.call()
    net.answer(first, result(posted_message(first)["id"], initialize_result(D)), mcp_session_id="2")
    net.answer(net.call())
    net.answer(net.call(), status=405)
    net.events()
    return net, net.call(), id


def _calling_with_options() -> tuple[Net, HttpCall, Any]:
    net = Net(
        E,
        url="http://127.0.0.1:8080/a?b=1",
        options=HttpClientOptions(
            headers={"X-Api-Key": "key-4711", "User-Agent": "me"},
            reconnect_attempts=1,
            max_reconnect_delay=0.5,
            entropy=lambda count: b"\xff" * count,
        ),
    )
    net.open()
    net.answer(net.call(), result(1, discover_result()))
    net.events()
    id = net.conn.send_request(
        "tools/call", t.CallToolParams(name="t"), headers={"X-Api-Key": "key-4712", "X-B": "b"}
    )
    return net, net.call(), id


STAGES: Final[dict[str, _Stage]] = {
    "initialize of 2024-11-05": _opening(A),
    "initialize of 2025-11-25": _opening(D),
    "server/discover": _opening(E),
    "server/discover, or initialize": _opening(D, E),
    "initialized": _initialized,
    "the first stream of a session": _standalone(was_open=False),
    "the stream of a session again": _standalone(was_open=True),
    "the stream of a session resumed": _standalone(was_open=True, last_id=True),
    "tools/call of 2025-03-26 without a session": _calling(B, session=None),
    "tools/call of 2025-11-25": _calling(D),
    "tools/call of 2026-07-28": _calling(E),
    "subscriptions/listen": _calling(E, "subscriptions/listen", {"notifications": {}}),
    "logging/setLevel": _calling(D, "logging/setLevel", {"level": "info"}),
    "a resumed tools/call": _resuming,
    "a tools/call in a new session": _renewing,
    "a tools/call with options": _calling_with_options,
    "a notification of 2025-11-25": _notifying(D),
    "a response of 2025-11-25": _responding,
    "the end of a session": _ending,
    "the stream of HTTP+SSE": _opening_sse,
    "initialize over HTTP+SSE": _calling_sse,
    "a response over HTTP+SSE": _responding_over_sse,
}


# Those whose responses have consequences of their own; the others only have outcomes.
FOLLOWED: Final = [
    name
    for name in STAGES
    if name
    not in (
        "tools/call of 2025-03-26 without a session",
        "subscriptions/listen",
        "logging/setLevel",
        "a tools/call with options",
        "a response over HTTP+SSE",
    )
]


# -- What is seen ----------------------------------------------------------------------------------


def _show_call(call: HttpCall) -> str:
    shown = [
        f"{name.decode()}: {value.decode('latin-1')}"
        for name, value in call.head.headers
        if name.decode() not in _USUAL
    ]
    flags = [name for name in ("idempotent", "long_lived", "brief") if getattr(call, name)]
    body = call.body.decode()
    if len(body) > 100:
        body = f"{body[:60]}... of {len(body)}"
    keeps = "; ".join(shown).replace(_POSTED, "as JSON")
    start = f"{call.head.method.decode()} {call.head.target.decode()} {' '.join(flags)}"
    return f"> {call.key} {start} [{keeps}] {body}".rstrip()


def _show_event(found: Any) -> str:
    fields = []
    for name in found.__struct_fields__:
        value = getattr(found, name)
        if isinstance(value, Peer):
            fields.append(value.dialect.version)
        elif value and (name, value) != ("token", "T"):
            fields.append(f"{name}={value!r}")
    text = f"{type(found).__name__} {' '.join(fields)}".rstrip()
    problem = found.error if isinstance(found, ErrorReceived | MessageRejected) else None
    for name in ("fault", "data", "scopes", "challenge"):
        value = getattr(problem, name, None)
        if value:
            text += f" {name}={value}"
    return text


class _Seen:
    """The calls, aborted calls and events that a client has made since the last look."""

    def __init__(self, net: Net) -> None:
        self.net = net
        self.lines: list[str] = []

    def note(self) -> None:
        net = self.net
        net.pump()
        self.lines += map(_show_call, net.new_calls())
        self.lines += [f"drop {key}" for key in net.dropped]
        net.dropped.clear()
        self.lines += map(_show_event, net.events())


def _follow(stage: _Stage, reply: _Reply) -> tuple[list[str], list[str]]:
    """Return what follows a response, and what follows the close after it."""
    net, call, id = stage()
    net.pump()
    net.dropped.clear()
    seen = _Seen(net)
    before = net.http.next_deadline()
    reply(net, call, id)
    seen.note()
    if net.http.next_deadline() == before and not seen.lines:
        seen.lines.append("nothing")
    for _ in range(4):
        when = net.http.next_deadline()
        if when is None or when > _LAST_TIME:
            break
        seen.lines.append(f"[{when:g}]")
        net.at(when)
        seen.note()
    closing = _Seen(net)
    closing.lines.append(f"{net.http.queued()} {net.http._state.transport!r}")
    net.conn.close()
    closing.note()
    return seen.lines, closing.lines


def follow_responses(name: str) -> str:
    """Return what follows each response to the call of a stage."""
    stage = STAGES[name]
    lines: list[str] = []
    known: dict[str, str] = {}
    ends: dict[str, int] = {}
    shown: set[int] = set()
    for label, reply in REPLIES.items():
        found, closing = ("\n".join(f"  {line}" for line in part) for part in _follow(stage, reply))
        number = ends.setdefault(closing, len(ends) + 1)
        same = known.setdefault(f"{found}{number}", label)
        if same == label:
            end = f"  end {number}" + (f":\n{closing}" if number not in shown else "")
            lines.append(f"{label}:\n{found}\n{end}".replace("\n\n", "\n"))
            shown.add(number)
        else:
            lines.append(f"{label}: as {same}")
    _, call, _ = stage()
    return "\n".join([_show_call(call), *lines])


def _show_outcome(outcome: Any) -> str:
    name = type(outcome).__name__
    if isinstance(outcome, Failed):
        return f"{name} {outcome.status} {type(outcome.error).__name__}"
    if isinstance(outcome, Messages):
        return f"{name} {len(outcome.messages)}"
    if isinstance(outcome, ResponseBody):
        return f"{name} {len(outcome.data)}{'' if outcome.parsed is None else ' parsed'}"
    if isinstance(outcome, Wait):
        return f"{name} {outcome.until:g}"
    if isinstance(outcome, Accepted):
        return f"{name} {outcome.head.status}"
    if isinstance(outcome, LegacyServer):
        return f"{name} {outcome.response.status}"
    if isinstance(outcome, SessionRejected):
        return f"{name} {_show_outcomes(outcome.otherwise)}"
    if isinstance(outcome, EndpointEvent):
        return f"{name} {outcome.reference.decode()}"
    return str(outcome).removeprefix("PlainOutcome.")


def _show_outcomes(outcomes: Outcomes) -> str:
    # None would do no harm, because `HttpClient` acts on no outcomes in the same way.
    assert isinstance(outcomes, list | tuple)
    return f"({', '.join(map(_show_outcome, outcomes))})"


def outcomes_of(name: str) -> str:
    """Return the outcomes of each response to the call of a stage."""
    lines: list[str] = []
    for label, reply in REPLIES.items():
        net, call, id = STAGES[name]()
        operation = net.http._state.operations[call.key]
        found: list[str] = []
        for method in ("response_started", "response_data", "response_ended"):
            _record(operation, method, found)
        reply(net, call, id)
        lines.append(f"{label}: {' '.join(found)}")
    net, call, _ = STAGES[name]()
    operation = net.http._state.operations[call.key]
    before = {
        "denied": operation.denied(AuthRequired("no")),
        "restart_timeout": operation.restart_timeout(100.0),
    }
    if operation in net.http._state.deadlines:
        before["deadline"] = operation.on_deadline(100.0)
    shown = [f"{key} {_show_outcomes(value)}" for key, value in before.items()]
    before_all = f"{type(operation).__name__}: {' '.join(shown)}"
    return "\n".join([_show_call(call), before_all, *lines])


def _record(operation: HttpOperation, method: str, found: list[str]) -> None:
    """Add to `found` what a method of an operation returns."""
    call = getattr(operation, method)

    def recorded(*arguments: Any) -> Outcomes:
        outcomes: Outcomes = call(*arguments)
        found.append(_show_outcomes(outcomes))
        return outcomes

    setattr(operation, method, recorded)


def kept_outcomes() -> dict[str, str]:
    """Return the kept outcomes of each stage."""
    return read_kept(_OUTCOMES)


def kept_responses() -> dict[str, str]:
    """Return the kept text of each stage."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_OUTCOMES, {name: outcomes_of(name) for name in STAGES})
    write_kept(_FILE, {name: follow_responses(name) for name in FOLLOWED})
