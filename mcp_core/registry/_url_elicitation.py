"""URL elicitations: signed tokens by which a page knows for which user it was opened.

1. The link to a page can reach another person than the user who was asked: a phishing attack. The
   page must therefore compare its visitor, as its own login knows them, with the user of the
   request (client/elicitation, Phishing). A token carries that user, hidden, and signed.
2. A token isn't a login. It opens nothing by itself: the code that verifies it names the visitor.
3. It is the same in each run of a handler, or each run would elicit another visit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core._errors import McpTrioError
from mcp_core.protocol.input_requests._request_state import InvalidRequestState, StateBinding
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mcp_core.protocol.input_requests._request_state import KeyRing
    from mcp_core.protocol.input_requests._rounds import ServerRoundTrips

__all__ = [
    "ELICITATION_LIFETIME",
    "InvalidUrlElicitation",
    "UrlElicitation",
    "make_url_elicitation",
    "verify_url_elicitation",
]

# Seconds. Long enough to read the request, open the page and log in there; a `requestState`, which
# has to outlive the visit, is valid as long.
ELICITATION_LIFETIME: Final = 600.0

# No method of MCP has this name, so a `requestState` isn't accepted as a token, nor the reverse.
_METHOD: Final = "url elicitation"
_ID_SIZE: Final = 16  # bytes; 128 random bits cannot be guessed


class InvalidUrlElicitation(McpTrioError):
    """The token of a URL elicitation isn't valid for this page and visitor.

    The text is for the log. Show the visitor the same page for every reason.
    """


class UrlElicitation(Struct, frozen=True):
    """The id and the signed token of a URL elicitation, for the request's user.

    Attributes:
        token: put it into the page's URL. It has only characters that need no escape there.
        elicitation_id: a random id, the same in each handler run. Pass it to `Context.elicit_url`,
            and store under it that the user has finished.
    """

    token: str
    elicitation_id: str

    def __repr__(self) -> str:
        return f"<UrlElicitation {self.elicitation_id}>"  # a token doesn't belong into a log


_read_elicitation: Final = reader(UrlElicitation)
_read_id: Final = reader(str)


def make_url_elicitation(
    round_trips: ServerRoundTrips,
    ring: KeyRing,
    name: str,
    principal: str,
    *,
    lifetime: float,
    now: float,
    entropy: Callable[[int], bytes],
) -> UrlElicitation:
    """Return this request's elicitation for the page `name`, a new one in its first run only."""
    key = f"visit {name}"
    stored = round_trips.computed(key)
    if stored is None:
        id = entropy(_ID_SIZE).hex()
        token = ring.seal(encode(id), _binding(name, principal), now, lifetime=lifetime)
        stored = round_trips.store_computed(key, encode(UrlElicitation(token, id)))
    elicitation: UrlElicitation = _read_elicitation(stored)
    return elicitation


def verify_url_elicitation(
    rings: Iterable[KeyRing | None], token: str, name: str, principal: str, now: float
) -> str:
    """Return the elicitation's id. One of `rings` has to have signed it.

    Raises:
        InvalidUrlElicitation: the token isn't valid for this page and visitor, or not any more.
    """
    reason = "this process has issued none"
    for ring in filter(None, rings):
        try:
            id: str = _read_id(ring.open(token, _binding(name, principal), now))
        except (InvalidRequestState, InvalidPayload) as exc:
            reason = exc.reason if isinstance(exc, InvalidRequestState) else "it has no id"
        else:
            return id
    raise InvalidUrlElicitation(f"the visit to {name!r} is refused: {reason}")


def _binding(name: str, principal: str) -> StateBinding:
    return StateBinding(principal, _METHOD, name)
