"""The FastAPI application of docs/howto/asgi.md with `mcp-trio login`, under hypercorn on trio and
uvicorn on asyncio.

The ASGI servers and the command are processes; the authorization server is the fake one.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest
import trio

from tests.examples.pages import EXAMPLES, ROOT, code
from tests.fakes import authorization_server
from tests.harness.world.command import run
from tests.interop.http_servers import await_listener, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VISITS = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1], timeout=10).read()"
BROWSER = f"{shlex.join([sys.executable, '-c', VISITS])} %s"
VERIFIER = "JwtVerifier(ISSUER, audience=URL)"
SERVERS = {
    "hypercorn": ["hypercorn", "-k", "trio", "--log-level", "warning", "app:site", "--bind"],
    "uvicorn": ["uvicorn", "--log-level", "warning", "app:site", "--port"],
}


def page_program(runtime: str, port: int, issuer: str, jwks: bytes) -> str:
    """Return the program of the page, for these addresses and this ASGI server."""
    first, *others = code("docs/howto/asgi.md", "python")
    [block] = [each for each in others if "metadata_paths" in each]
    replaced = {
        "http://127.0.0.1:8000": f"http://127.0.0.1:{port}",
        "http://127.0.0.1:9000": issuer,
    }
    if runtime == "uvicorn":
        replaced["mcp_trio.asgi"] = "mcp_asyncio_shim.asgi"
        replaced[VERIFIER] = f"{VERIFIER[:-1]}, jwks={jwks!r})"
    for old, new in replaced.items():
        assert old in block
        block = block.replace(old, new)
    return first + block


def fetch(url: str) -> bytes:
    with urlopen(url, timeout=10) as response:
        body: bytes = response.read()
        return body


@contextmanager
def serving(runtime: str, folder: Path, port: int) -> Iterator[None]:
    at = f"127.0.0.1:{port}" if runtime == "hypercorn" else str(port)
    path = os.pathsep.join(map(str, (ROOT, EXAMPLES, folder)))
    process = subprocess.Popen(
        [sys.executable, "-m", *SERVERS[runtime], at],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        await_listener(port)
        yield
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.mark.parametrize("runtime", SERVERS)
async def test_login_at_server_mounted_in_fastapi(runtime: str, tmp_path: Path) -> None:
    """Below a prefix the metadata must be found at the host's root, on two ASGI servers."""

    async def command(*words: str) -> subprocess.CompletedProcess[str]:
        env = {"XDG_DATA_HOME": str(tmp_path), "BROWSER": BROWSER}
        return await trio.to_thread.run_sync(partial(run, *words, env=env))

    async with trio.open_nursery() as nursery:
        issuer = await nursery.start(authorization_server.serve)
        jwks = issuer.answer("GET", "/jwks", {}, b"").body
        port = free_port()
        url = f"http://127.0.0.1:{port}/notes/mcp"
        (tmp_path / "app.py").write_text(page_program(runtime, port, issuer.issuer, jwks))
        with serving(runtime, tmp_path, port):
            refused = await command("inspect", url)
            assert refused.returncode == 3
            login = await command("login", url)
            assert (login.returncode, login.stderr.splitlines()[-1]) == (
                0,
                "mcp-trio: logged in; the other commands use this login now",
            )
            done = await command("call", "add_note", "text=hello", url)
            assert (done.returncode, done.stdout) == (0, "kept\n")
            # A client without the challenge looks at the root of the host.
            for path in ("oauth-protected-resource", "oauth-protected-resource/notes/mcp"):
                where = f"http://127.0.0.1:{port}/.well-known/{path}"
                assert url.encode() in await trio.to_thread.run_sync(fetch, where)
        nursery.cancel_scope.cancel()
