"""The official suite's traffic, recorded by our proxy and judged, in both roles.

The suite passes through the proxy as it does without: a proxy that changed something would fail.
`judged_traces.py` says what must hold of the traces. The scenarios of authorization can't be played
here: a client rejects the metadata of a resource at another URL than its own (RFC 9728, 3.3), and
the proxy has another URL than the suite's server. `test_official_suite.py` records them in the
client, and all the others, too.
"""

from __future__ import annotations

import shlex
import signal
import sys
from datetime import datetime
from typing import TYPE_CHECKING, Final

import pytest

from mcp_core.trace import ROWS, TraceHeader, TraceLine, encode_header, encode_line
from tests.conformance import proxied_client
from tests.conformance.judged_traces import (
    FAULTS,
    POSSIBLE,
    SILENT,
    check_scenario,
    judge_file,
    scenarios_in,
    split,
)
from tests.conformance.process import everything_at
from tests.conformance.proxied_client import proxy_of
from tests.conformance.test_official_suite import (
    AUTH,
    AUTH_OPTIONAL,
    CLIENT,
    OPTIONAL,
    REQUIRED,
    SERVER,
    TASKS,
    D,
    E,
    checks_in,
    failures_in,
    run,
    successes_in,
)

if TYPE_CHECKING:
    from pathlib import Path


# Scenarios of our client that depend most on the proxy: streams that break off, headers and states
# that it has to pass. The others are `slow`: `test_official_suite.py` plays them without the proxy.
PROXIED: Final = {
    (D, "tools_call"),
    (D, "sse-retry"),
    (E, "tools_call"),
    (E, "http-custom-headers"),
    (E, "sep-2322-client-request-state"),
}


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
    begins = scenarios_in(place)
    assert begins.keys() >= {*REQUIRED[version][0], *OPTIONAL[version]}, done.stdout + done.stderr
    assert {name: failures_in(checks) for name, checks in found if failures_in(checks)} == {}
    assert sum(successes_in(checks) for _, checks in found) > (75 if version == D else 180)
    judged = judge_file(trace)
    assert judged.header.observer == "between"
    parts = split(judged, trace, begins, "client", version)
    assert [
        problem
        for name, part in parts.items()
        for problem in check_scenario(part, "client", version, name)
    ] == []
    known = {name for side, each, name in FAULTS if (side, each) == ("client", version)}
    assert known <= parts.keys()
    # The judge that was there has found the same.
    status = 1 if judged.certain else 128 + signal.SIGTERM
    assert proxy.returncode == status
    live = trace.with_suffix(".txt").read_text()
    assert f"{judged.messages.total()} messages: {len(judged.certain)} failed" in live


@pytest.mark.parametrize(
    ("version", "scenario"),
    [pytest.param(*each, marks=() if each in PROXIED else pytest.mark.slow) for each in CLIENT],
)
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
    assert judged.messages.total() >= 3
    assert check_scenario(judged, "server", version, scenario) == []


# -- What is expected ------------------------------------------------------------------------------


def test_faults_are_of_rows_and_scenarios_that_exist() -> None:
    servers = {*SERVER, *((E, f"tasks-{name}") for name in TASKS)}
    logins = {(version, f"auth/{name}") for version in AUTH for name in AUTH[version]}
    clients = {*CLIENT, *logins, *(("", f"auth/{name}") for name in AUTH_OPTIONAL)}
    for side, version, scenario in (*FAULTS, *POSSIBLE, *SILENT):
        assert (version, scenario) in (servers if side == "client" else clients)
    for rows in (*FAULTS.values(), *POSSIBLE.values()):
        assert rows.keys() <= ROWS.keys()
        assert all(rows.values())


