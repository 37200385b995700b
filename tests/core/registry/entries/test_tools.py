"""Tools: their list, and calls."""

from __future__ import annotations

import enum
from functools import partial, wraps
from typing import Annotated, Any

import msgspec
import pytest

from mcp_core import Dialect, McpError, ToolError
from mcp_core.registry import Context, DeclarationError, Server
from mcp_core.types import Icon, ToolAnnotations
from tests.core.registry.lookup_helpers import (
    EVERY_DIALECT,
    A,
    B,
    C,
    D,
    E,
    answered,
    called,
    request,
    text_of,
)


class Forecast(msgspec.Struct):
    city: str
    degrees: list[float]


@pytest.fixture
def server() -> Server:
    server = Server("weather")

    @server.tool(
        title="Forecast",
        annotations=ToolAnnotations(read_only_hint=True),
        icons=[Icon("https://example.com/i.png")],
        meta={"example.com/kind": "weather"},
    )
    def forecast(city: str, days: Annotated[int, msgspec.Meta(ge=1, le=7)] = 1) -> Forecast:
        """The weather to come.

        Args:
            city: Where.
        """
        return Forecast(city, [1.5] * days)

    @server.tool
    async def now(context: Context) -> str:
        """The weather now."""
        return f"sun, says {context.server.info.name}"

    @server.tool
    def fail(how: str) -> None:
        """Fail."""
        raise {"tool": ToolError("no"), "mcp": McpError(7, "odd"), "bug": ValueError("secret")}[how]

    return server


INPUT = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Where."},
        "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1},
    },
    "required": ["city"],
    "additionalProperties": False,
}
OUTPUT = {
    "title": "Forecast",
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "degrees": {"type": "array", "items": {"type": "number"}},
    },
    "required": ["city", "degrees"],
}
# The entry of the list in each revision, from the oldest to the newest.
IN_A: dict[str, Any] = {
    "name": "forecast",
    "description": "The weather to come.",
    "inputSchema": INPUT,
}
IN_B = {**IN_A, "annotations": {"readOnlyHint": True}}
IN_C = {
    **IN_B,
    "title": "Forecast",
    "outputSchema": OUTPUT,
    "_meta": {"example.com/kind": "weather"},
}
IN_D = {**IN_C, "icons": [{"src": "https://example.com/i.png"}]}


@pytest.mark.requirement("TOOL-2", "TOOL-6", "TOOL-7", "META-1", "META-19")
@pytest.mark.parametrize(
    ("dialect", "expected"), [(A, IN_A), (B, IN_B), (C, IN_C), (D, IN_D), (E, IN_D)]
)
def test_tools_list_in_each_revision(server: Server, dialect: Dialect, expected: Any) -> None:
    listed = answered(server, "tools/list", {}, dialect)
    assert listed["tools"][0] == expected
    assert [tool["name"] for tool in listed["tools"]] == ["forecast", "now", "fail"]
    assert listed["tools"][1]["inputSchema"] == {
        "type": "object", "properties": {}, "required": [], "additionalProperties": False,
    }  # fmt: skip


@pytest.mark.requirement("TOOL-14")
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_tools_call_returns_the_result(server: Server, dialect: Dialect) -> None:
    result = called(server, "forecast", {"city": "Oslo", "days": 2.0}, dialect)
    assert text_of(result) == '{"city":"Oslo","degrees":[1.5,1.5]}'
    assert text_of(called(server, "now", None, dialect)) == "sun, says weather"
    assert text_of(called(server, "now", {}, dialect)) == "sun, says weather"


