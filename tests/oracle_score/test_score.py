"""The score's own machinery, and that the committed score fits the table and the docs."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.trace import CHECKED_LEVELS, ROWS
from tests.levels import long
from tests.oracle_score.__main__ import _compare, main
from tests.oracle_score.campaign import CampaignResult, run_campaign
from tests.oracle_score.docs_page import list_of, read_list
from tests.oracle_score.operators import CRASH, HANG, all_places, operators
from tests.oracle_score.same_breach import SAME_BREACH
from tests.oracle_score.score import (
    CASES,
    SEED,
    MutantResult,
    Score,
    hold_out,
    read_baseline,
    run_score,
    write_baseline,
)
from tests.oracle_score.servers import SERVERS, RightServer
from tests.oracle_score.talks import play_talk

if TYPE_CHECKING:
    import trio

    from tests.oracle_score.operators import MutantPlace

SAMPLE = ("repeat-response/tools/list", "crash/an unknown method")
# A finding of another level is advice, and no failure.
OBLIGATIONS = {row for row, each in ROWS.items() if each.level in CHECKED_LEVELS["should"]}
KNOWN_ROWS = frozenset({*OBLIGATIONS, CRASH, HANG})


def _level(name: str) -> Any:
    """Return a mutant's name as a parameter. The SDK takes seconds to import."""
    server = all_places()[name].server
    if SERVERS[server].needs:
        return pytest.param(name, marks=pytest.mark.node)
    if server.startswith("sdk"):
        return pytest.param(name, marks=pytest.mark.interop)
    return name if name in SAMPLE else long(name)


@pytest.mark.parametrize("name", [_level(each) for each in all_places()])
def test_mutant_is_shown_by_its_directed_conversation(name: str) -> None:
    place = all_places()[name]
    if not SERVERS[place.server].is_available:
        pytest.skip(f"needs node, and {SERVERS[place.server].needs}")
    assert place.is_shown_by(play_talk(place))


def test_places_name_obligations_of_the_manifest() -> None:
    assert {
        name: each.row for name, each in all_places().items() if each.row not in KNOWN_ROWS
    } == {}


def test_same_breaches_are_of_places_and_rows_that_exist() -> None:
    names = {*operators(), *all_places()}
    assert [each for each in SAME_BREACH if each not in names] == []
    rows = {row for each in SAME_BREACH.values() for row in each}
    assert rows - KNOWN_ROWS == set()
    assert all(reason for each in SAME_BREACH.values() for reason in each.values())


def test_place_is_found_by_its_row_and_by_the_same_breach_only() -> None:
    place = all_places()["answer-notification/notifications/acme"]
    assert [each for each in ("RPC-14", "RPC-8", "CAP-3") if place.is_found_by(each)] == [
        "RPC-14",
        "RPC-8",
    ]


def test_operators_have_a_sentence_and_places() -> None:
    assert [
        name for name, each in operators().items() if not each.sentence or not each.places
    ] == []


def test_a_seed_of_the_day_holds_out_a_third_of_the_operators_and_of_the_other_places() -> None:
    held = hold_out("2026-11-29")
    assert held == hold_out("2026-11-29") != hold_out("2026-11-30")
    assert 3 * len(held.operators) >= len(operators()) > 3 * len(held.operators) - 3
    others = [each for each in all_places() if each.partition("/")[0] not in held.operators]
    assert 0.2 < len(held.places) / len(others) < 0.5
    assert held.places <= set(others)


def test_over_many_days_each_operator_is_held_out() -> None:
    days: Counter[str] = Counter()
    for day in range(30):
        days.update(hold_out(f"day {day}").operators)
    assert set(days) == set(operators())


def _mutant(name: str, found: str = "") -> MutantResult:
    return MutantResult(id=name, row="RPC-7", level="MUST", result=CampaignResult(found=found))


def test_score_names_what_the_baseline_has_found_and_it_has_not() -> None:
    before = Score(
        cases=1, seed=1, mutants=[_mutant("a", "RPC-7"), _mutant("b"), _mutant("c", "x")]
    )
    now = Score(cases=1, seed=1, mutants=[_mutant("a"), _mutant("b", "RPC-7"), _mutant("c", "y")])
    assert now.lost(before) == ["a"]
    assert before.lost(before) == []


