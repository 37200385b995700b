"""`mcp-trio replay`: as server and as client of recorded conversations, with programs."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from mcp_core.trace import TraceLine, TruncatedMessage
from mcp_trio.cli import main
from tests.core.trace.judge.conversations import C, S, Sent, ask, result
from tests.core.trace.replay.traces import CALL, HANDSHAKE
from tests.harness.world.command import (
    DEAD,
    GREETER,
    SILENT,
    TEAHOUSE,
    run,
)
from tests.trio_.cli.oracle.test_diff import written

if TYPE_CHECKING:
    from pathlib import Path

REPLAY = ("--", sys.executable, "-m", "mcp_trio", "replay")
BREW = ("call", "brew", "tea=oolong", "minutes=1")
CALLED = "mcp-trio: replay calls tools again, with all that they do: 1 calls\n"
SAME = "3 messages sent, 3 requests answered, 0 not: 0 differences, 0 findings\n"


@pytest.fixture(scope="module")
def brewed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The trace of a call with progress."""
    path = tmp_path_factory.mktemp("traces") / "brew.mcp.jsonl"
    assert run(*BREW, "--record", str(path), *TEAHOUSE).returncode == 0
    return str(path)


def test_replay_as_server_answers_as_recorded(brewed: str) -> None:
    done = run(*BREW, *REPLAY, brewed)
    assert (done.returncode, done.stdout) == (0, "A pot of oolong, steeped for 1 minutes.\n")
    assert "0 of 1" in done.stderr  # progress


def test_replay_as_server_names_what_is_missing(brewed: str) -> None:
    done = run("call", "brew", "tea=oolong", "minutes=2", *REPLAY, brewed)
    assert done.returncode == 1
    assert "which differs at /params/arguments/minutes" in done.stderr


def test_replay_as_server_ignores_what_may_differ(brewed: str) -> None:
    ignoring = (*REPLAY, "--ignore", "/params/arguments/minutes", brewed)
    done = run("call", "brew", "tea=oolong", "minutes=2", *ignoring)
    assert (done.returncode, done.stdout) == (0, "A pot of oolong, steeped for 1 minutes.\n")


def test_replay_as_client_of_same_server_finds_nothing(brewed: str) -> None:
    done = run("replay", brewed, *TEAHOUSE)
    assert (done.returncode, done.stdout, done.stderr) == (0, SAME, CALLED)


def test_replay_as_client_of_url_finds_nothing(brewed: str, teahouse: tuple[str, ...]) -> None:
    done = run("replay", brewed, *teahouse)
    assert (done.returncode, done.stdout) == (0, SAME)


def test_replay_as_client_of_its_own_server_finds_nothing(brewed: str) -> None:
    done = run("replay", brewed, *REPLAY, brewed)
    assert (done.returncode, done.stdout) == (0, SAME)


def test_replay_as_client_of_another_server_finds_differences(brewed: str, tmp_path: Path) -> None:
    new = tmp_path / "new.mcp.jsonl"
    done = run("replay", brewed, "--record", str(new), "--json", *GREETER)
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["count"] == len(document["differences"]) > 0
    assert (document["sent"], document["findings"]) == (3, [])
    assert run("diff", brewed, str(new)).returncode == 1


