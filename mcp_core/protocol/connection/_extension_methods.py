"""Methods of an extension, which MCP doesn't define: who may send them, and who receives them.

MCP says of extensions only how they are declared (2026-07-28, basic/index), not which methods they
have. So a side that sends or receives such a method has to declare some extension, and a request
also needs an extension that both sides have declared. A notification needs none of its receiver, as
MCP's own don't: a receiver that doesn't know it ignores it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mcp_core import types as t
from mcp_core._errors import Fault, LocalProtocolError, McpError
from mcp_core.protocol.revisions._methods import METHODS, TASKS, Method, Role

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcp_core.protocol.messages._events import Peer
    from mcp_core.protocol.revisions._config import Config

__all__ = ["check_extension_method", "check_extension_request", "client_methods"]

_DEFINED: Final = frozenset(row.name for row in METHODS)


def check_extension_method(method: str, config: Config) -> None:
    """Check that `method` may be sent as one of an extension.

    Raises:
        LocalProtocolError: MCP defines it, or `config` declares no extension.
    """
    if method in _DEFINED:
        raise LocalProtocolError(f"{method} is a method of MCP, which has a function of its own")
    if not _extensions(config.capabilities):
        raise LocalProtocolError(
            f"{method} isn't a method of MCP: declare the extension that has it, as in"
            ' extensions={"com.example/thing": {}}'
        )


def check_extension_request(method: str, peer: Peer, config: Config) -> None:
    """Check that a server may send the request `method` to the client `peer`.

    Raises:
        LocalProtocolError: MCP defines it, `config` declares no extension, or a server of this
            revision sends no requests.
        McpError: the client declared none of the extensions in `config`.
    """
    check_extension_method(method, config)
    dialect = peer.dialect
    if not dialect.stateful:
        raise LocalProtocolError(
            f"a server sends no requests in revision {dialect.version}, so {method} cannot be asked"
        )
    ours = _extensions(config.capabilities)
    if not ours & _extensions(peer.capabilities):
        text = f"{method} needs a client that declares {' or '.join(sorted(ours))}"
        raise McpError(dialect.codes[Fault.MISSING_CAPABILITY], text)


def client_methods(
    requests: Iterable[str], notifications: Iterable[str], extensions: Iterable[str]
) -> list[Method]:
    """Return the rows of the methods that a client has callbacks for. Their params are dicts.

    Args:
        requests: the methods of requests.
        notifications: the methods of notifications.
        extensions: the extensions that the client declares.

    Raises:
        ValueError: a name is empty, MCP defines one of the methods, it is a request and a
            notification, or there is no extension.
    """
    rows = [Method(name, Role.CLIENT, dict, t.Result) for name in requests]  # type: ignore[arg-type]
    rows += [Method(name, Role.CLIENT, dict) for name in notifications]  # type: ignore[arg-type]
    names = [row.name for row in rows]
    for name in names:
        if not name:
            raise ValueError("on_request and on_notification have no method with an empty name")
        if name in _DEFINED:
            raise ValueError(
                f"{name} is a method of MCP: on_request and on_notification are for those of"
                " extensions, and each of MCP's has an option, such as on_elicit and on_log"
            )
        if names.count(name) > 1:
            raise ValueError(f"{name} has a callback in on_request and one in on_notification")
    if rows and not tuple(extensions):
        raise ValueError(
            f"{names[0]} isn't a method of MCP: declare the extension that has it, as in"
            ' extensions={"com.example/thing": {}}'
        )
    return rows


def _extensions(capabilities: t.ClientCapabilities | t.ServerCapabilities) -> set[str]:
    """Return the identifiers of the declared extensions, as far as they have no part in MCP."""
    declared = {*(capabilities.extensions or ()), *(capabilities.experimental or ())}
    return declared - {TASKS[-1]}
