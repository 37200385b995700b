"""Fixtures of the tests of the command: a server file, and the process that forks the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.trio_.cli import program
from tests.trio_.cli.program import Forks, ServerFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session", autouse=True)
def _forks() -> Iterator[None]:
    program.forks = Forks()
    yield
    program.forks.close()
    program.forks = None


@pytest.fixture
def server(tmp_path: Path) -> ServerFile:
    return ServerFile(tmp_path / "server.py")
