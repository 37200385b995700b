# Invariant: however the bytes of a WebSocket are split, the same frames are reported, as from
# reading the whole frame by frame. The length of a data frame is reported before any of its data.
# Nothing is reported after a fault or a Close. What we write is read back unchanged.
"""WebSocket frames by `mcp_core.http.WebSocketFrames`, on the server side. Nothing may be raised.

The oracle follows RFC 6455, 5.2 in its order, on the complete input.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias, cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from wsproto import frame_protocol

from fuzz.targets import Target
from mcp_core.http import Close, Ping, Pong, Text, WebSocket, WebSocketAction, WebSocketFrames
from mcp_trio.oracle.strategies._mutations import damage, split
from mcp_trio.oracle.strategies._values import weighted

Case: TypeAlias = list[bytes]  # chunks

_DECODER: Final = getincrementaldecoder("utf-8")
_CODES: Final = {*range(1000, 1004), *range(1007, 1014), *range(3000, 5000)}


class FrameRecorder:
    """The reports on frames, as far as it does not depend on how the bytes are split."""

    def __init__(self) -> None:
        self.input_ignored = False  # the name that `WebSocketFrames` reads
        self.received: list[Any] = []
        self._text = ""
        self._announced = 0

    def receive_frame_head(self, length: int) -> None:
        self._announced = length

    def receive_text(self, text: str, now: float, *, end: bool = True) -> None:
        # A character split over frames counts for the last of them.
        assert len(text.encode()) <= self._announced + 3, "a frame has more bytes than announced"
        self._text += text
        if end:
            self._record(("text", self._text))
            self._text = ""

    def receive_binary(self) -> None:
        if "binary" not in self.received[-1:]:
            self._record("binary")

    def receive_ping(self, payload: bytes, now: float) -> None:
        self._record(("ping", bytes(payload)))

    def receive_pong(self, now: float) -> None:
        self._record("pong")

    def receive_close(self, code: int, reason: str, now: float) -> None:
        self._record(("close", int(code), reason))
        self.input_ignored = True

    def receive_invalid(self, code: int, reason: str, now: float) -> None:
        self._record(("fault", int(code)))
        self.input_ignored = True

    def data_written(self, now: float) -> None:
        """Do nothing: written bytes are not checked here."""

    def _record(self, what: Any) -> None:
        assert not self.input_ignored, "something is reported after the end"
        self.received.append(what)


def check(case: Case) -> Iterable[str]:
    data = b"".join(case)
    expected = _expected(data)
    for chunks, how in (
        ([data], "whole"),
        (case, "split"),
        ([data[i : i + 1] for i in range(len(data))], "byte by byte"),
    ):
        found = _read(chunks).received
        assert found == expected, f"{how} it is {found} and not {expected}"
    for each in expected:
        yield (
            each
            if isinstance(each, str)
            else f"{each[0]} {each[1]}"
            if each[0] == "fault"
            else each[0]
        )
    yield f"{min(len(expected), 4)} in all"
    _check_round_trip(expected)


def _read(chunks: Iterable[bytes], *, client: bool = False) -> FrameRecorder:
    recorder = FrameRecorder()
    frames = WebSocketFrames(cast("WebSocket", recorder), frame_protocol, client=client)
    for chunk in chunks:
        frames.read(chunk, 0.0)
    return recorder


def _check_round_trip(received: list[Any]) -> None:
    actions: list[WebSocketAction] = []
    expected: list[Any] = []
    for each in received:
        if each[0] == "text":
            actions.append(Text(each[1]))
            expected.append(each)
        elif each[0] == "ping":
            actions += Ping(), Pong(each[1])
            expected += ("ping", b""), "pong"
        elif each[0] == "close" and each[1] != 1005:
            actions.append(Close(each[1], each[2]))
            expected.append(each)
    written = WebSocketFrames(
        cast("WebSocket", FrameRecorder()), frame_protocol, client=False
    ).write_chunks(actions, lambda: 0.0)
    found = _read(map(bytes, written), client=True).received
    assert found == expected, f"{actions} is read as {found}"


# -- The oracle ------------------------------------------------------------------------------------


def _expected(data: bytes) -> list[Any]:
    received: list[Any] = []
    kind, message = 0, b""  # of the unfinished message
    while True:
        frame = _frame(data)
        if frame is None:
            return received
        if isinstance(frame, int):
            return [*received, ("fault", frame)]
        fin, opcode, length, payload, data = frame
        complete = len(payload) == length
        if opcode >= 8:
            if not complete:
                return received
            received.append(_control(opcode, payload))
            if received[-1][0] in ("close", "fault"):
                return received
            continue
        if length and not payload:
            return received
        if bool(opcode) is bool(kind):
            return [*received, ("fault", 1002)]
        kind = kind or opcode
        if kind == 2:
            if "binary" not in received[-1:]:
                received.append("binary")
        else:
            message += payload
            if not _is_utf8(message, whole=fin and complete):
                return [*received, ("fault", 1007)]
        if not complete:
            return received
        if fin:
            if kind == 1:
                received.append(("text", message.decode()))
            kind, message = 0, b""


def _frame(data: bytes) -> tuple[bool, int, int, bytes, bytes] | int | None:
    """Split off the first frame.

    Returns fin, opcode, payload length, as much of the payload as is there, and the rest; or the
    code of a fault; or None if the head is incomplete.
    """
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
    unmasked = bytes(byte ^ key[number % 4] for number, byte in enumerate(payload))
    return fin, opcode, length, unmasked, data[at + 4 + length :]


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
    # The incremental decoder: only it accepts a character that may still be completed.
    try:
        _DECODER().decode(data, whole)
    except UnicodeDecodeError:
        return False
    return True


# -- Cases -----------------------------------------------------------------------------------------

_OPCODES: Final = st.sampled_from((1, 1, 1, 0, 0, 2, 8, 9, 10, 3, 11))
_PAYLOADS: Final = st.one_of(
    st.sampled_from(
        (
            b"",
            b'{"jsonrpc":"2.0"}',
            b"\x03\xe8",
            b"\x03\xe9bye",
            b"\x03",
            "ä€𝄞".encode(),
            b"\xe2\x82",
            b"\xac",
            b"x" * 126,
        )
    ),
    st.binary(max_size=8),
)


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
