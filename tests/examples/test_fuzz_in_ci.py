"""The jobs on the page about CI: their shell lines, played in a folder with a server."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from tests.examples.pages import code, read

if TYPE_CHECKING:
    from pathlib import Path

yaml = pytest.importorskip("yaml")
pytest.importorskip("hypothesis")

PAGE = "docs/howto/fuzz-in-ci.md"
# A server that answers each ping twice if its argument says so, in the file that the page names.
SERVER = """
import json, sys
INFO = {"name": "of-the-page", "version": "1"}
OPENED = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": INFO}
ERROR = {"code": -32601, "message": "there is no such method"}
for line in sys.stdin:
    try:
        request = json.loads(line)
    except ValueError:
        request = []
    if not isinstance(request, dict) or "method" not in request or "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    results = {"initialize": OPENED, "ping": {}}
    method = request["method"]
    known = isinstance(method, str) and method in results
    answer |= {"result": results[method]} if known else {"error": ERROR}
    print("\\n".join([json.dumps(answer)] * (1 + IS_BROKEN * (method == "ping"))), flush=True)
"""
PIP = """#!/bin/sh
test "$1" = install && test -n "$2" && echo "$2" >> installed
"""


def jobs() -> dict[str, tuple[list[str], dict[str, str]]]:
    """Return each job's shell lines, and its variables."""
    found: dict[str, tuple[list[str], dict[str, str]]] = {}
    for text in code(PAGE, "yaml"):
        document: dict[Any, Any] = yaml.safe_load(text)
        if "jobs" in document:
            job = document["jobs"]["fuzz"]
            lines = [step["run"] for step in job["steps"] if "run" in step]
            found["github"] = lines, job["env"]
        elif "repos" in document:
            (hook,) = document["repos"][0]["hooks"]
            (dependency,) = hook["additional_dependencies"]
            found["pre-commit"] = [f"pip install '{dependency}'", hook["entry"]], {}
        else:
            job = document["mcp-fuzz"]
            found["gitlab"] = job["script"], job["variables"]
    return found


def run(folder: Path, lines: list[str], **variables: str) -> subprocess.CompletedProcess[str]:
    """Run shell lines as a job does: the first one that fails ends it. Cases replace seconds."""
    script = "\n".join(lines)
    for seconds in ("--seconds 60", "--seconds 10", "--seconds 300"):
        script = script.replace(seconds, "--cases 4 --response-timeout 0.5")
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    return subprocess.run(
        ["/bin/sh", "-ec", script],
        cwd=folder,
        env={**os.environ, **variables, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the programs that the page needs: pip only notes what it should install."""
    python = shlex.quote(sys.executable)
    programs = {
        "pip": PIP,
        "python": f'#!/bin/sh\nexec {python} "$@"\n',
        "mcp-trio": f'#!/bin/sh\nexec {python} -m mcp_trio "$@"\n',
    }
    (tmp_path / "bin").mkdir()
    for name, text in programs.items():
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def write_server(folder: Path, *, is_broken: bool) -> None:
    (folder / "server.py").write_text(f"IS_BROKEN = {is_broken}\n{SERVER}")


def indented_commands() -> list[str]:
    """Return the page's own commands, which write the baseline."""
    return [line[6:] for line in read(PAGE).splitlines() if line.startswith("    $ ")]


@pytest.mark.process
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["github", "gitlab", "pre-commit"])
def test_job_of_page_fails_for_new_faults_only(folder: Path, name: str) -> None:
    """A fault that the baseline hasn't fails the job; with that run as the baseline it passes."""
    lines, variables = jobs()[name]
    known = folder / "known.json"
    known.write_text('{"version": 2, "seed": 1, "server": "of-the-page 1", "findings": []}')
    write_server(folder, is_broken=True)
    done = run(folder, lines, **variables)
    assert done.returncode == 1, done.stderr
    assert "RPC-7" in done.stdout
    assert "warning" not in done.stderr
    assert (folder / "installed").read_text() == "mcp-trio[fuzz]\n"
    if name == "gitlab":
        assert ET.parse(folder / "fuzz.xml").findall(".//failure")
    known.write_bytes((folder / "mcp-fuzz" / "report.json").read_bytes())
    done = run(folder, lines, **variables)
    assert done.returncode == 0, done.stdout


@pytest.mark.process
@pytest.mark.timeout(120)
def test_commands_of_page_write_a_baseline(folder: Path) -> None:
    write_server(folder, is_broken=False)
    done = run(folder, indented_commands())
    assert done.returncode == 0, done.stderr
    assert '"of-the-page 1"' in (folder / "known.json").read_text()


@pytest.mark.process
def test_job_of_page_ends_at_an_install_that_fails(folder: Path) -> None:
    lines, _ = jobs()["github"]
    assert run(folder, lines, MCP_TRIO="").returncode != 0
    assert not (folder / "mcp-fuzz").exists()
