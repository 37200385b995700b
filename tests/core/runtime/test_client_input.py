"""`AbstractClient` when the server asks for input, in the result of a call or by a request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import CallTimeout, ConnectionLost, LocalProtocolError, McpError, RemoteProtocolError
from mcp_core import types as t
from mcp_core.runtime import AbstractClient
from tests.core.runtime.test_client import (
    CONTENT,
    LONG,
    MESSAGES,
    ByHand,
    PlayedClient,
    opened,
    params,
    value,
)
from tests.core.server_requests import NAME_FORM, SAID
from tests.harness.jsonrpc import (
    STATEFUL,
    VERSIONS,
    D,
    E,
    Message,
    cancelled,
    notification,
    request,
    result,
    single,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Call = Coroutine[Any, Any, Any]

ASK_NAME: Message = {
    "method": "elicitation/create",
    "params": {"message": "Who?", "requestedSchema": NAME_FORM},
}
ASK_MODEL: Message = {
    "method": "sampling/createMessage",
    "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
        "maxTokens": 9,
    },
}
ASK_ROOTS: Message = {"method": "roots/list"}
ALICE = {"action": "accept", "content": {"name": "Alice"}}
MODEL_SAID = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}


def asks(state: str | None = None, **questions: Message) -> Message:
    """Return a result that asks for input."""
    found: Message = {"resultType": "input_required"}
    found |= {"inputRequests": questions} if questions else {}
    return found | ({} if state is None else {"requestState": state})


MANY = asks() | {"inputRequests": {str(number): ASK_ROOTS for number in range(257)}}


def answering(version: str = E, **options: Any) -> PlayedClient:
    defaults: Any = {
        "on_elicit": lambda params: {"name": "Alice"},
        "on_sample": lambda params: SAID,
        "on_roots": ["file:///home"],
    }
    return opened(version, **{**defaults, **options})


def worked(client: PlayedClient, call: Call, *answers: Any) -> tuple[Any, list[Message]]:
    """Do the same as `run_call`, and run the jobs after each response."""
    request_sent: list[Message] = []
    left = list(answers)
    try:
        while True:
            call.send(None)
            client.works()
            for sent in client.harness.take_sent():
                request_sent.append(sent)
                answer = left.pop(0)
                known = (
                    answer | {"id": sent["id"]} if "error" in answer else result(sent["id"], answer)
                )
                client.receive_messages(known)
    except StopIteration as end:
        assert (left, client.harness.take_sent()) == ([], [])
        return end.value, request_sent


# -- Input requests in results ---------------------------------------------------------------------


@pytest.mark.requirement("MRTR-6", "MRTR-7", "MRTR-8", "MRTR-10")
@pytest.mark.parametrize(
    ("call", "first", "answer"),
    [
        (
            lambda client: client.call_tool("t", {"a": 1}),
            {"name": "t", "arguments": {"a": 1}},
            CONTENT,
        ),
        (lambda client: client.get_prompt("p"), {"name": "p"}, MESSAGES),
        (lambda client: client.read_resource("a:b"), {"uri": "a:b"}, {"contents": []}),
        (lambda client: client.request("tools/call", {"name": "t"}), {"name": "t"}, CONTENT),
        (
            lambda client: client.request("tools/call", t.CallToolParams(name="t")),
            {"name": "t"},
            CONTENT,
        ),
    ],
)
@pytest.mark.parametrize("cache", [True, False])
def test_call_asked_for_input_is_retried_with_responses(
    call: Callable[[AbstractClient], Call], first: Message, answer: Message, cache: bool
) -> None:
    client = answering(cache=cache)
    rounds = (asks("s 1", who=ASK_NAME, where=ASK_ROOTS), asks(what=ASK_MODEL), answer)
    _, sent = worked(client, call(client), *rounds)
    assert [each["method"] for each in sent] == [sent[0]["method"]] * 3
    assert len({each["id"] for each in sent}) == 3
    answers = {"who": ALICE, "where": {"roots": [{"uri": "file:///home"}]}}
    assert [params(each) for each in sent] == [
        first,
        first | {"inputResponses": answers, "requestState": "s 1"},
        first | {"inputResponses": {"what": MODEL_SAID}},
    ]


@pytest.mark.requirement("MRTR-17")
def test_retry_repeats_params_meta_and_progress() -> None:
    """The retry is a request of its own: its progress token is new, the rest is the caller's."""
    client = answering(on_log=print, log_level="error")
    received: list[float] = []
    call = client.call_tool(
        "t", progress=lambda done, *_: received.append(done), meta={"com.example/x": 1}
    )
    call.send(None)
    first = single(client.harness.take_sent())
    client.receive_messages(result(first["id"], asks("s", who=ASK_NAME)))
    client.works()
    again = single(client.harness.take_sent())
    for each in first, again:
        meta = each["params"]["_meta"]
        assert meta["progressToken"] == each["id"]
        assert meta["com.example/x"] == 1
        assert meta["io.modelcontextprotocol/logLevel"] == "error"
    progress = {"progressToken": again["id"], "progress": 0.5}
    client.receive_messages(
        notification("notifications/progress", progress), result(again["id"], CONTENT)
    )
    assert value(client, call).text == "x"
    assert received == [0.5]


