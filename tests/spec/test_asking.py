"""A server asks its client: forms, pages, the model and the roots, over a wire and in every revision.

The tools are written once. The other end is a script: it answers requests where a question is one, and calls again with the answers
where it is part of an answer. Whatever it is told is what a client of that revision may be told.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import pytest
import trio
import trio.testing
from msgspec import Meta, Struct

from mcp_core import Limits, LocalProtocolError, McpError, ToolError
from mcp_core import types as t
from mcp_core.registry import Accepted, Context, Form, Proceed, Server, UrlElicitationRequired
from mcp_trio import serve_stream
from mcp_trio.testing import ScriptedPeer, memory_pair
from tests.core.helpers import STATEFUL, STATELESS, VERSIONS, A, B, C, D, E

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Message = dict[str, Any]

OFFERS: Final[Message] = {
    "roots": {},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
}
every_revision = pytest.mark.parametrize("version", VERSIONS)
with_sessions = pytest.mark.parametrize("version", STATEFUL)
without_sessions = pytest.mark.parametrize("version", STATELESS)
with_forms = pytest.mark.parametrize("version", [C, D, E])
with_pages = pytest.mark.parametrize("version", [D, E])
both_eras = pytest.mark.parametrize("version", [D, E])


class Seats(Struct):
    """What the user is asked for."""

    count: Annotated[int, Meta(ge=1, le=8, description="How many?")]
    where: Literal["aisle", "window"] = "aisle"


SEATS = Form(Seats)
TWO: Final = {"action": "accept", "content": {"count": 2, "where": "window"}}
HOME: Final = {"roots": [{"uri": "file:///home", "name": "home"}]}
HI: Final = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
USES: Final = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "u1", "name": "add", "input": {"a": 1, "b": 2}}],
    "model": "m",
    "stopReason": "toolUse",
}
THREE: Final = {"role": "assistant", "content": {"type": "text", "text": "it is 3"}, "model": "m"}
ADD: Final = t.Tool(name="add", input_schema={"type": "object"})


def build(**options: Any) -> Server:
    server = Server("asking", **options)
    declare_questions(server)
    declare_manners(server)
    return server


def declare_questions(server: Server) -> None:
    """A tool for each kind of question."""

    @server.tool
    async def form(context: Context) -> str:
        """Ask for a form."""
        answer = await context.elicit("How many seats?", Seats)
        return (
            f"{answer.data.count} at the {answer.data.where}" if answer.action == "accept" else answer.action
        )

    @server.tool
    async def page(context: Context) -> str:
        """Ask for a visit to a page."""
        answer = await context.elicit_url("Please pay.", "https://example.com/pay", elicitation_id="p1")
        return answer.action

    @server.tool
    async def model(context: Context) -> str:
        """Ask the model."""
        said = await context.sample("Say hi.", max_tokens=10, system_prompt="Be brief.")
        assert isinstance(said.content, t.TextContent)
        return said.content.text

    @server.tool
    async def model_with_tools(context: Context) -> str:
        """Ask the model, and carry out what it wants to use."""
        messages = [t.SamplingMessage("user", t.TextContent("1 + 2?"))]
        for _ in range(3):
            said = await context.sample(messages, max_tokens=10, tools=[ADD], tool_choice="auto")
            blocks = said.content if isinstance(said.content, list) else [said.content]
            uses = [block for block in blocks if isinstance(block, t.ToolUseContent)]
            if not uses:
                (block,) = blocks
                assert isinstance(block, t.TextContent)
                return block.text
            done = [
                t.ToolResultContent(use.id, [t.TextContent(str(sum(use.input.values())))]) for use in uses
            ]
            messages += [t.SamplingMessage("assistant", blocks), t.SamplingMessage("user", list(done))]
        raise ToolError("the model does not come to an end")

    @server.tool
    async def roots(context: Context) -> str:
        """Ask for the roots."""
        return ", ".join(root.uri for root in await context.roots())


def declare_manners(server: Server) -> None:
    """Tools that ask in other ways than once."""

    @server.tool
    async def two_rounds(context: Context) -> str:
        """Ask for a form, and then for the roots."""
        answer = await context.elicit("How many seats?", Seats)
        if answer.action != "accept":
            return answer.action
        return f"{answer.data.count} for {len(await context.roots())}"

    @server.tool
    async def side_by_side(context: Context) -> str:
        """Ask two tasks' questions."""
        told: dict[str, Any] = {}

        async def ask_form() -> None:
            told["form"] = (await context.elicit("How many seats?", Seats)).action

        async def ask_roots() -> None:
            told["roots"] = len(await context.roots())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask_form)
            nursery.start_soon(ask_roots)
        return f"{told['form']} {told['roots']}"

    @server.tool
    async def stubborn(context: Context) -> str:
        """Ask, and catch everything."""
        try:
            return (await context.elicit("How many seats?", Seats)).action
        except BaseException as exc:
            if isinstance(exc, trio.Cancelled):
                raise
            return "caught"

    @server.tool
    async def careful(context: Context) -> str:
        """Do without what the client cannot do."""
        try:
            return (await context.elicit("How many seats?", Seats)).action
        except McpError:
            return "2 at the aisle"

    @server.tool
    async def changing(context: Context) -> str:
        """Ask what reads otherwise each time."""
        answer = await context.elicit(f"It is {time.perf_counter_ns()} now. How many?", Seats, key="seats")
        return answer.action


