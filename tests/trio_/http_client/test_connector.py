"""Connecting to HTTP servers: addresses, TLS and proxies on local sockets, and each failure."""

from __future__ import annotations

import ssl
import sys
from base64 import b64encode
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trustme

from mcp_core import ConnectFailed
from mcp_core.http import RequestHead, WebSocketUpgrade
from mcp_core.http.wire._websocket_upgrade import accept_headers
from mcp_trio import memory_pair
from mcp_trio.http_client import _connector
from mcp_trio.http_client._connector import Connector, Proxy, find_proxy

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

HEAD = RequestHead(b"GET", b"/where?x", [(b"host", b"there")])


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def ours(authority: trustme.CA, *protocols: str) -> ssl.SSLContext:
    """Return a client context that trusts `authority`."""
    context = ssl.create_default_context()
    authority.configure_trust(context)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


def theirs(authority: trustme.CA, *names: str, protocols: tuple[str, ...] = ()) -> ssl.SSLContext:
    """Return a server context with certificates for these names."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    if protocols:
        context.set_alpn_protocols(protocols)
    return context


@asynccontextmanager
async def listening(serve: Any, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Run a server on this machine, and yield its port.

    Its errors from broken streams are ignored.
    """

    async def answer(stream: trio.SocketStream) -> None:
        secured = (
            stream
            if tls is None
            else trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
        )
        try:
            await serve(secured)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            await trio.aclose_forcefully(secured)

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, answer, [listener])
        port = listener.socket.getsockname()[1]
        assert isinstance(port, int)
        yield port
        nursery.cancel_scope.cancel()


async def until_blank_line(stream: trio.abc.Stream) -> bytes:
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        more = await stream.receive_some(1)
        if not more:
            break
        head += more
    return bytes(head)


async def hello(stream: trio.abc.Stream) -> None:
    """Answer one request with the bytes of the request."""
    head = await until_blank_line(stream)
    await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(head) + head)


async def request_bytes(connector: Connector) -> bytes:
    """Return a request over a new connection, as the server received it."""
    seen = bytearray()
    client = await connector.connect()
    try:
        await client.run(
            connector.absolute_head(HEAD), b"", lambda actions: seen.extend(_bodies(actions))
        )
    finally:
        await client.aclose()
    return bytes(seen)


def _bodies(actions: list[Any]) -> bytes:
    return b"".join(getattr(action, "data", b"") for action in actions)


async def connect_error(connector: Connector) -> str:
    with pytest.raises(ConnectFailed) as caught:
        await connector.connect()
    return str(caught.value)


# --- direct connections -------------------------------------------------------------------------


async def test_connector_plain_tcp_connects_and_knows_address() -> None:
    async with listening(hello) as port:
        connector = Connector("http", "127.0.0.1", port)
        assert repr(connector) == f"<Connector to 127.0.0.1:{port}>"
        assert connector.server_address is None
        assert await request_bytes(connector) == b"GET /where?x HTTP/1.1\r\nhost: there\r\n\r\n"
        assert connector.server_address == "127.0.0.1"


async def test_connector_sets_keep_alive_and_user_timeout() -> None:
    """A dead peer is noticed within a minute, on reading and on writing."""
    async with listening(hello) as port:
        client = await Connector("http", "127.0.0.1", port).connect()
        stream = client._stream
        assert isinstance(stream, trio.SocketStream)
        assert stream.getsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_KEEPALIVE) != 0
        assert stream.getsockopt(trio.socket.IPPROTO_TCP, trio.socket.TCP_NODELAY) != 0
        if sys.platform == "linux":
            assert (
                stream.getsockopt(trio.socket.IPPROTO_TCP, trio.socket.TCP_USER_TIMEOUT) == 60_000
            )
            # Half a minute of silence, and three probes: a minute in all.
            for name, number in (("KEEPIDLE", 30), ("KEEPINTVL", 10), ("KEEPCNT", 3)):
                option = getattr(trio.socket, f"TCP_{name}")
                assert stream.getsockopt(trio.socket.IPPROTO_TCP, option) == number
        await client.aclose()


