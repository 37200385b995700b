"""The fuzzer against the server broken on purpose: each fault is found, named and made small.

A sample is in the run with processes, all faults with ten seeds in the slow one.
"""

from __future__ import annotations

import json
import subprocess
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import pytest
import trio

from mcp_core.trace import Judge, Redactor, read_trace
from mcp_trio.oracle.fuzz import _report
from mcp_trio.oracle.fuzz._http import UrlTarget
from mcp_trio.oracle.fuzz._probe import may_call_by_hint, probe
from mcp_trio.oracle.fuzz._stdio import CommandTarget
from mcp_trio.oracle.fuzz.campaign._campaign import Campaign, CampaignOptions
from mcp_trio.oracle.fuzz.campaign._findings import FuzzFinding
from mcp_trio.oracle.fuzz.draw._cases import CaseSource
from mcp_trio.oracle.fuzz.draw._choices import CaseChoices
from mcp_trio.testing import find_faults
from tests.fuzz_targets.faults import FAULTS
from tests.harness.world.threaded_http import threaded_http_server

from .targets import BROKEN, small_server

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.timeout(150)

MAX_MESSAGES = 6
SEEDS = range(10)
SAMPLE = (
    "double-response",
    pytest.param("id-as-number", marks=pytest.mark.slow),
    "answers-notifications",
    "serves-before-initialize",
    pytest.param("progress-goes-back", marks=pytest.mark.slow),
    "repeats-cursor",
    pytest.param("circle-of-cursors", marks=pytest.mark.slow),
    pytest.param("tool-on-two-pages", marks=pytest.mark.slow),
    pytest.param("serves-other-version", marks=pytest.mark.slow),
    pytest.param("serves-wrong-arguments", marks=pytest.mark.slow),
    pytest.param("ignores-end-of-input", marks=pytest.mark.slow),
    pytest.param("tool-stops", marks=pytest.mark.slow),
    "no-result-type",
    pytest.param("late-acknowledgement", marks=pytest.mark.slow),
)
HTTP_SAMPLE = (
    "ignores-mcp-name",
    "ignores-mcp-param",
    "serves-foreign-origin",
    "accepts-unknown-session",
)
# More messages than six are needed: a handshake, several tasks, and requests about each.
LONGER = {
    "task-key-reused": 20,
    "guessable-task-ids": 12,
    "cancelled-task-completes": 9,
    "circle-of-cursors": 20,
    "tool-on-two-pages": 20,
    "tool-stops": 20,
}


def command(fault: str, *words: str) -> list[str]:
    return [*BROKEN, *(("--fault", fault) if fault else ()), *words]


def played(target: Any, seed: int, cases: int, rows: frozenset[str]) -> Campaign:
    """Return a run until a fault of `rows` is found, or `cases` were played."""

    async def run() -> Campaign:
        campaign: Campaign | None = None
        async with trio.open_nursery() as nursery:
            played = (
                UrlTarget(target, nursery)
                if isinstance(target, str)
                else CommandTarget(target, nursery)
            )
            offers = await probe(played)
            names = [str(each["name"]) for each in offers.tools if may_call_by_hint(each)]
            choices = CaseChoices(offers, names, http=isinstance(target, str))

            def found(finding: FuzzFinding) -> None:
                if finding.fault.row in rows and finding.is_solid:
                    scope.cancel()

            campaign = Campaign(
                played,
                CaseSource(choices, seed),
                choices,
                # Each play of a tool that stops takes all the time of a call, and `count` may take
                # four seconds.
                CampaignOptions(seconds=120, cases=cases, call_timeout=5.0),
                on_finding=found,
            )
            with trio.CancelScope() as scope:
                await campaign.run()
            nursery.cancel_scope.cancel()
        assert campaign is not None
        return campaign

    return trio.run(run)


def found_in(campaign: Campaign, fault: str) -> FuzzFinding | None:
    rows = FAULTS[fault].rows
    return next((each for each in campaign.findings if each.fault.row in rows), None)


def assert_check_finds(finding: FuzzFinding) -> None:
    """The written trace shows the finding, and no fault of the fuzzer."""
    header, lines = read_trace([_report._trace(finding, "server", Redactor(b"x" * 32))])
    judge = Judge(header)
    found = [each for number, line in lines for each in judge.receive(line, number)]
    found += judge.close()
    verdicts = {each.is_certain for each in found if each.row == finding.fault.row}
    assert verdicts == {not finding.fault.is_advice}
    assert {each.side for each in found} == {"server"}


