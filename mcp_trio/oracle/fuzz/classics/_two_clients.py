"""Classic conversations of two clients over HTTP: what one of them gets, the other one must not.

Both send equal requests at about the same time, so their ids are often equal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_core import DIALECTS
from mcp_trio.oracle.fuzz._case import CLIENT_MARKS, on_client

from ._facts import LIST, WAIT, all_calls, call, each_after, groups, opened, request
from ._table import kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mcp_trio.oracle.fuzz._case import Case, Step

    from ._facts import TargetFacts

_MAX_TOOLS: Final = 4  # of one case
_LEARN: Final[Step] = ("page", "tools/list", "all")
_RETRY: Final[Step] = ("retry", 0, "right")
_CHANGES: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")


def _second(*steps: Step) -> list[Step]:
    """Return the second client's steps."""
    return [on_client(1, step) for step in steps]


def _beside(revision: str, *steps: Step) -> Case:
    """Return a case of two clients that both have begun."""
    begun = () if DIALECTS[revision].stateful else _second(LIST, WAIT)
    return opened(revision, *_second(("open", revision, "whole", "all")), *begun, *steps)


@kind(
    "subscriptions of two clients",
    "One client subscribes to everything, the other to nothing, while all tools are called.",
    "specification/2025-11-25/server/resources#subscriptions",
    "specification/2026-07-28/basic/utilities/subscriptions",
)
def _subscriptions(facts: TargetFacts) -> Iterator[Case]:
    calls = all_calls(facts)
    for revision in facts.main if facts.http and calls else ():
        uris: Step = ("listen", {"resourceSubscriptions": facts.uris})
        if not DIALECTS[revision].stateful:
            lists = dict.fromkeys(_CHANGES, True)
            whole: Step = ("listen", {**lists, "resourceSubscriptions": facts.uris})
            ends = ("cancel", 0), *_second(("cancel", 0))
            yield _beside(revision, whole, *_second(("listen", {})), *calls, WAIT, *ends)
        elif facts.uris and facts.declares(revision, "resources", "subscribe"):
            streams: list[Step] = [("get", "stream"), *_second(("get", "stream"))]
            yield _beside(revision, *streams, uris, WAIT, *calls, WAIT, *_second(LIST, WAIT))
            theirs = _second(uris, WAIT, *calls, WAIT)
            yield _beside(revision, *streams, *theirs, LIST, WAIT)


@kind(
    "streams of two clients",
    "One client resumes the streams of the other one's calls, which report progress.",
    "specification/2025-11-25/basic/transports#resumability-and-redelivery",
)
def _streams(facts: TargetFacts) -> Iterator[Case]:
    revision = facts.of_handshake()
    if not facts.http or not revision or not DIALECTS[revision].http.sessions:
        return
    for some in groups(facts.tools, _MAX_TOOLS):
        steps: list[Step] = []
        for tool in some:
            steps += [call(tool, tool.largest, "progress"), WAIT]
            steps += _second(("get", "other"), LIST, WAIT)
        yield _beside(revision, *steps)


@kind(
    "tasks of two clients",
    "Both clients have tasks of equal calls, and ask for their own and for the other one's.",
    "specification/2025-11-25/basic/utilities/tasks#task-isolation-and-access-control",
    "modelcontextprotocol/ext-tasks#20",
)
def _tasks(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main if facts.http else ():
        if not facts.serves(revision, "tasks/get"):
            continue
        # Without a handshake the server decides which calls become tasks.
        tools = [tool for tool in facts.tools if tool.is_task]
        tools = tools or ([] if DIALECTS[revision].stateful else facts.tools)
        for tool in tools[:_MAX_TOOLS]:
            # Several, so that ids of both clients' calls are equal in any case.
            start: list[Step] = [*[call(tool, tool.largest, "task")] * 3, WAIT]
            ask: list[Step] = [("task", 0, "other"), WAIT, ("task", 0, "get"), WAIT]
            yield _beside(revision, *start, *_second(*start, *ask), *ask)


@kind(
    "lists of two clients",
    "One client reads a list to its end between two pages of the other one, and from its cursor.",
    "specification/2025-11-25/server/utilities/pagination",
)
def _lists(facts: TargetFacts) -> Iterator[Case]:
    methods = [
        method
        for method, entries in (
            ("tools/list", True),
            ("prompts/list", facts.prompts),
            ("resources/list", facts.uris),
        )
        if entries
    ]
    for revision in facts.main if facts.http else ():
        steps: list[Step] = []
        for method in methods:
            steps += [request(method), WAIT, *_second(("page", method, "all"))]
            steps += [("page", method, "rest"), *_second(("page", method, "other"), WAIT)]
        yield _beside(revision, *steps)


@kind(
    "texts of two clients",
    "Both clients call a tool, or get a prompt, each with a text of its own, in turn and at once.",
    "CVE-2026-25536",
)
def _texts(facts: TargetFacts) -> Iterator[Case]:
    pairs = [[tool.with_text(mark) for mark in CLIENT_MARKS] for tool in facts.tools]
    calls = [
        tuple(call(tool, arguments) for arguments in pair)
        for tool, pair in zip(facts.tools, pairs, strict=True)
        if None not in pair
    ]
    prompts = [
        tuple(_prompt(each["name"], names, mark) for mark in CLIENT_MARKS)
        for each in facts.prompts
        if (names := _names_of(each.get("arguments")))
    ]
    for revision in facts.main if facts.http else ():
        # The judge has to know which tools only read.
        learn = [_LEARN, *_second(_LEARN)]
        for some in groups(calls, _MAX_TOOLS):
            yield _beside(revision, *learn, *_in_turn(some))
        for some in groups(prompts, _MAX_TOOLS) if facts.serves(revision, "prompts/get") else ():
            yield _beside(revision, *_in_turn(some))


def _names_of(arguments: Any) -> list[str]:
    found = arguments if isinstance(arguments, list) else []
    return [each["name"] for each in found if isinstance(each, dict) and "name" in each]


def _prompt(name: str, names: Sequence[str], mark: str) -> Step:
    return request("prompts/get", {"name": name, "arguments": dict.fromkeys(names, mark)})


def _in_turn(pairs: Sequence[tuple[Step, ...]]) -> list[Step]:
    """Return each client's steps twice one after the other, and once at the same time."""
    steps: list[Step] = []
    for mine, theirs in pairs:
        for step in (mine, mine):
            steps += each_after((step, _RETRY), WAIT)
        for step in (theirs, theirs):
            steps += _second(*each_after((step, _RETRY), WAIT))
        steps += [mine, WAIT, *_second(theirs, WAIT), _RETRY, WAIT, *_second(_RETRY, WAIT)]
    return steps
