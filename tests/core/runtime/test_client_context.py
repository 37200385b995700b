"""Mistakes with `connect` and `serve_http`, and their one-line errors."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest

import mcp_asyncio_shim
import mcp_trio
from mcp_core import McpTrioError
from mcp_core.registry import Context, Server

if TYPE_CHECKING:
    from collections.abc import Callable

server = Server("mistaken")


@pytest.mark.parametrize("package", [mcp_trio, mcp_asyncio_shim])
async def test_connect_without_async_with_names_the_cure(package: Any) -> None:
    manager = package.connect(server)
    cure = rf"write `async with {package.__name__}\.connect\(\.\.\.\) as client:`"
    with pytest.raises(TypeError, match=cure):
        await manager
    with pytest.raises(TypeError, match=cure), manager:
        pass
    with pytest.raises(AttributeError, match=f"no attribute 'call_tool': {cure}"):
        manager.call_tool("greet")
    assert repr(manager) == f"<{package.__name__}.connect(...), for use with `async with`>"


async def test_connect_variants_without_async_with_name_themselves() -> None:
    with pytest.raises(TypeError, match=r"async with mcp_trio\.connect_http\("):
        await mcp_trio.connect_http("http://127.0.0.1:1/")  # type: ignore[misc]


async def test_connect_exception_of_block_passes_unchanged() -> None:
    error = McpTrioError("mine")
    with pytest.raises(McpTrioError) as caught:
        async with mcp_trio.connect(server):
            raise error
    assert caught.value is error


def test_run_http_busy_port_exits_with_one_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as caught:
            mcp_trio.run_http(server, port=port)
    assert caught.value.code == (
        f"cannot listen on 127.0.0.1, port {port}: address already in use; choose another port,"
        " or 0 for any free port"
    )


async def test_serve_http_busy_port_raises_os_error_with_cure() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(OSError, match="choose another port") as caught,
    ):
        await mcp_trio.serve_http(server, port=taken.getsockname()[1])
    assert caught.value.errno is not None


# -- A plain def that calls what has to be awaited ------------------------------------------------


def report(context: Context, method: str) -> str:
    calls: dict[str, Callable[[], object]] = {
        "progress": lambda: context.progress(1),
        "log": lambda: context.log("info", "text"),
        "roots": context.roots,
        "elicit_url": lambda: context.elicit_url("Visit", "https://example.com/"),
    }
    try:
        calls[method]()
    except RuntimeError as exc:
        return str(exc)
    return "no error"  # pragma: no cover


def attempt(method: str, context: Context) -> str:
    """Call a method of the context."""
    return report(context, method)


@pytest.mark.parametrize("with_middleware", [False, True])
@pytest.mark.parametrize(
    ("method", "cure"),
    [
        ("progress", "use context.progress_nowait()"),
        ("log", "use context.log_nowait()"),
        ("roots", "write an `async def`"),
        ("elicit_url", "write an `async def`"),
    ],
)
async def test_context_of_plain_def_refuses_what_must_be_awaited(
    method: str, cure: str, with_middleware: bool
) -> None:
    """A forgotten `await` would do nothing at all; the error names what to write instead."""
    server = Server("plain")
    server.tool(attempt)
    notes: list[str] = []
    if with_middleware:

        @server.middleware
        async def around(context: Context, proceed: Any) -> Any:
            result = await proceed()
            await context.log("info", "after")  # the middleware itself may await
            notes.append("after")
            return result

    async with mcp_trio.connect(server) as client:
        result = await client.call_tool("attempt", {"method": method})
    assert cure in result.text
    assert notes == (["after"] if with_middleware else [])
