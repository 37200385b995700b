"""Return values of tools, in each revision."""

# No postponed annotations: return types are made inside of the rows.

import dataclasses
import enum
import itertools
import json
import typing
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import jsonschema
import msgspec
import pydantic
import pytest
from msgspec import UNSET, Raw
from typing_extensions import TypeAliasType

from mcp_core import Dialect
from mcp_core.registry import Audio, DeclarationError, File, Image
from mcp_core.registry.functions._function import MISSING, inspect_function
from mcp_core.registry.functions._output import Output, list_items
from mcp_core.registry.functions._signature import ArgumentReader, InvalidArguments
from mcp_core.types import (
    CallToolResult,
    ContentBlock,
    CreateTaskResult,
    ImageContent,
    InputRequiredResult,
    ResourceLink,
    Result,
    TextContent,
)
from tests.core.registry.lookup_helpers import EVERY_DIALECT, A, B, C, D, E


class Point(msgspec.Struct):
    x: int
    y: float = 0.0


@dataclasses.dataclass
class Data:
    when: datetime


class Typed(TypedDict):
    n: int


class Row(NamedTuple):
    a: int
    b: str


class Size(enum.Enum):
    BIG = "big"


def output(returns: Any = MISSING, given: Any = None) -> Output:
    return Output(returns, given, "function 'f'")


def sent(returns: Any, value: Any, dialect: Dialect, given: Any = None) -> Any:
    return json.loads(dialect.encode(output(returns, given).result(value, dialect)))


NOTHING = object()  # no structuredContent

# annotation, value, text, structuredContent in C and D, structuredContent in E
DATA: list[tuple[Any, Any, str, Any, Any]] = [
    (Point, Point(1), '{"x":1,"y":0.0}', {"x": 1, "y": 0.0}, {"x": 1, "y": 0.0}),
    (Point, {"x": 1}, '{"x":1}', {"x": 1}, {"x": 1}),
    (
        Data,
        Data(datetime(2026, 7, 28, tzinfo=UTC)),
        '{"when":"2026-07-28T00:00:00Z"}',
        {"when": "2026-07-28T00:00:00Z"},
        {"when": "2026-07-28T00:00:00Z"},
    ),
    (Typed, {"n": 1}, '{"n":1}', {"n": 1}, {"n": 1}),
    (dict[str, int], {"a": 1}, '{"a":1}', {"a": 1}, {"a": 1}),
    (dict, {"a": [1]}, '{"a":[1]}', {"a": [1]}, {"a": [1]}),
    (int, 3, "3", {"result": 3}, 3),
    (bool, False, "false", {"result": False}, False),
    (float, 1.5, "1.5", {"result": 1.5}, 1.5),
    (Decimal, Decimal("1.50"), "1.50", {"result": "1.50"}, "1.50"),
    (Size, Size.BIG, "big", {"result": "big"}, "big"),
    (Literal["a", "b"], "a", "a", {"result": "a"}, "a"),
    (
        datetime,
        datetime(2026, 7, 28, tzinfo=UTC),
        "2026-07-28T00:00:00Z",
        {"result": "2026-07-28T00:00:00Z"},
        "2026-07-28T00:00:00Z",
    ),
    (list[int], [1, 2], "[1,2]", {"result": [1, 2]}, [1, 2]),
    (list[str], ["a"], '["a"]', {"result": ["a"]}, ["a"]),
    (tuple[int, ...], (1,), "[1]", {"result": [1]}, [1]),
    (
        list[Point],
        [Point(1, 2.0)],
        '[{"x":1,"y":2.0}]',
        {"result": [{"x": 1, "y": 2.0}]},
        [{"x": 1, "y": 2.0}],
    ),
    (Row, Row(1, "b"), '[1,"b"]', {"result": [1, "b"]}, [1, "b"]),
    (Point | None, None, "null", {"result": None}, None),
    (Point | None, Point(1), '{"x":1,"y":0.0}', {"result": {"x": 1, "y": 0.0}}, {"x": 1, "y": 0.0}),
    (int | str, "a", "a", {"result": "a"}, "a"),
    (Annotated[int, "count"], 3, "3", {"result": 3}, 3),
    (list[bytes], [b"hi"], '["aGk="]', {"result": ["aGk="]}, ["aGk="]),
    # Without a declared type the value decides.
    (MISSING, {"a": 1}, '{"a":1}', {"a": 1}, {"a": 1}),
    (Any, 3, "3", {"result": 3}, 3),
    (list, ["a", "b"], '["a","b"]', {"result": ["a", "b"]}, ["a", "b"]),
    (list[Any], [], "[]", {"result": []}, []),
    (object, Point(1), '{"x":1,"y":0.0}', {"x": 1, "y": 0.0}, {"x": 1, "y": 0.0}),
    # Text and content are not data.
    (str, "hi", "hi", NOTHING, NOTHING),
    (str | None, "hi", "hi", NOTHING, NOTHING),
    (Optional[str], "hi", "hi", NOTHING, NOTHING),  # noqa: UP045 - the old spelling
    (MISSING, "hi", "hi", NOTHING, NOTHING),
    (str | Image, "hi", "hi", NOTHING, NOTHING),
]


