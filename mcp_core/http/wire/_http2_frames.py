r"""Limits on HTTP/2 frames, enforced before h2 acts on them: what a peer may send, and how much.

h2, which is behind this in our drivers, rejects invalid frames. It doesn't limit the number of
valid ones that do harm.

1. **What is expensive for us must be expensive for the peer.** Frames that carry nothing are
   counted, over ten seconds, and compared with completed requests and data sent in both directions.
   A peer in normal use may ping, update windows and reset streams (RFC 9113, 10.5).
2. **A frame is checked by its 9-byte header**, before any of it is buffered. The result doesn't
   depend on how the bytes were split. No payload is read but GOAWAY's.
3. GOAWAY isn't passed to h2, which would end everything. It only means that the peer starts no new
   streams (6.8).
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from ._head_limits import MAX_HEAD

__all__ = [
    "MAX_CONCURRENT_STREAMS",
    "PREFACE",
    "FrameWatch",
    "GoAway",
    "Http2Error",
    "begins_http2",
    "goaway",
    "rst_stream",
]

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

# Error codes (RFC 9113, 7).
PROTOCOL_ERROR: Final = 1
FRAME_SIZE_ERROR: Final = 6
ENHANCE_YOUR_CALM: Final = 11

# Concurrent streams of a client: the minimum that RFC 9113, 6.5.2 recommends.
MAX_CONCURRENT_STREAMS: Final = 100

# Frame types and flags (RFC 9113, 6).
_DATA: Final = 0
_HEADERS: Final = 1
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

_FRAME_HEADER: Final = 9  # bytes
_MAX_FRAME: Final = 16_384  # the size that every peer must accept; we announce no larger one
_MAX_BLOCK: Final = 2 * MAX_HEAD  # bytes of an encoded head; a larger one is too long when decoded
_MAX_CONTINUATIONS: Final = 16
_MAX_SETTINGS: Final = 32 * 6  # bytes of a SETTINGS frame; the RFCs know a dozen, of 6 bytes each

# What a peer may send within `_PERIOD` seconds beyond what it has earned.
_PERIOD: Final = 10.0
_RESETS: Final = 100  # RST_STREAM; each completed stream earns one more
# PING, SETTINGS, PRIORITY, empty DATA and unknown frames; each completed stream earns one more.
_IDLE_FRAMES: Final = 200
_UPDATES: Final = 1_000  # WINDOW_UPDATE
# Each DATA frame that we sent earns this many more. Some clients, such as Go's, read it 4 KiB at a
# time, and update the windows of the stream and of the connection each time.
_UPDATES_EACH: Final = 8
# DATA of less than `_SMALL` bytes that doesn't end its stream; each completed stream earns one
# more.
_SMALL_FRAMES: Final = 1_000
_SMALL: Final = 64
# Each larger DATA frame earns this many more. Some servers, such as Node.js, send each line of an
# event by itself.
_SMALL_FRAMES_EACH: Final = 4
# DATA and HEADERS of streams that are closed. The peer may not know that yet, and 100 streams with
# windows of 64 KiB still have 400 of the largest frames on the way.
_LATE_FRAMES: Final = 1_000
# Each completed stream earns this many more: a client's window of 1 MiB in the largest frames.
_LATE_FRAMES_EACH: Final = 64
_PADDING: Final = 256  # with its length byte: the part of a padded frame that may carry nothing
_LAST_ID: Final = 2**31 - 1
_NO_STREAM: Final = -1  # not 0: a frame may name stream 0, although it has no head


# A request line of a protocol that isn't HTTP.
_OTHER_PROTOCOL: Final = re.compile(
    rb"[^ \r\n]++ [^ \r\n]++ (?!HTTP/)[^ \r\n]++\r?\n", re.IGNORECASE
)


class Http2Error(Struct, frozen=True):
    """An error that ends the connection: the error `code` for GOAWAY, and a sentence as `reason`.

    RFC 9113, section 7, defines the codes.
    """

    code: int
    reason: str


class GoAway(Struct, frozen=True):
    """The peer starts and accepts no new streams (RFC 9113, section 6.8).

    It did not process streams above `last_id`. `code` is its error code, 0 for an orderly end.
    """

    last_id: int
    code: int


_WRONG_PREFACE = Http2Error(
    PROTOCOL_ERROR, "The connection does not begin with the preface of HTTP/2."
)
_NO_SETTINGS = Http2Error(PROTOCOL_ERROR, "The first frame is not SETTINGS.")
_LONG_FRAME = Http2Error(FRAME_SIZE_ERROR, f"A frame has more than {_MAX_FRAME} bytes.")
_SHORT_GOAWAY = Http2Error(FRAME_SIZE_ERROR, "GOAWAY is too short.")
_STRAY_GOAWAY = Http2Error(PROTOCOL_ERROR, "GOAWAY is about the connection, and names a stream.")
_BROKEN_BLOCK = Http2Error(PROTOCOL_ERROR, "Another frame interrupts the head of a request.")
_LONG_BLOCK = Http2Error(ENHANCE_YOUR_CALM, f"A head has more than {_MAX_BLOCK} bytes.")
_MANY_CONTINUATIONS = Http2Error(
    ENHANCE_YOUR_CALM, f"A head comes in more than {_MAX_CONTINUATIONS + 1} frames."
)
_LONG_SETTINGS = Http2Error(ENHANCE_YOUR_CALM, "There are too many settings in one frame.")
_MANY_RESETS = Http2Error(ENHANCE_YOUR_CALM, "Too many streams are reset.")
_MANY_IDLE = Http2Error(ENHANCE_YOUR_CALM, "Too many frames carry nothing.")
_MANY_UPDATES = Http2Error(ENHANCE_YOUR_CALM, "Too many WINDOW_UPDATE frames.")
_MANY_SMALL_FRAMES = Http2Error(ENHANCE_YOUR_CALM, "Too many DATA frames are very small.")
_MANY_LATE_FRAMES = Http2Error(ENHANCE_YOUR_CALM, "Too many frames are for closed streams.")


class FrameWatch:
    """Checks the bytes that arrive on one connection.

    Pass received bytes to `receive`, and what it returns to h2. If there is an `error` then, send
    it in a GOAWAY and close the connection. Report completed streams with `stream_completed`, DATA
    frames with `data_sent`, streams that were reset for a peer error with `stream_reset`, and what
    arrived for closed streams with `late_frames`.

    The `now` of its methods is a monotonic time in seconds.

    Args:
        is_server: the peer is a client, so its bytes begin with the preface.

    Attributes:
        error: why the connection has to end, None if it need not.
        goaway: the peer's last GOAWAY, None before the first.
    """

    __slots__ = (
        "_allowed",
        "_allowed_small",
        "_allowed_updates",
        "_answered",
        "_block",
        "_block_id",
        "_continuations",
        "_goaway_payload",
        "_header",
        "_idle_frames",
        "_large_frames",
        "_late_frames",
        "_left",
        "_preface",
        "_preface_complete",
        "_resets",
        "_sent",
        "_settled",
        "_since",
        "_small_frames",
        "_updates",
        "error",
        "goaway",
    )

    def __init__(self, *, is_server: bool) -> None:
        self.error: Http2Error | None = None
        self.goaway: GoAway | None = None
        self._preface = PREFACE if is_server else b""  # the part that is still to come
        self._settled = False  # the first frame has begun
        self._preface_complete: bool  # another frame has begun after it; set with `_settled`
        self._header = b""  # the part of a frame's header that has arrived
        self._left = 0  # bytes of a payload that are still to come
        self._goaway_payload: bytearray | None = None  # not None while a GOAWAY arrives
        self._block_id = _NO_STREAM  # the stream whose head is incomplete
        self._block = 0  # bytes of that head so far
        self._continuations = 0  # its CONTINUATION frames so far
        self._since = 0.0  # start of the current period
        # Frames of the current period that cost us.
        self._resets = 0
        self._idle_frames = 0
        self._updates = 0
        self._small_frames = 0
        self._late_frames = 0
        # What earns the peer more of them.
        self._answered = 0
        self._sent = 0
        self._large_frames = 0
        # What was earned in the period before.
        self._allowed = 0
        self._allowed_updates = 0
        self._allowed_small = 0

    def __repr__(self) -> str:
        if self.error is not None:
            return f"<FrameWatch: {self.error.reason}>"
        counts = (
            f"{self._resets} resets, {self._idle_frames} idle frames, {self._updates} updates, "
            f"{self._small_frames} small frames, {self._late_frames} late frames"
        )
        return f"<FrameWatch: {counts}>"

    @property
    def in_frame(self) -> bool:
        """True if the bytes so far end within a frame or a head."""
        return bool(self._left or self._header or self._block_id != _NO_STREAM)

    @property
    def preface_received(self) -> bool:
        """True if the peer's whole preface has arrived, its first SETTINGS frame included."""
        return self._settled and (self._preface_complete or not self._left)

    # -- What the driver reports ------------------------------------------------------------------

    def stream_completed(self) -> None:
        """Count a stream that was completed without error, or cancelled by us."""
        self._answered += 1

    def data_sent(self, frames: int) -> None:
        """Count DATA frames that we sent, `frames` of them."""
        self._sent += frames

    def stream_reset(self, now: float) -> None:
        """Count a stream that we reset because of the peer, as if the peer had reset it."""
        self._update_period(now)
        self._resets += 1
        self._check_counts()

    def late_frames(self, frames: int) -> None:
        """Count DATA and HEADERS frames that arrived on closed streams, `frames` of them."""
        self._late_frames += frames
        self._check_counts()

    # -- Received bytes ---------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> bytes:
        """Check `data`, received bytes in chunks of any size.

        Return those to pass to h2, and none once there is an `error`.
        """
        if self.error is not None:
            return b""
        self._update_period(now)
        place = 0
        size = len(data)
        passed: list[bytes] = []
        if self._preface:
            place = min(size, len(self._preface))
            if data[:place] != self._preface[:place]:
                self.error = _WRONG_PREFACE
                return b""
            self._preface = self._preface[place:]
        start = 0  # of the bytes that were not passed yet
        while place < size:
            if self._left:
                taken = min(self._left, size - place)
                if self._goaway_payload is not None:
                    self._goaway_payload += data[place : place + taken]
                    start = place + taken
                self._left -= taken
                place += taken
                if self._goaway_payload is not None and not self._left:
                    self._receive_goaway(bytes(self._goaway_payload))
                    self._goaway_payload = None
                continue
            # Pass a header only when it is complete: it may be a GOAWAY's.
            missing = _FRAME_HEADER - len(self._header)
            buffered = self._header
            header = buffered + data[place : place + missing]
            if len(header) < _FRAME_HEADER:
                passed.append(data[start:place])
                self._header = header
                return b"".join(passed)
            self._header = b""
            if not self._check_frame(header):
                return b""
            if self._goaway_payload is not None:
                passed.append(data[start:place])
                start = place + missing
            elif buffered:
                passed.append(buffered)
            place += missing
        if not passed and not start:
            return data
        passed.append(data[start:])
        return b"".join(passed)

    def _check_frame(self, header: bytes) -> bool:
        """Check a frame's header. Return False if there is an `error`."""
        length = (header[0] << 16) | (header[1] << 8) | header[2]
        kind = header[3]
        flags = header[4]
        self._left = length
        self._preface_complete = self._settled
        if length > _MAX_FRAME:
            self.error = _LONG_FRAME
        elif self._block_id != _NO_STREAM:
            self._continue_block(kind, flags, header)
        elif not self._settled:
            self._settled = True
            if kind != _SETTINGS or flags & _ACK:
                self.error = _NO_SETTINGS
            elif length > _MAX_SETTINGS:
                self.error = _LONG_SETTINGS
        elif kind == _DATA:
            if length >= _SMALL and (length >= _SMALL + _PADDING or not flags & _PADDED):
                self._large_frames += 1
            elif not flags & _END_STREAM:
                if length:
                    self._small_frames += 1
                else:
                    self._idle_frames += 1
                self._check_counts()
        elif kind in (_HEADERS, _PUSH_PROMISE):
            if not flags & _END_HEADERS:
                self._block_id = _stream_id(header)
                self._block = length
                self._continuations = 0
        else:
            self._count_frame(kind, length, header)
        return self.error is None

    def _count_frame(self, kind: int, length: int, header: bytes) -> None:
        if kind == _WINDOW_UPDATE:
            self._updates += 1
        elif kind == _RST_STREAM:
            self._resets += 1
        else:
            self._idle_frames += 1
            if kind == _SETTINGS and length > _MAX_SETTINGS:
                self.error = _LONG_SETTINGS
            elif kind == _GOAWAY:
                self._goaway_payload = bytearray()
                if header[5:] != b"\0\0\0\0":
                    self.error = _STRAY_GOAWAY
                elif length < 8:
                    self.error = _SHORT_GOAWAY
        self._check_counts()

    def _continue_block(self, kind: int, flags: int, header: bytes) -> None:
        self._block += self._left
        self._continuations += 1
        if kind != _CONTINUATION or _stream_id(header) != self._block_id:
            self.error = _BROKEN_BLOCK
        elif self._block > _MAX_BLOCK:
            self.error = _LONG_BLOCK
        elif self._continuations > _MAX_CONTINUATIONS:
            self.error = _MANY_CONTINUATIONS
        elif flags & _END_HEADERS:
            self._block_id = _NO_STREAM

    def _check_counts(self) -> None:
        answered = self._answered + self._allowed
        if self._resets > _RESETS + answered:
            self.error = self.error or _MANY_RESETS
        elif self._idle_frames > _IDLE_FRAMES + answered:
            self.error = self.error or _MANY_IDLE
        elif self._updates > _UPDATES + _UPDATES_EACH * self._sent + self._allowed_updates:
            self.error = self.error or _MANY_UPDATES
        elif (
            self._small_frames
            > _SMALL_FRAMES
            + answered
            + _SMALL_FRAMES_EACH * self._large_frames
            + self._allowed_small
        ):
            self.error = self.error or _MANY_SMALL_FRAMES
        elif self._late_frames > _LATE_FRAMES + _LATE_FRAMES_EACH * answered:
            self.error = self.error or _MANY_LATE_FRAMES

    def _update_period(self, now: float) -> None:
        if now - self._since >= _PERIOD:
            self._since = now
            self._resets = 0
            self._idle_frames = 0
            self._updates = 0
            self._small_frames = 0
            self._late_frames = 0
            # What was earned in this period may be used in the next.
            self._allowed = self._answered
            self._allowed_updates = _UPDATES_EACH * self._sent
            self._allowed_small = _SMALL_FRAMES_EACH * self._large_frames
            self._answered = 0
            self._sent = 0
            self._large_frames = 0

    def _receive_goaway(self, payload: bytes) -> None:
        last = int.from_bytes(payload[:4], "big") & _LAST_ID
        if self.goaway is not None:
            last = min(last, self.goaway.last_id)  # a later GOAWAY cannot raise it
        self.goaway = GoAway(last, int.from_bytes(payload[4:8], "big"))


