"""How the tests of the shapes read and write JSON."""

from __future__ import annotations

from typing import Any

import msgspec


def says(value: Any, text: str, type: Any = None) -> None:
    """Assert that `value` is written as `text`, and that `text` is read as `value`."""
    assert msgspec.json.encode(value).decode() == text
    assert msgspec.json.decode(text, type=type or value.__class__) == value


def refused(text: str, type: Any) -> str:
    """The reason why `text` is no `type`.

    Raises:
        AssertionError: it is one.
    """
    try:
        read = msgspec.json.decode(text, type=type)
    except msgspec.ValidationError as exc:
        return str(exc)
    raise AssertionError(f"read as {read!r}")
