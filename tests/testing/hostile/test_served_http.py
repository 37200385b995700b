"""The HTTP of a hostile server, which is honest until the request that it attacks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import pytest
import trio
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from mcp_trio.testing.hostile import _server_attacks
from mcp_trio.testing.hostile._server import (
    AttackedRequest,
    HostileServer,
    _Connection,
    hosting,
    text_frame,
)
from tests.harness.world.waiting import PATIENCE, until

if TYPE_CHECKING:
    from trio.testing import MockClock

META: Final = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
MODERN: Final = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
CAPABILITIES: Final = {each: {"listChanged": True} for each in ("tools", "prompts", "resources")}
TOOLS: Final = [{"name": "attack", "inputSchema": {"type": "object"}}]
DONE: Final = [{"type": "text", "text": "done"}]
ACCEPTED: Final = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
NOT_ALLOWED: Final = b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\nAllow: POST\r\n\r\n"


def ping(id: int = 1, method: str = "ping") -> bytes:
    return post({"jsonrpc": "2.0", "id": id, "method": method})


def post(message: Any, head: bytes = b"Content-Length: %d") -> bytes:
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return b"POST /mcp HTTP/1.1\r\n" + head % len(body) + b"\r\n\r\n" + body


def pong(id: int = 1) -> bytes:
    return response(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % id)


def response(body: bytes, more: bytes = b"") -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%b\r\n%b"
        % (len(body), more, body)
    )


class HostileConnection:
    """A connection to a hostile server, which sends what is given, and returns what comes."""

    def __init__(self, on: str = "tools/call", play: Any = None) -> None:
        self.server = HostileServer("http://x/mcp")
        self.attacked: list[AttackedRequest] = []
        self._play = play or self._attack
        self._on = on

    async def _attack(self, request: AttackedRequest) -> bool:
        await request.send(b"attack")
        return False

    async def play(self, request: AttackedRequest) -> bool | None:
        self.attacked.append(request)
        result: bool | None = await self._play(request)
        return result

    async def run(self, *parts: bytes) -> bytes:
        ours, theirs = memory_stream_pair()
        stream: Any = theirs
        connection = _Connection(stream, self.server, self.play, self._on, "http://y/mcp")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(connection.run)
            for each in parts:
                await ours.send_all(each)
                await wait_all_tasks_blocked()
            await ours.send_eof()
        await theirs.aclose()
        return b"".join([bytes(data) async for data in ours])


# -- Honest responses ------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "params", "result"), [
    ("initialize", {"protocolVersion": "2025-06-18"}, {
        "protocolVersion": "2025-06-18", "capabilities": CAPABILITIES,
        "serverInfo": {"name": "hostile", "version": "1"},
    }),
    ("server/discover", {"_meta": META}, {
        "supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES, **MODERN,
    }),
    ("server/discover", {}, None),
    ("ping", {}, {}),
    ("ping", {"_meta": META}, {}),
    ("tools/list", {}, {"tools": TOOLS}),
    ("tools/list", {"_meta": {}}, {"tools": TOOLS}),
    ("tools/list", {"_meta": 1}, {"tools": TOOLS}),
    ("tools/list", [], {"tools": TOOLS}),
    ("tools/list", {"_meta": META}, {"tools": TOOLS, **MODERN}),
    ("tools/call", {}, {"content": DONE}),
    ("tools/call", {"_meta": META}, {"content": DONE, "resultType": "complete"}),
    ("prompts/list", {}, {"prompts": []}),
    ("prompts/list", {"_meta": META}, {"prompts": [], **MODERN}),
    ("resources/list", {}, {"resources": []}),
    ("resources/list", {"_meta": META}, {"resources": [], **MODERN}),
    ("prompts/get", {}, None),
])  # fmt: skip
async def test_honest_request_has_its_usual_result(method: str, params: Any, result: Any) -> None:
    served = HostileConnection("other")
    sent = await served.run(post({"jsonrpc": "2.0", "id": 5, "method": method, "params": params}))
    head, _, body = sent.partition(b"\r\n\r\n")
    assert sent == response(body)
    assert b"HTTP/1.1 200 OK" in head
    outcome: dict[str, Any] = {"result": result}
    if result is None:
        outcome = {"error": {"code": -32601, "message": "Method not found"}}
    assert json.loads(body) == {"jsonrpc": "2.0", "id": 5, **outcome}
    assert served.server.requests == [method]
    assert served.server.attacks == 0


@pytest.mark.parametrize(("sent", "received", "name"), [
    (post({"jsonrpc": "2.0", "method": "notifications/initialized"}), ACCEPTED,
     "notifications/initialized"),
    (post({"jsonrpc": "2.0", "id": 1, "result": {}}), ACCEPTED, "response"),
    (post(b"[]"), ACCEPTED, "POST"),
    (post(b"no JSON"), ACCEPTED, "POST"),
    (b"GET /mcp HTTP/1.1\r\n\r\n", NOT_ALLOWED, "GET"),
    (b"DELETE /mcp HTTP/1.1\r\nHost: x\r\n\r\n", NOT_ALLOWED, "DELETE"),
    (post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, b"content-length : %d "), pong(), "ping"),
    (post({"jsonrpc": "2.0", "id": 1, "method": "ping"}, b"A: b\r\nContent-Length:%d"), pong(),
     "ping"),
    (post(b"", b"Content-Length: x%d"), ACCEPTED, "POST"),
    (post(b"", b"X-Content-Length: 1%d"), ACCEPTED, "POST"),
])  # fmt: skip
async def test_honest_response_and_name_of_any_request(
    sent: bytes, received: bytes, name: str
) -> None:
    served = HostileConnection()
    # The next request is served, too: so nothing of this one was left over.
    assert await served.run(sent + ping(2)) == received + pong(2)
    assert served.server.requests == [name, "ping"]
    assert served.server.heads[0] == sent.partition(b"\r\n\r\n")[0]
    assert len(served.server.heads) == 2


async def test_requests_in_any_parts_are_served() -> None:
    data = ping(1) + ping(2)
    assert await HostileConnection().run(
        *[data[place : place + 7] for place in range(0, len(data), 7)]
    ) == (pong(1) + pong(2))


@pytest.mark.parametrize("cut", [1, 20, 60])
async def test_request_that_is_cut_ends_the_connection(cut: int) -> None:
    served = HostileConnection("*")
    try:
        received = await served.run(ping()[:-cut])
    except* trio.BrokenResourceError:
        received = b""  # within the body
    assert received == b""
    assert served.server.attacks == 0


@pytest.mark.parametrize(("size", "received"), [(65_536, pong()), (65_537, b"")])
async def test_head_has_a_limit(size: int, received: bytes) -> None:
    request = ping()
    start = b"POST /mcp HTTP/1.1\r\nX: "
    rest = b"\r\n" + request.partition(b"\r\n")[2]
    first = start + b"x" * (size - len(start))
    assert await HostileConnection().run(first, rest) == received


# -- Attacks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("on", "attacks"), [
    ("ping", 1), ("POST", 2), ("*", 3), ("GET", 1), ("tools/call", 0), ("response", 0),
])  # fmt: skip
async def test_requests_of_the_named_method_are_attacked(on: str, attacks: int) -> None:
    """The name is a message's method, a request's method, or `*` for all of them."""

    async def play(request: AttackedRequest) -> bool:
        await request.send(b"attack")
        return True

    served = HostileConnection(on, play)
    requests = [ping(), b"GET /mcp HTTP/1.1\r\n\r\n", ping(2, "tools/list")]
    received = await served.run(b"".join(requests))
    assert received.count(b"attack") - received.count(b'"attack"') == attacks
    assert received.count(b"HTTP/1.1 ") == 3 - attacks
    assert served.server.attacks == attacks
    assert served.server.requests == ["ping", "GET", "tools/list"]
    assert served.server.bytes_sent == attacks * len(b"attack")


@pytest.mark.parametrize("stays", [False, None])
async def test_attack_ends_the_connection_unless_it_says_otherwise(stays: bool | None) -> None:
    async def play(request: AttackedRequest) -> bool | None:
        return stays

    served = HostileConnection("ping", play)
    assert await served.run(ping(1) + ping(2)) == b""
    assert served.server.requests == ["ping"]


async def test_attack_knows_its_request() -> None:
    served = HostileConnection("ping")
    await served.run(ping(3))
    [request] = served.attacked
    assert request.server is served.server
    assert request.head == b"POST /mcp HTTP/1.1\r\nContent-Length: 45"
    assert request.message == {"jsonrpc": "2.0", "id": 3, "method": "ping"}
    assert request.other_url == "http://y/mcp"


async def test_attack_of_the_connection_reads_nothing() -> None:
    served = HostileConnection("connect")
    assert await served.run(ping()) == b"attack"
    [request] = served.attacked
    assert (request.head, request.message, request.other_url) == (b"", {}, "http://y/mcp")
    assert (served.server.attacks, served.server.requests, served.server.heads) == (1, [], [])


async def test_attack_ends_after_thirty_seconds(autojump_clock: MockClock) -> None:
    async def sleep(request: AttackedRequest) -> None:
        await trio.sleep_forever()

    served = HostileConnection("ping", sleep)
    start = trio.current_time()
    assert await served.run(ping(1) + ping(2)) == b""
    assert trio.current_time() - start == pytest.approx(30)
    assert served.server.requests == ["ping"]


async def test_request_responds_with_the_headers_that_are_given() -> None:
    """An attack's own headers stand behind those of the honest response."""

    async def play(request: AttackedRequest) -> bool:
        await request.respond_honestly(b"A: b", b"C: d")
        await request.respond(b"{}", b"E: f")
        await request.respond(b"", status=b"500 Failed")
        return True

    served = HostileConnection("*", play)
    own = response(b"{}", b"E: f\r\n") + b"HTTP/1.1 500 Failed\r\nContent-Length: 0\r\n\r\n"
    received = await served.run(ping() + post(b"") + b"PUT / HTTP/1.1\r\n\r\n")
    given = b"A: b\r\nC: d\r\n"
    assert received == own.join([
        response(b'{"jsonrpc":"2.0","id":1,"result":{}}', given),
        ACCEPTED[:-2] + given + b"\r\n",
        NOT_ALLOWED[:-2] + given + b"\r\n",
        b"",
    ])  # fmt: skip


