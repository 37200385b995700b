"""`mcp-trio tasks`: tasks that earlier commands have left at a server."""

from __future__ import annotations

import json
import re
import signal
import textwrap
from typing import TYPE_CHECKING

import pytest

from mcp_core.runtime import TaskReference
from tests.harness.world.command import (
    GREETER,
    LAB,
    ServerFile,
    Terminal,
    output_of,
    run,
    served,
)

if TYPE_CHECKING:
    from pathlib import Path

D = "2025-11-25"
E = "2026-07-28"
UNKNOWN = TaskReference("0" * 32, "research", E, "2026-11-23T02:53:02Z", 60_000)


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


def detach(*words: str, env: dict[str, str]) -> str:
    """Start a task and return its reference."""
    result = run("call", "--detach", *words, env=env)
    assert result.returncode == 0, result.stderr
    return result.stdout.rstrip("\n")


def test_tasks_get_prints_state(lab: tuple[str, ...], env: dict[str, str]) -> None:
    """The reference alone finds a task that an earlier command left running."""
    reference = detach("research", "topic=owls", "seconds=60", *lab, env=env)
    result = run("tasks", "get", reference, *lab)
    assert result.stdout == "working  research  Reading archive 1 of 2\n"
    assert result.stderr == ""
    assert result.returncode == 0
    document = json.loads(output_of("tasks", "get", "--json", reference, *lab))
    assert document.pop("taskId") == TaskReference.parse(reference).id
    assert document.pop("createdAt") == TaskReference.parse(reference).created
    assert document == {
        "reference": reference,
        "tool": "research",
        "revision": E,
        "status": "working",
        "statusMessage": "Reading archive 1 of 2",
        "ttl": 3_600_000,
    }
    run("tasks", "cancel", reference, *lab)


def test_tasks_get_of_task_that_asks_names_cure(lab: tuple[str, ...], env: dict[str, str]) -> None:
    reference = detach("publish", *lab, env=env)
    result = run("tasks", "get", reference, *lab)
    assert result.stdout == "input_required  publish\n"
    assert "`mcp-trio tasks result` asks you for" in result.stderr
    run("tasks", "cancel", reference, *lab)


@pytest.mark.parametrize("revision", [D, E])
def test_tasks_result_waits_and_prints_result(
    lab: tuple[str, ...], env: dict[str, str], revision: str
) -> None:
    target = "--revision", revision, *lab
    reference = detach("research", "topic=owls", "seconds=1", *target, env=env)
    assert output_of("tasks", "result", reference, target[-1]) == "All about owls\n"
    again = json.loads(output_of("tasks", "result", "--json", reference, target[-1]))
    assert again["content"] == [{"type": "text", "text": "All about owls"}]


@pytest.mark.parametrize("revision", [D, E])
def test_tasks_result_takes_answers(
    lab: tuple[str, ...], env: dict[str, str], revision: str
) -> None:
    target = "--revision", revision, *lab
    reference = detach("publish", *target, env=env)
    result = output_of("tasks", "result", reference, "--answer", "name=Ada", target[-1])
    assert result == "accept {'name': 'Ada'}\n"


def test_tasks_result_asks_at_terminal(lab: tuple[str, ...], env: dict[str, str]) -> None:
    reference = detach("publish", *lab, env=env)
    with Terminal("tasks", "result", reference, *lab) as terminal:
        terminal.type("Ada\n", behind="  text: ")
        assert terminal.rest().endswith("accept {'name': 'Ada'}\n")
    assert terminal.status == 0


def test_tasks_result_is_written_to_file(
    lab: tuple[str, ...], env: dict[str, str], tmp_path: Path
) -> None:
    reference = detach("research", "topic=owls", *lab, env=env)
    path = tmp_path / "owls.txt"
    assert output_of("tasks", "result", reference, "--output", str(path), *lab) == ""
    assert path.read_text() == "All about owls\n"


def test_interrupted_tasks_result_leaves_task(lab: tuple[str, ...], env: dict[str, str]) -> None:
    reference = detach("research", "topic=owls", "seconds=60", *lab, env=env)
    with Terminal("tasks", "result", reference, *lab) as terminal:
        terminal.type("", behind="working")
        terminal.process.send_signal(signal.SIGINT)
        text = terminal.rest()
    assert terminal.status == 130
    assert "mcp-trio: the task goes on" in text
    assert output_of("tasks", "get", reference, *lab).startswith("working")
    run("tasks", "cancel", reference, *lab)


@pytest.mark.parametrize("revision", [D, E])
def test_tasks_cancel_cancels_task_once(
    lab: tuple[str, ...], env: dict[str, str], revision: str
) -> None:
    target = "--revision", revision, *lab
    reference = detach("research", "topic=owls", "seconds=60", *target, env=env)
    result = run("tasks", "cancel", reference, target[-1])
    assert result.returncode == 0
    assert result.stdout.startswith("cancelled  research")
    assert result.stderr == ""
    again = run("tasks", "cancel", reference, target[-1])
    assert again.returncode == 0
    assert again.stderr == "mcp-trio: nothing is cancelled: the task is cancelled\n"


