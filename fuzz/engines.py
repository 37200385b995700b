"""The engines that check cases: random choices, or atheris, which follows coverage.

Rules of this file:

1. The same seed, corpus and code give the same cases in the same order on every machine. The time
   limit only decides how many of them are checked.
2. Both engines produce bytes, and hypothesis draws a case from them (`fuzz_one_input`). Generation
   by hypothesis itself was tried: it takes twice the time per case and needs more cases to find the
   planted bugs of `tests/fuzz`.
3. Cases come in rounds. A case with a new outcome is a seed of all later rounds.

hypothesis shrinks a failing case. A case that does not end is a finding like any other.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.database import InMemoryExampleDatabase

from fuzz.targets import FINDINGS, FOUND_PREFIX, HERE, Target, committed_cases, write_case

__all__ = ["CaseTimeout", "Finding", "Run", "check_case", "run_atheris", "run_hypothesis"]

ROUND_SIZE: Final = 10_000
# Bytes from which a case is drawn. The longest scripts use a third of them; when they run out, the
# draw is discarded.
CHOICE_BYTES: Final = 10_000
# Seconds of processor time, so that a stalled machine causes no finding. A case takes milliseconds.
CASE_TIMEOUT: Final = 10.0
# With more seeds, each of them is drawn too rarely.
MAX_SEEDS: Final = 500


class CaseTimeout(AssertionError):
    """A case was still running after `CASE_TIMEOUT` seconds."""


class Finding(NamedTuple):
    """The smallest case that breaks an invariant, and the exception that shows it."""

    case: Any
    error: BaseException


class Run:
    """The state of a run.

    `seeds` are the recorded cases, `seen` the outcomes so far, and `failed` the cases that broke
    the invariant.
    """

    def __init__(self, target: Target, *, keep: bool = False) -> None:
        self.target = target
        self.cases = 0
        self.seen: set[str] = set()
        self.seeds = list(committed_cases(target).values())
        self.failed: list[Finding] = []
        self._keep = keep
        self._started = time.monotonic()

    def __repr__(self) -> str:
        return f"<Run of {self.target.name}, {self.cases} cases, {len(self.seen)} outcomes>"

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def rate(self) -> float:
        """Cases per second."""
        return self.cases / max(self.seconds, 1e-9)

    def attempt(self, case: Any) -> None:
        """Check a case. After the first failure, further cases are shrinking attempts and do not
        count.
        """
        self.cases += not self.failed
        try:
            outcomes = set(check_case(self.target, case))
        except Exception as exc:
            self.failed.append(Finding(case, exc))
            raise
        if self.failed or outcomes <= self.seen:
            return
        self.seen |= outcomes
        if len(self.seeds) < MAX_SEEDS:
            self.seeds.append(case)
            if self._keep:
                write_case(self.target, case, self.target.corpus, FOUND_PREFIX)


def run_hypothesis(
    target: Target,
    *,
    seconds: float | None = None,
    cases: int | None = None,
    seed: int = 0,
    keep: bool = True,
    shrink: bool = True,
    progress: Callable[[Run], object] = lambda run: None,
) -> tuple[Run, Finding | None]:
    """Check cases until `cases` were checked, `seconds` have passed, or one fails.

    With `keep`, a case with a new outcome is written to the corpus. With `shrink`, a failing case
    is shrunk first, which can take longer than finding it. `progress` is called every 100 cases.
    """
    run = Run(target, keep=keep)
    for case in run.seeds:
        try:
            run.seen.update(check_case(target, case))
        except Exception as exc:  # noqa: BLE001 - every exception is a finding
            return run, Finding(case, exc)
    rng = Random(seed)  # noqa: S311 - runs are repeatable
    while True:
        trial = _make_trial(target, run.attempt, run.seeds)
        for _ in range(ROUND_SIZE):
            if (cases is not None and run.cases >= cases) or (
                seconds is not None and run.seconds > seconds
            ):
                return run, None
            try:
                trial.hypothesis.fuzz_one_input(rng.randbytes(CHOICE_BYTES))
            except Exception:
                if not run.failed:  # the exception came from the strategy
                    raise
                return run, _shrink(run, trial) if shrink else run.failed[0]
            if run.cases % 100 == 0:
                progress(run)


def _shrink(run: Run, trial: Callable[[], None]) -> Finding:
    """Return the smallest failing case that hypothesis finds."""
    with contextlib.suppress(Exception):
        trial()
    found = run.failed[-1]  # the last failure is the smallest; its note says how to call the trial
    found.error.__notes__ = []
    return found


def _make_trial(target: Target, attempt: Callable[[Any], None], seeds: Sequence[Any]) -> Any:
    """Make a hypothesis test.

    Called through `fuzz_one_input` it checks one case. Called directly it shrinks the failing case.
    """

    def trial(case: Any) -> None:
        attempt(case)

    profile = settings(
        database=InMemoryExampleDatabase(),
        deadline=None,
        derandomize=False,
        phases=(Phase.reuse, Phase.shrink),
        print_blob=False,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    return profile(given(target.cases(tuple(seeds)))(trial))


def check_case(target: Target, case: Any) -> list[str]:
    """Check one case and return its outcomes.

    Raises:
        CaseTimeout: the check does not end.
        Exception: the case breaks the invariant.
    """
    with _time_limit():
        return list(target.check(case))


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread() or not hasattr(
        signal, "setitimer"
    ):
        yield
        return
    previous = signal.signal(signal.SIGVTALRM, _on_alarm)
    signal.setitimer(signal.ITIMER_VIRTUAL, CASE_TIMEOUT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def _on_alarm(*_: object) -> None:
    raise CaseTimeout(f"the case was still running after {CASE_TIMEOUT:.0f} s")


# -- atheris ---------------------------------------------------------------------------------------


def run_atheris(
    load: Callable[[], Target],
    report: Callable[[Target, Finding], None],
    *,
    seconds: float | None = None,
    cases: int | None = None,
    seed: int = 0,
) -> None:
    """Run the target under atheris, which ends the process itself.

    atheris mutates the corpus of a `raw` target directly. For other targets its bytes are the
    choices from which hypothesis draws a case. A failing case is reported unshrunk.

    Raises:
        ModuleNotFoundError: atheris is not installed.
    """
    atheris: Any = importlib.import_module("atheris")
    # atheris can follow only modules that are imported inside this block.
    with atheris.instrument_imports(include=["mcp_core"]):
        target = load()

    def attempt(case: Any) -> None:
        try:
            check_case(target, case)
        except Exception as exc:
            report(target, Finding(case, exc))
            raise

    # atheris writes new inputs to the first folder and only reads the others.
    folders = [HERE / ".hypothesis" / "atheris" / target.name]
    folders[0].mkdir(parents=True, exist_ok=True)
    if target.raw:
        feed = attempt
        folders.append(target.corpus)
    else:
        feed = _make_trial(
            target, attempt, list(committed_cases(target).values())
        ).hypothesis.fuzz_one_input
    options = [f"-seed={seed or 1}", f"-artifact_prefix={FINDINGS}/"]
    if seconds is not None:
        options.append(f"-max_total_time={max(1, round(seconds))}")
    if cases is not None:
        options.append(f"-runs={cases}")
    atheris.Setup([sys.argv[0], *options, *map(str, folders)], feed)
    atheris.Fuzz()
