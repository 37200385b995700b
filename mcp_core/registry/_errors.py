"""Exceptions of declarations and of handlers.

A handler may also raise `ToolError` and `McpError`, of `mcp_core`.
"""

from __future__ import annotations

from mcp_core._errors import McpError, McpTrioError
from mcp_core.types import ElicitParams, URLElicitationRequiredData

__all__ = ["DeclarationError", "ResourceNotFound", "UrlElicitationRequired"]

# Revision 2025-11-25, client/elicitation, URL Elicitation Required Error
_URL_ELICITATION_REQUIRED = -32042


class DeclarationError(McpTrioError, ValueError):
    """A declaration that cannot be served. Raised where it is declared, never in a call."""


class ResourceNotFound(McpTrioError):
    """Raised by a resource function: the URI matches, but there is no such resource.

    The client gets the error code of its revision for it, `message` as its text, and the URI in
    `data`. Do not return empty contents instead (2026-07-28, server/resources, Error Handling).
    """

    def __init__(self, message: str = "Resource not found") -> None:
        super().__init__(message)


class UrlElicitationRequired(McpError):
    """Raised by a handler: the user must visit a page before the request can be served.

    In 2025-11-25 the response is error -32042. Call `Server.elicitation_complete(elicitation_id)`
    when the user has finished, and the client repeats its request. In 2026-07-28 it is one URL
    mode elicitation, after which the handler is run again; if it raises this exception again, the
    request fails with `message`. A client without URL mode elicitation gets an error that names
    the missing capability (client/elicitation).

    Args:
        message: the reason, for the user.
        url: the page, preferably `https:`, without a secret. The page itself must verify that its
            visitor is the same user.
        elicitation_id: a unique id; generated if None.

    Attributes:
        elicitation: the elicitation's params.
    """

    def __init__(self, message: str, url: str, elicitation_id: str | None = None) -> None:
        self.elicitation = ElicitParams(
            message=message, mode="url", url=url, elicitation_id=elicitation_id
        )
        super().__init__(
            _URL_ELICITATION_REQUIRED, message, URLElicitationRequiredData([self.elicitation])
        )
