"""Operators on a client: on what it sends, answers and makes of what it gets."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from tests.oracle_score.broken_messages import NEW, OLD
from tests.oracle_score.operators import CRASH, HANG, TABLE
from tests.oracle_score.talks import Visit, visit
from tests.oracle_score.wrapper import Crashed, Hung, MessageOperator, changed

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
META: Final = "io.modelcontextprotocol/"


def _case(*steps: Any, revision: str = OLD, **more: Any) -> Visit:
    """Return a case of a server that does the steps, and else is right."""
    return visit([("serve", [revision], ["sum"]), *steps], **more)


# For a client, `to_server` has what it gets from its server, and `to_client` what it sends.


class ClientAnswers(MessageOperator):
    """Answers the server's requests wrongly."""

    def to_server(self, message: Json) -> Iterator[Json]:
        method, place = message.get("method"), self.place
        is_notification = isinstance(method, str) and "id" not in message
        if place == "ignored ping" and method == "ping":
            return
        yield message
        if is_notification and place == "notification" and "progress" in str(method):
            self.wrapper.say({"jsonrpc": "2.0", "error": {"code": -32601, "message": "?"}})

    def to_client(self, message: Json) -> Iterator[Json]:
        method, place = self.method_of(message), self.place
        if place == "ping twice" and method == "ping":
            yield message
            yield message
        elif place == "id as text" and method == "ping":
            yield {**message, "id": str(message["id"])}
        elif place == "ping with a result" and method == "ping":
            yield {**message, "result": [1]}
        elif place == "no roots" and method == "roots/list":
            yield changed(message, "result/roots")
        elif place == "web root" and method == "roots/list":
            yield {**message, "result": {"roots": [{"uri": "https://example.com/"}]}}
        elif place == "no model" and method == "sampling/createMessage":
            yield changed(message, "result/model")
        elif place == "invented action" and method == "elicitation/create" and "result" in message:
            yield {**message, "result": {"action": "maybe"}}
        elif place == "error without a code" and "error" in message:
            yield changed(message, "error/code")
        else:
            yield message


TABLE.add(
    "client-answers",
    "A client answers its server's requests wrongly, twice or not.",
    ClientAnswers,
    {
        "ignored ping": ("PING-2", _case(("push", "ping", 3, 0))),
        "ping twice": ("RPC-7", _case(("push", "ping", 3, 0))),
        "id as text": ("RPC-7", _case(("push", "ping", 3, 0))),
        "ping with a result": ("RPC-16", _case(("push", "ping", 3, 0))),
        "no roots": ("ROOT-2", _case(("push", "roots", 2, 0))),
        "web root": ("ROOT-3", _case(("push", "roots", 2, 0))),
        "no model": ("SAMP-3", _case(("push", "sampling", 3, 0))),
        "invented action": ("ELIC-9", _case(("push", "elicitation", 2, 0))),
        "error without a code": ("RPC-11", _case(("push", "unknown-request", 2, 0))),
        "notification": ("RPC-8", _case(("push", "progress", 3, 0))),
    },
    server="client",
)


