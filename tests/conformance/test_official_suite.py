"""The official conformance suite (`@modelcontextprotocol/conformance`) against our server and
client.

Rules of this file:

1. No check may fail or warn, and a scenario without checks has failed.
2. The tables name the scenarios, so that a missing one is noticed even without the suite. A test
   compares them with what the suite requires. Of its other scenarios only the task extension's
   are played, with `--force`.
3. One server process plays all scenarios, one revision after the other; a second one responds with
   streams only, which some checks are about; a third is a pair mounted in another; a fourth is
   reached over HTTP/2, through a bridge. Others share a store with workers that there could be.
   All but the second are `slow`: the first plays the same scenarios in `test_recorded_suite.py`.
4. The client records each scenario, and the trace is judged: see `judged_traces.py`.

`tests/conformance/conftest.py` finds the suite.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.conformance import everything_client
from tests.conformance.judged_traces import check_scenario, judge_file
from tests.conformance.process import bridged, everything_at
from tests.harness.redis_server import RedisServer

if TYPE_CHECKING:
    from collections.abc import Iterator

    Checks = list[dict[str, Any]]

D, E = "2025-11-25", "2026-07-28"

BOTH: Final = """
    completion-complete tools-list tools-call-simple-text tools-call-image tools-call-audio
    tools-call-embedded-resource tools-call-mixed-content tools-call-error tools-call-with-progress
    server-sse-multiple-streams resources-list resources-read-text resources-read-binary
    resources-templates-read prompts-list prompts-get-simple prompts-get-with-args
    prompts-get-embedded-resource prompts-get-with-image dns-rebinding-protection
""".split()
# The scenarios that a revision requires of servers, and the minimum of successful checks: the
# number of other servers.
REQUIRED: Final = {
    D: (
        BOTH
        + """
        server-initialize logging-set-level ping tools-call-with-logging tools-call-sampling
        tools-call-elicitation elicitation-sep1034-defaults elicitation-sep1330-enums
        resources-subscribe resources-unsubscribe
        """.split(),
        70,
    ),
    E: (
        BOTH
        + ["server-stateless", "sep-2164-resource-not-found", "caching"]
        + [
            f"input-required-result-{name}"
            for name in """
            basic-elicitation basic-sampling basic-list-roots request-state multiple-input-requests
            multi-round missing-input-response non-tool-request result-type unsupported-methods
            tampered-state capability-check ignore-extra-params validate-input
            """.split()
        ],
        120,
    ),
}
# Scenarios that the suite plays but does not require.
OPTIONAL: Final = {
    D: ["server-session-lifecycle", "server-sse-polling", "json-schema-2020-12"],
    E: ["json-schema-2020-12", "http-header-validation", "http-custom-header-server-validation"],
}
SERVER: Final = [
    (version, name) for version in (D, E) for name in REQUIRED[version][0] + OPTIONAL[version]
]

# Client scenarios, and how many checks succeed: an operation that a client omits is not checked at
# all.
CLIENT: Final = {
    (D, "initialize"): 1,
    (D, "tools_call"): 2,
    (D, "elicitation-sep1034-client-defaults"): 5,
    (D, "sse-retry"): 3,
    (D, "json-schema-2020-12-preservation"): 9,
    (E, "tools_call"): 2,
    (E, "request-metadata"): 8,
    (E, "http-standard-headers"): 9,
    (E, "http-custom-headers"): 18,
    (E, "http-invalid-tool-headers"): 12,
    (E, "json-schema-ref-no-deref"): 1,
    (E, "json-schema-2020-12-preservation"): 9,
    (E, "sep-2322-client-request-state"): 5,
}
CLIENT_OPTIONAL: Final = "json-schema-2020-12-preservation"

# Authorization scenarios that a revision requires, and optional ones: earlier revisions and
# extensions.
AUTH: Final = {
    D: """
        metadata-default metadata-var1 metadata-var2 metadata-var3 basic-cimd
        scope-from-www-authenticate scope-from-scopes-supported scope-omitted-when-undefined
        scope-step-up scope-retry-limit token-endpoint-auth-basic token-endpoint-auth-post
        token-endpoint-auth-none pre-registration
        """.split(),
}
AUTH[E] = [
    *AUTH[D],
    *"""
        resource-mismatch offline-access-scope offline-access-not-supported
        authorization-server-migration iss-supported iss-not-advertised iss-supported-missing
        iss-wrong-issuer iss-unexpected iss-normalized metadata-issuer-mismatch
        """.split(),
]
# Those that are played in both revisions. The others of 2025-11-25 are `slow`.
AUTH_OF_D: Final = {"metadata-default", "basic-cimd", "scope-step-up", "token-endpoint-auth-basic"}
AUTH_OPTIONAL: Final = """
    2025-03-26-oauth-metadata-backcompat 2025-03-26-oauth-endpoint-fallback client-credentials-jwt
    client-credentials-basic enterprise-managed-authorization dpop dpop-nonce wif-jwt-bearer
