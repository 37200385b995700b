"""A right client on the official Python SDK. It has a short conversation with the server."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
import trio
from mcp import ClientSession, MCPError
from mcp import types as sdk_types
from mcp.shared.message import SessionMessage

from tests.oracle_score.wrapper import LineReader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["visit_as_sdk"]

TIMEOUT: Final = 3.0  # seconds for each of the client's requests


async def _sample(context: Any, params: Any) -> Any:
    if params.tools is not None or params.tool_choice is not None or _uses_tools(params):
        # The SDK hands them on, although the client hasn't declared that it takes any.
        return sdk_types.ErrorData(code=-32602, message="no tools here")
    content = sdk_types.TextContent(type="text", text="yes")
    return sdk_types.CreateMessageResult(role="assistant", content=content, model="none")


def _uses_tools(params: Any) -> bool:
    contents = [each.content for each in params.messages]
    blocks = [block for each in contents for block in (each if isinstance(each, list) else [each])]
    return any(each.type in ("tool_use", "tool_result") for each in blocks)


async def _elicit(context: Any, params: Any) -> Any:
    return sdk_types.ElicitResult(action="decline")


async def _list_roots(context: Any) -> Any:
    return sdk_types.ListRootsResult(
        roots=[sdk_types.Root(uri="file:///srv/score")]  # type: ignore[arg-type]
    )


async def visit_as_sdk(stream: trio.abc.Stream) -> None:
    """Have a short conversation with the server on a stream, and end."""
    received, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, sent = anyio.create_memory_object_stream[SessionMessage](0)
    async with received, reading, writing, sent, trio.open_nursery() as nursery:
        nursery.start_soon(_read, stream, received)
        nursery.start_soon(_write, stream, sent)
        session = ClientSession(
            reading,
            writing,
            read_timeout_seconds=TIMEOUT,
            sampling_callback=_sample,
            elicitation_callback=_elicit,
            list_roots_callback=_list_roots,
        )
        async with session:
            await _visit(session)
        nursery.cancel_scope.cancel()


async def _visit(session: ClientSession) -> None:
    try:
        await session.initialize()
    except (MCPError, RuntimeError, ValueError):
        return
    requests: list[Callable[[], Awaitable[object]]] = [
        session.list_tools,
        lambda: session.call_tool("sum", {"a": 1, "b": 2}),
        session.list_resources,
        lambda: session.read_resource("note:///one"),
        session.list_prompts,
        lambda: session.call_tool("sum", {"a": 3, "b": 4}, progress_callback=_ignore),
    ]
    for each in requests:
        with suppress(MCPError, RuntimeError, ValueError):
            await each()


async def _ignore(progress: float, total: float | None, message: str | None) -> None:
    """Take note of progress."""


async def _read(stream: trio.abc.ReceiveStream, received: Any) -> None:
    """Do what the SDK's transport on pipes does with the lines of a server."""
    reader = LineReader(stream)
    async with received:
        while (line := await reader.next()) is not None:
            found: SessionMessage | Exception
            try:
                message = sdk_types.jsonrpc_message_adapter.validate_json(
                    line.decode(errors="replace"), by_name=False
                )
                found = SessionMessage(message)
            except ValueError as exc:
                found = exc
            with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
                await received.send(found)


async def _write(stream: trio.abc.SendStream, sent: Any) -> None:
    with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
        async for each in sent:
            text = each.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stream.send_all(text.encode() + b"\n")
