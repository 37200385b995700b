"""A user logs in: a browser is shown a page, and comes back to a port of this machine.

Rules of this file:

1. The URL was judged by the core before it comes here, and goes to the browser as one word, without a shell.
2. We listen on loopback only, and only while somebody logs in. Everybody on this machine can reach that port, and every page in a
   browser: what is no answer to this login is told so, and the waiting goes on.
3. What the browser brings is a secret: it is in no log, and the page that it is shown names nothing of it.
"""

from __future__ import annotations

import sys
import webbrowser
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import h11
import trio

from mcp_core import AuthRequired
from mcp_core.auth import AuthorizationFailed, answers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcp_core.auth import Browse

__all__ = ["Loopback"]

_LONGEST: Final = 300.0  # seconds until somebody has found his password, or has gone away
_REQUEST: Final = 5.0
_LONGEST_HEAD: Final = 32_768
_AT_ONCE: Final = 16
_HEADERS: Final = [
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"connection", b"close"),
]
_DONE: Final = b"<!doctype html><title>mcp-trio</title><p>Thank you: you can close this page and go back to the program.</p>"
_OTHER: Final = b"<!doctype html><title>mcp-trio</title><p>Nobody has asked for this page.</p>"


async def _open_page(url: str) -> None:
    """Show a page in the user's browser.

    Raises:
        AuthRequired: there is none.
    """
    try:
        opened = await trio.to_thread.run_sync(webbrowser.open, url, abandon_on_cancel=True)
    except webbrowser.Error:
        opened = False
    if not opened:
        raise AuthRequired(
            "a user has to log in, and no browser can be opened here. Connect with a Login whose browse shows the page, or log in"
            " with `mcp-trio login` where there is a browser."
        )


class Loopback:
    """Listens at one redirect URI of this machine."""

    def __init__(
        self, redirect_uri: str, listeners: list[trio.SocketListener], show: Callable[[str], object]
    ) -> None:
        self.redirect_uri = redirect_uri
        self._listeners = listeners
        self._show = show

    @classmethod
    @asynccontextmanager
    async def at(
        cls, redirect_uri: str, *, any_port: bool, show: Callable[[str], object] = lambda url: None
    ) -> AsyncIterator[Loopback]:
        """Listen for the time of a block; at another port if that one is taken and `any_port` will do. `show` is told each page before
        it is opened.

        Raises:
            AuthorizationFailed: it cannot be listened there.
        """
        parts = urlsplit(redirect_uri)
        host, port = parts.hostname or "", parts.port
        if parts.scheme != "http" or port is None:
            raise AuthorizationFailed(
                f"the browser would come back to {redirect_uri}, which is not a port of this machine: connect with a Login whose"
                " browse knows how to get that"
            )
        try:
            sockets = await _bound(host, port)
        except OSError as exc:
            if not any_port or not port:
                raise AuthorizationFailed(
                    f"the browser would come back to {redirect_uri}, and nobody can listen there ({exc.strerror}); is another"
                    " program doing that?"
                ) from exc
            sockets = await _bound(host, 0)
        port = sockets[0].getsockname()[1]
        shown = f"[{host}]" if ":" in host else host
        listeners = [trio.SocketListener(each) for each in sockets]
        try:
            yield cls(parts._replace(netloc=f"{shown}:{port}").geturl(), listeners, show)
        finally:
            for each in sockets:
                each.close()

    async def answer(self, step: Browse) -> str:
        """Open the page and wait for the browser to come back.

        Raises:
            AuthRequired: there is no browser.
            AuthorizationFailed: it did not come back.
        """
        found: list[str] = []
        problem: AuthRequired | None = None
        limit = trio.CapacityLimiter(_AT_ONCE)
        with trio.move_on_after(_LONGEST):
            async with trio.open_nursery() as nursery:

                async def serve(stream: trio.SocketStream) -> None:
                    async with limit, stream:
                        with trio.move_on_after(_REQUEST):
                            callback = await self._asked(stream, step)
                            if callback is not None and not found:
                                found.append(callback)
                    if found:
                        nursery.cancel_scope.cancel()

                async def accept(listener: trio.SocketListener) -> None:
                    while True:
                        nursery.start_soon(serve, await listener.accept())

                for listener in self._listeners:
                    nursery.start_soon(accept, listener)
                self._show(step.url)
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
            f"nobody came back from the login page within {_LONGEST:g} s. Log in again."
        )

    async def _asked(self, stream: trio.SocketStream, step: Browse) -> str | None:
        """Answer one request; gives the URL that was asked for if it is what we wait for."""
        http = h11.Connection(h11.SERVER, max_incomplete_event_size=_LONGEST_HEAD)
        try:
            while (event := http.next_event()) is h11.NEED_DATA:
                http.receive_data(bytes(await stream.receive_some(4096)))
            if type(event) is not h11.Request:
                return None
            callback = self._callback(event)
            good = callback is not None and answers(step, callback)
            head = h11.Response(status_code=200 if good else 404, headers=_HEADERS)
            said = [head, h11.Data(data=_DONE if good else _OTHER), h11.EndOfMessage()]
            data = b"".join(http.send(each) or b"" for each in said)
        except (h11.RemoteProtocolError, h11.LocalProtocolError, trio.BrokenResourceError):
            return None
        try:
            await stream.send_all(data)
            await stream.send_eof()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # what it brought counts all the same
        return callback if good else None

    def _callback(self, request: h11.Request) -> str | None:
        target = bytes(request.target).decode("latin-1")
        ours = urlsplit(self.redirect_uri)
        if request.method != b"GET" or target.partition("?")[0] != (ours.path or "/"):
            return None
        return f"{ours.scheme}://{ours.netloc}{target}"


async def _bound(host: str, port: int) -> list[trio.socket.SocketType]:
    """Sockets that listen at a host of this machine; for `localhost` in both families if there are both.

    Raises:
        OSError: they cannot.
    """
    addresses = ["127.0.0.1", "::1"] if host == "localhost" else [host]
    sockets: list[trio.socket.SocketType] = []
    for address in addresses:
        family = trio.socket.AF_INET6 if ":" in address else trio.socket.AF_INET
        socket = trio.socket.socket(family, trio.socket.SOCK_STREAM)
        try:
            if sys.platform != "win32":  # there it would let others listen at the same port
                socket.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_REUSEADDR, 1)
            await socket.bind((address, port))
            socket.listen(_AT_ONCE)
        except OSError:
            socket.close()
            if not sockets:
                raise
            continue  # the other family is enough
        port = socket.getsockname()[1]
        sockets.append(socket)
    return sockets
