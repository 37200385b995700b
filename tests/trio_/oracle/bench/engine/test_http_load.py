"""The lean engine over HTTP, with stand-ins that answer well and badly."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest
import trio
import trio.testing

from mcp_core import ConnectFailed
from mcp_trio.http_client._connector import Connector
from mcp_trio.oracle.bench import _tally
from mcp_trio.oracle.bench._process import NoMeter
from mcp_trio.oracle.bench._requests import Mix, PreparedCall
from mcp_trio.oracle.bench._turn import Pace, TargetGone
from mcp_trio.oracle.bench.engine import _http_load, _http_reader
from mcp_trio.oracle.bench.engine._direct_stream import DirectStream
from mcp_trio.oracle.bench.engine._http_load import HttpConnection, is_refused
from mcp_trio.oracle.bench.engine._load import Address
from tests.harness.jsonrpc import D, E
from tests.trio_.oracle.bench.stand_ins import (
    ECHO,
    PING,
    RESULTS,
    URL,
    AnswerReader,
    HttpRequest,
    http_load,
    result,
)

ONE = Pace(None, 1)


async def answer(request: HttpRequest) -> None:
    await trio.sleep(0.01)
    await request.respond(result(request.message))


async def never_answer(request: HttpRequest) -> None:
    await trio.sleep_forever()


# -- Measures ------------------------------------------------------------------------------------


async def test_closed_loop_calls_one_after_the_other(autojump_clock: Any) -> None:
    async with http_load(answer) as (load, stand_in):
        turn = await load.turn(Mix([ECHO]), Pace(None, 4), 0.2)
    assert turn.sent == turn.answered == 80
    assert turn.rate == pytest.approx(400, rel=0.02)
    assert turn.histogram.percentile(50) == pytest.approx(0.01, rel=0.03)
    assert turn.histogram.longest == pytest.approx(0.01)
    assert (turn.failed, turn.late, len(turn.slowest)) == (0, 0, 5)
    assert turn.tenths == pytest.approx([8] * 10, abs=4)
    assert stand_in.connections == 4


@pytest.mark.parametrize("pace", [Pace(None, 4), Pace(200, 4, even=True)])
async def test_turn_that_is_cut_has_what_was_answered(pace: Pace, autojump_clock: Any) -> None:
    """Calls without a response aren't counted, nor are those that no caller has taken."""
    async with http_load(answer) as (load, server), trio.open_nursery() as nursery:
        assert not load.cut()
        turns = []

        async def play() -> None:
            turns.append(await load.turn(Mix([ECHO]), pace, 60.0))

        nursery.start_soon(play)
        await trio.sleep(0.055)
        server.handle = never_answer
        await trio.sleep(0.2)
        assert load.cut()
        await trio.testing.wait_all_tasks_blocked()
        [turn] = turns
        assert turn.is_cut
        assert turn.sent == turn.answered > 10
        assert turn.seconds == pytest.approx(0.255, rel=0.02)
        assert turn.unfinished == (4 if pace.rate is None else pytest.approx(51 - turn.sent, abs=2))
        server.handle = answer
        assert not load.cut()
        assert (await load.turn(Mix([ECHO]), ONE, 0.05)).answered >= 4


@pytest.mark.parametrize("even", [True, False])
async def test_open_loop_sends_at_its_rate(autojump_clock: Any, even: bool) -> None:
    async with http_load(answer) as (load, _):
        turn = await load.turn(Mix([ECHO]), Pace(20, 8, even=even), 5.0)
    assert turn.answered == (100 if even else pytest.approx(100, rel=0.3))
    assert turn.histogram.longest == pytest.approx(0.01)
    assert turn.late == 0


async def test_open_loop_overload_counts_latency_from_intended_start(autojump_clock: Any) -> None:
    """One connection makes 100 calls a second; of 200 each waits longer than the one before."""
    async with http_load(answer, timeout=30.0) as (load, _):
        turn = await load.turn(Mix([ECHO]), Pace(200, 1, even=True), 0.25)
    assert turn.answered == 50
    assert turn.late == pytest.approx(48, abs=2)
    assert turn.histogram.longest == pytest.approx(0.25, rel=0.05)
    assert turn.seconds == pytest.approx(0.5, rel=0.02)
    assert turn.rate == pytest.approx(100, rel=0.02)


async def test_open_loop_overload_beyond_timeout_counts_timeouts(autojump_clock: Any) -> None:
    async with http_load(answer, timeout=0.05) as (load, _):
        turn = await load.turn(Mix([ECHO]), Pace(200, 1, even=True), 0.25)
    assert turn.sent == 50 == turn.answered + turn.timeouts
    assert turn.timeouts > 15
    assert turn.histogram.longest < 0.06


class Stalling:
    """Serves one call at a time in 20 ms, and stalls for 100 ms each second."""

    def __init__(self) -> None:
        self.lock = trio.Lock()

    async def __call__(self, request: HttpRequest) -> None:
        async with self.lock:
            if trio.current_time() % 1.0 < 0.1:
                await trio.sleep(0.1 - trio.current_time() % 1.0)
            await trio.sleep(0.02)
        await request.respond(result(request.message))


async def test_stalls_are_in_p96_of_open_loop_and_not_of_closed_loop(autojump_clock: Any) -> None:
    """A closed loop makes no calls while the target stalls, so it hides the stall."""
    work = Mix([ECHO])
    async with http_load(Stalling()) as (load, _):
        closed = await load.turn(work, ONE, 1.0)
        opened = await load.turn(work, Pace(25, 16, even=True), 1.0)
    assert closed.histogram.percentile(96) < 0.021
    assert opened.histogram.percentile(96) > 0.08
    assert opened.histogram.percentile(50) < 0.021


