"""`call_tool(..., returns=T)`: the data of a result as an object of the caller's type."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Annotated, Any, TypedDict, assert_type

import msgspec
import pydantic
import pytest

import mcp_asyncio_shim
import mcp_trio
from mcp_core import LATEST, ToolError
from mcp_core.registry import DeclarationError, Server
from mcp_core.runtime import TypedToolResult, UnexpectedResult
from mcp_core.runtime._typed_results import result_reader
from mcp_core.types import CallToolResult, ImageContent, TextContent
from tests.harness.jsonrpc import VERSIONS
from tests.harness.world.loop import run as run_asyncio


@dataclasses.dataclass
class Forecast:
    city: str
    degrees: float = 0.0


class Day(msgspec.Struct):
    date: dt.date


class Row(TypedDict):
    name: str


class Model(pydantic.BaseModel):
    number: int = pydantic.Field(ge=1)


FORECAST = {"city": "Oslo", "degrees": 3.5}


def result_with(data: Any) -> CallToolResult:
    return CallToolResult(content=[], structured_content=data)


def result_with_text(*texts: str, is_error: bool = False) -> CallToolResult:
    return CallToolResult(content=[TextContent(text) for text in texts], is_error=is_error)


@pytest.mark.parametrize(
    ("kind", "data", "expected"),
    [
        pytest.param(Forecast, FORECAST, Forecast("Oslo", 3.5), id="dataclass"),
        pytest.param(Day, {"date": "2026-07-28"}, Day(dt.date(2026, 7, 28)), id="struct"),
        pytest.param(Row, {"name": "Ada"}, {"name": "Ada"}, id="typed-dict"),
        pytest.param(Model, {"number": 2}, Model(number=2), id="pydantic"),
        pytest.param(dict[int, str], {"1": "one"}, {1: "one"}, id="keys-are-numbers"),
        pytest.param(list[Model], [{"number": 2}], [Model(number=2)], id="list-as-it-is"),
        pytest.param(list[Forecast], {"result": [FORECAST]}, [Forecast("Oslo", 3.5)], id="wrapped"),
        pytest.param(Forecast | None, {"result": None}, None, id="wrapped-none"),
        pytest.param(Forecast | None, FORECAST, Forecast("Oslo", 3.5), id="union-not-wrapped"),
        pytest.param(dict[str, int], {"result": 1}, {"result": 1}, id="object-with-that-name"),
        pytest.param(Annotated[int, msgspec.Meta(ge=1)], {"result": 1}, 1, id="annotated"),
        pytest.param(Annotated[int, []], 1, 1, id="metadata-without-hash"),
    ],
)
def test_reader_structured_content_gives_object(kind: Any, data: Any, expected: Any) -> None:
    typed = result_reader(kind).read("tool", result_with(data))
    assert typed.data == expected
    assert typed.structured_content == data


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        pytest.param(Forecast, '{"city": "Oslo"}', Forecast("Oslo"), id="json"),
        pytest.param(str, "Hello", "Hello", id="text"),
        pytest.param(list[int], "[1, 2]", [1, 2], id="list"),
    ],
)
def test_reader_text_only_reads_json(kind: Any, text: str, expected: Any) -> None:
    assert result_reader(kind).read("tool", result_with_text(text)).data == expected


@pytest.mark.parametrize(
    ("kind", "result", "reason"),
    [
        pytest.param(Forecast, result_with({}), "missing required field `city`", id="field"),
        pytest.param(Model, result_with({"number": 0}), "greater than or equal", id="pydantic"),
        pytest.param(int, result_with({"result": "one"}), "Expected `int`", id="wrapped"),
        pytest.param(Forecast, result_with_text("sunny"), "its text is not JSON", id="text"),
        pytest.param(
            Forecast, result_with_text("{}", "{}"), "no structured content", id="two-texts"
        ),
        pytest.param(
            Forecast,
            CallToolResult(content=[ImageContent("", "image/png")]),
            "no structured content",
            id="image",
        ),
    ],
)
def test_reader_other_data_raises_with_result_and_cause(
    kind: Any, result: CallToolResult, reason: str
) -> None:
    with pytest.raises(UnexpectedResult, match=reason) as caught:
        result_reader(kind).read("forecast", result)
    assert str(caught.value).startswith(f"the result of tool 'forecast' is no {kind.__name__}: ")
    assert caught.value.result is result
    assert isinstance(caught.value.__cause__, ValueError)


def test_reader_failed_tool_data_raises_tool_error() -> None:
    typed = result_reader(Forecast).read("forecast", result_with_text("no luck", is_error=True))
    assert typed.text == "no luck"
    with pytest.raises(ToolError, match=r"^no luck$"):
        _ = typed.data


def test_typed_result_encoded_has_no_data_member() -> None:
    typed = result_reader(Forecast).read("forecast", result_with(FORECAST))
    assert msgspec.json.decode(msgspec.json.encode(typed)) == {
        "content": [],
        "structuredContent": FORECAST,
    }


def test_reader_same_type_is_made_once() -> None:
    assert result_reader(list[int]) is result_reader(list[int])


server = Server("weather")
calls: list[str] = []


@server.tool
async def forecast(city: str) -> Forecast:
    """Forecast the weather."""
    calls.append(city)
    if not city:
        raise ToolError("which city?")
    return Forecast(city, 3.5)


@server.tool
def cities() -> list[str]:
    """List the cities."""
    return ["Oslo", "Rome"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_call_tool_returns_type_of_every_revision(version: str) -> None:
    async with mcp_trio.connect(server, versions=[version]) as client:
        result = await client.call_tool("forecast", {"city": "Oslo"}, returns=Forecast, timeout=5)
        assert_type(result, TypedToolResult[Forecast])
        assert_type(result.data, Forecast)
        assert result.data == Forecast("Oslo", 3.5)
        listed = await client.call_tool("cities", returns=list[str])
        assert_type(listed.data, list[str])
        assert listed.data == ["Oslo", "Rome"]
        optional = await client.call_tool("cities", returns=list[str] | None)
        assert optional.data == ["Oslo", "Rome"]
        assert_type(await client.call_tool("cities"), CallToolResult)


async def test_call_tool_failed_tool_has_text_and_no_data() -> None:
    async with mcp_trio.connect(server, versions=[LATEST]) as client:
        result = await client.call_tool("forecast", {"city": ""}, returns=Forecast)
        assert result.is_error
        with pytest.raises(ToolError, match="which city"):
            _ = result.data


async def test_call_tool_unreadable_type_sends_nothing() -> None:
    calls.clear()
    async with mcp_trio.connect(server, versions=[LATEST]) as client:
        with pytest.raises(DeclarationError, match="returns"):
            await client.call_tool("forecast", {"city": "Oslo"}, returns=object.__class__)
    assert calls == []


def test_call_tool_on_asyncio_returns_type() -> None:
    async def main() -> None:
        async with mcp_asyncio_shim.connect(server) as client:
            result = await client.call_tool("forecast", {"city": "Oslo"}, returns=Forecast)
            assert result.data == Forecast("Oslo", 3.5)

    run_asyncio(main())
