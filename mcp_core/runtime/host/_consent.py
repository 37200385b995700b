"""The user's decisions: which servers are started, what they may offer, and each tool call.

1. What is stored is an `ApprovalStore`; rules of this session are kept here and not stored.
2. A question shows what exactly is approved, and the answer is for that: a launch's digest, or
   the definitions themselves. What changes while the user reads is asked about again.
3. Without a callback nothing is approved. The error, or the state of the server, says what waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from itertools import count
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
from mcp_core.host._pins import replace_pins

from ._options import ApprovalStore, MemoryApprovals
from ._questions import CallAnswer, CallQuestion, DefinitionsQuestion, ServerQuestion

if TYPE_CHECKING:
    from mcp_core.host._pins import Definition, PinComparison
    from mcp_core.host.catalog._server import ServerCatalog

    from ._options import HostOptions
    from ._source import ServerSource

__all__ = ["AllowedCall", "Consent", "answer_of"]

T = TypeVar("T")


async def answer_of(answer: Awaitable[T] | T) -> T:
    """Return a callback's answer. Await it if the callback is an `async def`."""
    return await answer if isinstance(answer, Awaitable) else answer


class AllowedCall(NamedTuple):
    """A call that may be made: its `arguments`, and who or what has allowed it."""

    arguments: dict[str, Any]
    approved_by: str


class _CheckedCall(NamedTuple):
    """A call that isn't decided yet. `digest` is its tool's definition when the call began."""

    source: ServerSource
    catalog: ServerCatalog
    tool: str
    arguments: dict[str, Any]
    digest: str | None


