"""`Job`: what every job has before a driver starts it."""

from __future__ import annotations

from typing import Any

from mcp_core.runtime import Job


class Nothing(Job):
    """A job without work."""

    async def run(self) -> None: ...
    def done(self, result: Any) -> None: ...
    def failed(self, exc: BaseException) -> None: ...
    def dropped(self) -> None: ...


def test_job_not_started_may_be_stopped() -> None:
    """A request may be cancelled between the event that makes its job and the start of the task."""
    job = Nothing()
    job.stop()
    assert not job.shutting_down
