"""Fixtures of the tests of pipes."""

from __future__ import annotations

import pytest

from mcp_trio.streams import _threads


@pytest.fixture(params=["descriptors", "threads"])
def each_kind_of_pipe(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the test twice: as on POSIX, and as on Windows."""
    monkeypatch.setattr(_threads, "HAS_POLLABLE_PIPES", request.param == "descriptors")
