"""A client that obtains tokens for a server that requires them: requests, logins, storage."""

from __future__ import annotations

import logging
import re
import time
import webbrowser
from contextlib import suppress
from html import unescape
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from mcp_core import AuthRequired, CallTimeout, ConnectFailed, ConnectionLost
from mcp_core.auth import AuthorizationFailed, Browse, Fetch, FetchFailed
from mcp_trio import (
    Client,
    ClientProfile,
    FileStorage,
    LoginConfig,
    MemoryStorage,
    Server,
    connect,
    connect_http,
)
from mcp_trio.auth._authorization import ClientAuthorization, login_config
from mcp_trio.auth._loopback import LoopbackListener
from tests.core.auth.test_providers import profile_of
from tests.fakes.browser import login_page_of, visit
from tests.fakes.providers import PROVIDERS, ProviderFake
from tests.harness.world.oauth import oauth_world, redirect_uri_in, state_in
from tests.harness.world.waiting import PATIENCE, until
from tests.trio_.http_client.test_connector import TinyProxy, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mcp_core.auth import HttpRequest, HttpResponse
    from tests.harness.world.oauth import OAuthWorld

HEADLESS = ClientProfile(redirect_uri="http://127.0.0.1:1/callback")


@pytest.fixture
async def world() -> AsyncIterator[OAuthWorld]:
    async with oauth_world() as world:
        yield world


async def browse(url: str) -> str:
    """A user who consents."""
    query = parse_qs(urlsplit(url).query)
    scope = query.get("scope", [""])[0]
    return (
        f"{query['redirect_uri'][0]}?code=code+{scope.replace(' ', '+')}&state={query['state'][0]}"
    )


def headless(**more: Any) -> LoginConfig:
    return LoginConfig(
        **{"profile": HEADLESS, "storage": MemoryStorage(), "browse": browse, **more}
    )


def opened(world: OAuthWorld, auth: Any, **options: Any) -> Any:
    return connect_http(world.url, auth=auth, versions=["2025-11-25"], **options)


def lost(url: str) -> str:
    raise ConnectionLost("it was shown by a server that is gone")


async def test_login_token_is_sent_with_all_later_requests(
    world: OAuthWorld, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "mcp_trio"):
        async with opened(world, headless()) as client:
            assert [tool.name for tool in await client.list_tools()] == ["add"]
    assert f"a user is asked to log in: <Browse {world.root}/authorize redirect_uri=" in caplog.text
    assert "state" not in caplog.text
    assert world.posted[0] == ("initialize", "")
    assert {token for _, token in world.posted[1:]} == {"CANARY-token-1"}
    assert (world.count("/register"), world.count("/token")) == (1, 1)


