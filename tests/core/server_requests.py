"""Input requests and responses for tests, and clients with some of the capabilities."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mcp_core import DIALECTS, Peer
from mcp_core import types as t
from tests.harness.jsonrpc import E

NAME_FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 2}},
    "required": ["name"],
}
NAME = t.ElicitRequest(t.ElicitParams(message="What is your name?", requested_schema=NAME_FORM))
PAGE = t.ElicitRequest(
    t.ElicitParams(message="Please log in", mode="url", url="https://example.com/login")
)
HELLO = t.SamplingMessage("user", t.TextContent("hello"))
MODEL = t.CreateMessageRequest(t.CreateMessageParams(messages=[HELLO], max_tokens=10))
ROOTS = t.ListRootsRequest()
TOOL = t.Tool(name="t", input_schema={"type": "object"})

ALICE = t.ElicitResult(action="accept", content={"name": "Alice"})
SAID = t.CreateMessageResult(role="assistant", content=t.TextContent("hi"), model="m")
FILES = t.ListRootsResult(roots=[t.Root("file:///home")])
ANSWER_TO: dict[type, Any] = {
    t.ElicitRequest: ALICE,
    t.CreateMessageRequest: SAID,
    t.ListRootsRequest: FILES,
}

EVERYTHING = t.ClientCapabilities(
    roots=t.RootsCapability(),
    sampling=t.SamplingCapability(tools={}, context={}),
    elicitation=t.ElicitationCapability(form={}, url={}),
)
NOTHING = t.ClientCapabilities()


def client(version: str = E, capabilities: t.ClientCapabilities = EVERYTHING) -> Peer:
    return Peer(DIALECTS[version], capabilities)


def offers(**members: Any) -> t.ClientCapabilities:
    return t.ClientCapabilities(**members)


ELICITS = t.ElicitationCapability
WITH_TOOLS = t.CreateMessageRequest(replace(MODEL.params, tools=[TOOL]))
WITH_CHOICE = t.CreateMessageRequest(replace(MODEL.params, tool_choice=t.ToolChoice("none")))
FORM = t.ElicitRequest(replace(NAME.params, mode="form"))


def form(**properties: Any) -> t.ElicitRequest:
    schema = {"type": "object", "properties": properties}
    return t.ElicitRequest(t.ElicitParams(message="m", requested_schema=schema))


def page(url: str) -> t.ElicitRequest:
    return t.ElicitRequest(replace(PAGE.params, url=url))


USE, USE_2 = t.ToolUseContent("1", "t", {}), t.ToolUseContent("2", "t", {})
GAVE, GAVE_2 = t.ToolResultContent("1", []), t.ToolResultContent("2", [])
TEXT = t.TextContent("x")


def dialogue(*contents: Any, first: str = "user") -> t.CreateMessageRequest:
    """Build messages with these contents, from user and assistant in turn."""
    roles: Any = ["user", "assistant"] if first == "user" else ["assistant", "user"]
    messages = [
        t.SamplingMessage(roles[place % 2], content) for place, content in enumerate(contents)
    ]
    return t.CreateMessageRequest(t.CreateMessageParams(messages=messages, max_tokens=1))


CHOICES = {"type": "string", "oneOf": [{"const": "a", "title": "A"}]}
SEVERAL = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}, "maxItems": 2}
