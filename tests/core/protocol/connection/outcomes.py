"""The outcomes of each message and each call at each state of a connection, in `outcomes.txt`.

    python -m tests.core.protocol.connection.outcomes

writes the file again. The first state of each role has all outcomes. Of each other only those are
listed that differ from another state's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import UNSET, Raw, Struct, to_builtins

from mcp_core import (
    Config,
    Connection,
    Event,
    LocalProtocolError,
    McpTrioError,
    MessageRejected,
    Peer,
    Role,
)
from mcp_core import types as t
from mcp_core.protocol.revisions._methods import Method
from mcp_core.protocol.subscriptions._server import Change
from tests.harness.jsonrpc import (
    INITIALIZED,
    META_CAPABILITIES,
    META_VERSION,
    A,
    B,
    D,
    E,
    Message,
    call,
    cancelled,
    client_config,
    error,
    initialize,
    notification,
    ping,
    request,
    result,
    server_config,
    stateless_request,
)
from tests.harness.wire.connection import ConnectionHarness, opened
from tests.kept import read_kept, write_kept

__all__ = ["kept_outcomes", "outcomes", "outcomes_at"]

_FILE: Final = Path(__file__).with_name("outcomes.txt")
_CLIENT, _SERVER = Role
_FORM: Final = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
_SAMPLE: Final = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "x"}}],
    "maxTokens": 5,
}


@cache
def _config(role: Role, version: str) -> Config:
    if role is _SERVER:
        return server_config(keep_alive=30.0, instructions="be brief")
    return client_config(version, keep_alive=30.0, initialize_timeout=7.0)


# Texts of msgspec, which another release may change.
_WORDS: Final = re.compile(
    r"(?:Expected `[^`]*`, got `[^`]*`|Object missing required field `[^`]*`"
    r"|Invalid enum value '[^']*'|invalid character)(?: - at `[^`]*`| \(byte \d+\))?"
)


# -- States ----------------------------------------------------------------------------------------


def _new(role: Role, version: str) -> ConnectionHarness:
    return ConnectionHarness(Connection(role, _config(role, version)))


def _opening(role: Role, version: str) -> ConnectionHarness:
    harness = _new(role, version)
    if role is _CLIENT:
        harness.conn.open(0.0)
    elif version != E:
        harness.receive(initialize(version))
    harness.take_sent()
    return harness


def _ready(role: Role, version: str) -> ConnectionHarness:
    return opened(role, version, _config(role, version))


def _serving(role: Role, version: str) -> ConnectionHarness:
    """Return an open connection whose peer waits for the response to its request 1."""
    harness = _ready(role, version)
    if role is _SERVER:
        harness.receive(call(1, version, progressToken="p"))
    else:
        harness.receive(request(1, "roots/list", {"_meta": {"progressToken": "p"}}))
    return harness


def _asking(role: Role, version: str) -> ConnectionHarness:
    """Return an open connection that waits for responses itself, one with progress."""
    harness = _ready(role, version)
    method = "roots/list" if role is _SERVER else "tools/list"
    harness.conn.send_request(method, token="first", progress=True)
    harness.conn.send_request(method, token="second")
    harness.take_sent()
    return harness


def _serving_and_asking(role: Role, version: str) -> ConnectionHarness:
    """Return a server that asks its client during the client's request."""
    harness = _serving(role, version)
    harness.conn.send_request("roots/list", token="inner", related=1)
    harness.take_sent()
    return harness


def _subscribed(role: Role, version: str) -> ConnectionHarness:
    harness = _ready(role, version)
    if role is _SERVER and version == E:
        changes = {"toolsListChanged": True, "resourceSubscriptions": ["x:1"]}
        harness.receive(stateless_request(9, "subscriptions/listen", {"notifications": changes}))
    elif role is _SERVER:
        harness.receive(request(9, "resources/subscribe", {"uri": "x:1"}))
    else:
        harness.conn.send_request(
            "subscriptions/listen",
            {"notifications": {"toolsListChanged": True}},
            token="listen",
        )
    harness.take_sent()
    return harness


