"""HTTP exchanges as lines of a trace, and the conversations that they belong to."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_core import CLIENT_LIMITS
from mcp_core.http import Body, End, Head, RequestHead
from mcp_core.trace import (
    ConversationNumbers,
    HttpChannel,
    SseFields,
    TraceLine,
    _http_channel,
    encode_line,
    read_line,
)
from tests.core.trace.exchanges import EXCHANGES, kept_exchanges, lines_of
from tests.levels import fewer_examples

POST = RequestHead(b"POST", b"/mcp", [(b"a", b"\xe9")])
JSON = (b"content-type", b"application/json")
SSE = (b"content-type", b"text/event-stream; charset=utf-8")


def new_channel(limit: int = 1000, *, single: bool = True) -> HttpChannel:
    return HttpChannel(7, ConversationNumbers(single=single), limit)


def opened(*body: bytes) -> HttpChannel:
    channel = new_channel()
    channel.request(0, (POST, b"{}", "1.1"))
    return channel


def test_request_is_one_line() -> None:
    [line] = new_channel().request(1, (POST, b"{}", "1.1"))
    assert (line.exchange, line.sender, line.raw) == (7, "client", "{}")
    assert line.http is not None
    assert line.http.method == "POST"
    assert line.http.headers == (("a", "é"),)


@pytest.mark.parametrize("pieces", [[(b"{", False), (b"}", True)], [(b"{}", False), (b"", False)]])
def test_request_in_pieces_is_one_line(pieces: list[tuple[bytes, bool]]) -> None:
    channel = new_channel()
    assert channel.request(1, (POST, None, "2")) == []
    assert channel.request_data(2, pieces[0]) == []
    [line] = channel.request_data(3, pieces[1])
    assert (line.t, line.raw) == (3, "{}")
    assert channel.request_data(4, (b"x", True)) == []


@given(st.binary(max_size=30), st.lists(st.integers(0, 30)), st.sampled_from([5, 1000]))
def test_request_does_not_depend_on_its_pieces(body: bytes, cuts: list[int], limit: int) -> None:
    """A whole body takes a shorter path than one in pieces, also above the limit."""
    whole = new_channel(limit).request(1, (POST, body, "1.1"))
    channel = new_channel(limit)
    channel.request(0, (POST, None, "1.1"))
    cuts = sorted({0, *(cut for cut in cuts if cut < len(body)), len(body)})
    for start, end in itertools.pairwise(cuts):
        assert channel.request_data(0, (body[start:end], False)) == []
    assert channel.request_data(1, (b"", True)) == whole


def test_request_that_is_answered_early_comes_first() -> None:
    channel = new_channel()
    channel.request(1, (POST, None, "2"))
    channel.request_data(2, (b"{", False))
    lines = channel.response(3, [Head(413, []), End()])
    assert [(line.sender, line.raw, line.end) for line in lines] == [
        ("client", "{", None),
        ("server", None, "complete"),
    ]


def test_response_with_json_is_one_line() -> None:
    channel = opened()
    assert channel.response(1, [Head(200, [JSON]), Body(b"{")]) == []
    [line] = channel.response(2, [Body(b"}"), End()])
    assert (line.sender, line.raw, line.end) == ("server", "{}", "complete")
    assert line.http is not None
    assert line.http.status == 200
    assert channel.ended(3, ("client", "closed")) == []


def test_response_with_events_has_a_line_for_each() -> None:
    """An event cut in two gets its line when its end arrives; comments get none."""
    channel = opened()
    lines = channel.response(
        1,
        [
            Head(200, [SSE]),
            Body(b": comment\n\nid: 1\nretry: 5\ndata:\n\nid: 2\ndata: {}\n\ndata: []\n\nevent: x"),
        ],
    )
    assert lines[0].http is not None
    assert [(line.sse, line.raw) for line in lines[1:]] == [
        (SseFields(id="1", retry=5), None),
        (SseFields(id="2"), "{}"),
        (SseFields(), "[]"),
    ]
    lines = channel.response(2, [Body(b"\ndata: y\n\n"), End()])
    assert [(line.sse, line.raw, line.end) for line in lines] == [
        (SseFields(event="x"), "y", None),
        (None, None, "complete"),
    ]


def test_reconnection_time_without_an_event_has_a_line() -> None:
    channel = opened()
    channel.response(1.0, [Head(200, [SSE]), Body(b"id: 1\nretry: 5\ndata:\n\n")])
    lines = channel.response(2.0, [Body(b"retry: 7\n\n")])
    assert [(line.sender, line.sse) for line in lines] == [("server", SseFields(retry=7))]
    assert channel.response(3.0, [Body(b"retry: 7\n\n")]) == []


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([b"id: 1\n\n"], ["1"]),
        ([b"id: 1\nretry: 5\n\n"], ["1"]),
        ([b"id: 1\n\nid: 2\n\n"], ["2"]),
        ([b"id: 1\n\n", b"data: {}\n\n"], ["1", None]),
        ([b"id: 1\n\nid: 2\n", b"data: {}\n\n"], ["1", "2"]),
        ([b"id: 1\n\ndata: {}\n\ndata: []\n\n"], ["1", None]),
        ([b"id:\n\n", b"id: 1\n"], []),
    ],
)
def test_event_id_without_event_is_recorded(
    pieces: list[bytes], expected: list[str | None]
) -> None:
    """The stream can be resumed with it."""
    channel = opened()
    channel.response(1.0, [Head(200, [SSE])])
    lines = [each for data in pieces for each in channel.response(2.0, [Body(data)])]
    assert [line.sse and line.sse.id for line in lines] == expected


@pytest.mark.parametrize(("side", "reason"), [("server", "reset"), ("client", "closed")])
def test_stream_that_breaks_says_how(side: str, reason: str) -> None:
    channel = opened()
    channel.response(1, [Head(200, [SSE])])
    [line] = channel.ended(2, (side, reason))  # type: ignore[arg-type]
    assert (line.sender, line.end) == (side, reason)
    assert channel.ended(3, ("client", "closed")) == []


def test_response_that_breaks_keeps_what_arrived() -> None:
    channel = opened()
    channel.response(1, [Head(200, [JSON]), Body(b"{")])
    lines = channel.ended(2, ("client", "closed"))
    assert [(line.sender, line.raw, line.end) for line in lines] == [
        ("server", "{", None),
        ("client", None, "closed"),
    ]


def test_exchange_without_a_response_has_an_end() -> None:
    [line] = opened().ended(1, ("server", "reset"))
    assert (line.sender, line.http, line.end) == ("server", None, "reset")


def test_stream_after_an_event_that_is_too_long_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder of a stream has our own limit for a message, if that is larger."""
    monkeypatch.setattr(_http_channel, "CLIENT_LIMITS", replace(CLIENT_LIMITS, message=2_000))
    channel = opened()
    channel.response(1, [Head(200, [SSE]), Body(b"data: " + b"x" * 1_500 + b"\n\n")])
    [line] = channel.response(2, [Body(b"data: " + b"x" * 2_500 + b"\n\n")])
    assert (line.kind, line.count) == ("lost", 1)
    assert channel.response(3, [Body(b"data: {}\n\n")]) == []


