"""The contract of a server as a test: compared, written anew, and files that are none."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import mcp_trio
from mcp_core import ConnectFailed, RevisionRefused
from mcp_core.auth import AuthorizationFailed
from mcp_core.contract import ContractChange, InvalidContract, read_contract
from mcp_trio.oracle._contract import ChangingLists
from mcp_trio.testing import _contract
from mcp_trio.testing._contract import ContractBroken, check_contract

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def server(*names: str) -> mcp_trio.Server:
    server = mcp_trio.Server("s")
    for name in names:

        @server.tool(name=name)
        def tool(a: int) -> int:
            """Return a."""
            return a

    return server


TWO = '{"mcpContract": 1, "revisions": ["2026-07-28", "2025-06-18"], "tools": []}'


def read(file: Path) -> str:
    return file.read_text()


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tests" / "contracts" / "s.json"


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


def test_broken_contract_shows_the_first_changes_and_their_beginnings() -> None:
    """A server's texts may be long, and may have characters that steer a terminal."""
    changes = [
        ContractChange(verdict="breaking", what="tool a", sentence="is gone", revision="x"),
        ContractChange(
            verdict="unclear",
            what="tool b",
            place="input c",
            sentence="is narrower",
            example='{"c": 1}',
            revision="x",
        ),
        *(
            ContractChange(verdict="breaking", what="\x1b", sentence="d" * 400, revision="x")
            for _ in range(49)
        ),
    ]
    failed = ContractBroken(Path("s.json"), changes)
    assert failed.changes == changes
    first, *lines, last = str(failed).split("\n")
    assert first.startswith("s.json: 51 changes break users")
    assert lines[:2] == [
        "  breaking tool a: is gone",
        '  unclear tool b, input c: is narrower, such as {"c": 1}',
    ]
    assert len(lines) == 50
    assert lines[2] == "  breaking \\u001b: " + "d" * (300 - len("breaking _: "))
    assert "pytest --mcp-update" in last


async def test_resources_are_compared_if_asked_for_or_in_the_file(file: Path) -> None:
    """A default contract has none, so that they may come and go."""

    def with_resource(*uris: str) -> mcp_trio.Server:
        served = server("a")
        for uri in uris:
            served.resource(uri)(lambda: "text")
        return served

    await check_contract(with_resource("r://1"), file, update=True)
    assert "r://1" not in read(file)
    await check_contract(with_resource("r://2"), file)
    await check_contract(with_resource("r://1"), file, update=True, resources=True)
    assert "r://1" in read(file)
    with pytest.raises(ContractBroken, match="resource r://1: is gone"):
        await check_contract(with_resource("r://2"), file)
    await check_contract(with_resource("r://2"), file, update=True)
    assert "r://2" in read(file)


async def test_change_that_may_break_users_fails_unless_it_is_allowed(file: Path) -> None:
    """Another default means another call for those that leave the argument out."""
    before, after = mcp_trio.Server("s"), mcp_trio.Server("s")

    @before.tool(name="a")
    def old(a: int = 0) -> int:
        """Return a."""
        return a

    @after.tool(name="a")
    def new(a: int = 1) -> int:
        """Return a."""
        return a

    await check_contract(before, file, update=True)
    with pytest.raises(ContractBroken, match="unclear tool a"):
        await check_contract(after, file)
    await check_contract(after, file, allow_unclear=True)


async def test_update_keeps_the_revisions_of_the_file(file: Path) -> None:
    await check_contract(server("a"), file, update=True, versions=["2025-06-18"])
    await check_contract(server("b"), file, update=True)
    assert '"2025-06-18"' in read(file)
    await check_contract(server("b"), file)


async def test_versions_choose_what_is_compared_and_written(file: Path) -> None:
    """One of the file's revisions, none of them, and another one with an update."""
    only = '"only": {"2026-07-28": {"prompts": [{"name": "gone"}]}}, "revisions"'
    write(file, TWO.replace('"revisions"', only))
    await check_contract(server("a"), file, versions=["2025-06-18"])
    with pytest.raises(ContractBroken, match="prompt gone: is gone"):
        await check_contract(server("a"), file, versions=["2025-06-18", "2026-07-28"])
    with pytest.raises(InvalidContract, match=r"none of the revisions in versions=, but 2026-07"):
        await check_contract(server("a"), file, versions=["2025-11-25"])
    await check_contract(server("a"), file, update=True, versions=["2025-11-25"])
    assert [*read_contract(read(file).encode()).offers] == ["2025-11-25"]


async def test_missing_file_says_how_it_is_written(file: Path) -> None:
    with pytest.raises(FileNotFoundError, match="pytest --mcp-update writes it"):
        await check_contract(server("a"), file)


@pytest.mark.parametrize("update", [False, True])
async def test_file_that_is_no_contract_is_kept(file: Path, update: bool) -> None:
    write(file, "{}")
    with pytest.raises(InvalidContract, match=r"s\.json: .*it is not a contract"):
        await check_contract(server("a"), file, update=update)
    assert read(file) == "{}"


async def test_file_that_cannot_be_read_is_no_wrong_contract(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=re.escape(tmp_path.name)):
        await check_contract(server("a"), tmp_path)


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


