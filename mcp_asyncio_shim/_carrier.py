"""What a machine of the core needs in asyncio, whatever feeds it: one timer, and a task for each job that comes of its events.

Rules: whoever calls into the machine calls `pump` next, which never waits. Nothing that a job raises leaves its task, and only a
cancellation that somebody asked for travels on. A job is settled by the callback of its task, for a task that is cancelled before
its first step never runs.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

from mcp_core import Answering, Connection
from mcp_core.http import Site
from mcp_core.registry import Job


class Carrier:
    """Serves `machine`: `run` is called after each call into it, takes the events out and acts on them; there is one timer for its
    deadlines, and a task for each of the `jobs` that come of it.
    """

    def __init__(self, machine: Connection | Site, run: Callable[[], object]) -> None:
        self.loop = asyncio.get_running_loop()
        self.jobs: set[asyncio.Task[None]] = set()
        self._machine, self._run = machine, run
        self._moved = asyncio.Event()
        self._timer = self.loop.call_soon(self._tick)

    def pump(self) -> None:
        self._run()
        self._moved.set()
        self._moved = asyncio.Event()
        self._timer.cancel()
        deadline = self._machine.next_deadline()
        if deadline is not None:
            self._timer = self.loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._machine.handle_timeout(self.loop.time())
        self.pump()

    async def until(self, ready: Callable[[], object]) -> None:
        """Wait for what only an event, or a call with a `pump`, can bring about."""
        while not ready():
            await self._moved.wait()

    def start(self, job: Job | Answering, pump: Callable[[], object] | None = None) -> None:
        """Run `job` in a task, and `pump` when it is over."""

        def settle(task: asyncio.Task[None]) -> None:
            self.jobs.discard(task)
            job.dropped()
            (pump or self.pump)()

        task = self.loop.create_task(_work(job))
        job.stop = task.cancel
        self.jobs.add(task)
        task.add_done_callback(settle)


async def _work(job: Job | Answering) -> None:
    try:
        job.done(await job)
    except BaseException as exc:
        task = asyncio.current_task()
        if isinstance(exc, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        job.failed(exc)


def apart(take: Callable[..., object]) -> Callable[..., object]:
    """`take`, in the variables of this moment. Handlers start wherever `pump` is called, out of other handlers too, whose
    variables are none of their business."""
    context = contextvars.copy_context()
    return lambda *event: context.copy().run(take, *event)
