"""JSON assertions for the tests of the types."""

from __future__ import annotations

from typing import Any

import msgspec


def assert_json(value: Any, text: str, type: Any = None) -> None:
    """Assert that `value` is written as `text`, and that `text` is read as `value`."""
    assert msgspec.json.encode(value).decode() == text
    assert msgspec.json.decode(text, type=type or value.__class__) == value


def decode_error(text: str, type: Any) -> str:
    """Return the reason why `text` cannot be decoded as `type`.

    Raises:
        AssertionError: it can be decoded.
    """
    try:
        read = msgspec.json.decode(text, type=type)
    except msgspec.ValidationError as exc:
        return str(exc)
    raise AssertionError(f"read as {read!r}")
