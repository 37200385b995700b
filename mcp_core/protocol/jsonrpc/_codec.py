"""JSON-RPC 2.0 as MCP uses it: decode one message to an envelope, encode messages to bytes.

1. Errors of msgspec are caught here and nowhere else in the protocol machine. Bad input raises
   `DecodeError`, `ValidationError`, `UnicodeDecodeError` or `RecursionError`; callers get a
   `BadMessage` or an `InvalidPayload`.
2. `params`, `result` and `error` stay undecoded (`Raw`), because their types depend on the method.
3. Decoding is strict: valid UTF-8, no duplicate member in the envelope, an id that is a string or
   an integer. Valid messages pass this by a comparison of lengths or counts of quotation marks,
   which is faster than scanning them in Python.
4. How deeply a message may be nested is a matter of msgspec and of Python: some 900 levels until
   3.11, 9,000 since 3.12. A limit of our own would cost a fourth of the decoding time. Who walks a
   value has one: see `mcp_core._nesting`.

Sources: JSON-RPC 2.0, sections 4 and 5; MCP basic/index, Messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcp_core._errors import Fault

from ._excerpt import EXCERPT_SIZE, Excerpt

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core.types import RequestId

__all__ = [
    "NO_PARAMS",
    "BadMessage",
    "Envelope",
    "InvalidPayload",
    "MendedEnvelope",
    "check_object",
    "decode",
    "encode",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_result",
    "has_duplicates",
    "is_batch",
    "reader",
    "split_batch",
    "strip_white_space",
]

# The largest integer that every JSON implementation keeps exact (RFC 8259 section 6).
MAX_SAFE_INTEGER: Final = 2**53 - 1
NO_PARAMS: Final = b"{}"  # are decoded if a message has no params

T = TypeVar("T")
ApparentKind: TypeAlias = Literal["request", "notification", "response", "neither"]

encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode


class Envelope(Struct, gc=False):
    """A JSON-RPC message whose `params`, `result` and `error` aren't decoded yet."""

    jsonrpc: Literal["2.0"]
    id: int | str | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class MendedEnvelope(Envelope, gc=False):
    """A message that was read in spite of a fault. `problem` says what was wrong, for logs."""

    problem: str = ""


