"""The reading of each form of an entry in the file of each program, as `forms.txt` keeps it."""

from __future__ import annotations

import pytest

from tests.core.host.config.forms import form_read, forms_to_read, kept_forms

KEPT = kept_forms()


def test_kept_forms_are_those_of_all_programs() -> None:
    assert list(KEPT) == list(forms_to_read())


@pytest.mark.parametrize("name", KEPT)
def test_forms_of_a_file_are_read_as_kept(name: str) -> None:
    assert form_read(forms_to_read()[name]) == KEPT[name]
