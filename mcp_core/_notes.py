"""What is told about a request while it runs: progress and log messages.

Rules of this file:

1. Nothing is said that the peer did not ask for: progress needs its token, a log message a level that it wants to hear.
2. Nothing is said about a request that is over, or was cancelled.
3. Progress grows. What has not grown since it was last told is not told again.

Sources: basic/utilities/progress, server/utilities/logging.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any, Final

from . import types as t
from ._errors import LocalProtocolError
from ._jsonrpc import encode_notification
from ._outbox import Kind, Outgoing
from ._state import Act, after

if TYPE_CHECKING:
    from ._events import Peer
    from ._requests import Request
    from .types import RequestId

__all__ = ["log_note", "progress_note"]

_SEVERITY: Final = {level: severity for severity, level in enumerate(t.LOGGING_LEVELS)}
_NOTIFICATION, _NOTE = Kind.NOTIFICATION, Act.NOTE


def progress_note(
    id: RequestId, request: Request | None, progress: float, total: float | None, message: str | None
) -> Outgoing | None:
    """The message that tells how far `request` has come, None if none is due.

    Raises:
        LocalProtocolError: a number is infinite or none, which JSON cannot say.
    """
    if not isfinite(progress) or not isfinite(total or 0.0):
        raise LocalProtocolError("progress and total are finite numbers")
    if request is None or request.progress_token is None or after(request.life, _NOTE) is None:
        return None
    if request.progress is not None and progress <= request.progress:
        return None
    params = t.ProgressParams(
        progress_token=request.progress_token, progress=progress, total=total, message=message
    )
    data = encode_notification("notifications/progress", request.terms.dialect.encode(params))
    request.progress = progress
    return Outgoing(data, _NOTIFICATION, None, id, "notifications/progress")


def log_note(
    peer: Peer | None, level: t.LoggingLevel, data: Any, logger: str | None, related: RequestId | None
) -> Outgoing | None:
    """A log message for `peer`, None if it does not want to hear it.

    Raises:
        LocalProtocolError: there is no such level.
        TypeError, ValueError: `data` cannot be said in JSON.
    """
    severity = _SEVERITY.get(level)
    if severity is None:
        raise LocalProtocolError(f"there is no log level {level!r}; there are {', '.join(t.LOGGING_LEVELS)}")
    if peer is None:
        return None
    wanted = peer.log_level or peer.dialect.log_level
    if wanted is None or severity < _SEVERITY[wanted]:
        return None
    params = t.LoggingMessageParams(level=level, data=data, logger=logger)
    message = encode_notification("notifications/message", peer.dialect.encode(params))
    return Outgoing(message, _NOTIFICATION, None, related, "notifications/message")
