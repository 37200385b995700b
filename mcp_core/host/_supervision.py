"""The states of one server of a host as a table, and when it is started again.

1. There is no clock: callers pass `now`, in seconds of a clock that is never set back.
2. An event that a state doesn't expect changes nothing, such as the end of a process that the host
   itself has stopped. Neither does an event of an earlier attempt.
3. A server that isn't approved is never in "connecting" or "ready": each way there leads to
   "unapproved" instead.
4. A server that ends by itself is started again. After a bad command, a refused login or a missing
   approval the next attempt would fail in the same way, so the user has to do something first.
5. A list that could not be read leaves its server "ready", with a `ListProblem`, and is read again.

Read the table as `SERVER_TRANSITIONS[state][event] -> next state`. A missing cell changes nothing.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

__all__ = [
    "SERVER_TRANSITIONS",
    "CatalogList",
    "ListProblem",
    "ServerEvent",
    "ServerState",
    "ServerStatus",
    "ServerSupervisor",
]

# A server's lists.
CatalogList: TypeAlias = Literal["tools", "prompts", "resources", "resource templates"]
# A server's states; `SERVER_TRANSITIONS` has the ways between them.
ServerState: TypeAlias = Literal[
    "disabled", "unapproved", "connecting", "ready", "failed", "needs login"
]


class ServerEvent(enum.Enum):
    """An event that can change a server's state."""

    ENABLED = "enabled"
    DISABLED = "disabled"
    APPROVED = "approved"
    # The approval was taken back, or the file names another command now.
    APPROVAL_LOST = "approval lost"
    CONNECTED = "connected"
    # The process ended, or the connection was lost or could not be made.
    DIED = "died"
    # Another attempt would fail too: a bad command, a refused login.
    REJECTED = "rejected"
    LOGIN_REQUIRED = "login required"
    LOGGED_IN = "logged in"
    # The next attempt's time has come.
    RETRY_DUE = "retry due"
    # The user asks for a new process or connection.
    RESTARTED = "restarted"


_ALWAYS: Final[Mapping[ServerEvent, ServerState]] = {
    ServerEvent.DISABLED: "disabled",
    ServerEvent.APPROVAL_LOST: "unapproved",
    ServerEvent.RESTARTED: "connecting",
}
# The next state of a server, by its state and an event. A missing one changes nothing.
SERVER_TRANSITIONS: Final[Mapping[ServerState, Mapping[ServerEvent, ServerState]]] = {
    "disabled": {ServerEvent.ENABLED: "connecting"},
    "unapproved": {
        ServerEvent.APPROVED: "connecting",
        ServerEvent.REJECTED: "failed",
        ServerEvent.DISABLED: "disabled",
    },
    "connecting": {
        ServerEvent.CONNECTED: "ready",
        ServerEvent.DIED: "failed",
        ServerEvent.REJECTED: "failed",
        ServerEvent.LOGIN_REQUIRED: "needs login",
        **_ALWAYS,
    },
    "ready": {
        ServerEvent.DIED: "failed",
        ServerEvent.REJECTED: "failed",
        ServerEvent.LOGIN_REQUIRED: "needs login",
        **_ALWAYS,
    },
    "failed": {
        ServerEvent.RETRY_DUE: "connecting",
        ServerEvent.LOGGED_IN: "connecting",
        **_ALWAYS,
    },
    "needs login": {
        ServerEvent.LOGGED_IN: "connecting",
        ServerEvent.REJECTED: "failed",
        **_ALWAYS,
    },
}
# Events that an attempt to connect reports. An earlier attempt's events are late.
_OF_ATTEMPT: Final = frozenset(
    {
        ServerEvent.CONNECTED,
        ServerEvent.DIED,
        ServerEvent.REJECTED,
        ServerEvent.LOGIN_REQUIRED,
    }
)

_FIRST_DELAY: Final = 1.0  # seconds
# A server that cannot start costs little at this rate, and is back soon once its fault is fixed.
_MAX_DELAY: Final = 30.0
# A server that was ready for this long works: its next end counts as the first.
_STABLE_AFTER: Final = 10.0
# Seconds before a list is read again. The first reading falls into the second in which a host waits
# for quiet lists. A list that is too long takes megabytes each time, so the last ones are rare.
_FIRST_LIST_DELAY: Final = 0.5
_MAX_LIST_DELAY: Final = 300.0


class ListProblem(Struct, frozen=True, kw_only=True):
    """Why one of a server's lists isn't up to date.

    Attributes:
        list: the list.
        reason: why it could not be read or used. Safe for a terminal.
        retry_at: when it is read again at the latest, in seconds on the host's monotonic clock. A
            change that the server announces, or a new connection, comes earlier.
    """

    list: CatalogList
    reason: str
    retry_at: float


