r"""The beginning and the end of a message that cannot be decoded, and the id that they tell.

1. Most peers write `jsonrpc` and `id` before the payload, or after it. Both can be read although
   the payload is missing or isn't JSON.
2. Only members of the outermost object count. Inside a string every quotation mark has a backslash
   before it, and a nested object has more than one brace after it, so neither can be mistaken for
   the message's end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from mcp_core._patterns import compile_on_first_use

if TYPE_CHECKING:
    from mcp_core.types import RequestId

__all__ = ["EXCERPT_SIZE", "Excerpt", "show_bytes"]

# Bytes at either end. Enough for `jsonrpc`, an id and a method of 256 bytes each, and white space.
EXCERPT_SIZE: Final = 1024
_SHOWN: Final = 80  # bytes of a peer's output that an error repeats

_OBJECT: Final = compile_on_first_use(rb'\{\s*"')
_BATCH: Final = compile_on_first_use(rb"\s*\[\s*\{")
_KEY: Final = compile_on_first_use(rb'\s*"((?:[^"\\]|\\.)*)"\s*:\s*')
_SCALAR: Final = compile_on_first_use(
    rb'("(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)\s*([,}])'
)
# One of these members and those after it, to the end of the message.
_LAST_ID: Final = compile_on_first_use(
    rb'"id"\s*:\s*("(?:[^"\\]|\\.)*"|-?[0-9]+)\s*'
    rb'((?:,\s*"(?:jsonrpc|method)"\s*:\s*"(?:[^"\\]|\\.)*"\s*)*)\}\s*'
)
_LAST_METHOD: Final = compile_on_first_use(
    rb'"method"\s*:\s*"(?:[^"\\]|\\.)*"\s*'
    rb'(?:,\s*"(?:jsonrpc|id)"\s*:\s*(?:"(?:[^"\\]|\\.)*"|-?[0-9]+)\s*)*\}\s*'
)
# An id that needs no JSON decoder: text without escapes, or an integer below 10^15, which is exact.
_ID: Final = compile_on_first_use(rb'"[^"\\\x00-\x1f]*"|-?(?:0|[1-9][0-9]{0,14})')


class Excerpt(Struct, gc=False):
    """A part of a message that cannot be decoded.

    Attributes:
        beginning: its first bytes.
        end: its last bytes, empty if they have not arrived.
        size: the number of its bytes, 0 if its end hasn't arrived.
        too_long: it exceeds a message's limit.
        is_rest: its beginning was reported before, when it passed the limit.
    """

    beginning: bytes
    end: bytes = b""
    size: int = 0
    too_long: bool = False
    is_rest: bool = False

    def identify(
        self, id_limit: int = 256
    ) -> tuple[RequestId | None, Literal["request", "response", "unknown"]]:
        """Return the message's id and kind, as far as the excerpt tells them.

        A notification counts as a request: it isn't a response. The limit is in bytes.
        """
        data = self.beginning
        id: RequestId | None = None
        is_request = is_response = False
        begin = _OBJECT.search(data)
        if begin is None or _BATCH.match(data):
            return None, "unknown"
        position = begin.start() + 1
        while key := _KEY.match(data, position):
            is_request |= key[1] == b"method"
            is_response |= key[1] in (b"result", b"error")
            value = _SCALAR.match(data, key.end())
            if value is None:
                break
            if key[1] == b"id":
                id = _read_id(value[1], id_limit)
            position = value.end()
            if value[2] == b"}":
                break
        last = self._last_members(_LAST_ID, b'"id"')
        if last is not None and id is None:
            id = _read_id(last[1], id_limit)
        is_request |= self._last_members(_LAST_METHOD, b'"method"') is not None
        return id, "request" if is_request else "response" if is_response else "unknown"

    def _last_members(self, pattern: re.Pattern[bytes], key: bytes) -> re.Match[bytes] | None:
        """Return the match of the last members of the message, from `key` on."""
        start = self.end.rfind(key)
        if start < 0 or self.end[:start].rstrip()[-1:] != b",":
            return None
        return pattern.fullmatch(self.end, start)

    @property
    def is_object(self) -> bool:
        """True if the message begins like a JSON-RPC message, and not like other output."""
        return self.beginning.lstrip()[:1] == b"{"


def show_bytes(data: bytes | bytearray) -> str:
    """Return the first bytes of a peer's output, escaped, for the text of an error."""
    shown = repr(bytes(data[:_SHOWN]))
    return shown if len(data) <= _SHOWN else f"{shown}..."


def _read_id(value: bytes, limit: int) -> RequestId | None:
    if _ID.fullmatch(value) is None or len(value) > limit + len('""'):
        return None
    try:
        return value[1:-1].decode() if value[:1] == b'"' else int(value)
    except UnicodeDecodeError:
        return None