class ClientAsks(MessageOperator):
    """Sends wrong requests and notifications."""

    asked: Any = None

    def to_server(self, message: Json) -> Iterator[Json]:
        is_response = "method" not in message and message.get("id") == 77
        yield {**message, "id": self.asked} if is_response else message

    def to_client(self, message: Json) -> Iterator[Json]:
        method, place = message.get("method"), self.place
        is_request = "method" in message and "id" in message
        if place == "same id" and is_request and method not in ("initialize", "server/discover"):
            self.asked = message["id"]
            yield {**message, "id": 77}
        elif place == "null id" and method == "resources/list":
            yield {**message, "id": None}
        elif place == "no version" and method == "tools/list":
            yield changed(message, "jsonrpc")
        elif place == "list as params" and method == "resources/list":
            yield {**message, "params": []}
        elif place == "no initialized" and method == "notifications/initialized":
            return
        elif place == "no clientInfo" and method == "initialize":
            yield changed(message, "params/clientInfo")
        elif place == "no protocolVersion" and method == "tools/list":
            yield changed(message, "params/_meta/io.modelcontextprotocol~1protocolVersion")
        elif place == "other cursor" and _cursor(message) is not None:
            yield changed(message, "params/cursor", str(_cursor(message)) + "x")
        elif place == "cancels initialize" and method == "initialize":
            yield message
            params = {"requestId": message["id"]}
            yield {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        elif place == "progress token as object" and method == "tools/call":
            found = copy.deepcopy(message)
            found["params"].setdefault("_meta", {})["progressToken"] = {"a": 1}
            yield found
        else:
            yield message


def _cursor(message: Json) -> Any:
    params = message.get("params")
    return params.get("cursor") if isinstance(params, dict) else None


TABLE.add(
    "client-asks",
    "A client sends wrong requests or notifications.",
    ClientAsks,
    {
        "same id": ("RPC-4", _case()),
        "no initialized": ("LIFE-7", _case()),
        "null id": ("RPC-3", _case()),
        "no version": ("RPC-1", _case()),
        "list as params": ("RPC-15", _case()),
        "no clientInfo": ("LIFE-1", _case()),
        "no protocolVersion": ("META-6", _case(revision=NEW)),
        "other cursor": ("PAGE-3", _case(("answer", "page", 2, 0))),
        "cancels initialize": ("CXL-4", _case()),
        "progress token as object": ("PROG-2", _case()),
    },
    server="client",
)


class ClientFails(MessageOperator):
    """Crashes or hangs at a message of the server, or goes on where it has to end."""

    def to_server(self, message: Json) -> Iterator[Json]:
        kind, _, what = self.place.partition(" at ")
        if kind in ("crash", "hang") and _TRIGGERS[what](self, message):
            raise Crashed(-6) if kind == "crash" else Hung
        yield message


_TRIGGERS: dict[str, Any] = {
    "an error": lambda operator, message: "error" in message,
    "a list change": lambda operator, message: "list_changed" in str(message.get("method")),
    "a result that is no object": lambda operator, message: (
        "result" in message and not isinstance(message["result"], dict)
    ),
    "a wrong output": lambda operator, message: (
        isinstance(message.get("result"), dict)
        and message["result"].get("structuredContent") == {"sum": "one"}
    ),
    "a log message": lambda operator, message: message.get("method") == "notifications/message",
}
TABLE.add(
    "client-fails",
    "A client crashes or hangs at a message of its server.",
    ClientFails,
    {
        "crash at an error": (CRASH, _case(("answer", "error", 2, 0))),
        "crash at a list change": (CRASH, _case(("push", "list-changed", 2, 0))),
        "crash at a log message": (CRASH, _case(("push", "log", 2, 0))),
        "crash at a result that is no object": (CRASH, _case(("answer", "odd-result", 2, 0))),
        "crash at a wrong output": (CRASH, _case(("answer", "output", 3, 0))),
        "hang at an error": (HANG, _case(("answer", "error", 2, 0))),
        "hang at a list change": (HANG, _case(("push", "list-changed", 2, 0))),
    },
    server="client",
)


class ClientBelieves(MessageOperator):
    """Takes what it must not take: a wrong version, an empty cursor for the end."""

    def to_server(self, message: Json) -> Iterator[Json]:
        result, place = message.get("result"), self.place
        if isinstance(result, dict) and place == "any version" and "protocolVersion" in result:
            yield changed(message, "result/protocolVersion", OLD)
        elif isinstance(result, dict) and place == "empty cursor" and not result.get("nextCursor"):
            yield changed(message, "result/nextCursor")
        else:
            yield message


TABLE.add(
    "client-believes",
    "A client takes what it must not take from its server.",
    ClientBelieves,
    {
        "any version": ("LIFE-5", _case(("answer", "revision", 1, 0))),
        "empty cursor": ("PAGE-4", _case(("always", "page", 1, 1), revision=NEW)),
    },
    server="client",
)


class ClientFillsIn(MessageOperator):
    """Answers questions with what was not declared, or doesn't fit."""

    def to_server(self, message: Json) -> Iterator[Json]:
        is_request = "method" in message and "id" in message
        if self.place == "silence" and is_request and message["method"] != "ping":
            return
        yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        place, method = self.place, self.method_of(message)
        params = message.get("params")
        given = params.get("inputResponses") if isinstance(params, dict) else None
        if place == "empty form" and method == "elicitation/create" and "result" in message:
            yield {**message, "result": {"action": "accept", "content": {}}}
        elif place == "undeclared tools" and method == "sampling/createMessage":
            content = {"type": "text", "text": "yes"}
            result = {"role": "assistant", "content": content, "model": "none"}
            yield {"jsonrpc": "2.0", "id": message["id"], "result": result}
        elif place == "part of a round" and isinstance(given, dict) and len(given) > 1:
            found = copy.deepcopy(message)
            found["params"]["inputResponses"].popitem()
            yield found
        elif place == "empty form in a round" and isinstance(given, dict) and "form" in given:
            filled = {"action": "accept", "content": {}}
            yield changed(message, "params/inputResponses/form", filled)
        else:
            yield message


TABLE.add(
    "client-fills-in",
    "A client answers questions that it did not declare, with what does not fit, or not at all.",
    ClientFillsIn,
    {
        "empty form": ("ELIC-10", _case(("push", "elicitation", 2, 0))),
        "undeclared tools": ("SAMP-5", _case(("push", "sampling", 2, 4))),
        "silence": ("RPC-35", _case(("push", "unknown-request", 2, 0))),
        "part of a round": ("MRTR-6", _case(("answer", "input", 2, 3), revision=NEW)),
        "empty form in a round": ("ELIC-10", _case(("answer", "input", 2, 3), revision=NEW)),
    },
    server="client",
)
