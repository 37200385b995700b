"""Each action on tasks in each status, and how each revision shows them.

    python -m tests.core.tasks.lives

writes `lives.txt` again: below each record its messages in the revisions with tasks, and after each
action the record that it becomes, if that is another one, or the error.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw

from fuzz.task_model import CREATED, new_record
from mcp_core import DIALECTS
from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.tasks import TaskCall, TaskLimits, TaskRecord, encode_record
from mcp_core.tasks._states import (
    Cancel,
    Complete,
    Fail,
    ReceiveResponse,
    RequestInput,
    SetMessage,
    transition,
)
from mcp_core.tasks._views import (
    cancel_task_result,
    create_task_result,
    get_task_result,
    listed_task,
    task_outcome,
    task_status_params,
)
from tests.harness.jsonrpc import D, E
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from mcp_core.tasks._states import TaskAction

__all__ = ["RECORDS_ACTED_ON", "kept_lives", "life_of"]

_FILE: Final = Path(__file__).with_name("lives.txt")
_LIMITS: Final = TaskLimits(
    open_requests=2, requests=3, result=60, responses=20, message=6, ttl=100.0
)
_ROOTS: Final = t.ListRootsRequest()
_ELICIT: Final = t.ElicitRequest(t.ElicitParams(message="?", requested_schema={"type": "object"}))
_CALL: Final = TaskCall(params=Raw(b'{"name":"x"}'), capabilities=t.ClientCapabilities())
_WAITS: Final[dict[str, Any]] = {"status": "input_required", "worker": "w", "call": _CALL}
_META: Final = Raw(b'{"content":[],"resultType":"x","_meta":{"a":1}}')
RECORDS_ACTED_ON: Final[dict[str, TaskRecord]] = {
    "new": new_record(),
    "working": new_record(
        message="so far", serial=3, size=5, worker="w", call=_CALL, updated=CREATED + 30.0625,
        responses={"a": Raw(b"{}")},
    ),
    "asking": new_record(**_WAITS, open_requests={"q": _ROOTS}, size=1),
    "asking twice": new_record(
        **_WAITS, open_requests={"q": _ROOTS, "r": _ELICIT}, size=300, message="two",
    ),
    "asked often": new_record(
        **_WAITS, open_requests={"q": _ROOTS}, responses={"a": Raw(b"{}"), "b": Raw(b"[1]")},
    ),
    "completed": new_record(status="completed", result=Raw(b'{"content":[]}'), message="done"),
    "completed with meta": new_record(status="completed", result=_META, ttl=1e-9),
    "failed tool": new_record(status="completed", result=Raw(b'{"isError":true}'), is_error=True),
    "without result": new_record(status="completed", created=-5.0, updated=1e15),
    "failed": new_record(status="failed", error=t.ErrorData(-32000, "no", {"a": 1}), message="no"),
    "cancelled": new_record(status="cancelled", message="by the user", ttl=1e300),
    "cancelled silently": new_record(status="cancelled"),
}  # fmt: skip
_ACTIONS: Final[dict[str, TaskAction]] = {
    "message": SetMessage("so far"),
    "long message": SetMessage("1234567"),
    "half a pair": SetMessage("\ud800"),
    "request": RequestInput("n", _ROOTS),
    "request of the same key": RequestInput("q", _ELICIT),
    "request of an answered key": RequestInput("a", _ELICIT),
    "response": ReceiveResponse("q", Raw(b'{"roots":[]}')),
    "long response": ReceiveResponse("q", Raw(b'{"roots":["12345"]}')),
    "longest response": ReceiveResponse("q", Raw(b'{"roots":["123456"]}')),
    "too long response": ReceiveResponse("q", Raw(b'{"roots":["1234567"]}')),
    "response to nothing": ReceiveResponse("n", Raw(b"{}")),
    "complete": Complete(Raw(b'{"content":[]}')),
    "complete as error": Complete(Raw(b"{}"), is_error=True, message="bad luck"),
    "longest result": Complete(Raw(b'{"a":"' + b"x" * 52 + b'"}')),
    "too long result": Complete(Raw(b'{"a":"' + b"x" * 53 + b'"}')),
    "fail": Fail(t.ErrorData(-32000, "no such thing", [1])),
    "longest error": Fail(t.ErrorData(-1, "x" * 36)),
    "too long error": Fail(t.ErrorData(-1, "x" * 37)),
    "cancel": Cancel(),
    "cancel with text": Cancel("by the user"),
}


def _views(record: TaskRecord, version: str, now: float) -> list[str]:
    dialect = DIALECTS[version]
    views: tuple[Any, ...] = (
        *(create_task_result, get_task_result, listed_task, task_status_params),
        cancel_task_result,
    )
    shown = [view(record, dialect, now, _LIMITS) for view in views]
    shown.append(create_task_result(record, dialect, now, _LIMITS, "Wait."))
    return [f"  {version} {type(each).__name__} {encode(each).decode()}" for each in shown]


def _after(record: TaskRecord, action: TaskAction, now: float) -> str:
    try:
        changed = transition(record, action, now, _LIMITS)
    except Exception as exc:  # noqa: BLE001 - the kind of it is kept
        return f"{type(exc).__name__}: {exc}"
    return "" if changed is record else encode_record(changed).decode()


def _outcome(record: TaskRecord) -> str:
    try:
        outcome: Any = task_outcome(record)
    except Exception as exc:  # noqa: BLE001 - the kind of it is kept
        return f"{type(exc).__name__}: {exc}"
    return encode(outcome).decode()


def life_of(name: str) -> str:
    """Return how a record is shown, and what it becomes, in lines."""
    record = RECORDS_ACTED_ON[name]
    lines = [f"  {encode_record(record).decode()}", f"  outcome {_outcome(record)}"]
    for version, age in (D, 0.0), (E, 20.0):
        lines += _views(record, version, CREATED + age)
    lines += _views(record, E, CREATED + 90)[:1]
    for action, done in _ACTIONS.items():
        after = _after(record, done, CREATED + 10)
        if after:
            lines.append(f"  {action}: {after}")
    if record.ttl == _LIMITS.ttl:
        for age in 99.9, 100.0:
            after = _after(record, SetMessage(f"{age}"), CREATED + age)
            lines.append(f"  after {age} s: {after}")
    text = "\n".join(lines)
    return json.dumps(text, ensure_ascii=True)[1:-1].replace("\\n", "\n").replace('\\"', '"')


def kept_lives() -> dict[str, str]:
    """Return what is kept, by the record's name."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: life_of(name) for name in RECORDS_ACTED_ON})
