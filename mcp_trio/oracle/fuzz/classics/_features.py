"""Classic uses of tools, prompts, resources, completions, logs, subscriptions and tasks."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Final

from mcp_core import DIALECTS
from mcp_core.types import LOGGING_LEVELS
from mcp_trio.oracle.fuzz._case import AFTER_CANCEL, UNSUPPORTED_TASK
from mcp_trio.oracle.fuzz._revisions import META

from ._facts import LIST, MAX_CALLS, WAIT, all_calls, call, each_after, groups, opened, request
from ._table import kind
from ._values import CURSORS, NAMES, uris_like

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mcp_trio.oracle.fuzz._case import Case, Step

    from ._facts import TargetFacts

PAGES: Final = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
_VARIABLE: Final = re.compile(r"\{[+#./;?&]?(\w+)")
_LEARN: Final = ("page", "tools/list", "all")  # from which the judge learns the schemas


# -- Lists -----------------------------------------------------------------------------------------


@kind(
    "pages",
    "Every list is read to its end, also a long one, twice, and with cursors that nobody gave.",
    "specification/2025-11-25/server/utilities/pagination",
)
def _pages(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        lists = [each for each in PAGES if facts.serves(revision, each)]
        whole: list[Step] = [("page", name, "whole") for name in lists]
        yield opened(revision, *whole, *whole)
        for names in groups(lists, 2):
            steps: list[Step] = []
            for name in names:
                steps += [("page", name, how) for how in ("first", "stale", "invented")]
                steps += [request(name, {"cursor": each}) for each in CURSORS]
            yield opened(revision, *steps, WAIT)


# -- Tools -----------------------------------------------------------------------------------------


@kind(
    "calls",
    "Every tool is called with its smallest and largest arguments, with progress and without.",
    "specification/2025-11-25/server/tools#calling-tools",
)
def _calls(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        for tools in groups(facts.tools, 3):
            steps = [call(tool, None, "progress") for tool in tools]
            steps += [call(tool, tool.largest, "progress", "text") for tool in tools]
            yield opened(revision, _LEARN, *steps, WAIT)


@kind(
    "no arguments",
    "A call has no arguments, or they aren't an object.",
    "specification/2025-11-25/server/tools#calling-tools",
    "cline/cline#10553",
    "modelcontextprotocol/python-sdk#820",
)
def _no_arguments(facts: TargetFacts) -> Iterator[Case]:
    odd: tuple[Any, ...] = ({}, None, [], "{}", 7)
    for revision, tools in facts.in_turn(groups(facts.tools, 2)):
        steps = [request("tools/call", {"name": tool.name}) for tool in tools]
        steps += [
            request("tools/call", {"name": tool.name, "arguments": each})
            for tool in tools
            for each in odd
        ]
        yield opened(revision, _LEARN, *each_after(steps, WAIT))


@kind(
    "wrong arguments",
    "Arguments that the input schema refuses: one is missing, has another type or is out of range.",
    "specification/2025-11-25/server/tools#security-considerations",
    "drhelius/Gearsystem#164",
)
def _wrong_arguments(facts: TargetFacts) -> Iterator[Case]:
    for revision, tool in facts.in_turn(facts.tools):
        steps = [call(tool, each) for each in tool.wrong()][:MAX_CALLS]
        if steps:
            yield opened(revision, _LEARN, *each_after(steps, WAIT))


@kind(
    "unknown names",
    "Tools, prompts, tasks and references that don't exist, also with names of prototypes.",
    "specification/2025-11-25/server/tools#error-handling",
    "specification/2025-11-25/server/prompts#error-handling",
    "CWE-1321",
)
def _unknown_names(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        for group in groups(NAMES, 4):
            if facts.serves(revision, "tools/call"):
                steps = [request("tools/call", {"name": each, "arguments": {}}) for each in group]
                yield opened(revision, _LEARN, *each_after(steps, WAIT))
            steps = []
            if facts.serves(revision, "prompts/get"):
                steps += [request("prompts/get", {"name": each}) for each in group]
            if facts.serves(revision, "completion/complete"):
                steps += [_completion({"type": "ref/prompt", "name": each}, "a") for each in group]
            if facts.serves(revision, "tasks/get"):
                steps += [request("tasks/get", {"taskId": each}) for each in group]
                steps += [request("tasks/cancel", {"taskId": each}) for each in group]
            if steps:
                yield opened(revision, *each_after(steps, WAIT))


# -- Prompts, resources, completions ---------------------------------------------------------------


def _arguments_of(prompt: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return the names of a prompt's arguments: all, and the required ones."""
    found = prompt.get("arguments")
    entries = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    entries = [each for each in entries if isinstance(each.get("name"), str)]
    required = [str(each["name"]) for each in entries if each.get("required") is True]
    return [str(each["name"]) for each in entries], required


