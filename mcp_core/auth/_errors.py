"""The exceptions that authorization raises to users of this library.

1. The text names the cause and the cure. It never contains a token, a code or a password. Of a
   server's response it contains at most a short, printable `error` and `error_description`.
2. `AuthRequired` (of the core) means that a user or administrator has to act first.
   `AuthorizationFailed` means that an attempt was made and failed.
"""

from __future__ import annotations

from mcp_core._errors import McpTrioError

__all__ = ["AuthorizationFailed", "FetchFailed"]


class AuthorizationFailed(McpTrioError):
    """A failed attempt to get authorization.

    Args:
        message: the exception's text: what failed, and what to do.
        error: the authorization server's OAuth error code (RFC 6749, section 5.2), or None if the
            failure has another origin.
    """

    def __init__(self, message: str, *, error: str | None = None) -> None:
        super().__init__(message)
        self.error = error


class FetchFailed(McpTrioError):
    """A `Fetch` that got no complete response.

    The driver throws it into the flow; `reason` says why.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
