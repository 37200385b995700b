"""Files of other programs: what is read of them, who is said to have sent it, and what is found."""

from __future__ import annotations

import json
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.trace import UNTIMED, DamagedLine, InvalidTrace, Judge, LogReader, TraceLine
from mcp_core.trace._format import TraceHeader, encode_header, encode_line
from mcp_core.trace.logs import _reader
from mcp_core.trace.logs._python import read_python_message
from mcp_core.trace.logs._sides import SideGuesser
from mcp_core.trace.logs._values import ValueSplitter
from tests.levels import fewer_examples

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_core.trace import Finding

FILES: Final = Path(__file__).parent / "files"
INITIALIZE: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    },
}
INITIALIZED: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "result": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}},
        "serverInfo": {"name": "a", "version": "1"},
    },
}
NOTE: Final = {"jsonrpc": "2.0", "method": "notifications/initialized"}
PING: Final = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PONG: Final = {"jsonrpc": "2.0", "id": 1, "result": {}}
LIST: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
TOOLS: Final = {"jsonrpc": "2.0", "id": 1, "result": {"tools": []}}
WHOLE: Final = [INITIALIZE, INITIALIZED, NOTE, LIST, TOOLS]


class Read:
    """A file that was read in chunks of `size` bytes, and judged."""

    def __init__(self, data: bytes, size: int = 64 * 1024, max_line: int = 1 << 20) -> None:
        self.reader = LogReader(max_line)
        self.lines: list[tuple[int, TraceLine | DamagedLine]] = []
        chunks = [data[place : place + size] for place in range(0, len(data), size)]
        for chunk in (*chunks, b""):
            self.reader.feed(chunk)
            while (line := self.reader.next_line()) is not None:
                self.lines.append((self.reader.line_number, line))
        judge = Judge(self.reader.header)
        self.findings: list[Finding] = []
        for number, line in self.lines:
            self.findings += judge.receive(line, number)
        self.findings += judge.close()

    @property
    def messages(self) -> list[TraceLine]:
        return [line for _, line in self.lines if isinstance(line, TraceLine)]

    @property
    def damage(self) -> list[tuple[int, str]]:
        return [(n, line.reason) for n, line in self.lines if isinstance(line, DamagedLine)]

    @property
    def sides(self) -> Counter[tuple[int, Any]]:
        return Counter((line.conversation, line.sender) for line in self.messages)

    @property
    def certain(self) -> set[tuple[str, str]]:
        return {(each.side, each.row) for each in self.findings if each.is_certain}


def lines_of(messages: Iterable[Any]) -> bytes:
    return "".join(json.dumps(each) + "\n" for each in messages).encode()


# -- The formats -----------------------------------------------------------------------------------

