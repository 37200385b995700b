"""Calls that are held in memory: how many and how large they may be, of a user and in sum."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core.runtime.tasks._held import HeldCalls

# Memory of this process, so the limits of a durable store never apply.
QUOTAS = {
    False: SimpleNamespace(total=2, key_bytes=10, total_bytes=15),
    True: SimpleNamespace(total=0, key_bytes=0, total_bytes=0),
}
LIMITS: Any = SimpleNamespace(quota=lambda key, *, durable: QUOTAS[durable])


def call(name: str, size: int, user: str = "ann") -> Any:
    return SimpleNamespace(key=name, quota_key=user, size=size)


@pytest.mark.parametrize(
    ("held", "new", "excess"),
    [
        ([], call("a", 10), None),
        ([], call("a", 11), "key_bytes"),
        ([call("a", 4)], call("b", 6), None),
        ([call("a", 4)], call("b", 7), "key_bytes"),
        ([call("a", 4), call("b", 3)], call("c", 4), "key_bytes"),
        ([call("a", 9)], call("b", 6, "bob"), None),
        ([call("a", 9)], call("b", 7, "bob"), "total_bytes"),
        ([call(name, 1) for name in "abc"], call("d", 1), None),
        ([call(name, 1) for name in "abcd"], call("e", 1), "total"),
    ],
)
def test_call_is_held_within_the_bytes_and_twice_the_number(
    held: list[Any], new: Any, excess: str | None
) -> None:
    """As many more tasks may have ended whose handlers still run."""
    calls = HeldCalls(LIMITS)
    for each in held:
        calls.hold(each)
    assert calls.find_excess(new) == excess


def test_released_call_counts_no_more() -> None:
    """Twice is once, and a task that isn't held has nothing to release."""
    calls = HeldCalls(LIMITS)
    calls.hold(call("a", 6))
    calls.hold(call("b", 4))
    assert calls.find_excess(call("c", 1)) == "key_bytes"
    for name in ("a", "a", "other"):
        calls.release(name)  # type: ignore[arg-type]
    assert calls.find_excess(call("c", 6)) is None
    assert calls.find_excess(call("c", 7)) == "key_bytes"
    assert repr(calls) == "<HeldCalls: 1 of 4 bytes>"
    calls.release("b")  # type: ignore[arg-type]
    assert repr(calls) == "<HeldCalls: 0 of 0 bytes>"
    assert not calls._sizes  # nothing is kept of users without a call


def test_calls_without_bytes_leave_nothing() -> None:
    """Calls from old files count none."""
    calls = HeldCalls(LIMITS)
    calls.hold(call("a", 0))
    calls.release("a")  # type: ignore[arg-type]
    assert not calls._sizes
    calls.hold(call("a", 0))
    calls.hold(call("b", 0))
    calls.release("a")  # type: ignore[arg-type]
    calls.release("b")  # type: ignore[arg-type]
    assert not calls._sizes
