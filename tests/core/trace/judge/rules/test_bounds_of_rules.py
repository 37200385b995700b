"""Times, statuses and headers at which the rules for streams and sessions begin to judge."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from msgspec.structs import replace

from tests.core.trace.judge.conversations import C, S, Sent, ask, at, error, notify, result
from tests.core.trace.judge.rules import eras, rounds, streams, tasks
from tests.core.trace.judge.rules.http import (
    CALL,
    CALL_E,
    CALLED,
    CALLED_E,
    IN,
    INITIALIZE,
    MIRRORED,
    NO_BUFFER,
    NOTE,
    SERVED_BEFORE,
    SESSION,
    SSE,
    START,
    STREAM_E,
    STREAMED,
    VERSION,
    Headers,
    ended,
    event,
    got,
    sent,
)
from tests.core.trace.judge.rules.messages import discovered
from tests.core.trace.judge.rules.test_conditions import Judged, judged_row
from tests.core.trace.judge.rules.utilities import AS_TASK_D, AS_TASK_E, TASK_D, TASK_E, TASK_ID

OLD, C_, D, E = "2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"
CALL_3: Final = ask(3, "tools/call", name="t")
CALLED_3: Final = result(3, content=[])
BOTH: Final = [CALL, CALL_3]


def later(t: float, *said: Sent) -> list[Sent]:
    return [at(t, each) for each in said]


# -- The end of streams ----------------------------------------------------------------------------


def lingers(seconds: float, *before: Sent) -> list[Sent]:
    """Return a stream that is open some seconds after its response, in a trace with ends."""
    answered = [*before, *STREAMED, ended(1), event(3, CALLED)]
    return [*answered, *later(seconds, sent(9, NOTE, IN), got(9, 202))]


def lives_on(status: int, headers: Headers = IN) -> list[Sent]:
    """Return a stream that ends before its response, and a response of the session after it."""
    return [*streams.STREAMED_C, ended(3), sent(4, NOTE, headers), got(4, status)]


def listening(status: int = 200, *after: Sent) -> list[Sent]:
    """Return a subscription whose stream has a status."""
    head = got(1, status, None, NO_BUFFER, SSE)
    return [*SERVED_BEFORE, sent(1, streams.LISTEN, streams.LISTEN_HEADERS), head, *after]


OPEN_FIRST: Final = [
    *(*START, ended(1), sent(3, CALL, IN), got(3, 200, kind=SSE)),
    *(sent(4, CALL_3, IN), got(4, 200, kind=SSE), event(4, CALLED_3)),
    *later(9, sent(9, NOTE, IN), got(9, 202)),
]
ENDED_FIRST: Final = [
    *(*START, sent(3, CALL, IN), got(3, 200, kind=SSE), event(3, CALLED), ended(3)),
    *(sent(4, CALL_3, IN), got(4, 200, kind=SSE), event(4, CALLED_3)),
    *later(9, sent(9, NOTE, IN), got(9, 202)),
]
BATCH: Final = [*START, ended(1), sent(3, BOTH, IN), got(3, 200, kind=SSE), event(3, CALLED)]
CANCELLED: Final = notify("notifications/cancelled", requestId=2)
# 2025-06-18: a cancelled request needs no response.
LEFT: Final = [
    *(*streams.STREAMED_C, sent(4, CANCELLED, streams.IN_C), got(4, 202)),
    *(ended(3), sent(5, NOTE, streams.IN_C), got(5, 202)),
]
TWO_LISTENING: Final = [
    *listening(200, event(1, streams.LISTEN_RESULT), ended(1)),
    sent(2, {**streams.LISTEN, "id": 2}, streams.LISTEN_HEADERS),
    got(2, 200, None, NO_BUFFER, SSE),
]

ENDS: Final[list[tuple[str, str, list[Sent], Judged]]] = [
    ("SHL-3", D, lingers(5), "not judged"),
    ("SHL-3", D, lingers(5.1), "fails"),
    ("SHL-3", D, OPEN_FIRST, "fails"),
    ("SHL-3", D, ENDED_FIRST, "fails"),
    # A stream of two requests is open until both have their responses.
    ("SHL-3", D, [*BATCH, *later(9, sent(9, NOTE, IN), got(9, 202))], "not judged"),
    ("SHL-3", D, [*BATCH, event(3, CALLED_3), *later(9, sent(9, NOTE, IN))], "fails"),
    ("SHL-5", C_, lives_on(199), "perhaps"),
    ("SHL-5", C_, lives_on(200), "fails"),
    ("SHL-5", C_, lives_on(299), "fails"),
    ("SHL-5", C_, lives_on(300), "perhaps"),
    ("SHL-5", C_, lives_on(200, {**IN, "mcp-session-id": "other"}), "perhaps"),
    ("SHL-5", C_, [*streams.STREAMED_C, ended(3)], "perhaps"),
    ("SHL-5", C_, [*streams.STREAMED_C, ended(3, "client")], "not judged"),
    ("SHL-5", C_, LEFT, "not judged"),
    ("SUB-8", E, listening(200, ended(1)), "perhaps"),
    ("SUB-8", E, listening(200, ended(1, "client")), "not judged"),
    ("SUB-8", E, listening(201, ended(1)), "not judged"),
    ("SUB-8", E, listening(200), "not judged"),
    ("SUB-8", E, [*TWO_LISTENING, ended(2)], "perhaps"),
    ("SUB-8", E, TWO_LISTENING, "passes"),
]

# -- Reconnections and sessions --------------------------------------------------------------------


def resumes(number: int, t: float, id: str, *more: Sent) -> list[Sent]:
    return later(t, *streams.resume(number, id), *more)


def elsewhere(t: float) -> list[Sent]:
    """Return a broken stream, another one that ends, and a reconnection at some time."""
    other = [*streams.SECOND, event(4, None, "z", retry=9_000)]
    return [*streams.PRIMED, *other, at(2, ended(4)), *resumes(5, t, "a")]


def broken_twice(t: float) -> list[Sent]:
    """Return a stream that was resumed and has ended again, and a reconnection at some time."""
    again = resumes(4, 3, "a", event(4, None, "b", retry=5_000))
    return [*streams.PRIMED, *again, at(4, ended(4)), *resumes(5, t, "b")]


def lost(t: float, message: Any, headers: Headers, method: str = "POST") -> list[Sent]:
    """Return a session that isn't found, and a request some seconds later."""
    return [*streams.LOST, at(t, sent(4, message, headers, method))]


