"""The cause of a fault: what a later run, with other cases, finds again.

1. A cause has no value in it, no tool's argument and no text of the server: those change with the
   seed. It has the requirement, what was wrong with the message, and where it was sent.
2. The requirement is its row's family, because a fault breaks another row in another revision.
3. A fault and its smallest case have one cause. A case that is as it was drawn has several possible
   ones: if a known one is among them, the fault isn't examined again.
4. A cause is never wider than what plays have shown: if the smallest case has several messages, all
   of them are in the cause. A baseline with it doesn't hide what one of them shows alone.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from mcp_core import DIALECTS, Role
from mcp_core.trace import ROWS, message_outline, row_family
from mcp_trio.oracle.fuzz._case import (
    AFTER_CANCEL,
    UNSUPPORTED_TASK,
    batch_members,
    client_of,
    on_client,
    own_step,
)
from mcp_trio.oracle.fuzz._fault import BATCHED
from mcp_trio.oracle.fuzz._interoperable_json import read_plain_request
from mcp_trio.oracle.fuzz._revisions import META, dialect_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from mcp_trio.oracle.fuzz._case import Case, Step
    from mcp_trio.oracle.fuzz._fault import TargetFault

__all__ = [
    "ANY",
    "Cause",
    "case_without",
    "cases_elsewhere",
    "cases_of_other_types",
    "has_several_messages",
    "plain_cases",
    "possible_causes",
    "shows_all",
    "smallest_cause",
]

ANY: Final = "*"
# The parts whose types are joined, and what two further types make of the shape.
_TYPE: Final = re.compile(r"\b(params(?:/_meta(?:/progressToken)?)?):(?!absent)[\w-]+")
_JOINED: Final = {
    "params": "no-object",
    "params/_meta": "no-object",
    "params/_meta/progressToken": "no-token",
}
# Values that aren't objects, and then values that aren't tokens: two of other types for each type.
_NO_OBJECTS: Final[tuple[Any, ...]] = (82, "x", [])
_NO_TOKENS: Final[tuple[Any, ...]] = ([], {}, True)
_UNKNOWN: Final = "unknown method"  # the scope of methods that no revision has
# Methods that the further plays of a case send: one that every server has, and one that none has.
_UNKNOWN_METHOD: Final = "acme/none"
_KNOWN_METHODS: Final = frozenset(
    name for dialect in DIALECTS.values() for role in Role for name in dialect.receives[role]
)
_METHOD_SCOPES: Final = _KNOWN_METHODS | {ANY, _UNKNOWN}
_OF_CLIENTS: Final = frozenset(
    name for dialect in DIALECTS.values() for name in dialect.receives[Role.SERVER]
)
_OF_BOTH: Final = _OF_CLIENTS & frozenset(
    name for dialect in DIALECTS.values() for name in dialect.receives[Role.CLIENT]
)
# An error without an id answers a notification, or it seems to.
_SAME_FAMILY: Final = {"RPC-8": "RPC-14"}
_CALL: Final = "tools/call"
_MALFORMED: Final = " after malformed "
_CANCELLATION: Final = "CXL-"  # the first letters of its rows' ids
_TASKS: Final = "TSK-"
_BURST: Final = "burst of "
_BATCH: Final = "batch of "
_SEVERAL: Final = (_BURST, _BATCH)
_BESIDE: Final = ", beside "
_OF_SECOND: Final = " of the second client"  # ends the shape of its messages
_MAX_BESIDE: Final = 4  # kinds of further messages that a cause names
_CANCELLED: Final = "cancelled"  # the last word of the detail of a fault after a cancelled call
_ANSWERED_TWICE: Final = "request, answered again after its cancellation"
_RESULT: Final = "result"  # what an invariant checks
# A call as a task, although the tool's entry doesn't allow it.
_UNSUPPORTED_TASK: Final = "request params/task:object"
# What a request lacks, by the last word of its step.
_META_DEFECTS: Final = {
    "absent": "params/_meta:absent",
    "old": "params/_meta/protocolVersion:string",
    "bare": "params/_meta/clientCapabilities:absent",
}


class Cause(Struct, frozen=True, order=True):
    """The cause of a fault, which two findings have in common if they are one fault of the target.

    Attributes:
        family: the requirement: a row's family, `crash`, `hang`, `endless`, or an invariant's name.
        shape: the message that shows it: its kind, and the path and JSON type of what is wrong in
            it, such as `request params:string`. `burst of` and `batch of` stand before one that was
            sent with others, or in a batch. For a crash how the process ended and the last
            message, such as `exit status 1 after request`. For a crash that is known of an SDK the
            link that explains it, in place of the message. A message of a case's second client ends
            in `of the second client`. If the smallest case has several messages, the others follow
            `, beside `. For an invariant `result`.
        scope: the name of the tool that a well-formed call names, or else the method; `*` for any
            method. A tool with the name of a method is written `tools/call:NAME`.
    """

    family: str
    shape: str
    scope: str

    @property
    def is_of_tool(self) -> bool:
        """True if the scope is a tool that the server lists."""
        return self.scope not in _METHOD_SCOPES

    @property
    def is_of_row(self) -> bool:
        """True if it is a rule that is broken, and neither a crash nor a hang."""
        return self.family not in ("crash", "hang")

    @property
    def is_known_crash(self) -> bool:
        """True if the shape names a known crash of an SDK, which tells it from any other crash."""
        return self.family == "crash" and "://" in self.shape

    @property
    def stands_alone(self) -> bool:
        """True if its shape says all, so that the other messages of its case don't count."""
        return self.is_known_crash or self.shape in (_ANSWERED_TWICE, _RESULT)

    @property
    def anywhere(self) -> Cause:
        """The same cause for any method."""
        return Cause(self.family, self.shape, ANY)

    @property
    def single(self) -> Cause:
        """The same cause for one request in place of a burst."""
        return Cause(self.family, self.shape.removeprefix(_BURST), self.scope)

    @property
    def of_any_params(self) -> Cause:
        """The same cause for params, or their `_meta` or progress token, of any wrong type."""
        return Cause(self.family, _any_params(self.shape), self.scope)

    @property
    def wider(self) -> list[Cause]:
        """The causes that explain a fault with this one, itself first.

        If a valid message of the method shows the fault, then it isn't about what is wrong in this
        message. If any method shows it, then it isn't about the method; nor about the type of the
        params if other types show it.
        """
        shapes = [self.shape, _any_params(self.shape), _plain_shape(self.shape)]
        if self.shape == "bytes" and self.scope in _KNOWN_METHODS:
            shapes.append("request")  # that the server has read, though others may not
        several = next((each for each in _SEVERAL if self.shape.startswith(each)), "")
        if self.is_of_row and not self.is_of_tool and several:
            # What a burst or a batch shows needn't hold for a single request.
            shapes.append(several + _plain_shape(self.shape))
        return [
            Cause(self.family, shape, scope)
            for shape in dict.fromkeys(shapes)
            for scope in dict.fromkeys((self.scope, ANY))
            if scope == self.scope or self._may_be_anywhere(shape)
        ]

    def _may_be_anywhere(self, shape: str) -> bool:
        """Return False if a message of this shape runs code of the server's author.

        A tool's call does; and by any valid message, a process can end or hang because of it.
        """
        if self.is_of_tool:
            return False
        return self.is_of_row or _MALFORMED in shape or ":" in shape


