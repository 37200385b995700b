"""Connect to an HTTP server: DNS, proxy, TLS, and the choice of HTTP/2 or HTTP/1.1.

1. Every failure is a `ConnectFailed` that names the peer, the problem and, where there is one, the
   usual cure. It never contains a password.
2. HTTP/2 is used if TLS negotiated it (ALPN), or if the caller knows that the server has it. Only
   then is h2 imported.
3. Certificates and proxies are the system's, unless the caller gives others. A server on this
   machine is never reached through a proxy of the environment.
"""

from __future__ import annotations

import secrets
import ssl
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from mcp_core import ConnectFailed
from mcp_core.http import RequestHead
from mcp_core.urls import Url, is_local_host

from ._h11_connection import H11ClientConnection, open_tunnel, request_upgrade

if TYPE_CHECKING:
    from mcp_core.http import Headers, WebSocketUpgrade

    from ._h2_connection import H2ClientConnection

__all__ = ["ENVIRONMENT", "Connector", "Proxy", "find_proxy"]

ENVIRONMENT: Final = "environment"
_CONNECT_TIMEOUT: Final = 10.0  # seconds, for all steps together
_HTTP1: Final = "http/1.1"
_HTTP2: Final = "h2"


class Proxy(NamedTuple):
    """An HTTP proxy: its address, whether to use TLS to it, and headers with our credentials."""

    host: str
    port: int
    tls: bool
    headers: Headers

    def __str__(self) -> str:
        return f"the proxy {_authority(self.host, self.port)}"

    @classmethod
    def parse(cls, url: str) -> Proxy:
        """Read a proxy URL as in environment variables: `http://user:password@host:port`.

        Scheme, credentials and port are optional.

        Raises:
            ValueError: the URL is invalid. The message doesn't contain the password.
        """
        proxy, credentials = Url.parse_proxy(url)
        headers: Headers = []
        if credentials is not None:
            headers.append((b"proxy-authorization", b"Basic " + b64encode(credentials.encode())))
        return cls(proxy.host, proxy.port, proxy.scheme == "https", headers)


def find_proxy(scheme: str, host: str, port: int) -> str | None:
    """Return the URL of the proxy that the system configures for a server, or None for no proxy.

    That is the environment or, on macOS and Windows, the system settings.
    """
    if is_local_host(host):
        return None
    from urllib.request import getproxies, proxy_bypass

    if proxy_bypass(host) or proxy_bypass(_authority(host, port)):
        return None
    proxies = getproxies()
    return proxies.get(scheme) or proxies.get("all") or None


