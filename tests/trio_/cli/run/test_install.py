"""`mcp-trio install`: what is written where, by whom, and what is asked and shown before."""

from __future__ import annotations

import json
import os
import stat
import sys
import textwrap
import tomllib
from typing import TYPE_CHECKING, Any, Final

import pytest

from mcp_trio._files import FileChanged, replace_file
from mcp_trio.cli import _config_update, main
from mcp_trio.cli.run import _install
from tests.harness.world.command import ROOT, Terminal, run

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

GREETER: Final = str(ROOT / "examples" / "greeter.py")
ARGS: Final = ["-P", "-m", "mcp_trio", "run", GREETER]
PLAIN: Final = {"command": sys.executable, "args": ARGS}
QUIET: Final = ("--no-check", "--name", "greeter")
# A client that notes its arguments and, like most of them, does not keep the layout of its file.
FAKE: Final = """\
#!{python} -SE
import json, os, sys
from pathlib import Path
home = Path(os.environ["HOME"])
with (home / "calls").open("a") as calls:
    calls.write(json.dumps([Path(sys.argv[0]).name, *sys.argv[1:], sys.stdin.read()]) + "\\n")
{body}
"""
WRITES: Final = """\
path = home / ".claude.json"
path.write_text(json.dumps({"mcpServers": {sys.argv[-2]: json.loads(sys.argv[-1])}}))
"""


