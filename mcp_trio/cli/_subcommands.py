"""The tables of subcommands: a sentence for the help of each, and the function that parses it.

A module is imported when its subcommand is used. Its function, `parse` in most modules, gets the
words after the subcommand, declares the options, and returns a function that runs the subcommand.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["SERVERS_SUBCOMMANDS", "SUBCOMMANDS", "Subcommand"]


class Subcommand(NamedTuple):
    """A row of a table."""

    summary: str
    module: str  # in this package
    function: str = "parse"

    def parse(self, words: Sequence[str]) -> Callable[[], int]:
        """Return a function that runs the subcommand and returns the exit status.

        Raises:
            SystemExit: argparse has printed help or an error.
            CliError: the command line is invalid in a way that argparse doesn't detect.
        """
        module = import_module(f".{self.module}", __package__)
        return cast("Callable[[], int]", getattr(module, self.function)(words))


SUBCOMMANDS: Final = {
    "demo": Subcommand("watch a client and a server talk, message by message", "use._demo"),
    "run": Subcommand("serve what a Python file declares, over stdio or HTTP", "run._run_options"),
    "inspect": Subcommand("show what a server offers", "use._inspect"),
    "doctor": Subcommand("find out why a server cannot be used, step by step", "use._doctor"),
    "call": Subcommand("call a tool of a server", "use._call"),
    "read": Subcommand("read a resource of a server", "use._read"),
    "prompt": Subcommand("get a prompt of a server, with its arguments filled in", "use._prompt"),
    "complete": Subcommand(
        "get suggestions for an argument of a prompt or template", "use._complete"
    ),
    "listen": Subcommand(
        "print a line whenever something that a server offers changes", "use._listen"
    ),
    "tasks": Subcommand(
        "get, wait for, cancel or list calls that a server runs as tasks", "use._tasks"
    ),
    "login": Subcommand("get an access token for a server that requires one", "use._login_options"),
    "show": Subcommand("print a conversation that --record has recorded", "oracle._show"),
    "check": Subcommand(
        "judge a recorded conversation by the rules of the specification", "oracle._check_options"
    ),
    "fuzz": Subcommand(
        "draw conversations with a server, and judge what it does", "oracle.fuzz._fuzz"
    ),
    "bench": Subcommand("measure how fast servers respond, and compare them", "oracle._bench"),
    "proxy": Subcommand(
        "record and judge what passes between a client and a server", "oracle._proxy"
    ),
    "replay": Subcommand(
        "be the server, or the client, of a recorded conversation", "oracle._replay"
    ),
    "diff": Subcommand("compare two recorded conversations", "oracle._diff"),
    "completion": Subcommand(
        "print a script that completes command lines in a shell", "_completion"
    ),
    "servers": Subcommand("add, show and change servers in configuration files", "servers._parser"),
    "install": Subcommand(
        "register a Python file with a program such as Claude Code or VS Code", "run._install"
    ),
}

# The subcommands of `mcp-trio servers`.
SERVERS_SUBCOMMANDS: Final = {
    "list": Subcommand(
        "show all servers, their states, and what has changed since it was approved",
        "servers._parser",
        "parse_list",
    ),
    "approve": Subcommand("approve what servers run and offer", "servers._parser", "parse_approve"),
    "add": Subcommand("write a server into a configuration file", "servers._parser", "parse_add"),
    "get": Subcommand(
        "show the entry that is used for a server, and its problems", "servers._parser", "parse_get"
    ),
    "remove": Subcommand(
        "remove a server from a configuration file", "servers._parser", "parse_remove"
    ),
    "enable": Subcommand("turn on a server that was turned off", "servers._parser", "parse_enable"),
    "disable": Subcommand(
        "turn a server off, and keep its entry", "servers._parser", "parse_disable"
    ),
    "import": Subcommand(
        "copy servers from the file of another program", "servers._parser", "parse_import"
    ),
}