def _prompt(prompt: Mapping[str, Any], arguments: Mapping[str, Any]) -> Step:
    return request("prompts/get", {"name": prompt["name"], "arguments": dict(arguments)})


@kind(
    "prompts",
    "Every prompt is got with all its arguments, without one, with one too many, or a wrong one.",
    "specification/2025-11-25/server/prompts#error-handling",
)
def _prompts(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        if not facts.serves(revision, "prompts/get"):
            continue
        learn: Step = ("page", "prompts/list", "all")
        right, wrong, missing = [], [], []
        for prompt in facts.prompts:
            names, required = _arguments_of(prompt)
            whole: dict[str, Any] = dict.fromkeys(names, "a")
            right += [_prompt(prompt, whole), _prompt(prompt, {**whole, "mcp-trio-fuzz": "a"})]
            wrong += [_prompt(prompt, {**whole, name: 7}) for name in names]
            missing += [
                _prompt(prompt, {name: "a" for name in names if name != each}) for each in required
            ]
            (missing if required else right).append(
                request("prompts/get", {"name": prompt["name"]})
            )
        for steps in (right, wrong, missing):
            if steps:
                yield opened(revision, learn, *each_after(steps[:MAX_CALLS], WAIT))


@kind(
    "URIs",
    "Every resource is read by its URI, and by URIs that are the same or lead nowhere.",
    "RFC 3986, section 6.2",
    "specification/2025-11-25/server/resources#error-handling",
    "CWE-22",
)
def _uris(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        if not facts.serves(revision, "resources/read"):
            continue
        reads = [request("resources/read", {"uri": each}) for each in facts.uris]
        yield opened(revision, ("page", "resources/list", "all"), *reads, WAIT)
        for uri in facts.uris[:1] or ["mcp-trio-fuzz://none"]:
            steps = [request("resources/read", {"uri": each}) for each in uris_like(uri)]
            yield opened(revision, *each_after(steps, WAIT))


def _completion(ref: Mapping[str, Any], name: str, value: Any = "", **more: Any) -> Step:
    params = {"ref": dict(ref), "argument": {"name": name, "value": value}, **more}
    return request("completion/complete", params)


@kind(
    "completions",
    "Every argument is completed, from a text with many completions to one with none.",
    "specification/2025-11-25/server/utilities/completion",
)
def _completions(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        if not facts.serves(revision, "completion/complete"):
            continue
        targets = [
            ({"type": "ref/prompt", "name": prompt["name"]}, name)
            for prompt in facts.prompts
            for name in _arguments_of(prompt)[0]
        ]
        targets += [
            ({"type": "ref/resource", "uri": uri}, name)
            for uri in facts.templates
            for name in _VARIABLE.findall(uri)
        ]
        for some in groups(targets[:MAX_CALLS], 3):
            steps = []
            for ref, name in some:
                values = ("", "a", "f", "k", "x" * 300, "\u8336")
                steps += [_completion(ref, name, each) for each in values]
                steps.append(_completion(ref, name, "", context={"arguments": {"a": "b"}}))
                steps.append(_completion(ref, "mcp-trio-fuzz-none"))
            yield opened(revision, *each_after(steps, WAIT))
        refs: tuple[dict[str, str], ...] = (
            {"type": "ref/none", "name": "a"},
            {"type": "ref/prompt"},
            {},
        )
        yield opened(revision, *each_after([_completion(each, "a") for each in refs], WAIT))


# -- Logs ------------------------------------------------------------------------------------------


@kind(
    "log levels",
    "Every level is set, and levels that don't exist, and then all tools are called.",
    "RFC 5424, section 6.2.1",
    "specification/2025-11-25/server/utilities/logging",
)
def _levels(facts: TargetFacts) -> Iterator[Case]:
    revision = facts.of_handshake()
    wrong = ("", "loud", "INFO", "__proto__", 3, None)
    if revision and facts.serves(revision, "logging/setLevel"):
        # Without calls first: a call that isn't answered may take its time.
        steps = [request("logging/setLevel", {"level": each}) for each in LOGGING_LEVELS]
        yield opened(revision, *each_after(steps, WAIT), LIST, WAIT)
        for levels in (("emergency", "debug"), ("error", "info")):
            steps = [request("logging/setLevel", {"level": each}) for each in levels]
            yield opened(revision, *each_after(steps, WAIT), *all_calls(facts), WAIT)
        steps = [request("logging/setLevel", {"level": each}) for each in wrong]
        yield opened(revision, *each_after(steps, WAIT))
    revision = facts.of_requests()
    if revision:
        pairs = itertools.product(facts.tools, LOGGING_LEVELS[::3])
        steps = [
            request(
                "tools/call",
                {
                    "name": tool.name,
                    "arguments": tool.largest,
                    "_meta": {META + "logLevel": level, "progressToken": f"level-{place}"},
                },
            )
            for place, (tool, level) in enumerate(pairs)
        ]
        for group in groups(steps, MAX_CALLS):
            yield opened(revision, *group, WAIT)
        steps = [request("tools/list", {"_meta": {META + "logLevel": each}}) for each in wrong]
        yield opened(revision, *each_after(steps, WAIT))


# -- Subscriptions ---------------------------------------------------------------------------------

_CHANGES: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")


@kind(
    "subscriptions",
    "One thing is subscribed to, or nothing, while all tools are called that may change others.",
    "specification/2026-07-28/basic/utilities/subscriptions",
    "specification/2025-11-25/server/resources#subscriptions",
    "modelcontextprotocol/python-sdk#3493",
)
def _subscriptions(facts: TargetFacts) -> Iterator[Case]:
    calls = all_calls(facts)
    uris = [{"resourceSubscriptions": [each]} for each in facts.uris[:2]]
    revision = facts.of_requests()
    if revision:
        wanted: list[dict[str, Any]] = [{}, *({name: True} for name in _CHANGES), *uris]
        wanted.append({"resourceSubscriptions": ["mcp-trio-fuzz://none"]})
        for each in wanted:
            yield opened(revision, ("listen", each), *calls, WAIT, ("cancel", 0), *calls, WAIT)
        whole = {**dict.fromkeys(_CHANGES, True), "resourceSubscriptions": facts.uris[:1]}
        twice: list[Step] = [("listen", whole), LIST, WAIT, ("listen", whole), *calls, WAIT]
        yield opened(revision, *twice, LIST, WAIT, ("cancel", 0), *calls, WAIT, ("cancel", 0), LIST)
        odd: list[Any] = [{"a": True}, {"toolsListChanged": False}, {"resourceSubscriptions": []}]
        odd += [{"resourceSubscriptions": [""]}, 7]
        yield opened(revision, *(("listen", each) for each in odd), WAIT, LIST, WAIT)
    revision = facts.of_handshake()
    if revision:
        yield opened(revision, *calls, WAIT)
    if revision and facts.declares(revision, "resources", "subscribe") and facts.uris:
        first, last = facts.uris[0], facts.uris[-1]
        for uri in (first, last, "mcp-trio-fuzz://none"):
            steps = [request("resources/subscribe", {"uri": uri})] * 2
            end = request("resources/unsubscribe", {"uri": uri})
            yield opened(revision, *steps, WAIT, *calls, WAIT, end, WAIT, *calls, WAIT, end, LIST)


# -- Cancellation ----------------------------------------------------------------------------------


@kind(
    "cancellations",
    "A call is cancelled at once, twice, late, and by an id that it doesn't have.",
    "specification/2025-11-25/basic/utilities/cancellation",
    "modelcontextprotocol/python-sdk#2610",
)
def _cancellations(facts: TargetFacts) -> Iterator[Case]:
    ids = (0, "", "mcp-trio-fuzz-none")
    unknown: list[dict[str, Any]] = [*({"requestId": each} for each in ids), {}]
    for revision in facts.main:
        steps: list[Step] = [("notify", "notifications/cancelled", each) for each in unknown]
        yield opened(revision, *each_after(steps, LIST), WAIT)
        late = [request("tools/list", None, ["late"]), WAIT]
        cancel = ("notify", "notifications/cancelled", {"requestId": "late"})
        yield opened(revision, *late, cancel, cancel, AFTER_CANCEL, WAIT)
    for revision, tools in facts.in_turn(groups(facts.tools, 2)):
        steps = []
        for tool in tools:
            long = call(tool, tool.largest, "progress")
            steps += [long, long, ("cancel", 0), AFTER_CANCEL, WAIT, long, ("cancel", 0), WAIT]
        yield opened(revision, *steps, AFTER_CANCEL, WAIT)


# -- Requests of the server ------------------------------------------------------------------------


@kind(
    "what the server asks",
    "The server's questions are answered rightly, wrongly, twice, with errors, or not at all.",
    "specification/2025-11-25/client/elicitation",
    "specification/2026-07-28/basic/patterns/mrtr",
)
def _questions(facts: TargetFacts) -> Iterator[Case]:
    revision = facts.of_handshake()
    calls = [call(tool) for tool in facts.tools]
    if revision:
        for how in ("right", "error", "wrong", "id", "twice"):
            answered = [[each, ("respond", 0, how), ("progress", 0), WAIT] for each in calls]
            yield opened(revision, *itertools.chain.from_iterable(answered), LIST)
        strange: list[Step] = [
            ("reply", "mcp-trio-fuzz-none", {"result": {}}),
            ("reply", "mcp-trio-fuzz-none", {"error": {"code": -32603, "message": "no"}}),
            ("reply", 0, {"result": {}}),
            ("reply", "", {"error": {"code": 0, "message": ""}}),
        ]
        yield opened(revision, *each_after(strange, LIST), WAIT)
    revision = facts.of_requests()
    if revision:
        for how in ("right", "declined", "wrong", "unknown", "altered", "foreign", "empty"):
            again: list[Step] = [WAIT, ("retry", 0, how), WAIT, ("retry", 0, "right"), WAIT]
            yield opened(revision, *itertools.chain.from_iterable([each, *again] for each in calls))
        extra = {"inputResponses": {"mcp-trio-fuzz-none": {}}, "requestState": "mcp-trio-fuzz"}
        steps = [
            request("tools/call", {"name": tool.name, "arguments": tool.arguments, **more})
            for tool in facts.tools
            for more in (extra, {"inputResponses": 7}, {"requestState": ""})
        ]
        yield opened(revision, *each_after(steps[:MAX_CALLS], WAIT))


@kind(
    "no capabilities",
    "A client that declares no capabilities calls every tool, also as a task.",
    "specification/2025-11-25/basic/lifecycle#capability-negotiation",
    "specification/2026-07-28/basic/lifecycle#capabilities",
)
def _no_capabilities(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        steps = [call(tool, None, "progress") for tool in facts.tools]
        steps += [call(tool, None, "task") for tool in facts.tools if tool.is_task]
        yield opened(revision, LIST, *each_after(steps, WAIT), offers="none")


# -- Tasks -----------------------------------------------------------------------------------------


@kind(
    "tasks",
    "A task is polled, cancelled twice, read after its end, and asked for by a tool without tasks.",
    "specification/2025-11-25/basic/utilities/tasks",
    "modelcontextprotocol/ext-tasks#20",
)
def _tasks(facts: TargetFacts) -> Iterator[Case]:
    for revision in facts.main:
        if not facts.serves(revision, "tasks/get"):
            continue
        stateful = DIALECTS[revision].stateful
        acts = ("get", "list", "result") if stateful else ("get", "update")
        plain = [call(tool, None, UNSUPPORTED_TASK) for tool in facts.tools if not tool.is_task]
        yield opened(revision, _LEARN, *plain, WAIT)
        for tool in facts.tools:
            if not tool.is_task:
                continue
            as_task = call(tool, tool.largest, "task")
            start: list[Step] = [_LEARN, as_task, WAIT]
            yield opened(revision, *start, *_acts(("follow", *acts, "cancel")))
            ends = (("task", 0, "cancel"), WAIT) * 2
            yield opened(revision, *start, *_acts(acts[:1]), *ends, *_acts(acts))
            small = call(tool, tool.arguments, "progress", "task")
            yield opened(revision, _LEARN, small, small, WAIT, *_acts(("follow", "list")))
        yield opened(revision, *_acts(("unknown",)), request("tasks/list"), WAIT)


def _acts(names: tuple[str, ...]) -> list[Step]:
    return each_after([("task", 0, name) for name in names], WAIT)
