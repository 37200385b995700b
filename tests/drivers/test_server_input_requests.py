"""A server requests input from its client: forms, URLs, sampling and roots, in every revision.

The tools are written once. The client is a script: it answers requests in a stateful revision, and
calls again with the responses in a stateless one. Every message to it is checked for its revision.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from mcp_core import Limits, LocalProtocolError, McpError, ToolError
from mcp_core import types as t
from mcp_core.registry import (
    AcceptedElicitation,
    Context,
    Form,
    Proceed,
    Server,
    UrlElicitationRequired,
)
from tests.harness import either
from tests.harness.forms import SEATS_SCHEMA, Seats
from tests.harness.jsonrpc import (
    STATEFUL,
    STATELESS,
    VERSIONS,
    A,
    B,
    C,
    D,
    E,
)
from tests.harness.wire.lines import Wire

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.usefixtures("each_driver")

Message = dict[str, Any]

CAPABILITIES: Final[Message] = {
    "roots": {},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
}
every_revision = pytest.mark.parametrize("version", VERSIONS)
every_stateful_revision = pytest.mark.parametrize("version", STATEFUL)
every_stateless_revision = pytest.mark.parametrize("version", STATELESS)
with_forms = pytest.mark.parametrize("version", [C, D, E])
with_urls = pytest.mark.parametrize("version", [D, E])
both_eras = pytest.mark.parametrize("version", [D, E])


SEATS = Form(Seats)
TWO_SEATS: Final = {"action": "accept", "content": {"count": 2, "where": "window"}}
HOME_ROOT: Final = {"roots": [{"uri": "file:///home", "name": "home"}]}
SAMPLED_HI: Final = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
TOOL_USE: Final = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "u1", "name": "add", "input": {"a": 1, "b": 2}}],
    "model": "m",
    "stopReason": "toolUse",
}
FINAL_TEXT: Final = {
    "role": "assistant",
    "content": {"type": "text", "text": "it is 3"},
    "model": "m",
}
ADD: Final = t.Tool(name="add", input_schema={"type": "object"})


def build(**options: Any) -> Server:
    server = Server("asking", **options)
    declare_single_requests(server)
    declare_other_patterns(server)
    return server


def declare_single_requests(server: Server) -> None:
    """Declare a tool for each kind of input request."""

    @server.tool
    async def form(context: Context) -> str:
        """Ask for a form."""
        answer = await context.elicit("How many seats?", Seats)
        return (
            f"{answer.data.count} at the {answer.data.where}"
            if answer.action == "accept"
            else answer.action
        )

    @server.tool
    async def page(context: Context) -> str:
        """Ask for a visit to a URL."""
        answer = await context.elicit_url(
            "Please pay.", "https://example.com/pay", elicitation_id="p1"
        )
        return answer.action

    @server.tool
    async def model(context: Context) -> str:
        """Ask the model."""
        sampled = await context.sample("Say hi.", max_tokens=10, system_prompt="Be brief.")
        assert isinstance(sampled.content, t.TextContent)
        return sampled.content.text

    @server.tool
    async def model_with_tools(context: Context) -> str:
        """Sample, and run the tools that the model uses."""
        messages = [t.SamplingMessage("user", t.TextContent("1 + 2?"))]
        for _ in range(3):
            sampled = await context.sample(messages, max_tokens=10, tools=[ADD], tool_choice="auto")
            blocks = sampled.content if isinstance(sampled.content, list) else [sampled.content]
            uses = [block for block in blocks if isinstance(block, t.ToolUseContent)]
            if not uses:
                (block,) = blocks
                assert isinstance(block, t.TextContent)
                return block.text
            done = [
                t.ToolResultContent(use.id, [t.TextContent(str(sum(use.input.values())))])
                for use in uses
            ]
            messages += [
                t.SamplingMessage("assistant", blocks),
                t.SamplingMessage("user", list(done)),
            ]
        raise ToolError("the model does not come to an end")

    @server.tool
    async def roots(context: Context) -> str:
        """Ask for the roots."""
        return ", ".join(root.uri for root in await context.roots())


def declare_other_patterns(server: Server) -> None:
    """Declare tools that request input in other ways than once."""

    @server.tool
    async def two_rounds(context: Context) -> str:
        """Ask for a form, and then for the roots."""
        answer = await context.elicit("How many seats?", Seats)
        if answer.action != "accept":
            return answer.action
        return f"{answer.data.count} for {len(await context.roots())}"

    @server.tool
    async def two_tasks(context: Context) -> str:
        """Request input in two tasks."""
        answers: dict[str, Any] = {}

        async def ask_form() -> None:
            answers["form"] = (await context.elicit("How many seats?", Seats)).action

        async def ask_roots() -> None:
            answers["roots"] = len(await context.roots())

        async with either.open_nursery() as nursery:
            nursery.start_soon(ask_form)
            nursery.start_soon(ask_roots)
        return f"{answers['form']} {answers['roots']}"

    @server.tool
    async def catch_all(context: Context) -> str:
        """Ask, and catch everything."""
        try:
            return (await context.elicit("How many seats?", Seats)).action
        except BaseException as exc:
            if isinstance(exc, either.Cancelled):
                raise
            return "caught"

    @server.tool
    async def with_fallback(context: Context) -> str:
        """Use a default if the client cannot answer."""
        try:
            return (await context.elicit("How many seats?", Seats)).action
        except McpError:
            return "2 at the aisle"

    @server.tool
    async def varying_message(context: Context) -> str:
        """Send a message that differs each time."""
        answer = await context.elicit(
            f"It is {time.perf_counter_ns()} now. How many?", Seats, key="seats"
        )
        return answer.action


RETURNING_TOOLS: Final = ("returning", "returning_async", "returning_thread")


def build_returning() -> Server:
    """Build a server whose tools return their input request instead of awaiting it."""
    server = Server("asking by hand")

    def returning(context: Context) -> str | t.InputRequiredResult:
        """Ask for a form."""
        answer = context.input_response("seats", SEATS)
        if answer is None:
            return t.InputRequiredResult(
                input_requests={"seats": SEATS.question("How many seats?")}, request_state="step 1"
            )
        assert context.request_state == "step 1"
        return (
            f"{answer.data.count} at the {answer.data.where}"
            if answer.action == "accept"
            else answer.action
        )

    @server.tool
    async def returning_async(context: Context) -> str | t.InputRequiredResult:
        """Ask for a form."""
        return returning(context)

    server.add_tool(returning)
    server.add_tool(returning, name="returning_thread", thread=True)
    return server


class AnsweringClient:
    """A client of one revision that answers input requests with given responses."""

    def __init__(self, peer: Wire) -> None:
        self.peer = peer
        self.input_requests: list[
            list[tuple[str, Any]]
        ] = []  # method and params of each input request, by rounds

    async def call(self, tool: str, answers: Mapping[str, Any], **params: Any) -> Message:
        """Call `tool`, answer its input requests by method, and return its result or error.

        `is_callback_for` maps a method to one response, or to a list of successive ones.
        """
        left = {
            name: list(given) if isinstance(given, list) else [given]
            for name, given in answers.items()
        }
        if self.peer.version in STATEFUL:
            return await self._call_stateful(tool, left, params)
        return await self._call_stateless(tool, left, params)

    async def _call_stateful(
        self, tool: str, answers: dict[str, list[Any]], params: Message
    ) -> Message:
        call = await self.peer.request("tools/call", {"name": tool, **params})
        while True:
            message = await self.peer.receive()
            if "method" not in message:
                assert message["id"] == call["id"]
                return message
            self.input_requests.append([(message["method"], message.get("params"))])
            await self.peer.answer(message, answers[message["method"]].pop(0))

    async def _call_stateless(
        self, tool: str, answers: dict[str, list[Any]], params: Message
    ) -> Message:
        while True:
            call = await self.peer.request("tools/call", {"name": tool, **params})
            message = await self.peer.receive()
            assert message["id"] == call["id"]
            result = message.get("result", {})
            if result.get("resultType") != "input_required":
                return message
            questions = result["inputRequests"]
            self.input_requests.append(
                [(question["method"], question.get("params")) for question in questions.values()]
            )
            params = {
                "requestState": result["requestState"],
                "inputResponses": {
                    key: answers[question["method"]].pop(0) for key, question in questions.items()
                },
            }


@asynccontextmanager
async def play_client_of(
    server: Server, version: str, capabilities: Message = CAPABILITIES
) -> AsyncIterator[Wire]:
    """Yield a client of `server` with these capabilities. It disconnects at the end."""
    ours, theirs = either.memory_pair()
    peer = Wire(ours, version)
    async with either.open_nursery() as nursery:
        nursery.start_soon(either.serve_stream, server, theirs)
        await peer.open_as_client(capabilities)
        yield peer
        await peer.aclose()


def text_of(message: Message) -> str:
    text = message["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


# -- One tool in every revision --------------------------------------------------------------------

FORM_PARAMS: Final = {
    "message": "How many seats?",
    "requestedSchema": SEATS_SCHEMA,
}
URL_PARAMS: Final = {"message": "Please pay.", "mode": "url", "url": "https://example.com/pay"}
SAMPLING_PARAMS: Final = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi."}}],
    "maxTokens": 10,
    "systemPrompt": "Be brief.",
}

# A tool, the revisions that have its request, the responses of the client, the result, and the
# rounds.
TOOLS: list[tuple[str, tuple[str, ...], Message, str, int]] = [
    ("form", (C, D, E), {"elicitation/create": TWO_SEATS}, "2 at the window", 1),
    ("form", (C, D, E), {"elicitation/create": {"action": "decline"}}, "decline", 1),
    ("form", (C, D, E), {"elicitation/create": {"action": "cancel", "content": {}}}, "cancel", 1),
    ("page", (D, E), {"elicitation/create": {"action": "accept"}}, "accept", 1),
    ("page", (D, E), {"elicitation/create": {"action": "decline"}}, "decline", 1),
    ("model", (A, B, C, D, E), {"sampling/createMessage": SAMPLED_HI}, "hi", 1),
    ("model_with_tools", (D, E), {"sampling/createMessage": [TOOL_USE, FINAL_TEXT]}, "it is 3", 2),
    ("roots", (A, B, C, D, E), {"roots/list": HOME_ROOT}, "file:///home", 1),
    ("roots", (A, B, C, D, E), {"roots/list": {"roots": []}}, "", 1),
    (
        "two_rounds",
        (C, D, E),
        {"elicitation/create": TWO_SEATS, "roots/list": HOME_ROOT},
        "2 for 1",
        2,
    ),
    ("two_rounds", (C, D, E), {"elicitation/create": {"action": "decline"}}, "decline", 1),
    ("varying_message", (C, D, E), {"elicitation/create": TWO_SEATS}, "accept", 1),
]
EVERY_TOOL: Final = [
    (tool, version, *rest) for tool, versions, *rest in TOOLS for version in versions
]


@pytest.mark.requirement("MRTR-1", "MRTR-12", "ELIC-14", "ELIC-23", "SAMP-4")
@pytest.mark.parametrize(("tool", "version", "answers", "text", "rounds"), EVERY_TOOL)
async def test_tool_requesting_input_works_in_each_revision(
    tool: str, version: str, answers: Message, text: str, rounds: int
) -> None:
    async with play_client_of(build(), version) as peer:
        client = AnsweringClient(peer)
        assert text_of(await client.call(tool, answers)) == text
        assert [len(questions) for questions in client.input_requests] == [1] * rounds
        if version in STATELESS:  # a stateless server sends responses only
            assert all(
                b'"method"' not in line[:60]
                for direction, line in peer.transcript
                if direction == "received"
            )


@pytest.mark.requirement("SAMP-2", "ELIC-4", "ELIC-5", "ELIC-13", "ELIC-17", "ROOT-2")
@pytest.mark.parametrize(
    ("tool", "version", "params"),
    [
        *[("model", version, SAMPLING_PARAMS) for version in VERSIONS],
        *[("form", version, FORM_PARAMS) for version in (D, E)],
        ("page", D, {**URL_PARAMS, "elicitationId": "p1"}),
        ("page", E, URL_PARAMS),
        *[("roots", version, None) for version in VERSIONS],
    ],
)
async def test_input_request_params_match_the_revision(
    tool: str, version: str, params: Any
) -> None:
    answers = {
        "sampling/createMessage": SAMPLED_HI,
        "elicitation/create": TWO_SEATS,
        "roots/list": HOME_ROOT,
    }
    async with play_client_of(build(), version) as peer:
        client = AnsweringClient(peer)
        await client.call(tool, answers)
        (((_, sent),),) = client.input_requests
        assert sent == params


@pytest.mark.requirement("SAMP-5", "SAMP-8", "SAMP-9")
@with_urls
async def test_sampling_with_tools_carries_tool_results(version: str) -> None:
    """The handler's second request repeats the tool use, or the model couldn't match the result."""
    async with play_client_of(build(), version) as peer:
        client = AnsweringClient(peer)
        await client.call("model_with_tools", {"sampling/createMessage": [TOOL_USE, FINAL_TEXT]})
        ((_, first),), ((_, second),) = client.input_requests
        assert first["tools"] == [{"name": "add", "inputSchema": {"type": "object"}}]
        assert first["toolChoice"] == {"mode": "auto"}
        result = {
            "type": "tool_result",
            "toolUseId": "u1",
            "content": [{"type": "text", "text": "3"}],
        }
        assert second["messages"][1:] == [
            {"role": "assistant", "content": TOOL_USE["content"]},
            {"role": "user", "content": [result]},
        ]


@pytest.mark.requirement("SAMP-18")
@every_revision
async def test_sampling_requests_of_two_calls_share_no_history(version: str) -> None:
    async with play_client_of(build(), version) as peer:
        client = AnsweringClient(peer)
        for _ in range(2):
            await client.call("model", {"sampling/createMessage": SAMPLED_HI})
        assert client.input_requests[0] == client.input_requests[1]


@with_forms
async def test_input_requests_of_two_tasks_are_answered(version: str) -> None:
    answers: dict[str, Message] = {"elicitation/create": TWO_SEATS, "roots/list": HOME_ROOT}
    async with play_client_of(build(), version) as peer:
        if version in STATEFUL:
            call = await peer.request("tools/call", {"name": "two_tasks"})
            received = [await peer.receive(), await peer.receive()]
            for question in reversed(received):
                await peer.answer(question, answers[question["method"]])
            assert text_of({"result": await peer.expect_result(call)}) == "accept 1"
        else:
            client = AnsweringClient(peer)
            assert text_of(await client.call("two_tasks", answers)) == "accept 1"
            assert [len(questions) for questions in client.input_requests] == [2]


# -- Returned input requests -----------------------------------------------------------------------


@pytest.mark.requirement("MRTR-1", "MRTR-3", "MRTR-4")
@with_forms
@pytest.mark.parametrize("tool", RETURNING_TOOLS)
@pytest.mark.parametrize(
    ("answer", "text"), [(TWO_SEATS, "2 at the window"), ({"action": "cancel"}, "cancel")]
)
async def test_input_request_returned_by_handler_is_answered(
    version: str, tool: str, answer: Message, text: str
) -> None:
    async with play_client_of(build_returning(), version) as peer:
        client = AnsweringClient(peer)
        assert text_of(await client.call(tool, {"elicitation/create": answer})) == text
        assert len(client.input_requests) == 1


@with_forms
async def test_returned_form_with_invalid_answer_is_requested_again(version: str) -> None:
    wrong = {"action": "accept", "content": {"count": 9}}
    async with play_client_of(build_returning(), version) as peer:
        client = AnsweringClient(peer)
        answer = await client.call("returning", {"elicitation/create": [wrong, wrong, TWO_SEATS]})
        assert text_of(answer) == "2 at the window"
        assert len(client.input_requests) == 3


async def test_input_required_with_state_only_is_retried() -> None:
    """The tool is busy: a stateful client can't retry, so the server does it."""
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

    async with play_client_of(server, D) as peer:  # the server itself retries
        assert (await peer.result_of("tools/call", {"name": "work"}))["content"][0][
            "text"
        ] == "run 2"
        assert either.current_time() == pytest.approx(0.3)
    runs = 0
    async with play_client_of(server, E) as peer:
        params: Message = {"name": "work"}
        for _ in range(2):
            result = await peer.result_of("tools/call", params)
            assert result["resultType"] == "input_required"
            params["requestState"] = result["requestState"]
        assert (await peer.result_of("tools/call", params))["content"][0]["text"] == "run 2"


