"""The trace of a request: what is well-formed is handed on, the rest is not."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core._trace_context import trace_context

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
        # A later version may go on; this one may not.
        ({"traceparent": f"cc{PARENT[2:]}-more"}, ...),
        ({"traceparent": f"{PARENT}-more"}, {}),
        # No traceparent
        ({"traceparent": f"ff{PARENT[2:]}"}, {}),
        ({"traceparent": PARENT.upper()}, {}),
        ({"traceparent": f"00-{'0' * 32}-b7ad6b7169203331-01"}, {}),
        ({"traceparent": f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01"}, {}),
        ({"traceparent": PARENT + "\n"}, {}),
        ({"traceparent": 7, "tracestate": "a=1"}, {}),
        ({"traceparent": None}, {}),
        ({"traceparent": ""}, {}),
        # What no header could carry
        ({"traceparent": PARENT, "tracestate": "a=\r\n"}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": 5}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": ""}, {"traceparent": PARENT}),
        ({"traceparent": PARENT, "tracestate": "a" * 512}, ...),
        ({"traceparent": PARENT, "tracestate": "a" * 513}, {"traceparent": PARENT}),
        ({"baggage": "é"}, {}),
        ({"baggage": "a" * 8193}, {}),
        ({"baggage": []}, {}),
    ],
)
def test_what_is_handed_on(meta: dict[str, Any], handed_on: Any) -> None:
    assert trace_context(meta) == (meta if handed_on is ... else handed_on)