@pytest.mark.parametrize("revision", [D, E])
def test_cancelled_task_exits_with_1(
    lab: tuple[str, ...], env: dict[str, str], revision: str
) -> None:
    target = "--revision", revision, *lab
    reference = detach("research", "topic=owls", "seconds=60", *target, env=env)
    run("tasks", "cancel", reference, target[-1])
    found = run("tasks", "get", reference, target[-1])
    assert (found.returncode, found.stdout[:9]) == (1, "cancelled")
    result = run("tasks", "result", reference, target[-1])
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr.startswith("mcp-trio: the task has no result: ")


@pytest.mark.parametrize("revision", [D, E])
def test_failed_task_exits_with_1(lab: tuple[str, ...], env: dict[str, str], revision: str) -> None:
    target = "--revision", revision, *lab
    reference = detach("fail", "how=error", *target, env=env)
    found = run("tasks", "get", reference, target[-1])
    assert (found.returncode, found.stdout) == (1, "failed  fail  broken\n")
    result = run("tasks", "result", reference, target[-1])
    assert result.returncode == 1
    assert "broken (-32050)" in result.stderr


def test_tasks_list_has_noted_tasks_that_server_knows(
    lab: tuple[str, ...], env: dict[str, str], tmp_path: Path
) -> None:
    """The state directory also notes a task that a restart has lost, and it is skipped silently."""
    first = detach("research", "topic=owls", *lab, env=env)
    second = detach("publish", *lab, env=env)
    # A server that was started again does not know the tasks of the one before.
    [note, _] = sorted(tmp_path.rglob("*.json"))
    content = json.loads(note.read_text())
    (note.parent / "gone.json").write_text(json.dumps({**content, "reference": str(UNKNOWN)}))
    result = run("tasks", "list", *lab, env=env)
    lines = ["completed  research", first, "input_required  publish", second]
    assert result.stdout.splitlines() == lines
    assert result.stderr == ""
    document = json.loads(run("tasks", "list", "--json", *lab, env=env).stdout)
    assert [each["reference"] for each in document["tasks"]] == [first, second]
    run("tasks", "cancel", second, *lab)


def test_tasks_list_forgets_what_server_does_not_know(
    lab: tuple[str, ...], env: dict[str, str], tmp_path: Path, server: ServerFile
) -> None:
    target = server(LAB)
    detach("research", "topic=owls", *target, env=env)
    detach("research", "topic=owls", *lab, env=env)
    assert len(list(tmp_path.rglob("*.json"))) == 2
    result = run("tasks", "list", *target, env=env)
    assert (result.returncode, result.stdout) == (0, "")
    assert len(list(tmp_path.rglob("*.json"))) == 1


def test_tasks_list_asks_server_of_2025_11_25(lab: tuple[str, ...], env: dict[str, str]) -> None:
    target = "--revision", D, *lab
    reference = detach("research", "topic=owls", *target, env=env)
    listed = run("tasks", "list", *target, env=env).stdout.splitlines()
    assert listed[listed.index(reference) - 1] == "completed  research"
    # Without the note of the command the tool is not known, and the task is found all the same.
    listed = run("tasks", "list", *target).stdout.splitlines()
    found = [TaskReference.parse(line) for line in listed if line.startswith("mcp-task:")]
    [task] = [each for each in found if each.id == TaskReference.parse(reference).id]
    assert task.tool == ""
    assert output_of("tasks", "result", str(task), target[-1]) == "All about owls\n"


def test_tasks_list_that_server_refuses_has_noted_tasks(
    env: dict[str, str], tmp_path: Path
) -> None:
    """A server lists no tasks to clients that it cannot tell apart."""
    path = tmp_path / "server.py"
    source = LAB.replace('default: "all"', 'default: ""')
    path.write_text("import mcp_trio\n" + textwrap.dedent(source))
    with served(path) as lab:
        target = "--revision", D, lab.url
        reference = detach("research", "topic=owls", *target, env=env)
        result = run("tasks", "list", "--trace", *target, env=env)
        assert result.stdout.splitlines() == ["completed  research", reference]
        assert "-32601" in result.stderr


def test_tasks_list_names_other_revisions_of_noted_tasks(
    lab: tuple[str, ...], env: dict[str, str]
) -> None:
    target = "--revision", D, *lab
    detach("research", "topic=owls", *target, env=env)
    result = run("tasks", "list", target[-1], env=env)
    assert result.stdout == ""
    assert result.stderr == (
        "mcp-trio: there are tasks of revision 2025-11-25, too: --revision 2025-11-25 lists them\n"
    )