class _Sent(Struct, frozen=True):
    """A message or other data that a step sends.

    Attributes:
        shape: see `Cause.shape`.
        method: its method, "" without one.
        tool: the name of the listed tool that it calls, or "".
        place: the step's place in the case, -1 for a request that isn't in it.
    """

    shape: str
    method: str = ""
    tool: str = ""
    place: int = -1


def possible_causes(fault: TargetFault, case: Case, tools: Collection[str] = ()) -> list[Cause]:
    """Return the causes that a fault of `case` can have, the most likely one last; at least one.

    Args:
        fault: the fault.
        case: the case that shows it. If it is the smallest one, the last cause is the fault's.
        tools: the names of the tools that the server lists.
    """
    return [_cause(fault, each) for each in _candidates(fault, case, tools)]


def smallest_cause(fault: TargetFault, case: Case, tools: Collection[str] = ()) -> Cause | None:
    """Return the cause of a fault whose smallest case is `case`.

    If it has several messages, the earlier and later ones are in its shape: it isn't known which of
    them shows the fault. None of its possible causes is the same then. None is returned if there
    are so many that the case can hardly be the smallest one.
    """
    cause = possible_causes(fault, case, tools)[-1]
    others = _other_messages(fault, case, tools)
    if not others or cause.stands_alone:
        return cause
    names = list(dict.fromkeys(map(_name, others)))
    if len(names) > _MAX_BESIDE:
        return None
    return Cause(cause.family, f"{cause.shape}{_BESIDE}{' and '.join(names)}", cause.scope)


