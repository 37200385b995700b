"""`mcp-trio tasks`, and calls that become tasks, in memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import trio

import mcp_trio
from mcp_core import McpError, ToolError
from mcp_core.runtime import TaskReference
from mcp_trio.cli._session import Target
from mcp_trio.cli.state._noted_tasks import NotedTasks
from tests.trio_.cli.in_memory import AnsweringServer

if TYPE_CHECKING:
    from pathlib import Path

    from tests.trio_.cli.in_memory import MemoryCommand

D, E = "2025-11-25", "2026-07-28"
CREATED = "2026-11-23T02:53:02Z"
CAPABILITIES: dict[str, Any] = {
    "tools": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}},
}
NO_TASKS: dict[str, Any] = {"tools": {}}
REFERENCE = TaskReference("abcdefghijk", "look", D, CREATED, 60_000)
NEWER = str(TaskReference("abcdefghijk", "look", E, CREATED, 60_000))


@pytest.fixture(autouse=True)
def state_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def state(status: str, **more: Any) -> dict[str, Any]:
    times = {"createdAt": CREATED, "lastUpdatedAt": CREATED, "ttl": 60_000}
    return {"taskId": REFERENCE.id, "status": status, **times, **more}


def document(status: str, *, tool: str = "look", **more: Any) -> dict[str, Any]:
    reference = TaskReference(REFERENCE.id, tool, D, CREATED, 60_000)
    return {
        "reference": str(reference),
        "tool": tool,
        "revision": D,
        "taskId": REFERENCE.id,
        "status": status,
        "createdAt": CREATED,
        "ttl": 60_000,
        **more,
    }


def error(code: int, message: str = "no") -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}


def answer(
    command: MemoryCommand, *, capabilities: Any = CAPABILITIES, version: str = D, **answers: Any
) -> AnsweringServer:
    methods = {name.replace("_", "/"): each for name, each in answers.items()}
    command.server = server = AnsweringServer(capabilities, methods, version=version)
    return server


@pytest.mark.parametrize(
    ("found", "status", "out", "err"),
    [
        (state("working"), 0, "working  look", ""),
        (state("working", statusMessage="a\nb"), 0, "working  look  a\\nb", ""),
        (
            state("input_required"),
            0,
            "input_required  look",
            "it waits for an answer, which `mcp-trio tasks result` asks you for",
        ),
        (state("completed"), 0, "completed  look", ""),
        (state("failed", statusMessage="m" * 1000), 1, f"failed  look  {'m' * 1000}", ""),
        (state("cancelled"), 1, "cancelled  look", ""),
    ],
)
def test_tasks_get_prints_the_state_and_fails_if_the_task_has(
    found: Any, status: int, out: str, err: str, in_memory: MemoryCommand
) -> None:
    answer(in_memory, tasks_get=found)
    line = f"mcp-trio: {err}\n" if err else ""
    assert in_memory("tasks", "get", str(REFERENCE)) == (status, f"{out}\n", line)
    shown = in_memory("tasks", "get", str(REFERENCE), "--json")
    message = {} if "statusMessage" not in found else {"statusMessage": found["statusMessage"]}
    assert json.loads(shown.out) == document(found["status"], **message)
    assert (shown.status, shown.err) == (status, line)


def test_tasks_get_shortens_a_long_message(in_memory: MemoryCommand) -> None:
    answer(in_memory, tasks_get=state("working", statusMessage="m" * 1001))
    out = in_memory("tasks", "get", str(REFERENCE)).out
    assert 900 < out.count("m") < 1001


@pytest.mark.parametrize(
    ("words", "answers", "status", "complaint"),
    [
        (
            ["get", str(REFERENCE)],
            {"tasks_get": error(-32602)},
            1,
            (
                "the server has no such task: its time is over, or it is a task of another server"
                " or of another user; the server answered with an error: no (-32602)"
            ),
        ),
        (
            ["get", str(REFERENCE)],
            {"tasks_get": error(-32603)},
            1,
            "the server answered with an error: no (-32603)",
        ),
        (
            ["get", str(REFERENCE)],
            {"capabilities": NO_TASKS},
            2,
            "the server has no tasks in revision 2025-11-25",
        ),
        (
            ["get", str(REFERENCE)],
            {"capabilities": NO_TASKS, "version": "2025-06-18"},
            2,
            (
                "the task is of revision 2025-11-25, and the server speaks 2025-06-18: it is a task"
                " of another server, or the server was replaced"
            ),
        ),
        (
            ["cancel", NEWER],
            {},
            2,
            (
                "the task is of revision 2026-07-28, and the server speaks 2025-11-25: it is a task"
                " of another server, or the server was replaced"
            ),
        ),
        (
            ["result", str(REFERENCE), "--revision", "2025-06-18"],
            {},
            2,
            "the task is of revision 2025-11-25, and no other finds it: leave --revision out",
        ),
        (
            ["get"],
            {},
            2,
            (
                "tasks get needs the reference of one task: `mcp-trio call --detach` and `mcp-trio"
                " tasks list` print it"
            ),
        ),
        (
            ["cancel", NEWER, NEWER],
            {},
            2,
            (
                "tasks cancel needs the reference of one task: `mcp-trio call --detach` and"
                " `mcp-trio tasks list` print it"
            ),
        ),
        (
            ["list", NEWER],
            {},
            2,
            "tasks list takes no reference; tasks get shows a single task",
        ),
        (
            ["get", NEWER, "--output", "x"],
            {},
            2,
            "tasks get writes no file: use --output with tasks result",
        ),
        (
            ["get", "mcp-task:" + "x" * 100],
            {},
            2,
            (
                f"'mcp-task:{'x' * 51}… (109 characters)' is not the reference of a task: a"
                " reference of a task begins with mcp-task:1:"
            ),
        ),
        (
            ["list"],
            {"tasks_list": error(-32600)},
            1,
            "the server answered with an error: no (-32600)",
        ),
        (
            ["list"],
            {"capabilities": NO_TASKS},
            2,
            "the server has no tasks in revision 2025-11-25",
        ),
    ],
)
def test_tasks_error_says_what_is_wrong(
    words: list[str], answers: Any, status: int, complaint: str, in_memory: MemoryCommand
) -> None:
    answer(in_memory, **answers)
    assert in_memory("tasks", *words) == (status, "", f"mcp-trio: {complaint}\n")


def test_tasks_result_waits_for_the_end(in_memory: MemoryCommand, tmp_path: Path) -> None:
    """The result goes to a file, as with `call`, and errors are not written."""
    content = {"content": [{"type": "text", "text": "hi"}]}
    server = answer(
        in_memory, tasks_get=[state("working"), state("completed")], tasks_result=content
    )
    path = tmp_path / "it"
    words = ["tasks", "result", str(REFERENCE), "--output", str(path)]
    assert in_memory(*words) == (0, "", "")
    assert path.read_bytes() == b"hi\n"
    assert [method for method, _ in server.requests][-1] == "tasks/result"
    answer(in_memory, tasks_get=state("completed"), tasks_result={**content, "isError": True})
    shown = in_memory("tasks", "result", str(REFERENCE))
    assert shown == (1, "hi\n", "mcp-trio: the tool look reported an error\n")
    answer(in_memory, tasks_get=state("cancelled", statusMessage="b"))
    shown = in_memory("tasks", "result", str(REFERENCE))
    assert shown == (1, "", "mcp-trio: the task has no result: b\n")


@pytest.mark.parametrize(
    ("states", "out", "err"),
    [
        (["working", "cancelled"], "cancelled  look\n", ""),
        (["working", "working"], "working  look\n", "the server is still ending the task"),
        (["completed"], "completed  look\n", "nothing is cancelled: the task is completed"),
    ],
)
def test_tasks_cancel_prints_the_state_after_it(
    states: list[str], out: str, err: str, in_memory: MemoryCommand
) -> None:
    found = [state(each) for each in states]
    server = answer(in_memory, tasks_get=found, tasks_cancel=state(states[-1]))
    line = f"mcp-trio: {err}\n" if err else ""
    assert in_memory("tasks", "cancel", str(REFERENCE)) == (0, out, line)
    cancelled = [method for method, _ in server.requests if method == "tasks/cancel"]
    assert len(cancelled) == (len(states) > 1)


def note(reference: TaskReference) -> NotedTasks:
    noted = NotedTasks(Target(server=("it",)))
    noted.add(reference)
    return noted


def test_tasks_list_has_what_the_server_lists_and_the_noted_tool(in_memory: MemoryCommand) -> None:
    """A noted task that the server doesn't list is forgotten."""
    gone = TaskReference("gone", "look", D, CREATED, 60_000)
    noted = note(gone)
    answer(in_memory, tasks_list={"tasks": [state("working", statusMessage="m")]})
    unnamed = document("working", tool="", statusMessage="m")
    assert in_memory("tasks", "list") == (0, f"working  m\n{unnamed['reference']}\n", "")
    assert noted.load() == []
    note(REFERENCE)
    assert in_memory("tasks", "list") == (0, f"working  look  m\n{REFERENCE}\n", "")
    shown = in_memory("tasks", "list", "--json")
    assert json.loads(shown.out) == {"tasks": [document("working", statusMessage="m")]}
    assert noted.load() == [REFERENCE]


