"""A client gets its tokens: the flows of `mcp_core.auth`, run in the world.

Rules of this file:

1. One flow runs at a time. Whoever had to wait runs his own all the same, for the core knows what the other has brought.
2. A flow runs in a task of the client's and not in that of the call that needs it: a call that is given up ends no login. What was
   begun at an authorization server is ended even if the client is: a token that nobody stored would be lost.
3. Nobody is bothered who did not ask for it: without a `browse` no page is shown, and nobody listens.
4. Nothing that a flow says or gets is logged, except its own notes and why it failed, which are made for that.

What is asked, of whom, and what an answer means is the core's.
"""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast
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
    Listen,
    Load,
    Save,
    answers,
)

from ._dial import ENVIRONMENT
from ._fetch import fetch
from ._h11_loopback import Loopback
from ._storage import FileStorage, TokenStorage

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from mcp_core.auth import Attempt, Flow, HttpReply, Step
    from mcp_core.http import AccessAttempt

__all__ = ["Authorization", "Login", "login_of"]

_log = logging.getLogger("mcp_trio")

_BROWSER: Final = "browser"
# Seconds that another process may take to renew its tokens, which are ours too; and how often to look whether it has.
_LOCKED: Final = 10.0
_LOOKS: Final = 0.05


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

    Raises:
        ValueError: nobody could log in like this.
    """

    profile: ClientProfile = field(default_factory=ClientProfile)
    storage: TokenStorage = field(default_factory=FileStorage)
    browse: Callable[[str], Awaitable[str]] | Literal["browser"] | None = "browser"
    show: Callable[[str], object] = lambda url: None

    def __post_init__(self) -> None:
        if isinstance(self.browse, str) and self.browse != _BROWSER:
            raise ValueError(f"browse is 'browser', a function or None, not {self.browse!r}")
        free = self.profile.interactive and urlsplit(self.profile.redirect_uri).port == 0
        if callable(self.browse) and free:
            raise ValueError(
                "nobody listens for a browse of yours: say in profile.redirect_uri where its page leads to"
            )


def login_of(auth: Login | ClientProfile | bool) -> Login:
    """What the option `auth` means, if it is not False."""
    if isinstance(auth, bool):
        return Login()
    return Login(profile=auth) if isinstance(auth, ClientProfile) else auth


class Authorization:
    """The tokens for the MCP server at `url`. `tls` and `proxy` are how authorization servers are reached, as for that.

    `on_login` is called when the tokens may be another user's than before; `on_browse` with 1 when a user is sent to a login page,
    with -1 when that is over.

    *Resource handling*: what it starts it starts in the nursery of `start`.
    """

    def __init__(
        self,
        url: str,
        login: Login,
        *,
        tls: ssl.SSLContext | None = None,
        proxy: str | None = ENVIRONMENT,
    ) -> None:
        self._login = login
        self._tls, self._proxy = tls, proxy
        self._authorizer = Authorizer(url, login.profile, entropy=os.urandom, wall_time=time.time)
        self._lock = trio.Lock()
        self._loaded = self._met = False
        self._generation = 0
        self._loopback: Loopback | None = None
        self._unlocks: Callable[[], None] | None = None
        self.on_login: Callable[[], object] = lambda: None
        self.on_browse: Callable[[int], object] = lambda more: None
        self._nursery: trio.Nursery

    def __repr__(self) -> str:
        return f"<Authorization by {self._authorizer!r}>"

    def start(self, nursery: trio.Nursery) -> None:
        self._nursery = nursery

    def met_at(self, address: str | None) -> None:
        """The MCP server was connected to at this IP address; None if it is not known, as through a proxy."""
        self._met = True
        self._authorizer.met_at(address)

    def attempt(self, operation: str = "") -> Attempt:
        return self._authorizer.attempt(operation)

    async def ready(self) -> None:
        """Before each request: take up the tokens of an earlier time, and renew those that are about to expire."""
        if not self._loaded or self._expires_soon():
            await self._apart(self._prepare)

    async def challenged(self, attempt: AccessAttempt) -> None:
        """Do what the last response to `attempt` asks for; then the request is to be made again.

        Raises:
            AuthRequired: somebody has to do something first.
            AuthorizationFailed: it was tried, and failed.
        """
        flow = cast("Attempt", attempt).challenged
        await self._apart(lambda: self._run(flow()))

    async def _apart(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do `work` in a task that outlives this one, and wait for it."""
        done = trio.Event()
        failure: McpTrioError | None = AuthorizationFailed("the client was closed before there was a token")

        async def run() -> None:
            nonlocal failure
            try:
                async with self._lock:
                    await work()
                failure = None
            except McpTrioError as exc:
                failure = exc
                _log.info("no access token for %s: %s", self._authorizer, exc)
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
            self._loaded = True
        if self._expires_soon():
            await self._run(self._authorizer.renew())

    def _expires_soon(self) -> bool:
        # Where tokens may be fetched is known when it is known where the server is.
        return self._met and self._authorizer.expires_soon()

    async def _run(self, flow: Flow[Any]) -> None:
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
                    reply = await self._do(step)
                except (FetchFailed, AuthorizationFailed, AuthRequired) as exc:
                    failure = exc
        finally:
            flow.close()
            self._unlock()
            if self._loopback is not None:
                self._loopback.close()
                self._loopback = None

    async def _do(self, step: Step) -> Any:
        if isinstance(step, Listen):
            self._unlock()
            return await self._listen(step)
        if isinstance(step, Browse):
            self.on_browse(1)
            try:
                return await self._browse(step)
            finally:
                self.on_browse(-1)
        if isinstance(step, Load):
            if step.to_replace:
                await self._lock_storage(step.key)
            return await self._stored(step)
        # Rule 2. What is only read may be read again.
        with trio.CancelScope(shield=isinstance(step, Save) or step.request.method == "POST"):
            if isinstance(step, Fetch):
                return await self._fetched(step)
            await self._stored(step)
            self._unlock()
            return None

    async def _fetched(self, step: Fetch) -> HttpReply:
        def allow(address: str) -> bool:
            return self._authorizer.may_fetch(step.request.url, address)

        return await fetch(step.request, allow=allow, tls=self._tls, proxy=self._proxy)

    async def _listen(self, step: Listen) -> str:
        browse = self._login.browse
        if browse is None:
            raise AuthRequired(
                "a user has to log in: connect with auth=True, or log in with `mcp-trio login` before"
            )
        if browse != _BROWSER:
            return step.redirect_uri
        self._loopback = await Loopback.open(step.redirect_uri, any_port=step.any_port)
        return self._loopback.redirect_uri

    async def _browse(self, step: Browse) -> str:
        _log.info("a user is asked to log in: %r", step)
        browse = self._login.browse
        callback: object = None
        try:
            if callable(browse):
                callback = await browse(step.url)
            else:
                self._login.show(step.url)
        except (AuthorizationFailed, AuthRequired):
            raise
        except Exception as exc:
            raise AuthorizationFailed(
                f"the page of the login could not be shown ({type(exc).__name__})"
            ) from exc
        if self._loopback is not None:
            return await self._loopback.answer(step)
        if not isinstance(callback, str) or not answers(step, callback):
            raise AuthorizationFailed(
                "what the browser came back with is no answer to this login. Log in again."
            )
        return callback

    async def _lock_storage(self, key: str) -> None:
        """Wait until no other process is about to replace what is kept. One that takes too long is waited for no longer."""
        storage = self._login.storage
        if not isinstance(storage, FileStorage) or self._unlocks is not None:
            return
        with trio.move_on_after(_LOCKED):
            while True:
                try:
                    self._unlocks = await trio.to_thread.run_sync(storage.lock, key)
                except OSError:
                    return  # who reads or writes there will say why
                if self._unlocks is not None:
                    return
                await trio.sleep(_LOOKS)

    def _unlock(self) -> None:
        if self._unlocks is not None:
            self._unlocks()
            self._unlocks = None

    async def _stored(self, step: Load | Save) -> bytes | None:
        storage = self._login.storage
        try:
            if isinstance(step, Load):
                return await trio.to_thread.run_sync(storage.load, step.key, abandon_on_cancel=True)
            await trio.to_thread.run_sync(storage.save, step.key, step.value)
        except Exception as exc:  # noqa: BLE001 - it may be anybody's, and none of it may end a login
            what = "read" if isinstance(step, Load) else "kept"
            # What others show and raise may say what they were to keep.
            ours = isinstance(storage, FileStorage)
            where, why = (storage, exc) if ours else (type(storage).__name__, type(exc).__name__)
            _log.warning("tokens cannot be %s in %s: %s", what, where, why)
        return None