ONE = {(1, "client"): 4, (1, "server"): 3}
PYTHON = ("'isError': False", "'isError': 3", "TOOL")
# For each file: the kind, the messages by side, how many sides are guessed, and a fault of the
# server that is put into it: a text, its replacement, and the row.
SOURCES: dict[str, tuple[str, Any, int, tuple[str, str, str]]] = {
    "python-1-client-streamable-http.log": ("lines", ONE, 0, PYTHON),
    "python-2-client-sse.log": ("lines", ONE, 0, PYTHON),
    "python-1-server-sse.log": ("lines", ONE, 0, PYTHON),
    "python-2-server-sse.log": ("lines", ONE, 0, PYTHON),
    "desktop-two-servers.log": (
        "lines",
        {(1, "client"): 4, (1, "server"): 3, (2, "client"): 4, (2, "server"): 3},
        0,
        ('"isError":false', '"isError":3', "TOOL"),
    ),
    "inspector-history.json": (
        "json",
        {(1, "client"): 5, (1, "server"): 6},
        0,
        ('"isError": false', '"isError": 3', "TOOL"),
    ),
    "messages.json": (
        "json",
        {(1, "client"): 5, (1, "server"): 6},
        11,
        ('"isError": false', '"isError": 3', "TOOL"),
    ),
    "messages.jsonl": (
        "lines",
        {(1, "client"): 5, (1, "server"): 6},
        11,
        ('"isError": false', '"isError": 3', "TOOL"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_file_of_another_program_is_read_and_judged(name: str) -> None:
    """Right servers have no finding, and a fault in the same file is found."""
    kind, sides, guessed, (old, new, row) = SOURCES[name]
    data = (FILES / name).read_bytes()
    found = Read(data)
    assert found.reader.kind == kind
    assert found.sides == sides
    assert (found.reader.guessed, found.reader.unknown, found.damage) == (guessed, 0, [])
    assert not {each for each in found.certain if each[0] == "server"}
    broken = Read(data.replace(old.encode(), new.encode()))
    assert {side for side, each in broken.certain if each.startswith(row)} == {"server"}


@pytest.mark.parametrize("name", SOURCES)
def test_chunks_do_not_matter(name: str) -> None:
    data = (FILES / name).read_bytes()
    assert Read(data, 7).lines == Read(data).lines


def test_client_that_asks_what_no_server_declares_is_found_in_a_log() -> None:
    found = Read((FILES / "desktop-two-servers.log").read_bytes())
    assert found.certain == {("client", "CAP-3")}


WRAPPED: dict[str, tuple[Any, Any]] = {
    "a trace's lines without their header": (
        {"t": 1.5, "from": "client", "raw": json.dumps(PING)},
        {"from": "server", "raw": json.dumps(PONG)},
    ),
    "origin": ({"origin": "client", "message": PING}, {"origin": "server", "message": PONG}),
    "direction": (
        {"direction": "client_to_server", "payload": PING},
        {"direction": "server->client", "payload": json.dumps(PONG)},
    ),
    "no side": ({"time": 1700000000, "data": PING}, {"time": 1700000001000, "data": PONG}),
    "text": ("[editor -> server] " + json.dumps(PING), "[server -> editor] " + json.dumps(PONG)),
    "words": ("Client request: " + json.dumps(PING), "server response: " + json.dumps(PONG)),
    "colours": (
        f"\x1b[32mDEBUG\x1b[0m \x1b[1m{json.dumps(PING)}\x1b[0m",
        f"\x1b[38;5;9mDEBUG\x1b[0m {json.dumps(PONG)}",
    ),
    "the Python SDK with colours": (
        "\x1b[2mSending client message: \x1b[0mjsonrpc='2.0' id=1 method='ping' params=None\x1b[0m",
        "SSE message: root=JSONRPCResponse(jsonrpc='2.0', id=1, result={})",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPED)
def test_message_in_an_entry_is_read(name: str) -> None:
    text = "".join(f"{json.dumps(e) if isinstance(e, dict) else e}\n" for e in WRAPPED[name])
    found = Read(text.encode())
    assert [line.sender for line in found.messages] == ["client", "server"]
    assert [json.loads(line.raw or "") for line in found.messages] == [PING, PONG]


@pytest.mark.parametrize(
    "data",
    [
        b"hello\n",
        b"{}\n",
        b"[]\n",
        b"\x1f\x8b\x08",
        b'{"log":{"version":"1.2","entries":[{"request":{"method":"POST"}}]}}',
        b'{\n  "method": "POST"\n}\n',
        b"[info] started {now}\n[info] stopped\n",
        b"params: {'jsonrpc': '2.0'}\n",
    ],
)
def test_file_without_messages_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidTrace, match="no message of JSON-RPC was found in it"):
        Read(data)


def test_file_without_messages_is_refused_once() -> None:
    """It may grow: until then, more bytes are needed."""
    reader = LogReader()
    for data in (b"hello\n", b""):
        reader.feed(data)
    with pytest.raises(InvalidTrace, match="no message of JSON-RPC was found in it"):
        reader.next_line()
    assert reader.next_line() is None
    reader.feed(lines_of([PING]))
    assert isinstance(reader.next_line(), TraceLine)


def test_batch_of_a_line_is_one_message() -> None:
    found = Read(lines_of([PING, [PONG, {**PONG, "id": 2}]]))
    assert [type(json.loads(line.raw or "")) for line in found.messages] == [dict, list]


# -- Bad files -------------------------------------------------------------------------------------


def test_half_lines_are_damage_that_makes_findings_inconclusive() -> None:
    """Another part of the conversation may be in them."""
    half = json.dumps(INITIALIZED)[:60]
    data = lines_of([INITIALIZE]) + half.encode() + b"\n" + lines_of([{**PONG, "id": 7}])
    found = Read(data + b"SSE message: root=JSONRPCResponse(jsonrpc='2.0', id=1, resu")
    assert [number for number, _ in found.damage] == [2, 3, 4]
    assert found.certain == set()


def test_document_that_is_cut_is_damage_at_its_end() -> None:
    data = json.dumps([PING, PONG, LIST], indent=2).encode()
    found = Read(data[:-20])
    assert len(found.messages) == 2
    assert [reason for _, reason in found.damage] == ["it is cut off"]


def test_value_that_is_cut_in_a_string_does_not_hide_the_next() -> None:
    data = b'[\n{"jsonrpc": "2.0", "id": 3, "method": "pi\n' + json.dumps(PING).encode() + b"\n]"
    found = Read(data)
    assert [json.loads(line.raw or "") for line in found.messages] == [PING]


def test_line_that_is_too_long_is_damage() -> None:
    long = {**PING, "params": {"a": "x" * 5_000}}
    for data in (lines_of([long, PING]), json.dumps([long, PING]).encode()):
        found = Read(data, max_line=1_000)
        assert [json.loads(line.raw or "") for line in found.messages] == [PING]
        assert [reason for _, reason in found.damage] == ["it is too long"]


def test_two_servers_without_names_are_not_taken_for_one() -> None:
    """Their ids are equal, so no response can be told from the other one."""
    mixed = [INITIALIZE, INITIALIZE, INITIALIZED, INITIALIZED, NOTE, NOTE, LIST, LIST, TOOLS, TOOLS]
    found = Read(lines_of(mixed))
    assert found.certain == set()
    assert found.reader.unknown > 5


def test_second_conversation_of_a_log_is_judged_by_itself() -> None:
    found = Read(lines_of([*WHOLE, *WHOLE]))
    assert found.sides == {(each, side): n for each in (1, 2) for side, n in
                           (("client", 3), ("server", 2))}  # fmt: skip
    assert found.certain == set()


def test_message_of_either_side_is_left_out() -> None:
    unknown = {"jsonrpc": "2.0", "method": "notifications/x"}
    found = Read(lines_of([*WHOLE, unknown]))
    assert found.reader.unknown == 1
    assert len(found.messages) == len(WHOLE)


def test_message_of_two_loggers_is_read_once() -> None:
    lines = [f"DEBUG a: {json.dumps(each)}\nDEBUG b: {json.dumps(each)}\n" for each in WHOLE]
    found = Read("".join(lines).encode())
    assert len(found.messages) == len(WHOLE)
    assert found.findings == []


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for begin in (b"", b"[{", b'{"jsonrpc":"2.0",', b"SSE message: root=A(", b"Received JSON: b'{"):
        try:
            Read(begin + data)
        except InvalidTrace:
            continue


_objects = st.dictionaries(
    st.text(max_size=3),
    st.recursive(st.none() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)),
    max_size=3,
)


@fewer_examples(30)
@given(st.lists(_objects, max_size=5), st.integers(1, 9), st.sampled_from([None, 2]))
def test_splitter_gives_the_elements_of_an_array(
    values: list[Any], size: int, indent: int | None
) -> None:
    data = json.dumps(values, indent=indent).encode()
    splitter = ValueSplitter(1 << 20)
    found = []
    for place in range(0, len(data), size):
        found += [each.text for each in splitter.feed(data[place : place + size])]
    assert [json.loads(each) for each in found] == values
    assert list(splitter.end()) == []


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_splitter_knows_escapes_in_strings_however_they_are_cut(size: int) -> None:
    """An escaped quote ends no string, and an escaped backslash escapes nothing."""
    values = ['{"a":"\\"}{"}', '{"a":"\\\\"}', '{"\\\\\\"]":["\\"",{"b":"\\u007b"}]}']
    data = ("[" + ",".join(values) + "]").encode()
    splitter = ValueSplitter(1 << 20)
    found = []
    for place in range(0, len(data), size):
        found += [each.text for each in splitter.feed(data[place : place + size])]
    assert [each.decode() for each in found] == values
    assert list(splitter.end()) == []


@pytest.mark.slow
@pytest.mark.parametrize("is_array", [False, True])
def test_reading_takes_constant_memory(is_array: bool) -> None:
    """A file of 1 GB is a file like any other."""

    def peak(count: int) -> int:
        reader = LogReader()
        between = b"," if is_array else b"\n"
        tracemalloc.start()
        reader.feed(b"[" + json.dumps(INITIALIZE).encode() if is_array else lines_of([INITIALIZE]))
        for id in range(1, count):
            ask, answer = {**LIST, "id": id}, {**TOOLS, "id": id}
            reader.feed(between + json.dumps(ask).encode() + between + json.dumps(answer).encode())
            while reader.next_line() is not None:
                pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)  # imports
    assert peak(6_000) < 1.2 * peak(3_000)


@pytest.mark.parametrize("time", ["1e999", "NaN", "-1e400", "1" * 400, "true", '"x"', "{}"])
def test_odd_times_are_unknown(time: str) -> None:
    entry = f'{{"timestamp":{time},"duration":{time},"message":%s,"response":%s}}\n'
    found = Read((entry % (json.dumps(PING), json.dumps(PONG))).encode())
    assert [(line.sender, line.t) for line in found.messages] == [("client", -1), ("server", -1)]


def test_nested_arrays_are_no_batch() -> None:
    found = Read(b"[" * 400 + b"]" * 400 + b"\n" + lines_of([{"message": [[PING]]}, PING]))
    assert len(found.messages) == 1


# -- Sides -----------------------------------------------------------------------------------------

ASK: Final = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {}}
CALL: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "a", "_meta": {"progressToken": "p"}},
}


