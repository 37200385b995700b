"""The table of our own requests."""

from __future__ import annotations

import json
from typing import Any

from mcp_core import DIALECTS, ProgressReceived
from mcp_core import types as t
from mcp_core.protocol.connection._requests import NEGOTIATION, OutgoingRequests
from mcp_core.protocol.messages._outbox import MessageKind, Outbox
from mcp_core.protocol.messages._responses import OutgoingRequest
from tests.harness.jsonrpc import D


def call(token: object = None, related: Any = None, *, progress: bool = False) -> OutgoingRequest:
    return OutgoingRequest("ping", None, DIALECTS[D], token, related, progress)


def cancelled_ids_and_reasons(out: Outbox) -> list[tuple[Any, Any]]:
    """Return the ids and reasons of the cancellations that were queued."""
    found = []
    for message in out.take_messages():
        if message.kind is MessageKind.REQUEST:
            continue
        assert message.kind is MessageKind.CANCEL
        params = json.loads(message.data)["params"]
        assert params["requestId"] == message.id
        found.append((params["requestId"], params.get("reason")))
    return found


def test_outgoing_requests_ids_are_consecutive() -> None:
    sent = OutgoingRequests(Outbox())
    assert [sent.send(call(), None) for _ in range(3)] == [1, 2, 3]
    sent.table.clear()
    assert sent.send(call(), None) == sent.next_id - 1 == 4


def test_outgoing_requests_cancel_notifies_peer_once() -> None:
    sent = OutgoingRequests(out := Outbox())
    sent.send(call(), None)
    sent.send(call(NEGOTIATION), None)
    sent.cancel(1, "why")
    sent.cancel(1, "twice")
    sent.cancel(2, "what opens is not cancelled")
    sent.cancel(9, "unknown")
    assert cancelled_ids_and_reasons(out) == [(1, "why")]
    assert list(sent.table) == [2]


def test_outgoing_requests_cancel_related_matches_id_and_type() -> None:
    sent = OutgoingRequests(out := Outbox())
    for related in (5, "5", None, 5):
        sent.send(call(related=related), None)
    sent.cancel_related(5)
    assert [id for id, _ in cancelled_ids_and_reasons(out)] == [1, 4]
    assert list(sent.table) == [2, 3]


def test_outgoing_requests_progress_must_be_requested_and_increase() -> None:
    """Its token may come back as a text, as some servers write ids."""
    sent = OutgoingRequests(Outbox())
    sent.send(call("without progress"), None)
    sent.send(call("token", progress=True), None)
    events = [
        sent.progress_event(t.ProgressParams(progress_token=token, progress=progress))
        for token, progress in (
            (1, 1),
            (9, 1),
            ("2", 1),
            (2, 1),
            (2, 1),
            (2, 0.5),
            ("2", 1.5),
            ("1", 2),
        )
    ]
    assert [event for event in events if event] == [
        ProgressReceived("2", 1, None, None, "token"),
        ProgressReceived("2", 1.5, None, None, "token"),
    ]


def test_outgoing_requests_fail_all_returns_tokens() -> None:
    sent = OutgoingRequests(out := Outbox())
    for token in ("a", NEGOTIATION, "b"):
        sent.send(call(token), None)
    assert sent.fail_all(None) == ["a", "b"]
    assert (sent.table, cancelled_ids_and_reasons(out)) == ({}, [])
    for token in ("c", NEGOTIATION):
        sent.send(call(token), None)
    assert sent.fail_all("enough") == ["c"]
    assert (sent.table, cancelled_ids_and_reasons(out)) == ({}, [(4, "enough")])
