"""Hosts for any runtime: many servers, their approval, and calls of what they offer.

A driver subclasses `AbstractHost`, and adds a `HostRuntime` and a `ServerSource` for each kind of
server.
"""

from __future__ import annotations

from ._changes import HostChange as HostChange
from ._changes import HostChangeKind as HostChangeKind
from ._changes import HostChanges as HostChanges
from ._host import AbstractHost as AbstractHost
from ._options import ApprovalStore as ApprovalStore
from ._options import HostLimits as HostLimits
from ._options import HostOptions as HostOptions
from ._options import MemoryApprovals as MemoryApprovals
from ._questions import CallAnswer as CallAnswer
from ._questions import CallQuestion as CallQuestion
from ._questions import CallVerdict as CallVerdict
from ._questions import DefinitionsQuestion as DefinitionsQuestion
from ._questions import ServerQuestion as ServerQuestion
from ._runtime import HostRuntime as HostRuntime
from ._source import ClientConnection as ClientConnection
from ._source import ServerSource as ServerSource
from ._targets import EntrySource as EntrySource
from ._targets import check_target as check_target
from ._targets import target_secrets as target_secrets

__all__ = [
    "AbstractHost",
    "ApprovalStore",
    "CallAnswer",
    "CallQuestion",
    "CallVerdict",
    "ClientConnection",
    "DefinitionsQuestion",
    "EntrySource",
    "HostChange",
    "HostChangeKind",
    "HostChanges",
    "HostLimits",
    "HostOptions",
    "HostRuntime",
    "MemoryApprovals",
    "ServerQuestion",
    "ServerSource",
    "check_target",
    "target_secrets",
]
