"""A check that had nothing to look at: it says so, ends with 4, and its report has an error."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from mcp_core.trace import Judge
from mcp_trio.cli import main

if TYPE_CHECKING:
    from pathlib import Path

Sent = tuple[str, dict[str, Any] | str]

HEADER = {"mcp-trace": 1, "observer": "between", "transport": "stdio"}
INFO = {"name": "a", "version": "1"}
OPEN = {"protocolVersion": "2025-11-25", "capabilities": {}}
INITIALIZE: Sent = (
    "client",
    {"id": 0, "method": "initialize", "params": {**OPEN, "clientInfo": INFO}},
)
INITIALIZED: Sent = ("server", {"id": 0, "result": {**OPEN, "serverInfo": INFO}})
NOTE: Sent = ("client", {"method": "notifications/initialized"})
LOG: Sent = ("server", {"method": "notifications/message", "params": {"level": "info", "data": 1}})
WHOLE = (INITIALIZE, INITIALIZED, NOTE)


def trace(*said: Sent) -> str:
    lines: list[dict[str, Any]] = [HEADER]
    for number, (sender, message) in enumerate(said):
        raw = message if isinstance(message, str) else json.dumps({"jsonrpc": "2.0"} | message)
        lines.append({"t": number, "from": sender, "raw": raw})
    return "".join(json.dumps(line) + "\n" for line in lines)


def without_times(text: str) -> str:
    header, *lines = text.splitlines(keepends=True)
    return "".join([header, *(line.replace('"t"', '"time"') for line in lines)])


def truncated(text: str) -> str:
    """Return the trace of a recording with so low a limit that no message is whole."""
    header, *lines = map(json.loads, text.splitlines())
    for line in lines:
        line["truncated"] = {"size": 9_999}
    return "".join(json.dumps(line) + "\n" for line in [header, *lines])


HEADERS = [["accept", "application/json, text/event-stream"], ["content-type", "application/json"]]
HTTP_404 = "".join(
    json.dumps(line) + "\n"
    for line in (
        {**HEADER, "transport": "http"},
        {"t": 0, "exchange": 1, "from": "client",
         "http": {"method": "POST", "target": "/mcp", "headers": HEADERS},
         "raw": json.dumps({"jsonrpc": "2.0", **INITIALIZE[1]})},  # type: ignore[dict-item]
        {"t": 1, "exchange": 1, "from": "server", "http": {"status": 404}, "raw": "<html>"},
    )
)  # fmt: skip
EMPTY = {
    "no bytes": ("", "is empty"),
    "a line break": ("\n", "is empty"),
    "header alone": (trace(), "has no message"),
    "lines without t": (without_times(trace()), "has no message"),
    "unreadable lines": (trace() + "junk\n{\n", "cannot be read is line 2"),
    "events alone": (trace() + '{"t":0,"kind":"spawn"}\n', "has no message"),
    "truncated messages": (truncated(trace(*WHOLE)), "has no message"),
    "empty messages": (trace(("server", ""), ("client", " ")), "has no message"),
    "a server that says nothing": (trace(INITIALIZE, NOTE), "no message of the server"),
    "a client that says nothing": (trace(LOG), "no message of the client"),
    "a server that is not there": (HTTP_404, "no message of the server"),
}


@pytest.mark.parametrize(("text", "says"), EMPTY.values(), ids=EMPTY)
def test_check_of_nothing_ends_with_status_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    """CI must not take an empty trace for a pass, so even the JUnit report has an error."""
    path, junit = tmp_path / "a.mcp.jsonl", tmp_path / "junit.xml"
    path.write_text(text)
    junit.write_text("<testsuites/>")  # of an earlier run
    assert main(["check", "--json", "--junit", str(junit), str(path)]) == 4
    out, err = capsys.readouterr()
    assert err.startswith("mcp-trio: nothing was judged: ")
    assert says in err
    assert err.count("\n") == 1
    assert says in json.loads(out)["unjudged"]
    suite = ET.parse(junit).getroot()[0]
    assert suite.get("errors") == "1"
    assert int(suite.get("tests", "0")) == len(suite) > 0
    assert [says in str(each.get("message")) for each in suite.iter("error")] == [True]


@pytest.mark.parametrize(("side", "status"), [("server", 4), ("client", 0), ("both", 4)])
def test_check_of_a_side_that_says_nothing_ends_with_status_4(
    tmp_path: Path, side: str, status: int
) -> None:
    path = tmp_path / "a.mcp.jsonl"
    path.write_text(trace(INITIALIZE, NOTE))
    assert main(["check", "--side", side, "--level", "must", str(path)]) == status


def test_check_of_a_silent_side_reports_what_the_other_has_broken(tmp_path: Path) -> None:
    path = tmp_path / "a.mcp.jsonl"
    path.write_text(trace(INITIALIZE, ("client", "junk")))
    assert main(["check", str(path)]) == 1


def test_check_whose_trace_is_missing_leaves_no_old_report(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text("<testsuites/>")
    assert main(["check", "--junit", str(junit), str(tmp_path / "a")]) == 2
    assert "No such file" in next(ET.parse(junit).iter("error")).get("message", "")


PAIRS = {
    "no bytes": ("", "", "is empty"),
    "headers alone": (trace(), trace(), "has no messages"),
    "a header and a conversation": (trace(*WHOLE), trace(), "has no messages"),
    "notifications alone": (trace(NOTE), trace(NOTE), "no request has a whole response"),
    "requests without responses": (*[trace(INITIALIZE, NOTE)] * 2, "no request has a whole"),
    "truncated responses": (
        *[trace(INITIALIZE) + truncated(trace(INITIALIZED)).partition("\n")[2]] * 2,
        "no request has a whole response",
    ),
}


@pytest.mark.parametrize(("old", "new", "says"), PAIRS.values(), ids=PAIRS)
def test_diff_of_nothing_ends_with_status_4(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, says: str
) -> None:
    (tmp_path / "a").write_text(old)
    (tmp_path / "b").write_text(new)
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 4
    assert says in capsys.readouterr().err


@pytest.mark.parametrize("target", [(), ("--", sys.executable, "-c", "raise SystemExit")])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        (trace(), "has no messages"),
        (trace(NOTE, LOG), "no request of a client"),
    ],
    ids=["no bytes", "header alone", "no requests"],
)
def test_replay_of_nothing_ends_with_status_4(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    text: str,
    says: str,
    target: tuple[str, ...],
) -> None:
    path = tmp_path / "a"
    path.write_text(text)
    assert main(["replay", str(path), *target]) == 4
    assert says in capsys.readouterr().err


def test_check_internal_error_leaves_no_clean_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text("<testsuites/>")

    def receive(self: Judge, *arguments: object) -> None:
        raise KeyError("a fault of the judge")

    monkeypatch.setattr(Judge, "receive", receive)
    path = tmp_path / "a.mcp.jsonl"
    path.write_text(trace(*WHOLE))
    assert main(["check", "--junit", str(junit), str(path)]) == 70
    assert "an internal error" in next(ET.parse(junit).iter("error")).get("message", "")
