"""What a server asks of a client, in every revision and over a wire: the model, the user, the roots.

The server is played by the test. Until 2025-11-25 it asks by a request, while a call of the client's is under way; in 2026-07-28 by
the answer to that call. `Exchange` is the difference; a test says only what is asked, and what comes of it. At the end both ends
are ours.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.lowlevel
import trio.testing

import mcp_trio
from mcp_core import CallTimeout, ConnectionLost, FormSchema, McpError, PeerError, RemoteProtocolError
from mcp_core import types as t
from mcp_core.registry import Context, Server
from mcp_core.runtime import answer_form
from mcp_trio.testing import play_server
from tests.core.helpers import STATEFUL, VERSIONS, A, B, C, D, E

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio import Client
    from mcp_trio.testing import ScriptedPeer

    Message = dict[str, Any]

MockClock = trio.testing.MockClock
every_revision = pytest.mark.parametrize("version", VERSIONS)
WITH_FORMS = (C, D, E)
WITH_PAGES = (D, E)

FORM: Message = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "size": {"type": "string", "default": "M"}},
    "required": ["name"],
}
ASK_NAME = ("elicitation/create", {"message": "Who are you?", "requestedSchema": FORM})
ASK_PAGE = ("elicitation/create", {"message": "Log in", "mode": "url", "url": "https://x.example/login"})
HELLO = {"role": "user", "content": {"type": "text", "text": "hello"}}
ASK_MODEL = ("sampling/createMessage", {"messages": [HELLO], "maxTokens": 10})
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
ASK_MODEL_WITH_TOOLS = ("sampling/createMessage", {**ASK_MODEL[1], "tools": [TOOL]})
ASK_ROOTS: tuple[str, Message] = ("roots/list", {})
Question = tuple[str, "Message"]

SAID = t.CreateMessageResult(role="assistant", content=t.TextContent("hi"), model="m")
SAID_ON_THE_WIRE = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
DONE: Message = {"content": [{"type": "text", "text": "done"}]}


class Exchange:
    """A call of the client's in a task of its own, which leads the server to ask."""

    def __init__(self, client: Client, peer: ScriptedPeer, nursery: trio.Nursery, **options: Any) -> None:
        self.peer = peer
        self.result: Any = None
        self.error: BaseException | None = None
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        nursery.start_soon(self._call, client, options)

    async def _call(self, client: Client, options: Any) -> None:
        try:
            with self.scope:
                self.result = await client.call_tool("t", {"a": 1}, **options)
        except Exception as exc:  # noqa: BLE001 - the test looks at it
            self.error = exc
        self.ended.set()

    async def ask(self, **questions: Question) -> None:
        """Have the client asked."""
        self.call = await self.peer.expect("tools/call", {"name": "t", "arguments": {"a": 1}})
        if self.peer.version == E:
            asked = {key: {"method": method, "params": params} for key, (method, params) in questions.items()}
            answer = {"resultType": "input_required", "inputRequests": asked, "requestState": "st"}
            await self.peer.answer(self.call, answer)
        else:
            for key, (method, params) in questions.items():
                await self.peer.request(method, params, id=key)

    async def answers(self, *keys: str) -> dict[str, Any]:
        """What the client answers, by key; what it answers by an error is that error."""
        if self.peer.version == E:
            self.call = await self.peer.expect("tools/call", {"name": "t", "requestState": "st"})
            found: dict[str, Any] = self.call["params"]["inputResponses"]
            assert set(found) == set(keys)
            return found
        messages = [await self.peer.receive() for _ in keys]
        assert {message["id"] for message in messages} == set(keys)
        return {message["id"]: message.get("result", message.get("error")) for message in messages}

    async def end(self) -> None:
        """Answer the call, and see the client get that."""
        await self.peer.answer(self.call, DONE)
        await self.ended.wait()
        assert self.error is None
        assert self.result.text == "done"


@asynccontextmanager
async def asking(version: str, **options: Any) -> AsyncIterator[tuple[Client, ScriptedPeer, trio.Nursery]]:
    """A client with these options, the wire of its server, and a nursery for its calls."""
    async with play_server(version, **options) as (client, peer), trio.open_nursery() as nursery:
        yield client, peer, nursery


