"""The command of a client as a target of the fuzzer."""

from __future__ import annotations

import re
import shlex
import sys
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import pytest
import trio
import trio.testing
from trio.testing import wait_all_tasks_blocked

from mcp_core import ConnectFailed
from mcp_core.trace import TraceLine, read_trace
from mcp_trio import memory_pair
from mcp_trio.oracle.fuzz.client import _client_target
from mcp_trio.oracle.fuzz.client._client_target import ClientTarget
from mcp_trio.recording._open import open_recorder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from trio.testing import MockClock

    from mcp_trio.oracle.fuzz.client._client_session import ClientSession


def test_header_has_pseudonyms_of_this_run() -> None:
    """With a key that is known, a pseudonym could be guessed."""
    command = ("client", "{server}", "http://127.0.0.1/?code=12345678")
    shown = {ClientTarget(command).header().target for _ in range(3)}
    assert len(shown) == 3
    assert not any("12345678" in each for each in shown)


async def test_sessions_are_recorded_as_conversations(tmp_path: Path) -> None:
    path = tmp_path / "x.mcp.jsonl"
    async with open_recorder(path, "server", "stdio", ["client"]) as recorder:
        target = ClientTarget(["client"])
        target.recorder = recorder
        for _ in range(2):
            session = await target.open()
            session.record(TraceLine(t=0, sender="client", raw="junk"))
    _, lines = read_trace([path.read_bytes()])
    found = [line for _, line in lines if isinstance(line, TraceLine)]
    assert [(line.conversation, line.raw) for line in found] == [(1, "junk"), (2, "junk")]


# -- Starting a client -----------------------------------------------------------------------------

OLD = "2025-11-25"
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


class SpawnedClient:
    """A process of a client: the test is at the other end of its pipes."""

    stderr_tail = b"its last words"

    def __init__(self, command: Any, options: dict[str, Any]) -> None:
        self.command, self.options = command, options
        ours, theirs = trio.testing.memory_stream_pair()
        self.stream, self.client = ours, theirs


@pytest.fixture
def spawned(monkeypatch: pytest.MonkeyPatch) -> list[SpawnedClient]:
    """Start no program, and return what would have been started."""
    found: list[SpawnedClient] = []

    @asynccontextmanager
    async def spawn(command: Any, **options: Any) -> AsyncIterator[SpawnedClient]:
        found.append(SpawnedClient(command, options))
        yield found[-1]

    monkeypatch.setattr(_client_target, "spawn", spawn)
    return found


def session_with_case(session: ClientSession) -> ClientSession:
    session.begin_case([("serve", [OLD], [])])
    return session


async def test_client_with_pipes_speaks_on_them(
    spawned: list[SpawnedClient], autojump_clock: MockClock
) -> None:
    """Its command is as given. No other process may write to our stderr, and none has time."""
    target = ClientTarget(["client", "--a"], env={"A": "1"}, inherit_env=True, cwd="/b")
    session = session_with_case(await target.open(keep=True))
    assert session.lines == []
    async with session.start(2.0) as child:
        stub: Any = child
        assert stub is spawned[0]
        await stub.client.send_all(PING)
        assert b'"result":{}' in await stub.client.receive_some()
        assert session.stderr == b""
        await stub.client.aclose()
    assert session.stderr == b"its last words"
    assert stub.command == ["client", "--a"]
    assert stub.options == {
        "env": {"A": "1"},
        "inherit_env": True,
        "cwd": "/b",
        "stderr": "discard",
        "grace": (0.0, 0.0),
    }


async def test_client_inherits_and_keeps_nothing_by_default(
    spawned: list[SpawnedClient], autojump_clock: MockClock
) -> None:
    target = ClientTarget(["client"])
    assert target.recorder is None
    session = session_with_case(await target.open())
    assert (session.lines, session.recording) == (None, None)
    async with session.start(2.0):
        options = spawned[0].options
    assert (options["env"], options["inherit_env"], options["cwd"]) == (None, False, None)


async def test_client_of_a_url_gets_that_of_the_server(spawned: list[SpawnedClient]) -> None:
    """Its pipes say nothing: stdin is closed, and stdout is dropped."""
    session = session_with_case(await ClientTarget(["client", "-u={url}", "{url}"]).open())
    assert session.transport == "http"
    async with session.start(2.0):
        [child] = spawned
        name, first, second = child.command
        assert (name, first) == ("client", f"-u={second}")
        matched = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/mcp", second)
        assert matched is not None
        assert await child.client.receive_some() == b""
        await child.client.send_all(b"what it prints\n")
        stream = await trio.open_tcp_stream("127.0.0.1", int(matched[1]))
        body = PING.strip()
        head = b"POST /mcp HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(body)
        await stream.send_all(head + body)
        assert bytes(await stream.receive_some()).startswith(b"HTTP/1.1 200 ")
        [link] = session.links
        await link.close()
        await stream.aclose()
    assert session.messages == 1


async def test_client_of_a_server_gets_the_command_of_a_relay(
    spawned: list[SpawnedClient],
) -> None:
    """Each start has a port and a token of its own."""
    session = session_with_case(await ClientTarget(["client", "{server}"]).open())
    tokens = set()
    for _ in range(2):
        async with session.start(2.0):
            *words, port, token = spawned[-1].command
            assert words == ["client", sys.executable, "-I", "-S", str(_client_target.RELAY)]
            stream = await trio.open_tcp_stream("127.0.0.1", int(port))
            await stream.send_all(token.encode() + b"\n" + PING)
            assert b'"result":{}' in await stream.receive_some()
            await stream.aclose()
        tokens.add(token)
    assert len(tokens) == 2
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in tokens)
    assert _client_target.RELAY.is_file()


