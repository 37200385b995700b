"""Phrases: what each can draw, by going through all numbers that it can draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest

from mcp_trio.oracle.fuzz._case import CLIENT_MARKS, client_of, on_client, own_step
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.draw import _calls, _http, _requests, _second_client, _stress
from mcp_trio.oracle.fuzz.draw._choices import TASKS, CaseChoices
from mcp_trio.oracle.fuzz.play._stress_budget import MAX_CONNECTIONS, MAX_REQUESTS
from tests.harness.jsonrpc import D, E
from tests.trio_.oracle.fuzz.draw.every_draw import NEARLY_VALID, EachDraw, every_draw

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_trio.oracle.fuzz._case import Step

NONE = "mcp-trio-fuzz-none"
LIST_TOOLS = ("page", "tools/list", "all")
AGAIN: Step = ("request", "tools/list", {}, "int")
WAIT = ("wait",)


def tool(name: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "inputSchema": schema}


def choices(*names: str, **offered: Any) -> CaseChoices:
    """Return the choices of a server with these tools, whose arguments are always `{}`."""
    tools = [tool(name, a={"type": "string"}) for name in names]
    found = CaseChoices(Offers(revisions=[E, D], tools=tools, **offered), names)
    found.arguments = [("valid", NEARLY_VALID) for _ in names]  # type: ignore[misc]
    return found


def unique(rows: Iterable[Any]) -> list[Any]:
    """Return each row once, in order: rows have dictionaries, and so no hash."""
    found: list[Any] = []
    for row in rows:
        if row not in found:
            found.append(row)
    return found


def ends(rows: Iterable[list[Step]], *first: Step) -> list[Any]:
    """Return what follows the same first steps in each row."""
    found = unique(rows)
    assert all(row[: len(first)] == list(first) for row in found)
    return unique(row[len(first) :] for row in found)


def sorted_rows(rows: Iterable[Any]) -> list[Any]:
    return sorted(rows, key=repr)


def call(name: str, *extra: str) -> Step:
    return ("call", name, {}, extra)


# -- Requests --------------------------------------------------------------------------------------


def params_of(offered: CaseChoices, method: str, revision: str = D) -> list[Any]:
    """Return all params that can be drawn for a method."""
    [row] = [each for each in _requests.rows_of(revision) if each.name == method]

    def phrase(draw: Any, choices: CaseChoices, revision: str) -> list[Step]:
        return [("request", _requests._params_of(draw, choices, revision, row))]

    return unique(step[1] for [step] in every_draw(phrase, offered, revision))


def test_params_are_of_what_is_listed() -> None:
    """Prompts have all of their arguments or all but the last; a URI may be an invented one."""
    prompts: list[dict[str, Any]] = [
        {"name": "p", "arguments": [{"name": "a"}, {"name": "b"}, 5]},
        {"name": "q", "arguments": 5},
        {"name": "r"},
        {"name": 5},
    ]
    offered = choices(prompts=prompts, resources=[{"uri": "n:///1"}, {"uri": "n:///2"}, {}])
    assert params_of(offered, "tools/list") == [{}]
    assert params_of(offered, "prompts/get") == [
        {"name": "p", "arguments": {"a": {}}},
        {"name": "p", "arguments": {"a": {}, "b": {}}},
        {"name": "q", "arguments": {}},
        {"name": "r", "arguments": {}},
    ]
    for method in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        found = params_of(offered, method)
        assert found == [{"uri": uri} for uri in ("mcp-trio-fuzz://none", "n:///1", "n:///2")]
        assert params_of(choices(), method) == [{"uri": "mcp-trio-fuzz://none"}]
    assert params_of(offered, "logging/setLevel") == [{"level": NONE}, {}]
    assert params_of(choices(), "prompts/get") == [{}]


def test_requests_have_each_kind_of_id() -> None:
    found = every_draw(_requests.plain, choices(), D)
    assert {step[3] for step, *_ in found} == {"int", "digits", "text"}
    assert ends([row[1:] for row in found]) == [[WAIT], []]
    names = {step[1] for step, *_ in found}
    assert {"tools/list", "prompts/get", "logging/setLevel"} <= names
    assert names.isdisjoint({"initialize", "tools/call", "subscriptions/listen", "ping"})


def test_wrong_requests_have_no_effect() -> None:
    """Their params aren't chosen, so they could call or read anything."""
    found = unique(step for steps in every_draw(_requests.wrong, choices(), D) for step in steps)
    methods = {step[1] for step in found}
    assert methods.isdisjoint(_requests.WITH_EFFECT)
    assert {"acme/none", "a" * 200, "tools/List", "rpc.discover", "prompts/get"} <= methods
    assert {step[3] for step in found if step[1] == "acme/none"} == {"int", "digits", "text"}
    assert {step[3] for step in found if step[1] == "prompts/get"} == {"int"}


