"""Operators on what a server keeps: progress, cancellations, subscriptions, versions, tasks, ..."""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any, Final

from tests.oracle_score.broken_messages import METHODS, NEW, OLD
from tests.oracle_score.operators import TABLE
from tests.oracle_score.talks import call, cancel, now, request, talk
from tests.oracle_score.wrapper import MessageOperator, changed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.oracle_score.talks import TalkShown

Json = dict[str, Any]
META: Final = "io.modelcontextprotocol/"


class BreakProgress(MessageOperator):
    """Breaks the order or the tokens of progress."""

    held: Json | None = None
    last: Json | None = None

    def to_client(self, message: Json) -> Iterator[Json]:
        if message.get("method") != "notifications/progress":
            yield message
            if "result" in message and self.method_of(message) == "tools/call":
                yield from self._after(message)
            return
        params = message["params"]
        self.last = message
        if self.place == "backwards" and params["progress"] == 3:
            yield changed(message, "params/progress", 1)
        elif self.place == "the same again" and params["progress"] > 1:
            yield message
            yield message
        elif self.place == "held back":
            self.held = message
        elif self.place == "retyped token" and isinstance(params["progressToken"], int):
            yield changed(message, "params/progressToken", str(params["progressToken"]))
        else:
            yield message

    def _after(self, message: Json) -> Iterator[Json]:
        if self.place == "held back" and self.held is not None:
            held, self.held = self.held, None
            yield held
        elif self.place == "after the response" and self.last is not None:
            token = _token(self.request_of(message))
            if token is not None:
                params = {"progressToken": token, "progress": 1000}
                yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        elif self.place == "not requested" and _token(self.request_of(message)) is None:
            params = {"progressToken": message["id"], "progress": 1}
            yield {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def _token(message: Json) -> Any:
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    return meta.get("progressToken") if isinstance(meta, dict) else None


COUNTED = talk(OLD, call("count", progress=5, to=4))
TABLE.add(
    "break-progress",
    "Progress decreases, repeats itself, comes late or for a token that wasn't given.",
    BreakProgress,
    {
        "backwards": ("PROG-4", COUNTED),
        "the same again": ("PROG-4", COUNTED),
        "held back": ("PROG-5", COUNTED),
        "after the response": ("PROG-5", COUNTED),
        "retyped token": ("PROG-3", COUNTED),
        "not requested": ("PROG-3", talk(OLD, METHODS["tools/call"])),
    },
)


class BreakCancel(MessageOperator):
    """Breaks what becomes of cancelled requests."""

    def to_server(self, message: Json) -> Iterator[Json]:
        params = message.get("params")
        if message.get("method") != "notifications/cancelled" or not isinstance(params, dict):
            yield message
            return
        id = params.get("requestId")
        known = [each["id"] for each in self.wrapper.requests.values()]
        is_open = isinstance(id, int | str) and id in known and id not in self.wrapper.answered
        if self.place == "ignored in the new revision" and self.wrapper.version == NEW:
            return
        yield message
        if self.place == "answered" and is_open:
            error = {"code": -32800, "message": "cancelled"}
            self.wrapper.say({"jsonrpc": "2.0", "id": id, "error": error})
        elif self.place == "another one too" and is_open:
            others = [
                each["id"]
                for each in self.wrapper.requests.values()
                if each["id"] != id and each["id"] not in self.wrapper.answered
            ]
            for each in others:
                yield changed(message, "params/requestId", each)

    def to_client(self, message: Json) -> Iterator[Json]:
        yield message


STOPPED = [now(call("steep", 901, progress=5, minutes=20)), now(cancel(901)), request("tools/list")]


def _lost_other(shown: TalkShown) -> bool:
    return not shown.response(902)


TABLE.add(
    "break-cancel",
    "A cancelled request goes on, or has a response, or takes another one with it.",
    BreakCancel,
    {
        "ignored in the new revision": ("CXL-7", talk(NEW, *STOPPED)),
        "answered": ("PROG-5", talk(OLD, *STOPPED)),
        "another one too": (
            "RPC-35",
            talk(
                OLD,
                now(call("steep", 901, minutes=20)),
                now(call("steep", 902, minutes=19)),
                cancel(901),
                breach=_lost_other,
            ),
        ),
    },
)


class BreakSubscription(MessageOperator):
    """Breaks the subscriptions of 2026-07-28, and those to resources before it."""

    held: Json | None = None

    def to_server(self, message: Json) -> Iterator[Json]:
        params = message.get("params")
        is_listen = message.get("method") == "subscriptions/listen"
        if is_listen and isinstance(params, dict):
            wanted = params.get("notifications")
            if (
                self.place == "another resource"
                and isinstance(wanted, dict)
                and isinstance(wanted.get("resourceSubscriptions"), list)
            ):
                uris = [*wanted["resourceSubscriptions"], "note:///one"]
                yield changed(message, "params/notifications/resourceSubscriptions", uris)
                return
            if (
                self.place == "another list"
                and isinstance(wanted, dict)
                and "toolsListChanged" not in wanted
            ):
                yield changed(message, "params/notifications/toolsListChanged", True)
                return
        if (
            self.place == "forgotten unsubscribe"
            and message.get("method") == "resources/unsubscribe"
        ):
            self.wrapper.say({"jsonrpc": "2.0", "id": message["id"], "result": {}})
            return
        if (
            self.place == "ignored cancellation"
            and message.get("method") == "notifications/cancelled"
        ):
            id = params.get("requestId") if isinstance(params, dict) else None
            found = [each for each in self.wrapper.requests.values() if each["id"] == id]
            if found and found[0].get("method") == "subscriptions/listen":
                return
        yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        method = message.get("method", "")
        is_ack = method == "notifications/subscriptions/acknowledged"
        is_change = method.endswith(("list_changed", "resources/updated"))
        params = message.get("params", {})
        has_id = META + "subscriptionId" in params.get("_meta", {})
        if self.place == "no acknowledgement" and is_ack:
            return
        if self.place == "change before the acknowledgement" and is_ack:
            early = {"_meta": {META + "subscriptionId": params["_meta"][META + "subscriptionId"]}}
            yield {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": early}
        elif self.place == "no id" and is_change and has_id:
            found = copy.deepcopy(message)
            del found["params"]["_meta"]
            yield found
            return
        elif self.place == "wrong id" and is_change and has_id:
            found = copy.deepcopy(message)
            found["params"]["_meta"][META + "subscriptionId"] = "none"
            yield found
            return
        elif self.place == "lost change" and is_change and "list_changed" in method:
            return
        elif self.place in ("another resource", "another list") and is_ack:
            found = copy.deepcopy(message)
            wanted = [
                each["params"].get("notifications", {})
                for each in self.wrapper.requests.values()
                if each.get("method") == "subscriptions/listen"
                and isinstance(each.get("params"), dict)
            ]
            found["params"]["notifications"] = wanted[-1] if wanted else {}
            yield found
            return
        yield message


def listen(*lists: str, uris: tuple[str, ...] = (), id: str = "sub") -> Json:
    """Return a subscription."""
    wanted: Json = dict.fromkeys(lists, True)
    if uris:
        wanted["resourceSubscriptions"] = list(uris)
    return request("subscriptions/listen", id, notifications=wanted)


def _of_another(shown: TalkShown) -> bool:
    return any(each.get("params", {}).get("uri") == "note:///one" for each in shown.said)


def _goes_on(shown: TalkShown) -> bool:
    return any(each.get("method", "").endswith("list_changed") for each in shown.said)


TABLE.add(
    "break-subscription",
    "Changes come that weren't subscribed to, too early, without the id, or not at all.",
    BreakSubscription,
    {
        "another resource": (
            "SUB-2",
            talk(
                NEW, listen(uris=("note:///two",)), call("change", what="note"), breach=_of_another
            ),
        ),
        "another list": (
            "SUB-2",
            talk(NEW, listen("promptsListChanged"), call("change", what="tools")),
        ),
        "no acknowledgement": (
            "SUB-3",
            talk(NEW, listen("toolsListChanged"), call("change", what="tools")),
        ),
        "change before the acknowledgement": ("SUB-3", talk(NEW, listen("toolsListChanged"))),
        "no id": ("META-12", talk(NEW, listen("toolsListChanged"), call("change", what="tools"))),
        "wrong id": (
            "META-12",
            talk(NEW, listen("toolsListChanged"), call("change", what="tools")),
        ),
        "ignored cancellation": (
            "CXL-7",
            talk(
                NEW,
                listen("toolsListChanged"),
                cancel("sub"),
                request("tools/list"),
                call("change", what="tools"),
                breach=_goes_on,
            ),
        ),
    },
)


class BreakVersions(MessageOperator):
    """Breaks the negotiation."""

    def to_server(self, message: Json) -> Iterator[Json]:
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        name = META + "protocolVersion"
        is_unknown = isinstance(meta, dict) and name in meta and meta[name] != NEW
        if self.place == "unknown in a request" and is_unknown:
            found = copy.deepcopy(message)
            found["params"]["_meta"][name] = NEW
            yield found
        else:
            yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        if self.result_of(message, "initialize") is None:
            yield message
            return
        asked = self.request_of(message).get("params", {}).get("protocolVersion")
        chosen = message["result"]["protocolVersion"]
        if self.place == "echo" and asked != chosen:
            yield changed(message, "result/protocolVersion", asked)
        else:
            yield message


def _echoes(shown: TalkShown) -> bool:
    return bool(shown.said[0]["result"]["protocolVersion"] == "2199-01-01")


def _is_served(shown: TalkShown) -> bool:
    return "result" in shown.response(901)


def _initialize(version: str) -> Json:
    info = {"name": "score", "version": "1"}
    return request("initialize", 900, protocolVersion=version, capabilities={}, clientInfo=info)


TABLE.add(
    "break-versions",
    "A revision that doesn't exist is selected or served.",
    BreakVersions,
    {
        "echo": ("LIFE-4", talk(OLD, _initialize("2199-01-01"), handshake=False, breach=_echoes)),
        "unknown in a request": (
            "VER-1",
            talk(
                NEW,
                request("tools/list", 901, _meta={META + "protocolVersion": "1999-12-31"}),
                breach=_is_served,
            ),
        ),
    },
)


class BreakInput(MessageOperator):
    """Breaks the rounds of input in 2026-07-28."""

    state: str | None = None

    def to_server(self, message: Json) -> Iterator[Json]:
        params = message.get("params")
        given = params.get("requestState") if isinstance(params, dict) else None
        if self.place == "altered state" and given is not None and self.state is not None:
            yield changed(message, "params/requestState", self.state)
        else:
            yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        result = message.get("result")
        is_modern = self.wrapper.version == NEW
        is_asked = isinstance(result, dict) and result.get("resultType") == "input_required"
        if is_asked and isinstance(result.get("requestState"), str):  # type: ignore[union-attr]
            self.state = result["requestState"]  # type: ignore[index]
        if self.place == "of a list" and is_modern and self.result_of(message, "prompts/list"):
            yield {
                "jsonrpc": "2.0",
                "id": message["id"],
                "result": {"resultType": "input_required", "requestState": "x"},
            }
        elif self.place == "nothing asked" and is_asked:
            yield {
                "jsonrpc": "2.0",
                "id": message["id"],
                "result": {"resultType": "input_required"},
            }
        elif self.place == "undeclared" and is_modern and self.result_of(message, "tools/call"):
            if "elicitation" in self.wrapper.offered:
                yield message
                return
            asked = {
                "method": "elicitation/create",
                "params": {
                    "mode": "form",
                    "message": "?",
                    "requestedSchema": {"type": "object", "properties": {}},
                },
            }
            yield {
                "jsonrpc": "2.0",
                "id": message["id"],
                "result": {"resultType": "input_required", "inputRequests": {"a": asked}},
            }
        elif self.place == "nested form" and is_asked and "inputRequests" in message["result"]:
            found = copy.deepcopy(message)
            for each in found["result"]["inputRequests"].values():
                each["params"]["requestedSchema"] = {
                    "type": "object",
                    "properties": {"a": {"type": "object", "properties": {}}},
                }
            yield found
        else:
            yield message


def _altered(said: list[Json]) -> Json:
    return request(
        "tools/call", 901, name="ask", arguments={}, requestState="AAAA", inputResponses={}
    )


TABLE.add(
    "break-input",
    "Input is required where or of whom it may not be, or anyone can alter its state.",
    BreakInput,
    {
        "of a list": ("MRTR-2", talk(NEW, request("prompts/list"))),
        "nothing asked": ("MRTR-3", talk(NEW, call("ask"))),
        "undeclared": ("MRTR-5", talk(NEW, METHODS["tools/call"], offers="none")),
        "nested form": ("MRTR-4", talk(NEW, call("ask"))),
        "altered state": ("MRTR-13", talk(NEW, call("ask"), _altered, breach=_is_served)),
    },
)


class BreakTasks(MessageOperator):
    """Breaks tasks."""

    counted = itertools.count(1)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.ids: dict[str, str] = {}
        self.cancelled: set[str] = set()

    def to_server(self, message: Json) -> Iterator[Json]:
        params = message.get("params")
        if message.get("method") == "tasks/cancel" and isinstance(params, dict):
            self.cancelled.add(str(params.get("taskId")))
        yield message

    def to_client(self, message: Json) -> Iterator[Json]:
        result = message.get("result")
        method = self.method_of(message)
        task: str | None = None
        if isinstance(result, dict) and ("task" in result or "taskId" in result):
            task = "task" if isinstance(result.get("task"), dict) else ""
        if task is None or (not method.startswith("tasks/") and method != "tools/call"):
            yield message
            return
        at = "result/task/" if task else "result/"
        value: Json = result["task"] if task else result  # type: ignore[index, assignment]
        if self.place == "no createdAt":
            yield changed(message, at + "createdAt")
        elif self.place == "status" and value.get("status") == "completed":
            yield changed(message, at + "status", "done")
        elif self.place == "created as completed" and method == "tools/call":
            yield changed(message, at + "status", "completed")
        elif self.place == "cancelled one completes" and value.get("taskId") in self.cancelled:
            yield changed(
                message, at + "status", "completed" if method == "tasks/get" else "cancelled"
            )
        elif self.place == "ttl as text":
            name = "ttl" if "ttl" in value else "ttlMs"
            yield changed(message, at + name, str(value.get(name)))
        elif self.place == "back to working" and method == "tasks/get":
            count = self.wrapper.counts["gets"] = self.wrapper.counts.get("gets", 0) + 1
            is_over = value.get("status") == "completed" and count % 2 == 0
            yield changed(message, at + "status", "working") if is_over else message
        else:
            yield message


def task_id(said: list[Json]) -> str:
    """Return the id of the first task that the server has created."""
    for each in said:
        result = each.get("result")
        task = result.get("task", result) if isinstance(result, dict) else None
        if isinstance(task, dict) and "taskId" in task:
            return str(task["taskId"])
    raise AssertionError("no task was created")


def _tasks(method: str) -> Any:
    return lambda said: request(method, taskId=task_id(said))


def work(minutes: int = 5) -> Json:
    """Return a call that becomes a task."""
    return request("tools/call", name="work", arguments={"minutes": minutes}, task={"ttl": 60_000})


TABLE.add(
    "break-tasks",
    "A task has a wrong shape, or a status that it can't have.",
    BreakTasks,
    {
        "no createdAt": ("TSK-12", talk(OLD, work(), _tasks("tasks/get"))),
        "status": ("TSK-12", talk(OLD, work(), _tasks("tasks/get"))),
        "created as completed": ("TSK-11", talk(OLD, work())),
        "cancelled one completes": (
            "TSK-11",
            talk(OLD, work(20), _tasks("tasks/cancel"), _tasks("tasks/get")),
        ),
        "ttl as text": ("TSK-12", talk(OLD, work(), _tasks("tasks/get"))),
        "back to working": ("TSK-11", talk(OLD, work(), *[_tasks("tasks/get")] * 3)),
    },
)


class LogWrongly(MessageOperator):
    """Logs what was not asked for."""

    def to_client(self, message: Json) -> Iterator[Json]:
        method = message.get("method")
        if method == "notifications/message":
            if self.place == "unknown level":
                yield changed(message, "params/level", "verbose")
                return
            if self.place == "no data":
                yield changed(message, "params/data")
                return
        yield message
        is_result = "result" in message and self.method_of(message) == "prompts/get"
        if self.place == "not asked for" and is_result and self.wrapper.version == NEW:
            params = {"level": "debug", "data": "served"}
            yield {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


TABLE.add(
    "log-wrongly",
    "A log message has a wrong shape, or wasn't asked for.",
    LogWrongly,
    {
        "unknown level": ("LOG-2", talk(OLD, METHODS["logging/setLevel"], call("count", to=2))),
        "no data": ("LOG-2", talk(OLD, METHODS["logging/setLevel"], call("count", to=2))),
    },
)


class Forget(MessageOperator):
    """Forgets what it has declared."""

    def to_client(self, message: Json) -> Iterator[Json]:
        method = self.method_of(message)
        count = self.wrapper.counts["all"] = self.wrapper.counts.get("all", 0) + 1
        is_result = "result" in message
        error = {"code": -32601, "message": "method not found"}
        if (
            self.place == "lists after 20 messages"
            and method == "tools/list"
            and is_result
            and count > 20
        ):
            yield {"jsonrpc": "2.0", "id": message["id"], "error": error}
        elif self.place == "undeclared prompts" and method == "initialize" and is_result:
            yield changed(message, "result/capabilities/prompts")
        elif (
            self.place == "undeclared logging"
            and method in ("initialize", "server/discover")
            and is_result
        ):
            yield changed(message, "result/capabilities/logging")
        elif self.place == "no setLevel" and method == "logging/setLevel":
            yield {"jsonrpc": "2.0", "id": message["id"], "error": error}
        else:
            yield message


TABLE.add(
    "forget",
    "What was declared isn't served any more, or what is sent isn't declared.",
    Forget,
    {
        "lists after 20 messages": (
            "TOOL-3",
            talk(NEW, request("server/discover"), *[request("tools/list") for _ in range(22)]),
        ),
        "undeclared logging": (
            "LOG-1",
            talk(OLD, METHODS["logging/setLevel"], call("count", to=2)),
        ),
    },
)
