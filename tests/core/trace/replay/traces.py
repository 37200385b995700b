"""Traces of a few messages, and live conversations with their replay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mcp_core.trace import (
    RecordedTrace,
    ReplayClient,
    ReplayServer,
    TraceHeader,
    TraceLine,
    load_trace,
)
from tests.core.trace.judge.conversations import C, S, Sent, Start, ask, result

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AT",
    "CALL",
    "HANDSHAKE",
    "call",
    "lines_of",
    "live_client",
    "live_server",
    "recorded",
    "text",
]

AT: Final = "2026-11-22T14:26:18.900000Z"
HANDSHAKE: Final = Start("2025-11-25").messages()


def call(id: Any, tool: str = "echo", **arguments: Any) -> dict[str, Any]:
    """Return a call of a tool."""
    return ask(id, "tools/call", name=tool, arguments=arguments)


def text(id: Any, content: str) -> dict[str, Any]:
    """Return the result of a call."""
    return result(id, content=[{"type": "text", "text": content}])


CALL: Final = [C(call(1, x="a")), S(text(1, "A"))]


def lines_of(said: Sequence[Sent], gap: float = 1.0) -> list[tuple[int, TraceLine]]:
    """Return the numbered lines of a conversation, `gap` seconds apart."""
    found = []
    for index, each in enumerate(said):
        line = each.message
        if not isinstance(line, TraceLine):
            raw = line if isinstance(line, str) else json.dumps(line)
            line = TraceLine(t=index * gap, sender=each.sender, raw=raw)
        found.append((index + 2, line))
    return found


def recorded(said: Sequence[Sent], *redacted: str, at: str = AT, gap: float = 1.0) -> RecordedTrace:
    """Return the trace of a conversation over stdio. `redacted` is for the header."""
    header = TraceHeader(format_version=1, at=at, transport="stdio", redacted=redacted)
    return load_trace(header, lines_of(said, gap))


class live_client:  # noqa: N801 - used as a function
    """A live client of a replayed server, in one session."""

    def __init__(
        self, trace: RecordedTrace, *, pace: float = 0.0, ignore: Sequence[str] = ()
    ) -> None:
        self.server = ReplayServer(trace, pace=pace, ignore=ignore)
        self.session = self.server.open()
        self.session.begin(0.0)

    def say(self, message: Any, now: float = 0.0) -> list[Any]:
        """Send a message, and return what comes back."""
        data = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.session.receive(data, now, "stream")
        return self.received()

    def received(self) -> list[Any]:
        return [json.loads(each.data) for each in self.session.outputs_to_send()]


class live_server:  # noqa: N801 - used as a function
    """A live server of a replayed client, for the first session of a trace."""

    def __init__(self, trace: RecordedTrace, *, timeout: float | None = None) -> None:
        self.client = ReplayClient(trace.sessions[0], response_timeout=timeout)
        self.client.begin(0.0)

    def received(self) -> list[Any]:
        return [json.loads(each) for each in self.client.messages_to_send()]

    def say(self, *messages: Any, now: float = 0.0) -> list[Any]:
        """Send messages, and return what the client sends then."""
        for each in messages:
            data = each if isinstance(each, bytes) else json.dumps(each).encode()
            self.client.receive(data, now)
        return self.received()

    def wait(self, now: float) -> list[Any]:
        self.client.advance(now)
        return self.received()
