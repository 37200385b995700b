r"""HTTP/2 as far as it has to be judged before a parser acts on it: frames by their first nine bytes, and heads as header lists.

h2, which is behind this in our drivers, reads what is right, and refuses what is wrong in itself. It does not ask whether somebody who
says right things, but too many of them, means harm. Rules of this file:

1. **What costs us must cost the peer.** Frames that bring nothing are weighed, over ten seconds, against requests that were answered
   and data that were sent: who works may also ask for signs of life, move windows and give up calls (RFC 9113 10.5).
2. **A frame is judged by its header**, before anything of it is kept. The verdict does not depend on how the bytes were split.
3. **A request over HTTP/2 is the same request as over HTTP/1.1**: whoever is behind this sees one head, with `host`, whatever the
   spelling was, and a head that could be read in two ways is none (8.3.1, 8.2.2).
4. A fault in a request ends its stream and no other. Nobody knows who else's requests a proxy has put on this connection.

GOAWAY does not reach h2, which takes it for the end of everything, while it only says that nothing new is begun (6.8).

It does not know which methods, paths or hosts are served, and it decodes no HPACK.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ._http1 import MAX_FIELDS, MAX_HEAD, MAX_TARGET, MAX_VALUE, SINGLETONS, HeadFault
from ._messages import Head, RequestHead

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ._messages import Headers

__all__ = [
    "HTTP2_STREAMS",
    "PREFACE",
    "FrameWatch",
    "GoAway",
    "Http2Fault",
    "begins_http2",
    "goaway",
    "request_fields",
    "request_head",
    "response_fields",
    "response_head",
    "trailer_fault",
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
_IDLE_FRAMES: Final = (
    200  # PING, SETTINGS, PRIORITY, empty DATA, what nobody knows; each answered stream allows for one more
)
_UPDATES: Final = 1_000  # WINDOW_UPDATE; each frame of data that was sent allows for two more, for its stream and the connection
_CRUMBS: Final = 1_000  # DATA of less than `_CRUMB` bytes behind which more is to come
_CRUMB: Final = 64
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
        self._answered = self._sent = 0
        self._allowed = self._allowed_updates = 0  # by what was before

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
            if length < _CRUMB and not flags & _END_STREAM:
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
        elif self._updates > _UPDATES + 2 * self._sent + self._allowed_updates:
            self.fault = self.fault or _MANY_UPDATES
        elif self._crumbs > _CRUMBS + answered:
            self.fault = self.fault or _MANY_CRUMBS

    def _look_at_the_clock(self, now: float) -> None:
        if now - self._since >= _PERIOD:
            self._since = now
            self._resets = self._idle_frames = self._updates = self._crumbs = 0
            # What is answered now may be used a little later.
            self._allowed = self._answered
            self._allowed_updates = 2 * self._sent
            self._answered = self._sent = 0

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


def goaway(last_id: int | None, code: int, reason: str = "") -> bytes:
    """The bytes of a GOAWAY frame. `last_id` is None to say only that the end is near: whatever comes until then is served."""
    last = _LAST_ID if last_id is None else last_id
    payload = last.to_bytes(4, "big") + code.to_bytes(4, "big") + reason.encode()
    return len(payload).to_bytes(3, "big") + bytes((_GOAWAY, 0, 0, 0, 0, 0)) + payload


# -- Heads ---------------------------------------------------------------------------------------------------------------------

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9a-z]"
# The names of a head, each with a newline behind it: those of the protocol's own come first. Of fields names have no upper case.
_NAMES: Final = re.compile(rb"(?::[a-z]++\n)*+(?:" + _TOKEN + rb"++\n)*+")
# What no value may have (one line for each): control characters, and white space around it.
_NO_VALUE: Final = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|(?:\A|\n)[ \t]|[ \t](?:\n|\Z)")
_METHOD: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}+")
_PATH: Final = re.compile(rb"/[!$-;=?-\[\]-~]*+")
_SCHEME: Final = re.compile(rb"[A-Za-z][A-Za-z0-9+\-.]*+")
_STATUS: Final = re.compile(rb"[1-5][0-9][0-9]")
_MAX_DIGITS: Final = 18
_OVERHEAD: Final = 32  # what a field counts for beside its bytes, RFC 9113 6.5.2
# They are about one connection and have no place here, whoever put them there (8.2.2).
_OF_CONNECTIONS: Final = frozenset(
    (b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade")
)

_NO_NAME = HeadFault(400, "The name of a header has characters that no name may have, or is out of order.")
_BAD_VALUE = HeadFault(400, "The value of a header has control characters, or white space around it.")
_CONNECTION = HeadFault(400, "A header is about one connection, and has no place in HTTP/2.")
_PSEUDO = HeadFault(400, "There is not exactly one method, scheme and path, and nothing else with a colon.")
_NO_HOST = HeadFault(400, "The authority is missing.")
_OTHER_AUTHORITY = HeadFault(400, "The authority and the Host header name different servers.")
_BAD_TARGET = HeadFault(400, "The path is none, or has characters that must be percent-encoded.")
_REPEATED = HeadFault(400, "A header that must be there once is there several times.")
_BAD_LENGTH = HeadFault(400, "Content-Length is not one plain decimal number.")
_BAD_STATUS = HeadFault(400, "The status is not one number.")
_HUGE_BODY = HeadFault(413, "The body is too large.")
_LONG_TARGET = HeadFault(414, f"The target has more than {MAX_TARGET} bytes.")
_EXPECTATION = HeadFault(417, "The only expectation that can be met is 100-continue.")
_LONG_HEAD = HeadFault(431, f"The head has more than {MAX_HEAD} bytes.")
_MANY_FIELDS = HeadFault(431, f"There are more than {MAX_FIELDS} headers.")
_LONG_VALUE = HeadFault(431, f"The value of a header has more than {MAX_VALUE} bytes.")
_NO_METHOD = HeadFault(501, "This method is not supported.")


def request_head(headers: Sequence[tuple[bytes, bytes]]) -> RequestHead | HeadFault:
    """The head of a request, from its list of headers as it was decoded.

    A fault of status 400 is for resetting the stream with PROTOCOL_ERROR (8.1.1); others are answered as they say.
    """
    fields = dict(headers)
    fault = _fields_fault(headers, fields)
    if fault is not None:
        return fault
    method, path = fields.get(b":method"), fields.get(b":path")
    if method == b"CONNECT":
        return _NO_METHOD
    authority, host = fields.get(b":authority"), fields.get(b"host")
    known = 3 if authority is None else 4
    pseudo = sum([name[:1] == b":" for name, _ in headers[: known + 1]])
    if method is None or path is None or b":scheme" not in fields or pseudo != known:
        return _PSEUDO
    if not _METHOD.fullmatch(method) or not _SCHEME.fullmatch(fields[b":scheme"]):
        return _PSEUDO
    if not _PATH.fullmatch(path) and not (path == b"*" and method == b"OPTIONS"):
        return _BAD_TARGET
    if len(path) > MAX_TARGET:
        return _LONG_TARGET
    if host is None:
        host = authority
    elif authority is not None and authority.lower() != host.lower():
        return _OTHER_AUTHORITY
    if not host:
        return _NO_HOST
    if fields.get(b"expect", b"100-continue").lower() != b"100-continue":
        return _EXPECTATION
    rest = [header for header in headers[known:] if header[0] != b"host"]
    if b"cookie" in fields:
        rest = _with_one_cookie(rest)
    return RequestHead(method, path, [(b"host", host), *rest])


def trailer_fault(headers: Sequence[tuple[bytes, bytes]]) -> HeadFault | None:
    """What is wrong with the fields behind a body. A fault is for resetting the stream with PROTOCOL_ERROR."""
    fault = _fields_fault(headers, dict(headers))
    if fault is None and any(name[:1] == b":" for name, _ in headers):
        return _PSEUDO
    return fault


def response_head(headers: Sequence[tuple[bytes, bytes]]) -> Head | HeadFault:
    """The head of a response, from its list of headers as it was decoded. A fault is for resetting the stream with
    PROTOCOL_ERROR, whatever its status."""
    fields = dict(headers)
    fault = _fields_fault(headers, fields)
    if fault is not None:
        return fault
    status = fields.get(b":status")
    if status is None or not _STATUS.fullmatch(status) or sum([name[:1] == b":" for name, _ in headers]) != 1:
        return _BAD_STATUS
    return Head(int(status), list(headers[1:]))


def request_fields(head: RequestHead, scheme: str) -> Headers:
    """The list of headers that says `head`: what is about one connection is left out, and `host` is the authority.

    Raises:
        ValueError: the request cannot be said in HTTP.
    """
    host = next((value for name, value in head.headers if name == b"host"), b"")
    told = [
        (b":method", head.method),
        (b":scheme", scheme.encode("ascii")),
        (b":authority", host),
        (b":path", head.target),
        *_of_messages(head.headers),
    ]
    fault = _fields_fault(told, dict(told))
    # Whether it is too long the server says.
    if fault is not None and fault.status == 400:
        raise ValueError(f"the request cannot be said in HTTP: {fault.reason}")
    return told


def response_fields(status: int, headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The list of headers that says the head of a response; what is about one connection is left out.

    Raises:
        ValueError: one of them is no header.
    """
    told = [(name.lower(), value.strip(b" \t")) for name, value in headers]
    told = [(b":status", b"%d" % status), *_of_messages(told)]
    fault = _fields_fault(told, dict(told))
    if fault is not None and fault.status == 400:
        raise ValueError(fault.reason)
    return told


