"""The doctor's connections, without a server."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.cli._errors import CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._session import Target
from mcp_trio.cli.use import _doctor

if TYPE_CHECKING:
    from collections.abc import Callable


def connecting(outcome: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let each connection of the doctor end with an outcome. Return the targets."""
    targets = []

    def connect(target: Target, body: object) -> int:
        targets.append(target)
        return outcome()

    monkeypatch.setattr(_doctor, "connect_and_run", connect)
    return targets


def raising(error: Exception) -> Callable[[], int]:
    def outcome() -> int:
        raise error

    return outcome


TARGET = Target(
    server="http://x/mcp",
    timeout=5,
    headers=(("authorization", "Bearer t"), ("x-a", "b")),
    stderr=Screen(io.TextIOWrapper(io.BytesIO())),
)


def test_doctor_sends_no_token_to_learn_whether_one_is_needed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    targets = connecting(lambda: 0, monkeypatch)
    assert _doctor._try_without_token(TARGET) is None
    assert (targets[0].headers, targets[0].auth) == ((("x-a", "b"),), False)


def test_doctor_takes_a_failed_connection_and_no_other_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A fault of the command, or a signal, isn't a finding about the server."""
    failed = CliError("no connection")
    connecting(raising(failed), monkeypatch)
    assert _doctor._try_without_token(TARGET) is failed
    connecting(raising(RuntimeError("a fault")), monkeypatch)
    with pytest.raises(RuntimeError, match="a fault"):
        _doctor._try_without_token(TARGET)
    connecting(lambda: 130, monkeypatch)
    with pytest.raises(SystemExit) as stopped:
        _doctor._try_without_token(TARGET)
    assert stopped.value.code == 130
