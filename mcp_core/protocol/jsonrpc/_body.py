"""A message, or a batch of messages, decoded once for every part that reads it.

1. A body is parsed in one place, so the authorization check, the HTTP endpoint and the connection
   can never disagree about what is in it.
2. Nothing is raised. What cannot be decoded is a `BadMessage` in `messages`, for the connection to
   reject.
3. No revision is known here: whether a batch is allowed is for the reader to decide (`as_message`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import UNSET, Struct

from mcp_core._errors import Fault

from ._codec import (
    NO_PARAMS,
    BadMessage,
    Envelope,
    InvalidPayload,
    decode,
    is_batch,
    split_batch,
)
from ._excerpt import EXCERPT_SIZE, Excerpt

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Raw

    from mcp_core._limits import Limits
    from mcp_core.types import RequestId

    ParamsReader = Callable[[Raw | bytes], Any]

__all__ = [
    "DecodedParams",
    "ParsedBody",
    "estimate_memory",
    "parse_body",
    "parse_message",
    "too_long",
]

# The estimated memory of values in bytes, see `Limits.decoded`. The size of an empty list, and of
# pointers and strings, in CPython 3.11 on 64 bits.
_CONTAINER: Final = 80
_MEMBER: Final = 32
_QUOTE: Final = 16
_MOST: Final = 40  # times the bytes of the JSON: it is never more
_OTHERS: Final = bytes(set(range(256)) - set(b'",:[{'))
_CONTINUATION: Final = bytes(range(0x80, 0xC0))  # bytes of UTF-8 that begin no character
_NARROW: Final = bytes(range(0xF0))  # bytes of UTF-8 in characters that take at most two bytes
_PIECE: Final = 64 * 1024  # bytes that are split at a time: the parts take up to nine times as much


class DecodedParams(Struct, frozen=True):
    """The params of one message, decoded before the connection gets the message.

    `read` is the function that decoded them. `error` says why they don't fit their type; it is
    empty if they do.
    """

    read: ParamsReader
    params: Any
    error: str = ""

    def get(self, read: ParamsReader, raw: Raw | bytes) -> Any:
        """Return the params as `read` decodes `raw`, without decoding them again.

        Raises:
            InvalidPayload: they don't fit their type.
        """
        if read is not self.read:
            return read(raw)  # a type of another configuration
        if self.error:
            raise InvalidPayload(self.error)
        return self.params


class ParsedBody(Struct, gc=False):
    """The messages in one body, in order: each decoded, or what is wrong with it.

    A blank body has none. `size` is the number of bytes. `is_array` is True if the body is a JSON
    array, and `is_batch` if that array has a valid number of members; an invalid one is a single
    `BadMessage`. `decoded` has each message's params after `decode_params`, None before.
    """

    messages: list[Envelope | BadMessage]
    size: int
    is_array: bool = False
    is_batch: bool = False
    decoded: list[DecodedParams | None] | None = None

    @property
    def request_ids(self) -> list[RequestId]:
        """The ids under which this body gets responses, error responses included."""
        ids: list[RequestId] = []
        for message in self.messages:
            if isinstance(message, BadMessage):
                if message.id is not None and message.apparent_kind != "response":
                    ids.append(message.id)
            elif message.method is not UNSET and message.id is not UNSET and message.id is not None:
                ids.append(message.id)
        return ids

    @property
    def method(self) -> str:
        """The method, if the body is a single request or notification; else an empty string."""
        if len(self.messages) != 1:
            return ""
        message = self.messages[0]
        return "" if isinstance(message, BadMessage) or message.method is UNSET else message.method

    @property
    def is_message(self) -> bool:
        """True if the body is a single message that is valid: with a method, or a response."""
        if len(self.messages) != 1:
            return False
        message = self.messages[0]
        return not isinstance(message, BadMessage) and message.method != ""

    def decode_params(
        self, find_reader: Callable[[str], ParamsReader | None]
    ) -> list[DecodedParams | None]:
        """Decode the params of all messages, for a check before the connection gets the body.

        The connection uses the same values. A message's value is None if it has no method or is
        bad, or if `find_reader` returns None for the method.
        """
        self.decoded = [_decode_params(message, find_reader) for message in self.messages]
        return self.decoded

    def as_message(self, data: bytes = b"") -> ParsedBody:
        """Return the body as a revision without batches reads it: an array is one bad message.

        `data` is the encoded body, for an excerpt.
        """
        if not self.is_array:
            return self
        bad = BadMessage(Fault.INVALID_REQUEST, "a message is a JSON object, not an array")
        return ParsedBody([bad.about(data)], self.size)


def parse_body(data: bytes, limits: Limits) -> ParsedBody:
    """Decode a body: a JSON-RPC message, or a batch of 1 to `limits.batch` messages."""
    size = len(data)
    if not data.startswith(b"{") and size <= limits.message:
        if not data or data.isspace():
            return ParsedBody([], size)
        if is_batch(data):
            return _parse_batch(data, limits)
    return ParsedBody([parse_message(data, limits)], size)


def parse_message(data: bytes, limits: Limits) -> Envelope | BadMessage:
    """Decode a body that is neither blank nor a batch, such as one that begins with `{`."""
    size = len(data)
    if size > limits.message:
        return too_long(limits, _excerpt(data))
    if size * _MOST > limits.decoded and (bad := _find_too_many_values(data, limits)):
        return bad
    try:
        return decode(data, limits.method, limits.id)
    except BadMessage as exc:
        return exc.about(data)


def too_long(limits: Limits, excerpt: Excerpt) -> BadMessage:
    """Return what is wrong with a message that exceeds `limits.message`."""
    problem = f"the message is longer than {limits.message} bytes"
    return _exceeds(problem, "Limits(message=...) allows longer ones", limits, excerpt)


def _find_too_many_values(data: bytes, limits: Limits) -> BadMessage | None:
    """Return what is wrong with a message that exceeds `limits.decoded`, None if it doesn't."""
    # First count what is in strings too, because that is cheap: in most messages it isn't much.
    size = _weigh(data.translate(None, _OTHERS))
    if size <= limits.decoded or (size := _weigh_values(data)) <= limits.decoded:
        return None
    problem = (
        f"the message has too many values: decoded, they take about {size} bytes of memory, "
        f"more than {limits.decoded}"
    )
    return _exceeds(problem, "Limits(decoded=...) allows more", limits, _excerpt(data))


