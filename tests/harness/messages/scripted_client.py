"""A server with a scripted client, under a runtime that the test advances step by step.

`ScriptedClient` runs jobs one step at a time: a handler that waits for a response stays suspended
until the test sends it.
"""

from __future__ import annotations

import json
import types
from typing import TYPE_CHECKING, Any, TypeVar

from mcp_core import DIALECTS, NEED_DATA, Connection, RequestReceived, Role
from mcp_core.registry import NestedRequests, Server
from mcp_core.runtime import Runtime, Service
from tests.harness.jsonrpc import (
    INITIALIZED,
    Message,
    cancelled,
    initialize,
    line,
    request,
    result,
    stateless_request,
)
from tests.harness.stepping import steps_of

if TYPE_CHECKING:
    from collections.abc import Generator

T = TypeVar("T")

OFFERS: Message = {
    "roots": {},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
}
NOW = 1_000_000.0


@types.coroutine
def one_step() -> Generator[None, None, None]:
    yield


class Stepping(Runtime):
    """A runtime of one thread that records its calls, and waits by suspending the handler."""

    def __init__(self) -> None:
        self.reports: list[BaseException] = []
        self.warnings: list[str] = []
        self.slept: list[float] = []
        self.time = NOW
        self.thread = False
        self.time_passes = True  # a wait with a limit ends after one step

    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        self.reports.append(exc)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def reference(self) -> str:
        return "R"

    async def send_nested(self, requests: NestedRequests[T]) -> T:
        awake: list[bool] = []
        with requests.entered(lambda: awake.append(True)):
            if requests.seconds is not None:
                self.slept.append(requests.seconds)
            while not awake:
                await one_step()
                if requests.seconds is not None and self.time_passes:
                    break
        return requests.result()

    def wall_time(self) -> float:
        return self.time

    def entropy(self, size: int) -> bytes:
        return b"\x07" * size

    @property
    def in_worker_thread(self) -> bool:
        return self.thread


class ScriptedClient:
    """A server, and a client of revision `version` with the capabilities `offers`."""

    def __init__(
        self, server: Server, version: str, offers: Message = OFFERS, **options: Any
    ) -> None:
        self.server = server
        self.version = version
        self.offers = offers
        self.stateful = DIALECTS[version].stateful
        self.conn = Connection(Role.SERVER, server.config())
        self.runtime = Stepping()
        self.service = Service(server, self.conn, self.runtime, **options)
        self.running: list[tuple[Any, Any]] = []
        if self.stateful:
            self.receive(initialize(version, capabilities=offers), INITIALIZED)
            self.sent_messages()

    def receive(self, *messages: Message) -> None:
        """Send messages of the client, then run the jobs until all of them wait."""
        self.conn.receive_data(b"".join(map(line, messages)), 0.0)
        self.run_jobs()

    def run_jobs(self) -> None:
        moved = True
        while moved:
            moved = False
            while (event := self.conn.next_event()) is not NEED_DATA:
                job = self.service.handle_event(event)  # type: ignore[arg-type]
                if job is not None:
                    self.running.append((job, steps_of(job.run)))
            for job, steps in list(self.running):
                try:
                    steps.send(None)
                except StopIteration as end:
                    job.done(end.value)
                except BaseException as exc:  # noqa: BLE001 - as a runtime does
                    job.failed(exc)
                else:
                    continue
                self.running.remove((job, steps))
                job.dropped()
                moved = True

    def sent_messages(self) -> list[Message]:
        return [json.loads(line) for line in self.conn.data_to_send().splitlines()]

    def asks(self, id: Any, method: str, **params: Any) -> None:
        """Send a request of the client."""
        if self.stateful:
            self.receive(request(id, method, params))
        else:
            offers = {"io.modelcontextprotocol/clientCapabilities": self.offers}
            self.receive(stateless_request(id, method, params, **offers))

    def calls(self, tool: str, id: Any = 1, **params: Any) -> list[Message]:
        """Call a tool. Return all messages of the server."""
        self.asks(id, "tools/call", name=tool, **params)
        return self.sent_messages()

    def answers(self, question: Message, answer: Any) -> list[Message]:
        """Respond to a request of the server. Return all messages of the server."""
        self.receive(result(question["id"], answer))
        return self.sent_messages()

    def cancels(self, id: Any = 1) -> list[Message]:
        self.receive(cancelled(id))
        return self.sent_messages()

    def whole_call(self, tool: str, *answers: Any) -> Message:
        """Call `tool` and answer its input requests one by one. Return the last message.

        The input requests travel as the revision defines it.
        """
        (message,) = self.calls(tool)
        for answer in answers:
            if self.stateful:
                assert "method" in message, message
                (message,) = self.answers(message, answer)
            else:
                ((key, _),) = message["result"]["inputRequests"].items()
                message = self.again(tool, message["result"], {key: answer})
        return message

    def again(self, tool: str, required: Message, answers: Message, **params: Any) -> Message:
        """Repeat the call, with input responses."""
        if "requestState" in required:
            params["requestState"] = required["requestState"]
        (message,) = self.calls(tool, inputResponses=answers, **params)
        return message