@pytest.mark.parametrize(("attack", "is_attacked"), [
    ("retry-zero", {b"GET": True, b"POST ping": False, b"POST tools/call": True}),
    ("session-changes", {b"GET": False, b"POST ping": False, b"POST tools/call": False}),
])  # fmt: skip
async def test_attack_of_all_requests_chooses_between_them(
    attack: str, is_attacked: dict[bytes, bool]
) -> None:
    """The handshake stays honest, so that the client gets to the attack."""
    play, on, _ = _server_attacks._plays[attack]
    for name, expected in is_attacked.items():
        served = HostileConnection(on, play)
        method = name.partition(b" ")[2].decode()
        sent = ping(1, method) if method else b"GET /mcp HTTP/1.1\r\n\r\n"
        first, _, second = (
            (await served.run(sent + sent)).partition(b"HTTP/1.1 ")[2].partition(b"HTTP/1.1 ")
        )
        assert (b"retry: 0\n" in first) == (b"retry: 0\n" in second) == expected
        # An id and a session are of one response only.
        for number, each in enumerate((first, second), start=1):
            if attack == "session-changes":
                assert b"Mcp-Session-Id: s%d\r\n" % number in each
            elif expected:
                assert b"id: %d\n" % number in each


# -- The server ------------------------------------------------------------------------------------


