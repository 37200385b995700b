"""The lists of one server, and which of its definitions were approved.

1. A list that could not be read keeps the entries that it had, and names the problem. So one list
   that fails takes no other with it.
2. Definitions are compared with the pins whenever a list changes. What isn't pinned as it is must
   not be used, and must not be shown to a model: its description can carry the attack.
3. The first definitions of a server that is approved are pinned once its lists are quiet: some
   servers add tools a moment after they were connected to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from mcp_core._text import escape_text, shorten_text
from mcp_core.host._pins import (
    Definition,
    DefinitionKind,
    PinComparison,
    PinState,
    compare_pins,
    define,
    replace_pins,
)
from mcp_core.host._supervision import CatalogList
from mcp_core.types import Prompt, Resource, ResourceTemplate, Tool

__all__ = ["CatalogLimits", "ServerCatalog"]

_KINDS: Final[Mapping[CatalogList, DefinitionKind]] = {
    "tools": "tool",
    "prompts": "prompt",
    "resource templates": "resource template",
}
_MAX_PROBLEM: Final = 300  # characters
_MAX_LEFT_OUT: Final = 200  # lines about one list; a call has about half of that at most
# Definitions whose digests are computed in one step. They take some milliseconds.
_STEP: Final = 50

_encode: Final = msgspec.json.Encoder().encode


class CatalogLimits(Struct, frozen=True, kw_only=True):
    """Upper bounds on what one server may list. A longer list is a problem, and isn't used.

    Attributes:
        tools: the number of tools; the largest servers of November 2026 have about 200.
        prompts: the number of prompts.
        resources: the number of resources. Servers of files list one for each file.
        resource_templates: the number of resource templates.
        definition: the bytes of one definition as JSON. The largest ones of November 2026 have
            30 KB. What is pinned is compared, shown and stored, and others wait meanwhile.
        definitions: the bytes of all definitions of one list as JSON.
    """

    tools: int = 1_000
    prompts: int = 1_000
    resources: int = 10_000
    resource_templates: int = 1_000
    definition: int = 256 * 1024
    definitions: int = 2 * 1024 * 1024


class ServerCatalog:
    """The lists of one server, its pins, and the differences between both.

    Args:
        server: the server's name.
        pins: the definitions that were approved, or None before the first sight.
        needs_pins: False for a server of this program, whose definitions are all approved.
        limits: the longest lists.

    Attributes:
        server: the server's name.
        problems: why a list isn't up to date, by list. Safe for a terminal.
        left_out: what could not be read of a list, by list: entries, or members of them. Safe for a
            terminal.
    """

    def __init__(
        self,
        server: str,
        *,
        pins: tuple[Definition, ...] | None = None,
        needs_pins: bool = True,
        limits: CatalogLimits | None = None,
    ) -> None:
        self.server = server
        self.problems: dict[CatalogList, str] = {}
        self.left_out: dict[CatalogList, tuple[str, ...]] = {}
        self._limits = limits or CatalogLimits()
        self._needs_pins = needs_pins
        self._pins = pins
        self._lists: dict[CatalogList, Sequence[Any]] = {}
        self._tools: dict[str, Tool] = {}
        self._instructions = ""
        self._current: dict[tuple[DefinitionKind, str], Definition] = {}
        self._definitions: dict[DefinitionKind, tuple[Definition, ...]] = {}
        # By the JSON of an entry, so that one that has changed costs no digest of the others.
        self._known: dict[DefinitionKind, dict[bytes, Definition]] = {}
        self._comparison: PinComparison | None = None
        self._states: dict[tuple[DefinitionKind, str], PinState] = {}
        self._compare()

    def __repr__(self) -> str:
        counts = ", ".join(f"{len(items)} {name}" for name, items in self._lists.items())
        return f"<ServerCatalog of {self.server!r}: {counts or 'empty'}>"

    # -- What the server offers ------------------------------------------------------------------

    @property
    def tools(self) -> Sequence[Tool]:
        """All tools, those included that were not approved."""
        return self._lists.get("tools", ())

    @property
    def prompts(self) -> Sequence[Prompt]:
        """All prompts, those included that were not approved."""
        return self._lists.get("prompts", ())

    @property
    def resources(self) -> Sequence[Resource]:
        """All resources. They are contents rather than definitions, and aren't pinned."""
        return self._lists.get("resources", ())

    @property
    def resource_templates(self) -> Sequence[ResourceTemplate]:
        """All resource templates, those included that were not approved."""
        return self._lists.get("resource templates", ())

    @property
    def instructions(self) -> str:
        """The instructions for the model, or "" without approved instructions."""
        return self._instructions if self.state("instructions", "") == "pinned" else ""

    def set_instructions(self, text: str | None) -> None:
        """Replace the instructions by `text`, or remove them if `text` is None.

        Instructions that are longer, as JSON, than a definition may be count as none.
        """
        try:
            for _ in self._set_definitions("instructions", [text] if text else []):
                pass
        except ValueError:
            self.set_instructions(None)
            return
        self._instructions = text or ""
        self._compare()

    def set_list(self, name: CatalogList, items: Sequence[Any]) -> None:
        """Replace the list `name` by `items`. A list above its limit is a problem instead.

        Call `set_left_out` after it: what was left out of the list before is forgotten.
        """
        for _ in self.set_list_in_steps(name, items):
            pass

    def set_list_in_steps(self, name: CatalogList, items: Sequence[Any]) -> Iterator[None]:
        """Replace the list `name` by `items` as `set_list` does, in steps of 50 new definitions.

        The last step replaces the list. Iterate to the end, and let other tasks run in between: the
        digests of a long list take a tenth of a second.
        """
        limit = getattr(self._limits, name.replace(" ", "_"))
        if len(items) > limit:
            self.set_problem(name, f"the server lists {len(items)}, and the limit is {limit}")
            return
        try:
            yield from self._set_definitions(_KINDS.get(name), items)
        except ValueError as exc:
            self.set_problem(name, f"a definition cannot be compared: {exc}")
            return
        self.problems.pop(name, None)
        self.left_out.pop(name, None)
        self._lists[name] = items
        if name == "tools":
            self._tools = {tool.name: tool for tool in items}
        self._compare()

    def set_problem(self, name: CatalogList, problem: str) -> None:
        """Keep the `problem` with which the list `name` was read. Its entries stay as they were."""
        self.problems[name] = escape_text(shorten_text(problem, _MAX_PROBLEM))

    def set_left_out(self, name: CatalogList, problems: Iterable[str]) -> None:
        """Keep what was left out of the list `name`, as its call says in `problems`.

        Of more than 200 lines, the last one says how many there were.
        """
        self.left_out.pop(name, None)
        lines = list(problems)
        if len(lines) > _MAX_LEFT_OUT:
            lines[_MAX_LEFT_OUT - 1 :] = [f"{len(lines) - _MAX_LEFT_OUT + 1} more lines"]
        if lines:
            found = (escape_text(shorten_text(each, _MAX_PROBLEM)) for each in lines)
            self.left_out[name] = tuple(found)

    def unread(self, name: CatalogList) -> str:
        """Return why the list `name` isn't up to date or complete, as a phrase, or "" if it is."""
        problem = self.problems.get(name)
        if problem:
            return f"its {name} could not be read: {problem}"
        lines = self.left_out.get(name)
        if not lines:
            return ""
        more = f", and {len(lines) - 1} more" if len(lines) > 1 else ""
        return f"not all of its {name} could be read: {lines[0]}{more}"

    # -- Pins -----------------------------------------------------------------------

    @property
    def pins(self) -> tuple[Definition, ...] | None:
        """The definitions that were approved, or None before the first sight."""
        return self._pins

    @property
    def comparison(self) -> PinComparison | None:
        """The differences from the pins, or None for a server of this program."""
        return self._comparison

    @property
    def awaits_first_pins(self) -> bool:
        """True if nothing was pinned yet, so that nothing can be used."""
        return self._needs_pins and self._pins is None

    def pin(self, definitions: Iterable[Definition]) -> tuple[Definition, ...]:
        """Approve `definitions`, and return the new pins.

        Pass those that the user has seen: what the server offers may have changed meanwhile.
        """
        pins = replace_pins(self._pins, definitions)
        self.set_pins(pins)
        return pins

    def pin_first(self) -> tuple[Definition, ...]:
        """Approve all that is offered now, at the first sight, and return the new pins.

        What the server lists several times with different definitions is left out.
        """
        comparison = self._comparison
        return self.pin(() if comparison is None else comparison.new)

    def set_pins(self, pins: tuple[Definition, ...] | None) -> bool:
        """Replace the pins by `pins`, those that are stored. Return True if they are other ones."""
        if pins == self._pins:
            return False
        self._pins = pins
        self._compare()
        return True

    def state(self, kind: DefinitionKind, name: str) -> PinState:
        """Return whether a definition is pinned as it is, has changed, is new, or isn't offered.

        Args:
            kind: a tool, a prompt, a resource template, or the instructions.
            name: the name at the server, the URI template, or "" for instructions.
        """
        return self._states.get((kind, name), "absent")

    def definition(self, kind: DefinitionKind, name: str) -> Definition | None:
        """Return the definition that is offered now, or None if it isn't offered.

        None also for a server of this program: its definitions aren't computed. `kind` and `name`
        are as for `state`.
        """
        return self._current.get((kind, name))

    def tool(self, name: str) -> Tool | None:
        """Return the server's tool `name`, or None if it isn't offered."""
        return self._tools.get(name)

    def approved_tools(self) -> list[Tool]:
        """Return the tools that were approved as they are."""
        return [tool for tool in self._tools.values() if self.state("tool", tool.name) == "pinned"]

    def approved_prompts(self) -> list[Prompt]:
        """Return the prompts that were approved as they are."""
        prompts = {each.name: each for each in self.prompts}
        return [each for name, each in prompts.items() if self.state("prompt", name) == "pinned"]

    def approved_templates(self) -> list[ResourceTemplate]:
        """Return the resource templates that were approved as they are."""
        templates = {each.uri_template: each for each in self.resource_templates}
        return [
            each
            for uri, each in templates.items()
            if self.state("resource template", uri) == "pinned"
        ]

    def _set_definitions(self, kind: DefinitionKind | None, items: Sequence[Any]) -> Iterator[None]:
        """Compute the definitions of a list, in steps.

        Raises:
            ValueError: a definition, or all together, are too large, or cannot be compared.
        """
        if kind is None or not self._needs_pins:
            return
        try:
            encoded = [(_encode(item), item) for item in items]
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        limits = self._limits
        for data, _ in encoded:
            if len(data) > limits.definition:
                raise ValueError(f"{len(data)} bytes, and the limit is {limits.definition}")
        size = sum(len(data) for data, _ in encoded)
        if size > limits.definitions:
            raise ValueError(f"{size} bytes in all, and the limit is {limits.definitions}")
        known = self._known.get(kind, {})
        found: dict[bytes, Definition] = {}
        computed = 0
        for data, item in encoded:
            if data in found:
                continue
            definition = known.get(data)
            if definition is None:
                if computed == _STEP:
                    yield
                    computed = 0
                definition = define(item)
                computed += 1
            found[data] = definition
        self._known[kind] = found
        self._definitions[kind] = tuple(found[data] for data, _ in encoded)

    def _compare(self) -> None:
        if not self._needs_pins:
            self._states = {("tool", tool.name): "pinned" for tool in self.tools}
            self._states |= {("prompt", each.name): "pinned" for each in self.prompts}
            self._states |= {
                ("resource template", each.uri_template): "pinned"
                for each in self.resource_templates
            }
            self._states["instructions", ""] = "pinned"
            return
        offered = [each for group in self._definitions.values() for each in group]
        self._current = {each.key: each for each in offered}
        self._comparison = compare_pins(self._pins, offered)
        self._states = self._comparison.states()
