"""Bad input: each kind has one error response, and has no other effect on the connection.

Every row is sent to servers of all revisions, to a new server, and to clients. After each row the
next valid message must be answered. Below the rows are floods, endless lines and random input.
"""

from __future__ import annotations

import json
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import (
    ALL,
    DIALECTS,
    Config,
    Connection,
    ConnectionClosed,
    Limits,
    MessageRejected,
    RequestReceived,
    Role,
    State,
)
from mcp_core import types as t
from tests.harness.jsonrpc import (
    INITIALIZED,
    META_CAPABILITIES,
    META_VERSION,
    STATEFUL,
    STATELESS_META,
    VERSIONS,
    B,
    D,
    E,
    Message,
    assert_error,
    assert_rejected,
    call,
    cancelled,
    client_config,
    encoded,
    error,
    initialize,
    ping,
    request,
    result,
    server_config,
    single,
    stateless_request,
    type_names,
)
from tests.harness.wire.connection import ConnectionHarness, opened
from tests.levels import fewer_examples, long

SERVER, CLIENT = Role.SERVER, Role.CLIENT
LIMITS = Limits(message=300_000, decoded=10_000_000, id=100, method=100)
NEW = "new"  # a server of all revisions before any message
NO_ID: Any = "the id cannot be read"
Ask = Callable[..., Message]


class Bad(NamedTuple):
    """A message, built from a function for valid requests, and its response, none without code."""

    message: Callable[[Ask], Any]
    code: int | None
    id: Any = NO_ID
    text: str = ""
    rejected: bool = True


def bad_row(
    name: str,
    message: Any,
    code: int | None,
    id: Any = NO_ID,
    text: str = "",
    *,
    rejected: bool | None = None,
) -> Any:
    make = message if callable(message) else lambda _: message
    return pytest.param(
        Bad(make, code, id, text, code is not None if rejected is None else rejected), id=name
    )


def altered_request(template: str) -> Callable[[Ask], bytes]:
    """Return a valid request altered as text: `%` is its params and the rest."""
    return lambda ask: template.replace(
        "%", encoded(ask(1, "tools/call", {"name": "t"})).decode().split('"params":')[1]
    ).encode()


DEEP = "[" * 100_000 + "]" * 100_000

