"""The setup for all tests: child processes run the working tree, node peers are found or skipped,
and no test leaves anything behind for the next.

Fixtures of one area live with that area.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["mcp_trio.testing.pytest_plugin", "tests.canaries"]

ROOT = Path(__file__).parents[1]

# Servers that tests start must run the code under test, not an installed package.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

# A shared machine stalls now and then, so an example has no deadline. A failure prints how to
# repeat it.
settings.register_profile("mcp-trio", deadline=None, print_blob=True)
settings.load_profile("mcp-trio")


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("node"):
        _node_modules()


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(no_leaks: None) -> None:
    """Check for leaks last: this fixture is set up before all others of a test."""


@pytest.fixture
def node_modules() -> Path:
    """Return the directory with the npm packages of the peers. Tests that use it are marked `node`."""
    return _node_modules()


def _node_modules() -> Path:
    place = os.environ.get("MCP_TRIO_NODE_MODULES")
    if place and shutil.which("node"):
        return Path(place)
    missing = "needs node, and MCP_TRIO_NODE_MODULES naming the directory of the npm packages"
    # In CI a missing peer would look like a passing test.
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)