class Home:
    """A home directory without clients, and a PATH on which fake ones can be put."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bin = path / "bin"
        self.bin.mkdir()
        self.project = path / "project"
        self.project.mkdir()
        self.env = {
            "HOME": str(path),
            "PATH": str(self.bin),
            **dict.fromkeys(
                ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"), ""
            ),
        }

    def __call__(
        self, client: str, *words: str, file: str = GREETER, status: int = 0, **env: str
    ) -> subprocess.CompletedProcess[str]:
        words = ("install", file, "--client", client, *words)
        result = run(*words, cwd=self.project, env={**self.env, **env})
        assert result.returncode == status, result.stderr
        assert "CANARY" not in result.stdout + result.stderr
        return result

    def add_program(self, name: str, body: str = "") -> Path:
        path = self.bin / name
        path.write_text(FAKE.format(python=sys.executable, body=textwrap.dedent(body)))
        path.chmod(0o700)
        return path

    @property
    def calls(self) -> list[list[str]]:
        """The words of each run of a fake client, and what it read from stdin."""
        path = self.path / "calls"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def json(self, name: str, servers: str = "mcpServers") -> Any:
        return json.loads((self.path / name).read_text())[servers]

    @property
    def written(self) -> list[str]:
        """The files that are there, but for fake clients and what they note."""
        files = (path for path in self.path.rglob("*") if path.is_file())
        names = sorted(str(path.relative_to(self.path)) for path in files)
        return [name for name in names if name != "calls" and not name.startswith("bin/")]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_install_without_client_command_writes_its_file(home: Home) -> None:
    result = home("cursor", "--yes", "--env", "A=1")
    assert home.written == [".cursor/mcp.json"]
    assert home.json(".cursor/mcp.json") == {"greeter": {**PLAIN, "env": {"A": "1"}}}
    assert stat.S_IMODE((home.path / ".cursor" / "mcp.json").stat().st_mode) == 0o600
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert lines[:2] == [
        f"Cursor, for all projects: {home.path}/.cursor/mcp.json",
        '+ "greeter": {',
    ]
    assert '+     "A": "(hidden)"' in lines
    assert lines[-1] == "mcp-trio: greeter is registered with Cursor"


def test_install_for_asyncio_and_of_a_module_registers_the_command(home: Home) -> None:
    """The check starts the server in the home directory, where the module has to be found."""
    home("cursor", "--yes", "--asyncio")
    entry = home.json(".cursor/mcp.json")["greeter"]
    assert entry == {**PLAIN, "args": ["-P", "-m", "mcp_asyncio_shim", GREETER]}
    words = ("install", "--client", "cursor", "--yes", "-m", "tea:server")
    (home.project / "tea.py").write_text("import mcp_trio\nserver = mcp_trio.Server('tea')\n")
    result = run(*words, cwd=home.project, env=home.env)
    assert result.returncode == 3
    assert f"there is no module tea in {home.path}, nor for {sys.executable}" in result.stderr
    path = f"PYTHONPATH={home.project}{os.pathsep}{ROOT}"
    found = run(*words, "--env", path, cwd=home.project, env=home.env)
    assert found.returncode == 0, found.stderr
    entry = home.json(".cursor/mcp.json")["tea"]
    assert entry["args"] == ["-P", "-m", "mcp_trio", "run", "-m", "tea:server"]


def test_install_again_changes_nothing(home: Home) -> None:
    home("cursor", "--yes", *QUIET)
    path = home.path / ".cursor" / "mcp.json"
    before = path.stat()
    result = home("cursor", *QUIET)  # without --yes and without a terminal: nothing is asked
    assert result.stderr.startswith("mcp-trio: greeter is registered already")
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert home("cursor", *QUIET, "--dry-run").stdout.endswith("greeter is registered already\n")


def test_install_into_existing_files_keeps_the_rest_and_a_copy(home: Home) -> None:
    """Comments, line endings and modes survive, and the copy is private as it may hold secrets."""
    texts = {
        "vscode": (".config/Code/User/mcp.json", '{\n\t// mine\n\t"inputs": [], // none\n}\n'),
        "codex": (".codex/config.toml", '# mine\nmodel = "x"\n\n[tui] # t\na = 1\n'),
        "gemini": (".gemini/settings.json", '{\r\n  // mine\r\n  "ui": {}\r\n}\r\n'),
    }
    for client, (name, text) in texts.items():
        path = home.path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
        path.chmod(0o644)
        result = home(client, "--yes", *QUIET)
        copy = path.with_name(path.name + ".mcp-trio-backup")
        assert result.stderr.endswith(f"mcp-trio: the file as it was before is in {copy}\n")
        assert copy.read_bytes() == text.encode()
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
        kept = iter(path.read_bytes().decode().replace(",\r\n", "\r\n").splitlines())
        assert all(line in kept for line in text.splitlines()), path.read_text()
    with (home.path / ".codex" / "config.toml").open("rb") as file:
        assert tomllib.load(file)["mcp_servers"] == {"greeter": PLAIN}


CALLS = {
    "claude-code": (
        "claude",
        ["mcp", "add-json", "--scope", "user", "greeter", {"type": "stdio", **PLAIN}],
    ),
    "vscode": ("code", ["--add-mcp", {"name": "greeter", "type": "stdio", **PLAIN}]),
    "codex": ("codex", ["mcp", "add", "greeter", "--", sys.executable, *ARGS]),
    "gemini": (
        "gemini",
        ["mcp", "add", "--scope", "user", "greeter", sys.executable, "--", *ARGS],
    ),
}


@pytest.mark.parametrize("client", CALLS)
def test_install_uses_the_command_of_the_client(home: Home, client: str) -> None:
    name, words = CALLS[client]
    program = home.add_program(name)
    result = home(client, "--yes", *QUIET)
    ((called, *given, stdin),) = home.calls
    assert called == name
    assert [json.loads(word) if word.startswith("{") else word for word in given] == words
    assert stdin == ""
    assert home.written == []  # the fake one writes nothing, and we leave it at that
    assert f"It is added by: {program} {given[0]} " in result.stderr
    assert "accepted it, but not into" in result.stderr


def test_install_by_client_command_keeps_a_copy(home: Home) -> None:
    home.add_program("claude", WRITES)
    path = home.path / ".claude.json"
    path.write_text('{"before": 1}')
    result = home("claude-code", "--yes", *QUIET)
    assert home.json(".claude.json") == {"greeter": {"type": "stdio", **PLAIN}}
    assert home.written == [".claude.json", ".claude.json.mcp-trio-backup"]
    assert (home.path / ".claude.json.mcp-trio-backup").read_text() == '{"before": 1}'
    assert "accepted it, but not" not in result.stderr


def test_install_client_command_failed_shows_its_output(home: Home) -> None:
    home.add_program("claude", "sys.exit('this name is\\nreserved \\x1b[2J')")
    result = home("claude-code", "--yes", *QUIET, status=1)
    assert result.stderr.endswith(
        "mcp-trio: claude failed with status 1:\n  | this name is\n  | reserved \\u001b[2J\n"
    )
    assert home.written == []


def test_install_over_another_entry_shows_and_replaces_it(home: Home) -> None:
    """Claude Code refuses to replace an entry, and other clients drop what the user added."""
    home.add_program("claude", WRITES)
    entry = {"type": "stdio", "command": "/old", "args": ["/f"], "env": {"K": "CANARY"}}
    (home.path / ".claude.json").write_text(json.dumps({"mcpServers": {"greeter": entry}, "z": 1}))
    result = home("claude-code", "--dry-run", *QUIET)
    assert '-   "command": "/old",' in result.stdout.splitlines()
    assert f'+   "command": "{sys.executable}",' in result.stdout.splitlines()
    assert "An entry greeter is there already, and is changed." in result.stdout
    result = home("claude-code", "--yes", *QUIET, status=2)
    assert "an entry greeter that starts something else, and --yes does not replace it" in (
        result.stderr
    )
    assert home.json(".claude.json") == {"greeter": entry}
    home("claude-code", "--yes", "--replace", *QUIET)
    assert home.calls == []
    assert home.json(".claude.json") == {"greeter": {"type": "stdio", **PLAIN}}
    assert home.json(".claude.json", "z") == 1


def test_install_of_same_file_keeps_added_members(home: Home) -> None:
    entry = {"command": "/moved/venv/python", "args": ARGS, "env": {"K": "CANARY"}, "trust": True}
    (home.path / ".gemini").mkdir()
    settings = home.path / ".gemini" / "settings.json"
    settings.write_text(json.dumps({"mcpServers": {"greeter": entry}}))
    home("gemini", "--yes", *QUIET)
    assert home.json(".gemini/settings.json") == {"greeter": {**entry, "command": sys.executable}}


def test_install_value_of_the_environment_is_on_no_command_line(home: Home) -> None:
    """Other users of the machine can see command lines."""
    home.add_program("claude", WRITES)
    home("claude-code", "--yes", *QUIET, "--env", "KEY", KEY="CANARY")
    assert home.calls == []
    assert home.json(".claude.json")["greeter"]["env"] == {"KEY": "CANARY"}


def test_install_for_a_project_refers_to_variables(home: Home) -> None:
    """The file of a project is shared, with its history."""
    result = home("vscode", "--yes", "--scope", "project", "--env", "KEY", KEY="CANARY")
    entry = home.json("project/.vscode/mcp.json", "servers")["greeter"]
    assert entry == {"type": "stdio", **PLAIN, "env": {"KEY": "${env:KEY}"}}
    assert result.stderr.startswith("VS Code, for this project: ")
    before = os.umask(0)
    os.umask(before)
    mode = stat.S_IMODE((home.project / ".vscode" / "mcp.json").stat().st_mode)
    assert mode == 0o666 & ~before
    home("codex", "--yes", "--scope", "project", *QUIET, "--env", "KEY", KEY="CANARY")
    text = (home.project / ".codex" / "config.toml").read_text()
    assert tomllib.loads(text)["mcp_servers"]["greeter"] == {**PLAIN, "env_vars": ["KEY"]}


def test_install_for_a_project_of_claude_uses_its_command(home: Home) -> None:
    home.add_program("claude", 'Path(".mcp.json").write_text("{}")')
    home("claude-code", "--yes", "--scope", "project", *QUIET)
    assert home.calls[0][1:6] == ["mcp", "add-json", "--scope", "project", "greeter"]
    assert home.written == ["project/.mcp.json"]


@pytest.mark.parametrize("how", ["relative", "cmd"])
def test_install_untrusted_client_command_is_not_run(home: Home, how: str) -> None:
    """A project may contain a program `claude`, and Windows gives .cmd files to a shell."""
    program = home.add_program("claude")
    if how == "relative":
        program.rename(home.project / "claude")
        home.env["PATH"] = "."
        home("claude-code", "--yes", *QUIET)
    else:
        program.rename(program.with_suffix(".cmd"))
        home.add_program("unused")
        found = str(program.with_suffix(".cmd"))
        with pytest.MonkeyPatch.context() as patch:
            for name, value in home.env.items():
                patch.setenv(name, value)
            patch.setattr("shutil.which", lambda name: found)
            words = ["install", GREETER, "--client", "claude-code", "--yes", *QUIET]
            assert main(words) == 0
    assert home.calls == []
    assert home.json(".claude.json") == {"greeter": {"type": "stdio", **PLAIN}}


def test_install_without_terminal_and_yes_is_refused(home: Home) -> None:
    result = home("cursor", *QUIET, status=3)
    assert result.stderr.endswith(
        "mcp-trio: nothing was changed: there is no terminal to ask at. Add --yes to make this"
        " change, or --dry-run to see it only\n"
    )
    assert home.written == []


def test_install_dry_run_shows_on_stdout_and_writes_nothing(home: Home) -> None:
    home.add_program("claude")
    for client in "claude-code", "cursor", "codex":
        result = home(client, "--dry-run", *QUIET)
        assert "greeter" in result.stdout
        assert result.stderr == ""
    assert home.calls == []
    assert home.written == []


@pytest.mark.parametrize(
    ("answer", "status", "written"),
    [("yes", 0, [".cursor/mcp.json"]), ("no", 3, []), ("\x04", 3, [])],
)
def test_install_at_a_terminal_asks(
    home: Home, answer: str, status: int, written: list[str]
) -> None:
    words = ("install", GREETER, "--client", "cursor", *QUIET)
    with Terminal(*words, **home.env) as terminal:
        shown = terminal.type(f"{answer}\n" if answer != "\x04" else answer, behind="decline (Ctrl")
        rest = terminal.rest()
    assert '"greeter"' in shown
    assert "Make this change?" in shown
    assert terminal.status == status, rest
    assert ("nothing was changed" in rest) == (status == 3)
    assert home.written == written


def test_install_name_is_that_of_the_server_with_allowed_characters(
    home: Home, tmp_path: Path
) -> None:
    file = tmp_path / "file.py"
    for own, name in ("My server, v1.2!", "My-server-v1-2"), ("\u8336", "file"):
        file.write_text(f"import mcp_trio\nmcp = mcp_trio.Server({own!r})\n")
        (home.path / ".cursor" / "mcp.json").unlink(missing_ok=True)
        home("cursor", "--yes", file=str(file))
        assert list(home.json(".cursor/mcp.json")) == [name]


def test_install_checks_the_server_with_its_variables(home: Home, tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text("import os, mcp_trio\nfirst = mcp_trio.Server(os.environ['NAME_OF_IT'])\n"
                    "second = mcp_trio.Server('two')\n")  # fmt: skip
    result = home("cursor", "--yes", file=f"{file}:first", status=3)
    assert "KeyError" in result.stderr
    assert "Nothing was registered; --no-check registers it all the same" in result.stderr
    assert not (home.path / ".cursor").exists()
    home("cursor", "--yes", "--env", "NAME_OF_IT=us", file=f"{file}:first")
    assert home.json(".cursor/mcp.json")["us"]["args"][-1] == f"{file}:first"


def test_install_command_line_works_in_a_hostile_directory(home: Home) -> None:
    """Clients start servers in a project's directory. `python -m` would import modules from it."""
    result = home("claude-desktop", "--yes", *QUIET)
    assert "restart Claude Desktop" in result.stderr
    entry = home.json(".config/Claude/claude_desktop_config.json")["greeter"]
    (home.project / "trio.py").write_text("raise SystemExit('imported')")
    (home.project / "mcp_trio").mkdir()
    command = (entry["command"], *entry["args"])
    inspected = run("inspect", "--cwd", str(home.project), "--", *command)
    assert inspected.returncode == 0, inspected.stderr


