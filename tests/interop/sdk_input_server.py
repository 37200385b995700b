"""A server of the official Python SDK's low-level part that requests input:

`python sdk_input_server.py`.

Its tools are written once for both eras. `ToolCallContext.ask` is what the SDK leaves to its users:
a request on behalf of the call or, in 2026-07-28, `input_required` with all responses so far in the
state.

`hang` requests input and never returns; `cancelled` returns once a call of `hang` was cancelled.
`known` returns the roots that the server requested after a change notification.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import anyio
import mcp_types as t
from mcp.server import Server
from mcp.server.context import ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.shared.message import ServerMessageMetadata

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

Context = ServerRequestContext[Any, Any]

ANSWERS: dict[type, type[Any]] = {
    t.ElicitRequest: t.ElicitResult,
    t.CreateMessageRequest: t.CreateMessageResultWithTools,
    t.ListRootsRequest: t.ListRootsResult,
}
SEATS = {
    "type": "object",
    "properties": {
        "count": {"type": "integer", "minimum": 1, "maximum": 8},
        "where": {"type": "string", "enum": ["aisle", "window"]},
        "loud": {"type": "boolean", "default": False},
    },
    "required": ["count"],
}
MEAL = {"type": "object", "properties": {"dish": {"type": "string", "maxLength": 10}}}
ADD = t.Tool(name="add", input_schema={"type": "object", "properties": {"a": {}, "b": {}}})
gone = anyio.Event()
visited: set[str] = set()
roots_known = anyio.Event()
roots: list[str] = []


class InputRequired(Exception):
    """Ends a call with an input-required result."""

    def __init__(self, result: t.InputRequiredResult) -> None:
        self.result = result


class ToolCallContext:
    """One call, and the input requested for it."""

    def __init__(self, context: Context, params: t.CallToolRequestParams) -> None:
        self.session, self.id = context.session, context.request_id
        self.modern = context.protocol_version >= "2026"
        self.answers: dict[str, Any] = json.loads(params.request_state or "{}")
        for key, answer in (params.input_responses or {}).items():
            self.answers[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def ask(self, **questions: t.InputRequest) -> list[Any]:
        """Request all `input_requests` at once, and return the responses in their order."""
        missing = {key: question for key, question in questions.items() if key not in self.answers}
        if missing and self.modern:
            state = json.dumps(self.answers)
            raise InputRequired(t.InputRequiredResult(input_requests=missing, request_state=state))
        try:
            async with anyio.create_task_group() as group:
                for key, question in missing.items():
                    group.start_soon(self._request, key, question)
        except ExceptionGroup as refused:
            raise refused.exceptions[0] from None
        return [
            ANSWERS[type(questions[key])].model_validate(self.answers[key]) for key in questions
        ]

    async def _request(self, key: str, question: Any) -> None:
        here = ServerMessageMetadata(related_request_id=self.id)
        answer = await self.session.send_request(question, ANSWERS[type(question)], metadata=here)
        self.answers[key] = answer.model_dump(by_alias=True, mode="json", exclude_none=True)


def form(message: str, schema: dict[str, Any]) -> t.ElicitRequest:
    return t.ElicitRequest(
        params=t.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


async def book(context: ToolCallContext) -> str:
    """Request input twice, the second time only if needed."""
    [seats] = await context.ask(seats=form("Seats", SEATS))
    if seats.action != "accept":
        return f"seats: {seats.action}, {seats.content}"
    [meal] = await context.ask(meal=form("To eat", MEAL))
    return f"{seats.content}, {meal.action}: {meal.content}"


async def pester(context: ToolCallContext, about: str) -> str:
    """Request input for ever."""
    while True:
        await context.ask(**{f"{about} {len(context.answers)}": form("And now?", MEAL)})


async def hang(context: ToolCallContext) -> str:
    """Request input, and never return."""
    try:
        await context.ask(on=form("Shall I go on?", MEAL))
    finally:
        gone.set()
    return "on"


async def cancelled(context: ToolCallContext) -> str:
    """Return when a call of `hang` was cancelled."""
    await gone.wait()
    return "yes"


def page(id: str, *, modern: bool) -> t.ElicitRequestURLParams:
    return t.ElicitRequestURLParams(
        message="Please log in.",
        url=f"https://example.com/pages?id={id}",
        elicitation_id=None if modern else id,
    )


async def visit(context: ToolCallContext, id: str) -> str:
    """Send the user to a page, and return whether they agreed."""
    [answer] = await context.ask(page=t.ElicitRequest(params=page(id, modern=context.modern)))
    return f"{answer.action}, {answer.content}"


async def locked(context: ToolCallContext, id: str) -> str:
    """Require a visit to a page first."""
    if id not in visited:
        raise UrlElicitationRequiredError([page(id, modern=False)], "Log in first.")
    return "open"


async def unlock(context: ToolCallContext, id: str) -> str:
    """Record that the user has visited the page."""
    visited.add(id)
    await context.session.send_elicit_complete(id)
    return "done"


async def calculate(context: ToolCallContext, task: str) -> str:
    """Let the model use a tool as often as it wants."""
    messages = [t.SamplingMessage(role="user", content=t.TextContent(text=task))]
    while True:
        params = t.CreateMessageRequestParams(
            messages=messages, max_tokens=100, tools=[ADD], tool_choice=t.ToolChoice(mode="auto")
        )
        [sampled] = await context.ask(
            **{f"turn{len(messages)}": t.CreateMessageRequest(params=params)}
        )
        blocks = sampled.content_as_list
        uses = [block for block in blocks if isinstance(block, t.ToolUseContent)]
        if not uses:
            return f"{sampled.model}: {blocks[0].text} ({sampled.stop_reason})"
        messages.append(t.SamplingMessage(role="assistant", content=sampled.content))
        results: list[Any] = [
            t.ToolResultContent(
                tool_use_id=use.id, content=[t.TextContent(text=str(sum(use.input.values())))]
            )
            for use in uses
        ]
        messages.append(t.SamplingMessage(role="user", content=results))


def sampling_request(text: str) -> t.CreateMessageRequest:
    return t.CreateMessageRequest(
        params=t.CreateMessageRequestParams(
            messages=[t.SamplingMessage(role="user", content=t.TextContent(text=text))],
            max_tokens=9,
            system_prompt="Be brief.",
            model_preferences=t.ModelPreferences(
                hints=[t.ModelHint(name="small")], speed_priority=1
            ),
            temperature=0.5,
            stop_sequences=["."],
        )
    )


async def say(context: ToolCallContext, text: str) -> str:
    """Let the model write something."""
    [sampled] = await context.ask(sampled=sampling_request(text))
    return f"{sampled.model}: {sampled.content.text} ({sampled.stop_reason})"


async def where(context: ToolCallContext) -> str:
    """Return the roots."""
    [answer] = await context.ask(roots=t.ListRootsRequest())
    return ", ".join(f"{root.name}={root.uri}" for root in answer.roots)


async def known(context: ToolCallContext) -> str:
    """Return the roots of the latest change, once they are known."""
    await roots_known.wait()
    return ", ".join(roots)


async def plan(context: ToolCallContext) -> str:
    """Request one input of each kind at once."""
    name, sampled, places = await context.ask(
        name=form("Who plans?", MEAL), model=sampling_request("Plan."), roots=t.ListRootsRequest()
    )
    return f"{name.content}, {sampled.model}, {places.roots[0].uri}"


TOOLS: dict[str, Callable[..., Awaitable[str]]] = {
    tool.__name__: tool
    for tool in (
        book,
        pester,
        hang,
        cancelled,
        visit,
        locked,
        unlock,
        say,
        calculate,
        where,
        known,
        plan,
    )
}


async def list_tools(
    context: Context, params: t.PaginatedRequestParams | None
) -> t.ListToolsResult:
    return t.ListToolsResult(
        tools=[t.Tool(name=name, input_schema={"type": "object"}) for name in TOOLS]
    )


async def call_tool(
    context: Context, params: t.CallToolRequestParams
) -> t.CallToolResult | t.InputRequiredResult:
    try:
        text = await TOOLS[params.name](
            ToolCallContext(context, params), **(params.arguments or {})
        )
    except InputRequired as required:
        return required.result
    return t.CallToolResult(content=[t.TextContent(text=text)])


async def ask_for_roots(context: Context, params: t.NotificationParams | None) -> None:
    answer = await context.session.list_roots()
    roots[:] = [str(root.uri) for root in answer.roots]
    roots_known.set()


server = Server(
    "conversation",
    on_list_tools=list_tools,
    on_call_tool=call_tool,
    on_roots_list_changed=ask_for_roots,
)


async def main() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
