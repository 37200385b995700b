"""The proxy on stdio: bytes, ends, signals and the processes of the server."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import pytest
import trio
from trio.testing import memory_stream_pair

from mcp_core import ConnectFailed
from mcp_core.trace import DamagedLine, TraceLine, read_trace
from mcp_trio.oracle.proxy import _stdio
from mcp_trio.oracle.proxy._stdio import forward_signals, run_stdio_proxy
from mcp_trio.recording._open import open_recorder
from mcp_trio.streams._child import Grace
from tests.harness.world.pipes import (
    alive,
    line,
    python,
    rest,
    until,
)
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from mcp_trio.streams._stdio import Streams

QUICK = Grace(stdin=0.15, terminate=0.3)
PATIENT = Grace(stdin=2 * PATIENCE, terminate=2 * PATIENCE)  # no working test may need it

ECHO = """
while data := os.read(0, 65_536):
    os.write(1, data)
"""


class Proxied:
    """A running proxy: the client's end of the pipes, and the result at the end."""

    def __init__(self, client: Streams) -> None:
        self.client = client
        self.status: int | None = None

    async def run(self, proxy: Any, **options: Any) -> None:
        self.status = await run_stdio_proxy(proxy, **options)
        await proxy.aclose()


def pipes() -> tuple[Streams, Streams]:
    """Return both ends of two pipes of the system."""
    ours, theirs = os.pipe(), os.pipe()
    make = trio.lowlevel.FdStream
    return (
        trio.StapledStream(make(ours[1]), make(theirs[0])),
        trio.StapledStream(make(theirs[1]), make(ours[0])),
    )


@asynccontextmanager
async def proxied(argv: list[str], **options: Any) -> AsyncIterator[Proxied]:
    client, theirs = pipes()
    options.setdefault("grace", PATIENT)
    with trio.fail_after(PATIENCE):
        async with client, theirs, trio.open_nursery() as nursery:
            run = Proxied(client)
            nursery.start_soon(partial(run.run, theirs, argv=argv, **options))
            yield run


def read_file(path: Path) -> list[TraceLine]:
    _, lines = read_trace([path.read_bytes()])
    return [line for _, line in lines if not isinstance(line, DamagedLine)]


# -- Bytes -----------------------------------------------------------------------------------------


async def test_bytes_of_a_process_pass_in_both_directions(tmp_path: Path) -> None:
    """Junk passes like JSON, and the trace has every line with its sender."""
    path = tmp_path / "a.mcp.jsonl"
    async with (
        open_recorder(path, "between", "stdio", ["echo"]) as recorder,
        proxied(python(ECHO), recorder=recorder) as proxy,
    ):
        for text in '{"id":1}', "junk", "\u00e9":
            await proxy.client.send_all(text.encode() + b"\n")
            assert await line(proxy.client) == text
        await proxy.client.send_stream.aclose()
        assert await rest(proxy.client) == b""
    assert proxy.status == 0
    lines = read_file(path)
    assert [each.kind for each in lines if each.kind] == ["spawn", "exit"]
    texts = [(each.sender, each.raw) for each in lines if each.raw]
    assert texts == [
        (side, text) for text in ('{"id":1}', "junk", "\u00e9") for side in ("client", "server")
    ]


