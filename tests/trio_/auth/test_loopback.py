"""The loopback listener: it ignores requests other than its redirect."""

from __future__ import annotations

import errno
import os
import stat
import webbrowser
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import trio
import trio.testing

from mcp_core import AuthRequired
from mcp_core.auth import AuthorizationFailed, Browse, HttpResponse
from mcp_trio._simple_http import SimpleHttpConnection
from mcp_trio.auth import _loopback
from mcp_trio.auth._loopback import LoopbackListener
from tests.harness.world.waiting import PATIENCE, until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

ANYWHERE = "http://127.0.0.1:0/callback"
CANARY = "CANARY-code"


@asynccontextmanager
async def waiting(
    redirect_uri: str = ANYWHERE,
) -> AsyncIterator[tuple[LoopbackListener, list[str]]]:
    """Wait for the redirect in a task, which puts its URL into the list."""
    loopback = await LoopbackListener.open(redirect_uri, any_port=True)
    answers: list[str] = []

    async def wait() -> None:
        answers.append(
            await loopback.wait_for_redirect(
                Browse("https://as.example/?state=s", loopback.redirect_uri)
            )
        )

    try:
        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                yield loopback, answers
    finally:
        loopback.close()


async def connected(loopback: LoopbackListener, host: str | None = None) -> trio.SocketStream:
    parts = urlsplit(loopback.redirect_uri)
    assert parts.port is not None
    return await trio.open_tcp_stream(host or parts.hostname or "", parts.port)


async def response_to(loopback: LoopbackListener, line: str, host: str | None = None) -> bytes:
    """Return the response to a request."""
    async with await connected(loopback, host) as stream:
        await stream.send_all(f"{line} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        received = b""
        async for data in stream:
            received += data
        return received


GOOD = f"GET /callback?state=s&code={CANARY}"


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: True)


async def test_loopback_redirect_is_returned_and_not_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with waiting() as (loopback, answers):
        response = await response_to(loopback, GOOD)
    assert response.startswith(b"HTTP/1.1 200")
    assert b"no-referrer" in response
    assert b"no-store" in response
    assert CANARY.encode() not in response
    assert answers == [f"{loopback.redirect_uri}?state=s&code={CANARY}"]
    assert CANARY not in caplog.text


def never_opens(url: str) -> bool:
    return False


def breaks(url: str) -> bool:
    raise webbrowser.Error("could not locate runnable browser")


def is_no_program(url: str) -> bool:
    raise OSError(errno.ENOEXEC, "Exec format error")


@pytest.mark.parametrize("open_page", [never_opens, breaks, is_no_program])
async def test_loopback_without_a_browser_needs_another_login(
    open_page: Callable[[str], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes at once, and not after five minutes."""
    monkeypatch.setattr(webbrowser, "open", open_page)
    loopback = await LoopbackListener.open(ANYWHERE, any_port=True)
    with trio.fail_after(PATIENCE), pytest.raises(AuthRequired, match="no browser can be opened"):
        await loopback.wait_for_redirect(
            Browse("https://as.example/?state=s", loopback.redirect_uri)
        )
    loopback.close()


@pytest.mark.skipif(os.name != "posix", reason="Windows has no private directories in this way")
@pytest.mark.parametrize("finds_users", [True, False])
async def test_loopback_start_page_is_for_this_user_only(
    finds_users: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our port serves it if the user of a connection can be found, and else it is a private file.

    The file stays while the login goes on: the browser reads it when it has started.
    """
    opened: list[str] = []
    monkeypatch.setattr(_loopback, "can_find_users", lambda socket: finds_users)
    monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url))  # type: ignore[func-returns-value]
    async with waiting() as (loopback, answers):
        await until(lambda: len(opened) == 1)
        await trio.testing.wait_all_tasks_blocked()
        url = urlsplit(opened[0])
        page = trio.Path(url.path)
        if finds_users:
            assert opened[0].startswith(f"http://127.0.0.1:{urlsplit(loopback.redirect_uri).port}/")
        else:
            assert url.scheme == "file"
            assert b"https://as.example/?state=s" in await page.read_bytes()
            for each, mode in (page, 0o600), (page.parent, 0o700):
                assert stat.S_IMODE((await each.stat()).st_mode) == mode
        await response_to(loopback, GOOD)
    assert len(answers) == 1
    assert not await page.exists()


async def test_loopback_other_requests_are_logged_and_the_redirect_is_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The line has none of the request, which may hold a user's code."""
    caplog.set_level("INFO", logger="mcp_trio")
    line = "a request to the redirect URI was not the redirect of the current login"
    async with waiting() as (loopback, _):
        await response_to(loopback, f"GET /other?code={CANARY}")
        assert caplog.messages == [line]
        async with await connected(loopback) as stream:
            await stream.send_all(b"\x16\x03\x01 is no HTTP\r\n\r\n")
            assert await stream.receive_some() == b""
        assert caplog.messages == [line] * 2
        await response_to(loopback, GOOD)
    assert caplog.messages == [line] * 2


