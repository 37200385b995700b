"""Attacks on the redirect listener: by any page in the browser, and by any program on this machine.

Each row is a request to the redirect URI during a user's login. It gets nothing, the log says so,
and the login of the user, whose callback comes later, succeeds.
"""

from __future__ import annotations

import logging
import os
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import trio

from mcp_trio import ClientProfile, LoginConfig, MemoryStorage, connect_http
from tests.fakes.browser import login_page_of
from tests.harness.world.waiting import PATIENCE
from tests.security.internet import AS, MCP, Internet, texts_of_objects

LINE = "was not the redirect of the current login"
_open = trio.open_tcp_stream


def request(target: str, *headers: str, method: str = "GET", body: str = "") -> bytes:
    lines = [
        f"{method} {target} HTTP/1.1",
        "host: 127.0.0.1",
        *headers,
        f"content-length: {len(body)}",
    ]
    return "\r\n".join([*lines, "", body]).encode()


def target(state: str | None, path: str = "/callback", **more: str) -> str:
    fields = {"code": "injected", "iss": f"https://{AS}"} | more
    return f"{path}?{urlencode(fields if state is None else fields | {'state': state})}"


# The requests, by the `state` of the login. No attacker knows it, so most requests lack it.
ATTACKS: dict[str, Callable[[str], bytes]] = {
    "no state": lambda state: request(target(None)),
    "an empty state": lambda state: request(target("")),
    "another state": lambda state: request(target("x" * len(state))),
    "half of the state": lambda state: request(target(state[:-1])),
    "the state in capitals": lambda state: request(target(state.swapcase())),
    "the state and a space": lambda state: request(target(f"{state} ")),
    "the state twice": lambda state: request(f"{target(state)}&state={state}"),
    "the state among others": lambda state: request(f"{target('x')}&state={state}"),
    "the state as a header": lambda state: request(target(None), f"state: {state}"),
    "the state as a cookie": lambda state: request(target(None), f"cookie: state={state}"),
    "the state in a fragment": lambda state: request(f"/callback?code=injected#state={state}"),
    "a thousand fields": lambda state: request(f"{target(state)}{'&x=y' * 1000}"),
    "an error without a state": lambda state: request("/callback?error=access_denied"),
    "POST": lambda state: request(target(state), method="POST"),
    "POST of a form": lambda state: request(
        "/callback",
        "content-type: application/x-www-form-urlencoded",
        method="POST",
        body=urlencode({"code": "injected", "state": state}),
    ),
    "HEAD": lambda state: request(target(state), method="HEAD"),
    "DELETE": lambda state: request(target(state), method="DELETE"),
    "a preflight": lambda state: request(
        target(state), "origin: https://evil.example",
        "access-control-request-private-network: true", method="OPTIONS"
    ),
    "TRACE": lambda state: request(target(state), method="TRACE"),
    "another path": lambda state: request(target(state, "/other")),
    "the root": lambda state: request(target(state, "/")),
    "a path behind": lambda state: request(target(state, "/callback/x")),
    "a slash behind": lambda state: request(target(state, "/callback/")),
    "two slashes": lambda state: request(target(state, "//callback")),
    "a detour": lambda state: request(target(state, "/x/../callback")),
    "the path in capitals": lambda state: request(target(state, "/CALLBACK")),
    "the path encoded": lambda state: request(target(state, "/%63allback")),
    "the path with a semicolon": lambda state: request(target(state, "/callback;x")),
    "a whole URL": lambda state: request(target(state, "http://evil.example/callback")),
    "an icon": lambda state: request("/favicon.ico"),
    "something for a proxy": lambda state: (
        b"CONNECT evil.example:443 HTTP/1.1\r\nhost: evil.example\r\n\r\n"
    ),
    "a head without end": lambda state: b"GET /callback?" + b"x" * 100_000,
    "a line without end": lambda state: (
        b"GET " + target(state).encode() + b" HTTP/1.1\r\nx: " + b"y" * 100_000
    ),
    "no HTTP": lambda state: b"\x00\xff\x00\xff\r\n\r\n",
    "TLS": lambda state: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
    "HTTP of old times": lambda state: f"GET {target(state)}\r\n\r\n".encode(),
    "two lengths": lambda state: request(target(state), "content-length: 5"),
    "no host": lambda state: f"GET {target(state)} HTTP/1.1\r\n\r\n".encode(),
    "half a request": lambda state: f"GET {target(state)} HTTP/1.1\r\n".encode(),
}  # fmt: skip


