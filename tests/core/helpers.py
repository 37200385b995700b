"""Builders of messages, one connection under test, and a pair of connections.

1. The builders return messages as dicts. They share no code with the product, so that an error of
   its encoder is not repeated here.
2. `ConnectionHarness` is one connection. `receive` passes messages to it and returns its events,
   `take_sent` returns the messages that it has sent.
3. `ConnectionPair` is two connections back to back. Its methods send on one side, and assert that
   the other side receives the same.

No test needs a clock: time is the attribute `now`.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from mcp_core import (
    ALL,
    DIALECTS,
    NEED_DATA,
    PAUSED,
    Config,
    Connection,
    ConnectionClosed,
    ErrorReceived,
    Event,
    Limits,
    MessageRejected,
    NotificationReceived,
    PeerReady,
    ProgressReceived,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    Role,
    State,
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


# -- One machine -----------------------------------------------------------------------------------


class ConnectionHarness:
    """One connection that a test drives with messages.

    `paused`, `state` and `probing` are methods, so that the type checker does not narrow them.
    """

    def __init__(self, conn: Connection) -> None:
        self.conn = conn
        self.now = 0.0
        self._paused = False

    def paused(self) -> bool:
        """Return True if the connection was paused after the last events."""
        return self._paused

    def state(self) -> State:
        return self.conn.state

    def probing(self) -> bool:
        return self.conn.probing

    def receive(self, *messages: Message | list[Any] | str | bytes) -> list[Event]:
        """Receive messages, one per line, and return the events."""
        return self.receive_bytes(b"".join(map(line, messages)))

    def receive_bytes(self, data: bytes) -> list[Event]:
        """Receive bytes and return the events. `b""` is nothing here, not the end of file."""
        if data:
            self.conn.receive_data(data, self.now)
        return self.events()

    def receive_eof(self) -> list[Event]:
        """Receive the end of file and return the events."""
        self.conn.receive_data(b"", self.now)
        return self.events()

    def advance_time(self, seconds: float) -> list[Event]:
        """Advance the time, process timeouts and return the events."""
        self.now += seconds
        self.conn.handle_timeout(self.now)
        return self.events()

    def events(self) -> list[Event]:
        found: list[Event] = []
        while True:
            event = self.conn.next_event()
            if event is NEED_DATA or event is PAUSED:
                self._paused = event is PAUSED
                return found
            found.append(event)

    def take_sent(self) -> list[Message]:
        """Return the messages sent since the last call."""
        data = self.conn.data_to_send()
        assert data[-1:] in (b"", b"\n")
        return [json.loads(raw) for raw in data.split(b"\n")[:-1]]

    def response_to(self, message: Message | list[Any] | str | bytes) -> Message:
        """Receive a message that causes no event, and return the one response."""
        assert self.receive(message) == []
        return single(self.take_sent())

    def error_response_to(self, message: Message | list[Any] | str | bytes) -> Message:
        """Receive a message that is rejected, and return the one error response."""
        assert_rejected(self.receive(message))
        return single(self.take_sent())


def opened(role: Role, version: str, config: Config | None = None) -> ConnectionHarness:
    """Return an open connection of `version`, after a handshake if the version has one."""
    if role is Role.SERVER:
        harness = ConnectionHarness(Connection(role, config or server_config()))
        if DIALECTS[version].stateful:
            assert harness.response_to(initialize(version))["result"]["protocolVersion"] == version
            (ready,) = harness.receive(INITIALIZED)
            assert isinstance(ready, PeerReady)
        return harness
    harness = ConnectionHarness(Connection(role, config or client_config(version)))
    harness.conn.open(harness.now)
    received = single(harness.take_sent())
    offers = json.loads(DIALECTS[version].encode(SERVER_CAPABILITIES))
    if DIALECTS[version].stateful:
        answer = {
            "protocolVersion": version,
            "capabilities": offers,
            "serverInfo": {"name": "s", "version": "1"},
        }
    else:
        answer = {"resultType": "complete", "supportedVersions": [version], "capabilities": offers}
    (ready,) = harness.receive(result(received["id"], answer))
    assert isinstance(ready, PeerReady)
    harness.take_sent()
    return harness


def call(id: Any, version: str = D, **meta: Any) -> Message:
    """Return a request that causes an event in this revision."""
    if DIALECTS[version].stateful:
        return request(id, "tools/call", TOOL_CALL | ({"_meta": meta} if meta else {}))
    return stateless_request(id, "tools/call", TOOL_CALL, **meta)


def server(version: str = D, **limits: Any) -> ConnectionHarness:
    """Return a server that is connected to a client of this revision."""
    return opened(Role.SERVER, version, server_config(limits=Limits(**limits)))


def client(version: str = D) -> ConnectionHarness:
    """Return a client that is connected to a server of this revision."""
    return opened(Role.CLIENT, version)


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
    assert type(event.error) is (error or type(None)), event
    assert text in str(event.error)


# -- Two machines ----------------------------------------------------------------------------------


class ConnectionPair:
    """A client and a server, connected without loss.

    A method is named after the action of one side, `by`, and asserts that the other side receives
    exactly that. The methods deliver messages at once. A test in which messages cross uses the
    connections themselves, with `move` and `deliver`.
    """

    def __init__(
        self, *versions: str, client: Config | None = None, server: Config | None = None
    ) -> None:
        self.client = Connection(Role.CLIENT, client or client_config(*versions))
        self.server = Connection(Role.SERVER, server or server_config(*versions))
        self.now = 0.0
        self.transcript: list[tuple[Role, Message]] = []  # the transcript
        self._harnesses = {
            Role.CLIENT: ConnectionHarness(self.client),
            Role.SERVER: ConnectionHarness(self.server),
        }

    def __getitem__(self, role: Role) -> Connection:
        return self._harnesses[role].conn

    @property
    def versions(self) -> tuple[str | None, str | None]:
        """The revision of the peer, as known to each side."""
        client, server = (
            conn.peer.dialect.version if conn.peer is not None else None
            for conn in (self.client, self.server)
        )
        return client, server

    # -- The wire

    def take(self, by: Role) -> list[Message]:
        """Take the queued messages of `by` without delivering them."""
        messages = self._harnesses[by].take_sent()
        self.transcript += [(by, message) for message in messages]
        return messages

    def deliver(self, messages: list[Message], *, by: Role) -> list[Event]:
        """Deliver messages of `by` to the other side, and return its events."""
        harness = self._harnesses[by.other]
        harness.now = self.now
        return harness.receive(*messages)

    def move(self, by: Role) -> list[Event]:
        """Deliver the queued messages of `by`, and return the events of the other side."""
        return self.deliver(self.take(by), by=by)

    def deliver_all(self) -> dict[Role, list[Event]]:
        """Deliver messages in both directions until neither side has any."""
        found: dict[Role, list[Event]] = {role: self._harnesses[role].events() for role in Role}
        while any(self[role].queued() for role in Role):
            for role in Role:
                found[role.other] += self.move(role)
        return found

    # -- What the sides do

    def open(self, **options: Any) -> ConnectionPair:
        self.client.open(self.now, **options)
        found = self.deliver_all()
        peer = self.client.peer
        assert peer is not None
        assert found[Role.CLIENT] == [PeerReady(peer)]
        # A server may not know the probe, and a stateless one has no PeerReady.
        ready = [event for event in found[Role.SERVER] if not isinstance(event, MessageRejected)]
        assert type_names(ready) == (["PeerReady"] if peer.dialect.stateful else [])
        assert self.client.state is State.READY
        return self

    def request(
        self,
        method: str,
        params: Struct | Mapping[str, Any] | None = None,
        *,
        by: Role = Role.CLIENT,
        token: object = None,
        **options: Any,
    ) -> RequestReceived:
        """Send a request, and assert that it arrives with its params."""
        id = self[by].send_request(method, params, token=token, **options)
        event = only_event(self.move(by), RequestReceived)
        assert (event.id, event.method.name) == (id, method)
        assert type(event.id) is type(id)
        assert_same_params(params, event.params)
        return event

    def result(
        self,
        received: RequestReceived,
        value: Struct | Mapping[str, Any],
        *,
        by: Role = Role.SERVER,
    ) -> Any:
        """Send a result, and return it as it arrives."""
        assert self[by].send_result(received.id, value)
        event = only_event(self.move(by), ResultReceived)
        assert event.id == received.id
        return event.result

    def error(
        self, received: RequestReceived, code: int, text: str, *, by: Role = Role.SERVER
    ) -> ErrorReceived:
        """Send an error response, and assert that it arrives."""
        assert self[by].send_error(received.id, t.ErrorData(code=code, message=text))
        event = only_event(self.move(by), ErrorReceived)
        assert event.id == received.id
        assert str(event.error) == f"{text} ({code})"
        return event

    def progress(
        self, received: RequestReceived, *values: Any, by: Role = Role.SERVER
    ) -> ProgressReceived:
        """Send progress, and assert that it arrives."""
        assert self[by].send_progress(received.id, *values)
        event = only_event(self.move(by), ProgressReceived)
        assert (event.id, event.progress) == (received.id, values[0])
        return event

    def cancel(
        self, received: RequestReceived, reason: str | None = None, *, by: Role = Role.CLIENT
    ) -> None:
        """Cancel the request, and assert that the handler is cancelled."""
        self[by].send_cancel(received.id, reason)
        assert self.move(by) == [RequestCancelled(received.id, reason)]

    def notify(
        self, method: str, params: Struct | None = None, *, by: Role = Role.SERVER, **options: Any
    ) -> NotificationReceived:
        self[by].send_notification(method, params, **options)
        event = only_event(self.move(by), NotificationReceived)
        assert event.method.name == method
        assert_same_params(params, event.params)
        return event

    def is_idle(self) -> bool:
        """Return True if neither side has queued messages."""
        return not (self.client.queued() or self.server.queued())


def assert_same_params(sent: Struct | Mapping[str, Any] | None, got: Any) -> None:
    """Assert that the params are equal, except `_meta`, to which the sender adds members."""
    if isinstance(sent, Struct):
        assert type(got) is type(sent)
        assert asdict(got) | {"meta": None} == asdict(sent) | {"meta": None}


def chunks(data: bytes, cuts: Iterable[int]) -> list[bytes]:
    """Split `data` at these positions."""
    places = [0, *sorted({cut for cut in cuts if 0 < cut < len(data)}), len(data)]
    return [data[start:stop] for start, stop in pairwise(places) if start < stop]
