"""The options of `mcp-trio bench`: their defaults, what each sets, and the ends of their ranges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_trio.cli._errors import CliError
from mcp_trio.cli.oracle import _bench, _bench_once
from mcp_trio.cli.oracle._bench import BenchOptions
from mcp_trio.oracle.bench._turn import Pace
from mcp_trio.oracle.bench.calls._calls import BenchCalls
from mcp_trio.oracle.bench.report._thresholds import Threshold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_trio.cli.oracle._bench_targets import BenchTarget

URL = "http://127.0.0.1:1/mcp"
REMOTE = "http://192.0.2.1/mcp"
ONE_CALLER = (Pace(None, 1, seed=0),)
DEFAULTS = BenchOptions(calls=BenchCalls(), paces=ONE_CALLER, seconds=10.0, timeout=30.0)


def options_of(*words: str) -> BenchOptions:
    """Return the options of a command line, which isn't run."""
    run: Any = _bench.parse(words)
    found: BenchOptions = run.args[1]
    return found


def test_options_without_words_are_the_defaults() -> None:
    """Nothing is written, sent to another machine, or searched for without an option."""
    found = options_of(URL)
    assert found == DEFAULTS
    assert (found.seed, found.limit, found.processes, found.era) == (0, None, 1, None)
    assert (found.thresholds, found.arguments, found.answers) == ((), {}, ())
    assert (found.junit, found.output) == (None, None)
    assert (found.sessions, found.progress) == (0, 0)
    flags = (found.allow_remote, found.as_json, found.as_markdown, found.conversations)
    assert not any((*flags, found.through_client))


TOOL = BenchCalls(kind="tool", name="t")
GIVEN = BenchCalls(kind="tool", name="t", arguments={"a": 1})
VARIED = BenchCalls(kind="tool", name="t", arguments={"a": "x"}, vary=True)