async def test_login_at_deviating_server_needs_the_settings_of_its_profile(
    world: OAuthWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """The settings are in the record of the login, so other programs need none."""
    world.deviate()
    profile = replace(
        HEADLESS,
        issuer=f"{world.root}/",
        metadata_issuer="https://as.example/{tenant}",
        scopes=("a",),
        assume_pkce=True,
        send_resource=False,
    )
    storage = MemoryStorage()
    async with opened(world, headless(profile=profile, storage=storage)) as client:
        await client.list_tools()
        world.good.clear()
        await client.list_tools()
    assert world.tokens == 2
    assert [each for each in caplog.records if each.levelno > logging.INFO] == []
    # The record is enough for other programs.
    world.good.clear()
    async with opened(world, LoginConfig(storage=storage, browse=None)) as client:
        await client.list_tools()
    assert world.tokens == 3
    assert not [path for path, fields in world.requests if "resource" in fields]
    with pytest.raises(ConnectFailed, match="set issuer and metadata_issuer of the profile"):
        async with opened(world, headless()):
            pass


async def test_members_ignored_in_metadata_are_logged(
    world: OAuthWorld, caplog: pytest.LogCaptureFixture
) -> None:
    world.deviations = {
        "issuer": f"{world.root}/",
        "client_id_metadata_document_supported": "yes",
    }
    async with opened(world, headless()) as client:
        await client.list_tools()
    notes = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert len(notes) == 2
    assert notes[0].endswith("and are ignored: client_id_metadata_document_supported")
    assert notes[1].endswith(f"calls itself '{world.root}/': that is its issuer from now on")


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"access_token":"a b"}'])
async def test_renewal_without_usable_answer_keeps_the_client_alive(
    world: OAuthWorld,
    body: bytes,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The token lives for ten seconds more, so the calls succeed."""
    now = time.time()
    monkeypatch.setattr("mcp_trio.auth._authorization.time", SimpleNamespace(time=lambda: now))
    async with opened(world, headless()) as client:
        await client.list_tools()
        real = world.answer

        async def broken(request: Any, sent: bytes) -> Any:
            if b"refresh_token" in sent:
                return 200, {}, body
            return await real(request, sent)

        monkeypatch.setattr(world, "answer", broken)
        now += 3590  # seconds, of the 3600 for which the token lives
        await client.list_tools()
        await client.list_tools()
    assert caplog.text.count("the access token could not be renewed before it expires") == 1


@pytest.mark.parametrize("name", PROVIDERS)
async def test_login_at_provider_runs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the profile of the page, whose claims `core/auth/test_providers.py` plays."""
    fake = ProviderFake(PROVIDERS[name])

    async def fetch(request: HttpRequest, **options: Any) -> HttpResponse:
        assert options["allow"]("9.9.9.9")
        reply: HttpResponse = fake.answer(Fetch(request))
        return reply

    async def log_in(url: str) -> str:
        back: str = fake.answer(Browse(url, HEADLESS.redirect_uri))
        return back

    monkeypatch.setattr("mcp_trio.auth._authorization.fetch", fetch)
    profile = profile_of(name, redirect_uri=HEADLESS.redirect_uri)
    login = LoginConfig(profile=profile, storage=MemoryStorage(), browse=log_in)
    auth = ClientAuthorization(fake.provider.mcp, login)
    async with trio.open_nursery() as nursery:
        auth.start(nursery)
        auth.set_server_address("9.9.9.9")
        attempt = auth.attempt("tools/list")
        challenge = [("www-authenticate", fake.challenge)]
        await auth.ensure_token()
        assert attempt.headers("POST", fake.provider.mcp) == []
        assert attempt.received(401, challenge, fake.provider.mcp)
        await auth.handle_challenge(attempt)
        sent = attempt.headers("POST", fake.provider.mcp)
        assert sent == [("authorization", f"Bearer token-{len(fake.redeemed)}")]


@pytest.mark.requirement("AG-2")
async def test_auth_disabled_refusal_names_the_cure(world: OAuthWorld) -> None:
    with pytest.raises(ConnectFailed, match=r"auth=True.*mcp-trio login") as caught:
        async with opened(world, False):
            pass
    assert isinstance(caught.value.__cause__, AuthRequired)
    assert world.requests == []


async def test_stored_tokens_are_used_without_a_user(world: OAuthWorld) -> None:
    storage = MemoryStorage()
    async with opened(world, headless(storage=storage)):
        pass
    async with opened(world, LoginConfig(storage=storage, browse=None)) as client:
        await client.list_tools()
    assert world.tokens == 1


async def test_stored_tokens_are_used_inside_a_deadline(world: OAuthWorld) -> None:
    storage = MemoryStorage()
    async with opened(world, headless(storage=storage)):
        pass
    world.posted.clear()
    with trio.fail_after(PATIENCE):
        async with opened(world, headless(storage=storage)):
            pass
    assert {token for _, token in world.posted} == {"CANARY-token-1"}


async def test_login_without_browse_raises_auth_required(world: OAuthWorld) -> None:
    with pytest.raises(ConnectFailed, match="log in") as caught:
        async with opened(world, LoginConfig(storage=MemoryStorage(), browse=None)):
            pass
    assert isinstance(caught.value.__cause__, AuthRequired)
    assert world.count("/register") == world.count("/authorize") == 0


async def test_rejected_token_is_refreshed(world: OAuthWorld) -> None:
    async with opened(world, headless()) as client:
        world.good.clear()
        await client.list_tools()
    assert world.tokens == 2
    assert world.requests[-1][1]["grant_type"] == "refresh_token"


async def test_concurrent_rejections_cause_one_refresh(world: OAuthWorld) -> None:
    async with opened(world, headless()) as client:
        world.good.clear()
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(client.list_tools)
    assert world.tokens == 2


async def test_expiring_token_is_refreshed_in_advance(
    world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr("mcp_trio.auth._authorization.time", SimpleNamespace(time=lambda: now))
    async with opened(world, headless()) as client:
        now += world.life - 1
        await client.list_tools()
    assert not [
        method
        for method, token in world.posted
        if token == "CANARY-token-1" and method == "tools/list"
    ]
    assert world.tokens == 2


async def test_insufficient_scope_requests_more_scopes(world: OAuthWorld) -> None:
    async with opened(world, headless()) as client:
        world.wants = "add:numbers"
        await client.call_tool("add", {})
    assert world.scopes["CANARY-token-2"] == "add:numbers"


async def test_scope_never_granted_raises_auth_required(world: OAuthWorld) -> None:
    async def stubborn(url: str) -> str:
        return f"{HEADLESS.redirect_uri}?code=x&state={state_in(url)}"

    async with opened(world, headless(browse=stubborn)) as client:
        world.wants = "never"
        with pytest.raises(AuthRequired, match="still refuses tools/call add"):
            await client.call_tool("add", {})
        world.wants = None
        await client.call_tool("add", {})


async def test_token_always_rejected_fails_after_one_login(world: OAuthWorld) -> None:
    class Never(set[str]):
        def add(self, token: str) -> None:
            pass

    world.good = Never()
    with pytest.raises(ConnectFailed, match="has just given"):
        async with opened(world, headless()):
            pass
    assert world.count("/token") == 1


async def test_cancelled_call_does_not_end_the_login(world: OAuthWorld) -> None:
    async with opened(world, headless()) as client:
        world.good.clear()
        world.paused = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.list_tools)
            await world.waits.wait()
            nursery.cancel_scope.cancel()
        world.paused.set()
        await client.list_tools()
    assert world.tokens == 2


async def test_cancelled_client_stores_the_token_it_requested(world: OAuthWorld) -> None:
    storage = MemoryStorage()
    async with opened(world, headless(storage=storage)) as client:
        world.good.clear()
        world.paused = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.list_tools)
            await world.waits.wait()
            nursery.cancel_scope.cancel()
        world.paused.set()
    assert "CANARY-token-2" in str(storage._values)


