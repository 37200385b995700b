"""The five revisions of MCP as five rows of data, and the encoding of values for each of them.

1. Revisions are compared here and nowhere else. Other code reads a field of the `Dialect` of a
   peer.
2. The methods of a revision come from `_methods.METHODS`, the fields that it lacks from
   `types._revisions.GATES`.
3. A handler's value is never changed: `Dialect.fit` returns it or an adapted copy. The changes
   for a type are computed once per revision.

Sources: each revision's schema; basic/versioning (2026-07-28); basic/lifecycle (earlier).
"""

from __future__ import annotations

import operator
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import Fault, LocalProtocolError
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.protocol.jsonrpc._unencodable import check_numbers, unencodable
from mcp_core.types._revisions import (
    GATES,
    R_2024_11_05,
    R_2025_03_26,
    R_2025_06_18,
    R_2025_11_25,
    R_2026_07_28,
    REVISIONS,
)

from ._methods import METHODS, NEVER, Method, Role

__all__ = [
    "ALL",
    "DIALECTS",
    "LATEST",
    "Dialect",
    "HttpRules",
    "dialects_of",
    "negotiate",
    "newest_common",
]

_ORDER: Final = {version: index for index, version in enumerate((*REVISIONS, NEVER))}

_CODES: Final[Mapping[Fault, int]] = MappingProxyType(
    {
        Fault.PARSE: -32700,
        Fault.INVALID_REQUEST: -32600,
        Fault.METHOD_NOT_FOUND: -32601,
        Fault.INVALID_PARAMS: -32602,
        Fault.INTERNAL: -32603,
        Fault.RESOURCE_NOT_FOUND: -32002,
        Fault.MISSING_CAPABILITY: -32601,
        Fault.UNSUPPORTED_VERSION: -32022,
        Fault.HEADER_MISMATCH: -32020,
        Fault.BUSY: -32000,
    }
)
_MODERN_CODES: Final[Mapping[Fault, int]] = MappingProxyType(
    {
        **_CODES,
        Fault.RESOURCE_NOT_FOUND: -32602,
        Fault.MISSING_CAPABILITY: -32021,
        # 2026-07-28 forbids new codes in the reserved range. Ours is positive, and equal to the
        # HTTP status with the same meaning.
        Fault.BUSY: 429,
    }
)


def _in_range(version: str, since: str | None, until: str | None) -> bool:
    return (since is None or _ORDER[since] <= _ORDER[version]) and (
        until is None or _ORDER[version] < _ORDER[until]
    )


class HttpRules(Struct, frozen=True):
    """The rules of one revision for HTTP (basic/transports).

    Attributes:
        sessions: `initialize` may begin a session.
        version_header: requests have the header `MCP-Protocol-Version`.
        mirrored_headers: requests repeat method, name and parameters in headers.
        resumable: events have ids, and a client may resume a stream after it broke.
        priming_event: a stream begins with an event that has an id and no data. Clients of earlier
            revisions would take it for a message.
        disconnect_cancels: a client that disconnects cancels its request.
        statuses: the HTTP status of an error response by JSON-RPC code, 200 for other codes.
    """

    sessions: bool = True
    version_header: bool = False
    mirrored_headers: bool = False
    resumable: bool = True
    priming_event: bool = False
    disconnect_cancels: bool = False
    statuses: Mapping[int, int] = MappingProxyType({-32700: 400, -32600: 400, -32000: 503})


_MODERN_STATUSES: Final = MappingProxyType(
    {
        -32700: 400,
        -32600: 400,
        -32601: 404,
        -32602: 400,
        -32020: 400,
        -32021: 400,
        -32022: 400,
        429: 429,
    }
)


class _FieldChanges(Struct, frozen=True):
    """The changes that one revision makes to values of one type."""

    removed: tuple[tuple[str, Any], ...] = ()  # field, and the default that leaves it out
    defaults: tuple[tuple[str, Any], ...] = ()  # required field, and its value if it is None
    nested: tuple[str, ...] = ()  # fields that can hold values which the revision changes


_NOT_COMPUTED: Final = _FieldChanges()


