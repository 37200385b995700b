"""A client with faults on purpose, for the fuzzer of clients. It needs the standard library alone.

    python broken_client.py [--fault NAME] [--revision R] [--url URL | --server COMMAND...]

Without a URL or a server it speaks on its own stdin and stdout. It opens a conversation, lists
tools page by page, calls one, lists resources, and ends. It declares roots and nothing else.
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
    """A fault: what the client does wrong, the rows that it breaks, and where it shows."""

    sentence: str
    rows: tuple[str, ...]
    revision: str = "2025-11-25"
    ways: tuple[str, ...] = ("pipes", "relay", "http")
    within: int = 60


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
}


class Ended(Exception):
    """The server has ended the conversation, or sends what it must not."""


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
    """

    def __init__(self, wire: Any, revision: str, fault: str) -> None:
        self.fault = fault
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
        elif method == "roots/list":
            roots = [{"uri": "file:///home", "name": "home"}]
            response["result"] = {} if self.fault == "wrong-roots" else {"roots": roots}
        elif method == "sampling/createMessage" and self.fault == "answers-undeclared":
            content = {"type": "text", "text": "yes"}
            response["result"] = {"role": "assistant", "content": content, "model": "none"}
        else:
            response["error"] = _error(-32601)
        if self.fault == "id-as-text":
            response["id"] = f"{id}" if isinstance(id, int) else id
        self._send(response)
        if self.fault == "answers-twice":
            self._send(response)

    # -- What it sends -----------------------------------------------------------------------------

    def _send(self, message: Any) -> None:
        self._wire.send(message, self)

    def _meta(self) -> Json:
        meta = {META + "protocolVersion": self.revision, META + "clientCapabilities": {}}
        meta[META + "clientInfo"] = _INFO
        if self.fault == "no-version-in-meta":
            del meta[META + "protocolVersion"]
        return meta

    def request(self, method: str, params: Json) -> Json:
        """Send a request and return its result."""
        for _ in range(MAX_ROUNDS):
            result = self._exchange(method, params)
            kind = result.get("resultType", "complete")
            if self.revision < MODERN or kind == "complete":
                return result
            if kind != "input_required" or method != "tools/call":
                raise Ended
            # It can give nothing, but for the state.
            state, asked = result.get("requestState"), result.get("inputRequests")
            if not isinstance(state, str) or asked:
                raise Ended
            params = {**params, "requestState": state}
            if self.fault == "changes-retry":
                params["arguments"] = {"a": 2}
        raise Ended

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
        for _ in range(MAX_PAGES):
            found = self.request("tools/list", params)
            cursor = found.get("nextCursor")
            if not isinstance(cursor, str):
                break
            params = {"cursor": cursor + "x" if self.fault == "invents-cursor" else cursor}
        if self.fault == "cancels-unknown":
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            meta = {"_meta": self._meta()} if self.revision >= MODERN else {}
            self._send({**note, "params": {"requestId": 77, **meta}})
        arguments: Json = {"name": "sum", "arguments": {"a": 1}}
        self.request("tools/call", {**arguments, "_meta": {"progressToken": "p"}})
        self.request("resources/list", {})

    def _initialize(self) -> None:
        if self.fault == "early-request":
            self._ids += 1
            early = {"jsonrpc": "2.0", "id": f"early-{self._ids}", "method": "tools/list"}
            opening = self._wire
            self._wire = _Twice(opening, early)
        found = self.request(
            "initialize",
            {
                "protocolVersion": self.revision,
                "capabilities": {"roots": {}},
                "clientInfo": _INFO,
            },
        )
        if found.get("protocolVersion") != self.revision:
            raise Ended
        self.is_open = True
        if self.fault != "no-initialized":
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


def _error(code: int) -> Json:
    return {"code": code, "message": "there is no such method"}


def main() -> int:
    """Run the client and return its exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fault", default="", choices=("", *FAULTS))
    parser.add_argument("--revision", default="2025-11-25")
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
        Client(wire, found.revision, found.fault).run()
    except Ended:
        return 1
    finally:
        if child is not None:
            child.kill()
            child.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
