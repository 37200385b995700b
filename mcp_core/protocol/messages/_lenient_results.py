"""Results that don't have their exact type, by their smallest usable parts.

A strict reader loses a list of tools for one tool, and the result of a call that cannot be repeated
for one content block. This one is used after the exact reader has failed, and never to judge a
peer.

1. An entry of a list that cannot be read is left out, and so is an optional member. A list of
   nothing but such entries isn't readable. Nor is an object without a member that it must have, so
   that the next larger part is left out, up to the whole result.
2. What protects someone, or says what to do next, is never left out (`_NEVER_LEFT_OUT`). Nor is a
   part of a conversation, which would mean something else without it (`_REFUSED`).
3. A content block of an unknown type is kept as it is, for a client (`UnknownContent`).
4. All that was left out in places of one kind makes one line, however much it is.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from msgspec import Raw, Struct, UnsetType
from msgspec.structs import FieldInfo, fields

from mcp_core import types as t
from mcp_core._text import escape_text, shorten_text
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, reader
from mcp_core.urls._url import redacted_url

__all__ = ["LenientReader"]

# Parts that are read one by one because they don't have their exact type, and commas of a result,
# which has no more entries than those. More take a noticeable part of a second, and a peer chooses
# how many there are.
_MOST_FAULTS: Final = 5_000
_MOST_COMMAS: Final = 300_000
_MOST_NAMES: Final = 3  # entries that a line names
_MAX_NAME: Final = 60  # characters of an entry's name
_MAX_REASON: Final = 200  # characters
_NAMES: Final = ("name", "uri", "uriTemplate", "taskId", "type")
_URIS: Final = ("uri", "uriTemplate")
_EMPTY: Final = "read as empty"
_LEFT_OUT: Final = "left out"

# Without these the rest would mean something else: a list would seem complete, a form filled in,
# or an object would seem to have the other one of two members.
_NEVER_LEFT_OUT: Final[Mapping[type[Struct], tuple[str, ...]]] = {
    t.Result: ("result_type", "next_cursor"),
    t.ResourceContents: ("text", "blob"),
    t.ElicitResult: ("content",),
    t.GetTaskResult: ("input_requests", "result", "error"),
    t.CancelTaskResult: ("task_id", "status"),
}
# What isn't done to a list, by its member: it cannot be read then. A server without a list of
# versions is an older one, and isn't one that speaks none.
_REFUSED: Final[Mapping[tuple[type[Struct], str], str]] = {
    (t.GetPromptResult, "messages"): _LEFT_OUT,
    (t.CreateMessageResult, "content"): _LEFT_OUT,
    (t.DiscoverResult, "supported_versions"): _EMPTY,
}
# Read as a whole or not at all. A tool without annotations counts as destructive; one that keeps
# `readOnlyHint` and loses `destructiveHint` would count as harmless.
_ATOMIC: Final = (t.ToolAnnotations,)
# True unless it is clearly false: a failure must not look like a success.
_TRUE_IN_DOUBT: Final = "is_error"

# What stands for a member that is missing, by the member's attribute.
_STAND_INS: Final[Mapping[type[Struct], Mapping[str, Callable[[], Any]]]] = {
    t.CallToolResult: {"content": list},
    t.ToolResultContent: {"content": list},
    # For display only.
    t.Implementation: {"version": str},
    t.InitializeResult: {"server_info": lambda: t.Implementation("", "")},
}
# The types whose `content` may only be missing if another member says that this is a tool's result.
# Else it is something that was not asked for, such as a task, or an error.
_TOOL_RESULTS: Final = (t.CallToolResult, t.ToolResultContent)

_read_members = reader(dict[str, Raw])
_read_items = reader(list[Raw])
_read_text = reader(str)
_read_any = reader(object)


class _TooManyFaults(Exception):
    """Ends the reading of a result, with all of its parts."""


class _Problem(typing.NamedTuple):
    """One fault: where it is, what its part is called, and what was done and why."""

    place: tuple[str | int, ...]
    name: str
    action: str
    reason: str


class LenientReader:
    """Reads one result.

    Args:
        keeps_unknown: content blocks of unknown types become `UnknownContent`. Else they cannot be
            read.
    """

    def __init__(self, *, keeps_unknown: bool) -> None:
        self._keeps_unknown = keeps_unknown
        self._found: list[_Problem] = []
        self._faults = 0

    def __repr__(self) -> str:
        return f"<LenientReader, {len(self._found)} problems>"

    def read(self, kind: Any, data: Raw | bytes) -> Any:
        """Return `data` as an object of the type `kind`.

        Raises:
            InvalidPayload: it has no usable part, or too many parts to look at.
        """
        try:
            if bytes(data).count(b",") > _MOST_COMMAS:
                raise _TooManyFaults
            return self._read(kind, data, ())
        except _TooManyFaults:
            raise InvalidPayload("it has too many faults to look at each") from None

    def problems(self) -> dict[str, str]:
        """Return what was left out or changed, as one line for each kind of place.

        The keys are such places, for example `tools[]` or `tools[].icons`.
        """
        groups: dict[tuple[str, str], list[_Problem]] = {}
        for each in self._found:
            groups.setdefault((_pattern(each.place), each.action), []).append(each)
        lines: dict[str, str] = {}
        for (pattern, action), found in groups.items():
            names = ", ".join(_path(each.place) + each.name for each in found[:_MOST_NAMES])
            more = f" and {len(found) - _MOST_NAMES} more" if len(found) > _MOST_NAMES else ""
            because = "was {}: {}" if len(found) == 1 else "were {}; the first: {}"
            line = f"{names}{more} {because.format(action, found[0].reason)}"
            line = escape_text(line)  # `repr` leaves some invisible characters
            lines[pattern] = f"{lines[pattern]}; {line}" if pattern in lines else line
        return lines

    def _read(self, kind: Any, data: Raw | bytes, place: tuple[str | int, ...]) -> Any:
        try:
            return _exact_reader(kind)(data)
        except InvalidPayload as exc:
            error = exc
        self._faults += 1
        if self._faults > _MOST_FAULTS:
            raise _TooManyFaults
        members = _members_of(kind)
        only = members[0] if len(members) == 1 else None
        listed = [each for each in members if typing.get_origin(each) is list]
        if listed and (only is not None or _first(data) == b"["):
            return self._read_list(typing.get_args(listed[0])[0], data, place, error)
        if t.TextContent in members:
            return self._read_block(members, data, place, error)
        if isinstance(only, type) and issubclass(only, Struct) and only not in _ATOMIC:
            return self._read_object(only, data, place)
        raise _located(error, place)

    def _read_list(
        self, kind: Any, data: Raw | bytes, place: tuple[str | int, ...], error: InvalidPayload
    ) -> list[Any]:
        first = _first(data)
        if first == b"n":
            self._note(place, "", _EMPTY, "it is null")
            return []
        if first in (b'"', b"{") and t.TextContent in _members_of(kind):
            self._note(place, "", "read as a list of one entry", str(error))
            return [self._read(kind, data, place)]
        try:
            items = _read_items(data)
        except InvalidPayload:
            raise _located(error, place) from None
        found = []
        reason: InvalidPayload | None = None
        for index, item in enumerate(items):
            before = len(self._found)
            try:
                found.append(self._read(kind, item, (*place, index)))
            except InvalidPayload as exc:
                del self._found[before:]
                reason = reason or exc
                self._note((*place, index), _name_of(item), _LEFT_OUT, str(exc))
        if reason is not None and not found:
            raise InvalidPayload(f"no entry of {_path(place)} can be read: {reason}")
        return found

    def _read_object(
        self, kind: type[Struct], data: Raw | bytes, place: tuple[str | int, ...]
    ) -> Any:
        try:
            members = _read_members(data)
        except InvalidPayload as exc:
            raise _located(exc, place) from None
        values: dict[str, Any] = {}
        for field in _fields_of(kind):
            name = field.encode_name
            inner = (*place, name)
            if name not in members:
                if field.required:
                    values[field.name] = self._missing(kind, field, members, place)
                continue
            before = len(self._found)
            try:
                values[field.name] = self._read(field.type, members[name], inner)
                self._check_list(_REFUSED.get((kind, field.name)), inner, before)
            except InvalidPayload as exc:
                del self._found[before:]
                action = self._set_in_doubt(kind, field, members[name], values)
                if not action and (field.required or _is_needed(kind, field.name)):
                    raise
                self._note(inner, "", action or _LEFT_OUT, str(exc))
        try:
            return kind(**values)
        except ValueError as exc:
            raise _located(InvalidPayload(str(exc)), place) from None

    def _check_list(self, refused: str | None, place: tuple[str | int, ...], before: int) -> None:
        """Refuse the list at `place` if `refused` was done to it, or to one of its entries."""
        for each in self._found[before:] if refused else ():
            is_entry = all(isinstance(part, int) for part in each.place[len(place) :])
            if is_entry and each.action == refused:
                raise InvalidPayload(each.reason)

    def _missing(
        self,
        kind: type[Struct],
        field: FieldInfo,
        members: dict[str, Raw],
        place: tuple[str | int, ...],
    ) -> Any:
        stand_in = _STAND_INS.get(kind, {}).get(field.name)
        if stand_in is None or (kind in _TOOL_RESULTS and not _is_tool_result(members)):
            missing = f"Object missing required field `{field.encode_name}`"
            raise _located(InvalidPayload(missing), place)
        self._note((*place, field.encode_name), "", _EMPTY, "it is missing")
        return stand_in()

    def _set_in_doubt(
        self, kind: type[Struct], field: FieldInfo, data: Raw, values: dict[str, Any]
    ) -> str:
        """Set a member to which any value gives a meaning. Return what was done, or ""."""
        if field.name == _TRUE_IN_DOUBT:
            values[field.name] = is_true = bytes(data).lower() != b'"false"'
            return f"read as {str(is_true).lower()}"
        if kind is t.ServerCapabilities and bytes(data) != b"false":
            values[field.name] = _exact_reader(field.type)(b"{}")  # it is declared by being there
            return "read as an empty object"
        return ""

    def _read_block(
        self,
        kinds: tuple[Any, ...],
        data: Raw | bytes,
        place: tuple[str | int, ...],
        error: InvalidPayload,
    ) -> Any:
        """Read a content block of one of `kinds`. A text, or a list of it alone, stands for it."""
        first = _first(data)
        if first == b"[":
            items = _read_items(data)
            if len(items) == 1 and _first(items[0]) == b"{":
                self._note(place, "", "read as its only entry", str(error))
                return self._read_block(kinds, items[0], place, error)
        if first == b'"':
            self._note(place, "", "read as a text block", str(error))
            return t.TextContent(_read_text(data))
        if first != b"{":
            raise _located(error, place)
        members = _read_members(data)
        try:
            name = _read_text(members.get("type", b""))
        except InvalidPayload:
            raise _located(error, place) from None
        kind = next((each for each in kinds if getattr(each, "type", None) == name), None)
        if kind is not None:
            return self._read_object(kind, data, place)
        if not self._keeps_unknown:
            raise _located(error, place)
        others = {key: _read_any(value) for key, value in members.items() if key != "type"}
        return t.UnknownContent(name, others)

    def _note(self, place: tuple[str | int, ...], name: str, action: str, reason: str) -> None:
        self._found.append(_Problem(place, name, action, shorten_text(reason, _MAX_REASON)))


@cache
def _exact_reader(kind: Any) -> Callable[[Raw | bytes], Any]:
    return reader(kind)


@cache
def _fields_of(kind: type[Struct]) -> tuple[FieldInfo, ...]:
    return fields(kind)


@cache
def _members_of(kind: Any) -> tuple[Any, ...]:
    """Return a union's types without the types of an absent member, or `kind` itself."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        absent = (types.NoneType, UnsetType)
        return tuple(each for each in typing.get_args(kind) if each not in absent)
    return (kind,)


