"""One connection, and two back to back: tasks of both forms, their progress and their states."""

from __future__ import annotations

from typing import Any, Final

import pytest
from msgspec import Raw
from msgspec.structs import replace

from mcp_core import (
    DIALECTS,
    Connection,
    ErrorReceived,
    Limits,
    LocalProtocolError,
    MessageRejected,
    NotificationReceived,
    ProgressReceived,
    RemoteProtocolError,
    RequestReceived,
    Role,
    TaskCreated,
)
from mcp_core import types as t
from mcp_core.protocol.messages._pending import IgnoredRequest
from mcp_core.protocol.revisions._capabilities import with_tasks
from tests.core.protocol.connection.connection_setup import SUBSCRIPTION_ID
from tests.harness.jsonrpc import (
    SERVER_CAPABILITIES,
    STATELESS_META,
    TOOL_CALL,
    C,
    D,
    E,
    Message,
    assert_error,
    call,
    cancelled,
    client_config,
    notification,
    only_event,
    request,
    result,
    server_config,
    single,
    stateless_request,
    type_names,
)
from tests.harness.messages.pair import ConnectionPair
from tests.harness.wire.connection import ConnectionHarness, opened

SERVER, CLIENT = Role.SERVER, Role.CLIENT
EXTENSION: Final = "io.modelcontextprotocol/tasks"
RELATED: Final = {"io.modelcontextprotocol/related-task": {"taskId": "t"}}
DECLARED: Final[Message] = {"extensions": {EXTENSION: {}}}
DECLARING: Final = {"io.modelcontextprotocol/clientCapabilities": DECLARED}
TASK_SERVER: Final = with_tasks(SERVER_CAPABILITIES, may_list=True)
TASK_CLIENT: Final = t.ClientCapabilities(
    sampling=t.SamplingCapability(),
    elicitation=t.ElicitationCapability(),
    extensions={EXTENSION: {}},
    tasks=t.TasksCapability(
        requests=t.TaskRequests(
            sampling=t.SamplingTasks(create_message={}), elicitation=t.ElicitationTasks(create={})
        )
    ),
)
STATE: Final[Message] = {"createdAt": "1", "lastUpdatedAt": "2", "status": "working"}
NOW: Final[Any] = {"created_at": "1", "last_updated_at": "2"}


def created(task_id: str = "t") -> t.CreateTaskResult:
    """Return what `mcp_core.tasks` builds: the fields of both forms."""
    return t.CreateTaskResult(
        result_type="task",
        task=t.Task(task_id=task_id, status="working", ttl=1, **NOW),
        task_id=task_id,
        status="working",
        ttl_ms=1,
        **NOW,
    )


def status(task_id: str = "t", state: Any = "working", **members: Any) -> t.TaskStatusParams:
    return t.TaskStatusParams(task_id=task_id, status=state, **NOW, **members)


def task_server(version: str, **limits: Any) -> ConnectionHarness:
    config = server_config(capabilities=TASK_SERVER, limits=Limits(**limits))
    return opened(SERVER, version, config)


def task_pair(version: str) -> ConnectionPair:
    return ConnectionPair(
        client=client_config(version, capabilities=TASK_CLIENT),
        server=server_config(version, capabilities=TASK_SERVER),
    ).open()


# -- Creation --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "task"), [(D, {"task": {"ttl": 5}}), (E, {})])
def test_call_answered_by_task_becomes_task_created(version: str, task: Any) -> None:
    pair = task_pair(version)
    pair.client.send_request("tools/call", TOOL_CALL | task, token="token")
    event = only_event(pair.move(CLIENT), RequestReceived)
    assert pair.server.send_result(event.id, created())
    found = only_event(pair.move(SERVER), TaskCreated)
    own: Any = {"ttl": 1} if version == D else {"ttl_ms": 1}
    task = t.Task(task_id="t", status="working", **NOW, **own)
    # A server of the newest revision names itself in each result.
    assert (found.task, found.token, found.meta is None) == (task, "token", version == D)
    assert not pair.client.has_outgoing(found.id)
    _, message = pair.transcript[-1]
    assert message["result"].get("resultType") == (None if version == D else "task")
    assert ("task" in message["result"]) is (version == D)


