"""Rules for tasks, of 2025-11-25 and of the extension."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mcp_core.trace._members import META, lookup
from mcp_core.trace.judge._shapes import find_shape_error, has_shape
from mcp_core.trace.judge._sides import CLIENT, SERVER, other_side
from mcp_core.trace.judge.conversation._across import has_credentials
from mcp_core.trace.judge.conversation._http import SESSION

from ._lifecycle import declares
from ._registry import RuleFailure, rule
from ._utilities import FINAL
from ._values import show

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from mcp_core.trace.judge._message import SeenMessage
    from mcp_core.trace.judge.conversation._conversation import ConversationState
    from mcp_core.trace.judge.conversation._tasks import SeenTask

    from ._registry import Outcome

_RELATED: Final = META + "related-task"
_VIEWS: Final = ("tasks/get", "tasks/cancel")
_STATUS: Final = ("notifications/tasks/status", "notifications/tasks")
# Requests that can run as a task in 2025-11-25, with the capability that their receiver declares.
_AUGMENTED: Final = {
    "tools/call": ("tasks", "requests", "tools", "call"),
    "sampling/createMessage": ("tasks", "requests", "sampling", "createMessage"),
    "elicitation/create": ("tasks", "requests", "elicitation", "create"),
}
_SLACK: Final = 0.9  # this part of a time that a peer names counts as all of it
_DELAY: Final = 1.0  # seconds that a message can be late
_POLLS: Final = 2
_CREDENTIALS: Final = ("authorization", "cookie")
_MIN_BITS: Final = 32.0  # bits; an id with fewer can be guessed
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(:\d\d([.,]\d+)?)?([Zz]|[+-]\d\d(:?\d\d)?)?"
)


@rule("TSK-3", "TSK-2", on="request", sender=CLIENT, methods=("tools/call",), needs_history=True)
@rule(
    "TSK-2",
    on="request",
    sender=SERVER,
    methods=("sampling/createMessage", "elicitation/create"),
    needs_history=True,
)
def receiver_runs_tasks(message: SeenMessage, state: ConversationState) -> Outcome:
    if "task" not in message.params:
        return None
    declared = state.negotiation.capabilities(other_side(message.sender), message)
    if declared is None:
        return None
    path = _AUGMENTED[message.method]
    return declares(declared, path) or (
        f"{message.method} asks for a task, and the {other_side(message.sender)} did not declare "
        f"{'.'.join(path)}"
    )


@rule("TSK-4", on="request", sender=CLIENT, methods=("tools/call",), needs_history=True)
def tool_allows_tasks(message: SeenMessage, state: ConversationState) -> Outcome:
    tool = state.lists.tool(message.params.get("name"))
    if tool is None or "task" not in message.params:
        return None
    support = lookup(tool, "execution", "taskSupport")
    return support in ("optional", "required") or (
        f"the tool {show(tool['name'])} is called as a task, and its taskSupport is {show(support)}"
    )


@rule("TSK-5", on="request", sender=CLIENT, methods=("tools/call",), needs_history=True)
def tool_that_needs_a_task_is_called_as_one(
    message: SeenMessage, state: ConversationState
) -> Outcome:
    tool = state.lists.tool(message.params.get("name"))
    if tool is None or lookup(tool, "execution", "taskSupport") != "required":
        return None
    return "task" in message.params or (f"the tool {show(tool['name'])} runs as a task only")


@rule("TSK-7", on="result", needs_history=True)
def accepted_task_is_the_only_result(message: SeenMessage, state: ConversationState) -> Outcome:
    request, result = message.request, message.result
    if request is None or result is None or "task" not in request.params:
        return None
    path = _AUGMENTED.get(request.method)
    declared = state.negotiation.capabilities(message.sender, message)
    if path is None or declared is None or not declares(declared, path):
        return None  # TSK-8
    is_certain = True
    if request.method == "tools/call":
        # A tool without task support can be called all the same (TSK-4).
        tool = state.lists.tool_of(request)
        is_certain = lookup(tool, "execution", "taskSupport") in ("optional", "required")
    return isinstance(result.get("task"), dict) or RuleFailure(
        f"{request.method} asked for a task and has another result",
        (request.line,),
        is_certain=is_certain,
    )


def _view(message: SeenMessage) -> Mapping[str, Any] | None:
    """Return the task that a message shows, or None."""
    if message.kind == "notification":
        return message.params if message.method in _STATUS else None
    if message.result is None or message.request is None:
        return None
    if message.request.method in _VIEWS and "taskId" in message.result:
        return message.result
    if message.result.get("resultType") == "task":
        return message.result
    task = message.result.get("task")
    return task if "task" in message.request.params and isinstance(task, dict) else None


def _known(message: SeenMessage, state: ConversationState) -> SeenTask | None:
    view = _view(message)
    return None if view is None else state.tasks.find(message.sender, view.get("taskId"))


@rule("TSK-10", "TX-23", on="result", needs_history=True)
def task_id_is_unique(message: SeenMessage, state: ConversationState) -> Outcome:
    view = _view(message)
    if view is None or message.request is None or message.request.method in _VIEWS:
        return None
    id = view.get("taskId")
    if not isinstance(id, str):
        return None
    earlier = state.tasks.find(message.sender, id)
    if earlier is not None:
        return RuleFailure(f"the task id {show(id)} was used before", (earlier.request.line,))
    given = state.across.find_task(id) if message.exchange and message.sender == SERVER else None
    if given is None or given.conversation == state.number:
        return True
    # Where the server knows its clients, or has sessions, each of them can have tasks of its own.
    exchange = state.http.exchange
    is_known = given.has_credentials or has_credentials(exchange)
    is_known = is_known or (exchange is not None and SESSION in exchange.headers)
    return RuleFailure(
        f"the task id {show(id)} was given to another client",
        (given.line,),
        is_certain=not is_known,
    )


@rule("TSK-11", on="result", needs_history=True)
@rule("TSK-11", on="notification", needs_history=True)
def state_is_reachable(message: SeenMessage, state: ConversationState) -> Outcome:
    view = _view(message)
    if view is None:
        return None
    status = view.get("status")
    if message.request is not None and "task" in message.request.params:
        return status == "working" or f"a new task has the status {show(status)}"
    task = _known(message, state)
    # Over HTTP two views can overtake each other.
    if task is None or not isinstance(status, str) or not state.follows(message, task.line):
        return None
    if task.status in FINAL and status != task.status:
        return RuleFailure(f"a task that is {task.status} becomes {status}", (task.line,))
    return True


@rule("TX-10", on="result", sender=SERVER, methods=("tasks/get",), needs_history=True)
def final_state_stays(message: SeenMessage, state: ConversationState) -> Outcome:
    task = _known(message, state)
    status = lookup(message.result, "status")
    if task is None or not isinstance(status, str) or not state.follows(message, task.line):
        return None
    if task.status in FINAL and status != task.status:
        return RuleFailure(f"a task that is {task.status} becomes {status}", (task.line,))
    return True


@rule("TSK-12", "TX-9", on="result")
def times_of_task_are_iso(message: SeenMessage, state: ConversationState) -> Outcome:
    view = _view(message)
    if view is None:
        return None
    for key in ("createdAt", "lastUpdatedAt"):
        if not isinstance(view.get(key), str):
            return None  # the rule for shapes judges it
        if _TIME.fullmatch(view[key]) is None:
            return f"`{key}` is {show(view[key])}, which is no ISO 8601 time"
    return True


@rule("TSK-17", on="response", methods=("tasks/result",))
def result_names_its_task(message: SeenMessage, state: ConversationState) -> Outcome:
    if message.result is None or message.request is None:
        return None
    wanted = message.request.params.get("taskId")
    found = lookup(message.meta.get(_RELATED), "taskId")
    return found == wanted or RuleFailure(
        f'`_meta["{_RELATED}"]` is {show(found)}', (message.request.line,)
    )


@rule("TSK-18", on="request", methods=("tasks/get", "tasks/list", "tasks/cancel"))
def task_requests_name_no_related_task(message: SeenMessage, state: ConversationState) -> Outcome:
    return _RELATED not in message.meta or f'{message.method} has `_meta["{_RELATED}"]`'


@rule("TSK-21", on="response", methods=("tasks/cancel",), needs_history=True)
def final_task_is_not_cancelled(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    if request is None:
        return None
    task = state.tasks.named_by(request)
    if message.result is not None:
        if task is not None and task.status in FINAL and task.line < request.line:
            return RuleFailure(
                f"a task that is {task.status} is cancelled", (task.line, request.line)
            )
        status = message.result.get("status")
        return status == "cancelled" or RuleFailure(
            f"the status after tasks/cancel is {show(status)}", (request.line,)
        )
    return None


@rule("TSK-22", "TX-19", on="response", methods=("tasks/get",), needs_history=True)
def unknown_task_is_invalid_params(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    if request is None or message.result is not None:
        return None
    id = request.params.get("taskId")
    if not isinstance(id, str) or state.tasks.named_by(request) is not None:
        return None
    if message.code == -32602:
        return True
    if message.code in (-32021, -32601):
        return None  # tasks aren't served, or not to this client
    # Another code can say that tasks aren't served at all.
    return RuleFailure(
        f"the error for the unknown task {show(id)} has the code {show(message.code)}",
        (request.line,),
        is_certain=message.code == -32002,
    )


@rule("TX-4", on="result", sender=SERVER)
def only_calls_become_tasks(message: SeenMessage, state: ConversationState) -> Outcome:
    if lookup(message.result, "resultType") != "task" or message.request is None:
        return None
    if message.request.method.startswith("tasks/"):
        return None  # TX-6
    return message.request.method == "tools/call" or RuleFailure(
        f"{message.request.method} has a task as its result", (message.request.line,)
    )


@rule("TX-6", on="result", sender=SERVER, methods=("tasks/get", "tasks/update", "tasks/cancel"))
def task_type_is_of_new_tasks(message: SeenMessage, state: ConversationState) -> Outcome:
    assert message.request is not None
    return lookup(message.result, "resultType") != "task" or (
        f'the result of {message.request.method} has the `resultType` "task"'
    )


@rule("TX-11", on="result", sender=SERVER, methods=("tasks/get",))
def failed_tasks_have_an_error(message: SeenMessage, state: ConversationState) -> Outcome:
    status = lookup(message.result, "status")
    if status != "failed":
        return None
    assert message.result is not None
    return "result" not in message.result or "a failed task has a result"


@rule("TX-12", on="result", sender=SERVER, methods=("tasks/get",), needs_history=True)
def keys_are_not_used_again(message: SeenMessage, state: ConversationState) -> Outcome:
    task = _known(message, state)
    requests = lookup(message.result, "inputRequests")
    if task is None or not isinstance(requests, dict) or not requests:
        return None
    if not state.follows(message, max(task.line, task.update_line)):
        return None
    # The server processes a response some time after it was sent, so its key can appear once more.
    again = sorted(requests.keys() & task.answered)
    once_gone = sorted(requests.keys() & task.gone)
    return not again or RuleFailure(
        f"the key {show((once_gone or again)[0])} was answered before",
        (task.line, task.update_line),
        is_certain=bool(once_gone),
    )


@rule("TX-17", on="error", sender=SERVER, methods=("tasks/cancel",), needs_history=True)
def cancelling_a_known_task_succeeds(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    assert request is not None
    id = request.params.get("taskId")
    if state.tasks.named_by(request) is None:
        return None
    # The task can have expired.
    return RuleFailure(
        f"cancelling the task {show(id)} has an error", (request.line,), is_certain=False
    )


# -- Polling ---------------------------------------------------------------------------------------


@rule(
    "TSK-13",
    "TX-24",
    on="request",
    methods=("tasks/get",),
    needs_history=True,
    needs_time=True,
)
def poll_interval_is_respected(message: SeenMessage, state: ConversationState) -> Outcome:
    task = state.tasks.named_by(message)
    if task is None or task.status in FINAL:
        return None
    if task.polled is None or not task.interval or not message.time:
        return None
    waited = message.time - task.polled
    if waited >= _SLACK * task.interval:
        return True
    # A message can be delayed on its way, and the one before more than this one.
    is_certain = state.observer == message.sender or task.interval - waited > _DELAY
    return RuleFailure(
        f"polled after {waited:.3g} s, the {task.owner} asked for {task.interval:.3g} s",
        (task.line,),
        is_certain=is_certain,
    )


@rule("TSK-16", on="request", methods=("tasks/get",), needs_history=True)
def input_is_fetched(message: SeenMessage, state: ConversationState) -> Outcome:
    task = state.tasks.named_by(message)
    if task is None or task.status != "input_required":
        return None
    if task.result_asked:
        return True
    # The first poll can cross the message that shows the status.
    if task.input_polls < _POLLS:
        return None
    return RuleFailure("a task that needs input is polled, and not tasks/result", (task.line,))


# -- Results ---------------------------------------------------------------------------------------


@rule("TSK-8", on="result", needs_history=True)
def undeclared_task_is_ignored(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    if request is None or "task" not in request.params or message.result is None:
        return None
    path = _AUGMENTED.get(request.method)
    declared = state.negotiation.capabilities(message.sender, message)
    if path is None or declared is None or declares(declared, path):
        return None  # TSK-7
    return not isinstance(message.result.get("task"), dict) or RuleFailure(
        f"{request.method} became a task, which the {message.sender} did not declare",
        (request.line,),
    )


@rule("TSK-14", on="result", methods=("tasks/result",), needs_history=True)
def result_has_the_shape_of_the_request(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    task = state.tasks.named_by(request) if request is not None else None
    name = f"<{task.request.method}" if task is not None else ""
    if task is None or message.result is None or not has_shape(message.revision, name):
        return None
    error = find_shape_error(message.revision, name, message.result)
    return error is None or RuleFailure(
        f"the result of the task is none of {task.request.method}: {error}", (task.request.line,)
    )


@rule("TSK-15", on="result", methods=("tasks/get",), needs_history=True)
def result_waits_for_the_end(message: SeenMessage, state: ConversationState) -> Outcome:
    task, status = _known(message, state), lookup(message.result, "status")
    if task is None or not task.result_given or not isinstance(status, str):
        return None
    if not state.follows(message, task.result_given):
        return None
    return status in FINAL or RuleFailure(
        f"tasks/result was answered, and the task is {status}", (task.result_given,)
    )


@rule("TSK-23", on="result", methods=("tasks/get",), needs_history=True)
def failed_call_is_a_failed_task(message: SeenMessage, state: ConversationState) -> Outcome:
    task, status = _known(message, state), lookup(message.result, "status")
    if task is None or not task.is_error or status not in ("completed", "failed"):
        return None
    return status == "failed" or RuleFailure(
        "a task is completed, and its result is an error", (task.result_given,)
    )


# -- Ids and keys ----------------------------------------------------------------------------------


@rule("TSK-24", "TX-23", on="result", needs_history=True)
def task_ids_cannot_be_guessed(message: SeenMessage, state: ConversationState) -> Outcome:
    view, request = _view(message), message.request
    id = view.get("taskId") if view is not None else None
    if not isinstance(id, str) or request is None or request.method in _VIEWS:
        return None
    stream = state.http.exchange
    # If requests carry credentials, the id alone isn't enough to reach the task.
    is_bound = stream is not None and any(
        key in stream.headers for key in (*_CREDENTIALS, "mcp-session-id", "x-api-key")
    )
    before = [_split(each) for each in state.tasks.last_ids[message.sender]]
    prefix, number = _split(id)
    if number is not None and before == [(prefix, number - 2), (prefix, number - 1)]:
        return RuleFailure(f"the task ids are counted: {show(id)}", is_certain=not is_bound)
    bits = sum(3.3 if each.isdigit() else 4.7 for each in id if each.isalnum())
    return bits >= _MIN_BITS or RuleFailure(f"the task id {show(id)} is short", is_certain=False)


def _split(id: str) -> tuple[str, int | None]:
    """Return what precedes an id's last digits, and those digits as a number, or None."""
    digits = re.search(r"[0-9]{1,18}$", id)
    if digits is None:
        return id, None
    return id[: digits.start()], int(digits.group())


