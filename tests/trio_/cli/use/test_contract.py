"""`mcp-trio inspect --save` and `--against`: files, verdicts, exit statuses, several servers."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from mcp_core.contract import Contract, compare_contracts, offers_of_lists
from mcp_trio.cli._errors import CliError
from mcp_trio.cli._screen import Screen
from mcp_trio.cli.use import _contract
from mcp_trio.cli.use._contract import show_changes
from tests.harness.world.command import GREETER, TEAHOUSE, answering, output_of, run
from tests.harness.world.threaded_http import fixed_response, threaded_http_server

if TYPE_CHECKING:
    from pathlib import Path


RUN_GREETER = ("-m", "mcp_trio", "run", "examples/greeter.py")


def tool(name: str = "query", **properties: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": properties}}


def server(*tools: dict[str, Any], **more: Any) -> tuple[str, ...]:
    return answering({"tools": {}}, tools_list={"tools": [*tools]}, **more)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.contract.json"


def save(file: Path, *target: str, status: int = 0) -> str:
    return output_of("inspect", "--save", str(file), *target, status=status)


def against(file: Path, *target: str, status: int = 0) -> str:
    return output_of("inspect", "--against", str(file), *target, status=status)


def test_contract_of_unchanged_server_has_no_changes(file: Path) -> None:
    assert save(file, *TEAHOUSE) == (
        f"saved {file}: 2 tools, 1 prompt, 1 resource template, revision 2026-07-28\n"
    )
    first = file.read_bytes()
    assert against(file, *TEAHOUSE) == "no changes\n"
    save(file, *TEAHOUSE)
    assert file.read_bytes() == first


def test_changes_are_printed_the_worst_first(file: Path) -> None:
    """A tool that is gone, one that may ignore an argument, and one whose text has changed."""
    save(file, *server(tool("gone"), tool(a={"type": "string"}), tool("text") | {"title": "a"}))
    shown = against(file, *server(tool(), tool("text") | {"title": "b\x1b[2J"}), status=1)
    assert shown == (
        "breaking    tool gone: is gone\n"
        "unclear     tool query, input: no longer describes a, and may ignore it\n"
        "compatible  tool text, title: has another text\n"
        '              "a" → "b\\u001b[2J"\n'
        "changes: 1 breaking, 1 unclear, 1 compatible\n"
    )


def test_unclear_change_fails_unless_allowed(file: Path) -> None:
    save(file, *server(tool(a={"pattern": "a"})))
    new = server(tool(a={"pattern": "b"}))
    assert "unclear     tool query, input a: has another pattern" in against(file, *new, status=1)
    against(file, "--allow-unclear", *new)


def test_json_is_one_document(file: Path) -> None:
    """It has the verdict about all changes, and each change with its example."""
    save(file, *server(tool(a={"enum": [1, 2]})))
    shown = against(file, "--json", *server(tool(a={"enum": [1]})), status=1)
    assert json.loads(shown) == {
        "server": "played",
        "revisions": ["2025-06-18"],
        "verdict": "breaking",
        "changes": [
            {
                "verdict": "breaking",
                "what": "tool query",
                "place": "input a",
                "change": "no longer accepts 2",
                "example": '{"a":2}',
                "revisions": ["2025-06-18"],
            }
        ],
    }


def test_comparing_and_saving_at_once_compares_with_the_old_file(file: Path) -> None:
    save(file, *server(tool("old")))
    output_of(
        "inspect", "--against", str(file), "--save", str(file), *server(tool("new")), status=1
    )
    against(file, *server(tool("new")))


def test_resources_are_compared_if_asked_for(file: Path) -> None:
    def of(*uris: str) -> tuple[str, ...]:
        entries = [{"name": uri, "uri": uri, "size": len(uris)} for uri in uris]
        return answering({"resources": {}}, resources_list={"resources": entries})

    save(file, *of("a:b", "a:c"))
    against(file, *of())
    save(file, "--resources", *of("a:b", "a:c"))
    assert "resource a:b: is gone" in against(file, *of("a:c"), status=1)


def test_every_revision_is_saved_once_and_compared(file: Path) -> None:
    """The greeter speaks all five; a server of one revision has lost the others."""
    save(file, "--every-revision", *GREETER)
    document = json.loads(file.read_bytes())
    assert len(document["revisions"]) == 5
    assert [each["name"] for each in document["tools"]] == ["greet"]
    assert against(file, *GREETER) == "no changes\n"
    shown = against(file, *server(tool("greet")), status=1)
    assert "revision 2026-07-28: the server no longer speaks it" in shown
    assert "revision 2025-06-18: " not in shown


def test_one_revision_of_the_file_is_compared_alone(file: Path) -> None:
    save(file, "--every-revision", *GREETER)
    assert against(file, "--revision", "2025-11-25", *GREETER) == "no changes\n"


# Starts the greeter so many times, and then fails as if its database were away.
FLAKY = """
import os, sys
from pathlib import Path
count = Path(sys.argv[1])
starts = len(count.read_bytes()) if count.exists() else 0
count.write_bytes(b"x" * (starts + 1))
if starts >= int(sys.argv[2]):
    sys.exit("the database is away")
