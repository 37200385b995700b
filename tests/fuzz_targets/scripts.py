"""Conversations that show the faults of the server broken on purpose, each as short as can be."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from tests.fuzz_targets.engine import META
from tests.fuzz_targets.tasks import TASKS_EXTENSION
from tests.harness.world.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fuzz_targets.catalog import Json
    from tests.fuzz_targets.conversations import ProcessConversation, StdioConversation

__all__ = ["SCRIPTS", "create_task", "tour", "wait_for"]

_TASKS: Final[Json] = {TASKS_EXTENSION: {}}


def pages(wire: ProcessConversation, method: str, key: str, limit: int = 10) -> list[Json]:
    """Return all entries of a list."""
    found: list[Json] = []
    cursor = None
    for _ in range(limit):
        result = wire.result(method, {"cursor": cursor} if cursor else {})
        found += result[key]
        cursor = result.get("nextCursor")
        if cursor is None:
            break
    return found


def create_task(wire: ProcessConversation, outcome: str = "done", milliseconds: int = 0) -> str:
    """Create a task, and return its id."""
    arguments = {"outcome": outcome, "milliseconds": milliseconds}
    if wire.revision == "2025-11-25":
        params: Json = {"task": {"ttl": 60_000}}
        id = wire.tool("work", arguments, **params)["result"]["task"]["taskId"]
    else:
        wire.extensions = _TASKS
        id = wire.tool("work", arguments)["result"]["taskId"]
    assert isinstance(id, str)
    return id


def wait_for(wire: ProcessConversation, id: str, *statuses: str) -> Json:
    """Return the task when it has one of the statuses."""
    end = time.monotonic() + PATIENCE
    view: Json = {}
    while time.monotonic() < end:
        view = wire.result("tasks/get", {"taskId": id})
        if view["status"] in statuses:
            return view
        time.sleep(0.02)
    raise TimeoutError(f"the task is {view}")


def tour(wire: ProcessConversation) -> None:
    """Use everything that the server offers in the revision of the wire, and stay correct."""
    is_modern = wire.revision == "2026-07-28"
    wire.result("server/discover" if is_modern else "ping")
    tools = pages(wire, "tools/list", "tools")
    assert [each["name"] for each in tools][-1] == "work"
    pages(wire, "resources/list", "resources")
    pages(wire, "resources/templates/list", "resourceTemplates")
    pages(wire, "prompts/list", "prompts")
    for uri in ("note:///one", "data:///zero"):
        wire.result("resources/read", {"uri": uri})
    assert "error" in wire.call("resources/read", {"uri": "note:///unknown"})
    wire.result("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}})
    assert wire.call("prompts/get", {"name": "unknown"})["error"]["code"] == -32602
    if wire.revision != "2024-11-05":
        params = {"ref": {"type": "ref/prompt", "name": "greet"}}
        argument = {"name": "name", "value": "A"}
        found = wire.result("completion/complete", {**params, "argument": argument})
        assert found["completion"]["values"] == ["Ada", "Alan"]
    if not is_modern:
        wire.result("logging/setLevel", {"level": "info"})
        wire.result("resources/subscribe", {"uri": "note:///one"})
    for name, arguments in (
        ("echo", {"text": "hello"}),
        ("add", {"a": 1, "b": 2}),
        ("fail", {}),
        ("echo", {}),
        ("change", {}),
        ("locate", {"region": "eu"}),
        ("unknown", {}),
    ):
        wire.tool(name, arguments)
    meta: Json = {"progressToken": "t"}
    if is_modern:
        meta[META + "logLevel"] = "info"
    wire.tool("count", {"steps": 3}, _meta=meta)
    methods = [each["method"] for each in wire.other if "method" in each]
    assert methods.count("notifications/progress") == 3
    assert methods.count("notifications/message") == 3
    for kind in ("elicitation", "sampling", "roots"):
        ask(wire, kind)
    assert wire.call("unknown/method")["error"]["code"] == -32601
    if wire.revision in ("2025-11-25", "2026-07-28"):
        for outcome in ("done", "tool-error", "error", "input"):
            run_task(wire, outcome)
        cancel_task(wire)


def ask(wire: ProcessConversation, kind: str) -> Json:
    """Call the tool that asks for input, give the input, and return the last response."""
    arguments = {"kind": kind}
    response = wire.tool("ask", arguments)
    result = response.get("result", {})
    if result.get("resultType") != "input_required":
        return response
    request = result["inputRequests"]["answer"]
    given = wire.respond({"id": 0, **request})["result"]
    return wire.tool(
        "ask", arguments, requestState=result["requestState"], inputResponses={"answer": given}
    )


def run_task(wire: ProcessConversation, outcome: str) -> None:
    """Run a task to its end, and get its result."""
    id = create_task(wire, outcome)
    view = wait_for(wire, id, "completed", "failed", "input_required")
    if wire.revision == "2025-11-25":
        wire.call("tasks/result", {"taskId": id})
        return
    while view["status"] == "input_required":
        given = {
            key: wire.respond({"id": 0, **each}) for key, each in view["inputRequests"].items()
        }
        responses = {key: each["result"] for key, each in given.items()}
        wire.result("tasks/update", {"taskId": id, "inputResponses": responses})
        wait_for(wire, id, "working", "completed")
        view = wait_for(wire, id, "completed", "failed", "input_required")


def cancel_task(wire: ProcessConversation) -> None:
    """Cancel a task, and look at it twice."""
    # With elicitation the task doesn't end by itself, however late it is cancelled.
    id = create_task(wire, "input", milliseconds=2_000)
    wire.call("tasks/cancel", {"taskId": id})
    for _ in range(2):
        wire.call("tasks/get", {"taskId": id})


# -- One script for each fault that the judge can see ----------------------------------------------


def call_echo(wire: ProcessConversation) -> None:
    """Call a tool of a server that has said which revisions it speaks."""
    wire.call("server/discover")
    wire.tool("echo", {"text": "x"})


def notify_and_call(wire: ProcessConversation) -> None:
    """Send a notification without `_meta` to a server whose revisions are known."""
    wire.call("server/discover")
    wire.notify("notifications/unknown")
    wire.tool("echo", {"text": "x"})


def list_tools(wire: ProcessConversation) -> None:
    wire.call("tools/list")
    wire.tool("echo", {"text": "x"})


def use_string_id(wire: ProcessConversation) -> None:
    wire.call("tools/list", id="17")


def send_notification(wire: Any) -> None:
    wire.call("tools/list")
    wire.notify("notifications/unknown")
    if wire.transport == "stdio":
        # Another request could be what the response without an id is about.
        wire.receive(PATIENCE if wire.fault else 0.5)


def send_array_params(wire: Any) -> None:
    wire.call("tools/list")
    wire.send(wire.message("tools/list") | {"params": [1]})
    wire.call("tools/list")  # what the server sends before has come by then


def read_unknown(wire: ProcessConversation) -> None:
    wire.call("resources/read", {"uri": "note:///unknown"})


def open_twice(wire: ProcessConversation) -> None:
    """Ask for the revision that the server has named before."""
    wire.open_another("2025-11-25" if wire.revision == "2025-03-26" else "2025-03-26")


def count(wire: ProcessConversation) -> None:
    wire.tool("count", {"steps": 3}, _meta={"progressToken": "t"})
    wire.call("tools/list")


def cancel_one_of_two(wire: StdioConversation) -> None:
    """Send all in one write, so that no call ends before. The one that is left has a response."""
    calls = [wire.message("tools/call", {"name": "count", "arguments": _LONG}) for _ in range(2)]
    ids = [each["id"] for each in calls]
    params = {"requestId": ids[0]}
    cancellation = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    wire.send(*calls, cancellation)
    wire.call("tools/list")
    wire.response(*ids)


_LONG: Final = {"steps": 5, "milliseconds": 100}


def ask_undeclared(wire: ProcessConversation) -> None:
    wire.tool("ask", {"kind": "roots"})


def list_two_pages(wire: ProcessConversation) -> None:
    pages(wire, "tools/list", "tools", limit=3)


def call_unknown_tool(wire: ProcessConversation) -> None:
    pages(wire, "tools/list", "tools")
    wire.tool("unknown")


def call_add(wire: ProcessConversation) -> None:
    pages(wire, "tools/list", "tools")
    wire.tool("add", {"a": 1, "b": 2})


def listen(wire: Any) -> None:
    wire.start("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    wire.await_method("notifications/subscriptions/acknowledged")
    wire.tool("change")


def get_unknown_prompt(wire: ProcessConversation) -> None:
    pages(wire, "prompts/list", "prompts")
    wire.call("prompts/get", {"name": "none"})


def read_unknown_of_all(wire: ProcessConversation) -> None:
    pages(wire, "resources/list", "resources")
    pages(wire, "resources/templates/list", "resourceTemplates")
    read_unknown(wire)


def end_session(wire: Any) -> None:
    session = wire.session
    wire.delete()
    wire.session = session
    wire.post(wire.message("tools/list"))


def answer_two_inputs(wire: ProcessConversation) -> None:
    run_task(wire, "input")


def fail_task(wire: ProcessConversation) -> None:
    run_task(wire, "error")


def return_tool_error(wire: ProcessConversation) -> None:
    run_task(wire, "tool-error")


def list_tasks(wire: ProcessConversation) -> None:
    wire.extensions = _TASKS
    wire.call("tasks/list")


def create_three_tasks(wire: ProcessConversation) -> None:
    for _ in range(3):
        wait_for(wire, create_task(wire), "completed")


def mistake_name(wire: Any) -> None:
    message = wire.message("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    wire.last_status, _ = wire.post(message, mcp_name="add")


def mistake_argument(wire: Any) -> None:
    pages(wire, "tools/list", "tools")
    message = wire.message("tools/call", {"name": "locate", "arguments": {"region": "eu"}})
    wire.last_status, _ = wire.post(message, mcp_param_region="us")


def list_pages_twice(wire: ProcessConversation) -> None:
    """A circle is certain in its second round, which is within the limit of `pages`."""
    pages(wire, "tools/list", "tools")
    pages(wire, "tools/list", "tools")


def name_other_version(wire: ProcessConversation) -> None:
    wire.result("server/discover")
    wire.call("tools/list", {"_meta": {META + "protocolVersion": "1999-12-31"}})


def call_without_arguments(wire: ProcessConversation) -> None:
    pages(wire, "tools/list", "tools")
    wire.tool("echo")


SCRIPTS: Final[dict[str, Callable[[Any], None]]] = {
    "double-response": list_tools,
    "id-as-number": use_string_id,
    "answers-notifications": send_notification,
    "logs-undeclared": send_array_params,
    "long-error-messages": read_unknown,
    "prompt-code": get_unknown_prompt,
    "resource-code": read_unknown_of_all,
    "picks-other-version": open_twice,
    "progress-goes-back": count,
    "cancel-mixes-ids": cancel_one_of_two,
    "asks-undeclared": ask_undeclared,
    "repeats-cursor": list_two_pages,
    "circle-of-cursors": list_pages_twice,
    "tool-on-two-pages": list_pages_twice,
    "serves-other-version": name_other_version,
    "serves-wrong-arguments": call_without_arguments,
    "unknown-tool-method-not-found": call_unknown_tool,
    "wrong-structured-content": call_add,
    "late-acknowledgement": listen,
    "no-result-type": call_echo,
    "changed-by-notification": notify_and_call,
    "ignores-mcp-name": mistake_name,
    "ignores-mcp-param": mistake_argument,
    "accepts-unknown-session": end_session,
    "task-key-reused": answer_two_inputs,
    "cancelled-task-completes": cancel_task,
    "result-on-failed-task": fail_task,
    "tool-error-fails-task": return_tool_error,
    "lists-tasks": list_tasks,
    "guessable-task-ids": create_three_tasks,
    "task-without-ttl": create_three_tasks,
}
