"""The report of a run: the table, Markdown, the JSON document, JUnit, remarks."""

from __future__ import annotations

import json
from collections import Counter
from random import Random
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest

from mcp_core import __version__
from mcp_trio.oracle.bench._histogram import Histogram
from mcp_trio.oracle.bench._turn import BenchTurn, Pace
from mcp_trio.oracle.bench.report._report import (
    COLUMNS,
    BenchReport,
    comparison_text,
    format_seconds,
    load_text,
    markdown,
    missed_text,
    number_text,
    pace_text,
    sparkline,
    table,
)
from mcp_trio.oracle.bench.report._run import BenchRow, TargetEnd
from mcp_trio.oracle.bench.report._thresholds import Threshold

RATE = Pace(1000, 64)
CLOSED = Pace(None, 2)


def row(name: str = "ours", median: float = 0.001, pace: Pace = RATE, **members: Any) -> BenchRow:
    """Return a row of six turns with a hundred calls each."""
    found = BenchRow(name, pace)
    random = Random(name)
    for _ in range(6):
        latencies = [median * random.uniform(0.9, 1.1) for _ in range(100)]
        turn = {
            "seconds": 1.0,
            "histogram": Histogram(latencies),
            "sent": 100,
            "answered": 100,
            "rate": 100.0,
            "tenths": [10] * 10,
            "load_cpu": 0.01,
            "target_cpu": 0.005,
            "memory": 46_000_000,
        }
        found.add(BenchTurn(**{**turn, **members}))
    return found


def ended(name: str = "sdk") -> BenchRow:
    found = row(name)
    found.end = TargetEnd("the server has ended", 1, ("Traceback", "MemoryError <3>"))
    return found


FAILED: dict[str, Any] = {
    "answered": 0,
    "errors": Counter({"isError": 90, "HTTP 503": 10}),
    "histogram": Histogram(),
}
# A row, and what is remarked about it.
REMARKS: list[tuple[BenchRow, str]] = [
    (row(late=90, rate=50.0), "cannot keep 1,000/s: sustained 50/s"),
    (row(load_cpu=0.9), "client-bound: the load itself was busy for 90% of the time"),
    (row(**FAILED), "no call was answered without an error: 540 times isError, 60 times HTTP 503"),
    (row(answered=99, errors=Counter({"-32602": 1})), "errors: 6 times -32602"),
    (row(timeouts=100, answered=0, histogram=Histogram()), "an error: 600 timed out"),
    (row(sent=0, answered=0, histogram=Histogram()), "no call was made: this machine was too"),
    (
        row(seconds=3.5, **FAILED),
        "nothing was answered in a turn of 3.50s: this pace was not measured further",
    ),
    (row(stray_lines=2), "12 lines of its stdout were not MCP: a log belongs on stderr"),
    (
        row(drain=0.001, pace=CLOSED),
        "event stream stayed open for 1.00ms on average, in which its caller could not call again",
    ),
    (row(lag=0.0042), "the load itself started calls 4.20ms late on average: latencies include"),
    (row(is_cut=True), "the last turn was cut after 1.00s"),
    (row(**FAILED | {"is_cut": True, "sent": 0}), "no call was answered before the run was int"),
    (row(answered=99, errors=Counter({"closed": 1})), "errors: 6 times closed"),
    (ended(), "the server has ended (exit status 1)\nTraceback\nMemoryError <3>"),
]


@pytest.mark.parametrize(("found", "remark"), REMARKS)
def test_row_that_is_not_what_it_seems_has_a_remark(found: BenchRow, remark: str) -> None:
    assert any(remark in each for each in BenchReport(rows=[found]).remarks(found))


def test_row_that_is_as_it_seems_has_no_remark() -> None:
    found = row(lag=0.001, drain=0.00001)
    assert BenchReport(rows=[found]).remarks(found) == []


def test_end_by_a_signal_is_said_once() -> None:
    found = row()
    found.end = TargetEnd("it was killed by signal 9 (SIGKILL)", -9)
    assert BenchReport(rows=[found]).remarks(found) == ["it was killed by signal 9 (SIGKILL)"]


def test_one_error_is_one_time() -> None:
    found = BenchRow("ours", RATE)
    found.add(BenchTurn(seconds=1.0, sent=1, errors=Counter({"closed": 1})))
    assert any("1 time closed" in each for each in BenchReport(rows=[found]).remarks(found))