@pytest.mark.requirement("TOOL-8", "TOOL-9", "TOOL-10", "TOOL-12", "TOOL-13", "DEC-8")
@pytest.mark.parametrize(("returns", "value", "text", "older", "newest"), DATA)
def test_output_data_matches_each_revision(
    returns: Any, value: Any, text: str, older: Any, newest: Any
) -> None:
    promise = output(returns)
    for dialect, structured in ((A, NOTHING), (B, NOTHING), (C, older), (D, older), (E, newest)):
        result = sent(returns, value, dialect)
        assert result["content"] == [{"type": "text", "text": text}]
        assert result.get("structuredContent", NOTHING) == structured
        schema = promise.schema(dialect)
        if schema is not None:
            jsonschema.Draft202012Validator.check_schema(schema)
            jsonschema.Draft202012Validator(schema).validate(result["structuredContent"])


@pytest.mark.requirement("TOOL-8", "TOOL-9")
def test_output_schema_matches_each_revision() -> None:
    """Output schemas came with the third revision; only the newest allows a bare integer."""
    point = {
        "title": "Point",
        "type": "object",
        "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0.0}},
        "required": ["x"],
    }
    assert [output(Point).schema(d) for d in EVERY_DIALECT] == [None, None, point, point, point]
    wrapped = {
        "type": "object",
        "properties": {"result": {"type": "integer"}},
        "required": ["result"],
    }
    assert [output(int).schema(d) for d in EVERY_DIALECT] == [
        None,
        None,
        wrapped,
        wrapped,
        {"type": "integer"},
    ]


@pytest.mark.parametrize(
    "returns",
    [
        MISSING,
        None,
        type(None),
        str,
        str | None,
        Any,
        object,
        Image,
        Audio,
        File,
        TextContent,
        ContentBlock,
        CallToolResult,
        InputRequiredResult,
        Point | CallToolResult,
        list[Image],
        list[str | Image],
        list[ContentBlock],
        list,
        list[Any],
        tuple,
        Sequence[TextContent],
        typing.NoReturn,
        str | ResourceLink | None,
        list[Image] | None,
        Annotated[str, "x"],
        int | Any,
    ],
)
def test_output_annotation_without_data_has_no_schema(returns: Any) -> None:
    assert output(returns).schema(E) is None
    assert repr(output(returns)) == "<Output promises nothing>"


def test_output_repr_shows_type() -> None:
    assert repr(output(Point)) == "<Output promises an object>"
    assert repr(output(int)) == "<Output promises a value>"


def test_output_content_has_no_structured_content() -> None:
    png = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
    for returns in (MISSING, Image, str | Image, list[str | Image]):
        assert sent(returns, Image(b"hi"), E) == {"content": [png]}
        assert sent(returns, ["a", Image(b"hi")], E) == {
            "content": [{"type": "text", "text": "a"}, png]
        }
    assert sent(None, None, E) == {"content": []}
    assert sent(MISSING, None, E) == {"content": []}
    assert sent(str | None, None, E) == {"content": []}


@pytest.mark.requirement("CONT-2", "CONT-7")
def test_output_content_unknown_to_the_revision_becomes_text() -> None:
    """Audio came with the second revision and links with the third; older clients read text."""
    link = ResourceLink(uri="x://y", name="y")
    kinds = {
        dialect.version: [
            block["type"]
            for block in sent(MISSING, [link, Audio(b"hi"), Image(b"hi")], dialect)["content"]
        ]
        for dialect in EVERY_DIALECT
    }
    assert kinds == {
        A.version: ["text", "text", "image"],
        B.version: ["text", "audio", "image"],
        C.version: ["resource_link", "audio", "image"],
        D.version: ["resource_link", "audio", "image"],
        E.version: ["resource_link", "audio", "image"],
    }


