"""The texts of the fuzzer's function: a peer's are escaped, since a terminal gets them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core import ConnectFailed
from mcp_trio.oracle.fuzz import _echo, _probe, _report
from mcp_trio.oracle.fuzz._http import HttpSession, UrlTarget
from mcp_trio.oracle.fuzz._probe import Offers
from mcp_trio.oracle.fuzz.campaign import _campaign
from mcp_trio.testing import NothingJudged, _faults
from mcp_trio.testing._fuzzing import FuzzFindings, fuzz_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TITLE = "\x1b]0;x\x07\u202e"  # sets a terminal's title, and turns the text around
SHOWN = r"\u001b]0;x\u0007\u202e"


class LostCampaign:
    """A run whose server ends, after an error on its stderr."""

    side = "server"
    found = SimpleNamespace(ignored={})
    findings: tuple[Any, ...] = ()
    is_lost = True
    notes = (f"an error: {TITLE}", "it has ended\n  its stderr: no")

    def __init__(self, *args: object, **options: object) -> None:
        pass

    async def run(self) -> None:
        pass


async def test_fuzz_server_escapes_names_and_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The names of the server and of the baseline in the warning, and stderr in the error."""

    async def probe(target: object) -> Offers:
        return Offers(name=f"new{TITLE} 1")

    async def begin(echo: object) -> None:
        pass

    monkeypatch.setattr(_campaign, "Campaign", LostCampaign)
    monkeypatch.setattr(_probe, "probe", probe)
    monkeypatch.setattr(_echo.Echo, "begin", begin)
    baseline = tmp_path / "report.json"
    report = {"version": 2, "seed": 1, "server": f"old{TITLE} 1", "findings": []}
    baseline.write_text(json.dumps(report))
    with (
        pytest.warns(UserWarning, match="the baseline") as warned,
        pytest.raises(ConnectFailed) as failure,
    ):
        await fuzz_server("http://127.0.0.1:1/mcp", tmp_path / "a", baseline=baseline)
    (warning,) = warned
    assert str(warning.message) == (
        f"the baseline: it is of old{SHOWN} 1, and this is new{SHOWN} 1"
    )
    assert str(failure.value) == (
        f"the conversation with the server ended: an error: {SHOWN}; it has ended\n  its stderr: no"
    )


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        (
            {"last_status": 307, "_location": b"\x9b2J"},
            r" (HTTP status 307: it redirects to \u009b2J",
        ),
        ({"_error": f"not HTTP: {TITLE}"}, f" (not HTTP: {SHOWN})"),
    ],
)
async def test_description_of_a_server_at_a_url_is_escaped(
    attributes: dict[str, Any], says: str
) -> None:
    async with trio.open_nursery() as nursery:
        session = HttpSession(UrlTarget("http://127.0.0.1:1/mcp", nursery), keep=False)
        nursery.cancel_scope.cancel()
    for name, value in attributes.items():
        setattr(session, name, value)
    assert session.describe().startswith(says)


@pytest.mark.parametrize("code", [TITLE, "\u202e" * 10_000])
def test_error_of_a_server_that_shows_nothing_is_escaped_and_cut(code: str) -> None:
    answer = {"error": {"code": code, "message": TITLE}}
    session: Any = SimpleNamespace(requests=[SimpleNamespace(method="initialize", answer=answer)])
    text = _faults._describe_silence(session)
    assert text.isprintable()
    assert len(text) < 4_000


# -- A run whose outcome is made up ----------------------------------------------------------------


class MadeUpCampaign:
    """Notes with what a run was begun, and has the outcome that a test gives it."""

    side = "server"
    is_lost = is_away = False
    unjudged = ""

    def __init__(self, findings: Any = (), ignored: Any = None, **outcome: Any) -> None:
        self.findings = list(findings)
        self.found = SimpleNamespace(ignored=ignored or {})
        self.notes = ["a note"]
        self.begun: list[Any] = []
        self.options: dict[str, Any] = {}
        self.__dict__.update(outcome)

    def begin(self, *args: Any, **options: Any) -> MadeUpCampaign:
        self.begun = list(args)
        self.options = options
        return self

    async def run(self) -> None:
        await trio.lowlevel.checkpoint()


