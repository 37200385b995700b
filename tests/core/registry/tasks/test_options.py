"""Tools that run as tasks: their options, and which calls run as tasks."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from msgspec import UNSET
from msgspec.structs import asdict

from mcp_core import McpError, RequestReceived
from mcp_core.registry import DeclarationError, TaskOptions
from mcp_core.registry.functions._function import inspect_function
from mcp_core.registry.tasks._options import check_task, read_task_options
from mcp_core.types import CallToolParams, ClientCapabilities, TaskMetadata
from tests.core.registry.lookup_helpers import ROWS, A, D, E
from tests.core.server_requests import client

EXTENSION: Final = "io.modelcontextprotocol/tasks"
MISSING: Final = f"the client did not declare the extension {EXTENSION}"
WITH_TASKS: Final = ClientCapabilities(extensions={EXTENSION: {}})


async def research() -> None: ...
def plain() -> None: ...


def test_task_options_make_a_task_at_once_without_demanding_one() -> None:
    assert asdict(TaskOptions()) == {
        "support": "optional",
        "detach": 0.0,
        "ttl": None,
        "rerun": False,
        "meanwhile": None,
    }


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"support": "required", "detach": 0, "ttl": 0.001}, ""),
        ({"detach": None, "ttl": None}, ""),
        ({"detach": 0.5}, ""),
        ({"support": "forbidden"}, "support is 'optional' or 'required', not 'forbidden'"),
        ({"detach": -0.001}, "detach is a number of seconds from 0 on, or None: -0.001"),
        ({"detach": float("nan")}, "detach is a number of seconds from 0 on, or None: nan"),
        ({"ttl": 0}, "ttl is a number of seconds above 0, or None: 0"),
        ({"ttl": float("nan")}, "ttl is a number of seconds above 0, or None: nan"),
    ],
)
def test_task_options_have_bounds(options: dict[str, Any], text: str) -> None:
    if not text:
        assert options.items() <= asdict(TaskOptions(**options)).items()
        return
    with pytest.raises(ValueError, match=f"^{re.escape(text)}$"):
        TaskOptions(**options)


@pytest.mark.parametrize(
    ("declared", "options"),
    [
        (None, None),
        ("forbidden", None),
        ("optional", TaskOptions()),
        ("required", TaskOptions(support="required")),
        (TaskOptions(ttl=5), TaskOptions(ttl=5)),
    ],
)
def test_declared_task_is_a_word_or_options(declared: Any, options: TaskOptions | None) -> None:
    assert read_task_options(declared, inspect_function(research), False) == options
    assert read_task_options(declared, inspect_function(plain), True) == options
    if options is None:
        assert read_task_options(declared, inspect_function(plain), False) is None
        return
    with pytest.raises(
        DeclarationError, match=r"^function 'plain' is a plain def, which has ended"
    ):
        read_task_options(declared, inspect_function(plain), False)


def test_declared_task_of_another_word_is_refused() -> None:
    text = (
        r"^function 'research': task is 'forbidden', 'optional', 'required' or a TaskOptions, not 5"
    )
    with pytest.raises(DeclarationError, match=text):
        read_task_options(5, inspect_function(research), False)  # type: ignore[arg-type]


def called(dialect: Any, *, wants: bool = False, declares: bool = False) -> RequestReceived:
    """Return a call of the tool t, which asks for a task or declares the extension."""
    params = CallToolParams(name="t", task=TaskMetadata() if wants else None)
    peer = client(dialect.version, WITH_TASKS if declares else ClientCapabilities())
    return RequestReceived(1, ROWS["tools/call"], params, peer, b"{}")


@pytest.mark.parametrize(
    ("support", "request_", "outcome"),
    [
        # 2025-11-25: the client asks.
        ("optional", called(D), False),
        ("optional", called(D, wants=True), True),
        ("required", called(D, wants=True), True),
        (
            "required",
            called(D),
            (-32601, "the tool t runs as a task only: the call needs `task` in its params", UNSET),
        ),
        (None, called(D), False),
        (None, called(D, wants=True), (-32601, "the tool t does not run as a task", UNSET)),
        # 2026-07-28: the client declares, and what it asks for is ignored.
        ("optional", called(E), False),
        ("optional", called(E, wants=True), False),
        ("optional", called(E, declares=True), True),
        ("required", called(E, declares=True), True),
        (
            "required",
            called(E),
            (
                -32021,
                f"the tool t runs as a task, and {MISSING}",
                {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
            ),
        ),
        (None, called(E, declares=True), False),
        (None, called(E, wants=True), False),
        # Earlier ones have no tasks.
        ("optional", called(A, wants=True, declares=True), False),
        (None, called(A, wants=True), False),
        (
            "required",
            called(A, wants=True),
            (
                -32601,
                "the tool t runs as a task, which revision 2024-11-05 does not have",
                UNSET,
            ),
        ),
    ],
)
def test_call_runs_as_a_task_if_both_sides_have_it(
    support: Any, request_: RequestReceived, outcome: Any
) -> None:
    """`outcome` is whether it does, or the error's code, message and data."""
    options = None if support is None else TaskOptions(support=support)
    if isinstance(outcome, bool):
        assert check_task(options, request_, served=True) is (options if outcome else None)
    else:
        with pytest.raises(McpError) as caught:
            check_task(options, request_, served=True)
        assert (caught.value.code, caught.value.message, caught.value.data) == outcome
    if options is None:  # a server without tasks ignores that one is asked for
        assert check_task(options, request_, served=False) is None