def shows_all(
    cause: Cause,
    fault: TargetFault,
    case: Case,
    before: Iterable[Case] = (),
    tools: Collection[str] = (),
) -> bool:
    """Return True if a fault can have a cause of several messages, because all of them were sent.

    They were in its case, which can be as it was drawn, or in the cases `before` it. A cause of one
    message is among `possible_causes` then.
    """
    shape, beside, names = cause.shape.partition(_BESIDE)
    single = Cause(cause.family, shape, cause.scope)
    if not beside or single not in possible_causes(fault, case, tools):
        return False
    steps = [step for each in (*before, case) for step in each]
    sent = {_name(each) for each in _sent_in(steps, tools)}
    return sent.issuperset(names.split(" and "))


def _name(sent: _Sent) -> str:
    return f"{sent.tool or sent.method} {sent.shape}".strip()


def has_several_messages(fault: TargetFault, case: Case, tools: Collection[str] = ()) -> bool:
    """Return True if a case sends more, after its opening, than the message of the likely cause.

    Then a further play with another message in its place says nothing about that message.
    """
    return bool(_other_messages(fault, case, tools))


def case_without(fault: TargetFault, case: Case, tools: Collection[str] = ()) -> Case:
    """Return a case without the step of the likely cause, or `case` itself if that is no step."""
    place = _candidates(fault, case, tools)[-1].place
    return case if place < 0 else [*case[:place], *case[place + 1 :]]


def _other_messages(fault: TargetFault, case: Case, tools: Collection[str]) -> list[_Sent]:
    """Return what a case sends beside its openings and the message of the likely cause."""
    found = _candidates(fault, case, tools)[-1]
    whole = {each.place: each for each in _sent_in(case, tools)}  # each step's last one
    others = [
        each
        for each in whole.values()
        if each.place != found.place and not each.shape.startswith("opening")
    ]
    if fault.row.startswith(_CANCELLATION):  # these faults are about a request and its cancellation
        others = [each for each in others if each.method != "notifications/cancelled"]
    return others


def cases_elsewhere(fault: TargetFault, case: Case, tools: Collection[str] = ()) -> list[Case]:
    """Return cases that send a message of the same shape with another method, two at most.

    If one of them shows the fault, then it isn't about the method. None is returned for a call of a
    tool, whose code can be the cause, and for a step that has no method to change; nor for a crash
    or a hang by a valid message, whose code can be any.
    """
    sent = _candidates(fault, case, tools)[-1]
    if sent.tool or sent.place < 0 or not sent.method:
        return []
    if fault.kind != "row" and ":" not in sent.shape:
        return []
    revision = _revision_at(case, sent.place)
    found: list[Case] = []
    for method in (dialect_of(revision).ping, _UNKNOWN_METHOD):
        step = _with_method(case[sent.place], method)
        if step is None or step == case[sent.place]:
            continue
        if _scope(sent.method) == _scope(method):
            continue
        other = _sent_by(step, revision, tools)
        if other is not None and other.shape == sent.shape:
            found.append([*case[: sent.place], step, *case[sent.place + 1 :]])
    return found


def plain_cases(fault: TargetFault, case: Case, tools: Collection[str] = ()) -> list[Case]:
    """Return cases with a valid and usual message in place of the one that shows the fault.

    The most usual one is first. None are returned if it is that already, or if no params are known
    that make it so: those of a tool's call aren't, only what a call may have beside them.
    """
    sent = _candidates(fault, case, tools)[-1]
    kind = _plain_shape(sent.shape)
    is_wrong = kind != sent.shape and sent.place >= 0
    if not is_wrong or sent.method not in _OF_CLIENTS or sent.method == "initialize":
        return []
    if sent.method == _CALL:
        is_malformed = ":" in sent.shape and sent.shape != _UNSUPPORTED_TASK
        steps = [] if is_malformed else _calls_with_less(case[sent.place])
    elif kind == "notification":
        steps = [("notify", sent.method, {})]
    else:
        steps = [("request", sent.method, {}, "int")] if kind == "request" else []
    found = []
    for step in steps:
        simple = [*case[: sent.place], step, *case[sent.place + 1 :]]
        if sent.method == _CALL or _candidates(fault, simple, tools)[-1].shape == kind:
            found.append(simple)
    return found


def _calls_with_less(step: Step) -> list[Step]:
    """Return a step's call without its progress token, its task and its other kind of id.

    Then, if it has several of them, with one of them.
    """
    if step[0] != "call" or not step[3:] or not step[3]:
        return []
    less = [(), *((each,) for each in step[3] if len(step[3]) > 1)]
    return [("call", step[1], step[2], each) for each in less]