# -- What is asked and what is answered --------------------------------------------------------------------------------------


async def name(params: t.ElicitParams) -> Any:
    assert params.message == "Who are you?"
    await trio.lowlevel.checkpoint()
    return {"name": "Ada"}


async def fill(message: str, form: FormSchema) -> Any:
    assert (message, list(form.properties), form.required) == ("Who are you?", ["name", "size"], ["name"])
    return {"name": "Ada"}


async def sample(params: t.CreateMessageParams) -> t.CreateMessageResult:
    assert params.max_tokens == 10
    await trio.lowlevel.checkpoint()
    return SAID


async def open_page(params: t.ElicitParams) -> Any:
    assert (params.mode, params.url) == ("url", "https://x.example/login")
    return {}


async def roots() -> Any:
    return [Path("/home/ada"), "file:///srv", t.Root("file:///tmp", name="scratch")]


URLS = t.ElicitationCapability(form={}, url={})
ADA = {"action": "accept", "content": {"name": "Ada", "size": "M"}}
ROOTS_ON_THE_WIRE = {
    "roots": [{"uri": "file:///home/ada"}, {"uri": "file:///srv"}, {"uri": "file:///tmp", "name": "scratch"}]
}

# The revisions in which it can be asked, what the client is told, what is asked, and the answer.
ANSWERED: list[tuple[tuple[str, ...], Any, Question, Message]] = [
    (WITH_FORMS, {"on_elicit": name}, ASK_NAME, ADA),
    (WITH_FORMS, {"on_elicit": answer_form(fill)}, ASK_NAME, ADA),
    (WITH_FORMS, {"on_elicit": lambda params: {"name": "Ada"}}, ASK_NAME, ADA),
    (WITH_FORMS, {"on_elicit": lambda params: None}, ASK_NAME, {"action": "cancel"}),
    (
        WITH_FORMS,
        {"on_elicit": lambda params: t.ElicitResult(action="decline")},
        ASK_NAME,
        {"action": "decline"},
    ),
    (WITH_PAGES, {"on_elicit": open_page, "elicitation": URLS}, ASK_PAGE, {"action": "accept"}),
    (WITH_PAGES, {"on_elicit": answer_form(fill), "elicitation": URLS}, ASK_PAGE, {"action": "decline"}),
    (VERSIONS, {"on_sample": sample}, ASK_MODEL, SAID_ON_THE_WIRE),
    (
        WITH_PAGES,
        {"on_sample": sample, "sampling": t.SamplingCapability(tools={})},
        ASK_MODEL_WITH_TOOLS,
        SAID_ON_THE_WIRE,
    ),
    (VERSIONS, {"on_roots": roots}, ASK_ROOTS, ROOTS_ON_THE_WIRE),
    (VERSIONS, {"on_roots": [Path("/srv")]}, ASK_ROOTS, {"roots": [{"uri": "file:///srv"}]}),
]


@pytest.mark.requirement("ELIC-9", "SAMP-3", "ROOT-2", "ROOT-3", "MRTR-7", "MRTR-10")
@pytest.mark.parametrize(
    ("version", "options", "question", "answer"),
    [(version, *row) for versions, *row in ANSWERED for version in versions],
)
async def test_what_is_asked_is_answered(
    version: str, options: Any, question: Question, answer: Message
) -> None:
    async with asking(version, **options) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=question)
        assert await exchange.answers("q") == {"q": answer}
        await exchange.end()


