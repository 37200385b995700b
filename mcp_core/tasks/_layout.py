"""How a store outside of the process keeps a record: in two parts, and in Redis under which keys.

The result is a part of its own, because it may be large and only `TaskStore.get` returns it.
"""

from __future__ import annotations

from msgspec import UNSET, Raw
from msgspec.structs import replace

from ._record import TaskRecord, decode_record, encode_record

__all__ = ["join_record", "split_record"]


def split_record(record: TaskRecord) -> tuple[bytes, bytes | None]:
    """Return the encoded record without its result, and the result, None if it has none."""
    if record.result is UNSET:
        return encode_record(record), None
    return encode_record(replace(record, result=UNSET)), bytes(record.result)


def join_record(data: bytes, result: bytes | None) -> TaskRecord:
    """Return the record of which `split_record` returned the parts.

    Raises:
        InvalidPayload: the data is no record.
    """
    record = decode_record(data)
    return record if result is None else replace(record, result=Raw(result))
