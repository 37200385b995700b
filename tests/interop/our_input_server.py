"""Our server that requests input, for clients of others: `python our_input_server.py trio|asyncio
[REVISION ...]`.

Like `our_server.py` it depends on no runtime and on no revision. The tools return the responses as
text, so that a client sees how they were understood.

`hang` requests input and never returns; `cancelled` returns once a call of `hang` was cancelled.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta, Struct

from mcp_core import ALL
from mcp_core.registry import Context, Form, Server, UrlElicitationRequired
from mcp_core.types import (
    CreateMessageParams,
    CreateMessageRequest,
    CreateMessageResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    ModelHint,
    ModelPreferences,
    SamplingMessage,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
)

runtime, *spoken = sys.argv[1:]
Event = import_module(runtime).Event


class Seats(Struct):
    """The first form: bounds, and a default."""

    count: Annotated[int, Meta(ge=1, le=8, description="How many?")]
    where: Literal["aisle", "window"] = "aisle"


class Meal(TypedDict):
    """The second one: choices with titles."""

    dish: Annotated[
        Literal["a", "b"],
        Meta(
            extra_json_schema={
                "oneOf": [{"const": "a", "title": "Soup"}, {"const": "b", "title": "Fish"}]
            }
        ),
    ]


class Name(Struct):
    """A form that is returned instead of awaited."""

    name: str


NAME = Form(Name)
ADD = Tool(
    name="add",
    description="Add two numbers.",
    input_schema={
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    },
)

server = Server("conversation", versions=spoken or ALL)
gone = Event()
visited: set[str] = set()


# -- Forms -----------------------------------------------------------------------------------------


@server.tool
async def book(flight: str, context: Context) -> str:
    """Request input twice, the second time only if needed."""
    seats = await context.elicit(f"Seats on {flight}", Seats)
    if seats.action != "accept":
        return f"seats: {seats.action}"
    meal = await context.elicit("To eat", Meal)
    if meal.action != "accept":
        return f"{seats.data}, meal: {meal.action}"
    return f"{seats.data}, {meal.data}"


@server.prompt
async def greet(context: Context) -> str:
    """A prompt that requests input."""
    answer = await context.elicit("Who is it?", NAME)
    return f"Hello {answer.data.name}." if answer.action == "accept" else "Hello."


@server.resource("memo://{day}", mime_type="text/plain")
async def memo(day: str, context: Context) -> str:
    """A resource that requests input."""
    answer = await context.elicit(f"Whose memo of {day}?", NAME)
    return f"{answer.data.name}'s {day}" if answer.action == "accept" else day


@server.tool
async def hang(context: Context) -> None:
    """Request input, and never return."""
    try:
        await context.elicit("Shall I go on?", NAME)
    finally:
        gone.set()


@server.tool
async def cancelled() -> str:
    """Return when a call of `hang` was cancelled."""
    await gone.wait()
    return "yes"


# -- URL elicitation -------------------------------------------------------------------------------


def page(id: str) -> str:
    return f"https://example.com/pages?id={id}"


@server.tool
async def visit(id: str, context: Context) -> str:
    """Send the user to a page, and return whether they agreed."""
    return (await context.elicit_url("Please log in.", page(id), elicitation_id=id)).action


@server.tool
def locked(id: str) -> str:
    """Require a visit to a page first."""
    if id not in visited:
        raise UrlElicitationRequired("Log in first.", page(id), id)
    return "open"


@server.tool
def unlock(id: str) -> None:
    """Record that the user has visited the page."""
    visited.add(id)
    server.elicitation_complete(id)


# -- Sampling and roots ----------------------------------------------------------------------------


@server.tool
async def say(text: str, context: Context) -> str:
    """Let the model write something."""
    said = await context.sample(
        text,
        max_tokens=100,
        system_prompt="Be brief.",
        model_preferences=ModelPreferences(hints=[ModelHint("small")], speed_priority=1.0),
        temperature=0.5,
        stop_sequences=["."],
        include_context="thisServer",  # dropped, because this client does not declare it
    )
    assert isinstance(said.content, TextContent)
    return f"{said.model}: {said.content.text} ({said.stop_reason})"


@server.tool
async def calculate(task: str, context: Context) -> str:
    """Let the model use a tool as often as it wants."""
    messages = [SamplingMessage("user", TextContent(task))]
    while True:
        said = await context.sample(messages, max_tokens=100, tools=[ADD], tool_choice="auto")
        uses = [block for block in said.blocks if isinstance(block, ToolUseContent)]
        if not uses:
            return " ".join(block.text for block in said.blocks if isinstance(block, TextContent))
        messages.append(SamplingMessage("assistant", said.content))
        results: list[Any] = [
            ToolResultContent(
                tool_use_id=use.id, content=[TextContent(str(sum(use.input.values())))]
            )
            for use in uses
        ]
        messages.append(SamplingMessage("user", results))


@server.tool
async def where(context: Context) -> list[str]:
    """Return the roots."""
    return [f"{root.name}={root.uri}" for root in await context.roots()]


# -- Returned input requests -----------------------------------------------------------------------


@server.tool
def plan(context: Context) -> str | InputRequiredResult:
    """Return one input request of each kind at once."""
    name = context.input_response("name", NAME)
    said = context.input_response("model", CreateMessageResult)
    roots = context.input_response("roots", ListRootsResult)
    if name is None or said is None or roots is None:
        sampled = CreateMessageParams(
            messages=[SamplingMessage("user", TextContent("Plan."))], max_tokens=9
        )
        return InputRequiredResult(
            input_requests={
                "name": NAME.question("Who plans?"),
                "model": CreateMessageRequest(sampled),
                "roots": ListRootsRequest(),
            },
            request_state="asked",
        )
    assert name.action == "accept"
    return f"{context.request_state}: {name.data.name}, {said.model}, {roots.roots[0].uri}"


if __name__ == "__main__":
    import_module({"trio": "mcp_trio", "asyncio": "mcp_asyncio_shim"}[runtime]).run(server)
