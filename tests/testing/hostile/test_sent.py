"""Each attack sends exactly what it promises: its sentences and bytes are those of `sent.txt`."""

from __future__ import annotations

import json
import zlib

import pytest

from mcp_trio.testing import hostile
from mcp_trio.testing.hostile._attack import gzip_bomb
from tests.testing.hostile.sent import ENTRIES, GOLDEN, entry_of

EXPECTED = GOLDEN.read_text("utf-8").rstrip("\n").split("\n\n")


def test_file_has_all_attacks_in_their_order() -> None:
    assert [each.partition("\n")[0] for each in EXPECTED] == ENTRIES


@pytest.mark.parametrize("title", ENTRIES)
def test_attack_sends_what_the_file_has(title: str) -> None:
    """If the change is meant, run `python -m tests.testing.hostile.sent`."""
    assert entry_of(title) == next(each for each in EXPECTED if each.startswith(f"{title}\n"))


def test_hash_flood_has_as_many_different_names_as_it_promises() -> None:
    params: list[tuple[str, int]] = []

    def note(pairs: list[tuple[str, int]]) -> list[tuple[str, int]]:
        params[:] = params or pairs
        return pairs

    json.loads(hostile.hostile_message("hash-flood"), object_pairs_hook=note)
    names = {name for name, _ in params}
    assert len(names) == len(params) == 5_000
    assert {name.lower() for name in names} == {"a" * size for size in range(1, 14)}


@pytest.mark.long
def test_gzip_bomb_is_64_kib_of_64_mib() -> None:
    bomb = gzip_bomb()
    assert 60 * 1024 < len(bomb) < 68 * 1024
    decompressor = zlib.decompressobj(wbits=31)
    assert decompressor.decompress(bomb) == bytes(64 * 1024 * 1024)
    assert decompressor.eof
    assert decompressor.unused_data == b""