@pytest.mark.parametrize(
    "answers",
    [
        {"tasks_list": error(-32601)},
        {"capabilities": {**CAPABILITIES, "tasks": {"cancel": {}}}},
    ],
)
def test_tasks_list_looks_noted_tasks_up_if_the_server_lists_none(
    answers: Any, in_memory: MemoryCommand
) -> None:
    noted = note(REFERENCE)
    answer(in_memory, **answers, tasks_get=state("working"))
    assert in_memory("tasks", "list") == (0, f"working  look\n{REFERENCE}\n", "")
    answer(in_memory, **answers, tasks_get=error(-32603))
    assert in_memory("tasks", "list").status == 1
    assert noted.load() == [REFERENCE]
    answer(in_memory, **answers, tasks_get=error(-32602))
    assert in_memory("tasks", "list") == (0, "", "")
    assert noted.load() == []


def test_tasks_list_names_the_other_revisions_of_noted_tasks(in_memory: MemoryCommand) -> None:
    note(TaskReference("other", "look", E, CREATED, 60_000))
    answer(in_memory, tasks_list={"tasks": []})
    assert in_memory("tasks", "list") == (
        0,
        "",
        (
            "mcp-trio: there are tasks of revision 2026-07-28, too: --revision 2026-07-28 lists"
            " them\n"
        ),
    )