def test_mutant_is_not_found_by_another_fault_or_by_advice() -> None:
    score = Score(
        cases=1,
        seed=1,
        mutants=[
            MutantResult(id="a", row="RPC-7", level="MUST", result=CampaignResult(other="CAP-3")),
            MutantResult(id="b", row="RPC-7", level="MUST", result=CampaignResult(advice="RPC-7")),
            _mutant("c", "RPC-7"),
        ],
    )
    assert [each.id for each in score.found()] == ["c"]
    assert [each.id for each in score.noticed()] == ["a"]
    assert [each.id for each in score.advised()] == ["b"]


@pytest.mark.parametrize(
    "other",
    [
        ("--cases", str(CASES + 1)),
        ("--seed", str(SEED + 1)),
        ("--operators", "repeat-response"),
    ],
)
def test_score_of_other_cases_or_of_a_part_is_not_written(
    other: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["--write", *other])
    wanted = f"--write needs all mutants, --cases {CASES} and --seed {SEED}"
    assert wanted in capsys.readouterr().err


def test_finding_in_an_unbroken_server_is_a_false_one() -> None:
    clean = {"workshop": CampaignResult(), "sdk": CampaignResult(found="RPC-7", sentence="twice")}
    assert Score(cases=1, seed=1, clean=clean).false_findings == ["sdk: RPC-7 twice"]


class BrokenServer(RightServer):
    """A server that cannot be opened."""

    def target(self, place: MutantPlace | None, nursery: trio.Nursery) -> Any:
        raise ValueError("no such target")


def test_exception_in_a_campaign_is_its_failure() -> None:
    result = run_campaign(BrokenServer(None, ()), None, cases=1, seed=1)
    assert "no such target" in result.failure
    score = Score(cases=1, seed=1, clean={"broken": result})
    assert score.failures == [f"broken: {result.failure}"]
    assert score.false_findings == []


def test_baseline_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("score") / "baseline.json"
    score = Score(cases=7, seed=1, mutants=[_mutant("a", "RPC-7")], clean={"sdk": CampaignResult()})
    write_baseline(score, path)
    assert read_baseline(path) == score


def test_committed_score_is_of_the_table() -> None:
    baseline = read_baseline()
    live = {name for name, each in SERVERS.items() if each.needs}
    places = {name: each for name, each in all_places().items() if each.server not in live}
    assert [each.id for each in baseline.mutants] == list(places)
    assert {each.id: (each.row, each.level) for each in baseline.mutants} == {
        name: (each.row, each.level) for name, each in places.items()
    }
    assert (baseline.cases, baseline.seed) == (CASES, SEED)
    assert list(baseline.clean) == [name for name in SERVERS if name not in live]
    assert baseline.false_findings == []


def test_docs_page_lists_what_the_committed_score_has_not_found() -> None:
    assert read_list() == list_of(read_baseline())


@pytest.mark.long
def test_campaign_finds_a_fault_again_after_as_many_cases() -> None:
    place = all_places()[SAMPLE[0]]
    first, second = (run_campaign(SERVERS["workshop"], place, cases=30, seed=1) for _ in range(2))
    assert first.found == "RPC-7"
    assert (first.cases, first.starts) == (second.cases, second.starts)
    assert first.cases < 30


@pytest.mark.long
def test_campaigns_against_unbroken_servers_find_nothing() -> None:
    score = run_score([], ["teahouse", "workshop", "client"], cases=40)
    assert score.false_findings == []
    assert [each.cases for each in score.clean.values()] == [40, 40, 40]


@pytest.mark.slow
def test_two_operators_are_found_by_their_rows() -> None:
    names = [
        each for each in all_places() if each.startswith(("repeat-response/", "break-envelope/"))
    ]
    score = run_score(names, [], cases=300)
    assert [each.id for each in score.unfound()] == []


@pytest.mark.parametrize(
    ("lost", "false", "cases", "status"),
    [
        (0, False, 3_000, 0),
        (2, False, 3_000, 0),
        (3, False, 3_000, 1),  # over two faults
        (0, True, 3_000, 1),
        (3, False, 30, 0),  # not compared
        (3, True, 30, 1),
    ],
)
def test_more_than_two_lost_faults_or_one_false_finding_fail(
    monkeypatch: pytest.MonkeyPatch, lost: int, false: bool, cases: int, status: int
) -> None:
    before = [_mutant(str(at), "RPC-7") for at in range(5)]
    after = [_mutant(str(at), "" if at < lost else "RPC-7") for at in range(5)]
    clean = {"teahouse": CampaignResult(found="RPC-7" if false else "")}
    baseline = Score(cases=3_000, seed=37, mutants=before)
    monkeypatch.setattr("tests.oracle_score.__main__.read_baseline", lambda: baseline)
    score = Score(cases=cases, seed=37, mutants=after, clean=clean)
    assert _compare(score) == status
