"""A change of a configuration file: what happens when it cannot be written, or is changed too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio._files import FileChanged
from mcp_trio.cli import _config_update
from mcp_trio.cli._config_update import ConfigUpdate, UpdateOutcome
from mcp_trio.cli._errors import SERVER_ERROR, CliError
from mcp_trio.cli._screen import Screen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class PlayedUpdate(ConfigUpdate):
    """A change whose writes a test plays: each raises its error, or returns the copy's path."""

    def __init__(self, path: Path, writes: Sequence[Exception | Path]) -> None:
        super().__init__(path, private=True, program="the editor")
        self.writes = list(writes)
        self.shown = 0
        self.changes: list[Any] = ["one"]

    def plan(self, text: str) -> Sequence[Any]:
        return self.changes

    def check(self, changes: Sequence[Any], text: str) -> None:
        """Any change can be made."""

    def show(self, changes: Sequence[Any], screen: Screen) -> None:
        self.shown += 1

    def write(self, snapshot: Any, changes: Sequence[Any]) -> Path | None:
        outcome = self.writes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@pytest.fixture(autouse=True)
def _described(monkeypatch: pytest.MonkeyPatch) -> None:
    """A change is described by itself, and none is asked about."""
    monkeypatch.setattr(_config_update, "describe_change", lambda change: [("+", change)])
    monkeypatch.setattr(_config_update, "ask_user", lambda *_: "decline")


def run(update: PlayedUpdate, *, yes: bool = True) -> UpdateOutcome:
    return update.run(Screen(None), yes=yes)


def test_change_that_another_program_interrupts_is_made_again(tmp_path: Path) -> None:
    """It is shown once, unless it has become another one."""
    update = PlayedUpdate(tmp_path / "a.json", [FileChanged(), FileChanged(), tmp_path])
    assert run(update) == UpdateOutcome("written", tmp_path)
    assert update.shown == 1


def test_file_that_changes_all_the_time_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    update = PlayedUpdate(path, [FileChanged()] * 3)
    with pytest.raises(CliError) as caught:
        run(update)
    assert str(caught.value) == (
        f"{path} is changed by another program all the time; close the editor, and try again"
    )
    assert caught.value.status == SERVER_ERROR


def test_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for error, text in (
        (OSError(28, "No space left on device", "/tmp/temporary"), "No space left on device"),
        (OSError("odd"), "odd"),
    ):
        with pytest.raises(CliError) as caught:
            run(PlayedUpdate(path, [error]))
        assert str(caught.value) == f"{path} cannot be written: {text}"


def test_change_is_not_made_if_there_is_none_or_the_user_declines(tmp_path: Path) -> None:
    update = PlayedUpdate(tmp_path / "a.json", [])
    assert run(update, yes=False) == UpdateOutcome("declined")
    update.changes = []
    assert run(update) == UpdateOutcome("unchanged")
    assert update.shown == 1
