"""A case that cannot show anything is an error, so that no test passes without its server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core import ConnectFailed
from mcp_trio.oracle.fuzz._report import RunDirectory, _portable, _source_of
from mcp_trio.testing import find_client_faults, find_faults
from tests.harness.world.threaded_http import fixed_response, threaded_http_server
from tests.trio_.oracle.fuzz.targets import SERVER, small_server

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.timeout(150)  # some start the command and pytest, on a busy machine

OLD, NEW = "2025-11-25", "2026-07-28"
PING: Any = ("request", "ping", {}, "int", "whole")
CASES: dict[str, list[Any]] = {
    "handshake": [("open", OLD, "whole", "all"), PING],
    "no handshake": [("open", NEW, "whole", "all"), ("request", "tools/list", {})],
    "bytes first": [("open", NEW, "whole", "all"), ("damage", b"\xff")],
    "asks for nothing": [("open", OLD, "none", "all")],
    "ends in order": [("open", NEW, "whole", "all"), ("disconnect",)],
    "reconnects": [("open", OLD, "whole", "all"), PING, ("reconnect",)],
    "no step": [],
}


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


REFUSES = """
import json, sys
for line in sys.stdin:
    id = json.loads(line).get("id")
    error = {"code": -32603, "message": "no database"}
    if id is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "error": error}), flush=True)
