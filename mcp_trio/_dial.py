"""How a connection to an HTTP server comes about: name, address, proxy, TLS, HTTP/2 or HTTP/1.1; and what to say when it does not.

Rules of this file:

1. Every failure is a `ConnectFailed` that names who did not do what and, where there is one, the usual cure. Passwords are never
   part of it.
2. All of it together has ten seconds. Whatever happens in them, no socket is left.
3. HTTP/2 is spoken where TLS has led to it, or where we were told that the server does. Only then h2 is imported.
4. What the system says counts, unless the caller says something else: its certificates, its proxies. A server on this machine is
   never looked for behind a proxy.

It does not know what is said on the connection, except to a proxy.
"""

from __future__ import annotations

import ssl
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

import trio

from mcp_core import ConnectFailed
from mcp_core.http import RequestHead
from mcp_core.urls import Url, is_loopback_host

from ._h11_client import H11Client, ask_to_switch, open_tunnel

if TYPE_CHECKING:
    from mcp_core.http import Headers, Upgrade

    from ._h2_client import H2Client

__all__ = ["ENVIRONMENT", "Proxy", "Way", "find_proxy"]

ENVIRONMENT: Final = "environment"
_CONNECT: Final = (
    10.0  # seconds; people who wait for longer believe in a mistake of theirs, and are mostly right
)
_HTTP1: Final = "http/1.1"
_HTTP2: Final = "h2"


class Proxy(NamedTuple):
    """Who connects us to the server: by HTTP, perhaps over TLS, and with these headers to say who we are."""

    host: str
    port: int
    tls: bool
    headers: Headers

    def __str__(self) -> str:
        return f"the proxy {_authority(self.host, self.port)}"

    @classmethod
    def parse(cls, url: str) -> Proxy:
        """A proxy as environments say it: `http://user:password@host:port`, or less of that.

        Raises:
            ValueError: it is no such thing.
        """
        place, credentials = Url.parse_proxy(url)
        headers: Headers = []
        if credentials is not None:
            headers.append((b"proxy-authorization", b"Basic " + b64encode(credentials.encode())))
        return cls(place.host, place.port, place.scheme == "https", headers)


def find_proxy(scheme: str, host: str, port: int) -> str | None:
    """The proxy that the environment, or on some systems its configuration, has for a server; None to go there directly."""
    if _is_here(host):
        return None
    from urllib.request import getproxies, proxy_bypass

    if proxy_bypass(host) or proxy_bypass(_authority(host, port)):
        return None
    proxies = getproxies()
    return proxies.get(scheme) or proxies.get("all") or None


