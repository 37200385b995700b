"""Cases as literals: lists of steps. A step is a tuple that begins with the step's name.

A place is an index into all things of one kind, modulo their number. Steps for every transport:

    open revision how offers            begin the conversation, unless it is open like this.
                                        How: whole, half (without `initialized`), late (a request
                                        before it), twice, unknown (a revision that doesn't exist),
                                        none. Offers: the client capabilities, all or none
    request method params id meta       send a request. Id: int, digits, text, or a list with the id
                                        itself. Meta: whether the `_meta` of its revision is whole,
                                        absent, old (a revision that doesn't exist) or bare (no
                                        capabilities)
    call tool arguments extra           call a tool. Extra: some of progress, task, text
    hand tool argument value place      give the next call of a tool a value that earlier calls have
                                        returned; place 0 is the newest one. See `invariants`
    notify method params
    burst count method params           send `count` requests at once
    batch members                       send a batch. Members: lists of method, params and id; a
                                        notification has the id None
    parts how place                     send a request in two parts, cut at one of a few places.
                                        How: body; over HTTP also head, chunks
    wait                                wait for the responses to all open requests
    cancel place                        cancel an open request; -1: one that doesn't exist
    progress place                      report progress of one of the server's requests
    respond place how                   respond to one of the server's requests: right, error,
                                        wrong, id (another id), twice
    reply id members                    send a response to no request. Members: its result
                                        or error
    page method how                     follow the pages of a list: all (50 at most), whole (500,
                                        for a few seconds), first, rest (from the last cursor on);
                                        or ask for the page at a cursor: stale, invented after the
                                        first page, or other (the other client's)
    retry place how                     send a request again with the input that it requires:
                                        right, declined, wrong, unknown (one more than required),
                                        empty; with its state altered, or foreign; or other (with
                                        the other client's `requestState`)
    listen filter                       open a subscription
    task place act                      send a tasks request: get, cancel, result, update, list,
                                        unknown or other (get the other client's task); place 0 is
                                        the newest task. Or follow: poll the task to its end, and
                                        give the input that it requires
    mutate text                         send a message with wrong members
    damage data                         send these bytes and a line feed
    disconnect                          end the conversation; `reconnect` begins another one
    on client step...                   play a step by another client of the same server: 1 is the
                                        second one, and there are no more. It begins with its own
                                        `open`. Without `on`, a step is of the first client. Over
                                        stdio each client has a server process of its own, so `on`
                                        does nothing

Steps over HTTP: see `play._http_steps`. Steps of `--stress`: see `play._stress_steps`. What their
words can be: see `_step_shapes`.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, field

from ._step_shapes import ON, CaseError, check_step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp_core.trace import TraceHeader, TraceLine

    from ._fault import TargetFault
    from ._step_shapes import Side

__all__ = [
    "AFTER_CANCEL",
    "CLIENT_MARKS",
    "UNSUPPORTED_TASK",
    "Case",
    "Outcome",
    "Step",
    "avoided_name",
    "batch_members",
    "check_case",
    "check_clients",
    "client_of",
    "decode_case",
    "encode_case",
    "on_client",
    "own_step",
    "shown_case",
    "without_orphans",
]

Step: TypeAlias = tuple[Any, ...]
Case: TypeAlias = list[Step]

_MEMBER: Final = 3  # words of a batch's member
# Its response shows that the server has read the cancellation sent before it.
AFTER_CANCEL: Final[Step] = ("request", "tools/list", {}, "int")
# What a call is besides, in its step: one as a task, although its tool's entry doesn't allow it.
UNSUPPORTED_TASK: Final = "unsupported task"
# Texts in the arguments of each client's calls: a result with the other client's text has leaked.
CLIENT_MARKS: Final = ("mcp-trio-fuzz first client", "mcp-trio-fuzz second client")

_SECOND: Final = 1
_SHOWN: Final = 60  # characters of a step in a report
_EXTRA: Final = 2  # the place of what a call is besides, among the words of its step


class Outcome(Struct, kw_only=True):
    """The faults and notes of one case.

    Attributes:
        faults: the server's faults.
        slow: the names of tools, prompts and the like that didn't answer in time.
        notes: oddities that aren't faults.
        messages: how many messages the server has sent.
        calls: how many calls of tools that may be called were answered.
        reconnects: how many conversations it has begun after its first one.
        answered, results: how many requests have a response, and how many of these a result.
        is_owed: at least one request was sent that every server must answer.
        is_blocked: the server answers nothing, but it may still be running a cancelled call.
        steps: how many steps of the case were played; None for all. A replay stops at the fault
            that it looks for.
        changers: the tools whose calls were followed by the change of a list or a resource.
        header, lines: the trace, if the session kept it.
    """

    faults: list[TargetFault] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    messages: int = 0
    calls: int = 0
    reconnects: int = 0
    answered: int = 0
    results: int = 0
    is_owed: bool = False
    is_blocked: bool = False
    steps: int | None = None
    changers: list[str] = field(default_factory=list)
    header: TraceHeader | None = None
    lines: list[TraceLine] = field(default_factory=list)


def encode_case(case: Case) -> list[list[Any]]:
    """Return a case as JSON, with an object in place of bytes."""
    return [[_encoded(each) for each in step] for step in case]


def decode_case(value: Any, side: Side = "server") -> Case:
    """Return the case that `encode_case` has encoded.

    Args:
        value: any JSON value.
        side: whom the case is for.

    Raises:
        CaseError: it isn't a case; see `check_case`.
    """
    if not isinstance(value, list):
        raise CaseError("a case is a list of steps")
    case: Case = []
    for place, each in enumerate(value):
        if not isinstance(each, list) or not each or not isinstance(each[0], str):
            raise CaseError(f"its step {place} is not a list that begins with the step's name")
        case.append(_decoded(tuple(each), place))
    check_case(case, side)
    return case


def check_case(case: Sequence[Any], side: Side = "server") -> None:
    """Check that each step of a case can be played. What is left without it can show nothing.

    Raises:
        CaseError: a step doesn't exist, has words of another shape, or is of a client that no step
            before it opens. The message names the step's place and the cause.
    """
    for place, step in enumerate(case):
        if not isinstance(step, tuple | list) or not step or not isinstance(step[0], str):
            raise CaseError(f"its step {place} is not a step: one begins with its name")
    if side == "server":
        check_clients(case)
    for place, step in enumerate(case):
        check_step(own_step(step) if side == "server" else step, place, side)


# -- Clients ---------------------------------------------------------------------------------------


def client_of(step: Step) -> int:
    """Return the number of the client that plays a step: 0 for the first one."""
    return _SECOND if step[0] == ON else 0


def own_step(step: Step) -> Step:
    """Return what the step's client plays: the step without `on` and the client."""
    return step[2:] if step[0] == ON else step


