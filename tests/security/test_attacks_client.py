"""Attacks on a client that gets its tokens, run over sockets by the real client.

Of all of them the same is shown: it is refused, the log says so, no address was dialled that is not public, nothing secret came to
anybody whom it is not for, and it was over after a few requests. Then the honest world, and what only looks like an attack.
"""

from __future__ import annotations

import json
import logging
import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
import trio

from mcp_core import AuthRequired, ConnectFailed, McpTrioError
from mcp_core.auth import AuthorizationFailed
from mcp_trio import ClientProfile, Login, MemoryStorage, _fetch, connect_http
from tests.security.client_attacks import ATTACKS, PRIVATE, PROFILE, URL, call, challenge, leads_to, redirect
from tests.security.internet import (
    AS,
    EVIL,
    MCP,
    MOST_REQUESTS,
    PRM,
    REDIRECT_URI,
    Answer,
    Asked,
    Internet,
    texts_of_objects,
)


def opened(world: Internet, profile: ClientProfile = PROFILE, **options: Any) -> Any:
    login = Login(profile=profile, storage=MemoryStorage(), browse=world.browse)
    return connect_http(URL, auth=login, tls=world.tls, versions=["2025-11-25"], **options)


def unharmed(world: Internet, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]) -> None:
    """What must be true whatever was tried."""
    assert world.forbidden() == []
    assert world.leaks() == []
    assert len(world.asked) <= MOST_REQUESTS
    written = capsys.readouterr()
    assert world.seen_in(caplog.text + written.out + written.err) == []
    assert world.seen_in(texts_of_objects()) == []


async def test_an_honest_world(world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any) -> None:
    async with opened(world) as client:
        await call(client, world)
        world.good.clear()
        await call(client, world)
        assert world.seen_in(texts_of_objects()) == []  # while all of them are there
    assert len(world.browsed) == 1
    assert {urlsplit(url).hostname for url in world.browsed} == {AS}
    assert len([secret for secret in world.planted if "access" in secret]) == 2
    assert len(world.planted) >= 7  # the verifier of the client too
    unharmed(world, caplog, capsys)


@pytest.mark.requirement("AC-7", "AC-12", "AF-2", "AF-5", "AF-9", "AT-4", "AU-1", "AU-3", "AU-4")
@pytest.mark.parametrize("name", ATTACKS)
async def test_attack_is_refused(
    world: Internet,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    bad = ATTACKS[name]
    monkeypatch.setattr(_fetch, "_LONGEST", bad.patience)
    bad.set_up(world)
    with trio.fail_after(30):
        if bad.later is None:
            with pytest.raises(ConnectFailed) as caught:
                async with opened(world, bad.profile):
                    pass
            error = caught.value.__cause__
        else:
            async with opened(world, bad.profile) as client:
                with pytest.raises(McpTrioError) as failed:
                    await bad.later(client, world)
            error = failed.value
    assert isinstance(error, AuthorizationFailed | AuthRequired), repr(error)
    assert re.search(bad.text, str(error)), str(error)
    assert str(error).isprintable()
    told = [
        record.getMessage()
        for record in caplog.records
        if record.name == "mcp_trio" and record.levelno >= logging.INFO
    ]
    assert [line for line in told if re.search(bad.text, line)], told
    unharmed(world, caplog, capsys)
    assert json.dumps(told).isascii()


# -- What succeeds, and shows nothing to anybody ---------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        f'Bearer realm="a, resource_metadata=\\"https://{EVIL}/prm\\", b"',
        f'Basic realm="x", resource_metadata="https://{EVIL}/prm", Bearer resource_metadata="https://{PRM}"',
        f'Bearer resource_metadata="https://{PRM}", resource_metadata="https://{EVIL}/prm"',
        f'Bearer scope="a&redirect_uri=https://{EVIL}/&b=", resource_metadata="https://{PRM}"',
        f'Bearer scope="x\\"y", resource_metadata="https://{PRM}"',
        f'bEaReR rEsOuRcE_mEtAdAtA="https://{PRM}", error="\x9b31m", error_description="\x9b2J"',
    ],
)
async def test_a_challenge_that_is_read_for_what_it_is(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any, value: str
) -> None:
    challenge(value)(world)
    async with opened(world) as client:
        await call(client, world)
    assert EVIL not in {asked.host for asked in world.asked}
    query = parse_qsl(urlsplit(world.browsed[0]).query)
    assert [value for name, value in query if name == "redirect_uri"] == [REDIRECT_URI]
    unharmed(world, caplog, capsys)


