r"""Matching of URIs against a URI template: the inverse of the expansion of RFC 6570.

The RFC doesn't define it, and most templates are ambiguous: does `x-y-z` match `{a}-{b}` as `x`
and `y-z`, or as `x-y` and `z`?

1. **An ambiguous template is rejected when it is declared.** A template is compiled to parts whose
   ends follow from the template alone: a character that the value cannot contain, the literal text
   that must come next, or the end of the URI.
2. **Matching takes linear time.** Parts only move forward, searches are for single characters, and
   no pattern is built from a peer's input, so nothing can backtrack.
3. **One variable is one path segment, on any system.** Refused is a value that decodes to a text
   with a separator (`/` or `\`), with a control character, with a drive letter (`C:`) at its start,
   or to `..`. Only `{+x}` and `{/x*}` match several segments, none of them such. `{+x}` has no
   separator at its start, and no backslash beside another separator: split at one of the two, it
   would leave a part that is an absolute path on Windows. `{#x}` may be an absolute path. Values
   are checked after they are percent-decoded, which is done once. The values of `unchecked`
   variables aren't checked.

A value doesn't tell what it leads to: a symbolic link, for example, isn't visible in a URI.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from urllib.parse import unquote_to_bytes

from msgspec import Struct

from mcp_core._patterns import compile_on_first_use

from ._uri_template import (
    BROKEN_TRIPLET,
    OPERATORS,
    RESERVED,
    Expression,
    InvalidUriTemplate,
    UriTemplate,
)

__all__ = ["UriMatcher"]

_MAX_MEMBERS = 256  # of a list: a member costs more than its characters
# Never part of a single value, encoded or not. Other raw characters may be, because clients forget
# to percent-encode them.
_SEGMENT_END = "/?#"
# Joined to a directory on Windows, such a segment is a path on another drive.
_DRIVE = compile_on_first_use(r"[A-Za-z]:")
# `//` alone stays: a value may be a URL, and no system's `join` takes an empty part for a root.
_ROOTS = ("/\\", "\\/", "\\\\")
# A NUL ends a path in C. A line break begins another header, or line of a log; others, up to C1,
# steer a terminal.
_CONTROL = compile_on_first_use(r"[\x00-\x1f\x7f-\x9f]")

Values = dict[str, str | list[str]]


class _NoMatch(Exception):
    """The URI doesn't match. Never leaves this file."""


def _find_end(uri: str, position: int, stops: str) -> int:
    """Return the index of the first character of `stops`, or of the end of the URI."""
    end = len(uri)
    for stop in stops:
        found = uri.find(stop, position, end)
        if found >= 0:
            end = found
    return end


def _decode(raw: str) -> str:
    if BROKEN_TRIPLET.search(raw):
        raise _NoMatch
    return unquote_to_bytes(raw).decode() if "%" in raw else raw


def _split(raw: str, separator: str) -> list[str]:
    pieces = raw.split(separator, _MAX_MEMBERS)
    if len(pieces) > _MAX_MEMBERS:
        raise _NoMatch
    return pieces


def _decode_member(raw: str) -> str:
    """Decode a value, or a member of a list, that must not be empty."""
    if not raw:
        raise _NoMatch
    return _decode(raw)


# -- Values that are refused -----------------------------------------------------------------------


def _find_segment_error(text: str) -> str | None:
    """Return what is wrong with a value that must not leave its path segment."""
    if "/" in text or "\\" in text:
        return "holds a separator"
    return _find_part_error(text)


def _find_path_error(text: str) -> str | None:
    """Return what is wrong with a value of several segments that must not leave its directory."""
    if text[0] in "/\\":
        return "is an absolute path"
    if "\\" in text and any(root in text for root in _ROOTS):
        return "holds an absolute path"
    for segment in text.replace("\\", "/").split("/"):
        error = _find_part_error(segment)
        if error is not None:
            return error
    return None


