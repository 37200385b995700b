"""`find_faults` with a server over HTTP in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.oracle.fuzz import _http
from mcp_trio.oracle.fuzz._echo import Echo
from mcp_trio.testing._faults import _find
from tests.trio_.oracle.fuzz.memory_http import HttpResponse, MemoryHttpServer, response_to
from tests.trio_.oracle.fuzz.memory_target import NEW, OLD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trio.testing import MockClock

CALL: Any = ("call", "t", {})
REQUEST = ("request", "tools/call", {"name": "t", "arguments": {}}, "int", "whole")


@pytest.mark.parametrize(
    ("revision", "step", "lists_tools"),
    [
        (NEW, CALL, True),
        (NEW, ("on", 1, *CALL), True),
        (NEW, REQUEST, True),
        (NEW, ("request", "ping", {}, "int", "whole"), False),
        (OLD, CALL, False),
        (OLD, REQUEST, False),
    ],
)
async def test_tools_are_listed_before_a_call_whose_headers_repeat_arguments(
    revision: str,
    step: Any,
    lists_tools: bool,
    autojump_clock: MockClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list says which arguments. Other cases are played without it."""
    servers: list[MemoryHttpServer] = []

    def respond(message: Mapping[str, Any]) -> HttpResponse:
        found = response_to(message)
        return found._replace(
            body=found.body.replace(b'"capabilities": {}', b'"capabilities": {"tools": {}}')
        )

    class Target(_http.UrlTarget):
        def __init__(self, url: str, nursery: Any, **options: Any) -> None:
            super().__init__(url, nursery, **options)
            servers.append(MemoryHttpServer(nursery, respond))
            self._connector = servers[-1]  # type: ignore[assignment]

    begun: list[Echo] = []

    async def begin(echo: Echo) -> None:
        """Start no program: then no machine counts as slow."""
        begun.append(echo)

    monkeypatch.setattr(_http, "UrlTarget", Target)
    monkeypatch.setattr(Echo, "begin", begin)
    steps: Any = [("open", revision, "whole", "all"), step]
    await _find("http://127.0.0.1:1/mcp", steps, None, False, None, None, 2.0, 60.0, None)
    assert len(begun) == 1
    methods = [each.get("method") for each in servers[0].received]
    assert ("tools/list" in methods) is lists_tools
