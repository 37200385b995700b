"""`mcp-trio completion`: a script for a shell to complete command lines of `mcp-trio`.

The script is generated from the parsers of all subcommands by shtab. It starts no program: it knows
subcommands, options, their choices, and files and directories, but not what a server offers.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

from mcp_trio.cli._parser import READ_PARSER, SUBCOMMANDS_OF_PARSER, ParserRead, new_parser
from mcp_trio.cli._screen import Screen
from mcp_trio.cli._subcommands import SUBCOMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_trio.cli._subcommands import Subcommand

    Command = Callable[[Sequence[str]], Callable[[], int]]

__all__ = ["parse"]

SHELLS: Final = ("bash", "fish", "zsh")  # tests run the script in each of them
# What completes an argument with this metavar.
_PATHS: Final = {
    "DIRECTORY": "directory",
    "FILE": "file",
    "FILE[:NAME]": "file",
    "PATH": "file",
    "REPORT": "file",
}
_WORDS: Final = "words"  # the arguments that may be repeated; after `--` a server's command

_DESCRIPTION: Final = """\
Prints a script by which SHELL completes command lines of mcp-trio. Save it where the shell looks
for such scripts, and start a new shell:

  mcp-trio completion bash > ~/.local/share/bash-completion/completions/mcp-trio
  mcp-trio completion fish > ~/.config/fish/completions/mcp-trio.fish
  mcp-trio completion zsh > ~/.zfunc/_mcp-trio

bash needs the package bash-completion for that, or `source FILE` in ~/.bashrc. zsh needs the line
fpath=(~/.zfunc $fpath) in ~/.zshrc, before compinit."""


def parse(words: Sequence[str]) -> Callable[[], int]:
    """Return a function that prints the script and returns the exit status."""
    parser = new_parser("completion", description=_DESCRIPTION)
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    found = parser.parse_args(words)

    def print_script() -> int:
        import shtab

        full = new_parser(None, description="Model Context Protocol")
        full.add_argument("--version", action="version", help="print the version")
        _add_parsers(full, SUBCOMMANDS, found.shell)
        script = shtab.complete(full, found.shell)
        # shtab lets zsh complete only one of the words that may be repeated.
        script = script.replace('"(*)::', '"*:') if found.shell == "zsh" else script
        Screen(sys.stdout).write_bytes(f"{script}\n".encode())
        return 0

    return print_script


def _add_parsers(
    parser: argparse.ArgumentParser, table: Mapping[str, Subcommand], shell: str
) -> None:
    """Add the parsers of subcommands to their command's parser."""
    subparsers = parser.add_subparsers()
    for name, subcommand in table.items():
        parent = _read_parser(subcommand.parse, shell)
        inner: Mapping[str, Subcommand] | None = parent.get_default(SUBCOMMANDS_OF_PARSER)
        # A shell shows the first line of a description, and a subcommand's has several.
        added = subparsers.add_parser(
            name,
            parents=[parent] if inner is None else [],
            add_help=inner is not None,
            help=subcommand.summary,
            description=subcommand.summary,
        )
        if inner is not None:
            _add_parsers(added, inner, shell)


def _read_parser(command: Command, shell: str) -> argparse.ArgumentParser:
    """Return the parser of a subcommand, whose paths have the attribute `complete` of shtab."""
    try:
        command([READ_PARSER])
    except ParserRead as exc:
        parser = exc.parser
    else:
        raise AssertionError("it has not parsed its words")
    import shtab

    kinds: Mapping[str, object] = {"file": shtab.FILE, "directory": shtab.DIRECTORY}
    for action in parser._actions:
        kind = "file" if action.dest == _WORDS else _PATHS.get(str(action.metavar))
        if kind is not None:
            action.complete = kinds[kind]  # type: ignore[attr-defined]
        if action.dest == _WORDS and action.help == argparse.SUPPRESS:
            action.help = "after --, the command that starts the server"
        if shell == "zsh" and isinstance(action.metavar, str):
            action.metavar = action.metavar.replace(":", r"\:")  # shtab leaves it as it is
    return parser
