"""Conversations for cancellation, progress, log messages, pages, completion and caching hints."""

from __future__ import annotations

from typing import Any, Final

from tests.core.trace.judge.conversations import META, C, S, ask, error, notify, result
from tests.core.trace.judge.rules.case import Case, case
from tests.core.trace.judge.rules.messages import (
    COMPLETE,
    LIST,
    LOG,
    SERVED,
    TEXT,
    discovered,
    initialize,
    without,
)

SERVES: Final[tuple[dict[str, Any], dict[str, Any]]] = ({}, {"tools": {}})
LISTENED: Final = [C(ask(2, "subscriptions/listen", notifications={}))]


def cancel(id: Any) -> dict[str, Any]:
    return notify("notifications/cancelled", requestId=id)


def progress(token: Any, value: Any, **more: Any) -> dict[str, Any]:
    return notify("notifications/progress", progressToken=token, progress=value, **more)


def call(id: Any, token: Any = None, **meta: Any) -> dict[str, Any]:
    known = {**meta, "progressToken": token} if token is not None else meta
    return (
        ask(id, "tools/call", name="t", _meta=known) if known else ask(id, "tools/call", name="t")
    )


def set_level(id: Any, level: Any) -> dict[str, Any]:
    return ask(id, "logging/setLevel", level=level)


DONE: Final = S(result(1, content=TEXT))
LEVEL: Final = {META + "logLevel": "info"}
# The response to a later request shows that the server has read the cancellation.
CANCELLED: Final = [C(call(1, 5)), C(cancel(1)), C(ask(2, "x")), S(error(2))]
PAGE: Final = [C(ask(1, "tools/list")), S(result(1, tools=[], nextCursor="a"))]
TOOL: Final = {"name": "t", "inputSchema": {"type": "object"}}

STAMPS: Final = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:01Z"}
TASK_ID: Final = "c2a8e1f09b7d"
TASK_D: Final = {"taskId": TASK_ID, "status": "working", "ttl": None, **STAMPS}
TASK_E: Final = {"taskId": TASK_ID, "status": "working", "ttlMs": None, **STAMPS}
AS_TASK_D: Final = [
    C(ask(1, "tools/call", name="t", task={}, _meta={"progressToken": 5})),
    S(result(1, task=TASK_D)),
]
AS_TASK_E: Final = [C(call(1, 5)), S(result(1, resultType="task", **TASK_E))]
SEEN_D: Final = [C(ask(2, "tasks/get", taskId=TASK_ID)), S(result(2, **TASK_D))]
SEEN_E: Final = [C(ask(2, "tasks/get", taskId=TASK_ID)), S(result(2, **TASK_E))]
OWN: Final = [C(call(1)), C(cancel(1))]

