"""The differences between two JSON values, as JSON pointers with both values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ._keys import HIDDEN_TEXT, Pointer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["MISSING", "Difference", "find_differences"]


class _Missing:
    """The value of a member that isn't there."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
_MAX_DEPTH: Final = 200
# Members that name a list's entries.
_NAMES: Final = ("name", "uri", "uriTemplate", "taskId")


class Difference(NamedTuple):
    """A value that differs.

    Attributes:
        pointer: where it is.
        old: the first message's value, or `MISSING`.
        new: the second message's value, or `MISSING`.
    """

    pointer: Pointer
    old: Any
    new: Any


def find_differences(
    old: Any,
    new: Any,
    pointer: Pointer = (),
    is_equal: Callable[[Pointer, Any, Any], bool] | None = None,
) -> Iterator[Difference]:
    """Yield the values in which `new` differs from `old`, at the deepest pointers possible.

    Values more than 200 deep are compared as a whole.

    Args:
        old: a JSON value.
        new: another JSON value.
        pointer: the pointer to both values.
        is_equal: called with a pointer and the two values there. If it returns True, they count as
            equal.
    """
    if old is new or (is_equal is not None and is_equal(pointer, old, new)):
        return
    if len(pointer) >= _MAX_DEPTH:
        if repr(old) != repr(new):
            yield Difference(pointer, old, new)
    elif isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from find_differences(
                old.get(key, MISSING), new.get(key, MISSING), (*pointer, key), is_equal
            )
    elif isinstance(old, list) and isinstance(new, list):
        for index, value, other in _pairs(old, new):
            yield from find_differences(value, other, (*pointer, str(index)), is_equal)
    elif not _is_same(old, new):
        yield Difference(pointer, old, new)


def _pairs(old: list[Any], new: list[Any]) -> Iterator[tuple[int, Any, Any]]:
    """Yield the corresponding entries of two lists, with their index in `old`.

    If entries have names, as tools have, and the lists differ in them, entries are paired by name.
    So one more entry at the beginning is only one difference. An entry that only `new` has comes
    with its index in `new`.
    """
    names, new_names = _names(old), _names(new)
    if names == new_names or not names or not new_names:
        for index in range(max(len(old), len(new))):
            yield (
                index,
                old[index] if index < len(old) else MISSING,
                new[index] if index < len(new) else MISSING,
            )
        return
    left = dict(zip(new_names, range(len(new)), strict=True))
    for index, name in enumerate(names):
        other = left.pop(name, None)
        yield index, old[index], MISSING if other is None else new[other]
    for index in left.values():
        yield index, MISSING, new[index]


def _names(entries: list[Any]) -> list[str]:
    """Return the names of a list's entries, [] unless each has a name of its own."""
    found = []
    for each in entries:
        members = each if isinstance(each, dict) else {}
        name = next((members[key] for key in _NAMES if key in members), None)
        if not isinstance(name, str):
            return []
        found.append(name)
    return found if len(set(found)) == len(found) else []


def _is_same(old: Any, new: Any) -> bool:
    """Return True if two values are equal, or one of them is redacted."""
    if isinstance(old, bool) is not isinstance(new, bool):
        return False
    if isinstance(old, str) and isinstance(new, str):
        return old == new or _is_hidden(old) or _is_hidden(new)
    return bool(old == new)


def _is_hidden(text: str) -> bool:
    return "‹" in text and HIDDEN_TEXT.search(text) is not None
