"""The servers and clients that are compared do the same work, each in an environment of its own.

Peers of this Python are tested with it. `MCP_TRIO_PEERS` names a directory that
`benchmarks/peers/prepare.py` has made; without it the others are skipped.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from benchmarks.targets import HERE as FOLDER
from benchmarks.targets import TARGETS, Programs
from mcp_core.types import TextContent
from mcp_trio import ConnectFailed, connect_http, connect_stdio

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcp_trio import Client

PLACE = os.environ.get("MCP_TRIO_PEERS")
HERE = Programs(None)
OTHERS = Programs(Path(PLACE) if PLACE else None)
BLOCKING = [sys.executable, str(FOLDER / "peers/floor.py"), "blocking", "stdio"]
VERSIONS = ("2025-11-25", "2026-07-28")
# Seconds: some peers take long to start, and the machine may be busy.
PATIENT = 60


def programs_of(name: str) -> Programs:
    """Return what can start this target; skip the test if nothing can."""
    for programs in (HERE, OTHERS):
        if name in programs.names():
            return programs
    pytest.skip("needs MCP_TRIO_PEERS, a directory made by benchmarks/peers/prepare.py")


def row(name: str, *values: str, slow: bool = False) -> object:
    """Return a row of a table, marked by who is the peer."""
    marks = []
    if TARGETS[name].environment:
        marks.append(pytest.mark.interop)
    if slow:
        marks.append(pytest.mark.slow)
    return pytest.param(name, *values, id="-".join([name, *values]), marks=marks)


async def check_tools(client: Client, *, floor: bool, streams: bool = True) -> None:
    assert (await client.call_tool("echo", {"text": "x"})).content == [TextContent("x")]
    if floor:
        return
    tools = {tool.name: tool for tool in await client.list_tools()}
    assert set(tools) == {"echo", "add", "progress", "filler_0", "filler_1"}
    assert set(tools["filler_1"].input_schema["properties"]) == {"query", "limit", "exact"}
    assert tools["add"].input_schema["required"] == ["a", "b"]
    assert (await client.call_tool("add", {"a": 2, "b": 3})).content == [TextContent("5")]
    reported = []
    done = await client.call_tool(
        "progress", {"n": 3}, progress=lambda *step: reported.append(step[:2])
    )
    assert done.content == [TextContent("done")]
    if streams:
        assert reported == [(1, 3), (2, 3), (3, 3)]


def words_of(name: str) -> list[str]:
    return [] if TARGETS[name].is_floor else ["--tools", "2"]


OVER_STDIO = [
    row(name, version)
    for name, target in TARGETS.items()
    if target.stdio and name != "pipe"
    for version in VERSIONS
    if version < "2026" or "modern" in target.modes
]


@pytest.mark.timeout(100)
@pytest.mark.parametrize(("name", "version"), OVER_STDIO)
async def test_compared_stdio_server_does_same_work(name: str, version: str) -> None:
    argv = programs_of(name).server(name, "stdio", *words_of(name))
    with trio.fail_after(PATIENT):
        async with connect_stdio(argv, versions=[version]) as client:
            await check_tools(client, floor=TARGETS[name].is_floor)


async def test_bytes_only_floor_echoes() -> None:
    """It has no list of tools, so our client can only ask it what it knows."""
    argv = HERE.server("pipe", "stdio")
    call = {"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "a,b}"}}}
    lines = [{"id": 1, "method": "initialize"}, {"method": "notifications/x"}, {"id": 2, **call}]
    data = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    done = await trio.run_process(argv, stdin=data, capture_stdout=True)
    opened, echoed = map(json.loads, done.stdout.splitlines())
    assert opened["id"] == 1
    assert opened["result"]["protocolVersion"] == "2025-11-25"
    assert echoed["id"] == 2
    assert echoed["result"] == {"content": [{"type": "text", "text": "a,b}"}]}


@asynccontextmanager
async def http_server(name: str, mode: str) -> AsyncIterator[str]:
    """Run a server of the table, and yield its URL, at which it may not listen yet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--port", str(port), "--mode", mode, *words_of(name)]
    argv = programs_of(name).server(name, "http", *options)
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(trio.run_process, argv, check=False))
        yield f"http://127.0.0.1:{port}/mcp"
        nursery.cancel_scope.cancel()


OVER_HTTP = [
    row(name, mode, slow=mode not in {"session-sse", "modern"})
    for name, target in TARGETS.items()
    for mode in target.modes
]


@pytest.mark.timeout(100)
@pytest.mark.parametrize(("name", "mode"), OVER_HTTP)
async def test_compared_http_server_does_same_work(name: str, mode: str) -> None:
    """Figures of two servers can be compared only if both do the same work."""
    version = VERSIONS[mode == "modern"]
    with trio.fail_after(PATIENT):
        async with http_server(name, mode) as url:
            while True:
                try:
                    async with connect_http(url, versions=[version]) as client:
                        floor = TARGETS[name].is_floor
                        await check_tools(client, floor=floor, streams="json" not in mode)
                    break
                except ConnectFailed:
                    await trio.sleep(0.1)


CLIENTS = [
    row(name, where)
    for name, target in TARGETS.items()
    if target.client
    for where in ("stdio", "memory", "http")
    if where != "http" or not target.is_floor
]


@pytest.mark.timeout(100)
@pytest.mark.parametrize(("name", "where"), CLIENTS)
async def test_compared_client_prints_its_figures(name: str, where: str) -> None:
    programs = programs_of(name)
    with trio.fail_after(PATIENT):
        async with AsyncExitStack() as stack:
            target = {"stdio": BLOCKING, "memory": ["memory"]}.get(where)
            if target is None:
                url = await stack.enter_async_context(http_server("h11", "session-json"))
                async with await open_when_listening(url):
                    target = [url, "2025-11-25"]
            argv = programs.client(name, "0.02", *target)
            done = await trio.run_process(argv, capture_stdout=True)
    figures = [float(word) for word in done.stdout.split()]
    assert len(figures) == 4, done.stdout
    assert min(figures) > 0


async def open_when_listening(url: str) -> trio.SocketStream:
    """Return a connection to a server that may not listen yet."""
    host, port = url.split("/")[2].split(":")
    while True:
        try:
            return await trio.open_tcp_stream(host, int(port))
        except OSError:
            await trio.sleep(0.05)
