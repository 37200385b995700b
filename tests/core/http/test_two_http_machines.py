"""An HTTP client and a router back to back, with a wire that can be cut after any byte.

For every cut the same must hold: each message arrives once and in order, and every call ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from mcp_core import (
    DIALECTS,
    NEED_DATA,
    Config,
    Connection,
    ConnectionLost,
    ErrorReceived,
    InputRequested,
    NotificationReceived,
    PeerError,
    PeerReady,
    ProgressReceived,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
    Role,
)
from mcp_core import types as t
from mcp_core.http import (
    Body,
    End,
    Endpoint,
    Head,
    HostOriginPolicy,
    HttpClient,
    HttpOptions,
    Router,
)
from mcp_core.protocol.revisions._capabilities import with_tasks
from tests.harness.jsonrpc import (
    SERVER_CAPABILITIES,
    STATEFUL,
    VERSIONS,
    A,
    B,
    C,
    D,
    E,
    client_config,
    server_config,
    single,
)
from tests.levels import fewer_examples, long

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.http import Conversation, Exchange, HttpCall

URL: Final = "http://127.0.0.1:8000/mcp"
RESUMABLE: Final = [B, C, D]


class HttpPair:
    """A wire between an `HttpClient` and an `Endpoint`.

    `cut` maps the number of a call to the bytes of its response body after which the wire breaks;
    None for never. `chunk` is the size of pieces; `noticed`: the server learns of the break.
    """

    def __init__(
        self,
        *versions: str,
        chunk: int = 1 << 20,
        noticed: bool = True,
        client: Config | None = None,
        server: Config | None = None,
        **options: Any,
    ) -> None:
        names = iter(range(1, 1000))
        config = server or server_config()
        self.endpoint = Endpoint(
            lambda: config,
            HttpOptions(host_origin_policy=HostOriginPolicy("127.0.0.1"), **options),
            entropy=lambda size: next(names).to_bytes(size, "big"),
            param_headers=lambda _: None,
        )
        self.router = Router({"/mcp": self.endpoint})
        self.conn = Connection(Role.CLIENT, client or client_config(*versions))
        self.client = HttpClient(self.conn, URL)
        self.now = 0.0
        self.chunk = chunk
        self.noticed = noticed
        self.cut: Callable[[int], int | None] = lambda _: None
        self.calls: list[HttpCall] = []
        self.bodies: dict[int, bytes] = {}
        self.statuses: dict[int, int] = {}
        self.server_events: list[tuple[Conversation, Any]] = []
        self.client_events: list[Any] = []
        self._left: dict[int, int | None] = {}
        self._live: dict[int, Exchange] = {}

    def open(self) -> None:
        self.conn.open(self.now)
        self.pump()
        assert isinstance(self.client_events.pop(), PeerReady)
        self.client_events.clear()
        self.server_events.clear()

    def pump(self) -> None:
        """Let both go on until neither has anything to do."""
        for conversation, _ in self.server_events[-1:]:
            conversation.mark_dirty()
        while self._step():
            pass

    def _step(self) -> bool:
        work = False
        for call in self.client.calls_to_make(self.now):
            work = True
            key = call.key
            self.calls.append(call)
            self.client.request_started(key)
            self.bodies[key] = b""
            self._left[key] = self.cut(len(self.calls))
            exchange = self._live[key] = self.router.begin(call.head, self.now, token=key)
            if call.body:
                self.router.receive_data(exchange, call.body, self.now)
            self.router.receive_data(exchange, b"", self.now)
        for key in self.client.calls_to_drop():
            work = True
            if key in self._live:
                self.router.disconnected(self._live.pop(key), self.now)
        while isinstance(found := self.router.next_event(), tuple):
            work = True
            self.server_events.append(found)
            self.serve(*found)
            found[0].mark_dirty()
        for exchange in self.router.ready():
            for action in self.router.actions_to_send(exchange):
                work = True
                self._carry(exchange, action)
        while (event := self.client.next_event()) is not NEED_DATA:
            work = True
            self.client_events.append(event)
            self.act(event)
        return work

    def serve(self, conversation: Conversation, event: Any) -> None:
        """The server's part."""

    def act(self, event: Any) -> None:
        """The client's part."""

    def _carry(self, exchange: Exchange, action: Any) -> None:
        key: Any = exchange.token
        if self._live.get(key) is not exchange:
            return  # the client is gone
        if isinstance(action, Head):
            self.statuses[key] = action.status
            self.client.response_started(key, action, self.now)
        elif isinstance(action, Body):
            left, data = self._left[key], action.data
            broken = left is not None and len(data) >= left
            if left is not None:
                data = data[:left]
                self._left[key] = left - len(data)
            self.bodies[key] += data
            for place in range(0, len(data), self.chunk):
                self.client.response_data(key, data[place : place + self.chunk], self.now)
            if broken:
                self.breaks(key)
        elif isinstance(action, End):
            del self._live[key]
            self.client.response_ended(key, self.now)

    def breaks(self, key: int) -> None:
        exchange = self._live.pop(key)
        if self.noticed:
            self.router.disconnected(exchange, self.now)
        self.client.response_ended(key, self.now, error="the connection was reset")

    def waits(self, seconds: float) -> None:
        until = self.now + seconds
        while True:
            dues = [
                due
                for due in (self.client.next_deadline(), self.router.next_deadline())
                if due is not None
            ]
            if not dues or min(dues) > until:
                break
            self.now = max(self.now, min(dues))
            self.client.handle_timeout(self.now)
            self.router.handle_timeout(self.now)
            self.pump()
        self.now = until

    def calls_tool(self) -> tuple[int, Connection]:
        """A call of a tool that the server has and did not answer yet."""
        id = self.conn.send_request(
            "tools/call", t.CallToolParams(name="t"), token="T", progress=True
        )
        self.pump()
        assert isinstance(id, int)
        (conversation,) = [
            where
            for where, event in self.server_events
            if getattr(event, "id", None) == id and isinstance(event, RequestReceived)
        ]
        return id, conversation.conn

    def was_cancelled(self) -> bool:
        return any(isinstance(event, RequestCancelled) for _, event in self.server_events)

    def what_was_heard(self) -> list[Any]:
        return [
            each.progress if isinstance(each, ProgressReceived) else type(each).__name__
            for each in self.client_events
        ]


