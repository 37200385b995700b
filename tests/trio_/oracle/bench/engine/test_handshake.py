"""The handshake of a load, with a server that is a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ConnectFailed
from mcp_trio.oracle.bench.engine._handshake import DISCOVER_TIMEOUT, negotiate, server_name
from mcp_trio.oracle.bench.engine._templates import INFO
from tests.harness.jsonrpc import C, D, E

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import Dialect
    from mcp_trio.oracle.bench.engine._handshake import Ask

    Answer = Callable[[], Any]

META = "io.modelcontextprotocol/serverInfo"
NAME = {"name": "stand-in", "version": "1"}
TOOLS: dict[str, Any] = {"tools": {}}
NO_METHOD = {"error": {"code": -32601, "message": "no\x1b such"}}


def discovered(*versions: str, **members: Any) -> dict[str, Any]:
    """Return a response to `server/discover`."""
    result = {"supportedVersions": list(versions), "capabilities": TOOLS, "_meta": {META: NAME}}
    return {"result": {**result, **members}}


def initialized(version: Any, **members: Any) -> dict[str, Any]:
    """Return a response to `initialize`."""
    result = {"protocolVersion": version, "capabilities": TOOLS, "serverInfo": NAME}
    return {"result": {**result, **members}}


class DecidedServer:
    """A server with one response to each method; None isn't JSON. `sent` has what it was asked.

    A method's response comes after its time in `seconds`, by default at once.
    """

    def __init__(self, seconds: dict[str, float] | None = None, **responses: Any) -> None:
        self._responses = responses
        self._seconds = seconds or {}
        self.sent: list[tuple[str, str, float]] = []
        self.params: dict[str, Any] = {}

    async def ask(self, dialect: Dialect, method: str, params: dict[str, Any]) -> Any:
        name = method.rpartition("/")[2]
        self.sent.append((name, dialect.version, trio.current_time()))
        self.params[name] = params
        await trio.sleep(self._seconds.get(name, 0.0))
        response = self._responses.get(name, NO_METHOD)
        if isinstance(response, Exception):
            raise response
        return response


@pytest.mark.parametrize(
    ("era", "responses", "found"),
    [
        (None, {"discover": discovered(E)}, E),
        (None, {"discover": discovered(D, E)}, E),
        (E, {"discover": discovered(E)}, E),
        (None, {"initialize": initialized(D)}, D),
        (None, {"initialize": initialized(C)}, C),  # the server selects an older one
        (None, {"discover": discovered("2099-01-01"), "initialize": initialized(D)}, D),
        (None, {"discover": None, "initialize": initialized(D)}, D),
        (None, {"discover": {"result": {}}, "initialize": initialized(D)}, D),
        (D, {"discover": discovered(E), "initialize": initialized(D)}, D),
        (C, {"initialize": initialized(C)}, C),
    ],
)
@pytest.mark.parametrize("beside", [False, True])
async def test_revision_is_the_newest_that_both_speak_or_the_only_one_asked_for(
    era: str | None, responses: Any, found: str, beside: bool, autojump_clock: Any
) -> None:
    """Its name and what it can do are known then, whichever request has shown it."""
    server = DecidedServer(**responses)
    handshake = await negotiate(server.ask, era, 30.0, beside=beside)
    assert handshake.dialect.version == found
    assert (handshake.server, handshake.capabilities) == ("stand-in 1", TOOLS)
    methods = [method for method, _, _ in server.sent]
    stateful = [] if found == E else ["initialize"]
    assert methods == ([] if era not in (None, E) else ["discover"]) + stateful
    if stateful:
        asked_for = era or D
        assert server.sent[-1][1] == asked_for
        assert server.params["initialize"] == {
            "protocolVersion": asked_for,
            "capabilities": {},
            "clientInfo": INFO,
        }


@pytest.mark.parametrize(
    ("era", "responses", "problem"),
    [
        ("new", {}, "there is no revision 'new'; there are 2026-07-28, 2025-11-25, "),
        (E, {"discover": discovered(D)}, f"cannot speak {E} with it: it speaks {D}"),
        (E, {}, "it responds with the error -32601: no\\u001b such"),
        (E, {"discover": None}, "its response isn't JSON-RPC; is that an MCP server?"),
        (E, {"discover": {"result": {}}}, "its response isn't JSON-RPC"),
        (E, {"discover": [1]}, "its response isn't JSON-RPC"),
        (D, {}, f"cannot speak {D} with it: it responds with the error -32601"),
        (D, {"initialize": initialized(C)}, f"it speaks {C}; try --era {C}"),
        (D, {"initialize": initialized(E)}, f"it speaks {E}, which is unknown here"),
        (D, {"initialize": initialized("1\x1b")}, "it speaks 1\\u001b, which is unknown here"),
        (D, {"initialize": initialized(7)}, "its response isn't JSON-RPC"),
        (D, {"initialize": None}, "its response isn't JSON-RPC"),
        (None, {"discover": None}, "cannot speak MCP with it: it responds with the error -32601"),
    ],
)
async def test_server_that_does_not_speak_the_revision_is_an_error(
    era: str | None, responses: Any, problem: str, autojump_clock: Any
) -> None:
    with pytest.raises(ConnectFailed) as caught:
        await negotiate(DecidedServer(**responses).ask, era, 30.0)
    assert problem in str(caught.value)


@pytest.mark.parametrize("method", ["discover", "initialize"])
@pytest.mark.parametrize("beside", [False, True])
async def test_lost_connection_is_raised_as_it_is(
    method: str, beside: bool, autojump_clock: Any
) -> None:
    """Nothing more is asked on it."""
    lost = ConnectFailed("refused")
    server = DecidedServer(None, **{method: lost})
    with pytest.raises(ConnectFailed) as caught:
        await negotiate(server.ask, None, 30.0, beside=beside)
    assert caught.value is lost
    asked = ["discover", "initialize"] if method == "initialize" else ["discover"]
    assert [name for name, *_ in server.sent] == asked


@pytest.mark.parametrize(
    ("seconds", "beside", "found", "initialized_at"),
    [
        # It may not know `server/discover`, so the wait for its response is short.
        ({"discover": 6.0}, False, D, DISCOVER_TIMEOUT),
        ({"discover": 4.0}, False, E, None),
        # A program that is still starting responds to both, first to the first.
        ({"discover": 6.0, "initialize": 2.0}, True, E, DISCOVER_TIMEOUT),
        ({"discover": 9.0, "initialize": 2.0}, True, D, DISCOVER_TIMEOUT),
        ({"discover": 4.0}, True, E, None),
    ],
)
async def test_slow_response_to_discover_may_be_overtaken(
    seconds: dict[str, float],
    beside: bool,
    found: str,
    initialized_at: float | None,
    autojump_clock: Any,
) -> None:
    server = DecidedServer(seconds, discover=discovered(E), initialize=initialized(D))
    began = trio.current_time()
    handshake = await negotiate(server.ask, None, 60.0, beside=beside)
    assert handshake.dialect.version == found
    times = [time - began for method, _, time in server.sent if method == "initialize"]
    assert times == pytest.approx([] if initialized_at is None else [initialized_at])


@pytest.mark.parametrize(
    ("era", "timeout", "beside", "waited", "problem"),
    [
        (None, 3.0, False, 6.0, "did not respond to initialize within 3 s"),
        (None, 60.0, False, 65.0, "did not respond to initialize within 60 s"),
        (None, 60.0, True, 65.0, "did not respond to initialize within 60 s"),
        (E, 60.0, False, 60.0, "did not respond to server/discover within 60 s"),
        (E, 60.0, True, 60.0, "did not respond to server/discover within 60 s"),
        (D, 60.0, False, 60.0, "did not respond to initialize within 60 s"),
    ],
)
async def test_silent_server_is_an_error_after_the_timeout_of_each_request(
    era: str | None,
    timeout: float,
    beside: bool,
    waited: float,
    problem: str,
    autojump_clock: Any,
) -> None:
    ask: Ask = DecidedServer({"discover": 999.0, "initialize": 999.0}).ask
    began = trio.current_time()
    with pytest.raises(ConnectFailed, match=problem):
        await negotiate(ask, era, timeout, beside=beside)
    assert trio.current_time() - began == pytest.approx(waited)


async def test_capabilities_and_name_that_are_no_objects_are_empty(autojump_clock: Any) -> None:
    odd = discovered(E, capabilities=[], _meta=7)
    handshake = await negotiate(DecidedServer(discover=odd).ask, E, 1.0)
    assert (handshake.server, handshake.capabilities) == ("", {})


@pytest.mark.parametrize(
    ("info", "name"),
    [
        (None, ""),
        ({}, ""),
        ({"name": "a"}, "a"),
        ({"name": 5, "version": "2"}, "2"),
        ({"name": "a\x1b[2J", "version": "2"}, "a\\u001b[2J 2"),
        ({"name": "n" * 99, "version": "22"}, "n" * 99 + " "),
    ],
)
def test_server_name_is_short_and_without_control_characters(info: Any, name: str) -> None:
    assert server_name(info) == name