def batch_members(step: Step) -> list[list[Any]]:
    """Return the members of a batch that are sent: each has a method, params and an id or None."""
    members = step[1] if len(step) > 1 and isinstance(step[1], list) else []
    return [each for each in members if isinstance(each, list) and len(each) == _MEMBER]


def on_client(client: int, step: Step) -> Step:
    """Return the step by which a client plays `step`."""
    return (ON, client, *step) if client else step


def check_clients(case: Sequence[Step]) -> None:
    """Check that each client of a case exists: what is left without its steps can show nothing.

    Raises:
        CaseError: a step has `on` without a client or a step, or is of a client that no step
            before it opens.
    """
    has_second = False
    for place, step in enumerate(case):
        if step[0] != ON:
            continue
        if step[1:2] != (_SECOND,) or isinstance(step[1], bool):
            shown = json.dumps(step[1] if len(step) > 1 else None)[:_SHOWN]
            raise CaseError(
                f"its step {place} is on client {shown}: a case has two clients, the first one"
                f" without `on`, and {_SECOND}"
            )
        name = step[2] if len(step) > 2 else None
        if not isinstance(name, str) or name == ON:
            raise CaseError(f"its step {place} has no step after `{ON} {_SECOND}`")
        has_second = has_second or name == "open"
        if not has_second:
            raise CaseError(
                f"its step {place} is on client {_SECOND}, which does not exist: no step before it"
                f" is `{ON} {_SECOND} open`"
            )


def without_orphans(case: Case) -> Case:
    """Return a case without the steps of a client that no step opens. They would do nothing."""
    place = next((at for at, step in enumerate(case) if step[:3] == (ON, _SECOND, "open")), None)
    end = len(case) if place is None else place
    return [step for at, step in enumerate(case) if at >= end or step[0] != ON]


def shown_case(case: Case) -> str:
    """Return a case as one line of text."""
    return ", ".join(_shown_step(step) for step in case)


def _shown_step(step: Step) -> str:
    words = " ".join(
        part if isinstance(part, str) else _shown_part(part)
        for part in step
        if part not in ("", (), {})
    )
    return words if len(words) <= _SHOWN else words[: _SHOWN - 3] + "..."


def _shown_part(part: Any) -> str:
    """Return a part of a step as JSON. Bytes, which JSON hasn't, stay a literal of Python."""
    return repr(part) if isinstance(part, bytes) else json.dumps(part, ensure_ascii=False)


def _encoded(part: Any) -> Any:
    if isinstance(part, bytes):
        return {"base64": base64.b64encode(part).decode()}
    return list(part) if isinstance(part, tuple) else part


def _decoded(step: Step, place: int) -> Step:
    """Return a step of JSON with bytes and tuples in place of objects and lists.

    Only the word of `damage` is bytes: in the arguments of a call, an object with the one member
    `base64` is an object.

    Raises:
        CaseError: the bytes aren't base64.
    """
    own = own_step(step)
    name, *words = own if len(own) else step
    if name == "call" and len(words) > _EXTRA and isinstance(words[_EXTRA], list):
        words[_EXTRA] = tuple(words[_EXTRA])
    elif name == "damage" and words and isinstance(words[0], dict) and [*words[0]] == ["base64"]:
        try:
            words[0] = base64.b64decode(words[0]["base64"], validate=True)
        except (ValueError, TypeError) as exc:
            raise CaseError(f"its step {place}, damage, has no base64: {exc}") from None
    return (*step[: len(step) - len(words) - 1], name, *words)


def avoided_name(step: Step) -> tuple[str, str] | None:
    """Return the common name of steps like this one, so they can be drawn less often.

    All requests whose params aren't an object share one name, for every method. If a server doesn't
    answer them, each one costs a whole timeout.
    """
    step = own_step(step)
    if step[0] in ("open", "hand") or len(step) < 2:
        return None
    if not isinstance(step[1], str) or len(step[1]) > 99:
        return None
    if step[0] == "request" and len(step) > 2 and not isinstance(step[2], dict):
        return "request", "with other params"
    return step[0], step[1]
