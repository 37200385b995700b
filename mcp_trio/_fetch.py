"""One request of authorization: sent to where it may be sent, answered shortly, or not at all.

Rules of this file:

1. The name of a host is looked up once. Each address is judged before it is connected to, and the connection goes to the address
   that was judged: another answer of the name server changes nothing.
2. All of it together has five seconds, and the body of the answer 64 KiB. Redirects are answers like others.
3. Every failure is a `FetchFailed` whose reason is a few words of ours, never what the other end wrote.
4. Behind a proxy it is the proxy that looks up names and decides where it connects to. What can be judged without a name server is
   judged all the same: an address, however it is written, and the names of this machine.

It does not know what is fetched, nor which addresses are good: the core's `may_fetch` says so, or a configuration.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

import trio

from mcp_core import ConnectFailed, ConnectionLost, __version__
from mcp_core.auth import MAX_BODY, FetchFailed, HttpReply
from mcp_core.http import Body, Head, RequestHead, Url

from ._dial import ENVIRONMENT, Way, find_proxy
from ._nursery import open_quiet_nursery

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from mcp_core.auth import HttpRequest
    from mcp_core.http import Action

    from ._h2_client import H2Client
    from ._h11_client import H11Client

__all__ = ["fetch"]

_LONGEST: Final = 5.0
_MOST: Final = 4  # addresses of one host that are tried


async def fetch(
    request: HttpRequest,
    *,
    allow: Callable[[str], bool],
    tls: ssl.SSLContext | None = None,
    proxy: str | None = ENVIRONMENT,
) -> HttpReply:
    """Send `request` and get what is answered, whatever its status.

    Args:
        request: whose URL is `https`, or `http` if whoever asks has decided so.
        allow: whether an IP address may be connected to.
        tls: whom to trust; by default what the system trusts.
        proxy: a URL, None for none; by default the one that the environment has for this host, if any.

    Raises:
        FetchFailed: there is no complete answer.
    """
    with trio.move_on_after(_LONGEST):
        return await _answered(request, allow, tls, proxy)
    raise FetchFailed(f"it did not answer within {_LONGEST:g} s")


async def _answered(
    request: HttpRequest, allow: Callable[[str], bool], tls: ssl.SSLContext | None, proxy: str | None
) -> HttpReply:
    try:
        url = Url.parse(request.url)
    except ValueError as exc:
        raise FetchFailed("that is no URL of a server") from exc
    ways = await _ways(url, allow, tls, proxy)
    async with open_quiet_nursery() as nursery:
        for way in ways:
            # For one request HTTP/1.1 is as good; but somebody else's context may lead to HTTP/2.
            way.nursery = nursery if tls is not None else None
        way, client = await _connected(ways)
        try:
            answer = _Answer()
            await client.run(way.address(_head(request, url)), request.body, answer.take)
            return answer.reply()
        except ConnectionLost as exc:
            raise FetchFailed(str(exc)) from exc
        except ValueError as exc:
            raise FetchFailed("it cannot be said in HTTP") from exc
        finally:
            await client.aclose()


async def _connected(ways: list[Way]) -> tuple[Way, H11Client | H2Client]:
    """The first of `ways` that leads there. Each has its share of the time that is left, for one that is dead may be silent.

    Raises:
        FetchFailed: none does.
    """
    problem = "it did not let us connect"
    for index, way in enumerate(ways):
        left = max(0.0, trio.current_effective_deadline() - trio.current_time())
        try:
            with trio.move_on_after(left / (len(ways) - index)):
                return way, await way.dial()
        except ConnectFailed as exc:
            problem = str(exc)
    raise FetchFailed(problem)


async def _ways(
    url: Url, allow: Callable[[str], bool], tls: ssl.SSLContext | None, proxy: str | None
) -> list[Way]:
    """The ways to a server, all of which may be gone.

    Raises:
        FetchFailed: there is none.
    """
    host, port = url.host, url.port
    if proxy == ENVIRONMENT:
        proxy = find_proxy(url.scheme, host, port)
    if proxy is None:
        addresses = await _addresses(url, allow)
        return [Way(url.scheme, host, port, tls=tls, proxy=None, address=each) for each in addresses]
    address = _address_in(host)
    if address is not None and not allow(address):
        raise _forbidden(host)
    try:
        return [Way(url.scheme, host, port, tls=tls, proxy=proxy)]
    except ValueError as exc:
        raise FetchFailed(str(exc)) from None


def _address_in(host: str) -> str | None:
    """The address that a host is without any name server; None for a name. Systems read `127.1`, `0x7f000001` and `2130706433`, too."""
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
    """Where the host is, as far as it may be connected to.

    Raises:
        FetchFailed: nowhere.
    """
    try:
        found = await trio.socket.getaddrinfo(url.host, url.port, type=trio.socket.SOCK_STREAM)
    except trio.socket.gaierror as exc:
        raise FetchFailed(f"there is no host {url.host}; is the name right?") from exc
    except (OSError, UnicodeError) as exc:
        raise FetchFailed(f"{url.host!r} is no name of a host") from exc
    addresses = list(dict.fromkeys(str(where[0]) for *_, where in found))
    allowed = [address for address in addresses if allow(address)]
    if not allowed:
        raise _forbidden(url.host)
    return allowed[:_MOST]


def _forbidden(host: str) -> FetchFailed:
    return FetchFailed(
        f"{host} is an address of this machine or of a private network, and what a server names is not fetched from there"
    )


def _head(request: HttpRequest, url: Url) -> RequestHead:
    headers = [
        (b"host", url.authority),
        (b"accept-encoding", b"identity"),
        (b"user-agent", f"mcp-trio/{__version__}".encode()),
        (b"connection", b"close"),
    ]
    try:
        headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in request.headers]
    except UnicodeError as exc:
        raise FetchFailed("it cannot be said in HTTP") from exc
    return RequestHead(request.method.encode(), url.target, headers)


class _Answer:
    """What has come of it."""

    def __init__(self) -> None:
        self._head: Head | None = None
        self._body = bytearray()

    def take(self, actions: list[Action]) -> None:
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

    def reply(self) -> HttpReply:
        head = self._head
        assert head is not None
        headers = [
            (bytes(name).decode("latin-1"), bytes(value).decode("latin-1")) for name, value in head.headers
        ]
        return HttpReply(head.status, headers, bytes(self._body))
