"""Input requests that a client answers, in every revision and over a stream: sampling, elicitation,
roots.

The test plays the server. Until 2025-11-25 the server sends requests while a call of the client
runs; in 2026-07-28 it sends them in the response to that call. `ClientCall` hides the difference.
The last tests use our own server and client.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mcp_trio.testing
from mcp_core import (
    CallTimeout,
    ConnectionLost,
    FormSchema,
    LocalProtocolError,
    McpError,
    PeerError,
    RemoteProtocolError,
)
from mcp_core import types as t
from mcp_core.drivers import answer_form
from mcp_core.registry import Context, Server
from tests.harness import either
from tests.harness.jsonrpc import (
    STATEFUL,
    VERSIONS,
    A,
    B,
    C,
    D,
    E,
)
from tests.harness.wire.lines import play_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.harness.wire.lines import Wire

    Message = dict[str, Any]

pytestmark = pytest.mark.usefixtures("each_driver")
every_revision = pytest.mark.parametrize("version", VERSIONS)
WITH_FORMS = (C, D, E)
WITH_URLS = (D, E)

FORM: Message = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "string", "default": "M"}},
    "required": ["name"],
}
NAME_REQUEST = ("elicitation/create", {"message": "Who are you?", "requestedSchema": FORM})
URL_REQUEST = (
    "elicitation/create",
    {"message": "Log in", "mode": "url", "url": "https://x.example/login"},
)
HELLO = {"role": "user", "content": {"type": "text", "text": "hello"}}
SAMPLING_REQUEST = ("sampling/createMessage", {"messages": [HELLO], "maxTokens": 10})
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
SAMPLING_REQUEST_WITH_TOOLS = ("sampling/createMessage", {**SAMPLING_REQUEST[1], "tools": [TOOL]})
ROOTS_REQUEST: tuple[str, Message] = ("roots/list", {})
InputRequest = tuple[str, "Message"]

SAMPLED = t.CreateMessageResult(role="assistant", content=t.TextContent("hi"), model="m")
SAMPLED_JSON = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
DONE: Message = {"content": [{"type": "text", "text": "done"}]}


class ClientCall:
    """A tool call of the client in its own task, during which the server requests input."""

    def __init__(self, client: Any, peer: Wire, nursery: either.Nursery, **options: Any) -> None:
        self.peer = peer
        self.result: Any = None
        self.error: BaseException | None = None
        self.scope = either.CancelScope()
        self.ended = either.Event()
        nursery.start_soon(self._call, client, options)

    async def _call(self, client: Any, options: Any) -> None:
        try:
            with self.scope:
                self.result = await client.call_tool("t", {"a": 1}, **options)
        except Exception as exc:  # noqa: BLE001 - the test checks it
            self.error = exc
        self.ended.set()

    async def request_input(self, **requests: InputRequest) -> None:
        """Send input requests to the client."""
        self.request = await self.peer.expect("tools/call", {"name": "t", "arguments": {"a": 1}})
        if self.peer.version == E:
            input_requests = {
                key: {"method": method, "params": params}
                for key, (method, params) in requests.items()
            }
            answer = {
                "resultType": "input_required",
                "inputRequests": input_requests,
                "requestState": "st",
            }
            await self.peer.answer(self.request, answer)
        else:
            for key, (method, params) in requests.items():
                await self.peer.request(method, params, id=key)

    async def responses(self, *keys: str) -> dict[str, Any]:
        """Return the responses of the client by key; of an error response, the error."""
        if self.peer.version == E:
            self.request = await self.peer.expect("tools/call", {"name": "t", "requestState": "st"})
            found: dict[str, Any] = self.request["params"]["inputResponses"]
            assert set(found) == set(keys)
            return found
        messages = [await self.peer.receive() for _ in keys]
        assert {message["id"] for message in messages} == set(keys)
        return {message["id"]: message.get("result", message.get("error")) for message in messages}

    async def end(self) -> None:
        """Answer the call, and check that the client gets the result."""
        await self.peer.answer(self.request, DONE)
        await self.ended.wait()
        assert self.error is None
        assert self.result.text == "done"


@asynccontextmanager
async def play_server_in_nursery(
    version: str, **options: Any
) -> AsyncIterator[tuple[Any, Wire, either.Nursery]]:
    """Yield a client with these options, the server's end of its stream, and a nursery for its
    calls.
    """
    async with play_server(version, **options) as (client, peer), either.open_nursery() as nursery:
        yield client, peer, nursery


# -- Requests and responses ------------------------------------------------------------------------


async def give_name(params: t.ElicitParams) -> Any:
    assert params.message == "Who are you?"
    await either.checkpoint()
    return {"name": "Ada"}


async def fill_form(message: str, form: FormSchema) -> Any:
    assert (message, list(form.properties), form.required) == (
        "Who are you?",
        ["name", "size"],
        ["name"],
    )
    return {"name": "Ada"}


async def sample(params: t.CreateMessageParams) -> t.CreateMessageResult:
    assert params.max_tokens == 10
    await either.checkpoint()
    return SAMPLED


async def open_page(params: t.ElicitParams) -> Any:
    assert (params.mode, params.url) == ("url", "https://x.example/login")
    return {}


async def roots() -> Any:
    return [Path("/home/ada"), "file:///srv", t.Root("file:///tmp", name="scratch")]


URLS = t.ElicitationCapability(form={}, url={})
# As pydantic and zod derive a form from a type.
DERIVED_FORM: Message = {
    "type": "object",
    "title": "Order",
    "properties": {
        "name": {"title": "Name", "type": "string"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None, "title": "Note"},
        "count": {"type": ["integer", "null"], "minimum": 1},
        "price": {"anyOf": [{"type": "integer"}, {"type": "number"}], "default": 1},
        "dish": {"enum": ["soup", "bread"]},
        "id": {"type": "string", "format": "uuid"},
    },
    "required": ["name"],
}
ORDER = {"name": "Ada", "count": 2, "dish": "soup", "id": "7"}
DERIVED_REQUEST = (
    "elicitation/create",
    {"message": "Who are you?", "requestedSchema": DERIVED_FORM},
)


async def fill_order(message: str, form: FormSchema) -> Any:
    kinds = {name: type(field) for name, field in form.properties.items()}
    assert kinds["count"] is t.IntegerSchema
    assert kinds["price"] is t.NumberSchema
    assert kinds["note"] is kinds["dish"] is kinds["id"] is t.StringSchema
    return ORDER


ADA = {"action": "accept", "content": {"name": "Ada", "size": "M"}}
ROOTS_JSON = {
    "roots": [
        {"uri": "file:///home/ada"},
        {"uri": "file:///srv"},
        {"uri": "file:///tmp", "name": "scratch"},
    ]
}

# The revisions that have the request, the options of the client, the request, and the response.
ANSWERED: list[tuple[tuple[str, ...], Any, InputRequest, Message]] = [
    (WITH_FORMS, {"on_elicit": give_name}, NAME_REQUEST, ADA),
    (WITH_FORMS, {"on_elicit": answer_form(fill_form)}, NAME_REQUEST, ADA),
    (WITH_FORMS, {"on_elicit": lambda params: {"name": "Ada"}}, NAME_REQUEST, ADA),
    (
        WITH_FORMS,
        {"on_elicit": answer_form(fill_order)},
        DERIVED_REQUEST,
        {"action": "accept", "content": {**ORDER, "price": 1}},
    ),
    (WITH_FORMS, {"on_elicit": lambda params: None}, NAME_REQUEST, {"action": "cancel"}),
    (
        WITH_FORMS,
        {"on_elicit": lambda params: t.ElicitResult(action="decline")},
        NAME_REQUEST,
        {"action": "decline"},
    ),
    (WITH_URLS, {"on_elicit": open_page, "elicitation": URLS}, URL_REQUEST, {"action": "accept"}),
    (
        WITH_URLS,
        {"on_elicit": answer_form(fill_form), "elicitation": URLS},
        URL_REQUEST,
        {"action": "decline"},
    ),
    (VERSIONS, {"on_sample": sample}, SAMPLING_REQUEST, SAMPLED_JSON),
    (
        WITH_URLS,
        {"on_sample": sample, "sampling": t.SamplingCapability(tools={})},
        SAMPLING_REQUEST_WITH_TOOLS,
        SAMPLED_JSON,
    ),
    (VERSIONS, {"on_roots": roots}, ROOTS_REQUEST, ROOTS_JSON),
    (VERSIONS, {"on_roots": [Path("/srv")]}, ROOTS_REQUEST, {"roots": [{"uri": "file:///srv"}]}),
]


@pytest.mark.requirement("ELIC-9", "SAMP-3", "ROOT-2", "ROOT-3", "MRTR-7", "MRTR-10")
@pytest.mark.parametrize(
    ("version", "options", "input_request", "answer"),
    [(version, *row) for versions, *row in ANSWERED for version in versions],
)
async def test_input_request_with_callback_is_answered(
    version: str, options: Any, input_request: InputRequest, answer: Message
) -> None:
    async with play_server_in_nursery(version, **options) as (client, peer, nursery):
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=input_request)
        assert await call.responses("q") == {"q": answer}
        await call.end()


# Options, and the capabilities that they declare by revision.
CAPABILITIES: list[tuple[Any, dict[tuple[str, ...], Message]]] = [
    ({}, {VERSIONS: {}}),
    (
        {"on_elicit": give_name, "on_sample": sample, "on_roots": []},
        {
            (A, B): {"sampling": {}, "roots": {"listChanged": True}},
            (C, D): {"sampling": {}, "roots": {"listChanged": True}, "elicitation": {}},
            (E,): {"sampling": {}, "roots": {}, "elicitation": {}},
        },
    ),
    (
        {"on_elicit": give_name, "elicitation": URLS},
        {(A, B): {}, (C,): {"elicitation": {}}, (D, E): {"elicitation": {"form": {}, "url": {}}}},
    ),
    (
        {"on_sample": sample, "sampling": t.SamplingCapability(tools={})},
        {(A, B, C): {"sampling": {}}, (D, E): {"sampling": {"tools": {}}}},
    ),
]


@pytest.mark.requirement("SAMP-1", "ELIC-1", "ELIC-2", "ROOT-1")
@every_revision
@pytest.mark.parametrize(("options", "declared"), CAPABILITIES)
async def test_client_capabilities_follow_from_callbacks(
    version: str, options: Any, declared: dict[tuple[str, ...], Message]
) -> None:
    async with play_server(version, **options) as (client, peer), either.open_nursery() as nursery:
        if version == E:  # on each request
            nursery.start_soon(client.ping)
            request = await peer.expect("server/discover")
            sent = request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            assert sent.pop("extensions") == {"io.modelcontextprotocol/tasks": {}}
            await peer.answer(request, {"supportedVersions": [E], "capabilities": {}})
        else:
            sent = json.loads(peer.transcript[0][1])["params"]["capabilities"]
        assert [sent] == [found for versions, found in declared.items() if version in versions]


@pytest.mark.requirement("SAMP-5", "ELIC-3", "ROOT-5")
@every_revision
@pytest.mark.parametrize(
    ("options", "input_request", "code"),
    [
        ({}, SAMPLING_REQUEST, -32601),
        ({}, ROOTS_REQUEST, -32601),
        ({}, NAME_REQUEST, -32601),
        ({"on_elicit": give_name}, URL_REQUEST, -32602),
        ({"on_sample": sample}, SAMPLING_REQUEST_WITH_TOOLS, -32602),
        (
            {"on_elicit": give_name},
            ("elicitation/create", {"message": "m", "requestedSchema": {}}),
            -32602,
        ),
        ({}, ("acme/ask", {}), -32601),
    ],
)
async def test_input_request_without_capability_is_rejected(
    version: str, options: Any, input_request: InputRequest, code: int
) -> None:
    """2026-07-28 has no response with an error, so there the call itself fails."""
    async with play_server_in_nursery(version, **options) as (client, peer, nursery):
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=input_request)
        if version == E:
            await call.ended.wait()
            assert isinstance(call.error, RemoteProtocolError)
            await peer.expect_silence()
            return
        answer = (await call.responses("q"))["q"]
        # A method that the revision does not have is not found.
        assert answer["code"] == (
            -32601 if version in (A, B) and input_request[0].startswith("elicit") else code
        )
        await call.end()


@pytest.mark.requirement("ELIC-15")
async def test_elicitation_complete_for_unknown_id_is_ignored() -> None:
    async with play_server_in_nursery(D, on_elicit=open_page, elicitation=URLS) as (
        client,
        peer,
        nursery,
    ):
        call = ClientCall(client, peer, nursery)
        input_request = (URL_REQUEST[0], {**URL_REQUEST[1], "elicitationId": "1"})
        await peer.notify("notifications/elicitation/complete", {"elicitationId": "another"})
        await call.request_input(q=input_request)
        assert await call.responses("q") == {"q": {"action": "accept"}}
        for _ in range(2):
            await peer.notify("notifications/elicitation/complete", {"elicitationId": "1"})
        await call.end()


# -- Errors ----------------------------------------------------------------------------------------


async def reject(params: Any) -> Any:
    async with either.open_nursery():  # the exception arrives in a group
        raise McpError(-1, "User rejected the request")


async def fail(params: Any = None) -> Any:
    await either.checkpoint()
    raise KeyError("my secret")


@pytest.mark.requirement("SAMP-12", "SAMP-13", "MRTR-16")
@every_revision
@pytest.mark.parametrize("on_sample", [reject, lambda params: None])
async def test_sampling_rejected_by_user_returns_error(
    version: str, on_sample: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with play_server_in_nursery(version, on_sample=on_sample) as (client, peer, nursery):
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=SAMPLING_REQUEST)
        if version == E:
            await call.ended.wait()
            assert isinstance(call.error, McpError)
            assert call.error.code == -1
            await peer.expect_silence()
        else:
            assert (await call.responses("q"))["q"]["code"] == -1
            await call.end()
    assert caplog.records == []


@pytest.mark.requirement("MRTR-16", "ELIC-9")
@pytest.mark.parametrize("version", WITH_FORMS)
async def test_form_rejected_by_user_is_cancelled_or_an_error(version: str) -> None:
    async with play_server_in_nursery(version, on_elicit=reject) as (client, peer, nursery):
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=NAME_REQUEST)
        answer = (await call.responses("q"))["q"]
        assert answer == (
            {"action": "cancel"}
            if version == E
            else {"code": -1, "message": "User rejected the request"}
        )
        await call.end()


FAILING: list[tuple[tuple[str, ...], Any, InputRequest]] = [
    (VERSIONS, {"on_sample": fail}, SAMPLING_REQUEST),
    (VERSIONS, {"on_roots": fail}, ROOTS_REQUEST),
    (WITH_FORMS, {"on_elicit": fail}, NAME_REQUEST),
    (WITH_FORMS, {"on_elicit": lambda params: {"size": "M"}}, NAME_REQUEST),
    (VERSIONS, {"on_sample": lambda params: "hi"}, SAMPLING_REQUEST),
]


@pytest.mark.requirement("ROOT-5")
@pytest.mark.parametrize(
    ("version", "options", "input_request"),
    [(version, *row) for versions, *row in FAILING for version in versions],
)
async def test_client_callback_raising_returns_internal_error(
    version: str, options: Any, input_request: InputRequest, caplog: pytest.LogCaptureFixture
) -> None:
    """Details stay on this side: in the log, or in the caller's exception in 2026-07-28."""
    async with play_server_in_nursery(version, **options) as (client, peer, nursery):
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=input_request)
        if version == E:  # the caller gets the exception
            await call.ended.wait()
            assert isinstance(call.error, KeyError | LocalProtocolError)
            await peer.expect_silence()
            assert caplog.records == []
        else:
            assert await call.responses("q") == {"q": {"code": -32603, "message": "Internal error"}}
            await call.end()
            (record,) = caplog.records
            assert record.getMessage() == f"{input_request[0]} could not be answered"
            assert record.exc_info is not None
        nursery.start_soon(client.ping)  # the connection still works
        await peer.receive()
        nursery.cancel_scope.cancel()


