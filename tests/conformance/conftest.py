"""Assertion rewriting for the scenarios, and the fixture that finds the official suite or skips."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.conformance.scenarios", "tests.conformance.scenarios_input")


@pytest.fixture(scope="session")
def suite() -> list[str]:
    """The command that runs the official suite, with the node that comes with it."""
    place = os.environ.get("MCP_TRIO_CONFORMANCE")
    if place:
        modules = Path(place)
        return [
            str(modules / ".bin" / "node"),
            str(modules / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"),
        ]
    pytest.skip(
        "needs MCP_TRIO_CONFORMANCE naming a node_modules directory made from"
        " tests/conformance/package.json"
    )