class BadMessage(Exception):
    """A received message that isn't valid JSON-RPC.

    `id` is the message's id, or None if it has none that is usable. `apparent_kind` is
    the kind of message that its members suggest: a "request" or "neither" gets an error response,
    and a "response" fails the request with its id. `excerpt` is a part of a message that is too
    long, or whose id could not be decoded. `cure` is a hint for our own user, to append to errors.
    """

    excerpt: Excerpt | None = None
    cure = ""

    def __init__(
        self,
        fault: Fault,
        message: str,
        id: RequestId | None = None,
        *,
        apparent_kind: ApparentKind = "request",
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.message = message
        self.id = id
        self.apparent_kind = apparent_kind

    def about(self, data: bytes) -> BadMessage:
        """Add an excerpt of `data`, the message, if its id isn't known. Return self.

        What led to the error is dropped: the frames of its tracebacks refer to the body that has
        it, which the garbage collector doesn't track, so that they would never be freed.
        """
        if self.id is None:
            self.excerpt = Excerpt(data[:EXCERPT_SIZE], data[-EXCERPT_SIZE:], len(data))
        self.__context__ = None
        return self.with_traceback(None)


class InvalidPayload(Exception):
    """JSON that doesn't have the expected type. The text says where and why."""


def reader(
    type: type[T], *, at_once: bool = False, null_is_absent: bool = False
) -> Callable[[Raw | bytes], T]:
    """Return a function that decodes JSON to `type`, or raises `InvalidPayload`.

    Its decoder is built at the first call: all methods' decoders would take a third of the import,
    and a program uses few. `at_once` builds it here, for types whose errors are their author's.
    `null_is_absent` reads `null` as `{}`, for params, which may be absent.
    """

    decode: Callable[[Raw | bytes], T]

    def build(data: Raw | bytes) -> T:
        nonlocal decode
        decode = msgspec.json.Decoder(type).decode
        return decode(data)

    decode = msgspec.json.Decoder(type).decode if at_once else build

    def read(data: Raw | bytes) -> T:
        try:
            return decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            if null_is_absent and bytes(data) == b"null":
                return read(NO_PARAMS)
            raise InvalidPayload(_reason(exc)) from None

    return read


# Size in bytes from which a memoryview is cheaper than a copy.
_LARGE: Final = 4096

_decode_envelope = msgspec.json.Decoder(Envelope).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_read_members = reader(dict[str, Raw])
_read_items = reader(list[Raw])
_read_id = reader(int | str)  # type: ignore[arg-type]
# The length of the shortest request with a duplicate member, without its method and params. No
# shorter request can have a duplicate.
_SHORTEST_WITH_A_DUPLICATE: Final = len(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"","params":}')
# The length of the shortest member with its comma.
_SHORTEST_MEMBER: Final = len(b'"":0,')
# By the id's type: the number of quotation marks in `"jsonrpc":"2.0"` and in the id's member.
_QUOTES: Final = {UnsetType: 4, int: 6, type(None): 6, str: 8}


def decode(data: bytes, method_limit: int = 256, id_limit: int = 256) -> Envelope:
    """Decode one message, which isn't a batch. The limits are in bytes.

    The result is a `MendedEnvelope` if the message has a fault that has one meaning (`mend`).

    Raises:
        BadMessage: the bytes aren't JSON or not UTF-8, or no JSON-RPC request, notification or
            response. It carries the message's id if that can be read.
    """
    try:
        if not data.isascii():
            str(data, "utf-8")
        envelope = _decode_envelope(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        mended = _decode_mended(data, method_limit, id_limit)
        if mended is None:
            raise _bad_envelope(data, exc, id_limit) from None
        return mended
    id = envelope.id
    method = envelope.method
    if type(id) is int:
        if not -MAX_SAFE_INTEGER <= id <= MAX_SAFE_INTEGER:
            raise _invalid(envelope, "id is an integer beyond 2^53-1", None)
    elif type(id) is str and _is_longer(id, id_limit):
        raise _invalid(envelope, f"id is longer than {id_limit} bytes", None)
    if method is not UNSET and envelope.result is UNSET and envelope.error is UNSET:
        # With an id it isn't a notification, and a null id cannot be put into a response.
        if id is None:
            raise _invalid(envelope, "id is null", None)
        # A character has at most four bytes in UTF-8, so short names need not be encoded.
        if len(method) * 4 > method_limit and _is_longer(method, method_limit):
            raise _invalid(envelope, f"method is longer than {method_limit} bytes")
        payload = envelope.params
        if (
            payload is not UNSET
            and type(id) is int
            and len(data) - len(method) - memoryview(payload).nbytes < _SHORTEST_WITH_A_DUPLICATE
        ):
            return envelope  # too short to have a duplicate member
        quotes = _QUOTES[type(id)] + 4
    else:
        payload = _response_payload(envelope)
        quotes = _QUOTES[type(id)]
    # Each key and each string has two quotation marks. If the envelope has another number of them
    # than its known members account for, it has unknown members, escapes or a duplicate member.
    outside = data.count(b'"')
    if payload is not UNSET:
        quotes += 2
        outside -= bytes(payload).count(b'"')
    if outside != quotes:
        _reject_duplicates(data, envelope)
    return envelope


def _decode_mended(data: bytes, method_limit: int, id_limit: int) -> MendedEnvelope | None:
    """Decode a message that isn't valid as it is. Return None if it cannot be mended."""
    from ._mending import mend  # on first use: it compiles patterns, and most peers need none

    mended = None if has_duplicates(data) else mend(data)
    if mended is None:
        return None
    whole, problem = mended
    found = decode(whole, method_limit, id_limit)
    members = {name: getattr(found, name) for name in Envelope.__struct_fields__}
    return MendedEnvelope(**members, problem=problem)


def is_batch(data: bytes) -> bool:
    """Return True if the message is a JSON array, judged by its first character."""
    return data.lstrip(b" \t\r\n")[:1] == b"["


def has_duplicates(data: Raw | bytes, inner: str | None = None) -> bool:
    """Return True if a JSON object, or the object in its member `inner`, has a member twice.

    RFC 8259 section 4 leaves open which of the two counts, so two readers may see different
    values. False for other JSON.
    """
    try:
        while True:
            members = _decode_members(data)
            names = "".join(members)
            values = b"".join(members.values())
            # What is left beside names, values and punctuation: white space, or a duplicate.
            rest = memoryview(data).nbytes - 1 - len(names) - len(values) - 4 * len(members)
            if rest >= _SHORTEST_MEMBER:
                whole = bytes(data)
                if '"' in names:
                    # A name may spell a quotation mark with that byte or without it (\u0022), so
                    # count only those bytes that begin or end a string.
                    whole = _without_escaped_quotes(whole)
                    values = _without_escaped_quotes(values)
                if whole.count(b'"') != 2 * len(members) + values.count(b'"'):
                    return True
            if inner is None or inner not in members:
                return False
            data = members[inner]
            inner = None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False


def split_batch(data: bytes) -> list[bytes]:
    """Split a batch (revision 2025-03-26 only) into its messages, which stay encoded.

    Raises:
        BadMessage: the bytes aren't a JSON array.
    """
    try:
        if not data.isascii():
            str(data, "utf-8")
        return [bytes(item) for item in _read_items(data)]
    except (InvalidPayload, UnicodeDecodeError) as exc:
        raise BadMessage(Fault.PARSE, f"the message is not JSON: {_reason(exc)}") from None


def encode_request(id: RequestId, method: str, params: bytes | None) -> bytes:
    """Encode a request. `params` is an encoded JSON object, or None."""
    if params is None:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (encode(id), encode(method))
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (
        encode(id),
        encode(method),
        params,
    )


def encode_notification(method: str, params: bytes | None) -> bytes:
    """Encode a notification. `params` is an encoded JSON object, or None."""
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % encode(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), params)


def encode_result(id: RequestId, result: bytes, members: bytes = b"") -> bytes:
    """Encode a successful response.

    `result` is an encoded JSON object. `members` are further members of it, each with its comma
    (`b'"key":value,'`), which are inserted before its own. Inserting bytes leaves the object that
    the handler returned unchanged and encodes it once.
    """
    if not members:
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(id), result)
    if result == b"{}":
        return b'{"jsonrpc":"2.0","id":%b,"result":{%b}}' % (encode(id), members[:-1])
    # Join and slice by a view, because the result may be large: a copy of it costs as much as
    # encoding it.
    rest = result[1:] if len(result) < _LARGE else memoryview(result)[1:]
    return b"".join((b'{"jsonrpc":"2.0","id":', encode(id), b',"result":{', members, rest, b"}"))


