"""A server that samples with tools and keeps the roots of its clients, for both drivers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_core import types as t
from mcp_core.registry import Context, RootsContext, Server

if TYPE_CHECKING:
    from collections.abc import Callable


class Shop:
    """The server, with the runs of its functions in `runs`.

    `rescanned` is called at the end of the hook on changed roots.
    """

    def __init__(self) -> None:
        self.rescanned: Callable[[], object] = list
        self.runs: list[Any] = []
        self.server = server = Server("shop")

        async def stock(article: str) -> int:
            """Return the number of pieces."""
            self.runs.append(article)
            return 3

        @server.tool(thread=True)
        def price(article: str) -> int:
            """Return the price."""
            self.runs.append(f"price of {article}")
            return 450

        @server.tool
        async def advise(context: Context) -> str:
            """Let the model find out."""
            tools: list[Any] = [stock, "price"]
            return (await context.sample_with_tools("Tea?", tools, max_tokens=9)).text

        @server.tool
        def known_roots(context: Context) -> str:
            """Return the roots that the hook has found."""
            return ", ".join(context.session_state.get("roots", ["none"]))

        @server.on_roots_changed
        async def rescan(context: RootsContext) -> None:
            context.session_state["roots"] = [root.uri for root in await context.roots()]
            self.runs.append("rescan")
            self.rescanned()


def model(params: t.CreateMessageParams) -> t.CreateMessageResult:
    """Use both tools at once, then report what they returned."""
    assert params.tools is not None
    names = [tool.name for tool in params.tools]
    if len(params.messages) == 1:
        uses: list[t.SamplingContent] = [
            t.ToolUseContent(name, name, {"article": "oolong"}) for name in names
        ]
        return t.CreateMessageResult(
            role="assistant", content=uses, model="m", stop_reason="toolUse"
        )
    results = params.messages[-1].content
    assert isinstance(results, list)
    texts = [
        block.content[0].text
        for block in results
        if isinstance(block, t.ToolResultContent) and isinstance(block.content[0], t.TextContent)
    ]
    text = t.TextContent(f"{names}: {texts}")
    return t.CreateMessageResult(role="assistant", content=text, model="m", stop_reason="endTurn")