@pytest.mark.requirement("TOOL-16", "DEC-7")
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "Missing argument `city`"),
        (None, "Missing argument `city`"),
        ({"city": "Oslo", "day": 1}, "Unknown argument `day`; the arguments are: city, days"),
        ({"city": "Oslo", "days": "3"}, "Invalid argument `days`: expected `int`, got `str`"),
        ({"city": "Oslo", "days": 8}, "Invalid argument `days`: expected `int` <= 7"),
    ],
)
def test_tools_call_invalid_arguments_in_each_revision(
    server: Server, arguments: Any, why: str
) -> None:
    for dialect in (A, B):
        assert called(server, "forecast", arguments, dialect) == {"code": -32602, "message": why}
    for dialect in (C, D, E):
        assert called(server, "forecast", arguments, dialect) == {
            "content": [{"type": "text", "text": why}],
            "isError": True,
        }


@pytest.mark.requirement("TOOL-17")
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_tools_call_malformed_request_is_invalid_params(server: Server, dialect: Dialect) -> None:
    assert called(server, "nothing", {}, dialect) == {
        "code": -32602,
        "message": "Unknown tool: nothing",
    }
    assert called(server, "Forecast", {"city": "x"}, dialect)["code"] == -32602
    assert len(called(server, "x" * 100_000, {}, dialect)["message"]) < 200
    arguments: Any
    for arguments in ([], "x", 3, False):
        assert called(server, "forecast", arguments, dialect) == {
            "code": -32602,
            "message": "arguments has to be an object",
        }


@pytest.mark.requirement("TOOL-15")
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_tools_call_exception_of_the_function(server: Server, dialect: Dialect) -> None:
    assert called(server, "fail", {"how": "tool"}, dialect) == {
        "content": [{"type": "text", "text": "no"}],
        "isError": True,
    }
    assert called(server, "fail", {"how": "mcp"}, dialect) == {"code": 7, "message": "odd"}
    bug = called(server, "fail", {"how": "bug"}, dialect)
    assert bug["isError"] is True
    assert text_of(bug) == "The tool failed with an internal error (reference ref)."


@pytest.mark.requirement("TOOL-10")
def test_tools_call_value_of_another_type_is_not_sent() -> None:
    server = Server("s")

    @server.tool
    def wrong() -> int:
        """Be wrong."""
        return "secret"  # type: ignore[return-value]

    result = called(server, "wrong")
    assert result["isError"] is True
    assert "secret" not in str(result)


# --- Declared input schemas ---

GIVEN = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "user-name": {"type": "string", "pattern": "^[a-z]+$"},
        "n": {"$ref": "#/definitions/n"},
    },
    "required": ["user-name"],
    "definitions": {"n": {"type": "integer"}},
}


def given_server() -> Server:
    server = Server("s")

    @server.tool(input_schema=GIVEN)
    def echo(arguments: dict[str, Any], context: Context) -> str:
        """Echo."""
        return repr(sorted(arguments.items()))

    @server.tool(input_schema={"type": "object"})
    def ignore() -> str:
        """Ignore the arguments."""
        return "ok"

    return server


@pytest.mark.requirement("TOOL-7", "JSCH-2")
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_tool_declared_input_schema_is_listed_unchanged(dialect: Dialect) -> None:
    tools = answered(given_server(), "tools/list", {}, dialect)["tools"]
    assert tools[0]["inputSchema"] == GIVEN
    assert tools[1]["inputSchema"] == {"type": "object"}


def test_tool_declared_input_schema_validates_the_arguments() -> None:
    """The model reads why, as a tool error; the oldest revision gets a JSON-RPC error."""
    server = given_server()
    assert (
        text_of(called(server, "echo", {"user-name": "ann", "n": 3.0}))
        == "[('n', 3.0), ('user-name', 'ann')]"
    )
    assert text_of(called(server, "ignore", {"whatever": 1})) == "ok"
    assert text_of(called(server, "ignore")) == "ok"
    for arguments, why in (
        ({"user-name": "Ann"}, 'Invalid argument `user-name`: "Ann" does not match "^[a-z]+$"'),
        ({"user-name": "ann", "n": "3"}, 'Invalid argument `n`: "3" is not of type "integer"'),
        (None, 'Invalid arguments: "user-name" is a required property'),
    ):
        result = called(server, "echo", arguments)
        assert (text_of(result), result["isError"]) == (why, True)
        assert called(server, "echo", arguments, A) == {"code": -32602, "message": why}
    assert called(server, "echo", [])["code"] == -32602


