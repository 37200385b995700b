"""Conversations of two clients with one server: what one of them gets of the other one."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from tests.core.trace.judge.conversations import INFO, Sent, ask, notify, result
from tests.core.trace.judge.rules.case import Case, case
from tests.core.trace.judge.rules.http import (
    CALL,
    CALLED,
    IN,
    INITIALIZE,
    INITIALIZED,
    MIRRORED,
    NOTE,
    SERVED,
    SERVED_E,
    SESSION,
    SSE,
    START,
    VERSION,
    Headers,
    event,
    got,
    sent,
)
from tests.core.trace.judge.rules.messages import SERVER_META
from tests.core.trace.judge.rules.tasks import META
from tests.core.trace.judge.rules.utilities import TASK_D, TASK_E

OTHER: Final[Headers] = {"mcp-session-id": "other"}
IN_OTHER: Final[Headers] = {**OTHER, **VERSION}
MADE_UP: Final[Headers] = {"mcp-session-id": "made-up", **VERSION}
TOKEN: Final[Headers] = {"authorization": "Bearer a"}
LIST: Final = ask(2, "tools/list")
TOOL: Final = {"name": "echo", "inputSchema": {"type": "object"}}
READ_ONLY: Final = {**TOOL, "annotations": {"readOnlyHint": True}}
LEVEL: Final = ask(2, "logging/setLevel", level="error")
LOGGING: Final = result(
    1, protocolVersion="2025-11-25", capabilities={"logging": {}, "tools": {}}, serverInfo=INFO
)
LOG: Final = notify("notifications/message", level="info", data="x")
UPDATE: Final = notify("notifications/resources/updated", uri="a:b")
WITH_RESOURCES: Final = result(
    1,
    protocolVersion="2025-11-25",
    capabilities={"resources": {"subscribe": True}},
    serverInfo=INFO,
)
OFFERED: Final = result(
    1,
    protocolVersion="2025-11-25",
    capabilities={"prompts": {}, "resources": {}},
    serverInfo=INFO,
)
# Longer than what a result has by chance.
MINE, YOURS = "the text of the first client", "the text of the second client"


def second(*lines: Sent) -> list[Sent]:
    """Return lines of the second client's conversation."""
    return [Sent(each.sender, replace(each.message, conversation=2)) for each in lines]


def opened(given: Headers, headers: Headers | None = None) -> list[Sent]:
    """Return the second client's handshake, by which it gets a session."""
    return second(
        sent(11, INITIALIZE, headers or {}),
        got(11, 200, INITIALIZED, given),
        sent(12, NOTE, {**given, **VERSION, **(headers or {})}),
        got(12, 202),
    )


TWO: Final = [*START, *opened(OTHER)]
END_OTHER: Final = second(sent(13, None, IN_OTHER, "DELETE"), got(13, 204))


def listed(number: int, headers: Headers, status: int = 200, id: int = 2) -> list[Sent]:
    """Return a request for the tools, with the response."""
    message = {**LIST, "id": id}
    answer: Any = result(id, tools=[]) if status == 200 else None
    return [sent(number, message, headers), got(number, status, answer)]


def called(number: int, id: int, text: str, given: str, name: str = "echo") -> list[Sent]:
    """Return a call with `text`, and with `given` in its result."""
    call = ask(id, "tools/call", name=name, arguments={"text": text})
    answer = result(id, content=[{"type": "text", "text": given}])
    return [sent(number, call, IN), got(number, 200, answer)]


def tools(tool: Any) -> list[Sent]:
    """Return the second client's list of tools."""
    return second(sent(20, LIST, IN_OTHER), got(20, 200, result(2, tools=[tool])))


def in_second(request: Sent, response: Sent) -> list[Sent]:
    """Return a request and its response, as the second client's."""
    assert request.message.http is not None
    headers = tuple(
        (name, "other" if name == "mcp-session-id" else value)
        for name, value in request.message.http.headers
    )
    message = replace(request.message, http=replace(request.message.http, headers=headers))
    return second(Sent("client", message), response)


def second_called(number: int, id: int, text: str, given: str) -> list[Sent]:
    """Return a call by the second client."""
    return in_second(*called(number, id, text, given))


def mixed(tool: Any) -> list[Sent]:
    """Return calls of both clients. The second one's first call has the first one's result."""
    return [
        *TWO,
        *tools(tool),
        *called(21, 3, MINE, MINE),
        *second_called(22, 3, YOURS, MINE),
        *second_called(23, 4, YOURS, YOURS),
    ]


def mixed_later() -> list[Sent]:
    """Return the same, and the second one's second call has the first one's result."""
    return [
        *TWO,
        *tools(READ_ONLY),
        *called(21, 3, MINE, MINE),
        *second_called(22, 3, YOURS, YOURS),
        *second_called(23, 4, YOURS, MINE),
    ]


