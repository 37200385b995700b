"""The options with which a host connects to a server that its program names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.adapters import Recording
from mcp_core.registry import Server
from mcp_trio import LoginConfig
from mcp_trio.host import _sources
from mcp_trio.host._sources import SourceOptions, make_source

if TYPE_CHECKING:
    from pathlib import Path

SERVER = Server("s")
PLAIN = SourceOptions(None, "discard")


@pytest.fixture(autouse=True)
def connections(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[Any, ...], Any]]:
    """Each connection: the function's name, its arguments and its options."""
    found: list[tuple[str, tuple[Any, ...], Any]] = []

    def connect(name: str, *args: Any, **options: Any) -> None:
        found.append((name, args, options))

    for name in ("connect", "connect_http", "connect_stdio", "connect_websocket"):
        monkeypatch.setattr(_sources, name, partial(connect, name))
    return found


CALLERS_AUTH = LoginConfig(browse=None)
NO_BROWSER = "a login without a browser"


@pytest.mark.parametrize(("target", "options", "expected"), [
    (SERVER, PLAIN, ("connect", (SERVER,), {})),
    ("http://h/mcp", PLAIN, ("connect_http", ("http://h/mcp",), {"auth": NO_BROWSER})),
    ("https://h/mcp", SourceOptions(True, "discard"),
     ("connect_http", ("https://h/mcp",), {"auth": True})),
    ("https://h/mcp", SourceOptions(False, "discard"),
     ("connect_http", ("https://h/mcp",), {"auth": False})),
    ("ws://h/mcp", SourceOptions(True, "discard"), ("connect", ("ws://h/mcp",), {})),
    (["program", "-x"], PLAIN, ("connect_stdio", (["program", "-x"],), {
        "env": {}, "inherit_env": False, "cwd": None, "stderr": "discard",
    })),
    (["program"], SourceOptions(True, "forward", env={"A": "b"}, inherit_env=True),
     ("connect_stdio", (["program"],), {
        "env": {"A": "b"}, "inherit_env": True, "cwd": None, "stderr": "forward",
    })),
    ({"command": "program", "args": ["-x"], "env": {"A": "own", "B": "c"}, "cwd": "/"},
     SourceOptions(None, "discard", env={"A": "b", "D": "e"}),
     ("connect_stdio", (("program", "-x"),), {
        "env": {"A": "own", "B": "c", "D": "e"}, "inherit_env": False, "cwd": "/",
        "stderr": "discard",
    })),
    ({"type": "http", "url": "https://h/"}, PLAIN,
     ("connect_http", ("https://h/",), {"headers": {}, "auth": NO_BROWSER})),
    ({"type": "http", "url": "https://h/", "headers": {"AUTHORIZATION": "x"}},
     SourceOptions(CALLERS_AUTH, "discard"),
     ("connect_http", ("https://h/",), {"headers": {"AUTHORIZATION": "x"}, "auth": False})),
    ({"type": "http", "url": "https://h/", "headers": {"A": "x"}},
     SourceOptions(CALLERS_AUTH, "discard"),
     ("connect_http", ("https://h/",), {"headers": {"A": "x"}, "auth": CALLERS_AUTH})),
    ({"type": "ws", "url": "ws://h/", "headers": {"A": "x"}}, SourceOptions(True, "discard"),
     ("connect_websocket", ("ws://h/",), {"headers": {"A": "x"}})),
])  # fmt: skip
def test_server_is_connected_with_the_options_of_its_host(
    target: Any,
    options: SourceOptions,
    expected: tuple[str, Any, Any],
    connections: list[tuple[str, tuple[Any, ...], Any]],
) -> None:
    """A login only for a URL whose headers have no authorization, without a browser by default."""
    make_source("x", target, options).connect({"versions": ["2025-11-25"]}, {}, None)
    [(name, args, given)] = connections
    function, arguments, more = expected
    auth = given.get("auth")
    if isinstance(auth, LoginConfig) and auth is not CALLERS_AUTH:
        assert auth.browse is None
        given["auth"] = NO_BROWSER
    assert (name, args) == (function, arguments)
    assert given == {"trace": None, "record": None, "versions": ["2025-11-25"], **more}


def test_trace_and_stderr_get_the_name_of_their_server(
    connections: list[tuple[str, tuple[Any, ...], Any]],
) -> None:
    traced: list[Any] = []
    printed: list[Any] = []
    options = SourceOptions(
        None, lambda *line: printed.append(line), trace=lambda *each: traced.append(each)
    )
    make_source("x", ["program"], options).connect({}, {}, None)
    [(_, _, given)] = connections
    given["trace"]("sent", b"{}")
    given["stderr"]("a line")
    assert (traced, printed) == ([("x", "sent", b"{}")], [("x", "a line")])


def test_recording_hides_the_secrets_of_the_server_too(
    tmp_path: Path, connections: list[tuple[str, tuple[Any, ...], Any]]
) -> None:
    """The trace of a host is given to others, and its values come from several places."""
    asked: list[str] = []

    def record(server: str) -> Recording:
        asked.append(server)
        return Recording(path=tmp_path / "a", secrets=frozenset({"given"}))

    options = SourceOptions(None, "discard", record=record, env={"TOKEN": "of-the-host-1234"})
    entry = {"command": "program", "env": {"KEY": "of-the-entry-1234"}}
    for target, secrets in (
        (["program"], {"given", "of-the-host-1234"}),
        (entry, {"given", "of-the-host-1234", "of-the-entry-1234"}),
        ({"type": "http", "url": "https://h/"}, {"given"}),
    ):
        source = make_source("x", target, options)
        source.connect({}, {}, None)
        recording = connections[-1][2]["record"]
        assert recording.path == tmp_path / "a"
        assert recording.secrets == secrets
        assert source.secrets == secrets - {"given"}
    assert asked == ["x"] * 3


def test_secrets_of_the_process_count_if_programs_inherit_its_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_SECRET_TOKEN", "of-the-process-1234")
    for inherits in (True, False):
        found = SourceOptions(None, "discard", inherit_env=inherits).secrets_of(["program"])
        assert ("of-the-process-1234" in found) is inherits


def test_source_of_a_program_is_the_same_for_the_same_target() -> None:
    source = make_source("x", ["program"], PLAIN)
    assert source.same_as(make_source("x", ["program"], SourceOptions(True, "forward")))
    assert not source.same_as(make_source("x", ["program", "-x"], PLAIN))
    assert not source.same_as(make_source("x", {"command": "program"}, PLAIN))
    assert repr(source) == "<server 'x' of the program>"
    assert source.needs_pins
    assert not make_source("x", SERVER, PLAIN).needs_pins
    assert make_source("x", "http://h/", PLAIN).needs_pins


def test_source_of_another_type_is_refused() -> None:
    target: Any = 7
    with pytest.raises(TypeError):
        make_source("x", target, PLAIN)
    with pytest.raises(ValueError, match="x"):
        make_source("x", {"command": 7}, PLAIN)