def _find_fragment_error(text: str) -> str | None:
    """Return what is wrong with a value that may be an absolute path, such as a JSON pointer."""
    if _CONTROL.search(text):
        return "holds a control character"
    return "holds a `..`" if ".." in text.replace("\\", "/").split("/") else None


def _find_part_error(segment: str) -> str | None:
    if _CONTROL.search(segment):
        return "holds a control character"
    # Windows ignores spaces at the end of a name.
    if segment[:2] == ".." and segment.rstrip(" ") == "..":
        return "holds a `..`"
    return "holds a drive letter" if _DRIVE.match(segment) else None


FindError = Callable[[str], str | None]


# -- Parts -----------------------------------------------------------------------------------------


class LiteralPart(Struct, frozen=True):
    """Literal text."""

    text: str

    def read(self, uri: str, position: int, _values: Values) -> int:
        if not uri.startswith(self.text, position):
            raise _NoMatch
        return position + len(self.text)


class SimplePart(Struct, frozen=True):
    """One value up to the first of `stops`, less the literal `suffix`. It is never empty.

    With `explode` it is a list, separated by commas.
    """

    name: str
    explode: bool
    stops: str = _SEGMENT_END
    suffix: str = ""

    def read(self, uri: str, position: int, values: Values) -> int:
        end = _find_end(uri, position, self.stops)
        value_end = end - len(self.suffix)
        if value_end <= position or not uri.startswith(self.suffix, value_end):
            raise _NoMatch
        raw = uri[position:value_end]
        if self.explode:
            values[self.name] = [_decode_member(item) for item in _split(raw, ",")]
        else:
            values[self.name] = _decode(raw)
        return end


class ReservedPart(Struct, frozen=True):
    """`{+x}` or `{#x}`: the rest of the URI, less `suffix`. It is never empty.

    With `query` it ends at the first `?`.
    """

    name: str
    suffix: str = ""
    query: bool = False

    def read(self, uri: str, position: int, values: Values) -> int:
        end = _find_end(uri, position, "?") if self.query else len(uri)
        value_end = end - len(self.suffix)
        if value_end <= position or not uri.startswith(self.suffix, value_end):
            raise _NoMatch
        values[self.name] = _decode(uri[position:value_end])
        return end


class PathPart(Struct, frozen=True):
    """`{/x*}`: any number of `/segment`, as a list that may be empty."""

    name: str

    def read(self, uri: str, position: int, values: Values) -> int:
        end = _find_end(uri, position, "?#")
        raw = uri[position:end]
        if raw and raw[0] != "/":
            raise _NoMatch
        values[self.name] = (
            [_decode_member(segment) for segment in _split(raw[1:], "/")] if raw else []
        )
        return end


class QueryPart(Struct, frozen=True):
    """`{?x,y}`, `{&x,y}` or `{;x,y}`: pairs of name and value, in any order.

    A value may be empty. A name occurs at most once, unless it is exploded; its variable is absent
    if the URI doesn't have it. An exploded variable is a list that may be empty.
    """

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
        end = _find_end(uri, position + 1, self.stops)
        for pair in _split(uri[position + 1 : end], self.separator):
            name, _, raw = pair.partition("=")
            value = _decode(raw)
            if name in lists:
                lists[name].append(value)
            elif name in self.plain and name not in values:
                values[name] = value
            else:
                raise _NoMatch
        return end


Part = LiteralPart | SimplePart | ReservedPart | PathPart | QueryPart


MakeError = Callable[[str], InvalidUriTemplate]


