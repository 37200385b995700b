"""Values that JSON cannot hold, in all places: an error there, with its path."""

from __future__ import annotations

import enum
import math
from typing import Annotated, Any, Final

import pydantic
import pytest
from msgspec import UNSET, Raw

from mcp_core import McpError, PeerError, ToolError, UnencodableValue
from mcp_core.registry import Context, File, Image, Server, Tasks
from mcp_core.types import (
    Annotations,
    CallToolResult,
    CreateMessageResult,
    EmbeddedResource,
    GetPromptResult,
    PromptMessage,
    ReadResourceResult,
    ResourceContents,
    TextContent,
)
from tests.harness import either
from tests.harness.jsonrpc import D, E, text_of
from tests.harness.wire.lines import served

pytestmark = pytest.mark.usefixtures("each_driver")

NAN: Final = math.nan
HALF: Final = "caf\udce9.txt"
NO_NAN: Final = "is NaN, which JSON cannot hold"
NO_HALF: Final = "has half of a surrogate pair, '\\udce9' at character 3"
LOW: Final = Annotations(priority=2.0)
NO_PRIORITY: Final = "the priority 2.0 is not from 0 (optional) to 1 (needed)"


class Reading(pydantic.BaseModel):
    value: float
    more: Any = None


class Constants(pydantic.BaseModel, ser_json_inf_nan="constants"):
    value: Any


class Texts(pydantic.BaseModel, ser_json_inf_nan="strings"):
    value: Any


class Written(pydantic.BaseModel):
    value: float

    @pydantic.field_serializer("value", when_used="json")
    def _as_json(self, value: float) -> float | None:
        return value if math.isfinite(value) else None


class Wrapped(pydantic.BaseModel):
    value: Any

    @pydantic.model_serializer(mode="wrap")
    def _write(self, write: Any, info: pydantic.SerializationInfo) -> Any:
        return {"value": None} if info.mode == "json" else write(self)


class Blank(pydantic.BaseModel):
    value: float

    @pydantic.field_serializer("value")
    def _write(self, value: float, info: pydantic.SerializationInfo) -> float | None:
        return None if info.mode == "json" else value


class Color(enum.Enum):
    RED = "red"


class TextsOf(pydantic.BaseModel, ser_json_inf_nan="strings"):
    values: set[float] | dict[bool, float] | dict[Color, float]
    nothing: None = None


class Ratio(pydantic.BaseModel):
    nothing: None = None

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def ratio(self) -> float:
        return NAN


# By the return annotation and the value: what the log says.
TOOLS: Final[list[tuple[Any, Any, str]]] = [
    (Reading, Reading(value=NAN), f"value {NO_NAN}"),
    (Reading, Reading(value=1, more=[None, NAN]), f"more[1] {NO_NAN}"),
    (Reading, Reading(value=1, more={1: {NAN}}), f"more[1][0] {NO_NAN}"),
    (Reading, Reading(value=1, more=[2**70, NAN]), f"more[1] {NO_NAN}"),
    (set[Annotated[float, pydantic.Field()]], {NAN}, f"[0] {NO_NAN}"),
    (Ratio, Ratio(), f"ratio {NO_NAN}"),
    (Any, [Ratio()], f"[0].ratio {NO_NAN}"),
    (Constants, Constants(value=NAN), f"value {NO_NAN}"),
    (float, NAN, f"the value {NO_NAN}"),
    (float | None, -math.inf, "the value is -Infinity"),
    (dict[str, Any], {"a": [{"b": NAN}]}, f"a[0].b {NO_NAN}"),
    (dict[str, Any], {"a": 2**70, "b": [NAN]}, f"b[0] {NO_NAN}"),
    (Any, {"model": Reading(value=NAN)}, f"model.value {NO_NAN}"),
    (Any, [TextContent("a"), {"b": NAN}], f"b {NO_NAN}"),
    (Any, CallToolResult(content=[], structured_content={"a": NAN}), f"a {NO_NAN}"),
    (Any, CallToolResult(content=[], meta={"a": NAN}), f"_meta.a {NO_NAN}"),
    (Any, TextContent("a", meta={"b": NAN}), f"content[0]._meta.b {NO_NAN}"),
    (
        Any,
        EmbeddedResource(ResourceContents(uri="a:b", text="c", meta={"d": NAN})),
        f"content[0].resource._meta.d {NO_NAN}",
    ),
    (Any, Image(b"x", annotations=LOW), NO_PRIORITY),
    (Any, File("x", "a:b", annotations=Annotations(audience="user")), "the audience 'user' is not"),  # type: ignore[arg-type]
    (Any, TextContent("a", annotations=Annotations(last_modified="now")), "lastModified 'now'"),
    (str, HALF, f"content[0].text {NO_HALF}"),
    (list[str], [HALF], f"[0] {NO_HALF}"),
    (Reading, Reading(value=1, more={"a": HALF}), f"more.a {NO_HALF}"),
    (Any, {HALF: 1}, f"the name 'caf\\udce9.txt' {NO_HALF}"),
    (Any, {"isError": True, "content": []}, "raise ToolError(text), or return CallToolResult("),
    (dict[str, Any], {"isError": True}, "raise ToolError(text), or return CallToolResult("),
]


