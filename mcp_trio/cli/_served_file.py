"""The command that serves a Python file or a module, with the Python that runs this command."""

from __future__ import annotations

import sys

from ._errors import CliError, file_source

__all__ = ["absolute_file", "serving_command"]


def serving_command(*source: str, asyncio: bool = False) -> tuple[str, ...]:
    """Return the command that serves a source: `FILE[:NAME]`, or `-m` and `PACKAGE.MODULE[:NAME]`.

    `asyncio` is True for a server that runs on asyncio.
    """
    program = ("mcp_asyncio_shim",) if asyncio else ("mcp_trio", "run")
    # -P: not from the current directory, whose modules may have the same names.
    return (sys.executable, "-P", "-m", *program, *source)


def absolute_file(target: str) -> str:
    """Return `FILE` or `FILE:NAME` with an absolute path: it is started in another directory.

    Raises:
        CliError: there is no such file, or its path isn't UTF-8.
    """
    source = file_source(target)
    path = source.path
    # A symbolic link stays one: it may lead to the next release tomorrow.
    absolute = str(path.resolve() if ".." in path.parts else path.absolute())
    try:
        absolute.encode()
    except UnicodeEncodeError:
        raise CliError(f"{absolute!r} is not UTF-8; rename the file") from None
    return f"{absolute}:{source.name}" if source.name else absolute
