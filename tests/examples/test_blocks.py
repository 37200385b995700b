"""Every block of the README, the tutorial and the how-to pages is played by a test.

`PLAYERS` has the tests, with the pages and blocks that they play. The lists of pages are those by
which these tests are parametrized.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from tests.examples.pages import (
    HOWTO,
    QUICK_START,
    ROOT,
    TUTORIAL,
    WITH_CODE,
    WITH_COMMANDS,
    Block,
    blocks,
    commands,
    output_after,
    read,
)
from tests.examples.test_coming_from import PAGES as COMING_FROM
from tests.examples.test_coming_from import other_side
from tests.examples.walkthrough import NOT_RUN, PROMPT, SERVER_PROMPT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PLAYED: Final = ["README.md", *TUTORIAL, *HOWTO]
_FENCE: Final = re.compile(r"^.*(?:```|~~~).*$", re.MULTILINE)


class Player(NamedTuple):
    """A test, with the pages and the blocks of them that it plays."""

    test: str
    pages: Iterable[str]
    blocks: Callable[[str], list[Block]]


def programs(page: str) -> list[Block]:
    """Return the Python blocks and their outputs, as `pages.run` plays them."""
    found = blocks(page)
    outputs = [output_after(found, number) for number in range(len(found))]
    return [*in_language("python", page), *filter(None, outputs)]


def in_language(language: str, page: str) -> list[Block]:
    return [block for block in blocks(page) if block.language == language]


IN_CONSOLE: Final = partial(in_language, "console")
PLAYERS: Final = [
    Player("examples/test_docs.py::test_page_with_code_runs", WITH_CODE, programs),
    Player("examples/test_readme.py::test_readme_prints_what_it_shows", ["README.md"], blocks),
    Player("examples/test_tutorial.py::test_tutorial_page_prints_what_it_shows", TUTORIAL, blocks),
    Player(
        "examples/test_howto.py::test_commands_of_page_print_what_it_shows",
        WITH_COMMANDS,
        IN_CONSOLE,
    ),
    Player(
        "examples/test_howto.py::test_commands_of_page_print_what_it_shows",
        ["docs/howto/bench.md"],
        blocks,
    ),
    Player(
        "examples/test_howto.py::test_quick_start_from_clone_to_agent_is_quick",
        [QUICK_START],
        blocks,
    ),
    Player(
        "examples/test_howto.py::test_settings_of_testing_page_find_leak",
        ["docs/howto/testing.md"],
        partial(in_language, "toml"),
    ),
    Player(
        "examples/test_coming_from.py::test_other_side_of_page_runs",
        COMING_FROM.values(),
        other_side,
    ),
    Player(
        "interop/test_deploy.py::test_nginx_of_page_passes_progress_on_at_once",
        ["docs/howto/deploy.md"],
        partial(in_language, "nginx"),
    ),
    Player(
        "interop/test_deploy.py::test_unit_of_page_starts_and_stops_its_program",
        ["docs/howto/deploy.md"],
        partial(in_language, "ini"),
    ),
    Player(
        "examples/test_fuzz_in_ci.py::test_job_of_page_fails_for_new_faults_only",
        ["docs/howto/fuzz-in-ci.md"],
        partial(in_language, "yaml"),
    ),
]


def unplayed(page: str) -> list[Block]:
    """Return the blocks of a page that no test plays."""
    played = [block for each in PLAYERS if page in each.pages for block in each.blocks(page)]
    return [block for block in blocks(page) if block not in played]


@pytest.mark.parametrize("page", PLAYED)
def test_every_block_of_page_is_played(page: str) -> None:
    assert [f"{page}:{block.line} {block.language}" for block in unplayed(page)] == []


@pytest.mark.parametrize("page", PLAYED)
def test_every_fence_of_page_begins_or_ends_a_block(page: str) -> None:
    """A block that is indented, or names no language, would not be found."""
    fences = _FENCE.findall(read(page))
    found = blocks(page)
    assert fences[::2] == [f"```{block.language}" for block in found]
    assert fences[1::2] == ["```"] * len(found)


@pytest.mark.parametrize("player", PLAYERS, ids=[player.test for player in PLAYERS])
def test_player_exists_and_has_blocks_on_each_page(player: Player) -> None:
    file, _, name = player.test.partition("::")
    source = (ROOT / "tests" / file).read_text("utf-8")
    assert re.search(rf"^(?:async )?def {name}\(", source, re.MULTILINE)
    assert all(player.blocks(page) for page in player.pages)


def test_commands_that_are_not_run_are_on_pages() -> None:
    shown = {
        words.removeprefix(PROMPT).strip()
        for page in PLAYED
        for block in IN_CONSOLE(page)
        if block.text.startswith((PROMPT, SERVER_PROMPT))
        for words, _ in commands(block.text, PROMPT, SERVER_PROMPT)
    }
    assert set(NOT_RUN) <= shown


@pytest.mark.parametrize(
    ("page", "language", "played"),
    [
        ("docs/howto/testing.md", "python", True),
        ("docs/howto/testing.md", "console", False),
        ("docs/howto/testing.md", "text", False),
        ("docs/howto/deploy.md", "sh", False),
        ("docs/tutorial/1-first-server.md", "sh", True),
    ],
)
def test_block_without_player_is_found(
    page: str, language: str, played: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`play` fails at a block of the tutorial that it cannot play."""
    text = f"```{language}\nx\n```\n"
    monkeypatch.setattr("tests.examples.pages.read", lambda page: text)
    assert [block.language for block in unplayed(page)] == ([] if played else [language])
