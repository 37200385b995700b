"""Input that cannot be read: which of our requests fail because of it, when, and with what text."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import (
    CallTimeout,
    Connection,
    ConnectionClosed,
    ConnectionLost,
    ErrorReceived,
    Limits,
    MessageRejected,
    RemoteProtocolError,
    ResultReceived,
)
from mcp_core.protocol.connection import _unreadable
from mcp_core.protocol.messages._incoming import MessageContext
from tests.core.protocol.connection.connection_setup import CLIENT, SERVER
from tests.harness.jsonrpc import (
    D,
    E,
    Message,
    assert_error,
    assert_rejected,
    cancelled,
    client_config,
    encoded,
    error,
    notification,
    only_event,
    ping,
    request,
    result,
    server_config,
    single,
    type_names,
)
from tests.harness.wire.connection import ConnectionHarness, opened

LIMIT = 2000
BIG: Message = {"content": [{"type": "text", "text": "x" * (2 * LIMIT)}]}


def client(version: str = D) -> ConnectionHarness:
    harness = opened(CLIENT, version, client_config(version, limits=Limits(message=LIMIT)))
    harness.now = 10.0
    return harness


def waiting_client(count: int, version: str = D) -> tuple[ConnectionHarness, list[Any]]:
    """Return a client with requests that wait for their responses, and the ids of these."""
    harness = client(version)
    ids: list[Any] = [harness.conn.send_request("tools/list", token=n) for n in range(count)]
    harness.take_sent()
    return harness, ids


def failures(events: list[Any]) -> dict[Any, str]:
    """Return the texts of the errors, by id. All have to be errors of the protocol."""
    found = {}
    for event in events:
        assert isinstance(event, ErrorReceived | MessageRejected), event
        if isinstance(event, ErrorReceived):
            assert isinstance(event.error, RemoteProtocolError)
            found[event.id] = str(event.error)
    return found


def still_answers(harness: ConnectionHarness, id: Any) -> bool:
    event = only_event(harness.receive(result(id, {"tools": []})), ResultReceived)
    return bool(event.id == id)


# -- Lines over the limit --------------------------------------------------------------------------


def big_response(id: Any, *, id_first: bool) -> bytes:
    head = {"jsonrpc": "2.0", "id": id}
    return encoded({**head, "result": BIG} if id_first else {"result": BIG, **head})


@pytest.mark.parametrize("chunk", [1, 700, 10**6])
@pytest.mark.parametrize("id_first", [True, False])
def test_response_over_limit_fails_its_own_request(id_first: bool, chunk: int) -> None:
    """The id may stand before or after the part that is too long, in chunks of any size."""
    harness, (first, second, third) = waiting_client(3)
    data = big_response(second, id_first=id_first) + b"\n"
    events: list[Any] = []
    for start in range(0, len(data), chunk):
        events += harness.receive_bytes(data[start : start + chunk])
    assert type_names(events) == ["MessageRejected", "ErrorReceived"]
    (text,) = failures(events).values()
    assert list(failures(events)) == [second]
    assert text.startswith(
        f"the response to tools/list is invalid: the message is longer than {LIMIT} bytes;"
        " it begins with b'{"
    )
    assert text.endswith("... (the option limits=Limits(message=...) allows longer ones)")
    assert harness.take_sent() == []  # nothing to cancel: the server is done with it
    assert harness.conn.next_deadline() is None
    assert still_answers(harness, first)
    assert still_answers(harness, third)


def test_response_over_limit_fails_as_soon_as_the_limit_is_passed() -> None:
    """Its end may never come."""
    harness, (first, second) = waiting_client(2)
    data = big_response(second, id_first=True)
    assert failures(harness.receive_bytes(data[: LIMIT + 2])).keys() == {second}
    assert harness.receive_bytes(data[LIMIT + 2 :]) == []
    assert harness.receive_bytes(b"\n") == []
    assert still_answers(harness, first)


def test_only_waiting_request_fails_without_the_id() -> None:
    harness, (only,) = waiting_client(1)
    data = big_response(only, id_first=False)
    assert failures(harness.receive_bytes(data[: LIMIT + 2])).keys() == {only}
    assert harness.receive_bytes(data[LIMIT + 2 :] + b"\n") == []


def test_line_over_limit_without_an_end_fails_all_that_wait_after_a_second() -> None:
    """The id may still come, so a second passes; a request sent after that is left alone."""
    harness, (first, second, third) = waiting_client(3)
    assert failures(harness.receive_bytes(b'{"result":{"a":"' + b"x" * LIMIT)) == {}
    assert harness.conn.next_deadline() == harness.now + 1
    later: Any = harness.conn.send_request("tools/list")
    harness.conn.send_cancel(third)
    harness.take_sent()
    assert harness.advance_time(0.99) == []
    found = failures(harness.advance_time(0.01))
    assert found.keys() == {first, second}
    for text in found.values():
        assert (
            "the response to tools/list may be one that is invalid: the message is longer" in text
        )
    assert [said["params"]["requestId"] for said in harness.take_sent()] == [first, second]
    assert harness.conn.next_deadline() is None
    assert harness.receive_bytes(b"x" * LIMIT + b"\n") == []
    assert still_answers(harness, later)


@pytest.mark.parametrize("start", [b'{"result":{"a":"', b"[", b'[{"id":1},', b"junk", b"{"])
def test_line_over_limit_without_an_id_fails_all_that_wait_at_its_end(start: bytes) -> None:
    harness, ids = waiting_client(2)
    events = harness.receive_bytes(start + b"x" * LIMIT + b"\n")
    assert failures(events).keys() == set(ids)
    assert [said["params"]["requestId"] for said in harness.take_sent()] == ids
    assert harness.response_to(ping()) == result("ping")


@pytest.mark.parametrize(
    "message",
    [
        {"params": {"a": "x" * LIMIT}, "jsonrpc": "2.0", "method": "odd"},
        {"params": {"a": "x" * LIMIT}, "jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"result": BIG, "jsonrpc": "2.0", "id": 99},
    ],
    ids=["notification", "request", "response to a cancelled request"],
)
def test_line_over_limit_that_answers_nothing_fails_nothing(message: Message) -> None:
    harness, ids = waiting_client(2)
    data = encoded(message)
    assert failures(harness.receive_bytes(data[: LIMIT + 2])) == {}
    assert failures(harness.receive_bytes(data[LIMIT + 2 :] + b"\n")) == {}
    assert harness.advance_time(5) == []
    for id in ids:
        assert still_answers(harness, id)


def test_request_over_limit_at_client_gets_an_error_response() -> None:
    harness, (id,) = waiting_client(1)
    big = request("r", "roots/list", {"a": "x" * LIMIT})
    assert_error(harness.error_response_to(big), -32700, "r", f"longer than {LIMIT} bytes")
    assert still_answers(harness, id)


def test_request_over_limit_at_server_fails_at_its_client() -> None:
    """The error response has the id, although the message was not read."""
    server = opened(SERVER, D, server_config(limits=Limits(message=LIMIT)))
    harness, ids = waiting_client(2)
    id: Any = harness.conn.send_request(
        "tools/call", {"name": "t", "arguments": {"a": "x" * LIMIT}}
    )
    (asked,) = harness.take_sent()
    event = only_event(harness.receive(server.error_response_to(asked)), ErrorReceived)
    assert event.id == id
    assert f"the message is longer than {LIMIT} bytes" in str(event.error)
    for each in ids:
        assert still_answers(harness, each)


@pytest.mark.parametrize("id_first", [True, False])
def test_response_over_limit_at_server_fails_the_nested_request(id_first: bool) -> None:
    harness = opened(SERVER, D, server_config(limits=Limits(message=LIMIT)))
    harness.receive(request(1, "tools/call", {"name": "t"}))
    nested = harness.conn.send_request("ping", related=1)
    other = harness.conn.send_request("ping", related=1)
    harness.take_sent()
    events = harness.receive(big_response(nested, id_first=id_first).decode())
    assert failures(events).keys() == {nested}
    assert harness.conn.has_outgoing(other)
    assert harness.take_sent() == []


# -- Too many values -------------------------------------------------------------------------------

MANY = {"content": [], "structuredContent": {"a": [[]] * 800}}  # in less than 2,000 bytes


def big_values(id: Any, *, id_first: bool) -> bytes:
    head = {"jsonrpc": "2.0", "id": id}
    return encoded({**head, "result": MANY} if id_first else {"result": MANY, **head})


@pytest.mark.parametrize("id_first", [True, False])
def test_response_with_too_many_values_fails_its_own_request(id_first: bool) -> None:
    """A short message may decode to much memory: the id is found without decoding the rest."""
    harness = opened(CLIENT, D, client_config(D, limits=Limits(decoded=50_000)))
    ids: list[Any] = [harness.conn.send_request("tools/list", token=n) for n in range(3)]
    harness.take_sent()
    events = harness.receive_bytes(big_values(ids[1], id_first=id_first) + b"\n")
    assert type_names(events) == ["MessageRejected", "ErrorReceived"]
    ((id, text),) = failures(events).items()
    assert id == ids[1]
    assert text.startswith(
        "the response to tools/list is invalid: the message has too many values: decoded, they take"
        " about 90"
    )
    assert " bytes of memory, more than 50000; it begins with b'{" in text
    assert text.endswith("... (the option limits=Limits(decoded=...) allows more)")
    assert harness.take_sent() == []
    assert still_answers(harness, ids[0])
    assert still_answers(harness, ids[2])


def test_response_with_too_many_values_without_its_id_fails_all_that_wait() -> None:
    harness = opened(CLIENT, D, client_config(D, limits=Limits(decoded=50_000)))
    ids: list[Any] = [harness.conn.send_request("tools/list", token=n) for n in range(2)]
    many = b"[" + b"[]," * 800 + b"0]"
    line = b'{"jsonrpc":"2.0","a":%b,"id":%d,"b":%b,"result":{}}\n' % (many, ids[1], many)
    assert failures(harness.receive_bytes(line)).keys() == set(ids)


def test_request_with_too_many_values_gets_an_error_response() -> None:
    limits = Limits(decoded=50_000)
    for harness in (
        opened(SERVER, D, server_config(limits=limits)),
        opened(CLIENT, D, client_config(D, limits=limits)),
    ):
        many = request("r", "ping", {"a": [[]] * 800})
        error = harness.error_response_to(many)
        assert_error(error, -32700, "r", "too many values: decoded, they take about 90")
        assert "more than 50000" in error["error"]["message"]
        assert harness.receive(request("s", "ping")) == []
        assert single(harness.take_sent())["result"] == {}


def test_nested_response_with_too_many_values_fails_its_request() -> None:
    harness = opened(SERVER, D, server_config(limits=Limits(decoded=50_000)))
    harness.receive(request(1, "tools/call", {"name": "t"}))
    nested = harness.conn.send_request("ping", related=1)
    other = harness.conn.send_request("ping", related=1)
    events = harness.receive(big_values(nested, id_first=True).decode())
    assert failures(events).keys() == {nested}
    assert harness.conn.has_outgoing(other)


def test_subscription_does_not_wait_for_a_response() -> None:
    harness = client(E)
    listening = harness.conn.send_request("subscriptions/listen", {"notifications": {}})
    id = harness.conn.send_request("tools/list")
    harness.take_sent()
    assert failures(harness.receive_bytes(b"[" * LIMIT + b"[[\n")).keys() == {id}
    assert harness.conn.has_outgoing(listening)


# -- Responses that are not valid ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ('{"jsonrpc":"2.0","id":%d,"result":{"a":NaN}}', "the message is not JSON: JSON is malf"),
        ('{"jsonrpc":"2.0","id":%d,"result":{"a":1}', "the message is not JSON: it ends too early"),
        ('{"jsonrpc":"2.0","id":%d,"result":{}}{}', "the message is not JSON: JSON is malformed"),
        ('{"result":{"a":NaN},"jsonrpc":"2.0","id":%d}', "the message is not JSON"),
        (b'{"jsonrpc":"2.0","id":%d,"result":{"a":"\xff"}}', "not UTF-8 at byte"),
        ('{"id":%d,"result":{}}', "missing required field `jsonrpc`"),
        ('{"jsonrpc":"2.0","id":%d}', "neither a method nor a result nor an error"),
        ('{"jsonrpc":"2.0","id":%d,"result":{},"error":{}}', "a result or an error, not both"),
    ],
)
def test_response_that_is_not_valid_fails_its_request_at_once(line: Any, text: str) -> None:
    harness, (first, second) = waiting_client(2)
    events = harness.receive(line % second)
    assert type_names(events) == ["MessageRejected", "ErrorReceived"]
    assert failures(events).keys() == {second}
    assert "the response to tools/list is invalid: " in failures(events)[second]
    assert text in failures(events)[second]
    assert harness.take_sent() == []
    assert still_answers(harness, first)


IN_DOUBT = [
    'Loading model...{"jsonrpc":"2.0","id":%d,"result":{}}',
    'DEBUG sending {"jsonrpc": "2.0", "id": %d, "result": {"tools": []}}',
]


@pytest.mark.parametrize("line", IN_DOUBT)
def test_likely_response_gives_a_second_for_the_real_one(line: Any) -> None:
    """A server may print what it sends next."""
    harness, (first, second) = waiting_client(2)
    text = line if isinstance(line, str) else encoded(line).decode()
    assert failures(harness.receive(text % second)) == {}
    assert harness.conn.next_deadline() == harness.now + 1
    assert still_answers(harness, second)
    assert harness.conn.next_deadline() is None
    assert harness.advance_time(5) == []
    assert still_answers(harness, first)


@pytest.mark.parametrize("end", [b'"}}', b'"},"id":%d}'])
def test_end_of_a_line_over_limit_leaves_other_doubts(end: bytes) -> None:
    """Its end shows whose response it is, or that it is any other's; a likely response stays."""
    harness, (first, second) = waiting_client(2)
    harness.receive(IN_DOUBT[0] % second)
    harness.receive_bytes(b'{"result":{"a":"' + b"x" * LIMIT)
    found = failures(harness.receive_bytes((end % first if b"%" in end else end) + b"\n"))
    assert found.keys() == {first}
    assert still_answers(harness, second)


