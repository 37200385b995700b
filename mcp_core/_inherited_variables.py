"""The variables that each child process gets. See `processes/_child_environment.py`."""

from __future__ import annotations

from typing import Final

__all__ = ["INHERITED_VARIABLES", "MARK_VARIABLE", "WINDOWS_VARIABLES"]

# Each child gets a random mark in it.
MARK_VARIABLE: Final = "MCP_TRIO_CHILD"

# The first six are what the official SDKs pass on. The others have no secrets either: without them
# a server would read text files in the wrong encoding, show times in the wrong zone, or put its
# temporary files where other users can see their names.
INHERITED_VARIABLES: Final[tuple[str, ...]] = (
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TZ",
)
# On Windows these as well. The first twelve are what the official SDKs pass on. The others name
# directories of the system too: programs start the shell by `COMSPEC`, and use the rest to find
# other programs and shared files.
WINDOWS_VARIABLES: Final[tuple[str, ...]] = (
    "APPDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "PATH",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "USERNAME",
    "USERPROFILE",
    "COMSPEC",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "TMP",
    "WINDIR",
)