@pytest.mark.parametrize("revision", [D, E, "2025-06-18"])
def test_tasks_list_of_server_without_tasks_exits_with_2(revision: str) -> None:
    result = run("tasks", "list", "--revision", revision, *GREETER)
    assert result.returncode == 2
    assert result.stderr == f"mcp-trio: the server has no tasks in revision {revision}\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["get"], "needs the reference of one task"),
        (["get", str(UNKNOWN), str(UNKNOWN)], "needs the reference of one task"),
        (["list", str(UNKNOWN)], "tasks list takes no reference"),
        (["get", str(UNKNOWN)[:-3]], "was cut or altered"),
        (["get", str(UNKNOWN)[11:]], "begins with mcp-task:1:"),
        (["get", "\x1b[31m"], "'\\x1b[31m' is not the reference of a task"),
        (["cancel", "--output", "x", str(UNKNOWN)], "tasks cancel writes no file"),
        (["get", "--revision", D, str(UNKNOWN)], "leave --revision out"),
        (["get", str(TaskReference("1", "", "1999-01-01", ""))], "does not speak"),
        (["forget", str(UNKNOWN)], "invalid choice"),
    ],
)
def test_tasks_with_bad_words_is_misuse(lab: tuple[str, ...], words: list[str], text: str) -> None:
    result = run("tasks", *words, *lab)
    assert result.returncode == 2
    assert text in result.stderr
    assert "\x1b" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("action", ["get", "result", "cancel"])
@pytest.mark.parametrize("identifier", ["0" * 32, "", "\r\nX-Y: 1", "é" * 500])
def test_task_that_server_does_not_know_exits_with_1(
    lab: tuple[str, ...], action: str, identifier: str
) -> None:
    reference = str(TaskReference(identifier, "research", E, "", 1))
    result = run("tasks", action, reference, *lab)
    assert result.returncode == 1
    assert "mcp-trio: the server has no such task: its time is over" in result.stderr


@pytest.mark.parametrize("action", ["get", "result", "cancel"])
def test_task_of_server_without_tasks_exits_with_2(greeter: tuple[str, ...], action: str) -> None:
    result = run("tasks", action, str(UNKNOWN), *greeter)
    assert result.returncode == 2
    assert result.stderr == f"mcp-trio: the server has no tasks in revision {E}\n"


def test_task_of_revision_that_server_does_not_speak_exits_with_2(server: ServerFile) -> None:
    target = server(LAB.replace('"lab"', '"lab", versions=["2025-11-25"]'))
    result = run("tasks", "get", str(UNKNOWN), *target)
    assert result.returncode == 2
    assert f"the task is of revision {E}, and the server speaks {D}" in result.stderr


@pytest.mark.parametrize("words", [("tasks", "get"), ("call", "work")])
def test_timeout_applies_to_polls_of_task(server: ServerFile, words: tuple[str, ...]) -> None:
    """The task store hangs, so without the option the command would wait forever."""
    server("""
        import trio
        from mcp_core.runtime.tasks import MemoryTaskStore

        class SilentStore(MemoryTaskStore):
            immediate = False

            async def get(self, key):
                await trio.sleep_forever()

        server = mcp_trio.Server("silent", tasks=mcp_trio.Tasks(store=SilentStore()))

        @server.tool(task="optional")
        async def work() -> str:
            "Work."
            await trio.sleep_forever()
    """)
    if words[0] == "tasks":
        words = (*words, str(UNKNOWN))
    with served(server.path) as site:  # over stdio the time would be the start's, too
        result = run(*words, "--timeout", "1.5", site.url)
    assert result.returncode == 3
    assert "no answer to tasks/get within 1.5 s" in result.stderr
    assert "a larger --timeout allows more time" in result.stderr


def test_result_of_task_of_unknown_tool_gets_name_of_file(
    lab: tuple[str, ...], env: dict[str, str], tmp_path: Path
) -> None:
    """A reference that `tasks list` prints in 2025-11-25 may name no tool."""
    target = "--revision", D, *lab
    reference = TaskReference.parse(detach("draw", *target, env=env))
    unnamed = str(TaskReference(reference.id, "", D, reference.created))
    (tmp_path / "out").mkdir()
    output_of("tasks", "result", unnamed, "--output", str(tmp_path / "out"), lab[-1])
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["task.png"]


def test_tasks_without_server_names_it() -> None:
    result = run("tasks", "get", str(UNKNOWN))
    assert result.returncode == 2
    assert "mcp-trio tasks get REFERENCE http://127.0.0.1:8000/mcp" in result.stderr


def test_tasks_help_lists_actions() -> None:
    text = output_of("tasks", "--help")
    assert "mcp-trio tasks ACTION [REFERENCE] [options] URL" in text
    assert re.search(r"ACTION +get, result, cancel, list", text)