@pytest.mark.requirement("TSK-2")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("sampling/createMessage", {"messages": [], "maxTokens": 1, "task": {}}),
        (
            "elicitation/create",
            {"message": "?", "requestedSchema": {"type": "object", "properties": {}}, "task": {}},
        ),
    ],
)
def test_server_request_answered_by_task_becomes_task_created(method: str, params: Any) -> None:
    pair = task_pair(D)
    pair.server.send_request(method, params)
    event = only_event(pair.move(SERVER), RequestReceived)
    pair.client.send_result(event.id, created())
    assert only_event(pair.move(CLIENT), TaskCreated).task.task_id == "t"


@pytest.mark.requirement("TX-4")
@pytest.mark.parametrize("version", [D, E])
def test_call_answered_by_task_it_did_not_ask_for_fails(version: str) -> None:
    """Without `task` in its params, or the extension in its `_meta`."""
    pair = ConnectionPair(
        client=client_config(version), server=server_config(version, capabilities=TASK_SERVER)
    ).open()
    pair.client.send_request("tools/call", TOOL_CALL)
    event = only_event(pair.move(CLIENT), RequestReceived)
    pair.server.send_result(event.id, created())
    error = only_event(pair.move(SERVER), ErrorReceived).error
    assert isinstance(error, RemoteProtocolError)
    assert "the result of tools/call is invalid" in str(error)


@pytest.mark.requirement("TSK-3", "TSK-2")
def test_send_request_with_task_to_undeclaring_peer_sends_nothing() -> None:
    pair = ConnectionPair(D).open()
    with pytest.raises(LocalProtocolError, match=r"the capability tasks\.requests\.tools\.call"):
        pair.client.send_request("tools/call", TOOL_CALL | {"task": {}})
    assert pair.client.queued() == 0


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_task_request_without_extension_gets_error(method: str) -> None:
    harness = task_server(E)
    params = {"taskId": "t", "inputResponses": {}}
    response = harness.error_response_to(stateless_request(1, method, params))
    assert_error(response, -32021, 1)
    assert response["error"]["data"] == {"requiredCapabilities": DECLARED}
    event = only_event(
        harness.receive(stateless_request(2, method, params, **DECLARING)), RequestReceived
    )
    assert event.params.task_id == "t"


# -- Progress and related messages -----------------------------------------------------------------


@pytest.mark.requirement("PROG-6", "META-15")
@pytest.mark.parametrize("related", [None, 9])
def test_task_progress_uses_original_token_after_the_response(related: Any) -> None:
    """Progress continues the request's series under its token until the connection closes."""
    harness = task_server(D)
    harness.receive(call(1, progressToken="p"))
    conn = harness.conn
    assert conn.send_progress(1, 1)
    sender = conn.task_progress(1, "t")
    assert sender is not None
    sender.related = related
    conn.send_result(1, created())
    harness.take_sent()
    assert not conn.send_progress(1, 2)  # the request is over
    assert not conn.send_progress(sender, 1)  # it has to increase
    assert conn.send_progress(sender, 2, 3, "half")
    (message,) = conn.messages_to_send()
    assert message.related == related
    assert conn.send_progress(sender, 3)
    assert single(harness.take_sent()) == notification(
        "notifications/progress", {"progressToken": "p", "progress": 3, "_meta": RELATED}
    )
    with pytest.raises(LocalProtocolError, match="finite"):
        conn.send_progress(sender, float("nan"))
    conn.close()
    harness.take_sent()
    assert not conn.send_progress(sender, 4)
    assert harness.take_sent() == []


def test_task_progress_after_late_cancellation_is_sent() -> None:
    """`notifications/cancelled` after the response does not stop the task."""
    harness = task_server(D)
    harness.receive(call(1, progressToken="p"))
    sender = harness.conn.task_progress(1, "t")
    assert sender is not None
    harness.conn.send_result(1, created())
    assert harness.receive(cancelled(1)) == []
    assert harness.conn.send_progress(sender, 1)


