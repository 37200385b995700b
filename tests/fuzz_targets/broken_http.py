"""The server broken on purpose, over HTTP: `broken_server.py` imports it only with `--http`."""

from __future__ import annotations

import base64
import binascii
import os
import select
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tests.fuzz_targets.batches import MAX_MESSAGE, Batch, dump, serve_batch
from tests.fuzz_targets.catalog import REVISIONS, TOOLS
from tests.fuzz_targets.engine import (
    META,
    Conversation,
    Server,
    decode,
    error_response,
    kind_of,
)

if TYPE_CHECKING:
    from tests.fuzz_targets.catalog import Json

__all__ = ["NAMES", "HttpServer"]

MAX_SESSIONS: Final = 1_000
MAX_STREAMS: Final = 20  # of a session, for clients that resume them
READ_TIMEOUT: Final = 10.0  # seconds for the rest of a request, and between two requests
KEEP_ALIVE: Final = 15.0  # seconds between comments on a quiet stream
STATUS: Final = {-32601: 404, -32603: 200}  # of 2026-07-28; others have 400
# The member of the params that `Mcp-Name` repeats.
NAMES: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


class Stream:
    """The events of one response or GET, kept for a client that resumes it.

    It is the sink of the messages of a session that belong to no request.
    """

    ends_with_request = False

    def __init__(self, number: int, *, has_ids: bool) -> None:
        self.number = number
        self.events: list[bytes] = []
        self.has_ended = False
        self.changed = threading.Condition()
        self._has_ids = has_ids

    def add(self, message: Json | None) -> bytes:
        """Add an event, and return it. Without a message it only has an id."""
        with self.changed:
            data = b"data: " + (dump(message) if message is not None else b"") + b"\n\n"
            if self._has_ids:
                data = b"id: %d-%d\n" % (self.number, len(self.events)) + data
            self.events.append(data)
            self.changed.notify_all()
            return data

    def end(self) -> None:
        with self.changed:
            self.has_ended = True
            self.changed.notify_all()

    def send(self, message: Json) -> None:
        self.add(message)

    def finish(self, messages: list[Json]) -> None:
        for message in messages:
            self.add(message)

    def is_gone(self) -> bool:
        return False


class Session:
    """One session of a revision with a handshake."""

    def __init__(self, server: Server, owner: str) -> None:
        self.id = uuid.uuid4().hex
        self.owner = owner
        self.conversation = Conversation(server, owner=owner, lists_tasks=bool(owner))
        self._streams: dict[int, Stream] = {}
        self._count = 0
        self._lock = threading.Lock()

    def stream(self) -> Stream:
        """Return a new stream."""
        with self._lock:
            self._count += 1
            stream = self._streams[self._count] = Stream(self._count, has_ids=True)
            if len(self._streams) > MAX_STREAMS:
                del self._streams[min(self._streams)]
            return stream

    def resumed(self, event_id: str) -> tuple[Stream, int] | None:
        """Return the stream of an event id, and the place after it."""
        number, _, place = event_id.partition("-")
        if not (number.isascii() and number.isdigit() and place.isascii() and place.isdigit()):
            return None
        stream = self._streams.get(int(number[:9]))
        return None if stream is None else (stream, int(place[:9]) + 1)