def server_of(returns: Any, value: Any) -> Server:
    """Return a server whose every function returns `value`; its tool has that annotation."""
    server = Server("bad")

    def tool() -> Any:
        """Return it."""
        return value

    tool.__annotations__["return"] = returns
    server.add_tool(tool)

    @server.prompt
    def prompt() -> Any:
        return value

    @server.resource("x:y")
    def resource() -> Any:
        return value

    return server


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(("returns", "value", "text"), TOOLS)
async def test_tool_result_that_json_cannot_hold_is_an_error(
    returns: Any, value: Any, text: str, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The model sees that the tool failed. What to change is for the author, in the log."""
    async with served(server_of(returns, value), version) as wire:
        response = await wire.ask(1, "tools/call", {"name": "tool"})
    assert response["result"]["isError"] is True
    assert text_of(response).startswith("The tool failed with an internal error (reference ")
    assert text in caplog.text


@pytest.mark.parametrize(
    ("returns", "value", "data"),
    [
        (Reading, Reading(value=1, more=[None]), {"value": 1.0, "more": [None]}),
        (Texts, Texts(value=[NAN, None, "null"]), {"value": ["NaN", None, "null"]}),
        (dict[str, Any], {"a": 2**70, "b": Raw(b"null")}, {"a": 2**70, "b": None}),
        (Any, [2**70, Blank(value=NAN)], [2**70, {"value": None}]),
        (Written, Written(value=NAN), {"value": None}),
        (Wrapped, Wrapped(value=NAN), {"value": None}),
        (Blank, Blank(value=NAN), {"value": None}),
        (
            Reading,
            Reading(value=1, more=[Blank(value=NAN)]),
            {"value": 1, "more": [{"value": None}]},
        ),
        (TextsOf, TextsOf(values={NAN}), {"values": ["NaN"], "nothing": None}),
        (TextsOf, TextsOf(values={True: NAN}), {"values": {"true": "NaN"}, "nothing": None}),
        (TextsOf, TextsOf(values={Color.RED: NAN}), {"values": {"red": "NaN"}, "nothing": None}),
        (dict[str, Any], {"NaN": None, "b": "Infinity"}, {"NaN": None, "b": "Infinity"}),
        (dict[str, Any], {"isError": False}, {"isError": False}),
        (dict[str, Any], {"a": {"isError": True}}, {"a": {"isError": True}}),
    ],
)
async def test_tool_result_with_null_is_sent_as_it_is(returns: Any, value: Any, data: Any) -> None:
    async with either.connect(server_of(returns, value)) as client:
        result = await client.call_tool("tool")
    assert result.structured_content == data


async def test_annotations_in_a_dict_are_sent_as_they_are() -> None:
    block = TextContent("a", annotations={"audience": ["user"]})  # type: ignore[arg-type]
    async with either.connect(server_of(Any, block)) as client:
        (content,) = (await client.call_tool("tool")).content
    assert content.annotations == Annotations(audience=["user"])


OTHERS: Final[list[tuple[str, dict[str, Any], Any, str]]] = [
    ("prompts/get", {"name": "prompt"}, HALF, f"messages[0].content.text {NO_HALF}"),
    ("prompts/get", {"name": "prompt"}, TextContent("a", annotations=LOW), NO_PRIORITY),
    (
        "prompts/get",
        {"name": "prompt"},
        GetPromptResult(messages=[PromptMessage("user", TextContent("a", meta={"b": NAN}))]),
        f"messages[0].content._meta.b {NO_NAN}",
    ),
    ("prompts/get", {"name": "prompt"}, Reading(value=NAN), f"value {NO_NAN}"),
    ("resources/read", {"uri": "x:y"}, HALF, f"contents[0].text {NO_HALF}"),
    ("resources/read", {"uri": "x:y"}, [1, NAN], f"[1] {NO_NAN}"),
    ("resources/read", {"uri": "x:y"}, Reading(value=NAN), f"value {NO_NAN}"),
    (
        "resources/read",
        {"uri": "x:y"},
        ReadResourceResult(contents=[ResourceContents(uri="x:y", text="", meta={"a": NAN})]),
        f"contents[0]._meta.a {NO_NAN}",
    ),
]


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(("method", "params", "value", "text"), OTHERS)
async def test_prompt_or_resource_that_json_cannot_hold_is_an_error(
    method: str,
    params: dict[str, Any],
    value: Any,
    text: str,
    version: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served(server_of(Any, value), version) as wire:
        error = (await wire.ask(1, method, params))["error"]
    assert error["message"].startswith("Internal error (reference ")
    assert text in caplog.text


async def test_result_of_middleware_that_json_cannot_hold_is_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = server_of(str, "fine")

    @server.middleware
    async def replace(context: Context, proceed: Any) -> Any:
        await proceed()
        return CallToolResult(content=[], structured_content={"a": NAN})

    async with either.connect(server) as client:
        assert (await client.call_tool("tool")).is_error
    assert f"structuredContent.a {NO_NAN}" in caplog.text


async def test_text_of_an_error_survives_with_replacement_characters() -> None:
    """Also if its data cannot be sent: the code and the text say more than a reference."""
    server = Server("failing")

    @server.tool
    def fail() -> str:
        """Fail for the model."""
        raise ToolError(f"cannot open {HALF}")

    @server.tool
    def reject() -> str:
        """Fail for the program."""
        raise McpError(7, f"no {HALF}", {"size": NAN})

    async with either.connect(server) as client:
        assert (await client.call_tool("fail")).text == "cannot open caf\ufffd.txt"
        with pytest.raises(PeerError) as caught:
            await client.call_tool("reject")
    assert (caught.value.code, caught.value.message) == (7, "no caf\ufffd.txt")
    assert caught.value.data is UNSET


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("log", f"data.size {NO_NAN}"),
        ("progress", f"message {NO_HALF}"),
        ("ask", f"message {NO_HALF}"),
        ("sample", f"metadata.a {NO_NAN}"),
    ],
)
async def test_message_of_a_handler_is_an_error_in_the_handler(
    name: str, text: str, version: str
) -> None:
    """The handler can catch it, nothing is sent, and the client gets the handler's result."""
    server = Server("sending")
    seen: list[str] = []

    @server.tool
    async def send(context: Context) -> str:
        """Send it."""
        calls = {
            "log": lambda: context.log("error", {"size": NAN}),
            "progress": lambda: context.progress(1, message=HALF),
            "ask": lambda: context.elicit(HALF, {"type": "object", "properties": {}}),
            "sample": lambda: context.sample("Hello", max_tokens=9, metadata={"a": NAN}),
        }
        try:
            await calls[name]()  # type: ignore[no-untyped-call]
        except ValueError as exc:
            seen.append(str(exc))
        return "sent"

    def ignore(*_: Any) -> None:
        raise AssertionError("it was sent")

    options: dict[str, Any] = {"on_log": ignore, "on_elicit": ignore, "on_sample": ignore}
    async with either.connect(server, versions=[version], **options) as client:
        result = await client.call_tool("send", progress=ignore)
    assert result.text == "sent"
    assert len(seen) == 1
    assert text in seen[0]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"a": NAN}, f"arguments.a {NO_NAN}"),
        ({"a": [{"b": math.inf}]}, "arguments.a[0].b is Infinity"),
        ({"a": HALF}, f"arguments.a {NO_HALF}"),
        ({HALF: 1}, f"the name 'caf\\udce9.txt' in arguments {NO_HALF}"),
    ],
)
async def test_arguments_that_json_cannot_hold_raise_value_error(
    arguments: dict[str, Any], text: str
) -> None:
    """Nothing is sent, and the connection stays usable."""
    async with either.connect(server_of(str, "fine")) as client:
        with pytest.raises(ValueError, match=r"JSON cannot|surrogate") as caught:
            await client.call_tool("tool", arguments)
        assert isinstance(caught.value, UnencodableValue)
        assert text in str(caught.value)
        for call in (
            client.call_tool("tool", meta={"a/b": NAN}),
            client.read_resource(HALF),
            client.get_prompt("prompt", {"a": HALF}),
        ):
            with pytest.raises(UnencodableValue):
                await call
        assert (await client.call_tool("tool")).text == "fine"


