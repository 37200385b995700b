"""The contract of a server: which lists are read, how often, and with which errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import trio

from mcp_core import DIALECTS, McpTrioError, PeerError
from mcp_trio.oracle._contract import ChangingLists, read_contract_of

REVISION = "2025-11-25"
UNKNOWN = PeerError(-32601, "no such method")
DECLARED: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}}


class ListedClient:
    """A client whose server declares capabilities, and has lists of names or an error for them."""

    def __init__(self, declared: dict[str, Any], **lists: Any) -> None:
        kinds = ("tools", "prompts", "resources")
        self.peer = SimpleNamespace(
            dialect=DIALECTS[REVISION],
            capabilities=Capabilities(**{kind: declared.get(kind) for kind in kinds}),
            info=SimpleNamespace(name="shop"),
            instructions="Be quick.",
        )
        self._lists = lists
        self.asked: list[tuple[str, Any]] = []
        self.cleared = 0

    def clear_cache(self) -> None:
        self.cleared += 1

    async def _list(self, name: str, key: str, options: dict[str, Any]) -> list[Any]:
        await trio.lowlevel.checkpoint()
        self.asked.append((name, options["timeout"]))
        found = self._lists[name]
        if isinstance(found, Exception):
            raise found
        options["problems"].append(name)
        return [{key: each} for each in found]

    async def list_tools(self, **options: Any) -> list[Any]:
        return await self._list("tools", "name", options)

    async def list_prompts(self, **options: Any) -> list[Any]:
        return await self._list("prompts", "name", options)

    async def list_resources(self, **options: Any) -> list[Any]:
        return await self._list("resources", "uri", options)

    async def list_resource_templates(self, **options: Any) -> list[Any]:
        return await self._list("resourceTemplates", "uriTemplate", options)


class Capabilities(dict[str, Any]):
    """Declared capabilities, which are read as attributes and as decoded JSON."""

    def __getattr__(self, name: str) -> Any:
        return self.get(name)


def full_client() -> ListedClient:
    """Return a client of a server that has all."""
    return ListedClient(
        DECLARED, tools=["a"], prompts=["b"], resources=["r://c"], resourceTemplates=["r://{d}"]
    )


async def test_contract_has_all_declared_lists_without_resources() -> None:
    """They are read twice, and not from a cache, with a timeout of a minute."""
    client: Any = full_client()
    contract = await read_contract_of(client)
    assert (contract.server, contract.scopes, list(contract.offers)) == ("shop", None, [REVISION])
    offers = contract.offers[REVISION]
    assert (offers.instructions, offers.capabilities) == (
        "Be quick.",
        ("prompts", "resources", "tools"),
    )
    assert offers.lists == {
        "tools": [{"name": "a"}],
        "prompts": [{"name": "b"}],
        "resourceTemplates": [{"uriTemplate": "r://{d}"}],
    }
    names = ("tools", "prompts", "resourceTemplates")
    assert client.asked == [(name, 60.0) for name in names] * 2
    assert client.cleared == 2


async def test_contract_has_resources_if_they_are_wanted() -> None:
    problems: list[str] = []
    client: Any = full_client()
    contract = await read_contract_of(
        client, capabilities={"x": {}}, resources=True, timeout=None, problems=problems
    )
    offers = contract.offers[REVISION]
    assert offers.lists["resources"] == [{"uri": "r://c"}]
    assert offers.capabilities == ("x",)
    assert {timeout for _, timeout in client.asked} == {None}
    assert problems == ["tools", "prompts", "resourceTemplates", "resources"] * 2


@pytest.mark.parametrize(
    ("resources", "names"),
    [
        (False, {"tools", "prompts", "resourceTemplates"}),
        (True, {"tools", "prompts", "resourceTemplates", "resources"}),
    ],
)
async def test_lists_that_are_not_declared_are_empty_and_not_read(
    resources: bool, names: set[str]
) -> None:
    client: Any = ListedClient({})
    client.peer.info = None
    contract = await read_contract_of(client, resources=resources)
    assert contract.server == ""
    assert contract.offers[REVISION].lists == {name: [] for name in names}
    assert client.asked == []


async def test_server_with_resources_need_not_have_templates() -> None:
    client: Any = ListedClient({"resources": {}}, resources=["r://c"], resourceTemplates=UNKNOWN)
    contract = await read_contract_of(client, resources=True)
    assert contract.offers[REVISION].lists["resourceTemplates"] == []
    assert contract.offers[REVISION].lists["resources"] == [{"uri": "r://c"}]


@pytest.mark.parametrize(
    ("declared", "lists"),
    [
        ("tools", {"tools": UNKNOWN}),
        ("prompts", {"prompts": PeerError(-32603, "a fault")}),
        ("resources", {"resourceTemplates": PeerError(-32603, "a fault")}),
    ],
)
async def test_list_that_cannot_be_read_is_empty_only_if_it_may_be_undeclared(
    declared: str, lists: dict[str, Any]
) -> None:
    client: Any = ListedClient({declared: {}}, **lists)
    with pytest.raises(PeerError):
        await read_contract_of(client)
    contract = await read_contract_of(client, undeclared=True)
    assert not any(contract.offers[REVISION].lists.values())


async def test_other_error_is_an_error_for_undeclared_lists_too() -> None:
    client: Any = ListedClient({"tools": {}}, tools=McpTrioError("lost"))
    with pytest.raises(McpTrioError, match="lost"):
        await read_contract_of(client, undeclared=True)


@pytest.mark.parametrize(
    ("readings", "found"),
    [("aab", "a"), ("abb", "b"), ("aba", None), ("abcc", None)],
)
async def test_lists_are_read_until_they_are_equal_and_three_times_at_most(
    readings: str, found: str | None
) -> None:
    """Each letter is the only tool in a reading, and the rest isn't read."""
    rest = iter(readings)

    async def list_tools() -> list[Any]:
        await trio.lowlevel.checkpoint()
        return [{"name": next(rest)}]

    client: Any = full_client()
    if found is None:
        with pytest.raises(ChangingLists, match="changed each of the 3 times that it was read"):
            await read_contract_of(client, list_tools=list_tools)
        assert "".join(rest) == readings[3:]
    else:
        contract = await read_contract_of(client, list_tools=list_tools)
        assert contract.offers[REVISION].lists["tools"] == [{"name": found}]
        assert "".join(rest) == readings[readings.index(found * 2) + 2 :]
