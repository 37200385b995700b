"""A server that thinks with its client's model, and lets it look things up as often as it needs to.

The model is the client's (client/sampling). What it wants to use comes back as content; whoever asked carries it out and asks again,
with the results as messages. In 2026-07-28, where sampling is deprecated, each question ends a run of the tool and the next one
finds it answered, so that looking things up must do no harm when it is repeated. `python research.py 2025-11-25` shows that
nothing else differs.
"""

import sys

import trio

import mcp_trio
from mcp_core import ALL, types

server = mcp_trio.Server("research")
LIBRARY = {"oolong": "Oolong is half oxidised.", "sencha": "Sencha is not oxidised: it is steamed."}
NAME_OF_A_TEA = {"type": "object", "properties": {"tea": {"type": "string"}}, "required": ["tea"]}
LOOK_UP = types.Tool(name="look_up", description="What books say of a tea.", input_schema=NAME_OF_A_TEA)
PATIENCE = 5  # rounds; a model that never comes to an end must not cost without end


def look_up(use: types.ToolUseContent) -> types.ToolResultContent:
    """Carry out what the model wants. It may want anything, so nothing is taken for granted."""
    found = LIBRARY.get(str(use.input.get("tea"))) if use.name == LOOK_UP.name else None
    text = types.TextContent(found or "there is nothing of that name")
    return types.ToolResultContent(use.id, [text], is_error=found is None)


@server.tool
async def research(question: str, context: mcp_trio.Context) -> str:
    """Find out something about tea."""
    messages = [types.SamplingMessage("user", types.TextContent(question))]
    for _ in range(PATIENCE):
        said = await context.sample(messages, max_tokens=500, tools=[LOOK_UP])
        uses = [block for block in said.blocks if isinstance(block, types.ToolUseContent)]
        if not uses:
            return said.text
        messages.append(types.SamplingMessage("assistant", said.content))
        messages.append(types.SamplingMessage("user", [look_up(use) for use in uses]))
    raise mcp_trio.ToolError(f"the model has found no answer in {PATIENCE} rounds")


def model(params: types.CreateMessageParams) -> types.CreateMessageResult:
    """Instead of a model: looks up two teas at once, and then repeats what it was told."""
    results = params.messages[-1].content
    said: list[types.SamplingContent]
    if isinstance(results, list):
        told = [block.content[0] for block in results if isinstance(block, types.ToolResultContent)]
        said = [block for block in told if isinstance(block, types.TextContent)]
        return types.CreateMessageResult(role="assistant", content=said, model="parrot")
    said = [types.ToolUseContent(f"use-{tea}", "look_up", {"tea": tea}) for tea in ("oolong", "sencha")]
    return types.CreateMessageResult(role="assistant", content=said, model="parrot", stop_reason="toolUse")


async def main() -> None:
    able = types.SamplingCapability(tools={})
    versions = sys.argv[1:] or ALL
    async with mcp_trio.connect(server, versions=versions, on_sample=model, sampling=able) as client:
        result = await client.call_tool("research", {"question": "Which teas are oxidised?"})
        print(result.text)


if __name__ == "__main__":
    trio.run(main)
