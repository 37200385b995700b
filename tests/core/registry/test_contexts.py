"""Each method of a handler's context, in each revision and for two kinds of client."""

from __future__ import annotations

import pytest

from tests.core.registry.contexts import CLIENTS, calls_of, kept_contexts


@pytest.mark.parametrize("client", CLIENTS)
def test_calls_of_a_context_send_and_return_what_is_kept(client: str) -> None:
    assert calls_of(client) == kept_contexts()[client]


def test_kept_contexts_are_those_of_all_clients() -> None:
    assert tuple(kept_contexts()) == CLIENTS
