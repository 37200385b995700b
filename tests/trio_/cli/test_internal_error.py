"""A fault of the command itself: status 70, which is no finding, with the traceback."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import ConnectFailed
from mcp_trio import cli
from mcp_trio.cli import _parser, main
from mcp_trio.cli._errors import CliError


@pytest.mark.parametrize("command", _parser._COMMANDS)
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
    def fail(*_: Any) -> int:
        raise error

    monkeypatch.setitem(_parser._COMMANDS, command, lambda words: fail)
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
