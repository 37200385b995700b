"""All that a client over HTTP makes of each of a table of responses."""

from __future__ import annotations

import pytest

from tests.core.http.client.exchanges import (
    FOLLOWED,
    STAGES,
    follow_responses,
    kept_outcomes,
    kept_responses,
    outcomes_of,
)


@pytest.mark.parametrize("name", FOLLOWED)
def test_response_to_call_has_the_kept_consequences(name: str) -> None:
    assert follow_responses(name) == kept_responses()[name]


@pytest.mark.parametrize("name", STAGES)
def test_operation_returns_the_kept_outcomes(name: str) -> None:
    assert outcomes_of(name) == kept_outcomes()[name]


def test_kept_exchanges_are_those_of_all_stages() -> None:
    assert list(kept_responses()) == FOLLOWED
    assert list(kept_outcomes()) == list(STAGES)
