"""The server that a command line names, and the errors about words and options that don't fit."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from mcp_core import ALL
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._options import ARGUMENTS, NO_WORDS, add_session_options
from mcp_trio.cli._parser import server_parser
from mcp_trio.cli._target import parse_server_command

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from mcp_trio.cli._options import VariadicArgument
    from mcp_trio.cli._session import Target
    from tests.trio_.cli.in_memory import MemoryCommand

NO_SERVER = (
    "no server: give its URL or its Python file as the last word, or after `--` the command that"
    " starts it: {0} http://127.0.0.1:8000/mcp, or {0} server.py, or {0} -- python server.py"
)
AFTER_DASHES = "the command that starts the server comes after `--`: mcp-trio "
NEITHER = " is neither a URL nor a Python file (FILE.py or FILE.py:NAME); "
UNSUPPORTED = " is not supported: give a URL that begins with http://, https://, ws:// or wss://"
NO_COMMAND = "http://x is not a command: a URL is the last word, without `--` and arguments"
STRAY = "unrecognized arguments: {} (options of the server go after its command)"
TWO = "there are two servers: -m mod, and the last word or command"
NO_SOURCE = (
    "--asyncio is for a server that this command takes from a Python file: give FILE, or -m"
    " PACKAGE.MODULE"
)
UNENCRYPTED = (
    "the header authorization would be sent unencrypted to example.com: use {}:// instead of"
    " {}://, or use --allow-cleartext in a network that you trust"
)
STARTED = (
    " is for a server that is started: give its command after `--`, or its file, in place of the"
    " URL"
)
NO_HEADERS = (
    "--header and --token-env need a server at a URL; one that is started gets its secrets from"
    " the environment: --env NAME"
)
NO_TOKEN = ": that environment variable holds no token"
CONFIGURED = "the server is one of the configuration files: leave {} out, or --server and --config"
WRITE_THERE = " is not for a server of the configuration files: write it there"
ONLY_CONFIGURED = " is for a server of the configuration files: --server NAME"
NO_KEYCHAIN = "--keychain needs a server at http:// or https://: others have no login"
MERGED = (
    "mcp__a__b names no server of the configuration files; there are no servers. For a tool with"
    " this name give its server too: a URL, a file, or after `--` a command"
)

MISTAKES = [
    ("inspect", NO_SERVER.format("mcp-trio inspect")),
    ("inspect x", f"x{NEITHER}{AFTER_DASHES}inspect -- x"),
    ("inspect no-such x", f"{AFTER_DASHES}inspect -- no-such x"),
    ("inspect sh s.py", f"{AFTER_DASHES}inspect -- sh s.py"),
    ("inspect sh -m mod", f"{AFTER_DASHES}inspect -- sh -m mod"),
    ("inspect h:80/mcp", "h:80/mcp is not a URL: mcp-trio inspect http://h:80/mcp"),
    ("inspect a h:80", "h:80 is not a URL: mcp-trio inspect http://h:80"),
    ("inspect [::1]:80", "[::1]:80 is not a URL: mcp-trio inspect http://[::1]:80"),
    ("inspect h:a", f"h:a{NEITHER}{AFTER_DASHES}inspect -- h:a"),
    ("inspect ftp://u:p@x/y", f"...@x/y{UNSUPPORTED}"),
    ("inspect x ftp://x", f"ftp://x{UNSUPPORTED}"),
    ("inspect ftp://s.py", f"ftp://s.py{UNSUPPORTED}"),
    ("inspect -- ftp://x", f"ftp://x{UNSUPPORTED}"),
    ("inspect -- http://x a", NO_COMMAND),
    ("call it http://x x", f"{NO_COMMAND}"),
    ("inspect -- s.py", "s.py is not a command; to serve the file: mcp-trio inspect s.py"),
    ("call it a=b -- s.py", "s.py is not a command; to serve the file: mcp-trio call it a=b s.py"),
    ("call s.py it", "the server is the last word: mcp-trio call it s.py"),
    ("call http://u:p@x it a=b", "the server is the last word: mcp-trio call it a=b URL"),
    ("call http://x", NO_SERVER.format("mcp-trio call http://x")),
    ("read s.py it", f"it{NEITHER}{AFTER_DASHES}read s.py -- it"),
    ("read http://x", NO_SERVER.format("mcp-trio read http://x")),
    ("call it a=s.py", NO_SERVER.format("mcp-trio call it a=s.py")),
    ("tasks get mcp-task:a", NO_SERVER.format("mcp-trio tasks get REFERENCE")),
    ("call it s.py --bogus", STRAY.format("--bogus")),
    ("call it --bogus", f"--bogus{NEITHER}{AFTER_DASHES}call it -- --bogus"),
    ("inspect junk -- it", STRAY.format("junk")),
    ("inspect junk s.py", STRAY.format("junk")),
    ("inspect -m mod s.py", TWO),
    ("inspect -m mod http://x", TWO),
    ("inspect -m mod -- it", TWO),
    ("inspect --asyncio http://x", NO_SOURCE),
    ("inspect --asyncio -- it", NO_SOURCE),
    ("inspect --yes s.py", f"--yes{ONLY_CONFIGURED}"),
    ("inspect --approve-server x s.py", f"--approve-server{ONLY_CONFIGURED}"),
    ("inspect --header a:b s.py", NO_HEADERS),
    ("inspect --token-env TOKEN -- it", NO_HEADERS),
    ("inspect --token-env UNSET http://x", f"--token-env UNSET{NO_TOKEN}"),
    ("inspect --token-env UMLAUT http://x", f"--token-env UMLAUT{NO_TOKEN}"),
    ("inspect --token-env LINES http://x", f"--token-env LINES{NO_TOKEN}"),
    (
        "inspect --header authorization:b http://example.com",
        UNENCRYPTED.format("https", "http"),
    ),
    ("inspect --token-env TOKEN ws://example.com", UNENCRYPTED.format("wss", "ws")),
    ("inspect --env A=b http://x", f"--env{STARTED}"),
    ("inspect --inherit-env http://x", f"--inherit-env{STARTED}"),
    ("inspect --cwd . http://x", f"--cwd{STARTED}"),
    (
        "inspect --env UNSET s.py",
        "--env UNSET: that environment variable is not set; set it, or write --env UNSET=VALUE",
    ),
    ("inspect --keychain s.py", NO_KEYCHAIN),
    ("inspect --keychain wss://x", NO_KEYCHAIN),
    ("inspect http://[x", "'http://[x' is not a URL: its host cannot be read"),
    ("inspect --server x s.py", CONFIGURED.format("s.py")),
    ("inspect --server x -m mod", CONFIGURED.format("-m mod")),
    ("inspect --server x -- it", CONFIGURED.format("-- it")),
    ("inspect --config x junk", CONFIGURED.format("junk")),
    ("call it --server x a=b junk c=d", CONFIGURED.format("junk c=d")),
    ("call it --server x --bogus", CONFIGURED.format("--bogus")),
    ("inspect --server x --header a:b", f"--header{WRITE_THERE}"),
    ("inspect --server x --token-env b", f"--token-env{WRITE_THERE}"),
    ("inspect --server x --allow-cleartext", f"--allow-cleartext{WRITE_THERE}"),
    ("inspect --server x --env A=b", f"--env{WRITE_THERE}"),
    ("inspect --server x --inherit-env", f"--inherit-env{WRITE_THERE}"),
    ("inspect --server x --cwd .", f"--cwd{WRITE_THERE}"),
    ("inspect --server x --asyncio", f"--asyncio{WRITE_THERE}"),
    ("call it --server x a=b", "there is no server x; there are no servers."),
    ("call mcp__a__b", MERGED),
    ("prompt mcp__a__b", MERGED),
    ("call mcp__a__b --server x", "there is no server x; there are no servers."),
    ("read @a:b://c", "there is no server a; there are no servers."),
    ("read @a:b://c --server a", "there is no server a; there are no servers."),
    (
        "read @a:b://c --server x",
        "@a:b://c is a resource of another server than that of --server",
    ),
]


@pytest.fixture
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory without configuration files, and some variables."""
    monkeypatch.chdir(tmp_path)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("UNSET", raising=False)
    monkeypatch.setenv("PYTHONPATH", "p")
    monkeypatch.setenv("TOKEN", " t1 ")
    monkeypatch.setenv("UMLAUT", "\xe4")
    monkeypatch.setenv("LINES", "a\tb")
    (tmp_path / "s.py").write_text("")


