"""Conversations for the rules on polling, results, ids and keys of tasks."""

from __future__ import annotations

from typing import Any, Final

from mcp_core.trace.judge._message import TASKS_EXTENSION
from tests.core.trace.judge.conversations import C, S, Sent, Start, ask, at, error, result
from tests.core.trace.judge.rules.case import Case, case
from tests.core.trace.judge.rules.http import MIRRORED, SERVED_E, Headers, got, sent
from tests.core.trace.judge.rules.messages import META_E, SERVER_META, TEXT
from tests.core.trace.judge.rules.rounds import (
    AS_TASK,
    FORM_INPUT,
    RELATED,
    RUNS_ALL,
    RUNS_NO_TASKS,
    got_d,
    got_e,
)
from tests.core.trace.judge.rules.utilities import AS_TASK_D, AS_TASK_E, TASK_D, TASK_E, TASK_ID

BEGIN: Final = Start("2025-11-25").messages()
CALLED: Final = {"content": TEXT, "_meta": {RELATED: {"taskId": TASK_ID}}}
FETCH: Final = C(ask(5, "tasks/result", taskId=TASK_ID))
FETCHED: Final = [FETCH, S(result(5, **CALLED))]
FAILED: Final = [FETCH, S(result(5, **CALLED, isError=True))]
POLL: Final = C(ask(3, "tasks/get", taskId=TASK_ID))
INPUT_D: Final = [*AS_TASK_D, *got_d(2, status="input_required")]
META: Final = {
    **META_E,
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {TASKS_EXTENSION: {}}},
}
TIMED_D: Final = [*AS_TASK_D, at(1, POLL), S(result(3, **TASK_D, pollInterval=10_000))]
INPUT_E: Final = {"status": "input_required", "inputRequests": {"k": FORM_INPUT}}
ANSWER: Final = {"k": {"action": "decline"}}
UPDATED: Final = [
    *AS_TASK_E,
    *got_e(**INPUT_E),
    C(ask(3, "tasks/update", taskId=TASK_ID, inputResponses=ANSWER)),
    S(result(3)),
]


def polled(t: float) -> Sent:
    return at(t, C(ask(4, "tasks/get", taskId=TASK_ID)))


def polled_e(id: int, t: float) -> Sent:
    return at(t, C(ask(id, "tasks/get", taskId=TASK_ID, _meta=META)))


def update(id: int, **responses: Any) -> Sent:
    return C(ask(id, "tasks/update", taskId=TASK_ID, inputResponses=responses))


def created(*ids: str) -> list[Sent]:
    found: list[Sent] = []
    for number, id in enumerate(ids, 1):
        found += [
            C(ask(number, "tools/call", name="t")),
            S(result(number, **{**TASK_E, "taskId": id}, resultType="task")),
        ]
    return found


def created_d(*ids: str) -> list[Sent]:
    found: list[Sent] = []
    for number, id in enumerate(ids, 1):
        found += [
            C(ask(number, "tools/call", name="t", task={})),
            S(result(number, task={**TASK_D, "taskId": id})),
        ]
    return found


def over_http(authorization: str | None) -> list[Sent]:
    """Return a task that is created by one user, and asked for with an authorization."""
    headers: Headers = {**MIRRORED, "authorization": "Bearer a"}
    call = ask(1, "tools/call", name="t", _meta=META)
    task = result(1, resultType="task", **TASK_E, _meta=SERVER_META)
    get = ask(2, "tasks/get", taskId=TASK_ID, _meta=META)
    view = result(2, resultType="complete", **TASK_E, _meta=SERVER_META)
    now: Headers = {
        **MIRRORED,
        "mcp-method": "tasks/get",
        "mcp-name": TASK_ID,
        "authorization": authorization,
    }
    return [sent(1, call, headers), got(1, 200, task), sent(2, get, now), got(2, 200, view)]