"""
NO_SERVERS = {
    "not there": (["mcp-trio-no-such-program"], "mcp-trio-no-such-program"),
    "file not there": ([sys.executable, "no-such-server.py"], "exit status 2"),
    "exits with 0": (python("pass"), "exit status 0"),
    "fails": (python("raise SystemExit('the disk is full')"), "the disk is full"),
    "is killed": (python("import os; os.kill(os.getpid(), 9)"), "exit status -9"),
    "crashes at its first message": (python("import os; input(); os._exit(7)"), "exit status 7"),
    "closes stdout": (python("import os, sys; os.close(1); sys.stdin.read()"), "stdout"),
    "prints junk": (python("print('hello'); print('{}')"), "exit status 0"),
    "refuses": (python(REFUSES), "error -32603: no database"),
}


NO_SERVER_CASES = ["handshake", "bytes first", "asks for nothing", "ends in order"]


@pytest.mark.parametrize(
    ("server", "case"),
    [
        pytest.param(server, case, marks=[pytest.mark.slow] * bool((at + place) % 4))
        for at, server in enumerate(NO_SERVERS)
        for place, case in enumerate(NO_SERVER_CASES)
    ],
)
def test_find_faults_without_a_server_raises(server: str, case: str) -> None:
    command, says = NO_SERVERS[server]
    with pytest.raises(ConnectFailed) as caught:
        find_faults(command, CASES[case])
    text = str(caught.value)
    if server == "refuses" and case == "bytes first":
        return  # it cannot read them, and ends
    assert says in text
    if server != "not there":
        assert f"Its command was started in {os.getcwd()}: correct TARGET, `cwd`" in text  # noqa: PTH109


@pytest.mark.parametrize("case", CASES)
def test_find_faults_of_silent_program_raises(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_trio.oracle.fuzz.play._waiting.OPEN_TIMEOUT", 0.1)  # it never answers
    with pytest.raises(ConnectFailed, match=r"it did not respond|its stdout has ended"):
        find_faults(python("import sys; sys.stdin.read()"), CASES[case], response_timeout=0.1)


@pytest.mark.parametrize("case", ["handshake", "asks for nothing", "reconnects", "no step"])
def test_find_faults_of_correct_server_is_empty(case: str) -> None:
    assert find_faults(small_server(), CASES[case]) == {}


def test_find_faults_of_crash_after_the_first_response_is_a_crash() -> None:
    crash = small_server(on_message="if method == 'ping': os._exit(7)")
    assert "exit status 7 after ping" in find_faults(crash, CASES["handshake"])["crash"]


def test_find_faults_of_crash_names_the_error_and_not_the_frame_of_its_group() -> None:
    raises = "raise ExceptionGroup('unhandled errors', [KeyError('name')])"
    crash = small_server(on_message=f"if method == 'ping': {raises}")
    sentence = find_faults(crash, CASES["handshake"])["crash"]
    assert sentence.endswith("exit status 1 after ping; its stderr: KeyError: 'name'")


def test_find_faults_of_hang_after_the_first_response_is_a_hang(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hang = small_server(on_message="if method == 'ping': time.sleep(3600)")
    assert "RPC-35" in find_faults(hang, CASES["handshake"], response_timeout=0.3)


@pytest.mark.parametrize("play", [find_faults, find_client_faults])
@pytest.mark.parametrize("step", [("opne", OLD, "whole", "all"), (), ("x",), (5,), ("on", 1)])
def test_step_that_is_not_known_raises(play: Any, step: Any) -> None:
    """The player would leave it out, and what is left may show nothing."""
    with pytest.raises(ValueError, match="the case cannot be played: its step 0 "):
        play(small_server(), [step])


# -- URLs ------------------------------------------------------------------------------------------


JSON = {"content-type": "application/json"}
NO_ID = json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "no"}})


@pytest.mark.parametrize("case", ["handshake", "no handshake", "bytes first", "asks for nothing"])
@pytest.mark.parametrize(
    ("status", "body", "headers", "says"),
    [
        (404, b"", {}, "HTTP status 404"),
        (404, b'{"detail": "Not Found"}', JSON, "HTTP status 404"),
        (401, NO_ID.encode(), JSON, "requires a login"),
        (503, b"", {}, "HTTP status 503"),
        (200, b"<html>", {"content-type": "text/html"}, "HTTP status 200"),
        (202, b"", {}, "HTTP status 202"),
    ],
)
def test_find_faults_of_url_that_is_no_server_raises(
    case: str, status: int, body: bytes, headers: dict[str, str], says: str
) -> None:
    with (
        threaded_http_server(fixed_response(status, headers, body)) as url,
        pytest.raises(ConnectFailed, match=says),
    ):
        find_faults(f"{url}/mcp", CASES[case], response_timeout=0.5)


@pytest.mark.parametrize("case", CASES)
def test_find_faults_of_url_that_refuses_connections_raises(case: str) -> None:
    with threaded_http_server(fixed_response(200, {})) as url:
        pass
    with pytest.raises(ConnectFailed, match="Start the server, or correct its URL"):
        find_faults(url, CASES[case])


# -- Clients ---------------------------------------------------------------------------------------

SERVES: list[Any] = [("serve", [OLD], []), ("answer", "never", 0, 0)]
NO_CLIENTS = {
    "file not there": ([sys.executable, "no-such-client.py"], "exit status 2"),
    "exits with 0": (python("pass"), "exit status 0"),
    "is killed": (python("import os; os.kill(os.getpid(), 9)"), "exit status -9"),
    "prints junk": (python("print('hello')"), "exit status 0"),
    "has a response only": (python('print(\'{"id": 1, "result": {}}\')'), "exit status 0"),
    "does not use the relay": ([*python("import sys"), "{server}"], "exit status 0"),
    "does not use the URL": ([*python("import sys"), "{url}"], "exit status 0"),
}


@pytest.mark.parametrize("client", NO_CLIENTS)
def test_find_client_faults_without_a_request_raises(client: str) -> None:
    command, says = NO_CLIENTS[client]
    with pytest.raises(ConnectFailed, match="it has sent no request") as caught:
        find_client_faults(command, SERVES)
    assert says in str(caught.value)


@pytest.mark.parametrize("way", [[], ["{server}"], ["{url}"]])
def test_find_client_faults_of_client_that_never_connects_raises(
    way: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_trio.oracle.fuzz.client._client_play.OPEN_TIMEOUT", 0.1)
    monkeypatch.setattr("mcp_trio.oracle.fuzz.client._client_play.MIN_EXIT_TIMEOUT", 0.1)
    with pytest.raises(ConnectFailed, match="it has sent no request"):
        find_client_faults(
            [*python("import time; time.sleep(600)"), *way], SERVES, response_timeout=0.1
        )


# -- Written tests ---------------------------------------------------------------------------------


def run_pytest(place: Path, *words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, *words],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    return done.returncode, done.stdout


def write_server(path: Path, on_message: str = "pass") -> None:
    path.write_text(SERVER.replace("{before}", "").replace("{on_message}", on_message))


def fuzz(place: Path, *words: str) -> str:
    """Fuzz in `place` a server that answers each ping twice. Return the tests that are written."""
    write_server(place / "server.py", "if method == 'ping': send(id, result={})")
    command = [
        sys.executable,
        "-m",
        "mcp_trio",
        "fuzz",
        "--cases",
        "3",
        "--seed",
        "1",
        "--no-shrink",
    ]
    done = subprocess.run(
        [*command, "--era", "legacy", *words], cwd=place, capture_output=True, text=True,
        check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    return (place / "out" / "found" / "test_findings.py").read_text()


def test_written_test_has_the_same_verdict_from_any_directory(tmp_path: Path) -> None:
    """It is red while the fault is there or the server is not, and green once it is repaired."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    fuzz(project, "--output", "out/found", "--", sys.executable, "server.py")
    found = project / "out" / "found"
    verdicts = [
        run_pytest(found),
        run_pytest(project, "out/found/test_findings.py"),
        run_pytest(elsewhere, str(found / "test_findings.py")),
    ]
    assert [status for status, _ in verdicts] == [1, 1, 1], verdicts
    assert not any("ConnectFailed" in out for _, out in verdicts)  # the fault itself is shown

    project = project.rename(tmp_path / "checkout")
    status, out = run_pytest(project / "out" / "found")
    assert (status, "ConnectFailed" in out) == (1, False), out

    write_server(project / "server.py")
    assert run_pytest(project / "out" / "found")[0] == 0

    (project / "server.py").unlink()
    status, out = run_pytest(project / "out" / "found")
    assert (status, "ConnectFailed" in out) == (1, True), out


