"""The official Python client (`mcp` 2.3) answers our server's input requests over stdio and HTTP.

It handles each request and each notification in its own task. It declares both elicitation modes as
soon as there is a callback.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import mcp_types as t
import pytest
import trio

from tests.interop.official import (
    C,
    Case,
    D,
    E,
    MessageQueue,
    cases,
    error_of,
    every_revision,
    opened,
    unfinished_streams,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp import Client
    from mcp.client.session import ClientRequestContext

# The client warns of features that the last revision removed, even in an older one.
pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    unfinished_streams,
]
TOOLS = t.SamplingCapability(tools=t.SamplingToolsCapability())


class Answers:
    """A callback that gives prepared responses and records the requests."""

    def __init__(self, *answers: Any) -> None:
        self.left = list(answers)
        self.received: list[Any] = []

    async def __call__(self, context: ClientRequestContext, params: Any = None) -> Any:
        self.received.append(params)
        return self.left.pop(0)

    def questions(self) -> list[Any]:
        found, self.received = self.received, []
        return found


@asynccontextmanager
async def asking(case: Case, **options: Any) -> AsyncIterator[Client]:
    async with opened(case, **options) as client:
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


# -- Forms -----------------------------------------------------------------------------------------


async def forms(client: Client, user: Answers, case: Case) -> None:
    user.left = [accept(count=2, where="window"), accept(dish="a2")]
    assert (
        await call(client, "book", flight="KL 1234")
        == "BookedSeats(count=2, where='window'), {'dish': 'a2'}"
    )
    seats, meal = user.questions()
    assert (seats.mode, seats.message) == ("form", "Seats on KL 1234")
    assert seats.requested_schema["required"] == ["count"]
    count, where = (seats.requested_schema["properties"][name] for name in ("count", "where"))
    assert (count["type"], count["minimum"], count["maximum"]) == ("integer", 1, 8)
    assert where["enum"] == ["aisle", "window"]
    assert meal.message == "To eat"
    dish = meal.requested_schema["properties"]["dish"]
    if case.includes(D):
        assert [option["title"] for option in dish["oneOf"]] == ["Soup", "Fish"]
    else:
        assert (dish["enum"], dish["enumNames"]) == (["a1", "a2"], ["Soup", "Fish"])

    # The reader of the form fills in a default that the response leaves out.
    user.left = [accept(count=1), DECLINE]
    assert (
        await call(client, "book", flight="SK 903")
        == "BookedSeats(count=1, where='aisle'), meal: decline"
    )
    for answer in DECLINE, CANCEL:
        user.left = [answer]
        assert await call(client, "book", flight="SK 903") == f"seats: {answer.action}"
    assert user.left == []


@pytest.mark.requirement(
    "ELIC-4", "ELIC-6", "ELIC-7", "ELIC-8", "ELIC-9", "ELIC-23", "MRTR-1", "MRTR-12"
)
@cases(E, D, C)
async def test_sdk_client_answers_forms(case: Case) -> None:
    user = Answers()
    async with asking(case, elicitation_callback=user) as client:
        await forms(client, user, case)
        user.left = [accept(context="testing"), accept(name="Bob")]
        [message] = (await client.get_prompt("test_input_required_result_prompt")).messages
        assert message.content == t.TextContent(type="text", text="Use this: testing")
        [contents] = (await client.read_resource("memo://monday")).contents
        assert isinstance(contents, t.TextResourceContents)
        assert contents.text == "Bob's monday"


@cases(E, D, transports=["stdio-asyncio", "http-sse", "http-json", "http+sse"])
async def test_sdk_client_answers_forms_of_other_tools(case: Case) -> None:
    user = Answers()
    async with asking(case, elicitation_callback=user) as client:
        await forms(client, user, case)


@pytest.mark.requirement("ELIC-10")
@cases(E, D, C)
async def test_sdk_client_invalid_form_answer_fails_or_is_requested_again(case: Case) -> None:
    """The call ends with an error or, in 2026-07-28, the form is requested again."""
    user = Answers(accept(count=9))
    async with asking(case, elicitation_callback=user) as client:
        if case.version == E:
            user.left += [accept(), DECLINE]
            assert await call(client, "book", flight="KL 1234") == "seats: decline"
            assert len({question.message for question in user.received}) == 1
        else:
            code, _ = await error_of(client.call_tool("book", {"flight": "KL 1234"}))
            assert code == -32603
        assert user.left == []


@pytest.mark.requirement("CXL-6", "CXL-18")
@cases(E, D, C, transports=["stdio", "stdio-asyncio", "http"])
async def test_sdk_client_cancelled_call_ends_its_input_request(case: Case) -> None:
    """The user's dialog must close and the handler must end when the caller gives up."""
    withdrawn = trio.Event()

    async def ponder(
        context: ClientRequestContext, params: t.ElicitRequestParams
    ) -> t.ElicitResult:
        scope.cancel()
        try:
            await trio.sleep_forever()
        finally:
            withdrawn.set()

    async with asking(case, elicitation_callback=ponder) as client:
        with trio.CancelScope() as scope:
            await client.call_tool("hang")
        assert scope.cancelled_caught
        await withdrawn.wait()
        assert await call(client, "cancelled") == "yes"


