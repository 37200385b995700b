"""A `Router` with the test as its driver: it sends requests, steps handlers, reads responses."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from msgspec import json

from mcp_core import Event, Limits, RequestReceived
from mcp_core.http import (
    Body,
    Conversation,
    End,
    Endpoint,
    EndpointAuth,
    Exchange,
    Head,
    HostOriginPolicy,
    HttpLimits,
    HttpOptions,
    PlainResponse,
    RequestHead,
    Router,
)
from mcp_core.http.wire._sse import SseDecoder
from mcp_core.registry import Context, NestedRequests, Server
from mcp_core.runtime import RequestJob, Runtime, Service
from mcp_core.types import RequestId
from tests.harness.stepping import steps_of

T = TypeVar("T")

HOST = (b"host", b"127.0.0.1:8000")
POST = [
    HOST,
    (b"content-type", b"application/json"),
    (b"accept", b"application/json, text/event-stream"),
]
GET = [HOST, (b"accept", b"text/event-stream")]
E = "2026-07-28"
D = "2025-11-25"


class HarnessRuntime(Runtime):
    """The runtime of one conversation: nothing waits for longer than a handler is stepped."""

    def __init__(self, harness: RouterHarness, conversation: Conversation) -> None:
        self.harness = harness
        self.conversation = conversation
        self.faults: list[BaseException] = []

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        self.faults.append(exc)

    def pump(self) -> None:
        self.conversation.mark_dirty()

    def write_blocked(self, id: RequestId | None) -> bool:
        return self.conversation.queued(id) > 64 * 1024

    async def drain(self, id: RequestId) -> None:
        await Pause()

    def release(self, id: RequestId, retry: float | None) -> bool:
        return self.conversation.release(id, retry)

    async def send_nested(self, requests: NestedRequests[T]) -> T:
        woken: list[bool] = []
        with requests.entered(lambda: woken.append(True)):
            while not woken:
                await Pause()
        return requests.result()

    def wall_time(self) -> float:
        return 1_800_000_000.0

    def entropy(self, size: int) -> bytes:
        return bytes(size)


class Pause:
    """A wait until the test steps the handler again."""

    def __await__(self) -> Any:
        yield


class Reply:
    """A response as a client reads it: `status`, `headers`, `body`, `events` and `messages`."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.body = b""
        self.ended = False

    def __repr__(self) -> str:
        return f"<OpeningReply {self.status} {self.headers} {self.body!r}>"

    @property
    def is_stream(self) -> bool:
        return self.headers.get(b"content-type") == b"text/event-stream"

    @property
    def events(self) -> list[tuple[str, bytes, str, int | None]]:
        decoder = SseDecoder(limit=1 << 24)
        decoder.feed(self.body)
        found = []
        while (event := decoder.next_event()) is not None:
            found.append((event.type, event.data, event.id, event.retry))
        return found

    @property
    def messages(self) -> list[Any]:
        if self.is_stream:
            return [
                json.decode(data) for kind, data, _, _ in self.events if kind == "message" and data
            ]
        found = json.decode(self.body) if self.body else []
        return found if isinstance(found, list) else [found]

    @property
    def message(self) -> Any:
        (found,) = self.messages
        return found

    @property
    def message_text(self) -> str:
        """The text of the tool result."""
        return str(self.messages[-1]["result"]["content"][0]["text"])

    @property
    def last_id(self) -> bytes:
        return self.events[-1][2].encode()