# -- Calls that become tasks -----------------------------------------------------------------------

ENDS = (
    "mcp-trio: the server ends with this command, and the task with it, unless the server stores"
    " its tasks\n"
)


@pytest.fixture
def lab(in_memory: MemoryCommand) -> MemoryCommand:
    server = mcp_trio.Server("lab", tasks=mcp_trio.Tasks(owner=lambda request, default: "all"))

    @server.tool(task="optional", description="Text.")
    async def research(topic: str, context: mcp_trio.Context) -> str:
        await context.progress(1, 2, "Reading")
        await trio.lowlevel.checkpoint()
        return f"All about {topic}"

    @server.tool(task="required", description="Text.")
    async def publish() -> str:
        return "published"

    @server.tool(task="required", description="Text.")
    async def fail(how: str) -> str:
        if how == "tool":
            raise ToolError("The oven is cold.")
        raise McpError(-32050, "broken")

    @server.tool(description="Text.")
    async def plain() -> str:
        return "plain"

    in_memory.server = server
    return in_memory


@pytest.mark.parametrize("revision", [D, E])
@pytest.mark.parametrize(
    ("words", "status", "out", "err"),
    [
        (["research", "topic=a"], 0, "All about a\n", ""),
        (["publish"], 0, "published\n", ""),
        (["plain"], 0, "plain\n", ""),
        (["fail", "how=tool"], 1, "The oven is cold.\n", "the tool fail reported an error"),
        (["fail", "how=x"], 1, "", "the server answered with an error: broken (-32050)"),
    ],
)
def test_call_of_a_task_is_followed_to_its_result(
    words: list[str], status: int, out: str, err: str, revision: str, lab: MemoryCommand
) -> None:
    """In 2025-11-25 a tool that need not be a task isn't one, and reports progress."""
    progress = "1 of 2  Reading\n" if (words[0], revision) == ("research", D) else ""
    line = f"mcp-trio: {err}\n" if err else ""
    assert lab("call", *words, "--revision", revision) == (status, out, progress + line)


@pytest.mark.parametrize("revision", [D, E])
def test_call_detached_prints_the_reference_and_notes_it(revision: str, lab: MemoryCommand) -> None:
    status, out, err = lab("call", "publish", "--detach", "--revision", revision)
    reference = TaskReference.parse(out.rstrip("\n"))
    assert (status, err) == (0, ENDS)
    assert (reference.tool, reference.revision) == ("publish", revision)
    noted = NotedTasks(Target(server=("it",)))
    assert noted.load() == [reference]
    found = json.loads(lab("call", "publish", "--detach", "--json", "--revision", revision).out)
    assert (found["tool"], found["revision"]) == ("publish", revision)
    assert TaskReference.parse(found["reference"]).id == found["taskId"]
    assert len(noted.load()) == 2


def test_call_detached_of_a_tool_that_is_no_task(lab: MemoryCommand) -> None:
    assert lab("call", "plain", "--detach", "--revision", E) == (
        0,
        "plain\n",
        "mcp-trio: the server answered at once, without a task\n",
    )
    assert lab("call", "plain", "--detach", "--revision", D) == (
        2,
        "",
        (
            "mcp-trio: the tool 'plain' does not run as a task; `mcp-trio inspect` shows what the"
            " server can do\n"
        ),
    )


def test_call_detached_without_a_place_for_notes_says_so(
    lab: MemoryCommand, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    status, out, err = lab("call", "publish", "--detach")
    assert (status, out.startswith("mcp-task:1:")) == (0, True)
    assert err.startswith("mcp-trio: `mcp-trio tasks list` will not find the task: ")
    assert err.endswith(ENDS)


def test_call_detached_declares_forms_for_who_follows_the_task(lab: MemoryCommand) -> None:
    lab("call", "publish", "--detach")
    assert "on_elicit" in lab.launches[-1][1]
    lab("call", "publish")
    assert "on_elicit" not in lab.launches[-1][1]