@pytest.mark.parametrize("line", IN_DOUBT)
def test_likely_response_fails_its_request_after_a_second(line: Any) -> None:
    harness, (first, second) = waiting_client(2)
    text = line if isinstance(line, str) else encoded(line).decode()
    harness.receive(text % second)
    assert failures(harness.advance_time(1)).keys() == {second}
    assert harness.take_sent() == [cancelled(second, "its response could not be read")]
    assert still_answers(harness, first)


@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32603])
def test_error_without_id_fails_no_call_and_is_described_while_one_waits(code: int) -> None:
    """The tool may be running. Some servers send one in response to a notification."""
    harness, (first, second) = waiting_client(2)
    events = harness.receive(error(None, code, "too large"))
    assert type_names(events) == ["MessageRejected", "InputProblem"]
    assert harness.conn.next_deadline() is None
    assert harness.take_sent() == []
    text = f"; the server sent an error without an id: too large ({code})"
    assert harness.conn.describe_unreadable() == text
    assert still_answers(harness, first)
    assert harness.conn.describe_unreadable() == text
    assert still_answers(harness, second)
    assert harness.conn.describe_unreadable() == ""
    # A later request has nothing to do with it.
    harness.conn.send_request("tools/list")
    assert harness.conn.describe_unreadable() == ""


