"""The official Python client (`mcp` 2.3) answers what our server asks over stdio and HTTP: forms, pages, the model and the roots.

It answers each question in a task of its own, and it hears each notification in one. It declares the forms and the pages as soon
as there is somebody to ask.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import mcp_types as t
import pytest
import trio

from tests.interop.official import C, D, E, Way, error_of, every_revision, opened, unfinished_streams, ways

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp import Client
    from mcp.client.session import ClientRequestContext

# It has a word of warning for whatever the last revision no longer has, also where an older one is spoken.
pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    unfinished_streams,
]
TOOLS = t.SamplingCapability(tools=t.SamplingToolsCapability())


class Answers:
    """Somebody who answers, with what he was given to say, and remembers what he was asked."""

    def __init__(self, *answers: Any) -> None:
        self.left = list(answers)
        self.asked: list[Any] = []

    async def __call__(self, context: ClientRequestContext, params: Any = None) -> Any:
        self.asked.append(params)
        return self.left.pop(0)

    def questions(self) -> list[Any]:
        asked, self.asked = self.asked, []
        return asked


class Told:
    """What its `message_handler` hears."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[Any](100)

    async def __call__(self, message: Any) -> None:
        self._send.send_nowait(message)

    async def next(self) -> Any:
        return await self._receive.receive()

    @property
    def nothing_else(self) -> bool:
        return self._receive.statistics().current_buffer_used == 0


@asynccontextmanager
async def asking(way: Way, **options: Any) -> AsyncIterator[Client]:
    async with opened(way, server="our_conversation.py", **options) as client:
        yield client


def accept(**content: Any) -> t.ElicitResult:
    return t.ElicitResult(action="accept", content=content or None)


DECLINE = t.ElicitResult(action="decline")
CANCEL = t.ElicitResult(action="cancel")


