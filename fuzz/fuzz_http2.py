# Invariant: however the bytes of an HTTP/2 connection are split, the verdict on them is the same as
# from counting all frames at once. What passes is unchanged, but for GOAWAY. A list of headers that
# is accepted as a request head is also accepted by a strict parser of the RFC, and is the same
# again after encoding.
"""The bytes that `mcp_core.http` passes on to h2. Nothing may be raised.

The oracle for frames reads the whole input frame by frame, with a table of the counter of each
kind. The oracle for heads is h2's own validation, which our drivers turn off.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.exceptions import ProtocolError
from hpack import Encoder
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from fuzz.targets import Target
from mcp_core.http import FrameWatch, RequestHead, encode_request_head, request_head
from mcp_trio.oracle.strategies._mutations import damage, split
from mcp_trio.oracle.strategies._values import weighted

# whether a client sends it; chunks; how many times they are repeated; a list of headers
Case: TypeAlias = tuple[bool, list[bytes], int, list[tuple[bytes, bytes]]]

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PROTOCOL_ERROR, FRAME_SIZE_ERROR, ENHANCE_YOUR_CALM = 1, 6, 11
# The counter of each frame kind, and the maximum of each counter.
COUNTER_OF_KIND: Final = {
    0: "small",
    2: "idle",
    3: "reset",
    4: "idle",
    6: "idle",
    7: "idle",
    8: "update",
}
MAXIMUM: Final = {"small": 1_000, "idle": 200, "reset": 100, "update": 1_000}


def check(case: Case) -> Iterable[str]:
    is_client, chunks, repeats, headers = case
    preface = PREFACE if is_client else b""
    data = preface + b"".join(chunks) * repeats
    expected, passed = _expected(data[len(preface) :])
    found = _watch([data], is_server=is_client)
    assert found[0] == expected, f"the whole input gives {found[0]}, expected {expected}"
    for pieces in (
        [preface, *chunks * repeats],
        [data[i : i + 1] for i in range(len(data))] if len(data) < 400 else [data],
    ):
        code, output = _watch(pieces, is_server=is_client)
        assert code == expected, "the split changes the result"
        if expected is None:
            assert output.startswith(preface + passed), "frames were lost"
            assert output == preface + passed, "frames were let through"
    yield "accepted" if expected is None else f"rejected with {expected}"
    yield f"{min(len(data) - len(preface) - len(passed), 1)} cut"
    yield from _check_head(headers)


def _watch(pieces: Iterable[bytes], *, is_server: bool) -> tuple[int | None, bytes]:
    watch = FrameWatch(is_server=is_server)
    passed = b"".join([watch.receive(piece, 0.0) for piece in pieces])
    return (None if watch.error is None else watch.error.code), passed


def _expected(data: bytes) -> tuple[int | None, bytes]:
    """Return the error code of the first fault, and the bytes to pass on."""
    counts = dict.fromkeys((*MAXIMUM, "small_data", "large_data"), 0)
    counts.pop("small")
    passed, place, first, header_block = b"", 0, True, None
    while len(data) - place >= 9:
        length = int.from_bytes(data[place : place + 3], "big")
        kind, flags, stream = data[place + 3], data[place + 4], data[place + 5 : place + 9]
        stream = bytes((stream[0] & 127,)) + stream[1:]
        if length > 16_384:
            return FRAME_SIZE_ERROR, passed
        if header_block is not None:
            owner, size, pieces = header_block
            if kind != 9 or stream != owner:
                return PROTOCOL_ERROR, passed
            if size + length > 65_536 or pieces == 16:
                return ENHANCE_YOUR_CALM, passed
            header_block = None if flags & 4 else (owner, size + length, pieces + 1)
        elif first:
            if kind != 4 or flags & 1:
                return PROTOCOL_ERROR, passed
            if length > 192:
                return ENHANCE_YOUR_CALM, passed
        else:
            if kind in (1, 5) and not flags & 4:
                header_block = (stream, length, 0)
            code = _count(kind, flags, length, data[place + 5 : place + 9], counts)
            if code is not None:
                return code, passed
        first = False
        whole = data[place : place + 9 + length]
        if kind != 7 or header_block is not None:
            passed += whole
        place += 9 + length
    return None, passed


def _count(kind: int, flags: int, length: int, stream: bytes, counts: dict[str, int]) -> int | None:
    if kind == 0 and length >= (320 if flags & 8 else 64):
        counts["large_data"] += 1
        return None
    if kind in (1, 5) or (kind == 0 and flags & 1):
        return None
    what = COUNTER_OF_KIND.get(kind, "idle")
    if what == "small":
        what = "small_data" if length else "idle"
    counts[what] += 1
    if kind == 4 and length > 192:
        return ENHANCE_YOUR_CALM
    if kind == 7 and stream != bytes(4):
        return PROTOCOL_ERROR
    if kind == 7 and length < 8:
        return FRAME_SIZE_ERROR
    maximum = {**MAXIMUM, "small_data": MAXIMUM["small"] + 4 * counts["large_data"]}[what]
    return ENHANCE_YOUR_CALM if counts[what] > maximum else None


# -- Heads -----------------------------------------------------------------------------------------


def _check_head(headers: list[tuple[bytes, bytes]]) -> Iterable[str]:
    head = request_head(headers)
    if not isinstance(head, RequestHead):
        yield f"no head: {head.reason[:40]}"
        return
    # Host names are case-insensitive, which h2 does not know.
    known = [
        (name, value.lower() if name in (b":authority", b"host") else value)
        for name, value in headers
    ]
    assert _is_head(known), f"h2 rejects {headers}"
    again = request_head(encode_request_head(head, "https"))
    assert again == head, f"{head} is encoded, and decoded as {again}"
    yield f"a head of {min(len(head.headers), 4)}"


def _is_head(headers: list[tuple[bytes, bytes]]) -> bool:
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    server = H2Connection(H2Configuration(client_side=False))
    server.initiate_connection()
    server.receive_data(client.data_to_send())
    block = Encoder().encode(headers)
    frame = len(block).to_bytes(3, "big") + b"\1\5\0\0\0\1" + block
    try:
        server.receive_data(frame)
    except ProtocolError:
        return False
    return True


# -- Cases -----------------------------------------------------------------------------------------


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return (
        len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload
    )


_STREAMS: Final = st.sampled_from((0, 1, 3, 2**31 + 1))
_PAYLOADS: Final = st.one_of(
    st.binary(max_size=10),
    st.sampled_from((0, 8, 63, 64, 192, 198, 319, 320, 5_000, 16_384, 16_385)).map(bytes),
)
_FRAMES: Final = weighted(
    (
        4,
        st.builds(
            _frame, st.integers(0, 10), st.sampled_from((0, 1, 4, 5, 8)), _STREAMS, _PAYLOADS
        ),
    ),
    (1, st.builds(_frame, st.just(7), st.just(0), st.just(0), st.just(bytes(8)))),
    (
        1,
        st.sampled_from((15, 16)).map(
            lambda more: (
                _frame(1, 0, 1, b"x") + _frame(9, 0, 1, b"x") * more + _frame(9, 4, 1, b"x")
            )
        ),
    ),
    (
        1,
        st.just(
            _frame(1, 0, 1, bytes(16_384))
            + _frame(9, 0, 1, bytes(16_384)) * 3
            + _frame(9, 4, 1, b"")
        ),
    ),
    (
        2,
        st.builds(
            lambda kind, length, repeats: _frame(kind, 0, 0, bytes(length)) * repeats,
            st.sampled_from((0, 2, 3, 6, 8)),
            st.sampled_from((0, 1, 8)),
            st.sampled_from((99, 100, 101, 999, 1_000, 1_001)),
        ),
    ),
)
_SETTINGS: Final = _frame(4, 0, 0, b"")
_REQUEST: Final = [
    (b":method", b"POST"),
    (b":scheme", b"https"),
    (b":authority", b"a.example"),
    (b":path", b"/mcp"),
]
_NAMES: Final = st.sampled_from(
    (
        b"x",
        b"host",
        b"te",
        b"cookie",
        b"connection",
        b"content-length",
        b"X",
        b"",
        b"a:b",
        b"a b",
        b":path",
        b":status",
        b"expect",
    )
)
_VALUES: Final = st.sampled_from(
    (
        b"",
        b"1",
        b"01",
        b"a.example",
        b"A.example",
        b"trailers",
        b" x",
        b"x\t",
        b"a\r\nb",
        b"a\nb",
        b"\0",
        b"\xff",
        b"100-continue",
    )
)
_HEADERS: Final = st.tuples(_NAMES, st.one_of(_VALUES, st.binary(max_size=5)))


@st.composite
def _heads(draw: DrawFn) -> list[tuple[bytes, bytes]]:
    headers = list(_REQUEST)
    if draw(st.integers(0, 3)) == 0:
        del headers[draw(st.integers(0, 3))]
    for header in draw(st.lists(_HEADERS, max_size=3)):
        headers.insert(draw(st.sampled_from((len(headers), len(headers), 0))), header)
    return headers


@st.composite
def _case(draw: DrawFn) -> Case:
    frames = b"".join(draw(st.lists(_FRAMES, max_size=5)))
    if draw(st.integers(0, 7)):
        frames = _SETTINGS + frames
    if draw(st.integers(0, 3)) == 0:
        frames = damage(draw, frames)
    chunks = draw(split(st.just(frames)))
    repeats = draw(st.sampled_from((1, 1, 1, 2)))
    return draw(st.booleans()), chunks, repeats, draw(_heads())


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    if not seeds:
        return _case()

    @st.composite
    def recorded(draw: DrawFn) -> Any:
        is_client, chunks, repeats, headers = draw(st.sampled_from(seeds))
        return is_client, draw(split(st.just(damage(draw, b"".join(chunks))))), repeats, headers

    return weighted((5, _case()), (1, recorded()))


TARGET: Final = Target("http2", cases, check)
