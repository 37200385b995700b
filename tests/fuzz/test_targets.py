"""Every fuzz target: its invariant holds for recorded and new cases, and does not hold for a broken
core.

The findings of long runs come here: the case as a row of `REGRESSIONS` or as a file of the corpus,
together with the fix.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from fuzz import engines
from fuzz.engines import check_case, run_hypothesis
from fuzz.fuzz_signature import _reader_of
from fuzz.pair import negotiated_version
from fuzz.targets import (
    as_row,
    committed_cases,
    invariant_of,
    load,
    read_case,
    target_names,
    write_case,
)
from mcp_core._limits import Bucket
from mcp_core.auth._jose import Jws
from mcp_core.auth.client import _challenge
from mcp_core.auth.server import _grant, _protected_resource
from mcp_core.auth.server._dpop_replay import ReplayCache
from mcp_core.http.server._checks import NO_SESSION
from mcp_core.http.server._endpoint import Endpoint
from mcp_core.http.server._exchange import Exchange, ResponseMode
from mcp_core.http.server._session import Session
from mcp_core.http.server._stream import EventLog, EventStream
from mcp_core.http.wire import _http2_frames, _http2_headers, _mcp_headers, _sse, _websocket_frames
from mcp_core.protocol.connection import _negotiation
from mcp_core.protocol.connection._requests import IncomingRequests, OutgoingRequests
from mcp_core.protocol.jsonrpc import _codec, _framing
from mcp_core.protocol.jsonrpc._body import parse_body
from mcp_core.protocol.messages import _outbox
from mcp_core.protocol.schema import _param_headers
from mcp_core.registry.functions import _schema, _signature
from mcp_core.tasks import Complete, TaskRecord, _record, _states, _views
from mcp_core.urls import _uri_matcher
from mcp_trio.oracle.strategies._messages import VERSIONS
from tests.levels import long

NAMES = target_names()
# Enough for every kind of case, few enough for every test run.
CASES = 50
FEW = 3

# Cases that once broke an invariant: rows as `python -m fuzz` prints them.
REGRESSIONS: list[tuple[str, Any]] = [
    # A server in shutdown sent a keep-alive ping to a silent client, which raised.
    (
        "connection",
        (
            "server",
            ("2025-11-25",),
            "2025-11-25",
            (1, 1, 1000),
            ("keep_alive",),
            [("shutdown",), ("wait", 6.0)],
        ),
    ),
    # A change notification sent before the handshake ended was held back until the next message.
    (
        "connection",
        (
            "server",
            ("2025-11-25",),
            "",
            (1, 1, 1000),
            (),
            [
                (
                    "receive",
                    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n',
                ),
                ("change", "notifications/tools/list_changed"),
                ("receive", b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'),
            ],
        ),
    ),
    # Chunks that arrived while lines were queued were read before earlier ones.
    ("framing", (0, [b"\r", b"\n\n"], 2, 1)),
    # Python sets hold no lists, which raised TypeError.
    ("signature", ([("a", ["set", "few"], ())], b'{"a":[[]]}')),
    # A type that no JSON decodes to was accepted because of its description.
    ("signature", ([("a", ["described", "type"], ())], b'{"a":null}')),
    # The schema of this could not be encoded in a list of tools.
    ("signature", ([("a", ["union", ["union", "Any", "Node"], "Pet"], ())], b'{"a":null}')),
    # Skipped members of a token's header were not checked to be UTF-8.
    (
        "token",
        (
            (
                b'{"alg":"ES256","{typ":"{\x80t+jwt","kid":"k"}',
                (
                    b'{"iss":"https://as.example.com","aud":"https://mcp.example.com/mcp","sub":"alice",'
                    b'"client_id":"app","exp":1800000600.0,"iat":1800000000.0,"scope":"read"}'
                ),
            ),
            None,
            None,
        ),
    ),
    # HEADERS on stream 0 did not open a header block, and of several `te` fields only the last was
    # checked.
    ("http2", (False, [b"\0\0\0\4" + bytes(8) + b"\1" + bytes(14)], 1, [])),
    (
        "http2",
        (
            False,
            [],
            1,
            [
                (b":method", b"POST"),
                (b":scheme", b"https"),
                (b":authority", b"a.example"),
                (b":path", b"/mcp"),
                (b"te", b""),
                (b"te", b"trailers"),
            ],
        ),
    ),
    # A query between a path and a literal may be absent, and then the path matched the literal too.
    ("uri_template", ("{+%41}{?a*}#", {"%41": "a", "a": ""}, "a?a=#", 1)),
]


@pytest.fixture(scope="module", autouse=True)
def _strategies_are_built() -> None:
    """Draw two cases of the largest target: its strategies, which others share, are built then."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, "committed_cases", lambda target: {})
        run_hypothesis(load("connection"), cases=2, keep=False)


