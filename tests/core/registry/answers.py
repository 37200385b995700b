"""The answers of servers to requests, in each revision.

    python -m tests.core.registry.answers

writes `answers.txt` again: for each server and revision the capabilities, and below each request
the whole result, or the error. What a request answers as in the revision before is left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta, Struct

from mcp_core import ALL, DIALECTS, ToolError
from mcp_core import types as t
from mcp_core.protocol.revisions._config import CacheHint
from mcp_core.registry import Context, ResourceNotFound, Server, TaskOptions
from tests.core.registry.lookup_helpers import ROWS, answered
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SERVED", "answers_of", "kept_answers"]

_FILE: Final = Path(__file__).with_name("answers.txt")
_ICON: Final = t.Icon("https://a.test/i.png", mime_type="image/png", sizes=["1x1"], theme="dark")
_ANNOTATIONS: Final = t.Annotations(audience=["user"], priority=0.5)


class _Point(Struct):
    """A point.

    Attributes:
        x: from the left.
    """

    x: int
    y: Annotated[float, Meta(ge=0)] = 1.5


def _declare_tools(server: Server) -> None:
    @server.tool(
        title="Move it", icons=[_ICON], meta={"com.example/a": 1},
        annotations=t.ToolAnnotations(title="M", read_only_hint=True, open_world_hint=False),
    )  # fmt: skip
    def move(point: _Point, by: Annotated[int, Meta(ge=1, le=3)] = 2) -> _Point:
        """Move a point.

        Args:
            point: the point.
            by: how far.
        """
        return _Point(point.x + by, point.y)

    @server.tool(task=TaskOptions(ttl=60))
    async def slow(text: str | None = None) -> str:
        """Take its time."""
        return f"slow {text}"

    @server.tool(
        name="raw", description="Raw.", input_schema={"type": "object", "required": ["a"]},
        output_schema={"type": "object", "properties": {"b": {"type": "integer"}}},
    )  # fmt: skip
    def _raw(**arguments: Any) -> dict[str, Any]:
        return {"b": arguments["a"]}

    @server.tool
    def fail(how: str) -> list[int]:
        """Fail in one of several ways."""
        errors: dict[str, Exception] = {
            "tool": ToolError("so it is"),
            "other": ValueError("a secret"),
            "lookup": ResourceNotFound("x://nothing"),
        }
        if how in errors:
            raise errors[how]
        return ["x"] if how == "output" else [1, 2]  # type: ignore[list-item]

    @server.tool
    def blocks(context: Context) -> list[t.ContentBlock]:
        """Return several blocks."""
        return [
            t.TextContent(context.method, annotations=_ANNOTATIONS),
            t.ImageContent("aGk=", "image/png"),
            t.AudioContent("aGk=", "audio/wav"),
            t.ResourceLink(uri="x://a", name="a"),
            t.EmbeddedResource(t.ResourceContents(uri="x://a", text="a")),
        ]


def _declare_others(server: Server) -> None:
    server.add_resource(
        "x://a", lambda: "text of a", name="a", title="A", description="About a.", size=9,
        mime_type="text/markdown", annotations=_ANNOTATIONS, icons=[_ICON], meta={"m": 1},
        last_modified="2026-01-02T03:04:05Z", cache=CacheHint(5, "public"),
    )  # fmt: skip
    server.add_resource("x://bytes", lambda: b"\xff\0", name="bytes")
    server.add_resource("x://data", lambda: {"a": [1]}, name="data")
    server.add_resource("x://broken", lambda: 1 // 0, name="broken")
    server.add_resource("y://{kind}/{+path}", lambda kind, path: f"{kind} {path}", name="files",
                        title="Files", description="All.", annotations=_ANNOTATIONS)  # fmt: skip
    server.add_completion("y://{kind}/{+path}", "kind", lambda typed: [typed + "1", typed + "2"])

    @server.prompt(title="Ask", icons=[_ICON], meta={"m": 1})
    def ask(what: str, times: int = 1) -> str:
        """Ask something.

        Args:
            what: the question.
        """
        return what * times

    server.add_prompt(lambda: [t.PromptMessage("assistant", t.TextContent("hi"))], name="plain")
    server.add_completion("ask", "what", lambda typed, chosen: sorted([typed, *chosen.values()]))

    @server.method("acme/add")
    def add(params: t.RequestParams) -> dict[str, int]:
        return {"sum": 3}


def _full() -> Server:
    server = Server(
        "full", "1.2", title="Full", description="All of it.", instructions="Use it.",
        website_url="https://a.test", icons=[_ICON], extensions={"com.example/x": {"a": 1}},
    )  # fmt: skip
    _declare_tools(server)
    _declare_others(server)
    return server


def _options() -> Server:
    """Return a server with each option off its default."""
    server = Server(
        "options", logging=False, list_changed=False, subscriptions=False, page_size=2,
        cache=CacheHint(1.5, "public"), keep_alive=7, instructions="Use it.",
    )  # fmt: skip
    _declare_tools(server)
    _declare_others(server)
    server.disable("slow")
    server.disable("ask", "prompt")
    server.disable("x://data")
    server.disable("blocks")
    server.enable("blocks")
    server.remove_method("acme/add")
    return server


def _outer() -> Server:
    server = Server("outer", instructions="Outer.", extensions={"com.example/y": {}})
    server.mount(_full(), "in")
    server.add_tool(lambda: "own", name="own", description="Own.")
    return server


_SERVERS: Final[dict[str, Callable[[], Server]]] = {
    "empty": lambda: Server("empty"),
    "full": _full,
    "options": _options,
    "outer": _outer,
}
_PROMPT: Final = {"type": "ref/prompt", "name": "ask"}
_TEMPLATE: Final = {"type": "ref/resource", "uri": "y://{kind}/{+path}"}


def _call(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": tool, "arguments": arguments}


def _read(uri: str) -> tuple[str, dict[str, Any]]:
    return "resources/read", {"uri": uri}


def _get(prompt: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return "prompts/get", {"name": prompt, "arguments": arguments}


def _complete(ref: dict[str, str], name: str, **chosen: str) -> tuple[str, dict[str, Any]]:
    params: dict[str, Any] = {"ref": ref, "argument": {"name": name, "value": "v"}}
    return "completion/complete", {**params, "context": {"arguments": chosen}} if chosen else params


_WRONG: Final[list[dict[str, Any]]] = [
    *({}, {"point": {}}, {"point": {"x": 1, "y": -1}}, {"by": 4}),
]
_TOOLS: Final[list[tuple[str, dict[str, Any]]]] = [
    *((f"{kind}/list", {}) for kind in ("tools", "resources", "resources/templates", "prompts")),
    ("tools/list", {"cursor": "x"}),
    _call("move", point={"x": 1}),
    _call("move", point={"x": 1, "y": 0}, by=3),
    *(_call("move", **wrong) for wrong in _WRONG),
    _call("move", point={"x": 1}, other=2),
    ("tools/call", {"name": "slow"}),
    _call("slow", text="x"),
    _call("raw", a=1),
    _call("raw", a="x"),
    _call("raw"),
    *(_call("fail", how=how) for how in ("tool", "other", "lookup", "output", "not")),
    _call("blocks"),
    _call("nothing"),
    _call("in_move", point={"x": 1}),
    _call("in_fail", how="tool"),
    _call("own"),
]
_OTHERS: Final[list[tuple[str, dict[str, Any]]]] = [
    *(_read(f"x://{name}") for name in ("a", "bytes", "data", "broken", "nothing")),
    *(_read(uri) for uri in ("y://k/a/b", "y://k/../b", "y://k/", "y://k")),
    _get("ask", what="So? ", times="2"),
    _get("ask", what="So?"),
    _get("ask"),
    _get("ask", what="So?", times="x"),
    _get("ask", what="So?", other="x"),
    *(_get(name) for name in ("plain", "in_plain", "nothing")),
    _complete(_PROMPT, "what"),
    _complete(_PROMPT, "what", times="1"),
    _complete({**_PROMPT, "name": "in_ask"}, "what"),
    _complete(_PROMPT, "times"),
    _complete(_PROMPT, "nothing"),
    _complete({**_PROMPT, "name": "nothing"}, "what"),
    _complete(_TEMPLATE, "kind"),
    _complete(_TEMPLATE, "path"),
    _complete({**_TEMPLATE, "uri": "y://{kind}"}, "kind"),
    ("acme/add", {}),
]


# The servers, each with the requests for tools and with all others.
SERVED: Final = [f"{name} {part}" for name in _SERVERS for part in ("tools", "others")]


def answers_of(served: str) -> dict[str, str]:
    """Return answers of a server, by its name, their part and the revision."""
    name, part = served.split()
    server = _SERVERS[name]()
    requests = _TOOLS if part == "tools" else _OTHERS
    before: dict[str, str] = {}
    found = {}
    for version in reversed(ALL):
        dialect = DIALECTS[version]
        config = server.config()
        lines = [f"  {server!r}", f"  {config.instructions!r} {config.keep_alive}"]
        lines += [
            f"  {dialect.encode(each).decode()}" for each in (config.info, config.capabilities)
        ]
        rows = {**ROWS, **{row.name: row for row in config.methods.values()}}
        for method, params in requests:
            row = rows.get(method)
            if row is None:
                continue
            answer = _shown(answered(server, row, params, dialect))
            request = f"  {method} {_shown(params)}"
            if before.get(request) != answer:
                lines += [request, f"    {answer}"]
            before[request] = answer
            while '"nextCursor"' in answer:  # the next page of a list
                params = {"cursor": json.loads(answer)["nextCursor"]}
                answer = _shown(answered(server, row, params, dialect))
                lines.append(f"    {answer}")
        found[f"{served} {version}"] = "\n".join(lines)
    return found


def _shown(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def kept_answers() -> dict[str, str]:
    """Return what is kept, by the server's name, the part and the revision."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {key: text for each in SERVED for key, text in answers_of(each).items()})
