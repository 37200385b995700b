"""WebSocket frames as bytes, valid and invalid, each with its expected outcome."""

from __future__ import annotations

import json
import struct
from typing import Any, Final

from tests.harness.jsonrpc import request

CONT, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
KEY: Final = b"dGhlIHNhbXBsZSBub25jZQ=="
UPGRADE: Final = (
    b"upgrade: websocket",
    b"connection: Upgrade",
    b"sec-websocket-key: " + KEY,
    b"sec-websocket-version: 13",
    b"sec-websocket-protocol: mcp",
)


def upgrade(
    *lines: bytes, target: bytes = b"/mcp", version: bytes = b"1.1", host: bytes = b"localhost"
) -> bytes:
    """A request for a WebSocket, with `lines` in place of the ones with the same name."""
    names = {line.partition(b":")[0].lower() for line in lines}
    kept = [line for line in UPGRADE if line.partition(b":")[0] not in names]
    given = [line for line in lines if line.partition(b":")[2]]
    first = b"GET %b HTTP/%b" % (target, version)
    return b"\r\n".join([first, b"host: " + host, *kept, *given, b"", b""])


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    fin: bool = True,
    mask: bool = True,
    rsv: int = 0,
    length: int | None = None,
    as_long_as: int = 0,
) -> bytes:
    """Build the frame of a client, or, without a `mask`, of a server.

    `length` is the length in its head; `as_long_as` encodes that in 2 or 8 bytes.
    """
    size = len(payload) if length is None else length
    head = bytes([fin << 7 | rsv << 4 | opcode])
    bit = 0x80 if mask else 0
    if as_long_as == 8 or (size > 0xFFFF and not as_long_as):
        head += bytes([bit | 127]) + struct.pack("!Q", size)
    elif as_long_as == 2 or size > 125:
        head += bytes([bit | 126]) + struct.pack("!H", size)
    else:
        head += bytes([bit | size])
    if not mask:
        return head + payload
    key = b"\x01\x80\xfe\x7f"
    return head + key + bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))


def close(code: int | None = None, reason: bytes = b"", **options: Any) -> bytes:
    return frame(CLOSE, b"" if code is None else struct.pack("!H", code) + reason, **options)


def message(value: Any, **options: Any) -> bytes:
    return frame(TEXT, json.dumps(value).encode(), **options)


def short(opcode: int, payload: bytes) -> Any:
    if opcode == TEXT:
        return json.loads(payload)
    if opcode == CLOSE:
        return int.from_bytes(payload[:2], "big") if payload else None
    return {PING: "ping", PONG: "pong"}[opcode], payload


# -- What comes of them ----------------------------------------------------------------------------

ASK = request(1, "ping")
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {}}
ASKED = json.dumps({**ASK, "params": {"_meta": {"x": "κόσμε 𝄞"}}}, ensure_ascii=False).encode()
BAD = json.dumps({**ASK, "params": {"_meta": {"x": "X"}}}).encode()


def in_pieces(data: bytes, size: int) -> bytes:
    """A message in fragments."""
    cuts = range(0, len(data), size)
    return b"".join(
        frame(CONT if start else TEXT, data[start : start + size], fin=start + size >= len(data))
        for start in cuts
    )


def between(data: bytes, *others: bytes) -> bytes:
    """A message in two fragments with other frames between them."""
    return b"".join([frame(TEXT, data[:9], fin=False), *others, frame(CONT, data[9:])])


