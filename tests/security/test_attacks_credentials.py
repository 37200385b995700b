"""Attacks for credentials, rights and accounts of a client, run over sockets with the real client.

The hostile party is an MCP server, an authorization server, or another user of the machine. The
honest servers do what they are made for, and do not help the client: they send no `iss`.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import webbrowser
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit, urlunsplit

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from mcp_core import AuthRequired, ConnectFailed
from mcp_core.auth import EnterpriseManaged, JwtBearer, Secret
from mcp_trio import ClientProfile, FileStorage, LoginConfig, MemoryStorage, connect_http
from mcp_trio.auth import _loopback, _peer_user
from tests.fakes.browser import login_page_of, visit
from tests.harness.world.waiting import PATIENCE, until
from tests.security.client_attacks import PRIVATE, PROFILE, URL, call
from tests.security.internet import (
    AS,
    EVIL,
    MCP,
    PRM,
    REDIRECT_URI,
    Answer,
    Internet,
    ReceivedRequest,
    callback_url,
)

EVIL_URL = f"https://{EVIL}/mcp"


def open_mcp_server_of_evil(world: Internet) -> None:
    """Let the attacker run an MCP server too, with an authorization server of its own."""
    prm = f"{EVIL}/.well-known/oauth-protected-resource/mcp"
    world.pages[f"{EVIL}/mcp"] = lambda asked: (
        world.mcp(asked)
        if asked.headers.get("authorization")
        else Answer(None, 401, {"www-authenticate": f'Bearer resource_metadata="https://{prm}"'})
    )
    world.pages[prm] = lambda asked: Answer(
        {"resource": EVIL_URL, "authorization_servers": [f"https://{EVIL}"]}
    )
    for metadata in world.metadata.values():
        del metadata["authorization_response_iss_parameter_supported"]
    world.callback = partial(callback_url, iss=None)


def connect(world: Internet, url: str, profile: ClientProfile, storage: Any, **more: Any) -> Any:
    defaults = {"profile": profile, "storage": storage, "browse": world.browse, "tls": world.tls}
    login = LoginConfig(**(defaults | more))
    return connect_http(url, auth=login, tls=world.tls, versions=["2025-11-25"])


def requests_at(world: Internet, place: str) -> list[ReceivedRequest]:
    return [each for each in world.requests if f"{each.host}{each.path}" == place]


# -- Credentials for one authorization server ------------------------------------------------------


def secret_of(world: Internet) -> dict[str, Any]:
    return {"client_id": "us", "client_secret": Secret(world.plant("secret", AS))}


def own_credentials_of(world: Internet) -> dict[str, Any]:
    return {**secret_of(world), "grant": "client_credentials"}


def assertion_of(world: Internet) -> dict[str, Any]:
    """A JWT of the platform: another server could present it at the honest one."""
    jwt = world.plant("assertion", AS)
    return {"client_id": "us", "grant": JwtBearer(lambda: jwt)}


def id_jag_of(world: Internet) -> dict[str, Any]:
    id_token = world.plant("id-token", AS)

    def exchange(asked: ReceivedRequest) -> Answer:
        urn = "urn:ietf:params:oauth:token-type:id-jag"
        jag = world.plant("id-jag", AS)
        return Answer({"access_token": jag, "issued_token_type": urn, "token_type": "N_A"})

    world.pages[f"{AS}/exchange"] = exchange
    grant = EnterpriseManaged(lambda: id_token, f"https://{AS}/exchange", "idp-client")
    return {"client_id": "us", "grant": grant}


@pytest.mark.requirement("AQ-7", "AC-13")
@pytest.mark.parametrize("members", [secret_of, own_credentials_of, assertion_of, id_jag_of])
async def test_credentials_are_not_sent_to_issuer_of_second_mcp_server(
    world: Internet, members: Callable[[Internet], dict[str, Any]]
) -> None:
    """One profile is used for an honest server and a hostile one with its own issuer."""
    open_mcp_server_of_evil(world)
    options = members(world) | {"redirect_uri": REDIRECT_URI}
    try:
        profile = ClientProfile(**options)
    except ValueError as exc:
        assert "needs issuer: the URL of the authorization server" in str(exc)  # noqa: PT017
        profile = ClientProfile(**options, issuer=f"https://{AS}")
    # The storages are new, as in containers: they do not say whose the credentials are.
    async with connect(world, URL, profile, MemoryStorage()) as client:
        await call(client, world)
    with pytest.raises(ConnectFailed, match="client_id was made for"):
        async with connect(world, EVIL_URL, profile, MemoryStorage()):
            pass
    assert requests_at(world, f"{EVIL}/token") == []
    assert world.leaks() == []


@pytest.mark.requirement("AQ-7", "AC-13")
async def test_client_id_alone_belongs_to_first_issuer(world: Internet) -> None:
    """For all MCP servers: the second one must not decide it again."""
    open_mcp_server_of_evil(world)
    profile = ClientProfile(redirect_uri=REDIRECT_URI, client_id="us")
    storage = MemoryStorage()
    async with connect(world, URL, profile, storage) as client:
        await call(client, world)
    with pytest.raises(ConnectFailed, match="client_id was made for"):
        async with connect(world, EVIL_URL, profile, storage):
            pass
    assert {urlsplit(url).hostname for url in world.browsed} == {AS}


@pytest.mark.requirement("AQ-7")
async def test_registrations_swapped_in_storage_are_not_used(
    world: Internet, tmp_path: Path
) -> None:
    """Each record says which server its secret is for."""
    open_mcp_server_of_evil(world)
    storage = FileStorage(tmp_path)
    async with connect(world, URL, PROFILE, storage) as client:
        await call(client, world)
    records = {
        issuer: tmp_path / storage._path(f"client:https://{issuer}").name for issuer in (AS, EVIL)
    }
    records[AS].rename(records[EVIL])
    async with connect(world, EVIL_URL, PROFILE, storage) as client:
        await call(client, world)
    assert len(requests_at(world, f"{EVIL}/register")) == 1
    assert [leak for leak in world.leaks() if "client-secret" in leak] == []


@pytest.mark.requirement("AG-7")
async def test_storage_that_others_may_write_to_is_not_used(
    world: Internet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = tmp_path / "tokens"
    directory.mkdir()
    directory.chmod(0o777)
    async with connect(world, URL, PROFILE, FileStorage(directory)) as client:
        await call(client, world)
    assert list(directory.iterdir()) == []
    assert f"other users may write to {directory}" in caplog.text
    assert f"chmod 700 {directory}" in caplog.text


# -- Rights ----------------------------------------------------------------------------------------


@pytest.mark.requirement("AT-5")
@pytest.mark.parametrize("code", [401, 403])
async def test_client_without_user_gets_no_scope_that_a_server_demands(
    world: Internet, code: int
) -> None:
    """No user can consent here, so only the author's profile may widen what a token can do."""
    profile = ClientProfile(
        grant="client_credentials",
        client_id="us",
        client_secret=Secret(world.plant("secret", AS)),
        issuer=f"https://{AS}",
        scopes=("read",),
    )
    demand = f'resource_metadata="https://{PRM}", scope="read admin"'
    if code == 401:
        world.challenge = [f"Bearer {demand}"]
    else:
        world.forbids = f'Bearer error="insufficient_scope", {demand}'
    async with connect(world, URL, profile, MemoryStorage()) as client:
        if code == 401:
            await call(client, world)
        else:
            with pytest.raises(AuthRequired, match="demands the scopes read admin for tools/call"):
                await call(client, world)
    assert [asked.fields["scope"] for asked in requests_at(world, f"{AS}/token")] == ["read"]