def test_half_without_a_response_does_not_differ() -> None:
    """The target ended, which is remarked."""
    found = row()
    for turn in found.turns[3:]:
        turn.answered, turn.histogram = 0, Histogram()
    assert found.halves is None


def test_remark_about_the_load_s_own_lines_is_in_every_form() -> None:
    report = BenchReport(rows=[row(stray_lines=1)])
    remark = "6 lines of its stdout were not MCP"
    assert remark in markdown(report)
    assert remark in json.dumps(report.document())


def test_turn_that_is_cut_is_compared_with_no_other() -> None:
    """It may have taken a tenth of a second, in which little was answered."""
    ours, sdk = row(), row("sdk", 0.003)
    before = BenchReport(rows=[ours, sdk]).comparisons
    sdk.add(BenchTurn(seconds=0.1, histogram=Histogram([5.0]), sent=1, answered=1, is_cut=True))
    assert BenchReport(rows=[ours, sdk]).comparisons == before


def test_table_has_a_line_for_each_row() -> None:
    titles, ours, sdk = table([row(), row("sdk", 0.003, load_cpu=0.95)])
    assert titles.split() == (
        "target pace sent late errors timeouts rate p50 p90 p99 p99.9 max cpu/call memory".split()
    )
    assert ours.split()[:7] == ["ours", "1,000/s", "600", "0", "0", "0", "100/s"]
    assert ours.split()[-3:] == ["50us", "46MB", "█" * 10]
    assert sdk.endswith("  client-bound")


def cells(found: BenchRow) -> dict[str, str]:
    """Return the cells of a row in Markdown, by the titles of their columns."""
    titles, _, line, *_ = markdown(BenchReport(rows=[found])).splitlines()
    return dict(zip(titles[2:-2].split(" | "), line[2:-2].split(" | "), strict=True))


def test_latencies_of_a_row_are_its_percentiles() -> None:
    """One percent is a tenth more of each latency, more than the histogram's error."""
    latencies = [10 ** (-5 + 4 * place / 1_000) for place in range(1_001)]
    found = BenchRow("ours", RATE)
    found.add(BenchTurn(histogram=Histogram(latencies), sent=1_001, answered=1_001))
    shown = cells(found)
    for title, place in (("p50", 500), ("p90", 900), ("p99", 990), ("p99.9", 999), ("max", 1_000)):
        number = float(shown[title].removesuffix("ms")) / 1_000
        assert number == pytest.approx(latencies[place], rel=0.04), title


def test_figures_of_a_row_are_under_their_titles() -> None:
    shown = cells(row(timeouts=3, late=7, errors=Counter({"closed": 2}), answered=95))
    assert [shown[title] for title in ("sent", "late", "errors", "timeouts", "rate")] == [
        *("600", "42", "12", "18", "100/s"),
    ]
    assert [shown[title] for title in ("cpu/call", "memory")] == ["50us", "46MB"]
    closed = cells(row(pace=CLOSED, target_cpu=None, memory=None))
    assert (closed["pace"], closed["late"]) == ("2 callers", "-")
    assert (closed["cpu/call"], closed["memory"]) == ("-", "-")
    assert cells(row(pace=Pace(None, 1)))["pace"] == "1 caller"
    nothing = cells(row(**FAILED | {"sent": 0}))
    assert {nothing[title] for title in ("p50", "p90", "p99", "p99.9", "max")} == {"-"}
    assert nothing["cpu/call"] == "-"


def test_table_of_one_target_leaves_its_name_out() -> None:
    assert table([row()])[0].split()[0] == "pace"


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_table_in_a_narrow_terminal_leaves_columns_out(width: int) -> None:
    lines = table([row(), row("sdk", late=90, rate=50.0)], width)
    # The least that a row needs: its name, pace, errors, p50, p99 and the mark.
    assert max(map(len, lines)) <= max(width, 56)
    assert {"target", "pace", "errors", "p50", "p99"} <= set(lines[0].split())


def test_row_without_answers_has_no_latencies() -> None:
    assert "0.00ms" not in "".join(table([row(**FAILED)]))