@pytest.mark.usefixtures("_place")
@pytest.mark.parametrize(("line", "error"), MISTAKES, ids=[line for line, _ in MISTAKES])
def test_target_mistake_in_a_command_line_is_explained(
    line: str, error: str, in_memory: MemoryCommand
) -> None:
    status, out, err = in_memory(*line.split(), target=None)
    assert (status, out) == (2, "")
    assert err.splitlines()[-1] == f"mcp-trio{_prefix(line) if 'usage:' in err else ''}: {error}"
    assert in_memory.launches == []


def _prefix(line: str) -> str:
    """Return the words with which argparse begins an error."""
    return f" {line.split(maxsplit=1)[0]}: error"


def target_of_words(
    *words: str, takes: VariadicArgument = NO_WORDS, **positions: str
) -> tuple[argparse.Namespace, Target]:
    parser = server_parser("x", description="", example="", takes=takes, **positions)
    add_session_options(parser)
    return parse_server_command(parser, words)


@pytest.mark.usefixtures("_place")
def test_target_at_a_url_has_the_options_of_connections() -> None:
    """Their defaults, and then each of them with a value of its own."""
    found, target = target_of_words("http://127.0.0.1/a")
    assert (found.words, target.server, target.file) == ([], "http://127.0.0.1/a", "")
    assert (target.versions, target.timeout, target.log_level) == (ALL, 60, "info")
    assert (target.headers, target.allow_cleartext, target.keychain) == ((), False, False)
    assert (target.env, target.roots, target.trace, target.recording) == ((), (), None, None)
    assert (target.file_words, target.cwd, target.configured) == ((), None, None)
    assert target.answers is not None
    given = ("--revision", "2025-06-18", "--timeout", "5", "--log-level", "error", "--keychain")
    headers = ("--token-env", "TOKEN", "--header", "X-A: b", "--allow-cleartext", "--trace")
    _, target = target_of_words(*given, *headers, "--root", ".", "--", "http://example.com")
    assert (target.server, target.versions) == ("http://example.com", ("2025-06-18",))
    assert (target.timeout, target.log_level, target.keychain) == (5, "error", True)
    assert target.headers == (("x-a", "b"), ("authorization", "Bearer t1"))
    assert target.allow_cleartext
    assert target.trace is not None
    assert [*map(str, target.roots)] == [str(os.path.realpath("."))]


