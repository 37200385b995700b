"""Run the client authorization flows of `mcp_core.auth`: HTTP requests, browser, token storage.

1. One flow runs at a time. A call that has waited for another flow then runs its own. That one is
   short, because the core already has the tokens.
2. A flow runs in the client's nursery, not in the task of the call that needs it, so cancelling the
   call doesn't end a login. Once a token request is sent, it is completed and its token stored,
   even if the client is closed. Otherwise the token would be lost.
3. The log has only a flow's warnings and the reasons for failures, which contain no secrets. It has
   nothing else that a flow sends or receives.
"""

from __future__ import annotations

import logging
import os
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, cast
from urllib.parse import urlsplit

import trio
from msgspec.structs import replace

from mcp_core import AuthRequired, McpTrioError
from mcp_core.auth import (
    AuthorizationFailed,
    Authorizer,
    Browse,
    ClientProfile,
    Fetch,
    FetchFailed,
    ListenForRedirect,
    Load,
    Save,
    is_callback_for,
)
from mcp_trio.http_client._connector import ENVIRONMENT

from ._fetch import fetch
from ._storage import FileStorage, LockableStorage, TokenStorage

if TYPE_CHECKING:
    from mcp_core.auth import AuthAttempt, Flow, HttpResponse, Step
    from mcp_core.http import AuthAttemptLike

    from ._loopback import LoopbackListener

__all__ = ["ClientAuthorization", "LoginConfig", "login_config"]

_log = logging.getLogger("mcp_trio")

_BROWSER: Final = "browser"
_SHOW: Final = "show"
# Seconds to wait for another process that is refreshing the same tokens: two request timeouts.
_LOCK_TIMEOUT: Final = 10.0
_LOCK_POLL_INTERVAL: Final = 0.05  # seconds


@dataclass(frozen=True, kw_only=True)
class LoginConfig:
    """How a client obtains and stores its tokens.

    Pass it to `connect` or `connect_http` as `auth`. Several clients may share one.

    Args:
        profile: the client's data for authorization servers. By default `ClientProfile()`: a user
            logs in, and the client registers itself.
        storage: the token storage. By default the user's files (`FileStorage`), which
            `mcp-trio login` uses too. With `--keychain` it uses `KeyringStorage()`.
        browse: how the user logs in. `"browser"`, the default, opens the user's browser and listens
            on loopback for the redirect. `"show"` listens too, but opens no browser: `show` gives
            the page's URL to the user. An async function gets the login page's URL and returns the
            whole redirect URL, which must be at `profile.redirect_uri`. With None no user logs in:
            the client uses and refreshes only stored tokens.
        show: with `"browser"` and `"show"`, called with the URL of each login page before it is
            opened. It must not block. The URL is for this user only.
        confirm_scopes: an async function that is called when a server demands additional scopes,
            which neither the last login nor the profile has. It gets these scopes. If it returns
            False, the request raises `AuthRequired`. Without it, `"browser"` shows the scopes on a
            page before the login page; otherwise the login page has to show them.
        tls: which certificates to trust and to present at servers other than the MCP server, such
            as authorization servers. By default the client trusts the system's certificates and
            presents none: the MCP server names these servers, and must not learn the user's
            identity at another one.

    *Error handling*: if `browse`, `show` or `confirm_scopes` raises, the login fails and the
    request raises `AuthorizationFailed`. An `AuthRequired` propagates unchanged.

    Raises:
        ValueError: `browse` is an unknown text; it is `"show"` and `show` is missing; or it is a
            function and `profile.redirect_uri` has no fixed port.

    Source: 2026-07-28, basic/authorization; RFC 8252 for native clients.
    """

    profile: ClientProfile = field(default_factory=ClientProfile)
    storage: TokenStorage = field(default_factory=FileStorage)
    browse: Callable[[str], Awaitable[str]] | Literal["browser", "show"] | None = "browser"
    show: Callable[[str], object] | None = None
    confirm_scopes: Callable[[tuple[str, ...]], Awaitable[bool]] | None = None
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        if isinstance(self.browse, str) and self.browse not in (_BROWSER, _SHOW):
            raise ValueError(
                f"browse is 'browser', 'show', a function or None, not {self.browse!r}"
            )
        if self.browse == _SHOW and self.show is None:
            raise ValueError("browse='show' needs show: a function that shows a URL to the user")
        free = self.profile.interactive and urlsplit(self.profile.redirect_uri).port == 0
        if callable(self.browse) and free:
            raise ValueError(
                "a browse function needs a redirect URI: set profile.redirect_uri to where its"
                " page redirects"
            )


