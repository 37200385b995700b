"""Translation between ASGI 3 and HTTP: a scope is a request's head, messages are the bodies.

1. An application is one endpoint, at its path, and where it is mounted in another one. `root_path`
   says how deep it is mounted. Without one it isn't mounted, and nothing else is served.
2. Paths that are sent to a client start at the server root that the client sees.
3. All output of one moment is one message, so the head of a stream comes with a body, an empty one
   if need be: servers may hold a head back until there is one (ASGI, HTTP connection scope).

Source: asgi.readthedocs.io, HTTP & WebSocket, version 2.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from mcp_core.http.wire._messages import Body, Head, RequestHead

from ._router import Router, serve_metadata

__all__ = [
    "MOUNT_POINT",
    "AsgiHttpExchange",
    "client_address",
    "metadata_messages",
    "split_scope",
]

# Paths within an application that no request can have: they begin without a slash.
MOUNT_POINT: Final = "(mount point)"
_NOWHERE: Final = "(nowhere)"
_CLOSE: Final = (b"connection", b"close")


def split_scope(scope: Mapping[str, Any]) -> tuple[RequestHead, bytes]:
    """Return a request's head, and the path within the application.

    A path that begins without a slash leads nowhere, not even to the mount point: servers pass such
    targets on, and what guards paths in front of the application doesn't recognize them.
    """
    root: str = scope.get("root_path", "").rstrip("/")
    # Starlette sets this for what is mounted in it: the part of `root_path` from outside of it.
    outer: str | None = scope.get("app_root_path")
    path: str = scope["path"]
    target: bytes = scope.get("raw_path") or quote(path).encode()
    if _is_below(path, root):
        path = path[len(root) :]
    else:
        # A proxy in front of the server has removed the prefix, or the application has no prefix.
        prefix = root
        if outer is not None and root.startswith(outer):
            mount = root[len(outer.rstrip("/")) :]
            if _is_below(path, mount):
                path = path[len(mount) :]
                prefix = outer.rstrip("/")
        target = quote(prefix).encode() + target
    if not scope["path"].startswith("/"):
        path = _NOWHERE
    elif path in ("", "/") and (root or outer is not None):
        path = MOUNT_POINT
    query: bytes = scope.get("query_string", b"")
    if query:
        target = b"%b?%b" % (target, query)
    return RequestHead(scope["method"].encode(), target, list(scope["headers"])), path.encode()


def client_address(scope: Mapping[str, Any]) -> str:
    """Return the client's address, as the server knows it; "" if it doesn't."""
    client = scope.get("client")
    return client[0] if client else ""


def metadata_messages(document: bytes, scope: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the response to a request for the metadata of a protected resource, at any path.

    A WebSocket is refused.

    Raises:
        ValueError: the scope is of another type than `http` or `websocket`.
    """
    if scope["type"] == "websocket":
        return [{"type": "websocket.close"}]
    if scope["type"] != "http":
        raise ValueError(f"metadata is served for no {scope['type']!r}")
    response = serve_metadata(document, RequestHead(scope["method"].encode(), b"", []))
    headers = [*response.headers]
    if response.body:
        headers.append((b"content-type", response.content_type.encode("ascii")))
    if response.status != 204:
        headers.append((b"content-length", b"%d" % len(response.body)))
    body = b"" if scope["method"] == "HEAD" else response.body
    return [
        {"type": "http.response.start", "status": response.status, "headers": headers},
        {"type": "http.response.body", "body": body, "more_body": False},
    ]


def _is_below(path: str, root: str) -> bool:
    return bool(root) and (path == root or path.startswith(f"{root}/"))


class AsgiHttpExchange:
    """One request to a `router`, made from a `scope` of type `http` (ASGI, HTTP connection scope).

    Pass each message to `receive` as long as it isn't `over`. When its `token` is woken (`wake`),
    send what `messages_to_send` returns. Call `Router.pump` after each call. `now` is the time on
    the router's clock.

    Attributes:
        exchange: the router's exchange.
        gone: True if the client has disconnected.

    Raises:
        ValueError: the scope is of another type.
    """

    __slots__ = ("_closable", "_router", "exchange", "gone")

    def __init__(
        self, router: Router, scope: Mapping[str, Any], now: float, *, token: object
    ) -> None:
        if scope["type"] != "http":
            raise ValueError(f"this application knows no {scope['type']!r}")
        head, path = split_scope(scope)
        self._closable = scope.get("http_version", "1.1") in ("1.0", "1.1")
        self.gone = False
        self._router = router
        self.exchange = router.begin(
            head,
            now,
            path=path,
            token=token,
            address=client_address(scope),
            http_version=scope.get("http_version", ""),
        )

    def __repr__(self) -> str:
        return (
            f"<AsgiHttpExchange {'gone' if self.gone else 'over' if self.over else 'open'}, "
            f"{self.exchange!r}>"
        )

    @property
    def over(self) -> bool:
        """True if the response is complete, or the client has disconnected."""
        return self.gone or self.exchange.over

    def receive(self, message: Mapping[str, Any], now: float) -> None:
        """Receive `message`: `http.request` or `http.disconnect`. Others are ignored."""
        if message["type"] == "http.disconnect":
            self.disconnected(now)
        elif message["type"] == "http.request":
            body = bytes(message.get("body", b""))
            end = not message.get("more_body", False)
            if body or end:
                self._router.receive_data(self.exchange, body, now, end=end)

    @property
    def paused(self) -> bool:
        """Always False: a body that is too long is rejected. It is for WebSockets."""
        return False

    def disconnected(self, now: float) -> None:
        """Report that the client is gone. Harmless once the response is complete."""
        self.gone = True
        self._router.disconnected(self.exchange, now)

    def messages_to_send(self, now: float) -> list[dict[str, Any]]:
        """Return what to send now: `http.response.start`, `http.response.body`, or nothing."""
        actions = self._router.actions_to_send(self.exchange)
        if not actions:
            return []
        messages: list[dict[str, Any]] = []
        first = actions[0]
        if isinstance(first, Head):
            headers = [*first.headers]
            if self.exchange.close_after and self._closable:
                headers.append(_CLOSE)
            messages.append(
                {"type": "http.response.start", "status": first.status, "headers": headers}
            )
        body = b"".join([action.data for action in actions if isinstance(action, Body)])
        messages.append(
            {"type": "http.response.body", "body": body, "more_body": not self.exchange.over}
        )
        return messages
