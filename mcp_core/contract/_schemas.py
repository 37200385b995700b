"""Schemas: whether every document of one is a document of another one.

An input's documents of before must be accepted now, and an output's documents of now must have been
possible before. So there is one question, with two directions: does the `wide` schema accept all
that the `narrow` one does?

1. Nothing found is a proof, keyword by keyword, that it does.
2. A finding with an example is certain: `narrow` accepts the example, and `wide` refuses it. All
   examples are whole documents, so it doesn't matter how they were found.
3. Every other finding is unclear. So are patterns, formats, conditions and other keywords that
   differ, and references that aren't JSON pointers within the schema.
4. A member that isn't described is taken to be unused. Otherwise no argument could ever be added to
   a schema that permits other members. If `additionalProperties` says so, or the object has no
   `properties` at all, its members are data, and do count. So are members that it requires, and
   those that another part of it describes: each part of an `allOf`, and a condition, sees all.
5. If an alternative accepts what another one described, and doesn't describe it, that proves
   nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import msgspec

from ._documents import (
    MAX_DEPTH,
    MAX_STEPS,
    NO_SCHEMA,
    SchemaRoot,
    TooComplex,
    array_parts,
    is_number,
    mapping,
    same,
    without_annotations,
)
from ._keywords import (
    OF_SOME_DIALECTS,
    all_members,
    beyond,
    bound_of,
    count_of,
    counted_items,
    described_members,
    first_items,
    has_any,
    has_kind,
    has_references,
    is_length,
    is_multiple_of,
    listed_values,
    merge_parts,
    of_type,
    refers_to_definitions,
    required_names,
    show_values,
    size_of,
    types_of,
    unused_name,
    with_names,
    with_parts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Direction", "SchemaFinding", "compare_schemas", "new_members"]

_MAX_FINDINGS: Final = 100  # of one pair of schemas
_MAX_EXAMPLES: Final = 50  # that are tried for one of them
_encode: Final = msgspec.json.Encoder(order="sorted").encode
# Keywords that say nothing else than what they say: if both have them, they must be equal.
_EQUAL_OR_UNCLEAR: Final = {
    "object": (
        *("dependencies", "dependentRequired", "dependentSchemas", "propertyNames"),
        "unevaluatedProperties",
    ),
    "array": ("unevaluatedItems",),
    "string": ("pattern", "format", "contentEncoding", "contentMediaType"),
    "number": (),
}
_ALWAYS_EQUAL_OR_UNCLEAR: Final = (
    *("not", "if", "then", "else", "$dynamicRef", "$recursiveRef"),
    *("disallow", "divisibleBy", "extends"),
)
# Keywords that mean nothing if their value is of another type. Validators differ about them.
_KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(("allOf", "prefixItems"), list),
    "properties": dict,
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minProperties"),
        (int, float),
    ),
    "maxProperties": (int, float),
}
# They look at all keywords beside them.
_NEEDS_EQUAL_SCHEMA: Final = ("unevaluatedProperties", "unevaluatedItems")


class Direction(NamedTuple):
    """The sentences for findings about inputs, or about outputs."""

    is_input: bool

    def sentence(self, kind: str, detail: str) -> str:
        """Return what has changed, for a user."""
        return _SENTENCES[kind][0 if self.is_input else 1].format(detail)


_SENTENCES: Final = {
    "type": ("no longer accepts {}", "can be {} now"),
    "value": ("no longer accepts {}", "can be {} now"),
    "only": ("accepts only {} now", "can be other than {} now"),
    "required": ("requires {} now", "can be without {} now"),
    "member": ("no longer accepts the member {}", "can have the member {} now"),
    "members": ("accepts no other members now", "can have other members now"),
    "bound": ("has a narrower {}", "has a wider {}"),
    "unique": ("accepts no equal items now", "can have equal items now"),
    "keyword": ("has another {}", "has another {}"),
    "choice": ("has other alternatives in {}", "has other alternatives in {}"),
    "nothing": ("accepts nothing now", "can have a value now"),
    "undescribed": ("no longer describes {}, and may ignore it",) * 2,
    "reference": (
        "has a reference or a keyword that cannot be followed",
        "has a reference or a keyword that cannot be followed",
    ),
    "depth": ("is too deep to be compared", "is too deep to be compared"),
    "complex": ("is too complex to be compared", "is too complex to be compared"),
    "root": ("cannot be compared: {}", "cannot be compared: {}"),
}


class SchemaFinding(NamedTuple):
    """A place where a schema is narrower than it has to be, or where that is unclear.

    Attributes:
        place: the place in the document, such as `days[0].from`; "" for the whole document.
        sentence: what has changed there.
        is_certain: the schema refuses `example`.
        example: a whole document that shows it, decoded JSON; None if `is_certain` is False.
    """

    place: str
    sentence: str
    is_certain: bool
    example: Any


class _DocumentPlace(NamedTuple):
    """A place in documents: its name, the whole document around a value there, its depth."""

    name: str
    document: Callable[[Any], Any]
    level: int

    def inner(self, name: str, document: Callable[[Any], Any]) -> _DocumentPlace:
        """Return a place in the value here. `document` makes the value of an inner one."""
        outer = self.document
        return _DocumentPlace(name, lambda value: _outer(outer, document(value)), self.level + 1)


def _outer(document: Callable[[Any], Any], value: Any) -> Any:
    return NO_SCHEMA if value is NO_SCHEMA or value is None else document(value[0])


class _Raw(NamedTuple):
    """A finding whose examples haven't been tried yet."""

    place: str
    kind: str
    detail: str
    examples: tuple[Any, ...]


