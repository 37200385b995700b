"""Types that people declare, played on both drivers: arguments, results, and what fails."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar

import msgspec
import pydantic
import pytest
from typing_extensions import TypeAliasType

from mcp_core import PeerError
from mcp_core.registry import Context, Server
from mcp_core.types import CallToolResult, TextContent
from tests.harness import either
from tests.harness.jsonrpc import C, D, E, text_of
from tests.harness.wire.lines import served

pytestmark = pytest.mark.usefixtures("each_driver")

T = TypeVar("T")
Rows = TypeAliasType("Rows", "list[list[int]]")


class Table(msgspec.Struct):
    rows: Rows
    note: pydantic.JsonValue = None


class Cat(pydantic.BaseModel):
    lives: int


class Visit(pydantic.BaseModel):
    day: date
    guest: Cat | list[str] = []

    model_config = pydantic.ConfigDict(strict=True)


class Page(msgspec.Struct, Generic[T]):
    items: list[T]
    total: int = 0


class Folder(pydantic.BaseModel):
    name: str
    folders: list[Folder] = []


class Picky(pydantic.BaseModel):
    word: str

    @pydantic.field_validator("word")
    @classmethod
    def _check(cls, word: str) -> str:
        if word == "bug":
            raise KeyError("a bug of the author")
        if word == "exit":
            raise SystemExit(3)
        if word == "loop":
            return cls._check(word)
        return word


@dataclass
class Summary:
    text: str


def declared_server() -> Server:
    server = Server("types")

    @server.tool
    def page(numbers: Page[int]) -> Page[str]:
        """Return the numbers as texts."""
        return Page([str(number) for number in numbers.items], numbers.total)

    @server.tool
    def anything(values: dict[str, object]) -> dict[str, object]:
        """Return it."""
        return values

    @server.tool
    def folder() -> Folder:
        """Return a folder in a folder."""
        return Folder(name="a", folders=[Folder(name="b")])

    @server.tool
    def squares(numbers: Iterable[int]) -> Iterable[int]:
        """Return them one by one."""
        return (number**2 for number in numbers)

    @server.tool
    def made() -> Annotated[CallToolResult, Folder]:
        """Make the result, with a schema."""
        return CallToolResult(
            content=[TextContent("two folders")], structured_content={"name": "a"}
        )

    @server.tool
    def perhaps(found: bool) -> Optional[Annotated[CallToolResult, Folder]]:  # noqa: UP045
        """Make the result, with a schema, or none."""
        text = TextContent("a folder")
        return CallToolResult(content=[text], structured_content={"name": "a"}) if found else None

    @server.tool
    def turn(table: Table) -> Table:
        """Turn rows into columns."""
        return Table([list(column) for column in zip(*table.rows, strict=True)], table.note)

    @server.tool
    def visit(visit: Visit) -> str:
        """Visit."""
        return str(visit.day)

    @server.tool
    def wrong() -> Annotated[CallToolResult, Folder]:
        """Make a result that the schema doesn't describe."""
        return CallToolResult(content=[], structured_content={"folders": 1})

    @server.tool
    def either_way() -> Folder:
        """Make the result where the model is promised."""
        text = TextContent("a folder")
        return CallToolResult(content=[text], structured_content={"name": "b"})  # type: ignore[return-value]

    @server.tool
    def picky(words: list[Picky]) -> int:
        """Count words."""
        return len(words)

    @server.tool
    def choose(
        kind: Literal["a", "b"] = "a", day: date = date(2026, 1, 31), size: int | bool = 1
    ) -> str:
        """Choose."""
        return f"{kind} {day} {size}"

    _declare_models(server)
    return server


def _declare_models(server: Server) -> None:
    @server.prompt
    def say(word: Picky) -> str:
        return word.word

    @server.prompt
    def summary() -> Summary:
        return Summary("short")

    @server.prompt
    def model() -> list[Any]:
        return ["See:", Folder(name="a")]

    @server.resource("x:folder")
    def resource() -> Folder:
        return Folder(name="a")


