"""The Model Context Protocol as a pure state machine: bytes in, facts out; nothing here does I/O or reads a clock.

Begin with `Connection`. Shapes of the protocol are in `mcp_core.types`, authoring of servers in `mcp_core.registry`, and what a
driver builds clients and servers of in `mcp_core.runtime`.
"""

from __future__ import annotations

from mcp_core.connection._connection import Connection
from mcp_core.connection._pump import Pump
from mcp_core.connection._state import State, Stats
from mcp_core.input_requests._kinds import FormSchema
from mcp_core.messages._events import (
    NEED_DATA,
    PAUSED,
    ChangesMissed,
    ConnectionClosed,
    ErrorReceived,
    Event,
    InputRequested,
    MessageRejected,
    NotificationReceived,
    Peer,
    PeerReady,
    ProgressReceived,
    RequestCancelled,
    RequestReceived,
    ResultReceived,
)
from mcp_core.messages._outbox import MessageKind, Outgoing
from mcp_core.revisions._config import Config
from mcp_core.revisions._dialects import ALL, DIALECTS, LATEST, Dialect
from mcp_core.revisions._methods import METHODS, Method, Role
from mcp_core.subscriptions._server import Change

from ._errors import (
    AuthRequired,
    CallTimeout,
    ConnectFailed,
    ConnectionLost,
    Fault,
    LocalProtocolError,
    McpError,
    McpTrioError,
    PeerError,
    ProtocolError,
    RemoteProtocolError,
    ToolError,
)
from ._limits import CLIENT_LIMITS, Bucket, Limits, Rate
from ._version import __version__

__all__ = [
    "ALL",
    "CLIENT_LIMITS",
    "DIALECTS",
    "LATEST",
    "METHODS",
    "NEED_DATA",
    "PAUSED",
    "AuthRequired",
    "Bucket",
    "CallTimeout",
    "Change",
    "ChangesMissed",
    "Config",
    "ConnectFailed",
    "Connection",
    "ConnectionClosed",
    "ConnectionLost",
    "Dialect",
    "ErrorReceived",
    "Event",
    "Fault",
    "FormSchema",
    "InputRequested",
    "Limits",
    "LocalProtocolError",
    "McpError",
    "McpTrioError",
    "MessageKind",
    "MessageRejected",
    "Method",
    "NotificationReceived",
    "Outgoing",
    "Peer",
    "PeerError",
    "PeerReady",
    "ProgressReceived",
    "ProtocolError",
    "Pump",
    "Rate",
    "RemoteProtocolError",
    "RequestCancelled",
    "RequestReceived",
    "ResultReceived",
    "Role",
    "State",
    "Stats",
    "ToolError",
    "__version__",
]
