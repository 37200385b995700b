"""The public signatures are those that were reviewed: `signatures.txt`."""

from __future__ import annotations

import difflib

from tests.layering.signatures import GOLDEN, render


def test_public_signatures_are_those_of_the_golden_file() -> None:
    old, new = GOLDEN.read_text("utf-8").splitlines(), render().splitlines()
    found = list(difflib.unified_diff(old, new, "signatures.txt", "the code", lineterm="", n=3))
    assert not found, "\n".join(
        ["run `python -m tests.layering.signatures` if callers may see this change:", *found]
    )


def test_golden_file_has_the_defaults_that_protect() -> None:
    """A renderer that leaves defaults out would find none changed."""
    [entry] = [
        each
        for each in GOLDEN.read_text("utf-8").split("\nmcp_trio.")
        if each.startswith("connect_stdio\n")
    ]
    assert "    inherit_env: bool = False\n" in entry