@pytest.mark.parametrize(
    ("name", "arguments", "data"),
    [
        ("page", {"numbers": {"items": [1, 2], "total": 9}}, {"items": ["1", "2"], "total": 9}),
        ("anything", {"values": {"a": [None, {"b": 1.5}]}}, {"a": [None, {"b": 1.5}]}),
        ("folder", {}, {"name": "a", "folders": [{"name": "b", "folders": []}]}),
        ("squares", {"numbers": [1, 2]}, [1, 4]),
        ("made", {}, {"name": "a", "folders": []}),
        ("either_way", {}, {"name": "b", "folders": []}),
        ("turn", {"table": {"rows": [[1, 2]], "note": [{}]}}, {"rows": [[1], [2]], "note": [{}]}),
    ],
)
@pytest.mark.parametrize("version", [C, D, E])
async def test_tool_of_a_type_answers_with_data_of_its_schema(
    name: str, arguments: dict[str, Any], data: Any, version: str
) -> None:
    """The client checks each result against the schema in the list."""
    async with either.connect(declared_server(), versions=[version]) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        result = await client.call_tool(name, arguments)
    schema = tools[name].output_schema
    assert schema is not None
    if isinstance(data, dict) or version == E:
        assert result.structured_content == data
        assert schema["type"] == ("object" if isinstance(data, dict) else "array")
    else:
        assert result.structured_content == {"result": data}


@pytest.mark.parametrize("version", [C, D, E])
async def test_optional_result_of_a_declared_model_keeps_its_schema(version: str) -> None:
    async with either.connect(declared_server(), versions=[version]) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        found = [
            (await client.call_tool("perhaps", {"found": each})).structured_content
            for each in (True, False)
        ]
    schema: Any = tools["perhaps"].output_schema
    data: list[Any] = [{"name": "a", "folders": []}, None]
    assert found == (data if version == E else [{"result": each} for each in data])
    described = schema if version == E else schema["properties"]["result"]
    assert described["anyOf"] == [{"$ref": "#/$defs/Folder"}, {"type": "null"}]


async def test_result_that_a_declared_model_does_not_describe_is_an_error() -> None:
    async with either.connect(declared_server()) as client:
        assert (await client.call_tool("wrong")).is_error


async def test_model_is_a_result_of_prompts_and_resources() -> None:
    async with either.connect(declared_server()) as client:
        prompt = await client.get_prompt("summary")
        several = await client.get_prompt("model")
        contents = (await client.read_resource("x:folder")).contents
    assert [message.content.text for message in prompt.messages] == ['{"text":"short"}']
    assert [message.content.text for message in several.messages] == [
        "See:",
        '{"name":"a","folders":[]}',
    ]
    assert [(each.text, each.mime_type) for each in contents] == [
        ('{"name":"a","folders":[]}', "application/json")
    ]


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("choose", {"kind": "c"}, 'Invalid argument `kind`: "c" is not one of "a", "b"'),
        ("choose", {"kind": 3}, 'Invalid argument `kind`: 3 is not one of "a", "b"'),
        ("choose", {"day": "now"}, '`day`: "now" is not a date such as 2026-01-31'),
        ("choose", {"day": 20260131}, "`day`: 20260131 is not a date such as 2026-01-31"),
        ("visit", {"visit": {"day": 5}}, "day: Input should be a date such as 2026-01-31, not 5"),
        (
            "visit",
            {"visit": {"day": "2026-01-31", "guest": "Tom"}},
            'guest: Expected one of Cat, list[str], not "Tom" (Cat: Input should be an object; ',
        ),
        ("turn", {"table": {"rows": [1]}}, "`table.rows[0]`: expected `array`, got `int`"),
        ("choose", {"size": [1]}, "`size`: expected `bool | int`, got `array`"),
        ("page", {"numbers": {"items": ["a"]}}, "`numbers.items[0]`: expected `int`, got `str`"),
        ("squares", {"numbers": {"a": 1}}, "`numbers`: expected `array`, got `object`"),
        ("picky", {"words": [{"word": 1}]}, "`words`: 0.word: Input should be a valid string"),
        ("picky", {"words": [{"word": "loop"}]}, "nested too deeply"),
    ],
)
async def test_argument_that_does_not_fit_says_what_is_allowed(
    name: str, arguments: dict[str, Any], text: str
) -> None:
    async with either.connect(declared_server()) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert text in result.text


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"word":1}', "`word`: word: Input should be a valid string"),
        ('{"word":"loop"}', "`word`: nested too deeply"),
        ("tea", "`word`: input should be an object"),
        ('{"word":"bug"}', "Internal error (reference "),
    ],
)
async def test_argument_of_a_prompt_that_does_not_fit_its_model_says_why(
    text: str, error: str
) -> None:
    async with either.connect(declared_server()) as client:
        with pytest.raises(PeerError, match=re.escape(error)):
            await client.get_prompt("say", {"word": text})
        said = await client.get_prompt("say", {"word": '{"word":"tea"}'})
    assert said.messages[0].content.text == "tea"


@pytest.mark.parametrize("word", ["bug", "exit"])
async def test_validator_that_raises_anything_ends_its_own_call_only(
    word: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is the author's code, so the log has it, and the peer a reference."""
    async with served(declared_server(), D) as wire:
        params = {"name": "picky", "arguments": {"words": [{"word": word}]}}
        response = await wire.ask(1, "tools/call", params)
        assert "internal error (reference" in str(response).lower()
        params = {"name": "picky", "arguments": {"words": []}}
        assert text_of(await wire.ask(2, "tools/call", params)) == "0"
    assert "_check" in caplog.text


def hidden(function: Any) -> Any:
    """A decorator that hides an `async def`, as many do."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    functools.update_wrapper(wrapper, function)
    assert not inspect.iscoroutinefunction(wrapper)
    return wrapper


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("middleware", [False, True])
async def test_awaitable_of_a_plain_wrapper_is_awaited(threads: bool, middleware: bool) -> None:
    """In a worker thread, too: the loop awaits what the thread has returned."""
    server = Server("wrapped", threads=threads)

    @server.tool
    @hidden
    async def tool(name: str, context: Context) -> str:
        """Greet after a progress notification."""
        await context.progress(1)
        return f"Hello {name}"

    @server.prompt
    @hidden
    async def prompt() -> str:
        await either.checkpoint()
        return "said"

    @server.resource("x:y")
    @hidden
    async def resource() -> Any:
        async def inner() -> str:
            await either.checkpoint()
            return "read"

        return inner()

    if middleware:

        @server.middleware
        async def proceed(context: Context, call: Any) -> Any:
            return await call()

    async with either.connect(server) as client:
        assert (await client.call_tool("tool", {"name": "A"})).text == "Hello A"
        assert (await client.get_prompt("prompt")).messages[0].content.text == "said"
        assert (await client.read_resource("x:y")).contents[0].text == "read"


async def test_awaitable_that_raises_is_an_error_of_its_call() -> None:
    server = Server("wrapped")

    @server.tool
    @hidden
    async def fail() -> str:
        """Fail."""
        await either.checkpoint()
        raise KeyError("x")

    async with either.connect(server) as client:
        assert (await client.call_tool("fail")).is_error


async def test_iterable_result_that_fails_on_the_way_is_an_error() -> None:
    server = Server("iterable")

    @server.tool
    def count() -> Iterable[int]:
        """Fail at the second number."""

        def numbers() -> Iterator[int]:
            yield 1
            raise KeyError(2)

        return numbers()

    async with either.connect(server) as client:
        assert (await client.call_tool("count")).is_error


@pytest.mark.parametrize(
    ("arguments", "note"),
    [
        ({"type": "text", "text": "tea"}, "the class is the type: leave `type=` out"),
        ({"text": "tea", "_meta": {}}, "fields have names of Python: `meta=`"),
        ({"text": "tea", "topic": ""}, ""),
        ({"text": "tea", "mimeType": "text/plain"}, "fields have names of Python: `mime_type=`"),
    ],
)
async def test_field_of_another_library_is_named_in_the_log(
    arguments: dict[str, Any], note: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The official SDK's content has `type=`, and names of JSON."""
    server = Server("blocks")

    @server.tool
    async def block() -> TextContent:
        """Make a block of content."""
        return TextContent(**arguments)

    async with either.connect(server) as client:
        assert (await client.call_tool("block")).is_error
    assert "TypeError: Unexpected keyword argument" in caplog.text
    assert note in caplog.text
    assert ("mcp_core.types" in caplog.text.rpartition("TypeError: ")[2]) is bool(note)
