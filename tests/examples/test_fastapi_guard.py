"""`examples/fastapi_guard.py` under hypercorn, with a local authorization server and a login."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
import trio

import mcp_trio
from tests.examples.pages import EXAMPLES, ROOT
from tests.fakes.authorization_server import AuthorizationServer, serve
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

NAME = "fastapi_guard.py"

# A browser for the command: it opens the page and follows all redirects.
VISITS = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10).read()"
BROWSER = f"{shlex.join([sys.executable, '-c', VISITS])} %s"


@pytest.fixture
async def issuer(nursery: trio.Nursery) -> AuthorizationServer:
    issuer: AuthorizationServer = await nursery.start(serve)
    return issuer


@pytest.fixture
async def url(nursery: trio.Nursery, issuer: AuthorizationServer) -> str:
    """Serve the example on a free port. Return the URL of its MCP server."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/notes/mcp"
        env = {"NOTES_URL": url, "NOTES_ISSUER": issuer.issuer, "PYTHONPATH": str(ROOT)}
        argv = [sys.executable, "-m", "hypercorn", "-k", "trio", f"{EXAMPLES / NAME}:app"]
        bound = ["--bind", f"fd://{listener.fileno()}", "--graceful-timeout", "0"]
        await nursery.start(
            partial(
                trio.run_process,
                argv + bound,
                env=os.environ | env,
                pass_fds=[listener.fileno()],
                stderr=subprocess.DEVNULL,
                check=False,
            )
        )
    return url


def connect_with(url: str, token: str) -> AbstractAsyncContextManager[mcp_trio.Client]:
    return mcp_trio.connect_http(url, headers={"authorization": f"Bearer {token}"})


async def users(url: str) -> int:
    """Return what the application's own route says, to which everyone has access."""

    def read() -> bytes:
        content: bytes = urlopen(url.replace("/notes/mcp", "/health"), timeout=PATIENCE).read()
        return content

    number: int = json.loads(await trio.to_thread.run_sync(read))["users"]
    return number


async def test_fastapi_guard_user_logs_in_with_command(url: str, tmp_path: Path) -> None:
    env = {"XDG_DATA_HOME": str(tmp_path), "BROWSER": BROWSER, "PYTHONPATH": str(ROOT)}
    argv = [sys.executable, "-m", "mcp_trio", "login", "--scope", "notes:write", url]
    done = await trio.run_process(argv, env=os.environ | env, capture_stderr=True, check=False)
    assert done.stderr.endswith(b"logged in; the other commands use this login now\n")
    stored = mcp_trio.FileStorage(tmp_path / "mcp-trio" / "tokens")
    login = mcp_trio.LoginConfig(storage=stored, browse=None)
    async with mcp_trio.connect(url, auth=login) as client:
        assert (await client.call_tool("add_note", {"text": "milk"})).text == "kept"
    assert await users(url) == 1


async def test_fastapi_guard_separates_users_and_scopes(
    url: str, issuer: AuthorizationServer
) -> None:
    """Bob can't see Alice's notes; a token for another resource or an expired one is useless."""
    with pytest.raises(mcp_trio.ConnectFailed) as refused:
        async with mcp_trio.connect(url):
            pass
    assert isinstance(refused.value.__cause__, mcp_trio.AuthRequired)
    assert await users(url) == 0

    async with connect_with(url, issuer.token(url)) as alice:
        assert (await alice.call_tool("add_note", {"text": "milk"})).text == "kept"
        assert (await alice.call_tool("read_notes", returns=list[str])).data == ["milk"]
    async with connect_with(url, issuer.token(url, "notes:read", sub="bob")) as bob:
        assert (await bob.call_tool("read_notes", returns=list[str])).data == []
        with pytest.raises(mcp_trio.AuthRequired) as denied:
            await bob.call_tool("add_note", {"text": "eggs"})
        assert denied.value.scopes == ("notes:read", "notes:write")
    for token in (issuer.token("https://other.example/mcp"), issuer.token(url, exp=1)):
        with pytest.raises(mcp_trio.ConnectFailed):
            async with connect_with(url, token):
                pass
