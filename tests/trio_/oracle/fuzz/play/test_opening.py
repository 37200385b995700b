"""The beginning of a conversation: which revision the server selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.fuzz._revisions import UNKNOWN_REVISION
from mcp_trio.oracle.fuzz.play._opening import (
    _was_served_early,
    _wrong_version,
    open_conversation,
)
from mcp_trio.oracle.fuzz.play._player import Player
from tests.trio_.oracle.fuzz.memory_http import HttpResponse, played_over_http, response_to
from tests.trio_.oracle.fuzz.memory_target import NEW, OLD, MemoryTarget, answers, same_each_time
from tests.trio_.oracle.fuzz.play.stub_play import stub_call, stub_list, stub_play_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def chooses(version: str) -> Callable[[Mapping[str, Any]], HttpResponse]:
    """Return the behaviour of a server that selects this revision."""

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        response = response_to(message)
        if message.get("method") == "initialize":
            return response._replace(body=response.body.replace(OLD.encode(), version.encode()))
        return response

    return respond


@pytest.mark.parametrize(("version", "rows"), [("2199-01-01", ["LIFE-4"]), (OLD, [])])
async def test_revision_that_does_not_exist_must_not_be_selected(
    autojump_clock: Any, version: str, rows: list[str]
) -> None:
    outcome, _ = await played_over_http(chooses(version), [("open", OLD, "unknown", "all")])
    assert [each.row for each in outcome.faults if each.row == "LIFE-4"] == rows


@pytest.mark.parametrize(
    ("version", "revision", "notes"),
    [
        (OLD, OLD, 1),
        ("2025-06-18", "2025-06-18", 1),  # the client goes on in it
        ("1999-12-31", OLD, 0),  # a client disconnects
    ],
)
async def test_conversation_goes_on_in_the_revision_that_the_server_selects(
    autojump_clock: Any, version: str, revision: str, notes: int
) -> None:
    """Then it serves no other case, which would be for the requested revision."""
    received: list[Any] = []

    def respond(message: Mapping[str, Any]) -> Any:
        received.append(message.get("method"))
        for each in answers(message):
            if message.get("method") == "initialize":
                each["result"]["protocolVersion"] = version
            yield each

    session = await MemoryTarget(same_each_time(respond)).open()
    await Player(probes=False).play([("open", OLD, "whole", "all")], session)
    assert session.revision == revision
    assert received.count("notifications/initialized") == notes
    assert session.is_open is bool(notes)
    assert session.spent is (version != OLD)
    await session.aclose()


# -- Each way of opening ---------------------------------------------------------------------------


class OpeningJudge:
    """A judge that only notes a server's revision."""

    def __init__(self) -> None:
        self.versions: list[str] = []

    def add_server_version(self, version: str) -> None:
        self.versions.append(version)


def opening_play(revision: str = "", **more: Any) -> Any:
    """Return a play without a conversation, whose server selects the oldest known revision."""
    answer = {"result": more.pop("result", {"protocolVersion": OLD})}
    more = {"judge": OpeningJudge(), "offers": "", "is_open": False, "is_stateful": True, **more}
    params: dict[str, Any] = {"initialize_params": lambda asked: {"protocolVersion": asked}}
    replies = {"initialize": (1.0, answer), **more.pop("replies", {})}
    return stub_play_of(revision=revision, replies=replies, **params, **more)


@pytest.mark.parametrize(
    ("how", "asked", "sent", "is_open", "is_spent"),
    [
        ("whole", OLD, ["initialize", "notifications/initialized"], True, False),
        ("none", None, [], False, True),
        ("half", OLD, ["initialize"], False, True),
        ("late", OLD, ["tools/list", "initialize", "notifications/initialized"], True, True),
        (
            "twice",
            *(OLD, ["initialize", "notifications/initialized", "initialize"], True, True),
        ),
        ("unknown", UNKNOWN_REVISION, ["initialize", "notifications/initialized"], True, False),
    ],
)
async def test_opening_sends_what_its_kind_says(
    how: str,
    asked: str | None,
    sent: list[str],
    is_open: bool,
    is_spent: bool,
    autojump_clock: Any,
) -> None:
    """An early request may get no response, and is waited for shortly."""
    play = opening_play()
    await open_conversation(play, OLD, how, "none")
    session = play.session
    assert [each["method"] for each in session.sent] == sent
    assert (session.is_open, session.spent) == (is_open, is_spent)
    assert (session.revision, session.offers, session.judge.versions) == (OLD, "none", [])
    first = [each for each in session.sent if each["method"] == "initialize"][:1]
    assert [each["params"]["protocolVersion"] for each in first] == [asked] * bool(first)
    seconds = {"none": 0.0, "late": 1.3}.get(how, 1.0)
    assert trio.current_time() == pytest.approx(seconds)
    assert play.selected == ({OLD} if first else set())
    assert session.found == []