ROWS: list[Any] = [
    # Not JSON
    bad_row("not JSON", "nope", -32700),
    bad_row("half JSON", '{"jsonrpc":"2.0","id":1,"method":"ping"', -32700),
    bad_row("not UTF-8", b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700, text="not UTF-8 at byte 34"),
    bad_row("not UTF-8, in params", lambda ask: encoded(ask(1, "tools/call", {"name": "?"})).replace(b"?", b"\xc3\x28"), -32700),
    bad_row("cut inside a character", lambda ask: encoded(ask(1, "tools/call", {"name": "?"})).replace(b"?", b"\xe2\x82"), -32700),
    bad_row("UTF-16", '{"jsonrpc":"2.0"}'.encode("utf-16-le"), -32700),
    bad_row("two byte order marks", lambda ask: b"\xef\xbb\xbf" * 2 + encoded(ask(1, "tools/list")), -32700),
    bad_row("NaN", altered_request('{"jsonrpc":"2.0","id":1,"method":"tools/call","x":NaN,"params":%'), -32700),
    bad_row("Infinity", altered_request('{"jsonrpc":"2.0","id":1,"method":"tools/call","x":Infinity,"params":%'), -32700),
    bad_row("half a surrogate pair", lambda ask: encoded(ask(1, "tools/call", {"name": "?"})).replace(b"?", b"\\ud800"), -32700),
    bad_row("half a pair, in the method", '{"jsonrpc":"2.0","id":1,"method":"\\udc00"}', -32700, text="surrogate"),
    bad_row("NUL", b"\0", -32700),
    bad_row("two messages on a line", lambda ask: encoded(ask(1, "tools/list")) + encoded(ask(2, "tools/list")), -32700),
    bad_row("two with a CR between", lambda ask: encoded(ask(1, "tools/list")) + b"\r" + encoded(ask(2, "tools/list")), -32700),
    bad_row("too deep", lambda ask: encoded(ask(1, "odd", {"a": 0})).replace(b'"a":0', b'"a":' + DEEP.encode()), -32700, text="deeply"),
    bad_row("too deep, unknown member", b'{"jsonrpc":"2.0","id":1,"method":"ping","x":' + DEEP.encode() + b"}", -32700, text="deeply"),
    bad_row("too long", lambda ask: encoded(ask(1, "tools/call", {"name": "x" * 300_000})), -32700, 1, text="longer than 300000 bytes"),
    bad_row("too many values", lambda ask: encoded(ask(1, "tools/call", {"name": "x", "arguments": [[]] * 95_000})), -32700, 1, text="too many values: decoded, they take about 10"),
    # Not a JSON-RPC message
    bad_row("number", "1", -32600),
    bad_row("null", "null", -32600),
    bad_row("text", '"ping"', -32600),
    bad_row("empty object", "{}", -32600),
    bad_row("no jsonrpc", lambda ask: {k: v for k, v in ask(1, "tools/list").items() if k != "jsonrpc"}, -32600, 1),
    bad_row("jsonrpc 1.0", lambda ask: ask("x", "tools/list", jsonrpc="1.0"), -32600, "x"),
    bad_row("jsonrpc number", lambda ask: ask(1, "tools/list", jsonrpc=2.0), -32600, 1),
    bad_row("jsonrpc null", lambda ask: ask(1, "tools/list", jsonrpc=None), -32600, 1),
    bad_row("no method", lambda ask: {k: v for k, v in ask(1, "x").items() if k != "method"}, -32600, 1),
    bad_row("method null", lambda ask: ask(1, None), -32600, 1),
    bad_row("method number", lambda ask: ask(1, 7), -32600, 1),
    bad_row("method too long", lambda ask: ask(1, "m" * 101), -32600, 1, "method is longer than 100 bytes"),
    bad_row("method and result", lambda ask: ask(1, "tools/list", result={}), -32600, 1, "not both"),
    # Ids
    bad_row("id null", lambda ask: ask(None, "tools/list"), -32600, text="null"),
    bad_row("id 1.0", lambda ask: ask(1.0, "tools/list"), -32600, text="neither a string nor an integer"),
    bad_row("id 1.5", lambda ask: ask(1.5, "tools/list"), -32600),
    bad_row("id true", lambda ask: ask(True, "tools/list"), -32600),
    bad_row("id object", lambda ask: ask({}, "tools/list"), -32600),
    bad_row("id array", lambda ask: ask([1], "tools/list"), -32600),
    bad_row("id too long", lambda ask: ask("x" * 101, "tools/list"), -32600, text="100 bytes"),
    bad_row("id 2^53", lambda ask: ask(2**53, "tools/list"), -32600, text="2^53"),
    bad_row("id -2^53", lambda ask: ask(-(2**53), "tools/list"), -32600, text="2^53"),
    bad_row("id 10^400", lambda ask: ask(10**400, "tools/list"), -32600),
    # Duplicate members
    bad_row("two ids", altered_request('{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":%'), -32600, 2, "duplicate"),
    bad_row("two ids, one escaped", altered_request('{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"tools/call","params":%'), -32600, 2, "duplicate"),
    bad_row("two ids, spaced", altered_request('{ "jsonrpc" : "2.0" , "id" : 1 , "id" : 2 , "method" : "tools/call" , "params":%'), -32600, 2, "duplicate"),
    bad_row("two methods", altered_request('{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":%'), -32600, 1, "duplicate"),
    bad_row("two params", altered_request('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{},"params":%'), -32600, 1, "duplicate"),
    bad_row("hidden by escaped quotes", altered_request('{"jsonrpc":"2.0","id":1,"\\u0022\\u0022":0,"id":1,"method":"tools/call","params":%'), -32600, 1),
    # Params
    bad_row("params array", lambda ask: ask(1, "tools/call") | {"params": ["t"]}, -32602, 1),
    bad_row("params null", lambda ask: ask(1, "tools/call") | {"params": None}, -32602, 1),
    bad_row("params text", lambda ask: ask(1, "tools/call") | {"params": "t"}, -32602, 1),
    bad_row("wrong params", lambda ask: ask(1, "tools/call", {"name": 7}), -32602, 1, "name"),
    bad_row("no params", lambda ask: ask(1, "tools/call"), -32602, 1),
    bad_row("wrong progress token", lambda ask: ask(1, "tools/call", {"name": "t"}, progressToken=1.5), -32602, 1),
    # Methods
    bad_row("unknown method", lambda ask: ask(1, "odd"), -32601, 1, "odd"),
    bad_row("empty method", lambda ask: ask(1, ""), -32601, 1),
    bad_row("the client's method", lambda ask: ask(1, "sampling/createMessage"), -32601, 1),
    bad_row("a notification with an id", lambda ask: ask(1, "notifications/cancelled", {"requestId": 1}), -32601, 1),
    bad_row("not offered", lambda ask: ask(1, "prompts/get", {"name": "p"}), -32601, 1, "does not offer prompts/get"),
    # Incomplete `_meta`
    bad_row("version without capabilities", request(1, "tools/call", {"_meta": {META_VERSION: E}}), -32602, 1, "lacks"),
    bad_row("capabilities without version", request(1, "tools/call", {"_meta": {META_CAPABILITIES: {}}}), -32602, 1, "lacks"),
    bad_row("of no known revision", request(1, "tools/call", {"_meta": STATELESS_META | {META_VERSION: "x"}}), -32022, 1, "x is not served"),
    bad_row("initialize with an envelope", request(1, "initialize", initialize()["params"] | {"_meta": STATELESS_META}), -32601, 1),
    # No response
    bad_row("empty line", "", None),
    bad_row("blank line", " \t ", None),
    bad_row("CR alone", "\r", None),
    bad_row("a result for nobody", result(99), None),
    bad_row("a result for nobody, twice", b"\n".join([encoded(result(99))] * 2), None),
    bad_row("an error for nobody", error(99), None),
    bad_row("result and error", result(1) | error(1), None, rejected=True),
    bad_row("a result that is none", {"jsonrpc": "2.0", "result": {}}, None, rejected=True),
    bad_row("a result with id null", result(None), None, rejected=True),
    bad_row("a result with id 1.5", result(1.5), None, rejected=True),
    bad_row("an error with a long id", error("x" * 101), None, rejected=True),
    bad_row("a notification twice", '{"jsonrpc":"2.0","method":"a","method":"b"}', None, rejected=True),
    bad_row("a notification of jsonrpc 1.0", '{"jsonrpc":"1.0","method":"notifications/initialized"}', None, rejected=True),
    bad_row("a notification with a long name", {"jsonrpc": "2.0", "method": "m" * 101}, None, rejected=True),
    bad_row("an unknown notification", {"jsonrpc": "2.0", "method": "odd"}, None),
    bad_row("a notification that is a request", {"jsonrpc": "2.0", "method": "tools/call"}, None),
    bad_row("cancelled without an id", {"jsonrpc": "2.0", "method": "notifications/cancelled"}, None),
    bad_row("cancelled, unknown", cancelled(99), None),
    bad_row("cancelled, ill-formed", cancelled({}), None, rejected=True),
]  # fmt: skip


