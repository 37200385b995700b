"""Names of what a client can be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_core import DIALECTS, Peer
from mcp_core.protocol.input_requests._capabilities import can_answer
from mcp_core.protocol.jsonrpc._codec import encode, reader
from mcp_core.types import ClientCapabilities
from tests.harness.jsonrpc import (
    VERSIONS,
    A,
    C,
    D,
    E,
)

_read = reader(ClientCapabilities)
ALL = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}, "context": {}},
    "elicitation": {"form": {}, "url": {}},
}


def client(version: str, declared: dict[str, Any]) -> Peer:
    return Peer(DIALECTS[version], _read(encode(declared)))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("name", "since"),
    [
        ("roots", A),
        ("sampling", A),
        ("sampling.tools", D),
        ("sampling.context", D),
        ("elicitation", C),
        ("elicitation.form", C),
        ("elicitation.url", D),
    ],
)
def test_capability_counts_where_the_revision_has_it(version: str, name: str, since: str) -> None:
    assert can_answer(name, client(version, ALL)) is (version >= since)
    assert not can_answer(name, client(version, {}))


@pytest.mark.parametrize("version", [D, E])
@pytest.mark.parametrize(
    ("declared", "form", "url"),
    [
        ({}, True, False),
        ({"form": {}}, True, False),
        ({"url": {}}, False, True),
        ({"form": {}, "url": {}}, True, True),
    ],
)
def test_elicitation_without_modes_means_forms(
    version: str, declared: dict[str, Any], form: bool, url: bool
) -> None:
    peer = client(version, {"elicitation": declared})
    assert can_answer("elicitation", peer)
    assert can_answer("elicitation.form", peer) is form
    assert can_answer("elicitation.url", peer) is url


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("samplign", "did you mean 'sampling'?"),
        ("elicitation.urls", "did you mean 'elicitation.url'?"),
        ("x", "there are elicitation, elicitation.form, "),
    ],
)
def test_unknown_capability_raises_with_a_similar_name(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match="no capability") as caught:
        can_answer(name, client(E, ALL))
    assert hint in str(caught.value)