async def test_work_that_reads_answers_gets_the_decoded_response(autojump_clock: Any) -> None:
    """It gets an error, too, and None for what isn't a JSON-RPC response."""
    work = AnswerReader()

    async def handle(request: HttpRequest) -> None:
        if request.message["params"]["after"] == 2:
            await request.respond({"id": request.message["id"], "error": {"code": -1}})
        elif request.message["params"]["after"] == 3:
            await request.respond([1])
        else:
            await answer(request)

    async with http_load(handle) as (load, _):
        turn = await load.turn(work, ONE, 2.0)
    assert work.seen[0] is None
    assert work.seen[1]["result"] == {"content": []}
    assert work.seen[2]["error"] == {"code": -1}
    assert work.seen[3] is None
    assert (turn.answered, turn.errors) == (2, {"-1": 1, "no response": 1})


async def test_time_to_think_ends_with_the_turn(autojump_clock: Any) -> None:
    async with http_load(answer) as (load, _):
        began = trio.current_time()
        turn = await load.turn(Mix([PreparedCall("ping", None, "ping", think=60.0)]), ONE, 0.5)
        assert turn.answered == 1
        assert trio.current_time() - began == pytest.approx(0.5)


# -- Handshakes ----------------------------------------------------------------------------------


async def test_modern_requests_have_meta_and_mirrored_headers(autojump_clock: Any) -> None:
    """Headers repeat the method, the tool and the argument that its schema names."""
    schema = {"properties": {"where": {"type": "string", "x-mcp-header": "Region"}}}
    tools = [{"name": "near", "inputSchema": {"type": "object", **schema}}, {"name": 5}]
    call = PreparedCall(
        "tools/call", {"name": "near", "arguments": {"where": "Zürich"}, "_meta": {"x": 1}}, "near"
    )

    async def handle(request: HttpRequest) -> None:
        value = {"tools": tools} if request.message["method"] == "tools/list" else None
        await request.respond(result(request.message, value))

    address = Address("http://127.0.0.1:1/mcp?x=1", {"Authorization": "Bearer t"})
    async with http_load(handle, era=None, handles_all=True, address=address) as (load, stand_in):
        await load.ask("tools/call", call.params)
    assert (load.revision, load.server) == (E, "stand-in 1")
    request = stand_in.requests[-1]
    assert request.path == "/mcp?x=1"
    assert request.message["params"]["_meta"]["x"] == 1
    assert request.message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == E
    headers = request.headers
    assert headers["mcp-protocol-version"] == E
    assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "near")
    assert headers["mcp-param-region"] == "=?base64?WsO8cmljaA==?="
    assert headers["authorization"] == "Bearer t"
    assert "mcp-session-id" not in headers
    assert stand_in.requests[-1].method == "POST"  # there is no session to end


async def test_sessions_are_one_for_each_caller_and_are_deleted(autojump_clock: Any) -> None:
    async with http_load(answer, era=D, session="s-1") as (load, stand_in):
        await load.turn(Mix([PING]), Pace(None, 3), 0.1)
    methods = [request.message.get("method", request.method) for request in stand_in.requests]
    assert methods.count("initialize") == methods.count("notifications/initialized") == 3
    assert methods[-3:] == ["DELETE"] * 3
    first, *others = stand_in.requests
    assert "mcp-protocol-version" not in first.headers
    for request in others:
        if request.message.get("method") != "initialize":
            assert request.headers["mcp-protocol-version"] == D
            assert request.headers["mcp-session-id"] == "s-1"


async def test_load_that_is_closed_leaves_no_connection_open(autojump_clock: Any) -> None:
    async with http_load(answer) as (load, stand_in):
        await load.turn(Mix([PING]), Pace(None, 3), 0.1)
        assert stand_in.open_connections == 3
        await load.aclose()
        await trio.testing.wait_all_tasks_blocked()
        assert stand_in.open_connections == 0


async def test_session_that_has_ended_is_begun_again(autojump_clock: Any) -> None:
    """The third call has HTTP 404, and those after it have a session again."""
    answered = 0

    async def handle(request: HttpRequest) -> None:
        nonlocal answered
        answered += 1
        if answered == 3:
            await request.respond({"error": "no session"}, status=404)
        else:
            await answer(request)

    async with http_load(handle, era=D, session="s-1") as (load, stand_in):
        turn = await load.turn(Mix([PING]), ONE, 0.1)
    assert turn.errors == {"HTTP 404": 1}
    assert turn.answered > 5
    assert sum(each.message.get("method") == "initialize" for each in stand_in.requests) == 2


async def test_server_of_earlier_revision_is_asked_to_initialize(autojump_clock: Any) -> None:
    async def handle(request: HttpRequest) -> None:
        if request.message.get("method") == "server/discover":
            await request.respond({"error": {"code": -32000, "message": "no session"}}, status=400)
        elif "id" in request.message:
            await request.respond(result(request.message))
        else:
            await request.respond(status=202)

    async with http_load(handle, era=None, handles_all=True) as (load, _):
        assert load.revision == D


@pytest.mark.parametrize("status", [404, 405])
async def test_server_at_root_without_endpoint_is_tried_at_mcp(
    autojump_clock: Any, status: int
) -> None:
    async def handle(request: HttpRequest) -> None:
        if request.path == "/":
            await request.respond({"detail": "Not Found"}, status=status)
        else:
            await request.respond(result(request.message))

    address = Address("http://127.0.0.1:1")
    async with http_load(handle, era=None, handles_all=True, address=address) as (load, stand_in):
        assert load.revision == E
    assert stand_in.requests[-1].path == "/mcp"


@pytest.mark.parametrize(("path", "status"), [("/", 500), ("/", 401), ("/rpc", 404)])
async def test_server_that_refuses_otherwise_is_tried_nowhere_else(
    autojump_clock: Any, path: str, status: int
) -> None:
    paths = []

    async def handle(request: HttpRequest) -> None:
        paths.append(request.path)
        await request.respond({"detail": "x"}, status=status)

    address = Address(f"http://127.0.0.1:1{path}")
    with pytest.raises(ConnectFailed, match=f"HTTP {status}"):
        async with http_load(handle, era=D, handles_all=True, address=address):
            pass
    assert paths == [path]


