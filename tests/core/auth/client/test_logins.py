"""All that a client does in each of a table of logins."""

from __future__ import annotations

import pytest

from tests.core.auth.client.logins import LOGINS, kept_logins, play_login


@pytest.mark.parametrize("name", LOGINS)
def test_logins_have_the_kept_steps_and_results(name: str) -> None:
    assert play_login(name) == kept_logins()[name]


def test_kept_logins_are_those_of_all_groups() -> None:
    assert list(kept_logins()) == list(LOGINS)