def encode_error(id: RequestId | None, error: bytes, *, null_id: bool = False) -> bytes:
    """Encode an error response. `error` is an encoded error object.

    If `id` is None, the response has no `id` member, or `"id": null` if `null_id` is set, as the
    schemas until 2025-06-18 require.
    """
    if id is not None:
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(id), error)
    if null_id:
        return b'{"jsonrpc":"2.0","id":null,"error":%b}' % error
    return b'{"jsonrpc":"2.0","error":%b}' % error


def check_object(data: bytes) -> dict[str, Raw]:
    """Return the members of an encoded object, which stay encoded.

    Raises:
        ValueError: `data` isn't JSON, not UTF-8, or JSON of another type.
    """
    try:
        if not data.isascii():
            str(data, "utf-8")
        return _read_members(data)
    except (InvalidPayload, UnicodeDecodeError) as exc:
        raise ValueError(f"not a JSON object: {_reason(exc)}") from None


def strip_white_space(data: bytes) -> bytes:
    """Remove the white space between the tokens of JSON, and with it every newline.

    Raises:
        ValueError: `data` isn't JSON.
    """
    try:
        return msgspec.json.format(data, indent=-1)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise ValueError(f"not JSON: {_reason(exc)}") from None


def _without_escaped_quotes(data: bytes) -> bytes:
    """Remove each escaped backslash and then each escaped quotation mark from JSON.

    A run of backslashes begins with an escape, so what is left of it after the removal of pairs is
    at most one backslash, which escapes the next character.
    """
    return data.replace(rb"\\", b"").replace(rb"\"", b"")


def _is_longer(text: str, limit: int) -> bool:
    return len(text) > limit or (not text.isascii() and len(text.encode()) > limit)


def _is_usable(id: RequestId, limit: int) -> bool:
    if type(id) is str:
        return not _is_longer(id, limit)
    return -MAX_SAFE_INTEGER <= id <= MAX_SAFE_INTEGER  # type: ignore[operator]


