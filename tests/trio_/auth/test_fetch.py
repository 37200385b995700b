"""Fetching for authorization: one request to an allowed address, and every kind of failure."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing
import trustme

from mcp_core.auth import MAX_BODY, FetchFailed, HttpRequest, HttpResponse, may_fetch
from mcp_trio.auth import _fetch
from mcp_trio.auth._fetch import fetch
from mcp_trio.http_client._connector import Connector
from tests.trio_.http_client.test_connector import (
    TinyProxy,
    listening,
    ours,
    theirs,
    until_blank_line,
)

if TYPE_CHECKING:
    from collections.abc import Callable

OK = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


def anywhere(address: str) -> bool:
    return True


def public(address: str) -> bool:
    return may_fetch(address, allow_loopback=False)


def local(address: str) -> bool:
    return may_fetch(address, allow_loopback=True)


async def got(
    answer: bytes,
    *,
    allow: Callable[[str], bool] = anywhere,
    request: HttpRequest | None = None,
    hang: bool = False,
) -> tuple[HttpResponse, bytes]:
    """Return the reply to a server's response, and the request that the server got."""
    requests = b""

    async def serve(stream: trio.abc.Stream) -> None:
        nonlocal requests
        requests = await until_blank_line(stream)
        if request is not None:
            requests += await stream.receive_some(len(request.body)) if request.body else b""
        await stream.send_all(answer)
        if hang:
            await trio.sleep_forever()

    async with listening(serve) as port:
        sent = request or HttpRequest(
            "GET", "http://127.0.0.1/x?y=1", [("Accept", "application/json")]
        )
        url = sent.url.replace("127.0.0.1", f"127.0.0.1:{port}").replace(
            "localhost", f"localhost:{port}"
        )
        try:
            reply = await fetch(HttpRequest(sent.method, url, sent.headers, sent.body), allow=allow)
        except FetchFailed as exc:
            failure = exc
        else:
            return reply, requests
    raise failure  # not in a group


async def test_fetch_returns_status_headers_and_body() -> None:
    reply, requests = await got(
        OK + b"Content-Type: application/json\r\nX: 1\r\nx: 2\r\ncontent-length: 2\r\n\r\n{}"
    )
    assert (reply.status, reply.body) == (200, b"{}")
    assert [(name, value) for name, value in reply.headers if name == "x"] == [
        ("x", "1"),
        ("x", "2"),
    ]
    assert reply.header("content-type") == "application/json"
    assert requests.lower().startswith(b"get /x?y=1 http/1.1\r\nhost: 127.0.0.1:")
    assert b"accept: application/json\r\n" in requests.lower()
    assert b"accept-encoding: identity\r\n" in requests.lower()


async def test_fetch_sends_a_body() -> None:
    request = HttpRequest("POST", "http://127.0.0.1/token", [], b"grant_type=x")
    reply, requests = await got(OK + b"content-length: 0\r\n\r\n", request=request)
    assert reply.body == b""
    assert requests.endswith(b"\r\n\r\ngrant_type=x")


async def test_fetch_returns_a_redirect_unfollowed() -> None:
    reply, _ = await got(
        b"HTTP/1.1 302 Found\r\nlocation: http://169.254.169.254/\r\ncontent-length: 0\r\n\r\n"
    )
    assert reply.status == 302
    assert reply.header("location") == "http://169.254.169.254/"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (OK + b"content-length: 65537\r\n\r\n" + b"x" * 65537, f"longer than {MAX_BODY} bytes"),
        (OK + b"content-encoding: gzip\r\ncontent-length: 1\r\n\r\nx", "encoded"),
        (OK + b"content-length: 5\r\n\r\nx", "closed the connection"),
        (b"", "closed the connection"),
        (b"SSH-2.0-x\r\n\r\n", "not HTTP"),
    ],
)
async def test_fetch_invalid_response_raises(answer: bytes, reason: str) -> None:
    with pytest.raises(FetchFailed, match=reason):
        await got(answer)


async def test_fetch_body_of_the_limit_is_returned() -> None:
    reply, _ = await got(OK + b"content-length: 65536\r\n\r\n" + b"x" * MAX_BODY)
    assert len(reply.body) == MAX_BODY


