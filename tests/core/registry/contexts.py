"""Each method of a handler's context, in each revision and for two kinds of client.

    python -m tests.core.registry.contexts

writes `contexts.txt` again: below each call are the messages that the server sends, without the
members that all of them have and the usual responses, and what the handler gets (`=`) or is raised
in it (`!`). The client answers each request, in 2026-07-28 by repeating its own.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_core import types as t
from mcp_core.registry import Context, Form, Server
from tests.harness.forms import Seats
from tests.harness.jsonrpc import VERSIONS, D, request, stateless_request
from tests.harness.messages.scripted_client import OFFERS, ScriptedClient, Stepping
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["CLIENTS", "calls_of", "kept_contexts"]

_FILE: Final = Path(__file__).with_name("contexts.txt")
_EXTENSION: Final = "com.example/inbox"
_OFFERS: Final[dict[str, dict[str, Any]]] = {
    "nothing": {},
    "all": {**OFFERS, "experimental": {_EXTENSION: {}}, "extensions": {_EXTENSION: {}}},
}
# The revision, what the client declares, and the kind of function.
CLIENTS: Final = (
    *(f"{version} {offers} async" for version, offers in product(VERSIONS, _OFFERS)),
    f"{D} all plain",
)
_META: Final[dict[str, Any]] = {
    "progressToken": "p",
    "com.example/x": 1,
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "a=1",
    "baggage": "b=2",
    "io.modelcontextprotocol/logLevel": "notice",
}
# The responses after a call: what the handler gets says the same.
_ENDS: Final = (
    '"content":[{"type":"text","text":"over"}]}}',
    '"The tool failed with an internal error (reference R)."}],"isError":true}}',
)
_TEXT: Final = {"type": "text", "text": "hi"}
_USE: Final = {"type": "tool_use", "id": "1", "name": "double", "input": {"number": 2}}
_SAYS: Final = {"role": "assistant", "content": _TEXT, "model": "m", "stopReason": "endTurn"}
_USES: Final = {**_SAYS, "content": [_USE], "stopReason": "toolUse"}
_ANSWERS: Final[dict[str, list[Any]]] = {
    "elicitation/create": [{"action": "accept", "content": {"count": 2}}, {"action": "decline"}],
    "sampling/createMessage": [_USES, _SAYS],
    "roots/list": [{"roots": [{"uri": "file:///a", "name": "a"}]}],
    "inbox/list": [{"mails": [1]}],
}


class _Mails(Struct):
    mails: list[int]


class _Count(Struct):
    mails: str


def double(number: int) -> int:
    """Double it."""
    return 2 * number


_HELLO: Final = t.SamplingMessage("assistant", t.TextContent("hello"))
_ADD: Final = t.Tool(name="add", input_schema={"type": "object"})
_USED: Final = t.SamplingMessage("assistant", [t.ToolUseContent("9", "add", {})])
_PREFERENCES: Final = t.ModelPreferences(
    hints=[t.ModelHint("h")], cost_priority=0.25, speed_priority=0.5, intelligence_priority=0.75
)
_URL: Final = "https://example.com/pay"
# Each sends, requests or reads something.
_CALLS: Final[dict[str, Callable[[Context], Any]]] = {
    "attributes": lambda c: [c.request_id, c.method, c.principal, c.grant, dict(c.headers),
                             c.client_address, c.task, c.request_state, c.state, c.session_state],
    "meta": lambda c: c.meta,
    "trace": lambda c: c.trace,
    "progress": lambda c: c.progress(1),
    "progress whole": lambda c: c.progress(1.5, 2, "half"),
    "progress nan": lambda c: c.progress(float("nan")),
    "progress_nowait": lambda c: c.progress_nowait(1, 4.5, "some"),
    "log": lambda c: c.log("notice", {"a": [1]}, logger="db"),
    "log low": lambda c: c.log("debug", "x"),
    "log middle": lambda c: c.log("info", "x"),
    "log unknown": lambda c: c.log("loud", "x"),  # type: ignore[arg-type]
    "log_nowait": lambda c: c.log_nowait("emergency", "x", logger="l"),
    "notify": lambda c: c.notify("notifications/inbox/new", {"from": "Ada"}),
    "notify bare": lambda c: c.notify("notifications/inbox/new"),
    "notify mcp": lambda c: c.notify("notifications/progress"),
    "notify empty": lambda c: c.notify(""),
    "request": lambda c: c.request("inbox/list", {"box": 1}),
    "request typed": lambda c: c.request("inbox/list", returns=_Mails),
    "request misfit": lambda c: c.request("inbox/list", returns=_Count, timeout=None),
    "request mcp": lambda c: c.request("ping"),
    "request timeout 0": lambda c: c.request("inbox/list", timeout=0),
    "close_stream": lambda c: c.close_stream(2.5),
    "read_resource": lambda c: c.read_resource("x://a"),
    "read_resource unknown": lambda c: c.read_resource("x://b"),
    "detach": lambda c: c.detach(),
    "elicit": lambda c: c.elicit("How many?", Seats),
    "elicit form": lambda c: c.elicit("How many?", Form(Seats), key="k", task_ttl=0.5),
    "elicit schema": lambda c: c.elicit("So?", {"type": "object", "properties": {}}),
    "elicit misfit": lambda c: c.elicit("Who?", {"type": "object", "properties": {
        "name": {"type": "string"}}, "required": ["name"]}),
    "elicit ttl 0": lambda c: c.elicit("How many?", Seats, task_ttl=0),
    "elicit_url": lambda c: c.elicit_url("Please pay.", _URL),
    "elicit_url whole": lambda c: c.elicit_url("Please pay.", _URL, elicitation_id="e", key="k"),
    "elicit_url http": lambda c: c.elicit_url("Please pay.", "ftp://example.com"),
    "url_elicitation": lambda c: c.url_elicitation("connect", lifetime=60),
    "sample": lambda c: c.sample("hi", max_tokens=7),
    "sample whole": lambda c: c.sample(
        [_HELLO], max_tokens=7, system_prompt="s", model_preferences=_PREFERENCES, temperature=0.5,
        stop_sequences=("x",), include_context="thisServer", metadata={"m": 1}, tools=[_ADD],
        tool_choice="required", key="k", task_ttl=1.5),
    "sample empty": lambda c: c.sample(
        [], max_tokens=0, system_prompt="", temperature=0, stop_sequences=(), metadata={},
        tools=[], include_context="none"),
    "sample open use": lambda c: c.sample([_USED], max_tokens=7, tools=[_ADD]),
    "sample wrong choice": lambda c: c.sample("hi", max_tokens=7, tool_choice="any"),  # type: ignore[arg-type]
    "sample_with_tools": lambda c: c.sample_with_tools("hi", [double, "named"], max_tokens=7),
    "sample_with_tools whole": lambda c: c.sample_with_tools(
        [_HELLO], ["named"], max_tokens=9, max_rounds=2, system_prompt="s", temperature=0.5,
        model_preferences=_PREFERENCES, stop_sequences=("x",), include_context="allServers",
        metadata={"m": 1}, tool_choice="required", key="k"),
    "sample_with_tools 1 round": lambda c: c.sample_with_tools(
        "hi", [double], max_tokens=7, max_rounds=1),
    "sample_with_tools 10 rounds": lambda c: c.sample_with_tools(
        "hi", [double], max_tokens=7, max_rounds=10, metadata={}, stop_sequences=()),
    "sample_with_tools 11 rounds": lambda c: c.sample_with_tools(
        "hi", [double], max_tokens=7, max_rounds=11),
    "sample_with_tools none": lambda c: c.sample_with_tools(
        "hi", [double], max_tokens=7, tool_choice="none"),  # type: ignore[arg-type]
    "roots": lambda c: c.roots(),
    "roots key": lambda c: c.roots(key="k"),
}  # fmt: skip
_CAPABILITIES: Final = (
    *("elicitation", "elicitation.form", "elicitation.url", "sampling", "sampling.tools"),
    *("sampling.context", "roots", "tools"),
)
for _name in _CAPABILITIES:
    _CALLS[f"can {_name}"] = lambda c, name=_name: c.can(name)  # type: ignore[misc]


class _Draining(Stepping):
    """A runtime whose client reads at once."""

    async def drain(self, id: t.RequestId) -> None:
        """Wait for nothing."""


def _client(client: str, call: str, seen: list[str], *, logging: bool) -> ScriptedClient:
    version, offers, kind = client.split()
    server = Server("s", extensions={_EXTENSION: {}} if logging else None, logging=logging)
    server.add_resource("x://a", lambda: "contents", name="a")
    server.add_tool(lambda text: text * 2, name="named", description="Repeat it.")

    async def tool(context: Context) -> str:
        """Use the context."""
        try:
            value = _CALLS[call](context)
            if hasattr(value, "send"):
                value = await value
        except Exception as exc:
            data = getattr(exc, "data", None)
            details = f" {exc.code} {data}" if hasattr(exc, "code") else ""
            seen.append(f"! {type(exc).__name__}: {exc}{details}")
            raise
        seen.append(f"= {value!r}")
        return "over"

    def plain(context: Context) -> str:
        """Use the context, without waiting."""
        try:
            seen.append(f"= {_CALLS[call](context)!r}")
        except Exception as exc:
            seen.append(f"! {type(exc).__name__}: {exc}")
            raise
        return "over"

    server.add_tool(tool if kind != "plain" else plain, name="tool")
    stage = ScriptedClient(server, version, _OFFERS[offers], principal="ada")
    runtime = _Draining()
    stage.runtime = stage.service.runtime = runtime
    runtime.time_passes = False
    return stage


def _lines(client: str, call: str, *, logging: bool = True) -> Iterator[str]:
    seen: list[str] = []
    stage = _client(client, call, seen, logging=logging)
    answers = {method: iter(found) for method, found in _ANSWERS.items()}
    waiting = _send(stage)
    while waiting:
        messages, waiting = waiting, []
        for message in messages:
            shown = _shown(message)
            if not shown.endswith(_ENDS):
                yield f"  {shown}"
            if "method" in message and "id" in message:
                waiting += stage.answers(message, next(answers[message["method"]]))
            elif asked := message.get("result", {}).get("inputRequests"):
                found = {k: next(answers[each["method"]]) for k, each in asked.items()}
                state = message["result"]["requestState"]
                waiting += _send(stage, inputResponses=found, requestState=state)
    yield from (f"  {each}" for each in dict.fromkeys(seen))
    if stage.runtime.slept:
        yield f"  waits at most {stage.runtime.slept} s"
    yield from (f"  report {type(each).__name__}" for each in stage.runtime.reports)
    yield from (f"  warning {each}" for each in stage.runtime.warnings)


def _send(stage: ScriptedClient, **params: Any) -> list[Any]:
    params |= {"name": "tool"}
    meta = {**_META, "io.modelcontextprotocol/clientCapabilities": stage.offers}
    if stage.stateful:
        stage.receive(request(1, "tools/call", {**params, "_meta": _META}))
    else:
        stage.receive(stateless_request(1, "tools/call", params, **meta))
    return stage.sent_messages()


def _shown(message: dict[str, Any]) -> str:
    """Return a message without what is the same in all of them, and without signatures."""
    shown = {key: value for key, value in message.items() if key != "jsonrpc"}
    if "result" in shown:
        result = {key: value for key, value in shown["result"].items() if key != "_meta"}
        if "requestState" in result:
            result["requestState"] = result["requestState"][:9]
        shown["result"] = result
    text = json.dumps(shown, separators=(",", ":"))
    return text.replace(_META["traceparent"], "00-.-01")


def calls_of(client: str) -> str:
    """Return what each call of a client's handler sends and gets, in lines."""
    lines = []
    for call in _CALLS:
        lines += [call, *_lines(client, call)]
    lines += ["log without logging", *_lines(client, "log", logging=False)]
    lines += ["notify without extension", *_lines(client, "notify", logging=False)]
    lines += ["request without extension", *_lines(client, "request", logging=False)]
    return "\n".join(lines)


def kept_contexts() -> dict[str, str]:
    """Return what is kept, by the client."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {client: calls_of(client) for client in CLIENTS})
