r"""HTTP/2 by the first nine bytes of each frame, before a parser acts on it: what a peer may send, and how much of it.

h2, which is behind this in our drivers, reads what is right, and refuses what is wrong in itself. It does not ask whether somebody who
says right things, but too many of them, means harm. Rules of this file:

1. **What costs us must cost the peer.** Frames that bring nothing are weighed, over ten seconds, against requests that were answered
   and data that went either way: who works may also ask for signs of life, move windows and give up calls (RFC 9113 10.5).
2. **A frame is judged by its header**, before anything of it is kept. The verdict does not depend on how the bytes were split.

GOAWAY does not reach h2, which takes it for the end of everything, while it only says that nothing new is begun (6.8).

It reads no payload but that of GOAWAY. What a head says is `_http2_heads.py`.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from ._head_faults import MAX_HEAD

__all__ = [
    "HTTP2_STREAMS",
    "PREFACE",
    "FrameWatch",
    "GoAway",
    "Http2Fault",
    "begins_http2",
    "goaway",
    "rst_stream",
]

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

# Error codes, RFC 9113 7.
PROTOCOL_ERROR: Final = 1
FRAME_SIZE_ERROR: Final = 6
ENHANCE_YOUR_CALM: Final = 11

# Streams that a client may have open at once: as many as RFC 9113 (6.5.2) recommends at least.
HTTP2_STREAMS: Final = 100

# Frame types and flags, RFC 9113 6.
_DATA: Final = 0
_HEADERS: Final = 1
_PRIORITY: Final = 2
_RST_STREAM: Final = 3
_SETTINGS: Final = 4
_PUSH_PROMISE: Final = 5
_PING: Final = 6
_GOAWAY: Final = 7
_WINDOW_UPDATE: Final = 8
_CONTINUATION: Final = 9
_END_STREAM: Final = 1
_PADDED: Final = 8
_ACK: Final = 1
_END_HEADERS: Final = 4

_FRAME: Final = 9  # bytes of a frame's header
_MAX_FRAME: Final = 16_384  # the size that everybody has to take; nobody was told that more would be
_MAX_BLOCK: Final = 2 * MAX_HEAD  # bytes of a head as it is sent; what is longer is too long in any coding
_MAX_CONTINUATIONS: Final = 16
_MAX_SETTINGS: Final = 32 * 6  # bytes of one SETTINGS frame: the RFCs know a dozen settings, of 6 bytes each

# What a peer may do within `_PERIOD` seconds beyond what it is entitled to.
_PERIOD: Final = 10.0
_RESETS: Final = 100  # each answered stream allows for one more
# PING, SETTINGS, PRIORITY, empty DATA, what nobody knows; each answered stream allows for one more.
_IDLE_FRAMES: Final = 200
_UPDATES: Final = 1_000  # WINDOW_UPDATE
# Each frame of data that was sent allows for so many more: there are clients who read it 4 KiB at a time, and say so for its stream and
# for the connection (Go's).
_UPDATES_EACH: Final = 8
_CRUMBS: Final = 1_000  # DATA of less than `_CRUMB` bytes behind which more is to come; each answered stream allows for one more
_CRUMB: Final = 64
# Each larger piece allows for so many more: there are servers who send each line of an event by itself (Node.js).
_CRUMBS_EACH: Final = 4
_PADDING: Final = 256  # and its length: how much of a padded frame may be nothing at all
_LAST_ID: Final = 2**31 - 1
_NONE: Final = -1  # no stream: zero is one, which has no head and may be named all the same


_NO_HTTP: Final = re.compile(rb"[^ \r\n]++ [^ \r\n]++ (?!HTTP/)[^ \r\n]++\r?\n", re.IGNORECASE)


class Http2Fault(Struct, frozen=True):
    """Why a connection has to end: the error code for GOAWAY, and a sentence."""

    code: int
    reason: str


class GoAway(Struct, frozen=True):
    """The peer begins nothing new, and takes nothing new. Streams above `last_id` were not acted on."""

    last_id: int
    code: int


_WRONG_PREFACE = Http2Fault(PROTOCOL_ERROR, "The connection does not begin with the preface of HTTP/2.")
_NO_SETTINGS = Http2Fault(PROTOCOL_ERROR, "The first frame is not SETTINGS.")
_LONG_FRAME = Http2Fault(FRAME_SIZE_ERROR, f"A frame has more than {_MAX_FRAME} bytes.")
_SHORT_GOAWAY = Http2Fault(FRAME_SIZE_ERROR, "GOAWAY is too short.")
_STRAY_GOAWAY = Http2Fault(PROTOCOL_ERROR, "GOAWAY is about the connection, and names a stream.")
_BROKEN_BLOCK = Http2Fault(PROTOCOL_ERROR, "A frame stands within the head of a request.")
_LONG_BLOCK = Http2Fault(ENHANCE_YOUR_CALM, f"A head has more than {_MAX_BLOCK} bytes.")
_MANY_CONTINUATIONS = Http2Fault(
    ENHANCE_YOUR_CALM, f"A head comes in more than {_MAX_CONTINUATIONS + 1} frames."
)
_LONG_SETTINGS = Http2Fault(ENHANCE_YOUR_CALM, "There are too many settings in one frame.")
_MANY_RESETS = Http2Fault(ENHANCE_YOUR_CALM, "Too many streams are reset.")
_MANY_IDLE = Http2Fault(ENHANCE_YOUR_CALM, "Too many frames bring nothing.")
_MANY_UPDATES = Http2Fault(ENHANCE_YOUR_CALM, "Too many frames move windows.")
_MANY_CRUMBS = Http2Fault(ENHANCE_YOUR_CALM, "Too many frames bring next to nothing.")


class FrameWatch:
    """Watches the bytes that arrive on one connection. `is_server`: they are a client's, and begin with the preface.

    Give what arrives to `receive`, and what comes of it to the parser; if there is a `fault` then, say it in a GOAWAY and hang up.
    `goaway` is the peer's last one. `midway`: what arrived ends within a frame or a head. Tell of every stream that was `answered`
    to its end, of DATA frames that were `sent`, and of what was `reset` since the peer was at fault.
    """

    __slots__ = (
        "_allowed",
        "_allowed_crumbs",
        "_allowed_updates",
        "_answered",
        "_block",
        "_block_id",
        "_continuations",
        "_crumbs",
        "_cut",
        "_header",
        "_idle_frames",
        "_left",
        "_pieces",
        "_preface",
        "_resets",
        "_sent",
        "_settled",
        "_since",
        "_updates",
        "fault",
        "goaway",
    )

    def __init__(self, *, is_server: bool) -> None:
        self.fault: Http2Fault | None = None
        self.goaway: GoAway | None = None
        self._preface = PREFACE if is_server else b""  # what of it is still to come
        self._settled = False  # the first frame was seen
        self._header = b""  # the beginning of a frame's header
        self._left = 0  # of a frame's payload
        self._cut: bytearray | None = None  # the payload of a GOAWAY
        self._block_id = _NONE  # the stream whose head is incomplete
        self._block = self._continuations = 0  # its bytes and frames so far
        self._since = 0.0
        self._resets = self._idle_frames = self._updates = self._crumbs = 0
        self._answered = self._sent = self._pieces = 0
        self._allowed = self._allowed_updates = self._allowed_crumbs = 0  # by what was before

    def __repr__(self) -> str:
        if self.fault is not None:
            return f"<FrameWatch: {self.fault.reason}>"
        counts = f"{self._resets} resets, {self._idle_frames} idle frames, {self._updates} updates, {self._crumbs} crumbs"
        return f"<FrameWatch: {counts}>"

    @property
    def midway(self) -> bool:
        return bool(self._left or self._header or self._block_id != _NONE)

    @property
    def settled(self) -> bool:
        """Whether the peer has said its preface."""
        return self._settled and not self._left

    # -- What is told to it ------------------------------------------------------------------------------------------------

    def answered(self) -> None:
        """A stream came to its end in good order."""
        self._answered += 1

    def sent(self, frames: int) -> None:
        """So many frames of data were sent."""
        self._sent += frames

    def reset(self, now: float) -> None:
        """We had to reset a stream, and it was the peer's doing: that costs as much as if it had done so itself."""
        self._look_at_the_clock(now)
        self._resets += 1
        self._weigh()

    # -- What arrives ------------------------------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> bytes:
        """Judge what arrives. Gives what the parser may have of it; nothing any more once there is a `fault`."""
        if self.fault is not None:
            return b""
        self._look_at_the_clock(now)
        place, size = 0, len(data)
        passed: list[bytes] = []
        if self._preface:
            place = min(size, len(self._preface))
            if data[:place] != self._preface[:place]:
                self.fault = _WRONG_PREFACE
                return b""
            self._preface = self._preface[place:]
        start = 0  # of what was not passed yet
        while place < size:
            if self._left:
                taken = min(self._left, size - place)
                if self._cut is not None:
                    self._cut += data[place : place + taken]
                    start = place + taken
                self._left -= taken
                place += taken
                if self._cut is not None and not self._left:
                    self._went_away(bytes(self._cut))
                    self._cut = None
                continue
            # A header is passed when it is whole, for it may be one that is not.
            missing = _FRAME - len(self._header)
            held = self._header
            header = held + data[place : place + missing]
            if len(header) < _FRAME:
                passed.append(data[start:place])
                self._header = header
                return b"".join(passed)
            self._header = b""
            if not self._judge(header):
                return b""
            if self._cut is not None:
                passed.append(data[start:place])
                start = place + missing
            elif held:
                passed.append(held)
            place += missing
        if not passed and not start:
            return data
        passed.append(data[start:])
        return b"".join(passed)

    def _judge(self, header: bytes) -> bool:
        """A frame begins. Whether that is all right."""
        length = (header[0] << 16) | (header[1] << 8) | header[2]
        kind, flags = header[3], header[4]
        self._left = length
        if length > _MAX_FRAME:
            self.fault = _LONG_FRAME
        elif self._block_id != _NONE:
            self._continue_block(kind, flags, header)
        elif not self._settled:
            self._settled = True
            if kind != _SETTINGS or flags & _ACK:
                self.fault = _NO_SETTINGS
            elif length > _MAX_SETTINGS:
                self.fault = _LONG_SETTINGS
        elif kind == _DATA:
            if length >= _CRUMB and (length >= _CRUMB + _PADDING or not flags & _PADDED):
                self._pieces += 1
            elif not flags & _END_STREAM:
                if length:
                    self._crumbs += 1
                else:
                    self._idle_frames += 1
                self._weigh()
        elif kind in (_HEADERS, _PUSH_PROMISE):
            if not flags & _END_HEADERS:
                self._block_id = int.from_bytes(header[5:], "big") & _LAST_ID
                self._block, self._continuations = length, 0
        else:
            self._weigh_frame(kind, length, header)
        return self.fault is None

    def _weigh_frame(self, kind: int, length: int, header: bytes) -> None:
        if kind == _WINDOW_UPDATE:
            self._updates += 1
        elif kind == _RST_STREAM:
            self._resets += 1
        else:
            self._idle_frames += 1
            if kind == _SETTINGS and length > _MAX_SETTINGS:
                self.fault = _LONG_SETTINGS
            elif kind == _GOAWAY:
                self._cut = bytearray()
                if header[5:] != b"\0\0\0\0":
                    self.fault = _STRAY_GOAWAY
                elif length < 8:
                    self.fault = _SHORT_GOAWAY
        self._weigh()

    def _continue_block(self, kind: int, flags: int, header: bytes) -> None:
        self._block += self._left
        self._continuations += 1
        if kind != _CONTINUATION or int.from_bytes(header[5:], "big") & _LAST_ID != self._block_id:
            self.fault = _BROKEN_BLOCK
        elif self._block > _MAX_BLOCK:
            self.fault = _LONG_BLOCK
        elif self._continuations > _MAX_CONTINUATIONS:
            self.fault = _MANY_CONTINUATIONS
        elif flags & _END_HEADERS:
            self._block_id = _NONE

    def _weigh(self) -> None:
        answered = self._answered + self._allowed
        if self._resets > _RESETS + answered:
            self.fault = self.fault or _MANY_RESETS
        elif self._idle_frames > _IDLE_FRAMES + answered:
            self.fault = self.fault or _MANY_IDLE
        elif self._updates > _UPDATES + _UPDATES_EACH * self._sent + self._allowed_updates:
            self.fault = self.fault or _MANY_UPDATES
        elif self._crumbs > _CRUMBS + answered + _CRUMBS_EACH * self._pieces + self._allowed_crumbs:
            self.fault = self.fault or _MANY_CRUMBS

    def _look_at_the_clock(self, now: float) -> None:
        if now - self._since >= _PERIOD:
            self._since = now
            self._resets = self._idle_frames = self._updates = self._crumbs = 0
            # What is answered now may be used a little later.
            self._allowed = self._answered
            self._allowed_updates = _UPDATES_EACH * self._sent
            self._allowed_crumbs = _CRUMBS_EACH * self._pieces
            self._answered = self._sent = self._pieces = 0

    def _went_away(self, payload: bytes) -> None:
        last = int.from_bytes(payload[:4], "big") & _LAST_ID
        if self.goaway is not None:
            last = min(last, self.goaway.last_id)  # what was said is said
        self.goaway = GoAway(last, int.from_bytes(payload[4:8], "big"))


def begins_http2(data: bytes) -> bool | None:
    """Whether a connection in the clear that begins with `data` speaks HTTP/2, for that is what its client knows of the server
    (RFC 9113 3.3). None when more bytes are needed.

    A first line that names a protocol which is not HTTP is taken for a preface that is wrong, and not for a request.
    """
    if not PREFACE.startswith(data[: len(PREFACE)]):
        return _NO_HTTP.match(data) is not None
    return None if len(data) < len(PREFACE) else True


def rst_stream(id: int, code: int) -> bytes:
    """The bytes of a RST_STREAM frame."""
    return b"\0\0\4" + bytes((_RST_STREAM, 0)) + id.to_bytes(4, "big") + code.to_bytes(4, "big")


def goaway(last_id: int | None, code: int, reason: str = "") -> bytes:
    """The bytes of a GOAWAY frame. `last_id` is None to say only that the end is near: whatever comes until then is served."""
    last = _LAST_ID if last_id is None else last_id
    payload = last.to_bytes(4, "big") + code.to_bytes(4, "big") + reason.encode()
    return len(payload).to_bytes(3, "big") + bytes((_GOAWAY, 0, 0, 0, 0, 0)) + payload
