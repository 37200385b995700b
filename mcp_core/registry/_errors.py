"""The exceptions of authoring: one for the person who declares, the others for the function that is asked.

Everything else a handler may raise (`ToolError`, `McpError`) lives in `mcp_core._errors`.
"""

from __future__ import annotations

from mcp_core._errors import McpError, McpTrioError
from mcp_core.types import ElicitParams, URLElicitationRequiredData

__all__ = ["DeclarationError", "ResourceNotFound", "UrlElicitationRequired"]

_URL_ELICITATION_REQUIRED = -32042  # revision 2025-11-25, client/elicitation, URL Elicitation Required Error


class DeclarationError(McpTrioError, ValueError):
    """Something cannot be served as it was declared. Raised at declaration, never in a call."""


class ResourceNotFound(McpTrioError):
    """Raised by a resource function: the URI fits, but names nothing.

    The peer gets the error code its revision has for that, with the URI in `data`; the text of the exception
    is sent along. Empty contents are not a way to say this (specification 2026-07-28, server/resources, Error
    Handling).
    """

    def __init__(self, message: str = "Resource not found") -> None:
        super().__init__(message)


class UrlElicitationRequired(McpError):
    """Raised by a handler: nothing can be done before the user has visited this page, so make the request again then.

    In 2025-11-25 it is the error -32042; `Server.elicitation_complete(elicitation_id)` tells the client when it is time. In
    2026-07-28 it is a question, put once, and then the handler is run again: if it still raises this, the call has failed with
    these words. A client that cannot show pages is told that it lacks the capability (client/elicitation).

    Args:
        message: why, for the user.
        url: the page, best `https:`. It holds no secret, and who opens it proves there who he is.
        elicitation_id: a name for this visit that is not used twice; one is made up if there is none.
    """

    def __init__(self, message: str, url: str, elicitation_id: str | None = None) -> None:
        self.page = ElicitParams(message=message, mode="url", url=url, elicitation_id=elicitation_id)
        super().__init__(_URL_ELICITATION_REQUIRED, message, URLElicitationRequiredData([self.page]))