class UriMatcher:
    """A compiled template that extracts the values of its variables from a URI.

    A variable is one path segment, on any system. A value is refused that decodes to a text with a
    slash, a backslash or a control character, with a drive letter (`C:`) at its start, or to `..`.
    Only `{+x}`, `{#x}` and `{/x*}` match several segments.

    Args:
        template: the template to match.
        unchecked: the names of variables whose values may be any text.

    Attributes:
        optional: the names of variables that a matching URI may leave out.
        unchecked: the names of variables whose values aren't checked.

    Raises:
        InvalidUriTemplate: the template is ambiguous, it cuts values (`{x:3}`), or it doesn't have
            a variable of `unchecked`.
    """

    __slots__ = ("_checks", "_parts", "optional", "template", "unchecked")

    def __init__(self, template: UriTemplate, unchecked: Iterable[str] = ()) -> None:
        self.template = template
        self.unchecked = frozenset(unchecked)
        self._parts = _compile(template)
        self._checks = _checks(template, self.unchecked)
        self.optional: frozenset[str] = frozenset[str]().union(
            *(part.plain for part in self._parts if isinstance(part, QueryPart))
        )

    def __repr__(self) -> str:
        return f"UriMatcher({self.template.text!r})"

    def match(self, uri: str) -> Values | None:
        """Return the decoded values of `uri` by name, lists for exploded variables.

        Return None if it doesn't match, or a value is refused.
        """
        values = self._read(uri)
        return None if values is None or self._find_error(values) is not None else values

    def find_error(self, uri: str) -> str | None:
        """Return why a value of `uri` is refused, None if none is or it has another form."""
        values = self._read(uri)
        return None if values is None else self._find_error(values)

    def has_form(self, uri: str) -> bool:
        """Return True if `uri` has the template's form. Its values may be refused ones."""
        return self._read(uri) is not None

    def _read(self, uri: str) -> Values | None:
        """Return the decoded values, not checked; None if the URI has another form."""
        values: Values = {}
        position = 0
        try:
            for part in self._parts:
                position = part.read(uri, position, values)
        except (_NoMatch, UnicodeError):
            return None
        return values if position == len(uri) else None

    def _find_error(self, values: Values) -> str | None:
        for name, find_error in self._checks:
            value = values.get(name, ())
            for text in (value,) if isinstance(value, str) else value:
                error = find_error(text)
                if error is not None:
                    return f"the value of `{name}` {error}"
        return None


def _checks(template: UriTemplate, unchecked: frozenset[str]) -> tuple[tuple[str, FindError], ...]:
    """Return the names of the variables whose values are checked, with their checks."""
    checks = []
    for expression in template.parts:
        if isinstance(expression, str):
            continue
        check = {"+": _find_path_error, "#": _find_fragment_error}.get(
            expression.operator, _find_segment_error
        )
        checks += [(variable.name, check) for variable in expression.variables]
    for unknown in unchecked - {name for name, _ in checks}:
        raise InvalidUriTemplate(f"URI template {template.text!r} has no variable {unknown!r}")
    return tuple(pair for pair in checks if pair[0] not in unchecked)


def _compile(template: UriTemplate) -> tuple[Part, ...]:
    def error(reason: str) -> InvalidUriTemplate:
        return InvalidUriTemplate(f"URI template {template.text!r} cannot be matched: {reason}")

    parts: list[Part] = []
    seen: set[str] = set()
    for piece in template.parts:
        if isinstance(piece, str):
            parts.append(LiteralPart(piece))
            continue
        for variable in piece.variables:
            if variable.prefix:
                raise error(f"{piece.text} keeps only the first characters of a value")
            if variable.name in seen:
                raise error(f"{variable.name!r} occurs twice")
            seen.add(variable.name)
        parts += _parts_of(piece, error)
    return tuple(_with_ends(_merge_literals(parts), error))


def _parts_of(expression: Expression, error: MakeError) -> list[Part]:
    """Return the parts of one expression, still without their ends."""
    operator = OPERATORS[expression.operator]
    variables = expression.variables
    if operator.named:
        exploded = frozenset(v.name for v in variables if v.explode)
        plain = frozenset(v.name for v in variables if not v.explode)
        return [QueryPart(operator.first, operator.separator, exploded, plain)]
    if len(variables) > 1 and any(v.explode for v in variables):
        raise error(f"in {expression.text} the end of the list is ambiguous")
    only = variables[0]
    if operator.reserved:
        if len(variables) > 1 or only.explode:
            raise error(f"the values of {expression.text} may hold the commas that separate them")
        if expression.operator == "#":
            return [LiteralPart("#"), ReservedPart(only.name)]
        return [ReservedPart(only.name)]
    if only.explode and expression.operator == "/":
        return [PathPart(only.name)]
    if only.explode and expression.operator == ".":
        raise error(f"the values of {expression.text} may hold the dots that separate them")
    parts: list[Part] = []
    for index, variable in enumerate(variables):
        literal = operator.separator if index else operator.first
        if literal:
            parts.append(LiteralPart(literal))
        parts.append(SimplePart(variable.name, variable.explode))
    return parts