async def call(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    [content] = result.content
    assert isinstance(content, t.TextContent)
    return content.text


# -- Forms -------------------------------------------------------------------------------------------------------------------


async def forms(client: Client, user: Answers, way: Way) -> None:
    user.left = [accept(count=2, where="window"), accept(dish="b")]
    assert await call(client, "book", flight="KL 1234") == "Seats(count=2, where='window'), {'dish': 'b'}"
    seats, meal = user.questions()
    assert (seats.mode, seats.message) == ("form", "Seats on KL 1234")
    assert seats.requested_schema["required"] == ["count"]
    count, where = (seats.requested_schema["properties"][name] for name in ("count", "where"))
    assert (count["type"], count["minimum"], count["maximum"]) == ("integer", 1, 8)
    assert where["enum"] == ["aisle", "window"]
    assert meal.message == "To eat"
    dish = meal.requested_schema["properties"]["dish"]
    if way.knows(D):
        assert [option["title"] for option in dish["oneOf"]] == ["Soup", "Fish"]
    else:
        assert (dish["enum"], dish["enumNames"]) == (["a", "b"], ["Soup", "Fish"])

    # A default is filled in by whoever reads the form, if nobody said otherwise.
    user.left = [accept(count=1), DECLINE]
    assert await call(client, "book", flight="SK 903") == "Seats(count=1, where='aisle'), meal: decline"
    for answer in DECLINE, CANCEL:
        user.left = [answer]
        assert await call(client, "book", flight="SK 903") == f"seats: {answer.action}"
    assert user.left == []


@pytest.mark.requirement("ELIC-4", "ELIC-6", "ELIC-7", "ELIC-8", "ELIC-9", "ELIC-23", "MRTR-1", "MRTR-12")
@ways(E, D, C)
async def test_it_fills_in_forms(way: Way) -> None:
    user = Answers()
    async with asking(way, elicitation_callback=user) as client:
        await forms(client, user, way)
        user.left = [accept(name="Ada"), accept(name="Bob")]
        [message] = (await client.get_prompt("greet")).messages
        assert message.content == t.TextContent(type="text", text="Hello Ada.")
        [contents] = (await client.read_resource("memo://monday")).contents
        assert isinstance(contents, t.TextResourceContents)
        assert contents.text == "Bob's monday"


@ways(E, D, places=["stdio-asyncio", "http-sse", "http-json", "http+sse"])
async def test_it_fills_in_forms_of_other_servers(way: Way) -> None:
    user = Answers()
    async with asking(way, elicitation_callback=user) as client:
        await forms(client, user, way)


@pytest.mark.requirement("ELIC-10")
@ways(E, D, C)
async def test_a_form_that_it_fills_in_wrongly(way: Way) -> None:
    """There is nobody to tell but the client: its call ends with an error or, in 2026-07-28, the question comes again."""
    user = Answers(accept(count=9))
    async with asking(way, elicitation_callback=user) as client:
        if way.spoken == E:
            user.left += [accept(), DECLINE]
            assert await call(client, "book", flight="KL 1234") == "seats: decline"
            assert len({question.message for question in user.asked}) == 1
        else:
            code, _ = await error_of(client.call_tool("book", {"flight": "KL 1234"}))
            assert code == -32603
        assert user.left == []


@pytest.mark.requirement("CXL-6", "CXL-18")
@ways(E, D, C, places=["stdio", "stdio-asyncio", "http"])
async def test_a_question_ends_with_its_call(way: Way) -> None:
    withdrawn = trio.Event()

    async def ponder(context: ClientRequestContext, params: t.ElicitRequestParams) -> t.ElicitResult:
        scope.cancel()
        try:
            await trio.sleep_forever()
        finally:
            withdrawn.set()

    async with asking(way, elicitation_callback=ponder) as client:
        with trio.CancelScope() as scope:
            await client.call_tool("hang")
        assert scope.cancelled_caught
        await withdrawn.wait()
        assert await call(client, "cancelled") == "yes"


# -- Pages -------------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("ELIC-13", "ELIC-14", "ELIC-15", "ELIC-17")
@ways(E, D)
async def test_it_visits_pages(way: Way) -> None:
    user, told = Answers(accept(), DECLINE, CANCEL), Told()
    async with asking(way, elicitation_callback=user, message_handler=told) as client:
        for number, action in enumerate(("accept", "decline", "cancel")):
            assert await call(client, "visit", id=f"v{number}") == action
        for number, question in enumerate(user.questions()):
            assert isinstance(question, t.ElicitRequestURLParams)
            assert question.message == "Please log in."
            assert question.url == f"https://example.com/pages?id=v{number}"
            assert question.elicitation_id == (f"v{number}" if way.spoken == D else None)
        for id in "v0", "never", "v0", "v1":
            await client.call_tool("unlock", {"id": id})
        if way.spoken == D:
            for id in "v0", "v1":
                message = await told.next()
                assert isinstance(message, t.ElicitCompleteNotification)
                assert message.params.elicitation_id == id
        assert await call(client, "locked", id="v0") == "open"
        assert told.nothing_else


@pytest.mark.requirement("ELIC-15", "ELIC-16")
@ways(D)
async def test_it_is_refused_until_its_user_has_visited_a_page(way: Way) -> None:
    told = Told()
    async with asking(way, elicitation_callback=Answers(), message_handler=told) as client:
        page = {
            "mode": "url",
            "message": "Log in first.",
            "url": "https://example.com/pages?id=p",
            "elicitationId": "p",
        }
        assert await error_of(client.call_tool("locked", {"id": "p"})) == (-32042, {"elicitations": [page]})
        await client.call_tool("unlock", {"id": "p"})
        message = await told.next()
        assert isinstance(message, t.ElicitCompleteNotification)
        assert message.params.elicitation_id == "p"
        assert await call(client, "locked", id="p") == "open"


@pytest.mark.requirement("ELIC-17")
@ways(E)
async def test_it_is_asked_until_its_user_has_visited_a_page(way: Way) -> None:
    async def go(context: ClientRequestContext, params: Any) -> t.ElicitResult:
        assert params.url == "https://example.com/pages?id=p"
        await client.call_tool("unlock", {"id": "p"})
        return accept()

    async with asking(way, elicitation_callback=go) as client:
        assert await call(client, "locked", id="p") == "open"


# -- The model ---------------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("SAMP-2", "SAMP-3", "SAMP-6")
@every_revision
async def test_its_model_goes_on(way: Way) -> None:
    said = t.CreateMessageResult(
        role="assistant", content=t.TextContent(text="Hello"), model="small-1", stop_reason="endTurn"
    )
    model = Answers(said)
    async with asking(way, sampling_callback=model) as client:
        assert await call(client, "say", text="Say hello.") == "small-1: Hello (endTurn)"
        [question] = model.questions()
        assert [message.content.text for message in question.messages] == ["Say hello."]
        assert (question.max_tokens, question.system_prompt, question.temperature) == (100, "Be brief.", 0.5)
        assert question.stop_sequences == ["."]
        assert question.model_preferences.hints[0].name == "small"
        assert (question.tools, question.tool_choice) == (None, None)
        # The wish for the context of this server is one of what it offered, until it could be offered.
        assert question.include_context == (None if way.knows(D) else "thisServer")


@pytest.mark.requirement("SAMP-4", "SAMP-5", "SAMP-7", "SAMP-8", "SAMP-9")
@ways(E, D)
async def test_its_model_uses_tools(way: Way) -> None:
    def use(id: str, a: int, b: int) -> t.ToolUseContent:
        return t.ToolUseContent(id=id, name="add", input={"a": a, "b": b})

    def said(reason: str, *blocks: Any) -> t.CreateMessageResultWithTools:
        return t.CreateMessageResultWithTools(
            role="assistant", content=[*blocks], model="small-1", stop_reason=reason
        )

    both = said("toolUse", t.TextContent(text="Let me see."), use("u1", 2, 3), use("u2", 4, 5))
    model = Answers(both, said("toolUse", use("u3", 5, 9)), said("endTurn", t.TextContent(text="14")))
    async with asking(way, sampling_callback=model, sampling_capabilities=TOOLS) as client:
        assert await call(client, "calculate", task="2 + 3 + 4 + 5") == "14"
    first, _, last = model.questions()
    assert [tool.name for tool in first.tools] == ["add"]
    assert first.tool_choice.mode == "auto"
    assert [message.role for message in last.messages] == ["user", "assistant"] * 2 + ["user"]
    assert last.messages[1].content == both.content
    results = [
        (result.tool_use_id, result.content[0].text)
        for message in last.messages[2::2]
        for result in (message.content if isinstance(message.content, list) else [message.content])
    ]
    assert results == [("u1", "5"), ("u2", "9"), ("u3", "14")]


# -- The roots ---------------------------------------------------------------------------------------------------------------


def roots(**places: str) -> t.ListRootsResult:
    return t.ListRootsResult.model_validate(
        {"roots": [{"uri": uri, "name": name} for name, uri in places.items()]}
    )


@pytest.mark.requirement("ROOT-2", "ROOT-3")
@every_revision
async def test_it_tells_its_roots(way: Way) -> None:
    places = Answers(roots(home="file:///home/me", work="file:///work"), roots())
    async with asking(way, list_roots_callback=places) as client:
        assert json.loads(await call(client, "where")) == ["home=file:///home/me", "work=file:///work"]
        if way.spoken != E:
            await client.session.send_roots_list_changed()
        assert json.loads(await call(client, "where")) == []


# -- All of it, and nothing --------------------------------------------------------------------------------------------------


@pytest.mark.requirement("MRTR-3", "MRTR-4")
@ways(E, D)
async def test_it_is_asked_for_everything_at_once(way: Way) -> None:
    said = t.CreateMessageResult(role="assistant", content=t.TextContent(text="So."), model="small-1")
    async with asking(
        way,
        elicitation_callback=Answers(accept(name="Ada")),
        sampling_callback=Answers(said),
        list_roots_callback=Answers(roots(home="file:///home/me")),
    ) as client:
        assert await call(client, "plan") == "asked: Ada, small-1, file:///home/me"


UNABLE: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "book": ({"flight": "KL 1234"}, {"elicitation": {}}),
    "visit": ({"id": "v"}, {"elicitation": {"url": {}}}),
    "locked": ({"id": "v"}, {"elicitation": {"url": {}}}),
    "say": ({"text": "Hello"}, {"sampling": {}}),
    "calculate": ({"task": "2 + 3"}, {"sampling": {"tools": {}}}),
    "where": ({}, {"roots": {}}),
}