def _of_messages(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [header for header in headers if header[0] not in _OF_CONNECTIONS and header[0] != b"host"]


def _fields_fault(headers: Sequence[tuple[bytes, bytes]], fields: dict[bytes, bytes]) -> HeadFault | None:
    """What is wrong with the fields of a head, whatever they are about."""
    if len(headers) > MAX_FIELDS + 4:
        return _MANY_FIELDS
    names = b"\n".join([name for name, _ in headers])
    values = b"\n".join([value for _, value in headers])
    ends = len(headers) - 1
    if names.count(b"\n") != ends or not _NAMES.fullmatch(names + b"\n"):
        return _NO_NAME
    if values.count(b"\n") != ends or _NO_VALUE.search(values):
        return _BAD_VALUE
    if not _OF_CONNECTIONS.isdisjoint(fields) or (b"te" in fields and _encodes(headers)):
        return _CONNECTION
    if len(fields) != len(headers) and _repeats(headers):
        return _REPEATED
    size = len(names) + len(values)
    if size > MAX_VALUE:
        if any(len(value) > MAX_VALUE for name, value in headers if name != b":path"):
            return _LONG_VALUE
        if size + _OVERHEAD * len(headers) > MAX_HEAD:
            return _LONG_HEAD
    length = fields.get(b"content-length")
    if length is not None:
        if not length.isdigit() or (length[0] == 0x30 and length != b"0"):
            return _BAD_LENGTH
        if len(length) > _MAX_DIGITS:
            return _HUGE_BODY
    return None


def _encodes(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Whether something else is said with `te` than that trailers are understood."""
    return any(name == b"te" and value.lower() != b"trailers" for name, value in headers)


def _repeats(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    seen = set()
    for name, _ in headers:
        if name in seen and (name[:1] == b":" or name in SINGLETONS):
            return True
        seen.add(name)
    return False


def _with_one_cookie(headers: Headers) -> Headers:
    """A cookie may come in pieces (8.2.3), and is one to everybody else."""
    pieces = [value for name, value in headers if name == b"cookie"]
    return [*(header for header in headers if header[0] != b"cookie"), (b"cookie", b"; ".join(pieces))]
