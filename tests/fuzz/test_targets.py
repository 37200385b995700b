"""Every fuzz target: its invariant holds for recorded cases and a few new ones, and does not hold for a broken core.

What a long run finds comes here: the case as a row of `FOUND` or as a file of the corpus, and the fix with it.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec import Struct

from fuzz import engines
from fuzz.engines import by_hypothesis, checked
from fuzz.fuzz_signature import _declared
from fuzz.messages import VERSIONS
from fuzz.pair import common
from fuzz.targets import as_row, committed, invariant_of, load, read_case, target_names, write_case
from mcp_core import _framing, _jsonrpc, _opening, _outbox, _param_headers
from mcp_core._asked import Asked
from mcp_core._body import parse_body
from mcp_core._rate import Bucket
from mcp_core._requests import Requests
from mcp_core.auth import _challenge, _grant, _guard
from mcp_core.auth._jose import Jws
from mcp_core.auth._proof import Proofs
from mcp_core.http import _headers, _http2_frames, _http2_heads, _mirror, _spelling, _sse
from mcp_core.http._conversation import Session
from mcp_core.http._endpoint import _NO_SESSION, Endpoint
from mcp_core.http._exchange import Exchange, Mode
from mcp_core.http._stream import EventLog, Stream
from mcp_core.registry import _schema, _signature, _uri_matcher

NAMES = target_names()
# Enough to try every kind of case, few enough for every test run.
CASES = 50

# Cases that broke an invariant once: a row as `python -m fuzz` prints it.
FOUND: list[tuple[str, Any]] = [
    # A server that was winding down asked a silent client for a sign of life, which raised.
    (
        "connection",
        (
            "server",
            ("2025-11-25",),
            "2025-11-25",
            (1, 1, 1000),
            ("watchful",),
            [("wind down",), ("wait", 6.0)],
        ),
    ),
    # A change that was told before the conversation was open waited for the next message after it.
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
                    "hear",
                    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}\n',
                ),
                ("change", "notifications/tools/list_changed"),
                ("hear", b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'),
            ],
        ),
    ),
    # Chunks that came while lines were waiting were read before those that had come earlier.
    ("framing", (0, [b"\r", b"\n\n"], 2, 1)),
    # Python puts no lists into sets, which came out as a TypeError.
    ("signature", ([("a", ["set", "few"], ())], b'{"a":[[]]}')),
    # A type that nothing is read as was accepted for the sake of its description.
    ("signature", ([("a", ["described", "type"], ())], b'{"a":null}')),
    # The schema of this could not be written into any list of tools.
    ("signature", ([("a", ["union", ["union", "Any", "Node"], "Pet"], ())], b'{"a":null}')),
    # What is skipped in the header of a token was not looked at, and need not have been UTF-8.
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
    # A head on stream 0 was no head that something could stand in, and `te` was believed when it was said for the last time.
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
    # A query between a path and a fixed text may be absent, and then the path took the text too.
    ("uri_template", ("{+%41}{?a*}#", {"%41": "a", "a": ""}, "a?a=#", 1)),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "cases", [CASES, pytest.param(50 * CASES, marks=[pytest.mark.slow, pytest.mark.timeout(600)])]
)
def test_the_invariant_holds(name: str, cases: int) -> None:
    run, finding = by_hypothesis(load(name), cases=cases, keep=False)
    assert finding is None, as_row(run.target, finding.case)
    assert run.cases == cases
    assert len(run.seen) > 5
    assert repr(run) == f"<Run of {name}, {run.cases} cases, {len(run.seen)} outcomes>"


@pytest.mark.parametrize(("name", "case"), FOUND)
def test_what_was_found_once_holds(name: str, case: Any) -> None:
    assert checked(load(name), case)


@pytest.mark.parametrize("name", NAMES)
def test_every_target_says_what_holds(name: str) -> None:
    assert len(invariant_of(name)) > 100
    assert len(committed(load(name))) > 5


def test_there_is_no_other_target() -> None:
    with pytest.raises(KeyError):
        load("nothing")


@pytest.mark.parametrize("name", ["jsonrpc", "connection"])
def test_cases_are_written_as_they_are(name: str, tmp_path: Any) -> None:
    target = load(name)
    for case in committed(target).values():
        assert read_case(target, write_case(target, case, tmp_path, "x-")) == case


# -- A broken core is found out ----------------------------------------------------------------------------------------


def _admit_all(self: Requests, event: Any, request: Any) -> bool:
    self.table[event.id] = request
    return True


def _take_and_miscount(self: _outbox.Outbox) -> bytes:
    messages, self._messages = self._messages, []
    return b"".join(message.data + b"\n" for message in messages)


def _schema_without_required(struct: type[Struct], function: Any) -> dict[str, Any]:
    schema = _argument_schema(struct, function)
    schema.pop("required", None)
    return schema


_argument_schema = _signature._argument_schema


def _misfit(self: _signature.ArgumentReader, arguments: Any, first: Exception) -> Any:
    raise _signature.Misfit("no")


def _dispatch_and_keep_type(self: _sse.SseDecoder) -> _sse.SseEvent | None:
    type = self._type
    event = _dispatch_event(self)
    self._type = type
    return event


def _append_without_limit(self: _sse.SseDecoder, value: bytes) -> None:
    self._data = value if self._data is None else bytes(self._data) + b"\n" + value


_dispatch_event = _sse.SseDecoder._dispatch_event


def _cut_off(self: Any, frames: Any, opcode: Any, bits: Any, data: bytes, fin: bool) -> Any:
    return bits, data[:9]


def _gone_unless_done(self: Exchange) -> bool:
    """As if no client could go before the last output is taken."""
    return self.mode is not Mode.DONE and _disconnected(self)


def _find_anybodys(self: Endpoint, exchange: Exchange, id: bytes, dialect: Any) -> Any:
    session = self.sessions.get(id)
    if session is None:
        return _NO_SESSION
    exchange.session = exchange.conversation = session
    return None


def _act_on_any(self: Endpoint, exchange: Exchange, data: bytes) -> None:
    """As if nothing could happen between a head and its body."""
    session = exchange.session
    if isinstance(session, Session):
        self._post_in_session(exchange, session, parse_body(data, session.conn.config.limits))
    else:
        _handle_body(self, exchange, data)


_disconnected, _handle_body = Exchange.disconnected, Endpoint._handle_body


# target, what is broken: where, its name, and what stands in its place
BROKEN: list[tuple[str, object, str, Any]] = [
    ("framing", _framing, "_CR", 0x20),
    ("jsonrpc", _jsonrpc, "_reject_duplicates", lambda data, envelope: None),
    ("opening", _opening, "best", lambda dialects, versions: dialects[0] if dialects else None),
    ("connection", Requests, "cancel", lambda self, id: None),
    ("connection", Requests, "add", _admit_all),
    ("connection", Requests, "end_all", lambda self: []),
    ("connection", Requests, "_resume", lambda self: None),
    ("connection", Asked, "give_up_for", lambda self, parent: None),
    ("connection", Bucket, "take", lambda self, now: 0.0),
    ("connection", _outbox.Outbox, "take_lines", _take_and_miscount),
    ("pair", Requests, "cancel", lambda self, id: None),
    ("pair", Asked, "progressed", lambda self, params: None),
    ("arguments", _schema.GivenSchema, "fault_of", lambda self, value: None),
    ("signature", _signature, "_argument_schema", _schema_without_required),
    ("signature", _signature.ArgumentReader, "_read_whole_numbers", _misfit),
    ("uri_template", _uri_matcher, "_decode_segment", _uri_matcher._decode),
    ("sse", _sse.SseDecoder, "_dispatch_event", _dispatch_and_keep_type),
    ("sse", _sse.SseDecoder, "_append_data", _append_without_limit),
    ("sse", _sse, "_one_line", lambda value, what: value),
    ("headers", _headers, "_PLAIN", re.compile(r"[ -~]*")),
    ("headers", _mirror, "agrees", lambda text, value: text.lower() == str(value).lower()),
    ("headers", _mirror.Mirror, "_absent_or_repeated", lambda self, header: None),
    ("exchange", Exchange, "disconnected", _gone_unless_done),
    ("exchange", Exchange, "may_be_resumed", property(lambda self: False)),
    ("exchange", Endpoint, "_find_session", _find_anybodys),
    ("exchange", Endpoint, "_handle_body", _act_on_any),
    ("exchange", EventLog, "forget", lambda self, stream: None),
    ("exchange", Stream, "reaches", lambda self, cursor: cursor <= self.last),
    ("headers", _param_headers, "_TYPES", ("string", "integer", "boolean", "number")),
    ("challenge", _challenge, "_ESCAPE", re.compile(r"(\Z)")),
    ("challenge", _guard, "_quotable", str),
    ("token", Jws, "verify", lambda self, key: self._payload),
    ("token", _grant, "_check_audience", lambda claims, audience: None),
    ("token", Proofs, "_use", lambda self, digest, last, now: None),
    ("http2", _http2_frames, "_MAX_CONTINUATIONS", 17),
    ("http2", _http2_frames, "_IDLE_FRAMES", 10_000),
    ("http2", _http2_frames.FrameWatch, "_continue_block", lambda self, kind, flags, header: None),
    ("http2", _http2_heads, "_INVALID_IN_VALUE", re.compile(rb"[\0\r]")),
    ("http2", _http2_heads, "_CONNECTION_FIELDS", frozenset()),
    ("websocket", _spelling, "_FIRST_CONTROL", 1),
    ("websocket", _spelling._Lengths, "frame_outbound", _cut_off),
]


# What it takes a thousand cases or more to find. The same targets find something else sooner.
FOUND_LATE = {
    "connection-_resume",
    "connection-cancel",
    "connection-end_all",
    "exchange-may_be_resumed",
    "exchange-reaches",
    "headers-_TYPES",
    "http2-_NO_VALUE",
    "http2-_OF_CONNECTIONS",
}


def _row(name: str, place: object, what: str, instead: Any) -> Any:
    id = f"{name}-{what}"
    return pytest.param(
        name, place, what, instead, id=id, marks=[pytest.mark.slow] if id in FOUND_LATE else []
    )


@pytest.mark.parametrize(("name", "place", "what", "instead"), [_row(*row) for row in BROKEN])
def test_a_broken_core_is_found_out(
    name: str, place: object, what: str, instead: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By cases that are made, without the help of recorded ones."""
    monkeypatch.setattr(place, what, instead)
    monkeypatch.setattr(engines, "committed", lambda target: {})
    _declared.cache_clear()
    run, finding = by_hypothesis(load(name), cases=3_000, keep=False, small=False)
    _declared.cache_clear()
    assert finding is not None
    assert run.cases < 3_000


def test_every_target_can_fail() -> None:
    assert {name for name, *_ in BROKEN} == set(NAMES)


# -- What the judges know ----------------------------------------------------------------------------------------------

# client, server, the revision they meet in
MEETINGS = [
    (VERSIONS, VERSIONS, "2026-07-28"),
    (VERSIONS, VERSIONS[:4], "2025-11-25"),
    (VERSIONS[:4], VERSIONS, "2025-11-25"),
    (VERSIONS[:1], VERSIONS, "2024-11-05"),
    (VERSIONS[4:], VERSIONS[:4], None),
    (("2025-03-26", "2025-06-18"), ("2024-11-05", "2025-03-26"), "2025-03-26"),
    (("2024-11-05", "2025-06-18"), ("2024-11-05", "2025-03-26"), None),
]


@pytest.mark.parametrize(("client", "server", "met"), MEETINGS)
def test_where_two_sides_meet(client: tuple[str, ...], server: tuple[str, ...], met: str | None) -> None:
    assert common(client, server) == met
