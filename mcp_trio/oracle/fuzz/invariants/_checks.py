"""The functions of a file with invariants, run while cases are played.

1. A function runs in a worker thread, since what a user has written can wait or hang. Two functions
   never run at once, so that they may share variables.
2. One that takes too long is left behind in its thread, which nothing can stop, and isn't called
   any more.
3. Only final results are checked: neither a created task nor a request for input, but the task's
   result, and the result of the call that brings the input. A cancelled call isn't checked.
4. An error of the tool is checked only if the arguments fit the tool's schema. A server is right to
   refuse others, and a case that is made small would often end there.
5. Each function gets copies of its own.
6. A value belongs to the conversation whose call has returned it. Another one, after a `reconnect`
   or beside it, can have another process or user, for which a right server doesn't have it.
"""

from __future__ import annotations

import copy
import json
import linecache
import math
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
import trio

from mcp_core import escape_text
from mcp_core.types import CallToolResult
from mcp_trio.oracle.fuzz._fault import TargetFault
from mcp_trio.oracle.fuzz._sent_request import LOST

from ._declared import ToolCall
from ._tool_schemas import ToolSchemas

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcp_trio.oracle.fuzz._sent_request import SentRequest
    from mcp_trio.oracle.fuzz._session import TargetSession

    from ._declared import Declared
    from ._load import Invariants

__all__ = ["CaseChecks", "Checks"]

TIME_LIMIT: Final = 5.0  # seconds for one call of a function
SLOW_SECONDS: Final = 5.0  # seconds of a run, and a part of it, from which a function is named
SLOW_PART: Final = 0.1
MAX_VALUES: Final = 200  # values of one name in a conversation
_SHOWN_CALL: Final = 120  # characters of a call in a sentence
_SHOWN_TEXT: Final = 300  # characters of an assertion's or an error's text
_BUT_REFUSALS: Final = ", apart from errors for arguments that miss its schema"
_WRONG_ARGUMENTS: Final = "wrong arguments"  # the variant of a fault


class Checks:
    """The functions of a file in one run.

    Args:
        invariants: what the file declares.
        on_broken: gets a line about each function that is broken, once.

    Attributes:
        invariants: the same as the argument.
        schemas: the input schemas of the tools; none are known until a run gives the list.
        counts: how many results each invariant has judged.
        broken: why functions are broken, by name.
        seconds: how long each function ran in all.
    """

    def __init__(
        self,
        invariants: Invariants,
        *,
        on_broken: Callable[[str], object] = lambda text: None,
    ) -> None:
        self.invariants = invariants
        self.schemas = ToolSchemas()
        self.counts: Counter[str] = Counter()
        self.broken: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self._on_broken = on_broken
        self._stopped: set[str] = set()  # those that were left behind
        self._lock = trio.Lock()
        # A thread that was left behind keeps its token.
        self._limiter = trio.CapacityLimiter(math.inf)

    def begin(self) -> CaseChecks:
        """Return the checks of one play of a case."""
        return CaseChecks(self)

    def report(self) -> dict[str, Any]:
        """Return what was checked, as JSON."""
        return {
            "source": self.invariants.source,
            "checks": {
                each.name: self.counts[each.name] for each in self.invariants.of_kind("invariant")
            },
            "broken": self.broken,
        }

    @property
    def unjudged(self) -> str:
        """Why no invariant says anything, as a clause; "" if one does, or if there is none."""
        if any(self.counts.values()) or not self.invariants.of_kind("invariant"):
            return ""
        return (
            "no invariant was checked, because no call of its tool had a result; allow the tool"
            " with --allow-tool, or more cases with --cases"
        )

    @property
    def passed(self) -> list[str]:
        """The names of the invariants that have judged a result, and aren't broken."""
        return [name for name in self.counts if name not in self.broken]

    def notes(self, seconds: float) -> list[str]:
        """Return notes about a run of so many seconds: functions that were slow or never needed."""
        found = [
            f"the invariant {each.name} was never checked: no call of its tool had a result"
            + (_BUT_REFUSALS if each.errors else " without is_error")
            for each in self.invariants.of_kind("invariant")
            if not self.counts[each.name] and each.name not in self.broken
        ]
        for name, spent in self.seconds.items():
            if spent > max(SLOW_SECONDS, SLOW_PART * seconds):
                found.append(f"the function {name} took {spent:.0f} s of this run: make it faster")
        return found

    @property
    def failure(self) -> str:
        """A sentence about what is broken, or ""."""
        return "; ".join(f"{name} is broken: {text}" for name, text in self.broken.items())

    async def run(self, declared: Declared, *arguments: Any) -> tuple[Any, FailedAssertion | None]:
        """Run a function. Return its value, and its failed assertion or None.

        If it is broken it returns None.
        """
        async with self._lock:
            if declared.name in self._stopped:
                return None, None
            done: _Done | None = None
            with trio.move_on_after(TIME_LIMIT):
                done = await trio.to_thread.run_sync(
                    _run,
                    declared.function,
                    arguments,
                    abandon_on_cancel=True,
                    limiter=self._limiter,
                )
            if done is None:
                self._stopped.add(declared.name)
            else:
                spent = self.seconds.get(declared.name, 0.0)
                self.seconds[declared.name] = spent + done.seconds
        if done is None:
            self.break_off(
                declared,
                f"{declared.place}: it took over {TIME_LIMIT:g} s, still runs in its thread, which"
                " nothing can stop, and is not called any more: make it faster",
            )
        elif done.error:
            self.break_off(declared, done.error)
        elif done.failed is not None and declared.kind != "invariant":
            text = f"{declared.place}: only an @invariant may assert: {done.failed.text}"
            self.break_off(declared, text)
        else:
            if declared.kind == "invariant":
                self.counts[declared.name] += 1
            return done.value, done.failed
        return None, None

    def break_off(self, declared: Declared, why: str) -> None:
        """Note that a function is broken, and say so the first time."""
        if declared.name not in self.broken:
            self.broken[declared.name] = text = escape_text(why)
            self._on_broken(f"the {declared.kind} {declared.name} is broken: {text}")


