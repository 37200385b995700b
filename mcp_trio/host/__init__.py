"""Hosts on trio: many servers, from the configuration files that people have, with consent.

`Host` is the whole of it. `ApprovalFile` keeps approvals, `AuditFile` records of calls.
"""

from __future__ import annotations

from mcp_core.host import ApprovalRequired as ApprovalRequired
from mcp_core.host import AuditRecord as AuditRecord
from mcp_core.host import CallDenied as CallDenied
from mcp_core.host import CatalogLimits as CatalogLimits
from mcp_core.host import HostPrompt as HostPrompt
from mcp_core.host import HostResource as HostResource
from mcp_core.host import HostResourceTemplate as HostResourceTemplate
from mcp_core.host import HostTool as HostTool
from mcp_core.host import InvalidApprovals as InvalidApprovals
from mcp_core.host import InvalidConfig as InvalidConfig
from mcp_core.host import NameCollision as NameCollision
from mcp_core.host import ServerStatus as ServerStatus
from mcp_core.host import ServerUnavailable as ServerUnavailable
from mcp_core.host import ToolRule as ToolRule
from mcp_core.host import TooManyCalls as TooManyCalls
from mcp_core.host import UnknownName as UnknownName
from mcp_core.host import describe_definition as describe_definition
from mcp_core.host import describe_definition_change as describe_definition_change
from mcp_core.host import merged_name as merged_name
from mcp_core.host import plain_name as plain_name
from mcp_core.runtime.host import CallAnswer as CallAnswer
from mcp_core.runtime.host import CallQuestion as CallQuestion
from mcp_core.runtime.host import CallVerdict as CallVerdict
from mcp_core.runtime.host import DefinitionsQuestion as DefinitionsQuestion
from mcp_core.runtime.host import HostChange as HostChange
from mcp_core.runtime.host import HostChanges as HostChanges
from mcp_core.runtime.host import HostLimits as HostLimits
from mcp_core.runtime.host import HostOptions as HostOptions
from mcp_core.runtime.host import MemoryApprovals as MemoryApprovals
from mcp_core.runtime.host import ServerQuestion as ServerQuestion
from mcp_core.runtime.host import ServerSource as ServerSource

from ._approval_file import ApprovalFile as ApprovalFile
from ._approval_file import UnsafeApprovals as UnsafeApprovals
from ._audit_file import AuditFile as AuditFile
from ._config_files import ConfigFiles as ConfigFiles
from ._config_files import find_config_files as find_config_files
from ._config_files import single_config_file as single_config_file
from ._host import Host as Host
from ._host import HostConfig as HostConfig

__all__ = [
    "ApprovalFile",
    "ApprovalRequired",
    "AuditFile",
    "AuditRecord",
    "CallAnswer",
    "CallDenied",
    "CallQuestion",
    "CallVerdict",
    "CatalogLimits",
    "ConfigFiles",
    "DefinitionsQuestion",
    "Host",
    "HostChange",
    "HostChanges",
    "HostConfig",
    "HostLimits",
    "HostOptions",
    "HostPrompt",
    "HostResource",
    "HostResourceTemplate",
    "HostTool",
    "InvalidApprovals",
    "InvalidConfig",
    "MemoryApprovals",
    "NameCollision",
    "ServerQuestion",
    "ServerSource",
    "ServerStatus",
    "ServerUnavailable",
    "TooManyCalls",
    "ToolRule",
    "UnknownName",
    "UnsafeApprovals",
    "describe_definition",
    "describe_definition_change",
    "find_config_files",
    "merged_name",
    "plain_name",
    "single_config_file",
]