class Dialect(Struct, frozen=True, eq=False, weakref=True):
    """One revision of MCP.

    Attributes:
        version: its date, for example "2025-11-25".
        stateful: a connection begins with a handshake, `initialize`.
        batches: a message may be an array of messages.
        null_error_id: an error response to a message whose id could not be read has `"id": null`;
            otherwise it has no id.
        structured: which JSON `structuredContent` may be: "none", "object" or "any".
        tool_argument_errors_are_results: invalid arguments of a tool cause a result with `isError`,
            which the model reads, not a JSON-RPC error, which the program reads.
        tasks: "requested" if the sender of a request asks for a task, "extension" if the server
            decides (the extension `io.modelcontextprotocol/tasks`), "none" if there are no tasks.
        result_type: the `resultType` of an ordinary result, "" for none.
        ping: the method that every server of the revision answers at once.
        log_level: the least severe level of log messages for a peer that did not set one. None
            means that such a peer gets no log messages.
        http: its rules for HTTP.
        codes: the JSON-RPC code of each fault.
        required_defaults: by type, the fields that the revision requires and their values if a
            handler did not set them.
        receives: by role, the methods that it receives.
        unchanged_types: types whose values the revision encodes without change. `fit` adds to it.
    """

    version: str
    stateful: bool = True
    batches: bool = False
    null_error_id: bool = False
    structured: str = "none"
    tool_argument_errors_are_results: bool = False
    tasks: Literal["none", "requested", "extension"] = "none"
    result_type: str = ""
    ping: str = "ping"
    log_level: t.LoggingLevel | None = "info"
    http: HttpRules = HttpRules()
    codes: Mapping[Fault, int] = _CODES
    required_defaults: Mapping[type[Struct], tuple[tuple[str, Any], ...]] = {}
    # Derived from METHODS and GATES.
    receives: dict[Role, dict[str, Method]] = {}
    _missing_fields: dict[type[Struct], set[str]] = {}
    _missing_types: set[type[Struct]] = set()
    # Filled on first use of a type: those without changes, and the changes of all, None for none.
    unchanged_types: set[type[Struct]] = set()
    _changes: dict[type[Struct], _FieldChanges | None] = {}

    def __post_init__(self) -> None:
        for role in Role:
            self.receives[role] = {
                row.name: row
                for row in METHODS
                if row.to in (role, None) and _in_range(self.version, row.since, row.until)
            }
        for gate in GATES:
            if not _in_range(self.version, gate.since, gate.until):
                if gate.field is None:
                    self._missing_types.add(gate.type)
                else:
                    self._missing_fields.setdefault(gate.type, set()).add(gate.field)

    def __repr__(self) -> str:
        return f"<Dialect {self.version}>"

    def encode(self, value: Struct) -> bytes:
        """Return `value` as JSON of this revision. See `fit` for what it leaves out or replaces.

        Raises:
            LocalProtocolError: the revision cannot express the value.
            UnencodableValue: JSON cannot hold part of the value.
        """
        fitted = self.fit(value)
        try:
            encoded = encode(fitted)
        except UnicodeEncodeError:
            raise unencodable(fitted) from None
        if b"null" in encoded:  # perhaps msgspec's word for NaN
            check_numbers(fitted)
        return encoded

    def fit(self, value: Any) -> Any:
        """Return `value`, or a copy of it that this revision can express.

        The copy is without the fields that the revision lacks, and has the fields that it requires.
        Content that the revision lacks is replaced by text.

        Raises:
            LocalProtocolError: the revision cannot express the value.
        """
        field_changes = self._changes.get(type(value), _NOT_COMPUTED)
        if field_changes is _NOT_COMPUTED:
            if isinstance(value, (list, tuple)):
                items = [self.fit(item) for item in value]
                return value if all(map(operator.is_, items, value)) else items
            if isinstance(value, dict):
                return {key: self.fit(item) for key, item in value.items()}
            if not isinstance(value, Struct):
                return value
            if type(value) in self._missing_types:
                return self._substitute(value)
            field_changes = self._compute_changes(type(value))
        if field_changes is None:
            return value
        changes: dict[str, Any] = {}
        for name, default in field_changes.removed:
            if getattr(value, name) is not default:
                changes[name] = default  # noqa: PERF403 - mostly there is nothing to add
        for name, default in field_changes.defaults:
            if getattr(value, name) is None:
                changes[name] = default  # noqa: PERF403
        for name in field_changes.nested:
            old = getattr(value, name)
            new = self.fit(old)
            if new is not old:
                changes[name] = new
        try:
            return replace(value, **changes) if changes else value
        except ValueError as exc:
            # Without the removed fields the value is invalid, for example an elicitation by URL in
            # a revision that has forms only.
            raise LocalProtocolError(
                f"revision {self.version} cannot express this {type(value).__name__}: {exc}"
            ) from None

    def lacks(self, type: type[Struct], field: str) -> bool:
        """Return True if `type`, a type of `mcp_core.types`, lacks `field` in this revision."""
        return any(field in self._missing_fields.get(base, ()) for base in type.__mro__)

    def _substitute(self, value: Struct) -> Struct:
        to_text = _SUBSTITUTES.get(type(value))
        if to_text is None:
            raise LocalProtocolError(
                f"revision {self.version} cannot express {type(value).__name__}"
            )
        return to_text(value)

    def _compute_changes(self, type: type[Struct]) -> _FieldChanges | None:
        """Return the changes to values of `type`, None if they stay as they are. Remember them."""
        if type in self._changes:
            return self._changes[type]
        removed: list[tuple[str, Any]] = []
        defaults: list[tuple[str, Any]] = []
        nested: list[str] = []
        for base, fields in self.required_defaults.items():
            if issubclass(type, base):
                defaults.extend(fields)
        for field in msgspec.structs.fields(type):
            if self.lacks(type, field.name):
                removed.append((field.name, field.default))
            elif any(
                found in self._missing_types or self._compute_changes(found)
                for found in _structs_in(field.type)
            ):
                nested.append(field.name)
        changes = None
        if removed or defaults or nested:
            changes = _FieldChanges(tuple(removed), tuple(defaults), tuple(nested))
        else:
            self.unchanged_types.add(type)
        self._changes[type] = changes
        return changes


