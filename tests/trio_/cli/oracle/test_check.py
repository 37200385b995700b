"""`mcp-trio check`: findings, reports, exit statuses, and files that are no trace."""

from __future__ import annotations

import io
import json
import tracemalloc
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from mcp_core.trace import RecordedFinding, TraceHeader, TraceLine, encode_header, encode_line
from mcp_trio.cli import main
from tests.core.trace.judge.conversations import C, S, Sent, Start, ask, result

CLEAN = [*Start("2025-11-25").messages(), C(ask(1, "ping")), S(result(1))]
# One MUST of the server, and one SHOULD of the client.
WRONG = [*CLEAN, S(result(1)), C(ask(2, "logging/setLevel", level="info")), S(result(2))]
SHOULD = [
    *Start("2025-11-25").messages()[:1],
    C(ask(9, "tools/list")),
    *Start("2025-11-25").messages()[1:],
]


def written(path: Path, said: list[Sent], **fields: Any) -> str:
    file = path / "a.mcp.jsonl"
    members: dict[str, Any] = {"observer": "client", "transport": "stdio"} | fields
    header = TraceHeader(format_version=1, **members)
    lines = [
        encode_line(TraceLine(t=0.0, sender=each.sender, raw=json.dumps(each.message)))
        for each in said
    ]
    file.write_bytes(encode_header(header) + b"".join(lines))
    return str(file)


def test_check_of_clean_trace_ends_with_status_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", written(tmp_path, CLEAN)]) == 0
    assert "5 messages: 0 failed, 0 inconclusive." in capsys.readouterr().out


def test_check_finding_has_line_row_and_link(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", written(tmp_path, WRONG)]) == 1
    out = capsys.readouterr().out
    assert "fail         MUST       server line 7  RPC-7  the request with the id 1" in out
    assert "https://modelcontextprotocol.io/specification/2025-11-25/basic\n" in out


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ((), 1),
        (("--side", "server"), 1),
        (("--side", "client"), 0),
        (("--level", "must"), 1),
    ],
)
def test_check_side_and_level_select_findings(
    tmp_path: Path, options: tuple[str, ...], status: int
) -> None:
    assert main(["check", *options, written(tmp_path, WRONG)]) == status


def test_check_level_must_leaves_out_should(tmp_path: Path) -> None:
    trace = written(tmp_path, SHOULD)
    assert main(["check", trace]) == 1
    assert main(["check", "--level", "must", trace]) == 0


def test_check_json_is_a_baseline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace, report = written(tmp_path, WRONG), tmp_path / "report.json"
    assert main(["check", "--json", trace]) == 1
    text = capsys.readouterr().out
    document = json.loads(text)
    assert document["failed"] == 1
    (finding,) = document["findings"]
    assert (finding["row"], finding["verdict"], finding["lines"]) == ("RPC-7", "fail", [7, 5, 6])
    assert document["opportunities"]["RPC-7"] >= 2
    report.write_text(text, "utf-8")
    assert main(["check", "--baseline", str(report), trace]) == 0
    assert "1 known" in capsys.readouterr().out


def test_check_junit_has_a_case_for_each_row(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    main(["check", "--junit", str(report), written(tmp_path, WRONG)])
    suite = ET.parse(report).getroot()[0]
    cases = {str(case.get("name")).rpartition(" ")[2]: case for case in suite}
    assert cases["[RPC-7]"].find("failure") is not None
    assert cases["[RPC-1]"].find("failure") is None
    assert suite.get("failures") == "1"


def test_check_rows_prints_each_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check", "--rows", written(tmp_path, WRONG)])
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("pass ") and "[RPC-1]" in line for line in lines)
    assert any(line.startswith("fail ") and "[RPC-7]" in line for line in lines)
    assert any(line.startswith("no opportunity ") and "[MRTR-2]" in line for line in lines)
    assert any(line.startswith("not judged ") and "[RPC-6]" in line for line in lines)


@pytest.mark.parametrize(
    "content",
    [b"{}\n", b"hello\n", b"\x1f\x8b\x08", b'{"log":{"version":"1.2"}}', b'{"mcp-trace":99}'],
    ids=["object", "text", "gzip", "HAR", "later version"],
)
def test_check_of_another_file_ends_with_status_2(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a"
    file.write_bytes(content)
    assert main(["check", str(file)]) == 2


def test_check_of_missing_file_ends_with_status_2(tmp_path: Path) -> None:
    assert main(["check", str(tmp_path / "a")]) == 2
    assert main(["check", str(tmp_path)]) == 2


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"findings": [1]}', '{"findings": {}}', '{"findings": [], "seed": 1}'],
)
def test_check_baseline_that_is_no_report_ends_with_status_2(tmp_path: Path, content: str) -> None:
    report = tmp_path / "report.json"
    report.write_text(content, "utf-8")
    trace = written(tmp_path, CLEAN)
    assert main(["check", "--baseline", str(report), trace]) == 2


