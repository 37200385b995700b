"""The programs that tests start: what they inherit, and which of them outlive a test."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from mcp_core.processes import _child_environment

if TYPE_CHECKING:
    import signal

__all__ = ["OF_MANY_TESTS", "ends_by", "inherit_python_path"]

# Process ids of programs that the next test needs, too. A test that is out of time kills others.
OF_MANY_TESTS: Final = set[int]()


def ends_by(process: subprocess.Popen[bytes], number: signal.Signals) -> bool:
    """Send a signal. Return True if the process ends within a moment.

    A second signal is lost if the process has not noticed the first before, so a test sends it
    until this is True.
    """
    process.send_signal(number)
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.3)
    return process.returncode is not None


def inherit_python_path() -> None:
    """Let the servers that our clients start run the code under test, and measure its coverage.

    It adds variables to those that child processes of clients in this process inherit.
    """
    _child_environment.INHERITED_VARIABLES += (  # type: ignore[misc]
        "PYTHONPATH",
        "COVERAGE_PROCESS_START",
        "COVERAGE_PROCESS_CONFIG",
    )