class OptionRecorder:
    """A socket that records the options that it gets, and then fails if it should."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.given: list[tuple[int, int, int]] = []

    def setsockopt(self, *option: int) -> None:
        level, name, value = option
        self.given.append((level, name, value))
        if self.error is not None:
            raise self.error


def test_connector_sets_the_options_that_the_system_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TCP_KEEPIDLE", "TCP_KEEPINTVL", "TCP_USER_TIMEOUT"):
        monkeypatch.delattr(trio.socket, name, raising=False)
    monkeypatch.setattr(trio.socket, "TCP_KEEPCNT", 4711, raising=False)
    stream: Any = OptionRecorder()
    _connector._detect_dead_peer(stream)
    assert stream.given == [
        (trio.socket.SOL_SOCKET, trio.socket.SO_KEEPALIVE, 1),
        (trio.socket.IPPROTO_TCP, 4711, 3),
    ]
    closed: Any = OptionRecorder(OSError(22, "Invalid argument"))
    _connector._detect_dead_peer(closed)  # as macOS does once the peer has closed
    assert len(closed.given) == 1


async def test_connector_refused_connection_names_the_cure() -> None:
    async with listening(hello) as port:
        pass
    for connector in Connector("http", "127.0.0.1", port), Connector("https", "127.0.0.1", port):
        assert await connect_error(connector) == (
            f"cannot connect to 127.0.0.1:{port}: connection refused; is the server running,"
            " and on this port?"
        )


async def test_connector_unknown_host_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Nowhere(trio.abc.HostnameResolver):
        async def getaddrinfo(self, *args: Any, **options: Any) -> Any:
            raise trio.socket.gaierror(-2, "Name or service not known")

        async def getnameinfo(self, *args: Any, **options: Any) -> Any:
            raise AssertionError("the name of an address is not looked up")

    trio.socket.set_custom_hostname_resolver(Nowhere())
    assert await connect_error(Connector("http", "nowhere.test", 80)) == (
        "cannot connect to nowhere.test:80: there is no host nowhere.test"
        " (Name or service not known); is the name right?"
    )


async def test_connector_invalid_host_name_raises() -> None:
    problem = await connect_error(Connector("http", "x" * 70 + ".test", 80))
    assert problem.endswith("is not a host name")


async def test_connector_several_addresses_shows_the_last_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(host: str, port: int) -> trio.SocketStream:
        refused = ConnectionRefusedError(111, "Connection refused")
        unreachable = OSError(101, "Network is unreachable")
        raise OSError("all attempts failed") from ExceptionGroup("", [refused, unreachable])

    monkeypatch.setattr("trio.open_tcp_stream", refuse)
    assert (
        await connect_error(Connector("http", "many.test", 80))
        == "cannot connect to many.test:80: network is unreachable"
    )


async def test_connector_timeout_names_the_first_hop(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """Behind a proxy, the proxy is what didn't answer; its password isn't shown."""

    async def wait(host: str, port: int) -> trio.SocketStream:
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr("trio.open_tcp_stream", wait)
    assert (
        await connect_error(Connector("http", "slow.test", 80))
        == "slow.test:80 did not let us connect within 10 s"
    )
    assert trio.current_time() == 10
    through = Connector("http", "there.test", 80, proxy="http://user:secret@slow.test:8080")
    assert (
        await connect_error(through)
        == "the proxy slow.test:8080 did not let us connect within 10 s"
    )


@pytest.mark.parametrize(
    ("answer", "seconds", "error"),
    [
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 0, "404"),
        (b"", 10, "did not give us a WebSocket within 10 s"),
    ],
)
async def test_connector_websocket_that_fails_leaves_no_connection(
    answer: bytes,
    seconds: int,
    error: str,
    monkeypatch: pytest.MonkeyPatch,
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A refusal fails at once and silence after 10 seconds, and both close the socket."""
    ours, theirs = memory_pair()

    async def connect(*_: object) -> trio.abc.Stream:
        await theirs.send_all(answer)
        return ours

    monkeypatch.setattr(Connector, "_connect", connect)
    upgrade = WebSocketUpgrade("ws://127.0.0.1/mcp", {}, bytes(16))
    with pytest.raises(ConnectFailed, match=error):
        await Connector("http", "127.0.0.1", 80).connect_websocket(upgrade)
    assert trio.current_time() == seconds
    while await theirs.receive_some():
        pass  # until the end, which only a closed connection has


