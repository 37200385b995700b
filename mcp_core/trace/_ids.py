"""Sets of the ids and texts that a side has used, in limited memory."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from typing import Any, Final

__all__ = ["GivenTexts", "UsedIds", "id_key", "text_key"]

MAX_RANGES: Final = 10_000
MAX_STRINGS: Final = 100_000
MAX_TEXTS: Final = 100_000
_LONG: Final = 256  # characters; a longer text is remembered by its digest


def text_key(text: str) -> str:
    """Return a short key for a text from a peer: the text, or the digest of a long one."""
    if len(text) <= _LONG:
        return text
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def id_key(value: Any) -> int | str | None:
    """Return an id or a progress token as a key, or None if it is neither a string nor an integer.

    `1` and `"1"` are different keys, `1` and `1.0` are one: JSON has one type of number.
    """
    if isinstance(value, str):
        return text_key(value)
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None


class UsedIds:
    """A set of ids. Consecutive integers are kept as one range.

    Attributes:
        is_complete: False if some ids are missing, because there were more than the limits allow.
    """

    __slots__ = ("_ends", "_starts", "_strings", "is_complete")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._strings: set[str] = set()
        self.is_complete = True

    def __contains__(self, key: int | str) -> bool:
        if isinstance(key, str):
            return key in self._strings
        place = bisect_right(self._starts, key) - 1
        return place >= 0 and key <= self._ends[place]

    def add(self, key: int | str) -> None:
        """Add an id."""
        if isinstance(key, str):
            if len(self._strings) < MAX_STRINGS:
                self._strings.add(key)
            else:
                self.is_complete = False
            return
        place = bisect_right(self._starts, key) - 1
        if place >= 0 and key <= self._ends[place]:
            return
        if place >= 0 and key == self._ends[place] + 1:
            self._ends[place] = key
        elif len(self._starts) >= MAX_RANGES:
            self.is_complete = False
            return
        else:
            place += 1
            self._starts.insert(place, key)
            self._ends.insert(place, key)
        if place + 1 < len(self._starts) and self._starts[place + 1] == key + 1:
            self._ends[place] = self._ends.pop(place + 1)
            del self._starts[place + 1]


class GivenTexts:
    """A set of texts of any length. Only their hashes are kept.

    Attributes:
        is_complete: False if the peer can have given texts that aren't in the set.
    """

    __slots__ = ("_hashes", "is_complete")

    def __init__(self, *, is_complete: bool) -> None:
        self._hashes: set[int] = set()
        self.is_complete = is_complete

    def __contains__(self, text: str) -> bool:
        return hash(text) in self._hashes

    def add(self, text: str) -> None:
        """Add a text."""
        if len(self._hashes) < MAX_TEXTS:
            self._hashes.add(hash(text))
        elif text not in self:
            self.is_complete = False