@pytest.mark.requirement("ELIC-3", "MRTR-5", "SAMP-5", "ROOT-5")
@every_revision
async def test_it_is_not_asked_what_it_did_not_offer_to_answer(way: Way) -> None:
    async with asking(way) as client:
        for tool, (arguments, missing) in UNABLE.items():
            code, data = await error_of(client.call_tool(tool, arguments))
            assert (tool, code, data) == (
                tool,
                -32021 if way.spoken == E else -32601,
                {"requiredCapabilities": missing},
            )


@pytest.mark.requirement("ELIC-23", "SAMP-12", "SAMP-13")
@every_revision
async def test_it_refuses_to_answer(way: Way) -> None:
    """By an error: the call ends with it. In 2026-07-28 its own side ends the call, and the server never hears of it."""
    no = t.ErrorData(code=-1, message="the user rejected the request")
    callbacks = {f"{what}_callback": Answers(no, no) for what in ("elicitation", "sampling", "list_roots")}
    async with asking(way, **callbacks) as client:
        for tool, arguments in (
            ("book", {"flight": "KL 1234"}),
            ("say", {"text": "Hello"}),
            ("where", {}),
        ):
            if tool != "book" or way.knows(C):
                assert await error_of(client.call_tool(tool, arguments)) == (-1, None)
