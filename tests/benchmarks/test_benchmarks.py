"""The benchmarks still run and say what they promise. Nothing here looks at a time: a busy machine is no failure."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from mcp_core.types import TextContent
from mcp_trio import connect_stdio

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SERVERS = ["server.py", "peers/sdk_lowlevel.py", "peers/sdk_mcpserver.py"]
# Processor times are left out where they are too short to be seen, as they may be here.
MEASURES = ["pipelined", "p50", "p99", "ten_kb", "one_mb", "progress"]
ASKED = ["sequential", "sequential_cpu", "concurrent", "concurrent_cpu"]
MEASURED = ["ours", "ours_async", "sdk", "sdk_mcpserver", "bare", "ratio"]


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
        ("bench_startup.py", ["--rounds", "1"], {"ours_ms", "sdk_ms", "bare_python_ms", "ratio"}),
        (
            "bench_stdio.py",
            ["--rounds", "1", "--seconds", "0.01", "--events", "20", "--apart"],
            {
                *(f"{e}_{m}_{who}" for e in ("legacy", "modern") for m in MEASURES for who in MEASURED),
                *(f"client_{m}_{who}" for m in ASKED for who in ("ours", "sdk", "ratio")),
            },
        ),
    ],
)
def test_the_last_line_is_one_json_object_with_the_figures(
    script: str, options: list[str], promised: set[str]
) -> None:
    argv = [sys.executable, str(BENCHMARKS / script), *options]
    output = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60).stdout
    figures = json.loads(output.splitlines()[-1])
    assert promised <= figures.keys()
    assert all(value > 0 for value in figures.values())


@pytest.mark.parametrize("script", SERVERS)
async def test_each_server_does_the_same(script: str) -> None:
    told = []
    with trio.fail_after(20):
        async with connect_stdio([sys.executable, BENCHMARKS / script, "stdio", "--tools", "2"]) as client:
            tools = {tool.name: tool for tool in await client.list_tools()}
            assert list(tools) == ["echo", "add", "progress", "filler_0", "filler_1"]
            assert set(tools["filler_1"].input_schema["properties"]) == {"query", "limit", "exact"}
            assert tools["add"].input_schema["required"] == ["a", "b"]
            assert (await client.call_tool("echo", {"text": "x"})).content == [TextContent("x")]
            assert (await client.call_tool("add", {"a": 2, "b": 3})).content == [TextContent("5")]
            done = await client.call_tool("progress", {"n": 3}, progress=lambda *step: told.append(step))
            assert done.content == [TextContent("done")]
    assert told == [(1, 3, None), (2, 3, None), (3, 3, None)]
