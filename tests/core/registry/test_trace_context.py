"""Trace context: only well-formed values are passed on."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core.registry._trace_context import trace_context

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.requirement("META-13")
@pytest.mark.parametrize(
    ("meta", "handed_on"),
    [
        ({}, {}),
        ({"traceparent": PARENT}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": "a=1,b=2", "baggage": "k=v"}, ...),
        ({"baggage": "k=v"}, ...),
        ({"tracestate": "a=1"}, {}),
        ({"traceparent": PARENT, "com.example/x": 1}, {"traceparent": PARENT}),
        # Only later versions may have more fields.
        ({"traceparent": f"cc{PARENT[2:]}-more"}, ...),
        ({"traceparent": f"{PARENT}-more"}, {}),
        # Not a traceparent.
        ({"traceparent": f"ff{PARENT[2:]}"}, {}),
        ({"traceparent": PARENT.upper()}, {}),
        ({"traceparent": f"00-{'0' * 32}-b7ad6b7169203331-01"}, {}),
        ({"traceparent": f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01"}, {}),
        ({"traceparent": PARENT + "\n"}, {}),
        ({"traceparent": 7, "tracestate": "a=1"}, {}),
        ({"traceparent": None}, {}),
        ({"traceparent": ""}, {}),
        # Values that no header can carry.
        ({"traceparent": PARENT, "tracestate": "a=\r\n"}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": 5}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": ""}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": "a"}, ...),
        ({"traceparent": PARENT, "tracestate": "a" * 512}, ...),
        ({"traceparent": PARENT, "tracestate": "a" * 513}, {"traceparent": PARENT}),
        ({"baggage": "é"}, {}),
        ({"baggage": "a" * 8193}, {}),
        ({"baggage": []}, {}),
    ],
)
def test_trace_context_passes_well_formed_values_only(meta: dict[str, Any], handed_on: Any) -> None:
    assert trace_context(meta) == (meta if handed_on is ... else handed_on)