async def test_fetch_slow_response_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_fetch, "_TIMEOUT", 0.05)
    with pytest.raises(FetchFailed, match="did not answer within"):
        await got(OK + b"content-length: 5\r\n\r\nx", hang=True)


async def test_fetch_has_fifteen_seconds(mock_clock: trio.testing.MockClock) -> None:
    """The clock stands still, but for what the server adds."""
    ended = False

    async def serve(stream: trio.abc.Stream) -> None:
        await until_blank_line(stream)
        mock_clock.jump(14.9)
        await trio.testing.wait_all_tasks_blocked()
        assert not ended
        mock_clock.jump(0.2)
        await trio.sleep_forever()

    async with listening(serve) as port:
        with pytest.raises(FetchFailed, match="did not answer within 15 s"):
            await fetch(HttpRequest("GET", f"http://127.0.0.1:{port}/"), allow=anywhere)
        ended = True


async def test_fetch_tries_four_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server may list thousands, each of which would be connected to."""

    async def look_up(host: str, port: int, **more: object) -> list[object]:
        return [(2, 1, 6, "", (f"192.0.2.{each}", port)) for each in range(1, 9)]

    tried: list[str] = []

    async def connect(host: str, port: int) -> trio.SocketStream:
        tried.append(host)
        raise OSError("refused")

    monkeypatch.setattr(trio.socket, "getaddrinfo", look_up)
    monkeypatch.setattr(trio, "open_tcp_stream", connect)
    with pytest.raises(FetchFailed):
        await fetch(HttpRequest("GET", "http://name.example/"), allow=anywhere)
    assert tried == ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost/",
        "http://127.0.0.1/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest",
        "https://[::1]/",
    ],
)
async def test_fetch_forbidden_address_is_not_connected_to(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*args: object, **more: object) -> None:
        raise AssertionError("connected")

    monkeypatch.setattr(trio, "open_tcp_stream", connect)
    with pytest.raises(FetchFailed, match="private network"):
        await fetch(
            HttpRequest("GET", url), allow=lambda address: may_fetch(address, allow_loopback=False)
        )


async def test_fetch_loopback_is_allowed_for_a_server_on_loopback() -> None:
    reply, _ = await got(
        OK + b"content-length: 0\r\n\r\n",
        allow=local,
        request=HttpRequest("GET", "http://localhost/"),
    )
    assert reply.status == 200


async def test_fetch_connects_to_the_checked_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server may give another answer the second time (DNS rebinding)."""
    looked_up: list[str] = []

    async def look_up(host: str, port: int, **more: object) -> list[object]:
        looked_up.append(host)
        return [(2, 1, 6, "", ("10.0.0.9", port)), (2, 1, 6, "", ("127.0.0.1", port))]

    async def serve(stream: trio.abc.Stream) -> None:
        await until_blank_line(stream)
        await stream.send_all(OK + b"content-length: 2\r\n\r\nhi")

    connected: list[str] = []
    really = trio.open_tcp_stream

    async def connect(host: str, port: int) -> trio.SocketStream:
        connected.append(host)
        monkeypatch.undo()
        return await really(host, port)

    async with listening(serve) as port:
        monkeypatch.setattr(trio.socket, "getaddrinfo", look_up)
        monkeypatch.setattr(trio, "open_tcp_stream", connect)
        reply = await fetch(HttpRequest("GET", f"http://name.example:{port}/"), allow=local)
    assert reply.body == b"hi"
    assert looked_up == ["name.example"]
    assert connected == ["127.0.0.1"]


