"""Byte streams, WebSockets and child processes as lines of a trace.

Methods take a line's time and what was captured, and return lines. A recorder calls them later, in
the trace's order, so that no conversation waits for them.
"""

from __future__ import annotations

from ._format import TraceLine, WebSocketClose
from ._messages import MessageSplitter, Sender, message_line, truncate

__all__ = ["ChildChannel", "StreamChannel", "WebSocketChannel"]


class StreamChannel:
    """A byte stream with one message a line.

    Args:
        conversation: its number.
        limit: bytes of a message that are kept.
    """

    def __init__(self, conversation: int, limit: int) -> None:
        self._conversation = conversation
        self._client = MessageSplitter(limit)
        self._server = MessageSplitter(limit)

    def client_data(self, t: float, data: bytes) -> list[TraceLine]:
        """Return the lines, at time `t`, for the client's `data`; `b""` is its end."""
        return self._lines(t, "client", self._client, data)

    def server_data(self, t: float, data: bytes) -> list[TraceLine]:
        """Return the lines, at time `t`, for the server's `data`; `b""` is its end."""
        return self._lines(t, "server", self._server, data)

    def skip(self) -> None:
        """Drop the message that has begun: some bytes were lost."""
        self._client.skip()
        self._server.skip()

    def _lines(
        self, t: float, sender: Sender, splitter: MessageSplitter, data: bytes
    ) -> list[TraceLine]:
        number = self._conversation
        if data:
            lines = []
            for message, truncated in splitter.feed(data):
                lines.append(message_line(t, sender, message, truncated, number))
            return lines
        unfinished = splitter.end()
        if unfinished is not None:
            return [message_line(t, sender, *unfinished, number, end="closed")]
        return [TraceLine(t=t, conversation=number, sender=sender, end="closed")]


class WebSocketChannel:
    """A WebSocket. Each text message is one JSON-RPC message.

    Args:
        conversation: its number.
        exchange: the exchange that opened it, by number; 0 if that wasn't recorded.
        limit: bytes of a message that are kept.
    """

    def __init__(self, conversation: int, exchange: int, limit: int) -> None:
        self._conversation = conversation
        self._exchange = exchange
        self._limit = limit

    def message(self, t: float, what: tuple[Sender, bytes]) -> list[TraceLine]:
        """Return the line, at time `t`, of a message. `what` is its sender and its bytes."""
        sender, data = what
        data, truncated = truncate(data, self._limit)
        return [message_line(t, sender, data, truncated, self._conversation, self._exchange)]

    def close(self, t: float, what: tuple[Sender, int, str]) -> list[TraceLine]:
        """Return the line, at time `t`, of a close frame. `what` is sender, code and reason."""
        sender, code, reason = what
        return [
            TraceLine(
                t=t,
                conversation=self._conversation,
                exchange=self._exchange,
                sender=sender,
                websocket=WebSocketClose(code=code, reason=reason),
            )
        ]

    def skip(self) -> None:
        """Do nothing: each message is whole, so a lost one leaves no half behind."""


class ChildChannel:
    """A server that runs as a child process: its start, its stderr and its exit.

    Args:
        conversation: the number of the conversation on its stdin and stdout.
        limit: bytes of a line of stderr that are kept.
    """

    def __init__(self, conversation: int, limit: int) -> None:
        self._conversation = conversation
        self._stderr = MessageSplitter(limit)

    def spawned(self, t: float, command: str) -> list[TraceLine]:
        """Return the line, at time `t`, of a start with `command`, which has no secrets."""
        return [TraceLine(t=t, conversation=self._conversation, kind="spawn", text=command)]

    def stderr(self, t: float, data: bytes) -> list[TraceLine]:
        """Return the lines, at time `t`, that end in `data`, or the last one for `b""`."""
        found = self._stderr.feed(data)
        if not data:
            unfinished = self._stderr.end()
            found = [] if unfinished is None else [unfinished]
        return [
            TraceLine(
                t=t,
                conversation=self._conversation,
                kind="stderr",
                text=text.decode("utf-8", "replace"),
                truncated=truncated,
            )
            for text, truncated in found
        ]

    def exited(self, t: float, status: int) -> list[TraceLine]:
        """Return the line, at time `t`, of the exit with `status`, after the rest of stderr."""
        exit_line = TraceLine(t=t, conversation=self._conversation, kind="exit", status=status)
        return [*self.stderr(t, b""), exit_line]

    def skip(self) -> None:
        """Drop the message that has begun: some bytes were lost."""
        self._stderr.skip()
