"""`--record` and its options, for every subcommand that talks."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from mcp_core.trace import TraceLine, read_trace
from tests.harness.world.command import (
    COMMAND,
    GREETER,
    ROOT,
    TEAHOUSE,
    Hosted,
    run,
)
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "s3cret-s3cret"


def read_file(path: Path) -> tuple[str, list[str]]:
    """Return the target of a trace, and its messages."""
    header, lines = read_trace([path.read_bytes()])
    messages = [line.raw for _, line in lines if isinstance(line, TraceLine)]
    return header.target, [message for message in messages if message is not None]


@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("call", "brew", "tea=assam"),
        ("read", "tea://menu"),
        ("listen", "tea://none"),
        ("complete", "none", "a", "b"),
    ],
)
def test_subcommand_is_recorded(words: tuple[str, ...], tmp_path: Path) -> None:
    path = tmp_path / "x.mcp.jsonl"
    process = subprocess.Popen([*COMMAND, *words, "--record", str(path), *TEAHOUSE], cwd=ROOT)
    if words[0] == "listen":
        while not (path.exists() and b"tea://none" in path.read_bytes()):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
    process.wait(PATIENCE)
    target, messages = read_file(path)
    assert target.endswith("mcp_trio.examples.teahouse")
    assert len(messages) > 2


def test_prompt_is_recorded_although_it_fails(tmp_path: Path) -> None:
    path = tmp_path / "x.mcp.jsonl"
    assert run("prompt", "none", "--record", str(path), *GREETER).returncode == 2
    assert read_file(path)[1]


@pytest.fixture(scope="module")
def discreet(hosted: Hosted) -> tuple[str, ...]:
    """A server that does not repeat its argument."""
    return hosted("""
        server = mcp_trio.Server("s")

        @server.tool
        def echo(text: str) -> str:
            "Return nothing of it."
            return "done"
    """)


def test_record_secrets_writes_them_and_says_so(tmp_path: Path, discreet: tuple[str, ...]) -> None:
    path = tmp_path / "x.mcp.jsonl"
    words = ("call", "echo", f"text={SECRET}", "--record", str(path))
    hidden = run(*words, "--redact", "/params/arguments/text", *discreet)
    assert SECRET not in path.read_text("utf-8")
    shown = run(*words, "--record-secrets", *discreet)
    assert SECRET in path.read_text("utf-8")
    assert (hidden.returncode, shown.returncode) == (0, 0)
    assert "will have all secrets" in shown.stderr
    assert "will have all secrets" not in hidden.stderr


def test_record_limit_is_that_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.mcp.jsonl"
    done = run("inspect", "--record", str(path), "--record-limit", "0.002", *TEAHOUSE)
    assert done.returncode == 0
    assert path.stat().st_size <= 0.002 * 1024 * 1024
    assert json.loads(path.read_text("utf-8").splitlines()[-1])["kind"] == "lost"


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (("--record-secrets",), "--record-secrets needs a file: add --record FILE"),
        (("--redact", "/a"), "--redact needs a file"),
        (("--record-limit", "1"), "--record-limit needs a file"),
        (("--record", "x", "--redact", "a"), "'a' is not a JSON pointer"),
        (("--record", "x", "--record-limit", "0"), "0 is not a size"),
        (("--record", "x", "--record-limit", "inf"), "inf is not a size"),
        (("--record", "x", "--record-limit", "nan"), "nan is not a size"),
        (("--record", "x", "--record-limit", "y"), "invalid number of MiB value"),
        (("--record", "x", "--redact", "/a", "--record-secrets"), "--record-secrets hides nothing"),
    ],
)
def test_recording_option_that_is_wrong_is_refused(options: tuple[str, ...], error: str) -> None:
    done = run("inspect", *options, *GREETER)
    assert done.returncode == 2
    assert error in done.stderr


def test_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    done = run("inspect", "--record", str(tmp_path / "no" / "x"), *GREETER)
    assert done.returncode == 2
    assert "cannot record in" in done.stderr
    assert "no such file or directory" in done.stderr


def test_run_records_what_its_client_says(tmp_path: Path) -> None:
    path = tmp_path / "x.mcp.jsonl"
    file = tmp_path / "server.py"
    file.write_text('import mcp_trio\nserver = mcp_trio.Server("s")\n', "utf-8")
    command = ("--", sys.executable, "-m", "mcp_trio", "run", "--record", str(path), str(file))
    assert run("inspect", "--inherit-env", *command).returncode == 0
    assert read_file(path)[1]


def test_run_records_not_while_it_reloads() -> None:
    done = run("run", "--reload", "--record", "x", "server.py")
    assert done.returncode == 2
    assert "would replace FILE at each start" in done.stderr