def server_of(version: str, limits: Limits = LIMITS) -> ConnectionHarness:
    offers = t.ServerCapabilities(tools=t.ToolsCapability())
    if version == NEW:
        return ConnectionHarness(
            Connection(SERVER, server_config(capabilities=offers, limits=limits))
        )
    served = ALL if DIALECTS[version].stateful else (version,)
    return opened(SERVER, version, server_config(*served, capabilities=offers, limits=limits))


def request_builder(version: str) -> Ask:
    """Return a function that builds valid requests, which are stateless for a new server."""
    if version in STATEFUL:
        return lambda id, method, params=None, **more: request(
            id, method, *_with_token(params, more), **more
        )

    def ask(id: Any, method: Any, params: Message | None = None, **more: Any) -> Message:
        meta = {"progressToken": more.pop("progressToken")} if "progressToken" in more else {}
        return stateless_request(id, method, params, **meta) | more

    return ask


def _with_token(params: Message | None, more: Message) -> list[Message]:
    if "progressToken" in more:
        params = (params or {}) | {"_meta": {"progressToken": more.pop("progressToken")}}
    return [] if params is None else [params]


def still_answers(harness: ConnectionHarness, version: str) -> bool:
    """True if the next valid message is answered."""
    if version in STATEFUL:
        return harness.response_to(ping("next")) == result("next")
    if version == NEW and harness.response_to(ping("next")) != result("next"):
        return False
    return (
        "supportedVersions"
        in harness.response_to(stateless_request("next", "server/discover"))["result"]
    )


