"""Messages from one worker of a server to the others, and how they are signed.

1. A message reads `SIGNATURE BODY`: an HMAC-SHA256 of 32 bytes, and JSON. The signature covers the
   deployment, the receiver and the body, so that who can write to the store can neither forge a
   message nor move one to another place.
2. Nothing of a body is decoded before its signature is verified.
3. Every message may come twice, or late: a change is a level, which means "read again".
4. A body names its form. Members may be added to a form, and are never given another meaning. A
   message of a later form is one for later versions of this code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias, TypeGuard, get_args

from msgspec import Struct

from mcp_core.protocol.input_requests._request_state import DeploymentSigner, SigningKeys
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader

__all__ = [
    "ChangesPublished",
    "InvalidWorkerMessage",
    "MessageCodec",
    "TaskChanged",
    "WorkerMessage",
    "is_well_formed",
    "merged",
]

_FORM: Final = 1
# Of a whole message. `merged` keeps below it: in JSON a character has up to 6 bytes.
_MAX_SIZE: Final = 1024 * 1024
# URIs of one message, and their characters. Above that all resources count as changed. Of ids of
# elicitations there are as many.
MAX_URIS: Final = 1_000
_MAX_CHARACTERS: Final = 64 * 1024

ListName: TypeAlias = Literal["tools", "prompts", "resources"]
_LISTS: Final = frozenset(get_args(ListName))


class ChangesPublished(Struct, frozen=True, tag_field="kind", tag="changes", omit_defaults=True):
    """Something that a server offers has changed, or users have finished on pages.

    Attributes:
        server: the server's name. Several servers may share a store.
        lists: the lists that have changed.
        uris: the resources whose contents have changed.
        all_uris: the contents of every resource may have changed.
        elicitations: the ids of URL elicitations that users have completed.
    """

    server: str
    lists: tuple[ListName, ...] = ()
    uris: tuple[str, ...] = ()
    all_uris: bool = False
    elicitations: tuple[str, ...] = ()


class TaskChanged(Struct, frozen=True, tag_field="kind", tag="task"):
    """The record of a task was changed or removed. `owner` and `id` are its key."""

    owner: str
    id: str


# A message from one worker to the others.
WorkerMessage: TypeAlias = ChangesPublished | TaskChanged


class _Body(Struct):
    form: int
    worker: int
    message: WorkerMessage


class _Form(Struct):
    form: int


_read_form = reader(_Form)
_read_body = reader(_Body)


class InvalidWorkerMessage(Exception):
    """Bytes in the store that aren't a message for this worker, or a message that can't be encoded.

    The text says why, for the log.
    """


class MessageCodec:
    """Encodes and decodes the messages of one deployment.

    Args:
        keys: the keys that sign and verify.
        deployment: the name that all workers of it give their store.
    """

    def __init__(self, keys: SigningKeys, deployment: str) -> None:
        self._signer = DeploymentSigner(keys, deployment)

    def __repr__(self) -> str:
        return f"MessageCodec({self._signer!r})"

    def encode(self, message: WorkerMessage, worker: int, receiver: str) -> bytes:
        """Return a signed message from the worker of number `worker`.

        Args:
            message: what to say.
            worker: the number of the sender, 0 for one without a number.
            receiver: the place in the store that is to have it, such as a stream's name.

        Raises:
            InvalidWorkerMessage: a text has a surrogate, or it would be too long for `decode`.
        """
        try:
            body = encode(_Body(_FORM, worker, message))
        except UnicodeEncodeError as exc:
            raise InvalidWorkerMessage(f"it can't be encoded: {exc}") from None
        data = self._signer.sign(body, receiver)
        if len(data) > _MAX_SIZE:
            raise InvalidWorkerMessage(f"it has {len(data)} bytes, more than {_MAX_SIZE}")
        return data

    def decode(self, data: bytes, receiver: str) -> tuple[int, WorkerMessage]:
        """Return the sender's number and the message of `data`, which was read at `receiver`.

        Raises:
            InvalidWorkerMessage: it is too long, isn't signed for this place by a key of this
                server, is of a later form, or isn't a message.
        """
        if len(data) > _MAX_SIZE:
            raise InvalidWorkerMessage(f"it has {len(data)} bytes, more than {_MAX_SIZE}")
        body = self._signer.verified(data, receiver)
        if body is None:
            raise InvalidWorkerMessage(
                "it isn't signed with one of this server's state_keys for this place"
            )
        try:
            form = _read_form(body).form
            if form > _FORM:
                raise InvalidWorkerMessage(
                    f"it has form {form} of a later version, and this one reads up to {_FORM}"
                )
            read = _read_body(body)
        except InvalidPayload as exc:
            raise InvalidWorkerMessage(f"it is signed, but isn't a message: {exc}") from None
        return read.worker, read.message


def merged(messages: Iterable[ChangesPublished], server: str) -> ChangesPublished:
    """Return one message that says what all of `messages` say, as one of `server`.

    Of more than 1,000 resources, or 65,536 characters of URIs, all count as changed; of as many
    elicitations the last ones are kept. Texts with surrogates, and anything that isn't a text, are
    left out: no client can name them.
    """
    lists: dict[ListName, None] = {}
    uris: dict[str, None] = {}
    elicitations: dict[str, None] = {}
    all_uris = False
    for message in messages:
        lists |= dict.fromkeys(message.lists)
        all_uris |= message.all_uris
        if not all_uris:
            uris |= dict.fromkeys(message.uris)
            all_uris = len(uris) > MAX_URIS
        elicitations |= dict.fromkeys(message.elicitations)
    sent_uris = () if all_uris else tuple(uri for uri in uris if _can_be_sent(uri))
    if sum(map(len, sent_uris)) > _MAX_CHARACTERS:
        all_uris, sent_uris = True, ()
    return ChangesPublished(
        server,
        lists=tuple(lists),
        uris=sent_uris,
        all_uris=all_uris,
        elicitations=_last_ones(elicitations),
    )


def _last_ones(elicitations: Iterable[str]) -> tuple[str, ...]:
    kept = [each for each in elicitations if _can_be_sent(each)][-MAX_URIS:]
    size = sum(map(len, kept))
    for index, each in enumerate(kept):
        if size <= _MAX_CHARACTERS:
            return tuple(kept[index:])
        size -= len(each)
    return ()


def _can_be_sent(text: object) -> bool:
    """Return False if `text` isn't one, or has a surrogate, as file names that aren't UTF-8 have.

    Callers pass what a program has named, such as a `Path`.
    """
    if not isinstance(text, str):
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_well_formed(message: object) -> TypeGuard[WorkerMessage]:
    """Return True for a message whose members have the right types. A `Struct` checks none."""
    if isinstance(message, TaskChanged):
        return _are_texts((message.owner, message.id))
    if not isinstance(message, ChangesPublished):
        return False
    all_uris: Any = message.all_uris
    return (
        type(all_uris) is bool
        and _are_texts((message.server,))
        and all(map(_are_texts, (message.lists, message.uris, message.elicitations)))
        and _LISTS.issuperset(message.lists)
    )


def _are_texts(members: object) -> bool:
    return isinstance(members, tuple) and all(isinstance(each, str) for each in members)
