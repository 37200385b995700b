"""Open the login page in a browser, and receive its redirect on a loopback port (RFC 8252).

1. The core has checked the URL. It is passed to the browser as one argument, without a shell.
2. The port is open on loopback only, and only during a login. Every program on this machine, and
   every page in a browser, can reach it: a request that is not the redirect gets a 404, and the
   waiting continues. At the limit of connections the oldest is closed, so that idle ones block
   nothing.
3. The redirect URL contains a secret: it is not logged, and the page shown afterwards has nothing
   of it. A request that is not the redirect is logged, without its contents.
"""

from __future__ import annotations

import errno
import logging
import webbrowser
from collections import deque
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import h11
import trio

from mcp_core import AuthRequired
from mcp_core.auth import AuthorizationFailed, is_callback_for

if TYPE_CHECKING:
    from mcp_core.auth import Browse

__all__ = ["LoopbackListener"]

_log = logging.getLogger("mcp_trio")

_LOGIN_TIMEOUT: Final = 300.0  # seconds for the user to log in
_REQUEST_TIMEOUT: Final = 5.0  # seconds
_MAX_HEAD: Final = 32_768  # bytes
_MAX_CONNECTIONS: Final = 16
_PORT_ATTEMPTS: Final = 3  # random ports that are tried, if any port will do
# Temporary: the process or the system has no free file descriptor or memory.
_RESOURCE_ERRORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_ACCEPT_RETRY_DELAY: Final = 0.1  # seconds
_HEADERS: Final = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"connection", b"close"),
]
_DONE: Final = (
    b"<!doctype html><title>mcp-trio</title><p>Thank you: you can close this page and go back to"
    b" the program.</p>"
)
_NOT_FOUND: Final = (
    b"<!doctype html><title>mcp-trio</title><p>This page belongs to no login in progress.</p>"
)


async def _open_page(url: str) -> None:
    """Open `url` in the user's browser.

    Raises:
        AuthRequired: no browser could be opened.
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
    """A listener for the redirect of one login.

    Await `open`, then `wait_for_redirect`, and call `close`.
    """

    def __init__(self, redirect_uri: str, listeners: list[trio.SocketListener]) -> None:
        self.redirect_uri = redirect_uri
        self._listeners = listeners

    def __repr__(self) -> str:
        return f"<LoopbackListener at {self.redirect_uri}>"

    @classmethod
    async def open(cls, redirect_uri: str, *, any_port: bool = False) -> LoopbackListener:
        """Listen at `redirect_uri`.

        With `any_port`, another port may be taken instead: if the given one is in use, or is 0. The
        attribute `redirect_uri` has the actual port.

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

    async def wait_for_redirect(self, step: Browse) -> str:
        """Open the login page, wait for its redirect, and return the complete redirect URL.

        Raises:
            AuthRequired: no browser could be opened.
            AuthorizationFailed: there was no redirect within five minutes, or listening failed.
        """
        found: list[str] = []
        problem: AuthRequired | AuthorizationFailed | None = None
        serving: deque[trio.CancelScope] = deque()  # one scope per open connection, oldest first
        with trio.move_on_after(_LOGIN_TIMEOUT):
            async with trio.open_nursery() as nursery:

                async def serve(stream: trio.SocketStream, scope: trio.CancelScope) -> None:
                    callback: str | None = None
                    async with stream:
                        with scope:
                            callback = await self._handle_request(stream, step)
                    if callback is None:
                        _log.info(
                            "a request to the redirect URI was not the redirect of the current"
                            " login"
                        )
                    elif not found:
                        found.append(callback)
                    if scope in serving:
                        serving.remove(scope)
                    if found:
                        nursery.cancel_scope.cancel()

                async def accept(listener: trio.SocketListener) -> None:
                    nonlocal problem
                    while True:
                        try:
                            stream = await _accept(listener)
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
                    nursery.start_soon(accept, listener)
                try:
                    await _open_page(step.url)
                except AuthRequired as exc:
                    problem = exc
                    nursery.cancel_scope.cancel()
        if found:
            return found[0]
        if problem is not None:
            raise problem
        raise AuthorizationFailed(
            f"the browser did not return from the login page within {_LOGIN_TIMEOUT:g} s. Log"
            " in again."
        )

    async def _handle_request(self, stream: trio.SocketStream, step: Browse) -> str | None:
        """Answer one request. Return its URL if it is the redirect of this login, else None."""
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_MAX_HEAD)
        try:
            while (event := http.next_event()) is h11.NEED_DATA:
                http.receive_data(bytes(await stream.receive_some(4096)))
            if type(event) is not h11.Request:
                return None
            callback = self._callback_url(event)
            accepted = callback is not None and is_callback_for(step, callback)
            head = h11.Response(status_code=200 if accepted else 404, headers=_HEADERS)
            body = _DONE if accepted else _NOT_FOUND
            if event.method == b"HEAD":
                body = b""
            events = [head, h11.Data(data=body), h11.EndOfMessage()]
            data = b"".join(http.send(each) or b"" for each in events)
        except (h11.RemoteProtocolError, h11.LocalProtocolError, trio.BrokenResourceError):
            return None
        try:
            await stream.send_all(data)
            await stream.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the redirect is valid even if its response did not arrive
        return callback if accepted else None

    def _callback_url(self, request: h11.Request) -> str | None:
        """Return the complete URL of a request for the redirect URI, or None for any other."""
        target = bytes(request.target).decode("latin-1")
        expected = urlsplit(self.redirect_uri)
        if request.method != b"GET" or target.partition("?")[0] != (expected.path or "/"):
            return None
        return f"{expected.scheme}://{expected.netloc}{target}"


async def _accept(listener: trio.SocketListener) -> trio.SocketStream:
    """Accept one connection. Wait and retry while file descriptors are exhausted."""
    while True:
        try:
            return await listener.accept()
        except OSError as exc:
            if exc.errno not in _RESOURCE_ERRORS:
                raise
            await trio.sleep(_ACCEPT_RETRY_DELAY)


async def _open_listeners(host: str, port: int) -> list[trio.SocketListener]:
    """Listen at a local host: for `localhost` on IPv4 and IPv6, as far as the machine has them.

    Raises:
        OSError: listening failed, or another program listens on the port in one of the families.
            The browser might connect to that program.
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