@pytest.mark.parametrize(
    ("target", "cause"),
    [
        (DEAD, "the server ended the conversation before line"),
        (SILENT, "no response to server/discover within"),
        (("--", "no-such-program"), "cannot start no-such-program"),
        (("http://127.0.0.1:9/mcp",), "127.0.0.1:9"),
    ],
    ids=["dead", "silent", "missing", "refused"],
)
def test_replay_without_conversation_ends_with_status_3(
    brewed: str, target: tuple[str, ...], cause: str
) -> None:
    done = run("replay", brewed, "--response-timeout", "1", *target)
    assert done.returncode == 3
    assert "no conversation: " in done.stderr
    assert cause in done.stderr


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (("--pace", "1", "http://127.0.0.1:9/mcp"), "--pace is for the server of FILE"),
        (("--meta",), "--meta is for the client of FILE"),
        (("--ignore", "result"), "--ignore: 'result' is not a JSON pointer"),
        (("--json",), "--json is for the client of FILE"),
        (("http://mcp.example.com/mcp",), "add --allow-remote to send it"),
        (("ws://127.0.0.1:9/mcp",), "not WebSockets: give the http:// URL of the server, or its"),
        (
            ("--header", "Authorization: x", "--allow-remote", "http://mcp.example.com/"),
            "unencrypted",
        ),
        (("nothing",), "nothing is not a server"),
        (("ftp://x",), "not supported"),
        (("--",), "no command after --"),
        (("--response-timeout", "0", "x.py"), "give seconds above 0"),
        (("--pace", "-1"), "not a factor"),
        (("--server", "a", "--http", "8000"), "--http is for the server of FILE: leave the server"),
        (("--server", "a", "--pace", "1"), "--pace is for the server of FILE: leave the server"),
        (("--server", "a", "--env", "A=1"), "--env is not for a server of the configuration files"),
        (("--server", "a", "x.py"), "give a server, or --server and --config, and not both"),
    ],
)
def test_replay_misuse_ends_with_status_2(
    options: tuple[str, ...], cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = written(tmp_path, "a.mcp.jsonl", CALL)
    try:
        status = main(["replay", trace, *options])
    except SystemExit as exc:
        status = exc.code if isinstance(exc.code, int) else -1
    assert (status, cause in capsys.readouterr().err) == (2, True)


def test_replay_of_truncated_request_ends_with_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = TraceLine(
        t=0.0,
        sender="client",
        raw='{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"na',
        truncated=TruncatedMessage(size=9_999_999),
    )
    trace = written(tmp_path, "a.mcp.jsonl", [Sent("client", cut)])
    assert main(["replay", trace, "http://127.0.0.1:9/mcp"]) == 2
    assert "line 2 was recorded in part" in capsys.readouterr().err


def test_replay_does_not_replace_the_trace_that_it_plays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = written(tmp_path, "a.mcp.jsonl", CALL)
    assert main(["replay", trace, "--record", trace, "http://127.0.0.1:9/mcp"]) == 2
    assert "--record would replace" in capsys.readouterr().err


def test_replay_as_client_judges_the_server(tmp_path: Path) -> None:
    """A server that answers pings twice breaks a rule, unless the trace already shows it."""
    once = [*HANDSHAKE, C(ask(1, "ping")), S(result(1)), C(ask(2, "ping")), S(result(2))]
    trace = written(tmp_path, "a.mcp.jsonl", once)
    server = tmp_path / "twice.py"
    server.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    if 'id' in message:\n"
        "        info = {'name': 'x', 'version': '1'}\n"
        "        version = '2025-11-25'\n"
        "        result = {'protocolVersion': version, 'capabilities': {}, 'serverInfo': info}\n"
        "        found = {'jsonrpc': '2.0', 'id': message['id'],\n"
        "                 'result': result if message['method'] == 'initialize' else {}}\n"
        "        for _ in range(2 if message['method'] == 'ping' else 1):\n"
        "            print(json.dumps(found), flush=True)\n"
    )
    done = run("replay", trace, "--", sys.executable, "-S", str(server))
    assert done.returncode == 1
    assert "RPC-7" in done.stdout
    known = [*once[:5], once[4], *once[5:], once[6]]
    trace = written(tmp_path, "b.mcp.jsonl", known)
    done = run("replay", trace, "--", sys.executable, "-S", str(server))
    assert "0 findings (" in done.stdout


def cases_of(path: Path) -> list[tuple[str, str, str]]:
    """Return the name of each test case, with the tag and message of what is in it."""
    suite = ET.parse(path).getroot()[0]
    found = []
    for case in suite:
        inner = next(iter(case), ET.Element(""))
        found.append((case.get("name", ""), inner.tag, inner.get("message", "")))
    assert int(suite.get("tests", "")) == len(found)
    return found


def test_replay_as_client_writes_a_report_of_junit(brewed: str, tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    done = run("replay", brewed, "--junit", str(junit), *REPLAY, brewed)
    assert done.returncode == 0
    assert cases_of(junit) == [("3 responses are as recorded", "", "")]
    done = run("replay", brewed, "--junit", str(junit), *GREETER)
    assert done.returncode == 1
    faults = cases_of(junit)
    assert {tag for _, tag, _ in faults} == {"failure"}
    assert any(name.startswith("tools/") and "line" in text for name, _, text in faults)
    done = run("replay", brewed, "--junit", str(junit), "--response-timeout", "1", *DEAD)
    assert done.returncode == 3
    ((name, tag, text),) = cases_of(junit)
    assert (name, tag, text.partition(":")[0]) == ("it was replayed", "error", "no conversation")
