"""All that a WebSocket client makes of each response to its upgrade."""

from __future__ import annotations

import pytest

from mcp_core.http import WebSocketUpgrade
from tests.core.http.client.upgrades import CLIENTS, follow_upgrades, kept_upgrades


@pytest.mark.parametrize("name", CLIENTS)
def test_upgrade_has_the_kept_consequences(name: str) -> None:
    assert follow_upgrades(name) == kept_upgrades()[name]


def test_kept_upgrades_are_those_of_all_clients() -> None:
    assert list(kept_upgrades()) == list(CLIENTS)


def test_upgrade_sends_no_token_unencrypted_by_default() -> None:
    headers = {"Authorization": "Bearer token-4711"}
    with pytest.raises(ValueError, match="allow_cleartext=True"):
        WebSocketUpgrade("ws://server.example/mcp", headers, bytes(16))