def test_task_progress_without_token_or_in_extension_is_none() -> None:
    harness = task_server(D)
    harness.receive(call(1))
    assert harness.conn.task_progress(1, "t") is None
    assert harness.conn.task_progress(2, "t") is None
    harness = task_server(E)
    harness.receive(call(1, E, progressToken="p"))
    assert harness.conn.task_progress(1, "t") is None


@pytest.mark.requirement("META-15")
def test_messages_of_a_task_carry_its_id() -> None:
    pair = task_pair(D)
    pair.client.send_request("tasks/result", t.GetTaskPayloadParams(task_id="t"))
    waiting = only_event(pair.move(CLIENT), RequestReceived)
    form: Any = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    pair.server.send_request("elicitation/create", form, meta=RELATED, related=waiting.id)
    pair.server.send_log("error", "x", meta=RELATED)
    nested, log = pair.move(SERVER)
    assert isinstance(nested, RequestReceived)
    assert nested.params.meta.related_task == t.RelatedTaskMetadata("t")
    assert isinstance(log, NotificationReceived)
    assert log.params.meta == RELATED


@pytest.mark.requirement("META-16")
def test_related_task_has_no_effect_in_extension() -> None:
    harness = task_server(E)
    params = {"taskId": "t"}
    meta = DECLARING | {"io.modelcontextprotocol/related-task": {"taskId": "other"}}
    event = only_event(
        harness.receive(stateless_request(1, "tasks/get", params, **meta)), RequestReceived
    )
    assert event.params.task_id == "t"
    own = t.RequestMeta(related_task=t.RelatedTaskMetadata("t"))
    assert b"related-task" not in DIALECTS[E].encode(t.GetTaskParams(task_id="t", meta=own))
    assert b"related-task" in DIALECTS[D].encode(t.GetTaskParams(task_id="t", meta=own))


def test_status_notification_of_session_arrives_without_subscription() -> None:
    pair = task_pair(D)
    result = Raw(b'{"content":[]}')
    params = status(state="completed", ttl=5, ttl_ms=5, result=result)
    pair.server.send_notification("notifications/tasks/status", params)
    event = only_event(pair.move(SERVER), NotificationReceived)
    assert event.params == status(state="completed", ttl=5)
    assert pair.server.send_task_status(params)
    assert only_event(pair.move(SERVER), NotificationReceived).params == event.params
    pair.server.close()
    assert not pair.server.send_task_status(params)


def test_status_notification_without_declared_tasks_raises() -> None:
    harness = opened(SERVER, D)
    with pytest.raises(LocalProtocolError, match="the capability tasks, which we did not declare"):
        harness.conn.send_notification("notifications/tasks/status", status())


# -- Subscriptions ---------------------------------------------------------------------------------


def listen(id: Any, *task_ids: Any, declared: Any = DECLARED, **more: Any) -> Message:
    meta = STATELESS_META | {"io.modelcontextprotocol/clientCapabilities": declared}
    wanted = {"taskIds": list(task_ids)} | more
    return request(id, "subscriptions/listen", {"notifications": wanted, "_meta": meta})


def listening_server(*task_ids: str, id: Any = 1, **limits: Any) -> ConnectionHarness:
    """Return a server whose client listens to these tasks."""
    harness = task_server(E, **limits)
    accept(harness, id, *task_ids)
    return harness


def accept(harness: ConnectionHarness, id: Any, *task_ids: str) -> None:
    event = only_event(harness.receive(listen(id, *task_ids)), RequestReceived)
    assert harness.conn.send_acknowledgement(event, event.params.notifications)
    assert single(harness.take_sent())["params"]["notifications"] == {"taskIds": list(task_ids)}


