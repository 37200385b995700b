r"""Validation of a raw HTTP/1.1 request head, before a parser that may be lenient reads it.

Parsers are lenient in different ways, and two of them can read different requests from the same
bytes: request smuggling. This file accepts only heads with a single reading by RFC 9112. The parser
behind it (h11 in our drivers) then cannot disagree with a proxy in front of it.

1. **Every error ends the connection**, because it is unknown where the next request would begin.
2. **A head ends where h11 says it ends**: at the first empty line, with CRLF or LF. A head with a
   bare LF in it is rejected as a whole. From a head that is accepted, h11 reads exactly one request
   with this method and target.
3. **The result doesn't depend on how the bytes were split.** Each byte is examined once while a
   head grows. A valid head costs two matches of fixed patterns, without backtracking, and no loop;
   the functions that find out what is wrong run only if something is.

Stricter than RFC 9112, because well-behaved clients do none of this:

- More than four empty lines before the request line, or one that ends in a bare LF. `empty_lines`
  counts those to skip (2.2 asks for one at least): some programs send one after a body.
- A target in absolute form (3.2.2) must name the same authority as `Host`; then it doesn't matter
  which of them is used.
- `Content-Length` with leading zeros, which some parse as octal, or repeated with the same value
  (6.3 leaves the choice).
- `Transfer-Encoding` other than `chunked` alone, or beside `Content-Length` (6.1), or in HTTP/1.0.
- Control characters in values; `"`, `<`, `>` and `\` in the target. Bytes over 127 in a value are
  opaque (5.5) and pass.
- Two lines of a field of which one value is used (`SINGLETONS`): a proxy might use the other. The
  fields that mirror the body (`Mcp-*`, `MCP-Protocol-Version`) aren't among them: they are
  compared with the body, and a mismatch has an error code of its own. Lists such as `Accept` may be
  repeated.
"""

from __future__ import annotations

import re
from typing import Final

from ._head_limits import (
    BAD_LENGTH,
    EXPECTATION,
    HUGE_BODY,
    LONG_HEAD,
    LONG_TARGET,
    LONG_VALUE,
    MANY_FIELDS,
    MAX_DIGITS,
    MAX_FIELDS,
    MAX_HEAD,
    MAX_METHOD,
    MAX_TARGET,
    MAX_VALUE,
    OTHER_METHOD,
    REPEATED,
    SINGLETONS,
    HeadError,
)
from ._messages import Headers

__all__ = [
    "MAX_EMPTY_LINES",
    "empty_lines",
    "find_head_error",
    "find_partial_head_error",
    "head_end",
    "origin_form",
    "written_fields",
]

# Before a request line. More isn't a program's mistake, and each one would put off a timeout.
MAX_EMPTY_LINES: Final = 4

_MAX_LINE: Final = MAX_METHOD + 1 + MAX_TARGET + len(" HTTP/1.1\r\n")

_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_EMPTY_LINE: Final = re.compile(rb"\n\r?\n")
_REQUEST_LINE: Final = re.compile(
    rb"(" + _TOKEN + rb"{1,%d}+) ([!$-;=?-\[\]-~]++) HTTP/1\.([01])\r(?=\n)" % MAX_METHOD
)
# A field begins at the newline before it, and leaves its own newline to the next field. So if there
# are as many fields as newlines (less two: of the last field and of the empty line), nothing else
# is between them.
_FIELD: Final = re.compile(rb"\n(" + _TOKEN + rb"++):([\t -~\x80-\xff]*+)\r(?=\n)")
_NAME: Final = re.compile(_TOKEN + rb"++")
_VERSION: Final = re.compile(rb"HTTP/[0-9](?:\.[0-9])?")
_TARGET: Final = re.compile(rb"[!$-;=?-\[\]-~]++")
_ABSOLUTE: Final = re.compile(rb"https?://([A-Za-z0-9._\-:\[\]]++)(?=[/?]|\Z)")