def test_odd_params_are_of_each_other_type() -> None:
    found = [step for steps in every_draw(_requests.odd_params, choices(), D) for step in steps]
    assert {step[1] for step in found} >= {"tools/call", "ping", "resources/read"}
    assert "initialize" not in {step[1] for step in found}
    of_ping = unique(step[2] for step in found if step[1] == "ping")
    assert of_ping == [82, "x", True, None, [], [1, 2], 1.5]


def test_requests_with_strange_meta_cancellations_bursts_and_notifications() -> None:
    """Each has all of its kinds, and a burst has 2 to 10 requests."""
    nothing = choices()
    found = every_draw(_requests.strange_meta, nothing, E)
    assert {step[4] for [step] in found} == {"absent", "old", "bare"}
    found = every_draw(_requests.cancelled, nothing, D)
    assert {(len(steps), steps[1]) for steps in found} == {
        (2, ("cancel", place)) for place in (-1, 0, 1)
    }
    found = every_draw(_requests.burst, nothing, D)
    assert {step[1] for [step] in found} == set(range(2, 11))
    found = every_draw(_requests.odd_notification, nothing, D)
    assert unique(step[2] for [step] in found) == [82, []]
    found = every_draw(_requests.strange_notification, nothing, D)
    names = ["notifications/acme", "ping", "tools/list", "notifications/initialized"]
    assert unique(step[1] for [step] in found) == names
    assert unique(step[2] for [step] in found) == ["absent", {"a": 1}]


def test_unknown_resource_is_read_after_the_lists() -> None:
    assert every_draw(_requests.unknown_resource, choices(), D) == [
        [
            ("page", "resources/list", "all"),
            ("page", "resources/templates/list", "all"),
            ("request", "resources/read", {"uri": "mcp-trio-fuzz://none"}, "int"),
        ]
    ]


def test_pages_are_walked_in_each_way() -> None:
    found = unique(step for [step] in every_draw(_requests.pages, choices(), D))
    assert len(found) == 4 * 4
    assert {step[2] for step in found} == {"all", "stale", "invented", "first"}


@pytest.mark.parametrize("has_prompts", [False, True])
@pytest.mark.parametrize("completes", [False, True])
def test_unknown_prompt_is_requested_after_the_list(has_prompts: bool, completes: bool) -> None:
    """One without its arguments, or a completion, only if the server has them."""
    offered = choices(
        prompts=[{"name": "p"}] * has_prompts,
        capabilities={D: {"completions": {}} if completes else {"prompts": {}}},
    )
    found = ends(every_draw(_requests.unknown_prompt, offered, D), ("page", "prompts/list", "all"))
    wanted: list[Any] = [("request", "prompts/get", {"name": NONE}, "int")]
    if has_prompts:
        wanted.append(("request", "prompts/get", {"name": "p", "arguments": {}}, "int"))
    if completes:
        ref = {"type": "ref/prompt", "name": NONE}
        params = {"ref": ref, "argument": {"name": "a", "value": ""}}
        wanted.append(("request", "completion/complete", params, "int"))
    assert sorted_rows(found) == sorted_rows([each] for each in wanted)


# -- Calls -----------------------------------------------------------------------------------------


