"""A tool that uses the client's language model, and lets the model look up what it needs.

The model belongs to the client (client/sampling). The tool calls that it wants are content of its
response; the server makes them and asks again, with their results as messages. In 2026-07-28, where
sampling is deprecated, each question ends a run of the tool, and the next run finds it answered:
looking up must have no side effects, because it is repeated. Try `python research.py 2025-11-25`
and compare.
"""

import sys

import trio

import mcp_trio
from mcp_core import ALL, types

server = mcp_trio.Server("research")
LIBRARY = {"oolong": "Oolong is half oxidised.", "sencha": "Sencha is not oxidised: it is steamed."}
NAME_OF_A_TEA = {"type": "object", "properties": {"tea": {"type": "string"}}, "required": ["tea"]}
LOOK_UP = types.Tool(
    name="look_up", description="What books say of a tea.", input_schema=NAME_OF_A_TEA
)
MAX_ROUNDS = 5  # a model that never finishes must not cause endless cost


def look_up(use: types.ToolUseContent) -> types.ToolResultContent:
    """Run the tool that the model wants to use. Its name and input may be anything."""
    found = LIBRARY.get(str(use.input.get("tea"))) if use.name == LOOK_UP.name else None
    text = types.TextContent(found or "there is nothing of that name")
    return types.ToolResultContent(use.id, [text], is_error=found is None)


@server.tool
async def research(question: str, context: mcp_trio.Context) -> str:
    """Find out something about tea."""
    messages = [types.SamplingMessage("user", types.TextContent(question))]
    for _ in range(MAX_ROUNDS):
        response = await context.sample(messages, max_tokens=500, tools=[LOOK_UP])
        uses = [block for block in response.blocks if isinstance(block, types.ToolUseContent)]
        if not uses:
            return response.text
        messages.append(types.SamplingMessage("assistant", response.content))
        messages.append(types.SamplingMessage("user", [look_up(use) for use in uses]))
    raise mcp_trio.ToolError(f"the model has found no answer in {MAX_ROUNDS} rounds")


def model(params: types.CreateMessageParams) -> types.CreateMessageResult:
    """Look up two teas at once, then repeat the results, in place of a model."""
    results = params.messages[-1].content
    content: list[types.SamplingContent]
    if isinstance(results, list):
        found = [
            block.content[0] for block in results if isinstance(block, types.ToolResultContent)
        ]
        content = [block for block in found if isinstance(block, types.TextContent)]
        return types.CreateMessageResult(role="assistant", content=content, model="parrot")
    content = [
        types.ToolUseContent(f"use-{tea}", "look_up", {"tea": tea}) for tea in ("oolong", "sencha")
    ]
    return types.CreateMessageResult(
        role="assistant", content=content, model="parrot", stop_reason="toolUse"
    )


async def main() -> None:
    able = types.SamplingCapability(tools={})
    versions = sys.argv[1:] or ALL
    async with mcp_trio.connect(
        server, versions=versions, on_sample=model, sampling=able
    ) as client:
        result = await client.call_tool("research", {"question": "Which teas are oxidised?"})
        print(result.text)


if __name__ == "__main__":
    trio.run(main)