@pytest.mark.requirement("AC-7", "AF-4")
@pytest.mark.parametrize(
    ("location", "resource"),
    [
        (f"{MCP}/.well-known/oauth-protected-resource/evil", f"https://{MCP}"),
        (f"{MCP}/.well-known/oauth-protected-resource/evil", f"https://{MCP}/"),
        (f"{MCP}/evil/prm", f"https://{MCP}"),
        (f"{EVIL}/prm", f"https://{MCP}"),
        (f"{EVIL}/.well-known/oauth-protected-resource", f"https://{MCP}"),
        (f"{MCP}/.well-known/oauth-protected-resource/tenants/evil", f"https://{MCP}/tenants"),
        (f"{MCP}/.well-known/oauth-protected-resource/tenants", f"https://{MCP}/tenants"),
    ],
)
async def test_server_of_a_path_gets_no_token_for_its_host(
    world: Internet, location: str, resource: str
) -> None:
    """Other servers of the host would accept such a token."""
    path = "/tenants/evil" if "tenants" in resource else "/evil"
    world.challenge = [f'Bearer resource_metadata="https://{location}"']
    world.pages[f"{MCP}{path}"] = world.mcp
    world.pages[location] = lambda asked: Answer(
        {"resource": resource, "authorization_servers": [f"https://{AS}"]}
    )
    with pytest.raises(ConnectFailed, match="of another resource"):
        async with connect(world, f"https://{MCP}{path}", PROFILE, MemoryStorage()):
            pass
    assert world.browsed == []
    assert requests_at(world, f"{AS}/token") == []