class RouterHarness:
    """A router that serves one `server` at `/mcp`, and its exchanges.

    `step` runs each handler until it waits again.
    """

    def __init__(
        self,
        server: Server | None = None,
        *,
        limits: HttpLimits | None = None,
        policy: HostOriginPolicy | None = None,
        routes: dict[str, Callable[[RequestHead], PlainResponse]] | None = None,
        auth: EndpointAuth | None = None,
        entropy: Callable[[int], bytes] | None = None,
        **options: Any,
    ) -> None:
        self.server = server or example()
        names = itertools.count(1)
        self.endpoint = Endpoint(
            self.server.config,
            HttpOptions(
                host_origin_policy=policy or HostOriginPolicy("127.0.0.1"),
                limits=limits or HttpLimits(),
                **options,
            ),
            entropy=entropy or (lambda size: next(names).to_bytes(size, "big")),
            param_headers=self.server.param_headers,
            token=self.server,
            auth=auth,
        )
        self.router = Router({"/mcp": self.endpoint}, routes)
        self.now = 0.0
        self.address = ""  # of the clients of the next requests
        self.unread = False  # no client reads the responses
        self.jobs: dict[RequestJob, Generator[Any, Any, Any]] = {}
        self.stopped: set[RequestJob] = set()
        self.replies: dict[Exchange, Reply] = {}
        self.seen: list[tuple[Conversation, Event]] = []
        self.services: list[Service] = []

    # -- Requests ----------------------------------------------------------------------------------

    def send(
        self,
        verb: bytes,
        headers: list[tuple[bytes, bytes]],
        body: bytes | None = None,
        target: bytes = b"/mcp",
        principal: str = "",
    ) -> Reply:
        if self.endpoint.auth is not None and principal:
            headers = [*headers, (b"authorization", b"Bearer " + principal.encode())]
        reply = self.begin(verb, headers, target, principal)
        exchange = reply.exchange
        if body is not None:
            self.router.receive_data(exchange, body, self.now)
        self.router.receive_data(exchange, b"", self.now)
        self.pump()
        return reply

    def begin(
        self,
        verb: bytes = b"POST",
        headers: list[tuple[bytes, bytes]] = POST,
        target: bytes = b"/mcp",
        principal: str = "",
    ) -> Reply:
        """Send the head of a request."""
        exchange = self.router.begin(
            RequestHead(verb, target, headers), self.now, principal=principal, address=self.address
        )
        reply = self.replies[exchange] = Reply(exchange)
        return reply

    def add(self, reply: Reply, data: bytes) -> None:
        """Send a piece of a body."""
        self.router.receive_data(reply.exchange, data, self.now)
        self.pump()

    def post(self, message: Any, *more: tuple[bytes, bytes], **options: Any) -> Reply:
        body = message if isinstance(message, bytes) else json.encode(message)
        return self.send(b"POST", [*POST, *more], body, **options)

    def get(self, *more: tuple[bytes, bytes], **options: Any) -> Reply:
        return self.send(b"GET", [*GET, *more], None, **options)

    def call(self, id: int | str, name: str = "echo", **arguments: Any) -> Reply:
        """A tools/call of 2026-07-28."""
        params = {"name": name, "arguments": arguments, "_meta": meta()}
        return self.modern(request(id, "tools/call", params), name)

    def modern(self, message: dict[str, Any], name: str | None = None) -> Reply:
        more = [(b"mcp-protocol-version", E.encode()), (b"mcp-method", message["method"].encode())]
        if name is not None:
            more.append((b"mcp-name", name.encode()))
        return self.post(message, *more)

    def answer_auth_check(self, reply: Reply, *replies: Any) -> None:
        """Run the steps of the check, each with the next of `replies`; exceptions are thrown."""
        admission = reply.exchange.auth_check
        assert admission is not None
        for value in replies:
            assert admission.step is not None
            if isinstance(value, BaseException):
                admission.throw(value, self.now)
            else:
                admission.send(value, self.now)
        assert admission.step is None
        self.pump()

    def session(self, version: str = D, principal: str = "", **capabilities: Any) -> SessionClient:
        reply = self.post(initialize(version, **capabilities), principal=principal)
        assert reply.status == 200, reply
        client = SessionClient(self, reply.headers[b"mcp-session-id"], version, principal)
        accepted = client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert accepted.status == 202, accepted
        return client

    # -- The driver's part -------------------------------------------------------------------------

    def pump(self) -> None:
        while True:
            while isinstance(found := self.router.next_event(), tuple):
                self._take(*found)
            ready = self.router.ready()
            if not ready:
                return
            for exchange in ready:
                if not self.unread:
                    self.read(exchange)

    def read(self, exchange: Exchange) -> None:
        reply = self.replies[exchange]
        for action in self.router.actions_to_send(exchange):
            assert not reply.ended, "something behind the end"
            if isinstance(action, Head):
                assert not reply.status, "two heads"
                reply.status, reply.headers = action.status, dict(action.headers)
                assert len(reply.headers) == len(action.headers)
            elif isinstance(action, Body):
                assert reply.status, "a body before the head"
                reply.body += action.data
            else:
                assert isinstance(action, End)
                reply.ended = True
        conversation = exchange.conversation
        if conversation is not None and conversation.retired and conversation.service is not None:
            conversation.service.close()

    def step(self, times: int = 1) -> None:
        """Let each handler run on."""
        for _ in range(times):
            for job, coroutine in list(self.jobs.items()):
                try:
                    if job in self.stopped:
                        coroutine.close()
                    else:
                        coroutine.send(None)
                        continue
                except StopIteration as end:
                    job.done(end.value)
                except BaseException as exc:  # noqa: BLE001 - what drivers do, too
                    job.failed(exc)
                job.dropped()
                del self.jobs[job]
                self._conversation_of(job).mark_dirty()
            self.pump()

    def wait(self, seconds: float) -> None:
        """Let so much time go by."""
        until = self.now + seconds
        while (due := self.router.next_deadline()) is not None and due <= until:
            self.now = max(self.now, due)
            self.router.handle_timeout(self.now)
            self.pump()
        self.now = until

    def close_after(self, reply: Reply) -> None:
        self.router.disconnected(reply.exchange, self.now)
        reply.ended = True
        self.pump()

    def _take(self, conversation: Conversation, event: Event) -> None:
        self.seen.append((conversation, event))
        service = conversation.service
        if service is None:
            service = conversation.service = Service(
                self.server,
                conversation.conn,
                HarnessRuntime(self, conversation),
                None,
                principal=conversation.principal,
                conversation=conversation,
            )
            self.services.append(service)
        job = service.handle_event(event)
        if job is not None:
            self.jobs[job] = steps_of(job.run)
            job.stop = lambda: self.stopped.add(job)

    def _conversation_of(self, job: RequestJob) -> Conversation:
        runtime = job.input_collector.host.runtime
        assert isinstance(runtime, HarnessRuntime)
        return runtime.conversation