DONE = t.CallToolResult(content=[])


@pytest.mark.parametrize("version", VERSIONS)
def test_client_and_router_of_each_revision_exchange_messages(version: str) -> None:
    """Both machines agree end to end, and after the close neither side keeps a session."""
    wire = HttpPair(version)
    wire.open()
    id, server = wire.calls_tool()
    server.send_result(id, DONE)
    wire.pump()
    assert wire.what_was_heard() == ["ResultReceived"]
    id, server = wire.calls_tool()
    for number in (1, 2, 3):
        server.send_progress(id, number)
        wire.pump()
    server.send_result(id, DONE)
    wire.pump()
    assert wire.what_was_heard() == ["ResultReceived", 1, 2, 3, "ResultReceived"]
    wire.conn.close()
    wire.pump()
    assert wire.client.idle
    assert not wire.endpoint.sessions


@pytest.mark.parametrize("versions", [(), (D, E), (A, E)])
def test_client_and_router_choose_newest_common_revision(versions: tuple[str, ...]) -> None:
    wire = HttpPair(*versions)
    wire.open()
    assert wire.conn.peer is not None
    assert wire.conn.peer.dialect.version == E


@pytest.mark.parametrize("version", VERSIONS)
def test_a_call_that_is_given_up(version: str) -> None:
    wire = HttpPair(version)
    wire.open()
    id, server = wire.calls_tool()
    wire.conn.send_cancel(id)
    wire.pump()
    assert wire.was_cancelled()
    assert not server.send_result(id, DONE)
    wire.pump()
    wire.waits(60.0)
    assert wire.client_events == []


@pytest.mark.parametrize("version", STATEFUL)
def test_the_server_asks(version: str) -> None:
    """The server's request travels on the call's own stream, and its response in a new POST."""

    class Asks(HttpPair):
        def serve(self, conversation: Conversation, event: Any) -> None:
            if isinstance(event, RequestReceived):
                conversation.conn.send_request("roots/list", token=event.id, related=event.id)
            elif isinstance(event, ResultReceived):
                conversation.conn.send_result(event.token, DONE)

        def act(self, event: Any) -> None:
            if isinstance(event, RequestReceived):
                assert event.related is not None
                self.conn.send_result(event.id, t.ListRootsResult(roots=[]))

    wire = Asks(version)
    wire.open()
    wire.calls_tool()
    assert wire.what_was_heard() == ["RequestReceived", "ResultReceived"]


def test_the_server_asks_in_its_answer() -> None:
    wire = HttpPair(E)
    wire.open()
    id, server = wire.calls_tool()
    server.send_result(id, t.InputRequiredResult(result_type="input_required", request_state="s"))
    wire.pump()
    assert isinstance(single(wire.client_events), InputRequested)


