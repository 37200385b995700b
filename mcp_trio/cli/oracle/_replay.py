"""`mcp-trio replay FILE [TARGET]`: be the server, or the client, of a recorded conversation.

1. Without TARGET it is the server, on stdin and stdout or over HTTP. Requests that aren't in FILE
   are listed on stderr, and decide the exit status.
2. With TARGET it is the client. What crosses is recorded, judged, and compared with FILE.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mcp_core.adapters import add_recording_options, listen_address, read_recording
from mcp_core.trace import RESPONSE_TIMEOUT
from mcp_core.urls import url_transport
from mcp_trio.cli._errors import MISUSE, NO_CONNECTION, NOTHING_JUDGED, CliError
from mcp_trio.cli._options import (
    add_asyncio,
    add_configured_options,
    add_headers,
    add_module,
    add_process_options,
    add_token,
    refuse_yes,
)
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._served_file import absolute_file, serving_command
from mcp_trio.cli._session import Target
from mcp_trio.cli._target import (
    ASYNCIO_NEEDS_FILE,
    configured_target,
    invalid_url,
    is_server,
    is_url,
    read_environment,
    read_headers,
    refuse_configured_options,
    refuse_unconfigured_options,
    require_url,
)

from ._diff import add_diff_options
from ._junit_file import write_junit
from ._trace_file import load_trace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mcp_core.trace import RecordedTrace, ReplayServer

__all__ = ["parse"]

_USAGE: Final = """\
mcp-trio replay FILE [options]
       mcp-trio replay FILE [options] URL
       mcp-trio replay FILE [options] FILE.py[:NAME]
       mcp-trio replay FILE [options] -- COMMAND ARG...
       mcp-trio replay FILE [options] --server NAME"""
_DESCRIPTION: Final = """\
Plays a conversation that --record has recorded in FILE again.

Without a server it is the server of FILE, on stdin and stdout or with --http: it answers each
request as the recorded server did. A request that is not in FILE gets an error that names the
nearest one.

With a server it is the client of FILE: it sends what the recorded client sent, in its order, each
after the responses that it had waited for. Ids, cursors and the like are those of the live server.
What crosses is judged as by `mcp-trio check`, and compared with FILE as by `mcp-trio diff`. Tools
are called again, with all that they do."""
_EPILOG: Final = """\
example:
  mcp-trio inspect -- mcp-trio replay a.mcp.jsonl
  mcp-trio replay a.mcp.jsonl --record b.mcp.jsonl -- node server.js

exit status:
  0    every request was in FILE; or the server did what it did when FILE was recorded
  1    a request was not in FILE; or the server differs, or breaks a rule of the specification
  2    the command line is wrong, or FILE is not a trace that can be played
  3    no conversation: the server did not start or did not answer
  4    nothing was replayed: FILE has no messages of a client, or no client sent a request; or
       nothing was compared
  130  Ctrl+C
