"""How deeply JSON may be nested where it is walked: by our own recursion, or by compiled code.

Python's RecursionError isn't such a limit. Until 3.11 it comes at 1,000 levels and frames together,
and since 3.12 compiled code raises it ten times later. Only decoding depends on it: a message that
is passed on may be nested as deeply as its decoder permits.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["MAX_NESTING", "depth_exceeds", "inner_values"]

# Levels of objects and arrays. Documents of people have about ten. Python has room for 1,000
# frames, and four fifths of it remain for the program below.
MAX_NESTING: Final = 200

_CONTAINERS: Final = (dict, list)


def depth_exceeds(value: Any, limit: int = MAX_NESTING) -> bool:
    """Return True if decoded JSON has more than `limit` levels of objects and arrays.

    Empty ones and scalars don't count. This doesn't recurse.
    """
    level = [value]
    for _ in range(limit + 1):
        level = inner_values(level)
        if not level:
            return False
    return True


def inner_values(level: list[Any]) -> list[Any]:
    """Return the items and values of all objects and arrays in `level`."""
    return [
        child
        for node in level
        if isinstance(node, _CONTAINERS)
        for child in (node.values() if isinstance(node, dict) else node)
    ]