@pytest.mark.parametrize(
    ("status", "more", "problem"),
    [
        (401, "", "needs a login .HTTP 401.; give a token by --token-env, or"),
        (403, "", "needs a login .HTTP 403.; give a token by --token-env, or"),
        (404, "", "responds with HTTP 404; is the path right"),
        (405, "", "responds with HTTP 405; is the path right"),
        (400, "", "responds with HTTP 400$"),
        (500, "", "responds with HTTP 500$"),
        (300, "Location: https://x.test/\r\n", "redirects to https://x.test/; give that URL"),
        (307, "Location: https://x.test/\r\n", "redirects to https://x.test/; give that URL"),
        (307, f"Location: https://x.test/{'a' * 300}\r\n", f"test/{'a' * 185}; give that URL"),
        (200, "", "isn't JSON-RPC; is that an MCP server"),
    ],
)
async def test_handshake_that_fails_names_cause_and_cure(
    autojump_clock: Any, status: int, more: str, problem: str
) -> None:
    async def handle(request: HttpRequest) -> None:
        await request.respond({"detail": "x"}, status=status, more=more)

    with pytest.raises(ConnectFailed, match=problem):
        async with http_load(handle, era=None, handles_all=True):
            pass


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        ({"error": {"code": -32602, "message": "bad"}}, "responds with the error -32602: bad"),
        ({"error": {"message": "bad"}}, "responds with HTTP 400$"),
        ({"error": "bad"}, "responds with HTTP 400$"),
        ({"result": {"protocolVersion": 5}}, "isn't JSON-RPC; is that an MCP server"),
    ],
)
async def test_handshake_refused_by_json_rpc_has_the_error(
    autojump_clock: Any, found: dict[str, Any], problem: str
) -> None:
    """A response that is JSON-RPC says more than its status."""

    async def handle(request: HttpRequest) -> None:
        await request.respond({"id": request.message["id"], **found}, status=400)

    with pytest.raises(ConnectFailed, match=problem):
        async with http_load(handle, era=D, handles_all=True):
            pass


@pytest.mark.parametrize(
    ("era", "problem"),
    [
        (D, f"cannot speak {D} with it: it speaks {E}, which is unknown here"),
        ("2020-01-01", "there is no revision '2020-01-01'"),
        (None, f"it speaks {E}, which is unknown here"),
    ],
)
async def test_handshake_with_another_revision_fails(
    autojump_clock: Any, era: str | None, problem: str
) -> None:
    async def handle(request: HttpRequest) -> None:
        await request.respond(result(request.message, {"protocolVersion": E}))

    with pytest.raises(ConnectFailed, match=problem):
        async with http_load(handle, era=era, handles_all=True):
            pass


async def test_server_slow_to_discover_is_asked_to_initialize(autojump_clock: Any) -> None:
    """It runs already, so it isn't waited for as long as a program that starts."""
    seconds = {"server/discover": 6.0, "initialize": 2.0}

    async def handle(request: HttpRequest) -> None:
        await trio.sleep(seconds.get(request.message.get("method", ""), 0.0))
        if "id" in request.message:
            await request.respond(result(request.message))
        else:
            await request.respond(status=202)

    async with http_load(handle, era=None, handles_all=True, timeout=10) as (load, _):
        assert load.revision == D


async def test_handshake_without_response_fails_in_time(autojump_clock: Any) -> None:
    began = trio.current_time()
    with pytest.raises(ConnectFailed, match="did not respond to initialize within 10 s"):
        async with http_load(never_answer, era=None, handles_all=True, timeout=10):
            pass
    assert trio.current_time() - began == pytest.approx(15)


async def test_time_to_connect_is_no_time_of_a_response(autojump_clock: Any) -> None:
    async with http_load(answer, era=None, connect_time=6.0) as (load, _):
        assert load.revision == E


async def test_time_to_connect_has_a_limit(autojump_clock: Any) -> None:
    began = trio.current_time()
    with pytest.raises(ConnectFailed, match="no connection within 10 s"):
        async with http_load(answer, connect_time=60.0, timeout=100.0):
            pass
    assert trio.current_time() - began == pytest.approx(10)


@pytest.mark.parametrize("headers", [{}, {"User-Agent": "x"}])
@pytest.mark.parametrize("era", [D, E])
async def test_requests_have_the_headers_of_their_method(
    autojump_clock: Any, era: str, headers: dict[str, str]
) -> None:
    """The handshake's own are left out: those of `initialize` have no session yet."""
    address = Address("http://127.0.0.1:1/mcp", headers)
    async with http_load(answer, era=era, session="s-1", address=address) as (load, stand_in):
        assert load.first_lines(None, b"").count(b"User-Agent: ") == 1
        await load.ask("ping")
        await load.ask("tools/list")
    *_, call, listing, last = stand_in.requests if era == D else [*stand_in.requests, None]
    common = {"host": "127.0.0.1:1", "user-agent": "mcp-trio-bench"}
    common |= {name.lower(): value for name, value in headers.items()}
    common["mcp-protocol-version"] = era
    if era == D:
        common["mcp-session-id"] = "s-1"
        assert last is not None
        assert (last.method, last.headers) == ("DELETE", common)
    media = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
    for request in (call, listing):
        assert request is not None
        names = set(request.headers) - {"content-length", "mcp-method"}
        assert {name: request.headers[name] for name in names} == common | media


