"""HTTP/1.1 heads: which are rejected, and that h11 reads the same request from the others."""

from __future__ import annotations

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_core.http.wire._head_limits import MAX_FIELDS, MAX_HEAD, SINGLETONS, HeadError
from mcp_core.http.wire._http1 import (
    find_head_error,
    find_partial_head_error,
    head_end,
    origin_form,
    written_fields,
)
from tests.core.http.heads import CHUNKS, ROWS, SERVED, WAITS, Row, chunked
from tests.harness.jsonrpc import chunks

# Bytes; enough for every valid head and chunk of the corpus.
ROOM = 64 * 1024


def check_head(*pieces: bytes) -> HeadError | bytes | None:
    """Check the first head as a driver does. Return an error, the head, or None for more."""
    buffer, seen = bytearray(), 0
    for piece in pieces:
        buffer += piece
        end = head_end(buffer, seen)
        if end is not None:
            head = bytes(buffer[:end])
            return find_head_error(head) or head
        fault = find_partial_head_error(buffer)
        if fault is not None:
            return fault
        seen = len(buffer)
    return None


def read_by_h11(raw: bytes) -> tuple[h11.Request | None, bytes, int]:
    """Return the request that h11 reads by itself, its data, and the outcome."""
    connection = h11.Connection(h11.SERVER, ROOM)
    if raw:
        connection.receive_data(raw)
    request, data = None, b""
    try:
        while (event := connection.next_event()) is not h11.NEED_DATA:
            if isinstance(event, h11.Request):
                request = event
            elif isinstance(event, h11.Data):
                data += event.data
            else:
                assert isinstance(event, h11.EndOfMessage)
                return request, data, SERVED
    except h11.RemoteProtocolError as error:
        return request, data, error.error_status_hint
    return request, data, WAITS


def status_of(verdict: HeadError | bytes | None) -> int:
    if isinstance(verdict, HeadError):
        return verdict.status
    return WAITS if verdict is None else SERVED