class Connector:
    """A factory of connections to one server.

    `nursery` runs the tasks of HTTP/2 connections. Until it is set, only HTTP/1.1 is used.
    `server_address` is the IP address of the last connection, or None if unknown, as behind a
    proxy.

    Args:
        scheme: `http` or `https`.
        host: a name or an address, without brackets.
        port: the server's port.
        tls: the TLS context, or None for the system's. Ignored with `http`. It negotiates HTTP/2
            only after `set_alpn_protocols(["h2", "http/1.1"])`.
        proxy: a URL, None for no proxy, or `"environment"` for the system's.
        address: an address of the host that the caller has already resolved; not with a proxy.
        tunnel: whether to ask a proxy for a tunnel (CONNECT) even without TLS, for a protocol other
            than HTTP.
        prior_knowledge: whether a server without TLS is known to speak HTTP/2. A proxy is then
            asked for a tunnel.

    Raises:
        ConnectFailed: the environment names a proxy that cannot be used.
        ValueError: the `proxy` given here cannot be used.
    """

    def __init__(
        self,
        scheme: str,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        proxy: str | None = ENVIRONMENT,
        address: str | None = None,
        tunnel: bool = False,
        prior_knowledge: bool = False,
    ) -> None:
        self.nursery: trio.Nursery | None = None
        self.server_address: str | None = None
        self._scheme = scheme
        self._prior_knowledge = prior_knowledge and scheme == "http"
        self._tunnel = tunnel or self._prior_knowledge
        self.host = host
        self.port = port
        self._address = address or host
        self._tls: ssl.SSLContext | None = None
        self._system_tls = tls is None
        if scheme == "https":
            self._tls = tls or _system_tls_context()
        self._proxy: Proxy | None = None
        if proxy == ENVIRONMENT:
            try:
                found = find_proxy(scheme, host, port)
                self._proxy = Proxy.parse(found) if found is not None else None
            except ValueError as exc:
                raise ConnectFailed(f"{exc}; the environment names it") from None
        elif proxy is not None:
            self._proxy = Proxy.parse(proxy)

    def __repr__(self) -> str:
        secure = " by TLS" if self._tls is not None else ""
        through = f" through {self._proxy}" if self._proxy is not None else ""
        return f"<Connector to {_authority(self.host, self.port)}{secure}{through}>"

    def absolute_head(self, head: RequestHead) -> RequestHead:
        """Return the request head as it must be sent on a connection made here.

        A proxy that forwards requests needs the absolute URL and our credentials (RFC 9112 3.2.2).
        """
        if self._proxy is None or self._tls is not None or self._tunnel:
            return head
        target = f"http://{_authority(self.host, self.port)}".encode() + head.target
        return RequestHead(head.method, target, [*head.headers, *self._proxy.headers])

    async def connect(self) -> H11ClientConnection | H2ClientConnection:
        """Open a connection. It takes at most ten seconds.

        Raises:
            ConnectFailed: connecting failed. No socket is left open.
        """
        with trio.move_on_after(_CONNECT_TIMEOUT):
            nursery = self.nursery
            stream = await self._connect(_HTTP1 if nursery is None else _HTTP2)
            if nursery is None or not self._use_http2(stream):
                return H11ClientConnection(stream)
            return await self._start_http2(stream, nursery)
        first_hop = self._proxy or _authority(self.host, self.port)
        raise ConnectFailed(f"{first_hop} did not let us connect within {_CONNECT_TIMEOUT:g} s")

    async def connect_stream(self) -> trio.abc.Stream:
        """Open a connection for HTTP/1.1, and return its stream. It takes as long as it takes.

        Raises:
            ConnectFailed: connecting failed. No socket is left open.
        """
        return await self._connect(_HTTP1)

    async def connect_websocket(self, upgrade: WebSocketUpgrade) -> tuple[trio.abc.Stream, bytes]:
        """Open a connection and upgrade it to a WebSocket. It takes at most ten seconds.

        Returns:
            the stream, and the bytes of the WebSocket that were already read.

        Raises:
            ConnectFailed: connecting or the upgrade failed. No socket is left open.
        """
        with trio.move_on_after(_CONNECT_TIMEOUT):
            while True:
                stream = await self._connect(_HTTP1)
                try:
                    head, remainder = await request_upgrade(stream, upgrade.head)
                    redirected = upgrade.follow(head, secrets.token_bytes(16))
                    error = None if redirected else upgrade.find_error(head, remainder)
                    if error is not None:
                        raise ConnectFailed(str(error)) from error
                except BaseException:
                    await trio.aclose_forcefully(stream)
                    raise
                if redirected is None:
                    return stream, remainder
                await trio.aclose_forcefully(stream)
                upgrade = redirected
        raise ConnectFailed(
            f"{_authority(self.host, self.port)} did not give us a WebSocket within"
            f" {_CONNECT_TIMEOUT:g} s"
        )

    def _use_http2(self, stream: trio.abc.Stream) -> bool:
        if isinstance(stream, trio.SSLStream) and self._tls is not None:
            return bool(stream.selected_alpn_protocol() == _HTTP2)
        return self._prior_knowledge

    async def _start_http2(
        self, stream: trio.abc.Stream, nursery: trio.Nursery
    ) -> H2ClientConnection:
        from ._h2_connection import H2ClientConnection

        client = H2ClientConnection(stream, self._scheme)
        try:
            await client.open(nursery)
        except BaseException as exc:
            await client.aclose()
            if not isinstance(exc, ConnectFailed):
                raise
            cure = "; connect without prior_knowledge" if self._prior_knowledge else ""
            where = _authority(self.host, self.port)
            raise ConnectFailed(f"cannot connect to {where}: {exc}{cure}") from exc
        return client

    async def _connect(self, preferred: str) -> trio.abc.Stream:
        """Return a stream to the server, through the proxy and TLS if there are any.

        TLS negotiates the protocol `preferred`, or HTTP/1.1.
        """
        stream: trio.abc.Stream
        proxy = self._proxy
        if proxy is None:
            stream = await _open(self._address, self.port, _authority(self.host, self.port))
            self.server_address = _address_of(stream)
        else:
            stream = await _open(proxy.host, proxy.port, str(proxy))
        try:
            if proxy is not None and proxy.tls:
                stream = await _start_tls(stream, _system_tls_context(), proxy.host, str(proxy))
            if proxy is not None and (self._tls is not None or self._tunnel):
                await self._open_tunnel(stream, proxy)
            if self._tls is None:
                return stream
            if self._system_tls:
                self._tls.set_alpn_protocols(
                    [_HTTP1] if preferred == _HTTP1 else [preferred, _HTTP1]
                )
            authority = _authority(self.host, self.port)
            return await _start_tls(stream, self._tls, self.host, authority, preferred)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise

    async def _open_tunnel(self, stream: trio.abc.Stream, proxy: Proxy) -> None:
        authority = _authority(self.host, self.port)
        try:
            await open_tunnel(stream, authority, proxy.headers)
        except ConnectFailed as exc:
            raise ConnectFailed(f"{proxy} did not connect us to {authority}: {exc}") from exc