class AttackedBrowser:
    """A browser in which attackers are faster than the user.

    `responses` are the responses that they got.
    """

    def __init__(self, world: Internet, attacks: list[Callable[[str], bytes]]) -> None:
        self.world = world
        self.attacks = attacks
        self.responses: list[bytes] = []
        self.code = ""
        self.port = 0
        self.done = trio.Event()

    def open(self, url: str) -> bool:
        trio.from_thread.run(self._visit, url)
        return True

    async def _visit(self, url: str) -> None:
        self.port = urlsplit(url).port or 0
        page = await trio.to_thread.run_sync(login_page_of, url)
        fields = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
        assert fields["redirect_uri"] == f"http://127.0.0.1:{self.port}/callback"
        self.code = self.world.plant("code", AS)
        for make in self.attacks:
            self.responses.append(await self.send(make(fields["state"])))
        self.world.planted[fields["state"]] = frozenset()
        callback = target(fields["state"], code=self.code)
        self.responses.append(await self.send(request(callback)))
        self.done.set()

    async def send(self, data: bytes) -> bytes:
        received = b""
        with suppress(trio.BrokenResourceError, OSError):
            async with await _open("127.0.0.1", self.port) as stream:
                await stream.send_all(data)
                await stream.send_eof()
                async for each in stream:
                    received += bytes(each)
        return received


async def log_in(
    world: Internet, browser: AttackedBrowser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", browser.open)
    # A client_id, so that the redirect URI is /callback.
    profile = ClientProfile(client_id="us")
    login = LoginConfig(profile=profile, storage=MemoryStorage(), tls=world.tls)
    with trio.fail_after(PATIENCE):
        async with connect_http(
            f"https://{MCP}/mcp", auth=login, tls=world.tls, versions=["2025-11-25"]
        ) as client:
            await client.list_tools()
        await browser.done.wait()


def check_no_harm(
    world: Internet, browser: AttackedBrowser, caplog: pytest.LogCaptureFixture
) -> None:
    codes = [request.fields.get("code") for request in world.requests if request.path == "/token"]
    assert codes == [browser.code]
    assert (world.forbidden(), world.leaks()) == ([], [])
    assert world.seen_in(f"{caplog.text} {browser.responses!r} {texts_of_objects()}") == []


@pytest.mark.requirement("AF-5")
@pytest.mark.parametrize("name", ATTACKS)
async def test_redirect_listener_attack_is_rejected(
    world: Internet, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    browser = AttackedBrowser(world, [ATTACKS[name]])
    await log_in(world, browser, monkeypatch)
    assert browser.responses[0][:12] in (b"", b"HTTP/1.1 404")
    assert (
        next(record for record in caplog.records if LINE in record.getMessage()).levelno
        >= logging.INFO
    )
    check_no_harm(world, browser, caplog)


async def test_redirect_listener_many_attacks_login_succeeds(
    world: Internet, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = AttackedBrowser(world, [*ATTACKS.values()] * 2)
    await log_in(world, browser, monkeypatch)
    check_no_harm(world, browser, caplog)


async def test_redirect_listener_idle_connections_do_not_block_login(
    world: Internet, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More idle connections than the listener serves at once."""
    idle: list[Any] = []

    class IdleAttackers(AttackedBrowser):
        async def send(self, data: bytes) -> bytes:
            if data != b"idle":
                return await super().send(data)
            idle.append(await _open("127.0.0.1", self.port))
            return b""

    browser = IdleAttackers(world, [lambda state: b"idle"] * 40)
    await log_in(world, browser, monkeypatch)
    for stream in idle:
        await trio.aclose_forcefully(stream)
    check_no_harm(world, browser, caplog)


@pytest.mark.requirement("AF-5")
async def test_redirect_listener_second_callback_is_ignored(
    world: Internet, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attacker has seen the user's callback, and sends a similar one at the same time."""

    class RepeatedCallback(AttackedBrowser):
        async def send(self, data: bytes) -> bytes:
            streams = [await _open("127.0.0.1", self.port) for _ in range(3)]
            for stream in streams:
                await stream.send_all(data[:-1])
            await trio.testing.wait_all_tasks_blocked(0.01)
            for stream in streams:  # without a checkpoint, so all arrive at once
                os.write(stream.socket.fileno(), data[-1:])
            for stream in streams:
                answer = b""
                with suppress(trio.BrokenResourceError):
                    async for each in stream:
                        answer += bytes(each)
                self.responses.append(answer[:12])
                await trio.aclose_forcefully(stream)
            return b""

    browser = RepeatedCallback(world, [])
    await log_in(world, browser, monkeypatch)
    assert browser.responses.count(b"HTTP/1.1 200") == 1
    assert set(browser.responses) <= {b"HTTP/1.1 200", b"HTTP/1.1 404", b""}
    check_no_harm(world, browser, caplog)


def test_redirect_listener_attacks_are_at_least_thirty() -> None:
    assert len(ATTACKS) >= 30
