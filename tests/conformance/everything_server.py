"""The server for the official conformance suite (`@modelcontextprotocol/conformance`).

It has the tools, prompts and resources that the scenarios name, with the texts that they expect.
`python everything_server.py --http 127.0.0.1:8000` serves it at `http://127.0.0.1:8000/mcp`,
`--stdio` on stdin and stdout.

Rules of this file:

1. It is written like any user's server, with public names only. No code depends on the revision.
2. It has what the suite names and nothing else. The names are the suite's, so that some functions
   are called `test_...` although they test nothing.
3. One process serves all scenarios, so none may leave state behind.

`scenarios.py` has the expectations, and `test_official_suite.py` runs the suite itself. The tools
for tasks come with tasks.
"""

from __future__ import annotations

import argparse
from base64 import b64decode
from typing import Annotated, Any, Literal

import trio
from msgspec import Meta, Struct

import mcp_trio
from mcp_core.types import (
    CreateMessageParams,
    CreateMessageRequest,
    CreateMessageResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from mcp_trio import Audio, Context, File, Form, Image, McpError, ToolError

# One red pixel, and one sample of silence.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==")
STEP = 0.05  # seconds between the steps of a slow tool

server = mcp_trio.Server("everything", "1.0.0", title="Everything that the conformance suite uses")


# -- Tools that return content ---------------------------------------------------------------------


# The first tool of the list must stay callable without arguments.
@server.tool
def test_simple_text() -> str:
    """Give a text."""
    return "This is a simple text response for testing."


@server.tool
def test_image_content() -> Image:
    """Give a picture."""
    return Image(PNG)


@server.tool
def test_audio_content() -> Audio:
    """Give a sound."""
    return Audio(WAV)


@server.tool
def test_embedded_resource() -> File:
    """Give a resource with its contents."""
    return File("This is an embedded resource content.", "test://embedded-resource", "text/plain")


@server.tool
def test_multiple_content_types() -> list[str | Image | File]:
    """Give a text, a picture and a resource."""
    data = '{"test":"data","value":123}'
    return [
        "Multiple content types test:",
        Image(PNG),
        File(data, "test://mixed-content-resource", "application/json"),
    ]


@server.tool
def test_error_handling() -> str:
    """Fail with an error for the model."""
    raise ToolError("This tool intentionally returns an error for testing")


SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


@server.tool(input_schema=SCHEMA_2020_12)
def json_schema_2020_12_tool(arguments: dict[str, Any]) -> str:
    """Take what a schema of JSON Schema 2020-12 describes."""
    return f"Called with: {', '.join(arguments)}"


@server.tool
def test_x_mcp_header(
    region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})],
) -> str:
    """Take an argument that HTTP clients repeat in a header.

    Args:
        region: any text.
    """
    return f"Region: {region}"


# -- Tools that send notifications -----------------------------------------------------------------


@server.tool
async def test_tool_with_logging(context: Context) -> str:
    """Log three messages."""
    await context.log("info", "Tool execution started")
    await trio.sleep(STEP)
    await context.log("info", "Tool processing data")
    await trio.sleep(STEP)
    await context.log("info", "Tool execution completed")
    return "Tool with logging executed successfully"


@server.tool
async def test_logging_tool(context: Context) -> str:
    """Log one message, which only clients with that log level get."""
    await context.log("info", "This is a log message for testing.")
    return "Logged once."


@server.tool
async def test_tool_with_progress(context: Context) -> str:
    """Report progress three times."""
    await context.progress(0, 100)
    await trio.sleep(STEP)
    await context.progress(50, 100)
    await trio.sleep(STEP)
    await context.progress(100, 100)
    return "Tool with progress executed successfully"


@server.tool
async def test_reconnection(context: Context) -> str:
    """Close the response stream, and answer after the client has reconnected."""
    context.close_stream(retry=2 * STEP)
    await trio.sleep(3 * STEP)
    return "Reconnection test completed successfully"


@server.tool
def test_trigger_tool_change() -> str:
    """Change the list of tools, and change it back."""
    server.add_tool(lambda: "", name="test_passing_tool", description="Removed at once.")
    server.remove_tool("test_passing_tool")
    return "The list of tools has changed."