"""

_SERVER_OPTIONS: Final = ("http", "pace")
_CLIENT_OPTIONS: Final = (
    *("record", "meta", "json", "response_timeout", "allow_remote"),
    *("headers", "token_env", "env", "inherit_env", "cwd", "asyncio"),
)
NOT_FOUND: Final = 1
_MAX_SHOWN: Final = 20  # requests that were not found


def parse(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = new_parser("replay", usage=_USAGE, description=_DESCRIPTION, epilog=_EPILOG)
    _add_options(parser)
    cut = words.index("--") if "--" in words else len(words)
    command = tuple(words[cut + 1 :])
    found = parser.parse_intermixed_args(words[:cut])
    if found.server_name is not None or found.config is not None:
        has_server = bool(found.target or found.module) or "--" in words
        return _parse_configured(parser, found, has_server=has_server)
    refuse_configured_options(parser, found)
    target = _read_target(parser, found, command, has_command="--" in words)
    if target is None:
        for option in _CLIENT_OPTIONS:
            if getattr(found, option):
                parser.error(f"{_option(option)} is for the client of FILE: give a server last")
        return partial(
            _replay_server, found.file, found.http, found.pace or 0.0, found.ignore, found.junit
        )
    _refuse_server_options(parser, found)
    server, file = target
    stderr = Screen(sys.stderr)
    played = Target(
        server=server,
        recording=read_recording(parser, found, stderr.write_line),
        headers=read_headers(found, server),
        env=read_environment(found, server, file),
        inherit_env=found.inherit_env,
        cwd=found.cwd,
    )
    return partial(_replay_client, found.file, played, found)


def _refuse_server_options(parser: argparse.ArgumentParser, found: argparse.Namespace) -> None:
    for option in _SERVER_OPTIONS:
        if getattr(found, option) is not None:
            parser.error(f"{_option(option)} is for the server of FILE: leave the server out")


def _parse_configured(
    parser: argparse.ArgumentParser, found: argparse.Namespace, *, has_server: bool
) -> Callable[[], int]:
    """Return the function that plays the client with a server of the configuration files."""
    if has_server:
        parser.error("give a server, or --server and --config, and not both")
    _refuse_server_options(parser, found)
    refuse_unconfigured_options(parser, found)
    target = configured_target(parser, found, found.server_name)
    return partial(_replay_configured, found.file, target, found)


def _replay_configured(path: str, target: Target, found: argparse.Namespace) -> int:
    from mcp_trio.cli.configured._launch import find_launch

    launch = find_launch(target, "replay", ("stdio", "http"), passes_on=True)
    target = launch.applied_to(target)
    if isinstance(target.server, str):
        _require_consent(target.server, target.headers, found)
    return _replay_client(path, target, found)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the trace, such as a.mcp.jsonl")
    parser.add_argument("target", metavar="SERVER", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--junit", metavar="REPORT", help="write a report of JUnit to REPORT")
    serve = parser.add_argument_group("as the server of FILE")
    serve.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        type=listen_address,
        help="serve over HTTP, at http://HOST:PORT/mcp; HOST is 127.0.0.1 by default; PORT 0 is any"
        " free port",
    )
    serve.add_argument(
        "--pace",
        metavar="FACTOR",
        type=_factor,
        help="keep the recorded gaps between messages, times FACTOR: 1 is as recorded (default:"
        " none)",
    )
    play = parser.add_argument_group("as the client of FILE")
    play.add_argument(
        "--response-timeout",
        metavar="SECONDS",
        type=_seconds,
        help=f"the timeout of each response (default: {RESPONSE_TIMEOUT:g}, or three times the"
        " recorded time if that is more)",
    )
    play.add_argument(
        "--allow-remote",
        action="store_true",
        help="send to a server that is on another machine than this one",
    )
    add_configured_options(play)
    refuse_yes(
        parser,
        "--allow-remote sends to another machine, and --approve-server NAME lets a server of the"
        " configuration files start",
    )
    parser.set_defaults(trace=False, keychain=False)
    add_recording_options(parser)
    add_diff_options(parser)
    play.add_argument("--json", action="store_true", help="print one JSON document")
    add_headers(play)
    add_token(play)
    add_process_options(play)
    add_module(play)
    add_asyncio(play)


def _read_target(
    parser: argparse.ArgumentParser,
    found: argparse.Namespace,
    command: tuple[str, ...],
    *,
    has_command: bool,
) -> tuple[str | tuple[str, ...], str] | None:
    """Return the URL or the command of the server, and the file if it is one; None for no server.

    Raises:
        CliError: it is neither.
    """
    word = found.target
    if found.module is not None:
        if word is not None or has_command:
            parser.error(f"there are two servers: -m {found.module}, and another one after it")
        return serving_command("-m", found.module, asyncio=found.asyncio), found.module
    if found.asyncio and (has_command or (word is not None and is_url(word))):
        parser.error(ASYNCIO_NEEDS_FILE)
    if has_command:
        if word is not None:
            parser.error(f"there are two servers: {word}, and the command after --")
        if not command:
            parser.error("there is no command after --")
        if len(command) > 1 or not is_url(command[0]):
            return command, ""
        word = command[0]
    if word is None:
        return None
    if is_url(word):
        require_url(word)
        row = url_transport(word)
        if row is not None and row.is_websocket:
            raise CliError(
                "replay speaks stdio and Streamable HTTP, and not WebSockets: give the http:// URL"
                " of the server, or its command after --"
            )
        _require_consent(word, read_headers(found, word), found)
        return str(word), ""
    if "://" in word:
        raise invalid_url(word)
    if not is_server(word):
        raise CliError(
            f"{word} is not a server: give a URL, a file such as server.py, or a command after --"
        )
    return serving_command(absolute_file(word), asyncio=found.asyncio), word


def _require_consent(
    url: str, headers: Sequence[tuple[str, str]], found: argparse.Namespace
) -> None:
    """Check that the user allows a replay to another machine.

    Raises:
        CliError: the user doesn't, or a secret would be sent unencrypted.
    """
    from mcp_core.http import Url, find_cleartext_error
    from mcp_core.urls import is_local_host

    try:
        parsed = Url.parse(url)
    except ValueError as exc:
        raise invalid_url(url) from exc
    error = find_cleartext_error(parsed, dict(headers))
    if error is not None:
        raise CliError(error)
    if not is_local_host(parsed.host) and not found.allow_remote:
        raise CliError(
            f"{parsed.host} is not this machine, and replay repeats there all that the recorded"
            " client did: add --allow-remote to send it there"
        )


def _option(name: str) -> str:
    return "--" + {"headers": "header"}.get(name, name).replace("_", "-")


def _factor(text: str) -> float:
    factor = float(text)
    if not 0 <= factor <= 1000:
        raise argparse.ArgumentTypeError(f"{text} is not a factor from 0 to 1000")
    return factor


_factor.__name__ = "number"


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a timeout: give seconds above 0")
    return seconds


_seconds.__name__ = "number of seconds"


# -- The server of a trace -------------------------------------------------------------------------


@contextmanager
def _error_in_junit(path: str, junit: str | None) -> Iterator[None]:
    """Write an error of the block to the file `junit`, in place of an earlier run's report."""
    try:
        yield
    except Exception as exc:
        if junit is not None:
            from mcp_trio.oracle._junit import junit_suite

            is_ours = not isinstance(exc, CliError)
            text = f"an internal error of mcp-trio: {exc!r}" if is_ours else str(exc)
            name = f"mcp-trio replay {path}"
            write_junit(junit, junit_suite(name, "", 0, 0, text, wanted="it was replayed"))
        raise