# -- URL elicitation -------------------------------------------------------------------------------


@pytest.mark.requirement("ELIC-13", "ELIC-14", "ELIC-15", "ELIC-17")
@cases(E, D)
async def test_sdk_client_answers_url_elicitation(case: Case) -> None:
    """Completion is reported once for each visit the client knows, and never for others."""
    user, messages = Answers(accept(), DECLINE, CANCEL), MessageQueue()
    async with asking(case, elicitation_callback=user, message_handler=messages) as client:
        for number, action in enumerate(("accept", "decline", "cancel")):
            assert await call(client, "visit", id=f"v{number}") == action
        for number, question in enumerate(user.questions()):
            assert isinstance(question, t.ElicitRequestURLParams)
            assert question.message == "Please log in."
            assert question.url == f"https://example.com/pages?id=v{number}"
            assert question.elicitation_id == (f"v{number}" if case.version == D else None)
        for id in "v0", "never", "v0", "v1":
            await client.call_tool("unlock", {"id": id})
        if case.version == D:
            for id in "v0", "v1":
                message = await messages.next()
                assert isinstance(message, t.ElicitCompleteNotification)
                assert message.params.elicitation_id == id
        assert await call(client, "locked", id="v0") == "open"
        assert messages.nothing_else


@pytest.mark.requirement("ELIC-15", "ELIC-16")
@cases(D)
async def test_sdk_client_gets_url_elicitation_required_until_visited(case: Case) -> None:
    """The client gets -32042 with the page, then a notification, and then the result."""
    messages = MessageQueue()
    async with asking(case, elicitation_callback=Answers(), message_handler=messages) as client:
        page = {
            "mode": "url",
            "message": "Log in first.",
            "url": "https://example.com/pages?id=p",
            "elicitationId": "p",
        }
        assert await error_of(client.call_tool("locked", {"id": "p"})) == (
            -32042,
            {"elicitations": [page]},
        )
        await client.call_tool("unlock", {"id": "p"})
        message = await messages.next()
        assert isinstance(message, t.ElicitCompleteNotification)
        assert message.params.elicitation_id == "p"
        assert await call(client, "locked", id="p") == "open"


@pytest.mark.requirement("ELIC-17")
@cases(E)
async def test_sdk_client_gets_input_request_until_page_is_visited(case: Case) -> None:
    async def go(context: ClientRequestContext, params: Any) -> t.ElicitResult:
        assert params.url == "https://example.com/pages?id=p"
        await client.call_tool("unlock", {"id": "p"})
        return accept()

    async with asking(case, elicitation_callback=go) as client:
        assert await call(client, "locked", id="p") == "open"


# -- Sampling --------------------------------------------------------------------------------------


@pytest.mark.requirement("SAMP-2", "SAMP-3", "SAMP-6")
@every_revision
async def test_sdk_client_answers_sampling(case: Case) -> None:
    """Every parameter that a tool may set arrives; `includeContext` needs a capability."""
    response = t.CreateMessageResult(
        role="assistant",
        content=t.TextContent(text="Hello"),
        model="small-1",
        stop_reason="endTurn",
    )
    model = Answers(response)
    async with asking(case, sampling_callback=model) as client:
        sampled = await call(client, "test_sampling", prompt="Say hello.")
        assert sampled == "LLM response: Hello (small-1, endTurn)"
        [question] = model.questions()
        assert [message.content.text for message in question.messages] == ["Say hello."]
        assert (question.max_tokens, question.system_prompt, question.temperature) == (
            100,
            "Be brief.",
            0.5,
        )
        assert question.stop_sequences == ["."]
        assert question.model_preferences.hints[0].name == "small"
        assert (question.tools, question.tool_choice) == (None, None)
        # Revisions with a capability for `includeContext` drop it: this client does not declare it.
        assert question.include_context == (None if case.includes(D) else "thisServer")


