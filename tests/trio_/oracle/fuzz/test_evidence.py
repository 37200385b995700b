"""The trace of a finding: `check` finds in it what the fuzzer found, and no more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace import Judge, RecordedFinding, TraceHeader, TraceLine, read_trace
from mcp_core.trace.judge import _evidence
from mcp_trio.cli import main
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz._report import report_document, write_findings

from .memory_target import NEW, OLD, MemorySession, MemoryTarget, answers, played

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from mcp_trio.oracle.fuzz._case import Case

PARAMS: Any = 82  # of a request whose author breaks a rule


class CrashingSession(MemorySession):
    """A conversation with a process that ends when it reads `tools/list`."""

    async def send_text(self, text: str, message: Mapping[str, Any]) -> None:
        if message.get("method") == "tools/list":
            self.record(TraceLine(t=self.time(), sender="client", raw=text))
            self.record(TraceLine(t=self.time(), kind="exit", status=1))
            self.exit_status = 1
            self.end("its stdout has ended")
        else:
            await super().send_text(text, message)


class CrashingTarget(MemoryTarget):
    session_class = CrashingSession


def drops(method: str) -> Any:
    """Return a server that doesn't answer requests of a method."""
    return lambda message, start: iter(()) if message.get("method") == method else answers(message)


def answers_all_lists_twice(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
    yield from answers(message)
    if message.get("method") == "tools/list":
        yield from answers(message)


def hangs(message: Mapping[str, Any], start: int) -> Iterator[dict[str, Any]]:
    if message.get("method") == "tools/list":
        hung.add(start)
    return iter(()) if start in hung else answers(message)


hung: set[int] = set()


def step(params: Any = None) -> Any:
    return ("request", "tools/list", {} if params is None else params, "int", "whole")


FINDINGS: dict[str, tuple[MemoryTarget, Case, str, str]] = {
    "a fault that messages show": (
        MemoryTarget(answers_all_lists_twice),
        [("open", OLD, "whole", "all"), step()],
        "RPC-7",
        "fail",
    ),
    "a fault that messages show after a breach of the fuzzer": (
        MemoryTarget(answers_all_lists_twice),
        [("open", OLD, "whole", "all"), ("notify", "x", PARAMS), step()],
        "RPC-7",
        "fail",
    ),
    "no response": (
        MemoryTarget(drops("tools/list")),
        [("open", NEW, "whole", "all"), step()],
        "RPC-35",
        "fail",
    ),
    "a hang": (MemoryTarget(hangs), [("open", OLD, "whole", "all"), step()], "RPC-35", "fail"),
    "a crash": (CrashingTarget(lambda message, start: answers(message)),
        [("open", OLD, "whole", "all"), step()], "crash", "fail"),
    "no response to a malformed request": (
        MemoryTarget(drops("tools/list")),
        [("open", OLD, "whole", "all"), step(PARAMS)],
        "RPC-17",
        "inconclusive",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FINDINGS)
def test_check_of_the_trace_of_a_finding_finds_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    """With its row and side, and nothing about the fuzzer or what follows from its breaches."""
    target, case, row, verdict = FINDINGS[name]
    run = played(target, case, shrinks=False)
    (finding,) = run.findings
    assert finding.fault.row == row
    (trace, *_) = write_findings(tmp_path, run, report_document(run, Offers(), 1))
    last = json.loads((tmp_path / trace).read_text().splitlines()[-1])
    assert "end" in last
    status = main(["check", "--json", str(tmp_path / trace)])
    document = json.loads(capsys.readouterr().out)
    (found,) = document["findings"]
    assert (found["row"], found["side"], found["verdict"]) == (row, "server", verdict)
    assert status == (verdict == "fail")
    # Rows about requests are the fuzzer's own.
    assert {"RPC-2", "RPC-3", "RPC-15"}.isdisjoint(document["opportunities"])


def line(sender: Any, message: Any, t: float = 0.0) -> TraceLine:
    return TraceLine(t=t, sender=sender, raw=json.dumps({"jsonrpc": "2.0", **message}))


@pytest.mark.parametrize(
    ("row", "is_breached", "rows"),
    [
        ("RPC-16", False, ["RPC-16", "RPC-7"]),
        ("RPC-16", True, ["RPC-16"]),
        ("RPC-7", True, ["RPC-7"]),
    ],
)
def test_other_rows_are_judged_until_the_first_breach_of_the_fuzzer(
    row: str, is_breached: bool, rows: list[str]
) -> None:
    finding = RecordedFinding(row=row, side="server", sentence="seen live")
    judge = Judge(TraceHeader(format_version=1, transport="stdio", finding=finding))
    said = [
        line("client", {"id": 1, "method": "ping", **({"params": 82} if is_breached else {})}),
        line("server", {"id": 1, "result": 3}),
        line("server", {"id": 1, "result": {}}),
    ]
    found = [each for one in said for each in judge.receive(one)] + judge.close()
    assert sorted({each.row for each in found if each.is_certain}) == rows
    assert {each.side for each in found} == {"server"}
    assert all(each.sentence != "seen live" for each in found)


def test_finding_of_a_client_is_about_the_client() -> None:
    finding = RecordedFinding(row="PING-2", side="client", sentence="a ping was not answered")
    judge = Judge(
        TraceHeader(format_version=1, observer="server", transport="stdio", finding=finding)
    )
    found = judge.receive(line("server", {"id": None, "method": "ping"})) + judge.close()
    assert [(each.row, each.side, each.sentence, each.lines) for each in found] == [
        ("PING-2", "client", "a ping was not answered", (1,))
    ]
    assert found[0].link.startswith("https://modelcontextprotocol.io/")


def test_fuzzer_live_counts_no_rows_of_its_own_side() -> None:
    run = played(
        MemoryTarget(lambda message, start: answers(message)),
        [("open", OLD, "whole", "all"), step()],
    )
    assert run.opportunities["RPC-35"]
    assert "RPC-3" not in run.opportunities


def test_written_trace_is_read_by_its_format(tmp_path: Path) -> None:
    _, case, row, _ = FINDINGS["no response"]
    run = played(MemoryTarget(drops("tools/list")), case, shrinks=False)
    (trace, *_) = write_findings(tmp_path, run, report_document(run, Offers(), 1))
    header, lines = read_trace([(tmp_path / trace).read_bytes()])
    assert isinstance(header.finding, RecordedFinding)
    assert (header.finding.row, header.finding.side, header.finding.verdict) == (
        row,
        "server",
        "fail",
    )
    *_, (_, end) = lines
    assert isinstance(end, TraceLine)
    assert (end.sender, end.end) == ("client", "timeout")


# -- Recordings of whole runs ----------------------------------------------------------------------


def judged(*lines: TraceLine, fuzzer: Any = "client") -> list[str]:
    """Return what the judge finds in a recording of a run: side and row of each finding."""
    judge = Judge(TraceHeader(format_version=1, observer=fuzzer, transport="stdio", fuzzer=fuzzer))
    found = [each for line in lines for each in judge.receive(line)]
    return [f"{each.side} {each.row}" for each in (*found, *judge.close()) if each.is_certain]


def sent(sender: Any, message: Any, conversation: int = 1) -> TraceLine:
    return TraceLine(t=0.1, conversation=conversation, sender=sender, raw=json.dumps(message))


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
PONG = {"jsonrpc": "2.0", "id": 1, "result": {}}
BREACH = {"jsonrpc": "1.0", "id": 2, "method": "ping"}


@pytest.mark.parametrize(
    ("breaches", "expected"),
    [((), ["server RPC-7", "server RPC-7"]), ((1,), ["server RPC-7"]), ((1, 2), [])],
)
def test_recorded_run_is_judged_until_the_first_breach_in_each_conversation(
    breaches: tuple[int, ...], expected: list[str]
) -> None:
    """Each conversation has a ping that is answered twice."""
    lines: list[TraceLine] = []
    for number in (1, 2):
        lines += [sent("client", BREACH, number)] if number in breaches else []
        lines += [sent("client", PING, number), *[sent("server", PONG, number)] * 2]
    assert judged(*lines) == expected


def test_recorded_run_of_a_clients_fuzzer_judges_the_client() -> None:
    breach = sent("client", BREACH)
    assert "client RPC-1" in judged(breach, fuzzer="server")
    assert judged(breach, fuzzer="client") == []


def test_recorded_run_forgets_no_breach_of_many_conversations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only the newest are known one by one. For the others nothing is certain any more."""
    monkeypatch.setattr(_evidence, "_MAX_BREACHED", 2)
    lines = [sent("client", BREACH, number) for number in range(1, 6)]
    late = [sent("client", PING, 1), *[sent("server", PONG, 1)] * 2]
    new = [sent("client", PING, 9), *[sent("server", PONG, 9)] * 2]
    assert judged(*lines, *late, *new) == ["server RPC-7"]


# -- What is counted -------------------------------------------------------------------------------

# Of a fuzzer that is the client: how its trace begins, and which rows are counted after a breach.
HEADERS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a run": ({"fuzzer": "client"}, set()),
    "a finding": ({"finding": RecordedFinding(row="RPC-16", side="server")}, {"RPC-16"}),
}


@pytest.mark.parametrize("name", HEADERS)
def test_rows_are_counted_until_the_first_breach_and_dropped_findings_named(name: str) -> None:
    """The second response to the ping breaks RPC-7 after the breach; RPC-16 holds throughout."""
    fields, counted = HEADERS[name]
    judge = Judge(TraceHeader(format_version=1, transport="stdio", **fields))
    for each in (sent("client", PING), sent("server", PONG)):
        assert judge.receive(each) == []
    before = +judge.opportunities
    assert {"RPC-7", "RPC-16"} <= before.keys()
    assert judge.left_out == set()
    judge.receive(sent("client", BREACH))
    assert judge.receive(sent("server", PONG)) == []
    judge.close()
    assert (judge.opportunities - before).keys() == counted
    assert judge.left_out == {"RPC-7"}


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("observer", ["server", "between"])
def test_header_of_another_observer_silences_nothing(name: str, observer: Any) -> None:
    """A fuzzer records its own traces, so what such a header says isn't believed."""
    judge = Judge(
        TraceHeader(format_version=1, observer=observer, transport="stdio", **HEADERS[name][0])
    )
    assert judge.unjudged is None
    found = judge.receive(sent("client", BREACH))
    assert [each.row for each in found if each.is_certain] == ["RPC-1"]
    assert {each.side for each in judge.close()} <= {"client"}
