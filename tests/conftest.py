"""What every test may rely on: children run the working tree, peers written for node are found or skipped, and nothing of one
test is there for the next.

Fixtures of one area live with that area; this file has only what has no other home.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["mcp_trio.testing.pytest_plugin", "tests.canaries"]

ROOT = Path(__file__).parents[1]

# Servers that tests start must be the code under test, whatever the environment has installed.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))

# A shared machine stalls now and then: the time one example takes says nothing. A failure prints how to
# repeat it.
settings.register_profile("mcp-trio", deadline=None, print_blob=True)
settings.load_profile("mcp-trio")


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
