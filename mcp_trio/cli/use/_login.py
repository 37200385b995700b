"""`mcp-trio login`: the user authorizes this command at a server, and the tokens are stored.

1. The address of the login page is printed too, for systems where no browser opens. With
   `--no-browser` the command doesn't open one. Nothing else about the login is printed.
2. Tokens are stored where the library stores them. Other commands use them, and so does
   `connect(url, auth=True)`. With `--keychain` that is the keychain, for commands with that option
   and for `LoginConfig(storage=KeyringStorage())`.
3. An authorization server without dynamic registration needs `--client-id`: the id of a client
   that was registered there by hand. With a secret it also needs `--issuer`, the only server that
   the secret is sent to.
4. `--assume-pkce`, `--no-resource` and `--metadata-issuer` are for servers that don't fulfil the
   specification. They are stored with the tokens, so that the other commands renew them likewise.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mcp_core.auth import AuthorizationFailed, ClientProfile
from mcp_trio.auth._authorization import LoginConfig
from mcp_trio.auth._storage import LockableStorage
from mcp_trio.cli._errors import NO_CONNECTION, CliError
from mcp_trio.cli._session import run_session, server_capabilities
from mcp_trio.cli.state._logins import login_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.auth import Secret
    from mcp_trio._client import Client
    from mcp_trio.cli._session import Target

__all__ = ["login"]

# Seconds: the library's timeout for the browser, and a minute for the requests before and after.
_LOGIN_TIMEOUT: Final = 360.0


class _NewLoginStorage(LockableStorage):
    """The user's storage, without the tokens stored before this login.

    The login therefore asks the user again, who may use another account. The old tokens stay in
    place until it has succeeded. Other entries are read as usual: the MCP server must not decide
    again which authorization server a `client_id` belongs to.
    """

    def __init__(self, storage: LockableStorage) -> None:
        self._storage = storage
        self.failure: OSError | AuthorizationFailed | None = None
        self._new_keys: set[str] = set()

    def __repr__(self) -> str:
        return repr(self._storage)

    def load(self, key: str) -> bytes | None:
        if not key.startswith("tokens:") or key in self._new_keys:
            return self._storage.load(key)
        # Read the old tokens nevertheless: a locked keychain is reported before the user logs in.
        # The login replaces a file that cannot be read.
        with suppress(OSError):
            self._storage.load(key)
        return None

    def save(self, key: str, value: bytes | None) -> None:
        try:
            self._storage.save(key, value)
        except (OSError, AuthorizationFailed) as exc:
            self.failure = exc
            raise
        self._new_keys.add(key)

    def lock(self, key: str) -> Callable[[], None] | None:
        return self._storage.lock(key)


def login(
    target: Target,
    *,
    client_id: str | None,
    client_secret: Secret | None,
    issuer: str | None,
    scopes: Sequence[str],
    assume_pkce: bool,
    send_resource: bool,
    metadata_issuer: str | None,
    open_browser: bool,
) -> int:
    """Log in at the server of `target` and return the exit status.

    Raises:
        CliError: the login failed, or its tokens cannot be stored.
    """
    page_shown = False
    storage = _NewLoginStorage(login_storage(target.keychain))

    def show(url: str) -> None:
        nonlocal page_shown
        page_shown = True
        if open_browser:
            hint = f"log in with your browser; if none opens, go to {url}"
        else:
            hint = f"log in at {url}"
        target.stderr.write_line(f"mcp-trio: {hint}")

    async def body(client: Client) -> int:
        if server_capabilities(client).tools is not None:
            await client.list_tools(timeout=_LOGIN_TIMEOUT)
        if storage.failure is not None:
            raise CliError(
                f"the login succeeded, but its token cannot be stored: {storage.failure}",
                NO_CONNECTION,
            )
        use = "with --keychain the other commands" if target.keychain else "the other commands"
        target.stderr.write_line(
            f"mcp-trio: logged in; {use} use this login now"
            if page_shown
            else "mcp-trio: the server needs no login"
        )
        return 0

    profile = ClientProfile(
        client_id=client_id,
        client_secret=client_secret,
        issuer=issuer,
        keep_secret=client_secret is not None,  # other commands renew the tokens with it
        scopes=tuple(scopes) or None,
        assume_pkce=assume_pkce,
        send_resource=send_resource,
        metadata_issuer=metadata_issuer,
    )
    return run_session(
        replace(
            target,
            auth=LoginConfig(
                profile=profile,
                storage=storage,
                browse="browser" if open_browser else "show",
                show=show,
            ),
            timeout=_LOGIN_TIMEOUT,
            connect_timeout=None,
        ),
        body,
    )
