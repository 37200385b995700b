"""The server scenarios of the official conformance suite (`@modelcontextprotocol/conformance`).

One function for each scenario, by the suite's name. Tools that request input are in
`scenarios_input.py`.

Rules of this file:

1. A scenario has the revisions in which the suite plays it, and checks at least what the suite
   checks. Checks of HTTP are not here.
2. It starts with an open connection and leaves nothing open, so that the next can use the same one.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final

from tests.conformance import everything_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_trio.testing import ScriptedPeer

    Scenario = Callable[[ScriptedPeer], Awaitable[None]]

D, E = "2025-11-25", "2026-07-28"
META: Final = "io.modelcontextprotocol/"
SCENARIOS: Final[dict[tuple[str, str], Scenario]] = {}
PNG, WAV = b"\x89PNG\r\n\x1a\n", b"RIFF"


def scenario(name: str, *versions: str) -> Callable[[Scenario], Scenario]:
    """Register the function that plays a scenario, in both revisions unless some are given."""

    def declare(play: Scenario) -> Scenario:
        for version in versions or (D, E):
            assert SCENARIOS.setdefault((name, version), play) is play
        return play

    return declare


def calling(tool: str, **arguments: Any) -> dict[str, Any]:
    """Return the params of `tools/call`."""
    return {"name": tool, "arguments": arguments}


async def call(peer: ScriptedPeer, tool: str, **arguments: Any) -> Any:
    """Return the result of a tool that sends nothing else."""
    return await peer.result_of("tools/call", calling(tool, **arguments))


def text_of(result: Any) -> str:
    """Return the text of a successful tool call."""
    (block,) = result["content"]
    assert not result.get("isError")
    assert block["type"] == "text"
    return str(block["text"])


def named(entries: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in entries}


def is_base64_of(data: str, magic: bytes) -> bool:
    return b64decode(data, validate=True).startswith(magic)


# -- Lists and utilities ---------------------------------------------------------------------------


@scenario("ping", D)
async def ping(peer: ScriptedPeer) -> None:
    assert await peer.result_of("ping") == {}


@scenario("logging-set-level", D)
async def set_level(peer: ScriptedPeer) -> None:
    assert await peer.result_of("logging/setLevel", {"level": "info"}) == {}


# The tools that the suite names.
TOOLS: Final = """
    test_simple_text test_image_content test_audio_content test_embedded_resource
    test_multiple_content_types test_error_handling test_tool_with_logging test_tool_with_progress
    test_sampling test_elicitation test_elicitation_sep1034_defaults test_elicitation_sep1330_enums
    json_schema_2020_12_tool test_reconnection test_missing_capability test_streaming_elicitation
    test_logging_tool test_trigger_tool_change test_trigger_prompt_change test_x_mcp_header
    test_input_required_result_elicitation test_input_required_result_sampling
    test_input_required_result_list_roots test_input_required_result_request_state
    test_input_required_result_multiple_inputs test_input_required_result_multi_round
    test_input_required_result_tampered_state test_input_required_result_capabilities
