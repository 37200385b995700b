"""The log of the drivers: no text of a peer begins a line of its own or carries controls."""

from __future__ import annotations

import ast
import logging
from pathlib import Path

import pytest

from mcp_core.registry import Server
from mcp_core.runtime import LogEscaper
from tests.harness import either
from tests.harness.jsonrpc import E
from tests.harness.wire.lines import served

ROOT = Path(__file__).parents[2]
FORGED = "x\n12:00:00 ERROR forged\x1b[2J\u202e\x9b"
DRIVERS = ("mcp_trio", "mcp_asyncio_shim")


def failing_server() -> Server:
    server = Server("failing")

    @server.tool
    async def fail(text: str) -> str:  # a plain `def` that takes long causes one more record
        """Fail."""
        raise KeyError(text) from ValueError(text)

    return server


def assert_nothing_is_forged(log: pytest.LogCaptureFixture, records: int) -> None:
    assert len(log.records) == records
    lines = log.text.splitlines()
    starts = [line for line in lines if not line.startswith("  ")]
    assert len(starts) == records, lines
    assert not any(line.lstrip(" |").startswith("12:00:00") for line in starts)
    for hidden in "\x1b\u202e\x9b\x85\u2028":
        assert hidden not in log.text


@pytest.mark.usefixtures("each_driver")
async def test_log_of_failed_handler_forges_no_line(caplog: pytest.LogCaptureFixture) -> None:
    async with either.connect(failing_server()) as client:
        await client.call_tool("fail", {"text": FORGED})
    assert "12:00:00 ERROR forged" in caplog.text
    assert_nothing_is_forged(caplog, 1)


@pytest.mark.usefixtures("each_driver")
async def test_log_of_rejected_messages_forges_no_line(caplog: pytest.LogCaptureFixture) -> None:
    name = either.package().__name__
    with caplog.at_level(logging.DEBUG, name):
        async with served(failing_server(), E) as wire:
            await wire.ask(1, FORGED)
            await wire.ask(FORGED, "tools/call", {"name": FORGED, "arguments": FORGED})
    caplog.records[:] = [record for record in caplog.records if record.name == name]
    assert "12:00:00 ERROR forged" in caplog.text
    assert_nothing_is_forged(caplog, len(caplog.records))


@pytest.mark.parametrize("name", DRIVERS)
def test_logger_of_driver_escapes_records(name: str) -> None:
    assert any(isinstance(each, LogEscaper) for each in logging.getLogger(name).filters)


@pytest.mark.parametrize("package", DRIVERS)
def test_driver_uses_its_one_logger(package: str) -> None:
    """A logger of another name, or a child of this one, would write records without escapes."""
    for path in (ROOT / package).rglob("*.py"):
        text = path.read_text("utf-8")
        for node in ast.walk(ast.parse(text)) if "getLogger" in text else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("getLogger"):
                assert ast.unparse(node) == f"logging.getLogger('{package}')", path