def test_name_with_control_characters_is_escaped() -> None:
    assert "\x1b" not in "".join(table([row("a\x1b[2J"), row()]))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.00021, "0.21ms"), (0.0123, "12.3ms"), (0.5, "500ms"), (2.5, "2.50s"), (0.0, "0.00ms")],
)
def test_time_is_shown_with_three_digits(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("counts", "picture"),
    [
        ([1, 2, 4, 8], "▂▃▅█"),
        ([0, 1], " █"),
        ([5] * 100, "█" * 10),
        ([0, 0], ""),
        ([], ""),
    ],
)
def test_sparkline_shows_the_course(counts: list[int], picture: str) -> None:
    assert sparkline(counts) == picture


def test_comparison_names_the_faster_target_first() -> None:
    report = BenchReport(rows=[row("sdk", 0.003), row("ours", 0.001)])
    [found] = map(comparison_text, report.comparisons)
    assert found.startswith("1,000/s: ours is 3.0")
    assert found.endswith("faster than sdk at p50")
    assert " (2.9" in found or " (3.0" in found


@pytest.mark.parametrize(
    ("other", "count"),
    [
        (row("sdk", pace=Pace(100, 64)), 0),  # another pace
        (row("sdk", **FAILED), 0),
        (row("sdk", late=90, rate=50.0), 1),  # only the rates: its latencies grow with the run
        (row("sdk"), 1),
        (row("sdk", 0.003, errors=Counter(x=99), answered=1), 1),  # one response is enough
    ],
)
def test_targets_are_compared_where_figures_are_comparable(other: BenchRow, count: int) -> None:
    found = BenchReport(rows=[row(), other]).comparisons
    assert len(found) == count
    assert {each.by for each in found} <= ({"rate"} if other.is_behind else {"p50"})


@pytest.mark.parametrize("pace", [RATE, CLOSED])
def test_target_that_fails_all_calls_is_not_the_best(pace: Pace) -> None:
    """It answers fastest, and has no latencies, so the others would be compared with no row."""
    rows = [row(pace=pace), row("sdk", 0.003, pace), row("bad", 0.0001, pace, **FAILED)]
    found = BenchReport(rows=rows).comparisons
    assert found == BenchReport(rows=rows[:2]).comparisons
    assert found


def test_row_without_turns_is_not_compared() -> None:
    assert BenchReport(rows=[row(), BenchRow("sdk", RATE)]).comparisons == []
    assert BenchReport(rows=[row(), BenchRow("sdk", RATE)], limit=0.05).comparisons == []


def test_target_that_keeps_no_rate_in_a_search_is_not_compared() -> None:
    rows = [row("ours"), row("sdk", 0.06), row("js", pace=Pace(500, 64))]
    found = BenchReport(rows=rows, limit=0.05)
    assert list(map(comparison_text, found.comparisons)) == ["ours keeps 2.00 times the rate of js"]
    assert found.remarks(rows[1]) == [
        "keeps no rate with p99 below 50.0ms: the lowest one tried was 1,000/s"
    ]


def test_closed_loops_are_compared_by_rate_too() -> None:
    found = BenchReport(rows=[row(pace=CLOSED), row("sdk", 0.002, CLOSED, rate=50.0)])
    assert [(each.by, round(each.ratio.value)) for each in found.comparisons] == [
        ("p50", 2),
        ("rate", 2),
    ]


def test_sweep_is_compared_by_the_rates_that_were_kept() -> None:
    rows = [row("ours", pace=Pace(800, 64)), row("sdk", pace=Pace(200, 64))]
    report = BenchReport(rows=rows, limit=0.05)
    assert list(map(comparison_text, report.comparisons)) == [
        "ours keeps 4.00 times the rate of sdk"
    ]
    assert report.remarks(rows[0]) == ["keeps 800/s with p99 below 50.0ms"]


def test_document_has_all_counts_and_is_json() -> None:
    """The percentiles agree with the buckets, from which they can be computed again."""
    thresholds = [Threshold.parse("p99<50ms"), Threshold.parse("cpu<1us")]
    report = BenchReport(
        rows=[row(), ended()], thresholds=thresholds, settings={"seed": 1}, problem="cut"
    )
    found = json.loads(json.dumps(report.document(), allow_nan=False))
    assert (found["form"], found["seed"], found["problem"]) == (1, 1, "cut")
    ours, sdk = found["rows"]
    assert list(ours["percentiles"]) == ["0", "50", "75", "90", "99", "99.9", "99.99", "100"]
    again = Histogram.from_json(ours["measured"]["histogram"])
    assert again.percentile(99) == ours["percentiles"]["99"]
    assert [each["met"] for each in ours["thresholds"]] == [True, False]
    assert sdk["end"]["status"] == 1
    assert [each["by"] for each in found["ratios"]] == ["p50"]


