"""Bad input on a stream: the exact response, and that the next valid request is answered.

The server is a real one, over a memory pair: bytes go in and lines come out. Each row runs in a
stateful revision, in the stateless one on a server of all revisions, and on one of that revision
only. `id` 7 is the bad message's; `NO_ID` marks a response to a message without readable id.
"""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

from mcp_core import ALL, CallTimeout, Limits, PeerError, RemoteProtocolError
from mcp_core.registry import Context, Server
from mcp_trio.testing import hostile
from tests.harness import either
from tests.harness.jsonrpc import (
    META_CAPABILITIES,
    META_VERSION,
    A,
    B,
    C,
    D,
    E,
    cancelled,
    encoded,
    error,
    initialize,
    line,
    notification,
    ping,
    request,
    result,
    text_of,
)
from tests.harness.wire.client import CallTask, connected
from tests.harness.wire.lines import Wire, served
from tests.levels import long

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tests.harness.jsonrpc import Message

pytestmark = pytest.mark.usefixtures("each_driver")

MIB: Final = 1024 * 1024
META_LOG_LEVEL: Final = "io.modelcontextprotocol/logLevel"
NO_ID: Final = object()

PARSE, REQUEST, METHOD, PARAMS, VERSION = -32700, -32600, -32601, -32602, -32022


def bad_server(versions: Iterable[str] = ALL) -> Server:
    """A server with tools that add, wait, exit and recurse."""
    server = Server("bad", versions=versions)

    @server.tool
    def add(a: int, b: int) -> str:
        """Add."""
        return str(a + b)

    @server.tool
    async def wait() -> None:
        """Wait."""
        await either.sleep_forever()

    @server.tool
    def leave() -> None:
        """Leave."""
        raise SystemExit(1)

    @server.tool
    def recurse() -> None:
        """Never end."""
        recurse()

    @server.tool
    def shout(context: Context) -> None:
        """Shout."""
        context.log_nowait("loud", "hey")  # type: ignore[arg-type]

    return server


class Setup(NamedTuple):
    """A revision for the requests, and the id of a response to a message without a readable id."""

    version: str
    served: tuple[str, ...]
    no_id: Message


SETUPS: Final = {
    "stateful": Setup(D, ALL, {}),
    "stateless": Setup(
        E, ALL, {"id": None}
    ),  # the revision is not known: each request names its own
    "stateless only": Setup(E, (E,), {}),
}


def good(wire: Wire) -> bytes:
    return encoded(wire.calling(7, "add", {"a": 1, "b": 2}))


def with_(old: bytes, new: bytes) -> Callable[[Wire], bytes]:
    """A valid call in which `old` is replaced by `new`."""

    def build(wire: Wire) -> bytes:
        data = good(wire)
        assert data.count(old) == 1
        return data.replace(old, new)

    return build


def with_id(id: bytes) -> Callable[[Wire], bytes]:
    return with_(b'"id":7', b'"id":' + id)


def asking(method: str, params: Any = None) -> Callable[[Wire], bytes]:
    return lambda wire: encoded(wire.asking(7, method, params))


def bare(params: Any, method: str = "tools/call") -> Callable[[Wire], bytes]:
    """A request with exactly these params, so without `_meta` in the stateless revision too."""
    return lambda wire: encoded(request(7, method, params))


def claiming(**meta: Any) -> Callable[[Wire], bytes]:
    keys = {"version": META_VERSION, "capabilities": META_CAPABILITIES}
    return bare({"_meta": {keys[name]: value for name, value in meta.items()}}, "tools/list")


def raw(data: bytes | Message) -> Callable[[Wire], bytes]:
    return lambda wire: encoded(data)


class Row(NamedTuple):
    """The message, and the code of its response:

    None for silence, a str for the text of a tool result.
    """

    message: Callable[[Wire], bytes]
    answer: int | str | None
    id: Any = 7
    stateless: int | str | None = None  # if it differs in the stateless revision
    stateless_only: int | str | None = None