@pytest.mark.requirement("AC-5", "AC-7", "AF-4")
@pytest.mark.parametrize("named", [True, False])
async def test_document_of_the_root_may_name_the_host(world: Internet, named: bool) -> None:
    root = f"{MCP}/.well-known/oauth-protected-resource"
    world.challenge = [f'Bearer resource_metadata="https://{root}"' if named else "Bearer"]
    del world.pages[PRM]
    world.prm["resource"] = f"https://{MCP}"
    world.pages[root] = lambda asked: Answer(world.prm)
    async with connect(world, URL, PROFILE, MemoryStorage()) as client:
        await call(client, world)
    assert [asked.fields["resource"] for asked in requests_at(world, f"{AS}/token")] == [
        f"https://{MCP}"
    ]


# -- Mix-up ----------------------------------------------------------------------------------------


class ExactBrowser:
    """A browser, and an authorization server that compares redirect URIs and sends no `iss`.

    On loopback it ignores the port (RFC 8252 section 7.3).
    """

    def __init__(self, world: Internet) -> None:
        self.world = world
        self.refused: list[str] = []

    def open(self, url: str) -> bool:
        query = parse_qs(urlsplit(login_page_of(url)).query)
        redirect_uri = query["redirect_uri"][0]
        registered = {
            self.without_port(uri)
            for asked in requests_at(self.world, f"{AS}/register")
            for uri in json.loads(asked.body)["redirect_uris"]
        }
        if self.without_port(redirect_uri) not in registered:
            self.refused.append(redirect_uri)
            return True
        code = self.world.plant("code", AS)
        callback = f"{redirect_uri}?{urlencode({'code': code, 'state': query['state'][0]})}"
        visit(callback)
        return True

    @staticmethod
    def without_port(uri: str) -> str:
        parts = urlsplit(uri)
        return urlunsplit(parts._replace(netloc=parts.hostname or ""))


