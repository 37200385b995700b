"""A stream gives the same events in chunks of any size: recorded conversations and bad input.

The recordings in `streams/` were made with two connections (`conversation`), the ones with bad
input by hand (`BAD_INPUT`). The first row of a file is its title. Each other row is a line with the
side that sent it: a message, or text if the line is no message (one character per byte). `python -m
tests.core.test_chunks` writes them again. A change in them is a change on the wire.

A connection that replays one side receives the lines of the other side. It sends the requests of
its own side when it is ready, so that the recorded responses match.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw, Struct

from mcp_core import (
    DIALECTS,
    Connection,
    ConnectionClosed,
    Event,
    Limits,
    MessageRejected,
    Method,
    PeerReady,
    Role,
)
from mcp_core import types as t
from mcp_core.protocol.revisions._dialects import Dialect
from tests.harness.jsonrpc import (
    INITIALIZED,
    VERSIONS,
    B,
    D,
    Message,
    call,
    chunks,
    client_config,
    encoded,
    initialize,
    ping,
    request,
    server_config,
    stateless_request,
)
from tests.harness.messages.pair import ConnectionPair
from tests.harness.wire.connection import ConnectionHarness
from tests.levels import long

STREAMS = Path(__file__).with_name("streams")
SERVER, CLIENT = Role.SERVER, Role.CLIENT
LIMIT = 600  # of a message, in the streams of bad input

# -- Recording -------------------------------------------------------------------------------------


def conversation(version: str) -> list[tuple[Role, Any]]:
    """Return a conversation with every kind of message of a revision."""
    pair = ConnectionPair(version).open()
    stateful = DIALECTS[version].stateful
    pair.result(
        pair.request("tools/list"),
        t.ListToolsResult(tools=[t.Tool(name="t", input_schema={"type": "object"})]),
    )
    received = pair.request(
        "tools/call",
        t.CallToolParams(name="größe", arguments=Raw(b'{"a":"\xe2\x82\xac"}')),
        progress=True,
    )
    pair.progress(received, 0.5)
    pair.notify(
        "notifications/message",
        t.LoggingMessageParams(level="info", data={"a": ["b", None]}),
        related=received.id,
    )
    pair.progress(received, 1, 2, "half \U0001f600 way")
    pair.result(
        received,
        t.CallToolResult(
            content=[t.TextContent('a "quoted" line\nand another')], structured_content={"a": 1}
        ),
    )
    pair.error(pair.request("prompts/get", t.GetPromptParams(name="p")), -32602, "no such prompt")
    pair.cancel(pair.request("resources/read", t.ReadResourceParams(uri="x:y")), "enough")
    if stateful:
        pair.result(
            pair.request("roots/list", by=SERVER),
            t.ListRootsResult(roots=[t.Root("file:///x")]),
            by=CLIENT,
        )
        pair.cancel(pair.request("roots/list", by=SERVER), by=SERVER)
        pair.notify("notifications/tools/list_changed")
        pair.notify("notifications/roots/list_changed", by=CLIENT)
        for role in Role:
            pair[role].send_request("ping")
        pair.client.send_request("logging/setLevel", t.SetLevelParams(level="error"))
    else:
        pair.server.send_result(
            pair.request("tools/call", t.CallToolParams(name="t")).id,
            t.InputRequiredResult(result_type="input_required", request_state="s"),
        )
    pair.client.send_request("acme/odd", {"a": 1})
    pair.deliver_all()
    return [
        *pair.transcript,
        *((CLIENT, batch) for batch in [[ping("b"), INITIALIZED]] if version == B),
    ]


# Invalid input of a server, between valid messages.
BAD_INPUT: dict[str, list[Any]] = {
    "bad-2025-11-25": [
        "",
        call(1),
        initialize(D),
        "nope",
        INITIALIZED,
        "{}\r",
        b"\xff\xfe",
        call("\u00e9"),
        call("\u00e9"),
        '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}',
        "x" * (LIMIT + 1),
        "  \t ",
        request(2, "odd"),
        "y" * (3 * LIMIT),
        [ping(3)],
        '{"jsonrpc":"2.0",\r"id":4,"method":"ping"}',
        '{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"\\ud800"}}',
        initialize(D),
        ping(6),
    ],
    "bad-2026-07-28": [
        stateless_request(1, "server/discover"),
        b"\xef\xbb\xbf{}",
        stateless_request(2, "tools/call", {"name": "t"}),
        stateless_request(2, "tools/call", {"name": "t"}),
        stateless_request(None, "tools/list"),
        "x" * (LIMIT + 2),
        stateless_request(3, "ping"),
        "\r",
        request(4, "tools/call", {"name": "t"}),
        stateless_request(5, "tools/call", {"name": 1}),
        '{"jsonrpc":"2.0","method":"a","method":"b"}',
        stateless_request(6, "tools/call", {"name": "\U0001f600"}),
    ],
}


def recordings() -> dict[str, list[Any]]:
    """Return the rows of each file."""
    found: dict[str, list[Any]] = {}
    for version in VERSIONS:
        found[version] = [
            {"versions": [version], "about": "a conversation"},
            *({by.value: message} for by, message in conversation(version)),
        ]
    for name, lines in BAD_INPUT.items():
        version = name.removeprefix("bad-")
        about: dict[str, Any] = {"versions": [version], "about": "bad input", "limit": LIMIT}
        found[name] = [
            about,
            *(
                {"client": line.decode("latin-1") if isinstance(line, bytes) else line}
                for line in lines
            ),
        ]
    return found


def write_recordings() -> None:
    for name, rows in recordings().items():
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (STREAMS / f"{name}.jsonl").write_text(text, "utf-8")


# -- Replaying -------------------------------------------------------------------------------------


class Stream(NamedTuple):
    """One side of a recording: what it receives, and the requests that it sends."""

    name: str
    role: Role
    versions: list[str]
    limits: Limits | None
    received: bytes
    requests: list[Message]


@cache
def stream(name: str, role: Role) -> Stream:
    about, *rows = map(json.loads, (STREAMS / f"{name}.jsonl").read_text("utf-8").splitlines())
    received = b"".join(
        line(row[role.other.value]) + b"\n" for row in rows if role.other.value in row
    )
    requests = [
        row[role.value] for row in rows if role.value in row and "method" in row[role.value]
    ]
    limits = Limits(message=about["limit"]) if "limit" in about else None
    first = [message for message in requests if "id" in message][:1] if role is CLIENT else []
    requests = [message for message in requests if "id" in message and message not in first]
    return Stream(name, role, about["versions"], limits, received, requests)


def line(entry: Any) -> bytes:
    return entry.encode("latin-1") if isinstance(entry, str) else encoded(entry)


class Replay:
    """A connection that receives a stream; `events` holds its events in comparable form."""

    def __init__(self, stream: Stream) -> None:
        config = (server_config if stream.role is SERVER else client_config)(
            *stream.versions, limits=stream.limits
        )
        self.harness = ConnectionHarness(Connection(stream.role, config))
        self.requests = stream.requests
        self.events: list[Any] = []
        self.sent: list[Message] = []
        if stream.role is CLIENT:
            self.harness.conn.open(0.0)

    def receive(self, *pieces: bytes) -> Replay:
        for piece in pieces:
            self.harness.conn.receive_data(piece, 0.0)
            self.look()
        return self

    def ends(self) -> list[Event]:
        self.harness.conn.receive_data(b"", 0.0)
        return self.look()

    def look(self) -> list[Event]:
        """Process the events one by one: the response to a request may be in the same chunk."""
        seen = []
        while isinstance(event := self.harness.conn.next_event(), Struct):
            seen.append(event)
            self.events.append(comparable(event))
            if isinstance(event, PeerReady):
                for message in self.requests:
                    send_own(self.harness.conn, message)
        self.sent += self.harness.take_sent()
        return seen


def send_own(conn: Connection, message: Message) -> None:
    params = dict(message.get("params", {}))
    meta = params.pop("_meta", {})
    id = conn.send_request(
        message["method"], params, token=message["id"], progress="progressToken" in meta
    )
    assert id == message["id"]


def comparable(value: Any) -> Any:
    """Return an event in a form in which two runs of the same stream can be compared."""
    if isinstance(value, Method | Dialect):
        return repr(value)
    if isinstance(value, Raw):
        return bytes(value)
    if isinstance(value, Exception):
        return type(value).__name__, str(value)
    if isinstance(value, Struct):
        return type(value).__name__, *(
            comparable(getattr(value, name)) for name in value.__struct_fields__
        )
    if isinstance(value, list):
        return [comparable(item) for item in value]
    return (
        {key: comparable(item) for key, item in value.items()} if isinstance(value, dict) else value
    )


SIDES = [
    *(
        pytest.param(version, role, id=f"{version}-{role.value}")
        for version in VERSIONS
        for role in Role
    ),
    *(pytest.param(name, SERVER, id=name) for name in BAD_INPUT),
]


@cache
def replayed_at_once(name: str, role: Role) -> tuple[list[Any], list[Message]]:
    replay = Replay(stream(name, role)).receive(stream(name, role).received)
    return replay.events, replay.sent


@pytest.mark.parametrize("name", [*VERSIONS, *BAD_INPUT])
def test_recordings_match_current_output(name: str) -> None:
    rows = [json.loads(row) for row in (STREAMS / f"{name}.jsonl").read_text("utf-8").splitlines()]
    assert rows == json.loads(json.dumps(recordings()[name]))


KINDS = {
    SERVER: {
        "PeerReady",
        "RequestReceived",
        "RequestCancelled",
        "NotificationReceived",
        "ResultReceived",
        "MessageRejected",
    },
    CLIENT: {
        "PeerReady",
        "RequestReceived",
        "RequestCancelled",
        "NotificationReceived",
        "ResultReceived",
    }
    | {"ErrorReceived", "ProgressReceived"},
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("role", Role)
def test_replay_of_recording_is_complete(version: str, role: Role) -> None:
    """Otherwise the tests below would compare little."""
    events, sent = replayed_at_once(version, role)
    found = {event[0] for event in events}
    if DIALECTS[version].stateful:
        assert found == KINDS[role]
    elif role is SERVER:
        assert found == {"RequestReceived", "RequestCancelled", "MessageRejected"}
    else:
        assert found == {
            "PeerReady",
            "NotificationReceived",
            "ResultReceived",
            "ErrorReceived",
            "ProgressReceived",
            "InputRequested",
        }
    assert sent


@pytest.mark.parametrize(("name", "role"), SIDES)
def test_stream_byte_by_byte_gives_same_events(name: str, role: Role) -> None:
    received = stream(name, role).received
    replay = Replay(stream(name, role)).receive(
        *(received[i : i + 1] for i in range(len(received)))
    )
    assert (replay.events, replay.sent) == replayed_at_once(name, role)


@pytest.mark.parametrize(("name", "role"), SIDES)
@settings(max_examples=50)
@given(st.data())
def test_stream_in_random_chunks_gives_same_events(
    name: str, role: Role, data: st.DataObject
) -> None:
    received = stream(name, role).received
    cuts = data.draw(st.lists(st.integers(1, len(received) - 1), max_size=30))
    replay = Replay(stream(name, role)).receive(*chunks(received, cuts))
    assert (replay.events, replay.sent) == replayed_at_once(name, role)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("role", Role)
def test_stream_as_messages_gives_same_events(version: str, role: Role) -> None:
    """This is the way of transports with message boundaries."""
    replay = Replay(stream(version, role))
    for raw in stream(version, role).received.split(b"\n")[:-1]:
        replay.harness.conn.receive_message(raw, 0.0)
        replay.look()
    assert (replay.events, replay.sent) == replayed_at_once(version, role)


@pytest.mark.requirement("RPC-17", "LIFE-17")
@pytest.mark.parametrize("stride", [19, long(7), pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "role"), SIDES)
def test_stream_truncated_anywhere_never_raises(name: str, role: Role, stride: int) -> None:
    """A truncated stream gives a prefix of the events and one end, and no exception."""
    received = stream(name, role).received
    events, _ = replayed_at_once(name, role)
    newlines = {at + 1 for at, byte in enumerate(received) if byte == 0x0A}
    for end in sorted({*range(0, len(received) + 1, stride), len(received), *newlines}):
        replay = Replay(stream(name, role)).receive(*[received[:end]] * (end > 0))
        assert replay.events == events[: len(replay.events)]
        *before, closed = replay.ends()
        assert isinstance(closed, ConnectionClosed)
        half = [event for event in before if isinstance(event, MessageRejected)]
        assert len(half) == (end > 0 and received[end - 1] != 0x0A)
        rest = [event for event in before if event not in half]
        assert {type(event).__name__ for event in rest} <= {"RequestCancelled"}


def test_recording_speaks_its_own_revision() -> None:
    for version in VERSIONS:
        events, _ = replayed_at_once(version, CLIENT)
        assert events[0][0] == "PeerReady"
        assert events[0][1][1] == f"<Dialect {version}>"


if __name__ == "__main__":
    write_recordings()