def test_calls_ask_for_tasks_only_where_they_are_supported() -> None:
    found = every_draw(_calls.plain, choices("t"), D)
    extras = {step[3] for steps in found for step in steps if step[0] == "call"}
    assert extras == {
        *((), ("progress",), ("text",)),
        *(("unsupported task",), ("progress", "unsupported task")),
    }
    offered = choices("t")
    offered.task_tools = [0]
    found = every_draw(_calls.plain, offered, D)
    assert ("progress", "task") in {step[3] for steps in found for step in steps if len(step) > 3}
    one = call("t")
    assert [row for row in unique(found) if one in row] == [[LIST_TOOLS, one], [one, WAIT], [one]]


def test_unknown_tools_are_called_with_and_without_the_list() -> None:
    found = unique(every_draw(_calls.unknown_tool, choices(), D))
    names = [NONE, "", "a" * 300]
    calls: list[Step] = [
        ("request", "tools/call", {"name": name, "arguments": {}}, "int") for name in names
    ]
    wanted = [row for each in calls for row in ([each], [LIST_TOOLS, each])]
    assert sorted_rows(found) == sorted_rows(wanted)


def test_argument_that_is_left_out_is_a_required_one() -> None:
    """The others are valid, so that it is what the server has to notice."""
    offered = choices("t")
    arguments: Any = {"a": 1, "b": 2, "c": 3}
    offered.required = [(0, ["a", "b"])]

    def phrase(draw: Any, choices: CaseChoices, revision: str) -> list[Step]:
        draw.value = lambda strategy: arguments if strategy == "valid" else None
        return _calls.without_required(draw, choices, revision)

    found = ends(every_draw(phrase, offered, D), LIST_TOOLS)
    assert found == [
        [("call", "t", {"b": 2, "c": 3}, ())],
        [("call", "t", {"a": 1, "c": 3}, ())],
    ]
    assert arguments == {"a": 1, "b": 2, "c": 3}
    arguments = [1]
    assert ends(every_draw(phrase, offered, D), LIST_TOOLS) == [[("call", "t", [1], ())]]


def test_arguments_are_nearly_valid_where_nothing_else_is_wrong() -> None:
    step = ("call", "t", {"b": 1}, ())
    assert every_draw(_calls.nearly_valid, choices("t"), D) == [[step]]


def test_cancellations_are_of_calls_that_run() -> None:
    """A request after them shows that the server goes on."""
    offered = choices("t")
    one = call("t")
    assert unique(every_draw(_calls.cancelled, offered, D)) == [
        [call("t", "progress"), ("cancel", place), AGAIN] for place in (0, 1)
    ]
    assert unique(every_draw(_calls.cancelled_twin, offered, D)) == [
        [one, one, ("cancel", place), AGAIN, WAIT] for place in (0, 1)
    ]
    found = unique(every_draw(_calls.cancelled_among_others, offered, D))
    assert {row.count(one) for row in found} == {2, 3, 4}
    cancels = [[step[1] for step in row if step[0] == "cancel"] for row in found]
    assert {len(each) for each in cancels} == {1, 2}
    assert {place for each in cancels for place in each} == {-1, 0, 1, 2}
    assert all(row[-2:] == [AGAIN, WAIT] for row in found)


@pytest.mark.parametrize("names", [(), ("t",)])
def test_answers_to_the_server_follow_a_call_if_there_are_tools(names: tuple[str, ...]) -> None:
    offered = choices(*names)
    calls = [call(name) for name in names]
    assert unique(every_draw(_calls.responses, offered, D)) == [
        [*calls, ("respond", 0, how), ("progress", 0)] for how in ("right", "error", "wrong")
    ]
    assert unique(every_draw(_calls.input_rounds, offered, E)) == [
        [*calls, WAIT, ("retry", 0, how), WAIT, ("retry", 0, "right")]
        for how in ("right", "altered", "foreign", "empty")
    ]


def test_response_that_answers_nothing_has_another_id_or_comes_twice() -> None:
    assert unique(every_draw(_calls.stray_response, choices("t"), D)) == [
        [call("t"), ("respond", 0, how)] for how in ("id", "twice")
    ]