""".split()

# Scenarios of the extension for tasks, and how many checks each has.
TASKS: Final = {
    "lifecycle": 9,
    "capability-negotiation": 5,
    "wire-fields": 4,
    "request-state-removal": 3,
    "mrtr-input": 4,
    "request-headers": 5,
    "dispatch-and-envelope": 9,
    "required-task-error": 3,
    "mrtr-composition": 2,
    "status-notifications": 0,
}
# How the server of these scenarios is served.
TASK_SERVERS: Final = {
    "HTTP/1.1": (),
    "event streams": ("--reply", "sse"),
    "HTTP/2": (),
    "mounted": ("--mounted",),
    "SQLite": ("--tasks", "FILE"),
    "uvicorn": ("--runtime", "asyncio"),
    "uvicorn with SQLite": ("--runtime", "asyncio", "--tasks", "FILE"),
}

# Further options of the server that plays all scenarios, by its name in the fixture `server`.
OPTIONS: Final = {
    "sse": ("--reply", "sse"),
    "mounted": ("--mounted",),
    "memory": ("--store", "memory"),
    "redis on uvicorn": ("--runtime", "asyncio"),
}

_RESULT: Final = re.compile(r"(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z")  # the name of a directory
_TIMEOUT: Final = 300.0  # seconds for a set of scenarios on a busy machine


@pytest.fixture(
    scope="module",
    params=[
        "sse",
        *(
            pytest.param(how, marks=pytest.mark.slow)
            for how in ("auto", "mounted", "http2", "memory", "redis", "redis on uvicorn")
        ),
    ],
)
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The URL of the everything server."""
    place = tmp_path_factory.mktemp("server")
    how = request.param
    with ExitStack() as stack:
        options = list(OPTIONS.get(how, ()))
        if how.startswith("redis"):
            redis = RedisServer(place, "redis-server", "--appendonly", "yes")
            options += ["--store", stack.enter_context(redis).url]
        url = stack.enter_context(everything_at(place / "stderr.txt", *options))
        yield stack.enter_context(bridged(url, place / "bridge.txt")) if how == "http2" else url


@pytest.fixture(scope="module")
def played(
    suite: list[str], server: str, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Checks]:
    """The checks of the suite on the server, by revision and scenario."""
    found = {}
    for version in D, E:
        place = tmp_path_factory.mktemp(version)
        run(suite, "server", "--url", server, "--requirements", version, "--output-dir", str(place))
        for name, checks in checks_in(place):
            found[version, name.removeprefix("server-")] = checks
    return found


