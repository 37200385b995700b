"""`mcp-trio bench` at servers with TLS, over HTTP/2, and with a login."""

from __future__ import annotations

import json
import ssl
from collections import Counter
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trustme

import mcp_trio
from mcp_trio import serve_http
from tests.harness.world.command import run
from tests.harness.world.oauth import oauth_world
from tests.harness.world.waiting import PATIENCE, until
from tests.trio_.cli.use.test_login import run_command

if TYPE_CHECKING:
    import subprocess
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp_trio import AccessLogEntry
    from tests.harness.world.oauth import OAuthWorld

BENCH = ("bench", "--json", "--seconds", "0.2")
ECHO = (*BENCH, "--tool", "echo", "--args", '{"text": "x"}')
CLIENT = ("--through", "client")


def make_server() -> mcp_trio.Server:
    server = mcp_trio.Server("secure")

    @server.tool
    async def echo(text: str) -> str:
        """Return the text."""
        return text

    return server


@asynccontextmanager
async def served_with_tls(bundle: Path) -> AsyncIterator[tuple[str, list[AccessLogEntry]]]:
    """Serve with a certificate of an authority of our own, whose certificate is in `bundle`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(bundle)
    certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(certificate)
    stop = trio.Event()
    exchanges: list[AccessLogEntry] = []
    serve = partial(
        serve_http,
        make_server(),
        port=0,
        tls=certificate,
        stop=stop,
        on_exchange=exchanges.append,
    )
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            yield (await nursery.start(serve)).url, exchanges
            stop.set()


async def run_trusting(bundle: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = partial(run, *words, env={"SSL_CERT_FILE": bundle})
    return await trio.to_thread.run_sync(command)


@pytest.mark.parametrize(
    ("words", "protocol"),
    [
        ((), "HTTP/1.1"),
        (("--processes", "2"), "HTTP/1.1"),
        ((*CLIENT, "--concurrency", "2"), "HTTP/2"),
    ],
)
async def test_server_with_tls_is_measured(
    words: tuple[str, ...], protocol: str, tmp_path: Path
) -> None:
    """The lean engine and each of its processes trust what SSL_CERT_FILE names, as the client."""
    bundle = tmp_path / "ca.pem"
    async with served_with_tls(bundle) as (url, exchanges):
        result = await run_trusting(str(bundle), *ECHO, *words, url)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    [target], [row] = found["targets"], found["rows"]
    assert target["protocol"] == protocol
    measured = row["measured"]
    assert measured["answered"] == measured["sent"] > 0
    calls = Counter(each.rpc_method for each in exchanges)
    assert calls["tools/call"] > measured["sent"]  # some were the warm-up


@pytest.mark.parametrize("words", [(), CLIENT])
async def test_certificate_that_is_not_trusted_is_no_connection(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    async with served_with_tls(tmp_path / "ca.pem") as (url, exchanges):
        result = await run_trusting("", *ECHO, *words, url)
    assert result.returncode == 3
    assert "is not trusted: " in result.stderr
    assert "SSL_CERT_FILE" in result.stderr
    assert exchanges == []


# -- Logins ----------------------------------------------------------------------------------------

ADD = (*BENCH, "--tool", "add")


@pytest.fixture
async def world() -> AsyncIterator[OAuthWorld]:
    async with oauth_world() as world:
        yield world


def row_of(result: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert result.returncode == 0, result.stderr
    [row] = json.loads(result.stdout)["rows"]
    found: dict[str, Any] = row["measured"]
    return found


async def test_stored_login_is_used_through_the_client(world: OAuthWorld, tmp_path: Path) -> None:
    """Callers share it. A token that has expired is renewed once, and not once by each caller."""
    result = await run_command(tmp_path, "login", world.url)
    assert result.returncode == 0, result.stderr
    words = (*ADD, *CLIENT, "--concurrency", "3", world.url)
    measured = row_of(await run_command(tmp_path, *words))
    assert measured["answered"] == measured["sent"] > 0
    assert world.posted[-1] == ("tools/call", "CANARY-token-1")
    world.good.clear()
    measured = row_of(await run_command(tmp_path, *words))
    assert measured["answered"] == measured["sent"] > 0
    assert (world.posted[-1], world.tokens) == (("tools/call", "CANARY-token-2"), 2)


async def test_login_that_ends_meanwhile_is_an_error_of_its_calls(
    world: OAuthWorld, tmp_path: Path
) -> None:
    """The token can't be renewed, and the run goes on: no user may be asked to log in."""
    await run_command(tmp_path, "login", world.url)
    words = (*ADD, *CLIENT, "--seconds", "1", world.url)
    results = []

    async def measure() -> None:
        results.append(await run_command(tmp_path, *words))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(measure)
        await until(lambda: any(method == "tools/call" for method, _ in world.posted))
        world.token_error = "invalid_grant"
        world.good.clear()
    [result] = results
    [row] = json.loads(result.stdout)["rows"]
    assert set(row["measured"]["errors"]) == {"HTTP 401"}


async def test_server_that_needs_a_login_says_how_to_get_one(
    world: OAuthWorld, tmp_path: Path
) -> None:
    lean = await run_command(tmp_path, *ADD, world.url)
    assert lean.returncode == 3
    assert "needs a login (HTTP 401); give a token by --token-env, or log in and" in lean.stderr
    client = await run_command(tmp_path, *ADD, *CLIENT, world.url)
    assert client.returncode == 3
    assert client.stderr.endswith(
        f"{world.url}: a user has to log in. `mcp-trio login {world.url}` gets a token, --token-env"
        " VARIABLE sends one that you have\n"
    )
