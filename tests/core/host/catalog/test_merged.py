"""The merged lists of a host: what they leave out, and the way back from each name."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.host import NameCollision, QualifiedName, plain_name
from mcp_core.host.catalog._merged import HostCatalog
from mcp_core.host.catalog._server import ServerCatalog
from mcp_core.types import Prompt, Resource, ResourceTemplate
from tests.core.host.catalog.lists import (
    FIND,
    FIND_CHANGED,
    NOTES,
    PROMPT,
    READ,
    TEMPLATE,
    TEXT,
    catalog_of,
    names,
    tool,
)
from tests.levels import fewer_examples

SHARED = "mcp-gateway://{}/file%3A%2F%2F%2Fnotes"


def full(server: str, **options: Any) -> ServerCatalog:
    """Return a catalog that has one entry in each list."""
    return catalog_of(
        server,
        READ,
        prompts=[PROMPT],
        resources=[NOTES],
        templates=[TEMPLATE],
        instructions=TEXT,
        **options,
    )


def merged_of(*catalogs: ServerCatalog, **options: Any) -> HostCatalog:
    """Return the merged lists of servers that can all be called."""
    merged = HostCatalog(**options)
    for catalog in catalogs:
        merged.update(catalog, is_available=True)
    return merged


def lists_of(merged: HostCatalog) -> list[Any]:
    """Return all that can be seen of the merged lists."""
    return [
        merged.tools(),
        merged.prompts(),
        merged.resources(),
        merged.resource_templates(),
        merged.instructions(),
        list(merged.tool_names()),
        [(each.merged, each.names) for each in merged.collisions()],
    ]


# -- Lists -----------------------------------------------------------------------------------------


def test_lists_of_a_host_without_servers_are_empty() -> None:
    merged = HostCatalog()
    assert lists_of(merged) == [(), (), (), (), {}, [], []]
    assert repr(merged) == "<HostCatalog of 0 servers, 0 available>"


def test_entries_have_merged_names_in_the_order_of_the_servers() -> None:
    """The servers' order is the order in which they were added, not alphabetical."""
    merged = merged_of(full("b"), catalog_of("a", FIND))
    assert repr(merged) == "<HostCatalog of 2 servers, 2 available>"
    read, find = merged.tools()
    assert (read.name, read.server, read.tool) == ("mcp__b__read", "b", READ)
    assert (read.description, read.input_schema) == ("Reads.", {"type": "object"})
    assert find.name == "mcp__a__find"
    [prompt] = merged.prompts()
    assert (prompt.name, prompt.server, prompt.prompt) == ("mcp__b__review", "b", PROMPT)
    [notes] = merged.resources()
    assert (notes.uri, notes.server, notes.resource) == ("file:///notes", "b", NOTES)
    assert notes.label == "@b:file:///notes"
    [template] = merged.resource_templates()
    assert (template.server, template.template) == ("b", TEMPLATE)
    assert merged.instructions() == {"b": TEXT}
    assert list(merged.tool_names()) == [("a", "find"), ("b", "read")]


def test_tool_without_a_description_has_an_empty_one() -> None:
    [found] = merged_of(catalog_of("a", tool("t", None))).tools()  # type: ignore[arg-type]
    assert found.description == ""


def test_lists_leave_out_what_is_not_approved() -> None:
    catalog = full("a", is_pinned=False)
    merged = merged_of(catalog)
    assert [len(each) for each in lists_of(merged)[:5]] == [0, 0, 1, 0, 0]  # resources need no pins
    assert merged.find_tool("mcp__a__read") == ("a", "read")
    assert list(merged.tool_names()) == [("a", "read")]
    catalog.pin_first()
    merged.update(catalog, is_available=True)
    assert [len(each) for each in lists_of(merged)[:5]] == [1, 1, 1, 1, 1]
    catalog.set_list("tools", [FIND_CHANGED])
    merged.update(catalog, is_available=True)
    assert merged.tools() == ()
    assert merged.find_tool("mcp__a__find") == ("a", "find")
    assert merged.find_tool("mcp__a__read") is None


