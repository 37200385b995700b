"""All that an endpoint answers to each of a table of requests."""

from __future__ import annotations

import pytest

from tests.core.http.server.answers import ENDPOINTS, answers_of, kept_endpoint_answers


@pytest.mark.parametrize("name", ENDPOINTS)
def test_endpoint_has_the_kept_answers_to_all_requests(name: str) -> None:
    assert answers_of(name) == kept_endpoint_answers()[name]


def test_kept_answers_are_those_of_all_endpoints() -> None:
    assert list(kept_endpoint_answers()) == list(ENDPOINTS)
