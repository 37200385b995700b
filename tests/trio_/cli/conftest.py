"""Fixtures of the tests of the command: a server file, and the process that forks the command."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.harness.world import command as program
from tests.harness.world.command import (
    LAB,
    ROOT,
    Forks,
    Hosted,
    ServerFile,
)
from tests.trio_.cli.configured.configured import ConfiguredServers
from tests.trio_.cli.in_memory import MemoryCommand

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Files of tests that start no program, beside those that end in `_in_memory`.
IN_MEMORY = frozenset(
    {
        "test_arguments",
        "test_doctor_connecting",
        "test_failed_connection",
        "test_forms",
        "test_internal_error",
        "test_noted_tasks",
        "test_output",
        "test_reload_watch",
        "test_terminal",
        "test_unblocked_stderr",
    }
)


@pytest.fixture(scope="module", autouse=True)
def _forks(request: pytest.FixtureRequest) -> None:
    """Start the process that forks for the tests of this directory, and end it after the last one.

    While a child lives, `no_leaks` looks through all processes, which is slow. Tests in memory
    need none.
    """
    name = request.path.stem
    if program.forks is None and not (name.endswith("_in_memory") or name in IN_MEMORY):
        program.forks = Forks()
        request.node.parent.addfinalizer(_end_forks)


def _end_forks() -> None:
    assert program.forks is not None
    program.forks.close()
    program.forks = None


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    with ExitStack() as servers:
        yield Hosted(tmp_path_factory.mktemp("hosted"), servers)


@pytest.fixture(scope="module")
def greeter(hosted: Hosted) -> tuple[str, ...]:
    """The target of examples/greeter.py, over HTTP."""
    return hosted(ROOT / "examples" / "greeter.py")


@pytest.fixture(scope="module")
def teahouse(hosted: Hosted) -> tuple[str, ...]:
    """The target of the teahouse, over HTTP."""
    return hosted(ROOT / "mcp_trio" / "examples" / "teahouse.py")


@pytest.fixture(scope="module")
def lab(hosted: Hosted) -> tuple[str, ...]:
    """The target of a server that runs tools as tasks, over HTTP."""
    return hosted(LAB)


@pytest.fixture
def servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ConfiguredServers:
    return ConfiguredServers(tmp_path, monkeypatch)


@pytest.fixture
def server(tmp_path: Path) -> ServerFile:
    return ServerFile(tmp_path / "server.py")


@pytest.fixture
def in_memory(monkeypatch: pytest.MonkeyPatch) -> MemoryCommand:
    """The command in this process, with a server in memory."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "60")
    return MemoryCommand(monkeypatch)