def test_head_corpus_is_large_and_unique() -> None:
    assert len(ROWS) >= 300
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert len({row.raw for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_head_fault_agrees_with_corpus_and_h11(row: Row) -> None:
    """The corpus says what is right, h11 what the next parser sees: they must not disagree."""
    verdict = check_head(row.raw)
    request, _, outcome = read_by_h11(row.raw)
    if isinstance(verdict, HeadError):
        assert verdict.status == row.status
        assert verdict.reason.endswith(".")
        assert (request is not None) == row.forgiven
    elif verdict is None:
        assert (row.status, request, outcome) == (WAITS, None, WAITS)
    else:
        # A missing end of the body is no error of the head.
        assert outcome == row.status
        assert request is not None
        # Checked without either parser: the line has exactly two spaces, and version 1.0 or 1.1.
        method, target, version = verdict.partition(b"\r\n")[0].split(b" ")
        assert (request.method, request.target, b"HTTP/" + request.http_version) == (
            method,
            target,
            version,
        )
        lines = [line.partition(b":") for line in verdict.split(b"\r\n")[1:-2]]
        theirs = [(name, value.lower()) for name, value in request.headers]
        assert theirs == [(name.lower(), value.strip().lower()) for name, _, value in lines]
    assert_any_split_gives(row.raw, verdict)


def assert_any_split_gives(raw: bytes, whole: bytes | HeadError | None) -> None:
    if isinstance(whole, bytes):
        # The splits that could matter: near the end of the head, and everywhere if it is short.
        cuts = range(len(whole) + 1) if len(whole) < 300 else range(len(whole) - 6, len(whole) + 1)
    else:
        cuts = range(min(len(raw), 300))
    for cut in cuts:
        assert check_head(raw[:cut], raw[cut:]) == whole
    assert status_of(check_head(*(raw[i : i + 1] for i in range(len(raw))))) == status_of(whole)


@pytest.mark.parametrize(
    ("data", "end"),
    [
        *((b"", None), (b"\r", None), (b"\rx", None), (b"a\r\n\r", None), (b"a\n\nb", 3)),
        *((b"a\r\n\r\nb", 5), (b"a\n\r\nb", 4)),
        # An empty head
        *((b"\n", 1), (b"\r\n", 2), (b"\n\n", 1), (b"\r\n\r\n", 2), (b"\na\n\n", 1)),
    ],
)
def test_head_ends_after_its_first_empty_line(data: bytes, end: int | None) -> None:
    assert head_end(data) == end
    assert head_end(bytearray(data)) == end


PIECES = st.lists(
    st.sampled_from([b"\r\n", b"\n", b"\r", b"a", b" ", b"GET / HTTP/1.1", b"Host: a"])
)


@given(PIECES, st.lists(st.integers(0, 60)))
@example([b"GET / HTTP/1.1", b"\r\n", b"Host: a", b"\r\n", b"\r\n"], [3, 20])
@example([b"\r", b"\n"], [1])
@example([b"a\n", b"\r", b"\n"], [2, 3])
@example([b"a\n", b"\r", b"\r\n", b"\n"], [2, 3, 4, 5])
def test_head_end_is_that_of_h11(words: list[bytes], cuts: list[int]) -> None:
    """A later end would let one request hide in another; the cuts are arbitrary."""
    raw = b"".join(words)
    end = head_end(raw)
    buffer, seen, found = bytearray(), 0, None
    for piece in chunks(raw, cuts):
        buffer += piece
        found = head_end(buffer, seen)
        if found is not None:
            break
        seen = len(buffer)
    assert found == end
    request, _, outcome = read_by_h11(raw)
    if end is None:
        assert request is None
        assert outcome == WAITS or raw[0] <= 0x20
    elif request is not None:
        assert read_by_h11(raw[:end])[0] == request
        assert read_by_h11(raw[: end - 1])[2] == WAITS


@given(st.binary())
def test_head_fault_any_bytes_do_not_raise(raw: bytes) -> None:
    assert check_head(raw) is None or status_of(check_head(raw)) in (400, 431, 505)
    assert isinstance(find_head_error(raw), HeadError)  # random bytes are not a head
    assert origin_form(raw) is not None


TOKENS = st.text("!#$%&'*+-.^_`|~09azAZ", min_size=1, max_size=8)
ODD = st.sampled_from(
    [
        "\r\n",
        "\r",
        "\n",
        "\0",
        " ",
        "\t",
        ":",
        ",",
        "\x0b",
        "\x7f",
        "\xa0",
        "chunked",
        "5",
        "HTTP/1.1",
        "/",
    ]
)
LINES = st.tuples(
    st.sampled_from(["Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "X"])
    | TOKENS,
    st.sampled_from([":", ": ", " : ", ":\t"]),
    st.sampled_from(["localhost", "5", "chunked", "0", "100-continue", "gzip, chunked"])
    | TOKENS
    | ODD,
    st.sampled_from(["\r\n", "\r\n", "\r\n", "\n", "\r\n "]),
).map("".join)


@given(
    st.lists(TOKENS | ODD, max_size=4).map(" ".join)
    | st.sampled_from(["POST /mcp HTTP/1.1", "GET / HTTP/1.0"]),
    st.lists(LINES, max_size=6).map("".join),
)
def test_head_accepted_is_read_the_same_by_h11(line: str, fields: str) -> None:
    raw = f"{line}\r\nHost: a\r\n{fields}\r\n".encode("latin-1")
    verdict = check_head(raw)
    if not isinstance(verdict, bytes):
        return
    assert raw.startswith(verdict)
    request, _, outcome = read_by_h11(verdict)
    assert request is not None
    assert outcome in (SERVED, WAITS)
    names = [name for name, _ in request.headers]
    assert all(names.count(name) <= 1 for name in SINGLETONS)
    assert not {b"content-length", b"transfer-encoding"} <= set(names)
    assert request.http_version == b"1.1" or b"transfer-encoding" not in names


# reason, head; with several errors the first is reported
REASONS = [
    ("does not begin", b" GET / HTTP/1.1\r\n\r\n"),
    ("not a method, a target and a version", b"GET / HTTP/1.1 \r\n\r\n"),
    ("ends without CR", b"GET / HTTP/1.1\n\r\n"),
    ("ends without CR", b"GET / HTTP/1.1\r\nHost: a\n\r\n"),
    ("a CR in the head", b"GET /\r HTTP/1.1\r\n\r\n"),
    ("a CR in the head", b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n"),
    ("a NUL", b"GET /\0 HTTP/1.1\r\n\r\n"),
    ("a NUL", b"GET / HTTP/1.1\r\nHost: a\0\r\n\r\n"),
    ("second line", b"GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n"),
    ("no colon", b"GET / HTTP/1.1\r\nHost\r\n\r\n"),
    ("white space between", b"GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
    ("characters that no name", b"GET / HTTP/1.1\r\nHo(st: a\r\n\r\n"),
    ("control characters", b"GET / HTTP/1.1\r\nHost: \x01\r\n\r\n"),
    ("does not end", b"GET / HTTP/1.1"),
    ("does not end", b"GET / HTTP/1.1\r\nHost: a"),
    ("does not end", b"GET / HTTP/1.1\r\nHost: a\r\n\r\nX: b\r\n\r\n"),
    ("neither a path nor a URL", b"GET a HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("percent-encoded", b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("different servers", b"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    ("Host header is missing", b"GET / HTTP/1.1\r\n\r\n"),
    ("is repeated", b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    ("plain decimal", b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1,1\r\n\r\n"),
    (
        "both",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ),
    ("HTTP/1.0", b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
    ("100-continue", b"GET / HTTP/1.1\r\nHost: a\r\nExpect: b\r\n\r\n"),
    ("chunked", b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: b\r\n\r\n"),
    (
        f"more than {MAX_FIELDS}",
        b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * MAX_FIELDS + b"\r\n",
    ),
    (f"more than {MAX_HEAD}", b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * MAX_HEAD + b"\r\n\r\n"),
]


@pytest.mark.parametrize(("reason", "head"), REASONS)
def test_head_fault_names_reason(reason: str, head: bytes) -> None:
    fault = find_head_error(head)
    assert fault is not None
    assert reason in fault.reason


@pytest.mark.parametrize("name", SINGLETONS)
def test_head_repeated_singleton_is_rejected(name: bytes) -> None:
    value = {
        b"content-length": b"0",
        b"transfer-encoding": b"chunked",
        b"expect": b"100-continue",
    }.get(name, b"a")
    host = b"" if name == b"host" else b"Host: a\r\n"
    once = b"POST / HTTP/1.1\r\n" + host + name.title() + b": " + value + b"\r\n"
    assert find_head_error(once + b"\r\n") is None
    twice = find_head_error(once + b"X: a\r\n" + name.upper() + b": " + value + b"\r\n\r\n")
    assert twice is not None
    assert twice.reason == "A header that may occur only once is repeated."


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"/", b"/"),
        (b"/mcp?a=http://b/", b"/mcp?a=http://b/"),
        (b"//a/b", b"//a/b"),
        (b"*", b"*"),
        (b"http://a/mcp?b", b"/mcp?b"),
        (b"https://a.b:8000/", b"/"),
        (b"http://[::1]:8000//c", b"//c"),
        (b"http://a", b"/"),
        (b"http://a?b", b"/?b"),
    ],
)
def test_origin_form_of_absolute_target_is_path(target: bytes, path: bytes) -> None:
    assert origin_form(target) == path


@pytest.mark.parametrize(("name", "body", "expected"), CHUNKS, ids=[row[0] for row in CHUNKS])
def test_h11_chunked_bodies_are_pinned(name: str, body: bytes, expected: bytes | int) -> None:
    # Pinned, so that a change in the leniency of h11 shows up here.
    raw = chunked(body)
    assert isinstance(check_head(raw), bytes)
    _, data, outcome = read_by_h11(raw)
    assert (data if outcome == SERVED else outcome) == expected


def test_head_fault_hostile_heads_take_linear_time() -> None:
    """A regular expression that backtracks would let one small request block the event loop."""
    # The worst cases of each pattern: 32 KiB, byte by byte, take a second. Anything quadratic would
    # take minutes.
    begin = b"GET / HTTP/1.1\r\nHost: a\r\n"
    filler = MAX_HEAD - len(begin) - 10
    heads = [
        begin + b"X" * filler + b"\r\n\r\n",
        begin + b"X:" + b" \t" * (filler // 2) + b"\x00\r\n\r\n",
        begin + b"X:\r\n" * (filler // 5) + b"\r\n\r\n",
        begin + b"\n" * filler + b"\r\n\r\n",
        b"\r" * MAX_HEAD,
        b"G" * MAX_HEAD,
    ]
    for head in heads:
        assert isinstance(find_head_error(head), HeadError)
        assert status_of(check_head(*(head[i : i + 1] for i in range(len(head))))) in (
            400,
            414,
            431,
        )


def test_written_fields_keep_order_and_spelling() -> None:
    head = b"GET / HTTP/1.1\r\nHost: h\r\nX-A:\t1 \r\nx-a:2:3\r\nEmpty:\r\n\r\n"
    assert find_head_error(head) is None
    expected = [(b"Host", b"h"), (b"X-A", b"1"), (b"x-a", b"2:3"), (b"Empty", b"")]
    assert written_fields(head) == expected
    assert written_fields(b"GET / HTTP/1.0\r\n\r\n") == []
