"""`mcp-trio completion`: the scripts, used by the shells that they are for."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from mcp_core import ALL
from mcp_trio.cli import _completion, _options, main
from mcp_trio.cli._subcommands import SUBCOMMANDS
from tests.harness.world.command import COMMAND, output_of, run
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Mapping

COMMANDS: Final = set(SUBCOMMANDS)
FILES: Final = {"exdir/", "exfile.py", "exother.txt"}
# A command line, and the words by which a shell may complete the last one.
CASES: Final[Mapping[str, set[str]]] = {
    "mcp-trio ": COMMANDS,
    "mcp-trio ins": {"inspect", "install"},
    "mcp-trio inspect --rev": {"--revision"},
    "mcp-trio inspect --json --keyc": {"--keychain"},
    "mcp-trio inspect --revision ": set(ALL),
    "mcp-trio call TOOL --log-level em": {"emergency"},
    "mcp-trio call TOOL a=b --rev": {"--revision"},
    "mcp-trio call TOOL --det": {"--detach"},
    "mcp-trio tasks ": {"get", "result", "cancel", "list"},
    "mcp-trio tasks result --ans": {"--answer"},
    "mcp-trio tasks list exf": {"exfile.py"},
    "mcp-trio tasks get REFERENCE exf": {"exfile.py"},
    "mcp-trio login --no": {"--no-browser", "--no-resource"},
    "mcp-trio completion ": {"bash", "fish", "zsh"},
    "mcp-trio servers ": {
        *("list", "approve", "add", "get", "remove", "enable", "disable", "import")
    },
    "mcp-trio servers list --no": {"--no-connect"},
    "mcp-trio servers approve --al": {"--all"},
    "mcp-trio call TOOL --ser": {"--server"},
    "mcp-trio login --ser": {"--server"},
    "mcp-trio inspect --config exo": {"exother.txt"},
    "mcp-trio servers im": {"import"},
    "mcp-trio servers add NAME --rep": {"--replace"},
    "mcp-trio servers add NAME exf": {"exfile.py"},
    "mcp-trio servers remove --scope ": {"user", "project", "local"},
    "mcp-trio servers import --from cu": {"cursor"},
    "mcp-trio servers get --config exo": {"exother.txt"},
    "mcp-trio bench --mark": {"--markdown"},
    "mcp-trio bench --era leg": {"legacy"},
    "mcp-trio bench --list te": {"templates"},
    "mcp-trio bench --json exf": {"exfile.py"},
    "mcp-trio run ex": FILES,
    "mcp-trio run --http 8000 exf": {"exfile.py"},
    "mcp-trio run --http ": set(),
    "mcp-trio inspect --header ": set(),
    "mcp-trio read URI --output exo": {"exother.txt"},
    "mcp-trio call TOOL --root ex": FILES,
    "mcp-trio inspect --cwd ex": {"exdir/"},
    "mcp-trio inspect -- ex": FILES,
    "mcp-trio inspect --json -- python exf": {"exfile.py"},
    "mcp-trio call TOOL a=b c=d -- python exf": {"exfile.py"},
}
# As many seconds as a shell may take, on a busy machine.


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with a script for each shell in `scripts`, and some files."""
    place = tmp_path / "files"
    (place / "exdir").mkdir(parents=True)
    (place / "exfile.py").touch()
    (place / "exother.txt").touch()
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for shell, name in ("bash", "bash"), ("fish", "fish"), ("zsh", "_mcp-trio"):
        (scripts / name).write_text(output_of("completion", shell))
    return place