@pytest.mark.requirement("MRTR-11")
def test_concurrent_calls_keep_their_request_state() -> None:
    """Each retry carries the state of its own call; a third call carries none."""
    client = answering()
    calls = [client.call_tool("a"), client.call_tool("b")]
    for call in calls:
        call.send(None)
    sent = {each["params"]["name"]: each["id"] for each in client.harness.take_sent()}
    client.receive_messages(result(sent["a"], asks("sa", who=ASK_NAME)))
    third = client.call_tool("c")
    third.send(None)
    assert set(params(single(client.harness.take_sent()))) == {"name"}
    client.receive_messages(result(sent["b"], asks("sb")))
    assert client.works() == [0.1]
    states = {
        each["params"]["name"]: params(each).get("requestState")
        for each in client.harness.take_sent()
    }
    assert states == {"a": "sa", "b": "sb"}
    for call in (*calls, third):
        call.close()


@pytest.mark.requirement("MRTR-6")
def test_state_without_requests_is_retried_after_pause() -> None:
    client = answering()
    call = client.call_tool("t")
    slept: list[float] = []
    for _ in range(3):
        call.send(None)
        client.receive_messages(result(single(client.harness.take_sent())["id"], asks("later")))
        assert client.harness.take_sent() == []
        slept += client.works()
    assert slept == [0.1, 0.2, 0.4]
    call.send(None)
    client.receive_messages(result(single(client.harness.take_sent())["id"], CONTENT))
    assert value(client, call).text == "x"


@pytest.mark.requirement("MRTR-17")
def test_server_asking_without_end_raises() -> None:
    client = answering()
    with pytest.raises(RemoteProtocolError, match="still asks after 10 rounds"):
        worked(client, client.call_tool("t"), *[asks(who=ASK_NAME)] * 11)


@pytest.mark.parametrize(
    ("options", "answer", "words"),
    [
        ({"on_elicit": None}, asks(who=ASK_NAME), "did not declare"),
        ({"on_sample": None}, asks(what=ASK_MODEL), "did not declare"),
        ({"on_roots": None}, asks(who=ASK_NAME, where=ASK_ROOTS), "did not declare"),
        ({}, asks(who={"method": "acme/ask"}), "acme/ask"),
        (
            {},
            asks(who={"method": "elicitation/create", "params": {"message": "m"}}),
            "requestedSchema",
        ),
        (
            {},
            asks(who=ASK_NAME | {"params": {"message": "m", "mode": "url", "url": "x:"}}),
            "did not declare",
        ),
        ({}, MANY, "257 questions at once"),
        ({}, {"resultType": "input_required"}, "neither inputRequests nor requestState"),
    ],
)
def test_input_request_undeclared_raises(options: Any, answer: Message, words: str) -> None:
    client = answering(**options)
    call = client.call_tool("t")
    with pytest.raises(RemoteProtocolError, match=words):
        worked(client, call, answer)
    assert (client.work, client.reports, client.harness.take_sent()) == ([], [], [])


def test_request_without_input_support_asked_for_input_raises() -> None:
    # Only three methods of MCP may ask for input.
    client = opened(E, log_level="info")
    with pytest.raises(RemoteProtocolError, match="cannot ask for input"):
        value(client, client.list_tools(), asks("s"))


def refused(params: Any) -> Any:
    raise McpError(-1, "no")


def failed(*_: Any) -> Any:
    raise KeyError("mine")