@rule("TSK-24", "TX-23", on="result", methods=("tasks/get", "tasks/result", "tasks/cancel"))
def task_is_for_its_owner(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    task = state.tasks.named_by(request) if request is not None else None
    created = state.http.exchanges.get(task.request.exchange) if task is not None else None
    stream = state.http.exchange
    if created is None or stream is None:
        return None
    before, now = (each.headers.get("authorization") for each in (created, stream))
    if before is None or before == now:
        return None
    # The token can be a new one of the same user.
    return RuleFailure(
        "a task is shown to a request with another `Authorization`",
        (created.line,),
        is_certain=now is None,
    )


def _is_of_another(task: SeenTask, state: ConversationState) -> bool:
    """Return True if the exchange can be from another user than the task's creator."""
    created, stream = state.http.exchanges.get(task.request.exchange), state.http.exchange
    if stream is None:
        return False
    if created is None:
        return True
    return any(created.headers.get(key) != stream.headers.get(key) for key in _CREDENTIALS)


@rule(
    "TX-7",
    on="response",
    sender=SERVER,
    methods=("tasks/get",),
    needs_history=True,
    needs_time=True,
)
def new_task_is_found(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    task = state.tasks.named_by(request) if request is not None else None
    if task is None or task.has_view or not state.follows(message, task.created):
        return None
    if message.result is not None:
        return True
    if request is None or find_shape_error(message.revisions[-1], ">tasks/get", request.params):
        return None  # the error can be about the request itself
    if _is_of_another(task, state):
        return None  # TX-23
    age = message.time - task.created_time
    if message.code != -32602 or (task.ttl is not None and age > _SLACK * task.ttl):
        return None
    return RuleFailure("a task that was just created is not found", (task.created,))


@rule("TX-14", on="response", sender=SERVER, methods=("tasks/update",), needs_history=True)
def unknown_keys_are_ignored(message: SeenMessage, state: ConversationState) -> Outcome:
    request = message.request
    task = state.tasks.named_by(request) if request is not None else None
    responses = request.params.get("inputResponses") if request is not None else None
    if task is None or not isinstance(responses, dict) or responses.keys() <= task.keys:
        return None
    # The task can be over.
    return message.result is not None or RuleFailure(
        f"unknown keys have the error {show(message.code)}", (task.line,), is_certain=False
    )


@rule("TX-15", on="request", sender=CLIENT, methods=("tasks/update",), needs_history=True)
def keys_are_answered_once(message: SeenMessage, state: ConversationState) -> Outcome:
    task = state.tasks.named_by(message)
    responses = message.params.get("inputResponses")
    if task is None or not isinstance(responses, dict) or not responses:
        return None
    again = sorted(responses.keys() & task.acknowledged - task.gone)
    return not again or RuleFailure(
        f"the key {show(again[0])} is answered again", (task.update_line,)
    )
