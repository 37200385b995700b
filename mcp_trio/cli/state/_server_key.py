"""The key under which a server is found again: a digest, from which no name can be read."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from mcp_core.drivers import server_key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = ["key_of_server"]


def key_of_server(server: str | tuple[str, ...], env: Mapping[str, str], cwd: Path | None) -> str:
    """Return a server's key.

    Args:
        server: the URL, or the words of the command that starts the server.
        env: variables that this command gets in addition to the inherited ones.
        cwd: its working directory, None for the current one.
    """
    if isinstance(server, str):
        return server_key(server)
    directory = os.path.abspath(cwd or ".")  # noqa: PTH100 - `resolve` follows links
    name, *others = server
    program = shutil.which(name, path=env.get("PATH")) or name
    if os.sep in program:
        program = os.path.join(directory, program)  # noqa: PTH118 - keeps `a/../b`
    return server_key((program, *others), directory)
