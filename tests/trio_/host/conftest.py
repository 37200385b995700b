"""Fixtures of the tests of hosts."""

from __future__ import annotations

import pytest

from tests.drivers.conftest import hosts_without_threads  # noqa: F401


@pytest.fixture(autouse=True)
def _no_threads_beside_a_mock_clock(request: pytest.FixtureRequest) -> None:
    if "autojump_clock" in request.fixturenames:
        request.getfixturevalue("hosts_without_threads")
