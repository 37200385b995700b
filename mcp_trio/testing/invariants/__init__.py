"""Checks of your own for `mcp-trio fuzz --invariants FILE` and the fixture `mcp_fuzz`.

`invariant` declares a function that checks each result of a tool. `before_call` may replace the
arguments of a call. `after_call` gets results, and can keep values for later calls, which `uses`
hands to another tool:

    from mcp_trio.testing.invariants import CallToolResult, ToolCall, after_call, invariant, uses

    @after_call("create_note", provides="note_id")
    def created(call: ToolCall, result: CallToolResult) -> str:
        return json.loads(result.text)["id"]

    uses("note_id", tool="read_note", argument="id")

    @invariant("read_note", errors=True)
    def created_note_can_be_read(call: ToolCall, result: CallToolResult) -> None:
        if "id" in call.handed:
            assert not result.is_error, result.text

The functions are plain ones. What they print goes to stderr in the command.
"""

from __future__ import annotations

from mcp_core.types import CallToolResult as CallToolResult
from mcp_trio.oracle.fuzz.invariants._declared import InvariantError as InvariantError
from mcp_trio.oracle.fuzz.invariants._declared import ToolCall as ToolCall
from mcp_trio.oracle.fuzz.invariants._declared import after_call as after_call
from mcp_trio.oracle.fuzz.invariants._declared import before_call as before_call
from mcp_trio.oracle.fuzz.invariants._declared import invariant as invariant
from mcp_trio.oracle.fuzz.invariants._declared import uses as uses

__all__ = [
    "CallToolResult",
    "InvariantError",
    "ToolCall",
    "after_call",
    "before_call",
    "invariant",
    "uses",
]