ROWS: Final[dict[str, Any]] = {
    # -- invalid JSON
    "not JSON": Row(raw(b"{nope"), PARSE, NO_ID),
    "a word": Row(raw(b"hello"), PARSE, NO_ID),
    "a NUL": Row(raw(b"\0"), PARSE, NO_ID),
    "half a message": Row(lambda wire: good(wire)[:-1], PARSE, NO_ID),
    "two messages in a line": Row(lambda wire: good(wire) * 2, PARSE, NO_ID),
    "two messages with a bare CR between": Row(
        lambda wire: good(wire) + b"\r" + good(wire), PARSE, NO_ID
    ),
    "two BOMs": Row(lambda wire: b"\xef\xbb\xbf" * 2 + good(wire), PARSE, NO_ID),
    "not UTF-8": Row(raw(b"\xff\xfe{\0}\0"), PARSE, NO_ID),
    "not UTF-8 in the params": Row(with_(b'"add"', b'"\xff"'), PARSE, NO_ID),
    "half a surrogate pair": Row(with_(b'"add"', b'"\\ud800"'), PARSE, NO_ID),
    "NaN": Row(with_(b'"a":1', b'"a":NaN'), PARSE, NO_ID),
    "100,000 arrays deep": Row(
        with_(b'"a":1', b'"a":' + b"[" * 100_000 + b"]" * 100_000), PARSE, NO_ID
    ),
    "100,000 objects deep, never closed": Row(
        with_(b'"a":1', b'"a":' + b'{"a":' * 100_000), PARSE, NO_ID
    ),
    "a line over the limit": Row(with_(b'"add"', b'"' + b"x" * 4 * MIB + b'"'), PARSE),
    # -- not a request, but valid
    "an empty line": Row(raw(b""), None),
    "spaces": Row(raw(b"  \t "), None),
    "a CR before the newline": Row(lambda wire: good(wire) + b"\r", "3"),
    "bare CRs between tokens": Row(lambda wire: b"\r" + good(wire).replace(b",", b",\r"), "3"),
    # -- invalid envelopes
    "a number": Row(raw(b"1"), REQUEST, NO_ID),
    "a string": Row(raw(b'"hello"'), REQUEST, NO_ID),
    "null": Row(raw(b"null"), REQUEST, NO_ID),
    "an array": Row(lambda wire: b"[" + good(wire) + b"]", REQUEST, NO_ID),
    "an empty array": Row(raw(b"[]"), REQUEST, NO_ID),
    "an empty object": Row(raw(b"{}"), REQUEST, NO_ID),
    "no jsonrpc": Row(with_(b'"jsonrpc":"2.0",', b""), REQUEST),
    "jsonrpc 1.0": Row(with_(b'"2.0"', b'"1.0"'), REQUEST),
    "jsonrpc as a number": Row(with_(b'"jsonrpc":"2.0"', b'"jsonrpc":2.0'), REQUEST),
    "jsonrpc null": Row(with_(b'"jsonrpc":"2.0"', b'"jsonrpc":null'), REQUEST),
    "neither method nor result": Row(raw({"jsonrpc": "2.0", "id": 7}), REQUEST),
    "a method that is a number": Row(raw(request(7, 5)), REQUEST),  # type: ignore[arg-type]
    "a method that is null": Row(raw(request(7, None)), REQUEST),  # type: ignore[arg-type]
    "a method of 257 letters": Row(asking("m" * 257), REQUEST),
    "a member twice": Row(with_(b'"jsonrpc"', b'"jsonrpc":"2.0","jsonrpc"'), REQUEST),
    "two ids": Row(with_(b'"id":7', b'"id":6,"id":7'), REQUEST),
    "two methods": Row(with_(b'"method":', b'"method":"ping","method":'), REQUEST),
    # -- ids
    "id null": Row(with_id(b"null"), REQUEST, NO_ID),
    "id 1.0": Row(with_id(b"1.0"), REQUEST, NO_ID),
    "id 1e1": Row(with_id(b"1e1"), REQUEST, NO_ID),
    "id true": Row(with_id(b"true"), REQUEST, NO_ID),
    "id an object": Row(with_id(b"{}"), REQUEST, NO_ID),
    "id an array": Row(with_id(b"[7]"), REQUEST, NO_ID),
    "id of 257 letters": Row(with_id(b'"' + b"x" * 257 + b'"'), REQUEST, NO_ID),
    "id 2^53": Row(with_id(b"9007199254740992"), REQUEST, NO_ID),
    "id of 400 digits": Row(with_id(b"1" * 400), REQUEST, NO_ID),
    "id of 256 letters, which is none too many": Row(
        with_id(b'"' + b"x" * 256 + b'"'), "3", "x" * 256
    ),
    "an empty id, which is one": Row(with_id(b'""'), "3", ""),
    # -- methods and params
    "an unknown method": Row(asking("no/such"), METHOD),
    "a method without letters": Row(asking(""), METHOD),
    "a method that the server does not offer": Row(asking("resources/list"), METHOD),
    "another method that the server does not offer": Row(
        asking("prompts/get", {"name": "x"}), METHOD
    ),
    "a method of the other side": Row(asking("roots/list"), METHOD),
    "params an array": Row(bare([1]), PARAMS, 7, REQUEST, PARAMS),
    "params a string": Row(bare("x"), PARAMS, 7, REQUEST, PARAMS),
    "params null": Row(
        lambda wire: encoded(request(7, "tools/call"))[:-1] + b',"params":null}',
        PARAMS,
        7,
        REQUEST,
        PARAMS,
    ),
    "no params": Row(bare(None), PARAMS, 7, REQUEST, PARAMS),
    "a name that is a number": Row(asking("tools/call", {"name": 5}), PARAMS),
    "an unknown tool": Row(asking("tools/call", {"name": "no_such"}), PARAMS),
    "arguments an array": Row(asking("tools/call", {"name": "add", "arguments": [1]}), PARAMS),
    "an argument of the wrong type": Row(
        with_(b'"a":1', b'"a":"x"'), "Invalid argument `a`: expected `int`, got `str`"
    ),
    "an argument missing": Row(with_(b'"a":1,', b""), "Missing argument `a`"),
    "an argument nobody knows": Row(with_(b'"a":1', b'"a":1,"c":1'), "Unknown argument `c`"),
    "completion where there is none": Row(
        asking(
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}},
        ),
        METHOD,
    ),
    "a log level that does not exist": Row(
        asking("logging/setLevel", {"level": "loud"}), PARAMS, 7, METHOD, METHOD
    ),
    "a log level that is a number": Row(
        asking("logging/setLevel", {"level": 3}), PARAMS, 7, METHOD, METHOD
    ),
    "a log level of a request that does not exist": Row(
        lambda wire: encoded(wire.calling(7, "add", {"a": 1, "b": 2}, **{META_LOG_LEVEL: "loud"})),
        PARAMS,
    ),
    "a cursor that was never given out": Row(asking("tools/list", {"cursor": "x"}), PARAMS),
    # -- responses
    "a response to nothing": Row(raw(result(7)), None),
    "an error for nothing": Row(raw(error(7)), None),
    "an error for no id": Row(raw(error(None)), None),
    "a result without an id": Row(raw({"jsonrpc": "2.0", "result": {}}), None),
    "result and error together": Row(raw(result(7) | error(7)), None),
    "a request and a response in one": Row(raw(request(7, "ping", result={})), REQUEST),
    # -- notifications
    "an unknown notification": Row(raw(notification("no/such")), None),
    "a notification with params that do not fit": Row(
        raw(notification("notifications/cancelled", [1])), None
    ),
    "a notification that asks": Row(raw(notification("tools/call", {"name": "add"})), None),
    "a notification that is no JSON-RPC": Row(raw({"method": "notifications/cancelled"}), None),
    "a cancellation of nothing": Row(raw(cancelled(99)), None),
    # -- client metadata
    "a second initialize": Row(raw(initialize(id=7)), REQUEST, 7, "2025-11-25", PARAMS),
    "an envelope without capabilities": Row(claiming(version=E), PARAMS),
    "an envelope without a revision": Row(claiming(capabilities={}), PARAMS),
    "an envelope with a revision that is a number": Row(
        claiming(version=5, capabilities={}), PARAMS
    ),
    "an envelope with capabilities that are a string": Row(
        claiming(version=E, capabilities="x"), PARAMS
    ),
    "an envelope of an unknown revision": Row(
        claiming(version="1900-01-01", capabilities={}), VERSION
    ),
    "an envelope of a revision that has none": Row(claiming(version=D, capabilities={}), VERSION),
    "a _meta that is a string": Row(bare({"_meta": "x"}, "tools/list"), PARAMS, 7, REQUEST, PARAMS),
    # -- handlers
    "SystemExit in a handler": Row(asking("tools/call", {"name": "leave"}), "internal error"),
    "a log level that does not exist, in a handler": Row(
        asking("tools/call", {"name": "shout"}), "internal error"
    ),
    "RecursionError in a handler": Row(asking("tools/call", {"name": "recurse"}), "internal error"),
}


