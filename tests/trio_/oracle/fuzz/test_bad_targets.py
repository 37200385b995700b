"""Targets that do not start, print junk, hang, fork, crash, or are no MCP servers.

The fuzzer ends in time, leaves no process behind, and makes no false accusation.
"""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import mcp_core
from mcp_trio.testing import find_client_faults, find_faults
from tests.harness.world.threaded_http import fixed_response, threaded_http_server
from tests.harness.world.waiting import wait_until

from .targets import BROKEN, ROOT, FuzzRun, fuzz, fuzz_command, small_server

pytestmark = pytest.mark.timeout(120)  # a run takes seconds, and minutes on a busy machine

CASES = ("--cases", "20", "--era", "legacy")


def assert_clean(run: FuzzRun) -> None:
    assert run.status == 0, run.out + run.err
    assert run.rows == []


def test_small_server_is_clean(tmp_path: Path) -> None:
    run = fuzz_command(tmp_path, small_server(), *CASES)
    assert_clean(run)
    assert "small 1, 2025-11-25" in run.err


@pytest.mark.parametrize(
    "command",
    [
        ("mcp-trio-no-such-program",),
        (sys.executable, "-c", "raise SystemExit('the disk is full')"),
        (sys.executable, "-c", "print('hello'); print('{}')"),
    ],
    ids=["missing", "exits", "prints"],
)
def test_target_that_does_not_speak_ends_with_status_3(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    run = fuzz_command(tmp_path, command, *CASES, "--timeout", "5")
    assert run.status == 3, run.out + run.err
    assert "Traceback" not in run.err
    assert not run.folder.exists()


def test_case_for_a_target_that_does_not_start_is_an_error() -> None:
    """A test of it would pass, though it has shown nothing."""
    target = [sys.executable, "no-such-server.py"]
    with pytest.raises(mcp_core.ConnectFailed, match="no-such-server") as caught:
        find_faults(target, [("open", "2025-11-25", "half", "all")])
    assert "exit status 2" in str(caught.value)


def test_case_for_a_url_that_needs_a_login_is_an_error() -> None:
    with (
        threaded_http_server(fixed_response(401, {})) as url,
        pytest.raises(mcp_core.ConnectFailed, match="login"),
    ):
        find_faults(f"{url}/mcp", [("open", "2025-11-25", "whole", "all")])


def test_case_for_a_client_that_does_not_start_is_an_error() -> None:
    command = [sys.executable, "no-such-client.py", "{server}"]
    with pytest.raises(mcp_core.ConnectFailed, match="no-such-client"):
        find_client_faults(command, [("serve", ["2025-11-25"], [])])


@pytest.mark.parametrize("steps", [[("open", "2025-11-25", "none", "all")], [], [("wait",)]])
def test_case_that_asks_for_nothing_has_no_fault(steps: list[Any]) -> None:
    assert find_faults(small_server(), steps) == {}


def test_error_of_a_target_that_does_not_start_has_no_secret(tmp_path: Path) -> None:
    command = (sys.executable, "no-such-server.py", "--api-key", "a1B2c3D4e5F6g7H8")
    run = fuzz_command(tmp_path, command, *CASES, "--timeout", "5")
    assert run.status == 3
    assert "no-such-server" in run.err
    assert "a1B2c3D4e5F6g7H8" not in run.err


def test_target_that_is_silent_ends_with_status_3(tmp_path: Path) -> None:
    command = (sys.executable, "-S", "-c", "import sys; sys.stdin.read()")
    run = fuzz_command(tmp_path, command, *CASES, "--timeout", "1")
    assert run.status == 3
    assert "did not respond" in run.err


def test_target_that_prints_junk_is_found_by_its_row(tmp_path: Path) -> None:
    junk = "print('starting up', flush=True)"
    run = fuzz_command(tmp_path, small_server(before=junk), *CASES)
    assert run.status == 1, run.out + run.err
    assert "STDIO-2" in run.rows


def test_target_that_starts_slowly_is_clean(tmp_path: Path) -> None:
    run = fuzz_command(tmp_path, small_server(before="time.sleep(3)"), "--cases", "10")
    assert_clean(run)


def test_target_that_starts_slowly_without_handshake_is_clean() -> None:
    """Nothing but the time of the first response says that the process was starting."""
    command = ["sh", "-c", f"sleep 3; exec {shlex.join(BROKEN)}"]
    steps = [("open", "2026-07-28", "whole", "all"), ("request", "tools/list"), ("wait",)]
    assert find_faults(command, steps) == {}


def test_target_that_hangs_is_found(tmp_path: Path) -> None:
    hang = "if method == 'tools/list': time.sleep(3600)"
    run = fuzz_command(
        tmp_path, small_server(on_message=hang), "--cases", "40", "--era", "legacy",
        "--response-timeout", "0.7", "--no-keep-going",
    )  # fmt: skip
    assert run.status == 1, run.out + run.err
    assert "RPC-35" in run.rows


def test_response_that_is_too_large_to_judge_is_noted(tmp_path: Path) -> None:
    """It cannot be read, so any request that is open may be the one that it answers."""
    large = "if method == 'ping': send(id, result={}, a='a' * (4 << 20)); continue"
    run = fuzz_command(tmp_path, small_server(on_message=large), "--cases", "15", *CASES[2:])
    assert_clean(run)
    assert "a message of more than 4 MiB was not judged" in run.report["notes"]


def test_target_that_crashes_at_each_case_is_found(tmp_path: Path) -> None:
    crash = "if method not in ('initialize', 'notifications/initialized'): os._exit(7)"
    run = fuzz_command(tmp_path, small_server(on_message=crash), "--cases", "8", "--era", "legacy")
    assert run.status == 1, run.out + run.err
    assert "crash" in run.rows
    assert "exit status 7" in run.out


def test_token_on_stderr_of_a_crash_is_in_no_finding() -> None:
    token = "sk-proj-" + "a1B2c3D4e5F6" * 4
    crash = f"if method == 'ping': sys.exit('cannot use {token}')"
    steps: list[Any] = [("open", "2025-11-25", "whole", "all"), ("request", "ping", {})]
    found = find_faults(small_server(on_message=crash), steps)
    assert "cannot use" in found["crash"]
    assert token not in found["crash"]


def test_target_that_no_longer_starts_ends_with_status_3(tmp_path: Path) -> None:
    # Probing needs one process for each revision; the later ones end at once.
    gate = f"""
path = {str(tmp_path / "starts")!r}
with open(path, "a") as file:
    file.write("x")
if len(open(path).read()) > 5:
    sys.exit(1)"""
    run = fuzz_command(tmp_path, small_server(before=gate), *CASES)
    assert run.status == 3, run.out + run.err


def test_target_that_answers_sometimes_is_called_flaky(tmp_path: Path) -> None:
    """Two of three processes have the fault, so the run reports it but doesn't fail."""
    # A second response. Only processes that get a ping are counted: the run starts others ahead. Of
    # any three in turn one has no fault, also if another one gets a ping between them.
    count = f"""
numbers = []
def has_fault():
    number = 0
    while not numbers:
        try:
            os.mkdir(os.path.join({str(tmp_path)!r}, f"pinged-{{number}}"))
            numbers.append(number)
        except FileExistsError:
            number += 1
    return numbers[0] % 3"""
    twice = "if method == 'ping' and has_fault(): send(id, result={})"
    steps = [["open", "2025-11-25", "whole", "all"], ["request", "ping"], ["disconnect"]]
    (tmp_path / "found").mkdir()
    # Each case has a process of its own.
    stored = {"findings": [{"steps": steps}] * 4}
    (tmp_path / "found" / "report.json").write_text(json.dumps(stored))
    # Beside each other, lanes could start all processes of one case that have an even number.
    words = ["--cases", "1", "--no-shrink", "--lanes", "1"]
    run = fuzz_command(tmp_path, small_server(count, twice), *words)
    found = [each for each in run.report["findings"] if each["row"] == "RPC-7"]
    assert found
    for each in found:
        assert 0 < each["hits"] < each["plays"] == 3
        assert f"flaky {each['hits']}/3" in run.out
    assert run.status == 0, run.out + run.err


@pytest.mark.parametrize("leaves", ["pass", "os.setsid()"], ids=["group", "session"])
def test_target_that_forks_leaves_no_process(tmp_path: Path, leaves: str) -> None:
    path = tmp_path / "children"
    fork = f"""
child = os.fork()
if not child:
    {leaves}
    time.sleep(600)
open({str(path)!r}, "a").write(f"{{child}} ")"""
    assert_clean(fuzz_command(tmp_path, small_server(before=fork), "--cases", "10"))
    children = [int(each) for each in path.read_text().split()]
    assert children
    wait_until(lambda: not any(map(is_running, children)))


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split(")")[-1].split()[0] != "Z"
    except (OSError, IndexError):
        return False


def test_slow_tool_is_no_fault(tmp_path: Path) -> None:
    """A tool may take long. A server that is busy with it answers nothing else meanwhile."""
    file = tmp_path / "slow.py"
    file.write_text(
        "import time\nimport mcp_trio\n"
        'server = mcp_trio.Server("slow")\n'
        "@server.tool\ndef nap(seconds: int) -> str:\n"
        '    "Sleep."\n    time.sleep(0.5)\n    return "done"\n'
    )
    run = fuzz(tmp_path, "--seed", "1", "--cases", "4", "--allow-all", str(file))
    assert_clean(run)


@pytest.mark.parametrize("count", [1, 3])
def test_interrupt_writes_what_was_found(tmp_path: Path, count: int) -> None:
    """Even an impatient user who presses Ctrl+C three times keeps the report and the traces."""
    command = [sys.executable, "-m", "mcp_trio", "fuzz", "--seed", "1", "--no-shrink"]
    command += ["--output", "found", "--", *BROKEN, "--fault", "double-response"]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert "RPC-7" in process.stdout.readline()
        for _ in range(count):
            process.send_signal(signal.SIGINT)
            time.sleep(0.02)
        process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    # A signal that comes after the last file was written ends the process at once.
    assert process.returncode in ([130] if count == 1 else [130, -signal.SIGINT])
    assert (tmp_path / "found" / "report.json").exists()
    assert list((tmp_path / "found").glob("1-RPC-7.mcp.jsonl"))


# -- URLs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "headers", "body", "says"),
    [
        (404, {}, b"", "HTTP status 404"),
        (200, {"content-type": "text/html"}, b"<html>", "HTTP status 200"),
        (307, {"location": "https://example.com/mcp"}, b"", "use that URL"),
        (401, {"www-authenticate": "Bearer"}, b"", "--token-env"),
        (200, {"content-type": "application/json"}, b"[[[", "HTTP status 200"),
    ],
    ids=["missing", "page", "redirect", "login", "junk"],
)
def test_url_that_is_no_server_ends_with_status_3(
    tmp_path: Path, status: int, headers: dict[str, str], body: bytes, says: str
) -> None:
    with threaded_http_server(fixed_response(status, headers, body)) as url:
        run = fuzz(tmp_path, "--cases", "5", "--timeout", "5", f"{url}/mcp")
    assert run.status == 3, run.out + run.err
    assert says in run.err