class _ConversationValues:
    """Values that the calls of one conversation have returned, and those for its next calls.

    Attributes:
        values: by the name that an `after_call` provides.
        next: arguments of the next call, by tool.
        tasks: the calls that have become tasks, by the task's id.
    """

    def __init__(self) -> None:
        self.values: dict[str, list[Any]] = {}
        self.next: dict[str, dict[str, Any]] = {}
        self.tasks: dict[str, SentRequest] = {}


class CaseChecks:
    """The checks of one play of a case, with the values that its calls have returned.

    Args:
        checks: the run's functions.
    """

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._before = checks.invariants.of_kind("before_call")
        self._after = checks.invariants.of_kind("after_call")
        self._invariants = checks.invariants.of_kind("invariant")
        # By the number of a session.
        self._conversations: defaultdict[int, _ConversationValues] = defaultdict(
            _ConversationValues
        )
        # By the id of a `SentRequest`.
        self._handed: dict[int, dict[str, Any]] = {}
        self._sessions: dict[int, TargetSession] = {}  # the ones in which they were sent
        self._seen: set[int] = set()  # the ids of those that were looked at

    def hand(
        self, session: TargetSession, tool: str, argument: str, value: str, place: int
    ) -> None:
        """Give a session's next call of a tool a value for an argument; place 0 is the newest one.

        Without any value of this conversation the argument stays as it was drawn.
        """
        conversation = self._conversations[session.number]
        if known := conversation.values.get(value):
            conversation.next.setdefault(tool, {})[argument] = known[-1 - place % len(known)]

    async def prepare(
        self, session: TargetSession, tool: str, arguments: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Return the arguments of a call, and those of them that were handed to it."""
        handed = self._conversations[session.number].next.pop(tool, {})
        if not isinstance(arguments, dict):
            return arguments, {}
        arguments = {**arguments, **handed}
        for each in self._before:
            if not each.takes(tool):
                continue
            call = _call(tool, arguments, handed, session.revision)
            found, _ = await self._checks.run(each, call)
            if found is None:
                continue
            try:
                if not isinstance(found, dict):
                    raise TypeError
                arguments = json.loads(json.dumps(found, allow_nan=False))
            except (TypeError, ValueError, RecursionError):
                self._checks.break_off(
                    each,
                    f"{each.place}: it returned {type(found).__name__}: return a dict of JSON"
                    " values, the arguments to send, or None",
                )
        return arguments, {key: each for key, each in handed.items() if key in arguments}

    def note_handed(self, request: SentRequest, handed: dict[str, Any]) -> None:
        """Keep which arguments of a call were handed to it."""
        if handed:
            self._handed[id(request)] = handed

    async def check(self, session: TargetSession) -> None:
        """Run the functions for the results that have come since the last time."""
        for request in list(session.requests):
            # After a `reconnect` it still has the requests of the former session.
            sender = self._sessions.setdefault(id(request), session)
            if request.answer is None or id(request) in self._seen:
                continue
            self._seen.add(id(request))
            call, result = self._find_result(request, self._conversations[sender.number].tasks)
            if call is not None:
                await self._check_result(sender, call, result)

    def _find_result(
        self, request: SentRequest, tasks: dict[str, SentRequest]
    ) -> tuple[SentRequest | None, Any]:
        """Return the call that a response belongs to, and its final result, or None and None.

        `tasks` has the conversation's task calls.
        """
        answer = request.answer
        result = None if answer in (None, LOST) else answer.get("result")
        if not isinstance(result, dict) or not request.is_plain or request.cancelled:
            return None, None
        if request.method == "tools/call":
            task = result.get("task", result)
            id = task.get("taskId") if isinstance(task, dict) else None
            if isinstance(id, str) and "content" not in result:
                tasks[id] = request
                return None, None
            is_final = result.get("resultType", "complete") == "complete"
            return (request, result) if is_final else (None, None)
        if request.method not in ("tasks/result", "tasks/get"):
            return None, None
        if request.method == "tasks/get":
            is_completed = result.get("status") == "completed"
            result = result.get("result") if is_completed else None
        params = request.message.get("params")
        id = params.get("taskId") if isinstance(params, dict) else None
        if not isinstance(result, dict) or not isinstance(id, str):
            return None, None
        return tasks.pop(id, None), result

    async def _check_result(
        self, session: TargetSession, request: SentRequest, result: dict[str, Any]
    ) -> None:
        params = request.message.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        if not isinstance(params, dict) or not isinstance(name, str):
            return
        arguments = params.get("arguments", {})
        if not isinstance(arguments, dict):
            return
        wanted = [each for each in (*self._after, *self._invariants) if each.takes(name)]
        if not wanted:
            return
        data = json.dumps(result)
        handed = self._handed.get(id(request), {})
        fits = self._checks.schemas.fit(name, arguments)
        for each in wanted:
            decoded = _decoded(data)
            if decoded is None or (decoded.is_error and not (each.errors and fits)):
                continue
            call = _call(name, arguments, handed, session.revision)
            value, failed = await self._checks.run(each, call, decoded)
            if each.provides:
                self._keep(session, each, value)
            if failed is not None:
                fault = TargetFault(
                    kind="invariant",
                    row=each.name,
                    method="tools/call",
                    detail=name,
                    variant=failed.place if fits else f"{_WRONG_ARGUMENTS} {failed.place}",
                    level="invariant",
                    sentence=f"{_shown_call(name, arguments)}: {failed.text}",
                    sent=json.dumps(request.message),
                )
                session.add_fault(fault)

    def _keep(self, session: TargetSession, declared: Declared, value: Any) -> None:
        """Keep the values that a function has returned."""
        values = self._conversations[session.number].values
        known = values.setdefault(declared.provides, [])
        for each in value if isinstance(value, list) else [value]:
            if each is None:
                continue
            try:
                known.append(json.loads(json.dumps(each, allow_nan=False)))
            except (TypeError, ValueError, RecursionError):
                self._checks.break_off(
                    declared,
                    f"{declared.place}: it returned {type(each).__name__}: return a JSON value, a"
                    " list of several, or None",
                )
        del known[:-MAX_VALUES]


class FailedAssertion(NamedTuple):
    """An assertion of the author's that has failed: its text, or else its source, and its place."""

    text: str
    place: str


class _Done(msgspec.Struct, frozen=True):
    """A function's value, its failed assertion or its error, and the seconds that it ran."""

    value: Any = None
    failed: FailedAssertion | None = None
    error: str = ""
    seconds: float = 0.0


def _run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Done:
    began = time.perf_counter()  # in the thread: a busy machine lets it wait before
    done = _outcome(function, arguments)
    return msgspec.structs.replace(done, seconds=time.perf_counter() - began)


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Done:
    try:
        return _Done(function(*arguments))
    except AssertionError as exc:
        text = _text_of(exc) or _line_of(exc, function)
        return _Done(failed=FailedAssertion(text, _place_of(exc, function)))
    except BaseException as exc:  # noqa: BLE001 - also SystemExit, and `pytest.fail`
        text = ": ".join(filter(None, (type(exc).__name__, _text_of(exc))))
        return _Done(error=f"{text} ({_line_of(exc, function)})")


def _text_of(error: BaseException) -> str:
    """Return an error's text, which the user's code can make, or ""."""
    try:
        text = str(error).strip()
    except Exception:  # noqa: BLE001 - an error of the user's own class
        return ""
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 3] + "..."