@either.trio_only  # a loop of asyncio stops at once
@every_revision
async def test_client_callback_keyboard_interrupt_propagates(version: str) -> None:
    async def interrupted(params: Any) -> Any:
        raise KeyboardInterrupt

    async def use() -> None:
        async with (
            mcp_trio.testing.play_server(version, on_sample=interrupted) as (client, peer),
            either.open_nursery() as nursery,
        ):
            call = ClientCall(client, peer, nursery)  # type: ignore[arg-type]
            await call.request_input(q=SAMPLING_REQUEST)
            await either.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        await use()


@pytest.mark.parametrize("version", [D, E])
async def test_input_requests_over_limit_are_rejected(version: str) -> None:
    """257 at once: stateful servers get an error for the last, and 2026-07-28 runs none."""
    started = 0

    async def wait() -> Any:
        nonlocal started
        started += 1
        await either.sleep_forever()

    async with play_server_in_nursery(version, on_roots=wait) as (client, peer, nursery):
        call = ClientCall(client, peer, nursery)
        await call.request_input(**{str(number): ROOTS_REQUEST for number in range(257)})
        if version == E:
            await call.ended.wait()
            assert isinstance(call.error, RemoteProtocolError)
            assert started == 0
        else:
            refused = await call.responses("256")
            assert refused["256"]["code"] == -32000
            assert started == 256
            nursery.cancel_scope.cancel()