def test_document_says_how_a_row_was_measured() -> None:
    found = row(pace=Pace(40, 8, even=True), answered=60, errors=Counter({"closed": 40}))
    document = BenchReport(rows=[found]).document()["rows"][0]
    assert document["pace"] == {"rate": 40, "concurrency": 8, "even": True}
    assert (document["turns"], document["processes"]) == (6, 1)
    assert document["mean"] == pytest.approx(0.001, rel=0.1)
    assert (document["measured"]["sent"], document["measured"]["answered"]) == (600, 360)
    assert (document["end"], document["thresholds"], document["remarks"]) == (
        *(None, []),
        ["errors: 240 times closed"],
    )


def test_percentiles_of_the_document_agree_with_the_sorted_list() -> None:
    """Within 3 %, for latencies over four decades."""
    random = Random(5)
    latencies = [10 ** random.uniform(-5, -1) for _ in range(5000)]
    found = BenchRow("a", RATE)
    found.add(BenchTurn(seconds=1.0, histogram=Histogram(latencies), sent=5000, answered=5000))
    shown = BenchReport(rows=[found]).document()["rows"][0]["percentiles"]
    latencies.sort()
    for name, value in shown.items():
        place = max(0, -(-int(float(name) * 5000) // 100) - 1)
        assert value == pytest.approx(latencies[place], rel=0.03), name


def test_value_that_json_cannot_write_is_null() -> None:
    report = BenchReport(rows=[row(timeouts=50)], thresholds=[Threshold.parse("p99<50ms")])
    [found] = report.document()["rows"][0]["thresholds"]
    assert (found["value"], found["met"]) == (None, False)
    msgspec.json.encode(report.document())


def test_markdown_is_a_table_with_remarks_and_missed_thresholds() -> None:
    report = BenchReport(rows=[row("a|b"), ended("<c>")], thresholds=[Threshold.parse("p50<1us")])
    lines = markdown(report).splitlines()
    assert lines[0].startswith("| target | pace |")
    assert {line.count(" | ") for line in lines[:4]} == {14}
    assert lines[2].startswith("| a\\|b |")
    assert lines[3].startswith("| &lt;c> |")
    assert "- a\\|b 1,000/s: p50&lt;1us is missed: 1.0" in markdown(report)


def test_markdown_has_all_that_the_table_hides() -> None:
    """The stderr of a server that ended, targets without a connection, and the interruption."""
    report = BenchReport(
        rows=[ended()],
        missing={"away": TargetEnd("refused", 3, ("no port",))},
        problem="the run was interrupted",
    )
    notes = markdown(report).partition("\n\n")[2].splitlines()
    assert notes == [
        "- sdk 1,000/s: the server has ended (exit status 1)",
        "  - Traceback",
        "  - MemoryError &lt;3>",
        "- away was not measured: refused (exit status 3)",
        "  - no port",
        "- the run was interrupted",
    ]


def test_markdown_shows_what_a_server_says_as_plain_text() -> None:
    found = row()
    found.end = TargetEnd("![x](http://a) *b* _c_ `d` &lt;", None, ("# | [y](z)",))
    assert markdown(BenchReport(rows=[found])).endswith(
        "- ours 1,000/s: \\!\\[x\\](http://a) \\*b\\* \\_c\\_ \\`d\\` &amp;lt;\n"
        "  - # \\| \\[y\\](z)\n"
    )


def test_document_of_a_row_without_answers_has_no_latencies() -> None:
    [found] = BenchReport(rows=[row(**FAILED)]).document()["rows"]
    assert set(found["percentiles"].values()) == {None}
    assert found["mean"] is None


@pytest.mark.parametrize(
    ("best", "other", "marks"),
    [
        ({}, {}, ""),
        ({"errors": Counter(x=1)}, {}, " (ours: errors)"),
        ({}, {"load_cpu": 0.9}, " (sdk: client-bound)"),
        ({"load_cpu": 0.9}, {"timeouts": 1}, " (ours: client-bound; sdk: errors)"),
    ],
)
def test_comparison_has_the_marks_of_both_rows(
    best: dict[str, Any], other: dict[str, Any], marks: str
) -> None:
    report = BenchReport(rows=[row(**best), row("sdk", 0.003, **other)])
    [found] = map(comparison_text, report.comparisons)
    assert found.endswith(f"faster than sdk at p50{marks}")
    assert ("at least" in found) == ("load_cpu" in best)
    [ratio] = report.document()["ratios"]
    assert ratio["pace"] == report.document()["rows"][0]["pace"]
    assert ratio["at_least"] == ("load_cpu" in best)


def test_comparison_has_the_marks_of_a_slow_machine_and_of_halves_that_differ() -> None:
    rows = [row(), row("sdk", 0.003)]
    rows[0].on_slow_machine = True
    for turn in rows[1].turns[3:]:
        turn.histogram = Histogram([0.009] * 100)
    [found] = map(comparison_text, BenchReport(rows=rows).comparisons)
    assert found.endswith(" (ours: slow machine; sdk: halves differ)")


def test_search_that_the_load_has_ended_says_so() -> None:
    """In a remark at the rate that was kept, and in `tried` at the rate that was not."""
    kept, missed = row(rate=1000.0), row(pace=Pace(2000, 64), rate=50.0)
    kept.search_end = 2000.0
    report = BenchReport(rows=[kept], tried=[kept, missed], limit=0.05)
    assert report.remarks(kept) == [
        "keeps 1,000/s with p99 below 50.0ms",
        (
            "the search ended at 2,000/s because the load itself was the limit; the target may keep"
            " more"
        ),
    ]
    tried = report.document()["tried"]
    assert [(each["kept"], each["limited_by_load"]) for each in tried] == [
        (True, False),
        (False, True),
    ]


def test_documents_have_keys_of_one_style() -> None:
    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            return set(value).union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    found = row()
    report = BenchReport(rows=[found, ended()], tried=[found], limit=0.05)
    assert {key for key in keys(report.document()) if key != key.lower()} == set()


def test_junit_has_a_test_for_each_row_and_threshold() -> None:
    """A row that ended or wasn't measured fails, and so does a target without a connection."""
    thresholds = [Threshold.parse("p99<50ms"), Threshold.parse("errors<1%")]
    rows = [row(), row("bad", **FAILED), ended("gone"), BenchRow("late", RATE)]
    report = BenchReport(rows=rows, thresholds=thresholds, missing={"away": TargetEnd("refused")})
    suite = ET.fromstring(report.junit())[0]
    failed = {case.get("name"): case[0].get("message") for case in suite if len(case)}
    assert (suite.get("tests"), suite.get("failures")) == ("11", "6")
    assert set(failed) == {
        "bad 1,000/s answers",
        "bad 1,000/s: p99<50ms",
        "bad 1,000/s: errors<1%",
        "gone 1,000/s answers",
        "late 1,000/s answers",
        "away answers",
    }
    assert failed["bad 1,000/s: errors<1%"] == "errors<1% is missed: 100.000%"
    assert failed["bad 1,000/s: p99<50ms"] == "p99<50ms is missed: more calls than that failed"


def test_junit_of_a_run_that_is_not_complete_has_an_error() -> None:
    suite = ET.fromstring(BenchReport(rows=[row()], problem="the run was interrupted").junit())[0]
    assert suite.get("errors") == "1"


def test_best_of_many_is_compared_with_each_other_one() -> None:
    rows = [row("c", 0.004), row("a", 0.001), row("b", 0.002)]
    found = BenchReport(rows=rows).comparisons
    assert [(each.row.target, each.other.target, round(each.ratio.value)) for each in found] == [
        ("a", "c", 4),
        ("a", "b", 2),
    ]


# -- Texts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (7, "7"),
        (7.0, "7"),
        (7.25, "7.2"),
        (9.96, "10.0"),
        (10.4, "10"),
        (1234.5, "1,234"),
        (1_000_000, "1,000,000"),
    ],
)
def test_number_has_decimals_only_if_it_is_small(value: float, text: str) -> None:
    assert number_text(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (float("inf"), "never"),
        (1.0, "1.00s"),
        (0.99999, "1,000ms"),
        (9.9, "9.90s"),
        (10.0, "10.0s"),
        (99.94, "99.9s"),
        (100.0, "100s"),
        (1234.0, "1,234s"),
        (0.01, "10.0ms"),
        (0.1, "100ms"),
    ],
)
def test_time_at_the_edge_of_a_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("pace", "text"),
    [
        (Pace(1000, 64), "1,000/s"),
        (Pace(0.5, 64), "0.5/s"),
        (Pace(None, 1), "1 caller"),
        (Pace(None, 2000), "2,000 callers"),
    ],
)
def test_pace_is_a_rate_or_a_number_of_callers(pace: Pace, text: str) -> None:
    assert pace_text(BenchRow("a", pace)) == text
    found = BenchReport(rows=[row(pace=pace), row("sdk", 0.003, pace)]).document()["ratios"][0]
    assert found["pace"] == {"rate": pace.rate, "concurrency": pace.concurrency, "even": pace.even}


