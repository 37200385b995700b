"""Wrong answers: each is wrong in one way, and all variants differ."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from mcp_trio.oracle.fuzz._revisions import META
from mcp_trio.oracle.fuzz.client._wrong_answers import ANSWERS, Action, is_lawful

Json = dict[str, Any]

OLD, NEW = "2025-11-25", "2026-07-28"
LIST: Json = {"jsonrpc": "2.0", "id": 7, "result": {"tools": [{"name": "a"}], "_meta": {"b": 1}}}
REQUEST: Json = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}


def actions(how: str, number: int, response: Json = LIST, request: Json = REQUEST) -> list[Action]:
    before = copy.deepcopy(response)
    found = ANSWERS[how](response, request, number)
    assert response == before, "the right response is used again"
    return found


def said(how: str, number: int, response: Json = LIST, request: Json = REQUEST) -> list[Any]:
    return [json.loads(each.data) for each in actions(how, number, response, request)]


def variants(how: str, count: int, response: Json = LIST, request: Json = REQUEST) -> list[Any]:
    """Return the only message of each variant. They begin again after `count`, and differ."""
    found = [said(how, number, response, request) for number in range(count + 1)]
    assert all(len(each) == 1 for each in found)
    texts = [json.dumps(each) for each in found]
    assert texts[count] == texts[0]
    assert len(set(texts)) == count
    return [each for [each] in found[:count]]


def with_version(revision: str, method: str = "tools/call") -> Json:
    meta = {META + "protocolVersion": revision}
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"_meta": meta}}


@pytest.mark.parametrize("how", ["right", "late", "spaced", "unknown-members"])
def test_lawful_answer_has_the_right_result(how: str) -> None:
    found = [each for each in actions(how, 0) if each.kind == "send"]
    [message] = [json.loads(each.data) for each in found]
    assert message["id"] == 7
    assert message["result"]["tools"] == LIST["result"]["tools"]
    assert message["result"]["_meta"]["b"] == 1


def test_late_answer_comes_after_a_moment() -> None:
    pause, send = actions("late", 0)
    assert (pause.kind, send.kind) == ("pause", "send")
    assert 0.05 < pause.seconds < 0.5  # seconds; clients wait longer


def test_second_response_is_the_same_or_another_one() -> None:
    assert said("twice", 0) == [LIST, LIST]
    assert said("twice", 1) == [LIST, {**LIST, "result": {}}]


@pytest.mark.parametrize("id", [7, "a"])
def test_wrong_id_is_that_of_no_request(id: int | str) -> None:
    """One is the next that a client would use, and none was used before."""
    response = {**LIST, "id": id}
    others = [each["id"] for each in variants("id-other", 3, response)]
    assert others[0] == (8 if id == 7 else "a1")
    assert not set(others) & {*range(8), "a"}
    wrong = [each["id"] for each in variants("id-type", 6, response)]
    assert wrong == ["7" if id == 7 else 0, None, [id], {"id": id}, True, 1.5]


def test_response_without_a_member_has_the_others() -> None:
    found = [LIST.keys() - each.keys() for each in variants("without", 3)]
    assert found == [{"id"}, {"jsonrpc"}, {"result"}]


def test_errors_have_codes_that_clients_know() -> None:
    found = variants("error", 6)
    assert all(each.keys() == {"jsonrpc", "id", "error"} and each["id"] == 7 for each in found)
    codes = [each["error"]["code"] for each in found]
    reserved = {-32603, -32602, -32601, -32600}
    assert reserved < set(codes)
    others = [code for code in codes if code not in reserved]
    assert -32099 <= min(others) <= -32000 < 0 < max(others)


def test_odd_error_is_none_or_has_odd_data() -> None:
    found = [each["error"] for each in variants("odd-error", 12)]
    for error in found[:7]:
        is_error = isinstance(error, dict) and (
            isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
        )
        assert not is_error
    assert found[7]["code"] > 2**63  # no machine word
    assert [each["code"] for each in found[8:]] == [-32042, -32021, -32022, -32603]
    assert len(found[11]["message"]) > 10_000


def test_odd_result_is_no_object_but_the_last() -> None:
    found = [each["result"] for each in variants("odd-result", 6)]
    assert [isinstance(each, dict) for each in found] == [False] * 5 + [True]
    assert True in found


def places(value: Any) -> list[tuple[Any, ...]]:
    """Return the path of each value in a result, in order."""
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    found: list[tuple[Any, ...]] = []
    for key in keys:
        found.append((key,))
        if isinstance(value[key], dict | list):
            found += [(key, *rest) for rest in places(value[key])]
    return found


def lookup(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def test_shape_changes_one_place_in_nine_ways() -> None:
    """First each place is left out, then each gets another value, such as null."""
    paths = places(LIST["result"])
    replaced: Json = {}
    for number in range(len(paths) * 9):
        [changed] = said("shape", number)
        path = paths[number % len(paths)]
        kind = number // len(paths)
        right, holder = copy.deepcopy(LIST["result"]), lookup(changed["result"], path[:-1])
        if kind == 0:
            del lookup(right, path[:-1])[path[-1]]
        else:
            new = replaced.setdefault(str(kind), holder[path[-1]])
            assert new == holder[path[-1]]
            lookup(right, path[:-1])[path[-1]] = new
        assert changed == {**LIST, "result": right}
    values = {json.dumps(each) for each in replaced.values()}
    assert len(values) == 8
    assert {"null", "true", "[]", "{}"} < values
    assert said("shape", len(paths) * 9) == said("shape", 0)


@pytest.mark.parametrize("result", [{}, [], 0, None])
def test_shape_of_an_empty_result_is_right(result: Any) -> None:
    response = {**LIST, "result": result}
    assert said("shape", 3, response) == [response]


def test_shape_changes_only_the_upper_levels() -> None:
    nested: Any = {}
    for _ in range(10):
        nested = {"a": nested}
    response = {**LIST, "result": nested}
    depths = []
    for number in range(5):
        [changed] = said("shape", number, response)
        found, depth = changed["result"], 0
        while found:
            found, depth = found["a"], depth + 1
        depths.append(depth)
    assert depths == [0, 1, 2, 3, 4]
    assert said("shape", 5, response)[0]["result"] == {"a": None}


@pytest.mark.parametrize(
    ("cursor", "page", "circle"),
    [
        (None, "1", "a"),
        ("1", "2", "a"),
        ("41", "42", "a"),
        ("a", "1", "b"),
        ("b", "1", "a"),
        ("99999999", "100000000", "a"),
        ("100000000", "1", "a"),
        ("²", "1", "a"),
        ("-1", "1", "a"),
        (5, "1", "a"),
    ],
)
def test_cursor_counts_goes_in_a_circle_or_is_no_text(cursor: Any, page: str, circle: str) -> None:
    params = {} if cursor is None else {"cursor": cursor}
    found = [said("cursor", number, LIST, {**REQUEST, "params": params})[0] for number in range(12)]
    cursors = [each["result"]["nextCursor"] for each in found]
    assert (cursors[0], cursors[8], cursors[9]) == (page, circle, page)
    assert [isinstance(each, str) for each in cursors] == [
        *(True, True, False, True, False, True, True, True, True, True, False, False)
    ]
    assert len(cursors[5]) == 10_000
    empty = [each["result"]["tools"] == [] for each in found]
    assert empty == [number == 9 for number in range(12)]
    assert [is_lawful("cursor", number, "tools/list", OLD) for number in range(12)] == [
        number in (0, 9) for number in range(12)
    ]


@pytest.mark.parametrize(
    ("method", "params", "even", "odd"),
    [
        ("tools/list", {}, "second", "second"),
        ("tools/list", None, "second", "second"),
        ("tools/list", {"cursor": "second"}, None, "third"),
        ("tools/list", {"cursor": "third"}, None, ""),
        ("tools/list", {"cursor": ""}, None, None),
        ("tools/list", {"cursor": 5}, None, None),
        ("tools/call", {}, None, None),
    ],
)
def test_pages_are_two_or_four(method: str, params: Any, even: str | None, odd: str | None) -> None:
    request = {**REQUEST, "method": method, "params": params}
    for number, cursor in ((0, even), (1, odd), (2, even)):
        [found] = said("page", number, LIST, request)
        assert found["result"].get("nextCursor") == cursor
        assert found["result"]["tools"]


def test_batch_has_a_response_or_nothing() -> None:
    found = variants("batch", 4)
    assert [len(each) for each in found] == [1, 2, 2, 0]
    assert all(each[0] == LIST for each in found[:3])


def test_huge_and_deep_responses_become_larger() -> None:
    sizes = [len(actions("huge", number)[0].data) for number in range(3)]
    levels = [actions("deep", number)[0].data for number in range(3)]
    assert 100_000 < sizes[0] < 2**20 < sizes[1] < 2**21 < sizes[2] < 2**23
    assert [each.count(b"[") for each in levels] == [100, 5_000, 100_000]
    assert json.loads(levels[0])["id"] == 7
    assert all(each.count(b"[") == each.count(b"]") for each in levels)


def test_half_a_response_is_without_its_end() -> None:
    whole = actions("right", 0)[0].data
    cut = [actions("half", number) for number in range(3)]
    assert [(first.kind, last.kind) for first, last in cut] == [("raw", "end")] * 3
    assert [first.data for first, _ in cut] == [whole[:1], whole[: len(whole) // 2], whole]


@pytest.mark.parametrize(
    ("method", "member", "missing"),
    [("initialize", "protocolVersion", 3), ("server/discover", "supportedVersions", 7)],
)
def test_revision_of_the_opening_is_odd(method: str, member: str, missing: int) -> None:
    response = {**LIST, "result": {member: "right", "more": 1}}
    found = variants("revision", 12, response, {**REQUEST, "method": method})
    assert all(each["result"]["more"] == 1 for each in found)
    assert all(each["result"].get(member) != "right" for each in found)
    assert [member in each["result"] for each in found].index(False) == missing
    assert sum(member not in each["result"] for each in found) == 1


def test_revision_of_another_response_stays() -> None:
    assert said("revision", 0) == [LIST]


def test_rejected_version_names_others() -> None:
    pauses = set()
    supported: list[Any] = []
    for number in range(9):
        pause, send = actions("unsupported", number, LIST, with_version(NEW))
        pauses.add((pause.kind, pause.seconds))
        error = json.loads(send.data)["error"]
        assert (error["code"], error["data"]["requested"]) == (-32022, NEW)
        supported.append(error["data"].get("supported", "missing"))
    assert pauses == {("pause", 0.15)}
    assert supported[0] == ["1999-12-31"]
    assert "missing" in supported
    assert [NEW] in supported
    assert len({json.dumps(each) for each in supported}) == 9


def test_output_breaks_the_schema_of_its_tool() -> None:
    """An object with the integer `sum`, and what more there is."""
    right = {"content": [], "structuredContent": {"sum": 1}}
    found = variants("output", 11, {**LIST, "result": right})
    for number, each in enumerate(found):
        output = each["result"].get("structuredContent", "missing")
        fits = isinstance(output, dict) and type(output.get("sum")) is int
        assert fits is (number in (7, 9)), output
    assert said("output", 0) == [LIST]  # it has none


@pytest.mark.parametrize(
    ("params", "token"),
    [(None, 1), ({}, 1), ({"_meta": 5}, 1), ({"_meta": {"progressToken": "t"}}, "t")],
)
def test_progress_comes_after_the_response(params: Any, token: Any) -> None:
    response, note = said("progress-after", 0, LIST, {**REQUEST, "params": params})
    assert response == LIST
    assert note["params"]["progressToken"] == token


@pytest.mark.parametrize(
    ("request_", "members"),
    [
        ({**REQUEST, "method": "tools/call"}, {"task"}),
        ({**REQUEST, "params": None}, {"task"}),
        (with_version(OLD), {"task"}),
        (with_version(NEW), {"resultType", "taskId", "status", "ttlMs"}),
        (with_version(NEW, "tasks/get"), {"tools", "taskId", "status", "ttlMs"}),
        ({**REQUEST, "method": "tasks/get"}, {"tools", "taskId", "status", "ttl"}),
    ],
)
def test_task_is_of_the_kind_of_its_revision(request_: Json, members: set[str]) -> None:
    [found] = said("task", 0, LIST, request_)
    assert members <= found["result"].keys()
    view = found["result"].get("task", found["result"])
    assert view["status"] == "working"
    assert ("pollIntervalMs" in view) is ("ttlMs" in view) is (not {"ttl"} & view.keys())


def test_acknowledgements_begin_with_another_one_each() -> None:
    found = [said("acknowledged", number) for number in range(7)]
    assert found[6] == found[0]
    assert all(len(each) == 6 for each in found)
    assert [each[0] for each in found[:6]] == found[0]
    ids = [each["params"].get("_meta", {}).get(META + "subscriptionId") for each in found[0]]
    assert ids == [7, 7, 7, "none", None, "none"]


@pytest.mark.parametrize(
    ("number", "asked", "state"),
    [(0, None, "state"), (1, {"a"}, "again"), (2, {"a"}, "state"), (4, {"a"}, None)],
)
def test_round_asks_or_only_hands_on_a_state(number: int, asked: Any, state: str | None) -> None:
    [found] = said("input", number, LIST, with_version(NEW))
    result = found["result"]
    assert result["resultType"] == "input_required"
    assert (set(result["inputRequests"]) if "inputRequests" in result else None) == asked
    assert result.get("requestState") == state


def test_wrong_result_type_replaces_the_right_one() -> None:
    found = variants("result-type", 6)
    assert all(each["result"]["tools"] == [{"name": "a"}] for each in found)
    types = [each["result"]["resultType"] for each in found]
    assert "complete" not in types
    assert {"task", "input_required"} < {each for each in types if isinstance(each, str)}


@pytest.mark.parametrize("revision", [OLD, NEW])
def test_question_of_a_round_is_of_the_revision(revision: str) -> None:
    """A URL is only asked for where it has no id of its own."""
    forms = []
    for number in range(40):
        [found] = said("input", number, LIST, with_version(revision))
        asked = found["result"].get("inputRequests")
        one = asked.get("a") if isinstance(asked, dict) else None
        params = one.get("params") if isinstance(one, dict) else None
        if isinstance(params, dict) and params.get("mode") == "url":
            forms.append("elicitationId" in params)
    assert forms
    assert any(forms) is (revision == OLD)


@pytest.mark.parametrize(
    "params",
    [None, {}, {"_meta": 5}, {"_meta": {}}, {"_meta": {META + "protocolVersion": 5}}],
)
def test_request_without_a_version_is_one_of_a_handshake(params: Any) -> None:
    """A rejected version is an empty text, and tasks are those that a request asks for."""
    request = {**REQUEST, "method": "tools/call", "params": params}
    error = json.loads(actions("unsupported", 0, LIST, request)[1].data)["error"]
    assert error["data"]["requested"] == ""
    assert said("task", 0, LIST, request)[0]["result"].keys() == {"task"}