@pytest.mark.requirement("TX-20", "SUB-2", "SUB-3", "SUB-4")
@pytest.mark.parametrize("id", [1, "1"])
def test_listen_to_tasks_honours_those_that_the_handler_accepts(id: Any) -> None:
    """The handler decides which tasks the client may see; the subscription then takes no place."""
    harness = task_server(E)
    conn = harness.conn
    event = only_event(
        harness.receive(listen(id, "mine", "yours", toolsListChanged=True)), RequestReceived
    )
    assert harness.take_sent() == []  # nothing before the acknowledgement
    wanted = event.params.notifications
    assert (wanted.task_ids, conn.in_flight) == (["mine", "yours"], 1)
    assert conn.send_acknowledgement(event, replace(wanted, task_ids=["mine"]))
    assert conn.in_flight == 0
    assert conn.has_incoming(id)
    meta = {SUBSCRIPTION_ID: id}
    honoured = {"toolsListChanged": True, "taskIds": ["mine"]}
    assert single(harness.take_sent()) == notification(
        "notifications/subscriptions/acknowledged", {"_meta": meta, "notifications": honoured}
    )
    assert not conn.send_task_status(status("yours"))
    assert conn.send_task_status(status("mine", "completed", ttl_ms=5, result=Raw(b'{"a":1}')))
    state = STATE | {"taskId": "mine", "status": "completed", "ttlMs": 5, "result": {"a": 1}}
    (message,) = conn.messages_to_send()
    assert (message.related, message.method) == (id, "notifications/tasks")
    assert conn.send_task_status(status("mine", "completed", ttl_ms=5, result=Raw(b'{"a":1}')))
    assert single(harness.take_sent()) == notification(
        "notifications/tasks", state | {"_meta": meta}
    )


@pytest.mark.parametrize("declared", [{}, {"extensions": {}}, {"tasks": {}}])
def test_listen_to_tasks_without_extension_gets_error(declared: Any) -> None:
    harness = task_server(E)
    response = harness.error_response_to(listen(1, "t", declared=declared))
    assert_error(response, -32021, 1, "subscriptions/listen with taskIds")
    assert response["error"]["data"] == {"requiredCapabilities": DECLARED}
    assert not harness.conn.has_incoming(1)


@pytest.mark.parametrize("task_ids", [[], None])
def test_listen_to_no_tasks_is_accepted_at_once(task_ids: Any) -> None:
    harness = task_server(E)
    message = listen(1, declared={}, taskIds=task_ids)
    assert harness.response_to(message)["params"]["notifications"] == {}


def test_listen_to_tasks_of_server_without_them_leaves_them_out() -> None:
    harness = opened(SERVER, E)
    message = listen(1, "t", toolsListChanged=True)
    assert harness.response_to(message)["params"]["notifications"] == {"toolsListChanged": True}
    assert not harness.conn.send_task_status(status())


@pytest.mark.parametrize("wrong", [1, None, {}])
def test_listen_to_task_id_that_is_no_string_is_invalid_params(wrong: Any) -> None:
    assert_error(task_server(E).error_response_to(listen(1, wrong)), -32602, 1, "taskIds")


def test_listen_to_tasks_cancelled_before_acknowledgement() -> None:
    harness = task_server(E)
    event = only_event(harness.receive(listen(1, "t")), RequestReceived)
    assert type_names(harness.receive(cancelled(1))) == ["RequestCancelled"]
    assert not harness.conn.send_acknowledgement(event, event.params.notifications)
    assert harness.take_sent() == []
    assert not harness.conn.send_task_status(status())
    assert harness.conn.in_flight == 0
    with pytest.raises(LocalProtocolError, match="no request 1"):
        harness.conn.send_acknowledgement(event, event.params.notifications)


def test_listen_to_tasks_cancelled_after_acknowledgement_gets_nothing() -> None:
    harness = listening_server("t")
    assert harness.conn.send_task_status(status())
    harness.take_sent()
    assert harness.receive(cancelled(1)) == []
    assert not harness.conn.send_task_status(status())
    assert harness.take_sent() == []


def test_listen_to_tasks_may_be_refused_by_its_handler() -> None:
    harness = task_server(E)
    harness.receive(listen(1, "t"))
    assert harness.conn.send_error(1, t.ErrorData(-32603, "the store is gone"))
    assert_error(single(harness.take_sent()), -32603, 1)


@pytest.mark.requirement("SUB-16")
def test_listen_to_tasks_over_limit_rejected_before_they_are_looked_up() -> None:
    harness = listening_server("a", "b", task_ids=3, listens=3)
    assert_error(harness.error_response_to(listen(2, "c", "d")), 429, 2, "at most 3 tasks")
    accept(harness, 3, "c")
    assert_error(harness.error_response_to(listen(4, "d")), 429, 4)
    harness.receive(cancelled(1))
    accept(harness, 5, "d", "e")
    assert_error(harness.error_response_to(listen(6, "a")), 429, 6)
    harness.receive(cancelled(3))
    accept(harness, 7, "f")