@pytest.mark.parametrize("number", [1, 2])
async def test_server_that_fails_once_loses_no_revision(
    file: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A connection fails: the file isn't written, and nothing is said to be broken."""
    write(file, TWO)
    connections = 0

    @asynccontextmanager
    async def failing(*args: Any, **options: Any) -> AsyncIterator[mcp_trio.Client]:
        nonlocal connections
        connections += 1
        if connections == number:
            raise ConnectFailed("the database is away")
        async with mcp_trio.connect(*args, **options) as client:
            yield client

    monkeypatch.setattr(_contract, "connect", failing)
    for update in True, False:
        connections = 0
        with pytest.raises(ConnectFailed, match="the database is away"):
            await check_contract(server("a"), file, update=update)
    assert read(file) == TWO


@pytest.mark.parametrize(
    ("error", "connections"), [(RevisionRefused, 2), (ConnectFailed, 3), (RevisionRefused, 1)]
)
async def test_revision_that_is_refused_is_no_longer_spoken(
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: type[ConnectFailed],
    connections: int,
) -> None:
    """By the server's answer, or because it agrees on an older one only."""
    write(file, TWO if connections > 1 else TWO.replace(', "2025-06-18"', ""))
    offered: list[Any] = []

    @asynccontextmanager
    async def old_server(
        target: Any, *, versions: Any = ("2025-06-18",)
    ) -> AsyncIterator[mcp_trio.Client]:
        offered.append(versions)
        if versions == ("2026-07-28",):
            raise error("another revision")
        async with mcp_trio.connect(target, versions=versions) as client:
            yield client

    monkeypatch.setattr(_contract, "connect", old_server)
    with pytest.raises(ContractBroken, match="revision 2026-07-28: the server no longer"):
        await check_contract(server("a"), file)
    assert len(offered) == max(connections, 2)
    await check_contract(server("a"), file, update=True)
    assert [*read_contract(read(file).encode()).offers] == ["2025-06-18"]


async def test_error_while_a_revision_is_read_says_nothing_about_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The revision would else seem to be gone."""
    write(file, TWO)

    @asynccontextmanager
    async def changing(
        target: Any, *, versions: Any = ("2025-06-18",)
    ) -> AsyncIterator[mcp_trio.Client]:
        if versions == ("2026-07-28",):
            raise ChangingLists("the lists change")
        async with mcp_trio.connect(target, versions=versions) as client:
            yield client

    monkeypatch.setattr(_contract, "connect", changing)
    with pytest.raises(ChangingLists):
        await check_contract(server("a"), file)


async def test_contract_has_the_name_that_the_server_has_in_its_first_revision(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(file, TWO)

    @asynccontextmanager
    async def renamed(target: Any, *, versions: Any) -> AsyncIterator[mcp_trio.Client]:
        async with mcp_trio.connect(mcp_trio.Server(versions[0]), versions=versions) as client:
            yield client

    monkeypatch.setattr(_contract, "connect", renamed)
    await check_contract(server("a"), file, update=True)
    assert read_contract(read(file).encode()).server == "2026-07-28"


async def test_scopes_of_url_are_written_first_and_then_compared_only(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file without scopes asks no authorization server."""
    asked = []

    async def scopes_of(url: str) -> tuple[str, ...]:
        asked.append(url)
        return ("a",)

    monkeypatch.setattr(_contract, "read_scopes", scopes_of)
    monkeypatch.setattr(
        _contract, "connect", lambda target, **more: mcp_trio.connect(server("a"), **more)
    )
    write(file, TWO)
    await check_contract("http://127.0.0.1:9/mcp", file)
    assert asked == []
    await check_contract("http://127.0.0.1:9/mcp", file, update=True)
    assert asked == ["http://127.0.0.1:9/mcp"]
    assert read_contract(read(file).encode()).scopes == ("a",)


@pytest.mark.parametrize("found", [("a",), (), None])
async def test_scopes_of_url_are_compared_and_kept_if_unknown(
    file: Path, monkeypatch: pytest.MonkeyPatch, found: tuple[str, ...] | None
) -> None:
    """The file keeps its scopes if a fetch fails, and for a target without a URL."""

    async def scopes_of(url: str) -> tuple[str, ...]:
        if found is None:
            raise AuthorizationFailed("the fetch failed")
        return found

    monkeypatch.setattr(_contract, "read_scopes", scopes_of)
    monkeypatch.setattr(
        _contract, "connect", lambda target, **more: mcp_trio.connect(server("a"), **more)
    )
    write(file, TWO.replace("{", '{"scopes": ["a", "b"], ', 1))
    if found is None:
        await check_contract("http://127.0.0.1:9/mcp", file, allow_unclear=True)
    else:
        with pytest.raises(ContractBroken, match="scope b: a scope is gone"):
            await check_contract("http://127.0.0.1:9/mcp", file)
    await check_contract("http://127.0.0.1:9/mcp", file, update=True)
    kept = ("a", "b") if found is None else found
    assert read_contract(read(file).encode()).scopes == kept
    await check_contract(server("a"), file, update=True)  # it has no URL to ask
    assert read_contract(read(file).encode()).scopes == kept
