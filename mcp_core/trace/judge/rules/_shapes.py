"""The rows that say what params, results and content look like, by the error's place.

One rule checks all shapes: the official schema of the revision decides. This table only gives the
finding its row.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from mcp_core.trace.judge._shapes import find_shape_error, has_shape
from mcp_core.trace.judge.rows import ROWS

if TYPE_CHECKING:
    from mcp_core.trace.judge._message import SeenMessage
    from mcp_core.trace.judge._shapes import ShapeError

__all__ = [
    "META_ROWS",
    "NEED_PARAMS",
    "SHAPE_ROWS",
    "find_message_error",
    "row_of_shape",
    "shape_of",
]

_CAPABILITIES: Final = (r"/(capabilities|_meta/[^/]*clientCapabilities)(/.*)?", ("CAP-1", "CAP-2"))
_ICON: Final = (r".*/icons(/.*)?", ("META-19",))

# By shape name: patterns of JSON pointers with their rows. The first row that the revision
# has counts. Every entry ends with the rows for the rest of the shape.
SHAPE_ROWS: Final[dict[str, tuple[tuple[str, tuple[str, ...]], ...]]] = {
    ">initialize": (_CAPABILITIES, _ICON, (".*", ("LIFE-1",))),
    "<initialize": (_CAPABILITIES, _ICON, (".*", ("LIFE-3",))),
    "<server/discover": (
        _CAPABILITIES,
        ("/(ttlMs|cacheScope)", ("CACHE-1",)),
        (".*", ("VER-5",)),
    ),
    ">notifications/cancelled": ((".*", ("CXL-1",)),),
    ">notifications/progress": ((".*", ("PROG-1",)),),
    ">notifications/message": ((".*", ("LOG-2",)),),
    ">logging/setLevel": ((".*", ("LOG-3",)),),
    ">completion/complete": ((".*", ("COMP-2",)),),
    "<completion/complete": ((".*", ("COMP-3",)),),
    ">tools/call": (("/task(/.*)?", ("TSK-6",)), (".*", ("TOOL-14",))),
    "<tools/call": (
        ("/content/.*/annotations(/.*)?", ("CONT-5",)),
        ("/content/[0-9]+/resource(/.*)?", ("CONT-6",)),
        ("/content/[0-9]+/data", ("CONT-4",)),
        ("/content/[0-9]+", ("CONT-2",)),
        ("/content/[0-9]+/.*", ("CONT-1",)),
        ("/structuredContent", ("TOOL-8",)),
        (".*", ("TOOL-13",)),
    ),
    "<tools/list": (
        ("/nextCursor", ("PAGE-1",)),
        _ICON,
        ("/tools/[0-9]+/inputSchema(/.*)?", ("TOOL-6", "TOOL-7")),
        ("/tools/[0-9]+/outputSchema(/.*)?", ("TOOL-8", "TOOL-9")),
        (".*", ("TOOL-2",)),
    ),
    ">tools/list": ((".*", ("PAGE-1",)),),
    ">resources/list": ((".*", ("PAGE-1",)),),
    ">resources/templates/list": ((".*", ("PAGE-1",)),),
    ">prompts/list": ((".*", ("PAGE-1",)),),
    "<resources/list": (
        ("/nextCursor", ("PAGE-1",)),
        _ICON,
        (".*/annotations(/.*)?", ("CONT-5",)),
        (".*", ("RES-2",)),
    ),
    "<resources/templates/list": (
        ("/nextCursor", ("PAGE-1",)),
        _ICON,
        (".*/annotations(/.*)?", ("CONT-5",)),
        (".*", ("RES-2",)),
    ),
    "<resources/read": (("/contents/[0-9]+(/.*)?", ("CONT-6",)), (".*", ("RES-3",))),
    ">resources/read": ((".*", ("RES-3",)),),
    ">resources/subscribe": ((".*", ("RES-4",)),),
    ">resources/unsubscribe": ((".*", ("RES-4",)),),
    ">notifications/resources/updated": ((".*", ("RES-5",)),),
    "<prompts/list": (("/nextCursor", ("PAGE-1",)), _ICON),
    ">prompts/get": ((".*", ("PRM-2",)),),
    "<prompts/get": (
        ("/messages/[0-9]+/content(/annotations(/.*)?)", ("CONT-5",)),
        ("/messages/[0-9]+/content/resource(/.*)?", ("CONT-6",)),
        ("/messages/[0-9]+/content/data", ("CONT-4",)),
        ("/messages/[0-9]+/content/.*", ("CONT-1",)),
        (".*", ("PRM-3",)),
    ),
    ">sampling/createMessage": (
        (".*/data", ("CONT-4",)),
        ("/messages/[0-9]+/content(/.*)?", ("CONT-3",)),
        ("/task(/.*)?", ("TSK-6",)),
        (".*", ("SAMP-2",)),
    ),
    "<sampling/createMessage": (
        (".*/data", ("CONT-4",)),
        ("/content(/.*)?", ("CONT-3",)),
        (".*", ("SAMP-3",)),
    ),
    ">elicitation/create": (
        ("/requestedSchema/properties/.*", ("ELIC-7", "ELIC-8")),
        ("/requestedSchema(/.*)?", ("ELIC-6",)),
        ("/task(/.*)?", ("TSK-6",)),
        (".*", ("ELIC-4", "ELIC-5")),
    ),
    "<elicitation/create": ((".*", ("ELIC-9",)),),
    "<roots/list": ((".*", ("ROOT-2",)),),
    "<tasks/get": ((".*", ("TSK-12", "TX-10")),),
    ">tasks/get": ((".*", ("TSK-10", "TX-9")),),
    "<tasks/list": (("/nextCursor", ("TSK-20",)), (".*", ("TSK-20",))),
    "<tasks/cancel": ((".*", ("TSK-12", "TX-17")),),
    ">tasks/cancel": ((".*", ("TSK-10", "TX-17")),),
    ">tasks/update": ((".*", ("TX-13",)),),
    ">notifications/tasks/status": ((".*", ("TSK-12",)),),
    ">notifications/tasks": ((".*", ("TX-20",)),),
    ">subscriptions/listen": ((".*", ("SUB-1",)),),
    ">notifications/subscriptions/acknowledged": ((".*", ("SUB-3",)),),
    ">notifications/elicitation/complete": ((".*", ("ELIC-15",)),),
    "InputRequiredResult": (
        ("/inputRequests/.*/params(/.*)?", ("MRTR-4",)),
        (".*", ("MRTR-4",)),
    ),
    "CreateTaskResult": ((".*", ("TSK-7", "TX-9")),),
}
# The rows for `_meta` in every request, result and notification.
META_ROWS: Final = (
    (r"/_meta/progressToken", ("META-14",)),
    (r"/_meta/[^/]*clientCapabilities/.*", ("CAP-2",)),
    (r"/_meta/[^/]*clientInfo(/.*)?", ("META-7",)),
    (r"/_meta/[^/]*serverInfo(/.*)?", ("META-10",)),
    (r"/_meta/[^/]*subscriptionId", ("META-12",)),
    (r"/_meta", ("META-6",)),
    (r"/_meta/[^/]*(protocolVersion|clientCapabilities)", ("META-6",)),
    (r"/_meta.*", ("META-1",)),
)
_COMPILED: Final = {
    name: [(re.compile(pattern, re.DOTALL), rows) for pattern, rows in (*META_ROWS, *patterns)]
    for name, patterns in {**SHAPE_ROWS, "": ()}.items()
}
"""The rows by place, compiled. The name "" is a shape without rows of its own."""


def shape_of(message: SeenMessage) -> str:
    """Return the name of the shape of a message's params or result, empty if none is known."""
    if message.kind != "response":
        return f">{message.method}"
    request, result = message.request, message.result
    if request is None or result is None:
        return ""
    kind = result.get("resultType")
    if message.facts.result_types and kind in ("input_required", "task"):
        return "InputRequiredResult" if kind == "input_required" else "CreateTaskResult"
    if message.facts.result_types and kind not in (None, "complete"):
        return ""
    if message.facts.requested_tasks and "task" in request.params and "task" in result:
        return "CreateTaskResult"
    return f"<{request.method}"


