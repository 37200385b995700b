"""A command that starts a client, and how the client reaches the case's server.

- `{server}` in the command is replaced by the command line of a relay, which the client starts as
  its server. `{server}` as a word of its own becomes several words. Inside a word, such as
  `--server={server}`, it becomes one text that a shell can split.
- `{url}` is replaced by a URL on 127.0.0.1, where the server speaks Streamable HTTP.
- Without either the client speaks on its own stdin and stdout.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from mcp_core import ConnectFailed
from mcp_core.drivers import launch_secrets
from mcp_core.trace import Redactor
from mcp_trio.oracle.fuzz._shared_trace import new_header
from mcp_trio.streams._child import Grace, spawn

from ._client_session import ClientSession
from ._http import HttpServerLink
from ._lines import LineConversation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from mcp_core.adapters import Recorder
    from mcp_core.trace import TraceHeader
    from mcp_trio.streams._child import ChildProcess

__all__ = ["ClientTarget"]

RELAY: Final = Path(__file__).with_name("_relay.py")
TOKEN_TIMEOUT: Final = 10.0  # seconds for the first line of a relay
MAX_CONNECTIONS: Final = 20  # connections of the relay in one case; more are refused


class ClientTarget:
    """A command that starts a client.

    Args:
        command: the program and its arguments, with `{server}` or `{url}`.
        env, inherit_env, cwd: as for `mcp_trio.connect_stdio`.

    Attributes:
        name: the command as one text.
        way: how the client reaches the server: relay, http or pipes.
    """

    kind = "client"

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        inherit_env: bool = False,
        cwd: str | None = None,
    ) -> None:
        self.command = tuple(command)
        self.name = shlex.join(command)
        inherited = os.environ if inherit_env else None
        self.secrets = launch_secrets(self.command, env=env, inherited=inherited)
        redactor = Redactor(secrets.token_bytes(32), secrets=self.secrets)
        self._shown = shlex.join(redactor.redact_command(self.command))
        self.recorder: Recorder | None = None
        self.way = "pipes"
        for mark, way in (("{url}", "http"), ("{server}", "relay")):
            if any(mark in word for word in self.command):
                self.way = way
        self._env, self._inherit_env, self._cwd = env, inherit_env, cwd

    def header(self) -> TraceHeader:
        """Return the header of a trace of this target."""
        transport = "http" if self.way == "http" else "stdio"
        return new_header("server", transport, self._shown)

    async def open(self, *, keep: bool = False) -> ClientSession:
        """Return a session. Its process starts when a case is played."""
        session = ClientSession(self.header(), keep=keep)
        if self.recorder is not None:
            session.recording = self.recorder.lines()
        session.start = partial(self.start, session)
        return session

    @asynccontextmanager
    async def start(self, session: ClientSession, timeout: float) -> AsyncIterator[ChildProcess]:
        """Start the client for `session`, and stop it after the block.

        Args:
            session: its session.
            timeout: seconds for the response to a ping.

        Raises:
            ConnectFailed: the program cannot be started.
        """
        failure: ConnectFailed | None = None
        async with trio.open_nursery() as nursery:
            command = await self._prepare(session, timeout, nursery)
            try:
                async with spawn(
                    command,
                    env=self._env,
                    inherit_env=self._inherit_env,
                    cwd=self._cwd,
                    stderr="discard",
                    grace=Grace(0.0, 0.0),
                ) as child:
                    if self.way == "pipes":
                        link = LineConversation(session, child.stream, timeout)
                        nursery.start_soon(link.run)
                    else:
                        await child.stream.send_stream.aclose()
                        nursery.start_soon(_discard, child)
                    yield child
                session.stderr = child.stderr_tail
            except ConnectFailed as exc:  # the nursery would wrap it
                failure = exc
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _prepare(
        self, session: ClientSession, timeout: float, nursery: trio.Nursery
    ) -> list[str]:
        """Open what the client connects to, and return its command."""
        if self.way == "http":
            server = HttpServerLink(session, timeout)
            session.links.add(server)
            port = await nursery.start(server.serve)
            return [word.replace("{url}", f"http://127.0.0.1:{port}/mcp") for word in self.command]
        if self.way == "pipes":
            return list(self.command)
        token = secrets.token_hex(16)
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        accept = partial(_accept, session, token, timeout)
        nursery.start_soon(partial(trio.serve_listeners, accept, listeners))
        return fill_server(self.command, relay_command(port, token))


def relay_command(port: int, token: str) -> list[str]:
    """Return the command of a relay to a port on 127.0.0.1."""
    return [sys.executable, "-I", "-S", str(RELAY), str(port), token]


def fill_server(command: Sequence[str], relay: Sequence[str]) -> list[str]:
    """Return a command with `{server}` replaced."""
    found: list[str] = []
    for word in command:
        if word == "{server}":
            found += relay
        else:
            found.append(word.replace("{server}", shlex.join(relay)))
    return found


async def _accept(
    session: ClientSession, token: str, timeout: float, stream: trio.SocketStream
) -> None:
    async with stream:
        with trio.move_on_after(TOKEN_TIMEOUT) as reading:
            first = await _read_line(stream)
        if reading.cancelled_caught or not secrets.compare_digest(first, token.encode()):
            return
        session.last_activity = trio.current_time()
        session.connections += 1
        if not session.is_closed and session.connections <= MAX_CONNECTIONS:
            await LineConversation(session, stream, timeout).run()


async def _read_line(stream: trio.SocketStream) -> bytes:
    found = b""
    while len(found) < 100:
        try:
            data = await stream.receive_some(1)
        except trio.BrokenResourceError:
            break
        if data in (b"", b"\n"):
            break
        found += data
    return found


async def _discard(child: ChildProcess) -> None:
    while True:
        try:
            if not await child.stream.receive_some():
                return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return