def _replay_server(
    path: str,
    address: tuple[str, int] | None,
    pace: float,
    ignore: Sequence[str] = (),
    junit: str | None = None,
) -> int:
    with _error_in_junit(path, junit):
        return _serve(path, address, pace, ignore, junit)


def _serve(
    path: str,
    address: tuple[str, int] | None,
    pace: float,
    ignore: Sequence[str],
    junit: str | None,
) -> int:
    import trio

    from mcp_core.trace import ReplayServer

    stderr = Screen(sys.stderr)
    trace = load_trace_file(path, stderr)
    _check_has_requests(path, trace)
    try:
        server = ReplayServer(trace, pace=pace, ignore=ignore)
    except ValueError as exc:
        raise CliError(f"--ignore: {exc}") from exc
    if address is None:
        if sys.stdin is not None and sys.stdin.isatty():
            stderr.write_line(
                f"mcp-trio: the server of {path} is waiting for a client on stdin; to try it:"
                f" mcp-trio inspect -- mcp-trio replay {path}"
            )
        stopped = trio.run(_serve_stdio, server)
    else:
        stopped = trio.run(_serve_http, server, *address, path, stderr)
    for text in server.notes[:_MAX_SHOWN]:
        stderr.write_line((f"mcp-trio: {text}", "yellow"))
    for text in server.missing[:_MAX_SHOWN]:
        stderr.write_line((f"mcp-trio: not in the trace: {text}", "red"))
    if server.missing_count > _MAX_SHOWN:
        stderr.write_line(f"mcp-trio: and {server.missing_count - _MAX_SHOWN} more")
    nothing = ""
    if not server.missing_count and not server.found_count:
        nothing = (
            f"nothing was replayed: no client has sent a request that is in {path}; start this"
            " command as the server of a client"
        )
    if junit is not None:
        write_junit(junit, _server_junit(path, server, nothing))
    if stopped or server.missing_count:
        return stopped or NOT_FOUND
    if nothing:
        stderr.write_message(f"mcp-trio: {nothing}")
        return NOTHING_JUDGED
    return 0


def _server_junit(path: str, server: ReplayServer, error: str) -> str:
    """Return a JUnit report with a test for each request that isn't in the trace."""
    from mcp_trio.oracle._junit import attribute, junit_case, junit_suite

    cases = [
        junit_case("a request is in the trace", f"<failure message={attribute(text)}/>")
        for text in server.missing
    ]
    if server.found_count:
        cases.append(junit_case(f"{server.found_count} requests are in the trace"))
    failed = len(server.missing)
    name = f"mcp-trio replay {path}"
    return junit_suite(
        name, "".join(cases), len(cases), failed, error, wanted="requests were replayed"
    )


