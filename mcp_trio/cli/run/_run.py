"""`mcp-trio run FILE[:NAME]`: import a file and serve its server over stdio, or over HTTP.

1. If the import fails, the user sees a traceback of their file only, without the frames of this
   command and of the import system.
2. With `--http [HOST:]PORT`, stderr shows the server's URL, and one line for each exchange when it
   ends. An event stream is one exchange.
3. These lines have no secrets: they show the path without its query, and no headers.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import socket
import sys
import traceback
from contextlib import redirect_stdout
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import trio

from mcp_core import registry
from mcp_core.adapters import LastDeadline
from mcp_core.http import HttpOptions
from mcp_core.registry import DeclarationError, Server
from mcp_core.runtime import SHUTDOWN_GRACE
from mcp_trio._nursery import open_quiet_nursery
from mcp_trio._server import run as serve
from mcp_trio.cli._errors import NO_CONNECTION, SERVER_ERROR, CliError, split_file
from mcp_trio.cli._screen import Screen
from mcp_trio.http_server._serve import (
    CannotListen,
    address_of,
    serve_http,
    serve_http_listeners,
    warn_of_missing_hosts,
)
from mcp_trio.streams._stdio import stop_on_signals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import ModuleType

    from mcp_core.adapters import Recording
    from mcp_trio.http_server._connection import AccessLogEntry
    from mcp_trio.http_server._serve import HttpAddress

__all__ = [
    "access_log_printer",
    "explain_wait",
    "is_of_served_file",
    "load",
    "run",
    "run_http",
]

# A name that may be shown: a key has 43 characters or more.
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")

# Not `__main__`: code under `if __name__ == "__main__"` is for `python FILE`. Nor the name of the
# file: a module that imports the file by name gets a second copy, as with Python's `__main__`.
_MODULE_NAME: Final = "__mcp_server__"
_OURS: Final = ("mcp_core", "mcp_trio")  # packages that can be beside it, in a checkout
_PATH: Final = "/mcp"
_DEFAULT_NAMES: Final = ("server", "mcp", "app")
_REGISTRY: Final = Path(registry.__file__).parent  # its frames are left out of a traceback

# By the first digit of the status; 0 if the client disconnected before it.
_STATUS_STYLES: Final = ("bold red", "green", "green", "yellow", "red", "bold red")


def run(target: str, recording: Recording | None = None, keys_variable: str | None = None) -> int:
    """Serve over stdio until the client closes stdin, and return the exit status.

    Args:
        target: `FILE` or `FILE:NAME`.
        recording: the file in which the conversation is recorded.
        keys_variable: the environment variable that has the server's `state_keys`, if one has.

    Raises:
        CliError: there is no such file or server, the file cannot be imported, or the variable has
            no keys.
        SystemExit: a signal ended the server.
    """
    server = load(target, keys_variable)
    explain_wait(server.info.name, target)
    serve(server, record=recording)
    return 0


def explain_wait(name: str, target: str) -> None:
    """If stdin is a terminal, print what the server waits for, and how to try it."""
    if sys.stdin is not None and sys.stdin.isatty():
        print(
            f"{name} is waiting for a client on stdin, one JSON message a line; Ctrl+C ends it."
            f" To try it: mcp-trio inspect {target}",
            file=sys.stderr,
        )


def load(target: str, keys_variable: str | None = None) -> Server:
    """Import a file, configure logging, and return the server that the file declares.

    It gets the `state_keys` of the environment variable `keys_variable`, if there is one.

    Raises:
        CliError: there is no such file or server, the file cannot be imported, or the variable has
            no keys.
    """
    path, name = split_file(target)
    server = _find_server(_import_file(path), name, path)
    if keys_variable is not None:
        _use_state_keys(server, keys_variable)
    _configure_logging()
    return server


def _use_state_keys(server: Server, variable: str) -> None:
    from mcp_core.sharing import read_state_keys  # on first use: most servers share no keys

    if variable not in os.environ and not _VARIABLE.fullmatch(variable):
        # It may be the variable's value, so it isn't shown.
        raise CliError(
            "--state-keys-env: this isn't the name of a variable: pass NOTES_KEYS, for example, and"
            " not $NOTES_KEYS"
        )
    try:
        if variable not in os.environ:
            raise ValueError("the variable isn't set")
        server.use_state_keys(read_state_keys(os.environ[variable]))
    except ValueError as exc:
        raise CliError(f"--state-keys-env {variable}: {exc}") from None


def is_of_served_file(error: BaseException) -> bool:
    """Return True if the error passed through the served file, or a module in its directory.

    Installed packages don't count.
    """
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_of_served_file, error.exceptions))
    file = getattr(sys.modules.get(_MODULE_NAME), "__file__", None)
    if file is None:
        return False
    folder = Path(file).parent
    return any(
        folder in Path(frame.f_code.co_filename).parents
        and "site-packages" not in Path(frame.f_code.co_filename).parts
        and str(frame.f_globals.get("__name__")).partition(".")[0] not in _OURS
        for frame, _ in traceback.walk_tb(error.__traceback__)
    )


def _import_file(path: Path) -> ModuleType:
    location = path.resolve()
    spec = importlib.util.spec_from_file_location(_MODULE_NAME, location)
    if spec is None or spec.loader is None:
        raise CliError(f"{path} is not a Python file: its name does not end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE_NAME] = module
    sys.path.insert(0, str(location.parent))  # as Python does for the file that it runs
    sys.argv = [str(path)]
    try:
        # stdout belongs to the protocol: what the file prints during its import goes to stderr.
        with redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    except Exception as exc:  # noqa: BLE001 - the user's file may raise anything
        _print_traceback(exc, location)
        raise CliError(
            f"{path} could not be imported: {_describe_error(exc)}", SERVER_ERROR
        ) from None
    return module


def _print_traceback(exc: Exception, location: Path) -> None:
    """Print the traceback, beginning at the user's file.

    For an invalid declaration it ends before the registry's frames.
    """
    shown = traceback.TracebackException.from_exception(exc)
    frames = shown.stack[:]
    while frames and frames[0].filename != str(location):
        del frames[0]
    while (
        isinstance(exc, DeclarationError)
        and frames
        and _REGISTRY in Path(frames[-1].filename).parents
    ):
        del frames[-1]
    shown.stack[:] = frames
    print("".join(shown.format()), end="", file=sys.stderr)


def _describe_error(exc: Exception) -> str:
    if isinstance(exc, ModuleNotFoundError):
        return f"{exc}; install it for {sys.executable}, or run this with the Python that has it"
    text = str(exc).partition("\n")[0]
    return f"{type(exc).__name__}: {text}" if text else type(exc).__name__


def _find_server(module: ModuleType, name: str, path: Path) -> Server:
    found = {key: value for key, value in vars(module).items() if isinstance(value, Server)}
    if name in found:
        return found[name]
    names = ", ".join(found)
    if name:
        has = f"its servers are: {names}" if found else "it has none"
        raise CliError(f"{path} has no mcp_trio.Server called {name}; {has}")
    if not found:
        raise CliError(f'{path} has no server. Make one: server = mcp_trio.Server("name")')
    if len({id(server) for server in found.values()}) > 1:
        default = next((found[key] for key in _DEFAULT_NAMES if key in found), None)
        if default is None:
            first = next(iter(found))
            raise CliError(
                f"{path} has several servers: {names}. Name one: mcp-trio run {path}:{first}"
            )
        return default
    return next(iter(found.values()))


def _configure_logging() -> None:
    """Log to stderr, unless the file has configured logging."""
    log = logging.getLogger("mcp_trio")
    if not log.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
        log.addHandler(handler)


def run_http(
    target: str,
    host: str,
    port: int,
    *,
    reply: Literal["auto", "json"] = "auto",
    sessions: bool = True,
    sse_path: str | None = None,
    recording: Recording | None = None,
    keys_variable: str | None = None,
    fds: Sequence[int] = (),
) -> int:
    """Serve until a signal arrives. Return 130 after Ctrl+C and 143 after SIGTERM.

    `recording` is the file in which all conversations are recorded, `keys_variable` the environment
    variable that has the server's `state_keys`. `fds` are inherited sockets that listen already on
    host and port (`--reload`).

    Raises:
        CliError: there is no such file or server, the file cannot be imported, the variable has no
            keys, or the command cannot listen on the address.
    """
    server = load(target, keys_variable)
    screen = Screen(sys.stderr)
    begin = partial(_serve_fds, fds=fds) if fds else partial(serve_http, port=port)
    serve = partial(
        begin,
        server,
        host,
        reply=reply,
        sessions=sessions,
        sse_path=sse_path,
        record=recording,
        on_exchange=access_log_printer(screen),
    )
    try:
        with LastDeadline(server.info.name) as last_deadline:
            return trio.run(_serve, server.info.name, serve, screen, sse_path, last_deadline)
    except CannotListen as exc:
        raise CliError(exc.strerror, NO_CONNECTION) from exc


async def _serve_fds(
    server: Server,
    host: str,
    *,
    fds: Sequence[int],
    reply: Literal["auto", "json"],
    sessions: bool,
    sse_path: str | None,
    record: Recording | None,
    on_exchange: Callable[[AccessLogEntry], object],
    stop: trio.Event,
    task_status: trio.TaskStatus[HttpAddress],
) -> None:
    """Serve as `serve_http` does, on inherited sockets."""
    listeners = [
        trio.SocketListener(trio.socket.from_stdlib_socket(socket.socket(fileno=fd))) for fd in fds
    ]
    warn_of_missing_hosts(listeners, host)
    address = address_of(listeners[0], host, _PATH, "http")
    await serve_http_listeners(
        listeners,
        {_PATH: server},
        HttpOptions.of(host, reply=reply, sessions=sessions, sse_path=sse_path),
        routes={},
        record=record,
        on_exchange=on_exchange,
        stop=stop,
        started=partial(task_status.started, address),
    )


async def _serve(
    name: str,
    serve: Callable[..., Awaitable[None]],
    screen: Screen,
    sse_path: str | None,
    last_deadline: LastDeadline,
) -> int:
    stop = trio.Event()
    with stop_on_signals(stop.set, last_deadline=last_deadline, grace=SHUTDOWN_GRACE) as signal:
        async with open_quiet_nursery(wait=True) as nursery:
            address = await nursery.start(partial(serve, stop=stop))
            screen.write_line(
                "Serving ", (name, "bold"), " at ", (address.url, "bold cyan"), " (Ctrl+C ends it)"
            )
            if sse_path is not None:
                sse_url = address.url.removesuffix("/mcp") + sse_path
                screen.write_line("Clients of HTTP+SSE connect to ", (sse_url, "bold cyan"))
    last_deadline.lifespan_ended()
    return signal.exit_code


def access_log_printer(screen: Screen) -> Callable[[AccessLogEntry], None]:
    """Return a callback that writes one line to `screen` for each exchange."""

    def write(entry: AccessLogEntry) -> None:
        path, _, _ = entry.target.partition("?")
        status = str(entry.status) if entry.status else "disconnected"
        screen.write_line(
            (f"{datetime.now().astimezone():%H:%M:%S} ", "dim"),
            f"{entry.method} {path} ",
            (f"{entry.rpc_method} " if entry.rpc_method else "", "bold"),
            (status, _STATUS_STYLES[entry.status // 100]),
            (f" {_format_duration(entry.seconds)}", "dim"),
        )

    return write


def _format_duration(seconds: float) -> str:
    if seconds < 0.001:
        return "<1 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds / 60:.0f} min"
