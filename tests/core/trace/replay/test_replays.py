"""All that is made of recorded conversations, as it is kept in files."""

from __future__ import annotations

import pytest

from tests.core.trace.replay.replays import kept_replays, replay_of, replays

KEPT = kept_replays()


@pytest.mark.parametrize("name", KEPT)
def test_conversation_is_replayed_as_is_kept(name: str) -> None:
    """`python -m tests.core.trace.replay.replays` writes the texts again."""
    assert replay_of(name) == KEPT[name]


def test_kept_replays_are_of_all_conversations() -> None:
    assert list(KEPT) == replays()
