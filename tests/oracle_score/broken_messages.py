"""Operators on whole messages: repeat, drop, retype an id, swap, answer with a wrong code, ..."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from mcp_core import ALL
from tests.oracle_score.operators import TABLE
from tests.oracle_score.talks import call, cancel, note, now, request, talk
from tests.oracle_score.wrapper import MessageOperator, changed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.oracle_score.talks import TalkShown

Json = dict[str, Any]
OLD, NEW = "2025-11-25", "2026-07-28"
METHODS: Final = {
    "tools/list": request("tools/list"),
    "tools/call": call("echo", text="x"),
    "resources/read": request("resources/read", uri="note:///one"),
    "prompts/get": request("prompts/get", name="plain"),
    "completion/complete": request(
        "completion/complete",
        ref={"type": "ref/prompt", "name": "greet"},
        argument={"name": "tone", "value": "f"},
    ),
    "prompts/list": request("prompts/list"),
    "resources/templates/list": request("resources/templates/list"),
    "logging/setLevel": request("logging/setLevel", level="info"),
}


class Repeat(MessageOperator):
    """Sends responses twice."""

    def to_client(self, message: Json) -> Iterator[Json]:
        yield message
        if self.method_of(message) == self.place:
            yield message


TABLE.add(
    "repeat-response",
    "A request of a method has its response twice.",
    Repeat,
    {
        name: ("RPC-7", talk(OLD, METHODS[name]))
        for name in ("tools/list", "tools/call", "completion/complete", "logging/setLevel")
    },
)
TABLE.add(
    "repeat-response",
    "",
    Repeat,
    {
        "prompts/get": (
            "RPC-7",
            talk(OLD, request("prompts/get", name="greet", arguments={"name": "x"})),
        )
    },
    server="sdk",
)


class Drop(MessageOperator):
    """Sends no response to requests of a method."""

    def to_client(self, message: Json) -> Iterator[Json]:
        if self.method_of(message) != self.place:
            yield message


TABLE.add(
    "drop-response",
    "A request of a method has no response.",
    Drop,
    {
        name: ("RPC-35", talk(OLD, METHODS[name]))
        for name in (
            "tools/call",
            "resources/read",
            "prompts/get",
            "completion/complete",
            "prompts/list",
        )
    },
)


class DropError(MessageOperator):
    """Sends no error responses."""

    def to_client(self, message: Json) -> Iterator[Json]:
        if "error" not in message or self.method_of(message) != self.place:
            yield message


TABLE.add(
    "drop-error",
    "A request that is to be refused has no response.",
    DropError,
    {
        "tools/call": ("RPC-35", talk(OLD, request("tools/call", name="none", arguments={}))),
        "resources/read": ("RPC-35", talk(OLD, request("resources/read", uri="note:///none"))),
        "prompts/get": ("RPC-35", talk(OLD, request("prompts/get", name="none"))),
        "tools/list": ("RPC-35", talk(OLD, request("tools/list", cursor="none"))),
        "acme/none": ("RPC-35", talk(OLD, request("acme/none"))),
    },
)


class StopAfter(MessageOperator):
    """Answers some calls of a tool, and then none."""

    def to_client(self, message: Json) -> Iterator[Json]:
        request = self.request_of(message)
        params = request.get("params")
        if isinstance(params, dict) and "result" in message and params.get("name") == self.place:
            count = self.wrapper.counts[self.place] = self.wrapper.counts.get(self.place, 0) + 1
            if count > 3:
                return
        yield message


TABLE.add(
    "stop-answering",
    "A tool answers three calls, and the later ones never.",
    StopAfter,
    {
        "echo": ("RPC-35", talk(OLD, *[call("echo", text=str(n)) for n in range(4)])),
        "add": ("RPC-35", talk(NEW, *[call("add", a=1, b=n) for n in range(4)])),
    },
)


def _is_unanswered(shown: TalkShown) -> bool:
    return bool(shown.unanswered)


class RetypeId(MessageOperator):
    """Repeats ids with another type or value."""

    def to_client(self, message: Json) -> Iterator[Json]:
        id = message.get("id")
        if "method" in message or id is None or not self.request_of(message):
            yield message
        elif self.place == "digits" and isinstance(id, str) and id.isdigit():
            yield {**message, "id": int(id)}
        elif (
            self.place == "number"
            and isinstance(id, int)
            and self.method_of(message) == "tools/call"
        ):
            yield {**message, "id": str(id)}
        elif self.place == "float" and isinstance(id, int) and id % 2 == 0:
            yield {**message, "id": float(id) + 0.5}
        elif self.place == "null in errors" and "error" in message:
            yield {**message, "id": None}
        elif self.place == "lower case" and isinstance(id, str):
            yield {**message, "id": id.upper()}
        elif self.place == "normal form" and isinstance(id, str) and not id.isascii():
            yield {**message, "id": id.encode("ascii", "ignore").decode()}
        elif self.place == "large" and isinstance(id, int) and id > 2**53:
            yield {**message, "id": int(float(id))}
        elif self.place == "long" and isinstance(id, str) and len(id) > 64:
            yield {**message, "id": id[:64]}
        else:
            yield message


TABLE.add(
    "retype-id",
    "Some responses have an id of another type or value.",
    RetypeId,
    {
        "digits": ("RPC-7", talk(OLD, request("tools/list", "12"))),
        "number": ("RPC-7", talk(OLD, call("echo", 7, text="x"))),
        "float": ("RPC-7", talk(OLD, request("tools/list", 8), breach=_is_unanswered)),
        "null in errors": ("RPC-8", talk(OLD, request("prompts/get", 3, name="none"))),
        "lower case": ("RPC-7", talk(OLD, request("tools/list", "abc"))),
        "normal form": (
            "RPC-7",
            talk(OLD, request("tools/list", "caf\xe9"), breach=_is_unanswered),
        ),
        "large": ("RPC-7", talk(OLD, request("tools/list", 2**53 + 1), breach=_is_unanswered)),
        "long": ("RPC-7", talk(OLD, request("tools/list", "x" * 80))),
    },
)


class SwapResults(MessageOperator):
    """Gives two responses of a method each other's ids."""

    held: Json | None = None

    def to_client(self, message: Json) -> Iterator[Json]:
        if self.method_of(message) != self.place or "result" not in message:
            yield message
        elif self.held is not None:
            held, self.held = self.held, None
            yield {**message, "id": held["id"]}
            yield {**held, "id": message["id"]}
        else:
            self.held = message
            self.wrapper.flush_later(0.02, self._flush)

    def _flush(self) -> Iterator[Json]:
        if self.held is not None:
            yield self.held
            self.held = None


