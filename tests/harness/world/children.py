"""The programs that tests start: what they inherit, and which of them outlive a test."""

from __future__ import annotations

from typing import Final

from mcp_core.processes import _child_environment

__all__ = ["OF_MANY_TESTS", "inherit_python_path"]

# Process ids of programs that the next test needs, too. A test that is out of time kills others.
OF_MANY_TESTS: Final = set[int]()


def inherit_python_path() -> None:
    """Let the servers that our clients start run the code under test, and measure its coverage.

    It adds variables to those that child processes of clients in this process inherit.
    """
    _child_environment.INHERITED_VARIABLES += (  # type: ignore[misc]
        "PYTHONPATH",
        "COVERAGE_PROCESS_START",
        "COVERAGE_PROCESS_CONFIG",
    )
