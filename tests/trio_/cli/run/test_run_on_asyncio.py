"""`--asyncio` and `-m`: servers that await asyncio, and modules of packages."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import textwrap
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import trio

import mcp_trio
from mcp_asyncio_shim.__main__ import main as shim_main
from mcp_core import ConnectionLost, PeerError
from tests.harness.world.command import COMMAND, run, served
from tests.harness.world.waiting import PATIENCE
from tests.trio_.cli.run.test_run_http import INITIALIZE, ask

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mcp_core.types import CallToolResult

pytestmark = pytest.mark.process

SERVER = """
import asyncio
import sys

from mcp_core.registry import Context, Server
from mcp_core.types import ToolAnnotations

server = Server("tea")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
async def wait(seconds: float = 0.01) -> str:
    "Wait, and name the event loop."
    print("waiting", file=sys.stderr, flush=True)
    await asyncio.sleep(seconds)
    return type(asyncio.get_running_loop()).__name__
"""
LOOP = "_UnixSelectorEventLoop\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tea.py"
    path.write_text(SERVER)
    return path


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A directory with a package `app`, whose module `app.sub.server` imports relatively."""
    folder = tmp_path / "app" / "sub"
    folder.mkdir(parents=True)
    (tmp_path / "app" / "__init__.py").write_text("")
    (tmp_path / "app" / "names.py").write_text("NAME = 'tea'")
    (folder / "__init__.py").write_text("from mcp_core.registry import Server\nx = Server('own')")
    source = SERVER.replace('Server("tea")', "Server(NAME)")
    (folder / "server.py").write_text(f"from ..names import NAME\n{source}")
    return tmp_path


CALLS = [
    ("call", "wait", "--asyncio", "tea.py"),
    ("call", "wait", "--asyncio", "--cwd", ".", "tea.py:server"),
    ("call", "wait", "--", sys.executable, "-m", "mcp_asyncio_shim", "tea.py"),
    ("call", "wait", "--", *COMMAND, "run", "--asyncio", "tea.py"),
    ("call", "wait", "--", *COMMAND, "run", "--asyncio", "-m", "tea:server"),
    ("call", "wait", "--asyncio", "-m", "tea"),
]


@pytest.mark.parametrize("words", CALLS)
def test_tool_that_awaits_asyncio_is_called(file: Path, words: tuple[str, ...]) -> None:
    result = run(*words, cwd=file.parent)
    assert (result.returncode, result.stdout, result.stderr) == (0, LOOP, "waiting\n")


def test_replay_starts_the_file_on_asyncio(file: Path, tmp_path: Path) -> None:
    """A recorded call is replayed without a difference."""
    trace = str(tmp_path / "a.mcp.jsonl")
    run("call", "wait", "--record", trace, "--asyncio", "tea.py", cwd=file.parent)
    result = run("replay", trace, "--asyncio", "tea.py", cwd=file.parent)
    assert result.returncode == 0, result.stdout + result.stderr


def test_fuzz_starts_the_file_on_asyncio(file: Path, tmp_path: Path) -> None:
    words = ["--cases", "1", "--no-shrink", "--era", "modern", "--output", str(tmp_path / "out")]
    result = run("fuzz", *words, "--json", "--asyncio", "tea.py", cwd=file.parent)
    assert result.returncode == 0, result.stdout + result.stderr
    report = json.loads(result.stdout)
    assert report["cases"] == 1
    assert report["target"].endswith("-P -m mcp_asyncio_shim tea.py")


def test_tool_that_awaits_asyncio_on_trio_gets_the_cure(file: Path) -> None:
    """The author reads it in the log; the client learns nothing of the cause."""
    result = run("call", "wait", "tea.py", cwd=file.parent)
    assert result.returncode == 1
    assert "RuntimeError: no running event loop\n" in result.stderr
    assert "asyncio. To run the server on asyncio: `mcp-trio run --asyncio FILE`" in result.stderr
    assert "asyncio" not in result.stdout


LIFESPANS = {
    "asyncio": ("", "`mcp-trio run --asyncio FILE`, or mcp_asyncio_shim.run(server)"),
    "trio": ("--asyncio", "`mcp-trio run FILE` without --asyncio, or mcp_trio.run(server)"),
}