_NO_REQUEST = HeadError(400, "The request does not begin with a method.")
_LINE = HeadError(
    400, "The request line is not a method, a target and a version with one space between them."
)
_BARE_LF = HeadError(400, "A line of the head ends without CR.")
_BARE_CR = HeadError(400, "There is a CR in the head that ends no line.")
_NUL = HeadError(400, "There is a NUL in the head.")
_FOLDED = HeadError(400, "A header is continued on a second line.")
_NO_COLON = HeadError(400, "A header has no colon.")
_SPACE_BEFORE_COLON = HeadError(
    400, "There is white space between the name of a header and its colon."
)
_BAD_NAME = HeadError(400, "The name of a header has characters that no name may have.")
_BAD_VALUE = HeadError(400, "The value of a header has control characters.")
_UNFINISHED = HeadError(400, "The head does not end with an empty line.")
_BAD_TARGET = HeadError(400, "The target is neither a path nor a URL.")
_TARGET_CHARACTERS = HeadError(400, "The target has characters that must be percent-encoded.")
_OTHER_AUTHORITY = HeadError(400, "The target and the Host header name different servers.")
_NO_HOST = HeadError(400, "The Host header is missing.")
_TWO_LENGTHS = HeadError(400, "There are both Content-Length and Transfer-Encoding.")
_OLD_CODING = HeadError(400, "There is no Transfer-Encoding in HTTP/1.0.")
_CODING = HeadError(501, "The only Transfer-Encoding that is supported is chunked.")
_OTHER_VERSION = HeadError(505, "Only HTTP/1.1 and HTTP/1.0 are supported.")


def empty_lines(data: bytes, most: int) -> int:
    """Return the number of empty lines, at most `most`, at the start of `data` (RFC 9112, 2.2)."""
    lines = 0
    while lines < most and data.startswith(b"\r\n", 2 * lines):
        lines += 1
    return lines


def head_end(data: bytes | bytearray, seen: int = 0) -> int | None:
    """Return the index after the empty line that ends the head, or None if it isn't there yet.

    `data` begins with the head. `seen` is the number of bytes that were there when the last call
    returned None. They aren't searched again.
    """
    if data.startswith((b"\n", b"\r\n")):
        # h11 takes an empty line at the start for an empty head. `find_head_error` rejects that.
        return 1 if data[0] == 0x0A else 2
    # The last two bytes seen may be the start of the empty line.
    found = _EMPTY_LINE.search(data, max(seen - 2, 0))
    return found.end() if found else None


def find_partial_head_error(data: bytes | bytearray) -> HeadError | None:
    """Return what is already wrong with `data`, an unfinished head, or None.

    Its end need not come then.
    """
    if data and data[0] <= 0x20 and data != b"\r":  # which may begin an empty line
        return _NO_REQUEST  # a TLS handshake begins like this, too
    if len(data) > _MAX_LINE and data.find(b"\n", 0, _MAX_LINE) < 0:
        return LONG_TARGET
    return LONG_HEAD if len(data) > MAX_HEAD else None


def find_head_error(head: bytes) -> HeadError | None:
    """Return what is wrong with `head`, the bytes up to `head_end`, or None if it may be parsed.

    None means that it has a single reading by RFC 9112.
    """
    if len(head) > _MAX_LINE and (fault := find_partial_head_error(head)):
        return fault
    line = _REQUEST_LINE.match(head)
    if line is None:
        return _line_fault(head)
    method, target, minor = line.groups()
    # All in lower case: names are case-insensitive, and so is every value that is compared here.
    pairs: list[tuple[bytes, bytes]] = _FIELD.findall(head.lower(), line.end())
    if len(pairs) != head.count(b"\n") - 2 or not head.endswith(b"\r\n\r\n"):
        return _field_fault(head)
    if len(pairs) > MAX_FIELDS:
        return MANY_FIELDS
    fields = dict(pairs)
    if len(fields) != len(pairs) and _repeats_singleton(pairs):
        return REPEATED
    if len(head) > MAX_VALUE and any(len(value) > MAX_VALUE for _, value in pairs):
        return LONG_VALUE
    if b"host" not in fields and minor == b"1":
        return _NO_HOST
    if method == b"CONNECT":
        return OTHER_METHOD
    if len(target) > MAX_TARGET:
        return LONG_TARGET
    if target[0] != 0x2F and (fault := _target_fault(method, target, fields)):
        return fault
    if b"transfer-encoding" in fields or b"content-length" in fields or b"expect" in fields:
        return _body_fault(fields, minor)
    return None


