"""A revision that is added to the two tables of the engine, and to nothing else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace import ROWS

from .sixth_revision import NEW, NEWEST, ROOT, command

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

CLIENT = ROOT / "tests" / "fuzz_targets" / "broken_client.py"  # a correct one, without a fault
FUZZ = ("mcp", "fuzz", "--seed", "1")
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}


def output(*arguments: str) -> str:
    """Run the program, and return what it prints."""
    done = subprocess.run(
        command(*arguments), cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def printed(*arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output(*arguments))
    return found


@contextmanager
def listening(*arguments: str) -> Generator[str]:
    """Run the program, which listens, and yield the URL that it prints on stderr."""
    with subprocess.Popen(
        command(*arguments), cwd=ROOT, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        try:
            urls = (re.search(r"http://127\.0\.0\.1:\d+/mcp", line) for line in process.stderr)
            yield next(url[0] for url in urls if url)
        finally:
            process.send_signal(signal.SIGINT)


@pytest.fixture(scope="module", params=["stdio", "http"])
def recording(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recorded conversation in the new revision."""
    path = tmp_path_factory.mktemp("recording") / f"{request.param}.mcp.jsonl"
    if request.param == "stdio":
        assert_is_new(printed("connect", str(path)))
    else:
        with listening("serve_http") as url:
            assert_is_new(printed("connect", str(path), url))
    return path


def assert_is_new(found: dict[str, Any]) -> None:
    """Assert that a conversation is in the new revision, and that the judge finds no fault."""
    assert found["revision"] == NEW
    assert found["answer"] == 3
    assert found["findings"] == []
    assert len(found["judged"]) > 20


def test_new_revision_is_negotiated_recorded_and_judged(recording: Path) -> None:
    assert NEW in recording.read_text("utf-8")


def test_new_revision_is_replayed_by_a_server(recording: Path, tmp_path: Path) -> None:
    words, again = ("mcp", "replay", str(recording)), str(tmp_path / "again.mcp.jsonl")
    if recording.name.startswith("stdio"):
        assert_is_new(printed("connect", again, *command(*words)))
    else:
        with listening(*words, "--http", "0") as url:
            assert_is_new(printed("connect", again, url))


def test_new_revision_is_replayed_by_a_client(recording: Path) -> None:
    words = ("mcp", "replay", str(recording), "--json")
    if recording.name.startswith("stdio"):
        found = printed(*words, "--", *command("serve"))
    else:
        with listening("serve_http") as url:
            found = printed(*words, url)
    assert (found["answered"], found["unanswered"]) == (2, 0)
    assert (found["findings"], found["differences"]) == ([], [])


def test_new_revision_passes_a_proxy_that_judges(recording: Path, tmp_path: Path) -> None:
    between, path = tmp_path / "between.mcp.jsonl", str(tmp_path / "client.mcp.jsonl")
    words = ("mcp", "proxy", "--check", "--record", str(between))
    if recording.name.startswith("stdio"):
        server = command(*words, "--", *command("serve"))
        assert_is_new(printed("connect", path, *server))
    else:
        with listening("serve_http") as url, listening(*words, "--http", "0", url) as proxied:
            assert_is_new(printed("connect", path, proxied))
    assert NEW in between.read_text("utf-8")
    output("mcp", "check", str(between))


def test_new_revision_is_judged_as_the_newest_one() -> None:
    found = printed("judge")
    assert found["other"] == []
    assert found["conversations"] > 400
    assert found["judged"][NEW] == found["judged"][NEWEST]
    assert {row for row in found["judged"][NEW] if ROWS[row].until is not None} <= {
        "SSE-3",
        "SSE-4",
    }


def test_new_revision_of_a_server_is_fuzzed(tmp_path: Path) -> None:
    options = ("--cases", "30", "--era", "modern", "--allow-all", "--output", str(tmp_path))
    assert " 0 findings" in output(*FUZZ, *options, "--", *command("serve"))
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert report["revisions"] == [NEW, NEWEST]
    assert report["messages"] > 50


@pytest.mark.parametrize("transport", [(), ("--url", "{url}")])
def test_new_revision_of_a_client_is_fuzzed(transport: tuple[str, ...], tmp_path: Path) -> None:
    client = (sys.executable, "-I", "-S", str(CLIENT), "--revision", NEW, *transport)
    options = ("--client", "--cases", "4", "--output", str(tmp_path))
    assert " 0 findings" in output(*FUZZ, *options, "--", *client)
    report = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert report["revisions"] == [NEW]
    assert report["messages"] > 5
