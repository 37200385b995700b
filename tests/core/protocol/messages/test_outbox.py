"""The queue of messages to send."""

from __future__ import annotations

import pytest

from mcp_core import MessageKind, Outgoing
from mcp_core.protocol.messages._outbox import Outbox


def outbox_of(*messages: Outgoing) -> Outbox:
    outbox = Outbox()
    for message in messages:
        outbox.put(message)
    return outbox


def test_outbox_empty_has_nothing() -> None:
    outbox = outbox_of()
    assert outbox.queued == 0
    assert outbox.take_messages() == []
    assert outbox.take_lines() == b""


def test_outbox_says_whether_something_was_put() -> None:
    outbox = outbox_of()
    assert (outbox.put_if_any(None), outbox.queued) == (False, 0)
    assert (outbox.put_if_any(Outgoing(b"{}", MessageKind.CANCEL)), outbox.queued) == (True, 2)


@pytest.mark.parametrize(
    ("kind", "belongs_to"), [(MessageKind.RESPONSE, 7), (MessageKind.REQUEST, 8)]
)
def test_outgoing_message_belongs_to_the_peers_request_only(
    kind: MessageKind, belongs_to: int
) -> None:
    assert Outgoing(b"{}", kind, 7, 8).incoming_id == belongs_to
    plain = Outgoing(b"{}", kind)
    assert plain == Outgoing(b"{}", kind, None, None, "", None, None, 0, None)
    assert plain.incoming_id is None


def test_outbox_take_returns_messages_once_in_order() -> None:
    first, second = (
        Outgoing(b"{}", MessageKind.REQUEST, 1, None, "m"),
        Outgoing(b"[]", MessageKind.RESPONSE, "x"),
    )
    outbox = outbox_of(first, second)
    assert outbox.queued == 4
    assert outbox.take_messages() == [first, second]
    assert outbox.queued == 0
    assert outbox.take_messages() == []


@pytest.mark.requirement("STDIO-1")
def test_outbox_take_lines_returns_one_message_per_line() -> None:
    outbox = outbox_of(
        Outgoing(b'{"a":1}', MessageKind.NOTIFICATION),
        Outgoing(b'{\n "b": "c\\n"\n}', MessageKind.RESPONSE, 1),
        Outgoing(b"{}", MessageKind.CANCEL),
    )
    assert outbox.queued == len(b'{"a":1}{"b":"c\\n"}{}')
    assert outbox.take_lines() == b'{"a":1}\n{"b":"c\\n"}\n{}\n'
    assert outbox.take_lines() == b""
    outbox.put(Outgoing(b"{}", MessageKind.NOTIFICATION))
    assert outbox.take_lines() == b"{}\n"
    assert (outbox.queued, outbox.take_lines()) == (0, b"")


@pytest.mark.parametrize("count", [1, 2])
def test_outbox_that_was_emptied_has_no_unread_responses(count: int) -> None:
    for take in (Outbox.take_lines, Outbox.take_messages):
        outbox = outbox_of(*[Outgoing(b"{}", MessageKind.RESPONSE, 1)] * count)
        assert outbox.are_responses_unread(2 * count - 1)
        assert not outbox.are_responses_unread(2 * count)
        assert take(outbox)
        assert (outbox.sent, outbox.queued, outbox.response_bytes) == (2 * count, 0, 0)


@pytest.mark.parametrize(
    ("message", "peers_request"),
    [
        (Outgoing(b"", MessageKind.RESPONSE, 1), 1),
        (Outgoing(b"", MessageKind.RESPONSE, "1"), "1"),
        (Outgoing(b"", MessageKind.NOTIFICATION, None, 1), 1),
        (Outgoing(b"", MessageKind.NOTIFICATION), None),
        # Our own request 7, sent during the request 1 of the peer or during none.
        (Outgoing(b"", MessageKind.REQUEST, 7, 1), 1),
        (Outgoing(b"", MessageKind.REQUEST, 7), None),
        (Outgoing(b"", MessageKind.CANCEL, 7, "1"), "1"),
        (Outgoing(b"", MessageKind.CANCEL, 7), None),
    ],
)
def test_outgoing_message_belongs_to_request_of_peer(
    message: Outgoing, peers_request: int | str | None
) -> None:
    assert message.incoming_id == peers_request
    message.data = b"12345"
    outbox = outbox_of(message)
    assert outbox.queued == 5
    for id in (1, "1", 7):
        same = id == peers_request
        assert outbox.queued_for(id) == (5 if same else 0)
