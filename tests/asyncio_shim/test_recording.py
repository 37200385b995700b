"""`record=` on asyncio: every transport. What both drivers record is in `tests/drivers`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mcp_asyncio_shim
from mcp_asyncio_shim import Host, connect, serve_streams
from mcp_core import ConnectFailed
from mcp_core.adapters import Recording
from tests.asyncio_shim.test_http_transport import on_trio
from tests.harness.jsonrpc import E
from tests.harness.traces import make_server, methods, read_file
from tests.harness.world.loop import run, run_with_processes

if TYPE_CHECKING:
    from mcp_asyncio_shim import Client

SERVER_FILE = """
import sys
from mcp_asyncio_shim import run
from mcp_core.registry import Server
server = Server("s")
@server.tool(description="echo")
def echo(text: str) -> str:
    return text
run(server, **eval(sys.argv[1]))
"""


async def talk(client: Client) -> None:
    await client.call_tool("echo", {"text": "hi"})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.mcp.jsonl"


CALLED = [("client", "tools/call"), ("server", "result")]


@pytest.mark.process
def test_child_is_recorded_on_both_sides(path: Path, tmp_path: Path) -> None:
    """Child and parent write a trace each: the same messages, with spawn and exit in ours."""
    file, theirs = tmp_path / "server.py", tmp_path / "theirs"
    file.write_text(SERVER_FILE, "utf-8")
    argv = [sys.executable, str(file), repr({"record": str(theirs)})]

    async def main() -> None:
        async with connect(argv, record=path, inherit_env=True) as client:
            await talk(client)

    run_with_processes(main())
    (header, sent), (their_header, received) = read_file(path), read_file(theirs)
    assert (header.transport, header.observer) == ("stdio", "client")
    assert (their_header.transport, their_header.observer) == ("stdio", "server")
    assert [line.kind for line in sent if line.kind is not None] == ["spawn", "exit"]
    assert sent[-1].status == 0
    assert methods(sent) == methods(received)
    assert {line.sender for line in received if line.end} == {"client", "server"}


@pytest.mark.process
def test_child_that_fails_is_recorded(path: Path) -> None:
    """Its status is in the trace, although there was never a conversation."""

    async def main() -> None:
        with pytest.raises(ConnectFailed, match="ended the connection"):
            async with connect([sys.executable, "-c", "raise SystemExit(3)"], record=path):
                pass

    run_with_processes(main())
    _, lines = read_file(path)
    assert [(line.kind, line.status) for line in lines if line.kind is not None] == [
        ("spawn", None),
        ("exit", 3),
    ]


def test_server_on_streams_is_recorded(path: Path) -> None:
    """Bytes that aren't JSON are recorded as they came, and the end of the stream too."""

    async def main() -> None:
        serving = asyncio.Event()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await serve_streams(make_server(), reader, writer, record=path)
            serving.set()

        listener = await asyncio.start_server(accept, "127.0.0.1", 0)
        async with listener:
            port = listener.sockets[0].getsockname()[1]
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"no json\n")
            writer.write_eof()
            await serving.wait()
            writer.close()
            await writer.wait_closed()

    run(main())
    header, lines = read_file(path)
    assert (header.observer, header.transport) == ("server", "stream")
    assert (lines[0].sender, lines[0].raw) == ("client", "no json")
    assert lines[-1].end == "closed"


@pytest.mark.parametrize("scheme", ["http", "ws"])
@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25", "2024-11-05"])
def test_client_at_a_url_records_what_the_server_records(
    tmp_path: Path, scheme: str, version: str
) -> None:
    """The two traces have the same raw messages, whichever transport carries the revision."""
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"

    async def main() -> None:
        with on_trio(make_server(), record=theirs) as url:
            target = url.replace("http", scheme)
            async with connect(target, record=ours, versions=[version]) as client:
                await talk(client)

    run(main())
    (header, sent), (_, received) = read_file(ours), read_file(theirs)
    assert header.transport == {"http": "http", "ws": "websocket"}[scheme]
    assert sorted(line.raw or "" for line in sent if line.raw) == sorted(
        line.raw or "" for line in received if line.raw
    )
    assert CALLED[0] in methods(sent)


@pytest.mark.parametrize("url", ["ftp://here", "wsx://here"])
def test_unknown_scheme_is_named_also_with_a_trace(url: str, path: Path) -> None:
    async def main() -> None:
        with pytest.raises(ValueError, match=url):
            await connect(url, record=path).__aenter__()

    run(main())


def test_host_writes_a_trace_for_each_server(tmp_path: Path) -> None:
    async def main() -> None:
        servers = {"a": make_server(), "b": make_server()}
        async with Host(servers, record=tmp_path / "traces") as host:
            await host.client("a").call_tool("echo", {"text": "hi"})

    run(main())
    found = {path.name: read_file(path)[1] for path in (tmp_path / "traces").iterdir()}
    assert sorted(found) == [f"{name}.mcp.jsonl" for name in "ab"]
    assert CALLED[0] in methods(found["a.mcp.jsonl"])
    assert CALLED[0] not in methods(found["b.mcp.jsonl"])


def test_secrets_are_hidden_from_the_trace_only(path: Path) -> None:
    async def main() -> None:
        with on_trio(make_server()) as url:
            recording = Recording(path=path, redact=("/params/arguments/text",))
            headers = {"authorization": "Bearer s3cret"}
            async with connect(url, headers=headers, record=recording, versions=[E]) as client:
                result = await client.call_tool("echo", {"text": "my-argument"})
                assert "my-argument" in str(result)

    run(main())
    data = path.read_text("utf-8")
    assert "s3cret" not in data
    assert '"arguments\\":{\\"text\\":\\"my-argument' not in data


@pytest.mark.process
def test_recorder_is_loaded_on_first_use() -> None:
    program = "import sys, mcp_asyncio_shim; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True).split()
    assert not {"mcp_core.adapters", "mcp_core.trace"} & set(loaded)
    assert mcp_asyncio_shim.Recording is Recording