def test_check_of_cut_trace_judges_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A trace that ends in the middle of a line, with a damaged line before it."""
    file = tmp_path / "b"
    data = Path(written(tmp_path, WRONG)).read_bytes()
    lines = data.split(b"\n")
    lines[3] = b"\xff damaged"
    file.write_bytes(b"\n".join(lines)[:-20])
    assert main(["check", str(file)]) == 0
    assert "inconclusive" in capsys.readouterr().out


def test_check_of_long_trace_takes_constant_memory(tmp_path: Path) -> None:
    """Traces may be larger than memory: four times the calls take at most a fifth more."""
    header = encode_header(TraceHeader(format_version=1, transport="stdio"))

    def measure(calls: int) -> int:
        file = tmp_path / str(calls)
        with file.open("wb") as out:
            out.write(header)
            for said in Start("2025-11-25").messages():
                out.write(line_of(said))
            for number in range(calls):
                out.write(line_of(C(ask(number, "tools/call", name="t"))))
                out.write(line_of(S(result(number, content=[]))))
        tracemalloc.start()
        assert main(["check", str(file), "--json"]) == 0
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak

    def line_of(said: Any) -> bytes:
        return encode_line(TraceLine(t=0.0, sender=said.sender, raw=json.dumps(said.message)))

    measure(10)  # what is compiled on first use
    assert measure(12_000) < measure(3_000) * 1.2


@pytest.mark.parametrize("option", ["side", "level", "baseline"])
def test_check_row_whose_findings_are_left_out_has_not_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    """RPC-7 of the server is a MUST, and LIFE-8 of the client a SHOULD."""
    row, options = {
        "side": ("RPC-7", ["--side", "client"]),
        "level": ("LIFE-8", ["--level", "must"]),
        "baseline": ("RPC-7", ["--baseline", str(tmp_path / "known.json")]),
    }[option]
    trace = written(tmp_path, SHOULD if option == "level" else WRONG)
    main(["check", "--json", trace])
    (tmp_path / "known.json").write_text(capsys.readouterr().out)
    report = tmp_path / "report.xml"
    assert main(["check", "--rows", "--junit", str(report), *options, trace]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.startswith("left out") for line in lines if f"[{row}]" in line] == [True]
    cases = ET.fromstring(report.read_text()).iter("testcase")
    assert not any(each.get("name", "").endswith(f"[{row}]") for each in cases)


def test_check_counts_damaged_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = written(tmp_path, CLEAN)
    with Path(trace).open("a") as file:
        file.write('{"t":0,"from":"serv')
    assert main(["check", trace]) == 0
    assert "0 inconclusive. 1 line is damaged. " in capsys.readouterr().out
    main(["check", "--json", trace])
    assert json.loads(capsys.readouterr().out)["damaged"] == 1


FOREIGN = Path(__file__).parents[3] / "core/trace/logs/files"


def test_check_of_a_log_says_how_it_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    """Colours, a half line and two servers are what a log has."""
    assert main(["check", "--side", "server", str(FOREIGN / "desktop-two-servers.log")]) == 0
    first, summary = capsys.readouterr().out.splitlines()
    assert first == (
        "read as lines of another program: its transport and its times may be unknown; 4 lines"
        " without a message skipped"
    )
    assert summary.startswith("14 messages: 0 failed")
    assert main(["check", str(FOREIGN / "messages.json")]) == 0
    first, _ = capsys.readouterr().out.splitlines()
    assert first.endswith("who sent a message was guessed by its id or method for 11 of them")


def test_check_reads_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = (FOREIGN / "python-1-server-sse.log").read_bytes()
    broken = data.replace(b"'isError': False", b"'isError': 3")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(broken)))
    assert main(["check", "--json", "-"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [(each["side"], each["verdict"]) for each in document["findings"]] == [
        ("server", "fail")
    ]
    assert document["source"] == {"kind": "lines", "guessed": 0, "unknown": 0, "skipped": 61}


def test_check_of_a_log_in_which_no_message_can_be_told_is_not_clean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"jsonrpc":"2.0","id":1,"result":{}}\n')
    assert main(["check", str(path)]) == 4
    captured = capsys.readouterr()
    assert "1 message left out, which could be of either side" in captured.out
    assert "nothing was judged" in captured.err


# -- Traces of a fuzzer that is the client ---------------------------------------------------------

BREACH = C({"jsonrpc": "1.0", "method": "x"})
FUZZED = [*CLEAN, BREACH, C(ask(2, "tools/list")), S(result(2, tools="nope")), S(result(1))]
WRONG_LIST = RecordedFinding(row="LIFE-10", side="server", sentence="seen live")


def junit_of(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the numbers of a report, and what each of its cases is but passed."""
    suite = ET.parse(path).getroot()[0]
    cases = {
        str(each.get("name")).rpartition(" ")[2].strip("[]"): each[0].tag
        for each in suite
        if len(each)
    }
    assert int(suite.get("tests", "")) == len(suite)
    return dict(suite.attrib), cases


