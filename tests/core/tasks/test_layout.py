"""The layout in Redis, as far as it is text. `tests/core/adapters/test_redis_tasks.py` runs it."""

from __future__ import annotations

import re
from hashlib import blake2b, sha1
from typing import TYPE_CHECKING

import pytest

from mcp_core.tasks import TaskKey, _layout
from mcp_core.tasks._layout import (
    RedisLayout,
    Removal,
    StoredLease,
    StoredRecord,
    member_of,
    stored_leases,
)
from mcp_core.tasks._leases import WorkerLease
from tests.core.tasks.store_contract import MANY, completed, new_record, quota

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core._redis_calls import RedisCall

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


ADA = blake2b(b"ada", digest_size=16).hexdigest()
RECORD = new_record("a", "ada", worker="w")
ENDED = completed(new_record("b", "ada", worker="w"))
DATA = StoredRecord(b"data", None)
FULL = StoredRecord(b"data", b"result")
QUOTA = quota(1, 2, key_bytes=3, total_bytes=4)
PLACES = [f"task:{ADA}:a", f"tasks:{ADA}"]
USAGE = ["task-usage", "task-sizes"]
REMOVED = str(round((RECORD.expires + 3600) * 1000))  # an hour after it has expired, in ms
CREATED = [repr(RECORD.created), repr(RECORD.expires)]
SIZE = str(RECORD.size)
LEASE = StoredLease(WorkerLease("w", 7, 30.0), 5, b"5 7 30.0")


@pytest.mark.parametrize(
    ("make", "script", "keys", "arguments"),
    [
        (
            lambda layout: layout.create(RECORD, DATA, limits=QUOTA),
            _layout._CREATE,
            [*PLACES, "tasks", "running", *USAGE, "workers"],
            [
                "a",
                f"{ADA}:a",
                "1",
                b"data",
                b"",
                *CREATED,
                "w",
                REMOVED,
                "",
                SIZE,
                "1",
                "2",
                "3",
                "4",
            ],
        ),
        (
            lambda layout: layout.change(RECORD.key, 7, RECORD, FULL, b"m"),
            _layout._CHANGE,
            [PLACES[0], "tasks", "running", "workers", *USAGE, "task-changes"],
            [
                "7",
                f"{ADA}:a",
                "1",
                b"data",
                b"result",
                CREATED[1],
                "w",
                REMOVED,
                b"m",
                "",
                SIZE,
                "",
                "",
            ],
        ),
        (
            lambda layout: layout.change(RECORD.key, 7, RECORD, DATA, b"m", limits=QUOTA),
            _layout._CHANGE,
            [PLACES[0], "tasks", "running", "workers", *USAGE, "task-changes"],
            [
                "7",
                f"{ADA}:a",
                "1",
                b"data",
                b"",
                CREATED[1],
                "w",
                REMOVED,
                b"m",
                "",
                SIZE,
                "3",
                "4",
            ],
        ),
        (
            lambda layout: layout.remove([Removal(RECORD.key, 7, b"m")]),
            _layout._REMOVE,
            ["tasks", "running", *USAGE, "task-changes", *PLACES],
            ["7", "a", f"{ADA}:a", b"m"],
        ),
        (
            lambda layout: layout.discard([(f"{ADA}:a", b"data"), (f"{ADA}:a", None)]),
            _layout._DISCARD,
            ["tasks", "running", *USAGE, *PLACES, *PLACES],
            [sha1(b"data").hexdigest(), "a", f"{ADA}:a", "", "a", f"{ADA}:a"],
        ),
        (lambda layout: layout.read([f"{ADA}:a"]), _layout._READ, PLACES[:1], [""]),
        (
            lambda layout: layout.read([f"{ADA}:a"], results=True),
            _layout._READ,
            PLACES[:1],
            ["result"],
        ),
        (lambda layout: layout.page("ada", "a", 9), _layout._PAGE, PLACES[1:], ["a", "9"]),
        (lambda layout: layout.expired(9), _layout._EXPIRED, ["tasks"], ["9"]),
        (lambda layout: layout.renew_lease("w", 30.0), _layout._RENEW, ["workers"], ["w", "30.0"]),
        (lambda layout: layout.leases(), _layout._LEASES, ["workers"], []),
        (
            lambda layout: layout.lost(9, [LEASE]),
            _layout._LOST,
            ["running", "workers"],
            ["9", "w", "5", b"5 7 30.0"],
        ),
        (
            lambda layout: layout.place([RECORD, ENDED]),
            _layout._PLACE,
            ["running", "workers"],
            [f"{ADA}:a", "w", f"{ADA}:b", "-"],
        ),
        (
            lambda layout: layout.claim(b"mark", b"known"),
            _layout._CLAIM,
            ["task-keys"],
            [b"mark", b"known"],
        ),
    ],
)
def test_call_of_a_script_has_its_keys_and_arguments_in_order(
    make: Callable[[RedisLayout], RedisCall],
    script: str,
    keys: list[str],
    arguments: list[str | bytes],
) -> None:
    call = make(RedisLayout("lab"))
    assert call.script == script
    assert call.keys == tuple(f"mcp:{{lab}}:{key}" for key in keys)
    assert call.arguments == tuple(arguments)


def test_probe_of_commands_uses_a_key_of_its_own() -> None:
    call, others = RedisLayout("lab").probes()
    assert call.keys == ("mcp:{lab}:task-probe",)
    assert others == [("XREAD", "COUNT", "1", "STREAMS", *call.keys, "0-0")]
