"""`mcp-trio proxy`: stand between a client and a server, record what crosses, and judge it.

1. stdout and stdin carry the conversation, and nothing else. Findings go to stderr, where hosts put
   them in the server's log.
2. A proxy keeps the transport: stdio in front of a command, HTTP in front of a URL. A bridge
   between the two would have to speak MCP by itself, and could not pass bytes unchanged.
3. A client waits for its server to start, so modules that only HTTP, a recording or the judge needs
   are imported on first use.
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import trio

from mcp_core.adapters import add_recording_options, listen_address, read_recording
from mcp_core.urls import is_local_host, redacted_url
from mcp_trio.cli._errors import NO_CONNECTION, NOTHING_JUDGED, CliError
from mcp_trio.cli._options import add_configured_options, refuse_yes
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._target import (
    configured_target,
    is_url,
    refuse_configured_options,
    require_url,
)
from mcp_trio.oracle.proxy._stdio import run_stdio_proxy
from mcp_trio.streams._stdio import standard_streams, stop_on_signals

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable, Sequence

    from mcp_core.adapters import Recorder, Recording
    from mcp_core.http import Url
    from mcp_trio.cli._session import Target
    from mcp_trio.cli.configured._launch import ConfiguredLaunch

__all__ = ["parse", "proxy_command", "proxy_url"]

_USAGE: Final = (
    "mcp-trio proxy [options] -- COMMAND ARG...\n"
    "       mcp-trio proxy [options] --http [HOST:]PORT URL\n"
    "       mcp-trio proxy [options] --server NAME"
)
_DESCRIPTION: Final = """\
Starts the server COMMAND and passes all bytes between it and the client that starts this command,
unchanged and at once. In the configuration of a client it stands before the command of the server.
With --http it passes the requests that arrive at PORT on to the server at URL. With --server it
does so for a server of the configuration files, with the variables or headers that it has there."""
_EPILOG: Final = """\
example:
  mcp-trio proxy --record a.mcp.jsonl -- node server.js
  mcp-trio proxy --check --http 9000 http://127.0.0.1:8000/mcp

exit status: that of COMMAND, or 128 + N if signal N has ended it; but
  1    with --check, at least one rule is broken
  2    the command line is wrong
  3    COMMAND cannot be started, or the command cannot listen at PORT
  4    with --check, if COMMAND ends with 0: the judge has not seen a message of each side
  130  Ctrl+C (with --http)
  143  SIGTERM (with --http)
