"""`Runtime`: the defaults of a subclass that adds no more than it must."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import runtime
from mcp_core.runtime import Runtime
from mcp_core.runtime._asgi_app import AsgiApplication

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp_core import RequestReceived


class SilentRuntime(Runtime):
    def report(self, request: RequestReceived, reference: str, exc: BaseException) -> None:
        """Discard the entry."""


class Random(SilentRuntime):
    def entropy(self, size: int, /) -> bytes:
        return bytes(range(size))


def test_runtime_references_are_unique() -> None:
    bare = SilentRuntime()
    assert [bare.reference() for _ in range(3)] == ["1", "2", "3"]
    assert Random().reference() == "00010203"


def test_runtime_without_overrides_runs_at_once() -> None:
    bare, seen = SilentRuntime(), []
    bare.pump()
    bare.call_soon(lambda: seen.append("soon"))
    assert seen == ["soon"]
    assert not bare.write_blocked(1)
    assert not bare.release(1, None)
    assert not bare.in_worker_thread


@pytest.mark.parametrize(
    ("ask", "deed"),
    [
        (lambda bare: bare.drain(1), "wait"),
        (lambda bare: bare.send_nested(None), "wait for answers"),
        (lambda bare: bare.in_thread(int), "start threads"),
        (lambda bare: bare.from_thread(int), "start threads"),
        (lambda bare: bare.wall_time(), "tell the time"),
        (lambda bare: bare.entropy(1), "draw random bytes"),
    ],
)
def test_runtime_missing_method_raises(ask: Callable[[Any], object], deed: str) -> None:
    with pytest.raises(TypeError, match=f"^this runtime does not {deed}$"):
        ask(SilentRuntime())


def test_package_has_names_of_http_parts_and_no_others() -> None:
    assert runtime.AsgiApplication is AsgiApplication
    with pytest.raises(AttributeError, match="has no attribute 'AsgiServer'"):
        _ = runtime.AsgiServer
