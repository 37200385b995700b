"""An agent: a model uses the tools of three servers, and one of the servers uses the model.

Two servers are child processes, the third is at a URL. The agent connects to all at once and works
without those that fail. The calls of one turn run at the same time. A call that fails or takes too
long is a result as well, so that the model can try something else. Leaving a cancel scope, as
Ctrl+C does, cancels all calls at their servers. Try `python agent.py`.

The model is a script, so that no network is needed. To use a real one, write a `Model` that sends
its messages and tools to the API of a provider.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

import trio

import mcp_trio
from mcp_core import escape_text
from mcp_core.types import (
    CreateMessageParams,
    CreateMessageResult,
    SamplingContent,
    SamplingMessage,
    TextContent,
    Tool,
    ToolResultContent,
    ToolUseContent,
)

MAX_TURNS = 10  # a model that never finishes must not cause endless cost
START_TIMEOUT = 30  # seconds; by default a child has all the time that it needs

Target: TypeAlias = str | mcp_trio.Server | Sequence[str | Path]  # a URL, a server or a command


class Model(Protocol):
    """A language model."""

    async def respond(
        self, messages: Sequence[SamplingMessage], tools: Sequence[Tool]
    ) -> CreateMessageResult:
        """Return the next message: text, or the tools that the model wants to use."""
        ...


class Agent:
    """A model with the tools of several servers.

    Args:
        model: decides which tools to use.
        call_timeout: seconds that one call of a tool may take.
    """

    def __init__(self, model: Model, call_timeout: float = 60) -> None:
        self.model = model
        self.call_timeout = call_timeout
        # Servers may have tools of the same name. The model sees each with that of its server.
        self.tools: dict[str, tuple[mcp_trio.Client, Tool]] = {}

    async def connect(
        self,
        servers: Mapping[str, Target],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Connect to all servers at once, report that, and stay connected until cancelled."""
        async with trio.open_nursery() as nursery:
            async with trio.open_nursery() as connecting:
                for name, target in servers.items():
                    connecting.start_soon(nursery.start, self._connect_one, name, target)
            task_status.started()

    async def _connect_one(
        self, name: str, target: Target, *, task_status: trio.TaskStatus[None]
    ) -> None:
        sample = partial(self._sample, name)
        try:
            async with mcp_trio.connect(
                target, on_sample=sample, initialize_timeout=START_TIMEOUT
            ) as client:
                for tool in await client.list_tools():
                    self.tools[f"{name}__{tool.name}"] = client, tool
                task_status.started()
                await trio.sleep_forever()
        except mcp_trio.McpTrioError as exc:
            show("agent", f"works without {name}: {exc}")
            task_status.started()

    async def answer(self, question: str) -> None:
        """Let the model use tools until it has an answer, and print all that happens."""
        show("user", question)
        messages = [SamplingMessage("user", TextContent(question))]
        tools = [
            Tool(name=name, description=tool.description, input_schema=tool.input_schema)
            for name, (_, tool) in sorted(self.tools.items())
        ]
        for _ in range(MAX_TURNS):
            reply = await self.model.respond(messages, tools)
            if reply.text:
                show("model", reply.text)
            uses = [block for block in reply.blocks if isinstance(block, ToolUseContent)]
            if not uses:
                return
            messages.append(SamplingMessage("assistant", reply.content))
            messages.append(SamplingMessage("user", await self._use_tools(uses)))
        show("agent", f"no answer in {MAX_TURNS} turns")

    async def _use_tools(self, uses: Sequence[ToolUseContent]) -> list[SamplingContent]:
        """Call tools at the same time, and return their results in the order of the calls."""
        results: dict[int, ToolResultContent] = {}

        async def use_one(index: int, use: ToolUseContent) -> None:
            results[index] = await self._use_tool(use)

        for use in uses:
            show("model", f"uses {use.name} with {use.input}")
        async with trio.open_nursery() as nursery:
            for index, use in enumerate(uses):
                nursery.start_soon(use_one, index, use)
        for index, use in enumerate(uses):
            outcome = "failed: " if results[index].is_error else ""
            for block in results[index].content:
                text = block.text if isinstance(block, TextContent) else f"({block.type})"
                show(use.name, outcome + text)
        return [results[index] for index in range(len(uses))]

    async def _use_tool(self, use: ToolUseContent) -> ToolResultContent:
        if use.name not in self.tools:  # models invent tools
            return failed(use, f"there is no tool {use.name}")
        client, tool = self.tools[use.name]
        try:
            result = await client.call_tool(tool.name, use.input, max_timeout=self.call_timeout)
        except mcp_trio.McpTrioError as exc:  # an error response, no response, or a lost server
            return failed(use, str(exc))
        return ToolResultContent(use.id, result.content, is_error=result.is_error)

    async def _sample(self, name: str, params: CreateMessageParams) -> CreateMessageResult:
        """Answer a server that asks for the model. A host with a user asks for consent first."""
        show(name, "asks the model")
        return await self.model.respond(params.messages, params.tools or [])


def failed(use: ToolUseContent, reason: str) -> ToolResultContent:
    return ToolResultContent(use.id, [TextContent(reason)], is_error=True)


def show(name: str, text: str) -> None:
    """Print a line of the transcript. Texts of servers and models may contain anything."""
    print(escape_text(f"{name}: {text}"))


# -- A model and servers to try it with ------------------------------------------------------------

Script: TypeAlias = Mapping[str, Sequence[list[SamplingContent]]]


class ScriptedModel:
    """A stand-in for a model. Its message depends on the question and on the number of the turn."""

    def __init__(self, script: Script) -> None:
        self.script = script

    async def respond(
        self, messages: Sequence[SamplingMessage], tools: Sequence[Tool]
    ) -> CreateMessageResult:
        question = messages[0].content
        assert isinstance(question, TextContent)
        turn = sum(message.role == "assistant" for message in messages)
        content = self.script[question.text][turn]
        return CreateMessageResult(role="assistant", content=content, model="script")


QUESTION = "Which tea suits the weather in Oslo?"
SCRIPT: Script = {
    QUESTION: [
        [
            ToolUseContent("1", "weather__forecast", {"city": "Oslo"}),
            ToolUseContent("2", "weather__watch", {"city": "Oslo", "hours": 1_000}),
            ToolUseContent("3", "shop__show_product", {"sku": "sencha"}),
            ToolUseContent("4", "advisor__recommend", {"sky": "cloudy"}),
        ],
        [ToolUseContent("5", "shop__order_pizza", {})],
        [TextContent("Oolong. The shop has no tea at all, though.")],
    ],
    "Which tea suits a cloudy sky?": [[TextContent("Oolong, which is half oxidised.")]],
}

advisor = mcp_trio.Server("advisor")


@advisor.tool
async def recommend(sky: str, context: mcp_trio.Context) -> str:
    """Recommend a tea, with the help of the client's model."""
    return (await context.sample(f"Which tea suits a {sky} sky?", max_tokens=100)).text


async def main() -> None:
    here = Path(__file__).parent
    agent = Agent(ScriptedModel(SCRIPT), call_timeout=1)
    async with trio.open_nursery() as nursery:
        address = await nursery.start(mcp_trio.serve_http, advisor)
        servers: dict[str, Target] = {
            "weather": [sys.executable, here / "weather.py"],
            "shop": [sys.executable, here / "shop.py"],
            "advisor": address.url,
        }
        await nursery.start(agent.connect, servers)
        with trio.move_on_after(60) as limit:
            await agent.answer(QUESTION)
        if limit.cancelled_caught:
            show("agent", "no answer in a minute; the calls were cancelled")
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main)
