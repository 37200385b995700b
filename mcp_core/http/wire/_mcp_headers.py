"""The HTTP headers of MCP: their names, the encoding of values, and the copies of body values.

1. Text that a header cannot carry is sent as `=?base64?...?=`, and so is text that looks like that.
   Each text thus has one encoding. Decoding is strict: base64 that no encoder produces, or that is
   not UTF-8, is an error (2026-07-28, basic/transports/streamable-http, Value Encoding).
2. Load balancers and gateways route and reject requests by headers that repeat values in the body,
   but the server acts on the body. A difference may be an attack, so the server rejects the request
   (Server Validation, same page). Values are compared after decoding, numbers as numbers. A header
   for a missing argument is as wrong as a missing header.
3. An invalid body is reported elsewhere. A value that cannot be compared because of it isn't a
   mismatch.

Names are in lower case, as in `RequestHead`. On the wire their case doesn't matter.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from msgspec import UNSET, Struct, defstruct

from mcp_core.protocol.jsonrpc._codec import InvalidPayload, reader
from mcp_core.protocol.revisions._methods import METHODS, Method
from mcp_core.protocol.schema._param_headers import (
    HEADER_TOKEN,
    ParamHeaders,
    format_value,
    header_matches,
    mirrored_values,
    param_values,
)
from mcp_core.types import CallToolParams

from ._messages import Headers

__all__ = [
    "LAST_EVENT_ID",
    "METHOD",
    "NAME",
    "PARAM_PREFIX",
    "PROTOCOL_VERSION",
    "SESSION_ID",
    "RequestHeaderValidator",
    "check_headers",
    "decode_value",
    "encode_value",
    "message_headers",
    "request_headers",
]

PROTOCOL_VERSION: Final = b"mcp-protocol-version"

SESSION_ID: Final = b"mcp-session-id"

LAST_EVENT_ID: Final = b"last-event-id"

METHOD: Final = b"mcp-method"

NAME: Final = b"mcp-name"

# `Mcp-Param-Region` for a property with `"x-mcp-header": "Region"`.
PARAM_PREFIX: Final = b"mcp-param-"

_BEGIN: Final = b"=?base64?"

_END: Final = b"?="

# Visible ASCII, with spaces inside. A tab is valid too, but some proxies replace it by a space.
_PLAIN: Final = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")

_VALUE: Final = re.compile(rb"[\t -~]*")

# A value that is its own text: no white space at its ends, no base64.
_SIMPLE: Final = re.compile(rb"[!-<>-~](?:[ -~]*[!-~])?")


def encode_value(text: str) -> bytes:
    """Encode text as the value of `Mcp-Name` or `Mcp-Param-*`.

    Raises:
        ValueError: the text has half of a surrogate pair, which UTF-8 cannot encode.
    """
    if _PLAIN.fullmatch(text):
        value = text.encode("ascii")
        # Also if the two markers overlap: some decoder may take that for base64.
        if not (value.startswith(_BEGIN) and value.endswith(_END)):
            return value
    return b"%b%b%b" % (_BEGIN, b2a_base64(text.encode(), newline=False), _END)


def decode_value(value: bytes) -> str:
    """Decode a header's value. White space around it belongs to the header, not to the text.

    Raises:
        ValueError: the value has invalid characters, or is marked as base64 but isn't the base64
            of UTF-8 text.
    """
    if not _VALUE.fullmatch(value):
        raise ValueError("it has characters that no header may have")
    value = value.strip(b" \t")
    if not (
        value.startswith(_BEGIN) and value.endswith(_END) and len(value) >= len(_BEGIN) + len(_END)
    ):
        return value.decode("ascii")
    encoded = value[len(_BEGIN) : -len(_END)]
    try:
        data = a2b_base64(encoded)
    except Error:
        data = b""
    # a2b_base64 ignores foreign characters, and is lenient about padding and leftover bits.
    if b2a_base64(data, newline=False) != encoded:
        raise ValueError("it is marked as base64 but is not valid base64")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("its base64 is not UTF-8 text") from None


# -- Both sides ----------------------------------------------------------------------------------

# Decodes only the member that names the target, before the params are decoded. It has the type that
# it has in every params, so what cannot be decoded here cannot be decoded there either.
_NAME_STRUCTS: Final = {
    name: defstruct("Named", [(name, str)], rename="camel")
    for name in {row.name_field for row in METHODS if row.name_field}
}

_NAME_DECODERS: Final = {name: reader(struct) for name, struct in _NAME_STRUCTS.items()}

_WIRE_NAMES: Final = {
    name: struct.__struct_encode_fields__[0] for name, struct in _NAME_STRUCTS.items()
}

_NAME_MEMBERS: Final = {row.name: _WIRE_NAMES[row.name_field] for row in METHODS if row.name_field}

# The value of `Mcp-Method`, for the methods of MCP.
_METHOD_VALUES: Final = {row.name: row.name.encode() for row in METHODS}

_SINGLE_HEADERS: Final = frozenset((PROTOCOL_VERSION, METHOD, NAME))

# Characters of a value in an error text. The client sent it, but need not get all of it back.
_MAX_QUOTED: Final = 64


# -- The server side -----------------------------------------------------------------------------


class RequestHeaderValidator:
    """Checks the mirrored headers of one request. Methods return an error text, or None.

    `param_headers` returns the mirrored parameters of a tool, as
    `mcp_core.registry.Server.param_headers` does.
    """

    __slots__ = ("_param_headers", "_repeated", "_values")

    def __init__(
        self, headers: Headers, param_headers: Callable[[str], ParamHeaders | None]
    ) -> None:
        self._param_headers = param_headers
        self._values: dict[bytes, bytes] = {}
        self._repeated: set[bytes] = set()
        for name, value in headers:
            if name in _SINGLE_HEADERS or name.startswith(PARAM_PREFIX):
                if name in self._values:
                    self._repeated.add(name)
                self._values[name] = value

    def __repr__(self) -> str:
        return f"<RequestHeaderValidator of {len(self._values)} headers>"

    def check_head(self, method: str, version: str, row: Method | None, params: Any) -> str | None:
        """Check protocol version, method and name.

        `version` is the one in `_meta`. `row` is None for an unknown method. `params` may be
        undecoded, because they don't fit the method.
        """
        values = self._values
        if (
            values.get(PROTOCOL_VERSION) != version.encode()
            or values.get(METHOD) != method.encode()
            or self._repeated
            or not (version.isascii() and method.isascii())
        ):
            error = self._find_plain_error(PROTOCOL_VERSION, version)
            error = error or self._find_plain_error(METHOD, method)
            if error is not None:
                return error
        if row is None or not row.name_field:
            return None
        if not isinstance(params, Struct):
            try:
                params = _NAME_DECODERS[row.name_field](params)
            except InvalidPayload:
                return None
        name = getattr(params, row.name_field)
        value = values.get(NAME)
        if value is None or NAME in self._repeated:
            return self._absent_or_repeated(NAME)
        if _SIMPLE.fullmatch(value) and value == name.encode():
            return None
        try:
            text = decode_value(value)
        except ValueError as exc:
            return f"Header mismatch: {_display_name(NAME)} is malformed: {exc}"
        return None if text == name else _mismatch(NAME, text, name)

    def check_params(self, row: Method, params: Any) -> str | None:
        """Check `Mcp-Param-*`. `params` is an object of `row.params`."""
        if not isinstance(params, CallToolParams):
            return None
        mirrored = self._param_headers(params.name)
        if not mirrored:
            return None
        try:
            values = mirrored_values(mirrored, params.arguments)
        except ValueError as exc:
            return f"Header mismatch: {exc}"
        for path, name, value in values:
            error = self._find_param_error(
                PARAM_PREFIX + name.lower().encode(), ".".join(path), value
            )
            if error is not None:
                return error
        return None

    def _find_plain_error(self, header: bytes, expected: str) -> str | None:
        """Check a header without encoding, which may only have plain ASCII."""
        value = self._values.get(header)
        if value is None or header in self._repeated:
            return self._absent_or_repeated(header)
        value = value.strip(b" \t")
        if value == expected.encode() and value.isascii():
            return None
        return _mismatch(header, value.decode("ascii", "backslashreplace"), expected)

    def _find_param_error(self, header: bytes, argument: str, value: Any) -> str | None:
        found = self._values.get(header)
        if header in self._repeated:
            return self._absent_or_repeated(header)
        try:
            expected = format_value(value)
        except ValueError as exc:
            return f"Header mismatch: {exc}: argument {argument!r}"
        if found is None:
            return None if expected is None else self._absent_or_repeated(header)
        if value is None:
            return (
                f"Header mismatch: {_display_name(header)} is there, but argument {argument!r} has "
                "no value"
            )
        try:
            text = decode_value(found)
        except ValueError as exc:
            return f"Header mismatch: {_display_name(header)} is malformed: {exc}"
        return None if header_matches(text, value) else _mismatch(header, text, expected)

    def _absent_or_repeated(self, header: bytes) -> str:
        problem = "stands more than once" if header in self._repeated else "is missing"
        return f"Header mismatch: {_display_name(header)} {problem}"


def _mismatch(header: bytes, found: str, expected: str | None) -> str:
    body = repr(expected[:_MAX_QUOTED]) if expected is not None else "no such value"
    return (
        f"Header mismatch: {_display_name(header)} is {found[:_MAX_QUOTED]!r}, but the body has "
        f"{body}"
    )


def _display_name(header: bytes) -> str:
    """Return the usual spelling of a header's name."""
    return header.decode("ascii").title().replace("Mcp-Protocol", "MCP-Protocol")


