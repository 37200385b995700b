"""Send one HTTP request of an authorization flow, to allowed addresses only.

1. A host name is resolved once. The address is checked, and the client connects to exactly that
   address. A later DNS answer (rebinding) has no effect.
2. A proxy resolves names itself. Then only checks without DNS are possible: addresses in any
   notation, `localhost`, and names that are never public.
3. Every failure is a `FetchFailed`. Its text is written here and has nothing from the server.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import trio

from mcp_core import ConnectFailed, ConnectionLost, __version__
from mcp_core.auth import MAX_BODY, FetchFailed, HttpResponse
from mcp_core.http import Body, Head, RequestHead, Url
from mcp_core.urls import is_internal_name
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio.http_client._connector import ENVIRONMENT, Connector, find_proxy

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Sequence

    from mcp_core.auth import HttpRequest
    from mcp_core.http import Action
    from mcp_trio.http_client._h2_connection import H2ClientConnection
    from mcp_trio.http_client._h11_connection import H11ClientConnection

__all__ = ["fetch"]

# Seconds for the whole request. On a busy machine a TLS handshake alone takes several.
_TIMEOUT: Final = 15.0
_MAX_ADDRESSES: Final = 4  # addresses of one host to try
_PRIVATE_ADDRESS: Final = "10.0.0.1"  # an example of an address that an internal name may have


async def fetch(
    request: HttpRequest,
    *,
    allow: Callable[[str], bool],
    allow_name: Callable[[str], bool] | None = None,
    tls: ssl.SSLContext | None = None,
    proxy: str | None = ENVIRONMENT,
) -> HttpResponse:
    """Send `request` and return the response, with any status. Redirects aren't followed.

    The whole request may take 15 seconds. The response's body may have 64 KiB.

    Args:
        request: its URL is `https`, or `http` if the caller allows that.
        allow: returns True if the client may connect to an IP address.
        allow_name: returns True if the client may send a host name to the proxy, which resolves it.
            By default all public names are allowed, and internal ones if `allow` allows private
            addresses.
        tls: certificates to trust; by default the system's.
        proxy: a URL, or None for no proxy. By default the environment variables for proxies decide.

    Raises:
        FetchFailed: there was no complete response.
    """

    def allow_by_default(name: str) -> bool:
        return not is_internal_name(name) or allow(_PRIVATE_ADDRESS)

    with trio.move_on_after(_TIMEOUT):
        return await _fetch(request, allow, allow_name or allow_by_default, tls, proxy)
    raise FetchFailed(f"it did not answer within {_TIMEOUT:g} s")


async def _fetch(
    request: HttpRequest,
    allow: Callable[[str], bool],
    allow_name: Callable[[str], bool],
    tls: ssl.SSLContext | None,
    proxy: str | None,
) -> HttpResponse:
    try:
        url = Url.parse(request.url)
    except ValueError as exc:
        raise FetchFailed("that is not the URL of a server") from exc
    connectors = await _connectors(url, allow, allow_name, tls, proxy)
    async with open_quiet_nursery() as nursery:
        for connector, _ in connectors:
            # HTTP/1.1 is enough for one request. But the caller's TLS context may negotiate HTTP/2,
            # which needs a nursery.
            connector.nursery = nursery if tls is not None else None
        connector, address, client = await _connect(connectors)
        try:
            response = _FetchResponse(address)
            await client.run(
                connector.absolute_head(_head(request, url)), request.body, response.handle_actions
            )
            return response.response()
        except ConnectionLost as exc:
            raise FetchFailed(str(exc)) from exc
        except ValueError as exc:
            raise FetchFailed("it cannot be sent over HTTP") from exc
        finally:
            await client.aclose()


async def _connect(
    connectors: Sequence[tuple[Connector, str | None]],
) -> tuple[Connector, str | None, H11ClientConnection | H2ClientConnection]:
    """Return the first connector that can connect, its address, and its connection.

    Each connector gets an equal share of the remaining time, because a dead address may never
    answer.

    Raises:
        FetchFailed: no connector can connect.
    """
    problem = "it did not let us connect"
    for index, (connector, address) in enumerate(connectors):
        left = max(0.0, trio.current_effective_deadline() - trio.current_time())
        try:
            with trio.move_on_after(left / (len(connectors) - index)):
                return connector, address, await connector.connect()
        except ConnectFailed as exc:
            problem = str(exc)
    raise FetchFailed(problem)


async def _connectors(
    url: Url,
    allow: Callable[[str], bool],
    allow_name: Callable[[str], bool],
    tls: ssl.SSLContext | None,
    proxy: str | None,
) -> list[tuple[Connector, str | None]]:
    """Return pairs of connector and address: one per allowed address, or one for the proxy.

    The proxy's pair has None as address.

    Raises:
        FetchFailed: no address is allowed, the name isn't allowed, or the proxy is invalid.
    """
    host = url.host
    port = url.port
    if proxy == ENVIRONMENT:
        proxy = find_proxy(url.scheme, host, port)
    if proxy is None:
        addresses = await _addresses(url, allow)
        return [
            (Connector(url.scheme, host, port, tls=tls, proxy=None, address=each), each)
            for each in addresses
        ]
    address = _literal_address(host)
    if not (allow_name(host) if address is None else allow(address)):
        raise _forbidden(host)
    try:
        return [(Connector(url.scheme, host, port, tls=tls, proxy=proxy), None)]
    except ValueError as exc:
        raise FetchFailed(str(exc)) from None


def _literal_address(host: str) -> str | None:
    """Return the address that `host` means without DNS, or None if it is a name.

    Systems also accept `127.1`, `0x7f000001` and `2130706433` as IPv4 addresses.
    """
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return "127.0.0.1"
    try:
        return str(ip_address(name))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(name))
    except OSError:
        return None


async def _addresses(url: Url, allow: Callable[[str], bool]) -> list[str]:
    """Resolve the host name, and return the allowed addresses.

    Raises:
        FetchFailed: there are none.
    """
    try:
        found = await trio.socket.getaddrinfo(url.host, url.port, type=trio.socket.SOCK_STREAM)
    except trio.socket.gaierror as exc:
        raise FetchFailed(f"there is no host {url.host}; is the name right?") from exc
    except (OSError, UnicodeError) as exc:
        raise FetchFailed(f"{url.host!r} is not a host name") from exc
    addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
    allowed = [address for address in addresses if allow(address)]
    if not allowed:
        raise _forbidden(url.host)
    return allowed[:_MAX_ADDRESSES]


def _forbidden(host: str) -> FetchFailed:
    return FetchFailed(
        f"{host} belongs to this machine or to a private network, and URLs that a server names are"
        " not fetched from there"
    )


def _head(request: HttpRequest, url: Url) -> RequestHead:
    headers = [
        (b"host", url.authority),
        (b"accept-encoding", b"identity"),
        (b"user-agent", f"mcp-trio/{__version__}".encode()),
        (b"connection", b"close"),
    ]
    try:
        headers += [
            (name.lower().encode(), value.encode("latin-1")) for name, value in request.headers
        ]
    except UnicodeError as exc:
        raise FetchFailed("it cannot be sent over HTTP") from exc
    return RequestHead(request.method.encode(), url.target, headers)


class _FetchResponse:
    """A response from `address`, collected from the connection's actions."""

    def __init__(self, address: str | None) -> None:
        self._address = address
        self._head: Head | None = None
        self._body = bytearray()

    def handle_actions(self, actions: list[Action]) -> None:
        for action in actions:
            if type(action) is Head:
                self._head = action
                coding = dict(action.headers).get(b"content-encoding", b"identity").strip().lower()
                if coding not in (b"identity", b""):
                    raise FetchFailed("its answer is encoded, which was not asked for")
            elif type(action) is Body:
                if len(self._body) + len(action.data) > MAX_BODY:
                    raise FetchFailed(f"its answer is longer than {MAX_BODY} bytes")
                self._body += action.data

    def response(self) -> HttpResponse:
        """Return the response. Call it once the request has completed."""
        head = self._head
        assert head is not None
        headers = [
            (bytes(name).decode("latin-1"), bytes(value).decode("latin-1"))
            for name, value in head.headers
        ]
        return HttpResponse(head.status, headers, bytes(self._body), self._address)
