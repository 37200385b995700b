"""Conversations for multi round-trip requests, subscriptions and tasks."""

from __future__ import annotations

from typing import Any, Final

from tests.core.trace.judge.conversations import (
    META,
    C,
    S,
    Said,
    ask,
    error,
    notify,
    raw_client,
    result,
)
from tests.core.trace.judge.rules.case import Case, case
from tests.core.trace.judge.rules.messages import FORM, META_E, SAMPLE, SERVED, TEXT
from tests.core.trace.judge.rules.utilities import (
    AS_TASK_D,
    AS_TASK_E,
    SEEN_D,
    SEEN_E,
    TASK_D,
    TASK_E,
    TASK_ID,
    TOOL,
    call,
)

RELATED: Final = META + "related-task"
FORM_INPUT: Final = {"method": "elicitation/create", "params": FORM["params"]}
ROOTS_INPUT: Final = {"method": "roots/list"}
SUBSCRIPTION: Final = {META + "subscriptionId": 1}
CHANGED: Final = notify("notifications/tools/list_changed", _meta=SUBSCRIPTION)
NOTHING_DECLARED: Final = raw_client(ask(1, "tools/call", name="t", _meta=META_E))


def required(**members: Any) -> Said:
    return S(result(1, resultType="input_required", **members))


def retry(id: Any, **params: Any) -> Said:
    return C(ask(id, "tools/call", **{"name": "t", "requestState": "s", **params}))


ROUND: Final = [C(call(1)), required(inputRequests={"k": ROOTS_INPUT}, requestState="s")]
GIVEN: Final[dict[str, Any]] = {"inputResponses": {"k": {"roots": []}}}


def listen(**notifications: Any) -> Said:
    return C(ask(1, "subscriptions/listen", notifications=notifications))


def acknowledge(**notifications: Any) -> Said:
    return S(
        notify(
            "notifications/subscriptions/acknowledged",
            notifications=notifications,
            _meta=SUBSCRIPTION,
        )
    )


LISTENED: Final = [listen(toolsListChanged=True), acknowledge(toolsListChanged=True)]


def status_d(status: str, **members: Any) -> Said:
    return S(notify("notifications/tasks/status", **{**TASK_D, "status": status, **members}))


def got_d(id: Any = 2, **members: Any) -> list[Said]:
    return [C(ask(id, "tasks/get", taskId=TASK_ID)), S(result(id, **{**TASK_D, **members}))]


def got_e(id: Any = 2, **members: Any) -> list[Said]:
    return [C(ask(id, "tasks/get", taskId=TASK_ID)), S(result(id, **{**TASK_E, **members}))]


def cancelled_d(status: str) -> list[Said]:
    return [C(ask(3, "tasks/cancel", taskId=TASK_ID)), S(result(3, **{**TASK_D, "status": status}))]


def listed(support: str | None) -> list[Said]:
    tool = {**TOOL, "execution": {"taskSupport": support}} if support else TOOL
    return [C(ask(8, "tools/list")), S(result(8, tools=[tool]))]


AS_TASK: Final = ask(1, "tools/call", name="t", task={})
RUNS_NO_TASKS: Final[tuple[dict[str, Any], dict[str, Any]]] = (
    {"sampling": {}},
    {"tools": {}, "tasks": {}},
)
RUNS_ALL: Final[tuple[dict[str, Any], dict[str, Any]]] = (
    {
        "sampling": {},
        "tasks": {"requests": {"sampling": {"createMessage": {}}}},
    },
    {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}},
)
SAMPLE_TASK: Final = S(ask(1, "sampling/createMessage", **SAMPLE["params"], task={}))
FINAL_D: Final = [*AS_TASK_D, status_d("completed")]
FAILED_E: Final = {"status": "failed", "error": {"code": 1, "message": "x"}}

