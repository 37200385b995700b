"""Operators on members of results: remove, retype, invent; and on lists, pages and schemas."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from tests.oracle_score.broken_messages import METHODS, NEW, OLD, PROMPTS, TOOLS, listed
from tests.oracle_score.operators import TABLE
from tests.oracle_score.talks import call, request, talk
from tests.oracle_score.wrapper import MessageOperator, changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle_score.talks import Talk, TalkShown

Json = dict[str, Any]
META: Final = "io.modelcontextprotocol/"
READ = METHODS["resources/read"]
GREET = request("prompts/get", name="greet", arguments={"name": "x"})


class EditMember(MessageOperator):
    """Edits one member of the results of one method, at the place `method pointer`."""

    edits: dict[str, tuple[str, str, Any]]

    def to_client(self, message: Json) -> Iterator[Json]:
        method, pointer, value = self.edits[self.place]
        result = self.result_of(message, method)
        yield message if result is None else changed(message, f"result/{pointer}", value)


def _edits(name: str, sentence: str, places: dict[str, tuple[str, str, str, Any, Talk]]) -> None:
    """Add an operator whose places have a row, a method, a pointer, a value and a talk."""
    edits = {
        place: (method, pointer, value) for place, (_, method, pointer, value, _) in places.items()
    }
    make = type(name, (EditMember,), {"edits": edits})
    TABLE.add(name, sentence, make, {place: (each[0], each[4]) for place, each in places.items()})


LIST_OLD, LIST_NEW = talk(OLD, METHODS["tools/list"]), talk(NEW, METHODS["tools/list"])
ECHO = talk(OLD, METHODS["tools/call"])
NONE: Final = ...

_edits(
    "remove-member",
    "A member that a result must have is missing.",
    {
        "a tool's name": ("TOOL-2", "tools/list", "tools/0/name", NONE, LIST_OLD),
        "a tool's inputSchema": ("TOOL-6", "tools/list", "tools/1/inputSchema", NONE, LIST_OLD),
        "the tools": ("TOOL-2", "tools/list", "tools", NONE, LIST_OLD),
        "content": ("TOOL-13", "tools/call", "content", NONE, ECHO),
        "a text": ("CONT-2", "tools/call", "content/0/text", NONE, ECHO),
        "a URI": ("CONT-6", "resources/read", "contents/0/uri", NONE, talk(OLD, READ)),
        "a role": ("PRM-3", "prompts/get", "messages/0/role", NONE, talk(OLD, GREET)),
        "serverInfo": ("LIFE-3", "initialize", "serverInfo", NONE, talk(OLD)),
        "capabilities": ("LIFE-3", "initialize", "capabilities", NONE, talk(OLD)),
        "resultType": (
            "RPC-30",
            "tools/call",
            "resultType",
            NONE,
            talk(NEW, METHODS["tools/call"]),
        ),
        "ttlMs": ("CACHE-1", "prompts/list", "ttlMs", NONE, talk(NEW, request("prompts/list"))),
        "values": (
            "COMP-3",
            "completion/complete",
            "completion/values",
            NONE,
            talk(OLD, METHODS["completion/complete"]),
        ),
    },
)
_edits(
    "retype-member",
    "A member of a result has another type.",
    {
        "a description": ("TOOL-2", "tools/list", "tools/0/description", 7, LIST_OLD),
        "a text": ("CONT-1", "tools/call", "content/0/text", 7, ECHO),
        "isError": ("TOOL-13", "tools/call", "isError", "false", ECHO),
        "content": ("TOOL-13", "tools/call", "content", {"type": "text", "text": "x"}, ECHO),
        "nextCursor": (
            "PAGE-1",
            "prompts/list",
            "nextCursor",
            2,
            talk(OLD, request("prompts/list")),
        ),
        "null nextCursor": (
            "PAGE-1",
            "resources/list",
            "nextCursor",
            None,
            talk(OLD, request("resources/list")),
        ),
        "ttlMs": ("CACHE-1", "tools/list", "ttlMs", -1, LIST_NEW),
        "total": (
            "COMP-3",
            "completion/complete",
            "completion/total",
            "3",
            talk(OLD, METHODS["completion/complete"]),
        ),
        "null inputSchema": ("TOOL-6", "tools/list", "tools/2/inputSchema", None, LIST_OLD),
        "a hint": ("TOOL-2", "tools/list", "tools/0/annotations/readOnlyHint", "yes", LIST_OLD),
        "contents' text": ("CONT-6", "resources/read", "contents/0/text", ["x"], talk(OLD, READ)),
        "structuredContent": (
            "TOOL-8",
            "tools/call",
            "structuredContent",
            [1],
            talk(OLD, call("weather", city="x")),
        ),
        "a ping's result": ("PING-1", "ping", "pong", True, talk(OLD, request("ping"))),
    },
)
_edits(
    "invent-member",
    "A member has a value that the revision doesn't know.",
    {
        "a content type": ("CONT-2", "tools/call", "content/0/type", "txt", ECHO),
        "a role": ("PRM-3", "prompts/get", "messages/0/role", "system", talk(OLD, GREET)),
        "a resultType": (
            "RPC-33",
            "tools/call",
            "resultType",
            "done",
            talk(NEW, METHODS["tools/call"], offers="none"),
        ),
        "a cacheScope": ("CACHE-1", "tools/list", "cacheScope", "shared", LIST_NEW),
        "a tool name": ("TOOL-19", "tools/list", "tools/3/name", "say it", LIST_OLD),
        "a schema's type": (
            "JSCH-3",
            "tools/list",
            "tools/0/inputSchema",
            {"type": "object", "properties": {"a": {"type": "txt"}}},
            LIST_OLD,
        ),
        "a _meta name": ("META-2", "tools/call", "_meta", {"a b/c d": 1}, ECHO),
        "a reserved _meta name": ("META-3", "tools/call", "_meta", {"tools.mcp.com/mine": 1}, ECHO),
        "a URI": (
            "RES-11",
            "resources/list",
            "resources/0/uri",
            "note 1",
            talk(OLD, request("resources/list")),
        ),
        "101 values": (
            "COMP-3",
            "completion/complete",
            "completion/values",
            ["x"] * 101,
            talk(NEW, METHODS["completion/complete"]),
        ),
        "hints at an input": ("CACHE-2", "tools/call", "ttlMs", 5, talk(NEW, call("ask"))),
        "traceparent": (
            "META-13",
            "tools/call",
            "_meta",
            {"traceparent": "x"},
            talk(NEW, METHODS["tools/call"]),
        ),
    },
)


class BreakSchema(MessageOperator):
    """Sends structured content that its schema doesn't allow."""

    def to_client(self, message: Json) -> Iterator[Json]:
        result = self.result_of(message, "tools/call")
        content = result.get("structuredContent") if result is not None else None
        if not isinstance(content, dict):
            yield message
        elif self.place == "retyped" and "celsius" in content:
            yield changed(message, "result/structuredContent/celsius", "warm")
        elif self.place == "removed" and "celsius" in content:
            yield changed(message, "result/structuredContent/celsius")
        elif self.place == "missing" and "celsius" in content:
            yield changed(message, "result/structuredContent")
        elif self.place == "large numbers" and _is_large(content.get("result")):
            yield changed(message, "result/structuredContent/result", str(content["result"]))
        elif self.place == "no text":
            yield changed(message, "result/content", [])
        else:
            yield message