# -- Tasks -----------------------------------------------------------------------------------------

EXTENSION: Final[Any] = {"io.modelcontextprotocol/tasks": {}}
TASK_SERVER: Final = server_config(capabilities=with_tasks(SERVER_CAPABILITIES, may_list=True))
TASK_REQUESTS: Final[Any] = [
    ("tasks/get", t.GetTaskParams(task_id="ä 1")),
    ("tasks/update", t.UpdateTaskParams(task_id="ä 1", input_responses={})),
    ("tasks/cancel", {"taskId": "ä 1"}),
]


def task_wire(*, declared: bool = True) -> HttpPair:
    capabilities = t.ClientCapabilities(extensions=EXTENSION if declared else None)
    wire = HttpPair(client=client_config(E, capabilities=capabilities), server=TASK_SERVER)
    wire.open()
    return wire


@pytest.mark.requirement("TX-21")
@pytest.mark.parametrize(("method", "params"), TASK_REQUESTS)
def test_task_request_has_the_id_in_mcp_name(method: str, params: Any) -> None:
    wire = task_wire()
    wire.conn.send_request(method, params)
    wire.pump()
    headers = wire.calls[-1].head.headers
    assert (b"mcp-method", method.encode()) in headers
    assert (b"mcp-name", b"=?base64?w6QgMQ==?=") in headers
    event = wire.server_events[-1][1]
    assert isinstance(event, RequestReceived)
    assert (event.method.name, event.params.task_id) == (method, "ä 1")


@pytest.mark.requirement("TX-21")
@pytest.mark.parametrize(("method", "params"), TASK_REQUESTS)
@pytest.mark.parametrize("name", [b"t-2", None])
def test_task_request_with_another_id_in_mcp_name_rejected(
    method: str, params: Any, name: bytes | None
) -> None:
    """A gateway that routes by the header would have asked the wrong server."""
    wire = task_wire()

    def tampered(headers: Any) -> Any:
        rest = [header for header in headers if header[0] != b"mcp-name"]
        return rest if name is None else [*rest, (b"mcp-name", name)]

    begin = wire.router.begin
    wire.router.begin = lambda head, *args, **options: begin(  # type: ignore[method-assign]
        replace(head, headers=tampered(head.headers)), *args, **options
    )
    wire.conn.send_request(method, params)
    wire.pump()
    error = single(wire.client_events).error
    assert isinstance(error, PeerError)
    assert error.code == -32020
    assert "Mcp-Name" in error.message
    assert wire.statuses[wire.calls[-1].key] == 400


def test_task_request_without_extension_has_status_400() -> None:
    wire = task_wire()
    wire.conn.config = client_config(E, capabilities=t.ClientCapabilities())
    row = wire.conn.config.dialect_configs[Role.CLIENT][DIALECTS[E]].sends
    # Our client would not send it.
    row["tasks/get"] = replace(row["tasks/get"], asks=())
    wire.conn.send_request("tasks/get", {"taskId": "t"})
    wire.pump()
    error = single(wire.client_events).error
    assert isinstance(error, PeerError)
    assert (error.code, error.data) == (-32021, {"requiredCapabilities": {"extensions": EXTENSION}})
    assert wire.statuses[wire.calls[-1].key] == 400


@pytest.mark.requirement("TX-20")
def test_listening_client_gets_states_of_accepted_tasks() -> None:
    """The acknowledgement names only the accepted ids; the other task's states never come."""
    wire = task_wire()
    wanted = t.SubscriptionFilter(task_ids=["mine", "yours"])
    wire.conn.send_request("subscriptions/listen", t.ListenParams(notifications=wanted), token="T")
    wire.pump()
    assert wire.client_events == []
    ((conversation, event),) = [
        found for found in wire.server_events if isinstance(found[1], RequestReceived)
    ]
    accepted = t.SubscriptionFilter(task_ids=["mine"])
    assert conversation.conn.send_acknowledgement(event, accepted)
    conversation.mark_dirty()
    wire.pump()
    states: list[Any] = ["working", "completed"]
    for state in states:
        status = t.TaskStatusParams(
            task_id="mine", status=state, created_at="1", last_updated_at="2"
        )
        assert conversation.conn.send_task_status(status)
        conversation.mark_dirty()
        wire.pump()
    acknowledged, *changed = wire.client_events
    assert acknowledged.params.notifications == accepted
    assert [each.params.status for each in changed] == states
    assert wire.statuses[wire.calls[-1].key] == 200