@pytest.mark.requirement(
    "RPC-1",
    "RPC-2",
    "RPC-3",
    "RPC-8",
    "RPC-9",
    "RPC-10",
    "RPC-12",
    "RPC-14",
    "RPC-15",
    "RPC-17",
    "RPC-18",
    "RPC-19",
    "RPC-26",
)
@pytest.mark.requirement(
    "STDIO-1", "STDIO-6", "ERR-1", "META-8", "VER-1", "CXL-8", "CXL-11", "CAP-6", "CAP-7", "DEC-3"
)
@pytest.mark.parametrize("version", [*VERSIONS, NEW])
@pytest.mark.parametrize("row", ROWS)
def test_bad_input_at_server_gets_one_error_response(row: Bad, version: str) -> None:
    """The response has the code and the id of the row, is short, and the connection goes on."""
    harness = server_of(version)
    before = harness.conn.state
    events = harness.receive(row.message(request_builder(version)))
    if row.rejected:
        assert_rejected(events, row.text)
    else:
        assert events == []
    sent = harness.take_sent()
    if row.code is None:
        assert sent == []
    else:
        code, id = row.code, row.id
        if id is NO_ID:
            # Revisions up to C require a null id, later ones none. If unknown: null.
            id = None if version == NEW or DIALECTS[version].null_error_id else ...
        elif (
            code == -32602
            and version == NEW
            and "params" in str(row.message(request_builder(version)))
            and _no_meta(row, version)
        ):
            code = -32600  # without `_meta` it belongs to a session that was not opened
        assert_error(single(sent), code, id, row.text if code == row.code else "")
        assert "\n" not in single(sent)["error"]["message"]
        assert len(single(sent)["error"]["message"]) < 300
    assert harness.conn.state is before
    assert still_answers(harness, version)


def _no_meta(row: Bad, version: str) -> bool:
    params = row.message(request_builder(version))["params"]
    return not (isinstance(params, dict) and "_meta" in params)


@pytest.mark.requirement("RPC-29", "STDIO-6", "STDIO-8")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("row", ROWS)
def test_bad_input_at_client_is_reported_and_rarely_answered(row: Bad, version: str) -> None:
    """A client answers only messages with an id, and in a stateless revision none."""
    harness = opened(CLIENT, version, client_config(version, limits=LIMITS))
    before = harness.conn.state
    events = harness.receive(row.message(request_builder(version)))
    assert all(isinstance(event, MessageRejected) for event in events)
    assert len(events) <= 1
    assert [event.error for event in events] != [] or not row.rejected  # type: ignore[union-attr]
    for response in harness.take_sent():
        assert DIALECTS[version].stateful
        assert response["id"] == row.id
        assert "error" in response
    assert harness.conn.state is before
    id = harness.conn.send_request("tools/list")
    harness.take_sent()
    assert type_names(harness.receive(result(id, {"tools": []}))) == ["ResultReceived"]
    if DIALECTS[version].stateful:
        assert harness.response_to(ping("next")) == result("next")


@pytest.mark.requirement("RPC-19", "STDIO-6")
@pytest.mark.parametrize("version", [*VERSIONS, NEW])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda data: data + b"\r", id="CRLF"),
        pytest.param(lambda data: b"  \t" + data + b"  \r", id="white space around"),
        pytest.param(lambda data: data.replace(b",", b",\r"), id="CR inside"),
        pytest.param(lambda data: data.replace(b'"method"', b'"met\\u0068od"'), id="escaped key"),
        pytest.param(
            lambda data: data.replace(b"{", b'{"more":{"id":5,"method":"x"},', 1),
            id="unknown member",
        ),
        pytest.param(
            lambda data: data.replace(b'"2.0"', b'"2.0","more":"\\ud83d\\ude00"'),
            id="a pair of surrogates",
        ),
        pytest.param(lambda data: b"\n\n" + data + b"\n\n", id="empty lines around"),
    ],
)
def test_odd_but_valid_input_accepted(version: str, change: Callable[[bytes], bytes]) -> None:
    harness = server_of(version)
    assert type_names(
        harness.receive(change(encoded(request_builder(version)(1, "tools/call", {"name": "t"}))))
    ) == ["RequestReceived"]


@pytest.mark.requirement("RPC-25")
@pytest.mark.parametrize("version", [*VERSIONS, NEW])
@pytest.mark.parametrize(
    "array", ["[]", "[1]", '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', " [", "[[[]]]"]
)
def test_array_message_without_batches_rejected(version: str, array: str) -> None:
    """In 2025-03-26 an array is a batch."""
    harness = server_of(version)
    harness.receive(array)
    sent = harness.take_sent()
    if version == B:
        assert len(sent) == 1
    else:
        assert_error(
            single(sent), -32600, None if version == NEW or DIALECTS[version].null_error_id else ...
        )
    assert still_answers(harness, version)


