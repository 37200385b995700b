"""Calls that the server runs as tasks: followed, interrupted, and left."""

from __future__ import annotations

import json
import re
import signal
from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING, Any

import pytest

from mcp_trio.cli._screen import Screen
from mcp_trio.cli.use._following import _cancel
from tests.harness.world.command import (
    LAB,
    ServerFile,
    Terminal,
    output_of,
    run,
)
from tests.harness.world.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

D = ("--revision", "2025-11-25")
E = ("--revision", "2026-07-28")
REFERENCE = re.compile(r"^mcp-task:1:[\w-]+$", re.MULTILINE)


def methods(trace: str) -> list[str]:
    """Return the methods of the messages that were sent."""
    lines = [line.removeprefix("→ ") for line in trace.splitlines() if line.startswith("→ ")]
    return [json.loads(line)["method"] for line in lines]


@pytest.mark.parametrize("revision", [D, E])
def test_call_of_task_prints_its_result(lab: tuple[str, ...], revision: tuple[str, str]) -> None:
    result = run("call", "publish", "--answer", "name=Ada", *revision, *lab)
    assert result.stdout == "accept {'name': 'Ada'}\n"
    assert result.stderr == ""
    assert result.returncode == 0


def test_call_of_task_traces_its_polls(lab: tuple[str, ...]) -> None:
    result = run("call", "research", "topic=owls", "seconds=0.7", "--trace", *E, *lab)
    assert methods(result.stderr)[-2:] == ["tasks/get", "tasks/get"]


@pytest.mark.parametrize(
    ("revision", "expected"),
    [
        (D, ["tools/list", "tools/call"]),
        (E, ["tools/list", "tools/call"]),
        (("--revision", "2025-06-18"), ["tools/list", "tools/call"]),
    ],
)
def test_ordinary_call_sends_nothing_about_tasks(
    lab: tuple[str, ...], revision: tuple[str, str], expected: list[str]
) -> None:
    result = run("call", "plain", "--trace", *revision, *lab)
    assert result.stdout == "plain\n"
    assert methods(result.stderr)[-2:] == expected


def test_call_of_optional_tool_is_no_task_in_2025_11_25(lab: tuple[str, ...]) -> None:
    result = run("call", "research", "topic=owls", "--trace", *D, *lab)
    assert result.stdout == "All about owls\n"
    assert "tasks/get" not in result.stderr


@pytest.mark.parametrize("revision", [D, E])
@pytest.mark.parametrize(
    ("how", "text"),
    [
        ("tool", "reported an error"),
        ("error", "broken (-32050)"),
    ],
)
def test_call_of_task_that_fails_exits_with_1(
    lab: tuple[str, ...], revision: tuple[str, str], how: str, text: str
) -> None:
    result = run("call", "fail", f"how={how}", *revision, *lab)
    assert result.returncode == 1
    assert text in result.stderr
    assert result.stdout == ("The oven is cold.\n" if how == "tool" else "")


@pytest.mark.parametrize("revision", [D, E])
def test_question_of_task_is_asked_at_terminal(
    lab: tuple[str, ...], revision: tuple[str, str]
) -> None:
    with Terminal("call", "publish", *revision, *lab) as terminal:
        terminal.type("Ada\n", behind="  text: ")
        seen = terminal.rest()
    assert "accept {'name': 'Ada'}" in seen
    assert terminal.status == 0


def interrupted(*words: str, number: signal.Signals, state: Path) -> tuple[str, int]:
    with Terminal("call", *words, XDG_STATE_HOME=str(state)) as terminal:
        terminal.type("", behind="working")
        terminal.process.send_signal(number)
        text = terminal.rest()
    return text, terminal.status


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_interrupted_call_cancels_its_task(
    lab: tuple[str, ...], tmp_path: Path, number: signal.Signals, status: int
) -> None:
    words = "research", "topic=owls", "seconds=60", *E, *lab
    text, found = interrupted(*words, number=number, state=tmp_path)
    assert found == status
    assert re.search(r"^.*mcp-trio: task [0-9a-f]{8} is cancelled$", text, re.MULTILINE)
    assert not list(tmp_path.rglob("*.json"))


class FoundTask:
    """A task whose cancellation finds the server in `status`."""

    id = "0123456789"
    reference = "mcp-task:1:e30"

    def __init__(self, status: str) -> None:
        self.status = status
        self.ended = status != "working"

    async def cancel(self) -> None:
        """Do nothing: the response was an acknowledgement, or the task had ended."""


@pytest.mark.parametrize(
    ("status", "shown"),
    [("working", "cancelled"), ("cancelled", "cancelled"), ("completed", "completed")],
)
async def test_interrupted_call_names_status_of_task_that_had_ended(
    status: str, shown: str
) -> None:
    with TextIOWrapper(BytesIO(), "utf-8") as file:
        found: Any = FoundTask(status)
        await _cancel(found, Screen(file))
        file.seek(0)
        assert file.read() == f"mcp-trio: task 01234567 is {shown}\n"


def test_interrupted_call_with_keep_leaves_its_task(lab: tuple[str, ...], tmp_path: Path) -> None:
    words = "research", "topic=owls", "seconds=60", "--keep", *E, *lab
    text, status = interrupted(*words, number=signal.SIGINT, state=tmp_path)
    assert status == 130
    assert "mcp-trio: the task goes on; its reference:\n" in text
    [reference] = REFERENCE.findall(text)
    env = {"XDG_STATE_HOME": str(tmp_path)}
    listed = run("tasks", "list", *lab, env=env)
    assert reference in listed.stdout.splitlines()
    assert run("tasks", "get", reference, *lab).stdout.startswith("working  research")
    assert run("tasks", "cancel", reference, *lab).returncode == 0


