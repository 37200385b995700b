"""A recorder of what crosses, as protocols: HTTP exchanges and WebSockets report to it.

Reporting never waits and never raises. Without a recorder it costs a comparison with None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from ._messages import Action, RequestHead

__all__ = ["ExchangeRecorderLike", "HttpRecorderLike", "WebSocketRecorderLike"]


class WebSocketRecorderLike(Protocol):
    """The recording of one WebSocket."""

    def sent(self, message: bytes) -> None:
        """Record `message`, which is about to be sent."""

    def received(self, message: bytes) -> None:
        """Record `message`, which was received."""

    def sent_close(self, code: int, reason: str) -> None:
        """Record a close frame with `code` and `reason` that is about to be sent."""

    def received_close(self, code: int, reason: str) -> None:
        """Record a close frame that was received, with `code` and `reason`.

        The code is 1005 if the frame has none, and 1006 if the connection broke without a frame.
        """


class ExchangeRecorderLike(Protocol):
    """The recording of one HTTP exchange."""

    def request_data(self, data: bytes, *, end: bool) -> None:
        """Record `data`, a piece of the request's body; `b""`, or one with `end`, is the last."""

    def response(self, actions: Sequence[Action]) -> None:
        """Record `actions`, a part of the response."""

    def ended(self, side: Literal["client", "server"], reason: str) -> None:
        """Record that `side` has ended the exchange early, and the `reason`, such as `reset`.

        Harmless if it is complete.
        """

    def websocket(self) -> WebSocketRecorderLike:
        """Begin the recording of the WebSocket that the exchange has opened."""


class HttpRecorderLike(Protocol):
    """A recorder of HTTP exchanges."""

    def begin(
        self, head: RequestHead, body: bytes | None, http_version: str
    ) -> ExchangeRecorderLike:
        """Begin the recording of an exchange, and return it.

        `head` and `body` are the request's; the body is None if it follows in pieces.
        `http_version` is such as `1.1`.
        """
