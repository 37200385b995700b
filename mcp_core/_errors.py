"""The exceptions that users of this library can see, and the JSON-RPC faults behind them.

1. All derive from `McpTrioError`, so `except McpTrioError` catches everything raised on purpose.
2. Inside the core every violation is raised as `LocalProtocolError`. If a received message caused
   it, the connection converts it to a `RemoteProtocolError`.
3. A fault has a name here and its number in `_dialects.py`, because the same fault has different
   codes in different revisions.

Drivers raise the transport errors that are declared here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import UNSET

__all__ = [
    "AuthRequired",
    "CallTimeout",
    "ConnectFailed",
    "ConnectionLost",
    "Fault",
    "InvalidToolResult",
    "LocalProtocolError",
    "McpError",
    "McpTrioError",
    "PeerError",
    "ProtocolError",
    "RemoteProtocolError",
    "TaskCancelled",
    "ToolError",
    "UnencodableValue",
]


class Fault(enum.Enum):
    """The ways in which a message can be wrong. `Dialect.codes` maps each to a JSON-RPC code."""

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
    """The base class of all exceptions that these packages raise on purpose."""


class ProtocolError(McpTrioError):
    """A protocol violation. Only the two subclasses are raised.

    Args:
        message: the exception's text, also used in the JSON-RPC error that reports it.
        fault: the kind of violation, which determines the code of that error.
        data: the `data` member of that error, `UNSET` for none.
    """

    def __init__(
        self, message: str, fault: Fault = Fault.INVALID_REQUEST, data: Any = UNSET
    ) -> None:
        super().__init__(message)
        self.fault = fault
        self.data = data


class LocalProtocolError(ProtocolError):
    """A call that the protocol or the negotiated capabilities don't allow. Nothing was sent."""


class UnencodableValue(LocalProtocolError, ValueError):
    """A value that JSON cannot hold: NaN, an infinity, or half of a surrogate pair.

    The text has the path to it. Nothing was sent (RFC 8259, sections 6 and 8.2).
    """


class RemoteProtocolError(ProtocolError):
    """A message from the peer that the protocol doesn't allow."""


class InvalidToolResult(RemoteProtocolError):
    """A tool's result that doesn't fit the tool's output schema. The tool has run.

    The option `check_output` decides whether it is raised. Do not repeat the call because of it.

    Args:
        problem: what doesn't fit, with the tool's name.
        result: the result as it arrived, a `types.CallToolResult`.
    """

    def __init__(self, problem: str, result: Any) -> None:
        super().__init__(problem)
        self.problem = problem
        self.result = result

    def __reduce__(self) -> tuple[type[InvalidToolResult], tuple[str, Any]]:
        return type(self), (self.problem, self.result)


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
    """A JSON-RPC error response to our request.

    `code`, `message` and `data` are the error object's members; `data` is `UNSET` if the peer sent
    none.
    """


class TaskCancelled(PeerError):
    """The task as which the server ran our call was cancelled, so it has no result."""


class McpError(_JsonRpcError):
    """An error that a request handler raises. It is sent unchanged as the JSON-RPC error response.

    Args:
        code: the JSON-RPC error code. Choose codes of your own outside -32768..-32000 (2026-07-28,
            basic/index, Error Codes).
        message: one sentence on what went wrong, for people.
        data: details for programs, any JSON value; `UNSET` for none.
    """


class ToolError(McpTrioError):
    """An error that a tool raises. The result then has `isError: true` and this text.

    The model can read the text and act on it. On the client, `CallToolResult.raise_for_error`
    raises it.
    """


class ConnectFailed(McpTrioError):
    """The server could not be started or reached, or there is no common revision."""


class RevisionRefused(ConnectFailed):
    """The server answered, and its answer says that it speaks none of the revisions offered."""


class ConnectionLost(McpTrioError):
    """The connection ended before the response. It is unknown whether the peer ran the request."""


class CallTimeout(McpTrioError, TimeoutError):
    """No response arrived before the deadline. The request was cancelled, and the peer notified."""


class AuthRequired(McpTrioError):
    """The server requires an access token, or one with more scopes.

    Args:
        message: the exception's text: what the server requires, and what to do.
        scopes: the scopes that it requires, empty if it did not say.
        challenge: the value of its `WWW-Authenticate` header, "" if it sent none (RFC 9110,
            section 11.6.1).
    """

    def __init__(self, message: str, scopes: Sequence[str] = (), *, challenge: str = "") -> None:
        super().__init__(message)
        self.scopes = tuple(scopes)
        self.challenge = challenge


def show_public_path(package: str, names: Mapping[str, object]) -> None:
    """Set `__module__` of exceptions to `package`, which exports them, for tracebacks.

    `names` are the package's names; a name with a public module already is left unchanged. Only
    exceptions: of other classes `inspect.getsource` and `typing.get_type_hints` need the module in
    which they are written. An exception is pickled by its public path then, which is as stable.
    """
    for value in names.values():
        if isinstance(value, type) and issubclass(value, Exception) and "._" in value.__module__:
            value.__module__ = package


def single(exc: BaseException) -> BaseException:
    """Return the only exception of a group of one, at any depth, else `exc` itself."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc
