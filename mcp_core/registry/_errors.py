"""The two exceptions of authoring: one for the person who declares, one for the function that is asked.

Everything else a handler may raise (`ToolError`, `McpError`) lives in `mcp_core._errors`.
"""

from __future__ import annotations

from mcp_core._errors import McpTrioError

__all__ = ["DeclarationError", "ResourceNotFound"]


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
