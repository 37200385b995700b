"""The recorder on trio: every transport, secrets, and each line as it is written.

What both drivers record, and the file, are in `tests/drivers/test_recording.py`.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trio

import mcp_trio
from mcp_core.trace import TraceLine
from mcp_trio import (
    ClientProfile,
    LoginConfig,
    MemoryStorage,
    Recording,
    connect,
    connect_http,
    connect_stdio,
    serve_http,
)
from mcp_trio.recording._open import open_recorder
from mcp_trio.recording._stream import RecordedStream
from tests.harness.traces import content, make_server, methods, read_file, talk
from tests.harness.world.oauth import oauth_world
from tests.harness.world.waiting import PATIENCE

SERVER_FILE = """
import sys
from mcp_trio import Server, run
server = Server("s")
@server.tool(description="echo")
def echo(text: str) -> str:
    return text
print("a line of stderr", file=sys.stderr)
run(server)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.mcp.jsonl"


# -- Transports ------------------------------------------------------------------------------------


@pytest.mark.process
async def test_child_is_recorded_with_its_stderr_and_exit(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(SERVER_FILE, "utf-8")
    argv = [sys.executable, str(file), "--api-key", "very-secret"]
    async with connect_stdio(argv, record=path, inherit_env=True, stderr="discard") as client:
        await client.call_tool("echo", {"text": "hi"})
    header, lines = read_file(path)
    assert (header.transport, header.observer) == ("stdio", "client")
    assert header.target.endswith("--api-key '‹redacted 11›'")
    kinds = {line.kind: line for line in lines if line.kind is not None}
    assert kinds["spawn"].text == header.target
    assert kinds["stderr"].text == "a line of stderr"
    assert kinds["exit"].status == 0
    assert ("client", "tools/call") in methods(lines)


async def test_child_that_fails_is_recorded(path: Path) -> None:
    with pytest.raises(mcp_trio.ConnectFailed):
        async with connect_stdio(
            [sys.executable, "-c", "import sys; sys.exit('boom')"], record=path, stderr="discard"
        ):
            pass
    _, lines = read_file(path)
    assert [(line.kind, line.status) for line in lines if line.kind == "exit"] == [("exit", 1)]
    assert [line.text for line in lines if line.kind == "stderr"] == ["boom"]


@pytest.mark.parametrize("version", ["2026-07-28", "2025-11-25", "2024-11-05"])
async def test_both_sides_of_http_record_the_same_messages(tmp_path: Path, version: str) -> None:
    """Two traces of one conversation can be compared, since neither side adds or drops a line."""
    ours, theirs = tmp_path / "client", tmp_path / "server"
    async with trio.open_nursery() as nursery:

        async def serve(task_status: Any) -> None:
            await serve_http(make_server(), record=theirs, task_status=task_status)

        address = await nursery.start(serve)
        async with connect(address.url, record=ours, versions=[version]) as client:
            await talk(client)
        nursery.cancel_scope.cancel()
    header, sent = read_file(ours)
    assert (header.observer, header.transport) == ("client", "http")
    assert header.target == address.url
    header, received = read_file(theirs)
    assert (header.observer, header.transport) == ("server", "http")
    assert sorted(line.raw or "" for line in sent) == sorted(line.raw or "" for line in received)
    for lines in sent, received:
        ends = [line.exchange for line in lines if line.end is not None]
        assert sorted(ends) == list(range(1, max(ends) + 1))  # each exchange ends once
    streams = [line for line in sent if line.sse is not None and line.raw is not None]
    assert len(streams) >= 3  # three steps of progress


async def test_session_ids_have_the_same_pseudonym_in_all_requests(path: Path) -> None:
    """A session id is a secret, but the judge must see that requests belong together."""
    async with trio.open_nursery() as nursery:
        address = await nursery.start(serve_http, make_server())
        async with connect(address.url, record=path, versions=["2025-11-25"]) as client:
            await talk(client)
        nursery.cancel_scope.cancel()
    _, lines = read_file(path)
    ids = [
        value
        for line in lines
        if line.http is not None
        for name, value in line.http.headers
        if name == "mcp-session-id"
    ]
    assert len(ids) > 3
    assert len(set(ids)) == 1


async def test_websocket_is_recorded_with_its_close_codes(tmp_path: Path) -> None:
    """Both sides see the same close handshake, and the server's trace has the upgrade."""
    ours, theirs = tmp_path / "client", tmp_path / "server"
    async with trio.open_nursery() as nursery:

        async def serve(task_status: Any) -> None:
            await serve_http(make_server(), record=theirs, task_status=task_status)

        address = await nursery.start(serve)
        async with connect(address.url.replace("http", "ws"), record=ours) as client:
            await talk(client)
        nursery.cancel_scope.cancel()
    (header, sent), (_, received) = read_file(ours), read_file(theirs)
    assert header.transport == "websocket"
    assert methods(sent) == methods(received)
    for lines in sent, received:
        closes = [(line.sender, line.websocket.code) for line in lines if line.websocket]
        assert closes == [("client", 1000), ("server", 1000)]
    assert received[1].http is not None
    assert received[1].http.status == 101


async def test_conversations_of_listeners_have_their_numbers_in_one_trace(path: Path) -> None:
    """Two connections write to one file, and the numbers keep them apart."""
    stop = trio.Event()
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        serve = partial(mcp_trio.serve_listeners, make_server(), listeners, stop=stop, record=path)
        nursery.start_soon(serve)
        port = listeners[0].socket.getsockname()[1]
        for _ in range(2):
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            async with mcp_trio.connect_stream(stream) as client:
                await talk(client)
        stop.set()
    header, lines = read_file(path)
    assert (header.observer, header.transport) == ("server", "stream")
    for number in (1, 2):
        found = [line for line in lines if line.conversation == number]
        assert ("client", "tools/call") in methods(found)
        assert {line.sender for line in found if line.end} == {"client", "server"}


async def test_listeners_are_closed_if_the_trace_cannot_be_opened(tmp_path: Path) -> None:
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    with pytest.raises(OSError, match="cannot record"):
        await mcp_trio.serve_listeners(make_server(), listeners, record=tmp_path / "no" / "dir")
    assert listeners[0].socket.fileno() == -1


@pytest.mark.process
def test_server_on_stdio_is_recorded(path: Path) -> None:
    code = f"from mcp_trio import Server, run; run(Server('s'), record={str(path)!r})"
    subprocess.run(
        [sys.executable, "-c", code], input=b"no json\n", check=True, capture_output=True
    )
    header, lines = read_file(path)
    assert (header.observer, header.transport) == ("server", "stdio")
    assert lines[0].raw == "no json"


# -- Secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_secrets", [False, True])
async def test_secrets_are_written_on_request_only(path: Path, with_secrets: bool) -> None:
    recording = Recording(path=path, with_secrets=with_secrets, redact=("/params/arguments/text",))
    async with trio.open_nursery() as nursery:
        address = await nursery.start(serve_http, make_server())
        headers = {"authorization": "Bearer s3cret"}
        async with mcp_trio.connect_http(address.url, headers=headers, record=recording) as client:
            await client.call_tool("echo", {"text": "my-argument"})
        nursery.cancel_scope.cancel()
    data = content(path)
    header, _ = read_file(path)
    assert ("s3cret" in data) is with_secrets
    assert bool(header.redacted) is not with_secrets
    assert ('"arguments\\":{\\"text\\":\\"my-argument' in data) is with_secrets


async def test_login_is_recorded_without_its_content(path: Path) -> None:
    """A user can debug a login with the trace, which still has no token in it."""

    async def browse(url: str) -> str:
        query = parse_qs(urlsplit(url).query)
        return f"{query['redirect_uri'][0]}?code=code+&state={query['state'][0]}"

    login = LoginConfig(
        profile=ClientProfile(redirect_uri="http://127.0.0.1:1/callback"),
        storage=MemoryStorage(),
        browse=browse,
    )
    async with (
        oauth_world() as world,
        connect_http(world.url, auth=login, record=path, versions=["2025-11-25"]) as client,
    ):
        await client.list_tools()
    _, lines = read_file(path)
    notes = [line.text or "" for line in lines if line.kind == "note"]
    assert f"authorization: POST {world.root}/token: status 200" in notes
    assert "CANARY-token" not in content(path)
    assert any(line.http is not None and line.http.status == 401 for line in lines)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"redact": ("params",)}, "JSON pointer"),
        ({"message_limit": 0}, "message_limit has to be positive"),
        ({"file_limit": -1}, "file_limit has to be positive"),
    ],
)
def test_recording_with_an_invalid_option_is_refused(options: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Recording(path="x", **options)


@pytest.mark.process
def test_process_that_is_killed_keeps_what_was_written(path: Path) -> None:
    """A crash is when a trace is needed most, so no line may wait in a buffer."""
    code = f"""
import os, signal, time, trio
from mcp_trio.recording._open import open_recorder
async def main():
    async with open_recorder({str(path)!r}, "client", "stream") as recorder:
        record = recorder.stream()
        for number in range(100):
            record.sent(b"%d\\n" % number)
        time.sleep(1)
        os.kill(os.getpid(), signal.SIGKILL)
trio.run(main)
"""
    subprocess.run([sys.executable, "-c", code], check=False, timeout=PATIENCE)
    _, lines = read_file(path)
    assert [line.raw for line in lines] == [str(number) for number in range(100)]


async def test_recorded_stream_passes_everything_on(path: Path) -> None:
    """Recording must not change the conversation, even for a memoryview or a second close."""
    ours, theirs = mcp_trio.memory_pair()
    async with open_recorder(path, "client", "stream") as recorder:
        assert recorder is not None
        stream = RecordedStream(ours, recorder.stream())
        await stream.wait_send_all_might_not_block()
        await stream.send_all(memoryview(b"a\n"))
        await theirs.send_all(b"b\n")
        assert await theirs.receive_some() == b"a\n"
        assert await stream.receive_some() == b"b\n"
        await stream.aclose()
        await stream.aclose()
        assert await theirs.receive_some() == b""
    _, lines = read_file(path)
    assert [(line.sender, line.raw, line.end) for line in lines] == [
        ("client", "a", None),
        ("server", "b", None),
        ("client", None, "closed"),
    ]


# -- Lines as they are written ---------------------------------------------------------------------


async def test_recorder_reports_each_line_that_it_writes(path: Path) -> None:
    seen: list[TraceLine] = []
    async with open_recorder(path, "between", "stdio", ["a"], seen.append) as recorder:
        assert recorder is not None
        stream = recorder.stream()
        stream.sent(b'{"id":1}\n{"id":')
        stream.sent(b"2}\n")
        recorder.note("a note")
    assert recorder.is_closed
    header, lines = read_file(path)
    assert header == recorder.header
    assert seen == lines
    assert [line.raw for line in seen] == ['{"id":1}', '{"id":2}', None]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
async def test_recorder_reports_lines_that_a_full_disk_does_not_take(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[TraceLine] = []
    async with open_recorder("/dev/full", "between", "stdio", [], seen.append) as recorder:
        assert recorder is not None
        recorder.stream().sent(b"a\nb\n")
    assert [line.raw for line in seen] == ["a", "b"]
    assert len(caplog.messages) == 1
    assert "is not written any more" in caplog.messages[0]
