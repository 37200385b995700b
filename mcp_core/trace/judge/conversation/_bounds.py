"""Tables that forget their oldest entry when they are full."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections import OrderedDict

__all__ = ["MAX_ENTRIES", "put"]

MAX_ENTRIES: Final = 10_000  # of each kind: tools, cursors, tasks and tokens


def put(table: OrderedDict[Any, Any], key: Any, value: Any, limit: int) -> None:
    """Put an entry into a table, and drop the oldest if there are too many."""
    table[key] = value
    table.move_to_end(key)
    if len(table) > limit:
        table.popitem(last=False)
