"""Wrong answers as data: each name has a function that turns a right response into actions.

Nothing here is random: a case names a variant by its number.
"""

from __future__ import annotations

import copy
import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from mcp_trio.oracle.fuzz._revisions import META, dialect_of

from ._questions import QUESTIONS, RIGHT_QUESTIONS, find_question
from ._results import WITH_REQUESTED_TASKS, task_view

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

__all__ = ["ANSWERS", "JUNK", "LAST_BEFORE_EMPTY", "Action", "encoded", "is_lawful", "send"]

LATE: Final = 0.1  # seconds
_HUGE: Final = (100_000, 1_100_000, 6_000_000)  # characters
_DEEP: Final = (100, 5_000, 100_000)  # levels


class Action(Struct, frozen=True, kw_only=True):
    """One action of the server.

    Attributes:
        kind: "send" a message, send "raw" bytes without a line feed, "pause", "await" the response
            to one of the server's requests, or "end" the connection.
        data: for "send" and "raw": the bytes, without a line feed.
        seconds: for "pause"; for "await" the timeout.
        id: for "await": the request's id.
    """

    kind: Literal["send", "raw", "pause", "await", "end"]
    data: bytes = b""
    seconds: float = 0.0
    id: int | str = 0


def encoded(message: Any) -> bytes:
    """Return a message as JSON."""
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )


def send(message: Any) -> Action:
    """Return the action that sends a message."""
    return Action(kind="send", data=encoded(message))


# Names of answers that are correct: no client may complain.
_LAWFUL: Final = frozenset({"right", "late", "error", "page", "unknown-members", "spaced"})
# The requests that can have an `input_required` result.
_WITH_INPUT: Final = ("tools/call", "prompts/get", "resources/read")
_UNSUPPORTED: Final = -32022
LAST_BEFORE_EMPTY: Final = "third"
_END: Final = Action(kind="end")


def _variant(values: Any, number: int) -> Any:
    return values[number % len(values)]


