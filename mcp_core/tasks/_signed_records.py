"""The signed form of records, for a store that others may write to.

1. Who can write to the store must not be able to forge a result, or a call that is run again. So
   the signature covers the deployment, the key in the store, the record and its result.
2. Nothing of a record is decoded before its signature is verified.
3. A form of a later version is one for later versions of this code: members may be added to a
   form, and are never given another meaning.
4. An old record that is put back under its own key is signed, too. It cannot be told from one that
   a Redis server has after it lost its last writes. The rules of tasks bound what it can do: it
   expires when the later one would have, and its call runs at least once anyway.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from msgspec import Raw, Struct

from mcp_core.protocol.input_requests._request_state import DeploymentSigner
from mcp_core.protocol.jsonrpc._codec import InvalidPayload, encode, reader

from ._layout import StoredRecord
from ._record import decode_record, join_record, split_record

if TYPE_CHECKING:
    from mcp_core.protocol.input_requests._request_state import SigningKeys

    from ._record import TaskRecord

__all__ = ["PURPOSE", "LaterForm", "RecordSigner"]

PURPOSE: Final = "records of tasks"  # of `KeyRing.signing_keys`
_FORM: Final = 1


class _SignedBody(Struct, omit_defaults=True):
    form: int
    record: Raw
    result: str = ""  # the digest of the result, which is kept apart; "" if there is none


class _BodyForm(Struct):
    form: int


_read_form = reader(_BodyForm)
_read_body = reader(_SignedBody)


class LaterForm(InvalidPayload):
    """A signed record of a later form, which is for later versions of this code."""


class RecordSigner:
    """Signs the records of one deployment, and verifies them.

    Args:
        keys: the keys that sign and verify.
        deployment: the name that all workers of it give their store.
    """

    def __init__(self, keys: SigningKeys, deployment: str) -> None:
        self._signer = DeploymentSigner(keys, deployment)

    def __repr__(self) -> str:
        return f"RecordSigner({self._signer!r})"

    def encode(self, record: TaskRecord, key: str) -> StoredRecord:
        """Return `record` as it is stored.

        Args:
            record: the record.
            key: the key in the store.
        """
        data, result = split_record(record)
        body = encode(_SignedBody(_FORM, Raw(data), _digest(result)))
        return StoredRecord(self._signer.sign(body, key), result)

    def decode(self, data: bytes, key: str) -> TaskRecord:
        """Return the record that is stored under `key`, without its result.

        Raises:
            LaterForm: it is signed, and of a later form.
            InvalidPayload: it isn't signed for this place by a key of this server, or no record.
        """
        return decode_record(bytes(self._verified(data, key).record))

    def decode_whole(self, data: bytes, result: bytes | None, key: str) -> TaskRecord:
        """Return the record that is stored under `key`, with its result.

        Raises:
            LaterForm, InvalidPayload: as `decode`, or the result is another record's.
        """
        body = self._verified(data, key)
        if _digest(result) != body.result:
            raise InvalidPayload("its result is missing, or isn't the one that was signed")
        return join_record(bytes(body.record), result)

    def _verified(self, data: bytes, key: str) -> _SignedBody:
        body = self._signer.verified(data, key)
        if body is None:
            raise InvalidPayload(
                "it isn't signed with one of this server's state_keys for this place"
            )
        form = _read_form(body).form
        if form > _FORM:
            raise LaterForm(f"it has form {form} of a later version, and this one reads {_FORM}")
        return _read_body(body)


def _digest(result: bytes | None) -> str:
    return "" if result is None else sha256(result).hexdigest()
