"""Read what a server offers now, for a contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core import Fault, McpTrioError, PeerError
from mcp_core.contract import Contract, ServerOffers, offers_of_lists

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_core.drivers import CallOptions
    from mcp_trio._client import Client

__all__ = ["ChangingLists", "read_contract_of", "read_scopes"]

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
    problems: list[str] | None = None,
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
        problems: a list to which what could not be read is appended, and isn't in the contract.

    Raises:
        ChangingLists: no two readings are equal.
        McpTrioError: a list cannot be read.
    """
    peer = client.peer
    declared = peer.capabilities if capabilities is None else capabilities

    options: CallOptions = {"timeout": timeout, "problems": [] if problems is None else problems}

    async def read() -> ServerOffers:
        client.clear_cache()
        return offers_of_lists(
            await _read_lists(client, resources, undeclared, list_tools, options),
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


async def read_scopes(url: str) -> tuple[str, ...]:
    """Return the scopes in the metadata of the MCP server at `url`; () if it publishes none.

    No token is sent. Each request is to the server's own origin, which the user has named.

    Raises:
        AuthorizationFailed: there is a document that must not be used, or a fetch failed.
    """
    from mcp_core.auth import find_supported_scopes
    from mcp_trio.auth._discovery import run_fetches
    from mcp_trio.auth._fetch import fetch

    found = await run_fetches(
        find_supported_scopes(url),
        lambda step: fetch(step.request, allow=_any, allow_name=_any),
    )
    return found or ()


def _any(address: str) -> bool:
    return True


async def _read_lists(
    client: Client,
    resources: bool,
    undeclared: bool,
    list_tools: Callable[[], Awaitable[list[Any]]] | None,
    options: CallOptions,
) -> dict[str, list[Any]]:
    declared: Any = client.peer.capabilities
    requests: dict[str, Callable[[], Awaitable[list[Any]]]] = {}
    if declared.tools is not None:
        requests["tools"] = list_tools or (lambda: client.list_tools(**options))
    if declared.prompts is not None:
        requests["prompts"] = lambda: client.list_prompts(**options)
    if declared.resources is not None:
        requests["resourceTemplates"] = lambda: client.list_resource_templates(**options)
        if resources:
            requests["resources"] = lambda: client.list_resources(**options)
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
