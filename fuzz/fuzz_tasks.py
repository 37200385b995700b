# Invariant: bytes are a task record or refused, and a record that is encoded again decodes the
# same. Any actions on a task, at any time, do what a model of the specification does. A key is used
# once, a final record is final, and serial and `updated` never fall. Peers of both revisions see
# valid times, integers and only their own members, and see the task end together.
"""The record of a task by `mcp_core.tasks`: decoded from a store, changed, and shown to peers.

Nothing may be raised but `InvalidPayload` for bytes that are no record, and what `transition`
documents. The oracle for a new task is `fuzz.task_model`. For a decoded one the rules alone hold.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from msgspec import UNSET

from fuzz.targets import Target
from fuzz.task_model import CREATED, LIMITS, Step, TaskModel, new_record, play, steps
from mcp_core import DIALECTS, Dialect
from mcp_core.protocol.jsonrpc._codec import InvalidPayload
from mcp_core.tasks import FINAL_STATUSES, TaskRecord, decode_record, encode_record
from mcp_core.tasks._views import (
    cancel_task_result,
    create_task_result,
    get_task_result,
    listed_task,
    task_outcome,
    task_status_params,
)
from mcp_trio.oracle.strategies._mutations import damaged, malformed
from mcp_trio.oracle.strategies._values import scripts, weighted

# A record as a store may hand it back, None for a new task; pauses and steps.
Case: TypeAlias = tuple[bytes | None, list[tuple[float, Step]]]

_D, _E = DIALECTS["2025-11-25"], DIALECTS["2026-07-28"]
_BASIC: Final = {"taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt"}
_OWN: Final = {_D: {"ttl", "pollInterval"}, _E: {"ttlMs", "pollIntervalMs"}}
_OUTCOMES: Final = {
    "input_required": {"inputRequests"},
    "completed": {"result"},
    "failed": {"error"},
}
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def check(case: Case) -> Iterable[str]:
    data, walk = case
    model = None
    if data is None:
        record = new_record()
        model = TaskModel(record.created, record.ttl)
    else:
        try:
            record = decode_record(data)
        except InvalidPayload as refused:
            yield f"refused: {re.sub(r'[^a-z ]', '', str(refused))[:30]}"
            return
        assert decode_record(encode_record(record)) == record
        yield f"decoded, {record.status}"
    _check_views(record, record.created)
    now = record.created
    used = {*record.open_requests, *record.responses}
    for pause, step in walk:
        now += pause
        before = record
        record, effect = play(before, step, now)
        yield f"{step[0]} at {before.status}: {effect}, {record.status}"
        if model is not None:
            assert effect == model.play(step, now), "the model does something else"
            model.check(record)
        if effect != "changed":
            assert record is before
            continue
        assert not before.ended, "a final record has changed"
        assert (record.status == "input_required") == bool(record.open_requests)
        assert record.serial == before.serial + 1
        assert record.updated >= before.updated
        opened = record.open_requests.keys() - before.open_requests.keys()
        assert not opened & used, "a key is used twice"
        used |= opened
        assert decode_record(encode_record(record)) == record
        _check_views(record, now)


def _check_views(record: TaskRecord, now: float) -> None:
    statuses = []
    for dialect in (_D, _E):
        sent = _sent(dialect, get_task_result(record, dialect, now, LIMITS))
        statuses.append(sent["status"])
        outcome = _OUTCOMES.get(record.status, set()) if dialect is _E else set()
        if record.result is UNSET:
            outcome = outcome - {"result"}
        expected = _BASIC | _OWN[dialect] | outcome
        if record.message is None:
            expected = expected - {"statusMessage"}
        assert sent.keys() == expected, sent.keys() ^ expected
        assert all(type(sent[name]) is int and 0 < sent[name] < 2**53 for name in _OWN[dialect])
        assert all(_TIME.fullmatch(sent[name]) for name in ("createdAt", "lastUpdatedAt"))
        assert _sent(dialect, task_status_params(record, dialect, now, LIMITS)) == sent
        created = _sent(dialect, create_task_result(record, dialect, now, LIMITS))
        cancelled = _sent(dialect, cancel_task_result(record, dialect, now, LIMITS))
        basic = {name: value for name, value in sent.items() if name not in outcome}
        if dialect is _D:
            assert created == {"task": basic}
            assert cancelled == basic
            assert _sent(dialect, listed_task(record, dialect, now, LIMITS)) == basic
        else:
            assert created == {**basic, "resultType": "task"}
            assert cancelled == {}
    assert len({status in FINAL_STATUSES for status in statuses}) == 1
    assert statuses == ["failed" if record.is_error else record.status, record.status]
    if record.ended and (record.status != "completed" or record.result is not UNSET):
        try:
            outcome_of = task_outcome(record)
        except InvalidPayload:
            return
        if isinstance(outcome_of, dict):
            related = outcome_of["_meta"]["io.modelcontextprotocol/related-task"]
            assert related == {"taskId": record.id}


def _sent(dialect: Dialect, value: Any) -> Any:
    return json.loads(dialect.encode(value))


def cases(seeds: Sequence[Case]) -> SearchStrategy[Case]:
    recorded = st.sampled_from(seeds or [(None, [(0.0, ("cancel", None))])])
    stored = _stored_records()
    walks = scripts(steps())
    data = weighted(
        (6, st.none()),
        (2, stored),
        (2, damaged(stored)),
        (2, malformed(stored.map(json.loads))),
    )
    return weighted((1, recorded), (12, st.tuples(data, walks)))


@st.composite
def _stored_records(draw: DrawFn) -> bytes:
    record = new_record(owner=draw(st.sampled_from(("", "alice"))))
    for _, step in draw(st.lists(steps(), max_size=6)):
        record, _ = play(record, step, CREATED)
    return encode_record(record)


TARGET: Final = Target("tasks", cases, check)
