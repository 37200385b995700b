"""`mcp-trio replay` in this process: its command line, its ports, and what it refuses."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest
import trio

from mcp_trio.cli._errors import CliError
from mcp_trio.cli.oracle import _replay, _replay_client
from mcp_trio.oracle.replay import _http_server

URL = "http://127.0.0.1:1/mcp"
REMOTE = "https://192.0.2.1/mcp"


def parsed(*words: str) -> Any:
    """Return the function of a command line, which isn't called."""
    return _replay.parse(["a.mcp.jsonl", *words])


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ((), ("a.mcp.jsonl", None, 0.0, [], None)),
        (("--http", "8000"), ("a.mcp.jsonl", ("127.0.0.1", 8000), 0.0, [], None)),
        (("--http", "[::1]:0"), ("a.mcp.jsonl", ("::1", 0), 0.0, [], None)),
        (("--pace", "0"), ("a.mcp.jsonl", None, 0.0, [], None)),
        (("--pace", "1000"), ("a.mcp.jsonl", None, 1000.0, [], None)),
        (
            ("--ignore", "/a", "--ignore", "/b", "--junit", "r.xml"),
            ("a.mcp.jsonl", None, 0.0, ["/a", "/b"], "r.xml"),
        ),
    ],
)
def test_replay_without_a_server_is_the_server(words: tuple[str, ...], arguments: Any) -> None:
    run = parsed(*words)
    assert run.func is _replay._replay_server
    assert run.args == arguments


@pytest.mark.parametrize(
    ("words", "server"),
    [
        ((URL,), URL),
        (("--", URL), URL),
        (("--", "node", "s.js"), ("node", "s.js")),
        (("--", "node", URL), ("node", URL)),
        (("--allow-remote", REMOTE), REMOTE),
    ],
)
def test_replay_with_a_server_is_its_client(words: tuple[str, ...], server: Any) -> None:
    run = parsed(*words)
    path, target, found = run.args
    assert (run.func, path, target.server) == (_replay._replay_client, "a.mcp.jsonl", server)
    assert (target.recording, target.headers, target.env) == (None, (), ())
    assert (target.inherit_env, target.cwd, found.response_timeout) == (False, None, None)


def test_replay_as_client_has_the_options_of_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "t")
    _, target, found = parsed("--header", "X-A: b", "--response-timeout", "0.5", "--meta", URL).args
    assert target.headers == (("x-a", "b"),)
    assert (found.response_timeout, found.meta, found.json, found.junit) == (0.5, True, False, None)
    words = ("--env", "A=1", "--inherit-env", "--cwd", "/", "--record", "new.mcp.jsonl", "--json")
    _, target, found = parsed(*words, "--", "node").args
    assert (target.env, target.inherit_env, target.cwd) == ((("A", "1"),), True, Path("/"))
    assert Path(target.recording.path).name == "new.mcp.jsonl"
    assert found.json


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("-m", "a", URL), "there are two servers: -m a, and another one after it"),
        (("-m", "a", "--", "node"), "there are two servers: -m a, and another one after it"),
        ((URL, "--", "node"), f"there are two servers: {URL}, and the command after --"),
        (("--asyncio", URL), "--asyncio"),
        (("--asyncio", "--", "node"), "--asyncio"),
        (("--asyncio",), "--asyncio is for the client of FILE: give a server last"),
        (("--header", "A: b"), "--header is for the client of FILE"),
        (("--token-env", "A"), "--token-env is for the client of FILE"),
        (("--env", "A=1"), "--env is for the client of FILE"),
        (("--inherit-env",), "--inherit-env is for the client of FILE"),
        (("--cwd", "/"), "--cwd is for the client of FILE"),
        (("--allow-remote",), "--allow-remote is for the client of FILE"),
        (("--response-timeout", "1"), "--response-timeout is for the client of FILE"),
        (("--record", "x"), "--record is for the client of FILE"),
        (("--http", "0", URL), "--http is for the server of FILE: leave the server out"),
        (("--pace", "0", URL), "--pace is for the server of FILE: leave the server out"),
        (("--pace", "1000.5"), "1000.5 is not a factor from 0 to 1000"),
        (("--pace", "-0.5"), "-0.5 is not a factor from 0 to 1000"),
        (("--pace", "x"), "invalid number value"),
        (("--response-timeout", "inf", URL), "inf is not a timeout: give seconds above 0"),
        (("--response-timeout", "x", URL), "invalid number of seconds value"),
        (("--server", "a", "--", "node"), "give a server, or --server and --config, and not both"),
        (("--server", "a", "-m", "b"), "give a server, or --server and --config, and not both"),
        (("--config", "a.json", URL), "give a server, or --server and --config, and not both"),
        (("--approve-server", "a"), "--approve-server"),
    ],
)
def test_replay_options_that_do_not_fit_each_other_are_refused(
    words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parsed(*words)
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("url", "headers", "allowed", "says"),
    [
        (REMOTE, (), False, "192.0.2.1 is not this machine, and replay repeats there all"),
        (REMOTE, (), True, ""),
        (URL, (), False, ""),
        (URL, (("Authorization", "x"),), False, ""),
        ("http://192.0.2.1/", (("Authorization", "x"),), True, "unencrypted"),
        ("http://localhost:x/", (), True, "localhost:x"),
    ],
)
def test_replay_to_another_machine_needs_consent(
    url: str, headers: Any, allowed: bool, says: str
) -> None:
    found = argparse.Namespace(allow_remote=allowed)
    if not says:
        _replay._require_consent(url, headers, found)
        return
    with pytest.raises(CliError, match=says):
        _replay._require_consent(url, headers, found)


