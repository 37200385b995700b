"""A fault of the command itself: status 70, which is no finding, with the traceback."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mcp_core import ConnectFailed
from mcp_trio import cli
from mcp_trio.cli import main
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._subcommands import SUBCOMMANDS


@pytest.mark.parametrize("command", SUBCOMMANDS)
@pytest.mark.parametrize(
    "error",
    [
        TypeError("unhashable type: 'list'"),
        RecursionError("too deep"),
        MemoryError(),
        ExceptionGroup("several", [KeyError("a\x1b[2J")]),
        BaseExceptionGroup("several", [KeyboardInterrupt(), KeyError("a")]),
    ],
    ids=repr,
)
def test_internal_error_of_any_subcommand_is_status_70(
    command: str,
    error: BaseException,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exception groups and exhausted memory are reported too, with all escape sequences escaped."""

    def fail(*_: Any) -> int:
        raise error

    parsed = SimpleNamespace(parse=lambda words: fail)
    monkeypatch.setitem(SUBCOMMANDS, command, parsed)
    assert main([command]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert "\x1b" not in err
    assert err.startswith(("Traceback", "  + Exception Group Traceback"))
    assert err.splitlines()[-1].startswith("mcp-trio: this is an internal error of mcp-trio ")
    assert "please report it" in err


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (CliError("no"), 2),
        (CliError("no", 4), 4),
        (ConnectFailed("no"), 3),
        (KeyboardInterrupt(), 130),
    ],
)
def test_error_with_a_status_of_its_own_keeps_it(
    error: BaseException, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(words: Any) -> int:
        raise error

    monkeypatch.setattr(cli, "_run_subcommand", fail)
    assert main(["check"]) == status
