"""`Host` with configuration files: what is wrong with them is logged."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

import mcp_trio
from mcp_trio.host import MemoryApprovals

if TYPE_CHECKING:
    from pathlib import Path


async def warnings_of(file: Path, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Open a host with a file, and return what is logged."""
    async with mcp_trio.Host(file, approvals=MemoryApprovals()) as host:
        assert host.status() == {}
    assert {record.levelno for record in caplog.records} == {logging.WARNING}
    return [record.getMessage() for record in caplog.records]


async def test_host_config_file_that_is_missing_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "typo.json"
    assert await warnings_of(file, caplog) == [f"{file}:1:1: there is no such file"]


async def test_host_config_problems_are_logged_up_to_a_limit(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / ".mcp.json"
    servers = {f"server-{number}": {"command": number} for number in range(12)}
    file.write_text(json.dumps({"mcpServers": servers}))
    *first, last = await warnings_of(file, caplog)
    assert len(first) == 10
    assert all("must be a string, not a number" in text for text in first)
    assert last == "2 more problems of configuration files"
