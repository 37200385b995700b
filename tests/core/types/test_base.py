"""JSON names, absent members, and `_meta`."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, get_args

import msgspec
import pytest
from msgspec import NODEFAULT, UNSET

from mcp_core import types as t
from mcp_core.types._base import Shape
from tests.core.types.json_assertions import assert_json, decode_error

if TYPE_CHECKING:
    from collections.abc import Iterator

META = "io.modelcontextprotocol"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (t.Implementation("probe", "1"), '{"name":"probe","version":"1"}'),
        (
            t.Implementation(
                "probe", "1", "Probe", "Asks", "https://example.org", [t.Icon("data:,")]
            ),
            (
                '{"name":"probe","version":"1","title":"Probe","description":"Asks",'
                '"websiteUrl":"https://example.org","icons":[{"src":"data:,"}]}'
            ),
        ),
        (
            t.Icon("data:,", "image/png", ["any"], "dark"),
            '{"src":"data:,","mimeType":"image/png","sizes":["any"],"theme":"dark"}',
        ),
        (
            t.Annotations(audience=["user"], priority=0.5, last_modified="2025-01-02"),
            '{"audience":["user"],"priority":0.5,"lastModified":"2025-01-02"}',
        ),
        (t.ErrorData(-32602, "no"), '{"code":-32602,"message":"no"}'),
        (t.ErrorData(-32602, "no", None), '{"code":-32602,"message":"no","data":null}'),
        (t.ErrorData(-32602, "no", {"a": [1]}), '{"code":-32602,"message":"no","data":{"a":[1]}}'),
        (t.PaginatedParams(), "{}"),
        (t.PaginatedParams(cursor="2"), '{"cursor":"2"}'),
        (t.EmptyResult(), "{}"),
        (t.EmptyResult(meta={}, result_type="complete"), '{"_meta":{},"resultType":"complete"}'),
        (t.CacheableResult(ttl_ms=0, cache_scope="public"), '{"ttlMs":0,"cacheScope":"public"}'),
    ],
)
def test_base_types_round_trip(value: msgspec.Struct, text: str) -> None:
    assert_json(value, text)


@pytest.mark.requirement("CAP-9")
def test_capabilities_present_member_is_support() -> None:
    read = msgspec.json.decode(
        '{"tools":{},"logging":{},"prompts":null}', type=t.ServerCapabilities
    )
    assert read.tools == t.ToolsCapability()
    assert not read.tools.list_changed
    assert read.logging == {}
    assert read.prompts is None
    assert_json(read, '{"tools":{},"logging":{}}')


def test_capabilities_keep_open_members() -> None:
    """An empty object declares a capability, so it must survive decoding and encoding."""
    assert_json(
        t.ClientCapabilities(
            roots=t.RootsCapability(list_changed=True),
            sampling=t.SamplingCapability(context={}, tools={"more": 1}),
            elicitation=t.ElicitationCapability(url={}),
            tasks=t.TasksCapability(
                list={},
                requests=t.TaskRequests(
                    sampling=t.SamplingTasks(create_message={}),
                    elicitation=t.ElicitationTasks(create={}),
                ),
            ),
            extensions={"org.example/x": {"on": True}},
            experimental={"y": {}},
        ),
        '{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{"more":1}},"elicitation":{"url":{}},'
        '"tasks":{"list":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}},'
        '"extensions":{"org.example/x":{"on":true}},"experimental":{"y":{}}}',
    )


@pytest.mark.requirement("META-14")
@pytest.mark.parametrize(
    ("meta", "text"),
    [
        (t.RequestMeta(progress_token=0), '{"progressToken":0}'),
        (t.RequestMeta(progress_token="a"), '{"progressToken":"a"}'),
        (
            t.RequestMeta(protocol_version="2026-07-28"),
            f'{{"{META}/protocolVersion":"2026-07-28"}}',
        ),
        (
            t.RequestMeta(client_capabilities=t.ClientCapabilities()),
            f'{{"{META}/clientCapabilities":{{}}}}',
        ),
        (
            t.RequestMeta(client_info=t.Implementation("a", "1")),
            f'{{"{META}/clientInfo":{{"name":"a","version":"1"}}}}',
        ),
        (t.RequestMeta(log_level="debug"), f'{{"{META}/logLevel":"debug"}}'),
        (
            t.RequestMeta(related_task=t.RelatedTaskMetadata("t")),
            f'{{"{META}/related-task":{{"taskId":"t"}}}}',
        ),
        (
            t.RequestMeta(traceparent="00-1", tracestate="a=1", baggage="b=2"),
            '{"traceparent":"00-1","tracestate":"a=1","baggage":"b=2"}',
        ),
    ],
)
def test_request_meta_is_unchanged_by_round_trip(meta: t.RequestMeta, text: str) -> None:
    assert_json(t.PingParams(meta=meta), f'{{"_meta":{text}}}')


def test_progress_token_boolean_rejected() -> None:
    assert "_meta.progressToken" in decode_error('{"_meta":{"progressToken":true}}', t.PingParams)


@pytest.mark.requirement("META-1")
@pytest.mark.parametrize(
    "type", [t.NotificationParams, t.EmptyResult, t.ListToolsResult, t.DiscoverResult]
)
def test_meta_of_results_is_kept_whole(type: type[t.Result | t.NotificationParams]) -> None:
    members = '"tools":[],"supportedVersions":[],"capabilities":{},'
    read = msgspec.json.decode(f'{{{members}"_meta":{{"a/b":{{"c":[null]}}}}}}', type=type)
    assert read.meta == {"a/b": {"c": [None]}}


def test_logging_levels_are_ordered_by_severity() -> None:
    assert get_args(t.LoggingLevel) == t.LOGGING_LEVELS
    assert t.LOGGING_LEVELS[0] == "debug"
    assert t.LOGGING_LEVELS[-1] == "emergency"


def test_types_repr_omits_defaults() -> None:
    assert repr(t.EmptyResult(result_type="complete")) == "EmptyResult(result_type='complete')"


def test_types_all_lists_every_name() -> None:
    assert sorted(t.__all__) == sorted(name for name in vars(t) if not name.startswith("_"))


# Those that are made with values in their order; all others take members by name only.
BY_POSITION = {
    *("AudioContent", "Completion", "CompletionArgument", "CreateMessageRequest", "ElicitRequest"),
    *("EmbeddedResource", "EnumOption", "ErrorData", "FormSchema", "Icon", "ImageContent"),
    *("Implementation", "ListRootsRequest", "MissingCapabilityData", "ModelHint", "PromptMessage"),
    *("PromptReference", "RelatedTaskMetadata", "ResourceTemplateReference", "Root"),
    *("SamplingMessage", "TextContent", "ToolChoice", "ToolResultContent", "ToolUseContent"),
    *("URLElicitationRequiredData", "UnsupportedVersionData"),
}


def shapes(cls: type[Shape] = Shape) -> Iterator[type[Shape]]:
    for each in cls.__subclasses__():
        if each.__module__.startswith("mcp_core."):
            yield each
        yield from shapes(each)


SHAPES = sorted(set(shapes()), key=lambda each: each.__name__)


@pytest.mark.parametrize("shape", SHAPES)
def test_member_that_is_left_out_says_nothing(shape: type[Shape]) -> None:
    """Its value is None, False or empty, so that "absent" and "as if it weren't there" are one."""
    for each in msgspec.structs.fields(shape):
        default = each.default
        if each.default_factory is not NODEFAULT:
            default = each.default_factory()
        if default is not NODEFAULT:
            assert default in (None, UNSET, False, (), [], {}, ""), each.name
            assert type(default) is not int, each.name


@pytest.mark.parametrize("shape", SHAPES)
def test_shape_takes_members_by_name_unless_their_order_is_obvious(shape: type[Shape]) -> None:
    parameters = inspect.signature(shape).parameters.values()
    by_position = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    assert bool(by_position) == (shape.__name__ in BY_POSITION)