def test_lists_have_an_entry_once_that_a_server_lists_twice() -> None:
    catalog = catalog_of(
        "a",
        *[FIND] * 2,
        prompts=[PROMPT] * 2,
        resources=[NOTES] * 2,
        templates=[TEMPLATE] * 2,
    )
    assert [len(each) for each in lists_of(merged_of(catalog))[:4]] == [1, 1, 1, 1]


def test_names_of_a_server_that_is_not_available_lead_to_it() -> None:
    """A call of its tool then says why it fails, not that there is no such tool."""
    merged = merged_of(full("a"), full("b"))
    merged.set_available("a", is_available=False)
    assert names(merged.tools()) == ["mcp__b__read"]
    assert names(merged.prompts()) == ["mcp__b__review"]
    assert [each.uri for each in merged.resources()] == [SHARED.format("b")]
    assert [each.server for each in merged.resource_templates()] == ["b"]
    assert merged.instructions() == {"b": TEXT}
    assert merged.find_tool("mcp__a__read") == ("a", "read")
    assert merged.find_prompt("mcp__a__review") == ("a", "review")
    assert merged.find_resource(SHARED.format("a")) == ("a", "file:///notes")
    assert list(merged.tool_names()) == [("a", "read"), ("b", "read")]
    merged.set_available("a", is_available=True)
    assert names(merged.tools()) == ["mcp__a__read", "mcp__b__read"]


def test_server_that_is_discarded_leaves_nothing() -> None:
    merged = merged_of(full("a"), full("b"))
    merged.discard("a")
    merged.discard("never added")
    assert repr(merged) == "<HostCatalog of 1 servers, 1 available>"
    assert names(merged.tools()) == ["mcp__b__read"]
    assert [each.uri for each in merged.resources()] == ["file:///notes"]
    assert merged.find_tool("mcp__a__read") is None
    assert merged.find_prompt("mcp__a__review") is None
    assert merged.find_resource("@a:file:///notes") is None
    merged.update(full("a"), is_available=False)
    assert names(merged.tools()) == ["mcp__b__read"]


# -- Names -----------------------------------------------------------------------------------------


def test_names_that_collide_are_left_out_and_lead_to_neither() -> None:
    one = catalog_of("a", tool("b__c"), prompts=[Prompt(name="b__p")])
    other = catalog_of("a__b", tool("c"), tool("d"), prompts=[Prompt(name="p")])
    merged = merged_of(one, other)
    assert names(merged.tools()) == ["mcp__a__b__d"]
    assert merged.prompts() == ()
    assert [each.merged for each in merged.collisions()] == ["mcp__a__b__c", "mcp__a__b__p"]
    assert merged.collisions()[0].names == (("a", "b__c"), ("a__b", "c"))
    with pytest.raises(NameCollision, match=r"b__c of a and of c of a__b: rename a server"):
        merged.find_tool("mcp__a__b__c")
    with pytest.raises(NameCollision):
        merged.find_prompt("mcp__a__b__p")
    merged.discard("a__b")
    assert names(merged.tools()) == ["mcp__a__b__c"]
    assert merged.collisions() == []


def test_tool_that_was_not_approved_takes_no_name_of_another_server() -> None:
    """Else a server could take away a tool by listing another one with its merged name."""
    both = Prompt(name="c")
    a = catalog_of("a", tool("c"), prompts=[both], is_pinned=False)
    b = catalog_of("b", tool("c"), prompts=[both])
    merged = merged_of(a, b, scheme=plain_name)
    assert [(each.server, each.name) for each in merged.tools()] == [("b", "c")]
    assert [(each.server, each.name) for each in merged.prompts()] == [("b", "c")]
    assert merged.find_tool("c") == ("b", "c")
    assert merged.find_prompt("c") == ("b", "c")
    assert merged.collisions() == []
    a.pin_first()
    merged.update(a, is_available=True)
    assert merged.tools() == ()
    assert [each.merged for each in merged.collisions()] == ["c", "c"]
    with pytest.raises(NameCollision):
        merged.find_tool("c")


