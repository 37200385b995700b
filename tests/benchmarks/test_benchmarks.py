"""The benchmarks still run and print what they promise.

No test depends on a time, so a busy machine causes no failure.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    pass

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# Processor times too short to be measured are left out, as may happen here.
MEASURES = ["pipelined", "p50", "p99", "ten_kb", "one_mb", "progress"]
ASKED = ["sequential", "sequential_cpu", "concurrent", "concurrent_cpu"]
MEASURED = ["ours", "ours_async", "sdk", "sdk_mcpserver", "bare", "ratio"]
HTTP_MODES = ["session_sse", "session_json", "stateless_json", "modern"]
HTTP_MEASURES = ["calls", "p50", "p99", "varied"]


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
        pytest.param(
            "bench_stdio.py",
            ["--rounds", "1", "--seconds", "0.01", "--events", "20", "--apart"],
            {
                *(
                    f"{e}_{m}_{who}"
                    for e in ("legacy", "modern")
                    for m in MEASURES
                    for who in MEASURED
                ),
                *(f"client_{m}_{who}" for m in ASKED for who in ("ours", "sdk", "ratio")),
            },
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
        pytest.param(
            "bench_http.py",
            ["--rounds", "1", "--seconds", "0.02", "--events", "20", "--sessions", "30"],
            {
                *(
                    f"{e}_{m}_{who}"
                    for e in HTTP_MODES
                    for m in HTTP_MEASURES
                    for who in [*MEASURED, "floor"]
                ),
                *(
                    f"{e}_progress_{who}"
                    for e in ("session_sse", "modern")
                    for who in ("ours", "sdk", "ratio")
                ),
                *(
                    f"sessions_{m}_{who}"
                    for m in ("few", "many")
                    for who in ("ours", "sdk", "ratio")
                ),
                *(
                    f"client_{e}_{m}_{who}"
                    for e in ("session_json", "modern")
                    for m in ASKED
                    for who in ("ours", "sdk", "ratio")
                ),
            },
            marks=SLOW,
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
    measured = [value for name, value in figures.items() if not name.endswith("_added")]
    assert all(value > 0 for value in measured)


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