@pytest.mark.requirement("RPC-4", "RPC-5")
@pytest.mark.parametrize("version", VERSIONS)
def test_request_id_in_use_rejected(version: str) -> None:
    harness = server_of(version)
    assert (
        type_names(harness.receive(call(1, version), call("1", version))) == ["RequestReceived"] * 2
    )
    for id in (1, "1"):
        assert_error(harness.error_response_to(call(id, version)), -32600, id, "still in use")
    # This also holds for requests that the connection answers itself.
    own = ping(1) if version in STATEFUL else stateless_request(1, "server/discover")
    assert_error(harness.error_response_to(own), -32600, 1, "still in use")
    assert still_answers(harness, version)


@pytest.mark.requirement("LIFE-10", "LIFE-12", "PING-2")
@pytest.mark.parametrize("version", STATEFUL)
def test_handshake_out_of_order_rejected(version: str) -> None:
    """A message that comes too early or twice is rejected with the cure, and changes nothing."""
    harness = ConnectionHarness(Connection(SERVER, server_config(*STATEFUL)))
    assert_error(harness.error_response_to(call(1, version)), -32600, 1, "send initialize first")
    assert_error(harness.error_response_to(request(2, "odd")), -32600, 2, "send initialize first")
    assert harness.receive(INITIALIZED) == []
    assert_error(
        harness.error_response_to(initialize(version, 3, capabilities=[])), -32602, 3, "initialize"
    )
    assert_error(harness.error_response_to([initialize(version, 4)]), -32600, None)
    assert harness.conn.state is State.NEW
    assert harness.response_to(initialize(version, 5))["result"]["protocolVersion"] == version
    assert_error(harness.error_response_to(initialize(version, 6)), -32600, 6, "already sent")
    assert still_answers(harness, version)
    assert type_names(harness.receive(INITIALIZED)) == ["PeerReady"]
    for other in STATEFUL:
        assert_error(
            harness.error_response_to(initialize(other, 7)), -32600, 7, "already initialized"
        )
    assert harness.conn.peer is not None
    assert harness.conn.peer.dialect.version == version
    assert still_answers(harness, version)


@pytest.mark.parametrize("version", [*VERSIONS, NEW])
@pytest.mark.parametrize("size", [1, 7, 100, 1999, 2000, 2001, 10_000])
def test_line_over_limit_in_chunks_reported_once(version: str, size: int) -> None:
    """It is reported once, in chunks of any size."""
    harness = server_of(version, Limits(message=2000))
    data = b"x" * 9000 + b"\n"
    events: list[Any] = []
    for start in range(0, len(data), size):
        events += harness.receive_bytes(data[start : start + size])
    assert_rejected(events, "longer than 2000 bytes")
    assert single(harness.take_sent())["error"]["code"] == -32700
    assert still_answers(harness, version)


@pytest.mark.perf
def test_endless_line_uses_constant_memory() -> None:
    """300 MB without a newline take constant memory, and the time to search them once."""
    harness = ConnectionHarness(Connection(SERVER, server_config()))
    chunk = b"x" * 1_000_000
    reported = 0
    held = 0
    tracemalloc.start()
    started = time.perf_counter()
    for _ in range(300):
        reported += len(harness.receive_bytes(chunk))
        held = max(held, len(harness.conn._input))
    took = time.perf_counter() - started
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reported == 1
    assert len(harness.take_sent()) == 1
    assert held <= Limits().message + len(chunk)
    assert peak < 20_000_000
    assert took < 2
    assert harness.receive_bytes(b"\n") == []
    assert still_answers(harness, NEW)