def without_token(t: float, target: str = "", method: str = "POST") -> list[Sent]:
    """Return a request with a token, and one without it some seconds later."""
    said = sent(2, {**CALL_E, "id": 2}, MIRRORED, method)
    head = replace(said.message.http, target=target)
    return [*streams.ALLOWED, at(t, Sent("client", replace(said.message, http=head)))]


SESSIONS: Final[list[tuple[str, str, list[Sent], Judged]]] = [
    ("SHL-8", D, [*streams.PRIMED, *streams.resumed(1.95)], "passes"),
    ("SHL-8", D, [*streams.PRIMED, *streams.resumed(1.89)], "fails"),
    ("SHL-8", D, elsewhere(2.5), "passes"),
    ("SHL-8", D, broken_twice(8), "fails"),
    ("SHL-8", D, broken_twice(8.5), "passes"),
    ("SHL-8", D, [*STREAMED, event(3, None, "a"), at(1, ended(3)), *resumes(4, 1, "a")],
     "not judged"),
    ("SHL-8", D, [*STREAMED, event(3, None, "a", retry=1000), at(1, ended(3, "client")),
                  *resumes(4, 1, "a")], "not judged"),
    ("SHL-25", D, lost(0.9, CALL_3, IN), "not judged"),
    ("SHL-25", D, lost(1, CALL_3, IN), "fails"),
    ("SHL-25", D, lost(1, None, IN, "DELETE"), "not judged"),
    ("SHL-25", D, lost(1, None, {"accept": SSE, **IN}, "GET"), "fails"),
    ("SHL-25", D, lost(1, CALL_3, VERSION), "not judged"),
    ("SHL-25", D, lost(1, CALL_3, {**IN, "mcp-session-id": "other"}), "not judged"),
    ("SHL-25", D, lost(1, {**INITIALIZE, "id": 3}, {}), "passes"),
    ("SHL-25", D, lost(1, {**INITIALIZE, "id": 3}, SESSION), "fails"),
    ("AT-1", E, without_token(9.9), "fails"),
    ("AT-1", E, without_token(10), "perhaps"),
    ("AT-1", E, without_token(1, "/other"), "passes"),
    ("AT-1", E, without_token(1, "?access_token=x"), "perhaps"),
    ("AT-1", E, without_token(1, "?x=1"), "fails"),
    ("AT-1", E, without_token(1, "", "OPTIONS"), "passes"),
]  # fmt: skip