# -- Other output ----------------------------------------------------------------------------------

BANNER = ["Server v1.0 ready", "\x1b[32mlistening\x1b[0m", "[]", "3", '"x"', "{'a': 1}", "null"]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_stray_lines_fail_nothing(count: int) -> None:
    harness, ids = waiting_client(count)
    events = harness.receive(*BANNER)
    assert {type(event) for event in events} == {MessageRejected}
    assert len(events) == len(BANNER)
    assert harness.conn.next_deadline() is None
    assert harness.take_sent() == []
    for id in ids:
        assert still_answers(harness, id)


def test_stray_lines_are_in_the_error_when_the_server_exits() -> None:
    harness, _ = waiting_client(1)
    harness.receive("forgotten", notification("odd"), "Traceback:", "KeyError: 3")
    *_, closed = harness.receive_eof()
    assert isinstance(closed, ConnectionClosed)
    assert str(closed.error) == (
        "the server closed the connection; it wrote 2 lines that are not MCP messages, the first"
        " b'Traceback:', the last b'KeyError: 3'"
    )
    assert type(closed.error) is ConnectionLost


def test_unfinished_line_is_in_the_error_when_the_server_exits() -> None:
    harness, _ = waiting_client(1)
    harness.receive_bytes(b'{"jsonrpc":"2.0","id":')
    *_, closed = harness.receive_eof()
    assert isinstance(closed, ConnectionClosed)
    assert str(closed.error) == (
        "the server closed the connection; it wrote a line that is not an MCP message:"
        ' b\'{"jsonrpc":"2.0","id":\''
    )