def test_name_that_only_unapproved_tools_have_leads_to_one_or_collides() -> None:
    """A call then says that the tool is not approved, not that it does not exist."""
    a, b = (catalog_of(server, tool("c"), is_pinned=False) for server in "ab")
    merged = merged_of(a, scheme=plain_name)
    assert merged.find_tool("c") == ("a", "c")
    merged.update(b, is_available=True)
    assert merged.collisions() == []
    with pytest.raises(NameCollision):
        merged.find_tool("c")
    merged.discard("a")
    assert merged.find_tool("c") == ("b", "c")


@pytest.mark.parametrize("name", ["n" * 200, "a.b/c d", "größe", "\x1b[31m", "😀" * 70])
def test_name_that_does_not_fit_is_shortened_and_leads_back(name: str) -> None:
    merged = merged_of(catalog_of("s", tool(name), prompts=[Prompt(name=name)]))
    [found], [prompt] = merged.tools(), merged.prompts()
    assert len(found.name) <= 64
    assert found.name.isascii()
    assert merged.find_tool(found.name) == ("s", name)
    assert merged.find_prompt(prompt.name) == ("s", name)
    assert prompt.name == found.name


def test_names_follow_the_scheme() -> None:
    merged = merged_of(full("a"), scheme=lambda server, name: f"{name}-{server}")
    assert names(merged.tools()) == ["read-a"]
    assert merged.find_tool("read-a") == ("a", "read")


# -- Resources -------------------------------------------------------------------------------------


def test_resource_of_several_servers_has_a_uri_for_each() -> None:
    merged = merged_of(full("a"), full("b"))
    assert [each.uri for each in merged.resources()] == [SHARED.format("a"), SHARED.format("b")]
    for each in merged.resources():
        assert merged.find_resource(each.uri) == (each.server, "file:///notes")
        assert merged.find_resource(each.label) == (each.server, "file:///notes")
    with pytest.raises(NameCollision, match="notes of a and of"):
        merged.find_resource("file:///notes")


def test_resource_with_a_gateway_uri_of_its_own_gets_a_longer_one() -> None:
    """Else one server could take the place of another one's resource."""
    uri = SHARED.format("a")
    merged = merged_of(full("a"), catalog_of("b", resources=[Resource(name="n", uri=uri)]))
    _, imitation = merged.resources()
    assert imitation.uri != uri
    assert merged.find_resource(imitation.uri) == ("b", uri)
    assert merged.find_resource(uri) == ("a", "file:///notes")


def test_resource_with_a_uri_like_a_label_leads_to_its_own_server() -> None:
    """Else a server could have the user's program read a secret of another server."""
    uri = "@a:file:///notes"
    merged = merged_of(full("a"), catalog_of("b", resources=[Resource(name="n", uri=uri)]))
    _, imitation = merged.resources()
    assert merged.find_resource(imitation.uri) == ("b", uri)
    assert merged.find_resource(imitation.label) == ("b", uri)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("file:///notes", ("a", "file:///notes")),
        ("@a:file:///notes", ("a", "file:///notes")),
        ("@a:file:///other", ("a", "file:///other")),  # the server need not list it
        ("mcp-gateway://a/file%3A%2F%2F%2Fother", ("a", "file:///other")),
        ("MCP-Gateway://a/x%3Ay", ("a", "x:y")),
        ("@two%20words:x:y", ("two words", "x:y")),
        ("mcp-gateway://two%20words/x%3Ay", ("two words", "x:y")),
        ("file:///other", None),
        ("@c:file:///notes", None),
        ("mcp-gateway://c/file%3A%2F%2F%2Fnotes", None),
        ("mcp-gateway://a", None),
        ("mcp-gateway:///x", None),
        ("mcp-gateway://a/%ff", None),
        ("@a", None),
        ("@:x", None),
        ("", None),
    ],
)
def test_resource_is_found_by_uri_and_label(text: str, found: tuple[str, str] | None) -> None:
    merged = merged_of(full("a"), catalog_of("two words"))
    assert merged.find_resource(text) == found