os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""


@pytest.mark.parametrize("words", [("--against",), ("--every-revision", "--save")])
def test_server_that_fails_once_is_status_3_and_has_lost_no_revision(
    file: Path, words: tuple[str, ...]
) -> None:
    """A failure says nothing about revisions: its cause is shown, and the file is kept."""
    save(file, "--every-revision", *GREETER)
    kept = file.read_bytes()
    count = file.with_name("count")
    target = ("--", sys.executable, "-S", "-c", FLAKY, str(count), "1", *RUN_GREETER)
    result = run("inspect", *words, str(file), *target)
    assert (result.returncode, result.stdout) == (3, "")
    assert "the database is away" in result.stderr
    assert file.read_bytes() == kept


def test_change_in_one_revision_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    """But neither for a scope, which has none, nor for a revision that is gone."""

    def of(**hints: dict[str, bool]) -> Contract:
        offers = {
            name.replace("_", "-")[1:]: offers_of_lists({"tools": [tool() | {"annotations": each}]})
            for name, each in hints.items()
        }
        return Contract(offers=offers, scopes=("a",) if len(hints) > 2 else ())

    safe = {"readOnlyHint": True}
    old = of(_2026_07_28=safe, _2025_11_25=safe, _2025_06_18=safe)
    new = of(_2026_07_28=safe, _2025_11_25={})
    show_changes(
        Screen(sys.stdout), compare_contracts(old, new), old.offers.keys() & new.offers.keys()
    )
    lines = capsys.readouterr().out.splitlines()
    assert "breaking    tool query, annotations: can be destructive now (2025-11-25)" in lines
    assert "breaking    revision 2025-06-18: the server no longer speaks it" in lines
    assert "breaking    scope a: a scope is gone" in lines


def test_server_that_speaks_another_revision_only_is_breaking(file: Path) -> None:
    save(file, *GREETER)
    shown = against(file, *server(tool("greet")), status=1)
    assert shown.startswith("breaking    revision 2026-07-28: the server no longer speaks it\n")


