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
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest
import trio
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.sse import sse_client

from mcp_core import ALL
from mcp_trio import serve_http

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence

    from mcp_trio import Server
    from mcp_trio.http_server._connection import AccessLogEntry

HERE = Path(__file__).parent
E, D, C, B, A = ALL

# The client abandons an async generator, which trio reports when it is garbage-collected.
unfinished_streams = pytest.mark.filterwarnings(
    "ignore:Async generator '(httpx2|httpcore2)[.]:ResourceWarning"
)

# The transports: stdio servers by runtime, HTTP servers by options of `serve_http`.
PIPES = {"stdio": "trio", "stdio-asyncio": "asyncio"}
SITES: dict[str, dict[str, Any]] = {
    "http": {},
    "http-sse": {"reply": "sse"},
    "http-json": {"reply": "json"},
    "http-stateless": {"sessions": False},
    "http-stateless-json": {"sessions": False, "reply": "json"},
    "http+sse": {},
}


class Way(NamedTuple):
    """The client's mode, the server's revisions, the negotiated revision, and the transport."""

    mode: str
    served: tuple[str, ...]
    spoken: str
    over: str = "stdio"

    def __str__(self) -> str:
        return f"{self.mode}-to-{self.spoken}-over-{self.over}"

    def knows(self, version: str) -> bool:
        """True if the negotiated revision includes what `version` introduced."""
        return ALL.index(self.spoken) <= ALL.index(version)


# One for each revision.
REVISIONS = [
    Way("auto", (), E),
    Way("legacy", (), D),
    *(Way("legacy", (version,), version) for version in (C, B, A)),
]
ALL_MODES = [*REVISIONS, Way(E, (), E), *(Way("auto", (version,), version) for version in (D, A))]


def over(*places: str, of: Sequence[Way] = REVISIONS) -> list[Way]:
    """Return these ways over each of `places`. HTTP+SSE is only for those with a handshake."""
    return [
        way._replace(over=place)
        for place in places
        for way in of
        if place != "http+sse" or way.mode == "legacy"
    ]


def ways(*versions: str, places: Iterable[str] = ("stdio", "http")) -> pytest.MarkDecorator:
    """Parametrize a test with these revisions over each of these places."""
    found = [way for way in over(*places) if way.spoken in versions]
    return pytest.mark.parametrize("way", found, ids=str)


MAIN = over("stdio", "http", "http+sse", of=ALL_MODES)
OTHER_SITES = over(*(place for place in SITES if place not in ("http", "http+sse")))
every_way = pytest.mark.parametrize("way", MAIN, ids=str)
every_way_everywhere = pytest.mark.parametrize("way", MAIN + OTHER_SITES, ids=str)
every_way_that_streams = pytest.mark.parametrize(
    "way", MAIN + [way for way in OTHER_SITES if SITES[way.over].get("reply") != "json"], ids=str
)
every_revision = ways(*ALL)
every_stateful_revision = ways(D, C, B, A, places=["stdio", "http", "http+sse"])


@asynccontextmanager
async def opened(
    way: Way, *, server: str = "our_server.py", through: Sequence[str] = (), **options: Any
) -> AsyncIterator[Client]:
    """Yield the client connected to `server`, one of our files here.

    `through` is the command of a program that starts the stdio server; `client_options` are the
    client's.
    """
    with anyio.fail_after(20):
        if way.over in SITES:
            async with served(load(server, *way.served), way.over) as where:
                target: Any = sse_client(where.url) if way.over == "http+sse" else where.url
                async with Client(target, mode=way.mode, **options) as client:
                    assert client.protocol_version == way.spoken
                    yield client
        else:
            argv = [*through, sys.executable, str(HERE / server), PIPES[way.over], *way.served]
            # The client passes little of its environment to a child, so the tree under test is
            # added.
            environment = {"PYTHONPATH": os.environ["PYTHONPATH"]}
            target = StdioServerParameters(command=argv[0], args=argv[1:], env=environment)
            async with Client(target, mode=way.mode, **options) as client:
                assert client.protocol_version == way.spoken
                yield client


def load(file: str, *versions: str) -> Server:
    """Load a fresh server from one of the files here."""
    spec = spec_from_file_location("interop_served", HERE / file)
    assert spec is not None
    assert spec.loader is not None
    # Annotations are resolved in the module, which must be importable by name.
    module = sys.modules["interop_served"] = module_from_spec(spec)
    argv, sys.argv = sys.argv, [file, "trio", *versions]
    try:
        spec.loader.exec_module(module)
    finally:
        sys.argv = argv
    server: Server = module.server
    return server


class Served(NamedTuple):
    """A server over HTTP. Set `stop` to shut it down; `exchanges` are the finished ones."""

    url: str
    stop: trio.Event
    exchanges: list[AccessLogEntry]


@asynccontextmanager
async def served(server: Server, over: str = "http", **options: Any) -> AsyncIterator[Served]:
    """Serve `server` for the length of the block. `client_options` are more of `serve_http`'s."""
    stop = trio.Event()
    exchanges: list[AccessLogEntry] = []
    serve = partial(
        serve_http, server, stop=stop, on_exchange=exchanges.append, **SITES[over], **options
    )
    async with trio.open_nursery() as nursery:
        yield Served((await nursery.start(serve)).url, stop, exchanges)
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