def test_interrupted_call_whose_task_cannot_be_cancelled_prints_reference(
    server: ServerFile, tmp_path: Path
) -> None:
    """The blocked server never answers the cancellation, so the user keeps a way to try again."""
    known, blocked = tmp_path / "known", tmp_path / "blocked"
    target = server(f"""
        import pathlib, time, trio
        server = mcp_trio.Server("stuck")

        @server.tool(task="optional")
        async def work() -> str:
            "Block the server, once the client knows the task."
            while not pathlib.Path({str(known)!r}).exists():
                await trio.sleep(0.01)
            pathlib.Path({str(blocked)!r}).touch()
            time.sleep(60)
    """)
    with Terminal("call", "work", *E, *target, XDG_STATE_HOME=str(tmp_path)) as terminal:
        terminal.type("", behind="working")
        known.touch()
        wait_until(blocked.exists)
        terminal.process.send_signal(signal.SIGINT)
        text = terminal.rest()
    assert "could not be cancelled" in text
    assert REFERENCE.search(text)
    assert terminal.status == 130


def test_detached_call_prints_reference_only(lab: tuple[str, ...], tmp_path: Path) -> None:
    words = "call", "--detach", "research", "topic=owls", *lab
    result = run(*words, env={"XDG_STATE_HOME": str(tmp_path)})
    assert result.returncode == 0
    assert result.stderr == ""
    assert REFERENCE.fullmatch(result.stdout.rstrip("\n"))
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_detached_call_with_json_prints_document(lab: tuple[str, ...], tmp_path: Path) -> None:
    words = "call", "--detach", "--json", "publish", *lab
    result = run(*words, env={"XDG_STATE_HOME": str(tmp_path)})
    document = json.loads(result.stdout)
    assert REFERENCE.fullmatch(document["reference"])
    assert document["tool"] == "publish"
    assert document["revision"] == "2026-07-28"
    assert document["status"] in ("working", "input_required")
    assert document["ttl"] == 3_600_000
    assert re.fullmatch(r"[0-9a-f]{32}", document["taskId"])


def test_detached_call_that_cannot_note_the_task_reports_that(lab: tuple[str, ...]) -> None:
    result = run("call", "--detach", "research", "topic=owls", *lab)
    assert result.returncode == 0
    assert REFERENCE.fullmatch(result.stdout.rstrip("\n"))
    assert "mcp-trio: `mcp-trio tasks list` will not find the task:" in result.stderr


def test_detached_call_that_is_answered_at_once_prints_result(lab: tuple[str, ...]) -> None:
    result = run("call", "--detach", "plain", *E, *lab)
    assert result.stdout == "plain\n"
    assert result.stderr == "mcp-trio: the server answered at once, without a task\n"
    assert result.returncode == 0


@pytest.mark.parametrize(
    ("revision", "text"),
    [("2025-11-25", "the tool 'plain' does not run as a task"), ("2025-06-18", "has no tasks")],
)
def test_detached_call_of_tool_that_is_no_task_is_misuse(
    lab: tuple[str, ...], revision: str, text: str
) -> None:
    result = run("call", "--detach", "plain", "--revision", revision, *lab)
    assert result.returncode == 2
    assert text in result.stderr
    assert result.stdout == ""


def test_detached_call_of_started_server_warns_that_the_task_ends(
    server: ServerFile, tmp_path: Path
) -> None:
    target = server(LAB)
    words = "call", "--detach", "research", "topic=owls", "seconds=60", *target
    result = run(*words, env={"XDG_STATE_HOME": str(tmp_path)})
    assert result.returncode == 0
    assert "the server ends with this command, and the task with it" in result.stderr
    reference = result.stdout.rstrip("\n")
    found = run("tasks", "get", reference, *target)
    assert found.returncode == 1
    assert "the server has no such task" in found.stderr


@pytest.mark.parametrize("headers", [[], ["--header", "Authorization: Bearer abc"]])
def test_detached_call_of_2025_11_25_warns_unless_it_is_authorized(
    lab: tuple[str, ...], tmp_path: Path, headers: list[str]
) -> None:
    words = "call", "--detach", "research", "topic=owls", *headers, *D, *lab
    result = run(*words, env={"XDG_STATE_HOME": str(tmp_path)})
    assert REFERENCE.fullmatch(result.stdout.rstrip("\n"))
    assert ("may cancel the task at the end of this session" in result.stderr) == (not headers)


def test_detached_call_with_output_is_misuse(lab: tuple[str, ...]) -> None:
    result = run("call", "--detach", "--output", "x", "plain", *lab)
    assert result.returncode == 2
    assert "--detach prints no result for --output" in result.stderr


def test_detached_call_lets_its_task_ask(lab: tuple[str, ...], tmp_path: Path) -> None:
    """The client of the call declares forms, although it has no terminal and no `--answer`."""
    target = lab
    env = {"XDG_STATE_HOME": str(tmp_path)}
    reference = run("call", "--detach", "publish", *target, env=env).stdout.rstrip("\n")
    assert output_of("tasks", "result", reference, "--answer", "name=Ada", *target) == (
        "accept {'name': 'Ada'}\n"
    )