@pytest.mark.parametrize(
    ("words", "changes"),
    [
        (("--ping",), {}),
        (("--tool", "t"), {"calls": TOOL}),
        (("--tool", "t", "--args", ' {"a": 1}'), {"calls": GIVEN, "arguments": {"a": 1}}),
        (
            ("--tool", "t", "--args", '{"a": "x"}', "--vary"),
            {"calls": VARIED, "arguments": {"a": "x"}},
        ),
        (("--read", "note:a"), {"calls": BenchCalls(kind="read", name="note:a")}),
        (("--list", "tools"), {"calls": BenchCalls(kind="list", name="tools")}),
        (("--connect",), {"conversations": True}),
        (("--sessions", "9"), {"sessions": 9}),
        (("--progress", "9", "--tool", "t"), {"calls": TOOL, "progress": 9}),
        (("--concurrency", "2,8"), {"paces": (Pace(None, 2), Pace(None, 8))}),
        (("--processes", "3"), {"processes": 3, "paces": (Pace(None, 3),)}),
        (("--rate", "5,9"), {"paces": (Pace(5.0, 64), Pace(9.0, 64))}),
        (("--rate", "5", "--concurrency", "7"), {"paces": (Pace(5.0, 7),)}),
        (
            ("--rate", "5", "--even", "--seed", "3"),
            {"paces": (Pace(5.0, 64, even=True, seed=3),), "seed": 3},
        ),
        (("--seed", "3"), {"paces": (Pace(None, 1, seed=3),), "seed": 3}),
        (("--sweep",), {"paces": (Pace(100.0, 64),), "seconds": 3.0, "limit": 0.05}),
        (
            ("--sweep", "--rate", "7", "--limit", "20ms", "--seconds", "4", "--even"),
            {"paces": (Pace(7.0, 64, even=True),), "seconds": 4.0, "limit": 0.02},
        ),
        (("--seconds", "2.5"), {"seconds": 2.5}),
        (("--timeout", "4"), {"timeout": 4.0}),
        (("--era", "legacy"), {"era": "2025-11-25"}),
        (("--era", "modern"), {"era": "2026-07-28"}),
        (("--era", "2025-06-18"), {"era": "2025-06-18"}),
        (("--json",), {"as_json": True}),
        (("--markdown",), {"as_markdown": True}),
        (("--junit", "a.xml"), {"junit": Path("a.xml")}),
        (("--output", "a.json"), {"output": Path("a.json")}),
        (("--allow-remote",), {"allow_remote": True}),
        (("--through", "client"), {"through_client": True}),
        (
            ("--through", "client", "--answer", "a=1", "--answer", "b=2"),
            {"through_client": True, "answers": ("a=1", "b=2")},
        ),
        (
            ("--threshold", "p99<5ms", "--threshold", "errors<1%"),
            {"thresholds": (Threshold.parse("p99<5ms"), Threshold.parse("errors<1%"))},
        ),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_option_changes_only_what_it_is_for(
    words: tuple[str, ...], changes: Mapping[str, Any]
) -> None:
    assert options_of(*words, URL) == replace(DEFAULTS, **changes)


@pytest.mark.parametrize(
    ("option", "name", "least", "most", "beyond"),
    [
        ("--rate", "paces", "0.001", "500000", "500001"),
        ("--concurrency", "paces", "1", "1024", "1025"),
        ("--seconds", "seconds", "0.1", "3600", "3601"),
        ("--processes", "processes", "1", "64", "65"),
        ("--sessions", "sessions", "1", "100000", "100001"),
        ("--progress", "progress", "1", "10000000", "10000001"),
    ],
)
def test_number_is_taken_up_to_its_limits(
    option: str,
    name: str,
    least: str,
    most: str,
    beyond: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The error has the range, with its thousands apart."""
    more = ("--tool", "t", URL) if option == "--progress" else (URL,)
    for text in (least, most):
        found = getattr(options_of(option, text, *more), name)
        if name == "paces":
            [pace] = found
            found = pace.rate or pace.concurrency
        assert found == float(text)
    for text in ("0", "-1", "x", beyond):
        with pytest.raises(SystemExit):
            options_of(option, text, *more)
        assert f"to {int(most):,}" in capsys.readouterr().err


def test_several_numbers_are_twenty_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    assert len(options_of("--rate", ",".join(["1"] * 20), URL).paces) == 20
    with pytest.raises(SystemExit):
        options_of("--rate", ",".join(["1"] * 21), URL)
    assert "there are 21 numbers, at most 20" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--processes", "4", "--concurrency", "4"), ""),
        (("--processes", "4", "--concurrency", "3"), "--concurrency 3 is not enough"),
        (("--tool", "t", "--args", '{"a": 1}', "--vary"), "--vary lengthens a text"),
        (("--tool", "t", "--args", '{"a": ""}', "--vary"), "--vary lengthens a text"),
        (("--tool", "t", "--args", '{"a": 1, "b": "x"}', "--vary"), ""),
        (("--rate", "5", "--concurrency", "2"), ""),
        (("--sweep", "--concurrency", "2,3"), "--concurrency has one number beside --rate"),
        (("--sweep", "--even"), ""),
        (("--sweep", "--processes", "64"), ""),
        (("--sessions", "9", "--json"), ""),
        (("--sessions", "9", "--concurrency", "5"), "--concurrency is for calls in turns"),
        (("--sessions", "9", "--rate", "5", "--even"), "--rate is for calls in turns"),
        (("--sessions", "9", "--sweep", "--limit", "1s"), "--sweep is for calls in turns"),
        (("--sessions", "9", "--seconds", "5"), "--seconds is for calls in turns"),
        (("--sessions", "9", "--processes", "2"), "--processes is for calls in turns"),
        (("--sessions", "9", "--junit", "a"), "--junit is for calls in turns, and --sessions"),
        (("--sessions", "9", "--markdown"), "--markdown is for calls in turns"),
        (("--tool", "t", "--progress", "9", "--junit", "a"), "and --progress measures once"),
        (
            ("--tool", "t", "--args", '{"a": "x"}', "--vary", "--progress", "9"),
            "--vary is for calls in turns",
        ),
    ],
)
def test_options_that_do_not_fit_each_other_are_refused(
    words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if not problem:
        options_of(*words, URL)
        return
    with pytest.raises(SystemExit):
        options_of(*words, URL)
    assert problem in capsys.readouterr().err


def test_processes_are_for_any_target_at_a_url(capsys: pytest.CaptureFixture[str]) -> None:
    pair = ("--target", f"a={URL}", "--target", "b=python b.py")
    assert options_of("--processes", "2", *pair).processes == 2
    with pytest.raises(SystemExit):
        options_of("--processes", "2", "--", "python", "b.py")
    assert "--processes is for a server at a URL" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "is_allowed"),
    [
        (("--rate", "50"), True),
        (("--rate", "50.5"), False),
        (("--concurrency", "1"), False),
        (("--sweep", "--rate", "1"), False),
        (("--sessions", "50"), True),
        (("--sessions", "51"), False),
        (("--sessions", "51", "--allow-remote"), True),
        (("--tool", "t", "--progress", "1000"), True),
        (("--sweep", "--allow-remote"), True),
    ],
)
def test_other_machine_gets_many_calls_only_with_consent(
    words: tuple[str, ...], is_allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limits are those of the help. This machine's own servers have none."""
    runs: list[str] = []

    def run(targets: Sequence[BenchTarget], options: BenchOptions, *head: object) -> int:
        runs.append(targets[0].name)
        return 0

    monkeypatch.setattr(_bench_once, "sessions", run)
    monkeypatch.setattr(_bench_once, "progress", run)
    monkeypatch.setattr(trio, "run", lambda _, *arguments: run(*arguments))
    if is_allowed:
        assert _bench.parse([*words, REMOTE])() == 0
    else:
        with pytest.raises(CliError, match="is on another machine"):
            _bench.parse([*words, REMOTE])()
    assert runs == [REMOTE] * is_allowed
    assert _bench.parse([*words, URL])() == 0
