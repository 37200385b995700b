"""Names of programs and command lines on Windows, as tables."""

from __future__ import annotations

import pytest

from mcp_core.processes import UnsafeArgument, windows_command

FILES = {
    r"C:\node\npx",
    r"C:\node\npx.cmd",
    r"C:\node\node.exe",
    r"C:\late\node.exe",
    r"C:\late\tool.cmd",
    r"C:\late\tool.exe",
    r"C:\late\old.bat",
    r"C:\late\script.py",
    r"C:\Program Files\it\it.cmd",
    r"\unknown.exe",  # in the root, where an empty part of PATH doesn't lead
    "here.exe",
}
ENVIRON = {
    "PATH": '"C:\\node\\";;C:\\late;C:\\Program Files\\it',
    "PATHEXT": ".COM;.EXE;.BAT;.CMD;.PY;.MSC",
}


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["node", "a b.js"], [r"C:\node\node.exe", "a b.js"]),
        (["NODE.EXE"], [r"C:\node\NODE.EXE"]),
        (["tool"], [r"C:\late\tool.exe"]),  # in the order of PATHEXT
        (["tool.cmd"], r'"C:\late\tool.cmd"'),
        (["old", "x"], r'"C:\late\old.bat" x'),
        ([r"C:\late\tool"], [r"C:\late\tool.exe"]),
        (["C:/nowhere/tool", "x"], ["C:/nowhere/tool", "x"]),
        (["npx", "-y", "pkg@1.2", r"C:\dir"], r'"C:\node\npx.cmd" -y pkg@1.2 C:\dir'),
        (
            ["npx", "https://h/?a=1&b=2", "a b", "", "(x|y)", "\u00e9"],
            '"C:\\node\\npx.cmd" "https://h/?a=1&b=2" "a b" "" "(x|y)" "\u00e9"',
        ),
        (["npx", "C:\\dir\\"], '"C:\\node\\npx.cmd" "C:\\dir\\\\"'),
        (["it"], r'"C:\Program Files\it\it.cmd"'),
    ],
)
def test_windows_command_of_argv(argv: list[str], command: str | list[str]) -> None:
    # The file system does not distinguish case.
    lower = {name.lower() for name in FILES}
    environ = ENVIRON
    assert windows_command(argv, environ, is_file=lambda p: p.lower() in lower) == command


@pytest.mark.parametrize("word", ['{"a": 1}', "%PATH%", "100%", "a\nb", "a\rb", "a\0b", '" & calc'])
def test_windows_command_rejects_words_that_a_batch_file_would_change(word: str) -> None:
    with pytest.raises(UnsafeArgument, match="is a batch file") as error:
        windows_command(["npx", word], ENVIRON, is_file=FILES.__contains__)
    assert "start the program that it calls" in str(error.value)
    assert windows_command(["node", word], ENVIRON, is_file=FILES.__contains__) == [
        r"C:\node\node.exe",
        word,
    ]


def test_windows_command_without_pathext_tries_what_the_system_starts() -> None:
    environ = {"PATH": ENVIRON["PATH"]}
    assert windows_command(["npx"], environ, is_file=FILES.__contains__) == r'"C:\node\npx.cmd"'


# The system starts no `.py`, and would search the current directory.
@pytest.mark.parametrize("program", ["unknown", "script", "here", "here.exe", ""])
def test_windows_command_not_on_path_raises(program: str) -> None:
    with pytest.raises(FileNotFoundError, match="no program of that name on PATH"):
        windows_command([program], ENVIRON, is_file=FILES.__contains__)