# -- Concurrency -----------------------------------------------------------------------------------


@every_revision
async def test_two_input_requests_run_concurrently(version: str) -> None:
    """Each callback waits for the other, so one after the other would never end."""
    both = either.Event()
    running: list[str] = []

    async def together(word: str) -> None:
        running.append(word)
        if len(running) == 2:
            both.set()
        await both.wait()

    async def sample_together(params: Any) -> Any:
        await together("model")
        return SAMPLED

    async def roots_together() -> Any:
        await together("roots")
        return []

    async with play_server_in_nursery(
        version, on_sample=sample_together, on_roots=roots_together
    ) as (
        client,
        peer,
        nursery,
    ):
        call = ClientCall(client, peer, nursery)
        await call.request_input(a=SAMPLING_REQUEST, b=ROOTS_REQUEST)
        assert await call.responses("a", "b") == {"a": SAMPLED_JSON, "b": {"roots": []}}
        await call.end()


@every_revision
async def test_calls_during_input_request_continue(version: str) -> None:
    """The user takes 30 seconds for one question while three lists arrive at once."""

    async def think(params: Any) -> Any:
        await either.sleep(30)
        return SAMPLED

    async with play_server_in_nursery(version, on_sample=think) as (client, peer, nursery):
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=SAMPLING_REQUEST)
        start = either.current_time()
        for _ in range(3):
            nursery.start_soon(client.list_prompts)
            await peer.answer(await peer.expect("prompts/list"), {"prompts": [], "ttlMs": 0})
            await either.wait_all_tasks_blocked()
        assert either.current_time() == start
        assert await call.responses("q") == {"q": SAMPLED_JSON}
        await call.end()
        assert either.current_time() == start + 30


