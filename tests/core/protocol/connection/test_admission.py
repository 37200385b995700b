"""The checks of incoming requests: the first one that fails determines the error response."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Struct

from mcp_core import ALL, DIALECTS, Config, Fault, Method, Peer, Role, State
from mcp_core import types as t
from mcp_core.protocol.connection._admission import AdmittedRequest, admit
from mcp_core.protocol.messages._rejection import RequestRejected
from mcp_core.protocol.revisions._capabilities import with_tasks
from tests.harness.jsonrpc import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    META_CAPABILITIES,
    META_CLIENT,
    META_VERSION,
    SERVER_CAPABILITIES,
    STATEFUL,
    STATELESS_META,
    VERSIONS,
    A,
    B,
    C,
    D,
    E,
    client_config,
    initialize,
    server_config,
)

SERVER, CLIENT = Role.SERVER, Role.CLIENT
NEW, OPENING, READY, CLOSING = State.NEW, State.OPENING, State.READY, State.CLOSING
CALL: Any = {"name": "t"}
MODERN: Any = {"_meta": STATELESS_META}


class AddParams(Struct):
    a: int


ADD = Method("acme/add", None, AddParams, t.EmptyResult)
ALL_ERAS = server_config(methods=[ADD])
STATEFUL_ONLY = server_config(*STATEFUL, methods=[ADD])
STATELESS_ONLY = server_config(E, methods=[ADD])
NEWS_TOO = server_config(methods=[Method("notifications/acme/news", None, t.NotificationParams)])


def session_peer_of(version: str) -> Peer:
    return Peer(DIALECTS[version], CLIENT_CAPABILITIES, CLIENT_INFO)


def admitted(
    method: str,
    params: Any = None,
    *,
    config: Config = ALL_ERAS,
    role: Role = SERVER,
    state: State = READY,
    session_peer: Peer | None = None,
) -> AdmittedRequest:
    raw = b"{}" if params is None else json.dumps(params).encode()
    return admit(method, raw, role=role, config=config, state=state, session_peer=session_peer)


# -- Whose request it is ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL)
@pytest.mark.parametrize("state", [OPENING, READY])
def test_admit_after_handshake_uses_session_peer(version: str, state: State) -> None:
    found = admitted("tools/call", CALL, state=state, session_peer=session_peer_of(version))
    assert found.row is DIALECTS[version].receives[SERVER]["tools/call"]
    terms = ALL_ERAS.dialect_configs[SERVER][DIALECTS[version]]
    assert found == AdmittedRequest(
        found.row, t.CallToolParams(name="t"), session_peer_of(version), terms, None
    )


@pytest.mark.requirement("META-7", "META-9", "CAP-5", "VER-7", "VER-9", "VER-14")
@pytest.mark.parametrize("config", [ALL_ERAS, STATELESS_ONLY])
@pytest.mark.parametrize(
    ("state", "session_peer"),
    [(NEW, None), (OPENING, session_peer_of(C)), (READY, session_peer_of(D))],
)
def test_admit_stateless_request_ignores_session_peer(
    config: Config, state: State, session_peer: Peer | None
) -> None:
    """Capabilities of a session on the same connection do not leak into the request."""
    meta = {META_VERSION: E, META_CAPABILITIES: {"elicitation": {}}}
    found = admitted(
        "tools/call", CALL | {"_meta": meta}, config=config, state=state, session_peer=session_peer
    )
    assert found.peer == Peer(
        DIALECTS[E], t.ClientCapabilities(elicitation=t.ElicitationCapability())
    )
    full = meta | {
        META_CLIENT: {"name": "c", "version": "1"},
        "io.modelcontextprotocol/logLevel": "error",
    }
    found = admitted(
        "tools/call", CALL | {"_meta": full}, config=config, state=state, session_peer=session_peer
    )
    assert (found.peer.info, found.peer.log_level) == (t.Implementation("c", "1"), "error")


@pytest.mark.requirement("META-11")
@pytest.mark.parametrize("name", ["nobody", "inspector", ""])
def test_admit_client_info_does_not_affect_checks(name: str) -> None:
    meta = STATELESS_META | {META_CLIENT: {"name": name, "version": ""}}
    found = admitted("tools/call", CALL | {"_meta": meta})
    assert found.peer.info == t.Implementation(name, "")
    assert (found.row.name, found.peer.dialect.version) == ("tools/call", E)


@pytest.mark.requirement("LIFE-4")
@pytest.mark.parametrize("config", [ALL_ERAS, STATEFUL_ONLY])
@pytest.mark.parametrize(
    ("sent", "answered"), [*((v, v) for v in STATEFUL), (E, D), ("1999-01-01", D), ("x", D)]
)
def test_admit_initialize_negotiates_revision(config: Config, sent: str, answered: str) -> None:
    found = admitted("initialize", initialize(sent)["params"], config=config, state=NEW)
    assert found.peer.dialect.version == answered
    assert found.peer.capabilities == CLIENT_CAPABILITIES
    assert found.peer.info == CLIENT_INFO


@pytest.mark.requirement("PING-2")
@pytest.mark.parametrize(
    ("role", "config", "state", "session_peer"),
    [
        (SERVER, ALL_ERAS, NEW, None),
        (SERVER, STATEFUL_ONLY, OPENING, session_peer_of(A)),
        (SERVER, ALL_ERAS, READY, session_peer_of(D)),
        (SERVER, ALL_ERAS, CLOSING, session_peer_of(D)),
        (CLIENT, client_config(), NEW, None),
        (CLIENT, client_config(), OPENING, None),
        (CLIENT, client_config(), READY, session_peer_of(B)),
    ],
)
def test_admit_ping_before_handshake_accepted(
    role: Role, config: Config, state: State, session_peer: Peer | None
) -> None:
    found = admitted("ping", config=config, role=role, state=state, session_peer=session_peer)
    assert found.row.name == "ping"
    assert found.peer.dialect.stateful


@pytest.mark.parametrize("version", STATEFUL)
def test_admit_server_request_at_client_uses_session_peer(version: str) -> None:
    config = client_config(version, methods=[ADD])
    peer = Peer(DIALECTS[version], t.ServerCapabilities())
    found = admitted("roots/list", config=config, role=CLIENT, session_peer=peer)
    assert (found.row.to, found.peer) == (CLIENT, peer)
    # A client ignores `_meta` that would make the request of a server stateless.
    assert (
        admitted("roots/list", MODERN, config=config, role=CLIENT, session_peer=peer).peer is peer
    )
    assert admitted(
        "acme/add", {"a": 1}, config=config, role=CLIENT, session_peer=peer
    ).params == AddParams(1)


@pytest.mark.requirement("META-14")
@pytest.mark.parametrize(
    ("method", "params"), [("tools/call", CALL), ("acme/add", {"a": 1})], ids=["of MCP", "custom"]
)
@pytest.mark.parametrize("token", [7, "seven", 0, ""])
def test_admit_progress_token_is_read(method: str, params: Any, token: Any) -> None:
    for meta in ({}, STATELESS_META):
        found = admitted(
            method,
            params | {"_meta": meta | {"progressToken": token}},
            session_peer=session_peer_of(D),
        )
        assert found.progress_token == token
        assert type(found.progress_token) is type(token)


def test_admit_custom_method_params_are_decoded() -> None:
    assert admitted("acme/add", {"a": 1} | MODERN, state=NEW).params == AddParams(1)
    assert admitted("acme/add", {"a": 1} | MODERN, state=NEW).peer.dialect.version == E


# -- Whose is not ----------------------------------------------------------------------------------

SERVED = {"supported": list(ALL)}
HALF: Any = {META_VERSION: E}
OTHER_HALF: Any = {META_CAPABILITIES: {}}
REMEMBERED = session_peer_of(D)

# method, params, config, state, session_peer;
# fault, data, part of the message, revision whose code is used
REFUSED: list[Any] = [
    # No sender
    pytest.param("tools/call", CALL, ALL_ERAS, NEW, None, Fault.INVALID_REQUEST, UNSET, "send initialize first", None, id="before initialize"),
    pytest.param("odd", None, ALL_ERAS, NEW, None, Fault.INVALID_REQUEST, UNSET, "send initialize first", None, id="unknown, before initialize"),
    pytest.param("tools/call", CALL, STATELESS_ONLY, NEW, None, Fault.INVALID_PARAMS, {"supported": [E]}, "must have", E, id="no _meta"),
    pytest.param("ping", None, STATELESS_ONLY, NEW, None, Fault.INVALID_PARAMS, {"supported": [E]}, "must have", E, id="ping without _meta"),
    pytest.param("initialize", initialize()["params"], STATELESS_ONLY, NEW, None, Fault.INVALID_PARAMS, {"supported": [E]}, "must have", E, id="initialize at a stateless server"),
    # Incomplete `_meta`
    pytest.param("tools/call", CALL | {"_meta": HALF}, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "lacks io.modelcontextprotocol/clientCapabilities", E, id="no capabilities"),
    pytest.param("tools/call", CALL | {"_meta": OTHER_HALF}, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "lacks io.modelcontextprotocol/protocolVersion", E, id="no version"),
    pytest.param("tools/call", CALL | {"_meta": HALF}, ALL_ERAS, READY, REMEMBERED, Fault.INVALID_PARAMS, UNSET, "lacks", E, id="half in a session"),
    pytest.param("tools/call", CALL | {"_meta": HALF | {META_CAPABILITIES: []}}, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "lacks io.modelcontextprotocol/clientCapabilities", E, id="capabilities no object"),
    pytest.param("tools/call", CALL | {"_meta": OTHER_HALF | {META_VERSION: 1}}, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "lacks io.modelcontextprotocol/protocolVersion", E, id="version no text"),
    pytest.param("odd", {"_meta": HALF}, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "lacks", E, id="half of an unknown method"),
    pytest.param("acme/add", {"a": 1, "_meta": HALF}, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "lacks", E, id="half of a custom method"),
    # Revisions that are not served
    pytest.param("tools/call", CALL | {"_meta": STATELESS_META | {META_VERSION: "2099-01-01"}}, ALL_ERAS, NEW, None, Fault.UNSUPPORTED_VERSION, SERVED | {"requested": "2099-01-01"}, "2099-01-01 is not served", E, id="from the future"),
    pytest.param("tools/call", CALL | {"_meta": STATELESS_META | {META_VERSION: D}}, ALL_ERAS, NEW, None, Fault.UNSUPPORTED_VERSION, SERVED | {"requested": D}, "without a handshake", E, id="a stateful revision"),
    pytest.param("server/discover", MODERN, STATEFUL_ONLY, NEW, None, Fault.UNSUPPORTED_VERSION, {"supported": list(ALL[1:]), "requested": E}, "not served", D, id="a probe at a stateful server"),
    pytest.param("server/discover", {"_meta": STATELESS_META | {META_VERSION: "x"}}, STATELESS_ONLY, NEW, None, Fault.UNSUPPORTED_VERSION, {"supported": [E], "requested": "x"}, "x is not served", E, id="discover too"),
    pytest.param("odd", {"_meta": STATELESS_META | {META_VERSION: "x"}}, ALL_ERAS, NEW, None, Fault.UNSUPPORTED_VERSION, SERVED | {"requested": "x"}, "x is not served", E, id="before the method"),
    pytest.param("tools/call", {"name": 1, "_meta": STATELESS_META | {META_VERSION: "x"}}, ALL_ERAS, NEW, None, Fault.UNSUPPORTED_VERSION, SERVED | {"requested": "x"}, "x is not served", E, id="before the params"),
    # Not legal in this state
    pytest.param("initialize", initialize()["params"], ALL_ERAS, OPENING, REMEMBERED, Fault.INVALID_REQUEST, UNSET, "already sent", D, id="initialize twice"),
    pytest.param("initialize", initialize(A)["params"], ALL_ERAS, READY, REMEMBERED, Fault.INVALID_REQUEST, UNSET, "already initialized", D, id="initialize again"),
    pytest.param("tools/call", CALL, ALL_ERAS, CLOSING, REMEMBERED, Fault.BUSY, UNSET, "shut down", D, id="when closing"),
    pytest.param("tools/call", CALL | MODERN, ALL_ERAS, CLOSING, None, Fault.BUSY, UNSET, "shut down", E, id="when closing, stateless"),
    # Unknown or undeclared method
    *(
        pytest.param("odd", None, ALL_ERAS, READY, session_peer_of(v), Fault.METHOD_NOT_FOUND, UNSET, f"that a server of revision {v} knows", v, id=f"unknown, {v}")
        for v in STATEFUL
    ),
    pytest.param("odd", MODERN, ALL_ERAS, NEW, None, Fault.METHOD_NOT_FOUND, UNSET, "that a server of revision 2026-07-28 knows", E, id="unknown, stateless"),
    pytest.param("ping", MODERN, ALL_ERAS, READY, REMEMBERED, Fault.METHOD_NOT_FOUND, UNSET, "ping", E, id="ping, stateless"),
    pytest.param("resources/subscribe", {"uri": "a:b"} | MODERN, ALL_ERAS, NEW, None, Fault.METHOD_NOT_FOUND, UNSET, "", E, id="subscribe, stateless", marks=pytest.mark.requirement("RES-6")),
    pytest.param("logging/setLevel", {"level": "error"} | MODERN, ALL_ERAS, NEW, None, Fault.METHOD_NOT_FOUND, UNSET, "", E, id="setLevel, stateless"),
    pytest.param("server/discover", None, ALL_ERAS, READY, REMEMBERED, Fault.METHOD_NOT_FOUND, UNSET, "server/discover", D, id="discover in a session"),
    pytest.param("subscriptions/listen", {"notifications": {}}, ALL_ERAS, READY, REMEMBERED, Fault.METHOD_NOT_FOUND, UNSET, "", D, id="listen in a session"),
    pytest.param("roots/list", None, ALL_ERAS, READY, REMEMBERED, Fault.METHOD_NOT_FOUND, UNSET, "", D, id="a client's method"),
    pytest.param("initialize", initialize()["params"] | MODERN, ALL_ERAS, NEW, None, Fault.METHOD_NOT_FOUND, SERVED, "initialize", E, id="initialize with an envelope"),
    pytest.param("initialize", MODERN, STATELESS_ONLY, NEW, None, Fault.METHOD_NOT_FOUND, {"supported": [E]}, "initialize", E, id="the same at a stateless server"),
    pytest.param("notifications/cancelled", {"requestId": 1}, ALL_ERAS, READY, REMEMBERED, Fault.METHOD_NOT_FOUND, UNSET, "is a notification", D, id="a notification with an id"),
    pytest.param("notifications/acme/news", None, NEWS_TOO, READY, REMEMBERED, Fault.METHOD_NOT_FOUND, UNSET, "news", D, id="a custom one"),
    # Invalid params
    pytest.param("tools/call", {"name": 1}, ALL_ERAS, READY, REMEMBERED, Fault.INVALID_PARAMS, UNSET, "the params of tools/call do not fit: Expected `str`", D, id="wrong"),
    pytest.param("tools/call", None, ALL_ERAS, READY, REMEMBERED, Fault.INVALID_PARAMS, UNSET, "name", D, id="missing"),
    pytest.param("tools/call", [], ALL_ERAS, READY, REMEMBERED, Fault.INVALID_PARAMS, UNSET, "got `array`", D, id="array"),
    pytest.param("tools/call", {"name": 1} | MODERN, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "do not fit", E, id="wrong, stateless"),
    pytest.param("tools/call", CALL | {"_meta": STATELESS_META | {META_CAPABILITIES: {"roots": 5}}}, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "roots", E, id="wrong capabilities"),
    pytest.param("tools/call", CALL | {"_meta": STATELESS_META | {"io.modelcontextprotocol/logLevel": "loud"}}, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "loud", E, id="wrong log level"),
    pytest.param("tools/call", CALL | {"_meta": {"progressToken": 1.5}}, ALL_ERAS, READY, REMEMBERED, Fault.INVALID_PARAMS, UNSET, "progressToken", D, id="wrong progress token"),
    pytest.param("acme/add", {"a": "1"}, ALL_ERAS, READY, REMEMBERED, Fault.INVALID_PARAMS, UNSET, "got `str`", D, id="wrong, custom"),
    pytest.param("acme/add", {"a": 1, "_meta": STATELESS_META | {"progressToken": {}}}, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "progressToken", E, id="wrong _meta, custom"),
    pytest.param("initialize", {}, ALL_ERAS, NEW, None, Fault.INVALID_PARAMS, UNSET, "the params of initialize do not fit", None, id="initialize"),
]  # fmt: skip


@pytest.mark.requirement(
    "META-8",
    "RPC-15",
    "RPC-18",
    "VER-1",
    "VER-6",
    "VER-15",
    "CAP-6",
    "CAP-7",
    "LIFE-10",
    "LIFE-12",
    "PING-5",
)
@pytest.mark.parametrize(
    ("method", "params", "config", "state", "session_peer", "fault", "data", "words", "version"),
    REFUSED,
)
def test_admit_first_failed_check_determines_rejection(
    method: str,
    params: Any,
    config: Config,
    state: State,
    session_peer: Peer | None,
    fault: Fault,
    data: Any,
    words: str,
    version: str | None,
) -> None:
    """The rejection also has the revision to write the error response in, if one is known."""
    with pytest.raises(RequestRejected) as caught:
        admitted(method, params, config=config, state=state, session_peer=session_peer)
    refusal = caught.value
    assert (refusal.fault, refusal.data, refusal.may_respond) == (fault, data, True)
    assert (refusal.dialect.version if refusal.dialect is not None else None) == version
    assert words in refusal.message
    assert str(refusal) == refusal.message


def test_admit_long_version_is_truncated_in_message() -> None:
    with pytest.raises(RequestRejected) as caught:
        admitted("tools/call", {"_meta": STATELESS_META | {META_VERSION: "x" * 10_000}})
    assert len(caught.value.message) < 200


@pytest.mark.requirement("CAP-6", "CAP-7")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("method", ["tools/list", "tools/call", "prompts/get", "resources/read"])
def test_admit_undeclared_server_capability_is_method_not_found(version: str, method: str) -> None:
    config = server_config(capabilities=t.ServerCapabilities())
    peer, params = (session_peer_of(version), {}) if DIALECTS[version].stateful else (None, MODERN)
    state = NEW if peer is None else READY
    with pytest.raises(RequestRejected, match=f"this server does not offer {method}") as caught:
        admitted(method, {"name": 1} | params, config=config, state=state, session_peer=peer)
    assert caught.value.fault is Fault.METHOD_NOT_FOUND


@pytest.mark.requirement("CAP-7")
@pytest.mark.parametrize("version", STATEFUL)
def test_admit_undeclared_client_capability_is_method_not_found(version: str) -> None:
    config = client_config(version, capabilities=t.ClientCapabilities())
    with pytest.raises(RequestRejected, match="this client does not offer roots/list") as caught:
        admitted(
            "roots/list",
            config=config,
            role=CLIENT,
            session_peer=Peer(DIALECTS[version], t.ServerCapabilities()),
        )
    assert caught.value.fault is Fault.METHOD_NOT_FOUND


@pytest.mark.requirement("RPC-27", "RPC-29", "STDIO-8")
@pytest.mark.parametrize("method", ["ping", "roots/list", "odd"])
@pytest.mark.parametrize(
    ("state", "session_peer"),
    [(READY, Peer(DIALECTS[E], t.ServerCapabilities())), (OPENING, None), (NEW, None)],
)
def test_admit_request_at_stateless_client_gets_no_response(
    method: str, state: State, session_peer: Peer | None
) -> None:
    with pytest.raises(RequestRejected) as caught:
        admitted(
            method, config=client_config(E), role=CLIENT, state=state, session_peer=session_peer
        )
    assert not caught.value.may_respond


@pytest.mark.parametrize("method", ["roots/list", "odd"])
def test_admit_request_while_client_opens_rejected(method: str) -> None:
    with pytest.raises(RequestRejected, match="has not been initialized") as caught:
        admitted(method, config=client_config(), role=CLIENT, state=OPENING)
    assert (caught.value.fault, caught.value.may_respond) == (Fault.INVALID_REQUEST, True)


# -- Tasks -----------------------------------------------------------------------------------------

EXTENSION = "io.modelcontextprotocol/tasks"
TASK_SERVER = server_config(capabilities=with_tasks(SERVER_CAPABILITIES, may_list=True))
TASK_OPTIONS: Any = {"config": TASK_SERVER, "state": NEW}
TASK_METHODS = ["tasks/get", "tasks/update", "tasks/cancel"]


def declaring(capabilities: Any) -> Any:
    return {"_meta": {META_VERSION: E, META_CAPABILITIES: capabilities}}


def rejection_of(method: str, params: Any, **options: Any) -> RequestRejected:
    with pytest.raises(RequestRejected) as caught:
        admitted(method, params, **TASK_OPTIONS | options)
    return caught.value


@pytest.mark.requirement("TX-22", "CAP-7")
@pytest.mark.parametrize("method", TASK_METHODS)
@pytest.mark.parametrize(
    "capabilities",
    [
        {},
        {"extensions": {}},
        {"extensions": {EXTENSION: None}},
        {"extensions": {EXTENSION: False}},
        {"extensions": {"com.example/tasks": {}}},
        {"experimental": {EXTENSION: {}}},
        {"tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}},
    ],
)
@pytest.mark.parametrize("params", [{"taskId": "t", "inputResponses": {}}, {}, {"taskId": 1}])
def test_admit_task_request_of_undeclaring_client_rejected_before_params(
    method: str, capabilities: Any, params: Any
) -> None:
    rejected = rejection_of(method, params | declaring(capabilities))
    assert (rejected.fault, rejected.data) == (
        Fault.MISSING_CAPABILITY,
        {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
    )
    assert f"{method} needs the client capability extensions.{EXTENSION}" in rejected.message
    assert rejected.dialect is DIALECTS[E]


@pytest.mark.parametrize("method", TASK_METHODS)
def test_admit_task_request_of_declaring_client_checks_params(method: str) -> None:
    declared = declaring({"extensions": {EXTENSION: {}}})
    params = {"taskId": "t", "inputResponses": {}} | declared
    assert admitted(method, params, config=TASK_SERVER, state=NEW).params.task_id == "t"
    for wrong in ({}, {"taskId": 1}):
        assert rejection_of(method, wrong | declared).fault is Fault.INVALID_PARAMS


@pytest.mark.requirement("TX-22")
@pytest.mark.parametrize(
    ("config", "method", "version"),
    [
        *((TASK_SERVER, method, E) for method in ("tasks/result", "tasks/list")),
        *((ALL_ERAS, method, E) for method in TASK_METHODS),
        *((ALL_ERAS, f"tasks/{verb}", D) for verb in ("get", "result", "list", "cancel")),
        *((TASK_SERVER, f"tasks/{verb}", C) for verb in ("get", "result", "list", "cancel")),
        (TASK_SERVER, "tasks/update", D),
    ],
)
def test_admit_task_request_not_offered_is_method_not_found(
    config: Config, method: str, version: str
) -> None:
    params: Any = {"taskId": "t"}
    if version == E:
        rejected = rejection_of(method, params | declaring({}), config=config)
    else:
        peer = session_peer_of(version)
        rejected = rejection_of(method, params, config=config, state=READY, session_peer=peer)
    assert rejected.fault is Fault.METHOD_NOT_FOUND


def test_admit_task_request_of_session_asks_for_no_extension() -> None:
    peer = session_peer_of(D)
    params = {"taskId": "t"}
    assert admitted("tasks/get", params, config=TASK_SERVER, session_peer=peer).peer is peer


def test_admit_task_list_not_declared_is_method_not_found() -> None:
    config = server_config(capabilities=with_tasks(SERVER_CAPABILITIES, may_list=False))
    peer = session_peer_of(D)
    assert admitted("tasks/get", {"taskId": "t"}, config=config, session_peer=peer).peer is peer
    rejected = rejection_of("tasks/list", None, config=config, state=READY, session_peer=peer)
    assert rejected.fault is Fault.METHOD_NOT_FOUND


@pytest.mark.requirement("TSK-6")
@pytest.mark.parametrize(
    ("task", "ttl"),
    [
        ({}, UNSET),
        ({"ttl": None}, None),
        ({"ttl": 0}, 0),
        ({"ttl": 60_000}, 60_000),
        ({"ttl": 1500.5}, 1500.5),
        ({"ttl": 10**30}, 10**30),
        ({"ttl": 1, "more": "x"}, 1),
    ],
)
def test_admit_task_metadata_is_decoded(task: Any, ttl: Any) -> None:
    found = admitted(
        "tools/call", CALL | {"task": task}, config=TASK_SERVER, session_peer=session_peer_of(D)
    )
    assert found.params.task == t.TaskMetadata(ttl=ttl)
    assert type(found.params.task.ttl) is type(ttl)


WRONG_TASKS = [{"ttl": "60000"}, {"ttl": -1}, {"ttl": -0.5}, {"ttl": True}, {"ttl": []}, [], "x", 1]


@pytest.mark.requirement("TSK-6")
@pytest.mark.parametrize("task", WRONG_TASKS)
def test_admit_task_metadata_wrong_is_invalid_params(task: Any) -> None:
    rejected = rejection_of(
        "tools/call", CALL | {"task": task}, state=READY, session_peer=session_peer_of(D)
    )
    assert rejected.fault is Fault.INVALID_PARAMS
    assert rejected.message.startswith("the params of tools/call do not fit: Expected ")
    assert "`$.task" in rejected.message


@pytest.mark.requirement("TSK-8", "TX-22")
@pytest.mark.parametrize("task", [*WRONG_TASKS, {"ttl": 1}, None])
@pytest.mark.parametrize(
    ("config", "version"), [(ALL_ERAS, D), (TASK_SERVER, C), (TASK_SERVER, A), (TASK_SERVER, E)]
)
def test_admit_task_metadata_without_meaning_is_ignored(
    task: Any, config: Config, version: str
) -> None:
    """The request is processed, with the same sender and progress token."""
    meta: Any = {"progressToken": 7}
    peer = None if version == E else session_peer_of(version)
    if version == E:
        meta |= {META_VERSION: E, META_CAPABILITIES: {"sampling": {}}}
    params = CALL | {"task": task, "_meta": meta}
    state = NEW if peer is None else READY
    found = admitted("tools/call", params, config=config, state=state, session_peer=peer)
    assert (found.params.name, found.progress_token) == ("t", 7)
    declared = found.peer.capabilities
    assert isinstance(declared, t.ClientCapabilities)
    assert declared.sampling == t.SamplingCapability()


@pytest.mark.parametrize("task", [{"ttl": "x"}, {}])
def test_admit_other_invalid_member_beside_task_is_invalid_params(task: Any) -> None:
    for config in (ALL_ERAS, TASK_SERVER):
        rejected = rejection_of(
            "tools/call",
            {"name": 1, "task": task},
            config=config,
            state=READY,
            session_peer=session_peer_of(D),
        )
        assert rejected.fault is Fault.INVALID_PARAMS


# -- Headers ---------------------------------------------------------------------------------------


class CheckedHeaders:
    """A validator that keeps what it is called with."""

    def __init__(self, *, head: str | None = None, params: str | None = None) -> None:
        self.calls: list[Any] = []
        self._head = head
        self._params = params

    def check_head(self, method: str, version: str, row: Method | None, params: Any) -> str | None:
        shown = params if isinstance(params, bytes) else type(params).__name__
        self.calls.append((method, version, row.name if row is not None else None, shown))
        return self._head

    def check_params(self, row: Method, params: Any) -> str | None:
        self.calls.append((row.name, type(params).__name__))
        return self._params


def admit_with(validator: CheckedHeaders, method: str, params: Any) -> AdmittedRequest:
    raw = json.dumps(params).encode()
    return admit(method, raw, SERVER, ALL_ERAS, READY, None, validator)


@pytest.mark.parametrize(
    ("method", "params", "calls"),
    [
        (
            "tools/call",
            {**CALL, **MODERN},
            [("tools/call", E, "tools/call", "CallToolParams"), ("tools/call", "CallToolParams")],
        ),
        # Without a name, and a method that this revision lacks.
        ("tools/call", MODERN, [("tools/call", E, "tools/call", json.dumps(MODERN).encode())]),
        ("ping", MODERN, [("ping", E, None, "PingParams")]),
    ],
)
def test_headers_are_compared_before_the_method_and_the_params(
    method: str, params: Any, calls: list[Any]
) -> None:
    validator = CheckedHeaders()
    if len(calls) == 1:
        with pytest.raises(RequestRejected) as caught:
            admit_with(validator, method, params)
        assert caught.value.fault is not Fault.HEADER_MISMATCH
    else:
        assert admit_with(validator, method, params).row.name == method
    assert validator.calls == calls


@pytest.mark.parametrize("part", ["head", "params"])
def test_headers_that_differ_reject_the_request(part: str) -> None:
    validator = CheckedHeaders(**{part: "Mcp-Name differs"})
    with pytest.raises(RequestRejected) as caught:
        admit_with(validator, "tools/call", {**CALL, **MODERN})
    assert (caught.value.fault, caught.value.message) == (
        Fault.HEADER_MISMATCH,
        "Mcp-Name differs",
    )
    assert caught.value.dialect is DIALECTS[E]
    assert len(validator.calls) == (1 if part == "head" else 2)


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        ({META_CAPABILITIES: {}}, "_meta lacks io.modelcontextprotocol/protocolVersion"),
        ({META_VERSION: E}, "_meta lacks io.modelcontextprotocol/clientCapabilities"),
    ],
)
def test_sender_of_params_that_do_not_fit_has_to_be_whole(meta: Any, text: str) -> None:
    with pytest.raises(RequestRejected) as caught:
        admitted("tools/call", {"_meta": meta}, session_peer=session_peer_of(D))
    assert (caught.value.fault, caught.value.message) == (Fault.INVALID_PARAMS, text)
