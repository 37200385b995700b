"""Wrong arguments of `Timing`, `RateLimit` and `MaskErrors`, refused where they are made."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import Rate
from mcp_core.runtime import MaskErrors, RateLimit, Timing


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Timing(None), "report is a function of context, seconds and outcome, not None"),  # type: ignore[arg-type]
        (lambda: RateLimit(5), r"such as Rate\(per_second=5, burst=20\), not 5"),  # type: ignore[arg-type]
        (lambda: MaskErrors({"x": "y"}), "a class of exceptions is needed, not 'x'"),  # type: ignore[dict-item]
        (lambda: MaskErrors({KeyboardInterrupt: "y"}), "a class of exceptions is needed"),  # type: ignore[dict-item]
        (lambda: MaskErrors({OSError: 5}), "the text for OSError is a string, not 5"),  # type: ignore[dict-item]
        (lambda: MaskErrors({OSError: ""}), "the text for OSError is empty"),
    ],
)
def test_wrong_argument_is_refused_with_what_is_needed(make: Any, text: str) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        make()


def test_middlewares_show_what_they_do() -> None:
    assert repr(RateLimit(Rate(1, 2))) == "RateLimit(Rate(per_second=1, burst=2))"
    assert repr(MaskErrors({OSError: "x", KeyError: "y"})) == "MaskErrors(OSError, KeyError)"
    assert repr(Timing(print)) == "Timing(<built-in function print>)"