class Consent:
    """The approvals of one host.

    Args:
        options: the host's options.
        in_thread: runs a function that may block in a worker thread.
        wall_time: returns the seconds since 1970.
        default: where approvals are stored if there is no option `approvals`; None for in memory.
            Programs share this place, so approvals of servers that the program names stay in memory
            then.
    """

    def __init__(
        self,
        options: HostOptions,
        in_thread: Callable[[Callable[[], Approvals]], Awaitable[Approvals]],
        wall_time: Callable[[], float],
        default: ApprovalStore | None = None,
    ) -> None:
        self._options = options
        self._in_thread = in_thread
        self._wall_time = wall_time
        given = options.get("approvals")
        self._store: ApprovalStore = given or default or MemoryApprovals()
        self._own: ApprovalStore | None = MemoryApprovals() if given is None else None
        self._approvals = Approvals()
        self._change_numbers = count(1)
        self._last_change = 0  # the number of the change that `_approvals` is from
        self._session_rules: dict[str, tuple[ToolRule, ...]] = {}

    async def load(self) -> None:
        """Read what is stored.

        Raises:
            McpTrioError, OSError: it cannot be read, or others may have written it.
        """
        self._approvals = await self._in_thread(self._store.load)

    def find(self, source: ServerSource) -> ServerApproval:
        """Return a server's approval; an empty one if nothing was approved."""
        own = None if source.file else self._own
        approvals = self._approvals if own is None else own.load()
        return approvals.find(source.file, source.name) or ServerApproval()

    async def _change(
        self, source: ServerSource, function: Callable[[ServerApproval], ServerApproval]
    ) -> None:
        number = 0

        def change(approvals: Approvals) -> Approvals:
            nonlocal number
            number = next(self._change_numbers)  # the store makes one change at a time
            return approvals.with_change(source.file, source.name, function)

        own = None if source.file else self._own
        if own is None:
            approvals = await self._in_thread(lambda: self._store.change(change))
            if number > self._last_change:  # another thread may have ended first
                self._approvals, self._last_change = approvals, number
        else:
            own.change(change)

    # -- Servers ---------------------------------------------------------------------------------

    def launch_state(self, source: ServerSource, launch: ServerLaunch) -> ApprovalState:
        """Return whether a launch was approved, never, or in another form."""
        return approval_state(launch, self.find(source), source.replaces)

    async def ask_about_server(self, source: ServerSource, launch: ServerLaunch) -> bool:
        """Ask the user about a launch, and return True if it is approved from now on."""
        ask = self._options.get("on_approve_server")
        if ask is None:
            return False
        question = self.question_about_server(source, launch)
        if await answer_of(ask(question)) is not True:
            return False
        await self.approve_server(source, question)
        return True

    def question_about_server(self, source: ServerSource, launch: ServerLaunch) -> ServerQuestion:
        """Return what is to be asked about a launch."""
        return ServerQuestion(
            server=source.name,
            file=source.file,
            launch=launch,
            state=self.launch_state(source, launch),
            replaces=source.replaces,
        )

    async def approve_server(self, source: ServerSource, question: ServerQuestion) -> None:
        """Store the approval of what a question shows.

        Rules that allow calls of any definition end: they were made for what ran before.
        """
        digest, now = digest_launch(question.launch), self._wall_time()

        def change(old: ServerApproval) -> ServerApproval:
            rules = old.rules
            if old.launch not in (None, digest):
                rules = tuple(rule for rule in rules if rule.digest or not rule.is_allowed)
            return replace(
                old, launch=digest, replaces=question.replaces, approved=now, rules=rules
            )

        await self._change(source, change)

    # -- Definitions -----------------------------------------------------------------------------

    def find_unapproved(self, catalog: ServerCatalog) -> PinComparison | None:
        """Return what the user has to approve of a server, or None if there is nothing."""
        comparison = catalog.comparison
        if comparison is None or comparison.is_first_sight:
            return None
        return comparison if comparison.new or comparison.changed else None

    @property
    def asks_about_definitions(self) -> bool:
        """True if there is a callback that asks the user about definitions."""
        return self._options.get("on_approve_definitions") is not None

    async def ask_about_definitions(self, question: DefinitionsQuestion) -> bool:
        """Ask the user about definitions, and return True if they may be used."""
        ask = self._options.get("on_approve_definitions")
        return ask is not None and await answer_of(ask(question)) is True

    async def pin(self, source: ServerSource, definitions: Iterable[Definition]) -> None:
        """Store the approval of definitions, in addition to those that are stored by now.

        Raises:
            McpTrioError, OSError: they cannot be stored.
        """
        await self._change(
            source, lambda old: replace(old, pins=replace_pins(old.pins, definitions))
        )

    async def pin_first(self, source: ServerSource, definitions: Iterable[Definition]) -> None:
        """Store a server's first definitions, unless there are pins by now.

        Another process, or the user, may have approved others in the meantime.

        Raises:
            McpTrioError, OSError: they cannot be stored.
        """
        if self.find(source).pins is not None:
            return
        await self._change(
            source,
            lambda old: (
                replace(old, pins=replace_pins(None, definitions)) if old.pins is None else old
            ),
        )

    # -- Calls -----------------------------------------------------------------------------------

    async def add_rule(self, source: ServerSource, rule: ToolRule) -> None:
        """Keep a rule: a permanent one in the store, another one for this session.

        It replaces a rule of the same lifetime for the same tools.

        Raises:
            McpTrioError, OSError: it cannot be stored.
        """
        if rule.lifetime != "always":
            rules = self._session_rules.get(source.name, ())
            self._session_rules[source.name] = _with_rule(rules, rule)
        elif rule not in self.find(source).rules:  # else each call could write the file again
            await self._change(source, lambda old: replace(old, rules=_with_rule(old.rules, rule)))

    def forget_session(self, server: str) -> None:
        """Drop the rules of this session for a server."""
        self._session_rules.pop(server, None)

    async def check_call(
        self, source: ServerSource, catalog: ServerCatalog, name: str, arguments: dict[str, Any]
    ) -> AllowedCall:
        """Decide a call, and return the arguments to make it with.

        Raises:
            CallDenied: it may not.
            ApprovalRequired: its definition wasn't approved, or there is no callback that could
                ask the user.
            TypeError: `on_call` or `on_approve_call` has returned something else.
            McpTrioError, OSError: the answer is permanent, and cannot be stored.
        """
        call = _CheckedCall(source, catalog, name, arguments, _digest_of(catalog, name))
        self._decide(call)
        allowed = await self._ask_callbacks(call)
        # The definition or the rules may have changed while a callback was waiting.
        self._decide(call)
        return allowed

    async def _ask_callbacks(self, call: _CheckedCall) -> AllowedCall:
        server, arguments = call.source.name, call.arguments
        on_call = self._options.get("on_call")
        verdict = (
            None if on_call is None else await answer_of(on_call(server, call.tool, arguments))
        )
        if isinstance(verdict, CallAnswer):
            return await self._apply(call, verdict)
        if isinstance(verdict, Mapping):
            return AllowedCall(dict(verdict), "on_call")
        if verdict == "allow":
            return AllowedCall(arguments, "on_call")
        if verdict == "deny":
            raise CallDenied(server, call.tool, "on_call")
        if verdict == "ask":
            return await self._ask_about_call(call, "on_call asks about it")
        if verdict is not None:
            raise TypeError(
                f'on_call returns "allow", "deny", "ask", arguments, a CallAnswer or None, not'
                f" {verdict!r}"
            )
        # Only now: another call may have used up a rule while `on_call` was waiting.
        decision = self._decide(call)
        if decision.verdict == "allow":
            self._use_up(server, decision)
            return AllowedCall(arguments, decision.reason)
        return await self._ask_about_call(call, decision.reason)

    def _decide(self, call: _CheckedCall) -> CallDecision:
        """Return whether a call is allowed or the user has to be asked.

        Raises:
            CallDenied: a rule denies it, or its server doesn't offer the tool.
            ApprovalRequired: its definition isn't approved, or has changed since the call began.
        """
        source, catalog, name = call.source, call.catalog, call.tool
        tool, digest = catalog.tool(name), _digest_of(catalog, name)
        decision = decide_call(
            name,
            catalog.state("tool", name),
            is_server_approved=True,  # else there would be no connection, and no catalog
            digest=digest,
            is_trusted=source.is_trusted,
            annotations=None if tool is None else tool.annotations,
            rules=[*self.find(source).rules, *self._session_rules.get(source.name, ())],
            approve_all=self._options.get("approve", "ask") == "all",
        )
        if decision.verdict == "deny":
            self._use_up(source.name, decision)
            unread = catalog.unread("tools") if tool is None else ""
            reason = f"{decision.reason}; {unread}" if unread else decision.reason
            raise CallDenied(source.name, name, reason)
        if decision.about == "definition":
            raise ApprovalRequired(source.name, name, decision.reason)
        if digest != call.digest:
            # The new definition is approved. The user's answer was about the old one.
            raise ApprovalRequired(source.name, name, "its definition has changed: call it again")
        return decision

    def _use_up(self, server: str, decision: CallDecision) -> None:
        """Remove the rule that has decided if it was for one call."""
        rule = decision.rule
        if rule is not None and rule.lifetime == "call":
            rules = self._session_rules[server]
            self._session_rules[server] = tuple(each for each in rules if each != rule)

    async def _ask_about_call(self, call: _CheckedCall, reason: str) -> AllowedCall:
        ask = self._options.get("on_approve_call")
        tool = call.catalog.tool(call.tool)
        if ask is None or tool is None:
            raise ApprovalRequired(call.source.name, call.tool, reason)
        question = CallQuestion(
            server=call.source.name, tool=tool, arguments=call.arguments, reason=reason
        )
        answer: object = await answer_of(ask(question))
        if isinstance(answer, bool):
            answer = CallAnswer(is_allowed=answer)
        if not isinstance(answer, CallAnswer):
            raise TypeError(f"on_approve_call returns a CallAnswer or a bool, not {answer!r}")
        return await self._apply(call, answer)

    async def _apply(self, call: _CheckedCall, answer: CallAnswer) -> AllowedCall:
        """Keep an answer as a rule if it is for more than this call, and obey it."""
        if answer.lifetime != "call":
            is_for_definition = answer.is_allowed and not answer.pattern
            rule = ToolRule(
                tool=answer.pattern or call.tool,
                is_pattern=bool(answer.pattern),
                is_allowed=answer.is_allowed,
                lifetime=answer.lifetime,
                digest=call.digest if is_for_definition else None,
            )
            await self.add_rule(call.source, rule)
        if not answer.is_allowed:
            raise CallDenied(call.source.name, call.tool, answer.reason)
        arguments = call.arguments if answer.arguments is None else dict(answer.arguments)
        return AllowedCall(arguments, answer.reason)


def _digest_of(catalog: ServerCatalog, tool: str) -> str | None:
    """Return a definition's digest, or None for a tool of a server of this program."""
    definition = catalog.definition("tool", tool)
    return None if definition is None else definition.digest


def _with_rule(rules: tuple[ToolRule, ...], rule: ToolRule) -> tuple[ToolRule, ...]:
    """Return `rules` with `rule`, which replaces a rule of its lifetime for the same tools."""

    def subject(each: ToolRule) -> tuple[str, bool, str]:
        return each.tool, each.is_pattern, each.lifetime

    return (*(each for each in rules if subject(each) != subject(rule)), rule)
