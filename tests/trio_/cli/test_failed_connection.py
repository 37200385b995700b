"""The text that a user gets if there is no connection."""

from __future__ import annotations

import pytest

from mcp_core import ConnectFailed, RemoteProtocolError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import Target, _explain_failed_connection


@pytest.mark.parametrize(
    ("status", "has_hint"),
    [(299, True), (300, False), (399, False), (400, True), (429, False), (503, False), (505, True)],
)
def test_status_whose_text_has_a_cure_gets_no_hint(status: int, has_hint: bool) -> None:
    """A redirect and a limit are explained already."""
    target = Target(server="http://x/mcp", stderr=Screen(None))
    error = ConnectFailed(f"HTTP status {status}")
    error.__cause__ = RemoteProtocolError("no", data={"status": status})
    text = str(_explain_failed_connection(target, error))
    assert text.startswith(f"http://x/mcp: HTTP status {status}")
    assert text.endswith(target.not_mcp_hint) is has_hint