@pytest.mark.requirement("SAMP-4", "SAMP-5", "SAMP-7", "SAMP-8", "SAMP-9")
@cases(E, D)
async def test_sdk_client_answers_sampling_with_tools(case: Case) -> None:
    """Two tool uses in one message, then a third: each result must carry its use's id."""

    def use(id: str, a: int, b: int) -> t.ToolUseContent:
        return t.ToolUseContent(id=id, name="add", input={"a": a, "b": b})

    def sampled(reason: str, *blocks: Any) -> t.CreateMessageResultWithTools:
        return t.CreateMessageResultWithTools(
            role="assistant", content=[*blocks], model="small-1", stop_reason=reason
        )

    both = sampled("toolUse", t.TextContent(text="Let me see."), use("u1", 2, 3), use("u2", 4, 5))
    model = Answers(
        both, sampled("toolUse", use("u3", 5, 9)), sampled("endTurn", t.TextContent(text="14"))
    )
    async with asking(case, sampling_callback=model, sampling_capabilities=TOOLS) as client:
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


# -- Roots -----------------------------------------------------------------------------------------


def roots(**uris: str) -> t.ListRootsResult:
    return t.ListRootsResult.model_validate(
        {"roots": [{"uri": uri, "name": name} for name, uri in uris.items()]}
    )


@pytest.mark.requirement("ROOT-2", "ROOT-3")
@every_revision
async def test_sdk_client_answers_roots(case: Case) -> None:
    callback = Answers(roots(home="file:///home/me", work="file:///work"), roots())
    async with asking(case, list_roots_callback=callback) as client:
        tool = "test_input_required_result_list_roots"
        listed = "Roots: home=file:///home/me, work=file:///work"
        assert await call(client, tool) == listed
        if case.version != E:
            await client.session.send_roots_list_changed()
        assert await call(client, tool) == "Roots: "


# -- Everything at once, and nothing ---------------------------------------------------------------


@pytest.mark.requirement("MRTR-3", "MRTR-4")
@cases(E, D)
async def test_sdk_client_answers_concurrent_input_requests(case: Case) -> None:
    sampled = t.CreateMessageResult(
        role="assistant", content=t.TextContent(text="So."), model="small-1"
    )
    async with asking(
        case,
        elicitation_callback=Answers(accept(name="Ada")),
        sampling_callback=Answers(sampled),
        list_roots_callback=Answers(roots(home="file:///home/me")),
    ) as client:
        tool = "test_input_required_result_multiple_inputs"
        assert await call(client, tool) == "three: So. (small-1), Ada, file:///home/me"


UNABLE: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "book": ({"flight": "KL 1234"}, {"elicitation": {}}),
    "visit": ({"id": "v"}, {"elicitation": {"url": {}}}),
    "locked": ({"id": "v"}, {"elicitation": {"url": {}}}),
    "test_sampling": ({"prompt": "Hello"}, {"sampling": {}}),
    "calculate": ({"task": "2 + 3"}, {"sampling": {"tools": {}}}),
    "test_input_required_result_list_roots": ({}, {"roots": {}}),
}


@pytest.mark.requirement("ELIC-3", "MRTR-5", "SAMP-5", "ROOT-5")
@every_revision
async def test_sdk_client_without_capability_gets_no_input_request(case: Case) -> None:
    async with asking(case) as client:
        for tool, (arguments, missing) in UNABLE.items():
            code, data = await error_of(client.call_tool(tool, arguments))
            assert (tool, code, data) == (
                tool,
                -32021 if case.version == E else -32601,
                {"requiredCapabilities": missing},
            )


@pytest.mark.requirement("ELIC-23", "SAMP-12", "SAMP-13")
@every_revision
async def test_sdk_client_error_response_fails_the_call(case: Case) -> None:
    """The call ends with the error. In 2026-07-28 the client itself ends the call, without a
    message.
    """
    no = t.ErrorData(code=-1, message="the user rejected the request")
    callbacks = {
        f"{what}_callback": Answers(no, no) for what in ("elicitation", "sampling", "list_roots")
    }
    async with asking(case, **callbacks) as client:
        for tool, arguments in (
            ("book", {"flight": "KL 1234"}),
            ("test_sampling", {"prompt": "Hello"}),
            ("test_input_required_result_list_roots", {}),
        ):
            if tool != "book" or case.includes(C):
                assert await error_of(client.call_tool(tool, arguments)) == (-1, None)