@pytest.mark.parametrize(
    ("limit", "value", "text"),
    [
        ("p99<1us", {}, "p99<1us is missed: 1.1"),
        ("p99<1us", {"errors": Counter(a=90)}, "p99<1us is missed: more calls than that failed"),
        ("p99<1us", {"histogram": Histogram()}, "p99<1us is missed: nothing was measured"),
        ("errors<1%", {"errors": Counter(a=2)}, "errors<1% is missed: 2.000%"),
        ("errors<1", {"errors": Counter(a=200)}, "errors<1 is missed: 1,200"),
        ("sent<1", {"sent": 1000}, "sent<1 is missed: 6,000"),
        ("rate>2000", {"rate": 1234.0}, "rate>2000 is missed: 1,234/s"),
        ("memory<1MB", {"memory": 1_234_000_000}, "memory<1MB is missed: 1,234MB"),
    ],
)
def test_missed_threshold_shows_what_was_measured(
    limit: str, value: dict[str, Any], text: str
) -> None:
    [verdict] = BenchReport(rows=[row(**value)], thresholds=[Threshold.parse(limit)]).verdicts()
    assert not verdict.is_met
    assert missed_text(verdict).startswith(text)


@pytest.mark.parametrize(
    ("kinds", "timeouts", "shown", "more"),
    [(1, 0, 1, ""), (5, 0, 5, ""), (4, 1, 4, "6 timed out"), (6, 0, 5, "and 1 other cause")],
)
def test_remark_has_five_causes_at_most(kinds: int, timeouts: int, shown: int, more: str) -> None:
    """The most frequent ones first."""
    errors = Counter({f"kind{each}": 10 - each for each in range(kinds)})
    found = row(answered=1, errors=errors, timeouts=timeouts)
    [remark] = [
        each for each in BenchReport(rows=[found]).remarks(found) if each.startswith("errors")
    ]
    parts = remark.removeprefix("errors: ").split(", ")
    assert parts[:shown] == [f"{60 - 6 * each} times kind{each}" for each in range(shown)]
    assert parts[shown:] == ([more] if more else [])


@pytest.mark.parametrize(
    ("unfinished", "text"),
    [
        (0, "the last turn was cut after 0.10ms"),
        (1, "the last turn was cut after 0.10ms, and 1 call without a response is not counted"),
        (2, "the last turn was cut after 0.10ms, and 2 calls without a response are not counted"),
    ],
)
def test_cut_is_that_of_the_last_turn(unfinished: int, text: str) -> None:
    found = row()
    found.add(BenchTurn(seconds=0.0001, is_cut=True, unfinished=unfinished))
    assert BenchReport(rows=[found]).remarks(found)[0] == text


@pytest.mark.parametrize(("count", "lines"), [(2, 2), (5, 5), (7, 5)])
def test_end_shows_the_last_lines_of_stderr(count: int, lines: int) -> None:
    """Empty ones say nothing."""
    found = row()
    stderr = [each for number in range(count) for each in (f"line{number}", " ")]
    found.end = TargetEnd("it has ended", None, tuple(stderr))
    [remark] = BenchReport(rows=[found]).remarks(found)
    last = [f"line{number}" for number in range(count - lines, count)]
    assert remark.splitlines() == ["it has ended", *last]


@pytest.mark.parametrize(("lag", "is_said"), [(0.002, False), (0.0021, True)])
def test_late_start_is_remarked_above_the_rounding(lag: float, is_said: bool) -> None:
    found = row(lag=lag)
    assert bool(BenchReport(rows=[found]).remarks(found)) is is_said


# -- The table -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shown"), [("a" * 24, "a" * 24), ("a" * 25, "a" * 21 + "..."), ("\x1b", "\\u001b")]
)
def test_name_is_shown_in_part(name: str, shown: str) -> None:
    assert table([row(name), row()])[1].split()[0] == shown