# -- Origins and challenges ------------------------------------------------------------------------


def from_origin(
    origin: str, host: str, status: int = 200, headers: Headers | None = None, method: str = "POST"
) -> list[Sent]:
    """Return a request of an origin, with its response."""
    head: Headers = {**MIRRORED, "origin": origin, "host": host, **(headers or {})}
    answer = CALLED_E if status == 200 else None
    return [*SERVED_BEFORE, sent(1, CALL_E, head, method), got(1, status, answer)]


def challenged(status: int, challenge: str, message: Any = CALL_E) -> list[Sent]:
    head: Headers = {"www-authenticate": challenge}
    return [*SERVED_BEFORE, sent(1, message, MIRRORED), got(1, status, headers=head)]


def with_query(status: int, *before: Sent, **headers: str) -> list[Sent]:
    """Return a request whose URL has a token, with its response."""
    said = sent(2, {**CALL_E, "id": 2}, {**MIRRORED, **headers})
    head = replace(said.message.http, target="/mcp?access_token=x")
    answer = {**CALLED_E, "id": 2} if status == 200 else None
    request = Sent("client", replace(said.message, http=head))
    return [*SERVED_BEFORE, *before, request, got(2, status, answer)]


def denied(status: int) -> list[Sent]:
    """Return a request that was denied without a token before, with its response."""
    answer = {**CALLED_E, "id": 2} if status == 200 else None
    return [
        *(*SERVED_BEFORE, *streams.DENIED),
        *(sent(2, streams.CALL_2, MIRRORED), got(2, status, answer)),
    ]


def no_session(status: int, message: Any = CALL) -> list[Sent]:
    return [*START, sent(3, message, VERSION), got(3, status)]


SCOPED: Final = 'Bearer error="insufficient_scope", '