def _is_swapped(shown: TalkShown) -> bool:
    return "two" in json.dumps(shown.response(901)) and "one" in json.dumps(shown.response(902))


TABLE.add(
    "swap-results",
    "Two requests that are open at once have each other's results.",
    SwapResults,
    {
        "tools/call": (
            "RPC-7",
            talk(
                OLD,
                now(call("echo", 901, text="one")),
                call("echo", 902, text="two"),
                breach=_is_swapped,
            ),
        ),
        "resources/read": (
            "RPC-7",
            talk(
                OLD,
                now(request("resources/read", 901, uri="note:///one")),
                request("resources/read", 902, uri="note:///two"),
                breach=_is_swapped,
            ),
        ),
    },
)


class FromCache(MessageOperator):
    """Answers with the first result of a method, also for other params."""

    def to_client(self, message: Json) -> Iterator[Json]:
        params = self.request_of(message).get("params")
        name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
        is_wanted = "result" in message and name in (self.place, "note:///one", "note:///two")
        if not is_wanted or (self.place.startswith("note")) != ("/read" in self.method_of(message)):
            yield message
            return
        first = self.kept.setdefault("result", message["result"])
        yield message if first is message["result"] else {**message, "result": first}


def _is_stale(shown: TalkShown) -> bool:
    return shown.response(901).get("result") == shown.response(902).get("result") is not None


