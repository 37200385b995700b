"""Contracts of two versions each of three published servers, and what broke between them.

The files are what `mcp-trio inspect --save` wrote for the npm packages `server-filesystem`,
`server-memory` and `server-everything` of `@modelcontextprotocol`, without their texts.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from msgspec import structs

from mcp_core.contract import Contract, compare_contracts, encode_contract, read_contract

PUBLISHED: Final = Path(__file__).parent / "published"
CLOSED: Final = "accepts no other members now"
GONE: Final = "is gone"

# By server and its two versions: the breaking changes.
BREAKING: dict[tuple[str, str, str], set[tuple[str, str]]] = {
    ("filesystem", "2025.7.1", "2026.8.31"): {
        ("tool read_multiple_files, input paths", "has a narrower minItems: none → 1"),
    },
    # Its schemas permitted other members until they were made by another library.
    ("memory", "2025.4.25", "2026.8.31"): {
        ("tool add_observations, input", CLOSED),
        ("tool add_observations, input observations[]", CLOSED),
        ("tool create_entities, input", CLOSED),
        ("tool create_entities, input entities[]", CLOSED),
        ("tool create_relations, input", CLOSED),
        ("tool create_relations, input relations[]", CLOSED),
        ("tool delete_entities, input", CLOSED),
        ("tool delete_observations, input", CLOSED),
        ("tool delete_observations, input deletions[]", CLOSED),
        ("tool delete_relations, input", CLOSED),
        ("tool delete_relations, input relations[]", CLOSED),
        ("tool open_nodes, input", CLOSED),
        ("tool search_nodes, input", CLOSED),
    },
    # Nearly all its tools and prompts have other names.
    ("everything", "2025.9.25", "2026.8.31"): {
        ("prompt complex_prompt", GONE),
        ("prompt resource_prompt", GONE),
        ("prompt simple_prompt", GONE),
        ("resource template test://static/resource/{id}", GONE),
        ("tool add", GONE),
        ("tool annotatedMessage", GONE),
        ("tool getResourceLinks", GONE),
        ("tool getResourceReference", GONE),
        ("tool getTinyImage", GONE),
        ("tool longRunningOperation", GONE),
        ("tool printEnv", GONE),
        ("tool sampleLLM", GONE),
        ("tool structuredContent", GONE),
    },
}


def load(server: str, version: str) -> Contract:
    """Return a contract, under one name for its revision: those of memory have two."""
    contract = read_contract((PUBLISHED / f"{server}-{version}.json").read_bytes())
    [offers] = contract.offers.values()
    return structs.replace(contract, offers={"": offers})


@pytest.mark.parametrize("versions", BREAKING)
def test_breaking_changes_between_versions_are_found(versions: tuple[str, str, str]) -> None:
    server, old, new = versions
    changes = compare_contracts(load(server, old), load(server, new))
    found = {
        (f"{each.what}, {each.place}" if each.place else each.what, each.sentence)
        for each in changes
        if each.verdict == "breaking"
    }
    assert found == BREAKING[versions]
    assert not [each for each in changes if each.verdict == "unclear"]


@pytest.mark.parametrize("path", sorted(PUBLISHED.glob("*.json")), ids=lambda path: path.stem)
def test_contract_of_published_server_is_equal_to_itself(path: Path) -> None:
    contract = read_contract(path.read_bytes())
    assert compare_contracts(contract, contract) == []
    assert encode_contract(contract) == path.read_bytes()
