"""Drawing of cases for what a target offers.

1. A case is a beginning and a few phrases. A phrase is a short list of steps that belong together,
   such as a call and its cancellation, because single steps rarely meet each other by chance.
2. No step depends on an answer, so a case can be stored and cut.
3. Most requests are valid. Damage is in a few cases that have little else: after it less is certain
   about the server, and these cases share a process only with each other.
4. What needs a process of its own is drawn early and then seldom.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
from collections import Counter
from itertools import chain, islice
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_core import ALL, DIALECTS, LATEST, Method, Role
from mcp_core.http import param_headers
from mcp_trio.oracle.strategies._from_schema import from_schema, nearly_valid
from mcp_trio.oracle.strategies._messages import meta_of, methods, notifications, objects, requests
from mcp_trio.oracle.strategies._mutations import damage, malformed
from mcp_trio.oracle.strategies._values import encoded, json_objects, json_values, texts

from ._call_guard import INVENTED_METHODS, UNKNOWN_PROMPT, UNKNOWN_TOOLS, UNKNOWN_URI
from ._case import AFTER_CANCEL, UNSUPPORTED_TASK, avoided_name, on_client
from .invariants._handing import find_handings, with_handed_values
from .play._stress_steps import draw_heavy, draw_stress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hypothesis.strategies import DrawFn, SearchStrategy

    from .invariants._load import Invariants

__all__ = ["CaseChoices", "CaseSource", "cases"]

Step = tuple[Any, ...]
Phrase: TypeAlias = "Callable[..., list[Step]]"

IDS: Final = ("int", "digits", "text")
OPENINGS: Final = ("half", "late", "twice", "unknown", "none", "late", "versions", "versions")
# Further beginnings and ends, each once: another process ends in order.
FIRST_SPECIAL: Final = (*OPENINGS[:-1], "disconnect")
WITH_HANDSHAKE: Final = tuple(each for each in ALL if DIALECTS[each].stateful)
UNKNOWN_METHODS: Final = (
    INVENTED_METHODS[0],
    "tools/List",
    "tools",
    "rpc.discover",
    INVENTED_METHODS[1],
    "tools/get",
)
UNKNOWN_LEVEL: Final = "mcp-trio-fuzz-none"  # of log messages
SCALARS: Final[tuple[Any, ...]] = (82, "x", True, None, [], [1, 2], 1.5)
_NOT_DRAWN: Final = frozenset({"initialize", "tools/call", "subscriptions/listen", "ping"})
# Methods that call, read or begin something. Their params are always chosen, never random.
_WITH_EFFECT: Final = frozenset(
    {
        "tools/call",
        "initialize",
        "subscriptions/listen",
        "resources/read",
        "resources/subscribe",
        "resources/unsubscribe",
    }
)
TASKS: Final = "io.modelcontextprotocol/tasks"
# The members of a schema that allows any text.
_TEXT_KEYS: Final = frozenset({"type", "title", "description", "default", "x-mcp-header"})
_VARIABLES: Final = re.compile(r"\{[+#./;?&]?([^{}]+)\}")  # in a URI template
MAX_COMPLETED: Final = 500  # arguments and variables
_SEEDS: Final = st.integers(0, 2**64 - 1)

T = TypeVar("T")


class OffersLike(Protocol):
    """A target's revisions, and its lists."""

    revisions: list[str]
    tools: list[dict[str, Any]]
    prompts: list[dict[str, Any]]
    resources: list[dict[str, Any]]
    templates: list[dict[str, Any]]
    capabilities: dict[str, dict[str, Any]]
    answers: dict[str, str]