def test_subscription_is_to_lists_and_one_resource_that_may_not_exist() -> None:
    offered = choices(resources=[{"uri": "n:///1"}])
    found = ends(every_draw(_calls.subscription, offered, E))
    wanted = [row[0][1] for row in found]
    assert all(row == [("listen", row[0][1]), WAIT, ("cancel", 0)] for row in found)
    lists = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
    chosen = [{each for each in lists if row.get(each) is True} for row in wanted]
    assert len(unique(chosen)) == 8
    uris = unique(row.get("resourceSubscriptions") for row in wanted)
    assert sorted_rows(uris) == sorted_rows([None, ["mcp-trio-fuzz://none"], ["n:///1"]])
    without = [row for row in wanted if "resourceSubscriptions" not in row]
    assert len(unique(without)) == 8
    assert {"toolsListChanged": True, "resourcesListChanged": True} in without


def test_tool_is_called_again_after_a_subscription_is_cancelled() -> None:
    """Nothing more may arrive then."""
    with patch.object(_calls, "changing_calls", lambda *_: [call("t"), call("t")]):
        rows = every_draw(_calls.subscription, choices("t"), E)
    calls = [call("t"), call("t")]
    during = [*calls, WAIT, ("cancel", 0)]
    assert ends([row[1:] for row in rows], *during) == [[], [AGAIN, WAIT, *calls, WAIT]]


def test_calls_during_a_subscription_are_mostly_of_what_changes_something() -> None:
    offered = choices("a", "b")
    assert {
        (row[0][1], len(row))
        for row in every_draw(lambda draw, *_: _calls.changing_calls(draw, offered), offered, E)
    } == {(name, count) for name in ("a", "b") for count in (1, 2, 3, 4)}
    offered.changers = ["gone", "b"]
    rows = every_draw(lambda draw, *_: _calls.changing_calls(draw, offered), offered, E)
    assert all(len(unique(row)) == 1 for row in rows)
    of_a = sum(row[0][1] == "a" for row in rows)
    assert 0 < of_a < len(rows) / 4


def test_tasks_are_mostly_of_tools_that_allow_them() -> None:
    offered = choices("a", "b")
    offered.task_tools = [1]

    def phrase(draw: Any, choices: CaseChoices, revision: str) -> list[Step]:
        return [_calls.task_call(draw, choices)]

    found = [step for [step] in every_draw(phrase, offered, D)]
    assert unique(found) == [call("a", "unsupported task"), call("b", "task")]
    assert found.count(call("b", "task")) > found.count(call("a", "unsupported task"))
    offered.task_tools = []
    found = [step for [step] in every_draw(phrase, offered, D)]
    assert unique(found) == [call("a", "unsupported task"), call("b", "unsupported task")]


@pytest.mark.parametrize("names", [(), ("t",)])
def test_tasks_are_asked_for_in_each_way(names: tuple[str, ...]) -> None:
    offered = choices(*names)
    offered.task_tools = [*range(len(names))]
    started = [call("t", "task"), WAIT] if names else []

    with patch.object(_calls, "_TASK_ACTS", ("get",)):
        rows = every_draw(_calls.tasks, offered, D)
    found = [row[len(started) :] for row in rows if row[: len(started)] == started]
    assert {sum(step[0] == "task" for step in row) for row in found} == {1, 2, 3, 4}
    asked = [("task", 0, "get"), ("task", 1, "get")]
    wanted = [row for each in asked for row in ([each], [each, WAIT])]
    assert all(row in found for row in wanted)
    assert unique(step for row in found for step in row if step != WAIT) == asked


def test_followed_tasks_are_polled_to_their_ends() -> None:
    offered = choices("t")
    offered.task_tools = [0]
    found = unique(every_draw(_calls.followed_tasks, offered, D))
    assert found == [
        [*[call("t", "task")] * count, WAIT, *(("task", each, "follow") for each in range(count))]
        for count in (1, 2, 3)
    ]


