"""A URL as a target of the fuzzer."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import h11
import pytest
import trio

from mcp_core.trace import TraceLine, read_trace
from mcp_trio.oracle.fuzz._http import UrlTarget
from mcp_trio.oracle.fuzz.play._player import Player, play_case
from mcp_trio.recording._open import open_recorder

from .memory_http import (
    EMPTY_STREAM,
    SSE,
    HttpResponse,
    MemoryHttpServer,
    played_over_http,
    response_to,
)
from .memory_target import META, NEW, OLD

if TYPE_CHECKING:
    from pathlib import Path

    from mcp_trio.oracle.fuzz._case import Case

URL = "http://127.0.0.1:1/mcp"
OPEN = ("open", OLD, "whole", "all")


async def test_header_has_pseudonyms_of_this_run() -> None:
    """With a key that is known, a pseudonym could be guessed."""
    async with trio.open_nursery() as nursery:
        shown = {UrlTarget(f"{URL}?code=12345678", nursery).header().target for _ in range(3)}
        nursery.cancel_scope.cancel()
    assert len(shown) == 3
    assert not any("12345678" in each for each in shown)


async def test_sessions_are_recorded_as_conversations(autojump_clock: Any, tmp_path: Path) -> None:
    """Otherwise the two sessions' equal ids would look like a fault of the server."""
    path = tmp_path / "x.mcp.jsonl"
    async with (
        open_recorder(path, "client", "http", [URL]) as recorder,
        trio.open_nursery() as nursery,
    ):
        target = UrlTarget(URL, nursery)
        target.recorder = recorder
        target._connector = MemoryHttpServer(nursery, response_to)  # type: ignore[assignment]
        for _ in range(2):
            await play_case(target, [OPEN, ("request", "ping", {}, "int", "whole")], Player())
        nursery.cancel_scope.cancel()
    _, lines = read_trace([path.read_bytes()])
    found = [line for _, line in lines if isinstance(line, TraceLine)]
    pings = [line for line in found if line.raw is not None and '"ping"' in line.raw]
    assert len({line.conversation for line in pings}) == 2
    exchanges = [line.exchange for line in found if line.http is not None and line.http.method]
    assert exchanges == sorted(set(exchanges))


async def test_rate_holds_for_each_request_of_a_connection(autojump_clock: Any) -> None:
    times: list[float] = []

    def respond(message: Any) -> Any:
        times.append(trio.current_time())
        return response_to(message)

    async with trio.open_nursery() as nursery:
        target = UrlTarget(URL, nursery, rate=20)
        target._connector = MemoryHttpServer(nursery, respond)  # type: ignore[assignment]
        await play_case(target, [OPEN, ("unread", 80)], Player())
        nursery.cancel_scope.cancel()
    assert len(times) > 60
    assert all(later - time > 0.049 for time, later in itertools.pairwise(times))


async def test_request_is_recorded_before_what_the_server_does_about_it(
    autojump_clock: Any,
) -> None:
    """A call that is cancelled ends with 202, at once and on another connection."""
    is_cancelled = trio.Event()

    def respond(message: Any) -> HttpResponse:
        match message.get("method"):
            case "tools/list":
                return HttpResponse(202, after=is_cancelled)
            case "notifications/cancelled":
                is_cancelled.set()
        return response_to(message)

    class SlowToReturn(MemoryHttpServer):
        async def connect_stream(self) -> Any:
            stream: Any = await super().connect_stream()
            deliver = stream.send_stream.send_all_hook

            async def deliver_and_wait() -> None:
                await deliver()
                await trio.sleep(0.1)

            stream.send_stream.send_all_hook = deliver_and_wait
            return stream

    case: Case = [
        OPEN,
        ("request", "tools/list", {}),
        ("page", "prompts/list", "first"),
        ("cancel", 0),
    ]
    async with trio.open_nursery() as nursery:
        target = UrlTarget(URL, nursery)
        target._connector = SlowToReturn(nursery, respond)  # type: ignore[assignment]
        outcome = await play_case(target, case, Player())
        nursery.cancel_scope.cancel()
    assert outcome.faults == []