def progress(token: str) -> dict[str, Any]:
    return {"method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}


@pytest.mark.parametrize(
    ("before", "message", "side"),
    [
        ([], LIST, "client"),
        ([], ASK, "server"),
        ([], NOTE, "client"),
        ([], {"method": "notifications/message", "params": {}}, "server"),
        ([LIST], TOOLS, "server"),
        ([ASK], {"id": 1, "result": {"action": "cancel"}}, "client"),
        ([LIST, ASK], {"id": 1, "result": {"action": "cancel"}}, "client"),
        ([LIST, ASK], TOOLS, "server"),
        ([LIST, ASK], {"id": 1, "error": {"code": 1, "message": ""}}, None),
        ([LIST, TOOLS, ASK], {"id": 1, "error": {"code": 1, "message": ""}}, "client"),
        ([LIST, TOOLS], TOOLS, "server"),  # a second response
        ([], TOOLS, None),
        ([LIST], {"id": None, "error": {"code": -32700, "message": ""}}, None),
        ([], PING, "client"),
        ([LIST], PING, "server"),  # the client has used this id
        ([CALL], progress("p"), "server"),
        ([CALL], progress("q"), None),
        ([CALL], {"method": "notifications/cancelled", "params": {"requestId": 1}}, "client"),
        ([ASK], {"method": "notifications/cancelled", "params": {"requestId": 1}}, "server"),
        ([], {"method": "notifications/x"}, None),
        ([], {"method": "x/y", "id": 4}, None),
        ([{**LIST, "id": [1]}], {"id": [1], "result": {}}, None),
    ],
)
def test_side_is_guessed_by_method_and_id(before: list[Any], message: Any, side: Any) -> None:
    guesser = SideGuesser()
    for each in before:
        known = guesser.guess(each)
        assert known is not None
        guesser.add(each, known)
    assert guesser.guess(message) == side


# -- The Python SDK --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "root=JSONRPCRequest(method='ping', params=None, jsonrpc='2.0', id=1)",
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        ),
        (
            """jsonrpc='2.0' id='a b=' method="it's" params={'a': ['x=1 y=2', -1, True, None]}""",
            {"jsonrpc": "2.0", "id": "a b=", "method": "it's",
             "params": {"a": ["x=1 y=2", -1, True, None]}},
        ),
        (
            "SessionMessage(message=A(root=B(jsonrpc='2.0', id=1, error=C(code=-3))), metadata=<>)",
            {"jsonrpc": "2.0", "id": 1, "error": {"code": -3}},
        ),
        (
            r"jsonrpc='2.0' id=1 result={'a': '\'\\'}",
            {"jsonrpc": "2.0", "id": 1, "result": {"a": "'\\"}},
        ),
        ("jsonrpc='2.0' id=1 result={'a': 'cu", None),
        ("root=JSONRPCRequest(id=__import__('os').getpid(), jsonrpc='2.0')", None),
        ("jsonrpc='2.0' id=open('x')", None),
        ("jsonrpc='2.0' id=a.b", None),
        ("jsonrpc='2.0' id=1 result={1: 2}", None),
        ("jsonrpc='2.0' id=1 result={**{}}", None),
        ("A(id=1, method='ping')", None),
        ("[1]", None),
        ("A(root=B(id=1))", None),
        ("(" * 500, None),
        ("x" * 2_000_000, None),
        ("", None),
    ],
)  # fmt: skip
def test_message_of_the_python_sdk_is_read_without_running_it(text: str, message: Any) -> None:
    assert read_python_message(text) == message


