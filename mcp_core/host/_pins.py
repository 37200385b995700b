"""Pins: what a server offers, as it was when the user approved it.

1. A definition is what a model or user reads of a tool, a prompt, a template or the instructions. A
   tool must not be called if its definition isn't pinned, or has changed.
2. The digest is computed here. A server's own digest, as in the draft of definition digests, is one
   opaque text for a whole list: a server that changes a tool can repeat it. Only the form is the
   same: "sha256:" and hex digits.
3. A pin keeps the definition itself too, so that a change can be shown.

Source: RFC 8785 for the digest.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from mcp_core._nesting import depth_exceeds
from mcp_core._text import escape_text
from mcp_core.types import Prompt, ResourceTemplate, Tool

from ._canonical_json import digest_json, is_double

__all__ = [
    "Definition",
    "DefinitionKind",
    "PinComparison",
    "PinState",
    "compare_pins",
    "define",
    "describe_definition",
    "describe_definition_change",
    "replace_pins",
]

# The kinds of what a server describes.
DefinitionKind: TypeAlias = Literal["tool", "prompt", "resource template", "instructions"]
# "pinned": as it was approved; "changed": pinned with another definition; "new": without a pin;
# "ambiguous": listed several times with different definitions; "absent": not offered.
PinState: TypeAlias = Literal["pinned", "changed", "new", "ambiguous", "absent"]

# Icons and `_meta` are left out: no model, user or host decides by them. `execution` counts: it
# says whether a call runs as a task.
_MEMBERS: Final[Mapping[DefinitionKind, Sequence[str]]] = {
    "tool": (
        *("name", "title", "description", "inputSchema", "outputSchema", "annotations"),
        "execution",
    ),
    "prompt": ("name", "title", "description", "arguments"),
    "resource template": (
        *("uriTemplate", "name", "title", "description", "mimeType"),
        "annotations",
    ),
    "instructions": ("instructions",),
}
_TEMPLATE: Final = "resource template"
_TOO_DEEP: Final = "the definition is nested too deeply"
_CONTEXT: Final = 2  # unchanged lines that are shown around a change
_MAX_LINE: Final = 160  # characters; a longer text is broken after a sentence
_SENTENCE_END: Final = re.compile(r"(?<=[.!?;] )")
# Pairs of lines. Above it a difference isn't searched for: that takes quadratic time, and a server
# chooses how long its texts are.
_MAX_COMPARED: Final = 250_000

_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


class Definition(Struct, frozen=True):
    """A tool, prompt, template or the instructions, as a server describes it. `define` makes one.

    Attributes:
        kind: a tool, a prompt, a resource template, or the instructions.
        name: the name at the server, the URI template of a template, and "" for instructions.
        members: the members that count, by their JSON names.
        digest: the SHA-256 of the canonical JSON of `members`, as "sha256:" and hex digits.
    """

    kind: DefinitionKind
    name: str
    members: dict[str, Any]
    digest: str

    @property
    def key(self) -> tuple[DefinitionKind, str]:
        """The kind and the name, which identify a definition at its server."""
        return self.kind, self.name


def define(offered: Tool | Prompt | ResourceTemplate | str) -> Definition:
    """Return the definition of what is `offered`: an entry of a list, or the instructions.

    Raises:
        ValueError: the definition is nested more than 200 deep, or has a number that isn't JSON.
    """
    kind: DefinitionKind
    if isinstance(offered, str):
        kind, name, found = "instructions", "", {"instructions": offered}
    else:
        if isinstance(offered, Tool):
            kind, name = "tool", offered.name
        elif isinstance(offered, Prompt):
            kind, name = "prompt", offered.name
        else:
            kind, name = _TEMPLATE, offered.uri_template
        try:
            found = msgspec.to_builtins(offered)
        except RecursionError:
            raise ValueError(_TOO_DEEP) from None
    members = {member: found[member] for member in _MEMBERS[kind] if member in found}
    if depth_exceeds(members):
        raise ValueError(_TOO_DEEP)
    try:
        digest = digest_json(members)
    except ValueError:
        # Large integers are common: schemas of Rust programs have the maximum 2^64 - 1.
        members = _exact(members)
        digest = digest_json(members)
    return Definition(kind, name, members, digest)


def _exact(value: Any) -> Any:
    """Return `value` with a text for each integer that isn't a double (RFC 8785, appendix D).

    Halves of surrogate pairs, which only a server in this process can send, become escapes.
    """
    if isinstance(value, dict):
        return {_exact(name): _exact(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    if isinstance(value, int) and not is_double(value):
        return f"{value:#x}" if value.bit_length() > 1024 else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value


class PinComparison(Struct, frozen=True):
    """The difference between what is pinned and what a server offers now.

    Attributes:
        is_first_sight: nothing was pinned yet, so all that is offered is new.
        unchanged: definitions that are pinned as they are.
        changed: pairs of the pinned and the present definition.
        new: definitions without a pin.
        gone: pinned definitions that aren't offered now.
        ambiguous: definitions that are listed several times and differ. None of them may be pinned:
            the user would see one, and the model another.
    """

    is_first_sight: bool
    unchanged: tuple[Definition, ...]
    changed: tuple[tuple[Definition, Definition], ...]
    new: tuple[Definition, ...]
    gone: tuple[Definition, ...]
    ambiguous: tuple[Definition, ...]

    @property
    def offered(self) -> tuple[Definition, ...]:
        """All definitions that are offered now."""
        changed = (new for _, new in self.changed)
        return (*self.unchanged, *changed, *self.new, *self.ambiguous)

    @property
    def needs_approval(self) -> bool:
        """True if something is offered that wasn't approved as it is."""
        return bool(self.changed or self.new or self.ambiguous)

    def states(self) -> dict[tuple[DefinitionKind, str], PinState]:
        """Return the state of each definition that is offered, by its `Definition.key`."""
        found: dict[tuple[DefinitionKind, str], PinState] = {}
        found |= dict.fromkeys((each.key for each in self.unchanged), "pinned")
        found |= dict.fromkeys((each.key for _, each in self.changed), "changed")
        found |= dict.fromkeys((each.key for each in self.new), "new")
        found |= dict.fromkeys((each.key for each in self.ambiguous), "ambiguous")
        return found


