"""A model of one task, written from the specification and not from the table of the core.

It keeps lists of what has happened, and derives the status from them. Steps are literals, so that a
case can be read and edited by hand: `action_of` returns the action of the core for a step.
"""

from __future__ import annotations

import json
from typing import Any, Final, Literal, TypeAlias

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import UNSET, Raw

from mcp_core import LocalProtocolError
from mcp_core import types as t
from mcp_core.tasks import (
    Cancel,
    Complete,
    Fail,
    ReceiveResponse,
    RequestInput,
    SetMessage,
    TaskAction,
    TaskExpired,
    TaskLimits,
    TaskRecord,
    transition,
)
from mcp_trio.oracle.strategies._values import encoded, json_objects, texts, weighted

__all__ = [
    "CREATED",
    "LIMITS",
    "REQUESTS",
    "Effect",
    "Step",
    "TaskModel",
    "action_of",
    "new_record",
    "play",
    "steps",
]

# The name of an action and its values.
Step: TypeAlias = tuple[Any, ...]
Effect: TypeAlias = Literal["expired", "refused", "same", "changed"]

CREATED: Final = 1_800_000_000.0
# So low that every walk reaches some of them.
LIMITS: Final = TaskLimits(
    open_requests=2, requests=4, result=90, responses=40, message=12, ttl=100.0
)
REQUESTS: Final[tuple[t.InputRequest, ...]] = (
    t.ListRootsRequest(),
    t.ElicitRequest(
        t.ElicitParams(
            message="Really?",
            mode="form",
            requested_schema={"type": "object", "properties": {"ok": {"type": "boolean"}}},
        )
    ),
    t.ElicitRequest(
        t.ElicitParams(message="Log in", mode="url", url="https://a.example/", elicitation_id="e")
    ),
    t.CreateMessageRequest(
        t.CreateMessageParams(
            messages=[t.SamplingMessage("user", t.TextContent("Hello"))],
            max_tokens=5,
            task=t.TaskMetadata(ttl=1),
        )
    ),
)


def new_record(**members: Any) -> TaskRecord:
    """Return the record of a new task, with `members` in place of the usual ones."""
    usual = {
        "id": "0123456789abcdef0123456789abcdef",
        "created": CREATED,
        "updated": CREATED,
        "ttl": LIMITS.ttl,
        "tool": "publish",
        "revision": "2025-11-25",
    }
    return TaskRecord(**{**usual, **members})


def action_of(step: Step) -> TaskAction:
    """Return the action of the core for a step."""
    match step:
        case ("message", text):
            return SetMessage(text)
        case ("request", key, number):
            return RequestInput(key, REQUESTS[number % len(REQUESTS)])
        case ("respond", key, data):
            return ReceiveResponse(key, Raw(data))
        case ("complete", data, is_error, message):
            return Complete(Raw(data), is_error, message)
        case ("fail", message, *data):
            return Fail(t.ErrorData(-32000, message, *data))
        case ("cancel", message):
            return Cancel(message)
    raise ValueError(step)


def play(record: TaskRecord, step: Step, now: float) -> tuple[TaskRecord, Effect]:
    """Return the record after a step, and what the step did."""
    try:
        after = transition(record, action_of(step), now, LIMITS)
    except TaskExpired:
        return record, "expired"
    except LocalProtocolError:
        return record, "refused"
    return after, "same" if after is record else "changed"