def output(words: list[str], directory: Path) -> str:
    environment = {**os.environ, "HOME": str(directory), "XDG_CONFIG_HOME": str(directory)}
    result = subprocess.run(
        words,
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_with_the_script(directory: Path) -> None:
    """A real bash plays the Tab key: it sets the variables and calls the registered function."""
    program = """
        set -u
        source ../scripts/bash
        function=$(complete -p mcp-trio | sed 's/.*-F \\([^ ]*\\) mcp-trio$/\\1/')
        for line in "$@"; do
            read -ra COMP_WORDS <<<"$line"
            [[ $line == *" " ]] && COMP_WORDS+=("")
            COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
            "$function"
            for word in ${COMPREPLY[@]+"${COMPREPLY[@]}"}; do
                [[ -d $word ]] && word+=/  # as -o filenames does
                printf '%s ' "$word"
            done
            echo
        done
    """
    lines = output(["bash", "--norc", "-c", program, "bash", *CASES], directory).splitlines()
    found = dict(zip(CASES, map(str.split, lines), strict=True))
    assert {line: set(words) for line, words in found.items()} == dict(CASES)


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_with_the_script(directory: Path) -> None:
    program = """
        source ../scripts/fish
        for line in $argv
            echo -s (complete -C $line | string replace -r '\\t.*' '')' '
        end
    """
    lines = output(["fish", "--no-config", "-c", program, *CASES], directory).splitlines()
    found = dict(zip(CASES, map(str.split, lines), strict=True))
    assert {line: set(words) for line, words in found.items()} == dict(CASES)


def test_completion_with_reader_that_has_enough_prints_no_error(tmp_path: Path) -> None:
    """The reader of a pipe may close it early, as `head` does."""
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [*COMMAND, "completion", "bash"], stdout=theirs, stderr=subprocess.PIPE, check=False
    )
    os.close(theirs)
    assert (done.stderr, done.returncode) == (b"", 0)


# Collect what the completion functions add, and print it in place of the list in the editor.
ZSH: Final = r"""
PS1='' zle_highlight=(none); stty -echo; fpath=(../scripts $fpath)
autoload -Uz compinit; compinit -u -D
compadd() {
  local -a matches
  [[ " $* " == *\ -[AOD]\ * ]] || { builtin compadd -O matches "$@"; found+=($matches) }
  builtin compadd "$@"
}
_show() { found=(); zle complete-word; print -r -- "BEGIN ${(u)found} END"; BUFFER='' }
zle -N _show; bindkey '^I' _show; print RE''ADY
"""


class Zsh:
    """An interactive zsh at a pseudo-terminal: it completes nowhere else."""

    def __init__(self, directory: Path) -> None:
        self._our_end, their_end = pty.openpty()
        self._process = subprocess.Popen(
            ["zsh", "-f", "-i"],
            cwd=directory,
            env={**os.environ, "TERM": "dumb", "HOME": str(directory)},
            stdin=their_end,
            stdout=their_end,
            stderr=their_end,
            start_new_session=True,
        )
        os.close(their_end)
        (directory.parent / "setup").write_text(ZSH)
        self._type(". ../setup\n", until="READY")

    def close(self) -> None:
        os.close(self._our_end)
        self._process.kill()
        self._process.wait()

    def complete(self, line: str) -> set[str]:
        """Return the completions of the last word, when Tab is pressed after `line`."""
        shown = self._type(f"{line}\t", until=" END")
        assert "_arguments" not in shown  # the beginning of an error of the script
        return set(shown.rpartition("BEGIN ")[2].removesuffix(" END").split())

    def _type(self, text: str, *, until: str) -> str:
        """Type `text`, and return what is shown until the end of `until`."""
        os.write(self._our_end, text.encode())
        shown = ""
        give_up = time.monotonic() + PATIENCE
        while until not in shown:
            ready, _, _ = select.select([self._our_end], [], [], give_up - time.monotonic())
            assert ready, f"zsh shows {shown!r}"
            shown += os.read(self._our_end, 65_536).decode(errors="replace")
        return shown.partition(until)[0] + until


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
def test_zsh_completes_with_the_script(directory: Path) -> None:
    zsh = Zsh(directory)
    try:
        found = {line: zsh.complete(line) for line in CASES}
    finally:
        zsh.close()
    assert found == {line: {word.rstrip("/") for word in words} for line, words in CASES.items()}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_argument_that_is_a_path_is_completed(command: str) -> None:
    parser = _completion._read_parser(SUBCOMMANDS[command].parse, "bash")
    paths = [
        action
        for action in parser._actions
        if action.type in (Path, _options.existing_path)
        or re.search("(?<!@)FILE|PATH|DIRECTORY", str(action.metavar))  # NAME@FILE has a name first
    ]
    assert [action.dest for action in paths if not hasattr(action, "complete")] == []


@pytest.mark.parametrize("shell", ["tcsh", "powershell"])
def test_completion_of_another_shell_is_refused(shell: str) -> None:
    result = run("completion", shell)
    assert (result.returncode, result.stdout) == (2, "")
    assert "choose from 'bash', 'fish', 'zsh'" in result.stderr


def test_option_that_reads_the_parser_is_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["inspect", "--help"])
    assert "\0" not in capsys.readouterr().out
    assert "\0" not in output_of("completion", "bash")
