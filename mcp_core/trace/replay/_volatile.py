"""Values that differ in each conversation: ids that a server made up, and the time.

1. An id equals another one if it replaces that id everywhere. If `a` replaces `1` here and `2`
   there, that is a difference.
2. A time is left out of a comparison only if it is close to the recording's time. Any other time is
   data.
3. A server that lists its environment shows the mark that we gave to its process, another one for
   each process. Programs that aren't ours give none, so both may also differ in having one.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from mcp_core._inherited_variables import MARK_VARIABLE

from ._differences import MISSING
from ._keys import HIDDEN_TEXT, Pointer

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EqualIds", "RecordingTime", "may_be_id"]

_DATE_TIME: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?"
)
_CLOCK: Final = re.compile(
    r"(?<![\d:-])(?<!\dT)\d{1,2}:(?P<minute>[0-5]\d):(?P<second>[0-5]\d)(?:\.\d+)?"
    r"(?: ?[AP]M)?(?![\d:])"
)
# Seconds: time zones differ by multiples of a quarter of an hour.
_ZONE: Final = 900
_TOLERANCE: Final = 5
_UUID: Final = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
)
# A text with a digit and without spaces.
_ID: Final = re.compile(r"(?=\D*\d)[\w.:/+=~-]{6,500}")
# Members whose values a server or a client makes up.
_MADE_UP: Final = frozenset(
    """
    nextCursor cursor taskId requestState elicitationId progressToken requestId
    io.modelcontextprotocol/subscriptionId
    """.split()
)
_TIMES: Final = frozenset(("createdAt", "lastUpdatedAt"))
# In a text: as JSON, which may itself be in JSON, or as `NAME=value`.
_MARK_ENTRY: Final = (
    rf"[\\\"']*{MARK_VARIABLE}[\\\"']*\s*[:=]\s*[\\\"']*[0-9a-f]{{16}}(?::[0-9a-f]{{16}})*[\\\"']*"
)
# With the separator after it, or before it if it is the last entry.
_MARK: Final = re.compile(rf"{_MARK_ENTRY}\s*,\s*|,\s*{_MARK_ENTRY}|{_MARK_ENTRY}\n?")
_DAY: Final = timedelta(days=1)
_MAX_IDS: Final = 100_000


def may_be_id(value: Any) -> bool:
    """Return True if a value has the form of an id that a program made up."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


class RecordingTime:
    """The time of a recording, to compare times with.

    Args:
        at: the time of its beginning, `at` in its header.
        seconds: how long it took.
    """

    def __init__(self, at: str, seconds: float) -> None:
        self._seconds = seconds
        try:
            time = datetime.fromisoformat(at)
        except ValueError:
            self._at: datetime | None = None
        else:
            self._at = time if time.tzinfo is not None else time.replace(tzinfo=UTC)

    def has(self, value: Any) -> bool:
        """Return True if a number is a time of the recording, in seconds or milliseconds."""
        if isinstance(value, bool) or not isinstance(value, int | float) or self._at is None:
            return False
        seconds = self._at.timestamp()
        day = _DAY.total_seconds()
        return abs(value - seconds) <= day or abs(value / 1000 - seconds) <= day

    def mask(self, text: str, make_id: Callable[[str], str]) -> str:
        """Return `text` with its times of the recording and its UUIDs replaced."""
        if ":" in text:
            text = _CLOCK.sub(lambda match: "‹time›" if self._is_now(match) else match[0], text)
        if "-" not in text:
            return text
        text = _DATE_TIME.sub(lambda match: "‹time›" if self._is_near(match[1]) else match[0], text)
        return _UUID.sub(lambda match: make_id(match[0]), text)

    def _is_now(self, match: re.Match[str]) -> bool:
        """Return True if a clock time is a time of the recording, in any time zone."""
        if self._at is None:
            return False
        began = self._at.minute * 60 + self._at.second
        shown = int(match["minute"]) * 60 + int(match["second"])
        later = (shown - began) % _ZONE
        return later <= self._seconds + _TOLERANCE or later >= _ZONE - _TOLERANCE

    def _is_near(self, date: str) -> bool:
        if self._at is None:
            return True
        try:
            day = datetime.fromisoformat(date).replace(tzinfo=UTC)
        except ValueError:
            return False
        return abs(day - self._at) <= 2 * _DAY


class EqualIds:
    """Pairs of equivalent ids in two traces.

    Args:
        old: the first recording's time.
        new: the second recording's time.
    """

    def __init__(self, old: RecordingTime, new: RecordingTime) -> None:
        self._old_time = old
        self._new_time = new
        self._new: dict[str, str] = {}
        self._old: dict[str, str] = {}

    def pair(self, old: str, new: str) -> bool:
        """Return True if `old` and `new` are a pair. If both are new, they become one."""
        if old in self._new or new in self._old:
            return self._new.get(old) == new
        if len(self._new) < _MAX_IDS:
            self._new[old] = new
            self._old[new] = old
        return True

    def is_equal(self, pointer: Pointer, old: Any, new: Any) -> bool:
        """Return True if two values are equal apart from ids and times."""
        name = pointer[-1] if pointer else ""
        if name == MARK_VARIABLE:
            return True
        if name in _MADE_UP and old is not MISSING and new is not MISSING:
            if isinstance(old, str) and isinstance(new, str):
                hidden = HIDDEN_TEXT.search(old) or HIDDEN_TEXT.search(new)
                return bool(hidden) or self.pair(old, new)
            return type(old) is type(new) and not isinstance(old, dict | list)
        if name in _TIMES:
            return type(old) is type(new)
        if isinstance(old, str) and isinstance(new, str):
            return self._is_same_text(old, new)
        return self._old_time.has(old) and self._new_time.has(new)

    def _is_same_text(self, old: str, new: str) -> bool:
        if old == new or self._new.get(old) == new:
            return True
        if MARK_VARIABLE in old or MARK_VARIABLE in new:
            old, new = _MARK.sub("", old), _MARK.sub("", new)
        ids: tuple[list[str], list[str]] = [], []

        def collect(found: list[str]) -> Callable[[str], str]:
            def make_id(text: str) -> str:
                found.append(text)
                return "‹id›"

            return make_id

        masked = self._old_time.mask(old, collect(ids[0]))
        if masked != self._new_time.mask(new, collect(ids[1])):
            return False
        return all(map(self.pair, *ids))
