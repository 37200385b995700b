"""The layout in Redis, as far as it is text. `tests/core/adapters/test_redis_tasks.py` runs it."""

from __future__ import annotations

import re

import pytest

from mcp_core.tasks import TaskKey, _layout
from mcp_core.tasks._layout import RedisLayout, StoredRecord, member_of, stored_leases
from mcp_core.tasks._leases import WorkerLease
from tests.core.tasks.store_contract import MANY, new_record

LAYOUT = RedisLayout("lab")


def test_keys_of_owners_and_ids_never_collide() -> None:
    keys = [TaskKey(*pair) for pair in (("a", "b:c"), ("a:b", "c"), ("", "a:b:c"), ("a", "b"))]
    assert len({LAYOUT.record_key(member_of(key)) for key in keys}) == 4
    assert {LAYOUT.record_key(member_of(key)).split("}")[0] for key in keys} == {"mcp:{lab"}


def test_owner_is_in_no_key() -> None:
    record = new_record(owner="ada@example.com")
    assert "ada" not in "".join(LAYOUT.create(record, StoredRecord(b"", None), **MANY).keys)


@pytest.mark.parametrize("name", ["", "a{b", "a}b"])
def test_name_that_breaks_the_hash_tag_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="braces"):
        RedisLayout(name)


def test_leases_are_read_and_others_are_left_out() -> None:
    fields = {
        b"": b"7",
        b"w1": b"1 7 30.0",
        b"w2": b"2 0 0",
        b"w3": b"3 x 30.0",
        b"w4": b"4 5",
        b"\xff": b"5 6 30.0",
        b"w6": b"\xff 6 30.0",
    }
    reply = [part for pair in fields.items() for part in pair]
    assert stored_leases(reply) == [
        (WorkerLease("w1", 7, 30.0), 1, b"1 7 30.0"),
        (WorkerLease("w2", 0, 0.0), 2, b"2 0 0"),
    ]


def test_every_command_of_the_scripts_is_probed() -> None:
    """So that an ACL which forbids one is found at the start, and not with the first task."""
    scripts = "".join(value for value in vars(_layout).values() if isinstance(value, str))
    used = set(re.findall(r"redis\.p?call\(\s*'(\w+)'", scripts)) - {"TIME"}  # without a key
    assert used == {command for command, *_ in _layout._PROBED}
