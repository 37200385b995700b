"""Which properties of a tool's schema a header repeats, as the judge reads it."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.trace.judge.rules._headers import _read

ANNOTATED = {"type": "string", "x-mcp-header": "Leaf"}


@pytest.mark.parametrize(("depth", "count"), [(1, 1), (32, 1), (33, 0)])
def test_annotation_is_found_down_to_a_depth(depth: int, count: int) -> None:
    """No schema may exhaust Python's stack."""
    schema: Any = ANNOTATED
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    found, error = _read(schema)
    assert error == ""
    assert [(each.path, each.header) for each in found] == [(("a",) * depth, "Leaf")] * count