UNMIXED: Final = [
    *TWO,
    *tools(READ_ONLY),
    *called(21, 3, MINE, MINE),
    *second_called(22, 3, YOURS, YOURS),
]


def asked(number: int, id: int, method: str, text: str, given: str) -> list[Sent]:
    """Return a request for a prompt or a resource with `text`, and a result with `given`."""
    message = ask(id, method, name="greet", arguments={"text": text})
    content: Any = {"role": "user", "content": {"type": "text", "text": given}}
    answer = result(id, messages=[content])
    if method == "resources/read":
        of, to = (f"x:/{each.replace(' ', '-')}" for each in (text, given))
        message, answer = ask(id, method, uri=of), result(id, contents=[{"uri": to, "text": given}])
    return [sent(number, message, IN), got(number, 200, answer)]


def mixed_of(method: str, *given: str) -> list[Sent]:
    """Return the first client's request, and equal ones of the second client."""
    begun = [sent(1, INITIALIZE, {}), got(1, 200, OFFERED, SESSION), sent(2, NOTE, IN), got(2, 202)]
    theirs = second(sent(11, INITIALIZE, {}), got(11, 200, OFFERED, OTHER))
    theirs += second(sent(12, NOTE, IN_OTHER), got(12, 202))
    found = [*begun, *theirs, *asked(21, 3, method, MINE, MINE)]
    for number, text in enumerate(given):
        found += in_second(*asked(22 + number, 3 + number, method, YOURS, text))
    return found


def logged(*between: Sent) -> list[Sent]:
    """Return a call whose stream has a log message, after a level was set and `between`."""
    return [
        sent(1, INITIALIZE, {}),
        got(1, 200, LOGGING, SESSION),
        sent(2, NOTE, IN),
        got(2, 202),
        sent(3, LEVEL, IN),
        got(3, 200, result(2)),
        *between,
        sent(5, {**CALL, "id": 3}, IN),
        got(5, 200, kind=SSE),
        event(5, LOG),
        event(5, {**CALLED, "id": 3}),
    ]


def set_again(level: str) -> list[Sent]:
    """Return another `logging/setLevel`."""
    message = ask(4, "logging/setLevel", level=level)
    return [sent(4, message, IN), got(4, 200, result(4))]


def updated(*subscribe: Sent) -> list[Sent]:
    """Return a standalone stream with an update."""
    return [
        sent(1, INITIALIZE, {}),
        got(1, 200, WITH_RESOURCES, SESSION),
        sent(2, NOTE, IN),
        got(2, 202),
        *subscribe,
        sent(4, None, {"accept": SSE, **IN}, "GET"),
        got(4, 200, kind=SSE),
        event(4, UPDATE),
    ]


SUBSCRIBE: Final = [
    sent(3, ask(3, "resources/subscribe", uri="a:b"), IN),
    got(3, 200, result(3)),
]


def resumed(last: str, id: str, message: Any = CALLED) -> list[Sent]:
    """Return a stream of the first client, and one of the second that resumes after `last`.

    Both have `message`, the second one's with `id`.
    """
    request = sent(14, None, {"accept": SSE, **IN_OTHER, "last-event-id": last}, "GET")
    return [
        *TWO,
        sent(4, CALL, IN),
        got(4, 200, kind=SSE),
        event(4, None, "a-1"),
        event(4, message, "a-2"),
        *second(request, got(14, 200, kind=SSE), event(14, message, id)),
    ]


def task_of(number: int, id: str, headers: Headers, conversation: int = 1) -> list[Sent]:
    """Return a call that becomes a task."""
    call = ask(30, "tools/call", name="t", task={})
    lines = [
        sent(number, call, headers),
        got(number, 200, result(30, task={**TASK_D, "taskId": id})),
    ]
    return lines if conversation == 1 else second(*lines)


