"""`mcp-trio inspect --save` and `--against` in memory: what is written, printed and refused."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.cli._errors import CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli.use import _contract
from tests.trio_.cli.in_memory import AnsweringServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.trio_.cli.in_memory import MemoryCommand


def tool(name: str = "query", **properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def server_of(*tools: Any, version: str = "2025-06-18", **more: Any) -> AnsweringServer:
    answers = {name.replace("_", "/"): each for name, each in more.items()}
    capabilities: dict[str, Any] = {"tools": {}}
    if more:
        capabilities["resources"] = {}
    return AnsweringServer(
        capabilities, {"tools/list": {"tools": [*tools]}, **answers}, version=version
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.contract.json"


def save(command: MemoryCommand, file: Path, server: AnsweringServer, *words: str) -> str:
    command.server = server
    status, out, err = command("inspect", "--save", str(file), *words)
    assert (status, err) == (0, "")
    return out


def against(
    command: MemoryCommand, file: Path, server: AnsweringServer, *words: str
) -> tuple[int, str, str]:
    command.server = server
    return command("inspect", "--against", str(file), *words)


OLD = server_of(tool("gone"), tool(a={"enum": [1, 2]}), tool("text") | {"title": "a"})
NEW = server_of(tool(a={"enum": [1]}), tool("text") | {"title": "b" * 101}, tool("new"))


def test_contract_saved_is_summed_up_and_unchanged(in_memory: MemoryCommand, file: Path) -> None:
    resources = {"resources": [{"uri": "a:b", "name": "n"}]}
    server = server_of(tool(), resources_list=resources)
    revision = "revision 2025-06-18\n"
    nouns = "1 tool, 0 prompts, 0 resource templates"
    assert save(in_memory, file, server) == f"saved {file}: {nouns}, {revision}"
    with_resources = save(in_memory, file, server, "--resources")
    assert with_resources == f"saved {file}: {nouns}, 1 resource, {revision}"
    assert against(in_memory, file, server) == (0, "no changes\n", "")
    found = json.loads(save(in_memory, file, server, "--json"))
    assert found == {"server": "played", "revisions": ["2025-06-18"], "saved": str(file)}


def test_contract_changes_are_printed_the_worst_first(in_memory: MemoryCommand, file: Path) -> None:
    """Each with its place, an example, and the texts before and after, shortened."""
    save(in_memory, file, OLD)
    status, out, err = against(in_memory, file, NEW)
    cut = out.splitlines()[-2]
    assert (status, err) == (1, "")
    assert out.splitlines() == [
        "breaking    tool gone: is gone",
        "breaking    tool query, input a: no longer accepts 2",
        '              such as {"a":2}',
        "compatible  tool new: is new",
        "compatible  tool text, title: has another text",
        cut,
        "changes: 2 breaking, 2 compatible",
    ]
    assert cut.startswith(f'              "a" → "{"b" * 60}')
    assert "b" * 101 not in cut
    status, out, _ = against(in_memory, file, NEW, "--json")
    found = json.loads(out)
    assert (status, found["verdict"]) == (1, "breaking")
    assert [list(each) for each in found["changes"]] == [
        ["verdict", "what", "change", "revisions"],
        ["verdict", "what", "place", "change", "example", "revisions"],
        ["verdict", "what", "change", "revisions"],
        ["verdict", "what", "place", "change", "old", "new", "revisions"],
    ]
    assert found["changes"][0]["revisions"] == ["2025-06-18"]


@pytest.mark.parametrize(("words", "status"), [([], 1), (["--allow-unclear"], 0)])
def test_contract_unclear_change_fails_unless_allowed(
    words: list[str], status: int, in_memory: MemoryCommand, file: Path
) -> None:
    save(in_memory, file, server_of(tool(a={"pattern": "a"})))
    found = against(in_memory, file, server_of(tool(a={"pattern": "b"})), *words)
    assert found[0] == status
    assert found[1].endswith("changes: 1 unclear\n")


def test_contract_is_compared_before_it_is_saved(in_memory: MemoryCommand, file: Path) -> None:
    save(in_memory, file, OLD)
    status, out, _ = against(in_memory, file, NEW, "--save", str(file))
    assert status == 1
    assert out.splitlines()[-2:] == [
        "changes: 2 breaking, 2 compatible",
        f"saved {file}: 3 tools, 0 prompts, 0 resource templates, revision 2025-06-18",
    ]
    assert against(in_memory, file, NEW) == (0, "no changes\n", "")


def test_contract_of_other_revisions_is_refused(in_memory: MemoryCommand, file: Path) -> None:
    save(in_memory, file, OLD)
    assert against(in_memory, file, OLD, "--revision", "2025-11-25") == (
        2,
        "",
        "mcp-trio: the contract has no revision 2025-11-25: leave --revision out\n",
    )


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "there is no contract {file}; `mcp-trio inspect --save` writes one"),
        (b"{}", "{file}: "),
        (b"no", "{file}: "),
        (b"", "{file}: "),
    ],
)
def test_contract_that_cannot_be_read_is_an_error(
    content: bytes | None, complaint: str, in_memory: MemoryCommand, file: Path
) -> None:
    if content is not None:
        file.write_bytes(content)
    status, out, err = against(in_memory, file, OLD)
    assert (status, out) == (2, "")
    assert err.startswith(f"mcp-trio: {complaint.format(file=file)}")
    assert in_memory.launches == []


def test_contract_file_of_an_unknown_revision_is_refused(
    in_memory: MemoryCommand, file: Path
) -> None:
    save(in_memory, file, OLD)
    file.write_text(file.read_text().replace("2025-06-18", "2099-01-01"))
    status, _, err = against(in_memory, file, OLD)
    assert status == 2
    assert "there is no revision 2099-01-01; the revisions are 2026-07-28, 2025-11-25" in err


def test_contract_save_replaces_a_contract_and_an_empty_file_only(
    in_memory: MemoryCommand, file: Path, tmp_path: Path
) -> None:
    """A device is written to without being read."""
    file.write_bytes(b"my notes")
    in_memory.server = OLD
    status, _, err = in_memory("inspect", "--save", str(file))
    assert (status, in_memory.launches) == (2, [])
    assert err.startswith(f"mcp-trio: --save {file}: the file exists, and ")
    assert err.endswith("; remove it, or give another name\n")
    status, _, err = in_memory("inspect", "--save", str(tmp_path))
    assert (status, in_memory.launches) == (2, [])
    assert err == (f"mcp-trio: --save {tmp_path}: it is a directory, which only --all takes\n")
    file.write_bytes(b"")
    save(in_memory, file, OLD)
    save(in_memory, file, NEW)
    _contract._check_save(file.with_name("new"), Screen(None))
    _contract._check_save(file.with_name("null"), Screen(None))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    _contract._check_save(fifo, Screen(None))


def test_contract_that_cannot_be_saved_is_an_error(
    in_memory: MemoryCommand, tmp_path: Path
) -> None:
    in_memory.server = OLD
    path = tmp_path / "missing" / "a.json"
    status, out, err = in_memory("inspect", "--save", str(path))
    assert (status, out) == (2, "")
    assert err == f"mcp-trio: --save {path}: No such file or directory\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--all"], "--all is for contracts: it needs --save or --against"),
        (["--resources"], "--resources is for contracts: it needs --save or --against"),
        (["--every-revision"], "--every-revision is for contracts: it needs --save"),
        (
            ["--every-revision", "--against", "a"],
            "--every-revision is for contracts: it needs --save",
        ),
        (
            ["--allow-unclear", "--save", "a"],
            "--allow-unclear is for contracts: it needs --against",
        ),
        (
            ["--every-revision", "--save", "a", "--revision", "2025-06-18"],
            "--every-revision and --revision exclude each other",
        ),
    ],
)
def test_contract_options_that_do_not_fit_are_refused(
    words: list[str], complaint: str, in_memory: MemoryCommand
) -> None:
    target = None if "--all" in words else "-- it"
    status, _, err = in_memory("inspect", *words, target=target)
    assert (status, err.splitlines()[-1]) == (2, f"mcp-trio inspect: error: {complaint}")
    assert in_memory.launches == []


def test_contract_tool_that_cannot_be_read_is_left_out(
    in_memory: MemoryCommand, file: Path
) -> None:
    in_memory.server = server_of(tool(), {"name": 5})
    status, _, err = in_memory("inspect", "--save", str(file))
    assert (status, err.count("mcp-trio: not in the contract: tools[1] was left out")) == (0, 1)


def test_contract_of_a_list_that_changes_is_not_judged(
    in_memory: MemoryCommand, file: Path
) -> None:
    lists = [{"tools": [tool(str(number))]} for number in range(9)]
    in_memory.server = AnsweringServer({"tools": {}}, {"tools/list": lists})
    status, out, _ = in_memory("inspect", "--save", str(file))
    assert (status, out, file.exists()) == (4, "", False)


# -- Several servers -------------------------------------------------------------------------------


def test_contracts_of_all_servers_have_a_file_each() -> None:
    assert _contract._file_names(["a", "b c/../d", "é"]) == {
        "a": "a.contract.json",
        "b c/../d": "b_c_d.contract.json",
        "é": "é.contract.json",
    }
    with pytest.raises(
        CliError, match=r"the servers a b and A_B have one file A_B\.contract\.json"
    ):
        _contract._file_names(["a b", "A_B"])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--server", "a"], "--all takes each server of the configuration files: name no server"),
        (["a.py"], "--all takes each server of the configuration files: name no server"),
        (
            ["--env", "A=b"],
            "--env is not for a server of the configuration files: write it there",
        ),
    ],
)
def test_contracts_of_all_servers_take_no_server(
    words: list[str], complaint: str, in_memory: MemoryCommand
) -> None:
    found = in_memory("inspect", "--all", "--save", "d", *words, target=None)
    assert found.status == 2
    assert found.err.endswith(f"mcp-trio inspect: error: {complaint}\n")


def test_contracts_of_no_servers_are_an_error(in_memory: MemoryCommand, tmp_path: Path) -> None:
    """Nothing would be compared, and nothing would fail."""
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {}}')
    words = ["--all", "--save", str(tmp_path / "d"), "--config", str(config)]
    assert in_memory("inspect", *words, target=None) == (
        2,
        "",
        ("mcp-trio: the configuration files have no servers: `mcp-trio servers list` shows why\n"),
    )


def test_inspect_of_a_command_with_the_word_all_is_one_server(in_memory: MemoryCommand) -> None:
    in_memory.server = server_of(tool())
    assert in_memory("inspect", target="-- it --all").status == 0
    assert in_memory.launches[-1][0] == ("it", "--all")