# A server whose tools have another name each time, or only the first two times.
CHANGING = """
import json, sys
reads = 0
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
              "serverInfo": {"name": "s", "version": "1"}}
    answer = {"result": result}
    if message["method"] == "tools/list":
        reads += 1
        name = f"t{min(reads, int(sys.argv[1]))}"
        answer = {"result": {"tools": [{"name": name, "inputSchema": {}}]}}
    elif message["method"] != "initialize":
        answer = {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def test_list_that_changes_while_it_is_read_is_read_again_then_status_4(file: Path) -> None:
    def changing(times: int) -> tuple[str, ...]:
        return ("--", sys.executable, "-S", "-c", CHANGING, str(times))

    result = run("inspect", "--save", str(file), *changing(99))
    assert (result.returncode, result.stdout) == (4, "")
    assert "what the server offers changed each of the 3 times that it was read" in result.stderr
    assert not file.exists()
    save(file, *changing(2))
    assert json.loads(file.read_bytes())["tools"][0]["name"] == "t2"


def test_failed_list_saves_nothing(file: Path) -> None:
    failing = answering({"tools": {}}, tools_list={"error": {"code": -32603, "message": "down"}})
    result = run("inspect", "--save", str(file), *failing)
    assert result.returncode == 1
    assert "down" in result.stderr
    assert not file.exists()


def test_entry_that_cannot_be_read_is_named_once_and_left_out(file: Path) -> None:
    result = run("inspect", "--save", str(file), *server(tool(), {"name": "odd"}))
    assert result.returncode == 0
    [problem] = [line for line in result.stderr.splitlines() if "not in the contract" in line]
    assert problem.startswith("mcp-trio: not in the contract: ")
    assert "inputSchema" in problem
    assert [each["name"] for each in json.loads(file.read_bytes())["tools"]] == ["query"]


def test_server_that_cannot_be_started_is_status_3(file: Path) -> None:
    save(file, *GREETER)
    result = run("inspect", "--against", str(file), "--", sys.executable, "-c", "exit(7)")
    assert result.returncode == 3


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("import trio\n", "the file exists, and it is not JSON"),
        ("{}", "the file exists, and it is not a contract"),
        ('{"mcpContract": 2}', "its form 2 is newer than 1"),
    ],
)
def test_save_never_overwrites_another_file(file: Path, text: str, cause: str) -> None:
    file.write_text(text)
    result = run("inspect", "--save", str(file), *GREETER)
    assert result.returncode == 2
    assert cause in result.stderr
    assert file.read_text() == text


def test_older_form_is_refused_and_upgraded_by_save_only(file: Path) -> None:
    file.write_text('{"mcpContract": 0}')
    result = run("inspect", "--against", str(file), *GREETER)
    assert result.returncode == 2
    assert "its form 0 is older than 1" in result.stderr
    result = run("inspect", "--save", str(file), *GREETER)
    assert result.returncode == 0
    assert "has an older form, and is written anew" in result.stderr
    assert json.loads(file.read_bytes())["mcpContract"] == 1


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (["--against", "none.json"], "there is no contract none.json; `mcp-trio inspect --save`"),
        (["--against", "."], "Is a directory"),
        (["--save", "."], "it is a directory, which only --all takes"),
        (["--save", "none/a.json"], "--save none/a.json: No such file or directory"),
        (["--resources"], "--resources is for contracts: it needs --save or --against"),
        (
            ["--allow-unclear", "--save", "a"],
            "--allow-unclear is for contracts: it needs",
        ),
        (["--every-revision", "--against", "a"], "it needs --save"),
        (
            ["--every-revision", "--revision", "2025-06-18", "--save", "a"],
            "--every-revision and --revision exclude each other",
        ),
        (["--all", "--save", "a"], "--all takes each server of the configuration files"),
    ],
)
def test_wrong_line_or_file_is_status_2_with_cause(
    tmp_path: Path, words: list[str], cause: str
) -> None:
    target = ("--", *GREETER[1:]) if GREETER[0] == "--" else GREETER
    result = run("inspect", *words, *target, cwd=tmp_path)
    assert result.returncode == 2
    assert cause in result.stderr


@pytest.mark.parametrize(("more", "cause"), [(0, "it is not JSON"), (1, "it has more than 1 MiB")])
def test_contract_of_any_size_is_not_read_whole(
    file: Path, monkeypatch: pytest.MonkeyPatch, more: int, cause: str
) -> None:
    monkeypatch.setattr(_contract, "_MAX_SIZE", 1 << 20)
    file.write_bytes(b"x" * ((1 << 20) + more))
    with pytest.raises(CliError, match=cause):
        _contract.load_contract(file)


def test_revision_that_the_contract_does_not_have_is_status_2(file: Path) -> None:
    save(file, "--revision", "2025-06-18", *GREETER)
    result = run("inspect", "--against", str(file), "--revision", "2025-11-25", *GREETER)
    assert result.returncode == 2
    assert "the contract has no revision 2025-11-25" in result.stderr


def test_all_servers_of_a_file_have_a_contract_each(tmp_path: Path) -> None:
    """One cannot be started: its error doesn't hide the others, and is the exit status."""

    def write(*tools: dict[str, Any]) -> None:
        command, *args = server(*tools)[1:]
        entries = {
            "a/b": {"command": command, "args": args},
            "bad": {"command": sys.executable, "args": ["-c", "exit(7)"]},
        }
        (tmp_path / "all.json").write_text(json.dumps({"mcpServers": entries}))

    approve = ("--approve-server", "a/b", "--approve-server", "bad")
    words = ("inspect", "--config", "all.json", "--all", *approve)
    write(tool("one"))
    result = run(*words, "--save", "kept", cwd=tmp_path)
    assert result.returncode == 3, result.stderr
    assert "a/b\nsaved kept/a_b.contract.json: 1 tool" in result.stdout
    assert "mcp-trio: bad: " in result.stderr
    assert [each.name for each in (tmp_path / "kept").iterdir()] == ["a_b.contract.json"]
    write(tool("two"))
    result = run(*words, "--json", "--against", "kept", cwd=tmp_path)
    assert result.returncode == 2
    found = json.loads(result.stdout)["servers"]
    assert found["a/b"]["verdict"] == "breaking"
    assert "there is no contract kept/bad.contract.json" in found["bad"]["error"]


@pytest.mark.parametrize("option", ["--save", "--against"])
def test_server_that_needs_a_login_is_status_3_and_says_how(file: Path, option: str) -> None:
    """The file is kept as it was: the server has lost nothing."""
    save(file, *GREETER)
    kept = file.read_bytes()
    with threaded_http_server(fixed_response(401, {})) as root:
        result = run("inspect", option, str(file), f"{root}/mcp")
    assert (result.returncode, result.stdout) == (3, "")
    assert f"`mcp-trio login {root}/mcp` gets a token" in result.stderr
    assert "auth=True" not in result.stderr
    assert file.read_bytes() == kept
