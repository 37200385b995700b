"""Plan the registration of a server with a client, and describe it: pure, without files.

1. An entry of the same name that starts the same file is updated: what the user added to it stays.
   Any other entry of that name is replaced as a whole, so that a new program never gets the
   secrets, or the trust, that another one was given.
2. A description shows no values of environment variables and headers: they may be secrets.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_core.host._errors import ConfigFileError

from ._clients import ClientFormat, ServerEntry, entry_members
from ._json_edit import read_json, set_member
from ._toml_edit import read_toml, set_toml_members

__all__ = ["Registration", "describe_registration", "hide_values", "plan_registration"]

_SECRET_MEMBERS: Final = ("env", "headers", "http_headers")
_HIDDEN: Final = "(hidden)"
_HIDDEN_CHANGE: Final = "(hidden, another value)"
# A reference is no secret: ${NAME}, ${env:NAME}.
_REFERENCE: Final = re.compile(r"\$\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Registration:
    """The change of a client's file that registers a server. `plan_registration` returns it.

    Args:
        client: the client.
        name: the name of the server in the file.
        old: the entry that has this name now, or None.
        new: the entry to be written. Equal to `old` if nothing needs to be done.
    """

    client: ClientFormat
    name: str
    old: Any
    new: dict[str, Any]

    @property
    def is_needed(self) -> bool:
        """True if the file does not have the entry."""
        return bool(self.old != self.new)

    def apply(self, text: str) -> str:
        """Return the text of the file with the new entry.

        `text` is the text that `plan_registration` got.

        Raises:
            ConfigFileError: the text cannot be parsed, or not changed without losing something.
            ImportError: the file is TOML, and tomlkit is not installed.
        """
        client, path = self.client, (self.client.servers, self.name)
        if client.syntax is None:
            return set_toml_members(text, path, self.new)
        if not isinstance(self.old, dict) or not self.new.keys() >= self.old.keys():
            return set_member(text, path, self.new, client.syntax)
        for member, value in self.new.items():
            text = self._set(text, (*path, member), self.old.get(member), value)
        return text

    def _set(self, text: str, path: tuple[str, ...], old: Any, value: Any) -> str:
        """Set a member; of an object only the members that differ."""
        assert self.client.syntax is not None
        if isinstance(value, dict) and isinstance(old, dict) and value.keys() >= old.keys():
            for name, each in value.items():
                text = self._set(text, (*path, name), old.get(name), each)
            return text
        return set_member(text, path, value, self.client.syntax)


def plan_registration(client: ClientFormat, server: ServerEntry, text: str) -> Registration:
    """Return the change that registers `server` with `client`, whose file has the text `text`.

    The text is empty if there is no file yet.

    Raises:
        ConfigFileError: the text cannot be parsed, or its servers are no object.
    """
    found = read_toml(text) if client.syntax is None else read_json(text, client.syntax)
    if found is None:
        found = {}
    servers = found.get(client.servers, {}) if isinstance(found, dict) else None
    if not isinstance(servers, dict):
        if client.syntax is not None:
            set_member(text, (client.servers, server.name), {}, client.syntax)  # raises, with line
        raise ConfigFileError(1, f"{client.servers} is not a table")
    old = servers.get(server.name)
    new = entry_members(client, server)
    return Registration(client, server.name, old, _merge_entry(client, old, new))


def _merge_entry(client: ClientFormat, old: Any, new: dict[str, Any]) -> dict[str, Any]:
    """Return the new entry with what the user added to an old one that runs the same file."""
    if not isinstance(old, dict) or not isinstance(old.get("env", {}), dict):
        return new
    args = old.get("args")
    if not isinstance(args, list) or args[-1:] != new["args"][-1:]:
        return new
    env = {**old.get("env", {}), **new.get("env", {})}
    merged = {**old, **new, **({"env": env} if env else {})}
    if client.forwarded is not None and isinstance(old.get(client.forwarded), list):
        names = [*old[client.forwarded], *new.get(client.forwarded, ())]
        merged[client.forwarded] = [name for n, name in enumerate(names) if name not in names[:n]]
    return merged


def describe_registration(change: Registration) -> Iterator[tuple[str, str]]:
    """Yield the lines of the entry before and after `change`, each with "-", "+" or " " before it.

    Values of variables and headers are hidden: they may be secrets.
    """
    old = hide_values(change.old, change.new, _HIDDEN)
    new = hide_values(change.new, change.old, _HIDDEN_CHANGE)
    before = [] if change.old is None else _entry_lines(change, old)
    after = _entry_lines(change, new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for kind, start, end, new_start, new_end in matcher.get_opcodes():
        if kind == "equal":
            yield from ((" ", line) for line in before[start:end])
        else:
            yield from (("-", line) for line in before[start:end])
            yield from (("+", line) for line in after[new_start:new_end])


def _entry_lines(change: Registration, entry: Any) -> Sequence[str]:
    if change.client.syntax is not None:
        text = json.dumps({change.name: entry}, ensure_ascii=False, indent=2)
        return [line[2:] for line in text.split("\n")[1:-1]]
    name = change.name if re.fullmatch(r"[\w-]+", change.name, re.ASCII) else repr(change.name)
    return list(_table_lines(f"{change.client.servers}.{name}", entry))


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
