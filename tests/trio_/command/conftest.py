"""A server of the test's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trio_.command.program import ServerFile

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def server(tmp_path: Path) -> ServerFile:
    return ServerFile(tmp_path / "server.py")
