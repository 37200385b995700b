"""The Model Context Protocol as a pure state machine: bytes in, events out, no I/O and no clock.

Begin with `Connection`. The protocol's types are in `mcp_core.types`, the declaration of
servers in `mcp_core.registry`, and the parts of clients and servers for drivers in
`mcp_core.runtime`.
"""

from __future__ import annotations

from ._errors import AuthRequired as AuthRequired
from ._errors import CallTimeout as CallTimeout
from ._errors import ConnectFailed as ConnectFailed
from ._errors import ConnectionLost as ConnectionLost
from ._errors import Fault as Fault
from ._errors import InvalidToolResult as InvalidToolResult
from ._errors import LocalProtocolError as LocalProtocolError
from ._errors import McpError as McpError
from ._errors import McpTrioError as McpTrioError
from ._errors import PeerError as PeerError
from ._errors import ProtocolError as ProtocolError
from ._errors import RemoteProtocolError as RemoteProtocolError
from ._errors import RevisionRefused as RevisionRefused
from ._errors import TaskCancelled as TaskCancelled
from ._errors import ToolError as ToolError
from ._errors import UnencodableValue as UnencodableValue
from ._errors import show_public_path
from ._limits import CLIENT_LIMITS as CLIENT_LIMITS
from ._limits import Limits as Limits
from ._limits import Rate as Rate
from ._text import escape_text as escape_text
from ._version import __version__ as __version__
from .protocol.connection._connection import Connection as Connection
from .protocol.connection._pump import Pump as Pump
from .protocol.connection._state import State as State
from .protocol.connection._state import Stats as Stats
from .protocol.input_requests._kinds import FormSchema as FormSchema
from .protocol.messages._events import NEED_DATA as NEED_DATA
from .protocol.messages._events import PAUSED as PAUSED
from .protocol.messages._events import ChangesMissed as ChangesMissed
from .protocol.messages._events import ConnectionClosed as ConnectionClosed
from .protocol.messages._events import ErrorReceived as ErrorReceived
from .protocol.messages._events import Event as Event
from .protocol.messages._events import InputProblem as InputProblem
from .protocol.messages._events import InputRequested as InputRequested
from .protocol.messages._events import MessageRejected as MessageRejected
from .protocol.messages._events import NotificationReceived as NotificationReceived
from .protocol.messages._events import Peer as Peer
from .protocol.messages._events import PeerReady as PeerReady
from .protocol.messages._events import ProgressReceived as ProgressReceived
from .protocol.messages._events import RequestCancelled as RequestCancelled
from .protocol.messages._events import RequestReceived as RequestReceived
from .protocol.messages._events import ResultReceived as ResultReceived
from .protocol.messages._events import TaskCreated as TaskCreated
from .protocol.messages._outbox import MessageKind as MessageKind
from .protocol.messages._outbox import Outgoing as Outgoing
from .protocol.revisions._config import Config as Config
from .protocol.revisions._dialects import ALL as ALL
from .protocol.revisions._dialects import DIALECTS as DIALECTS
from .protocol.revisions._dialects import LATEST as LATEST
from .protocol.revisions._dialects import Dialect as Dialect
from .protocol.revisions._methods import Method as Method
from .protocol.revisions._methods import Role as Role
from .protocol.subscriptions._server import Change as Change

__all__ = [
    "ALL",
    "CLIENT_LIMITS",
    "DIALECTS",
    "LATEST",
    "NEED_DATA",
    "PAUSED",
    "AuthRequired",
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
    "InputProblem",
    "InputRequested",
    "InvalidToolResult",
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
    "RevisionRefused",
    "Role",
    "State",
    "Stats",
    "TaskCancelled",
    "TaskCreated",
    "ToolError",
    "UnencodableValue",
    "__version__",
    "escape_text",
]

show_public_path(__name__, globals())