def _closing(role: Role, version: str) -> ConnectionHarness:
    harness = _serving(role, version)
    harness.conn.shutdown()
    harness.take_sent()
    return harness


def _half_closed(role: Role, version: str) -> ConnectionHarness:
    """Return a server whose client has ended its input, and waits for a response."""
    harness = _serving(role, version)
    harness.receive_eof()
    harness.take_sent()
    return harness


def _closed(role: Role, version: str) -> ConnectionHarness:
    harness = _serving(role, version) if version != E or role is _SERVER else _ready(role, version)
    harness.conn.close()
    harness.events()
    harness.take_sent()
    return harness


class _State(NamedTuple):
    """A state of a connection in one revision, and the one of which it lists the differences."""

    name: str
    version: str
    make: Callable[[Role, str], ConnectionHarness]
    base: int


_STATES: Final[dict[Role, list[_State]]] = {
    _SERVER: [
        _State("ready", D, _ready, 0),
        _State("ready", A, _ready, 0),
        _State("ready", B, _ready, 0),
        _State("ready", E, _ready, 0),
        _State("new", D, _new, 3),
        _State("opening", D, _opening, 0),
        _State("opening", A, _opening, 5),
        _State("serving", D, _serving, 0),
        _State("serving", E, _serving, 3),
        _State("asking", D, _asking, 0),
        _State("serving and asking", D, _serving_and_asking, 7),
        _State("subscribed", D, _subscribed, 0),
        _State("subscribed", E, _subscribed, 3),
        _State("closing", D, _closing, 7),
        _State("closing", E, _closing, 8),
        _State("half closed", D, _half_closed, 7),
        _State("half closed", E, _half_closed, 8),
        _State("closed", D, _closed, 0),
        _State("closed", E, _closed, 17),
    ],
    _CLIENT: [
        _State("ready", D, _ready, 0),
        _State("ready", A, _ready, 0),
        _State("ready", B, _ready, 0),
        _State("ready", E, _ready, 0),
        _State("new", D, _new, 0),
        _State("opening", D, _opening, 4),
        _State("opening", A, _opening, 5),
        _State("opening", E, _opening, 5),
        _State("serving", D, _serving, 0),
        _State("asking", D, _asking, 0),
        _State("asking", E, _asking, 3),
        _State("subscribed", E, _subscribed, 3),
        _State("closed", D, _closed, 0),
        _State("closed", E, _closed, 12),
    ],
}


# -- Messages --------------------------------------------------------------------------------------


def _meta(**members: Any) -> dict[str, Any]:
    return {"_meta": {name.replace("__", "/"): value for name, value in members.items()}}