async def test_program_that_cannot_be_started_is_an_error_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It isn't in a group, and the server's port is closed."""
    error = ConnectFailed("there is no such program")

    @asynccontextmanager
    async def spawn(command: Any, **options: Any) -> AsyncIterator[None]:
        if command:
            raise error
        yield

    monkeypatch.setattr(_client_target, "spawn", spawn)
    for word in ("{url}", "{server}", "x"):
        session = session_with_case(await ClientTarget(["client", word]).open())
        with pytest.raises(ConnectFailed) as failed:
            async with session.start(2.0):
                pass
        assert failed.value is error


# -- The connection of a relay ---------------------------------------------------------------------


async def connected_relay(session: ClientSession, *data: bytes, token: str = "abc") -> bytes:
    """Connect as a relay that sends data and ends. Return what it gets."""
    ours, theirs = memory_pair()
    stream: Any = theirs
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_client_target._accept, session, token, 2.0, stream)
        for each in data:
            await ours.send_all(each)
            await wait_all_tasks_blocked()
        await ours.send_eof()
        found = b""
        with suppress(trio.BrokenResourceError):
            while more := await ours.receive_some():
                found += bytes(more)
    return found


@pytest.mark.parametrize(
    ("data", "count"),
    [
        ((b"abc\n" + PING,), 1),
        ((b"a", b"bc", b"\n", PING), 1),
        ((b"abc",), 1),  # it has ended
        ((b"abd\n" + PING,), 0),
        ((b"\n" + PING,), 0),
        ((), 0),
        ((b"abc" + b"c" * 97 + b"\n" + PING,), 0),
    ],
)
async def test_relay_is_accepted_with_its_token_only(
    data: tuple[bytes, ...], count: int, autojump_clock: MockClock
) -> None:
    """A program that doesn't know it can't take part in the conversation."""
    session = session_with_case(await ClientTarget(["client", "{server}"]).open(keep=True))
    answered = PING in b"".join(data) and count == 1
    await trio.sleep(5.0)
    found = await connected_relay(session, *data)
    assert (session.connections, len(session.links)) == (count, count)
    assert session.last_activity == session.began_at + 5.0 * count
    assert (b'"result":{}' in found) is answered
    assert session.messages == answered


@pytest.mark.parametrize("size", [99, 100, 101])
async def test_first_line_of_a_relay_has_up_to_100_bytes(
    size: int, autojump_clock: MockClock
) -> None:
    session = session_with_case(await ClientTarget(["client", "{server}"]).open())
    await connected_relay(session, b"t" * size + b"\n", token="t" * size)
    assert session.connections == (size <= 100)


@pytest.mark.parametrize(("before", "is_closed"), [(0, False), (19, False), (20, False), (0, True)])
async def test_relay_of_a_closed_session_or_beyond_its_limit_is_refused(
    before: int, is_closed: bool, autojump_clock: MockClock
) -> None:
    session = session_with_case(await ClientTarget(["client", "{server}"]).open())
    session.connections, session.is_closed = before, is_closed
    await connected_relay(session, b"abc\n" + PING)
    assert session.connections == before + 1
    assert session.messages == (before < 20 and not is_closed)


@pytest.mark.parametrize(("seconds", "count"), [(9.0, 1), (11.0, 0)])
async def test_relay_says_its_token_within_ten_seconds(
    seconds: float, count: int, autojump_clock: MockClock
) -> None:
    session = session_with_case(await ClientTarget(["client", "{server}"]).open())
    ours, theirs = memory_pair()
    stream: Any = theirs
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_client_target._accept, session, "abc", 2.0, stream)
        await ours.send_all(b"a")
        await trio.sleep(seconds)
        with suppress(trio.BrokenResourceError):
            await ours.send_all(b"bc\n")
        await ours.aclose()
    assert session.connections == count


async def test_relay_that_breaks_before_its_token_is_refused(autojump_clock: MockClock) -> None:
    session = session_with_case(await ClientTarget(["client", "{server}"]).open())
    stream: Any = BreakingRelayStream(b"a", b"b")
    await _client_target._accept(session, "ab", 2.0, stream)
    assert session.connections == 1  # it has said it before
    stream = BreakingRelayStream(b"a")
    await _client_target._accept(session, "ab", 2.0, stream)
    assert session.connections == 1


class BreakingRelayStream:
    """A stream that breaks after what it has."""

    def __init__(self, *data: bytes) -> None:
        self._data = list(data)

    async def receive_some(self, size: int = 0) -> bytes:
        await trio.lowlevel.checkpoint()
        if not self._data:
            raise trio.BrokenResourceError
        return self._data.pop(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Do nothing."""


@pytest.mark.parametrize("data", [(b"a", b"b", b""), (b"a", b"b")])
async def test_output_of_a_client_is_read_up_to_its_end(data: tuple[bytes, ...]) -> None:
    child: Any = SimpleNamespace(stream=BreakingRelayStream(*data))
    await _client_target._discard(child)
    assert child.stream._data == []


@pytest.mark.parametrize(
    ("word", "way"), [("-u={url}", "http"), ("-s={server}", "relay"), ("{url}{server}", "relay")]
)
def test_mark_inside_a_word_says_how_the_client_is_reached(word: str, way: str) -> None:
    target = ClientTarget(("a b", word))
    assert (target.way, target.name) == (way, f"'a b' {shlex.quote(word)}")
    assert target.command == ("a b", word)
