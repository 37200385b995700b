"""Attacks on a client that logs in, run over sockets with the real client.

Of each attack the same is tested: the client rejects it, the log says so, no private address was
dialled, no secret reached another host, and few requests were sent. Then the honest world, and what
only looks like an attack.
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
from mcp_trio import ClientProfile, LoginConfig, MemoryStorage, connect_http
from mcp_trio.auth import _fetch
from tests.harness.world.waiting import PATIENCE
from tests.levels import long
from tests.security.client_attacks import (
    ATTACKS,
    PRIVATE,
    PROFILE,
    URL,
    call,
    challenge,
    leads_to,
    redirect,
)
from tests.security.internet import (
    AS,
    EVIL,
    MCP,
    MOST_REQUESTS,
    PRM,
    REDIRECT_URI,
    Answer,
    Internet,
    ReceivedRequest,
    texts_of_objects,
)


def connect_with_login(world: Internet, profile: ClientProfile = PROFILE, **options: Any) -> Any:
    login = LoginConfig(
        profile=profile, storage=MemoryStorage(), browse=world.browse, tls=world.tls
    )
    return connect_http(URL, auth=login, tls=world.tls, versions=["2025-11-25"], **options)


def check_no_harm(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check what must hold after every attack."""
    assert world.forbidden() == []
    assert world.leaks() == []
    assert len(world.requests) <= MOST_REQUESTS
    written = capsys.readouterr()
    assert world.seen_in(caplog.text + written.out + written.err) == []
    assert world.seen_in(texts_of_objects()) == []


async def test_login_honest_servers_succeeds_without_leaks(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any
) -> None:
    async with connect_with_login(world) as client:
        await call(client, world)
        world.good.clear()
        await call(client, world)
        assert world.seen_in(texts_of_objects()) == []  # while all objects are alive
    assert len(world.browsed) == 1
    assert {urlsplit(url).hostname for url in world.browsed} == {AS}
    assert len([secret for secret in world.planted if "access" in secret]) == 2
    assert len(world.planted) >= 7  # including the client's verifier
    check_no_harm(world, caplog, capsys)


