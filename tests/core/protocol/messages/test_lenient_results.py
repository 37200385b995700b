"""Results of public bug reports, by their usable parts: what is read, and what stays refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core import types as t
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader
from mcp_core.protocol.messages._responses import read_leniently
from tests.levels import fewer_examples

GOOD: Any = {"name": "good", "inputSchema": {"type": "object"}}
TOOL = t.Tool(name="good", input_schema={"type": "object"})
TEXT: Any = {"type": "text", "text": "hi"}
HI = t.TextContent("hi")
OPENED: Any = {"protocolVersion": "2025-06-18", "capabilities": {}}


def read(kind: Any, document: Any, *, keeps_unknown: bool = True) -> tuple[Any, list[str]]:
    data = json.dumps(document).encode()
    found, problems = read_leniently(kind, data, keeps_unknown=keeps_unknown)
    return found, list(problems.values())


@pytest.mark.parametrize(
    ("kind", "document", "expected", "problems"),
    [
        # Entries of lists
        (
            t.ListToolsResult,
            {"tools": [GOOD, {"name": "mail", "inputSchema": None}]},
            t.ListToolsResult(tools=[TOOL]),
            [
                (
                    "tools[1] 'mail' was left out: Expected `object`, got `null`"
                    " (at tools[1].inputSchema)"
                )
            ],
        ),
        (
            t.ListResourcesResult,
            {"resources": [{"name": "a", "uri": "x:a", "size": "12"}, {"name": "b"}]},
            t.ListResourcesResult(resources=[t.Resource(name="a", uri="x:a")]),
            [
                (
                    "resources[0].size was left out: Expected `int | null`, got `str`"
                    " (at resources[0].size)"
                ),
                (
                    "resources[1] 'b' was left out: Object missing required field `uri`"
                    " (at resources[1])"
                ),
            ],
        ),
        (
            t.ListResourceTemplatesResult,
            {
                "resourceTemplates": [
                    {"uriTemplate": "x:{a}"},
                    {"uriTemplate": "x:{b}", "name": "b"},
                ]
            },
            t.ListResourceTemplatesResult(
                resource_templates=[t.ResourceTemplate(name="b", uri_template="x:{b}")]
            ),
            [
                (
                    "resourceTemplates[0] 'x:{a}' was left out: Object missing required field"
                    " `name` (at resourceTemplates[0])"
                )
            ],
        ),
        (
            t.ListPromptsResult,
            {"prompts": [{"name": "p", "arguments": [{"name": "a"}, "b"]}, {}, 5]},
            t.ListPromptsResult(
                prompts=[t.Prompt(name="p", arguments=[t.PromptArgument(name="a")])]
            ),
            [
                (
                    "prompts[0].arguments[1] was left out: Expected `object`, got `str`"
                    " (at prompts[0].arguments[1])"
                ),
                (
                    "prompts[1], prompts[2] were left out; the first: Object missing required field"
                    " `name` (at prompts[1])"
                ),
            ],
        ),
        (
            t.ReadResourceResult,
            {"contents": [{"uri": "x:a", "text": "a"}, {"uri": "x:b"}]},
            t.ReadResourceResult(contents=[t.ResourceContents(uri="x:a", text="a")]),
            [
                (
                    "contents[1] 'x:b' was left out: resource contents have either text or blob"
                    " (at contents[1])"
                )
            ],
        ),
        (
            t.GetPromptResult,
            {"messages": [{"role": "user", "content": "hi"}, {"role": "user", "content": [TEXT]}]},
            t.GetPromptResult(messages=[t.PromptMessage("user", HI)] * 2),
            [
                (
                    "messages[0].content was read as a text block: Expected `object`, got `str`;"
                    " messages[1].content was read as its only entry: Expected `object`,"
                    " got `array`"
                )
            ],
        ),
        (
            t.CompleteResult,
            {"completion": {"values": ["a", None, "b"], "total": 3.5}},
            t.CompleteResult(completion=t.Completion(values=["a", "b"])),
            [
                (
                    "completion.values[1] was left out: Expected `str`, got `null`"
                    " (at completion.values[1])"
                ),
                (
                    "completion.total was left out: Expected `int | null`, got `float`"
                    " (at completion.total)"
                ),
            ],
        ),
        (
            t.ListRootsResult,
            {"roots": [{"uri": "file:///a"}, {"path": "/b"}]},
            t.ListRootsResult(roots=[t.Root("file:///a")]),
            ["roots[1] was left out: Object missing required field `uri` (at roots[1])"],
        ),
        # A nil slice of Go, which its encoder writes as null
        (
            t.ListToolsResult,
            {"tools": None, "nextCursor": None},
            t.ListToolsResult(tools=[]),
            ["tools was read as empty: it is null"],
        ),
        # Content
        (
            t.CallToolResult,
            {"structuredContent": {"rows": 3}},
            t.CallToolResult(content=[], structured_content={"rows": 3}),
            ["content was read as empty: it is missing"],
        ),
        (
            t.CallToolResult,
            {"isError": True, "error": "no such file"},
            t.CallToolResult(content=[], is_error=True),
            ["content was read as empty: it is missing"],
        ),
        (
            t.CallToolResult,
            {"content": [TEXT, {"type": "widget", "id": 7, "_meta": {"a": []}}]},
            t.CallToolResult(
                content=[HI, t.UnknownContent("widget", {"id": 7, "_meta": {"a": []}})]
            ),
            [],
        ),
        (
            t.CallToolResult,
            {"content": "hi", "isError": False},
            t.CallToolResult(content=[HI]),
            [
                (
                    "content was read as a list of one entry: Expected `array`, got `str`;"
                    " content was read as a text block: Expected `object`, got `str`"
                )
            ],
        ),
        (
            t.CallToolResult,
            {"content": TEXT | {"annotations": {"audience": ["user", "bot"], "priority": "high"}}},
            t.CallToolResult(
                content=[t.TextContent("hi", annotations=t.Annotations(audience=["user"]))]
            ),
            [
                "content was read as a list of one entry: Expected `array`, got `object`",
                (
                    "content.annotations.audience[1] was left out: Invalid enum value 'bot'"
                    " (at content.annotations.audience[1])"
                ),
                (
                    "content.annotations.priority was left out: Expected `float | null`, got `str`"
                    " (at content.annotations.priority)"
                ),
            ],
        ),
        (
            t.CallToolResult,
            {"content": [{"type": "image", "data": "aGk="}, {"text": "hi"}, TEXT]},
            t.CallToolResult(content=[HI]),
            [
                (
                    "content[0] 'image', content[1] were left out; the first: Object missing"
                    " required field `mimeType` (at content[0])"
                )
            ],
        ),
        # Members
        (
            t.ListToolsResult,
            {"tools": [GOOD | {"icons": [{"src": "x:i"}, {}], "title": 5, "outputSchema": "none"}]},
            t.ListToolsResult(
                tools=[t.Tool(name="good", input_schema={"type": "object"}, icons=[t.Icon("x:i")])]
            ),
            [
                "tools[0].title was left out: Expected `str | null`, got `int` (at tools[0].title)",
                (
                    "tools[0].icons[1] was left out: Object missing required field `src`"
                    " (at tools[0].icons[1])"
                ),
                (
                    "tools[0].outputSchema was left out: Expected `object | null`, got `str`"
                    " (at tools[0].outputSchema)"
                ),
            ],
        ),
        (
            t.InitializeResult,
            OPENED | {"serverInfo": {"name": "hister"}},
            t.InitializeResult(
                protocol_version="2025-06-18",
                capabilities=t.ServerCapabilities(),
                server_info=t.Implementation("hister", ""),
            ),
            ["serverInfo.version was read as empty: it is missing"],
        ),
        (
            t.DiscoverResult,
            {"supportedVersions": ["x"], "capabilities": {"tools": [GOOD], "prompts": False}},
            t.DiscoverResult(
                supported_versions=["x"],
                capabilities=t.ServerCapabilities(tools=t.ToolsCapability()),
            ),
            [
                (
                    "capabilities.tools was read as an empty object: Expected `object`, got `array`"
                    " (at capabilities.tools)"
                ),
                (
                    "capabilities.prompts was left out: Expected `object`, got `bool`"
                    " (at capabilities.prompts)"
                ),
            ],
        ),
    ],
)
def test_result_of_a_report_is_read_by_its_usable_parts(
    kind: Any, document: Any, expected: Any, problems: list[str]
) -> None:
    with pytest.raises(InvalidPayload):
        reader(kind)(json.dumps(document).encode())
    assert read(kind, document) == (expected, problems)


@pytest.mark.parametrize(
    "annotations",
    [
        {"readOnlyHint": True, "destructiveHint": "no"},
        {"readOnlyHint": "yes", "destructiveHint": False},
        {"destructiveHint": 0, "idempotentHint": True},
        {"readOnlyHint": True, "title": 5},
        True,
    ],
)
def test_hints_are_read_together_or_not_at_all(annotations: Any) -> None:
    """A tool without hints counts as destructive. One hint of several could make it harmless."""
    found, [problem] = read(t.ListToolsResult, {"tools": [GOOD | {"annotations": annotations}]})
    assert found.tools == [TOOL]
    assert problem.startswith("tools[0].annotations was left out: ")


@pytest.mark.parametrize(
    ("flag", "is_error"),
    [
        ("true", True),
        ("false", False),
        ("FALSE", False),
        (1, True),
        (0, True),
        ("", True),
        ([], True),
    ],
)
def test_failure_never_looks_like_a_success(flag: Any, is_error: bool) -> None:
    found, [problem] = read(t.CallToolResult, {"content": [TEXT], "isError": flag})
    assert found == t.CallToolResult(content=[HI], is_error=is_error)
    assert problem.startswith(f"isError was read as {str(is_error).lower()}: Expected")


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        # Nothing but unreadable entries
        (t.ListToolsResult, {"tools": [{"name": "mail"}, 5]}),
        (t.CallToolResult, {"content": [{"type": "image"}], "structuredContent": {}}),
        (t.CompleteResult, {"completion": {"values": [1]}}),
        # A list that would seem to be complete
        (t.ListToolsResult, {"tools": [GOOD], "nextCursor": 2}),
        (t.ListResourcesResult, {"resources": [], "nextCursor": False}),
        # Another list or object than the one that was asked for
        (t.ListToolsResult, {}),
        (t.ListToolsResult, {"tools": GOOD}),
        (t.ListPromptsResult, {"tools": [GOOD]}),
        (t.GetPromptResult, {"messages": "hi"}),
        (t.ReadResourceResult, {"contents": "hi"}),
        (t.CallToolResult, {"task": {"taskId": "T"}}),
        (t.CallToolResult, {"taskId": "T", "status": "working"}),
        (t.CallToolResult, {"error": "refused"}),
        (t.CallToolResult, {"error": "refused", "isError": False}),
        (t.CallToolResult, {"error": "refused", "isError": None}),
        (t.CallToolResult, {"toolResult": {"rows": 3}}),
        (t.CallToolResult, {"resultType": "input_required", "inputRequests": {}}),
        (t.CallToolResult, {}),
        (t.CallToolResult, [TEXT]),
        (t.CallToolResult, None),
        # A part of a conversation
        (
            t.GetPromptResult,
            {"messages": [{"role": "system", "content": TEXT}, {"role": "user", "content": TEXT}]},
        ),
        (t.GetPromptResult, {"messages": [{"role": "user", "content": TEXT}, 5]}),
        (t.GetPromptResult, {"messages": [{"role": "user", "content": [TEXT, TEXT]}]}),
        (t.GetPromptResult, {"messages": [{"role": "user", "content": [[TEXT]]}]}),
        (
            t.CreateMessageResult,
            {"role": "assistant", "model": "m", "content": [TEXT, {"type": "image"}]},
        ),
        # A server of older revisions, which is asked for them by `initialize`
        (t.DiscoverResult, {"supportedVersions": None, "capabilities": {}}),
        # What says how to go on
        (t.CallToolResult, {"content": [TEXT], "resultType": 1}),
        (t.CancelTaskResult, {"taskId": "T", "status": "gone"}),
        (
            t.GetTaskResult,
            {"taskId": "T", "status": "failed", "createdAt": "", "lastUpdatedAt": "", "error": "x"},
        ),
        # Ambiguous, or without what was asked
        (t.ReadResourceResult, {"contents": [{"uri": "x:a", "blob": "aGk=", "text": 5}]}),
        (t.ElicitResult, {"action": "accept", "content": {"a": {}}}),
        (t.ElicitResult, {"action": "yes"}),
        (t.InitializeResult, {"capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}),
        (t.InitializeResult, OPENED | {"capabilities": None}),
    ],
)
def test_result_without_a_usable_part_is_refused(kind: Any, document: Any) -> None:
    with pytest.raises(InvalidPayload):
        read(kind, document)


def test_block_of_an_unknown_type_is_refused_where_it_cannot_be_kept() -> None:
    """A server encodes what its client has sent, and nothing may send such a block."""
    video = {"type": "video", "data": ""}
    answer: Any = {"role": "assistant", "model": "m", "content": [TEXT, video]}
    for content in ([TEXT, video], video):
        with pytest.raises(InvalidPayload):
            read(t.CreateMessageResult, answer | {"content": content}, keeps_unknown=False)


def test_members_inside_a_conversation_are_left_out() -> None:
    """A member for display only isn't a part of it."""
    block = TEXT | {"annotations": {"priority": "high", "audience": ["bot", "user"]}}
    answer: Any = {"role": "assistant", "model": "m", "content": [block]}
    found, problems = read(t.CreateMessageResult, answer, keeps_unknown=False)
    hinted = t.TextContent("hi", annotations=t.Annotations(audience=["user"]))
    assert found.content == [hinted]
    assert len(problems) == 2