CASES: Final[list[Case]] = [
    # Rounds
    case(
        "MRTR-2",
        "E",
        [C(ask(1, "prompts/list")), required(requestState="s")],
        [C(call(1)), required(requestState="s")],
    ),
    case("MRTR-3", "E", [C(call(1)), required()], [C(call(1)), required(requestState="s")]),
    case("MRTR-4", "E", [C(call(1)), required(inputRequests={"k": {"method": "x"}})], ROUND),
    case(
        "MRTR-5",
        "E",
        [NOTHING_DECLARED, required(inputRequests={"k": ROOTS_INPUT})],
        ROUND,
    ),
    case("MRTR-6", "E", [*ROUND, retry(2)], [*ROUND, retry(2, **GIVEN)]),
    case(
        "MRTR-7",
        "E",
        [*ROUND, retry(2, **GIVEN, arguments={"a": 1})],
        [*ROUND, retry(2, **GIVEN)],
    ),
    case(
        "MRTR-8",
        "E",
        [*ROUND, retry(2, **GIVEN, requestState="t")],
        [*ROUND, retry(2, **GIVEN)],
        is_certain=False,
    ),
    case("MRTR-10", "E", [*ROUND, retry(1, **GIVEN)], [*ROUND, retry(2, **GIVEN)]),
    # Subscriptions
    case("SUB-1", "E", [C(ask(1, "subscriptions/listen"))], [listen()]),
    case(
        "SUB-2",
        "E",
        [listen(), acknowledge(), S(CHANGED)],
        [*LISTENED, S(CHANGED)],
    ),
    case("SUB-3", "E", [listen(toolsListChanged=True), S(CHANGED)], [*LISTENED, S(CHANGED)]),
    case("SUB-3", "E", [*LISTENED, acknowledge()], LISTENED),
    case("SUB-3", "E", [listen(), acknowledge(toolsListChanged=True)], LISTENED),
    case(
        "SUB-4",
        "E",
        [listen(), acknowledge(), S(result(1, _meta={META + "subscriptionId": "1"}))],
        [listen(), acknowledge(), S(result(1, _meta=SUBSCRIPTION))],
    ),
    case(
        "SUB-10",
        "E",
        [
            *LISTENED,
            C(call(2, 5)),
            S(notify("notifications/progress", progressToken=5, progress=1, _meta=SUBSCRIPTION)),
        ],
        [
            *SERVED,
            C(call(2, 5)),
            S(notify("notifications/progress", progressToken=5, progress=1)),
        ],
    ),
    # Tasks of 2025-11-25
    case(
        "TSK-2",
        "D",
        [SAMPLE_TASK],
        [SAMPLE_TASK],
        start=RUNS_NO_TASKS,
        pass_start=RUNS_ALL,
    ),
    case("TSK-3", "D", [C(AS_TASK)], [C(AS_TASK)], start=RUNS_NO_TASKS, pass_start=RUNS_ALL),
    case("TSK-4", "D", [*listed("forbidden"), C(AS_TASK)], [*listed("optional"), C(AS_TASK)]),
    case("TSK-5", "D", [*listed("required"), C(call(1))], [*listed("required"), C(AS_TASK)]),
    case(
        "TSK-6",
        "D",
        [C(ask(1, "tools/call", name="t", task={"ttl": "x"}))],
        [C(AS_TASK)],
        is_part=True,
    ),
    case("TSK-7", "D", [*listed("required"), C(AS_TASK), S(result(1, content=TEXT))], AS_TASK_D),
    case("TSK-7", "D", [C(AS_TASK), S(result(1, content=TEXT))], AS_TASK_D, is_certain=False),
    case("TSK-10", "D", [C(ask(1, "tasks/get"))], AS_TASK_D),
    case(
        "TSK-10",
        "D",
        [*AS_TASK_D, C(ask(2, "tools/call", name="t", task={})), S(result(2, task=TASK_D))],
        AS_TASK_D,
    ),
    case(
        "TSK-11", "D", [*FINAL_D, *got_d(status="working")], [*FINAL_D, *got_d(status="completed")]
    ),
    case("TSK-11", "D", [*FINAL_D, status_d("working")], [*AS_TASK_D, status_d("input_required")]),
    case("TSK-12", "D", got_d(ttl="x"), SEEN_D),
    case("TSK-12", "D", got_d(createdAt="now"), SEEN_D),
    case(
        "TSK-17",
        "D",
        [C(ask(1, "tasks/result", taskId=TASK_ID)), S(result(1))],
        [
            C(ask(1, "tasks/result", taskId=TASK_ID)),
            S(result(1, _meta={RELATED: {"taskId": TASK_ID}})),
        ],
    ),
    case(
        "TSK-18",
        "D",
        [C(ask(1, "tasks/get", taskId=TASK_ID, _meta={RELATED: {"taskId": TASK_ID}}))],
        [C(ask(1, "tasks/get", taskId=TASK_ID))],
    ),
    case(
        "TSK-20",
        "D",
        [C(ask(1, "tasks/list")), S(result(1))],
        [C(ask(1, "tasks/list")), S(result(1, tasks=[]))],
    ),
    case(
        "TSK-21",
        "D",
        [*AS_TASK_D, *cancelled_d("working")],
        [*AS_TASK_D, *cancelled_d("cancelled")],
    ),
    case(
        "TSK-21",
        "D",
        [*FINAL_D, *cancelled_d("completed")],
        [*AS_TASK_D, *cancelled_d("cancelled")],
    ),
    case(
        "TSK-22",
        "D",
        [C(ask(1, "tasks/get", taskId=TASK_ID)), S(error(1, -32002))],
        [C(ask(1, "tasks/get", taskId=TASK_ID)), S(error(1))],
    ),
    # The extension
    case("TX-2", "E", [NOTHING_DECLARED, AS_TASK_E[1]], AS_TASK_E),
    case(
        "TX-4",
        "E",
        [C(ask(1, "prompts/get", name="p")), AS_TASK_E[1]],
        AS_TASK_E,
    ),
    case("TX-6", "E", got_e(resultType="task"), SEEN_E),
    case(
        "TX-9",
        "E",
        [C(call(1)), S(result(1, **{**TASK_E, "resultType": "task", "status": "new"}))],
        AS_TASK_E,
    ),
    case(
        "TX-9",
        "E",
        [C(call(1)), S(result(1, **{**TASK_E, "resultType": "task", "createdAt": "now"}))],
        AS_TASK_E,
    ),
    case("TX-10", "E", got_e(status="completed"), SEEN_E),
    case(
        "TX-10",
        "E",
        [*AS_TASK_E, *got_e(status="completed", result={}), *got_e(3)],
        [*AS_TASK_E, *got_e(), *got_e(3, status="completed", result={})],
    ),
    case("TX-11", "E", got_e(**FAILED_E, result={}), got_e(**FAILED_E)),
    case(
        "TX-12",
        "E",
        [
            *AS_TASK_E,
            *got_e(status="input_required", inputRequests={"k": FORM_INPUT}),
            C(ask(3, "tasks/update", taskId=TASK_ID, inputResponses={"k": {"action": "decline"}})),
            S(result(3)),
            *got_e(4, status="input_required", inputRequests={"k": FORM_INPUT}),
        ],
        [*AS_TASK_E, *got_e(status="input_required", inputRequests={"k": FORM_INPUT})],
        is_certain=False,
    ),
    case(
        "TX-13",
        "E",
        [C(ask(1, "tasks/update", taskId=TASK_ID))],
        [C(ask(1, "tasks/update", taskId=TASK_ID, inputResponses={}))],
    ),
    case("TX-17", "E", [C(ask(1, "tasks/cancel"))], [C(ask(1, "tasks/cancel", taskId=TASK_ID))]),
    case(
        "TX-17",
        "E",
        [*AS_TASK_E, C(ask(2, "tasks/cancel", taskId=TASK_ID)), S(error(2))],
        [*AS_TASK_E, C(ask(2, "tasks/cancel", taskId=TASK_ID)), S(result(2))],
        is_certain=False,
    ),
    case(
        "TX-19",
        "E",
        [
            raw_client(ask(1, "tasks/get", taskId=TASK_ID, _meta=META_E)),
            S(result(1, **TASK_E)),
        ],
        [
            raw_client(ask(1, "tasks/get", taskId=TASK_ID, _meta=META_E)),
            S(error(1, -32021, data={"requiredCapabilities": {}})),
        ],
    ),
    case(
        "TX-20",
        "E",
        [
            listen(taskIds=[TASK_ID]),
            acknowledge(),
            S(notify("notifications/tasks", taskId=TASK_ID, _meta=SUBSCRIPTION)),
        ],
        [
            listen(taskIds=[TASK_ID]),
            acknowledge(),
            S(notify("notifications/tasks", **TASK_E, _meta=SUBSCRIPTION)),
        ],
    ),
    case(
        "TX-22",
        "E",
        [C(ask(1, "tasks/result", taskId=TASK_ID)), S(result(1))],
        [*SERVED, C(ask(1, "tasks/result", taskId=TASK_ID)), S(error(1, -32601))],
        allowed=("LIFE-14",),
    ),
    case(
        "TX-23",
        "E",
        [*AS_TASK_E, C(call(2)), S(result(2, resultType="task", **TASK_E))],
        AS_TASK_E,
    ),
]