def _invalid(
    envelope: Envelope, message: str, id: int | str | None | UnsetType = UNSET
) -> BadMessage:
    """Return the error for a message that was decoded. Pass `id` None if its own isn't usable."""
    has_payload = envelope.result is not UNSET or envelope.error is not UNSET
    looks = _apparent_kind(envelope.method is not UNSET, envelope.id is not UNSET, has_payload)
    if id is UNSET:
        id = envelope.id
    return BadMessage(
        Fault.INVALID_REQUEST, message, None if id is UNSET else id, apparent_kind=looks
    )


def _apparent_kind(has_method: bool, has_id: bool, has_payload: bool) -> ApparentKind:
    """Return the kind of a message, from which of its members are present.

    The presence of `id`, not its value, distinguishes a request from a notification.
    """
    if has_method:
        return "request" if has_id else "notification"
    return "response" if has_payload else "neither"


def _response_payload(envelope: Envelope) -> Raw:
    """Return the result or the error of a response. Raise `BadMessage` if it isn't a response."""
    result = envelope.result
    error = envelope.error
    if result is UNSET and error is UNSET:
        raise _invalid(
            envelope,
            "neither a method nor a result nor an error",
            None if envelope.id is None else UNSET,
        )
    if envelope.method is not UNSET:
        raise _invalid(envelope, "a message is either a request or a response, not both")
    if result is UNSET:
        assert error is not UNSET
        # The id may be null or absent: the peer could not read one of our messages.
        return error
    if error is not UNSET:
        # Many serializers write null for the one that is absent.
        if bytes(error) == b"null":
            envelope.error = UNSET
        elif bytes(result) == b"null":
            envelope.result = UNSET
            return error
        else:
            raise _invalid(envelope, "a response has a result or an error, not both")
    if envelope.id is UNSET or envelope.id is None:
        raise _invalid(envelope, "a result without an id", None)
    return result


def _reject_duplicates(data: bytes, envelope: Envelope) -> None:
    """Raise `BadMessage` if the envelope has a duplicate member.

    RFC 8259 section 4 leaves the meaning of duplicates open.
    """
    try:
        # `has_duplicates` returns False for what it cannot decode. The envelope was decoded, but by
        # fewer Python frames: an unknown member may nest too deeply from here.
        _read_members(data)
    except InvalidPayload as exc:
        raise BadMessage(Fault.PARSE, f"the message is not JSON: {exc}") from None
    if has_duplicates(data):
        raise _invalid(envelope, "the message has a duplicate member")


def _bad_envelope(data: bytes, exc: Exception, id_limit: int) -> BadMessage:
    """Return the error for `data` that could not be decoded, with the id if that is usable."""
    if not isinstance(exc, msgspec.ValidationError):
        return BadMessage(Fault.PARSE, f"the message is not JSON: {_reason(exc)}")
    try:
        members = _read_members(data)
    except InvalidPayload:
        return BadMessage(Fault.INVALID_REQUEST, "a message is a JSON object")
    has_method = "method" in members and bytes(members["method"]) != b"null"
    if has_method and "id" not in members and bytes(members["method"])[:1] != b'"':
        # The method isn't a string. A notification gets no response, but "neither" does.
        has_method = False
    looks = _apparent_kind(has_method, "id" in members, "result" in members or "error" in members)
    try:
        id = _read_id(members["id"]) if "id" in members else None
    except InvalidPayload:
        return BadMessage(
            Fault.INVALID_REQUEST, "id is neither a string nor an integer", apparent_kind=looks
        )
    if id is not None and not _is_usable(id, id_limit):
        id = None
    return BadMessage(
        Fault.INVALID_REQUEST, f"not a JSON-RPC message: {_reason(exc)}", id, apparent_kind=looks
    )


def _reason(exc: BaseException) -> str:
    if isinstance(exc, RecursionError):
        return "nested too deeply"
    if isinstance(exc, UnicodeDecodeError):
        return f"not UTF-8 at byte {exc.start}"
    text = str(exc)
    if text == "Invalid UTF-8 encoded string":  # of msgspec since 0.23, for the above
        return "not UTF-8"
    # msgspec reports a lone surrogate with the same text as missing bytes.
    if text == "Input data was truncated":
        return "it ends too early, or has half of a surrogate pair"
    return text
