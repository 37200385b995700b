"""A user logs in: a browser is shown a page, and comes back to a port of this machine.

Rules of this file:

1. The URL was judged by the core before it comes here, and goes to the browser as one word, without a shell.
2. We listen on loopback only, and only while somebody logs in. Everybody on this machine can reach that port, and every page in a
   browser: what is no answer to this login is told so, and the waiting goes on. Of many connections the newest count: whoever
   only holds them keeps nobody out.
3. What the browser brings is a secret: it is in no log, and the page that it is shown names nothing of it. That something came
   which is no answer is told to the log.
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
from mcp_core.auth import AuthorizationFailed, answers

if TYPE_CHECKING:
    from mcp_core.auth import Browse

__all__ = ["Loopback"]

_log = logging.getLogger("mcp_trio")

_LONGEST: Final = 300.0  # seconds until somebody has found his password, or has gone away
_REQUEST: Final = 5.0
_LONGEST_HEAD: Final = 32_768
_AT_ONCE: Final = 16
_PORTS: Final = 3  # that are tried, if any will do
# The system has no more files for us. That passes.
_FULL: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_FULL_FOR: Final = 0.1
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
    except (webbrowser.Error, OSError):
        opened = False
    if not opened:
        raise AuthRequired(
            "a user has to log in, and no browser can be opened here. Connect with a Login whose browse shows the page, or log in"
            " with `mcp-trio login` where there is a browser."
        )


class Loopback:
    """Listens at one redirect URI of this machine, until `close`."""

    def __init__(self, redirect_uri: str, listeners: list[trio.SocketListener]) -> None:
        self.redirect_uri = redirect_uri
        self._listeners = listeners

    def __repr__(self) -> str:
        return f"<Loopback at {self.redirect_uri}>"

    @classmethod
    async def open(cls, redirect_uri: str, *, any_port: bool = False) -> Loopback:
        """Listen at `redirect_uri`; at another port if that one is taken, or 0, and `any_port` will do.

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
        problem: OSError | None = None
        for each in (port, *[0] * _PORTS) if any_port else (port,):
            try:
                listeners = await _listeners(host, each)
            except OSError as exc:
                problem = exc
                continue
            shown = f"[{host}]" if ":" in host else host
            place = f"{shown}:{listeners[0].socket.getsockname()[1]}"
            return cls(parts._replace(netloc=place).geturl(), listeners)
        assert problem is not None
        raise AuthorizationFailed(
            f"the browser would come back to {redirect_uri}, and nobody can listen there ({problem.strerror}); is another program"
            " doing that?"
        ) from problem

    def close(self) -> None:
        for listener in self._listeners:
            listener.socket.close()

    async def answer(self, step: Browse) -> str:
        """Open the page and wait for the browser to come back.

        Raises:
            AuthRequired: there is no browser.
            AuthorizationFailed: it did not come back, or cannot.
        """
        found: list[str] = []
        problem: AuthRequired | AuthorizationFailed | None = None
        serving: deque[trio.CancelScope] = deque()
        with trio.move_on_after(_LONGEST):
            async with trio.open_nursery() as nursery:

                async def serve(stream: trio.SocketStream, scope: trio.CancelScope) -> None:
                    callback: str | None = None
                    async with stream:
                        with scope:
                            callback = await self._asked(stream, step)
                    if callback is None:
                        _log.info("what came to the redirect URI was no answer to the login under way")
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
                            stream = await _accepted(listener)
                        except OSError as exc:
                            problem = AuthorizationFailed(f"nobody can wait for the browser ({exc.strerror})")
                            nursery.cancel_scope.cancel()
                            return
                        if len(serving) == _AT_ONCE:
                            serving.popleft().cancel()
                        serving.append(trio.move_on_after(_REQUEST))
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
            body = b"" if event.method == b"HEAD" else _DONE if good else _OTHER
            said = [head, h11.Data(data=body), h11.EndOfMessage()]
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


async def _accepted(listener: trio.SocketListener) -> trio.SocketStream:
    while True:
        try:
            return await listener.accept()
        except OSError as exc:
            if exc.errno not in _FULL:
                raise
            await trio.sleep(_FULL_FOR)


async def _listeners(host: str, port: int) -> list[trio.SocketListener]:
    """Who listens at a host of this machine; at `localhost` in both families, as far as the machine has them.

    Raises:
        OSError: nobody can, or somebody else does in one of them: the browser might go there.
    """
    found: list[trio.SocketListener] = []
    for address in ("127.0.0.1", "::1") if host == "localhost" else (host,):
        try:
            found += await trio.open_tcp_listeners(port, host=address, backlog=_AT_ONCE)
        except OSError as exc:
            if found and exc.errno != errno.EADDRINUSE:
                continue
            for listener in found:
                listener.socket.close()
            raise
        port = found[0].socket.getsockname()[1]
    return found
