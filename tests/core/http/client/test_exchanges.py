"""All that a client over HTTP makes of each of a table of responses."""

from __future__ import annotations

import pytest

from tests.core.http.client.exchanges import STAGES, follow_responses, kept_responses


@pytest.mark.parametrize("name", STAGES)
def test_response_to_call_has_the_kept_consequences(name: str) -> None:
    assert follow_responses(name) == kept_responses()[name]


def test_kept_exchanges_are_those_of_all_stages() -> None:
    assert list(kept_responses()) == list(STAGES)
