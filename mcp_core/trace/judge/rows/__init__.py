"""The requirements of the specification and our own decisions, one row each.

Rules of this folder:

1. The sentences are our summaries, never quotations. Where a row matters, read its page.
2. An id is never reused for another requirement.
3. Two columns give the first revision that has the row, and the first later one that doesn't, or
   None. A new revision has every row with None.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from . import (
    _authorization,
    _client_features,
    _decisions,
    _input_requests,
    _lifecycle,
    _messages,
    _resources,
    _streamable_http,
    _subscriptions,
    _tasks,
    _tools,
    _transports,
    _utilities,
)
from ._families import FAMILIES as FAMILIES
from ._families import row_family as row_family
from ._requirement import CHECKED_LEVELS as CHECKED_LEVELS
from ._requirement import Level as Level
from ._requirement import Requirement as Requirement
from ._requirement import Role as Role

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "CHECKED_LEVELS",
    "FAMILIES",
    "ROWS",
    "Level",
    "Requirement",
    "Role",
    "row_family",
]

# Every row by its id.
ROWS: Final[Mapping[str, Requirement]] = {
    row.id: row
    for module in (
        _messages,
        _lifecycle,
        _utilities,
        _tools,
        _resources,
        _client_features,
        _tasks,
        _input_requests,
        _subscriptions,
        _transports,
        _streamable_http,
        _authorization,
        _decisions,
    )
    for row in module.ROWS
}