class Way:
    """The way to one server.

    `nursery` is where connections run that carry many calls; until there is one, only HTTP/1.1 is spoken. `reached` is the IP address to
    which the last connection went; None if nobody knows, as behind a proxy.

    Args:
        scheme: `http` or `https`.
        host: a name or an address, without brackets.
        port: where it listens.
        tls: how to do TLS with it; None for what the system does. Ignored with `http`. Whether it leads to HTTP/2 says its list of
            protocols (`set_alpn_protocols(["h2", "http/1.1"])`); without one it does not.
        proxy: a URL, None for none, or `"environment"` for what that says.
        address: of the host, if whoever asks has looked it up and means this one; not with a proxy.
        tunnel: whether a proxy only connects, also without TLS: for what does not stay HTTP.
        prior_knowledge: whether a server without TLS is known to speak HTTP/2. A proxy only connects then.

    Raises:
        ConnectFailed: the environment names a proxy that cannot be used.
        ValueError: the same of a proxy that is given here.
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
        self.reached: str | None = None
        self._scheme = scheme
        self._known = prior_knowledge and scheme == "http"
        self._tunnel = tunnel or self._known
        self.host, self.port = host, port
        self._address = address or host
        self._tls: ssl.SSLContext | None = None
        self._ours = tls is None
        if scheme == "https":
            self._tls = tls or _system_tls()
        self._proxy: Proxy | None = None
        if proxy == ENVIRONMENT:
            try:
                found = find_proxy(scheme, host, port)
                self._proxy = Proxy.parse(found) if found is not None else None
            except ValueError as exc:
                raise ConnectFailed(f"{exc}; the environment says so") from None
        elif proxy is not None:
            self._proxy = Proxy.parse(proxy)

    def __repr__(self) -> str:
        secure = " by TLS" if self._tls is not None else ""
        through = f" through {self._proxy}" if self._proxy is not None else ""
        return f"<Way to {_authority(self.host, self.port)}{secure}{through}>"

    def address(self, head: RequestHead) -> RequestHead:
        """The same request as it has to be on a connection that was made here: a proxy wants to know who it is for."""
        if self._proxy is None or self._tls is not None or self._tunnel:
            return head
        target = f"http://{_authority(self.host, self.port)}".encode() + head.target
        return RequestHead(head.method, target, [*head.headers, *self._proxy.headers])

    async def dial(self) -> H11Client | H2Client:
        """A new connection.

        Raises:
            ConnectFailed: none came about.
        """
        with trio.move_on_after(_CONNECT):
            nursery = self.nursery
            stream = await self._connected(_HTTP1 if nursery is None else _HTTP2)
            if nursery is None or not self._leads_to_http2(stream):
                return H11Client(stream)
            return await self._begin_http2(stream, nursery)
        first = self._proxy or _authority(self.host, self.port)
        raise ConnectFailed(f"{first} did not let us connect within {_CONNECT:g} s")

    async def switch(self, upgrade: Upgrade) -> tuple[trio.abc.Stream, bytes]:
        """A new connection on which something else than HTTP is spoken, and what was said of it already.

        Raises:
            ConnectFailed: none came about.
        """
        with trio.move_on_after(_CONNECT):
            stream = await self._connected(_HTTP1)
            try:
                head, behind = await ask_to_switch(stream, upgrade.head)
                refused = upgrade.refused(head, behind)
                if refused is not None:
                    raise ConnectFailed(str(refused)) from refused
            except BaseException:
                await trio.aclose_forcefully(stream)
                raise
            return stream, behind
        raise ConnectFailed(
            f"{_authority(self.host, self.port)} did not give us a WebSocket within {_CONNECT:g} s"
        )

    def _leads_to_http2(self, stream: trio.abc.Stream) -> bool:
        if isinstance(stream, trio.SSLStream) and self._tls is not None:
            return bool(stream.selected_alpn_protocol() == _HTTP2)
        return self._known

    async def _begin_http2(self, stream: trio.abc.Stream, nursery: trio.Nursery) -> H2Client:
        from ._h2_client import H2Client

        client = H2Client(stream, self._scheme)
        try:
            await client.open(nursery)
        except BaseException as exc:
            await client.aclose()
            if not isinstance(exc, ConnectFailed):
                raise
            cure = "; connect without prior_knowledge" if self._known else ""
            where = _authority(self.host, self.port)
            raise ConnectFailed(f"cannot connect to {where}: {exc}{cure}") from exc
        return client

    async def _connected(self, best: str) -> trio.abc.Stream:
        """A stream that leads to the server, on which `best` is spoken, or HTTP/1.1."""
        stream: trio.abc.Stream
        proxy = self._proxy
        if proxy is None:
            stream = await _open(self._address, self.port, _authority(self.host, self.port))
            self.reached = _address_of(stream)
        else:
            stream = await _open(proxy.host, proxy.port, str(proxy))
        try:
            if proxy is not None and proxy.tls:
                stream = await _secured(stream, _system_tls(), proxy.host, str(proxy))
            if proxy is not None and (self._tls is not None or self._tunnel):
                await self._open_tunnel(stream, proxy)
            if self._tls is None:
                return stream
            if self._ours:
                self._tls.set_alpn_protocols([_HTTP1] if best == _HTTP1 else [best, _HTTP1])
            return await _secured(stream, self._tls, self.host, _authority(self.host, self.port), best)
        except BaseException:
            await trio.aclose_forcefully(stream)
            raise

    async def _open_tunnel(self, stream: trio.abc.Stream, proxy: Proxy) -> None:
        there = _authority(self.host, self.port)
        try:
            await open_tunnel(stream, there, proxy.headers)
        except ConnectFailed as exc:
            raise ConnectFailed(f"{proxy} did not connect us to {there}: {exc}") from exc


async def _open(host: str, port: int, where: str) -> trio.SocketStream:
    try:
        stream = await trio.open_tcp_stream(host, port)
    except trio.socket.gaierror as exc:
        unknown = f"there is no host {host} ({exc.strerror}); is the name right?"
        raise ConnectFailed(f"cannot connect to {where}: {unknown}") from exc
    except OSError as exc:
        raise ConnectFailed(f"cannot connect to {where}: {_reason(exc)}") from exc
    except UnicodeError as exc:
        raise ConnectFailed(f"cannot connect to {where}: {host!r} is no name of a host") from exc
    _watch(stream)
    return stream


def _address_of(stream: trio.SocketStream) -> str | None:
    try:
        return str(stream.socket.getpeername()[0])
    except OSError:
        return None  # it is gone


def _watch(stream: trio.SocketStream) -> None:
    """Have the system find out that the other end is gone, whether we listen or have something to say: within a minute, and at no cost
    to anyone. Otherwise who says something is told after a quarter of an hour."""
    with suppress(OSError):  # some systems say so if the connection is over already
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            number = getattr(trio.socket, option, None)  # not every system lets a program say how
            if number is not None:
                stream.setsockopt(trio.socket.IPPROTO_TCP, number, value)
        # In milliseconds, of what was sent and nobody has confirmed.
        if (number := getattr(trio.socket, "TCP_USER_TIMEOUT", None)) is not None:
            stream.setsockopt(trio.socket.IPPROTO_TCP, number, 60_000)


async def _secured(
    stream: trio.abc.Stream, context: ssl.SSLContext, host: str, where: str, best: str = _HTTP1
) -> trio.SSLStream[trio.abc.Stream]:
    secured = trio.SSLStream(stream, context, server_hostname=host, https_compatible=True)
    try:
        await secured.do_handshake()
    except trio.BrokenResourceError as exc:
        cause = exc.__cause__
        if isinstance(cause, ssl.SSLCertVerificationError):
            cure = "is this the right name?" if cause.verify_code in _OTHER_NAME else _TRUST
            problem = f"the certificate of {where} is not trusted: {cause.verify_message.rstrip('.')}; {cure}"
        elif isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
            problem = f"{where} does not speak TLS; is its address http:// instead?"
        elif isinstance(cause, ssl.SSLError) and cause.reason not in (None, _NO_MORE):
            problem = f"TLS with {where} failed: {cause.reason}"
        else:
            problem = f"TLS with {where} failed: it closed the connection; is its address http:// instead?"
        raise ConnectFailed(problem) from exc
    spoken = secured.selected_alpn_protocol()
    if spoken not in (None, _HTTP1, best):
        raise ConnectFailed(f"the SSLContext given for {where} leads to {spoken}, and {best} is spoken here")
    return secured


_OTHER_NAME: Final = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_TRUST: Final = "if it should be, give an SSLContext that trusts it (tls=), or name it in SSL_CERT_FILE"
_NO_TLS: Final = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"})
_NO_MORE: Final = "UNEXPECTED_EOF_WHILE_READING"


def _system_tls() -> ssl.SSLContext:
    import truststore

    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols([_HTTP1])
    return context


def _reason(exc: OSError) -> str:
    """What the system says of the last attempt; names may stand for several addresses."""
    cause: BaseException | None = exc.__cause__ or exc
    while isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[-1]
    if isinstance(cause, ConnectionRefusedError):
        return "connection refused; is the server running, and on this port?"
    return (getattr(cause, "strerror", None) or str(cause)).lower()


def _is_here(host: str) -> bool:
    return host.endswith(".localhost") or is_loopback_host(host)


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
