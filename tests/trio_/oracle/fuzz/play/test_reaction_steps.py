"""Steps that react to the server: its questions, pages, rounds, tasks and subscriptions."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.oracle.fuzz.play._reaction_steps import REACTION_STEPS
from mcp_trio.oracle.fuzz.play._unknown import INVENTED_CURSOR
from tests.trio_.oracle.fuzz.memory_target import NEW, OLD, answers, conversation, sent_with
from tests.trio_.oracle.fuzz.play.stub_play import stub_call, stub_list, stub_play_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trio.testing import MockClock

Json = dict[str, Any]
NO_CURSOR = "bm90IGEgY3Vyc29y"


def result(message: Json, **members: Any) -> Json:
    return {"jsonrpc": "2.0", "id": message["id"], "result": members}


# -- Questions -------------------------------------------------------------------------------------


def asks(message: Json) -> Iterator[Json]:
    """Yield what a server sends that asks two questions after the handshake."""
    yield from answers(message)
    if message.get("method") == "notifications/initialized":
        meta = {"_meta": {"progressToken": "t"}}
        yield {"jsonrpc": "2.0", "id": 1, "method": "roots/list", "params": meta}
        yield {"jsonrpc": "2.0", "id": 2, "method": "acme/ask", "params": {}}


def responses(session: Any) -> list[Json]:
    return [each for each in session.said if "method" not in each]


@pytest.mark.parametrize(("place", "count"), [(0, 1), (1, 0), (2, 1)])
async def test_progress_is_for_a_question_with_a_token(
    place: int, count: int, autojump_clock: MockClock
) -> None:
    session = await conversation(("progress", place), respond=asks)
    told = [each["params"] for each in sent_with(session, "notifications/progress")]
    assert told == [{"progressToken": "t", "progress": 1}] * count
    assert not sent_with(await conversation(("progress", 0)), "notifications/progress")


@pytest.mark.parametrize(
    ("how", "ids", "members", "is_misled"),
    [
        ("right", [1], {"result"}, False),
        ("error", [1], {"error"}, False),
        ("wrong", [1], {"result"}, True),
        ("id", ["1-other"], {"result"}, True),
        ("twice", [1, 1], {"result"}, False),
    ],
)
async def test_question_is_answered_as_the_step_says(
    how: str, ids: list[Any], members: set[str], is_misled: bool, autojump_clock: MockClock
) -> None:
    session = await conversation(("respond", 0, how), respond=asks)
    found = responses(session)[: len(ids)]
    assert [each["id"] for each in found] == ids
    assert all(each.keys() - {"jsonrpc", "id"} == members for each in found)
    roots = found[0].get("result", {}).get("roots")
    assert isinstance(roots, list) is (how in ("right", "id", "twice"))
    assert session.is_misled is is_misled


@pytest.mark.parametrize(("place", "id"), [(0, 1), (1, 2), (2, 1)])
async def test_place_chooses_the_question(place: int, id: int, autojump_clock: MockClock) -> None:
    session = await conversation(("respond", place, "right"), respond=asks)
    first = responses(session)[0]
    assert first["id"] == id
    assert ("error" in first) is (id == 2)  # no client serves it


async def test_question_that_does_not_come_is_not_waited_for_long(
    autojump_clock: MockClock,
) -> None:
    began = trio.current_time()
    session = await conversation(("respond", 0, "right"))
    assert responses(session) == []
    assert trio.current_time() - began < 1.0


# -- Pages -----------------------------------------------------------------------------------------


def pages(count: int, *, is_circle: bool = False) -> Any:
    """Return a server's answers whose list has so many pages, or goes round in them."""

    def respond(message: Json) -> Iterator[Json]:
        if message.get("method") != "tools/list":
            yield from answers(message)
            return
        page = int(message.get("params", {}).get("cursor", "0").replace(NO_CURSOR, "0"))
        following = (page + 1) % count if is_circle else page + 1
        more = {"nextCursor": str(following)} if is_circle or following < count else {}
        yield result(message, tools=[], **more)

    return respond


def cursors(session: Any) -> list[Any]:
    return [each.get("params", {}).get("cursor") for each in sent_with(session, "tools/list")]


FIRST = ("page", "tools/list", "first")