@pytest.mark.requirement("JSCH-8")
def test_tool_declared_input_schema_rejects_deep_arguments() -> None:
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    result = called(given_server(), "ignore", {"x": deep})
    assert text_of(result) == "Invalid arguments: nested more than 64 deep"


def annotated(annotation: Any) -> Any:
    def function(x): ...  # type: ignore[no-untyped-def]

    function.__annotations__ = {"x": annotation} if annotation else {}
    return function


def test_tool_declared_input_schema_needs_one_dict_parameter() -> None:
    server = Server("s")
    annotation: Any
    for index, annotation in enumerate(
        [None, Any, dict, dict[str, Any], Annotated[dict[str, int], "d"]]
    ):
        server.add_tool(
            annotated(annotation), name=f"t{index}", description="d", input_schema=GIVEN
        )
    for annotation in (str, int | dict[str, Any], msgspec.Struct):
        with pytest.raises(DeclarationError, match="takes one parameter, a dict"):
            server.add_tool(annotated(annotation), name="x", description="d", input_schema=GIVEN)
    with pytest.raises(DeclarationError, match="takes one parameter, a dict"):
        server.add_tool(lambda a, b: None, name="x", description="d", input_schema=GIVEN)


@pytest.mark.requirement("TOOL-2", "TOOL-6")
@pytest.mark.parametrize(
    "schema", [{}, {"type": "string"}, {"type": ["object"]}, {"properties": {}}]
)
def test_tool_declared_input_schema_must_describe_an_object(schema: Any) -> None:
    with pytest.raises(DeclarationError, match='has to say "type": "object"'):
        Server("s").add_tool(lambda x: None, name="x", description="d", input_schema=schema)


# --- A declared schema, and `**arguments` ---

OPEN: Any = {"type": "object", "properties": {"user-name": {"type": "string"}}}


class Service:
    async def method(self, /, context: Context, **arguments: Any) -> str:
        """Call it."""
        return f"{context.method} {arguments}"

    def named(self, operation: str, **arguments: Any) -> str:
        """Call it."""
        return f"{operation} {arguments}"


def given_keywords(function: Any, schema: Any = OPEN) -> Server:
    server = Server("s")
    server.add_tool(function, name="t", description="d", input_schema=schema)
    return server


KEYWORDS = [
    (lambda **arguments: str(arguments), {"user-name": "a", "b": [1]}),
    (lambda **arguments: str(arguments), None),
    # Positional-only parameters, and those of other calls, are no keywords.
    (partial(lambda a, /, **arguments: str(arguments), 1), {"a": 2, "call": 3, "arguments": 4}),
]


@pytest.mark.parametrize(("function", "arguments"), KEYWORDS)
def test_tool_with_declared_schema_gets_arguments_as_keywords(
    function: Any, arguments: Any
) -> None:
    assert text_of(called(given_keywords(function), "t", arguments)) == str(arguments or {})


def test_tool_with_keywords_gets_the_context_beside_them() -> None:
    result = called(given_keywords(Service().method), "t", {"self": 1})
    assert text_of(result) == "tools/call {'self': 1}"


def plain(operation: str, **arguments: Any) -> str:
    return f"{operation} {arguments}"


RESERVED = [
    (partial(Service().named, "read"), ["operation", "self"]),
    (partial(Service().named, operation="read"), ["operation", "self"]),
    (partial(wraps(plain)(lambda **arguments: str(arguments)), operation="read"), ["operation"]),
]


@pytest.mark.parametrize(("function", "names"), RESERVED)
def test_tool_with_keywords_lets_no_peer_replace_what_is_bound(
    function: Any, names: list[str]
) -> None:
    """A peer could else choose the operation, where the schema allows further properties."""
    server = given_keywords(
        partial(function, operation="read") if "self" not in names else function
    )
    for name in names:
        result = called(server, "t", {name: "delete"})
        assert (text_of(result), result["isError"]) == (f"Unknown argument `{name}`", True)
        with pytest.raises(DeclarationError, match=f"'{name}' is a property in input_schema, and"):
            given_keywords(function, {"type": "object", "properties": {name: {}}})


