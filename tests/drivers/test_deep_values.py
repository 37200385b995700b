"""Values that are nested deeply: in each place of a message one is answered, and so is the next.

How deep a message may be depends on its decoder. What is decoded must be safe to handle.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from mcp_core import ALL
from mcp_core.registry import Context, Server
from tests.harness.jsonrpc import D, E, encoded, text_of
from tests.harness.wire.lines import served

pytestmark = pytest.mark.usefixtures("each_driver")

HOLE: Final = "a hole"
# Python 3.11 decodes fewer than 1,000 levels, 3.12 and later fewer than 10,000.
DEPTHS: Final = (250, 900, 940, 980, 9_000, 9_960, 20_000)
VERSIONED: Final = {
    "io.modelcontextprotocol/protocolVersion": E,
    "io.modelcontextprotocol/clientCapabilities": {"experimental": {"a": HOLE}, "sampling": HOLE},
}
PLACES: Final[dict[str, tuple[str, Any]]] = {
    **{
        f"{place} of {tool}": ("tools/call", {"name": tool, "arguments": arguments})
        for tool in ("echo", "number", "asks", "nothing")
        for place, arguments in {
            "the argument": {"value": HOLE},
            "an unknown argument": {"value": 1, "other": HOLE},
            "the arguments": HOLE,
        }.items()
    },
    "metadata": ("tools/call", {"name": "echo", "arguments": {}, "_meta": {"a": HOLE}}),
    "a progress token": ("tools/list", {"_meta": {"progressToken": HOLE}}),
    "capabilities": ("tools/list", {"_meta": VERSIONED}),
    "an unknown method": ("acme/x", {"a": HOLE}),
    "a cursor": ("tools/list", {"cursor": HOLE}),
    "an unknown param": ("resources/read", {"uri": "x:y", "other": HOLE}),
    "input responses": (
        "tools/call",
        {"name": "asks", "arguments": {"value": 1}, "inputResponses": {"a": HOLE}},
    ),
}


def deep_server() -> Server:
    server = Server("deep", versions=ALL)

    @server.tool
    def echo(value: Any = None) -> Any:
        """Return it."""
        return value

    @server.tool
    def number(value: int) -> int:
        """Return it."""
        return value

    @server.tool
    async def asks(value: Any, context: Context) -> str:
        """Ask for something else."""
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        await context.elicit("Which name?", schema)
        return "done"

    return server


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("place", PLACES)
async def test_value_of_any_depth_is_answered_without_internal_error(
    place: str, version: str
) -> None:
    """A `RecursionError` in the middle of a handler would be an attacker's cheapest crash."""
    method, params = PLACES[place]
    async with served(deep_server(), version) as wire:
        for depth in DEPTHS:
            for value in (b"[" * depth + b"]" * depth, b'{"a":' * depth + b"1" + b"}" * depth):
                await wire.send(
                    encoded(wire.asking(7, method, params)).replace(encoded(HOLE), value)
                )
                answer = await wire.receive()
                if answer.get("method") == "elicitation/create":
                    response = {"action": "accept", "content": {"name": "x"}}
                    await wire.send({"jsonrpc": "2.0", "id": answer["id"], "result": response})
                    answer = await wire.receive()
                if "error" in answer:
                    assert answer["error"]["code"] != -32603, (depth, answer)
                elif answer["result"].get("isError"):
                    assert "internal error" not in text_of(answer), (depth, answer)
                assert await wire.is_alive()
