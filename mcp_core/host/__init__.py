"""Hosts: the programs that start servers, their configuration files and their decisions.

1. A configuration file is read as values, and changed as text. Files are read and written by the
   driver.
2. For a host with many servers: merged names, pins of definitions, approvals, the states of a
   server, and records of calls. Each is a decision about values: time is an argument.
"""

from __future__ import annotations

from mcp_core._secret_patterns import is_secret_name as is_secret_name

from ._approvals import ApprovalRequired as ApprovalRequired
from ._approvals import Approvals as Approvals
from ._approvals import ApprovalState as ApprovalState
from ._approvals import CallDecision as CallDecision
from ._approvals import InvalidApprovals as InvalidApprovals
from ._approvals import RuleLifetime as RuleLifetime
from ._approvals import ServerApproval as ServerApproval
from ._approvals import ToolRule as ToolRule
from ._approvals import approval_state as approval_state
from ._approvals import decide_call as decide_call
from ._approvals import decode_approvals as decode_approvals
from ._approvals import encode_approvals as encode_approvals
from ._audit import AuditRecord as AuditRecord
from ._audit import CallOutcome as CallOutcome
from ._audit import digest_arguments as digest_arguments
from ._audit import encode_audit_record as encode_audit_record
from ._audit import redact_arguments as redact_arguments
from ._canonical_json import canonical_json as canonical_json
from ._canonical_json import digest_json as digest_json
from ._definition_warnings import DefinitionWarning as DefinitionWarning
from ._definition_warnings import ToolNames as ToolNames
from ._definition_warnings import WarningKind as WarningKind
from ._definition_warnings import find_warnings as find_warnings
from ._errors import CallDenied as CallDenied
from ._errors import ConfigFileError as ConfigFileError
from ._errors import ServerUnavailable as ServerUnavailable
from ._errors import TooManyCalls as TooManyCalls
from ._errors import UnknownName as UnknownName
from ._launch import LaunchInput as LaunchInput
from ._launch import LaunchLine as LaunchLine
from ._launch import ServerLaunch as ServerLaunch
from ._launch import describe_launch as describe_launch
from ._launch import digest_launch as digest_launch
from ._launch import find_excess as find_excess
from ._launch import make_launch as make_launch
from ._names import MAX_NAME_LENGTH as MAX_NAME_LENGTH
from ._names import NameCollision as NameCollision
from ._names import NameScheme as NameScheme
from ._names import NameTable as NameTable
from ._names import QualifiedName as QualifiedName
from ._names import ResourceTable as ResourceTable
from ._names import fit_name as fit_name
from ._names import merged_name as merged_name
from ._names import merged_prefix as merged_prefix
from ._names import plain_name as plain_name
from ._names import read_resource_label as read_resource_label
from ._names import resource_label as resource_label
from ._pins import Definition as Definition
from ._pins import DefinitionKind as DefinitionKind
from ._pins import PinComparison as PinComparison
from ._pins import PinState as PinState
from ._pins import compare_pins as compare_pins
from ._pins import define as define
from ._pins import describe_definition as describe_definition
from ._pins import describe_definition_change as describe_definition_change
from ._pins import replace_pins as replace_pins
from ._supervision import SERVER_TRANSITIONS as SERVER_TRANSITIONS
from ._supervision import CatalogList as CatalogList
from ._supervision import ListProblem as ListProblem
from ._supervision import ServerEvent as ServerEvent
from ._supervision import ServerState as ServerState
from ._supervision import ServerStatus as ServerStatus
from ._supervision import ServerSupervisor as ServerSupervisor
from .catalog._merged import HostCatalog as HostCatalog
from .catalog._merged import HostPrompt as HostPrompt
from .catalog._merged import HostResource as HostResource
from .catalog._merged import HostResourceTemplate as HostResourceTemplate
from .catalog._merged import HostTool as HostTool
from .catalog._server import CatalogLimits as CatalogLimits
from .catalog._server import ServerCatalog as ServerCatalog
from .config._env_file import parse_env_file as parse_env_file
from .config._import import ImportedServer as ImportedServer
from .config._import import LiteralSecret as LiteralSecret
from .config._import import import_servers as import_servers
from .config._policy import PolicyEntry as PolicyEntry
from .config._policy import ServerPolicy as ServerPolicy
from .config._policy import find_denial as find_denial
from .config._policy import read_policy as read_policy
from .config._problems import ConfigPlace as ConfigPlace
from .config._problems import ConfigProblem as ConfigProblem
from .config._problems import InvalidConfig as InvalidConfig
from .config._read import find_config_format as find_config_format
from .config._read import format_to_edit as format_to_edit
from .config._read import read_config as read_config
from .config._read import read_entry as read_entry
from .config._scopes import MergedServers as MergedServers
from .config._scopes import OmittedServer as OmittedServer
from .config._scopes import ScopedServer as ScopedServer
from .config._scopes import ServerScope as ServerScope
from .config._scopes import merge_servers as merge_servers
from .config._servers import ConfigFile as ConfigFile
from .config._servers import ConfigInput as ConfigInput
from .config._servers import ServerConfig as ServerConfig
from .config._servers import VariableSyntax as VariableSyntax
from .config._variables import ConfigVariables as ConfigVariables
from .config._variables import ExpandedServer as ExpandedServer
from .config._variables import VariableKind as VariableKind
from .config._variables import VariableUse as VariableUse
from .config._variables import expand_server as expand_server
from .config._variables import find_variables as find_variables
from .edit._changes import MemberChange as MemberChange
from .edit._changes import describe_change as describe_change
from .edit._changes import hide_values as hide_values
from .edit._clients import CLIENT_FORMATS as CLIENT_FORMATS
from .edit._clients import ClientFormat as ClientFormat
from .edit._clients import ConfigScope as ConfigScope
from .edit._clients import ServerEntry as ServerEntry
from .edit._clients import ServerTransport as ServerTransport
from .edit._clients import config_path as config_path
from .edit._clients import entry_members as entry_members
from .edit._clients import find_replaced as find_replaced
from .edit._entries import find_entry_line as find_entry_line
from .edit._entries import plan_disabling as plan_disabling
from .edit._entries import plan_enabling as plan_enabling
from .edit._entries import plan_entry as plan_entry
from .edit._entries import plan_removal as plan_removal
from .edit._json_edit import JsonSyntax as JsonSyntax
from .edit._registration import plan_registration as plan_registration
from .edit._registration import replaces_another as replaces_another
from .edit._toml_edit import require_tomlkit as require_tomlkit