def _is_needed(kind: type[Struct], name: str) -> bool:
    return any(name in _NEVER_LEFT_OUT.get(base, ()) for base in kind.__mro__)


def _first(data: Raw | bytes) -> bytes:
    return bytes(memoryview(data)[:1])


def _is_tool_result(members: Mapping[str, Raw]) -> bool:
    return "structuredContent" in members or bytes(members.get("isError", b"")) == b"true"


def _name_of(item: Raw) -> str:
    """Return how a line shows the name of an entry, if it has one. A URI may have secrets."""
    try:
        members = _read_members(item)
        member = next((name for name in _NAMES if name in members), None)
        if member is None:
            return ""
        text = _read_text(members[member])
    except InvalidPayload:
        return ""
    return f" {redacted_url(text) if member in _URIS else repr(shorten_text(text, _MAX_NAME))}"


def _pattern(place: tuple[str | int, ...]) -> str:
    return _path(tuple("" if isinstance(part, int) else part for part in place))


def _path(place: tuple[str | int, ...]) -> str:
    """Return a place as in `tools[3].icons[0]`, or `tools[].icons[]` for "" in place of numbers."""
    found = ""
    for part in place:
        if isinstance(part, int) or not part:
            found += f"[{part}]"
        else:
            found += f".{part}" if found else part
    return found or "it"


def _located(error: InvalidPayload, place: tuple[str | int, ...]) -> InvalidPayload:
    return InvalidPayload(f"{error} (at {_path(place)})" if place else str(error))
