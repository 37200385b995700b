"""The deployment page: its server behind its nginx configuration, with a real nginx."""

from __future__ import annotations

import os
import re
import socket
import ssl
import subprocess
import sys
from configparser import ConfigParser
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trustme

import mcp_trio
from mcp_core import ALL
from tests.examples.pages import ROOT, code, run
from tests.interop.proxies import serve_nginx, wait_for

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from configparser import SectionProxy
    from pathlib import Path

PAGE = "docs/howto/deploy.md"


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@asynccontextmanager
async def deployed(place: Path, authority: trustme.CA, **options: Any) -> AsyncIterator[str]:
    """Run the server of the page behind its nginx, and yield the URL."""
    serve = run(PAGE)["serve"]
    # The name of the page cannot be looked up; port 8000 may be in use.
    changed: dict[str, Any] = {**serve.keywords, "hosts": ["127.0.0.1"], "on_exchange": None}
    async with trio.open_nursery() as nursery:
        start = partial(mcp_trio.serve_http, serve.args[0], **{**changed, **options})
        address = await nursery.start(start)
        [settings] = code(PAGE, "nginx")
        settings = settings.replace("127.0.0.1:8000", f"127.0.0.1:{address.port}")
        with serve_nginx(place, authority, settings) as url:
            yield url
        nursery.cancel_scope.cancel()


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.mark.parametrize("version", ALL)
async def test_nginx_of_page_passes_progress_on_at_once(
    version: str, tmp_path: Path, authority: trustme.CA
) -> None:
    """nginx buffers responses by default, which the page's configuration turns off."""
    received: list[float] = []
    async with deployed(tmp_path, authority) as url:
        tls = trusting(authority)
        async with mcp_trio.connect_http(f"{url}/mcp", tls=tls, versions=[version]) as client:
            await client.call_tool("add_note", {"text": "milk"})

            def note(done: float, *_: object) -> None:
                received.append(trio.current_time())

            result = await client.call_tool("export", progress=note)
            assert result.text == "milk"
    # With a buffer, all would arrive at the same time.
    assert len(received) == 3
    assert received[2] - received[0] > 0.1


async def test_nginx_of_page_serves_websockets(tmp_path: Path, authority: trustme.CA) -> None:
    async with deployed(tmp_path, authority) as url:
        target = url.replace("https:", "wss:") + "/mcp"
        async with mcp_trio.connect_websocket(target, tls=trusting(authority)) as client:
            assert (await client.call_tool("add_note", {"text": "milk"})).text == "1"


async def test_nginx_of_page_overwrites_address_of_client(
    tmp_path: Path, authority: trustme.CA
) -> None:
    """A client cannot choose the address by which it is counted."""
    seen: list[str] = []

    def head(request: Any) -> Any:
        seen.extend(v.decode() for name, v in request.headers if name == b"x-forwarded-for")
        return mcp_trio.PlainResponse(200, b"ok")

    async with deployed(tmp_path, authority, routes={"/address": head}) as url:
        port = int(url.rpartition(":")[2])
        tls = trusting(authority)
        stream = await trio.open_ssl_over_tcp_stream("127.0.0.1", port, ssl_context=tls)
        await stream.send_all(
            b"GET /address HTTP/1.1\r\nhost: 127.0.0.1\r\nx-forwarded-for: 203.0.113.7\r\n\r\n"
        )
        assert (await stream.receive_some()).startswith(b"HTTP/1.1 200")
        await trio.aclose_forcefully(stream)
    assert seen == ["127.0.0.1"]


def service_of_page() -> SectionProxy:
    """Return the settings of the systemd unit."""
    [text] = code(PAGE, "ini")
    unit = ConfigParser()
    unit.read_string(text)
    return unit["Service"]


@contextmanager
def program_of_page(place: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run the program of the page as its unit does, and yield it with its port once it listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    [program] = code(PAGE, "python")
    program = program.replace("8000", str(port)).replace("mcp.example.com", "127.0.0.1")
    file, _, _ = program.removeprefix("# ").partition("\n")
    (place / file).write_text(program)
    words = service_of_page()["ExecStart"].replace("/srv/notes/venv/bin/python", sys.executable)
    argv = words.replace("/srv/notes", str(place)).split()
    assert argv == [sys.executable, str(place / file)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(argv, env=environment, stderr=subprocess.PIPE) as process:
        try:
            wait_for(port, process)
            yield process, port
        finally:
            process.kill()


async def test_sigterm_lets_running_call_of_page_finish(tmp_path: Path) -> None:
    with program_of_page(tmp_path) as (process, port):

        def terminate(done: float, *_: object) -> None:
            if done == 0:
                process.terminate()

        async with mcp_trio.connect(f"http://127.0.0.1:{port}/mcp") as client:
            await client.call_tool("add_note", {"text": "milk"})
            assert (await client.call_tool("export", progress=terminate)).text == "milk"
        _, log = await trio.to_thread.run_sync(partial(process.communicate, timeout=20))
    assert process.returncode == 0
    assert re.search(rb"^access POST /mcp 200 0\.\d+ s \d+ B tools/call$", log, re.MULTILINE)


def test_unit_of_page_starts_and_stops_its_program(tmp_path: Path) -> None:
    """systemd runs `ExecStart`, sends SIGTERM, and kills the program after `TimeoutStopSec`."""
    seconds = float(service_of_page()["TimeoutStopSec"])
    assert seconds > run(PAGE)["serve"].keywords["grace"]
    with program_of_page(tmp_path) as (process, _):
        process.terminate()
        assert process.wait(seconds) == 0


async def test_nginx_of_page_rejects_long_messages(tmp_path: Path, authority: trustme.CA) -> None:
    async with (
        deployed(tmp_path, authority) as url,
        mcp_trio.connect_http(f"{url}/mcp", tls=trusting(authority)) as client,
    ):
        with pytest.raises(mcp_trio.McpTrioError, match="413"):
            await client.call_tool("add_note", {"text": "x" * 1024 * 1024})
        assert (await client.call_tool("add_note", {"text": "milk"})).text == "1"
