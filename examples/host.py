"""A host: a model uses the tools of three servers, and one of the servers uses the model.

Two servers are parts of this program, and the third is a process. A tool that only reads is called
at once; the user is asked about each other call. The model is a script. For a real one, write a
function that sends messages and tools to the API of a provider. Try `python host.py`.
"""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import trio

import mcp_trio
from mcp_core import escape_text, types
from mcp_core.types import SamplingMessage, TextContent, ToolResultContent, ToolUseContent
from mcp_trio.host import CallQuestion, HostTool

Model = Callable[[Sequence[SamplingMessage], Sequence[HostTool]], types.CreateMessageResult]
WEATHER = [sys.executable, "-m", "mcp_trio", "run", f"{Path(__file__).parent}/weather.py"]
advisor, diary = mcp_trio.Server("advisor"), mcp_trio.Server("diary")


@advisor.tool
async def recommend(sky: str, context: mcp_trio.Context) -> str:
    """Recommend a tea, with the help of the client's model."""
    return (await context.sample(f"Which tea suits a {sky} sky?", max_tokens=100)).text


@diary.tool(annotations=types.ToolAnnotations(read_only_hint=True))
def plans() -> str:
    """Return the plans of today."""
    return "a walk in Oslo"


def scripted(*turns: list[types.SamplingContent]) -> Model:
    """Return a stand-in for a model, which says one thing after the other."""
    said = iter(turns)
    return lambda messages, tools: types.CreateMessageResult(
        role="assistant", content=next(said), model="script"
    )


async def answer(host: mcp_trio.Host, model: Model, question: str, max_turns: int = 10) -> str:
    """Let a model use the tools of a host until it has an answer, and return that."""
    messages = [SamplingMessage("user", TextContent(question))]
    for _ in range(max_turns):  # a model that never finishes must not cause endless cost
        reply = model(messages, host.tools())
        uses = [block for block in reply.blocks if isinstance(block, ToolUseContent)]
        if not uses:
            return reply.text
        messages.append(SamplingMessage("assistant", reply.content))
        messages.append(SamplingMessage("user", [await use_tool(host, use) for use in uses]))
    return f"no answer in {max_turns} turns"


async def use_tool(host: mcp_trio.Host, use: ToolUseContent) -> ToolResultContent:
    """Call a tool. That it failed, was denied or does not exist is a result for the model too."""
    try:
        result = await host.call(use.name, use.input, max_timeout=60)
    except mcp_trio.McpTrioError as exc:
        result = types.CallToolResult(content=[TextContent(str(exc))], is_error=True)
    print(escape_text(f"{use.name}: {result.text}"))  # a server may send anything
    return ToolResultContent(use.id, result.content, is_error=result.is_error)


async def ask_user(question: CallQuestion) -> bool:
    """Ask at the terminal whether a tool may be called."""
    call = f"{question.server}: {question.tool.name} with {dict(question.arguments)}"
    return await trio.to_thread.run_sync(input, escape_text(f"{call}? [y/N] ")) == "y"


async def main() -> None:
    model = scripted(
        [ToolUseContent("1", "mcp__diary__plans", {})],
        [ToolUseContent("2", "mcp__weather__forecast", {"city": "Oslo"})],
        [ToolUseContent("3", "mcp__advisor__recommend", {"sky": "cloudy"})],
        [TextContent("Oolong.")],
    )
    adviser = scripted([TextContent("Oolong, which is half oxidised.")])
    async with mcp_trio.Host(
        {"advisor": advisor, "diary": diary, "weather": WEATHER},
        on_approve_call=ask_user,
        on_sample=lambda server, params: adviser(params.messages, ()),
    ) as host:
        print(await answer(host, model, "Which tea suits my plans?"))


if __name__ == "__main__":
    trio.run(main)