def test_cell_without_a_figure_has_a_dash() -> None:
    titles = table([row()])[0].split()
    found = table([row(pace=CLOSED, target_cpu=None, memory=None, late=5)])[1]
    cells = found.replace("2 callers", "2").split()
    shown = dict(zip(titles, cells[: len(titles)], strict=True))
    assert [name for name, cell in shown.items() if cell == "-"] == ["late", "cpu/call", "memory"]
    silent = table([row(sent=0, answered=0, histogram=Histogram())])[1].split()
    assert silent[silent.index("100/s") + 1 :][:6] == ["-"] * 6


def test_texts_stand_at_the_left_and_numbers_at_the_right() -> None:
    rows = [row("a", sent=5), row("longer", sent=50_000)]
    titles, first, second = table(rows)
    assert (first[:6], second[:6]) == ("a     ", "longer")
    end = titles.index("sent") + 4
    assert (first[:end].split()[-1], second[:end].split()[-1]) == ("30", "300,000")
    assert first[end] == second[end] == titles[end] == " "
    rows[1].tenths[:] = [0] * 9 + [1]
    assert "█" in table(rows)[1]


def test_columns_are_left_out_in_the_order_of_their_rank() -> None:
    """The sparkline first, and what a row needs never."""
    rows = [row(), row("sdk")]
    whole = table(rows)
    before = set(whole[0].split())
    gone: list[str] = []
    for width in range(max(map(len, whole)), 20, -1):
        lines = table(rows, width)
        titles = set(lines[0].split())
        gone += sorted(before - titles)
        before = titles
        if gone and before != {"target", "pace", "errors", "p50", "p99"}:
            assert max(map(len, lines)) <= width
            assert "█" not in "".join(lines)
    ranks = {column.title: column.rank for column in COLUMNS}
    assert [ranks[each] for each in gone] == sorted((ranks[each] for each in gone), reverse=True)
    assert before == {title for title, rank in ranks.items() if not rank}
    assert gone == "p90 p99.9 memory late cpu/call sent rate max timeouts".split()


def test_mark_stands_behind_the_widest_sparkline() -> None:
    """A turn that was cut at once has no responses in its tenths, and so no picture."""
    wide, none = row(load_cpu=0.95), row("sdk", load_cpu=0.95, tenths=[])
    first, second = table([wide, none])[1:]
    assert first.index("client-bound") == second.index("client-bound")


def test_markdown_has_numbers_at_the_right() -> None:
    rule = markdown(BenchReport(rows=[row()])).splitlines()[1]
    assert rule.strip("| ").split(" | ") == [":--", *["--:"] * 13, ":--"]
    assert rule.count("|") == 16


@pytest.mark.parametrize(
    ("counts", "width", "picture"),
    [([1, 2, 3], 2, "▄█"), ([1] * 3, 10, "███"), ([0, 0, 8, 8], 2, " █"), ([1], 0, "")],
)
def test_sparkline_has_a_width(counts: list[int], width: int, picture: str) -> None:
    assert sparkline(counts, width) == picture


# -- Comparisons, and the load ---------------------------------------------------------------------


def test_closed_loops_are_compared_in_words() -> None:
    found = BenchReport(rows=[row(pace=CLOSED), row("sdk", 0.002, CLOSED, rate=50.0)])
    latencies, rates = map(comparison_text, found.comparisons)
    assert latencies.startswith("2 callers: ours is 2.0")
    assert rates == "2 callers: ours answers 2.00 times as many calls a second as sdk"


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({}, "the load alone: 100us a call, 10,000 calls/s"),
        ({"load_cpu": 0.0}, ""),
        ({"load_cpu": -0.01}, ""),
        ({"sent": 0}, ""),
    ],
)
def test_load_says_what_a_call_costs_it(members: dict[str, Any], text: str) -> None:
    assert load_text([row(**members), row(**members)]) == text
    assert load_text([]) == ""


def test_search_without_a_limit_keeps_all() -> None:
    tried = BenchReport(rows=[], tried=[row(median=5.0)]).document()["tried"]
    assert [each["kept"] for each in tried] == [True]
    tried = BenchReport(rows=[], tried=[row(median=5.0)], limit=1.0).document()["tried"]
    assert [each["kept"] for each in tried] == [False]


# -- The document ----------------------------------------------------------------------------------


