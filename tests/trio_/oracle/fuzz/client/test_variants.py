"""The variants of what a scripted server sends: a stored case gets the same ones in any version."""

from __future__ import annotations

import pytest

from tests.trio_.oracle.fuzz.client.variants import VARIANTS, VARIANTS_FILE, variants_of

EXPECTED = VARIANTS_FILE.read_text("utf-8").rstrip("\n").split("\n\n")


def test_file_has_all_kinds_of_steps_in_their_order() -> None:
    assert [each.partition("\n")[0] for each in EXPECTED] == VARIANTS


@pytest.mark.parametrize("title", VARIANTS)
def test_variants_of_a_step_are_those_of_the_file(title: str) -> None:
    """If the change is meant, run `python -m tests.trio_.oracle.fuzz.client.variants`."""
    assert variants_of(title) == next(each for each in EXPECTED if each.startswith(f"{title}\n"))
