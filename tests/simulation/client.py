"""Clients: what they send, what they hear, and the judge of each conversation.

`ModernClient` speaks 2026-07-28 and sends each request to any worker. `StickyClient` speaks
2025-11-25: its session lives at one worker, and it begins another one when that worker is gone.
"""

from __future__ import annotations

import itertools
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

import trio
from msgspec import json

from mcp_core.http import Body, End, Head, RequestHead
from mcp_core.trace import CHECKED_LEVELS, Judge, TraceHeader
from mcp_core.trace._http_channel import ConversationNumbers, HttpChannel

from .worker import KEYS, Exchange, Reset, scope_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .worker import SimWorker
    from .world import World

    Message = dict[str, Any]

__all__ = ["ModernClient", "SimClient", "StickyClient"]

MODERN: Final = "2026-07-28"
WITH_SESSIONS: Final = "2025-11-25"
_META: Final = "io.modelcontextprotocol/"
_CAPABILITIES: Final[Message] = {
    "elicitation": {"form": {}},
    "extensions": {"io.modelcontextprotocol/tasks": {}},
}
_INFO: Final = {"name": "simulated", "version": "1"}
_ENVELOPE: Final = {
    f"{_META}protocolVersion": MODERN,
    f"{_META}clientCapabilities": _CAPABILITIES,
    f"{_META}clientInfo": _INFO,
}
_ACCEPT: Final = "application/json, text/event-stream"
TASK_TOOLS: Final = ("once", "again", "asks_once", "asks_again", "endless", "brief")
_PATIENCE: Final = 0.2  # seconds before a client connects again
_JUDGED: Final = 1024 * 1024  # bytes of a message
_VISIT_FIRST: Final = -32042
_ENDED: Final = ("completed", "failed", "cancelled")


class SimTask:
    """A task, as its client knows it."""

    def __init__(self, id: str, tool: str, name: str) -> None:
        self.id = id
        self.tool = tool
        self.name = name  # the response to its question
        self.outcome: str | None = None  # the last status, and its text
        self.is_watched = False
        self.cancelled = False
        self.began = trio.current_time()
        self.ended = 0.0  # when its end was seen
        self.is_gone = False  # over its time to live
        self.asks = False  # as a notification has said