_Proof: TypeAlias = Callable[[], None]


def compare_schemas(
    old: Any, new: Any, direction: Direction, *, steps: int = MAX_STEPS
) -> tuple[list[SchemaFinding], int]:
    """Return where a schema has changed so that it breaks its users, and the steps that are left.

    Args:
        old: the earlier schema, decoded JSON.
        new: the schema of today.
        direction: whether it is of an input or an output.
        steps: how many steps the comparison may take.
    """
    if _are_equal(old, new):
        return [], steps
    narrow, wide = (old, new) if direction.is_input else (new, old)
    roots = SchemaRoot(narrow, steps), SchemaRoot(wide, steps)
    for root in roots:
        if root.problem:
            sentence = direction.sentence("root", root.problem)
            return [SchemaFinding("", sentence, False, None)], steps
    comparison = _SchemaComparison(*roots, direction)
    try:
        found = comparison.run()
    except (TooComplex, RecursionError, OverflowError):
        found = [SchemaFinding("", direction.sentence("complex", ""), False, None)]
    return found, max(min(root.steps for root in roots), 0)


def new_members(old: Any, new: Any, *, steps: int = MAX_STEPS) -> tuple[list[tuple[str, str]], int]:
    """Return the members that only the new schema describes, and the steps that are left.

    Args:
        old: the earlier schema, decoded JSON.
        new: the schema of today.
        steps: how many steps the search may take.

    Returns:
        For each member, the place of its object, such as `days[0]`, and its name. None are found
        in schemas that cannot be compared.
    """
    roots = SchemaRoot(new, steps), SchemaRoot(old, steps)
    if any(root.problem for root in roots):
        return [], steps
    try:
        found = _SchemaComparison(*roots, Direction(is_input=True)).find_undescribed()
    except (TooComplex, RecursionError):
        found = []
    return found, max(min(root.steps for root in roots), 0)


def _are_equal(old: Any, new: Any) -> bool:
    try:
        return _encode(old) == _encode(new)
    except RecursionError:
        return False  # both are nested too deeply to be compared