async def receive_answers(wire: Wire) -> list[Message]:
    """Send a ping, and return the messages before its response."""
    await wire.send(wire.asking("next", "server/discover" if wire.version == E else "ping"))
    messages = []
    while (message := await wire.receive()).get("id") != "next":
        messages.append(message)
    assert "result" in message
    return messages


def check(row: Row, setup: Setup, messages: list[Message]) -> None:
    expected = row.answer
    if setup.version == E and row.stateless is not None:
        expected = row.stateless if len(setup.served) > 1 else row.stateless_only
    if expected is None:
        assert messages == []
        return
    [answer] = messages
    id = setup.no_id if row.id is NO_ID else {"id": row.id}
    if isinstance(expected, int):
        text = answer["error"]["message"]
        assert answer == {"jsonrpc": "2.0", "error": answer["error"]} | id
        assert answer["error"]["code"] == expected
        assert text
        assert "\n" not in text
        assert len(text) < 300
    else:
        assert answer == {"jsonrpc": "2.0", "result": answer["result"]} | id
        assert expected in (
            text_of(answer) if "content" in answer["result"] else answer["result"].values()
        )


@pytest.mark.requirement(
    "RPC-1",
    "RPC-2",
    "RPC-3",
    "RPC-6",
    "RPC-12",
    "RPC-14",
    "RPC-15",
    "RPC-17",
    "RPC-18",
    "RPC-19",
    "RPC-25",
    "RPC-26",
    "META-8",
    "LIFE-12",
    "VER-1",
    "CAP-6",
    "CAP-7",
    "TOOL-17",
    "STDIO-6",
    "ERR-1",
    "DEC-3",
    "DEC-6",
    "DEC-7",
    "DEC-9",
)
@pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_server_bad_message_gets_its_error_and_the_next_is_answered(
    row: Row, setup: Setup
) -> None:
    async with served(bad_server(setup.served), setup.version) as wire:
        await wire.send(row.message(wire))
        check(row, setup, await receive_answers(wire))


@pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)
@pytest.mark.parametrize("rounds", [1, long(2)])
async def test_server_all_bad_messages_on_one_connection(rounds: int, setup: Setup) -> None:
    async with served(bad_server(setup.served), setup.version) as wire:
        for _ in range(rounds):
            for name, row in ROWS.items():
                if name == "a second initialize" and setup.version == E:
                    continue  # it may be the first one in that revision
                await wire.send(row.message(wire))
                check(row, setup, await receive_answers(wire))


# What the server serves, or ignores as it is no request.
TOLERATED: Final = ("duplicate-members", "response-to-nothing", "result-and-error", "bom")


@pytest.mark.parametrize("setup", SETUPS.values(), ids=SETUPS)
@pytest.mark.parametrize("attack", hostile.MESSAGE_ATTACKS, ids=str)
async def test_server_hostile_message_is_rejected_and_the_next_is_answered(
    attack: hostile.Attack, setup: Setup
) -> None:
    async with served(bad_server(setup.served), setup.version) as wire:
        await wire.send(hostile.hostile_message(attack))
        answers = await receive_answers(wire)
    assert answers or attack.name in TOLERATED
    assert all("error" in answer or attack.name in TOLERATED for answer in answers)


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("attack", hostile.MESSAGE_ATTACKS, ids=str)
async def test_client_hostile_message_leaves_the_connection_open(
    attack: hostile.Attack, version: str, nursery: either.Nursery
) -> None:
    async with connected(version) as (client, wire):
        await wire.send(hostile.hostile_message(attack))
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        while (sent := await wire.receive()).get("method") != "tools/call":
            pass  # errors and responses to the message
        await wire.send(result(sent["id"], {"content": []}))
        await call_task.ended.wait()
        assert call_task.result.content == []


