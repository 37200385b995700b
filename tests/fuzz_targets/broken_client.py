"""A client with faults on purpose, for the fuzzer of clients. It needs the standard library alone.

    python broken_client.py [--fault NAME] [--revision R] [--declares all]
                            [--url URL | --server COMMAND...]

Without a URL or a server it speaks on its own stdin and stdout. It opens a conversation, lists
tools page by page, calls one, lists resources, and ends. It declares roots and nothing else, or
with `--declares all` sampling and forms, too.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import time
from typing import IO, Any, Final, NamedTuple
from urllib.parse import urlsplit

Json = dict[str, Any]

META: Final = "io.modelcontextprotocol/"
MODERN: Final = "2026-07-28"
MAX_PAGES: Final = 5
MAX_ROUNDS: Final = 3
MAX_LINE: Final = 32 * 1024 * 1024


class Fault(NamedTuple):
    """A fault: what the client does wrong, the rows that it breaks, and where it shows.

    Attributes:
        within: how many cases find it.
        declares: what the client declares: some or all.
        is_advice: a run doesn't fail for it.
    """

    sentence: str
    rows: tuple[str, ...]
    revision: str = "2025-11-25"
    ways: tuple[str, ...] = ("pipes", "relay", "http")
    within: int = 60
    declares: str = "some"
    is_advice: bool = False


FAULTS: Final[dict[str, Fault]] = {
    "reuses-id": Fault("All requests have the same id.", ("RPC-4",), within=10),
    "answers-undeclared": Fault("Sampling has a result, and was not declared.", ("SAMP-1",)),
    "no-initialized": Fault("The client does not send initialized.", ("LIFE-7",), within=10),
    "early-request": Fault(
        "A request is sent before the response to initialize.",
        ("LIFE-8",),
        ways=("pipes", "relay"),
        within=10,
    ),
    "batch": Fault("Two requests are a batch.", ("RPC-25",), within=10),
    "no-version-header": Fault(
        "MCP-Protocol-Version is missing.", ("SHL-28",), ways=("http",), within=10
    ),
    "no-session-header": Fault(
        "Mcp-Session-Id is not repeated.", ("SHL-22",), ways=("http",), within=10
    ),
    "ignores-ping": Fault("A ping has no response.", ("PING-2",)),
    "hangs-on-error": Fault("The client hangs after an error response.", ("hang",)),
    "no-version-in-meta": Fault(
        "`_meta` has no protocolVersion.", ("LIFE-1", "META-6"), revision=MODERN, within=10
    ),
    "cancels-unknown": Fault(
        "It cancels a request that it never sent.", ("CXL-2", "CXL-3"), within=10
    ),
    "answers-twice": Fault(
        "A request of the server has two responses.", ("RPC-7",), ways=("pipes", "relay")
    ),
    "id-as-text": Fault("A response has the id as a string.", ("RPC-7",)),
    "aborts-on-junk": Fault(
        "A line that is not JSON aborts the process.", ("crash",), ways=("pipes", "relay")
    ),
    "wrong-roots": Fault("The result of roots/list has no roots.", ("ROOT-2",), within=150),
    "invents-cursor": Fault(
        "The cursor of a page is changed.", ("PAGE-3",), ways=("pipes", "relay"), within=150
    ),
    "answers-notifications": Fault(
        "An unknown notification has an error response.",
        ("RPC-14", "RPC-8"),
        ways=("pipes", "relay"),
        within=150,
    ),
    "changes-retry": Fault(
        "The retry after input_required has other arguments.",
        ("MRTR-7",),
        revision=MODERN,
        within=150,
    ),
    # Handshakes
    "takes-any-version": Fault(
        "The client goes on with whatever version initialize answers.", ("LIFE-5",), within=200
    ),
    "probes-then-forgets": Fault(
        "After server/discover and initialize it does not send initialized.",
        ("LIFE-7",),
        ways=("pipes", "relay"),
        within=10,
    ),
    "insists-on-version": Fault(
        "It sends a request again and again with a version that was rejected.",
        ("VER-2",),
        revision=MODERN,
        within=200,
    ),
    # Questions
    "fills-in-undeclared": Fault(
        "A form is filled in, and was not declared.", ("ELIC-1",), within=200
    ),
    "ignores-undeclared": Fault(
        "A question that was not declared has no response.", ("RPC-35",), within=200
    ),
    "fills-in-wrongly": Fault(
        "The content of a form is out of range.", ("ELIC-10",), within=200, declares="all"
    ),
    "opens-any-url": Fault(
        "An elicitation by URL is accepted, and only forms were declared.",
        ("ELIC-3",),
        within=200,
        declares="all",
    ),
    "uses-any-tools": Fault(
        "Sampling with tools has a result, and tools were not declared for it.",
        ("SAMP-5",),
        within=200,
        declares="all",
    ),
    "samples-nothing": Fault(
        "A sampled message has no content.", ("SAMP-3",), within=200, declares="all"
    ),
    "fills-in-a-round-wrongly": Fault(
        "The content of a form of an input_required result is out of range.",
        ("ELIC-10",),
        revision=MODERN,
        within=200,
        declares="all",
    ),
    "gives-undeclared-roots": Fault(
        "Roots are given in a retry, and were not declared.",
        ("ROOT-1",),
        revision=MODERN,
        within=200,
    ),
    "gives-a-part": Fault(
        "A retry has only the first of the responses.",
        ("MRTR-6",),
        revision=MODERN,
        within=200,
        declares="all",
    ),
    # Pages
    "ends-at-empty-cursor": Fault(
        "An empty cursor is taken for the end of a list.",
        ("PAGE-4",),
        revision=MODERN,
        within=200,
    ),
    "follows-pages-for-ever": Fault(
        "Pages are read as long as there are any.", ("endless",), within=200, is_advice=True
    ),
    "tries-for-ever": Fault(
        "A call is tried again as long as input is required.",
        ("endless",),
        revision=MODERN,
        within=200,
        declares="all",
        is_advice=True,
    ),
    "hangs-on-same-cursor": Fault(
        "The client hangs at a page whose cursor it has seen.", ("hang",), within=200
    ),
    # Results
    "aborts-on-wrong-output": Fault(
        "A result that breaks the output schema aborts the process.", ("crash",), within=200
    ),
    "hangs-without-output": Fault(
        "A result without structuredContent hangs the client.", ("hang",), within=200
    ),
}


class Ended(Exception):
    """The server has ended the conversation, or sends what it must not."""


class Refused(Exception):
    """The client refuses a question."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class LineWire:
    """A conversation over two pipes."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        self._reader, self._writer = reader, writer

    def send(self, message: Any, client: Client) -> None:
        """Send a message."""
        try:
            self._writer.write(json.dumps(message).encode() + b"\n")
            self._writer.flush()
        except OSError:
            raise Ended from None

    def receive(self) -> Any:
        """Return the next message, None for a line that has no JSON."""
        line = self._reader.readline(MAX_LINE)
        if not line.endswith(b"\n"):
            raise Ended
        return parse(line)

    def next_response(self, client: Client, id: Any) -> Json:
        """Return the response to a request. What comes before it is handled."""
        while True:
            message = self.receive()
            if isinstance(message, dict) and "method" not in message and message.get("id") == id:
                return message
            client.handle(message)


class HttpWire:
    """A conversation over Streamable HTTP, a connection for each request."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._address = parts.hostname or "", parts.port or 80
        self._path = parts.path
        self._session = ""
        self._received: list[Any] = []

    def send(self, message: Any, client: Client) -> None:
        """Send a message, and keep what comes back."""
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        if self._session and client.fault != "no-session-header":
            headers["mcp-session-id"] = self._session
        if client.revision >= MODERN and isinstance(message, dict):
            headers["mcp-method"] = message["method"]
            if message["method"] == "tools/call":
                headers["mcp-name"] = message["params"]["name"]
        if client.is_open and client.fault != "no-version-header":
            headers["mcp-protocol-version"] = client.revision
        connection = http.client.HTTPConnection(*self._address, timeout=20)
        try:
            connection.request("POST", self._path, json.dumps(message), headers)
            response = connection.getresponse()
            self._session = self._session or response.headers.get("mcp-session-id", "")
            if response.status >= 300:
                raise Ended
            if "event-stream" in response.headers.get("content-type", ""):
                self._read_events(response, client)
            elif response.status != 202:
                self._received.append(parse(response.read(MAX_LINE)))
        except (OSError, http.client.HTTPException, ValueError):
            raise Ended from None
        finally:
            connection.close()

    def _read_events(self, response: http.client.HTTPResponse, client: Client) -> None:
        while line := response.readline(MAX_LINE):
            if line.startswith(b"data:") and line[5:].strip():
                message = parse(line[5:])
                if isinstance(message, dict) and "method" not in message:
                    self._received.append(message)
                else:
                    client.handle(message)

    def next_response(self, client: Client, id: Any) -> Json:
        """Return the response to a request."""
        received, self._received = self._received, []
        for message in received:
            if isinstance(message, dict) and message.get("id") == id:
                return message
        raise Ended