@server.tool
def test_trigger_prompt_change() -> str:
    """Change the list of prompts, and change it back."""
    server.add_prompt(lambda: "", name="test_passing_prompt", description="Removed at once.")
    server.remove_prompt("test_passing_prompt")
    return "The list of prompts has changed."


# -- Tools that request input ----------------------------------------------------------------------


@server.tool
async def test_sampling(prompt: str, context: Context) -> str:
    """Sample the client's model.

    Args:
        prompt: the message.
    """
    return f"LLM response: {(await context.sample(prompt, max_tokens=100)).text}"


@server.tool
async def test_missing_capability(context: Context) -> str:
    """Sample the client's model, which needs a capability."""
    return (await context.sample("Are you there?", max_tokens=100)).text


class Contact(Struct):
    """The user's name and address."""

    username: Annotated[str, "User's response"]
    email: Annotated[
        str, Meta(description="User's email address", extra_json_schema={"format": "email"})
    ]


@server.tool
async def test_elicitation(message: str, context: Context) -> str:
    """Ask the user for a name and an address.

    Args:
        message: the message to the user.
    """
    answer = await context.elicit(message, Contact)
    if answer.action != "accept":
        return f"User response: {answer.action}"
    return f"User response: {answer.action}, {answer.data.username} <{answer.data.email}>"


@server.tool
async def test_streaming_elicitation(context: Context) -> str:
    """Request a form, in the way of the revision."""
    answer = await context.elicit("Who are you?", Contact)
    return f"User response: {answer.action}"


class Defaults(Struct):
    """A form with defaults."""

    name: Annotated[str, "User name"] = "John Doe"
    age: Annotated[int, "User age"] = 30
    score: Annotated[float, "User score"] = 95.5
    status: Annotated[Literal["active", "inactive", "pending"], "User status"] = "active"
    verified: Annotated[bool, "Verification status"] = True


@server.tool
async def test_elicitation_sep1034_defaults(context: Context) -> str:
    """Request a form with defaults of every type."""
    answer = await context.elicit(
        "Please review and update the form fields with defaults", Defaults
    )
    return f"Elicitation completed: {answer}"


def options(name: str, *titles: str) -> list[dict[str, str]]:
    """Choices with titles."""
    return [{"const": f"{name}{n}", "title": title} for n, title in enumerate(titles, 1)]


Options = Literal["option1", "option2", "option3"]
Values = Literal["value1", "value2", "value3"]
TITLED = options("value", "First Option", "Second Option", "Third Option")


class Choices(Struct, rename="camel"):
    """A form with a choice of every kind."""

    untitled_single: Options
    titled_single: Annotated[Values, Meta(extra_json_schema={"oneOf": TITLED})]
    legacy_enum: Annotated[
        Literal["opt1", "opt2", "opt3"],
        Meta(extra_json_schema={"enumNames": ["Option One", "Option Two", "Option Three"]}),
    ]
    untitled_multi: list[Options]
    titled_multi: list[Annotated[Values, Meta(extra_json_schema={"oneOf": TITLED})]]


@server.tool
async def test_elicitation_sep1330_enums(context: Context) -> str:
    """Ask the user to choose."""
    answer = await context.elicit("Please select options from the enum fields", Choices)
    return f"Elicitation completed: {answer}"


# -- Tools that request input with explicit keys ---------------------------------------------------


class Name(Struct):
    """A name."""

    name: str


class Consent(Struct):
    """Yes or no."""

    ok: bool


class Color(Struct):
    """A color."""

    color: str


CAPITAL = "What is the capital of France?"


@server.tool
async def test_input_required_result_elicitation(context: Context) -> str:
    """Ask for a name."""
    answer = await context.elicit("What is your name?", Name, key="user_name")
    return f"Hello, {answer.data.name}!" if answer.action == "accept" else "Hello!"


@server.tool
async def test_input_required_result_sampling(context: Context) -> str:
    """Ask the model."""
    return (await context.sample(CAPITAL, max_tokens=100, key="capital_question")).text


@server.tool
async def test_input_required_result_list_roots(context: Context) -> str:
    """Ask for the roots."""
    return f"Roots: {', '.join(root.uri for root in await context.roots(key='client_roots'))}"


NAME, CONSENT = Form(Name), Form(Consent)


