"""A trace has exactly what crossed: each message, in each direction, in its order."""

from __future__ import annotations

import tempfile
from functools import partial
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from hypothesis import given
from hypothesis import strategies as st

from mcp_core.adapters import Recording
from mcp_core.http import Body, End, Head, RequestHead
from mcp_core.trace import TraceLine
from tests.core.adapters.test_recorder import open_file, read_lines
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.adapters import Recorder

    Sender = Literal["client", "server"]

JSON: Final = (b"content-type", b"application/json")
EVENTS: Final = (b"content-type", b"text/event-stream; charset=utf-8")
POST: Final = RequestHead(b"POST", b"/mcp", [JSON])
# A trace with secrets hides none of them.
SECRETS: Final = [b'{"taskId":"0f5e2c1a3b7d"}', b'{"requestState":"s"}', b'{"action":"accept"}']
TEXTS: Final = st.text(max_size=30).map(str.encode) | st.sampled_from([*SECRETS, b"x" * 9_000])
# Bytes that are not UTF-8 are kept in base64.
MESSAGES: Final = (TEXTS | st.binary(max_size=60)).map(
    lambda data: data.translate(None, b"\r\n").lstrip(b" \0\xef\xbb\xbf")
)
EVENT_TEXTS: Final = TEXTS.map(lambda data: data.translate(None, b"\r\n\0").lstrip(b" "))


def record(play: Callable[[Recorder], None], **options: Any) -> list[TraceLine]:
    """Return the lines of the trace of what `play` records."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "x"
        recorder = open_file(Recording(path=path, with_secrets=True), **options)
        try:
            play(recorder)
        finally:
            recorder.close()
        return read_lines(path)


def messages(lines: list[TraceLine], sender: Sender) -> list[bytes]:
    return [line.message for line in lines if line.sender == sender and line.message is not None]


def pieces_of(data: st.DataObject, whole: bytes) -> list[bytes]:
    """Return `whole`, cut at some places, without empty pieces."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    pieces = [whole[start:end] for start, end in pairwise([0, *cuts, len(whole)])]
    return [piece for piece in pieces if piece]


@fewer_examples(5)
@given(st.lists(MESSAGES), st.lists(MESSAGES), st.data())
def test_lines_of_a_stream_are_read_back(
    sent: list[bytes], received: list[bytes], data: st.DataObject
) -> None:
    """The bytes arrive in arbitrary pieces, some with CRLF, and each line is one message again."""
    ours = pieces_of(data, b"".join(line + b"\n" for line in sent))
    theirs = pieces_of(data, b"".join(line + b"\r\n" for line in received))

    def play(recorder: Recorder) -> None:
        stream = recorder.stream()
        for out, into in zip_longest(ours, theirs):
            if out is not None:
                stream.sent(out)
            if into is not None:
                stream.received(into)

    lines = record(play)
    assert messages(lines, "client") == sent
    assert messages(lines, "server") == received


class DrawnExchange:
    """A drawn exchange: its messages, and the steps in which a recorder gets them."""

    def __init__(self, data: st.DataObject) -> None:
        self.request = data.draw(MESSAGES)
        self.responses: list[bytes] = []
        self.is_whole = data.draw(st.booleans())
        self.steps: list[Callable[[], None]] = []
        if not self.is_whole:
            for piece in pieces_of(data, self.request):
                self.steps.append(partial(self._add_to_request, piece, end=False))
            self.steps.append(partial(self._add_to_request, b"", end=True))
        if data.draw(st.booleans()):
            self.responses = data.draw(st.lists(EVENT_TEXTS.filter(bool), max_size=3))
            body = b"".join(b"data: " + each + b"\n\n" for each in self.responses)
            head = Head(200, [EVENTS])
        else:
            body = data.draw(MESSAGES)
            self.responses = [body] if body else []
            head = Head(200, [JSON])
        actions = [head, *map(Body, pieces_of(data, body)), End()]
        cut = data.draw(st.integers(1, len(actions) - 1))
        self.steps += [partial(self._respond, part) for part in (actions[:cut], actions[cut:])]

    def begin(self, recorder: Recorder) -> None:
        self.record = recorder.begin(POST, self.request if self.is_whole else None, "1.1")

    def _add_to_request(self, piece: bytes, *, end: bool) -> None:
        self.record.request_data(piece, end=end)

    def _respond(self, actions: list[Any]) -> None:
        self.record.response(actions)


@fewer_examples(5)
@given(st.data(), st.integers(1, 4), st.sampled_from(["client", "server"]))
def test_messages_of_http_exchanges_are_read_back(
    data: st.DataObject, count: int, observer: str
) -> None:
    """Exchanges run interleaved, and each exchange number gathers its own request and responses."""
    exchanges = [DrawnExchange(data) for _ in range(count)]

    def play(recorder: Recorder) -> None:
        for exchange in exchanges:
            exchange.begin(recorder)
        while under_way := [exchange for exchange in exchanges if exchange.steps]:
            data.draw(st.sampled_from(under_way)).steps.pop(0)()

    lines = record(play, observer=observer, transport="http")
    for number, exchange in enumerate(exchanges, 1):
        found = [line for line in lines if line.exchange == number]
        assert b"".join(messages(found, "client")) == exchange.request
        assert messages(found, "server") == exchange.responses
        assert [line.end for line in found if line.end] == ["complete"]
