r"""Reading a URI by a template: the opposite of RFC 6570, which a server needs and which nobody has defined.

Most templates have no unique reading: is `x-y-z` by `{a}-{b}` to be `x` and `y-z`? Rules of this file:

1. **A template that can be read in two ways is refused when it is declared**, never guessed at when a URI
   comes. Templates are compiled to steps whose ends follow from the template alone: a character that the
   value cannot contain, the fixed text that must come next, or the end of the URI.
2. **Linear time.** Steps only move forward, searches are for single characters, and no pattern is built from
   what a peer sent. There is nothing to backtrack into. A list has at most 256 members, since each member
   costs more than its characters do.
3. **One variable is one path segment.** A value that decodes to something with a separator (`/` or `\`), with
   a NUL, or to `..`, does not match. Only `{+x}` and `{/x*}` take several segments, and `..` among them is
   refused too, as is a `{+x}` that begins with a separator. Percent-decoding happens once and before this
   check.
4. Values of `{x}`, `{+x}`, `{#x}`, `{.x}` and `{/x}` are never empty. Those of the named forms `{?x}`, `{&x}`
   and `{;x}` may be empty, may be absent (so is then the variable) and come in any order. Exploded variables
   give lists; that of `{/x*}` and of the named forms is empty when nothing is there.

Clients forget to percent-encode. So a value may hold any raw character except `/`, `?`, `#` and the one that
ends it, although a correct expansion would have encoded it.

This file does not know what a resource is, nor what a value means: a symbolic link does not show in a URI.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from ._errors import DeclarationError
from ._uri_template import OPERATORS, RESERVED, Expression, UriTemplate

__all__ = ["UriMatcher"]

_MEMBERS = 256
_SEGMENT_END = "/?#"  # never part of a single value, encoded or not
_BROKEN_TRIPLET = re.compile(r"%(?![0-9A-Fa-f]{2})")

Values = dict[str, str | list[str]]


class _NoMatch(Exception):
    """Ends a match; never leaves this file."""


def _stop(uri: str, position: int, stops: str) -> int:
    """The index of the first of `stops`, or the end."""
    end = len(uri)
    for stop in stops:
        found = uri.find(stop, position, end)
        if found >= 0:
            end = found
    return end


def _decode(raw: str) -> str:
    if _BROKEN_TRIPLET.search(raw):
        raise _NoMatch
    text = unquote_to_bytes(raw).decode() if "%" in raw else raw
    if "\0" in text:
        raise _NoMatch
    return text


def _split(raw: str, separator: str) -> list[str]:
    pieces = raw.split(separator, _MEMBERS)
    if len(pieces) > _MEMBERS:
        raise _NoMatch
    return pieces


def _one(raw: str) -> str:
    """A value that must not be able to leave its segment."""
    text = _decode(raw)
    if not text or text == ".." or "/" in text or "\\" in text:
        raise _NoMatch
    return text


class Fixed(Struct, frozen=True):
    """This very text."""

    text: str

    def read(self, uri: str, position: int, _values: Values) -> int:
        if not uri.startswith(self.text, position):
            raise _NoMatch
        return position + len(self.text)


class Single(Struct, frozen=True):
    """One value, with `explode` a list with commas: up to the first of `stops`, less the fixed `suffix`."""

    name: str
    explode: bool
    stops: str = _SEGMENT_END
    suffix: str = ""

    def read(self, uri: str, position: int, values: Values) -> int:
        end = _stop(uri, position, self.stops)
        value_end = end - len(self.suffix)
        if value_end <= position or not uri.startswith(self.suffix, value_end):
            raise _NoMatch
        raw = uri[position:value_end]
        values[self.name] = [_one(item) for item in _split(raw, ",")] if self.explode else _one(raw)
        return end


class Rest(Struct, frozen=True):
    """`{+x}` or `{#x}`: everything that is left, less `suffix`; with `query`, up to the first `?`."""

    name: str
    suffix: str = ""
    query: bool = False
    relative: bool = True  # a path that starts at the root would leave whatever directory it is joined to

    def read(self, uri: str, position: int, values: Values) -> int:
        end = _stop(uri, position, "?") if self.query else len(uri)
        value_end = end - len(self.suffix)
        if value_end <= position or not uri.startswith(self.suffix, value_end):
            raise _NoMatch
        text = _decode(uri[position:value_end])
        if ".." in text and ".." in text.replace("\\", "/").split("/"):
            raise _NoMatch
        if self.relative and text[0] in "/\\":
            raise _NoMatch
        values[self.name] = text
        return end


class Segments(Struct, frozen=True):
    """`{/x*}`: any number of `/segment`."""

    name: str

    def read(self, uri: str, position: int, values: Values) -> int:
        end = _stop(uri, position, "?#")
        raw = uri[position:end]
        if raw and raw[0] != "/":
            raise _NoMatch
        values[self.name] = [_one(segment) for segment in _split(raw[1:], "/")] if raw else []
        return end


class Named(Struct, frozen=True):
    """`{?x,y}`, `{&x,y}` or `{;x,y}`: pairs in any order, each at most once unless exploded."""

    first: str
    separator: str
    exploded: frozenset[str]
    plain: frozenset[str]
    stops: str = "#"

    def read(self, uri: str, position: int, values: Values) -> int:
        lists: dict[str, list[str]] = {name: [] for name in self.exploded}
        values.update(lists)
        if not uri.startswith(self.first, position):
            return position
        end = _stop(uri, position + 1, self.stops)
        for pair in _split(uri[position + 1 : end], self.separator):
            name, _, raw = pair.partition("=")
            value = _one(raw) if raw else ""
            if name in lists:
                lists[name].append(value)
            elif name in self.plain and name not in values:
                values[name] = value
            else:
                raise _NoMatch
        return end


Step = Fixed | Single | Rest | Segments | Named


Refuse = Callable[[str], DeclarationError]


class UriMatcher:
    """The reading direction of a template.

    Raises `DeclarationError` when some URI could be read in two ways, or when values cannot be found again
    (`{x:3}`). `optional` holds the variables that a matching URI may leave out.
    """

    __slots__ = ("_steps", "optional", "template")

    def __init__(self, template: UriTemplate) -> None:
        self.template = template
        self._steps = _compile(template)
        self.optional: frozenset[str] = frozenset[str]().union(
            *(step.plain for step in self._steps if isinstance(step, Named))
        )

    def __repr__(self) -> str:
        return f"UriMatcher({self.template.text!r})"

    def match(self, uri: str) -> Values | None:
        """The decoded values; None if `uri` is not of this template or holds a value that rule 3 refuses."""
        values: Values = {}
        position = 0
        try:
            for step in self._steps:
                position = step.read(uri, position, values)
        except (_NoMatch, UnicodeError):
            return None
        return values if position == len(uri) else None


def _compile(template: UriTemplate) -> tuple[Step, ...]:
    def refuse(why: str) -> DeclarationError:
        return DeclarationError(f"URI template {template.text!r} cannot be matched: {why}")

    rough: list[Step] = []
    seen: set[str] = set()
    for part in template.parts:
        if isinstance(part, str):
            rough.append(Fixed(part))
            continue
        for variable in part.variables:
            if variable.prefix:
                raise refuse(f"{part.text} keeps only the first characters of a value")
            if variable.name in seen:
                raise refuse(f"{variable.name!r} occurs twice")
            seen.add(variable.name)
        rough += _rough_steps(part, refuse)
    return tuple(_finish(_merge_fixed(rough), refuse))


def _rough_steps(part: Expression, refuse: Refuse) -> list[Step]:
    """The steps of one expression, before anyone knows what follows."""
    operator, variables = OPERATORS[part.operator], part.variables
    if operator.named:
        exploded = frozenset(v.name for v in variables if v.explode)
        plain = frozenset(v.name for v in variables if not v.explode)
        return [Named(operator.first, operator.separator, exploded, plain)]
    if len(variables) > 1 and any(v.explode for v in variables):
        raise refuse(f"in {part.text} nobody can tell where the list ends")
    only = variables[0]
    if operator.reserved:
        if len(variables) > 1 or only.explode:
            raise refuse(f"the values of {part.text} may hold the commas that separate them")
        if part.operator == "#":
            return [Fixed("#"), Rest(only.name, relative=False)]
        return [Rest(only.name)]
    if only.explode and part.operator == "/":
        return [Segments(only.name)]
    if only.explode and part.operator == ".":
        raise refuse(f"the values of {part.text} may hold the dots that separate them")
    steps: list[Step] = []
    for index, variable in enumerate(variables):
        before = operator.separator if index else operator.first
        steps += [*([Fixed(before)] if before else []), Single(variable.name, variable.explode)]
    return steps


def _merge_fixed(steps: list[Step]) -> list[Step]:
    merged: list[Step] = []
    for step in steps:
        if merged and isinstance(step, Fixed) and isinstance(merged[-1], Fixed):
            merged[-1] = Fixed(merged[-1].text + step.text)
        else:
            merged.append(step)
    return merged


def _finish(steps: list[Step], refuse: Refuse) -> list[Step]:
    """Give every value its end, from what follows it; raise where there is none."""
    done: list[Step] = []
    for index, step in enumerate(steps):
        following = steps[index + 1 :]
        fixed = following[0].text if following and isinstance(following[0], Fixed) else ""
        after = following[1:] if fixed else following  # what comes behind the fixed text
        done.append(_end_of(step, fixed, after, refuse))
    return _without_suffixes(done)


def _end_of(step: Step, fixed: str, after: list[Step], refuse: Refuse) -> Step:
    lead = _first_character(after[0]) if after else None
    first_after = fixed[:1] or lead
    followed = bool(fixed or after)
    match step:
        case Single(name, explode):
            hard = next((c for c in fixed if c in RESERVED), None)
            soft = fixed if hard is None else fixed[: fixed.index(hard)]
            hard = hard or lead
            if after and hard is None:
                raise refuse(
                    f"nothing that is always encoded in a value stands between {name!r} and what follows it"
                )
            if explode and hard == ",":
                raise refuse(f"{name!r} is a list of values with commas, and a comma follows it")
            return Single(name, explode, _SEGMENT_END + (hard or ""), soft)
        case Rest(name, relative=relative):
            # A query may be absent, so nothing can stand behind it: the value would take that too.
            query = not fixed and len(after) == 1 and lead == "?"
            if after and not query:
                raise refuse(
                    f"{name!r} may hold anything, so only a last fixed text or a last {{?...}} may follow it"
                )
            return Rest(name, fixed, query, relative)
        case Segments(name):
            if followed and first_after not in ("?", "#"):
                raise refuse(f"{name!r} takes all segments, so only a query or a fragment may follow it")
            return step
        case Named(first, separator, exploded, plain):
            allowed = "#" if separator == "&" else "/?#"
            if followed and (first_after is None or first_after not in allowed):
                raise refuse(
                    f"{{{first}...}} may be followed only by one of {' '.join(allowed)} or by nothing"
                )
            return Named(first, separator, exploded, plain, allowed)
        case _:
            return step


def _first_character(step: Step) -> str | None:
    """The reserved character with which `step` begins if it is there at all; None if there is no such."""
    match step:
        case Named(first):
            return first
        case Segments():
            return "/"
        case _:
            return None


def _without_suffixes(steps: list[Step]) -> list[Step]:
    """Take the suffix of a value out of the fixed text behind it: it is checked together with the value."""
    result: list[Step] = []
    suffix = ""
    for step in steps:
        if isinstance(step, Fixed):
            text = step.text[len(suffix) :]
            if text:
                result.append(Fixed(text))
        else:
            result.append(step)
        suffix = step.suffix if isinstance(step, Single | Rest) else ""
    return result