@pytest.mark.parametrize(
    ("words", "place"),
    [
        (("--", sys.executable, "server.py"), "Path(__file__).resolve().parents[2])"),
        (
            ("--cwd", "sub", "--", sys.executable, "../server.py"),
            "Path(__file__).resolve().parents[2] / 'sub')",
        ),
        (("--cwd", "..", "--", sys.executable, "project/server.py"), "'{tmp_path}')"),
    ],
    ids=["none", "inside", "outside"],
)
def test_written_test_names_the_directory_of_the_run(
    tmp_path: Path, words: tuple[str, ...], place: str
) -> None:
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    text = fuzz(project, "--output", "out/found", *words)
    assert f"cwd={place.replace('{tmp_path}', str(tmp_path))}" in text
    assert run_pytest(project / "out" / "found")[0] == 1


@pytest.mark.parametrize(
    ("path", "folder", "file", "expected"),
    [
        ("/p", "/p/out", "'sub/a.py:app'", "Path(__file__).resolve().parents[1]"),
        ("/p", "/p", "'sub/a.py:app'", "Path(__file__).resolve().parents[0]"),
        ("/p", "/q/out", "'sub/a.py:app'", "'/p'"),
        ("/q", "/p/out", "'/p/sub/a.py:app'", "'/q'"),
        ("/p/sub", "/p/out", "'a.py:app'", "Path(__file__).resolve().parents[1] / 'sub'"),
    ],
)
def test_written_test_of_a_python_file_is_portable(
    path: str, folder: str, file: str, expected: str
) -> None:
    directory = RunDirectory(Path(path), Path(folder), Path("/p"))
    assert _source_of(directory) == expected
    command = [sys.executable, "-P", "-m", "mcp_trio", "run", "/p/sub/a.py:app"]
    found = _source_of(_portable(command, directory))
    assert found == f"[sys.executable, '-P', '-m', 'mcp_trio', 'run', {file}]"
    assert _portable(command[1:], directory) == command[1:]


def test_written_test_of_a_module_and_of_asyncio_is_portable() -> None:
    directory = RunDirectory(Path("/p"), Path("/p"), Path("/p"))
    rows = {
        ("mcp_asyncio_shim", "/p/sub/a.py"): "'mcp_asyncio_shim', 'sub/a.py'",
        ("mcp_asyncio_shim", "-m", "a.b:app"): "'mcp_asyncio_shim', '-m', 'a.b:app'",
        ("mcp_trio", "run", "-m", "a.b"): "'mcp_trio', 'run', '-m', 'a.b'",
    }
    for words, expected in rows.items():
        found = _source_of(_portable([sys.executable, "-P", "-m", *words], directory))
        assert found == f"[sys.executable, '-P', '-m', {expected}]"