def test_document_of_a_run_has_these_members() -> None:
    """Programs read them, so their names don't change. A limit that JSON can't write is left."""
    kept, missed = row(rate=1000.0), row("sdk", pace=Pace(500, 64, even=True), **FAILED)
    report = BenchReport(
        rows=[kept, missed],
        tried=[missed],
        settings={"seed": 1},
        targets=[{"name": "ours"}],
        missing={"away": TargetEnd("refused", 3)},
    )
    found = report.document()
    machine = found.pop("machine")
    assert set(machine) == {"python", "system", "processors"}
    rows = found.pop("rows")
    assert [each["target"] for each in rows] == ["ours", "sdk"]
    assert found == {
        "form": 1,
        "mcp_trio": __version__,
        "seed": 1,
        "problem": None,
        "missing": {"away": "refused"},
        "targets": [{"name": "ours"}],
        "tried": [
            {
                "target": "sdk",
                "rate": 500,
                "answered_rate": 100.0,
                "p99": None,
                "kept": False,
                "limited_by_load": False,
                "behind": False,
                "failed": 600,
                "sent": 600,
            }
        ],
        "ratios": [],
    }
    assert "tried" not in BenchReport(rows=[kept]).document()


def test_row_of_the_document_has_these_members() -> None:
    """With all that a row may have: it is shown as it is measured, and not rounded."""
    found = row(pace=CLOSED, load_cpu=2.0)
    found.on_slow_machine = True
    found.search_end = 2000.0
    found.end = TargetEnd("it ended", 3, ("boom",))
    found.processes = 2
    report = BenchReport(rows=[found], thresholds=[Threshold.parse("errors<1%")])
    shown = report.document()["rows"][0]
    measured = shown.pop("measured")
    assert measured == found.total.to_json()
    assert list(shown.pop("percentiles").values()) == [
        found.total.histogram.percentile(each) for each in (0, 50, 75, 90, 99, 99.9, 99.99, 100)
    ]
    assert shown == {
        "target": "ours",
        "pace": {"rate": None, "concurrency": 2, "even": False},
        "turns": 6,
        "processes": 2,
        "mean": found.total.histogram.mean,
        "behind": False,
        "client_bound": True,
        "halves": None,
        "on_slow_machine": True,
        "search_end": 2000.0,
        "end": {"reason": "it ended", "status": 3, "stderr": ["boom"]},
        "thresholds": [{"threshold": "errors<1%", "value": 0.0, "met": True}],
        "remarks": report.remarks(found),
    }
    assert len(shown["remarks"]) == 4


def test_ratio_of_the_document_has_these_members() -> None:
    """The best target comes first in it, also if its row comes later."""
    best, other = row(), row("sdk", 0.003, errors=Counter(x=1))
    report = BenchReport(rows=[other, best])
    [each] = report.comparisons
    assert report.document()["ratios"] == [
        {
            "pace": {"rate": 1000, "concurrency": 64, "even": False},
            "target": "ours",
            "other": "sdk",
            "by": "p50",
            "times": each.ratio.value,
            "low": each.ratio.low,
            "high": each.ratio.high,
            "at_least": False,
            "marks": {"ours": [], "sdk": ["errors"]},
        }
    ]
    assert each.ratio.low < each.ratio.value < each.ratio.high


def test_remarks_of_a_row_come_in_one_order() -> None:
    """First the search, then the pace and the load, then the calls, and the end last."""
    found = row(load_cpu=0.9, late=90, rate=50.0, stray_lines=1, errors=Counter(closed=1))
    found.on_slow_machine = True
    found.search_end = 2000.0
    found.end = TargetEnd("it ended")
    begins = [each.split(" ")[:2] for each in BenchReport(rows=[found], limit=0.05).remarks(found)]
    assert [" ".join(each) for each in begins] == [
        "keeps no",
        "the search",
        "cannot keep",
        "client-bound: the",
        "6 lines",
        "this machine",
        "errors: 6",
        "it ended",
    ]


@pytest.mark.parametrize(
    ("drain", "is_said"), [(0.0001, False), (0.00012, True), (0.0, False), (1.0, True)]
)
def test_stream_that_stays_open_is_remarked_above_a_tenth_of_the_time(
    drain: float, is_said: bool
) -> None:
    found = row(drain=drain)
    assert any("event stream" in each for each in BenchReport(rows=[found]).remarks(found)) is (
        is_said
    )
