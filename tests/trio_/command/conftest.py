"""A server of the test's own; and the process that runs the command in forks."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.trio_.command import program
from tests.trio_.command.program import ROOT, Forks, Hosted, ServerFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session", autouse=True)
def _forks() -> Iterator[None]:
    program.forks = Forks()
    yield
    program.forks.close()
    program.forks = None


@pytest.fixture(scope="session")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with ExitStack() as servers:
        yield Hosted(tmp_path_factory.mktemp("hosted"), servers)


@pytest.fixture(scope="session")
def greeter(hosted: Hosted) -> tuple[str, ...]:
    """The target of examples/greeter.py, over HTTP."""
    return hosted(ROOT / "examples" / "greeter.py")


@pytest.fixture(scope="session")
def teahouse(hosted: Hosted) -> tuple[str, ...]:
    """The target of the teahouse, over HTTP."""
    return hosted(ROOT / "mcp_trio" / "examples" / "teahouse.py")


@pytest.fixture
def server(tmp_path: Path) -> ServerFile:
    return ServerFile(tmp_path / "server.py")
