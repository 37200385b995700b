"""What is served at one address: endpoints by their paths, and plain routes beside them.

Rule of this file: a path is compared to the letter, but for one slash at its end. What is nowhere is 404, and who asks for it learns
nothing else.

It refuses to know what is behind a plain route: a function that gives a whole answer at once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from mcp_core._events import NEED_DATA

from ._exchange import Exchange
from ._handshake import is_upgrade
from ._messages import Headers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcp_core._events import Event, NeedData

    from ._conversation import Conversation
    from ._endpoint import Endpoint
    from ._guarding import Door
    from ._messages import RequestHead

__all__ = ["PlainAnswer", "Site"]


class PlainAnswer(Struct, frozen=True):
    """A whole response, of a plain route. `headers` are further ones; their names are in lower case."""

    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    headers: Headers = []


class Site:
    """Endpoints and plain routes by path.

    For each request call `begin`, give its body to the `Exchange`, and then, as after every other call: take `next_event` until it
    gives `NEED_DATA`, write what the exchanges of `ready` have to send, and set one timer to `next_deadline`. `pump` does the first
    two.

    A plain route is called with the head of a request, without its body, and must not block. What it raises passes through `begin`.

    Raises:
        ValueError: two endpoints are at the same path; or the metadata of two guards belong at the same place, and are not the same.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        routes: Mapping[str, Callable[[RequestHead], PlainAnswer]] | None = None,
    ) -> None:
        self.endpoints = tuple(dict.fromkeys(endpoints.values()))  # one may be at several paths
        self._by_path: dict[bytes, Endpoint] = {}
        for path, endpoint in endpoints.items():
            if self._by_path.setdefault(_canonical(path.encode()), endpoint) is not endpoint:
                raise ValueError(f"two servers are at {path!r}: a slash at the end makes no difference")
        self._routes = {_canonical(path.encode()): route for path, route in (routes or {}).items()}
        doors = [endpoint.door for endpoint in self.endpoints if endpoint.door is not None]
        for place, document in _published(doors).items():
            self._routes.setdefault(place, partial(_metadata, document))
        self._plain: list[Exchange] = []
        self._pumping = False

    def __repr__(self) -> str:
        return f"<Site of {len(self.endpoints)} endpoints and {len(self._routes)} plain routes>"

    @property
    def idle(self) -> bool:
        """Whether no answer is under way."""
        return not self._plain and all(endpoint.idle for endpoint in self.endpoints)

    def begin(
        self,
        head: RequestHead,
        now: float,
        *,
        path: bytes | None = None,
        token: object = None,
        principal: str = "",
        may_switch: bool = False,
    ) -> Exchange:
        """A request begins. If it `needs_grant`, do what its guard wants. `path` is where in this site, if it is not where the client
        sees it; `token` is the driver's own; `principal` who asks, as authenticated; `may_switch`: the connection can go on as a
        WebSocket."""
        path = _canonical(head.target.partition(b"?")[0] if path is None else path)
        endpoint = self._by_path.get(path)
        switches = may_switch and is_upgrade(head)
        if endpoint is not None:
            return endpoint.begin(head, now, token=token, principal=principal, switches=switches)
        exchange = Exchange(None, token)
        exchange.hang_up = switches
        route = self._routes.get(path)
        answer = route(head) if route is not None else _NOT_FOUND
        headers = [*answer.headers]
        if answer.body:
            headers.append((b"content-type", answer.content_type.encode("ascii")))
        exchange.is_head = head.method == b"HEAD"
        exchange.respond(answer.status, answer.body, headers)
        self._plain.append(exchange)
        return exchange

    def next_event(self) -> tuple[Conversation, Event] | NeedData:
        """The next fact, and the conversation in which it happened."""
        for endpoint in self.endpoints:
            found = endpoint.next_event()
            if found is not None:
                return found
        return NEED_DATA

    def ready(self) -> list[Exchange]:
        """The exchanges that have something to write since the last time this was asked."""
        found, self._plain = self._plain, []
        for endpoint in self.endpoints:
            if endpoint.ready:
                found += endpoint.ready
                endpoint.ready.clear()
        return found

    def pump(self, welcome: Callable[[Conversation], Callable[[Event], object]]) -> None:
        """Act on the events, and poke the tokens of the exchanges that have something to write. Neither may wait; both may end up here
        again, which does nothing, for the call that is under way goes on with what there is then.

        `welcome` is called at the first event of a conversation, and gives what is called with each of its events."""
        if self._pumping:
            return
        self._pumping = True
        try:
            while True:
                while isinstance(found := self.next_event(), tuple):
                    conversation, event = found
                    if conversation.take is None:
                        conversation.take = welcome(conversation)
                    conversation.take(event)
                ready = self.ready()
                if not ready:
                    return
                for exchange in ready:
                    exchange.token.poke()
        finally:
            self._pumping = False

    def next_deadline(self) -> float | None:
        """When to call `handle_timeout`, None for never."""
        first: float | None = None
        for endpoint in self.endpoints:
            due = endpoint.next_deadline()
            if due is not None and (first is None or due < first):
                first = due
        return first

    def handle_timeout(self, now: float) -> None:
        """The time is `now`: keep streams alive, end what nobody uses."""
        for endpoint in self.endpoints:
            endpoint.handle_timeout(now)

    def wind_down(self) -> None:
        """Take no more requests; what runs goes on until `close`."""
        for endpoint in self.endpoints:
            endpoint.wind_down()

    def close(self) -> None:
        """End all conversations and streams."""
        for endpoint in self.endpoints:
            endpoint.close()


_READ: Final = b"GET, HEAD, OPTIONS"
_FOR_ALL: Final[Headers] = [(b"access-control-allow-origin", b"*")]
_PREFLIGHT: Final[Headers] = [
    (b"access-control-allow-methods", _READ),
    (b"access-control-allow-headers", b"*"),
    (b"access-control-max-age", b"600"),
]


def _published(doors: Iterable[Door]) -> dict[bytes, bytes]:
    """The metadata of guarded endpoints, by their paths. Each is at its own place. The root, where clients look that found nothing
    there, can speak for one resource only: with several it is silent, for whom it named would get the tokens for all.

    Raises:
        ValueError: two are at the same place, and are not the same.
    """
    own: dict[bytes, bytes] = {}
    spare: dict[bytes, set[bytes]] = {}
    for door in doors:
        document = door.guard.metadata()
        place, *others = door.guard.metadata_paths
        if own.setdefault(_canonical(place.encode()), document) != document:
            raise ValueError(
                f"two guards have their metadata at {place!r}: give each a resource with a path of its own"
            )
        for other in others:
            spare.setdefault(_canonical(other.encode()), set()).add(document)
    return {place: documents.pop() for place, documents in spare.items() if len(documents) == 1} | own


def _metadata(document: bytes, head: RequestHead) -> PlainAnswer:
    """How tokens for a guarded endpoint are come by (RFC 9728): for everybody, also for pages of any origin."""
    if head.method in (b"GET", b"HEAD"):
        return PlainAnswer(200, document, "application/json", _FOR_ALL)
    if head.method == b"OPTIONS":
        return PlainAnswer(204, headers=[*_FOR_ALL, *_PREFLIGHT])
    return PlainAnswer(405, headers=[(b"allow", _READ)])


_NOT_FOUND = PlainAnswer(404, b"There is nothing at this path.\n")


def _canonical(path: bytes) -> bytes:
    return path.removesuffix(b"/")