class CaseChoices:
    """The choices for drawing cases.

    Args:
        offers: what the target offers.
        tools: the names of the tools that may be called.
        http: True to draw steps for HTTP.
        stress: True to draw steps that need much time or memory.
        invariants: the author's file, which says what calls hand to each other; None without one.

    Attributes:
        main_revisions: the revisions of most cases.
        special: beginnings and ends of conversations that need a process of their own, and that
            are drawn soon. Later ones are seldom.
        avoided: the `avoided_name` of each step that has shown a known fault. Such steps are drawn
            less often.
        changers: the names of tools whose calls were followed by the change of a list or a
            resource. Subscriptions are drawn with calls of them.
        meetings: how many cases with a second client were drawn, apart for revisions without a
            handshake.
    """

    def __init__(
        self,
        offers: OffersLike,
        tools: Sequence[str],
        *,
        http: bool = False,
        stress: bool = False,
        invariants: Invariants | None = None,
    ) -> None:
        self.offers = offers
        self.revisions = tuple(offers.revisions) or (LATEST,)
        self.older_revisions = [each for each in self.revisions if DIALECTS[each].stateful][1:]
        self.main_revisions = [each for each in self.revisions if each not in self.older_revisions]
        # A list, because a tool's name can be of any type.
        self.tools = [each for each in offers.tools if each.get("name") in list(tools)]
        self.names = [str(each["name"]) for each in self.tools]
        self.arguments = [
            (
                from_schema(each.get("inputSchema", True)),
                nearly_valid(each.get("inputSchema", True)),
            )
            for each in self.tools
        ]
        # The tools with an argument that a header repeats.
        self.mirrored_tools = [
            place for place, each in enumerate(self.tools) if _has_mirrored_argument(each)
        ]
        self.task_tools = [
            place for place, each in enumerate(self.tools) if _has_task_support(each)
        ]
        # The tools with an argument that can be any text, and the names of these arguments.
        self.text_tools = [
            (place, names)
            for place, each in enumerate(self.tools)
            if (names := _text_arguments(each))
        ]
        # The tools with a required argument that has no default, and these arguments.
        self.required = [
            (place, names)
            for place, each in enumerate(self.tools)
            if (names := _required_arguments(each.get("inputSchema")))
        ]
        self.prompts = [each for each in offers.prompts if isinstance(each.get("name"), str)]
        self.uris = [str(each["uri"]) for each in offers.resources if "uri" in each]
        completed = chain(_completed_prompts(self.prompts), _completed_templates(offers.templates))
        self.completed = list(islice(completed, MAX_COMPLETED))
        self.http = http
        self.suspects = _suspects(offers.answers)
        self.special: list[str] = []
        self.stress = stress
        self.handings = find_handings(invariants, self.names)
        self.avoided: set[tuple[str, str]] = set()
        self.changers: list[str] = []
        self.meetings: Counter[bool] = Counter()

    def has_changes(self, revision: str) -> bool:
        """Return True if the server reports changes of a list or a resource in a revision."""
        declared = self.offers.capabilities.get(revision, {}).values()
        parts = [each for each in declared if isinstance(each, dict)]
        return any(each.get(key) is True for each in parts for key in ("listChanged", "subscribe"))

    def declares(self, revision: str, capability: str) -> bool:
        """Return True if the server declares a capability in a revision."""
        return capability in self.offers.capabilities.get(revision, {})

    def has_tasks(self, revision: str) -> bool:
        """Return True if the server runs calls as tasks in a revision."""
        declared = self.offers.capabilities.get(revision, {})
        extensions = declared.get("extensions")
        return "tasks" in declared or (isinstance(extensions, dict) and TASKS in extensions)


def _has_task_support(tool: Mapping[str, Any]) -> bool:
    execution = tool.get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") in ("optional", "required")


def _has_mirrored_argument(tool: Mapping[str, Any]) -> bool:
    schema = tool.get("inputSchema")
    try:
        return isinstance(schema, dict) and bool(param_headers(schema))
    except ValueError:
        return False


def _text_arguments(tool: Mapping[str, Any]) -> list[str]:
    """Return the names of a tool's arguments that can be any text."""
    schema = tool.get("inputSchema")
    found = schema.get("properties") if isinstance(schema, dict) else None
    return [
        name
        for name, each in (found.items() if isinstance(found, dict) else ())
        if isinstance(each, dict) and each.get("type") == "string" and each.keys() <= _TEXT_KEYS
    ]


def _required_arguments(schema: Any) -> list[str]:
    """Return the required arguments of a tool that have no default."""
    if not isinstance(schema, dict) or not isinstance(schema.get("required"), list):
        return []
    known = schema.get("properties")
    return [
        each
        for each in schema["required"]
        if isinstance(each, str)
        and isinstance(known, dict)
        and isinstance(known.get(each), dict)
        and "default" not in known[each]
    ]