def cases_of_other_types(fault: TargetFault, case: Case, tools: Collection[str] = ()) -> list[Case]:
    """Return cases whose message has params of two further types; none if they are an object.

    So it is with their `_meta`, and with the progress token in it. If both cases show the fault,
    then it isn't about the type.
    """
    sent = _candidates(fault, case, tools)[-1]
    wrong = _TYPE.search(sent.shape)
    if sent.place < 0 or wrong is None:
        return []
    part = wrong[1]
    kind = f"{sent.shape[: wrong.start()]}{part}:"
    revision = _revision_at(case, sent.place)
    found: list[Case] = []
    for value in _NO_TOKENS if part.endswith("Token") else _NO_OBJECTS:
        params = value
        for name in reversed(part.split("/")[1:]):
            params = {name: params}
        step = _with_params(case[sent.place], params)
        other = None if step is None else _sent_by(step, revision, tools)
        if step is None or other is None or other.shape == sent.shape:
            continue
        if other.shape.startswith(kind):
            found.append([*case[: sent.place], step, *case[sent.place + 1 :]])
    return found[:2]


def _any_params(shape: str) -> str:
    return _TYPE.sub(lambda found: f"{found[1]}:{_JOINED[found[1]]}", shape)


def _plain_shape(shape: str) -> str:
    """Return a shape without what is wrong or unusual in the message."""
    if ", " in shape or " after " in shape:
        return shape.replace(_MALFORMED, " after ")
    if "://" in shape:
        return shape  # of a known crash
    for several in _SEVERAL:
        shape = shape.removeprefix(several)
    return shape.partition(" ")[0]


def _family(fault: TargetFault) -> str:
    if fault.kind != "row":
        return fault.row if fault.row in ROWS and fault.kind == "crash" else fault.kind
    return row_family(_SAME_FAMILY.get(fault.row, fault.row))


def _cause(fault: TargetFault, sent: _Sent) -> Cause:
    shape = sent.shape
    if fault.kind == "invariant":
        return Cause(fault.row, _RESULT, sent.tool)
    if fault.row == "RPC-7" and fault.is_cancellation_error:
        # What handles cancellations responds too, whichever method it was.
        return Cause(_family(fault), _ANSWERED_TWICE, ANY)
    if fault.kind == "crash":
        status, _, known = fault.detail.partition(" ")
        if known:
            return Cause(_family(fault), f"{_end(status)}: {known}", ANY)
        # Only whether the message was malformed: what the server reads first decides what is wrong.
        kind = shape.replace(":", " ").split()[0]
        shape = f"{_end(fault.detail)} after {'malformed ' if ':' in shape else ''}{kind}"
    if fault.detail.endswith(_CANCELLED):
        shape += ", after a cancelled call"
    other = "" if fault.kind == "hang" else fault.method
    # No server may run such a call as a task, whichever tool it is of. But it may run the tool, and
    # then the result's data are the tool's.
    is_of_task = fault.kind == "row" and fault.row.startswith(_TASKS)
    tool = "" if is_of_task and sent.shape == _UNSUPPORTED_TASK else sent.tool
    return Cause(_family(fault), shape, tool or _scope(sent.method or other))


def _end(detail: str) -> str:
    """Return how a process ended, from a crash's detail: an exit status, or another word."""
    try:
        status = int(detail)
    except ValueError:
        return detail or "end"
    return f"signal {-status}" if status < 0 else f"exit status {status}"


def _scope(method: str) -> str:
    if method in _KNOWN_METHODS:
        return method
    return _UNKNOWN if method not in ("", "bytes", "batch") else ANY


def _candidates(fault: TargetFault, case: Case, tools: Collection[str]) -> list[_Sent]:
    """Return what can have shown the fault, the most likely one last; at least one."""
    if fault.kind == "invariant":
        return [_Sent(_RESULT, _CALL, _tool_scope(fault.detail))]
    sent = list(_sent_in(case, tools))
    others = [each for each in sent if not each.shape.startswith("opening")]
    if fault.kind == "hang":  # its method is the probe's, which isn't answered any more
        return others or sent or [_Sent("conversation")]
    is_of_clients = bool(case) and case[0][0] == "serve"
    if not is_of_clients and _is_servers_own(fault):
        return others or sent or [_Sent("conversation")]
    own = [each for each in sent if each.method and each.method == fault.method]
    is_batched = BATCHED in fault.detail.split()
    if fault.is_silence:
        own = [each for each in own if each.shape.startswith(_BATCH) is is_batched]
    if own:
        return own
    if fault.method in _OF_CLIENTS and not is_of_clients:
        # One of an earlier case, or the player's own: after each case it sends a ping.
        return [_Sent(f"{_BATCH}request" if is_batched else "request", fault.method)]
    return others or sent or [_Sent("conversation")]


