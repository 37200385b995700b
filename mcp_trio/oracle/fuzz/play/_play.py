"""One play of a case: the state that its steps share, and what its clients send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio

from mcp_trio.oracle.fuzz._answers import client_result
from mcp_trio.oracle.fuzz._call_guard import calls_in, completes_call, folded_tail
from mcp_trio.oracle.fuzz._call_times import CallTimes
from mcp_trio.oracle.fuzz._case import Outcome
from mcp_trio.oracle.fuzz._interoperable_json import is_interoperable
from mcp_trio.oracle.fuzz._revisions import dialect_of

from ._clients import Clients
from ._stress_budget import StressBudget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp_trio.oracle.fuzz._call_guard import CallGuard
    from mcp_trio.oracle.fuzz._echo import Echo
    from mcp_trio.oracle.fuzz._fault import TargetFault
    from mcp_trio.oracle.fuzz._sent_request import SentRequest
    from mcp_trio.oracle.fuzz.invariants._checks import CaseChecks

__all__ = ["Play", "ToolNotAllowed"]


class ToolNotAllowed(Exception):
    """A step calls a tool that may not be called."""


class Play:
    """One play of a case.

    Args:
        session: the first client's session. The caller closes it.
        timeout: seconds for a response.
        echo: measures how slow the machine is; None to trust it.
        guard: says which messages may be sent; None for all.
        wanted: the cause of a fault. The play ends when it is found.
        call_times: how long calls of tools may take. By default nothing is known about any tool.
        checks: the author's own functions, for this play; None without any.

    Attributes:
        clients: the case's clients.
        outcome: what the play has found.
        stress: what its stress steps may still use.
        selected: the revisions that the server has selected.
        before_cancel: how many requests a step had sent when it cancelled one of them, else 0.
        overdue_before_cancel: those of them that had got no response in time before that.
        has_disconnected: a step has ended the conversation in order.
        was_blocked: while a cancelled call might run, a long wait has brought no response.
        has_slow_twin: an examination has found calls to be slow in another session, too.
        timeout, echo, guard, wanted, call_times, checks: the arguments.
    """

    def __init__(
        self,
        session: Any,
        timeout: float,
        *,
        echo: Echo | None = None,
        guard: CallGuard | None = None,
        wanted: tuple[str, str] | None = None,
        call_times: CallTimes | None = None,
        checks: CaseChecks | None = None,
    ) -> None:
        self.clients = Clients(session)
        self.outcome = Outcome()
        self.stress = StressBudget()
        self.selected: set[str] = set()
        self.before_cancel = 0
        self.overdue_before_cancel: list[SentRequest] = []
        self.has_disconnected = False
        self.was_blocked = False
        self.has_slow_twin = False
        self.timeout = timeout
        self.echo = echo
        self.guard = guard
        self.wanted = wanted
        self.call_times = call_times or CallTimes()
        self.checks = checks
        self._tail = ""  # the last letters of the bytes that were sent

    @property
    def session(self) -> Any:
        """The session of the client whose turn it is."""
        return self.clients.session

    def is_found(self) -> bool:
        """Return True if the wanted fault was found."""
        return self.wanted is not None and bool(self.session.has_fault(self.wanted))

    def is_over(self) -> bool:
        """Return True if the play can end: the wanted fault was found, or the session has ended."""
        return self.is_found() or bool(self.session.ended)

    async def is_slow(self) -> bool:
        """Return True if this machine is slow at the moment."""
        return self.echo is not None and await self.echo.is_slow()

    async def check_results(self) -> None:
        """Run the author's functions for the results that have come."""
        if self.checks is not None:
            for session in self.clients:
                await self.checks.check(session)

    def report(self, fault: TargetFault | None) -> None:
        """Add a fault to the current client's session, if there is one."""
        if fault is not None:
            self.session.add_fault(fault)

    # -- Sending -----------------------------------------------------------------------------------

    def make_request(
        self,
        method: str,
        params: Any,
        id: str | list[int | str] = "int",
        meta: str = "whole",
        **more: Any,
    ) -> dict[str, Any]:
        """Return a request with a new id and the `_meta` of its revision.

        Raises:
            ToolNotAllowed: it calls a tool that may not be called.
        """
        self.check_message(method, params)
        session = self.session
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": session.new_id(id), "method": method}
        if params == "absent":
            params = {}
        if isinstance(params, dict):
            given = params.get("_meta", {})
            if isinstance(given, dict):
                found = {**given, **session.meta(meta), **more.get("extra_meta", {})}
                params = {**params, "_meta": found} if found else params
        if params != {}:
            message["params"] = params
        return message

    def check_message(self, method: Any, params: Any) -> None:
        """Raise `ToolNotAllowed` if a message calls a tool that may not be called."""
        message = {"method": method, "params": params}
        if self.guard is not None and not self.guard.allows_message(message):
            raise ToolNotAllowed(str(method))

    async def send(
        self,
        method: str,
        params: Any,
        id: str | list[int | str] = "int",
        meta: str = "whole",
        **more: Any,
    ) -> SentRequest:
        """Send a request. See `make_request`."""
        session = self.session
        message = self.make_request(method, params, id, meta, **more)
        is_again = isinstance(id, list) and any(each.id == id[0] for each in session.requests)
        await session.send(message, is_plain=is_interoperable(message))
        request: SentRequest = session.requests[-1]
        # Until 2025-11-25, an id must not come again in a session.
        request.is_owed = not is_again or not dialect_of(session.revision).stateful
        return request

    async def notify(self, method: str, params: Any = "absent") -> None:
        """Send a notification."""
        self.check_message(method, params)
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params not in ({}, "absent"):
            message["params"] = params
        self.session.last_sent = method
        await self.session.send(message)

    async def respond_to(self, request: Mapping[str, Any], how: str) -> None:
        """Respond to one of the server's requests. See the step `respond`."""
        response: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        result = client_result(str(request["method"]), request.get("params"))
        if how == "error" or result is None:
            code = -32601 if result is None else -32603
            response["error"] = {"code": code, "message": "not available"}
        elif how == "wrong":
            response["result"] = {"content": 7, "roots": "x", "action": None}
        else:
            response["result"] = result
        if how == "id":
            response["id"] = f"{request['id']}-other"
        if how in ("id", "wrong"):
            self.session.is_misled = True
        await self.session.send(response)
        if how == "twice":
            await self.session.send(response)

    async def cancel_request(self, request: SentRequest) -> None:
        """Cancel a request by the transport's means, or by a notification."""
        request.cancelled = True
        if not request.is_bounded:
            self.session.cancelled_at = trio.current_time()
        if not await self.session.cancel_exchange(request):
            await self.notify(
                "notifications/cancelled", {"requestId": request.id, "reason": "not needed"}
            )

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes and a line feed, unless they call a tool that may not be called."""
        if self.guard is not None:
            # A server may skip the line feed between the bytes of two steps.
            if completes_call(self._tail, data) or not self.guard.allows_data(data):
                raise ToolNotAllowed("bytes")
            self._tail = "" if calls_in(data) else folded_tail(self._tail, data)
        await self.session.send_bytes(data)