class SimClient:
    """A client. It listens to all that may change, and follows its tasks.

    Attributes:
        known: by kind, the version that it has read last.
        pending: what it waits for, with the time of the request.
        tasks: those that it has begun.
    """

    def __init__(self, world: World, number: int) -> None:
        self.world = world
        self.number = number
        self.known: dict[str, int] = {}
        self.pending: dict[int, tuple[float, str]] = {}
        self.tasks: list[SimTask] = []
        self.is_listening = False
        self.pages: list[str] = []  # that its user has visited, and it has not heard of
        self._key = list(KEYS.values())[number % len(KEYS)]
        self._chance = world.chance(f"client {number}")
        self._ids = itertools.count(1)
        self._exchange_numbers = itertools.count(1)
        self._begin_conversation()
        self._exchanges: dict[Exchange, None] = {}
        self._scope = trio.CancelScope()
        self._has_left = False

    def __repr__(self) -> str:
        return f"c{self.number}"

    def _begin_conversation(self) -> None:
        self._numbers = ConversationNumbers(single=True)
        header = TraceHeader(format_version=1, observer="client", transport="http")
        self._judge = Judge(header, from_start=True)

    # -- What a subclass adds ----------------------------------------------------------------------

    async def _listen(self) -> None:
        """Listen to all that may change, and read it again when it has."""
        raise NotImplementedError

    async def _worker(self) -> SimWorker:
        """Return the worker that the next request goes to."""
        raise NotImplementedError

    async def _ask(self, number: int) -> None:
        """Call a tool that asks, and respond."""
        raise NotImplementedError

    async def _visit(self, number: int) -> None:
        """Call a tool that wants the user to visit a page. 2026-07-28 has no notification of it."""

    async def _watch(self, number: int) -> None:
        """Wait for the end of a task without polling."""
        raise NotImplementedError

    async def _look_at(self, task: SimTask) -> float | None:
        """Read a task, and respond to what it asks. Return when to poll again."""
        raise NotImplementedError

    def _params(self, method: str, params: Message) -> Message:
        """Return the params of a request with all that the revision wants."""
        raise NotImplementedError

    def _headers(self, message: Message) -> list[tuple[str, str]]:
        """Return the headers of a message that only this revision has."""
        raise NotImplementedError

    _task_params: ClassVar[Message] = {}  # of a call that wants a task

    def _was_asked(self, message: Message, worker: SimWorker) -> None:
        """Take a notification or a request of the server, in the response to a request."""

    def _saw_head(self, headers: list[tuple[bytes, bytes]]) -> None:
        """Take the headers of a response."""

    def _lost_response(self, method: str, worker: SimWorker) -> None:
        """Take the end of a connection on which a response was to come."""

    def _created(self, result: Message) -> Message:
        """Return the task in the response to a call."""
        raise NotImplementedError

    # -- What it does ------------------------------------------------------------------------------

    async def run(self) -> None:
        """Listen until `leave`. Listen again when the stream ends."""
        with self._scope:
            while True:
                try:
                    await self._listen()
                except Reset:
                    self.world.log(self, "stream broken")
                self.is_listening = False
                await trio.sleep(_PATIENCE * self._chance.uniform(0.5, 1.5))

    async def act(self, what: str, number: int) -> None:
        """Take a step of the plan. A connection that breaks ends it."""
        with suppress(Reset):
            await getattr(self, f"_{what}")(number)

    def cut(self) -> None:
        """Break all connections."""
        for exchange in list(self._exchanges):
            exchange.reset()

    def leave(self) -> None:
        """Disconnect."""
        self._has_left = True
        self._scope.cancel()
        for exchange in list(self._exchanges):
            exchange.leave()
        self._find_faults(self._judge.close())

    async def _call(self, number: int) -> None:
        answer = await self._request("tools/call", {"name": "echo", "arguments": {"text": "x"}})
        if "result" in answer and answer["result"]["content"][0]["text"] != "x":
            self.world.fail(f"{self} was answered {answer}")

    async def _task(self, number: int) -> None:
        """Begin a task, respond to what it asks, and wait for its end."""
        tools: tuple[str, ...] = TASK_TOOLS
        if self.world.plan.has("jump"):
            # Workers whose clocks differ don't agree on when a task is over its time to live.
            tools = TASK_TOOLS[:-1]
        tool = tools[number % len(tools)]
        seconds = self._chance.choice((0.05, 0.5, 4.0, 10.0))
        arguments = {"seconds": seconds}
        answer = await self._request(
            "tools/call", {"name": tool, "arguments": arguments}, is_task=True
        )
        if "result" not in answer:
            self.world.oracle.task_refused(self, answer)
            return
        state = self._created(answer["result"])
        task = SimTask(state["taskId"], tool, f"name{self.number}{len(self.tasks)}")
        self.world.log(self, "task", task.id[:6], tool, seconds)
        self.tasks.append(task)
        interval = _interval_of(state)
        while task.outcome is None and not self._has_left and not task.is_gone:
            await trio.sleep(interval + self._chance.uniform(0.1, 2.5))
            try:
                if tool == "endless":
                    await self._cancel_one(task)
                interval = await self._look_at(task) or interval
            except Reset:
                continue

    def _saw(self, task: SimTask, state: Message, asked: float) -> None:
        """Compare a state with those before: the final one never changes.

        The request was sent at the time `asked`. Responses may arrive in another order.
        """
        if state["status"] not in _ENDED:
            if task.outcome is not None and asked > task.ended:
                self.world.fail(f"task {task.id[:6]} was {task.outcome}, and is {state['status']}")
            return
        text = state["status"]
        if "result" in state and state["result"].get("isError"):
            text += ": " + state["result"]["content"][0]["text"]
        elif "result" in state:
            text += " " + state["result"]["content"][0]["text"]
        if task.outcome not in (None, text):
            self.world.fail(f"task {task.id[:6]} was {task.outcome}, and is {text}")
        if task.outcome is None:
            self.world.log(self, "task", task.id[:6], text)
            task.outcome = text
            task.ended = trio.current_time()
            self.world.oracle.task_ended(self, task, text)

    async def _cancel(self, number: int) -> None:
        if self.tasks:
            await self._cancel_one(self.tasks[number % len(self.tasks)])

    async def _cancel_one(self, task: SimTask) -> None:
        task.cancelled = True
        await self._request("tasks/cancel", {"taskId": task.id})

    # -- Listening ---------------------------------------------------------------------------------

    def _read_soon(self, what: str, worker: SimWorker) -> None:
        self.world.nursery.start_soon(self._read, what, worker)

    async def _read(self, what: str, worker: SimWorker) -> None:
        """Read what has changed, at the worker that has told of it."""
        with suppress(Reset):
            if what == "tools":
                answer = await self._request("tools/list", {}, worker)
                names = [tool["name"] for tool in answer["result"]["tools"]]
                (version,) = [int(name[7:]) for name in names if name.startswith("version")]
            else:
                answer = await self._request("resources/read", {"uri": what}, worker)
                version = int(answer["result"]["contents"][0]["text"])
            self.known[what] = max(self.known.get(what, 0), version)

    # -- Requests ----------------------------------------------------------------------------------

    async def _request(
        self,
        method: str,
        params: Message,
        worker: SimWorker | None = None,
        *,
        is_task: bool = False,
    ) -> Message:
        """Send a request, and return its response.

        Raises:
            Reset: the connection broke.
        """
        number = next(self._ids)
        if is_task:
            params = params | self._task_params
        message = self._message(method, params, number)
        found: list[Message] = []
        worker = worker or await self._worker()

        def on_message(received: Message) -> bool:
            if "method" in received:
                self._was_asked(received, worker)
            elif received["id"] == number:
                found.append(received)
            return False

        self.pending[number] = trio.current_time(), method
        try:
            await self._post(message, worker, on_message)
        except Reset:
            self._lost_response(method, worker)
            raise
        finally:
            del self.pending[number]
        if not found:
            self.world.fail(f"{self} got no response to {method} {number}")
            raise Reset
        self.world.log(self, method, number, _short(found[0]))
        return found[0]

    def _message(self, method: str, params: Message, number: int) -> Message:
        return {
            "jsonrpc": "2.0",
            "id": number,
            "method": method,
            "params": self._params(method, params),
        }

    async def _post(
        self, message: Message, worker: SimWorker, on_message: Callable[[Message], bool]
    ) -> None:
        """POST a message, and pass on each message of the response.

        Raises:
            Reset: the connection broke.
        """
        headers = [("content-type", "application/json"), ("accept", _ACCEPT)]
        headers += self._headers(message)
        await self._exchange("POST", headers, json.encode(message), worker, on_message)

    async def _exchange(
        self,
        method: str,
        headers: list[tuple[str, str]],
        body: bytes,
        worker: SimWorker,
        on_message: Callable[[Message], bool],
        on_head: Callable[[int, Any], object] = lambda status, headers: None,
    ) -> None:
        """Make an HTTP exchange. Leave it when `on_message` returns True.

        Raises:
            Reset: the connection broke.
        """
        if not worker.is_listening or self._has_left:
            raise Reset
        own = [("host", "127.0.0.1:8000"), ("authorization", f"Bearer {self._key}")]
        scope = scope_of(method, own + headers, f"192.0.2.{self.number}")
        exchange = Exchange(self.world, worker, self._chance, scope, body)
        self._exchanges[exchange] = None
        channel = HttpChannel(next(self._exchange_numbers), self._numbers, _JUDGED)
        head = RequestHead(method.encode(), b"/mcp", scope["headers"])
        self._hear(channel.request(trio.current_time(), (head, body, "1.1")))
        worker.accept(exchange)
        reader = _BodyReader()
        try:
            while (sent := await exchange.next()) is not None:
                now = trio.current_time()
                if sent["type"] == "http.response.start":
                    reader.begin(sent["headers"])
                    self._hear(channel.response(now, [Head(sent["status"], sent["headers"])]))
                    on_head(sent["status"], sent["headers"])
                    self._saw_head(sent["headers"])
                    continue
                data, is_last = sent["body"], not sent.get("more_body", False)
                self._hear(channel.response(now, [Body(data), *([End()] if is_last else [])]))
                for message in reader.messages(data, is_last=is_last):
                    if on_message(message):
                        exchange.leave()
                        self._hear(channel.ended(now, ("client", "closed")))
                        return
        except BaseException as exc:
            side, how = ("server", "reset") if isinstance(exc, Reset) else ("client", "closed")
            self._hear(channel.ended(trio.current_time(), (side, how)))  # type: ignore[arg-type]
            exchange.leave()
            raise
        finally:
            self._exchanges.pop(exchange, None)

    def _hear(self, lines: Any) -> None:
        for line in lines:
            self._find_faults(self._judge.receive(line))

    def _find_faults(self, findings: Any) -> None:
        for found in findings:
            # These clients are simple, and need not do all that clients should.
            counts = found.side == "server" or found.level in CHECKED_LEVELS["must"]
            if found.is_certain and counts and not self._has_left:
                self.world.fail(f"{self}: the {found.side} broke {found.row}: {found.sentence}")