class TaskModel:
    """The actions on one task so far, and the state that they lead to."""

    def __init__(self, created: float, ttl: float) -> None:
        self.created = created
        self.ttl = ttl
        self.updated = created
        self.changes = 0
        self.message: str | None = None
        self.requested: list[str] = []
        self.received: dict[str, bytes] = {}
        # "completed" with the result and isError, "failed" with the error, "cancelled"
        self.end: tuple[Any, ...] = ()

    @property
    def waiting(self) -> list[str]:
        return [key for key in self.requested if key not in self.received]

    @property
    def status(self) -> str:
        if self.end:
            return str(self.end[0])
        return "input_required" if self.waiting else "working"

    def play(self, step: Step, now: float) -> Effect:
        """Do a step, and return its effect."""
        if now >= self.created + self.ttl:
            return "expired"
        if self.end:
            return "same"
        try:
            happened = getattr(self, f"_{step[0]}")(*step[1:])
        except UnicodeEncodeError:
            return "refused"
        if happened in ("refused", "same"):
            return happened  # type: ignore[no-any-return]
        self.updated = max(self.updated, now)
        self.changes += 1
        return "changed"

    def check(self, record: TaskRecord) -> None:
        """Assert that `record` is this task's."""
        assert record.status == self.status
        assert list(record.open_requests) == ([] if self.end else self.waiting)
        assert {key: bytes(raw) for key, raw in record.responses.items()} == self.received
        assert record.message == self.message
        assert record.serial == 1 + self.changes
        assert record.updated == self.updated
        result = record.result if record.result is UNSET else bytes(record.result)
        if self.status == "completed":
            assert (result, record.is_error) == self.end[1:]
        else:
            assert (result, record.is_error) == (UNSET, False)
        if self.status == "failed" and len(self.end) > 1:
            assert record.error is not None
            assert (record.error.message, record.error.data) == self.end[1:]
        else:
            assert (record.error is not None) is (self.status == "failed")

    # The steps return "refused" or "same", or None for a change.

    def _message(self, text: str) -> Effect | None:
        text = text[: LIMITS.message]
        text.encode()
        if text == self.message:
            return "same"
        self.message = text
        return None

    def _request(self, key: str, number: int) -> Effect | None:
        if key in self.requested:
            return "same"
        if len(self.waiting) == LIMITS.open_requests or len(self.requested) == LIMITS.requests:
            return "refused"
        key.encode()
        self.requested.append(key)
        return None

    def _respond(self, key: str, data: bytes) -> Effect | None:
        if key not in self.waiting:
            return "same"
        size = len(b"".join(self.received.values())) + len(data)
        if size > LIMITS.responses:
            self._too_large("input", size, LIMITS.responses)
        else:
            self.received[key] = data
        return None

    def _complete(self, data: bytes, is_error: bool, message: str | None) -> None:
        if len(data) > LIMITS.result:
            self._too_large("result", len(data), LIMITS.result)
        else:
            self._finish(("completed", data, is_error), message)

    def _fail(self, message: str, *data: Any) -> None:
        error = {"code": -32000, "message": message, **({"data": data[0]} if data else {})}
        size = len(encoded(error))
        if size > LIMITS.result:
            self._too_large("error", size, LIMITS.result)
        else:
            self._finish(("failed", message, data[0] if data else UNSET), message)

    def _cancel(self, message: str | None) -> None:
        self._finish(("cancelled",), message)

    def _too_large(self, what: str, size: int, limit: int) -> None:
        text = f"the {what} of the task has {size} bytes, the limit is {limit}"
        if what != "input":
            text += ": the handler has run, and what it changed stays"
        self._finish(("failed", text, UNSET), text)

    def _finish(self, end: tuple[Any, ...], message: str | None) -> None:
        if message is not None:
            message = message[: LIMITS.message]
            message.encode()
        self.end = end
        self.message = message
        self.received = {}


# -- Random steps ----------------------------------------------------------------------------------

_KEYS: Final = st.sampled_from(("a", "b", "c", "d", "e", "", "\ud800"))
_TEXTS: Final = st.one_of(
    st.sampled_from(
        ("", "page 1 of 9", "page 2 of 9", "twelve chars", "thirteen char", "half \udc00")
    ),
    st.text(max_size=14),
)
_RESULTS: Final = st.one_of(
    json_objects().map(encoded),
    st.integers(0, 3).map(lambda more: b'{"a":"%b"}' % (b"x" * (LIMITS.result - 8 + more - 1))),
)
_RESPONSES: Final = st.one_of(
    st.just(b"{}"), st.integers(0, 45).map(lambda size: json.dumps("x" * size).encode())
)
# With how much time passes before it. The clock may be set back.
_PAUSES: Final = st.sampled_from((0.0, 0.0, 0.001, 1.0, 10.0, -5.0, -1e10, 99.0, 101.0))


def steps() -> SearchStrategy[tuple[float, Step]]:
    """Return one step of a walk, and the seconds before it."""
    requests = st.tuples(st.just("request"), _KEYS, st.integers(0, 3))
    responses = st.tuples(st.just("respond"), _KEYS, _RESPONSES)
    messages = st.tuples(st.just("message"), _TEXTS)
    ends = st.one_of(
        st.tuples(st.just("complete"), _RESULTS, st.booleans(), st.none() | _TEXTS),
        st.tuples(st.just("fail"), _TEXTS),
        # Without floats, which the core and the standard library write with different lengths.
        st.tuples(st.just("fail"), st.text(max_size=30), st.lists(texts(), max_size=3)),
        st.tuples(st.just("cancel"), st.none() | _TEXTS),
    )
    step = weighted((5, requests), (5, responses), (3, messages), (2, ends))
    return st.tuples(_PAUSES, step)
