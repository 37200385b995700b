"""Guess which side has sent a message, by its method, or by the request that it answers."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mcp_core.protocol.revisions._methods import METHODS, Role
from mcp_core.trace._ids import id_key
from mcp_core.trace._members import lookup

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Side", "SideGuesser"]

Side: TypeAlias = Literal["client", "server"]

_MAX_IDS: Final = 2_000  # of one side
_OTHER: Final[dict[Side, Side]] = {"client": "server", "server": "client"}
_RECEIVERS: Final[dict[str, set[Role | None]]] = {}
for _row in METHODS:
    _RECEIVERS.setdefault(_row.name, set()).add(_row.to)
# Requests of either side, of which servers send few.
_CLIENTS: Final = ("ping", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel")
# Members of results that only a client gives.
_CLIENT_RESULTS: Final = ("roots", "action", "role")


class SideGuesser:
    """The sides of one conversation's messages, in their order."""

    def __init__(self) -> None:
        # The requests of each side by id, answered ones too, and their progress tokens.
        self._ids: dict[Side, OrderedDict[int | str, bool]] = {
            "client": OrderedDict(),
            "server": OrderedDict(),
        }
        self._tokens: dict[Side, OrderedDict[int | str, bool]] = {
            "client": OrderedDict(),
            "server": OrderedDict(),
        }

    def guess(self, message: Mapping[str, Any]) -> Side | None:
        """Return the side that has sent a message, or None if it could be either."""
        method = message.get("method")
        if not isinstance(method, str):
            return self._guess_response(message)
        receivers = _RECEIVERS.get(method)
        if receivers == {Role.SERVER}:
            return "client"
        if receivers == {Role.CLIENT}:
            return "server"
        if method == "notifications/cancelled":
            return self._only(self._ids, lookup(message, "params", "requestId"))
        if method == "notifications/progress":
            asked = self._only(self._tokens, lookup(message, "params", "progressToken"))
            return None if asked is None else _OTHER[asked]
        if method in _CLIENTS:
            key = id_key(message.get("id"))
            return "server" if key in self._ids["client"] else "client"
        return None

    def add(self, message: Mapping[str, Any], side: Side) -> None:
        """Add a message of `side`, so that later ones can be told by it."""
        if not isinstance(message.get("method"), str):
            key = id_key(message.get("id"))
            if key is not None and key in self._ids[_OTHER[side]]:
                self._ids[_OTHER[side]][key] = False  # answered
            return
        if "id" in message:
            _put(self._ids[side], id_key(message["id"]))
            _put(self._tokens[side], id_key(lookup(message, "params", "_meta", "progressToken")))

    def has_open(self, side: Side, id: Any = None) -> bool:
        """Return True if a request of `side` has no response yet: any, or the one with this id."""
        known = self._ids[side]
        if id is None:
            return any(known.values())
        key = id_key(id)
        return key is not None and known.get(key, False)

    def _guess_response(self, message: Mapping[str, Any]) -> Side | None:
        asked = self._only(self._ids, message.get("id"))
        if asked is not None:
            return _OTHER[asked]
        key = id_key(message.get("id"))
        result = message.get("result")
        if key is None or key not in self._ids["client"] or not isinstance(result, dict):
            return None
        # Both sides have asked under this id.
        return "client" if any(each in result for each in _CLIENT_RESULTS) else "server"

    def _only(self, known: dict[Side, OrderedDict[int | str, bool]], value: Any) -> Side | None:
        """Return the side that has a value, or has it open; None if both do, or neither."""
        key = id_key(value)
        if key is None:
            return None
        sides: list[Side] = [each for each in known if key in known[each]]
        if len(sides) > 1:
            sides = [each for each in sides if known[each][key]]
        return sides[0] if len(sides) == 1 else None


def _put(known: OrderedDict[int | str, bool], key: int | str | None) -> None:
    if key is None:
        return
    known[key] = True
    known.move_to_end(key)
    if len(known) > _MAX_IDS:
        known.popitem(last=False)