async def test_only_what_is_public_of_a_host_is_dialled(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any
) -> None:
    good = world.names[AS][0]
    world.names[AS] = [["10.0.0.1", *good, "::1", "169.254.169.254"]]
    async with opened(world) as client:
        await call(client, world)
    unharmed(world, caplog, capsys)


@pytest.mark.requirement("AT-1", "AT-2", "AT-4")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_token_does_not_follow_a_redirect(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any, status: int
) -> None:
    async with opened(world) as client:
        world.pages[f"{MCP}/mcp"] = lambda asked: redirect(f"https://{EVIL}/mcp", status)
        with pytest.raises(McpTrioError):
            await call(client, world)
    assert EVIL not in {asked.host for asked in world.asked}
    unharmed(world, caplog, capsys)


@pytest.mark.requirement("AT-2")
@pytest.mark.parametrize(
    "place",
    [
        "/messages",
        f"https://{EVIL}/messages",
        f"//{EVIL}/messages",
        f"https://{MCP}@{EVIL}/",
        f"https://{MCP}:8443/m",
    ],
)
async def test_a_token_does_not_follow_an_endpoint_of_2024_11_05(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any, place: str
) -> None:
    honest = world.pages[f"{MCP}/mcp"]

    def page(asked: Asked) -> Answer:
        answer = honest(asked)
        if asked.method == "POST" or answer.status == 200 or answer.raw is not None:
            return answer if answer.raw is not None else Answer(None, 405)
        event = f"event: endpoint\ndata: {place}\n\n".encode()
        return Answer(event, headers={"content-type": "text/event-stream"})

    world.pages[f"{MCP}/mcp"] = page
    login = Login(profile=PROFILE, storage=MemoryStorage(), browse=world.browse)
    with pytest.raises(ConnectFailed):
        async with connect_http(URL, auth=login, tls=world.tls, versions=["2024-11-05"]):
            pass
    assert EVIL not in {asked.host for asked in world.asked}
    assert [secret for secret in world.planted if "access" in secret]
    assert (("POST", "/messages") in {(asked.method, asked.path) for asked in world.asked}) is (
        place == "/messages"
    )
    unharmed(world, caplog, capsys)


@pytest.mark.requirement("AU-2", "AU-3")
@pytest.mark.parametrize(
    "host",
    "10.0.0.1 192.168.1.1 169.254.169.254 0.0.0.0 [fd00:ec2::254] [fe80::1] metadata.google.internal".split(),
)
async def test_a_server_on_this_machine_leads_to_this_machine_only(
    world: Internet, caplog: pytest.LogCaptureFixture, host: str
) -> None:
    """For who develops: loopback is good then, and nothing else is that was not."""
    world.local = True
    world.prm |= {"resource": "https://localhost/mcp"}
    world.pages["localhost/mcp"] = world.pages[f"{MCP}/mcp"]
    leads_to(host, challenge(f'Bearer resource_metadata="https://{host}/prm"'))(world)
    login = Login(profile=PROFILE, storage=MemoryStorage(), browse=world.browse)
    with pytest.raises(ConnectFailed, match=PRIVATE):
        async with connect_http("https://localhost/mcp", auth=login, tls=world.tls, versions=["2025-11-25"]):
            pass
    assert PRIVATE in caplog.text
    assert set(world.dialled) == {"127.0.0.1"}
    assert {asked.host for asked in world.asked} == {"localhost"}


def test_there_are_enough_of_them() -> None:
    assert len(ATTACKS) >= 60
