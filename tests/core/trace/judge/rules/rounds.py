"""Conversations for multi round-trip requests, subscriptions and tasks."""

from __future__ import annotations

from typing import Any, Final

from tests.core.trace.judge.conversations import (
    META,
    C,
    S,
    Sent,
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
    cancel,
)

RELATED: Final = META + "related-task"
FORM_INPUT: Final = {"method": "elicitation/create", "params": FORM["params"]}
ROOTS_INPUT: Final = {"method": "roots/list"}
SUBSCRIPTION: Final = {META + "subscriptionId": 1}
CHANGED: Final = notify("notifications/tools/list_changed", _meta=SUBSCRIPTION)
NOTHING_DECLARED: Final = raw_client(ask(1, "tools/call", name="t", _meta=META_E))


def required(**members: Any) -> Sent:
    return S(result(1, resultType="input_required", **members))


def retry(id: Any, **params: Any) -> Sent:
    return C(ask(id, "tools/call", **{"name": "t", "requestState": "s", **params}))


ROUND: Final = [C(call(1)), required(inputRequests={"k": ROOTS_INPUT}, requestState="s")]
GIVEN: Final[dict[str, Any]] = {"inputResponses": {"k": {"roots": []}}}
SAMPLE_INPUT: Final = {"method": "sampling/createMessage", "params": SAMPLE["params"]}
SAMPLED: Final = {"role": "assistant", "model": "m", "content": TEXT[0]}


def filled(content: dict[str, Any]) -> dict[str, Any]:
    """Return the input responses for an accepted form."""
    return {"inputResponses": {"k": {"action": "accept", "content": content}}}


def asked_once(asked: dict[str, Any], declared: dict[str, Any]) -> list[Sent]:
    """Return a round in which a client with the declared capabilities is asked for something."""
    meta = {META + "clientCapabilities": declared}
    return [
        C(ask(1, "tools/call", name="t", _meta=meta)),
        required(inputRequests={"k": asked}, requestState="s"),
    ]


def retry_with(declared: dict[str, Any], given: dict[str, Any]) -> Sent:
    meta = {META + "clientCapabilities": declared}
    return retry(2, inputResponses={"k": given}, _meta=meta)


FILLED: Final = {"action": "accept", "content": {"a": "x"}}
FORM_ROUND: Final = [C(call(1)), required(inputRequests={"k": FORM_INPUT}, requestState="s")]


def listen(**notifications: Any) -> Sent:
    return C(ask(1, "subscriptions/listen", notifications=notifications))


def acknowledge(**notifications: Any) -> Sent:
    return S(
        notify(
            "notifications/subscriptions/acknowledged",
            notifications=notifications,
            _meta=SUBSCRIPTION,
        )
    )


READ_ON: Final = [C(ask(2, "x")), S(error(2))]
LISTENED: Final = [listen(toolsListChanged=True), acknowledge(toolsListChanged=True)]


def status_d(status: str, **members: Any) -> Sent:
    return S(notify("notifications/tasks/status", **{**TASK_D, "status": status, **members}))


def got_d(id: Any = 2, **members: Any) -> list[Sent]:
    return [C(ask(id, "tasks/get", taskId=TASK_ID)), S(result(id, **{**TASK_D, **members}))]


def got_e(id: Any = 2, **members: Any) -> list[Sent]:
    return [C(ask(id, "tasks/get", taskId=TASK_ID)), S(result(id, **{**TASK_E, **members}))]


def cancelled_d(status: str) -> list[Sent]:
    return [C(ask(3, "tasks/cancel", taskId=TASK_ID)), S(result(3, **{**TASK_D, "status": status}))]