# -- Missing capabilities and errors ---------------------------------------------------------------


@pytest.mark.requirement("MRTR-5", "ELIC-3", "SAMP-5")
@pytest.mark.parametrize(
    ("tool", "capabilities", "missing"),
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
async def test_input_request_without_client_capability_is_an_error(
    version: str, tool: str, capabilities: Message, missing: Message
) -> None:
    async with play_client_of(build(), version, capabilities) as peer:
        refused = await peer.request("tools/call", {"name": tool})
        error = await peer.expect_error(refused, -32021 if version == E else -32601)
        assert error["data"] == {"requiredCapabilities": missing}
        assert text_of(
            await AnsweringClient(peer).call(
                "with_fallback", {"elicitation/create": {"action": "cancel"}}
            )
        ) in (
            "cancel",
            "2 at the aisle",
        )


@pytest.mark.parametrize("version", [A, B])
async def test_form_in_revision_without_elicitation_raises(version: str) -> None:
    async with play_client_of(build(), version) as peer:  # in spite of its capabilities
        assert text_of(await AnsweringClient(peer).call("with_fallback", {})) == "2 at the aisle"


@pytest.mark.requirement("MRTR-2")
@with_forms
async def test_input_request_in_handler_catching_everything_is_sent(version: str) -> None:
    async with play_client_of(build(), version) as peer:
        client = AnsweringClient(peer)
        assert (
            text_of(await client.call("catch_all", {"elicitation/create": TWO_SEATS})) == "accept"
        )
        assert len(client.input_requests) == 1


@every_stateful_revision
async def test_input_request_error_response_fails_the_call(version: str) -> None:
    async with play_client_of(build(), version) as peer:
        call = await peer.request("tools/call", {"name": "model"})
        await peer.send_error(
            await peer.expect("sampling/createMessage"), -1, "User rejected sampling request"
        )
        error = await peer.expect_error(call, -1)
        assert (
            error["message"]
            == "the client refused sampling/createMessage: User rejected sampling request"
        )


@pytest.mark.requirement("ELIC-10", "MRTR-15")
async def test_input_response_invalid_fails_or_is_requested_again() -> None:
    """A stateful call fails at once; 2026-07-28 repeats the same request."""
    async with play_client_of(build(), D) as peer:
        call = await peer.request("tools/call", {"name": "form"})
        await peer.answer(
            await peer.expect("elicitation/create"), {"action": "accept", "content": {"count": 0}}
        )
        error = await peer.expect_error(call, -32603)
        assert (
            error["message"]
            == "the answer to elicitation/create does not fit: content.count is less than 1"
        )
    async with play_client_of(build(), E) as peer:
        client = AnsweringClient(peer)
        wrong = {"action": "accept", "content": {"count": 0}}
        assert (
            text_of(await client.call("form", {"elicitation/create": [wrong, TWO_SEATS]}))
            == "2 at the window"
        )
        assert client.input_requests[0] == client.input_requests[1]


# -- Cancellation, waiting, disconnects ------------------------------------------------------------


def build_recording() -> tuple[Server, list[str]]:
    """Build a server whose tools record how they ended."""
    server = Server("recording", limits=Limits(in_flight=2, waiting=1))
    outcomes: list[str] = []

    @server.tool
    async def ask(context: Context) -> str:
        """Ask for the roots."""
        try:
            return str(len(await context.roots()))
        except BaseException as exc:
            cancelled = isinstance(exc, either.Cancelled)
            outcomes.append("cancelled" if cancelled else type(exc).__name__)
            raise

    @server.tool
    async def shielded(context: Context) -> str:
        """Ask for the roots in a shielded scope."""
        try:
            await either.shielded(context.roots())
        except LocalProtocolError as exc:
            outcomes.append(str(exc))
            raise
        return "answered"

    @server.tool
    async def impatient(context: Context) -> str:
        """Ask for the roots with a timeout, and do something else then."""
        with either.move_on_after(5):
            return str(len(await context.roots()))
        await either.sleep(60)
        return "no answer"

    return server, outcomes


@pytest.mark.parametrize(
    ("tool", "what"),
    [
        ("ask", "cancelled"),
        ("shielded", "the request is over, so no response to it can be awaited"),
    ],
)
@every_stateful_revision
async def test_call_cancelled_cancels_its_input_request(version: str, tool: str, what: str) -> None:
    server, outcomes = build_recording()
    async with play_client_of(server, version) as peer:
        call = await peer.request("tools/call", {"name": tool})
        question = await peer.expect("roots/list")
        await peer.notify("notifications/cancelled", {"requestId": call["id"]})
        await peer.expect("notifications/cancelled", {"requestId": question["id"]})
        await peer.answer(question, HOME_ROOT)  # late, which is allowed
        await peer.expect_silence()
        assert outcomes == [what]
        assert await peer.result_of("ping") == {}


@every_stateful_revision
async def test_input_request_unanswered_ends_with_handler_timeout(version: str) -> None:
    server, _ = build_recording()
    async with play_client_of(server, version) as peer:
        call = await peer.request("tools/call", {"name": "impatient"})
        question = await peer.expect("roots/list")
        start = either.current_time()
        await peer.expect("notifications/cancelled", {"requestId": question["id"]})
        assert either.current_time() - start < 6  # not with the response
        assert (await peer.expect_result(call))["content"][0]["text"] == "no answer"
        # The wait has no timeout of its own: only the handler or the client ends it.
        call = await peer.request("tools/call", {"name": "ask"})
        await peer.expect("roots/list")
        await either.sleep(86_400)
        await peer.notify("notifications/cancelled", {"requestId": call["id"]})
        await peer.expect("notifications/cancelled")


@every_stateful_revision
async def test_input_request_at_disconnect_raises_connection_lost(version: str) -> None:
    server, outcomes = build_recording()
    async with play_client_of(server, version) as peer:
        await peer.request("tools/call", {"name": "ask"})
        await peer.expect("roots/list")
    assert outcomes == ["ConnectionLost"]


@every_stateful_revision
async def test_input_response_with_full_request_queue_is_received(version: str) -> None:
    """Handlers that wait for input take all places and further requests wait; the server must still
    read.
    """
    server, _ = build_recording()
    async with play_client_of(server, version) as peer:
        calls = [await peer.request("tools/call", {"name": "ask"}) for _ in range(3)]
        questions = [await peer.expect("roots/list"), await peer.expect("roots/list")]
        refused = await peer.request("tools/call", {"name": "ask"})
        assert "too many requests" in (await peer.expect_error(refused))["message"]
        answered = []
        for _ in calls:
            await peer.answer(questions.pop(), HOME_ROOT)
            answered.append((await peer.receive())["id"])
            if len(answered) == 1:
                questions.append(await peer.expect("roots/list"))
        assert sorted(answered) == [call["id"] for call in calls]


async def test_input_request_in_thread_handler_is_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The author reads two ways out in the log."""
    server = Server("threads")

    @server.tool(thread=True)
    def ask(context: Context) -> str:
        """Request input in a thread, which cannot await."""
        return str(context.roots())

    async with play_client_of(server, D) as peer:
        assert (await peer.result_of("tools/call", {"name": "ask"}))["isError"] is True
    assert (
        "a plain def cannot await an answer: write an `async def`, or return InputRequiredResult"
        in caplog.text
    )


# -- Request state ---------------------------------------------------------------------------------


async def first_input_required(peer: Wire, **params: Any) -> Message:
    """Return the first, input-required result of a tool with a form."""
    result: Message = await peer.result_of("tools/call", {"name": "form", **params})
    assert result["resultType"] == "input_required"
    return result


@pytest.mark.requirement("MRTR-13", "MRTR-14")
@every_stateless_revision
@pytest.mark.parametrize(
    "how", ["altered", "foreign", "expired", "for another tool", "for other arguments"]
)
async def test_server_rejects_invalid_request_state(
    version: str, how: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five ways to misuse it look the same to the client; only the log tells them apart."""
    async with play_client_of(build(), version) as other:
        foreign = (await first_input_required(other))["requestState"]
    async with play_client_of(build(), version) as peer:
        state = (await first_input_required(peer))["requestState"]
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
        error = await peer.expect_error(await peer.request("tools/call", params), -32602)
        assert (
            error["message"]
            == "requestState is not valid for this request; make the request again without it"
        )
    (record,) = [record for record in caplog.records if "requestState" in record.message]
    assert record.message.startswith("tools/call: requestState refused: ")
    assert (record.levelname, record.exc_info) == ("WARNING", None)


@pytest.mark.requirement("MRTR-18")
@every_stateless_revision
async def test_request_state_with_same_keys_is_valid_in_another_process(version: str) -> None:
    keys = {"a": b"a" * 32}
    async with play_client_of(build(state_keys=keys), version) as peer:
        result = await first_input_required(peer)
    (key,) = result["inputRequests"]
    params = {
        "name": "form",
        "requestState": result["requestState"],
        "inputResponses": {key: TWO_SEATS},
    }
    async with play_client_of(build(state_keys=keys), version) as peer:
        assert (await peer.result_of("tools/call", params))["content"][0][
            "text"
        ] == "2 at the window"


# -- URL elicitation -------------------------------------------------------------------------------


def build_with_page() -> tuple[Server, dict[str, bool]]:
    server = Server("pages")
    visited = {"v1": False}

    @server.tool
    def report() -> str:
        """Give a report after a login."""
        if not visited["v1"]:
            raise UrlElicitationRequired("Please log in.", "https://example.com/login", "v1")
        return "all is well"

    @server.tool
    async def pay(context: Context) -> str:
        """Ask for a payment."""
        return (
            await context.elicit_url("Please pay.", "https://example.com/pay", elicitation_id="p1")
        ).action

    return server, visited


@pytest.mark.requirement("ELIC-15", "ELIC-16")
async def test_url_elicitation_required_until_page_is_visited() -> None:
    """The user visits the page outside MCP; only the session that was asked hears of it."""
    server, visited = build_with_page()
    async with play_client_of(server, D) as peer, play_client_of(server, D) as other:
        error = await peer.expect_error(
            await peer.request("tools/call", {"name": "report"}), -32042
        )
        page = {
            "message": "Please log in.",
            "mode": "url",
            "url": "https://example.com/login",
            "elicitationId": "v1",
        }
        assert error["data"] == {"elicitations": [page]}
        visited["v1"] = True
        await either.in_thread(server.elicitation_complete, "v1")
        await peer.expect("notifications/elicitation/complete", {"elicitationId": "v1"})
        assert (await peer.result_of("tools/call", {"name": "report"}))["content"][0][
            "text"
        ] == "all is well"
        server.elicitation_complete("v1")  # no second notification
        await peer.expect_silence()
        await other.expect_silence()


@pytest.mark.requirement("ELIC-14", "ELIC-17")
async def test_url_elicitation_required_becomes_an_input_request() -> None:
    """2026-07-28 has no error for this: accepting is not yet visiting, so the call says so."""
    server, visited = build_with_page()
    async with play_client_of(server, E) as peer:
        required = await peer.result_of("tools/call", {"name": "report"})
        params = {"message": "Please log in.", "mode": "url", "url": "https://example.com/login"}
        ((key, question),) = required["inputRequests"].items()
        assert question == {"method": "elicitation/create", "params": params}
        again = {
            "requestState": required["requestState"],
            "inputResponses": {key: {"action": "accept"}},
        }
        early = await peer.result_of("tools/call", {"name": "report", **again})
        assert early["isError"] is True  # accepted, but not done yet
        assert early["content"][0]["text"].startswith(
            "Please log in. Call again once that is done at https:"
        )
        visited["v1"] = True
        server.elicitation_complete("v1")
        result = await peer.result_of("tools/call", {"name": "report", **again})
        assert result["content"][0]["text"] == "all is well"


@pytest.mark.requirement("ELIC-13", "ELIC-15")
async def test_elicit_url_before_answer_sends_elicitation_complete() -> None:
    server, _ = build_with_page()
    async with play_client_of(server, D) as peer:
        call = await peer.request("tools/call", {"name": "pay"})
        question = await peer.expect("elicitation/create", {"elicitationId": "p1"})
        server.elicitation_complete("p1")
        await peer.expect("notifications/elicitation/complete", {"elicitationId": "p1"})
        await peer.answer(question, {"action": "accept"})
        assert (await peer.expect_result(call))["content"][0]["text"] == "accept"


def test_form_read_returns_declared_type() -> None:
    result = t.ElicitResult(action="accept", content={"count": 2.0})
    assert SEATS.read(result) == AcceptedElicitation(Seats(2))
