"""HTTP/2 with other implementations: our client with hypercorn and our own server, directly and
through proxies that terminate HTTP/2 (nginx, haproxy); and the official client through the same
proxies to our server.
"""

from __future__ import annotations

import ssl
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import trio
import trustme
from hypercorn.config import Config
from hypercorn.trio import serve
from mcp import Client as OfficialClient
from mcp.client.streamable_http import streamable_http_client

import mcp_trio
from mcp_core import ALL, Change
from mcp_trio import connect, connect_http
from tests.harness.world.command import run
from tests.harness.world.waiting import PATIENCE
from tests.interop.official import D, E, everything, served, unfinished_streams
from tests.interop.proxies import haproxy, nginx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp_trio import Client

pytestmark = [
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    unfinished_streams,
]
every_revision = pytest.mark.parametrize("version", ALL)
both_eras = pytest.mark.parametrize("version", [E, D])


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context


async def converse(client: Client, version: str, *, protocol: str = "HTTP/2") -> None:
    """Use a little of everything, much of it concurrently."""
    assert client.peer.dialect.version == version
    assert len(await client.list_tools()) > 3
    assert client.protocol == protocol
    assert (await client.call_tool("echo", {"text": "naïve ☃"})).text == "naïve ☃"
    long = "x" * 1_000_000
    assert (await client.call_tool("echo", {"text": long})).text == long
    received: list[float] = []
    await client.call_tool("count", {"to": 3}, progress=lambda step, *_: received.append(step))
    assert received == [1, 2, 3]
    answers: dict[int, str] = {}

    async def ask(number: int) -> None:
        answers[number] = (await client.call_tool("echo", {"text": str(number)})).text

    async with trio.open_nursery() as nursery:
        for number in range(200):
            nursery.start_soon(ask, number)
    assert answers == {number: str(number) for number in range(200)}
    with trio.CancelScope() as scope:
        await client.call_tool("wait", progress=lambda *_: scope.cancel())
    assert scope.cancelled_caught
    assert (await client.call_tool("cancelled")).text == "yes"


# --- our own --------------------------------------------------------------------------------------


@every_revision
async def test_http2_own_client_and_server_use_it_over_tls(
    version: str, authority: trustme.CA
) -> None:
    certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(certificate)
    with trio.fail_after(PATIENCE):
        async with (
            served(everything(version), tls=certificate) as there,
            connect_http(there.url, tls=trusting(authority)) as client,
        ):
            await converse(client, version)


async def test_http2_own_client_and_server_use_it_by_prior_knowledge() -> None:
    with trio.fail_after(PATIENCE):
        async with (
            served(everything()) as there,
            connect(there.url, prior_knowledge=True) as client,
        ):
            await converse(client, E)


async def test_http2_command_prints_the_protocol(authority: trustme.CA, tmp_path: Path) -> None:
    certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(certificate)
    bundle = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(bundle)
    with trio.fail_after(PATIENCE):
        async with served(everything(), tls=certificate) as there:
            env = {"SSL_CERT_FILE": str(bundle)}
            inspect = partial(run, "inspect", "--trace", there.url, env=env)
            done = await trio.to_thread.run_sync(inspect)
    assert done.returncode == 0, done.stderr
    assert "mcp-trio: connected over HTTP/2" in done.stderr.splitlines()


@pytest.mark.parametrize("secure", [True, False])
async def test_http2_own_server_shutdown_answers_started_calls(
    secure: bool, authority: trustme.CA
) -> None:
    """Started calls are answered, later ones are refused, and none is executed twice."""
    certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(certificate)
    server = mcp_trio.Server("slow")
    began: list[int] = []
    all_began = trio.Event()

    @server.tool
    async def wait(number: int) -> int:
        """Take a while."""
        began.append(number)
        if len(began) == 30:
            all_began.set()
        await trio.sleep(0.3)
        return number

    answered: list[int] = []
    lost: list[int] = []

    async def ask(client: Client, number: int) -> None:
        try:
            result = await client.call_tool("wait", {"number": number})
        except (mcp_trio.ConnectionLost, mcp_trio.PeerError):
            lost.append(number)
        else:
            assert result.text == str(number)
            answered.append(number)

    with trio.fail_after(PATIENCE):
        async with (
            served(server, tls=certificate if secure else None) as there,
            connect_http(there.url, tls=trusting(authority), prior_knowledge=not secure) as client,
            trio.open_nursery() as nursery,
        ):
            for number in range(30):
                nursery.start_soon(ask, client, number)
            await all_began.wait()
            there.stop.set()
            await trio.sleep(0.05)
            for number in range(30, 40):
                nursery.start_soon(ask, client, number)
    assert sorted(answered) == list(range(30))
    assert sorted(lost) == list(range(30, 40))
    assert sorted(began) == list(range(30))


# --- hypercorn ------------------------------------------------------------------------------------