CASES: Final[list[Case]] = [
    case("CXL-1", "2025-11-25", [C(call(1)), C(cancel(1.5))], OWN),
    case("CXL-2", "2025-11-25", [C(cancel(7))], OWN),
    case("CXL-2", "2025-11-25", [C(call(1)), DONE, S(cancel(1))], [C(call(1)), DONE, C(cancel(1))]),
    case("CXL-3", "2026-07-28", [*LIST, C(cancel(7))], OWN),
    case(
        "CXL-4",
        "2025-11-25",
        [C(initialize()), C(cancel("i"))],
        OWN,
        [],
        start=None,
        pass_start=SERVES,
    ),
    case("CXL-5", "2025-11-25", [*AS_TASK_D, *SEEN_D, C(cancel(1))], OWN),
    case("CXL-5", "2025-11-25", [*AS_TASK_D, C(cancel(1))], OWN, is_certain=False),
    case("CXL-6", "2025-11-25", [*CANCELLED, DONE], [*OWN, DONE], is_certain=False),
    case("CXL-7", "2026-07-28", [*CANCELLED, DONE], [*OWN, DONE]),
    case(
        "CXL-7",
        "2026-07-28",
        [*SERVED, *CANCELLED, S(progress(5, 1))],
        [*SERVED, C(call(1, 5)), C(cancel(1)), S(progress(5, 1))],
    ),
    case(
        "CXL-17", "2026-07-28", [*LIST, C(call(2)), S(cancel(2))], [*LIST, *LISTENED, S(cancel(2))]
    ),
    case("TX-18", "2026-07-28", [*AS_TASK_E, *SEEN_E, C(cancel(1))], OWN),
    # Progress
    case(
        "PROG-1",
        "2025-11-25",
        [C(call(1, 5)), S(progress(5, "x"))],
        [C(call(1, 5)), S(progress(5, 1.5))],
    ),
    case(
        "PROG-2", "2025-11-25", [C(call(1, 5)), C(call(2, 5))], [C(call(1, 5)), DONE, C(call(2, 5))]
    ),
    case(
        "PROG-3",
        "2025-11-25",
        [C(call(1, 5)), S(progress("5", 1))],
        [C(call(1, 5)), S(progress(5, 1))],
    ),
    case(
        "PROG-4",
        "2025-11-25",
        [C(call(1, 5)), S(progress(5, 1)), S(progress(5, 1))],
        [C(call(1, 5)), S(progress(5, 1)), S(progress(5, 1.5))],
    ),
    case(
        "PROG-5",
        "2025-11-25",
        [C(call(1, 5)), DONE, S(progress(5, 1))],
        [C(call(1, 5)), S(progress(5, 1))],
    ),
    case(
        "PROG-5",
        "2025-11-25",
        [
            *AS_TASK_D,
            S(notify("notifications/tasks/status", **{**TASK_D, "status": "failed"})),
            S(progress(5, 1)),
        ],
        [*AS_TASK_D, S(progress(5, 1))],
    ),
    case(
        "PROG-7",
        "2026-07-28",
        [*AS_TASK_E, S(progress(5, 1))],
        [*SERVED, C(call(1, 5)), S(progress(5, 1))],
    ),
    case(
        "PROG-8",
        "2026-07-28",
        [*LIST, C(progress(5, 1))],
        [*SERVED, C(call(1, 5)), S(progress(5, 1))],
        allowed=("LIFE-14",),
    ),
    # Log messages
    case("LOG-2", "2025-11-25", [S({**LOG, "params": {"level": "loud", "data": 1}})], [S(LOG)]),
    case(
        "LOG-3",
        "2025-11-25",
        [C(set_level(1, "error")), S(result(1)), S(LOG)],
        [C(set_level(1, "info")), S(result(1)), S(LOG)],
    ),
    case(
        "LOG-5",
        "2025-11-25",
        [C(set_level(1, "loud")), S(result(1))],
        [C(set_level(1, "loud")), S(error(1))],
        allowed=("LOG-3",),
        pass_allowed=("LOG-3",),
    ),
    case(
        "LOG-6",
        "2026-07-28",
        [C(set_level(1, "info")), S(result(1))],
        [*SERVED, C(set_level(1, "info")), S(error(1, -32601))],
        allowed=("LIFE-14",),
        pass_allowed=("LIFE-14",),
    ),
    case(
        "LOG-7",
        "2026-07-28",
        [*discovered(logging={}, tools={}), C(call(1)), S(LOG)],
        [*LIST, C(call(2, **LEVEL)), S(LOG)],
    ),
    case(
        "LOG-10",
        "2026-07-28",
        [C(call(1, **{META + "logLevel": "loud"})), DONE],
        [*SERVED, C(call(1, **{META + "logLevel": "loud"})), S(error(1))],
        allowed=("META-1",),
        pass_allowed=("META-1",),
    ),
    # Pages
    case("PAGE-1", "2025-11-25", [C(ask(1, "tools/list", cursor=5))], LIST, is_part=True),
    case(
        "PAGE-1",
        "2025-11-25",
        [*PAGE, C(ask(2, "tools/list", cursor="a")), S(result(2, tools=[TOOL], nextCursor="a"))],
        [*PAGE, C(ask(2, "tools/list", cursor="a")), S(result(2, tools=[TOOL], nextCursor="b"))],
    ),
    case(
        "PAGE-3",
        "2025-11-25",
        [*PAGE, C(ask(2, "tools/list", cursor="b"))],
        [*PAGE, C(ask(2, "tools/list", cursor="a"))],
    ),
    case(
        "PAGE-3",
        "2026-07-28",
        [*PAGE, C(ask(2, "tools/list", cursor="b"))],
        [*PAGE, C(ask(2, "tools/list", cursor="a"))],
        is_certain=False,
    ),
    # Completion and caching hints
    case("COMP-2", "2025-11-25", [C(without(COMPLETE, "ref"))], [C(COMPLETE)]),
    case(
        "COMP-3",
        "2025-11-25",
        [C(COMPLETE), S(result(1, completion={"values": ["x"] * 101}))],
        [C(COMPLETE), S(result(1, completion={"values": ["x"] * 100}))],
    ),
    case(
        "COMP-3",
        "2026-07-28",
        [C(COMPLETE), S(result(1, completion={}))],
        [C(COMPLETE), S(result(1, completion={"values": ["x"] * 100}))],
    ),
    case(
        "CACHE-1",
        "2026-07-28",
        [C(ask(1, "tools/list")), S(result(1, tools=[], ttlMs=-1))],
        LIST,
        allowed=("TOOL-2",),
    ),
    case(
        "CACHE-2",
        "2026-07-28",
        [C(call(1)), S(result(1, resultType="input_required", requestState="s", ttlMs=1))],
        [C(call(1)), S(result(1, resultType="input_required", requestState="s"))],
    ),
    case(
        "CACHE-8",
        "2026-07-28",
        [*PAGE, C(ask(2, "tools/list", cursor="a")), S(result(2, tools=[], cacheScope="public"))],
        [*PAGE, C(ask(2, "tools/list", cursor="a")), S(result(2, tools=[]))],
    ),
]