def test_calls_hand_values_from_providers_to_users() -> None:
    offered = choices("use", "make")
    offered.handings = [type("Handing", (), {"providers": [1], "tool": 0})()]
    assert unique(every_draw(_calls.handed, offered, D)) == [
        [*[call("make"), WAIT] * made, *[call("use"), WAIT] * used]
        for made in (1, 2)
        for used in (1, 2, 3)
    ]


# -- HTTP ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "requests"),
    [
        ({}, [("tools/list", {})]),
        ({"resources": [{"uri": "n:///1"}]}, [("resources/read", {"uri": "n:///1"})]),
        ({"prompts": [{"name": "p"}]}, [("prompts/get", {"name": "p"})]),
        (
            {"prompts": [{"name": "p"}], "names": ["t"]},
            [("prompts/get", {"name": "p"}), ("tools/call", {"name": "t", "arguments": {}})],
        ),
    ],
)
def test_head_with_a_wrong_name_is_of_what_is_listed(
    offered: dict[str, Any], requests: list[tuple[str, Any]]
) -> None:
    names = offered.pop("names", ())
    found = unique(every_draw(_http.wrong_head, choices(*names, **offered), E))
    assert [step[2:] for [step] in found if step[1] == "name"] == requests
    others = {step[1:3] for [step] in found if step[1] != "name"}
    kinds = ("origin", "host", "accept", "type", "version", "method", "none")
    assert others == {(kind, "tools/list") for kind in kinds}


def test_head_of_a_session_may_be_a_ping() -> None:
    found = unique(every_draw(_http.wrong_head, choices("t"), D))
    kinds = ("origin", "host", "accept", "type", "version", "session")
    assert {step[1:3] for [step] in found} == {
        (kind, method) for kind in kinds for method in ("ping", "tools/list")
    }


def test_argument_in_a_head_is_wrong_after_the_list() -> None:
    offered = choices("a", "b")
    offered.mirrored_tools = [1]
    params = {"name": "b", "arguments": {}}
    assert ends(every_draw(_http.wrong_argument_head, offered, E), LIST_TOOLS) == [
        [("head", how, "tools/call", params)] for how in ("argument", "no-argument", "bad-argument")
    ]


def test_bodies_streams_and_ends_of_sessions() -> None:
    found = unique(every_draw(_http.half_bodies, choices(), D))
    halves = [[("half",)] * count for count in (1, 2, 3, 4)]
    assert sorted_rows(found) == sorted_rows([*halves, *([*row, ("release",)] for row in halves)])
    found = unique(every_draw(_http.standalone_stream, choices(), D))
    assert found == [[("get", how)] for how in ("stream", "resume", "unknown")]
    found = unique(every_draw(_http.ended_session, choices(), D))
    assert found == [[WAIT, ("delete", how), AGAIN] for how in ("own", "unknown")]


# -- Stress ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("http", [False, True])
@pytest.mark.parametrize("revision", [D, E])
def test_stress_is_within_its_budget(http: bool, revision: str) -> None:
    """Streams that are not read are released at the end of their phrase."""
    offered = choices()
    offered.http = http
    found = unique(every_draw(_stress.stressed, offered, revision))
    kinds = {"slow", "unread", "burst", "streams"} | ({"large", "heads", "half"} if http else set())
    steps = [step for row in found for step in row if step[0] != "release"]
    assert {step[0] for step in steps} == kinds
    streams = {step[1] for step in steps if step[0] == "streams"}
    assert streams == ({"listen"} if revision == E else {"get", "session"})
    method = "server/discover" if revision == E else "ping"
    limit = MAX_CONNECTIONS if http else MAX_REQUESTS
    assert ("burst", limit, method, {}) in steps
    counts = [step[-1] for step in steps if step[0] in ("streams", "heads")]
    assert all(1 <= count <= MAX_CONNECTIONS for count in counts)
    held = [row for row in found if row[0][0] in ("unread", "streams")]
    assert all(row[1:] == [("release",)] for row in held)