@pytest.mark.parametrize(
    ("version", "id"),
    [
        pytest.param(A, {"id": None}, marks=pytest.mark.requirement("RPC-25", "DEC-3")),
        pytest.param(C, {"id": None}, marks=pytest.mark.requirement("RPC-25", "DEC-3")),
        pytest.param(D, {}, marks=pytest.mark.requirement("RPC-8")),
    ],
)
async def test_server_batch_in_a_revision_without_batches_is_rejected(
    version: str, id: Message
) -> None:
    async with served(bad_server(), version) as wire:
        await wire.send(b"[" + good(wire) + b"]")
        [answer] = await receive_answers(wire)
        assert answer == {"jsonrpc": "2.0", "error": answer["error"]} | id
        assert answer["error"]["code"] == REQUEST


@pytest.mark.requirement("RPC-20", "RPC-22", "RPC-24")
async def test_server_batch_in_2025_03_26_is_answered() -> None:
    """One bad member of a batch gets an error of its own and spoils none of the others."""
    async with served(bad_server(), B) as wire:
        await wire.send(
            [
                wire.calling(1, "add", {"a": 1, "b": 2}),
                5,
                initialize(B, id=2),
                notification("no/such"),
                wire.asking(3, "ping"),
            ]
        )
        messages = await receive_answers(wire)
        assert {message["id"]: "result" in message for message in messages} == {
            1: True,
            None: False,
            2: False,
            3: True,
        }
        for empty in b"[]", b"[" + b"1," * 100 + b"1]", b"[1":
            await wire.send(empty)
            [answer] = await receive_answers(wire)
            assert answer["error"]["code"] == (PARSE if empty == b"[1" else REQUEST)
        await wire.send([notification("no/such")])
        assert await receive_answers(wire) == []


@pytest.mark.requirement("VER-15")
async def test_server_initialize_without_handshake_revisions_lists_the_supported() -> None:
    async with served(bad_server((E,)), E) as wire:
        await wire.send(initialize(id=7))
        [answer] = await receive_answers(wire)
        assert answer["error"]["data"]["supported"] == [E]


@pytest.mark.requirement("RPC-5", "RPC-6")
@pytest.mark.parametrize("version", [D, E])
async def test_server_request_id_in_use_is_rejected(version: str) -> None:
    async with served(bad_server(), version) as wire:
        await wire.send(wire.calling(7, "wait"), wire.calling(7, "add", {"a": 1, "b": 2}))
        [answer] = await receive_answers(wire)
        assert (answer["id"], answer["error"]["code"]) == (7, REQUEST)
        assert (
            text_of(await wire.call("7", "add", {"a": 1, "b": 2})) == "3"
        )  # "7" is another id than 7
        await wire.send(cancelled(7))
        assert await wire.is_silent()
        assert text_of(await wire.call(7, "add", {"a": 1, "b": 2})) == "3"


LISTS: Final = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


@pytest.mark.requirement("PAGE-6", "COMP-4")
@pytest.mark.parametrize("version", [D, E])
async def test_server_foreign_cursor_or_completion_ref_is_rejected(version: str) -> None:
    """A cursor is valid for its own list only, and completion only for declared arguments."""
    server = Server("lists", page_size=1)
    for n in range(2):
        server.add_tool(lambda: "", name=f"n{n}", description="A tool.")
        server.add_prompt(lambda x: x, name=f"n{n}")
        server.add_resource(f"x://{n}", lambda: "", name=f"n{n}")
        server.add_resource(f"x{n}://{{x}}", lambda x: x, name=f"n{n}")
    server.add_completion("n0", "x", lambda typed: [typed])
    async with served(server, version) as wire:
        ids = iter(range(10, 1000))
        cursors = {
            method: (await wire.ask(next(ids), method))["result"]["nextCursor"] for method in LISTS
        }
        assert len(set(cursors.values())) == 4
        for method in LISTS:
            for origin, cursor in cursors.items():
                answer = await wire.ask(next(ids), method, {"cursor": cursor})
                if origin == method:
                    assert "nextCursor" not in answer["result"]
                else:
                    assert answer["error"]["code"] == PARAMS
        for ref in (
            {"type": "ref/prompt", "name": "n2"},
            {"type": "ref/prompt", "name": "x0://{x}"},
            {"type": "ref/resource", "uri": "x://0"},  # it has no variables
            {"type": "ref/resource", "uri": "n0"},
            {"type": "ref/tool", "name": "n0"},
            {"type": "ref/prompt"},
            {},
            None,
        ):
            params = {"ref": ref, "argument": {"name": "x", "value": "y"}}
            answer = await wire.ask(next(ids), "completion/complete", params)
            assert answer["error"]["code"] == PARAMS, ref
        known = {
            "ref": {"type": "ref/prompt", "name": "n0"},
            "argument": {"name": "x", "value": "y"},
        }
        answer = await wire.ask(next(ids), "completion/complete", known)
        assert answer["result"]["completion"]["values"] == ["y"]