async def test_answer_of_a_client_that_json_cannot_hold_is_an_error() -> None:
    """A callback of the client may make one too: the call fails, instead of sending null."""
    server = Server("asking")

    @server.tool
    async def ask(context: Context) -> str:
        """Ask the model."""
        return str((await context.sample("Hello", max_tokens=9)).meta)

    async def sample(_: Any) -> CreateMessageResult:
        return CreateMessageResult(
            role="assistant", content=TextContent("hi"), model="m", meta={"a": NAN}
        )

    async with either.connect(server, on_sample=sample) as client:
        with pytest.raises((PeerError, UnencodableValue)):
            (await client.call_tool("ask")).raise_for_error()


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize("name", ["text", "meta", "error"])
async def test_task_whose_result_json_cannot_hold_fails_with_its_path(
    name: str, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A stored result goes another way than one that is sent at once."""
    server = Server("tasks", tasks=Tasks())

    @server.tool(task="optional")
    async def work() -> Any:
        """Work for some time."""
        await either.checkpoint()
        if name == "error":
            raise McpError(7, f"no {HALF}", {"size": NAN})
        return HALF if name == "text" else CallToolResult(content=[], meta={"a": NAN})

    async with either.connect(server, versions=[version], tasks=True) as client:
        task = await client.start_tool("work")
        if name == "error":
            with pytest.raises(PeerError) as caught:
                await task.result()
            assert (caught.value.code, caught.value.message) == (7, "no caf\ufffd.txt")
        else:
            assert (await task.result()).is_error
    paths = {
        "text": "content[0].text has half",
        "meta": "_meta.a is NaN",
        "error": "data.size is NaN",
    }
    assert paths[name] in caplog.text