# -- Caching ---------------------------------------------------------------------------------------


def test_lists_are_the_same_objects_until_a_change() -> None:
    merged = merged_of(full("a"), full("b"))
    methods = [merged.tools, merged.prompts, merged.resources, merged.resource_templates]
    changes = [
        partial(merged.update, full("a"), is_available=True),
        partial(merged.set_available, "b", is_available=False),
        partial(merged.discard, "b"),
    ]
    for change in changes:
        before: list[Any] = [method() for method in methods]
        assert all(method() is old for method, old in zip(methods, before, strict=True))
        change()
        assert not any(method() is old for method, old in zip(methods, before, strict=True))


def test_tool_names_are_built_once_for_each_change_of_a_list() -> None:
    merged = merged_of(full("a"), full("b"))
    before = merged.tool_names()
    merged.set_available("b", is_available=False)
    assert merged.tool_names() is before
    merged.update(catalog_of("b", FIND), is_available=True)
    assert list(merged.tool_names()) == [("a", "read"), ("b", "find")]
    merged.discard("b")
    assert list(merged.tool_names()) == [("a", "read")]


# -- Any sequence of changes -----------------------------------------------------------------------

# Few names, so that they collide: "mcp__a__b__c" has two ways to come about.
_NAMES = st.sampled_from(["b__c", "c", "d", "x" * 100])
_SERVERS = st.sampled_from(["a", "a__b", "e"])


@st.composite
def catalogs(draw: st.DrawFn) -> ServerCatalog:
    tools = [tool(name) for name in draw(st.lists(_NAMES, max_size=4))]
    return catalog_of(
        draw(_SERVERS),
        *tools,
        prompts=[Prompt(name=name) for name in draw(st.lists(_NAMES, max_size=3))],
        resources=[Resource(name=name, uri=name) for name in draw(st.lists(_NAMES, max_size=3))],
        templates=[
            ResourceTemplate(name=name, uri_template=name)
            for name in draw(st.lists(_NAMES, max_size=2))
        ],
        instructions=draw(st.sampled_from(["", TEXT])),
        is_pinned=draw(st.booleans()),
        needs_pins=draw(st.booleans()),
    )


_CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("update"), catalogs(), st.booleans()),
        st.tuples(st.just("available"), _SERVERS, st.booleans()),
        st.tuples(st.just("discard"), _SERVERS, st.none()),
        st.tuples(st.just("look"), st.none(), st.none()),
    ),
    max_size=12,
)


@fewer_examples(2)
@given(_CHANGES)
def test_lists_after_any_changes_are_those_of_a_fresh_catalog(
    changes: list[tuple[str, Any, Any]],
) -> None:
    """Lists are cached, so each history must end as if only its last state had been added."""
    merged = HostCatalog()
    state: dict[str, tuple[ServerCatalog, bool]] = {}
    for change, subject, is_available in changes:
        if change == "update":
            merged.update(subject, is_available=is_available)
            state[subject.server] = subject, is_available
        elif change == "available" and subject in state:
            merged.set_available(subject, is_available)
            state[subject] = state[subject][0], is_available
        elif change == "discard":
            merged.discard(subject)
            state.pop(subject, None)
        else:
            lists_of(merged)  # so that there is something in the cache
    fresh = HostCatalog()
    for catalog, is_available in state.values():
        fresh.update(catalog, is_available=is_available)
    assert lists_of(merged) == lists_of(fresh)
    for found in merged.tools():
        assert merged.find_tool(found.name) == QualifiedName(found.server, found.tool.name)
    for prompt in merged.prompts():
        assert merged.find_prompt(prompt.name) == (prompt.server, prompt.prompt.name)
    for resource in merged.resources():
        back = (resource.server, resource.resource.uri)
        assert merged.find_resource(resource.uri) == merged.find_resource(resource.label) == back
    shown = [each.name for each in merged.tools()]
    assert len(set(shown)) == len(shown)
