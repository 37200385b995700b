"""Open the login page in a browser, and receive its redirect on a loopback port (RFC 8252).

1. `LoopbackLogin` in the core has checked the login URL, and answers every request. The browser is
   started without a shell. Its argument is a start page, which redirects to the login URL: other
   users of the machine can see a process's arguments.
2. On Linux the port serves the start page, but only to programs of this user. Other POSIX systems
   don't tell whose program connects. There the start page is a file that only the user can read.
   On Windows other users cannot see the arguments.
3. The port is open on loopback only, and only during a login. Still, every program on this machine
   and every web page can reach it. A request that isn't the redirect gets a 404, and the login goes
   on. At the limit of connections the oldest one is closed, so idle connections block nothing.
4. The redirect URL contains a secret. It is neither logged nor shown in the final page. Any other
   request is logged without its contents.
"""

from __future__ import annotations

import errno
import logging
import os
import webbrowser
from collections import deque
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import h11
import trio

from mcp_core import AuthRequired
from mcp_core.auth import AuthorizationFailed, LoopbackLogin
from mcp_core.http import Body, End, Head
from mcp_trio._listeners import PatientListener
from mcp_trio._simple_http import SimpleHttpConnection, SimpleHttpLimits, UnreadableRequest

from ._peer_user import can_find_users, is_same_user

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp_core.auth import Browse, HttpResponse
    from mcp_core.http import RequestHead

__all__ = ["LoopbackListener"]

_log = logging.getLogger("mcp_trio")

_LOGIN_TIMEOUT: Final = 300.0  # seconds for the user to log in
_REQUEST_TIMEOUT: Final = 5.0  # seconds for a connection, with its request and response
_LIMITS: Final = SimpleHttpLimits(
    head=32 * 1024, head_seconds=_REQUEST_TIMEOUT, write_seconds=_REQUEST_TIMEOUT
)
_MAX_CONNECTIONS: Final = 16
_PORT_ATTEMPTS: Final = 3  # random ports to try if the given one is in use
_NOT_FOUND: Final = 404


@contextmanager
def _start_page(login: LoopbackLogin, listener: trio.SocketListener) -> Iterator[str]:
    """Yield the start page's URL: on our port, or of a temporary file (rule 2)."""
    if os.name != "posix" or can_find_users(listener.socket):
        yield login.start_url
        return
    with TemporaryDirectory(prefix="mcp-trio-") as directory:  # created with mode 0700
        page = Path(directory) / "login.html"
        page.touch(mode=0o600)
        page.write_text(login.start_page(), encoding="utf-8")
        yield page.as_uri()


async def _open_page(url: str) -> None:
    """Open `url` in the user's browser.

    Raises:
        AuthRequired: there is no browser, or it doesn't start.
    """
    try:
        opened = await trio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        raise AuthRequired(
            "a user has to log in, and no browser can be opened here. Connect with a LoginConfig"
            " whose browse shows the page, or log in"
            " with `mcp-trio login` where there is a browser."
        )


