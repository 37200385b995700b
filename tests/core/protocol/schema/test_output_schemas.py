"""`OutputSchemas`: which schemas it keeps, and the errors that it finds in tool results."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from typing import Any

import pytest
from msgspec import UNSET

from mcp_core import InvalidToolResult
from mcp_core.protocol.schema import _output_schemas
from mcp_core.protocol.schema._json_schema import UntrustedSchema
from mcp_core.protocol.schema._output_schemas import OutputSchemas
from mcp_core.types import CallToolResult, Tool

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def tool(name: str, output: Any) -> Tool:
    return Tool(name=name, input_schema={"type": "object"}, output_schema=output)


def nothing_known(mode: str = "error") -> OutputSchemas:
    def report(problem: str, options: Any) -> None:
        options["problems"].append(problem)

    return OutputSchemas(mode, report)


def knowing(**outputs: Any) -> OutputSchemas:
    known = nothing_known()
    known.replace_all(tool(name, output) for name, output in outputs.items())
    return known


@pytest.mark.parametrize(
    ("default", "options", "raises", "reported"),
    [
        ("error", {}, True, 0),
        ("error", {"check_output": "warn"}, False, 1),
        ("error", {"check_output": "off"}, False, 0),
        ("warn", {}, False, 1),
        ("warn", {"check_output": "error"}, True, 0),
        ("off", {}, False, 0),
        ("off", {"check_output": "error"}, True, 0),
    ],
)
def test_output_schemas_check_follows_the_option_of_the_call_then_of_the_client(
    default: str, options: dict[str, Any], raises: bool, reported: int
) -> None:
    known = nothing_known(default)
    known.replace_all([tool("t", CITY)])
    problems: list[str] = []
    text = "the result of tool 't' does not fit its outputSchema: city: 1 is not of type \"string\""
    outcome: Any = pytest.raises(InvalidToolResult) if raises else nullcontext()
    with outcome as caught:
        known.check("t", given({"city": 1}), {"problems": problems, **options})
    assert problems == [text] * reported
    if raises:
        assert caught.value.problem == str(caught.value) == text
        assert pickle.loads(pickle.dumps(caught.value)).result == given({"city": 1})


def given(value: Any, *, is_error: bool | None = False) -> CallToolResult:
    return CallToolResult(content=[], structured_content=value, is_error=is_error)


@pytest.mark.requirement("TOOL-11")
@pytest.mark.parametrize(
    ("output", "value", "fault"),
    [
        (CITY, {"city": "Oslo"}, None),
        (CITY, {"city": 1}, 'does not fit its outputSchema: city: 1 is not of type "string"'),
        (CITY, {}, 'does not fit its outputSchema: "city" is a required property'),
        (CITY, UNSET, "has an outputSchema and no structuredContent"),
        (None, {"city": 1}, None),
        (None, UNSET, None),
        ({}, None, None),
        ({"type": "null"}, None, None),
        ({"type": "integer"}, None, 'does not fit its outputSchema: null is not of type "integer"'),
        ({"type": "string", "pattern": "(a+)+$"}, "a" * 64 + "b", None),
        ({"enum": [*range(2000)]}, -1, None),  # over the limit of parts
    ],
)
def test_output_schemas_find_error_in_result(output: Any, value: Any, fault: str | None) -> None:
    known = knowing(t=output)
    assert known.find_error("t", given(value)) == fault
    assert known.find_error("t", given(value)) == fault  # with the compiled schema
    assert known.find_error("another", given(value)) is None


@pytest.mark.requirement("JSCH-2", "JSCH-7")
@pytest.mark.parametrize(
    ("output", "why"),
    [
        ({"$schema": "https://example.com/mine"}, "a dialect that is not supported"),
        ({"$ref": "https://example.com/s"}, "only references within the schema"),
        ({"type": "strong"}, "not a valid JSON Schema"),
    ],
)
def test_output_schemas_invalid_schema_is_reported(output: Any, why: str) -> None:
    known = knowing(t=output)
    nothing: Any
    for nothing in ({}, UNSET):
        fault = known.find_error("t", given(nothing))
        assert fault is not None
        assert fault.startswith("cannot be checked, because its outputSchema is invalid: ")
        assert why in fault


def test_output_schemas_error_result_is_not_checked() -> None:
    known = knowing(t=CITY)
    assert known.find_error("t", given(UNSET, is_error=True)) is None
    assert known.find_error("t", given({"city": 1}, is_error=True)) is None
    assert known.find_error("t", given(UNSET, is_error=None)) is not None


def test_output_schemas_last_list_replaces_earlier() -> None:
    known = knowing(t=CITY, u=CITY)
    assert repr(known) == "<OutputSchemas of 2 tools>"
    known.replace_all([tool("t", {"type": "integer"})])
    assert known.find_error("t", given(1)) is None
    assert known.find_error("u", given(1)) is None
    known.clear()
    assert known.find_error("t", given("x")) is None
    assert repr(known) == "<OutputSchemas of 0 tools>"


def test_output_schemas_compile_lazily_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools with equal schemas share a compiled one, also across lists, until a list lacks it."""
    read: list[Any] = []

    def reading(schema: Any) -> UntrustedSchema:
        read.append(schema)
        return UntrustedSchema(schema)

    monkeypatch.setattr(_output_schemas, "UntrustedSchema", reading)
    known = knowing(t=CITY, u=CITY, v={"type": "integer"})
    assert read == []
    for name in "t", "u", "t":
        known.find_error(name, given({"city": "Oslo"}))
    assert read == [CITY]
    known.replace_all([tool("w", CITY)])
    known.find_error("w", given({"city": "Oslo"}))
    assert read == [CITY]
    known.replace_all([])
    known.replace_all([tool("t", CITY)])
    known.find_error("t", given({"city": "Oslo"}))
    assert read == [CITY, CITY]


def test_output_schemas_keep_copy_of_listed_schema() -> None:
    listed = tool("t", {"type": "integer"})
    known = nothing_known()
    known.replace_all([listed])
    assert listed.output_schema is not None
    listed.output_schema.clear()
    assert known.find_error("t", given("x")) is not None