@pytest.fixture
def trace(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file in which the client records its conversation."""
    path = tmp_path_factory.mktemp("trace") / "client.mcp.jsonl"
    monkeypatch.setenv("MCP_TRIO_TRACE", str(path))
    return path


@pytest.mark.parametrize(("version", "scenario"), SERVER)
def test_official_suite_server_scenario_passes(
    played: dict[tuple[str, str], Checks], version: str, scenario: str
) -> None:
    checks = played[version, scenario]
    assert failures_in(checks) == []
    assert successes_in(checks) > 0


@pytest.mark.parametrize("server", ["sse"], indirect=True)
@pytest.mark.parametrize("version", [D, E])
def test_official_suite_server_checks_reach_minimum(
    played: dict[tuple[str, str], Checks], version: str
) -> None:
    required, least = REQUIRED[version]
    assert sum(successes_in(played[version, name]) for name in required) >= least


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, marks=pytest.mark.slow if how != "HTTP/1.1" else ())
        for how in TASK_SERVERS
    ],
)
def test_official_suite_task_scenarios_pass(suite: list[str], tmp_path: Path, how: str) -> None:
    """The scenarios are played side by side, since most of their time is waiting."""
    file = str(tmp_path / "tasks.db")
    options = [file if option == "FILE" else option for option in TASK_SERVERS[how]]
    with ExitStack() as stack:
        url = stack.enter_context(everything_at(tmp_path / "stderr.txt", *options))
        if how == "HTTP/2":
            url = stack.enter_context(bridged(url, tmp_path / "bridge.txt"))
        words = ["server", "--url", url, "--spec-version", E, "--force"]
        with ThreadPoolExecutor(4) as pool:
            for name in TASKS:
                place = str(tmp_path / name)
                pool.submit(
                    run, suite, *words, "--scenario", f"tasks-{name}", "--output-dir", place
                )
    for name, number in TASKS.items():
        ((_, checks),) = checks_in(tmp_path / name)
        assert failures_in(checks) == []
        assert successes_in(checks) == number


@pytest.mark.parametrize(("version", "scenario"), CLIENT)
def test_official_suite_client_scenario_passes(
    suite: list[str], trace: Path, tmp_path: Path, version: str, scenario: str
) -> None:
    command = shlex.join([sys.executable, everything_client.__file__])
    words = ("client", "--command", command, "--scenario", scenario, "--spec-version", version)
    done = run(suite, *words, "--output-dir", str(tmp_path))
    ((_, checks),) = checks_in(tmp_path)
    assert failures_in(checks) == []
    assert successes_in(checks) == CLIENT[version, scenario]
    assert done.returncode == 0, done.stdout + done.stderr  # includes the exit status of the client
    assert check_scenario(judge_file(trace), "server", version, scenario) == []


@pytest.mark.parametrize(
    ("version", "scenario"),
    [pytest.param(D, name, marks=() if name in AUTH_OF_D else pytest.mark.slow) for name in AUTH[D]]
    + [(E, name) for name in AUTH[E]]
    + [(None, name) for name in AUTH_OPTIONAL],
)
def test_official_suite_authorization_scenario_passes(
    suite: list[str], trace: Path, tmp_path: Path, version: str | None, scenario: str
) -> None:
    """The suite starts our client, and is its MCP server and its authorization server."""
    command = shlex.join([sys.executable, everything_client.__file__])
    words = [
        "client",
        "--command",
        command,
        "--scenario",
        f"auth/{scenario}",
        "--output-dir",
        str(tmp_path),
    ]
    if version is not None:
        words += ["--spec-version", version]
    done = run(suite, *words)
    ((_, checks),) = checks_in(tmp_path)
    assert failures_in(checks) == [], done.stderr
    assert successes_in(checks) > 0
    assert done.returncode == 0, done.stdout + done.stderr
    assert check_scenario(judge_file(trace), "server", version or "", f"auth/{scenario}") == []


@pytest.mark.parametrize("version", [D, E])
def test_official_suite_required_scenarios_are_all_played(suite: list[str], version: str) -> None:
    required = run(suite, "list", "--requirements", version).stdout.partition("Run and reported")[0]
    names = set(re.findall(r"  - (\S+)", required))
    ours = {name for each, name in CLIENT if each == version and name != CLIENT_OPTIONAL}
    assert names == ours.union(REQUIRED[version][0], (f"auth/{name}" for name in AUTH[version]))


@pytest.mark.process
def test_everything_client_unknown_scenario_fails() -> None:
    env = os.environ | {
        "MCP_CONFORMANCE_SCENARIO": "auth/dance",
        "MCP_CONFORMANCE_PROTOCOL_VERSION": E,
    }
    command = [sys.executable, everything_client.__file__, "http://127.0.0.1:9/mcp"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "auth/dance" in done.stderr


def run(suite: list[str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*suite, *words], capture_output=True, text=True, timeout=_TIMEOUT, check=False
    )


def checks_in(place: Path) -> list[tuple[str, Checks]]:
    """Return the checks by scenario, named as the suite writes them."""
    found = []
    for file in place.rglob("checks.json"):
        name = _RESULT.fullmatch(str(file.parent.relative_to(place)))
        assert name is not None, file
        found.append((name[1], json.loads(file.read_text())))
    return found


def failures_in(checks: Checks) -> list[str]:
    return [
        (
            f"{check['status']} {check['id']}: {check['description']}: {check.get('errorMessage')}"
            f" {check.get('details')}"
        )
        for check in checks
        if check["status"] in ("FAILURE", "WARNING")
    ]


def successes_in(checks: Checks) -> int:
    return sum(check["status"] == "SUCCESS" for check in checks)
