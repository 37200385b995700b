"""Which properties of a tool's schema a header repeats, as the judge reads it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core.trace.judge.rules import _headers
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


def test_annotations_of_many_schemas_are_kept_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A server may list new schemas each time."""
    monkeypatch.setattr(_headers, "_MAX_KEPT", 3)
    kept: dict[int, Any] = {}
    exchange: Any = SimpleNamespace(
        request=SimpleNamespace(method="tools/call", redacted=False, params={"name": "a"})
    )
    schemas = [{"type": "object", "properties": {"a": ANNOTATED}} for _ in range(10)]
    for schema in schemas:
        lists = SimpleNamespace(annotations=kept, tool=lambda name, of=schema: {"inputSchema": of})
        state: Any = SimpleNamespace(lists=lists)
        for _ in range(2):
            found = _headers._annotations(exchange, state)
            assert found is not None
            assert [each.header for each in found[0]] == ["Leaf"]
        assert id(schema) in kept
        assert len(kept) <= 3