@pytest.mark.parametrize("fields", [{"fuzzer": "client"}, {"finding": WRONG_LIST}])
@pytest.mark.parametrize("side", ["both", "server"])
def test_check_row_broken_only_after_a_breach_of_the_fuzzer_has_not_passed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: Any, side: str
) -> None:
    """TOOL-2 and RPC-7 are broken after it, and perhaps because of it."""
    trace, report = written(tmp_path, FUZZED, **fields), tmp_path / "report.xml"
    options = ["--side", side, "--junit", str(report), trace]
    status = int("finding" in fields)
    assert main(["check", "--rows", *options]) == status
    *lines, summary = capsys.readouterr().out.splitlines()
    rows = {line.split("[")[-1].strip("]"): line[:15].strip() for line in lines}
    assert {rows["TOOL-2"], rows["RPC-7"]} == {"not judged"}
    assert rows["RPC-16"] == "pass"
    assert "passed, 2 broken only after a breach of the fuzzer; " in summary
    _, cases = junit_of(report)
    assert cases["TOOL-2"] == cases["RPC-7"] == cases["judged"] == "skipped"
    assert main(["check", "--json", *options]) == status
    document = json.loads(capsys.readouterr().out)
    assert document["fuzzer"] == "client"
    assert document["after_breach"] == ["RPC-7", "TOOL-2"]
    assert "TOOL-2" not in document["opportunities"]


@pytest.mark.parametrize(
    ("said", "side", "says"),
    [
        (CLEAN, "client", "judge the other side with --side server"),
        ([BREACH, *CLEAN], "both", "nothing that can be judged came before it"),
        ([BREACH, *CLEAN], "server", "nothing that can be judged came before it"),
    ],
)
def test_check_of_a_fuzzers_trace_without_anything_judged_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], said: list[Sent], side: str, says: str
) -> None:
    """The fuzzer's own side was wanted, or its first message was a breach."""
    trace, report = written(tmp_path, said, fuzzer="client"), tmp_path / "report.xml"
    options = ["--side", side, "--junit", str(report), trace]
    assert main(["check", *options]) == 4
    assert says in capsys.readouterr().err
    assert junit_of(report)[0]["errors"] == "1"
    assert main(["check", "--json", *options]) == 4
    assert says in json.loads(capsys.readouterr().out)["unjudged"]


@pytest.mark.parametrize("fields", [{"fuzzer": "server"}, {"fuzzer": "client"}, {"finding": None}])
@pytest.mark.parametrize("observer", ["client", "server", "between"])
def test_check_header_cannot_silence_the_judge_of_another_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], fields: Any, observer: str
) -> None:
    """Only the observer can be the fuzzer. Any other header is ignored, and said to be."""
    if "finding" in fields:
        fields = {"finding": RecordedFinding(row="x", side="client", verdict="inconclusive")}
    fuzzer = fields.get("fuzzer", "server")
    faults = [C(ask(1, "ping")), *[S(result(1))] * 2]  # a MUST of either side
    said = [*WRONG, *faults] if fuzzer == "client" else [*CLEAN, *faults]
    trace = written(tmp_path, said, observer=observer, **fields)
    report = tmp_path / "report.xml"
    sides = {"client", "server"} - ({fuzzer} if fuzzer == observer else set())
    main(["check", "--json", trace])
    document = json.loads(capsys.readouterr().out)
    assert {each["side"] for each in document["findings"] if each["row"] != "x"} == sides
    assert document["fuzzer"] == (fuzzer if fuzzer == observer else None)
    for side in ("client", "server"):
        status = main(["check", "--side", side, "--junit", str(report), trace])
        out = capsys.readouterr().out
        assert ("is not believed" in out) == (fuzzer != observer)
        numbers, _ = junit_of(report)
        if side in sides:
            assert status == 1
            assert numbers["failures"] != "0"
        else:
            assert status == 4
            assert numbers["errors"] == "1"
