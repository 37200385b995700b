"""Messages and requests as the judge's state sees them, without a trace."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from mcp_core.trace.judge._message import SeenMessage, SeenRequest

__all__ = ["Party", "message_of", "request_of", "response_of"]

Party: TypeAlias = Literal["client", "server"]


def message_of(
    message: Any,
    line: int = 1,
    sender: Party = "server",
    request: SeenRequest | None = None,
    *,
    revisions: tuple[str, ...] = ("2025-11-25",),
    **members: Any,
) -> SeenMessage:
    """Return a message of a line, a tenth of a second after the line before."""
    found = SeenMessage(message, line, line / 10, sender)
    found.request = request
    found.set_revisions(revisions)
    for name, value in members.items():
        setattr(found, name, value)
    return found


def request_of(
    message: Any, line: int = 1, sender: Party = "client", **members: Any
) -> SeenRequest:
    return SeenRequest(message_of(message, line, sender, **members))


def response_of(message: Any, request: SeenRequest, line: int, **members: Any) -> SeenMessage:
    sender: Party = "server" if request.sender == "client" else "client"
    return message_of(message, line, sender, request, **members)
