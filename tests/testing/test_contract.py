"""The contract of a server as a test: compared, written anew, and files that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import mcp_trio
from mcp_core import ConnectFailed
from mcp_core.contract import InvalidContract
from mcp_trio.testing._contract import ContractBroken, check_contract

if TYPE_CHECKING:
    from pathlib import Path


def server(*names: str) -> mcp_trio.Server:
    server = mcp_trio.Server("s")
    for name in names:

        @server.tool(name=name)
        def tool(a: int) -> int:
            """Return a."""
            return a

    return server


def read(file: Path) -> str:
    return file.read_text()


def write(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "contracts" / "s.json"


async def test_contract_that_was_written_is_kept(file: Path) -> None:
    await check_contract(server("a"), file, update=True)
    await check_contract(server("a"), file)
    await check_contract(server("a", "b"), file)


async def test_broken_contract_names_change_and_cure(file: Path) -> None:
    await check_contract(server("a", "b"), file, update=True)
    with pytest.raises(ContractBroken, match="pytest --mcp-update") as failed:
        await check_contract(server("a"), file)
    assert "  breaking tool b: is gone" in str(failed.value)
    await check_contract(server("a"), file, update=True)
    await check_contract(server("a"), file)


async def test_update_keeps_the_revisions_of_the_file(file: Path) -> None:
    await check_contract(server("a"), file, update=True, versions=["2025-06-18"])
    await check_contract(server("b"), file, update=True)
    assert '"2025-06-18"' in read(file)
    await check_contract(server("b"), file)


async def test_missing_file_says_how_it_is_written(file: Path) -> None:
    with pytest.raises(FileNotFoundError, match="pytest --mcp-update writes it"):
        await check_contract(server("a"), file)


@pytest.mark.parametrize("update", [False, True])
async def test_file_that_is_no_contract_is_kept(file: Path, update: bool) -> None:
    write(file, "{}")
    with pytest.raises(InvalidContract, match="it is not a contract"):
        await check_contract(server("a"), file, update=update)
    assert read(file) == "{}"


async def test_older_form_is_written_anew_by_update_only(file: Path) -> None:
    write(file, '{"mcpContract": 0}')
    with pytest.raises(InvalidContract, match="its form 0 is older"):
        await check_contract(server("a"), file)
    await check_contract(server("a"), file, update=True)
    await check_contract(server("a"), file)


async def test_server_that_is_away_is_no_broken_contract(file: Path) -> None:
    await check_contract(server("a"), file, update=True)
    with pytest.raises(ConnectFailed):
        await check_contract("http://127.0.0.1:9/mcp", file)
