"""A host: a model uses tools of two servers, and its user approves calls that do more than read.

The model is a script. For a real one, send the messages and the tools to the API of a provider.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import trio

import mcp_trio
from mcp_core import escape_text, types
from mcp_trio.host import CallQuestion, HostTool

Turn = str | list[tuple[str, Mapping[str, object]]]  # the answer, or calls of tools
Model = Callable[[Sequence[str], Sequence[HostTool]], Turn]  # of the messages and the tools
WEATHER = [sys.executable, "-m", "mcp_trio", "run", f"{Path(__file__).parent}/weather.py"]
diary = mcp_trio.Server("diary")


@diary.tool(annotations=types.ToolAnnotations(read_only_hint=True))
def plans() -> str:
    """Return the plans of today."""
    return "a walk in Oslo"


def scripted(*turns: Turn) -> Model:
    return lambda messages, tools: turns[len(messages) - 1]  # each turn has one result


async def answer(host: mcp_trio.Host, model: Model, question: str) -> str:
    messages = [question]
    for _ in range(10):  # a model that never finishes must not cause endless cost
        turn = model(messages, host.tools())
        if isinstance(turn, str):
            return turn
        for name, arguments in turn:
            try:
                text = (await host.call(name, arguments, max_timeout=60)).text
            except mcp_trio.McpTrioError as exc:  # failed, denied or unknown: for the model, too
                text = str(exc)
            print(escape_text(f"{name}: {text}"))  # a server may send anything
            messages.append(f"{name}: {text}")
    return "no answer in 10 turns"


async def ask_user(question: CallQuestion) -> bool:
    call = f"{question.server}: {question.tool.name} with {dict(question.arguments)}"
    return await trio.to_thread.run_sync(input, escape_text(f"{call}? [y/N] ")) == "y"


async def main() -> None:
    model = scripted([("mcp__my__plans", {})], [("mcp__sky__forecast", {"city": "Oslo"})], "Coat.")
    async with mcp_trio.Host({"my": diary, "sky": WEATHER}, on_approve_call=ask_user) as host:
        print(await answer(host, model, "What do I need for my plans?"))


if __name__ == "__main__":
    trio.run(main)
