"""Log notifications: which are sent, and their members."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcp_core import DIALECTS, LocalProtocolError, Peer
from mcp_core import types as t
from mcp_core.connection._builtin import log_notification
from tests.core.helpers import STATEFUL, VERSIONS, A, D, E


def sent_log(peer: Peer | None, level: Any, data: Any = "x", **options: Any) -> Any:
    note = log_notification(peer, level, data, options.get("logger"), options.get("related"))
    return None if note is None else json.loads(note.data)


def peer(version: str, level: Any = None) -> Peer:
    return Peer(DIALECTS[version], t.ClientCapabilities(), log_level=level)


@pytest.mark.requirement("LOG-2")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("wanted", t.LOGGING_LEVELS)
def test_log_notification_at_or_above_level_sent(version: str, wanted: Any) -> None:
    heard = [level for level in t.LOGGING_LEVELS if sent_log(peer(version, wanted), level)]
    assert heard == list(t.LOGGING_LEVELS[t.LOGGING_LEVELS.index(wanted) :])


@pytest.mark.requirement("LOG-4")
@pytest.mark.parametrize("version", STATEFUL)
def test_log_notification_default_level_is_info(version: str) -> None:
    heard = [level for level in t.LOGGING_LEVELS if sent_log(peer(version), level)]
    assert heard == ["info", "notice", "warning", "error", "critical", "alert", "emergency"]


@pytest.mark.requirement("LOG-7")
def test_log_notification_without_level_not_sent_in_newest_revision() -> None:
    assert [level for level in t.LOGGING_LEVELS if sent_log(peer(E), level)] == []
    assert sent_log(None, "emergency") is None


@pytest.mark.requirement("LOG-2")
def test_log_notification_has_all_members() -> None:
    assert sent_log(peer(D), "error", {"a": [1]}, logger="db") == {
        "jsonrpc": "2.0",
        "method": "notifications/message",
        "params": {"level": "error", "data": {"a": [1]}, "logger": "db"},
    }
    note = log_notification(peer(A), "error", "x", None, 7)
    assert note is not None
    assert (note.related, note.method) == (7, "notifications/message")


def test_log_notification_not_json_raises() -> None:
    with pytest.raises(LocalProtocolError, match="no log level 'loud'"):
        sent_log(peer(D), "loud")
    with pytest.raises(TypeError):
        sent_log(peer(D), "error", object())