async def test_loopback_address_of_ipv6_stands_in_brackets() -> None:
    async with waiting("http://[::1]:0/callback") as (loopback, answers):
        assert loopback.redirect_uri.startswith("http://[::1]:")
        await response_to(loopback, GOOD)
    assert answers == [f"{loopback.redirect_uri}?state=s&code={CANARY}"]


@pytest.mark.parametrize(
    "line",
    [
        GOOD.replace("state=s", "state=t"),
        GOOD.replace("state=s", "x=s"),
        GOOD.replace("state=s", "state=s&state=s"),
        GOOD.replace("/callback", "/callback/"),
        GOOD.replace("/callback", "//evil.example/callback"),
        GOOD.replace("/callback", "http://evil.example/callback"),
        GOOD.replace("GET", "POST"),
        GOOD.replace("GET", "OPTIONS"),
        "GET /favicon.ico",
        "GET /",
        "OPTIONS *",
    ],
)
async def test_loopback_other_request_gets_404(line: str) -> None:
    async with waiting() as (loopback, answers):
        response = await response_to(loopback, line)
        assert response.startswith(b"HTTP/1.1 404")
        assert CANARY.encode() not in response
        assert answers == []
        await response_to(loopback, GOOD)
    assert len(answers) == 1


async def test_loopback_head_request_gets_no_body() -> None:
    async with waiting() as (loopback, _):
        response = await response_to(loopback, GOOD.replace("GET", "HEAD"))
        assert response.startswith(b"HTTP/1.1 404")
        assert response.endswith(b"\r\n\r\n")
        await response_to(loopback, GOOD)


async def test_loopback_idle_connections_do_not_block_the_redirect() -> None:
    """A page that knows the port could open them, and browsers open spare connections too."""
    async with waiting() as (loopback, answers), trio.open_nursery() as nursery:
        held = [await connected(loopback) for _ in range(200)]
        with trio.fail_after(PATIENCE):
            assert (await response_to(loopback, GOOD)).startswith(b"HTTP/1.1 200")
        for stream in held:
            nursery.start_soon(stream.aclose)
    assert len(answers) == 1


async def test_loopback_disconnecting_client_is_ignored() -> None:
    async with waiting() as (loopback, answers):
        await (await connected(loopback)).aclose()
        stream = await connected(loopback)
        stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        await stream.send_all(GOOD.encode())
        await stream.aclose()  # with a reset
        assert answers == []
        await response_to(loopback, GOOD)


async def test_loopback_accept_failure_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    async def accept(listener: trio.SocketListener) -> trio.SocketStream:
        raise OSError(errno.EINVAL, "what is this?")

    monkeypatch.setattr(trio.SocketListener, "accept", accept)
    loopback = await LoopbackListener.open(ANYWHERE, any_port=True)
    with pytest.raises(AuthorizationFailed, match="what is this"):
        await loopback.wait_for_redirect(
            Browse("https://as.example/?state=s", loopback.redirect_uri)
        )
    loopback.close()


async def test_loopback_browser_that_closes_early_still_counts() -> None:
    async with waiting() as (loopback, answers):
        stream = await connected(loopback)
        await stream.send_all(f"{GOOD} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
        await stream.aclose()
    assert answers == [f"{loopback.redirect_uri}?state=s&code={CANARY}"]


async def test_loopback_response_to_closed_connection_is_dropped() -> None:
    ours, theirs = trio.testing.memory_stream_pair()
    await theirs.aclose()
    connection = SimpleHttpConnection(ours, _loopback._LIMITS)
    response = HttpResponse(404, [("connection", "close")], b"x")
    await _loopback._send_response(connection, response)


async def test_loopback_silent_connection_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_loopback, "_REQUEST_TIMEOUT", 0.05)
    async with waiting() as (loopback, _):
        async with await connected(loopback) as stream:
            assert await stream.receive_some() == b""
        monkeypatch.setattr(_loopback, "_REQUEST_TIMEOUT", PATIENCE)
        await response_to(loopback, GOOD)


# -- The defaults, by a clock that stands still but for what the test adds -------------------------


async def is_closed(stream: trio.SocketStream) -> bool:
    """True if the listener has closed the connection, once nothing happens any more."""
    await trio.testing.wait_all_tasks_blocked()
    with trio.move_on_after(0):
        return await stream.receive_some() == b""
    return False


async def test_loopback_request_has_five_seconds(mock_clock: trio.testing.MockClock) -> None:
    async with waiting() as (loopback, _), await connected(loopback) as stream:
        await stream.send_all(b"GET /callback")
        # Connections are accepted in their order.
        assert b" 404 " in await response_to(loopback, "GET /other")
        mock_clock.jump(4.9)
        assert not await is_closed(stream)
        mock_clock.jump(0.2)
        assert await stream.receive_some() == b""
        await response_to(loopback, GOOD)


