"""Builders of JSON-RPC messages, configurations with all capabilities, and assertions about both.

The builders return messages as dicts. They share no code with the product, so that an error of its
encoder is not repeated here.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp_core import (
    ALL,
    DIALECTS,
    Config,
    ConnectionClosed,
    Event,
    Limits,
    MessageRejected,
)
from mcp_core import types as t

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcp_core import Method

VERSIONS: Final = tuple(reversed(ALL))
STATEFUL: Final = tuple(version for version in VERSIONS if DIALECTS[version].stateful)
STATELESS: Final = tuple(version for version in VERSIONS if not DIALECTS[version].stateful)
A, B, C, D, E = VERSIONS

Message = dict[str, Any]
T = TypeVar("T")

# All capabilities, so that only tests of capabilities have to declare some.
CLIENT_CAPABILITIES: Final = t.ClientCapabilities(
    roots=t.RootsCapability(list_changed=True),
    sampling=t.SamplingCapability(),
    elicitation=t.ElicitationCapability(),
)
SERVER_CAPABILITIES: Final = t.ServerCapabilities(
    tools=t.ToolsCapability(list_changed=True),
    resources=t.ResourcesCapability(subscribe=True, list_changed=True),
    prompts=t.PromptsCapability(list_changed=True),
    completions={},
    logging={},
)
CLIENT_INFO: Final = t.Implementation(name="client", version="1")
SERVER_INFO: Final = t.Implementation(name="server", version="2")


def client_config(
    *versions: str,
    capabilities: t.ClientCapabilities = CLIENT_CAPABILITIES,
    limits: Limits | None = None,
    methods: Iterable[Method] = (),
    initialize_timeout: float | None = None,
    keep_alive: float | None = None,
) -> Config:
    """Return the configuration of a client that speaks `versions`, all if there are none."""
    return Config(
        CLIENT_INFO,
        capabilities,
        versions=versions or ALL,
        limits=limits,
        methods=methods,
        initialize_timeout=initialize_timeout,
        keep_alive=keep_alive,
    )


def server_config(
    *versions: str,
    capabilities: t.ServerCapabilities = SERVER_CAPABILITIES,
    limits: Limits | None = None,
    methods: Iterable[Method] = (),
    instructions: str | None = None,
    keep_alive: float | None = None,
) -> Config:
    """Return the configuration of a server that speaks `versions`, all if there are none."""
    return Config(
        SERVER_INFO,
        capabilities,
        versions=versions or ALL,
        limits=limits,
        methods=methods,
        instructions=instructions,
        keep_alive=keep_alive,
    )


# -- Messages --------------------------------------------------------------------------------------

META_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
META_SERVER: Final = "io.modelcontextprotocol/serverInfo"
# The members of `_meta` that make a request stateless.
STATELESS_META: Final[Message] = {META_VERSION: E, META_CAPABILITIES: {}}
TOOL_CALL: Final[Message] = {"name": "t"}


def request(id: Any, method: str, params: Any = None, **members: Any) -> Message:
    message: Message = {"jsonrpc": "2.0", "id": id, "method": method}
    if params is not None:
        message["params"] = params
    return message | members


def stateless_request(
    id: Any, method: str, params: Mapping[str, Any] | None = None, **meta: Any
) -> Message:
    """Return a stateless request."""
    return request(id, method, {**(params or {}), "_meta": STATELESS_META | meta})


def notification(method: str, params: Any = None) -> Message:
    message: Message = {"jsonrpc": "2.0", "method": method}
    return message if params is None else message | {"params": params}


def result(id: Any, value: Any = None) -> Message:
    return {"jsonrpc": "2.0", "id": id, "result": {} if value is None else value}


def error(id: Any, code: int = -32000, message: str = "no", **members: Any) -> Message:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message} | members}


def ping(id: Any = "ping") -> Message:
    return request(id, "ping")


def initialize(version: str = D, id: Any = 0, **changes: Any) -> Message:
    params = {
        "protocolVersion": version,
        "capabilities": {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}},
        "clientInfo": {"name": "client", "version": "1"},
    }
    return request(id, "initialize", params | changes)


INITIALIZED: Final = notification("notifications/initialized")


def cancelled(id: Any, reason: str | None = None) -> Message:
    return notification(
        "notifications/cancelled", {"requestId": id} | ({"reason": reason} if reason else {})
    )


def encoded(message: Message | list[Any] | str | bytes) -> bytes:
    """Return the bytes of a message, without a newline. Bytes are returned unchanged."""
    if isinstance(message, bytes):
        return message
    if isinstance(message, str):
        return message.encode()
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode()


def line(message: Message | list[Any] | str | bytes) -> bytes:
    return encoded(message) + b"\n"


def call(id: Any, version: str = D, **meta: Any) -> Message:
    """Return a request that causes an event in this revision."""
    if DIALECTS[version].stateful:
        return request(id, "tools/call", TOOL_CALL | ({"_meta": meta} if meta else {}))
    return stateless_request(id, "tools/call", TOOL_CALL, **meta)


def text_of(response: Message) -> str:
    """Return the text of a tool's result."""
    text = response["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


# -- Assertions ------------------------------------------------------------------------------------


def single(things: list[T]) -> T:
    assert len(things) == 1, things
    return things[0]


def type_names(events: Iterable[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def only_event(events: list[Event], kind: type[T]) -> T:
    """Return the only event, and assert its type."""
    event = single(events)
    assert isinstance(event, kind), event
    return event


def assert_error(message: Message, code: int, id: Any = ..., text: str = "") -> None:
    """Assert that it is an error response. `id` None means null, Ellipsis no id."""
    assert set(message) == {"jsonrpc", "error"} | (set() if id is ... else {"id"}), message
    assert message["error"]["code"] == code, message
    assert text in message["error"]["message"]
    if id is not ...:
        assert message["id"] == id
        assert type(message["id"]) is type(id)


def assert_rejected(events: list[Event], text: str = "") -> MessageRejected:
    event = only_event(events, MessageRejected)
    assert text in str(event.error), event
    return event


def assert_closed(
    events: list[Event], *lost: Any, error: type[Exception] | None, text: str = ""
) -> None:
    event = only_event(events, ConnectionClosed)
    assert event.lost == list(lost)
    assert isinstance(event.error, error or type(None)), event
    assert text in str(event.error)


def chunks(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Split `data` at these positions."""
    places = [0, *sorted({cut for cut in cuts if 0 < cut < len(data)}), len(data)]
    return [data[start:stop] for start, stop in pairwise(places) if start < stop]
