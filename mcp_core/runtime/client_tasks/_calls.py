"""The calls of a client that are about tasks: to start a tool as one, and to find one again."""

from __future__ import annotations

import abc
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

from mcp_core import types as t
from mcp_core._errors import Fault, LocalProtocolError
from mcp_core._keywords import shows_keywords
from mcp_core.client._calls import CallOptions
from mcp_core.protocol.messages._events import TaskCreated
from mcp_core.protocol.messages._pending import IgnoredRequest
from mcp_core.protocol.revisions._capabilities import is_declared
from mcp_core.protocol.revisions._dialects import DIALECTS
from mcp_core.runtime._callback_queue import CallbackQueue

from ._task import ClientTask, TaskReference

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_core.client._calls import CallSteps
    from mcp_core.protocol.connection._connection import Connection
    from mcp_core.protocol.messages._events import Peer, ProgressReceived
    from mcp_core.runtime._job import Job

    from ._poller import TaskPoller

__all__ = ["TASK_CALLS", "TaskCalls"]

T = TypeVar("T")

# The capability of a server of 2025-11-25 that runs calls of tools as tasks.
TASK_CALLS = ("tasks", "requests", "tools", "call")


class TaskCalls(abc.ABC):
    """The part of `AbstractClient` that is about tasks."""

    _conn: Connection
    _clock: Callable[[], float]
    _poller: TaskPoller
    # By name, the support for tasks of the tools that were listed; None if none were.
    _task_support: dict[str, str | None] | None = None

    @property
    @abc.abstractmethod
    def peer(self) -> Peer:
        """The revision, capabilities, name and instructions of the server."""

    @abc.abstractmethod
    def _start_job(self, job: Job) -> None:
        """Run a job in a task of the client."""

    @abc.abstractmethod
    def _log_error(self, problem: str, error: BaseException) -> None:
        """Log an error that ends no call."""

    @abc.abstractmethod
    async def _call(self, steps: CallSteps[T], options: CallOptions) -> T:
        """Run the steps of a call."""

    @abc.abstractmethod
    def _tools(self, options: CallOptions) -> CallSteps[list[t.Tool]]:
        """List all tools."""

    @abc.abstractmethod
    def _tool_request(
        self, params: dict[str, Any], options: CallOptions
    ) -> CallSteps[t.CallToolResult | TaskCreated]:
        """Request a call of a tool."""

    @abc.abstractmethod
    def _pages(self, method: str, member: str, options: CallOptions) -> CallSteps[list[Any]]:
        """List all pages."""

    @shows_keywords(CallOptions)
    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        **options: Unpack[CallOptions],
    ) -> ClientTask:
        """Call a tool as a task, and return the task as soon as the server has created it::

            task = await client.start_tool("research", {"topic": "owls"})
            async for state in task.states():
                print(state.status, state.message)
            result = await task.result()

        A server of 2026-07-28 decides for each call whether it becomes a task. If it answers with
        a result at once, the returned task has ended already.

        Args:
            name: the tool's name.
            arguments: its arguments, by name.
            ttl: seconds for which the server is asked to keep the task, its result included; None
                leaves it to the server, which also may keep it for another time (2025-11-25).
            options: see `CallOptions`. They apply until the task is created. Then `timeout` applies
                to each later response about it, and `progress` is called until it has ended
                (2025-11-25). What it raises then is logged.

        Raises:
            LocalProtocolError: the server or its revision has no tasks, the tool doesn't run as
                one (2025-11-25), or the client was connected with `tasks=False` (2026-07-28);
                nothing was sent.
            ValueError: `ttl` isn't positive, or infinite.
        """
        if ttl is not None and not 0 < ttl < inf:
            raise ValueError(f"ttl is a number of seconds above 0, or None, not {ttl!r}")
        return await self._call(self._start(name, arguments, ttl, options), options)

    async def task(self, reference: str, *, timeout: float | None = 60.0) -> ClientTask:
        """Return a task that was started earlier, perhaps on another connection.

        If the caller still has the `ClientTask` of this connection, it is returned itself.

        Args:
            reference: the `reference` of the task.
            timeout: seconds for each response about the task, None for no limit.

        Raises:
            InvalidTaskReference: the text isn't a reference.
            LocalProtocolError: this connection has another revision than that of the task.
            PeerError: the server has no such task any more, or it is another user's (-32602).
        """
        found = TaskReference.parse(reference)
        if DIALECTS.get(found.revision) is not self.peer.dialect:
            raise LocalProtocolError(
                f"the task is of revision {found.revision}: connect with versions="
                f"[{found.revision!r}]"
            )
        task = self._poller.find(found.id)
        if task is None:
            state = t.Task(
                task_id=found.id,
                status="working",
                created_at=found.created,
                last_updated_at=found.created,
                ttl=found.ttl,
            )
            task = self._client_task(state, found.tool, None, {"timeout": timeout})
        await task.refresh()
        self._poller.add(task)
        return task

    @shows_keywords(CallOptions)
    async def list_tasks(self, **options: Unpack[CallOptions]) -> list[t.Task]:
        """List the tasks of this client's user, page after page (2025-11-25).

        Args:
            options: see `CallOptions`.

        Raises:
            LocalProtocolError: the server doesn't list tasks; in 2026-07-28 none does.
        """
        return await self._call(self._pages("tasks/list", "tasks", options), options)

    def _followed(
        self,
        result: t.CallToolResult | TaskCreated,
        params: dict[str, Any],
        options: CallOptions,
    ) -> CallSteps[t.CallToolResult]:
        """Follow a call that became a task to its end. Repeat one that failed for lack of a task.

        `result` is that of the request with `params`: a task, or an error.
        """
        if not isinstance(result, TaskCreated):
            # Servers of the TypeScript SDK put the error into the text of a result.
            if f"MCP error {self._needs_task}" not in result.text:
                return result
            if not (yield from self._turns_out_as_task(params, options)):
                return result
            result = yield from self._tool_request({**params, "task": {}}, options)
            if not isinstance(result, TaskCreated):
                return result
        task = self._new_task(result, params["name"], options)
        task.end_progress = partial(result.redirect_progress, None)
        return (yield from self._poller.follow_own(task))

    def _turns_out_as_task(self, params: dict[str, Any], options: CallOptions) -> CallSteps[bool]:
        """Return True if the list of tools, unknown so far, says that one runs as a task only."""
        if not self._may_need_task(params):
            return False
        yield from self._tools(options)
        return self._must_be_task(params["name"])

    @property
    def _needs_task(self) -> int:
        """The code of the error for a call of a tool that runs as a task only (TSK-5)."""
        return self.peer.dialect.codes[Fault.METHOD_NOT_FOUND]

    def _may_need_task(self, params: dict[str, Any]) -> bool:
        """Return True if a tool that was never listed may have to be called as a task."""
        peer = self.peer
        return (
            peer.dialect.tasks == "requested"
            and self._task_support is None
            and "task" not in params
            and is_declared(peer.capabilities, TASK_CALLS)
        )

    def _start(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        ttl: float | None,
        options: CallOptions,
    ) -> CallSteps[ClientTask]:
        dialect = self.peer.dialect
        params = _tool_params(name, arguments)
        if dialect.tasks == "requested":
            yield from self._require_support(name, options)
            params["task"] = {} if ttl is None else {"ttl": round(ttl * 1000)}
        elif dialect.tasks == "none":
            raise LocalProtocolError(
                f"revision {dialect.version} has no tasks", Fault.MISSING_CAPABILITY
            )
        elif not self._conn.config.declares_tasks:
            raise LocalProtocolError("the client was connected with tasks=False")
        result = yield from self._tool_request(params, options)
        if isinstance(result, TaskCreated):
            task = self._new_task(result, name, options)
            progress = options.get("progress")
            if progress is not None:
                follower = TaskProgress(
                    progress, self._start_job, partial(self._log_error, "progress failed")
                )
                result.redirect_progress(follower)
                task.end_progress = partial(result.redirect_progress, None)
            return task
        ended = t.Task(task_id="", status="completed", created_at="", last_updated_at="")
        task = self._client_task(ended, name)
        task.final = result
        return task

    def _require_support(self, name: str, options: CallOptions) -> CallSteps[None]:
        """Check that a server of 2025-11-25 runs a tool as a task."""
        if not is_declared(self.peer.capabilities, TASK_CALLS):
            raise LocalProtocolError(
                "the server did not declare that it runs tools as tasks", Fault.MISSING_CAPABILITY
            )
        if self._task_support is None:
            yield from self._tools(options)
        support = (self._task_support or {}).get(name)
        if support not in ("optional", "required"):
            raise LocalProtocolError(f"the tool {name!r} does not run as a task")

    def _new_task(self, created: TaskCreated, tool: str, options: CallOptions) -> ClientTask:
        meanwhile = (created.meta or {}).get(t.META_IMMEDIATE_RESPONSE)
        kept: CallOptions = {"timeout": options["timeout"]} if "timeout" in options else {}
        task = self._client_task(
            created.task, tool, meanwhile if isinstance(meanwhile, str) else None, kept
        )
        self._poller.add(task)
        return task

    def _must_be_task(self, tool: str) -> bool:
        """Return True if a tool of a server of 2025-11-25 is known to run as a task only."""
        peer = self._conn.peer
        assert peer is not None
        return (
            peer.dialect.tasks == "requested"
            and is_declared(peer.capabilities, TASK_CALLS)
            and (self._task_support or {}).get(tool) == "required"
        )

    def _client_task(
        self,
        state: t.Task,
        tool: str,
        meanwhile: str | None = None,
        options: CallOptions | None = None,
    ) -> ClientTask:
        version = self.peer.dialect.version
        now = self._clock()
        return ClientTask(self._poller, self._call, state, tool, version, now, meanwhile, options)


class TaskProgress(IgnoredRequest):
    """The `progress` callback of a started task, whose call is over (2025-11-25, PROG-6).

    Args:
        callback: the callback.
        start_job: runs a job in a task of the client.
        on_error: gets what the callback raises.
    """

    def __init__(
        self,
        callback: Callable[[float, float | None, str | None], object],
        start_job: Callable[[Job], object],
        on_error: Callable[[BaseException], object],
    ) -> None:
        super().__init__()
        self._callbacks = CallbackQueue(callback, start_job, on_error)
        self._report = on_error

    def on_progress(self, event: ProgressReceived) -> None:
        try:
            self._callbacks.call(event.progress, event.total, event.message)
        except Exception as exc:  # noqa: BLE001 - no call of the user's is there to raise it
            self._report(exc)


def _tool_params(name: str, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"name": name} if arguments is None else {"name": name, "arguments": arguments}