def test_install_path_is_absolute_and_keeps_links(home: Home) -> None:
    (home.project / "link.py").symlink_to(GREETER)
    home("cursor", "--yes", "--no-check", "--name", "a", file="link.py")
    home("cursor", "--yes", "--no-check", "--name", "b", file="../project/link.py:greeter")
    servers = home.json(".cursor/mcp.json")
    assert servers["a"]["args"][-1] == str(home.project / "link.py")
    assert servers["b"]["args"][-1] == f"{GREETER}:greeter"


# the name and content of a file, the client, the error
UNUSABLE = [
    (".claude.json", b'{\n"mcpServers": {\n},\n}', "claude-code", "line 3: a comma before }"),
    (".cursor/mcp.json", b'{"a":\n "\xff"}', "cursor", "line 2: this is not UTF-8"),
    (".cursor/mcp.json", '{"a": 1}'.encode("utf-16"), "cursor", "line 1: this is not UTF-8"),
    (".gemini/settings.json", b"\xef\xbb\xbf{}", "gemini", "line 1: a byte order mark"),
    (".codex/config.toml", b"a = 1\na = 2\n", "codex", "line 2: cannot overwrite a value"),
    (
        ".codex/config.toml",
        b"mcp_servers = {x = {}}\n",
        "codex",
        "line 1: mcp_servers.greeter",
    ),
    (
        ".cursor/mcp.json",
        b'{"mcpServers": null}',
        "cursor",
        'line 1: "mcpServers" is not',
    ),
]