TABLE.add(
    "answer-from-cache",
    "The result of one request comes again for others.",
    FromCache,
    {
        "echo": (
            "RPC-7",
            talk(
                OLD, call("echo", 901, text="one"), call("echo", 902, text="two"), breach=_is_stale
            ),
        ),
        "note": (
            "RPC-7",
            talk(
                OLD,
                request("resources/read", 901, uri="note:///one"),
                request("resources/read", 902, uri="note:///two"),
                breach=_is_stale,
            ),
        ),
    },
)


class WrongCode(MessageOperator):
    """Gives errors another code."""

    def to_client(self, message: Json) -> Iterator[Json]:
        method, _, code = self.place.partition(" ")
        if "error" in message and self.method_of(message) == method:
            yield changed(message, "error/code", int(code))
        else:
            yield message


def listed(method: str, revision: str, count: int) -> list[Any]:
    """Return the requests for all pages of a list."""
    return [request(method), *[lambda said: next_page(method, said)] * (count - 1)]


def next_page(method: str, said: list[Json]) -> Json | None:
    """Return the request for the page after the server's last one, or None if that has no next."""
    found = said[-1].get("result")
    cursor = found.get("nextCursor") if isinstance(found, dict) else None
    return request(method, cursor=cursor) if isinstance(cursor, str) else None


TOOLS: Final = listed("tools/list", OLD, 3)
PROMPTS: Final = listed("prompts/list", OLD, 2)
RESOURCES: Final = [*listed("resources/list", OLD, 2), request("resources/templates/list")]
NO_TOOL = request("tools/call", 901, name="none", arguments={})
NO_NOTE = request("resources/read", 901, uri="note:///none")
NO_PROMPT = request("prompts/get", 901, name="none")
NO_REF = request(
    "completion/complete",
    ref={"type": "ref/prompt", "name": "none"},
    argument={"name": "a", "value": ""},
)
TABLE.add(
    "wrong-code",
    "An error has another code.",
    WrongCode,
    {
        "tools/call -32601": ("TOOL-17", talk(OLD, *TOOLS, NO_TOOL)),
        "resources/read -32002": ("RES-8", talk(NEW, NO_NOTE)),
        "resources/read -32601": ("RES-7", talk(OLD, *RESOURCES, NO_NOTE)),
        "prompts/get -32601": ("PRM-4", talk(OLD, *PROMPTS, NO_PROMPT)),
        "tools/list -32600": ("PAGE-6", talk(OLD, *TOOLS, request("tools/list", cursor="none"))),
        "prompts/list -32600": (
            "PAGE-6",
            talk(NEW, *PROMPTS, request("prompts/list", cursor="none")),
        ),
        "completion/complete -32600": ("COMP-4", talk(OLD, *PROMPTS, NO_REF)),
        "tasks/get -32002": ("TSK-22", talk(OLD, request("tasks/get", taskId="none"))),
        "logging/setLevel -32600": (
            "LOG-5",
            talk(
                OLD,
                request("logging/setLevel", 901, level="loud"),
                breach=lambda shown: shown.response(901)["error"]["code"] == -32600,
            ),
        ),
        "tools/call -32050": ("ERR-7", talk(NEW, NO_TOOL)),
    },
)


class ServeUnknown(MessageOperator):
    """Answers what should be refused."""

    RESULTS: Final[dict[str, Json]] = {
        "tools/call": {"content": [{"type": "text", "text": "?"}]},
        "resources/read": {"contents": []},
        "prompts/get": {"messages": []},
        "tools/list": {"tools": []},
        "prompts/list": {"prompts": []},
        "logging/setLevel": {},
        "tasks/get": {},
        "acme/none": {},
    }

    def _is_unknown(self, message: Json) -> bool:
        """Return True for the error of a request in which nothing else is wrong."""
        params = self.request_of(message).get("params")
        meta = params.get("_meta", {}) if isinstance(params, dict) else None
        if "error" not in message or not isinstance(meta, dict):
            return False
        version = meta.get("io.modelcontextprotocol/protocolVersion")
        if version is None:
            return self.wrapper.version in ALL and self.wrapper.version != NEW
        return version == NEW and "io.modelcontextprotocol/clientCapabilities" in meta

    def to_client(self, message: Json) -> Iterator[Json]:
        method = self.method_of(message)
        if method != self.place or not self._is_unknown(message):
            yield message
            return
        result = dict(self.RESULTS[method])
        if self.wrapper.version == NEW:
            result["resultType"] = "complete"
            if method != "tools/call" and method != "prompts/get":
                result |= {"ttlMs": 0, "cacheScope": "private"}
        yield {"jsonrpc": "2.0", "id": message["id"], "result": result}