BY_HAND: Final = ("by_hand", "by_hand_async", "by_hand_thread")


def build_by_hand() -> Server:
    """The same question, returned instead of awaited."""
    server = Server("asking by hand")

    def by_hand(context: Context) -> str | t.InputRequiredResult:
        """Ask for a form."""
        answer = context.input_response("seats", SEATS)
        if answer is None:
            return t.InputRequiredResult(
                input_requests={"seats": SEATS.question("How many seats?")}, request_state="step 1"
            )
        assert context.request_state == "step 1"
        return (
            f"{answer.data.count} at the {answer.data.where}" if answer.action == "accept" else answer.action
        )

    @server.tool
    async def by_hand_async(context: Context) -> str | t.InputRequiredResult:
        """Ask for a form."""
        return by_hand(context)

    server.add_tool(by_hand)
    server.add_tool(by_hand, name="by_hand_thread", thread=True)
    return server


class Client:
    """A client of one revision, who answers questions as it is told to."""

    def __init__(self, peer: ScriptedPeer) -> None:
        self.peer = peer
        self.asked: list[list[tuple[str, Any]]] = []  # method and params of every question, by rounds

    async def call(self, tool: str, answers: Mapping[str, Any], **params: Any) -> Message:
        """Call `tool`, answer its questions by their method, and give its result or error.

        `answers` has one answer for each method, or several in a list, one after the other.
        """
        left = {name: list(given) if isinstance(given, list) else [given] for name, given in answers.items()}
        if self.peer.version in STATEFUL:
            return await self._answering(tool, left, params)
        return await self._again(tool, left, params)

    async def _answering(self, tool: str, answers: dict[str, list[Any]], params: Message) -> Message:
        call = await self.peer.request("tools/call", {"name": tool, **params})
        while True:
            message = await self.peer.receive()
            if "method" not in message:
                assert message["id"] == call["id"]
                return message
            self.asked.append([(message["method"], message.get("params"))])
            await self.peer.answer(message, answers[message["method"]].pop(0))

    async def _again(self, tool: str, answers: dict[str, list[Any]], params: Message) -> Message:
        while True:
            call = await self.peer.request("tools/call", {"name": tool, **params})
            message = await self.peer.receive()
            assert message["id"] == call["id"]
            result = message.get("result", {})
            if result.get("resultType") != "input_required":
                return message
            questions = result["inputRequests"]
            self.asked.append(
                [(question["method"], question.get("params")) for question in questions.values()]
            )
            params = {
                "requestState": result["requestState"],
                "inputResponses": {
                    key: answers[question["method"]].pop(0) for key, question in questions.items()
                },
            }