def compare_pins(pins: Iterable[Definition] | None, offered: Iterable[Definition]) -> PinComparison:
    """Compare the `pins` of a server with the definitions `offered` by it now.

    `pins` is None if nothing was pinned yet: then all definitions are new.
    """
    pinned = {pin.key: pin for pin in pins or ()}
    now: dict[tuple[DefinitionKind, str], Definition] = {}
    ambiguous: dict[tuple[DefinitionKind, str], dict[str, Definition]] = {}
    for each in offered:
        first = now.setdefault(each.key, each)
        if first.digest != each.digest:
            ambiguous.setdefault(each.key, {first.digest: first})[each.digest] = each
    clear = [each for key, each in now.items() if key not in ambiguous]
    old = {each.key: pinned[each.key] for each in clear if each.key in pinned}
    old |= _respelled(
        [each for each in clear if each.key not in old],
        [pin for key, pin in pinned.items() if key not in now],
    )
    found = {pin.key for pin in old.values()}
    known = [(old[each.key], each) for each in clear if each.key in old]
    return PinComparison(
        is_first_sight=pins is None,
        unchanged=tuple(each for pin, each in known if each.digest == pin.digest),
        changed=tuple((pin, each) for pin, each in known if each.digest != pin.digest),
        new=tuple(each for each in clear if each.key not in old),
        gone=tuple(pin for key, pin in pinned.items() if key not in now and key not in found),
        ambiguous=tuple(each for group in ambiguous.values() for each in group.values()),
    )