# Options, and what is declared because of them, in which revisions.
CAPABILITIES: list[tuple[Any, dict[tuple[str, ...], Message]]] = [
    ({}, {VERSIONS: {}}),
    (
        {"on_elicit": name, "on_sample": sample, "on_roots": []},
        {
            (A, B): {"sampling": {}, "roots": {"listChanged": True}},
            (C, D): {"sampling": {}, "roots": {"listChanged": True}, "elicitation": {}},
            (E,): {"sampling": {}, "roots": {}, "elicitation": {}},
        },
    ),
    (
        {"on_elicit": name, "elicitation": URLS},
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
async def test_what_is_declared(version: str, options: Any, declared: dict[tuple[str, ...], Message]) -> None:
    async with play_server(version, **options) as (client, peer), trio.open_nursery() as nursery:
        if version == E:  # on each request
            nursery.start_soon(client.ping)
            asked = await peer.expect("server/discover")
            said = asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
            await peer.answer(asked, {"supportedVersions": [E], "capabilities": {}})
        else:
            said = json.loads(peer.transcript[0][1])["params"]["capabilities"]
        assert [said] == [found for versions, found in declared.items() if version in versions]


@pytest.mark.requirement("SAMP-5", "ELIC-3", "ROOT-5")
@every_revision
@pytest.mark.parametrize(
    ("options", "question", "code"),
    [
        ({}, ASK_MODEL, -32601),
        ({}, ASK_ROOTS, -32601),
        ({}, ASK_NAME, -32601),
        ({"on_elicit": name}, ASK_PAGE, -32602),
        ({"on_sample": sample}, ASK_MODEL_WITH_TOOLS, -32602),
        ({"on_elicit": name}, ("elicitation/create", {"message": "m", "requestedSchema": {}}), -32602),
        ({}, ("acme/ask", {}), -32601),
    ],
)
async def test_what_was_not_offered_is_not_answered(
    version: str, options: Any, question: Question, code: int
) -> None:
    async with asking(version, **options) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=question)
        if version == E:
            await exchange.ended.wait()
            assert isinstance(exchange.error, RemoteProtocolError)
            await peer.expect_silence()
            return
        answer = (await exchange.answers("q"))["q"]
        # What a revision does not have at all is no method there.
        assert answer["code"] == (-32601 if version in (A, B) and question[0].startswith("elicit") else code)
        await exchange.end()


@pytest.mark.requirement("ELIC-15")
async def test_a_page_that_nobody_knows_is_done_with() -> None:
    async with asking(D, on_elicit=open_page, elicitation=URLS) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        question = (ASK_PAGE[0], {**ASK_PAGE[1], "elicitationId": "1"})
        await peer.notify("notifications/elicitation/complete", {"elicitationId": "another"})
        await exchange.ask(q=question)
        assert await exchange.answers("q") == {"q": {"action": "accept"}}
        for _ in range(2):
            await peer.notify("notifications/elicitation/complete", {"elicitationId": "1"})
        await exchange.end()


# -- What goes wrong ---------------------------------------------------------------------------------------------------------


async def reject(params: Any) -> Any:
    async with trio.open_nursery():  # what it raises comes out in a group
        raise McpError(-1, "User rejected the request")


async def fail(params: Any = None) -> Any:
    await trio.lowlevel.checkpoint()
    raise KeyError("my secret")


@pytest.mark.requirement("SAMP-12", "SAMP-13", "MRTR-16")
@every_revision
@pytest.mark.parametrize("on_sample", [reject, lambda params: None])
async def test_a_user_who_rejects(version: str, on_sample: Any, caplog: pytest.LogCaptureFixture) -> None:
    async with asking(version, on_sample=on_sample) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=ASK_MODEL)
        if version == E:
            await exchange.ended.wait()
            assert isinstance(exchange.error, McpError)
            assert exchange.error.code == -1
            await peer.expect_silence()
        else:
            assert (await exchange.answers("q"))["q"]["code"] == -1
            await exchange.end()
    assert caplog.records == []


@pytest.mark.requirement("MRTR-16", "ELIC-9")
@pytest.mark.parametrize("version", WITH_FORMS)
async def test_a_user_who_rejects_a_form(version: str) -> None:
    async with asking(version, on_elicit=reject) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=ASK_NAME)
        answer = (await exchange.answers("q"))["q"]
        assert answer == (
            {"action": "cancel"} if version == E else {"code": -1, "message": "User rejected the request"}
        )
        await exchange.end()