LONG: Final = "c2a8e1f09b7d46"
CASES: Final[list[Case]] = [
    case(
        "TSK-13",
        "2025-11-25",
        [*TIMED_D, polled(3)],
        [*TIMED_D, polled(10.5)],
        [*BEGIN, *AS_TASK_D],
    ),
    case(
        "TX-24",
        "2026-07-28",
        [
            *AS_TASK_E,
            polled_e(3, 1),
            S(result(3, **TASK_E, pollIntervalMs=1_000)),
            polled_e(4, 1.5),
        ],
        [
            *AS_TASK_E,
            polled_e(3, 1),
            S(result(3, **TASK_E, pollIntervalMs=1_000)),
            polled_e(4, 1.95),
        ],
        AS_TASK_E,
        is_certain=False,
    ),
    case(
        "TSK-16",
        "2025-11-25",
        [*INPUT_D, POLL, polled(0), C(ask(6, "tasks/get", taskId=TASK_ID))],
        [*INPUT_D, FETCH, POLL],
        [*BEGIN, *INPUT_D],
    ),
    case(
        "TSK-8",
        "2025-11-25",
        [C(AS_TASK), S(result(1, task=TASK_D))],
        [C(AS_TASK), S(result(1, content=TEXT))],
        start=RUNS_NO_TASKS,
        allowed=("TSK-3",),
        pass_allowed=("TSK-3",),
    ),
    case(
        "TSK-14",
        "2025-11-25",
        [*AS_TASK_D, FETCH, S(result(5, _meta=CALLED["_meta"]))],
        [*AS_TASK_D, *FETCHED],
        [*BEGIN, *AS_TASK_D],
        start=RUNS_ALL,
    ),
    case(
        "TSK-15",
        "2025-11-25",
        [*AS_TASK_D, *FETCHED, *got_d(2)],
        [*AS_TASK_D, *FETCHED, *got_d(2, status="completed")],
        [*BEGIN, *AS_TASK_D, *got_d(2)],
    ),
    case(
        "TSK-23",
        "2025-11-25",
        [*AS_TASK_D, *FAILED, *got_d(2, status="completed")],
        [*AS_TASK_D, *FAILED, *got_d(2, status="failed")],
        [*BEGIN, *AS_TASK_D, *FETCHED, *got_d(2, status="completed")],
    ),
    case(
        "TX-23",
        "2026-07-28",
        created("t-0001000001", "t-0001000002", "t-0001000003"),
        created(LONG),
    ),
    case("TX-23", "2026-07-28", created("7"), created(LONG), is_certain=False),
    case("TSK-24", "2025-11-25", created_d("7"), created_d(LONG), is_certain=False),
    case(
        "TX-23",
        "2026-07-28",
        over_http("Bearer b"),
        over_http("Bearer a"),
        SERVED_E,
        start=None,
        is_certain=False,
    ),
    case(
        "TX-7",
        "2026-07-28",
        [*AS_TASK_E, POLL, S(error(3))],
        [*AS_TASK_E, *got_e()],
        [*AS_TASK_E, POLL, S(error(3, -32603))],
    ),
    case(
        "TX-14",
        "2026-07-28",
        [*AS_TASK_E, *got_e(**INPUT_E), update(3, x={"action": "decline"}), S(error(3))],
        [*AS_TASK_E, *got_e(**INPUT_E), update(3, x={"action": "decline"}), S(result(3))],
        AS_TASK_E,
        is_certain=False,
    ),
    case("TX-15", "2026-07-28", [*UPDATED, update(4, **ANSWER)], UPDATED, AS_TASK_E),
    case(
        "TX-12",
        "2026-07-28",
        [*UPDATED, *got_e(4), *got_e(5, **INPUT_E)],
        [*UPDATED, *got_e(4, **{**INPUT_E, "inputRequests": {"l": FORM_INPUT}})],
        AS_TASK_E,
    ),
]
