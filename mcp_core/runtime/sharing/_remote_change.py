"""The argument of a hook on remote changes."""

from __future__ import annotations

from typing import Generic

from mcp_core.registry import Server
from mcp_core.registry._context import L
from mcp_core.sharing import ChangesPublished

__all__ = ["RemoteChange"]


class RemoteChange(Generic[L]):
    """A change at other workers since a hook was last called. The runtime makes it.

    It is made of `change`, for a `server` whose `lifespan` has this value. After an outage, and
    before the server begins to serve, everything counts as changed.

    Attributes:
        server: this worker's server.
        lifespan: its lifespan's value, None if it has none.
        tools: the list of tools has changed.
        prompts: the list of prompts has changed.
        resources: the list of resources has changed.
        uris: the resources whose contents have changed.
        all_uris: the contents of every resource may have changed. `uris` is then empty.
    """

    def __init__(self, server: Server, lifespan: L, change: ChangesPublished) -> None:
        self.server = server
        self.lifespan = lifespan
        self.tools = "tools" in change.lists
        self.prompts = "prompts" in change.lists
        self.resources = "resources" in change.lists
        self.uris = change.uris
        self.all_uris = change.all_uris

    def __repr__(self) -> str:
        lists = [name for name in ("tools", "prompts", "resources") if getattr(self, name)]
        uris = "all URIs" if self.all_uris else f"{len(self.uris)} URIs"
        return f"<RemoteChange of {', '.join([*lists, uris])}>"