async def _open(host: str, port: int, where: str) -> trio.SocketStream:
    """Open a TCP connection. `where` names the peer in errors."""
    try:
        stream = await trio.open_tcp_stream(host, port)
    except trio.socket.gaierror as exc:
        unknown = f"there is no host {host} ({exc.strerror}); is the name right?"
        raise ConnectFailed(f"cannot connect to {where}: {unknown}") from exc
    except OSError as exc:
        raise ConnectFailed(f"cannot connect to {where}: {_reason(exc)}") from exc
    except UnicodeError as exc:
        raise ConnectFailed(f"cannot connect to {where}: {host!r} is not a host name") from exc
    _detect_dead_peer(stream)
    return stream


def _address_of(stream: trio.SocketStream) -> str | None:
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return None  # the connection is already broken


def _detect_dead_peer(stream: trio.SocketStream) -> None:
    """Make the system detect a dead peer within a minute, on reading and on writing.

    By default a reader never notices, and a writer after about 15 minutes (Linux).
    """
    with suppress(OSError):  # some systems raise it if the connection is already closed
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_KEEPALIVE, 1)
        for option, seconds in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            number = getattr(trio.socket, option, None)  # not every system has these options
            if number is not None:
                stream.setsockopt(trio.socket.IPPROTO_TCP, number, seconds)
        # Milliseconds for which sent data may stay unacknowledged.
        if (number := getattr(trio.socket, "TCP_USER_TIMEOUT", None)) is not None:
            stream.setsockopt(trio.socket.IPPROTO_TCP, number, 60_000)


async def _start_tls(
    stream: trio.abc.Stream, context: ssl.SSLContext, host: str, where: str, preferred: str = _HTTP1
) -> trio.SSLStream[trio.abc.Stream]:
    """Perform the TLS handshake, and check the negotiated protocol.

    Raises:
        ConnectFailed: the handshake failed, or the context negotiated another protocol.
    """
    tls = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
    try:
        await tls.do_handshake()
    except trio.BrokenResourceError as exc:
        cause = exc.__cause__
        if isinstance(cause, ssl.SSLCertVerificationError):
            cure = _CERTIFICATE_CURES.get(cause.verify_code, _TRUST)
            problem = (
                f"the certificate of {where} is not trusted: {cause.verify_message.rstrip('.')};"
                f" {cure}"
            )
        elif isinstance(cause, ssl.SSLError) and cause.reason in _NOT_TLS:
            problem = f"{where} does not speak TLS; is its address http:// instead?"
        elif isinstance(cause, ssl.SSLError) and cause.reason not in (None, _UNEXPECTED_EOF):
            cure = next((text for word, text in _TLS_CURES.items() if word in cause.reason), "")
            problem = f"TLS with {where} failed: {cause.reason}{cure}"
        else:
            problem = (
                f"TLS with {where} failed: it closed the connection; is its address http://"
                " instead?"
            )
        raise ConnectFailed(problem) from exc
    negotiated = tls.selected_alpn_protocol()
    if negotiated not in (None, _HTTP1, preferred):
        raise ConnectFailed(
            f"the SSLContext given for {where} negotiated {negotiated}, and {preferred} is"
            " expected here"
        )
    return tls


_TRUST: Final = (
    "if it should be, name the file of its authority in SSL_CERT_FILE, or give an SSLContext that"
    " trusts it (tls=, and in LoginConfig for authorization servers)"
)
_WRONG_NAME: Final = "is this the right name?"
_WRONG_TIME: Final = "the server has to renew it, unless the clock of this computer is wrong"
# By OpenSSL's verify code (x509_vfy.h), for those that no further trusted certificate cures.
_CERTIFICATE_CURES: Final = {9: _WRONG_TIME, 10: _WRONG_TIME, 62: _WRONG_NAME, 64: _WRONG_NAME}
# By a part of OpenSSL's reason.
_TLS_CURES: Final = {
    "PROTOCOL_VERSION": ": it supports no TLS version that this client accepts",
    "UNSUPPORTED_PROTOCOL": ": it supports no TLS version that this client accepts",
    "HANDSHAKE_FAILURE": ": it may require a client certificate",
    "CERTIFICATE_REQUIRED": ": it requires a client certificate",
    "UNRECOGNIZED_NAME": ": it doesn't serve this name",
}
_NOT_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
_UNEXPECTED_EOF: Final = "UNEXPECTED_EOF_WHILE_READING"


def _system_tls_context() -> ssl.SSLContext:
    """Return a context that trusts what the system trusts, and offers HTTP/1.1."""
    import truststore

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols([_HTTP1])
    return context


def _reason(exc: OSError) -> str:
    """Return the system's message for the last attempt: a name may have several addresses."""
    cause: BaseException | None = exc.__cause__ or exc
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[-1]
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused; is the server running, and on this port?"
    return (getattr(cause, "strerror", None) or str(cause)).lower()


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