_EACH_ROLE: Final[dict[str, Message | list[Any] | str]] = {
    "ping": ping(),
    "ping with params": request("a", "ping", {"x": 1}),
    "unknown request": request("a", "odd/method", {"x": 1}),
    "request without a name": request("a", ""),
    "notification as a request": request("a", "notifications/progress", {}),
    "request as a notification": notification("tools/call", {"name": "t"}),
    "unknown notification": notification("notifications/odd"),
    "null id": {"jsonrpc": "2.0", "id": None, "method": "ping"},
    "id of another type": {"jsonrpc": "2.0", "id": [1], "method": "ping"},
    "params of another type": request("a", "ping", 5),
    "no version": {"id": "a", "method": "ping"},
    "other version": {"jsonrpc": "1.0", "id": "a", "method": "ping"},
    "same id": request(1, "ping"),
    "same id as text": request("1", "ping"),
    "batch": [ping("b1"), notification("notifications/odd"), ping("b2")],
    "empty batch": [],
    "junk": "hello",
    "number": "5",
    "empty line": "",
    "cancelled": cancelled(1, "no longer needed"),
    "cancelled as text": cancelled("1"),
    "cancelled unknown": cancelled("x"),
    "cancelled subscription": cancelled(9),
    "cancelled without an id": notification("notifications/cancelled", {"reason": "r"}),
    "cancelled with a list": notification("notifications/cancelled", {"requestId": []}),
    "progress": notification("notifications/progress", {"progressToken": 7001, "progress": 0.5}),
    "progress with all": notification(
        "notifications/progress", {"progressToken": 7001, "progress": 1, "total": 2, "message": "m"}
    ),
    "progress of another": notification(
        "notifications/progress", {"progressToken": 7002, "progress": 0.5}
    ),
    "progress as text": notification(
        "notifications/progress", {"progressToken": "7001", "progress": 0.5}
    ),
    "progress without a number": notification("notifications/progress", {"progressToken": 7001}),
    "result": result(7001, {}),
    "result of the other": result(7002, {"roots": [], "tools": []}),
    "result as text": result("7001", {"roots": [], "tools": []}),
    "result of none": result("x", {}),
    "result of 0": result(0, {}),
    "result without an id": {"jsonrpc": "2.0", "result": {}},
    "result of another type": {"jsonrpc": "2.0", "id": 7001, "result": 5},
    "error": error(7001, -32601, "no such method", data={"x": 1}),
    "error of the opening": error(7001, -32022, "other", data={"supported": [D], "requested": E}),
    "error without an id": {"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}},
    "error with a null id": error(None, -32600, "bad"),
    "error without a code": {"jsonrpc": "2.0", "id": 7001, "error": {"message": "m"}},
    "result and error": {**result(7001, {}), "error": {"code": 1, "message": "m"}},
    "neither": {"jsonrpc": "2.0", "id": 7001},
}
_TO_SERVER: Final[dict[str, Message | list[Any] | str]] = {
    "initialize": initialize(D, "i"),
    "initialize with 2024-11-05": initialize(A, "i"),
    "initialize with a later one": initialize("2030-01-01", "i"),
    "initialize with this one": initialize(E, "i"),
    "initialize without a client": request("i", "initialize", {"protocolVersion": D}),
    "initialized": INITIALIZED,
    "call": call("c"),
    "call with a token": call("c", progressToken=7),
    "call with another token": call("c", progressToken=[]),
    "call without a name": request("c", "tools/call", {}),
    "call with a task": request("c", "tools/call", {"name": "t", "task": {"ttl": 5}}),
    "call with another task": request("c", "tools/call", {"name": "t", "task": 5}),
    "call alone": call("c", E),
    "call alone with a level": call("c", E, **{"io.modelcontextprotocol/logLevel": "info"}),
    "call alone with another level": call("c", E, **{"io.modelcontextprotocol/logLevel": "x"}),
    "call alone without a name": stateless_request("c", "tools/call"),
    "call alone of another revision": request(
        "c", "tools/call", {"name": "t", "_meta": {META_VERSION: D, META_CAPABILITIES: {}}}
    ),
    "call alone of an unknown revision": request(
        "c", "tools/call", {"name": "t", "_meta": {META_VERSION: "x" * 70, META_CAPABILITIES: {}}}
    ),
    "call alone without capabilities": request(
        "c", "tools/call", {"name": "t", "_meta": {META_VERSION: E}}
    ),
    "call alone without a revision": request(
        "c", "tools/call", {"name": "t", "_meta": {META_CAPABILITIES: {}}}
    ),
    "call alone with other capabilities": request(
        "c", "tools/call", {"name": "t", "_meta": {META_VERSION: E, META_CAPABILITIES: 5}}
    ),
    "call alone with another revision": request(
        "c", "tools/call", {"name": "t", "_meta": {META_VERSION: 5, META_CAPABILITIES: {}}}
    ),
    "discover": stateless_request("d", "server/discover"),
    "discover in a session": request("d", "server/discover"),
    "level": request("l", "logging/setLevel", {"level": "error"}),
    "another level": request("l", "logging/setLevel", {"level": "loud"}),
    "level alone": stateless_request("l", "logging/setLevel", {"level": "error"}),
    "subscribe": request("s", "resources/subscribe", {"uri": "x:2"}),
    "subscribe again": request("s", "resources/subscribe", {"uri": "x:1"}),
    "unsubscribe": request("s", "resources/unsubscribe", {"uri": "x:1"}),
    "subscribe alone": stateless_request("s", "resources/subscribe", {"uri": "x:2"}),
    "listen": stateless_request(
        "s", "subscriptions/listen", {"notifications": {"promptsListChanged": True}}
    ),
    "listen with an id in use": stateless_request(9, "subscriptions/listen", {"notifications": {}}),
    "listen in a session": request("s", "subscriptions/listen", {"notifications": {}}),
    "roots changed": notification("notifications/roots/list_changed"),
    "task": request("k", "tasks/get", {"taskId": "task-1"}),
    "task alone": stateless_request("k", "tasks/get", {"taskId": "task-1"}),
    "sampling of the wrong side": request("x", "sampling/createMessage", _SAMPLE),
}
_TO_CLIENT: Final[dict[str, Message | list[Any] | str]] = {
    "initialize result": result(
        7001,
        {
            "protocolVersion": D,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
            "instructions": "be brief",
        },
    ),
    "initialize result of another revision": result(
        7001,
        {"protocolVersion": A, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}},
    ),
    "initialize result of no revision": result(7001, {"capabilities": {}}),
    "discover result": result(
        7001, {"resultType": "complete", "supportedVersions": [E, D], "capabilities": {}}
    ),
    "discover result of others": result(
        7001, {"resultType": "complete", "supportedVersions": [D], "capabilities": {}}
    ),
    "no such method": error(7001, -32601, "no"),
    "input required": result(
        7001,
        {
            "resultType": "input_required",
            "inputRequests": {"a": {"method": "roots/list"}},
            "requestState": "s",
        },
    ),
    "tools": result(7001, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
    "broken tools": result(7001, {"tools": [{"name": 5}, {"name": "t", "inputSchema": {}}]}),
    "complete": result(7001, {"resultType": "complete", "tools": [], "nextCursor": "n"}),
    "unknown kind": result(7001, {"resultType": "odd", "tools": []}),
    "roots": request("r", "roots/list"),
    "sampling": request("r", "sampling/createMessage", _SAMPLE),
    "sampling without a limit": request("r", "sampling/createMessage", {"messages": []}),
    "form": request("r", "elicitation/create", _FORM),
    "form without a schema": request("r", "elicitation/create", {"message": "m"}),
    "log": notification("notifications/message", {"level": "info", "data": {"x": 1}}),
    "log with a logger": notification(
        "notifications/message", {"level": "error", "logger": "l", "data": "x"}
    ),
    "log of another level": notification("notifications/message", {"level": "x", "data": 1}),
    "tools changed": notification("notifications/tools/list_changed"),
    "tools changed of a subscription": notification(
        "notifications/tools/list_changed", _meta(io_modelcontextprotocol=1)
    ),
    "resource changed": notification("notifications/resources/updated", {"uri": "x:1"}),
    "resource changed without a URI": notification("notifications/resources/updated", {}),
    "acknowledged": notification(
        "notifications/subscriptions/acknowledged",
        {
            "notifications": {"toolsListChanged": True},
            "_meta": {"io.modelcontextprotocol/subscriptionId": 7001},
        },
    ),
    "task state": notification(
        "notifications/tasks/status", {"taskId": "task-1", "status": "working"}
    ),
    "call of the wrong side": request("x", "tools/call", {"name": "t"}),
    "list of the wrong side": request("x", "tools/list"),
}
_MESSAGES: Final = {
    _SERVER: {**_EACH_ROLE, **_TO_SERVER},
    _CLIENT: {**_EACH_ROLE, **_TO_CLIENT},
}


# -- Calls -----------------------------------------------------------------------------------------

_Calls = dict[str, Callable[[Connection], Any]]


def _first(conn: Connection) -> t.RequestId:
    """Return the id of the first request that waits for a response."""
    return next(iter(conn._outgoing.table), 1)


def _in_turn(*calls: Callable[[Connection], object]) -> Callable[[Connection], None]:
    def do(conn: Connection) -> None:
        for each in calls:
            each(conn)

    return do


_LEVEL: Final[t.LoggingLevel] = "error"
_STATUS: Final = t.TaskStatusParams(
    task_id="task-1", status="working", created_at="c", last_updated_at="u", ttl=None
)
_OF_EACH: Final[_Calls] = {
    "open": lambda conn: conn.open(3.0),
    "ping": lambda conn: conn.send_request("ping", token="k"),
    "request of roots": lambda conn: conn.send_request("roots/list", token="k"),
    "request of roots in a request": lambda conn: conn.send_request("roots/list", related=1),
    "request of sampling": lambda conn: conn.send_request("sampling/createMessage", _SAMPLE),
    "request of a form": lambda conn: conn.send_request("elicitation/create", _FORM),
    "request of tools": lambda conn: conn.send_request("tools/list", meta={"m": 1}, progress=True),
    "call": lambda conn: conn.send_request("tools/call", {"name": "t"}, headers={"h": "v"}),
    "call with a task": lambda conn: conn.send_request(
        "tools/call", {"name": "t", "task": {"ttl": 5}}
    ),
    "unknown request": lambda conn: conn.send_request("odd/method", {"x": 1}),
    "request without a name": lambda conn: conn.send_request(""),
    "notification as a request": lambda conn: conn.send_request("notifications/initialized"),
    "initialize": lambda conn: conn.send_request("initialize", {}),
    "listen": lambda conn: conn.send_request("subscriptions/listen", {"notifications": {}}),
    "request that is not JSON": lambda conn: conn.send_request("tools/call", {"name": object()}),
    "initialized": lambda conn: conn.send_notification("notifications/initialized"),
    "roots changed": lambda conn: conn.send_notification("notifications/roots/list_changed"),
    "tools changed": lambda conn: conn.send_notification("notifications/tools/list_changed"),
    "unknown notification": lambda conn: conn.send_notification("notifications/odd", {"x": 1}),
    "unknown notification in a request": lambda conn: conn.send_notification(
        "notifications/odd", related=1
    ),
    "request as a notification": lambda conn: conn.send_notification("tools/list"),
    "result": lambda conn: conn.send_result(1, {"roots": [], "content": []}),
    "result twice": lambda conn: [conn.send_result(1, {}), conn.send_result(1, {})],
    "raw result": lambda conn: conn.send_result(1, Raw(b'{"content":[]}')),
    "result that is not JSON": lambda conn: conn.send_result(1, {"x": object()}),
    "result of none": lambda conn: conn.send_result("x", {}),
    "error": lambda conn: conn.send_error(1, t.ErrorData(-32000, "m", {"x": 1})),
    "error of none": lambda conn: conn.send_error("x", t.ErrorData(-32000, "m")),
    "error that is not JSON": lambda conn: conn.send_error(1, t.ErrorData(1, "m", object())),
    "progress": lambda conn: [conn.send_progress(1, n, 2, "m") for n in (0.5, 0.5, 1)],
    "progress of none": lambda conn: conn.send_progress("x", 1),
    "progress without end": lambda conn: conn.send_progress(1, float("inf")),
    "log": lambda conn: [conn.send_log(level, {"x": 1}) for level in ("debug", "error")],
    "log in a request": lambda conn: conn.send_log(_LEVEL, "x", logger="l", related=1),
    "log in none": lambda conn: conn.send_log(_LEVEL, "x", related="x"),
    "log with meta": lambda conn: conn.send_log(_LEVEL, None, meta={"m": 1}),
    "log of another level": lambda conn: conn.send_log("loud", "x"),  # type: ignore[arg-type]
    "changes": lambda conn: [
        conn.send_change(each) for each in (Change("tools"), Change("prompts"), Change(uri="x:1"))
    ],
    "change twice": lambda conn: [conn.send_change(Change("tools")) for _ in range(2)],
    "hidden change": lambda conn: conn.send_change(
        Change(uri="x:1"), hides=lambda uri, request: True
    ),
    "change of all resources": lambda conn: conn.send_changes_of_all_resources(),
    "hidden change of all resources": lambda conn: conn.send_changes_of_all_resources(
        lambda uri, request: True
    ),
    "task state": lambda conn: conn.send_task_status(_STATUS),
    "subscribed to a task": lambda conn: [
        conn.is_subscribed_to_task(each) for each in ("task-1", "task-2")
    ],
    "cancel": lambda conn: conn.send_cancel(_first(conn), "r"),
    "cancel twice": _in_turn(
        lambda conn: conn.send_cancel(_first(conn)), lambda conn: conn.send_cancel(_first(conn))
    ),
    "cancel none": lambda conn: conn.send_cancel("x"),
    "failure": lambda conn: conn.receive_failure(_first(conn), McpTrioError("lost"), 4.0),
    "failure over HTTP": lambda conn: conn.receive_failure(
        _first(conn), McpTrioError("lost"), 4.0, status=404
    ),
    "failure of none": lambda conn: conn.receive_failure("x", McpTrioError("lost"), 4.0),
    "shutdown": lambda conn: conn.shutdown(),
    "close": lambda conn: conn.close(),
    "close twice": _in_turn(
        lambda conn: conn.close(), lambda conn: conn.close(McpTrioError("again"))
    ),
    "close with an error": lambda conn: conn.close(McpTrioError("why")),
    "close with an answer": lambda conn: conn.close(answer=t.ErrorData(-1, "over")),
    "retire": lambda conn: conn.retire(),
    "shutdown and close": _in_turn(Connection.shutdown, Connection.close),
    "reinitialize": lambda conn: conn.reinitialize(5.0) if conn.role is _CLIENT else None,
    "end": lambda conn: conn.receive_data(b"", 6.0),
    "end in a message": _in_turn(
        lambda conn: conn.receive_data(b'{"jsonrpc"', 6.0),
        lambda conn: conn.receive_data(b"", 6.0),
    ),
    "29 seconds": lambda conn: conn.handle_timeout(29.0),
    "30 seconds": lambda conn: conn.handle_timeout(30.0),
    "60 seconds": _in_turn(
        lambda conn: conn.handle_timeout(30.0), lambda conn: conn.handle_timeout(60.0)
    ),
    "facts": lambda conn: [
        conn.in_flight,
        conn.now,
        conn.probing,
        conn.queued(),
        conn.queued(1),
        conn.has_incoming(1),
        conn.has_incoming(9),
        conn.has_outgoing(1),
        conn.describe_unreadable(),
    ],
}


# -- Outcomes --------------------------------------------------------------------------------------


def _shown(value: Any) -> str:
    if isinstance(value, Peer):
        peer = [value.dialect.version, value.info.name if value.info is not None else None]
        return f"{peer} {value.log_level} {value.instructions} {_shown(value.capabilities)}"
    if isinstance(value, Method):
        return value.name
    if isinstance(value, McpTrioError):
        more = [
            f"{name} {_shown(getattr(value, name))}"
            for name in ("fault", "code", "data")
            if getattr(value, name, None) not in (None, UNSET)
        ]
        return f"{type(value).__name__}({', '.join((str(value), *more))})"
    if isinstance(value, bytes | Raw):
        return bytes(value).decode()
    if isinstance(value, dict | list | Struct):
        return json.dumps(to_builtins(value), separators=(",", ":"))
    return str(value)


def _event(event: Event) -> str:
    fields = {name: getattr(event, name) for name in event.__struct_fields__}
    defaults = dict(
        zip(
            event.__struct_fields__[-len(event.__struct_defaults__) or 99 :],
            event.__struct_defaults__,
            strict=False,
        )
    )
    members = [
        f"{name} {_shown(value)}"
        for name, value in fields.items()
        if name not in ("raw", "redirect_progress")
        and not (name in defaults and value == defaults[name])
        and not (name == "peer" and type(event).__name__ != "PeerReady" and value is not None)
    ]
    version = fields["peer"].dialect.version if fields.get("peer") is not None else ""
    return f"{type(event).__name__}({', '.join(members)}) {version}".rstrip()


def _facts(conn: Connection) -> dict[str, Any]:
    stats = conn.stats()
    names = ("in_flight", "waiting", "calls", "events", "buffered", "queued", "rejected")
    return {
        "state": conn.state.name,
        "until": conn.next_deadline(),
        **{name: getattr(stats, name) for name in names},
    }


def _outcome(
    harness: ConnectionHarness, version: str, before: dict[str, Any], returned: str = ""
) -> str:
    """Return what was returned and what has changed, and the events and messages."""
    conn = harness.conn
    events = harness.events()
    lines = [_event(each) for each in events]
    texts = [str(each.error) for each in events if isinstance(each, MessageRejected)]
    for each in conn.messages_to_send():
        of = f" of {each.related}" if each.related is not None else ""
        data = each.data.decode().replace('"jsonrpc":"2.0",', "")
        for text in filter(None, texts):
            data = data.replace(text, "~")
        lines.append(f"> {each.kind.name.lower()}{of} {data}")
    changed = [f"{name} {each}" for name, each in _facts(conn).items() if each != before[name]]
    facts = f"{returned} {', '.join(changed)}".strip()
    found = "\n".join((facts, *(f"    {each}" for each in lines)))
    # A revision's own name, and the words of another package.
    found = found.replace(f"revision {version}", "revision V").replace(f") {version}", ") V")
    return _WORDS.sub("...", found)


def _of_message(harness: ConnectionHarness, version: str, message: Any) -> str:
    harness.now = 2.0
    before = _facts(harness.conn)
    if before["until"] == 30.0:
        before["until"] = 32.0  # the message shows that the peer is there
    data = message if isinstance(message, str) else json.dumps(message)
    asked = [*harness.conn._outgoing.table, 1, 2]
    data = data.replace("7001", str(asked[0])).replace("7002", str(asked[1]))
    harness.conn.receive_data(data.encode() + b"\n", harness.now)
    return _outcome(harness, version, before)


def _of_call(harness: ConnectionHarness, version: str, call: Callable[[Connection], Any]) -> str:
    before = _facts(harness.conn)
    try:
        returned = call(harness.conn)
    except LocalProtocolError as exc:
        more = f" {exc.fault.name} {_shown(exc.data)}" if exc.data is not UNSET else ""
        return _outcome(harness, version, before, f"LocalProtocolError: {exc}{more};")
    except (TypeError, ValueError) as exc:
        return _outcome(harness, version, before, f"{type(exc).__name__};")
    return _outcome(harness, version, before, "" if returned is None else f"{_shown(returned)};")


@cache
def _at(role: Role, place: int) -> dict[str, str]:
    """Return the outcome of each message and each call at one of a role's states."""
    _, version, make, _ = _STATES[role][place]
    return {
        f"receive {name}": _of_message(make(role, version), version, each)
        for name, each in _MESSAGES[role].items()
    } | {
        f"do {name}": _of_call(make(role, version), version, each)
        for name, each in _OF_EACH.items()
    }


def outcomes() -> list[str]:
    """Return the names of the states, with their roles and revisions."""
    return [
        f"{role.value} {place}: {name} in {version}"
        for role, states in _STATES.items()
        for place, (name, version, _, _) in enumerate(states)
    ]


def outcomes_at(name: str) -> str:
    """Return the outcomes at one of `outcomes`."""
    role, place = name.partition(":")[0].split(" ")
    base = _STATES[Role(role)][int(place)].base
    first, found = _at(Role(role), base), _at(Role(role), int(place))
    is_base = int(place) == base
    listed = {what: each for what, each in found.items() if is_base or each != first[what]}
    same: dict[str, list[str]] = {}
    for what, each in listed.items():
        same.setdefault(each or "nothing", []).append(what)
    lines = [f"  {', '.join(whats)}: {each}" for each, whats in same.items()]
    return "\n".join(lines).replace(": \n", ":\n").encode("ascii", "backslashreplace").decode()


def kept_outcomes() -> dict[str, str]:
    """Return the outcomes in the file, by the names of the states."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: outcomes_at(name) for name in outcomes()})