@pytest.mark.parametrize(
    ("hows", "count", "asked"),
    [
        (["first"], 3, [None, "1"]),
        (["all"], 3, [None, "1", "2"]),
        (["all"], 1, [None]),
        (["all"], 60, [None, *map(str, range(1, 51))]),
        (["whole"], 60, [None, *map(str, range(1, 60))]),
        (["rest"], 3, []),  # of no page
        (["first", "rest"], 4, [None, "1", "2", "3"]),
        (["first", "stale"], 4, [None, "1", "1"]),
        (["invented"], 3, [None, NO_CURSOR]),
        (["stale"], 1, [None, NO_CURSOR]),
        (["other"], 3, []),  # there is no other client
    ],
)
async def test_pages_are_followed_as_the_step_says(
    hows: list[str], count: int, asked: list[Any], autojump_clock: MockClock
) -> None:
    steps = [("page", "tools/list", how) for how in hows]
    assert cursors(await conversation(*steps, respond=pages(count))) == asked


async def test_pages_in_a_circle_are_followed_twice(autojump_clock: MockClock) -> None:
    """The second round shows that they go round for ever."""
    found = cursors(await conversation(("page", "tools/list", "all"), respond=_circle))
    assert found == [None, "1", "2", "0", "1", "2", "0"]


_circle = pages(3, is_circle=True)


# -- Rounds ----------------------------------------------------------------------------------------


def rounds(**members: Any) -> Any:
    """Return a server's answers that requires input for each call without it."""

    def respond(message: Json) -> Iterator[Json]:
        params = message.get("params", {})
        if message.get("method") != "tools/call":
            yield from answers(message)
        elif "requestState" in params or "inputResponses" in params:
            yield result(message, resultType="complete", content=[])
        else:
            yield result(message, resultType="input_required", **members)

    return respond


CALL = ("call", "add", {"a": 1}, ())
ASKED = {"roots": {"method": "roots/list"}}


@pytest.mark.parametrize(
    ("how", "members", "given", "row"),
    [
        ("right", {"inputRequests": ASKED, "requestState": "s"}, {"inputResponses", "s"}, ""),
        ("right", {"requestState": "s"}, {"s"}, ""),
        ("right", {"inputRequests": ASKED}, {"inputResponses"}, ""),
        ("empty", {"inputRequests": ASKED, "requestState": "s"}, {"s"}, ""),
        ("right", {"inputRequests": [], "requestState": 5}, set(), ""),
        ("other", {"inputRequests": ASKED, "requestState": "s"}, {"inputResponses", "s"}, ""),
        ("altered", {"requestState": "secret"}, {"different"}, "MRTR-13"),
        ("foreign", {"requestState": "secret"}, {"different"}, "MRTR-13"),
        ("foreign", {"inputRequests": ASKED}, {"inputResponses"}, ""),
    ],
)
async def test_request_is_sent_again_with_input_and_state(
    how: str, members: Json, given: set[str], row: str, autojump_clock: MockClock
) -> None:
    """A state that the server didn't give must be rejected, if it protects anything."""
    session = await conversation(CALL, ("retry", 0, how), revision=NEW, respond=rounds(**members))
    first, *again = [each["params"] for each in sent_with(session, "tools/call")]
    [params] = again[:1]
    assert (params["name"], params["arguments"]) == ("add", {"a": 1})
    assert "inputResponses" not in first
    state = params.get("requestState")
    shown = {"inputResponses"} & params.keys()
    if state is not None:
        shown |= {"s" if state == "s" else "different"}
        assert state != "secret"
    assert shown == given
    found = [each for each in session.found if each.row == "MRTR-13"]
    assert [(each.row, each.is_certain) for each in found] == ([(row, False)] if row else [])


async def test_retry_without_a_round_does_nothing(autojump_clock: MockClock) -> None:
    assert not sent_with(await conversation(("retry", 0, "right"), revision=NEW), "tools/call")


# -- Subscriptions and tasks -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("revision", "wanted", "sent"),
    [
        (NEW, {"resourceSubscriptions": ["a:b"]}, ["subscriptions/listen"]),
        (NEW, 5, ["subscriptions/listen"]),
        (OLD, {"resourceSubscriptions": ["a:b", "c:d"]}, ["a:b", "c:d"]),
        (OLD, {}, []),
        (OLD, 5, []),
    ],
)
async def test_subscription_is_that_of_the_revision(
    revision: str, wanted: Any, sent: list[str], autojump_clock: MockClock
) -> None:
    session = await conversation(("listen", wanted), revision=revision)
    listens = sent_with(session, "subscriptions/listen")
    assert all(each["params"]["notifications"] == wanted for each in listens)
    uris = [each["params"]["uri"] for each in sent_with(session, "resources/subscribe")]
    assert [*(each["method"] for each in listens), *uris] == sent


