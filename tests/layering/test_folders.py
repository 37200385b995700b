"""The map of the folders in the documentation is the one that their docstrings give."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.layering.folders import PAGE, first_sentence, render


def test_map_of_folders_is_up_to_date() -> None:
    text = PAGE.read_text("utf-8")
    assert render(text) == text, "run `python -m tests.layering.folders`"


@pytest.mark.parametrize(
    ("docstring", "sentence"),
    [
        ("The store. It holds all.", "The store"),
        ("Names of `a.b`, and\nof `c`.\n\nMore.", "Names of `a.b`, and of `c`"),
        ("JSON-RPC 2.0: bytes.", "JSON-RPC 2.0: bytes"),
    ],
)
def test_first_sentence_ends_at_its_full_stop(
    docstring: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "__init__.py"
    path.write_text(f'"""{docstring}"""\n', "utf-8")
    assert first_sentence(path) == sentence


@pytest.mark.parametrize("source", ["x = 1\n", '"""no sentence"""\n'])
def test_folder_without_a_sentence_is_refused(source: str, tmp_path: Path) -> None:
    path = tmp_path / "__init__.py"
    path.write_text(source, "utf-8")
    with pytest.raises(AssertionError, match="docstring"):
        first_sentence(path)


def test_page_without_a_mark_is_refused() -> None:
    with pytest.raises(AssertionError, match="folders: mcp_core"):
        render("# Architecture\n")