# -- The client side -----------------------------------------------------------------------------


def request_headers(
    row: Method, params: Any, version: str, mirrored: ParamHeaders | None = None
) -> Headers:
    """Return the headers that mirror a request or notification.

    Args:
        row: the method.
        params: an object of `row.params`, or a mapping with the names of JSON.
        version: the protocol version.
        mirrored: the result of `param_headers` for the tool that is called.

    Raises:
        ValueError: a header cannot carry the value: a method beyond ASCII, half of a surrogate
            pair, or a mirrored integer beyond 2**53-1.
    """
    method = _METHOD_VALUES.get(row.name) or _encode_method(row.name)
    headers = [(PROTOCOL_VERSION, version.encode("ascii")), (METHOD, method)]
    if row.name_field:
        name = (
            params.get(_WIRE_NAMES[row.name_field])
            if type(params) is dict
            else _member(params, row.name_field)
        )
        if isinstance(name, str):
            headers.append((NAME, encode_value(name)))
    if mirrored:
        headers += [
            (PARAM_PREFIX + name.lower().encode(), encode_value(text))
            for name, text in param_values(mirrored, _member(params, "arguments"))
        ]
    return headers


def message_headers(message: Mapping[str, Any], mirrored: ParamHeaders | None = None) -> Headers:
    """Return the headers that mirror a message which may be invalid, but for its version.

    A value that no header can carry has no header, as if it were missing. Tools that send what no
    client would, such as a fuzzer, use this in place of `request_headers`.

    Args:
        message: a decoded message, with the names of JSON.
        mirrored: the result of `param_headers` for the tool that is called.
    """
    method, params = message.get("method"), message.get("params")
    if not isinstance(method, str):
        return []
    headers = [(METHOD, method.encode("ascii", "replace"))]
    if not isinstance(params, dict):
        return headers
    texts = [(NAME, params.get(_NAME_MEMBERS.get(method, "")))]
    if mirrored:
        for path, name in mirrored.items():
            with suppress(ValueError, TypeError):
                texts += [
                    (PARAM_PREFIX + name.lower().encode(), text)
                    for name, text in param_values({path: name}, params.get("arguments"))
                ]
    for header, text in texts:
        if isinstance(text, str):
            with suppress(ValueError):
                headers.append((header, encode_value(text)))
    return headers