def test_stress_over_http_may_hold_a_few_connections_to_the_end() -> None:
    offered = choices()
    offered.http = True
    found = unique(every_draw(_stress.stressed, offered, D))
    kept = [row for row in found if row[-1] != ("release",) and row[0][0] in ("heads", "half")]
    assert {len(row) for row in kept} == {1, 2, 3, 4}
    assert {step for row in kept for step in row} == {("heads", 1), ("half",)}
    large = {row[0][1] for row in found if row[0][0] == "large" and row[1:] == []}
    assert large == {"header", "headers", "target", "announced"}


def test_heavy_messages_are_on_both_sides_of_4_mib() -> None:
    """That is a common limit for one message: the largest below it is still read."""
    found = [step for [step] in unique(every_draw(_stress.heavy, choices(), D))]
    sizes = [step[2] for step in found if step[:2] == ("large", "message")]
    limit = 4 * 1024 * 1024
    assert any(limit - 64 * 1024 < size < limit for size in sizes)
    assert limit + 1 in sizes
    assert {step[1] for step in found if step[0] == "deep"} == {"array", "object"}


# -- Two clients -----------------------------------------------------------------------------------


def other(*steps: Step) -> list[Step]:
    """Return the second client's steps."""
    return [on_client(1, step) for step in steps]


def test_one_client_subscribes_to_some_resources_at_most() -> None:
    """To the first ten of them, or to one of these, and to each list."""
    offered = choices("t", resources=[{"uri": f"n:///{number}"} for number in range(30)])
    rows = every_draw(_second_client._subscribed_beside, offered, E)
    wanted = unique(
        step[1]["resourceSubscriptions"] for row in rows for step in row if step[0] == "listen"
    )
    assert sorted({len(each) for each in wanted}) == [1, 10]
    uris = {uri for each in wanted for uri in each}
    assert uris == {f"n:///{number}" for number in range(10)}
    offered.uris = []
    lists = dict.fromkeys(("toolsListChanged", "promptsListChanged", "resourcesListChanged"), True)
    rows = every_draw(_second_client._subscribed_beside, offered, E)
    assert ends(row[:5] for row in rows) == [
        [
            *[("get", "stream"), *other(("get", "stream"))],
            *[("listen", lists), *other(("listen", {})), WAIT],
        ]
    ]
    assert unique(row[5:] for row in rows) == [
        [*[call("t")] * count, WAIT, *other(AGAIN, WAIT)] for count in (1, 2, 3, 4)
    ]


@pytest.mark.parametrize(
    ("revision", "offered", "absent", "present"),
    [
        (D, {}, "_states_of_the_other _levels_beside _marked_calls", "_without_session"),
        (D, {}, "_subscribed_beside", "_ended_beside _unknown_session _resumed_beside"),
        (D, {"names": ["t"]}, "_states_of_the_other _marked_prompts", "_levels_beside"),
        (E, {}, "_without_session _ended_beside _resumed_beside", "_steps_in_turn"),
        (E, {"names": ["t"]}, "_levels_beside _tasks_of_the_other", "_states_of_the_other"),
        (D, {"names": ["t"]}, "_subscribed_beside", "_marked_calls"),
        (
            D,
            {"names": ["t"], "resources": [{"uri": "n:///1"}]},
            "_tasks_of_the_other",
            "_subscribed_beside",
        ),
        (E, {"names": ["t"], "extension": True}, "_marked_prompts", "_tasks_of_the_other"),
        (
            D,
            {"prompts": [{"name": "p", "arguments": [{"name": "a"}]}], "prompts_declared": True},
            "_marked_calls",
            "_marked_prompts",
        ),
        (D, {"prompts": [{"name": "p"}], "prompts_declared": True}, "_marked_prompts", ""),
    ],
)
def test_clients_meet_where_the_server_offers_something(
    revision: str, offered: dict[str, Any], absent: str, present: str
) -> None:
    offered = dict(offered)
    declared: dict[str, Any] = {}
    if offered.pop("extension", False):
        declared["extensions"] = {TASKS: {}}
    if offered.pop("prompts_declared", False):
        declared["prompts"] = {}
    names = offered.pop("names", ())
    found = choices(*names, capabilities={revision: declared}, **offered)
    meetings = {each.__name__ for each in _second_client._meetings(found, revision)}
    assert meetings.isdisjoint(absent.split())
    assert meetings >= {*present.split(), "_steps_in_turn", "_cancelled_beside"}