class HttpServer(ThreadingHTTPServer):
    """The listener, and what the connections share."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 100

    def __init__(self, server: Server, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.mcp = server
        self.sessions: dict[str, Session] = {}
        self.open_bodies = 0
        self.lock = threading.Lock()

    def add(self, session: Session) -> None:
        with self.lock:
            self.sessions[session.id] = session
            if len(self.sessions) > MAX_SESSIONS:
                oldest = self.sessions.pop(next(iter(self.sessions)))
                oldest.conversation.close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report errors that are not a lost connection."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class Reply:
    """The response to one POST: JSON if it is one message, and events otherwise."""

    ends_with_request = True

    def __init__(self, handler: Handler, *, revision: str, session: Session | None) -> None:
        self._handler = handler
        self._revision = revision
        self._session = session
        self._stream: Stream | None = None
        self._is_broken = False
        self._lock = threading.Lock()
        self.headers: dict[str, str] = {}

    def send(self, message: Json) -> None:
        with self._lock:
            self._write(message)

    def finish(self, messages: list[Json]) -> None:
        with self._lock:
            if self._stream is None and len(messages) == 1:
                self._handler.respond(self._status(messages[0]), messages[0], self.headers)
            elif self._stream is None and not messages:
                # A request that was cancelled has no response. Its client waits for the end.
                self._handler.respond(202, None, self.headers)
            else:
                for message in messages:
                    self._write(message)
                assert self._stream is not None
                self._stream.end()
                self._try(self._handler.end_events)

    def is_gone(self) -> bool:
        return self._is_broken or self._handler.is_gone()

    def _status(self, message: Json) -> int:
        code = message.get("error", {}).get("code")
        if code is None:
            return 200
        if self._revision == "2026-07-28":
            return STATUS.get(code, 400)
        return 400 if code in (-32700, -32600) else 200

    def _write(self, message: Json) -> None:
        if self._stream is None:
            is_modern = self._session is None or self._revision == "2026-07-28"
            stream = Stream(0, has_ids=False) if is_modern else self._session.stream()  # type: ignore[union-attr]
            self._stream = stream
            self._try(lambda: self._handler.begin_events(self.headers))
            if self._revision == "2025-11-25" and not is_modern:
                first = stream.add(None)
                self._try(lambda: self._handler.write_events(first))
        event = self._stream.add(message)
        self._try(lambda: self._handler.write_events(event))

    def _try(self, write: Any) -> None:
        if self._is_broken:
            return
        try:
            write()
        except OSError:
            self._is_broken = True
            self._handler.close_connection = True


class _Rejected(Exception):
    """The request is rejected before its message was read."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Handler(BaseHTTPRequestHandler):
    """The requests of one connection."""

    protocol_version = "HTTP/1.1"
    server_version = "broken-server"
    timeout = READ_TIMEOUT
    disable_nagle_algorithm = True
    wbufsize = -1
    server: HttpServer

    # -- Requests ----------------------------------------------------------------------------------

    def do_POST(self) -> None:
        self._guarded(self._post)

    def do_GET(self) -> None:
        self._guarded(self._get)

    def do_DELETE(self) -> None:
        self._guarded(self._delete)

    def do_OPTIONS(self) -> None:
        self._guarded(self._not_allowed)

    def do_HEAD(self) -> None:
        self._guarded(self._not_allowed)

    def _guarded(self, serve: Any) -> None:
        try:
            self._check()
            serve()
        except _Rejected as exc:
            self.close_connection = True  # the body may be unread
            self.respond_text(exc.status, str(exc))
        except (ConnectionError, TimeoutError):
            self.close_connection = True

    def _check(self) -> None:
        while self.server.open_bodies >= 3:
            if self.is_gone():
                raise ConnectionError
            select.select([], [], [], 0.02)
        if urlsplit(self.path).path != "/mcp":
            raise _Rejected(404, "Not found")
        local = {f"{name}:{self.server.server_port}" for name in ("127.0.0.1", "localhost")}
        if self.headers.get("host") not in local:
            raise _Rejected(403, "The host is not served")
        origin = self.headers.get("origin")
        is_foreign = origin is not None and origin not in {f"http://{each}" for each in local}
        if is_foreign and self.server.mcp.fault != "serves-foreign-origin":
            raise _Rejected(403, "The origin is not allowed")

    def _not_allowed(self) -> None:
        self.close_connection = True
        self.respond(405, None, {"Allow": "GET, POST, DELETE"})

    def _owner(self) -> str:
        scheme, _, token = (self.headers.get("authorization") or "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    def _accepts(self, *kinds: str) -> bool:
        accept = (self.headers.get("accept") or "").lower()
        return "*/*" in accept or all(kind in accept for kind in kinds)

    def _is_modern(self) -> bool:
        return self.headers.get("mcp-protocol-version") == "2026-07-28"

    def _session(self) -> Session | None:
        """Return the session that the request names, or None if it names none."""
        id = self.headers.get("mcp-session-id")
        if id is None:
            return None
        session = self.server.sessions.get(id)
        is_lax = self.server.mcp.fault == "accepts-unknown-session"
        if session is not None and (session.owner == self._owner() or is_lax):
            return session
        if not is_lax:
            raise _Rejected(404, "The session is unknown")
        session = Session(self.server.mcp, self._owner())
        session.id = id
        version = self.headers.get("mcp-protocol-version") or ""
        session.conversation.revision = version if version in REVISIONS else "2025-03-26"
        self.server.add(session)
        return session

    def _post(self) -> None:
        if not self._accepts("application/json", "text/event-stream"):
            raise _Rejected(406, "Accept must name application/json and text/event-stream")
        kind = (self.headers.get("content-type") or "").partition(";")[0].strip().lower()
        if kind != "application/json":
            raise _Rejected(415, "The content type must be application/json")
        body = self._read_body()
        if self.server.mcp.fault == "dies-on-bad-utf8":
            try:
                body.decode()
            except UnicodeDecodeError:
                os._exit(1)
        try:
            message = decode(body)
        except ValueError:
            self.respond(
                400, error_response("2026-07-28", None, -32700, "The body is not JSON"), {}
            )
            return
        if isinstance(message, list):
            self._post_batch(message)
            return
        kind = kind_of(message) if isinstance(message, dict) else "invalid"
        if kind == "invalid":
            id = message.get("id") if isinstance(message, dict) else None
            self.respond(400, error_response("2026-07-28", id, -32600, "Invalid request"), {})
        elif kind == "request":
            self._post_request(message)
        else:
            self._post_other(message, kind)

    def _post_batch(self, message: list[Any]) -> None:
        session = None if self._is_modern() else self._session()
        if session is None or session.conversation.revision != "2025-03-26":
            self.respond(
                400, error_response("2026-07-28", None, -32600, "There are no batches"), {}
            )
            return
        if not any(isinstance(each, dict) and kind_of(each) == "request" for each in message):
            sink = Batch(Stream(0, has_ids=False))
            serve_batch(session.conversation, message, sink)
            self.respond(400 if sink.responses else 202, None, {})
            return
        serve_batch(
            session.conversation, message, Reply(self, revision="2025-03-26", session=session)
        )

    def _post_other(self, message: Json, kind: str) -> None:
        session = None if self._is_modern() else self._session()
        conversation = session.conversation if session else Conversation(self.server.mcp)
        if session is not None:
            self._check_version(session)
        if kind == "response":
            conversation.receive_response(message)
            self.respond(202, None, {})
            return
        sink = Batch(Stream(0, has_ids=False))
        conversation.receive_notification(message, sink)
        if sink.responses:
            self.respond(200, sink.responses[0], {})
        else:
            self.respond(202, None, {})

    def _post_request(self, message: Json) -> None:
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        if self._is_modern() or (isinstance(meta, dict) and META + "protocolVersion" in meta):
            self._post_modern(message, meta if isinstance(meta, dict) else {})
            return
        session = self._session()
        if session is None and message["method"] == "initialize":
            session = Session(self.server.mcp, self._owner())
            reply = Reply(self, revision="2025-11-25", session=session)
            reply.headers["Mcp-Session-Id"] = session.id
            self.server.add(session)
            session.conversation.serve(message, "", reply)
            return
        if session is None and self.server.mcp.fault == "serves-before-initialize":
            session = Session(self.server.mcp, self._owner())
        if session is None:
            text = "The header Mcp-Session-Id is missing"
            self.respond(400, error_response("2025-11-25", message["id"], -32600, text), {})
            return
        self._check_version(session)
        revision = session.conversation.revision
        session.conversation.serve(
            message, revision, Reply(self, revision=revision, session=session)
        )

    def _check_version(self, session: Session) -> None:
        version = self.headers.get("mcp-protocol-version")
        revision = session.conversation.revision
        has_header = revision not in ("2024-11-05", "2025-03-26")
        if version is not None and version != revision and has_header:
            raise _Rejected(400, "The header MCP-Protocol-Version is invalid")

    def _post_modern(self, message: Json, meta: Json) -> None:
        reply = Reply(self, revision="2026-07-28", session=None)
        has_meta = isinstance(meta.get(META + "protocolVersion"), str) and isinstance(
            meta.get(META + "clientCapabilities"), dict
        )
        error = self._find_header_error(message, meta) if has_meta else None
        if error is not None:
            reply.finish([error_response("2026-07-28", message["id"], -32020, error)])
            return
        Conversation(self.server.mcp, owner=self._owner()).serve(message, "2026-07-28", reply)

    def _find_header_error(self, message: Json, meta: Json) -> str | None:
        method, params = message["method"], message["params"]
        wanted = {
            "mcp-protocol-version": meta[META + "protocolVersion"],
            "mcp-method": method,
        }
        for name, value in wanted.items():
            if self.headers.get_all(name) != [value]:
                return f"The header {name} differs from the body"
        named = params.get(NAMES[method]) if method in NAMES else None
        is_compared = isinstance(named, str) and self.server.mcp.fault != "ignores-mcp-name"
        if is_compared and self._decoded("mcp-name") != named:
            return "The header mcp-name differs from the body"
        tool = next((each for each in TOOLS if each["name"] == params.get("name")), None)
        arguments = params.get("arguments")
        if method != "tools/call" or tool is None or not isinstance(arguments, dict):
            return None
        if self.server.mcp.fault == "ignores-mcp-param":
            return None
        for name, schema in tool["inputSchema"]["properties"].items():
            header = schema.get("x-mcp-header")
            value = arguments.get(name)
            if header is None or (value is not None and not isinstance(value, str)):
                continue
            if self._decoded(f"mcp-param-{header.lower()}") != value:
                return f"The header mcp-param-{header.lower()} differs from the body"
        return None

    def _decoded(self, name: str) -> str | None:
        found = self.headers.get_all(name) or []
        if len(found) != 1:
            return None
        value = str(found[0]).strip()
        if not (value.startswith("=?base64?") and value.endswith("?=")):
            return value
        try:
            return base64.b64decode(value[9:-2], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return None

    def _get(self) -> None:
        session = None if self._is_modern() else self._session()
        if session is None:
            self.respond(405, None, {"Allow": "POST"})
            return
        self._check_version(session)
        if not self._accepts("text/event-stream"):
            raise _Rejected(406, "Accept must name text/event-stream")
        resumed = session.resumed(self.headers.get("last-event-id") or "")
        stream, place = resumed if resumed is not None else (session.stream(), 0)
        if resumed is None:
            session.conversation.sink = stream
        self.begin_events({})
        while True:
            with stream.changed:
                if place >= len(stream.events) and not stream.has_ended:
                    stream.changed.wait(0.2)
                events = stream.events[place:]
                has_ended = stream.has_ended
            place += len(events)
            if events:
                self.write_events(b"".join(events))
            elif has_ended or self.is_gone() or session.id not in self.server.sessions:
                break
        self.end_events()

    def _delete(self) -> None:
        session = None if self._is_modern() else self._session()
        if session is None:
            self.respond(405, None, {"Allow": "POST"})
            return
        with self.server.lock:
            self.server.sessions.pop(session.id, None)
        session.conversation.close()
        self.respond(200, None, {})

    # -- Bytes -------------------------------------------------------------------------------------

    def _read_body(self) -> bytes:
        lengths = self.headers.get_all("content-length") or []
        coding = (self.headers.get("transfer-encoding") or "").strip().lower()
        if coding and (lengths or coding != "chunked"):
            raise _Rejected(400, "The length of the body is ambiguous")
        if coding:
            return self._read_chunks()
        if len(lengths) != 1 or not (lengths[0].isascii() and lengths[0].isdigit()):
            raise _Rejected(411 if not lengths else 400, "The length of the body is unknown")
        if len(lengths[0]) > 12 or int(lengths[0]) > MAX_MESSAGE:
            raise _Rejected(413, "The body is too large")
        return self._read(int(lengths[0]))

    def _read(self, size: int) -> bytes:
        counted = self.server.mcp.fault == "hangs-on-half-bodies"
        with self.server.lock:
            self.server.open_bodies += counted
        try:
            data = self.rfile.read(size)
        except TimeoutError:
            raise _Rejected(408, "The body did not come in time") from None
        finally:
            with self.server.lock:
                self.server.open_bodies -= counted
        if len(data) < size:
            raise ConnectionError
        return data

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while True:
            line = self.rfile.readline(100).partition(b";")[0].strip()
            if (
                not line
                or len(line) > 8
                or any(each not in b"0123456789abcdefABCDEF" for each in line)
            ):
                raise _Rejected(400, "A chunk has no valid size")
            size = int(line, 16)
            if len(body) + size > MAX_MESSAGE:
                raise _Rejected(413, "The body is too large")
            body += self._read(size)
            if size == 0:
                break
            if self._read(2) != b"\r\n":
                raise _Rejected(400, "A chunk has another length than its size")
        while self.rfile.readline(1_000).strip():
            pass
        return bytes(body)

    def respond_text(self, status: int, text: str) -> None:
        """Send a response that is no message: the id of the request was not read."""
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def respond(self, status: int, message: Json | None, headers: dict[str, str]) -> None:
        """Send a whole response."""
        body = b"" if message is None else dump(message)
        self.send_response(status)
        if message is not None:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def begin_events(self, headers: dict[str, str]) -> None:
        """Send the head of a stream of events."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Accel-Buffering", "no")
        for name, value in headers.items():
            self.send_header(name, value)
        if self.request_version == "HTTP/1.1":
            self.send_header("Transfer-Encoding", "chunked")
        else:
            self.close_connection = True
        self.end_headers()
        self.wfile.flush()

    def write_events(self, data: bytes) -> None:
        """Send events."""
        if self.request_version == "HTTP/1.1":
            data = b"%x\r\n%b\r\n" % (len(data), data)
        self.wfile.write(data)
        self.wfile.flush()

    def end_events(self) -> None:
        """End a stream of events."""
        if self.request_version == "HTTP/1.1":
            self.wfile.write(b"0\r\n\r\n")
            self.wfile.flush()

    def is_gone(self) -> bool:
        """Return True if the client has closed the connection."""
        poll = select.poll()
        poll.register(self.connection, select.POLLIN)
        if not poll.poll(0):
            return False
        try:
            return not self.connection.recv(1, 2)  # MSG_PEEK
        except OSError:
            return True

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing."""
