"""A `report.json` that others have planted where the fuzzer writes: its cases are played first.

The server is a program that understands more than it should, and notes which tools are called.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_trio.cli import main

pytest.importorskip("hypothesis")

SERVER = [sys.executable, str(Path(__file__).with_name("lenient_server.py"))]
OPEN = ["open", "2025-11-25", "whole", "all"]
WIPE = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "wipe"}}'
LOOK = WIPE.replace(b"wipe", b"look")


def damage(data: bytes) -> list[Any]:
    return ["damage", {"base64": base64.b64encode(data).decode()}]


def request(name: Any, method: Any = "tools/call") -> list[Any]:
    return ["request", method, {"name": name, "arguments": {}}, "int"]


ATTACKS: dict[str, list[list[Any]]] = {
    "call": [["call", "wipe", {}, []]],
    "task": [["call", "wipe", {}, ["task", "progress"]]],
    "request": [request("wipe")],
    "notify": [["notify", "tools/call", {"name": "wipe"}]],
    "burst": [["burst", 2, "tools/call", {"name": "wipe"}]],
    "name with a space": [request("wipe ")],
    "name in capitals": [request("WIPE")],
    "name with a hidden character": [request("wi\u200bpe")],
    "name that ends early": [request("wipe\0")],
    "name in a list": [request(["wipe"])],
    "params by position": [["request", "tools/call", ["wipe"], "int"]],
    "method in capitals": [request("wipe", "TOOLS/CALL")],
    "method with spaces": [request("wipe", " tools/call ")],
    "method in a list": [request("wipe", ["tools/call"])],
    "text": [["mutate", WIPE.decode()]],
    "batch": [["mutate", f"[{WIPE.decode()}]"]],
    "batch in a batch": [["mutate", f"[[{WIPE.decode()}]]"]],
    "two lines": [["mutate", f"{LOOK.decode()}\n{WIPE.decode()}"]],
    "escapes": [["mutate", WIPE.decode().replace("tools/call", "\\u0074ools\\/call")]],
    "second name": [["mutate", LOOK.decode().replace('{"name"', '{"Name": "wipe", "name"')]],
    "second params": [
        ["mutate", LOOK.decode().replace('"params"', '"Params": {"name": "wipe"}, "params"')]
    ],
    "mark of byte order": [damage(b"\xef\xbb\xbf" + WIPE)],
    "invalid bytes before": [damage(b"\xff\xfe" + WIPE)],
    "invalid bytes in the method": [damage(WIPE.replace(b"tools", b"to\xffols"))],
    "invalid bytes in the name": [damage(WIPE.replace(b"wipe", b"wi\xffpe"))],
    "other encoding": [damage(WIPE.decode().encode("utf-16"))],
    "cut": [damage(WIPE[:-2])],
    "bytes around it": [damage(b"x" + WIPE)],
    "split in two steps": [damage(WIPE[:40]), damage(WIPE[40:])],
    "split in its method": [
        damage(b'{"jsonrpc": "2.0", "id": 1, "method": "tools/'),
        damage(b'call", "params": {"name": "wipe"}}'),
    ],
}


class Planted:
    """An output folder with the report of an attacker."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = path / "mcp-fuzz"
        self.folder.mkdir()
        self._notes = path / "notes"
        self._notes.touch()
        monkeypatch.chdir(path)

    def plant(self, *cases: list[list[Any]]) -> None:
        findings = [{"steps": [OPEN, *steps]} for steps in cases]
        (self.folder / "report.json").write_text(json.dumps({"findings": findings}))

    def fuzz(self, *words: str) -> int:
        options = ["--era", "legacy", "--cases", "1", "--output", os.fspath(self.folder)]
        return main(["fuzz", *options, *words, "--", *SERVER, os.fspath(self._notes)])

    @property
    def called(self) -> set[str]:
        return {line for line in self._notes.read_text().splitlines() if line}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planted:
    return Planted(tmp_path, monkeypatch)


def test_planted_cases_call_no_tool_that_is_not_allowed(planted: Planted) -> None:
    planted.plant([["call", "look", {}, []]], *ATTACKS.values())
    planted.fuzz()
    assert planted.called == {"look"}


@pytest.mark.parametrize("name", ["wipe", "look"])
def test_planted_call_is_in_no_test_that_is_written(planted: Planted, name: str) -> None:
    """Otherwise pytest would make it, also with --no-shrink."""
    fault = damage(b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}{')  # is answered
    planted.plant([["call", name, {}, []], request(name), fault])
    planted.fuzz("--no-shrink")
    tests = planted.folder / "test_findings.py"
    written = tests.read_text() if tests.exists() else ""
    report = (planted.folder / "report.json").read_text()
    assert "wipe" not in written + json.dumps(json.loads(report)["findings"])
    assert planted.called <= {"look"}


def test_planted_call_is_made_if_the_user_allows_the_tool(planted: Planted) -> None:
    planted.plant(ATTACKS["call"])
    planted.fuzz("--allow-tool", "wipe")
    assert "wipe" in planted.called