def _encode_method(name: str) -> bytes:
    # The method's header has no encoding, so a method that would need it cannot be requested.
    value = name.encode("ascii", "replace")
    if encode_value(name) != value:
        raise ValueError(f"the method {name[:_MAX_QUOTED]!r} cannot be sent in a header")
    return value


def _member(params: Any, attribute: str) -> Any:
    if isinstance(params, Struct):
        return getattr(params, attribute, UNSET)
    return params.get(_WIRE_NAMES.get(attribute, attribute), UNSET) if params else UNSET


# -- Headers that a user sets --------------------------------------------------------------------

_HEADER_VALUE: Final = re.compile(r"(?:[!-~\xa0-\xff](?:[\t -~\xa0-\xff]*[!-~\xa0-\xff])?)?")

# Headers that HTTP or MCP itself sets, or that would change a message's meaning.
_RESERVED: Final = frozenset(
    """
    host connection content-encoding content-length content-type transfer-encoding te trailer
    upgrade keep-alive proxy-connection expect accept accept-encoding last-event-id
    mcp-protocol-version mcp-session-id mcp-method mcp-name
    """.split()
)

_RESERVED_PREFIX: Final = "mcp-param-"


def check_headers(headers: Mapping[str, str]) -> None:
    """Check that these headers can be sent with requests.

    Raises:
        ValueError: a name or value has characters that aren't allowed, a name is given twice, or
            the protocol sets that header.
    """
    seen: set[str] = set()
    for name, value in headers.items():
        lower_name = name.lower()
        if not HEADER_TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is not a valid header name")
        if lower_name in _RESERVED or lower_name.startswith(_RESERVED_PREFIX):
            raise ValueError(f"the header {name} is set by the protocol")
        if lower_name in seen:
            raise ValueError(f"the header {name} is given twice")
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(
                f"the value of the header {name} has characters that no header may have"
            )
        seen.add(lower_name)