def test_event_over_the_limit_of_a_decoder_ends_the_recording_of_its_stream() -> None:
    channel = opened()
    channel.response(1, [Head(200, [SSE])])
    lines: list[TraceLine] = []
    for _ in range(40):
        lines += channel.response(2, [Body(b"data: " + b"x" * 1_000_000)])
    assert [line.kind for line in lines] == ["lost"]
    assert [line.end for line in channel.response(3, [End()])] == ["complete"]


def test_long_event_is_truncated() -> None:
    channel = opened()
    channel.response(1, [Head(200, [SSE])])
    [line] = channel.response(2, [Body(b"data: " + b"x" * 5000 + b"\n\n")])
    assert line.raw == "x" * 1024
    assert line.truncated is not None
    assert line.truncated.size == 5000


actions = st.one_of(
    st.builds(Head, st.sampled_from([200, 101, 404]), st.sampled_from([[], [JSON], [SSE]])),
    st.builds(Body, st.binary() | st.sampled_from([b"data: {}\n\n", b"id: 1\nretry: 2\n\n"])),
    st.builds(End),
)


@fewer_examples(5)
@given(
    st.none() | st.binary(),
    st.lists(
        st.tuples(st.just("response"), st.lists(actions, min_size=1))
        | st.tuples(st.just("request_data"), st.tuples(st.binary(), st.booleans()))
        | st.tuples(st.just("ended"), st.just(("client", "closed")))
    ),
)
def test_any_exchange_becomes_lines_that_can_be_read(
    body: bytes | None, steps: list[tuple[str, object]]
) -> None:
    channel = new_channel(single=False)
    lines = channel.request(0, (POST, body, "1.1"))
    for name, what in steps:
        lines += getattr(channel, name)(1, what)
    assert [read_line(encode_line(line)) for line in lines] == lines
    assert sum(line.http is not None and line.http.method == "POST" for line in lines) <= 1


