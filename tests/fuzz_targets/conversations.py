"""Conversations written by hand with a server in a process of its own, which the judge follows.

Nothing is checked here: what is sent can be wrong. Both wires offer the same calls, so that a
conversation can be played over stdio and over HTTP.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any, Final, Literal, Self
from urllib.parse import urlsplit

from mcp_core.trace import Finding, HttpHead, Judge, SseFields, TraceHeader, TraceLine
from tests.fuzz_targets.broken_http import NAMES
from tests.fuzz_targets.engine import META
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["SERVER", "HttpConversation", "Json", "ProcessConversation", "StdioConversation", "wire"]

Json = dict[str, Any]

SERVER: Final = Path(__file__).with_name("broken_server.py")
ALL_OFFERS: Final[Json] = {"elicitation": {}, "sampling": {}, "roots": {}}


class ProcessConversation:
    """A conversation with the server, which is started with a fault.

    Args:
        fault: its name; by default none.
        revision: its date.
        offers: the capabilities of the client.

    Attributes:
        findings: what the judge found.
        other: messages that are no responses to `call`, in their order.
    """

    transport: str

    def __init__(
        self, fault: str = "", revision: str = "2026-07-28", offers: Json | None = None
    ) -> None:
        self.fault = fault
        self.revision = revision
        self.offers: Json = {} if offers is None else offers
        self.extensions: Json = {}
        self.findings: list[Finding] = []
        self.other: list[Json] = []
        self._ids = 0
        self._lock = threading.Lock()
        header = TraceHeader(format_version=1, observer="client", transport=self.transport)
        self._judge = Judge(header, from_start=True)
        self._conversation = 1
        self._start()

    def _start(self) -> None:
        arguments = ["--fault", self.fault] if self.fault else []
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER), *arguments, *self._options()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._begin()

    def _options(self) -> list[str]:
        return []

    def _begin(self) -> None:
        """Wait until the server can be reached."""

    def __enter__(self) -> Self:
        if self.revision != "2026-07-28":
            self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stop()
        self.findings += self._judge.close()

    def _stop(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self._end()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def _end(self) -> None:
        raise NotImplementedError

    def open(self, version: str | None = None) -> Json:
        """Perform the handshake, and return the response to initialize."""
        params = {
            "protocolVersion": version or self.revision,
            "capabilities": self.offers,
            "clientInfo": {"name": "test", "version": "1"},
        }
        response = self.call("initialize", params)
        self.notify("notifications/initialized")
        return response

    def open_another(self, version: str) -> Json:
        """Begin another conversation in the same trace, and return the response to initialize."""
        raise NotImplementedError

    def message(self, method: str, params: Json | None = None, id: Any = None) -> Json:
        """Return a request, with the `_meta` of 2026-07-28 if that is the revision."""
        if id is None:
            self._ids += 1
            id = self._ids
        found = dict(params or {})
        if self.revision == "2026-07-28":
            meta: Json = {
                META + "protocolVersion": "2026-07-28",
                META + "clientCapabilities": {**self.offers, "extensions": self.extensions},
                META + "clientInfo": {"name": "test", "version": "1"},
            }
            found["_meta"] = meta | found.get("_meta", {})
        message: Json = {"jsonrpc": "2.0", "id": id, "method": method}
        if found:
            message["params"] = found
        return message

    def call(self, method: str, params: Json | None = None, id: Any = None) -> Json:
        """Send a request, and return its response."""
        raise NotImplementedError

    def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        raise NotImplementedError

    def tool(self, name: str, arguments: Json | None = None, **params: Any) -> Json:
        """Call a tool, and return the response."""
        return self.call("tools/call", {"name": name, "arguments": arguments or {}, **params})

    def result(self, method: str, params: Json | None = None) -> Json:
        """Send a request, and return its result."""
        response = self.call(method, params)
        assert "result" in response, response
        found: Json = response["result"]
        return found

    def start(self, method: str, params: Json | None = None) -> Any:
        """Send a request, and return its id."""
        raise NotImplementedError

    def await_method(self, method: str) -> None:
        """Wait for a notification."""
        raise NotImplementedError

    def respond(self, request: Json) -> Json:
        """Return the response to a request of the server."""
        results: dict[str, Json] = {
            "elicitation/create": {"action": "accept", "content": {"name": "Ada"}},
            "sampling/createMessage": {
                "role": "assistant",
                "content": {"type": "text", "text": "hello"},
                "model": "none",
            },
            "roots/list": {"roots": []},
            "ping": {},
        }
        return {"jsonrpc": "2.0", "id": request["id"], "result": results[request["method"]]}

    def certain(self) -> set[str]:
        """Return the rows of the certain findings."""
        return {each.row for each in self.findings if each.is_certain}

    def _judge_line(self, **line: Any) -> None:
        with self._lock:
            found = TraceLine(t=0.0, conversation=self._conversation, **line)
            self.findings += self._judge.receive(found)


class StdioConversation(ProcessConversation):
    """A conversation over the standard streams."""

    transport = "stdio"

    def _begin(self) -> None:
        self._lines: Queue[bytes | None] = Queue()  # None is the end of the output
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def open_another(self, version: str) -> Json:
        self._stop()
        self._conversation += 1
        self._start()
        return self.open(version)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    def _end(self) -> None:
        try:
            self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.wait()
        self._reader.join()
        while (line := self._lines.get()) is not None:
            self._take(line)

    def _take(self, line: bytes) -> Json:
        self._judge_line(sender="server", raw=line.decode().rstrip("\n"))
        found: Json = json.loads(line)
        return found

    def send(self, *messages: Json | list[Json] | bytes) -> None:
        """Send lines, in one write."""
        lines = [
            each if isinstance(each, bytes) else json.dumps(each).encode() for each in messages
        ]
        for line in lines:
            try:
                self._judge_line(sender="client", raw=line.decode())
            except UnicodeDecodeError:
                self._judge_line(sender="client", data=line)
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(line + b"\n" for line in lines))
        self.process.stdin.flush()

    def receive(self, timeout: float = PATIENCE) -> Json | None:
        """Return the next message, or None if none comes in time or the server has ended."""
        try:
            line = self._lines.get(timeout=timeout)
        except Empty:
            return None
        if line is None:
            self._lines.put(None)
            return None
        return self._take(line)

    def is_silent_on(self, message: Json) -> bool:
        """Send a request. Return True if nothing comes before the response to another one."""
        count = len(self.other)
        self.send(message)
        self.call("tools/list")
        return len(self.other) == count

    def start(self, method: str, params: Json | None = None) -> Any:
        """Send a request, and return its id."""
        message = self.message(method, params)
        self.send(message)
        return message["id"]

    def await_method(self, method: str) -> None:
        while (message := self.receive()) is not None:
            self.other.append(message)
            if message.get("method") == method:
                return
        raise TimeoutError(method)

    def response(self, *ids: Any) -> Json:
        """Return the first response that has one of the ids."""
        end = time.monotonic() + PATIENCE
        while (message := self.receive(max(0.0, end - time.monotonic()))) is not None:
            if "method" in message and "id" in message:
                self.send(self.respond(message))
            if "method" not in message and message.get("id") in ids:
                return message
            self.other.append(message)
        raise TimeoutError(f"no response to {ids}")

    def call(self, method: str, params: Json | None = None, id: Any = None) -> Json:
        message = self.message(method, params, id)
        self.send(message)
        if self.fault == "id-as-number" and isinstance(id, str):
            id = int(id)
        return self.response(message["id"] if id is None else id)

    def notify(self, method: str, params: Json | None = None) -> None:
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)


class HttpConversation(ProcessConversation):
    """A conversation over HTTP. Each request has a connection of its own."""

    transport = "http"
    owner = ""

    def _options(self) -> list[str]:
        return ["--http"]

    def _begin(self) -> None:
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()
        self.port = urlsplit(self.url).port
        self._exchanges = 0
        self._followers: list[threading.Thread] = []
        self.session: str | None = None
        self.last_status = 0

    def _end(self) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self._followers:
            thread.join()

    def open_another(self, version: str) -> Json:
        self.session = None
        return self.open(version)

    def headers_of(self, message: Json) -> dict[str, str]:
        """Return the headers that belong to a message."""
        headers = {
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
        }
        if self.owner:
            headers["authorization"] = f"Bearer {self.owner}"
        if self.session is not None:
            headers["mcp-session-id"] = self.session
        if self.revision == "2026-07-28" or (
            message.get("method") != "initialize" and self.revision in ("2025-06-18", "2025-11-25")
        ):
            meta = message.get("params", {}).get("_meta")
            named = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
            headers["mcp-protocol-version"] = named or self.revision
        if self.revision == "2026-07-28" and "method" in message:
            headers["mcp-method"] = message["method"]
            if message["method"] in NAMES:
                headers["mcp-name"] = message["params"][NAMES[message["method"]]]
            region = message.get("params", {}).get("arguments", {}).get("region")
            if region is not None:
                headers["mcp-param-region"] = region
        return headers

    def post(self, message: Json | bytes, **changed: str | None) -> tuple[int, list[Json]]:
        """Send a message, and return the status and the messages of the response.

        Args:
            message: the message, or a body.
            changed: headers to change, with underscores for hyphens; None leaves one out.
        """
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        headers = self.headers_of(message if isinstance(message, dict) else {})
        for name, value in changed.items():
            headers[name.replace("_", "-")] = value or ""
        headers = {name: value for name, value in headers.items() if value}
        return self._exchange("POST", body, headers)

    def _exchange(
        self, method: str, body: bytes, headers: dict[str, str]
    ) -> tuple[int, list[Json]]:
        with self._lock:
            self._exchanges += 1
            number = self._exchanges
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            pairs = tuple(headers.items())
            head = HttpHead(version="1.1", method=method, target="/mcp", headers=pairs)
            self._line("client", number, body, http=head)
            connection.request(method, "/mcp", body=body, headers=headers)
            response = connection.getresponse()
            pairs = tuple((name.lower(), value) for name, value in response.getheaders())
            head = HttpHead(version="1.1", status=response.status, headers=pairs)
            self.session = response.headers.get("mcp-session-id") or self.session
            if "event-stream" not in response.headers.get("content-type", ""):
                data = response.read()
                self._line("server", number, data, http=head)
                is_json = response.headers.get("content-type") == "application/json"
                return response.status, [json.loads(data)] if is_json else []
            self._line("server", number, b"", http=head)
            return response.status, list(self._events(response, number))
        finally:
            connection.close()

    def _events(self, response: http.client.HTTPResponse, number: int) -> list[Json]:
        found: list[Json] = []
        event: dict[str, str] = {}
        for line in response:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                event[name] = value
                continue
            data = event.get("data", "")
            self._line("server", number, data.encode(), sse=SseFields(id=event.get("id")))
            event = {}
            if data:
                message = json.loads(data)
                found.append(message)
                if "method" in message:
                    self.other.append(message)
                if "method" in message and "id" in message:
                    self.post(self.respond(message))
        return found

    def _line(
        self, sender: Literal["client", "server"], number: int, body: bytes, **of: Any
    ) -> None:
        try:
            self._judge_line(sender=sender, exchange=number, raw=body.decode() or None, **of)
        except UnicodeDecodeError:
            self._judge_line(sender=sender, exchange=number, data=body, **of)

    def call(self, method: str, params: Json | None = None, id: Any = None) -> Json:
        self.last_status, messages = self.post(self.message(method, params, id))
        responses = [each for each in messages if "method" not in each]
        self.other += responses[1:]
        assert responses, (self.last_status, messages)
        return responses[0]

    def notify(self, method: str, params: Json | None = None) -> None:
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.last_status, messages = self.post(message)
        self.other += messages

    def start(self, method: str, params: Json | None = None) -> Any:
        message = self.message(method, params)
        thread = threading.Thread(target=self._follow, args=(message,), daemon=True)
        thread.start()
        self._followers.append(thread)
        return message["id"]

    def _follow(self, message: Json) -> None:
        with suppress(OSError, http.client.HTTPException):
            self.post(message)

    def await_method(self, method: str) -> None:
        end = time.monotonic() + PATIENCE
        while not any(each.get("method") == method for each in self.other):
            if time.monotonic() > end:
                raise TimeoutError(method)
            time.sleep(0.01)

    def delete(self) -> int:
        """End the session, and return the status."""
        headers = {"mcp-session-id": self.session or ""}
        if self.revision in ("2025-06-18", "2025-11-25"):
            headers["mcp-protocol-version"] = self.revision
        return self._exchange("DELETE", b"", headers)[0]


def wire(
    transport: str, fault: str = "", revision: str = "2026-07-28", offers: Json | None = None
) -> Any:
    """Return a conversation over a transport. Use it as a context manager."""
    return (StdioConversation if transport == "stdio" else HttpConversation)(
        fault, revision, offers
    )
