"""The traffic of the official conformance suite, recorded by our proxy and judged, in both roles.

1. The suite passes through the proxy as it does without: a proxy that changed something would fail.
2. Where the suite passes, our side of the trace has no finding that is certain. The suite's side
   has the ones in `FAULTS` and no others. Each is looked at by hand, and says why it is there.
3. Secrets are recorded, because they are the suite's. The judge also reads the traces as they are
   written by default: what is hidden may make a finding inconclusive, and never makes one.

The scenarios of authorization are left out: a client rejects the metadata of a resource at another
URL than its own (RFC 9728, 3.3), and the proxy has another URL than the suite's server.
"""

from __future__ import annotations

import shlex
import signal
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

import pytest

from mcp_core.trace import DamagedLine, Finding, Judge, Redactor, TraceHeader, TraceLine, read_trace
from tests.conformance import proxied_client
from tests.conformance.process import everything_at
from tests.conformance.proxied_client import proxy_of
from tests.conformance.test_official_suite import (
    CLIENT,
    OPTIONAL,
    REQUIRED,
    D,
    E,
    checks_in,
    failures_in,
    run,
    successes_in,
)

if TYPE_CHECKING:
    from pathlib import Path

# Rows that the suite breaks, by the side that it plays and the scenario; "" is all that a revision
# requires. On purpose, but for SHL-8.
FAULTS: Final[dict[str, dict[tuple[str, str], dict[str, str]]]] = {
    "client": {
        (D, ""): {"SHL-8": "server-sse-polling reconnects at once, whatever `retry` says"},
        (E, ""): {
            "META-6": "server-stateless leaves members of `_meta` out",
            "TOOL-14": "input-required-result-validate-input has responses that are no objects",
            "TX-13": "tasks-mrtr-input sends a response that is none of the three",
            "HDR-1": "http-header-validation and tasks-request-headers have a wrong `Mcp-Method`",
            "HDR-2": "http-header-validation has a wrong `Mcp-Name`",
        },
    },
    "server": {
        (E, "http-invalid-tool-headers"): {
            "HDR-12": "the scenario has tools with invalid `x-mcp-header`",
        },
        (E, "request-metadata"): {
            "ERR-7": "the server rejects a revision that it supports, to see the client try again",
        },
        (E, "sep-2322-client-request-state"): {
            "RPC-30": "the tool test_mrtr_no_result_type leaves `resultType` out",
        },
    },
}


class Judged(NamedTuple):
    """The certain findings in one trace, and the findings in the same trace without secrets."""

    header: TraceHeader
    messages: int
    certain: list[Finding]
    without_secrets: list[Finding]

    def broken_by(self, side: str) -> dict[str, list[str]]:
        """Return the sentences of a side's findings, by row."""
        found: dict[str, list[str]] = {}
        for each in self.certain:
            if each.side == side:
                found.setdefault(each.row, []).append(f"line {each.lines[0]}: {each.sentence}")
        return found


def judge_file(path: Path) -> Judged:
    header, lines = read_trace([path.read_bytes()])
    redactor = Redactor(b"key")
    plain, hidden = Judge(header), Judge(header)
    certain: list[Finding] = []
    without_secrets: list[Finding] = []
    for number, line in lines:
        assert isinstance(line, TraceLine), f"line {number}: {line}"
        certain += plain.receive(line, number)
        without_secrets += hidden.receive(redactor.redact_line(line), number)
    assert not isinstance(line, DamagedLine)
    return Judged(
        header,
        plain.messages,
        [each for each in certain + plain.close() if each.is_certain],
        [each for each in without_secrets + hidden.close() if each.is_certain],
    )


def check_findings(judged: Judged, suite_side: str, version: str, scenario: str = "") -> None:
    ours = "server" if suite_side == "client" else "client"
    assert judged.broken_by(ours) == {}
    expected = FAULTS[suite_side].get((version, scenario), {})
    found = judged.broken_by(suite_side)
    assert found.keys() == expected.keys(), found
    known = {(each.row, each.lines) for each in judged.certain}
    assert {(each.row, each.lines) for each in judged.without_secrets} <= known


@pytest.mark.parametrize("version", [D, E])
def test_official_suite_passes_through_the_proxy_to_our_server(
    suite: list[str], tmp_path: Path, version: str
) -> None:
    """The proxy changes nothing that the suite checks, and both judges agree about the trace."""
    trace = tmp_path / "trace.mcp.jsonl"
    place = tmp_path / "results"
    with (
        everything_at(tmp_path / "stderr.txt") as target,
        proxy_of(target, trace, "--check") as (proxy, url),
    ):
        words = ("server", "--url", url, "--requirements", version, "--output-dir", str(place))
        done = run(suite, *words)
    found = checks_in(place)
    played = {name.removeprefix("server-") for name, _ in found}
    assert played >= {*REQUIRED[version][0], *OPTIONAL[version]}, done.stdout + done.stderr
    assert {name: failures_in(checks) for name, checks in found if failures_in(checks)} == {}
    assert sum(successes_in(checks) for _, checks in found) > (75 if version == D else 180)
    judged = judge_file(trace)
    assert judged.header.observer == "between"
    assert judged.messages > 150
    check_findings(judged, "client", version)
    # The judge that was there has found the same.
    status = 1 if judged.certain else 128 + signal.SIGTERM
    assert proxy.returncode == status
    live = trace.with_suffix(".txt").read_text()
    assert f"{judged.messages} messages: {len(judged.certain)} failed" in live


@pytest.mark.parametrize(("version", "scenario"), CLIENT)
def test_official_suite_passes_through_the_proxy_to_our_client(
    suite: list[str],
    tmp_path: Path,
    version: str,
    scenario: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The proxy changes nothing that the suite checks. The judge knows the scenario's faults."""
    monkeypatch.setenv("MCP_TRIO_TRACES", str(tmp_path))
    command = shlex.join([sys.executable, proxied_client.__file__])
    words = ("client", "--command", command, "--scenario", scenario, "--spec-version", version)
    done = run(suite, *words, "--output-dir", str(tmp_path / "results"))
    assert done.returncode == 0, done.stdout + done.stderr
    ((_, checks),) = checks_in(tmp_path / "results")
    assert failures_in(checks) == []
    assert successes_in(checks) == CLIENT[version, scenario]
    (trace,) = tmp_path.glob("*.mcp.jsonl")
    judged = judge_file(trace)
    assert judged.messages >= 3
    check_findings(judged, "server", version, scenario)
