"""The conversations of the server broken on purpose, without a transport.

A conversation with a handshake is a stdio process or an HTTP session. A request of 2026-07-28
stands for itself, and several of them share a `Conversation` only because they share a pipe.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final, Protocol

from tests.fuzz_targets.catalog import (
    PROMPTS,
    RESOURCES,
    REVISIONS,
    SERVER_INFO,
    TEMPLATES,
    TOOLS,
    Json,
    find_argument_error,
    list_tools,
    span,
)
from tests.fuzz_targets.tasks import FORM, TASKS_EXTENSION, Task, TaskStore, text_result

__all__ = [
    "META",
    "Call",
    "Cancelled",
    "Conversation",
    "RpcError",
    "Server",
    "Sink",
    "decode",
    "error_response",
    "id_key",
    "kind_of",
]

META: Final = "io.modelcontextprotocol/"
_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
_PAGE: Final = 4  # entries of a page
_STATE_LIFETIME: Final = 600  # seconds
_INPUT_TIMEOUT: Final = 1.0  # seconds that a tool waits for the client
_BETWEEN_INPUTS: Final = 0.1  # seconds that a task works before it asks again
_RELATED: Final = META + "related-task"
_CACHE: Final[Json] = {"ttlMs": 60_000, "cacheScope": "public"}
_CACHEABLE: Final = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
_ROUNDS: Final = ("tools/call", "prompts/get", "resources/read")
_SLOW_TOOLS: Final = ("count", "ask", "work")
_ASKED: Final[dict[str, tuple[str, Json]]] = {
    "elicitation": ("elicitation/create", FORM),
    "sampling": (
        "sampling/createMessage",
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello."}}],
            "maxTokens": 10,
        },
    ),
    "roots": ("roots/list", {}),
}
_CHANGES: Final = {
    "notifications/tools/list_changed": "toolsListChanged",
    "notifications/prompts/list_changed": "promptsListChanged",
    "notifications/resources/list_changed": "resourcesListChanged",
    "notifications/resources/updated": "resourceSubscriptions",
}


class RpcError(Exception):
    """An error response."""

    def __init__(self, code: int, text: str, data: Any = None) -> None:
        super().__init__(text)
        self.code = code
        self.data = data


class Cancelled(Exception):
    """The request was cancelled: it gets no response."""


class Sink(Protocol):
    """Where the messages of one request go.

    Attributes:
        ends_with_request: True if the sink is of one request, and the thread of that request keeps
            it open.
    """

    ends_with_request: bool

    def send(self, message: Json) -> None:
        """Send a message before the response."""

    def finish(self, messages: list[Json]) -> None:
        """Send the response, if there is one, and what comes after it."""

    def is_gone(self) -> bool:
        """Return True if the client no longer waits for the response."""


def decode(data: bytes) -> Any:
    """Return the decoded JSON.

    Raises:
        ValueError: it is not UTF-8 or not JSON.
    """
    try:
        return json.loads(data.decode(), parse_constant=_reject, parse_float=_read_float)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _reject(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _read_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError("the number is too large")
    return value


def id_key(id: Any) -> tuple[type, Any] | None:
    """Return a key of a valid id, by which 1 and "1" differ, or None."""
    if isinstance(id, bool) or not isinstance(id, int | str):
        return None
    return type(id), id


def kind_of(message: Json) -> str:
    """Return `request`, `notification`, `response`, or `invalid`."""
    if message.get("jsonrpc") != "2.0":
        return "invalid"
    if "method" in message:
        if not isinstance(message["method"], str):
            return "invalid"
        if "id" not in message:
            return "notification"
        return "request" if id_key(message["id"]) is not None else "invalid"
    return "response" if ("result" in message) != ("error" in message) else "invalid"


def error_response(revision: str, id: Any, code: int, text: str, data: Any = None) -> Json:
    """Return an error response. Without an id that was read, it is null until 2025-06-18."""
    error: Json = {"code": code, "message": text}
    if data is not None:
        error["data"] = data
    response: Json = {"jsonrpc": "2.0", "error": error}
    if id_key(id) is not None:
        response["id"] = id
    elif revision not in ("2025-11-25", "2026-07-28"):
        response["id"] = None
    return response


class Listen:
    """One subscription of 2026-07-28."""

    def __init__(self, call: Call, honoured: Json) -> None:
        self.call = call
        self.honoured = honoured

    def wants(self, method: str, params: Json) -> bool:
        """Return True if the client asked for a notification."""
        if method == "notifications/tasks":
            return params["taskId"] in self.honoured.get("taskIds", ())
        found = self.honoured.get(_CHANGES[method])
        return params["uri"] in found if isinstance(found, list) else bool(found)


class Server:
    """The state of one process, and its fault."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault
        self.tasks = TaskStore(fault)
        self.key = os.urandom(32)
        self.listens: list[Listen] = []
        self.conversations: list[Conversation] = []
        self.leak: list[bytes] = []
        self.echoed = 0
        self.was_notified = False  # by a notification that names no revision
        self.lock = threading.RLock()

    def publish(self, method: str, params: Json) -> None:
        """Send a change to the subscriptions of 2026-07-28."""
        with self.lock:
            listens = list(self.listens)
        for listen in listens:
            if listen.wants(method, params):
                listen.call.notify(method, params, subscription=listen.call.id)

    def change(self) -> None:
        """Announce that the lists and one resource changed."""
        for method in _CHANGES:
            params = {"uri": "note:///one"} if method.endswith("updated") else {}
            self.publish(method, params)
            with self.lock:
                conversations = list(self.conversations)
            for conversation in conversations:
                if not params or params["uri"] in conversation.subscribed:
                    conversation.tell(method, params)