def _merge_literals(parts: list[Part]) -> list[Part]:
    merged: list[Part] = []
    for part in parts:
        if merged and isinstance(part, LiteralPart) and isinstance(merged[-1], LiteralPart):
            merged[-1] = LiteralPart(merged[-1].text + part.text)
        else:
            merged.append(part)
    return merged


def _with_ends(parts: list[Part], error: MakeError) -> list[Part]:
    """Return the parts with their ends, which follow from the next parts. Raise if one has none."""
    ended: list[Part] = []
    for index, part in enumerate(parts):
        following = parts[index + 1 :]
        literal = following[0].text if following and isinstance(following[0], LiteralPart) else ""
        after = following[1:] if literal else following  # the parts after the literal
        ended.append(_with_end(part, literal, after, error))
    return _without_suffixes(ended)


def _with_end(part: Part, literal: str, after: list[Part], error: MakeError) -> Part:
    """Return `part` with its end. `literal` follows it, if not empty, and then `after`."""
    next_start = _first_character(after[0]) if after else None
    first_after = literal[:1] or next_start
    followed = bool(literal or after)
    match part:
        case SimplePart(name, explode):
            # A reserved character is always encoded in a value, so a raw one ends it. The literal
            # before that character can be part of a value, and is checked as its suffix.
            stop = next((c for c in literal if c in RESERVED), None)
            suffix = literal if stop is None else literal[: literal.index(stop)]
            stop = stop or next_start
            if after and stop is None:
                raise error(f"{name!r} and what follows it need a reserved character between them")
            if explode and stop == ",":
                raise error(f"{name!r} is a list of values with commas, and a comma follows it")
            return SimplePart(name, explode, _SEGMENT_END + (stop or ""), suffix)
        case ReservedPart(name):
            # A query may be absent. A part after it would then be read as the value's end.
            query = not literal and len(after) == 1 and next_start == "?"
            if after and not query:
                raise error(
                    f"{name!r} may hold any character, so only a last literal "
                    "or a last {?...} may follow it"
                )
            return ReservedPart(name, literal, query)
        case PathPart(name):
            if followed and first_after not in ("?", "#"):
                raise error(
                    f"{name!r} takes all segments, so only a query or a fragment may follow it"
                )
            return part
        case QueryPart(first, separator, exploded, plain):
            allowed = "#" if separator == "&" else "/?#"
            if followed and (first_after is None or first_after not in allowed):
                raise error(
                    f"{{{first}...}} may be followed only by one of {' '.join(allowed)} "
                    "or by nothing"
                )
            return QueryPart(first, separator, exploded, plain, allowed)
        case _:
            return part


def _first_character(part: Part) -> str | None:
    """Return the reserved character with which `part` starts, None if it has no fixed one."""
    match part:
        case QueryPart(first):
            return first
        case PathPart():
            return "/"
        case _:
            return None


def _without_suffixes(parts: list[Part]) -> list[Part]:
    """Remove the suffix of a value from the literal after it: the value's part checks it."""
    result: list[Part] = []
    suffix = ""
    for part in parts:
        if isinstance(part, LiteralPart):
            text = part.text[len(suffix) :]
            if text:
                result.append(LiteralPart(text))
        else:
            result.append(part)
        suffix = part.suffix if isinstance(part, SimplePart | ReservedPart) else ""
    return result