@asynccontextmanager
async def playing(server: Server, version: str, offers: Message = OFFERS) -> AsyncIterator[ScriptedPeer]:
    """A client of `server` that offers `offers`, and hangs up in the end."""
    ours, theirs = memory_pair()
    peer = ScriptedPeer(ours, version)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_stream, server, theirs)
        await peer.open_as_client(offers)
        yield peer
        await peer.aclose()


def text_of(message: Message) -> str:
    text = message["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


# -- Written once ------------------------------------------------------------------------------------------------------------

FORM_PARAMS: Final = {
    "message": "How many seats?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "count": {"type": "integer", "description": "How many?", "minimum": 1, "maximum": 8},
            "where": {"type": "string", "enum": ["aisle", "window"], "default": "aisle"},
        },
        "required": ["count"],
    },
}
PAGE_PARAMS: Final = {"message": "Please pay.", "mode": "url", "url": "https://example.com/pay"}
HI_PARAMS: Final = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi."}}],
    "maxTokens": 10,
    "systemPrompt": "Be brief.",
}

# A tool, the revisions in which it can ask, what the client answers, and what comes of it in how many rounds.
TOOLS: list[tuple[str, tuple[str, ...], Message, str, int]] = [
    ("form", (C, D, E), {"elicitation/create": TWO}, "2 at the window", 1),
    ("form", (C, D, E), {"elicitation/create": {"action": "decline"}}, "decline", 1),
    ("form", (C, D, E), {"elicitation/create": {"action": "cancel", "content": {}}}, "cancel", 1),
    ("page", (D, E), {"elicitation/create": {"action": "accept"}}, "accept", 1),
    ("page", (D, E), {"elicitation/create": {"action": "decline"}}, "decline", 1),
    ("model", (A, B, C, D, E), {"sampling/createMessage": HI}, "hi", 1),
    ("model_with_tools", (D, E), {"sampling/createMessage": [USES, THREE]}, "it is 3", 2),
    ("roots", (A, B, C, D, E), {"roots/list": HOME}, "file:///home", 1),
    ("roots", (A, B, C, D, E), {"roots/list": {"roots": []}}, "", 1),
    ("two_rounds", (C, D, E), {"elicitation/create": TWO, "roots/list": HOME}, "2 for 1", 2),
    ("two_rounds", (C, D, E), {"elicitation/create": {"action": "decline"}}, "decline", 1),
    ("changing", (C, D, E), {"elicitation/create": TWO}, "accept", 1),
]
EVERY_TOOL: Final = [(tool, version, *rest) for tool, versions, *rest in TOOLS for version in versions]


@pytest.mark.requirement("MRTR-1", "MRTR-12", "ELIC-14", "ELIC-23", "SAMP-4")
@pytest.mark.parametrize(("tool", "version", "answers", "text", "rounds"), EVERY_TOOL)
async def test_a_tool_is_written_once(
    tool: str, version: str, answers: Message, text: str, rounds: int
) -> None:
    async with playing(build(), version) as peer:
        client = Client(peer)
        assert text_of(await client.call(tool, answers)) == text
        assert [len(questions) for questions in client.asked] == [1] * rounds
        if version in STATELESS:  # a server says nothing but answers there
            assert all(b'"method"' not in line[:60] for way, line in peer.transcript if way == "received")


@pytest.mark.requirement("SAMP-2", "ELIC-4", "ELIC-5", "ELIC-13", "ELIC-17", "ROOT-2")
@pytest.mark.parametrize(
    ("tool", "version", "params"),
    [
        *[("model", version, HI_PARAMS) for version in VERSIONS],
        *[("form", version, FORM_PARAMS) for version in (D, E)],
        ("page", D, {**PAGE_PARAMS, "elicitationId": "p1"}),
        ("page", E, PAGE_PARAMS),
        *[("roots", version, None) for version in VERSIONS],
    ],
)
async def test_what_the_client_is_asked(tool: str, version: str, params: Any) -> None:
    answers = {"sampling/createMessage": HI, "elicitation/create": TWO, "roots/list": HOME}
    async with playing(build(), version) as peer:
        client = Client(peer)
        await client.call(tool, answers)
        (((_, asked),),) = client.asked
        assert asked == params