class SessionClient:
    """A session, as its client sees it."""

    def __init__(self, harness: RouterHarness, id: bytes, version: str, principal: str) -> None:
        self.harness = harness
        self.id = id
        self.headers = [(b"mcp-session-id", id)]
        if version >= "2025-06-18":
            self.headers.append((b"mcp-protocol-version", version.encode()))
        self.principal = principal

    def post(self, message: Any) -> Reply:
        return self.harness.post(message, *self.headers, principal=self.principal)

    def call(
        self, id: int | str, name: str = "echo", progress: bool = False, **arguments: Any
    ) -> Reply:
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if progress:
            params["_meta"] = {"progressToken": id}
        return self.post(request(id, "tools/call", params))

    def get(self, last_id: bytes | None = None) -> Reply:
        more = [] if last_id is None else [(b"last-event-id", last_id)]
        return self.harness.get(*self.headers, *more, principal=self.principal)

    def delete(self) -> Reply:
        return self.harness.send(b"DELETE", [HOST, *self.headers], principal=self.principal)


def meta(**more: Any) -> dict[str, Any]:
    return {
        "io.modelcontextprotocol/protocolVersion": E,
        "io.modelcontextprotocol/clientCapabilities": {},
        **more,
    }


def request(id: int | str, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    found: dict[str, Any] = {"jsonrpc": "2.0", "id": id, "method": method}
    return found if params is None else {**found, "params": params}


def initialize(version: str = D, id: int | str = 0, **capabilities: Any) -> dict[str, Any]:
    info = {"name": "test", "version": "1"}
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": info}
    return request(id, "initialize", params)


def example(limits: Limits | None = None) -> Server:
    """A server with a tool for each way in which an answer comes."""
    server = Server("example", limits=limits or Limits(message=100_000))

    @server.tool
    def echo(text: str = "") -> str:
        """At once."""
        return text

    @server.tool
    async def slow(steps: int = 1, text: str = "done") -> str:
        """After some steps, in silence."""
        for _ in range(steps):
            await Pause()
        return text

    @server.tool
    async def count(to: int, context: Context) -> str:
        """With a message at each step."""
        for step in range(1, to + 1):
            await context.progress(step, to)
        return "counted"

    @server.tool
    async def ask(context: Context) -> str:
        """With a question."""
        answer = await context.elicit(
            "Who?", {"type": "object", "properties": {"name": {"type": "string"}}}
        )
        return f"{answer.action} {getattr(answer, 'value', None)}"

    @server.tool
    async def leave(context: Context, retry: float | None = None) -> str:
        """Lets its client go."""
        released = context.close_stream(retry)
        await Pause()
        return f"released: {released}"

    @server.resource("memo://a")
    def memo() -> str:
        """A resource."""
        return "a"

    return server
