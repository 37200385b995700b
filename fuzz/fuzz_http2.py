# Invariant: however the bytes of an HTTP/2 connection are split, the verdict on them is the same, and it is that of counting the
# frames of the whole; what passes is what was said, but for GOAWAY. And a list of headers that is taken for the head of a request is
# one to a parser that is as strict as the RFC, and says the same again when it is written.
"""What `mcp_core.http` lets through to h2. Nothing may be raised.

The second opinion on frames goes through the whole, frame by frame, with a table of what each kind counts as. That on heads is h2's own,
which our drivers do not ask for.
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

from mcp_core.http import FrameWatch, RequestHead, request_fields, request_head

from .mutations import damage, split
from .targets import Target
from .values import weighted

# whether a client says it; chunks; how many times they come one after the other; a list of headers
Case: TypeAlias = tuple[bool, list[bytes], int, list[tuple[bytes, bytes]]]

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
PROTOCOL, SIZE, CALM = 1, 6, 11
# By kind: what it counts as, and how many there may be of that.
COUNTED: Final = {0: "small", 2: "idle", 3: "reset", 4: "idle", 6: "idle", 7: "idle", 8: "update"}
MOST: Final = {"small": 1_000, "idle": 200, "reset": 100, "update": 1_000}


def check(case: Case) -> Iterable[str]:
    is_client, chunks, times, headers = case
    begin = PREFACE if is_client else b""
    data = begin + b"".join(chunks) * times
    wanted, passed = _expected(data[len(begin) :])
    found = _watched([data], is_server=is_client)
    assert found[0] == wanted, f"the whole is judged {found[0]} and not {wanted}"
    for pieces in (
        [begin, *chunks * times],
        [data[i : i + 1] for i in range(len(data))] if len(data) < 400 else [data],
    ):
        verdict, through = _watched(pieces, is_server=is_client)
        assert verdict == wanted, "it matters how the bytes are split"
        if wanted is None:
            assert through.startswith(begin + passed), "something was lost"
            assert through == begin + passed, "something was let through"
    yield "all right" if wanted is None else f"refused with {wanted}"
    yield f"{min(len(data) - len(begin) - len(passed), 1)} cut"
    yield from _check_head(headers)


def _watched(pieces: Iterable[bytes], *, is_server: bool) -> tuple[int | None, bytes]:
    watch = FrameWatch(is_server=is_server)
    passed = b"".join([watch.receive(piece, 0.0) for piece in pieces])
    return (None if watch.fault is None else watch.fault.code), passed


def _expected(data: bytes) -> tuple[int | None, bytes]:
    """The error code of the first fault, and what is to pass."""
    counts = dict.fromkeys((*MOST, "crumb", "piece"), 0)
    counts.pop("small")
    passed, place, first, open_block = b"", 0, True, None
    while len(data) - place >= 9:
        length = int.from_bytes(data[place : place + 3], "big")
        kind, flags, stream = data[place + 3], data[place + 4], data[place + 5 : place + 9]
        stream = bytes((stream[0] & 127,)) + stream[1:]
        if length > 16_384:
            return SIZE, passed
        if open_block is not None:
            owner, size, pieces = open_block
            if kind != 9 or stream != owner:
                return PROTOCOL, passed
            if size + length > 65_536 or pieces == 16:
                return CALM, passed
            open_block = None if flags & 4 else (owner, size + length, pieces + 1)
        elif first:
            if kind != 4 or flags & 1:
                return PROTOCOL, passed
            if length > 192:
                return CALM, passed
        else:
            if kind in (1, 5) and not flags & 4:
                open_block = (stream, length, 0)
            code = _counted(kind, flags, length, data[place + 5 : place + 9], counts)
            if code is not None:
                return code, passed
        first = False
        whole = data[place : place + 9 + length]
        if kind != 7 or open_block is not None:
            passed += whole
        place += 9 + length
    return None, passed


def _counted(kind: int, flags: int, length: int, stream: bytes, counts: dict[str, int]) -> int | None:
    if kind == 0 and length >= (320 if flags & 8 else 64):
        counts["piece"] += 1
        return None
    if kind in (1, 5) or (kind == 0 and flags & 1):
        return None
    what = COUNTED.get(kind, "idle")
    if what == "small":
        what = "crumb" if length else "idle"
    counts[what] += 1
    if kind == 4 and length > 192:
        return CALM
    if kind == 7 and stream != bytes(4):
        return PROTOCOL
    if kind == 7 and length < 8:
        return SIZE
    most = {**MOST, "crumb": MOST["small"] + 4 * counts["piece"]}[what]
    return CALM if counts[what] > most else None


# -- Heads -------------------------------------------------------------------------------------------------------------


def _check_head(headers: list[tuple[bytes, bytes]]) -> Iterable[str]:
    head = request_head(headers)
    if not isinstance(head, RequestHead):
        yield f"no head: {head.reason[:40]}"
        return
    # Of names of hosts case means nothing, which h2 does not know.
    known = [(name, value.lower() if name in (b":authority", b"host") else value) for name, value in headers]
    assert _is_head(known), f"h2 takes {headers} for no head"
    again = request_head(request_fields(head, "https"))
    assert again == head, f"{head} was written, and is read as {again}"
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


# -- Cases -------------------------------------------------------------------------------------------------------------


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


_STREAMS: Final = st.sampled_from((0, 1, 3, 2**31 + 1))
_PAYLOADS: Final = st.one_of(
    st.binary(max_size=10),
    st.sampled_from((0, 8, 63, 64, 192, 198, 319, 320, 5_000, 16_384, 16_385)).map(bytes),
)
_FRAMES: Final = weighted(
    (4, st.builds(_frame, st.integers(0, 10), st.sampled_from((0, 1, 4, 5, 8)), _STREAMS, _PAYLOADS)),
    (1, st.builds(_frame, st.just(7), st.just(0), st.just(0), st.just(bytes(8)))),
    (1, st.sampled_from((15, 16)).map(lambda more: _frame(1, 0, 1, b"x") + _frame(9, 0, 1, b"x") * more + _frame(9, 4, 1, b"x"))),
    (1, st.just(_frame(1, 0, 1, bytes(16_384)) + _frame(9, 0, 1, bytes(16_384)) * 3 + _frame(9, 4, 1, b""))),
    (2, st.builds(lambda kind, length, times: _frame(kind, 0, 0, bytes(length)) * times,
                  st.sampled_from((0, 2, 3, 6, 8)), st.sampled_from((0, 1, 8)), st.sampled_from((99, 100, 101, 999, 1_000, 1_001)))),
)  # fmt: skip
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
    said = b"".join(draw(st.lists(_FRAMES, max_size=5)))
    if draw(st.integers(0, 7)):
        said = _SETTINGS + said
    if draw(st.integers(0, 3)) == 0:
        said = damage(draw, said)
    chunks = draw(split(st.just(said)))
    times = draw(st.sampled_from((1, 1, 1, 2)))
    return draw(st.booleans()), chunks, times, draw(_heads())


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    if not seeds:
        return _case()

    @st.composite
    def recorded(draw: DrawFn) -> Any:
        is_client, chunks, times, headers = draw(st.sampled_from(seeds))
        return is_client, draw(split(st.just(damage(draw, b"".join(chunks))))), times, headers

    return weighted((5, _case()), (1, recorded()))


TARGET: Final = Target("http2", cases, check)
