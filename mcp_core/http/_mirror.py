"""Headers that repeat what the body of a request says: made by clients, held against the body by servers.

Who stands on the way, a load balancer or a gateway, routes and refuses by these headers; the server does what the body says. So
if the two do not agree, somebody is deceived, and the request is refused (2026-07-28, basic/transports/streamable-http, Server
Validation).

Rules of this file:

1. Values are compared after decoding, and to the letter; but numbers as numbers.
2. A header that stands twice agrees with nothing: one reader takes the first and another the last.
3. A header for an argument that is not there is as wrong as the other way round. `Mcp-Param-*` of which the tool knows nothing is
   not for us and left alone.
4. What is wrong with the body itself is for others to say: what cannot be compared because of that is no disagreement.

It does not know the error code nor the status of a refusal, and no revision: it is asked only where headers are mirrored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct, defstruct

from mcp_core._jsonrpc import Unreadable, reader
from mcp_core._methods import METHODS, Method
from mcp_core._param_headers import ParamHeaders, agrees, param_values, said, values_at
from mcp_core.types import CallToolParams

from ._headers import METHOD, NAME, PARAM_PREFIX, PROTOCOL_VERSION, decode_value, encode_value

if TYPE_CHECKING:
    from ._messages import Headers

__all__ = ["Mirror", "request_headers"]


# The member that names what is asked for, by itself: it is looked at before the params are. With the type that it has in every
# params, so that whatever cannot be read here cannot be read there.
_NAMED: Final = {
    name: defstruct("Named", [(name, str)], rename="camel")
    for name in {row.name_field for row in METHODS if row.name_field}
}
_READ_NAMED: Final = {name: reader(named) for name, named in _NAMED.items()}
_WIRE_NAMES: Final = {name: named.__struct_encode_fields__[0] for name, named in _NAMED.items()}
_SINGLE: Final = frozenset((PROTOCOL_VERSION, METHOD, NAME))
# Of a value in a complaint. It came from who reads the complaint, but need not all go back there.
_LONGEST: Final = 64


# -- The server's side -------------------------------------------------------------------------------------------------


class Mirror:
    """The mirrored headers of one request. What disagrees is told as a text, and None is good.

    `param_headers` gives what `mcp_core.registry.Server.param_headers` does.
    """

    __slots__ = ("_found", "_param_headers", "_repeated")

    def __init__(self, headers: Headers, param_headers: Callable[[str], ParamHeaders | None]) -> None:
        self._param_headers = param_headers
        self._found: dict[bytes, bytes] = {}
        self._repeated: set[bytes] = set()
        for name, value in headers:
            if name in _SINGLE or name.startswith(PARAM_PREFIX):
                if name in self._found:
                    self._repeated.add(name)
                self._found[name] = value

    def __repr__(self) -> str:
        return f"<Mirror of {len(self._found)} headers>"

    def check_head(self, method: str, version: str, row: Method | None, params: Any) -> str | None:
        """Version, method and name. `version` is that of `_meta`; `row` is None for a method that nobody knows."""
        problem = self._differs(PROTOCOL_VERSION, version) or self._differs(METHOD, method)
        if problem is not None or row is None or not row.name_field:
            return problem
        if not isinstance(params, Struct):
            try:
                params = _READ_NAMED[row.name_field](params)
            except Unreadable:
                return None
        name = getattr(params, row.name_field)
        value = self._found.get(NAME)
        if value is None or NAME in self._repeated:
            return self._absent_or_repeated(NAME)
        try:
            text = decode_value(value)
        except ValueError as exc:
            return f"Header mismatch: {_said(NAME)} is malformed: {exc}"
        return None if text == name else _mismatch(NAME, text, name)

    def check_params(self, row: Method, params: Any) -> str | None:
        """`Mcp-Param-*`. `params` is an object of `row.params`."""
        if not isinstance(params, CallToolParams):
            return None
        mirrored = self._param_headers(params.name)
        if not mirrored:
            return None
        try:
            values = values_at(mirrored, params.arguments)
        except ValueError as exc:
            return f"Header mismatch: {exc}"
        for path, name, value in values:
            problem = self._param_differs(PARAM_PREFIX + name.lower().encode(), ".".join(path), value)
            if problem is not None:
                return problem
        return None

    def _differs(self, header: bytes, wanted: str) -> str | None:
        """These two headers have no encoding: what is no plain text in them is wrong."""
        value = self._found.get(header)
        if value is None or header in self._repeated:
            return self._absent_or_repeated(header)
        value = value.strip(b" \t")
        if value == wanted.encode() and value.isascii():
            return None
        return _mismatch(header, value.decode("ascii", "backslashreplace"), wanted)

    def _param_differs(self, header: bytes, place: str, value: Any) -> str | None:
        found = self._found.get(header)
        if header in self._repeated:
            return self._absent_or_repeated(header)
        try:
            wanted = said(value)
        except ValueError as exc:
            return f"Header mismatch: {exc}: argument {place!r}"
        if found is None:
            return None if wanted is None else self._absent_or_repeated(header)
        if value is None:
            return f"Header mismatch: {_said(header)} is there, but argument {place!r} has no value"
        try:
            text = decode_value(found)
        except ValueError as exc:
            return f"Header mismatch: {_said(header)} is malformed: {exc}"
        return None if agrees(text, value) else _mismatch(header, text, wanted)

    def _absent_or_repeated(self, header: bytes) -> str:
        what = "stands more than once" if header in self._repeated else "is missing"
        return f"Header mismatch: {_said(header)} {what}"


def _mismatch(header: bytes, found: str, wanted: str | None) -> str:
    body = repr(wanted[:_LONGEST]) if wanted is not None else "no such value"
    return f"Header mismatch: {_said(header)} is {found[:_LONGEST]!r}, but the body has {body}"


def _said(header: bytes) -> str:
    """The name of a header as people write it."""
    return header.decode("ascii").title().replace("Mcp-Protocol", "MCP-Protocol")


# -- The client's side -------------------------------------------------------------------------------------------------


def request_headers(row: Method, params: Any, version: str, mirrored: ParamHeaders | None = None) -> Headers:
    """The headers that repeat what a request (or notification) says. `params` are an object of `row.params` or a mapping with the
    names that JSON has; `mirrored` is what `param_headers` gave for the tool that is called.

    Raises:
        ValueError: one of them cannot be said in a header: a method beyond ASCII, half of a surrogate pair, or an integer beyond
            2**53-1 where it is mirrored.
    """
    headers = [(PROTOCOL_VERSION, version.encode("ascii")), (METHOD, _method(row.name))]
    if row.name_field:
        name = _member(params, row.name_field)
        if isinstance(name, str):
            headers.append((NAME, encode_value(name)))
    if mirrored:
        headers += [
            (PARAM_PREFIX + name.lower().encode(), encode_value(text))
            for name, text in param_values(mirrored, _member(params, "arguments"))
        ]
    return headers


def _method(name: str) -> bytes:
    # There is no encoding for this one: what would need it cannot be asked for.
    value = name.encode("ascii", "replace")
    if encode_value(name) != value:
        raise ValueError(f"the method {name[:_LONGEST]!r} cannot be said in a header")
    return value


def _member(params: Any, attribute: str) -> Any:
    if isinstance(params, Struct):
        return getattr(params, attribute, UNSET)
    return params.get(_WIRE_NAMES.get(attribute, attribute), UNSET) if params else UNSET