class ModernClient(SimClient):
    """A client of 2026-07-28: each request may go to another worker."""

    async def _listen(self) -> None:
        """Listen to all that may change, and read it again when it has."""
        worker = await self._worker()

        def on_message(message: Message) -> bool:
            method = message.get("method")
            if method == "notifications/subscriptions/acknowledged":
                self.is_listening = True
                for what in self.world.truth:
                    self._read_soon(what, worker)
            elif method == "notifications/tools/list_changed":
                self._read_soon("tools", worker)
            elif method == "notifications/resources/updated":
                self._read_soon(message["params"]["uri"], worker)
            return False

        uris = [what for what in self.world.truth if what != "tools"]
        wanted = {"toolsListChanged": True, "resourceSubscriptions": uris}
        await self._stream(wanted, on_message, worker)

    async def _stream(
        self,
        wanted: Message,
        on_message: Callable[[Message], bool],
        worker: SimWorker | None = None,
    ) -> None:
        """Listen until the stream ends, or `on_message` returns True."""
        number = next(self._ids)
        message = self._message("subscriptions/listen", {"notifications": wanted}, number)
        await self._post(message, worker or await self._worker(), on_message)

    async def _worker(self) -> SimWorker:
        """Return a worker that accepts a connection, as a balancer finds it."""
        while not (living := self.world.living):  # noqa: ASYNC110 - clients try again and again
            await trio.sleep(_PATIENCE)
        worker: SimWorker = self._chance.choice(living)
        return worker

    async def _ask(self, number: int) -> None:
        """Call a tool that asks, and respond: each request goes to any worker."""
        params: Message = {"name": "ask"}
        answer = await self._request("tools/call", params)
        for _ in range(3):
            result = answer.get("result", {})
            if result.get("resultType") != "input_required":
                break
            params = {"name": "ask", "requestState": result["requestState"]}
            params["inputResponses"] = {
                key: {"action": "accept", "content": {"name": f"name{number}"}}
                for key in result["inputRequests"]
            }
            answer = await self._request("tools/call", params)
        if answer["result"]["content"][0]["text"] != f"name{number}":
            self.world.fail(f"{self} asked, responded name{number}, and got {answer}")

    async def _look_at(self, task: SimTask) -> float | None:
        """Read a task, and respond to what it asks. Return when to poll again."""
        asked = trio.current_time()
        answer = await self._request("tasks/get", {"taskId": task.id})
        if "result" not in answer:
            self.world.oracle.task_unknown(self, task, answer)
            return None
        state = answer["result"]
        self._saw(task, state, asked)
        if state["status"] == "input_required":
            responses = {
                key: {"action": "accept", "content": {"name": task.name}}
                for key in state["inputRequests"]
            }
            await self._request("tasks/update", {"taskId": task.id, "inputResponses": responses})
        return _interval_of(state)

    async def _watch(self, number: int) -> None:
        """Listen to a task until its end."""
        if not self.tasks:
            return
        task = self.tasks[number % len(self.tasks)]

        def on_message(message: Message) -> bool:
            if message.get("method") == "notifications/tasks":
                self._saw(task, message["params"], 0.0)
                if message["params"]["status"] in _ENDED:
                    return True
            return False

        task.is_watched = True
        try:
            await self._stream({"taskIds": [task.id]}, on_message)
        finally:
            task.is_watched = False

    def _params(self, method: str, params: Message) -> Message:
        return {**params, "_meta": _ENVELOPE}

    def _headers(self, message: Message) -> list[tuple[str, str]]:
        headers = [("mcp-protocol-version", MODERN), ("mcp-method", message["method"])]
        params = message["params"]
        name = params.get("taskId", params.get("name", params.get("uri")))
        return headers if name is None else [*headers, ("mcp-name", name)]

    def _created(self, result: Message) -> Message:
        return result


