"""`mcp-trio run FILE[:NAME]`: import a file, find the server it declares, and serve it over stdio. Over HTTP it is served by
`_run_http.py`.

Rules of this file:

1. The file is imported, not executed as `__main__`: what stands under `if __name__ == "__main__"` is for `python FILE`. Its
   directory comes first on `sys.path`, as it would for Python.
2. What the file prints while it is imported goes to stderr; stdout belongs to the protocol from the beginning.
3. If the file fails, its author sees their own traceback, without our frames and the import system's.
4. Whoever configured logging in the file is left alone.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import traceback
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_core import registry
from mcp_core.registry import DeclarationError, Server
from mcp_trio._server import run as serve

from ._problem import ANSWERED_ERROR, Problem

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["load", "run"]

# No name that the file could have: importing it by its own name gives a second copy, as it does for Python's `__main__`.
_MODULE: Final = "__mcp_server__"
_USUAL_NAMES: Final = ("server", "mcp", "app")
_REGISTRY: Final = Path(registry.__file__).parent


def run(target: str) -> int:
    """Serve until the client closes stdin; returns the exit status.

    Raises:
        Problem: there is no such file or server, or the file could not be imported.
        SystemExit: a signal ended it.
    """
    server = load(target)
    if sys.stdin is not None and sys.stdin.isatty():
        print(
            f"{server.info.name} is waiting for a client on stdin, one JSON message a line; Ctrl+C ends it. To try it: "
            f"mcp-trio inspect -- mcp-trio run {target}",
            file=sys.stderr,
        )
    serve(server)
    return 0


def load(target: str) -> Server:
    """The server that a file declares, `FILE` or `FILE:NAME`; its logging is configured.

    Raises:
        Problem: there is no such file or server, or the file could not be imported.
    """
    path, name = _split(target)
    server = _server_in(_imported(path), name, path)
    _configure_logging()
    return server


def _split(target: str) -> tuple[Path, str]:
    path, name = Path(target), ""
    if not path.exists():
        before, colon, name = target.rpartition(":")
        path = Path(before if colon else target)
    if path.is_dir():
        raise Problem(f"{path} is a directory; name the file in it that makes the server")
    if not path.is_file():
        raise Problem(f"there is no file {path}; give the path of a Python file: mcp-trio run server.py")
    return path, name


def _imported(path: Path) -> ModuleType:
    place = path.resolve()
    spec = importlib.util.spec_from_file_location(_MODULE, place)
    if spec is None or spec.loader is None:
        raise Problem(f"{path} is no Python file (its name does not end in .py)")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    sys.path.insert(0, str(place.parent))
    sys.argv = [str(path)]
    try:
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except Exception as exc:  # noqa: BLE001 - the file is the user's, and so is what it raises
        _print_traceback(exc, place)
        raise Problem(f"{path} could not be imported: {_cause(exc)}", ANSWERED_ERROR) from None
    return module


def _print_traceback(exc: Exception, place: Path) -> None:
    """As Python would, but from the file on, and for a faulty declaration without how we found it."""
    shown = traceback.TracebackException.from_exception(exc)
    frames = shown.stack[:]
    while frames and frames[0].filename != str(place):
        del frames[0]
    while isinstance(exc, DeclarationError) and frames and Path(frames[-1].filename).parent == _REGISTRY:
        del frames[-1]
    shown.stack[:] = frames
    print("".join(shown.format()), end="", file=sys.stderr)


def _cause(exc: Exception) -> str:
    if isinstance(exc, ModuleNotFoundError):
        return f"{exc}; install it for {sys.executable}, or run this with the Python that has it"
    text = str(exc).partition("\n")[0]
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__


def _server_in(module: ModuleType, name: str, path: Path) -> Server:
    found = {key: value for key, value in vars(module).items() if isinstance(value, Server)}
    if name in found:
        return found[name]
    names = ", ".join(found)
    if name:
        has = f"its servers are: {names}" if found else "it has none"
        raise Problem(f"{path} has no mcp_trio.Server called {name}; {has}")
    if not found:
        raise Problem(f'{path} has no server. Make one: server = mcp_trio.Server("name")')
    if len({id(server) for server in found.values()}) > 1:
        usual = next((found[key] for key in _USUAL_NAMES if key in found), None)
        if usual is None:
            first = next(iter(found))
            raise Problem(f"{path} has several servers: {names}. Say which one: mcp-trio run {path}:{first}")
        return usual
    return next(iter(found.values()))


def _configure_logging() -> None:
    log = logging.getLogger("mcp_trio")
    if not log.hasHandlers():
        shown = logging.StreamHandler()
        shown.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
        log.addHandler(shown)