def _weigh_values(data: bytes) -> int:
    """Estimate the memory of the values in `data`, without looking into strings."""
    size = 0
    in_string = False
    rest = b""
    for start in range(0, len(data), _PIECE):
        piece = (rest + data[start : start + _PIECE]).replace(rb"\\", b"").replace(rb"\"", b"")
        rest = b"\\" if piece.endswith(b"\\") else b""  # it belongs to the next piece
        parts = piece.removesuffix(rest).split(b'"')
        size += _weigh(b"".join(parts[in_string::2])) + _QUOTE * (len(parts) - 1)
        in_string ^= len(parts) % 2 == 0
    return size


def _weigh(data: bytes) -> int:
    count = data.count
    return (
        _CONTAINER * (count(b"[") + count(b"{"))
        + _MEMBER * (count(b",") + count(b":"))
        + _QUOTE * count(b'"')
    )


def estimate_memory(data: bytes) -> int:
    """Estimate the memory of JSON and of its decoded values together, in bytes."""
    characters = len(data) if data.isascii() else len(data.translate(None, _CONTINUATION))
    # A text takes as much for each of its characters as the one that takes most.
    if characters == len(data) and b"\\u" not in data:
        width = 1
    elif b"\\ud" in data or b"\\uD" in data or data.translate(None, _NARROW):
        width = 4
    else:
        width = 2
    values = _weigh(data) if len(data) <= _PIECE else _weigh_values(data)
    return len(data) + width * characters + values


def _excerpt(data: bytes) -> Excerpt:
    return Excerpt(data[:EXCERPT_SIZE], data[-EXCERPT_SIZE:], len(data), too_long=True)


def _exceeds(problem: str, cure: str, limits: Limits, excerpt: Excerpt) -> BadMessage:
    id, kind = excerpt.identify(limits.id)
    bad = BadMessage(
        Fault.PARSE, problem, id, apparent_kind="request" if kind == "unknown" else kind
    )
    bad.excerpt = excerpt
    bad.cure = f" (the option limits={cure})"
    return bad


def _decode_params(
    message: Envelope | BadMessage, find_reader: Callable[[str], ParamsReader | None]
) -> DecodedParams | None:
    if isinstance(message, BadMessage) or message.method is UNSET:
        return None
    read = find_reader(message.method)
    if read is None:
        return None
    try:
        return DecodedParams(read, read(NO_PARAMS if message.params is UNSET else message.params))
    except InvalidPayload as exc:
        return DecodedParams(read, None, str(exc))


def _parse_batch(data: bytes, limits: Limits) -> ParsedBody:
    if bad := _find_too_many_values(data, limits):
        return ParsedBody([bad], len(data))
    try:
        members = split_batch(data)
    except BadMessage as exc:
        return ParsedBody([exc.about(data)], len(data), is_array=True)
    count, limit = len(members), limits.batch
    if not 0 < count <= limit:
        problem = f"a batch has between 1 and {limit} messages, this one has {count}"
        whole = BadMessage(Fault.INVALID_REQUEST, problem).about(data)
        return ParsedBody([whole], len(data), is_array=True)
    messages: list[Envelope | BadMessage] = []
    for member in members:
        try:
            messages.append(decode(member, limits.method, limits.id))
        except BadMessage as exc:
            # Its traceback refers to this frame, and so to the list: a cycle that lives too long.
            messages.append(exc.about(member))
    return ParsedBody(messages, len(data), is_array=True, is_batch=True)