async def test_fetch_silent_address_gets_a_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch, mock_clock: trio.testing.MockClock
) -> None:
    """Some are silent, as IPv6 addresses in many networks, and the clock passes their shares."""

    async def look_up(host: str, port: int, **more: object) -> list[object]:
        return [(2, 1, 6, "", (each, port)) for each in ("10.0.0.1", "10.0.0.2", "127.0.0.1")]

    async def serve(stream: trio.abc.Stream) -> None:
        await until_blank_line(stream)
        await stream.send_all(OK + b"content-length: 2\r\n\r\nhi")

    tried: list[str] = []
    shares: list[float] = []
    really = trio.open_tcp_stream

    async def connect_here(host: str, port: int) -> trio.SocketStream:
        tried.append(host)
        if host.startswith("10."):
            shares.append(trio.current_effective_deadline() - trio.current_time())
            mock_clock.jump(shares[-1] + 0.1)
            await trio.sleep_forever()
        with monkeypatch.context() as undone:
            undone.setattr(trio.socket, "getaddrinfo", here)
            return await really(host, port)

    here = trio.socket.getaddrinfo
    async with listening(serve) as port:
        monkeypatch.setattr(trio.socket, "getaddrinfo", look_up)
        monkeypatch.setattr(trio, "open_tcp_stream", connect_here)
        reply = await fetch(HttpRequest("GET", f"http://name.example:{port}/"), allow=anywhere)
        assert reply.body == b"hi"
    assert tried == ["10.0.0.1", "10.0.0.2", "127.0.0.1"]
    assert shares == pytest.approx([5, 5], abs=0.1)
    with pytest.raises(FetchFailed, match="did not answer within"):
        await fetch(
            HttpRequest("GET", "http://name.example/"),
            allow=lambda address: address.startswith("10."),
        )


async def test_fetch_without_time_left_raises_fetch_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = trio.current_time
    with trio.CancelScope() as scope:
        connectors = [(Connector("http", "127.0.0.1", 9, proxy=None), "127.0.0.1")]
        scope.deadline = clock() + 1
        monkeypatch.setattr(trio, "current_time", lambda: clock() + 2)
        with pytest.raises(FetchFailed, match="did not let us connect"):
            await _fetch._connect(connectors)


async def test_fetch_error_does_not_quote_the_response() -> None:
    """The server may have echoed a secret."""
    for answer in OK + b"x: y\r\nCANARY\r\n\r\n", b"HTTP/1.1 CANARY\r\n\r\n", b"CANARY\r\n\r\n":
        with pytest.raises(FetchFailed) as caught:
            await got(answer)
        assert "not HTTP/1.1" in str(caught.value)
        assert "CANARY" not in str(caught.value)


# -- Behind a proxy ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


async def ok(stream: trio.abc.Stream) -> None:
    await until_blank_line(stream)
    await stream.send_all(OK + b"content-length: 2\r\n\r\nhi")


@pytest.mark.parametrize("source", ["environment", "here"])
async def test_fetch_behind_a_proxy_does_not_resolve_the_name(
    authority: trustme.CA, environment: pytest.MonkeyPatch, source: str
) -> None:
    async with listening(ok, theirs(authority, "as.test")) as port:
        proxy = TinyProxy(port)
        async with listening(proxy) as there:
            place = f"http://me:secret@127.0.0.1:{there}"
            if source == "environment":
                environment.setenv("https_proxy", place)
            more: Any = {} if source == "environment" else {"proxy": place}
            reply = await fetch(
                HttpRequest("GET", "https://as.test/x"), allow=public, tls=ours(authority), **more
            )
    assert reply.body == b"hi"
    assert proxy.heads[0].startswith(b"CONNECT as.test:443 ")


async def test_fetch_plain_http_is_sent_through_proxy() -> None:
    async with listening(ok) as port:
        proxy = TinyProxy(port)
        async with listening(proxy) as there:
            proxy_url = f"http://me:secret@127.0.0.1:{there}"
            await fetch(HttpRequest("GET", "http://127.0.0.1:1/x"), allow=local, proxy=proxy_url)
    assert proxy.heads[0].startswith(b"GET http://127.0.0.1:1/x HTTP/1.1\r\n")
    assert b"proxy-authorization: Basic " in proxy.heads[0]


@pytest.mark.parametrize(
    "host",
    [
        "10.0.0.1", "127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f000001", "0x7f.1",
        "017700000001", "[::1]",
        "[::ffff:10.0.0.1]", "169.254.169.254", "0xa9fea9fe", "0", "localhost", "LOCALHOST",
        "localhost.",
        "x.localhost", "x.localhost.",
    ],
)  # fmt: skip
async def test_fetch_forbidden_literal_address_is_not_sent_to_a_proxy(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*args: object, **more: object) -> None:
        raise AssertionError("connected")

    monkeypatch.setattr(trio, "open_tcp_stream", connect)
    for where in "proxy.test:8080", "environment":
        monkeypatch.setenv("https_proxy", "proxy.test:8080")
        # Local hosts never use the proxy of the environment; not every system resolves all local
        # names.
        with pytest.raises(FetchFailed, match=r"private network|there is no host"):
            await fetch(HttpRequest("GET", f"https://{host}/"), allow=public, proxy=where)