@pytest.mark.parametrize(
    ("callback", "text"),
    [
        (
            lambda url: f"http://127.0.0.1:1/callback?code=x&state={state_in(url)}x",
            "not the redirect of this login",
        ),
        (lambda url: "http://127.0.0.1:1/callback", "not the redirect of this login"),
        (
            lambda url: f"http://127.0.0.1:1/callback?error=access_denied&state={state_in(url)}",
            "access_denied",
        ),
        (lambda url: 1 / 0, r"could not be shown \(ZeroDivisionError\)"),
        (lost, r"could not be shown \(ConnectionLost\)"),
        (lambda url: None, "not the redirect of this login"),
        (lambda url: b"http://127.0.0.1:1/callback", "not the redirect of this login"),
    ],
)
async def test_failed_login_raises_with_the_reason(
    world: OAuthWorld, callback: Callable[[str], str], text: str
) -> None:
    async def come_back(url: str) -> str:
        return callback(url)

    with pytest.raises(ConnectFailed, match=text) as caught:
        async with opened(world, headless(browse=come_back)):
            pass
    assert isinstance(caught.value.__cause__, AuthorizationFailed)


async def test_failing_storage_is_logged_and_login_works(
    world: OAuthWorld, caplog: pytest.LogCaptureFixture
) -> None:
    """Broken storage costs a login per run, but no call, and its secrets stay out of the log."""

    class Broken:
        def load(self, key: str) -> bytes | None:
            raise LookupError("unreadable")

        def save(self, key: str, value: bytes | None) -> None:
            raise ValueError(value)

    with caplog.at_level(logging.WARNING, "mcp_trio"):
        async with opened(world, headless(storage=Broken())) as client:
            await client.list_tools()
    assert "cannot be read in Broken: LookupError" in caplog.text
    assert "cannot be kept in Broken: ValueError" in caplog.text
    assert "CANARY" not in caplog.text