def login_config(auth: LoginConfig | ClientProfile | bool) -> LoginConfig:
    """Return the settings that the option `auth` means. It isn't False."""
    if isinstance(auth, bool):
        return LoginConfig()
    return LoginConfig(profile=auth) if isinstance(auth, ClientProfile) else auth


class ClientAuthorization:
    """A client's authorization at the MCP server at `url`.

    All connections use `proxy`. Connections to the MCP server's origin use `tls`, all others
    `login.tls`. `on_login` is called when the tokens may belong to another user than before.
    `on_browse` is called with 1 when the user is sent to a login page, and with -1 when that login
    has ended.

    *Resource handling*: all tasks run in the nursery that was passed to `start`.
    """

    def __init__(
        self,
        url: str,
        login: LoginConfig,
        *,
        tls: ssl.SSLContext | None = None,
        proxy: str | None = ENVIRONMENT,
    ) -> None:
        self._login = login
        self._tls = tls
        self._proxy = proxy
        self._authorizer = Authorizer(url, login.profile, entropy=os.urandom, wall_time=time.time)
        self._lock = trio.Lock()
        self._loaded = False
        self._server_address_known = False
        self._generation = 0
        self._loopback: LoopbackListener | None = None
        self._release_lock: Callable[[], None] | None = None
        self.on_login: Callable[[], object] = lambda: None
        self.on_browse: Callable[[int], object] = lambda change: None
        # Called after each request with its method, URL and outcome.
        self.on_fetch: Callable[[str, str, str], object] = lambda method, url, outcome: None
        self._nursery: trio.Nursery

    def __repr__(self) -> str:
        return f"<ClientAuthorization by {self._authorizer!r}>"

    def start(self, nursery: trio.Nursery) -> None:
        """Set the nursery in which flows run. Call it before `ensure_token`."""
        self._nursery = nursery

    def set_server_address(self, address: str | None) -> None:
        """Set the MCP server's IP address, None if it is unknown, as behind a proxy."""
        self._server_address_known = True
        self._authorizer.set_server_address(address)

    def attempt(self, operation: str = "") -> AuthAttempt:
        """Return the authorization for one HTTP request and its retries.

        `operation` names the request in errors, for example `tools/call add`.
        """
        return self._authorizer.attempt(operation)

    async def ensure_token(self) -> None:
        """Load the stored tokens, and refresh them if they expire soon.

        Await it before each request.
        """
        if not self._loaded or self._expires_soon():
            await self._run_in_nursery(self._prepare)

    async def handle_challenge(self, attempt: AuthAttemptLike) -> None:
        """Get the token that the last response to `attempt` demands.

        Send the request again afterwards.

        Raises:
            AuthRequired: the user has to log in or to allow scopes first.
            AuthorizationFailed: no token was obtained.
        """
        flow = cast("AuthAttempt", attempt).handle_challenge
        await self._run_in_nursery(lambda: self._run(flow()))

    async def _run_in_nursery(self, work: Callable[[], Awaitable[object]]) -> None:
        """Run `work` in another task and wait for it. Cancelling this task doesn't cancel it."""
        done = trio.Event()
        failure: McpTrioError | None = AuthorizationFailed(
            "the client was closed before there was a token"
        )

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
                for note in self._authorizer.take_warnings():
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
        # The MCP server's address decides which addresses a refresh may connect to.
        return self._server_address_known and self._authorizer.expires_soon()

    async def _run(self, flow: Flow[Any]) -> None:
        """Run a flow: perform each step that it yields, and send the result back to it."""
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
                    reply = await self._perform(step)
                except (FetchFailed, AuthorizationFailed, AuthRequired) as exc:
                    failure = exc
        finally:
            flow.close()
            self._unlock()
            if self._loopback is not None:
                self._loopback.close()
                self._loopback = None

    async def _perform(self, step: Step) -> Any:
        if isinstance(step, ListenForRedirect):
            self._unlock()
            return await self._listen(step)
        if isinstance(step, Browse):
            self.on_browse(1)
            try:
                return await self._browse(step)
            finally:
                self.on_browse(-1)
        if isinstance(step, Load):
            if step.for_update:
                await self._lock_storage(step.key)
            return await self._access_storage(step)
        # Rule 2: a token request (POST) and storing its token aren't cancelled.
        with trio.CancelScope(shield=isinstance(step, Save) or step.request.method == "POST"):
            if isinstance(step, Fetch):
                return await self._fetch(step)
            await self._access_storage(step)
            self._unlock()
            return None

    async def _fetch(self, step: Fetch) -> HttpResponse:
        def allow(address: str) -> bool:
            return self._authorizer.may_fetch(step.request.url, address, step.named_by)

        def allow_name(name: str) -> bool:
            return self._authorizer.may_fetch_by_proxy(step.request.url, name)

        is_own = self._authorizer.is_at_server(step.request.url)
        tls = self._tls if is_own else self._login.tls
        request = step.request
        outcome = "not answered"
        try:
            response = await fetch(
                request, allow=allow, allow_name=allow_name, tls=tls, proxy=self._proxy
            )
            outcome = f"status {response.status}"
        finally:
            self.on_fetch(request.method, request.url, outcome)
        return response

    async def _listen(self, step: ListenForRedirect) -> str:
        browse = self._login.browse
        if browse is None:
            raise AuthRequired(
                "a user has to log in: connect with auth=True, or log in with `mcp-trio login`"
                " before"
            )
        if callable(browse):
            return step.redirect_uri
        from ._loopback import LoopbackListener  # on first use: most clients have their tokens

        self._loopback = await LoopbackListener.open(step.redirect_uri, any_port=step.any_port)
        return self._loopback.redirect_uri

    async def _browse(self, step: Browse) -> str:
        _log.info("a user is asked to log in: %r", step)
        login = self._login
        callback: object = None
        try:
            if step.new_scopes and login.confirm_scopes is not None:
                if not await login.confirm_scopes(step.new_scopes):
                    raise AuthRequired(
                        "the user did not allow the additional scopes that the MCP server demands:"
                        f" {' '.join(step.new_scopes)}",
                        step.new_scopes,
                    )
                step = replace(step, new_scopes=())  # they need not be shown again
            if callable(login.browse):
                callback = await login.browse(step.url)
            elif login.show is not None:
                login.show(step.url)
        except (AuthorizationFailed, AuthRequired):
            raise
        except Exception as exc:
            raise AuthorizationFailed(
                f"the page of the login could not be shown ({type(exc).__name__})"
            ) from exc
        if self._loopback is not None:
            return await self._loopback.wait_for_redirect(
                step, open_browser=login.browse == _BROWSER
            )
        if not isinstance(callback, str) or not is_callback_for(step, callback):
            raise AuthorizationFailed(
                "the URL that browse returned is not the redirect of this login. Log in again."
            )
        return callback

    async def _lock_storage(self, key: str) -> None:
        """Lock the stored tokens against other processes, or go on unlocked after a timeout."""
        storage = self._login.storage
        if not isinstance(storage, LockableStorage) or self._release_lock is not None:
            return
        with trio.move_on_after(_LOCK_TIMEOUT):
            while True:
                try:
                    self._release_lock = await trio.to_thread.run_sync(storage.lock, key)
                except OSError:
                    return  # loading or saving will fail too, and logs the reason
                if self._release_lock is not None:
                    return
                await trio.sleep(_LOCK_POLL_INTERVAL)

    def _unlock(self) -> None:
        if self._release_lock is not None:
            self._release_lock()
            self._release_lock = None

    async def _access_storage(self, step: Load | Save) -> bytes | None:
        """Load or save a value. An error of the storage is logged, and the login goes on.

        Raises:
            AuthorizationFailed: `load` raised it. A locked keychain may have tokens, and the user
                should unlock it rather than log in again.
        """
        storage = self._login.storage
        try:
            if isinstance(step, Load):
                return await trio.to_thread.run_sync(storage.load, step.key, abandon_on_cancel=True)
            await trio.to_thread.run_sync(storage.save, step.key, step.value)
        except Exception as exc:
            if isinstance(exc, AuthorizationFailed) and isinstance(step, Load):
                raise
            action = "read" if isinstance(step, Load) else "kept"
            if isinstance(storage, LockableStorage):
                _log.warning("tokens cannot be %s in %s: %s", action, storage, exc)
            else:
                # The repr and the exception of another storage could contain the tokens.
                kind = type(storage).__name__
                _log.warning("tokens cannot be %s in %s: %s", action, kind, type(exc).__name__)
        return None