@pytest.mark.usefixtures("_place")
def test_target_that_is_started_has_the_options_of_processes(tmp_path: Path) -> None:
    """A file gets the settings of Python too, and an absolute path where --cwd is given."""
    served = (sys.executable, "-P", "-m", "mcp_trio", "run")
    python = ("PYTHONPATH", "p")
    _, target = target_of_words("s.py")
    assert (target.server, target.file, target.file_words) == ((*served, "s.py"), "s.py", ("s.py",))
    assert (target.env, target.inherit_env, target.cwd) == ((python,), False, None)
    variables = ("--env", "TOKEN", "--env", "A=", "--inherit-env", "--cwd", ".")
    _, target = target_of_words(*variables, "s.py:app")
    assert target.server == (*served, f"{tmp_path}/s.py:app")
    assert target.env == (python, ("TOKEN", " t1 "), ("A", ""))
    assert (target.inherit_env, target.cwd) == (True, tmp_path)
    _, target = target_of_words("-m", "a.b", "--asyncio")
    assert target.server == (*served[:3], "mcp_asyncio_shim", "-m", "a.b")
    assert (target.file, target.file_words) == ("a.b", ("--asyncio", "-m", "a.b"))
    _, target = target_of_words("--env", "A=b", "--", "s", "s.py", "--", "-m")
    assert (target.server, target.file) == (("s", "s.py", "--", "-m"), "")
    assert (target.env, target.file_words) == ((("A", "b"),), ())


@pytest.mark.usefixtures("_place")
def test_target_is_split_from_the_words_of_the_command() -> None:
    """Arguments that end in `.py` are none, nor are words before `--`."""
    options = {"takes": ARGUMENTS, "TOOL": ""}
    for words in ["mcp__a__b", "a=s.py", "b=1", "s.py"], ["it", "a=s.py", "--", "it"]:
        found, _ = target_of_words(*words, **options)  # type: ignore[arg-type]
        assert found.tool == words[0]
        assert found.words == words[1 : words.index("--") if "--" in words else -1]
    found, target = target_of_words("it", "http://127.0.0.1", "--", "it", **options)  # type: ignore[arg-type]
    assert (found.words, target.server) == (["http://127.0.0.1"], ("it",))


@pytest.mark.parametrize(
    "words", [["it\udcff", "s.py"], ["it", "a=\udcff"], ["it", "--answer", "a=\udcff"]]
)
def test_target_word_that_is_no_utf_8_is_refused(words: list[str]) -> None:
    with pytest.raises(CliError, match=r"^'.*\\udcff' is not UTF-8$"):
        target_of_words(*words, takes=ARGUMENTS, TOOL="")