async def test_invalid_stored_tokens_are_ignored(
    world: OAuthWorld, caplog: pytest.LogCaptureFixture
) -> None:
    class Garbled(MemoryStorage):
        def load(self, key: str) -> bytes | None:
            return b"\xff{"

    with caplog.at_level(logging.WARNING, "mcp_trio"):
        async with opened(world, headless(storage=Garbled())):
            pass
    assert "cannot be read" in caplog.text


async def test_new_login_clears_the_client_cache(
    world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user may have logged in, who must not see the first one's lists."""
    forgot: list[Client] = []

    def forget(client: Client) -> None:
        forgot.append(client)

    monkeypatch.setattr(Client, "clear_cache", forget)
    world.refresh = False
    async with opened(world, headless()) as client:
        assert forgot == [client]
        await client.list_tools()
        assert forgot == [client]
        world.good.clear()
        await client.list_tools()
        assert forgot == [client, client]


@pytest.mark.requirement("AG-2")
async def test_auth_option_for_a_server_object_raises() -> None:
    with pytest.raises(ValueError, match="auth is for a server at a URL"):
        connect(Server("here"), auth=True)


async def test_login_during_a_call_pauses_its_timeout(
    world: OAuthWorld, mock_clock: trio.testing.MockClock
) -> None:
    """Also for a call that waits for the login of another, and for one that starts meanwhile."""
    begun = trio.Event()

    async def slow(url: str) -> str:
        if world.wants is not None:
            begun.set()
            mock_clock.jump(10.0)
        return await browse(url)

    async with opened(world, headless(browse=slow)) as client, trio.open_nursery() as nursery:
        world.wants = "numbers"
        for _ in range(2):
            nursery.start_soon(lambda: client.call_tool("add", {}, timeout=7))
        await begun.wait()
        nursery.start_soon(lambda: client.call_tool("add", {}, timeout=7))
    assert world.tokens == 2


async def test_call_cancelled_during_login_is_not_sent(world: OAuthWorld) -> None:
    """Another call that waits for the same login is sent."""
    shown, go_on = trio.Event(), trio.Event()

    async def slow(url: str) -> str:
        if world.wants is not None:
            shown.set()
            await go_on.wait()
        return await browse(url)

    async with opened(world, headless(browse=slow)) as client, trio.open_nursery() as nursery:
        world.wants = "numbers"
        given_up = trio.CancelScope()

        async def gives_up() -> None:
            with given_up:
                await client.call_tool("add", {})

        nursery.start_soon(gives_up)
        await shown.wait()
        nursery.start_soon(client.call_tool, "add", {})
        await trio.testing.wait_all_tasks_blocked(0.05)
        given_up.cancel()
        await trio.testing.wait_all_tasks_blocked(0.05)
        go_on.set()
    calls = [token for method, token in world.posted if method == "tools/call"]
    assert calls.count("CANARY-token-2") == 1


async def test_rejected_large_request_is_sent_again(world: OAuthWorld) -> None:
    """The response arrives while the request is still being written."""
    async with opened(world, headless()) as client:
        world.good.clear()
        await client.call_tool("add", {"x": "y" * 3_000_000})
    assert world.tokens == 2


async def test_refresh_waits_until_the_server_address_is_known(
    world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = MemoryStorage()
    async with opened(world, headless(storage=storage)):
        pass
    now = time.time() + world.life - 1
    monkeypatch.setattr("mcp_trio.auth._authorization.time", SimpleNamespace(time=lambda: now))
    world.posted.clear()
    async with opened(world, headless(storage=storage)):
        pass
    assert world.posted[0] == ("initialize", "CANARY-token-1")
    assert {token for _, token in world.posted[1:]} == {"CANARY-token-2"}


async def test_authorization_server_is_reached_through_the_same_proxy(world: OAuthWorld) -> None:
    proxy = TinyProxy(world.port)
    async with (
        listening(proxy) as port,
        opened(world, headless(), proxy=f"http://127.0.0.1:{port}") as client,
    ):
        await client.list_tools()
    requests = {head.split()[1].decode() for head in proxy.heads}
    assert {f"{world.root}/mcp", f"{world.root}/register", f"{world.root}/token"} <= requests


async def test_private_address_is_allowed_for_servers_in_a_private_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A public server could otherwise make the client request addresses in its own network."""
    authorization = ClientAuthorization("https://mcp.corp/mcp", headless())
    requests: list[bool] = []

    async def fetch(
        request: HttpRequest, *, allow: Callable[[str], bool], **more: object
    ) -> HttpResponse:
        requests.append(allow("10.0.0.1"))
        raise FetchFailed("that is enough")

    monkeypatch.setattr("mcp_trio.auth._authorization.fetch", fetch)
    async with trio.open_nursery() as nursery:
        authorization.start(nursery)
        for address in None, "9.9.9.9", "10.1.1.1":
            authorization.set_server_address(address)
            attempt = authorization.attempt()
            attempt.headers("POST", "https://mcp.corp/mcp")
            attempt.received(
                401,
                [("www-authenticate", 'Bearer resource_metadata="https://as.corp/x"')],
                "https://mcp.corp/mcp",
            )
            with pytest.raises(AuthorizationFailed, match="that is enough"):
                await authorization.handle_challenge(attempt)
    assert requests == [False, False, True]


async def test_call_timeout_resumes_after_login(
    world: OAuthWorld, mock_clock: trio.testing.MockClock
) -> None:
    """The 10 seconds that the user needs don't count, but a slow server still times out."""

    async def slow(url: str) -> str:
        mock_clock.jump(10)
        return await browse(url)

    async def stop_waiting() -> None:
        await world.waits.wait()
        mock_clock.jump(10)

    async with opened(world, headless(browse=slow)) as client:
        world.wants, world.paused = "numbers", trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stop_waiting)
            with pytest.raises(CallTimeout):
                await client.call_tool("add", {}, timeout=9)
        world.paused.set()
        await client.call_tool("add", {})
    assert world.tokens == 2


async def test_login_may_take_longer_than_initialize_timeout(
    world: OAuthWorld, mock_clock: trio.testing.MockClock
) -> None:
    async def slow(url: str) -> str:
        mock_clock.jump(30)
        return await browse(url)

    async with opened(world, headless(browse=slow), initialize_timeout=20):
        pass


async def test_show_mode_leaves_the_page_to_the_user(
    world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a machine on which no browser can be opened."""
    monkeypatch.setattr(webbrowser, "open", lambda url: 1 / 0)
    async with trio.open_nursery() as nursery:

        def show(url: str) -> None:
            nursery.start_soon(
                trio.to_thread.run_sync, lambda: urlopen(url, timeout=PATIENCE).read()
            )

        login = LoginConfig(storage=MemoryStorage(), browse="show", show=show)
        async with opened(world, login) as client:
            await client.list_tools()
    assert world.tokens == 1


async def test_new_scopes_are_shown_before_the_login_page(
    world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A local page names the added scopes first, so the server can't widen its rights unseen."""
    pages: list[str] = []

    def open_page(url: str) -> bool:
        pages.append(visit(url))
        link = unescape(pages[-1].partition('href="')[2].partition('"')[0])
        urlopen(link or pages[-1], timeout=PATIENCE).read()
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    async with opened(world, LoginConfig(storage=MemoryStorage())) as client:
        world.wants = "add:numbers"
        await client.call_tool("add", {})
    first, then = pages
    assert first.startswith(f"{world.root}/authorize?")
    assert f"{world.url} demands more than at the last login" in then
    assert "<code>add:numbers</code>" in then
    assert "refresh" not in then


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("headless_", [True, False])
async def test_new_scopes_are_confirmed_by_the_application(
    world: OAuthWorld, browser: list[str], allowed: bool, headless_: bool
) -> None:
    """The callback decides alone: a refusal fails the call and no new token is requested."""
    asked: list[tuple[str, ...]] = []

    async def confirm(scopes: tuple[str, ...]) -> bool:
        asked.append(scopes)
        return allowed

    login = LoginConfig(storage=MemoryStorage(), confirm_scopes=confirm)
    if headless_:
        login = headless(confirm_scopes=confirm)
    async with opened(world, login) as client:
        world.wants = "add:numbers"
        if allowed:
            await client.call_tool("add", {})
        else:
            with pytest.raises(AuthRequired, match=r"did not allow .* demands: add:numbers"):
                await client.call_tool("add", {})
    assert asked == [("add:numbers",)]
    assert world.tokens == (2 if allowed else 1)


# -- The browser ---------------------------------------------------------------------------------


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A browser that follows the login page, and the URLs that it was given."""
    shown: list[str] = []

    def open_page(url: str) -> bool:
        shown.append(url)
        assert b"Thank you" in urlopen(url, timeout=PATIENCE).read()
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    return shown


async def test_browser_login_shows_the_page_and_gets_the_redirect(
    world: OAuthWorld, browser: list[str]
) -> None:
    shown: list[str] = []
    async with opened(world, LoginConfig(storage=MemoryStorage(), show=shown.append)) as client:
        await client.list_tools()
    assert shown[0].startswith(f"{world.root}/authorize?")
    # Other users can see the arguments of the browser, which must not show the login.
    (started,) = browser
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/start/[\w-]{43}", started)
    assert state_in(shown[0]) not in started


async def test_browser_login_reuses_the_registered_port(
    world: OAuthWorld, browser: list[str]
) -> None:
    storage = MemoryStorage()
    world.refresh = False
    shown: list[str] = []
    for _ in range(2):
        async with opened(world, LoginConfig(storage=storage, show=shown.append)) as client:
            world.good.clear()
            await client.list_tools()
    assert len({redirect_uri_in(url) for url in shown}) == 1
    assert len(shown) == len(browser) > 1
    assert world.count("/register") == 1


async def test_browser_missing_raises_with_the_cure(
    world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    with pytest.raises(ConnectFailed, match="no browser can be opened"):
        async with opened(world, LoginConfig(storage=MemoryStorage())):
            pass


async def test_loopback_port_taken_raises_or_uses_another(world: OAuthWorld) -> None:
    taken = ClientProfile(redirect_uri=f"{world.root}/callback")
    with pytest.raises(ConnectFailed, match="another program"):
        async with opened(world, LoginConfig(profile=taken, storage=MemoryStorage())):
            pass
    loopback = await LoopbackListener.open(f"{world.root}/callback", any_port=True)
    assert urlsplit(loopback.redirect_uri).port not in (0, world.port)
    assert repr(loopback) == f"<LoopbackListener at {loopback.redirect_uri}>"
    loopback.close()


async def test_loopback_unrelated_requests_get_404(
    world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a GET of the exact path with the right state ends the login; garbage gets no answer."""
    statuses: list[bytes] = []

    async def ask(port: int, request: bytes) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            received = b""
            with suppress(trio.BrokenResourceError):
                await stream.send_all(request)
                async for data in stream:
                    received += data
            statuses.append(received[:12])

    def come_back(url: str) -> bool:
        page = login_page_of(url)
        place = urlsplit(redirect_uri_in(page))
        port = place.port
        assert port is not None
        state = state_in(page).encode()
        line = f" {place.path}?code=x&state=".encode() + state
        for request in (
            f"GET {place.path}?code=x&state=wrong HTTP/1.1\r\nhost: x\r\n\r\n".encode(),
            b"GET /callback?code=x&state=" + state + b" HTTP/1.1\r\nhost: x\r\n\r\n",
            f"GET {urlsplit(url).path} HTTP/1.1\r\nhost: x\r\n\r\n".encode(),
            b"GET /favicon.ico HTTP/1.1\r\nhost: x\r\n\r\n",
            b"POST" + line + b" HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n",
            b"GET /other?code=x&state=" + state + b" HTTP/1.1\r\nhost: x\r\n\r\n",
            b"GET /" + b"x" * 40_000,
            b"nonsense\r\n\r\n",
            b"GET" + line + b" HTTP/1.1\r\nhost: x\r\n\r\n",
        ):
            trio.from_thread.run(ask, port, request)
        return True

    monkeypatch.setattr(webbrowser, "open", come_back)
    async with opened(world, LoginConfig(storage=MemoryStorage())):
        pass
    assert statuses == [b"HTTP/1.1 404"] * 6 + [b"", b""] + [b"HTTP/1.1 200"]


@pytest.mark.parametrize("host", ["localhost", "[::1]"])
async def test_loopback_accepts_every_local_host_name(
    world: OAuthWorld, browser: list[str], host: str
) -> None:
    profile = ClientProfile(redirect_uri=f"http://{host}:0/callback")
    shown: list[str] = []
    login = LoginConfig(profile=profile, storage=MemoryStorage(), show=shown.append)
    async with opened(world, login):
        pass
    assert urlsplit(redirect_uri_in(shown[0])).hostname == host.strip("[]")
    assert urlsplit(browser[0]).hostname == host.strip("[]")


async def test_loopback_with_remote_redirect_uri_raises(world: OAuthWorld) -> None:
    elsewhere = ClientProfile(redirect_uri="https://client.example/callback")
    with pytest.raises(ConnectFailed, match="not a port of this machine"):
        async with opened(world, LoginConfig(profile=elsewhere, storage=MemoryStorage())):
            pass


async def test_show_callback_failure_raises(world: OAuthWorld, browser: list[str]) -> None:
    def show(url: str) -> None:
        raise OSError("the terminal is gone")

    with pytest.raises(ConnectFailed, match=r"could not be shown \(OSError\)"):
        async with opened(world, LoginConfig(storage=MemoryStorage(), show=show)):
            pass
    assert browser == []


@pytest.mark.parametrize(
    "error", [webbrowser.Error("no runnable browser"), OSError("exec format error")]
)
async def test_browser_failure_raises(
    world: OAuthWorld, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(url: str) -> bool:
        raise error

    monkeypatch.setattr(webbrowser, "open", fail)
    with pytest.raises(ConnectFailed, match="no browser can be opened"):
        async with opened(world, LoginConfig(storage=MemoryStorage())):
            pass


async def test_browse_raising_auth_required_propagates_its_text(world: OAuthWorld) -> None:
    async def refuse(url: str) -> str:
        raise AuthRequired("log in later")

    with pytest.raises(ConnectFailed, match="log in later"):
        async with opened(world, headless(browse=refuse)):
            pass


async def test_browse_none_with_redirect_uri_raises_auth_required(world: OAuthWorld) -> None:
    with pytest.raises(ConnectFailed, match="log in with `mcp-trio login` before"):
        async with opened(world, headless(browse=None)):
            pass


async def test_login_by_another_process_is_noticed(world: OAuthWorld) -> None:
    """As after `mcp-trio login`, which our error message recommends."""
    storage = MemoryStorage()
    world.good.add("")
    async with opened(world, LoginConfig(storage=storage, browse=None)) as client:
        world.good.clear()
        with pytest.raises(AuthRequired, match="mcp-trio login"):
            await client.list_tools()
        async with opened(world, headless(storage=storage)):
            pass
        await client.list_tools()
    assert world.tokens == 1


async def test_two_clients_with_one_storage_refresh_once(
    world: OAuthWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As two processes do.

    A second use of the old refresh token would be rejected, or revoke all tokens.
    """
    refused: list[str] = []  # the keys of the locks that the other client has to wait for
    lock = FileStorage.lock

    def watched(storage: FileStorage, key: str) -> Callable[[], None] | None:
        release = lock(storage, key)
        if release is None:
            refused.append(key)
        return release

    monkeypatch.setattr(FileStorage, "lock", watched)
    async with (
        opened(world, headless(storage=FileStorage(tmp_path))) as one,
        opened(world, headless(storage=FileStorage(tmp_path))) as other,
        trio.open_nursery() as nursery,
    ):
        world.good.clear()
        world.paused = trio.Event()
        nursery.start_soon(one.list_tools)
        await world.waits.wait()
        nursery.start_soon(other.list_tools)
        await until(lambda: refused)
        world.paused.set()
    assert world.tokens == 2


async def test_login_by_another_process_does_not_block_the_storage(
    world: OAuthWorld, tmp_path: Path
) -> None:
    """A login may take long, and the stored tokens are only locked at its end."""
    shown, go_on = trio.Event(), trio.Event()

    async def slow(url: str) -> str:
        shown.set()
        await go_on.wait()
        return await browse(url)

    async def log_in() -> None:
        async with opened(world, headless(storage=FileStorage(tmp_path), browse=slow)):
            pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(log_in)
        await shown.wait()
        with trio.fail_after(PATIENCE):
            async with opened(world, headless(storage=FileStorage(tmp_path))):
                pass
        go_on.set()
    assert world.tokens == 2


async def test_storage_lock_timeout_continues_unlocked(
    world: OAuthWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_trio.auth._authorization._LOCK_TIMEOUT", 0.1)
    storage = FileStorage(tmp_path)
    unlock = storage.lock(f"tokens:{world.url}")
    assert unlock is not None
    async with opened(world, headless(storage=storage)):
        pass
    unlock()


async def test_storage_lock_is_waited_for_ten_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    """Another process may hang while it holds the lock; then the login goes on without it."""
    asked: list[str] = []

    async def run_sync(function: Any, *arguments: Any) -> Any:
        return function(*arguments)  # for a thread the clock would not wait

    monkeypatch.setattr(trio.to_thread, "run_sync", run_sync)
    monkeypatch.setattr(FileStorage, "lock", lambda _, key: asked.append(key))
    waiting: Any = SimpleNamespace(
        _login=headless(storage=FileStorage(tmp_path)), _release_lock=None
    )
    began = trio.current_time()
    await ClientAuthorization._lock_storage(waiting, "tokens")
    assert trio.current_time() - began == 10
    assert waiting._release_lock is None
    assert 100 < len(asked) < 300


async def test_storage_lock_failure_is_logged_and_login_works(
    world: OAuthWorld, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    storage = FileStorage(tmp_path / "file" / "tokens")
    async with opened(world, headless(storage=storage)) as client:
        await client.list_tools()
    assert f"cannot be kept in {storage!r}: [Errno 20] Not a directory" in caplog.text


async def test_refresh_does_not_need_the_loopback_port(
    world: OAuthWorld, browser: list[str]
) -> None:
    """Another program listens at the one registered port."""
    storage = MemoryStorage()
    place = await LoopbackListener.open("http://127.0.0.1:0/callback", any_port=True)
    profile = ClientProfile(redirect_uri=place.redirect_uri)
    place.close()
    async with opened(world, LoginConfig(profile=profile, storage=storage)) as client:
        taken = await LoopbackListener.open(profile.redirect_uri)
        world.good.clear()
        await client.list_tools()
        taken.close()
    assert world.tokens == 2


async def test_closed_client_ends_its_login(world: OAuthWorld) -> None:
    """The user may never finish the login page, so closing must not wait for it."""
    shown = trio.Event()

    async def never(url: str) -> str:
        if world.wants is None:
            return await browse(url)
        shown.set()
        await trio.sleep_forever()
        raise AssertionError

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery, opened(world, headless(browse=never)) as client:
            world.wants = "numbers"

            async def calls() -> None:
                with pytest.raises(ConnectionLost):
                    await client.call_tool("add", {})

            nursery.start_soon(calls)
            await shown.wait()
    assert world.tokens == 1


def test_authorization_repr_has_no_secrets() -> None:
    authorization = ClientAuthorization("https://e.com/mcp?key=CANARY", headless())
    assert (
        repr(authorization)
        == "<ClientAuthorization by <Authorizer 'https://e.com/mcp': no tokens>>"
    )


def test_login_with_invalid_browse_raises() -> None:
    with pytest.raises(ValueError, match=r"set profile\.redirect_uri"):
        LoginConfig(browse=browse)
    with pytest.raises(ValueError, match="not 'firefox'"):
        LoginConfig(browse="firefox")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="browse='show' needs show"):
        LoginConfig(browse="show")


def test_auth_option_accepts_bool_profile_and_login() -> None:
    profile = ClientProfile(client_name="us")
    login = LoginConfig()
    assert login_config(True).browse == login.browse == "browser"
    assert login_config(profile).profile is profile
    assert login_config(login) is login


async def test_login_page_without_redirect_times_out(
    world: OAuthWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    monkeypatch.setattr("mcp_trio.auth._loopback._LOGIN_TIMEOUT", 0.05)
    with pytest.raises(ConnectFailed, match="did not return from the login page"):
        async with opened(world, LoginConfig(storage=MemoryStorage())):
            pass