def _is_served(shown: TalkShown) -> bool:
    return "result" in shown.response(901)


TABLE.add(
    "serve-unknown",
    "What doesn't exist has a result.",
    ServeUnknown,
    {
        "tools/call": ("TOOL-17", talk(OLD, *TOOLS, NO_TOOL, breach=_is_served)),
        "resources/read": ("RES-9", talk(NEW, *RESOURCES, NO_NOTE, breach=_is_served)),
        "prompts/get": ("PRM-4", talk(OLD, *PROMPTS, NO_PROMPT, breach=_is_served)),
        "tools/list": (
            "PAGE-6",
            talk(OLD, request("tools/list", 901, cursor="none"), breach=_is_served),
        ),
        "prompts/list": (
            "PAGE-6",
            talk(NEW, request("prompts/list", 901, cursor="none"), breach=_is_served),
        ),
        "logging/setLevel": ("LOG-5", talk(OLD, request("logging/setLevel", level="loud"))),
    },
)


class BreakEnvelope(MessageOperator):
    """Breaks what all messages have."""

    def to_client(self, message: Json) -> Iterator[Json | bytes]:
        wants_error = self.place in ERRORS
        methods = ("prompts/get",) if wants_error else ("tools/list", "prompts/get")
        if ("error" if wants_error else "result") not in message or self.method_of(
            message
        ) not in methods:
            yield message
        elif wants_error:
            yield ERRORS[self.place](message)
        else:
            yield from RESULTS[self.place](message)


def _line(message: Any, **options: Any) -> bytes:
    return json.dumps(message, **options).encode() + b"\n"


ERRORS: Final[dict[str, Callable[[Json], Json | bytes]]] = {
    "no jsonrpc": lambda message: changed(message, "jsonrpc"),
    "code as text": lambda message: changed(message, "error/code", "-32602"),
    "no message": lambda message: changed(message, "error/message"),
    "error as text": lambda message: {**message, "error": "failed"},
    "long message": lambda message: changed(
        message, "error/message", "it failed\nat line 1\n" * 20
    ),
    "byte order mark": lambda message: b"\xef\xbb\xbf" + _line(message),
}
RESULTS: Final[dict[str, Callable[[Json], list[Json | bytes]]]] = {
    "jsonrpc 1.0": lambda message: [{**message, "jsonrpc": "1.0"}],
    "both": lambda message: [{**message, "error": None}],
    "result as list": lambda message: [{**message, "result": [message["result"]]}],
    "array": lambda message: [_line([message])],
    "extra line": lambda message: [message, b"served a list\n"],
    "pretty": lambda message: [_line(message, indent=1)],
    "cut": lambda message: [_line(message)[:-9] + b"\n"],
    "not UTF-8": lambda message: [_line(message).replace(b'"jsonrpc"', b'"\xff":1,"jsonrpc"')],
}


