"""Read what a server offers now, for a contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core import Fault, McpTrioError, PeerError
from mcp_core.contract import Contract, ServerOffers, offers_of_lists

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_trio._client import Client

__all__ = ["ChangingLists", "read_contract_of"]

_READINGS: Final = 3


class ChangingLists(McpTrioError):
    """A server's lists changed each time that they were read."""


async def read_contract_of(
    client: Client,
    *,
    capabilities: Any = None,
    resources: bool = False,
    undeclared: bool = False,
    list_tools: Callable[[], Awaitable[list[Any]]] | None = None,
    timeout: float | None = 60.0,
) -> Contract:
    """Return the contract of a connected server, in the revision of the connection.

    The lists are read until two readings are equal, at most three times.

    Args:
        client: the connected client.
        capabilities: what the server declared, if the client's peer was changed since.
        resources: whether resources are part of the contract.
        undeclared: whether a list that the server doesn't have counts as empty, even a declared
            one: such as all lists of a server that declares nothing.
        list_tools: lists the tools, by default `client.list_tools`.
        timeout: seconds for each response, None for no limit.

    Raises:
        ChangingLists: no two readings are equal.
        McpTrioError: a list cannot be read.
    """
    peer = client.peer
    declared = peer.capabilities if capabilities is None else capabilities

    async def read() -> ServerOffers:
        client.clear_cache()
        return offers_of_lists(
            await _read_lists(client, resources, undeclared, list_tools, timeout),
            capabilities=declared,
            instructions=peer.instructions,
        )

    before = await read()
    for _ in range(_READINGS - 1):
        found = await read()
        if found == before:
            name = peer.info.name if peer.info is not None else ""
            return Contract(server=name, offers={peer.dialect.version: found})
        before = found
    raise ChangingLists(
        f"what the server offers changed each of the {_READINGS} times that it was read: a contract"
        " needs a server whose lists stay the same"
    )


async def _read_lists(
    client: Client,
    resources: bool,
    undeclared: bool,
    list_tools: Callable[[], Awaitable[list[Any]]] | None,
    timeout: float | None,
) -> dict[str, list[Any]]:
    declared: Any = client.peer.capabilities
    requests: dict[str, Callable[[], Awaitable[list[Any]]]] = {}
    if declared.tools is not None:
        requests["tools"] = list_tools or (lambda: client.list_tools(timeout=timeout))
    if declared.prompts is not None:
        requests["prompts"] = lambda: client.list_prompts(timeout=timeout)
    if declared.resources is not None:
        requests["resourceTemplates"] = lambda: client.list_resource_templates(timeout=timeout)
        if resources:
            requests["resources"] = lambda: client.list_resources(timeout=timeout)
    found: dict[str, list[Any]] = {"tools": [], "prompts": [], "resourceTemplates": []}
    if resources:
        found["resources"] = []
    for name, request in requests.items():
        try:
            found[name] = await request()
        except PeerError as exc:
            # A server that has resources need not have templates.
            is_unknown = exc.code == client.peer.dialect.codes[Fault.METHOD_NOT_FOUND]
            if not (undeclared or (is_unknown and name == "resourceTemplates")):
                raise
    return found
