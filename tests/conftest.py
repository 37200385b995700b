"""What every test may rely on: children run the working tree, peers written for node are found or skipped, and nothing of one
test is there for the next.

Fixtures of one area live with that area; this file has only what has no other home.
"""

from __future__ import annotations

import os
import shutil
import signal
import threading
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["mcp_trio.testing.pytest_plugin", "tests.canaries"]

ROOT = Path(__file__).parents[1]
INTEROP = ROOT / "tests" / "interop"
CONFORMANCE = ROOT / "tests" / "conformance"

# Servers that tests start must be the code under test, whatever the environment has installed.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

# A shared machine stalls now and then: the time one example takes says nothing. A failure prints how to
# repeat it.
settings.register_profile("mcp-trio", deadline=None, print_blob=True)
settings.load_profile("mcp-trio")

# What the default run leaves out (`addopts` in pyproject.toml), and how to run each.
LEFT_OUT = {
    "slow": "pytest -m slow",
    "interop or node": 'pytest -m "interop or node"',
    "conformance": "pytest -m conformance",
}

# A job that a shell starts in the background inherits `SIG_IGN` for SIGINT. Python then installs no handler, and
# every program that a test starts ignores SIGINT too, so tests that interrupt a program would wait forever. A
# signal with a handler is back at its default action in a child after exec.
if (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by `-m`
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test below tests/interop `interop`, and every test that asks for the official suite `conformance`."""
    for item in items:
        if item.path.is_relative_to(INTEROP):
            item.add_marker("interop")
        if "suite" in getattr(item, "fixturenames", ()) and item.path.is_relative_to(CONFORMANCE):
            item.add_marker("conformance")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how to run the tests that this run has left out."""
    deselected = terminalreporter.stats.get("deselected", [])
    if deselected:
        terminalreporter.write_line(
            f"{len(deselected)} tests were left out; run them too: {', '.join(LEFT_OUT.values())}"
        )


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("node"):
        _node_modules()


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(no_leaks: None) -> None:
    """Set up before all other fixtures of a test, and so the last to be over."""


@pytest.fixture
def node_modules() -> Path:
    """The directory with the npm packages of the peers; the test that asks for it is marked `node`."""
    return _node_modules()


def _node_modules() -> Path:
    place = os.environ.get("MCP_TRIO_NODE_MODULES")
    if place and shutil.which("node"):
        return Path(place)
    missing = "needs node, and MCP_TRIO_NODE_MODULES naming the directory of the npm packages"
    # In CI a peer that silently stays away would look like a peer that agrees.
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)
