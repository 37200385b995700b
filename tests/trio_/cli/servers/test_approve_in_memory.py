"""The questions of `mcp-trio servers approve` about servers that cannot be started."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import McpTrioError
from mcp_trio.cli._errors import SERVER_ERROR, CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli.servers import _approve

if TYPE_CHECKING:
    from pathlib import Path

NOTHING: Any = None


@pytest.mark.parametrize("error", [McpTrioError("a wrong word"), FileNotFoundError("no such file")])
async def test_approve_goes_on_after_a_server_that_cannot_be_started(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    review, shown = review_whose_launch_raises(error, monkeypatch)
    assert not await review._approve_launch("demo")
    assert f"demo cannot be started: {error}" in shown.getvalue().decode()
    assert review._incomplete


async def test_approve_hides_no_fault_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    review, _ = review_whose_launch_raises(RuntimeError("a fault"), monkeypatch)
    with pytest.raises(RuntimeError, match="a fault"):
        await review._approve_launch("demo")


def test_approve_without_a_place_for_approvals_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Such as a user without a home directory."""

    def no_place() -> Any:
        raise RuntimeError("no home")

    monkeypatch.setattr(_approve, "open_terminal", lambda stderr: object())
    monkeypatch.setattr(_approve, "ApprovalFile", no_place)
    file = tmp_path / ".mcp.json"
    file.write_text('{"mcpServers": {"demo": {"command": "cat"}}}')
    with pytest.raises(CliError, match="there is no place for approvals: no home") as caught:
        _approve.approve(["demo"], all_servers=False, config=file, timeout=1.0)
    assert caught.value.status == SERVER_ERROR


def review_whose_launch_raises(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> tuple[_approve._Review, io.BytesIO]:
    """Return the questions about servers, and what is printed."""

    def prepare(*arguments: object) -> Any:
        raise error

    monkeypatch.setattr(_approve, "prepare_launch", prepare)
    shown = io.BytesIO()
    stderr = Screen(io.TextIOWrapper(shown, write_through=True))
    return _approve._Review(NOTHING, NOTHING, NOTHING, NOTHING, stderr), shown
