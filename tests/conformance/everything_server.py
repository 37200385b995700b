"""A server with one of everything: for the official conformance suite and for tests with clients.

It has the tools, prompts and resources that `@modelcontextprotocol/conformance` names, with the
texts that it expects, and more for the tests of the drivers and of other clients.
`python everything_server.py --http 127.0.0.1:8000` serves it at `http://127.0.0.1:8000/mcp`,
`--stdio` on stdin and stdout.

Rules of this file:

1. It is written like any user's server, with public names only. No code depends on the revision.
2. The names that begin with `test_` are the suite's: those functions test nothing. All other names
   are our own, and the suite leaves them alone.
3. One process serves all scenarios of the suite, so none may leave state behind. Our own `learn`,
   `forget`, `unlock`, `wait` and `hang` do.
4. A handler waits only by `sleep` and `Event` of the runtime that `everything` is given.

`scenarios.py` has the expectations, and `test_official_suite.py` runs the suite itself.
"""

from __future__ import annotations

import argparse
import os
from base64 import b64decode
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

from msgspec import Meta, Struct

from mcp_core import ALL, McpError, ToolError
from mcp_core.adapters import RedisStore, SqliteTaskStore
from mcp_core.registry import (
    Audio,
    CacheHint,
    Context,
    File,
    Form,
    Image,
    Proceed,
    Server,
    TaskOptions,
    Tasks,
    UrlElicitationRequired,
)
from mcp_core.runtime.sharing import MemoryStore
from mcp_core.types import (
    LOGGING_LEVELS,
    CreateMessageParams,
    CreateMessageRequest,
    CreateMessageResult,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    ModelHint,
    ModelPreferences,
    PromptMessage,
    RequestParams,
    SamplingMessage,
    TextContent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_core.sharing import SessionStore

# The packages that serve on each runtime.
DRIVERS = {"trio": "mcp_trio", "asyncio": "mcp_asyncio_shim"}
# One red pixel, and one sample of silence.
PNG = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQIAAAAAAA==")
STEP = 0.05  # seconds between the steps of a slow tool


def everything(
    runtime: str = "trio",
    versions: Iterable[str] = ALL,
    *,
    page_size: int = 1000,
    tasks: Tasks | None = None,
    mounted: bool = False,
    state_keys: dict[str, bytes] | None = None,
) -> Server:
    """Build the server. `runtime` is "trio" or "asyncio", on which its handlers will run.

    With `mounted` it is a pair of servers mounted in an empty one. One of the pair has middleware.
    """
    server = Server(
        "everything",
        "1.2.3",
        title="One of everything",
        instructions="Call anything.",
        versions=versions,
        page_size=page_size,
        cache=CacheHint(60, "public"),
        tasks=tasks,
        state_keys=state_keys,
    )
    library = import_module(runtime)
    one = other = server
    if mounted:
        one, other = Server("one"), Server("other")
        other.middleware(pass_on)
        server.mount(one)
        server.mount(other)
    add_content_tools(one)
    add_failing_tools(other)
    add_notifying_tools(one, library)
    add_change_tools(other)
    add_waiting_tools(one, library)
    add_form_tools(other)
    add_sampling_tools(one)
    add_url_tools(other)
    add_keyed_input_tools(one)
    add_returned_input_tools(other)
    add_task_tools(other, library)
    add_prompts(one)
    add_resources(other)
    return server


async def pass_on(context: Context, proceed: Proceed) -> object:
    return await proceed()


# -- Tools that return content ---------------------------------------------------------------------


class Weather(TypedDict):
    """The result of `weather`."""

    city: str
    celsius: float


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


def add_content_tools(server: Server) -> None:
    # The first tool of the list must stay callable without arguments.
    @server.tool
    def test_simple_text() -> str:
        """Give a text."""
        return "This is a simple text response for testing."

    @server.tool
    def weather(city: str) -> Weather:
        """The weather of a city, as data."""
        return {"city": city, "celsius": 21.5}

    @server.tool
    def echo(text: str) -> str:
        """Give the text back.

        Args:
            text: any text.
        """
        print("this must not reach the client's parser")
        return text

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
        text = "This is an embedded resource content."
        return File(text, "test://embedded-resource", "text/plain")

    @server.tool
    def test_multiple_content_types() -> list[str | Image | File]:
        """Give a text, a picture and a resource."""
        data = '{"test":"data","value":123}'
        return [
            "Multiple content types test:",
            Image(PNG),
            File(data, "test://mixed-content-resource", "application/json"),
        ]

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

    @server.tool
    def meta(context: Context) -> str:
        """Give the member `com.example/word` of the request's `_meta`."""
        return str(context.meta.get("com.example/word", "absent"))

    @server.tool
    def pid() -> int:
        """Return the process id."""
        return os.getpid()


def add_failing_tools(server: Server) -> None:
    @server.tool
    def test_error_handling() -> str:
        """Fail with an error for the model."""
        raise ToolError("This tool intentionally returns an error for testing")

    @server.tool
    def fail(how: Literal["reason", "error", "accident", "exit"]) -> str:
        """Fail: with a text for the model, a protocol error, or an exception that is a defect."""
        raise {
            "reason": ToolError("the disk is full"),
            "error": McpError(4001, "not today", {"tomorrow": True}),
            "accident": RuntimeError("a secret of the server"),
            "exit": SystemExit("a secret of the server"),
        }[how]


# -- Tools that send notifications -----------------------------------------------------------------


def add_notifying_tools(server: Server, library: Any) -> None:
    @server.tool
    async def test_tool_with_logging(context: Context) -> str:
        """Log three messages."""
        await context.log("info", "Tool execution started")
        await library.sleep(STEP)
        await context.log("info", "Tool processing data")
        await library.sleep(STEP)
        await context.log("info", "Tool execution completed")
        return "Tool with logging executed successfully"

    @server.tool
    async def test_logging_tool(context: Context) -> str:
        """Log one message, which only clients with that log level get."""
        await context.log("info", "This is a log message for testing.")
        return "Logged once."

    @server.tool
    async def log(context: Context) -> None:
        """Log on every level, the least severe first."""
        for level in LOGGING_LEVELS:
            await context.log(level, {"severity": level}, logger="our.server")

    @server.tool
    async def test_tool_with_progress(context: Context) -> str:
        """Report progress three times."""
        await context.progress(0, 100)
        await library.sleep(STEP)
        await context.progress(50, 100)
        await library.sleep(STEP)
        await context.progress(100, 100)
        return "Tool with progress executed successfully"

    @server.tool
    async def count(to: int, context: Context) -> int:
        """Count, and report each step."""
        for step in range(1, to + 1):
            await context.progress(step, to, f"step {step}")
        return to

    @server.tool(thread=True)
    def block(to: int, context: Context) -> list[int]:
        """Count in a thread, and report each step."""
        for step in range(1, to + 1):
            context.progress_nowait(step, total=to)
        return list(range(to))

    @server.tool
    async def test_reconnection(context: Context) -> str:
        """Close the response stream, and answer after the client has reconnected."""
        context.close_stream(retry=2 * STEP)
        await library.sleep(3 * STEP)
        return "Reconnection test completed successfully"


def add_change_tools(server: Server) -> None:
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

    @server.tool
    def learn(name: Annotated[str, Meta(pattern="^[A-Za-z0-9_.-]{1,128}$")]) -> None:
        """Add a tool of that name."""
        server.add_tool(lambda: "learned", name=name, description="It was learned.")

    @server.tool
    def forget(name: str) -> None:
        """Remove the tool of that name."""
        server.remove_tool(name)

    @server.tool
    def change(what: str) -> None:
        """Announce a change: `tools`, `prompts`, `resources`, or the resource with that URI."""
        if "://" in what:
            server.changed(resource=what)
        else:
            server.changed(**{what: True})  # type: ignore[arg-type]


# -- Tools that do not return ----------------------------------------------------------------------


def add_waiting_tools(server: Server, library: Any) -> None:
    # `cancelled` shows the cancellation in the handler, and not only in the client.
    ended = library.Event()

    @server.tool
    async def wait(context: Context) -> None:
        """Report the start, and never return."""
        await context.progress(0)
        try:
            await library.Event().wait()
        finally:
            ended.set()

    @server.tool
    async def hang(context: Context) -> None:
        """Request input, and never return."""
        try:
            await context.elicit("Shall I go on?", Name)
        finally:
            ended.set()

    @server.tool
    async def cancelled() -> str:
        """Return when a call of `wait` or `hang` was cancelled."""
        await ended.wait()
        return "yes"


# -- Tools that request input ----------------------------------------------------------------------


class Contact(Struct):
    """The user's name and address."""

    username: Annotated[str, "User's response"]
    email: Annotated[
        str, Meta(description="User's email address", extra_json_schema={"format": "email"})
    ]


class Defaults(Struct):
    """A form with defaults."""

    name: Annotated[str, "User name"] = "John Doe"
    age: Annotated[int, "User age"] = 30
    score: Annotated[float, "User score"] = 95.5
    status: Annotated[Literal["active", "inactive", "pending"], "User status"] = "active"
    verified: Annotated[bool, "Verification status"] = True


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


class BookedSeats(Struct):
    """The first form of `book`: bounds, and a default."""

    count: Annotated[int, Meta(ge=1, le=8, description="How many?")]
    where: Literal["aisle", "window"] = "aisle"


class Meal(TypedDict):
    """The second form of `book`: choices with titles."""

    dish: Annotated[
        Literal["a1", "a2"], Meta(extra_json_schema={"oneOf": options("a", "Soup", "Fish")})
    ]


def add_form_tools(server: Server) -> None:
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

    @server.tool
    async def test_elicitation_sep1034_defaults(context: Context) -> str:
        """Request a form with defaults of every type."""
        message = "Please review and update the form fields with defaults"
        return f"Elicitation completed: {await context.elicit(message, Defaults)}"

    @server.tool
    async def test_elicitation_sep1330_enums(context: Context) -> str:
        """Ask the user to choose."""
        answer = await context.elicit("Please select options from the enum fields", Choices)
        return f"Elicitation completed: {answer}"

    @server.tool
    async def book(flight: str, context: Context) -> str:
        """Request input twice, the second time only if needed."""
        seats = await context.elicit(f"Seats on {flight}", BookedSeats)
        if seats.action != "accept":
            return f"seats: {seats.action}"
        meal = await context.elicit("To eat", Meal)
        if meal.action != "accept":
            return f"{seats.data}, meal: {meal.action}"
        return f"{seats.data}, {meal.data}"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def add_sampling_tools(server: Server) -> None:
    @server.tool
    async def test_sampling(prompt: str, context: Context) -> str:
        """Sample the client's model, with every option.

        Args:
            prompt: the message.
        """
        sampled = await context.sample(
            prompt,
            max_tokens=100,
            system_prompt="Be brief.",
            model_preferences=ModelPreferences(hints=[ModelHint("small")], speed_priority=1.0),
            temperature=0.5,
            stop_sequences=["."],
            include_context="thisServer",  # dropped for a client that does not declare it
        )
        return f"LLM response: {sampled.text} ({sampled.model}, {sampled.stop_reason})"

    @server.tool
    async def test_missing_capability(context: Context) -> str:
        """Sample the client's model, which needs a capability."""
        return (await context.sample("Are you there?", max_tokens=100)).text

    @server.tool
    async def calculate(task: str, context: Context) -> str:
        """Let the model use a tool as often as it wants."""
        found = await context.sample_with_tools(task, [add], max_tokens=100)
        return found.text


def page_url(id: str) -> str:
    return f"https://example.com/pages?id={id}"


def add_url_tools(server: Server) -> None:
    visited: set[str] = set()

    @server.tool
    async def visit(id: str, context: Context) -> str:
        """Send the user to a page, and return whether they agreed."""
        answer = await context.elicit_url("Please log in.", page_url(id), elicitation_id=id)
        return answer.action

    @server.tool
    def locked(id: str) -> str:
        """Require a visit to a page first."""
        if id not in visited:
            raise UrlElicitationRequired("Log in first.", page_url(id), id)
        return "open"

    @server.tool
    def unlock(id: str) -> None:
        """Record that the user has visited the page."""
        visited.add(id)
        server.elicitation_complete(id)


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
NAME, CONSENT = Form(Name), Form(Consent)


def add_keyed_input_tools(server: Server) -> None:
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
        found = await context.roots(key="client_roots")
        return f"Roots: {', '.join(f'{root.name}={root.uri}' for root in found)}"

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


def add_returned_input_tools(server: Server) -> None:
    @server.tool
    def test_input_required_result_request_state(context: Context) -> str | InputRequiredResult:
        """Return an input request with a request state."""
        answer = context.input_response("confirm", CONSENT)
        if answer is None:
            confirm = CONSENT.question("Please confirm")
            return InputRequiredResult(input_requests={"confirm": confirm}, request_state="asked")
        return "state-ok" if context.request_state == "asked" else "The state is lost."

    @server.tool
    def test_input_required_result_multiple_inputs(context: Context) -> str | InputRequiredResult:
        """Return three input requests at once, one of each kind."""
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
        called = name.data.name if name.action == "accept" else name.action
        uris = ", ".join(root.uri for root in roots.roots)
        return f"{context.request_state}: {greeting.text} ({greeting.model}), {called}, {uris}"


# -- Tools that run as tasks -----------------------------------------------------------------------


class Confirmation(Struct):
    """The form of `confirm_delete`."""

    confirm: bool


class NamedConfirmation(Struct):
    """The form of `multi_input`, which asks twice."""

    name: str
    confirm: bool


def add_task_tools(server: Server, library: Any) -> None:
    @server.tool
    def greet(name: str) -> str:
        """Greet, at once."""
        return f"Hello, {name}!"

    @server.tool(task="optional")
    async def slow_compute(seconds: float = 1, label: str = "") -> str:
        """Compute for some seconds."""
        await library.sleep(seconds)
        return f"Computed {label} for {seconds:g} s"

    @server.tool(task="required")
    async def failing_job() -> str:
        """Fail after a second, with a text for the model."""
        await library.sleep(1)
        raise ToolError("The job failed.")

    @server.tool(task="optional")
    async def protocol_error_job() -> str:
        """Fail with an error of JSON-RPC."""
        await library.sleep(STEP)
        raise McpError(-32000, "The job broke.")

    @server.tool(task="optional")
    async def confirm_delete(filename: str, context: Context) -> str:
        """Ask before a file is deleted."""
        answer = await context.elicit(f"Delete {filename}?", Confirmation)
        deleted = answer.action == "accept" and answer.data.confirm
        return f"{filename} was {'deleted' if deleted else 'kept'}"

    @server.tool(task="optional")
    async def multi_input(context: Context) -> str:
        """Ask two questions side by side."""
        answers = await both(
            library,
            lambda: context.elicit("The first one?", NamedConfirmation),
            lambda: context.elicit("The second one?", NamedConfirmation),
        )
        return " and ".join(answer.action for answer in answers)

    @server.tool(task=TaskOptions(detach=None))
    async def test_tool_with_task(context: Context) -> str:
        """Ask for a name first, then become a task."""
        answer = await context.elicit(
            "What is your name?",
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            key="user_name",
        )
        await context.detach()
        name = answer.data["name"] if answer.action == "accept" else "nobody"
        return f"Hello, {name}!"


async def both(library: Any, *functions: Any) -> list[Any]:
    """Await both functions side by side, and return their results."""
    results: list[Any] = [None] * len(functions)

    async def run(index: int) -> None:
        results[index] = await functions[index]()

    if library.__name__ == "asyncio":
        await library.gather(*map(run, range(len(functions))))
    else:
        async with library.open_nursery() as nursery:
            for index in range(len(functions)):
                nursery.start_soon(run, index)
    return results


# -- Prompts ---------------------------------------------------------------------------------------


class UserContext(Struct):
    """Context for a prompt."""

    context: str


def add_prompts(server: Server) -> None:
    @server.prompt
    def review(code: str, tone: str = "kind") -> list[PromptMessage]:
        """Ask for a review.

        Args:
            code: the code.
            tone: the tone of the review.
        """
        return [
            PromptMessage(role="user", content=TextContent(f"Review this, be {tone}: {code}")),
            PromptMessage(role="assistant", content=TextContent("Gladly.")),
        ]

    @server.completion("review", "tone")
    def tones(typed: str) -> list[str]:
        return [tone for tone in ("frank", "friendly", "kind") if tone.startswith(typed)]

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

    @server.completion("test_prompt_with_arguments", "arg2")
    async def second_arguments(typed: str) -> list[str]:
        return [f"{typed}{number}" for number in range(150)]  # more than fit into a result

    @server.prompt
    def test_prompt_with_embedded_resource(
        resourceUri: Annotated[str, Meta(pattern="^[a-z]+:[!-~]*$")],  # noqa: N803 - the suite's name
    ) -> list[File | str]:
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

    @server.prompt
    async def test_input_required_result_prompt(context: Context) -> str:
        """A prompt that requests input first."""
        message = "What context should the prompt use?"
        answer = await context.elicit(message, UserContext, key="user_context")
        if answer.action != "accept":
            return "No context was given."
        return f"Use this: {answer.data.context}"


# -- Resources, and a method of our own ------------------------------------------------------------


BOOKS = {
    "austen": ["emma", "persuasion"],
    "melville": ["moby-dick"],
    "morrison": ["beloved", "jazz"],
}


class Reindex(RequestParams):
    """The params of `acme/reindex`."""

    shelf: str = "all"


def add_resources(server: Server) -> None:
    @server.resource("test://static-text", mime_type="text/plain", cache=CacheHint(5))
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

    @server.resource("book://{author}/{title}")
    def book_text(author: str, title: str) -> str:
        """A book."""
        return f"{title}, by {author}."

    @server.completion("book://{author}/{title}", "author")
    def authors(typed: str) -> list[str]:
        return [author for author in BOOKS if author.startswith(typed)]

    @server.completion("book://{author}/{title}", "title")
    def titles(typed: str, chosen: dict[str, str]) -> list[str]:
        known = BOOKS.get(chosen.get("author", ""), ())
        return [title for title in known if title.startswith(typed)]

    @server.resource("memo://{day}", mime_type="text/plain")
    async def memo(day: str, context: Context) -> str:
        """A resource that requests input."""
        answer = await context.elicit(f"Whose memo of {day}?", Name)
        return f"{answer.data.name}'s {day}" if answer.action == "accept" else day

    @server.method("acme/reindex", params=Reindex)
    async def reindex(params: Reindex) -> dict[str, str]:
        return {"shelf": params.shelf}


# -- The command -----------------------------------------------------------------------------------


def store_at(url: str | None) -> SessionStore | None:
    """Return the store of `--store`."""
    if url is None:
        return None
    return MemoryStore() if url == "memory" else RedisStore(url, name="everything")


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve one of everything.")
    transports = parser.add_mutually_exclusive_group(required=True)
    transports.add_argument("--stdio", action="store_true", help="on stdin and stdout")
    transports.add_argument("--http", metavar="HOST:PORT", help="at http://HOST:PORT/mcp")
    parser.add_argument(
        "--reply", choices=["auto", "sse"], default="auto", help="sse: always respond with a stream"
    )
    parser.add_argument(
        "--runtime", choices=DRIVERS, default="trio", help="asyncio: --http is served by uvicorn"
    )
    parser.add_argument("--revision", action="append", help="the only one; may be repeated")
    parser.add_argument("--page-size", type=int, default=1000, help="entries of one page of a list")
    parser.add_argument(
        "--mounted", action="store_true", help="as two servers that are mounted in a third one"
    )
    parser.add_argument("--tasks", metavar="FILE", help="keep the tasks in this SQLite file")
    parser.add_argument("--store", metavar="URL", help="of Redis, or `memory`: join other workers")
    given = parser.parse_args()
    server = everything(
        given.runtime,
        given.revision or ALL,
        page_size=given.page_size,
        tasks=None if given.tasks is None else Tasks(store=SqliteTaskStore(given.tasks)),
        mounted=given.mounted,
        state_keys={"a": b"k" * 32} if given.store else None,
    )
    driver = import_module(DRIVERS[given.runtime])
    if given.stdio:
        driver.run(server)
        return
    host, _, port = given.http.rpartition(":")
    if given.runtime == "trio" and given.store is None:
        driver.run_http(server, host, int(port), reply=given.reply)
    elif given.runtime == "trio":
        options = {"host": host, "port": int(port), "reply": given.reply}
        serve = partial(driver.serve_http, server, store=store_at(given.store), **options)
        import_module("trio").run(serve)
    else:
        app = driver.asgi(server, reply=given.reply, store=store_at(given.store))
        import_module("uvicorn").run(app, host=host, port=int(port), log_level="warning")


if __name__ == "__main__":
    main()