@pytest.mark.requirement("TOOL-10")
@pytest.mark.parametrize(
    ("returns", "value"),
    [
        (int, "3"),
        (int, 3.5),
        (int, None),
        (float, float("nan")),
        (Point, Point("x")),  # type: ignore[arg-type]
        (Point, {"y": 1}),
        (Point, [1]),
        (Typed, {"n": "x"}),
        (list[int], [1, "x"]),
        (dict[str, int], {"a": "b"}),
        (str, 3),
        (str, None),
        (str, Image(b"")),
        (None, 3),
        (None, "x"),
        (str | None, 3),
        (Literal["a"], "b"),
    ],
)
@pytest.mark.parametrize("dialect", EVERY_DIALECT)
def test_output_value_of_another_type_raises(returns: Any, value: Any, dialect: Dialect) -> None:
    with pytest.raises(InvalidArguments):
        output(returns).result(value, dialect)


@pytest.mark.parametrize("value", [object(), {(1, 2): 3}, [object()], b"x", {"a": object()}, 1j])
def test_output_value_without_json_raises(value: Any) -> None:
    with pytest.raises(TypeError):
        output().result(value, E)


class Opaque:
    pass


BINARY = "return Image, Audio or File"
OPAQUE = "the return value cannot be described by a JSON Schema"
A_TASK = "declare the tool with task=, and return"
NO_SCHEMA = "leave the other types out, since a CallToolResult can have content too"
Made = Annotated[CallToolResult, Point]


@pytest.mark.parametrize(
    ("returns", "error"),
    [
        (bytes, BINARY),
        (bytearray, BINARY),
        (memoryview, BINARY),
        (bytes | None, BINARY),
        (str | bytes, BINARY),
        (bytes | Image, BINARY),
        (Opaque, OPAQUE),
        (list[Opaque], OPAQUE),
        (Point | Opaque, OPAQUE),
        (CreateTaskResult, A_TASK),
        (str | CreateTaskResult, A_TASK),
        (Made | Image, NO_SCHEMA),
        (Made | CallToolResult | Image, NO_SCHEMA),
        (Made | Any, NO_SCHEMA),
        (Made | list[Any], NO_SCHEMA),
        (Annotated[CallToolResult, TypeAliasType("Lost", "Nothing")], "'Nothing' is not defined"),  # noqa: F821
    ],
)
def test_output_annotation_that_cannot_be_sent_raises(returns: Any, error: str) -> None:
    with pytest.raises(DeclarationError, match=error):
        output(returns)


@pytest.mark.parametrize(
    ("returns", "plain"),
    [
        (Made, Point),
        (Optional[Made], Point | None),  # noqa: UP045 - another class until Python 3.14
        (Made | None, Point | None),
        (Made | str, Point | str),
        (Made | InputRequiredResult, Point),
        (Annotated[Made | None, "perhaps"], Point | None),
        (Made | Annotated[CallToolResult, list[int]], Point | list[int]),
        (Made | CallToolResult, CallToolResult),
        (Optional[Annotated[CallToolResult, Any]], CallToolResult),  # noqa: UP045
        (Annotated[CallToolResult, Any] | Image, CallToolResult),
        (Made | Annotated[CallToolResult, Any], CallToolResult),
        (Annotated[CallToolResult, "a text"] | None, CallToolResult | None),
        (Annotated[CallToolResult, TypeAliasType("Points", "list[int]")], list[int]),
    ],
)
def test_output_of_a_result_with_a_model_has_the_schema_of_the_model(
    returns: Any, plain: Any
) -> None:
    for dialect in EVERY_DIALECT:
        assert output(returns).schema(dialect) == output(plain).schema(dialect)


# --- Declared schemas ---

OBJECT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
NUMBERS = {"$ref": "#/$defs/l", "$defs": {"l": {"type": "array", "items": {"type": "integer"}}}}


@pytest.mark.requirement("TOOL-8", "TOOL-9", "TOOL-10")
def test_output_declared_schema_is_listed_and_checked() -> None:
    promise = output(MISSING, OBJECT)
    assert [promise.schema(d) for d in EVERY_DIALECT] == [None, None, OBJECT, OBJECT, OBJECT]
    for dialect in (C, D, E):
        assert sent(MISSING, {"n": 1}, dialect, OBJECT)["structuredContent"] == {"n": 1}
    assert "structuredContent" not in sent(MISSING, {"n": 1}, B, OBJECT)
    with pytest.raises(InvalidArguments, match='n: "x" is not of type "integer"'):
        promise.result({"n": "x"}, E)
    with pytest.raises(InvalidArguments, match='the value: "n" is a required property'):
        promise.result({}, E)
    with pytest.raises(InvalidArguments):
        promise.result("text", E)