class StickyClient(SimClient):
    """A client of 2025-11-25. All of a session goes to one worker: others don't know it."""

    _task_params: ClassVar[Message] = {"task": {}}

    def __init__(self, world: World, number: int) -> None:
        super().__init__(world, number)
        self._session = ""
        self._home: SimWorker | None = None

    async def _worker(self) -> SimWorker:
        while True:
            if self.is_listening and self._home is not None:
                return self._home
            if self._has_left:
                raise Reset
            await trio.sleep(_PATIENCE)

    async def _listen(self) -> None:
        while not (living := self.world.living):  # noqa: ASYNC110 - as above
            await trio.sleep(_PATIENCE)
        worker: SimWorker = self._chance.choice(living)
        self._session = ""
        self._find_faults(self._judge.close())
        self._begin_conversation()
        opened = {
            "protocolVersion": WITH_SESSIONS,
            "capabilities": {"elicitation": {"form": {}, "url": {}}},
            "clientInfo": _INFO,
        }
        worker.sessions_begun += 1
        await self._request("initialize", opened, worker)
        self._home = worker
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._post(ready, worker, lambda message: False)
        for what in self.world.truth:
            if what != "tools":
                await self._request("resources/subscribe", {"uri": what}, worker)

        def on_head(status: int, headers: Any) -> None:
            if status != 200:
                self.world.fail(f"{self}: the stream of a session began with status {status}")
            self.is_listening = True
            for what in self.world.truth:
                self._read_soon(what, worker)

        def on_message(message: Message) -> bool:
            if message.get("method") == "notifications/tools/list_changed":
                self._read_soon("tools", worker)
            elif message.get("method") == "notifications/resources/updated":
                self._read_soon(message["params"]["uri"], worker)
            else:
                self._was_asked(message, worker)
            return False

        headers = [("accept", "text/event-stream"), *self._headers({})]
        await self._exchange("GET", headers, b"", worker, on_message, on_head)

    def _saw_head(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._session = dict(headers).get(b"mcp-session-id", self._session.encode()).decode()

    def _was_asked(self, message: Message, worker: SimWorker) -> None:
        if message["method"] == "notifications/tasks/status":
            for task in self.tasks:
                if task.id == message["params"]["taskId"]:
                    task.asks = message["params"]["status"] == "input_required"
        elif message["method"] == "notifications/elicitation/complete":
            page = message["params"]["elicitationId"]
            if page not in self.pages:
                self.world.fail(f"{self} hears again, or falsely, that {page} was visited")
            else:
                self.pages.remove(page)
        if "id" not in message:
            return
        text = message["params"].get("_meta", {}).get(f"{_META}related-task", {}).get("taskId", "")
        name = next((task.name for task in self.tasks if task.id == text), "name")
        result = {"action": "accept", "content": {"name": name}}
        response = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        self.world.nursery.start_soon(self._respond, response, worker)

    async def _respond(self, response: Message, worker: SimWorker) -> None:
        with suppress(Reset):
            await self._post(response, worker, lambda message: False)

    async def _ask(self, number: int) -> None:
        answer = await self._request("tools/call", {"name": "ask", "arguments": {}})
        if answer["result"]["content"][0]["text"] != "name":
            self.world.fail(f"{self} asked, responded, and got {answer}")

    async def _visit(self, number: int) -> None:
        page = f"page{self.number}-{next(self._ids)}"
        answer = await self._request("tools/call", {"name": "visit", "arguments": {"id": page}})
        if answer["error"]["code"] != _VISIT_FIRST:
            self.world.fail(f"{self} was to visit a page, and got {answer}")
        self.pages.append(page)
        await trio.sleep(self._chance.uniform(0.1, 1.0))
        if living := self.world.living:
            self._chance.choice(living).visited(page)

    async def _look_at(self, task: SimTask) -> float | None:
        if task.asks:
            task.asks = False  # if it still does, its state says so
            await self._read_result(task)
            return None
        asked = trio.current_time()
        answer = await self._request("tasks/get", {"taskId": task.id})
        if "result" not in answer:
            self.world.oracle.task_unknown(self, task, answer)
            return None
        state = answer["result"]
        if state["status"] != "completed":
            self._saw(task, state, asked)
        if state["status"] in ("input_required", "completed"):
            # It asks on the stream of this request, and responds when the task has ended.
            await self._read_result(task)
        return _interval_of(state)

    async def _read_result(self, task: SimTask) -> None:
        answer = await self._request("tasks/result", {"taskId": task.id})
        result = answer.get("result")
        if result is not None and result.get("isError"):
            self._saw(task, {"status": "failed"}, 0.0)  # as `tasks/get` says in this revision
        elif result is not None:
            self._saw(task, {"status": "completed", "result": result}, 0.0)

    async def _watch(self, number: int) -> None:
        if self.tasks:
            await self._read_result(self.tasks[number % len(self.tasks)])

    def _params(self, method: str, params: Message) -> Message:
        return params

    def _headers(self, message: Message) -> list[tuple[str, str]]:
        if message.get("method") == "initialize":
            return []
        return [("mcp-session-id", self._session), ("mcp-protocol-version", WITH_SESSIONS)]

    def _lost_response(self, method: str, worker: SimWorker) -> None:
        # It may wait for a response that this client, which begins another session, never sends.
        worker.requests_abandoned += method in ("tools/call", "tasks/result")

    def _created(self, result: Message) -> Message:
        state: Message = result["task"]
        return state


class _BodyReader:
    """Reads the messages in the body of a response: one, or events."""

    def __init__(self) -> None:
        self._is_stream = False
        self._buffer = b""

    def begin(self, headers: Any) -> None:
        self._is_stream = (b"content-type", b"text/event-stream") in headers

    def messages(self, data: bytes, *, is_last: bool) -> Iterator[Message]:
        """Yield the messages that `data` completes."""
        self._buffer += data
        if not self._is_stream:
            if is_last and self._buffer:
                yield json.decode(self._buffer)
            return
        *events, self._buffer = self._buffer.split(b"\n\n")
        for event in events:
            for line in event.splitlines():
                if line.startswith(b"data: ") and line[6:].strip():
                    yield json.decode(line[6:])


def _interval_of(state: Message) -> float:
    """Return how many seconds to wait before a task is polled again."""
    milliseconds: float = state.get("pollIntervalMs") or state.get("pollInterval") or 500.0
    return milliseconds / 1000


def _short(message: Message) -> str:
    """Return what of a response is worth a place in the log."""
    if "error" in message:
        return f"error {message['error']['code']} {message['error']['message']}"
    result = message["result"]
    for name in ("taskId", "status", "resultType"):
        if name in result:
            return f"{name} {str(result[name])[:8]} {result.get('status', '')}"
    return "result"