def test_url_that_refuses_connections_ends_with_status_3(tmp_path: Path) -> None:
    run = fuzz(tmp_path, "--cases", "5", "--timeout", "5", "http://127.0.0.1:1/mcp")
    assert run.status == 3, run.out + run.err
    assert "Traceback" not in run.err


def test_url_of_another_machine_needs_allow_remote(tmp_path: Path) -> None:
    run = fuzz(tmp_path, "--cases", "5", "https://192.0.2.1/mcp")
    assert run.status == 2
    assert "add --allow-remote" in run.err


def test_clean_server_at_url_is_clean(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*BROKEN, "--http"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().split()[-1]
        assert_clean(fuzz(tmp_path, "--seed", "1", "--cases", "20", url))
    finally:
        process.kill()
        process.communicate()


INTERRUPTED_IMPORT = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp_trio.oracle.fuzz._echo":
            os.kill(os.getpid(), signal.SIGTERM)

sys.meta_path.insert(0, Interrupt())
from mcp_trio.cli import main
raise SystemExit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("options", [[], ["--client"]], ids=["server", "client"])
def test_signal_during_the_imports_is_an_orderly_stop(options: list[str], tmp_path: Path) -> None:
    program = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    words = [sys.executable, "-c", INTERRUPTED_IMPORT, "fuzz", *options, "--", *program]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert done.returncode == 128 + signal.SIGTERM, done
    assert b"Traceback" not in done.stderr