@pytest.mark.parametrize(("name", "data", "client", "problem"), UNUSABLE)
def test_install_into_unusable_file_is_refused_with_line(
    home: Home, name: str, data: bytes, client: str, problem: str
) -> None:
    path = home.path / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
    result = home(client, "--yes", *QUIET, status=1)
    assert result.stderr.startswith(f"mcp-trio: {path}, {problem}")
    assert result.stderr.endswith(". Nothing was changed\n")
    assert path.read_bytes() == data
    assert home.written == [name]


def test_install_unreadable_file_is_an_error(home: Home) -> None:
    (home.path / ".cursor").mkdir()
    os.mkfifo(home.path / ".cursor" / "mcp.json")
    result = home("cursor", "--yes", *QUIET, status=1)
    assert result.stderr.endswith("mcp.json cannot be read: is no regular file\n")


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--client", "cursor", "--no-check"), "--no-check needs --name"),
        (("--client", "cursor", "--name", "-x"), "--name"),
        (("--client", "cursor", "--name=a.b"), "a.b is not a name"),
        (("--client", "emacs"), "invalid choice: 'emacs'"),
        ((), "--client"),
        (("--client", "cursor", *QUIET, "--env", "UNSET_HERE"), "UNSET_HERE: that environment"),
        (("--client", "claude-desktop", *QUIET, "--scope", "project"), "leave --scope project out"),
    ],
)
def test_install_misuse_is_explained(home: Home, words: tuple[str, ...], problem: str) -> None:
    result = run("install", GREETER, *words, env=home.env)
    assert result.returncode == 2
    assert problem in result.stderr
    assert home.written == []


