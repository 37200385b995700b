"""One exchange of a proxy: what the proxy answers by itself, and which connections stay open.

A driver passes the bytes on, says what has happened, and does what this file decides.

The proxy answers by itself only if the server cannot: with 502 or 504, and the cause. A response
whose head has passed is never replaced.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from mcp_core._text import escape_text

from ._forwarded import end_to_end
from ._messages import Headers

__all__ = [
    "GatewayError",
    "ProxiedEnd",
    "ProxiedExchange",
    "gateway_timeout",
    "proxy_error_response",
]

_WITHOUT_BODY: Final = (204, 304)

ServerEnd = Literal["closed", "reset", "timeout"]


class GatewayError(Struct, frozen=True):
    """The proxy's own answer to a request that the server has not answered (RFC 9110, 15.6).

    Attributes:
        reason: the cause, for the body.
        status: 502, or 504 if the server did not react in time.
    """

    reason: str
    status: int = 502

    @property
    def end(self) -> Literal["reset", "timeout"]:
        """How the exchange has ended, for its trace."""
        return "timeout" if self.status == 504 else "reset"

    @property
    def note(self) -> str:
        """A line for the trace, which has no response from the server."""
        return f"the proxy answered {self.status}: {self.reason}"


_NO_RESPONSE: Final[dict[ServerEnd, GatewayError]] = {
    "closed": GatewayError("the server closed the connection without an answer"),
    "reset": GatewayError("the server reset the connection"),
    "timeout": GatewayError(
        "the server does not react any more: its machine or the network is down", 504
    ),
}


class ProxiedEnd(Struct, frozen=True):
    """The end of an exchange, and its consequences for both connections.

    Attributes:
        ended_by: who has ended it early; None if it is complete.
        keeps_client: the client may send its next request on the connection.
        keeps_server: the server's connection may be used for the next request.
        lingers: let the client read the response before its connection is closed.
    """

    ended_by: Literal["client", "server"] | None
    keeps_client: bool
    keeps_server: bool
    lingers: bool


class ProxiedExchange:
    """The state of one exchange, and what the proxy does in it.

    Set the attributes about request and response when they become true. Call `receive_head` with
    the response's head, `missing_response` if no more of the response will come, and `finish` at
    the end.

    Args:
        method: the request's.
        is_http_1_1: whether the client has HTTP/1.1.
        keep_alive: whether the client may send more requests on the connection.

    Attributes:
        status: the response's; 0 before its head. A driver that sends a `GatewayError` sets it.
        is_chunked: the client gets the body in chunks.
        request_received: the client has sent its whole request.
        request_sent: the server was sent the whole request.
        response_passed: the client was sent the whole response.
        client_disconnected: the client has disconnected.
    """

    def __init__(self, method: bytes, *, is_http_1_1: bool, keep_alive: bool) -> None:
        self.status = 0
        self.is_chunked = False
        self.request_received = False
        self.request_sent = False
        self.response_passed = False
        self.client_disconnected = False
        self._method = method
        self._is_http_1_1 = is_http_1_1
        self._closes = not (keep_alive and is_http_1_1)

    def __repr__(self) -> str:
        return f"<ProxiedExchange {self._method.decode('latin-1')}, status {self.status}>"

    @property
    def passes_interim(self) -> bool:
        """True if the client understands responses such as "100 Continue" (RFC 9110, 15.2)."""
        return self._is_http_1_1

    def receive_head(self, status: int, headers: Headers) -> Headers:
        """Take the response's head.

        Args:
            status: its status code.
            headers: the server's, as it has written them.

        Returns:
            The headers for the client, with the framing of its connection (RFC 9112, 6.3).
        """
        self.status = status
        fields = end_to_end(headers)
        is_head = self._method == b"HEAD"
        has_body = not is_head and status not in _WITHOUT_BODY
        from_chunks = any(name.lower() == b"transfer-encoding" for name, _ in headers)
        if from_chunks and has_body:
            # Chunks count, and a length beside them is wrong.
            fields = [field for field in fields if field[0].lower() != b"content-length"]
        has_length = any(name.lower() == b"content-length" for name, _ in fields)
        # Without chunks the connection's end ends the body.
        self.is_chunked = has_body and not has_length and self._is_http_1_1
        if self.is_chunked or (is_head and from_chunks and self._is_http_1_1):
            fields.append((b"Transfer-Encoding", b"chunked"))
        if self._closes:
            fields.append((b"Connection", b"close"))
        return fields

    def missing_response(self, end: ServerEnd | None, error: str | None) -> GatewayError | None:
        """Return what the client gets in place of a response that won't come.

        Args:
            end: how the server has ended the connection; None if it has not.
            error: why the response cannot be read; None if it can.

        Returns:
            None if the response's head has passed: then the response ends early.
        """
        if self.status:
            return None
        if end is not None:
            return _NO_RESPONSE[end]
        return GatewayError(f"the server's answer is not HTTP/1.1: {error}")

    def finish(self, *, server_is_idle: bool) -> ProxiedEnd:
        """Decide about the connections.

        Args:
            server_is_idle: whether the server keeps its connection open, and has sent nothing after
                its response.
        """
        is_complete = self.response_passed and not self.client_disconnected
        ended_by: Literal["client", "server"] | None = None
        if self.client_disconnected:
            ended_by = "client"
        elif not self.response_passed:
            ended_by = "server"
        keeps_client = is_complete and self.request_received and not self._closes
        return ProxiedEnd(
            ended_by=ended_by,
            keeps_client=keeps_client,
            keeps_server=is_complete and self.request_sent and server_is_idle,
            lingers=is_complete and not keeps_client,
        )


def gateway_timeout(server: str, seconds: float) -> GatewayError:
    """Return the answer if the server has not accepted a connection in time.

    Args:
        server: its name and port, as in `Host`.
        seconds: the time that it had.
    """
    return GatewayError(f"{server} did not accept a connection within {seconds:g} s", 504)


def proxy_error_response(reason: str) -> tuple[Headers, bytes]:
    """Return the headers and body of a response by the proxy itself, after which it disconnects.

    Args:
        reason: the cause, and the cure if there is one.
    """
    body = f"mcp-trio proxy: {escape_text(reason)}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", b"%d" % len(body)),
        (b"connection", b"close"),
    ]
    return headers, body
