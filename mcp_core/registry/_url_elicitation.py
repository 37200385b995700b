"""Visits of a user to a page, and the signed tokens by which the page knows for whom it was opened.

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
    from collections.abc import Callable

    from mcp_core.protocol.input_requests._request_state import KeyRing
    from mcp_core.protocol.input_requests._rounds import ServerRoundTrips

__all__ = ["VISIT_LIFETIME", "InvalidPageVisit", "PageVisit", "make_visit", "verify_visit"]

# Seconds. Long enough to read the request, open the page and log in there; a `requestState`, which
# has to outlive the visit, is valid as long.
VISIT_LIFETIME: Final = 600.0

# Not the name of a method of MCP, so no `requestState` is a token of a visit, nor the reverse.
_METHOD: Final = "page visit"
_ID_SIZE: Final = 16  # bytes; 128 random bits cannot be guessed


class InvalidPageVisit(McpTrioError):
    """A token of a page visit that isn't valid for this page and visitor.

    The text is for the log. Show the visitor the same page for every reason.
    """


class PageVisit(Struct, frozen=True):
    """A visit of the request's user to a page.

    Attributes:
        token: put it into the URL of the page. It has only characters that need no escape there.
        elicitation_id: a random name for the visit, the same in each run of the handler. Pass it to
            `Context.elicit_url`, and store under it that the user has finished.
    """

    token: str
    elicitation_id: str

    def __repr__(self) -> str:
        return f"<PageVisit {self.elicitation_id}>"  # a token doesn't belong into a log


_read_visit: Final = reader(PageVisit)
_read_id: Final = reader(str)


def make_visit(
    round_trips: ServerRoundTrips,
    ring: KeyRing,
    page: str,
    principal: str,
    *,
    lifetime: float,
    now: float,
    entropy: Callable[[int], bytes],
) -> PageVisit:
    """Return the visit to `page` of this request, a new one in its first run only."""
    key = f"visit {page}"
    stored = round_trips.computed(key)
    if stored is None:
        id = entropy(_ID_SIZE).hex()
        token = ring.seal(encode(id), _binding(page, principal), now, lifetime=lifetime)
        stored = round_trips.store_computed(key, encode(PageVisit(token, id)))
    visit: PageVisit = _read_visit(stored)
    return visit


def verify_visit(ring: KeyRing | None, token: str, page: str, principal: str, now: float) -> str:
    """Return the elicitation id of the visit.

    Raises:
        InvalidPageVisit: the token isn't valid for this page and visitor, or not any more.
    """
    try:
        if ring is None:
            raise InvalidRequestState("this process has issued none")
        id: str = _read_id(ring.open(token, _binding(page, principal), now))
    except (InvalidRequestState, InvalidPayload) as exc:
        reason = exc.reason if isinstance(exc, InvalidRequestState) else "it has no id"
        raise InvalidPageVisit(f"the visit to {page!r} is refused: {reason}") from None
    return id


def _binding(page: str, principal: str) -> StateBinding:
    return StateBinding(principal, _METHOD, page)
