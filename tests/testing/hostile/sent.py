"""The attacks' sentences and bytes as text, which `sent.txt` keeps.

    python -m tests.testing.hostile.sent

writes the file anew. Read its difference beside each attack's sentences: these are the promise.
`(a)*5` stands for five times `a`. A text that is too long to show ends with the SHA-256 of its
bytes.
"""

from __future__ import annotations

import hashlib
import socket
import struct
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from unittest import mock
from urllib.parse import urlsplit

import trio
from trio.testing import MockClock

from mcp_trio.testing import hostile
from mcp_trio.testing.hostile import _client_attacks, _server, _server_attacks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["ENTRIES", "GOLDEN", "entry_of", "render"]

GOLDEN: Final = Path(__file__).with_name("sent.txt")
_SHOWN: Final = 500  # characters of a text
_PART: Final = 5_000  # bytes of a part of a flood
_PROBE: Final = 12  # bytes that begin a repetition
_FOREVER: Final = 1e6  # seconds of the mock clock
# The bytes of gzip differ by version of zlib. `hostile_message` is in entries of its own.
_BOMB: Final = b"<gzip bomb>"
_USUAL: Final = (
    b"Host: 127.0.0.1:8000\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\n"
)
_MESSAGE: Final = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}


class _Stream:
    """A connection that only notes what is done with it."""

    def __init__(self, name: str, done: list[tuple[str, float, bytes | str]]) -> None:
        self._name = name
        self._done = done
        self.socket = self

    def _add(self, what: bytes | str) -> None:
        self._done.append((self._name, trio.current_time(), what))

    async def send_all(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self._add(bytes(data))

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        if (level, option) == (socket.SOL_SOCKET, socket.SO_LINGER):
            assert value == struct.pack("ii", 1, 0)
            self._add("will reset")
        else:
            assert (level, option) == (socket.SOL_SOCKET, socket.SO_RCVBUF)
            self._add(f"receives {value!r} bytes at most")

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self._add("closes")


# -- Playing ---------------------------------------------------------------------------------------


async def _play_client(name: str) -> list[tuple[str, float, bytes | str]]:
    done: list[tuple[str, float, bytes | str]] = []
    count = 0

    async def connect(host: str, port: int) -> _Stream:
        nonlocal count
        assert (host, port) == ("127.0.0.1", 8000)
        await trio.lowlevel.checkpoint()
        count += 1
        return _Stream(f"connection {count}", done)

    with (
        mock.patch.object(trio, "open_tcp_stream", connect),
        mock.patch.object(trio, "aclose_forcefully", _Stream.aclose),
        mock.patch.object(_client_attacks, "gzip_bomb", return_value=_BOMB),
    ):
        url = urlsplit("http://127.0.0.1:8000/mcp")
        wire = _client_attacks._Wire(url, {}, reads=False)
        await wire.connect()
        await _client_attacks._plays[name](wire)
    streams = {stream for stream, _, what in done if what != "closes"}
    closed = {stream for stream, _, what in done if what == "closes"}
    assert len(wire.streams) == count - len(closed) >= len(streams - closed)
    assert wire.waiting == set(wire.streams)
    assert wire.sent == sum(len(what) for _, _, what in done if isinstance(what, bytes))
    return done


async def _play_server(name: str) -> list[tuple[str, float, bytes | str]]:
    done: list[tuple[str, float, bytes | str]] = []
    server = hostile.HostileServer("http://127.0.0.1:8000/mcp")
    stream: Any = _Stream("connection 1", done)
    request = _server.AttackedRequest(stream, server, b"POST /mcp HTTP/1.1", _MESSAGE)
    request.other_url = "http://127.0.0.1:9000/mcp"
    ends = "then closes"
    with (
        mock.patch.object(_server_attacks, "gzip_bomb", return_value=_BOMB),
        trio.move_on_after(_FOREVER) as silence,
    ):
        try:
            if await _server_attacks._plays[name][0](request):
                ends = "then waits for the next request"
        except _server._Exhausted:
            ends = "then closes, since it has sent 8 MiB"
    if silence.cancelled_caught:
        ends = "then is silent"
    assert server.bytes_sent == sum(len(what) for _, _, what in done if isinstance(what, bytes))
    done.append(("connection 1", trio.current_time(), ends))
    return done


# -- Text ------------------------------------------------------------------------------------------


class _Step(NamedTuple):
    """An act on a connection, once or several times: the bytes sent and their times, or a word."""

    connection: str
    times: list[float]
    sent: list[bytes]
    act: str = ""

    def takes(self, connection: str, what: bytes | str) -> bool:
        """Return True if what is sent next belongs to this step.

        Equal bytes do, single bytes, and the parts of a long list, as a flood sends them.
        """
        if connection != self.connection or self.act or isinstance(what, str):
            return False
        last = self.sent[-1]
        return what == last or len(what) == len(last) == 1 or len(what) > _PART < len(last)

    def __str__(self) -> str:
        if self.act:
            return self.act
        first, *others = self.sent
        if not others:
            return f"{len(first)} bytes: {show(first)}"
        pause = (self.times[-1] - self.times[0]) / len(others)
        apart = f", {pause:.2f} s apart" if pause else ""
        if all(each == first for each in others) and len(first) > 1:
            return f"{len(self.sent)} times {len(first)} bytes{apart}: {show(first)}"
        whole = b"".join(self.sent)
        return f"{len(whole)} bytes in {len(self.sent)} parts{apart}: {show(whole)}"


def _lines(done: Iterable[tuple[str, float, bytes | str]]) -> Iterator[str]:
    """Yield what was done, with one line for what is repeated."""
    steps: list[_Step] = []
    for connection, when, what in done:
        if steps and isinstance(what, bytes) and steps[-1].takes(connection, what):
            steps[-1].times.append(when)
            steps[-1].sent.append(what)
        elif isinstance(what, bytes):
            steps.append(_Step(connection, [when], [what]))
        else:
            steps.append(_Step(connection, [when], [], what))
    by_connection = [
        (name, [str(each) for each in group])
        for name, group in groupby(steps, lambda each: each.connection)
    ]
    for texts, group in groupby(by_connection, lambda each: each[1]):
        names = [name for name, _ in group]
        if len(names) > 1:
            yield f"{names[0]} to {names[-1].split()[1]}, each"
        elif len(by_connection) > 1:
            yield names[0]
        yield from texts


def show(data: bytes) -> str:
    """Return bytes as a text that a reader can compare with the attack's sentence."""
    for usual, name in (
        (_USUAL, b"<usual>"),
        (_client_attacks._PING, b"<ping>"),
        (_client_attacks._SMUGGLED, b"<smuggled>"),
        *((message, b"<message %b>" % each.encode()) for each, message in _long_messages().items()),
    ):
        data = data.replace(usual, name)
    return _shorten(data)


def _shorten(data: bytes) -> str:
    shown = ""
    place = 0
    while place < len(data):
        if len(shown) > _SHOWN:
            rest = len(data) - place
            return f"{shown}... {rest} bytes more, {hashlib.sha256(data).hexdigest()}"
        unit, count = _repetition(data, place)
        if count > 1:
            inner = _shorten(unit) if len(unit) > _PROBE else _escape(unit)
            shown += f"({inner})*{count}"
        else:
            shown += _escape(unit)
        place += len(unit) * count
    return shown


def _repetition(data: bytes, place: int) -> tuple[bytes, int]:
    """Return what stands at a place, and how often it is repeated there."""
    probe = data[place : place + _PROBE]
    length = data.find(probe, place + 1, place + 10_000) - place
    if length > 0:
        unit = data[place : place + length]
        count = 1
        for step in (1_000, 1):
            while data.startswith(unit * step, place + count * length):
                count += step
        if count > 2:
            return unit, count
    return data[place : place + 1], 1


def _escape(data: bytes) -> str:
    return repr(data)[2:-1]


def _long_messages() -> dict[str, bytes]:
    found = {each.name: hostile.hostile_message(each) for each in hostile.MESSAGE_ATTACKS}
    return {name: data for name, data in found.items() if len(data) > 20}


# -- Entries ---------------------------------------------------------------------------------------


def _message_entry(name: str) -> Iterator[str]:
    yield f"{len(data := hostile.hostile_message(name))} bytes: {_shorten(data)}"


def _client_entry(name: str) -> Iterator[str]:
    yield from _lines(trio.run(_play_client, name, clock=MockClock(autojump_threshold=0)))


def _server_entry(name: str) -> Iterator[str]:
    _, on, scheme = _server_attacks._plays[name]
    yield f"on {on}, {scheme}"
    yield from _lines(trio.run(_play_server, name, clock=MockClock(autojump_threshold=0)))


_TABLES: Final[dict[str, tuple[tuple[hostile.Attack, ...], Callable[[str], Iterator[str]]]]] = {
    "message": (hostile.MESSAGE_ATTACKS, _message_entry),
    "client": (hostile.CLIENT_ATTACKS, _client_entry),
    "server": (hostile.SERVER_ATTACKS, _server_entry),
}
# The entries of the file: the table and the name of an attack.
ENTRIES: Final = [f"{table} {each}" for table, (attacks, _) in _TABLES.items() for each in attacks]


def entry_of(title: str) -> str:
    """Return the entry of an attack: its sentences, and what it sends."""
    table, _, name = title.partition(" ")
    attacks, play = _TABLES[table]
    attack = next(each for each in attacks if each.name == name)
    lines = [title, attack.does, attack.expects, *(f"  {line}" for line in play(name))]
    return "\n".join(lines)


def render() -> str:
    """Return the whole file."""
    return "\n\n".join(map(entry_of, ENTRIES)) + "\n"


if __name__ == "__main__":
    GOLDEN.write_text(render(), "utf-8")
