"""The comparison of two contracts: what has changed, and whether it breaks a server's users."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from mcp_core._nesting import depth_exceeds

from ._contract import KEYS, Contract, ServerOffers
from ._documents import ANNOTATIONS, MAX_STEPS, mapping
from ._schemas import Direction, compare_schemas, new_members

__all__ = ["RULES", "ContractChange", "Verdict", "compare_contracts", "worst_verdict"]

# What a change means for users of the server.
Verdict: TypeAlias = Literal["breaking", "unclear", "compatible"]

# Steps for all schemas of a contract: a few seconds. Further ones are unclear.
_MAX_TOTAL_STEPS: Final = 500_000
_MAX_CHANGES: Final = 10_000
_INPUT: Final = Direction(is_input=True)
_OUTPUT: Final = Direction(is_input=False)
_encode: Final = msgspec.json.Encoder(order="sorted").encode

# What a change means if it isn't in a schema. The page about contracts has the same table.
RULES: Final[dict[str, Verdict]] = {
    "the server no longer speaks it": "breaking",
    "is new": "compatible",
    "is gone": "breaking",
    "is in the list twice": "unclear",
    "promises an output": "compatible",
    "no longer says what its output is": "breaking",
    "is no longer read-only": "breaking",
    "can be destructive now": "breaking",
    "is no longer idempotent": "breaking",
    "can reach the outside now": "breaking",
    "is less dangerous": "compatible",
    "no longer runs as a task": "breaking",
    "has to run as a task": "breaking",
    "can run as a task, too": "compatible",
    "no longer has to run as a task": "compatible",
    "the argument is required now": "breaking",
    "a new argument is required": "breaking",
    "the argument is optional now": "compatible",
    "a new argument is optional": "compatible",
    "the argument is gone": "unclear",
    "has another MIME type": "unclear",
    "has another default": "unclear",
    "names its default": "unclear",
    "no longer names its default": "unclear",
    "has another default, and was required": "compatible",
    "a scope is gone": "breaking",
    "a scope is new": "unclear",
    "accepts more": "compatible",
    "promises more": "compatible",
    "is a new member": "compatible",
    "is written differently": "compatible",
    "has another text": "compatible",
}
_NOUNS: Final = {
    "tools": "tool",
    "prompts": "prompt",
    "resourceTemplates": "resource template",
    "resources": "resource",
}
_TEXTS: Final = ("title", "description", "icons", "name")
# Keywords of a schema that people and models read.
_SCHEMA_TEXTS: Final = ANNOTATIONS - {"$defs", "definitions", "$schema", "default", "$id", "id"}
_SAME_VALUE: Final = ("allOf", "anyOf", "oneOf")  # their schemas describe the same value
_MAPS: Final = ("properties", "$defs", "definitions", "patternProperties")  # schemas by name
_VALUES: Final = ("enum", "const")  # they hold values, whose members aren't keywords
_TASK_SUPPORT: Final = ("forbidden", "optional", "required")


class ContractChange(Struct, frozen=True, kw_only=True):
    """A change of a contract.

    Attributes:
        verdict: "breaking", "compatible", or "unclear" if it may be either.
        what: what has changed, such as `tool search`.
        place: where in it, such as `input days[0]`, or "".
        sentence: how it has changed.
        revision: the revision of the protocol; "" for scopes, which are the same in all.
        example: of a schema's breaking change, a whole document that shows it, as JSON; else "".
        old: a text before, or None.
        new: a text of today, or None.
    """

    verdict: Verdict
    what: str
    place: str = ""
    sentence: str
    revision: str
    example: str = ""
    old: str | None = None
    new: str | None = None


def worst_verdict(changes: Iterable[ContractChange]) -> Verdict:
    """Return the verdict about all changes: breaking, else unclear, else compatible.

    Args:
        changes: the changes; without any, they are compatible.
    """
    found = {each.verdict for each in changes}
    verdicts: tuple[Verdict, ...] = ("breaking", "unclear")
    return next((each for each in verdicts if each in found), "compatible")


def compare_contracts(old: Contract, new: Contract) -> list[ContractChange]:
    """Return the changes from an earlier contract to a later one, the first 10,000.

    Args:
        old: the earlier contract. Its revisions are compared.
        new: the later one. A list that only one of the two has isn't compared.
    """
    comparison = _ContractComparison()
    for revision, offers in old.offers.items():
        comparison.revision = revision
        if revision not in new.offers:
            comparison.add(f"revision {revision}", "the server no longer speaks it")
        else:
            comparison.compare(offers, new.offers[revision])
    comparison.revision = ""
    if old.server and new.server and old.server != new.server:
        comparison.add("server", "has another text", "name", old=old.server, new=new.server)
    if old.scopes is not None and new.scopes is not None:
        comparison.compare_scopes(old.scopes, new.scopes)
    return comparison.changes


class _ContractComparison:
    """The changes of one contract, as they are found."""

    def __init__(self) -> None:
        self.changes: list[ContractChange] = []
        self.revision: str  # of the changes that are added
        self._steps = _MAX_TOTAL_STEPS

    def add(
        self,
        what: str,
        sentence: str,
        place: str = "",
        *,
        verdict: Verdict | None = None,
        example: str = "",
        old: Any = None,
        new: Any = None,
    ) -> None:
        """Add a change. Without `verdict`, `RULES` has it by the sentence."""
        if len(self.changes) < _MAX_CHANGES:
            change = ContractChange(
                verdict=verdict or RULES[sentence],
                what=what,
                place=place,
                sentence=sentence,
                revision=self.revision,
                example=example,
                old=_text(old),
                new=_text(new),
            )
            self.changes.append(change)

    def compare(self, old: ServerOffers, new: ServerOffers) -> None:
        """Compare what a server offers in one revision."""
        if old.capabilities is not None and new.capabilities is not None:
            for name in sorted({*old.capabilities, *new.capabilities}):
                if name not in new.capabilities:
                    self.add(f"capability {name}", "is gone")
                elif name not in old.capabilities:
                    self.add(f"capability {name}", "is new")
        texts = old.instructions or None, new.instructions or None
        self._add_text("server", "instructions", *texts)
        for kind, noun in _NOUNS.items():
            if kind in old.lists and kind in new.lists:
                self._compare_lists(kind, noun, old.lists[kind], new.lists[kind])

    def compare_scopes(self, old: Iterable[str], new: Iterable[str]) -> None:
        """Compare the scopes that a protected server supports."""
        before, after = set(old), set(new)
        for scope in sorted(before ^ after):
            self.add(f"scope {scope}", "a scope is gone" if scope in before else "a scope is new")

    def _compare_lists(
        self, kind: str, noun: str, old: list[dict[str, Any]], new: list[dict[str, Any]]
    ) -> None:
        key = KEYS[kind]
        before, after = (_by_key(key, entries) for entries in (old, new))
        for name in sorted(before.keys() | after.keys()):
            what = f"{noun} {name}"
            if name not in after:
                self.add(what, "is gone")
                continue
            if name not in before:
                self.add(what, "is new")
                continue
            if _encode(before[name]) != _encode(after[name]):
                if len(after[name]) > 1:  # which one do users get?
                    self.add(what, "is in the list twice")
                self._compare_entry(kind, what, before[name][-1], after[name][-1])

    def _compare_entry(
        self, kind: str, what: str, old: dict[str, Any], new: dict[str, Any]
    ) -> None:
        if kind == "tools":
            self._compare_tool(what, old, new)
        elif kind == "prompts":
            self._compare_arguments(what, old.get("arguments"), new.get("arguments"))
        elif old.get("mimeType") != new.get("mimeType"):
            types = old.get("mimeType"), new.get("mimeType")
            self.add(what, "has another MIME type", old=types[0], new=types[1])
        for member in _TEXTS:
            self._add_text(what, member, old.get(member), new.get(member))

    def _compare_tool(self, what: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        self._compare_schema(what, "input", _INPUT, old.get("inputSchema"), new.get("inputSchema"))
        before, after = old.get("outputSchema"), new.get("outputSchema")
        if before is None and after is not None:
            self.add(what, "promises an output")
        elif before is not None and after is None:
            self.add(what, "no longer says what its output is")
        elif before is not None:
            self._compare_schema(what, "output", _OUTPUT, before, after)
        hints = mapping(old.get("annotations")), mapping(new.get("annotations"))
        self._compare_hints(what, *hints)
        self._add_text(what, "annotations.title", hints[0].get("title"), hints[1].get("title"))
        self._compare_task_support(what, old.get("execution"), new.get("execution"))

    def _compare_hints(self, what: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        before, after = _dangers(old), _dangers(new)
        for sentence in before:
            if after[sentence] and not before[sentence]:
                self.add(what, sentence, "annotations")
        if before != after and not any(after[each] and not before[each] for each in before):
            self.add(what, "is less dangerous", "annotations", old=old or None, new=new or None)

    def _compare_task_support(self, what: str, old: Any, new: Any) -> None:
        before, after = (mapping(each).get("taskSupport") or "forbidden" for each in (old, new))
        if before == after or {before, after} - {*_TASK_SUPPORT}:
            return
        if after == "required":
            self.add(what, "has to run as a task", "execution")
        elif after == "forbidden":
            self.add(what, "no longer runs as a task", "execution")
        elif before == "required":
            self.add(what, "no longer has to run as a task", "execution")
        else:
            self.add(what, "can run as a task, too", "execution")

    def _compare_arguments(self, what: str, old: Any, new: Any) -> None:
        before, after = _arguments(old), _arguments(new)
        for name in sorted(before.keys() | after.keys()):
            place = f"argument {name}"
            if name not in after:
                self.add(what, "the argument is gone", place)
                continue
            needs = after[name].get("required") is True
            if name not in before:
                sentence = f"a new argument is {'required' if needs else 'optional'}"
                self.add(what, sentence, place)
                continue
            if needs is not (before[name].get("required") is True):
                sentence = f"the argument is {'required' if needs else 'optional'} now"
                self.add(what, sentence, place)
            for member in "title", "description":
                texts = before[name].get(member), after[name].get(member)
                self._add_text(f"{what}, {place}", member, *texts)

    def _compare_schema(
        self, what: str, side: str, direction: Direction, old: Any, new: Any
    ) -> None:
        is_deep = depth_exceeds([old, new])
        differ = is_deep or _without_texts(old) != _without_texts(new)
        limit = min(self._steps, MAX_STEPS)
        found, left = compare_schemas(old, new, direction, steps=limit) if differ else ([], limit)
        self._steps -= limit - left
        for each in found:
            self.add(
                what,
                each.sentence,
                f"{side} {each.place}".rstrip(),
                verdict="breaking" if each.is_certain else "unclear",
                example=msgspec.json.encode(each.example).decode() if each.is_certain else "",
            )
        if is_deep:
            return  # unclear
        texts = list(_schema_texts(old, new, ""))
        for place, key, before, after, was_required in texts:
            where = f"{side} {place}".rstrip()
            if key == "default" and direction.is_input:
                sentence = _default_sentence(before, after, was_required=was_required)
                self.add(what, sentence, where, old=before, new=after)
            else:
                self._add_text(f"{what}, {where}", key, before, after)
        if differ and not found:
            self._add_compatible(what, side, direction, old, new)

    def _add_compatible(
        self, what: str, side: str, direction: Direction, old: Any, new: Any
    ) -> None:
        """Add where an input has become wider, or an output narrower."""
        limit = min(self._steps, MAX_STEPS)
        # The same question in the other direction: what would break if the change were undone.
        found, left = compare_schemas(new, old, direction, steps=limit)
        self._steps -= limit - left
        limit = min(self._steps, MAX_STEPS)
        members, left = new_members(old, new, steps=limit)
        self._steps -= limit - left
        for place, name in members:
            where = f"{side} {place}.{name}" if place else f"{side} {name}"
            self.add(what, "is a new member", where)
        places = {each.place: None for each in found if each.is_certain or not members}
        sentence = "accepts more" if direction.is_input else "promises more"
        for place in places:
            self.add(what, sentence, f"{side} {place}".rstrip())
        if not members and not places:
            self.add(what, "is written differently", side)

    def _add_text(self, what: str, member: str, old: Any, new: Any) -> None:
        if old != new and (old or new):
            self.add(what, "has another text", member, old=old, new=new)


def _by_key(key: str, entries: Iterable[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the entries by their key, sorted as they are. Equal ones are one, as in a file."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in entries:
        mine = found.setdefault(each[key], [])
        if not mine or mine[-1] != each:
            mine.append(each)
    return found


def _dangers(hints: Mapping[str, Any]) -> dict[str, bool]:
    """Return what a tool's hints permit it, by the sentence for what is new.

    Absent hints mean: not read-only, destructive, not idempotent, open world. Two of them count
    only if the tool isn't read-only (schema, ToolAnnotations).
    """
    writes = hints.get("readOnlyHint") is not True
    return {
        "is no longer read-only": writes,
        "can be destructive now": writes and hints.get("destructiveHint") is not False,
        "is no longer idempotent": writes and hints.get("idempotentHint") is not True,
        "can reach the outside now": hints.get("openWorldHint") is not False,
    }


def _arguments(arguments: Any) -> dict[str, dict[str, Any]]:
    found = arguments if isinstance(arguments, list) else []
    return {
        each["name"]: each
        for each in found
        if isinstance(each, dict) and isinstance(each.get("name"), str)
    }


def _default_sentence(old: Any, new: Any, *, was_required: bool) -> str:
    """Return what has happened to the default of an input. None stands for no default.

    Callers that leave the member out may get something else now. No caller of a required one could.
    """
    if was_required:
        return "has another default, and was required"
    if old is None:
        return "names its default"
    return "no longer names its default" if new is None else "has another default"


def _schema_texts(
    old: Any, new: Any, place: str, *, was_required: bool = False
) -> Iterator[tuple[str, str, Any, Any, bool]]:
    """Yield each annotation that differs in the same place.

    It is the place, the keyword, both values, and whether `old` describes a required member.
    """
    if isinstance(old, list) and isinstance(new, list):
        for before, after in zip(old, new, strict=False):
            yield from _schema_texts(before, after, place, was_required=was_required)
    if not isinstance(old, dict) or not isinstance(new, dict):
        return
    for key in sorted({*old, *new}):
        before, after = old.get(key), new.get(key)
        if key in _SCHEMA_TEXTS or key == "default":
            if before != after:
                yield place, key, before, after, was_required
        elif key in _MAPS:
            required = old.get("required") if key == "properties" else None
            for name in sorted(mapping(before).keys() & mapping(after).keys()):
                inner = f"{place}.{name}" if place else name
                needed = isinstance(required, list) and name in required
                both = mapping(before)[name], mapping(after)[name]
                yield from _schema_texts(*both, inner, was_required=needed)
        elif key not in _VALUES:
            inner = f"{place}[]" if key == "items" else place
            needed = was_required and key in _SAME_VALUE
            yield from _schema_texts(before, after, inner, was_required=needed)


def _without_texts(schema: Any, *, is_map: bool = False) -> Any:
    if isinstance(schema, list):
        return [_without_texts(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value
        if not is_map and key in _VALUES
        else _without_texts(value, is_map=not is_map and key in _MAPS)
        for key, value in schema.items()
        if is_map or (key not in _SCHEMA_TEXTS and key != "default")
    }


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()
