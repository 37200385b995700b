"""A piece of work that needs a task of its own. A driver starts every `Job` in the same way."""

from __future__ import annotations

import abc
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from mcp_core._on_first_use import type_on_first_use

if TYPE_CHECKING:
    from mcp_core.http.server._auth import AuthCheck
else:
    AuthCheck = type_on_first_use("mcp_core.http.server._auth", "AuthCheck")

__all__ = ["AUTH_CHECK_TIMEOUT", "Job", "run_auth_check"]

# Seconds for the check of one request. Longer than its HTTP requests take if a server doesn't
# respond, and shorter than the timeout of a request's body.
AUTH_CHECK_TIMEOUT: Final = 20.0


class Job(abc.ABC):
    """A piece of work for one task.

    In the task, a driver awaits `run` and reports the outcome. `dropped` comes last in any case::

        job.stop = cancel_the_task
        try:
            job.done(await job.run())
        except BaseException as exc:  # but not the runtime's own cancellation, which propagates
            job.failed(exc)
        finally:
            job.dropped()

    Attributes:
        stop: cancels the task: the driver sets it, and anyone may call it.
        shutting_down: set by the driver if the task starts although the conversation is already
            cancelled; then the job must not wait for a user.
        stops_again: True if each call of `stop` is to cancel the task once more, as what it runs
            may swallow a cancellation. Otherwise further calls do nothing.
    """

    __slots__ = ("shutting_down", "stop")

    stops_again = False

    def __init__(self) -> None:
        self.stop: Callable[[], object] = _nothing
        self.shutting_down = False

    @abc.abstractmethod
    async def run(self) -> Any:
        """Do the work, and return its result. The driver awaits this once."""

    @abc.abstractmethod
    def done(self, result: Any) -> None:
        """Report `result`, which `run` returned."""

    @abc.abstractmethod
    def failed(self, exc: BaseException) -> None:
        """Report `exc`, which `run` raised.

        Raises:
            BaseException: `exc` itself, if it must also end the driver. Each class says when.
        """

    @abc.abstractmethod
    def dropped(self) -> None:
        """Report that the task has ended: cancelled, if without `done` and `failed`."""


def _nothing() -> None:
    """Stop nothing: no driver has started the job."""


async def run_auth_check(
    check: AuthCheck,
    fetch: Callable[[Any], Awaitable[Any]] | None,
    clock: Callable[[], float],
) -> None:
    """Run the steps of `check` until the request is granted or denied.

    A step either brings its own awaitable, such as a verifier written by the user, or is an HTTP
    request for `fetch`. Without `fetch` such a request fails. There is no timeout: cancel this
    function at your own deadline, `AUTH_CHECK_TIMEOUT`, then call `check.time_out`.

    Args:
        check: the check of one request.
        fetch: sends the request of a `mcp_core.auth.Fetch` step, and returns its response; None for
            a driver that sends no HTTP requests.
        clock: returns the time on the endpoint's clock, monotonic, in seconds.
    """
    while (step := check.step) is not None:
        try:
            reply = await _start_step(step, fetch)
        except (Exception, SystemExit) as exc:  # noqa: BLE001 - the flow decides: retry or deny
            check.throw(exc, clock())
        else:
            check.send(reply, clock())


def _start_step(step: Any, fetch: Callable[[Any], Awaitable[Any]] | None) -> Awaitable[Any]:
    awaitable: Awaitable[Any] | None = getattr(step, "awaitable", None)
    if awaitable is not None:
        return awaitable
    if fetch is None:
        raise RuntimeError(
            "this driver sends no HTTP requests for authorization: give the verifier the keys of"
            " the issuer, as in JwtVerifier(..., jwks=KEYS)"
        )
    return fetch(step)
