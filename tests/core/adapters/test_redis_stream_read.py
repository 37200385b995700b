"""The replies to the reads of a stream, as one outcome."""

from __future__ import annotations

from hashlib import sha1
from typing import Any

import pytest

from mcp_core.adapters._redis_client import StreamRead, _stream_read

OURS: list[bytes] = [b"m", b"first"]


def mark(*fields: bytes) -> bytes:
    return sha1(b"\0".join(fields), usedforsecurity=False).digest()


@pytest.mark.parametrize("reply", [None, {}])
def test_read_in_vain_ends_where_it_began(reply: Any) -> None:
    assert StreamRead() == (None, None, ())
    assert _stream_read([], reply, "s") == (None, None, ())
    assert _stream_read([(b"1-0", OURS)], reply, "s") == (mark(*OURS), mark(*OURS), ())


def test_entry_without_our_field_has_an_empty_message() -> None:
    """Others may have added it, with any number of texts."""
    entries = [
        (b"2-0", [b"m", b"second"]),
        (b"3-0", [b"other", b"m"]),
        (b"4-0", [b"other", b"x", b"m", b"third"]),
        (b"5-0", [b"m"]),
    ]
    found = _stream_read([(b"0-1", []), (b"1-0", OURS)], {b"s": entries}, "s")
    messages = [b"second", b"", b"third", b""]
    assert found.entries == [
        (id, message) for (id, _), message in zip(entries, messages, strict=True)
    ]
    assert (found.before, found.last) == (mark(*OURS), mark(b"m"))
