"""Tasks of 2025-11-25 and of the extension as JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET, Raw

from mcp_core import types as t
from tests.core.types.json_assertions import assert_json, decode_error

FACTS: dict[str, Any] = {
    "task_id": "1",
    "status": "working",
    "created_at": "a",
    "last_updated_at": "b",
}
TEXT = '"taskId":"1","status":"working","createdAt":"a","lastUpdatedAt":"b"'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (t.Task(**FACTS), f"{{{TEXT}}}"),
        (t.Task(**FACTS, ttl=None, poll_interval=5), f'{{{TEXT},"ttl":null,"pollInterval":5}}'),
        (
            t.Task(**FACTS, ttl_ms=7, poll_interval_ms=5, status_message="m"),
            f'{{{TEXT},"statusMessage":"m","ttlMs":7,"pollIntervalMs":5}}',
        ),
        (t.CreateTaskResult(task=t.Task(**FACTS, ttl=1)), f'{{"task":{{{TEXT},"ttl":1}}}}'),
        (
            t.CreateTaskResult(result_type="task", **FACTS, ttl_ms=None),
            f'{{"resultType":"task",{TEXT},"ttlMs":null}}',
        ),
        (t.GetTaskParams(task_id="1"), '{"taskId":"1"}'),
        (t.GetTaskPayloadParams(task_id="1"), '{"taskId":"1"}'),
        (t.CancelTaskParams(task_id="1"), '{"taskId":"1"}'),
        (
            t.UpdateTaskParams(task_id="1", input_responses={"k": Raw(b'{"action":"cancel"}')}),
            '{"taskId":"1","inputResponses":{"k":{"action":"cancel"}}}',
        ),
        (t.GetTaskResult(**FACTS, ttl=1), f'{{{TEXT},"ttl":1}}'),
        (
            t.GetTaskResult(**FACTS, input_requests={"k": t.ListRootsRequest()}),
            f'{{{TEXT},"inputRequests":{{"k":{{"method":"roots/list"}}}}}}',
        ),
        (
            t.GetTaskResult(**FACTS, result=Raw(b'{"content":[]}')),
            f'{{{TEXT},"result":{{"content":[]}}}}',
        ),
        (
            t.GetTaskResult(**FACTS, error=t.ErrorData(1, "e")),
            f'{{{TEXT},"error":{{"code":1,"message":"e"}}}}',
        ),
        (t.GetTaskPayloadResult(meta={"k": 1}), '{"_meta":{"k":1}}'),
        (t.ListTasksResult(tasks=[], next_cursor="2"), '{"tasks":[],"nextCursor":"2"}'),
        (t.CancelTaskResult(), "{}"),
        (t.CancelTaskResult(**FACTS, ttl=None), f'{{{TEXT},"ttl":null}}'),
        (t.UpdateTaskResult(), "{}"),
        (t.TaskStatusParams(**FACTS, result=Raw(b"{}")), f'{{{TEXT},"result":{{}}}}'),
    ],
)
def test_task_types_round_trip(value: msgspec.Struct, text: str) -> None:
    assert_json(value, text)


def test_task_ttl_null_differs_from_absent() -> None:
    assert msgspec.json.decode(f"{{{TEXT}}}", type=t.Task).ttl is UNSET
    assert msgspec.json.decode(f'{{{TEXT},"ttl":null}}', type=t.Task).ttl is None


@pytest.mark.parametrize("type", [t.Task, t.GetTaskResult, t.TaskStatusParams])
def test_task_members_are_required(type: type[msgspec.Struct]) -> None:
    assert "status" in decode_error('{"taskId":"1"}', type)
    assert "status" in decode_error('{"taskId":"1","status":"done"}', type)


def test_task_members_are_equal_in_all_types() -> None:
    facts = set(t.Task.__struct_fields__)
    assert facts < set(t.GetTaskResult.__struct_fields__)
    assert facts < set(t.TaskStatusParams.__struct_fields__)
    # Flat only in the extension, with the names of the extension.
    assert facts - set(t.CreateTaskResult.__struct_fields__) == {"ttl", "poll_interval"}
    assert facts - set(t.CancelTaskResult.__struct_fields__) == {"ttl_ms", "poll_interval_ms"}
