"""Hosts: the configuration files of programs that start servers, read and changed as text.

A function takes the text of a file and returns the changed one. Files are read and written by the
driver.
"""

from __future__ import annotations

from ._errors import ConfigFileError as ConfigFileError
from ._json_edit import JsonSyntax as JsonSyntax
from ._toml_edit import require_tomlkit as require_tomlkit
