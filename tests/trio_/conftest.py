"""Fixtures of the tests of the drivers on trio."""

from __future__ import annotations

import pytest

from mcp_trio._runtime import TrioRuntime


@pytest.fixture(autouse=True)
def _every_send_is_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every send a checkpoint.

    Otherwise the speed of the machine decides which messages leave together.
    """
    monkeypatch.setattr(TrioRuntime, "checkpoint_interval", 0.0)
