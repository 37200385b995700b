"""The options of a command that serves a Python file, and what they mean for each driver.

`mcp-trio run` has them, and `python -m mcp_asyncio_shim`.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from mcp_core._on_first_use import type_on_first_use
from mcp_core.http import HttpOptions

from ._recording_options import add_recording_options, read_recording
from ._served_source import ServedSource

if TYPE_CHECKING:
    from mcp_core.auth import ApiKeys

    from ._recorder import Recording
else:
    ApiKeys = type_on_first_use("mcp_core.auth", "ApiKeys")
    Recording = type_on_first_use("mcp_core.adapters", "Recording")

__all__ = ["HttpRunOptions", "RunOptions", "add_run_options", "listen_address", "read_run_options"]

_PATH: Final = re.compile(r"/[!-\"$->@-~]*")  # visible ASCII, without ? and #
_DEFAULT_PATH: Final = "/mcp"
_FOR_HTTP: Final = (
    *("json_response", "stateless", "path", "sse_path"),
    *("allowed_host", "allowed_origin", "api_key_env"),
)


class HttpRunOptions(Struct, frozen=True, kw_only=True):
    """How a file is served over HTTP.

    Args:
        host: the address to listen on.
        port: the port, 0 for a free one.
        path: the endpoint's path.
        sse_path: a second path for clients of HTTP+SSE, None for none.
        reply: as `reply` of `mcp_core.http.ServeOptions`.
        sessions: whether revisions with a handshake get sessions.
        hosts: as `hosts` of `ServeOptions`.
        origins: as `origins` of `ServeOptions`.
        api_key_variables: names of environment variables, each with the API key of one client.
        fds: inherited sockets that listen already on `host` and `port` (`--reload`).
    """

    host: str
    port: int
    path: str = _DEFAULT_PATH
    sse_path: str | None = None
    reply: Literal["auto", "json"] = "auto"
    sessions: bool = True
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    api_key_variables: tuple[str, ...] = ()
    fds: tuple[int, ...] = ()

    def endpoint_options(self) -> HttpOptions:
        """Return the options of the endpoint.

        Raises:
            ValueError: one of `hosts` or `origins` is malformed, or there are no sessions at
                `sse_path`.
        """
        return HttpOptions.of(
            self.host,
            hosts=self.hosts,
            origins=self.origins,
            reply=self.reply,
            sessions=self.sessions,
            sse_path=self.sse_path,
        )

    def auth(self) -> ApiKeys | None:
        """Return what authorizes requests, None if anyone may send them.

        A key's principal is the name of its variable.

        Raises:
            ValueError: a variable isn't set, or its value cannot be a key. The text has no values.
        """
        if not self.api_key_variables:
            return None
        from mcp_core.auth import ApiKeys

        for name in self.api_key_variables:
            if name not in os.environ:
                # It may be the key itself, so it isn't shown.
                raise ValueError(
                    "there is no such environment variable: pass its name, for example NOTES_KEY,"
                    " and not $NOTES_KEY"
                )
        return ApiKeys({name: os.environ[name].strip() for name in self.api_key_variables})


class RunOptions(Struct, frozen=True, kw_only=True):
    """The options of a command that serves a file.

    Args:
        source: the file or module.
        http: how it is served over HTTP, None for stdio.
        recording: the file in which conversations are recorded, None for none.
        keys_variable: the environment variable that has the server's `state_keys`, None if none
            has.
        reload: whether to start the server again when its code changes.
        asyncio: whether to run it on asyncio.
    """

    source: ServedSource
    http: HttpRunOptions | None = None
    recording: Recording | None = None
    keys_variable: str | None = None
    reload: bool = False
    asyncio: bool = False


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that serves a Python file to `parser`."""
    parser.add_argument(
        "file",
        metavar="FILE[:NAME]",
        nargs="?",
        help="NAME is the variable that holds the server; not needed if the file has one server, or"
        " one named server, mcp or app",
    )
    parser.add_argument(
        "-m",
        dest="module",
        metavar="PACKAGE.MODULE[:NAME]",
        help="serve a module in place of FILE; it is found as by `python -m`, first in the current"
        " directory",
    )
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        type=listen_address,
        help="serve over HTTP, at http://HOST:PORT/mcp; HOST is 127.0.0.1 by default, for this"
        " machine only; PORT 0 is any free port",
    )
    parser.add_argument("--path", help="the path over HTTP, in place of /mcp")
    parser.add_argument(
        "--allowed-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a host name that clients use over HTTP, such as mcp.example.com; others than this"
        " machine's own get status 421 (may be repeated)",
    )
    parser.add_argument(
        "--allowed-origin",
        metavar="URL",
        action="append",
        default=[],
        help="the origin of web pages that may send requests, such as https://app.example.com (may"
        " be repeated)",
    )
    parser.add_argument(
        "--api-key-env",
        metavar="NAME",
        action="append",
        default=[],
        help="an environment variable with an API key, which clients send as `Authorization:"
        " Bearer KEY`; NAME is then the client's principal (may be repeated)",
    )
    parser.add_argument(
        "--json-response",
        action="store_true",
        help="respond with JSON only, never with an event stream",
    )
    parser.add_argument(
        "--stateless",
        action="store_true",
        help="open no sessions: nothing is kept between requests",
    )
    parser.add_argument(
        "--sse-path",
        metavar="PATH",
        help="a second path, such as /sse, for clients that are set up for HTTP+SSE (2024-11-05);"
        " the first one serves them too",
    )
    parser.add_argument(
        "--state-keys-env",
        metavar="NAME",
        help="the environment variable with the keys that all processes behind one address share:"
        " one secret, or several as NAME=SECRET,NAME=SECRET",
    )
    parser.add_argument("--listening-fds", help=argparse.SUPPRESS)  # from the parent of --reload
    add_recording_options(parser)


