"""Decide with the user: which servers are started, what they may offer, and each call of a tool.

1. What is stored is an `ApprovalStore`; rules of this session are kept here and not stored.
2. A question shows what exactly is approved, and the answer is for that: the digest of a launch, or
   the definitions themselves. What changes while the user reads is asked about again.
3. Without a callback nothing is approved. The error, or the state of the server, says what waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec.structs import replace

from mcp_core.host._approvals import (
    ApprovalRequired,
    Approvals,
    ApprovalState,
    CallDecision,
    ServerApproval,
    ToolRule,
    approval_state,
    decide_call,
)
from mcp_core.host._errors import CallDenied
from mcp_core.host._launch import ServerLaunch, digest_launch
from mcp_core.host._names import QualifiedName

from ._options import ApprovalStore, MemoryApprovals
from ._questions import CallAnswer, CallQuestion, DefinitionsQuestion, ServerQuestion

if TYPE_CHECKING:
    from mcp_core.host._pins import Definition
    from mcp_core.host.catalog._server import ServerCatalog

    from ._options import HostOptions
    from ._source import ServerSource

__all__ = ["AllowedCall", "Consent", "answer_of"]

T = TypeVar("T")


async def answer_of(answer: Awaitable[T] | T) -> T:
    """Return what a callback returned, or what its `async def` returns."""
    return await answer if isinstance(answer, Awaitable) else answer


class AllowedCall(NamedTuple):
    """A call that may be made: its `arguments`, and who or what has allowed it."""

    arguments: dict[str, Any]
    approved_by: str


class Consent:
    """The approvals of one host.

    Args:
        options: the options of the host.
        in_thread: runs a function that may block in a worker thread.
        wall_time: returns the seconds since 1970.
    """

    def __init__(
        self,
        options: HostOptions,
        in_thread: Callable[[Callable[[], Approvals]], Awaitable[Approvals]],
        wall_time: Callable[[], float],
    ) -> None:
        self._options = options
        self._in_thread = in_thread
        self._wall_time = wall_time
        self._store: ApprovalStore = options.get("approvals") or MemoryApprovals()
        # Servers of the program have no file, so their approvals are not stored.
        self._own: ApprovalStore = MemoryApprovals()
        self._approvals = Approvals()
        self._session_rules: dict[str, list[ToolRule]] = {}

    async def load(self) -> None:
        """Read what is stored.

        Raises:
            McpTrioError, OSError: it cannot be read, or others may have written it.
        """
        self._approvals = await self._in_thread(self._store.load)

    def find(self, source: ServerSource) -> ServerApproval:
        """Return the approval of a server; an empty one if nothing was approved."""
        approvals = self._approvals if source.file else self._own.load()
        return approvals.find(source.file, source.name) or ServerApproval()

    async def _change(
        self, source: ServerSource, function: Callable[[ServerApproval], ServerApproval]
    ) -> None:
        def change(approvals: Approvals) -> Approvals:
            return approvals.with_change(source.file, source.name, function)

        if source.file:
            self._approvals = await self._in_thread(lambda: self._store.change(change))
        else:
            self._own.change(change)

    # -- Servers ---------------------------------------------------------------------------------

    def launch_state(self, source: ServerSource, launch: ServerLaunch) -> ApprovalState:
        """Return whether a launch was approved, never, or in another form."""
        return approval_state(launch, self.find(source))

    async def ask_about_server(self, source: ServerSource, launch: ServerLaunch) -> bool:
        """Ask the user about a launch, and return True if it is approved from now on."""
        ask = self._options.get("on_approve_server")
        if ask is None:
            return False
        question = ServerQuestion(
            server=source.name,
            file=source.file,
            launch=launch,
            state=self.launch_state(source, launch),
        )
        if await answer_of(ask(question)) is not True:
            return False
        await self.approve_server(source, launch)
        return True

    async def approve_server(self, source: ServerSource, launch: ServerLaunch) -> None:
        """Store that a launch is approved."""
        digest, now = digest_launch(launch), self._wall_time()
        await self._change(source, lambda old: replace(old, launch=digest, approved=now))

    # -- Definitions -----------------------------------------------------------------------------

    def question_about(
        self, catalog: ServerCatalog, tools: Iterable[QualifiedName]
    ) -> DefinitionsQuestion | None:
        """Return what is to be asked about a server, or None if all is approved that can be.

        `tools` are the tools of all servers.
        """
        comparison = catalog.comparison
        if comparison is None or comparison.is_first_sight:
            return None
        if not (comparison.new or comparison.changed):
            return None
        return DefinitionsQuestion.about(catalog.server, comparison, tools)

    async def ask_about_definitions(self, question: DefinitionsQuestion) -> bool:
        """Ask the user about definitions, and return True if they may be used."""
        ask = self._options.get("on_approve_definitions")
        return ask is not None and await answer_of(ask(question)) is True

    async def store_pins(self, source: ServerSource, pins: tuple[Definition, ...]) -> None:
        """Store what was approved of a server."""
        await self._change(source, lambda old: replace(old, pins=pins))

    # -- Calls -----------------------------------------------------------------------------------

    async def add_rule(self, source: ServerSource, rule: ToolRule) -> None:
        """Keep a rule: in the store if it is for good, else for this session."""
        if rule.lifetime != "always":
            self._session_rules.setdefault(source.name, []).append(rule)
            return
        await self._change(source, lambda old: replace(old, rules=_with_rule(old.rules, rule)))

    def forget_session(self, server: str) -> None:
        """Drop the rules of this session for a server."""
        self._session_rules.pop(server, None)

    async def check_call(
        self, source: ServerSource, catalog: ServerCatalog, name: str, arguments: dict[str, Any]
    ) -> AllowedCall:
        """Return what to call a tool with, if it may be called.

        Raises:
            CallDenied: it may not.
            ApprovalRequired: its definition was not approved, or there is no callback that could
                ask the user.
            TypeError: `on_call` has returned something else.
        """
        allowed = await self._ask_hooks(source, catalog, name, arguments)
        # The definition may have changed while the user was reading.
        again = self._decide(source, catalog, name)
        if again.about == "definition" or catalog.tool(name) is None:
            raise ApprovalRequired(source.name, name, again.reason)
        return allowed

    async def _ask_hooks(
        self, source: ServerSource, catalog: ServerCatalog, name: str, arguments: dict[str, Any]
    ) -> AllowedCall:
        decision = self._decide(source, catalog, name)
        if decision.verdict == "deny":
            raise CallDenied(source.name, name, decision.reason)
        if decision.about == "definition":
            raise ApprovalRequired(source.name, name, decision.reason)
        on_call = self._options.get("on_call")
        verdict = (
            None if on_call is None else await answer_of(on_call(source.name, name, arguments))
        )
        if isinstance(verdict, CallAnswer):
            return await self._apply(source, catalog, name, arguments, verdict)
        if isinstance(verdict, Mapping):
            return AllowedCall(dict(verdict), "on_call")
        if verdict == "allow":
            return AllowedCall(arguments, "on_call")
        if verdict == "deny":
            raise CallDenied(source.name, name, "on_call")
        if verdict is not None and verdict != "ask":
            raise TypeError(
                f'on_call returns "allow", "deny", "ask", arguments, a CallAnswer or None, not'
                f" {verdict!r}"
            )
        if verdict is None and decision.verdict == "allow":
            self._use_up(source.name, decision)
            return AllowedCall(arguments, decision.reason)
        return await self._ask_about_call(source, catalog, name, arguments, decision)

    def _decide(self, source: ServerSource, catalog: ServerCatalog, name: str) -> CallDecision:
        definition = catalog.definition("tool", name)
        tool = catalog.tool(name)
        return decide_call(
            name,
            catalog.state("tool", name),
            digest=None if definition is None else definition.digest,
            is_trusted=source.is_trusted,
            annotations=None if tool is None else tool.annotations,
            rules=[*self.find(source).rules, *self._session_rules.get(source.name, ())],
            approve_all=self._options.get("approve", "ask") == "all",
        )

    def _use_up(self, server: str, decision: CallDecision) -> None:
        """Remove a rule that was for one call."""
        rule = decision.rule
        if rule is not None and rule.lifetime == "call":
            self._session_rules[server].remove(rule)

    async def _ask_about_call(
        self,
        source: ServerSource,
        catalog: ServerCatalog,
        name: str,
        arguments: dict[str, Any],
        decision: CallDecision,
    ) -> AllowedCall:
        ask = self._options.get("on_approve_call")
        tool = catalog.tool(name)
        if ask is None or tool is None:
            raise ApprovalRequired(source.name, name, decision.reason)
        question = CallQuestion(
            server=source.name, tool=tool, arguments=arguments, reason=decision.reason
        )
        found: CallAnswer | bool = await answer_of(ask(question))
        answer = CallAnswer(is_allowed=found) if isinstance(found, bool) else found
        return await self._apply(source, catalog, name, arguments, answer)

    async def _apply(
        self,
        source: ServerSource,
        catalog: ServerCatalog,
        name: str,
        arguments: dict[str, Any],
        answer: CallAnswer,
    ) -> AllowedCall:
        """Keep an answer as a rule if it is for more than this call, and obey it."""
        if answer.lifetime != "call":
            definition = catalog.definition("tool", name)
            digest = None if definition is None or not answer.is_allowed else definition.digest
            rule = ToolRule(
                tool=answer.pattern or name,
                is_pattern=bool(answer.pattern),
                is_allowed=answer.is_allowed,
                lifetime=answer.lifetime,
                digest=None if answer.pattern else digest,
            )
            await self.add_rule(source, rule)
        if not answer.is_allowed:
            raise CallDenied(source.name, name, answer.reason)
        edited = arguments if answer.arguments is None else dict(answer.arguments)
        return AllowedCall(edited, answer.reason)


def _with_rule(rules: tuple[ToolRule, ...], rule: ToolRule) -> tuple[ToolRule, ...]:
    """Return `rules` with `rule` in place of those for the same tools."""
    others = (
        each for each in rules if (each.tool, each.is_pattern) != (rule.tool, rule.is_pattern)
    )
    return (*others, rule)
