"""A client that gets its tokens, against a server that wants them: what is asked of whom, who is bothered, and what is left."""

from __future__ import annotations

import logging
import time
import webbrowser
from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
import trio
import trio.testing

from mcp_core import AuthRequired, CallTimeout, ConnectFailed, ConnectionLost
from mcp_core.auth import AuthorizationFailed, FetchFailed
from mcp_trio import Client, ClientProfile, FileStorage, Login, MemoryStorage, Server, connect, connect_http
from mcp_trio._authorization import Authorization, login_of
from mcp_trio._h11_loopback import Loopback
from tests.trio_.oauth_world import oauth_world, state_in
from tests.trio_.test_dial import TinyProxy, listening

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from mcp_core.auth import HttpReply, HttpRequest
    from tests.trio_.oauth_world import World

HEADLESS = ClientProfile(redirect_uri="http://127.0.0.1:1/callback")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with oauth_world() as world:
        yield world


async def browse(url: str) -> str:
    """A user who says yes."""
    query = parse_qs(urlsplit(url).query)
    scope = query.get("scope", [""])[0]
    return f"{query['redirect_uri'][0]}?code=code+{scope.replace(' ', '+')}&state={query['state'][0]}"


def headless(**more: Any) -> Login:
    return Login(**{"profile": HEADLESS, "storage": MemoryStorage(), "browse": browse, **more})


def opened(world: World, auth: Any, **options: Any) -> Any:
    return connect_http(world.url, auth=auth, versions=["2025-11-25"], **options)


def lost(url: str) -> str:
    raise ConnectionLost("it was shown by a server that is gone")


async def test_a_login_and_all_that_follows_carries_the_token(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "mcp_trio"):
        async with opened(world, headless()) as client:
            assert [tool.name for tool in await client.list_tools()] == ["add"]
    assert f"a user is asked to log in: <Browse {world.root}/authorize redirect_uri=" in caplog.text
    assert "state" not in caplog.text
    assert world.posted[0] == ("initialize", "")
    assert {token for _, token in world.posted[1:]} == {"CANARY-token-1"}
    assert (world.count("/register"), world.count("/token")) == (1, 1)


@pytest.mark.requirement("AG-2")
async def test_without_auth_a_refusal_says_what_to_do(world: World) -> None:
    with pytest.raises(ConnectFailed, match=r"auth=True.*mcp-trio login") as caught:
        async with opened(world, False):
            pass
    assert isinstance(caught.value.__cause__, AuthRequired)
    assert world.asked == []


async def test_stored_tokens_are_used_without_a_user(world: World) -> None:
    storage = MemoryStorage()
    async with opened(world, headless(storage=storage)):
        pass
    async with opened(world, Login(storage=storage, browse=None)) as client:
        await client.list_tools()
    assert world.tokens == 1


async def test_stored_tokens_are_used_by_whoever_has_a_deadline(world: World) -> None:
    storage = MemoryStorage()
    async with opened(world, headless(storage=storage)):
        pass
    world.posted.clear()
    with trio.fail_after(30):
        async with opened(world, headless(storage=storage)):
            pass
    assert {token for _, token in world.posted} == {"CANARY-token-1"}


async def test_nobody_is_asked_who_does_not_want_to_be(world: World) -> None:
    with pytest.raises(ConnectFailed, match="log in") as caught:
        async with opened(world, Login(storage=MemoryStorage(), browse=None)):
            pass
    assert isinstance(caught.value.__cause__, AuthRequired)
    assert world.count("/register") == world.count("/authorize") == 0


async def test_a_token_that_is_refused_is_refreshed(world: World) -> None:
    async with opened(world, headless()) as client:
        world.good.clear()
        await client.list_tools()
    assert world.tokens == 2
    assert world.asked[-1][1]["grant_type"] == "refresh_token"


async def test_many_refusals_lead_to_one_refresh(world: World) -> None:
    async with opened(world, headless()) as client:
        world.good.clear()
        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(client.list_tools)
    assert world.tokens == 2


