"""The choices for drawing: a target's tools, prompts and other offers."""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Protocol

from mcp_core import ALL, DIALECTS, LATEST
from mcp_core.http import param_headers
from mcp_trio.oracle.fuzz.invariants._handing import find_handings
from mcp_trio.oracle.strategies._from_schema import from_schema, nearly_valid

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mcp_trio.oracle.fuzz.invariants._load import Invariants

__all__ = ["WITH_HANDSHAKE", "CaseChoices", "OffersLike"]

WITH_HANDSHAKE: Final = tuple(each for each in ALL if DIALECTS[each].stateful)
TASKS: Final = "io.modelcontextprotocol/tasks"
# The members of a schema that allows any text.
_TEXT_KEYS: Final = frozenset({"type", "title", "description", "default", "x-mcp-header"})
_VARIABLES: Final = re.compile(r"\{[+#./;?&]?([^{}]+)\}")  # in a URI template
MAX_COMPLETED: Final = 500  # arguments and variables


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