def test_pages_are_at_the_cursor_of_the_other_client_or_around_its_own() -> None:
    wanted: list[list[Step]] = []
    for method in ("tools/list", "resources/list", "prompts/list"):
        first: Step = ("request", method, {}, "int")
        around = [first, WAIT, *other(("page", method, "all")), ("page", method, "rest")]
        wanted += [around, [("page", method, "first"), *other(("page", method, "other"))]]
    assert unique(every_draw(_second_client._cursors_of_the_other, choices(), D)) == wanted


def test_tasks_of_both_clients_are_equal_and_asked_for_by_both() -> None:
    offered = choices("t")
    offered.task_tools = [0]
    found = every_draw(_second_client._tasks_of_the_other, offered, D)
    wanted = []
    for count in (1, 2, 3):
        for act in ("get", "result", "cancel", "list"):
            started = [call("t", "task")] * count
            asked = [("task", 0, "other"), WAIT, ("task", 0, act), WAIT]
            wanted.append([*started, WAIT, *other(*started, WAIT, *asked), *asked])
    assert unique(row for row in found if row[0][3] == ("task",)) == wanted


def test_states_are_sent_back_by_the_other_client_or_each_by_its_own() -> None:
    """If both calls are equal, only the other one's state can show a fault."""
    offered = choices("t")
    retry = ("retry", 0, "right")
    pairs = [[("call", "t", {"a": mark}, ()) for mark in CLIENT_MARKS], [call("t"), call("t")]]
    mixed = [
        [mine, WAIT, *other(theirs, WAIT, ("retry", 0, "other"), WAIT), retry, WAIT]
        for mine, theirs in pairs
    ]
    [mine, theirs] = pairs[0]
    own = [
        *[LIST_TOOLS, *other(LIST_TOOLS), mine, WAIT, retry, WAIT],
        *other(theirs, WAIT, retry, WAIT),
        *[mine, WAIT, *other(theirs, WAIT), retry, WAIT, *other(retry, WAIT)],
    ]
    found = unique(every_draw(_second_client._states_of_the_other, offered, E))
    assert sorted_rows(found) == sorted_rows([*mixed, own])
    offered.text_tools = []
    assert unique(every_draw(_second_client._states_of_the_other, offered, E)) == mixed[1:]


@pytest.mark.parametrize(
    ("names", "step"), [(["t"], call("t")), ([], ("request", "tools/list", {}, "int"))]
)
def test_one_of_equal_requests_is_cancelled(names: list[str], step: Step) -> None:
    found = unique(every_draw(_second_client._cancelled_beside, choices(*names), D))
    assert found == [
        [*[step] * count, *other(step, step), ("cancel", place), *other(WAIT), WAIT]
        for count in (1, 2, 3)
        for place in (0, 1, 2)
    ]


def test_texts_of_both_clients_are_sent_twice() -> None:
    """The first result of one can be the other one's."""
    prompts = [
        {"name": "p", "arguments": [{"name": "a"}, {"name": "b"}, {"description": "c"}, 5]},
        {"name": "q", "arguments": 5},
        {"name": "r"},
    ]
    offered = choices("t", prompts=prompts)
    calls = [("call", "t", {"a": mark}, ()) for mark in CLIENT_MARKS]
    requests = [
        ("request", "prompts/get", {"name": "p", "arguments": {"a": mark, "b": mark}}, "int")
        for mark in CLIENT_MARKS
    ]
    learn = [LIST_TOOLS, *other(LIST_TOOLS)]
    for phrase, first, (mine, theirs) in (
        (_second_client._marked_calls, learn, calls),
        (_second_client._marked_prompts, [], requests),
    ):
        assert unique(every_draw(phrase, offered, D)) == [
            [*first, mine, WAIT, mine, WAIT, *other(theirs, WAIT, theirs, WAIT)]
        ]


