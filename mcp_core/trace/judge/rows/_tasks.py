"""Rows for tasks, of 2025-11-25 and of the extension."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ._requirement import rows

if TYPE_CHECKING:
    from ._requirement import Requirement

__all__ = ["ROWS"]

# fmt: off
ROWS: Final[tuple[Requirement, ...]] = (
    # TSK, Tasks of 2025-11-25 (experimental, either direction)
    *rows(
        {"2025-11-25": "basic/utilities/tasks"},
        ("TSK-1", "MUST", "2025-11-25", "2026-07-28", "both",
         "Declare `tasks` (with `list`, `cancel`, `requests.*`) at initialisation. Server: "
         "`requests.tools.call`; client: `requests.sampling.createMessage`, "
         "`requests.elicitation.create`."),
        ("TSK-2", "SHOULD", "2025-11-25", "2026-07-28", "requestor",
         "Augment only request types the receiver declared; none if `tasks` is absent."),
        ("TSK-3", "MUST NOT", "2025-11-25", "2026-07-28", "client",
         "No augmentation of `tools/call` if `tasks.requests.tools.call` is absent, regardless of "
         "what the tool says."),
        ("TSK-4", "MUST NOT", "2025-11-25", "2026-07-28", "client",
         "Not for tools with `execution.taskSupport` absent or `forbidden`; server SHOULD "
         "answer `-32601`."),
        ("TSK-5", "MUST", "2025-11-25", "2026-07-28", "client",
         'Tool with `taskSupport: "required"` must be called as a task; else server MUST answer '
         "`-32601`."),
        ("TSK-6", "schema", "2025-11-25", "2026-07-28", "requestor",
         "Augmentation = `params.task {ttl?}` (ms)."),
        ("TSK-7", "MUST", "2025-11-25", "2026-07-28", "receiver",
         "Accepting → answer is `CreateTaskResult {task}` and nothing else; SHOULD come at once."),
        ("TSK-8", "MUST", "2025-11-25", "2026-07-28", "receiver",
         "A receiver that did not declare the type ignores `task` and processes normally."),
        ("TSK-9", "MAY", "2025-11-25", "2026-07-28", "receiver",
         "A declaring receiver may refuse unaugmented requests (`-32600`)."),
        ("TSK-10", "MUST", "2025-11-25", "2026-07-28", "receiver",
         "`taskId` is a string, made by the receiver, unique among its tasks."),
        ("TSK-11", "MUST", "2025-11-25", "2026-07-28", "receiver",
         "Starts `working`; working→{input_required, completed, failed, cancelled}; "
         "input_required→{working, completed, failed, cancelled}; terminal states are final."),
        ("TSK-12", "MUST", "2025-11-25", "2026-07-28", "receiver",
         "All task payloads have `createdAt`, `lastUpdatedAt` (ISO 8601) and actual `ttl` "
         "(integer or `null`); `pollInterval?` ms. Requested ttl may be overridden."),
        ("TSK-13", "SHOULD", "2025-11-25", "2026-07-28", "requestor",
         "Poll `tasks/get`, respecting `pollInterval`, until terminal or `input_required`."),
        ("TSK-14", "MUST", "2025-11-25", "2026-07-28", "receiver",
         "`tasks/result` of a terminal task returns exactly what the original request would "
         "have (result, or that JSON-RPC error)."),
        ("TSK-15", "MUST", "2025-11-25", "2026-07-28", "receiver",
         "`tasks/result` of a non-terminal task blocks until terminal."),
        ("TSK-16", "SHOULD", "2025-11-25", "2026-07-28", "requestor",
         "On `input_required` call `tasks/result` at once (it is the channel for nested "
         "requests on HTTP)."),
        ("TSK-17", "MUST", "2025-11-25", "2026-07-28", "both",
         "All requests/notifications/responses of a task carry "
         '`_meta["io.modelcontextprotocol/related-task"]`; nested requests too; `tasks/result` '
         "response too."),
        ("TSK-18", "SHOULD NOT", "2025-11-25", "2026-07-28", "both",
         "Not on `tasks/get`, `tasks/list`, `tasks/cancel` nor `notifications/tasks/status`; "
         "receivers ignore it there: the `taskId` param wins."),
        ("TSK-19", "MAY", "2025-11-25", "2026-07-28", "receiver",
         "`notifications/tasks/status` (full Task) is optional; requestor MUST NOT depend on it."),
        ("TSK-20", "schema", "2025-11-25", "2026-07-28", "both",
         "`tasks/list` paginated; needs `tasks.list`; everything gettable is listable; "
         "`nextCursor` MUST be set if more."),
        ("TSK-21", "MUST", "2025-11-25", "2026-07-28", "receiver",
         "`tasks/cancel` on a terminal task → `-32602`; else set `cancelled` before responding "
         "with the Task; stays cancelled even if work finishes."),
        ("TSK-22", "MUST", "2025-11-25", "2026-07-28", "receiver",
         "Unknown/expired `taskId` or bad cursor → `-32602`; internal → `-32603`."),
        ("TSK-23", "schema", "2025-11-25", "2026-07-28", "receiver",
         "Failed execution (JSON-RPC error, or tool result `isError: true`) → status `failed`. "
         "(The extension says `completed`: TX-11.)"),
        ("TSK-24", "MUST", "2025-11-25", "2026-07-28", "receiver",
         "With an authorization context tasks are bound to it: other contexts are refused and "
         "not listed. Without: unguessable ids, SHOULD NOT declare `tasks.list`."),
        ("TSK-25", "SHOULD", "2025-11-25", "2026-07-28", "receiver",
         "Limits on number of tasks and ttl, clean-up, rate limits."),
        ("TSK-26", "MAY", "2025-11-25", "2026-07-28", "requestor",
         "On HTTP the requestor may disconnect from a `tasks/get`/`tasks/result` SSE stream at "
         "any time; SHOULD expect messages on any stream; server SHOULD NOT upgrade `tasks/get` "
         "to SSE."),
        ("TSK-27", "MAY", "2025-11-25", "2026-07-28", "server",
         '`CreateTaskResult._meta["io.modelcontextprotocol/model-immediate-response"]`: string '
         "for the model (provisional)."),
    ),
    # TX, Tasks extension `io.modelcontextprotocol/tasks`
    *rows(
        {"2026-07-28": "/extensions/tasks/overview"},
        ("TX-1", "schema", "2026-07-28", None, "both",
         "Declared as `{}` in client per-request `extensions` and in server `extensions` "
         "(discover). Only with 2026-07-28; MUST NOT enable anything under 2025-11-25."),
        ("TX-2", "MUST NOT", "2026-07-28", None, "server",
         "No `CreateTaskResult` to a request that did not declare the extension, regardless of "
         "earlier requests."),
        ("TX-3", "MUST", "2026-07-28", None, "client",
         "A declaring client handles both the ordinary result and `CreateTaskResult` on "
         "`tools/call`."),
        ("TX-4", "MUST", "2026-07-28", None, "client",
         "`CreateTaskResult` on any other method is an invalid response."),
        ("TX-5", "MUST", "2026-07-28", None, "server",
         "If it can only serve by a task and the client did not declare: `-32021` with "
         '`requiredCapabilities.extensions["io.modelcontextprotocol/tasks"] = {}`.'),
        ("TX-6", "MUST", "2026-07-28", None, "server",
         '`CreateTaskResult` is flat (`Result & Task`) with `resultType: "task"`; that value is '
         "on no other result. (Two examples in the text's error section show \"task\" on "
         "`tasks/get`; they contradict the MUST.)"),
        ("TX-7", "MUST NOT", "2026-07-28", None, "server",
         "Not returned before `tasks/get` of the id would resolve (wait for consistency)."),
        ("TX-8", "SHOULD", "2026-07-28", None, "server",
         "MRTR exchanges are finished before the task is created."),
        ("TX-9", "schema", "2026-07-28", None, "both",
         "Task = `taskId, status, statusMessage?, createdAt, lastUpdatedAt, ttlMs (int|null), "
         "pollIntervalMs?`; ttl and interval may change."),
        ("TX-10", "MUST", "2026-07-28", None, "server",
         '`tasks/get` result: `resultType: "complete"` + Task, with `inputRequests` (all '
         "outstanding) if `input_required`, `result` if `completed`, `error` if `failed`."),
        ("TX-11", "MUST NOT", "2026-07-28", None, "server",
         "`failed` only for JSON-RPC errors; a tool result with `isError` is `completed`. "
         "(Opposite of 2025-11-25.)"),
        ("TX-12", "MUST", "2026-07-28", None, "server",
         "Input-request keys are unique for the life of the task and never reused."),
        ("TX-13", "schema", "2026-07-28", None, "client",
         '`tasks/update {taskId, inputResponses}` → empty result `resultType: "complete"`; '
         "eventually consistent."),
        ("TX-14", "SHOULD", "2026-07-28", None, "server",
         "Unknown or already answered keys are ignored; partial answers MAY be accepted (task "
         "stays `input_required`)."),
        ("TX-15", "SHOULD", "2026-07-28", None, "client",
         "De-duplicate keys across polls; answer each once; keep polling to terminal."),
        ("TX-16", "MUST", "2026-07-28", None, "client",
         "Treat `inputRequests` with the trust model of direct elicitation/sampling."),
        ("TX-17", "schema", "2026-07-28", None, "client",
         "`tasks/cancel {taskId}` → empty ack; cooperative; status may end other than "
         "`cancelled`. Not an error on a terminal task."),
        ("TX-18", "MUST NOT", "2026-07-28", None, "client",
         "`notifications/cancelled` is not for tasks."),
        ("TX-19", "MUST", "2026-07-28", None, "server",
         "Unknown id: `-32602` MUST for `tasks/get`, SHOULD for update/cancel. Non-declaring "
         "client on any `tasks/*` or listen `taskIds`: `-32021`."),
        ("TX-20", "schema", "2026-07-28", None, "both",
         "Listen filter and ack gain `taskIds?: string[]`; `notifications/tasks` carries a full "
         "DetailedTask."),
        ("TX-21", "MUST", "2026-07-28", None, "client",
         "HTTP: `tasks/get|update|cancel` set `Mcp-Name` to `params.taskId`."),
        ("TX-22", "MUST", "2026-07-28", None, "server",
         "`tasks/result` → `-32601`; `task` param on `tools/call` is ignored; legacy `tasks.*` "
         "capability counts as non-declaring and is not advertised under 2026-07-28. "
         "(`tasks/list` likewise `-32601`.)"),
        ("TX-23", "MUST", "2026-07-28", None, "server",
         "Task ids unguessable; authorization checked on each task request."),
        ("TX-24", "SHOULD", "2026-07-28", None, "client",
         "Honour `pollIntervalMs`; persist ids; MAY stop after `createdAt + ttlMs`."),
    ),
)
# fmt: on
