"""Our protected server with the official TypeScript client (`@modelcontextprotocol/sdk` 1.32),
which logs in itself.

The client requests more scopes with its refresh token, if it has one, and fails if that does not
help. Therefore it gets no refresh token here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from tests.interop.protected import READ, WRITE, protected

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

pytestmark = pytest.mark.node
SCRIPT = Path(__file__).with_name("ts_login.mjs")


@pytest.fixture
def play(node_modules: Path) -> Callable[[str, str], Awaitable[Any]]:
    """Return a function that lets the client play a scene with the server at a URL and returns its
    report.
    """

    async def play(url: str, scene: str) -> Any:
        argv = ["node", str(SCRIPT), str(node_modules), url, scene]
        with trio.fail_after(30):
            done = await trio.run_process(
                argv, capture_stdout=True, capture_stderr=True, check=False
            )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    return play


@pytest.mark.parametrize("dpop", [False, True], ids=["", "beside-dpop"])
async def test_protected_server_node_client_logs_in(
    play: Callable[[str, str], Awaitable[Any]], dpop: bool
) -> None:
    async with protected(dpop=dpop) as (issuer, url):
        report = await play(url, "once")
    assert report["texts"] == [f"{issuer.issuer}#sub:alice"]
    assert report["scopes"] == [READ]
    assert report["requests"][:2] == [
        "POST /mcp 401",
        "GET /.well-known/oauth-protected-resource/mcp 200",
    ]
    assert sum(" 401" in each for each in report["requests"]) == 1
    assert report["requests"][-1] == "DELETE /mcp 204"
    assert issuer.log.count("GET /authorize") == issuer.log.count("POST /token") == 1
    assert report["errors"] == ["Error: Unauthorized"]  # one interactive login


async def test_protected_server_node_client_refreshes_token(
    play: Callable[[str, str], Awaitable[Any]],
) -> None:
    async with protected() as (issuer, url):
        report = await play(url, "renewed")
    assert report["texts"] == [f"{issuer.issuer}#sub:alice"] * 2
    assert (issuer.log.count("GET /authorize"), issuer.log.count("POST /token")) == (1, 2)


async def test_protected_server_node_client_steps_up(
    play: Callable[[str, str], Awaitable[Any]],
) -> None:
    async with protected() as (issuer, url):
        report = await play(url, "more")
    assert report["texts"] == [f"{issuer.issuer}#sub:alice", f"{READ} {WRITE}"]
    assert report["scopes"] == [READ, f"{READ} {WRITE}"]
    assert issuer.log.count("GET /authorize") == 2