def _is_large(value: Any) -> bool:
    return isinstance(value, int) and abs(value) > 2**31


WEATHER = talk(OLD, *TOOLS, call("weather", city="x"))
TABLE.add(
    "break-schema",
    "The structured content of a tool doesn't match its output schema.",
    BreakSchema,
    {
        "retyped": ("TOOL-10", WEATHER),
        "removed": ("TOOL-10", WEATHER),
        "missing": ("TOOL-10", WEATHER),
        "large numbers": ("TOOL-10", talk(OLD, *TOOLS, call("add", a=2**40, b=1))),
        "no text": ("TOOL-12", WEATHER),
    },
)


class ServeBadArguments(MessageOperator):
    """Serves arguments that the tool's schema doesn't allow, as if they were others."""

    def to_server(self, message: Json) -> Iterator[Json]:
        params = message.get("params")
        if message.get("method") not in ("tools/call", "prompts/get") or not isinstance(
            params, dict
        ):
            yield message
            return
        arguments = params.get("arguments")
        name = params.get("name")
        good: Json | None = None
        if self.place == "missing" and name == "echo" and isinstance(arguments, dict):
            good = {"text": ""} if "text" not in arguments else None
        elif self.place == "retyped" and name == "add" and isinstance(arguments, dict):
            is_wrong = any(not isinstance(each, int) for each in arguments.values())
            good = {"a": 1, "b": 1} if is_wrong else None
        elif self.place == "out of range" and name == "count" and isinstance(arguments, dict):
            to = arguments.get("to")
            good = {"to": 10} if isinstance(to, int) and to > 10 else None
        elif self.place == "of a prompt" and name == "greet" and isinstance(arguments, dict):
            good = {"name": "x"} if "name" not in arguments else None
        yield message if good is None else changed(message, "params/arguments", good)


