"""Contracts as files: what is left out, the order, several revisions, and files that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_core.contract import (
    CONTRACT_FORM,
    Contract,
    InvalidContract,
    OlderContract,
    ServerOffers,
    encode_contract,
    offers_of_lists,
    read_contract,
)
from mcp_core.types import Annotations, Resource, ServerCapabilities, Tool, ToolsCapability
from tests.levels import fewer_examples

NEW, OLD = "2026-07-28", "2025-06-18"


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def test_members_that_change_without_meaning_are_left_out() -> None:
    """Sizes, times, `_meta` and the order of lists may differ between two runs."""
    entry = Resource(
        name="menu",
        uri="tea://menu",
        size=9,
        annotations=Annotations(last_modified="2026-01-01T00:00:00Z"),
        meta={"a": 1},
    )
    offers = offers_of_lists(
        {"tools": [Tool(name="b", input_schema={}), tool("a", _meta={})], "resources": [entry]},
        capabilities=ServerCapabilities(tools=ToolsCapability(list_changed=True)),
    )
    assert offers.capabilities == ("tools", "tools.listChanged")
    assert [each["name"] for each in offers.lists["tools"]] == ["a", "b"]
    assert offers.lists["resources"] == [{"name": "menu", "uri": "tea://menu"}]
    assert "_meta" not in offers.lists["tools"][0]


def test_entries_that_have_no_key_are_left_out() -> None:
    entries = [1, None, {"title": "x"}, {"name": 5}, tool("a")]
    assert offers_of_lists({"tools": entries}).lists == {"tools": [tool("a")]}


def test_other_annotations_of_a_resource_are_kept() -> None:
    annotations = {"lastModified": "2026-01-01T00:00:00Z", "audience": ["user"]}
    entry = {"uri": "tea://menu", "name": "menu", "annotations": annotations}
    [found] = offers_of_lists({"resources": [entry]}).lists["resources"]
    assert found["annotations"] == {"audience": ["user"]}
    assert "lastModified" in annotations


def test_file_has_nothing_that_says_nothing() -> None:
    """Neither the instructions of a server without any, nor a revision that is like the others."""
    plain, more = offers_of_lists({}), offers_of_lists({"tools": []})
    document = json.loads(encode_contract(Contract(offers={NEW: plain, OLD: plain})))
    assert document == {"mcpContract": 1, "server": "", "revisions": [NEW, OLD]}
    document = json.loads(encode_contract(Contract(offers={NEW: plain, OLD: more})))
    assert document["only"] == {OLD: {"tools": []}}


def test_capabilities_are_named_down_to_the_fifth_level() -> None:
    """An experimental one may be as deep as its author likes: a contract stays short."""
    offers = offers_of_lists({}, capabilities={"a": {"b": {"c": {"d": {"e": {"f": {}}}}}}})
    assert offers.capabilities == ("a", "a.b", "a.b.c", "a.b.c.d", "a.b.c.d.e")


def test_file_is_the_same_for_any_order() -> None:
    one = offers_of_lists({"tools": [tool("a", title="x", description="y"), tool("b")]})
    other = offers_of_lists({"tools": [tool("b"), tool("a", description="y", title="x")]})
    files = [encode_contract(Contract(server="s", offers={NEW: each})) for each in (one, other)]
    assert files[0] == files[1]
    assert files[0].startswith(b'{\n  "mcpContract": 1,\n  "server": "s",\n')


def test_revisions_share_what_they_have_in_common() -> None:
    """A tool that differs in one revision is below that revision's name."""
    both, new = tool("both"), tool("new", title="t")
    contract = Contract(
        offers={
            NEW: offers_of_lists({"tools": [both, new], "prompts": []}, capabilities={"tools": {}}),
            OLD: offers_of_lists(
                {"tools": [both, tool("new")]}, capabilities={"tools": {}, "logging": {}}
            ),
        }
    )
    document = json.loads(encode_contract(contract))
    assert document["tools"] == [both]
    assert document["capabilities"] == ["tools"]
    assert document["only"] == {
        NEW: {"prompts": [], "tools": [new]},
        OLD: {"capabilities": ["logging"], "tools": [tool("new")]},
    }
    assert read_contract(encode_contract(contract)) == contract


_names = st.sampled_from("abc")
_tools = st.lists(st.builds(tool, _names, title=_names), max_size=3)
_offers = st.builds(
    lambda lists, capabilities, instructions: offers_of_lists(
        lists, capabilities=capabilities, instructions=instructions
    ),
    st.fixed_dictionaries({"tools": _tools}, optional={"resources": st.just([])}),
    st.none() | st.dictionaries(_names, st.just({}), max_size=2),
    st.sampled_from(("", "do", "don't")),
)