"""

_WITHOUT_PORT: Final = (
    "a proxy keeps the transport: add --http 9000, and give the client the URL that this prints"
)

# The variable with the configured servers of the proxies that have started this process. An entry
# that names itself would start proxies without end.
_CHAIN: Final = "MCP_TRIO_PROXY_CHAIN"
# Seconds for which a thread of Python may keep others from running. The recorder and the judge run
# in one, and a message must not wait for them. The default of Python is 0.005.
_SWITCH_INTERVAL: Final = 0.0002


def parse(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs the subcommand and returns the exit status."""
    parser = new_parser("proxy", usage=_USAGE, description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("url", metavar="URL", nargs="?", help="the server, with --http")
    parser.add_argument(
        "--http",
        metavar="[HOST:]PORT",
        type=listen_address,
        help="listen there for the clients of the server at URL; HOST is 127.0.0.1 by default, for"
        " this machine only; PORT 0 is any free port",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="judge the conversation by the rules of the specification, as `mcp-trio check` does,"
        " and print what is found on stderr",
    )
    add_recording_options(parser)
    add_configured_options(parser)
    refuse_yes(parser, "a proxy calls no tools. --approve-server NAME lets a server start")
    parser.set_defaults(trace=False, keychain=False)
    cut = words.index("--") if "--" in words else len(words)
    found = parser.parse_args(words[:cut])
    command = list(words[cut + 1 :])
    if len(command) == 1 and is_url(command[0]) and found.url is None:
        found.url = command.pop()
    if found.server_name is not None or found.config is not None:
        if command or found.url is not None:
            parser.error("give a URL or a command, or --server and --config, and not both")
        target = configured_target(parser, found, found.server_name)
        return partial(_proxy_configured, target, found)
    refuse_configured_options(parser, found)
    recording = read_recording(parser, found, Screen(sys.stderr).write_line)
    if found.url is not None:
        if command:
            parser.error("give a URL or a command, and not both")
        url = _parse_url(found.url, command_line=shlex.join(words))
        if found.http is None:
            raise CliError(_WITHOUT_PORT)
        return partial(proxy_url, url, *found.http, recording=recording, judges=found.check)
    if not command:
        raise CliError(
            "no server: give after `--` the command that starts it: mcp-trio proxy -- python"
            " server.py; or its URL: mcp-trio proxy --http 9000 http://127.0.0.1:8000/mcp"
        )
    if found.http is not None:
        raise CliError(
            "a proxy keeps the transport, and a command talks over stdio: leave --http out; or"
            " start the server, and give its URL in place of the command"
        )
    if "://" in command[0]:
        raise CliError(f"{redacted_url(command[0])} is not a command")
    return partial(proxy_command, command, recording=recording, judges=found.check)


def _proxy_configured(target: Target, found: argparse.Namespace) -> int:
    """Stand in front of a server of the configuration files, and return the exit status.

    Raises:
        CliError: it isn't approved, is disabled, or has another transport than the command line.
    """
    from mcp_trio.cli.configured._launch import find_launch, transport_of

    is_stdio = transport_of(target) == "stdio"
    if is_stdio and found.http is not None:
        raise CliError(
            f"a proxy keeps the transport, and {target.name} has a command, which talks over stdio:"
            " leave --http out"
        )
    if not is_stdio and found.http is None:
        raise CliError(_WITHOUT_PORT)
    launch = find_launch(
        target, "proxy", ("stdio", "http", "sse"), handles_login=True, passes_on=True
    )
    chain = os.environ.get(_CHAIN, "").splitlines()
    if launch.key in chain:
        raise CliError(
            f"the command of the server {launch.name} is a proxy for {launch.name}: write the"
            " server's own command after `--` in place of --server",
            NO_CONNECTION,
        )
    if isinstance(launch.server, str):
        if launch.headers and not is_local_host(found.http[0]):
            raise CliError(
                f"other machines would use the server {launch.name} with the headers of its entry:"
                " leave HOST out of --http, or the headers out of the entry"
            )
        return proxy_url(
            launch.url_to_pass_on(),
            *found.http,
            recording=target.recording,
            judges=found.check,
            launch=launch,
        )
    launch = replace(launch, env={**launch.env, _CHAIN: "\n".join([*chain, launch.key])})
    return proxy_command(
        launch.server, recording=target.recording, judges=found.check, launch=launch
    )


def _parse_url(text: str, command_line: str) -> Url:
    if not is_url(text):
        raise CliError(
            f"{redacted_url(text)} is not a URL; a command comes after `--`: mcp-trio proxy --"
            f" {shlex.quote(text)}"
        )
    require_url(text)
    from mcp_core.http import Url

    try:
        return Url.parse(text)
    except ValueError:
        raise CliError("a proxy passes no WebSockets: give a URL of http or https") from None


def proxy_command(
    argv: Sequence[str],
    *,
    recording: Recording | None,
    judges: bool,
    launch: ConfiguredLaunch | None = None,
) -> int:
    """Pass bytes between stdin and stdout and the server that `argv` starts, until it has ended.

    Args:
        argv: the program and its arguments.
        recording: the trace file, None without one.
        judges: whether the conversation is judged.
        launch: what a configuration file says about the server, None without one.

    Returns:
        the exit status.

    Raises:
        CannotRecord: the trace file cannot be opened.
        ConnectFailed: the server cannot be started, or stdin or stdout is closed.
    """

    async def run(recorder: Recorder | None) -> int:
        with standard_streams() as client:
            if launch is None:
                status = await run_stdio_proxy(client, argv, recorder=recorder)
            else:
                status = await run_stdio_proxy(
                    client,
                    argv,
                    env=launch.env,
                    inherit_env=False,
                    cwd=launch.cwd,
                    recorder=recorder,
                    shown=launch.unexpanded,
                )
        return 128 - status if status < 0 else status

    return trio.run(_observe, run, recording, judges, "stdio", argv, launch)


def proxy_url(
    url: Url,
    host: str,
    port: int,
    *,
    recording: Recording | None,
    judges: bool,
    launch: ConfiguredLaunch | None = None,
) -> int:
    """Listen, and pass requests on to the server at `url`, until a signal arrives.

    Args:
        url: the server.
        host: the address to listen on.
        port: the port, 0 for any free one.
        recording: the trace file, None without one.
        judges: whether the conversations are judged.
        launch: what a configuration file says about the server, None without one.

    Returns:
        the exit status.

    Raises:
        CannotRecord: the trace file cannot be opened.
        CliError: it cannot listen on the address.
    """
    from mcp_trio._nursery import open_quiet_nursery
    from mcp_trio.cli._unblocked_stderr import unblocked_stderr
    from mcp_trio.cli.run._run import access_log_printer
    from mcp_trio.http_server._serve import CannotListen
    from mcp_trio.oracle.proxy._http import serve_http_proxy

    shown = redacted_url(url.text)[1:-1] if launch is None else f"the server {launch.name}"

    async def run(recorder: Recorder | None) -> int:
        stop = trio.Event()
        with unblocked_stderr() as stderr, stop_on_signals(stop.set) as stopped:
            screen = Screen(stderr)
            async with open_quiet_nursery() as nursery:
                serve = partial(
                    serve_http_proxy,
                    url,
                    host,
                    port,
                    headers=None if launch is None else launch.headers,
                    recorder=recorder,
                    on_exchange=access_log_printer(screen),
                )
                address = await nursery.start(serve)
                screen.write_line(
                    "Passing ",
                    (address.url, "bold cyan"),
                    f" on to {shown} (Ctrl+C ends it)",
                )
                await stop.wait()
        return stopped.exit_code

    try:
        return trio.run(_observe, run, recording, judges, "http", [url.text], launch)
    except CannotListen as exc:
        raise CliError(exc.strerror, NO_CONNECTION) from exc


async def _observe(
    run: Callable[[Recorder | None], Awaitable[int]],
    recording: Recording | None,
    judges: bool,
    transport: str,
    target: Sequence[str],
    launch: ConfiguredLaunch | None,
) -> int:
    """Run a proxy with the recorder and the judge that are wanted, and return the exit status."""
    if recording is None and not judges:
        return await run(None)
    from mcp_core.adapters import Recording
    from mcp_trio.recording._open import open_recorder

    # Without a file the recorder still makes the lines that are judged, and writes them nowhere.
    recording = recording or Recording(path=os.devnull, file_limit=sys.maxsize)
    sys.setswitchinterval(_SWITCH_INTERVAL)
    judge = None
    if judges:
        from ._live_judge import LiveJudge

        judge = LiveJudge()
    on_line = None if judge is None else judge.receive
    secrets: frozenset[str] = frozenset()
    if launch is not None:
        target, secrets = launch.unexpanded, launch.secrets
    opened = open_recorder(recording, "between", transport, target, on_line, secrets)
    async with opened as recorder:
        assert recorder is not None
        if judge is not None:
            judge.start(recorder.header)
        status = await run(recorder)
    if judge is None:
        return status
    # This blocks the event loop, which has nothing else to do: a signal ends this command at once.
    verdict = judge.finish(is_complete=recorder.is_closed)
    # The server's exit status counts more than "nothing to judge", and less than other verdicts.
    return status or verdict if verdict == NOTHING_JUDGED else verdict or status