async def test_a_token_is_renewed_before_it_expires(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time()
    monkeypatch.setattr("mcp_trio._authorization.time", SimpleNamespace(time=lambda: now))
    async with opened(world, headless()) as client:
        now += world.life - 1
        await client.list_tools()
    assert not [
        method for method, token in world.posted if token == "CANARY-token-1" and method == "tools/list"
    ]
    assert world.tokens == 2


async def test_more_scopes_are_asked_for_when_they_are_needed(world: World) -> None:
    async with opened(world, headless()) as client:
        world.wants = "add:numbers"
        await client.call_tool("add", {})
    assert world.scopes["CANARY-token-2"] == "add:numbers"


async def test_a_scope_that_is_never_given_ends_in_a_clear_error(world: World) -> None:
    async def stubborn(url: str) -> str:
        return f"{HEADLESS.redirect_uri}?code=x&state={state_in(url)}"

    async with opened(world, headless(browse=stubborn)) as client:
        world.wants = "never"
        with pytest.raises(AuthRequired, match="still refuses tools/call add"):
            await client.call_tool("add", {})
        world.wants = None
        await client.call_tool("add", {})


async def test_a_server_that_takes_no_token_ends_in_a_clear_error(world: World) -> None:
    class Never(set[str]):
        def add(self, token: str) -> None:
            pass

    world.good = Never()
    with pytest.raises(ConnectFailed, match="has just given"):
        async with opened(world, headless()):
            pass
    assert world.count("/token") == 1


async def test_a_call_that_is_given_up_ends_no_login(world: World) -> None:
    async with opened(world, headless()) as client:
        world.good.clear()
        world.paused = trio.Event()
        with trio.move_on_after(0.2) as scope:
            await client.list_tools()
        assert scope.cancelled_caught
        world.paused.set()
        await client.list_tools()
    assert world.tokens == 2


async def test_a_client_that_is_cancelled_keeps_what_it_was_given(world: World) -> None:
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
        (lambda url: f"http://127.0.0.1:1/callback?code=x&state={state_in(url)}x", "no answer to this login"),
        (lambda url: "http://127.0.0.1:1/callback", "no answer to this login"),
        (
            lambda url: f"http://127.0.0.1:1/callback?error=access_denied&state={state_in(url)}",
            "access_denied",
        ),
        (lambda url: 1 / 0, r"could not be shown \(ZeroDivisionError\)"),
        (lost, r"could not be shown \(ConnectionLost\)"),
        (lambda url: None, "no answer to this login"),
        (lambda url: b"http://127.0.0.1:1/callback", "no answer to this login"),
    ],
)
async def test_a_login_that_fails_is_told(world: World, callback: Callable[[str], str], text: str) -> None:
    async def come_back(url: str) -> str:
        return callback(url)

    with pytest.raises(ConnectFailed, match=text) as caught:
        async with opened(world, headless(browse=come_back)):
            pass
    assert isinstance(caught.value.__cause__, AuthorizationFailed)