@every_revision
async def test_client_callback_may_call_the_server(version: str) -> None:
    clients: list[Any] = []

    async def list_first(params: Any) -> Any:
        await clients[0].list_prompts()
        return SAMPLED

    async with play_server_in_nursery(version, on_sample=list_first) as (client, peer, nursery):
        clients.append(client)
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=SAMPLING_REQUEST)
        await peer.answer(await peer.expect("prompts/list"), {"prompts": []})
        assert await call.responses("q") == {"q": SAMPLED_JSON}
        await call.end()


# -- Timeouts and cancellation ---------------------------------------------------------------------


class SlowCallback:
    """An `on_sample` that takes `seconds`. `outcome` says how it ended."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.outcome: list[str] = []
        self.started = either.Event()

    async def __call__(self, params: Any) -> Any:
        self.started.set()
        try:
            await either.sleep(self.seconds)
        except either.Cancelled:
            self.outcome.append("cancelled")
            raise
        self.outcome.append("answered")
        return SAMPLED


@every_revision
async def test_input_request_pauses_the_call_timeout(version: str) -> None:
    async with play_server_in_nursery(version, on_sample=SlowCallback(200)) as (
        client,
        peer,
        nursery,
    ):
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=SAMPLING_REQUEST)
        assert await call.responses("q") == {"q": SAMPLED_JSON}
        await either.sleep(59)
        await call.end()


@every_revision
async def test_call_timeout_after_input_response_resumes(version: str) -> None:
    """The user's 200 seconds don't count: the server then has its own 60."""
    async with play_server_in_nursery(version, on_sample=SlowCallback(200)) as (
        client,
        peer,
        nursery,
    ):
        start = either.current_time()
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=SAMPLING_REQUEST)
        await call.responses("q")
        await call.ended.wait()
        assert isinstance(call.error, CallTimeout)
        assert str(call.error).startswith("no answer to tools/call within 60 s (timeout: ")
        assert either.current_time() == start + 260
        assert (await peer.expect("notifications/cancelled"))["params"][
            "requestId"
        ] == call.request["id"]


@every_revision
@pytest.mark.parametrize(("options", "seconds"), [({}, 300), ({"max_timeout": 20}, 20)])
async def test_input_request_over_max_timeout_ends_the_call(
    version: str, options: Any, seconds: float
) -> None:
    """A stateful server's request outlives the call; in 2026-07-28 it is a part of it."""
    callback = SlowCallback(5000)
    async with play_server_in_nursery(version, on_sample=callback) as (client, peer, nursery):
        start = either.current_time()
        call = ClientCall(client, peer, nursery, **options)
        await call.request_input(q=SAMPLING_REQUEST)
        await call.ended.wait()
        assert isinstance(call.error, CallTimeout)
        assert "max_timeout" in str(call.error)
        assert either.current_time() == start + seconds
        await either.wait_all_tasks_blocked()
        if version == E:
            assert callback.outcome == ["cancelled"]
            await peer.expect_silence()  # no request is in flight that could be cancelled
        else:
            # The end of our call does not end the server's request.
            assert callback.outcome == []
            await peer.expect("notifications/cancelled")


