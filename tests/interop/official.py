"""The official Python client (`mcp` 2.3), with a server of ours as its child, in every mode and revision it has.

The client cannot be told which of the older revisions to ask for, but it takes what the server offers instead: so a server
that speaks one revision only decides. It runs on whatever runs the test, trio or asyncio, by way of anyio.

It checks each result against the official schema of the revision, which makes the tests more than what they say.
"""

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters

from mcp_core import ALL

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Sequence

HERE = Path(__file__).parent
E, D, C, B, A = ALL


class Way(NamedTuple):
    """How the client opens, which revisions the server is restricted to, and what both then speak."""

    mode: str
    served: tuple[str, ...]
    spoken: str

    def __str__(self) -> str:
        return f"{self.mode}-to-{self.spoken}"

    def knows(self, version: str) -> bool:
        """Whether what is spoken has what came with `version`."""
        return ALL.index(self.spoken) <= ALL.index(version)


# One for each revision.
REVISIONS = [
    Way("auto", (), E),
    Way("legacy", (), D),
    *(Way("legacy", (version,), version) for version in (C, B, A)),
]
STATEFUL = REVISIONS[1:]
WAYS = [*REVISIONS, Way(E, (), E), *(Way("auto", (version,), version) for version in (D, A))]
every_way = pytest.mark.parametrize("way", WAYS, ids=str)
every_revision = pytest.mark.parametrize("way", REVISIONS, ids=str)


@asynccontextmanager
async def opened(
    way: Way,
    *,
    server: str = "our_server.py",
    runtime: str = "trio",
    through: Sequence[str] = (),
    **options: Any,
) -> AsyncIterator[Client]:
    """The client in conversation with `server`, one of ours, on `runtime`.

    `through` are the words of a program that starts what follows them; `options` are the client's own.
    """
    argv = [*through, sys.executable, str(HERE / server), runtime, *way.served]
    # The client gives a child little of its own environment; the tree under test has to be added.
    environment = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    target = StdioServerParameters(command=argv[0], args=argv[1:], env=environment)
    with anyio.fail_after(20):
        async with Client(target, mode=way.mode, **options) as client:
            assert client.protocol_version == way.spoken
            yield client


async def error_of(call: Awaitable[object]) -> tuple[int, object]:
    """Code and data of the error that `call` ends with."""
    with pytest.raises(MCPError) as caught:
        await call
    return caught.value.code, caught.value.data


async def pages(ask: Any, member: str, key: str = "name") -> list[list[str]]:
    """What is on each page of a list, by the client's method that gives one page."""
    found = []
    cursor = None
    while True:
        page = await ask(cursor=cursor)
        found.append([getattr(entry, key) for entry in getattr(page, member)])
        cursor = page.next_cursor
        if cursor is None:
            return found