PING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'
PONG = '{"jsonrpc":"2.0","id":1,"result":{}}'
PEER = '"protocolVersion":"2025-11-25","capabilities":{}'
INFO = '{"name":"a","version":"1"}'
OPENING = [
    (
        0.5,
        "client",
        f'{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{{PEER},"clientInfo":{INFO}}}}}',
    ),
    (0.5, "server", f'{{"jsonrpc":"2.0","id":0,"result":{{{PEER},"serverInfo":{INFO}}}}}'),
    (0.6, "client", '{"jsonrpc":"2.0","method":"notifications/initialized"}'),
]
ASKED = [("client", PING), ("server", PONG)]
BEGAN = "2026-11-29T12:00:00.500000Z"
# `ping`, then `tools-list` from 12:00:02 on.
FOLDERS = ("server-ping-2026-11-29T12-00-01-000Z", "server-tools-list-2026-11-29T12-00-02-000Z")


@pytest.mark.parametrize(
    ("lines", "problems"),
    [
        ([(0.6, "client", PING), (0.7, "server", PONG)], {"tools-list": "has sent no message"}),
        (
            [(0.6, "client", PING), (0.7, "server", PONG), (1.6, "client", PING)],
            {"tools-list": "the suite breaks RPC-4"},
        ),
        (
            [(0.6, "client", PING), (0.7, "server", PONG), (1.6, "server", PONG)],
            {"tools-list": "our server breaks RPC-7"},
        ),
    ],
)
def test_scenario_without_a_message_or_with_a_finding_has_a_problem(
    tmp_path: Path, lines: list[tuple[float, str, str]], problems: dict[str, str]
) -> None:
    """Each finding belongs to the scenario that was played when its message was sent."""
    header = TraceHeader(format_version=1, at=BEGAN, observer="between", transport="stdio")
    path = tmp_path / "trace.mcp.jsonl"
    path.write_bytes(
        encode_header(header)
        + b"".join(
            encode_line(TraceLine(t=t, sender=who, raw=raw))  # type: ignore[arg-type]
            for t, who, raw in OPENING + lines
        )
    )
    for each in FOLDERS:
        (tmp_path / "results" / each).mkdir(parents=True)
    parts = split(judge_file(path), path, scenarios_in(tmp_path / "results"), "client", D)
    assert list(parts) == ["ping", "tools-list"]
    found = {name: check_scenario(part, "client", D, name) for name, part in parts.items()}
    for name, sentence in problems.items():
        assert any(sentence in each for each in found[name]), found
    assert found["ping"] == []


def test_exchange_at_the_time_between_two_scenarios_is_of_the_one_that_lacks_it(
    tmp_path: Path,
) -> None:
    """The suite's clock was 10 ms ahead, so that a short scenario seemed to have no message."""
    header = TraceHeader(format_version=1, at=BEGAN, observer="between", transport="stdio")
    path = tmp_path / "trace.mcp.jsonl"
    exchanges = [(t, who, raw) for t in (1.51, 2.5) for who, raw in ASKED]
    path.write_bytes(
        encode_header(header)
        + b"".join(
            encode_line(TraceLine(t=t, sender=who, raw=raw))  # type: ignore[arg-type]
            for t, who, raw in OPENING + exchanges
        )
    )
    began = datetime.fromisoformat(BEGAN).timestamp()
    begins = {"first": began, "short": began + 1.4, "next": began + 1.5}
    parts = split(judge_file(path), path, begins, "client", D)
    assert [sorted(each.messages) for each in parts.values()] == [["client", "server"]] * 3


def test_fault_that_the_suite_has_repaired_is_a_problem(tmp_path: Path) -> None:
    header = TraceHeader(format_version=1, at=BEGAN, observer="between", transport="stdio")
    path = tmp_path / "trace.mcp.jsonl"
    path.write_bytes(
        encode_header(header) + encode_line(TraceLine(t=1.0, sender="server", raw=PONG))
    )
    found = check_scenario(judge_file(path), "client", D, "server-sse-polling")
    assert any("the suite keeps SHL-8, which FAULTS has" in each for each in found)