@server.tool
def test_input_required_result_request_state(context: Context) -> str | InputRequiredResult:
    """Return an input request with a request state."""
    answer = context.input_response("confirm", CONSENT)
    if answer is None:
        return InputRequiredResult(
            input_requests={"confirm": CONSENT.question("Please confirm")}, request_state="asked"
        )
    return "state-ok" if context.request_state == "asked" else "The state is lost."


@server.tool
def test_input_required_result_multiple_inputs(context: Context) -> str | InputRequiredResult:
    """Return three input requests at once."""
    name = context.input_response("user_name", NAME)
    greeting = context.input_response("greeting", CreateMessageResult)
    roots = context.input_response("client_roots", ListRootsResult)
    if name is None or greeting is None or roots is None:
        message = SamplingMessage("user", TextContent("Generate a greeting"))
        return InputRequiredResult(
            input_requests={
                "user_name": NAME.question("What is your name?"),
                "greeting": CreateMessageRequest(
                    CreateMessageParams(messages=[message], max_tokens=50)
                ),
                "client_roots": ListRootsRequest(),
            },
            request_state="three",
        )
    return f"{greeting.text} ({name.action}, {len(roots.roots)} roots)"


@server.tool
async def test_input_required_result_multi_round(context: Context) -> str:
    """Request input twice, one after the other."""
    first = await context.elicit("Step 1: What is your name?", Name, key="step1")
    second = await context.elicit("Step 2: What is your favorite color?", Color, key="step2")
    return f"Done: {first.action}, {second.action}."


@server.tool
async def test_input_required_result_tampered_state(context: Context) -> str:
    """Request input; a changed request state is rejected."""
    answer = await context.elicit("Please confirm", Consent, key="confirm")
    return f"Confirmed: {answer.action}"


@server.tool
async def test_input_required_result_capabilities(context: Context) -> str:
    """Request a form, or sample the model of a client without forms."""
    try:
        answer = await context.elicit("What is your name?", Name, key="user_name")
    except McpError:
        return (await context.sample("Make up a name", max_tokens=100, key="made_up_name")).text
    return f"User response: {answer.action}"


class UserContext(Struct):
    """Context for a prompt."""

    context: str


@server.prompt
async def test_input_required_result_prompt(context: Context) -> str:
    """A prompt that requests input first."""
    answer = await context.elicit(
        "What context should the prompt use?", UserContext, key="user_context"
    )
    return (
        f"Use this: {answer.data.context}" if answer.action == "accept" else "No context was given."
    )


# -- Prompts ---------------------------------------------------------------------------------------


@server.prompt
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments.

    Args:
        arg1: the first one.
        arg2: the second one.
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.completion("test_prompt_with_arguments", "arg1")
def first_arguments(typed: str) -> list[str]:
    return [value for value in ("test", "testing", "text") if value.startswith(typed)]


@server.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[File | str]:  # noqa: N803 - the suite's name
    """A prompt that shows a resource.

    Args:
        resourceUri: what to call it.
    """
    text = File("Embedded resource content for testing.", resourceUri, "text/plain")
    return [text, "Please process the embedded resource above."]


@server.prompt
def test_prompt_with_image() -> list[Image | str]:
    """A prompt that shows a picture."""
    return [Image(PNG), "Please analyze the image above."]


# -- Resources -------------------------------------------------------------------------------------


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text that stays the same."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture that stays the same."""
    return PNG


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text to subscribe to."""
    return "Watched resource content."


@server.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> dict[str, Any]:
    """The data of one id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Serve the tools, prompts and resources of the MCP conformance suite."
    )
    transports = parser.add_mutually_exclusive_group(required=True)
    transports.add_argument("--stdio", action="store_true", help="on stdin and stdout")
    transports.add_argument("--http", metavar="HOST:PORT", help="at http://HOST:PORT/mcp")
    parser.add_argument(
        "--reply", choices=["auto", "sse"], default="auto", help="sse: always respond with a stream"
    )
    found = parser.parse_args()
    if found.stdio:
        mcp_trio.run(server)
    else:
        host, _, port = found.http.rpartition(":")
        mcp_trio.run_http(server, host, int(port), reply=found.reply)


if __name__ == "__main__":
    main()