async def test_opening_is_whole_and_offers_all_unless_it_is_said() -> None:
    play = opening_play()
    await open_conversation(play, NEW)
    assert (play.session.revision, play.session.offers) == (NEW, "all")
    assert play.session.judge.versions == [NEW]
    assert (play.session.is_open, play.session.sent, play.session.spent) == (True, [], False)
    other = opening_play()
    await open_conversation(other, "1999-12-31")
    assert (other.session.revision, other.session.sent) == ("", [])


@pytest.mark.parametrize(
    ("before", "revision", "how", "sent", "offers"),
    [
        (OLD, OLD, "whole", [], ""),
        (OLD, OLD, "twice", ["initialize"], ""),
        (OLD, NEW, "twice", [], ""),
        (NEW, NEW, "twice", [], "none"),
        (NEW, NEW, "whole", [], "none"),
        (NEW, OLD, "whole", [], ""),
    ],
)
async def test_conversation_that_is_open_goes_on(
    before: str, revision: str, how: str, sent: list[str], offers: str, autojump_clock: Any
) -> None:
    play = opening_play(before)
    await open_conversation(play, revision, how, "none")
    assert [each["method"] for each in play.session.sent] == sent
    assert (play.session.revision, play.session.offers) == (before, offers)


@pytest.mark.parametrize(
    ("result", "selected", "is_open"),
    [
        ({"protocolVersion": OLD}, {OLD}, True),
        ({"protocolVersion": 5}, set(), False),
        ({}, set(), False),
        (None, set(), False),
    ],
)
async def test_opening_without_a_known_revision_ends_its_session(
    result: Any, selected: set[str], is_open: bool, autojump_clock: Any
) -> None:
    play = opening_play(result=result)
    await open_conversation(play, OLD)
    assert (play.selected, play.session.is_open, play.session.spent) == (
        *(selected, is_open),
        not is_open,
    )


@pytest.mark.parametrize(
    ("asked", "selected", "spoken", "sentence"),
    [
        (OLD, OLD, {OLD}, None),
        (OLD, "2025-06-18", set(), None),
        (OLD, "2025-06-18", {"2025-06-18"}, None),
        (
            *(OLD, "2025-06-18", {OLD}),
            f"{OLD} was requested, which the server speaks, and it answers 2025-06-18",
        ),
        (
            *(UNKNOWN_REVISION, UNKNOWN_REVISION, set()),
            f"{UNKNOWN_REVISION} was requested, which does not exist, and the server selects it",
        ),
    ],
)
def test_server_selects_a_requested_revision_that_it_speaks(
    asked: str, selected: str, spoken: set[str], sentence: str | None
) -> None:
    fault = _wrong_version(asked, selected, spoken, OLD)
    assert (None if fault is None else fault.sentence) == sentence
    assert fault is None or (fault.row, fault.method) == ("LIFE-4", "initialize")


@pytest.mark.parametrize(
    ("early", "at", "initialize", "is_stateful", "is_early"),
    [
        ({"result": {}}, 1, 2, True, True),
        ({"result": {}}, 2, 2, True, False),
        ({"result": {}}, 3, 2, True, False),
        ({"result": {}}, 3, None, True, True),
        ({"result": {}}, 1, 2, False, False),
        ({"error": {}}, 1, 2, True, False),
        (None, 0, 2, True, False),
    ],
)
def test_request_is_served_early_if_its_result_comes_before_the_handshake(
    early: Any, at: int, initialize: int | None, is_stateful: bool, is_early: bool
) -> None:
    request = stub_list(answer=early, answered_at=at)
    answer: Any = None if initialize is None else {"result": {}}
    opened = stub_call(method="initialize", answer=answer, answered_at=initialize or 0)
    play = stub_play_of(request, opened, is_stateful=is_stateful)
    assert _was_served_early(request, play.session) is is_early


async def test_early_result_is_a_fault_of_its_method(autojump_clock: Any) -> None:
    replies: dict[str, Any] = {"tools/list": (0.1, {"result": {}}), "initialize": (1.0, None)}
    play = opening_play(replies=replies)
    await open_conversation(play, OLD, "late")
    [fault] = play.session.found
    assert (fault.row, fault.method) == ("LIFE-10", "tools/list")
    assert fault.sentence == "the request tools/list has a result before initialize"