async def _serve_stdio(server: ReplayServer) -> int:
    import trio

    from mcp_trio.streams._replayed import serve_on_stream
    from mcp_trio.streams._stdio import standard_streams, stop_on_signals

    with (
        trio.CancelScope() as scope,
        stop_on_signals(scope.cancel) as signal,
        standard_streams() as stream,
    ):
        await serve_on_stream(server, stream)
    return signal.exit_code


async def _serve_http(server: ReplayServer, host: str, port: int, path: str, stderr: Screen) -> int:
    import trio

    from mcp_core.http import HostOriginPolicy
    from mcp_core.trace import ReplayHttpServer
    from mcp_trio.http_server._serve import address_of
    from mcp_trio.oracle.replay._http_server import serve_over_http
    from mcp_trio.streams._stdio import stop_on_signals

    http = ReplayHttpServer(
        server, policy=HostOriginPolicy(host), new_id=lambda: secrets.token_hex(16)
    )
    try:
        listeners = await trio.open_tcp_listeners(port, host=host)
    except OSError as exc:
        reason = exc.strerror or str(exc)
        raise CliError(
            f"cannot listen on {host}, port {port}: {reason}; choose another port, or 0 for any"
            " free port",
            NO_CONNECTION,
        ) from exc
    if port == 0:
        for other in listeners[1:]:
            await other.aclose()
        del listeners[1:]
    stop = trio.Event()
    with stop_on_signals(stop.set) as signal:
        url = address_of(listeners[0], host, "/mcp", "http").url
        stderr.write_line("Replaying ", (path, "bold"), " at ", (url, "bold cyan"))
        await serve_over_http(http, listeners, stop)
    # Only a signal ends a server, so it says nothing about the requests.
    return 0 if server.missing_count else signal.exit_code


# -- The client of a trace -------------------------------------------------------------------------


def _replay_client(
    path: str,
    target: Target,
    found: argparse.Namespace,
) -> int:
    with _error_in_junit(path, found.junit):
        return _play(path, target, found)


def _play(path: str, target: Target, found: argparse.Namespace) -> int:
    from mcp_core.adapters import Recording

    from ._replay_client import ClientReplay

    stderr, recording = target.stderr, target.recording
    trace = load_trace_file(path, stderr)
    _check_has_requests(path, trace)
    _check_playable(path, trace)
    with tempfile.TemporaryDirectory(prefix="mcp-trio-") as directory:
        if recording is None:
            recording = Recording(
                path=Path(directory) / "new.mcp.jsonl",
                redact=_redacted_pointers(trace),
                with_secrets=not trace.header.redacted,
            )
        if Path(recording.path).exists() and Path(recording.path).samefile(path):
            raise CliError(f"--record would replace {path} while it is played: name another file")
        replay = ClientReplay(
            path,
            trace,
            target,
            recording=recording,
            response_timeout=found.response_timeout,
        )
        return replay.run(
            ignore=found.ignore, with_meta=found.meta, as_json=found.json, junit=found.junit
        )


def _check_has_requests(path: str, trace: RecordedTrace) -> None:
    """Check that there is something to ask, or to answer.

    Raises:
        CliError: the trace has no request of a client.
    """
    if not trace.has_requests:
        raise CliError(
            f"{path} has no request of a client, so there is nothing to replay; record a"
            " conversation with --record",
            NOTHING_JUDGED,
        )


def _check_playable(path: str, trace: RecordedTrace) -> None:
    """Check that all messages of the client can be sent.

    Raises:
        CliError: one was recorded in part.
    """
    for session in trace.sessions:
        for message in session.messages:
            if message.is_truncated and message.sender == "client":
                raise CliError(
                    f"{path}: the message in line {message.line} was recorded in part, and cannot"
                    " be sent: record it again with a higher limit of messages",
                    MISUSE,
                )


def _redacted_pointers(trace: RecordedTrace) -> tuple[str, ...]:
    prefix = "pointer:"
    return tuple(
        each.removeprefix(prefix) for each in trace.header.redacted if each.startswith(prefix)
    )
