"""The options of `mcp-trio fuzz`: their defaults, what each sets, their limits, and the target."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

pytest.importorskip("hypothesis")

from mcp_core import ALL, DIALECTS
from mcp_trio.cli._errors import CliError
from mcp_trio.cli.oracle.fuzz import _accepted, _display, _fuzz, _run
from mcp_trio.cli.oracle.fuzz._options import FuzzOptions, positive
from mcp_trio.cli.oracle.fuzz._run import campaign_options, status_of

if TYPE_CHECKING:
    from collections.abc import Mapping

URL = "http://127.0.0.1:1/mcp"
REMOTE = "https://192.0.2.1/mcp"
PLACE: dict[str, Any] = {"env": {}, "inherit_env": False, "cwd": "", "headers": {}}
DEFAULTS = FuzzOptions(
    output=Path("mcp-fuzz"),
    seconds=60.0,
    cases=None,
    seed=7,
    era="both",
    response_timeout=2.0,
    call_timeout=10.0,
    test_arguments=PLACE,
)


def options_of(*words: str) -> FuzzOptions:
    """Return the options of a command line with the seed 7, which isn't run."""
    run: Any = _fuzz.parse(["--seed", "7", *words])
    options: FuzzOptions = run.args[1]
    return replace(options, find_denial=DEFAULTS.find_denial)


def client_options_of(*words: str) -> FuzzOptions:
    """Return the same for a client's command line."""
    run: Any = _fuzz.parse(["--client", "--seed", "7", *words, "--", "node", "client.js"])
    assert run.args[1] == ["node", "client.js"]
    options: FuzzOptions = run.args[3]
    return replace(options, find_denial=DEFAULTS.find_denial)


def test_options_without_words_are_the_defaults() -> None:
    """No tool that changes something is called, and nothing is sent to another machine."""
    assert options_of(URL) == client_options_of() == DEFAULTS
    assert not (DEFAULTS.allowed + DEFAULTS.denied + DEFAULTS.ignored)
    flags = (DEFAULTS.allow_all, DEFAULTS.allow_remote, DEFAULTS.stress, DEFAULTS.strict)
    assert not any((*flags, DEFAULTS.requires_tools, DEFAULTS.as_json, DEFAULTS.rows))
    assert DEFAULTS.keep_going
    assert DEFAULTS.shrinks
    files = (DEFAULTS.junit, DEFAULTS.baseline, DEFAULTS.ignore_file, DEFAULTS.invariants)
    assert (*files, DEFAULTS.lanes, DEFAULTS.rate) == (None,) * 6


def test_seed_is_drawn_below_a_million_if_none_is_given() -> None:
    runs: list[Any] = [_fuzz.parse([URL]) for _ in range(4)]
    seeds = {run.args[1].seed for run in runs}
    assert len(seeds) > 1
    assert all(0 <= each < 1_000_000 for each in seeds)


# Those that a client's run has, too.
OF_BOTH: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("--output", "found"), {"output": Path("found")}),
    (("--seconds", "0.5"), {"seconds": 0.5}),
    (("--cases", "1"), {"cases": 1, "seconds": None}),
    (("--cases", "9", "--seconds", "5"), {"cases": 9, "seconds": 5.0}),
    (("--seed", "0"), {"seed": 0}),
    (("--lanes", "64"), {"lanes": 64}),
    (("--lanes", "1"), {"lanes": 1}),
    (("--era", "legacy"), {"era": "legacy"}),
    (("--response-timeout", "3"), {"response_timeout": 3.0}),
    (("--keep-going",), {}),
    (("--no-keep-going",), {"keep_going": False}),
    (("--no-shrink",), {"shrinks": False}),
    (("--strict",), {"strict": True}),
    (("--junit", "a.xml"), {"junit": Path("a.xml")}),
    (("--baseline", "a.json"), {"baseline": Path("a.json")}),
    (("--ignore-row", "A", "--ignore-row", "B:c"), {"ignored": ("A", "B:c")}),
    (("--ignore-file", "a.txt"), {"ignore_file": Path("a.txt")}),
    (("--json",), {"as_json": True}),
    (("--rows",), {"rows": True}),
]
OF_SERVERS: list[tuple[tuple[str, ...], dict[str, Any]]] = [
    (("--allow-tool", "a", "--allow-tool", "b"), {"allowed": ("a", "b")}),
    (("--allow-all",), {"allow_all": True}),
    (("--deny", "a", "--deny", "b"), {"denied": ("a", "b")}),
    (("--require-tools",), {"requires_tools": True}),
    (("--call-timeout", "3"), {"call_timeout": 3.0}),
    (("--invariants", "a.py"), {"invariants": Path("a.py")}),
    (("--stress",), {"stress": True}),
    (("--rate", "5"), {"rate": 5.0}),
    (("--allow-remote",), {"allow_remote": True}),
]


