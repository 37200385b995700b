"""The benchmarks still run and print what they promise.

No test depends on a time, so a busy machine causes no failure.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.compare import ROWS
from benchmarks.peers.prepare import ENVIRONMENTS
from benchmarks.targets import Programs
from tests.harness.world.waiting import PATIENCE

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SLOW = [pytest.mark.slow, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    ("script", "options", "promised"),
    [
        (
            "bench_core.py",
            ["--rounds", "3", "--calls", "5"],
            {
                "calls_per_s",
                "floor_per_s",
                "ratio",
                "legacy_calls_per_s",
                "legacy_floor_per_s",
                "legacy_ratio",
            },
        ),
        (
            "bench_load.py",
            ["--rounds", "1", "--seconds", "0.05"],
            {
                f"{kind}_{callers}_{figure}"
                for kind in ("http", "stdio")
                for callers in (1, 16)
                for figure in ("lean", "bare", "ratio")
            },
        ),
        pytest.param(
            "bench_wrk.py",
            [
                *("--rounds", "1", "--seconds", "0.05", "--targets", "ours"),
                *("--only", "engine", "trio", "asyncio", "selectors", "blocking"),
            ],
            {
                f"ours_{way}_{figure}"
                for way in ("1_engine", "16_engine", "1_trio", "1_asyncio", "1_blocking")
                for figure in ("rate", "p50", "p99", "cpu")
            },
            marks=SLOW,
        ),
        pytest.param(
            "bench_wrk.py",
            ["--rounds", "1", "--seconds", "1", "--targets", "ours", "--only", "wrk", "engine"],
            {f"ours_{n}_{way}_ratio" for n in (1, 16) for way in ("wrk", "engine")},
            marks=[
                *SLOW,
                pytest.mark.skipif(shutil.which("wrk") is None, reason="needs wrk"),
            ],
        ),
        pytest.param(
            "bench_versions.py",
            [str(BENCHMARKS.parent), "--turns", "2", "--only", "import", "post"],
            {
                f"{kind}_{figure}"
                for kind in ("import", "post")
                for figure in ("old", "new", "ratio")
            },
            marks=pytest.mark.timeout(120),  # twelve processes
        ),
        pytest.param(
            "bench_startup.py",
            ["--rounds", "1"],
            {"ours_ms", "sdk_ms", "bare_python_ms", "ratio"},
            marks=SLOW,
        ),
        (
            "bench_http2.py",
            ["--rounds", "1", "--calls", "60"],
            {f"{where}_{p}" for where in ("alone", "beside", "apart") for p in ("p50", "p99")},
        ),
        (
            "bench_path.py",
            [],
            {
                f"{path}_{figure}"
                for path in ("http", "asgi", "stdio", "client")
                for figure in ("calls", "files")
            },
        ),
        (
            "bench_judge.py",
            ["--messages", "300", "--mib", "0.1", "--rounds", "1"],
            {"messages_per_second", "checked_per_second", "peak_mib", "first_tenth_mib", "goal"},
        ),
        pytest.param(
            "bench_fuzz.py",
            ["--cases", "4"],
            {
                f"{figure}{kind}"
                for kind in ("modern", "legacy", "http")
                for figure in ("", "later_", "ms_", "target_ms_", "starts_", "findings_")
            },
            marks=SLOW,
        ),
        pytest.param(
            "bench_fuzz.py",
            ["--cases", "4", "--", sys.executable, str(BENCHMARKS / "server.py"), "stdio"],
            {f"{figure}command" for figure in ("", "later_", "ms_", "target_ms_", "starts_")},
            marks=SLOW,
        ),
        (
            "bench_proxy.py",
            ["--rounds", "1", "--calls", "5"],
            {
                f"{carrier}_{way}_{figure}"
                for carrier in ("stdio", "http")
                for way in ("direct", "proxy", "record", "check")
                for figure in ("p50", "p99", "added")
            }
            - {"stdio_direct_added", "http_direct_added"},
        ),
        (
            "bench_tasks.py",
            ["--rounds", "1", "--creates", "128", "--records", "100", "--calls", "20"],
            {
                "sqlite_creates_per_s",
                "sqlite_floor_per_s",
                "sqlite_ratio",
                "sqlite_single_creates_per_s",
                "sqlite_get_us",
                *(f"upkeep_{step}_ms" for step in ("renew_lease", "remove_expired", "lost")),
                "memory_creates_per_s",
                "memory_bytes_per_record",
                "sqlite_bytes_per_record",
                "create_ratio_2025-11-25",
                "create_ratio_2026-07-28",
                "state_ratio_2025-11-25",
                "state_ratio_2026-07-28",
                "open_task_bytes",
            },
        ),
        pytest.param(
            "bench_bus.py",
            ["--rounds", "1", "--messages", "5"],
            {
                "message_ratio",
                *(f"{n}_{p}_us" for n in ("message", "bare", "change") for p in ("p50", "p99")),
            },
            marks=[
                *SLOW,
                pytest.mark.skipif(
                    shutil.which("redis-server") is None, reason="needs redis-server"
                ),
            ],
        ),
        pytest.param(
            "bench_redis_tasks.py",
            ["--rounds", "1", "--creates", "64"],
            {f"redis_{figure}_{number}" for figure in ("create_us", "ratio") for number in (1, 64)},
            marks=pytest.mark.skipif(
                shutil.which("redis-server") is None, reason="needs redis-server"
            ),
        ),
        (
            "bench_recording.py",
            ["--rounds", "1", "--messages", "200", "--calls", "20"],
            {
                *(
                    f"{kind}_{what}{suffix}"
                    for kind in ("call", "ten_kb", "task", "http")
                    for what in ("caller", "total")
                    for suffix in ("", "_unredacted")
                ),
                "p50_plain",
                "p50_recorded",
            },
        ),
        pytest.param(
            "bench_host.py",
            [
                *("--rounds", "1", "--servers", "2", "--sleep", "0.05"),
                *("--many", "3", "--tools", "4", "--calls", "5"),
            ],
            {
                *(f"sleeper{e}_s" for e in ("s", "s_best", "_alone")),
                *(f"servers_{e}_s" for e in ("alone", "processor", "bound", "first_sight")),
                *("servers_s", "servers_ratio", "servers_best_ratio"),
                *("many_open_s", "many_merged_ms", "many_changed_ms", "many_listed_us"),
                *(f"call_{way}_ratio" for way in ("memory", "stdio")),
                *(
                    f"call_{way}_{who}{figure}"
                    for way in ("memory", "stdio")
                    for who in ("", "client_")
                    for figure in ("us", "steps", "frames")
                ),
            },
            marks=[*SLOW, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")],
        ),
    ],
)
def test_benchmark_last_line_is_json_with_all_figures(
    script: str, options: list[str], promised: set[str]
) -> None:
    argv = [sys.executable, str(BENCHMARKS / script), *options]
    output = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=100).stdout
    figures = json.loads(output.splitlines()[-1])
    assert promised <= figures.keys()
    # What a part adds is a difference of two medians: of a few calls it can be negative.
    measured = {name: value for name, value in figures.items() if not name.endswith("_added")}
    assert all(value > 0 or name.startswith("findings_") for name, value in measured.items())


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(300)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_compare_measures_each_row_for_each_target(tmp_path: Path) -> None:
    """All rows by tiny numbers: ours, the SDK that this Python has, and the floors."""
    file = tmp_path / "compared.json"
    argv = [sys.executable, str(BENCHMARKS / "compare.py"), "--output", str(file)]
    argv += ["--rounds", "1", "--seconds", "0.05", "--events", "20", "--sessions", "20"]
    argv += ["--warm-up", "0.05"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=280)
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures == json.loads(file.read_text("utf-8"))
    here = Programs(None).names()
    assert {"ours", "mcp", "inline", "h11"} <= set(here)
    for key, row in ROWS.items():
        taking = {name for name in here if row.takes(name)}
        for measure, found in figures["rows"][key]["measures"].items():
            # A processor time may be too short to be measured.
            absent = taking - found["figures"].keys()
            assert not absent or measure == "import" or measure.endswith("cpu"), (key, measure)
            assert all(value > 0 for value in found["figures"].values())


@pytest.mark.interop
@pytest.mark.skipif(sys.platform == "win32", reason="writes a script of the shell")
def test_compare_names_target_that_fails_and_goes_on(tmp_path: Path) -> None:
    """The Python of a peer starts no server; it only says which versions it has."""
    (tmp_path / "mcp" / "bin").mkdir(parents=True)
    packages = json.dumps(ENVIRONMENTS["mcp"].packages)
    (tmp_path / "mcp" / "packages.json").write_text(packages, "utf-8")
    program = tmp_path / "mcp" / "bin" / "python"
    program.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exec {sys.executable} "$@"\nexit 3\n', "utf-8")
    program.chmod(0o755)
    argv = [sys.executable, str(BENCHMARKS / "compare.py"), "--peers", str(tmp_path)]
    argv += ["--only", "stdio_sequential", "--targets", "ours", "mcp"]
    argv += ["--rounds", "1", "--seconds", "0.02", "--warm-up", "0.02"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert "one by one: mcp: " in done.stderr
    assert "exit status 3" in done.stderr
    assert "| stdio, 100 B, one by one | mcp-trio | ours / mcp |" in done.stdout


def test_compare_without_an_environment_says_how_to_make_it(tmp_path: Path) -> None:
    argv = [sys.executable, str(BENCHMARKS / "compare.py"), "--peers", str(tmp_path)]
    argv += ["--targets", "ours", "ts1"]
    done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 2
    assert "ts1: not here; see --peers and peers/prepare.py" in done.stderr


VICTIMS = ["ours", pytest.param("mcp", marks=pytest.mark.interop)]


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("peer", VICTIMS)
def test_hostile_last_line_is_json_with_all_figures(peer: str) -> None:
    """A thousandth of each attack gives all figures, and honest clients are served meanwhile."""
    argv = [sys.executable, str(BENCHMARKS / "hostile.py"), "--peer", peer]
    argv += ["--scale", "0.001", "--patience", "3"]
    output = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=100).stdout
    figures = json.loads(output.splitlines()[-1])
    client = ("descriptors", "memory", "seconds", "outcome")
    server = ("memory", "growth", "honest_served", "honest_failed", "honest_p50", "outcome")
    for attack in ("pings", "pings_accepted", "pages"):
        assert {f"{attack}_{figure}" for figure in client} <= figures.keys()
    for attack in ("bodies", "trickle", "sessions"):
        assert {f"{attack}_{figure}" for figure in server} <= figures.keys()
        assert figures[f"{attack}_honest_failed"] == 0
    assert figures["pings_accepted_outcome"] == figures["pages_outcome"] == "answered"
    assert figures["bodies_outcome"] == "0 of 1 refused"
    assert figures["trickle_outcome"] == "open after 18 s"
    assert figures["sessions_outcome"] == "12 opened; refused: none"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_hostile_small_attacks_are_measured() -> None:
    argv = [sys.executable, str(BENCHMARKS / "hostile.py"), "--scale", "0.001"]
    argv += ["--only", "pings_accepted", "bodies"]
    output = subprocess.run(
        argv, check=True, capture_output=True, text=True, timeout=PATIENCE
    ).stdout
    figures = json.loads(output.splitlines()[-1])
    assert figures["pings_accepted_outcome"] == "answered"
    assert figures["bodies_outcome"] == "0 of 1 refused"
    assert figures["bodies_memory"] > figures["bodies_growth"] >= 0