FAILING: list[tuple[tuple[str, ...], Any, Question]] = [
    (VERSIONS, {"on_sample": fail}, ASK_MODEL),
    (VERSIONS, {"on_roots": fail}, ASK_ROOTS),
    (WITH_FORMS, {"on_elicit": fail}, ASK_NAME),
    (WITH_FORMS, {"on_elicit": lambda params: {"size": "M"}}, ASK_NAME),
    (VERSIONS, {"on_sample": lambda params: "hi"}, ASK_MODEL),
]


@pytest.mark.requirement("ROOT-5")
@pytest.mark.parametrize(
    ("version", "options", "question"),
    [(version, *row) for versions, *row in FAILING for version in versions],
)
async def test_a_callback_that_fails(
    version: str, options: Any, question: Question, caplog: pytest.LogCaptureFixture
) -> None:
    async with asking(version, **options) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=question)
        if version == E:  # there is a caller who can be told
            await exchange.ended.wait()
            assert isinstance(exchange.error, KeyError | mcp_trio.LocalProtocolError)
            await peer.expect_silence()
            assert caplog.records == []
        else:
            assert await exchange.answers("q") == {"q": {"code": -32603, "message": "Internal error"}}
            await exchange.end()
            (record,) = caplog.records
            assert record.getMessage() == f"{question[0]} could not be answered"
            assert record.exc_info is not None
        nursery.start_soon(client.ping)  # and nothing else is the worse for it
        await peer.receive()
        nursery.cancel_scope.cancel()


@every_revision
async def test_what_ends_a_program_is_no_failure_of_a_callback(version: str) -> None:
    async def interrupted(params: Any) -> Any:
        raise KeyboardInterrupt

    async def use() -> None:
        async with asking(version, on_sample=interrupted) as (client, peer, nursery):
            exchange = Exchange(client, peer, nursery)
            await exchange.ask(q=ASK_MODEL)
            await trio.sleep_forever()

    with pytest.raises(KeyboardInterrupt):
        await use()


@pytest.mark.parametrize("version", [D, E])
async def test_a_server_that_asks_too_much_at_once(version: str) -> None:
    started = 0

    async def wait() -> Any:
        nonlocal started
        started += 1
        await trio.sleep_forever()

    async with asking(version, on_roots=wait) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(**{str(number): ASK_ROOTS for number in range(513)})
        if version == E:
            await exchange.ended.wait()
            assert isinstance(exchange.error, RemoteProtocolError)
            assert started == 0
        else:
            refused = await exchange.answers("512")
            assert refused["512"]["code"] == -32000
            assert started == 256
            nursery.cancel_scope.cancel()


# -- What runs at once --------------------------------------------------------------------------------------------------------


@every_revision
async def test_two_questions_at_once(version: str) -> None:
    both = trio.Event()
    running: list[str] = []

    async def together(word: str) -> None:
        running.append(word)
        if len(running) == 2:
            both.set()
        await both.wait()

    async def sample_together(params: Any) -> Any:
        await together("model")
        return SAID

    async def roots_together() -> Any:
        await together("roots")
        return []

    async with asking(version, on_sample=sample_together, on_roots=roots_together) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(a=ASK_MODEL, b=ASK_ROOTS)
        assert await exchange.answers("a", "b") == {"a": SAID_ON_THE_WIRE, "b": {"roots": []}}
        await exchange.end()


@every_revision
async def test_other_calls_go_on_while_the_user_is_asked(version: str, autojump_clock: MockClock) -> None:
    async def think(params: Any) -> Any:
        await trio.sleep(30)
        return SAID

    async with asking(version, on_sample=think) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=ASK_MODEL)
        start = trio.current_time()
        for _ in range(3):
            nursery.start_soon(client.list_prompts)
            await peer.answer(await peer.expect("prompts/list"), {"prompts": [], "ttlMs": 0})
            await trio.testing.wait_all_tasks_blocked()
        assert trio.current_time() == start
        assert await exchange.answers("q") == {"q": SAID_ON_THE_WIRE}
        await exchange.end()
        assert trio.current_time() == start + 30


