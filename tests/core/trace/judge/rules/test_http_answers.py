"""Each response to each request over HTTP: the rules that judge it, and those that find a fault."""

from __future__ import annotations

import pytest

from tests.core.trace.judge.rules.http_answers import (
    HTTP_REQUESTS,
    http_verdicts_on,
    kept_http_answers,
)

KEPT = kept_http_answers()


@pytest.mark.parametrize("name", HTTP_REQUESTS)
def test_responses_to_a_request_have_the_verdicts_that_are_kept(name: str) -> None:
    """`python -m tests.core.trace.judge.rules.http_answers` writes them again."""
    assert http_verdicts_on(name) == KEPT[name]


def test_kept_responses_are_those_to_all_requests() -> None:
    assert list(KEPT) == list(HTTP_REQUESTS)
