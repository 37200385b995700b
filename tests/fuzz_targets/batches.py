"""The parts of the server broken on purpose that stdio and HTTP share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz_targets.engine import Conversation, error_response, kind_of

if TYPE_CHECKING:
    from tests.fuzz_targets.catalog import Json
    from tests.fuzz_targets.engine import Sink

__all__ = ["MAX_MESSAGE", "Batch", "dump", "serve_batch"]

MAX_MESSAGE: Final = 4 * 1024 * 1024


def dump(message: Json) -> bytes:
    return json.dumps(message, allow_nan=False, separators=(",", ":")).encode()


class Batch:
    """The sink of the members of a batch, which are responded to together."""

    ends_with_request = False

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self.responses: list[Json] = []

    def send(self, message: Json) -> None:
        self._sink.send(message)

    def finish(self, messages: list[Json]) -> None:
        self.responses += messages

    def is_gone(self) -> bool:
        return self._sink.is_gone()


def serve_batch(conversation: Conversation, members: list[Any], sink: Sink) -> None:
    """Serve a batch of 2025-03-26."""
    batch = Batch(sink)
    for member in members:
        kind = kind_of(member) if isinstance(member, dict) else "invalid"
        if kind == "invalid" or (kind == "request" and member["method"] == "initialize"):
            id = member.get("id") if isinstance(member, dict) else None
            batch.finish([error_response("2025-03-26", id, -32600, "Invalid request")])
        elif kind == "request":
            conversation.serve(member, "2025-03-26", batch)
        elif kind == "notification":
            conversation.receive_notification(member, batch)
        else:
            conversation.receive_response(member)
    if not members:
        batch.finish([error_response("2025-03-26", None, -32600, "The batch is empty")])
    sink.finish(batch.responses)
