"""The headers of MCP: what they are called, and how a text travels in one.

Rules of this file:

1. Names are in lower case, as `_messages.py` has them. On the wire their case means nothing.
2. A text that a header cannot carry as it is travels as `=?base64?...?=`, and so does one that looks as if it did. Hence each
   text has one spelling here, and no spelling has two meanings (2026-07-28, basic/transports/streamable-http, Value Encoding).
3. What is read is taken by the letter: base64 that no encoder writes, or that is no UTF-8, is an error and never a text.

It does not know which header says what; that is `_mirror.py`.
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

_BEGIN, _END = b"=?base64?", b"?="
# Visible ASCII, with spaces inside. A tab would be allowed, but is white space that some hop may fold.
_PLAIN: Final = re.compile(r"(?:[!-~](?:[ -~]*[!-~])?)?")
_VALUE: Final = re.compile(rb"[\t -~]*")


def encode_value(text: str) -> bytes:
    """A text as the value of `Mcp-Name` or `Mcp-Param-*`.

    Raises:
        ValueError: it has half of a surrogate pair, which no UTF-8 can say.
    """
    if _PLAIN.fullmatch(text):
        value = text.encode("ascii")
        # Where the two markers overlap we encode as well, since some may read that as one of these.
        if not (value.startswith(_BEGIN) and value.endswith(_END)):
            return value
    return b"%b%b%b" % (_BEGIN, b2a_base64(text.encode(), newline=False), _END)


def decode_value(value: bytes) -> str:
    """The text that the value of a header says. White space around it is the header's and not the text's.

    Raises:
        ValueError: it has characters that no header may have, or is marked as base64 and is not the base64 of a text.
    """
    if not _VALUE.fullmatch(value):
        raise ValueError("it has characters that do not belong into a header")
    value = value.strip(b" \t")
    if not (value.startswith(_BEGIN) and value.endswith(_END) and len(value) >= len(_BEGIN) + len(_END)):
        return value.decode("ascii")
    encoded = value[len(_BEGIN) : -len(_END)]
    try:
        data = a2b_base64(encoded)
    except Error:
        data = b""
    # Reading is lenient, with everything that is not of the alphabet, with the padding and with bits that are left over.
    if b2a_base64(data, newline=False) != encoded:
        raise ValueError("it is marked as base64 and is none")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("it is base64 of something that is no UTF-8") from None
