"""All that is read of messages and lines, as it is kept in a file."""

from __future__ import annotations

import pytest

from tests.core.protocol.jsonrpc.decodings import decodings, decodings_of, kept_decodings

KEPT = kept_decodings()


@pytest.mark.parametrize("name", KEPT)
def test_message_is_read_as_is_kept(name: str) -> None:
    """`python -m tests.core.protocol.jsonrpc.decodings` writes the texts again."""
    assert decodings_of(name) == KEPT[name]


def test_kept_decodings_are_of_all_messages() -> None:
    assert list(KEPT) == decodings()