class LoopbackListener:
    """A listener for one login's redirect.

    Await `open`, then `wait_for_redirect`. At the end call `close`.
    """

    def __init__(self, redirect_uri: str, listeners: list[trio.SocketListener]) -> None:
        self.redirect_uri = redirect_uri
        self._listeners = listeners

    def __repr__(self) -> str:
        return f"<LoopbackListener at {self.redirect_uri}>"

    @classmethod
    async def open(cls, redirect_uri: str, *, any_port: bool = False) -> LoopbackListener:
        """Listen at `redirect_uri`.

        With `any_port`, another port is used if the given one is 0 or in use. The attribute
        `redirect_uri` has the actual port.

        Raises:
            AuthorizationFailed: this program cannot listen there.
        """
        parts = urlsplit(redirect_uri)
        host = parts.hostname or ""
        port = parts.port
        if parts.scheme != "http" or port is None:
            raise AuthorizationFailed(
                f"the redirect URI {redirect_uri} is not a port of this machine: connect with"
                " a LoginConfig"
                " whose browse returns the URL of the redirect"
            )
        problem: OSError | None = None
        ports = [port]
        if any_port:
            ports += [0] * _PORT_ATTEMPTS
        for each in ports:
            try:
                listeners = await _open_listeners(host, each)
            except OSError as exc:
                problem = exc
                continue
            bracketed = f"[{host}]" if ":" in host else host
            netloc = f"{bracketed}:{listeners[0].socket.getsockname()[1]}"
            return cls(parts._replace(netloc=netloc).geturl(), listeners)
        assert problem is not None
        raise AuthorizationFailed(
            f"cannot listen at the redirect URI {redirect_uri} ({problem.strerror}); is"
            " another program listening there?"
        ) from problem

    def close(self) -> None:
        """Stop listening."""
        for listener in self._listeners:
            listener.socket.close()

    async def wait_for_redirect(self, step: Browse, *, open_browser: bool = True) -> str:
        """Open the login page, wait for its redirect, and return the whole redirect URL.

        If `open_browser` is False, the caller shows the page to the user.

        Raises:
            AuthRequired: no browser could be opened.
            AuthorizationFailed: no redirect came within five minutes, or listening failed.
        """
        login = LoopbackLogin(step, os.urandom)
        problem: AuthRequired | AuthorizationFailed | None = None
        serving: deque[trio.CancelScope] = deque()  # one scope per open connection, oldest first
        with trio.move_on_after(_LOGIN_TIMEOUT):
            async with trio.open_nursery() as nursery:

                async def serve(stream: trio.SocketStream, scope: trio.CancelScope) -> None:
                    is_redirect = False
                    async with stream:
                        with scope:
                            connection = SimpleHttpConnection(stream, _LIMITS)
                            head = await _read_head(connection)
                            response, is_redirect = await _respond(stream, head, login)
                            await _send_response(connection, response)
                    if scope in serving:
                        serving.remove(scope)
                    if is_redirect:
                        nursery.cancel_scope.cancel()

                async def accept(listener: PatientListener[trio.SocketStream]) -> None:
                    nonlocal problem
                    while True:
                        try:
                            stream = await listener.accept()
                        except OSError as exc:
                            problem = AuthorizationFailed(
                                f"listening for the redirect failed ({exc.strerror})"
                            )
                            nursery.cancel_scope.cancel()
                            return
                        if len(serving) == _MAX_CONNECTIONS:
                            serving.popleft().cancel()
                        serving.append(trio.move_on_after(_REQUEST_TIMEOUT))
                        nursery.start_soon(serve, stream, serving[-1])

                for listener in self._listeners:
                    nursery.start_soon(accept, PatientListener(listener))
                if open_browser:
                    with _start_page(login, self._listeners[0]) as url:
                        try:
                            await _open_page(url)
                        except AuthRequired as exc:
                            problem = exc
                            nursery.cancel_scope.cancel()
                        # Keep the file: the browser may not have read it yet.
                        await trio.sleep_forever()
        if login.callback is not None:
            return login.callback
        if problem is not None:
            raise problem
        raise AuthorizationFailed(
            f"the browser did not return from the login page within {_LOGIN_TIMEOUT:g} s. Log"
            " in again."
        )


async def _read_head(connection: SimpleHttpConnection) -> RequestHead | None:
    """Read a request's head. Return None if it is invalid or doesn't arrive."""
    try:
        return await connection.next_head()
    except UnreadableRequest:
        return None


async def _respond(
    stream: trio.SocketStream, head: RequestHead | None, login: LoopbackLogin
) -> tuple[HttpResponse | None, bool]:
    """Return the response, and True if the request was the redirect. Log any other request."""
    response: HttpResponse | None = None
    is_redirect = False
    if head is not None:
        target = head.target.decode("latin-1")
        if login.is_start(target) and not await trio.to_thread.run_sync(
            is_same_user, stream.socket
        ):
            _log.warning("a program of another user requested the start page of a login")
            return login.not_found(), False
        waiting = login.callback is None
        response = login.respond(head.method.decode("latin-1"), target)
        is_redirect = waiting and login.callback is not None
    if response is None or response.status == _NOT_FOUND:
        _log.info("a request to the redirect URI was not the redirect of the current login")
    return response, is_redirect


async def _send_response(connection: SimpleHttpConnection, response: HttpResponse | None) -> None:
    """Send a response, if there is one. A login succeeds even if its response doesn't arrive."""
    if response is None:
        return
    headers = [(name.encode(), value.encode()) for name, value in response.headers]
    with suppress(h11.LocalProtocolError, trio.BrokenResourceError, trio.ClosedResourceError):
        await connection.send(Head(response.status, headers), Body(response.body), End())


async def _open_listeners(host: str, port: int) -> list[trio.SocketListener]:
    """Listen at a local host. `localhost` means IPv4 and IPv6, if the machine has both.

    Raises:
        OSError: listening failed, or another program listens on the port, with IPv4 or IPv6. The
            browser might connect to that program.
    """
    found: list[trio.SocketListener] = []
    for address in ("127.0.0.1", "::1") if host == "localhost" else (host,):
        try:
            found += await trio.open_tcp_listeners(port, host=address, backlog=_MAX_CONNECTIONS)
        except OSError as exc:
            if found and exc.errno != errno.EADDRINUSE:
                continue
            for listener in found:
                listener.socket.close()
            raise
        port = found[0].socket.getsockname()[1]
    return found