async def test_binary_without_a_line_feed_passes_at_once(tmp_path: Path) -> None:
    """Six megabytes, of which the trace keeps the beginning: nothing waits for a line feed.

    Twice that is less than the recorder queues on a slow machine.
    """
    path = tmp_path / "a.mcp.jsonl"
    data = bytes(range(256)).replace(b"\n", b"") * 4_000

    async def send(client: Streams) -> None:
        for _ in range(6):
            await client.send_all(data)

    async with (
        open_recorder(path, "between", "stdio") as recorder,
        proxied(python(ECHO), recorder=recorder) as proxy,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(send, proxy.client)
        received = 0
        while received < 6 * len(data):
            chunk = await proxy.client.receive_some()
            assert chunk
            received += len(chunk)
        await proxy.client.send_stream.aclose()
    (message,) = [each for each in read_file(path) if each.sender == "client" and each.truncated]
    assert message.truncated is not None
    assert message.truncated.size == 6 * len(data)
    assert path.stat().st_size < 10_000


async def test_environment_and_directory_are_those_of_the_proxy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FOR_THE_SERVER", "yes")
    monkeypatch.chdir(tmp_path)
    async with proxied(python("say(os.environ['FOR_THE_SERVER'] + os.getcwd())")) as proxy:
        assert await line(proxy.client) == f"yes{tmp_path}"


# -- Ends ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("source", "status"), [("sys.exit(7)", 7), ("os.kill(0, 9)", -9)])
async def test_exit_status_of_the_server_is_returned(source: str, status: int) -> None:
    async with proxied(python(f"sys.stdin.read(); {source}")) as proxy:
        await proxy.client.send_stream.aclose()
    assert proxy.status == status


async def test_server_that_dies_in_a_message_ends_the_proxy(tmp_path: Path) -> None:
    path = tmp_path / "a.mcp.jsonl"
    source = "os.write(1, b'{\"id\"'); os.write(2, b'oh no'); os._exit(3)"
    async with (
        open_recorder(path, "between", "stdio") as recorder,
        proxied(python(source), recorder=recorder) as proxy,
    ):
        assert await rest(proxy.client) == b'{"id"'
    assert proxy.status == 3
    lines = read_file(path)
    assert [each.text for each in lines if each.kind == "stderr"] == ["oh no"]
    assert [(each.raw, each.end) for each in lines if each.sender == "server"] == [
        ('{"id"', "closed")
    ]


async def test_server_that_answers_after_the_end_of_input_is_heard() -> None:
    """A client may send all its requests, close its end, and read the responses."""
    source = "text = sys.stdin.read(); time.sleep(0.4); say(text.upper())"
    async with proxied(python(source), grace=QUICK) as proxy:
        await proxy.client.send_all(b"one")
        await proxy.client.send_stream.aclose()
        assert await rest(proxy.client) == b"ONE\n"
    assert proxy.status == 0


async def test_client_that_vanishes_ends_a_server_that_ignores_it() -> None:
    source = "signal.signal(15, signal.SIG_IGN); say(os.getpid()); time.sleep(60)"
    async with proxied(python(source), grace=QUICK) as proxy:
        pid = int(await line(proxy.client))
        await proxy.client.aclose()
    assert proxy.status == -signal.SIGKILL
    assert not alive(pid)


async def test_processes_that_the_server_started_end_with_the_client() -> None:
    child = "import subprocess; c = subprocess.Popen(['sleep', '60']); say(c.pid); c.wait()"
    async with proxied(python(child), grace=QUICK) as proxy:
        pid = int(await line(proxy.client))
        assert alive(pid)
        await proxy.client.aclose()
    assert not alive(pid)


async def test_server_that_exits_and_leaves_a_process_ends_the_proxy() -> None:
    source = "import subprocess; c = subprocess.Popen(['sleep', '60']); say(c.pid)"
    async with proxied(python(source), grace=QUICK) as proxy:
        pid = int(await line(proxy.client))
        assert await rest(proxy.client) == b""
    assert proxy.status == 0
    assert not alive(pid)


async def test_server_that_reads_no_more_does_not_block_the_client() -> None:
    source = "os.close(0); say('closed'); time.sleep(0.5); say('bye')"
    async with proxied(python(source)) as proxy:
        assert await line(proxy.client) == "closed"
        for _ in range(40):
            await proxy.client.send_all(b"x" * 65_536)
        assert await line(proxy.client) == "bye"
        assert await rest(proxy.client) == b""
    assert proxy.status == 0


async def test_server_that_closes_stdout_is_ended() -> None:
    source = "say('last'); os.close(1); sys.stdin.read()"
    async with proxied(python(source)) as proxy:
        assert await rest(proxy.client) == b"last\n"
    assert proxy.status == 0


async def test_server_that_does_not_start_is_an_error() -> None:
    client, theirs = memory_stream_pair()
    with pytest.raises(ConnectFailed, match="no program of that name"):
        await run_stdio_proxy(cast("Streams", theirs), ["no-such-program"])
    await client.aclose()


# -- Signals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_signal_reaches_the_server_and_its_status_comes_back(number: signal.Signals) -> None:
    source = f"""
    signal.signal({int(number)}, lambda *_: os._exit(40))
    say("ready")
    time.sleep(60)
    """
    async with proxied(python(source)) as proxy:
        assert await line(proxy.client) == "ready"
        os.kill(os.getpid(), number)
    assert proxy.status == 40


async def test_second_signal_ends_a_server_that_ignores_them() -> None:
    source = """
    signal.signal(2, lambda *_: os.write(1, b"no\\n"))
    say(os.getpid())
    while True: time.sleep(60)
    """
    async with proxied(python(source), grace=QUICK) as proxy:
        pid = int(await line(proxy.client))
        os.kill(os.getpid(), signal.SIGINT)
        assert await line(proxy.client) == "no"
        os.kill(os.getpid(), signal.SIGINT)
    assert proxy.status == -signal.SIGTERM
    assert not alive(pid)


async def test_signal_that_the_server_ignores_ends_it_after_a_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_stdio, "_SIGNAL_TIMEOUT", 0.1)
    source = "signal.signal(15, signal.SIG_IGN); say('ready'); time.sleep(60)"
    async with proxied(python(source), grace=QUICK) as proxy:
        assert await line(proxy.client) == "ready"
        os.kill(os.getpid(), signal.SIGTERM)
    assert proxy.status == -signal.SIGKILL


async def test_forwarded_signals_have_their_dispositions_back_afterwards() -> None:
    seen: list[int] = []
    former = signal.getsignal(signal.SIGHUP)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        before = signal.getsignal(signal.SIGTERM)
        with forward_signals(seen.append):
            os.kill(os.getpid(), signal.SIGHUP)  # stays ignored
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: bool(seen))
        assert seen == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) == before
    finally:
        signal.signal(signal.SIGHUP, former)
