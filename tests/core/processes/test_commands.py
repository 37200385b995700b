"""The words, texts and environments of each command, as `commands.txt` keeps them."""

from __future__ import annotations

import pytest

from tests.core.processes.commands import command_lines, commands_to_read, kept_commands

KEPT = kept_commands()


def test_kept_commands_are_those_of_all_kinds() -> None:
    assert list(KEPT) == list(commands_to_read())


@pytest.mark.parametrize("name", KEPT)
def test_commands_of_a_kind_have_the_kept_texts(name: str) -> None:
    assert command_lines(commands_to_read()[name]) == KEPT[name]