def test_listen_to_tasks_over_limit_at_acknowledgement_rejected() -> None:
    """Two requests that were looked up at the same time."""
    harness = task_server(E, listens=1)
    first, second = harness.receive(listen(1, "a"), listen(2, "b"))
    assert isinstance(first, RequestReceived)
    assert isinstance(second, RequestReceived)
    assert harness.conn.send_acknowledgement(second, second.params.notifications)
    harness.take_sent()
    assert not harness.conn.send_acknowledgement(first, first.params.notifications)
    assert_error(single(harness.take_sent()), 429, 1)
    assert isinstance(single(harness.events()), MessageRejected)


@pytest.mark.parametrize("end", ["shutdown", "close"])
def test_listen_to_tasks_not_accepted_while_server_shuts_down(end: str) -> None:
    harness = task_server(E)
    event = only_event(harness.receive(listen(1, "t")), RequestReceived)
    getattr(harness.conn, end)()
    harness.events()
    assert not harness.conn.send_acknowledgement(event, event.params.notifications)
    sent = harness.take_sent()
    if end == "shutdown":
        assert_error(single(sent), 429, 1, "shut down")
    else:
        assert sent == []


def test_task_states_not_sent_are_merged_and_last_one_wins() -> None:
    harness = task_server(E)
    conn = harness.conn
    room = [False]
    conn.has_capacity = lambda id: room[0]
    accept(harness, 1, "a", "b")
    for task_id, state in [("a", "working"), ("b", "working"), ("a", "failed"), ("b", "working")]:
        assert conn.send_task_status(status(task_id, state))
    assert harness.take_sent() == []
    room[0] = True
    found = [(each["params"]["taskId"], each["params"]["status"]) for each in harness.take_sent()]
    assert found == [("a", "failed"), ("b", "working")]


def test_task_states_not_sent_are_sent_before_the_end() -> None:
    harness = task_server(E)
    harness.conn.has_capacity = lambda id: False
    accept(harness, 1, "a")
    harness.conn.send_task_status(status("a", "failed"))
    harness.conn.shutdown()
    sent, ended = harness.take_sent()
    assert (sent["method"], sent["params"]["status"]) == ("notifications/tasks", "failed")
    assert ended["result"]["_meta"][SUBSCRIPTION_ID] == 1


def test_results_not_read_end_the_subscription() -> None:
    """They would be kept for a client that does not read."""
    harness = task_server(E, message=1_000)
    harness.conn.has_capacity = lambda id: False
    result = Raw(b'{"text":"%b"}' % (b"x" * 600))
    accept(harness, 1, "a", "b")
    assert harness.conn.send_task_status(status("a", "completed", result=result))
    assert harness.conn.send_task_status(status("a", "completed", result=result))
    assert harness.take_sent() == []
    assert harness.conn.send_task_status(status("b", "completed", result=result))
    assert_error(single(harness.take_sent()), 429, 1, "does not read the states of its tasks")
    assert not harness.conn.has_incoming(1)
    assert not harness.conn.send_task_status(status("a"))


@pytest.mark.requirement("TX-20")
def test_task_states_arrive_at_a_listening_client() -> None:
    """The state includes the input requests, and a cancelled subscription gets no more."""
    pair = task_pair(E)
    wanted = t.SubscriptionFilter(task_ids=["t"])
    id = pair.client.send_request("subscriptions/listen", t.ListenParams(notifications=wanted))
    asked = only_event(pair.move(CLIENT), RequestReceived)
    assert pair.server.send_acknowledgement(asked, asked.params.notifications)
    acknowledged = only_event(pair.move(SERVER), NotificationReceived)
    assert acknowledged.params.notifications.task_ids == ["t"]
    request = t.ElicitRequest(
        t.ElicitParams(message="?", requested_schema={"type": "object", "properties": {}})
    )
    sent = status(state="input_required", ttl_ms=5, input_requests={"k": request})
    assert pair.server.send_task_status(sent)
    event = only_event(pair.move(SERVER), NotificationReceived)
    assert event.method is DIALECTS[E].receives[CLIENT]["notifications/tasks"]
    assert event.params.input_requests == {"k": request}
    assert event.params == replace(sent, meta={SUBSCRIPTION_ID: id})
    pair.client.send_cancel(id)
    assert pair.move(CLIENT) == []
    assert not pair.server.send_task_status(sent)


