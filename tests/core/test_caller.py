"""`Caller` and `Waiter`: a client without a runtime. Here a call is carried by a test that waits for nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import (
    ALL,
    Caller,
    CallOptions,
    ConnectionLost,
    Listing,
    LocalProtocolError,
    PeerError,
    ProgressReceived,
    Waiter,
    __version__,
    client_config,
)
from mcp_core import types as t
from tests.core.helpers import D, E, Message, Talk, only, result

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine


class Told(Waiter):
    """Counts what it is told."""

    def __init__(self, options: CallOptions) -> None:
        super().__init__(options)
        self.told: list[str] = []

    def wake(self) -> None:
        self.told.append("wake")

    def prolong(self) -> None:
        self.told.append("prolong")


class Asked(Caller):
    """Keeps what it is asked to ask, and gets `answer` for it."""

    answer: Any = None

    def __init__(self, version: str) -> None:
        super().__init__(client_config([version]))
        self.asked: list[tuple[str, Any, CallOptions]] = []
        self.conn = self._conn
        self.ask = self._ask

    async def _call(self, method: str, params: Any, options: CallOptions) -> Any:
        self.asked.append((method, params, options))
        return self.answer

    async def _list(self, listing: Listing[Any], options: CallOptions) -> list[Any]:
        while listing.wanted:
            listing.take(await self._call(listing.method, listing.params, options))
        return listing.items


def opened(version: str) -> tuple[Asked, Talk]:
    caller = Asked(version)
    talk = Talk(caller.conn)
    talk.conn.open(0.0)
    asked = only(talk.says())
    opened: Message = {"capabilities": {"tools": {}}}
    if version == D:
        opened |= {"protocolVersion": D, "serverInfo": {"name": "s", "version": "1"}}
    else:
        opened |= {"supportedVersions": [version], "resultType": "complete"}
    talk.hears(result(asked["id"], opened))
    talk.says()
    return caller, talk


def value(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """The value of a coroutine that never waits."""
    with pytest.raises(StopIteration) as caught:
        coroutine.send(None)
    return caught.value.value


CALLS: list[tuple[Callable[[Caller], Coroutine[Any, Any, Any]], str, Any]] = [
    (lambda caller: caller.call_tool("t", timeout=1), "tools/call", {"name": "t"}),
    (lambda caller: caller.call_tool("t", {}, timeout=1), "tools/call", {"name": "t", "arguments": {}}),
    (lambda caller: caller.read_resource("x:y", timeout=1), "resources/read", {"uri": "x:y"}),
    (lambda caller: caller.get_prompt("p", timeout=1), "prompts/get", {"name": "p"}),
    (
        lambda caller: caller.get_prompt("p", {"a": "b"}, timeout=1),
        "prompts/get",
        {"name": "p", "arguments": {"a": "b"}},
    ),
    (lambda caller: caller.request("acme/x", {"a": 1}, timeout=1), "acme/x", {"a": 1}),
    (lambda caller: caller.request("acme/x", timeout=1), "acme/x", None),
    (lambda caller: caller.ping(timeout=1), "ping", None),
]


@pytest.mark.parametrize(("call", "method", "params"), CALLS)
def test_a_call(call: Callable[[Caller], Coroutine[Any, Any, Any]], method: str, params: Any) -> None:
    caller, _ = opened(D)
    caller.answer = object()
    assert value(call(caller)) is caller.answer
    assert caller.asked == [(method, params, {"timeout": 1})]


def test_a_ping_without_a_ping() -> None:
    caller, _ = opened(E)
    value(caller.ping())
    assert caller.asked == [("server/discover", None, {})]


@pytest.mark.parametrize(
    ("call", "method", "page"),
    [
        (Caller.list_tools, "tools/list", t.ListToolsResult(tools=[])),
        (Caller.list_resources, "resources/list", t.ListResourcesResult(resources=[])),
        (
            Caller.list_resource_templates,
            "resources/templates/list",
            t.ListResourceTemplatesResult(resource_templates=[]),
        ),
        (Caller.list_prompts, "prompts/list", t.ListPromptsResult(prompts=[])),
    ],
)
def test_a_listing(call: Callable[..., Coroutine[Any, Any, Any]], method: str, page: Any) -> None:
    caller, _ = opened(D)
    caller.answer = page
    assert value(call(caller, timeout=None)) == []
    assert caller.asked == [(method, None, {"timeout": None})]


def test_what_a_request_is_told_goes_with_it() -> None:
    caller, talk = opened(D)
    assert caller.peer.dialect.version == D
    assert repr(caller) == f"<Asked of {talk.conn!r}>"
    heard: list[Any] = []
    options: CallOptions = {"progress": lambda *args: heard.append(args), "meta": {"com.example/word": "x"}}
    told = Told(options)
    id = caller.ask("tools/call", {"name": "t"}, told, options)
    asked = only(talk.says())
    assert asked["params"]["_meta"] == {"com.example/word": "x", "progressToken": id}
    assert (asked["id"], asked["method"]) == (id, "tools/call")
    caller.ask("ping", None, told, {})
    assert "params" not in only(talk.says())


def test_a_request_that_is_not_sent() -> None:
    caller, talk = opened(D)
    with pytest.raises(LocalProtocolError):
        caller.ask("prompts/list", None, Told({}), {})
    caller.conn.close()
    for event in talk.events():
        caller._standing.take(event)
    with pytest.raises(ConnectionLost, match="the client was closed"):
        caller.ask("ping", None, Told({}), {})
    assert talk.says() == []


# -- Waiting -----------------------------------------------------------------------------------------------------------------


def progress(step: float = 0.5) -> ProgressReceived:
    return ProgressReceived(1, step, 1.0, "half", None)


def test_a_waiter_is_woken_once() -> None:
    told = Told({})
    assert told.seconds == 60
    done = [told.done]
    told.end("r", None)
    done.append(told.done)
    told.end(None, PeerError(1, "late"))
    told.progressed(progress())
    assert told.told == ["wake"]
    assert done == [False, True]
    assert told.result() == "r"


def test_a_waiter_raises_what_the_call_ended_with() -> None:
    told = Told({"timeout": None})
    assert told.seconds is None
    told.end(None, PeerError(1, "no"))
    with pytest.raises(PeerError, match="no"):
        told.result()


def test_progress_prolongs_and_is_told() -> None:
    heard: list[Any] = []
    told = Told({"progress": lambda *args: heard.append(args)})
    told.progressed(progress())
    assert told.told == ["prolong"]
    assert heard == [(0.5, 1.0, "half")]
    silent = Told({"progress": None})
    silent.progressed(progress())
    assert silent.told == ["prolong"]


def test_a_callback_that_fails_ends_its_call() -> None:
    def fail(*_: object) -> None:
        raise SystemExit

    told = Told({"progress": fail})
    told.progressed(progress())
    assert told.told == ["prolong", "wake"]
    with pytest.raises(SystemExit):
        told.result()


# -- Who we are --------------------------------------------------------------------------------------------------------------


def test_what_a_client_says_about_itself() -> None:
    config = client_config()
    assert config.versions == list(ALL)
    assert (config.info.name, config.info.version) == ("mcp-trio", __version__)
    assert config.capabilities == t.ClientCapabilities()
    info = t.Implementation(name="mine", version="7")
    config = client_config([D], info=info, extensions={"com.example/x": {"a": 1}})
    assert config.versions == [D]
    assert config.info is info
    assert config.capabilities.extensions == config.capabilities.experimental == {"com.example/x": {"a": 1}}
    with pytest.raises(ValueError, match="1999"):
        client_config(["1999-01-01"])
