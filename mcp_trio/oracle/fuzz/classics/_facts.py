"""The facts about a target that decide its classic cases, and common parts of these."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp_core import DIALECTS, Role

from ._samples import ToolSample, sample_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from mcp_trio.oracle.fuzz._case import Case, Step
    from mcp_trio.oracle.fuzz.draw._choices import CaseChoices

__all__ = ["LIST", "MAX_CALLS", "WAIT", "TargetFacts", "all_calls", "groups"]

MAX_TOOLS: Final = 12  # whose calls are classic cases
MAX_CALLS: Final = 16  # of a case
MAX_ENTRIES: Final = 10  # prompts and resources, of each
WAIT: Final[Step] = ("wait",)
LIST: Final[Step] = ("request", "tools/list", {}, "int")

T = TypeVar("T")


class TargetFacts:
    """A target as far as the classic cases depend on it.

    Args:
        choices: the choices for drawing cases, which know the target's lists.

    Attributes:
        revisions: those it speaks, the newest first.
        main: the newest revision with a handshake and the newest without, as far as it speaks them.
        http: it is at a URL.
        tools: the tools that may be called and have valid arguments.
        prompts: its prompts.
        uris: its resources' URIs.
        templates: its resource templates' URIs.
    """

    def __init__(self, choices: CaseChoices) -> None:
        offers = choices.offers
        self.revisions = tuple(choices.revisions)
        kinds = [
            [each for each in self.revisions if DIALECTS[each].stateful is stateful]
            for stateful in (True, False)
        ]
        self.main = tuple(each[0] for each in kinds if each)
        self.http = choices.http
        samples = map(sample_of, choices.tools)
        self.tools: list[ToolSample] = [each for each in samples if each is not None][:MAX_TOOLS]
        self.prompts = choices.prompts[:MAX_ENTRIES]
        self.uris = choices.uris[:MAX_ENTRIES]
        templates = getattr(offers, "templates", ())
        self.templates = [
            each["uriTemplate"] for each in templates if isinstance(each.get("uriTemplate"), str)
        ][:MAX_ENTRIES]
        self._capabilities = offers.capabilities

    def in_turn(self, items: Iterable[T]) -> Iterator[tuple[str, T]]:
        """Yield each item with one of the main revisions, for what doesn't depend on it."""
        return zip(itertools.cycle(self.main), items, strict=False)

    def of_handshake(self) -> str:
        """Return the newest revision with a handshake that it speaks, or ""."""
        return next((each for each in self.main if DIALECTS[each].stateful), "")

    def of_requests(self) -> str:
        """Return the newest revision without a handshake that it speaks, or ""."""
        return next((each for each in self.main if not DIALECTS[each].stateful), "")

    def declares(self, revision: str, *path: str) -> bool:
        """Return True if the server declares a capability in a revision."""
        found: Any = self._capabilities.get(revision, {})
        for name in path:
            if not isinstance(found, dict) or name not in found:
                return False
            found = found[name]
        return found is not False

    def serves(self, revision: str, method: str) -> bool:
        """Return True if a revision has a method, and the server declares what it needs."""
        row = DIALECTS[revision].receives[Role.SERVER].get(method)
        return row is not None and self.declares(revision, *row.needs)

    def texts_of(self, texts: Iterable[str]) -> Iterator[Step]:
        """Yield a call with each text, if one of the tools takes it."""
        for text in texts:
            for tool in self.tools:
                arguments = tool.with_text(text)
                if arguments is not None:
                    yield call(tool, arguments)
                    break


def opened(revision: str, *steps: Step, offers: str = "all", how: str = "whole") -> Case:
    """Return a case of a revision.

    Without a handshake it begins with a usual request: some servers take the connection's revision
    from their first message.
    """
    first = () if DIALECTS[revision].stateful else (LIST, WAIT)
    return [("open", revision, how, offers), *first, *steps]


def call(tool: ToolSample, arguments: Any = None, *extra: str) -> Step:
    """Return the call of a tool, by default with its smallest arguments."""
    return ("call", tool.name, tool.arguments if arguments is None else arguments, extra)


def request(method: str, params: Any = None, id: Any = "int", meta: str = "whole") -> Step:
    """Return a request."""
    step: Step = ("request", method, {} if params is None else params, id)
    return step if meta == "whole" else (*step, meta)


def all_calls(facts: TargetFacts) -> list[Step]:
    """Return a call of each tool for each value of its enumerations, which may cause changes."""
    found = [call(tool, each) for tool in facts.tools for each in tool.choices()]
    return found[:MAX_CALLS]


def groups(items: Sequence[T], size: int) -> Iterator[list[T]]:
    """Yield the items in lists of `size`; the last one may be shorter."""
    for place in range(0, len(items), size):
        yield list(items[place : place + size])


def each_after(steps: Iterable[Step], after: Step) -> list[Step]:
    """Return the steps, with another step after each."""
    return list(itertools.chain.from_iterable((step, after) for step in steps))