def test_response_with_a_lost_part_has_no_message() -> None:
    channel = opened()
    channel.skip()
    [line] = channel.response(1, [Head(200, [JSON]), Body(b"{}"), End()])
    assert line.raw is None


def test_websocket_belongs_to_its_exchange() -> None:
    channel = opened()
    [head] = channel.response(1, [Head(101, [])])
    assert head.http is not None
    assert head.http.status == 101
    assert channel.message(2, ("client", b"{}"))[0].exchange == 7
    assert channel.close(3, ("client", 1000, ""))[0].exchange == 7


# -- Conversations ---------------------------------------------------------------------------------


def conversation(numbers: ConversationNumbers, head: RequestHead, *response: Head | Body) -> int:
    channel = HttpChannel(1, numbers, 1000)
    [line] = channel.request(1, (head, b"{}", "1.1"))
    channel.response(2, [*response])
    return line.conversation


def test_exchanges_of_a_client_are_one_conversation() -> None:
    numbers = ConversationNumbers(single=True)
    session = RequestHead(b"POST", b"/", [(b"mcp-session-id", b"s")])
    assert [conversation(numbers, each) for each in (POST, session, POST)] == [1, 1, 1]


def test_conversations_of_a_server_are_sessions_and_requests_without_one() -> None:
    numbers = ConversationNumbers(single=False)
    first = conversation(numbers, POST, Head(200, [(b"mcp-session-id", b"s")]))
    session = RequestHead(b"POST", b"/mcp", [(b"mcp-session-id", b"s")])
    assert [conversation(numbers, each) for each in (session, POST, session)] == [1, 2, 1]
    assert first == 1


def test_session_of_http_sse_is_found_by_its_target() -> None:
    numbers = ConversationNumbers(single=False)
    event = Body(b"event: endpoint\ndata: /messages?session=1\n\n")
    get = RequestHead(b"GET", b"/sse", [])
    assert conversation(numbers, get, Head(200, [SSE]), event) == 1
    assert conversation(numbers, POST) == 2
    assert conversation(numbers, RequestHead(b"POST", b"/messages?session=1", [])) == 1


def test_sessions_beyond_the_memory_are_forgotten() -> None:
    numbers = ConversationNumbers(single=False)
    for number in range(10_001):
        numbers.add_session(b"%d" % number, numbers.new())
    assert numbers.of_request(RequestHead(b"POST", b"0", [])) == 10_002
    assert numbers.of_request(RequestHead(b"POST", b"1", [])) == 2


def test_headers_of_an_asgi_server_may_be_lists() -> None:
    head = RequestHead(b"POST", b"/", [[b"a", b"1"], [b"b", bytearray(b"2")]])  # type: ignore[list-item]
    [line] = new_channel().request(0, (head, b"", "1.1"))
    assert line.http is not None
    assert line.http.headers == (("a", "1"), ("b", "2"))


@pytest.mark.parametrize("single", [True, False])
def test_number_of_the_next_conversation_is_known_before(single: bool) -> None:
    numbers = ConversationNumbers(single=single)
    for expected in (1, 2, 3):
        assert numbers.next_number == expected
        assert numbers.next_number == numbers.new()
    assert numbers.of_request(POST) == (3 if single else 4)


KEPT = kept_exchanges()


@pytest.mark.parametrize("name", KEPT)
def test_exchange_has_the_lines_that_are_kept(name: str) -> None:
    """`python -m tests.core.trace.exchanges` writes them again."""
    exchange, _, side = name.rpartition(", at a ")
    assert lines_of(exchange, single=side == "client") == KEPT[name]


def test_kept_exchanges_are_all_at_both_sides() -> None:
    sides = [f"{name}, at a {side}" for name in EXCHANGES for side in ("client", "server")]
    assert list(KEPT) == sides