class ServerStatus(Struct, frozen=True, kw_only=True):
    """The state of a server at one moment.

    Attributes:
        state: one of `SERVER_TRANSITIONS`.
        reason: why it is in this state, "" if the state says it.
        since: when it came into the state.
        attempt: the number of the current or last attempt to connect, from 1; 0 before the first.
        retry_at: when a failed server is started again, None if it isn't.
        problems: the lists of a server that is ready which could not be read. They keep the entries
            that they had, and are read again.
    """

    state: ServerState
    reason: str = ""
    since: float
    attempt: int = 0
    retry_at: float | None = None
    problems: tuple[ListProblem, ...] = ()


class ServerSupervisor:
    """Decides when to connect to one server, and when to do so again after it has ended.

    Connect whenever `apply` returns a status with the state "connecting", end the connection when
    it returns another one, and call `apply` with `RETRY_DUE` at `status.retry_at`. Call
    `list_read` whenever a list was read, and read it again at the `retry_at` of its problem.

    Args:
        now: the time, as in all methods.
        is_enabled: False for a server that is disabled at first.
        is_approved: False for a server that the user has to approve first.
        restarts: False if a server that ended by itself isn't started again.
    """

    def __init__(
        self,
        now: float,
        *,
        is_enabled: bool = True,
        is_approved: bool = True,
        restarts: bool = True,
    ) -> None:
        self._is_approved = is_approved
        self._restarts = restarts
        self._deaths = 0  # without being ready for long in between
        self._unread: dict[CatalogList, int] = {}  # how often in turn each could not be read
        self._status = ServerStatus(state="disabled", since=now)
        if is_enabled:
            self.apply(ServerEvent.ENABLED, now)

    @property
    def status(self) -> ServerStatus:
        """The present state. It is "connecting" at first if the server is enabled and approved."""
        return self._status

    def apply(
        self, event: ServerEvent, now: float, *, reason: str = "", attempt: int | None = None
    ) -> ServerStatus | None:
        """Apply an `event`, and return the new status, None if it changes nothing.

        Args:
            event: the event.
            now: the time.
            reason: the cause, for people.
            attempt: the attempt that reports the event, None for the current one. Its number is
                `status.attempt` when it began.
        """
        if event is ServerEvent.APPROVED:
            self._is_approved = True
        elif event is ServerEvent.APPROVAL_LOST:
            self._is_approved = False
        old = self._status
        state = SERVER_TRANSITIONS[old.state].get(event)
        if state is None or (event in _OF_ATTEMPT and attempt not in (None, old.attempt)):
            return None
        if event is ServerEvent.RETRY_DUE and (old.retry_at is None or now < old.retry_at):
            return None
        if state == "connecting" and not self._is_approved:
            state = "unapproved"
        self._unread.clear()
        new = replace(old, state=state, reason=reason, since=now, retry_at=None, problems=())
        if state == "connecting":
            new = replace(new, attempt=old.attempt + 1)
            if event is not ServerEvent.RETRY_DUE:
                self._deaths = 0  # the user did something: begin anew
        elif event is ServerEvent.DIED and self._restarts:
            if old.state == "ready" and now - old.since >= _STABLE_AFTER:
                self._deaths = 0
            new = replace(new, retry_at=now + self._next_delay())
            self._deaths += 1
        self._status = new
        return new

    def list_read(self, name: CatalogList, problem: str | None, now: float) -> bool:
        """Take the outcome of reading a list. Return True if its problem is a new one, or gone.

        A server that isn't ready has no problems of lists: nothing changes then.

        Args:
            name: the list.
            problem: why it could not be read, None if it was.
            now: the time.
        """
        status = self._status
        if status.state != "ready":
            return False
        old = next((each.reason for each in status.problems if each.list == name), None)
        others = tuple(each for each in status.problems if each.list != name)
        if problem is None:
            self._unread.pop(name, None)
            self._status = replace(status, problems=others)
        else:
            failures = self._unread[name] = self._unread.get(name, 0) + 1
            delay = _delay(failures, _FIRST_LIST_DELAY, _MAX_LIST_DELAY)
            found = ListProblem(list=name, reason=problem, retry_at=now + delay)
            self._status = replace(status, problems=(*others, found))
        return old != problem

    def _next_delay(self) -> float:
        """Return the seconds until the next attempt: 0, 1, 2, 4 and so on, at most 30."""
        return _delay(self._deaths, _FIRST_DELAY, _MAX_DELAY) if self._deaths else 0.0


def _delay(failures: int, first: float, most: float) -> float:
    """Return the seconds after so many failures in turn: `first`, and then twice as many each."""
    # Far below the exponent at which a float overflows.
    return min(first * 2.0 ** min(failures - 1, 10), most)