def test_stray_lines_are_in_the_error_of_a_failed_opening() -> None:
    harness = ConnectionHarness(Connection(CLIENT, client_config(D)))
    harness.conn.open(0.0)
    harness.receive("usage: server FILE")
    *_, closed = harness.receive_eof()
    assert isinstance(closed, ConnectionClosed)
    assert str(closed.error) == (
        "the server ended the connection before it was open; it wrote a line that is not an MCP"
        " message: b'usage: server FILE'"
    )


def test_stray_lines_are_described_until_the_next_message() -> None:
    harness, _ = waiting_client(1)
    assert harness.conn.describe_unreadable() == ""
    harness.receive("done")
    assert harness.conn.describe_unreadable() == (
        "; the server wrote a line that is not an MCP message: b'done'"
    )
    harness.receive(notification("odd"))
    assert harness.conn.describe_unreadable() == ""


@pytest.mark.parametrize("by", ["lines", "bytes"])
def test_flood_of_lines_fails_all_that_wait(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if by == "lines":
        monkeypatch.setattr(_unreadable, "_MAX_LINES", 50)
    line = "y" if by == "lines" else "y" * (LIMIT // 50)
    harness, ids = waiting_client(2)
    assert failures(harness.receive(*[line] * 50)) == {}
    found = failures(harness.receive(line))
    assert found.keys() == set(ids)
    assert "the server wrote 51 lines that are not MCP messages, the first b'y" in found[ids[0]]
    assert len(harness.take_sent()) == 2
    assert failures(harness.receive(*[line] * 50)) == {}  # and counted anew
    assert harness.response_to(ping()) == result("ping")


def test_lines_between_messages_are_no_flood(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_unreadable, "_MAX_LINES", 5)
    harness, (id,) = waiting_client(1)
    for _ in range(10):
        assert failures(harness.receive(*["log"] * 5)) == {}
        harness.receive(notification("odd"))
    assert still_answers(harness, id)


def test_stray_lines_at_server_get_error_responses_only() -> None:
    harness = opened(SERVER, D)
    harness.receive(request(1, "tools/call", {"name": "t"}))
    harness.conn.send_request("ping", related=1)
    harness.take_sent()
    for line in BANNER:
        assert_rejected(harness.receive(line))
        single(harness.take_sent())
    assert harness.conn.next_deadline() is None
    assert harness.conn.describe_unreadable() == ""


# -- Transports that know more ---------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"done", b'{"jsonrpc":"2.0","result":NaN}', b"[]"])
def test_unreadable_message_on_the_stream_of_a_request_fails_it(data: bytes) -> None:
    harness, (first, second) = waiting_client(2)
    harness.conn.receive_message(data, harness.now, MessageContext(related=second))
    assert failures(harness.events()).keys() == {second}
    assert still_answers(harness, first)


def test_unreadable_message_with_boundaries_is_no_line() -> None:
    harness, _ = waiting_client(2)
    harness.conn.receive_message(b"done", harness.now, MessageContext())
    assert failures(harness.events()) == {}
    assert harness.conn.describe_unreadable() == ""


def test_description_of_the_peer_is_in_errors() -> None:
    harness, (first, _) = waiting_client(2)
    harness.conn.describe_peer = lambda: " (exit status 3)"
    found = failures(harness.receive(f'{{"jsonrpc":"2.0","id":{first},"result":NaN}}'))
    assert found[first].endswith(" (exit status 3)")
    *_, closed = harness.receive_eof()
    assert isinstance(closed, ConnectionClosed)
    assert str(closed.error) == "the server closed the connection (exit status 3)"


def test_close_keeps_the_cause_and_other_errors() -> None:
    for failure in (CallTimeout("slow"), ConnectionLost("lost")):
        harness, _ = waiting_client(1)
        harness.receive("done")
        failure.__cause__ = OSError("why")
        harness.conn.close(failure)
        (closed,) = harness.events()
        assert isinstance(closed, ConnectionClosed)
        assert type(closed.error) is type(failure)
        assert closed.error.__cause__ is failure.__cause__
        assert ("b'done'" in str(closed.error)) == isinstance(failure, ConnectionLost)


def test_unreadable_probe_response_falls_back_to_the_handshake() -> None:
    harness = ConnectionHarness(Connection(CLIENT, client_config(D, E)))
    harness.conn.open(0.0)
    (probe,) = harness.take_sent()
    assert_rejected(harness.receive(f'{{"jsonrpc":"2.0","id":{probe["id"]},"result":NaN}}'))
    (asked,) = harness.take_sent()
    assert asked["method"] == "initialize"


def test_flood_of_as_many_bytes_as_a_message_may_have_fails_nothing() -> None:
    """One byte more does. After a flood, and after a message, the bytes are counted anew."""
    harness, ids = waiting_client(1)
    for _ in range(2):
        assert failures(harness.receive(*["y" * 40] * (LIMIT // 40))) == {}
        assert failures(harness.receive("y")).keys() == set(ids)
        ids = [harness.conn.send_request("tools/list")]
    harness.receive("y" * 40)
    harness.receive(notification("odd"))
    assert failures(harness.receive(*["y" * 40] * (LIMIT // 40))) == {}
    assert failures(harness.receive("y")).keys() == set(ids)