@pytest.mark.parametrize("name", NAMES)
def test_fuzz_target_recorded_cases_hold(name: str) -> None:
    target = load(name)
    for case in committed_cases(target).values():
        check_case(target, case)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "cases",
    [
        FEW,
        long(CASES),
        pytest.param(50 * CASES, marks=[pytest.mark.slow, pytest.mark.timeout(600)]),
    ],
)
def test_fuzz_target_new_cases_hold(name: str, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few cases are drawn without the recorded ones, which the test above checks."""
    if cases == FEW:
        monkeypatch.setattr(engines, "committed_cases", lambda target: {})
    run, finding = run_hypothesis(load(name), cases=cases, keep=False)
    assert finding is None, as_row(run.target, finding.case)
    assert run.cases == cases
    assert len(run.seen) > min(5, cases // 5)
    assert repr(run) == f"<Run of {name}, {run.cases} cases, {len(run.seen)} outcomes>"


@pytest.mark.parametrize(("name", "case"), REGRESSIONS)
def test_fuzz_target_regression_holds(name: str, case: Any) -> None:
    assert check_case(load(name), case)


@pytest.mark.parametrize("name", NAMES)
def test_fuzz_target_has_invariant_and_corpus(name: str) -> None:
    assert len(invariant_of(name)) > 100
    assert len(committed_cases(load(name))) > 5


def test_load_unknown_target_raises() -> None:
    with pytest.raises(KeyError):
        load("nothing")


@pytest.mark.parametrize("name", ["jsonrpc", "connection"])
def test_recorded_case_written_and_read_is_unchanged(name: str, tmp_path: Any) -> None:
    target = load(name)
    for case in committed_cases(target).values():
        assert read_case(target, write_case(target, case, tmp_path, "x-")) == case


# -- Planted bugs ----------------------------------------------------------------------------------


def _add_without_limit_or_queue(self: IncomingRequests, event: Any, request: Any) -> bool:
    self.table[event.id] = request
    return True


def _take_without_counting(self: _outbox.Outbox) -> bytes:
    messages, self._messages = self._messages, []
    return b"".join(message.data + b"\n" for message in messages)


def _schema_without_required(struct: type[Struct], function: Any) -> dict[str, Any]:
    schema = _argument_schema(struct, function)
    schema.pop("required", None)
    return schema


_argument_schema = _signature._argument_schema


def _always_invalid(self: _signature.ArgumentReader, arguments: Any, first: Exception) -> Any:
    raise _signature.InvalidArguments("no")


def _dispatch_without_type_reset(self: _sse.SseDecoder) -> _sse.SseEvent | None:
    type = self._type
    event = _dispatch_event(self)
    self._type = type
    return event


def _append_without_limit(self: _sse.SseDecoder, value: bytes) -> None:
    self._data = value if self._data is None else bytes(self._data) + b"\n" + value


_dispatch_event = _sse.SseDecoder._dispatch_event


def _write_truncated(self: Any, frames: Any, opcode: Any, bits: Any, data: bytes, fin: bool) -> Any:
    return bits, data[:9]


def _ignore_disconnect_unless_done(self: Exchange) -> bool:
    """Ignore a disconnect until the last output is taken."""
    return self.mode is not ResponseMode.DONE and _disconnected(self)


def _find_without_principal_check(
    self: Endpoint, exchange: Exchange, id: bytes, dialect: Any
) -> Any:
    session = self.sessions.get(id)
    if session is None:
        return NO_SESSION
    exchange.session = exchange.conversation = session
    return None


def _handle_without_recheck(self: Endpoint, exchange: Exchange, data: bytes) -> None:
    """Skip the checks between a head and its body."""
    session = exchange.session
    if isinstance(session, Session):
        self._post_in_session(exchange, session, parse_body(data, session.conn.config.limits))
    else:
        _handle_body(self, exchange, data)


_disconnected, _handle_body = Exchange.disconnected, Endpoint._handle_body


def _forget_response(record: TaskRecord, action: Any, limits: Any) -> TaskRecord:
    """Forget a key with its response, so that it can be used again."""
    changed = _receive_response(record, action, limits)
    return changed if changed is record else replace(changed, responses={})


_receive_response = _states._receive_response


# target; the broken object, its attribute, and the replacement
MUTANTS: list[tuple[str, object, str, Any]] = [
    ("framing", _framing, "_CR", 0x20),
    ("jsonrpc", _codec, "_reject_duplicates", lambda data, envelope: None),
    (
        "opening",
        _negotiation,
        "newest_common",
        lambda dialects, versions: dialects[0] if dialects else None,
    ),
    ("connection", IncomingRequests, "cancel", lambda self, id: None),
    ("connection", IncomingRequests, "add", _add_without_limit_or_queue),
    ("connection", IncomingRequests, "cancel_all", lambda self: []),
    ("connection", IncomingRequests, "_resume", lambda self: None),
    ("connection", OutgoingRequests, "cancel_related", lambda self, parent: None),
    ("connection", Bucket, "take", lambda self, now: 0.0),
    ("connection", _outbox.Outbox, "take_lines", _take_without_counting),
    ("pair", IncomingRequests, "cancel", lambda self, id: None),
    ("pair", OutgoingRequests, "progress_event", lambda self, params: None),
    ("arguments", _schema.DeclaredSchema, "find_error", lambda self, value: None),
    ("signature", _signature, "_argument_schema", _schema_without_required),
    ("signature", _signature.ArgumentReader, "_read_whole_numbers", _always_invalid),
    ("uri_template", _uri_matcher, "_find_part_error", lambda segment: None),
    ("uri_template", _uri_matcher, "_find_segment_error", lambda text: None),
    ("sse", _sse.SseDecoder, "_dispatch_event", _dispatch_without_type_reset),
    ("sse", _sse.SseDecoder, "_append_data", _append_without_limit),
    ("sse", _sse, "_one_line", lambda value, what: value),
    ("headers", _mcp_headers, "_PLAIN", re.compile(r"[ -~]*")),
    (
        "headers",
        _mcp_headers,
        "header_matches",
        lambda text, value: text.lower() == str(value).lower(),
    ),
    (
        "headers",
        _mcp_headers.RequestHeaderValidator,
        "_absent_or_repeated",
        lambda self, header: None,
    ),
    ("exchange", Exchange, "disconnected", _ignore_disconnect_unless_done),
    ("exchange", Exchange, "is_resumable", property(lambda self: False)),
    ("exchange", Endpoint, "_find_session", _find_without_principal_check),
    ("exchange", Endpoint, "_handle_body", _handle_without_recheck),
    ("exchange", EventLog, "forget", lambda self, stream: None),
    ("exchange", EventStream, "reaches", lambda self, cursor: cursor <= self.last),
    ("headers", _param_headers, "_TYPES", ("string", "integer", "boolean", "number")),
    ("challenge", _challenge, "_ESCAPE", re.compile(r"(\Z)")),
    ("challenge", _protected_resource, "_sanitize_quoted", str),
    ("token", Jws, "verify", lambda self, key: self._payload),
    ("token", _grant, "_check_audience", lambda claims, audience: None),
    ("token", ReplayCache, "add", lambda self, *proof: True),
    (
        "tasks",
        _states,
        "TRANSITIONS",
        {**_states.TRANSITIONS, "cancelled": {Complete: "completed"}},
    ),
    ("tasks", _states, "_receive_response", _forget_response),
    ("tasks", _record, "_find_error", lambda record: ""),
    ("tasks", _views, "shown_status", lambda record, dialect: record.status),
    ("tasks", _views, "_iso", lambda seconds: f"{seconds}"),
    ("http2", _http2_frames, "_MAX_CONTINUATIONS", 17),
    ("http2", _http2_frames, "_IDLE_FRAMES", 10_000),
    ("http2", _http2_frames.FrameWatch, "_continue_block", lambda self, kind, flags, header: None),
    ("http2", _http2_headers, "_INVALID_IN_VALUE", re.compile(rb"[\0\r]")),
    ("http2", _http2_headers, "_CONNECTION_FIELDS", frozenset()),
    ("websocket", _websocket_frames, "_FIRST_CONTROL", 1),
    ("websocket", _websocket_frames._FrameLengths, "frame_outbound", _write_truncated),
]


# Mutants that take a thousand cases or more to detect. The same targets detect others sooner.
DETECTED_LATE = {
    "connection-_resume",
    "connection-cancel",
    "connection-cancel_all",
    "exchange-is_resumable",
    "exchange-reaches",
    "headers-_TYPES",
    "http2-_INVALID_IN_VALUE",
    "http2-_CONNECTION_FIELDS",
}
# The same for hundreds of cases.
DETECTED_LATER = {
    "connection-add",
    "connection-take",
    "connection-cancel_related",
    "exchange-_find_session",
    "headers-header_matches",
    "signature-_read_whole_numbers",
    "tasks-TRANSITIONS",
    "tasks-_find_error",
    "token-verify",
}


def _row(name: str, place: object, what: str, instead: Any) -> Any:
    id = f"{name}-{what}"
    marks = []
    if id in DETECTED_LATE:
        marks.append(pytest.mark.slow)
    elif id in DETECTED_LATER:
        marks.append(pytest.mark.long)
    return pytest.param(name, place, what, instead, id=id, marks=marks)


# A seed by which a mutant is detected after a few cases. Others take up to ten times as many.
SEEDS = {"pair-progress_event": 1, "tasks-shown_status": 2, "uri_template-_find_part_error": 3}


@pytest.mark.parametrize(("name", "place", "what", "instead"), [_row(*row) for row in MUTANTS])
def test_fuzz_target_mutant_is_detected(
    name: str, place: object, what: str, instead: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cases are generated, without recorded ones."""
    monkeypatch.setattr(place, what, instead)
    monkeypatch.setattr(engines, "committed_cases", lambda target: {})
    _reader_of.cache_clear()
    seed = SEEDS.get(f"{name}-{what}", 0)
    run, finding = run_hypothesis(load(name), cases=3_000, seed=seed, keep=False, shrink=False)
    _reader_of.cache_clear()
    assert finding is not None
    assert run.cases < 3_000


def test_every_fuzz_target_has_a_mutant() -> None:
    assert {name for name, *_ in MUTANTS} == set(NAMES)


# -- The oracles -----------------------------------------------------------------------------------

# revisions of the client; of the server; the negotiated one
NEGOTIATIONS = [
    (VERSIONS, VERSIONS, "2026-07-28"),
    (VERSIONS, VERSIONS[:4], "2025-11-25"),
    (VERSIONS[:4], VERSIONS, "2025-11-25"),
    (VERSIONS[:1], VERSIONS, "2024-11-05"),
    (VERSIONS[4:], VERSIONS[:4], None),
    (("2025-03-26", "2025-06-18"), ("2024-11-05", "2025-03-26"), "2025-03-26"),
    (("2024-11-05", "2025-06-18"), ("2024-11-05", "2025-03-26"), None),
]


@pytest.mark.parametrize(("client", "server", "expected"), NEGOTIATIONS)
def test_negotiated_version_matches_specification(
    client: tuple[str, ...], server: tuple[str, ...], expected: str | None
) -> None:
    assert negotiated_version(client, server) == expected