@pytest.mark.requirement("MRTR-16", "SAMP-13")
@pytest.mark.parametrize(
    ("options", "question", "raised"),
    [
        ({"on_sample": refused}, ASK_MODEL, McpError),
        ({"on_sample": lambda params: None}, ASK_MODEL, McpError),
        ({"on_roots": lambda: refused(None)}, ASK_ROOTS, McpError),
        ({"on_elicit": failed}, ASK_NAME, KeyError),
        ({"on_sample": failed}, ASK_MODEL, KeyError),
        ({"on_roots": failed}, ASK_ROOTS, KeyError),
        ({"on_elicit": lambda params: {}}, ASK_NAME, LocalProtocolError),
        ({"on_elicit": lambda params: {"name": "Alice", "x": object()}}, ASK_NAME, TypeError),
    ],
)
def test_callback_failing_ends_call_with_its_exception(
    options: Any, question: Message, raised: type[Exception]
) -> None:
    client = answering(**options)
    with pytest.raises(raised):
        worked(client, client.call_tool("t"), asks("s", it=question, where=ASK_ROOTS))
    assert (client.harness.take_sent(), client.reports) == ([], [])
    assert worked(client, client.call_tool("t"), CONTENT)[0].text == "x"


@pytest.mark.requirement("MRTR-16")
@pytest.mark.parametrize(
    ("on_elicit", "response"),
    [
        (lambda params: None, {"action": "cancel"}),
        (refused, {"action": "cancel"}),
        (lambda params: t.ElicitResult(action="decline"), {"action": "decline"}),
    ],
)
def test_elicitation_declined_is_sent_as_response(on_elicit: Any, response: Message) -> None:
    client = answering(on_elicit=on_elicit)
    _, sent = worked(client, client.call_tool("t"), asks(who=ASK_NAME), CONTENT)
    assert params(sent[1])["inputResponses"] == {"who": response}


@pytest.mark.requirement("CACHE-4")
def test_result_after_input_is_not_cached() -> None:
    client = answering()
    answer = {"contents": [{"uri": "a:b", "text": "x"}], "ttlMs": LONG}
    for _ in range(2):
        _, sent = worked(client, client.read_resource("a:b"), asks("s", who=ASK_NAME), answer)
        assert len(sent) == 2
    _, sent = worked(client, client.read_resource("a:b"), answer)
    assert len(sent) == 1
    assert worked(client, client.read_resource("a:b"))[1] == []


def test_timeout_is_paused_during_callback() -> None:
    client = answering()
    waiter = waiting(client)
    start = client.now
    assert waiter.deadline == start + 60
    client.now += 10
    client.receive_messages(result(single(client.harness.take_sent())["id"], asks(who=ASK_NAME)))
    assert (waiter.deadline, waiter.pause_count) == (start + 300, 1)
    client.now += 200
    client.works()
    assert (waiter.deadline, waiter.pause_count) == (start + 270, 0)
    client._end_call(waiter)


def waiting(client: PlayedClient) -> Any:
    """Return a pending call."""
    waiter: Any = ByHand(client._send, client._clock, client._tool_call("t", None, {}), {})
    waiter.begin()
    return waiter


@pytest.mark.parametrize("how", ["the caller leaves", "the time is up"])
def test_call_ended_early_stops_callbacks(how: str) -> None:
    """Two callbacks ask the user when the call ends: both are stopped and nothing is sent."""
    client = answering()
    waiter = waiting(client)
    client.receive_messages(
        result(single(client.harness.take_sent())["id"], asks(who=ASK_NAME, where=ASK_ROOTS))
    )
    stopped: list[int] = []
    for number, each in enumerate(client.work):
        each.stop = lambda number=number: stopped.append(number)  # type: ignore[misc]
    client._end_call(waiter)
    assert stopped == [0, 1]
    if how == "the time is up":
        with pytest.raises(CallTimeout, match="max_timeout"):
            waiter.result()
    client.works()
    assert client.harness.take_sent() == []


@pytest.mark.parametrize("why", [None, ConnectionLost("the connection broke")])
def test_connection_closed_ends_call_during_callback(why: Any) -> None:
    client = answering()
    waiter = waiting(client)
    client.receive_messages(result(single(client.harness.take_sent())["id"], asks(who=ASK_NAME)))
    stopped: list[bool] = []
    client.work[0].stop = lambda: stopped.append(True)
    client._conn.close(why)
    client.receive_messages()
    with pytest.raises(ConnectionLost, match="the client was closed" if why is None else "broke"):
        waiter.result()
    assert stopped == [True]
    client.works()


# -- Server-initiated requests ---------------------------------------------------------------------


