"""A client gets its tokens: the flows of `mcp_core.auth`, run in the world.

Rules of this file:

1. One flow runs at a time. Whoever had to wait runs his own all the same, for the core knows what the other has brought.
2. A flow runs in a task of the client's and not in that of the call that needs it: a call that is given up ends no login. What was
   begun at an authorization server is ended even if the client is: a token that nobody stored would be lost.
3. Nobody is bothered who did not ask for it: without a `browse` no page is shown, and nobody listens.
4. Nothing that a flow says or gets is logged, except its own notes, which are made for that.

What is asked, of whom, and what an answer means is the core's.
"""

from __future__ import annotations

import logging
import os
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import trio

from mcp_core import AuthRequired, McpTrioError
from mcp_core.auth import (
    AuthorizationFailed,
    Authorizer,
    Browse,
    ClientProfile,
    Fetch,
    FetchFailed,
    Load,
    Save,
    answers,
    may_fetch,
    url_fault,
)

from ._fetch import fetch
from ._h11_loopback import Loopback
from ._storage import FileStorage, TokenStorage

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable

    from mcp_core.auth import Attempt, Flow, HttpReply, Step
    from mcp_core.http import AccessAttempt

__all__ = ["Authorization", "Login", "login_of"]

_log = logging.getLogger("mcp_trio")

BROWSER: Final = "browser"


@dataclass(frozen=True, kw_only=True)
class Login:
    """How a client gets its tokens, and where it keeps them.

    Args:
        profile: what authorization servers are told about the client.
        storage: where tokens are kept; by default in files of the user's (`FileStorage`), where `mcp-trio login` keeps them too.
        browse: how a user is asked to log in. `"browser"` opens his browser and listens on loopback for it to come back. A function
            is given the URL of the page, and gives the whole URL to which that has led in the end; `profile.redirect_uri` has to
            say which. None asks nobody: only tokens that are there are used, and renewed.
        show: with `"browser"`, told the URL of each page before it is opened.
    """

    profile: ClientProfile = field(default_factory=ClientProfile)
    storage: TokenStorage = field(default_factory=FileStorage)
    browse: Callable[[str], Awaitable[str]] | str | None = BROWSER
    show: Callable[[str], object] = lambda url: None


def login_of(auth: Login | ClientProfile | bool) -> Login:
    """What the option `auth` means, if it is not False."""
    if isinstance(auth, bool):
        return Login()
    return Login(profile=auth) if isinstance(auth, ClientProfile) else auth