@pytest.mark.requirement("AQ-9", "AF-9")
async def test_mix_up_with_server_without_iss_gets_no_code(
    world: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hostile authorization server sends the user to the honest one, to get the code."""
    open_mcp_server_of_evil(world)
    world.metadata[EVIL]["authorization_endpoint"] = f"https://{AS}/authorize"
    browser = ExactBrowser(world)
    monkeypatch.setattr(webbrowser, "open", browser.open)
    storage = MemoryStorage()
    async with connect(world, URL, ClientProfile(), storage, browse="browser") as client:
        await call(client, world)
    assert browser.refused == []

    async def log_in_at_evil() -> None:
        async with connect(world, EVIL_URL, ClientProfile(), storage, browse="browser"):
            pass

    async with trio.open_nursery() as nursery:
        nursery.start_soon(log_in_at_evil)
        await until(lambda: browser.refused)
        await wait_all_tasks_blocked()  # the login goes on to wait for its redirect
        nursery.cancel_scope.cancel()
    assert len(browser.refused) == 1
    assert requests_at(world, f"{EVIL}/token") == []
    assert world.leaks() == []


# -- Other users of the machine --------------------------------------------------------------------

CAN_BE_ANOTHER: Final = os.geteuid() == 0 and shutil.which("bash") is not None
NOBODY: Final = 65534  # the user `nobody`


def visit_as_another_user(url: str) -> str:
    """Request `url`, in a process of another user if possible. Return the response."""
    parts = urlsplit(url)
    if not CAN_BE_ANOTHER:
        with socket.create_connection((parts.hostname or "", parts.port or 0), 10) as connection:
            connection.sendall(f"GET {parts.path} HTTP/1.1\r\nhost: x\r\n\r\n".encode())
            return connection.makefile().read()
    script = (
        f"exec 3<>/dev/tcp/{parts.hostname}/{parts.port};"
        f"printf 'GET {parts.path} HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n' >&3; cat <&3"
    )
    done = subprocess.run(
        ["bash", "-c", script],
        user=NOBODY,
        cwd="/",
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    return done.stdout.decode()


@pytest.mark.long  # it starts two programs
@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux lists the sockets")
async def test_other_user_who_sees_the_arguments_gets_no_login_page(
    world: Internet, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The attacker sees how the browser is started, and is faster."""
    answers: list[str] = []

    def open_page(url: str) -> bool:
        assert "state" not in url
        assert AS not in url
        with monkeypatch.context() as patch:
            if not CAN_BE_ANOTHER:  # let the client be another user
                patch.setattr(_peer_user, "_our_users", lambda: (os.geteuid() + 1,))
            answers.append(visit_as_another_user(url))
        log_in_at(world, login_page_of(url))
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    async with connect(world, URL, ClientProfile(), MemoryStorage(), browse="browser") as client:
        await call(client, world)
    assert answers[0].startswith("HTTP/1.1 404")
    assert AS not in answers[0]
    assert "a program of another user requested the start page" in caplog.text


def log_in_at(world: Internet, page: str) -> None:
    """Redirect the browser from the login page of the honest server to the client."""
    query = {name: values[0] for name, values in parse_qs(urlsplit(page).query).items()}
    fields = {"code": world.plant("code", AS), "state": query["state"], "iss": f"https://{AS}"}
    visit(f"{query['redirect_uri']}?{urlencode(fields)}")


async def test_browser_gets_a_private_file_where_users_are_not_known(
    world: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on macOS, with a browser that is started with an argument."""
    monkeypatch.setattr(_loopback, "can_find_users", lambda listener: False)
    files: list[Path] = []

    def open_page(url: str) -> bool:
        assert url.startswith("file:///")
        assert "state" not in url
        assert AS not in url
        file = Path(urlsplit(url).path)
        files.append(file)
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        log_in_at(world, login_page_of(url))
        return True

    monkeypatch.setattr(webbrowser, "open", open_page)
    async with connect(world, URL, ClientProfile(), MemoryStorage(), browse="browser") as client:
        await call(client, world)
    assert not files[0].parent.exists()


# -- Requests into the machine or its network ------------------------------------------------------


@pytest.mark.requirement("AU-1", "AU-3")
@pytest.mark.parametrize("name", ["registration_endpoint", "token_endpoint"])
async def test_public_issuer_of_local_server_does_not_reach_loopback(
    world: Internet, name: str
) -> None:
    """In development: the MCP server is on this machine, its authorization server is not."""
    world.local = True
    world.prm["resource"] = "https://localhost/mcp"
    world.pages["localhost/mcp"] = world.pages[f"{MCP}/mcp"]
    root = "localhost/.well-known/oauth-protected-resource/mcp"
    world.challenge = [f'Bearer resource_metadata="https://{root}"']
    world.pages[root] = lambda asked: Answer(world.prm)
    world.metadata[AS][name] = "https://127.0.0.1/admin"
    with pytest.raises(ConnectFailed, match=PRIVATE):
        async with connect(world, "https://localhost/mcp", PROFILE, MemoryStorage()):
            pass
    assert {request.host for request in world.requests} == {"localhost", AS} | (
        {AS} if name == "token_endpoint" else set()
    )
    with trio.fail_after(PATIENCE):
        world.metadata[AS][name] = f"https://{AS}/{name.partition('_')[0]}"
        if name == "registration_endpoint":
            world.metadata[AS][name] = f"https://{AS}/register"
        async with connect(world, "https://localhost/mcp", PROFILE, MemoryStorage()) as client:
            await call(client, world)
