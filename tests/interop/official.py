"""The official Python client (`mcp` 2.3) with our server, in every mode, revision and transport.

The client has no option for the stateful revision to request, but it accepts the one that the
server offers: a server restricted to one revision decides. The client runs on the runtime of the
test, trio or asyncio, through anyio. A stdio server is a child process; an HTTP server runs in the
test on a socket and is shut down in order.

The client validates each result by the official schema of the revision, so the tests check more
than they assert.
"""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest
import trio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

from mcp_core import ALL
from mcp_trio import serve_http
from tests.conformance import everything_server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence

    from mcp_trio import Server
    from mcp_trio.http_server._connection import AccessLogEntry

E, D, C, B, A = ALL

# The client abandons an async generator, which trio reports when it is garbage-collected.
unfinished_streams = pytest.mark.filterwarnings(
    "ignore:Async generator '(httpx2|httpcore2)[.]:ResourceWarning"
)

PAGE_SIZE = 2
# The transports: stdio servers by runtime, HTTP servers by options of `serve_http`.
STDIO = {"stdio": "trio", "stdio-asyncio": "asyncio"}
HTTP: dict[str, dict[str, Any]] = {
    "http": {},
    "http-sse": {"reply": "sse"},
    "http-json": {"reply": "json"},
    "http-stateless": {"sessions": False},
    "http-stateless-json": {"sessions": False, "reply": "json"},
    "http+sse": {},
}


class Case(NamedTuple):
    """The client's mode, the server's revisions (all, if empty), the negotiated revision, and the
    transport.
    """

    mode: str
    versions: tuple[str, ...]
    version: str
    transport: str = "stdio"

    def __str__(self) -> str:
        return f"{self.mode}-to-{self.version}-over-{self.transport}"

    def includes(self, version: str) -> bool:
        """True if the negotiated revision includes what `version` introduced."""
        return ALL.index(self.version) <= ALL.index(version)


# One for each revision.
REVISIONS = [
    Case("auto", (), E),
    Case("legacy", (), D),
    *(Case("legacy", (version,), version) for version in (C, B, A)),
]
ALL_MODES = [*REVISIONS, Case(E, (), E), *(Case("auto", (version,), version) for version in (D, A))]


def over(*transports: str, of: Sequence[Case] = REVISIONS) -> list[Case]:
    """Return these cases over each transport. HTTP+SSE is only for those with a handshake."""
    return [
        case._replace(transport=transport)
        for transport in transports
        for case in of
        if transport != "http+sse" or case.mode == "legacy"
    ]


def cases(*versions: str, transports: Iterable[str] = ("stdio", "http")) -> pytest.MarkDecorator:
    """Parametrize a test with these revisions over each of these transports."""
    return every([case for case in over(*transports) if case.version in versions])


def every(found: Sequence[Case]) -> pytest.MarkDecorator:
    """Parametrize a test with these cases.

    Revisions in the middle are `slow`, and modes over stdio that other cases have over HTTP: each
    starts a process.
    """
    fast = {
        case
        for case in found
        if case.version not in (B, C) and (case.transport != "stdio" or case in REVISIONS)
    }
    rows = [pytest.param(case, marks=[pytest.mark.slow] * (case not in fast)) for case in found]
    return pytest.mark.parametrize("case", rows, ids=str)


MAIN = over("stdio", "http", "http+sse", of=ALL_MODES)
OTHERS = over(*(transport for transport in HTTP if transport not in ("http", "http+sse")))
STREAMING = [case for case in OTHERS if HTTP[case.transport].get("reply") != "json"]
every_case = every(MAIN)
every_case_everywhere = every(MAIN + OTHERS)
every_streaming_case = every(MAIN + STREAMING)
every_revision = cases(*ALL)
every_stateful_revision = cases(D, C, B, A, transports=["stdio", "http", "http+sse"])


@asynccontextmanager
async def opened(
    case: Case, *, through: Sequence[str] = (), **options: Any
) -> AsyncIterator[Client]:
    """Yield the client connected to the everything server.

    `through` is the command of a program that starts the stdio server; `options` are the client's.
    """
    with anyio.fail_after(20):
        if case.transport in HTTP:
            async with served(everything(*case.versions), case.transport) as where:
                target: Any = sse_client(where.url) if case.transport == "http+sse" else where.url
                async with Client(target, mode=case.mode, **options) as client:
                    assert client.protocol_version == case.version
                    yield client
        else:
            argv = [*through, sys.executable, everything_server.__file__, "--stdio"]
            argv += ["--runtime", STDIO[case.transport], "--page-size", str(PAGE_SIZE)]
            argv += [f"--revision={version}" for version in case.versions]
            # The client passes little of its environment to a child, so the tree under test is
            # added.
            environment = {"PYTHONPATH": os.environ["PYTHONPATH"]}
            target = StdioServerParameters(command=argv[0], args=argv[1:], env=environment)
            async with Client(target, mode=case.mode, **options) as client:
                assert client.protocol_version == case.version
                yield client


def everything(*versions: str) -> Server:
    """Build the everything server with short pages, so that a client meets several."""
    return everything_server.everything("trio", versions or ALL, page_size=PAGE_SIZE)


class HttpServer(NamedTuple):
    """A server over HTTP. Set `stop` to shut it down; `exchanges` are the finished ones."""

    url: str
    stop: trio.Event
    exchanges: list[AccessLogEntry]


@asynccontextmanager
async def served(
    server: Server, transport: str = "http", **options: Any
) -> AsyncIterator[HttpServer]:
    """Serve `server` for the length of the block. `options` are more of `serve_http`'s."""
    stop = trio.Event()
    exchanges: list[AccessLogEntry] = []
    serve = partial(
        serve_http, server, stop=stop, on_exchange=exchanges.append, **HTTP[transport], **options
    )
    async with trio.open_nursery() as nursery:
        yield HttpServer((await nursery.start(serve)).url, stop, exchanges)
        stop.set()


async def error_of(call: Awaitable[object]) -> tuple[int, object]:
    """Return code and data of the error that `call` raises."""
    with pytest.raises(MCPError) as caught:
        await call
    return caught.value.code, caught.value.data


async def pages(ask: Any, member: str, key: str = "name") -> list[list[str]]:
    """Return the entries of each page of a list, by the client's method for one page."""
    found = []
    cursor = None
    while True:
        page = await ask(cursor=cursor)
        found.append([getattr(entry, key) for entry in getattr(page, member)])
        cursor = page.next_cursor
        if cursor is None:
            return found


class MessageQueue:
    """The messages that a client gets, in order: `Client(..., message_handler=messages)`."""

    def __init__(self) -> None:
        self._send, self._receive = trio.open_memory_channel[Any](100)

    async def __call__(self, message: Any) -> None:
        self._send.send_nowait(message)

    async def next(self) -> Any:
        return await self._receive.receive()

    @property
    def nothing_else(self) -> bool:
        return self._receive.statistics().current_buffer_used == 0