@pytest.mark.requirement("DEC-12")
@pytest.mark.parametrize(
    ("count", "limit"), [(10_000, 2**18), long(40_000, None), long(120_000, None)]
)
def test_unread_ping_responses_pause_reading(count: int, limit: int | None) -> None:
    """A paused driver stops reading, so neither the input nor the outbox grows."""
    limits = Limits() if limit is None else Limits(queued=limit)
    harness = opened(SERVER, D, server_config(limits=limits))
    flood = b"".join(encoded(ping(i)) + b"\n" for i in range(count))
    view = memoryview(flood)
    limit, chunk, read = limits.queued, 65_536, 0
    while not harness.paused():
        assert read < len(flood), "it never pauses"
        assert harness.receive_bytes(bytes(view[read : read + chunk])) == []
        read += chunk
    assert read < 3 * limit
    assert limit < harness.conn.queued() < limit + 100
    assert len(harness.conn._input) <= chunk
    assert harness.advance_time(3600.0) == []  # no timeout ends this pause: the peer has to read
    assert harness.paused()
    answered = 0
    while harness.conn.queued():
        answered += harness.conn.data_to_send().count(b"\n")
        assert harness.events() == []
        while not harness.paused() and read < len(flood):
            harness.receive_bytes(bytes(view[read : read + chunk]))
            read += chunk
        assert harness.conn.queued() < limit + 100
    assert answered == count


@pytest.mark.parametrize("version", VERSIONS)
def test_request_flood_without_pause_stays_bounded(version: str) -> None:
    """Requests in flight and waiting stay within their limits."""
    harness = opened(
        SERVER, version, server_config(limits=Limits(in_flight=5, waiting=5, pause=1.0))
    )
    flood = [call(i, version) for i in range(1000)]
    assert type_names(harness.receive(*flood)) == ["RequestReceived"] * 5
    assert harness.paused()
    refused = harness.advance_time(1.0)
    assert type_names(refused) == ["MessageRejected"] * 990
    assert [message["id"] for message in harness.take_sent()] == list(range(10, 1000))
    assert harness.conn.in_flight == 5
    for id in range(10):
        harness.conn.send_result(id, t.CallToolResult(content=[]))
        harness.events()
    assert len(harness.take_sent()) == 10
    assert still_answers(harness, version)


@pytest.mark.requirement("RPC-17")
@pytest.mark.parametrize("version", [*VERSIONS, NEW])
@pytest.mark.parametrize(
    "half", ["{", '{"jsonrpc":"2.0","id":1,"method":"ping"}', " ", "\r", "x" * 3000]
)
def test_eof_inside_message_rejected(version: str, half: str) -> None:
    harness = server_of(version, Limits(message=2000))
    events = [*harness.receive_bytes(half.encode()), *harness.receive_eof()]
    assert type_names(events)[-2:] == ["MessageRejected", "ConnectionClosed"]
    assert len(events) == 2 + (len(half) > 2000)
    assert len(harness.take_sent()) == (len(half) > 2000)
    assert harness.receive(ping()) == []


# -- Made up by a machine --------------------------------------------------------------------------


def checked_connection(role: Role, version: str) -> ConnectionHarness:
    if role is CLIENT:
        return opened(CLIENT, version, client_config(version))
    return server_of(version)


LISTENERS = st.sampled_from(
    [*((SERVER, version) for version in [*VERSIONS, NEW]), *((CLIENT, v) for v in VERSIONS)]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-10, 10) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=5,
)
METHODS = st.sampled_from(
    sorted(
        {name for d in DIALECTS.values() for role in Role for name in d.receives[role]} | {"odd"}
    )
)
META = st.fixed_dictionaries(
    {},
    optional={
        META_VERSION: st.sampled_from([E, D, "x"]) | JSON,
        META_CAPABILITIES: st.just({}) | JSON,
        "progressToken": st.integers(0, 3) | JSON,
    },
)
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "_meta": META | JSON,
        "name": st.text(max_size=3) | JSON,
        "uri": st.just("x:y"),
        "requestId": st.integers(0, 3) | JSON,
        "progressToken": st.integers(0, 3) | JSON,
        "progress": st.integers(0, 9) | JSON,
        "level": st.sampled_from(["error", "debug"]) | JSON,
        "protocolVersion": st.sampled_from(VERSIONS) | JSON,
        "capabilities": st.just({}) | JSON,
        "clientInfo": st.just({"name": "c", "version": "1"}) | JSON,
    },
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | JSON},
    optional={
        "id": st.integers(0, 3) | st.sampled_from(["0", "1"]) | JSON,
        "method": METHODS | JSON,
        "params": PARAMS | JSON,
        "result": JSON,
        "error": st.fixed_dictionaries({"code": st.integers(-9, 9), "message": st.text(max_size=3)})
        | JSON,
    },
)


# At random a valid request comes too rarely.
VALID = st.builds(
    lambda build, id: build(id),
    st.sampled_from(
        [ping, cancelled, *(partial(call, version=version) for version in (D, E))],
    ),
    st.integers(0, 3),
)