def _is_servers_own(fault: TargetFault) -> bool:
    """Return True if a fault is in a request or notification of the server.

    Both sides send some methods, such as `notifications/progress`.
    """
    if fault.kind != "row" or fault.method not in _OF_BOTH or not fault.received:
        return False
    try:
        message = json.loads(fault.received)
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and message.get("method") == fault.method


def _sent_in(case: Case, tools: Collection[str]) -> Iterator[_Sent]:
    revisions, is_cancelled = {0: "", 1: ""}, False
    for place, whole in enumerate(case):
        client, step = client_of(whole), own_step(whole)
        if step[0] == "open" and len(step) > 1:
            revisions[client] = str(step[1])
        if not (is_cancelled and step == AFTER_CANCEL):
            for each in (*_simpler(step), step):
                found = _sent_by(on_client(client, each), revisions[client], tools)
                if found is not None:
                    yield _Sent(found.shape, found.method, found.tool, place)
        is_cancelled = step[0] == "cancel"


def _simpler(step: Step) -> list[Step]:
    """Return steps that can be enough for what a step shows: one request, or a valid call."""
    if step[0] == "burst":
        return [("burst", 1, *step[2:])]
    if step[0] == "batch" and len(members := batch_members(step)) > 1:
        return [("batch", [each]) for each in members]
    if step[0] == "call" and len(step) > 3 and UNSUPPORTED_TASK in step[3]:
        return [(*step[:3], ())]
    return []


def _revision_at(case: Case, place: int) -> str:
    client = client_of(case[place])
    own = [own_step(step) for step in case[:place] if client_of(step) == client]
    opened = [step[1] for step in own if step[0] == "open" and len(step) > 1]
    return str(opened[-1]) if opened else ""


def _sent_by(step: Step, revision: str, tools: Collection[str]) -> _Sent | None:
    """Return what a step sends in a revision, None if it sends nothing."""
    found = _sent_by_client(own_step(step), revision, tools)
    if found is None or not client_of(step):
        return found
    return _Sent(found.shape + _OF_SECOND, found.method, found.tool)


def _sent_by_client(  # noqa: C901 - one case for each step
    step: Step, revision: str, tools: Collection[str]
) -> _Sent | None:
    """Return what a client's step sends in a revision, None if it sends nothing."""
    name, words = step[0], step[1:]
    match name:
        case "open":
            how = str(words[1]) if len(words) > 1 and words[1] != "whole" else ""
            method = "initialize" if dialect_of(revision).stateful else "server/discover"
            return _Sent(f"opening {how}".strip(), method)
        case "request":
            return _request(revision, tools, *words)
        case "burst":
            found = _request(revision, tools, *words[1:])
            many = _BURST if words[0] > 1 else ""
            return _Sent(f"{many}{found.shape}", found.method, found.tool)
        case "batch" if dialect_of(revision).batches and len(members := batch_members(step)) == 1:
            ((method, params, id),) = members
            if id is None:
                found = _notification(revision, method, params)
            else:
                found = _request(revision, tools, method, params)
            return _Sent(f"{_BATCH}{found.shape}", found.method, found.tool)
        case "head":
            found = _request(revision, tools, *words[1:])
            return _Sent(f"request header:{words[0]}", found.method)
        case "call":
            params = {"name": words[0], "arguments": words[1]}
            found = _request(revision, tools, _CALL, params)
            more = sorted(map(str, words[2])) if len(words) > 2 and found.shape == "request" else []
            if UNSUPPORTED_TASK in more:
                return _Sent(_UNSUPPORTED_TASK, _CALL, found.tool)
            return _Sent(" ".join([found.shape, *more]), _CALL, found.tool)
        case "notify":
            return _notification(revision, *words)
        case "cancel":
            return _Sent("notification", "notifications/cancelled")
        case "progress":
            return _Sent("notification", "notifications/progress")
        case "respond":
            return _Sent("response" if words[1] == "right" else f"response:{words[1]}")
        case "reply":
            return _Sent("response:error" if "error" in words[1] else "response")
        case "parts":
            return _Sent("request parts", "tools/list")
        case "page":
            return _Sent("request", str(words[0]))
        case "retry":
            return _Sent("retry" if words[1] == "right" else f"retry:{words[1]}")
        case "listen":
            return _request(revision, tools, "subscriptions/listen", {"notifications": words[0]})
        case "task":
            method = "get" if words[1] in ("follow", "unknown") else words[1]
            return _Sent("request", f"tasks/{method}")
        case "mutate" | "damage":
            return _bytes(words[0], revision, tools)
        case "wait" | "hand" | "reconnect" | "release" | "serve":
            return None
        case _:  # of HTTP, of `--stress` and of cases for clients: their first words are fixed
            return _Sent(" ".join([name, *(each for each in words[:1] if isinstance(each, str))]))


