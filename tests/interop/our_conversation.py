"""A server of ours that asks, for clients of other makers: `python our_conversation.py trio|asyncio [REVISION ...]`.

Like `our_server.py` it is written for no runtime, and for no revision: whether a question is a request or part of an answer is
not to be seen here. What it asks for is given back as text, so that a client learns how its answers were understood.

`hang` asks and never goes on; `cancelled` answers once a call of it was cancelled.
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
        Meta(extra_json_schema={"oneOf": [{"const": "a", "title": "Soup"}, {"const": "b", "title": "Fish"}]}),
    ]


class Name(Struct):
    """For whoever asks by hand."""

    name: str


NAME = Form(Name)
ADD = Tool(
    name="add",
    description="Add two numbers.",
    input_schema={"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
)

server = Server("conversation", versions=spoken or ALL)
gone = Event()
visited: set[str] = set()


# -- Forms -------------------------------------------------------------------------------------------------------------------


@server.tool
async def book(flight: str, context: Context) -> str:
    """Ask twice, the second time only if there is a reason to."""
    seats = await context.elicit(f"Seats on {flight}", Seats)
    if seats.action != "accept":
        return f"seats: {seats.action}"
    meal = await context.elicit("To eat", Meal)
    if meal.action != "accept":
        return f"{seats.data}, meal: {meal.action}"
    return f"{seats.data}, {meal.data}"


@server.prompt
async def greet(context: Context) -> str:
    """A prompt that asks."""
    answer = await context.elicit("Who is it?", NAME)
    return f"Hello {answer.data.name}." if answer.action == "accept" else "Hello."


@server.resource("memo://{day}", mime_type="text/plain")
async def memo(day: str, context: Context) -> str:
    """A resource that asks."""
    answer = await context.elicit(f"Whose memo of {day}?", NAME)
    return f"{answer.data.name}'s {day}" if answer.action == "accept" else day


@server.tool
async def hang(context: Context) -> None:
    """Ask, and nothing else."""
    try:
        await context.elicit("Shall I go on?", NAME)
    finally:
        gone.set()


@server.tool
async def cancelled() -> str:
    """Come back when a call of `hang` was cancelled."""
    await gone.wait()
    return "yes"


# -- Pages -------------------------------------------------------------------------------------------------------------------


def page(id: str) -> str:
    return f"https://example.com/pages?id={id}"


@server.tool
async def visit(id: str, context: Context) -> str:
    """Send the user to a page, and tell whether he agreed to go."""
    return (await context.elicit_url("Please log in.", page(id), elicitation_id=id)).action


@server.tool
def locked(id: str) -> str:
    """Do nothing before the user was at a page."""
    if id not in visited:
        raise UrlElicitationRequired("Log in first.", page(id), id)
    return "open"


@server.tool
def unlock(id: str) -> None:
    """The user is done at the page: what in the world happens there."""
    visited.add(id)
    server.elicitation_complete(id)


# -- The model, and the roots ------------------------------------------------------------------------------------------------


@server.tool
async def say(text: str, context: Context) -> str:
    """Have the model say something."""
    said = await context.sample(
        text,
        max_tokens=100,
        system_prompt="Be brief.",
        model_preferences=ModelPreferences(hints=[ModelHint("small")], speed_priority=1.0),
        temperature=0.5,
        stop_sequences=["."],
        include_context="thisServer",  # left out, as this client does not say that it can
    )
    assert isinstance(said.content, TextContent)
    return f"{said.model}: {said.content.text} ({said.stop_reason})"


@server.tool
async def calculate(task: str, context: Context) -> str:
    """Have the model use a tool for as long as it wants to."""
    messages = [SamplingMessage("user", TextContent(task))]
    while True:
        said = await context.sample(messages, max_tokens=100, tools=[ADD], tool_choice="auto")
        uses = [block for block in said.blocks if isinstance(block, ToolUseContent)]
        if not uses:
            return " ".join(block.text for block in said.blocks if isinstance(block, TextContent))
        messages.append(SamplingMessage("assistant", said.content))
        results: list[Any] = [
            ToolResultContent(tool_use_id=use.id, content=[TextContent(str(sum(use.input.values())))])
            for use in uses
        ]
        messages.append(SamplingMessage("user", results))


@server.tool
async def where(context: Context) -> list[str]:
    """Tell the roots."""
    return [f"{root.name}={root.uri}" for root in await context.roots()]


# -- By hand -----------------------------------------------------------------------------------------------------------------


@server.tool
def plan(context: Context) -> str | InputRequiredResult:
    """Ask for one of everything at once, without waiting."""
    name = context.input_response("name", NAME)
    said = context.input_response("model", CreateMessageResult)
    roots = context.input_response("roots", ListRootsResult)
    if name is None or said is None or roots is None:
        sampled = CreateMessageParams(messages=[SamplingMessage("user", TextContent("Plan."))], max_tokens=9)
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
