"""The fuzzing engines and the command: a failing case is found, shrunk, shown and saved; runs
repeat and end.
"""

from __future__ import annotations

import contextlib
import re
import sys
from importlib.util import find_spec
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st

from fuzz import __main__ as command
from fuzz import engines
from fuzz.engines import CaseTimeout, check_case, run_atheris, run_hypothesis
from fuzz.targets import Target, as_row, load, read_case, target_names
from fuzz.timing import run_within
from mcp_core.protocol.jsonrpc import _codec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture
def planted_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bug in the core that only generated cases can find: duplicate members are accepted."""
    monkeypatch.setattr(_codec, "_reject_duplicates", lambda data, envelope: None)
    monkeypatch.setattr(engines, "committed_cases", lambda target: {})


@pytest.mark.long
@pytest.mark.usefixtures("planted_bug")
def test_fuzz_run_failing_case_is_shrunk() -> None:
    """`test_fuzz_target_mutant_is_detected` finds the same bug, without shrinking."""
    run, finding = run_hypothesis(load("jsonrpc"), cases=5_000, keep=False)
    assert finding is not None
    assert "a member occurs twice" in str(finding.error)
    assert len(finding.case) < 120, finding.case
    assert run.cases < 5_000


def test_fuzz_run_recorded_case_fails_is_a_finding() -> None:
    def check(case: Any) -> list[str]:
        raise AssertionError("no")

    run, finding = run_hypothesis(load("jsonrpc")._replace(check=check), cases=5, keep=False)
    assert finding is not None
    assert run.cases == 0


def test_fuzz_run_broken_strategy_raises() -> None:
    broken = Target(
        "broken", lambda seeds: st.integers().map(lambda number: number // 0), lambda case: ()
    )
    with pytest.raises(ZeroDivisionError):
        run_hypothesis(broken, cases=5, keep=False)


def test_fuzz_run_same_seed_checks_same_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The seed in a report must repeat the run, here over three rounds with feedback."""
    monkeypatch.setattr(engines, "ROUND_SIZE", 25)

    def tried(seed: int) -> list[Any]:
        found: list[Any] = []

        def check(case: Any) -> list[str]:
            found.append(case)
            return [str(case)[:1]]

        def cases(seeds: Sequence[Any]) -> st.SearchStrategy[Any]:
            return st.integers() | st.sampled_from(seeds or (0,))

        run_hypothesis(Target("seeded", cases, check), cases=60, seed=seed, keep=False)
        return found

    assert tried(1) == tried(1)
    assert tried(1) != tried(2)


def test_fuzz_run_after_seconds_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case takes a second on a clock of its own, so that no machine is too slow."""
    now = 0

    def check(case: Any) -> list[str]:
        nonlocal now
        now += 1
        return []

    monkeypatch.setattr(engines, "time", SimpleNamespace(monotonic=lambda: now))
    target = Target("slow", lambda seeds: st.integers(), check)
    run, finding = run_hypothesis(target, seconds=9.5, keep=False)
    assert (run.cases, finding) == (10, None)


def endless(case: Any) -> list[str]:
    while True:
        pass


def test_fuzz_case_endless_raises_case_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "CASE_TIMEOUT", 0.05)
    with pytest.raises(CaseTimeout):
        check_case(Target("endless", lambda seeds: st.just(0), endless), 0)


def test_run_within_over_limit_raises() -> None:
    assert run_within(60.0, lambda: 1) == 1
    with pytest.raises(AssertionError, match="may take -1"):
        run_within(-1.0, lambda: 1)


# -- The command -----------------------------------------------------------------------------------


def test_fuzz_command_with_finding_prints_and_saves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The saved case is shrunk, and fails again when the command plays it."""

    def check(case: bytes) -> list[str]:
        assert b"\xff" not in case
        return [str(len(case))]

    target = load("jsonrpc")._replace(cases=lambda seeds: st.binary(), check=check)
    monkeypatch.setattr(command, "load", lambda name: target)
    monkeypatch.setattr(command, "FINDINGS", tmp_path / "findings")
    monkeypatch.setattr("fuzz.targets.CORPUS", tmp_path / "corpus")
    assert command.main(["jsonrpc", "--cases", "5000"]) == 1
    (saved,) = (tmp_path / "findings").iterdir()
    found = read_case(target, saved)
    shown = capsys.readouterr()
    assert found == b"\xff"
    assert as_row(target, found) in shown.out
    assert str(saved) in shown.out
    assert "cases/s" in shown.err
    assert list((tmp_path / "corpus" / "jsonrpc").glob("found-*"))
    assert command.main(["jsonrpc", str(saved)]) == 1
    assert "fails" in capsys.readouterr().out


def test_fuzz_command_without_finding_exits_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = load("framing")
    assert command.main(["framing", str(target.corpus / "crlf")]) == 0
    assert "crlf: " in capsys.readouterr().out
    assert command.main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in listed] == target_names()
    monkeypatch.setattr("fuzz.targets.CORPUS", tmp_path)
    assert command.main(["framing", "--cases", "10"]) == 0
    assert re.search(r"framing: 10 cases in \d+ s, ", capsys.readouterr().err)
    with pytest.raises(SystemExit) as end:
        command.main([])
    assert end.value.code == 2


# -- atheris ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["jsonrpc", "framing"])
def test_atheris_engine_passes_target_and_options(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, planted_bug: None
) -> None:
    """atheris is no dependency, so a stand-in records its arguments and makes three calls
    itself.
    """
    options: list[str] = []

    def fuzz() -> None:
        for data in (b"", b"\0" * 40, b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}'):
            feed[0](data)

    feed: list[Any] = []

    def set_up(arguments: list[str], one: Any) -> None:
        options.extend(arguments)
        feed.append(one)

    stand_in = SimpleNamespace(
        instrument_imports=lambda include: contextlib.nullcontext(), Setup=set_up, Fuzz=fuzz
    )
    monkeypatch.setitem(sys.modules, "atheris", stand_in)
    monkeypatch.setattr(engines, "HERE", tmp_path)
    reported: list[Any] = []
    fails = pytest.raises(AssertionError, match="a member occurs twice")
    with fails if name == "jsonrpc" else contextlib.nullcontext():
        run_atheris(
            lambda: load(name), lambda *found: reported.append(found), seconds=5, cases=9, seed=3
        )
    assert len(reported) == (name == "jsonrpc")
    assert {"-seed=3", "-max_total_time=5", "-runs=9"} <= set(options)


@pytest.mark.skipif(find_spec("atheris") is not None, reason="atheris is installed")
def test_fuzz_command_atheris_missing_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["framing", "--engine", "atheris"]) == 2
    assert "not installed" in capsys.readouterr().err