# -- Time ------------------------------------------------------------------------------------------


def test_time_of_a_log_counts_from_its_first_message_and_never_goes_back() -> None:
    stamps = ("2026-01-01T00:00:01Z", "2026-01-01 00:00:03,500Z", "2026-01-01T00:00:02Z", "at noon")
    pairs = zip(stamps, [INITIALIZE, INITIALIZED, NOTE, LIST], strict=True)
    found = Read("".join(f"{when} {json.dumps(each)}\n" for when, each in pairs).encode())
    assert [line.t for line in found.messages] == [0.0, 2.5, 2.5, -1.0]


def polled(seconds: list[float | None]) -> list[TraceLine]:
    """Return a conversation whose client polls a task at these times, and was asked for 5 s."""
    task = {
        "taskId": "786512e2-9e0d-44bd-8f29-789f320fe840",
        "status": "working",
        "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z",
        "ttl": 60_000,
        "pollInterval": 5_000,
    }
    call = {**CALL, "params": {"name": "a", "task": {"ttl": 60_000}}}
    said: list[Any] = [INITIALIZE, INITIALIZED, NOTE, call, {"id": 1, "result": {"task": task}}]
    for id in range(2, 2 + len(seconds)):
        poll = {"id": id, "method": "tasks/get", "params": {"taskId": task["taskId"]}}
        said += [poll, {"id": id, "result": task}]
    times: list[float | None] = [0.0] * 5 if seconds[0] is not None else [None] * 5
    times += [each for each in seconds for _ in range(2)]
    return [
        TraceLine(
            t=UNTIMED if t is None else t,
            sender="client" if "method" in each else "server",
            raw=json.dumps({"jsonrpc": "2.0", **each}),
        )
        for each, t in zip(said, times, strict=True)
    ]


