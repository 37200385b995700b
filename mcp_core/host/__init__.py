"""Hosts: the configuration files of programs that start servers, read and changed as text.

A function takes the text of a file and returns the changed one. Files are read and written by the
driver.
"""

from __future__ import annotations

from ._canonical_json import canonical_json as canonical_json
from ._canonical_json import digest_json as digest_json
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

__all__ = [
    "CLIENT_FORMATS",
    "ClientFormat",
    "ConfigFileError",
    "ConfigScope",
    "JsonSyntax",
    "Registration",
    "ServerEntry",
    "canonical_json",
    "config_path",
    "describe_registration",
    "digest_json",
    "entry_members",
    "find_replaced",
    "plan_registration",
    "require_tomlkit",
]