async def test_request_is_posted_before_its_cancellation(autojump_clock: Any) -> None:
    """The case does not wait between the two, and one connection is ready."""

    def respond(message: Any) -> HttpResponse:
        is_call = message.get("method") == "tools/call"
        return HttpResponse(202) if is_call else response_to(message)

    case: Case = [OPEN, ("request", "tools/call", {"name": "t"}), ("cancel", 0)]
    async with trio.open_nursery() as nursery:
        target = UrlTarget(URL, nursery)
        server = MemoryHttpServer(nursery, respond)
        target._connector = server  # type: ignore[assignment]
        await play_case(target, case, Player())
        nursery.cancel_scope.cancel()
    methods = [each.get("method") for each in server.received]
    assert methods.index("tools/call") < methods.index("notifications/cancelled")


class StayingStreams(MemoryHttpServer):
    """A server whose streams have a head, and no event and no end."""

    async def _send(self, connection: Any, stream: Any, response: HttpResponse) -> None:
        if response is not EMPTY_STREAM:
            await super()._send(connection, stream, response)
            return
        headers = [("content-type", SSE), ("transfer-encoding", "chunked")]
        await stream.send_all(connection.send(h11.Response(status_code=200, headers=headers)))
        await trio.sleep_forever()


async def test_case_goes_on_once_its_stream_is_open(autojump_clock: Any) -> None:
    """The head is enough: a stream may have no event for hours."""
    times: list[float] = []

    def respond(message: Any) -> HttpResponse:
        times.append(trio.current_time())
        return response_to(message) if message else EMPTY_STREAM

    async with trio.open_nursery() as nursery:
        target = UrlTarget(URL, nursery)
        server = StayingStreams(nursery, respond)
        target._connector = server  # type: ignore[assignment]
        await play_case(target, [OPEN, ("get", "stream"), ("request", "ping", {})], Player())
        nursery.cancel_scope.cancel()
    at = server.received.index({})
    assert server.received[at + 1].get("method") == "ping"
    assert times[at + 1] - times[at] < 1


# -- The version of a request ----------------------------------------------------------------------

VERSION = META + "protocolVersion"


async def headers_of(revision: str, step: tuple[Any, ...]) -> list[str | None]:
    """Return the version in the header of each request for the tools."""
    case: Case = [("open", revision, "whole", "all"), step, ("wait",)]
    outcome, _ = await played_over_http(response_to, case)
    sent = [each for each in outcome.lines if each.sender == "client" and each.http is not None]
    return [
        dict(each.http.headers).get("mcp-protocol-version")
        for each in sent
        if each.http is not None and "tools/list" in str(each.raw)
    ]


@pytest.mark.parametrize(
    ("named", "header"),
    [
        *(("1999-12-31", "1999-12-31"), ("latest", "latest"), ("2199-01-01", "2199-01-01")),
        # A revision with a handshake would need a session. Others aren't values of a header.
        *((OLD, NEW), (NEW, NEW), ("", NEW), (7, NEW), (None, NEW)),
        *(("caf\xe9", NEW), (" a", NEW), ("a\nb", NEW)),
    ],
)
async def test_header_names_the_version_of_its_message(
    autojump_clock: Any, named: Any, header: str
) -> None:
    step = ("request", "tools/list", {"_meta": {VERSION: named}}, "int", "absent")
    assert await headers_of(NEW, step) == [header]


async def test_header_of_a_session_names_the_version_of_its_handshake(autojump_clock: Any) -> None:
    step = ("request", "tools/list", {"_meta": {VERSION: "1999-12-31"}}, "int")
    assert await headers_of(OLD, step) == [OLD]


async def test_head_with_another_version_differs_from_its_message(autojump_clock: Any) -> None:
    assert await headers_of(NEW, ("head", "version", "tools/list", {})) == ["1999-12-31"]


