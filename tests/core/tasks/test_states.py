"""The states of a task: the table, each action at its limits, and random walks beside a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw
from msgspec.structs import replace

from fuzz.task_model import CREATED, REQUESTS, TaskModel, new_record, play, steps
from mcp_core import LocalProtocolError
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.tasks import (
    FINAL_STATUSES,
    TRANSITIONS,
    Cancel,
    Complete,
    Fail,
    ReceiveResponse,
    RequestInput,
    SetMessage,
    TaskAction,
    TaskCall,
    TaskExpired,
    TaskLimits,
    TaskRecord,
    decode_record,
    encode_record,
    transition,
)
from mcp_core.tasks._states import INTERNAL_ERROR
from mcp_core.types import ClientCapabilities, ElicitParams, ElicitRequest, ErrorData, TaskStatus
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = CREATED + 1
REQUEST = REQUESTS[0]
RESULT = Raw(b'{"content":[]}')
DEFAULTS = TaskLimits()


def after(*actions: TaskAction, limits: TaskLimits = DEFAULTS, **members: Any) -> TaskRecord:
    """Return the record of a new task after some actions."""
    record = new_record(**members)
    for action in actions:
        record = transition(record, action, NOW, limits)
    return record


# One record of each status, and one of each kind of action, which all have an effect if allowed.
RECORDS: dict[TaskStatus, TaskRecord] = {
    "working": after(),
    "input_required": after(RequestInput("a", REQUEST)),
    "completed": after(Complete(RESULT)),
    "failed": after(Fail(ErrorData(-32000, "no"))),
    "cancelled": after(Cancel()),
}
ACTIONS: dict[type[TaskAction], TaskAction] = {
    SetMessage: SetMessage("page 1"),
    RequestInput: RequestInput("b", REQUEST),
    ReceiveResponse: ReceiveResponse("a", Raw(b"{}")),
    Complete: Complete(RESULT),
    Fail: Fail(ErrorData(-32000, "no")),
    Cancel: Cancel("by the user"),
}


# -- The table -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", get_args(TaskStatus))
@pytest.mark.parametrize("kind", get_args(TaskAction))
def test_action_in_each_status_leads_where_the_table_says(
    status: TaskStatus, kind: type[TaskAction]
) -> None:
    record = RECORDS[status]
    changed = transition(record, ACTIONS[kind], NOW, DEFAULTS)
    expected = TRANSITIONS[status].get(kind)
    if expected is None:
        assert changed is record
    else:
        assert changed.status == expected
        assert changed.serial == record.serial + 1


@pytest.mark.requirement("TSK-11")
def test_table_has_the_paths_of_the_specification() -> None:
    paths = {
        status: {target for target in row.values() if target != status}
        for status, row in TRANSITIONS.items()
    }
    assert paths == {
        "working": {"input_required", "completed", "failed", "cancelled"},
        "input_required": {"working", "completed", "failed", "cancelled"},
        "completed": set(),
        "failed": set(),
        "cancelled": set(),
    }
    assert {status for status, row in TRANSITIONS.items() if not row} == FINAL_STATUSES


# -- Each action -----------------------------------------------------------------------------------


def test_message_over_limit_is_cut_off() -> None:
    assert after(SetMessage("x" * 1_000)).message == "x" * 1_000
    assert after(SetMessage("x" * 1_001)).message == "x" * 1_000


def test_message_repeated_changes_nothing() -> None:
    record = after(SetMessage("page 1"))
    assert transition(record, SetMessage("page 1"), NOW + 5, DEFAULTS) is record


def test_end_without_message_drops_progress() -> None:
    progress = SetMessage("page 3 of 9")
    assert after(progress, Cancel()).message is None
    assert after(progress, Cancel("by the user")).message == "by the user"
    assert after(progress, Complete(RESULT)).message is None
    assert after(progress, Complete(RESULT, message="all read")).message == "all read"
    assert after(progress, Fail(ErrorData(1, "no"))).message == "no"


def test_open_requests_at_limit_accept_no_other() -> None:
    limits = TaskLimits(open_requests=2)
    record = after(RequestInput("a", REQUEST), RequestInput("b", REQUEST), limits=limits)
    with pytest.raises(LocalProtocolError, match="waits for 2 responses already, the limit is 2"):
        transition(record, RequestInput("c", REQUEST), NOW, limits)
    # A key that is open needs no place.
    assert transition(record, RequestInput("b", REQUEST), NOW, limits) is record
    record = transition(record, ReceiveResponse("a", Raw(b"{}")), NOW, limits)
    assert len(transition(record, RequestInput("c", REQUEST), NOW, limits).open_requests) == 2


def test_requests_in_a_life_are_limited() -> None:
    limits = TaskLimits(requests=2)
    record = after(
        RequestInput("a", REQUEST),
        ReceiveResponse("a", Raw(b"{}")),
        RequestInput("b", REQUEST),
        limits=limits,
    )
    with pytest.raises(LocalProtocolError, match="requested input 2 times, which is the limit"):
        transition(record, RequestInput("c", REQUEST), NOW, limits)


def test_key_with_another_request_keeps_the_first() -> None:
    record = after(RequestInput("a", REQUESTS[0]))
    assert transition(record, RequestInput("a", REQUESTS[1]), NOW, DEFAULTS) is record


@pytest.mark.requirement("TX-12")
def test_key_with_response_opens_no_request() -> None:
    record = after(RequestInput("a", REQUEST), ReceiveResponse("a", Raw(b'{"action":"accept"}')))
    assert record.status == "working"
    assert transition(record, RequestInput("a", REQUEST), NOW, DEFAULTS) is record
    assert transition(record, ReceiveResponse("a", Raw(b"{}")), NOW, DEFAULTS) is record
    assert bytes(record.responses["a"]) == b'{"action":"accept"}'


@pytest.mark.requirement("TX-14")
def test_responses_in_part_leave_input_required() -> None:
    record = after(
        RequestInput("a", REQUEST), RequestInput("b", REQUEST), ReceiveResponse("a", Raw(b"{}"))
    )
    assert record.status == "input_required"
    assert list(record.open_requests) == ["b"]
    assert transition(record, ReceiveResponse("b", Raw(b"{}")), NOW, DEFAULTS).status == "working"


def test_responses_over_limit_fail_the_task() -> None:
    limits = TaskLimits(responses=20)
    record = after(RequestInput("a", REQUEST), RequestInput("b", REQUEST), limits=limits)
    record = transition(record, ReceiveResponse("a", Raw(b'"12345678"')), NOW, limits)
    kept = transition(record, ReceiveResponse("b", Raw(b'"12345678"')), NOW, limits)
    failed = transition(record, ReceiveResponse("b", Raw(b'"123456789"')), NOW, limits)
    assert kept.status == "working"
    assert failed.error == ErrorData(
        INTERNAL_ERROR, "the input of the task has 21 bytes, the limit is 20"
    )
    assert not failed.open_requests


def test_result_over_limit_fails_the_task() -> None:
    limits = TaskLimits(result=len(bytes(RESULT)))
    assert after(Complete(RESULT), limits=limits).status == "completed"
    failed = after(Complete(RESULT, is_error=True, message="long"), limits=TaskLimits(result=13))
    assert failed.status == "failed"
    assert failed.error == ErrorData(
        INTERNAL_ERROR,
        "the result of the task has 14 bytes, the limit is 13: the handler has run, and what it"
        " changed stays",
    )
    assert failed.message == failed.error.message
    assert failed.result is UNSET
    assert not failed.is_error


def test_error_over_limit_is_replaced() -> None:
    error = ErrorData(-32000, "no", {"rows": [1]})
    size = len(b'{"code":-32000,"message":"no","data":{"rows":[1]}}')
    assert after(Fail(error), limits=TaskLimits(result=size)).error == error
    failed = after(Fail(error), limits=TaskLimits(result=size - 1))
    assert failed.error == ErrorData(
        INTERNAL_ERROR,
        f"the error of the task has {size} bytes, the limit is {size - 1}: the handler has run,"
        " and what it changed stays",
    )


def test_end_removes_what_only_a_running_task_needs() -> None:
    call = TaskCall(params=Raw(b"{}"), capabilities=ClientCapabilities())
    for end in Complete(RESULT), Fail(ErrorData(1, "no")), Cancel():
        record = after(
            RequestInput("a", REQUEST),
            end,
            worker="w1",
            call=call,
        )
        assert record.open_requests == {}
        assert (record.worker, record.call) == ("", None)


# -- Text and data that cannot be sent -------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        SetMessage("\ud800"),
        RequestInput("\ud800", REQUEST),
        RequestInput("a", ElicitRequest(ElicitParams(message="\ud800", requested_schema={}))),
        Complete(RESULT, message="\ud800"),
        Fail(ErrorData(1, "\ud800")),
        Fail(ErrorData(1, "no", ["\ud800"])),
        Cancel("\ud800"),
    ],
)
def test_lone_surrogate_is_refused(action: TaskAction) -> None:
    with pytest.raises(LocalProtocolError, match=r"cannot have this text: .*surrogates"):
        transition(new_record(), action, NOW, DEFAULTS)


@pytest.mark.parametrize(
    "action",
    [
        Fail(ErrorData(1, "no", object())),
        RequestInput(
            "a", ElicitRequest(ElicitParams(message="", requested_schema={"a": object()}))
        ),
    ],
)
def test_data_that_is_no_json_is_refused(action: TaskAction) -> None:
    with pytest.raises(TypeError, match="unsupported"):
        transition(new_record(), action, NOW, DEFAULTS)


# -- Time ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", get_args(TaskStatus))
def test_action_at_end_of_ttl_raises(status: TaskStatus) -> None:
    record = RECORDS[status]
    for action in ACTIONS.values():
        transition(record, action, record.expires - 0.001, DEFAULTS)
        with pytest.raises(TaskExpired):
            transition(record, action, record.expires, DEFAULTS)


def test_updated_with_clock_set_back_does_not_fall() -> None:
    record = transition(new_record(), SetMessage("a"), CREATED + 10, DEFAULTS)
    record = transition(record, SetMessage("b"), CREATED - 1_000, DEFAULTS)
    assert (record.serial, record.updated) == (3, CREATED + 10)


# -- Random walks ----------------------------------------------------------------------------------


@fewer_examples(3)
@given(st.lists(steps(), max_size=30))
def test_walk_agrees_with_model(walk: Sequence[tuple[float, Any]]) -> None:
    """Any walk has the effects of the model, and keeps the specification's rules."""
    record = new_record()
    model = TaskModel(record.created, record.ttl)
    now = CREATED
    opened: dict[str, int] = {}
    for pause, step in walk:
        now += pause
        before = record
        record, effect = play(before, step, now)
        assert effect == model.play(step, now)
        model.check(record)
        # The specification's rules once more, without the model.
        assert (record.status == "input_required") == bool(record.open_requests)
        assert record.serial == before.serial + (effect == "changed")
        assert record.updated >= before.updated
        assert not before.ended or record is before
        for key in record.open_requests.keys() - before.open_requests.keys():
            opened[key] = opened.get(key, 0) + 1
        assert max(opened.values(), default=1) == 1
        assert decode_record(encode_record(record)) == record


