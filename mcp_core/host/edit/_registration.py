"""Plan the registration of a server file with a client: pure, without files.

An entry of the same name that starts the same file is updated: what the user added to it stays. Any
other entry of that name is replaced as a whole, so that a new program never gets the secrets, or
the trust, that another one was given.
"""

from __future__ import annotations

from typing import Any

from ._changes import MemberChange
from ._clients import ClientFormat, ServerEntry, entry_members
from ._entries import read_entries

__all__ = ["plan_registration", "replaces_another"]


def plan_registration(client: ClientFormat, server: ServerEntry, text: str) -> MemberChange:
    """Return the change that registers `server` with `client`, whose file has the text `text`.

    The text is empty if there is no file yet.

    Raises:
        ConfigFileError: the text cannot be parsed, or its servers aren't an object.
    """
    old = read_entries(client, text).get(server.name)
    new = _merge_entry(client, old, entry_members(client, server))
    return MemberChange(client, (*client.servers, server.name), old, new)


def replaces_another(change: MemberChange) -> bool:
    """Return True if a registration replaces an entry that starts something else.

    Args:
        change: what `plan_registration` has returned.
    """
    return change.old is not None and not _starts_same_file(change.old, change.new)


def _starts_same_file(old: Any, new: dict[str, Any]) -> bool:
    if not isinstance(old, dict) or not isinstance(old.get("env", {}), dict):
        return False
    args = old.get("args")
    return isinstance(args, list) and args[-1:] == new["args"][-1:]


def _merge_entry(client: ClientFormat, old: Any, new: dict[str, Any]) -> dict[str, Any]:
    """Return the new entry with what the user added to an old one that runs the same file."""
    if not _starts_same_file(old, new):
        return new
    env = {**old.get("env", {}), **new.get("env", {})}
    merged = {**old, **new, **({"env": env} if env else {})}
    if client.forwarded is not None and isinstance(old.get(client.forwarded), list):
        names = [*old[client.forwarded], *new.get(client.forwarded, ())]
        merged[client.forwarded] = [name for n, name in enumerate(names) if name not in names[:n]]
    return merged
