"""The verdicts on each response to each request over HTTP, in `http_answers.txt`.

    python -m tests.core.trace.judge.rules.http_answers

writes the file again. It has what `answers.txt` has, for statuses and headers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from tests.core.trace.judge.conversations import ask, error, notify, result
from tests.core.trace.judge.rules.http import (
    CALL,
    CALL_E,
    CALLED,
    CALLED_E,
    DELETED,
    IN,
    INITIALIZE,
    INITIALIZED,
    MIRRORED,
    SESSION,
    SSE,
    START,
    VERSION,
    Headers,
    ended,
    event,
    got,
    sent,
)
from tests.core.trace.judge.rules.verdicts import verdicts_by_answer
from tests.kept import read_kept, write_kept

__all__ = ["HTTP_REQUESTS", "http_verdicts_on", "kept_http_answers"]

_FILE: Final = Path(__file__).with_name("http_answers.txt")
_OTHER_SESSION: Final[Headers] = {**VERSION, "mcp-session-id": "other"}
_OTHER_VERSION: Final[Headers] = {**SESSION, "mcp-protocol-version": "2024-11-05"}
_WEIRD_VERSION: Final[Headers] = {**SESSION, "mcp-protocol-version": "1"}
_GET: Final[Headers] = {"accept": SSE}
_ORIGIN: Final[Headers] = {"origin": "http://evil.test", "host": "127.0.0.1:80"}
_BARE: Final[Headers] = {"accept": None, "content-type": None}


def _legacy(message: Any, headers: Headers, method: str = "POST") -> list[Any]:
    return [*START, sent(8, message, headers, method)]


def _modern(headers: Headers, message: Any = CALL_E) -> list[Any]:
    return [sent(8, message, {**MIRRORED, **headers})]


# The conversations up to the request with the number 8, by revision and name.
HTTP_REQUESTS: Final[dict[str, list[Any]]] = {
    "2025-11-25: call": _legacy(CALL, IN),
    "2025-11-25: call without a session": _legacy(CALL, VERSION),
    "2025-11-25: call in another session": _legacy(CALL, _OTHER_SESSION),
    "2025-11-25: call without a version": _legacy(CALL, SESSION),
    "2025-11-25: call with another version": _legacy(CALL, _OTHER_VERSION),
    "2025-11-25: call with an unknown version": _legacy(CALL, _WEIRD_VERSION),
    "2025-11-25: call with no types": _legacy(CALL, {**IN, **_BARE}),
    "2025-11-25: call that accepts JSON": _legacy(CALL, {**IN, "accept": "application/json"}),
    "2025-11-25: call from another origin": _legacy(CALL, {**IN, **_ORIGIN}),
    "2025-11-25: unknown method": _legacy(ask(2, "x/y"), IN),
    "2025-11-25: notification": _legacy(notify("notifications/roots/list_changed"), IN),
    "2025-11-25: answer": _legacy(result("r", roots=[]), IN),
    "2025-11-25: batch": _legacy([CALL, ask(3, "ping")], IN),
    "2025-11-25: GET": _legacy(None, {**_GET, **IN}, "GET"),
    "2025-11-25: GET without a session": _legacy(None, _GET, "GET"),
    "2025-11-25: GET of anything": _legacy(None, IN, "GET"),
    "2025-11-25: DELETE": _legacy(None, IN, "DELETE"),
    "2025-11-25: PUT": _legacy(None, IN, "PUT"),
    "2025-11-25: call after DELETE": [*DELETED[:-1], sent(8, CALL, IN)],
    **{
        f"2025-11-25: call again after {status}": [
            *(*START, sent(3, CALL, IN), got(3, status), sent(8, CALL, IN)),
        ]
        for status in (200, 399, 400, 401, 403, 404, 500)
    },
    "2025-11-25: DELETE after 404": [
        *(*START, sent(3, CALL, IN), got(3, 404), sent(8, None, IN, "DELETE")),
    ],
    "2025-11-25: handshake": [sent(8, INITIALIZE, {})],
    "2025-11-25: second handshake": _legacy({**INITIALIZE, "id": 9}, {}),
    "2026-07-28: call": _modern({}),
    "2026-07-28: call without a version": _modern({"mcp-protocol-version": None}),
    "2026-07-28: call with another version": _modern({"mcp-protocol-version": "2025-11-25"}),
    "2026-07-28: call without a method": _modern({"mcp-method": None}),
    "2026-07-28: call with another method": _modern({"mcp-method": "tools/list"}),
    "2026-07-28: call without a name": _modern({"mcp-name": None}),
    "2026-07-28: call with another name": _modern({"mcp-name": "T"}),
    "2026-07-28: call with an encoded name": _modern({"mcp-name": "=?base64?dA==?="}),
    "2026-07-28: call with no types": _modern(_BARE),
    "2026-07-28: call from another origin": _modern(_ORIGIN),
    "2026-07-28: call in a session": _modern(SESSION),
    "2026-07-28: unknown method": _modern(
        {"mcp-method": "x/y", "mcp-name": None}, {**CALL_E, "method": "x/y"}
    ),
    "2026-07-28: GET": [sent(8, None, {**_GET, "mcp-protocol-version": "2026-07-28"}, "GET")],
}


def _responses(id: Any, called: Any) -> dict[str, list[Any]]:
    """Return the responses, with the answer `called` to a request with this id."""
    initialized = {**INITIALIZED, "id": id}
    refused = error(id, -32600)
    nameless = {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}}
    challenge: Headers = {"www-authenticate": 'Bearer resource_metadata="https://h/x"'}
    return {
        "200 with the answer": [got(8, 200, called)],
        "200 with the answer as text": [got(8, 200, called, kind="text/plain")],
        "200 with the answer, in UTF-8": [got(8, 200, called, kind="Application/JSON; a=b")],
        "200 with a session": [got(8, 200, called, {"mcp-session-id": "t"})],
        "200 with a session of white space": [got(8, 200, called, {"mcp-session-id": "a b"})],
        "200 with a handshake": [got(8, 200, initialized, {"mcp-session-id": "!~"})],
        "200 with an error": [got(8, 200, refused)],
        "200 and nothing": [got(8, 200)],
        "200 with an event": [got(8, 200, kind=SSE), event(8, called, "1"), ended(8)],
        "200 with no event": [got(8, 200, kind=SSE), ended(8)],
        "200 with events that the client leaves": [got(8, 200, kind=SSE), ended(8, "client")],
        **{str(status): [got(8, status)] for status in (202, 204, 299, 300, 399, 405, 500, 503)},
        "202 with the answer": [got(8, 202, called)],
        **{
            f"{status}{words}": [got(8, status, message)]
            for status in (400, 403, 404)
            for words, message in (
                ("", None),
                (" with an error", refused),
                (" with an error without an id", nameless),
            )
        },
        "401": [got(8, 401)],
        "401 with a challenge": [got(8, 401, None, challenge)],
        "403 with a challenge": [got(8, 403, None, challenge)],
        "no response": [],
    }


def http_verdicts_on(name: str) -> str:
    """Return the verdicts on all responses to a request, each with the responses that have it."""
    said = HTTP_REQUESTS[name]
    revision = name.partition(":")[0]
    is_modern = revision == "2026-07-28"
    responses = _responses(1 if is_modern else 2, CALLED_E if is_modern else CALLED)
    return verdicts_by_answer(None, said, responses, revision)


def kept_http_answers() -> dict[str, str]:
    """Return the verdicts in the file by the names of the requests."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: http_verdicts_on(name) for name in HTTP_REQUESTS})
