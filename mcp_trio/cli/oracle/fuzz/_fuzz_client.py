"""`mcp-trio fuzz --client -- COMMAND`: play a client's server by scripts, and judge the client.

The output, the files and the exit statuses are the same as for `mcp-trio fuzz`.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import trio

from mcp_core import ConnectFailed
from mcp_core.adapters import read_recording
from mcp_core.drivers import launch_secrets
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._parser import new_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._target import read_environment
from mcp_trio.recording._open import open_recorder
from mcp_trio.streams._stdio import stop_on_signals

from ._accepted import show_accepted
from ._display import Display
from ._options import add_run_options, run_options
from ._run import STOP_TIME, begin_junit, campaign_options, finish, no_conversation, run_shown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mcp_core.adapters import Recording
    from mcp_trio.oracle.fuzz.campaign._campaign import Campaign
    from mcp_trio.streams._stdio import StopSignal

    from ._options import FuzzOptions

__all__ = ["parse"]

_USAGE: Final = "mcp-trio fuzz --client [options] -- COMMAND ARG..."
_DESCRIPTION: Final = """\
Starts a client again and again, and is its server: it answers late, twice, never, wrong, and asks
what the client did not declare. What the client sends is judged by the rules of the specification.
It may give up and exit; a crash, or a client that hangs when its connection has ended, is a
finding. In COMMAND, {server} is replaced by a command that the client can start as its server, and
{url} by the URL of a server. Without either the client speaks on its own stdin and stdout."""
_EPILOG: Final = """\
examples:
  mcp-trio fuzz --client -- mcp-trio inspect -- {server}
  mcp-trio fuzz --client --seconds 30 -- node client.js {url}

exit status:
  0    nothing was found, or advice only
  1    the client breaks at least one rule, crashes or hangs
  2    the command line is wrong
  3    no conversation: the client did not start or send anything, or does not any more
  4    nothing was judged: no case was played, or no fault that was seen could be played again
  70   an internal error of this command
  130  Ctrl+C; what was found is written
"""


def parse(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that runs the subcommand and returns the exit status.

    Raises:
        CliError: the command line is wrong.
        SystemExit: argparse has printed help or an error.
    """
    parser = new_parser("fuzz", usage=_USAGE, description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("--client", action="store_true", help="COMMAND is a client")
    add_run_options(parser)
    add("command", nargs="*", metavar="COMMAND", help="starts the client, after --")
    options = list(words)
    command: list[str] = []
    if "--" in options:
        place = options.index("--")
        options, command = options[:place], options[place + 1 :]
    found = parser.parse_args(options)
    if found.command or not command:
        raise CliError(
            "the command of the client is missing; put it after --, as in"
            " `mcp-trio fuzz --client -- mcp-trio inspect -- {server}`"
        )
    recording = read_recording(parser, found, Screen(sys.stderr).write_line)
    return partial(trio.run, _run, command, found, run_options(found), recording)


async def _run(
    command: list[str],
    found: argparse.Namespace,
    options: FuzzOptions,
    recording: Recording | None,
) -> int:
    scope = trio.CancelScope()
    # Before the imports, which take a second: a signal meanwhile is an orderly stop, too.
    with stop_on_signals(scope.cancel, patience=STOP_TIME) as stop:
        return await _run_campaign(command, found, options, recording, scope, stop)


async def _run_campaign(
    command: list[str],
    found: argparse.Namespace,
    options: FuzzOptions,
    recording: Recording | None,
    scope: trio.CancelScope,
    stop: StopSignal,
) -> int:
    from mcp_trio.oracle.fuzz._echo import Echo
    from mcp_trio.oracle.fuzz.client._client_campaign import ClientCampaign
    from mcp_trio.oracle.fuzz.client._client_target import ClientTarget
    from mcp_trio.oracle.fuzz.client._source import ScriptChoices, ScriptSource, probe_client

    if stop.caught:
        return stop.exit_code
    began = trio.current_time()
    stderr, stdout = Screen(sys.stderr), Screen(sys.stdout)
    begin_junit(options, command, launch_secrets(command))
    limits = campaign_options(options, is_command=True)
    more: dict[str, Any] = {
        "env": dict(read_environment(found, tuple(command), "")),
        "inherit_env": found.inherit_env,
        "cwd": str(found.cwd) if found.cwd else None,
    }
    target = ClientTarget(command, **more)
    campaign: Campaign | None = None
    transport = target.header().transport
    async with open_recorder(
        recording, "server", transport, command, secrets=target.secrets, fuzzer="server"
    ) as recorder:
        target.recorder = recorder
        with scope:
            try:
                offers = await probe_client(target, options.revisions, options.response_timeout)
            except ConnectFailed as exc:
                raise no_conversation(target, exc, options) from exc
            stderr.write_line(
                f"{offers.name or 'a client without a name'}, {', '.join(offers.revisions)};"
                f" {offers.requests + 1} requests; seed {options.seed}"
            )
            show_accepted(stderr, limits, ClientCampaign.side, offers.name)
            echo = Echo()
            await echo.begin()
            choices = ScriptChoices(offers, http=target.way == "http")
            display = Display(stderr, stdout, as_json=options.as_json)
            campaign = ClientCampaign(
                target,
                ScriptSource(choices, options.seed),
                choices,
                limits.after(trio.current_time() - began),
                echo=echo,
                on_finding=display.show_finding,
            )
            await run_shown(campaign, display, options.output)
    if campaign is None:
        return stop.exit_code
    return finish(options, campaign, offers, stdout, stderr, stop)
