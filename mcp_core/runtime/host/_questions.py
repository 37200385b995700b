"""The questions of a host to its user, and the answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from mcp_core._text import escape_text
from mcp_core.host._approvals import ApprovalState, RuleLifetime
from mcp_core.host._definition_warnings import DefinitionWarning, ToolNames, find_warnings
from mcp_core.host._launch import LaunchLine, ServerLaunch, describe_launch
from mcp_core.host._names import QualifiedName
from mcp_core.host._pins import (
    Definition,
    DefinitionKind,
    PinComparison,
    describe_definition,
    describe_definition_change,
)
from mcp_core.types import Tool

__all__ = [
    "CallAnswer",
    "CallQuestion",
    "CallVerdict",
    "DefinitionsQuestion",
    "ServerQuestion",
]

_STEP: Final = 20  # definitions whose warnings are found in one step


class ServerQuestion(Struct, frozen=True, kw_only=True):
    """Whether a server of a project's file may be started or connected to.

    Attributes:
        server: the server's name.
        file: the file's absolute path.
        launch: what would be run or connected to.
        state: "new", or "changed" if another launch of it was approved.
        replaces: the files of a more trusted scope, such as the user's own, that have another
            server of this name, with their scopes. This one takes its place.
    """

    server: str
    file: str
    launch: ServerLaunch
    state: ApprovalState
    replaces: tuple[str, ...] = ()

    def lines(self) -> Iterator[LaunchLine]:
        """Yield the lines that the user has to see. They are safe for a terminal."""
        yield from describe_launch(self.launch)
        for file in self.replaces:
            mark = "the server of the same name there is not used"
            yield LaunchLine("in place of", escape_text(file), mark)


class DefinitionsQuestion(Struct, frozen=True, kw_only=True):
    """Whether definitions that are new, or have changed since they were approved, may be used.

    Attributes:
        server: the server's name.
        comparison: what is new and what has changed.
        warnings: what may deceive in them, by `Definition.key`; only those with a warning.
    """

    server: str
    comparison: PinComparison
    warnings: Mapping[tuple[DefinitionKind, str], Sequence[DefinitionWarning]]

    @classmethod
    def about(
        cls, server: str, comparison: PinComparison, tools: Iterable[QualifiedName]
    ) -> DefinitionsQuestion:
        """Return the question about what is new or has changed, with its warnings.

        Args:
            server: the server's name.
            comparison: what is new and what has changed.
            tools: the tools of all servers, to find imitations. `ToolNames` of many tools can be
                used for several questions.
        """
        *_, question = cls.in_steps(server, comparison, tools)
        return question

    @classmethod
    def in_steps(
        cls, server: str, comparison: PinComparison, tools: Iterable[QualifiedName]
    ) -> Iterator[DefinitionsQuestion]:
        """Yield the question that `about` returns, with more warnings each time.

        The last one is complete. Let others run between the steps: the warnings about 500 tools
        with long texts take half a second. The arguments are as for `about`.
        """
        names = tools if isinstance(tools, ToolNames) else ToolNames(tools)
        question = cls(server=server, comparison=comparison, warnings={})
        definitions, found = question.definitions, {}
        for at in range(0, len(definitions), _STEP):
            yield question
            for each in definitions[at : at + _STEP]:
                if warnings := find_warnings(each, server, names):
                    found[each.key] = warnings
        yield replace(question, warnings=found)

    def only(self, kind: DefinitionKind, name: str) -> DefinitionsQuestion | None:
        """Return the question about one definition, or None if that isn't asked about.

        Args:
            kind: a tool, a prompt, a resource template, or the instructions.
            name: the name at the server, the URI template, or "" for instructions.
        """
        key = kind, name
        comparison = replace(
            self.comparison,
            new=tuple(each for each in self.comparison.new if each.key == key),
            changed=tuple(each for each in self.comparison.changed if each[1].key == key),
        )
        found = replace(self, comparison=comparison)
        return found if found.definitions else None

    @property
    def definitions(self) -> tuple[Definition, ...]:
        """The definitions to approve, as they are now."""
        return (*self.comparison.new, *(new for _, new in self.comparison.changed))

    def lines(self, limit: int | None = None) -> Iterator[tuple[str, str]]:
        """Yield the lines that the user has to see, each with a sign before it.

        The sign is "=" for a definition's name, "!" for a warning about it, and "-", "+" or
        " " for a line of the difference. They are safe for a terminal.

        Args:
            limit: the maximum number of lines of each difference; a line with the sign "!" then
                says how many are left out. None for all lines. Do not let a user approve what was
                left out.
        """
        pairs: list[tuple[Definition | None, Definition]] = [*self.comparison.changed]
        pairs += [(None, each) for each in self.comparison.new]
        for old, new in pairs:
            state = "new" if old is None else "changed"
            yield "=", escape_text(f"{new.kind} {new.name} ({state})")
            for warning in self.warnings.get(new.key, ()):
                yield "!", f"{warning.path} {warning.text}"
            if old is None:
                yield from describe_definition(new, limit)
            else:
                yield from describe_definition_change(old, new, limit)


class CallQuestion(Struct, frozen=True, kw_only=True):
    """Whether a tool may be called.

    Attributes:
        server: the server's name.
        tool: the tool, as the server describes it.
        arguments: the call's arguments.
        reason: why the user is asked.
    """

    server: str
    tool: Tool
    arguments: Mapping[str, Any]
    reason: str


class CallAnswer(Struct, frozen=True, kw_only=True):
    """The answer to a `CallQuestion`, or of an `on_call` that says more than "allow" or "deny".

    Attributes:
        is_allowed: whether the call is made.
        lifetime: whether the answer is for this call, for the host's session, or for good.
        pattern: the tools of the server that the answer is for, with `*` for any characters; ""
            for this tool as it is defined now. It has no effect on this call.
        arguments: the arguments of this call in place of the given ones, or None.
        reason: who or what decides, for the error and the audit record.
    """

    is_allowed: bool
    lifetime: RuleLifetime = "call"
    pattern: str = ""
    arguments: Mapping[str, Any] | None = None
    reason: str = "user"


# What `on_call` returns: allow the call, deny it, ask the user, make it with other arguments, or
# leave the decision to the rules and the approvals (None).
CallVerdict: TypeAlias = Literal["allow", "deny", "ask"] | Mapping[str, Any] | CallAnswer | None