@asynccontextmanager
async def under_hypercorn(place: Path, authority: trustme.CA | None) -> AsyncIterator[str]:
    config = Config()
    config.bind = ["127.0.0.1:0"]
    config.graceful_timeout = 1
    if authority is not None:
        issued = authority.issue_cert("127.0.0.1")
        issued.private_key_pem.write_to_path(place / "key.pem")
        issued.cert_chain_pems[0].write_to_path(place / "cert.pem")
        config.keyfile, config.certfile = str(place / "key.pem"), str(place / "cert.pem")
    stop = trio.Event()
    app: Any = mcp_trio.asgi(everything())
    async with trio.open_nursery() as nursery:
        [url] = await nursery.start(
            partial(serve, app, config, shutdown_trigger=stop.wait, mode="asgi")
        )
        try:
            yield f"{url}/mcp"
        finally:
            stop.set()


@both_eras
@pytest.mark.parametrize("secure", [True, False])
async def test_http2_own_client_is_answered_by_hypercorn(
    version: str, secure: bool, authority: trustme.CA, tmp_path: Path
) -> None:
    with trio.fail_after(PATIENCE):
        async with (
            under_hypercorn(tmp_path, authority if secure else None) as url,
            connect_http(
                url, tls=trusting(authority), versions=[version], prior_knowledge=not secure
            ) as client,
        ):
            await converse(client, version)


# --- proxies --------------------------------------------------------------------------------------


@pytest.fixture(params=["nginx", "haproxy", "haproxy, and HTTP/1.1 behind"])
def proxy(request: pytest.FixtureRequest, tmp_path: Path, authority: trustme.CA) -> Any:
    """A proxy in front of a port."""
    if request.param == "nginx":
        return partial(nginx, tmp_path, authority)
    return partial(haproxy, tmp_path, authority, http2=request.param == "haproxy")


@asynccontextmanager
async def behind(proxy: Any, *versions: str, **options: Any) -> AsyncIterator[str]:
    """Serve our server behind `proxy`, and yield the URL."""
    async with served(everything(*versions)) as there:
        port = int(there.url.split(":")[2].split("/")[0])
        with proxy(port, **options) as url:
            yield f"{url}/mcp"


@both_eras
async def test_http2_own_client_is_answered_through_proxy(
    version: str, proxy: Any, authority: trustme.CA
) -> None:
    with trio.fail_after(PATIENCE):
        async with (
            behind(proxy, version) as url,
            connect_http(url, tls=trusting(authority)) as client,
        ):
            await converse(client, version)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_http2_sdk_client_is_answered_through_proxy(
    mode: str, proxy: Any, authority: trustme.CA
) -> None:
    """It reaches the proxy over HTTP/2, and our server behind as the proxy likes."""
    with trio.fail_after(PATIENCE):
        spoken: list[str] = []

        async def record(response: httpx2.Response) -> None:
            spoken.append(response.http_version)

        async with (
            behind(proxy) as url,
            httpx2.AsyncClient(
                http2=True,
                verify=trusting(authority),
                timeout=10,
                event_hooks={"response": [record]},
            ) as http,
            OfficialClient(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            assert client.protocol_version == (D if mode == "legacy" else E)
            assert "weather" in {tool.name for tool in (await client.list_tools()).tools}
            for number in range(20):
                result = await client.call_tool("echo", {"text": f"naïve ☃ {number}"})
                assert result.content[0].text == f"naïve ☃ {number}"  # type: ignore[union-attr]
            received: list[float] = []

            async def step(progress: float, total: float | None, message: str | None) -> None:
                received.append(progress)

            await client.call_tool("count", {"to": 3}, progress_callback=step)
            assert received == [1, 2, 3]
        assert set(spoken) == {"HTTP/2"}


async def test_http2_proxy_with_frequent_goaway_loses_no_request(
    authority: trustme.CA, tmp_path: Path
) -> None:
    """nginx sends GOAWAY after a number of requests, and completes those that it has accepted."""
    with trio.fail_after(PATIENCE):
        async with (
            behind(partial(nginx, tmp_path, authority), E, requests=100) as url,
            connect_http(url, tls=trusting(authority)) as client,
        ):
            await converse(client, E)
            for number in range(300):
                assert (await client.call_tool("echo", {"text": str(number)})).text == str(number)


async def test_http2_change_arrives_through_proxy(proxy: Any, authority: trustme.CA) -> None:
    with trio.fail_after(PATIENCE):
        async with served(server := everything()) as there:
            port = int(there.url.split(":")[2].split("/")[0])
            with proxy(port) as url:
                async with (
                    connect_http(f"{url}/mcp", tls=trusting(authority)) as client,
                    client.listen(tools=True) as changes,
                ):
                    server.changed(tools=True)
                    assert await anext(changes) == Change("tools")
                    assert (await client.call_tool("echo", {"text": "x"})).text == "x"