@fewer_examples(2)
@given(st.lists(steps(), max_size=12))
def test_walk_leaves_earlier_records_unchanged(walk: Sequence[tuple[float, Any]]) -> None:
    """A store in memory keeps the objects themselves."""
    record = new_record()
    seen = [(record, encode_record(record))]
    for _, step in walk:
        record, _ = play(record, step, NOW)
        seen.append((record, encode_record(record)))
    assert all(encode_record(each) == data for each, data in seen)


def test_naive_model_detects_a_wrong_record() -> None:
    model = TaskModel(CREATED, 100.0)
    model.check(new_record())
    for wrong in (
        {"message": "a"},
        {"serial": 2},
        {"updated": NOW},
        {"status": "cancelled"},
    ):
        with pytest.raises(AssertionError):
            model.check(replace(new_record(), **wrong))


def test_size_counts_what_the_record_has_until_it_ends() -> None:
    """The arguments count from the creation; the input requests and responses follow."""
    question = ElicitRequest(ElicitParams(message="Which?", requested_schema={}))
    asked = len(encode(("k", question)))
    record = new_record(size=1_000)
    for action, size in (
        (SetMessage("half"), 1_000),
        (RequestInput("k", question), 1_000 + asked),
        (RequestInput("k", question), 1_000 + asked),  # the same again
        (RequestInput("m", question), 1_000 + 2 * asked),
        (ReceiveResponse("k", Raw(b'{"action":"cancel"}')), 1_000 + asked + 19),
    ):
        record = transition(record, action, CREATED, DEFAULTS)
        assert record.size == size
    error = ErrorData(-32000, "no", {"rows": [1]})
    for end, size in (
        (Complete(RESULT), len(bytes(RESULT))),
        (Fail(error), len(encode(error))),
        (Cancel("enough"), 0),
    ):
        ended = transition(record, end, CREATED, DEFAULTS)
        assert (ended.size, ended.responses, ended.open_requests) == (size, {}, {})
    too_large = transition(record, Complete(RESULT), CREATED, TaskLimits(result=1))
    assert too_large.size == len(encode(too_large.error))


def test_size_of_a_record_of_an_earlier_version_is_never_negative() -> None:
    question = ElicitRequest(ElicitParams(message="Which?", requested_schema={}))
    record = new_record(status="input_required", open_requests={"k": question})
    after = transition(record, ReceiveResponse("k", Raw(b"{}")), CREATED, DEFAULTS)
    assert after.size == 2
