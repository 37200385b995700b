"""One client connection of an HTTP proxy, and the connection to the server that it uses.

1. The proxy refuses a request head that could be read in two ways. Otherwise the proxy and the
   server could see different requests (RFC 9112, 11.2).
2. The proxy sends a response of its own only if the server sends none: 502 or 504, with the cause.
   The recorder gets a note, and no response.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import trio

from mcp_core import ConnectFailed, escape_text
from mcp_core.http import (
    HEAD_TIMEOUT,
    MAX_EMPTY_LINES,
    GatewayError,
    ProxyRefusal,
    RequestHead,
    empty_lines,
    find_partial_head_error,
    gateway_timeout,
    head_end,
    proxied_request_headers,
    proxy_error_response,
    written_fields,
)
from mcp_core.runtime import READ_SIZE
from mcp_trio.http_client._h11_connection import has_input
from mcp_trio.http_server._connection import (
    HEAD_SECONDS,
    IDLE_SECONDS,
    LINGER_SECONDS,
    MAX_UNWANTED,
    AccessLogEntry,
)
from mcp_trio.http_server._h11_heads import (
    CHUNKED,
    BadRequest,
    HeadReader,
    date_line,
    status_lines,
)

from ._http_exchange import BROKEN, NoResponse, PassedBody, ProxyExchange, head_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core.adapters import Recorder
    from mcp_core.http import Headers, PassedRequest, ProxyPolicy, Url
    from mcp_trio.http_client._connector import Connector
    from mcp_trio.http_server._h11_heads import ReceivedHead

__all__ = ["ProxyConnection", "Upstream"]

_CONNECT_TIMEOUT: Final = 10.0  # seconds

_log = logging.getLogger("mcp_trio")


class Upstream:
    """The server behind a proxy: its URL, a connector to it, and the headers to add."""

    def __init__(
        self, url: Url, connector: Connector, headers: Mapping[str, str] | None = None
    ) -> None:
        self.url = url
        self._connector = connector
        self._headers = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        self.header_names = frozenset(name.lower().decode() for name, _ in self._headers)

    @property
    def adds_headers(self) -> bool:
        """True if the proxy adds headers. Each client then has the rights that they give."""
        return bool(self._headers)

    async def connect(self) -> trio.abc.Stream:
        """Open a connection.

        Raises:
            NoResponse: the server cannot be reached; it has the answer for the client.
        """
        with trio.move_on_after(_CONNECT_TIMEOUT):
            try:
                return await self._connector.connect_stream()
            except ConnectFailed as exc:
                raise NoResponse(GatewayError(str(exc))) from None
        raise NoResponse(gateway_timeout(self.url.authority.decode(), _CONNECT_TIMEOUT))

    def rewrite(self, head: ReceivedHead, fields: Headers, request: PassedRequest) -> bytes:
        """Return a request's head as the proxy sends it to the server.

        Args:
            head: the head that the client sent.
            fields: its fields, with the names as the client has written them.
            request: the policy's decision about it.
        """
        passed = proxied_request_headers(
            fields, self.url, request, self._headers, is_chunked=head.length == CHUNKED
        )
        sent = self._connector.absolute_head(
            RequestHead(head.request.method, head.request.target, passed)
        )
        return head_bytes(b"%b %b HTTP/1.1\r\n" % (sent.method, sent.target), sent.headers)


class ProxyConnection:
    """One client connection on `stream`. Await `run`, which closes the stream.

    Args:
        stream: the connection.
        upstream: the server.
        policy: decides which requests pass.
        recorder: records the exchanges; None for no recording.
        on_exchange: called with an `AccessLogEntry` after each exchange.
    """

    def __init__(
        self,
        stream: trio.abc.HalfCloseableStream,
        upstream: Upstream,
        policy: ProxyPolicy,
        recorder: Recorder | None = None,
        on_exchange: Callable[[AccessLogEntry], object] | None = None,
    ) -> None:
        self._client = stream
        self._upstream = upstream
        self._policy = policy
        self._recorder = recorder
        self._on_exchange = on_exchange
        self._heads = HeadReader()
        self._incoming = b""  # received from the client, and not used yet
        self._server: trio.abc.Stream | None = None  # kept for the next request

    async def run(self) -> None:
        """Pass on requests and responses until the connection ends."""
        try:
            while (block := await self._read_head()) is not None:
                if not await self._pass_exchange(block):
                    break
        except BadRequest as exc:
            await self._refuse(exc.status, str(exc))
        except BROKEN:
            pass
        except Exception:  # noqa: BLE001 - it ends this connection and no other
            _log.exception("internal error of the proxy")
        finally:
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._client)
                await self._drop_server()

    # -- The request -------------------------------------------------------------------------------

    async def _read_head(self) -> bytes | None:
        """Return the next request head as bytes, or None if the client sends none.

        Raises:
            BadRequest: the bytes aren't the beginning of a valid head, or arrive too slowly.
        """
        searched = 0
        deadline = trio.current_time() + IDLE_SECONDS
        while True:
            lines = empty_lines(self._incoming, MAX_EMPTY_LINES)
            self._incoming = self._incoming[2 * lines :]
            if self._incoming:
                if not searched:
                    deadline = min(deadline, trio.current_time() + HEAD_SECONDS)
                end = head_end(self._incoming, searched)
                if end is not None:
                    block = self._incoming[:end]
                    self._incoming = self._incoming[end:]
                    return block
                partial = find_partial_head_error(self._incoming)
                if partial is not None:
                    raise BadRequest(partial.status, partial.reason)
                searched = len(self._incoming)
            data = b""
            with trio.CancelScope(deadline=deadline) as scope:
                data = bytes(await self._client.receive_some(READ_SIZE))
            if scope.cancelled_caught and self._incoming:
                raise BadRequest(HEAD_TIMEOUT.status, HEAD_TIMEOUT.reason)
            if not data:
                return None
            self._incoming += data

    async def _pass_exchange(self, block: bytes) -> bool:
        """Pass a request on, and its response back. Return True if another request may follow.

        Raises:
            BadRequest: the head is invalid, or the policy refuses the request.
        """
        head = self._heads.read(block)
        request = head.request
        decision = self._policy.check(request)
        if isinstance(decision, ProxyRefusal):
            if decision.note:
                self._note(decision.note)
            raise BadRequest(decision.status, decision.reason)
        record = None
        if self._recorder is not None:
            version = "1.1" if head.is_http_1_1 else "1.0"
            record = self._recorder.begin(request, None, version)
        fields = self._policy.passed_headers(written_fields(block))
        sent = self._upstream.rewrite(head, fields, decision)
        body = PassedBody(block, head.length, self._incoming, self._upstream.header_names)
        self._incoming = b""
        watch = self._policy.watch(request)
        exchange = ProxyExchange(self._client, head, sent, body, record, watch)
        started_at = trio.current_time()
        try:
            return await self._run_exchange(exchange)
        finally:
            if watch is not None:
                watch.close()
            if self._on_exchange is not None:
                self._on_exchange(
                    AccessLogEntry(
                        _shown(request.method),
                        _shown(request.target),
                        exchange.state.status,
                        trio.current_time() - started_at,
                        exchange.size,
                    )
                )

    async def _run_exchange(self, exchange: ProxyExchange) -> bool:
        try:
            server = self._server
            if server is None or has_input(server):  # an idle server sends only its end
                await self._drop_server()
                server = self._server = await self._upstream.connect()
            end = await exchange.run(server)
        except NoResponse as exc:
            answer = exc.answer
            self._note(answer.note)
            exchange.ended("server", answer.end)
            exchange.state.status = answer.status  # for the access log
            await self._drop_server()
            _log.warning("answered %d: %s", answer.status, escape_text(answer.reason))
            await self._refuse(answer.status, answer.reason)
            return False
        except BaseException:
            await self._drop_server()
            raise
        if not end.keeps_server:
            await self._drop_server()
        if end.lingers:
            await self._linger()
        self._incoming = exchange.unused
        return end.keeps_client

    # -- The end -----------------------------------------------------------------------------------

    async def _refuse(self, status: int, reason: str) -> None:
        """Send an error response, and close the sending side of the connection."""
        headers, body = proxy_error_response(reason)
        lines, _ = status_lines(status, tuple(headers))
        try:
            await self._client.send_all(b"".join([lines, date_line(), b"\r\n", body]))
            await self._linger()
        except BROKEN:
            pass

    async def _linger(self) -> None:
        """Read and drop what the client still sends, for a moment.

        Closing at once would reset the connection, and the client would lose the response.
        """
        with trio.move_on_after(LINGER_SECONDS):
            await self._client.send_eof()
            unwanted = 0
            while unwanted < MAX_UNWANTED:
                data = await self._client.receive_some(READ_SIZE)
                if not data:
                    return
                unwanted += len(data)

    async def _drop_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await trio.aclose_forcefully(server)

    def _note(self, text: str) -> None:
        if self._recorder is not None:
            self._recorder.note(text)


def _shown(text: bytes) -> str:
    return escape_text(text.decode("latin-1"))