HARMLESS = {"readOnlyHint": True, "openWorldHint": False}
TOOLS: list[dict[str, Any]] = [
    {"name": "reads", "annotations": HARMLESS},
    {"name": "writes", "annotations": {**HARMLESS, "readOnlyHint": False}},
    {"name": 7, "annotations": HARMLESS},
]
URL = "http://127.0.0.1:1/mcp"


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[MadeUpCampaign], None]:
    """Let the next run be this one."""

    async def probe(target: Any) -> Offers:
        await trio.lowlevel.checkpoint()
        return Offers(name="s 1", tools=TOOLS)

    async def begin(echo: object) -> None:
        await trio.lowlevel.checkpoint()

    def write(directory: Path, campaign: MadeUpCampaign, document: Any) -> None:
        directory.mkdir()
        (directory / "test_findings.py").touch()
        (directory / "report.json").write_text(json.dumps(document))

    def document(campaign: MadeUpCampaign, offers: Offers, seed: int) -> Any:
        return [len(campaign.findings), offers.name, seed]

    monkeypatch.setattr(_probe, "probe", probe)
    monkeypatch.setattr(_echo.Echo, "begin", begin)
    monkeypatch.setattr(_report, "write_findings", write)
    monkeypatch.setattr(_report, "report_document", document)
    return lambda run: monkeypatch.setattr(_campaign, "Campaign", run.begin)


def finding(row: str, link: str = "", *, is_failure: bool = True) -> Any:
    fault = SimpleNamespace(level="MUST", row=row, sentence=f"no {TITLE}", link=link)
    return SimpleNamespace(is_failure=is_failure, fault=fault, case=[("open", "x" * 600)])


async def test_fuzz_server_has_the_limits_of_the_command(
    tmp_path: Path, play: Callable[[MadeUpCampaign], None]
) -> None:
    """A server at a URL is one process for all lanes, so it has one."""
    for target, options, expected in (
        (URL, {}, (10.0, None, 2.0, 10.0, 1)),
        (["program"], {"seconds": None, "cases": 3, "response_timeout": 1.0, "call_timeout": 5.0},
         (None, 3, 1.0, 5.0, _campaign.DEFAULT_LANES)),
    ):  # fmt: skip
        run = MadeUpCampaign()
        play(run)
        await fuzz_server(target, tmp_path / "a", **options)  # type: ignore[arg-type]
        played, _, choices, limits = run.begun
        found = (limits.seconds, limits.cases, limits.response_timeout, limits.call_timeout)
        assert (*found, limits.lanes) == expected
        assert limits.ignored == ()
        assert choices.http is (target == URL)
        assert played.kind == ("http" if target == URL else "stdio")
        assert run.options["checks"] is None
        assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("allow", "called"), [((), ["reads"]), (["writes"], ["reads", "writes"]), ("", ["reads"])]
)
async def test_fuzz_server_calls_tools_that_change_nothing_or_are_allowed(
    tmp_path: Path, play: Callable[[MadeUpCampaign], None], allow: Any, called: list[str]
) -> None:
    run = MadeUpCampaign()
    play(run)
    await fuzz_server(URL, tmp_path / "a", allow=allow)
    assert [each["name"] for each in run.begun[2].tools] == called


