"""The states of a task as peers get them: valid by the official schemas, the same in both forms."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from fuzz.task_model import CREATED, LIMITS, REQUESTS, new_record, play, steps
from mcp_core import ALL, DIALECTS, LocalProtocolError, Role
from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode_notification, encode_result
from mcp_core.protocol.revisions._encoding import encode_params, encode_result_parts
from mcp_core.tasks import FINAL_STATUSES, TaskLimits, TaskRecord
from mcp_core.tasks._views import (
    cancel_task_result,
    create_task_result,
    get_task_result,
    listed_task,
    poll_interval,
    shown_status,
    task_outcome,
    task_status_params,
)
from tests.core.tasks.task_schemas import assert_valid
from tests.harness.jsonrpc import D, E, server_config
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULTS = TaskLimits()
CONFIG = server_config()
NOTIFICATIONS = {D: "notifications/tasks/status", E: "notifications/tasks"}
REQUIRED = {"taskId", "status", "createdAt", "lastUpdatedAt"}
MEMBERS = {
    D: REQUIRED | {"ttl", "pollInterval"},
    E: REQUIRED | {"ttlMs", "pollIntervalMs"},
}
# The member that the extension adds in each status.
OUTCOMES = {"input_required": {"inputRequests"}, "completed": {"result"}, "failed": {"error"}}
RESULT = Raw(b'{"content":[{"type":"text","text":"done"}]}')
RECORDS: dict[str, TaskRecord] = {
    "working": new_record(),
    "input_required": new_record(
        status="input_required", open_requests=dict(zip("abcd", REQUESTS, strict=True))
    ),
    "completed": new_record(status="completed", result=RESULT),
    "failed": new_record(status="failed", error=t.ErrorData(-32000, "no", {"a": 1}), message="no"),
    "cancelled": new_record(status="cancelled", message="by the user"),
}


def result_sent(version: str, result: t.Result | dict[str, Any]) -> Any:
    """Return a result as its receiver reads it."""
    config = CONFIG.dialect_configs[Role.SERVER][DIALECTS[version]]
    message = json.loads(encode_result(1, *encode_result_parts(config, result)))
    result_members = message["result"]
    # The server's name is in every result of 2026-07-28.
    if version == E:
        assert result_members.pop("_meta").keys() == {"io.modelcontextprotocol/serverInfo"}
    return result_members


def notification_sent(version: str, record: TaskRecord, now: float) -> Any:
    params = task_status_params(record, DIALECTS[version], now, DEFAULTS)
    data = encode_params(DIALECTS[version], params)
    return json.loads(encode_notification(NOTIFICATIONS[version], data))


def state(version: str, record: TaskRecord, now: float = CREATED) -> Any:
    """Return the response to `tasks/get`."""
    return result_sent(version, get_task_result(record, DIALECTS[version], now, DEFAULTS))


def check_views(record: TaskRecord, now: float) -> None:
    """Assert that all messages about a record are valid, and that the two forms agree."""
    states: dict[str, Any] = {}
    for version, dialect in ((D, DIALECTS[D]), (E, DIALECTS[E])):
        got = state(version, record, now)
        assert_valid(version, "GetTaskResult", got)
        notified = notification_sent(version, record, now)
        assert_valid(version, "TaskStatusNotification", notified)
        created = result_sent(version, create_task_result(record, dialect, now, DEFAULTS))
        assert_valid(version, "CreateTaskResult", created)
        cancelled = result_sent(version, cancel_task_result(record, dialect, now, DEFAULTS))
        assert_valid(version, "CancelTaskResult", cancelled)
        # All of them show one state.
        kind = got.pop("resultType", None)
        assert kind == (None if version == D else "complete")
        assert notified["params"] == got
        message = set() if record.message is None else {"statusMessage"}
        outcome = OUTCOMES.get(record.status, set()) if version == E else set()
        assert got.keys() == MEMBERS[version] | message | outcome
        basic = {name: value for name, value in got.items() if name not in outcome}
        if version == D:
            assert created == {"task": basic}
            assert cancelled == basic
            listed = t.ListTasksResult(tasks=[listed_task(record, dialect, now, DEFAULTS)])
            assert result_sent(version, listed) == {"tasks": [basic]}
            assert_valid(version, "ListTasksResult", result_sent(version, listed))
        else:
            assert created == {"resultType": "task", **basic}
            assert cancelled == {"resultType": "complete"}
        for name in ("ttl", "pollInterval"):
            value = got.pop(name if version == D else f"{name}Ms")
            assert type(value) is int
            assert value > 0
            got[name] = value
        for name in ("createdAt", "lastUpdatedAt"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", got[name])
        assert got["createdAt"] <= got["lastUpdatedAt"]
        states[version] = {name: value for name, value in got.items() if name not in outcome}
    # Both forms end together, and differ only for a tool result with isError.
    assert len({states[version]["status"] in FINAL_STATUSES for version in (D, E)}) == 1
    if record.is_error:
        assert (states[D].pop("status"), states[E].pop("status")) == ("failed", "completed")
    assert states[D] == states[E]


# -- Random walks ----------------------------------------------------------------------------------


@fewer_examples(5)
@given(st.lists(steps(), max_size=15))
def test_walk_views_are_valid_and_agree(walk: Sequence[tuple[float, Any]]) -> None:
    record = new_record()
    now = CREATED
    for pause, step in walk:
        now += pause
        record, effect = play(record, step, now)
        if effect == "changed":
            check_views(record, now)


@pytest.mark.parametrize("status", get_args(t.TaskStatus))
def test_record_of_each_status_has_valid_views(status: str) -> None:
    check_views(RECORDS[status], CREATED)


# -- The two forms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (
            D,
            {
                "task": {
                    "taskId": "0123456789abcdef0123456789abcdef",
                    "status": "working",
                    "statusMessage": "page 1",
                    "createdAt": "2027-01-15T08:00:00.000Z",
                    "lastUpdatedAt": "2027-01-15T08:00:01.500Z",
                    "ttl": 100_000,
                    "pollInterval": 500,
                }
            },
        ),
        (
            E,
            {
                "resultType": "task",
                "taskId": "0123456789abcdef0123456789abcdef",
                "status": "working",
                "statusMessage": "page 1",
                "createdAt": "2027-01-15T08:00:00.000Z",
                "lastUpdatedAt": "2027-01-15T08:00:01.500Z",
                "ttlMs": 100_000,
                "pollIntervalMs": 500,
            },
        ),
    ],
)
def test_created_task_as_sent(version: str, expected: Any) -> None:
    record = new_record(updated=CREATED + 1.5, message="page 1")
    result = create_task_result(record, DIALECTS[version], CREATED + 1.5, DEFAULTS)
    assert result_sent(version, result) == expected


def test_immediate_response_is_sent_in_2025_11_25_only() -> None:
    created = create_task_result(RECORDS["working"], DIALECTS[D], CREATED, DEFAULTS, "Wait.")
    sent = result_sent(D, created)
    assert sent["_meta"] == {"io.modelcontextprotocol/model-immediate-response": "Wait."}
    assert_valid(D, "CreateTaskResult", sent)
    # `result_sent` checks that there is no other key in `_meta`.
    created = create_task_result(RECORDS["working"], DIALECTS[E], CREATED, DEFAULTS, "Wait.")
    assert "Wait." not in str(result_sent(E, created))


def test_tool_error_is_failed_or_completed() -> None:
    result = Raw(b'{"content":[],"isError":true}')
    record = new_record(status="completed", result=result, is_error=True)
    assert shown_status(record, DIALECTS[D]) == "failed"
    assert shown_status(record, DIALECTS[E]) == "completed"
    assert state(E, record)["result"] == {
        "resultType": "complete",
        "content": [],
        "isError": True,
    }
    # In 2025-11-25 it is a result too, not a JSON-RPC error.
    assert isinstance(task_outcome(record), dict)
    assert result_sent(D, task_outcome(record))["isError"] is True  # type: ignore[arg-type]


def test_inlined_result_has_its_kind_as_any_response() -> None:
    """Clients that check it by the schema of the revision refuse one without `resultType`."""
    for encoded in (b'{"content":[]}', b'{"resultType":"complete","content":[]}'):
        record = new_record(status="completed", result=Raw(encoded))
        assert state(E, record)["result"] == {"resultType": "complete", "content": []}
    record = new_record(status="completed", result=Raw(b"{}"))
    assert state(E, record)["result"] == {"resultType": "complete"}
    assert "resultType" not in str(task_outcome(record))  # the one of 2025-11-25


def test_protocol_error_is_failed_in_both() -> None:
    record = RECORDS["failed"]
    assert state(D, record)["status"] == "failed"
    assert state(E, record)["error"] == {"code": -32000, "message": "no", "data": {"a": 1}}
    assert task_outcome(record) == t.ErrorData(-32000, "no", {"a": 1})


def test_input_requests_are_those_of_the_revision() -> None:
    requests = state(E, RECORDS["input_required"])["inputRequests"]
    assert [each["method"] for each in requests.values()] == [
        "roots/list",
        "elicitation/create",
        "elicitation/create",
        "sampling/createMessage",
    ]
    # Members that only 2025-11-25 has.
    assert "elicitationId" not in requests["c"]["params"]
    assert "task" not in requests["d"]["params"]


def test_message_empty_is_sent() -> None:
    record = new_record(status="failed", error=t.ErrorData(1, ""), message="")
    assert state(E, record)["statusMessage"] == ""


@pytest.mark.parametrize("version", [version for version in ALL if version not in (D, E)])
def test_revision_without_tasks_shows_the_plain_status(version: str) -> None:
    assert DIALECTS[version].tasks == "none"
    record = new_record(status="completed", result=RESULT, is_error=True)
    assert shown_status(record, DIALECTS[version]) == "completed"


# -- The outcome in 2025-11-25 ---------------------------------------------------------------------


def outcome_sent(result: bytes) -> Any:
    record = new_record(id="t1", status="completed", result=Raw(result))
    outcome = task_outcome(record)
    assert isinstance(outcome, dict)
    sent = result_sent(D, outcome)
    assert_valid(D, "GetTaskPayloadResult", sent)
    assert_valid(D, "CallToolResult", sent)
    return sent


RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}


@pytest.mark.parametrize(
    ("meta", "expected"),
    [
        (b"", RELATED),
        (b',"_meta":null', RELATED),
        (b',"_meta":{}', RELATED),
        (b',"_meta":{"a":1}', {"a": 1, **RELATED}),
        # A handler cannot name another task.
        (b',"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t2"}}', RELATED),
    ],
)
def test_outcome_names_its_task(meta: bytes, expected: Any) -> None:
    assert outcome_sent(b'{"content":[]%b}' % meta) == {"content": [], "_meta": expected}


def test_outcome_keeps_members_as_they_were_encoded() -> None:
    members = b'"content":[],"structuredContent":{"n":1e2,"big":%b,"slash":"\\/"}' % (b"9" * 40)
    outcome = task_outcome(new_record(status="completed", result=Raw(b"{%b}" % members)))
    assert isinstance(outcome, dict)
    config = CONFIG.dialect_configs[Role.SERVER][DIALECTS[D]]
    encoded, _ = encode_result_parts(config, outcome)
    assert members in encoded


@pytest.mark.parametrize(
    ("message", "expected"),
    [(None, "The task was cancelled"), ("by the user", "The task was cancelled: by the user")],
)
def test_outcome_of_cancelled_task_is_an_error(message: str | None, expected: str) -> None:
    record = new_record(status="cancelled", message=message)
    assert task_outcome(record) == t.ErrorData(-32603, expected)


@pytest.mark.parametrize("status", ["working", "input_required", "completed"])
def test_outcome_without_result_raises(status: Any) -> None:
    """A record from a list is without its result. It was not cancelled."""
    with pytest.raises(LocalProtocolError, match=f"a task that is {status} has no result here"):
        task_outcome(new_record(status=status))


def test_outcome_with_meta_that_is_no_object_raises() -> None:
    record = new_record(status="completed", result=Raw(b'{"content":[],"_meta":5}'))
    with pytest.raises(InvalidPayload, match=r"Expected `object \| null`, got `int`"):
        task_outcome(record)


# -- Times -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (0.0014, "1970-01-01T00:00:00.001Z"),
        (1_800_000_000.001, "2027-01-15T08:00:00.001Z"),
        (1_800_000_000.9999, "2027-01-15T08:00:00.999Z"),
        (951_782_400.0, "2000-02-29T00:00:00.000Z"),
        (253_402_300_799.5, "9999-12-31T23:59:59.500Z"),
        # Clocks that are wrong.
        (-1.0, "1970-01-01T00:00:00.000Z"),
        (253_402_300_800.0, "9999-12-31T23:59:59.999Z"),
        (1e300, "9999-12-31T23:59:59.999Z"),
    ],
)
@pytest.mark.parametrize("version", [D, E])
def test_time_is_rfc_3339_with_milliseconds(version: str, seconds: float, shown: str) -> None:
    record = new_record(created=seconds, updated=seconds)
    got = state(version, record, seconds)
    assert (got["createdAt"], got["lastUpdatedAt"]) == (shown, shown)


@pytest.mark.parametrize(
    ("ttl", "shown"),
    [(0.0001, 1), (0.5, 500), (1.001, 1001), (86_400.0, 86_400_000), (1e308, 2**53 - 1)],
)
def test_ttl_is_a_positive_integer_of_milliseconds(ttl: float, shown: int) -> None:
    record = new_record(ttl=ttl)
    check_views(record, CREATED)
    assert state(D, record)["ttl"] == shown


@pytest.mark.parametrize(
    ("age", "seconds"),
    [
        (-1e9, 0.5),  # the clock was set back
        (0.0, 0.5),
        (5.0, 0.5),
        (6.0, 0.6),
        (50.0, 5.0),
        (1e6, 5.0),
    ],
)
def test_poll_interval_grows_with_age(age: float, seconds: float) -> None:
    record = RECORDS["working"]
    assert poll_interval(record, CREATED + age, DEFAULTS) == pytest.approx(seconds)
    assert state(E, record, CREATED + age)["pollIntervalMs"] == round(seconds * 1000)


def test_poll_interval_below_a_millisecond_is_shown_as_one() -> None:
    limits = TaskLimits(poll_interval=0.0001)
    result = get_task_result(RECORDS["working"], DIALECTS[E], CREATED, limits)
    assert result.poll_interval_ms == 1
    assert LIMITS.poll_interval == 0.5