BYE = close(1000)
# The numbers are the case numbers in WebSocket's public test suite (Autobahn).
ROWS: list[tuple[str, bytes, list[Any]]] = [
    ("1.1.1 an empty text", frame(TEXT) + BYE, [1000]),
    ("1.1.2 a text", message(ASK) + BYE, [ANSWER, 1000]),
    ("1.1.4 a length of two bytes", message({**ASK, "pad": "x" * 200}) + BYE, [ANSWER, 1000]),
    ("1.1.7 a length of eight bytes", message({**ASK, "pad": "x" * 65_536}) + BYE, [ANSWER, 1000]),
    ("1.2.1 binary", frame(BINARY, b"{}"), [1003]),
    ("1.2.1 binary, in fragments", frame(BINARY, b"{", fin=False), [1003]),
    ("2.1 a ping", frame(PING) + BYE, [("pong", b""), 1000]),
    ("2.3 a ping with a payload", frame(PING, b"\x00\xff\xfe") + BYE,
        [("pong", b"\x00\xff\xfe"), 1000]),
    ("2.4 as long as one may be", frame(PING, b"x" * 125) + BYE, [("pong", b"x" * 125), 1000]),
    ("2.5 longer", frame(PING, b"x" * 126), [1002]),
    ("2.7 a pong that nobody asked for", frame(PONG, b"x") + BYE, [1000]),
    ("2.10 ten pings", b"".join(frame(PING, b"%d" % n) for n in range(10)) + BYE,
        [*[("pong", b"%d" % n) for n in range(10)], 1000]),
    ("3.1 a reserved bit", message(ASK, rsv=1), [1002]),
    ("3.2 behind a message", message(ASK) + message(ASK, rsv=2), [ANSWER, 1002]),
    ("3.4 compressed, which nobody has agreed on", frame(TEXT, b"\xaaV*", rsv=4), [1002]),
    ("3.5 in a ping", frame(PING, rsv=6), [1002]),
    ("3.7 in a Close", close(1000, rsv=7), [1002]),
    *[(f"4.1 opcode {opcode}", frame(opcode), [1002]) for opcode in (3, 4, 5, 6, 7)],
    *[(f"4.2 opcode {opcode}", message(ASK) + frame(opcode, b"x"),
        [ANSWER, 1002]) for opcode in (11, 12, 13, 14, 15)],
    ("5.1 a ping in fragments", frame(PING, b"a", fin=False) + frame(CONT, b"b"), [1002]),
    ("5.2 a pong in fragments", frame(PONG, b"a", fin=False) + frame(CONT, b"b"), [1002]),
    ("a Close in fragments", close(1000, fin=False), [1002]),
    ("5.3 a text in two fragments", between(ASKED) + BYE, [ANSWER, 1000]),
    ("5.6 a ping between them", between(ASKED, frame(PING, b"p")) + BYE,
        [("pong", b"p"), ANSWER, 1000]),
    ("5.8 in fragments of a byte", in_pieces(ASKED, 1) + BYE, [ANSWER, 1000]),
    ("5.9 a continuation of nothing", frame(CONT, b"{}"), [1002]),
    ("5.10 unfinished", frame(CONT, b"{}", fin=False), [1002]),
    ("5.12 behind a message", message(ASK) + frame(CONT, b""), [ANSWER, 1002]),
    ("5.18 a text in a text", frame(TEXT, b"{", fin=False) + message(ASK), [1002]),
    ("6.1.3 empty fragments",
        frame(TEXT, fin=False) + frame(CONT, ASKED, fin=False) + frame(CONT) + BYE, [ANSWER, 1000]),
    ("6.2.3 characters that are split", in_pieces(ASKED, 3) + BYE, [ANSWER, 1000]),
    ("6.3.1 no UTF-8", frame(TEXT, BAD.replace(b"X", b"\xce\xba\xed\xa0\x80")), [1007]),
    ("6.3.2 split into bytes", in_pieces(BAD.replace(b"X", b"\xce\xba\xed\xa0\x80"), 1), [1007]),
    ("6.4.1 it is found before the end", frame(TEXT, b'"\xf4\x90', fin=False), [1007]),
    ("6.4.3 in the middle of a frame", frame(TEXT, b'"\xf4\x90\x80\x80', length=50), [1007]),
    ("6.12 a character that is cut off", frame(TEXT, b'"\xce'), [1007]),
    ("split over frames, and cut off", frame(TEXT, b'"\xce', fin=False) + frame(CONT), [1007]),
    ("6.14 overlong", frame(TEXT, b'"\xc0\xaf"'), [1007]),
    ("6.20 beyond Unicode", frame(TEXT, b'"\xf8\x88\x80\x80\x80"'), [1007]),
    ("6.21 a surrogate", frame(TEXT, b'"\xed\xa0\x80"'), [1007]),
    ("7.1.1 a message and a Close", message(ASK) + BYE, [ANSWER, 1000]),
    ("7.1.2 two Closes", BYE + BYE, [1000]),
    ("7.1.3 a ping behind it", BYE + frame(PING), [1000]),
    ("7.1.4 a text behind it", BYE + message(ASK), [1000]),
    ("7.3.1 an empty Close", close(), [1000]),
    ("7.3.2 of one byte", frame(CLOSE, b"a"), [1002]),
    ("7.3.5 as long as one may be", close(1000, b"x" * 123), [1000]),
    ("7.3.6 longer", close(1000, b"x" * 124), [1002]),
    ("7.5.1 a reason that is no UTF-8", close(1000, b"\xce\xba\xed\xa0\x80"), [1007]),
    *[(f"7.7 code {code}", close(code), [code]) for code in (1000, 1001, 1002, 1003, 1007, 1008,
        1009, 1010, 1011, 3000, 3999, 4000, 4999)],
    *[(f"7.9 code {code}", close(code), [1002]) for code in (0, 999, 1004, 1005, 1006, 1016, 1100,
        2000, 2999, 5000, 65535)],
    ("no mask", message(ASK, mask=False), [1002]),
    ("a length in more bytes than it takes", message(ASK, as_long_as=2), [1002]),
    ("in eight", message(ASK, as_long_as=8), [1002]),
    ("2^62 bytes are announced", frame(TEXT, length=1 << 62), [1009]),
    ("and some are there", frame(TEXT, b"x" * 9, length=1 << 62), [1009]),
    ("2^63 bytes, which is no length", frame(TEXT, length=1 << 63), [1002]),
    ("one byte too many", frame(TEXT, length=100_001), [1009]),
    ("in a continuation", frame(TEXT, b"x", fin=False) + frame(CONT, length=100_000), [1009]),
    ("2^62 bytes of binary", frame(BINARY, length=1 << 62), [1009]),
    ("a message behind what is wrong", frame(BINARY) + message(ASK), [1003]),
    ("not a frame at all", b"GET / HTTP/1.1\r\n\r\n", [1002]),
]  # fmt: skip