def _stream_id(header: bytes) -> int:
    """Return the stream that a frame's header names: its last 31 bits."""
    return int.from_bytes(header, "big") & _LAST_ID


def begins_http2(data: bytes) -> bool | None:
    """Return whether a connection without TLS begins with HTTP/2; None: more bytes are needed.

    `data` are all bytes that have arrived.
    Its client has to know in advance that the server supports it (RFC 9113, 3.3). A first line that
    names a protocol other than HTTP counts as a malformed preface, not as a request.
    """
    if not PREFACE.startswith(data[: len(PREFACE)]):
        return _OTHER_PROTOCOL.match(data) is not None
    return None if len(data) < len(PREFACE) else True


def rst_stream(id: int, code: int) -> bytes:
    """Return a RST_STREAM frame for the stream `id`, with the error `code` (RFC 9113, 6.4)."""
    return b"\0\0\4" + bytes((_RST_STREAM, 0)) + id.to_bytes(4, "big") + code.to_bytes(4, "big")


def goaway(last_id: int | None, code: int, reason: str = "") -> bytes:
    """Return a GOAWAY frame with the error `code`, and `reason` as debug data (RFC 9113, 6.8).

    `last_id` is the last stream that was or will be processed. Without it the frame only announces
    shutdown: streams that arrive before the final GOAWAY are still served.
    """
    last = _LAST_ID if last_id is None else last_id
    payload = last.to_bytes(4, "big") + code.to_bytes(4, "big") + reason.encode()
    return len(payload).to_bytes(3, "big") + bytes((_GOAWAY, 0, 0, 0, 0, 0)) + payload