@every_revision
async def test_call_cancelled_during_input_request_cancels_callback(version: str) -> None:
    """A stateful server must withdraw its request first; 2026-07-28 has nothing to withdraw."""
    callback = SlowCallback(5000)
    async with play_server_in_nursery(version, on_sample=callback) as (client, peer, nursery):
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=SAMPLING_REQUEST)
        await callback.started.wait()
        call.scope.cancel()
        await call.ended.wait()
        await either.wait_all_tasks_blocked()
        if version == E:
            assert callback.outcome == ["cancelled"]
            await peer.expect_silence()
        else:
            await peer.expect("notifications/cancelled", {"requestId": call.request["id"]})
            # The server receives this and cancels its own request.
            await peer.notify("notifications/cancelled", {"requestId": "q"})
            await peer.expect_silence()
            assert callback.outcome == ["cancelled"]
        assert "0 in flight, 0 calls" in repr(client)


@pytest.mark.parametrize("version", STATEFUL)
async def test_input_request_cancelled_by_server_cancels_callback(version: str) -> None:
    callback = SlowCallback(5000)
    async with play_server_in_nursery(version, on_sample=callback, on_roots=[]) as (
        client,
        peer,
        nursery,
    ):
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=SAMPLING_REQUEST)
        await peer.notify("notifications/cancelled", {"requestId": "q"})
        await peer.expect_silence()
        assert callback.outcome in (["cancelled"], [])  # [] if it had not started
        await peer.request("roots/list", id="q")  # the id may be reused
        assert await call.responses("q") == {"q": {"roots": []}}
        await call.end()