async def test_connector_websocket_follows_a_redirect_on_another_connection(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """The redirected connection is closed: its response may have a body that never ends."""
    pairs = [memory_pair(), memory_pair()]
    waiting = iter(pairs)

    async def connect(*_: object) -> trio.abc.Stream:
        return next(waiting)[0]

    monkeypatch.setattr(Connector, "_connect", connect)
    await pairs[0][1].send_all(b"HTTP/1.1 307 T\r\nlocation: /mcp/\r\n\r\n")
    await pairs[1][1].send_all(b"HTTP/1.1 404 N\r\ncontent-length: 0\r\n\r\n")
    upgrade = WebSocketUpgrade("ws://127.0.0.1/mcp", {}, bytes(16))
    with pytest.raises(ConnectFailed, match="404"):
        await Connector("http", "127.0.0.1", 80).connect_websocket(upgrade)
    sent = []
    for _, theirs in pairs:
        received = b""
        while piece := await theirs.receive_some():
            received += piece
        sent.append(received.partition(b"\r\n")[0])
    assert sent == [b"GET /mcp HTTP/1.1", b"GET /mcp/ HTTP/1.1"]


# --- TLS ----------------------------------------------------------------------------------------


async def test_connector_tls_connects(authority: trustme.CA) -> None:
    server = theirs(authority, "127.0.0.1", protocols=("h2", "http/1.1"))
    async with listening(hello, server) as port:
        connector = Connector("https", "127.0.0.1", port, tls=ours(authority, "http/1.1"))
        assert repr(connector) == f"<Connector to 127.0.0.1:{port} by TLS>"
        assert await request_bytes(connector) == b"GET /where?x HTTP/1.1\r\nhost: there\r\n\r\n"


async def test_connector_tls_trusts_the_system_certificates(
    authority: trustme.CA, environment: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(bundle)
    async with listening(hello, theirs(authority, "127.0.0.1", protocols=("http/1.1",))) as port:
        assert await connect_error(Connector("https", "127.0.0.1", port)) == (
            f"the certificate of 127.0.0.1:{port} is not trusted: unable to get local issuer"
            " certificate;"
            " if it should be, name the file of its authority in SSL_CERT_FILE, or give an"
            " SSLContext that trusts it (tls=, and in LoginConfig for authorization servers)"
        )
        environment.setenv("SSL_CERT_FILE", str(bundle))
        assert (await request_bytes(Connector("https", "127.0.0.1", port))).startswith(b"GET")


async def test_connector_tls_certificate_of_another_name_fails(authority: trustme.CA) -> None:
    async with listening(hello, theirs(authority, "elsewhere.test")) as port:
        problem = await connect_error(Connector("https", "127.0.0.1", port, tls=ours(authority)))
    assert problem.startswith(
        f"the certificate of 127.0.0.1:{port} is not trusted: IP address mismatch"
    )


async def test_connector_tls_to_a_plain_server_fails(authority: trustme.CA) -> None:
    async def refuse(stream: trio.abc.Stream) -> None:
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listening(refuse) as port:
        assert await connect_error(Connector("https", "127.0.0.1", port, tls=ours(authority))) == (
            f"127.0.0.1:{port} does not speak TLS; is its address http:// instead?"
        )


NO_VERSION = ": it supports no TLS version that this client accepts"
NO_TLS = "there does not speak TLS; is its address http:// instead?"
CLOSED = "TLS with there failed: it closed the connection; is its address http:// instead?"


async def tls_error(error: Exception, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the text for a handshake that fails with this error of OpenSSL."""

    class FailingTls:
        def __init__(self, *_: object, **__: object) -> None:
            pass

        async def do_handshake(self) -> None:
            await trio.lowlevel.checkpoint()
            raise trio.BrokenResourceError from error

    monkeypatch.setattr(trio, "SSLStream", FailingTls)
    unused: Any = None
    with pytest.raises(ConnectFailed) as caught:
        await _connector._start_tls(unused, unused, "there", "there")
    return str(caught.value)


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("TLSV1_ALERT_PROTOCOL_VERSION", NO_VERSION),
        ("UNSUPPORTED_PROTOCOL", NO_VERSION),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", ": it may require a client certificate"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", ": it requires a client certificate"),
        ("TLSV1_UNRECOGNIZED_NAME", ": it doesn't serve this name"),
        ("BAD_SIGNATURE", ""),
        ("WRONG_VERSION_NUMBER", NO_TLS),
        ("HTTP_REQUEST", NO_TLS),
        ("RECORD_LAYER_FAILURE", NO_TLS),
        ("UNEXPECTED_EOF_WHILE_READING", CLOSED),
        (None, CLOSED),
    ],
)
async def test_connector_tls_failure_names_the_reason_and_the_cure(
    reason: str | None, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    error: Any = ssl.SSLError(1, "failed")
    error.reason = reason
    expected = text if text in (NO_TLS, CLOSED) else f"TLS with there failed: {reason}{text}"
    assert await tls_error(error, monkeypatch) == expected
    assert await tls_error(OSError(104, "reset"), monkeypatch) == CLOSED


@pytest.mark.parametrize(
    ("code", "cure"),
    [
        (9, "the server has to renew it, unless the clock of this computer is wrong"),
        (10, "the server has to renew it, unless the clock of this computer is wrong"),
        (62, "is this the right name?"),
        (64, "is this the right name?"),
        (18, _connector._TRUST),
        (63, _connector._TRUST),
    ],
)
async def test_connector_tls_certificate_error_names_the_cure(
    code: int, cure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where another trusted certificate wouldn't help."""
    error: Any = ssl.SSLCertVerificationError(1, "failed")
    error.verify_code, error.verify_message = code, "no good."
    assert await tls_error(error, monkeypatch) == (
        f"the certificate of there is not trusted: no good; {cure}"
    )


async def test_connector_tls_server_closes_fails(authority: trustme.CA) -> None:
    async def close_after(stream: trio.abc.Stream) -> None:
        await stream.receive_some()

    async with listening(close_after) as port:
        problem = await connect_error(Connector("https", "127.0.0.1", port, tls=ours(authority)))
    assert problem == (
        f"TLS with 127.0.0.1:{port} failed: it closed the connection; is its address http://"
        " instead?"
    )


async def test_connector_tls_handshake_times_out(
    authority: trustme.CA, mock_clock: trio.testing.MockClock
) -> None:
    """The server accepts the connection, but never answers the client hello."""

    async def wait(stream: trio.abc.Stream) -> None:
        while await stream.receive_some():
            mock_clock.jump(_connector._CONNECT_TIMEOUT)
        gone.set()

    gone = trio.Event()
    async with listening(wait) as port:
        problem = await connect_error(Connector("https", "127.0.0.1", port, tls=ours(authority)))
        assert problem == f"127.0.0.1:{port} did not let us connect within 10 s"
        await gone.wait()


async def test_connector_tls_context_with_other_protocol_fails(authority: trustme.CA) -> None:
    async with listening(hello, theirs(authority, "127.0.0.1", protocols=("h2",))) as port:
        problem = await connect_error(
            Connector("https", "127.0.0.1", port, tls=ours(authority, "h2"))
        )
    assert (
        problem
        == f"the SSLContext given for 127.0.0.1:{port} negotiated h2, and http/1.1 is expected here"
    )


# --- proxies ------------------------------------------------------------------------------------


class TinyProxy:
    """A proxy of both kinds.

    Every target leads to `port` of this machine; `heads` has the requests.
    """

    def __init__(self, port: int, refusal: bytes = b"") -> None:
        self.port, self.refusal = port, refusal
        self.heads: list[bytes] = []

    async def __call__(self, stream: trio.abc.Stream) -> None:
        head = await until_blank_line(stream)
        self.heads.append(head)
        if self.refusal:
            await stream.send_all(self.refusal)
            return
        async with (
            await trio.open_tcp_stream("127.0.0.1", self.port) as there,
            trio.open_nursery() as nursery,
        ):
            if head.startswith(b"CONNECT"):
                await stream.send_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                await there.send_all(head)
            nursery.start_soon(self._copy, stream, there)
            await self._copy(there, stream)
            nursery.cancel_scope.cancel()

    async def _copy(self, source: trio.abc.Stream, sink: trio.abc.Stream) -> None:
        while data := await source.receive_some():
            await sink.send_all(data)


async def test_connector_http_proxy_gets_the_absolute_url() -> None:
    """The userinfo becomes a header for the proxy, and the server's address stays unknown."""
    async with listening(hello) as port:
        proxy = TinyProxy(port)
        async with listening(proxy) as there:
            connector = Connector(
                "http", "far.test", 8080, proxy=f"http://me:s%40fe@127.0.0.1:{there}"
            )
            assert (
                repr(connector)
                == f"<Connector to far.test:8080 through the proxy 127.0.0.1:{there}>"
            )
            seen = await request_bytes(connector)
            assert connector.server_address is None
    assert seen == proxy.heads[0]
    assert seen.startswith(b"GET http://far.test:8080/where?x HTTP/1.1\r\nhost: there\r\n")
    assert b"proxy-authorization: Basic " + b64encode(b"me:s@fe") in seen


async def test_connector_name_is_resolved_by_the_proxy_only() -> None:
    """Neither the system's resolver nor its hosts file sees it."""
    asked_for: list[str] = []

    class Resolver(trio.abc.HostnameResolver):
        async def getaddrinfo(self, host: Any, *args: Any, **options: Any) -> Any:
            asked_for.append(host)
            raise trio.socket.gaierror(-2, "Name or service not known")

        async def getnameinfo(self, *args: Any, **options: Any) -> Any:
            raise AssertionError("no address is looked up")

    async with listening(hello) as port, listening(TinyProxy(port)) as there:
        trio.socket.set_custom_hostname_resolver(Resolver())
        connector = Connector("http", "far.test", 80, proxy=f"http://127.0.0.1:{there}")
        assert (await request_bytes(connector)).startswith(b"GET http://far.test:80/")
    assert "far.test" not in asked_for


async def test_connector_https_uses_a_tunnel_through_the_proxy(authority: trustme.CA) -> None:
    async with listening(hello, theirs(authority, "far.test")) as port:
        proxy = TinyProxy(port)
        async with listening(proxy) as there:
            connector = Connector(
                "https", "far.test", 443, tls=ours(authority), proxy=f"me:safe@127.0.0.1:{there}"
            )
            assert await request_bytes(connector) == b"GET /where?x HTTP/1.1\r\nhost: there\r\n\r\n"
    [head] = proxy.heads
    assert head == (
        b"CONNECT far.test:443 HTTP/1.1\r\nhost: far.test:443\r\nproxy-authorization: Basic "
        + b64encode(b"me:safe")
        + b"\r\n\r\n"
    )


async def test_connector_websocket_uses_a_tunnel_through_the_proxy() -> None:
    """CONNECT makes the proxy pass frames on; bytes right behind the 101 aren't lost."""

    async def switch(stream: trio.abc.Stream) -> None:
        request_bytes = await until_blank_line(stream)
        key = WebSocketUpgrade("ws://far.test/mcp", {}, bytes(16)).head
        assert request_bytes.startswith(
            b"GET /mcp HTTP/1.1\r\nhost: far.test\r\nupgrade: websocket\r\n"
        )
        lines = [name + b": " + value for name, value in accept_headers(key, ["mcp"])]
        await stream.send_all(b"\r\n".join([b"HTTP/1.1 101 Switching", *lines, b"", b"behind"]))

    async with listening(switch) as port:
        proxy = TinyProxy(port)
        async with listening(proxy) as there:
            connector = Connector(
                "http", "far.test", 80, proxy=f"http://127.0.0.1:{there}", tunnel=True
            )
            stream, behind = await connector.connect_websocket(
                WebSocketUpgrade("ws://far.test/mcp", {}, bytes(16))
            )
            assert behind == b"behind"
            assert connector.absolute_head(HEAD) is HEAD
            await stream.aclose()
    assert proxy.heads == [b"CONNECT far.test:80 HTTP/1.1\r\nhost: far.test:80\r\n\r\n"]


async def test_connector_proxy_over_tls_is_verified(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_connector, "_system_tls_context", lambda: ours(authority))
    async with listening(hello, theirs(authority, "far.test")) as port:
        proxy = TinyProxy(port)
        async with listening(proxy, theirs(authority, "127.0.0.1")) as there:
            connector = Connector("https", "far.test", 443, proxy=f"https://127.0.0.1:{there}")
            assert (await request_bytes(connector)).startswith(b"GET /where?x HTTP/1.1\r\n")


async def test_connector_proxy_refusal_names_the_proxy(authority: trustme.CA) -> None:
    """The user must know whether to fix the proxy or the server, and no password is shown."""
    proxy = TinyProxy(1, b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
    async with listening(proxy) as there:
        connector = Connector(
            "https",
            "far.test",
            443,
            tls=ours(authority),
            proxy=f"http://me:secret@127.0.0.1:{there}",
        )
        problem = await connect_error(connector)
    assert problem == (
        f"the proxy 127.0.0.1:{there} did not connect us to far.test:443: it answered 407"
        " Proxy Authentication Required"
    )
    assert await connect_error(
        Connector("http", "far.test", 80, proxy=f"http://me:secret@127.0.0.1:{there}")
    ) == (
        f"cannot connect to the proxy 127.0.0.1:{there}: connection refused; is the server"
        " running, and on this port?"
    )


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://a.test:3128", ("a.test", 3128, False)),
        ("a.test:3128", ("a.test", 3128, False)),
        ("a.test", ("a.test", 80, False)),
        ("https://a.test", ("a.test", 443, True)),
        ("http://[::1]:3128/", ("::1", 3128, False)),
    ],
)
def test_proxy_url_is_parsed(url: str, found: tuple[str, int, bool]) -> None:
    assert Proxy.parse(url) == (*found, [])


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        (
            "socks5://me:secret@a.test:1080",
            "the proxy socks5://a.test:1080 cannot be used: only http:// and",
        ),
        ("http://me:secret@a.test:x", "the proxy http://a.test:x has an invalid port"),
        ("http://:80", "the proxy http://:80 has no host"),
    ],
)
def test_proxy_url_invalid_raises_without_the_password(
    url: str, problem: str, environment: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        Connector("http", "far.test", 80, proxy=url)
    assert "secret" not in str(caught.value)
    environment.setenv("http_proxy", url)
    with pytest.raises(ConnectFailed, match=f"{problem}.*; the environment names it"):
        Connector("http", "far.test", 80)


@pytest.mark.parametrize(
    ("variables", "server", "proxy"),
    [
        ({}, ("http", "a.test", 80), None),
        ({"http_proxy": "p"}, ("http", "a.test", 80), "p"),
        ({"HTTP_PROXY": "p"}, ("http", "a.test", 80), "p"),
        ({"http_proxy": "p"}, ("https", "a.test", 443), None),
        ({"https_proxy": "p"}, ("https", "a.test", 443), "p"),
        ({"all_proxy": "p"}, ("https", "a.test", 443), "p"),
        ({"all_proxy": "p", "https_proxy": "q"}, ("https", "a.test", 443), "q"),
        ({"http_proxy": "p", "no_proxy": "a.test"}, ("http", "a.test", 80), None),
        ({"http_proxy": "p", "no_proxy": "b.test, test"}, ("http", "a.test", 80), None),
        ({"http_proxy": "p", "NO_PROXY": "*"}, ("http", "a.test", 80), None),
        ({"http_proxy": "p", "no_proxy": "a.test:8080"}, ("http", "a.test", 8080), None),
        ({"http_proxy": "p", "no_proxy": "a.test:8080"}, ("http", "a.test", 80), "p"),
        ({"http_proxy": "p", "no_proxy": "est"}, ("http", "a.test", 80), "p"),
        # This machine is never reached through a proxy.
        ({"http_proxy": "p"}, ("http", "localhost", 80), None),
        ({"http_proxy": "p"}, ("http", "mcp.localhost", 80), None),
        ({"http_proxy": "p"}, ("http", "127.0.0.1", 80), None),
        ({"http_proxy": "p"}, ("http", "::1", 80), None),
        ({"http_proxy": "p"}, ("http", "::ffff:127.0.0.1", 80), None),
        ({"http_proxy": "p"}, ("http", "localhost.", 80), None),
        ({"http_proxy": "p"}, ("http", "10.0.0.1", 80), "p"),
        # Names are compared, not addresses: no name is resolved here if there is a proxy.
        ({"http_proxy": "p", "no_proxy": "127.0.0.1"}, ("http", "a.test", 80), "p"),
    ],
)
def test_find_proxy_follows_the_environment(
    variables: dict[str, str],
    server: tuple[str, str, int],
    proxy: str | None,
    environment: pytest.MonkeyPatch,
) -> None:
    for name, value in variables.items():
        environment.setenv(name, value)
    assert find_proxy(*server) == proxy
    shown = f" through the proxy {proxy}:80>" if proxy else f"{server[2]}>"
    assert repr(
        Connector(*server, tls=ssl.create_default_context() if server[0] == "https" else None)
    ).endswith(shown if proxy or server[0] == "http" else "by TLS>")
    assert "proxy" not in repr(Connector("http", "a.test", 80, proxy=None))
