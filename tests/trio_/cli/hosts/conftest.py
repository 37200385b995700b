"""Fixtures for the tests of commands that use configured servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .configured import ConfiguredServers

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfiguredServers:
    return ConfiguredServers(tmp_path, monkeypatch)
