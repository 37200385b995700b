"""What tries cases: random choices, or atheris, which follows coverage. A case that fails is made small by hypothesis.

Rules of this file:

1. The same seed, corpus and code give the same cases in the same order, however fast the machine is. Time only decides
   how many of them there are.
2. Either engine makes bytes, and a case is what hypothesis draws by them (`fuzz_one_input`). The generation of hypothesis
   itself was tried: it remembers and varies what it has done, which here takes twice the time for each case and finds
   what is broken on purpose (in `tests/fuzz`) after more of them, not fewer.
3. Cases come in rounds. What a round found to be new is a seed of the rounds that follow.
4. A case that does not come to an end is a finding like any other.

It does not know what is tried.
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

from .targets import FINDINGS, FOUND, HERE, Target, committed, write_case

__all__ = ["Endless", "Finding", "Run", "by_atheris", "by_hypothesis", "checked"]

ROUND: Final = 10_000
# Bytes of which a case is made. The longest scripts take a third of them; what runs out is no case.
CHOICES: Final = 10_000
# Of processor time, so that a machine which stalls is no finding. Every case is done in a few milliseconds.
LONGEST_CASE: Final = 10.0
# More seeds than this make each of them rare.
MOST_SEEDS: Final = 500


class Endless(AssertionError):
    """A case was still running after `LONGEST_CASE` seconds."""


class Finding(NamedTuple):
    """The smallest case that breaks an invariant, and how."""

    case: Any
    error: BaseException


class Run:
    """What a run has done so far. `seeds` are cases to begin with, `failed` those that broke the invariant."""

    def __init__(self, target: Target, *, keep: bool = False) -> None:
        self.target = target
        self.cases = 0
        self.seen: set[str] = set()
        self.seeds = list(committed(target).values())
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
        """Try a case. When one has failed, the others are attempts to make it small, and do not count."""
        self.cases += not self.failed
        try:
            outcomes = set(checked(self.target, case))
        except Exception as exc:
            self.failed.append(Finding(case, exc))
            raise
        if self.failed or outcomes <= self.seen:
            return
        self.seen |= outcomes
        if len(self.seeds) < MOST_SEEDS:
            self.seeds.append(case)
            if self._keep:
                write_case(self.target, case, self.target.corpus, FOUND)


def by_hypothesis(
    target: Target,
    *,
    seconds: float | None = None,
    cases: int | None = None,
    seed: int = 0,
    keep: bool = True,
    small: bool = True,
    progress: Callable[[Run], object] = lambda run: None,
) -> tuple[Run, Finding | None]:
    """Try cases until there were `cases`, `seconds` have passed, or one fails.

    With `keep` a case that did something new is kept in the corpus. With `small` a failing one is made small first, which
    may take longer than it took to find it. `progress` is told about the run now and then.
    """
    run = Run(target, keep=keep)
    for case in run.seeds:
        try:
            run.seen.update(checked(target, case))
        except Exception as exc:  # noqa: BLE001 - whatever the check lets out is a finding
            return run, Finding(case, exc)
    random = Random(seed)  # noqa: S311 - it is to be foreseen
    while True:
        trial = _trial(target, run.attempt, run.seeds)
        for _ in range(ROUND):
            if (cases is not None and run.cases >= cases) or (seconds is not None and run.seconds > seconds):
                return run, None
            try:
                trial.hypothesis.fuzz_one_input(random.randbytes(CHOICES))
            except Exception:
                if not run.failed:  # the target cannot even make a case
                    raise
                return run, _smallest(run, trial) if small else run.failed[0]
            if run.cases % 100 == 0:
                progress(run)


def _smallest(run: Run, trial: Callable[[], None]) -> Finding:
    with contextlib.suppress(Exception):
        trial()
    found = run.failed[-1]  # hypothesis ends with it, and with a note that says how to call the trial again
    found.error.__notes__ = []
    return found


def _trial(target: Target, attempt: Callable[[Any], None], seeds: Sequence[Any]) -> Any:
    """A test of hypothesis. Called with `fuzz_one_input` it tries one case; called by itself, it makes the one that failed
    so small as it can."""

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


def checked(target: Target, case: Any) -> list[str]:
    """Check one case; gives what it brought about.

    Raises:
        Endless: the check does not come to an end.
        Exception: the case breaks the invariant.
    """
    with _alarm():
        return list(target.check(case))


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_CASE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _ring(*_: object) -> None:
    raise Endless(f"the case was still running after {LONGEST_CASE:.0f} s")


# -- atheris -----------------------------------------------------------------------------------------------------------


def by_atheris(
    load: Callable[[], Target],
    report: Callable[[Target, Finding], None],
    *,
    seconds: float | None = None,
    cases: int | None = None,
    seed: int = 0,
) -> None:
    """Hand the target to atheris, which ends the process by itself.

    A target of bytes is given what atheris makes of the corpus; for others its bytes are the choices that hypothesis
    makes a case of. A failing case is reported as it is: atheris does not make it small.

    Raises:
        ModuleNotFoundError: atheris is not installed.
    """
    atheris: Any = importlib.import_module("atheris")
    # Only what is imported inside can be followed.
    with atheris.instrument_imports(include=["mcp_core"]):
        target = load()

    def attempt(case: Any) -> None:
        try:
            checked(target, case)
        except Exception as exc:
            report(target, Finding(case, exc))
            raise

    # It writes what it finds to be new into the first folder, and only reads the others.
    folders = [HERE / ".hypothesis" / "atheris" / target.name]
    folders[0].mkdir(parents=True, exist_ok=True)
    if target.raw:
        feed = attempt
        folders.append(target.corpus)
    else:
        feed = _trial(target, attempt, list(committed(target).values())).hypothesis.fuzz_one_input
    options = [f"-seed={seed or 1}", f"-artifact_prefix={FINDINGS}/"]
    if seconds is not None:
        options.append(f"-max_total_time={max(1, round(seconds))}")
    if cases is not None:
        options.append(f"-runs={cases}")
    atheris.Setup([sys.argv[0], *options, *map(str, folders)], feed)
    atheris.Fuzz()