def tasks(status: str = "working", **more: Any) -> Any:
    """Return a server's answers that makes each call a task of this status."""
    made = 0

    def respond(message: Json) -> Iterator[Json]:
        nonlocal made
        method = message.get("method")
        if method == "tools/call":
            made += 1
            yield result(message, task={"taskId": f"t{made}", "status": "working"})
        elif method == "tasks/get":
            task = {"taskId": message["params"]["taskId"], "status": status}
            yield result(message, **task, **more)
        else:
            yield from answers(message)

    return respond


@pytest.mark.parametrize(
    ("act", "place", "method", "params"),
    [
        ("get", 0, "tasks/get", {"taskId": "t2"}),
        ("get", 1, "tasks/get", {"taskId": "t1"}),
        ("get", 2, "tasks/get", {"taskId": "t2"}),
        ("cancel", 0, "tasks/cancel", {"taskId": "t2"}),
        ("result", 0, "tasks/result", {"taskId": "t2"}),
        ("unknown", 0, "tasks/get", {"taskId": "00000000-no-such-task"}),
        ("list", 0, "tasks/list", None),
        (
            "update",
            0,
            "tasks/update",
            {
                "taskId": "t2",
                "inputResponses": {"mcp-trio-fuzz-none": {"action": "cancel"}},
            },
        ),
        ("other", 0, "", None),
    ],
)
async def test_step_of_a_task_is_for_one_of_those_made(
    act: str, place: int, method: str, params: Any, autojump_clock: MockClock
) -> None:
    """The last one is the first place."""
    session = await conversation(CALL, CALL, ("task", place, act), respond=tasks())
    found = [each for each in session.said if str(each.get("method")).startswith("tasks/")]
    assert [(each["method"], each.get("params")) for each in found][:1] == (
        [(method, params)] if method else []
    )


@pytest.mark.parametrize("act", ["get", "follow", "cancel"])
async def test_without_a_task_nothing_is_asked_of_one(act: str, autojump_clock: MockClock) -> None:
    session = await conversation(("task", 0, act))
    assert not [each for each in session.said if str(each.get("method")).startswith("tasks/")]


@pytest.mark.parametrize("status", ["completed", "failed", "cancelled"])
async def test_task_is_followed_to_its_end_and_its_result(
    status: str, autojump_clock: MockClock
) -> None:
    session = await conversation(CALL, ("task", 0, "follow"), respond=tasks(status))
    methods = [str(each.get("method")) for each in session.said]
    assert methods.count("tasks/get") == 1
    assert methods[methods.index("tasks/get") + 1] == "tasks/result"


async def test_task_that_never_ends_is_followed_for_a_moment(autojump_clock: MockClock) -> None:
    """It is asked 25 times a second, and given the input that it requires."""
    began = trio.current_time()
    session = await conversation(
        CALL, ("task", 0, "follow"), respond=tasks("input_required", inputRequests=ASKED)
    )
    count = len(sent_with(session, "tasks/get"))
    assert 18 <= count <= 21
    updates = [each["params"] for each in sent_with(session, "tasks/update")]
    assert len(updates) == count
    assert all(each["inputResponses"].keys() == {"roots"} for each in updates)
    assert not sent_with(session, "tasks/result")
    assert 0.7 < trio.current_time() - began < 2.0


# -- Steps with a session that is a table ----------------------------------------------------------


async def reacted(name: str, *arguments: Any, **more: Any) -> Any:
    """Play one step, and return the session. `seconds` is how long it took."""
    other = more.pop("other", None)
    values: dict[str, Any] = {"rounds": [], "tasks": [], "cursors": {}, **more}
    play: Any = stub_play_of(**values)
    play.clients.other = other
    began = trio.current_time()
    await REACTION_STEPS[name](play, *arguments)
    play.session.seconds = trio.current_time() - began
    return play.session


async def test_question_is_waited_for_as_long_as_it_may_come(autojump_clock: MockClock) -> None:
    """A request that waits is the reason to wait. Without one nothing comes."""
    assert (await reacted("respond", 0, "right")).seconds == 0.0
    open_ = {1: stub_list()}
    assert (await reacted("respond", 0, "right", open=open_)).seconds == pytest.approx(0.3)


@pytest.mark.parametrize("how", ["stale", "invented"])
async def test_invented_cursor_is_waited_for_and_must_not_be_served(
    how: str, autojump_clock: MockClock
) -> None:
    """The first page shows whether the list has any others."""
    answer: dict[str, Any] = {"result": {"tools": []}}
    session = await reacted("page", "tools/list", how, replies={"tools/list": (1.0, answer)})
    assert session.seconds == pytest.approx(2.0)
    assert [each.get("params") for each in session.sent] == [None, {"cursor": INVENTED_CURSOR}]