ORIGINS: Final[list[tuple[str, str, list[Sent], Judged]]] = [
    ("HTTP-1", E, from_origin("https://a", "a:443"), "not judged"),
    ("HTTP-1", E, from_origin("https://a:443", "a"), "not judged"),
    ("HTTP-1", E, from_origin("http://a", "a:80"), "not judged"),
    ("HTTP-1", E, from_origin("http://a", "a:443"), "perhaps"),
    ("HTTP-1", E, from_origin("HTTP://A", "a"), "not judged"),
    ("HTTP-1", E, from_origin("http://a", "A"), "not judged"),
    ("HTTP-1", E, from_origin("null", "a"), "not judged"),
    ("HTTP-1", E, from_origin("http://", "a"), "not judged"),
    ("HTTP-1", E, from_origin("http://b", ""), "not judged"),
    ("HTTP-1", E, from_origin("http://b.example", "a"), "fails"),
    ("HTTP-1", E, from_origin("http://b.invalid:8", "a"), "fails"),
    ("HTTP-1", E, from_origin("http://example.com", "a"), "perhaps"),
    ("HTTP-1", E, from_origin("http://b.example", "a", 399), "not judged"),
    ("HTTP-1", E, from_origin("http://b.example", "a", 400), "passes"),
    ("HTTP-2", E, from_origin("http://b.example", "a", 399), "not judged"),
    ("HTTP-2", E, from_origin("http://b.example", "a", 400), "perhaps"),
    ("HTTP-2", E, from_origin("http://b.example", "a", 403), "passes"),
    ("HTTP-2", E, from_origin("http://a", "a", 404), "not judged"),
    ("SHL-23", D, no_session(399), "not judged"),
    ("SHL-23", D, no_session(400), "passes"),
    ("SHL-23", D, no_session(401), "perhaps"),
    ("SHL-23", D, no_session(404, {**INITIALIZE, "id": 3}), "not judged"),
    ("AR-4", E, challenged(401, "Bearer"), "perhaps"),
    ("AR-4", E, challenged(401, "Bearer resource_metadata=x"), "passes"),
    ("AR-4", E, challenged(403, "Bearer"), "not judged"),
    ("AR-4", E, challenged(401, "Bearer", notify("x")), "not judged"),
    ("AR-6", E, challenged(403, SCOPED), "fails"),
    ("AR-6", E, challenged(403, SCOPED + "resource_metadata=x"), "fails"),
    ("AR-6", E, challenged(403, SCOPED + "scope=x"), "perhaps"),
    ("AR-6", E, challenged(403, SCOPED + "scope=x, resource_metadata=x"), "passes"),
    ("AR-6", E, challenged(401, SCOPED), "not judged"),
    ("AR-6", E, challenged(403, "Bearer"), "not judged"),
    ("AR-9", E, challenged(401, 'Bearer scope="a offline_access"'), "fails"),
    ("AR-9", E, challenged(403, "Bearer scope=offline_access"), "fails"),
    ("AR-9", E, challenged(401, 'Bearer scope="a", x="offline_access"'), "passes"),
    ("AR-9", E, challenged(401, "Bearer scope=offline_access_a"), "passes"),
    ("AR-9", E, challenged(402, "Bearer scope=offline_access"), "not judged"),
    ("AR-9", E, challenged(401, "Bearer"), "not judged"),
    ("AR-13", E, denied(200), "perhaps"),
    ("AR-13", E, denied(399), "not judged"),
    ("AR-13", E, denied(400), "passes"),
    ("AR-14", E, with_query(200), "perhaps"),
    ("AR-14", E, with_query(200, *streams.DENIED), "fails"),
    ("AR-14", E, with_query(200, *streams.DENIED, cookie="x"), "perhaps"),
    ("AR-14", E, with_query(200, authorization="Bearer x"), "not judged"),
    ("AR-14", E, with_query(399), "not judged"),
    ("AR-14", E, with_query(400), "passes"),
]

# -- Streams that are buffered ---------------------------------------------------------------------


def streamed_from(host: str, **headers: str) -> list[Sent]:
    """Return a stream of a host, whose response has some headers."""
    request = sent(1, CALL_E, {**MIRRORED, "host": host})
    found: Headers = {key.replace("_", "-"): value for key, value in headers.items()}
    return [*SERVED_BEFORE, request, got(1, 200, None, found, SSE)]


BUFFERS: Final[list[tuple[str, str, list[Sent], Judged]]] = [
    ("SHM-15", E, streamed_from("localhost"), "fails"),
    ("SHM-15", E, streamed_from("127.0.0.1:8"), "fails"),
    ("SHM-15", E, streamed_from("[::1]"), "fails"),
    ("SHM-15", E, streamed_from("a.test"), "perhaps"),
    ("SHM-15", E, streamed_from("localhost:x"), "perhaps"),
    ("SHM-15", E, streamed_from("localhost", x_accel_buffering="yes"), "fails"),
    ("SHM-15", E, streamed_from("localhost", x_accel_buffering="No"), "passes"),
    ("SHM-15", E, streamed_from("localhost", via="1.1 a"), "perhaps"),
    ("SHM-15", E, streamed_from("localhost", server="nginx/1"), "perhaps"),
    ("SHM-15", E, streamed_from("localhost", server="x"), "fails"),
    ("SHM-15", E, [*SERVED_BEFORE, sent(1, CALL_E, {**MIRRORED, "host": "localhost"}),
                   got(1, 201, None, None, SSE)], "not judged"),
]  # fmt: skip