class Authorization:
    """The tokens for the MCP server at `url`. `tls` is whom to trust, as for that. `on_login` is called when a user has logged in, who
    may be another one than before.

    *Resource handling*: what it starts it starts in the nursery of `start`.
    """

    def __init__(self, url: str, login: Login, *, tls: ssl.SSLContext | None = None) -> None:
        self._login = login
        self._tls = tls
        self._authorizer = Authorizer(url, login.profile, entropy=os.urandom, wall_time=time.time)
        self._lock = trio.Lock()
        self._loaded = False
        self._generation = 0
        self.on_login: Callable[[], object] = lambda: None
        self._nursery: trio.Nursery

    def __repr__(self) -> str:
        return f"<Authorization by {self._authorizer!r}>"

    def start(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def attempt(self, operation: str = "") -> Attempt:
        return self._authorizer.attempt(operation)

    async def ready(self) -> None:
        """Before each request: take up the tokens of an earlier time, and renew those that are about to expire."""
        if not self._loaded or self._authorizer.expires_soon():
            await self._apart(self._prepare)

    async def challenged(self, attempt: AccessAttempt) -> None:
        """Do what the last response to `attempt` asks for; then the request is to be made again.

        Raises:
            AuthRequired: somebody has to do something first.
            AuthorizationFailed: it was tried, and failed.
        """
        flow = cast("Attempt", attempt).challenged
        await self._apart(lambda: self._challenged(flow))

    async def _apart(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do `work` in a task that outlives this one, and wait for it."""
        done = trio.Event()
        failure: McpTrioError | None = None

        async def run() -> None:
            nonlocal failure
            try:
                async with self._lock:
                    await work()
            except McpTrioError as exc:
                failure = exc
            finally:
                for note in self._authorizer.notes():
                    _log.warning("%s", note)
                if self._generation != self._authorizer.generation:
                    self._generation = self._authorizer.generation
                    self.on_login()
                done.set()

        self._nursery.start_soon(run)
        await done.wait()
        if failure is not None:
            raise failure

    async def _prepare(self) -> None:
        if not self._loaded:
            await self._run(self._authorizer.load())
            if not self._listens:
                self._authorizer.redirect_uri = self._login.profile.redirect_uri
            self._loaded = True
        if self._authorizer.expires_soon():
            await self._run(self._authorizer.renew())

    @property
    def _listens(self) -> bool:
        return self._login.browse == BROWSER and self._login.profile.interactive

    async def _challenged(self, flow: Callable[[], Flow[None]]) -> None:
        async with self._loopback() as loopback:
            await self._run(flow(), loopback)

    @asynccontextmanager
    async def _loopback(self) -> AsyncIterator[Loopback | None]:
        """Somebody who waits for the browser, if one is to be opened. Which port it is has to be known before anything is asked."""
        if not self._listens:
            yield None
            return
        authorizer, profile = self._authorizer, self._login.profile
        free = urlsplit(profile.redirect_uri).port == 0
        async with Loopback.at(authorizer.redirect_uri, any_port=free, show=self._login.show) as loopback:
            authorizer.redirect_uri = loopback.redirect_uri
            yield loopback

    async def _run(self, flow: Flow[Any], loopback: Loopback | None = None) -> None:
        """Do what the steps of a flow say."""
        reply: Any = None
        failure: McpTrioError | None = None
        try:
            while True:
                try:
                    step: Step = flow.send(reply) if failure is None else flow.throw(failure)
                except StopIteration:
                    return
                reply = failure = None
                try:
                    reply = await self._do(step, loopback)
                except (FetchFailed, AuthorizationFailed, AuthRequired) as exc:
                    failure = exc
        finally:
            flow.close()

    async def _do(self, step: Step, loopback: Loopback | None) -> Any:
        if isinstance(step, Browse):
            return await self._browse(step, loopback)
        # Rule 2. What is only read may be read again.
        with trio.CancelScope(shield=not isinstance(step, Fetch) or step.request.method == "POST"):
            return await (self._fetched(step) if isinstance(step, Fetch) else self._stored(step))

    async def _fetched(self, step: Fetch) -> HttpReply:
        request, local = step.request, self._authorizer.local
        fault = url_fault(request.url, local=local)
        if fault is not None:
            raise FetchFailed(f"the URL {fault}")
        return await fetch(request, allow=lambda address: may_fetch(address, local=local), tls=self._tls)

    async def _browse(self, step: Browse, loopback: Loopback | None) -> str:
        browse = self._login.browse
        if loopback is not None:
            return await loopback.answer(step)
        if browse is None or isinstance(browse, str):
            raise AuthRequired(
                "a user has to log in: connect with auth=True, or log in with `mcp-trio login` before"
            )
        try:
            callback = await browse(step.url)
        except McpTrioError:
            raise
        except Exception as exc:
            raise AuthorizationFailed(
                f"the page of the login could not be shown ({type(exc).__name__})"
            ) from exc
        if not answers(step, callback):
            raise AuthorizationFailed(
                "what the browser came back with is no answer to this login. Log in again."
            )
        return callback

    async def _stored(self, step: Load | Save) -> bytes | None:
        storage = self._login.storage
        try:
            if isinstance(step, Load):
                return await trio.to_thread.run_sync(storage.load, step.key)
            await trio.to_thread.run_sync(storage.save, step.key, step.value)
        except Exception as exc:  # noqa: BLE001 - it may be anybody's, and none of it may end a login
            what = "read" if isinstance(step, Load) else "kept"
            _log.warning("tokens cannot be %s in %r: %s", what, storage, exc)
        return None
