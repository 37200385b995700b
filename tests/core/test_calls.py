"""`deliver` and `Listing`: what a client does with answers."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import (
    ConnectionClosed,
    ConnectionLost,
    ErrorReceived,
    Event,
    InputRequested,
    Listing,
    MessageRejected,
    PeerError,
    Pending,
    ProgressReceived,
    RemoteProtocolError,
    ResultReceived,
    deliver,
)
from mcp_core.types import ListToolsResult, Tool


class Waiting(Pending):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.ends: list[tuple[Any, BaseException | None]] = []
        self.heard: list[float] = []

    def end(self, result: Any, error: BaseException | None) -> None:
        self.ends.append((result, error))

    def progressed(self, event: ProgressReceived) -> None:
        self.heard.append(event.progress)


def after(event: Event, waiting: Waiting) -> Waiting:
    deliver(event)
    return waiting


def test_a_result() -> None:
    waiting = Waiting()
    assert after(ResultReceived(1, "r", waiting), waiting).ends == [("r", None)]


def test_an_error() -> None:
    waiting, error = Waiting(), PeerError(1, "no")
    assert after(ErrorReceived(1, error, waiting), waiting).ends == [(None, error)]


def test_progress() -> None:
    waiting = Waiting()
    assert after(ProgressReceived(1, 0.5, None, None, waiting), waiting).heard == [0.5]
    assert waiting.ends == []


def test_a_question_that_nobody_answers() -> None:
    waiting = Waiting()
    ((result, error),) = after(InputRequested(1, {}, None, waiting), waiting).ends
    assert result is None
    assert isinstance(error, RemoteProtocolError)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (None, "the client was closed"),
        (ConnectionLost("the server closed the connection"), "the server closed"),
    ],
)
def test_the_end_of_the_conversation_ends_each_call_with_an_exception_of_its_own(
    error: ConnectionLost | None, says: str
) -> None:
    one, other = Waiting(), Waiting()
    deliver(ConnectionClosed([one, other], error))
    ((_, first),), ((_, second),) = one.ends, other.ends
    assert isinstance(first, ConnectionLost)
    assert isinstance(second, ConnectionLost)
    assert first is not second
    assert str(first).startswith(says)


def test_other_events_concern_nobody() -> None:
    deliver(MessageRejected(RemoteProtocolError("x")))


def page(*names: str, cursor: str | None = None) -> ListToolsResult:
    tools = [Tool(name=name, input_schema={"type": "object"}) for name in names]
    return ListToolsResult(tools=tools, next_cursor=cursor)


@pytest.mark.requirement("PAGE-2", "PAGE-3", "PAGE-4", "PAGE-5")
def test_a_listing_goes_on_until_there_is_no_cursor() -> None:
    listing: Listing[Tool] = Listing("tools/list", "tools")
    assert repr(listing) == "<Listing of tools/list, 0 items, not at the end>"
    asked = []
    for answer in (page("a", cursor="x y"), page(cursor=""), page("b", "c")):
        assert listing.wanted
        asked.append(listing.params)
        listing.take(answer)
    assert asked == [None, {"cursor": "x y"}, {"cursor": ""}]
    assert not listing.wanted
    assert [tool.name for tool in listing.items] == ["a", "b", "c"]
    assert repr(listing) == "<Listing of tools/list, 3 items>"


def test_a_cursor_that_comes_again_is_no_end() -> None:
    listing: Listing[Tool] = Listing("tools/list", "tools")
    listing.take(page("a", cursor="1"))
    listing.take(page("b", cursor="2"))
    with pytest.raises(RemoteProtocolError, match="do not come to an end"):
        listing.take(page("c", cursor="1"))


def test_a_listing_has_a_longest() -> None:
    listing: Listing[Tool] = Listing("tools/list", "tools")
    for number in range(10_000):
        listing.take(page(cursor=str(number)))
    with pytest.raises(RemoteProtocolError, match="tools/list"):
        listing.take(page(cursor="one more"))