def test_listening_client_that_disconnects_during_the_lookup_cancels_it() -> None:
    wire = task_wire()
    wanted = t.SubscriptionFilter(task_ids=["t"])
    wire.conn.send_request("subscriptions/listen", t.ListenParams(notifications=wanted), token="T")
    wire.pump()
    wire.breaks(wire.calls[-1].key)
    wire.pump()
    assert wire.was_cancelled()
    ((conversation, event),) = [
        found for found in wire.server_events if isinstance(found[1], RequestReceived)
    ]
    assert not conversation.conn.send_acknowledgement(event, wanted)


@pytest.mark.parametrize("version", STATEFUL)
def test_message_of_no_request_arrives_on_the_standalone_stream(version: str) -> None:
    """A break loses nothing: what was sent meanwhile arrives after the reconnect."""
    wire = HttpPair(version)
    wire.open()
    _, server = wire.calls_tool()
    server.send_notification("notifications/tools/list_changed")
    wire.pump()
    event = single(wire.client_events)
    assert isinstance(event, NotificationReceived)
    assert event.related is None
    # The stream breaks, and messages sent meanwhile are not lost.
    get = next(call.key for call in wire.calls if call.head.method == b"GET")
    wire.breaks(get)
    server.send_notification("notifications/prompts/list_changed")
    wire.pump()
    assert len(wire.client_events) == 1
    wire.waits(2.0)
    assert [each.method.name for each in wire.client_events[1:]] == [
        "notifications/prompts/list_changed"
    ]


@pytest.mark.parametrize("version", STATEFUL)
def test_a_session_that_the_server_ends(version: str) -> None:
    """The client initializes again and repeats the call, so the caller notices nothing."""
    wire = HttpPair(version)
    wire.open()
    (session,) = wire.endpoint.sessions.values()
    session.conn.close()
    wire.endpoint.sessions.clear()
    id = wire.conn.send_request("tools/call", t.CallToolParams(name="t"), token="T")
    wire.pump()
    conversation, event = wire.server_events[-1]
    assert isinstance(event, RequestReceived)
    assert event.id == id
    assert isinstance(wire.client_events[-1], PeerReady)
    conversation.conn.send_result(id, DONE)
    wire.pump()
    assert isinstance(wire.client_events[-1], ResultReceived)
    assert len(wire.endpoint.sessions) == 1


# -- A stream of fifty events, cut -----------------------------------------------------------------

COUNT: Final = 49  # of progress, and the answer


def fifty(
    version: str,
    cuts: tuple[int | None, ...] = (),
    *,
    count: int = COUNT,
    when: str = "at once",
    chunk: int = 1 << 20,
    noticed: bool = True,
) -> tuple[list[Any], HttpPair, int]:
    """Return the events of a call whose streams break after `cuts` bytes, one after the other."""
    wire = HttpPair(version, chunk=chunk, noticed=noticed, retry=0.0)
    wire.open()
    first = len(wire.calls) + 1
    wire.cut = lambda number: cuts[number - first] if 0 <= number - first < len(cuts) else None
    id, server = wire.calls_tool()
    key = wire.calls[-1].key
    for number in range(1, count + 1):
        server.send_progress(id, number)
        if when == "one by one":
            wire.pump()
    server.send_result(id, DONE)
    wire.pump()
    wire.waits(40.0)
    assert wire.client.next_deadline() is None
    return wire.what_was_heard(), wire, key


def whole(count: int = COUNT) -> list[Any]:
    return [*range(1, count + 1), "ResultReceived"]


def first_event(version: str, body: bytes) -> int:
    """Return the number of bytes that a client needs to be able to resume."""
    return body.index(b"\n\n") + 2


def check_cuts(version: str, *, noticed: bool, count: int = COUNT, step: int = 1) -> None:
    """Cut the stream after every `step`th byte: each message arrives once, or only the loss.

    Before there is an event to resume from, only the loss is reported,
    and the request is not sent again.
    """
    received, wire, key = fifty(version, count=count)
    assert received == whole(count)
    body = wire.bodies[key]
    needed = first_event(version, body)
    for cut in range(0, len(body) + 1, step):
        received, _, _ = fifty(version, (cut,), count=count, noticed=noticed)
        assert received == (["ErrorReceived"] if cut < needed else whole(count)), cut


@pytest.mark.requirement("SHL-18", "SHL-8")
@pytest.mark.parametrize("version", RESUMABLE)
@pytest.mark.parametrize("noticed", [True, False])
@pytest.mark.parametrize("step", [67, long(7)])
def test_ten_events_cut_at_many_bytes(version: str, noticed: bool, step: int) -> None:
    check_cuts(version, noticed=noticed, count=9, step=step)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.requirement("SHL-18", "SHL-8")