TABLE.add(
    "break-envelope",
    "A message isn't what JSON-RPC or the transport says.",
    BreakEnvelope,
    {
        "jsonrpc 1.0": ("RPC-1", talk(OLD, METHODS["tools/list"])),
        "no jsonrpc": ("RPC-1", talk(OLD, request("prompts/get", name="none"))),
        "both": ("RPC-10", talk(OLD, METHODS["tools/list"])),
        "code as text": ("RPC-11", talk(OLD, request("prompts/get", name="none"))),
        "no message": ("RPC-11", talk(OLD, request("prompts/get", name="none"))),
        "error as text": ("RPC-10", talk(OLD, request("prompts/get", name="none"))),
        "long message": ("RPC-12", talk(OLD, request("prompts/get", name="none"))),
        "result as list": ("RPC-16", talk(OLD, METHODS["tools/list"])),
        "array": ("RPC-25", talk(OLD, METHODS["tools/list"])),
        "extra line": ("STDIO-2", talk(OLD, METHODS["tools/list"])),
        "pretty": ("STDIO-2", talk(OLD, METHODS["tools/list"])),
        "cut": ("STDIO-2", talk(OLD, METHODS["tools/list"])),
        "not UTF-8": ("RPC-26", talk(OLD, METHODS["tools/list"])),
        "byte order mark": ("STDIO-2", talk(OLD, request("prompts/get", name="none"))),
    },
)


class AnswerNotification(MessageOperator):
    """Answers notifications."""

    def to_server(self, message: Json) -> Iterator[Json]:
        yield message
        if message.get("method") == self.place and "id" not in message:
            self.wrapper.say(
                {"jsonrpc": "2.0", "error": {"code": -32601, "message": "no such method"}}
            )


TABLE.add(
    "answer-notification",
    "A notification has an error response.",
    AnswerNotification,
    {
        "notifications/cancelled": ("RPC-14", talk(OLD, cancel("none"))),
        "notifications/roots/list_changed": (
            "RPC-14",
            talk(OLD, note("notifications/roots/list_changed")),
        ),
        "notifications/acme": ("RPC-14", talk(OLD, note("notifications/acme"))),
        "notifications/progress": (
            "RPC-14",
            talk(OLD, note("notifications/progress", progressToken="none", progress=1)),
        ),
    },
)


class AskWrongly(MessageOperator):
    """Sends requests or notifications that it must not send."""

    def to_client(self, message: Json) -> Iterator[Json]:
        method, place = self.method_of(message), self.place
        ask = {"jsonrpc": "2.0", "id": "asked-1"}
        is_modern = self.wrapper.version == NEW
        if place == "ping in the new revision" and is_modern and method == "tools/call":
            yield {**ask, "method": "ping"}
        elif place == "roots early" and method == "initialize":
            yield {**ask, "method": "roots/list"}
        elif (
            place == "sampling"
            and method == "tools/call"
            and "sampling" not in self.wrapper.offered
        ):
            if not is_modern:
                yield {
                    **ask,
                    "method": "sampling/createMessage",
                    "params": {
                        "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
                        "maxTokens": 9,
                    },
                }
        elif place == "roots" and method == "prompts/get" and "roots" not in self.wrapper.offered:
            if not is_modern:
                yield {**ask, "method": "roots/list"}
        elif place == "id again" and "method" in message and "id" in message:
            yield {**message, "id": 1}
            return
        elif place == "null id" and "method" in message and "id" in message:
            yield message
            yield {**ask, "id": None, "method": "ping"}
            return
        elif place == "id in a notification" and message.get("method", "").startswith(
            "notifications/"
        ):
            yield {**message, "id": 77}
            return
        yield message


TABLE.add(
    "ask-wrongly",
    "The server requests what it must not request, or with a wrong id.",
    AskWrongly,
    {
        "ping in the new revision": (
            "RPC-28",
            talk(
                NEW,
                call("echo", text="x"),
                breach=lambda shown: shown.said[0].get("method") == "ping",
            ),
        ),
        "roots early": ("LIFE-9", talk(OLD)),
        "sampling": ("CAP-3", talk(OLD, call("echo", text="x"), offers="none")),
        "roots": ("CAP-3", talk(OLD, request("prompts/get", name="plain"), offers="none")),
        "id again": ("RPC-4", talk(OLD, call("ask"), call("ask"))),
        "null id": ("RPC-3", talk(OLD, call("ask"))),
        "id in a notification": ("RPC-13", talk(OLD, call("count", progress="t", to=2))),
    },
)
