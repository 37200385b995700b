"""Responses to the requests about tasks: `tasks/get`, `tasks/cancel`, `subscriptions/listen`.

1. A task of another owner, or of another revision, doesn't exist: the error is the same as for an
   unknown id (-32602). The owner needs the scopes of the task's tool, which are computed for each
   request: a token without them gets the same challenge as for a call.
2. In 2025-11-25 `tasks/result` waits until the task has ended. Meanwhile the task's input requests
   are sent to the client as requests of their own, related to it.

Sources: basic/utilities/tasks (2025-11-25); the extension `io.modelcontextprotocol/tasks`.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw
from msgspec.structs import replace

from mcp_core import types as t
from mcp_core._errors import ConnectionLost, Fault, LocalProtocolError, McpError
from mcp_core.protocol.connection._state import ENDING_STATES
from mcp_core.protocol.input_requests._rounds import to_request
from mcp_core.protocol.jsonrpc._codec import encode
from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.protocol.subscriptions._server import LISTEN
from mcp_core.registry._input_requests import NestedRequests
from mcp_core.runtime._service import RequestJob
from mcp_core.tasks._record import TaskKey
from mcp_core.tasks._states import Cancel, ReceiveResponse
from mcp_core.tasks._store import TaskStoreError
from mcp_core.tasks._views import cancel_task_result, get_task_result, listed_task, task_outcome

from ._notifier import notifier_of
from ._records import STORE
from ._wakeup import Wakeup

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping

    from msgspec import Struct

    from mcp_core._errors import PeerError
    from mcp_core.protocol.revisions._dialects import Dialect
    from mcp_core.registry._input_requests import InputCollector
    from mcp_core.runtime._service import Service
    from mcp_core.tasks._record import TaskRecord

    from ._running import RunningTask
    from ._service import TaskService

__all__ = ["TASK_METHODS", "TaskQuestion", "TaskRequestJob"]

_RESULT: Final = "tasks/result"
# Seconds between two attempts to take over a question that another `tasks/result` is asking, whose
# response stream the client may have stopped reading.
_CLAIM_INTERVAL: Final = 5.0
_CANCELLED: Final = "The task was cancelled by request."
_PAGE_SIZE: Final = 100  # entries of a `tasks/list` page: as many as an owner may have by default


class TaskRequestJob(RequestJob):
    """The response to a request about tasks."""

    __slots__ = ("_tasks",)

    def __init__(self, service: Service, tasks: TaskService, collector: InputCollector) -> None:
        super().__init__(service, collector, None)
        self._tasks = tasks

    @property
    def waits(self) -> bool:
        """True if the response may have to wait for the task."""
        return self.request.method.name == _RESULT

    async def run(self) -> Any:
        """Return the result, or raise the error to send."""
        try:
            return await TASK_METHODS[self.request.method.name](self)
        except TaskStoreError as exc:
            self._tasks.records.reports.failed(STORE, exc)
            raise self._error(Fault.INTERNAL, "the store of tasks fails now; try again") from None

    def done(self, result: Any) -> None:
        """Send the result, unless the request is a subscription now."""
        if not self._finished:
            super().done(result)

    async def _find(self) -> TaskRecord:
        return self._existing(await self._tasks.records.get(self._key))

    @property
    def _key(self) -> TaskKey:
        assert self._service is not None
        return TaskKey(self._service.task_owner(self.request), self.request.params.task_id)

    def _existing(self, record: TaskRecord | None) -> TaskRecord:
        if (
            record is None
            or not _is_of(record, self.request.peer.dialect)
            or self._hides_tasks_of(record.tool)
        ):
            raise self._error(Fault.INVALID_PARAMS, "there is no such task")
        self._check_scopes([record.tool])
        return record

    def _hides_tasks_of(self, tool: str) -> bool:
        """Return True if the client doesn't see `tool`, and so no task of it."""
        service = self._service
        assert service is not None
        return service.server.hides_task_of(tool, self.request, service)

    def _check_scopes(self, tools: Collection[str]) -> None:
        """Raise an error unless the token of this request covers calls of `tools`."""
        assert self._service is not None
        denial = self._service.authorize_calls(self.request, tools)
        if denial is not None:
            raise self._error(denial.fault, denial.message)

    def _error(self, fault: Fault, text: str) -> McpError:
        return McpError(self.request.peer.dialect.codes[fault], text)

    async def _get(self) -> t.Result:
        return self._view(get_task_result, await self._find())

    def _view(self, view: Callable[..., t.Result], record: TaskRecord) -> t.Result:
        tasks = self._tasks
        now = tasks.runtime.wall_time()
        return view(record, self.request.peer.dialect, now, tasks.records.limits)

    async def _cancel(self) -> t.Result:
        task = self._tasks.running(self._key)
        if (
            task is not None
            and DIALECTS.get(task.revision) is self.request.peer.dialect
            and not self._hides_tasks_of(task.tool)
        ):
            self._check_scopes([task.tool])
            return await self._cancel_running(task)
        record = await self._find()
        if not record.ended:
            applied = await self._tasks.records.apply(self._key, Cancel(_CANCELLED))
            return self._cancelled(applied)
        return self._not_cancelled(record)

    async def _cancel_running(self, task: RunningTask) -> t.Result:
        """Cancel a task that runs here. Its handler stops also if the store fails."""
        try:
            return self._cancelled(await task.cancel(_CANCELLED))
        except TaskStoreError as exc:
            # In 2025-11-25 the status has to be "cancelled" before the response. The extension
            # acknowledges the request, and the status may follow later.
            if self.request.peer.dialect.tasks == "requested":
                raise
            self._tasks.records.reports.failed(STORE, exc)
            return t.CancelTaskResult()

    def _cancelled(self, applied: tuple[TaskRecord, TaskRecord] | None) -> t.Result:
        record = self._existing(None if applied is None else applied[1])
        assert applied is not None
        if applied[0].ended:
            return self._not_cancelled(record)
        return self._view(cancel_task_result, record)

    def _not_cancelled(self, record: TaskRecord) -> t.Result:
        """Return the response to cancelling a task that has ended before."""
        if self.request.peer.dialect.tasks == "requested":
            raise self._error(Fault.INVALID_PARAMS, f"the task has ended: it is {record.status}")
        return self._view(cancel_task_result, record)

    async def _update(self) -> t.Result:
        await self._find()
        responses: Mapping[str, Raw] = self.request.params.input_responses
        # A copy: a `Raw` of a message keeps the whole message in memory.
        actions = [ReceiveResponse(key, Raw(bytes(raw))) for key, raw in responses.items()]
        applied = await self._tasks.records.apply(self._key, *actions)
        self._existing(None if applied is None else applied[1])
        return t.UpdateTaskResult()

    async def _listen(self) -> None:
        """Accept a listen request, without the tasks that its client may not see."""
        service = self._service
        assert service is not None
        dialect = self.request.peer.dialect
        records = self._tasks.records
        owner = service.task_owner(self.request)
        wanted: t.SubscriptionFilter = self.request.params.notifications
        found: dict[TaskKey, str] = {}  # the tool of each
        for task_id in dict.fromkeys(wanted.task_ids or ()):
            key = TaskKey(owner, task_id)
            record = await records.get(key)
            if (
                record is not None
                and _is_of(record, dialect)
                and not self._hides_tasks_of(record.tool)
            ):
                found[key] = record.tool
        self._check_scopes(list(dict.fromkeys(found.values())))
        honoured = replace(wanted, task_ids=[key.id for key in found] or None)
        self._finished = True
        if service.accept_listen(self.request, honoured) and found:
            notifier_of(service, records).listen(list(found))

    async def _list(self) -> t.Result:
        service = self._service
        assert service is not None
        tasks = self._tasks
        dialect = self.request.peer.dialect
        owner = service.task_owner(self.request)
        if not owner and not service.runtime.single_peer:
            # It would list the tasks of all clients, whose ids are secrets.
            text = "tasks/list needs a session or an authorized client"
            raise self._error(Fault.METHOD_NOT_FOUND, text)
        now = tasks.runtime.wall_time()
        try:
            page = await tasks.records.store.page(
                owner, self.request.params.cursor or "", _PAGE_SIZE + 1
            )
        except KeyError:
            raise self._error(Fault.INVALID_PARAMS, "Unknown cursor") from None
        shown = page[:_PAGE_SIZE]
        allowed = {
            tool: service.may_call(self.request, tool) and not self._hides_tasks_of(tool)
            for tool in {each.tool for each in shown}
        }
        return t.ListTasksResult(
            tasks=[
                listed_task(record, dialect, now, tasks.records.limits)
                for record in shown
                if _is_of(record, dialect) and record.expires > now and allowed[record.tool]
            ],
            next_cursor=shown[-1].id if len(page) > len(shown) else None,
        )

    async def _result(self) -> dict[str, Any] | t.ErrorData:
        tasks = self._tasks
        changed = Wakeup(tasks.runtime)
        asked: set[str] = set()
        with self._counted(), tasks.records.watched(self._key, changed.set):
            while True:
                record = await self._find()
                if record.ended:
                    return task_outcome(record)
                seconds = max(record.expires - tasks.runtime.wall_time(), 0.0)
                for key, request in record.open_requests.items():
                    if key in asked:
                        continue
                    question = TaskQuestion(self.input_collector, record.key, key, request)
                    if tasks.claim_question(question):
                        asked.add(key)
                        tasks.records.start_soon(partial(self._ask, question))
                    else:
                        seconds = min(seconds, _CLAIM_INTERVAL)
                await changed.wait(seconds)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        """Count the waiting requests of this connection.

        Raises:
            McpError: there are too many.
        """
        service = self._service
        assert service is not None
        limit = self._tasks.records.limits.waiting
        if len(service.waiting_results) >= limit:
            text = f"{limit} requests for results of tasks wait already: poll with tasks/get"
            raise self._error(Fault.BUSY, text)
        service.waiting_results[self.request.id] = self.request.params.task_id
        try:
            yield
        finally:
            del service.waiting_results[self.request.id]

    async def _ask(self, question: TaskQuestion) -> None:
        """Send one input request to the client, and store its response.

        If this request ends first, the input request stays open for the next `tasks/result`. A
        store that fails is tried again: this request doesn't ask its client a second time.
        """
        tasks = self._tasks
        service = self._service
        assert service is not None
        try:
            try:
                response = Raw(encode(await service.runtime.send_nested(question)))
            except McpError as exc:
                error = t.ErrorData(exc.code, exc.message, exc.data)
                response = Raw(encode({"error": error, "fromClient": question.refused}))
            except (ConnectionLost, LocalProtocolError):
                return
            action = ReceiveResponse(question.key, response)
            await tasks.store(partial(tasks.records.apply, question.task, action))
        finally:
            # Not before the response is stored: another request would ask again.
            tasks.release_question(question)