def _notification(revision: str, method: Any, params: Any = "absent") -> _Sent:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if params == "absent":
        del message["params"]
    return _Sent(message_outline(revision, message), str(method))


def _request(
    revision: str,
    tools: Collection[str],
    method: Any,
    params: Any = "absent",
    id: str | list[Any] = "int",
    meta: str = "whole",
) -> _Sent:
    message = {"jsonrpc": "2.0", "id": 1, "method": method}
    if params != "absent":
        message["params"] = _whole_params(params, revision)
    shape = message_outline(revision, message)
    if shape == "request" and not dialect_of(revision).stateful and meta in _META_DEFECTS:
        shape = f"request {_META_DEFECTS[meta]}"
    if shape == "request" and isinstance(id, list):
        shape = "request own-id"
    return _Sent(shape, str(method), _tool_of(message, shape, tools))


def _whole_params(params: Any, revision: str) -> Any:
    """Return params with the `_meta` that the player adds to a request."""
    if not isinstance(params, dict) or dialect_of(revision).stateful:
        return params
    given = params.get("_meta", {})
    if not isinstance(given, dict):
        return params
    meta = {META + "protocolVersion": revision, META + "clientCapabilities": {}}
    return {**params, "_meta": {**given, **meta}}


def _bytes(data: str | bytes, revision: str, tools: Collection[str]) -> _Sent:
    """Return what bytes are: a message, other JSON, or neither."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    try:
        message = json.loads(raw.decode())
    except (ValueError, RecursionError):
        return _Sent("bytes")
    method = message.get("method", "") if isinstance(message, dict) else ""
    shape = message_outline(revision, message)
    if shape == "request" and read_plain_request(raw.strip(b"\n")) is None:
        shape = "bytes"  # some servers read another message
    tool = _tool_of(message, shape, tools) if isinstance(message, dict) else ""
    return _Sent(shape, method if isinstance(method, str) else "", tool)


def _tool_of(message: dict[str, Any], shape: str, tools: Collection[str]) -> str:
    """Return the scope of the listed tool that a message calls, "" for none.

    A call that is malformed is about calls, not about the tool that it names.
    """
    params = message.get("params")
    if message.get("method") != _CALL or ":" in shape or not isinstance(params, dict):
        return ""
    name = params.get("name")
    if not isinstance(name, str) or name not in tools:
        return ""
    return _tool_scope(name)


def _tool_scope(name: str) -> str:
    return f"{_CALL}:{name}" if name in _METHOD_SCOPES else name


def _with_params(step: Step, params: Any) -> Step | None:
    """Return a step that sends the same message with other params, None if there is none."""
    if client_of(step):
        own = _with_params(own_step(step), params)
        return None if own is None else on_client(client_of(step), own)
    match step[0]:
        case "request" | "notify":
            return (*step[:2], params, *step[3:])
        case "burst" | "head":
            return (*step[:3], params, *step[4:])
        case _:
            return None


def _with_method(step: Step, method: str) -> Step | None:
    """Return a step that sends the same message with another method, None if there is none."""
    if client_of(step):
        own = _with_method(own_step(step), method)
        return None if own is None else on_client(client_of(step), own)
    match step[0]:
        case "request" | "notify":
            return (step[0], method, *step[2:])
        case "burst" | "head":
            return (*step[:2], method, *step[3:])
        case "batch" if len(members := batch_members(step)) == 1:
            return (step[0], [[method, *members[0][1:]]])
        case "mutate":
            try:
                message = json.loads(step[1])
            except (ValueError, RecursionError):
                return None
            if not isinstance(message, dict):
                return None
            text = json.dumps({**message, "method": method}, separators=(",", ":"))
            return ("mutate", text)
        case _:
            return None
