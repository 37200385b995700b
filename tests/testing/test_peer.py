"""The scripted peer: what it sends, and the text of each failure.

The test itself is at the other end of its stream, in bytes. Real clients and servers are in
`test_play.py`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from mcp_core import ALL, DIALECTS, LATEST
from mcp_trio.testing import ScriptedPeer, memory_pair
from tests.harness.jsonrpc import (
    D,
    E,
    initialize,
    line,
    notification,
    request,
    result,
)
from tests.harness.jsonrpc import error as an_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

META = "io.modelcontextprotocol/"


def pair(version: str = D) -> tuple[ScriptedPeer, trio.abc.HalfCloseableStream]:
    ours, theirs = memory_pair()
    return ScriptedPeer(ours, version), theirs


async def messages_on(stream: trio.abc.Stream) -> list[Any]:
    return [json.loads(each) for each in bytes(await stream.receive_some()).splitlines()]


# --- sending ------------------------------------------------------------------------------------

ASKED = request(7, "tools/call", {"name": "t"})
SAID: list[tuple[Callable[[ScriptedPeer], Awaitable[object]], Any]] = [
    (lambda peer: peer.request("ping"), {"jsonrpc": "2.0", "id": 1, "method": "ping"}),
    (lambda peer: peer.request("a/b", {"c": 1}, id="x"), request("x", "a/b", {"c": 1})),
    (
        lambda peer: peer.notify("notifications/initialized"),
        notification("notifications/initialized"),
    ),
    (lambda peer: peer.notify("a/b", {"c": 1}), notification("a/b", {"c": 1})),
    (lambda peer: peer.answer(ASKED), result(7)),
    (lambda peer: peer.answer(ASKED, {"content": []}), result(7, {"content": []})),
    (lambda peer: peer.send_error(ASKED), an_error(7, -32603, "refused")),
    (lambda peer: peer.send_error(ASKED, -1, "no", data=[1]), an_error(7, -1, "no", data=[1])),
    (lambda peer: peer.send({"a": "ö"}), {"a": "ö"}),
    (lambda peer: peer.send('{"as":"text"}'), {"as": "text"}),
    (lambda peer: peer.send(b'{"as":"bytes"}'), {"as": "bytes"}),
    (lambda peer: peer.send([1, 2]), [1, 2]),
]


@pytest.mark.parametrize(("send", "expected"), SAID)
async def test_peer_sends_each_kind_of_message(
    send: Callable[[ScriptedPeer], Awaitable[object]], expected: Any
) -> None:
    peer, other = pair()
    await send(peer)
    assert await messages_on(other) == [expected]


async def test_peer_sends_several_messages_in_one_write() -> None:
    peer, other = pair()
    await peer.send({"a": 1}, b"no JSON \xff", [])
    assert await other.receive_some() == b'{"a":1}\nno JSON \xff\n[]\n'


async def test_peer_request_ids_are_counted() -> None:
    peer, other = pair()
    first, second = await peer.request("a"), await peer.request("b")
    assert [first, second] == [request(1, "a"), request(2, "b")]
    assert await messages_on(other) == [first, second]


async def test_peer_without_handshake_adds_meta_and_result_type() -> None:
    """A test's own `meta`, `resultType` and client info go before the peer's defaults."""
    peer, other = pair(E)
    peer.meta["com.example/mine"] = 1
    request_sent = await peer.request("tools/call", {"name": "t", "_meta": {"com.example/this": 2}})
    await peer.answer(ASKED, {"content": []})
    await peer.answer(ASKED, {"resultType": "input_required"})
    assert await messages_on(other) == [
        request_sent,
        result(7, {"resultType": "complete", "content": []}),
        result(7, {"resultType": "input_required"}),
    ]
    meta = request_sent["params"]["_meta"]
    assert meta[META + "protocolVersion"] == E
    assert meta[META + "clientInfo"] == {"name": "scripted client", "version": "1"}
    assert set(meta[META + "clientCapabilities"]) == {"roots", "sampling", "elicitation"}
    assert (meta["com.example/mine"], meta["com.example/this"]) == (1, 2)
    await peer.open_as_client({}, {"name": "me", "version": "0"})
    changed = (await peer.request("ping"))["params"]["_meta"]
    assert (changed[META + "clientCapabilities"], changed[META + "clientInfo"]["name"]) == (
        {},
        "me",
    )


def test_peer_has_revision_and_rejects_unknown_one() -> None:
    ours, _ = memory_pair()
    assert repr(ScriptedPeer(ours)) == f"<ScriptedPeer {LATEST}, 0 messages crossed>"
    with pytest.raises(ValueError, match="not a revision of MCP: 1900-01-01"):
        ScriptedPeer(ours, "1900-01-01")


# --- expecting ----------------------------------------------------------------------------------


async def test_peer_expect_returns_the_message() -> None:
    """Each way to expect something takes the next message, one of its kind, and nothing more."""
    peer, other = pair()
    request_sent = await peer.request("tools/list")
    notified = notification("notifications/progress", {"progress": 1})
    later = request("x", "ping")
    answer = result(request_sent["id"], {"tools": []})
    comes: list[Any] = [ASKED, notified, answer, an_error(1, -5, "no", data=1), later, [1]]
    await other.send_all(b"".join(map(line, comes)))
    assert await peer.expect("tools/call", {"name": "t"}) == ASKED
    assert await peer.expect("notifications/progress") == notified
    assert await peer.expect_result(request_sent) == {"tools": []}
    assert await peer.expect_error(request_sent, -5) == {"code": -5, "message": "no", "data": 1}
    assert await peer.receive() == later
    assert await peer.receive_line() == b"[1]"
    await peer.expect_silence()
    assert repr(peer) == f"<ScriptedPeer {D}, 7 messages crossed>"
    await other.aclose()
    assert await peer.receive_line() is None
    await peer.expect_end()


async def test_peer_result_of_sends_and_expects(nursery: trio.Nursery) -> None:
    peer, other = pair()
    nursery.start_soon(other.send_all, line(result(1, {"a": 1})))
    assert await peer.result_of("acme/do", {"b": 2}) == {"a": 1}
    assert await messages_on(other) == [request(1, "acme/do", {"b": 2})]


async def test_peer_reads_messages_in_pieces(nursery: trio.Nursery) -> None:
    peer, other = pair()

    async def dribble() -> None:
        for byte in line(ASKED) * 2:
            await other.send_all(bytes([byte]))

    nursery.start_soon(dribble)
    assert await peer.expect("tools/call") == await peer.expect("tools/call") == ASKED


async def test_peer_iterates_until_the_end() -> None:
    peer, other = pair()
    await other.send_all(line(ASKED) + line(result(1)))
    await other.send_eof()
    assert [message async for message in peer] == [ASKED, result(1)]
    assert [message async for message in peer] == []


WRONG: list[tuple[Any, Callable[[ScriptedPeer], Awaitable[object]], str]] = [
    (ASKED, lambda peer: peer.expect("ping"), "expected ping, got the request tools/call (7)"),
    (
        notification("notifications/cancelled"),
        lambda peer: peer.expect("ping"),
        "expected ping, got the notification notifications/cancelled",
    ),
    (result(3), lambda peer: peer.expect("ping"), "expected ping, got the result of 3"),
    (
        an_error(None, -32700, "bad"),
        lambda peer: peer.expect("ping"),
        'expected ping, got for None the error {"code":-32700,"message":"bad"}',
    ),
    ({"a": 1}, lambda peer: peer.expect("ping"), 'expected ping, got {"a":1}'),
    (
        [1],
        lambda peer: peer.expect("ping"),
        "expected ping, got a line that is not a JSON object: b'[1]'",
    ),
    (
        b"\xff{",
        lambda peer: peer.expect("ping"),
        r"expected ping, got a line that is not a JSON object: b'\xff{'",
    ),
    (
        ASKED,
        lambda peer: peer.expect("tools/call", {"name": "u"}),
        'expected tools/call with {"name":"u"}, got it with {"name":"t"}',
    ),
    (
        request(7, "tools/call"),
        lambda peer: peer.expect("tools/call", {"name": "u"}),
        'expected tools/call with {"name":"u"}, got it with {}',
    ),
    (
        request(7, "tools/call", [1]),
        lambda peer: peer.expect("tools/call", {}),
        "expected tools/call with {}, got it with [1]",
    ),
    (
        ASKED,
        lambda peer: peer.expect_result(request(7, "ping")),
        "expected the result for the request ping (7), got the request tools/call (7)",
    ),
    (
        result("7"),
        lambda peer: peer.expect_result(ASKED),
        "expected the result for the request tools/call (7), got the result of '7'",
    ),
    (
        result(True),
        lambda peer: peer.expect_result(request(1, "ping")),
        "expected the result for the request ping (1), got the result of True",
    ),
    (
        an_error(7),
        lambda peer: peer.expect_result(ASKED),
        (
            "expected the result of the request tools/call (7), got for 7 the error"
            ' {"code":-32000,"message":"no"}'
        ),
    ),
    (
        result(7),
        lambda peer: peer.expect_error(ASKED),
        "expected an error for the request tools/call (7), got the result of 7",
    ),
    (
        an_error(7, -1),
        lambda peer: peer.expect_error(ASKED, -2),
        (
            "expected error -2 for the request tools/call (7), got for 7 the error"
            ' {"code":-1,"message":"no"}'
        ),
    ),
    (
        result(7) | {"error": "none"},
        lambda peer: peer.expect_error(ASKED, -2),
        'expected error -2 for the request tools/call (7), got for 7 the error "none"',
    ),
    (ASKED, lambda peer: peer.expect_silence(), f"expected silence, got {line(ASKED).decode()}"),
    (
        ASKED,
        lambda peer: peer.expect_end(),
        "expected the end of the stream, got the last line of these",
    ),
]


@pytest.mark.parametrize(("comes", "expect", "text"), WRONG)
async def test_peer_unexpected_message_fails_with_both(
    comes: Any, expect: Callable[[ScriptedPeer], Awaitable[object]], text: str
) -> None:
    peer, other = pair()
    await other.send_all(line(comes))
    with pytest.raises(AssertionError, match=f"^{re.escape(text)}"):
        await expect(peer)


TITLE = "\x1b]0;x\x07\u202e\x9b"  # sets a terminal's title, and turns the text around


@pytest.mark.parametrize(
    ("comes", "expect"),
    [
        (request(7, TITLE), lambda peer: peer.expect("ping")),
        (notification(TITLE), lambda peer: peer.expect("ping")),
        (an_error(7, -1, TITLE), lambda peer: peer.expect_result(ASKED)),
        (request(7, "ping", {"name": TITLE}), lambda peer: peer.expect("ping", {"a": 1})),
        (result(1, {"protocolVersion": TITLE}), lambda peer: peer.open_as_client()),
        (TITLE.encode(), lambda peer: peer.expect("ping")),
        (ASKED | {"method": TITLE}, lambda peer: peer.expect_silence()),
    ],
)
async def test_peer_failure_escapes_what_came(
    comes: Any, expect: Callable[[ScriptedPeer], Awaitable[object]]
) -> None:
    """In the sentence and in the transcript: pytest prints both to a terminal."""
    peer, other = pair()
    await other.send_all(comes + b"\n" if isinstance(comes, bytes) else line(comes))
    with pytest.raises(AssertionError) as failure:
        await expect(peer)
    text = str(failure.value)
    assert text.replace("\n", "").isprintable(), text
    assert "x" in text


EXPECTATIONS: list[tuple[Callable[[ScriptedPeer], Awaitable[object]], str]] = [
    (lambda peer: peer.expect("ping"), "ping"),
    (lambda peer: peer.expect_result(ASKED), "the result for the request tools/call (7)"),
    (lambda peer: peer.expect_error(ASKED, 5), "error 5 for the request tools/call (7)"),
    (lambda peer: peer.receive(), "a message"),
    (lambda peer: peer.open_as_server(), "initialize"),
]


@pytest.mark.parametrize(("expect", "wanted"), EXPECTATIONS)
async def test_peer_end_of_stream_fails_with_the_expectation(
    expect: Callable[[ScriptedPeer], Awaitable[object]], wanted: str
) -> None:
    peer, other = pair()
    await other.aclose()
    with pytest.raises(
        AssertionError, match=f"^expected {re.escape(wanted)}, but the stream has ended\n"
    ):
        await expect(peer)
    peer, other = pair()
    await other.send_all(b'{"half')
    await other.send_eof()
    expected = f'^expected {re.escape(wanted)}, but the stream has ended in the middle of {{"half\n'
    with pytest.raises(AssertionError, match=expected):
        await expect(peer)


async def test_peer_expect_silence_sees_buffered_messages() -> None:
    peer, other = pair()
    await other.send_all(line(ASKED) * 2)
    await peer.expect("tools/call")
    with pytest.raises(AssertionError, match="expected silence, got "):
        await peer.expect_silence()


async def test_peer_expect_silence_on_a_closed_stream_raises_without_a_group() -> None:
    peer, _ = pair()
    await peer.stream.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await peer.expect_silence()


async def test_peer_expect_silence_sees_the_end_of_the_stream() -> None:
    peer, other = pair()
    await other.aclose()
    with pytest.raises(AssertionError, match="expected silence, but the stream has ended"):
        await peer.expect_silence()


@pytest.mark.parametrize(
    ("expect", "wanted"),
    [
        *EXPECTATIONS,
        (lambda peer: peer.receive_line(), "a line"),
        (lambda peer: peer.expect_end(), "a line"),
        (lambda peer: peer.__anext__(), "a message or the end of the stream"),
    ],
)
async def test_peer_expect_times_out_under_a_mock_clock(
    expect: Callable[[ScriptedPeer], Awaitable[object]],
    wanted: str,
    autojump_clock: trio.testing.MockClock,
) -> None:
    peer, _ = pair()
    start = trio.current_time()
    expected = f"^expected {re.escape(wanted)}, but nothing came within 3600 s\n"
    with pytest.raises(AssertionError, match=expected):
        await expect(peer)
    assert trio.current_time() - start == pytest.approx(3600)


async def test_peer_expect_times_out_by_a_real_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_trio.testing._peer._TIMEOUT", 0.01)
    peer, _ = pair()
    with pytest.raises(AssertionError, match=r"^expected ping, but nothing came within 0\.01 s"):
        await peer.expect("ping")


async def test_peer_send_times_out(autojump_clock: trio.testing.MockClock) -> None:
    peer, _ = pair()
    with pytest.raises(
        AssertionError, match="could not be sent, for the other end does not read"
    ) as caught:
        await peer.send({"a": "x" * 100_000})
    assert len(str(caught.value)) < 1000


async def test_peer_failure_shows_the_transcript() -> None:
    """A failure shows all that its reader needs: what was expected, and what has crossed."""
    peer, other = pair()
    await other.aclose()
    with pytest.raises(AssertionError) as caught:
        await peer.expect("ping")
    assert str(caught.value).endswith("\nso far (-> sent, <- received):\n  nothing")

    peer, other = pair()
    await peer.request("ping")
    await other.send_all(line(result(1)))
    with pytest.raises(AssertionError) as caught:
        await peer.expect("pong")
    assert str(caught.value).splitlines() == [
        "expected pong, got the result of 1",
        "so far (-> sent, <- received):",
        '  -> {"jsonrpc":"2.0","id":1,"method":"ping"}',
        '  <- {"jsonrpc":"2.0","id":1,"result":{}}',
    ]
    assert peer.transcript == [
        ("sent", b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        ("received", b'{"jsonrpc":"2.0","id":1,"result":{}}'),
    ]


async def test_peer_failure_shows_the_end_of_a_long_transcript() -> None:
    peer, other = pair()
    for _ in range(25):
        await peer.notify("x" * 1000)
    await other.aclose()
    with pytest.raises(AssertionError) as caught:
        await peer.expect("ping")
    lines = str(caught.value).splitlines()
    assert lines[2] == "  ... 5 more before"
    assert len(lines) == 3 + 20
    assert {len(each) for each in lines[3:]} == {len("  -> ") + 300 + len("...")}


async def test_peer_failure_shows_a_transcript_of_twenty_messages_whole() -> None:
    peer, other = pair()
    for _ in range(20):
        await peer.notify("x")
    await other.aclose()
    with pytest.raises(AssertionError) as caught:
        await peer.expect("ping")
    lines = str(caught.value).splitlines()
    assert len(lines) == 2 + 20
    assert "more before" not in str(caught.value)


async def test_peer_aclose_closes_the_stream() -> None:
    peer, other = pair()
    await peer.aclose()
    assert await other.receive_some() == b""


# --- the handshake ------------------------------------------------------------------------------

STATEFUL = [version for version in ALL if DIALECTS[version].stateful]


@pytest.mark.parametrize("version", STATEFUL)
async def test_peer_open_as_client_performs_the_handshake(
    version: str, nursery: trio.Nursery
) -> None:
    """The peer sends what its caller says about the client, and returns the result."""
    peer, other = pair(version)
    opened = {
        "protocolVersion": version,
        "capabilities": {},
        "serverInfo": {"name": "s", "version": "1"},
    }
    nursery.start_soon(other.send_all, line(result(1, opened)))
    assert await peer.open_as_client({}, {"name": "me", "version": "0"}) == opened
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "me", "version": "0"},
    }
    assert await messages_on(other) == [
        request(1, "initialize", params),
        notification("notifications/initialized"),
    ]


async def test_peer_open_as_client_rejects_another_revision() -> None:
    peer, other = pair(D)
    await other.send_all(line(result(1, {"protocolVersion": E})))
    with pytest.raises(AssertionError, match=f"^expected {D} to be accepted, got {E}\n"):
        await peer.open_as_client()


@pytest.mark.parametrize("probed", [False, True])
@pytest.mark.parametrize("version", STATEFUL)
async def test_peer_open_as_server_performs_the_handshake(version: str, probed: bool) -> None:
    peer, other = pair(version)
    handshake = initialize(version, id=5)
    probe = [request("probe", "server/discover")] if probed else []
    await other.send_all(
        b"".join(map(line, [*probe, handshake, notification("notifications/initialized")]))
    )
    assert await peer.open_as_server({"tools": {}}, {"name": "me", "version": "0"}) == handshake
    *refused, answer = await messages_on(other)
    assert [(each["id"], each["error"]["code"]) for each in refused] == [("probe", -32601)] * probed
    opened = {"protocolVersion": version, "capabilities": {"tools": {}}}
    assert answer == result(5, opened | {"serverInfo": {"name": "me", "version": "0"}})


async def test_peer_open_as_server_answers_discover() -> None:
    peer, other = pair(E)
    discovery = request(5, "server/discover", {})
    await other.send_all(line(discovery))
    assert await peer.open_as_server({"tools": {}}, {"name": "me", "version": "0"}) == discovery
    [answer] = await messages_on(other)
    assert answer["result"] == {
        "resultType": "complete",
        "supportedVersions": [E],
        "capabilities": {"tools": {}},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {META + "serverInfo": {"name": "me", "version": "0"}},
    }


@pytest.mark.parametrize(("version", "wanted"), [(D, "initialize"), (E, "server/discover")])
async def test_peer_open_as_server_rejects_other_requests(version: str, wanted: str) -> None:
    peer, other = pair(version)
    await other.send_all(line(ASKED))
    with pytest.raises(AssertionError, match=f"^expected {wanted}, got the request tools/call"):
        await peer.open_as_server()


# --- the defaults -------------------------------------------------------------------------------

CHANGES = {"listChanged": True}
CLIENT_OFFERS = {"roots": CHANGES, "sampling": {}, "elicitation": {}}
SERVER_OFFERS = {
    "tools": CHANGES,
    "resources": {"subscribe": True, **CHANGES},
    "prompts": CHANGES,
    "completions": {},
    "logging": {},
}
CLIENT_INFO = {"name": "scripted client", "version": "1"}
SERVER_INFO = {"name": "scripted server", "version": "1"}


async def test_peer_declares_all_capabilities_by_default() -> None:
    """So that a real end uses each of them. Both kinds of revision have the same."""
    peer, other = pair(D)
    await other.send_all(line(result(1, {"protocolVersion": D})))
    await peer.open_as_client()
    params = {
        "protocolVersion": D,
        "capabilities": CLIENT_OFFERS,
        "clientInfo": CLIENT_INFO,
    }
    assert (await messages_on(other))[0] == request(1, "initialize", params)

    peer, other = pair(D)
    initialized = notification("notifications/initialized")
    await other.send_all(line(initialize(D, id=5)) + line(initialized))
    await peer.open_as_server()
    opened = {"protocolVersion": D, "capabilities": SERVER_OFFERS, "serverInfo": SERVER_INFO}
    assert await messages_on(other) == [result(5, opened)]

    peer, other = pair(E)
    sent = await peer.request("ping")
    assert sent["params"]["_meta"] == {
        META + "protocolVersion": E,
        META + "clientInfo": CLIENT_INFO,
        META + "clientCapabilities": CLIENT_OFFERS,
    }
    assert await peer.open_as_client() == {}
    assert (await peer.request("ping"))["params"] == sent["params"]

    peer, other = pair(E)
    await other.send_all(line(request(5, "server/discover", {})))
    await peer.open_as_server()
    [answer] = await messages_on(other)
    assert answer["result"]["capabilities"] == SERVER_OFFERS
    assert answer["result"]["_meta"] == {META + "serverInfo": SERVER_INFO}


async def test_peer_open_as_server_refuses_one_probe_only() -> None:
    """The probe of a client may come once: after the error it has to initialize."""
    peer, other = pair(D)
    probe = request("probe", "server/discover")
    await other.send_all(line(probe) + line(probe))
    with pytest.raises(AssertionError, match=r"^expected initialize, got the request server/disc"):
        await peer.open_as_server()
    [refused] = await messages_on(other)
    assert refused == an_error("probe", -32601, "Method not found")


class JumpingClock(trio.abc.Clock):
    """Goes to the next deadline whenever all tasks wait, and is no mock clock for the peer."""

    def __init__(self) -> None:
        self._now = 0.0

    def start_clock(self) -> None: ...

    def current_time(self) -> float:
        return self._now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        if deadline < float("inf"):
            self._now = max(self._now, deadline)
        return 0.0 if deadline <= self._now else 1.0


@pytest.fixture
def jumping_clock() -> JumpingClock:
    return JumpingClock()


@pytest.mark.parametrize(
    "use", [lambda peer: peer.expect("ping"), lambda peer: peer.send({"a": "x" * 100_000})]
)
async def test_peer_waits_twenty_seconds_of_a_real_clock(
    use: Callable[[ScriptedPeer], Awaitable[object]], jumping_clock: JumpingClock
) -> None:
    peer, _ = pair()
    with pytest.raises(AssertionError):
        await use(peer)
    assert jumping_clock.current_time() == pytest.approx(20)


@pytest.mark.parametrize("count", [300, 301])
async def test_peer_failure_shows_three_hundred_characters_of_a_line(count: int) -> None:
    peer, other = pair()
    await other.send_all(b"x" * count + b"\n")
    await peer.receive_line()
    await other.aclose()
    with pytest.raises(AssertionError) as caught:
        await peer.receive()
    cut = "..." if count > 300 else ""
    assert str(caught.value).splitlines()[-1] == f"  <- {'x' * 300}{cut}"