""".split()


@scenario("tools-list")
async def list_tools(peer: ScriptedPeer) -> None:
    tools = (await peer.result_of("tools/list"))["tools"]
    # Another scenario calls the first tool without arguments.
    assert tools[0]["name"] == "test_simple_text"
    assert named(tools).keys() >= set(TOOLS)
    for tool in tools:
        assert re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", tool["name"])
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
    for _ in range(2):
        assert (await peer.result_of("tools/list"))["tools"] == tools


@scenario("prompts-list")
async def list_prompts(peer: ScriptedPeer) -> None:
    prompts = named((await peer.result_of("prompts/list"))["prompts"])
    assert all(prompt["description"] for prompt in prompts.values())
    required = {
        name: [each["name"] for each in prompt.get("arguments", ()) if each["required"]]
        for name, prompt in prompts.items()
    }
    assert required.pop("review") == ["code"]  # not the suite's
    assert required == {
        "test_simple_prompt": [],
        "test_prompt_with_arguments": ["arg1", "arg2"],
        "test_prompt_with_embedded_resource": ["resourceUri"],
        "test_prompt_with_image": [],
        "test_input_required_result_prompt": [],
    }


@scenario("resources-list")
async def list_resources(peer: ScriptedPeer) -> None:
    resources = (await peer.result_of("resources/list"))["resources"]
    assert all(each["name"] and each["description"] for each in resources)
    uris = {each["uri"] for each in resources}
    assert uris == {"test://static-text", "test://static-binary", "test://watched-resource"}


@scenario("caching", E)
async def cache(peer: ScriptedPeer) -> None:
    first = (await peer.result_of("resources/list"))["resources"][0]["uri"]
    methods = (
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    )
    for method in methods:
        result = await peer.result_of(method, {"uri": first} if method == "resources/read" else {})
        assert result["resultType"] == "complete"
        assert type(result["ttlMs"]) is int
        assert result["ttlMs"] >= 0
        assert result["cacheScope"] in ("public", "private")


@scenario("completion-complete")
async def complete(peer: ScriptedPeer) -> None:
    ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    result = await peer.result_of(
        "completion/complete", {"ref": ref, "argument": {"name": "arg1", "value": "test"}}
    )
    assert result["completion"]["values"] == ["test", "testing"]


@scenario("input-required-result-unsupported-methods", E)
async def lists_request_no_input(peer: ScriptedPeer) -> None:
    for method in ("tools/list", "prompts/list"):
        assert (await peer.result_of(method))["resultType"] == "complete"


# -- Tools that return content ---------------------------------------------------------------------


@scenario("tools-call-simple-text")
async def simple_text(peer: ScriptedPeer) -> None:
    for params in ({"name": "test_simple_text"}, calling("test_simple_text")):
        result = await peer.result_of("tools/call", params)
        assert text_of(result) == "This is a simple text response for testing."


@scenario("tools-call-image")
async def image(peer: ScriptedPeer) -> None:
    (block,) = (await call(peer, "test_image_content"))["content"]
    assert (block["type"], block["mimeType"]) == ("image", "image/png")
    assert is_base64_of(block["data"], PNG)


@scenario("tools-call-audio")
async def audio(peer: ScriptedPeer) -> None:
    (block,) = (await call(peer, "test_audio_content"))["content"]
    assert (block["type"], block["mimeType"]) == ("audio", "audio/wav")
    assert is_base64_of(block["data"], WAV)


@scenario("tools-call-embedded-resource")
async def embedded_resource(peer: ScriptedPeer) -> None:
    (block,) = (await call(peer, "test_embedded_resource"))["content"]
    assert block["type"] == "resource"
    assert block["resource"] == {
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    }


@scenario("tools-call-mixed-content")
async def mixed_content(peer: ScriptedPeer) -> None:
    blocks = (await call(peer, "test_multiple_content_types"))["content"]
    assert [block["type"] for block in blocks] == ["text", "image", "resource"]
    resource = blocks[2]["resource"]
    assert (resource["uri"], resource["mimeType"]) == (
        "test://mixed-content-resource",
        "application/json",
    )
    assert json.loads(resource["text"]) == {"test": "data", "value": 123}


@scenario("tools-call-error")
async def error(peer: ScriptedPeer) -> None:
    result = await call(peer, "test_error_handling")
    assert result["isError"] is True
    assert result["content"][0] == {
        "type": "text",
        "text": "This tool intentionally returns an error for testing",
    }


@scenario("json-schema-2020-12")
async def json_schema(peer: ScriptedPeer) -> None:
    tools = named((await peer.result_of("tools/list"))["tools"])
    schema = tools["json_schema_2020_12_tool"]["inputSchema"]
    assert schema == everything_server.SCHEMA_2020_12
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$defs"]["address"]["$anchor"] == "addressDef"
    assert schema["additionalProperties"] is False
    assert schema.keys() >= {"allOf", "if", "then", "else"}
    arguments = {"name": "Ada", "contactMethod": "phone", "phone": "1815"}
    assert text_of(await call(peer, "json_schema_2020_12_tool", **arguments))
    assert (await call(peer, "json_schema_2020_12_tool", name="Ada"))["isError"]


@scenario("http-custom-header-server-validation", E)
async def header(peer: ScriptedPeer) -> None:
    tools = named((await peer.result_of("tools/list"))["tools"])
    region = tools["test_x_mcp_header"]["inputSchema"]["properties"]["region"]
    assert (region["type"], region["x-mcp-header"]) == ("string", "Region")
    for value in ("Hello", "SGVsbG8=", "=?base64?SGVsbG8="):
        assert text_of(await call(peer, "test_x_mcp_header", region=value)) == f"Region: {value}"


# -- Tools that send notifications -----------------------------------------------------------------


@scenario("tools-call-with-logging", D)
async def logging(peer: ScriptedPeer) -> None:
    assert await peer.result_of("logging/setLevel", {"level": "debug"}) == {}
    request = await peer.request("tools/call", calling("test_tool_with_logging"))
    for data in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await peer.expect("notifications/message", {"level": "info", "data": data})
    assert text_of(await peer.expect_result(request))


@scenario("server-stateless: logging", E)
async def logging_on_demand(peer: ScriptedPeer) -> None:
    assert text_of(await call(peer, "test_logging_tool"))  # and no message before
    params = calling("test_logging_tool") | {"_meta": {META + "logLevel": "debug"}}
    request = await peer.request("tools/call", params)
    await peer.expect("notifications/message", {"level": "info"})
    assert text_of(await peer.expect_result(request))


@scenario("tools-call-with-progress")
async def progress(peer: ScriptedPeer) -> None:
    params = calling("test_tool_with_progress") | {"_meta": {"progressToken": "progress-test-1"}}
    request = await peer.request("tools/call", params)
    for done in (0, 50, 100):
        expected = {"progressToken": "progress-test-1", "progress": done, "total": 100}
        await peer.expect("notifications/progress", expected)
    assert text_of(await peer.expect_result(request))


@scenario("server-sse-polling", D)
async def reconnection(peer: ScriptedPeer) -> None:
    assert text_of(await call(peer, "test_reconnection"))


LISTEN: Final = "subscriptions/listen"


async def listen(peer: ScriptedPeer, **wanted: bool) -> dict[str, Any]:
    """Subscribe, and return the `_meta` of all messages of the subscription."""
    request = await peer.request(LISTEN, {"notifications": wanted})
    meta = {META + "subscriptionId": request["id"]}
    acknowledged = await peer.expect("notifications/subscriptions/acknowledged")
    assert acknowledged["params"] == {"notifications": wanted, "_meta": meta}
    return meta


async def stop_listening(peer: ScriptedPeer, meta: dict[str, Any]) -> None:
    await peer.notify("notifications/cancelled", {"requestId": meta[META + "subscriptionId"]})


async def notifications_during(peer: ScriptedPeer, tool: str) -> list[dict[str, Any]]:
    """Return the notifications before a call's result, and before a second request's."""
    notifications = []
    for method, params in (("tools/call", calling(tool)), ("tools/list", {})):
        request = await peer.request(method, params)
        while (message := await peer.receive()).get("id") != request["id"]:
            notifications.append(message)
    return notifications


@scenario("server-stateless: tools change", E)
async def tools_change(peer: ScriptedPeer) -> None:
    before = (await peer.result_of("tools/list"))["tools"]
    meta = await listen(peer, toolsListChanged=True)
    for message in (notifications := await notifications_during(peer, "test_trigger_tool_change")):
        assert message["method"] == "notifications/tools/list_changed"
        assert message["params"]["_meta"] == meta
    assert notifications
    await stop_listening(peer, meta)
    assert (await peer.result_of("tools/list"))["tools"] == before


@scenario("server-stateless: prompts change", E)
async def prompts_change(peer: ScriptedPeer) -> None:
    before = (await peer.result_of("prompts/list"))["prompts"]
    meta = await listen(peer, promptsListChanged=True)
    assert await notifications_during(peer, "test_trigger_tool_change") == []
    for message in (
        notifications := await notifications_during(peer, "test_trigger_prompt_change")
    ):
        assert message["method"] == "notifications/prompts/list_changed"
        assert message["params"]["_meta"] == meta
    assert notifications
    await stop_listening(peer, meta)
    assert (await peer.result_of("prompts/list"))["prompts"] == before


# -- Prompts and resources -------------------------------------------------------------------------


async def prompt(peer: ScriptedPeer, name: str, **arguments: str) -> list[dict[str, Any]]:
    """Return the contents of a prompt's messages, all of role user."""
    params = {"name": name, "arguments": arguments} if arguments else {"name": name}
    messages = (await peer.result_of("prompts/get", params))["messages"]
    assert all(message["role"] == "user" for message in messages)
    return [message["content"] for message in messages]


