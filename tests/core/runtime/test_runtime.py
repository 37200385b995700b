"""What a runtime is that fills in no more than it has to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.runtime import Runtime

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import RequestReceived


class Bare(Runtime):
    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        """Nobody reads it."""


class Random(Bare):
    def entropy(self, size: int, /) -> bytes:
        return bytes(range(size))


def test_faults_have_names() -> None:
    bare = Bare()
    assert [bare.reference() for _ in range(3)] == ["1", "2", "3"]
    assert Random().reference() == "00010203"


def test_what_it_does_by_itself() -> None:
    bare, seen = Bare(), []
    bare.pump()
    bare.soon(lambda: seen.append("soon"))
    assert seen == ["soon"]
    assert not bare.full(1)
    assert not bare.release(1, None)
    assert not bare.in_worker_thread


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda bare: bare.drain(1), "wait"),
        (lambda bare: bare.ask(None), "wait for answers"),
        (lambda bare: bare.in_thread(int), "start threads"),
        (lambda bare: bare.from_thread(int), "start threads"),
        (lambda bare: bare.wall_time(), "tell the time"),
        (lambda bare: bare.entropy(1), "draw random bytes"),
    ],
)
def test_what_it_cannot_do_it_says(ask: Callable[[Any], object], said: str) -> None:
    with pytest.raises(TypeError, match=f"^this runtime does not {said}$"):
        ask(Bare())
