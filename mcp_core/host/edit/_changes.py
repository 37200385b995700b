"""The change of one member of a client's file, and its description: pure, without files.

A description shows no values of environment variables and headers: they may be secrets.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ._clients import ClientFormat
from ._json_edit import set_member
from ._removal import remove_json_member, remove_toml_member
from ._toml_edit import set_toml_flag, set_toml_members

__all__ = ["MemberChange", "describe_change", "hide_values"]

_SECRET_MEMBERS: Final = ("env", "environment", "envs", "headers", "http_headers")
_HIDDEN: Final = "(hidden)"
_HIDDEN_CHANGE: Final = "(hidden, another value)"
# A reference isn't a secret: ${NAME}, ${env:NAME}, {env:NAME} of opencode, and in a header
# Bearer ${NAME}.
_REFERENCE: Final = re.compile(r"(?:bearer +)?(?:\$\{[^{}]*\}|\{env:[^{}]*\})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class MemberChange:
    """The change of one member of a client's file, such as a server's entry.

    Args:
        client: the client.
        path: the names from the outermost object of the file to the member; at least one.
        old: the value that the member has now; None if it has none, or null.
        new: the value to be written, equal to `old` if nothing needs to be done; None removes the
            member. In TOML it is an object, or true or false.
    """

    client: ClientFormat
    path: tuple[str, ...]
    old: Any
    new: Any

    @property
    def is_needed(self) -> bool:
        """True if the file doesn't have the new value."""
        return self.new is None or bool(self.old != self.new)

    def apply(self, text: str) -> str:
        """Return the file's text with the change made.

        `text` is the text for which the change was planned.

        Raises:
            ConfigFileError: the text cannot be parsed, or not changed without losing something.
            ImportError: the file is TOML, and tomlkit isn't installed.
        """
        client, path = self.client, self.path
        if client.syntax is None:
            return self._apply_to_toml(text)
        if self.new is None:
            return remove_json_member(text, path, client.syntax)
        is_wider = isinstance(self.old, dict) and isinstance(self.new, dict)
        if not is_wider or not self.new.keys() >= self.old.keys():
            return set_member(text, path, self.new, client.syntax)
        for member, value in self.new.items():
            text = self._set(text, (*path, member), self.old.get(member), value)
        return text

    def _apply_to_toml(self, text: str) -> str:
        if self.new is None:
            return remove_toml_member(text, self.path)
        if isinstance(self.new, bool):
            return set_toml_flag(text, self.path, self.new)
        return set_toml_members(text, self.path, self.new)

    def _set(self, text: str, path: tuple[str, ...], old: Any, value: Any) -> str:
        """Set a member; of an object only the members that differ."""
        assert self.client.syntax is not None
        if isinstance(value, dict) and isinstance(old, dict) and value.keys() >= old.keys():
            for name, each in value.items():
                text = self._set(text, (*path, name), old.get(name), each)
            return text
        return set_member(text, path, value, self.client.syntax)


def describe_change(change: MemberChange) -> Iterator[tuple[str, str]]:
    """Yield the lines of the member before and after `change`, each with "-", "+" or " " before it.

    Values of variables and headers are hidden: they may be secrets.
    """
    old = hide_values(change.old, change.new, _HIDDEN)
    new = hide_values(change.new, change.old, _HIDDEN_CHANGE)
    before = [] if change.old is None else _entry_lines(change, old)
    after = [] if change.new is None else _entry_lines(change, new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in before[start:end])
        else:
            yield from (("-", line) for line in before[start:end])
            yield from (("+", line) for line in after[new_start:new_end])


def _entry_lines(change: MemberChange, entry: Any) -> Sequence[str]:
    if change.client.syntax is not None:
        text = json.dumps({change.path[-1]: entry}, ensure_ascii=False, indent=2)
        return [line[2:] for line in text.split("\n")[1:-1]]
    names = (
        name if re.fullmatch(r"[\w-]+", name, re.ASCII) else json.dumps(name, ensure_ascii=False)
        for name in change.path
    )
    return list(_table_lines(".".join(names), entry))


def _table_lines(path: str, table: Any) -> Iterator[str]:
    """Return a table as TOML, for people: JSON spells strings, numbers and lists alike."""
    if not isinstance(table, dict):
        yield f"{path} = {json.dumps(table, ensure_ascii=False, default=str)}"
        return
    yield f"[{path}]"
    for name, value in table.items():
        if not isinstance(value, dict):
            yield f"{name} = {json.dumps(value, ensure_ascii=False, default=str)}"
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _table_lines(f"{path}.{name}", value)


def hide_values(entry: Any, other: Any = None, changed: str = _HIDDEN) -> Any:
    """Return an entry without the values of its variables and headers.

    Args:
        entry: an entry of any client.
        other: the entry to compare with, so that a description shows which values differ.
        changed: in place of a value that `other` has with another value.
    """
    if not isinstance(entry, dict):
        return entry
    other = other if isinstance(other, dict) else {}
    shown = dict(entry)
    for member in _SECRET_MEMBERS:
        values, others = entry.get(member), other.get(member)
        if isinstance(values, dict):
            others = others if isinstance(others, dict) else values
            shown[member] = {
                name: value
                if isinstance(value, str) and _REFERENCE.fullmatch(value)
                else (_HIDDEN if others.get(name, value) == value else changed)
                for name, value in values.items()
            }
    return shown
