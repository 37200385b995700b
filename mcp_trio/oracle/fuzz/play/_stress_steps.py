"""Steps of `--stress`: they cost a server much time or memory.

    large what size         send a message of `size` bytes (message). Over HTTP also a request with
                            one header of that size (header), `size` headers (headers), or a target
                            of that size (target); or announce such a body and send none (announced)
    deep how depth          send a message with `depth` levels. How: array, object
    slow                    send a request byte by byte, over HTTP with its head
    heads count             over HTTP, send half a head and no more on `count` connections
    unread count            send `count` requests, and read no response for a while
    streams what count      open `count` at once: subscriptions (listen), and over HTTP standalone
                            streams (get) or sessions (session)

A server may refuse all of it: with an error, with a status such as 408, 413, 429 or 431, or by
closing the connection. It is a fault if its process ends, or if it doesn't answer the next request.

What one case may use has limits: see `StressBudget`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import Role
from mcp_core.trace import TraceLine
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._stress_budget import MAX_CONNECTIONS, MAX_DEPTH, MAX_HEADERS, MAX_REQUESTS
from ._waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ._play import Play

__all__ = ["STRESS_STEPS"]

SLOW_INTERVAL: Final = 0.0005  # seconds between two bytes of a request of about 600
UNREAD_TIMEOUT: Final = 0.5  # seconds for which nothing is read
UNREAD_CONNECTIONS: Final = 8
UNREAD_BUFFER: Final = 4_096  # bytes that the kernel takes for a client that doesn't read
HOLD_TIMEOUT: Final = 5.0  # seconds for a step that opens connections

_FILLER: Final = "mcp-trio-fuzz/filler"


async def _large(play: Play, what: str, size: int) -> None:
    session = play.session
    if not _note_step(play, "large", f"{what} {size}"):
        return
    if what == "message":
        if play.stress.take_bytes(size):
            message = _plain_message(play)
            message["params"].setdefault("_meta", {})[_FILLER] = ""
            missing = max(0, size - len(_encoded(message)))
            message["params"]["_meta"][_FILLER] = "a" * missing
            await session.send_data(_encoded(message))
        return
    if session.transport != "http" or not play.stress.take_connections(1):
        return
    message = _plain_message(play)
    if what == "announced":
        data = session.encode_post(message, (b"content-length", b"%d" % max(0, size)))
        await session.hold(data[: data.index(b"\r\n\r\n") + 4])
    elif what == "headers":
        headers = [(b"x-mcp-trio-fuzz-%d" % each, b"a") for each in range(min(size, MAX_HEADERS))]
        await session.hold(session.encode_post(message, *headers))
    elif play.stress.take_bytes(size):
        data = session.encode_post(message, (b"x-mcp-trio-fuzz", b"a" * size))
        if what == "target":
            data = session.encode_post(message)
            first, rest = data.split(b" HTTP/1.1", 1)
            data = first + b"?a=" + b"a" * size + b" HTTP/1.1" + rest
        await session.hold(data)


async def _deep(play: Play, how: str, depth: int) -> None:
    if not 0 < depth <= MAX_DEPTH or not _note_step(play, "deep", f"{how} {depth}"):
        return
    message = _plain_message(play)
    message["params"]["a"] = ""
    before, after = _encoded(message).rsplit(b'""', 1)
    first, last = (b"[", b"]") if how == "array" else (b'{"a":', b"}")
    data = before + first * depth + b"1" + last * depth + after
    if play.stress.take_bytes(len(data)):
        await play.session.send_data(data)


async def _slow(play: Play) -> None:
    session = play.session
    if not session.is_open or not _note_step(play, "slow"):
        return
    message = _plain_message(play)
    data = _encoded(message)
    request = session.add_request(message, is_plain=True)
    if session.transport == "stdio":
        await session.send_slowly(data, SLOW_INTERVAL)
    else:
        await session.post(data, message, session.headers_for(message), SLOW_INTERVAL)
    await wait_until(play, lambda: request.answer is not None)


async def _heads(play: Play, count: int) -> None:
    session = play.session
    if session.transport == "http" and _note_step(play, "heads", str(count)):
        data = session.encode_post(_plain_message(play))
        await _hold(play, count, lambda: data[: data.index(b"\r\n\r\n") // 2])


async def _unread(play: Play, count: int) -> None:
    session = play.session
    count = min(count, MAX_REQUESTS)
    if not _note_step(play, "unread", str(count)):
        return
    if session.transport == "http":
        lines = play.stress.take_connections(UNREAD_CONNECTIONS)
        with trio.move_on_after(HOLD_TIMEOUT):
            for _ in range(lines):
                each = max(1, count // UNREAD_CONNECTIONS)
                requests = [session.encode_post(_list_message(play)) for _ in range(each)]
                if not await session.hold(*requests, max_read=UNREAD_BUFFER):
                    return
        return
    session.pause_reading()
    try:
        async with trio.open_nursery() as nursery:

            async def read_later() -> None:
                await trio.sleep(UNREAD_TIMEOUT)
                session.resume_reading()

            nursery.start_soon(read_later)
            for _ in range(count):
                if session.ended:
                    break
                await session.send(_list_message(play))
    finally:
        session.resume_reading()


async def _streams(play: Play, what: str, count: int) -> None:
    session = play.session
    dialect = dialect_of(session.revision)
    listens = "subscriptions/listen" in dialect.receives[Role.SERVER]
    if not session.is_open or not _note_step(play, "streams", f"{what} {count}"):
        return
    if what == "listen" and listens and session.transport == "http":
        await _hold(play, count, lambda: session.encode_post(_listen_message(play)))
    elif what == "listen" and listens:
        await _listen_at_once(play, min(count, MAX_CONNECTIONS))
    elif what == "get" and dialect.http.sessions and session.transport == "http":
        await _hold(play, count, session.encode_get)
    elif what == "session" and dialect.http.sessions and session.transport == "http":
        with trio.move_on_after(HOLD_TIMEOUT):
            async with trio.open_nursery() as nursery:
                for _ in range(play.stress.take_connections(count)):
                    nursery.start_soon(session.begin_beside)


async def _listen_at_once(play: Play, count: int) -> None:
    session = play.session
    requests = []
    for _ in range(count):
        message = _listen_message(play)
        await session.send(message)
        requests.append(message["id"])
    for id in requests:
        if id in session.open:
            await session.send(
                {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
            )


STRESS_STEPS: Final[Mapping[str, Any]] = {
    "large": _large,
    "deep": _deep,
    "slow": _slow,
    "heads": _heads,
    "unread": _unread,
    "streams": _streams,
}


def _note_step(play: Play, name: str, words: str = "") -> bool:
    """Note a step in the trace. Return False if the conversation hasn't begun."""
    session = play.session
    if not session.revision:
        return False
    play.stress.is_used = True
    session.last_sent = name
    session.record(
        TraceLine(
            t=session.time(),
            conversation=session.number,
            kind="note",
            text=f"stress: {name} {words}".rstrip(),
        )
    )
    return True


async def _hold(play: Play, count: int, new_data: Callable[[], bytes]) -> None:
    """Send bytes on connections that stay open."""
    session = play.session
    with trio.move_on_after(HOLD_TIMEOUT):
        async with trio.open_nursery() as nursery:
            for _ in range(play.stress.take_connections(count)):
                nursery.start_soon(session.hold, new_data())


def _plain_message(play: Play) -> dict[str, Any]:
    """Return a request that every server answers at once."""
    ping = dialect_of(play.session.revision).ping
    message: dict[str, Any] = play.make_request(ping, {})
    message.setdefault("params", {})
    return message


def _list_message(play: Play) -> dict[str, Any]:
    """Return a request whose response can be long."""
    message: dict[str, Any] = play.make_request("tools/list", {})
    return message


def _listen_message(play: Play) -> dict[str, Any]:
    wanted = {"notifications": {"toolsListChanged": True}}
    message: dict[str, Any] = play.make_request("subscriptions/listen", wanted)
    return message


def _encoded(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
