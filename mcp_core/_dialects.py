"""The five revisions of MCP as five rows of data, and how a value is said in each of them.

Rules of this file:

1. It is the only place where revisions are compared. Everyone else reads a field of the `Dialect` that a `Peer` carries.
2. What a revision lacks is absent from its row: methods through `_methods.METHODS`, fields through
   `types._revisions.GATES`. Nothing here says what to do *instead* of a method.
3. A handler's value is never changed. `Dialect.fit` gives the value itself when the revision can say all of it, else a
   copy without what the revision lacks. What that means for a type is worked out once.

It does not know connections. Sources: each revision's schema; basic/versioning (2026-07-28); basic/lifecycle (before).
"""

from __future__ import annotations

import operator
import typing
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from . import types as t
from ._errors import Fault, LocalProtocolError
from ._jsonrpc import encode
from ._methods import METHODS, NEVER, Method, Role
from .types._revisions import (
    GATES,
    R_2024_11_05,
    R_2025_03_26,
    R_2025_06_18,
    R_2025_11_25,
    R_2026_07_28,
    REVISIONS,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

__all__ = ["ALL", "DIALECTS", "LATEST", "Dialect", "HttpRules", "best", "known", "negotiate"]

_ORDER: Final = {version: place for place, version in enumerate((*REVISIONS, NEVER))}

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
        # The reserved range is closed to new codes there; ours is positive, after the HTTP status with the same meaning.
        Fault.BUSY: 429,
    }
)


def _lives(since: str | None, until: str | None, version: str) -> bool:
    return (since is None or _ORDER[since] <= _ORDER[version]) and (
        until is None or _ORDER[version] < _ORDER[until]
    )


class HttpRules(Struct, frozen=True):
    """What one revision wants of HTTP (basic/transports).

    `sessions`: a handshake may begin a session. `version_header`: requests carry `MCP-Protocol-Version`. `mirrored`: they carry
    method, name and parameters in headers too. `resumable`: events have ids, and a stream that broke may be taken up again.
    `primed`: a stream begins with an event that has an id and no data; older clients take that for a message. `cancels`: who
    hangs up wants no answer any more. `statuses`: of answers that are an error, by code; 200 for any other.
    """

    sessions: bool = True
    version_header: bool = False
    mirrored: bool = False
    resumable: bool = True
    primed: bool = False
    cancels: bool = False
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


class _Fit(Struct, frozen=True):
    """What one revision changes in values of one type."""

    gone: tuple[tuple[str, Any], ...] = ()  # field and the default that leaves it out
    filled: tuple[tuple[str, Any], ...] = ()  # field and what the revision wants there when nothing was said
    deeper: tuple[str, ...] = ()  # fields that can hold values which the revision changes


_NOT_WORKED_OUT: Final = _Fit()


class Dialect(Struct, frozen=True, eq=False, weakref=True):
    """One revision.

    `stateful`: it begins with a handshake. `batches`: a message may be an array. `null_error_id`: an error for a message
    whose id could not be read carries `"id": null` instead of no id. `structured`: what `structuredContent` may be, one of
    `"none"`, `"object"`, `"any"`. `tool_argument_faults_are_results`: arguments that do not fit a tool are told to the
    model (`isError`) instead of the program. `result_type`: the `resultType` of an ordinary result, "" for none. `ping`: the
    method that any server of the revision answers at once. `log_level`: the least severe log message for a peer that did not
    say which ones it wants, None for no message at all. `http`: what it wants of HTTP.
    """

    version: str
    stateful: bool = True
    batches: bool = False
    null_error_id: bool = False
    structured: str = "none"
    tool_argument_faults_are_results: bool = False
    result_type: str = ""
    ping: str = "ping"
    log_level: t.LoggingLevel | None = "info"
    http: HttpRules = HttpRules()
    codes: Mapping[Fault, int] = _CODES
    fills: Mapping[type[Struct], tuple[tuple[str, Any], ...]] = {}
    # Derived from METHODS and GATES.
    receives: dict[Role, dict[str, Method]] = {}
    _gates: dict[type[Struct], dict[str, Any]] = {}
    _lacking: set[type[Struct]] = set()
    # Types of which the revision can say all, and what it changes in the others.
    unchanged: set[type[Struct]] = set()
    _fits: dict[type[Struct], _Fit | None] = {}

    def __post_init__(self) -> None:
        for role in Role:
            self.receives[role] = {
                row.name: row
                for row in METHODS
                if row.to in (role, None) and _lives(row.since, row.until, self.version)
            }
        for gate in GATES:
            if not _lives(gate.since, gate.until, self.version):
                if gate.field is None:
                    self._lacking.add(gate.type)
                else:
                    self._gates.setdefault(gate.type, {})[gate.field] = None

    def __repr__(self) -> str:
        return f"<Dialect {self.version}>"

    def encode(self, value: Struct) -> bytes:
        """`value` as JSON of this revision: without fields it lacks, content it lacks told as text.

        Raises:
            LocalProtocolError: there is no such way to tell it.
        """
        return encode(self.fit(value))

    def fit(self, value: Any) -> Any:
        """`value`, or a copy of it that has nothing which this revision lacks."""
        fit = self._fits.get(type(value), _NOT_WORKED_OUT)
        if fit is _NOT_WORKED_OUT:
            if isinstance(value, (list, tuple)):
                fitted = [self.fit(item) for item in value]
                return value if all(map(operator.is_, fitted, value)) else fitted
            if isinstance(value, dict):
                return {key: self.fit(item) for key, item in value.items()}
            if not isinstance(value, Struct):
                return value
            if type(value) in self._lacking:
                return self._substitute(value)
            fit = self._work_out(type(value))
        if fit is None:
            return value
        changes: dict[str, Any] = {}
        for name, default in fit.gone:
            if getattr(value, name) is not default:
                changes[name] = default  # noqa: PERF403 - this is run for each message, and mostly finds nothing
        for name, wanted in fit.filled:
            if getattr(value, name) is None:
                changes[name] = wanted  # noqa: PERF403
        for name in fit.deeper:
            old = getattr(value, name)
            new = self.fit(old)
            if new is not old:
                changes[name] = new
        try:
            return replace(value, **changes) if changes else value
        except ValueError as exc:
            # What is left breaks a rule of its type: an elicitation by URL, say, where there are only forms.
            raise LocalProtocolError(
                f"revision {self.version} cannot say this {type(value).__name__}: {exc}"
            ) from None

    def lacks(self, type: type[Struct], field: str) -> bool:
        """Whether this revision's `type` has no such field."""
        return any(field in self._gates.get(base, ()) for base in type.__mro__)

    def _substitute(self, value: Struct) -> Struct:
        say = _SUBSTITUTES.get(type(value))
        if say is None:
            raise LocalProtocolError(f"revision {self.version} cannot say {type(value).__name__}")
        return say(value)

    def _work_out(self, type: type[Struct]) -> _Fit | None:
        if type in self._fits:
            return self._fits[type]
        gone: list[tuple[str, Any]] = []
        filled: list[tuple[str, Any]] = []
        deeper: list[str] = []
        for base, fields in self.fills.items():
            if issubclass(type, base):
                filled.extend(fields)
        for field in msgspec.structs.fields(type):
            if self.lacks(type, field.name):
                gone.append((field.name, field.default))
            elif any(found in self._lacking or self._work_out(found) for found in _structs_in(field.type)):
                deeper.append(field.name)
        if not (gone or filled or deeper):
            self.unchanged.add(type)
            self._fits[type] = None
            return None
        fit = self._fits[type] = _Fit(tuple(gone), tuple(filled), tuple(deeper))
        return fit


def _structs_in(annotation: Any) -> Iterable[type[Struct]]:
    """Every Struct type named in an annotation such as `list[TextContent | ImageContent] | None`."""
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _structs_in(part)


def _link_as_text(link: t.ResourceLink) -> t.TextContent:
    return t.TextContent(f"{link.title or link.name}: {link.uri}", annotations=link.annotations)


def _audio_as_text(audio: t.AudioContent) -> t.TextContent:
    return t.TextContent(f"[audio, {audio.mime_type}]", annotations=audio.annotations)


# What stands in for content that a revision does not have. A model's use of tools has no substitute: who could take part
# in it would have said so.
_SUBSTITUTES: Final[Mapping[type[Struct], Callable[[Any], t.TextContent]]] = {
    t.ResourceLink: _link_as_text,
    t.AudioContent: _audio_as_text,
}

DIALECTS: Final[Mapping[str, Dialect]] = {
    dialect.version: dialect
    for dialect in (
        Dialect(R_2024_11_05, null_error_id=True),
        Dialect(R_2025_03_26, null_error_id=True, batches=True),
        Dialect(
            R_2025_06_18,
            null_error_id=True,
            structured="object",
            tool_argument_faults_are_results=True,
            http=HttpRules(version_header=True),
        ),
        Dialect(
            R_2025_11_25,
            structured="object",
            tool_argument_faults_are_results=True,
            http=HttpRules(version_header=True, primed=True),
        ),
        Dialect(
            R_2026_07_28,
            stateful=False,
            structured="any",
            tool_argument_faults_are_results=True,
            result_type="complete",
            ping="server/discover",
            log_level=None,
            http=HttpRules(
                sessions=False,
                version_header=True,
                mirrored=True,
                resumable=False,
                cancels=True,
                statuses=_MODERN_STATUSES,
            ),
            codes=_MODERN_CODES,
            fills={t.CacheableResult: (("ttl_ms", 0), ("cache_scope", "private"))},
        ),
    )
}

# Newest first: the order in which a client prefers them.
ALL: Final[tuple[str, ...]] = tuple(reversed(REVISIONS))
LATEST: Final[str] = ALL[0]


def known(versions: Iterable[str]) -> tuple[Dialect, ...]:
    """The dialects of `versions`, newest first.

    Raises:
        ValueError: one of them is no revision of MCP, or there are none.
    """
    wanted = frozenset(versions)
    unknown = sorted(wanted - DIALECTS.keys())
    if unknown:
        raise ValueError(f"not a revision of MCP: {', '.join(unknown)} (there are {', '.join(REVISIONS)})")
    found = tuple(DIALECTS[version] for version in ALL if version in wanted)
    if not found:
        raise ValueError("at least one revision is needed")
    return found


def best(spoken: Iterable[Dialect], offered: Iterable[str]) -> Dialect | None:
    """The first of `spoken` that is among the versions `offered`."""
    offered = frozenset(offered)
    return next((dialect for dialect in spoken if dialect.version in offered), None)


def negotiate(requested: str, served: Sequence[Dialect]) -> Dialect:
    """The revision in which to answer an `initialize` that asks for `requested`: that one if it is among `served`
    (stateful revisions, newest first), else the newest of them."""
    return next((dialect for dialect in served if dialect.version == requested), served[0])