@every_revision
@pytest.mark.parametrize("how", ["closed", "lost"])
async def test_connection_ended_during_input_request_cancels_callback(
    version: str, how: str
) -> None:
    """A dialog whose answer can't be delivered must not stay open."""
    callback = SlowCallback(5000)
    async with play_server_in_nursery(version, on_sample=callback) as (client, peer, nursery):
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=SAMPLING_REQUEST)
        await callback.started.wait()
        if how == "closed":
            await client.aclose()
        else:
            await peer.aclose()
        await call.ended.wait()
        assert isinstance(call.error, ConnectionLost)
        await either.wait_all_tasks_blocked()
        assert callback.outcome == ["cancelled"]


@every_revision
async def test_client_block_cancelled_during_input_request_cancels_callback(version: str) -> None:
    callback = SlowCallback(5000)
    with either.CancelScope() as scope:
        async with play_server_in_nursery(version, on_sample=callback) as (client, peer, nursery):
            call = ClientCall(client, peer, nursery)
            await call.request_input(q=SAMPLING_REQUEST)
            await callback.started.wait()
            scope.cancel()
            await either.sleep_forever()
    assert scope.cancelled_caught
    assert callback.outcome == ["cancelled"]


@pytest.mark.requirement("MRTR-6", "MRTR-17")
async def test_input_required_without_requests_is_retried_with_backoff() -> None:
    async with play_server(E) as (client, peer), either.open_nursery() as nursery:
        start = either.current_time()
        call = ClientCall(client, peer, nursery)
        pauses = []
        for number in range(10):
            request = await peer.expect("tools/call")
            pauses.append(either.current_time() - start)
            await peer.answer(
                request, {"resultType": "input_required", "requestState": str(number)}
            )
        call.request = await peer.expect("tools/call", {"requestState": "9"})
        pauses.append(either.current_time() - start)
        assert pauses == pytest.approx([0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 11.3, 16.3, 21.3, 26.3])
        await call.end()