def _is_served(shown: TalkShown) -> bool:
    result = shown.response(901).get("result")
    return isinstance(result, dict) and not result.get("isError")


TABLE.add(
    "serve-bad-arguments",
    "A call with arguments that the schema refuses is served.",
    ServeBadArguments,
    {
        "missing": ("TOOL-24", talk(OLD, *TOOLS, call("echo"))),
        "retyped": (
            "TOOL-24",
            talk(OLD, *TOOLS, call("add", 901, a="1", b="2"), breach=_is_served),
        ),
        "out of range": (
            "TOOL-24",
            talk(OLD, *TOOLS, call("count", 901, to=11), breach=_is_served),
        ),
        "of a prompt": (
            "PRM-4",
            talk(
                OLD,
                *PROMPTS,
                request("prompts/get", 901, name="greet", arguments={}),
                breach=_is_served,
            ),
        ),
    },
)


class BreakList(MessageOperator):
    """Breaks lists and their pages."""

    MEMBERS: Final = {
        "tools/list": "tools",
        "prompts/list": "prompts",
        "resources/list": "resources",
    }

    def to_server(self, message: Json) -> Iterator[Json]:
        params = message.get("params")
        given = params.get("cursor") if isinstance(params, dict) else None
        if isinstance(given, str) and given.startswith("circle"):
            yield changed(message, "params/cursor")
        else:
            yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        method = self.method_of(message)
        member = self.MEMBERS.get(method)
        wanted, _, how = self.place.partition(" ")
        if member is None or self.result_of(message, method) is None or method != wanted:
            yield message
            return
        found = copy.deepcopy(message)
        result = found["result"]
        params = self.request_of(message).get("params")
        given = params.get("cursor") if isinstance(params, dict) else None
        if how == "same cursor":
            result["nextCursor"] = "circle"
        elif how == "circle":
            if "nextCursor" not in result:
                result["nextCursor"] = self.wrapper.circles.get(method, "circle")
            else:
                self.wrapper.circles.setdefault(method, result["nextCursor"])
        elif how == "circle of two":
            result["nextCursor"] = (
                "circle a" if given == "circle b" or given is None else "circle b"
            )
        elif how == "twice":
            result[member] = [*result[member], result[member][0]] if result[member] else []
        elif how == "again on the next page" and given is not None:
            result[member].append(self.kept.get("first", {}))
        elif how == "other order":
            self.kept["turn"] = self.kept.get("turn", 0) + (given is None)
            if self.kept["turn"] % 2 and given is None:
                result[member].reverse()
        elif how == "scope of a page" and given is not None and "cacheScope" in result:
            result["cacheScope"] = "public" if result["cacheScope"] == "private" else "private"
        if given is None and result[member]:
            self.kept["first"] = copy.deepcopy(result[member][0])
        yield found


def _circles(shown: TalkShown) -> bool:
    given = [str(each["result"].get("nextCursor")) for each in shown.said[1:] if "result" in each]
    return len(set(given)) < len(given)


def _names_again(shown: TalkShown) -> bool:
    tools = [each.get("result", {}).get("tools", []) for each in shown.said]
    names = [tool["name"] for page in tools for tool in page]
    return len(set(names)) < len(names)


TABLE.add(
    "break-list",
    "Pages go in a circle, entries come twice or in another order.",
    BreakList,
    {
        "tools/list same cursor": ("PAGE-1", talk(OLD, *listed("tools/list", OLD, 3))),
        "resources/list circle": ("PAGE-1", talk(OLD, *listed("resources/list", OLD, 4))),
        "prompts/list circle of two": (
            "PAGE-1",
            talk(OLD, *listed("prompts/list", OLD, 5), breach=_circles),
        ),
        "tools/list twice": ("TOOL-19", talk(OLD, METHODS["tools/list"])),
        "tools/list again on the next page": (
            "TOOL-19",
            talk(OLD, *listed("tools/list", OLD, 2), breach=_names_again),
        ),
        "tools/list other order": (
            "TOOL-5",
            talk(
                NEW, *listed("tools/list", NEW, 3), request("ping"), *listed("tools/list", NEW, 3)
            ),
        ),
        "tools/list scope of a page": ("CACHE-8", talk(NEW, *listed("tools/list", NEW, 2))),
    },
)
