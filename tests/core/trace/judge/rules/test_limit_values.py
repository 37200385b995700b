"""Limits of the rules, and the seconds that they allow a peer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from mcp_core.trace.judge.rules import (
    _eras,
    _errors,
    _features,
    _headers,
    _messages,
    _streams,
    _tasks,
)

if TYPE_CHECKING:
    from types import ModuleType


# Other tests replace many of these with small ones, or compute with them.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        (_eras, "_REACTION", 1.0),
        (_eras, "_PROMPTLY", 10.0),
        (_errors, "_SHORT", 500),
        (_errors, "_MAX_LINES", 3),
        (_features, "_MAX_COMPILED", 100),
        (_features, "_MAX_REMEMBERED", 16_384),
        (_features, "_NOTIFIED", 1.0),
        (_headers, "_MAX_DEPTH", 32),
        (_headers, "_MAX_KEPT", 100),
        (_messages, "_REACTION", 1.0),
        (_streams, "_SLACK", 0.9),
        (_streams, "_LINGER", 5.0),
        (_streams, "_REACTION", 1.0),
        (_streams, "_LIFE_OF_TOKEN", 10.0),
        (_tasks, "_SLACK", 0.9),
        (_tasks, "_DELAY", 1.0),
        (_tasks, "_POLLS", 2),
        (_tasks, "_MIN_BITS", 32.0),
    ],
)
def test_limit_has_its_value(module: ModuleType, name: str, value: float) -> None:
    assert getattr(module, name) == value
