"""A request that the fuzzer has sent as the client, and what the server has made of it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from ._answers import name_of
from ._call_guard import UNKNOWN_TOOLS
from ._interoperable_json import find_defect

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["LOST", "USER_CODE", "SentRequest", "is_cancellation_error"]

LOST: Final[Mapping[str, Any]] = {"lost": True}  # in place of a response that won't come
# Requests that run the server author's code, which may take long.
USER_CODE: Final = frozenset(
    {
        "tools/call",
        "prompts/get",
        "resources/read",
        "completion/complete",
        "tasks/result",
        "subscriptions/listen",
    }
)
# Of these, the ones for which no tool runs: tools may take as long as they want.
_OWED_SOON: Final = frozenset({"prompts/get", "resources/read", "completion/complete"})
_CANCELLED_TEXT: Final = re.compile(
    r"(?:the )?(?:request|call)?(?: was| has been)? ?cancell?ed\.?", re.IGNORECASE
)


class SentRequest:
    """A request that the fuzzer has sent, or is about to send.

    Args:
        message: the request.
        is_plain: every server can read it and must respond to it.
        is_bounded: it doesn't run the server author's code, which could take long.

    Attributes:
        token: its progress token, None without one.
        sent_at: when it was sent.
        cancelled: a step has cancelled it.
        unread: how many errors without an id the server had sent before.
        was_open: the handshake was complete when it was sent.
        overdue: set once a step has waited for the response in vain; later steps don't wait for it.
            "alone" if nothing was in its way, "behind" if a call ran. Empty otherwise.
        is_dropped: the server is known to drop it, so no step waits for a response.
        answer: the response, None before it.
        answered_at: how many messages the server had sent in this case, including the response.
        responses: how many responses there were. More than one is a fault.
        is_owed: the server must respond; False if the HTTP exchange is faulty.
        batch: the number of the batch that it was sent in, 0 if it was sent alone.
        loss: why there is no response. "excused" if the server need not respond, or if the response
            may be in a message that is too large to judge. Over HTTP also "missing" if the exchange
            ended in order, "cut" if it broke off within the response, and "broken" if it did before
            that. Empty otherwise.
    """

    __slots__ = (
        "answer",
        "answered_at",
        "batch",
        "cancelled",
        "id",
        "is_bounded",
        "is_dropped",
        "is_owed",
        "is_plain",
        "loss",
        "message",
        "method",
        "overdue",
        "responses",
        "sent_at",
        "token",
        "unread",
        "was_open",
    )

    def __init__(self, message: Mapping[str, Any], *, is_plain: bool, is_bounded: bool) -> None:
        self.message = message
        self.id = message["id"]
        self.method = str(message.get("method", ""))
        self.is_plain = is_plain
        self.is_bounded = is_bounded
        self.sent_at = 0.0
        self.answer: Mapping[str, Any] | None = None
        self.answered_at = 0
        self.responses = 0
        self.cancelled = False
        self.overdue: Literal["", "alone", "behind"] = ""
        self.is_dropped = False
        self.is_owed = True
        self.batch = 0
        self.loss: Literal["", "missing", "cut", "broken", "excused"] = ""
        self.was_open = True
        self.unread = 0
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        self.token = meta.get("progressToken") if isinstance(meta, dict) else None

    @property
    def name(self) -> str:
        """Its method, and the tool, prompt or resource that it names: `tools/call add`."""
        return f"{self.method} {name_of(self.message)}".strip()

    @property
    def is_owed_soon(self) -> bool:
        """True if the author's code may run for it, but no tool.

        Its response is due after a tool's longest time. A tool itself may take longer.
        """
        params = self.message.get("params")
        if self.method == "tools/call":
            return isinstance(params, dict) and params.get("name") in UNKNOWN_TOOLS
        return self.method in _OWED_SOON

    @property
    def defect(self) -> str:
        """Why strict receivers don't take it for a request, as a clause; "" if it is valid."""
        return find_defect(self.message)[1]


def is_cancellation_error(request: SentRequest, received: str) -> bool:
    """Return True if `received`, a second response, is the error for a cancelled request.

    It must have the usual words: an error with others may come from the tool, like the first one.
    """
    if not request.cancelled or request.answer is None or request.responses != 2:
        return False
    return _says_cancelled(json.loads(received)) and not _says_cancelled(request.answer)


def _says_cancelled(message: Mapping[str, Any]) -> bool:
    error = message.get("error")
    text = error.get("message") if isinstance(error, dict) else None
    return isinstance(text, str) and _CANCELLED_TEXT.fullmatch(text) is not None
