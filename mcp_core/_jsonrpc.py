"""JSON-RPC 2.0 as MCP uses it: one message's bytes to an envelope, and the parts of a message to bytes.

Rules of this file:

1. It is the only place of the protocol machine where msgspec's errors are caught: bad input raises four types there
   (`DecodeError`, `ValidationError`, `UnicodeDecodeError`, `RecursionError`), and none of them may travel further.
2. `params`, `result` and `error.data` stay undecoded (`Raw`): only who knows the method knows their type.
3. An envelope has each of its keys once, an id is a string or an integer and nothing that merely looks like one, and text
   is UTF-8 without a replacement. Ordinary messages are checked for this by their length, or by counting quotes, and not by
   scanning them in Python.
4. A message with an id that could be read is never lost: what is wrong with it is a `BadMessage` that carries the id.

It does not know methods, revisions or who is asking. JSON-RPC 2.0 sections 4 and 5; MCP basic/index, Messages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from ._errors import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from .types import RequestId

__all__ = [
    "BadMessage",
    "Envelope",
    "Unreadable",
    "decode",
    "encode",
    "encode_error",
    "encode_notification",
    "encode_request",
    "encode_result",
    "is_batch",
    "one_line",
    "reader",
    "split_batch",
]

# The largest integer that every JSON implementation keeps exact (RFC 8259 section 6).
MAX_SAFE_INTEGER: Final = 2**53 - 1

T = TypeVar("T")
Looks: TypeAlias = Literal["request", "notification", "response", "neither"]

encode: Final[Callable[[Any], bytes]] = msgspec.json.Encoder().encode


class Envelope(Struct, gc=False):
    """A JSON-RPC message with everything but its outline still undecoded."""

    jsonrpc: Literal["2.0"]
    id: int | str | None | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class BadMessage(Exception):
    """What is wrong with a message. `id` is the one it carries, or None when no id could be read.

    `looks` tells what it was meant to be: only a request, or what is neither, is answered; and what looks like a response
    fails the call whose id it has.
    """

    def __init__(
        self, fault: Fault, message: str, id: RequestId | None = None, *, looks: Looks = "request"
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.message = message
        self.id = id
        self.looks = looks


class Unreadable(Exception):
    """A `Raw` value does not have the type that was asked for; the text says where and why."""


def reader(type: type[T]) -> Callable[[Raw | bytes], T]:
    """A function that decodes JSON into `type` or raises `Unreadable`."""
    decode = msgspec.json.Decoder(type).decode

    def read(data: Raw | bytes) -> T:
        try:
            return decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
            raise Unreadable(_reason(exc)) from None

    return read


# From here on a view is cheaper than a copy.
_LARGE: Final = 4096

_decode_envelope = msgspec.json.Decoder(Envelope).decode
_members_of = reader(dict[str, Raw])
_items_of = reader(list[Raw])
_id_of = reader(int | str)  # type: ignore[arg-type]
# The bytes of the shortest request in which a member stands twice, less its method and params.
_SHORTEST_WITH_A_DUPLICATE: Final = len(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"","params":}')
# The quotes of `"jsonrpc":"2.0"` and of an id of this type with its key.
_QUOTES: Final = {UnsetType: 4, int: 6, type(None): 6, str: 8}


def decode(data: bytes, method_limit: int = 256, id_limit: int = 256) -> Envelope:
    """Read one message (not a batch). The limits are in bytes.

    Raises:
        BadMessage: the bytes are not JSON, not UTF-8, or not a JSON-RPC request, notification or response.
    """
    try:
        if not data.isascii():
            str(data, "utf-8")
        envelope = _decode_envelope(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as exc:
        raise _explain(data, exc, id_limit) from None
    id, method = envelope.id, envelope.method
    if type(id) is int:
        if not -MAX_SAFE_INTEGER <= id <= MAX_SAFE_INTEGER:
            raise _flaw(envelope, "id is an integer beyond 2^53-1", None)
    elif type(id) is str and _is_longer(id, id_limit):
        raise _flaw(envelope, f"id is longer than {id_limit} bytes", None)
    if method is not UNSET and envelope.result is UNSET and envelope.error is UNSET:
        # Present, so it is no notification; null, so it cannot be answered by name.
        if id is None:
            raise _flaw(envelope, "id is null", None)
        # A character has four bytes at most: a short one need not be measured.
        if len(method) * 4 > method_limit and _is_longer(method, method_limit):
            raise _flaw(envelope, f"method is longer than {method_limit} bytes")
        payload = envelope.params
        if (
            payload is not UNSET
            and type(id) is int
            and len(data) - len(method) - memoryview(payload).nbytes < _SHORTEST_WITH_A_DUPLICATE
        ):
            return envelope  # there is no room for anything else
        quotes = _QUOTES[type(id)] + 4
    else:
        payload = _answer_in(envelope)
        quotes = _QUOTES[type(id)]
    # Each key and each string has two quotes. More of them means unknown members, escapes - or a key that stands twice.
    outside = data.count(b'"')
    if payload is not UNSET:
        quotes += 2
        outside -= bytes(payload).count(b'"')
    if outside != quotes:
        _refuse_duplicates(data, envelope)
    return envelope


def is_batch(data: bytes) -> bool:
    """Whether the message is a JSON array, judged by its first character."""
    return data.lstrip(b" \t\r\n")[:1] == b"["


def split_batch(data: bytes) -> list[bytes]:
    """The members of a batch (revision 2025-03-26 only), still encoded.

    Raises:
        BadMessage: the bytes are not a JSON array.
    """
    try:
        if not data.isascii():
            str(data, "utf-8")
        return [bytes(item) for item in _items_of(data)]
    except (Unreadable, UnicodeDecodeError) as exc:
        raise BadMessage(Fault.PARSE, f"the message is not JSON: {_reason(exc)}") from None


def encode_request(id: RequestId, method: str, params: bytes | None) -> bytes:
    """A request as bytes. `params` is an encoded JSON object or None."""
    if params is None:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (encode(id), encode(method))
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (encode(id), encode(method), params)


def encode_notification(method: str, params: bytes | None) -> bytes:
    """A notification as bytes. `params` is an encoded JSON object or None."""
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % encode(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (encode(method), params)


def encode_result(id: RequestId, result: bytes, members: bytes = b"") -> bytes:
    """A successful response as bytes.

    `result` is an encoded JSON object; `members` (`b'"key":value,'`, each with its comma) are put in front of its own. This is
    how a revision stamps a result without the object that a handler returned being touched.
    """
    if not members:
        return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (encode(id), result)
    if result == b"{}":
        return b'{"jsonrpc":"2.0","id":%b,"result":{%b}}' % (encode(id), members[:-1])
    # Joined and sliced by a view, since the result may be large: each copy of it costs as much as encoding it.
    rest = result[1:] if len(result) < _LARGE else memoryview(result)[1:]
    return b"".join((b'{"jsonrpc":"2.0","id":', encode(id), b',"result":{', members, rest, b"}"))


def encode_error(id: RequestId | None, error: bytes, *, null_id: bool = False) -> bytes:
    """An error response as bytes. `error` is an encoded error object.

    Without an id the member is left out, or sent as null when `null_id` is set, as the older schemas want it.
    """
    if id is not None:
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(id), error)
    if null_id:
        return b'{"jsonrpc":"2.0","id":null,"error":%b}' % error
    return b'{"jsonrpc":"2.0","error":%b}' % error


def one_line(data: bytes) -> bytes:
    """The same JSON without white space between its tokens, so that it holds no newline.

    Raises:
        ValueError: it is no JSON.
    """
    try:
        return msgspec.json.format(data, indent=-1)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise ValueError(f"not JSON: {_reason(exc)}") from None


def _is_longer(text: str, limit: int) -> bool:
    return len(text) > limit or (not text.isascii() and len(text.encode()) > limit)


def _is_usable(id: RequestId, limit: int) -> bool:
    if type(id) is str:
        return not _is_longer(id, limit)
    return -MAX_SAFE_INTEGER <= id <= MAX_SAFE_INTEGER  # type: ignore[operator]


def _flaw(envelope: Envelope, message: str, id: int | str | None | UnsetType = UNSET) -> BadMessage:
    """What is wrong with a message that has the outline of one; `id` None if its own cannot be used."""
    answers = envelope.result is not UNSET or envelope.error is not UNSET
    looks = _looks(envelope.method is not UNSET, envelope.id is not UNSET, answers)
    if id is UNSET:
        id = envelope.id
    return BadMessage(Fault.INVALID_REQUEST, message, None if id is UNSET else id, looks=looks)


def _looks(asks: bool, has_id: bool, answers: bool) -> Looks:
    """The presence of the key `id`, not its value, tells a request from a notification."""
    if asks:
        return "request" if has_id else "notification"
    return "response" if answers else "neither"


def _answer_in(envelope: Envelope) -> Raw:
    """The result or error of a response, which has exactly one of them."""
    result, error = envelope.result, envelope.error
    if result is UNSET and error is UNSET:
        raise _flaw(
            envelope, "neither a method nor a result nor an error", None if envelope.id is None else UNSET
        )
    if envelope.method is not UNSET:
        raise _flaw(envelope, "a message is either a request or a response, not both")
    if result is UNSET:
        assert error is not UNSET
        return error  # its id may be null or absent: so says a peer who could not read a message of ours
    if error is not UNSET:
        raise _flaw(envelope, "a response has a result or an error, not both")
    if envelope.id is UNSET or envelope.id is None:
        raise _flaw(envelope, "a result without an id", None)
    return result


def _refuse_duplicates(data: bytes, envelope: Envelope) -> None:
    """Raise `BadMessage` if a member of the envelope stands twice. RFC 8259 section 4 leaves the meaning of that open.

    The decoder keeps the last of equal keys, so the quotes of what it kept are fewer than the quotes that were sent.
    """
    try:
        members = _members_of(data)
    except Unreadable as exc:
        raise BadMessage(Fault.PARSE, f"the message is not JSON: {exc}") from None
    if any('"' in key for key in members):
        # It may be written with or without a quote byte (\u0022), and so make up for the quotes of a lost member.
        raise _flaw(envelope, "a member of the message has a quotation mark in its name")
    quotes = sum(2 + bytes(value).count(b'"') for value in members.values())
    if quotes != data.count(b'"'):
        raise _flaw(envelope, "a member of the message stands twice")


def _explain(data: bytes, exc: Exception, id_limit: int) -> BadMessage:
    """Why `data` is no envelope, with the id if it is JSON and has a usable one."""
    if not isinstance(exc, msgspec.ValidationError):
        return BadMessage(Fault.PARSE, f"the message is not JSON: {_reason(exc)}")
    try:
        members = _members_of(data)
    except Unreadable:
        return BadMessage(Fault.INVALID_REQUEST, "a message is a JSON object")
    asks = "method" in members
    if asks and "id" not in members and bytes(members["method"])[:1] != b'"':
        asks = False  # no request and no notification either, so that it may be answered
    looks = _looks(asks, "id" in members, "result" in members or "error" in members)
    try:
        id = _id_of(members["id"]) if "id" in members else None
    except Unreadable:
        return BadMessage(Fault.INVALID_REQUEST, "id is neither a string nor an integer", looks=looks)
    if id is not None and not _is_usable(id, id_limit):
        id = None
    return BadMessage(Fault.INVALID_REQUEST, f"not a JSON-RPC message: {_reason(exc)}", id, looks=looks)


def _reason(exc: BaseException) -> str:
    if isinstance(exc, RecursionError):
        return "nested too deeply"
    if isinstance(exc, UnicodeDecodeError):
        return f"not UTF-8 at byte {exc.start}"
    text = str(exc)
    # What msgspec says of a lone surrogate would send the reader looking for missing bytes.
    if text == "Input data was truncated":
        return "it ends too early, or has half of a surrogate pair"
    return text
