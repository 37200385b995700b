"""`mcp-trio login`: a user lets this command in at a server, for now and for later.

Rules of this file:

1. The page is opened in a browser and its address shown, for browsers that do not open. Nothing else of the login is shown.
2. Tokens are kept where the library keeps them: `mcp-trio call` and the others use them, and `connect(url, auth=True)` does.
3. Where no client is registered by itself, somebody has registered this command by hand: `--client-id` says as what.
4. Whoever logs in does so anew, perhaps as somebody else; what was kept stays until that has worked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from mcp_core.auth import ClientProfile
from mcp_trio._authorization import Login
from mcp_trio._storage import FileStorage

from ._problem import NO_CONVERSATION, Problem
from ._talk import declared_by, talk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.auth import Secret
    from mcp_trio import Client

    from ._talk import Target

__all__ = ["login"]

# Seconds: as long as the library waits for the browser, and some to go in and out.
_LONGEST: Final = 360.0


class _Anew(FileStorage):
    """Finds no tokens but those that were kept since. What else is kept stays: to which authorization server a `client_id` belongs is
    not for the MCP server to say anew."""

    def __init__(self) -> None:
        super().__init__()
        self.failure: OSError | None = None
        self._since: set[str] = set()

    def load(self, key: str) -> bytes | None:
        return None if key.startswith("tokens:") and key not in self._since else super().load(key)

    def save(self, key: str, value: bytes | None) -> None:
        try:
            super().save(key, value)
        except OSError as exc:
            self.failure = exc
            raise
        self._since.add(key)


def login(
    target: Target, *, client_id: str | None, client_secret: Secret | None, scopes: Sequence[str]
) -> int:
    """Log in at the server of `target`; returns the exit status.

    Raises:
        Problem: it did not work.
    """
    asked, storage = False, _Anew()

    def show(url: str) -> None:
        nonlocal asked
        asked = True
        target.stderr.say(f"mcp-trio: log in in your browser; if it does not open, go to {url}")

    async def body(client: Client) -> int:
        if declared_by(client).tools is not None:
            await client.list_tools(timeout=_LONGEST)
        if storage.failure is not None:
            raise Problem(
                f"the login went well, but its token cannot be kept: {storage.failure}", NO_CONVERSATION
            )
        target.stderr.say(
            "mcp-trio: logged in; the other commands use that now"
            if asked
            else "mcp-trio: the server lets us in without"
        )
        return 0

    profile = ClientProfile(
        client_id=client_id,
        client_secret=client_secret,
        keep_secret=client_secret is not None,  # rule 2: the other commands renew tokens with it
        scopes=tuple(scopes) or None,
    )
    return talk(
        replace(target, auth=Login(profile=profile, storage=storage, show=show), timeout=_LONGEST), body
    )
