"""A server while it is served: its declarations, the value of its lifespan, and its tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from mcp_core.runtime._service import Service

if TYPE_CHECKING:
    from mcp_core.connection._connection import Connection
    from mcp_core.registry._server import Server
    from mcp_core.runtime._runtime import Runtime

    from ._service import TaskService

__all__ = ["ServedServer"]


class ServedServer(NamedTuple):
    """A server whose lifespan has begun. A driver makes one, for all connections.

    Attributes:
        server: the declarations.
        lifespan: the value of its lifespan.
        tasks: its tasks, None if the driver runs none.
    """

    server: Server
    lifespan: Any = None
    tasks: TaskService | None = None

    def service(self, conn: Connection, runtime: Runtime, *, principal: str = "") -> Service:
        """Return the service of the connection `conn`, which has the runtime `runtime`.

        `principal` is its authenticated user, "" without one.
        """
        return Service(
            self.server, conn, runtime, self.lifespan, principal=principal, tasks=self.tasks
        )
