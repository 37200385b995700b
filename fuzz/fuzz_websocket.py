# Invariant: however the bytes of a WebSocket are split, the same is told of them, and it is what reading the whole frame by frame
# gives; of each frame of data the length is told before any of it; nothing is told behind a fault or a Close; and what we write is
# read back as it was.
"""Frames of WebSocket by `mcp_core.http.Spelling`, at a server's end. Nothing may be raised.

The second opinion is RFC 6455, 5.2 read in its order, on bytes that are all there.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias, cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from wsproto import frame_protocol

from mcp_core.http import Close, Ping, Pong, SocketAction, Spelling, Text, WebSocket

from .mutations import damage, split
from .targets import Target
from .values import weighted

Case: TypeAlias = list[bytes]  # chunks

_DECODER: Final = getincrementaldecoder("utf-8")
_CODES: Final = {*range(1000, 1004), *range(1007, 1014), *range(3000, 5000)}


class Heard:
    """What is told of frames, as far as it does not depend on how they are split."""

    def __init__(self) -> None:
        self.deaf = False
        self.told: list[Any] = []
        self._text = ""
        self._announced = 0

    def frame_begins(self, length: int) -> None:
        self._announced = length

    def receive_text(self, text: str, now: float, *, end: bool = True) -> None:
        # A character that was split over frames counts for the last of them.
        assert len(text.encode()) <= self._announced + 3, "more has come than was announced"
        self._text += text
        if end:
            self._tell(("text", self._text))
            self._text = ""

    def receive_binary(self, now: float) -> None:
        if "binary" not in self.told[-1:]:
            self._tell("binary")

    def receive_ping(self, payload: bytes, now: float) -> None:
        self._tell(("ping", bytes(payload)))

    def receive_pong(self, now: float) -> None:
        self._tell("pong")

    def receive_close(self, code: int, reason: str, now: float) -> None:
        self._tell(("close", int(code), reason))
        self.deaf = True

    def receive_fault(self, code: int, reason: str, now: float) -> None:
        self._tell(("fault", int(code)))
        self.deaf = True

    def wrote(self, now: float) -> None:
        """A part of it has left."""

    def _tell(self, what: Any) -> None:
        assert not self.deaf, "something is told behind the end"
        self.told.append(what)


def check(case: Case) -> Iterable[str]:
    data = b"".join(case)
    wanted = _expected(data)
    for chunks, how in (
        ([data], "whole"),
        (case, "split"),
        ([data[i : i + 1] for i in range(len(data))], "byte by byte"),
    ):
        found = _heard(chunks).told
        assert found == wanted, f"{how} it is {found} and not {wanted}"
    for each in wanted:
        yield each if isinstance(each, str) else f"{each[0]} {each[1]}" if each[0] == "fault" else each[0]
    yield f"{min(len(wanted), 4)} in all"
    _check_written(wanted)


def _heard(chunks: Iterable[bytes], *, client: bool = False) -> Heard:
    heard = Heard()
    spelling = Spelling(cast("WebSocket", heard), frame_protocol, client=client)
    for chunk in chunks:
        spelling.read(chunk, 0.0)
    return heard


def _check_written(told: list[Any]) -> None:
    said: list[SocketAction] = []
    wanted: list[Any] = []
    for each in told:
        if each[0] == "text":
            said.append(Text(each[1]))
            wanted.append(each)
        elif each[0] == "ping":
            said += Ping(), Pong(each[1])
            wanted += ("ping", b""), "pong"
        elif each[0] == "close" and each[1] != 1005:
            said.append(Close(each[1], each[2]))
            wanted.append(each)
    written = Spelling(cast("WebSocket", Heard()), frame_protocol, client=False).pieces(said, lambda: 0.0)
    found = _heard(map(bytes, written), client=True).told
    assert found == wanted, f"{said} is read as {found}"


# -- The second opinion ------------------------------------------------------------------------------------------------------


def _expected(data: bytes) -> list[Any]:
    told: list[Any] = []
    kind, message = 0, b""  # of the message that is not complete
    while True:
        frame = _frame(data)
        if frame is None:
            return told
        if isinstance(frame, int):
            return [*told, ("fault", frame)]
        fin, opcode, length, payload, data = frame
        complete = len(payload) == length
        if opcode >= 8:
            if not complete:
                return told
            told.append(_control(opcode, payload))
            if told[-1][0] in ("close", "fault"):
                return told
            continue
        if length and not payload:
            return told
        if bool(opcode) is bool(kind):
            return [*told, ("fault", 1002)]
        kind = kind or opcode
        if kind == 2:
            if "binary" not in told[-1:]:
                told.append("binary")
        else:
            message += payload
            if not _is_utf8(message, whole=fin and complete):
                return [*told, ("fault", 1007)]
        if not complete:
            return told
        if fin:
            if kind == 1:
                told.append(("text", message.decode()))
            kind, message = 0, b""


def _frame(data: bytes) -> tuple[bool, int, int, bytes, bytes] | int | None:
    """Whether it is the last of its message, its opcode, its length, as much of its payload as is there, and what is behind; or the code
    of a fault; or None if the head is not all there."""
    if len(data) < 2:
        return None
    fin, opcode, length, at = bool(data[0] & 0x80), data[0] & 15, data[1] & 0x7F, 2
    if opcode not in (0, 1, 2, 8, 9, 10) or (opcode >= 8 and (not fin or length > 125)):
        return 1002
    if length > 125:
        size = 2 if length == 126 else 8
        if len(data) < 2 + size:
            return None
        length, at = int.from_bytes(data[2 : 2 + size], "big"), 2 + size
        if length <= (125 if size == 2 else 0xFFFF) or length >> 63:
            return 1002
    if data[0] & 0x70 or not data[1] & 0x80:
        return 1002
    if len(data) < at + 4:
        return None
    key, payload = data[at : at + 4], data[at + 4 : at + 4 + length]
    opened = bytes(byte ^ key[number % 4] for number, byte in enumerate(payload))
    return fin, opcode, length, opened, data[at + 4 + length :]


def _control(opcode: int, payload: bytes) -> Any:
    if opcode == 9:
        return ("ping", payload)
    if opcode == 10:
        return "pong"
    if not payload:
        return ("close", 1005, "")
    code = int.from_bytes(payload[:2], "big")
    if len(payload) == 1 or code not in _CODES:
        return ("fault", 1002)
    if not _is_utf8(payload[2:], whole=True):
        return ("fault", 1007)
    return ("close", code, payload[2:].decode())


def _is_utf8(data: bytes, *, whole: bool) -> bool:
    # The decoder for pieces, for it alone tells what may still become a character; all of the message is given to it at once.
    try:
        _DECODER().decode(data, whole)
    except UnicodeDecodeError:
        return False
    return True


# -- Cases -------------------------------------------------------------------------------------------------------------------

_OPCODES: Final = st.sampled_from((1, 1, 1, 0, 0, 2, 8, 9, 10, 3, 11))
_PAYLOADS: Final = st.one_of(
    st.sampled_from((b"", b'{"jsonrpc":"2.0"}', b"\x03\xe8", b"\x03\xe9bye", b"\x03", "ä€𝄞".encode(), b"\xe2\x82", b"\xac", b"x" * 126)),
    st.binary(max_size=8),
)  # fmt: skip


@st.composite
def _frames(draw: DrawFn) -> bytes:
    data = b""
    for _ in range(draw(st.integers(0, 6))):
        payload, often = draw(_PAYLOADS), draw(st.integers(0, 31))
        first = draw(_OPCODES) | (0 if often % 4 == 0 else 0x80) | (0x10 if often == 31 else 0)
        mask = 0 if often == 30 else 0x80
        size = bytes([mask | len(payload)])
        if len(payload) > 125 or often == 29:
            size = bytes([mask | 126]) + len(payload).to_bytes(2, "big")
        key = b"\1\x80\xfe\x7f"
        masked = bytes(byte ^ key[at % 4] for at, byte in enumerate(payload))
        data += bytes([first]) + size + (key + masked if mask else payload)
    return data


_CASES: Final = split(_frames())


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    if not seeds:
        return _CASES

    @st.composite
    def recorded(draw: DrawFn) -> Any:
        return draw(split(st.just(damage(draw, b"".join(draw(st.sampled_from(seeds)))))))

    return weighted((5, _CASES), (1, recorded()))


TARGET: Final = Target("websocket", cases, check)
