"""The lists of one server: which of its definitions are approved, and what cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace

from mcp_core.host import define
from mcp_core.host.catalog._server import CatalogLimits, ServerCatalog
from mcp_core.types import Prompt, Resource, ResourceTemplate, Tool
from tests.core.host.catalog.lists import (
    FIND,
    FIND_CHANGED,
    NOTES,
    PROMPT,
    READ,
    TEMPLATE,
    TEXT,
    names,
    tool,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.host import DefinitionKind
    from mcp_core.host._supervision import CatalogList

LISTS: list[tuple[CatalogList, Any, str]] = [
    ("tools", READ, "tools"),
    ("prompts", PROMPT, "prompts"),
    ("resources", NOTES, "resources"),
    ("resource templates", TEMPLATE, "resource_templates"),
]
# What is pinned: the list or None for instructions, the entry, its kind and its name.
PINNED: list[tuple[CatalogList | None, Any, DefinitionKind, str]] = [
    ("tools", READ, "tool", "read"),
    ("prompts", PROMPT, "prompt", "review"),
    ("resource templates", TEMPLATE, "resource template", "file:///{path}"),
    (None, TEXT, "instructions", ""),
]


def offer(catalog: ServerCatalog, name: CatalogList | None, items: Sequence[Any]) -> None:
    """Set a list, or the instructions."""
    if name is None:
        catalog.set_instructions(items[0] if items else None)
    else:
        catalog.set_list(name, items)


def approved(catalog: ServerCatalog) -> list[Any]:
    """Return all that may be used."""
    found = [
        *catalog.approved_tools(),
        *catalog.approved_prompts(),
        *catalog.approved_templates(),
    ]
    return [*found, *filter(None, [catalog.instructions])]


def full(**options: Any) -> ServerCatalog:
    """Return a catalog that has one entry in each list."""
    catalog = ServerCatalog("a", **options)
    for name, item, _ in LISTS:
        catalog.set_list(name, [item])
    catalog.set_instructions(TEXT)
    return catalog


# -- Lists -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("needs_pins", [True, False])
def test_catalog_at_first_is_empty(needs_pins: bool) -> None:
    catalog = ServerCatalog("a", needs_pins=needs_pins)
    assert repr(catalog) == "<ServerCatalog of 'a': empty>"
    assert catalog.server == "a"
    for _, _, member in LISTS:
        assert list(getattr(catalog, member)) == []
    assert catalog.instructions == ""
    assert catalog.problems == {}
    assert approved(catalog) == []
    assert catalog.tool("read") is None
    assert catalog.definition("tool", "read") is None
    assert catalog.state("tool", "read") == "absent"


@pytest.mark.parametrize(("name", "item", "member"), LISTS)
def test_list_that_is_set_replaces_the_one_before(
    name: CatalogList, item: Any, member: str
) -> None:
    catalog = ServerCatalog("a")
    catalog.set_list(name, [item])
    assert list(getattr(catalog, member)) == [item]
    catalog.set_list(name, [])
    assert list(getattr(catalog, member)) == []
    assert repr(catalog) == f"<ServerCatalog of 'a': 0 {name}>"


@pytest.mark.parametrize(("name", "item", "member"), LISTS)
def test_list_above_its_limit_keeps_the_entries_with_a_problem(
    name: CatalogList, item: Any, member: str
) -> None:
    catalog = ServerCatalog("a", limits=CatalogLimits(**{member: 2}), needs_pins=False)
    catalog.set_list(name, [item] * 2)
    catalog.set_list(name, [item] * 3)
    assert list(getattr(catalog, member)) == [item] * 2
    assert catalog.problems == {name: "the server lists 3, and the limit is 2"}
    catalog.set_list(name, [item])
    assert catalog.problems == {}
    assert list(getattr(catalog, member)) == [item]


@pytest.mark.parametrize(("name", "item", "member"), LISTS)
def test_problem_of_a_list_keeps_its_entries(name: CatalogList, item: Any, member: str) -> None:
    catalog = full()
    catalog.pin_first()
    before = approved(catalog)
    catalog.set_problem(name, "it timed out")
    assert catalog.problems == {name: "it timed out"}
    assert list(getattr(catalog, member)) == [item]
    assert approved(catalog) == before


def test_problem_that_is_long_is_cut_and_escaped() -> None:
    catalog = ServerCatalog("a")
    catalog.set_problem("tools", "\x1b[31m" + "x" * 10_000)
    assert "\x1b" not in catalog.problems["tools"]
    cut = r"\u001b[31m" + "x" * 295 + "… (10005 characters)"
    assert catalog.problems["tools"] == cut


def test_omissions_of_a_list_are_escaped_and_replaced() -> None:
    catalog = full()
    catalog.set_left_out("tools", ["\x1b[31m" + "x" * 10_000, "y"])
    long, short = catalog.left_out["tools"]
    assert ("\x1b" in long, len(long) < 400, short) == (False, True, "y")
    assert catalog.unread("tools") == f"not all of its tools could be read: {long}, and 1 more"
    catalog.set_problem("tools", "it timed out")
    assert catalog.left_out.keys() == {"tools"}  # the list from before is still in use
    assert catalog.unread("tools") == "its tools could not be read: it timed out"
    catalog.set_left_out("prompts", ["z"])
    assert catalog.unread("prompts") == "not all of its prompts could be read: z"
    for name in ("tools", "prompts"):
        catalog.set_left_out(name, [])
    assert catalog.left_out == {}
    assert catalog.unread("prompts") == ""


def test_omissions_of_a_list_are_forgotten_with_it() -> None:
    catalog = full()
    catalog.set_left_out("tools", ["x"])
    catalog.set_problem("tools", "it timed out")
    assert catalog.left_out == {"tools": ("x",)}
    catalog.set_list("tools", [])
    assert catalog.left_out == {}


def test_omissions_of_a_list_are_at_most_two_hundred_lines() -> None:
    catalog = full()
    catalog.set_left_out("tools", map(str, range(200)))
    assert catalog.left_out["tools"][-1] == "199"
    catalog.set_left_out("tools", map(str, range(100_000)))
    lines = catalog.left_out["tools"]
    assert (len(lines), lines[-2:]) == (200, ("198", "99801 more lines"))


def test_definition_that_cannot_be_compared_is_a_problem_of_its_list() -> None:
    catalog = full()
    catalog.pin_first()
    schema: dict[str, Any] = {}
    for _ in range(1_000):
        schema = {"properties": {"x": schema}}
    catalog.set_list("tools", [READ, replace(FIND, input_schema=schema)])
    assert catalog.problems["tools"].startswith("a definition cannot be compared: ")
    # Either it can't be encoded or it can't be read again: that depends on Python.
    assert catalog.problems["tools"].endswith(" is nested too deeply")
    assert list(catalog.tools) == [READ]
    assert catalog.state("tool", "find") == "absent"
    assert catalog.approved_tools() == [READ]
    catalog.set_list("tools", [tool("\ud800")])
    assert "surrogates not allowed" in catalog.problems["tools"]


def test_definitions_above_the_limit_of_their_bytes_are_a_problem() -> None:
    """One may have as many bytes, as JSON, as the limit says, and so may all together."""
    each = len(msgspec.json.encode(READ))
    catalog = ServerCatalog("a", limits=CatalogLimits(definition=each, definitions=2 * each))
    catalog.set_list("tools", [READ, READ])
    assert catalog.problems == {}
    catalog.set_list("tools", [replace(READ, description="Reads..")])
    problem = f"a definition cannot be compared: {each + 1} bytes, and the limit is {each}"
    assert catalog.problems == {"tools": problem}
    catalog.set_list("tools", [READ, READ, FIND])
    size = 2 * each + len(msgspec.json.encode(FIND))
    problem = f"a definition cannot be compared: {size} bytes in all, and the limit is {2 * each}"
    assert catalog.problems == {"tools": problem}
    assert names(catalog.tools) == ["read", "read"]


@pytest.mark.parametrize("text", ["x" * 9, "ü" * 5, "\n" * 5, "\ud800"])
def test_instructions_that_are_too_long_count_as_none(text: str) -> None:
    """They are measured as JSON, as they are stored: in quotes, and with escapes."""
    catalog = ServerCatalog("a", limits=CatalogLimits(definition=10))
    catalog.set_instructions("x" * 8)
    catalog.pin_first()
    assert catalog.instructions == "x" * 8
    catalog.set_instructions(text)
    assert catalog.instructions == ""
    assert catalog.state("instructions", "") == "absent"
    assert catalog.definition("instructions", "") is None


def test_list_is_set_in_steps_of_fifty_new_definitions() -> None:
    catalog = ServerCatalog("a")
    tools = [tool(str(number)) for number in range(150)]
    steps = catalog.set_list_in_steps("tools", [tools[0], *tools, *tools])
    assert [len(catalog.tools) for _ in steps] == [0, 0]
    assert len(catalog.tools) == 301
    # Only what is new costs time.
    assert len([*catalog.set_list_in_steps("tools", [*tools, READ])]) == 0
    other = [tool(f"another {number}") for number in range(51)]
    assert len([*catalog.set_list_in_steps("tools", [*tools, *other])]) == 1


def test_pins_that_are_set_again_change_nothing() -> None:
    catalog = full()
    catalog.pin_first()
    assert catalog.set_pins(catalog.pins) is False
    assert catalog.set_pins((define(READ),)) is True
    assert approved(catalog) == [READ]
    assert catalog.set_pins(None) is True
    assert catalog.awaits_first_pins


# -- Pins ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "item", "kind", "key"), PINNED)
def test_definition_before_the_first_pins_is_new(
    name: CatalogList | None, item: Any, kind: DefinitionKind, key: str
) -> None:
    catalog = ServerCatalog("a")
    offer(catalog, name, [item])
    assert catalog.awaits_first_pins
    assert catalog.pins is None
    assert catalog.state(kind, key) == "new"
    assert catalog.definition(kind, key) == define(item)
    assert approved(catalog) == []
    assert catalog.comparison is not None
    assert catalog.comparison.is_first_sight


@pytest.mark.parametrize(("name", "item", "kind", "key"), PINNED)
def test_definition_that_is_pinned_can_be_used_until_it_changes(
    name: CatalogList | None, item: Any, kind: DefinitionKind, key: str
) -> None:
    """Approval is for the exact definition: the old one is usable again without a question."""
    changed = f"{item} Now." if isinstance(item, str) else replace(item, description="Changed.")
    catalog = ServerCatalog("a")
    offer(catalog, name, [item])
    assert catalog.pin_first() == catalog.pins == (define(item),)
    assert not catalog.awaits_first_pins
    assert (catalog.state(kind, key), approved(catalog)) == ("pinned", [item])
    offer(catalog, name, [changed])
    assert (catalog.state(kind, key), approved(catalog)) == ("changed", [])
    assert catalog.definition(kind, key) == define(changed)
    offer(catalog, name, [])
    assert (catalog.state(kind, key), approved(catalog)) == ("absent", [])
    offer(catalog, name, [item])  # it comes again, as it was
    assert (catalog.state(kind, key), approved(catalog)) == ("pinned", [item])


def test_pin_of_a_change_approves_what_was_seen() -> None:
    """By then the server may offer a third form, which the user has not seen."""
    catalog = ServerCatalog("a", pins=(define(FIND),))
    catalog.set_list("tools", [FIND_CHANGED])
    assert catalog.comparison is not None
    [(_, seen)] = catalog.comparison.changed
    catalog.set_list("tools", [replace(FIND, description="A third one.")])
    catalog.pin([seen])
    assert catalog.state("tool", "find") == "changed"
    catalog.set_list("tools", [FIND_CHANGED])
    assert catalog.approved_tools() == [FIND_CHANGED]


def test_first_pins_leave_out_what_is_ambiguous() -> None:
    catalog = ServerCatalog("a")
    catalog.set_list("tools", [FIND, READ, FIND_CHANGED])
    assert [each.name for each in catalog.pin_first()] == ["read"]
    assert catalog.state("tool", "find") == "ambiguous"
    assert names(catalog.approved_tools()) == ["read"]


def test_first_pins_of_a_server_without_definitions_are_empty() -> None:
    catalog = ServerCatalog("a")
    assert catalog.pin_first() == ()
    assert not catalog.awaits_first_pins
    catalog.set_list("tools", [READ])  # too late to be pinned unseen
    assert catalog.state("tool", "read") == "new"
    assert catalog.approved_tools() == []


def test_pins_of_an_earlier_run_are_compared_with_what_is_offered() -> None:
    catalog = ServerCatalog("a", pins=(define(READ), define(FIND)))
    assert not catalog.awaits_first_pins
    assert catalog.comparison is not None
    assert names(catalog.comparison.gone) == ["read", "find"]
    catalog.set_list("tools", [READ, FIND_CHANGED])
    assert [catalog.state("tool", name) for name in ("read", "find")] == ["pinned", "changed"]
    assert names(catalog.approved_tools()) == ["read"]


@pytest.mark.parametrize("second", [FIND, FIND_CHANGED])
def test_tool_that_becomes_ambiguous_cannot_be_used(second: Tool) -> None:
    catalog = ServerCatalog("a", pins=(define(FIND),))
    catalog.set_list("tools", [FIND, second])
    is_same = second == FIND
    assert catalog.state("tool", "find") == ("pinned" if is_same else "ambiguous")
    assert names(catalog.approved_tools()) == (["find"] if is_same else [])


def test_entries_that_are_listed_twice_can_be_used_once() -> None:
    catalog = ServerCatalog("a")
    for name, item, _ in LISTS:
        catalog.set_list(name, [item, item])
    catalog.pin_first()
    assert approved(catalog) == [READ, PROMPT, TEMPLATE]


# -- Servers of this program -----------------------------------------------------------------------


def test_server_of_the_program_needs_no_pins() -> None:
    catalog = full(needs_pins=False)
    assert not catalog.awaits_first_pins
    assert catalog.comparison is None
    assert approved(catalog) == [READ, PROMPT, TEMPLATE, TEXT]
    assert catalog.definition("tool", "read") is None
    assert catalog.tool("read") is READ
    catalog.set_list("tools", [FIND])
    assert catalog.state("tool", "find") == "pinned"
    assert catalog.state("tool", "read") == "absent"
    catalog.set_instructions(None)
    assert catalog.instructions == ""
    assert catalog.pin_first() == ()
    assert names(catalog.approved_tools()) == ["find"]


def test_server_of_the_program_may_have_any_definition() -> None:
    catalog = ServerCatalog("a", needs_pins=False)
    found = Tool(name="t", input_schema={"default": float("nan")})
    catalog.set_list("tools", [found])
    assert catalog.problems == {}
    assert catalog.approved_tools() == [found]


def test_limits_by_default_are_above_common_servers() -> None:
    catalog = full(needs_pins=False)
    catalog.set_list("resources", [Resource(name="n", uri=f"x:{n}") for n in range(10_000)])
    catalog.set_list("prompts", [Prompt(name=str(n)) for n in range(1_000)])
    catalog.set_list(
        "resource templates",
        [ResourceTemplate(name="n", uri_template=str(n)) for n in range(1_000)],
    )
    assert catalog.problems == {}
    catalog.set_list("tools", [READ] * 1_001)
    assert catalog.problems == {"tools": "the server lists 1001, and the limit is 1000"}
