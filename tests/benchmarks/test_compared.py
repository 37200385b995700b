"""The committed figures, and the tables of the pages that are made from them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

import pytest

from benchmarks import compare, compared
from benchmarks.compare import ROWS, rounded, summary
from benchmarks.targets import TARGETS
from tests.examples.pages import read

if TYPE_CHECKING:
    from pathlib import Path

DATA = compared.read()
# What the committed run could not measure: its cells are empty.
UNMEASURED: dict[tuple[str, str], set[str]] = {}


@pytest.mark.parametrize("page", compared.PAGES)
def test_tables_of_page_are_made_from_committed_figures(page: str) -> None:
    """If this fails after `compare.py --output`, run `python -m docs.pictures`."""
    text = read(page)
    assert "<!-- compared: " in text
    assert compared.with_tables(text, compared.tables(DATA)) == text


def test_every_table_stands_on_a_page() -> None:
    found = {
        name for page in compared.PAGES for name in re.findall(r"<!-- compared: (\w+)", read(page))
    }
    assert found == compared.tables(DATA).keys()


def test_committed_figures_are_of_all_rows_and_targets() -> None:
    assert DATA["rows"].keys() == ROWS.keys()
    for key, row in ROWS.items():
        taking = {name for name in TARGETS if row.takes(name)}
        assert DATA["rows"][key]["title"] == row.title
        for measure, found in DATA["rows"][key]["measures"].items():
            assert measure in compared.MEASURES
            assert taking - found["figures"].keys() == UNMEASURED.get((key, measure), set())
            assert found["figures"].keys() <= taking
            assert found["ratios"]["mcp"] == 1


def test_committed_figures_say_nothing_about_the_machine_but_its_kind() -> None:
    known = {
        "date",
        "python",
        "node",
        "system",
        "cores",
        "real_time",
        "rounds",
        "seconds",
        "events",
    }
    assert DATA.keys() == known | {"sessions", "versions", "load", "rows"}
    texts = [text for text in DATA.values() if isinstance(text, str)]
    assert not [text for text in [*texts, *DATA["versions"].values()] if "/" in text]


# -- From rounds to cells --------------------------------------------------------------------------


def test_ratio_is_the_median_of_the_rounds_and_over_one_if_better() -> None:
    """The second round was twice as slow for both, so it changes no ratio."""
    found = summary(
        {
            "ours": [{"rate": 300.0, "p50": 10.0}, {"rate": 150.0, "p50": 20.0}],
            "mcp": [{"rate": 100.0, "p50": 40.0}, {"rate": 50.0, "p50": 80.0}],
        }
    )
    assert found["rate"]["ratios"] == {"ours": 3.0, "mcp": 1.0}
    assert found["p50"]["ratios"] == {"ours": 4.0, "mcp": 1.0}
    assert found["rate"]["figures"] == {"ours": 225.0, "mcp": 75.0}


def test_figures_without_the_reference_have_no_ratios() -> None:
    found = summary({"ours": [{"rate": 300.0}]})
    assert found == {"rate": {"figures": {"ours": 300.0}, "ratios": {}}}


def test_processor_time_too_short_to_be_measured_is_left_out() -> None:
    found = summary({"ours": [{"cpu": 0.0}], "mcp": [{"cpu": 2.0}]})
    assert found == {"cpu": {"figures": {"mcp": 2.0}, "ratios": {"mcp": 1.0}}}


@pytest.mark.parametrize(
    ("value", "digits"), [(0.012345, 0.01235), (3.14159, 3.142), (123456.7, 123457), (0.0, 0.0)]
)
def test_figures_are_kept_with_four_digits(value: float, digits: float) -> None:
    assert rounded(value) == digits


@pytest.mark.parametrize(("fact", "kept"), [("seconds", True), ("date", False), ("python", False)])
def test_rows_of_a_file_stay_if_the_same_programs_were_measured_today(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fact: str, kept: bool
) -> None:
    facts = {"date": "2026-11-29", "python": "3.11.7", "system": "Linux", "cores": 2, "seconds": 1}
    monkeypatch.setattr(compare, "facts", lambda run: {**facts, "versions": {"trio": "0.35.0"}})
    file = tmp_path / "figures"
    data = {**facts, "versions": {"trio": "0.35.0"}, fact: "other", "rows": {"a": 1}}
    file.write_text(json.dumps(data), "utf-8")
    run = cast("compare.Run", None)
    assert compare.kept_rows(run, file) == ({"a": 1} if kept else {})
    assert compare.kept_rows(run, tmp_path / "absent") == {}


def row(**members: Any) -> dict[str, Any]:
    figures = {"ours": 105_803.4, "mcp": 2_775.0, "inline": 31.25, "h11": 3.456}
    measures = {
        "rate": {"figures": figures, "ratios": {}},
        "p50": {"figures": figures, "ratios": {}},
    }
    return {"title": "calls", "measures": measures, **members}


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (("ours",), "105,803"),
        (("inline",), "31.2"),
        (("h11",), "3.5"),
        (("ts1",), ""),
        (("ts1", "h11"), "3.5"),
    ],
)
def test_cell_has_the_first_figure_that_there_is(names: tuple[str, ...], text: str) -> None:
    assert compared.cell(row(), "rate", *names) == text
    assert compared.cell(row(), "cpu", *names) == ""


def test_cell_beside_a_busy_load_says_that_the_target_is_faster() -> None:
    """Only of rates: a time may be that of the load."""
    bound = row(load_bound=["ours"])
    assert compared.cell(bound, "rate", "ours") == "≥ 105,803"
    assert compared.cell(bound, "rate", "mcp") == "2,775"
    assert compared.cell(bound, "p50", "ours") == "105,803"


def test_only_what_is_between_markers_is_replaced() -> None:
    page = "a\n<!-- compared: all -->\nold\n<!-- end -->\n<!-- compared: x -->\nb\n<!-- end -->\n"
    made = compared.with_tables(page, {"all": "new\n", "absent": "nowhere\n"})
    assert made == page.replace("old", "new")


def test_table_of_a_row_has_a_column_for_each_target() -> None:
    head, rule, *lines = compared.row_table(row()).splitlines()
    titles = ["mcp-trio", "SDK, low level", "floor: trio, msgspec", "floor: trio, h11"]
    assert head == f"| calls | {' | '.join(titles)} | ours / mcp |"
    assert rule.count("--:") == 5
    assert lines[0].startswith("| calls/s | 105,803 | 2,775 |")