def test_tool_with_keywords_needs_a_schema_and_nothing_else() -> None:
    server = Server("s")
    with pytest.raises(DeclarationError, match=r"or describe them: add_tool\(function, i"):
        server.add_tool(lambda **a: None, name="x", description="d")
    with pytest.raises(DeclarationError, match=r"name each of them$"):
        server.add_tool(lambda *a: None, name="x", description="d")
    with pytest.raises(DeclarationError, match=r"name each of them$"):
        server.prompt(name="x")(lambda **a: "")
    with pytest.raises(DeclarationError, match="no other parameter than the context, and 'b' is"):
        given_keywords(lambda b, **a: None)
    with pytest.raises(DeclarationError, match="takes any number of arguments"):
        given_keywords(lambda *b, **a: None)


NO_SCHEMAS: list[Any] = [
    [],
    "object",
    {"type": "object", "properties": []},
    {"type": "object", "properties": {"a": {"type": "text"}}},
    {"type": "object", "properties": {"a": {"minimum": "1"}}},
    {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema"}}},
    {"type": "object", "properties": {"a": {"$ref": "#/components/schemas/A"}}},
    {"type": "object", "properties": {"a": {"pattern": "("}}},
    {"type": "object", "$schema": "https://example.com/other"},
    {"type": "object", "required": "a"},
]


@pytest.mark.parametrize("schema", NO_SCHEMAS)
def test_tool_with_a_schema_that_is_none_is_refused(schema: Any) -> None:
    """It is known at run time only, so the author sees it when the server starts."""
    with pytest.raises(DeclarationError):
        given_keywords(lambda **arguments: None, schema)


# --- Declarations ---


def test_tool_invalid_declaration_raises(server: Server) -> None:
    """Each refused declaration leaves the list as it was."""

    def other() -> None:
        """Other."""

    with pytest.raises(DeclarationError, match="there is a tool 'now' already: function 'now'"):
        server.add_tool(other, name="now")
    with pytest.raises(DeclarationError, match="no name of its own"):
        server.add_tool(Callable(), description="d")
    with pytest.raises(DeclarationError, match="thread=True is for a plain def"):

        @server.tool(thread=True)
        async def slow() -> None:
            """Slow."""

    assert [tool["name"] for tool in answered(server, "tools/list")["tools"]] == [
        "forecast",
        "now",
        "fail",
    ]


class Callable:
    def __call__(self, x: int) -> int:
        return x


def test_tool_name_and_description_options() -> None:
    server = Server("s")
    server.add_tool(Callable(), name="double", description="Mine.")
    assert called(server, "double", {"x": 2})["structuredContent"] == 2
    assert answered(server, "tools/list")["tools"][0]["description"] == "Mine."


class Names(str, enum.Enum):  # noqa: UP042 - published servers have such names
    DOUBLE = "double"


def test_name_that_is_an_enum_of_texts_is_the_text() -> None:
    """In error texts and logs, too, an enum would show itself otherwise."""
    server = Server("s")
    server.add_tool(Callable(), name=Names.DOUBLE, description="Mine.")
    server.add_prompt(Callable(), name=Names.DOUBLE)
    server.add_resource("x:y", lambda: "", name=Names.DOUBLE)
    assert called(server, "double", {"x": 2})["structuredContent"] == 2
    with pytest.raises(DeclarationError, match=r"^there is a tool 'double' already"):
        server.add_tool(Callable(), name=Names.DOUBLE, description="Mine.")
    assert repr([*server._prompts]) == "['double']"
    assert "<resource 'x:y'" in repr(server._resources["x:y"])
    server.remove_tool(Names.DOUBLE)


def test_tool_without_description_warns() -> None:
    server = Server("s")
    with pytest.warns(UserWarning, match="tool 'mute' has no description"):

        @server.tool
        def mute() -> None: ...

    assert "description" not in answered(server, "tools/list")["tools"][0]


def test_tool_entry_repr_shows_name(server: Server) -> None:
    assert repr(server._tools["now"]).startswith("<tool 'now': function ")
    assert request("tools/call", {"name": "x"}).params.name == "x"


# --- Arguments in headers -------------------------------------------------------------------------


def mirrored(name: str) -> msgspec.Meta:
    return msgspec.Meta(extra_json_schema={"x-mcp-header": name})


def test_tool_param_headers_of_signature_and_schema() -> None:
    """HTTP mirrors these arguments in headers: a signature and a nested schema both name them."""
    server = Server("routed")

    @server.tool
    def query(
        sql: str,
        region: Annotated[str, mirrored("Region")],
        dry: Annotated[bool, mirrored("Dry")] = False,
    ) -> None:
        """Query."""

    given = {
        "type": "object",
        "properties": {"at": {"type": "object", "properties": {"zone": ZONE}}},
    }

    @server.tool(input_schema=given)
    def place(arguments: dict[str, Any]) -> None:
        """Place."""

    @server.tool
    def plain(sql: str) -> None:
        """Nothing."""

    assert server.param_headers("query") == {("region",): "Region", ("dry",): "Dry"}
    assert server.param_headers("place") == {("at", "zone"): "Zone"}
    assert server.param_headers("plain") == {}
    assert server.param_headers("unknown") is None
    listed = answered(server, "tools/list", {}, E)["tools"]
    assert listed[0]["inputSchema"]["properties"]["region"] == {
        "type": "string",
        "x-mcp-header": "Region",
    }
    assert listed[1]["inputSchema"] == given
    server.remove_tool("query")
    assert server.param_headers("query") is None


ZONE = {"type": "string", "x-mcp-header": "Zone"}


class Place(msgspec.Struct):
    zone: Annotated[str, mirrored("Zone")]


def optional(zone: Annotated[str, mirrored("Zone")] | None = None) -> None: ...
def fraction(zone: Annotated[float, mirrored("Zone")]) -> None: ...
def spaced(zone: Annotated[str, mirrored("My Zone")]) -> None: ...
def twice(
    zone: Annotated[str, mirrored("Zone")], other: Annotated[str, mirrored("ZONE")]
) -> None: ...
def elsewhere(place: Place) -> None: ...


UNUSABLE: list[Any] = [
    (
        optional,
        "'Zone' is not on a property that is reached from the root through `properties` alone",
    ),
    (
        elsewhere,
        "'Zone' is not on a property that is reached from the root through `properties` alone",
    ),
    (fraction, "of 'zone' its type is 'number'"),
    (spaced, "'My Zone' of 'zone' cannot be part of a header's name"),
    (twice, "'ZONE' is used twice"),
]


@pytest.mark.requirement("HDR-12")
@pytest.mark.parametrize(("function", "problem"), UNUSABLE)
@pytest.mark.filterwarnings("ignore:tool .* has no description")
def test_tool_invalid_param_header_in_signature_raises(function: Any, problem: str) -> None:
    server = Server("routed")
    with pytest.raises(
        DeclarationError, match=f"function '{function.__name__}': x-mcp-header "
    ) as caught:
        server.add_tool(function)
    assert problem in str(caught.value)
    assert server.param_headers(function.__name__) is None


@pytest.mark.requirement("HDR-12")
def test_tool_invalid_param_header_in_schema_raises() -> None:
    server = Server("routed")
    given = {"type": "object", "properties": {"zones": {"type": "array", "items": ZONE}}}
    with pytest.raises(DeclarationError, match="x-mcp-header 'Zone' is not on a property"):

        @server.tool(input_schema=given)
        def place(arguments: dict[str, Any]) -> None:
            """Place."""