@every_revision
async def test_a_callback_may_call_the_server_itself(version: str) -> None:
    clients: list[Client] = []

    async def look_first(params: Any) -> Any:
        await clients[0].list_prompts()
        return SAID

    async with asking(version, on_sample=look_first) as (client, peer, nursery):
        clients.append(client)
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=ASK_MODEL)
        await peer.answer(await peer.expect("prompts/list"), {"prompts": []})
        assert await exchange.answers("q") == {"q": SAID_ON_THE_WIRE}
        await exchange.end()


# -- How long it takes -----------------------------------------------------------------------------------------------------------


class Thinking:
    """An `on_sample` that takes its time, and what became of it."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.became: list[str] = []
        self.started = trio.Event()

    async def __call__(self, params: Any) -> Any:
        self.started.set()
        try:
            await trio.sleep(self.seconds)
        except trio.Cancelled:
            self.became.append("cancelled")
            raise
        self.became.append("answered")
        return SAID


@every_revision
async def test_a_user_may_think_for_longer_than_a_server_may_be_silent(
    version: str, autojump_clock: MockClock
) -> None:
    async with asking(version, on_sample=Thinking(200)) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=ASK_MODEL)
        assert await exchange.answers("q") == {"q": SAID_ON_THE_WIRE}
        await trio.sleep(59)
        await exchange.end()


@every_revision
async def test_after_the_answer_it_is_the_servers_turn_again(version: str, autojump_clock: MockClock) -> None:
    async with asking(version, on_sample=Thinking(200)) as (client, peer, nursery):
        start = trio.current_time()
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=ASK_MODEL)
        await exchange.answers("q")
        await exchange.ended.wait()
        assert isinstance(exchange.error, CallTimeout)
        assert str(exchange.error) == "no answer to tools/call within 60 s (timeout)"
        assert trio.current_time() == start + 260
        assert (await peer.expect("notifications/cancelled"))["params"]["requestId"] == exchange.call["id"]


@every_revision
@pytest.mark.parametrize(("options", "seconds"), [({}, 300), ({"max_timeout": 20}, 20)])
async def test_nor_may_a_user_think_for_ever(
    version: str, options: Any, seconds: float, autojump_clock: MockClock
) -> None:
    thinking = Thinking(5000)
    async with asking(version, on_sample=thinking) as (client, peer, nursery):
        start = trio.current_time()
        exchange = Exchange(client, peer, nursery, **options)
        await exchange.ask(q=ASK_MODEL)
        await exchange.ended.wait()
        assert isinstance(exchange.error, CallTimeout)
        assert "max_timeout" in str(exchange.error)
        assert trio.current_time() == start + seconds
        await trio.testing.wait_all_tasks_blocked()
        if version == E:
            assert thinking.became == ["cancelled"]
            await peer.expect_silence()  # no request is under way that could be cancelled
        else:
            # The server's question is not over because our call is.
            assert thinking.became == []
            await peer.expect("notifications/cancelled")


@every_revision
async def test_who_leaves_the_call(version: str) -> None:
    thinking = Thinking(5000)
    async with asking(version, on_sample=thinking) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=ASK_MODEL)
        await thinking.started.wait()
        exchange.scope.cancel()
        await exchange.ended.wait()
        await trio.testing.wait_all_tasks_blocked()
        if version == E:
            assert thinking.became == ["cancelled"]
            await peer.expect_silence()
        else:
            await peer.expect("notifications/cancelled", {"requestId": exchange.call["id"]})
            # A server that hears of it withdraws its question.
            await peer.notify("notifications/cancelled", {"requestId": "q"})
            await peer.expect_silence()
            assert thinking.became == ["cancelled"]
        assert "0 in flight, 0 calls" in repr(client)


@pytest.mark.parametrize("version", STATEFUL)
async def test_a_question_that_is_withdrawn(version: str) -> None:
    thinking = Thinking(5000)
    async with asking(version, on_sample=thinking, on_roots=[]) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=ASK_MODEL)
        await peer.notify("notifications/cancelled", {"requestId": "q"})
        await peer.expect_silence()
        assert thinking.became in (["cancelled"], [])  # [] if it had not even begun
        await peer.request("roots/list", id="q")  # the id is free again
        assert await exchange.answers("q") == {"q": {"roots": []}}
        await exchange.end()


@every_revision
@pytest.mark.parametrize("how", ["closed", "lost"])
async def test_a_conversation_that_ends_while_the_user_is_asked(version: str, how: str) -> None:
    thinking = Thinking(5000)
    async with asking(version, on_sample=thinking) as (client, peer, nursery):
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=ASK_MODEL)
        await thinking.started.wait()
        if how == "closed":
            await client.aclose()
        else:
            await peer.aclose()
        await exchange.ended.wait()
        assert isinstance(exchange.error, ConnectionLost)
        await trio.testing.wait_all_tasks_blocked()
        assert thinking.became == ["cancelled"]


@every_revision
async def test_a_block_that_is_cancelled_while_the_user_is_asked(version: str) -> None:
    thinking = Thinking(5000)
    with trio.CancelScope() as scope:
        async with asking(version, on_sample=thinking) as (client, peer, nursery):
            exchange = Exchange(client, peer, nursery)
            await exchange.ask(q=ASK_MODEL)
            await thinking.started.wait()
            scope.cancel()
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert thinking.became == ["cancelled"]


@pytest.mark.requirement("MRTR-6", "MRTR-17")
async def test_a_server_that_only_puts_off(autojump_clock: MockClock) -> None:
    async with play_server(E) as (client, peer), trio.open_nursery() as nursery:
        start = trio.current_time()
        exchange = Exchange(client, peer, nursery)
        pauses = []
        for number in range(10):
            asked = await peer.expect("tools/call")
            pauses.append(trio.current_time() - start)
            await peer.answer(asked, {"resultType": "input_required", "requestState": str(number)})
        exchange.call = await peer.expect("tools/call", {"requestState": "9"})
        pauses.append(trio.current_time() - start)
        assert pauses == pytest.approx([0, 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 11.3, 16.3, 21.3, 26.3])
        await exchange.end()


# -- Roots that change -------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("ROOT-4")
@every_revision
async def test_roots_that_change(version: str) -> None:
    places = ["file:///a"]
    async with asking(version, on_roots=places) as (client, peer, nursery):
        places.append("file:///b")
        client.roots_changed()
        if version != E:
            await peer.expect("notifications/roots/list_changed")
        exchange = Exchange(client, peer, nursery)
        await exchange.ask(q=ASK_ROOTS)
        found = await exchange.answers("q")
        assert [root["uri"] for root in found["q"]["roots"]] == ["file:///a", "file:///b"]
        await exchange.end()


# -- Both ends are ours ------------------------------------------------------------------------------------------------------------


@dataclass
class Guest:
    name: str
    nights: int = 1


def hotel() -> Server:
    server = Server("hotel")

    @server.tool
    async def book(context: Context) -> str:
        """Ask who comes, and book."""
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
        said = await context.sample("Describe the room.", max_tokens=9)
        assert isinstance(said.content, t.TextContent)
        return f"{said.content.text} {[root.uri for root in await context.roots()]}"

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
        ("pay", {"on_elicit": lambda params: {}, "elicitation": URLS}, WITH_PAGES, "accept"),
        ("pay", {"on_elicit": lambda params: None, "elicitation": URLS}, WITH_PAGES, "cancel"),
        (
            "describe",
            {"on_sample": lambda params: SAID, "on_roots": ["file:///srv"]},
            VERSIONS,
            "hi ['file:///srv']",
        ),
    ],
)
async def test_a_server_of_ours_asks_a_client_of_ours(
    tool: str, options: Any, versions: tuple[str, ...], text: str
) -> None:
    for version in VERSIONS:
        async with mcp_trio.connect(hotel(), versions=[version], **options) as client:
            if version in versions:
                assert (await client.call_tool(tool)).text == text
            else:
                with pytest.raises(PeerError):
                    await client.call_tool(tool)


@every_revision
async def test_a_server_of_ours_hears_that_nobody_can_be_asked(version: str) -> None:
    async with mcp_trio.connect(hotel(), versions=[version]) as client:
        for tool in "book", "pay", "describe":
            with pytest.raises(PeerError, match="this needs a client that declares"):
                await client.call_tool(tool)
