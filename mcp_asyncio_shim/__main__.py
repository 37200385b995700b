"""`python -m mcp_asyncio_shim FILE`: serve what a Python file declares, on asyncio.

`mcp-trio run --asyncio` does the same. Over HTTP the server is uvicorn.
"""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING, Final

from mcp_core import McpTrioError, escape_text
from mcp_core.adapters import ServedSource, ServedSourceError, is_of_served_code

from ._server import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.adapters import Recording

__all__ = ["main"]

_LOG: Final = "mcp_asyncio_shim"
# Exit statuses, as of `mcp-trio`.
_SERVER_ERROR: Final = 1
_MISUSE: Final = 2
_NO_CONNECTION: Final = 3
_INTERRUPTED: Final = 130


def main(words: Sequence[str]) -> int:
    """Run the command with the words after its name, and return the exit status.

    Raises:
        SystemExit: argparse has printed help or an error, or a signal ended the server.
    """
    try:
        return _run(words)
    except ServedSourceError as exc:
        _say(f"mcp-trio: {exc}")
        return _SERVER_ERROR if exc.import_failed else _MISUSE
    except McpTrioError as exc:
        _say(f"mcp-trio: {exc}")
        return _MISUSE if isinstance(exc, OSError) else _NO_CONNECTION  # the option --record
    except KeyboardInterrupt:
        return _INTERRUPTED
    except (Exception, BaseExceptionGroup) as exc:
        if not is_of_served_code(exc):
            raise
        _say(escape_text(traceback.format_exc(), "\n\t").rstrip("\n"))
        return _SERVER_ERROR


def _run(words: Sequence[str]) -> int:
    # Clients start it with a file only, so that must be fast: it doesn't import argparse.
    match words:
        case [file] if not file.startswith("-"):
            return _run_stdio(ServedSource.from_file(file))
    import argparse

    from mcp_core.adapters import add_run_options, read_run_options

    parser = argparse.ArgumentParser(
        prog="python -m mcp_asyncio_shim",
        description="Imports FILE and serves its Server on asyncio, over stdin and stdout, or with"
        " --http over HTTP, by uvicorn.",
        allow_abbrev=False,
    )
    add_run_options(parser)
    options = read_run_options(parser, words, _say)
    if options.http is None:
        return _run_stdio(options.source, options.recording, options.keys_variable)
    try:
        from ._uvicorn import CannotServe, serve_http
    except ModuleNotFoundError as exc:
        if exc.name != "uvicorn":
            raise
        _say(f"mcp-trio: --http on asyncio needs uvicorn: {sys.executable} -m pip install uvicorn")
        return _MISUSE
    server = options.source.load(_LOG, options.keys_variable)
    try:
        return 0 if serve_http(server, options.http, options.recording) else _SERVER_ERROR
    except CannotServe as exc:
        _say(f"mcp-trio: {exc}")
        return _NO_CONNECTION


def _run_stdio(
    source: ServedSource, recording: Recording | None = None, keys_variable: str | None = None
) -> int:
    server = source.load(_LOG, keys_variable)
    source.explain_wait(server.info.name, "--asyncio")
    run(server, record=recording)
    return 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")  # the end of the line flushes


if __name__ == "__main__":
    if not sys.flags.safe_path:
        # `python -m` puts the current directory first, where a server file would import modules by
        # accident.
        del sys.path[0]
    raise SystemExit(main(sys.argv[1:]))
