"""One server of a host, as a driver describes it: how it is approved and connected to."""

from __future__ import annotations

import abc
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

from mcp_core.client._options import ClientConfigOptions
from mcp_core.host._launch import ServerLaunch
from mcp_core.host.config._servers import ConfigInput
from mcp_core.runtime._client import AbstractClient

__all__ = ["ClientConnection", "ServerSource"]

# A context manager: entering it connects; leaving it closes the connection and ends the server.
ClientConnection: TypeAlias = AbstractAsyncContextManager[AbstractClient]


class ServerSource(abc.ABC):
    """A server of a host, before it is connected to.

    Attributes:
        name: its name in the host.
        file: the absolute path of the configuration file, "" for a server of the program.
        is_disabled: True if its configuration turns it off.
        needs_approval: True if the user has to approve its launch: it is of a project's file.
        needs_pins: False if it runs in this process, as a part of the program.
        is_trusted: True if a tool's annotations decide whether the user is asked about its calls.
            The server then comes from the program or the user's own files, and its entry doesn't
            demand a question about each call.
        replaces: files of more trusted scopes, with their scopes, whose server of this name it
            replaces.
        connect_timeout: the seconds of its configuration to connect in, or None.
        call_timeout: the seconds of its configuration for a call without a response or progress,
            or None.
        secrets: texts of its configuration that must not be recorded, or shown in the reason of its
            state. Known before it is connected to.
    """

    name: str
    file: str = ""
    is_disabled = False
    needs_approval = False
    needs_pins = True
    is_trusted = True
    replaces: tuple[str, ...] = ()
    connect_timeout: float | None = None
    call_timeout: float | None = None
    secrets: frozenset[str] = frozenset()

    def prepare(self) -> ServerLaunch | None:
        """Find what would be run or connected to, or return None if no approval is needed.

        It may block: it is called in a worker thread, also while a connection is being made.

        Raises:
            McpTrioError, OSError: it cannot be started as it is configured.
        """
        return None

    def inputs(self) -> Mapping[str, ConfigInput]:
        """Return the inputs that `connect` needs, by id."""
        return {}

    def find_tool_denial(self, tool: str) -> str | None:
        """Return why its configuration doesn't let a tool be used, as a phrase, or None.

        Such a tool is in no list of the host, isn't approved, and cannot be called.

        Args:
            tool: the tool's name at the server.
        """
        return None

    @abc.abstractmethod
    def connect(
        self,
        options: ClientConfigOptions,
        inputs: Mapping[str, str],
        launch: ServerLaunch | None,
    ) -> ClientConnection:
        """Return the context manager that connects.

        Args:
            options: the client's options.
            inputs: what the user has entered, by the input's id.
            launch: what `prepare` has returned and the user has approved, if `needs_approval`, else
                None. This, and nothing that is found later, is to be run or connected to.

        Raises:
            McpTrioError, OSError: it cannot be started as it is configured.
        """

    @abc.abstractmethod
    def same_as(self, other: Any) -> bool:
        """Return True if `other` is a source for the same server, configured in the same way."""