def origin_form(target: bytes) -> bytes:
    """Return path and query of `target`, which `find_head_error` accepted (RFC 9112, 3.2.2).

    `*` stays as it is.
    """
    if target[:1] == b"/" or not (absolute := _ABSOLUTE.match(target)):
        return target
    rest = target[absolute.end() :]
    return rest if rest[:1] == b"/" else b"/" + rest


def written_fields(head: bytes) -> Headers:
    """Return the fields of a head as the client has written them, in their order and spelling.

    Args:
        head: up to its empty line, accepted by `find_head_error`.
    """
    found = []
    for line in head.split(b"\r\n")[1:-2]:
        name, _, value = line.partition(b":")
        found.append((name, value.strip(b" \t")))
    return found


def _repeats_singleton(pairs: list[tuple[bytes, bytes]]) -> bool:
    names = [name for name, _ in pairs]
    return any(names.count(name) > 1 for name in SINGLETONS)


def _target_fault(method: bytes, target: bytes, fields: dict[bytes, bytes]) -> HeadError | None:
    """Check a target that isn't a path."""
    if target == b"*" and method == b"OPTIONS":
        return None
    absolute = _ABSOLUTE.match(target)
    if absolute is None:
        return _BAD_TARGET
    return None if absolute[1].lower() == fields.get(b"host", b"").strip() else _OTHER_AUTHORITY


def _body_fault(fields: dict[bytes, bytes], minor: bytes) -> HeadError | None:
    """Check the fields about the body's length and when it is sent."""
    length = fields.get(b"content-length")
    coding = fields.get(b"transfer-encoding")
    if coding is not None:
        if length is not None:
            return _TWO_LENGTHS
        if minor == b"0":
            return _OLD_CODING
        if coding.strip() != b"chunked":
            return _CODING
    if length is not None:
        length = length.strip()
        if not length.isdigit() or (length[0] == 0x30 and length != b"0"):
            return BAD_LENGTH
        if len(length) > MAX_DIGITS:
            return HUGE_BODY
    expected = fields.get(b"expect")
    # HTTP/1.0 has no expectations and ignores the field (RFC 9110, 10.1.1).
    if expected is None or expected.strip() == b"100-continue" or minor == b"0":
        return None
    return EXPECTATION


def _line_fault(head: bytes) -> HeadError:
    """Return what is wrong with the first line, which is invalid."""
    if fault := find_partial_head_error(head):
        return fault
    line, newline, _ = head.partition(b"\n")
    if not newline:
        return _UNFINISHED
    if b"\0" in line:
        return _NUL
    if not line.endswith(b"\r"):
        return _BARE_LF
    line = line[:-1]
    if b"\r" in line:
        return _BARE_CR
    words = line.split(b" ")
    if len(words) != 3 or not _NAME.fullmatch(words[0]) or not words[1]:
        return _LINE
    if len(words[0]) > MAX_METHOD:
        return OTHER_METHOD
    if not _TARGET.fullmatch(words[1]):
        return _TARGET_CHARACTERS
    return _OTHER_VERSION if _VERSION.fullmatch(words[2]) else _LINE


def _field_fault(head: bytes) -> HeadError:
    """Return what is wrong with the lines after the first, of which one is invalid."""
    if b"\0" in head:
        return _NUL
    whole = head.count(b"\r\n")
    if head.count(b"\n") != whole:
        return _BARE_LF
    if head.count(b"\r") != whole:
        return _BARE_CR
    for line in head.split(b"\r\n")[1:]:
        if not line:
            break
        if line[0] in b" \t":
            return _FOLDED
        name, colon, _ = line.partition(b":")
        if not colon:
            return _NO_COLON
        if name != name.rstrip(b" \t"):
            return _SPACE_BEFORE_COLON
        if not _NAME.fullmatch(name):
            return _BAD_NAME
        if not _FIELD.match(b"\n" + line + b"\r\n"):
            return _BAD_VALUE
    return _UNFINISHED