async def test_fuzz_server_of_a_faulty_server_writes_and_lists_its_findings(
    tmp_path: Path, play: Callable[[MadeUpCampaign], None]
) -> None:
    """Files of an earlier run are removed, and so is the test that pytest would collect."""
    directory = tmp_path / "a"
    directory.mkdir()
    (directory / "old").touch()
    failures = [finding("RPC-7", "https://h/"), finding("crash")]
    play(MadeUpCampaign([failures[0], finding("RPC-8", is_failure=False), failures[1]]))
    with pytest.raises(FuzzFindings) as failure:
        await fuzz_server(URL, directory, seed=5)
    steps = "[('open', '" + "x" * 489
    assert str(failure.value).splitlines() == [
        f"the fuzzer has found 2 faults of the server, see {directory}:",
        f"  MUST RPC-7: no {SHOWN}",
        "    https://h/",
        f"    steps: {steps}",
        f"  MUST crash: no {SHOWN}",
        f"    steps: {steps}",
    ]
    assert (failure.value.findings, failure.value.directory) == (failures, directory)
    assert [each.name for each in directory.iterdir()] == ["report.json"]
    assert json.loads((directory / "report.json").read_text()) == [2, "s 1", 5]


@pytest.mark.parametrize(("outcome", "error", "says"), [
    ({"is_lost": True}, ConnectFailed, "the conversation with the server ended: a note"),
    ({"is_away": True}, ConnectFailed, "the conversation with the server ended: a note"),
    ({"unjudged": "no time"}, NothingJudged, "nothing was judged: no time"),
])  # fmt: skip
async def test_fuzz_server_whose_run_shows_nothing_raises(
    tmp_path: Path,
    play: Callable[[MadeUpCampaign], None],
    outcome: Any,
    error: type[Exception],
    says: str,
) -> None:
    play(MadeUpCampaign([finding("RPC-8", is_failure=False)], **outcome))
    with pytest.raises(error, match=f"^{says}$"):
        await fuzz_server(URL, tmp_path / "a")


async def test_fuzz_server_warns_of_what_is_ignored_in_vain(
    tmp_path: Path, play: Callable[[MadeUpCampaign], None]
) -> None:
    run = MadeUpCampaign(ignored={"RPC-7": 0, "RPC-8": 2})
    play(run)
    with pytest.warns(UserWarning) as warned:  # noqa: PT030 - compared below
        await fuzz_server(URL, tmp_path / "a", ignore=["RPC-7", "RPC-8"])
    assert [str(each.message) for each in warned] == ["no finding is ignored by RPC-7"]
    assert len(run.begun[3].ignored) == 2


async def test_fuzz_server_reads_a_baseline_in_the_directory_that_it_removes(
    tmp_path: Path, play: Callable[[MadeUpCampaign], None]
) -> None:
    directory = tmp_path / "a"
    directory.mkdir()
    report = {"version": 2, "seed": 1, "server": "s 1", "findings": []}
    (directory / "report.json").write_text(json.dumps(report))
    play(MadeUpCampaign())
    await fuzz_server(URL, directory, baseline=directory / "report.json")
    assert not directory.exists()
    (tmp_path / "b").write_text("{}")
    with pytest.raises(ValueError, match=rf"^the baseline {tmp_path}/b: "):
        await fuzz_server(URL, directory, baseline=tmp_path / "b")


@pytest.mark.parametrize(("target", "options", "error", "says"), [
    (URL, {"ignore": "RPC-7"}, TypeError, "a list of rows, not one text"),
    (URL, {"allow": ["none", "a"]}, ValueError, "the server has no tool named a, none"),
    ("http://h.example/mcp", {}, ValueError, "on another machine"),
    (7, {}, TypeError, "needs a command or a URL, not int"),
    (URL, {"ignore": ["no-such-row"]}, ValueError, "no-such-row"),
])  # fmt: skip
async def test_fuzz_server_refuses_what_cannot_be_fuzzed(
    tmp_path: Path,
    play: Callable[[MadeUpCampaign], None],
    target: Any,
    options: Any,
    error: type[Exception],
    says: str,
) -> None:
    play(MadeUpCampaign())
    with pytest.raises(error, match=says):
        await fuzz_server(target, tmp_path / "a", **options)
