"""The fuzzer of clients finds nothing in right clients: ours on both runtimes, and official SDKs.

`MCP_TRIO_SERVERS_PYTHON` and `MCP_TRIO_OLD_SDK_PYTHON` name Pythons of environments with `mcp`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from mcp_trio.cli import main

if TYPE_CHECKING:
    from collections.abc import Sequence

HERE: Final = Path(__file__).parent
OURS: Final = str(HERE / "our_client.py")
SDK: Final = str(HERE / "sdk_client.py")
NODE: Final = str(HERE / "ts_client.mjs")
# Seconds. 400 starts of the slowest client cost 450 s of CPU, and other programs run beside them.
TIMEOUT: Final = 3_600
WAYS: Final = ("{server}", "{url}")
# The TypeScript SDKs break it: their error for wrong params has all problems of zod as its message.
KNOWN: Final = ("RPC-12",)


def found_in(
    command: Sequence[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    known: Sequence[str] = (),
) -> list[str]:
    """Return the rows that a run with a fixed number of cases finds, without the `known` ones.

    Advice is left out: a client that reads all pages follows as many as the case has.
    """
    options = ["--cases", "400", "--seed", "1", "--no-shrink", "--json", "--output", str(folder)]
    options += [f"--ignore-row={row}" for row in known]
    status = main(["fuzz", "--client", *options, "--inherit-env", "--", *command])
    out, err = capsys.readouterr()
    assert status in (0, 1), f"the run is incomplete, with status {status}:\n{err}"
    document = json.loads(out)
    assert document["cases"] == 400, document
    return sorted(
        f"{each['row']} {each['sentence']}"
        for each in document["findings"]
        if each["verdict"] == "fail"
    )


@pytest.mark.slow
@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loop", ["trio", "asyncio"])
def test_our_client_has_no_fault(
    loop: str, way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert found_in([sys.executable, OURS, loop, way], tmp_path / "found", capsys) == []


@pytest.mark.slow
@pytest.mark.interop
@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("variable", ["MCP_TRIO_SERVERS_PYTHON", "MCP_TRIO_OLD_SDK_PYTHON"])
def test_official_python_client_has_no_fault(
    variable: str, way: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = os.environ.get(variable)
    if not python:
        pytest.skip(f"needs {variable}")
    assert found_in([python, SDK, way], tmp_path / "found", capsys) == []


@pytest.mark.slow
@pytest.mark.node
@pytest.mark.timeout(TIMEOUT)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", ["1", "2"])
def test_official_typescript_client_has_no_fault(
    version: str,
    way: str,
    node_modules: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["node", NODE, version, str(node_modules), way]
    assert found_in(command, tmp_path / "found", capsys, KNOWN) == []
