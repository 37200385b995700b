"""The gates as data. `test_shapes.py` compares them with the schemas."""

from __future__ import annotations

import pytest
from msgspec import NODEFAULT
from msgspec.structs import fields

from mcp_core import types as t
from mcp_core.types._revisions import GATES, REVISIONS
from tests.core.types.spec_names import admits

A, B, C, D, E = REVISIONS


def test_revisions_are_sorted_oldest_first() -> None:
    assert list(REVISIONS) == sorted(REVISIONS)
    assert REVISIONS == (
        t.R_2024_11_05,
        t.R_2025_03_26,
        t.R_2025_06_18,
        t.R_2025_11_25,
        t.R_2026_07_28,
    )


@pytest.mark.parametrize(
    ("type", "field", "revisions"),
    [
        (t.AudioContent, None, (B, C, D, E)),
        (t.ResourceLink, None, (C, D, E)),
        (t.ToolUseContent, None, (D, E)),
        (t.MultiSelectSchema, None, (D, E)),
        (t.TextContent, None, REVISIONS),
        # On a class itself
        (t.Tool, "execution", (D,)),
        (t.Tool, "output_schema", (C, D, E)),
        (t.Tool, "input_schema", REVISIONS),
        (t.RootsCapability, "list_changed", (A, B, C, D)),
        # On an ancestor
        (t.ResourceLink, "icons", (D, E)),
        (t.PromptArgument, "title", (C, D, E)),
        (t.ImageContent, "meta", (C, D, E)),
        (t.ListToolsResult, "ttl_ms", (E,)),
        (t.GetPromptParams, "request_state", (E,)),
        (t.ReadResourceResult, "meta", REVISIONS),
        # On both
        (t.ElicitResult, "result_type", ()),
        (t.ElicitResult, "meta", (A, B, C, D)),
    ],
)
def test_gates_admit_field_in_revisions(
    type: type[t.Shape], field: str | None, revisions: tuple[str, ...]
) -> None:
    assert tuple(revision for revision in REVISIONS if admits(type, field, revision)) == revisions


def test_gates_name_existing_fields() -> None:
    for gate in GATES:
        assert gate.since or gate.until, gate
        assert gate.field is None or gate.field in gate.type.__struct_fields__, gate


def test_gates_are_unique() -> None:
    rows = [(gate.type, gate.field, gate.since, gate.until) for gate in GATES]
    assert len(rows) == len(set(rows))


def test_gated_fields_have_defaults() -> None:
    # A removed field needs a default in its place.
    for gate in GATES:
        if gate.field is not None:
            defaults = {field.name: field.default for field in fields(gate.type)}
            assert defaults[gate.field] is not NODEFAULT, gate