@st.composite
def random_lines(draw: st.DrawFn) -> bytes:
    """Return random bytes, a message, a valid one, or one with a few bytes changed."""
    kind = draw(st.integers(0, 5))
    if kind == 0:
        return draw(st.binary(max_size=40))
    if kind == 5:
        return encoded(draw(VALID))
    value = draw(MESSAGES | st.lists(MESSAGES, max_size=3) if kind == 1 else MESSAGES)
    data = bytearray(json.dumps(value, ensure_ascii=draw(st.booleans())).encode())
    for _ in range(draw(st.integers(0, 3)) if kind > 2 else 0):
        place = draw(st.integers(0, len(data)))
        data[place : place + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(data)


@fewer_examples(5)
@given(LISTENERS, st.lists(random_lines(), max_size=6), st.booleans())
def test_random_input_never_raises(who: tuple[Role, str], lines: list[bytes], ends: bool) -> None:
    """After any lines the connection still answers, or still sends a request."""
    role, version = who
    harness = checked_connection(role, version)
    harness.receive(*lines)
    harness.take_sent()
    for id in list(harness.conn._incoming.table):
        harness.conn.send_result(id, {})
    if ends:
        assert type_names(harness.receive_eof()).count("ConnectionClosed") == 1
        assert harness.receive(ping("next")) == []
        return
    harness.receive(b"")
    harness.take_sent()
    if role is SERVER and version in (E, NEW):
        assert "result" in harness.response_to(stateless_request("next", "server/discover"))
    elif DIALECTS[version].stateful:
        assert harness.response_to(ping("next")) == result("next")
    else:
        id = harness.conn.send_request("tools/list")
        assert type_names(harness.receive(result(id, {"tools": []}))) == ["ResultReceived"]


@fewer_examples(5)
@given(st.sampled_from([*VERSIONS, NEW]), st.lists(random_lines(), max_size=8))
def test_every_valid_request_gets_one_response(version: str, lines: list[bytes]) -> None:
    """Messages that are no requests get none, and cancelled requests get none."""
    harness = server_of(version)
    sent: Counter[tuple[type, Any]] = Counter()
    unnamed = 0
    events = []
    for data in lines:
        events += harness.receive(data)
    answered = Counter[Any]()
    for message in harness.take_sent():
        if message.get("id") is None:
            unnamed += 1
        else:
            answered[type(message["id"]), message["id"]] += 1
        assert ("result" in message) is not ("error" in message)
    for event in events:
        if isinstance(event, RequestReceived):
            if harness.conn.send_result(event.id, {}):
                answered[type(event.id), event.id] += 1
            else:
                sent[type(event.id), event.id] -= 1  # cancelled
        assert not isinstance(event, ConnectionClosed)
    for message in harness.take_sent():
        assert "result" in message
    for data in lines:
        sent.update(_requests_with_usable_id(data, batches=version == B))
    assert +answered == +sent
    assert unnamed <= sum(isinstance(event, MessageRejected) for event in events)


def _requests_with_usable_id(data: bytes, *, batches: bool) -> list[tuple[type, Any]]:
    """Return the ids of the requests in `data`, as another JSON library decodes them."""
    found = []
    for part in data.split(b"\n"):
        try:
            value = json.loads(part.decode(), parse_constant=_reject_constant)
            encoded(value)  # this library accepts lone surrogates, ours does not
        except (ValueError, RecursionError):
            continue
        for member in value if isinstance(value, list) and batches else [value]:
            if not isinstance(member, dict) or type(id := member.get("id")) not in (int, str):
                continue
            if isinstance(id, int) and abs(id) >= 2**53:
                continue
            if "method" in member or not ("result" in member or "error" in member):
                found.append((type(id), id))
    return found


def _reject_constant(constant: str) -> None:
    raise ValueError(constant)


def test_shared_config_is_unchanged_by_input() -> None:
    """All connections of a server share one configuration."""
    config: Config = server_config()
    before = repr(config), config.versions, dict(config.receivable[SERVER])
    harness = ConnectionHarness(Connection(SERVER, config))
    harness.receive(
        initialize(),
        INITIALIZED,
        request(1, "logging/setLevel", {"level": "error"}),
        "nope",
        stateless_request(2, "odd"),
    )
    assert (repr(config), config.versions, dict(config.receivable[SERVER])) == before