def read_run_options(
    parser: argparse.ArgumentParser, words: Sequence[str], say: Callable[[str], object]
) -> RunOptions:
    """Parse the words of a command that serves a Python file.

    Args:
        parser: has the arguments of `add_run_options`, and perhaps `--reload` and `--asyncio`.
        words: the words after the command's name.
        say: gets a warning for the user, if secrets are recorded.

    Raises:
        SystemExit: argparse has printed help or an error.
        ServedSourceError: there is no such file or module.
    """
    found = parser.parse_args(words)
    if found.file is None and found.module is None:
        parser.error("give FILE[:NAME], or -m PACKAGE.MODULE[:NAME]")
    if found.file is not None and found.module is not None:
        parser.error(f"give FILE[:NAME] or -m, and not both: {found.file} and -m {found.module}")
    recording = read_recording(parser, found, say)
    reload = getattr(found, "reload", False)
    if recording is not None and reload:
        parser.error(
            "--record with --reload would replace FILE at each start: leave one out, or record at"
            " the client"
        )
    http = _read_http_options(parser, found)
    if found.module is not None:
        source = ServedSource.from_module(found.module)
    else:
        source = ServedSource.from_file(found.file)
    return RunOptions(
        source=source,
        http=http,
        recording=recording,
        keys_variable=found.state_keys_env,
        reload=reload,
        asyncio=getattr(found, "asyncio", False),
    )


def _read_http_options(
    parser: argparse.ArgumentParser, found: argparse.Namespace
) -> HttpRunOptions | None:
    """Return the options for HTTP, None for stdio.

    Raises:
        SystemExit: argparse has printed an error.
    """
    if found.http is None:
        for option in _FOR_HTTP:
            if getattr(found, option):
                parser.error(f"--{option.replace('_', '-')} needs --http: add --http 8000")
        return None
    path = _DEFAULT_PATH if found.path is None else found.path
    if _PATH.fullmatch(path) is None:
        parser.error(f"--path {path!r} is not a path: it begins with a slash, as /notes/mcp")
    sse_path = found.sse_path
    if sse_path is not None:
        if found.stateless:
            parser.error("--sse-path needs sessions: leave --stateless out")
        if _PATH.fullmatch(sse_path) is None or sse_path.rstrip("/") == path.rstrip("/"):
            parser.error(
                f"--sse-path has to begin with a slash and differ from {path}: --sse-path /sse"
            )
    host, port = found.http
    options = HttpRunOptions(
        host=host,
        port=port,
        path=path,
        sse_path=sse_path,
        reply="json" if found.json_response else "auto",
        sessions=not found.stateless,
        hosts=tuple(found.allowed_host),
        origins=tuple(found.allowed_origin),
        api_key_variables=tuple(found.api_key_env),
        fds=tuple(int(fd) for fd in (found.listening_fds or "").split(",") if fd),
    )
    checks: dict[str, Callable[[], object]] = {
        "--allowed-host": lambda: HttpOptions.of(host, hosts=options.hosts),
        "--allowed-origin": lambda: HttpOptions.of(host, origins=options.origins),
        "--api-key-env": options.auth,
    }
    for option, check in checks.items():
        try:
            check()
        except ValueError as exc:
            parser.error(f"{option}: {exc}")
    return options


def listen_address(text: str) -> tuple[str, int]:
    """Return host and port of `text`, `[HOST:]PORT`; the host is 127.0.0.1 by default.

    Raises:
        ArgumentTypeError: it isn't an address, for argparse.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else "127.0.0.1"
    if not (host and port.isascii() and port.isdigit() and int(port) < 65_536):
        raise argparse.ArgumentTypeError(
            f"{text} is not an address; write a port as 8000, or 0.0.0.0:8000, or [::1]:8000"
        )
    return host, int(port)
