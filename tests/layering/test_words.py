"""The words of the project: no banned word in what people read, and counted words below their
limit.

The second half proves with small texts that every rule can fail, and that code and quotations do
not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.layering.words import (
    BANNED,
    COUNTED,
    MAX_PER_THOUSAND,
    OPENINGS,
    prose_of_markdown,
    prose_of_python,
)

if TYPE_CHECKING:
    from tests.layering.sources import Findings

# How many banned words each top-level folder may still have. These numbers only fall.
CEILINGS: Final = {
    "mcp_core": 0,
    "mcp_trio": 0,
    "mcp_asyncio_shim": 0,
    "fuzz": 0,
    "benchmarks": 0,
    "examples": 0,
    "tests": 0,
    "docs": 0,
}
# The same for counted words, where a folder has more than the limit allows.
COUNTED_CEILINGS: Final = {
    "mcp_trio": 0,
    "fuzz": 0,
    "docs": 0,
}
MAX_SHOWN = 40


@pytest.mark.parametrize("folder", CEILINGS)
def test_words_of_folder_stay_below_ceilings(folder: str, sources: list[Findings]) -> None:
    found = [each.words for each in sources if each.folder == folder]
    banned = [word for each in found for word in each.banned]
    counted = [word for each in found for word in each.counted]
    words = sum(each.count for each in found)
    assert words, f"{folder} has no prose"
    assert len(banned) <= CEILINGS[folder], "\n".join(
        [f"{len(banned)} banned words:", *banned[:MAX_SHOWN]]
    )
    limit = max(COUNTED_CEILINGS.get(folder, 0), words * MAX_PER_THOUSAND / 1000)
    assert len(counted) <= limit, "\n".join(
        [f"{len(counted)} counted words:", *counted[:MAX_SHOWN]]
    )


def python(source: str) -> tuple[list[str], list[str]]:
    found = list(prose_of_python(source))
    return [word for prose in found for word in prose.banned], [
        word for prose in found for word in prose.counted
    ]


def markdown(source: str) -> tuple[list[str], list[str]]:
    found = list(prose_of_markdown(source))
    return [word for prose in found for word in prose.banned], [
        word for prose in found for word in prose.counted
    ]


@pytest.mark.parametrize("word", BANNED)
def test_banned_word_in_comment_is_found(word: str) -> None:
    banned, counted = python(f"# The reader, {word.title()}, is mentioned.\n")
    assert [found.lower() for found in banned] == [word]
    assert counted == []


@pytest.mark.parametrize("word", COUNTED)
def test_counted_word_in_comment_is_found(word: str) -> None:
    banned, counted = python(f"# The reader, {word}, is mentioned.\n")
    assert banned == []
    assert counted == [word]


@pytest.mark.parametrize("word", OPENINGS)
def test_docstring_opening_with_pronoun_is_found(word: str) -> None:
    assert python(f'def f():\n    """{word.title()} it is."""\n')[0] == [
        f"{word.title()} (as the first word)"
    ]
    assert python(f"def test_{word}_it_is(): ...\n")[0] == [f"{word} (as the first word)"]
    assert python(f"# {word.title()} it is.\nx = 1\n")[0] == []


FOUND = [
    '"""Read by nobody."""',
    'class A:\n    """Read by nobody."""',
    'async def f():\n    """Return it.\n\n    Args:\n        x: nobody knows.\n    """',
    "x = 1  # nobody knows",
    "# A phrase that takes two lines is the rule that nobody\n# knows.",
    "x = '#'  # nobody knows",
    "try: ...\nexcept OSError: ...  # noqa: BLE001 - nobody knows",
    "def test_server_with_nobody_there_closes(): ...",
    "class TestA:\n    async def test_nobody(self): ...",
    'raise ValueError("nobody knows")',
    'raise ValueError(f"{name}: nobody knows {name}")',
    'match x:\n    case 1:\n        raise ValueError("nobody" " knows")',
    'try: ...\nexcept OSError:\n    raise ValueError(text="nobody knows") from None',
    'log.warning("nobody knows %s", name)',
    'self._logger.exception("nobody knows")',
]
NOT_FOUND = [
    "nobody = 1",
    'x = "nobody knows"',
    'print("nobody knows")',
    'x = """# nobody knows"""',
    'f("nobody knows")',
    "# The user `nobody` owns it.",
    '# The specification says "whatever the server sends"; HTTP says ``whoever``.',
    '# A quotation "of two lines, in which\n# nobody is named" counts as one.',
    '"""Run it::\n\n    nobody > nothing\n\n"""',
    '"""Run it.\n\n>>> nobody()\n"""',
    "def nobody(): ...",
    'math.log("nobody")',
    "# The hero is there, and this; the sheet is here.",
]


@pytest.mark.parametrize("source", FOUND)
def test_banned_word_in_python_prose_is_found(source: str) -> None:
    assert python(source)[0] == ["nobody"]


@pytest.mark.parametrize("source", NOT_FOUND)
def test_banned_word_outside_python_prose_is_ignored(source: str) -> None:
    assert python(source) == ([], [])


def test_banned_phrase_over_two_lines_is_found() -> None:
    assert python("# It closes of its\n# own accord.\n") == (["of its own accord"], [])
    assert python("# It closes of its\nx = 1\n# own accord.\n") == ([], [])


def test_is_none_is_counted_only_as_a_phrase() -> None:
    assert python('"""True if the token is None, or there is no token. Is None tested?"""')[1] == []
    assert python('"""True if the token is none."""')[1] == ["is none"]


def test_markdown_counts_prose_only() -> None:
    text = (
        "# Title\n\nA paragraph for\nnobody.\n\n```sh\nnobody\n```\n\n> nobody\n\n"
        '- `nobody`, "nobody" and [a link](nobody.md), <https://nobody.example>\n| told | is'
        " None |\n"
    )
    assert markdown(text) == (["nobody"], ["told"])


def test_prose_knows_its_line() -> None:
    source = (
        '"""Module.\n\nFor nobody.\n"""\n\n# one\n# nobody\nx = 1  # nobody\n\nraise E(\n   '
        ' "nobody"\n)\n'
    )
    lines = sorted(prose.line for prose in prose_of_python(source) if prose.banned)
    assert lines == [3, 6, 11]
    assert [prose.line for prose in prose_of_markdown("a\n\n```\nx\n```\n\nnobody\n")] == [1, 7]


def test_prose_counts_words_of_plain_text() -> None:
    [prose] = prose_of_python("# Don't count `this span` or 2026-07-28, but well-known words.\n")
    assert prose.words == 6
