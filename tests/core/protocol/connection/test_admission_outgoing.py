"""The checks of messages that we send."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import DIALECTS, Fault, LocalProtocolError, Method, Peer, Role, State
from mcp_core import types as t
from mcp_core.protocol.connection._admission import may_become_task, may_notify, may_request
from mcp_core.protocol.revisions._capabilities import with_tasks
from tests.harness.jsonrpc import (
    CLIENT_CAPABILITIES,
    SERVER_CAPABILITIES,
    VERSIONS,
    A,
    B,
    C,
    D,
    E,
    client_config,
    server_config,
)

SERVER, CLIENT = Role.SERVER, Role.CLIENT
ADD = Method("acme/add", SERVER, t.RequestParams, t.EmptyResult)
NEWS = Method("notifications/acme/news", None, t.NotificationParams)
CONFIGS = {
    CLIENT: client_config(methods=[ADD, NEWS]),
    SERVER: server_config(methods=[ADD, NEWS]),
}
OFFERS: dict[Role, Any] = {CLIENT: CLIENT_CAPABILITIES, SERVER: SERVER_CAPABILITIES}


def peer_of(role: Role, version: str, capabilities: Any = None) -> Peer:
    return Peer(DIALECTS[version], OFFERS[role.other] if capabilities is None else capabilities)


@pytest.mark.parametrize(
    ("role", "version", "method", "state"),
    [
        *((CLIENT, version, "tools/call", State.READY) for version in VERSIONS),
        (CLIENT, D, "ping", State.READY),
        (CLIENT, E, "server/discover", State.READY),
        (CLIENT, A, "completion/complete", State.READY),
        (CLIENT, E, "acme/add", State.READY),
        (CLIENT, E, "acme/nobody/knows", State.READY),
        (SERVER, A, "roots/list", State.READY),
        (SERVER, C, "elicitation/create", State.OPENING),
        (SERVER, D, "acme/nobody/knows", State.READY),
    ],
)
def test_may_request_allowed_requests(role: Role, version: str, method: str, state: State) -> None:
    row = may_request(method, peer_of(role, version), role, CONFIGS[role], state)
    assert (row.name if row is not None else None) in (method, None)
    assert (row is None) is (method == "acme/nobody/knows")


@pytest.mark.requirement("CAP-3", "LIFE-13", "LIFE-14", "LIFE-15", "RPC-28", "STDIO-7", "CUST-3")
@pytest.mark.parametrize(
    ("role", "version", "method", "state", "words"),
    [
        (
            CLIENT,
            D,
            "server/discover",
            State.READY,
            "not something that a client sends in revision 2025-11-25",
        ),
        (CLIENT, E, "ping", State.READY, "not something that a client sends"),
        (CLIENT, E, "initialize", State.READY, "not something that a client sends"),
        (CLIENT, B, "elicitation/create", State.READY, "not something that a client sends"),
        (SERVER, D, "tools/call", State.READY, "not something that a server sends"),
        (SERVER, B, "elicitation/create", State.READY, "not something that a server sends"),
        (
            CLIENT,
            D,
            "notifications/cancelled",
            State.READY,
            "notifications/cancelled is a notification",
        ),
        (CLIENT, D, "notifications/acme/news", State.READY, "is a notification"),
        (CLIENT, D, "initialize", State.READY, "already initialized"),
        (SERVER, D, "roots/list", State.CLOSING, "not possible when CLOSING"),
        (SERVER, D, "acme/nobody/knows", State.CLOSING, "not possible when CLOSING"),
        # Custom methods neither: a server sends no requests at all in that revision.
        (
            SERVER,
            E,
            "sampling/createMessage",
            State.READY,
            "sends no requests in revision 2026-07-28",
        ),
        (SERVER, E, "acme/nobody/knows", State.READY, "sends no requests in revision 2026-07-28"),
        (SERVER, E, "notifications/message", State.READY, "sends no requests"),
    ],
)
def test_may_request_disallowed_requests_raise(
    role: Role, version: str, method: str, state: State, words: str
) -> None:
    with pytest.raises(LocalProtocolError, match=words):
        may_request(method, peer_of(role, version), role, CONFIGS[role], state)


@pytest.mark.requirement("CAP-3", "LIFE-14")
@pytest.mark.parametrize(
    ("role", "version", "method", "missing"),
    [
        *((CLIENT, version, "tools/call", {"tools": {}}) for version in VERSIONS),
        (CLIENT, D, "resources/subscribe", {"resources": {"subscribe": {}}}),
        (CLIENT, B, "completion/complete", {"completions": {}}),
        (SERVER, A, "sampling/createMessage", {"sampling": {}}),
        (SERVER, D, "elicitation/create", {"elicitation": {}}),
        (SERVER, D, "roots/list", {"roots": {}}),
    ],
)
def test_may_request_undeclared_capability_raises(
    role: Role, version: str, method: str, missing: Any
) -> None:
    nothing = t.ServerCapabilities() if role is CLIENT else t.ClientCapabilities()
    peer = peer_of(role, version, nothing)
    with pytest.raises(
        LocalProtocolError, match=f"the {role.other.value} did not declare .* which {method}"
    ) as caught:
        may_request(method, peer, role, CONFIGS[role], State.READY)
    assert (caught.value.fault, caught.value.data) == (
        Fault.MISSING_CAPABILITY,
        {"requiredCapabilities": missing},
    )


@pytest.mark.requirement("LIFE-9")
@pytest.mark.parametrize(
    ("role", "version", "method", "state"),
    [
        (SERVER, D, "notifications/tools/list_changed", State.READY),
        (SERVER, D, "notifications/message", State.OPENING),
        (SERVER, D, "notifications/message", State.CLOSING),
        (SERVER, E, "notifications/message", State.NEW),
        (SERVER, E, "notifications/tools/list_changed", State.CLOSING),
        (CLIENT, D, "notifications/initialized", State.OPENING),
        (CLIENT, A, "notifications/roots/list_changed", State.READY),
        (CLIENT, E, "notifications/acme/news", State.READY),
        (CLIENT, E, "notifications/nobody/knows", State.NEW),
    ],
)
def test_may_notify_allowed_notifications(
    role: Role, version: str, method: str, state: State
) -> None:
    may_notify(method, peer_of(role, version), role, CONFIGS[role], state)


@pytest.mark.requirement("PROG-8")
@pytest.mark.parametrize(
    ("role", "version", "method", "state", "words"),
    [
        (CLIENT, E, "notifications/progress", State.READY, "not something that a client sends"),
        (CLIENT, E, "notifications/initialized", State.READY, "not something that a client sends"),
        (SERVER, D, "notifications/initialized", State.READY, "not something that a server sends"),
        (
            SERVER,
            D,
            "notifications/roots/list_changed",
            State.READY,
            "not something that a server sends",
        ),
        (SERVER, D, "ping", State.READY, "ping is a request"),
        (CLIENT, D, "acme/add", State.READY, "acme/add is a request"),
        (CLIENT, D, "notifications/initialized", State.READY, "already initialized"),
        (SERVER, D, "notifications/tools/list_changed", State.CLOSING, "not possible when CLOSING"),
    ],
)
def test_may_notify_disallowed_notifications_raise(
    role: Role, version: str, method: str, state: State, words: str
) -> None:
    with pytest.raises(LocalProtocolError, match=words):
        may_notify(method, peer_of(role, version), role, CONFIGS[role], state)


@pytest.mark.requirement("CAP-3")
@pytest.mark.parametrize("version", VERSIONS)
def test_may_notify_own_undeclared_capability_raises(version: str) -> None:
    config = server_config(capabilities=t.ServerCapabilities(tools=t.ToolsCapability()))
    peer = peer_of(SERVER, version)
    with pytest.raises(
        LocalProtocolError, match=r"the capability tools\.list_changed, which we did not declare"
    ):
        may_notify("notifications/tools/list_changed", peer, SERVER, config, State.READY)


# -- Tasks -----------------------------------------------------------------------------------------

EXTENSION = "io.modelcontextprotocol/tasks"
DECLARING = client_config(
    capabilities=t.ClientCapabilities(extensions={EXTENSION: {}}, sampling=t.SamplingCapability())
)
TASK_SERVER: Any = with_tasks(SERVER_CAPABILITIES, may_list=True)
TASK_CLIENT = t.ClientCapabilities(
    sampling=t.SamplingCapability(),
    elicitation=t.ElicitationCapability(),
    tasks=t.TasksCapability(
        requests=t.TaskRequests(
            sampling=t.SamplingTasks(create_message={}), elicitation=t.ElicitationTasks(create={})
        )
    ),
)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_may_request_own_undeclared_extension_raises(method: str) -> None:
    """Because it would be answered with an error."""
    peer = peer_of(CLIENT, E, TASK_SERVER)
    assert may_request(method, peer, CLIENT, DECLARING, State.READY) is not None
    with pytest.raises(LocalProtocolError, match="which we did not declare") as caught:
        may_request(method, peer, CLIENT, CONFIGS[CLIENT], State.READY)
    assert caught.value.data == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}


def may_become(role: Role, version: str, method: str, params: Any, capabilities: Any) -> bool:
    row = DIALECTS[version].receives[role.other][method]
    config = DECLARING if role is CLIENT else CONFIGS[SERVER]
    return may_become_task(row, params, peer_of(role, version, capabilities), config)


TASK: Any = {"task": {}}


@pytest.mark.requirement("TX-4")
@pytest.mark.parametrize(
    ("role", "version", "method", "params", "may"),
    [
        (CLIENT, E, "tools/call", None, True),
        (CLIENT, E, "resources/read", None, False),
        (CLIENT, E, "prompts/get", TASK, False),
        (CLIENT, D, "tools/call", {"name": "t"} | TASK, True),
        (CLIENT, D, "tools/call", t.CallToolParams(name="t", task=t.TaskMetadata()), True),
        (CLIENT, D, "tools/call", {"name": "t", "task": None}, False),
        (CLIENT, D, "tools/call", {"name": "t"}, False),
        (CLIENT, D, "tools/call", t.CallToolParams(name="t"), False),
        (CLIENT, D, "tools/call", None, False),
        (CLIENT, D, "prompts/get", TASK, False),
        (CLIENT, C, "tools/call", TASK, False),
        (SERVER, D, "sampling/createMessage", TASK, True),
        (SERVER, D, "elicitation/create", TASK, True),
        (SERVER, D, "elicitation/create", {}, False),
        (SERVER, C, "elicitation/create", TASK, False),
        (SERVER, D, "roots/list", TASK, False),
    ],
)
def test_may_become_task_depends_on_method_and_what_was_sent(
    role: Role, version: str, method: str, params: Any, may: bool
) -> None:
    capabilities = TASK_SERVER if role is CLIENT else TASK_CLIENT
    assert may_become(role, version, method, params, capabilities) is may


def test_may_become_task_without_declared_extension_is_false() -> None:
    row = DIALECTS[E].receives[SERVER]["tools/call"]
    assert not may_become_task(row, None, peer_of(CLIENT, E, TASK_SERVER), CONFIGS[CLIENT])


@pytest.mark.requirement("CAP-8", "TSK-2", "TSK-3")
@pytest.mark.parametrize(
    ("role", "method", "missing"),
    [
        (CLIENT, "tools/call", {"tools": {"call": {}}}),
        (SERVER, "sampling/createMessage", {"sampling": {"createMessage": {}}}),
        (SERVER, "elicitation/create", {"elicitation": {"create": {}}}),
    ],
)
@pytest.mark.parametrize("other_types", [False, True])
def test_may_become_task_of_undeclared_type_raises(
    role: Role, method: str, missing: Any, other_types: bool
) -> None:
    """The set of declared types is exhaustive."""
    empty = t.TasksCapability(list={}, cancel={}, requests=t.TaskRequests())
    tasks = empty if other_types else None
    capabilities = t.ServerCapabilities(tasks=tasks)
    if role is SERVER:
        capabilities = t.ClientCapabilities(tasks=tasks)  # type: ignore[assignment]
    with pytest.raises(LocalProtocolError, match=f"so {method} cannot ask for a task") as caught:
        may_become(role, D, method, TASK, capabilities)
    assert caught.value.data == {"requiredCapabilities": {"tasks": {"requests": missing}}}