# -- Roots that change -----------------------------------------------------------------------------


@pytest.mark.requirement("ROOT-4")
@every_revision
async def test_roots_changed_are_announced_and_returned(version: str) -> None:
    places = ["file:///a"]
    async with play_server_in_nursery(version, on_roots=places) as (client, peer, nursery):
        places.append("file:///b")
        client.roots_changed()
        if version != E:
            await peer.expect("notifications/roots/list_changed")
        call = ClientCall(client, peer, nursery)
        await call.request_input(q=ROOTS_REQUEST)
        found = await call.responses("q")
        assert [root["uri"] for root in found["q"]["roots"]] == ["file:///a", "file:///b"]
        await call.end()


# -- Our own server and client ---------------------------------------------------------------------


@dataclass
class Guest:
    name: str
    nights: int = 1


def hotel() -> Server:
    server = Server("hotel")

    @server.tool
    async def book(context: Context) -> str:
        """Ask for the guest's name, and book."""
        answer = await context.elicit("Who comes?", Guest)
        if answer.action != "accept":
            return answer.action
        return f"{answer.data.name}, {answer.data.nights}"

    @server.tool
    async def pay(context: Context) -> str:
        """Have the guest pay on a page."""
        return (await context.elicit_url("Pay", "https://pay.example/1")).action

    @server.tool
    async def describe(context: Context) -> str:
        """Have the model describe the room, and say where it may write."""
        sampled = await context.sample("Describe the room.", max_tokens=9)
        assert isinstance(sampled.content, t.TextContent)
        return f"{sampled.content.text} {[root.uri for root in await context.roots()]}"

    return server


@pytest.mark.parametrize(
    ("tool", "options", "versions", "text"),
    [
        ("book", {"on_elicit": lambda params: {"name": "Ada"}}, WITH_FORMS, "Ada, 1"),
        (
            "book",
            {"on_elicit": answer_form(lambda *_: {"name": "Ada", "nights": 2})},
            WITH_FORMS,
            "Ada, 2",
        ),
        ("book", {"on_elicit": lambda params: None}, WITH_FORMS, "cancel"),
        ("pay", {"on_elicit": lambda params: {}, "elicitation": URLS}, WITH_URLS, "accept"),
        ("pay", {"on_elicit": lambda params: None, "elicitation": URLS}, WITH_URLS, "cancel"),
        (
            "describe",
            {"on_sample": lambda params: SAMPLED, "on_roots": ["file:///srv"]},
            VERSIONS,
            "hi ['file:///srv']",
        ),
    ],
)
async def test_input_requests_between_own_server_and_own_client(
    tool: str, options: Any, versions: tuple[str, ...], text: str
) -> None:
    for version in VERSIONS:
        async with either.connect(hotel(), versions=[version], **options) as client:
            if version in versions:
                assert (await client.call_tool(tool)).text == text
            else:
                with pytest.raises(PeerError):
                    await client.call_tool(tool)


@every_revision
async def test_input_request_own_client_without_capability_raises(version: str) -> None:
    async with either.connect(hotel(), versions=[version]) as client:
        for tool in "book", "pay", "describe":
            with pytest.raises(PeerError, match="this needs a client that declares"):
                await client.call_tool(tool)
