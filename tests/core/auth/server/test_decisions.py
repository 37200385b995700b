"""All that a protected resource decides on each of a table of requests."""

from __future__ import annotations

import pytest

from tests.core.auth.server.decisions import RESOURCES, decisions_of, kept_decisions


@pytest.mark.parametrize("name", RESOURCES)
def test_resource_makes_the_kept_decisions(name: str) -> None:
    assert decisions_of(name) == kept_decisions()[name]


def test_kept_decisions_are_those_of_all_resources() -> None:
    assert list(kept_decisions()) == list(RESOURCES)