def row_of_shape(name: str, pointer: str, revision: str) -> str | None:
    """Return the row for an error at `pointer` in a shape, or None if no row describes it."""
    for pattern, rows in _COMPILED.get(name, _COMPILED[""]):
        if pattern.fullmatch(pointer):
            for id in rows:
                if revision in ROWS[id].revisions:
                    return id
    return None


@cache
def _row_of_whole(name: str, revision: str) -> str | None:
    return row_of_shape(name, "", revision)


def find_message_error(message: SeenMessage) -> tuple[str | None, ShapeError | None]:
    """Check the params or the result of a message.

    Returns:
        The judged row, or None if there was nothing to judge; and the error, or None if the shape
        is right.
    """
    name = shape_of(message)
    revision = message.revision
    if not name or not revision or not has_shape(revision, name):
        return None, None
    if message.kind == "response":
        value = message.members["result"]
    elif "params" in message.members:
        value = message.members["params"]
    elif name in NEED_PARAMS:
        value = {}
    else:
        return None, None
    if not isinstance(value, dict):
        return None, None  # RPC-15 and RPC-16
    error = find_shape_error(revision, name, value)
    if error is None:
        return _row_of_whole(name, revision), None
    return row_of_shape(name, error.pointer, revision), error


# Requests that must have params.
NEED_PARAMS: Final = frozenset(
    {
        ">initialize",
        ">tools/call",
        ">resources/read",
        ">resources/subscribe",
        ">resources/unsubscribe",
        ">prompts/get",
        ">completion/complete",
        ">logging/setLevel",
        ">sampling/createMessage",
        ">elicitation/create",
        ">subscriptions/listen",
        ">tasks/get",
        ">tasks/cancel",
        ">tasks/update",
        ">notifications/cancelled",
        ">notifications/progress",
        ">notifications/message",
        ">notifications/resources/updated",
    }
)