class Call:
    """One request that is being served."""

    def __init__(
        self, conversation: Conversation, message: Json, revision: str, sink: Sink
    ) -> None:
        self.conversation = conversation
        self.server = conversation.server
        self.id = message["id"]
        self.method: str = message["method"]
        self.params: Any = message.get("params", {})
        self.others = message.keys() - {"jsonrpc", "id", "method", "params"}
        self.revision = revision
        self.sink = sink
        self.after: list[Json] = []
        self.stopped = threading.Event()
        meta = self.params.get("_meta") if isinstance(self.params, dict) else None
        self.meta: Json = meta if isinstance(meta, dict) else {}
        found: Any = conversation.client_capabilities
        if revision == "2026-07-28":
            found = self.meta.get(META + "clientCapabilities")
        self.capabilities: Json = found if isinstance(found, dict) else {}

    def notify(self, method: str, params: Json, *, subscription: Any = None) -> None:
        """Send a notification, unless the request was cancelled."""
        if subscription is not None:
            params = {**params, "_meta": {META + "subscriptionId": subscription}}
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        with self.conversation.lock:
            if not self.stopped.is_set():
                self.sink.send(message)

    def progress(self, value: float, total: float, *, after: bool = False) -> None:
        """Report progress, if the client asked for it."""
        token = self.meta.get("progressToken")
        if id_key(token) is None:
            return
        params = {"progressToken": token, "progress": value, "total": total}
        if after:
            message = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            self.after.append(message)
        else:
            self.notify("notifications/progress", params)

    def log(self, level: str, text: str) -> None:
        """Send a log message, if the client asked for its level."""
        wanted = self.conversation.log_level
        if self.revision == "2026-07-28":
            wanted = self.meta.get(META + "logLevel", "")
        if wanted in _LEVELS and _LEVELS.index(level) >= _LEVELS.index(wanted):
            self.notify("notifications/message", {"level": level, "data": text})

    def sleep(self, seconds: float) -> None:
        """Wait, and raise `Cancelled` if the request was cancelled."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if self.stopped.wait(max(0.0, min(left, 0.05))):
                raise Cancelled
            if self.revision == "2026-07-28" and self.sink.is_gone():
                raise Cancelled
            if left <= 0:
                return

    def declares(self, capability: str) -> bool:
        """Return True if the client declared a kind of input."""
        found = self.capabilities.get(capability)
        if not isinstance(found, dict):
            return False
        # An empty object declares forms.
        return capability != "elicitation" or not found or "form" in found

    def has_tasks(self) -> bool:
        """Return True if the client declared the tasks extension."""
        extensions = self.capabilities.get("extensions")
        return isinstance(extensions, dict) and TASKS_EXTENSION in extensions


class Conversation:
    """The messages of one stdio process, one HTTP session, or one request of 2026-07-28.

    Args:
        server: the process.
        owner: the user that the transport names.
        sink: where messages go that belong to no request; None if nowhere.
        lists_tasks: True if tasks/list is offered in 2025-11-25, which needs an owner.
    """

    def __init__(
        self,
        server: Server,
        *,
        owner: str = "",
        sink: Sink | None = None,
        lists_tasks: bool = False,
    ) -> None:
        self.server = server
        self.owner = owner
        self.sink = sink
        self.lists_tasks = lists_tasks
        self.lock = threading.RLock()
        self.revision = ""
        self.is_modern = False
        self.client_capabilities: Json = {}
        self.log_level = ""
        self.subscribed: set[str] = set()
        self.open: dict[Any, Call] = {}
        self._asked: dict[str, tuple[threading.Event, list[Json]]] = {}
        self._ids = itertools.count(1)

    def close(self) -> None:
        """Stop all requests, and forget the conversation."""
        with self.lock:
            calls = list(self.open.values())
        for call in calls:
            call.stopped.set()
        with self.server.lock:
            if self in self.server.conversations:
                self.server.conversations.remove(self)

    def tell(self, method: str, params: Json) -> None:
        """Send a notification that belongs to no request."""
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        if self.sink is not None and self.revision:
            self.sink.send(message)

    # -- Messages ----------------------------------------------------------------------------------

    def revision_of(self, message: Json) -> str:
        """Return the revision of a request: E, the handshake's, or "" if there was none."""
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        if isinstance(meta, dict) and META + "protocolVersion" in meta:
            return "2026-07-28"
        if message.get("method") in ("initialize", "ping"):
            return self.revision
        return self.revision or ("2026-07-28" if self.is_modern else "")

    def is_slow(self, message: Json) -> bool:
        """Return True if serving a request can take a while."""
        params = message.get("params")
        if message.get("method") == "tasks/result":
            return True
        if message.get("method") != "tools/call" or not isinstance(params, dict):
            return False
        return params.get("name") in _SLOW_TOOLS

    def receive_notification(self, message: Json, sink: Sink) -> None:
        """Take a notification."""
        if self.server.fault == "answers-notifications" and self.revision != "2024-11-05":
            revision = self.revision or "2026-07-28"
            sink.finish([error_response(revision, None, -32601, "Method not found")])
        params = message.get("params")
        self.server.was_notified |= not isinstance(params, dict) or "_meta" not in params
        if message["method"] == "notifications/cancelled" and isinstance(params, dict):
            self._cancel(id_key(params.get("requestId")))

    def _cancel(self, key: Any) -> None:
        with self.lock:
            call = self.open.get(key)
            if call is None or call.method == "initialize":
                return
            if self.server.fault == "cancel-mixes-ids" and not call.sink.ends_with_request:
                others = [each for each in self.open.values() if each is not call]
                if not others:
                    return
                call = others[0]
            self.open.pop(id_key(call.id), None)
            call.stopped.set()
        with self.server.lock:
            self.server.listens = [each for each in self.server.listens if each.call is not call]

    def receive_response(self, message: Json) -> None:
        """Take a response to a request of the server."""
        id = message.get("id")
        asked = self._asked.pop(id, None) if isinstance(id, str) else None
        if asked is not None:
            asked[1].append(message)
            asked[0].set()

    def serve(self, message: Json, revision: str, sink: Sink) -> None:
        """Serve a request: send what it causes, and its response."""
        call = Call(self, message, revision, sink)
        key = id_key(call.id)
        if call.method != "subscriptions/listen":
            with self.lock:
                self.open[key] = call
        try:
            response = self._respond(call)
        except Cancelled:
            response = None
        fault = self.server.fault
        if response is not None and fault == "id-as-number" and isinstance(call.id, str):
            response["id"] = (
                int(call.id) if call.id.isascii() and call.id.isdigit() else len(call.id)
            )
        with self.lock:
            if self.open.get(key) is call and call.method != "subscriptions/listen":
                del self.open[key]
            if response is None or call.stopped.is_set():
                sink.finish([])
                return
            twice = fault == "double-response" and call.method.endswith("/list")
            sink.finish([response, *call.after, *([response] if twice else [])])

    def _respond(self, call: Call) -> Json | None:
        try:
            result = self._result(call)
        except RpcError as exc:
            text = str(exc)
            if self.server.fault == "long-error-messages":
                problem = {"code": "invalid_type", "path": ["params"], "message": text}
                text = json.dumps([problem], indent=2)
            return error_response(call.revision, call.id, exc.code, text, exc.data)
        if result is None:
            return None
        if call.revision == "2026-07-28":
            meta = {META + "serverInfo": SERVER_INFO, **result.get("_meta", {})}
            result = {"resultType": "complete", **result, "_meta": meta}
            if call.method in _CACHEABLE and result["resultType"] == "complete":
                result |= _CACHE
            is_changed = self.server.fault == "changed-by-notification" and self.server.was_notified
            if is_changed or self.server.fault == "no-result-type":
                del result["resultType"]
        return {"jsonrpc": "2.0", "id": call.id, "result": result}

    def _result(self, call: Call) -> Json | None:
        fault = self.server.fault
        if call.others and fault == "silent-on-other-members":
            return None
        if not isinstance(call.params, dict):
            if fault == "silent-on-array-params":
                return None
            if call.params is None and fault == "silent-on-null-params":
                return None
            if fault == "logs-undeclared" and call.revision != "2026-07-28":
                call.notify("notifications/message", {"level": "error", "data": "wrong params"})
            raise RpcError(-32602, "The params are not an object")
        if "_meta" in call.params and not isinstance(call.params["_meta"], dict):
            if fault == "silent-on-wrong-meta":
                return None
            raise RpcError(-32602, "`_meta` is not an object")
        if call.revision == "2026-07-28":
            self._check_meta(call)
            methods = _MODERN
        elif call.method == "initialize":
            return self._initialize(call)
        elif call.method == "ping":
            return {}
        elif not self.revision and self.server.fault != "serves-before-initialize":
            if call.method in ("server/discover", "subscriptions/listen"):
                raise RpcError(-32602, f'`_meta["{META}protocolVersion"]` is missing')
            raise RpcError(-32600, "The request comes before initialize")
        else:
            methods = _LEGACY
            call.revision = call.revision or "2025-11-25"
        handler = methods.get(call.method)
        if handler is None or (
            call.method.startswith("tasks/") and call.revision not in ("2025-11-25", "2026-07-28")
        ):
            return self._unknown_method()
        if (
            call.revision == "2026-07-28"
            and call.method in _ROUNDS
            and "requestState" in call.params
        ):
            self._check_state(call)
        return handler(self, call)

    def _unknown_method(self) -> Json:
        if self.server.fault == "serves-unknown-methods":
            return {}
        raise RpcError(-32601, "Method not found")

    def _check_meta(self, call: Call) -> None:
        version = call.meta.get(META + "protocolVersion")
        if not isinstance(version, str):
            raise RpcError(-32602, f'`_meta["{META}protocolVersion"]` is missing')
        if not isinstance(call.meta.get(META + "clientCapabilities"), dict):
            raise RpcError(-32602, f'`_meta["{META}clientCapabilities"]` is missing')
        if version != "2026-07-28" and self.server.fault != "serves-other-version":
            data = {"supported": ["2026-07-28"], "requested": version}
            raise RpcError(-32022, "Unsupported protocol version", data)
        self.is_modern = True
        if call.meta.get(META + "logLevel", "info") not in _LEVELS:
            raise RpcError(-32602, "The log level is unknown")

    # -- Handshake and utilities -------------------------------------------------------------------

    def _initialize(self, call: Call) -> Json:
        version = call.params.get("protocolVersion")
        capabilities, info = call.params.get("capabilities"), call.params.get("clientInfo")
        if self.revision:
            raise RpcError(-32600, "The session is initialized")
        if not (
            isinstance(version, str) and isinstance(capabilities, dict) and isinstance(info, dict)
        ):
            raise RpcError(-32602, "protocolVersion, capabilities or clientInfo is missing")
        chosen = version if version in span(REVISIONS[0], "2026-07-28") else "2025-11-25"
        self.client_capabilities = capabilities
        named = chosen
        if self.server.fault == "picks-other-version":
            named = "2025-11-25" if chosen == "2025-03-26" else "2025-03-26"
        self.revision = call.revision = named
        with self.server.lock:
            self.server.conversations.append(self)
        return {
            "protocolVersion": named,
            "capabilities": self._capabilities(named),
            "serverInfo": SERVER_INFO,
        }

    def _capabilities(self, revision: str) -> Json:
        found: Json = {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "logging": {},
        }
        if self.server.fault == "logs-undeclared":
            del found["logging"]
        if revision != "2024-11-05":
            found["completions"] = {}
        if revision == "2025-11-25":
            found["tasks"] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
            if self.lists_tasks:
                found["tasks"]["list"] = {}
        if revision == "2026-07-28":
            found["extensions"] = {TASKS_EXTENSION: {}}
        return found

    def _discover(self, call: Call) -> Json:
        return {
            "supportedVersions": ["2026-07-28"],
            "capabilities": self._capabilities("2026-07-28"),
        }

    def _set_level(self, call: Call) -> Json:
        level = call.params.get("level")
        if level not in _LEVELS:
            raise RpcError(-32602, "The log level is unknown")
        self.log_level = level
        return {}

    def _complete(self, call: Call) -> Json:
        ref, argument = call.params.get("ref"), call.params.get("argument")
        if not isinstance(ref, dict) or not isinstance(argument, dict):
            raise RpcError(-32602, "ref or argument is missing")
        known = {
            ("ref/prompt", "greet"): ("Ada", "Alan", "Grace"),
            ("ref/resource", "note:///{name}"): ("one", "two"),
        }
        target = ref.get("name") if ref.get("type") == "ref/prompt" else ref.get("uri")
        kind, value = ref.get("type"), argument.get("value")
        values = (
            known.get((kind, target)) if isinstance(kind, str) and isinstance(target, str) else None
        )
        if values is None or argument.get("name") != "name" or not isinstance(value, str):
            raise RpcError(-32602, "The reference or the argument is unknown")
        return {"completion": {"values": [each for each in values if each.startswith(value)]}}

    def _page(self, call: Call, key: str, entries: list[Json]) -> Json:
        cursor = call.params.get("cursor")
        start = 0
        if cursor is not None:
            first = 0 if self.server.fault == "circle-of-cursors" else _PAGE
            known = {f"{key}-{place}": place for place in range(first, len(entries), _PAGE)}
            if not isinstance(cursor, str) or cursor not in known:
                raise RpcError(-32602, "The cursor is invalid")
            start = known[cursor]
        result: Json = {key: entries[start : start + _PAGE]}
        if key == "tools" and self.server.fault == "repeats-cursor":
            return {key: entries[:_PAGE], "nextCursor": f"{key}-{_PAGE}"}
        if key == "tools" and start + _PAGE >= len(entries):
            if self.server.fault == "circle-of-cursors":
                result["nextCursor"] = f"{key}-0"
            elif self.server.fault == "tool-on-two-pages":
                result[key] = [*result[key], entries[0]]
        if start + _PAGE < len(entries):
            result["nextCursor"] = f"{key}-{start + _PAGE}"
        return result

    def _list_tools(self, call: Call) -> Json:
        return self._page(call, "tools", list_tools(call.revision))

    def _list_resources(self, call: Call) -> Json:
        return self._page(call, "resources", list(RESOURCES))

    def _list_templates(self, call: Call) -> Json:
        templates = [] if self.server.fault == "resource-code" else list(TEMPLATES)
        return self._page(call, "resourceTemplates", templates)

    def _list_prompts(self, call: Call) -> Json:
        return self._page(call, "prompts", list(PROMPTS))

    def _uri(self, call: Call) -> str:
        uri = call.params.get("uri")
        if not isinstance(uri, str):
            raise RpcError(-32602, "uri is missing")
        if uri not in [each["uri"] for each in RESOURCES]:
            code = -32602 if call.revision == "2026-07-28" else -32002
            code = 0 if self.server.fault == "resource-code" else code
            raise RpcError(code, "Resource not found", {"uri": uri})
        return uri

    def _read(self, call: Call) -> Json:
        uri = self._uri(call)
        if uri == "data:///zero":
            content: Json = {"uri": uri, "mimeType": "application/octet-stream", "blob": "AAAA"}
        else:
            content = {"uri": uri, "mimeType": "text/plain", "text": "text"}
        return {"contents": [content]}

    def _subscribe(self, call: Call) -> Json:
        self.subscribed.add(self._uri(call))
        return {}

    def _unsubscribe(self, call: Call) -> Json:
        self.subscribed.discard(self._uri(call))
        return {}

    def _get_prompt(self, call: Call) -> Json:
        name, arguments = call.params.get("name"), call.params.get("arguments", {})
        if name not in [each["name"] for each in PROMPTS] or not isinstance(arguments, dict):
            code = 0 if self.server.fault == "prompt-code" else -32602
            raise RpcError(code, "The prompt is unknown")
        text = "Hello"
        if name == "greet":
            if not isinstance(arguments.get("name"), str):
                raise RpcError(-32602, "The argument name is missing")
            text += ", " + arguments["name"]
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}

    def _listen(self, call: Call) -> None:
        wanted = call.params.get("notifications")
        if not isinstance(wanted, dict):
            raise RpcError(-32602, "notifications is missing")
        if "taskIds" in wanted and not call.has_tasks():
            raise _needs({"extensions": {TASKS_EXTENSION: {}}})
        honoured: Json = {
            key: True
            for key in ("toolsListChanged", "promptsListChanged", "resourcesListChanged")
            if wanted.get(key) is True
        }
        for key in ("resourceSubscriptions", "taskIds"):
            if key not in wanted:
                continue
            found = wanted[key]
            if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
                raise RpcError(-32602, f"{key} is not an array of strings")
            if key == "taskIds":
                mine = [
                    each for each in found if self.server.tasks.find(self.owner, "2026-07-28", each)
                ]
                honoured[key] = mine
            else:
                known = [each["uri"] for each in RESOURCES]
                honoured[key] = [each for each in found if each in known]
        if self.server.fault == "late-acknowledgement":
            for method, key in _CHANGES.items():
                if honoured.get(key) is True:
                    call.notify(method, {}, subscription=call.id)
                    break
        with self.lock:
            self.open[id_key(call.id)] = call
            params = {"notifications": honoured}
            call.notify("notifications/subscriptions/acknowledged", params, subscription=call.id)
            with self.server.lock:
                self.server.listens.append(Listen(call, honoured))
        if call.sink.ends_with_request:
            while not call.sink.is_gone() and not call.stopped.wait(0.1):
                pass
            self._cancel(id_key(call.id))

    # -- Tools -------------------------------------------------------------------------------------

    def _call_tool(self, call: Call) -> Json | None:
        name, arguments = call.params.get("name"), call.params.get("arguments", {})
        tool = next((each for each in TOOLS if each["name"] == name), None)
        if not isinstance(name, str):
            raise RpcError(-32602, "name is missing")
        if tool is None:
            is_wrong = self.server.fault == "unknown-tool-method-not-found"
            raise RpcError(-32601 if is_wrong else -32602, "Unknown tool")
        if not isinstance(arguments, dict):
            raise RpcError(-32602, "The arguments are not an object")
        task = call.params.get("task")
        as_task = call.revision == "2025-11-25" and task is not None
        if as_task and name != "work":
            raise RpcError(-32601, "The tool does not run as a task")
        error = find_argument_error(tool, arguments)
        if error and self.server.fault == "serves-wrong-arguments":
            return text_result("done")
        if error:
            if call.revision in ("2024-11-05", "2025-03-26", "2025-06-18"):
                raise RpcError(-32602, error)
            return text_result(error, is_error=True)
        if self.server.fault == "hangs-on-half-bodies":
            self.server.leak.append(bytes(100_000))
        return _TOOLS[name](self, call, arguments)

    def _echo(self, call: Call, arguments: Json) -> Json | None:
        self.server.echoed += 1
        if self.server.fault == "tool-stops" and self.server.echoed > 3:
            return None
        return text_result(arguments["text"])

    def _locate(self, call: Call, arguments: Json) -> Json:
        return text_result(arguments["region"])

    def _fail(self, call: Call, arguments: Json) -> Json:
        return text_result("The tool failed.", is_error=True)

    def _change(self, call: Call, arguments: Json) -> Json:
        self.server.change()
        return text_result("changed")

    def _add(self, call: Call, arguments: Json) -> Json:
        total: Any = arguments["a"] + arguments["b"]
        # A peer that reads numbers as floats loses the digits of larger ones.
        if abs(total) > 2**53:
            return text_result("The sum is too large.", is_error=True)
        result = text_result(json.dumps({"sum": total}))
        if call.revision in ("2025-06-18", "2025-11-25", "2026-07-28"):
            is_wrong = self.server.fault == "wrong-structured-content"
            result["structuredContent"] = {"sum": str(total) if is_wrong else total}
        return result

    def _count(self, call: Call, arguments: Json) -> Json:
        steps, pause = arguments["steps"], arguments.get("milliseconds", 0) / 1_000
        goes_back = self.server.fault == "progress-goes-back"
        for step in range(1, steps + 1):
            call.sleep(pause)
            call.progress(steps - step if goes_back else step, steps)
            call.log("info", f"step {step}")
        if goes_back:
            call.progress(steps + 1, steps, after=True)
        return text_result(f"counted to {steps}")

    def _ask(self, call: Call, arguments: Json) -> Json:
        kind = arguments.get("kind", "elicitation")
        may_ask = call.declares(kind) or self.server.fault == "asks-undeclared"
        method, params = _ASKED[kind]
        if call.revision == "2026-07-28":
            if not may_ask:
                raise _needs({kind: {}})
            return self._ask_by_round(call, kind, {"method": method, "params": params})
        if kind == "elicitation" and call.revision in ("2024-11-05", "2025-03-26"):
            may_ask = False
        if not may_ask:
            return text_result(f"The client does not offer {kind}.", is_error=True)
        try:
            result = self.ask(call, method, params)
        except RpcError as exc:
            return text_result(str(exc), is_error=True)
        return text_result(f"The client responded: {_describe(kind, result)}")

    def ask(self, call: Call, method: str, params: Json, *, timeout: float = _INPUT_TIMEOUT) -> Any:
        """Send a request to the client, and return its result.

        Raises:
            RpcError: the client responded with an error, or not in time.
            Cancelled: the request of the client was cancelled.
        """
        id = f"server-{next(self._ids)}"
        event, responses = threading.Event(), list[Json]()
        message: Json = {"jsonrpc": "2.0", "id": id, "method": method}
        if params:
            message["params"] = params
        with self.lock:
            if call.stopped.is_set():
                raise Cancelled
            self._asked[id] = event, responses
            call.sink.send(message)
        end = time.monotonic() + timeout
        while not event.wait(0.02):
            if call.stopped.is_set() or time.monotonic() > end:
                break
        if not responses:
            if self._asked.pop(id, None) is not None:
                cancellation = {
                    "jsonrpc": "2.0",
                    "method": "notifications/cancelled",
                    "params": {"requestId": id},
                }
                with self.lock:
                    call.sink.send(cancellation)
            if call.stopped.is_set():
                raise Cancelled
            raise RpcError(-32603, "The client did not respond in time.")
        if "result" not in responses[0]:
            raise RpcError(-32603, "The client responded with an error.")
        return responses[0]["result"]

    def _ask_by_round(self, call: Call, kind: str, request: Json) -> Json:
        responses = call.params.get("inputResponses", {})
        if not isinstance(responses, dict):
            raise RpcError(-32602, "inputResponses is not an object")
        if "requestState" in call.params and "answer" in responses:
            if not isinstance(responses["answer"], dict):
                raise RpcError(-32602, "The response is not an object")
            return text_result(f"The client responded: {_describe(kind, responses['answer'])}")
        return {
            "resultType": "input_required",
            "inputRequests": {"answer": request},
            "requestState": self._seal(call),
        }

    def _seal(self, call: Call) -> str:
        content = {"digest": self._digest(call), "until": int(time.time()) + _STATE_LIFETIME}
        text = json.dumps(content).encode()
        tag = hmac.new(self.server.key, text, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(tag + text).decode()

    def _digest(self, call: Call) -> str:
        left_out = ("_meta", "inputResponses", "requestState")
        params = {key: value for key, value in call.params.items() if key not in left_out}
        text = json.dumps([self.owner, call.method, params], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def _check_state(self, call: Call) -> None:
        if self.server.fault == "accepts-altered-state":
            return
        try:
            sealed = base64.b64decode(call.params["requestState"], altchars=b"-_", validate=True)
            tag = hmac.new(self.server.key, sealed[32:], hashlib.sha256).digest()
            content = json.loads(sealed[32:]) if hmac.compare_digest(tag, sealed[:32]) else None
        except (TypeError, ValueError):
            content = None
        if content is None or content["digest"] != self._digest(call):
            raise RpcError(-32602, "The requestState is invalid")
        if content["until"] < time.time():
            raise RpcError(-32602, "The requestState has expired")

    # -- Tasks -------------------------------------------------------------------------------------

    def _work(self, call: Call, arguments: Json) -> Json:
        pause = arguments.get("milliseconds", 20) / 1_000
        outcome = arguments.get("outcome", "done")
        if call.revision == "2025-11-25" and "task" in call.params:
            wanted = call.params["task"]
            ttl = wanted.get("ttl") if isinstance(wanted, dict) else False
            if ttl is not None and (isinstance(ttl, bool) or not isinstance(ttl, int) or ttl < 0):
                raise RpcError(-32602, "The task is not an object with a ttl")
            return {"task": self._start(call, pause, outcome, ttl)}
        if call.revision == "2026-07-28" and call.has_tasks():
            return {"resultType": "task", **self._start(call, pause, outcome, None)}
        call.sleep(pause)
        if outcome == "error":
            raise RpcError(-32603, "The work failed.")
        if outcome == "input":
            return text_result("The tool asks for input as a task only.", is_error=True)
        return text_result(outcome, is_error=outcome == "tool-error")

    def _start(self, call: Call, pause: float, outcome: str, ttl: int | None) -> Json:
        task = self.server.tasks.create(self.owner, call.revision, ttl)
        if task is None:
            raise RpcError(-32603, "There are too many tasks")
        task.on_change = self._tell_of_task
        view = task.view()  # it is working, however short the work is
        thread = threading.Thread(target=self._run, args=(task, call, pause, outcome), daemon=True)
        thread.start()
        return view

    def _tell_of_task(self, task: Task) -> None:
        if task.revision == "2025-11-25":
            self.tell("notifications/tasks/status", task.view())
        elif self.server.listens:
            self.server.publish("notifications/tasks", task.view(detailed=True))

    def _run(self, task: Task, call: Call, pause: float, outcome: str) -> None:
        if task.wait(pause):
            return
        if outcome == "error":
            task.change("failed", error={"code": -32603, "message": "The work failed."})
        elif outcome != "input":
            task.finish(text_result(outcome, is_error=outcome == "tool-error"))
        elif not call.declares("elicitation"):
            task.finish(text_result("The client does not offer elicitation.", is_error=True))
        elif task.revision == "2025-11-25":
            # The request is sent by tasks/result, which has a stream for it.
            task.change("input_required")
        else:
            request = {"method": "elicitation/create", "params": FORM}
            is_reused = self.server.fault == "task-key-reused"
            for key in ("first", "first" if is_reused else "second"):
                if task.ask(key, request) is None or task.wait(_BETWEEN_INPUTS):
                    return
            task.finish(text_result("Both inputs came."))

    def _find_task(self, call: Call) -> Task:
        if call.revision == "2026-07-28" and not call.has_tasks():
            raise _needs({"extensions": {TASKS_EXTENSION: {}}})
        task = self.server.tasks.find(self.owner, call.revision, call.params.get("taskId"))
        if task is None:
            raise RpcError(-32602, "The task is unknown")
        return task

    def _get_task(self, call: Call) -> Json:
        return self._find_task(call).view(detailed=True)

    def _list_tasks(self, call: Call) -> Json:
        if not self.lists_tasks:
            raise RpcError(-32601, "Method not found")
        return self._page(call, "tasks", [each.view() for each in self.server.tasks.of(self.owner)])

    def _list_modern_tasks(self, call: Call) -> Json:
        if self.server.fault != "lists-tasks":
            raise RpcError(-32601, "Method not found")
        return {"tasks": []}

    def _cancel_task(self, call: Call) -> Json:
        task = self._find_task(call)
        changed = task.change("cancelled")
        if call.revision == "2026-07-28":
            return {}
        if not changed:
            raise RpcError(-32602, f"The task is {task.status}")
        return task.view()

    def _update_task(self, call: Call) -> Json:
        task, responses = self._find_task(call), call.params.get("inputResponses")
        if not isinstance(responses, dict):
            raise RpcError(-32602, "inputResponses is missing")
        task.update(responses)
        return {}

    def _task_result(self, call: Call) -> Json:
        task = self._find_task(call)
        related = {_RELATED: {"taskId": task.id}}
        while not task.wait(0):
            if task.status == "input_required":
                self._ask_for_task(call, task, related)
            else:
                call.sleep(0.01)
        if task.error is not None:
            raise RpcError(task.error["code"], task.error["message"])
        if task.status == "cancelled":
            raise RpcError(-32603, "The task was cancelled")
        return {**(task.result or {}), "_meta": related}

    def _ask_for_task(self, call: Call, task: Task, related: Json) -> None:
        with task.condition:
            if task.status != "input_required" or task.inputs:
                return
            task.inputs = {"asked": {}}  # by one tasks/result at a time
        try:
            self.ask(call, "elicitation/create", {**FORM, "_meta": related})
        except RpcError as exc:
            task.finish(text_result(str(exc), is_error=True))
        except Cancelled:
            task.inputs = {}
            raise
        else:
            task.change("working")
            task.finish(text_result("The input came."))


def _needs(capabilities: Json) -> RpcError:
    data = {"requiredCapabilities": capabilities}
    return RpcError(-32021, "The client lacks a capability", data)


def _describe(kind: str, result: Any) -> str:
    found = result if isinstance(result, dict) else {}
    key = {"elicitation": "action", "sampling": "model", "roots": "roots"}[kind]
    value = found.get(key)
    return str(len(value)) if isinstance(value, list) else str(value)[:100]


_TOOLS: Final = {
    "echo": Conversation._echo,
    "add": Conversation._add,
    "fail": Conversation._fail,
    "count": Conversation._count,
    "ask": Conversation._ask,
    "change": Conversation._change,
    "locate": Conversation._locate,
    "work": Conversation._work,
}
_Handlers = dict[str, Callable[[Conversation, Call], "Json | None"]]
_COMMON: Final[_Handlers] = {
    "tools/list": Conversation._list_tools,
    "tools/call": Conversation._call_tool,
    "resources/list": Conversation._list_resources,
    "resources/templates/list": Conversation._list_templates,
    "resources/read": Conversation._read,
    "prompts/list": Conversation._list_prompts,
    "prompts/get": Conversation._get_prompt,
    "completion/complete": Conversation._complete,
    "tasks/get": Conversation._get_task,
    "tasks/cancel": Conversation._cancel_task,
}
_LEGACY: Final[_Handlers] = {
    **_COMMON,
    "logging/setLevel": Conversation._set_level,
    "resources/subscribe": Conversation._subscribe,
    "resources/unsubscribe": Conversation._unsubscribe,
    "tasks/list": Conversation._list_tasks,
    "tasks/result": Conversation._task_result,
}
_MODERN: Final[_Handlers] = {
    **_COMMON,
    "server/discover": Conversation._discover,
    "subscriptions/listen": Conversation._listen,
    "tasks/list": Conversation._list_modern_tasks,
    "tasks/update": Conversation._update_task,
}
