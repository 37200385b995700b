"""HTTP as ASGI 3 spells it: a scope is the head of a request, messages are its body and the response.

Rules of this file:

1. An application is one endpoint. It is at its own root, which is where somebody has mounted it, and at its path beneath; how deep
   it is mounted, `root_path` tells. Beside it there is nothing.
2. A client is told paths as it sees them, from the root of the server that it talks to.
3. What is said at the same time is one message. So the head of a stream comes with a body, an empty one if need be: servers may
   hold a head back until there is one (ASGI, HTTP connection scope).

It refuses to know how messages are waited for, and what is in them. Source: asgi.readthedocs.io, HTTP & WebSocket, version 2.5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from ._messages import Body, Head, RequestHead

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._site import Site

__all__ = ["AsgiExchange", "split_scope"]

_CLOSE: Final = (b"connection", b"close")


def split_scope(scope: Mapping[str, Any]) -> tuple[RequestHead, bytes]:
    """The head of a request, and the path within the application."""
    root: str = scope.get("root_path", "").rstrip("/")
    path: str = scope["path"]
    target: bytes = scope.get("raw_path") or quote(path).encode()
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    else:
        # Somebody in front of the server has taken it away, or there is none.
        target = quote(root).encode() + target
    query: bytes = scope.get("query_string", b"")
    if query:
        target = b"%b?%b" % (target, query)
    return RequestHead(scope["method"].encode(), target, list(scope["headers"])), path.encode()


class AsgiExchange:
    """One request to a `site`, by the `scope` of type `http` that tells of it.

    Give it each message that arrives by `receive`, as long as it is not `over`; and when its token hears that there is something to
    write, send what `messages_to_send` gives. As with all that belongs to a site, take the events out after each call. `gone`: nobody is
    there any more.

    Raises:
        ValueError: the scope is of another type.
    """

    __slots__ = ("_closable", "_site", "exchange", "gone")

    def __init__(self, site: Site, scope: Mapping[str, Any], now: float, *, token: object) -> None:
        if scope["type"] != "http":
            raise ValueError(f"this application knows no {scope['type']!r}")
        head, path = split_scope(scope)
        self._closable = scope.get("http_version", "1.1") in ("1.0", "1.1")
        self.gone = False
        self._site = site
        self.exchange = site.begin(head, now, path=path, token=token)

    def __repr__(self) -> str:
        return f"<AsgiExchange {'gone' if self.gone else 'over' if self.over else 'open'}, {self.exchange!r}>"

    @property
    def over(self) -> bool:
        """Whether nothing is left to be taken, or nobody is there any more."""
        return self.gone or self.exchange.over

    def receive(self, message: Mapping[str, Any], now: float) -> None:
        """A message has arrived: `http.request` or `http.disconnect`."""
        if message["type"] == "http.disconnect":
            self.disconnected(now)
        elif message["type"] == "http.request":
            body = bytes(message.get("body", b""))
            end = not message.get("more_body", False)
            if body or end:
                self._site.receive_data(self.exchange, body, now, end=end)

    @property
    def paused(self) -> bool:
        """Never: what is too much of a request is refused. A WebSocket is different."""
        return False

    def disconnected(self, now: float) -> None:
        """The client is gone, or nothing can be sent any more. Harmless when all was said."""
        self.gone = True
        self._site.disconnected(self.exchange, now)

    def messages_to_send(self, now: float) -> list[dict[str, Any]]:
        """What is to be sent now: `http.response.start`, `http.response.body`, or nothing."""
        actions = self._site.actions_to_send(self.exchange)
        if not actions:
            return []
        messages: list[dict[str, Any]] = []
        first = actions[0]
        if isinstance(first, Head):
            headers = [*first.headers]
            if self.exchange.hang_up and self._closable:
                headers.append(_CLOSE)
            messages.append({"type": "http.response.start", "status": first.status, "headers": headers})
        body = b"".join([action.data for action in actions if isinstance(action, Body)])
        messages.append({"type": "http.response.body", "body": body, "more_body": not self.exchange.over})
        return messages