def parse(data: bytes) -> Any:
    """Return the message in `data`, None if it has no JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


class Client:
    """The client.

    Args:
        wire: to the server.
        revision: that it speaks.
        fault: its name, "" for none.
        declares: what it declares: some or all.
    """

    def __init__(self, wire: Any, revision: str, fault: str, declares: str = "some") -> None:
        self.fault = fault
        self.declared: Json = {"roots": {}} if revision < MODERN else {}
        if declares == "all":
            self.declared = {"roots": {}, "sampling": {}, "elicitation": {}}
        self.revision = revision
        self.is_open = revision >= MODERN
        self._wire = wire
        self._ids = 0

    # -- What the server sends ---------------------------------------------------------------------

    def handle(self, message: Any) -> None:
        """Answer a request of the server; ignore anything else."""
        if not isinstance(message, dict):
            if self.fault == "aborts-on-junk" and message is None:
                os.abort()
            return
        method, id = message.get("method"), message.get("id")
        if not isinstance(method, str) or isinstance(id, bool):
            return
        if self.revision >= MODERN:
            return  # its servers send no requests
        if not isinstance(id, int | str):
            known = "list_changed" in method or method in _NOTIFICATIONS
            if self.fault == "answers-notifications" and "id" not in message and not known:
                self._send({"jsonrpc": "2.0", "id": None, "error": _error(-32601)})
            return
        response: Json = {"jsonrpc": "2.0", "id": id}
        if method == "ping":
            if self.fault == "ignores-ping":
                return
            response["result"] = {}
        else:
            try:
                response["result"] = self._answer(method, message.get("params"))
            except Refused as exc:
                if exc.code == -32601 and self.fault == "ignores-undeclared":
                    return
                response["error"] = _error(exc.code)
        if self.fault == "id-as-text":
            response["id"] = f"{id}" if isinstance(id, int) else id
        self._send(response)
        if self.fault == "answers-twice":
            self._send(response)

    def _answer(self, method: str, params: Any) -> Json:
        """Return the result for a question, which the client has declared, or has the fault."""
        params = params if isinstance(params, dict) else {}
        capability = _CAPABILITIES.get(method, "")
        if capability not in self.declared and self.fault not in _ANSWERING.get(method, ()):
            raise Refused(-32601)
        if method == "roots/list":
            roots = [{"uri": "file:///home", "name": "home"}]
            return {} if self.fault == "wrong-roots" else {"roots": roots}
        if method == "sampling/createMessage":
            messages = params.get("messages")
            if not isinstance(messages, list) or not all(isinstance(e, dict) for e in messages):
                raise Refused(-32602)
            if "tool_" in json.dumps(messages) and self.fault != "uses-any-tools":
                raise Refused(-32602)
            if {"tools", "toolChoice"} & params.keys() and self.fault != "uses-any-tools":
                raise Refused(-32602)
            text = {"type": "text", "text": "yes"}
            found: Json = {"role": "assistant", "content": text, "model": "none"}
            if self.fault == "samples-nothing":
                del found["content"]
            return found
        if params.get("mode", "form") != "form":
            if params.get("mode") == "url" and self.fault == "opens-any-url":
                return {"action": "accept"}
            raise Refused(-32602)
        content = filled_in(params.get("requestedSchema"))
        if self.fault in ("fills-in-wrongly", "fills-in-a-round-wrongly") and "count" in content:
            content["count"] = 99
        return {"action": "accept", "content": content}

    # -- What it sends -----------------------------------------------------------------------------

    def _send(self, message: Any) -> None:
        self._wire.send(message, self)

    def _meta(self) -> Json:
        meta: Json = {META + "protocolVersion": self.revision}
        meta[META + "clientCapabilities"] = self.declared
        meta[META + "clientInfo"] = _INFO
        if self.fault == "no-version-in-meta":
            del meta[META + "protocolVersion"]
        return meta

    def request(self, method: str, params: Json) -> Json:
        """Send a request and return its result."""
        first = params
        for _ in range(10_000 if self.fault == "tries-for-ever" else MAX_ROUNDS):
            result = self._exchange(method, params)
            kind = result.get("resultType", "complete")
            if self.revision < MODERN or kind == "complete":
                return result
            if kind != "input_required" or method != "tools/call":
                raise Ended
            params = {**first, **self._retry_of(result)}
            if self.fault == "changes-retry":
                params["arguments"] = {"a": 2}
        raise Ended

    def _retry_of(self, result: Json) -> Json:
        """Return the params that a retry has beside those of the request."""
        state, asked = result.get("requestState"), result.get("inputRequests", {})
        if not isinstance(state, str | None) or not isinstance(asked, dict):
            raise Ended
        given: Json = {}
        for key, each in asked.items():
            if not isinstance(each, dict) or not isinstance(each.get("method"), str):
                raise Ended
            try:
                given[key] = self._answer(each["method"], each.get("params"))
            except Refused:
                raise Ended from None
            if self.fault == "gives-a-part":
                break
        more: Json = {"inputResponses": given} if asked else {}
        if not more and state is None:
            raise Ended
        return more | ({} if state is None else {"requestState": state})

    def _exchange(self, method: str, params: Json) -> Json:
        if self.fault != "reuses-id" or not self._ids:
            self._ids += 1
        id = self._ids
        if self.revision >= MODERN:
            params = {**params, "_meta": {**params.get("_meta", {}), **self._meta()}}
        request = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        if self.fault == "batch" and method == "tools/call":
            self._send([request])
        else:
            self._send(request)
        response = self._wire.next_response(self, id)
        error = response.get("error")
        while self.fault == "insists-on-version" and _code(error) == -32022:
            self._ids += 1
            id = self._ids
            self._send({**request, "id": id})
            response = self._wire.next_response(self, id)
            error = response.get("error")
        result = response.get("result")
        if "error" in response or not isinstance(result, dict):
            if self.fault == "hangs-on-error":
                time.sleep(3_600)
            raise Ended
        return result

    def run(self) -> None:
        """Have the conversation."""
        if self.revision >= MODERN:
            self.request("server/discover", {})
        else:
            self._initialize()
        params: Json = {}
        seen = [""]
        for _ in range(10_000 if self.fault == "follows-pages-for-ever" else MAX_PAGES):
            found = self.request("tools/list", params)
            cursor = found.get("nextCursor")
            if not isinstance(cursor, str) or (self.fault == "ends-at-empty-cursor" and not cursor):
                break
            if self.fault == "hangs-on-same-cursor" and cursor in seen:
                time.sleep(3_600)
            seen.append(cursor)
            params = {"cursor": cursor + "x" if self.fault == "invents-cursor" else cursor}
        if self.fault == "cancels-unknown":
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            meta = {"_meta": self._meta()} if self.revision >= MODERN else {}
            self._send({**note, "params": {"requestId": 77, **meta}})
        arguments: Json = {"name": "sum", "arguments": {"a": 1}}
        called = self.request("tools/call", {**arguments, "_meta": {"progressToken": "p"}})
        output = called.get("structuredContent")
        is_right = isinstance(output, dict) and isinstance(output.get("sum"), int)
        if self.fault == "aborts-on-wrong-output" and output is not None and not is_right:
            os.abort()
        if self.fault == "hangs-without-output" and output is None:
            time.sleep(3_600)
        self.request("resources/list", {})

    def _initialize(self) -> None:
        if self.fault == "probes-then-forgets":
            self._ids += 1
            known = {META + "protocolVersion": MODERN, META + "clientCapabilities": self.declared}
            meta = {"_meta": {**known, META + "clientInfo": _INFO}}
            probe = {"jsonrpc": "2.0", "id": self._ids, "method": "server/discover"}
            self._send({**probe, "params": meta})
            self._wire.next_response(self, self._ids)
        if self.fault == "early-request":
            self._ids += 1
            early = {"jsonrpc": "2.0", "id": f"early-{self._ids}", "method": "tools/list"}
            opening = self._wire
            self._wire = _Twice(opening, early)
        found = self.request(
            "initialize",
            {
                "protocolVersion": self.revision,
                "capabilities": self.declared,
                "clientInfo": _INFO,
            },
        )
        if found.get("protocolVersion") != self.revision and self.fault != "takes-any-version":
            raise Ended
        self.is_open = True
        if self.fault not in ("no-initialized", "probes-then-forgets"):
            self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})


class _Twice:
    """A wire that sends another message after the first one."""

    def __init__(self, wire: Any, second: Json) -> None:
        self._wire = wire
        self._second: Json | None = second

    def send(self, message: Any, client: Client) -> None:
        self._wire.send(message, client)
        if self._second is not None:
            second, self._second = self._second, None
            self._wire.send(second, client)

    def next_response(self, client: Client, id: Any) -> Json:
        found: Json = self._wire.next_response(client, id)
        return found


_INFO: Final = {"name": "broken-client", "version": "1"}
_NOTIFICATIONS: Final = (
    "notifications/progress",
    "notifications/message",
    "notifications/cancelled",
    "notifications/resources/updated",
    "notifications/tasks/status",
)


_CAPABILITIES: Final = {
    "roots/list": "roots",
    "sampling/createMessage": "sampling",
    "elicitation/create": "elicitation",
}
# The faults with which a question that wasn't declared is answered.
_ANSWERING: Final = {
    "roots/list": ("gives-undeclared-roots",),
    "sampling/createMessage": ("answers-undeclared",),
    "elicitation/create": ("fills-in-undeclared",),
}


def filled_in(schema: Any) -> Json:
    """Return content that fits a form.

    Raises:
        Refused: it isn't a form that this client can show.
    """
    fields = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(fields, dict) or not all(isinstance(e, dict) for e in fields.values()):
        raise Refused(-32602)
    required = schema.get("required", [])
    if not isinstance(required, list) or any(each not in fields for each in map(str, required)):
        raise Refused(-32602)
    return {name: _field(each) for name, each in fields.items()}


def _field(field: Json) -> Any:
    """Return a value for a field of a form. Its default is not checked."""
    kind = field.get("type")
    if kind == "array" and isinstance(field.get("items"), dict):
        items = field["items"]
        return [_choice(items.get("enum") or items.get("anyOf"))]
    if kind == "string" and ("enum" in field or "oneOf" in field):
        return _choice(field.get("enum") or field.get("oneOf"))
    if kind == "string" and "pattern" not in field:
        known = {"email": "a@example.com", "date": "2026-01-01"}
        found = known.get(str(field.get("format")), "abc")
        if field.get("minLength", 0) <= len(found) <= field.get("maxLength", 100):
            return found
    if kind in ("integer", "number"):
        return field.get("minimum", 1)
    if kind == "boolean":
        return True
    raise Refused(-32602)


def _choice(values: Any) -> str:
    first = values[0] if isinstance(values, list) and values else None
    first = first.get("const") if isinstance(first, dict) else first
    if not isinstance(first, str):
        raise Refused(-32602)
    return first


def _code(error: Any) -> Any:
    return error.get("code") if isinstance(error, dict) else None


def _error(code: int) -> Json:
    return {"code": code, "message": "the client refuses this"}


def main() -> int:
    """Run the client and return its exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    parser.add_argument("--revision", default="2025-11-25")
    parser.add_argument("--declares", default="some", choices=("some", "all"))
    parser.add_argument("--url")
    parser.add_argument("--server", nargs=argparse.REMAINDER)
    found = parser.parse_args()
    child = None
    wire: Any
    if found.url:
        wire = HttpWire(found.url)
    elif found.server:
        child = subprocess.Popen(found.server, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert child.stdin is not None
        assert child.stdout is not None
        wire = LineWire(child.stdout, child.stdin)
    else:
        wire = LineWire(sys.stdin.buffer, sys.stdout.buffer)
    try:
        Client(wire, found.revision, found.fault, found.declares).run()
    except Ended:
        return 1
    finally:
        if child is not None:
            child.kill()
            child.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
