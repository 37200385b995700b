"""The assertions of the scenarios tell as much as those of a test; and the official suite is found, or its tests are skipped."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.conformance.scenarios", "tests.conformance.scenarios_asking")


@pytest.fixture(scope="session")
def suite() -> list[str]:
    """The words that run the official suite, by the node that comes with it."""
    place = os.environ.get("MCP_TRIO_CONFORMANCE")
    if place:
        modules = Path(place)
        return [
            str(modules / ".bin" / "node"),
            str(modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
        ]
    missing = (
        "needs MCP_TRIO_CONFORMANCE naming a node_modules directory made from tests/conformance/package.json"
    )
    # In CI a suite that silently stays away would look like one that agrees.
    if os.environ.get("CI") == "true":
        pytest.fail(missing)
    pytest.skip(missing)