@pytest.mark.requirement("SAMP-5", "SAMP-8", "SAMP-9")
@with_pages
async def test_a_model_uses_tools(version: str) -> None:
    async with playing(build(), version) as peer:
        client = Client(peer)
        await client.call("model_with_tools", {"sampling/createMessage": [USES, THREE]})
        ((_, first),), ((_, second),) = client.asked
        assert first["tools"] == [{"name": "add", "inputSchema": {"type": "object"}}]
        assert first["toolChoice"] == {"mode": "auto"}
        result = {"type": "tool_result", "toolUseId": "u1", "content": [{"type": "text", "text": "3"}]}
        assert second["messages"][1:] == [
            {"role": "assistant", "content": USES["content"]},
            {"role": "user", "content": [result]},
        ]


@pytest.mark.requirement("SAMP-18")
@every_revision
async def test_one_call_knows_nothing_of_another(version: str) -> None:
    async with playing(build(), version) as peer:
        client = Client(peer)
        for _ in range(2):
            await client.call("model", {"sampling/createMessage": HI})
        assert client.asked[0] == client.asked[1]


@with_forms
async def test_tasks_ask_side_by_side(version: str) -> None:
    answers: dict[str, Message] = {"elicitation/create": TWO, "roots/list": HOME}
    async with playing(build(), version) as peer:
        if version in STATEFUL:
            call = await peer.request("tools/call", {"name": "side_by_side"})
            asked = [await peer.receive(), await peer.receive()]
            for question in reversed(asked):
                await peer.answer(question, answers[question["method"]])
            assert text_of({"result": await peer.expect_result(call)}) == "accept 1"
        else:
            client = Client(peer)
            assert text_of(await client.call("side_by_side", answers)) == "accept 1"
            assert [len(questions) for questions in client.asked] == [2]


# -- Asking by hand ----------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("MRTR-1", "MRTR-3", "MRTR-4")
@with_forms
@pytest.mark.parametrize("tool", BY_HAND)
@pytest.mark.parametrize(("answer", "text"), [(TWO, "2 at the window"), ({"action": "cancel"}, "cancel")])
async def test_a_question_is_returned(version: str, tool: str, answer: Message, text: str) -> None:
    async with playing(build_by_hand(), version) as peer:
        client = Client(peer)
        assert text_of(await client.call(tool, {"elicitation/create": answer})) == text
        assert len(client.asked) == 1


@with_forms
async def test_a_form_that_is_filled_in_wrongly_is_asked_for_again(version: str) -> None:
    wrong = {"action": "accept", "content": {"count": 9}}
    async with playing(build_by_hand(), version) as peer:
        client = Client(peer)
        answer = await client.call("by_hand", {"elicitation/create": [wrong, wrong, TWO]})
        assert text_of(answer) == "2 at the window"
        assert len(client.asked) == 3


async def test_who_is_put_off_comes_back(autojump_clock: trio.testing.MockClock) -> None:
    server = Server("busy")
    runs = 0

    @server.middleware
    async def busy(context: Context, proceed: Proceed) -> object:
        nonlocal runs
        runs += 1
        return await proceed() if runs == 3 else t.InputRequiredResult(request_state=f"run {runs}")

    @server.tool
    def work(context: Context) -> str:
        """Work."""
        return str(context.request_state)

    async with playing(server, D) as peer:  # here it is we who wait
        assert (await peer.result_of("tools/call", {"name": "work"}))["content"][0]["text"] == "run 2"
        assert trio.current_time() == pytest.approx(0.3)
    runs = 0
    async with playing(server, E) as peer:
        params: Message = {"name": "work"}
        for _ in range(2):
            result = await peer.result_of("tools/call", params)
            assert result["resultType"] == "input_required"
            params["requestState"] = result["requestState"]
        assert (await peer.result_of("tools/call", params))["content"][0]["text"] == "run 2"


# -- Clients that lack something, and handlers that do not mind ---------------------------------------------------------------


