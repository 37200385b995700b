"""The programs of `examples/`, for tests that run them in a process of their own or in this one."""

from __future__ import annotations

import runpy
import sys
from types import SimpleNamespace
from typing import Any

from tests.examples.pages import EXAMPLES

__all__ = ["command", "load"]


def command(name: str) -> list[str]:
    """Return the words that start an example."""
    return [sys.executable, str(EXAMPLES / name)]


def load(name: str) -> Any:
    """Run an example as a new module and return its names."""
    return SimpleNamespace(**runpy.run_path(str(EXAMPLES / name)))