class _SchemaComparison:
    """The comparison of one pair of schemas."""

    def __init__(self, narrow: SchemaRoot, wide: SchemaRoot, direction: Direction) -> None:
        self.narrow = narrow
        self.wide = wide
        self.direction = direction
        self.found: list[_Raw] = []
        # Pairs of schemas by their identity, with the level at which each is compared. The objects
        # are kept, so that no other object gets one's identity.
        self._running: dict[tuple[int, int], int] = {}
        self._done: set[tuple[int, int]] = set()
        self._kept: list[Any] = []
        self._has_equal_dialect = narrow.dialect == wide.dialect
        roots = mapping(narrow.schema), mapping(wide.schema)
        self._has_equal_definitions = self._has_equal_dialect and all(
            same(roots[0].get(key), roots[1].get(key)) and refers_to_definitions(roots[0].get(key))
            for key in ("$defs", "definitions")
        )

    def run(self) -> list[SchemaFinding]:
        """Return what is found.

        Raises:
            TooComplex: it takes too many steps.
        """
        self._prove(
            self.narrow.schema, self.wide.schema, _DocumentPlace("", lambda value: value, 0), 0
        )
        if self.direction.is_input:
            self._find_undescribed(self.narrow.schema, self.wide.schema, "", set(), 0)
        found = {(each.place, each.sentence): each for each in map(self._tried, self.found)}
        return list(found.values())

    def find_undescribed(self) -> list[tuple[str, str]]:
        """Return the members that only `narrow` describes: the place of the object, and the name.

        Raises:
            TooComplex: it takes too many steps.
        """
        self._find_undescribed(self.narrow.schema, self.wide.schema, "", set(), 0)
        return list(dict.fromkeys((each.place, each.detail) for each in self.found))

    def _find_undescribed(
        self, narrow: Any, wide: Any, name: str, seen: set[tuple[int, int]], depth: int
    ) -> None:
        """Find members that `narrow` describes and `wide` accepts, perhaps without reading them."""
        pairs = [
            (mine, other)
            for mine in with_parts(self.narrow, narrow)
            for other in with_parts(self.wide, wide)
        ]
        self.narrow.spend(len(pairs))
        if not pairs or depth > MAX_DEPTH or all((id(a), id(b)) in seen for a, b in pairs):
            return
        seen.update((id(mine), id(other)) for mine, other in pairs)
        self._kept += [each for pair in pairs for each in pair]
        mine, others = (
            all_members(mine for mine, _ in pairs),
            all_members(each for _, each in pairs),
        )
        if others or not name:  # elsewhere an object without any is a dictionary
            for member in sorted(mine.keys() - others.keys()):
                self.found.append(_Raw(name, "undescribed", member, ()))
        for member in sorted(mine.keys() & others.keys()):
            inner = f"{name}.{member}" if name else member
            self._find_undescribed(mine[member], others[member], inner, seen, depth + 1)
        old_items, new_items = first_items(a for a, _ in pairs), first_items(b for _, b in pairs)
        if old_items and new_items:
            self._find_undescribed(old_items, new_items, f"{name}[]", seen, depth + 1)

    def _tried(self, raw: _Raw) -> SchemaFinding:
        """Try the examples of a finding."""
        sentence = self.direction.sentence(raw.kind, raw.detail)
        for example in raw.examples:
            if (
                self.narrow.fits(example, self.narrow.schema) is True
                and self.wide.fits(example, self.wide.schema) is False
            ):
                return SchemaFinding(raw.place, sentence, True, example)
        return SchemaFinding(raw.place, sentence, False, None)

    def _add(
        self,
        place: _DocumentPlace,
        kind: str,
        detail: str = "",
        values: Iterable[Any] = (),
        documents: Iterable[Any] = (),
    ) -> None:
        """Add a finding. Its examples are values at its place, or whole documents."""
        if len(self.found) < _MAX_FINDINGS:
            found = itertools.chain(documents, map(place.document, values))
            examples = (each for each in found if each is not NO_SCHEMA)
            kept = tuple(itertools.islice(examples, _MAX_EXAMPLES))
            self.found.append(_Raw(place.name, kind, detail, kept))

    def _try(self, proof: _Proof) -> list[_Raw]:
        """Return what a proof finds, without adding it."""
        found, done = self.found, set(self._done)
        self.found = []
        try:
            proof()
            mine = self.found
        finally:
            self.found = found
        if mine:
            self._done = done  # what was found about these pairs isn't kept
        return mine

    def _is_equal(self, narrow: Any, wide: Any) -> bool:
        """Return True if two schemas are equal, with all that they refer to."""
        self.narrow.spend(1 + size_of(narrow) // 8)
        if not same(narrow, wide):
            return False
        if not self._has_equal_dialect and has_any(narrow, OF_SOME_DIALECTS):
            return False
        return not has_references(narrow) or (
            self._has_equal_definitions and refers_to_definitions(narrow)
        )

    def _prove(self, narrow: Any, wide: Any, place: _DocumentPlace, depth: int) -> None:
        """Find where `wide` refuses what `narrow` accepts."""
        self.narrow.spend()
        self.wide.spend()
        if depth > MAX_DEPTH:
            self._add(place, "depth")
            return
        if wide is True or narrow is False or self._is_equal(narrow, wide):
            return
        narrow, wide = self.narrow.resolve(narrow), self.wide.resolve(wide)
        if narrow is None or wide is None:
            self._add(place, "reference")
            return
        if wide is True or narrow is False:
            return
        if narrow is True:
            narrow = {}
        if wide is False:
            self._add(place, "nothing", "", self.narrow.examples(narrow))
            return
        pair = (id(narrow), id(wide))
        if pair in self._done or self._running.get(pair, place.level) < place.level:
            return
        if pair in self._running:
            self._add(place, "reference")  # it refers to itself without end
            return
        self._kept += (narrow, wide)
        self._running[pair] = place.level
        self._prove_parts(narrow, wide, place, depth + 1)
        del self._running[pair]
        self._done.add(pair)

    def _prove_parts(
        self, narrow: dict[str, Any], wide: dict[str, Any], place: _DocumentPlace, depth: int
    ) -> None:
        """Take `allOf` of both and the alternatives of `narrow` apart."""
        if self.narrow.is_strange(narrow) or self.wide.is_strange(wide):
            self._add(place, "reference")
            return
        if any(
            key in wide and not has_kind(wide[key], kind) and not self._has_same(key, narrow, wide)
            for key, kind in _KINDS.items()
        ):
            self._add(place, "reference")
            return
        wide = without_annotations(wide)
        if "allOf" in wide:
            if any(key in wide for key in _NEEDS_EQUAL_SCHEMA):
                self._add(place, "keyword", "allOf")
                return
            parts = wide.pop("allOf")
            for part in [wide, *(parts if isinstance(parts, list) else ())]:
                self._prove(narrow, part, place, depth)
            return
        narrow = without_annotations(narrow)
        if "allOf" in narrow:
            self._prove_all_of(narrow, wide, place, depth)
            return
        for key in "anyOf", "oneOf":
            parts = narrow.get(key)
            if isinstance(parts, list):
                if self._has_equal_parts(parts, wide.get(key)):
                    rest = {name: value for name, value in wide.items() if name != key}
                    self._prove(narrow, rest, place, depth) if rest else None
                    return
                beside = {name: value for name, value in narrow.items() if name != key}
                for part in parts:
                    together = {"allOf": [part, beside]} if beside else part
                    self._prove(together, wide, place, depth)
                return
        self._prove_types(narrow, wide, place, depth)

    def _has_same(self, key: str, narrow: dict[str, Any], wide: dict[str, Any]) -> bool:
        return key in narrow and self._is_equal({key: narrow[key]}, {key: wide[key]})

    def _has_equal_parts(self, narrow: Sequence[Any], wide: Any) -> bool:
        return (
            isinstance(wide, list)
            and len(narrow) == len(wide)
            and all(map(self._is_equal, narrow, wide))
        )

    def _prove_all_of(
        self, narrow: dict[str, Any], wide: dict[str, Any], place: _DocumentPlace, depth: int
    ) -> None:
        parts = narrow.pop("allOf")
        parts = [self.narrow.resolve(part) for part in (parts if isinstance(parts, list) else ())]
        if any(isinstance(each, dict) and self.narrow.is_strange(each) for each in parts):
            self._add(place, "reference")
            return
        parts = [without_annotations(each) if isinstance(each, dict) else each for each in parts]
        parts = [each for each in [narrow, *parts] if each not in ({}, True)]
        merged = merge_parts(parts)
        if merged is not None:
            self._prove(merged, wide, place, depth)
            return
        whole = {"allOf": parts}
        names = described_members(self.narrow, whole)
        found: list[_Raw] = []
        for part in parts:
            part = with_names(part, names, is_root=not place.level)
            mine = self._try(partial(self._prove, part, wide, place, depth))
            if not mine:
                return
            found += mine
        self._add_choice(place, "allOf", found, self.narrow.examples(whole))

    def _add_choice(
        self, place: _DocumentPlace, keyword: str, found: list[_Raw], values: Iterable[Any]
    ) -> None:
        """Add that no part of a keyword is a proof, with all examples that were found."""
        documents = itertools.chain.from_iterable(each.examples for each in found)
        self._add(place, "choice", keyword, values, documents)

    def _prove_types(
        self, narrow: dict[str, Any], wide: dict[str, Any], place: _DocumentPlace, depth: int
    ) -> None:
        values = listed_values(narrow)
        if values is not None:
            self._prove_values(values, narrow, wide, place)
            return
        types = types_of(narrow)
        allowed = types_of(wide)
        refused = [name for name in types if name not in allowed]
        if refused:
            names = [name for name in refused if name != "integer" or "number" not in refused]
            named = "fractions" if names == ["number"] and "integer" in allowed else ""
            values = [
                value for name in names for value in self.narrow.examples(of_type(narrow, name))
            ]
            self._add(place, "type", named or " or ".join(names), values)
        rest = {key: value for key, value in wide.items() if key != "type"}
        if not rest:
            return
        kept = [name for name in types if name in allowed]
        constants = [value for name in kept for value in _CONSTANTS.get(name, ())]
        if constants:
            self._prove_values(constants, narrow, rest, place)
        if "integer" in kept and "number" in kept:
            kept.remove("integer")  # a number is one or the other
        for name in kept:
            if name not in ("null", "boolean"):
                self._prove_type(name, of_type(narrow, name), rest, place, depth)

    def _prove_values(
        self,
        values: Sequence[Any],
        narrow: dict[str, Any],
        wide: dict[str, Any],
        place: _DocumentPlace,
    ) -> None:
        refused, unclear = [], False
        for value in values:
            if self.narrow.fits(value, narrow) is False:
                continue
            found = self.wide.fits(value, wide)
            refused += [value] if found is False else []
            unclear = unclear or found is None
        if refused:
            self._add(place, "value", show_values(refused), refused)
        if unclear:
            self._add(place, "keyword", "constraint")

    def _prove_type(
        self,
        name: str,
        narrow: dict[str, Any],
        wide: dict[str, Any],
        place: _DocumentPlace,
        depth: int,
    ) -> None:
        """Compare what two schemas say about the documents of one type."""
        kind = "number" if name == "integer" else name
        if "enum" in wide or "const" in wide:
            listed = wide.get("enum", [wide.get("const")])
            shown = show_values(listed if isinstance(listed, list) else [])
            self._add(place, "only", shown, self.narrow.examples(narrow))
        for key in (*_ALWAYS_EQUAL_OR_UNCLEAR, *_EQUAL_OR_UNCLEAR[kind]):
            if key not in wide or (key in ("then", "else") and "if" not in wide):
                continue
            if not self._has_same(key, narrow, wide) or key in _NEEDS_EQUAL_SCHEMA:
                self._add(place, "keyword", key, self.narrow.examples(narrow))
        if kind == "array" and "contains" in wide:
            counted = [counted_items(each) for each in (narrow, wide)]
            if not self._is_equal(*counted):
                self._add(place, "keyword", "contains", self.narrow.examples(narrow))
        for key in "anyOf", "oneOf":
            if key in wide:
                self._prove_alternatives(key, name, narrow, wide[key], place, depth)
        _PROOFS[kind](self, narrow, wide, place, depth)

    def _prove_alternatives(
        self,
        key: str,
        name: str,
        narrow: dict[str, Any],
        parts: Any,
        place: _DocumentPlace,
        depth: int,
    ) -> None:
        """Find an alternative that accepts all of `narrow`, and with `oneOf` only one."""
        if not isinstance(parts, list):
            self._add(place, "reference")
            return
        resolved = [self.wide.resolve(part) for part in parts]
        types = set(types_of(narrow))
        fitting = [
            part for part in resolved if part is not False and types.intersection(types_of(part))
        ]
        if not fitting:
            self._add(place, "type", name, self.narrow.examples(narrow))
            return
        if len(fitting) == 1:
            self._prove(narrow, fitting[0], place, depth)
            return
        found: list[_Raw] = []
        for part in fitting:
            mine = self._try(partial(self._prove, narrow, part, place, depth))
            found += mine
            others = [other for other in fitting if other is not part]
            if (
                not mine
                and self._describes_as_much(narrow, part, fitting)
                and (
                    key == "anyOf"
                    or all(self._are_disjoint(narrow, each, depth) for each in others)
                )
            ):
                return
        self._add_choice(place, key, found, self.narrow.examples(narrow))

    def _describes_as_much(self, narrow: Any, part: Any, parts: Sequence[Any]) -> bool:
        """Return True if `part` describes each member of `narrow` that one of `parts` does."""

        def undescribed(wide: Any) -> set[tuple[str, str]]:
            found = self._try(partial(self._find_undescribed, narrow, wide, "", set(), 0))
            return {(each.place, each.detail) for each in found}

        missing = undescribed(part)
        return not missing or missing <= undescribed({"anyOf": parts})

    def _are_disjoint(self, narrow: Any, wide: Any, depth: int) -> bool:
        """Return True if certainly no document is valid by both schemas."""
        self.narrow.spend()
        narrow, wide = self.narrow.resolve(narrow), self.wide.resolve(wide)
        if narrow is False or wide is False:
            return True
        if not isinstance(narrow, dict) or not isinstance(wide, dict) or depth > MAX_DEPTH:
            return False
        values = listed_values(narrow)
        if values is not None:
            return all(self.wide.fits(value, wide) is False for value in values)
        values = listed_values(wide)
        if values is not None:
            return all(self.narrow.fits(value, narrow) is False for value in values)
        both = set(types_of(narrow)) & set(types_of(wide))
        if both - {"object"}:
            return False
        if not both:
            return True
        mine, others = mapping(narrow.get("properties")), mapping(wide.get("properties"))
        required = {*required_names(narrow.get("required")), *required_names(wide.get("required"))}
        return any(
            name in required and self._are_disjoint(mine[name], others[name], depth + 1)
            for name in mine.keys() & others.keys()
        )

    def _prove_string(
        self, narrow: dict[str, Any], wide: dict[str, Any], place: _DocumentPlace, depth: int
    ) -> None:
        for key in "minLength", "maxLength":
            if self._is_narrower(key, narrow, wide):
                lengths = [narrow.get(key), beyond(key, wide[key]), narrow.get("minLength", 0)]
                texts = [self._text(length) for length in lengths if is_length(length)]
                self._add_bound(place, key, narrow, wide, texts)

    def _text(self, length: int) -> str:
        self.narrow.spend(length // 16)
        return "a" * int(length)

    def _is_narrower(self, key: str, narrow: dict[str, Any], wide: dict[str, Any]) -> bool:
        """Return True if a keyword with a bound doesn't accept as much in `wide`."""
        if key not in wide:
            return False
        mine, other = narrow.get(key), wide[key]
        if not is_number(other):
            return True
        if key.startswith("min"):
            return (mine if is_number(mine) else 0) < other
        return bool(not is_number(mine) or mine > other)

    def _add_bound(
        self,
        place: _DocumentPlace,
        key: str,
        narrow: dict[str, Any],
        wide: dict[str, Any],
        values: Iterable[Any],
    ) -> None:
        old, new = (narrow, wide) if self.direction.is_input else (wide, narrow)
        before, after = (show_values([each[key]]) if key in each else "none" for each in (old, new))
        self._add(place, "bound", f"{key}: {before} → {after}", values)

    def _prove_number(
        self, narrow: dict[str, Any], wide: dict[str, Any], place: _DocumentPlace, depth: int
    ) -> None:
        is_whole = types_of(narrow) == ("integer",)
        for keys, sign in _BOUNDS:
            mine, other = (bound_of(each, keys, sign, is_whole) for each in (narrow, wide))
            if other <= mine:
                continue
            key = next(key for key in keys if key in wide)
            finite = [sign * bound for bound, _ in (mine, other) if abs(bound) != math.inf]
            values = [bound + step for bound in finite for step in (0, 1, -1, 0.5, -0.5)]
            values += [sum(finite) / 2] if len(finite) == 2 else []
            if is_whole:
                values = [math.floor(value) for value in values]
            self._add_bound(place, key, narrow, wide, [*values, *self.narrow.examples(narrow)])
        step = wide.get("multipleOf")
        if step is not None and not is_multiple_of(narrow, step, is_whole):
            values = self.narrow.examples(narrow)
            self._add_bound(place, "multipleOf", narrow, wide, values)

    def _prove_array(
        self, narrow: dict[str, Any], wide: dict[str, Any], place: _DocumentPlace, depth: int
    ) -> None:
        mine, others = array_parts(narrow), array_parts(wide)
        longest = narrow.get("maxItems")
        is_open = True  # whether arrays can be longer than the positions that were compared
        for index in range(max(len(mine[0]), len(others[0]))):
            part = mine[0][index] if index < len(mine[0]) else mine[1]
            if part is False or (is_number(longest) and longest <= index):
                is_open = False
                break
            other = others[0][index] if index < len(others[0]) else others[1]
            self._prove(part, other, self._item(narrow, place, index, str(index)), depth)
        index = max(len(mine[0]), len(others[0]))
        if is_open and not (is_number(longest) and longest <= index):
            self._prove(mine[1], others[1], self._item(narrow, place, index, ""), depth)
        for key in "minItems", "maxItems":
            if self._is_narrower(key, narrow, wide):
                lengths = [narrow.get(key), beyond(key, wide[key]), narrow.get("minItems", 0)]
                arrays = [
                    self.narrow.filled(narrow, int(each)) for each in lengths if is_length(each)
                ]
                self._add_bound(
                    place, key, narrow, wide, [each for each in arrays if each is not None]
                )
        may_repeat = narrow.get("uniqueItems") is not True and not (
            is_number(longest) and longest < 2
        )
        if wide.get("uniqueItems") and may_repeat:
            equal = [[value, value] for value in self.narrow.examples(mine[1])]
            self._add(place, "unique", "", equal)

    def _item(
        self, narrow: dict[str, Any], place: _DocumentPlace, index: int, shown: str
    ) -> _DocumentPlace:
        def document(value: Any) -> tuple[Any] | None:
            least = narrow.get("minItems", 0)
            before = self.narrow.filled(narrow, index)
            if before is None or not is_length(least):
                return None
            return ([*before, *[value] * max(1, int(least) - index)],)

        return place.inner(f"{place.name}[{shown}]", document)

    def _prove_object(
        self, narrow: dict[str, Any], wide: dict[str, Any], place: _DocumentPlace, depth: int
    ) -> None:
        mine, others = mapping(narrow.get("properties")), mapping(wide.get("properties"))
        self._prove_required(narrow, wide, place)
        # Members that `narrow` doesn't describe: see 4 above.
        is_data = "additionalProperties" in narrow or ("properties" not in narrow and place.level)
        undescribed = narrow.get("additionalProperties", True)
        rest = wide.get("additionalProperties", True)
        by_pattern = "patternProperties" in narrow or "patternProperties" in wide
        if by_pattern and not self._prove_patterns(narrow, wide, place):
            return
        named = set() if is_data or by_pattern else described_members(self.narrow, narrow)
        for name in sorted(mine.keys() | others.keys()):
            inner = self._member(narrow, place, name)
            if name in mine and name in others:
                self._prove(mine[name], others[name], inner, depth)
            elif name in others:
                if by_pattern:
                    self._add(place, "keyword", "patternProperties")
                elif is_data or name in named:
                    self._prove(undescribed, others[name], inner, depth)
            elif by_pattern:
                self._add(place, "keyword", "patternProperties")
            elif rest is False and mine[name] is not False:
                members = [inner.document(value) for value in self.narrow.examples(mine[name])]
                self._add(place, "member", name, documents=members)
            else:
                self._prove(mine[name], rest, inner, depth)
        if undescribed is not False and rest is False and not by_pattern:
            inner = self._member(narrow, place, unused_name(mine, others))
            values = self.narrow.examples(undescribed)
            self._add(place, "members", documents=[inner.document(value) for value in values])
        elif rest is not True and not by_pattern:
            inner = self._member(narrow, place, unused_name(mine, others), f"{place.name}.*")
            self._prove(undescribed, rest, inner, depth)
        self._prove_counts(narrow, wide, place)

    def _prove_patterns(
        self, narrow: dict[str, Any], wide: dict[str, Any], place: _DocumentPlace
    ) -> bool:
        """Return True if two schemas say the same about members without a name of their own."""
        keys = "patternProperties", "additionalProperties"
        if all(self._is_equal(narrow.get(key, True), wide.get(key, True)) for key in keys):
            return True
        self._add(place, "keyword", "patternProperties", self.narrow.examples(narrow))
        return False

    def _prove_required(
        self, narrow: dict[str, Any], wide: dict[str, Any], place: _DocumentPlace
    ) -> None:
        required = set(required_names(narrow.get("required")))
        if not isinstance(wide.get("required", []), list):
            self._add(place, "reference")
            return
        for name in sorted(set(required_names(wide.get("required"))) - required):
            values = self.narrow.examples(narrow)
            without = [value for value in values if isinstance(value, dict) and name not in value]
            self._add(place, "required", name, without)

    def _prove_counts(
        self, narrow: dict[str, Any], wide: dict[str, Any], place: _DocumentPlace
    ) -> None:
        least = max(
            len(set(required_names(narrow.get("required")))), count_of(narrow, "minProperties", 0)
        )
        if least < count_of(wide, "minProperties", 0):
            values = self.narrow.examples(narrow)
            self._add_bound(place, "minProperties", narrow, wide, values)
        most = count_of(wide, "maxProperties", math.inf)
        known = mapping(narrow.get("properties"))
        limit = len(known) if narrow.get("additionalProperties") is False else math.inf
        if "patternProperties" in narrow:
            limit = math.inf
        if min(limit, count_of(narrow, "maxProperties", math.inf)) > most:
            names = [*known, *(f"other{number}" for number in range(min(int(most) + 1, 1000)))]
            required = required_names(narrow.get("required"))
            ordered = list(dict.fromkeys([*required, *names]))
            found = self.narrow.members(narrow, ordered[: int(most) + 1])
            self._add_bound(place, "maxProperties", narrow, wide, [found] if found else [])

    def _member(
        self, narrow: dict[str, Any], place: _DocumentPlace, name: str, shown: str | None = None
    ) -> _DocumentPlace:
        def document(value: Any) -> tuple[Any] | None:
            names = [each for each in required_names(narrow.get("required")) if each != name]
            others = self.narrow.members(narrow, names)
            return None if others is None else ({**others, name: value},)

        named = f"{place.name}.{name}" if place.name else name
        return place.inner(named if shown is None else shown, document)


_BOUNDS: Final = ((("minimum", "exclusiveMinimum"), 1), (("maximum", "exclusiveMaximum"), -1))


# The values of types that have few.
_CONSTANTS: Final[dict[str, tuple[Any, ...]]] = {"null": (None,), "boolean": (True, False)}
_PROOFS: Final = {
    "string": _SchemaComparison._prove_string,
    "number": _SchemaComparison._prove_number,
    "array": _SchemaComparison._prove_array,
    "object": _SchemaComparison._prove_object,
}
