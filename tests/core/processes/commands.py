"""The words, texts and environments of each command, and the errors of each start.

    python -m tests.core.processes.commands

writes `commands.txt` again, which keeps them.
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_core.processes import (
    child_environment,
    command_hint,
    exit_text,
    list_form,
    member_form,
    program_text,
    split_command_line,
    start_problem,
    target_text,
    windows_command,
    with_exit_text,
    withheld_text,
)
from tests.kept import read_kept, write_kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["command_lines", "commands_to_read", "kept_commands"]

_FILE: Final = Path(__file__).with_name("commands.txt")

_LINES: Final = (
    "", " ", "npx", "npx -y x", " a  b\tc\n", '"a b" c', "'a b' c", 'a"b"c', 'a "" b', '""', 'a ""',
    'a """b" c', 'a "b""c" d', 'a "b" "c', "a 'b", "a\\", "a\\ b", "a \\\\", 'a \\"b',
    'a \\\\"b c"', 'a \\\\\\"b', '"C:\\d\\" x', 'C:\\d\\p.exe "x\\"', 'C:\\d\\p.exe "x\\\\" y',
    '"a\\b" "c\\d"', 'a "\\""', 'a """', 'a """"', '"""a', '"a""b" c', 'a b""c', "a$B `c` *",
    "--token=s3cret x", "npx --api-key s3cret", "TOKEN=s3cret npx x",
    "curl https://u:s3cret@h/?k=s3cret#s3cret", "https//u:s3cret@h?a=s3cret",
    "https://u:s3cret@h/p", "x" * 600, "a " + "y" * 600, "a\x1b[2J b", "a\u202eb", "é ü",
)  # fmt: skip

_ARGVS: Final[tuple[list[str], ...]] = (
    ["npx", "-y"], ["npx.cmd", "a b"], ["NPX.CMD", "a"], ["node", "a b", 'c"d'], ["script", "a"],
    ["both"], ["none"], ["C:\\d\\npx", "a"],
    ["C:/d/npx.cmd", "a\\", "b c\\\\", "", "d&e", "#$*+-./:?@_"], ["./x"], [".\\none"],
    ["npx", 'a"b'], ["npx", "%A%"], ["npx", "a\r"], ["npx", "a\n"], ["npx", "a\0"], ["old.com"],
    ["run.BAT", "x\\"],
)  # fmt: skip
_FILES: Final = frozenset(
    """
    C:\\p\\npx.cmd C:\\p\\npx C:\\q\\node.exe C:\\p\\script.py C:\\q\\both.exe C:\\p\\both.cmd
    C:\\q\\npx.exe C:\\d\\npx.bat C:/d/npx.cmd C:\\p\\old.com C:\\p\\run.BAT C:\\p\\NPX.CMD npx.cmd
    """.split()
)
_PATHS: Final[tuple[dict[str, str], ...]] = (
    {}, {"PATH": ""}, {"PATH": "C:\\p;C:\\q"},
    {"PATH": ';"C:\\p\\";C:\\q\\', "PATHEXT": ".PY;.EXE;.CMD"}, {"PATH": "C:\\q", "PATHEXT": ""},
)  # fmt: skip

_ERRORS: Final = (
    OSError(errno.ENOENT, "not there", "x"),
    OSError(errno.ENOENT, "not there", "/d"),
    OSError(errno.EACCES, "not allowed", "x"),
    OSError(errno.ENOEXEC, "no format", "x"),
    OSError(errno.ENOTDIR, "no directory", "/d"),
    OSError(errno.ENOTDIR, "no directory", "x"),
    OSError(errno.E2BIG, "too long"),
)
_ENVIRONS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"PATH": "/bin", "HOME": "", "TERM": "() { :; }", "TOKEN": "s"},
    {"Path": "C:\\p", "SystemRoot": "C:\\w", "APPDATA": "a", "Token": "s", "MCP_TRIO_CHILD": "n"},
    {"HTTP_PROXY": "p", "https_proxy": "p", "NO_PROXY": "", "DISPLAY": ":0", "KUBECONFIG": "k"},
)
_ENVS: Final[tuple[dict[str, str] | None, ...]] = (
    None,
    {"A": "1", "path": "/x"},
    {"http_proxy": "p", "HTTPS_PROXY": "q"},
)