LONG: Final = "786512e2-9e0d-44bd-8f29-789f320fe840"
LONGER: Final = "0e8a7d8f-6b0e-4b7c-9f0e-6a8a7d1f3b52"
AS_TASK: Final = {"resultType": "task", "_meta": SERVER_META}
RUNS_TASKS: Final = result(
    1,
    protocolVersion="2025-11-25",
    capabilities={"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}},
    serverInfo=INFO,
)


def two_tasks(first: str, other: str, headers: Headers) -> list[Sent]:
    """Return a task of each of two clients."""
    lines = [
        sent(1, INITIALIZE, headers),
        got(1, 200, RUNS_TASKS, SESSION),
        sent(2, NOTE, {**IN, **headers}),
        got(2, 202),
    ]
    others = second(
        sent(11, INITIALIZE, headers),
        got(11, 200, RUNS_TASKS, OTHER),
        sent(12, NOTE, {**IN_OTHER, **headers}),
        got(12, 202),
    )
    return [
        *lines,
        *others,
        *task_of(3, first, {**IN, **headers}),
        *task_of(13, other, {**IN_OTHER, **headers}, 2),
    ]


def two_tasks_e(first: str, other: str, headers: Headers) -> list[Sent]:
    """Return a task of each of two clients of 2026-07-28, which has no sessions."""
    call = ask(1, "tools/call", name="t", _meta=META)
    one, two = (
        [
            sent(number, call, {**MIRRORED, **headers}),
            got(number, 200, result(1, **{**TASK_E, "taskId": id}, **AS_TASK)),
        ]
        for number, id in ((1, first), (11, other))
    )
    return [*one, *second(*two)]


# For SHL-23 and SHL-24: a server that serves a request without a session breaks these, too.
WITHOUT_SESSION: Final = ("SHL-22", "HTTP-8")
ENDED: Final = [*START, sent(4, None, IN, "DELETE"), got(4, 204), *listed(5, IN, 404)]


def together(
    row: str,
    fails: list[Sent],
    passes: list[Sent],
    none: list[Sent],
    revision: str = "2025-11-25",
    **more: Any,
) -> Case:
    """Return a case of two clients, whose conversations have beginnings of their own."""
    return case(row, revision, fails, passes, none, start=None, **more)


CASES: Final[list[Case]] = [
    # One session for two clients
    together("SHL-21", [*START, *opened(SESSION)], TWO, []),
    # It can be one client
    *(
        together("SHL-21", fails, TWO, [], is_certain=False)
        for fails in (
            [*START, *opened(SESSION, TOKEN)],
            [*START, sent(3, None, IN, "DELETE"), got(3, 204), *opened(SESSION)],
        )
    ),
    # A request without a session, and one with a session that isn't there
    *(
        together(
            "SHL-23",
            [*TWO, *fails],
            [*TWO, *listed(3, VERSION, 400), *passes],
            none,
            allowed=WITHOUT_SESSION,
            pass_allowed=WITHOUT_SESSION,
            is_certain=is_certain,
        )
        for fails, passes, none, is_certain in (
            (
                [*listed(3, VERSION), *END_OTHER, *listed(4, VERSION, 400, 3)],
                listed(4, VERSION, 400, 3),
                SERVED,
                True,
            ),
            (
                [*listed(3, VERSION, 400), *listed(4, VERSION, 200, 3)],
                listed(4, VERSION, 400, 3),
                [*START, *listed(3, IN)],
                True,
            ),
            # The server can find the session by the token.
            (
                [*listed(3, {**VERSION, **TOKEN}), *listed(4, {**VERSION, **TOKEN}, 400, 3)],
                [],
                SERVED,
                False,
            ),
        )
    ),
    together(
        "SHL-24",
        [*START, *listed(3, MADE_UP, 404), *listed(4, MADE_UP, 200, 3)],
        ENDED,
        SERVED,
        allowed=("SHL-25", *WITHOUT_SESSION),
        pass_allowed=("HTTP-8",),
    ),
    together(
        "SHL-24",
        [*TWO, *END_OTHER, *listed(3, IN, 404)],
        ENDED,
        [*TWO, *END_OTHER, *listed(3, IN)],
        is_certain=False,
        allowed=("HTTP-8",),
    ),
    # Results
    together("RPC-7", mixed(READ_ONLY), UNMIXED, []),
    together("RPC-7", mixed_later(), UNMIXED, []),
    # The call may have stored its text
    together("RPC-7", mixed(TOOL), UNMIXED, [], is_certain=False),
    *(
        together(
            "RPC-7",
            mixed_of(method, *given),
            mixed_of(method, YOURS),
            [],
            is_certain=is_certain,
        )
        for method, is_certain in (("prompts/get", True), ("resources/read", False))
        for given in ((MINE, YOURS), (YOURS, MINE))
    ),
    # Messages that the client didn't ask for
    together("LOG-3", logged(), logged(*set_again("info")), SERVED),
    together("RES-5", updated(), updated(*SUBSCRIBE), SERVED),
    together(
        "SHL-19",
        resumed("a-1", "a-2"),
        [
            *START,
            sent(4, None, {"accept": SSE, **IN}, "GET"),
            got(4, 200, kind=SSE),
            event(4, notify("x"), "a-1"),
            sent(5, None, {"accept": SSE, **IN, "last-event-id": "a-1"}, "GET"),
            got(5, 200, kind=SSE),
            event(5, notify("x"), "a-1"),
        ],
        SERVED,
        allowed=("SHL-18", "RPC-7"),
    ),
    # The server can have tasks of each session, or of each user.
    *(
        together(
            "TSK-10",
            two_tasks(LONG, LONG, headers),
            two_tasks(LONG, LONGER, headers),
            SERVED,
            is_certain=False,
        )
        for headers in ({}, TOKEN)
    ),
    *(
        together(
            "TX-23",
            two_tasks_e(LONG, LONG, headers),
            two_tasks_e(LONG, LONGER, headers),
            SERVED_E,
            "2026-07-28",
            is_certain=is_certain,
        )
        for headers, is_certain in (({}, True), (TOKEN, False))
    ),
]