@pytest.mark.parametrize("version", [C, D])
def test_listen_to_tasks_in_a_session_is_unknown(version: str) -> None:
    harness = task_server(version)
    params = {"notifications": {"taskIds": ["t"]}}
    assert_error(harness.error_response_to(request(1, "subscriptions/listen", params)), -32601, 1)
    assert not harness.conn.is_subscribed_to_task("t")


# -- Progress at the client ------------------------------------------------------------------------


def progress(token: Any, value: float) -> Message:
    return notification("notifications/progress", {"progressToken": token, "progress": value})


def created_task(version: str, harness: ConnectionHarness, **options: Any) -> Any:
    """Send a call, answer it with a task, and return the event."""
    params = TOOL_CALL | ({"task": {}} if version == D else {})
    id = harness.conn.send_request("tools/call", params, **options)
    state = {**STATE, "taskId": "t"}
    answer = {"task": state | {"ttl": None}} if version == D else state | {"ttlMs": None}
    kind = {} if version == D else {"resultType": "task"}
    (event,) = harness.receive(result(id, answer | kind))
    assert isinstance(event, TaskCreated)
    return event


def task_client(version: str) -> ConnectionHarness:
    harness = ConnectionHarness(
        Connection(CLIENT, client_config(version, capabilities=TASK_CLIENT))
    )
    harness.conn.open(harness.now)
    offers: Message = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}, **DECLARED}
    answer: Message = {"capabilities": offers, "protocolVersion": version}
    answer |= {"supportedVersions": [version], "serverInfo": {"name": "s", "version": "1"}}
    harness.receive(result(single(harness.take_sent())["id"], answer))
    harness.take_sent()
    return harness


@pytest.mark.requirement("PROG-6")
def test_progress_of_task_keeps_token_until_it_is_ended() -> None:
    client = task_client(D)
    created = created_task(D, client, token="first", progress=True)
    id = created.id
    (event,) = client.receive(progress(id, 1))
    assert isinstance(event, ProgressReceived)
    assert (event.id, event.progress, event.token) == (id, 1, "first")
    created.redirect_progress("second")
    (event,) = client.receive(progress(id, 1), progress(id, 2))  # the first has not increased
    assert isinstance(event, ProgressReceived)
    assert (event.progress, event.token) == (2, "second")
    created.redirect_progress(None)
    created.redirect_progress(None)
    created.redirect_progress("third")
    assert client.receive(progress(id, 3)) == []


@pytest.mark.parametrize(("version", "wanted"), [(D, False), (E, True)])
def test_progress_of_task_unwanted_is_ignored(version: str, wanted: bool) -> None:
    """The extension has none (PROG-7)."""
    client = task_client(version)
    created = created_task(version, client, progress=wanted)
    assert client.receive(progress(created.id, 1)) == []
    created.redirect_progress("another")
    assert client.receive(progress(created.id, 1)) == []


def test_progress_of_tasks_is_kept_for_a_thousand_of_them() -> None:
    client = task_client(D)
    ids = [created_task(D, client, progress=True).id for _ in range(1001)]
    assert client.receive(progress(ids[0], 1)) == []
    assert len(client.receive(progress(ids[1], 1), progress(ids[-1], 1))) == 2


@pytest.mark.parametrize("version", [D, E])
def test_close_does_not_cancel_request_whose_response_is_ignored(version: str) -> None:
    """The `tasks/cancel` of a call that was given up as the client was closed."""
    client = task_client(version)
    waited_for = client.conn.send_request("tools/call", TOOL_CALL)
    client.conn.send_request("ping" if version == D else "server/discover", token=IgnoredRequest())
    client.take_sent()
    client.conn.close()
    (message,) = client.take_sent()
    assert message["params"]["requestId"] == waited_for
