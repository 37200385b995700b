"""Texts of exceptions: the peer gets those that an author has written for it, and no others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import McpError, ToolError
from mcp_core.registry import Context, ResourceNotFound, Server
from tests.harness.jsonrpc import VERSIONS, D, E
from tests.harness.messages.scripted_client import ScriptedClient

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET = "postgres://admin:hunter2@db"

REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "tool"}),
    ("tools/call", {"name": "later"}),
    ("resources/read", {"uri": "a://b"}),
    ("resources/read", {"uri": "t://b"}),
    ("prompts/get", {"name": "prompt"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "prompt"}, "argument": {"name": "a", "value": ""}},
    ),
    ("acme/method", {}),
]
REVISIONS = VERSIONS[::2]  # tool errors, codes and results differ between these three
every_request = pytest.mark.parametrize(("method", "params"), REQUESTS)


class Unprintable(Exception):
    def __str__(self) -> str:
        raise KeyError(SECRET)


def caused() -> Exception:
    error = ToolError("no access")
    error.__cause__ = OSError(SECRET)
    error.add_note(SECRET)
    return error


def server_raising(make: Callable[[], BaseException], middleware: bool = False) -> Server:
    server = Server("s")

    def fail() -> Any:
        raise make()

    async def later() -> Any:
        raise make()

    def with_argument(a: str = "") -> Any:
        raise (make() if not middleware else ValueError)

    server.add_tool(fail, name="tool", description="Fail.")
    server.add_tool(later, description="Fail.")
    server.add_resource("a://b", fail)
    server.add_resource("t://{a}", with_argument)
    server.add_prompt(with_argument, name="prompt", description="Fail.")
    server.add_completion("prompt", "a", lambda typed: fail())
    server.method("acme/method")(fail)
    if middleware:

        @server.middleware
        async def around(context: Context, proceed: Any) -> Any:
            raise make()

    return server


def response(server: Server, version: str, method: str, params: Any) -> tuple[Any, ScriptedClient]:
    stage = ScriptedClient(server, version)
    stage.asks(1, method, **params)
    (message,) = stage.sent_messages()
    return message, stage


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize(
    "make",
    [
        lambda: ValueError(SECRET),
        lambda: ExceptionGroup(SECRET, [OSError(SECRET), ToolError(SECRET)]),
        lambda: SystemExit(SECRET),
        Unprintable,
    ],
    ids=["plain", "group", "exit", "unprintable"],
)
@pytest.mark.parametrize("middleware", [False, True], ids=["handler", "middleware"])
@every_request
def test_exception_of_an_author_shows_the_peer_a_reference_only(
    version: str, make: Callable[[], BaseException], middleware: bool, method: str, params: Any
) -> None:
    message, stage = response(server_raising(make, middleware), version, method, params)
    assert "(reference R)" in json.dumps(message)
    assert SECRET not in json.dumps(message)
    assert len(stage.runtime.reports) == 1


@pytest.mark.parametrize("version", REVISIONS)
@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ToolError("no access"), "no access"),
        (caused, "no access"),
        (lambda: ExceptionGroup(SECRET, [ToolError("no access")]), "no access"),
        (lambda: McpError(7, "no access"), "no access"),
    ],
    ids=["tool error", "with a cause", "group of one", "mcp error"],
)
@every_request
def test_exception_for_the_peer_shows_its_own_text_only(
    version: str, make: Callable[[], BaseException], text: str, method: str, params: Any
) -> None:
    message, stage = response(server_raising(make), version, method, params)
    assert text in json.dumps(message)
    assert SECRET not in json.dumps(message)
    assert not stage.runtime.reports


@pytest.mark.parametrize("uri", ["a://b", "t://b"])
def test_resource_not_found_shows_its_text(uri: str) -> None:
    server = server_raising(lambda: ResourceNotFound("no such note"))
    message, stage = response(server, E, "resources/read", {"uri": uri})
    assert message["error"]["message"] == "no such note"
    assert not stage.runtime.reports


@dataclass
class Range:
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")
        if self.low < 0:
            raise OSError(SECRET)


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    ("low", "shown", "reports"),
    [(9, "low is above high", 0), (-1, "(reference R)", 1)],
)
def test_type_of_a_parameter_shows_what_is_invalid_only(
    version: str, low: int, shown: str, reports: int
) -> None:
    server = Server("s")

    @server.tool
    def pick(bounds: Range) -> str:
        """Pick."""
        return "picked"

    params = {"name": "pick", "arguments": {"bounds": {"low": low, "high": 5}}}
    message, stage = response(server, version, "tools/call", params)
    assert shown in json.dumps(message)
    assert SECRET not in json.dumps(message)
    assert len(stage.runtime.reports) == reports
