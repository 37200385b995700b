"""Operators that crash or hang a process at a message, often a classic one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.oracle_score.broken_messages import METHODS, NEW, OLD
from tests.oracle_score.operators import CRASH, HANG, TABLE
from tests.oracle_score.talks import call, cancel, note, now, request, talk
from tests.oracle_score.wrapper import Crashed, Hung, MessageOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.oracle_score.talks import Talk

Json = dict[str, Any]


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, each in value.items():
            yield name
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)


def _arguments(message: Json) -> Any:
    params = message.get("params")
    is_call = message.get("method") == "tools/call" and isinstance(params, dict)
    return params.get("arguments") if is_call else None  # type: ignore[union-attr]


def _depth(value: Any) -> int:
    found, level = 0, [value]
    while level and found < 200:
        found += 1
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return found


def _is_repeated(operator: MessageOperator, message: Json) -> bool:
    id = message.get("id")
    if "method" not in message or not isinstance(id, int | str):
        return False
    known = operator.wrapper.counts
    known[f"id {id!r}"] = known.get(f"id {id!r}", 0) + 1
    return known[f"id {id!r}"] > 1


def _count(operator: MessageOperator, name: str, limit: int) -> bool:
    operator.wrapper.counts[name] = operator.wrapper.counts.get(name, 0) + 1
    return operator.wrapper.counts[name] > limit


def _cancels_open(operator: MessageOperator, message: Json) -> bool:
    params = message.get("params")
    id = params.get("requestId") if isinstance(params, dict) else None
    is_cancel = message.get("method") == "notifications/cancelled" and isinstance(id, int | str)
    return is_cancel and id not in operator.wrapper.answered


TRIGGERS: dict[str, tuple[Callable[[MessageOperator, Json], bool], Talk]] = {
    "an unknown method": (
        lambda operator, message: message.get("method") == "acme/none",
        talk(OLD, request("acme/none")),
    ),
    "an unknown notification": (
        lambda operator, message: (
            "id" not in message and message.get("method") == "notifications/acme"
        ),
        talk(OLD, note("notifications/acme")),
    ),
    "params that are a list": (
        lambda operator, message: "id" in message and isinstance(message.get("params"), list),
        talk(OLD, {**request("tools/list"), "params": [1]}),
    ),
    "a cancellation": (_cancels_open, talk(OLD, now(call("steep", 901, minutes=20)), cancel(901))),
    "the cancellation of an unknown request": (
        lambda operator, message: (
            message.get("method") == "notifications/cancelled"
            and not _cancels_open(operator, message)
        ),
        talk(OLD, request("tools/list", 901), cancel(901)),
    ),
    "a second initialize": (
        lambda operator, message: (
            message.get("method") == "initialize" and _count(operator, "initialize", 1)
        ),
        talk(
            OLD,
            request(
                "initialize",
                protocolVersion=OLD,
                capabilities={},
                clientInfo={"name": "a", "version": "1"},
            ),
        ),
    ),
    "an id again": (
        _is_repeated,
        talk(OLD, request("tools/list", 901), request("tools/list", 901)),
    ),
    "an id of 0": (
        lambda operator, message: (
            "method" in message and message.get("id") == 0 and isinstance(message["id"], int)
        ),
        talk(OLD, request("tools/list", 0)),
    ),
    "an empty id": (
        lambda operator, message: "method" in message and message.get("id") == "",
        talk(OLD, request("tools/list", "")),
    ),
    "a negative id": (
        lambda operator, message: isinstance(message.get("id"), int) and message["id"] < 0,
        talk(OLD, request("tools/list", -1)),
    ),
    "a large id": (
        lambda operator, message: isinstance(message.get("id"), int) and message["id"] > 2**53,
        talk(OLD, request("tools/list", 2**53 + 1)),
    ),
    "half of a character": (
        lambda operator, message: any(
            "\ud800" <= letter <= "\udfff" for text in _texts(message) for letter in text
        ),
        talk(OLD, json.dumps(call("echo", text="\ud800")).encode()),
    ),
    "a NUL in an argument": (
        lambda operator, message: any("\0" in text for text in _texts(_arguments(message))),
        talk(OLD, call("echo", text="a\0b")),
    ),
    "an empty argument": (
        lambda operator, message: "" in list(_texts(_arguments(message))),
        talk(OLD, call("echo", text="")),
    ),
    "a long argument": (
        lambda operator, message: any(len(text) > 10_000 for text in _texts(_arguments(message))),
        talk(OLD, call("echo", text="x" * 20_000)),
    ),
    "letters beyond Latin": (
        lambda operator, message: any(
            letter > "\u0100" for text in _texts(_arguments(message)) for letter in text
        ),
        talk(OLD, call("echo", text="\u8336")),
    ),
    "letters beyond the first plane": (
        lambda operator, message: any(
            letter > "\uffff" for text in _texts(_arguments(message)) for letter in text
        ),
        talk(OLD, call("echo", text="\U0001f375")),
    ),
    "a name of a prototype": (
        lambda operator, message: (
            not {"__proto__", "constructor", "toString"}.isdisjoint(_texts(message))
        ),
        talk(OLD, request("prompts/get", name="constructor")),
    ),
    "no arguments": (
        lambda operator, message: (
            message.get("method") == "tools/call"
            and isinstance(message.get("params"), dict)
            and "arguments" not in message["params"]
        ),
        talk(OLD, request("tools/call", name="fail")),
    ),
    "a large number": (
        lambda operator, message: (
            any(
                isinstance(each, int) and abs(each) >= 2**63
                for each in (_arguments(message) or {}).values()
            )
            if isinstance(_arguments(message), dict)
            else False
        ),
        talk(OLD, call("add", a=2**63, b=1)),
    ),
    "deep JSON": (
        lambda operator, message: _depth(message) > 60,
        talk(OLD, {**request("acme/none"), "params": {"a": json.loads("[" * 80 + "]" * 80)}}),
    ),
    "an empty tool name": (
        lambda operator, message: (
            message.get("method") == "tools/call"
            and isinstance(message.get("params"), dict)
            and message["params"].get("name") == ""
        ),
        talk(OLD, request("tools/call", name="", arguments={})),
    ),
    "a response nobody waits for": (
        lambda operator, message: (
            "method" not in message
            and isinstance(message.get("id"), int | str)
            and not any(each["id"] == message["id"] for each in operator.wrapper.asked.values())
        ),
        talk(OLD, {"jsonrpc": "2.0", "id": "none", "result": {}}),
    ),
    "an error as a response": (
        lambda operator, message: "method" not in message and "error" in message,
        talk(OLD, {"jsonrpc": "2.0", "id": "none", "error": {"code": 1, "message": "no"}}),
    ),
    "the progress token 0": (
        lambda operator, message: '"progressToken": 0' in json.dumps(message),
        talk(OLD, call("echo", progress=0, text="x")),
    ),
    "200 messages": (
        lambda operator, message: _count(operator, "all", 200),
        talk(OLD, *[now(request("ping", f"p{n}")) for n in range(205)], request("tools/list")),
    ),
    "20 requests at once": (
        lambda operator, message: (
            sum(
                each["id"] not in operator.wrapper.answered
                for each in operator.wrapper.requests.values()
            )
            > 20
        ),
        talk(
            OLD,
            *[now(call("steep", n, minutes=20)) for n in range(100, 125)],
            request("tools/list"),
        ),
    ),
    "a second subscription": (
        lambda operator, message: (
            message.get("method") == "subscriptions/listen" and _count(operator, "listen", 1)
        ),
        talk(
            NEW,
            request("subscriptions/listen", notifications={"toolsListChanged": True}),
            request("subscriptions/listen", notifications={"toolsListChanged": True}),
            request("tools/list"),
        ),
    ),
    "an empty cursor": (
        lambda operator, message: (
            isinstance(message.get("params"), dict) and message["params"].get("cursor") == ""
        ),
        talk(OLD, request("tools/list", cursor="")),
    ),
    "a URI with a fragment": (
        lambda operator, message: (
            isinstance(message.get("params"), dict) and "#" in str(message["params"].get("uri"))
        ),
        talk(OLD, request("resources/read", uri="note:///one#part")),
    ),
    "a path upwards": (
        lambda operator, message: (
            isinstance(message.get("params"), dict) and ".." in str(message["params"].get("uri"))
        ),
        talk(OLD, request("resources/read", uri="note:///../one")),
    ),
    "the level emergency": (
        lambda operator, message: (
            message.get("method") == "logging/setLevel"
            and isinstance(message.get("params"), dict)
            and message["params"].get("level") == "emergency"
        ),
        talk(OLD, request("logging/setLevel", level="emergency")),
    ),
}
_CRASHES = (
    "an unknown method",
    "an unknown notification",
    "params that are a list",
    "a cancellation",
    "a second initialize",
    "an id of 0",
    "an empty id",
    "a large id",
    "half of a character",
    "a NUL in an argument",
    "an empty argument",
    "letters beyond the first plane",
    "a name of a prototype",
    "no arguments",
    "a large number",
    "deep JSON",
    "a response nobody waits for",
    "an error as a response",
    "the progress token 0",
    "200 messages",
    "an empty cursor",
    "a path upwards",
)
_HANGS = (
    "the cancellation of an unknown request",
    "an id again",
    "a negative id",
    "a long argument",
    "letters beyond Latin",
    "an empty tool name",
    "20 requests at once",
    "a second subscription",
    "a URI with a fragment",
    "the level emergency",
    "a cancellation",
    "an error as a response",
)


class CrashAt(MessageOperator):
    """Ends the process at a message."""

    def to_server(self, message: Json) -> Iterator[Json]:
        if TRIGGERS[self.place][0](self, message):
            raise Crashed(1)
        yield message


class HangAt(MessageOperator):
    """Does nothing any more from a message on."""

    def to_server(self, message: Json) -> Iterator[Json]:
        if TRIGGERS[self.place][0](self, message):
            raise Hung
        yield message


def _with_ping(found: Talk) -> Talk:
    """Return a talk that ends with a request that every server answers."""
    last = request("tools/list")
    return found._replace(messages=[*found.messages, last])


TABLE.add(
    "crash",
    "The process ends at a message.",
    CrashAt,
    {name: (CRASH, TRIGGERS[name][1]) for name in _CRASHES},
)
TABLE.add(
    "hang",
    "The process does nothing any more after a message.",
    HangAt,
    {name: (HANG, _with_ping(TRIGGERS[name][1])) for name in _HANGS},
)


class CrashAtBytes(MessageOperator):
    """Ends the process at a line that is no message."""

    def see(self, line: bytes) -> None:
        is_broken = False
        try:
            decoded = json.loads(line.decode())
        except (ValueError, RecursionError):
            decoded, is_broken = None, True
        if self.place == "an empty line" and not line.strip():
            raise Crashed(3)
        if self.place == "broken JSON" and is_broken and line.strip():
            raise Crashed(3)
        if self.place == "an array" and isinstance(decoded, list):
            raise Crashed(3)
        if self.place == "a number" and isinstance(decoded, int | float | str):
            raise Crashed(3)
        if self.place == "a line break of Windows" and line.endswith(b"\r"):
            raise Crashed(3)
        if self.place == "a byte order mark" and line.startswith(b"\xef\xbb\xbf"):
            raise Crashed(3)
        if (
            self.place == "a member twice"
            and line.count(b'"method"') > 1
            and isinstance(decoded, dict)
        ):
            raise Crashed(3)


TABLE.add(
    "crash-at-bytes",
    "The process ends at a line that is no usual message.",
    CrashAtBytes,
    {
        "an empty line": (CRASH, talk(OLD, b"")),
        "broken JSON": (CRASH, talk(OLD, b'{"jsonrpc"')),
        "an array": (CRASH, talk(OLD, b"[]")),
        "a number": (CRASH, talk(OLD, b"7")),
        "a line break of Windows": (
            CRASH,
            talk(OLD, json.dumps(METHODS["tools/list"]).encode() + b"\r"),
        ),
        "a byte order mark": (
            CRASH,
            talk(OLD, b"\xef\xbb\xbf" + json.dumps(METHODS["tools/list"]).encode()),
        ),
    },
)
