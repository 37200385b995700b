"""The whole answers of servers to requests, in each revision."""

from __future__ import annotations

import pytest

from tests.core.registry.answers import SERVED, answers_of, kept_answers


@pytest.mark.parametrize("served", SERVED)
def test_server_answers_in_each_revision_as_kept(served: str) -> None:
    kept = kept_answers()
    assert answers_of(served) == {key: kept[key] for key in kept if key.startswith(served)}


def test_kept_answers_are_those_of_all_servers() -> None:
    assert list(dict.fromkeys(key.rpartition(" ")[0] for key in kept_answers())) == SERVED