@scenario("prompts-get-simple")
async def simple_prompt(peer: ScriptedPeer) -> None:
    assert await prompt(peer, "test_simple_prompt") == [
        {"type": "text", "text": "This is a simple prompt for testing."}
    ]


@scenario("prompts-get-with-args")
async def prompt_with_arguments(peer: ScriptedPeer) -> None:
    (content,) = await prompt(
        peer, "test_prompt_with_arguments", arg1="testValue1", arg2="testValue2"
    )
    assert content["text"] == "Prompt with arguments: arg1='testValue1', arg2='testValue2'"


@scenario("prompts-get-embedded-resource")
async def prompt_with_resource(peer: ScriptedPeer) -> None:
    uri = "test://example-resource"
    resource, text = await prompt(peer, "test_prompt_with_embedded_resource", resourceUri=uri)
    shown = {"uri": uri, "mimeType": "text/plain", "text": "Embedded resource content for testing."}
    assert resource == {"type": "resource", "resource": shown}
    assert text["type"] == "text"


@scenario("prompts-get-with-image")
async def prompt_with_image(peer: ScriptedPeer) -> None:
    picture, text = await prompt(peer, "test_prompt_with_image")
    assert (picture["type"], picture["mimeType"], text["type"]) == ("image", "image/png", "text")
    assert is_base64_of(picture["data"], PNG)