@contextmanager
def serving(fault: str) -> Iterator[str]:
    """Serve over HTTP, and return the URL."""
    process = subprocess.Popen(
        command(fault, "--http"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def served(request: pytest.FixtureRequest) -> Iterator[str]:
    with serving(request.param) as url:
        yield url


@pytest.mark.parametrize("fault", SAMPLE)
def test_fault_is_found_with_its_row(fault: str) -> None:
    campaign = played(command(fault), 1, FAULTS[fault].within, frozenset(FAULTS[fault].rows))
    finding = found_in(campaign, fault)
    assert finding is not None, [each.fault for each in campaign.findings]
    assert finding.messages <= LONGER.get(fault, MAX_MESSAGES), finding.case
    assert_check_finds(finding)


@pytest.mark.parametrize(
    ("served", "fault"), [(each, each) for each in HTTP_SAMPLE], indirect=["served"]
)
def test_fault_over_http_is_found_with_its_row(served: str, fault: str) -> None:
    campaign = played(served, 1, FAULTS[fault].within, frozenset(FAULTS[fault].rows))
    finding = found_in(campaign, fault)
    assert finding is not None, [each.fault for each in campaign.findings]
    assert finding.messages <= LONGER.get(fault, MAX_MESSAGES), finding.case
    assert_check_finds(finding)


@pytest.mark.parametrize(
    ("cases", "rows"), [(60, 80), pytest.param(200, 100, marks=pytest.mark.slow)]
)
def test_clean_server_has_no_finding(cases: int, rows: int) -> None:
    campaign = played(command(""), 1, cases, frozenset())
    assert [each.fault for each in campaign.findings] == []
    assert campaign.cases == cases
    assert campaign.rows_seen() > rows


@pytest.mark.parametrize("cases", [50, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("served", [""], indirect=True)
def test_clean_server_over_http_has_no_finding(served: str, cases: int) -> None:
    campaign = played(served, 1, cases, frozenset())
    assert [each.fault for each in campaign.findings] == []


def test_stored_case_finds_its_fault_again() -> None:
    steps = [
        ("open", "2025-11-25", "whole", "all"),
        ("request", "tools/list", {}, "int"),
    ]
    assert "RPC-7" in find_faults(command("double-response"), steps)
    assert find_faults(command(""), steps) == {}


def test_result_before_initialize_is_found_in_a_process_that_starts_slowly() -> None:
    early = "if method == 'tools/list': send(id, result={'tools': []}); continue"
    slow = small_server("time.sleep(0.6)", early)
    assert "LIFE-10" in find_faults(slow, [("open", "2025-11-25", "late", "all")])


def test_result_after_initialize_is_no_early_result() -> None:
    held = """
    if method == 'tools/list':
        held = id
        continue
    if method == 'notifications/initialized':
        send(held, result={'tools': []})"""
    steps = [("open", "2025-11-25", "late", "all"), ("wait",)]
    assert "LIFE-10" not in find_faults(small_server(on_message=held), steps)


class NoSession(BaseHTTPRequestHandler):
    """Serves `tools/list` at any time, and gives no session."""

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "small", "version": "1"},
            },
            "tools/list": {"tools": []},
        }
        result = results.get(message["method"], {})
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": result}).encode()
        self.send_response(200 if "id" in message else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body) if "id" in message else 0))
        self.end_headers()
        if "id" in message:
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def test_server_without_sessions_may_serve_before_initialize() -> None:
    with threaded_http_server(NoSession) as url:
        assert find_faults(f"{url}/mcp", [("open", "2025-11-25", "late", "all")]) == {}


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("fault", [name for name, each in FAULTS.items() if each.within])
def test_fault_is_found_and_made_small_with_nine_of_ten_seeds(fault: str) -> None:
    rows, within = frozenset(FAULTS[fault].rows), FAULTS[fault].within
    found = []
    for seed in SEEDS:
        if "stdio" in FAULTS[fault].transports:
            campaign = played(command(fault), seed, within, rows)
        else:
            with serving(fault) as url:
                campaign = played(url, seed, within, rows)
        found.append(found_in(campaign, fault))
    sizes = [each.messages for each in found if each is not None]
    assert len(sizes) >= 9
    assert sum(size <= LONGER.get(fault, MAX_MESSAGES) for size in sizes) >= 9, sizes


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("seed", range(4))
def test_clean_server_has_no_finding_in_thousands_of_cases(seed: int) -> None:
    campaign = played(command(""), seed, 5_000, frozenset())
    assert [each.fault for each in campaign.findings] == []