@pytest.mark.parametrize("version", STATEFUL)
def test_timeouts_of_all_calls_are_paused_during_server_request(version: str) -> None:
    """The user may take minutes, and a server may wait for that before it answers any call."""
    client = answering(version)
    first = waiting(client)
    client.now += 10
    start = client.now
    client.receive_messages(request("s1", "roots/list"), request("s2", "roots/list"))
    second = waiting(client)  # it may be that the server does one thing after the other
    client.now += 200
    assert [first.deadline, second.deadline] == [start + 290, start + 300]
    client.work[1].done(t.ListRootsResult(roots=[]))
    assert [first.pause_count, second.pause_count] == [1, 1]
    client.work[0].done(t.ListRootsResult(roots=[]))
    assert [first.pause_count, second.pause_count] == [0, 0]
    assert [first.deadline, second.deadline] == [start + 260, start + 260]
    third = waiting(client)
    assert third.pause_count == 0
    for each in first, second, third:
        client._end_call(each)


def test_pause_counts_call_of_several_requests_once() -> None:
    client = answering(D)
    client.receive_messages(request("s1", "roots/list"))
    waiter: Any = ByHand(client._send, client._clock, client._pages("tools/list", "tools", {}), {})
    waiter.begin()
    client.receive_messages(
        result(single(client.harness.take_sent())["id"], {"tools": [], "nextCursor": "1"})
    )
    assert waiter.pause_count == 1
    client.works()
    assert waiter.pause_count == 0
    client._end_call(waiter)


def test_client_responds_to_server_request_and_cancellation() -> None:
    client = answering(D)
    client.receive_messages(request("s1", "roots/list"), request("s2", "roots/list"))
    stopped: list[str] = []
    client.work[1].stop = lambda: stopped.append("s2")
    client.receive_messages(cancelled("s2"), cancelled("s3"))
    assert stopped == ["s2"]
    client.works()
    assert client.harness.take_sent() == [result("s1", {"roots": [{"uri": "file:///home"}]})]


def test_connection_closed_stops_callbacks_of_server_requests() -> None:
    client = answering(D)
    client.receive_messages(request("s1", "roots/list"))
    stopped: list[bool] = []
    client.work[0].stop = lambda: stopped.append(True)
    client._conn.close()
    client.receive_messages()
    assert stopped == [True]
    client.works()
    assert client.harness.take_sent() == []


def test_server_request_in_2026_is_rejected() -> None:
    client = answering(E)
    client.receive_messages(request("s1", "roots/list"))
    assert (client.work, client.harness.take_sent()) == ([], [])


# -- Changes of roots ------------------------------------------------------------------------------


@pytest.mark.requirement("ROOT-4")
@pytest.mark.parametrize("version", VERSIONS)
def test_roots_changed_notifies_stateful_server(version: str) -> None:
    client = answering(version)
    client.roots_changed()
    changed = notification("notifications/roots/list_changed")
    assert client.harness.take_sent() == ([changed] if version in STATEFUL else [])
    client._conn.close()
    client.receive_messages()
    with pytest.raises(ConnectionLost):
        client.roots_changed()


def test_roots_changed_without_roots_raises() -> None:
    with pytest.raises(LocalProtocolError, match="roots"):
        opened(D).roots_changed()


@pytest.mark.parametrize("version", VERSIONS)
def test_roots_requested_waits_for_response_to_stateful_server(version: str) -> None:
    """Only stateful servers can request roots; with 2026-07-28 there is nothing to wait for."""
    client = answering(version)
    waiting = client.roots_requested()
    if version in STATEFUL:
        waiting.send(None)
        assert client.harness.take_sent() == []
        client.receive_messages(request("q", "roots/list"))
        waiting.send(None)
        client.works()
    with pytest.raises(StopIteration) as returned:
        waiting.send(None)
    assert returned.value.value is True
    client.harness.take_sent()
    with pytest.raises(StopIteration) as again:
        client.roots_requested().send(None)
    assert again.value.value is True


def test_roots_requested_waits_through_other_requests() -> None:
    client = answering(D)
    waiting = client.roots_requested()
    waiting.send(None)
    client.receive_messages(request("q", **ASK_MODEL))
    client.works()
    waiting.send(None)
    client.receive_messages(request("r", "roots/list"))
    client.works()
    with pytest.raises(StopIteration):
        waiting.send(None)


def test_roots_requested_ends_with_connection() -> None:
    client = answering(D)
    waiting = client.roots_requested()
    waiting.send(None)
    client._conn.close()
    client.receive_messages()
    with pytest.raises(ConnectionLost):
        waiting.send(None)
    with pytest.raises(ConnectionLost):
        client.roots_requested().send(None)


def test_roots_requested_without_roots_raises() -> None:
    with pytest.raises(LocalProtocolError, match="on_roots"):
        opened(D).roots_requested().send(None)
