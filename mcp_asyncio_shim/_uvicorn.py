"""Serve over HTTP with uvicorn, for `python -m mcp_asyncio_shim --http`."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import uvicorn

from mcp_core import escape_text
from mcp_core.adapters import LastDeadline, listening_sockets
from mcp_core.http import served_authority, warning_without_hosts
from mcp_core.runtime import LAST_GRACE, SHUTDOWN_GRACE

from ._asgi import AsgiApp
from ._runtime import logger

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import FrameType

    from mcp_core.adapters import HttpRunOptions, Recording
    from mcp_core.registry import Server

    from ._asgi import Receive, Send

__all__ = ["CannotServe", "serve_http"]

_STARTUP_FAILURE: Final = 3  # uvicorn's exit status
# As for `serve_http` of mcp_trio: more than one process serves well. Each costs a descriptor.
_MAX_CONNECTIONS: Final = 2_000
_LAST_OUTPUT: Final = 1  # seconds for clients to read the last output


class CannotServe(Exception):
    """This process cannot listen on the address. The text has the cause, then the cure."""


def serve_http(server: Server, http: HttpRunOptions, recording: Recording | None) -> bool:
    """Serve until a signal arrives. Return False if the server's lifespan failed at its start.

    Raises:
        CannotServe: it cannot listen on the address.
        KeyboardInterrupt: Ctrl+C ended it.
        SystemExit: SIGTERM ended it, with status 143.
    """
    app = AsgiApp(server, http.path, http.endpoint_options(), http.auth(), recording)
    config = uvicorn.Config(
        _AccessLog(app),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # it would trust a header from any process of this machine
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=2 * _LAST_OUTPUT,
        lifespan="on",
    )
    with ExitStack() as opened:
        sockets = _open_sockets(http)
        for each in sockets:
            opened.enter_context(each)
        if not http.hosts:
            warning = warning_without_hosts((each.getsockname()[0] for each in sockets), http.host)
            if warning is not None:
                logger.warning("%s", warning)
        deadline = opened.enter_context(LastDeadline(server.info.name))
        # uvicorn raises the signal again when it has ended.
        opened.callback(signal.signal, signal.SIGTERM, signal.signal(signal.SIGTERM, _exit))
        greet = partial(_greet, server.info.name, http, sockets)
        running = _UvicornServer(config, app, greet, deadline)
        try:
            asyncio.run(running.serve(sockets))
        except SystemExit as exc:
            if running.started or exc.code != _STARTUP_FAILURE:
                raise
            return False
        finally:
            deadline.lifespan_ended()
    return True


def _open_sockets(http: HttpRunOptions) -> list[socket.socket]:
    if http.fds:
        import socket

        return [socket.socket(fileno=fd) for fd in http.fds]
    try:
        return listening_sockets(http.host, http.port)
    except OSError as exc:
        raise CannotServe(exc.strerror) from exc


def _exit(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _greet(name: str, http: HttpRunOptions, sockets: list[socket.socket]) -> None:
    host, port = sockets[0].getsockname()[:2]
    base = f"http://{served_authority((host, port), http.host)}"
    _say(f"Serving {name} at {base}{http.path} (Ctrl+C ends it)")
    if http.sse_path is not None:
        _say(f"Clients of HTTP+SSE connect to {base}{http.sse_path}")


def _say(text: str) -> None:
    sys.stderr.write(f"{escape_text(text)}\n")  # the end of the line flushes


class _UvicornServer(uvicorn.Server):
    """uvicorn's server. `on_started` is called once it accepts connections.

    uvicorn tells an application of the end after its connections have ended, and a stream that a
    client keeps open doesn't end. So the application shuts down first, as on trio.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        app: AsgiApp,
        on_started: Callable[[], None],
        deadline: LastDeadline,
    ) -> None:
        super().__init__(config)
        self._app = app
        self._on_started = on_started
        self._deadline = deadline

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_started()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        await self._app._shut_down()
        # Otherwise uvicorn cancels such a request, and writes its traceback to the log.
        slow = asyncio.get_running_loop().call_later(_LAST_OUTPUT, self._disconnect)
        try:
            await super().shutdown(sockets)
        finally:
            slow.cancel()

    def _disconnect(self) -> None:
        """Disconnect clients that don't read their response, or don't complete their request."""
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:  # the second kills, as on trio
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        cause = signal.Signals(sig).name
        self._deadline.begin(SHUTDOWN_GRACE + LAST_GRACE, cause, 128 + sig)
        super().handle_exit(sig, frame)


class _AccessLog:
    """An ASGI application that writes one line to stderr for each exchange, when it has ended.

    The line has the path without its query, and no headers: it has no secrets.
    """

    def __init__(self, app: AsgiApp) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        status = "disconnected"

        async def send_and_note(message: Any) -> None:
            nonlocal status
            if message["type"] == "websocket.accept":
                status = "101"
            elif message["type"].endswith("http.response.start"):  # also a refused WebSocket's
                status = str(message["status"])
            await send(message)

        began = time.perf_counter()
        try:
            await self._app(scope, receive, send_and_note)
        finally:
            ended = time.strftime("%H:%M:%S")
            seconds = time.perf_counter() - began
            method, path = scope.get("method", "GET"), scope["raw_path"].decode("latin-1")
            _say(f"{ended} {method} {path} {status} {seconds * 1000:.0f} ms")