async def read(peer: ScriptedPeer, uri: str) -> dict[str, Any]:
    (contents,) = (await peer.result_of("resources/read", {"uri": uri}))["contents"]
    assert contents["uri"] == uri
    return dict(contents)


@scenario("resources-read-text")
async def read_text(peer: ScriptedPeer) -> None:
    contents = await read(peer, "test://static-text")
    assert contents["mimeType"] == "text/plain"
    assert contents["text"] == "This is the content of the static text resource."


@scenario("resources-read-binary")
async def read_binary(peer: ScriptedPeer) -> None:
    contents = await read(peer, "test://static-binary")
    assert contents["mimeType"] == "image/png"
    assert is_base64_of(contents["blob"], PNG)


@scenario("resources-templates-read")
async def read_template(peer: ScriptedPeer) -> None:
    templates = (await peer.result_of("resources/templates/list"))["resourceTemplates"]
    assert named(templates)["template_data"]["uriTemplate"] == "test://template/{id}/data"
    contents = await read(peer, "test://template/123/data")
    assert contents["mimeType"] == "application/json"
    assert json.loads(contents["text"])["id"] == "123"


@scenario("resources-subscribe", D)
async def subscribe(peer: ScriptedPeer) -> None:
    assert await peer.result_of("resources/subscribe", {"uri": "test://watched-resource"}) == {}


@scenario("resources-unsubscribe", D)
async def unsubscribe(peer: ScriptedPeer) -> None:
    assert await peer.result_of("resources/subscribe", {"uri": "test://watched-resource"}) == {}
    assert await peer.result_of("resources/unsubscribe", {"uri": "test://watched-resource"}) == {}


@scenario("sep-2164-resource-not-found", E)
async def resource_not_found(peer: ScriptedPeer) -> None:
    uri = "test://nonexistent-resource-for-conformance-testing"
    refused = await peer.expect_error(await peer.request("resources/read", {"uri": uri}), -32602)
    assert refused["data"]["uri"] == uri
