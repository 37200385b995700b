"""Hosts: the configuration files of programs that start servers, read and changed as text.

A function takes the content of a file, and returns what it says or the changed text. Files are read
and written by the driver.
"""

from __future__ import annotations

from ._clients import CLIENT_FORMATS as CLIENT_FORMATS
from ._clients import ClientFormat as ClientFormat
from ._clients import ConfigScope as ConfigScope
from ._clients import ServerEntry as ServerEntry
from ._clients import config_path as config_path
from ._clients import entry_members as entry_members
from ._clients import find_replaced as find_replaced
from ._errors import ConfigFileError as ConfigFileError
from ._json_edit import JsonSyntax as JsonSyntax
from ._registration import Registration as Registration
from ._registration import describe_registration as describe_registration
from ._registration import plan_registration as plan_registration
from ._toml_edit import require_tomlkit as require_tomlkit
from .config._policy import PolicyEntry as PolicyEntry
from .config._policy import ServerPolicy as ServerPolicy
from .config._policy import find_denial as find_denial
from .config._policy import read_policy as read_policy
from .config._problems import ConfigPlace as ConfigPlace
from .config._problems import ConfigProblem as ConfigProblem
from .config._problems import InvalidConfig as InvalidConfig
from .config._read import find_config_format as find_config_format
from .config._read import read_config as read_config
from .config._scopes import MergedServers as MergedServers
from .config._scopes import OmittedServer as OmittedServer
from .config._scopes import ScopedServer as ScopedServer
from .config._scopes import ServerScope as ServerScope
from .config._scopes import merge_servers as merge_servers
from .config._servers import ConfigFile as ConfigFile
from .config._servers import ConfigInput as ConfigInput
from .config._servers import ServerConfig as ServerConfig
from .config._servers import ServerTransport as ServerTransport
from .config._servers import VariableSyntax as VariableSyntax
from .config._variables import ConfigVariables as ConfigVariables
from .config._variables import ExpandedServer as ExpandedServer
from .config._variables import VariableKind as VariableKind
from .config._variables import VariableUse as VariableUse
from .config._variables import expand_server as expand_server
from .config._variables import find_variables as find_variables

__all__ = [
    "CLIENT_FORMATS",
    "ClientFormat",
    "ConfigFile",
    "ConfigFileError",
    "ConfigInput",
    "ConfigPlace",
    "ConfigProblem",
    "ConfigScope",
    "ConfigVariables",
    "ExpandedServer",
    "InvalidConfig",
    "JsonSyntax",
    "MergedServers",
    "OmittedServer",
    "PolicyEntry",
    "Registration",
    "ScopedServer",
    "ServerConfig",
    "ServerEntry",
    "ServerPolicy",
    "ServerScope",
    "ServerTransport",
    "VariableKind",
    "VariableSyntax",
    "VariableUse",
    "config_path",
    "describe_registration",
    "entry_members",
    "expand_server",
    "find_config_format",
    "find_denial",
    "find_replaced",
    "find_variables",
    "merge_servers",
    "plan_registration",
    "read_config",
    "read_policy",
    "require_tomlkit",
]
