"""Let the servers that our clients start run the code under test, and measure their coverage."""

from __future__ import annotations

from mcp_core.processes import _child_environment

__all__ = ["inherit_python_path"]


def inherit_python_path() -> None:
    """Add variables to those that child processes of clients in this process inherit."""
    _child_environment.INHERITED_VARIABLES += (  # type: ignore[misc]
        "PYTHONPATH",
        "COVERAGE_PROCESS_START",
        "COVERAGE_PROCESS_CONFIG",
    )