def test_streams_of_the_other_client_resume_after_calls_with_progress() -> None:
    resumed = other(("get", "other"), AGAIN, WAIT)
    phrase = _second_client._resumed_beside
    assert every_draw(phrase, choices(), D) == [[("get", "stream"), *resumed]]
    step = call("t", "progress")
    assert every_draw(phrase, choices("t"), D) == [
        [("get", "stream"), *[step, WAIT, *resumed] * 3],
    ]


def test_each_client_sets_another_level_before_both_call() -> None:
    found = every_draw(_second_client._levels_beside, choices("t"), D)
    one = call("t")
    levels = ("debug", "emergency")
    assert found == [
        [
            *other(("request", "logging/setLevel", {"level": theirs}, "int"), WAIT),
            ("request", "logging/setLevel", {"level": mine}, "int"),
            WAIT,
            *[one, *other(one)] * 3,
            *[*other(WAIT), WAIT],
        ]
        for mine, theirs in (levels, levels[::-1])
    ]


@pytest.mark.parametrize(
    ("drawn", "others"), [({"a": "x", "n": 1}, {"n": 1}), ([1], {}), ("x", {})]
)
def test_texts_of_both_clients_leave_the_other_arguments(drawn: Any, others: Any) -> None:
    draw: Any = EachDraw([])
    draw.value = lambda strategy: drawn
    assert _second_client._marked_pair(draw, choices("t")) == tuple(
        ("call", "t", {**others, "a": mark}, ()) for mark in CLIENT_MARKS
    )


def test_session_that_has_ended_or_is_not_named_is_the_second_clients() -> None:
    ended = other(WAIT, ("delete", "own"))
    nameless: Step = ("head", "no-session", "tools/list", {})
    unknown: Step = ("head", "session", "tools/list", {})
    again = other(("reconnect",), ("open", D, "whole", "all"))
    for phrase, wanted in (
        (
            _second_client._ended_beside,
            [AGAIN, WAIT, *ended, *other(AGAIN, WAIT), AGAIN, WAIT],
        ),
        (_second_client._without_session, [nameless, *ended, nameless]),
        (_second_client._unknown_session, [*ended, unknown, *again, unknown]),
    ):
        assert every_draw(phrase, choices(), D) == [wanted]


@pytest.mark.parametrize(("revision", "ways"), [(D, {"late", "whole"}), (E, {"whole"})])
def test_second_client_begins_as_the_first_one_does(revision: str, ways: set[str]) -> None:
    """Each case has the next meeting; a client may offer nothing, or be late."""
    offered = choices()
    meetings = _second_client._meetings(offered, revision)
    steps = []
    for _ in range(2 * len(meetings)):
        draw: Any = EachDraw([])
        opening, *rest = _second_client.second_client(draw, offered, revision)
        assert own_step(opening) == ("open", revision, "late" if revision == D else "whole", "all")
        steps.append(rest)
    assert steps[: len(meetings)] == steps[len(meetings) :]
    assert offered.meetings == {revision == E: 2 * len(meetings)}
    numbers: Any = [EachDraw([first, how]) for first in range(3) for how in range(8)]
    rows = [
        own_step(_second_client.second_client(draw, choices(), revision)[0]) for draw in numbers
    ]
    assert {row[2] for row in rows} == ways
    assert {row[3] for row in rows} == {"all", "none"}


def test_steps_of_both_clients_meet_in_any_order() -> None:
    mine, theirs = [("a",), ("b",)], [("c",), ("d",)]
    rows = []
    for first in range(2):
        for second in range(2):
            draw: Any = EachDraw([first, second, first])
            with patch.object(_second_client, "some_phrases", side_effect=[[*mine], [*theirs]]):
                rows.append(_second_client._steps_in_turn(draw, choices(), D))
    orders = {"".join(own_step(step)[0] for step in row) for row in rows}
    assert orders == {"abcd", "acbd", "cadb", "cdab"}
    assert all([own_step(step) for step in row if client_of(step)] == theirs for row in rows)
