"""Make the command line that starts a program on Windows, as a configuration file names it.

1. `npx` is `npx.cmd` there. The system itself would add only `.exe`, so the name is looked up here:
   in `PATH`, with endings of `PATHEXT`. The current directory isn't searched, unlike by the
   system: a program that lies there by chance, or by intent, must not be started.
2. A batch file (`.cmd`, `.bat`) is run by `cmd.exe`, which reads arguments as part of a command.
   Each argument is put in quotes. One that could end the quotes is rejected.

Sources: CreateProcessW, and "Parsing C++ command-line arguments", in the documentation of Windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from mcp_core._patterns import compile_on_first_use

__all__ = ["UnsafeArgument", "windows_command"]

# What the system can start, by default in this order. `PATHEXT` may have others, such as `.PY`.
_STARTABLE: Final = (".com", ".exe", ".bat", ".cmd")
_ENOENT: Final = 2
_BATCH: Final = (".bat", ".cmd")
# These mean nothing to `cmd.exe`, so an argument of them needs no quotes.
_PLAIN: Final = compile_on_first_use(r"[A-Za-z0-9#$*+\-./:?@\\_]+")
# `%` starts a variable, in quotes too. A quote ends the quotes, and a line break the command.
_UNSAFE: Final = compile_on_first_use(r'["%\r\n\0]')


class UnsafeArgument(ValueError):
    """An argument of a batch file that cannot be passed on unchanged."""

    __module__ = "mcp_core.processes"  # which exports it, for tracebacks and pickle


def windows_command(
    argv: Sequence[str], environ: Mapping[str, str], *, is_file: Callable[[str], bool]
) -> str | list[str]:
    """Return what `subprocess` is to start on Windows for a program and its arguments.

    That is a list with the program's path, or the command line of a batch file. A path that is
    not found stays as it is, and starting it fails.

    Args:
        argv: the program and its arguments.
        environ: the child's environment, with names in capitals.
        is_file: returns True if a file of this path exists.

    Raises:
        FileNotFoundError: the program is a name, and no directory of `PATH` has it.
        UnsafeArgument: the program is a batch file, and an argument has a double quote, a percent
            sign or a line break.
    """
    program = next(filter(is_file, _candidates(argv[0], environ)), argv[0])
    if not _has_directory(program):
        raise FileNotFoundError(_ENOENT, "no program of that name on PATH", program)
    if not program.lower().endswith(_BATCH):
        return [program, *argv[1:]]
    for word in (program, *argv[1:]):
        if _UNSAFE.search(word):
            raise UnsafeArgument(
                f'{program} is a batch file, and none can get {word!r} unchanged: it has a ", a %'
                " or a line break; start the program that it calls, such as node, instead"
            )
    return " ".join([f'"{program}"', *map(_quoted, argv[1:])])


def _has_directory(program: str) -> bool:
    return "/" in program or "\\" in program


def _candidates(program: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths at which the program may be, the first choice first."""
    if _has_directory(program):
        places = [program]
    else:
        directories = [entry.strip('"') for entry in environ.get("PATH", "").split(";")]
        places = [f"{entry.rstrip(chr(92))}\\{program}" for entry in directories if entry]
    # npm puts a script for other systems beside `npx.cmd`, with the name `npx`: without an ending
    # nothing is tried.
    endings = environ.get("PATHEXT", ";".join(_STARTABLE)).lower().split(";")
    if program.lower().endswith(_STARTABLE):
        endings = [""]
    for place in places:
        for ending in endings:
            if not ending or ending in _STARTABLE:
                yield place + ending


def _quoted(word: str) -> str:
    if _PLAIN.fullmatch(word) and not word.endswith("\\"):
        return word
    # Double the backslashes at the end: the program would read one before a quote as an escape.
    backslashes = len(word) - len(word.rstrip("\\"))
    return f'"{word}{chr(92) * backslashes}"'