def _line_of(error: BaseException, function: Callable[..., Any]) -> str:
    """Return where an error was raised in the function's file, and that line's source."""
    file, line = function.__code__.co_filename, _number_of(error, function)
    linecache.checkcache(file)
    source = linecache.getline(file, line).strip()[:_SHOWN_TEXT]
    return _place_of(error, function) + (f": {source}" if source else "")


def _place_of(error: BaseException, function: Callable[..., Any]) -> str:
    """Return where an error was raised in the function's file: `checks.py, line 12`."""
    return f"{Path(function.__code__.co_filename).name}, line {_number_of(error, function)}"


def _number_of(error: BaseException, function: Callable[..., Any]) -> int:
    """Return the number of the last line of the function's file that an error came through."""
    file = function.__code__.co_filename
    line, trace = 0, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _call(
    name: str, arguments: Mapping[str, Any], handed: Mapping[str, Any], revision: str
) -> ToolCall:
    """Return a call as a function gets it: a copy."""
    return ToolCall(
        name=name,
        arguments=copy.deepcopy(dict(arguments)),
        handed=copy.deepcopy(dict(handed)),
        revision=revision,
    )


def _decoded(data: str) -> CallToolResult | None:
    """Return a result, None if it isn't one, which the judge reports."""
    try:
        return msgspec.json.decode(data, type=CallToolResult)
    except (ValueError, RecursionError):
        return None


def _shown_call(name: str, arguments: Mapping[str, Any]) -> str:
    text = f"{name} {json.dumps(arguments, ensure_ascii=False)}"
    return text if len(text) <= _SHOWN_CALL else text[: _SHOWN_CALL - 3] + "..."