@fewer_examples(5)
@given(st.dictionaries(st.sampled_from((NEW, OLD)), _offers, min_size=1), _names)
def test_contract_that_is_read_is_the_one_that_was_written(
    offers: dict[str, ServerOffers], server: str
) -> None:
    contract = Contract(server=server, offers=offers, scopes=("read",))
    found = read_contract(encode_contract(contract))
    for name, each in offers.items():
        once = {key: [*map(dict, entries)] for key, entries in each.lists.items()}
        for entries in once.values():  # equal entries are one
            entries[:] = [e for n, e in enumerate(entries) if e not in entries[:n]]
        assert found.offers[name].lists == once
        assert found.offers[name].capabilities == each.capabilities
        assert found.offers[name].instructions == each.instructions
    assert (found.server, found.scopes) == (server, ("read",))


DEEP = "it is nested too deeply"
GOOD = {"mcpContract": 1, "server": "s", "revisions": [NEW], "tools": [tool("a")]}


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", "it is not JSON"),
        ("{", "it is not JSON"),
        ("[" * 100_000, "it is not JSON"),
        ("\udcff", "it is not JSON"),
        ("[]", "it is not a contract"),
        ('{"tools": []}', "it is not a contract: `mcp-trio inspect --save` writes one"),
        ('{"mcpContract": NaN}', "NaN is not a number"),
        ('{"mcpContract": 1, "mcpContract": 1}', "the same member twice"),
        ({**GOOD, "mcpContract": "1"}, "mcpContract is not a number"),
        ({**GOOD, "mcpContract": CONTRACT_FORM + 1}, "is newer than 1"),
        ({**GOOD, "more": 1}, "no contract has the member 'more'"),
        ({**GOOD, "server": 1}, "server is not a text"),
        ({**GOOD, "revisions": []}, "revisions is not a list"),
        ({**GOOD, "scopes": [1]}, "scopes is not a list"),
        ({**GOOD, "only": {OLD: {}}}, "only is not an object"),
        ({**GOOD, "only": {NEW: {"scopes": []}}}, f"only.{NEW} cannot have the member 'scopes'"),
        ({**GOOD, "only": {NEW: []}}, f"only.{NEW} is not an object"),
        ({**GOOD, "tools": [{}]}, "tools[0] is not an object that has a name"),
        ({**GOOD, "tools": {"a": {}}}, "tools is not a list"),
        ({**GOOD, "capabilities": "tools"}, "capabilities is not a list"),
        ({**GOOD, "instructions": []}, "instructions is not a text"),
        ({**GOOD, "tools": [tool("\ud800")]}, "a text in it has half of a surrogate pair"),
        ({**GOOD, "tools": [tool("a", title={"\udfff": 1})]}, "half of a surrogate pair"),
        ({**GOOD, "scopes": ["\ud800"]}, "half of a surrogate pair"),
        (json.dumps(GOOD | {"scopes": "deep"}).replace('"deep"', "[" * 300 + "]" * 300), DEEP),
        (
            {**GOOD, "x" * 99: 1, **dict.fromkeys("bcdefg", 1)},
            "has the member 'b', 'c', 'd', 'e', 'f'",
        ),
        ({**GOOD, "x" * 99: 1}, f"has the member '{'x' * 80}'"),
    ],
)
def test_file_that_is_no_contract_is_refused_with_cause(text: Any, cause: str) -> None:
    data = text if isinstance(text, str) else json.dumps(text)
    with pytest.raises(InvalidContract) as failed:
        read_contract(data.encode(errors="surrogateescape"))
    if cause in ("the same member twice", DEEP):
        assert "it is not JSON" not in str(failed.value)
    text = str(failed.value)
    assert text.endswith(cause) if "has the member" in cause else cause in text


def test_older_form_says_how_to_upgrade_it() -> None:
    with pytest.raises(OlderContract, match="save it again with `mcp-trio inspect --save`"):
        read_contract(json.dumps({**GOOD, "mcpContract": 0}).encode())


def test_contract_edited_by_hand_is_sorted_again() -> None:
    edited = {**GOOD, "tools": [tool("b", _meta={}), tool("a")]}
    contract = read_contract(b"\xef\xbb\xbf" + json.dumps(edited).encode())
    assert contract.offers[NEW].lists["tools"] == [tool("a"), tool("b")]


@pytest.mark.parametrize("levels", [101, 5_000])
def test_entry_that_is_nested_too_deeply_is_refused(levels: int) -> None:
    deep: Any = {}
    for _ in range(levels):
        deep = {"properties": {"a": deep}}
    with pytest.raises(InvalidContract, match="an entry of tools is nested too deeply"):
        offers_of_lists({"tools": [{"name": "a", "inputSchema": deep}]})