@pytest.mark.parametrize("host", ["vault", "metadata.google.internal", "printer.local."])
async def test_fetch_internal_name_is_not_sent_to_a_proxy(host: str) -> None:
    """The proxy would resolve it, perhaps to a host that only the proxy can reach."""
    proxy = TinyProxy(1, b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
    async with listening(proxy) as there:
        with pytest.raises(FetchFailed, match="private network"):
            await fetch(
                HttpRequest("GET", f"https://{host}/"),
                allow=public,
                proxy=f"http://127.0.0.1:{there}",
            )
        assert proxy.heads == []
        with pytest.raises(FetchFailed, match="it answered 502"):
            await fetch(
                HttpRequest("GET", f"https://{host}/"),
                allow=public,
                allow_name=lambda name: name == host,
                proxy=f"http://127.0.0.1:{there}",
            )
    assert proxy.heads[0].startswith(b"CONNECT %b:443 " % host.encode())


async def test_fetch_without_proxy_ignores_environment(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("http_proxy", "http://127.0.0.1:9")
    async with listening(ok) as port:
        for host, more in (("127.0.0.1", {}), ("127.0.0.1", {"proxy": None})):
            await fetch(HttpRequest("GET", f"http://{host}:{port}/"), allow=local, **more)


@pytest.mark.parametrize(
    "proxy_url", ["socks5://me:secret@a.test:1080", "http://me:secret@a.test:x"]
)
async def test_fetch_invalid_proxy_raises_without_the_password(
    environment: pytest.MonkeyPatch, proxy_url: str
) -> None:
    environment.setenv("https_proxy", proxy_url)
    with pytest.raises(FetchFailed, match="proxy") as caught:
        await fetch(HttpRequest("GET", "https://as.test/"), allow=public)
    assert "secret" not in str(caught.value)


async def test_fetch_verifies_the_certificate_name() -> None:
    """A trusted authority isn't enough: the certificate's name must match the URL's host."""
    authority = trustme.CA()
    context = ssl.create_default_context()
    authority.configure_trust(context)

    async def serve(stream: trio.abc.Stream) -> None:
        await until_blank_line(stream)
        await stream.send_all(OK + b"content-length: 0\r\n\r\n")

    async with listening(serve, theirs(authority, "localhost")) as port:
        request = HttpRequest("GET", f"https://localhost:{port}/")
        assert (await fetch(request, allow=local, tls=context)).status == 200
        with pytest.raises(FetchFailed, match="not trusted"):
            await fetch(HttpRequest("GET", f"https://127.0.0.1:{port}/"), allow=local, tls=context)
        with pytest.raises(FetchFailed, match="not trusted"):
            await fetch(request, allow=local)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://x/", "not the URL"),
        ("https://nowhere.invalid/", "there is no host"),
        ("https://a..b/", "not a host name|not the URL|there is no host"),
    ],
)
async def test_fetch_invalid_or_unknown_host_raises(url: str, reason: str) -> None:
    with pytest.raises(FetchFailed, match=reason):
        await fetch(HttpRequest("GET", url), allow=anywhere)


async def test_fetch_refused_connection_raises() -> None:
    with pytest.raises(FetchFailed, match="connection refused"):
        await fetch(HttpRequest("GET", "http://127.0.0.1:9/"), allow=anywhere)


async def test_fetch_invalid_header_raises() -> None:
    with pytest.raises(FetchFailed, match="cannot be sent"):
        await got(OK, request=HttpRequest("GET", "http://127.0.0.1/", [("x", "a\r\nb")]))
    with pytest.raises(FetchFailed, match="cannot be sent"):
        await got(OK, request=HttpRequest("GET", "http://127.0.0.1/", [("x", "€")]))