@pytest.mark.requirement("MRTR-5", "ELIC-3", "SAMP-5")
@pytest.mark.parametrize(
    ("tool", "offers", "missing"),
    [
        ("form", {}, {"elicitation": {}}),
        ("form", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("page", {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("model", {}, {"sampling": {}}),
        ("model_with_tools", {"sampling": {}}, {"sampling": {"tools": {}}}),
        ("roots", {"sampling": {}}, {"roots": {}}),
    ],
)
@both_eras
async def test_nobody_is_asked_what_he_did_not_offer(
    version: str, tool: str, offers: Message, missing: Message
) -> None:
    async with playing(build(), version, offers) as peer:
        refused = await peer.request("tools/call", {"name": tool})
        told = await peer.expect_error(refused, -32021 if version == E else -32601)
        assert told["data"] == {"requiredCapabilities": missing}
        assert text_of(await Client(peer).call("careful", {"elicitation/create": {"action": "cancel"}})) in (
            "cancel",
            "2 at the aisle",
        )


@pytest.mark.parametrize("version", [A, B])
async def test_a_revision_without_forms_has_no_client_for_them(version: str) -> None:
    async with playing(build(), version) as peer:  # whatever that one says it offers
        assert text_of(await Client(peer).call("careful", {})) == "2 at the aisle"


@pytest.mark.requirement("MRTR-2")
@with_forms
async def test_a_handler_that_catches_everything(version: str) -> None:
    async with playing(build(), version) as peer:
        client = Client(peer)
        assert text_of(await client.call("stubborn", {"elicitation/create": TWO})) == "accept"
        assert len(client.asked) == 1


@with_sessions
async def test_a_client_refuses(version: str) -> None:
    async with playing(build(), version) as peer:
        call = await peer.request("tools/call", {"name": "model"})
        await peer.refuse(await peer.expect("sampling/createMessage"), -1, "User rejected sampling request")
        told = await peer.expect_error(call, -1)
        assert told["message"] == "the client refused sampling/createMessage: User rejected sampling request"


@pytest.mark.requirement("ELIC-10", "MRTR-15")
async def test_answers_that_do_not_fit() -> None:
    async with playing(build(), D) as peer:
        call = await peer.request("tools/call", {"name": "form"})
        await peer.answer(
            await peer.expect("elicitation/create"), {"action": "accept", "content": {"count": 0}}
        )
        told = await peer.expect_error(call, -32603)
        assert (
            told["message"] == "the answer to elicitation/create does not fit: content.count is less than 1"
        )
    async with playing(build(), E) as peer:
        client = Client(peer)
        wrong = {"action": "accept", "content": {"count": 0}}
        assert text_of(await client.call("form", {"elicitation/create": [wrong, TWO]})) == "2 at the window"
        assert client.asked[0] == client.asked[1]


# -- Cancelling, waiting, hanging up ------------------------------------------------------------------------------------------


def watched() -> tuple[Server, list[str]]:
    """A server whose tool tells what became of it."""
    server = Server("watched", limits=Limits(in_flight=2, waiting=1))
    came: list[str] = []

    @server.tool
    async def ask(context: Context) -> str:
        """Ask for the roots."""
        try:
            return str(len(await context.roots()))
        except BaseException as exc:
            came.append(type(exc).__name__)
            raise

    @server.tool
    async def shielded(context: Context) -> str:
        """Ask for the roots, and do not let anybody disturb."""
        try:
            with trio.CancelScope(shield=True):
                await context.roots()
        except LocalProtocolError as exc:
            came.append(str(exc))
            raise
        return "answered"

    @server.tool
    async def impatient(context: Context) -> str:
        """Ask for the roots, but not for long."""
        with trio.move_on_after(5):
            return str(len(await context.roots()))
        return "nobody answered"

    return server, came


@pytest.mark.parametrize(
    ("tool", "what"),
    [("ask", "Cancelled"), ("shielded", "the request is over, so no response to it can be awaited")],
)
@with_sessions
async def test_a_question_ends_with_its_request(version: str, tool: str, what: str) -> None:
    server, came = watched()
    async with playing(server, version) as peer:
        call = await peer.request("tools/call", {"name": tool})
        question = await peer.expect("roots/list")
        await peer.notify("notifications/cancelled", {"requestId": call["id"]})
        await peer.expect("notifications/cancelled", {"requestId": question["id"]})
        await peer.answer(question, HOME)  # too late, which is legal
        await peer.expect_silence()
        assert came == [what]
        assert await peer.result_of("ping") == {}


@with_sessions
async def test_a_client_that_never_answers(version: str, autojump_clock: trio.testing.MockClock) -> None:
    server, _ = watched()
    async with playing(server, version) as peer:
        call = await peer.request("tools/call", {"name": "impatient"})
        question = await peer.expect("roots/list")
        await peer.expect("notifications/cancelled", {"requestId": question["id"]})
        assert (await peer.expect_result(call))["content"][0]["text"] == "nobody answered"
        # Nobody but the handler, or the client, ends the waiting.
        call = await peer.request("tools/call", {"name": "ask"})
        await peer.expect("roots/list")
        await trio.sleep(86_400)
        await peer.notify("notifications/cancelled", {"requestId": call["id"]})
        await peer.expect("notifications/cancelled")


@with_sessions
async def test_a_client_that_hangs_up(version: str) -> None:
    server, came = watched()
    async with playing(server, version) as peer:
        await peer.request("tools/call", {"name": "ask"})
        await peer.expect("roots/list")
    assert came == ["ConnectionLost"]


@with_sessions
async def test_an_answer_comes_through_full_lanes(version: str) -> None:
    """All places are taken by handlers that wait for an answer, and others wait for a place: reading goes on all the same."""
    server, _ = watched()
    async with playing(server, version) as peer:
        calls = [await peer.request("tools/call", {"name": "ask"}) for _ in range(3)]
        questions = [await peer.expect("roots/list"), await peer.expect("roots/list")]
        refused = await peer.request("tools/call", {"name": "ask"})
        assert "too many requests" in (await peer.expect_error(refused))["message"]
        answered = []
        for _ in calls:
            await peer.answer(questions.pop(), HOME)
            answered.append((await peer.receive())["id"])
            if len(answered) == 1:
                questions.append(await peer.expect("roots/list"))
        assert sorted(answered) == [call["id"] for call in calls]


async def test_in_a_thread_nobody_can_wait(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("threads")

    @server.tool(thread=True)
    def ask(context: Context) -> str:
        """Ask, where one cannot wait."""
        return str(context.roots())

    async with playing(server, D) as peer:
        assert (await peer.result_of("tools/call", {"name": "ask"}))["isError"] is True
    assert (
        "a plain def cannot await an answer: write an `async def`, or return InputRequiredResult"
        in caplog.text
    )


# -- What the client keeps for us ------------------------------------------------------------------------------------------


async def required(peer: ScriptedPeer, **params: Any) -> Message:
    """The first answer of a tool that asks for a form."""
    result: Message = await peer.result_of("tools/call", {"name": "form", **params})
    assert result["resultType"] == "input_required"
    return result


@pytest.mark.requirement("MRTR-13", "MRTR-14")
@without_sessions
@pytest.mark.parametrize("how", ["altered", "foreign", "expired", "for another tool", "for other arguments"])
async def test_a_state_that_is_refused(
    version: str, how: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with playing(build(), version) as other:
        foreign = (await required(other))["requestState"]
    async with playing(build(), version) as peer:
        state = (await required(peer))["requestState"]
        params: Message = {"name": "form", "requestState": state}
        if how == "altered":
            params["requestState"] = state[:-2] + ("AA" if state[-2:] != "AA" else "BB")
        elif how == "foreign":
            params["requestState"] = foreign
        elif how == "for another tool":
            params["name"] = "page"
        elif how == "for other arguments":
            params["arguments"] = {"a": 1}
        else:
            now = time.time()
            monkeypatch.setattr(time, "time", lambda: now + 601)
        told = await peer.expect_error(await peer.request("tools/call", params), -32602)
        assert (
            told["message"] == "requestState is not valid for this request; make the request again without it"
        )
    assert "requestState refused: " in caplog.text


@pytest.mark.requirement("MRTR-18")
@without_sessions
async def test_another_process_goes_on_where_one_has_ended(version: str) -> None:
    keys = {"a": b"a" * 32}
    async with playing(build(state_keys=keys), version) as peer:
        result = await required(peer)
    (key,) = result["inputRequests"]
    params = {"name": "form", "requestState": result["requestState"], "inputResponses": {key: TWO}}
    async with playing(build(state_keys=keys), version) as peer:
        assert (await peer.result_of("tools/call", params))["content"][0]["text"] == "2 at the window"


# -- Pages -------------------------------------------------------------------------------------------------------------------


def with_a_page() -> tuple[Server, dict[str, bool]]:
    server = Server("pages")
    visited = {"v1": False}

    @server.tool
    def report() -> str:
        """Give a report, to whom has logged in."""
        if not visited["v1"]:
            raise UrlElicitationRequired("Please log in.", "https://example.com/login", "v1")
        return "all is well"

    @server.tool
    async def pay(context: Context) -> str:
        """Have something paid."""
        return (
            await context.elicit_url("Please pay.", "https://example.com/pay", elicitation_id="p1")
        ).action

    return server, visited


@pytest.mark.requirement("ELIC-15", "ELIC-16")
async def test_a_page_has_to_be_visited_first() -> None:
    server, visited = with_a_page()
    async with playing(server, D) as peer, playing(server, D) as other:
        told = await peer.expect_error(await peer.request("tools/call", {"name": "report"}), -32042)
        page = {
            "message": "Please log in.",
            "mode": "url",
            "url": "https://example.com/login",
            "elicitationId": "v1",
        }
        assert told["data"] == {"elicitations": [page]}
        visited["v1"] = True
        thread = threading.Thread(target=server.elicitation_complete, args=("v1",))
        thread.start()
        await peer.expect("notifications/elicitation/complete", {"elicitationId": "v1"})
        thread.join()
        assert (await peer.result_of("tools/call", {"name": "report"}))["content"][0]["text"] == "all is well"
        server.elicitation_complete("v1")  # nobody is told twice
        await peer.expect_silence()
        await other.expect_silence()


@pytest.mark.requirement("ELIC-14", "ELIC-17")
async def test_the_same_page_is_a_question() -> None:
    server, visited = with_a_page()
    async with playing(server, E) as peer:
        asked = await peer.result_of("tools/call", {"name": "report"})
        params = {"message": "Please log in.", "mode": "url", "url": "https://example.com/login"}
        ((key, question),) = asked["inputRequests"].items()
        assert question == {"method": "elicitation/create", "params": params}
        again = {"requestState": asked["requestState"], "inputResponses": {key: {"action": "accept"}}}
        early = await peer.result_of("tools/call", {"name": "report", **again})
        assert early["isError"] is True  # it was agreed to, and is not done
        assert early["content"][0]["text"].startswith("Please log in. Call again once that is done at https:")
        visited["v1"] = True
        server.elicitation_complete("v1")
        result = await peer.result_of("tools/call", {"name": "report", **again})
        assert result["content"][0]["text"] == "all is well"


@pytest.mark.requirement("ELIC-13", "ELIC-15")
async def test_a_page_that_a_handler_waits_for() -> None:
    server, _ = with_a_page()
    async with playing(server, D) as peer:
        call = await peer.request("tools/call", {"name": "pay"})
        question = await peer.expect("elicitation/create", {"elicitationId": "p1"})
        server.elicitation_complete("p1")
        await peer.expect("notifications/elicitation/complete", {"elicitationId": "p1"})
        await peer.answer(question, {"action": "accept"})
        assert (await peer.expect_result(call))["content"][0]["text"] == "accept"


def test_an_answer_is_of_the_forms_type() -> None:
    result = t.ElicitResult(action="accept", content={"count": 2.0})
    assert SEATS.read(result) == Accepted(Seats(2))
