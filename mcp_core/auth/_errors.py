"""What can go wrong with authorization, as a user of this library sees it.

Rules of this file:

1. The text of an error names the cause and the cure. It never holds a token, a code, a password or what a server wrote
   into its answer beyond a short, printable `error` and `error_description`.
2. `AuthRequired` (of the core) means: somebody has to act, a user or whoever configures the client. `AuthorizationFailed`
   means: it was tried, and this came of it.
"""

from __future__ import annotations

from mcp_core._errors import McpTrioError

__all__ = ["AuthorizationFailed", "FetchFailed"]


class AuthorizationFailed(McpTrioError):
    """Authorization was tried and failed; the text says at what, and what to do.

    `error` is the OAuth error code of the authorization server (RFC 6749 section 5.2), None if it was not it that refused.
    """

    def __init__(self, message: str, *, error: str | None = None) -> None:
        super().__init__(message)
        self.error = error


class FetchFailed(McpTrioError):
    """Thrown into a flow by who runs it: there is no complete response, and `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