def round_of(state: Any) -> Any:
    answer = {"result": {"resultType": "input_required", "requestState": state}}
    return stub_call(answer=answer)


@pytest.mark.parametrize(
    ("others", "state"),
    [
        (["b"], "b"),
        (["b", "c"], "c"),
        ([5], "a"),
        ([], "a"),
        (None, "a"),
    ],
)
async def test_state_of_the_other_client_is_its_last_one(
    others: list[Any] | None, state: str, autojump_clock: MockClock
) -> None:
    other = None if others is None else SimpleNamespace(rounds=[round_of(each) for each in others])
    session = await reacted("retry", 0, "other", rounds=[round_of("a")], other=other)
    [sent] = session.sent
    assert sent["params"]["requestState"] == state
    assert session.rounds == []


@pytest.mark.parametrize("answer", [None, {"error": {}}, {"result": 5}])
async def test_round_without_a_result_is_not_retried(
    answer: Any, autojump_clock: MockClock
) -> None:
    assert (await reacted("retry", 0, "right", rounds=[stub_call(answer=answer)])).sent == []
    assert (await reacted("retry", 0, "right")).sent == []


@pytest.mark.parametrize(
    ("act", "place", "tasks", "others", "method", "id"),
    [
        ("get", 0, ["a", "b"], None, "get", "b"),
        ("get", 1, ["a", "b"], None, "get", "a"),
        ("get", 2, ["a", "b"], None, "get", "b"),
        ("cancel", 0, ["a"], None, "cancel", "a"),
        ("update", 0, ["a"], None, "update", "a"),
        ("list", 0, ["a"], None, "list", None),
        ("unknown", 0, [], None, "get", "00000000-no-such-task"),
        ("other", 0, ["a"], ["c"], "get", "a"),
        ("other", 0, ["a"], None, None, None),
        ("other", 0, ["a"], [], None, None),
        ("get", 0, [], None, None, None),
    ],
)
async def test_task_is_the_one_that_the_step_names(
    act: str,
    place: int,
    tasks: list[str],
    others: list[str] | None,
    method: str | None,
    id: str | None,
    autojump_clock: MockClock,
) -> None:
    """With the other client's list of tasks, the step asks for one of them."""
    other = None if others is None else SimpleNamespace(tasks=others)
    session = await reacted("task", place, act, tasks=tasks, other=other)
    if method is None:
        assert session.sent == []
        return
    [sent] = session.sent
    assert sent["method"] == f"tasks/{method}"
    params = sent.get("params", {})
    assert params.get("taskId") == ("c" if act == "other" else id)
    assert ("inputResponses" in params) is (act == "update")


@pytest.mark.parametrize(
    ("answer", "revision", "methods"),
    [
        ({"result": {"status": "completed"}}, OLD, ["tasks/get", "tasks/result"]),
        ({"result": {"status": "failed"}}, OLD, ["tasks/get", "tasks/result"]),
        ({"result": {"status": "cancelled"}}, OLD, ["tasks/get", "tasks/result"]),
        ({"result": {"status": "completed"}}, NEW, ["tasks/get"]),
        ({"error": {}}, OLD, ["tasks/get"]),
        (None, OLD, ["tasks/get"]),
    ],
)
async def test_task_is_followed_to_its_end(
    answer: Any, revision: str, methods: list[str], autojump_clock: MockClock
) -> None:
    replies = {} if answer is None else {"tasks/get": (0.1, answer)}
    session = await reacted("task", 0, "follow", tasks=["a"], revision=revision, replies=replies)
    assert [each["method"] for each in session.sent] == methods
    assert all(each["params"] == {"taskId": "a"} for each in session.sent)


@pytest.mark.parametrize(
    ("asked", "updates"),
    [({"q": {"method": "roots/list"}}, True), ({}, False), (5, False), (None, False)],
)
async def test_task_that_asks_gets_its_input_while_it_is_followed(
    asked: Any, updates: bool, autojump_clock: MockClock
) -> None:
    answer = {"result": {"status": "working", "inputRequests": asked}}
    replies = {"tasks/get": (0.1, answer), "tasks/update": (0.1, {"result": {}})}
    session = await reacted("task", 0, "follow", tasks=["a"], revision=NEW, replies=replies)
    given = [each["params"] for each in session.sent if each["method"] == "tasks/update"]
    assert bool(given) is updates
    assert all(each["inputResponses"].keys() == {"q"} for each in given)
    assert 0.8 <= session.seconds < 1.0  # it goes on until its time is over