def _structs_in(annotation: Any) -> Iterable[type[Struct]]:
    """Yield every Struct type in an annotation such as `list[TextContent | ImageContent]`."""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _structs_in(part)


def _link_as_text(link: t.ResourceLink) -> t.TextContent:
    return t.TextContent(f"{link.title or link.name}: {link.uri}", annotations=link.annotations)


def _audio_as_text(audio: t.AudioContent) -> t.TextContent:
    return t.TextContent(f"[audio, {audio.mime_type}]", annotations=audio.annotations)


# Replacements for content that a revision doesn't have. Tool use in sampling has none: it is sent
# only to clients that declared `sampling.tools`.
_SUBSTITUTES: Final[Mapping[type[Struct], Callable[[Any], t.TextContent]]] = {
    t.ResourceLink: _link_as_text,
    t.AudioContent: _audio_as_text,
}

# Each revision by its date, as data.
DIALECTS: Final[Mapping[str, Dialect]] = {
    dialect.version: dialect
    for dialect in (
        Dialect(R_2024_11_05, null_error_id=True),
        Dialect(R_2025_03_26, null_error_id=True, batches=True),
        Dialect(
            R_2025_06_18,
            null_error_id=True,
            structured="object",
            tool_argument_errors_are_results=True,
            http=HttpRules(version_header=True),
        ),
        Dialect(
            R_2025_11_25,
            structured="object",
            tool_argument_errors_are_results=True,
            tasks="requested",
            http=HttpRules(version_header=True, priming_event=True),
        ),
        Dialect(
            R_2026_07_28,
            stateful=False,
            structured="any",
            tool_argument_errors_are_results=True,
            tasks="extension",
            result_type="complete",
            ping="server/discover",
            log_level=None,
            http=HttpRules(
                sessions=False,
                version_header=True,
                mirrored_headers=True,
                resumable=False,
                disconnect_cancels=True,
                statuses=_MODERN_STATUSES,
            ),
            codes=_MODERN_CODES,
            required_defaults={t.CacheableResult: (("ttl_ms", 0), ("cache_scope", "private"))},
        ),
    )
}

# Newest first, which is the order of preference of a client.
ALL: Final[tuple[str, ...]] = tuple(reversed(REVISIONS))
# The newest revision.
LATEST: Final[str] = ALL[0]


def dialects_of(versions: Iterable[str]) -> tuple[Dialect, ...]:
    """Return the dialects of `versions`, newest first.

    Raises:
        ValueError: a version isn't a revision of MCP, or `versions` is empty.
    """
    wanted = frozenset(versions)
    unknown = sorted(wanted - DIALECTS.keys())
    if unknown:
        raise ValueError(
            f"not a revision of MCP: {', '.join(unknown)} (there are {', '.join(REVISIONS)})"
        )
    found = tuple(DIALECTS[version] for version in ALL if version in wanted)
    if not found:
        raise ValueError("at least one revision is needed")
    return found


def newest_common(dialects: Iterable[Dialect], offered: Iterable[str]) -> Dialect | None:
    """Return the first of `dialects` whose version is in `offered`, None without a common one."""
    offered = frozenset(offered)
    return next((dialect for dialect in dialects if dialect.version in offered), None)


def negotiate(requested: str, served: Sequence[Dialect]) -> Dialect:
    """Return the revision with which to answer an `initialize` that requests `requested`.

    It is the requested one if it is in `served`, else the newest. `served` are the stateful
    revisions, newest first, and not empty.
    """
    return next((dialect for dialect in served if dialect.version == requested), served[0])