def listed(support: str | None) -> list[Sent]:
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
        "2026-07-28",
        [C(ask(1, "prompts/list")), required(requestState="s")],
        [C(call(1)), required(requestState="s")],
    ),
    case(
        "MRTR-3", "2026-07-28", [C(call(1)), required()], [C(call(1)), required(requestState="s")]
    ),
    case(
        "MRTR-4", "2026-07-28", [C(call(1)), required(inputRequests={"k": {"method": "x"}})], ROUND
    ),
    case(
        "MRTR-5",
        "2026-07-28",
        [NOTHING_DECLARED, required(inputRequests={"k": ROOTS_INPUT})],
        ROUND,
    ),
    case("MRTR-6", "2026-07-28", [*ROUND, retry(2)], [*ROUND, retry(2, **GIVEN)]),
    case(
        "MRTR-7",
        "2026-07-28",
        [*ROUND, retry(2, **GIVEN, arguments={"a": 1})],
        [*ROUND, retry(2, **GIVEN)],
    ),
    case(
        "MRTR-8",
        "2026-07-28",
        [*ROUND, retry(2, **GIVEN, requestState="t")],
        [*ROUND, retry(2, **GIVEN)],
        is_certain=False,
    ),
    case("MRTR-10", "2026-07-28", [*ROUND, retry(1, **GIVEN)], [*ROUND, retry(2, **GIVEN)]),
    # What the client gives for what was asked
    case(
        "ELIC-10",
        "2026-07-28",
        [*FORM_ROUND, retry(2, **filled({"a": 5}))],
        [*FORM_ROUND, retry(2, **filled({"a": "x"}))],
        [*FORM_ROUND, retry(2, inputResponses={"k": {"action": "decline"}})],
    ),
    case(
        "ROOT-3",
        "2026-07-28",
        [*ROUND, retry(2, inputResponses={"k": {"roots": [{"uri": "https://x"}]}})],
        [*ROUND, retry(2, inputResponses={"k": {"roots": [{"uri": "file:///x"}]}})],
        [*ROUND, retry(2, **GIVEN)],
    ),
    *(
        case(
            row,
            "2026-07-28",
            [*asked_once(asked, {}), retry_with({}, given)],
            [*asked_once(asked, declared), retry_with(declared, given)],
            [*asked_once(asked, declared)],
            allowed=("MRTR-5",),
            is_certain=is_certain,
        )
        for row, asked, declared, given, is_certain in (
            ("SAMP-1", SAMPLE_INPUT, {"sampling": {}}, SAMPLED, True),
            (
                "ELIC-1",
                FORM_INPUT,
                {"elicitation": {}},
                FILLED,
                True,
            ),
            ("ELIC-1", FORM_INPUT, {"elicitation": {}}, {"action": "cancel"}, False),
            ("ROOT-1", ROOTS_INPUT, {"roots": {}}, {"roots": [{"uri": "file:///x"}]}, True),
            ("ROOT-1", ROOTS_INPUT, {"roots": {}}, {"roots": []}, False),
        )
    ),
    # Subscriptions
    case("SUB-1", "2026-07-28", [C(ask(1, "subscriptions/listen"))], [listen()]),
    case(
        "SUB-2",
        "2026-07-28",
        [listen(), acknowledge(), S(CHANGED)],
        [*LISTENED, S(CHANGED)],
    ),
    case(
        "SUB-3", "2026-07-28", [listen(toolsListChanged=True), S(CHANGED)], [*LISTENED, S(CHANGED)]
    ),
    case("SUB-3", "2026-07-28", [*LISTENED, acknowledge()], LISTENED),
    case("SUB-3", "2026-07-28", [listen(), acknowledge(toolsListChanged=True)], LISTENED),
    case(
        "CXL-7",
        "2026-07-28",
        [*LISTENED, C(cancel(1)), *READ_ON, S(CHANGED)],
        [*LISTENED, C(cancel(1)), S(CHANGED)],
    ),
    case(
        "SUB-4",
        "2026-07-28",
        [listen(), acknowledge(), S(result(1, _meta={META + "subscriptionId": "1"}))],
        [listen(), acknowledge(), S(result(1, _meta=SUBSCRIPTION))],
    ),
    case(
        "SUB-10",
        "2026-07-28",
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
        "2025-11-25",
        [SAMPLE_TASK],
        [SAMPLE_TASK],
        start=RUNS_NO_TASKS,
        pass_start=RUNS_ALL,
    ),
    case(
        "TSK-3", "2025-11-25", [C(AS_TASK)], [C(AS_TASK)], start=RUNS_NO_TASKS, pass_start=RUNS_ALL
    ),
    case(
        "TSK-4", "2025-11-25", [*listed("forbidden"), C(AS_TASK)], [*listed("optional"), C(AS_TASK)]
    ),
    case(
        "TSK-5", "2025-11-25", [*listed("required"), C(call(1))], [*listed("required"), C(AS_TASK)]
    ),
    case(
        "TSK-6",
        "2025-11-25",
        [C(ask(1, "tools/call", name="t", task={"ttl": "x"}))],
        [C(AS_TASK)],
        is_part=True,
    ),
    case(
        "TSK-7",
        "2025-11-25",
        [*listed("required"), C(AS_TASK), S(result(1, content=TEXT))],
        AS_TASK_D,
    ),
    case(
        "TSK-7", "2025-11-25", [C(AS_TASK), S(result(1, content=TEXT))], AS_TASK_D, is_certain=False
    ),
    case("TSK-10", "2025-11-25", [C(ask(1, "tasks/get"))], AS_TASK_D),
    case(
        "TSK-10",
        "2025-11-25",
        [*AS_TASK_D, C(ask(2, "tools/call", name="t", task={})), S(result(2, task=TASK_D))],
        AS_TASK_D,
    ),
    case(
        "TSK-11",
        "2025-11-25",
        [*FINAL_D, *got_d(status="working")],
        [*FINAL_D, *got_d(status="completed")],
    ),
    case(
        "TSK-11",
        "2025-11-25",
        [*FINAL_D, status_d("working")],
        [*AS_TASK_D, status_d("input_required")],
    ),
    case("TSK-12", "2025-11-25", got_d(ttl="x"), SEEN_D),
    case("TSK-12", "2025-11-25", got_d(createdAt="now"), SEEN_D),
    case(
        "TSK-17",
        "2025-11-25",
        [C(ask(1, "tasks/result", taskId=TASK_ID)), S(result(1))],
        [
            C(ask(1, "tasks/result", taskId=TASK_ID)),
            S(result(1, _meta={RELATED: {"taskId": TASK_ID}})),
        ],
    ),
    case(
        "TSK-18",
        "2025-11-25",
        [C(ask(1, "tasks/get", taskId=TASK_ID, _meta={RELATED: {"taskId": TASK_ID}}))],
        [C(ask(1, "tasks/get", taskId=TASK_ID))],
    ),
    case(
        "TSK-20",
        "2025-11-25",
        [C(ask(1, "tasks/list")), S(result(1))],
        [C(ask(1, "tasks/list")), S(result(1, tasks=[]))],
    ),
    case(
        "TSK-21",
        "2025-11-25",
        [*AS_TASK_D, *cancelled_d("working")],
        [*AS_TASK_D, *cancelled_d("cancelled")],
    ),
    case(
        "TSK-21",
        "2025-11-25",
        [*FINAL_D, *cancelled_d("completed")],
        [*AS_TASK_D, *cancelled_d("cancelled")],
    ),
    case(
        "TSK-22",
        "2025-11-25",
        [C(ask(1, "tasks/get", taskId=TASK_ID)), S(error(1, -32002))],
        [C(ask(1, "tasks/get", taskId=TASK_ID)), S(error(1))],
    ),
    # The extension
    case("TX-2", "2026-07-28", [NOTHING_DECLARED, AS_TASK_E[1]], AS_TASK_E),
    case(
        "TX-4",
        "2026-07-28",
        [C(ask(1, "prompts/get", name="p")), AS_TASK_E[1]],
        AS_TASK_E,
    ),
    case("TX-6", "2026-07-28", got_e(resultType="task"), SEEN_E),
    case(
        "TX-9",
        "2026-07-28",
        [C(call(1)), S(result(1, **{**TASK_E, "resultType": "task", "status": "new"}))],
        AS_TASK_E,
    ),
    case(
        "TX-9",
        "2026-07-28",
        [C(call(1)), S(result(1, **{**TASK_E, "resultType": "task", "createdAt": "now"}))],
        AS_TASK_E,
    ),
    case("TX-10", "2026-07-28", got_e(status="completed"), SEEN_E),
    case(
        "TX-10",
        "2026-07-28",
        [*AS_TASK_E, *got_e(status="completed", result={}), *got_e(3)],
        [*AS_TASK_E, *got_e(), *got_e(3, status="completed", result={})],
    ),
    case("TX-11", "2026-07-28", got_e(**FAILED_E, result={}), got_e(**FAILED_E)),
    case(
        "TX-12",
        "2026-07-28",
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
        "2026-07-28",
        [C(ask(1, "tasks/update", taskId=TASK_ID))],
        [C(ask(1, "tasks/update", taskId=TASK_ID, inputResponses={}))],
    ),
    case(
        "TX-17",
        "2026-07-28",
        [C(ask(1, "tasks/cancel"))],
        [C(ask(1, "tasks/cancel", taskId=TASK_ID))],
    ),
    case(
        "TX-17",
        "2026-07-28",
        [*AS_TASK_E, C(ask(2, "tasks/cancel", taskId=TASK_ID)), S(error(2))],
        [*AS_TASK_E, C(ask(2, "tasks/cancel", taskId=TASK_ID)), S(result(2))],
        is_certain=False,
    ),
    case(
        "TX-19",
        "2026-07-28",
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
        "2026-07-28",
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
        "2026-07-28",
        [C(ask(1, "tasks/result", taskId=TASK_ID)), S(result(1))],
        [*SERVED, C(ask(1, "tasks/result", taskId=TASK_ID)), S(error(1, -32601))],
        allowed=("LIFE-14",),
    ),
    case(
        "TX-23",
        "2026-07-28",
        [*AS_TASK_E, C(call(2)), S(result(2, resultType="task", **TASK_E))],
        AS_TASK_E,
    ),
]