@pytest.mark.requirement("TOOL-8", "TOOL-9")
def test_output_declared_schema_of_an_array_is_listed_in_2026_07_28_only() -> None:
    promise = output(MISSING, NUMBERS)
    assert [promise.schema(d) for d in EVERY_DIALECT] == [None, None, None, None, NUMBERS]
    assert sent(MISSING, [1], E, NUMBERS) == {
        "content": [{"type": "text", "text": "[1]"}],
        "structuredContent": [1],
    }
    assert sent(MISSING, [1], D, NUMBERS) == {"content": [{"type": "text", "text": "[1]"}]}


def test_output_declared_schema_invalid_raises() -> None:
    with pytest.raises(DeclarationError, match="'f': output_schema: not a valid JSON Schema"):
        output(MISSING, {"type": "objekt"})


# --- Results that a tool makes itself ---


def test_output_result_of_the_tool_is_sent_unchanged() -> None:
    mine = CallToolResult(content=[TextContent("x")], is_error=True, meta={"a": 1})
    assert output().result(mine, E) is mine
    other = InputRequiredResult(request_state="s")
    assert output(Point).result(other, E) is other
    plain = Result()
    assert output().result(plain, E) is plain


def test_output_result_of_the_tool_converts_its_content() -> None:
    content: Any = ["x", Image(b"hi")]
    mine = CallToolResult(content=content)
    result = output().result(mine, E)
    assert isinstance(result, CallToolResult)
    assert result.content == [TextContent("x"), ImageContent("aGk=", "image/png")]
    assert mine.content == content
    with pytest.raises(TypeError, match="neither text nor content blocks"):
        output().result(CallToolResult(content=[3]), E)  # type: ignore[list-item]


@pytest.mark.requirement("TOOL-9", "TOOL-10")
def test_output_result_of_the_tool_checks_its_structured_content() -> None:
    """Only a successful result must fit the schema: an error may carry any data."""
    promise = output(Point)
    good = CallToolResult(content=[], structured_content=Point(1))
    assert [sent(Point, good, d).get("structuredContent") for d in EVERY_DIALECT] == [
        None,
        None,
    ] + [{"x": 1, "y": 0.0}] * 3
    with pytest.raises(InvalidArguments):
        promise.result(CallToolResult(content=[], structured_content={"x": "1"}), E)
    with pytest.raises(InvalidArguments, match="promises structured content"):
        promise.result(CallToolResult(content=[]), E)
    failed = CallToolResult(content=[], is_error=True)
    assert promise.result(failed, E) is failed
    assert sent(
        Point, CallToolResult(content=[], structured_content={"odd": 1}, is_error=True), E
    ) == {
        "content": [],
        "structuredContent": {"odd": 1},
        "isError": True,
    }
    nothing = CallToolResult(content=[], structured_content=None)
    assert [sent(MISSING, nothing, d).get("structuredContent", NOTHING) for d in EVERY_DIALECT] == [
        NOTHING, NOTHING, {"result": None}, {"result": None}, None,
    ]  # fmt: skip


def test_output_structured_content_is_encoded_once() -> None:
    result = output(Point).result(Point(1), E)
    assert isinstance(result, CallToolResult)
    assert isinstance(result.structured_content, Raw)
    assert output(str).result("x", E) == CallToolResult(
        content=[TextContent("x")], structured_content=UNSET
    )


@pytest.mark.parametrize(
    ("returns", "like"),
    [
        (Point | InputRequiredResult, Point),
        (Annotated[Point | InputRequiredResult, "described"], Point),
        (InputRequiredResult | Point | None, Optional[Point]),  # noqa: UP045
        (str | InputRequiredResult, str),
        (list[int] | InputRequiredResult, list[int]),
    ],
)
def test_output_schema_ignores_input_required_result(returns: Any, like: Any) -> None:
    for dialect in EVERY_DIALECT:
        assert output(returns).schema(dialect) == output(like).schema(dialect)
    requests = InputRequiredResult(request_state="s")
    assert output(returns).result(requests, E) is requests


