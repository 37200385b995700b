"""`python -m mcp_asyncio_shim` in this process: its words, its exit status, what it prints."""

from __future__ import annotations

import io
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcp_asyncio_shim import __main__ as command
from mcp_asyncio_shim import _uvicorn
from mcp_core import ConnectFailed
from mcp_core.adapters import CannotRecord
from mcp_core.registry import Server

if TYPE_CHECKING:
    from pathlib import Path

SERVER = """
from mcp_core.registry import Server

server = Server("tea")


def fail(error):
    raise error
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server file. What its import changes is restored."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr("mcp_core.adapters._served_source._served_root", None)
    monkeypatch.setattr("mcp_core.adapters._served_source._configure_logging", lambda log: None)
    path = tmp_path / "tea.py"
    path.write_text(SERVER)
    return str(path)


Calls = list[tuple[Any, ...]]


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Calls:
    """The arguments with which a server would be served."""
    calls: Calls = []

    def run(server: Server, *, record: Any) -> None:
        calls.append((server.info.name, record))

    def serve_http(server: Server, http: Any, recording: Any) -> bool:
        calls.append((server.info.name, http, recording))
        return True

    monkeypatch.setattr(command, "run", run)
    monkeypatch.setattr(_uvicorn, "serve_http", serve_http)
    return calls


def test_file_is_served_over_stdio(file: str, served: Calls) -> None:
    assert command.main([file]) == 0
    assert served == [("tea", None)]


def test_options_of_stdio_are_passed_on(
    file: str, served: Calls, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KEYS_OF_TEA", raising=False)
    trace = str(tmp_path / "tea.mcp.jsonl")
    assert command.main([file, "--record", trace]) == 0
    [(name, recording)] = served
    assert (name, str(recording.path)) == ("tea", trace)
    assert command.main([file, "--state-keys-env", "KEYS_OF_TEA"]) == 2  # it isn't set
    assert len(served) == 1


def test_file_is_served_over_http(
    file: str, served: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = str(tmp_path / "tea.mcp.jsonl")
    assert command.main([file, "--http", "8123", "--path", "/tea", "--record", trace]) == 0
    [(name, http, recording)] = served
    assert (name, http.port, http.path) == ("tea", 8123, "/tea")
    assert str(recording.path) == trace
    monkeypatch.setattr(_uvicorn, "serve_http", lambda *_: False)
    assert command.main([file, "--http", "8123"]) == 1  # its lifespan has failed


@pytest.mark.parametrize("words", [[], ["--help"], ["--htt", "0", "x.py"], ["a.py", "b.py"]])
def test_misuse_and_help_are_for_argparse(
    words: list[str], served: Calls, capsys: pytest.CaptureFixture[str]
) -> None:
    """No option may be shortened: one that is added later would change its meaning."""
    with pytest.raises(SystemExit) as caught:
        command.main(words)
    assert caught.value.code == (0 if words == ["--help"] else 2)
    output = capsys.readouterr()
    assert "usage: python -m mcp_asyncio_shim" in output.out + output.err
    assert served == []


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (ConnectFailed("fd 0 is no pipe"), 3, "mcp-trio: fd 0 is no pipe\n"),
        (CannotRecord(13, "cannot write the trace"), 2, "cannot write the trace\n"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_error_has_its_status(
    error: BaseException,
    status: int,
    text: str,
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its text is one line with the command's name, without a traceback."""

    def run(server: Server, record: Any) -> None:
        raise error

    monkeypatch.setattr(command, "run", run)
    assert command.main([file]) == status
    written = capsys.readouterr().err
    assert written.endswith(text)
    assert written.count("\n") == text.count("\n")


def test_address_that_cannot_be_listened_on_has_its_status(
    file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def serve_http(*_: object) -> bool:
        raise _uvicorn.CannotServe("cannot listen on 127.0.0.1:80")

    monkeypatch.setattr(_uvicorn, "serve_http", serve_http)
    assert command.main([file, "--http", "80"]) == 3
    assert capsys.readouterr().err == "mcp-trio: cannot listen on 127.0.0.1:80\n"


@pytest.mark.parametrize(
    ("source", "status", "text"),
    [
        (None, 2, "tea.py"),
        ("1 / 0", 1, "tea.py could not be imported: ZeroDivisionError: division by zero\n"),
    ],
)
def test_file_that_cannot_be_served_has_its_status(
    source: str | None,
    status: int,
    text: str,
    file: str,
    tmp_path: Path,
    served: Calls,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A file that isn't there is misuse; one that raises is the server's error."""
    if source is None:
        (tmp_path / "tea.py").unlink()
    else:
        (tmp_path / "tea.py").write_text(source)
    assert command.main([file]) == status
    last = capsys.readouterr().err.splitlines(keepends=True)[-1]
    assert last.startswith("mcp-trio: ")
    assert text in last
    assert served == []


@pytest.mark.parametrize("in_group", [False, True])
def test_exception_of_the_served_code_is_its_author_s(
    in_group: bool,
    file: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its traceback has no control characters. An exception of this package propagates."""
    module: dict[str, Any] = {}
    exec(compile(SERVER, file, "exec"), module)

    def run(server: Server, record: Any) -> None:
        error = SystemExit("a\x1b[1m")
        if not in_group:
            fail(ValueError(*error.args))
        try:
            fail(error)
        except SystemExit as exc:
            raise BaseExceptionGroup("several", [exc]) from None

    def ours(error: BaseException) -> None:
        raise error

    monkeypatch.setattr(command, "run", run)
    fail = module["fail"]
    assert command.main([file]) == 1
    written = capsys.readouterr().err
    assert "Traceback" in written.splitlines()[0]
    assert "a\\u001b[1m" in written
    assert written.endswith("\n")
    assert not written.endswith("\n\n")
    fail = ours
    with pytest.raises(BaseExceptionGroup if in_group else ValueError):
        command.main([file])


@pytest.mark.parametrize(("missing", "status"), [("uvicorn", 2), ("h11", None)])
def test_http_without_uvicorn_names_it(
    missing: str,
    status: int | None,
    file: str,
    served: Calls,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A module that uvicorn lacks is another problem, and not hidden."""

    class Finder:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "mcp_asyncio_shim._uvicorn":
                raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.delitem(sys.modules, "mcp_asyncio_shim._uvicorn")
    monkeypatch.delattr("mcp_asyncio_shim._uvicorn")
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    if status is None:
        with pytest.raises(ModuleNotFoundError, match=missing):
            command.main([file, "--http", "0"])
    else:
        assert command.main([file, "--http", "0"]) == status
        cure = f"{sys.executable} -m pip install uvicorn\n"
        expected = f"mcp-trio: --http on asyncio needs uvicorn: {cure}"
        assert capsys.readouterr().err == expected
    assert served == []


def test_server_at_a_terminal_says_what_it_waits_for(
    file: str,
    served: Calls,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    assert command.main([file]) == 0
    written = capsys.readouterr().err
    assert written.startswith("tea is waiting for a client on stdin")
    assert f"mcp-trio inspect --asyncio {file}" in written