@pytest.mark.requirement("LIFE-10", "LIFE-11", "PING-2")
async def test_server_request_before_initialize_is_rejected() -> None:
    async with served(bad_server(), D, opened=False) as wire:
        assert (await wire.ask(1, "tools/list"))["error"]["code"] == REQUEST
        assert await wire.is_alive()
        await wire.send(notification("notifications/initialized"))
        assert (await wire.ask(2, "tools/list"))["error"]["code"] == REQUEST
        await wire.send(initialize(id=3))
        assert (await wire.receive())["result"]["protocolVersion"] == D
        assert "result" in await wire.ask(
            4, "tools/list"
        )  # no need to wait for the notification: it may arrive later
        await wire.send(initialize(id=5))
        assert (await wire.receive())["error"]["code"] == REQUEST
        assert await wire.is_alive()


# --- large amounts ------------------------------------------------------------------------------


@pytest.mark.perf
@pytest.mark.parametrize("version", [D, E])
async def test_server_300_mib_without_newline_uses_constant_memory(version: str) -> None:
    chunk = b"x" * 256 * 1024
    async with served(bad_server(), version) as wire:
        tracemalloc.start()
        try:
            for _ in range(300 * MIB // len(chunk)):
                await wire.stream.send_all(chunk)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 16 * MIB
        await wire.send("the end of the line")
        [answer] = await receive_answers(wire)
        assert answer["error"]["code"] == PARSE


@pytest.mark.requirement("STDIO-1")
@pytest.mark.slow  # in the default run test_processes.py does it with a process
async def test_server_200_000_unread_ping_responses_use_bounded_memory() -> None:
    """Backpressure instead of a queue: the sender waits until the responses are read."""
    number, at_once, sent = 200_000, 1000, 0
    answered, rest = 0, b""
    ours, theirs = either.memory_pair()
    wire = Wire(ours)

    async def send_pings() -> None:
        nonlocal sent
        for first in range(0, number, at_once):
            await ours.send_all(b"".join(line(ping(n)) for n in range(first, first + at_once)))
            sent += at_once

    async def receive_until(until: int) -> None:
        nonlocal answered, rest
        while answered < until:
            *answers, rest = (rest + await ours.receive_some()).split(b"\n")
            for n in {0, len(answers) - 1} if answers else ():
                assert json.loads(answers[n]) == result(answered + n)
            answered += len(answers)

    async with either.open_nursery() as nursery:
        nursery.start_soon(either.serve_stream, bad_server(), theirs)
        await wire.shake_hands()
        tracemalloc.start()
        try:
            nursery.start_soon(send_pings)
            await either.wait_all_tasks_blocked()
            assert sent < number // 4  # the sender has to wait ...
            await receive_until(number // 4)  # ... is resumed several times
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < 32 * MIB
        await receive_until(number)
        assert (sent, answered, rest) == (
            number,
            number,
            b"",
        )  # ... and gets every response once they are read
        assert await wire.is_alive()
        await ours.aclose()


@pytest.mark.parametrize("limit", [1000, 4 * MIB])
async def test_server_message_limit_is_inclusive(limit: int) -> None:
    """One byte more is a parse error, and the connection survives it."""
    server = Server("limited", limits=Limits(message=limit))

    @server.tool
    def length(text: str) -> str:
        """Return its length."""
        return str(len(text))

    async with served(server) as wire:
        empty = len(encoded(wire.calling(7, "length", {"text": ""})))
        assert text_of(await wire.call(7, "length", {"text": "x" * (limit - empty)})) == str(
            limit - empty
        )
        await wire.send(wire.calling(7, "length", {"text": "x" * (limit - empty + 1)}))
        [answer] = await receive_answers(wire)
        assert answer["error"]["code"] == PARSE


# --- to a client --------------------------------------------------------------------------------


@pytest.mark.requirement("RPC-9", "RPC-10")
@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    "response",
    [
        pytest.param(
            {"result": {}, "error": {"code": 1, "message": "x"}}, id="result and error together"
        ),
        pytest.param({}, id="neither"),
        pytest.param({"result": None}, id="a result that is null"),
        pytest.param({"result": [1]}, id="a result that is an array"),
        pytest.param({"error": "no"}, id="an error that is a string"),
        pytest.param({"error": {"code": "x", "message": "x"}}, id="a code that is a string"),
        pytest.param({"error": {"code": 1}}, id="an error without a message"),
    ],
)
async def test_client_invalid_response_fails_its_call(
    response: Message, version: str, nursery: either.Nursery
) -> None:
    async with connected(version) as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        sent = await wire.receive()
        await wire.send({"jsonrpc": "2.0", "id": sent["id"]} | response)
        await call_task.ended.wait()
        assert isinstance(call_task.error, RemoteProtocolError)
        next_one = CallTask(nursery, lambda: client.call_tool("t"))
        sent = await wire.receive()
        await wire.send(error(sent["id"], 1, "fine"))
        await next_one.ended.wait()
        assert isinstance(next_one.error, PeerError)


@pytest.mark.requirement("CXL-9", "RPC-6")
async def test_client_second_response_is_ignored(nursery: either.Nursery) -> None:
    """A server answers one id twice, and an id that only looks alike: no other call ends."""
    async with connected() as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        sent = await wire.receive()
        await wire.send(
            result(f"0{sent['id']}", {"content": [{"type": "text", "text": "of another id"}]}),
            result(sent["id"], {"content": []}),
            result(sent["id"], {"content": [{"type": "text", "text": "again"}]}),
            error(sent["id"]),
        )
        await call_task.ended.wait()
        assert call_task.result.content == []
        assert await wire.is_silent()
        next_one = CallTask(nursery, client.ping)
        await wire.send(result((await wire.receive())["id"]))
        await next_one.ended.wait()
        assert next_one.error is None


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"level": "loud", "data": "x"}, id="a level that does not exist"),
        pytest.param({"level": 3, "data": "x"}, id="a level that is a number"),
        pytest.param({"data": "x"}, id="no level"),
        pytest.param({"level": "error"}, id="nothing to say"),
        pytest.param([], id="an array"),
        pytest.param(None, id="no params"),
    ],
)
async def test_client_invalid_log_message_is_dropped(
    params: Any, version: str, nursery: either.Nursery
) -> None:
    received: list[Any] = []
    async with connected(version, on_log=received.append) as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("t"))
        sent = await wire.receive()
        await wire.send(
            notification("notifications/message", params),
            notification("notifications/message", {"level": "error", "data": "a good one"}),
            error(sent["id"], 1, "fine"),
        )
        await call_task.ended.wait()
        assert isinstance(call_task.error, PeerError)
        assert [message.data for message in received] == ["a good one"]


async def test_client_unreadable_line_is_in_the_text_of_a_timeout(nursery: either.Nursery) -> None:
    async with connected() as (client, wire):
        call_task = CallTask(nursery, lambda: client.call_tool("x", timeout=5))
        await wire.receive()
        await wire.send(b"done")
        await call_task.ended.wait()
        assert isinstance(call_task.error, CallTimeout)
        assert str(call_task.error) == (
            "no answer to tools/call within 5 s (timeout: pass a longer one, or let the tool "
            "report progress, which restarts it); the server wrote a line that is not an MCP "
            "message: b'done'"
        )
