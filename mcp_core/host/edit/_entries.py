"""Plan to add, replace, remove, disable or enable a server's entry: pure, without files.

A plan is made for one text of a file, and is a list of changes of single members. What an entry
means doesn't matter: a broken one can be removed.
"""

from __future__ import annotations

from typing import Any, Final

from mcp_core.host._errors import ConfigFileError

from ._changes import MemberChange
from ._clients import ClientFormat
from ._json_edit import find_member, parse_json, read_json
from ._toml_edit import read_toml
from ._toml_places import find_toml_places

__all__ = [
    "find_entry_line",
    "plan_disabling",
    "plan_enabling",
    "plan_entry",
    "plan_removal",
    "read_entries",
]

# Members that turn a server on or off, with the value that turns it on.
_ON: Final = {"disabled": False, "enabled": True}


def read_entries(client: ClientFormat, text: str) -> dict[str, Any]:
    """Return the entries of a file by name, as the file has them.

    Args:
        client: the client whose format the file has.
        text: the file. It may be empty.

    Raises:
        ConfigFileError: the text cannot be parsed, or its servers aren't an object.
    """
    found = read_toml(text) if client.syntax is None else read_json(text, client.syntax)
    if found is None:
        return {}
    for name in client.servers:
        found = found.get(name, {}) if isinstance(found, dict) else None
    if isinstance(found, dict):
        return found
    if client.syntax is not None:
        find_member(text, (*client.servers, ""), client.syntax)  # raises, with the line
    raise ConfigFileError(1, f"{client.servers[-1]} is not a table")


def find_entry_line(client: ClientFormat, name: str, text: str) -> int | None:
    """Return the line of a server's entry, counted from 1; None if the file has none.

    Args:
        client: the client whose format the file has.
        name: the server's name.
        text: the file. It may be empty.

    Raises:
        ConfigFileError: the text cannot be parsed, or its servers aren't an object.
    """
    if name not in read_entries(client, text):
        return None
    path = (*client.servers, name)
    if client.syntax is None:
        places = find_toml_places(text)
        position = places.get(path, places.get(path[:1], 0))  # an inline table has no places
    else:
        position, node = 0, parse_json(text, client.syntax)
        for part in path:
            assert node is not None
            position, node = node.members[part]
    return text.count("\n", 0, position) + 1


def plan_entry(client: ClientFormat, name: str, members: dict[str, Any], text: str) -> MemberChange:
    """Return the change that gives a server the entry `members`, in place of any other.

    Args:
        client: the client whose format the file has.
        name: the server's name.
        members: the new entry, such as `entry_members` returns.
        text: the file. It may be empty.

    Raises:
        ConfigFileError: the text cannot be parsed, or its servers aren't an object.
    """
    old = read_entries(client, text).get(name)
    return MemberChange(client, (*client.servers, name), old, members)


def plan_removal(client: ClientFormat, name: str, text: str) -> list[MemberChange]:
    """Return the changes that remove a server's entry; none if the file has none.

    Args:
        client: the client whose format the file has.
        name: the server's name.
        text: the file. It may be empty.

    Raises:
        ConfigFileError: the text cannot be parsed, or its servers aren't an object.
    """
    entries = read_entries(client, text)
    if name not in entries:
        return []
    return [MemberChange(client, (*client.servers, name), entries[name], None)]


def plan_disabling(client: ClientFormat, name: str, text: str) -> list[MemberChange]:
    """Return the changes that turn a server of a file off; none if it is off already.

    Args:
        client: the client whose format the file has.
        name: the name of a server that the file has.
        text: the file.

    Raises:
        ConfigFileError: the text cannot be parsed, or the entry or list to change has another type.
        ValueError: the format has no way to turn a server off.
    """
    if client.disabling is None:
        raise ValueError(
            f"the file of {client.title} cannot turn a server off: do it in {client.title}, or"
            " remove the server"
        )
    if client.disabling == "mcp.excluded":
        names = _read_list(client, "excluded", text)
        return [] if name in (names or ()) else [_change_list(client, "excluded", names, name)]
    member = client.disabling
    entry = _read_entry(client, name, text)
    off = not _ON[member]
    if entry.get(member) is off:
        return []
    return [MemberChange(client, (*client.servers, name, member), entry.get(member), off)]


def plan_enabling(client: ClientFormat, name: str, text: str) -> list[MemberChange]:
    """Return the changes that turn a server of a file on; none if it is on already.

    Args:
        client: the client whose format the file has.
        name: the name of a server that the file has.
        text: the file.

    Raises:
        ConfigFileError: the text cannot be parsed, or the entry or list to change has another type.
    """
    entry = _read_entry(client, name, text)
    changes = [
        MemberChange(client, (*client.servers, name, member), entry[member], None)
        for member in _ON
        if member in entry and entry[member] is not _ON[member]
    ]
    if client.disabling == "mcp.excluded":
        _require_not_in_older_lists(client, name, text)
        excluded = _read_list(client, "excluded", text)
        plain = name.strip().lower()
        others = [each for each in excluded or () if str(each).strip().lower() != plain]
        if excluded is not None and others != excluded:
            changes.append(MemberChange(client, ("mcp", "excluded"), excluded, others))
        allowed = _read_list(client, "allowed", text)
        if allowed is not None and name not in allowed:
            changes.append(_change_list(client, "allowed", allowed, name))
    return changes


def _require_not_in_older_lists(client: ClientFormat, name: str, text: str) -> None:
    """Check that the lists of Gemini CLI up to version 0.3 don't turn a server off.

    Raises:
        ConfigFileError: they do.
    """
    assert client.syntax is not None
    for member in "allowMCPServers", "excludeMCPServers":
        found = find_member(text, (member,), client.syntax)
        names = None if found is None else found[1].node.value
        if found is None or names is None:
            continue
        listed = [str(each).strip().lower() for each in names] if isinstance(names, list) else []
        is_listed = name.strip().lower() in listed
        if is_listed != (member == "allowMCPServers") or not isinstance(names, list):
            line = text.count("\n", 0, found[1].start) + 1
            problem = f"{member} turns the server off too: change it by hand"
            raise ConfigFileError(line, problem)


def _read_entry(client: ClientFormat, name: str, text: str) -> dict[str, Any]:
    entry = read_entries(client, text)[name]
    if isinstance(entry, dict):
        return entry
    line = find_entry_line(client, name, text) or 1
    raise ConfigFileError(line, "the entry of the server is not an object; remove or replace it")


def _read_list(client: ClientFormat, member: str, text: str) -> list[Any] | None:
    """Return a list of names of Gemini CLI, or None if the file has none."""
    assert client.syntax is not None
    found = find_member(text, ("mcp", member), client.syntax)
    if found is None or found[1].node.value is None:
        return None
    names = found[1].node.value
    if isinstance(names, list):
        return names
    line = text.count("\n", 0, found[1].start) + 1
    raise ConfigFileError(line, f"mcp.{member} is not an array")


def _change_list(
    client: ClientFormat, member: str, names: list[Any] | None, name: str
) -> MemberChange:
    return MemberChange(client, ("mcp", member), names, [*(names or ()), name])