@pytest.mark.parametrize(("words", "changes"), [*OF_BOTH, *OF_SERVERS])
def test_option_changes_only_what_it_is_for(
    words: tuple[str, ...], changes: Mapping[str, Any]
) -> None:
    assert options_of(*words, URL) == replace(DEFAULTS, **changes)


@pytest.mark.parametrize(("words", "changes"), OF_BOTH)
def test_option_of_a_clients_run_is_the_same(
    words: tuple[str, ...], changes: Mapping[str, Any]
) -> None:
    assert client_options_of(*words) == replace(DEFAULTS, **changes)


@pytest.mark.parametrize(
    ("option", "texts", "says"),
    [
        ("--lanes", ("0", "65", "-1"), "is not a number from 1 to 64"),
        ("--lanes", ("x", "1.5"), "invalid number value"),
        ("--cases", ("0", "-1"), "is not a number above 0"),
        ("--cases", ("x",), "invalid number value"),
        ("--seconds", ("0", "-1", "1e9", "nan"), "is not a number above 0"),
        ("--seconds", ("x",), "invalid number value"),
    ],
)
def test_number_out_of_its_range_is_refused(
    option: str, texts: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in texts:
        with pytest.raises(SystemExit):
            options_of(option, text, URL)
        assert says in capsys.readouterr().err
    assert positive("999999999") == 999_999_999


@pytest.mark.parametrize("words", [("--client",), ("--client", "--"), ("--client", "node")])
def test_client_without_a_command_names_the_cure(words: tuple[str, ...]) -> None:
    with pytest.raises(CliError, match="the command of the client is missing; put it after --"):
        _fuzz.parse(words)


def test_client_option_of_the_servers_command_is_the_servers() -> None:
    run: Any = _fuzz.parse(["--", "node", "--client"])
    assert run.args[0].server == ("node", "--client")


@pytest.mark.parametrize(
    ("era", "kinds"), [("legacy", {True}), ("modern", {False}), ("both", {True, False})]
)
def test_era_has_its_revisions_the_newest_first(era: Any, kinds: set[bool]) -> None:
    found = replace(DEFAULTS, era=era).revisions
    assert found == tuple(each for each in ALL if DIALECTS[each].stateful in kinds)


@pytest.mark.parametrize(
    ("changes", "is_command", "lanes"),
    [
        ({}, True, 4),
        ({}, False, 1),
        ({"stress": True}, True, 1),
        ({"lanes": 7}, False, 7),
        ({"lanes": 7, "stress": True}, True, 7),
    ],
)
def test_run_has_the_options_and_few_lanes_for_what_is_shared(
    changes: dict[str, Any], is_command: bool, lanes: int
) -> None:
    options = replace(DEFAULTS, cases=3, shrinks=False, keep_going=False, **changes)
    found = campaign_options(options, is_command=is_command)
    assert found.lanes == lanes
    assert (found.seconds, found.cases) == (60.0, 3)
    assert (found.response_timeout, found.call_timeout) == (2.0, 10.0)
    assert (found.shrinks, found.keep_going) == (False, False)
    assert found.ignored == ()
    assert _run.STOP_TIME == 10.0


# -- The target ------------------------------------------------------------------------------------


def target_of(*words: str) -> Any:
    """Return what a run of this command line would send to."""
    run: Any = _fuzz.parse([*words])
    target, options = run.args
    nursery: Any = None
    return _fuzz._fuzz_target(target, options, nursery)


@pytest.mark.parametrize(
    ("words", "rate"),
    [
        ((URL,), None),
        (("--rate", "5", URL), 5.0),
        (("--allow-remote", REMOTE), 20.0),
        (("--allow-remote", "--rate", "5", REMOTE), 5.0),
        (("--allow-remote", "--rate", "50", REMOTE), 50.0),
    ],
)
def test_requests_to_another_machine_have_a_rate(words: tuple[str, ...], rate: Any) -> None:
    """By default twenty a second: thousands would be an attack."""
    given: dict[str, Any] = {}

    def target(url: str, nursery: object, **options: Any) -> str:
        given.update(options)
        return url

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mcp_trio.oracle.fuzz._http.UrlTarget", target)
        assert target_of("--header", "X-A: b", *words) == words[-1]
    assert given["rate"] == rate
    assert given["headers"] == {"x-a": "b"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((REMOTE,), "the URL is of another machine: it gets thousands of requests"),
        (("--rate", "1", REMOTE), "the URL is of another machine"),
        (("--rate", "5", "--", "node"), "--rate is for a server at a URL"),
    ],
)
def test_target_that_is_refused_names_the_cure(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(CliError, match=says):
        target_of(*words)


# -- What is accepted ------------------------------------------------------------------------------


def test_file_of_accepted_findings_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit of whole mebibytes: the text has it in them."""
    assert _accepted._MAX_FILE == 64 << 20
    monkeypatch.setattr(_accepted, "_MAX_FILE", 2 << 20)
    path = tmp_path / "a"
    path.write_bytes(b"x" * (2 << 20))
    assert len(_accepted._read_file(path)) == 2 << 20
    path.write_bytes(b"x" * ((2 << 20) + 1))
    with pytest.raises(CliError, match="is larger than 2 MiB"):
        _accepted._read_file(path)


def test_ignored_rows_are_those_of_the_line_and_then_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "ignored.txt"
    path.write_text("RPC-8  as agreed\n")
    options = replace(DEFAULTS, ignored=("RPC-7:ping", "f"), ignore_file=path)
    assert [str(each) for each in _accepted.read_ignored(options, ["f"])] == [
        "RPC-7:ping",
        "f",
        "RPC-8",
    ]
    path.write_bytes(b"\xff")
    with pytest.raises(CliError, match=r"--ignore-file .*: "):
        _accepted.read_ignored(options, ["f"])


# -- What is shown, and the exit status ------------------------------------------------------------


class _Lines:
    """A screen that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def write_line(self, *parts: str | tuple[str, str]) -> None:
        self.lines.append("".join(each if isinstance(each, str) else each[0] for each in parts))

    write_message = write_line


@pytest.mark.parametrize(
    ("listed", "called", "lines"),
    [
        (0, 0, []),
        (3, 0, ["0 of 3 tools were allowed: --allow-tool NAME or --allow-all"]),
        (2, 2, ["tools that are called: t0, t1"]),
        (20, 20, ["tools that are called: " + ", ".join(f"t{n}" for n in range(20))]),
        (21, 21, ["tools that are called: " + ", ".join(f"t{n}" for n in range(20)) + ", ..."]),
        (
            3,
            2,
            [
                "tools that are called: t0, t1",
                "1 of 3 tools are not called: --allow-tool NAME or --allow-all",
            ],
        ),
    ],
)
def test_tools_are_named_before_they_are_called(listed: int, called: int, lines: list[str]) -> None:
    screen: Any = _Lines()
    offers: Any = SimpleNamespace(tools=[{}] * listed, name="", revisions=["b", "a"])
    _display.show_target(screen, offers, [f"t{n}" for n in range(called)], DEFAULTS)
    assert screen.lines == ["a server without a name, b, a; seed 7", *lines]


def ended(**members: Any) -> Any:
    """Return a campaign that has ended, in which nothing was found."""
    nothing: dict[str, Any] = {
        "failure": None,
        "findings": [],
        "habits": [],
        "is_lost": False,
        "is_away": False,
        "broken": "",
        "unjudged": "",
        "notes": [],
        "unconfirmed": Counter(),
        "missing": {},
        "repaired": 0,
        "cases": 1234,
        "messages": 5678,
        "seconds": 61.0,
        "side": "server",
        "drawing_seconds": 60.0,
        "starts": 30,
        "is_drawn": False,
        "left": None,
        "activity": "",
        "found": SimpleNamespace(ignored={}, known={}, known_methods={}),
        "target": SimpleNamespace(kind="stdio"),
        "rows_seen": lambda: 9,
    }
    return SimpleNamespace(**{**nothing, **members})


FAILURE, ADVICE = SimpleNamespace(is_failure=True), SimpleNamespace(is_failure=False)


@pytest.mark.parametrize(
    ("members", "strict", "status"),
    [
        ({}, False, 0),
        ({"findings": [ADVICE]}, False, 0),
        ({"findings": [ADVICE]}, True, 1),
        ({"findings": [ADVICE, FAILURE]}, False, 1),
        ({"habits": [1]}, False, 0),
        ({"habits": [1]}, True, 1),
        ({"is_lost": True, "findings": [FAILURE]}, False, 3),
        ({"is_away": True}, False, 3),
        ({"is_away": True, "findings": [FAILURE]}, False, 1),
        ({"broken": "f", "unjudged": "why"}, False, 2),
        ({"broken": "f", "findings": [FAILURE]}, False, 1),
        ({"unjudged": "why"}, False, 4),
    ],
)
def test_status_is_that_of_the_worst(members: dict[str, Any], strict: bool, status: int) -> None:
    assert status_of(ended(**members), replace(DEFAULTS, strict=strict)) == status


CLEAN = "5,678 messages: 0 findings, 0 to look at; 9 rows judged; seed 7"
SUMMARY = "1,234 cases in 60 s (and 1 s of examining), 2.4 starts per 100 cases, 5,678 messages:"


@pytest.mark.parametrize(
    ("members", "out", "err"),
    [
        ({}, [f"{SUMMARY} 0 findings, 0 to look at; 9 rows judged; seed 7"], []),
        (
            {"findings": [ADVICE, FAILURE, FAILURE], "repaired": 2},
            [
                "cases of the last run that show no fault any more: 2",
                f"{SUMMARY} 2 findings, 1 to look at; 9 rows judged; seed 7",
                "in mcp-fuzz: a, b",
            ],
            [],
        ),
        (
            {"habits": [1, 2], "findings": [ADVICE], "notes": ["a\nb"]},
            [
                f"{SUMMARY} 0 findings, 1 to look at; 9 rows judged; seed 7",
                "2 of the SDK, 1 of yours; only --strict fails for the SDK's",
                "in mcp-fuzz: a, b",
            ],
            ["note: a\\nb"],
        ),
        (
            {"unconfirmed": Counter({"x": 1, "y": 2}), "missing": {"x": "p", "y": "q"}},
            [f"{SUMMARY} 0 findings, 0 to look at, 2 unconfirmed; 9 rows judged; seed 7"],
            [
                "unconfirmed: y (2 times): seen in a case, and in no further play of it: q",
                "unconfirmed: x: seen in a case, and in no further play of it: p",
            ],
        ),
        (
            {
                "found": SimpleNamespace(
                    ignored={"a": 0, "b": 3}, known={1: 5, 2: 0}, known_methods={3: 1}
                )
            },
            [f"{SUMMARY} 0 findings, 0 to look at, 2 known, 1 ignored; 9 rows judged; seed 7"],
            ["note: no finding is ignored by a: remove it, unless other seeds need it"],
        ),
        (
            {"seconds": 60.4, "side": "client", "unjudged": "why"},
            [f"1,234 cases in 60 s, {CLEAN}"],
            ["mcp-trio: nothing was judged: why"],
        ),
        (
            {"cases": 0, "drawing_seconds": 61.0, "unjudged": "why", "broken": "f"},
            [f"0 cases in 61 s, {CLEAN}"],
            [],
        ),
        (
            {"drawing_seconds": 61.0, "target": SimpleNamespace(kind="http")},
            [f"1,234 cases in 61 s, {CLEAN}"],
            [],
        ),
    ],
)
def test_summary_has_what_there_was(
    members: dict[str, Any], out: list[str], err: list[str]
) -> None:
    stdout: Any = _Lines()
    stderr: Any = _Lines()
    _display.show_summary(stdout, stderr, ended(**members), DEFAULTS, ["a", "b"])
    assert (stdout.lines, stderr.lines) == (out, err)


PROGRESS = "1:01  1,234 cases  21/s  9 rows judged"


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ({}, "1:01  1,234 cases  21/s  9 rows judged, 0 findings"),
        ({"seconds": 9.9}, "0:09  1,234 cases  21/s  9 rows judged, 0 findings"),
        ({"drawing_seconds": 0.5}, "1:01  1,234 cases  0/s  9 rows judged, 0 findings"),
        ({"activity": "a\nb"}, "1:01  1,234 cases  21/s  9 rows judged, 0 findings  a\\nb"),
        (
            {"is_drawn": True},
            "1:01  1,234 cases  21/s  9 rows judged, 0 findings  drawing is over",
        ),
        (
            {"is_drawn": True, "left": 7.0, "activity": "x", "findings": [ADVICE]},
            f"{PROGRESS}, 1 findings  drawing is over, at most 7 s more: x",
        ),
    ],
)
def test_progress_is_a_line(members: dict[str, Any], text: str) -> None:
    assert _display._progress_text(ended(**members)) == text


