"""The W3C trace context in the `_meta` of a request.

Only well-formed values are passed on. An invalid `traceparent` is dropped together with its
`tracestate`, which means nothing without it: a peer cannot make a handler's tracer fail.

Sources: basic/index, `_meta` (2026-07-28); W3C Trace Context, sections 3.2 and 3.3; W3C Baggage,
section 3.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core._patterns import compile_on_first_use

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["trace_context"]

_TRACEPARENT: Final = compile_on_first_use(
    r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?P<more>-.*)?"
)
_VISIBLE: Final = compile_on_first_use(r"[\x20-\x7e]*")
_TRACESTATE_LIMIT: Final = 512  # characters that every tracer has to pass on; more may be dropped
_BAGGAGE_LIMIT: Final = 8192


def trace_context(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return the valid ones of `traceparent`, `tracestate` and `baggage` in `meta`."""
    found: dict[str, str] = {}
    parent = meta.get("traceparent")
    if isinstance(parent, str) and _is_traceparent(parent):
        found["traceparent"] = parent
        state = meta.get("tracestate")
        if isinstance(state, str) and _is_header(state, _TRACESTATE_LIMIT):
            found["tracestate"] = state
    baggage = meta.get("baggage")
    if isinstance(baggage, str) and _is_header(baggage, _BAGGAGE_LIMIT):
        found["baggage"] = baggage
    return found


def _is_traceparent(value: str) -> bool:
    match = _TRACEPARENT.fullmatch(value)
    # Only versions after 00 may have more fields after the flags.
    return match is not None and (match["more"] is None or not value.startswith("00"))


def _is_header(value: str, limit: int) -> bool:
    return 0 < len(value) <= limit and _VISIBLE.fullmatch(value) is not None