async def test_a_storage_that_fails_is_reported_and_does_no_harm(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
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


async def test_what_was_stored_and_is_broken_is_as_good_as_nothing(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    class Garbled(MemoryStorage):
        def load(self, key: str) -> bytes | None:
            return b"\xff{"

    with caplog.at_level(logging.WARNING, "mcp_trio"):
        async with opened(world, headless(storage=Garbled())):
            pass
    assert "cannot be read" in caplog.text


async def test_who_has_logged_in_anew_is_told_nothing_of_what_was_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgot: list[Client] = []

    def forget(client: Client) -> None:
        forgot.append(client)

    monkeypatch.setattr(Client, "forget", forget)
    world.refresh = False
    async with opened(world, headless()) as client:
        assert forgot == [client]
        await client.list_tools()
        assert forgot == [client]
        world.good.clear()
        await client.list_tools()
        assert forgot == [client, client]


@pytest.mark.requirement("AG-2")
async def test_only_a_url_wants_a_token() -> None:
    with pytest.raises(ValueError, match="auth is for a server at a URL"):
        connect(Server("here"), auth=True)


async def test_a_login_in_the_middle_of_a_call_does_not_count(world: World) -> None:
    """Neither for the call that needs it, nor for one that waits for it, nor for one that comes meanwhile."""
    begun = trio.Event()

    async def slow(url: str) -> str:
        if world.wants is not None:
            begun.set()
            await trio.sleep(1.0)
        return await browse(url)

    async with opened(world, headless(browse=slow)) as client, trio.open_nursery() as nursery:
        world.wants = "numbers"
        for _ in range(2):
            nursery.start_soon(lambda: client.call_tool("add", {}, timeout=0.7))
        await begun.wait()
        nursery.start_soon(lambda: client.call_tool("add", {}, timeout=0.7))
    assert world.tokens == 2


async def test_a_call_that_is_given_up_is_not_made_after_the_login(world: World) -> None:
    """The one that waits for it is."""
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


async def test_much_is_sent_again(world: World) -> None:
    """A message that is still being written when the refusal comes."""
    async with opened(world, headless()) as client:
        world.good.clear()
        await client.call_tool("add", {"x": "y" * 3_000_000})
    assert world.tokens == 2


async def test_nothing_is_renewed_before_it_is_known_where_the_server_is(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = MemoryStorage()
    async with opened(world, headless(storage=storage)):
        pass
    now = time.time() + world.life - 1
    monkeypatch.setattr("mcp_trio._authorization.time", SimpleNamespace(time=lambda: now))
    world.posted.clear()
    async with opened(world, headless(storage=storage)):
        pass
    assert world.posted[0] == ("initialize", "CANARY-token-1")
    assert {token for _, token in world.posted[1:]} == {"CANARY-token-2"}


async def test_authorization_servers_are_reached_as_the_server_is(world: World) -> None:
    proxy = TinyProxy(world.port)
    async with (
        listening(proxy) as port,
        opened(world, headless(), proxy=f"http://127.0.0.1:{port}") as client,
    ):
        await client.list_tools()
    asked = {head.split()[1].decode() for head in proxy.heads}
    assert {f"{world.root}/mcp", f"{world.root}/register", f"{world.root}/token"} <= asked


async def test_a_private_network_is_for_servers_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    authorization = Authorization("https://mcp.corp/mcp", headless())
    asked: list[bool] = []

    async def fetch(request: HttpRequest, *, allow: Callable[[str], bool], **more: object) -> HttpReply:
        asked.append(allow("10.0.0.1"))
        raise FetchFailed("that is enough")

    monkeypatch.setattr("mcp_trio._authorization.fetch", fetch)
    async with trio.open_nursery() as nursery:
        authorization.start(nursery)
        for address in None, "9.9.9.9", "10.1.1.1":
            authorization.met_at(address)
            attempt = authorization.attempt()
            attempt.headers("POST", "https://mcp.corp/mcp")
            attempt.received(
                401,
                [("www-authenticate", 'Bearer resource_metadata="https://as.corp/x"')],
                "https://mcp.corp/mcp",
            )
            with pytest.raises(AuthorizationFailed, match="that is enough"):
                await authorization.challenged(attempt)
    assert asked == [False, False, True]


async def test_after_a_login_the_time_of_a_call_counts_again(world: World) -> None:
    async def slow(url: str) -> str:
        await trio.sleep(0.1)
        return await browse(url)

    async with opened(world, headless(browse=slow)) as client:
        world.wants, world.paused = "numbers", trio.Event()
        with pytest.raises(CallTimeout):
            await client.call_tool("add", {}, timeout=0.2)
        world.paused.set()
        await client.call_tool("add", {})
    assert world.tokens == 2


async def test_the_login_may_take_longer_than_the_opening(world: World) -> None:
    async def slow(url: str) -> str:
        await trio.sleep(0.3)
        return await browse(url)

    async with opened(world, headless(browse=slow), initialize_timeout=0.2):
        pass


# -- The browser ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A browser that goes where it is sent, and what it was shown."""
    shown: list[str] = []

    def open_page(url: str) -> bool:
        shown.append(url)
        assert b"Thank you" in urlopen(url, timeout=10).read()
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    return shown


async def test_a_browser_is_opened_and_comes_back(world: World, browser: list[str]) -> None:
    told: list[str] = []
    async with opened(world, Login(storage=MemoryStorage(), show=told.append)) as client:
        await client.list_tools()
    assert told == browser
    assert browser[0].startswith(f"{world.root}/authorize?")


async def test_the_second_time_it_comes_back_to_the_same_port(world: World, browser: list[str]) -> None:
    storage = MemoryStorage()
    world.refresh = False
    for _ in range(2):
        async with opened(world, Login(storage=storage)) as client:
            world.good.clear()
            await client.list_tools()
    ports = {parse_qs(urlsplit(url).query)["redirect_uri"][0] for url in browser}
    assert len(ports) == 1
    assert world.count("/register") == 1


async def test_without_a_browser_somebody_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    with pytest.raises(ConnectFailed, match="no browser can be opened"):
        async with opened(world, Login(storage=MemoryStorage())):
            pass


async def test_a_port_that_is_taken(world: World) -> None:
    taken = ClientProfile(redirect_uri=f"{world.root}/callback")
    with pytest.raises(ConnectFailed, match="another program"):
        async with opened(world, Login(profile=taken, storage=MemoryStorage())):
            pass
    loopback = await Loopback.open(f"{world.root}/callback", any_port=True)
    assert urlsplit(loopback.redirect_uri).port not in (0, world.port)
    assert repr(loopback) == f"<Loopback at {loopback.redirect_uri}>"
    loopback.close()


async def test_what_is_no_answer_is_dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses: list[bytes] = []

    async def ask(port: int, request: bytes) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            said = b""
            with suppress(trio.BrokenResourceError):
                await stream.send_all(request)
                async for data in stream:
                    said += data
            statuses.append(said[:12])

    def come_back(url: str) -> bool:
        query = parse_qs(urlsplit(url).query)
        port = urlsplit(query["redirect_uri"][0]).port
        assert port is not None
        state = query["state"][0].encode()
        line = b" /callback?code=x&state=" + state
        for request in (
            b"GET /callback?code=x&state=wrong HTTP/1.1\r\nhost: x\r\n\r\n",
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
    async with opened(world, Login(storage=MemoryStorage())):
        pass
    assert statuses == [b"HTTP/1.1 404"] * 4 + [b"", b""] + [b"HTTP/1.1 200"]


@pytest.mark.parametrize("host", ["localhost", "[::1]"])
async def test_other_names_of_this_machine(world: World, browser: list[str], host: str) -> None:
    profile = ClientProfile(redirect_uri=f"http://{host}:0/callback")
    async with opened(world, Login(profile=profile, storage=MemoryStorage())):
        pass
    assert urlsplit(parse_qs(urlsplit(browser[0]).query)["redirect_uri"][0]).hostname == host.strip("[]")


async def test_where_nobody_can_listen(world: World) -> None:
    elsewhere = ClientProfile(redirect_uri="https://client.example/callback")
    with pytest.raises(ConnectFailed, match="not a port of this machine"):
        async with opened(world, Login(profile=elsewhere, storage=MemoryStorage())):
            pass


async def test_who_cannot_be_told_the_page(world: World, browser: list[str]) -> None:
    def show(url: str) -> None:
        raise OSError("the terminal is gone")

    with pytest.raises(ConnectFailed, match=r"could not be shown \(OSError\)"):
        async with opened(world, Login(storage=MemoryStorage(), show=show)):
            pass
    assert browser == []


@pytest.mark.parametrize("error", [webbrowser.Error("no runnable browser"), OSError("exec format error")])
async def test_a_browser_that_fails(world: World, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(url: str) -> bool:
        raise error

    monkeypatch.setattr(webbrowser, "open", fail)
    with pytest.raises(ConnectFailed, match="no browser can be opened"):
        async with opened(world, Login(storage=MemoryStorage())):
            pass


async def test_a_browse_that_says_that_nobody_is_there(world: World) -> None:
    async def refuse(url: str) -> str:
        raise AuthRequired("come back in the morning")

    with pytest.raises(ConnectFailed, match="come back in the morning"):
        async with opened(world, headless(browse=refuse)):
            pass


async def test_nobody_is_asked_although_we_know_where_to_come_back(world: World) -> None:
    with pytest.raises(ConnectFailed, match="log in with `mcp-trio login` before"):
        async with opened(world, headless(browse=None)):
            pass


async def test_a_login_elsewhere_is_noticed(world: World) -> None:
    """As by `mcp-trio login`, of which our error speaks."""
    storage = MemoryStorage()
    world.good.add("")
    async with opened(world, Login(storage=storage, browse=None)) as client:
        world.good.clear()
        with pytest.raises(AuthRequired, match="mcp-trio login"):
            await client.list_tools()
        async with opened(world, headless(storage=storage)):
            pass
        await client.list_tools()
    assert world.tokens == 1


async def test_two_who_share_a_storage_renew_once(world: World, tmp_path: Path) -> None:
    """As two processes do. The refresh token of before would be refused, or worse."""
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
        await trio.sleep(0.2)
        world.paused.set()
    assert world.tokens == 2


async def test_a_login_elsewhere_holds_nobody_up(world: World, tmp_path: Path) -> None:
    """It may take its time, and what is kept is not touched before its end."""
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
        with trio.fail_after(5):
            async with opened(world, headless(storage=FileStorage(tmp_path))):
                pass
        go_on.set()
    assert world.tokens == 2


async def test_who_holds_the_storage_for_too_long_is_not_waited_for(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_trio._authorization._LOCK_TIMEOUT", 0.1)
    storage = FileStorage(tmp_path)
    unlock = storage.lock(f"tokens:{world.url}")
    assert unlock is not None
    async with opened(world, headless(storage=storage)):
        pass
    unlock()


async def test_a_storage_that_cannot_be_locked_does_no_harm(
    world: World, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    storage = FileStorage(tmp_path / "file" / "tokens")
    async with opened(world, headless(storage=storage)) as client:
        await client.list_tools()
    assert f"cannot be kept in {storage!r}: [Errno 20] Not a directory" in caplog.text


async def test_a_refresh_does_not_wait_for_a_port(world: World, browser: list[str]) -> None:
    """Another program logs somebody in at the one port that was registered."""
    storage = MemoryStorage()
    place = await Loopback.open("http://127.0.0.1:0/callback", any_port=True)
    profile = ClientProfile(redirect_uri=place.redirect_uri)
    place.close()
    async with opened(world, Login(profile=profile, storage=storage)) as client:
        taken = await Loopback.open(profile.redirect_uri)
        world.good.clear()
        await client.list_tools()
        taken.close()
    assert world.tokens == 2


async def test_a_client_that_is_closed_ends_its_login(world: World) -> None:
    shown = trio.Event()

    async def never(url: str) -> str:
        if world.wants is None:
            return await browse(url)
        shown.set()
        await trio.sleep_forever()
        raise AssertionError

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery, opened(world, headless(browse=never)) as client:
            world.wants = "numbers"

            async def calls() -> None:
                with pytest.raises(ConnectionLost):
                    await client.call_tool("add", {})

            nursery.start_soon(calls)
            await shown.wait()
    assert world.tokens == 1


def test_what_is_shown_of_it() -> None:
    authorization = Authorization("https://e.com/mcp?key=CANARY", headless())
    assert repr(authorization) == "<Authorization by <Authorizer 'https://e.com/mcp': no tokens>>"


def test_what_cannot_be_a_login() -> None:
    with pytest.raises(ValueError, match=r"say in profile\.redirect_uri"):
        Login(browse=browse)
    with pytest.raises(ValueError, match="not 'firefox'"):
        Login(browse="firefox")  # type: ignore[arg-type]


def test_what_auth_may_be() -> None:
    profile = ClientProfile(client_name="us")
    login = Login()
    assert login_of(True).browse == login.browse == "browser"
    assert login_of(profile).profile is profile
    assert login_of(login) is login


async def test_nobody_comes_back(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    monkeypatch.setattr("mcp_trio._h11_loopback._LOGIN_TIMEOUT", 0.05)
    with pytest.raises(ConnectFailed, match="nobody came back"):
        async with opened(world, Login(storage=MemoryStorage())):
            pass
