"""A server's capabilities and whole lists in recorded conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_core.trace._members import META, lookup

from ._recorded import RecordedTrace
from ._turns import turns_of

if TYPE_CHECKING:
    from ._turns import Turn

__all__ = ["RecordedOffers", "recorded_offers"]

_LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/templates/list": "resourceTemplates",
    "resources/list": "resources",
}


class RecordedOffers(Struct):
    """A server's capabilities and lists in one revision of the protocol.

    Attributes:
        revision: the revision.
        server: the server's name, "" if it wasn't recorded.
        capabilities: decoded JSON, or None if they weren't recorded.
        instructions: the server's instructions, "" without any.
        lists: by their names in the protocol, the entries as decoded JSON. A list that wasn't
            recorded to its end is missing.
    """

    revision: str
    server: str = ""
    capabilities: Any = None
    instructions: str = ""
    lists: dict[str, list[Any]] = {}


def recorded_offers(trace: RecordedTrace) -> list[RecordedOffers]:
    """Return what the server offered, by revision. Of a list that was read twice, the last counts.

    Args:
        trace: the recorded conversations.
    """
    found: dict[str, RecordedOffers] = {}
    for session in trace.sessions:
        revision = ""  # of a session with a handshake
        pages: dict[tuple[str, str], list[Any]] = {}  # of lists whose end was not yet read
        for turn in turns_of(session):
            message, result = turn.message, _result(turn)
            if message is None or message.kind != "request":
                continue
            params = message.decode().get("params")
            if message.method == "initialize":
                revision = _text(lookup(result, "protocolVersion"))
            mine = _text(lookup(params, "_meta", f"{META}protocolVersion")) or revision
            if not mine:
                continue
            offers = found.setdefault(mine, RecordedOffers(mine))
            if message.method in ("initialize", "server/discover") and isinstance(result, dict):
                offers.server = _text(lookup(result, "serverInfo", "name"))
                offers.capabilities = result.get("capabilities")
                offers.instructions = _text(result.get("instructions"))
            name = _LISTS.get(message.method, "")
            if name:
                begun = pages.pop((mine, name), None) if lookup(params, "cursor") else []
                entries = lookup(result, name)
                if begun is None or not isinstance(entries, list):
                    offers.lists.pop(name, None)
                elif lookup(result, "nextCursor"):
                    offers.lists.pop(name, None)
                    pages[mine, name] = [*begun, *entries]
                else:
                    offers.lists[name] = [*begun, *entries]
    return list(found.values())


def _result(turn: Turn) -> Any:
    """Return the result in a turn's response, or None."""
    if turn.response is None or turn.response.is_truncated:
        return None
    return turn.response.decode().get("result")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
