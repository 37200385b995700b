"""The HTTP headers of MCP: their names, and how text is encoded in them.

1. Names are in lower case, as in `RequestHead`. On the wire their case does not matter.
2. Text that a header cannot carry travels as `=?base64?...?=`, and so does text that looks like
   that. Each text thus has one encoding, and each value one meaning (2026-07-28,
   basic/transports/streamable-http, Value Encoding).
3. Decoding is strict: base64 that no encoder produces, or that is not UTF-8, is an error.
"""

from __future__ import annotations

import re
from binascii import Error, a2b_base64, b2a_base64
from typing import Final

__all__ = [
    "LAST_EVENT_ID",
    "METHOD",
    "NAME",
    "PARAM_PREFIX",
    "PROTOCOL_VERSION",
    "SESSION_ID",
    "decode_value",
    "encode_value",
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
    """Decode the value of a header. White space around it belongs to the header, not to the text.

    Raises:
        ValueError: the value has invalid characters, or is marked as base64 but is not the base64
            of UTF-8 text.
    """
    if not _VALUE.fullmatch(value):
        raise ValueError("it has characters that no header may have")
    value = value.strip(b" \t")
    if not (value.startswith(_BEGIN) and value.endswith(_END) and len(value) >= len(_BEGIN) + len(_END)):
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
