"""Remove one member of a JSON or TOML text, and leave the rest of it as it is.

1. What is inside the member goes with it, comments included. A comment before or after it stays: it
   may be about its neighbours.
2. A member of a JSON object takes one comma with it. Lines that would be empty then are removed.
3. A table of TOML may have its statements in several places. All are removed, and the result is
   proved: it is read again, and has all other values.

Sources: RFC 8259; TOML 1.0.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any, Final

from ._json_edit import (
    JsonMember,
    JsonNode,
    JsonSyntax,
    TextEdit,
    apply_edits,
    find_commas,
    find_member,
)
from ._toml_edit import read_toml, set_toml_members, unchangeable_error
from ._toml_places import find_toml_statements

__all__ = ["remove_json_member", "remove_toml_member"]

_BLANK_LINES: Final = re.compile(r"(?:[ \t]*\r?\n)+")
_ENDS_IN_BLANK_LINE: Final = re.compile(r"(?:\A|\n)[ \t]*\r?\n\Z")
_REST_OF_LINE: Final = re.compile(r"[ \t]*(?:\r?\n|\Z)")


def remove_json_member(text: str, path: Sequence[str], syntax: JsonSyntax) -> str:
    """Return `text` without the member at `path`; the same text if there is no such member.

    Args:
        text: the file. It may be empty.
        path: the names from the outermost object to the member; at least one.
        syntax: what the program that owns the file can read.

    Raises:
        ConfigFileError: the text isn't JSON of that syntax, a name on the path occurs twice, or a
            value on the path isn't an object.
    """
    found = find_member(text, path, syntax)
    if found is None:
        return text
    parent, member = found
    return apply_edits(text, _find_removals(text, parent, member))


def _find_removals(text: str, parent: JsonNode, member: JsonMember) -> list[TextEdit]:
    """Return the edits that remove a member of `parent`, and one of the commas around it."""
    start, end = member.start, member.node.end
    before = _comma_before(text, parent, start)
    after = _comma_after(text, parent, end)
    inner_end = parent.end - 1
    if before is None:
        rest = text[parent.start + 1 : start] + text[end:inner_end]
        if not rest.replace(",", "", 1 if after is not None else 0).strip(" \t\r\n"):
            return [TextEdit(parent.start + 1, inner_end, "")]  # it is all that the object has
    if after is not None:
        if not text[end:after].strip(" \t\r\n"):
            return [_remove_span(text, start, after + 1)]
        return [_remove_span(text, start, end), TextEdit(after, after + 1, "")]
    if before is None:
        return [_remove_span(text, start, end)]
    if not text[before + 1 : start].strip(" \t\r\n"):
        return [TextEdit(before, end, "")]
    return [TextEdit(before, before + 1, ""), _remove_span(text, start, end)]


def _comma_before(text: str, parent: JsonNode, position: int) -> int | None:
    """Return the position of the comma before a member, if there is one."""
    # A name that occurs twice is among the members once, with its last position.
    ends = [each.node.end for each in parent.members.values() if each.node.end <= position]
    commas = find_commas(text, max(ends, default=parent.start + 1), position)
    return commas[-1] if commas else None


def _comma_after(text: str, parent: JsonNode, position: int) -> int | None:
    """Return the position of the comma after a member, if there is one."""
    starts = [each.start for each in parent.members.values() if each.start >= position]
    commas = find_commas(text, position, min(starts, default=parent.end - 1))
    return commas[0] if commas else None


def _remove_span(text: str, start: int, end: int) -> TextEdit:
    """Return the edit that removes a span, and its line if nothing else is on the line."""
    line_start = text.rfind("\n", 0, start) + 1
    rest = _REST_OF_LINE.match(text, end)
    if not text[line_start:start].strip(" \t"):
        if rest is not None:
            return TextEdit(line_start, rest.end(), "")
    elif rest is not None:
        return TextEdit(len(text[:start].rstrip(" \t")), end, "")
    while text[end : end + 1] in (" ", "\t"):
        end += 1
    return TextEdit(start, end, "")


def remove_toml_member(text: str, path: Sequence[str]) -> str:
    """Return `text` without the table or key at `path`, or `text` itself if it has none there.

    Args:
        text: the file. It may be empty.
        path: the names from the outermost table to the table or key; at least two.

    Raises:
        ConfigFileError: the text isn't TOML, or the table is written in a way that cannot be
            changed without changing other lines.
        ImportError: the table is in an inline table, and tomlkit isn't installed.
    """
    old = read_toml(text)
    parent: Any = old
    for name in path[:-1]:
        parent = parent.get(name) if isinstance(parent, dict) else None
    if not isinstance(parent, dict) or path[-1] not in parent:
        return text
    spans = _find_spans(text, tuple(path))
    others = {name: value for name, value in parent.items() if name != path[-1]}
    if not spans:  # an inline table has it
        return set_toml_members(text, path[:-1], others)
    new = text
    for start, end in reversed(spans):
        new = _cut_lines(new, start, end)
    if not _has_all_others(new, old, path, others):
        raise unchangeable_error(text, path)
    return new


def _find_spans(text: str, path: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return the spans of statements at `path` or below it. Spans of neighbours are joined."""
    spans: list[tuple[int, int]] = []
    was_inside = False
    for statement in find_toml_statements(text):
        is_inside = statement.path[: len(path)] == path
        if is_inside:
            start = spans.pop()[0] if was_inside else text.rfind("\n", 0, statement.start) + 1
            spans.append((start, statement.end))
        was_inside = is_inside
    return spans


def _cut_lines(text: str, start: int, end: int) -> str:
    """Return `text` without some lines, and without one of two gaps of empty lines around them."""
    before, after = text[:start], text[end:]
    if not after.strip():
        kept = before.rstrip()
        return kept + before[len(kept) :].partition("\n")[0] + "\n" if kept else ""
    if not before or _ENDS_IN_BLANK_LINE.search(before):
        gap = _BLANK_LINES.match(after)
        after = after[gap.end() :] if gap else after
    return before + after


def _has_all_others(
    text: str, old: dict[str, Any], path: Sequence[str], others: dict[str, Any]
) -> bool:
    """Return True if `text` has all values of `old` but the one at `path`.

    A table around it that has become empty may be there or not.
    """
    try:
        new: Any = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    for name in path[:-1]:
        if {**new, name: None} != {**old, name: None}:
            return False
        new, old = new.get(name, {}), old[name]
    return bool(new == others)
