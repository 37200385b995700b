"""A first look into a body: which requests are in it, before anybody acts on them.

A session has to know where the answers will go before they are there, and that none of the ids is in use.

Rule of this file: it never says that something is wrong. What cannot be read is for the connection to say, which reads it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, Struct

from mcp_core import types as t
from mcp_core._jsonrpc import BadMessage, Unreadable, decode, is_batch, reader, split_batch

if TYPE_CHECKING:
    from mcp_core._config import Limits
    from mcp_core.types import RequestId

__all__ = ["Glance", "look_into"]

_CANCELLED = "notifications/cancelled"
_read_cancelled = reader(t.CancelledParams)


class Glance(Struct):
    """What a body has in it: the ids of its requests, those of requests that it cancels, and the method of a single message.
    `batch`: it is a whole array of messages. `repeats`: an id is in it twice. `is_response`: it answers something."""

    ids: list[RequestId] = []
    cancelled: list[RequestId] = []
    method: str = ""
    batch: bool = False
    repeats: bool = False
    is_response: bool = False


def look_into(body: bytes, limits: Limits, *, batches: bool = False) -> Glance:
    """Look into a body. `batches`: it may be an array."""
    glance = Glance()
    if batches and is_batch(body):
        try:
            messages = split_batch(body)
        except BadMessage:
            return glance
        if not 0 < len(messages) <= limits.batch:
            return glance  # it is refused as a whole
        glance.batch = True
        for message in messages:
            _look_at(message, limits, glance)
        glance.repeats = len(set(glance.ids)) < len(glance.ids)
        if len(messages) > 1:
            glance.method = ""
    else:
        _look_at(body, limits, glance)
    return glance


def _look_at(message: bytes, limits: Limits, glance: Glance) -> None:
    try:
        envelope = decode(message, limits.method, limits.id)
    except BadMessage as bad:
        if bad.id is not None and bad.looks != "response":
            glance.ids.append(bad.id)
        return
    if envelope.method is UNSET:
        glance.is_response = True
        return
    glance.method = envelope.method
    if envelope.id is not UNSET and envelope.id is not None:
        glance.ids.append(envelope.id)
    elif envelope.method == _CANCELLED and envelope.params is not UNSET:
        try:
            id = _read_cancelled(envelope.params).request_id
        except Unreadable:
            return
        if id is not None:
            glance.cancelled.append(id)