def _late(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    return [Action(kind="pause", seconds=LATE), send(response)]


def _twice(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    other = {**response, "result": {}} if number % 2 else response
    return [send(response), send(other)]


def _with_id(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    id = response["id"]
    other = str(id) if isinstance(id, int) else 0
    return [send({**response, "id": _variant((other, None, [id], {"id": id}, True, 1.5), number)})]


def _other_id(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    id = response["id"]
    after = id + 1 if isinstance(id, int) else id + "1"
    return [send({**response, "id": _variant((after, 987_654, "none"), number)})]


def _without(*names: str) -> Callable[..., list[Action]]:
    def action(
        response: Mapping[str, Any], request: Mapping[str, Any], number: int
    ) -> list[Action]:
        name = _variant(names, number)
        return [send({key: value for key, value in response.items() if key != name})]

    return action


_ERRORS: Final = (
    (-32603, "internal error"),
    (-32602, "invalid params"),
    (-32000, "a server error"),
    (-32601, "method not found"),
    (-32600, "invalid request"),
    (1, "x"),
)


def _error(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    code, text = _variant(_ERRORS, number)
    return [
        send({"jsonrpc": "2.0", "id": response["id"], "error": {"code": code, "message": text}})
    ]


_WRONG_ERRORS: Final[tuple[Any, ...]] = (
    {"code": "-32603", "message": "text"},
    {"code": -32603},
    {"message": "no code"},
    "an error",
    None,
    [],
    {"code": 1.5, "message": 5},
    {"code": 2**70, "message": "", "data": {"a": [1, None]}},
    {"code": -32042, "message": "url elicitation required", "data": {"elicitations": "none"}},
    {"code": -32021, "message": "missing capability"},
    {"code": -32022, "message": "unsupported version", "data": {"supported": 5}},
    {"code": -32603, "message": "\u001b[31m" + "long" * 5_000},
)


def _wrong_error(
    response: Mapping[str, Any], request: Mapping[str, Any], number: int
) -> list[Action]:
    error = _variant(_WRONG_ERRORS, number)
    return [send({"jsonrpc": "2.0", "id": response["id"], "error": error})]


def _both(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    return [send({"result": {}, "error": {"code": 1, "message": "x"}, **response})]


_WRONG_RESULTS: Final[tuple[Any, ...]] = (None, [], 82, "text", True, {})


def _wrong_result(
    response: Mapping[str, Any], request: Mapping[str, Any], number: int
) -> list[Action]:
    found = _variant(_WRONG_RESULTS, number)
    return [send({"jsonrpc": "2.0", "id": response["id"], "result": found})]


_REPLACED: Final[tuple[Any, ...]] = (None, 82, "text", [], {}, True, [None], {"a": {"b": []}})


def _shape(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    """Give one value of a result another type, or leave out one member."""
    result = response.get("result")
    places = list(_places(result))
    if not places:
        return [send(response)]
    place = places[number % len(places)]
    changed = copy.deepcopy(response)
    holder: Any = changed["result"]
    for key in place[:-1]:
        holder = holder[key]
    kind = number // len(places) % (len(_REPLACED) + 1)
    if kind == 0:
        del holder[place[-1]]
    else:
        holder[place[-1]] = _REPLACED[kind - 1]
    return [send(changed)]


def _places(value: Any, depth: int = 0) -> Iterator[tuple[Any, ...]]:
    if depth > 4:
        return
    for key in value if isinstance(value, dict) else range(len(value or ())):
        yield (key,)
        if isinstance(value[key], dict | list):
            for rest in _places(value[key], depth + 1):
                yield (key, *rest)


def _result_type(
    response: Mapping[str, Any], request: Mapping[str, Any], number: int
) -> list[Action]:
    result = response.get("result", {})
    found = _variant(("acme", "", 5, None, "task", "input_required"), number)
    return [send({**response, "result": {**result, "resultType": found}})]


def _cursor(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    """Answer with a page that has a cursor: each time another one, a circle, or no text."""
    result, before = response.get("result", {}), _cursor_of(request)
    page = int(before) + 1 if before.isascii() and before.isdigit() and len(before) < 9 else 1
    circle = "b" if before == "a" else "a"
    found = _variant(
        (
            *(str(page), "same", 5, "", {"a": 1}, "x" * 10_000, "\u0000", "ä\r\n"),
            *(circle, str(page), True, []),
        ),
        number,
    )
    if number % _CURSORS == _EMPTY_PAGE:
        result = {key: [] if isinstance(each, list) else each for key, each in result.items()}
    return [send({**response, "result": {**result, "nextCursor": found}})]


_CURSORS: Final = 12
_NEW_CURSOR: Final = 0
_EMPTY_PAGE: Final = 9  # without entries, and with a new cursor
_LAWFUL_CURSORS: Final = (_NEW_CURSOR, _EMPTY_PAGE)


def _cursor_of(request: Mapping[str, Any]) -> str:
    params = request.get("params")
    cursor = params.get("cursor") if isinstance(params, dict) else None
    return cursor if isinstance(cursor, str) else ""


def _page(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    """Answer with one of the pages of a list. An odd number has one with an empty cursor."""
    result = response.get("result", {})
    params = request.get("params")
    has_cursor = isinstance(params, dict) and "cursor" in params
    if not str(request.get("method", "")).endswith("/list"):
        return [send(response)]
    following: str | None = None
    if not has_cursor:
        following = "second"
    elif number % 2:
        following = {"second": LAST_BEFORE_EMPTY, LAST_BEFORE_EMPTY: ""}.get(_cursor_of(request))
    if following is None:
        return [send(response)]
    return [send({**response, "result": {**result, "nextCursor": following}})]


def _members(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    result = response.get("result", {})
    more = {"acme": [1], "_meta": {**result.get("_meta", {}), "example.com/a": {"b": None}}}
    return [send({**response, "result": {**result, **more}})]


def _spaced(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    return [Action(kind="send", data=b" " + json.dumps(response, indent=None).encode() + b"  ")]


def _batch(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    note = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info"}}
    return [send(_variant(([response], [response, response], [response, note], []), number))]


def _huge(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    result = response.get("result", {})
    return [send({**response, "result": {**result, "acme": "x" * _variant(_HUGE, number)}})]


def _deep(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    levels = _variant(_DEEP, number)
    start, end = encoded({**response, "result": {"acme": 0}}).split(b'"acme":0')
    return [Action(kind="send", data=start + b'"acme":' + b"[" * levels + b"]" * levels + end)]


def _half(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    data = encoded(response)
    return [Action(kind="raw", data=data[: _variant((1, len(data) // 2, len(data)), number)]), _END]


_REVISIONS: Final[tuple[Any, ...]] = (
    "1999-12-31",
    "2026-07-28",
    20251125,
    ...,  # there is none
    None,
    ["2025-11-25"],
    "",
    "2025-11-25 ",
    "2025-11-26",
    "latest",
    {"version": "2025-11-25"},
    "x" * 10_000,
)
_LISTED: Final[tuple[Any, ...]] = (
    ["1999-12-31"],
    [],
    ["2025-11-25"],
    ["2027-01-01", "2026-07-28"],
    "2026-07-28",
    None,
    [5, None, "2026-07-28"],
    ...,
    {"2026-07-28": {}},
    [["2026-07-28"]],
    [f"{year}-01-01" for year in range(10_000)],
    ["2026-07-28", "2026-07-28", "2025-11-25", "2025-11-25"],
)


def _revision(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    """Answer the opening with revisions that don't exist, or aren't texts, or not the client's."""
    member = {"initialize": "protocolVersion", "server/discover": "supportedVersions"}.get(
        str(request.get("method"))
    )
    if member is None:
        return [send(response)]
    values = _REVISIONS if member == "protocolVersion" else _LISTED
    return [send({**response, "result": _replaced(response["result"], member, values, number)})]


def _replaced(
    members: Mapping[str, Any], name: str, values: tuple[Any, ...], number: int
) -> dict[str, Any]:
    """Return members with another value; `...` stands for no value."""
    value = _variant(values, number)
    found = {**members, name: value}
    if value is ...:
        del found[name]
    return found


_SUPPORTED: Final[tuple[Any, ...]] = (
    ["1999-12-31"],
    [],
    ["2025-11-25"],
    "2026-07-28",
    None,
    [5, None, {}],
    ...,
    ["2026-07-28"],
    [f"{year}-01-01" for year in range(10_000)],
)


def _unsupported(
    response: Mapping[str, Any], request: Mapping[str, Any], number: int
) -> list[Action]:
    """Answer that the version isn't supported, with an odd list of those that are."""
    version = _version_of(request) or ""
    data = _replaced({"requested": version}, "supported", _SUPPORTED, number)
    error = {"code": _UNSUPPORTED, "message": "unsupported protocol version", "data": data}
    # A client that tries again at once does so for long enough to be sure of it.
    pause = Action(kind="pause", seconds=REJECTION)
    return [pause, send({"jsonrpc": "2.0", "id": response["id"], "error": error})]


REJECTION: Final = 0.15  # seconds


def _version_of(request: Mapping[str, Any]) -> str | None:
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


_OUTPUTS: Final[tuple[Any, ...]] = (
    {"sum": "one"},
    {},
    ...,
    None,
    {"sum": 1.5},
    [1],
    "one",
    {"sum": 2**70},
    {"sum": {"sum": 1}},
    {"sum": 1, "more": "x" * 1_100_000},
    {"sum": None},
)


def _output(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    """Answer a call with a result that breaks the output schema of its tool."""
    result = response.get("result", {})
    if "structuredContent" not in result:
        return [send(response)]
    return [send({**response, "result": _replaced(result, "structuredContent", _OUTPUTS, number)})]


def _progress_after(
    response: Mapping[str, Any], request: Mapping[str, Any], number: int
) -> list[Action]:
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    token = meta.get("progressToken", 1) if isinstance(meta, dict) else 1
    note = {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progressToken": token, "progress": 1},
    }
    return [send(response), send(note)]


def _input_required(
    response: Mapping[str, Any], request: Mapping[str, Any], number: int
) -> list[Action]:
    """Answer with an `input_required` result."""
    requests, state = _rounds(_version_of(request) or "")[number % _ROUNDS]
    return [_required(response, requests, state)]


@lru_cache(maxsize=4)
def _rounds(revision: str) -> list[tuple[Any, Any]]:
    """Return input requests with their states. First those that are correct."""
    right = [
        {"a": _asked(method, number, revision)}
        for method, count in RIGHT_QUESTIONS.items()
        for number in range(count)
    ]
    form, roots = _asked("elicitation/create", 0, revision), {"method": "roots/list"}
    sampling = _asked("sampling/createMessage", 0, revision)
    wrong = [
        {"a": _asked(method, number, revision)}
        for method, questions in QUESTIONS.items()
        for number in range(RIGHT_QUESTIONS[method], len(questions))
    ]
    return [
        (None, "state"),
        ({"a": roots}, "again"),
        ({"a": form}, "state"),
        ({"form": form, "roots": roots, "sampling": sampling}, "state"),
        ({"a": form}, None),
        *((requests, "state") for requests in right),
        # These are wrong.
        ({"": roots, " ": roots, "a/b~": form, "ä" * 300: roots}, "state"),
        ({}, None),
        ({"a": {"method": "acme/ask"}, "b": {}}, "state"),
        ({"a": 5, "b": None}, 5),
        ({str(each): form for each in range(50)}, "s" * 20_000),
        ({"a": {**form, "params": None}}, ""),
        ([form], "state"),
        ({}, "state"),
        *((requests, "state") for requests in wrong),
    ]


def _asked(method: str, number: int, revision: str) -> dict[str, Any]:
    params, _ = find_question(method, number, revision)
    return {"method": method} | ({} if params is None else {"params": params})


_RIGHT_ROUNDS: Final = 5 + sum(RIGHT_QUESTIONS.values())
_ROUNDS: Final = len(_rounds(""))


def is_lawful(how: str, number: int, method: str, revision: str) -> bool:
    """Return True if an answer is correct: no client may complain."""
    if how == "input":
        has_rounds = bool(dialect_of(revision).result_type) and method in _WITH_INPUT
        return has_rounds and number % _ROUNDS < _RIGHT_ROUNDS
    if how == "cursor":
        return method.endswith("/list") and number % _CURSORS in _LAWFUL_CURSORS
    if how == "unsupported":
        # A server can support no revision of the client's.
        return not dialect_of(revision).stateful and _variant(_SUPPORTED, number) == ["1999-12-31"]
    return how in _LAWFUL


def _required(response: Mapping[str, Any], requests: Any, state: Any) -> Action:
    members = {"inputRequests": requests, "requestState": state}
    given = {key: value for key, value in members.items() if value is not None}
    result = {"resultType": "input_required", **given}
    return send({"jsonrpc": "2.0", "id": response["id"], "result": result})


_VIEWS: Final[tuple[dict[str, Any], ...]] = (
    {"status": "working"},
    {"status": "input_required"},
    {"status": "paused"},
    {"status": "completed"},
    {"status": "failed"},
    {"taskId": 5},
    {"taskId": ""},
    {"pollInterval": -1, "pollIntervalMs": -1},
    {"pollInterval": "soon", "pollIntervalMs": "soon"},
    {"pollInterval": 10**12, "pollIntervalMs": 10**12},
    {"ttl": -5, "ttlMs": -5},
    {"createdAt": "yesterday", "lastUpdatedAt": 5},
    {"inputRequests": {"": {"method": "acme"}}, "status": "input_required"},
    {"status": None},
)


def _task(response: Mapping[str, Any], request: Mapping[str, Any], number: int) -> list[Action]:
    """Answer with a task in place of a result, or with a wrong state of the task."""
    params = request.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    version = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
    revision = version if isinstance(version, str) else ""
    has_extension = dialect_of(revision).tasks == "extension"
    revision = revision if has_extension else WITH_REQUESTED_TASKS
    view = task_view(revision, "working") | _variant(_VIEWS, number)
    if str(request.get("method", "")).startswith("tasks/"):
        result = {**response.get("result", {}), **view}
    elif has_extension:
        result = {"resultType": "task", **view}
    else:
        result = {"task": view}
    return [send({"jsonrpc": "2.0", "id": response["id"], "result": result})]


def _acknowledged(
    response: Mapping[str, Any], request: Mapping[str, Any], number: int
) -> list[Action]:
    """Acknowledge a subscription: late, twice, for another one, or for more than was requested."""
    changed = "notifications/tools/list_changed"
    ack = "notifications/subscriptions/acknowledged"
    meta = {"_meta": {META + "subscriptionId": response["id"]}}
    other = {"_meta": {META + "subscriptionId": "none"}}
    notes = (
        (changed, meta),
        (ack, {**meta, "notifications": {"toolsListChanged": True, "acme": True}}),
        (ack, {**meta, "notifications": {}}),
        (ack, {**other, "notifications": {}}),
        (ack, {"notifications": 5}),
        (changed, other),
    )
    first = number % len(notes)
    return [
        send({"jsonrpc": "2.0", "method": method, "params": params})
        for method, params in notes[first:] + notes[:first]
    ]


ANSWERS: Final[dict[str, Callable[..., list[Action]]]] = {
    "right": lambda response, request, number: [send(response)],
    "never": lambda response, request, number: [],
    "close": lambda response, request, number: [_END],
    "late": _late,
    "twice": _twice,
    "id-type": _with_id,
    "id-other": _other_id,
    "without": _without("id", "jsonrpc", "result"),
    "version": lambda response, request, number: [send({**response, "jsonrpc": "1.0"})],
    "error": _error,
    "odd-error": _wrong_error,
    "both": _both,
    "odd-result": _wrong_result,
    "shape": _shape,
    "result-type": _result_type,
    "cursor": _cursor,
    "page": _page,
    "revision": _revision,
    "unsupported": _unsupported,
    "output": _output,
    "unknown-members": _members,
    "spaced": _spaced,
    "batch": _batch,
    "huge": _huge,
    "deep": _deep,
    "half": _half,
    "progress-after": _progress_after,
    "input": _input_required,
    "task": _task,
    "acknowledged": _acknowledged,
}
"""Answers by name. Each function gets the right response, the request, and the number."""

JUNK: Final = (
    b"server started",
    b"{",
    b"null",
    b"{}",
    b'""',
    b"[]",
    b"\xff\xfe{}",
    b"\x00",
    b"[" * 100_000,
    b'{"jsonrpc":"2.0","method":5}',
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\\ud800"}}',
    b'{"jsonrpc":"2.0","id":1e400,"result":{}}',
    b'{"jsonrpc":"2.0","result":{}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}',
    b'{"jsonrpc":"2.0","id":99999999999999999999999999,"result":{}}',
    b'{"jsonrpc":"2.0","method":"notifications/message","params":[1]}',
    b"\xef\xbb\xbf{}",
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b"event: message",
    b'{"a":1}{"b":2}',
    b" " * 100_000,
)