# -- Tasks and others ------------------------------------------------------------------------------


def polled_after(seconds: float, interval: float = 2_000) -> list[Sent]:
    """Return a poll some seconds after another one, whose result asked for an interval."""
    first = [at(1, tasks.POLL), S(result(3, **TASK_D, pollInterval=interval))]
    return [*tasks.BEGIN, *AS_TASK_D, *first, tasks.polled(1 + seconds)]


def not_found(t: float, ttl: Any = 10_000, code: int = -32602, **params: Any) -> list[Sent]:
    """Return a new task that isn't found some seconds later."""
    made = S(result(1, resultType="task", **{**TASK_E, "ttlMs": ttl}))
    call = ask(1, "tools/call", name="t", _meta=tasks.META)
    get = ask(2, "tasks/get", **{"taskId": TASK_ID, "_meta": tasks.META, **params})
    return [C(call), made, C(get), at(t, S(error(2, code)))]


def updated(answer: Any, **responses: Any) -> list[Sent]:
    """Return an update of a task that has asked for the input `k`."""
    known = [*AS_TASK_E, *rounds.got_e(**tasks.INPUT_E)]
    return [*known, tasks.update(3, **responses), S(answer)]


TASKS: Final[list[tuple[str, str, list[Sent], Judged]]] = [
    ("TSK-13", D, polled_after(0.9), "fails"),
    ("TSK-13", D, polled_after(1), "perhaps"),
    ("TSK-13", D, polled_after(1.75), "perhaps"),
    ("TSK-13", D, polled_after(9, 10_000), "passes"),
    ("TSK-13", D, polled_after(0.1, 0), "not judged"),
    ("TX-7", E, not_found(9), "fails"),
    ("TX-7", E, not_found(9.1), "not judged"),
    ("TX-7", E, not_found(1_000, None), "fails"),
    ("TX-7", E, not_found(1, code=-32603), "not judged"),
    ("TX-14", E, updated(error(3), k={"action": "decline"}), "not judged"),
    ("TX-14", E, updated(error(3), z={"action": "decline"}), "perhaps"),
    ("TX-14", E, updated(result(3), z={"action": "decline"}), "passes"),
    ("TX-15", E, [*tasks.UPDATED, tasks.update(4, k={"action": "decline"})], "fails"),
    ("TX-15", E, [*tasks.UPDATED, tasks.update(4, z={"action": "decline"})], "passes"),
    ("TX-15", E, [*tasks.UPDATED, tasks.update(4)], "passes"),
]


# -- Eras, processes and messages ------------------------------------------------------------------


def exited(began: float, t: float, status: int) -> list[Sent]:
    """Return the end of a process some time after the client closed its input."""
    return [*eras.SERVED, eras.ended(began, "client"), eras.exited(t, status)]


def asked_early(t: float) -> list[Sent]:
    """Return a server's request while the client's first one is open."""
    first, response = discovered()
    return [first, at(t, S(ask(1, "ping"))), response]


def served_before(code: int) -> list[Sent]:
    """Return an error for a request that was served under another version."""
    return [*eras.SERVED, eras.OLD_LIST, S(error(2, code))]


def served_on(status: int, *, is_late: bool = True) -> list[Sent]:
    """Return a stream without its response, and a response of the server after it or before."""
    other = {**CALL_E, "id": 9}
    answer = {**CALLED_E, "id": 9} if status == 200 else None
    end, response = ended(1), got(9, status, answer)
    rest = [end, response] if is_late else [response, end]
    return [*STREAM_E, sent(9, other, MIRRORED), *rest]


