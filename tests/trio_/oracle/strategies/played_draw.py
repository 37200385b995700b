"""A draw that plays choices, and keeps from which strategies they were asked for."""

from __future__ import annotations

import inspect
import re
from typing import Any

from mcp_trio.oracle.strategies._values import json_values, texts


class PlayedDraw:
    """Stands in for hypothesis's `draw`.

    Args:
        choices: what it returns, one after the other; the last one again and again.

    Attributes:
        asked: the strategies, as they show themselves; our own ones by a short name.
    """

    def __init__(self, *choices: Any) -> None:
        self.asked: list[str] = []
        self._choices = list(choices)

    def __call__(self, strategy: Any) -> Any:
        if inspect.isfunction(strategy):  # a part that `composite` has left as it is
            return strategy(self)
        self.asked.append(shown(strategy))
        return self._choices.pop(0) if len(self._choices) > 1 else self._choices[0]


def shown(strategy: Any) -> str:
    """Return a strategy's text, in which integers are a range such as `0..5`."""
    for name, known in (("json 0", json_values(0)), ("json 1", json_values(1)), ("text", texts())):
        if strategy is known:
            return name
    return re.sub(
        r"integers\(min_value=([-\d_]+)(?:, max_value=([-\d_]+))?\)", _range, repr(strategy)
    )


def _range(found: re.Match[str]) -> str:
    low, high = (None if each is None else each.replace("_", "") for each in found.groups())
    return str(low) if high is None else f"{low}..{high}"