def test_missing_content_inside_a_message_needs_a_sign_of_a_result() -> None:
    inner: Any = {"type": "tool_result", "toolUseId": "1", "structuredContent": {}}
    answer: Any = {"role": "user", "model": "m", "content": inner}
    found, _ = read(t.CreateMessageResult, answer, keeps_unknown=False)
    assert found.content.content == []
    del inner["structuredContent"]
    with pytest.raises(InvalidPayload):
        read(t.CreateMessageResult, answer, keeps_unknown=False)


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://h/a?token=hunter2", "'https://h/a'"),
        ("https://h/a#token=hunter2", "'https://h/a'"),
        ("https://user:hunter2@h/a", "'...@h/a'"),
        ("db://user:hunter2?x@h", "'db://...'"),
        ("x:{?hunter2}", "'x:{'"),
        ("x:\x1b[2J", r"'x:\x1b[2J'"),
    ],
)
@pytest.mark.parametrize("member", ["uri", "uriTemplate"])
def test_line_shows_the_uri_of_an_entry_without_its_secrets(
    member: str, uri: str, shown: str
) -> None:
    good: Any = {"name": "a", "uri": "x:a", "uriTemplate": "x:a"}
    kind: Any = {"uri": t.ListResourcesResult, "uriTemplate": t.ListResourceTemplatesResult}[member]
    name = {"uri": "resources", "uriTemplate": "resourceTemplates"}[member]
    _, [line] = read(kind, {name: [good, {member: uri}]})
    assert line.startswith(f"{name}[1] {shown} was left out: ")
    assert "hunter2" not in line


def test_line_escapes_what_cannot_be_seen() -> None:
    """In an entry's name, and in a text that an error repeats. `repr` leaves some of it."""
    hidden = "\x1b[2J\u202e\u3164"
    roles = {"audience": ["user", hidden]}
    content = [TEXT | {"annotations": roles}, {"type": hidden, "name": 5}]
    found, problems = read(t.CallToolResult, {"content": content}, keeps_unknown=False)
    assert len(found.content) == 1
    assert len(problems) == 2
    for line in problems:
        assert r"\u3164" in line
        assert line.isascii()
        assert line.isprintable()


def test_thousand_unreadable_entries_are_one_short_line() -> None:
    entries = [{"name": "x" * 1000, "inputSchema": None}] * 1000
    found, [problem] = read(t.ListToolsResult, {"tools": [GOOD, *entries]})
    assert found.tools == [TOOL]
    assert "and 997 more were left out; the first: Expected `object`, got `null`" in problem
    assert len(problem) < 500


@pytest.mark.parametrize("entries", [[5] * 5_000, [5] * 60_000])
def test_result_with_more_faults_than_are_looked_at_is_refused(entries: list[Any]) -> None:
    with pytest.raises(InvalidPayload, match="too many faults"):
        read(t.CallToolResult, {"content": [TEXT, *entries, 5]})


MEMBERS = (
    *("type", "text", "tools", "name", "inputSchema", "content", "messages", "role", "uri"),
    *("isError", "nextCursor", "annotations", "icons", "_meta", "contents", "resource"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["text", "user", "a", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(MEMBERS),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@fewer_examples(2)
@given(st.sampled_from([t.CallToolResult, t.ListToolsResult, t.GetPromptResult]), JSON)
def test_result_of_any_json_has_its_exact_type_or_is_refused(kind: Any, document: Any) -> None:
    try:
        found, _ = read(kind, document, keeps_unknown=False)
    except InvalidPayload:
        return
    assert reader(kind)(encode(found)) == found


@pytest.mark.parametrize("value", [5, True, {"name": "a"}, "x"])
def test_value_in_place_of_a_list_is_refused_with_its_place(value: Any) -> None:
    with pytest.raises(InvalidPayload, match=r"Expected `array`, got `\w+` \(at tools\)"):
        read(t.ListToolsResult, {"tools": value})