def test_install_missing_file_or_home_is_explained(home: Home) -> None:
    result = home("cursor", *QUIET, file="missing.py", status=2)
    assert "there is no file missing.py" in result.stderr
    result = home("cursor", *QUIET, status=2, HOME="")
    assert "the environment variable HOME is not set" in result.stderr


def test_install_warns_of_text_that_the_client_replaces(home: Home) -> None:
    result = home("gemini", *QUIET, "--dry-run", "--env", "A", A="CANARY$HOME")
    text = "Gemini CLI replaces what looks like a variable in: the value of A\n"
    assert result.stdout.endswith(text)


def test_install_command_of_client_that_would_cut_a_value_is_not_used(home: Home) -> None:
    home.add_program("gemini")
    result = home("gemini", *QUIET, "--yes", "--env", "A=1=2")
    assert "It is added by" not in result.stderr
    assert home.calls == []
    assert home.json(".gemini/settings.json")["greeter"]["env"] == {"A": "1=2"}


def test_install_into_unwritable_directory_is_an_error(home: Home) -> None:
    (home.path / ".cursor").write_text("a file in place of the directory")
    result = home("cursor", *QUIET, "--yes", status=1)
    path = home.path / ".cursor" / "mcp.json"
    assert result.stderr == f"mcp-trio: {path} cannot be read: Not a directory\n"


@pytest.fixture
def in_process(home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Run the command in this process, so that a test can replace parts of it."""
    for name, value in home.env.items():
        monkeypatch.setenv(name, value)
    return lambda *words: main(["install", GREETER, *QUIET, "--yes", *words])


def test_install_file_changed_meanwhile_starts_over(
    home: Home,
    in_process: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Another program writes the file just before we do, and both changes end up in it."""
    path = home.path / ".cursor" / "mcp.json"

    def replace_late(snapshot: Any, data: bytes, *, private: bool) -> Path | None:
        if not path.exists():
            path.parent.mkdir()
            path.write_text('{"theirs": 1}')
        return replace_file(snapshot, data, private=private)

    monkeypatch.setattr(_config_update, "replace_file", replace_late)
    assert in_process("--client", "cursor") == 0
    assert home.json(".cursor/mcp.json") == {"greeter": PLAIN}
    assert home.json(".cursor/mcp.json", "theirs") == 1
    assert capsys.readouterr().err.count('+ "greeter": {') == 1  # an equal change is shown once


def test_install_file_changed_all_the_time_gives_up_with_an_error(
    home: Home,
    in_process: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def replace_never(*_: object, **__: object) -> None:
        raise FileChanged

    monkeypatch.setattr(_config_update, "replace_file", replace_never)
    assert in_process("--client", "cursor") == 1
    assert "close Cursor, and try again" in capsys.readouterr().err
    assert home.written == []


def test_install_without_tomlkit_names_the_extra(
    home: Home,
    in_process: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, "tomlkit", None)
    assert in_process("--client", "codex") == 1
    expected = "changing a TOML file needs tomlkit: pip install 'mcp-trio[config]'"
    assert capsys.readouterr().err == f"mcp-trio: {expected}\n"
    home.add_program("codex")  # writes it without our help
    assert in_process("--client", "codex") == 0


def test_install_client_command_without_end_is_stopped(
    home: Home,
    in_process: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    home.add_program("claude", "import time; time.sleep(30)")
    monkeypatch.setattr(_install, "_ADD_TIMEOUT", 0.2)
    assert in_process("--client", "claude-code") == 1
    assert "claude did not end within 0.2 s" in capsys.readouterr().err