@pytest.mark.requirement("AC-7", "AC-12", "AF-2", "AF-5", "AF-9", "AT-4", "AU-1", "AU-3", "AU-4")
@pytest.mark.parametrize(
    "name", [long(name) if each.long else name for name, each in ATTACKS.items()]
)
async def test_client_attack_is_rejected(
    world: Internet,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    """Each row of `ATTACKS` plays one hostile server, at the login or at a later call."""
    bad = ATTACKS[name]
    monkeypatch.setattr(_fetch, "_TIMEOUT", bad.patience)
    bad.set_up(world)
    with trio.fail_after(PATIENCE):
        if bad.later is None:
            with pytest.raises(ConnectFailed) as caught:
                async with connect_with_login(world, bad.profile):
                    pass
            error = caught.value.__cause__
        else:
            async with connect_with_login(world, bad.profile) as client:
                with pytest.raises(McpTrioError) as failed:
                    await bad.later(client, world)
            error = failed.value
    assert isinstance(error, AuthorizationFailed | AuthRequired), repr(error)
    assert re.search(bad.text, str(error)), str(error)
    assert str(error).isprintable()
    lines = [
        record.getMessage()
        for record in caplog.records
        if record.name == "mcp_trio" and record.levelno >= logging.INFO
    ]
    assert [line for line in lines if re.search(bad.text, line)], lines
    check_no_harm(world, caplog, capsys)
    assert json.dumps(lines).isascii()


# -- Redirects of the MCP server -------------------------------------------------------------------


def behind(world: Internet, path: str) -> None:
    """Move the MCP server to `path`, to which its URL redirects."""
    world.pages[f"{MCP}{path}"] = world.pages[f"{MCP}/mcp"]
    world.pages[f"{MCP}/mcp"] = lambda request: redirect(f"https://{MCP}{path}", 307)


@pytest.mark.requirement("AF-4")
async def test_login_at_a_mounted_server_is_for_its_configured_url(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any
) -> None:
    """`/mcp` redirects to `/mcp/`, which wants a token: that is for `/mcp`, and goes to both."""
    behind(world, "/mcp/")
    async with connect_with_login(world) as client:
        await call(client, world)
    assert len(world.browsed) == 1
    asked = [*map(urlsplit, world.browsed)]
    assert [dict(parse_qsl(each.query))["resource"] for each in asked] == [URL]
    tokens = [each for each in world.requests if each.path == "/token"]
    assert {each.fields["resource"] for each in tokens} == {URL}
    signed = {each.path for each in world.requests if "authorization" in each.headers}
    assert signed == {"/mcp", "/mcp/"}
    check_no_harm(world, caplog, capsys)


@pytest.mark.parametrize(
    ("location", "text"),
    [
        (f"https://{MCP}/evil", "the credential is for https://mcp.example/mcp."),
        (f"https://{MCP}/mcp/..%2Fevil", "without a location that can be used"),
        (f"https://{EVIL}/mcp", "to another origin"),
        (f"http://{MCP}/mcp", "from https to http.*X-Forwarded-Proto"),
        (f"https://{MCP}@{EVIL}/mcp", "without a location that can be used"),
        (f"//{EVIL}/mcp", "to another origin"),
    ],
)
async def test_redirect_takes_no_token_to_another_server(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any, location: str, text: str
) -> None:
    """A server that redirects later gets no token of its neighbour, and the call says why."""
    async with connect_with_login(world) as client:
        await call(client, world)
        before = len(world.requests)
        honest = world.pages[f"{MCP}/mcp"]
        world.pages[f"{MCP}/mcp"] = lambda request: redirect(location, 307)
        with pytest.raises(McpTrioError, match=text):
            await call(client, world)
        world.pages[f"{MCP}/mcp"] = honest
    assert {(each.host, each.path) for each in world.requests[before:]} == {(MCP, "/mcp")}
    check_no_harm(world, caplog, capsys)


async def test_token_for_the_whole_host_follows_a_redirect_on_it(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any
) -> None:
    world.prm["resource"] = f"https://{MCP}"
    root = f"{MCP}/.well-known/oauth-protected-resource"
    world.pages[root] = world.pages.pop(PRM)
    world.challenge = [f'Bearer resource_metadata="https://{root}"']
    async with connect_with_login(world) as client:
        await call(client, world)
        behind(world, "/v2")
        await call(client, world)
    signed = {each.path for each in world.requests if "authorization" in each.headers}
    assert signed == {"/mcp", "/v2"}
    check_no_harm(world, caplog, capsys)


# -- Logins that succeed without leaks -------------------------------------------------------------


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
async def test_challenge_with_embedded_attack_is_parsed_correctly(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any, value: str
) -> None:
    challenge(value)(world)
    async with connect_with_login(world) as client:
        await call(client, world)
    assert EVIL not in {request.host for request in world.requests}
    query = parse_qsl(urlsplit(world.browsed[0]).query)
    assert [value for name, value in query if name == "redirect_uri"] == [REDIRECT_URI]
    check_no_harm(world, caplog, capsys)


async def test_fetch_host_with_private_addresses_dials_public_only(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any
) -> None:
    good = world.names[AS][0]
    world.names[AS] = [["10.0.0.1", *good, "::1", "169.254.169.254"]]
    async with connect_with_login(world) as client:
        await call(client, world)
    check_no_harm(world, caplog, capsys)


@pytest.mark.requirement("AT-1", "AT-2", "AT-4")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_token_mcp_redirect_is_not_followed(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any, status: int
) -> None:
    async with connect_with_login(world) as client:
        world.pages[f"{MCP}/mcp"] = lambda request: redirect(f"https://{EVIL}/mcp", status)
        with pytest.raises(McpTrioError):
            await call(client, world)
    assert EVIL not in {request.host for request in world.requests}
    check_no_harm(world, caplog, capsys)


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
async def test_token_sse_endpoint_is_used_on_same_origin_only(
    world: Internet, caplog: pytest.LogCaptureFixture, capsys: Any, place: str
) -> None:
    """HTTP+SSE lets a server name the URL to post to: a token must not follow it elsewhere."""
    honest = world.pages[f"{MCP}/mcp"]

    def page(request: ReceivedRequest) -> Answer:
        answer = honest(request)
        if request.method == "POST" or answer.status == 200 or answer.raw is not None:
            return answer if answer.raw is not None else Answer(None, 405)
        event = f"event: endpoint\ndata: {place}\n\n".encode()
        return Answer(event, headers={"content-type": "text/event-stream"})

    world.pages[f"{MCP}/mcp"] = page
    login = LoginConfig(
        profile=PROFILE, storage=MemoryStorage(), browse=world.browse, tls=world.tls
    )
    with pytest.raises(ConnectFailed):
        async with connect_http(URL, auth=login, tls=world.tls, versions=["2024-11-05"]):
            pass
    assert EVIL not in {request.host for request in world.requests}
    assert [secret for secret in world.planted if "access" in secret]
    assert (
        ("POST", "/messages") in {(request.method, request.path) for request in world.requests}
    ) is (place == "/messages")
    check_no_harm(world, caplog, capsys)


@pytest.mark.requirement("AU-2", "AU-3")
@pytest.mark.parametrize(
    "host",
    [
        *("10.0.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("[fd00:ec2::254]", "[fe80::1]", "metadata.google.internal"),
    ],
)
async def test_fetch_local_server_allows_loopback_only(
    world: Internet, caplog: pytest.LogCaptureFixture, host: str
) -> None:
    """For development: loopback is allowed then, and no other private address."""
    world.local = True
    world.prm |= {"resource": "https://localhost/mcp"}
    world.pages["localhost/mcp"] = world.pages[f"{MCP}/mcp"]
    leads_to(host, challenge(f'Bearer resource_metadata="https://{host}/prm"'))(world)
    login = LoginConfig(
        profile=PROFILE, storage=MemoryStorage(), browse=world.browse, tls=world.tls
    )
    with pytest.raises(ConnectFailed, match=PRIVATE):
        async with connect_http(
            "https://localhost/mcp", auth=login, tls=world.tls, versions=["2025-11-25"]
        ):
            pass
    assert PRIVATE in caplog.text
    assert set(world.dialled) == {"127.0.0.1"}
    assert {request.host for request in world.requests} == {"localhost"}


def test_client_attacks_are_at_least_sixty() -> None:
    assert len(ATTACKS) >= 60
