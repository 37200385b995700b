"""Record a conversation as steps: messages between two ends, in an order that does not vary.

1. `Recorder.trace` takes messages from the option `trace` of a client.
2. `HttpProxy` of `_proxy.py` adds the requests and responses of HTTP.
3. A request and a response that is no stream are recorded together, when the response is complete.
   An event of a stream that arrives meanwhile is recorded after them. So the order does not depend
   on which of two connections is read first.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal, NamedTuple

import trio

__all__ = ["CLIENT", "SERVER", "STREAM_ENDS", "Recorder", "Step", "describe", "message_step"]

CLIENT: Final = "Client"
SERVER: Final = "Server"
STREAM_ENDS: Final = "the stream ends"
# What a diagram shows of a message beside its method.
_SHOWN_MEMBERS: Final = ("inputRequests", "inputResponses", "requestState")
_COMPLETE: Final = "complete"
_TIMEOUT: Final = 20  # seconds for a step to be recorded


class Step(NamedTuple):
    """One line of a sequence diagram.

    Attributes:
        kind: `request` and `response`: an arrow. `open`: an arrow that opens a stream. `event`: an
            arrow on a stream. `end`: the end of a stream. `note`: words about `source`.
        source: where the arrow begins.
        target: where it ends.
        text: the label.
        detail: a second, smaller label: headers, or members of a message.
        stream: the number of the stream, from 1; 0 for none.
    """

    kind: Literal["request", "response", "open", "event", "end", "note"]
    source: str
    target: str
    text: str
    detail: str = ""
    stream: int = 0


def message_step(source: str, message: bytes) -> Step:
    """Return the arrow of a message that `source` has sent."""
    text, detail = describe(message)
    is_response = text.startswith(("result", "error"))
    return Step(
        "response" if is_response else "request",
        source,
        SERVER if source == CLIENT else CLIENT,
        text,
        detail,
    )


def describe(message: bytes) -> tuple[str, str]:
    """Return the method of a message, or that it is a result or an error; and what is in it."""
    decoded: dict[str, Any] = json.loads(message)
    if "error" in decoded:
        return f"error {decoded['error']['code']}", ""
    members = decoded.get("result") or decoded.get("params") or {}
    detail = ", ".join(name for name in _SHOWN_MEMBERS if name in members)
    if "method" in decoded:
        return str(decoded["method"]), detail
    kind = members.get("action") or members.get("resultType", _COMPLETE)
    return "result" if kind == _COMPLETE else f"result: {kind}", detail


class Recorder:
    """The steps of one conversation."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.streams = 0
        self._pending = 0  # requests without the head of their response
        self._held: list[Step] = []
        self._leaving = False
        self._changed = trio.Event()

    def add(self, *steps: Step) -> None:
        """Add steps that belong together."""
        self.steps += steps
        self._changed.set()
        self._changed = trio.Event()

    def note(self, at: str, text: str) -> None:
        """Add a remark about one end."""
        self.add(Step("note", at, at, text))

    def trace(self, direction: Literal["sent", "received"], message: bytes) -> None:
        """Add a message of a client: its option `trace`."""
        self.add(message_step(CLIENT if direction == "sent" else SERVER, message))

    def leave(self) -> None:
        """Record no more ends of streams: the client closes them in any order."""
        self._leaving = True

    def request_begins(self) -> None:
        """Hold the events of streams until `request_ends`."""
        self._pending += 1

    def request_ends(self, *steps: Step) -> None:
        """Add the steps of a request, and the events that were held because of it."""
        self._pending -= 1
        self.add(*steps)
        if not self._pending:
            held, self._held = self._held, []
            self.add(*held)

    def stream_event(self, step: Step) -> None:
        """Add an event of a stream, after the requests that have no response yet."""
        if self._leaving and step.kind == "end":
            return
        if self._pending:
            self._held.append(step)
        else:
            self.add(step)

    async def until(self, text: str, count: int = 1) -> None:
        """Wait until `count` steps have this text.

        Raises:
            TimeoutError: they do not come.
        """
        with trio.move_on_after(_TIMEOUT):
            while sum(step.text == text for step in self.steps) < count:
                await self._changed.wait()
            return
        raise TimeoutError(f"no step {text!r} among {[step.text for step in self.steps]}")