# -- The server ------------------------------------------------------------------------------------


class _Listener:
    """A socket that listens, as far as it is closed."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.is_closed = False

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()
        self.is_closed = True


def made_of(server: object, **options: Any) -> Any:
    """Return the options of an HTTP server that isn't made."""
    return SimpleNamespace(**options)


@pytest.mark.parametrize(("port", "closed"), [(0, [False, True, True]), (8000, [False] * 3)])
@pytest.mark.parametrize(("missing", "signal", "status"), [(0, 143, 143), (2, 143, 0)])
async def test_replay_listens_on_one_free_port_or_on_all_addresses(
    port: int,
    closed: list[bool],
    missing: int,
    signal: int,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each address of a name would get another free port, and only the first one is printed."""
    listeners = [_Listener(number) for number in (5, 6, 7)]
    served: list[Any] = []
    lines: list[str] = []

    async def listen(port: int, *, host: str) -> list[_Listener]:
        await trio.lowlevel.checkpoint()
        return list(listeners)

    async def serve(http: Any, found: list[_Listener], stop: trio.Event) -> None:
        await trio.lowlevel.checkpoint()
        served.extend(found)
        assert len(http.new_id()) == 32  # it can't be guessed
        assert http.new_id() != http.new_id()

    class CaughtSignal:
        def __init__(self, stop: object) -> None:
            self.exit_code = signal

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr("mcp_core.trace.ReplayHttpServer", made_of)
    monkeypatch.setattr(trio, "open_tcp_listeners", listen)
    monkeypatch.setattr(_http_server, "serve_over_http", serve)
    monkeypatch.setattr("mcp_trio.streams._stdio.stop_on_signals", CaughtSignal)
    monkeypatch.setattr(
        "mcp_trio.http_server._serve.address_of",
        lambda listener, host, path, scheme: SimpleNamespace(
            url=f"{scheme}://{host}:{listener.port}{path}"
        ),
    )
    stderr: Any = SimpleNamespace(
        write_line=lambda *parts: lines.append(
            "".join(each if isinstance(each, str) else each[0] for each in parts)
        )
    )
    server: Any = SimpleNamespace(missing_count=missing)
    assert await _replay._serve_http(server, "localhost", port, "a.mcp.jsonl", stderr) == status
    assert [each.is_closed for each in listeners] == closed
    assert served == [each for each in listeners if not each.is_closed]
    assert lines == ["Replaying a.mcp.jsonl at http://localhost:5/mcp"]


async def test_replay_that_cannot_listen_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    async def listen(port: int, *, host: str) -> None:
        await trio.lowlevel.checkpoint()
        raise OSError("all is taken")

    monkeypatch.setattr("mcp_core.trace.ReplayHttpServer", made_of)
    monkeypatch.setattr(trio, "open_tcp_listeners", listen)
    server: Any = None
    screen: Any = None
    with pytest.raises(CliError, match="cannot listen on ::1, port 80: all is taken") as caught:
        await _replay._serve_http(server, "::1", 80, "a", screen)
    assert caught.value.status == 3


class _Told:
    """A server of a trace that has been asked, and what `_serve` prints about it."""

    def __init__(self, found: int, missing: int, notes: int) -> None:
        self.found_count = found
        self.missing_count = missing
        self.missing = [f"request {number}" for number in range(missing)]
        self.notes = [f"note {number}" for number in range(notes)]


@pytest.mark.parametrize(
    ("found", "missing", "stopped", "status"),
    [(1, 0, 0, 0), (1, 1, 0, 1), (0, 0, 0, 4), (0, 0, 130, 130), (1, 1, 143, 143), (0, 1, 0, 1)],
)
def test_replay_as_server_has_a_status(
    found: int,
    missing: int,
    stopped: int,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The report of JUnit has a test for each request, and an error if there was none."""
    junit = tmp_path / "a.xml"
    served = prepared(monkeypatch, _Told(found, missing, 0), stopped)
    assert _replay._replay_server("a", None, 0.5, ["/x"], str(junit)) == status
    assert served == [(0.5, ["/x"])]
    report = junit.read_text()
    assert ("1 requests are in the trace" in report) == bool(found)
    assert report.count("<failure ") == missing
    assert f'tests="{max(1, found + missing)}"' in report
    assert ("<error " in report) == (not found and not missing)


def prepared(
    monkeypatch: pytest.MonkeyPatch, server: _Told, stopped: int
) -> list[tuple[float, list[str]]]:
    """Let `_serve` have this server, which is served at once. Return what it is made with."""
    made: list[tuple[float, list[str]]] = []

    def make(trace: object, *, pace: float, ignore: list[str]) -> _Told:
        made.append((pace, ignore))
        return server

    monkeypatch.setattr("mcp_core.trace.ReplayServer", make)
    trace = SimpleNamespace(has_requests=True)
    monkeypatch.setattr(_replay, "load_trace_file", lambda path, stderr: trace)
    monkeypatch.setattr(trio, "run", lambda *_: stopped)
    monkeypatch.setattr(sys, "stdin", None)
    return made


@pytest.mark.parametrize(("missing", "shown", "more"), [(20, 20, ""), (23, 20, "and 3 more\n")])
def test_replay_as_server_prints_the_first_twenty_that_are_missing(
    missing: int,
    shown: int,
    more: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prepared(monkeypatch, _Told(1, missing, missing), 0)
    assert _replay._replay_server("a", None, 0.0) == 1
    err = capsys.readouterr().err
    assert err.count("mcp-trio: not in the trace: request ") == shown
    assert err.count("mcp-trio: note ") == shown
    assert err.endswith(f"mcp-trio: {more}" if more else "request 19\n")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_replay_waiting_at_a_terminal_says_how_to_try_it(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared(monkeypatch, _Told(1, 0, 0), 0)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: is_terminal))
    assert _replay._replay_server("a.mcp.jsonl", None, 0.0) == 0
    hint = "to try it: mcp-trio inspect -- mcp-trio replay a.mcp.jsonl"
    assert (hint in capsys.readouterr().err) == is_terminal


# -- The client ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "count", "text"),
    [
        (3, 4, 0, "line 3 of the trace, line 4 now"),
        (3, None, 0, "line 3 of the trace"),
        (None, 4, 1, "line 4 now: /a"),
        (3, 4, 2, "line 3 of the trace, line 4 now: /a and 1 more"),
    ],
)
def test_difference_names_its_lines_and_its_first_value(
    old: int | None, new: int | None, count: int, text: str
) -> None:
    values = [SimpleNamespace(pointer="/a")] * min(count, 1)
    difference: Any = SimpleNamespace(old_line=old, new_line=new, values=values, value_count=count)
    found = _replay_client._lines_of(difference) + _replay_client._values_of(difference)
    assert found == text


def test_redacted_pointers_are_redacted_again() -> None:
    header = SimpleNamespace(redacted=("secrets", "pointer:/a/b", "pointer:/c"))
    trace: Any = SimpleNamespace(header=header)
    assert _replay._redacted_pointers(trace) == ("/a/b", "/c")