@pytest.mark.parametrize(
    ("seconds", "verdicts"), [([6.0, 12.0], set()), ([6.0, 7.0], {True}), ([None, None], {False})]
)
def test_row_about_time_is_inconclusive_without_times(
    seconds: list[float | None], verdicts: set[bool]
) -> None:
    judge = Judge(from_start=True)
    found = [each for line in polled(seconds) for each in judge.receive(line)]
    assert {each.is_certain for each in found if each.row == "TSK-13"} == verdicts


def test_order_of_an_unknown_transport_proves_nothing() -> None:
    """A resumed stream of HTTP may repeat a response."""
    found = Read(lines_of([*WHOLE, TOOLS]))
    assert [(each.row, each.is_certain) for each in found.findings] == [("RPC-7", False)]


# -- Reading ---------------------------------------------------------------------------------------


def numbered(reader: LogReader) -> list[tuple[int, str]]:
    """Return the numbers of the lines that are there, with their senders or what is wrong."""
    found = []
    while (line := reader.next_line()) is not None:
        sender = line.reason if isinstance(line, DamagedLine) else str(line.sender)
        found.append((reader.line_number, sender))
    return found


def test_lines_are_there_as_soon_as_their_bytes_are() -> None:
    """Also after lines without a message, and after damaged ones."""
    reader = LogReader(200)
    assert (reader.header, reader.kind, reader.line_number) == (None, "", 0)
    half = json.dumps(INITIALIZED)[:60].encode()
    reader.feed(
        b"text\n\n" + lines_of([LIST]) + b"x" * 500 + b"\n" + half + b"\n" + lines_of([TOOLS])
    )
    assert numbered(reader) == [
        *((3, "client"), (4, "it is too long")),
        (5, "a message begins on this line and does not end on it"),
        (6, "server"),
    ]
    assert (reader.kind, reader.skipped) == ("lines", 1)
    reader.feed(json.dumps(PING).encode())
    assert numbered(reader) == []
    reader.feed(b"")
    assert numbered(reader) == [(7, "server")]  # the client has used its id


