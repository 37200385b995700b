"""The plugin that judges our connections: it sees what they send, and finds a fault."""

from __future__ import annotations

import json

import pytest

from mcp_core import Connection, Role
from tests.harness.jsonrpc import server_config
from tests.judged import JudgedConversation, judge_connections


def test_conversation_with_our_fault_has_a_finding() -> None:
    conversation = JudgedConversation(Role.SERVER)
    ping = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    conversation.add("received", ping)
    conversation.add("sent", b'{"jsonrpc":"2.0","id":1,"result":{}}\n' * 2)
    conversation.close()
    assert [each.row for each in conversation.ours()] == ["RPC-7"]


def test_conversation_with_a_fault_of_the_peer_does_not_accuse_us() -> None:
    conversation = JudgedConversation(Role.SERVER)
    conversation.add("received", b'{"jsonrpc":"1.0","id":1,"met')
    conversation.add("received", b'hod":"ping"}\n')
    conversation.close()
    assert [each.row for each in conversation.findings] == ["RPC-1"]
    assert conversation.ours() == []


def test_connections_are_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    conversations = judge_connections(monkeypatch)
    connection = Connection(Role.SERVER, server_config())
    connection.receive_data(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n', 0.0)
    connection.next_event()
    sent = connection.data_to_send()
    assert json.loads(sent)["result"] == {}
    (conversation,) = conversations
    assert [direction for direction, _ in conversation.lines] == ["received", "sent"]
    assert conversation.judge.messages == 2