def _is_of(record: TaskRecord, dialect: Dialect) -> bool:
    """Return True if a task was created in this revision, which decides its result's form."""
    return DIALECTS.get(record.revision) is dialect


class TaskQuestion(NestedRequests[Any]):
    """One input request of a task, sent to its client while a `tasks/result` waits.

    Attributes:
        task: the task.
        key: the input request's key.
        refused: True if the client has responded with an error.
    """

    def __init__(
        self, collector: InputCollector, task: TaskKey, key: str, input_request: t.InputRequest
    ) -> None:
        super().__init__(collector)
        self.task = task
        self.key = key
        self.refused = False
        self._withdrawn = False
        self.meta = {t.META_RELATED_TASK: {"taskId": task.id}}
        self._request = input_request

    @property
    def reachable(self) -> bool:
        """True if the client reads the response of the `tasks/result`, as far as is known."""
        has_capacity = self._sender.host.conn.has_capacity
        return has_capacity is None or has_capacity(self._sender.related)

    def withdraw(self) -> None:
        """Stop asking: another `tasks/result` asks now."""
        self._withdrawn = True
        if self in self._sender.active_requests:
            self.fail(LocalProtocolError("another tasks/result asks now"))

    def _make_requests(self) -> Mapping[str, tuple[str, Struct]]:
        if self._withdrawn:
            raise LocalProtocolError("another tasks/result asks now")
        if self._sender.host.conn.state in ENDING_STATES:
            # The client isn't asked, so that the input request stays open.
            raise LocalProtocolError("the connection is being closed")
        entropy = self._sender.host.runtime.entropy
        return {"": to_request(self._request, self._sender.peer, entropy)}

    def _make_result(self, responses: Mapping[str, Any]) -> Any:
        return responses[""]

    def _refused(self, method: str, error: PeerError) -> McpError:
        # The handler gets it with the method's name: see `TaskInput._decode`.
        self.refused = True
        return McpError(error.code, error.message, error.data)


TASK_METHODS: Final[Mapping[str, Callable[[Any], Awaitable[Any]]]] = {
    "tasks/get": TaskRequestJob._get,
    "tasks/update": TaskRequestJob._update,
    "tasks/cancel": TaskRequestJob._cancel,
    "tasks/list": TaskRequestJob._list,
    LISTEN: TaskRequestJob._listen,
    _RESULT: TaskRequestJob._result,
}