__all__ = [
    "CLIENT_FORMATS",
    "MAX_NAME_LENGTH",
    "SERVER_TRANSITIONS",
    "ApprovalRequired",
    "ApprovalState",
    "Approvals",
    "AuditRecord",
    "CallDecision",
    "CallDenied",
    "CallOutcome",
    "CatalogLimits",
    "CatalogList",
    "ClientFormat",
    "ConfigFile",
    "ConfigFileError",
    "ConfigInput",
    "ConfigPlace",
    "ConfigProblem",
    "ConfigScope",
    "ConfigVariables",
    "Definition",
    "DefinitionKind",
    "DefinitionWarning",
    "ExpandedServer",
    "HostCatalog",
    "HostPrompt",
    "HostResource",
    "HostResourceTemplate",
    "HostTool",
    "ImportedServer",
    "InvalidApprovals",
    "InvalidConfig",
    "JsonSyntax",
    "LaunchInput",
    "LaunchLine",
    "ListProblem",
    "LiteralSecret",
    "MemberChange",
    "MergedServers",
    "NameCollision",
    "NameScheme",
    "NameTable",
    "OmittedServer",
    "PinComparison",
    "PinState",
    "PolicyEntry",
    "QualifiedName",
    "ResourceTable",
    "RuleLifetime",
    "ScopedServer",
    "ServerApproval",
    "ServerCatalog",
    "ServerConfig",
    "ServerEntry",
    "ServerEvent",
    "ServerLaunch",
    "ServerPolicy",
    "ServerScope",
    "ServerState",
    "ServerStatus",
    "ServerSupervisor",
    "ServerTransport",
    "ServerUnavailable",
    "TooManyCalls",
    "ToolNames",
    "ToolRule",
    "UnknownName",
    "VariableKind",
    "VariableSyntax",
    "VariableUse",
    "WarningKind",
    "approval_state",
    "canonical_json",
    "compare_pins",
    "config_path",
    "decide_call",
    "decode_approvals",
    "define",
    "describe_change",
    "describe_definition",
    "describe_definition_change",
    "describe_launch",
    "digest_arguments",
    "digest_json",
    "digest_launch",
    "encode_approvals",
    "encode_audit_record",
    "entry_members",
    "expand_server",
    "find_config_format",
    "find_denial",
    "find_entry_line",
    "find_excess",
    "find_replaced",
    "find_variables",
    "find_warnings",
    "fit_name",
    "format_to_edit",
    "hide_values",
    "import_servers",
    "is_secret_name",
    "make_launch",
    "merge_servers",
    "merged_name",
    "merged_prefix",
    "parse_env_file",
    "plain_name",
    "plan_disabling",
    "plan_enabling",
    "plan_entry",
    "plan_registration",
    "plan_removal",
    "read_config",
    "read_entry",
    "read_policy",
    "read_resource_label",
    "redact_arguments",
    "replace_pins",
    "replaces_another",
    "require_tomlkit",
    "resource_label",
]