async def test_request_of_an_unknown_version_that_is_served_is_found(autojump_clock: Any) -> None:
    """With another version in the header, a server must refuse it for that: nothing was judged."""

    def respond(message: Any) -> HttpResponse:
        if message.get("method") != "tools/list":
            return response_to(message)
        result = {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}
        body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return HttpResponse(body=json.dumps(body).encode())

    case: Case = [
        ("open", NEW, "whole", "all"),
        ("request", "tools/list", {}, "int", "old"),
        ("wait",),
    ]
    outcome, _ = await played_over_http(respond, case)
    found = {each.row: each.is_certain for each in outcome.faults}
    assert (found.get("VER-1"), found.get("SHM-4")) == (True, True)


@pytest.mark.parametrize(
    ("revision", "session", "message", "named"),
    [
        ("", None, {"method": "initialize"}, {}),
        (OLD, "s", {"method": "initialize"}, {"mcp-session-id": "s"}),
        (
            OLD,
            "s",
            {"method": "ping"},
            {"mcp-session-id": "s", "mcp-protocol-version": OLD},
        ),
        (OLD, None, None, {"mcp-protocol-version": OLD}),
        (
            NEW,
            None,
            {"method": "tools/list", "params": [1]},
            {"mcp-protocol-version": NEW, "mcp-method": "tools/list"},
        ),
        (
            NEW,
            None,
            {"method": "tools/call", "params": {"name": "add", "arguments": {"a": "b"}}},
            {
                "mcp-protocol-version": NEW,
                "mcp-method": "tools/call",
                "mcp-name": "add",
                "mcp-param-region": "b",
            },
        ),
        (
            NEW,
            None,
            {"method": "prompts/get", "params": {"name": "add", "arguments": {"a": "b"}}},
            {"mcp-protocol-version": NEW, "mcp-method": "prompts/get", "mcp-name": "add"},
        ),
        (
            NEW,
            None,
            {"method": "tools/call", "params": {"name": 5, "arguments": {"a": "b"}}},
            {"mcp-protocol-version": NEW, "mcp-method": "tools/call"},
        ),
    ],
)
async def test_headers_are_those_of_the_revision_and_the_message(
    revision: str, session: str | None, message: Any, named: dict[str, str]
) -> None:
    """Only a call of a listed tool repeats its arguments. What isn't a tool teaches nothing."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string", "x-mcp-header": "Region"}},
    }
    async with trio.open_nursery() as nursery:
        target = UrlTarget(URL, nursery, headers={"X-Own": "1"})
        strange: list[Any] = [{"name": 5, "inputSchema": schema}, {"name": "b"}]
        target.learn_tools([*strange, {"name": "add", "inputSchema": schema}])
        assert target.mirrored.keys() == {"add"}
        found = await target.open()
        found.revision = revision
        found.session_id = None if session is None else session.encode()
        headers = {
            name.decode().lower(): value.decode() for name, value in found.headers_for(message)
        }
        await found.aclose()
        nursery.cancel_scope.cancel()
    assert headers == {
        "host": "127.0.0.1:1",
        "accept": "application/json, text/event-stream",
        "x-own": "1",
        **named,
    }


@pytest.mark.parametrize(
    ("revision", "named", "version"),
    [
        (NEW, "1999-12-31", "1999-12-31"),
        (NEW, OLD, NEW),  # one with a handshake would be another request
        (NEW, "", NEW),
        (NEW, " 1999", NEW),
        (NEW, "1999\n", NEW),
        (NEW, "\u00e4", NEW),
        (NEW, 5, NEW),
        (OLD, "1999-12-31", OLD),
    ],
)
async def test_version_of_the_header_is_that_of_the_message(
    revision: str, named: Any, version: str
) -> None:
    async with trio.open_nursery() as nursery:
        session = await UrlTarget(URL, nursery).open()
        session.revision = revision
        meta = {"_meta": {META + "protocolVersion": named}}
        headers = dict(session.headers_for({"method": "ping", "params": meta}))
        assert headers[b"mcp-protocol-version"] == version.encode()
        await session.aclose()
        nursery.cancel_scope.cancel()
