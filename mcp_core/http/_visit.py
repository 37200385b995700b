"""One request to an ASGI application, whatever runtime it is on: what is awaited, and in which order.

Rules of this file:

1. Most requests are over when they are read: for them nothing is started. Only while a response lasts somebody hears beside it whether
   the client is still there, or what it says on its WebSocket.
2. Who writes waits for the server to take it, and so nothing is queued without bounds.
3. However it ends, the site hears of it.

What waits is the driver's: it refuses to know tasks. How ASGI spells a request is `_asgi.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ._asgi_socket import asgi_exchange

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping
    from contextlib import AbstractAsyncContextManager

    from ._application import Receive, Send
    from ._bell import Bell
    from ._exchange import Exchange
    from ._site import Site

__all__ = ["Visit"]


class Reception(Protocol):
    """Who receives requests for `site`, in one run of a runtime."""

    @property
    def site(self) -> Site: ...

    def clock(self) -> float:
        """The time now, as the site is told it."""

    def bell(self) -> Bell:
        """Something to wait for."""

    def pump(self) -> None:
        """Something was called: act on what follows, without waiting."""

    def taken(self, exchange: Exchange) -> None:
        """What there was to send of `exchange` was taken, or nobody will; then as `pump`."""

    def judged(self, exchange: Exchange) -> Awaitable[None]:
        """Do what the guard of `exchange` wants, if it wants anything, until it has judged."""

    def beside(self, work: Awaitable[bool]) -> AbstractAsyncContextManager[object]:
        """While it is entered `work` is awaited in a task beside. If that gives True nobody is there: what goes on inside may be
        cancelled. Left, `work` is cancelled and over, and what it raised is raised."""


class Visit:
    """A call of an application with the `scope` of a request, to be awaited once. It is the token of its exchange."""

    __slots__ = ("_asked", "_bell", "_deaf", "_poked", "_receive", "_reception", "_send")

    def __init__(self, reception: Reception, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        self._reception, self._receive, self._send = reception, receive, send
        self._poked = self._deaf = False
        self._bell = reception.bell()
        self._asked = asgi_exchange(reception.site, scope, reception.clock(), token=self)

    def __repr__(self) -> str:
        return f"<Visit by {self._asked!r}>"

    def poke(self) -> None:
        """There is something to send, or something may be received again."""
        bell, self._bell, self._poked = self._bell, self._reception.bell(), True
        bell.set()

    def __await__(self) -> Generator[Any, Any, None]:
        asked, reception = self._asked, self._reception
        try:
            reception.pump()
            yield from reception.judged(asked.exchange).__await__()
            while asked.exchange.reading:
                yield from self._hear()
            yield from self._say()
            if not asked.over:
                yield from self._last()
        finally:
            self._lose()

    def _last(self) -> Generator[Any, Any, None]:
        beside = self._reception.beside(_Hearing(self._hear_out))
        yield from beside.__aenter__().__await__()
        try:
            while not (self._asked.over or self._deaf):
                while not self._poked:
                    yield from self._bell.wait().__await__()
                yield from self._say()
        except BaseException as exc:
            if not (yield from beside.__aexit__(type(exc), exc, exc.__traceback__).__await__()):
                raise
        else:
            yield from beside.__aexit__(None, None, None).__await__()

    def _hear_out(self) -> Generator[Any, Any, bool]:
        asked = self._asked
        try:
            while not asked.over:
                yield from self._hear()
                while asked.paused:
                    yield from self._bell.wait().__await__()
            return asked.gone
        finally:
            self._deaf = True
            self.poke()

    def _hear(self) -> Generator[Any, Any, None]:
        message = yield from self._receive().__await__()
        self._asked.receive(message, self._reception.clock())
        self._reception.pump()

    def _say(self) -> Generator[Any, Any, None]:
        """Send what there is. Whoever has more to say may have to wait until the server has taken it."""
        self._poked = False
        messages = self._asked.messages_to_send(self._reception.clock())
        self._reception.pump()
        try:
            for message in messages:
                if self._asked.gone:
                    break  # he went while we waited, and some servers raise if something is sent then
                yield from self._send(message).__await__()
        except OSError:  # nobody is there
            self._lose()
        self._reception.taken(self._asked.exchange)

    def _lose(self) -> None:
        self._asked.disconnected(self._reception.clock())
        self._reception.pump()
        self._reception.taken(self._asked.exchange)


class _Hearing:
    __slots__ = ("_run",)

    def __init__(self, run: Callable[[], Generator[Any, Any, bool]]) -> None:
        self._run = run

    def __await__(self) -> Generator[Any, Any, bool]:
        return self._run()
