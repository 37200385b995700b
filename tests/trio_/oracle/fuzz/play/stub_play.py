"""A play whose session is a table of attributes, for functions that only look at it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import trio

from mcp_trio.oracle.fuzz._call_times import CallTimes
from mcp_trio.oracle.fuzz._sent_request import USER_CODE, SentRequest
from mcp_trio.oracle.fuzz.play._play import Play

if TYPE_CHECKING:
    from mcp_trio.oracle.fuzz._fault import TargetFault

__all__ = ["StubSession", "stub_call", "stub_list", "stub_play_of"]

OLD = "2025-11-25"


class StubSession(SimpleNamespace):
    """A session over stdio that has spoken, with nothing sent and nothing found."""

    found: list[TargetFault]
    arrivals: list[tuple[float, SentRequest, Any]]

    def __init__(self, **more: Any) -> None:
        values: dict[str, Any] = {
            "transport": "stdio",
            "revision": OLD,
            "ended": "",
            "is_open": True,
            "is_misled": False,
            "unread_errors": 0,
            "spent": False,
            "may_be_busy": False,
            "is_busy": False,
            "drops_some": False,
            "has_spoken": True,
            "vain_waits": 0,
            "longest_start": None,
            "played": 1,
            "opened_at": 0.0,
            "answered": 0,
            "requests": [],
            "open": {},
            "quickest": {},
            "running": set(),
            "asked": [],
            "found": [],
            "last_sent": "before",
            "last_id": 1_000,
            "arrivals": [],
            "sent": [],
            "replies": {},
            "closed": 0,
            "loss": "",
            "cancelled_at": 0.0,
        }
        super().__init__(**values | more)

    def add_fault(self, fault: TargetFault) -> None:
        self.found.append(fault)

    def take_faults(self) -> list[TargetFault]:
        found = self.found
        self.found = []
        return found

    def put_faults(self, faults: list[TargetFault]) -> None:
        self.found = faults + self.found

    def has_fault(self, cause: tuple[str, str]) -> bool:
        return any(each.cause == cause for each in self.found)

    async def wait_changed(self, deadline: float) -> bool:
        """Wait for the next of `arrivals`: a time, a request, and its response.

        Without a response it is some other message.
        """
        arrivals = sorted(self.arrivals, key=lambda each: float(each[0]))
        if not arrivals or arrivals[0][0] > deadline:
            await trio.sleep_until(deadline)
            return False
        when, request, answer = arrivals[0]
        self.arrivals = arrivals[1:]
        await trio.sleep_until(when)
        if answer is not None:
            request.answer = answer
            self.answered += 1
            self.has_spoken = True
            self.open.pop(request.id, None)
        return True

    def new_id(self, how: Any) -> int:
        self.last_id += 1
        return int(self.last_id)

    def meta(self, how: str) -> dict[str, Any]:
        return {}

    async def send(self, message: dict[str, Any], *, is_plain: bool = True) -> None:
        """Take a message. `replies` has how long after a method its response comes, and it."""
        await trio.lowlevel.checkpoint()
        self.sent.append(message)
        if not {"id", "method"} <= message.keys():
            return
        is_bounded = message["method"] not in USER_CODE
        request = SentRequest(message, is_plain=is_plain, is_bounded=is_bounded)
        request.sent_at = trio.current_time()
        request.loss = self.loss
        self.requests.append(request)
        self.open[request.id] = request
        if message["method"] in self.replies:
            seconds, answer = self.replies[message["method"]]
            self.arrivals.append((trio.current_time() + seconds, request, answer))

    async def cancel_exchange(self, request: SentRequest) -> bool:
        """Cancel nothing."""
        return False

    async def aclose(self) -> None:
        """Note that it was closed."""
        self.closed += 1


def stub_call(
    name: str = "nap", arguments: Any = None, method: str = "tools/call", **more: Any
) -> SentRequest:
    """Return a call, or another request that names something."""
    params = {"name": name, "arguments": {} if arguments is None else arguments}
    message = {"jsonrpc": "2.0", "id": more.pop("id", 1), "method": method, "params": params}
    request = SentRequest(
        message, is_plain=more.pop("is_plain", True), is_bounded=method not in USER_CODE
    )
    for each, value in more.items():
        setattr(request, each, value)
    return request


def stub_list(**more: Any) -> SentRequest:
    """Return a request that runs no tool."""
    return stub_call(method="tools/list", **more)


def stub_play_of(*requests: SentRequest, times: CallTimes | None = None, **more: Any) -> Any:
    """Return a play whose session has sent requests, which are open unless they are answered."""
    session = StubSession(**more)
    session.requests += requests
    session.open |= {each.id: each for each in requests if each.answer is None}
    return Play(session, 2.0, call_times=times or CallTimes())