def _respelled(
    new: Iterable[Definition], gone: Iterable[Definition]
) -> dict[tuple[DefinitionKind, str], Definition]:
    """Return the pins of resource templates that are only spelled otherwise now, by the new key.

    The spelling is a member, so such a template has changed. It has to be approved again.
    """
    pins = {pin.name: pin for pin in gone if pin.kind == _TEMPLATE}
    if not pins:
        return {}
    from mcp_core.urls._normal_uri import UriSpellings, normal_template  # on first use: it is rare

    spellings = UriSpellings(pins, normal_template)
    found = [(each, spellings.find(each.name)) for each in new if each.kind == _TEMPLATE]
    counts = Counter(name for _, name in found)
    return {each.key: pins[name] for each, name in found if name is not None and counts[name] == 1}


def replace_pins(
    pins: Iterable[Definition] | None, approved: Iterable[Definition]
) -> tuple[Definition, ...]:
    """Return `pins` with the `approved` definitions in place of the pins with the same names.

    Pins of what is gone stay: a tool that returns is compared with its pin.
    """
    found = {pin.key: pin for pin in pins or ()}
    found |= {each.key: each for each in approved}
    return tuple(found.values())


def describe_definition(
    definition: Definition, limit: int | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the lines of a `definition` with "+" before each, as `describe_definition_change`."""
    empty = Definition(definition.kind, definition.name, {}, "")
    yield from describe_definition_change(empty, definition, limit)


def describe_definition_change(
    old: Definition, new: Definition, limit: int | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the lines by which two definitions differ, each with "-", "+" or " " before it.

    Only members that differ are shown, each below a line with its name. Hidden characters are
    escapes, so the lines are safe for a terminal. Texts are quoted: spaces at their end show.

    Args:
        old: the pinned definition.
        new: the present definition.
        limit: the number of lines after which a last one, with "!" before it, says how many are
            left out; None for all lines. Do not let a user approve what was left out.
    """
    left_out = 0
    shown = 0
    for sign, line in _changed_lines(old, new):
        if limit is None or shown < limit:
            shown += 1
            yield sign, escape_text(line)
        else:
            left_out += 1
    if left_out:
        yield "!", f"{left_out} more {'line is' if left_out == 1 else 'lines are'} not shown"


def _changed_lines(old: Definition, new: Definition) -> Iterator[tuple[str, str]]:
    for member in _MEMBERS[new.kind]:
        before, after = (each.members.get(member) for each in (old, new))
        if before == after and _lines(before) == _lines(after):  # 1 == True, but not as JSON
            continue
        yield " ", f"{member}:"
        yield from _line_difference(_lines(before), _lines(after))


def _lines(value: Any) -> list[str]:
    """Return a member as lines: a text by line and sentence, anything else as indented JSON."""
    if value is None:
        return []
    if isinstance(value, str):
        pieces = [piece for line in value.splitlines(keepends=True) for piece in _sentences(line)]
        return [f"  {_quote(piece)}" for piece in pieces or [""]]
    text = msgspec.json.format(_encode_sorted(value), indent=2).decode()
    return [f"  {piece}" for line in text.split("\n") for piece in _sentences(line)]


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _sentences(line: str) -> list[str]:
    """Break a long line after its sentences, so that a change in one of them stands alone."""
    if len(line) <= _MAX_LINE:
        return [line]
    return [piece for piece in _SENTENCE_END.split(line) if piece]


def _line_difference(before: list[str], after: list[str]) -> Iterator[tuple[str, str]]:
    if len(before) * len(after) > _MAX_COMPARED:
        yield from (("-", line) for line in before)
        yield from (("+", line) for line in after)
        return
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for number, group in enumerate(matcher.get_grouped_opcodes(_CONTEXT)):
        if number:
            yield " ", "  …"
        for kind, start, end, new_start, new_end in group:
            if kind == "equal":
                yield from ((" ", line) for line in before[start:end])
            else:
                yield from (("-", line) for line in before[start:end])
                yield from (("+", line) for line in after[new_start:new_end])