@pytest.mark.parametrize("http", [(), ("--http", "0")])
@pytest.mark.parametrize("library", LIFESPANS)
def test_lifespan_for_the_other_loop_gets_the_cure(
    tmp_path: Path, library: str, http: tuple[str, ...]
) -> None:
    """It ends the command with status 1 and the traceback of the author's file."""
    option, cure = LIFESPANS[library]
    (tmp_path / "life.py").write_text(
        f"import {library}"
        + textwrap.dedent(f"""
        import contextlib
        from mcp_core.registry import Server

        @contextlib.asynccontextmanager
        async def life(server):
            await {library}.sleep(0.01)
            yield

        app = Server("still-born", lifespan=life)
    """)
    )
    words = [*COMMAND, "run", *filter(None, [option]), *http, "life.py"]
    result = subprocess.run(
        words, stdin=subprocess.PIPE, capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert result.returncode == 1, result.stderr
    assert cure in result.stderr
    assert "internal error" not in result.stderr


@pytest.mark.parametrize("option", [(), ("--asyncio",)])
def test_module_is_served_where_its_file_cannot_be(package: Path, option: tuple[str, ...]) -> None:
    """The error names the directory and the words, and they work."""
    result = run("inspect", *option, "app/sub/server.py", cwd=package)
    assert result.returncode == 3
    cure = f"name it as a module of its package, in {package}: -m app.sub.server\n"
    assert f"relative import with no known parent package; {cure}" in result.stderr
    result = run("inspect", *option, "--json", "-m", "app.sub.server", cwd=package)
    assert json.loads(result.stdout)["server"]["name"] == "tea"
    result = run("inspect", *option, "--json", "-m", "app.sub", "--cwd", str(package))
    assert json.loads(result.stdout)["server"]["name"] == "own"


def test_relative_import_in_no_package_says_what_to_write(tmp_path: Path) -> None:
    folder = tmp_path / "no-package"
    folder.mkdir()
    (folder / "tea.py").write_text("from . import other")
    result = run("run", "tea.py", cwd=folder)
    assert result.returncode == 1
    assert "write `import NAME` for `from . import NAME`" in result.stderr


def test_module_that_fails_shows_its_own_frames_only(package: Path) -> None:
    (package / "app" / "names.py").write_text("1 / 0")
    result = run("run", "-m", "app.sub.server", cwd=package)
    assert result.returncode == 1
    assert result.stderr.count("  File ") == 2
    assert result.stderr.endswith(
        "mcp-trio: app.sub.server could not be imported: ZeroDivisionError: division by zero\n"
    )


@pytest.mark.parametrize("option", [(), ("--asyncio",)])
def test_options_of_http_protect_the_server(
    file: Path, option: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hosts, origins, a path and keys: what is listed is served, and the rest is refused."""
    key = "0123456789abcdefghij"
    monkeypatch.setenv("KEY_OF_ADA", key)
    monkeypatch.setenv("KEY_OF_BOB", key[::-1])
    words = [*option, "--path", "/tea/mcp", "--sse-path", "/sse", "--api-key-env", "KEY_OF_ADA"]
    words += ["--api-key-env", "KEY_OF_BOB", "--allowed-host", "tea.example.com"]
    with served(file, *words, "--allowed-origin", "https://app.example.com") as site:
        assert site.url.endswith("/tea/mcp")
        ada = {"authorization": f"Bearer {key}"}
        rows = {
            401: {},
            200: ada,
            421: {**ada, "host": "other.example.com"},
            403: {**ada, "origin": "https://other.example.com"},
        }
        for status, headers in rows.items():
            assert ask(site.url, INITIALIZE, **headers).status == status
        assert ask(site.url.replace("/tea", ""), INITIALIZE, **ada).status == 404
        allowed = {"host": "tea.example.com", "origin": "https://app.example.com"}
        bob = {"authorization": f"Bearer {key[::-1]}"}
        assert ask(site.url, INITIALIZE, **bob, **allowed).status == 200
        refused = ask(site.url, INITIALIZE, **ada, host="other.example.com")
        assert b"list it in hosts= (--allowed-host of mcp-trio run)" in refused.body
    assert site.log[0] == f"Clients of HTTP+SSE connect to {site.url.replace('/tea/mcp', '/sse')}"
    assert " POST /tea/mcp " in site.log[1]
    assert " 401 " in site.log[1]
    assert key not in "".join(site.log)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_signal_lets_running_call_on_asyncio_finish(
    file: Path, number: signal.Signals
) -> None:
    """As on trio: the client gets its result before the process exits with 128 + n."""
    with served(file, "--asyncio") as site:
        async with mcp_trio.connect(site.url) as client, trio.open_nursery() as nursery:
            answers: list[CallToolResult] = []

            async def call() -> None:
                answers.append(await client.call_tool("wait", {"seconds": 0.3}))

            nursery.start_soon(call)
            await trio.to_thread.run_sync(site.wait_for, "waiting")
            site.process.send_signal(number)
        assert answers[0].text == LOOP.strip()
        site.end(None)
    assert "Traceback" not in "".join(site.log)
    assert site.process.returncode == 128 + number


LIFE = """
import contextlib
import sys

from mcp_core.registry import Server


@contextlib.asynccontextmanager
async def life(server):
    try:
        yield
    finally:
        print("lifespan ended", file=sys.stderr, flush=True)


server = Server("life", lifespan=life)
"""


@contextmanager
def open_stream(url: str) -> Iterator[http.client.HTTPResponse]:
    """Open the GET stream of a new session, which a client keeps open as long as it lives."""
    session = ask(url, INITIALIZE).headers["mcp-session-id"]
    headers = {"accept": "text/event-stream", "mcp-session-id": session}
    headers["mcp-protocol-version"] = "2025-11-25"
    with closing(http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)) as connection:
        connection.request("GET", urlsplit(url).path, headers=headers)
        yield connection.getresponse()


@pytest.mark.parametrize("option", [(), ("--asyncio",)])
def test_end_over_http_ends_streams_and_the_lifespan(
    tmp_path: Path, option: tuple[str, ...]
) -> None:
    """The stream of a session ends complete, and a request that never does is disconnected."""
    (tmp_path / "life.py").write_text(LIFE)
    with served(tmp_path / "life.py", *option) as site, open_stream(site.url) as stream:
        address = site.url.split("/")[2].split(":")
        with socket.create_connection((address[0], int(address[1]))) as incomplete:
            incomplete.sendall(
                b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
                b"content-length: 9\r\n\r\n{"
            )
            assert stream.status == 200
            site.end()
        stream.read()  # raises if it was cut off
    assert "lifespan ended" in site.log
    assert "Traceback" not in "".join(site.log)
    assert site.process.returncode == 143


@pytest.mark.parametrize("option", [(), ("--asyncio",)])
def test_reload_with_an_open_stream_ends_the_lifespan(
    tmp_path: Path, option: tuple[str, ...]
) -> None:
    """Before the server starts again: connections and files of the lifespan are closed."""
    file = tmp_path / "life.py"
    file.write_text(LIFE)
    with served(file, "--reload", *option) as site, open_stream(site.url) as stream:
        file.write_text(LIFE + "\n")
        stream.read()
        site.wait_for("lifespan ended")
        site.wait_for("mcp-trio: life.py has changed, starting again")


def test_second_signal_ends_server_on_asyncio_at_once(file: Path) -> None:
    """As on trio: a call that takes a minute isn't waited for."""
    with served(file, "--asyncio") as site, socket.socket() as client:
        session = ask(site.url, INITIALIZE).headers["mcp-session-id"]
        address = urlsplit(site.url)
        assert address.hostname is not None
        client.connect((address.hostname, address.port))
        body = json.dumps(
            {"jsonrpc": "2.0", "id": 2, "method": "tools/call"}
            | {"params": {"name": "wait", "arguments": {"seconds": 60}}}
        )
        client.sendall(
            f"POST /mcp HTTP/1.1\r\nhost: {address.netloc}\r\nmcp-session-id: {session}\r\n"
            "content-type: application/json\r\naccept: application/json, text/event-stream\r\n"
            f"content-length: {len(body)}\r\n\r\n{body}".encode()
        )
        site.wait_for("waiting")
        site.process.send_signal(signal.SIGTERM)
        while _accepts(address.hostname, address.port):
            pass
        site.end()
    assert site.process.returncode == -signal.SIGTERM


def _accepts(host: str, port: int | None) -> bool:
    """Return False once the server has begun its end, and closed its socket."""
    assert port is not None
    with suppress(OSError), socket.create_connection((host, port)):
        return True
    return False


def test_http_on_asyncio_without_uvicorn_names_it(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "mcp_asyncio_shim._uvicorn", raising=False)
    assert shim_main(["--http", "0", str(file)]) == 2
    needed = f"--http on asyncio needs uvicorn: {sys.executable} -m pip install uvicorn\n"
    assert capsys.readouterr().err == f"mcp-trio: {needed}"


def test_http_on_asyncio_at_a_taken_port_is_explained(file: Path) -> None:
    with served(file, "--asyncio") as site:
        port = site.url.split(":")[2].partition("/")[0]
        result = run("run", "--asyncio", str(file), "--http", port)
    assert result.returncode == 3
    assert result.stderr.startswith(f"mcp-trio: cannot listen on 127.0.0.1:{port}: Address alr")


def change(file: Path) -> None:
    file.write_text(SERVER.replace("return ", "return 'new ' + "))


@pytest.mark.parametrize("words", [("--http", "0"), ()])
async def test_reload_restarts_the_server_on_asyncio(file: Path, words: tuple[str, ...]) -> None:
    """Over stdio and HTTP a change is served to a client that stays connected."""
    command = [*COMMAND, "run", "--reload", "--asyncio", *words, str(file)]
    lines: list[str] = []

    async def play(client: mcp_trio.Client) -> None:
        assert (await client.call_tool("wait")).text == LOOP.strip()
        change(file)
        while True:
            with suppress(PeerError, ConnectionLost):  # of a call that was in flight
                if (await client.call_tool("wait")).text.startswith("new"):
                    return
            await trio.sleep(0.05)

    if not words:
        async with mcp_trio.connect_stdio(command, stderr=lines.append, inherit_env=True) as client:
            await play(client)
        assert "mcp-trio: tea.py has changed, starting again" in lines
        return
    process = await trio.lowlevel.open_process(
        [*command, "--stateless"], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    try:
        shown = b""
        while b"\n" not in shown:
            shown += await process.stderr.receive_some()
        async with mcp_trio.connect(shown.split()[3].decode()) as client:
            await play(client)
    finally:
        process.send_signal(signal.SIGTERM)
        while await process.stderr.receive_some():
            pass
        await process.wait()
        await process.stderr.aclose()
    assert process.returncode == 143
