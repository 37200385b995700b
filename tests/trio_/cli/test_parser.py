"""The command line: help, and errors for every kind of misuse."""

from __future__ import annotations

import pytest

import mcp_trio
from mcp_trio.cli import main
from tests.harness.world.command import SILENT, output_of, run


def test_version_option_prints_version() -> None:
    assert output_of("--version") == f"mcp-trio {mcp_trio.__version__}\n"


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("demo",),
        ("run",),
        ("inspect",),
        ("call",),
        ("read",),
        ("prompt",),
        ("complete",),
        ("listen",),
        ("login",),
        ("show",),
        ("completion",),
    ],
)
def test_help_lists_exit_statuses(words: tuple[str, ...]) -> None:
    text = output_of(*words, "--help")
    assert "exit status:" in text
    assert "130  Ctrl+C" in text


@pytest.mark.parametrize(
    "command", "inspect call read prompt complete listen tasks login run".split()
)
def test_subcommand_that_talks_has_the_options_of_recording(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    shown = capsys.readouterr().out
    for option in ("--record FILE", "--record-secrets", "--record-limit MIB", "--redact POINTER"):
        assert option in shown


MISUSED = [
    ((), "usage: mcp-trio COMMAND"),
    (("destroy",), "invalid choice: 'destroy'"),
    (("demo", "me"), "unrecognized arguments: me"),
    (("run",), "give FILE[:NAME], or -m PACKAGE.MODULE[:NAME]"),
    (("run", "a.py", "b.py"), "unrecognized arguments: b.py"),
    (
        ("run", "a.py", "--http", "http"),
        "http is not an address; write a port as 8000, or 0.0.0.0:8000",
    ),
    (("run", "a.py", "--http", "65536"), "65536 is not an address"),
    (("run", "a.py", "--http", ":8000"), ":8000 is not an address"),
    (("run", "a.py", "--stateless"), "--stateless needs --http: add --http 8000"),
    (("run", "a.py", "--json-response"), "--json-response needs --http"),
    (("run", "a.py", "--sse-path", "/sse"), "--sse-path needs --http"),
    (("run", "a.py", "--http", "0", "--sse-path", "sse"), "has to begin with a slash"),
    (("run", "a.py", "--http", "0", "--sse-path", "/mcp/"), "differ from /mcp: --sse-path /sse"),
    (
        ("run", "a.py", "--http", "0", "--sse-path", "/sse", "--stateless"),
        "--sse-path needs sessions: leave --stateless out",
    ),
    (("run", "no.py", "--http", "[::1]:0"), "there is no file no.py"),
    (("run", "a.py", "--path", "/a"), "--path needs --http: add --http 8000"),
    (("run", "a.py", "--allowed-host", "a.example"), "--allowed-host needs --http"),
    (("run", "a.py", "--allowed-origin", "https://a.example"), "--allowed-origin needs --http"),
    (("run", "a.py", "--api-key-env", "KEY"), "--api-key-env needs --http"),
    (("run", "a.py", "--http", "0", "--path", "notes"), "'notes' is not a path: it begins with a"),
    (("run", "a.py", "--http", "0", "--path", "/a?b"), "--path '/a?b' is not a path"),
    (("run", "a.py", "--http", "0", "--path", "/\udc80"), "is not a path"),
    (
        ("run", "a.py", "--http", "0", "--path", "/a", "--sse-path", "/a/"),
        "differ from /a: --sse-path /sse",
    ),
    (
        ("run", "a.py", "--http", "0", "--allowed-host", "*.example.com"),
        "--allowed-host: '*.example.com' is not a host: there are no wildcards",
    ),
    (
        ("run", "a.py", "--http", "0", "--allowed-origin", "app.example.com"),
        "--allowed-origin: 'app.example.com' is not an origin: write http(s)://name",
    ),
    (
        ("run", "a.py", "--http", "0", "--api-key-env", "NOT_SET_HERE"),
        "--api-key-env: there is no such environment variable: pass its name",
    ),
    (("run", "a.py", "-m", "a"), "give FILE[:NAME] or -m, and not both: a.py and -m a"),
    (("run", "-m", "no_such.module"), "there is no module no_such in "),
    (("run", "-m", "json.tea"), "the package json has no module tea"),
    (("run", "-m", "string.Template"), "a variable comes after a colon: -m string:Template"),
    (("run", "-m", "a/b.py"), "-m a/b.py is not a module; write PACKAGE.MODULE"),
    (("run", "-m", "a..b"), "-m a..b is not a module"),
    (("run", "-m", "sys"), "-m sys: the module has no file"),
    (("inspect", "--asyncio", *SILENT), "--asyncio is for a server that this command takes from"),
    (("inspect", "--asyncio", "http://127.0.0.1:1/mcp"), "give FILE, or -m PACKAGE.MODULE"),
    (("inspect", "--asyncio", "--server", "a"), "--asyncio is not for a server of the configura"),
    (("inspect", "-m", "a", "b.py"), "there are two servers: -m a, and the last word or command"),
    (("inspect", "-m", "a", *SILENT), "there are two servers: -m a"),
    (("inspect", "-m", "a", "--server", "b"), "leave -m a out, or --server"),
    (("replay", "a", "-m", "b", "--server", "c"), "give a server, or --server and --config"),
    (("fuzz", "--asyncio", *SILENT), "--asyncio is for a server that this command takes from"),
    (("replay", "a", "-m", "b", "c.py"), "there are two servers: -m b, and another one after it"),
    (("replay", "a", "--asyncio", *SILENT), "--asyncio is for a server that this command takes"),
    (("install", "--client", "cursor"), "give either FILE[:NAME], or -m PACKAGE.MODULE[:NAME]"),
    (("servers", "add", "a", "-m", "b", "c.py"), "which server? leave one of them out"),
    (("servers", "add", "a", "--asyncio", *SILENT), "--asyncio is for a server that this command"),
    (
        ("inspect", "--env", "NOT_SET_HERE", *SILENT),
        "--env NOT_SET_HERE: that environment variable is not set; set it, or write --env NOT_SET_",
    ),
    (("inspect", "--env", "=a", *SILENT), "=a is not a variable; write NAME=VALUE, or NAME"),
    (
        ("inspect", "--env", "A=1", "http://127.0.0.1:1/mcp"),
        "--env is for a server that is started: give its command after `--`",
    ),
    (("inspect", "--inherit-env", "http://127.0.0.1:1/mcp"), "--inherit-env is for a server that"),
    (("inspect", "--cwd", "/", "http://127.0.0.1:1/mcp"), "--cwd is for a server that is started"),
    (("inspect", "--cwd", "/no/where", *SILENT), "/no/where: No such file or directory"),
    (
        ("inspect",),
        (
            "no server: give its URL or its Python file as the last word, or after `--` the command"
            " that starts it: mcp-trio inspect"
        ),
    ),
    (
        ("inspect",),
        "mcp-trio inspect http://127.0.0.1:8000/mcp, or mcp-trio inspect server.py, or mcp-trio",
    ),
    (("inspect", "--"), "mcp-trio inspect -- python server.py"),
    (
        ("call", "greeter.py", "greet", "name=Ada"),
        "the server is the last word: mcp-trio call greet name=Ada greeter.py\n",
    ),
    (
        ("complete", "http://a:secret@127.0.0.1/mcp", "pack", "city", "O"),
        "the server is the last word: mcp-trio complete pack city O URL\n",
    ),
    (("read", "https://a.example/b.txt"), "no server: give its URL"),
    (("read", "https://a.example/b", "node", "a.js"), "read https://a.example/b -- node a.js"),
    (
        ("greeter.py",),
        "greeter.py is not a subcommand; to see what the server offers: mcp-trio inspect greeter.p",
    ),
    (("http://a:secret@127.0.0.1/mcp",), "URL is not a subcommand; to see what the server offers"),
    (("inspect", "no.py"), "there is no file no.py; give the path of a Python file"),
    (("inspect", "no.py:app"), "there is no file no.py; give"),
    (("inspect", "tests.py", *SILENT), "unrecognized arguments: tests.py"),
    (
        ("inspect", "--", __file__),
        "test_parser.py is not a command; to serve the file: mcp-trio in",
    ),
    (
        ("call", "greet", "greeter"),
        "greeter is neither a URL nor a Python file (FILE.py or FILE.py:NAME); the command that",
    ),
    (("call", "greet", "file=server.py"), "no server: give its URL or its Python file"),
    (("inspect", "--header", "a: b", __file__), "--header and --token-env need a server at a URL"),
    (("inspect", "python", "-m", "weather"), "after `--`: mcp-trio inspect -- python -m weather"),
    (
        ("inspect", "ftp://a/mcp"),
        (
            "ftp://a/mcp is not supported: give a URL that begins with http://, https://, ws:// or"
            " wss://"
        ),
    ),
    (("inspect", "--", "ftp://a/mcp"), "ftp://a/mcp is not supported"),
    (
        ("inspect", "--", "http://a/mcp", "-v"),
        "http://a/mcp is not a command: a URL is the last word",
    ),
    (("inspect", "http://a/mcp", "-v"), "unrecognized arguments: -v"),
    (("inspect", "http://a/mcp", *SILENT), "unrecognized arguments: http://a/mcp"),
    (("inspect", "http://a/mcp", "python"), "a URL is the last word"),
    (("inspect", "localhost:8000/mcp"), "is not a URL: mcp-trio inspect http://localhost:8000/mcp"),
    (("call", "greet", "n=1", "[::1]:80"), "is not a URL: mcp-trio call greet n=1 http://[::1]:80"),
    (("inspect", "http://a b/mcp"), "a URL of http or https is needed, not 'http://a b/mcp'"),
    (("inspect", "http://"), "host and port of 'http://' cannot be read"),
    (("inspect", "http://a:x/"), "'http://a:x/'"),
    (("inspect", "http://me:secret@a/"), "a URL must not contain a user name or password"),
    (("inspect", "me", *SILENT), "unrecognized arguments: me"),
    (("inspect", "--jsno", *SILENT), "unrecognized arguments: --jsno"),
    (("inspect", "--revision", "2024", *SILENT), "choose from '2026-07-28'"),
    (("inspect", "--timeout", "soon", *SILENT), "invalid number of seconds value: 'soon'"),
    (("inspect", "--timeout", "0", *SILENT), "0 is not a timeout"),
    (("call",), "required: TOOL"),
    (("call", "greet", "name=World"), "or mcp-trio call greet name=World -- python server.py"),
    (("call", "fetch", "uri=http://a/"), "no server"),
    (
        ("call", "greet", "python", "server.py"),
        "after `--`: mcp-trio call greet -- python server.py",
    ),
    (("call", "greet", "--deep", *SILENT), "unrecognized arguments: --deep"),
    (
        ("call", "greet", "--log-level", "loud", *SILENT),
        "choose from 'debug', 'info', 'notice', 'warning'",
    ),
    (("read",), "required: URI\n"),
    (("read", *SILENT), "required: URI\n"),
    (("read", "tea://menu"), "or mcp-trio read tea://menu -- python server.py"),
    (("read", "http://a/b"), "or mcp-trio read http://a/b -- python server.py"),
    (
        ("read", "tea://menu", "python", "a.py"),
        "after `--`: mcp-trio read tea://menu -- python a.py",
    ),
    (("read", "tea://menu", "tea://menu", *SILENT), "unrecognized arguments: tea://menu"),
    (
        ("read", "menu", *SILENT),
        "'menu' is not a URI: a URI begins with a scheme, as in tea://menu",
    ),
    (("read", "", *SILENT), "'' is not a URI"),
    (("read", "a://\udcff", *SILENT), "'a://\\udcff' is not UTF-8"),
    (("complete", "recommend", "mood", "\udcff", *SILENT), "'\\udcff' is not UTF-8"),
    (("call", "greet", "name=\udcff", *SILENT), "'name=\\udcff' is not UTF-8"),
    (("read", "1a:b", *SILENT), "'1a:b' is not a URI"),
    (("read", "tea://menu/{tea}", *SILENT), "is a template: replace {tea}"),
    (("read", "tea://menu", "--output"), "argument --output: expected one argument"),
    (("prompt",), "required: NAME\n"),
    (
        ("prompt", "recommend", "mood=calm"),
        "mcp-trio prompt recommend mood=calm -- python server.py",
    ),
    (("prompt", "recommend", "{}", "python"), "mcp-trio prompt recommend '{}' -- python"),
    (("complete", "recommend", *SILENT), "required: ARGUMENT, VALUE\n"),
    (
        ("complete", "recommend", "mood", ""),
        "mcp-trio complete recommend mood '' -- python server.py",
    ),
    (("complete", "tea://{", "tea", "a", *SILENT), "the '{' at 6 is never closed"),
    (("completion",), "required: SHELL\n"),
    (("listen",), "or mcp-trio listen -- python server.py"),
    (
        ("listen", "tea://menu", "python", "a.py"),
        "after `--`: mcp-trio listen tea://menu -- python a.py",
    ),
    (("listen", "menu", "http://a/b"), "'menu' is not a URI"),
    (("listen", "menu", *SILENT), "'menu' is not a URI: a URI begins with a scheme"),
    (("listen", "tea://menu/{tea}", *SILENT), "is a template: replace {tea}"),
    (("listen", "--sampling", *SILENT), "unrecognized arguments: --sampling"),
    (("listen", "--answer", "a=b", *SILENT), "unrecognized arguments: a=b --answer"),
    (
        ("call", "greet", "--answer", "yes", *SILENT),
        "'yes' is not an answer: write --answer KEY=VALUE",
    ),
    (("call", "greet", "--answer", "a=\udcff", *SILENT), "'a=\\udcff' is not UTF-8"),
    (
        ("read", "a://b", "--root", "/no/where", *SILENT),
        "argument --root: /no/where: No such file or directory",
    ),
    (
        ("reed", "tea://menu", *SILENT),
        "choose from 'demo', 'run', 'inspect', 'doctor', 'call', 'read'",
    ),
]


@pytest.mark.parametrize(("words", "complaint"), MISUSED)
def test_command_line_misuse_is_explained(
    words: tuple[str, ...], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        status: object = main(words)
    except SystemExit as exc:  # argparse has printed an error
        status = exc.code
    shown = capsys.readouterr()
    assert (status, shown.out) == (2, "")
    assert complaint in shown.err
    assert "Traceback" not in shown.err


def test_command_line_misuse_exits_with_2() -> None:
    result = run("read", "menu", *SILENT)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("mcp-trio: 'menu' is not a URI")