@pytest.mark.parametrize(
    ("era", "capabilities", "lists"),
    [(D, {"tools": {}}, 0), (E, {"tools": {}}, 1), (E, {"prompts": {}}, 0)],
)
async def test_tools_are_listed_if_headers_repeat_their_arguments(
    autojump_clock: Any, era: str, capabilities: Any, lists: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    methods = ("initialize", "server/discover")
    for method in methods:
        found = {**RESULTS[method], "capabilities": capabilities}
        monkeypatch.setitem(RESULTS, method, found)
    async with http_load(answer, era=era) as (_, stand_in):
        pass
    sent = [request.message.get("method") for request in stand_in.requests]
    assert sent.count("tools/list") == lists
    assert sent.count("initialize") == (era == D)


TOOL = {
    "name": "near",
    "inputSchema": {"properties": {"where": {"type": "string", "x-mcp-header": "Region"}}},
}


@pytest.mark.parametrize(
    ("pages", "cursors", "is_found"),
    [
        ([{"tools": [TOOL]}], [None], True),
        ([{"tools": [], "nextCursor": "2"}, {"tools": [TOOL]}], [None, "2"], True),
        ([{"tools": [TOOL], "nextCursor": 5}], [None], True),
        ([{"tools": [TOOL], "nextCursor": "2"}, {"tools": 5}], [None, "2"], True),
        ([{"tools": 5, "nextCursor": "2"}], [None], False),
        ([5], [None], False),
        ([{"tools": [TOOL], "nextCursor": "x"}] * 30, [None, *["x"] * 19], True),
    ],
)
async def test_pages_of_tools_are_read_until_one_is_the_last(
    autojump_clock: Any, pages: list[Any], cursors: list[Any], is_found: bool
) -> None:
    """At most twenty. A page that isn't one ends the list, and is for the report of the calls."""
    asked: list[Any] = []

    async def handle(request: HttpRequest) -> None:
        value = None
        if request.message["method"] == "tools/list":
            asked.append(request.message["params"].get("cursor"))
            value = pages[len(asked) - 1]
        await request.respond(result(request.message, value))

    async with http_load(handle, handles_all=True) as (load, _):
        assert ("near" in load.mirrored) is is_found
    assert asked == cursors


async def test_session_in_a_revision_without_sessions_is_ignored(autojump_clock: Any) -> None:
    async with http_load(answer, era=E, session="s-1") as (load, stand_in):
        await load.turn(Mix([PING]), Pace(None, 2), 0.1)
    assert not any("mcp-session-id" in request.headers for request in stand_in.requests)
    assert {request.method for request in stand_in.requests} == {"POST"}


async def test_further_sessions_that_fail_are_tried_in_small_numbers(autojump_clock: Any) -> None:
    """The server isn't gone: the connections that it has stay open, and it can be called again."""
    async with http_load(answer, era=D, session="s-1") as (load, stand_in):

        async def handle(request: HttpRequest) -> None:
            await trio.sleep(0.01)
            await request.respond({"detail": "busy"}, status=503)

        stand_in.handle, stand_in.handles_all = handle, True
        with pytest.raises(ConnectFailed, match=r"HTTP 503; 1 of 40 connections are") as failed:
            await load.turn(Mix([PING]), Pace(None, 40), 0.1)
        assert not isinstance(failed.value, TargetGone)
        assert stand_in.connections == 17
        await trio.testing.wait_all_tasks_blocked()
        assert stand_in.open_connections == 1
        stand_in.handle, stand_in.handles_all = answer, False
        assert (await load.turn(Mix([PING]), Pace(None, 2), 0.03)).answered > 3
        assert (await load.turn(Mix([PING]), ONE, 0.03)).answered > 1
        assert stand_in.open_connections == 2


@pytest.mark.parametrize("headers", [{"X": "a\r\nHost: b"}, {"X\r\n": "a"}])
async def test_header_with_a_line_end_raises(autojump_clock: Any, headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="no header may have"):
        async with http_load(answer, address=Address("http://127.0.0.1:1/", headers)):
            pass


# -- Bad targets ---------------------------------------------------------------------------------


async def send_http_error(request: HttpRequest) -> None:
    await request.respond({"detail": "busy"}, status=503)


async def send_code_with_status(request: HttpRequest) -> None:
    error = {"code": -32602, "message": "x"}
    await request.respond({"id": request.message["id"], "error": error}, status=400)


async def send_rpc_error(request: HttpRequest) -> None:
    await request.respond({"id": request.message["id"], "error": {"code": -32601}})


async def send_error_without_id(request: HttpRequest) -> None:
    await request.respond({"id": None, "error": {"code": -32700}})


async def send_tool_error(request: HttpRequest) -> None:
    await request.respond(result(request.message, {"content": [], "isError": True}))


async def send_question(request: HttpRequest) -> None:
    await request.respond(result(request.message, {"resultType": "input_required"}))


async def send_wrong_id(request: HttpRequest) -> None:
    await request.respond({"id": 5, "result": {}})


async def send_text(request: HttpRequest) -> None:
    await request.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")


async def send_garbage(request: HttpRequest) -> None:
    await request.write(b"\x00\x01\x02 garbage\r\n\r\n")


async def send_wrong_chunk(request: HttpRequest) -> None:
    await request.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")


async def send_half(request: HttpRequest) -> None:
    await request.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"id":')
    await request.stream.aclose()


async def send_stream_without_response(request: HttpRequest) -> None:
    await request.begin_stream()
    await request.event({"method": "notifications/message", "params": {}})
    await request.end_stream()


async def send_without_end(request: HttpRequest) -> None:
    await request.write(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        await request.write(b"x" * 10_000)


async def send_head_without_end(request: HttpRequest) -> None:
    while True:
        await request.write(b"HTTP/1.1 200 OK" * 1000)


@pytest.mark.parametrize(
    ("handle", "cause"),
    [
        (send_http_error, "HTTP 503"),
        (send_code_with_status, "-32602"),
        (send_rpc_error, "-32601"),
        (send_error_without_id, "-32700"),
        (send_tool_error, "isError"),
        (send_question, "input_required"),
        (send_wrong_id, "wrong id"),
        (send_text, "no JSON"),
        (send_garbage, "no HTTP"),
        (send_wrong_chunk, "no HTTP"),
        (send_half, "closed"),
        (send_stream_without_response, "no JSON"),
        (send_without_end, "too large"),
        (send_head_without_end, "too large"),
    ],
)
async def test_bad_response_counts_as_an_error_and_never_as_a_latency(
    autojump_clock: Any, handle: Any, cause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Good and bad responses alternate, so a connection must be usable after a bad one."""
    monkeypatch.setattr(_http_reader, "MAX_RESPONSE", 100_000)
    number = 0

    async def alternate(request: HttpRequest) -> None:
        nonlocal number
        number += 1
        await trio.sleep(0.01)
        await (handle if number % 2 else answer)(request)

    async with http_load(alternate) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.2)
    assert turn.errors.keys() == {cause}
    assert turn.errors[cause] == pytest.approx(turn.answered, abs=1)
    assert turn.answered == turn.histogram.count > 5
    assert turn.sent == turn.answered + turn.failed


@pytest.mark.parametrize("era", [D, E])
@pytest.mark.parametrize("handle", [send_half, send_garbage, send_without_end])
async def test_handshake_that_breaks_names_the_url(
    autojump_clock: Any, handle: Any, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_http_reader, "MAX_RESPONSE", 100_000)
    with pytest.raises(ConnectFailed, match=f"{URL}: "):
        async with http_load(handle, era=era, handles_all=True):
            pass


@pytest.mark.parametrize("handle", [send_half, send_garbage, send_without_end, never_answer])
async def test_session_that_does_not_begin_names_the_url(
    autojump_clock: Any, handle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has responded to `initialize`, but takes no notification."""
    monkeypatch.setattr(_http_reader, "MAX_RESPONSE", 100_000)

    async def begin(request: HttpRequest) -> None:
        if request.message.get("method") == "initialize":
            await request.respond(result(request.message))
        else:
            await handle(request)

    with pytest.raises(ConnectFailed, match=f"{URL}: "):
        async with http_load(begin, era=D, handles_all=True):
            pass


@pytest.mark.parametrize(
    ("handle", "problem"),
    [
        (send_half, "the connection ended before the response"),
        (send_garbage, "no response to ping: "),
        (send_without_end, "the response is larger than "),
        (send_text, "the response to ping isn't JSON-RPC"),
    ],
)
async def test_request_outside_a_turn_that_fails_names_the_cause(
    autojump_clock: Any, handle: Any, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_http_reader, "MAX_RESPONSE", 100_000)
    async with http_load(handle) as (load, _):
        with pytest.raises(ConnectFailed, match=problem) as failed:
            await load.ask("ping")
        assert not isinstance(failed.value, TargetGone)


async def test_request_outside_a_turn_without_a_connection_fails(autojump_clock: Any) -> None:
    """The target is gone if no one listens, and else it may only be slow."""

    async def handle(request: HttpRequest) -> None:
        await request.stream.aclose()

    async with http_load(handle, timeout=100.0) as (load, stand_in):
        stand_in.connect_time = 60.0
        with pytest.raises(ConnectFailed, match="no connection within 10 s") as failed:
            await load.ask("ping")
        assert not isinstance(failed.value, TargetGone)
        stand_in.connect_time, stand_in.is_refusing = 0.0, True
        with pytest.raises(TargetGone, match="refused"):
            await load.ask("ping")


async def test_call_without_a_connection_counts_an_error(autojump_clock: Any) -> None:
    async def handle(request: HttpRequest) -> None:
        await trio.sleep(0.1)
        await request.stream.aclose()

    async with http_load(handle, timeout=100.0) as (load, stand_in):
        stand_in.handle, stand_in.connect_time = handle, 60.0
        turn = await load.turn(Mix([PING]), ONE, 0.05)
    assert (turn.sent, turn.errors) == (1, {"no connection": 1})


@pytest.mark.parametrize("handle", [send_half, send_garbage, send_without_end, never_answer, None])
async def test_session_that_cannot_be_deleted_is_left(
    autojump_clock: Any, handle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends it in its own time. It is waited for a second."""
    monkeypatch.setattr(_http_reader, "MAX_RESPONSE", 100_000)
    async with http_load(answer, era=D, session="s-1") as (load, stand_in):
        if handle is None:
            await load._connections[0].drop()
            stand_in.is_refusing = True
        stand_in.handle, stand_in.handles_all = handle, True
        began = trio.current_time()
        await load.aclose()
        took = trio.current_time() - began
    assert took == pytest.approx(1.0 if handle is never_answer else 0.0)


@pytest.mark.parametrize(
    "rest", [b"zz\r\n", b"5\r\nevent\r\n0\r\n\r\nmore", b"f4240\r\n" + b"x" * 200_000, None]
)
async def test_stream_that_breaks_after_the_response_ends_its_connection_alone(
    autojump_clock: Any, rest: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call is answered, and the next one has another connection."""
    monkeypatch.setattr(_http_reader, "MAX_RESPONSE", 100_000)

    async def handle(request: HttpRequest) -> None:
        await request.begin_stream()
        await request.event(result(request.message))
        await trio.sleep(0.01)
        if rest is not None:
            await request.write(rest)
        else:
            await request.stream.aclose()

    async with http_load(handle) as (load, stand_in):
        turn = await load.turn(Mix([PING]), ONE, 0.095)
    assert (turn.answered, turn.failed) == (10, 0)
    assert stand_in.connections == pytest.approx(10, abs=1)


async def test_connection_is_kept_after_one_that_the_server_would_close(
    autojump_clock: Any,
) -> None:
    async def handle(request: HttpRequest) -> None:
        await trio.sleep(0.01)
        more = "Connection: close\r\n" if stand_in.connections == 1 else ""
        await request.respond(result(request.message), more=more)

    async with http_load(handle) as (load, stand_in):
        turn = await load.turn(Mix([PING]), ONE, 0.095)
    assert (turn.answered, turn.failed, stand_in.connections) == (10, 0, 2)


@pytest.mark.parametrize("handle", [send_http_error, send_garbage])
async def test_call_that_fails_late_lowers_the_rate(autojump_clock: Any, handle: Any) -> None:
    async def slow(request: HttpRequest) -> None:
        stand_in.handle = fail
        await answer(request)

    async def fail(request: HttpRequest) -> None:
        await trio.sleep(0.99)
        await handle(request)

    async with http_load(slow) as (load, stand_in):
        turn = await load.turn(Mix([PING]), ONE, 0.05)
    assert (turn.answered, turn.failed) == (1, 1)
    assert turn.seconds == pytest.approx(1.0)
    assert turn.rate == pytest.approx(1.0)


@pytest.mark.parametrize(("think", "asks"), [(0.4, 1), (0.6, 4)])
async def test_connection_idle_for_half_a_second_may_be_stale(
    autojump_clock: Any, think: float, asks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is then replaced before the call, rather than after it."""
    asked = 0

    def is_stale(connection: HttpConnection) -> bool:
        nonlocal asked
        asked += 1
        return asked > 1

    monkeypatch.setattr(HttpConnection, "is_stale", is_stale)
    await trio.sleep(1.0)  # the clock begins at 0, when no connection was used
    async with http_load(answer) as (load, stand_in):
        work = Mix([PreparedCall("ping", None, "ping", think=think)])
        turn = await load.turn(work, ONE, 4 * (think + 0.01) - 0.1)
    assert (turn.answered, asked, stand_in.connections) == (4, asks, asks)


async def test_target_that_closes_without_a_response_counts_errors(autojump_clock: Any) -> None:
    """A call that fails on a kept-alive connection is sent again once, and no more."""

    async def handle(request: HttpRequest) -> None:
        await trio.sleep(0.1)
        await request.stream.aclose()

    async with http_load(handle) as (load, stand_in):
        turn = await load.turn(Mix([ECHO]), ONE, 1.0)
    assert (turn.answered, turn.errors["closed"], turn.sent) == (0, turn.sent, turn.failed)
    assert len(stand_in.requests) == turn.sent + 3  # the handshake, and the second attempt


async def test_error_that_only_decoding_shows_is_found_by_samples(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have one length. Once a sample is an error, all responses of it are decoded."""
    monkeypatch.setattr(_tally, "_SAMPLED", 6)
    number = 0

    async def handle(request: HttpRequest) -> None:
        nonlocal number
        number += 1
        await trio.sleep(0.02)
        value = {"resultType": "mistaken" if number > 10 and number % 2 else "complete"}
        await request.respond(result(request.message, value))

    async with http_load(handle) as (load, _):
        first = await load.turn(Mix([ECHO]), ONE, 0.6)
        second = await load.turn(Mix([ECHO]), ONE, 0.4)
    assert first.errors["mistaken"] >= 1
    assert first.sent == first.answered + first.failed
    assert (second.answered, second.errors["mistaken"]) == (second.sent / 2, second.sent / 2)


def _is_error(message: Any) -> Any:
    return result(message, {"text": "bad!", "isError": True})


def _error(message: Any) -> Any:
    error = {"code": -5, "message": "x" * 12}
    return {"jsonrpc": "2.0", "id": message["id"], "error": error}


def _wrong_id(message: Any) -> Any:
    return result({**message, "id": message["id"] + 1}, {"text": "fine", "isError": False})


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("bad", "cause"), [(_is_error, "isError"), (_error, "-5"), (_wrong_id, "wrong id")]
)
async def test_every_error_of_the_length_of_a_result_is_counted(
    autojump_clock: Any, bad: Any, cause: str, is_stream: bool
) -> None:
    """Samples alone would find one in a hundred."""
    number = 0

    async def handle(request: HttpRequest) -> None:
        nonlocal number
        number += 1
        await trio.sleep(0.01)
        good = json.dumps(result(request.message, {"text": "fine", "isError": False}))
        answer = bad(request.message) if number > 4 and number % 2 else json.loads(good)
        answer |= {"pad": "x" * (len(good) - len(json.dumps(answer)))}
        if is_stream:
            await request.begin_stream()
            await request.event(answer)
            await request.end_stream()
        else:
            await request.respond(answer)

    async with http_load(handle) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.395)
    assert turn.sent == 40
    assert turn.errors == {cause: 18}
    assert turn.answered == turn.histogram.count == 22


async def test_response_to_another_call_is_found_at_once(autojump_clock: Any) -> None:
    """It has the length of a result, so the samples alone would find it late."""
    number = 0

    async def handle(request: HttpRequest) -> None:
        nonlocal number
        number += 1
        await trio.sleep(0.01)
        id = request.message["id"]
        await request.respond({**result(request.message), "id": id if number <= 2 else id - 1})

    async with http_load(handle) as (load, _):
        turn = await load.turn(Mix([ECHO]), ONE, 0.1)
    assert (turn.answered, turn.errors["wrong id"]) == (2, turn.sent - 2)


async def test_target_without_response_counts_timeouts(autojump_clock: Any) -> None:
    async with http_load(never_answer, timeout=0.3) as (load, stand_in):
        turn = await load.turn(Mix([ECHO]), Pace(None, 2), 1.0)
    assert (turn.sent, turn.timeouts, turn.answered) == (8, 8, 0)
    assert turn.histogram.count == 0
    assert turn.rate == 0.0
    assert stand_in.connections == 8


async def test_target_that_answers_slowly_byte_by_byte_is_measured(autojump_clock: Any) -> None:
    async def handle(request: HttpRequest) -> None:
        body = json.dumps(result(request.message)).encode()
        data = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
        for byte in data:
            await request.write(bytes([byte]))
            await trio.sleep(0.001)

    async with http_load(handle) as (load, _):
        turn = await load.turn(Mix([PING]), ONE, 0.3)
    assert turn.failed == 0
    assert turn.histogram.percentile(50) == pytest.approx(0.095, rel=0.1)


@pytest.mark.parametrize("head", ["HTTP/1.1 200 OK\r\nConnection: close", "HTTP/1.0 200 OK"])
async def test_target_that_closes_each_connection_is_measured(
    autojump_clock: Any, head: str
) -> None:
    async def handle(request: HttpRequest) -> None:
        body = json.dumps(result(request.message)).encode()
        await trio.sleep(0.01)
        await request.write(head.encode() + b"\r\n\r\n" + body)
        await request.stream.aclose()

    async with http_load(handle) as (load, stand_in):
        turn = await load.turn(Mix([PING]), ONE, 0.3)
    assert (turn.failed, turn.answered) == (0, 30)
    assert stand_in.connections == pytest.approx(30, abs=2)


async def test_kept_alive_connection_that_was_closed_is_replaced(autojump_clock: Any) -> None:
    """A server closes idle connections; a call on one of them is sent again."""

    async def handle(request: HttpRequest) -> None:
        await answer(request)
        await request.stream.aclose()

    async with http_load(handle) as (load, stand_in):
        turn = await load.turn(Mix([PING]), ONE, 0.5)
    assert (turn.failed, turn.answered) == (0, 50)
    assert stand_in.connections == pytest.approx(50, abs=1)


async def test_event_stream_that_ends_late_counts_into_no_call(autojump_clock: Any) -> None:
    """The latency ends with the event; the next call waits for the stream's end."""

    async def handle(request: HttpRequest) -> None:
        await request.begin_stream()
        await request.event({"method": "notifications/progress", "params": {"progress": 1}})
        await trio.sleep(0.01)
        await request.event(result(request.message))
        await trio.sleep(0.09)
        await request.end_stream()

    async with http_load(handle) as (load, stand_in):
        turn = await load.turn(Mix([PING]), ONE, 0.95)
    assert (turn.failed, turn.answered) == (0, 10)
    assert turn.histogram.longest == pytest.approx(0.01)
    assert turn.drain == pytest.approx(0.09)
    assert stand_in.connections == 1


async def test_event_stream_without_end_is_closed(autojump_clock: Any) -> None:
    async def handle(request: HttpRequest) -> None:
        await request.begin_stream()
        await request.event(result(request.message))
        await trio.sleep_forever()

    async with http_load(handle) as (load, stand_in):
        turn = await load.turn(Mix([PING]), ONE, 3.0)
    assert (turn.failed, turn.answered) == (0, 3)
    assert stand_in.connections == pytest.approx(3, abs=1)


async def test_requests_of_the_server_are_answered(autojump_clock: Any) -> None:
    """Without the answers the call would wait for them."""
    answers: dict[Any, Any] = {}
    came = trio.Event()

    async def handle(request: HttpRequest) -> None:
        if "method" not in request.message:
            answers[request.message["id"]] = request.message
            await request.respond(status=202)
            if len(answers) == 2:
                came.set()
            return
        await request.begin_stream()
        await request.event({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await request.event({"jsonrpc": "2.0", "id": "x", "method": "sampling/createMessage"})
        await came.wait()
        await request.event(result(request.message))
        await request.end_stream()

    async def route(request: HttpRequest) -> None:
        method = request.message.get("method")
        if method == "initialize":
            await request.respond(result(request.message), more="Mcp-Session-Id: s\r\n")
        elif method == "notifications/initialized" or request.method == "DELETE":
            await request.respond(status=202)
        else:
            await handle(request)

    async with http_load(route, era=D, handles_all=True) as (load, stand_in):
        found = await load.ask("tools/call", ECHO.params)
    assert found["result"] == {"content": []}
    assert answers[1]["result"] == {}
    assert answers["x"]["error"]["code"] == -32601
    assert {each.headers.get("mcp-session-id") for each in stand_in.requests[2:]} == {"s"}


@pytest.mark.parametrize("handle", [send_half, send_garbage, send_without_end, None])
async def test_answer_to_the_server_that_fails_is_lost_alone(
    autojump_clock: Any, handle: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call that it belongs to goes on."""
    monkeypatch.setattr(_http_reader, "MAX_RESPONSE", 100_000)

    async def call(request: HttpRequest) -> None:
        if "method" not in request.message:
            await handle(request)
            return
        await request.begin_stream()
        stand_in.is_refusing = handle is None
        await request.event({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await trio.sleep(1.0)
        await request.event(result(request.message))
        await request.end_stream()

    async with http_load(call, handles_all=False) as (load, stand_in):
        stand_in.handles_all = True
        assert (await load.ask("ping"))["result"] == {"content": []}
        await trio.testing.wait_all_tasks_blocked()
        assert stand_in.open_connections == 1


async def test_answers_to_the_server_are_limited_in_number_and_time(autojump_clock: Any) -> None:
    """64 of a hundred requests are answered; if no answer is taken, each is closed after 5 s."""
    opened = []

    async def handle(request: HttpRequest) -> None:
        if "method" not in request.message:
            await request.stream.receive_some()  # b"" at its end
            return
        await request.begin_stream()
        for _ in range(2):
            for number in range(100):
                await request.event({"jsonrpc": "2.0", "id": number, "method": "ping"})
            await trio.sleep(4.9)
            opened.append(stand_in.open_connections - 1)
            await trio.sleep(0.2)
            opened.append(stand_in.open_connections - 1)
        await request.event(result(request.message))
        await request.end_stream()

    async with http_load(handle, timeout=60.0) as (load, stand_in):
        stand_in.handles_all = True
        await load.ask("ping")
    assert opened == [64, 0, 64, 0]


@pytest.mark.parametrize(
    ("host", "ports"), [("127.0.0.1", [1]), ("localhost", [1]), ("x.test", [])]
)
async def test_only_a_target_on_this_machine_is_measured(
    autojump_clock: Any, host: str, ports: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []

    def meter(port: int) -> NoMeter:
        found.append(port)
        return NoMeter()

    monkeypatch.setattr(_http_load, "ListenerMeter", meter)
    async with http_load(answer, address=Address(f"http://{host}:1/mcp")):
        assert found == ports


@pytest.mark.parametrize(("platform", "is_direct"), [("linux", True), ("win32", False)])
async def test_socket_is_read_directly_except_on_windows(
    autojump_clock: Any, monkeypatch: pytest.MonkeyPatch, platform: str, is_direct: bool
) -> None:
    ours, theirs = map(trio.SocketStream, trio.socket.socketpair())
    async with http_load(answer) as (load, _), ours, theirs:

        async def connect(_: Connector) -> trio.SocketStream:
            return ours

        monkeypatch.setattr(_http_load, "sys", SimpleNamespace(platform=platform))
        with patch.object(Connector, "connect_stream", connect):
            assert isinstance(await load.connect(), DirectStream) is is_direct


def _caused(exc: BaseException, cause: BaseException) -> BaseException:
    exc.__cause__ = cause
    return exc


@pytest.mark.parametrize(
    ("exc", "refused"),
    [
        (ConnectionRefusedError(), True),
        (OSError(), False),
        (_caused(ConnectFailed("x"), _caused(OSError(), ConnectionRefusedError())), True),
        (_caused(ConnectFailed("x"), OSError()), False),
        (ExceptionGroup("x", [OSError(), ConnectionRefusedError()]), True),
        (_caused(OSError(), ExceptionGroup("x", [OSError(), OSError()])), False),
        (_caused(ExceptionGroup("x", [OSError()]), ConnectionRefusedError()), False),
    ],
)
def test_refused_connection_is_found_below_other_errors(exc: BaseException, refused: bool) -> None:
    assert is_refused(exc) is refused


@pytest.mark.parametrize("callers", [2, 5])
async def test_first_failure_of_further_connections_is_shown(
    autojump_clock: Any, callers: int
) -> None:
    async with http_load(answer, era=D) as (load, stand_in):
        refusals = iter([503, 500, 500, 500])

        async def handle(request: HttpRequest) -> None:
            status = next(refusals)
            await trio.sleep(0.01 if status == 503 else 0.02)
            await request.respond({"detail": "busy"}, status=status)

        stand_in.handle, stand_in.handles_all = handle, True
        with pytest.raises(ConnectFailed, match=f"HTTP 503; 1 of {callers} connections are open"):
            await load.turn(Mix([PING]), Pace(None, callers), 0.1)


async def test_fault_while_connections_are_opened_is_no_refusal(autojump_clock: Any) -> None:
    async with http_load(answer) as (load, _):

        async def connect(_: Connector) -> trio.abc.Stream:
            raise RuntimeError("a fault")

        with (
            patch.object(Connector, "connect_stream", connect),
            pytest.raises(ExceptionGroup) as failed,
        ):
            await load.turn(Mix([PING]), Pace(None, 2), 0.1)
        assert failed.group_contains(RuntimeError)


async def test_target_that_refuses_connections_is_gone(autojump_clock: Any) -> None:
    """The turn ends, and what it has measured isn't lost."""
    async with http_load(answer) as (load, stand_in):

        async def handle(request: HttpRequest) -> None:
            await answer(request)
            if len(stand_in.requests) > 20:
                stand_in.is_refusing = True
                await request.stream.aclose()

        stand_in.handle = handle
        with pytest.raises(TargetGone, match="refused") as gone:
            await load.turn(Mix([PING]), Pace(None, 2), 10.0)
        assert gone.value.turn is not None
        assert gone.value.turn.answered >= 18
        assert gone.value.turn.errors["closed"] >= 1
        assert gone.value.turn.sent == gone.value.turn.answered + gone.value.turn.failed
        assert gone.value.turn.seconds < 1
        with pytest.raises(TargetGone, match="refused"):
            await load.turn(Mix([PING]), Pace(None, 3), 10.0)


async def test_address_that_refuses_connections_fails(autojump_clock: Any) -> None:
    with pytest.raises(ConnectFailed, match="refused"):
        async with http_load(answer, is_refusing=True):
            pass


@pytest.mark.parametrize("streams", [True, False])
async def test_cancelled_turn_leaves_the_load_usable(autojump_clock: Any, streams: bool) -> None:
    """A response that comes after the cancellation belongs to no later call."""

    async def handle(request: HttpRequest) -> None:
        if streams:
            await request.begin_stream()
            await request.event(result(request.message))
        await trio.sleep(0.3)
        await (request.end_stream() if streams else request.respond(result(request.message)))

    async with http_load(handle, timeout=100) as (load, stand_in):
        with trio.move_on_after(0.7) as scope:
            await load.turn(Mix([PING]), Pace(None, 2), 10.0)
        assert scope.cancelled_caught
        turn = await load.turn(Mix([PING]), Pace(None, 2), 0.5)
    assert (turn.answered, turn.failed, stand_in.connections) == (4, 0, 4)
    assert turn.histogram.shortest == pytest.approx(1e-6 if streams else 0.3)


async def test_request_without_response_outside_a_turn_fails(autojump_clock: Any) -> None:
    async with http_load(never_answer, timeout=2.0) as (load, _):
        with pytest.raises(ConnectFailed, match="no response to ping: no response in time"):
            await load.ask("ping")