def noted(size: int, *answers: Sent) -> list[Sent]:
    """Return a message of that size, a notification, and what follows."""
    empty = len(json.dumps(ask(1, "ping", a="")))
    said = [C(ask(1, "ping", a="a" * (size - empty))), S(result(1)), C(notify("x"))]
    return [*tasks.BEGIN, *said, *answers]


ERAS: Final[list[tuple[str, str, list[Sent], Judged]]] = [
    ("STDIO-11", E, exited(1, 11, 0), "passes"),
    ("STDIO-11", E, exited(1, 11, -9), "not judged"),
    ("STDIO-11", E, exited(1, 11, -15), "not judged"),
    ("STDIO-11", E, exited(1, 11, -2), "passes"),
    ("STDIO-11", E, exited(1, 11.1, 0), "fails"),
    ("STDIO-10", E, exited(1, 11, -9), "passes"),
    ("STDIO-10", E, [*eras.SERVED, eras.exited(1, -9)], "perhaps"),
    ("STDIO-10", E, [*eras.SERVED, eras.exited(1, -15)], "perhaps"),
    ("STDIO-10", E, [*eras.SERVED, eras.exited(1, 1)], "not judged"),
    ("STDIO-10", E, [*eras.SERVED, eras.ended(1, "client")], "not judged"),
    ("VER-2", E, [*eras.REJECTED, *eras.rejected_at(0.9, 2)], "not judged"),
    ("VER-2", E, [*eras.REJECTED, *eras.rejected_at(1, 2)], "fails"),
    ("PROBE-3", E, [eras.DISCOVER, S(error("d", -32022)), at(0.9, eras.INITIALIZE)], "perhaps"),
    ("PROBE-3", E, [eras.DISCOVER, S(error("d", -32022)), at(1, eras.INITIALIZE)], "fails"),
    ("PROBE-3", E, [eras.DISCOVER, S(error("d", -32021)), at(1, eras.INITIALIZE)], "fails"),
    ("PROBE-3", E, [eras.DISCOVER, S(error("d", -32020)), at(1, eras.INITIALIZE)], "not judged"),
    ("PROBE-2", E, [eras.DISCOVER, S(error("d", -32020)), at(1, eras.INITIALIZE)], "not judged"),
    ("RPC-28", E, asked_early(0.9), "perhaps"),
    ("RPC-28", E, asked_early(1), "fails"),
    *(("VER-1", E, served_before(code), "fails") for code in (-32600, -32601, -32602, 0)),
    *(("VER-1", E, served_before(code), "perhaps") for code in (-32599, -32603, -1, 1)),
    ("RPC-35", E, served_on(200), "fails"),
    ("RPC-35", E, served_on(299), "fails"),
    ("RPC-35", E, served_on(300), "perhaps"),
    ("RPC-35", E, served_on(199), "perhaps"),
    ("RPC-35", E, served_on(200, is_late=False), "perhaps"),
    ("RPC-14", D, noted(4_096, S(error(None, -32600))), "fails"),
    ("RPC-14", D, noted(4_097, S(error(None, -32600))), "perhaps"),
    ("RPC-14", D, noted(100, S(error(None, -32700))), "not judged"),
    ("RPC-14", D, noted(100, C(ask(2, "x")), S(error(None, -32600))), "not judged"),
    ("RPC-8", D, noted(100, C(ask(2, "x")), S(error(None, -32600))), "fails"),
    ("RPC-8", D, noted(4_097, C(ask(2, "x")), S(error(None, -32600))), "perhaps"),
    ("RPC-8", D, noted(100, C("?"), S(error(None, -32600))), "passes"),
    ("RPC-8", D, noted(100, C("?"), S(error(None, -32600)), C(ask(2, "x")),
                       S(error(None, -32600))), "fails"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "revision", "said", "verdict"), [*ENDS, *SESSIONS, *ORIGINS, *BUFFERS, *TASKS, *ERAS]
)
def test_rule_judges_from_its_bounds_on(
    row: str, revision: str, said: list[Sent], verdict: Judged
) -> None:
    assert judged_row(row, revision, said) == verdict
