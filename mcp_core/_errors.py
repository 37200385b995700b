"""Every exception a user of this library can see, and the JSON-RPC faults behind them.

Rules of this file:

1. There is one base class, `McpTrioError`, so that `except McpTrioError` is always enough.
2. Inside the core a violation is raised as one type, `LocalProtocolError`. Whether it was our caller or the peer who
   caused it is decided at the border: what came off the wire becomes a `RemoteProtocolError` there.
3. A fault is named here and numbered in `_dialects.py`: the same fault has different codes in different revisions.

This file knows nothing of timeouts, processes or sockets; drivers raise the transport errors declared here.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "AuthRequired",
    "CallTimeout",
    "ConnectFailed",
    "ConnectionLost",
    "Fault",
    "LocalProtocolError",
    "McpError",
    "McpTrioError",
    "PeerError",
    "ProtocolError",
    "RemoteProtocolError",
    "ToolError",
]


class Fault(enum.Enum):
    """What can be wrong with a message; `Dialect.codes` gives the JSON-RPC code of each revision."""

    __hash__ = object.__hash__

    PARSE = "parse"
    INVALID_REQUEST = "invalid request"
    METHOD_NOT_FOUND = "method not found"
    INVALID_PARAMS = "invalid params"
    INTERNAL = "internal"
    RESOURCE_NOT_FOUND = "resource not found"
    MISSING_CAPABILITY = "missing capability"
    UNSUPPORTED_VERSION = "unsupported version"
    HEADER_MISMATCH = "header mismatch"
    BUSY = "busy"


class McpTrioError(Exception):
    """The base of every exception raised on purpose by `mcp_core`, `mcp_trio` and `mcp_asyncio_shim`."""


class ProtocolError(McpTrioError):
    """Someone broke the protocol. Only the two subclasses are raised.

    `fault` says what was broken; `data` is what a JSON-RPC error would carry along.
    """

    def __init__(self, message: str, fault: Fault = Fault.INVALID_REQUEST, data: Any = UNSET) -> None:
        super().__init__(message)
        self.fault = fault
        self.data = data


class LocalProtocolError(ProtocolError):
    """Our own side asked for something that the protocol, or what was negotiated, does not allow. Nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The peer sent something that the protocol does not allow."""


class _JsonRpcError(McpTrioError):
    """An error with the three members of a JSON-RPC error object."""

    def __init__(self, code: int, message: str, data: Any = UNSET) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.data = data

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


class PeerError(_JsonRpcError):
    """The peer answered a request with a JSON-RPC error: `code`, `message`, `data` (`UNSET` if it sent none)."""


class McpError(_JsonRpcError):
    """Raised by a request handler: the request is answered with this JSON-RPC error, word for word.

    Codes of your own belong outside -32768..-32000 (specification 2026-07-28, basic/index, Error Codes).
    """


class ToolError(McpTrioError):
    """Raised by a tool: the call ends with `isError: true` and this text, which the model may read and act on."""


class ConnectFailed(McpTrioError):
    """No conversation came about: the server could not be started or reached, or no common revision was found."""


class ConnectionLost(McpTrioError):
    """The conversation ended before the answer came. Whether the peer carried the request out is unknown."""


class CallTimeout(McpTrioError, TimeoutError):
    """No answer within the deadline. The peer was told that the request is cancelled."""


class AuthRequired(McpTrioError):
    """The server wants an access token, or one with more scopes (`scopes`). `challenge` is its `WWW-Authenticate`, "" if it sent
    none."""

    def __init__(self, message: str, scopes: Sequence[str] = (), *, challenge: str = "") -> None:
        super().__init__(message)
        self.scopes = tuple(scopes)
        self.challenge = challenge


def single(exc: BaseException) -> BaseException:
    """The one exception in a group of one, however deep; else the exception itself."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc
