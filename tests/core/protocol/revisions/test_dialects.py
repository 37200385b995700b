"""The five revisions, and the encoding of values for each of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import UNSET, Raw
from msgspec.structs import asdict

from mcp_core import ALL, DIALECTS, LATEST, Fault, LocalProtocolError
from mcp_core import types as t
from mcp_core.protocol.revisions._dialects import dialects_of, negotiate, newest_common
from tests.harness.jsonrpc import (
    STATEFUL,
    VERSIONS,
    A,
    B,
    C,
    D,
    E,
)

# version, stateful, batches, null id in errors, structured content, tool argument faults,
# resultType, ping
ROWS = [
    (A, True, False, True, "none", False, "", "ping"),
    (B, True, True, True, "none", False, "", "ping"),
    (C, True, False, True, "object", True, "", "ping"),
    (D, True, False, False, "object", True, "", "ping"),
    (E, False, False, False, "any", True, "complete", "server/discover"),
]


@pytest.mark.parametrize("row", ROWS, ids=VERSIONS)
def test_dialect_rows_match_specification(row: tuple[Any, ...]) -> None:
    dialect = DIALECTS[row[0]]
    assert row == (
        dialect.version,
        dialect.stateful,
        dialect.batches,
        dialect.null_error_id,
        dialect.structured,
        dialect.tool_argument_errors_are_results,
        dialect.result_type,
        dialect.ping,
    )


def test_dialects_are_exactly_the_five_revisions() -> None:
    assert tuple(DIALECTS) == VERSIONS == tuple(row[0] for row in ROWS)
    assert (*reversed(VERSIONS),) == ALL
    assert LATEST == E


def test_dialect_repr_shows_revision() -> None:
    assert repr(DIALECTS[B]) == "<Dialect 2025-03-26>"


STANDARD = {
    "PARSE": -32700,
    "INVALID_REQUEST": -32600,
    "METHOD_NOT_FOUND": -32601,
    "INVALID_PARAMS": -32602,
    "INTERNAL": -32603,
}
OLD = {"RESOURCE_NOT_FOUND": -32002, "MISSING_CAPABILITY": -32601, "BUSY": -32000}
NEW = {"RESOURCE_NOT_FOUND": -32602, "MISSING_CAPABILITY": -32021, "BUSY": 429}
# Stateful servers use these too, in responses to stateless requests.
BOTH = {"HEADER_MISMATCH": -32020, "UNSUPPORTED_VERSION": -32022}


@pytest.mark.requirement("ERR-1", "ERR-2", "ERR-5", "ERR-6")
@pytest.mark.parametrize("version", VERSIONS)
def test_dialect_error_codes(version: str) -> None:
    dialect = DIALECTS[version]
    wanted = STANDARD | BOTH | (OLD if dialect.stateful else NEW)
    assert {fault.name: code for fault, code in dialect.codes.items()} == wanted
    with pytest.raises(TypeError):
        dialect.codes[Fault.BUSY] = 0  # type: ignore[index]


@pytest.mark.requirement("ERR-7", "ERR-8", "ERR-9", "ERR-11")
def test_dialect_codes_avoid_reserved_range() -> None:
    codes = set(DIALECTS[E].codes.values())
    assert {code for code in codes if -32099 <= code <= -32000} == {-32020, -32021, -32022}
    assert codes - set(STANDARD.values()) - {-32020, -32021, -32022} == {429}
    drafts = {-32001, -32003, -32004}
    assert not any(drafts & set(dialect.codes.values()) for dialect in DIALECTS.values())


LINK = t.ResourceLink(uri="x:y", name="n", annotations=t.Annotations(priority=1.0))
AUDIO = t.AudioContent("UklGRg==", "audio/wav")
TEXT = t.TextContent("hello", meta={"k": 1})
DEEP = t.EmbeddedResource(t.ResourceContents(uri="x:y", text="z", meta={"k": 1}))
LINK_TEXT = {"type": "text", "text": "n: x:y", "annotations": {"priority": 1.0}}
AUDIO_TEXT = {"type": "text", "text": "[audio, audio/wav]"}
LINK_ITSELF = {"type": "resource_link", "name": "n", "uri": "x:y", "annotations": {"priority": 1.0}}
AUDIO_ITSELF = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
BARE, BARE_META = (
    {"type": "text", "text": "hello"},
    {"type": "text", "text": "hello", "_meta": {"k": 1}},
)


def encoded(version: str, value: Any) -> Any:
    return json.loads(DIALECTS[version].encode(value))


CALL = t.CallToolResult(content=[TEXT, AUDIO, LINK], structured_content={"a": 1})


@pytest.mark.parametrize(
    ("version", "content", "structured"),
    [
        (A, [BARE, AUDIO_TEXT, LINK_TEXT], False),
        (B, [BARE, AUDIO_ITSELF, LINK_TEXT], False),
        (C, [BARE_META, AUDIO_ITSELF, LINK_ITSELF], True),
        (D, [BARE_META, AUDIO_ITSELF, LINK_ITSELF], True),
        (E, [BARE_META, AUDIO_ITSELF, LINK_ITSELF], True),
    ],
)
def test_fit_replaces_content_missing_in_revision(
    version: str, content: Any, structured: bool
) -> None:
    before = asdict(CALL)
    assert encoded(version, CALL) == {"content": content} | (
        {"structuredContent": {"a": 1}} if structured else {}
    )
    assert asdict(CALL) == before
    assert CALL.content == [TEXT, AUDIO, LINK]


@pytest.mark.parametrize(
    ("version", "block", "expected"),
    [
        (A, LINK, LINK_TEXT),
        (B, LINK, LINK_TEXT),
        (C, LINK, LINK_ITSELF),
        (A, AUDIO, AUDIO_TEXT),
        (B, AUDIO, AUDIO_ITSELF),
        (A, TEXT, BARE),
        (A, DEEP, {"type": "resource", "resource": {"uri": "x:y", "text": "z"}}),
        (C, DEEP, {"type": "resource", "resource": {"uri": "x:y", "text": "z", "_meta": {"k": 1}}}),
    ],
)
def test_fit_replaces_single_content_block(version: str, block: Any, expected: Any) -> None:
    """The content of a prompt message is one block, not a list."""
    result = t.GetPromptResult(messages=[t.PromptMessage(role="user", content=block)])
    assert encoded(version, result) == {"messages": [{"role": "user", "content": expected}]}
    assert result.messages[0].content is block


def test_fit_resource_link_text_uses_title() -> None:
    link = t.ResourceLink(uri="x:y", name="n", title="The file")
    assert encoded(A, t.CallToolResult(content=[link])) == {
        "content": [{"type": "text", "text": "The file: x:y"}]
    }


USE = t.ToolUseContent(id="1", name="n", input={})


@pytest.mark.parametrize("version", [A, B, C])
@pytest.mark.parametrize(
    "content", [USE, [USE], [t.ToolResultContent(tool_use_id="1", content=[])]]
)
def test_fit_value_without_substitute_raises(version: str, content: Any) -> None:
    params = t.CreateMessageParams(
        messages=[t.SamplingMessage(role="user", content=content)], max_tokens=1
    )
    with pytest.raises(LocalProtocolError, match=f"{version} cannot express Tool"):
        DIALECTS[version].encode(params)
    assert "tool" in DIALECTS[D].encode(params).decode()


@pytest.mark.parametrize("version", [C, D])
def test_fit_value_invalid_without_removed_fields_raises(version: str) -> None:
    """An elicitation by URL loses its URL in 2025-06-18, which has forms only."""
    params = t.ElicitParams(mode="url", message="m", url="https://x", elicitation_id="e")
    if DIALECTS[version].lacks(t.ElicitParams, "url"):
        with pytest.raises(
            LocalProtocolError, match=r"2025-06-18 cannot express this ElicitParams: .*form mode"
        ):
            DIALECTS[version].encode(params)
    else:
        assert encoded(version, params) == {
            "mode": "url",
            "message": "m",
            "url": "https://x",
            "elicitationId": "e",
        }


@pytest.mark.parametrize("version", VERSIONS)
def test_fit_adds_required_cache_hints(version: str) -> None:
    """2026-07-28 requires both members. "private" and 0 are safe for every result."""
    expected = (
        {"tools": []}
        if DIALECTS[version].stateful
        else {"tools": [], "ttlMs": 0, "cacheScope": "private"}
    )
    assert encoded(version, t.ListToolsResult(tools=[])) == expected


def test_fit_keeps_given_cache_hints() -> None:
    result = t.ListToolsResult(tools=[], ttl_ms=60_000, cache_scope="public")
    assert encoded(E, result) == {"tools": [], "ttlMs": 60_000, "cacheScope": "public"}
    assert encoded(D, result) == {"tools": []}


@pytest.mark.requirement("META-19")
@pytest.mark.parametrize(
    ("version", "there"),
    [
        (A, set()),
        (B, {"annotations"}),
        (C, {"annotations", "title", "outputSchema", "_meta"}),
        (D, {"annotations", "title", "outputSchema", "_meta", "icons", "execution"}),
        (E, {"annotations", "title", "outputSchema", "_meta", "icons"}),
    ],
)
def test_fit_removes_fields_missing_in_revision(version: str, there: set[str]) -> None:
    """A server sets all fields once; each client gets its revision's."""
    tool = t.Tool(
        name="n",
        title="t",
        description="d",
        input_schema={"type": "object"},
        output_schema={"type": "object"},
        annotations=t.ToolAnnotations(read_only_hint=True),
        icons=[t.Icon(src="https://x/y.png", mime_type="image/png", sizes=["48x48"], theme="dark")],
        execution=t.ToolExecution(task_support="optional"),
        meta={"k": 1},
    )
    (found,) = encoded(version, t.ListToolsResult(tools=[tool]))["tools"]
    assert found.keys() == there | {"name", "description", "inputSchema"}
    if "icons" in there:
        assert found["icons"] == [
            {"src": "https://x/y.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}
        ]


def test_fit_descends_into_dicts_and_tuples() -> None:
    dialect = DIALECTS[A]
    plain = t.TextContent("x")
    assert dialect.fit({"a": AUDIO, "b": 1}) == {"a": t.TextContent("[audio, audio/wav]"), "b": 1}
    assert dialect.fit((AUDIO, plain)) == [t.TextContent("[audio, audio/wav]"), plain]


@pytest.mark.parametrize(
    "value", [None, 1, "x", [t.TextContent("x")], (t.TextContent("x"),), Raw(b"{}"), UNSET]
)
@pytest.mark.parametrize("version", VERSIONS)
def test_fit_unchanged_value_is_not_copied(version: str, value: Any) -> None:
    assert DIALECTS[version].fit(value) is value


@pytest.mark.parametrize("version", VERSIONS)
def test_fit_unchanged_result_is_not_copied(version: str) -> None:
    result = t.CallToolResult(content=[t.TextContent("x")])
    for _ in range(2):  # computed, then cached
        assert DIALECTS[version].fit(result) is result


@pytest.mark.parametrize(
    ("version", "type", "field", "lacks"),
    [
        (A, t.Tool, "title", True),  # a gate on an ancestor
        (A, t.Tool, "name", False),
        (C, t.Tool, "title", False),
        (D, t.Tool, "execution", False),
        (E, t.Tool, "execution", True),
    ],
)
def test_dialect_lacks_gated_field(version: str, type: Any, field: str, lacks: bool) -> None:
    assert DIALECTS[version].lacks(type, field) is lacks


@pytest.mark.parametrize("versions", [ALL, VERSIONS, (D, A, E), iter((B,))])
def test_known_versions_are_sorted_newest_first(versions: Any) -> None:
    wanted = set(versions := list(versions))
    assert [dialect.version for dialect in dialects_of(versions)] == [
        version for version in ALL if version in wanted
    ]


@pytest.mark.requirement("VER-19")
@pytest.mark.parametrize(
    ("versions", "words"),
    [
        ((), "at least one"),
        (("2025-12-31",), "not a revision of MCP: 2025-12-31"),
        ((D, "DRAFT", "2024-10-07"), "2024-10-07, DRAFT"),
    ],
)
def test_known_unknown_or_empty_versions_raise(versions: tuple[str, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        dialects_of(versions)


@pytest.mark.parametrize(
    ("spoken", "offered", "expected"),
    [
        (ALL, [A, C], C),
        (ALL, [], None),
        (ALL, ["2030-01-01", "zzz"], None),
        ([A, B], [E, D], None),
        (ALL, iter([B]), B),
    ],
)
def test_best_returns_first_spoken_that_is_offered(
    spoken: Any, offered: Any, expected: str | None
) -> None:
    found = newest_common([DIALECTS[version] for version in spoken], offered)
    assert (found.version if found is not None else None) == expected


@pytest.mark.requirement("LIFE-4")
@pytest.mark.parametrize(
    ("requested", "served", "answered"),
    [
        *((version, STATEFUL, version) for version in STATEFUL),
        (E, STATEFUL, D),  # it has no handshake
        ("1.0", STATEFUL, D),
        ("2099-01-01", (B, A), B),
        ("2024-01-01", (B, A), B),
        (C, (D, A), D),
        ("", (A,), A),
    ],
)
def test_negotiate_returns_requested_or_newest(
    requested: str, served: tuple[str, ...], answered: str
) -> None:
    rows = dialects_of(served)
    assert negotiate(requested, rows).version == answered


def test_type_is_unchanged_in_revisions_that_have_all_of_it() -> None:
    """Its values are encoded as they are."""
    for version in VERSIONS:
        dialect = DIALECTS[version]
        for value in (t.Root("file:///a"), t.CallToolResult(content=[])):
            dialect.fit(value)
        found = {each.__name__ for each in dialect.unchanged_types}
        assert ("Root" in found) is (version in (C, D, E))
        assert ("CallToolResult" in found) is (version == E)
