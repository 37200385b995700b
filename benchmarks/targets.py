"""The servers and clients that are compared, and how each is started."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.peers.prepare import ENVIRONMENTS, installed, is_ready

__all__ = ["ENVIRONMENT", "MODES", "TARGETS", "Programs", "Target"]

HERE: Final = Path(__file__).parent
# Of each started program: it imports this checkout, and byte code is kept, as in an installation.
ENVIRONMENT: Final = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")])),
    "PYTHONDONTWRITEBYTECODE": "",
}
# Over HTTP: with sessions or without, responses as SSE or JSON; `modern` is 2026-07-28.
MODES: Final = ("session-sse", "session-json", "stateless-sse", "stateless-json", "modern")
_HANDSHAKE: Final = MODES[:-1]


class Target(NamedTuple):
    """A server, and maybe the client of the same library.

    Attributes:
        title: its name in tables and pictures.
        script: the server, in this directory.
        environment: that of `peers/prepare.py` that it runs in; "" for this Python.
        words: come before `stdio` or `http`.
        stdio: whether it serves over stdio.
        modes: those of `MODES` that it has over HTTP.
        client: the script of the client; "" for none.
        is_floor: whether it is no library: it has `echo` only, and no list of tools.
        imports: the statement that imports what its server needs; "" if it isn't Python.
    """

    title: str
    script: str
    environment: str = ""
    words: tuple[str, ...] = ()
    stdio: bool = True
    modes: tuple[str, ...] = MODES
    client: str = ""
    is_floor: bool = False
    imports: str = ""


TARGETS: Final = {
    "ours": Target(
        "mcp-trio", "server.py", client="client.py", imports="from mcp_trio import Server, run"
    ),
    "ours_async": Target("mcp-trio, async def", "server.py", words=("--async",)),
    "mcp": Target(
        "SDK, low level",
        "peers/sdk_lowlevel.py",
        "mcp",
        client="peers/sdk_client.py",
        imports="import mcp.server.lowlevel, mcp.server.stdio",
    ),
    "mcpserver": Target(
        "SDK, MCPServer",
        "peers/sdk_mcpserver.py",
        "mcp",
        imports="from mcp.server.mcpserver import MCPServer",
    ),
    "fastmcp": Target(
        "FastMCP",
        "peers/fastmcp_server.py",
        "fastmcp",
        client="peers/fastmcp_client.py",
        imports="from fastmcp import FastMCP",
    ),
    "ts1": Target(
        "TypeScript SDK 1",
        "peers/ts_server.mjs",
        "ts1",
        ("1",),
        modes=_HANDSHAKE,
        client="peers/ts_client.mjs",
    ),
    "ts2": Target(
        "TypeScript SDK 2", "peers/ts_server.mjs", "ts2", ("2",), client="peers/ts_client.mjs"
    ),
    "pipe": Target("floor: bytes only", "peers/floor.py", words=("pipe",), modes=(), is_floor=True),
    "inline": Target(
        "floor: trio, msgspec",
        "peers/floor.py",
        words=("inline",),
        modes=(),
        client="peers/floor_client.py",
        is_floor=True,
        imports="import trio, msgspec",
    ),
    "task": Target(
        "floor: a task a call", "peers/floor.py", words=("task",), modes=(), is_floor=True
    ),
    "h11": Target("floor: trio, h11", "peers/floor.py", words=("h11",), stdio=False, is_floor=True),
}


class Programs:
    """The targets that can be started here.

    Args:
        peers: the directory that `peers/prepare.py` has made. None for the peers that this Python
            has itself, which is the official SDK with `pip install '.[test]'`.
    """

    def __init__(self, peers: Path | None) -> None:
        self._peers = peers

    def names(self) -> list[str]:
        """Return the names of the targets, in the table's order."""
        return [name for name, target in TARGETS.items() if self._has(target.environment)]

    def server(self, name: str, *words: str) -> list[str]:
        """Return the command of a server. `words` are `stdio` or `http` and options."""
        target = TARGETS[name]
        return [*self._start(target.environment, target.script, target.words), *words]

    def client(self, name: str, *words: str) -> list[str]:
        """Return the command of a client. `words` are its own."""
        target = TARGETS[name]
        # The word before those of a TypeScript program says which SDK it uses.
        before = target.words if target.environment in _NODE else ()
        return [*self._start(target.environment, target.client, before), *words]

    def python(self, name: str) -> str:
        """Return the Python of a target."""
        return self._interpreter(TARGETS[name].environment)[0]

    def versions(self) -> dict[str, str]:
        """Return the version of each package that a peer needs, as it is installed."""
        found: dict[str, str] = {}
        for environment in ENVIRONMENTS:
            if self._peers is not None and is_ready(self._peers, environment):
                found |= installed(self._peers, environment)
        return found

    def _has(self, environment: str) -> bool:
        if not environment:
            return True
        if self._peers is not None:
            return is_ready(self._peers, environment)
        return environment not in _NODE and importlib.util.find_spec(environment) is not None

    def _interpreter(self, environment: str) -> list[str]:
        if not environment or self._peers is None:
            return [sys.executable]
        return ENVIRONMENTS[environment].program(self._peers / environment)

    def _start(self, environment: str, script: str, words: tuple[str, ...]) -> list[str]:
        start = [*self._interpreter(environment), str(HERE / script), *words]
        if environment in _NODE:
            assert self._peers is not None
            start.append(str(self._peers / environment / "node_modules"))
        return start


_NODE: Final = [name for name, environment in ENVIRONMENTS.items() if environment.node]
