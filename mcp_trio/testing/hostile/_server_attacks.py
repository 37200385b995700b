"""Attacks of an HTTP server on its client."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import trio

from ._attack import Attack, find, gzip_bomb, reset_when_closed
from ._messages import MESSAGE_ATTACKS, hostile_message
from ._server import (
    EVENTS,
    AttackedRequest,
    HostileServer,
    Play,
    chunk,
    hosting,
    text_frame,
)

__all__ = ["SERVER_ATTACKS", "hostile_server"]

_FAIL: Final = "Fail the request with an error within its timeout."
_BOUND: Final = "Fail the request within its timeout, with bounded memory."
_ONE: Final = "Take the first response at most, and never send a request on this connection again."
_GO_ON: Final = "Ignore it, and take the response that follows."
_JUNK: Final = "Fail the request with an error, or ignore the event."
_OK: Final = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
_CHANGED: Final = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'

_plays: dict[str, tuple[Play, str, str]] = {}
_attacks: dict[str, Attack] = {}


def _attack(
    name: str, does: str, expects: str = _FAIL, *, on: str = "tools/call", scheme: str = "http"
) -> Callable[[Play], Play]:
    def register(play: Play) -> Play:
        _attacks[name] = Attack(name, does, expects)
        _plays[name] = play, on, scheme
        return play

    return register


def _literal(
    name: str, does: str, data: bytes, expects: str = _FAIL, *, stays_open: bool = False
) -> None:
    """Add an attack that sends the same bytes to every client."""

    async def play(request: AttackedRequest) -> None:
        await request.send(data)
        if stays_open:
            await trio.sleep_forever()

    _attack(name, does, expects)(play)


# -- Heads and lengths -----------------------------------------------------------------------------


@_attack("slow-head", "Send the head of the response one byte at a time.")
async def _slow_head(request: AttackedRequest) -> None:
    await request.send_slowly(_OK + b"X-Padding: " + b"x" * 2_000 + b"\r\n\r\n")


@_attack("slow-body", "Send the body one byte at a time.")
async def _slow_body(request: AttackedRequest) -> None:
    await request.send(_OK + b"Content-Length: 2000\r\n\r\n")
    await request.send_slowly(b" " * 2_000)


@_attack("silent", "Read the request, and send nothing.")
async def _silent(request: AttackedRequest) -> None:
    await trio.sleep_forever()


@_attack("closes", "Close the connection in place of a response.")
async def _closes(request: AttackedRequest) -> None:
    return


@_attack("resets", "Reset the connection in place of a response.")
async def _resets(request: AttackedRequest) -> None:
    reset_when_closed(request.stream)


@_attack("half-response", "Send half of a response, and close.")
async def _half_response(request: AttackedRequest) -> None:
    body = request.result()
    await request.send(_OK + b"Content-Length: %d\r\n\r\n" % len(body), body[: len(body) // 2])


@_attack("long-length", "Name a length above that of the body, and stay silent.")
async def _long_length(request: AttackedRequest) -> None:
    body = request.result()
    await request.send(_OK + b"Content-Length: %d\r\n\r\n" % (len(body) + 100), body)
    await trio.sleep_forever()


@_attack("short-length", "Name a length below that of the body.")
async def _short_length(request: AttackedRequest) -> None:
    body = request.result()
    await request.send(_OK + b"Content-Length: %d\r\n\r\n" % (len(body) - 5), body)


@_attack("two-lengths", "Name two different lengths.")
async def _two_lengths(request: AttackedRequest) -> None:
    body = request.result()
    head = b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n" % (len(body), len(body) - 5)
    await request.send(_OK + head, body)


@_attack("length-and-chunked", "Name a length, and send chunks.", "Follow RFC 9112 6.3, or fail.")
async def _length_and_chunked(request: AttackedRequest) -> None:
    head = b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    await request.send(_OK + head, chunk(request.result()), chunk(b""))


_literal("negative-length", "Name a negative length.", _OK + b"Content-Length: -1\r\n\r\n{}")
_literal(
    "huge-length",
    "Name a length of 30 digits.",
    _OK + b"Content-Length: " + b"9" * 30 + b"\r\n\r\n{",
    _BOUND,
    stays_open=True,
)
_literal(
    "bad-chunk-size",
    "Send a chunk whose size is no number.",
    _OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
)
_literal(
    "huge-chunk-size",
    "Send a chunk whose size has 30 digits.",
    _OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 30 + b"\r\n{",
    _BOUND,
    stays_open=True,
)
_literal("no-http", "Send bytes that are no HTTP.", b"\x00\xff\x16\x03SSH-2.0-hello\r\n\r\n")
_literal("http-0.9", "Send a body without a head, and close.", b'{"jsonrpc":"2.0"}\n')
_literal("bad-status", "Send a status of seven digits.", b"HTTP/1.1 2000000 OK\r\n\r\n")
_literal(
    "nul-header", "Send a NUL byte in a header.", _OK + b"X-A: a\0b\r\nContent-Length: 0\r\n\r\n"
)
_literal(
    "folded-header",
    "Send a header over two lines, as RFC 9112 5.2 forbids.",
    _OK + b"X-A: a\r\n b\r\nContent-Length: 2\r\n\r\n{}",
)
_literal(
    "header-flood",
    "Send 10,000 headers.",
    _OK + b"".join(b"X-%d: y\r\n" % number for number in range(10_000)) + b"\r\n",
    _BOUND,
    stays_open=True,
)
_literal(
    "long-header",
    "Send a header of 2 MiB.",
    _OK + b"X-A: " + b"a" * 2 * 1024 * 1024 + b"\r\n\r\n",
    _BOUND,
    stays_open=True,
)


@_attack("endless-head", "Send headers without end.", _BOUND)
async def _endless_head(request: AttackedRequest) -> None:
    await request.send(_OK)
    await request.repeat(b"X-A: a\r\n")


@_attack("endless-status-line", "Send a status line without end.", _BOUND)
async def _endless_status_line(request: AttackedRequest) -> None:
    await request.send(b"HTTP/1.1 200 ")
    await request.repeat(b"OK")


@_attack("endless-body", "Send a body of chunks without end.", _BOUND)
async def _endless_body(request: AttackedRequest) -> None:
    await request.send(_OK + b"Transfer-Encoding: chunked\r\n\r\n")
    await request.repeat(chunk(b" " * 4_096))


@_attack("endless-chunk-extension", "Send a chunk extension without end.", _BOUND)
async def _endless_chunk_extension(request: AttackedRequest) -> None:
    await request.send(_OK + b"Transfer-Encoding: chunked\r\n\r\n5;")
    await request.repeat(b"a=b;")


@_attack("endless-trailers", "Send trailers without end.", _BOUND)
async def _endless_trailers(request: AttackedRequest) -> None:
    await request.send(_OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n")
    await request.repeat(b"X-A: a\r\n")


@_attack("informational-flood", "Send responses 103 without end.", _BOUND)
async def _informational_flood(request: AttackedRequest) -> None:
    await request.repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n")


@_attack("switches-protocols", "Respond with 101, although nothing was asked to switch.")
async def _switches_protocols(request: AttackedRequest) -> None:
    await request.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\n\r\n")


@_attack("compressed-bomb", "Send a body that gzip makes 1,000 times as long.", _BOUND)
async def _compressed_bomb(request: AttackedRequest) -> None:
    await request.respond(gzip_bomb(), b"Content-Encoding: gzip")


@_attack("wrong-type", "Respond with a page of HTML.")
async def _wrong_type(request: AttackedRequest) -> None:
    body = b"<!doctype html><script>alert(1)</script>"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
    await request.send(head, body)


# -- Several responses, redirects, authorization ---------------------------------------------------


@_attack("second-response", "Send ten more responses after that to the request.", _ONE)
async def _second_response(request: AttackedRequest) -> bool:
    await request.respond(request.result())
    forged = b'{"jsonrpc":"2.0","id":%d,"result":{"forged":true}}'
    for id in range(10):
        await request.respond(forged % id)
    return True


@_attack("redirect-elsewhere", "Redirect the request to another origin.", "Do not follow it.")
async def _redirect_elsewhere(request: AttackedRequest) -> None:
    location = b"Location: " + request.other_url.encode()
    await request.respond(b"", location, status=b"307 Temporary Redirect")


@_attack("redirect-loop", "Redirect every request to itself.", "Do not follow it for ever.")
async def _redirect_loop(request: AttackedRequest) -> bool:
    location = b"Location: " + request.server.url.encode()
    await request.respond(b"", location, status=b"307 Temporary Redirect")
    return True


@_attack("redirect-to-file", "Redirect the request to a file.", "Do not follow it.")
async def _redirect_to_file(request: AttackedRequest) -> None:
    await request.respond(b"", b"Location: file:///etc/passwd", status=b"307 Temporary Redirect")


@_attack("challenge-flood", "Respond with 401 and 500 challenges.", _BOUND)
async def _challenge_flood(request: AttackedRequest) -> None:
    challenges = [b'WWW-Authenticate: Bearer realm="%d"' % number for number in range(500)]
    await request.respond(b"", *challenges, status=b"401 Unauthorized")


@_attack(
    "session-changes", "Give each response another session.", "Keep the first session.", on="*"
)
async def _session_changes(request: AttackedRequest) -> bool:
    session = b"Mcp-Session-Id: s%d" % len(request.server.requests)
    await request.respond_honestly(session)
    return True


@_attack("huge-session", "Give a session id of 8,000 characters.", "Fail, or repeat it.", on="*")
async def _huge_session(request: AttackedRequest) -> bool:
    session = b"Mcp-Session-Id: " + b"s" * 8_000
    await request.respond_honestly(session)
    return True


# -- Streams of events -----------------------------------------------------------------------------


def _event(data: bytes, fields: bytes = b"") -> bytes:
    return chunk(fields + b"data: " + data + b"\n\n")


@_attack("endless-sse", "Send events without end, and no response.", _BOUND)
async def _endless_sse(request: AttackedRequest) -> None:
    await request.send(EVENTS)
    await request.repeat(_event(_CHANGED))


@_attack("endless-comments", "Send comments without end, and no response.", _BOUND)
async def _endless_comments(request: AttackedRequest) -> None:
    await request.send(EVENTS)
    await request.repeat(chunk(b": " + b"x" * 1_000 + b"\n"))


@_attack("endless-sse-line", "Send a line of an event without end.", _BOUND)
async def _endless_sse_line(request: AttackedRequest) -> None:
    await request.send(EVENTS + chunk(b"data: "))
    await request.repeat(chunk(b"x" * 4_096))


@_attack("endless-event", "Send data lines of one event without end.", _BOUND)
async def _endless_event(request: AttackedRequest) -> None:
    await request.send(EVENTS)
    await request.repeat(chunk(b"data: x\n" * 500))


@_attack("slow-sse", "Send an event one byte at a time.")
async def _slow_sse(request: AttackedRequest) -> None:
    await request.send(EVENTS)
    for byte in b"data: " + b" " * 1_000:
        await request.send(chunk(bytes([byte])))
        await trio.sleep(0.02)


@_attack(
    "retry-zero", "End each stream at once, with an id and `retry: 0`.", "Resume slowly.", on="*"
)
async def _retry_zero(request: AttackedRequest) -> bool:
    if request.message.get("method") == "tools/call" or request.head.startswith(b"GET"):
        number = len(request.server.requests)
        await request.send(EVENTS, _event(_CHANGED, b"id: %d\nretry: 0\n" % number), chunk(b""))
    else:
        await request.respond_honestly()
    return True


@_attack("get-closes", "End each stream of a GET at once.", "Resume slowly.", on="GET")
async def _get_closes(request: AttackedRequest) -> bool:
    number = len(request.server.requests)
    await request.send(EVENTS, chunk(b"id: g%d\nretry: 0\ndata: \n\n" % number), chunk(b""))
    return True


@_attack("huge-event-id", "Send an event id of 1 MiB.", _BOUND)
async def _huge_event_id(request: AttackedRequest) -> None:
    await request.send(EVENTS, chunk(b"id: " + b"1" * 1024 * 1024 + b"\n"))
    await request.send(_event(request.result()), chunk(b""))


@_attack("unknown-events", "Send events of unknown types, and then the response.", _GO_ON)
async def _unknown_events(request: AttackedRequest) -> None:
    await request.send(EVENTS, _event(b"hello", b"event: x\n"), _event(b"", b"retry: many\n"))
    await request.send(_event(request.result()), chunk(b""))


@_attack("sse-without-response", "End the stream without a response.")
async def _sse_without_response(request: AttackedRequest) -> None:
    await request.send(EVENTS, _event(_CHANGED), chunk(b""))


@_attack("sse-cut", "Close the connection within an event.")
async def _sse_cut(request: AttackedRequest) -> None:
    await request.send(EVENTS, chunk(b"data: " + request.result()[:20]))


@_attack("crlf-sse", "Mix the three line breaks of events.", "Take the response.")
async def _crlf_sse(request: AttackedRequest) -> None:
    body = request.result()
    await request.send(EVENTS, chunk(b": x\r: y\r\n\r\ndata: " + body + b"\r\n\r"), chunk(b""))


# -- Messages --------------------------------------------------------------------------------------


@_attack("duplicate-response", "Send the response five times in one stream.", "Take the first one.")
async def _duplicate_response(request: AttackedRequest) -> None:
    await request.send(EVENTS, *[_event(request.result())] * 5, chunk(b""))


@_attack("other-id", "Respond with another id.")
async def _other_id(request: AttackedRequest) -> None:
    await request.respond(request.response_to("another"))


@_attack("null-id", "Respond with the id null.")
async def _null_id(request: AttackedRequest) -> None:
    await request.respond(request.response_to(None))


@_attack("text-id", "Respond with the id as text.")
async def _text_id(request: AttackedRequest) -> None:
    await request.respond(request.response_to(str(request.message.get("id"))))


@_attack(
    "responses-to-nothing", "Send 5,000 responses to unknown ids, and then the right one.", _GO_ON
)
async def _responses_to_nothing(request: AttackedRequest) -> None:
    await request.send(EVENTS)
    for number in range(50):
        ids = range(number * 100, number * 100 + 100)
        await request.send(b"".join(_event(request.response_to(f"x{id}")) for id in ids))
    await request.send(_event(request.result()), chunk(b""))


def _flood(name: str, does: str, message: bytes, expects: str = _GO_ON) -> None:
    """Add an attack that sends a message 5,000 times before the response."""

    async def play(request: AttackedRequest) -> None:
        await request.send(EVENTS)
        for number in range(50):
            events = [
                _event(message.replace(b"NUMBER", b"%d" % (number * 100 + each)))
                for each in range(100)
            ]
            await request.send(b"".join(events))
        await request.send(_event(request.result()), chunk(b""))

    _attack(name, does, expects)(play)


_flood(
    "log-flood",
    "Send 5,000 log messages, and then the response.",
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
)
_flood("list-change-flood", "Send 5,000 changes of the tools, and then the response.", _CHANGED)
_flood(
    "progress-flood",
    "Send 5,000 progress messages of unknown tokens, and then the response.",
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":'
    b'{"progressToken":NUMBER,"progress":NUMBER}}',
)
_flood(
    "request-flood",
    "Send 5,000 pings, and then the response.",
    b'{"jsonrpc":"2.0","id":NUMBER,"method":"ping"}',
    "Respond over few connections, or fail.",
)
_flood(
    "cancel-flood",
    "Cancel 5,000 requests that do not exist, and then respond.",
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"NUMBER"}}',
)


@_attack("endless-pages", "Give every page of tools another cursor.", _BOUND, on="tools/list")
async def _endless_pages(request: AttackedRequest) -> bool:
    cursor = len(request.server.requests)
    tools = b",".join([b'{"name":"t","description":"%b","inputSchema":{}}' % (b"x" * 1_000)] * 50)
    await request.respond(
        b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","ttlMs":0,"cacheScope":'
        b'"private","tools":[%b],"nextCursor":"%d"}}' % (request.message["id"], tools, cursor)
    )
    return True


def _as_body(name: str, does: str) -> None:
    async def play(request: AttackedRequest) -> None:
        await request.respond(hostile_message(name))

    _attack(f"body-{name}", f"Respond with this: {does}")(play)


def _as_event(name: str, does: str) -> None:
    async def play(request: AttackedRequest) -> None:
        data = hostile_message(name).replace(b"\n", b" ").replace(b"\r", b" ")
        await request.send(EVENTS, _event(data), _event(request.result()), chunk(b""))

    _attack(f"event-{name}", f"Before the response, send this as an event: {does}", _JUNK)(play)


for _each in MESSAGE_ATTACKS:
    _as_body(_each.name, _each.does)
    _as_event(_each.name, _each.does)


# -- Below HTTP, and WebSocket ---------------------------------------------------------------------


@_attack("plain-https", "Name an https URL, and speak no TLS.", on="connect", scheme="https")
async def _plain_https(request: AttackedRequest) -> None:
    await request.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


@_attack("junk-at-connect", "Send bytes before the request.", on="connect")
async def _junk_at_connect(request: AttackedRequest) -> None:
    await request.send(b"220 mail.example ESMTP\r\n")
    await trio.sleep_forever()


@_attack(
    "websocket-wrong-accept", "Accept a WebSocket with a wrong key.", on="upgrade", scheme="ws"
)
async def _websocket_wrong_accept(request: AttackedRequest) -> None:
    await trio.sleep_forever()


def _frames(name: str, does: str, data: bytes, expects: str = _FAIL) -> None:
    async def play(request: AttackedRequest) -> None:
        await request.send(data)
        await trio.sleep_forever()

    _attack(name, does, expects, scheme="ws")(play)


_frames("websocket-masked", "Send a masked frame, as only clients may.", b"\x81\x82\0\0\0\0{}")
_frames("websocket-reserved-bits", "Send a frame with reserved bits.", b"\xf1\x02{}")
_frames("websocket-unknown-opcode", "Send a frame of an unknown kind.", b"\x83\x02{}")
_frames(
    "websocket-huge-frame", "Name a frame of 2^63 - 1 bytes.", b"\x81\x7f\x7f" + b"\xff" * 7, _BOUND
)
_frames("websocket-invalid-utf8", "Send text that is not UTF-8.", b"\x81\x02\xff\xfe")
_frames("websocket-long-ping", "Send a ping of 200 bytes.", b"\x89\x7e\x00\xc8" + b"x" * 200)
_frames("websocket-stray-continuation", "Continue a message that never began.", b"\x80\x02{}")


@_attack("websocket-fragments", "Send fragments of one message without end.", _BOUND, scheme="ws")
async def _websocket_fragments(request: AttackedRequest) -> None:
    await request.send(b"\x01\x01{")
    await request.repeat(b"\x00\x7e\x10\x00" + b" " * 4_096)


@_attack("websocket-pings", "Send pings without end.", _BOUND, scheme="ws")
async def _websocket_pings(request: AttackedRequest) -> None:
    await request.repeat(b"\x89\x04ping")


@_attack("websocket-notifications", "Send messages without end.", _BOUND, scheme="ws")
async def _websocket_notifications(request: AttackedRequest) -> None:
    await request.repeat(text_frame(_CHANGED))


# Attacks of a server on its HTTP client, for `hostile_server`.
SERVER_ATTACKS: Final = tuple(_attacks.values())


def hostile_server(
    attack: Attack | str, *, on: str | None = None
) -> AbstractAsyncContextManager[HostileServer]:
    """Run an HTTP server that attacks its clients, and yield it: `async with` it.

    It serves every revision honestly, with one tool named `attack`, until the request that it
    attacks: by default a tool's call. It listens on 127.0.0.1 at a free port. An attack ends
    after 8 MiB or 30 seconds, and all of it with the `async with` block.

    Args:
        attack: one of `SERVER_ATTACKS`, or its name.
        on: the method whose requests are attacked, such as `initialize`; by default the
            attack's, which is `tools/call` unless its sentence names another one.

    Raises:
        ValueError: there is no such attack.
    """
    play, usual, scheme = _plays[find(attack, _attacks)]
    return hosting(play, usual if on is None else on, scheme)