@pytest.mark.parametrize(
    ("is_drawn", "seconds", "text"),
    [
        (False, 60.0, "it was interrupted after 12 of 60 s"),
        (False, None, "it was interrupted after 12 s"),
        (True, 60.0, "it was interrupted after 12 of 60 s, while what was seen was examined"),
    ],
)
def test_interrupted_run_says_when(is_drawn: bool, seconds: float | None, text: str) -> None:
    campaign = ended(is_drawn=is_drawn, drawing_seconds=12.3)
    _run._mark_interrupted(campaign, replace(DEFAULTS, seconds=seconds))
    assert campaign.interrupted == text


async def test_progress_without_a_terminal_is_a_line_each_ten_seconds(autojump_clock: Any) -> None:
    """A job's log gets few lines. With --json stdout has nothing but the document."""
    stderr: Any = _Lines()
    stderr.terminal = False
    stdout: Any = _Lines()
    display = _display.Display(stderr, stdout, as_json=True)
    with trio.move_on_after(29.9):
        await display.run(ended())
    assert stderr.lines == [f"{PROGRESS}, 0 findings"] * 2
    nothing: Any = None
    display.show_finding(nothing)
    display.show_habit(nothing)
    assert stdout.lines == []


@pytest.mark.parametrize(
    ("members", "lines"),
    [
        ({}, [" 3  MUST RPC-7  a\\nb  solid 3/3", "    https://x/"]),
        ({"is_solid": False, "hits": 1, "link": ""}, [" 3  MUST RPC-7  a\\nb  flaky 1/3"]),
        ({"steps_before": 3, "link": ""}, [" 3  MUST RPC-7  a\\nb  solid 3/3, 3 steps -> 2"]),
    ],
)
def test_finding_is_a_line_with_its_plays(members: dict[str, Any], lines: list[str]) -> None:
    stdout: Any = _Lines()
    members = {"link": "https://x/", **members}
    link = members.pop("link")
    fault = SimpleNamespace(level="MUST", row="RPC-7", sentence="a\nb", link=link)
    usual = {"is_failure": True, "is_solid": True, "steps_before": 2, "cause": None, "hits": 3}
    found: Any = SimpleNamespace(
        **{**usual, **members}, number=3, plays=3, case=[1, 2], fault=fault
    )
    _display.Display(stdout, stdout, as_json=False).show_finding(found)
    assert stdout.lines == lines