def _completed_prompts(
    prompts: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield references to prompts, each with the name of an argument, for completions."""
    for each in prompts:
        arguments = each.get("arguments")
        for argument in arguments if isinstance(arguments, list) else ():
            name = argument.get("name") if isinstance(argument, dict) else None
            if isinstance(name, str):
                yield {"type": "ref/prompt", "name": each["name"]}, name


def _completed_templates(
    templates: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield references to templates of resources, each with the name of a variable."""
    for each in templates:
        uri = each.get("uriTemplate")
        for variables in _VARIABLES.findall(uri) if isinstance(uri, str) else ():
            for name in variables.split(","):
                yield {"type": "ref/resource", "uri": uri}, name.partition(":")[0].rstrip("*")


def _suspects(answers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return pairs of revisions: asked for the first, the server selects the second; asked for the
    second, it selects another one.
    """
    return [
        (asked, named)
        for asked, named in answers.items()
        if answers.get(named, named) != named and named in WITH_HANDSHAKE
    ]


class Drawing:
    """The drawing of one case: values by hypothesis, choices by a random number.

    A choice by hypothesis takes twenty times as long. It would help hypothesis to shrink, but here
    the literal steps are shrunk.

    Attributes:
        value: draws a value of a strategy.
    """

    def __init__(self, draw: DrawFn) -> None:
        self.value = draw
        self._random = Random(draw(_SEEDS))  # noqa: S311 - cases can be drawn again

    def below(self, count: int) -> int:
        """Return a number from 0 to `count - 1`."""
        return self._random.randrange(count)

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return self._random.choice(items)


def cases(choices: CaseChoices) -> SearchStrategy[list[Step]]:
    """Return a strategy for cases. Each is a list of steps that begins with `open`."""
    older, main = choices.older_revisions, choices.main_revisions

    @st.composite
    def build(draw_value: DrawFn) -> list[Step]:
        draw = Drawing(draw_value)
        number = draw.below(210)
        seldom = SUSPECTS_AT_FIRST if choices.special else SPECIAL_LATER
        if choices.suspects and draw.below(seldom) == 0:
            first, second = draw.pick(choices.suspects)
            return [
                ("open", first, "whole", "all"),
                ("reconnect",),
                ("open", second, "whole", "all"),
            ]
        revision = older[number % len(older)] if older and number % 5 == 4 else None
        revision = revision or main[number % len(main)]
        how = _opening(draw, choices, revision)
        is_damaged = draw.below(STRESS_DAMAGED if choices.stress else DAMAGED) == 0
        offers = "all" if number % 7 or revision in older or is_damaged else "none"
        if how == "versions":
            first, second = draw.pick(WITH_HANDSHAKE), draw.pick(WITH_HANDSHAKE)
            return [
                ("open", first, "unknown" if number % 3 == 0 else "whole", offers),
                ("reconnect",),
                ("open", second, "whole", offers),
            ]
        ends = how == "disconnect"
        steps: list[Step] = [("open", revision, "whole" if ends else how, offers)]
        if is_damaged:
            steps += _some_phrases(draw, choices, revision, 6, is_damaged=True)
        elif choices.http and how == "whole" and draw.below(SECOND_CLIENTS) == 0:
            steps += _second_client(draw, choices, revision)
        else:
            steps += _some_phrases(draw, choices, revision, 4)
        steps = [step for step in steps if not _is_avoided(step, choices) or draw.below(20) == 0]
        return [*steps, ("disconnect",)] if ends else steps

    return build()


def _opening(draw: Drawing, choices: CaseChoices, revision: str) -> str:
    """Return how a case opens its conversation, or "disconnect" for how it ends it."""
    is_stateful = DIALECTS[revision].stateful
    wanted = [each for each in choices.special if is_stateful or each == "disconnect"]
    if wanted and draw.below(SPECIAL_AT_FIRST) == 0:
        found = draw.pick(wanted)
        choices.special.remove(found)
        return found
    if is_stateful and draw.below(SPECIAL_LATER) == 0:
        return draw.pick(OPENINGS)
    return "whole" if draw.below(HTTP_ENDS if choices.http else ENDS) else "disconnect"


class CaseSource:
    """A source of cases. The same choices and seed give the same cases on every machine.

    Args:
        choices: what is drawn.
        seed: decides it.
        first: cases that come before the drawn ones, with what needs a process of its own.
    """

    def __init__(self, choices: CaseChoices, seed: int, first: Sequence[list[Step]] = ()) -> None:
        self._random = Random(seed)  # noqa: S311 - cases can be drawn again
        self._first = list(first)
        self._choices = choices
        self._drawn: list[list[Step]] = []
        choices.special = [] if first else list(FIRST_SPECIAL)
        profile = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
        test: Any = profile(given(cases(choices))(self._keep))
        # Half the time of `given` itself, and no example of it is kept.
        self._draw_one = test.hypothesis.fuzz_one_input

    def _keep(self, case: list[Step]) -> None:
        self._drawn.append(case)

    def draw(self, count: int) -> list[list[Step]]:
        """Return `count` cases. Each takes about a millisecond. It may run in a thread."""
        first, self._first = self._first[:count], self._first[count:]
        return first + self._draw(count - len(first))

    def _draw(self, count: int) -> list[list[Step]]:
        for _ in range(50 * count):  # some draws are discarded
            if len(self._drawn) >= count:
                break
            self._draw_one(self._random.randbytes(CASE_BYTES))
        found, self._drawn = self._drawn, []
        return found


# Over HTTP, one case in so many has a second client.
SECOND_CLIENTS: Final = 4
# One case in so many begins its conversation in a special way, or ends it. Each takes a process.
SPECIAL_AT_FIRST: Final = 4  # until each way was drawn
SUSPECTS_AT_FIRST: Final = 12
SPECIAL_LATER: Final = 200
ENDS: Final = 800
HTTP_ENDS: Final = 300
# One case in so many has damage, in several messages: it has few other steps.
DAMAGED: Final = 7
STRESS_DAMAGED: Final = 4  # large and deep messages are damage, too
CASE_BYTES: Final = 4_096  # from which a case is drawn


def _is_avoided(step: Step, choices: CaseChoices) -> bool:
    return bool(choices.avoided) and avoided_name(step) in choices.avoided


def _phrases(choices: CaseChoices, revision: str) -> list[Phrase]:
    """Return a revision's phrases, the common ones several times."""
    modern = not DIALECTS[revision].stateful
    found: list[Phrase] = [
        *[_plain_request] * 5,
        _wrong_request,
        *[_notification] * 2,
        _strange_notification,
        _cancelled_request,
        _pages,
        _burst,
        _unknown_tool,
        *[_subscription] * (4 if choices.tools and choices.has_changes(revision) else 1),
        _responses,
        _input_rounds,
        _tasks,
    ]
    if choices.tools:
        found += [*[_call] * 6, _nearly_valid_call]
        if choices.required:
            found += [_call_without_required] * 2
        found += [_cancelled_call, *[_cancelled_twin] * 2, _cancelled_among_others]
        if choices.has_tasks(revision):
            found += [_followed_tasks] * 3
    if choices.declares(revision, "prompts"):
        found.append(_unknown_prompt)
    if choices.declares(revision, "resources"):
        found.append(_unknown_resource)
    if choices.handings:
        found += [_handed_calls] * 8
    if modern:
        found += [_strange_meta, _strange_meta]
    if choices.http:
        found += [*[_wrong_head] * 5, _half_bodies]
        if not modern:
            found += [_standalone_stream, _ended_session]
        elif choices.mirrored_tools:
            found += [_wrong_argument_head] * 2
    if choices.stress:
        found += [_stressed] * (len(found) // 2)
    return found


def _some_phrases(
    draw: Drawing,
    choices: CaseChoices,
    revision: str,
    most: int,
    *,
    is_damaged: bool = False,
) -> list[Step]:
    phrases = (_damaging_phrases if is_damaged else _phrases)(choices, revision)
    steps: list[Step] = []
    for _ in range(1 + draw.below(most)):
        phrase = draw.pick(phrases)
        drawn = phrase(draw, choices, revision)
        # A call that is wrong on purpose gets no value: it says nothing about the value.
        if choices.handings and phrase is not _nearly_valid_call:
            drawn = with_handed_values(draw, drawn, choices.handings)
        steps += drawn
    return steps


def _damaging_phrases(choices: CaseChoices, revision: str) -> list[Phrase]:
    """Return the phrases of a case with damage. Others among them show what it does to them."""
    found: list[Phrase] = [
        *[_mutated] * 4,
        *[_damaged] * 2,
        *[_odd_params] * 2,
        _odd_notification,
        _plain_request,
    ]
    if choices.tools:
        found += [_call, _stray_response]
    if choices.stress:
        found += [_heavy] * (len(found) // 2)
    return found


# -- Requests --------------------------------------------------------------------------------------


@functools.cache
def _rows(revision: str) -> tuple[Method, ...]:
    rows = methods(revision, Role.SERVER, requests=True)
    return tuple(row for row in rows if row.name not in _NOT_DRAWN)


def _params_of(draw: Drawing, choices: CaseChoices, revision: str, row: Method) -> Any:
    """Return params for a method, from what the target offers."""
    name = row.name
    if name.endswith("/list"):
        return {}
    if name == "prompts/get" and choices.prompts:
        prompt = draw.pick(choices.prompts)
        arguments = prompt.get("arguments")
        names = [
            str(each.get("name"))
            for each in (arguments if isinstance(arguments, list) else ())
            if isinstance(each, dict)
        ]
        chosen = draw.below(4)
        values = {each: draw.value(texts()) for each in (names if chosen else names[:-1])}
        return {"name": prompt["name"], "arguments": values}
    if name in ("resources/read", "resources/subscribe", "resources/unsubscribe"):
        is_listed = draw.below(4) > 0
        if choices.uris and is_listed:
            return {"uri": draw.pick(choices.uris)}
        return {"uri": UNKNOWN_URI}
    if name == "completion/complete" and (choices.completed or choices.prompts):
        return _completion(draw, choices)
    if name == "logging/setLevel" and draw.below(4) == 0:
        return {"level": UNKNOWN_LEVEL}
    return dict(draw.value(objects(revision, row.params)))


def _completion(draw: Drawing, choices: CaseChoices) -> dict[str, Any]:
    """Draw params of a completion, mostly of an argument that the server lists."""
    if choices.completed and (draw.below(4) or not choices.prompts):
        ref, name = draw.pick(choices.completed)
    else:
        ref, name = {"type": "ref/prompt", "name": draw.pick(choices.prompts)["name"]}, "a"
    # Any value begins with an empty one.
    value = draw.value(texts()) if draw.below(2) else ""
    return {"ref": ref, "argument": {"name": name, "value": value}}


def _plain_request(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    rows = _rows(revision)
    row = draw.pick(rows)
    id = IDS[draw.below(3)]
    steps: list[Step] = [("request", row.name, _params_of(draw, choices, revision, row), id)]
    return [*steps, ("wait",)] if draw.below(4) == 0 else steps


def _wrong_request(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a request whose params have wrong members, or whose method doesn't exist."""
    if draw.below(2):
        # Of the others a lenient server can think that it knows them.
        method = draw.pick(UNKNOWN_METHODS) if draw.below(2) else INVENTED_METHODS[0]
        return [("request", method, draw.value(json_objects()), IDS[draw.below(3)])]
    row = draw.pick(methods(revision, Role.SERVER, requests=True))
    if row.name in _WITH_EFFECT:
        return []
    return [("request", row.name, draw.value(json_objects()), "int")]


def _odd_params(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a request whose params aren't an object."""
    row = draw.pick(methods(revision, Role.SERVER, requests=True))
    if row.name == "initialize":
        return []
    return [("request", row.name, draw.pick(SCALARS), "int")]


def _strange_meta(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    how = ("absent", "old", "bare")[draw.below(3)]
    rows = _rows(revision)
    row = draw.pick(rows)
    return [("request", row.name, _params_of(draw, choices, revision, row), "int", how)]


def _notification(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    message = draw.value(notifications(revision))
    return [("notify", message["method"], message.get("params", "absent"))]


def _strange_notification(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    return [("notify", draw.pick(_STRANGE_NOTIFICATIONS), draw.pick(("absent", {"a": 1})))]


def _odd_notification(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    return [("notify", draw.pick(_STRANGE_NOTIFICATIONS), draw.pick((82, [])))]


_STRANGE_NOTIFICATIONS: Final = (
    "notifications/acme",
    "ping",
    "tools/list",
    "notifications/initialized",
)


def _cancelled_request(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    steps = _plain_request(draw, choices, revision)[:1]
    return [*steps, ("cancel", draw.below(3) - 1)]


def _pages(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    method = ("tools/list", "resources/list", "prompts/list", "resources/templates/list")[
        draw.below(4)
    ]
    return [("page", method, ("all", "all", "stale", "invented", "first")[draw.below(5)])]


def _unknown_prompt(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw the list of prompts, from which the judge learns, and a request for no prompt of it.

    Or it is for one without a required argument.
    """
    listed: Step = ("page", "prompts/list", "all")
    kind = draw.below(4)
    if kind == 0 and choices.declares(revision, "completions"):
        ref = {"type": "ref/prompt", "name": UNKNOWN_PROMPT}
        params: dict[str, Any] = {"ref": ref, "argument": {"name": "a", "value": ""}}
        return [listed, ("request", "completion/complete", params, "int")]
    params = {"name": UNKNOWN_PROMPT}
    if kind == 1 and choices.prompts:
        params = {"name": draw.pick(choices.prompts)["name"], "arguments": {}}
    return [listed, ("request", "prompts/get", params, "int")]


def _unknown_resource(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw the lists of resources, from which the judge learns, and a request for none of them."""
    return [
        ("page", "resources/list", "all"),
        ("page", "resources/templates/list", "all"),
        ("request", "resources/read", {"uri": UNKNOWN_URI}, "int"),
    ]


def _burst(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    rows = _rows(revision)
    row = draw.pick(rows)
    count = 2 + draw.below(9)
    return [("burst", count, row.name, _params_of(draw, choices, revision, row))]


def _stressed(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    modern = not DIALECTS[revision].stateful
    return draw_stress(draw.below, http=choices.http, modern=modern)


def _heavy(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    return draw_heavy(draw.below)


# -- HTTP ------------------------------------------------------------------------------------------

_HEADS: Final = ("origin", "origin", "host", "accept", "type", "version")
_STATEFUL_HEADS: Final = (*_HEADS, "session")
_STATELESS_HEADS: Final = (*_HEADS, "method", "none", *["name"] * 3)


def _wrong_head(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    stateful = DIALECTS[revision].stateful
    what = draw.pick(_STATEFUL_HEADS if stateful else _STATELESS_HEADS)
    if what == "name":
        is_call = draw.below(2) > 0
        if choices.tools and is_call:
            _, name, arguments, _ = _one_call(draw, choices, ())
            return [("head", what, "tools/call", {"name": name, "arguments": arguments})]
        if choices.prompts:
            prompt = draw.pick(choices.prompts)
            return [("head", what, "prompts/get", {"name": prompt["name"]})]
        if choices.uris:
            uri = draw.pick(choices.uris)
            return [("head", what, "resources/read", {"uri": uri})]
    method = "ping" if stateful and draw.below(2) else "tools/list"
    return [("head", what, method, {})]


def _wrong_argument_head(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a `tools/list`, from which the judge learns the header, and a call with a wrong one."""
    place = draw.pick(choices.mirrored_tools)
    arguments = draw.value(choices.arguments[place][0])
    what = draw.pick(("argument", "no-argument", "bad-argument"))
    call = {"name": choices.names[place], "arguments": arguments}
    return [("page", "tools/list", "all"), ("head", what, "tools/call", call)]


def _half_bodies(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    steps: list[Step] = [("half",)] * (1 + draw.below(4))
    return [*steps, ("release",)] if draw.below(2) else steps


def _standalone_stream(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    return [("get", ("stream", "resume", "unknown")[draw.below(3)])]


def _ended_session(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    how = ("own", "own", "unknown")[draw.below(3)]
    # Without the wait, other requests race with the end of the session.
    return [("wait",), ("delete", how), ("request", "tools/list", {}, "int")]


# -- Two clients -----------------------------------------------------------------------------------

# Texts by which the results of one client's calls are told from the other one's.
MARKS: Final = ("mcp-trio-fuzz first client", "mcp-trio-fuzz second client")
_LIST: Final[Step] = ("request", "tools/list", {}, "int")
_LOGGING_CALLS: Final = 3  # different tools: few of them write to the log
_WAIT: Final[Step] = ("wait",)


def _second(*steps: Step) -> list[Step]:
    """Return the second client's steps."""
    return [on_client(1, step) for step in steps]


def _second_client(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw what a second client does beside the first one."""
    modern = not DIALECTS[revision].stateful
    offers = ("all", "all", "none")[draw.below(3)]
    how = "late" if not modern and draw.below(8) == 0 else "whole"
    opening = _second(("open", revision, how, offers))
    meetings = _meetings(choices, modern=modern)
    meeting = meetings[choices.meetings[modern] % len(meetings)]
    choices.meetings[modern] += 1
    return opening + meeting(draw, choices, revision)


def _meetings(choices: CaseChoices, *, modern: bool) -> list[Callable[..., list[Step]]]:
    """Return what two clients do. It is drawn in turn: some faults need one of them."""
    found: list[Callable[..., list[Step]]] = []
    if not modern:
        found += [_without_session, _ended_beside, _unknown_session]
    if choices.text_tools:
        found.append(_marked_calls)
    if not modern and choices.tools:
        found.append(_levels_beside)
    found += [_steps_in_turn, _cancelled_beside]
    if choices.uris and choices.tools:
        found.append(_subscribed_beside)
    if choices.text_tools:
        found.append(_marked_calls)
    if not modern and choices.tools:
        found.append(_levels_beside)
    found += [_values_of_the_other, _steps_in_turn]
    return found if modern else [*found, _resumed_beside]


def _steps_in_turn(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw phrases of both clients, whose steps meet each other."""
    mine = _some_phrases(draw, choices, revision, 2)
    theirs = _second(*_some_phrases(draw, choices, revision, 2))
    steps: list[Step] = []
    while mine or theirs:
        source = theirs if not mine or (theirs and draw.below(2)) else mine
        steps.append(source.pop(0))
    return steps


def _values_of_the_other(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw requests with a cursor, a task or a state that the other client got."""
    kind = draw.below(3)
    if kind == 0 or not choices.tools:
        method = ("tools/list", "resources/list", "prompts/list")[draw.below(3)]
        return [("page", method, "first"), *_second(("page", method, "other"))]
    if kind == 1:
        call = _task_call(draw, choices)
        return [call, _WAIT, *_second(("task", 0, "other"), _WAIT), ("task", 0, "get")]
    call = _one_call(draw, choices, ())
    return [call, _WAIT, *_second(call, _WAIT, ("retry", 0, "other"), _WAIT)]


def _cancelled_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a request of each client, whose ids can be equal, and cancel one."""
    step = _one_call(draw, choices, ()) if choices.tools else _LIST
    calls = [step] * (1 + draw.below(3))
    return [*calls, *_second(step, step), ("cancel", draw.below(3)), *_second(_WAIT), _WAIT]


def _marked_calls(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw calls of one tool with a text of each client's. They are read-only if a list says so."""
    place, names = draw.pick(choices.text_tools)
    drawn = draw.value(choices.arguments[place][0])
    others = drawn if isinstance(drawn, dict) else {}
    mine, theirs = (
        ("call", choices.names[place], {**others, **dict.fromkeys(names, mark)}, ())
        for mark in MARKS
    )
    return [
        *_second(("page", "tools/list", "all")),
        *(mine, _WAIT, mine, _WAIT),
        *_second(theirs, _WAIT, theirs, _WAIT),
    ]


def _subscribed_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a subscription of one client, and what may change the resource."""
    listen = ("listen", {"resourceSubscriptions": [draw.pick(choices.uris)]})
    streams: list[Step] = [("get", "stream"), *_second(("get", "stream"))]
    calls = [_one_call(draw, choices, ()) for _ in range(1 + draw.below(3))]
    return [*streams, listen, *_second(("listen", {})), *calls, _WAIT, *_second(_LIST, _WAIT)]


def _ended_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw the end of the second client's session, and requests of both."""
    return [_LIST, _WAIT, *_second(_WAIT, ("delete", "own"), _LIST, _WAIT), _LIST, _WAIT]


def _without_session(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw one request without a session twice: once there is another client, once there isn't."""
    head: Step = ("head", "no-session", "tools/list", {})
    return [head, *_second(_WAIT, ("delete", "own")), head]


def _unknown_session(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw one request with an unknown session twice: without another client, and with one."""
    head: Step = ("head", "session", "tools/list", {})
    again = _second(("reconnect",), ("open", revision, "whole", "all"))
    return [*_second(_WAIT, ("delete", "own")), head, *again, head]


def _resumed_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call with events, and a stream of the other client that resumes after one."""
    call = [_one_call(draw, choices, ("progress",)), _WAIT] if choices.tools else []
    return [("get", "stream"), *call, *_second(("get", "other"), _LIST, _WAIT)]


def _levels_beside(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw another level of the log for each client, and calls of both."""
    levels = ("emergency", "debug") if draw.below(2) else ("debug", "emergency")
    mine, theirs = (("request", "logging/setLevel", {"level": level}, "int") for level in levels)
    calls = [_one_call(draw, choices, ()) for _ in range(_LOGGING_CALLS)]
    both = [step for call in calls for step in (call, *_second(call))]
    return [*_second(theirs, _WAIT), mine, _WAIT, *both, *_second(_WAIT), _WAIT]


# -- Tools -----------------------------------------------------------------------------------------


def _one_call(
    draw: Drawing,
    choices: CaseChoices,
    extra: tuple[str, ...],
    *,
    nearly: bool = False,
    place: int | None = None,
) -> Step:
    """Draw a call of a tool, or of the one at `place`."""
    place = draw.below(len(choices.tools)) if place is None else place
    arguments = draw.value(choices.arguments[place][1 if nearly else 0])
    if place not in choices.task_tools:
        extra = tuple(UNSUPPORTED_TASK if each == "task" else each for each in extra)
    return ("call", choices.names[place], arguments, extra)


_EXTRAS: Final = (
    (),
    (),
    ("progress",),
    ("progress",),
    ("text",),
    ("task",),
    ("progress", "task"),
)


def _call(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    extra = draw.pick(_EXTRAS)
    step = _one_call(draw, choices, extra)
    after = draw.below(6)
    if after == 0:
        # The judge compares the call with its tool, once it knows the whole list.
        return [("page", "tools/list", "all"), step]
    return [step, ("wait",)] if after == 1 else [step]


def _handed_calls(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call that provides a value, and calls that can use it."""
    handing = draw.pick(choices.handings)
    steps: list[Step] = []
    for _ in range(1 + draw.below(2)):
        steps += [_one_call(draw, choices, (), place=draw.pick(handing.providers)), ("wait",)]
    for _ in range(1 + draw.below(3)):
        steps += [_one_call(draw, choices, (), place=handing.tool), ("wait",)]
    return steps


def _nearly_valid_call(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    return [_one_call(draw, choices, (), nearly=True)]


def _unknown_tool(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    name = UNKNOWN_TOOLS[draw.below(3)]
    steps: list[Step] = [("request", "tools/call", {"name": name, "arguments": {}}, "int")]
    return [("page", "tools/list", "all"), *steps] if draw.below(2) else steps


def _call_without_required(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw the list of tools, from which the judge learns, and a call without an argument."""
    place, names = draw.pick(choices.required)
    arguments = draw.value(choices.arguments[place][0])
    if isinstance(arguments, dict):
        arguments = dict(arguments)
        arguments.pop(draw.pick(names), None)
    return [("page", "tools/list", "all"), ("call", choices.names[place], arguments, ())]


def _cancelled_call(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    step = _one_call(draw, choices, ("progress",))
    return [step, ("cancel", draw.below(2)), AFTER_CANCEL]


def _cancelled_twin(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw two equal calls, which take the same time, and cancel one."""
    step = _one_call(draw, choices, ())
    return [step, step, ("cancel", draw.below(2)), AFTER_CANCEL, ("wait",)]


def _cancelled_among_others(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw several calls at once, and cancel some."""
    calls = [_one_call(draw, choices, ()) for _ in range(2 + draw.below(3))]
    cancels = [("cancel", draw.below(4) - 1) for _ in range(1 + draw.below(2))]
    return [*calls, *cancels, AFTER_CANCEL, ("wait",)]


def _responses(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call, and responses to what the server requests meanwhile."""
    how = ("right", "error", "wrong")[draw.below(3)]
    steps = [_one_call(draw, choices, ())] if choices.tools else []
    return [*steps, ("respond", 0, how), ("progress", 0)]


def _stray_response(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call and responses. One of them answers no request of the server."""
    return [_one_call(draw, choices, ()), ("respond", 0, draw.pick(("id", "twice")))]


def _input_rounds(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a call, and its retry with the input that it requires."""
    how = ("right", "right", "altered", "altered", "foreign", "empty")[draw.below(6)]
    steps = [_one_call(draw, choices, ())] if choices.tools else []
    return [*steps, ("wait",), ("retry", 0, how), ("wait",), ("retry", 0, "right")]


_LISTENED: Final = ("toolsListChanged", "promptsListChanged", "resourcesListChanged")


def _subscription(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    """Draw a subscription, calls of a tool that may change something, and its cancellation."""
    bits = draw.below(16)
    chosen: dict[str, Any] = {
        name: True for index, name in enumerate(_LISTENED) if bits >> index & 1
    }
    if bits & 8:
        # Every update is wrong for a subscription to what doesn't exist.
        is_listed = choices.uris and draw.below(2)
        chosen["resourceSubscriptions"] = [draw.pick(choices.uris) if is_listed else UNKNOWN_URI]
    calls = _changing_calls(draw, choices)
    steps: list[Step] = [("listen", chosen), *calls, ("wait",), ("cancel", 0)]
    if calls and draw.below(2):
        steps += [AFTER_CANCEL, ("wait",), *calls, ("wait",)]
    return steps


def _changing_calls(draw: Drawing, choices: CaseChoices) -> list[Step]:
    """Draw calls of one tool with several arguments, mostly of one that changes something."""
    if not choices.tools:
        return []
    known = [choices.names.index(each) for each in choices.changers if each in choices.names]
    place = draw.pick(known) if known and draw.below(4) else draw.below(len(choices.tools))
    return [_one_call(draw, choices, (), place=place) for _ in range(1 + draw.below(4))]


_TASK_ACTS: Final = ("get", "get", "cancel", "result", "list", "update", "unknown")


def _task_call(draw: Drawing, choices: CaseChoices) -> Step:
    if not choices.task_tools or not draw.below(4):
        return _one_call(draw, choices, ("task",))
    place = draw.pick(choices.task_tools)
    return ("call", choices.names[place], draw.value(choices.arguments[place][0]), ("task",))


def _followed_tasks(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    count = 1 + draw.below(3)
    calls = [_task_call(draw, choices) for _ in range(count)]
    return [*calls, ("wait",), *(("task", place, "follow") for place in range(count))]


def _tasks(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    steps: list[Step] = []
    if choices.tools:
        steps = [_task_call(draw, choices), ("wait",)]
    for _ in range(1 + draw.below(4)):
        act = draw.pick(_TASK_ACTS)
        steps.append(("task", draw.below(2), act))
        if draw.below(2):
            steps.append(("wait",))
    return steps


# -- Damage ----------------------------------------------------------------------------------------


# Ids of damaged messages only, so that their responses aren't taken for others.
_RARE_IDS: Final = st.integers(2**30, 2**31)


@functools.cache
def _mutations(revision: str) -> SearchStrategy[bytes]:
    @st.composite
    def build(draw: DrawFn) -> dict[str, Any]:
        return {**draw(_harmless(revision)), "id": draw(_RARE_IDS)}

    return malformed(st.one_of(build(), build(), notifications(revision)))


def _is_doubtful(data: bytes) -> bool:
    """Return True if bytes call a tool, or have a member twice.

    Readers differ in which of two members counts, so it isn't clear what a response is for.
    """
    doubled = False

    def collect(pairs: list[tuple[str, Any]]) -> None:
        nonlocal doubled
        doubled |= len({name for name, _ in pairs}) < len(pairs)

    for line in data.split(b"\n"):
        with contextlib.suppress(ValueError, RecursionError):
            json.loads(line, object_pairs_hook=collect)
    return doubled or b"tools/call" in data


@functools.cache
def _harmless(revision: str) -> SearchStrategy[dict[str, Any]]:
    """Draw requests that call no tool and begin nothing."""
    return requests(revision).filter(lambda message: message["method"] not in _WITH_EFFECT)


def _mutated(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    data = draw.value(_mutations(revision))
    return [] if _is_doubtful(data) else [("mutate", data.decode("utf-8", "surrogatepass"))]


def _damaged(draw: Drawing, choices: CaseChoices, revision: str) -> list[Step]:
    rows = _rows(revision)
    row = draw.pick(rows)
    message: Mapping[str, Any] = {
        "jsonrpc": "2.0",
        "id": draw.value(_RARE_IDS),
        "method": row.name if draw.below(2) else "ping",
        "params": {"_meta": meta_of(revision), "a": draw.value(json_values(1))},
    }
    data = damage(draw.value, encoded(message))
    return [] if _is_doubtful(data) else [("damage", data)]
