"""The classic values: what specifications allow and programs forget, and what is nearly allowed."""

from __future__ import annotations

import json
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_trio.oracle.fuzz._call_guard import PROTOTYPE_NAMES, UNKNOWN_TOOLS, UNKNOWN_URI

__all__ = [
    "CURSORS",
    "DEEP",
    "IDS",
    "LINES",
    "LONG_TEXTS",
    "METHODS",
    "NAMES",
    "NUMBERS",
    "TEXTS",
    "TOKENS",
    "uris_like",
]

_BIG: Final = 2**53  # from here on, not every integer is a double
# Requests with one of them are valid, apart from integers beyond the doubles'.
IDS: Final[tuple[int | str, ...]] = (
    *(0, "", -1, "0"),
    *(1, "1", "-1", "01"),
    *(2**31 - 1, 2**31, 2**32, -(2**31) - 1),
    *(_BIG - 1, 1 - _BIG, "1.0", "1e3"),
    *("null", "true", "__proto__", "constructor"),
    *("caf\xe9", "cafe\u0301", "\u8336", "\U0001f375"),
    *(" ", "a b", 'a"b\\c/d', "a\0b"),
    *("Id", "id", "x" * 65, "x" * 200),
    *(_BIG + 1, -_BIG - 1, 2**63 - 1, 2**63),
)
TOKENS: Final[tuple[int | str, ...]] = (0, "", -1, "0", 1, "1", _BIG - 1, "caf\xe9", "x" * 200)
TEXTS: Final = (
    *("", " ", "a\0b", "a\nb\r\nc"),
    *("caf\xe9", "cafe\u0301", "\u8336\u9053", "\U0001f375"),
    *("\u05e9\u202e\u202c", "\U0001f469\u200d\U0001f4bb", "\ufeffa", "a\u2028b\u2029c"),
    *("\x7f\x85\xa0", "\x1b[31m", "\ufffd\ufffe\uffff", "\U000e0000\U0010ffff"),
    *("0", "1e400", "true", "null"),
    *("__proto__", "constructor", "toString", "undefined"),
    *("../a", "%2e%2e%2fa", "%s%n", "{{7*7}}"),
    *('"', "'", "\\", "\\u0000"),
)
LONG_TEXTS: Final = ("x" * 20_000, "\u8336" * 30_000, "x" * 300_000)
NUMBERS: Final[tuple[float, ...]] = (
    *(0, -1, -0.0, 1.0),
    *(0.1, 1e-320, 1e308, -1e308),
    *(2**31, 2**32, _BIG - 1, _BIG),
    *(2**63 - 1, 2**63, 2**64, -(2**63) - 1),
)
NAMES: Final = (*UNKNOWN_TOOLS, *PROTOTYPE_NAMES)
METHODS: Final = (
    *("", " ", "tools", "tools/"),
    *("tools/list/", "/tools/list", "Tools/List", "tools.list"),
    *("$/cancelRequest", "rpc.discover", "acme/none", "notifications/none"),
    *PROTOTYPE_NAMES,
)
CURSORS: Final = ("", " ", "0", "-1", "null", "__proto__", "%00", "x" * 5_000)
DEEP: Final[Any] = json.loads("[" * 100 + "]" * 100)  # below the limits of most parsers, not all


def uris_like(uri: str) -> list[str]:
    """Return URIs that name a listed resource too, and some that name none.

    The first ones are the same by RFC 3986, or differ in their fragment only. So a server
    that reads them gives nothing that it doesn't list.
    """
    found = [f"{uri}#part", f"{uri}#"]
    parts = urlsplit(uri)
    last = parts.path.rpartition("/")[2]
    if last and uri.endswith(f"/{last}"):
        before = uri.removesuffix(last)
        found += [f"{before}./{last}", f"{before}a/../{last}"]
        if last[0].isascii() and last[0].isalnum():
            found.append(f"{before}%{ord(last[0]):02X}{last[1:]}")
    return [*found, UNKNOWN_URI, f"{UNKNOWN_URI}/../../a", f"{UNKNOWN_URI}?a=b#c", ""]


_HEAD: Final = b'{"jsonrpc":"2.0","id":'
# Lines that are no message, or that only some readers take for one. No id is used twice.
LINES: Final[tuple[bytes, ...]] = (
    # Whitespace, and other JSON.
    *(b"", b" \t ", b"\r", b"[]"),
    *(b"7", b'"a"', b"null", b"true"),
    *(b"{}", b"[[]]", b"[1,2]", b"[{}]"),
    # Other ends of lines, marks of byte order, other encodings and framings.
    _HEAD + b'1073741901,"method":"tools/list"}\r',
    b"\xef\xbb\xbf" + _HEAD + b'1073741902,"method":"tools/list"}',
    (_HEAD + b'1073741903,"method":"tools/list"}').decode().encode("utf-16"),
    b"Content-Length: 54\r\n\r\n" + _HEAD + b'1073741904,"method":"tools/list"}',
    # Bytes that aren't UTF-8: alone, too long, half of a character, cut off.
    *(b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", _HEAD + b'1073741905,"method":"\xe8\x8c"}'),
    # Texts that aren't JSON, though some parsers take them.
    b'{"jsonrpc"',
    _HEAD + b"1073741906",
    _HEAD + b"1073741907,'method':'tools/list'}",
    _HEAD + b'1073741908,"method":"tools/list",}',
    _HEAD + b'1073741909,"method":"tools/list"}}',
    _HEAD + b'1073741910,"method":"tools/list","params":{"a":NaN}}',
    _HEAD + b'1073741911,"method":"tools/list","params":{"a":-Infinity}}',
    _HEAD + b'1073741912,"method":"tools/list"} // a comment',
    # JSON that readers understand differently.
    _HEAD + b'1073741913,"id":1073741914,"method":"tools/list"}',
    _HEAD + b'1073741915,"method":"tools/list","params":{"a":1e400}}',
    _HEAD + b'1073741916,"method":"tools/list","params":{"a":1' + b"0" * 400 + b"}}",
    _HEAD + b'1073741917,"method":"tools/list","params":{"a":"\\ud800"}}',
    _HEAD + b'1073741918,"method":"tools/list","params":{"\\udc00":"\\ud83c"}}',
    _HEAD + b'1073741919,"method":"tools/list","params":{"\\u0000":"\\u0000"}}',
    _HEAD + b'"\\ud800","method":"tools/list"}',
    _HEAD + b'1073741920,"method":"tools/list","params":{"a":' + b"[" * 600 + b"]" * 600 + b"}}",
    # Messages with wrong members.
    _HEAD + b'null,"method":"tools/list"}',
    _HEAD + b'1.5,"method":"tools/list"}',
    _HEAD + b'true,"method":"tools/list"}',
    _HEAD + b'{},"method":"tools/list"}',
    _HEAD + b"1073741921}",
    _HEAD + b'1073741922,"method":7}',
    _HEAD + b'1073741923,"method":null}',
    b'{"jsonrpc":"1.0","id":1073741924,"method":"tools/list"}',
    b'{"jsonrpc":2.0,"id":1073741925,"method":"tools/list"}',
    b'{"id":1073741926,"method":"tools/list"}',
    _HEAD + b'1073741927,"method":"tools/list","result":{}}',
    _HEAD + b'1073741928,"result":{},"error":{"code":1,"message":"no"}}',
    b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"}}',
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}',
)