def test_values_are_there_as_soon_as_their_bytes_are() -> None:
    reader = LogReader(200)
    long = json.dumps({**PING, "params": {"a": "x" * 500}})
    values = ["{}", json.dumps(LIST), long, "{'a'}", json.dumps(TOOLS)]
    reader.feed(("[\n" + ",\n".join(values)).encode())
    found = numbered(reader)
    assert [sender for _, sender in found] == [
        *("client", "it is too long", "it is not JSON", "server")
    ]
    assert (reader.kind, reader.skipped) == ("json", 1)
    reader.feed(b"]")
    reader.feed(b"")
    assert numbered(reader) == []


@pytest.mark.parametrize(
    ("begin", "kind"),
    [
        (b" ", ""),
        (b"[", ""),
        (b"[ \n", ""),
        (b"[ {", "json"),
        (b"[[", "json"),
        (b"[]", "json"),
        (b"[info] ", "lines"),
        (b"text", "lines"),
        (b"\xef\xbb\xbf [{", "json"),
        (b'{"jsonrpc"', ""),
        (b'{"jsonrpc"}\n', "lines"),
        (b" { \n", "json"),
        (b'{"mcp-trace": 1}\n', "trace"),
        (b"{" + b" " * (64 * 1024 - 2), ""),
        (b"{" + b"x" * (64 * 1024 - 1), "lines"),
    ],
)
def test_kind_is_known_by_the_beginning(begin: bytes, kind: str) -> None:
    reader = LogReader()
    reader.feed(begin)
    assert reader.kind == kind
    assert (reader.header is None) == (kind in ("", "trace"))


def exported(*entries: tuple[Any, float | None, Any, float]) -> bytes:
    """Return lines of messages, each with its time, its response and how long that took."""
    found = []
    for message, time, response, seconds in entries:
        origin = "server" if message["method"] == ASK["method"] else "client"
        entry: dict[str, Any] = {"origin": origin, "message": message}
        if time is not None:
            entry["t"] = time
        if response is not None:
            entry |= {"response": response, "duration": seconds * 1000}
        found.append(entry)
    return lines_of(found)


def methods_of(found: Read) -> list[str]:
    return [json.loads(line.raw or "").get("method", "response") for line in found.messages]


@pytest.mark.parametrize(
    ("second", "time", "order"),
    [
        (NOTE, 4.0, ["tools/list", NOTE["method"], "response"]),
        (NOTE, 5.0, ["tools/list", "response", NOTE["method"]]),
        (NOTE, 6.0, ["tools/list", "response", NOTE["method"]]),
        (ASK, 5.0, ["tools/list", ASK["method"], "response"]),
        (NOTE, None, ["tools/list", NOTE["method"], "response"]),
    ],
)
def test_response_of_an_export_stands_at_its_time(second: Any, time: Any, order: Any) -> None:
    found = Read(exported((LIST, 1.0, TOOLS, 4.0), (second, time, None, 0)))
    assert methods_of(found) == order
    [response] = [line for line in found.messages if b"tools" in (line.raw or "").encode()][1:]
    assert (response.sender, response.t) == ("server", 4.0)