async def test_loopback_seventeenth_connection_closes_the_oldest(
    mock_clock: trio.testing.MockClock,
) -> None:
    """The clock stands still, so no timeout closes it."""
    async with waiting() as (loopback, _):
        held = [await connected(loopback) for _ in range(16)]
        # Each one has been accepted once a later one has an answer, which takes a place too.
        assert b" 404 " in await response_to(loopback, "GET /other")
        assert await held[0].receive_some() == b""
        assert not await is_closed(held[1])
        for stream in held:
            await stream.aclose()
        await response_to(loopback, GOOD)


async def test_loopback_head_of_over_32_kib_closes_the_connection(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with waiting() as (loopback, _):
        for size, is_too_long in ((32_000, False), (33_000, True)):
            async with await connected(loopback) as stream:
                await stream.send_all(b"GET /other HTTP/1.1\r\nhost: x\r\nx: " + b"x" * size)
                if is_too_long:
                    with suppress(trio.BrokenResourceError):  # what it did not read is reset
                        assert await stream.receive_some() == b""
                else:
                    await stream.send_all(b"\r\n\r\n")
                    assert b" 404 " in await stream.receive_some()
        await response_to(loopback, GOOD)


async def test_loopback_login_has_five_minutes(mock_clock: trio.testing.MockClock) -> None:
    """An abandoned login must not hold its call and its port forever."""
    loopback = await LoopbackListener.open(ANYWHERE, any_port=True)
    step = Browse("https://as.example/?state=s", loopback.redirect_uri)
    ended = trio.Event()

    async def wait() -> None:
        with pytest.raises(AuthorizationFailed, match="login page within 300 s"):
            await loopback.wait_for_redirect(step, open_browser=False)
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        for passed, is_over in ((0.0, False), (299.0, False), (2.0, True)):
            await trio.testing.wait_all_tasks_blocked()
            mock_clock.jump(passed)
            await trio.testing.wait_all_tasks_blocked()
            assert ended.is_set() is is_over
    loopback.close()


async def test_loopback_accept_waits_for_free_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    accept = trio.SocketListener.accept
    refusals = iter([errno.EMFILE, errno.ENFILE])

    async def accept_later(listener: trio.SocketListener) -> trio.SocketStream:
        number = next(refusals, None)
        if number is not None:
            raise OSError(number, "too many open files")
        return await accept(listener)

    monkeypatch.setattr(trio.SocketListener, "accept", accept_later)
    async with waiting() as (loopback, answers):
        await response_to(loopback, GOOD)
    assert len(answers) == 1


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_loopback_localhost_listens_on_both_families(host: str) -> None:
    async with waiting("http://localhost:0/callback") as (loopback, answers):
        await response_to(loopback, GOOD, host)
    assert answers[0].startswith("http://localhost:")


async def test_loopback_localhost_half_taken_raises() -> None:
    """The browser might use the other family, and another program would get the code."""
    [theirs] = await trio.open_tcp_listeners(0, host="::1")
    port = theirs.socket.getsockname()[1]
    async with theirs:
        uri = f"http://localhost:{port}/callback"
        with pytest.raises(AuthorizationFailed, match="another program"):
            await LoopbackListener.open(uri)
        loopback = await LoopbackListener.open(uri, any_port=True)
        assert urlsplit(loopback.redirect_uri).port != port
        loopback.close()


async def test_loopback_localhost_on_ipv4_only_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    really = trio.open_tcp_listeners

    async def only_4(port: int, *, host: str, backlog: int) -> list[trio.SocketListener]:
        if ":" in host:
            raise OSError(errno.EADDRNOTAVAIL, "cannot assign requested address")
        return await really(port, host=host, backlog=backlog)

    monkeypatch.setattr(trio, "open_tcp_listeners", only_4)
    async with waiting("http://localhost:0/callback") as (loopback, _):
        await response_to(loopback, GOOD, "127.0.0.1")
    for uri in "http://[::1]:0/callback", "http://[::1]:4711/callback":
        with pytest.raises(AuthorizationFailed, match="cannot assign"):
            await LoopbackListener.open(uri, any_port=True)


@pytest.mark.parametrize(
    ("any_port", "ports"), [(False, [4711]), (True, [4711, 0, 0, 0])], ids=["given", "any"]
)
async def test_loopback_tries_three_random_ports(
    any_port: bool, ports: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_port(host: str, port: int) -> list[trio.SocketListener]:
        tried.append(port)
        raise OSError(errno.EADDRINUSE, "address already in use")

    tried: list[int] = []
    monkeypatch.setattr(_loopback, "_open_listeners", no_port)
    with pytest.raises(AuthorizationFailed, match="address already in use"):
        await LoopbackListener.open("http://127.0.0.1:4711/callback", any_port=any_port)
    assert tried == ports


async def test_loopback_port_is_closed_afterwards() -> None:
    async with waiting() as (loopback, _):
        await response_to(loopback, GOOD)
    with pytest.raises(OSError, match=r"refused|failed"):
        await connected(loopback)