@pytest.mark.parametrize("version", RESUMABLE)
@pytest.mark.parametrize("noticed", [True, False])
def test_fifty_events_cut_at_every_byte(version: str, noticed: bool) -> None:
    check_cuts(version, noticed=noticed)


@fewer_examples(5)
@given(st.sampled_from(RESUMABLE), st.booleans(), st.floats(0, 1))
def test_fifty_events_cut_somewhere(version: str, noticed: bool, place: float) -> None:
    _, wire, key = fifty(version)
    body = wire.bodies[key]
    cut = int(place * len(body))
    received, _, _ = fifty(version, (cut,), noticed=noticed)
    assert received == (["ErrorReceived"] if cut < first_event(version, body) else whole())


@pytest.mark.parametrize("chunk", [3, 11])
@pytest.mark.parametrize("when", ["at once", "one by one"])
@pytest.mark.parametrize("step", [67, long(23)])
def test_events_cut_while_they_come(when: str, chunk: int, step: int) -> None:
    received, wire, key = fifty(D, count=9, when=when, chunk=chunk)
    assert received == whole(9)
    body = wire.bodies[key]
    for cut in range(0, len(body) + 1, step):
        received, _, _ = fifty(D, (cut,), count=9, when=when, chunk=chunk)
        assert received == (["ErrorReceived"] if cut < first_event(D, body) else whole(9)), cut


def check_two_cuts(version: str, *steps: int) -> None:
    """Cut the stream after every `steps[0]`th byte, the resumed one after every `steps[1]`th."""
    _, wire, key = fifty(version, count=9)
    body = wire.bodies[key]
    needed, total = first_event(version, body), len(body)
    for first in range(needed, total, steps[0]):
        for second in range(0, total - first + 40, steps[1]):
            received, _, _ = fifty(version, (first, second), count=9)
            assert received == whole(9), (first, second)


@pytest.mark.parametrize("version", RESUMABLE)
@pytest.mark.parametrize("steps", [(307, 101), long((101, 37))])
def test_the_resumed_stream_is_cut_too(version: str, steps: tuple[int, int]) -> None:
    check_two_cuts(version, *steps)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("version", RESUMABLE)
def test_the_resumed_stream_is_cut_too_at_many_places(version: str) -> None:
    check_two_cuts(version, 13, 11)


@fewer_examples(5)
@given(
    st.lists(st.integers(0, 1500), min_size=1, max_size=5),
    st.sampled_from(["at once", "one by one"]),
    st.booleans(),
    st.integers(1, 400),
)
def test_cut_anywhere_and_often(cuts: list[int], when: str, noticed: bool, chunk: int) -> None:
    received, _, _ = fifty(D, (200, *cuts), count=12, when=when, noticed=noticed, chunk=chunk)
    assert received == whole(12) or (
        received[-1] == "ErrorReceived" and received[:-1] == whole(12)[: len(received) - 1]
    )


def test_a_stateless_stream_that_breaks_is_lost_and_its_work_stopped() -> None:
    wire = HttpPair(E)
    wire.open()
    id, server = wire.calls_tool()
    server.send_progress(id, 1)
    wire.pump()
    wire.breaks(wire.calls[-1].key)
    wire.pump()
    assert wire.was_cancelled()
    progress, failed = wire.client_events
    assert isinstance(progress, ProgressReceived)
    assert isinstance(failed, ErrorReceived)
    assert isinstance(failed.error, ConnectionLost)
    wire.waits(100.0)
    assert all(call.head.method == b"POST" for call in wire.calls)


@pytest.mark.requirement("SHL-8")
def test_a_server_that_lets_its_client_go() -> None:
    """The server closes the stream with `retry`: the client waits 2.5 s and then asks by GET."""
    wire = HttpPair(D)
    wire.open()
    id, server = wire.calls_tool()
    server.send_progress(id, 1)
    wire.pump()
    conversation = wire.server_events[-1][0]
    assert conversation.release(id, 2.5)
    wire.pump()
    server.send_progress(id, 2)
    server.send_result(id, DONE)
    before = len(wire.calls)
    wire.waits(2.4)
    assert len(wire.calls) == before
    wire.waits(0.2)
    assert wire.calls[-1].head.method == b"GET"
    assert wire.what_was_heard() == [1, 2, "ResultReceived"]