def test_response_without_a_time_follows_its_request() -> None:
    found = Read(exported((LIST, None, TOOLS, 0), (NOTE, None, None, 0)))
    assert methods_of(found) == ["tools/list", "response", NOTE["method"]]


def test_only_so_many_responses_wait_for_their_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_reader, "_MAX_HELD", 2)
    calls = [({**LIST, "id": n}, 1.0, {**TOOLS, "id": n}, 9.0) for n in range(3)]
    found = Read(exported(*calls))
    ids = [(line.sender, json.loads(line.raw or "")["id"]) for line in found.messages]
    assert ids == [
        *(("client", 0), ("client", 1), ("client", 2)),
        *(("server", 2), ("server", 0), ("server", 1)),
    ]


def test_only_so_many_servers_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Further ones are taken for the first one."""
    monkeypatch.setattr(_reader, "_MAX_NAMES", 2)
    names = ["a", "b", "a", "c", "b", "d"]
    found = Read(
        lines_of({"server": name, "message": {**LIST, "id": n}} for n, name in enumerate(names))
    )
    assert [line.conversation for line in found.messages] == [1, 2, 1, 1, 2, 1]


@pytest.mark.parametrize("between", [0, 2, 3])
def test_repetition_is_looked_for_among_three_messages(between: int) -> None:
    """A message that comes later again was sent again."""
    others = [{**LIST, "id": n} for n in range(between)]
    lines = [f"DEBUG: {json.dumps(each)}\n" for each in (NOTE, *others, NOTE)]
    assert len(Read("".join(lines).encode()).messages) == between + (1 if between < 3 else 2)


def test_guessed_sides_are_counted() -> None:
    known = {"origin": "client", "message": {**LIST, "id": 5}}
    found = Read(lines_of([INITIALIZE, known, {"method": "x", "params": {}, "id": 9}, TOOLS]))
    assert (found.reader.guessed, found.reader.unknown) == (1, 2)
    batch = [{"jsonrpc": "2.0", "method": "notifications/x"}, LIST]
    assert Read(lines_of([batch])).reader.guessed == 1


def test_later_conversation_may_run_beside_the_first() -> None:
    """Then an id that is open is used again, and nothing more is judged."""
    late = [INITIALIZE, INITIALIZED, {**LIST, "id": 4}, INITIALIZE, {**LIST, "id": 4}]
    found = Read(lines_of([*late, {**LIST, "id": 6}]))
    assert (found.reader.unknown, len(found.messages)) == (3, 3)
    over = [*WHOLE, INITIALIZE, INITIALIZED, LIST]
    found = Read(lines_of([*over, {**LIST, "id": 6}, LIST]))
    assert (found.reader.unknown, len(found.messages)) == (1, 9)
    assert [line.conversation for line in found.messages] == [1] * 5 + [2] * 4
    assert found.damage == [(6, "another conversation begins, and the first one may go on")]


@pytest.mark.parametrize("size", [7, 1 << 20])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_trace_is_read_as_by_its_own_reader(size: int, end: bytes) -> None:
    header = TraceHeader(format_version=1, at="2026-01-01T00:00:00Z")
    lines = [TraceLine(t=n, sender="client", raw=json.dumps({**PING, "id": n})) for n in range(3)]
    data = (encode_header(header) + b"".join(map(encode_line, lines))).rstrip(b"\n") + end
    found = Read(data, size)
    assert (found.reader.kind, found.reader.header) == ("trace", header)
    assert found.lines == [*enumerate(lines, 2)]
    only = Read(encode_header(header).rstrip(b"\n"), size)
    assert (only.reader.header, only.lines) == (header, [])


def test_file_is_at_its_end_once() -> None:
    """A file that grows may be read on."""
    reader = LogReader()
    reader.feed(exported((LIST, 1.0, TOOLS, 4.0)))
    assert numbered(reader) == [(1, "client")]
    reader.feed(b"")
    assert numbered(reader) == [(1, "server")]
    reader.feed(exported((NOTE, 9.0, TOOLS, 4.0)))
    assert numbered(reader) == [(2, "client")]
    with pytest.raises(InvalidTrace):
        Read(b"")