async def open_to(url: str) -> trio.SocketStream:
    return await trio.open_tcp_stream("127.0.0.1", urlsplit(url).port or 0)


async def test_server_counts_its_connections_and_closes_them() -> None:
    """Another URL of it leads to the same attack, and counts."""
    others = []

    async def play(request: AttackedRequest) -> bool:
        others.append(request.other_url)
        await request.send(b"attack")
        return False

    async with hosting(play, "connect", "ws") as server:
        assert server.url.startswith("ws://127.0.0.1:")
        assert server.url.endswith("/mcp")
        assert repr(server) == f"<HostileServer {server.url}, 0 requests>"
        async with await open_to(server.url) as first:
            assert b"".join([bytes(data) async for data in first]) == b"attack"
        await until(lambda: server.open_connections == 0)
        assert others[0] != server.url.replace("ws:", "http:")
        async with await open_to(others[0]) as second:
            assert b"".join([bytes(data) async for data in second]) == b"attack"
        await until(lambda: server.open_connections == 0)
        assert (server.connections, server.most_connections, server.attacks) == (2, 1, 2)
        assert server.bytes_sent == 12


async def test_server_counts_connections_at_a_time() -> None:
    """The highest number stays when connections have ended."""
    go_on = trio.Event()

    async def play(request: AttackedRequest) -> bool:
        await go_on.wait()
        return False

    async with hosting(play, "connect", "http") as server:
        streams = [await open_to(server.url) for _ in range(3)]
        await until(lambda: server.attacks == 3)
        assert (server.open_connections, server.most_connections) == (3, 3)
        go_on.set()
        await until(lambda: server.open_connections == 0)
        streams.append(await open_to(server.url))
        with trio.fail_after(PATIENCE):
            assert await streams[-1].receive_some() == b""
        assert (server.connections, server.most_connections) == (4, 3)
        for each in streams:
            await each.aclose()


async def test_servers_side_by_side_have_ports_of_their_own() -> None:
    async def play(request: AttackedRequest) -> bool:
        await request.send(b"attack")
        return False

    async with hosting(play, "*", "http") as one, hosting(play, "*", "http") as other:
        assert one.url != other.url
        for server in (one, other):
            assert str(server) == server.url
            assert (server.connections, server.most_connections, server.open_connections) == (
                0,
            ) * 3
            assert (server.attacks, server.bytes_sent) == (0, 0)


@pytest.mark.parametrize("error", [
    OSError(), trio.BrokenResourceError(), trio.ClosedResourceError(),
])  # fmt: skip
async def test_attack_whose_client_leaves_ends_only_its_connection(error: Exception) -> None:
    async def play(request: AttackedRequest) -> bool:
        raise error

    async with hosting(play, "connect", "http") as server:
        for _ in range(2):
            async with await open_to(server.url) as stream:
                assert await stream.receive_some() == b""
        assert server.attacks == 2


@pytest.mark.parametrize(("size", "head"), [
    (0, b"\x81\x00"), (125, b"\x81\x7d"), (126, b"\x81\x7e\x00\x7e"), (300, b"\x81\x7e\x01\x2c"),
])  # fmt: skip
def test_text_frame_has_its_length_in_the_shortest_form(size: int, head: bytes) -> None:
    assert text_frame(b"x" * size) == head + b"x" * size