_STDERRS: Final = (
    b"", b"\n \n", b"one\n", b"one\n\ntwo\r\nthree\nfour\nfive\nsix\n", b"\xff\x1b[31m\n",
    b"x" * 300 + b"\n" + b"y" * 301, b"ValueError: no\n" + b"  at a\n" * 5,
    b"Error: no\n" + b"  at a\n" * 4, b"Error: no\n" + b"  at a\n" * 29,
    b"Error: no\n" + b"  at a\n" * 30, b"Error: first\na\nError: second\n" + b"  b\n" * 6,
    b"a\nb\nc\nd\ne\nTypeError: x\n", b"error: x\nE\nfatal: y\n" + b"z\n" * 6,
    b"npm ERR! x\n" + b"z\n" * 6, b"a: b\npanic: c\n" + b"z\n" * 6,
)  # fmt: skip


def commands_to_read() -> dict[str, Iterator[str]]:
    """Return the lines of each kind of text, which are made as they are read, by its name."""
    return {
        "command lines": _of_lines(),
        "other targets": _of_targets(),
        "commands on Windows": _of_windows(),
        "starts": _of_starts(),
        "environments": _of_environments(),
        "exits": _of_exits(),
    }


def command_lines(lines: Iterator[str]) -> str:
    """Return lines as one text, in ASCII."""
    return "\n".join(lines).encode("ascii", "backslashreplace").decode()


def _of_lines() -> Iterator[str]:
    for line in _LINES:
        yield f"  {line[:60]!r} ({len(line)})"
        yield f"    POSIX {_tried(split_command_line, line, windows=False)[:200]}"
        yield f"    Windows {_tried(split_command_line, line, windows=True)[:200]}"
        shown = program_text(line)
        yield f"    program {shown[:100]!r} ({len(shown)}) {command_hint(line)[:150]}"
        yield f"    list {_cut(list_form(line))} members {_cut(member_form(line))}"
        yield f"    target {_cut(target_text(line))}"


def _of_targets() -> Iterator[str]:
    targets: tuple[Any, ...] = ([], (), ["a"], {}, None, 1, b"x", Path("x"))
    for target in targets:
        yield f"  {target_text(target)}"


def _of_windows() -> Iterator[str]:
    for argv in _ARGVS:
        yield f"  {argv}"
        for environ in _PATHS:
            found = _tried(windows_command, argv, environ, is_file=_FILES.__contains__)
            yield f"    {environ.get('PATH')}: {found}"


def _of_starts() -> Iterator[str]:
    for program in "x", "d/x", "d\\x", "x --y", "d/x y":
        for error in _ERRORS:
            found: dict[str, list[str]] = {}
            for name, cwd, is_there, windows in (
                ("plain", None, False, False),
                ("there", None, True, False),
                ("in a directory", "/d", False, False),
                ("on Windows", None, False, True),
                ("there on Windows", None, True, True),
            ):
                text = start_problem(
                    program,
                    error,
                    cwd=cwd,
                    is_there={True: _yes, False: _no}[is_there],
                    windows=windows,
                )
                found.setdefault(text, []).append(name)
            yield f"  {program} {error.strerror} {error.filename}"
            yield from (f"    {', '.join(names)}: {text}" for text, names in found.items())


def _yes(_: str) -> bool:
    return True


def _no(_: str) -> bool:
    return False


def _of_environments() -> Iterator[str]:
    for environ in _ENVIRONS:
        yield f"  {environ}"
        for env in _ENVS:
            for windows in False, True:
                for inherits in False, True:
                    given = child_environment(
                        environ, env, inherit_env=inherits, mark="m", windows=windows
                    )
                    yield f"    {env} {windows} {inherits}: {given}"
                    yield f"      {withheld_text(environ, given)!r}"


def _of_exits() -> Iterator[str]:
    for stderr in _STDERRS:
        for status in None, 0, 1, -9:
            text = exit_text(status, stderr)
            yield f"  {status} {stderr[:20]!r}: {text!r}"
        yield f"    {with_exit_text(f'closed{exit_text(None, stderr)}', exit_text(2, b'z'))!r}"
        yield f"    {with_exit_text(f'closed{exit_text(1, stderr)}', exit_text(-2, stderr[:9]))!r}"


def _cut(text: str) -> str:
    return text if len(text) < 150 else f"{text[:60]}...{text[-20:]} ({len(text)})"


def _tried(function: Callable[..., Any], *args: Any, **options: Any) -> str:
    try:
        return repr(function(*args, **options))
    except (OSError, ValueError) as error:
        return f"! {error}"


def kept_commands() -> dict[str, str]:
    """Return the lines in the file, by their names."""
    return read_kept(_FILE)


if __name__ == "__main__":
    write_kept(_FILE, {name: command_lines(lines) for name, lines in commands_to_read().items()})