def test_output_annotation_of_input_required_result_only() -> None:
    for returns in (InputRequiredResult, dict[str, InputRequiredResult]):
        assert output(returns).result(InputRequiredResult(request_state="s"), E).result_type is None


def test_output_task_returned_raises() -> None:
    with pytest.raises(TypeError, match=A_TASK):
        output().result(CreateTaskResult(task_id="1"), E)


@pytest.mark.parametrize("count", [2, 3, None])
def test_iterator_without_end_is_an_error(
    count: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its items would fill the memory. What has a length has an end."""
    monkeypatch.setattr("mcp_core.registry.functions._output._MAX_ITEMS", 2)
    items = itertools.repeat(1) if count is None else iter([1] * count)
    if count == 2:
        assert list_items(items) == [1, 1]
    else:
        with pytest.raises(ValueError, match="the iterator has more than 2 items: return fewer"):
            list_items(items)
    assert list_items({1, 2, 3}) == [1, 2, 3]


class Awaitable:
    """It has `__iter__` and `__await__`, as a future of asyncio."""

    def __iter__(self) -> Iterator[None]:
        yield

    __await__ = __iter__


@pytest.mark.parametrize("value", [[1], (1,), {"a": 1}, "ab", b"ab", 3, None, Awaitable()])
def test_value_that_is_no_iterator_is_sent_as_it_is(value: Any) -> None:
    assert list_items(value) is value


@pytest.mark.parametrize(
    ("returns", "is_iterable"),
    [
        (Iterable[int], True),
        (Annotated[Iterable[int], "x"], True),
        (Collection[int], True),
        (Iterable, True),
        (Collection, True),
        (list[int], False),
        (Sequence[int], False),
        (int, False),
        (MISSING, False),
    ],
)
def test_only_a_return_value_of_an_iterable_type_is_made_a_list(
    returns: Any, is_iterable: bool
) -> None:
    assert output(returns).is_iterable is is_iterable


class MayFail(TypedDict):
    isError: bool


def test_dictionary_with_is_error_is_data_if_the_schema_says_so() -> None:
    """Else its author means a failure, which the model would not see."""
    failed = {"isError": True}
    schema = {"type": "object", "properties": {"isError": {"type": "boolean"}}}
    for promise in (output(MayFail), output(MISSING, schema)):
        result = promise.result(failed, E)
        assert isinstance(result, CallToolResult)
        assert not result.is_error
        assert result.structured_content == Raw(b'{"isError":true}')
    for promise in (output(), output(dict[str, bool]), output(MISSING, {"type": "object"})):
        with pytest.raises(TypeError, match="raise ToolError"):
            promise.result(failed, E)
        assert isinstance(promise.result({"isError": False}, E), CallToolResult)


class Colored(pydantic.BaseModel):
    color: Literal["red"]


class Round(msgspec.Struct):
    colored: Colored


class Square(msgspec.Struct):
    side: int


@pytest.mark.parametrize(
    "returns", [Colored, list[Colored], Round, Round | Square, list[Round | Square] | None]
)
def test_error_of_a_value_that_is_not_of_its_type_does_not_repeat_it(returns: Any) -> None:
    """It is logged, where a secret must not be. An argument is the model's own."""
    secret: Any = {"color": "secret"}
    if "Round" in str(returns):
        secret = {"colored": secret}
    if "list" in str(returns):
        secret = [secret]
    with pytest.raises(InvalidArguments) as caught:
        Output(returns, None, "f").result(secret, EVERY_DIALECT[-1])
    assert "color: Input should be 'red'" in str(caught.value)
    assert "secret" not in str(caught.value)

    def f(x: Any) -> None: ...

    f.__annotations__["x"] = returns
    with pytest.raises(InvalidArguments, match=r'not .*"secret"'):
        ArgumentReader(inspect_function(f)).read(json.dumps({"x": secret}).encode())


class Tinted(pydantic.BaseModel):
    color: Literal["blue"]


def test_error_of_a_wrong_tag_does_not_repeat_it() -> None:
    """Pydantic's own text would."""
    tagged = Annotated[Colored | Tinted, pydantic.Field(discriminator="color")]
    with pytest.raises(InvalidArguments) as caught:
        Output(list[tagged], None, "f").result([{"color": "secret"}], EVERY_DIALECT[-1])
    assert str(caught.value) == "0: Input tag should be one of 'red', 'blue'"
